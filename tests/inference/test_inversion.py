"""Intervals that cover, and agree with the Monte Carlo test: inversion, triangle and what "auto" chooses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrary as cal
from calibrary.inference.draw.lines import lines_of, population
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.inference.methods.choice import chosen
from calibrary.lookup import catalogue
from each import amount

CHEAP = ["ece", "ace", "mce", "ecce_mad", "ecce_r", "mmce", "ce2_db", "gsb", "wcr", "tcal"]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def binary(seed, n=150, slope=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n).clip(1e-6, 1 - 1e-6)
    return (rng.random(n) < expit(slope * logit(c) + shift)).astype(int), c


def several(seed, n=150, k=4, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    q = p**power / (p**power).sum(axis=1, keepdims=True)
    return (q.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, k - 1), p


def leaves_out(result, perfect):
    return not result.low <= perfect <= result.high


# -- agreement with the test --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["inversion", "triangle"])
@pytest.mark.parametrize("id", CHEAP)
def test_the_interval_leaves_the_perfect_value_out_exactly_when_the_monte_carlo_test_rejects(id, method):
    decisions = []
    for seed in range(8):
        y, c = binary(seed, shift=0.15 * (seed % 4))
        result = cal.interval(id, y, c, method=method, n_resamples=39, rng=seed, confidence_level=0.9)
        test = cal.test(id, y, c, method="monte-carlo", n_resamples=39, rng=seed)
        assert result.pvalue == test.pvalue
        assert leaves_out(result, catalogue[id].perfect) == (test.pvalue <= 0.1)
        assert result.low <= result.high
        decisions.append(test.pvalue <= 0.1)
    assert any(decisions)
    assert not all(decisions)


@pytest.mark.parametrize("lens", ["top-label", "class-wise", "full", "within-top-r", "rth"])
def test_agreement_through_every_lens_of_several_classes(lens):
    options = {"r": 2} if lens in ("within-top-r", "rth") else {}
    for seed, power in enumerate((1.0, 2.5, 0.5)[: amount(2, 3)]):
        y, p = several(seed, power=power)
        result = cal.interval("ece", y, p, method="inversion", lens=lens, n_resamples=39, rng=seed, **options)
        test = cal.test("ece", y, p, method="monte-carlo", lens=lens, n_resamples=39, rng=seed, **options)
        assert result.pvalue == test.pvalue
        assert leaves_out(result, 0.0) == (test.pvalue <= 0.05)


def test_p_equal_to_the_level_rejects_and_the_interval_starts_above_the_perfect_value():
    found = 0
    for seed in range(60):
        y, c = binary(seed, n=60, shift=0.4)
        test = cal.test("ks", y, c, method="monte-carlo", n_resamples=19, rng=seed)
        if test.pvalue == 0.05:
            result = cal.interval("ks", y, c, method="inversion", n_resamples=19, rng=seed)
            assert result.low > 0.0
            found += 1
    assert found


def test_intervals_of_a_table_are_those_of_the_tests_beside_them():
    y, c = binary(5, n=200, shift=0.4)
    table = cal.evaluate(y, c, metrics=["bin", "cumulative", "mmce", "ici"], intervals=True, tests=True,
                         n_resamples=39, rng=0)  # fmt: skip
    seen = set()
    for row in table.rows:
        if row.method in ("inversion", "triangle"):
            seen.add(row.method)
            assert (not row.low <= row.perfect <= row.high) == (row.pvalue <= 0.05), row.id
    assert seen == {"inversion", "triangle"}


def test_the_triangle_of_a_debiased_square_reaches_small_errors():
    """Values below 0 are common if the true error is small: a bound from signed roots alone would cover it in 80%."""
    held = []
    for seed in range(40):
        y, c = binary(seed, n=400, slope=0.8)
        sample, question = read_call("ce2_db", y, c, {})
        truth = population(as_statistic("ce2_db", sample, question, redrawn=True), expit(0.8 * logit(c)))[0]
        found = cal.interval("ce2_db", y, c, method="triangle", n_resamples=99, rng=seed)
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.92


# -- weights -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["inversion", "triangle"])
def test_frequency_weights_are_the_rows_written_out(method):
    y, c = binary(1, n=80, shift=0.3)
    w = np.random.default_rng(0).integers(1, 4, 80)
    weighted = cal.interval("ece", y, c, sample_weight=w, method=method, n_resamples=99, rng=0)
    written = cal.interval("ece", np.repeat(y, w), np.repeat(c, w), method=method, n_resamples=99, rng=0)
    assert weighted.low == pytest.approx(written.low, abs=1e-6)
    assert weighted.high == pytest.approx(written.high, abs=1e-6)


def test_importance_weights_do_not_depend_on_their_scale():
    y, c = binary(1, n=120, shift=0.3)
    w = np.random.default_rng(0).random(120) + 0.2
    one, ten = (
        cal.interval("ece", y, c, sample_weight=s * w, weight_type="importance", method="inversion", n_resamples=99,
                     rng=0)
        for s in (1.0, 10.0)
    )  # fmt: skip
    assert (one.low, one.high) == pytest.approx((ten.low, ten.high), abs=1e-6)


# -- the truth and the lines ---------------------------------------------------------------------------


def statistic_of(id, y, p, **options):
    sample, question = read_call(id, y, p, options)
    return as_statistic(id, sample, question, redrawn=True)


POPULATION = [e.id for e in catalogue.values() if e.one_sided and e.data_type == "predictions" and e.null
              and e.order_free and e.weights != "none" and not e.needs and not e.costly
              and e.id != "rank_calibration_error"]  # fmt: skip  # ranks of finitely many bins never tie exactly


@pytest.mark.parametrize("id", POPULATION)
def test_the_population_value_of_a_calibrated_truth_is_the_perfect_value(id):
    y, c = binary(0, n=300)
    # smoothing has a little bias of its own, and bins of labels hold spread
    slack = {"ece_lb": 0.03, "sece": 0.01, "msce": 0.001, "lsece": 0.01}.get(id, 1e-3)
    value = population(statistic_of(id, y, c), c)[0]
    assert value == pytest.approx(catalogue[id].perfect, abs=slack)


@pytest.mark.parametrize("id", ["ece", "ace", "ecce_mad", "ce2_db", "ece_db", "tcal", "mmce", "ici", "bs", "hinge"])
def test_the_population_value_is_the_limit_of_many_rows(id):
    _, c = binary(0, n=400)
    q = np.clip(c + 0.1 * np.sin(9 * c), 0, 1)
    rng = np.random.default_rng(1)
    many = np.repeat(np.arange(400), 200)
    y = (rng.random(len(many)) < q[many]).astype(int)
    value = population(statistic_of(id, (c > 0.5).astype(int), c), q)[0]
    assert value == pytest.approx(cal.compute(id, y, c[many]), abs=0.006)


def test_the_population_value_through_a_lens_of_several_classes_is_the_limit_of_many_rows():
    y, p = several(0, n=200)
    q = p**2 / (p**2).sum(axis=1, keepdims=True)
    rng = np.random.default_rng(1)
    many = np.repeat(np.arange(200), 400)
    drawn = (q[many].cumsum(axis=1) < rng.random(len(many))[:, None]).sum(axis=1).clip(0, 3)
    for lens in ("top-label", "class-wise", "full", "true-class", "pairwise"):
        value = population(statistic_of("ece", y, p, lens=lens), q)[0]
        assert value == pytest.approx(cal.compute("ece", drawn, p[many], lens=lens), abs=0.01), lens


@pytest.mark.parametrize("lens", ["top-label", "class-wise", "full"])
def test_truths_are_probabilities_and_start_at_the_predictions(lens):
    y, p = several(2)
    p[0] = [1.0, 0.0, 0.0, 0.0]
    statistic = statistic_of("ece", y, p, lens=lens)
    for line in lines_of(statistic):
        np.testing.assert_allclose(line(0.0), p, atol=1e-12)
        for t in (0.5, 3.0, 8.0):
            q = line(t)
            assert (q >= 0.0).all()
            np.testing.assert_allclose(q.sum(axis=1), 1.0, atol=1e-9)


def test_a_row_that_clips_to_nothing_keeps_its_predictions():
    y, p = several(3, n=60, k=3)
    statistic = statistic_of("ece", y, p, lens="class-wise")
    for line in lines_of(statistic):
        assert np.isfinite(line(500.0)).all()


# -- what is chosen, and what is refused ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "method"),
    [("ece", "inversion"), ("ks", "inversion"), ("ce2_db", "inversion"), ("bs", "studentized"), ("eo", "asymptotic"),
     ("cis", "asymptotic"), ("ici", "triangle"), ("smece", "triangle"), ("skce_uq", "triangle"), ("hl", "basic")],
)  # fmt: skip
def test_the_method_that_auto_chooses(id, method):
    y, c = binary(0)
    assert chosen(statistic_of(id, y, c))[0] == method


def test_every_metric_has_an_interval_whose_result_names_the_method():
    y, c = binary(0, n=60)
    for entry in catalogue.values():
        left_out = entry.needs or entry.costly or entry.no_interval or entry.id == "consistency"
        if entry.data_type != "predictions" or left_out:
            continue
        result = cal.interval(entry.id, y, c, n_resamples=19, rng=0)
        assert result.method in ("inversion", "triangle", "basic", "normal", "percentile", "studentized", "asymptotic")
        assert np.all(np.asarray(result.low) <= np.asarray(result.high)) or np.isnan(result.low).any(), entry.id


def test_a_function_of_the_users_is_inverted_when_it_says_where_it_is_perfect():
    y, c = binary(4, shift=0.5)

    def gap(y, c, sample_weight=None):
        return abs(np.average(y - c, weights=sample_weight))

    result = cal.interval(gap, y, c, perfect=0.0, n_resamples=99, rng=0)
    ours = cal.interval("mdca", y, c, method="inversion", n_resamples=99, rng=0)
    assert result.method == "inversion"
    assert (result.low, result.high) == pytest.approx((ours.low, ours.high), abs=0.02)
    assert cal.interval(gap, y, c, n_resamples=19, rng=0).method == "basic"
    with pytest.raises(TypeError, match=r"perfect=0\.0 is only for your own functions"):
        cal.interval("ece", y, c, perfect=0.0)


def test_refusals_say_why():
    y, c = binary(0, n=50)
    with pytest.raises(ValueError, match="does not work for bs: it is not an error that grows"):
        cal.interval("bs", y, c, method="inversion")
    with pytest.raises(ValueError, match=r"n_resamples=9 is too few for the level 0\.95: .*at least 19"):
        cal.interval("ece", y, c, n_resamples=9)
    with pytest.raises(ValueError, match=r"confidence_level=1\.0 is outside \(0, 1\)"):
        cal.interval("ece", y, c, confidence_level=1.0)
    with pytest.raises(ValueError, match="method='inverson' is not known: did you mean 'inversion'"):
        cal.interval("ece", y, c, method="inverson")


def test_objects_hold_their_settings_and_seeds_repeat():
    y, c = binary(0)
    one = cal.interval("ece", y, c, method=cal.Inversion(n_resamples=39, rng=3))
    assert tuple(one) == tuple(cal.interval("ece", y, c, method="inversion", n_resamples=39, rng=3))
    assert tuple(one) == tuple(cal.interval("ece", y, c, method="inversion", n_resamples=39, rng=3, workers=2))
    two = cal.interval("ece", y, c, method=cal.Triangle(n_resamples=39, rng=3))
    assert tuple(two) == tuple(cal.interval("ece", y, c, method="triangle", n_resamples=39, rng=3))
    units = np.arange(len(y)) // 4
    of_units = cal.interval("ece", y, c, method=cal.Triangle(n_resamples=39, rng=3), units=units)
    assert tuple(of_units) == tuple(cal.interval("ece", y, c, method="triangle", n_resamples=39, rng=3, units=units))
    with pytest.raises(ValueError, match="n_resamples= is a setting of the method object"):
        cal.interval("ece", y, c, method=cal.Triangle(n_resamples=39), n_resamples=99)
    rng = np.random.default_rng(0)
    first = cal.interval("ece", y, c, method="inversion", n_resamples=39, rng=rng)
    second = cal.interval("ece", y, c, method="inversion", n_resamples=39, rng=rng)
    assert first.high != second.high


def test_squares_are_treated_on_the_scale_of_their_root():
    y, c = binary(0, shift=0.6)
    root = cal.interval("mmce", y, c, method="triangle", n_resamples=99, rng=0)
    square = cal.interval("mmce", y, c, method="triangle", squared=True, n_resamples=99, rng=0)
    assert (square.low, square.high) == pytest.approx((root.low**2, root.high**2))


def test_detections_are_redrawn_one_by_one_and_resampled_by_image():
    rng = np.random.default_rng(0)
    score, image = rng.random(150), np.repeat(np.arange(50), 3)
    correct = (rng.random(150) < score**2).astype(int)
    found = cal.matched_detections(correct, score, image=image, n_missed=5)
    ece = cal.interval("ece", found, n_resamples=39, rng=0)
    assert ece.method == "inversion"
    assert ece.pvalue == cal.test("ece", found, method="monte-carlo", n_resamples=39, rng=0).pvalue
    d_ece = cal.interval("d_ece", found, n_resamples=39, rng=0)
    assert d_ece.method == "triangle"
    assert leaves_out(d_ece, 0.0) == (d_ece.pvalue <= 0.05)


# -- coverage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.6, 0.0), (1.0, 0.5)])
def test_coverage_of_ece(slope, shift):
    """Of 40 samples of 300 the bootstrap covers 15 to 35, and inversion nearly all."""
    covered, samples = 0, amount(16, 40)
    for seed in range(samples):
        y, c = binary(seed, n=300, slope=slope, shift=shift)
        truth = population(statistic_of("ece", y, c), expit(slope * logit(c) + shift))[0]
        result = cal.interval("ece", y, c, n_resamples=99, rng=seed)
        covered += result.low - 1e-6 <= truth <= result.high
    assert covered >= samples - amount(3, 5)


def test_intervals_shrink_with_the_rows_however_many():
    c = np.linspace(0.02, 0.98, 300)
    q, draws = expit(0.8 * logit(c)), amount(99, 199)
    for copies in (1e3, 1e6):
        w = np.rint(copies * np.concatenate([q, 1 - q]))
        y, both = np.repeat([1, 0], len(c)), np.tile(c, 2)
        found = cal.interval("ece", y, both, sample_weight=w, n_resamples=draws, rng=0)
        truth = cal.compute("ece", y, both, sample_weight=w)
        assert found.method == "inversion"
        assert found.low < truth < found.high
        # two-sided 95% of a nearly normal reading is 3.9 spreads wide; the hull of two lines is a little more
        assert 3.0 * found.draws.std() < found.high - found.low < 6.0 * found.draws.std()
        other = expit(0.95 * logit(both))
        difference = cal.compare("ece", y, both, other, sample_weight=w, n_resamples=draws, rng=0)
        assert difference.high - difference.low < 12.0 * found.draws.std()


def test_groups_that_count_rows_are_not_inverted():
    """A known truth doubles the number of rows, so that limits on the number of rows would give other groups."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet([0.5] * 6, 200)
    y = np.array([rng.choice(6, p=row) for row in p])
    for id in ("mvms", "rbece"):
        found = cal.interval(id, y, p, n_resamples=39, confidence_level=0.9, rng=0)
        assert found.method == "triangle"
        assert "is a number of rows" in found.note
        assert found.low <= found.value <= found.high
        with pytest.raises(ValueError, match="is a number of rows"):
            cal.interval(id, y, p, method="inversion", n_resamples=39, confidence_level=0.9)
