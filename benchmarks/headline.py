"""Does the decision of the headline keep its level, what does it find, and how often is a sentence false?

    python benchmarks/headline.py [--samples 100] [--minutes 3] [--part 1/2] [--only level] [--cell TEXT] [--show]

Each cell is simulated sample by sample; counts are stored every few seconds in ``benchmarks/headline.json`` (or
``--store``) and never repeated, so that a run can be stopped and taken up again. A cell is

- ``level``: calibrated samples of a law of confidences, of several classes or of detections; how often the headline
  rejects, and how often each sentence claims something, which is then false;
- ``power``: a law, a miscalibration and a number of rows; how often the decision rejects, and each single test alone
  (the statistics of the decision, ECE and Kuiper, all by redrawn labels);
- ``named``: real models: cross-validated forest and naive Bayes on scikit-learn's breast-cancer data.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrary as cal
from calibrary.base.errors import collected_warnings
from calibrary.evaluation import Row
from calibrary.inference import decide
from calibrary.inference.draw.look import look_at
from calibrary.reporting import words

STORE = Path(__file__).with_name("headline.json")
ALPHA = 0.05
ROW = Row(id="ece", name="expected calibration error", family="bin", value=0.1)

Draw = Callable[[int, np.random.Generator], np.ndarray]
LAWS: dict[str, Draw] = {
    "uniform": lambda n, rng: rng.random(n),
    "Beta(.8,.8)": lambda n, rng: rng.beta(0.8, 0.8, n),
    "Beta(.3,.3)": lambda n, rng: rng.beta(0.3, 0.3, n),
    "Beta(2,8)": lambda n, rng: rng.beta(2, 8, n),
    "Beta(8,.5)": lambda n, rng: rng.beta(8, 0.5, n),
}
#: Calibrated, and hard for a test: nearly always sure, or few different values.
HARD: dict[str, Draw] = {
    "Beta(30,1)": lambda n, rng: rng.beta(30, 1, n),
    "Beta(200,1)": lambda n, rng: rng.beta(200, 1, n),
    "tenths": lambda n, rng: rng.integers(1, 10, n) / 10,
}
WORLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "slope .7": lambda c: expit(0.7 * logit(c)),
    "slope 1.3": lambda c: expit(1.3 * logit(c)),
    "shift .2": lambda c: expit(logit(c) + 0.2),
    "shift -.3": lambda c: expit(logit(c) - 0.3),
    "wave": lambda c: np.clip(c + 0.08 * np.sin(4 * np.pi * c), 0, 1),
    "one bad region": lambda c: np.where((c > 0.6) & (c < 0.8), c - 0.12, c),
    "one bad half": lambda c: np.where(c > 0.5, expit(0.6 * logit(c)), c),
}
CLASSES = {"Dirichlet, 3 classes": 3, "Dirichlet, 10 classes": 10, "Dirichlet, 100 classes": 100}


def labels(rng: np.random.Generator, q: np.ndarray) -> np.ndarray:
    return (rng.random(len(q)) < q).astype(int)


def calibrated(name: str, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Calibrated data of a law, and the units of their rows."""
    if name in CLASSES:
        p = rng.dirichlet(np.ones(CLASSES[name]), n)
        return cal.predictions((p.cumsum(axis=1)[:, :-1] < rng.random(n)[:, None]).sum(axis=1), p), None
    if name.startswith("detections"):
        # the detections of an image share a luck: their outcomes go together, each right as often as it says
        image = np.repeat(np.arange(n // 5), 5)
        score = (HARD["Beta(30,1)"] if "sure" in name else LAWS["Beta(2,8)"])(len(image), rng)
        luck = rng.random(n // 5)[image]
        u = np.where(rng.random(len(image)) < 0.5, luck, rng.random(len(image)))
        return cal.matched_detections((u < score).astype(int), score, image=image), None
    if name == "units":
        unit = np.repeat(np.arange(n // 5), 5)
        c = np.clip(rng.beta(0.8, 0.8, n // 5)[unit] + 0.02 * rng.standard_normal(len(unit)), 0.01, 0.99)
        return cal.predictions((rng.random(n // 5)[unit] < c).astype(int), c), unit
    c = {**LAWS, **HARD}[name](n, rng)
    return cal.predictions(labels(rng, c), c), None


def level(name: str, n: int, rng: np.random.Generator) -> dict[str, int]:
    """What is claimed of calibrated data; each claim is false."""
    data, units = calibrated(name, n, rng)
    question = cal.Question(rng=int(rng.integers(2**31)))
    with collected_warnings():
        decision = decide(data, question, units=units, detectable=False)
        look = look_at(data.in_units(units), question)
        spread = words.spread_of(look, decision, ALPHA)
        found = {
            "headline": decision.rejected,
            "direction": words.direction(look, decision, ALPHA).clear,
            "spread": spread is not None and spread.clear,
            "where": bool(words.where(look, question, ALPHA)),
            "classes": any(line.claims for line in words.classes(look, ALPHA, decision)),
        }
    return {name: int(value) for name, value in found.items()}


def power(law: str, world: str, n: int, rng: np.random.Generator) -> dict[str, int]:
    """Who finds this miscalibration?"""
    c = LAWS[law](n, rng).clip(1e-6, 1 - 1e-6)
    y = labels(rng, WORLDS[world](c))
    seed = int(rng.integers(2**31))
    with collected_warnings():
        decision = decide(cal.predictions(y, c), cal.Question(rng=seed), detectable=False)
        alone = {row.id: row.pvalue for row in decision.rows}
        for id in ("ece", "ecce_r"):
            alone[id] = cal.test(id, y, c, method="monte-carlo", n_resamples=199, rng=seed).pvalue
    return {"decision": int(decision.rejected), **{id: int(p <= ALPHA) for id, p in alone.items()}}


def named(model: str, seed: int) -> dict[str, Any]:
    """The headline of a real model."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB

    x, y = load_breast_cancer(return_X_y=True)
    made = RandomForestClassifier(random_state=seed) if model == "forest" else GaussianNB()
    p = cross_val_predict(made, x, y, method="predict_proba", cv=5)[:, 1]
    answer = cal.report(y, p, metrics=["ece"], n_resamples=199, rng=seed)
    return {"rejected": answer.decision.rejected, "defect": answer.decision.defect, "headline": answer.headline}


def cells(only: str | None) -> list[tuple[str, ...]]:
    """The kind and the settings of every cell."""
    listed: list[tuple[str, ...]] = [("named", "forest", str(s)) for s in range(3)] + [("named", "naive Bayes", "0")]
    laws = [*LAWS, *HARD, *CLASSES, "detections", "detections, sure", "units"]
    listed += [("level", law, str(n)) for n in (300, 1000) for law in laws]
    listed += [("power", law, world, str(n)) for n in (1000, 300) for law in LAWS for world in WORLDS]
    return [cell for cell in listed if only in (None, cell[0])]


def simulate(cell: tuple[str, ...], done: dict[str, Any], samples: int, until: float) -> bool:
    """Bring a cell to so many samples; False if the time was over."""
    kind, *settings, n = cell
    while done["samples"] < samples:
        if time.monotonic() > until:
            return False
        seed = [zlib.crc32("/".join(cell).encode()), done["samples"]]
        rng = np.random.default_rng(seed)
        found = level(settings[0], int(n), rng) if kind == "level" else power(settings[0], settings[1], int(n), rng)
        for name, value in found.items():
            done[name] = done.get(name, 0) + value
        done["samples"] += 1
    return True


def run(args: argparse.Namespace) -> None:
    stored = json.loads(args.store.read_text()) if args.store.exists() else {"cells": {}}
    until = time.monotonic() + 60 * args.minutes
    part, parts = (int(x) for x in args.part.split("/"))
    listed = [cell for cell in cells(args.only) if args.cell in "/".join(cell)][part - 1 :: parts]
    for i, cell in enumerate(listed, 1):
        key = "/".join(cell)
        if cell[0] == "named":
            if key not in stored["cells"]:
                stored["cells"][key] = named(cell[1], int(cell[2]))
            whole = True
        else:
            done = stored["cells"].setdefault(key, {"samples": 0})
            whole = simulate(cell, done, args.samples, until)
            if not done["samples"]:
                del stored["cells"][key]
        stored["calibrary"] = cal.__version__
        stored["summary"] = summary(stored["cells"])
        args.store.write_text(json.dumps(stored, indent=1) + "\n")
        print(f"\r{i}/{len(listed)} {key:60}", end="", file=sys.stderr, flush=True)
        if not whole:
            break
    print(file=sys.stderr)


# -- what it says ----------------------------------------------------------------------------------


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """False alarms by law, power against the best single test, and the models by name."""
    said: dict[str, Any] = {}
    levels = {k: v for k, v in found.items() if k.startswith("level")}
    sentences = ("headline", "direction", "spread", "where", "classes")
    if levels:
        samples = sum(v["samples"] for v in levels.values())
        said["false on calibrated samples, all laws"] = {
            "samples": samples, **{s: round(sum(v[s] for v in levels.values()) / samples, 4) for s in sentences}
        }  # fmt: skip
        said["largest share in one cell"] = {
            s: max((round(v[s] / v["samples"], 4), k.removeprefix("level/"), v["samples"]) for k, v in levels.items())
            for s in sentences
        }
    for n in (300, 1000):
        worlds = [v for k, v in found.items() if k.startswith("power") and k.endswith(f"/{n}")]
        if not worlds:
            continue
        tests = [name for name in worlds[0] if name != "samples"]
        share = {t: np.array([v[t] / v["samples"] for v in worlds]) for t in tests}
        best = np.max([share[t] for t in tests if t != "decision"], axis=0)
        said[f"power, {n} rows"] = {
            "worlds": len(worlds), "samples in each, at least": min(v["samples"] for v in worlds),
            **{t: round(float(s.mean()), 3) for t, s in share.items()},
            "best single test": round(float(best.mean()), 3),
            "decision / best": round(float(share["decision"].mean() / best.mean()), 3),
            "worst loss": round(float((share["decision"] - best).min()), 3),
        }  # fmt: skip
    said["models"] = {k: v for k, v in found.items() if k.startswith("named")}
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100, help="samples in each cell")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long; a later run goes on")
    parser.add_argument("--part", default="1/1", help="i/n: every n-th cell")
    parser.add_argument("--only", choices=("level", "power", "named"))
    parser.add_argument("--cell", default="", help="only cells whose name holds this, such as uniform/300")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--show", action="store_true", help="print what is stored")
    args = parser.parse_args()
    if not args.show:
        run(args)
    print(json.dumps(summary(json.loads(args.store.read_text())["cells"]), indent=1))


if __name__ == "__main__":
    main()
