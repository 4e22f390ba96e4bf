"""Our own lower limits: sorting, one pass over memory, growth with N, a thousand classes, the fixed cost of a call.

    python benchmarks/limits.py [ids of metrics]                (part of ``make bench``)
    python benchmarks/limits.py ece bs --update                 measure these again, keep the rest of RESULTS.md
    python benchmarks/limits.py --update --minutes 12           those that are missing there, as far as time suffices

Whatever sees only predictions and labels should cost a few sorts and grow like N: the exponent of the growth from 10^5
to 10^7 rows must be about 1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import Answer, Bench, alone, machine
from calls import OURS
from results import markdown, seconds, table

import calibrary as cal

SIZES = (10**5, 10**6, 10**7)
BASE = {"np.argsort": "np.argsort(c)[0]", "one pass (sum)": "c.sum()"}


def binary_metrics(only: list[str] | None = None) -> list[str]:
    """Metrics that need nothing but binary labels and probabilities."""
    able = [e.id for e in cal.catalogue.values() if e.family != "detection" and set(e.needs) <= {"order"}]
    return [id for id in able if not only or id in only]


#: Calls on a thousand classes: what is called, on which data, on how many rows.
WIDE = (
    ("cal.expected_calibration_error(y, p)", "a thousand classes", 10**5),
    ("cal.expected_calibration_error(y, p, lens='class-wise')", "a thousand classes", 10**5),
    ("cal.adaptive_calibration_error(y, p, lens='class-wise')", "a thousand classes", 10**5),
    ("cal.maximum_calibration_error(y, p, lens='class-wise')", "a thousand classes", 10**5),
    ("cal.smooth_calibration_error_residual(y, p, lens='class-wise')", "a thousand classes", 10**5),
    ("cal.brier_score(y, p)", "a thousand classes", 10**5),
    ("cal.negative_log_likelihood(y, p)", "a thousand classes", 10**5),
    ("cal.smooth_calibration_error_residual(y, p, lens='class-wise')", "tiny confidences", 20),
    ("cal.smooth_calibration_error_residual(y, p)", "tiny confidences", 20),
)


def measure(
    bench: Bench,
    only: list[str] | None = None,
    known: dict[str, Any] | None = None,
    minutes: float = math.inf,
    keep: Callable[[dict[str, Any]], None] = lambda measured: None,
) -> dict[str, Any]:
    """Everything the tables need, as plain numbers; ``keep`` gets them on the way, what is known is not asked again."""
    here = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "cores": os.cpu_count()}
    measured: dict[str, Any] = {"about": here, "growth": {}, **(known or {})}
    end = time.time() + 60 * minutes
    measured |= {"small": {**measured.get("small", {}), **small(only)}}
    measured |= {"evaluate": evaluation(bench), "import": import_time()}
    calls = {**BASE, **{id: call_of(id) for id in binary_metrics(only)}}
    for name in sorted(calls, key=lambda name: name in measured["growth"] and not only):
        if name in measured["growth"] and not only:
            break
        if time.time() > end:
            print("out of time: run it again with --update for the rest")
            return measured
        measured["growth"][name] = growth(bench, calls[name])
        print(f"{name}: {', '.join(_shown(a) for a in measured['growth'][name].values())}", flush=True)
        keep(measured)
    if not only:
        measured["wide"] = {"about": here, "calls": {}}
    for call, kind, n in WIDE if not only else ():
        measured["wide"]["calls"][f"{call} | {kind} | {n}"] = answer = _timed_once(bench, kind, n, call)
        print(f"{call}, {kind}: {_shown(answer)}", flush=True)
        keep(measured)
    return measured


def growth(bench: Bench, call: str, sizes: tuple[int, ...] = SIZES) -> dict[str, Answer]:
    """Seconds and memory at each size, until one would take longer than the limit."""
    found: dict[str, Answer] = {}
    for n in sizes:
        if found and next(reversed(found.values()))["seconds"] * 8 > bench.limit:
            found[str(n)] = {"error": f"would take more than {bench.limit:g} s"}
            break
        found[str(n)] = _timed_once(bench, "binary", n, call)
        if "error" in found[str(n)]:
            break
    return found


def _timed_once(bench: Bench, kind: str, n: int, call: str) -> Answer:
    side = bench.side(sys.executable, "calibrary", kind, n, OURS, call)
    side.prepare(warm=0.05)
    return alone(side, 0.1) if side.answer.get("seconds", 0.0) < 0.2 else side.answer


def _shown(answer: Answer) -> str:
    return answer.get("error") or seconds(answer["seconds"])


def call_of(id: str) -> str:
    # a metric of several numbers shows its first
    fields = cal.catalogue[id].fields
    return f"cal.catalogue[{id!r}](y, c).{fields[0][0]}" if fields else f"np.ravel(cal.catalogue[{id!r}](y, c))[0]"


def small(only: list[str] | None = None, n: int = 100) -> dict[str, float]:
    """Seconds of one call on 100 points with float64 arrays, for every binary metric."""
    import warnings

    from data import binary

    names = binary(n)
    y, c = names["y"], names["c"]
    times = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for id in binary_metrics(only):
            call = cal.catalogue[id].function
            assert call is not None
            call(y, c)
            times[id] = min(_timed(call, y, c) for _ in range(3))
    return times


def _timed(call: Any, y: Any, c: Any, least: float = 0.02) -> float:
    number, start = 0, time.process_time()
    while number < 3 or time.process_time() - start < least:
        call(y, c)
        number += 1
    return (time.process_time() - start) / number


def evaluation(bench: Bench, n: int = 10**6) -> dict[str, Any]:
    """Every metric that applies to binary predictions, on a million rows."""
    answer, sort = (_timed_once(bench, "binary", n, call) for call in ("len(cal.evaluate(y, c))", BASE["np.argsort"]))
    return {"n": n, "rows": answer.get("value"), "seconds": answer.get("seconds"), "error": answer.get("error"),
            "sort": sort.get("seconds")}  # fmt: skip


def import_time(repeats: int = 5) -> dict[str, float]:
    """Processor seconds of a fresh Python that imports calibrary, and of one that imports what it leans on.

    From bytecode, as in any installation: the first of the repeats writes it.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def least(code: str) -> float:
        best = math.inf
        for _ in range(repeats):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True, env=environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            best = min(best, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        return best

    return {code: least(code) for code in ("pass", "import numpy, scipy.special", "import calibrary")}


# -- text --------------------------------------------------------------------------------------------


def exponent(answers: dict[str, Any]) -> float | None:
    """Slope of log seconds against log N between the first and the last size that was reached."""
    reached = [(int(n), a["seconds"]) for n, a in answers.items() if a.get("seconds")]
    if len(reached) < 2:
        return None
    (n0, t0), (n1, t1) = reached[0], reached[-1]
    return math.log(t1 / t0) / math.log(n1 / n0)


def sections(measured: dict[str, Any]) -> list[str]:
    """The tables of limits as Markdown."""
    growth = measured["growth"]
    sort = {n: answer.get("seconds") for n, answer in growth["np.argsort"].items()}
    sizes = list(sort)
    body = []
    for name, answers in growth.items():
        last = next((n for n in reversed(sizes) if answers.get(n, {}).get("seconds")), None)
        power = exponent(answers)
        body.append((
            name,
            *(seconds(answers.get(n, {}).get("seconds")) or answers.get(n, {}).get("error", "") for n in sizes),
            "" if last is None or not sort[last] else f"{answers[last]['seconds'] / sort[last]:.2f}",
            "" if power is None else f"{power:.2f}",
            _bytes(answers, last),
        ))  # fmt: skip
    head = ("metric", *(f"{int(n):,}" for n in sizes), "in sorts", "exponent", "bytes per row")
    lines = [
        "## Against our own limits",
        "",
        "Binary data, input checks and sort included; `in sorts` is the time at the largest N over that of "
        "`np.argsort`, `exponent` the growth of time with N. Sorting and summing show what leaving the caches adds. "
        + _when(measured.get("about")),
        "",
        *table(head, body),
        "",
    ]
    return lines + _wide(measured.get("wide", {})) + _fixed(measured)


def _when(about: dict[str, Any] | None) -> str:
    return f"Measured on {about['date']} ({about['machine']}, {about['cores']} cores)." if about else ""


def _wide(wide: dict[str, Any]) -> list[str]:
    """The table of a thousand classes."""
    if not wide:
        return []
    body = []
    for name, answer in wide["calls"].items():
        call, kind, n = name.split(" | ")
        body.append((f"`{call}`", kind, f"{int(n):,}", _shown(answer), f"{answer.get('memory', 0.0):.0f}"))
    text = f"Tiny confidences: all but one class of a row between 1e-300 and 1e-12. {_when(wide['about'])}"
    return [
        "## A thousand classes", "", text, "", *table(("call", "data", "rows", "time", "MiB added"), body), "",
    ]  # fmt: skip


def _bytes(answers: dict[str, Any], n: str | None) -> str:
    """Memory a row costs, at the largest size reached."""
    if n is None or "memory" not in answers[n]:
        return ""
    return f"{answers[n]['memory'] * 2**20 / int(n):.0f}"


def _fixed(measured: dict[str, Any]) -> list[str]:
    lines = ["## Fixed cost of a call", "", "100 points, arrays already float64.", ""]
    order = sorted(measured["small"].items(), key=lambda item: item[1])
    lines += table(("metric", "time"), [(id, seconds(t)) for id, t in order])
    whole = measured["evaluate"]
    lines += ["", "## Everything at once, and import", ""]
    if whole.get("seconds") and whole.get("sort"):
        lines.append(
            f"`evaluate` of {whole['rows']:.0f} numbers on {whole['n']:,} binary predictions: "
            f"{seconds(whole['seconds'])}, {whole['seconds'] / whole['sort']:.0f} times `np.argsort`."
        )
    else:
        lines.append(f"`evaluate` on {whole['n']:,} binary predictions: {whole.get('error')}.")
    lines += ["", *(f'- `python -c "{code}"`: {seconds(t)}' for code, t in measured["import"].items()), ""]
    return lines


def main() -> None:
    """Measure the metrics named, or all, and print the tables or bring RESULTS.md up to date."""
    from peers import RESULTS, STORED

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", help="metrics; without any, all of them")
    parser.add_argument("--update", action="store_true", help="bring RESULTS.md up to date")
    parser.add_argument("--again", action="store_true", help="with --update: measure also what is there")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--limit", type=float, default=15, help="seconds after which a call is stopped")
    given = parser.parse_args()
    only = [cal.catalogue[word].id for word in given.ids]
    results = json.loads(STORED.read_text()) if given.update else {"limits": {}}

    def keep(measured: dict[str, Any]) -> None:
        if given.update:
            results["limits"] = measured
            RESULTS.write_text(markdown(results), encoding="utf-8")
            STORED.write_text(json.dumps(results, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), limit=given.limit)
        try:
            known = {} if given.again else results["limits"]
            measured = measure(bench, only or None, known, given.minutes, keep)
        finally:
            bench.close()
    keep(measured)
    if not given.update:
        print("\n".join(sections(measured)))


if __name__ == "__main__":
    main()
