"""The long attack: awkward data by the million against what must be true of every answer (``tests/awkward.py``).

    python benchmarks/fuzz.py [--minutes 10]

It fails while a violation is open: the cases of earlier runs are tried again first.

Every turn draws its cases from a seed of its own; ``benchmarks/fuzz.json`` keeps the next seed, the counts of every
outcome and each violation with the case that made it, so that a run goes on where the last one ended. The goal before a
release is 10^6 metric calls, 10^4 intervals, tests and comparisons, 10^3 tables, 10^2 reports and files.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402

import awkward  # noqa: E402
import calibrary as cal  # noqa: E402

FILE = ROOT / "benchmarks" / "fuzz.json"
GOALS = {"metric": 10**6, "inference": 10**4, "evaluation": 10**3, "report": 10**2, "file": 10**2}
#: Turns of each kind in a round: so all of them near their goals together.
ROUND = {"metric": 250, "inference": 14, "evaluation": 1.1, "report": 0.11, "file": 0.11}
WHAT = ("inversion", "triangle", "basic", "test", "compare")
MOST_KEPT = 60


def turn(kind: str, seed: int, seen: dict[str, int]) -> None:
    """One case of one kind."""
    rng = np.random.default_rng([seed, sorted(GOALS).index(kind)])
    case = awkward.drawn_case(rng)
    entry = cal.catalogue[str(rng.choice(IDS))]
    if kind == "metric":
        few = case.columns < 1000 or not (entry.costly or entry.slow_above)
        lens = str(rng.choice(("auto", "auto", *entry.lenses))) if case.columns < 1000 else "auto"
        if few:
            awkward.metric_call(entry, case, lens, seen)
    elif kind == "inference":
        if not entry.costly and case.columns < 1000:
            awkward.inference_call(entry, awkward.plain_case(case), str(rng.choice(WHAT)), seen)
    elif case.columns > 12:
        return
    elif kind == "evaluation":
        awkward.evaluation_call(awkward.plain_case(case), seen)
    elif kind == "report":
        _report(case, seen)
    else:
        _file(case, rng, seen)


IDS = sorted(id for id, entry in cal.catalogue.items() if awkward.taken(entry))


def _report(case: awkward.Case, seen: dict[str, int]) -> None:
    def call() -> float:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "r.html"
            cal.report(awkward.checked(case), n_resamples=19, rng=0, about={"title": "<b>$x$"}).save(page)
            return float(page.stat().st_size)

    found = awkward.asked(call, ("report", case))
    seen[found.outcome] = seen.get(found.outcome, 0) + 1


def _file(case: awkward.Case, rng: np.random.Generator, seen: dict[str, int]) -> None:
    """A file, sometimes damaged, through the command line: status 0 or 2, and never a traceback."""
    from calibrary.cli.main import main

    y, p, _ = case.data()
    columns = [p] if p.ndim == 1 else list(p.T)
    text = ",".join(["y", *(f"p{k}" for k in range(len(columns)))]) + "\n"
    text += "\n".join(",".join([str(a), *(repr(float(c[i])) for c in columns)]) for i, a in enumerate(y)) + "\n"
    for _ in range(int(rng.integers(0, 3))):
        at = int(rng.integers(len(text)))
        text = text[:at] + str(rng.choice(["", ",", '"', "\x00", "nan", "-", "é", "\n", "1e400"])) + text[at + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f.csv"
        file.write_text(text)
        said, argv = io.StringIO(), sys.argv
        sys.argv = ["calibrary", "metric", str(rng.choice(["ece", "bs", "cis", "smece"])), str(file), "-q"]
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                main()
        except SystemExit as ended:
            status = ended.code or 0
        finally:
            sys.argv = argv
    if status not in (0, 2) or "Traceback" in said.getvalue():
        raise awkward.Violation(f"status {status}: {said.getvalue()[-300:]} | {text!r}")
    outcome = "number" if status == 0 else "sentence"
    seen[outcome] = seen.get(outcome, 0) + 1


def state() -> dict[str, Any]:
    """Where the last run ended."""
    if FILE.exists():
        return dict(json.loads(FILE.read_text()))
    return {"version": cal.__version__, "seed": 0, "cpu_minutes": 0.0, "outcomes": {}, "violations": []}


def try_again(kept: dict[str, Any]) -> None:
    """Violations of earlier runs: those that are gone are mended."""
    still = []
    for found in kept["violations"]:
        try:
            turn(found["kind"], found["seed"], {})
        except awkward.Violation:
            still.append(found)
        else:
            kept.setdefault("mended", []).append(found)
    kept["violations"] = still


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0, help="CPU minutes")
    parser.add_argument("--fresh", action="store_true", help="forget the counts and violations of earlier runs")
    arguments = parser.parse_args()
    kept = state() | {"version": cal.__version__}
    if arguments.fresh:
        kept |= {"cpu_minutes": 0.0, "outcomes": {}, "violations": []}
    try_again(kept)
    begun, due = time.process_time(), dict.fromkeys(GOALS, 0.0)
    saved = begun
    while time.process_time() - begun < 60.0 * arguments.minutes:
        for kind, share in ROUND.items():
            due[kind] += share / 10.0
            while due[kind] >= 1.0:
                due[kind] -= 1.0
                kept["seed"] += 1
                try:
                    turn(kind, kept["seed"], kept["outcomes"].setdefault(kind, {}))
                except awkward.Violation as violation:
                    found = kept["outcomes"][kind]
                    found["violation"] = found.get("violation", 0) + 1
                    if len(kept["violations"]) < MOST_KEPT:
                        kept["violations"].append({"kind": kind, "seed": kept["seed"], "said": str(violation)[:600]})
                    print(f"{kind} {kept['seed']}: {violation}", flush=True)
        if time.process_time() - saved > 20.0:
            kept["cpu_minutes"] += (time.process_time() - saved) / 60.0
            saved = time.process_time()
            FILE.write_text(json.dumps(kept, indent=1) + "\n")
    kept["cpu_minutes"] = round(kept["cpu_minutes"] + (time.process_time() - saved) / 60.0, 2)
    FILE.write_text(json.dumps(kept, indent=1) + "\n")
    for kind, goal in GOALS.items():
        found = kept["outcomes"].get(kind, {})
        print(f"{kind}: {sum(found.values()):,} of {goal:,} ({', '.join(f'{k} {v:,}' for k, v in found.items())})")
    if kept["violations"]:
        sys.exit(f"{len(kept['violations'])} violations are open, see {FILE.name}")


if __name__ == "__main__":
    main()
