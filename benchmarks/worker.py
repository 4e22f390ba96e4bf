"""Run one call in this process and say what it gave: value, seconds, peak memory.

    python benchmarks/worker.py '{"data": "file.pickle", "setup": "...", "call": "...", ...}'

Needs nothing but the package that is called (and numpy), so that it runs in any environment. The first call warms up
(imports, compiles); the second is watched for memory; the rest are timed. Processor seconds of one thread, so that
other work on the machine counts little. The answer is one line of JSON.
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
from pathlib import Path
from typing import Any

SHORTEST = 0.01  # seconds that one timing should last at least, by repeating the call


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Do the job; what goes wrong is part of the answer."""
    if job.get("memory"):
        resource.setrlimit(resource.RLIMIT_AS, (job["memory"], job["memory"]))
    warnings.simplefilter("ignore")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return measured(job)
    except MemoryError:
        return {"error": "memory"}
    except Exception as error:
        text = " ".join(str(error).split())
        if "can't allocate memory" in text:
            return {"error": "memory"}
        return {"error": f"{type(error).__name__}: {text}"[:300]}


def measured(job: dict[str, Any]) -> dict[str, Any]:
    """Value, seconds (best and first) and added MiB of ``call``; values of what is in ``also``."""
    with Path(job["data"]).open("rb") as file:
        names = pickle.load(file)
    exec(job["setup"], names)
    call = compile(job["call"], "<call>", "eval")
    start = time.process_time()
    value = eval(call, names)
    first = time.process_time() - start
    answer = {"value": float(value), "first": first, "seconds": first}
    if job["budget"]:
        answer["memory"] = memory(lambda: eval(call, names))
        answer["seconds"] = best(call, names, job["budget"])
    answer["also"] = [attempt(text, names) for text in job.get("also", ())]
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
    while timings < 2 or (spent < budget and timings < 20):
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
    print(json.dumps(main(json.loads(sys.argv[1]))))
