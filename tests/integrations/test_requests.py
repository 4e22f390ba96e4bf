"""Twenty requests from the public trackers of other packages, each with the call that answers it."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

Y, P, _ = cal.datasets.breast_cancer()
MANY_Y, MANY_P, _ = cal.datasets.digits()
RNG = np.random.default_rng(0)
CENTRE = RNG.integers(0, 8, len(Y))


def folds():
    X, y = load_breast_cancer(return_X_y=True)
    found = cross_validate(LogisticRegression(max_iter=9999), X, y, return_estimator=True, return_indices=True)
    return len(cal.CalibrationDisplay.from_cv_results(found, X, y).folds)


def saved(tmp_path):
    cal.Recalibrator("platt").fit(P[::2], Y[::2]).save(tmp_path / "map.json")
    return cal.Recalibrator.load(tmp_path / "map.json").transform(P[1::2])


def judged():
    verdicts = RNG.integers(0, 2, 400).astype(float)
    human = np.where(np.arange(400) < 60, verdicts, np.nan)
    return cal.judged("sr", human, RNG.random(400), judge=verdicts)


def refusal(call):
    with pytest.raises(cal.RefusedError) as caught:
        call()
    return str(caught.value)


#: Tracker and thread, what is asked, the call, and what its result must satisfy.
REQUESTS = [
    (
        "scikit-learn 33658",
        "automatic number of bins",
        lambda _: cal.calibration_curve(Y, P, n_bins="auto"),
        lambda r: 2 <= len(r[0]) <= 15,
    ),
    (
        "scikit-learn 13086",
        "own edges",
        lambda _: cal.ece(Y, P, binning=[0, 0.1, 0.5, 1]),
        lambda r: r == cal.ece(Y, P, edges=[0, 0.1, 0.5, 1]),
    ),
    (
        "scikit-learn 11352",
        "weights in the curve",
        lambda _: cal.calibration_curve(Y, P, sample_weight=np.arange(len(Y)) % 3),
        lambda r: len(r[0]) > 1,
    ),
    ("skore 2935", "curves of cross-validation folds", lambda _: folds(), lambda r: r == 5),
    (
        "skore 2940",
        "histogram on the axis",
        lambda _: cal.plots.ReliabilityDisplay.from_predictions(Y, P, histogram="panel", interval=False),
        lambda r: r.ax_.child_axes,
    ),
    (
        "wandb 2791",
        "curves of several classes",
        lambda _: cal.reliability_bins(MANY_Y, MANY_P, lens="class-wise"),
        lambda r: len(r) == 10,
    ),
    ("uqlm 30", "calibrate scores and keep the map", saved, lambda r: r.shape == P[1::2].shape),
    (
        "MAPIE 870",
        "p0 and p1 of Venn-Abers",
        lambda _: cal.Recalibrator("venn_abers").fit(MANY_P[::2], MANY_Y[::2]).bounds(MANY_P[1::2]),
        lambda r: r.p0.shape == (898, 10) and (r.p0 < r.p1).all(),
    ),
    (
        "venn-abers 15",
        "several classes, fitted before",
        lambda _: cal.Recalibrator("venn_abers").fit(MANY_P[::2], MANY_Y[::2]).transform(MANY_P[1::2]),
        lambda r: np.allclose(r.sum(axis=1), 1),
    ),
    (
        "calibration-framework 12",
        "vector and matrix scaling",
        lambda _: [cal.Recalibrator(m).fit(MANY_P, MANY_Y).map_ for m in ("vector scaling", "matrix scaling")],
        lambda r: r == ["vector", "matrix"],
    ),
    ("torchmetrics 974", "logits", lambda _: refusal(lambda: cal.ece(Y, 9 * P - 4)), lambda r: "sigmoid" in r),
    (
        "nannyml 346",
        "text labels",
        lambda _: cal.bs(np.where(Y, "b", "a"), P, labels=["a", "b"]),
        lambda r: r == cal.bs(Y, P),
    ),
    (
        "CalibrationCurves 22",
        "curves over centres",
        lambda _: cal.pooled(Y, P, centre=CENTRE),
        lambda r: "new centre" in str(r),
    ),
    (
        "CalibrationCurves 7",
        "large data",
        lambda _: cal.interval("cis.slope", np.tile(Y, 200), np.tile(P, 200)),
        lambda r: r.low < r.high,
    ),
    (
        "CalibrationCurves 3",
        "two intercepts",
        lambda _: [cal.compute(m, Y, P) for m in ("cis.intercept", "calibration-in-the-large")],
        lambda r: r[0] != r[1],
    ),
    (
        "rms 101",
        "after multiple imputation",
        lambda _: cal.interval("bs", np.tile(Y, 3), np.tile(P, 3), imputations=np.repeat([0, 1, 2], len(Y))),
        lambda r: r.low < r.high,
    ),
    (
        "probably 159",
        "weights in recalibration",
        lambda _: cal.Recalibrator("platt").fit(P, Y, sample_weight=1 + np.arange(len(Y)) % 3).transform(P),
        lambda r: not np.array_equal(r, cal.Recalibrator("platt").fit(P, Y).transform(P)),
    ),
    (
        "dcurves 34",
        "competing risks",
        lambda _: cal.horizon([1, 2, 3, 4, 5], [1, 2, 0, 1, 0], 4.5, cause=1),
        lambda r: r is not None,
    ),
    (
        "sparq 2851",
        "no answer from too few rows",
        lambda _: cal.verdict("ece<0.05", Y[:40], P[:40] * 0 + Y[:40].mean()),
        lambda r: "undecided" in str(r),
    ),
    ("inspect_ai 3236", "a judge and few human labels", lambda _: judged(), lambda r: r.low < r.high),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("thread", "asks", "call", "holds"), REQUESTS, ids=[row[0] for row in REQUESTS])
def test_the_request_is_answered(thread, asks, call, holds, tmp_path):
    found = call(tmp_path)
    assert holds(found), f"{thread} asks for {asks}: {found}"
