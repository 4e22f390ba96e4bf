"""Objects that people keep in pickles: how each is made from forty rows, and what is read from it.

``python tests/pickled.py FOLDER``, with the previous version on the path, writes the pickles and what was read from
them.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import calibrary as cal
from calibrary.scale import State

N = 40
_rng = np.random.default_rng(0)
C = np.round(_rng.beta(0.8, 0.8, N), 2)
Y = (_rng.random(N) < 0.15 + 0.7 * C).astype(int)
P = _rng.dirichlet(np.ones(3), N)
K = np.array([_rng.choice(3, p=row) for row in P])
GROUPS = np.arange(N) % 3
FEW = {"n_resamples": 19, "rng": 0}

MADE = {
    "predictions": lambda: cal.predictions(Y, C),
    "predictions_classes": lambda: cal.predictions(K, P),
    "matches": lambda: cal.matched_detections(
        _rng.random(N) < C, C, iou=_rng.uniform(0.5, 1, N), category=GROUPS % 2, image=np.arange(N) // 4, n_missed=3
    ),
    "interval": lambda: cal.interval("ece", Y, C, **FEW),
    "interval_bootstrap": lambda: cal.interval("bs", Y, C, method="basic", **FEW),
    "method_inversion": cal.Inversion,
    "method_bootstrap": cal.Bootstrap,
    "method_triangle": cal.Triangle,
    "method_monte_carlo": cal.MonteCarlo,
    "test": lambda: cal.test("ece", Y, C, **FEW),
    "test_hosmer_lemeshow": lambda: cal.test("hl", Y, C, method="asymptotic"),
    "test_kuiper": lambda: cal.test("ecce_r", Y, C, method="asymptotic"),
    "test_segments": lambda: cal.test("multicalibration_error", Y, C, by=GROUPS, **FEW),
    "e_value": lambda: cal.test("calibration_e_value", Y, C),
    "cox": lambda: cal.compute("cox", Y, C),
    "comparison": lambda: cal.compare("bs", Y, C, 0.8 * C + 0.1, **FEW),
    "null_distribution": lambda: cal.expected_by_chance("ece", Y, C, **FEW).null,
    "reading_band": lambda: cal.expected_by_chance("ece", Y, C, method="consistency", alternative="two-sided", **FEW),
    "power": lambda: cal.power("spiegelhalter", 40, error=0.1, **FEW),
    "verdict": lambda: cal.verdict("ece < 0.2", Y, C, **FEW),
    "decision": lambda: cal.inference.decide(cal.predictions(Y, C), cal.Question(n_resamples=99, rng=0)),
    "evaluation": lambda: cal.evaluate(Y, C),
    "parts": lambda: cal.compute("bs", Y, C, by=GROUPS, average=None),
    "reliability_bins": lambda: cal.reliability_bins(Y, C, n_bins=5),
    "cumulative_difference": lambda: cal.cumulative_difference(Y, C),
    "decomposition": lambda: cal.score_decomposition(Y, C),
    "neighbor_curve": lambda: cal.ece_knn_curve(Y, C),
    "murphy_curve": lambda: cal.murphy_curve(Y, C),
    "honest_band": lambda: cal.honest_band(Y, C),
    "coverage_curve": lambda: cal.set_coverage_curve(K, P),
    "recalibrator": lambda: cal.Recalibrator("platt").fit(C, Y),
    "recalibration_gain": lambda: cal.recalibration_gain(Y, C, rng=0),
    "recommendations": cal.recommend,
    "correction": lambda: cal.catalogue["ece"].corrections[0],
    "monitor": cal.CalibrationMonitor,
    "state": lambda: State().update(Y, C),
    # since 0.3
    "judged": lambda: cal.judged("bs", np.where(GROUPS < 2, Y, np.nan), C, judge=(C > 0.4).astype(int), **FEW),
    "sampled": lambda: cal.sampled_answers(
        [list("aab"), list("abc"), list("aaa")] * 4, list("aca") * 4, n_bins=2, **FEW
    ),
    "under_shift": lambda: cal.under_shift("bs", Y, C, C**0.9, **FEW),
    "shift_curve": lambda: cal.shift_curve("bs", Y, C, GROUPS, n_resamples=59, rng=0),
    "ensemble": lambda: cal.ensemble(Y, np.stack([C, C**1.2, C**0.8]).T, **FEW),
    "outside": lambda: cal.outside_rows(
        [None if g == 2 else int(y) for g, y in zip(GROUPS, Y, strict=True)], C, outside=GROUPS == 2, **FEW
    ),
    "validation": lambda: cal.validate(
        LogisticRegression(),
        np.c_[C, GROUPS],
        Y,
        metrics=["bs"],
        method="cv",
        folds=4,
        repeats=1,
        rng=0,
    ),
    "sample_size": lambda: cal.sample_size("spiegelhalter", 0.2, n_resamples=99),
    "decision_curve": lambda: cal.decision_curve(Y, C),
    "honest_error": lambda: cal.honest_error(Y, C),
    "detection_thresholds": lambda: cal.detection_thresholds(
        cal.matched_detections(Y, C, iou=0.5 + C / 2, category=GROUPS % 2, image=np.arange(N) // 4, n_missed=3)
    ),
    "confidence_direction": lambda: cal.confidence_direction(K, P),
}

#: What is read from an object that is no record of named values.
READ = {
    "predictions": lambda it: cal.brier_score(it),
    "predictions_classes": lambda it: cal.brier_score(it),
    "matches": lambda it: cal.compute("laece", it),
    "evaluation": lambda it: [[row.id, row.value] for row in it],
    "reading_band": lambda it: {"inside": it.inside, "excess": it.excess, **_plain(it)},
    "recalibrator": lambda it: it.transform(C),
    "recommendations": lambda it: [one.id for one in it],
    "monitor": lambda it: it.update(Y, C),
    "state": lambda it: cal.brier_score(it),
}


def told(name: str, thing: object) -> object:
    """What an object says, as JSON would keep it."""
    return json.loads(json.dumps(_plain(READ[name](thing) if name in READ else thing)))


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return fields | {old: _plain(getattr(value, old)) for old in getattr(value, "_renamed", dict)()}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    return value if value is None or isinstance(value, str | bool | int | float) else type(value).__name__


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    said = {}
    for name, make in MADE.items():
        data = pickle.dumps(make(), protocol=4)
        (folder / f"{name}.pkl").write_bytes(data)
        said[name] = told(name, pickle.loads(data))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in said.items())
    (folder / "told.json").write_text("{\n" + lines + "\n}\n")
