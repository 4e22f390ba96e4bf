"""Our own lower limits: sorting, one pass over memory, growth with N, the fixed cost of a call, import.

    python benchmarks/limits.py [ids of metrics]                (part of ``make bench``)
    python benchmarks/limits.py ece bs --update                 measure these again, keep the rest of RESULTS.md

Whatever sees only predictions and labels should cost a few sorts and grow like N: the exponent of the growth from 10^5
to 10^7 rows must be about 1.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from calls import OURS
from results import markdown, seconds, table

import calibrary as cal

SIZES = (10**5, 10**6, 10**7)
BASE = {"np.argsort": "np.argsort(c)[0]", "one pass (sum)": "c.sum()"}


def binary_metrics(only: list[str] | None = None) -> list[str]:
    """Metrics that need nothing but binary labels and probabilities."""
    able = [e.id for e in cal.catalogue.values() if e.family != "detection" and set(e.needs) <= {"order"}]
    return [id for id in able if not only or id in only]


def measure(bench: Any, only: list[str] | None = None, sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    """Everything the tables need, as plain numbers."""
    growth: dict[str, dict[str, Any]] = {}
    calls = {**BASE, **{id: call_of(id) for id in binary_metrics(only)}}
    for name, call in calls.items():
        growth[name] = {str(n): answer for n, answer in bench.run(sys.executable, "binary", sizes, OURS, call).items()}
        print(
            f"{name}: " + ", ".join(seconds(a.get("seconds")) or a["error"] for a in growth[name].values()), flush=True
        )
    return {"growth": growth, "small": small(only), "evaluate": evaluation(bench), "import": import_time()}


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


def evaluation(bench: Any, n: int = 10**6) -> dict[str, Any]:
    """Every metric that applies to binary predictions, on a million rows."""
    answer = bench.run(sys.executable, "binary", [n], OURS, "len(cal.evaluate(y, c))")[n]
    sort = bench.run(sys.executable, "binary", [n], OURS, BASE["np.argsort"])[n]
    return {"n": n, "rows": answer.get("value"), "seconds": answer.get("seconds"), "error": answer.get("error"),
            "sort": sort.get("seconds")}  # fmt: skip


def import_time(repeats: int = 5) -> dict[str, float]:
    """Processor seconds of a fresh Python that imports calibrary, and of one that imports what it leans on."""

    def least(code: str) -> float:
        best = math.inf
        for _ in range(repeats):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True)
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
        "`np.argsort`, `exponent` the growth of time with N. Sorting and summing show what leaving the caches adds.",
        "",
        *table(head, body),
        "",
    ]
    return lines + _fixed(measured)


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
    from peers import RESULTS, STORED, Bench

    only = [cal.catalogue[word].id for word in sys.argv[1:] if word != "--update"]
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Bench(Path(folder)), only or None)
    if "--update" not in sys.argv:
        print("\n".join(sections(measured)))
        return
    results = json.loads(STORED.read_text())
    for part in ("growth", "small"):
        results["limits"][part].update(measured[part])
    results["limits"].update(evaluate=measured["evaluate"], **{"import": measured["import"]})
    RESULTS.write_text(markdown(results), encoding="utf-8")
    STORED.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
