"""Is the advice of recalibration_gain right, what does it cost, and what does it say about real models?

    python benchmarks/recalibration.py                 calibrated and miscalibrated worlds, and the time
    python benchmarks/recalibration.py --real          36 prediction sets of nine classifiers
    python benchmarks/recalibration.py --classes       every map of several classes on 21 prediction sets
    python benchmarks/recalibration.py --sets 20       fewer simulated data sets

What was found is kept in recalibration.json beside this file. Limits: on calibrated data the advice is "nothing" in at
least 95%, and the table of five maps and ten folds at 10^5 rows takes no longer than 200 np.argsort of them.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrary as cal

RESULTS = Path(__file__).parent / "recalibration.json"
MOST_SORTS = 200
LEAST_NOTHING = 0.95
SEVERAL = (
    "temperature", "bias_temperature", "ensemble_temperature", "vector", "platt", "beta", "structured_matrix",
    "dirichlet", "matrix", "isotonic", "venn_abers",
)  # fmt: skip


# -- simulated worlds -----------------------------------------------------------------------------------


def uniform(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(0.8, 0.8, n)


def rare(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(1.0, 9.0, n)


def sure(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(8.0, 1.5, n)


def neighbors(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ten neighbors' votes, exact 0 and 1 among them."""
    return rng.binomial(10, rng.beta(0.7, 0.7, n)) / 10


WORLDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "Beta(.8, .8)": uniform, "Beta(1, 9)": rare, "Beta(8, 1.5)": sure, "tenths": neighbors,
}  # fmt: skip


def classes(rng: np.random.Generator, n: int, k: int = 4) -> np.ndarray:
    return rng.dirichlet(np.full(k, 0.5), n)


def simulated(sets: int) -> list[dict[str, Any]]:
    """How often the advice is "nothing", and the mean gain of every map."""
    found = []
    for name, world in WORLDS.items():
        for n in (300, 1000):
            for slope in (1.0, 0.6):
                if slope != 1.0 and name != "Beta(.8, .8)":
                    continue
                answers = [advice_in(world, n, slope, seed) for seed in range(sets)]
                found.append(row_of(name, n, slope, answers))
                print(line_of(found[-1]), flush=True)
    for n in (300, 1000):
        answers = [advice_on_classes(n, seed) for seed in range(max(sets // 4, 10))]
        found.append(row_of("4 classes", n, 1.0, answers))
        print(line_of(found[-1]), flush=True)
    return found


def advice_in(world: Callable[..., np.ndarray], n: int, slope: float, seed: int) -> cal.RecalibrationGain:
    rng = np.random.default_rng([seed, n])
    c = world(rng, n)
    truth = c if slope == 1.0 else expit(slope * logit(c))
    return cal.recalibration_gain((rng.random(n) < truth).astype(int), c, rng=seed)


def advice_on_classes(n: int, seed: int) -> cal.RecalibrationGain:
    rng = np.random.default_rng([seed, n])
    p = classes(rng, n)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return cal.recalibration_gain(y, p, rng=seed)


def row_of(world: str, n: int, slope: float, answers: list[cal.RecalibrationGain]) -> dict[str, Any]:
    gains = {row.map: [] for row in answers[0].rows}
    for answer in answers:
        for row in answer.rows:
            gains[row.map].append(row.gain)
    nothing = sum(answer.advice is None for answer in answers)
    mean = {word: float(np.mean(values)) for word, values in gains.items()}
    return {"world": world, "n": n, "slope": slope, "sets": len(answers), "nothing": nothing, "mean_gain": mean}


def line_of(row: dict[str, Any]) -> str:
    gains = ", ".join(f"{word} {gain:+.5f}" for word, gain in row["mean_gain"].items())
    world = f"{row['world']:13s} slope {row['slope']:.1f} N = {row['n']:5d}"
    return f"{world}: nothing in {row['nothing']} of {row['sets']}; {gains}"


# -- time -----------------------------------------------------------------------------------------------


def timed(n: int = 100_000, rounds: int = 5) -> dict[str, float]:
    """Processor seconds of the table and of one np.argsort, in turns so that both meet the same machine."""
    rng = np.random.default_rng(0)
    c = uniform(rng, n)
    y = (rng.random(n) < c).astype(int)
    cal.recalibration_gain(y[:2000], c[:2000])
    tables, sorts = [], []
    for _ in range(rounds):
        sorts.append(_seconds(lambda: [np.argsort(c) for _ in range(20)]) / 20)
        tables.append(_seconds(lambda: cal.recalibration_gain(y, c)))
    table, sort = float(np.median(tables)), float(np.median(sorts))
    return {"n": n, "table_seconds": table, "argsort_seconds": sort, "sorts": table / sort}


def _seconds(run: Callable[[], Any]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


# -- real models ----------------------------------------------------------------------------------------


def real() -> list[dict[str, Any]]:
    """Nine classifiers on four problems of scikit-learn's own data, each row predicted by a model of other rows."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    found = []
    for problem, (features, y) in problems().items():
        for name, model in models().items():
            split = StratifiedKFold(10, shuffle=True, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = cross_val_predict(model, features, y, cv=split, method="predict_proba")
            answer = cal.recalibration_gain(y, p / p.sum(axis=1, keepdims=True))
            chosen = answer.rows[0] if answer.advice is None else answer[answer.advice]
            found.append({
                "problem": problem, "model": name, "advice": answer.advice, "gain": chosen.gain, "se": chosen.se,
                "best": answer.best.map, "before": answer.before, "ece_before": answer.ece_before,
                "ece_after": None if answer.advice is None else chosen.ece,
                "ece_calibrated": chosen.ece_calibrated if answer.advice else answer.ece_calibrated,
                "impossible": answer.n_impossible,
                "isotonic_gain": answer["isotonic"].gain if "isotonic" not in answer.skipped else None,
                "best_parametric_gain": max(row.gain for row in answer.rows if row.map != "isotonic"),
            })  # fmt: skip
            print(f"{problem:16s} {name:20s} {answer.sentence}", flush=True)
    return found


def several() -> dict[str, dict[str, float]]:
    """Every map of several classes on iris, wine and digits, predicted by seven classifiers."""
    from sklearn.datasets import load_digits, load_iris, load_wine
    from sklearn.model_selection import cross_val_predict

    found: dict[str, list[tuple[float, float]]] = {word: [] for word in SEVERAL}
    for load in (load_iris, load_wine, load_digits):
        features, y = load(return_X_y=True)
        for name, model in models().items():
            if name in ("boosting", "network"):  # they take most of the time
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = cross_val_predict(model, features, y, cv=5, method="predict_proba")
            answer = cal.recalibration_gain(y, p / p.sum(axis=1, keepdims=True), maps=SEVERAL, folds=5)
            for row in answer.rows:
                found[row.map].append((row.gain, row.se))
            print(f"{load.__name__} {name}: {answer.sentence}", flush=True)
    return {word: summary_of_map(np.array(rows)) for word, rows in found.items()}


def summary_of_map(rows: np.ndarray) -> dict[str, float]:
    """Of one map: number of sets, sets with a gain or a loss beyond two standard errors, and the median gain."""
    gain, se = rows.T
    helped, harmed = int((gain > 2 * se).sum()), int((gain < -2 * se).sum())
    return {"sets": len(rows), "helped": helped, "harmed": harmed, "median_gain": float(np.median(gain))}


def problems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

    features, progress = load_diabetes(return_X_y=True)
    pixels, digit = load_digits(return_X_y=True)
    return {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "diabetes, above": (features, (progress > np.median(progress)).astype(int)),
        "digits, even": (pixels, (digit % 2 == 0).astype(int)),
        "digits": (pixels, digit),
    }


def models() -> dict[str, Any]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "linear discriminant": LinearDiscriminantAnalysis(),
        "quadratic discr.": QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
        "naive Bayes": GaussianNB(var_smoothing=1e-6),
        "10 neighbors": make_pipeline(StandardScaler(), KNeighborsClassifier(10)),
        "tree": DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
        "random forest": RandomForestClassifier(100, random_state=0),
        "boosting": HistGradientBoostingClassifier(max_iter=100, random_state=0),
        "network": make_pipeline(StandardScaler(), MLPClassifier((50,), max_iter=300, random_state=0)),
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """The table in words."""
    worth = [row for row in rows if row["advice"]]
    by_map = ", ".join(f"{word} {count}" for word, count in Counter(row["advice"] for row in worth).most_common())
    median = {k: float(np.median([row[k] for row in worth])) for k in ("ece_before", "ece_after", "ece_calibrated")}
    isotonic = [row for row in rows if row["isotonic_gain"] is not None]
    harmed = sum(row["isotonic_gain"] < 0 for row in isotonic)
    behind = sum(row["isotonic_gain"] < row["best_parametric_gain"] for row in isotonic)
    return (
        f"worth it in {len(worth)} of {len(rows)} ({by_map}); where it is, the median ECE goes from "
        f"{median['ece_before']:.3f} to {median['ece_after']:.3f}, and a calibrated model reads "
        f"{median['ece_calibrated']:.3f}. Isotonic regression does harm in {harmed} and is behind the best parametric "
        f"map in {behind}."
    )


def show(rows: list[dict[str, Any]]) -> None:
    head = f"{'gain':>8s} {'se':>7s} {'ECE':>6s} {'after':>6s} {'calibr.':>7s}"
    print(f"\n{'problem':16s} {'model':20s} {'advice':17s} {head}")
    for row in rows:
        after = f"{row['ece_after']:.3f}" if row["ece_after"] is not None else ""
        print(
            f"{row['problem']:16s} {row['model']:20s} {row['advice'] or 'nothing':17s} {row['gain']:8.4f} "
            f"{row['se']:7.4f} {row['ece_before']:6.3f} {after:>6s} {row['ece_calibrated']:7.3f}"
        )
    print("\n" + summary(rows))


def keep(**found: Any) -> None:
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept.update(found)
    kept["machine"] = {"python": platform.python_version(), "numpy": np.__version__, "processor": platform.machine()}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--real", action="store_true", help="nine classifiers on scikit-learn's data")
    ask.add_argument("--sets", type=int, default=200, help="simulated data sets per world")
    ask.add_argument("--classes", action="store_true", help="every map of several classes, on seven classifiers")
    asked = ask.parse_args()
    if asked.classes:
        keep(several=several())
        return 0
    if asked.real:
        rows = real()
        show(rows)
        keep(real=rows, real_summary=summary(rows))
        return 0
    speed = timed()
    print(
        f"table of five maps, ten folds, N = {speed['n']:,}: {speed['table_seconds']:.2f} s = {speed['sorts']:.0f} "
        f"np.argsort of {speed['argsort_seconds'] * 1e3:.1f} ms (limit {MOST_SORTS})"
    )
    worlds = simulated(asked.sets)
    calibrated = [row for row in worlds if row["slope"] == 1.0]
    share = sum(row["nothing"] for row in calibrated) / sum(row["sets"] for row in calibrated)
    least = min(row["nothing"] / row["sets"] for row in calibrated)
    print(f"calibrated: nothing in {share:.1%} of all sets, in the worst world {least:.1%} (limit {LEAST_NOTHING:.0%})")
    keep(speed=speed, simulated=worlds, nothing=share, nothing_least=least)
    return int(speed["sorts"] > MOST_SORTS or least < LEAST_NOTHING)


if __name__ == "__main__":
    sys.exit(main())
