"""Score decompositions: golden values, exact sums, oracles, and the isotonic map behind CORP."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrary as cal
import definitions
from calibrary.maps.isotonic import Isotonic, pooled_frequencies
from calibrary.metrics.point.scoring_functions import ProperScore
from golden import arrays, number, parts, weights_of

METHODS = {
    "decomposition_unique": "unique",
    "decomposition_bins": "bins",
    "decomposition_corp": "isotonic",
    "decomposition_epistemic": "true",
}
GOLDEN = [entry for id in METHODS for entry in parts("point", id)]
SCORES = ("brier", "log", "spherical", "power", "rps")


def _options(entry, n, p):
    options = dict(entry["params"], method=METHODS[entry["id"]], lens=entry["lens"])
    if "sample_weight" in options:
        options["sample_weight"] = weights_of(options["sample_weight"], n)
    if "true_prob" in options:
        options["true_prob"] = expit(options["true_prob"]["slope"] * logit(p) + options["true_prob"]["shift"])
    if options["method"] == "bins":
        options["closed"] = "left"  # binary12 holds 0.9, an edge; the golden value has it in the upper bin
    return options


@pytest.mark.parametrize("entry", GOLDEN, ids=lambda e: f"{e['id']}-{e['data']}"[:60])
def test_golden(entry):
    y, p, _ = arrays(entry["data"])
    got = cal.score_decomposition(y, p, **_options(entry, len(y), p))
    assert set(got._fields) == set(entry["value"])
    for name, value in entry["value"].items():
        assert getattr(got, name) == pytest.approx(number(value), rel=1e-9, abs=1e-12)


def tied(n=300, seed=0, levels=12):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(n) * levels) / levels
    y = (rng.random(n) < 0.2 + 0.6 * c**2).astype(int)
    return y, c, 1.0 + np.arange(n) % 4


def rounded(n=200, k=3, seed=1):
    rng = np.random.default_rng(seed)
    raw = rng.integers(1, 4, (n, k)).astype(float)
    p = raw / raw.sum(1, keepdims=True)
    return np.array([rng.choice(k, p=row) for row in p]), p, 1.0 + np.arange(n) % 4


def expected(parts):
    """The score that the terms of a decomposition add up to."""
    if hasattr(parts, "miscalibration"):
        return parts.miscalibration - parts.discrimination + parts.uncertainty
    within = parts.within_variance - parts.within_covariance if hasattr(parts, "within_variance") else 0.0
    return parts.reliability - parts.resolution + parts.uncertainty + within


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("method", ["isotonic", "unique"])
def test_terms_add_up_to_the_score_and_are_not_negative(method, score):
    for y, p, w in (tied(), rounded()):
        got = cal.score_decomposition(y, p, method=method, score=score, sample_weight=w)
        assert expected(got) == pytest.approx(got.score, rel=1e-12)
        assert min(got[1:3]) >= 0


def test_the_score_of_a_decomposition_is_the_metric():
    y, p, w = rounded()
    options = {"sample_weight": w, "method": "unique"}
    for scale in ("1/K", "sum", "half"):
        got = cal.score_decomposition(y, p, scale=scale, **options)
        assert got.score == pytest.approx(cal.brier_score(y, p, scale=scale, sample_weight=w))
    for score, value in (
        ("log", cal.negative_log_likelihood(y, p, sample_weight=w)),
        ("spherical", 1 - cal.pseudo_spherical_score(y, p, alpha=3, sample_weight=w)),
        ("power", cal.power_score(y, p, alpha=3, sample_weight=w)),
        ("rps", cal.ranked_probability_score(y, p, normalize=False, sample_weight=w)),
    ):
        assert cal.score_decomposition(y, p, score=score, alpha=3, **options).score == pytest.approx(value)
    y, c, w = tied()
    for method in ("isotonic", "unique", "bins"):
        got = cal.score_decomposition(y, c, method=method, sample_weight=w)
        assert got.score == pytest.approx(cal.brier_score(y, c, sample_weight=w))
    classes = cal.score_decomposition(*rounded()[:2], score="log")
    assert classes.score == pytest.approx(cal.negative_log_likelihood(*rounded()[:2], lens="class-wise"))


@pytest.mark.parametrize("method", ["isotonic", "unique", "bins", "true"])
def test_integer_weights_are_repeated_rows(method):
    y, c, w = tied()
    i = np.repeat(np.arange(len(y)), w.astype(int))
    q = 0.5 * c + 0.2
    known, repeated = ({"true_prob": q}, {"true_prob": q[i]}) if method == "true" else ({}, {})
    one = cal.score_decomposition(y, c, method=method, sample_weight=w, **known)
    many = cal.score_decomposition(y[i], c[i], method=method, **repeated)
    assert one == pytest.approx(many, rel=1e-9)


def test_murphy_by_loops_over_identical_forecasts():
    y, p, w = rounded()
    got = cal.score_decomposition(y, p, method="unique", scale="sum", sample_weight=w)
    hot, W = np.eye(3)[y], w.sum()
    base = (w @ hot) / W
    reliability = resolution = 0.0
    for forecast in {tuple(row) for row in p}:
        inside = (p == forecast).all(1)
        seen = w[inside] @ hot[inside] / w[inside].sum()
        reliability += w[inside].sum() / W * ((np.array(forecast) - seen) ** 2).sum()
        resolution += w[inside].sum() / W * ((base - seen) ** 2).sum()
    assert got[1:] == pytest.approx((reliability, resolution, 1 - (base**2).sum()))


def test_distinct_forecasts_have_all_their_score_in_reliability():
    y, c = arrays("binary500")[:2]
    got = cal.score_decomposition(y, c, method="unique")
    assert got.reliability == pytest.approx(got.score)
    assert got.resolution == pytest.approx(got.uncertainty)
    coarse = cal.score_decomposition(y, c, method="unique", decimals=1)
    assert coarse.reliability < got.reliability / 5
    assert expected(coarse) == pytest.approx(coarse.score)
    assert coarse.score == pytest.approx(cal.brier_score(y, np.round(c, 1)))


def test_minus_zero_is_the_forecast_zero():
    got = cal.score_decomposition([0, 1], [[0.0, 1.0, 0.0], [-0.0, 1.0, 0.0]], method="unique")
    assert got.resolution == pytest.approx(0.0)


def test_bias_correction_moves_terms_but_not_the_sum():
    y, c, w = tied()
    plain = cal.score_decomposition(y, c, method="unique", sample_weight=w)
    fixed = cal.score_decomposition(y, c, method="unique", sample_weight=w, bias_correction=True)
    assert fixed.reliability < plain.reliability
    assert fixed.uncertainty > plain.uncertainty
    assert expected(fixed) == pytest.approx(plain.score)
    with pytest.warns(cal.CalibrationWarning, match="at least two rows"):
        alone = cal.score_decomposition([0, 1], [0.2, 0.7], method="unique", bias_correction=True)
    assert math.isnan(alone.reliability)
    with pytest.raises(ValueError, match="two classes"):
        cal.score_decomposition(y, c, method="unique", score="log", bias_correction=True)


def test_corrected_reliability_is_unbiased_for_fixed_groups():
    rng = np.random.default_rng(0)
    c = np.repeat([0.2, 0.5, 0.8], 20)
    q = np.repeat([0.3, 0.5, 0.7], 20)
    plain, fixed = [], []
    for _ in range(300):
        y = (rng.random(60) < q).astype(int)
        for kept, correct in ((plain, False), (fixed, True)):
            kept.append(cal.score_decomposition(y, c, method="unique", bias_correction=correct).reliability)
    truth = ((c - q) ** 2).mean()
    assert abs(np.mean(fixed) - truth) < 4 * np.std(fixed) / math.sqrt(300)
    assert np.mean(plain) > truth + 4 * np.std(plain) / math.sqrt(300)


@pytest.mark.parametrize("binning", ["width", "mass", "unique"])
def test_terms_within_bins_make_the_sum_exact(binning):
    y, c = arrays("binary500")[:2]
    w = 1.0 + np.arange(500) % 3
    got = cal.score_decomposition(y, c, method="bins", binning=binning, n_bins=7, sample_weight=w)
    assert expected(got) == pytest.approx(got.score, rel=1e-12)
    with pytest.raises(ValueError, match="Brier"):
        cal.score_decomposition(y, c, method="bins", score="log")


def test_the_truth_has_no_epistemic_loss():
    y, p, w = rounded()
    for score in SCORES:
        got = cal.score_decomposition(y, p, method="true", score=score, true_prob=p, sample_weight=w)
        assert got.epistemic == pytest.approx(0, abs=1e-14)
        assert got.expected_score == got.epistemic + got.irreducible
    with pytest.raises(TypeError, match="true_prob"):
        cal.score_decomposition(y, p, method="true")


@pytest.mark.parametrize("score", SCORES)
def test_entropy_and_divergence_are_those_of_the_score(score):
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(4), 20)
    proper = ProperScore(score, "1/K", 2.5)
    by_class = np.column_stack([proper.expected(p, np.tile(np.eye(4)[k], (20, 1))) for k in range(4)])
    np.testing.assert_allclose((q * by_class).sum(1), proper.expected(p, q), rtol=1e-12)
    np.testing.assert_allclose(proper.expected(q, q), proper.entropy(q), rtol=1e-12)
    assert (proper.divergence(p, q) > 0).all()


def test_corp_does_not_change_when_confidences_are_transformed_except_in_the_score():
    y, c, w = tied()
    a = cal.score_decomposition(y, c, sample_weight=w)
    b = cal.score_decomposition(y, c**3 / 2, sample_weight=w)
    assert a.discrimination == pytest.approx(b.discrimination)
    assert a.uncertainty == b.uncertainty


def test_corp_with_log_score_at_the_ends():
    got = cal.score_decomposition([0, 0, 1, 1], [0.0, 0.3, 0.6, 1.0], score="log")
    assert got.discrimination == pytest.approx(got.uncertainty)
    wrong = cal.score_decomposition([1, 0, 1], [0.0, 0.3, 0.6], score="log")
    assert wrong.score == wrong.miscalibration == math.inf


def test_corp_of_several_classes_averages_over_classes():
    y, p, w = rounded()
    views = [cal.score_decomposition((y == k).astype(int), p[:, k], sample_weight=w) for k in range(3)]
    got = cal.score_decomposition(y, p, sample_weight=w)
    assert got == pytest.approx(np.mean(views, axis=0))
    assert cal.score_decomposition(y, p, sample_weight=w, average=None).score.shape == (3,)
    assert got.score == pytest.approx(cal.brier_score(y, p, sample_weight=w))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "isotonc"}, "did you mean 'isotonic'"),
        ({"score": "brie"}, "did you mean 'brier'"),
        ({"scale": "third"}, "scale"),
        ({"score": "power", "alpha": 1}, "alpha"),
        ({"lens": "full"}, "class-wise"),
    ],
)
def test_unknown_words_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cal.score_decomposition(*rounded()[:2], **options)


# -- the isotonic map --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_isotonic_values_are_the_min_max_formula_on_pooled_ties(seed):
    y, c, w = tied(60, seed)
    x = np.unique(c)
    want = [definitions.isotonic(y, c, w)(v) for v in x]
    curve = Isotonic().fit(y, c, sample_weight=w)
    np.testing.assert_array_equal(curve.knots_, x)
    np.testing.assert_allclose(curve(x), want, atol=1e-12)
    np.testing.assert_allclose(pooled_frequencies(cal.predictions(y, c, sample_weight=w)), want, atol=1e-12)


def test_isotonic_is_linear_between_confidences_and_constant_outside():
    curve = Isotonic().fit([0, 1, 1], [0.2, 0.4, 0.8])
    np.testing.assert_allclose(curve([0.0, 0.1, 0.2, 0.3, 0.4, 0.9]), [0, 0, 0, 0.5, 1, 1])


def test_tiny_distinct_scores_are_not_pooled():
    curve = Isotonic().fit([0, 1], [1e-149, 2e-149])
    np.testing.assert_array_equal(curve([1e-149, 2e-149]), [0, 1])
    curve = Isotonic().fit([0, 1, 1], [0.0, 5e-324, 1.0])
    np.testing.assert_array_equal(curve([0.0, 5e-324, 1.0]), [0, 1, 1])
