"""Run one call in this process, on one size of data after the other, and say what it gave: value, seconds, memory.

    python benchmarks/worker.py '{"data": ["small.pickle", "large.pickle"], "setup": "...", "call": "...", ...}'

Needs nothing but the package that is called (and numpy), so that it runs in any environment. The first call warms up
(imports, compiles); the second is watched for memory; the rest are timed. Processor seconds of one thread, so that
other work on the machine counts little. The answer is one line of JSON for every size, as soon as it is there; after
an error there are no more.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHORTEST = 0.01  # seconds that one timing should last at least, by repeating the call
LONG = 5.0  # seconds beyond which a call is not repeated more than once


def main(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Do the job, size by size."""
    if job.get("memory"):
        resource.setrlimit(resource.RLIMIT_AS, (job["memory"], job["memory"]))
    warnings.simplefilter("ignore")
    for file, also in zip(job["data"], job["also"], strict=True):
        answer = attempted(file, {**job, "also": also})
        yield answer
        if "error" in answer:
            return


def attempted(file: str, job: dict[str, Any]) -> dict[str, Any]:
    """One size; what goes wrong is part of the answer."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return measured(file, job)
    except MemoryError:
        return {"error": "memory"}
    except Exception as error:
        text = " ".join(str(error).split())
        if "can't allocate memory" in text:
            return {"error": "memory"}
        return {"error": f"{type(error).__name__}: {text}"[:300]}


def measured(file: str, job: dict[str, Any]) -> dict[str, Any]:
    """Value, seconds (best and first) and added MiB of ``call``; values of what is in ``also``."""
    with Path(file).open("rb") as stored:
        names = pickle.load(stored)
    exec(job["setup"], names)
    call = compile(job["call"], "<call>", "eval")
    start = time.process_time()
    value = eval(call, names)
    first = time.process_time() - start
    answer = {"value": float(value), "first": first, "seconds": first}
    if job["budget"]:
        start = time.process_time()
        answer["memory"] = memory(lambda: eval(call, names))
        answer["seconds"] = time.process_time() - start
        if answer["seconds"] < LONG:
            answer["seconds"] = min(answer["seconds"], best(call, names, job["budget"]))
    answer["also"] = [attempt(text, names) for text in job["also"]]
    return answer


def attempt(text: str, names: dict[str, Any]) -> float | None:
    """The value of a call, or None where it cannot be computed: it is only there to explain another."""
    try:
        return float(eval(text, names))
    except Exception:
        return None


def best(call: Any, names: dict[str, Any], budget: float) -> float:
    """Smallest time of one call among those that fit in the budget (at least two timings)."""
    number, taken = 1, timed(call, names, 1)
    spent, least = taken, taken
    number = max(1, int(SHORTEST / max(taken, 1e-7)))
    timings = 1
    while timings < 2 or (spent < budget and timings < 50):
        taken = timed(call, names, number)
        spent, least, timings = spent + taken, min(least, taken / number), timings + 1
    return least


def timed(call: Any, names: dict[str, Any], number: int) -> float:
    start = time.process_time()
    for _ in range(number):
        eval(call, names)
    return time.process_time() - start


def memory(run: Any) -> float:
    """MiB of resident memory that a call adds at its peak."""
    before = _status("VmRSS")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    except OSError:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    peak = _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(0.0, (peak - before) / 1024)


def _status(key: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), 0)


if __name__ == "__main__":
    for answer in main(json.loads(sys.argv[1])):
        print(json.dumps(answer), flush=True)
