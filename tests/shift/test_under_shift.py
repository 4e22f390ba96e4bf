"""A metric on a target without labels: weights, shares, the test of the assumption, intervals and refusals."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.special import expit, logit

import calibrary as cal
from calibrary.base.claims import RULES
from calibrary.base.numbers import pvalue
from calibrary.inference.draw.two_sets import TwoSets
from calibrary.inference.methods import triangle
from calibrary.shift.shares import DensityWeighting, LabelWeighting, folds, likelihood_shares, on_simplex
from calibrary.shift.target import _Distances, _noise_ratio
from paths import ROOT
from truths import KnownTruth, holds

sys.path.append(str(ROOT / "benchmarks"))

import open_shift

pytestmark = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
DRAWS = 99
UNWEIGHTED = next(e.id for e in cal.catalogue.values() if e.weights == "none" and e.data_type == "predictions")


def sets(seed=1, n=1200, share=0.2, **more):
    return open_shift.label_cell([0.5, 0.5], [1.0 - share, share], 2.0, rows=n, **more)["both"](
        np.random.default_rng(seed)
    )[:3]


@pytest.fixture(scope="module")
def found():
    y, p, target = sets()
    return cal.under_shift("ece", y, p, target, n_resamples=DRAWS, rng=0)


def test_the_value_is_the_metric_of_the_weighted_source(found):
    y, p, target = sets()
    of_class = found.shares / np.bincount(y) * len(y)
    for metric in ("ece", "bs", "ecce_mad"):
        again = cal.under_shift(metric, y, p, target, n_resamples=DRAWS, rng=0)
        assert again.value == pytest.approx(cal.compute(metric, y, p, sample_weight=of_class[y]), rel=1e-9)
        assert again.source == cal.compute(metric, y, p)
        assert again.low <= again.value <= again.high


def test_shares_solve_the_confusion_matrix_and_agree_with_the_likelihood(found):
    y, p, target = sets()
    positive, there = p > np.mean(y), target > np.mean(y)
    hit, false = positive[y == 1].mean(), positive[y == 0].mean()
    assert found.shares[1] == pytest.approx((there.mean() - false) / (hit - false))
    assert found.shares.sum() == pytest.approx(1.0)
    assert found.shares[1] == pytest.approx(0.2, abs=0.05)
    assert found.likelihood_shares[1] == pytest.approx(0.2, abs=0.04)
    assert found.effective_n == pytest.approx(found.weights.sum() ** 2 / (found.weights**2).sum())


def test_a_weight_of_two_is_the_row_written_twice():
    y, p, target = sets(n=500)
    w = np.random.default_rng(1).integers(1, 4, len(y))
    for more in ({}, {"assume": "covariate", "check": False}):
        weighted = cal.under_shift("ece", y, p, target, sample_weight=w, n_resamples=39, rng=0, **more)
        twice = cal.under_shift("ece", np.repeat(y, w), np.repeat(p, w), target, n_resamples=39, rng=0, **more)
        assert weighted.value == pytest.approx(twice.value, rel=1e-9)
        assert (weighted.low, weighted.high) == pytest.approx((twice.low, twice.high), rel=1e-6)
        assert weighted.assumption_pvalue == twice.assumption_pvalue
        assert weighted.effective_n == pytest.approx(twice.effective_n)


def test_the_order_of_the_rows_does_not_matter_to_the_values():
    y, p, target = sets(n=500)
    order = np.random.default_rng(2).permutation(len(y))
    for assume in ("label", "covariate"):
        a, b = (
            cal.under_shift("bs", y[i], p[i], target, assume=assume, n_resamples=39, rng=0, check=False)
            for i in (slice(None), order)
        )
        assert a.value == pytest.approx(b.value, rel=1e-9)
        assert a.distance == pytest.approx(b.distance, rel=1e-9)


def test_weights_are_those_of_copies_of_the_rows():
    y, p, target = sets(n=300)
    x, there = (np.column_stack([q, np.sin(9 * q)]) for q in (p, target))
    w = 1 + (3 * p).astype(int) + y
    again = np.repeat(np.arange(len(y)), w)
    one, two = cal.predictions(y, p, sample_weight=w), cal.predictions(y[again], p[again])
    both = np.column_stack([1 - target, target])
    rows_, copies = (LabelWeighting.of(data, both) for data in (one, two))
    assert rows_.estimated[0] == pytest.approx(copies.estimated[0])
    for of_row, of_copy in zip(*(each.at_limits(np.arange(2), 0.95) for each in (rows_, copies)), strict=True):
        assert (of_row / w)[again] == pytest.approx(of_copy)
    (chance, law), expected = rows_.calibrated_at_target(one.p), copies.calibrated_at_target(two.p)
    assert chance[again] == pytest.approx(expected[0])
    assert law == pytest.approx(expected[1])
    rows_, copies = DensityWeighting.of(one, x, there), DensityWeighting.of(two, x[again], there)
    assert (rows_.observed / w)[again] == pytest.approx(copies.observed)
    assert rows_.kinds == pytest.approx(copies.kinds)


def test_importance_weights_are_taken():
    y, p, target = sets(n=500)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    found = cal.under_shift("ece", y, p, target, sample_weight=w, weight_type="importance", n_resamples=39, rng=0)
    again = cal.under_shift("ece", y, p, target, sample_weight=7 * w, weight_type="importance", n_resamples=39, rng=0)
    assert (found.low, found.high, found.pvalue) == pytest.approx((again.low, again.high, again.pvalue))
    with pytest.raises(ValueError, match=r"whole numbers|counts"):
        cal.under_shift("ece", y, p, target, sample_weight=w, n_resamples=39, rng=0)


def test_the_null_is_calibration_at_the_target():
    y, p, target = sets()
    both = np.column_stack([1 - p, p])
    weighting = LabelWeighting.of(cal.predictions(y, p), np.column_stack([1 - target, target]))
    chance, law = weighting.calibrated_at_target(both)
    w = weighting.estimated[1]
    weighted = chance * w
    assert weighted / weighted.sum(axis=1, keepdims=True) == pytest.approx(both)  # the chance at the target is p
    rest = weighted.sum(axis=1)
    predicted = both[:, 1] > y.mean()
    assert law[1] == pytest.approx(rest[predicted].sum() / rest.sum())
    # rows and labels drawn so are calibrated at the target: their bias is 0 on average, and the source's is not
    scheme, rng = TwoSets(cal.predictions(y, p), weighting).null(chance, law), np.random.default_rng(0)
    gaps = []
    for _ in range(200):
        drawn = scheme.make(scheme.draw(rng)).weighted
        gaps.append(drawn.mean(drawn.y - drawn.c))
    assert abs(np.mean(gaps)) < 4.0 * np.std(gaps) / np.sqrt(len(gaps))
    assert 1.0 < np.std(gaps) / (0.3 / np.sqrt(len(y))) < 6.0


@pytest.mark.parametrize(("share", "steepness", "wider"), [(0.2, 1.0, True), (0.5, 3.0, False)])
def test_the_noise_of_a_calibrated_target_is_widened_to_that_of_the_data_and_never_narrowed(share, steepness, wider):
    y, p, target = sets(share=share)
    p, target = (expit(logit(x) / steepness) for x in (p, target))
    given = cal.predictions(y, p)
    weighting = LabelWeighting.of(given, np.column_stack([1 - target, target]))
    w = weighting.estimated[1]
    chance = p / w[1] / (p / w[1] + (1 - p) / w[0])  # of label 1 in the source, if the target is calibrated
    seen = np.mean((w[y] * (y - p)) ** 2)
    calibrated = np.mean(chance * (w[1] * (1 - p)) ** 2 + (1 - chance) * (w[0] * p) ** 2)
    assert (seen > calibrated) == wider
    found = _noise_ratio(TwoSets(given, weighting), weighting.observed, np.column_stack([1 - chance, chance]))
    assert found == pytest.approx(np.sqrt(seen / calibrated) if wider else 1.0)


def test_the_test_and_the_interval_agree():
    """The lower end leaves 0 exactly where calibration at the target is rejected."""
    rejected = 0
    for seed in range(12):
        y, p, target = open_shift.label_cell(np.full(4, 0.25), [0.55, 0.15, 0.15, 0.15], 2.5, rows=300)["both"](
            np.random.default_rng(seed)
        )[:3]
        found = cal.under_shift("ece", y, p, target, n_resamples=39, rng=0, check=False)
        assert (found.low > 0.0) == (found.pvalue <= 0.05)
        rejected += found.pvalue <= 0.05
    assert rejected <= 3  # the errors of the classes nearly cancel


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 40, 70) / 40.0, rng.integers(0, 40, 90) / 40.0
    pooled = np.concatenate([a, b])[:, None]
    first, second = np.repeat([1.0, 0.0], [70, 90]), np.repeat([0.0, 1.0], [70, 90])
    assert _Distances(pooled).largest(first, second) == pytest.approx(scipy.stats.ks_2samp(a, b).statistic)


def distance_by_hand(p, weights, target):
    """The largest difference of the two distribution functions, the source's weighted."""
    at = np.concatenate([p, target])[:, None]
    return np.abs((p <= at) @ weights / weights.sum() - (target <= at).mean(axis=1)).max()


def test_a_contradicted_assumption_is_refused_and_computed_on_request():
    y, p, target = sets(moved=1.0)
    with pytest.raises(ValueError, match=r"assumption of label shift .*check=False") as refused:
        cal.under_shift("ece", y, p, target, n_resamples=DRAWS, rng=0)
    found = cal.under_shift("ece", y, p, target, n_resamples=DRAWS, rng=0, check=False)
    assert np.isnan(found.corrected)
    shown = pickle.loads(pickle.dumps(refused.value)).result
    assert shown.sentence.startswith("The data contradict the assumption of label shift (Kolmogorov-Smirnov test, p ")
    assert "No estimate of the ECE at the target is given." in shown.sentence
    assert [value for _, value in shown.rows()][1:] == ["no estimate", pvalue(found.assumption_pvalue, DRAWS)]
    assert np.isnan([shown.value, shown.low, shown.high, shown.effective_n]).all()
    apart = distance_by_hand(p, found.weights, target)
    for assumed, wrong in ((False, apart), (True, apart), (False, apart + 0.01)):
        truth = replace(KnownTruth.about({"assumption holds": assumed}), measured={"distance": wrong})
        assert all(holds(each, truth) for each in shown.sentence.claims) == (not assumed and wrong == apart)
    assert found.assumption_pvalue <= 0.05
    assert "There is evidence against the assumption" in found.sentence
    claim = found.sentence.claims[-1]
    assert holds(claim, KnownTruth.about({"assumption holds": False}))
    assert not holds(claim, KnownTruth.about({"assumption holds": True}))


def test_sentences_claim_what_is_so(found):
    y, p, _ = sets()
    true = open_shift.CELLS["label 2 classes .50 to .20"]["truth"]("ece")
    told = {"source": cal.ece(y, p), "target": found.value, "n": len(y), "effective_n": found.effective_n}
    odds = p / (1.0 - p) * (found.shares[1] / found.shares[0]) * (1.0 - y.mean()) / y.mean()
    told["corrected"] = cal.ece(y, odds / (1.0 + odds), sample_weight=found.weights)
    assert told["corrected"] < 0.5 * found.value
    truth = KnownTruth(p, p, of_metric={"true values": {"ece": true}}, measured=told)
    assert {claim.rule for claim in found.sentence.claims} == {"interval", "measured"}
    assert all(holds(claim, truth) for claim in found.sentence.claims)
    assert RULES["assumption fails"].kind == "evidence"
    assert "20" in found.sentence
    assert "effective sample size" in found.sentence
    again = pickle.loads(pickle.dumps(found))
    assert again.sentence == found.sentence
    assert json.dumps(found.to_dict())
    assert "<table" in found._repr_html_()


def test_several_classes_and_tables_with_columns_in_another_order():
    y, p, target = open_shift.label_cell(np.full(3, 1 / 3), [0.6, 0.2, 0.2], 2.5, rows=900)["both"](
        np.random.default_rng(0)
    )[:3]
    found = cal.under_shift("ece", y, p, target, n_resamples=39, rng=0, lens="class-wise")
    assert found.shares == pytest.approx([0.6, 0.2, 0.2], abs=0.08)
    names = np.array(["cat", "dog", "elk"])
    frame, other = pd.DataFrame(p, columns=names), pd.DataFrame(target, columns=names)[["elk", "cat", "dog"]]
    again = cal.under_shift("ece", names[y], frame, other, n_resamples=39, rng=0, lens="class-wise")
    assert again.value == pytest.approx(found.value)
    with pytest.raises(ValueError, match="same classes"):
        cal.under_shift("ece", names[y], frame, other.rename(columns={"elk": "owl"}), n_resamples=39)


# -- covariate shift ---------------------------------------------------------------------------------------


def test_covariate_weights_are_the_ratio_of_the_densities():
    rng = np.random.default_rng(0)
    y, p, target, more = open_shift.covariate_cell(rows=4000)["both"](rng)
    found = cal.under_shift("bs", y, p, target, assume="covariate", n_resamples=39, rng=0, **more)
    x = more["features"]
    ratio = np.exp(0.7 * x[:, 0])
    assert np.corrcoef(np.log(found.weights), np.log(ratio))[0, 1] > 0.99
    assert found.weights.sum() == pytest.approx(len(y))
    assert found.value == pytest.approx(cal.compute("bs", y, p, sample_weight=found.weights))
    assert "cannot be tested" in found.sentence
    alone = cal.under_shift("bs", y, p, target, assume="covariate", n_resamples=39, rng=0, check=False)
    assert "no features were given" in alone.sentence


def test_one_newton_step_is_near_the_regression_fitted_again():
    rng = np.random.default_rng(3)
    y, p, _, more = open_shift.covariate_cell(rows=1000)["both"](rng)
    data = cal.predictions(y, p)
    weighting = DensityWeighting.of(data, more["features"], more["target_features"])
    row, drawn = rng.integers(0, 1000, 1000), rng.integers(0, 1000, 1000)
    quick = weighting.weights(row, y[row], np.bincount(drawn, minlength=1000) @ weighting.kinds)
    again = DensityWeighting(weighting.x[row], weighting.fold[row], weighting.target[drawn])
    assert np.corrcoef(quick, again.observed)[0, 1] > 0.995
    same = weighting.weights(np.arange(1000), y, weighting.kinds.sum(axis=0))
    assert same == pytest.approx(weighting.observed, rel=1e-6)


def test_copies_are_in_one_fold():
    rows = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    assert folds(rows)[0] == folds(rows)[2]
    assert folds(rows)[[3, 2, 1, 0]].tolist() == folds(rows[::-1]).tolist()


# -- refusals ----------------------------------------------------------------------------------------------


def test_bad_input_is_one_sentence():
    y, p, target = sets(n=300)
    rng = np.random.default_rng(0)
    three = rng.dirichlet(np.ones(3), 300)
    for said, call in {
        "target_prob has 3 classes and y_prob has 2": lambda: cal.under_shift("ece", y, p, three),
        "singular": lambda: cal.under_shift("ece", y, np.full(300, 0.7), np.full(50, 0.7)),
        "confusion matrix": lambda: cal.under_shift("ece", y, rng.random(300), target),
        "never occurs in y_true": lambda: cal.under_shift("ece", np.zeros(300, int), p, target),
        "target_prob is missing": lambda: cal.under_shift("ece", y, p),
        "assume='prior'": lambda: cal.under_shift("ece", y, p, target, assume="prior"),
        "features are for": lambda: cal.under_shift("ece", y, p, target, features=p, target_features=target),
        "must be passed together": lambda: cal.under_shift("ece", y, p, target, assume="covariate", features=p),
        "target_features has the shape": lambda: cal.under_shift(
            "ece", y, p, target, assume="covariate", features=p, target_features=target[:-1]
        ),
        "effective sample size": lambda: cal.under_shift(
            "ece", y, p, target, assume="covariate", features=rng.normal(size=300),
            target_features=rng.normal(size=len(target)) + 9.0,
        ),
        "one value": lambda: cal.under_shift("cis", y, p, target),
        "single rows": lambda: cal.under_shift("ece", y * 0.5 + 0.25, p, target),
        "does not take sample_weight": lambda: cal.under_shift(UNWEIGHTED, y, p, target),
    }.items():  # fmt: skip
        with pytest.raises((ValueError, KeyError), match=said):
            call()


def test_a_function_of_the_user_s():
    y, p, target = sets(n=400)

    def squared(y, p, sample_weight=None):
        return float(np.average((y - p) ** 2, weights=sample_weight))

    found = cal.under_shift(squared, y, p, target, n_resamples=39, rng=0)
    assert found.value == pytest.approx(cal.under_shift("bs", y, p, target, n_resamples=39, rng=0).value)


def test_the_simplex_and_the_likelihood():
    assert on_simplex(np.array([1.2, -0.2])).tolist() == [1.0, 0.0]
    assert on_simplex(np.array([0.5, 0.7, -0.2])) == pytest.approx([0.4, 0.6, 0.0])
    assert on_simplex(np.array([0.3, 0.7])).tolist() == [0.3, 0.7]
    p = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    assert likelihood_shares(p, np.array([0.5, 0.5])) == pytest.approx([0.25, 0.75])


# -- the study in small ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["label 2 classes .50 to .20", "label 4 classes calibrated there", "covariate"])
def test_level_and_coverage_on_worlds_of_known_truth(name):
    kept = {}
    open_shift.round_of(name, open_shift.CELLS[name], kept, 7, size=16, draws=59)
    for kind, of in kept.items():
        if kind.startswith(("level", "coverage")):
            assert of["verdict"] == "ok", (kind, of)


def test_a_violated_assumption_is_found():
    kept = {}
    name = "violated label, class 0 moved by .6"
    open_shift.round_of(name, open_shift.CELLS[name], kept, 7, size=6, draws=59)
    assert kept["power"]["share"] >= 0.8


def test_the_stored_study_holds_its_bars():
    stored = json.loads((ROOT / "benchmarks" / "open_shift.json").read_text())
    judged = {
        (name, kind): of["verdict"]
        for name, kept in stored.items()
        for kind, of in kept.items()
        if isinstance(of, dict) and "verdict" in of
    }
    assert set(stored) <= {*open_shift.CELLS, *open_shift.TRENDS}
    assert len(judged) >= 20
    assert [key for key, verdict in judged.items() if verdict == "misses"] == []


@pytest.mark.parametrize(("metric", "times"), [("ece", 2.0), ("ce2_db", 4.0)])
def test_noise_that_is_twice_as_wide_is_four_times_as_large_for_a_square(metric, times, monkeypatch):
    y, p, target = sets()
    seen, ends = [], triangle.triangle_ends

    def taken(statistic, value, noise, *rest):
        seen.append(noise.values)
        return ends(statistic, value, noise, *rest)

    monkeypatch.setattr(triangle, "triangle_ends", taken)
    for ratio in (1.0, 2.0):
        monkeypatch.setattr("calibrary.shift.target._noise_ratio", lambda *_, ratio=ratio: ratio)
        cal.under_shift(metric, y, p, target, n_resamples=DRAWS, rng=0)
    np.testing.assert_allclose(seen[1], times * seen[0], rtol=1e-12)
