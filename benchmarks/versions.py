"""The library's own calls beside another version of it, turn by turn: has anything become slower?

    python benchmarks/versions.py --base /path/to/other/checkout [--sizes 100 10000] [--only ece bs] [--plain]

Two processes, one for each version, answer the same call in turn; each answers with the least processor time of
several repeats, and the ratio of a call is the median over the rounds. Calls: ``compute`` of every metric of both
catalogues that needs only labels and probabilities, also for predictions that were checked before, with a keyword, with
weights and for ten classes; ``interval`` and ``test`` of a few, with few draws and as they are by default; and calls
that have no metric: ``evaluate``, comparisons, maps, curves. All loops are compiled before they are timed. What is more
than 1.25 times slower is listed first.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SLOWER = 1.25
LASTS = 0.02  # seconds that the repeats of one answer should last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--only", nargs="+", default=[], help="ids")
    parser.add_argument("--kinds", nargs="+", default=[*KINDS, "call"], help="kinds of calls")
    parser.add_argument("--limit", type=float, default=0.5, help="seconds; a call that takes longer is left out")
    parser.add_argument("--json", help="where the numbers go")
    parser.add_argument("--plain", action="store_true", help="without numba")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        answer(asked.plain)
        return
    this, base = Worker(ROOT, asked.plain), Worker(Path(asked.base), asked.plain)
    ids = [id for id in base.ask({"list": True})["ids"] if not asked.only or id in asked.only]
    known = set(this.ask({"list": True})["ids"])
    calls = [
        (kind, id, n) for n in asked.sizes for kind in KINDS for id in ids if id in known and (id, n) not in MINUTES
    ]
    calls += [("call", name, n) for n in asked.sizes for name in WHOLE if not asked.only or name in asked.only]
    calls = [call for call in calls if call[0] in asked.kinds]
    found: dict[tuple[str, str, int], list[float]] = {}
    seconds: dict[tuple[str, str, int], list[float]] = {}
    for turn in range(asked.rounds):
        for place, call in enumerate(calls, 1):
            job = {"kind": call[0], "id": call[1], "n": call[2], "limit": asked.limit}
            pair = (base, this) if turn % 2 else (this, base)
            times = {worker is this: worker.ask(job).get("seconds") for worker in pair}
            if times[True] and times[False]:
                found.setdefault(call, []).append(times[True] / times[False])
                seconds.setdefault(call, []).append(times[True])
            if sys.stderr.isatty():
                print(f"\rround {turn + 1}/{asked.rounds}, call {place}/{len(calls)} ", end="", file=sys.stderr)
    ratios = {call: statistics.median(values) for call, values in found.items()}
    show(ratios, len(calls))
    if asked.json:
        rows = [{"kind": k, "id": i, "n": n, "ratio": round(r, 3), "seconds": min(seconds[k, i, n])}
                for (k, i, n), r in ratios.items()]  # fmt: skip
        Path(asked.json).write_text(json.dumps({"rounds": asked.rounds, "plain": asked.plain, "calls": rows}, indent=1))


KINDS = (
    "compute", "checked", "keyword", "weights", "classes", "interval", "test", "interval by default", "test by default"
)  # fmt: skip
#: One call takes minutes.
MINUTES = [("lower_distance", 10_000)]
#: Calls of no single metric.
WHOLE: dict[str, Callable[..., Any]] = {
    "evaluate": lambda cal, y, c: cal.evaluate(y, c),
    "evaluate with intervals and tests": lambda cal, y, c: cal.evaluate(y, c, intervals=True, tests=True, rng=0),
    "report": lambda cal, y, c: cal.report(y, c).to_html(),
    "compare bs": lambda cal, y, c: cal.compare("bs", y, c, c**1.1, rng=0),
    "compare ece": lambda cal, y, c: cal.compare("ece", y, c, c**1.1, rng=0),
    "verdict": lambda cal, y, c: cal.verdict("ece<0.05", y, c, rng=0),
    "Recalibrator": lambda cal, y, c: cal.Recalibrator("platt").fit(c, y).predict_proba(c),
    "isotonic": lambda cal, y, c: cal.Recalibrator("isotonic").fit(c, y).predict_proba(c),
    "recalibration_gain": lambda cal, y, c: cal.recalibration_gain(y, c),
    "reliability_data": lambda cal, y, c: cal.plots.reliability_data(y, c),
}
#: Resampling is timed for few: a draw is a call of the metric or of its fast path.
RESAMPLED = ("ece", "mce", "ace", "bs", "nll", "ecce_mad", "ecce_r", "smece", "mmce", "cis")


def show(ratios: dict[tuple[str, str, int], float], asked: int) -> None:
    slower = sorted(((r, call) for call, r in ratios.items() if r > SLOWER), reverse=True)
    print(f"{len(ratios)} of {asked} calls timed in both versions; {len(slower)} more than {SLOWER} times slower")
    for ratio, (kind, id, n) in slower:
        print(f"  {ratio:5.2f}  {kind:9} {id:20} N = {n:,}")
    print("| call | N | calls | median ratio | worst | best |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for kind in (*KINDS, "call"):
        for n in sorted({n for _, _, n in ratios}):
            these = {id: r for (k, id, m), r in ratios.items() if (k, m) == (kind, n)}
            if these:
                worst, best = max(these, key=these.__getitem__), min(these, key=these.__getitem__)
                middle = statistics.median(these.values())
                print(
                    f"| {kind} | {n:,} | {len(these)} | {middle:.2f} | "
                    f"{worst} {these[worst]:.2f} | {best} {these[best]:.2f} |"
                )


class Worker:
    """One version in a process of its own; answers one line for each line."""

    def __init__(self, tree: Path, plain: bool) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", *(["--plain"] if plain else [])], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found


def answer(plain: bool) -> None:
    """Answer jobs from standard input until it ends."""
    import warnings

    if plain:
        sys.modules["numba"] = None  # type: ignore[assignment]

    import numpy as np

    import calibrary as cal
    from calibrary.numerics import compiled

    warnings.simplefilter("ignore")
    # as in a process that has called every loop for some seconds; 0.2.0 knows the second name
    compiled.FORCED, compiled._START = not plain, 0.0
    entries = {e.id: e for e in cal.catalogue.values() if e.family != "detection" and not e.needs}
    rng = np.random.default_rng(0)
    data: dict[int, Any] = {}
    too_slow: set[tuple[str, str, int]] = set()
    for line in sys.stdin:
        job = json.loads(line)
        if "list" in job:
            print(json.dumps({"ids": list(entries)}), flush=True)
            continue
        n, id, kind = job["n"], job["id"], job["kind"]
        if n not in data:
            c = rng.beta(0.8, 0.8, n)
            data[n] = (rng.random(n) < c**1.2).astype(int), c, rng.integers(1, 4, n).astype(float)
        if (kind, id, n) in too_slow or (kind.startswith(("interval", "test")) and id not in RESAMPLED):
            print("{}", flush=True)
            continue
        try:
            if kind == "call":
                y, c, _ = data[n]
                seconds = timed(lambda id=id, y=y, c=c: WHOLE[id](cal, y, c), 20 * job["limit"])
            else:
                limit = job["limit"] * (8 if "default" in kind else 1)
                seconds = timed(calls_of(cal, id, *data[n])[kind], limit)
        except (ValueError, TypeError, AttributeError):
            seconds = None  # the call is not known in this version
        if seconds is None:
            too_slow.add((kind, id, n))
        print(json.dumps({"seconds": seconds} if seconds else {}), flush=True)


def calls_of(cal: Any, id: str, y: Any, c: Any, w: Any) -> dict[str, Callable[[], Any]]:
    """The calls of one metric, by kind."""
    checked = cal.predictions(y, c)
    return {
        "compute": lambda: cal.compute(id, y, c),
        "checked": lambda: cal.compute(id, checked),
        "keyword": lambda: cal.compute(id, y, c, lens="binary"),
        "weights": lambda: cal.compute(id, y, c, sample_weight=w),
        "classes": lambda: cal.compute(id, *ten_classes(len(y))),
        "interval": lambda: cal.interval(id, y, c, method="basic", n_resamples=99, rng=0),
        "test": lambda: cal.test(id, y, c, method="monte-carlo", n_resamples=99, rng=0),
        "interval by default": lambda: cal.interval(id, y, c, rng=0),
        "test by default": lambda: cal.test(id, y, c, rng=0),
    }


@functools.cache
def ten_classes(n: int) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(10, 0.4), n)
    return (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), p


def timed(call: Any, limit: float) -> float | None:
    """The least processor time of several repeats; None when one takes longer than the limit."""
    call()
    start = time.process_time()
    call()
    once = time.process_time() - start
    if once > limit:
        return None
    times = [once]
    for _ in range(max(2, min(200, int(LASTS / max(once, 1e-6))))):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
