"""Bias by construction: known truth, fitted worlds, and what metrics read by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import beta as beta_function

from calibrary.study import BiasByConstruction
from calibrary.study.construction import CURVES
from golden import arrays, parts


def test_true_error_equals_the_golden_ones():
    for entry in parts("bins_a", "bbc_true_error"):
        given = dict(entry["params"])
        norm = given.pop("norm")
        world = BiasByConstruction(given.pop("alpha"), given.pop("beta"), given.pop("curve"), **given)
        assert world.true_error(norm) == pytest.approx(entry["value"], rel=1e-6)


@pytest.mark.parametrize(("alpha", "beta", "d"), [(2.8, 1.5, 2.0), (0.4, 0.6, 1.3), (5.0, 0.5, 0.5)])
def test_true_error_of_a_power_curve_has_a_closed_form(alpha, beta, d):
    def moment(k):
        return beta_function(alpha + k, beta) / beta_function(alpha, beta)

    world = BiasByConstruction(alpha, beta, "power", b=d)
    assert world.true_error(2) == pytest.approx(np.sqrt(moment(2) - 2 * moment(1 + d) + moment(2 * d)), rel=1e-8)
    assert BiasByConstruction(alpha, beta, lambda c: c**d).true_error(2) == pytest.approx(world.true_error(2))


def test_an_atom_at_one_counts_inside_the_root():
    plain = BiasByConstruction(2, 3, "flip_power", b=0.5)
    atom = BiasByConstruction(2, 3, lambda c: np.where(c == 1, 0.4, plain.calibration(c)), p1=0.2)
    assert atom.true_error(2) == pytest.approx(np.sqrt(0.8 * plain.true_error(2) ** 2 + 0.2 * 0.6**2))


def test_largest_gap_is_the_limit_of_the_norms():
    world = BiasByConstruction(2, 2, "power", b=2)
    assert world.true_error("max") == pytest.approx(0.25, abs=1e-9)
    assert world.true_error(1) < world.true_error(2) < world.true_error(np.inf)


@pytest.mark.parametrize("curve", ["log_log", "logflip_logflip", "logit_logit", "logit_logflip", "power", "flip_power"])
def test_curves_are_defined_at_both_ends(curve):
    values = BiasByConstruction(1, 1, curve, a=-0.1, b=1.2).calibration([0.0, 0.5, 1.0])
    assert np.isfinite(values).all()
    assert ((values >= 0) & (values <= 1)).all()


def test_samples_follow_the_law_and_the_curve():
    world = BiasByConstruction(2, 1, "power", b=2, p1=0.25)
    y, c = world.sample(20_000, rng=0)
    assert (c == 1).mean() == pytest.approx(0.25, abs=0.01)
    assert stats.kstest(c[c < 1], stats.beta(2, 1).cdf).pvalue > 1e-3
    assert y.mean() == pytest.approx((c**2).mean(), abs=0.01)
    np.testing.assert_array_equal(world.sample(5, rng=3)[1], world.sample(5, rng=3)[1])


def test_bias_equals_the_golden_one_within_its_error():
    for entry in parts("bins_a", "bbc_bias"):
        given = dict(entry["params"])
        metric, n, norm = given.pop("metric"), given.pop("n"), given.pop("norm")
        world = BiasByConstruction(given.pop("alpha"), given.pop("beta"), given.pop("curve"), **given)
        found = world.bias(metric, n, norm=norm, n_resamples=600, rng=1)
        assert found.bias == pytest.approx(entry["value"], abs=entry["atol"] + 4 * found.standard_error)
        assert found.bias == pytest.approx(found.mean - world.true_error(norm))
        assert found.mse == pytest.approx(found.bias**2 + found.sd**2 * 599 / 600)


def test_binned_error_of_a_calibrated_model_grows_with_the_bins_and_the_sweep_is_least_biased():
    world = BiasByConstruction(2, 1)
    assert world.true_error(1) == 0.0
    few, many = (world.bias("ece", 200, n_bins=n, n_resamples=200, rng=0).bias for n in (5, 50))
    swept = world.bias("ece_sweep", 200, n_resamples=200, rng=0).bias
    assert 0 < few < many
    assert 0 < swept < world.bias("ece", 200, n_resamples=200, rng=0).bias


def test_any_function_can_be_studied():
    world = BiasByConstruction(2, 1, "power", b=2)
    found = world.bias(lambda y, c: abs(y.mean() - c.mean()), 400, n_resamples=100, rng=0)
    assert found.mean == pytest.approx(world.true_error(1), abs=0.01)  # the curve lies below the diagonal throughout


def test_fitted_beta_law_equals_the_golden_one():
    for entry in parts("bins_a", "bbc_fit_beta"):
        y, c, _ = arrays(entry["data"])
        world = BiasByConstruction.fit(y, c)
        assert [world.alpha, world.beta] == pytest.approx(entry["value"], rel=1e-5)


def test_fitted_curve_equals_the_golden_one():
    for entry in parts("bins_a", "bbc_fit_logit_logit"):
        y, c, _ = arrays(entry["data"])
        world = BiasByConstruction.fit(y, c)
        found = next(f for f in world.candidates if (f.curve, f.free) == ("logit_logit", "ab"))
        assert {"b0": found.a, "b1": found.b, "aic": found.aic} == pytest.approx(entry["value"], rel=1e-5)


@pytest.mark.parametrize(
    ("curve", "a", "b"),
    [("log_log", -0.3, 1.4), ("logflip_logflip", -0.2, 1.3), ("logit_logit", -0.4, 0.6), ("logit_logflip", -0.5, -1.5)],
)
def test_fit_recovers_the_curve_that_made_the_data(curve, a, b):
    y, c = BiasByConstruction(2, 2, curve, a=a, b=b).sample(20_000, rng=0)
    world = BiasByConstruction.fit(y, c)
    found = next(f for f in world.candidates if (f.curve, f.free) == (curve, "ab"))
    assert (found.a, found.b) == (pytest.approx(a, abs=0.08), pytest.approx(b, abs=0.12))
    assert len(world.candidates) == 12
    assert world.candidates[0].aic == min(f.aic for f in world.candidates)
    inside = np.linspace(0.1, 0.9, 9)
    truth = BiasByConstruction(2, 2, curve, a=a, b=b).calibration(inside)
    np.testing.assert_allclose(world.calibration(inside), truth, atol=0.03)


def test_fit_likelihood_is_a_maximum():
    y, c = BiasByConstruction(2, 2, "log_log", a=-0.3, b=1.4).sample(400, rng=2)
    for found in BiasByConstruction.fit(y, c).candidates:

        def nll(a, b, curve=found.curve):
            t = CURVES[curve](c, a, b)
            if t.min() < -1e-9 or t.max() > 1 + 1e-9:  # the best curve may touch 0 or 1
                return np.inf
            t = np.clip(t, 1e-12, 1 - 1e-12)
            return -np.where(y == 1, np.log(t), np.log1p(-t)).sum()

        best = nll(found.a, found.b)
        assert found.aic == pytest.approx(2 * len(found.free) + 2 * best)
        for da, db in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)):
            if (da == 0 or "a" in found.free) and (db == 0 or "b" in found.free):
                assert nll(found.a + da, found.b + db) >= best - 1e-9


def test_fit_takes_weights_as_repeated_rows_and_top_label_for_columns():
    y, c = BiasByConstruction(2, 2).sample(200, rng=0)
    w = 1 + np.arange(200) % 3
    weighted, repeated = (
        BiasByConstruction.fit(y, c, sample_weight=w),
        BiasByConstruction.fit(np.repeat(y, w), np.repeat(c, w)),
    )
    assert weighted.alpha == pytest.approx(repeated.alpha)
    assert weighted.b == pytest.approx(repeated.b)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    y = np.where(np.arange(100) % 4, p.argmax(axis=1), 0)
    assert BiasByConstruction.fit(y, p).alpha > 1
    with pytest.raises(ValueError, match="several sets of confidences"):
        BiasByConstruction.fit(y, p, lens="class-wise")
    with pytest.raises(ValueError, match="every label is the same"):
        BiasByConstruction.fit(p.argmax(axis=1), p)
    with pytest.raises(ValueError, match="1 distinct confidences strictly between 0 and 1"):
        BiasByConstruction.fit([0, 1, 1], [0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alpha": 0}, "alpha=0"),
        ({"beta": -1}, "beta=-1"),
        ({"p1": 1}, "p1=1"),
        ({"curve": "powr"}, "did you mean 'power'"),
    ],
)
def test_impossible_worlds_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        BiasByConstruction(**{"alpha": 1, "beta": 1, **wrong})
