"""Validation over completed data sets: each is validated by itself, and corrected values are pooled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import calibrary as cal
from calibrary import RefusedError

pd = pytest.importorskip("pandas")
linear = pytest.importorskip("sklearn.linear_model")

RNG = np.random.default_rng(67)
N, M = 240, 4
KNOWN = RNG.normal(size=N)
OUTCOME = (RNG.random(N) < 1 / (1 + np.exp(-0.9 * KNOWN))).astype(int)
#: The second predictor is missing in a third of the rows, and drawn anew in each data set.
SECOND = 0.5 * KNOWN + RNG.normal(size=N)
GONE = RNG.random(N) < 0.33
TABLES = [pd.DataFrame({"a": KNOWN, "b": np.where(GONE, 0.5 * KNOWN + RNG.normal(size=N), SECOND)}) for _ in range(M)]
STACKED, Y, IDS = pd.concat(TABLES, ignore_index=True), np.tile(OUTCOME, M), np.repeat(np.arange(M) + 1, N)
FAST = {"metrics": ["calibration slope", "oe", "auroc", "bs"], "n_resamples": 30, "rng": 5}
MODEL = linear.LogisticRegression(C=np.inf)


@pytest.fixture(scope="module")
def found():
    return cal.validate(MODEL, STACKED, Y, imputations=IDS, **FAST)


@pytest.fixture(scope="module")
def each():
    return [cal.validate(MODEL, table, OUTCOME, **FAST) for table in TABLES]


def logit(x):
    return np.log(x / (1 - x))


SCALES = {"oe": (np.log, np.exp), "auroc": (logit, lambda x: 1 / (1 + np.exp(-x)))}


@pytest.mark.parametrize("metric", FAST["metrics"])
def test_corrected_values_are_pooled_by_rubins_rules(found, each, metric):
    to, back = SCALES.get(metric, (lambda x: x, lambda x: x))
    q, low, high = (to(np.array([getattr(one[metric], c) for one in each])) for c in ("value", "low", "high"))
    row = found[metric]
    assert row.value == pytest.approx(back(q.mean()), rel=1e-12)
    assert row.apparent == pytest.approx(back(to(np.array([one[metric].apparent for one in each])).mean()), rel=1e-12)
    assert row.optimism == pytest.approx(row.apparent - row.value, abs=1e-15)
    between = q.var(ddof=1) * (1 + 1 / M)
    for end, sign, shown in ((low, -1, row.low), (high, 1, row.high)):
        total = np.mean(((end - q) / stats.norm.ppf(0.975)) ** 2) + between
        share = between / total
        old, data = (M - 1) / share**2, N / (N + 2) * (N - 1) * (1 - share)
        df = old * data / (old + data)
        assert shown == pytest.approx(back(q.mean() + sign * stats.t.ppf(0.975, df) * np.sqrt(total)), rel=1e-9)


def test_lists_and_columns_of_numbers_give_the_same():
    few = {**FAST, "n_resamples": 5}
    found = cal.validate(MODEL, STACKED, Y, imputations=IDS, **few)
    listed = cal.validate(MODEL, TABLES, OUTCOME, imputations=True, **few)
    assert [row.value for row in listed] == [row.value for row in found]
    assert [row.low for row in listed] == [row.low for row in found]
    order = np.argsort(np.tile(np.arange(N), M), kind="stable")  # the data sets row by row, interleaved
    mixed = cal.validate(MODEL, STACKED.iloc[order], Y[order], imputations=IDS[order], **few)
    assert [row.value for row in mixed] == pytest.approx([row.value for row in found], rel=1e-12)


def test_curve_and_instability_are_those_of_all_data_sets(found, each):
    curve = found.curve
    lines = np.array([np.interp(curve.grid, one.curve.grid, one.curve.corrected) for one in each])
    np.testing.assert_allclose(logit(curve.corrected), logit(np.clip(lines, 1e-6, 1 - 1e-6)).mean(axis=0), rtol=1e-9)
    assert curve.refits.shape == (4 * 30, len(curve.grid))
    assert found.instability.overall == pytest.approx(np.mean([one.instability.overall for one in each]))
    assert len(found.instability.apparent) == N * M


def test_what_was_done_is_said_and_saved(found, tmp_path):
    assert (found.n, found.imputations, found.n_refits) == (N, M, 30 * M)
    assert "within each of 4 completed data sets" in found.sentence
    assert any("not near normal" in note for note in found.notes)
    assert found.tripod()["11"].startswith("4 completed data sets. Optimism was corrected within each")
    found.save(tmp_path / "found.json")
    again = cal.Validation.load(tmp_path / "found.json")
    assert (again.imputations, again.sentence) == (M, found.sentence)
    assert "completed data sets" in cal.validation_page(again)


def test_the_default_leaves_out_what_cannot_be_pooled():
    table = cal.validate(MODEL, STACKED, Y, imputations=IDS, n_resamples=5, repeats=1, folds=3, rng=0).table
    assert [row.metric for row in table] == [
        "calibration slope", "calibration intercept", "oe", "bs", "scaled Brier score", "auroc", "nll",
        "emax_logistic",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "used"), [("cv", {"folds": 4, "repeats": 1}), ("632", {"n_resamples": 10}), ("holdout", {})]
)
def test_every_method_takes_imputations_with_units_and_weights(method, used):
    names = {"metrics": ["bs", "auroc"], "method": method, "rng": 3, **used}
    columns = {"units": np.tile(np.arange(N) // 2, M), "sample_weight": np.ones(N * M)}
    found = cal.validate(MODEL, STACKED, Y, imputations=IDS, **names, **columns)
    one = [
        cal.validate(MODEL, t, OUTCOME, units=np.arange(N) // 2, sample_weight=np.ones(N), **names)["bs"].value
        for t in TABLES
    ]
    assert found["bs"].value == pytest.approx(np.mean(one), rel=1e-12)
    assert np.isfinite(found["bs"].low) == (method == "holdout")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"imputations": np.ones(N * M)}, "imputations: there is 1 data set, of 960 rows"),
        ({"imputations": IDS[:9]}, r"imputations has shape \(9,\) and X has 960 rows"),
        ({"imputations": np.where(np.arange(N * M) == 7, 2, IDS)}, "the data sets have 239, 241, 240, 240 rows"),
        ({"imputations": [None, *IDS[1:]]}, r"imputations\[0\] is missing"),
        ({"imputations": True}, "imputations=True needs X as a list"),
        ({"imputations": IDS, "metrics": ["ece"]}, "ece cannot be averaged over imputations: .* use 'bs'"),
        ({"imputations": IDS, "units": np.arange(9)}, "units has 9 rows and X has 960"),
    ],
)
def test_what_cannot_be_pooled_is_refused(call, sentence):
    with pytest.raises(RefusedError, match=sentence):
        cal.validate(MODEL, STACKED, Y, **FAST | call)


def test_a_corrected_value_without_a_logarithm_is_refused():
    """Perfectly separated rows: the AUROC of a data set is 1."""
    x = pd.DataFrame({"a": np.tile(np.where(OUTCOME == 1, 1.0, -1.0) * (1 + np.abs(KNOWN)), 2)})
    with pytest.raises(RefusedError, match="imputations: auroc cannot be pooled, because in data set 1 of 2 its corr"):
        cal.validate(
            linear.LogisticRegression(), x, np.tile(OUTCOME, 2), imputations=np.repeat([1, 2], N), metrics=["auroc"],
            n_resamples=5, rng=0,
        )  # fmt: skip
