"""Uncertainty of any metric: golden streams, equality with the literal definitions, level, coverage, bad input."""

from __future__ import annotations

import inspect
import io
import sys
import threading
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr, ndtri

import calibrary as cal
from calibrary.data import sample as drawing
from calibrary.data.sample import drawn_labels, sample_of
from calibrary.inference.draw import resampling, statistic, waiting
from calibrary.inference.draw.statistic import fast
from calibrary.inference.methods import bootstrap
from calibrary.inference.methods.multiplicity import rank_pvalues, step_down_min_p
from calibrary.metrics.machinery.measure import measure, numbers, views_of
from calibrary.numerics.draw import generator
from calibrary.question import Question
from each import amount, most
from golden import arrays, parts
from metric_cases import binary, detections, extra, multi, rows, rows_for_classes

ENTRIES = [e for e in cal.catalogue.values() if e.family != "detection"]
DETECTION = [e for e in cal.catalogue.values() if e.family == "detection"]
every_metric = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
#: Metrics over pairs keep their median width where labels are redrawn, and only there.
PAIRS = ("skce", "skce_b", "skce_uq", "skce_ul", "kccsd")
quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def abs_mean_gap(y, c):
    return abs(y.mean() - c.mean())


def sample(n, seed=0, truth=lambda c: c, grid=None):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    c = c if grid is None else np.round(c * grid) / grid
    return (rng.random(n) < truth(c)).astype(int), c


def over_confident(c):
    return 0.5 + 0.7 * (c - 0.5)


def second_model(c):
    return expit(0.6 * logit(np.clip(c, 1e-6, 1 - 1e-6)) - 0.3)


def named(entry):
    p = entry["params"]
    return f"{entry['data']}-{p.get('metric', '')}-{p.get('method', '')}{p.get('resample_predictions', '')}"


def golden(id):
    return pytest.mark.parametrize("entry", parts("inference", id), ids=named)


# -- golden values -----------------------------------------------------------------------------------

#: Replicates that equal the estimate exactly count half; there the golden ends rest on how they were rounded.
ROUNDED = {("ecce_mad", data, method) for data in ("binary12", "binary_ties") for method in ("bc", "bca")}


@quiet
@golden("bootstrap_interval")
def test_interval_ends_and_standard_error_equal_the_golden_stream(entry):
    y, c, _ = arrays(entry["data"])
    q = entry["params"]
    options = {"n_resamples": q["n_resamples"], "confidence_level": q["confidence_level"]}
    result = cal.interval(
        q["metric"], y, c, method=q["method"], clip=False, rng=np.random.default_rng(q["seed"]), **options
    )
    low, high, error = entry["value"]
    assert result.standard_error == pytest.approx(error, rel=1e-9)
    if (q["metric"], entry["data"], q["method"]) not in ROUNDED:
        assert (result.low, result.high) == pytest.approx((low, high), rel=1e-9, abs=1e-12)


def exact_walk(y, tenths):
    """ECCE-MAD times N times 100 in whole numbers, for scores that are multiples of 1/100."""
    return max(abs(sum(100 * y[tenths <= s] - tenths[tenths <= s])) for s in np.unique(tenths))


@pytest.mark.parametrize(("data", "bc"), [("binary12", 0.2805161010717534), ("binary_ties", 0.020333333333333325)])
@quiet
def test_replicates_equal_to_the_estimate_count_half_where_the_golden_ends_rounded_them_to_one_side(data, bc):
    y, c, _ = arrays(data)
    whole = np.rint(100 * c).astype(int)
    assert np.abs(whole / 100 - c).max() < 1e-12
    rng = np.random.default_rng(11)
    values = [exact_walk(y[i], whole[i]) for i in (rng.integers(0, len(y), len(y)) for _ in range(499))]
    estimate = exact_walk(y, whole)
    below, at_most = sum(v < estimate for v in values), sum(v <= estimate for v in values)
    assert at_most > below  # there are exact ties
    result = cal.interval("ecce_mad", y, c, method="bc", n_resamples=499, rng=np.random.default_rng(11), clip=False)
    z0 = ndtri(float(Fraction(below + at_most, 998)))
    shares = ndtr(2 * z0 + ndtri(np.array([0.025, 0.975])))
    assert (result.low, result.high) == pytest.approx(np.quantile(np.array(values) / len(y) / 100, shares), rel=1e-9)
    # the golden upper end is that of other counts of the same replicates
    reached = []
    for twice in range(2 * below, 2 * at_most + 1):
        z = ndtri(twice / 998)
        share = ndtr(2 * z + ndtri(0.975))
        reached.append(np.quantile(result.draws, share) == pytest.approx(bc, rel=1e-9))
    assert any(reached)
    assert not reached[at_most - below]


@quiet
@golden("null_p_value")
def test_monte_carlo_pvalue_equals_the_golden_one_exactly(entry):
    y, c, _ = arrays(entry["data"])
    q = entry["params"]
    method = "consistency" if q["resample_predictions"] else "monte-carlo"
    options = {"method": method, "n_resamples": q["n_resamples"], "alternative": "greater"}
    result = cal.test(q["metric"], y, c, rng=np.random.default_rng(q["seed"]), **options)
    assert result.pvalue == pytest.approx(entry["value"], abs=1e-15)
    rng = np.random.default_rng(q["seed"])
    null = cal.expected_by_chance(q["metric"], None, c, method=method, n_resamples=q["n_resamples"], rng=rng).null
    assert null.pvalue(result.statistic) == result.pvalue


@golden("null_labels")
def test_null_labels_equal_the_golden_draw(entry):
    _, p, _ = arrays(entry["data"])
    u = np.random.default_rng(entry["params"]["seed"]).random(len(p))
    assert np.bincount(drawn_labels(u, p), minlength=p.shape[1]).tolist() == entry["value"]


@quiet
@golden("paired_bootstrap")
def test_paired_bootstrap_equals_the_golden_one(entry):
    y, c, _ = arrays(entry["data"])
    q = entry["params"]
    rng = np.random.default_rng(q["seed"])
    r = cal.compare(q["metric"], y, c, second_model(c), interval="percentile", n_resamples=q["n_resamples"], rng=rng)
    assert [r.value, r.low, r.high] == pytest.approx(entry["value"][:3], rel=1e-9, abs=1e-12)
    assert r.pvalue == pytest.approx(entry["value"][3], abs=1e-15)


@golden("paired_swap_test")
def test_swap_test_equals_the_golden_one(entry):
    y, c, _ = arrays(entry["data"])
    q = entry["params"]
    rng = np.random.default_rng(q["seed"])
    r = cal.compare(q["metric"], y, c, second_model(c), method="swap", n_resamples=q["n_resamples"], rng=rng)
    assert r.value == pytest.approx(entry["value"][0], rel=1e-9)
    assert r.pvalue == pytest.approx(entry["value"][1], abs=1e-15)
    assert "exchangeable" in r.note


@golden("step_down_min_p")
def test_step_down_min_p_equals_the_golden_one(entry):
    y, c, _ = arrays(entry["data"])
    q = entry["params"]
    metrics = [abs_mean_gap if m == "abs_mean_gap" else m for m in q["metrics"]]
    draws = {"n_resamples": q["n_resamples"]}
    values = np.column_stack(
        [cal.expected_by_chance(m, None, c, rng=np.random.default_rng(q["seed"]), **draws).values for m in metrics]
    )
    observed = np.array([abs_mean_gap(y, c) if callable(m) else cal.compute(m, y, c) for m in metrics])
    raw, adjusted = step_down_min_p(observed, values, ["greater"] * 3)
    assert raw == pytest.approx(entry["value"]["raw"], abs=1e-15)
    assert adjusted == pytest.approx(entry["value"]["adjusted"], abs=1e-15)


@pytest.mark.parametrize("entry", parts("inference", "adjust_p_values"), ids=lambda e: e["params"]["method"])
def test_adjusted_pvalues_equal_the_golden_ones(entry):
    got = cal.adjust_pvalues(entry["params"]["p"], entry["params"]["method"])
    assert got == pytest.approx(entry["value"], abs=1e-15)


# -- every metric: replicates equal the literal definition -------------------------------------------

N_FEW = 6


def problems(entry, n=60):
    y, c = binary(n, seed=3)
    kw = extra(entry, n)
    if "query" in entry.needs:
        kw["k"] = 5
    yield y, c, kw
    if entry.default_lens != "binary":
        y, p = multi(n, 3, seed=3)
        yield y, p, rows_for_classes(entry, dict(kw), p)


def literal(entry, y, p, kw):
    """The metric of some rows, computed from arrays as a user would do it; random metrics get a fixed seed."""
    own = inspect.signature(entry.formula).parameters.get("rng")
    seeded = own is not None and own.default is None and entry.id != "skce"  # random with estimator="ul" only
    seed = {"rng": 0} if seeded else {}
    try:
        return flat(entry, entry(y, p, **kw, **seed))
    except ValueError:
        return None


def flat(entry, value):
    return np.array(list(numbers(value, entry.fields).values()))


def same(got, expected, entry):
    for g, e in zip(got.reshape(len(expected), -1), expected, strict=True):
        if e is None:
            assert np.isnan(g).all()
        else:
            np.testing.assert_allclose(g, e, rtol=1e-7, atol=1e-9, err_msg=entry.id)


def few(entry):
    """How often rows or labels are drawn: half as often if a value takes long."""
    return amount(3, N_FEW) if entry.costly else N_FEW


@quiet
@every_metric
def test_interval_of_every_metric_is_that_of_its_values_on_resampled_rows(entry):
    if entry.fixed is not None and entry.id not in PAIRS:
        pytest.skip("does not apply: keeps options of the original data: tested below")
    if entry.no_interval:
        pytest.skip("does not apply: an interval around it means nothing, and is refused")
    times = few(entry)
    for y, p, kw in problems(entry):
        result = cal.interval(entry.id, y, p, method="basic", n_resamples=times, rng=5, **kw)
        rng = generator(5, "rows")
        drawn = [rng.integers(0, len(y), len(y)) for _ in range(times)]
        same(result.draws, [literal(entry, y[i], p[i], rows(kw, i)) for i in drawn], entry)
        np.testing.assert_allclose(np.atleast_1d(result.value), literal(entry, y, p, kw), rtol=1e-9, atol=1e-11)
        if entry.range[0] > -np.inf and not entry.fields:
            low = np.atleast_1d(result.low)
            assert (np.isnan(low) | (low >= entry.range[0])).all()


@quiet
@every_metric
def test_monte_carlo_test_of_every_metric_is_that_of_its_values_on_redrawn_labels(entry):
    times = few(entry)
    for y, p, kw in problems(entry):
        options = {"method": "monte-carlo", "n_resamples": times, "rng": 6, **kw}
        if not entry.null:
            with pytest.raises(ValueError, match=f"{entry.id} has no null distribution: "):
                cal.test(entry.id, y, p, **options)
            continue
        result = cal.test(entry.id, y, p, **options)
        rng = generator(6, "labels")
        drawn = [drawn_labels(rng.random(len(y)), p) for _ in range(times)]
        expected = [literal(entry, y_null, p, kw) for y_null in drawn]
        same(result.null.values, expected, entry)
        p_value = np.atleast_1d(result.pvalue)
        assert (np.isnan(p_value) | ((p_value >= 1 / (times + 1)) & (p_value <= 1))).all()
        assert result.alternative == entry.tail


@quiet
@pytest.mark.parametrize("id", ["bs", "nll", "ece", "ace", "ecce_mad", "ecce_r", "mce", "rbs"])
@pytest.mark.parametrize("lens", ["auto", "class-wise"])
@pytest.mark.parametrize("classes", [2, 3])
def test_consistency_resampling_draws_rows_then_labels(id, lens, classes):
    if lens not in ("auto", *cal.catalogue[id].lenses):
        pytest.skip("does not apply: not through this lens")
    y, p = sample(60, 1, grid=20) if classes == 2 else multi(60, 3)
    result = cal.test(id, y, p, method="consistency", n_resamples=5, rng=7, lens=lens)
    rng = generator(7, "labels")
    for value in result.null.values:
        i = rng.integers(0, 60, 60)
        labels = drawn_labels(rng.random(60), p[i])
        assert value == pytest.approx(cal.compute(id, labels, p[i], lens=lens), rel=1e-9, abs=1e-12)


@quiet
@pytest.mark.parametrize("metric", ["bs", "ece", "ks", "hl", "skce_uq"])
@pytest.mark.parametrize("method", ["basic", "bca"])
def test_frequency_weights_give_the_interval_and_the_pvalue_of_the_repeated_rows(metric, method):
    y, c = sample(50, 2, grid=10)
    w = 1 + np.arange(50) % 3
    a = cal.interval(metric, y, c, sample_weight=w, method=method, n_resamples=40, rng=1)
    b = cal.interval(metric, np.repeat(y, w), np.repeat(c, w), method=method, n_resamples=40, rng=1)
    np.testing.assert_allclose(a.draws, b.draws, rtol=1e-9, atol=1e-12)
    assert [a.low, a.high, a.bias] == pytest.approx([b.low, b.high, b.bias], rel=1e-7, abs=1e-9)
    for way in ("monte-carlo", "consistency"):
        options = {"method": way, "n_resamples": 40, "rng": 1}
        p = cal.test(metric, y, c, sample_weight=w, **options)
        q = cal.test(metric, np.repeat(y, w), np.repeat(c, w), **options)
        assert p.pvalue == q.pvalue
        np.testing.assert_allclose(p.null.values, q.null.values, rtol=1e-9, atol=1e-12)


def test_importance_weights_travel_with_their_rows():
    y, c = sample(40, 3)
    w = np.random.default_rng(0).random(40) + 0.1
    result = cal.interval("ks", y, c, sample_weight=w, weight_type="importance", n_resamples=4, rng=2, method="basic")
    rng = generator(2, "rows")
    for value in result.draws:
        i = rng.integers(0, 40, 40)
        assert value == pytest.approx(cal.compute("ks", y[i], c[i], sample_weight=w[i]))
    null = cal.expected_by_chance("ks", None, c, sample_weight=w, weight_type="importance", n_resamples=3, rng=2)
    rng = generator(2, "labels")
    for value in null.values:
        assert value == pytest.approx(cal.compute("ks", (rng.random(40) < c).astype(int), c, sample_weight=w))
    with pytest.raises(ValueError, match="not a whole number"):
        cal.interval("ks", y, c, sample_weight=w, method="basic")


def test_so_many_copies_that_labels_are_drawn_as_counts_have_the_same_null_distribution(monkeypatch):
    c = sample(40, 4, grid=10)[1]
    w = 3 + np.arange(40) % 4
    one_by_one = cal.expected_by_chance("ks", None, c, sample_weight=w, n_resamples=1500, rng=0)
    monkeypatch.setattr(drawing, "_MOST_COPIES", 10)
    as_counts = cal.expected_by_chance("ks", None, c, sample_weight=w, n_resamples=1500, rng=0)
    assert as_counts.mean == pytest.approx(one_by_one.mean, rel=0.05)
    assert as_counts.quantile(0.9) == pytest.approx(one_by_one.quantile(0.9), rel=0.08)
    p3 = multi(40, 3)[1]
    bs = cal.expected_by_chance("bs", None, p3, sample_weight=w, n_resamples=400, rng=0)
    assert bs.mean == pytest.approx(np.sum(w @ (p3 * (1 - p3))) / w.sum() / 3, rel=0.05)


def test_zero_weights_and_extra_inputs_follow_the_rows():
    y, c = sample(60, 5)
    groups = np.arange(60) % 3
    w = np.where(np.arange(60) % 4 == 0, 0, 1)
    kept = w > 0
    a = cal.interval("pce", y, c, groups=groups, sample_weight=w, n_resamples=20, rng=0, method="basic")
    b = cal.interval("pce", y[kept], c[kept], groups=groups[kept], n_resamples=20, rng=0, method="basic")
    np.testing.assert_allclose(a.draws, b.draws)
    with pytest.raises(ValueError, match="features has 59 rows but y_true has 60"):
        cal.interval("piece", y, c, features=np.zeros((59, 2)), method="basic")


class TestShortcuts:
    def test_fast_paths_are_used_for_the_metrics_that_have_them(self):
        y, c = sample(50, 6)
        for id in ("bs", "nll", "ecce_mad", "ecce_r", "ece", "mce"):
            s = sample_of(cal.predictions(y, c))
            made = statistic.as_statistic(id, s, Question())
            for scheme in (s.bootstrap(), s.null(), s.consistency()):
                assert fast(made.entry, made.question, scheme, made.observed) is not None, id

    @pytest.mark.parametrize("norm", [1, 2, np.inf])
    @pytest.mark.parametrize("options", [{}, {"lens": "class-wise"}, {"binning": "mass"}, {"edges": [0, 0.3, 0.5, 1]}])
    @pytest.mark.parametrize("classes", [2, 3])
    def test_binned_errors_on_resamples_are_those_of_their_rows(self, norm, options, classes):
        y, p = sample(70, 6, grid=12) if classes == 2 else multi(70, 3)
        options = {"norm": norm, **options} if "edges" in options else {"norm": norm, "n_bins": 8, **options}
        result = cal.interval("ece", y, p, n_resamples=5, rng=3, **options, method="basic")
        null = cal.expected_by_chance("ece", None, p, n_resamples=5, rng=3, **options)
        rng = generator(3, "rows")
        for value in result.draws:
            i = rng.integers(0, 70, 70)
            assert value == pytest.approx(cal.compute("ece", y[i], p[i], **options), abs=1e-12)
        rng = generator(3, "labels")
        for value in null.values:
            drawn = drawn_labels(rng.random(70), p)
            assert value == pytest.approx(cal.compute("ece", drawn, p, **options), abs=1e-12)

    def test_a_metric_that_only_looks_like_a_mean_of_losses_is_measured_itself(self):
        y, p = multi(80, 3)
        # the largest class-wise score is not the mean over rows of the largest
        result = cal.interval("bs", y, p, lens="class-wise", average="max", n_resamples=5, rng=0, method="basic")
        rng = generator(0, "rows")
        for value in result.draws:
            i = rng.integers(0, 80, 80)
            assert value == pytest.approx(cal.compute("bs", y[i], p[i], lens="class-wise", average="max"))

    def test_infinite_losses_are_left_to_the_metric(self):
        y, c = np.array([1, 0, 1, 0, 1]), np.array([0.0, 0.2, 0.8, 0.4, 0.9])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = cal.interval("nll", y, c, n_resamples=30, rng=0, method="basic")
        rng = generator(0, "rows")
        drawn_zero = [0 in rng.integers(0, 5, 5) for _ in range(30)]
        np.testing.assert_array_equal(np.isinf(result.draws), drawn_zero)


# -- workers, progress, interruption -----------------------------------------------------------------


@pytest.mark.parametrize("n", [300, 25_000])
def test_any_number_of_workers_gives_the_same_numbers(n):
    y, c = sample(n, 7)
    one = cal.interval("ks", y, c, n_resamples=12, rng=3, workers=1, method="basic")
    for workers in (None, 2, 3):
        np.testing.assert_array_equal(
            cal.interval("ks", y, c, n_resamples=12, rng=3, workers=workers, method="basic").draws, one.draws
        )
    null = cal.expected_by_chance("ece", None, c, n_resamples=8, rng=3, workers=1)
    np.testing.assert_array_equal(
        cal.expected_by_chance("ece", None, c, n_resamples=8, rng=3, workers=2).values, null.values
    )


def test_a_generator_is_used_and_advanced_and_no_seed_is_random():
    y, c = sample(30, 8)
    rng = np.random.default_rng(0)
    first = cal.interval("bs", y, c, n_resamples=9, rng=rng, method="basic")
    second = cal.interval("bs", y, c, n_resamples=9, rng=rng, method="basic")
    again = cal.interval("bs", y, c, n_resamples=9, rng=np.random.default_rng(0), method="basic")
    assert first.low == again.low
    assert first.low != second.low
    assert not np.array_equal(
        cal.interval("bs", y, c, n_resamples=9, method="basic").draws,
        cal.interval("bs", y, c, n_resamples=9, method="basic").draws,
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_at_once_and_no_thread_behind(workers):
    y, c = sample(30, 9)
    calls = []

    def interrupted(y, c):
        calls.append(1)
        if len(calls) > 5 and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return float(c.mean())

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        cal.interval(interrupted, y, c, n_resamples=100_000, workers=workers, method="basic")
    assert threading.active_count() == before
    assert len(calls) < 100_000


class TestProgress:
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def run(self, monkeypatch, stream, seconds):
        clock = iter(np.arange(0.0, 1e6) * seconds)
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(waiting, "monotonic", lambda: float(next(clock)))
        y, c = sample(20, 0)
        cal.interval("bs", y, c, n_resamples=50, rng=0, method="basic")
        return stream.getvalue()

    def test_a_slow_run_on_a_terminal_shows_a_bar(self, monkeypatch):
        assert "resampling" in self.run(monkeypatch, self.Terminal(), 1.0)

    def test_a_quick_run_does_not(self, monkeypatch):
        assert self.run(monkeypatch, self.Terminal(), 0.001) == ""

    def test_no_progress_bar_is_written_to_a_file(self, monkeypatch):
        assert self.run(monkeypatch, io.StringIO(), 0.2) == ""


# -- intervals ---------------------------------------------------------------------------------------


class TestInterval:
    def test_bca_equals_scipy_for_the_same_generator(self):
        from scipy import stats

        y, c = sample(60, 10)
        ours = cal.interval("bs", y, c, method="bca", n_resamples=199, rng=np.random.default_rng(4))
        theirs = stats.bootstrap(
            (y, c), lambda y, c, axis=-1: np.mean((y - c) ** 2, axis=axis), paired=True, vectorized=True,
            n_resamples=199, method="BCa", rng=np.random.default_rng(4),
        )  # fmt: skip
        assert (ours.low, ours.high) == pytest.approx(theirs.confidence_interval, rel=1e-9)
        assert ours.standard_error == pytest.approx(theirs.standard_error, rel=1e-9)
        assert ours.jackknife == "units"

    def test_bca_of_many_rows_leaves_out_groups_and_says_so(self):
        y, c = sample(2500, 11)
        grouped = cal.interval("bs", y, c, method="bca", n_resamples=99, rng=4)
        assert grouped.jackknife == "200 groups"
        plain = cal.interval("bs", y, c, method="bc", n_resamples=99, rng=4)
        assert (grouped.low, grouped.high) == pytest.approx((plain.low, plain.high), rel=0.02)

    def test_the_result_unpacks_and_contains_its_settings(self):
        y, c = sample(40, 12)
        result = cal.interval("bs", y, c, n_resamples=50, rng=0, confidence_level=0.9, method="normal")
        low, high = result
        assert (low, high) == (result.low, result.high)
        assert low < result.value < high
        assert result.bias == pytest.approx(result.draws.mean() - result.value)
        assert (result.level, result.method, result.n_resamples, result.n_failed) == (0.9, "normal", 50, 0)
        assert "IntervalResult(value=" in repr(result)

    def test_ends_are_cut_to_the_range_unless_asked(self):
        y, c = sample(200, 13)
        assert cal.interval("ks", y, c, n_resamples=99, rng=0, method="basic").low == 0.0
        assert cal.interval("ks", y, c, n_resamples=99, rng=0, clip=False, method="basic").low < 0.0

    def test_metrics_of_several_numbers_have_one_interval_each(self):
        y, p = multi(60, 3)
        result = cal.interval("ece", y, p, lens="class-wise", average=None, n_resamples=20, rng=0, method="basic")
        assert result.low.shape == result.high.shape == (3,)
        assert result.parts == ("0", "1", "2")
        if True:
            y, c = sample(200, 14)
            cox = cal.interval("cis", y, c, n_resamples=20, rng=0, method="basic")
            assert cox.parts == ("intercept", "slope")
            assert (cox.low < cox.high).all()

    @pytest.mark.parametrize("method", ["percentile", "bc", "bca"])
    def test_methods_that_miss_the_truth_of_an_error_warn(self, method):
        y, c = sample(50, 15)
        with pytest.warns(cal.CalibrationWarning, match="cover the true value far too rarely"):
            cal.interval("ece", y, c, method=method, n_resamples=39, rng=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cal.interval("bs", y, c, method=method, n_resamples=39, rng=0)
            cal.interval("ece", y, c, n_resamples=39, rng=0, method="basic")

    def test_a_bias_correction_without_bound_is_nan_with_the_reason(self):
        y, c = sample(30, 16)
        with pytest.warns(cal.CalibrationWarning, match="the same side of the estimate"):
            result = cal.interval(lambda y, c: float(len(np.unique(c))), y, c, method="bc", n_resamples=20, rng=0)
        assert np.isnan(result.low)
        assert np.isnan(result.high)

    def test_a_metric_that_never_varies_has_an_interval_of_no_width(self):
        y, c = sample(30, 17)
        for method in ("basic", "percentile", "bc", "bca", "normal"):
            assert tuple(cal.interval(lambda y, c: 1.0, y, c, method=method, n_resamples=9, rng=0)) == (1.0, 1.0)


class TestUserMetrics:
    def test_plain_weighted_and_public_functions_agree(self):
        y, c = sample(40, 18)
        brier = cal.interval("bs", y, c, n_resamples=30, rng=0, method="basic")
        plain = cal.interval(lambda y, c: np.mean((y - c) ** 2), y, c, n_resamples=30, rng=0)
        weighted = cal.interval(
            lambda y, c, sample_weight=None: np.average((y - c) ** 2, weights=sample_weight),
            y,
            c,
            n_resamples=30,
            rng=0,
        )
        public = cal.interval(cal.brier_score, y, c, n_resamples=30, rng=0, method="basic")
        for other in (
            plain,
            weighted,
            public,
            cal.interval(cal.catalogue["bs"], y, c, n_resamples=30, rng=0, method="basic"),
        ):
            np.testing.assert_allclose(other.draws, brier.draws, rtol=1e-12)

    def test_scikit_learn_metrics_work(self):
        metrics = pytest.importorskip("sklearn.metrics")
        y, c = sample(60, 19)
        result = cal.interval(metrics.roc_auc_score, y, c, n_resamples=20, rng=0, method="basic")
        assert result.low < metrics.roc_auc_score(y, c) < result.high

    def test_inputs_with_one_entry_per_row_follow_and_others_stay(self):
        y, c = sample(40, 20)
        site = np.arange(40) % 2
        seen = []

        def metric(y, c, *, site, power):
            seen.append((len(site), power))
            return float(np.mean(np.abs(y - c)[site == 1] ** power))

        result = cal.interval(metric, y, c, site=site, power=2, n_resamples=5, rng=0, method="basic")
        assert set(seen) == {(40, 2)}
        rng = generator(0, "rows")
        i = rng.integers(0, 40, 40)
        assert result.draws[0] == pytest.approx(np.mean((np.abs(y - c)[i] ** 2)[site[i] == 1]))
        with pytest.raises(ValueError, match="groups has 3 rows"):
            cal.interval(metric, y, c, groups=[1, 2, 3], method="basic")

    def test_class_names_come_back_to_the_metric(self):
        y = np.array(["no", "yes", "yes", "no"] * 5)
        c = np.tile([0.1, 0.8, 0.7, 0.4], 5)
        result = cal.interval(
            lambda y, c: float(np.mean((y == "yes") - c)), y, c, pos_label="yes", n_resamples=5, rng=0, method="basic"
        )
        assert result.value == pytest.approx(np.mean((y == "yes") - c))

    def test_replicates_that_raise_are_counted_and_said(self):
        y, c = sample(30, 21)
        calls = []

        def sometimes(y, c):
            calls.append(1)
            if len(calls) % 4 == 0:
                raise ZeroDivisionError("no positives")
            return float(y.mean())

        with pytest.warns(
            cal.CalibrationWarning, match=r"of 20 replicates have no value.*ZeroDivisionError: no positives"
        ):
            result = cal.interval(sometimes, y, c, n_resamples=20, rng=0, method="basic")
        assert result.n_failed == 5
        assert np.isfinite([result.low, result.high, result.standard_error]).all()

    def test_a_metric_that_fails_on_every_replicate_is_an_error(self):
        y, c = sample(30, 22)
        calls = []

        def once(y, c):
            calls.append(1)
            if len(calls) > 1:
                raise ArithmeticError("never again")
            return 0.0

        with pytest.raises(ValueError, match="every replicate failed; the first: ArithmeticError: never again"):
            cal.interval(once, y, c, n_resamples=5, method="basic")
        with pytest.raises(ArithmeticError, match="broken"):
            cal.interval(lambda y, c: (_ for _ in ()).throw(ArithmeticError("broken")), y, c, method="basic")

    def test_weights_need_a_metric_that_takes_them(self):
        y, c = sample(10, 23)
        with pytest.raises(ValueError, match="has no sample_weight argument"):
            cal.interval(abs_mean_gap, y, c, sample_weight=np.arange(10) + 1, method="basic")


def test_bad_options_are_refused():
    y, c = sample(20, 24)
    for n in (0, -3, 2.5, "many"):
        with pytest.raises(ValueError, match="n_resamples="):
            cal.interval("bs", y, c, n_resamples=n, method="basic")
        with pytest.raises(ValueError, match="n_resamples="):
            cal.test("bs", y, c, n_resamples=n)
    for level in (0, 1, 1.5, -0.1, "95%"):
        with pytest.raises(ValueError, match=r"confidence_level=.* is outside \(0, 1\)"):
            cal.interval("bs", y, c, confidence_level=level, method="basic")
    with pytest.raises(ValueError, match="method='studentised' is not known"):
        cal.interval("bs", y, c, method="studentised")
    with pytest.raises(ValueError, match="workers=0"):
        cal.interval("bs", y, c, workers=0, method="basic")
    with pytest.raises(TypeError, match="bs has no option 'n_bins'"):
        cal.interval("bs", y, c, n_bins=4, method="basic")
    with pytest.raises(TypeError, match="metric=3"):
        cal.interval(3, y, c, method="basic")
    with pytest.raises(ValueError, match="weight_type='count' is not known"):
        cal.interval("bs", y, c, weight_type="count", method="basic")
    with pytest.raises(ValueError, match="alternative='up' is not known"):
        cal.test("bs", y, c, alternative="up")
    with pytest.raises(cal.UnknownMetricError, match="no metric is called"):
        cal.interval("nothing", y, c, method="basic")
    with pytest.raises(ValueError, match="needs method='monte-carlo'"):
        cal.test("spiegelhalter", y, c, method="asymptotic", n_resamples=9)


def test_metrics_without_a_null_distribution_say_why():
    y, c = sample(20, 25)
    with pytest.raises(ValueError, match="eice has no null distribution: "):
        cal.test("eice", y, c, individual=c)


# -- null distributions ------------------------------------------------------------------------------


class TestNull:
    def test_the_result_contains_the_null_mean_and_the_error_of_the_pvalue(self):
        y, c = sample(100, 26, over_confident)
        r = cal.test("ece", y, c, n_resamples=199, rng=0)
        assert r.pvalue == pytest.approx((1 + np.sum(r.null.values >= r.statistic)) / 200)
        assert r.standard_error == pytest.approx(np.sqrt(r.pvalue * (1 - r.pvalue) / 200))
        assert r.expected_by_chance == pytest.approx(r.null.values.mean())
        assert r.null_sd == pytest.approx(r.null.values.std(ddof=1))
        assert r.excess == pytest.approx(r.statistic - r.expected_by_chance)
        assert r.null.quantile(0.5) == pytest.approx(np.median(r.null.values))
        assert (r.method, r.alternative, r.n_resamples, r.n_failed) == ("monte-carlo", "greater", 199, 0)
        statistic, pvalue = r
        assert (statistic, pvalue) == (r.statistic, r.pvalue)
        assert "MonteCarloResult(statistic=" in repr(r)

    def test_two_sided_is_twice_the_smaller_tail(self):
        y, c = sample(80, 27, over_confident)
        one = {a: cal.test("bs", y, c, n_resamples=99, rng=0, alternative=a).pvalue for a in ("greater", "less")}
        assert cal.test("bs", y, c, n_resamples=99, rng=0).pvalue == min(1.0, 2 * min(one.values()))

    def test_asymptotic_and_monte_carlo_are_offered_side_by_side(self):
        y, c = sample(300, 28, over_confident)
        own = cal.test("ks", y, c)
        assert cal.test("ks", y, c, method="asymptotic").pvalue == own.pvalue
        drawn = cal.test("ks", y, c, method="monte-carlo", n_resamples=999, rng=0)
        assert drawn.statistic == own.statistic
        assert abs(drawn.pvalue - own.pvalue) < 0.05
        assert len(cal.test("ks", y[:20], c[:20], method="monte_carlo", rng=0).null.values) == 9999

    def test_a_calibration_map_moves_the_distribution(self):
        _, c = sample(300, 29)
        plain = cal.expected_by_chance("ece", None, c, n_resamples=50, rng=0)
        moved = cal.expected_by_chance("ece", None, c, n_resamples=50, rng=0, calibration_map=over_confident)
        assert moved.mean > plain.mean + 0.02
        around = cal.expected_by_chance(
            "ece", None, c, n_resamples=50, rng=0, method="consistency", calibration_map=over_confident
        )
        assert around.mean == pytest.approx(moved.mean, rel=0.2)
        with pytest.raises(ValueError, match="calibration_map returned shape"):
            cal.expected_by_chance("ece", None, c, calibration_map=lambda c: c[:5])
        with pytest.raises(ValueError, match="in \\[0, 1\\]"):
            cal.expected_by_chance("ece", None, c, calibration_map=lambda c: 2 * c)
        with pytest.raises(TypeError, match="calibration_map=3"):
            cal.expected_by_chance("ece", None, c, calibration_map=3)

    def test_multi_class_labels_are_drawn_before_the_lens(self):
        p = multi(50, 4)[1]
        null = cal.expected_by_chance("ks", None, p, lens="pairwise", n_resamples=3, rng=1)
        rng = generator(1, "labels")
        for value in null.values:
            labels = drawn_labels(rng.random(50), p)
            assert value == pytest.approx(cal.compute("ks", labels, p, lens="pairwise"))

    def test_options_that_only_the_own_test_knows_are_refused(self):
        y, c = sample(100, 30)
        with pytest.raises(ValueError, match=r"alpha=0.1 has no effect with method='monte-carlo'"):
            cal.test("tcal", y, c, method="monte-carlo", alpha=0.1)

    def test_failures_are_left_out_of_the_pvalue(self):
        values = np.array([[1.0], [np.nan], [3.0]])
        from calibrary.inference.draw.null import pvalues

        assert pvalues(np.array([2.0]), values, "greater")[0] == pytest.approx(2 / 3)


# -- comparison --------------------------------------------------------------------------------------


class TestCompare:
    def test_pvalue_and_interval_agree(self):
        for seed in range(12):
            y, c = sample(80, seed, over_confident)
            for kind in ("basic", "percentile"):
                r = cal.compare("bs", y, c, second_model(c), interval=kind, n_resamples=199, rng=seed)
                if abs(r.pvalue - 0.05) > 0.02:
                    assert (r.pvalue < 0.05) == (r.low > 0 or r.high < 0)

    def test_replicates_draw_the_same_rows_for_both(self):
        y, c = sample(50, 31)
        r = cal.compare("bs", y, c, second_model(c), n_resamples=50, rng=0)
        a = cal.interval("bs", y, c, n_resamples=50, rng=0, method="basic").draws
        b = cal.interval("bs", y, second_model(c), n_resamples=50, rng=0, method="basic").draws
        assert r.standard_error == pytest.approx(np.std(a - b, ddof=1))
        assert r.value == pytest.approx(r.value_a - r.value_b)

    def test_a_model_against_itself_is_no_different(self):
        y, c = sample(50, 32)
        for method in ("bootstrap", "swap", "paired-t"):
            r = cal.compare("bs", y, c, c, method=method, n_resamples=20, rng=0)
            assert (r.value, r.pvalue) == (0.0, 1.0)

    def test_paired_t_is_students_test_of_the_row_losses(self):
        from scipy import stats

        y, c = sample(70, 33)
        b = second_model(c)
        r = cal.compare("bs", y, c, b, method="paired-t")
        theirs = stats.ttest_rel((y - c) ** 2, (y - b) ** 2)
        assert r.pvalue == pytest.approx(theirs.pvalue, rel=1e-9)
        assert (r.low, r.high) == pytest.approx(tuple(theirs.confidence_interval()), rel=1e-9)
        w = 1 + np.arange(70) % 3
        weighted = cal.compare("bs", y, c, b, method="paired-t", sample_weight=w)
        repeated = cal.compare("bs", np.repeat(y, w), np.repeat(c, w), np.repeat(b, w), method="paired-t")
        assert weighted.pvalue == pytest.approx(repeated.pvalue, rel=1e-9)
        with pytest.raises(ValueError, match="needs a mean of row losses, which ecce_mad is not"):
            cal.compare("ks", y, c, b, method="paired-t")
        with pytest.raises(ValueError, match="is not a plain mean of row losses"):
            cal.compare(
                "bs", *multi(40, 3), multi(40, 3, seed=1)[1], method="paired-t", lens="class-wise", average="max"
            )

    def test_several_models_are_compared_in_pairs_and_adjusted_by_holm(self):
        y, c = sample(100, 34)
        models = {"raw": c, "half": 0.5 + 0.5 * (c - 0.5), "const": np.full(100, 0.5)}
        found = cal.compare("bs", y, models, n_resamples=99, rng=0)
        assert [(r.a, r.b) for r in found] == [("raw", "half"), ("raw", "const"), ("half", "const")]
        assert [r.pvalue_adjusted for r in found] == pytest.approx(
            cal.adjust_pvalues([r.pvalue for r in found], "holm")
        )
        assert found[0].value + found[2].value == pytest.approx(found[1].value)
        with pytest.raises(ValueError, match="1 model was given"):
            cal.compare("bs", y, {"raw": c})

    def test_other_rows_are_two_independent_bootstraps(self):
        y, c = sample(60, 35)
        z, d = sample(40, 36, over_confident)
        r = cal.compare("bs", y, c, d, y_true_b=z, n_resamples=400, rng=0)
        assert r.value == pytest.approx(cal.compute("bs", y, c) - cal.compute("bs", z, d))
        a = cal.interval("bs", y, c, n_resamples=400, rng=1, method="basic").standard_error
        b = cal.interval("bs", z, d, n_resamples=400, rng=2, method="basic").standard_error
        assert r.standard_error == pytest.approx(np.hypot(a, b), rel=0.15)
        with pytest.raises(ValueError, match="use method='bootstrap'"):
            cal.compare("bs", y, c, d, y_true_b=z, method="swap")

    def test_gain_of_a_recalibration_is_before_minus_after(self):
        y, c = sample(300, 37, over_confident)
        gain = cal.compare("bs", y, c, over_confident(c), n_resamples=99, rng=0)
        assert gain.value > 0
        assert gain.low < gain.value < gain.high

    def test_plug_in_errors_come_with_a_caution(self):
        y, c = sample(60, 38)
        with pytest.warns(cal.CalibrationWarning, match="compare by a proper score"):
            r = cal.compare("ece", y, c, second_model(c), method="basic", n_resamples=9, rng=0)
        assert "proper score" in r.note

    def test_swap_with_weights_exchanges_every_copy(self):
        y, c = sample(30, 39)
        w = 1 + np.arange(30) % 2
        b = second_model(c)
        weighted = cal.compare("ks", y, c, b, method="swap", sample_weight=w, n_resamples=30, rng=0)
        repeated = cal.compare(
            "ks", np.repeat(y, w), np.repeat(c, w), np.repeat(b, w), method="swap", n_resamples=30, rng=0
        )
        assert weighted.pvalue == repeated.pvalue

    def test_studentized_differences_of_row_losses_are_students_test_but_for_skewness(self):
        y, c = sample(20, 400)
        b = np.clip(0.9 * c, 0.01, 0.99)
        plain, corrected = (cal.compare("bs", y, c, b, method=m) for m in ("paired-t", "studentized"))
        assert corrected.standard_error == pytest.approx(plain.standard_error, rel=1e-12)
        assert corrected.value == pytest.approx(plain.value, rel=1e-9)
        assert corrected.high - corrected.low == pytest.approx(plain.high - plain.low, rel=0.15)

    def test_missing_or_unknown_arguments_are_refused(self):
        y, c = sample(20, 40)
        with pytest.raises(TypeError, match="y_prob_b is missing"):
            cal.compare("bs", y, c)
        with pytest.raises(TypeError, match="leave y_prob_b out"):
            cal.compare("bs", y, {"a": c, "b": c}, c)
        with pytest.raises(TypeError, match="one mapping of names holds all models: leave sample_weight_b out"):
            cal.compare("bs", y, {"a": c, "b": c}, sample_weight_b=c)
        with pytest.raises(TypeError, match="hold their own labels and weights: leave y_true_b out"):
            cal.compare("bs", cal.predictions(y, c), cal.predictions(y, c), y_true_b=1 - y)
        with pytest.raises(ValueError, match="method='studentized' does not work for ece"):
            cal.compare("ece", y, c, c, method="studentized")
        with pytest.raises(ValueError, match="method='t' is not known"):
            cal.compare("bs", y, c, c, method="t")
        with pytest.raises(ValueError, match="interval='bca' is not known"):
            cal.compare("bs", y, c, c, interval="bca")
        with pytest.raises(ValueError, match="3 values here"):
            cal.compare("ece", *multi(30, 3), multi(30, 3, seed=1)[1], lens="class-wise", average=None)


# -- many metrics at once ----------------------------------------------------------------------------


class TestMany:
    METRICS = ("bs", "ece", "ks", "kuiper")

    def test_evaluation_carries_intervals_and_pvalues_of_shared_draws(self):
        y, c = sample(80, 41, over_confident)
        table = cal.evaluate(
            y, c, metrics=self.METRICS, intervals=True, tests=True, primary="ece", n_resamples=99, rng=0
        )
        alone = cal.interval("ks", y, c, n_resamples=99, rng=0)  # the same seed, and so the same labels
        row = table.row("ecce_mad")
        assert (row.low, row.high) == pytest.approx((alone.low, alone.high))
        assert row.standard_error is None  # the interval was inverted
        assert np.isnan(alone.standard_error)
        drawn = cal.test("ks", y, c, method="monte-carlo", n_resamples=99, rng=0)
        assert row.pvalue == pytest.approx(drawn.pvalue)
        assert row.expected_by_chance == pytest.approx(drawn.expected_by_chance)
        assert row.pvalue_adjusted >= row.pvalue
        first = table.row("ece")
        assert first.primary
        assert first.pvalue_adjusted == first.pvalue

    @pytest.mark.parametrize("adjust", ["holm", "bonferroni", "bh", "by"])
    def test_other_adjustments_are_those_of_the_raw_pvalues(self, adjust):
        y, c = sample(60, 42, over_confident)
        table = cal.evaluate(y, c, metrics=self.METRICS, tests=True, n_resamples=49, rng=0, adjust=adjust)
        raw = [r.pvalue for r in table]
        assert [r.pvalue_adjusted for r in table] == pytest.approx(cal.adjust_pvalues(raw, adjust))
        assert all(r.low is None for r in table)

    def test_a_metric_without_a_null_keeps_its_row(self):
        table = cal.evaluate(detections(), metrics=["bs", "egce"], intervals=True, tests=True, n_resamples=19, rng=0)
        assert table.row("egce").pvalue is None
        assert table.row("egce").low is not None
        assert table.row("bs").pvalue is not None

    def test_everything_at_once_on_a_small_problem(self):
        y, p = multi(60, 3)
        table = cal.evaluate(y, p, metrics=["point", "cumulative"], intervals=True, tests=True, n_resamples=19, rng=0)
        assert all(r.low is not None for r in table)

    def test_unknown_adjustment_is_refused(self):
        y, c = sample(20, 44)
        with pytest.raises(ValueError, match="adjust='fdr' is not known"):
            cal.evaluate(y, c, metrics=["bs"], tests=True, adjust="fdr")


class TestMultiplicity:
    def test_nan_stays_and_does_not_count(self):
        got = cal.adjust_pvalues([0.01, np.nan, 0.04], "bonferroni")
        assert got[0] == 0.02
        assert np.isnan(got[1])

    def test_holm_is_between_raw_and_bonferroni_and_bh_below_holm(self):
        p = np.random.default_rng(0).random(20) ** 2
        holm, bonferroni = cal.adjust_pvalues(p, "holm"), cal.adjust_pvalues(p, "bonferroni")
        bh, by = cal.adjust_pvalues(p, "bh"), cal.adjust_pvalues(p, "by")
        assert ((p <= holm) & (holm <= bonferroni) & (bh <= holm) & (bh <= by)).all()

    def test_bad_pvalues_are_refused(self):
        with pytest.raises(ValueError, match=r"pvalues\[1\] = 1.2 is outside"):
            cal.adjust_pvalues([0.1, 1.2])
        with pytest.raises(ValueError, match="method='sidak' is not known"):
            cal.adjust_pvalues([0.1], "sidak")
        with pytest.raises(ValueError, match="2 dimensions"):
            cal.adjust_pvalues([[0.1]])

    def test_min_p_is_the_literal_definition(self):
        rng = np.random.default_rng(1)
        values, observed = np.round(rng.normal(size=(40, 3)), 1), np.array([1.5, 0.2, -1.0])
        tails = ["greater", "less", "two-sided"]
        raw, adjusted = step_down_min_p(observed, values, tails)
        table = np.vstack([observed, values])

        def share(j, b):
            up, down = np.mean(table[:, j] >= table[b, j]), np.mean(table[:, j] <= table[b, j])
            return {"greater": up, "less": down, "two-sided": min(1.0, 2 * min(up, down))}[tails[j]]

        p = np.array([[share(j, b) for j in range(3)] for b in range(41)])
        assert raw == pytest.approx(p[0])
        order = np.argsort(raw)
        expected, top = {}, 0.0
        for k, j in enumerate(order):
            hits = np.sum(p[1:, order[k:]].min(axis=1) <= raw[j])
            top = max(top, (1 + hits) / 41)
            expected[j] = top
        assert adjusted == pytest.approx([expected[j] for j in range(3)])

    def test_missing_replicates_are_never_extreme(self):
        ranks = rank_pvalues(np.array([1.0]), np.array([[2.0], [np.nan], [0.5]]), ["greater"])
        assert ranks[:, 0] == pytest.approx([2 / 3, 1 / 3, 1.0, 1.0])


# -- infinite values ---------------------------------------------------------------------------------


@pytest.fixture
def strict():
    """Turn numpy's warnings into errors; calibrary's own warnings are not tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        yield


def certain(n=60, seed=50):
    """Predictions of which one was certain and wrong: its log loss is infinite."""
    y, c = sample(n, seed)
    return np.append(y, 1), np.append(c, 0.0)


@pytest.mark.usefixtures("strict")
class TestInfinities:
    def test_a_table_of_a_model_that_is_certain_and_wrong(self):
        y, p = cal.datasets.breast_cancer()[:2]
        names = ["point", "hl", "ece"]
        table = cal.evaluate(y, p, intervals=True, tests=True, metrics=names, n_resamples=39, rng=0)
        assert table["nll"] == np.inf
        for row in table:
            assert row.pvalue is None or 0.025 <= row.pvalue <= row.pvalue_adjusted <= 1.0
        # far worse than chance, as is every metric that has a value
        assert table.row("nll").pvalue == 0.05
        assert table.row("ece").pvalue_adjusted == 0.025
        # dss has no value here: the others are as they would be without it
        some = cal.evaluate(y, p, tests=True, metrics=["bs", "ece", "nll"], n_resamples=39, rng=0)
        more = cal.evaluate(y, p, tests=True, metrics=["bs", "ece", "nll", "dss"], n_resamples=39, rng=0)
        assert np.isnan(more["dss"])
        assert more.row("dss").pvalue is None
        assert [more.row(r.id).pvalue_adjusted for r in some] == [r.pvalue_adjusted for r in some]

    def test_infinite_statistics_and_replicates_are_ranked(self):
        inf, values = np.inf, np.array([1.0, 2.0, np.inf, np.inf, -np.inf])
        null = cal.inference.NullDistribution(values, "monte-carlo")
        assert null.pvalue(inf) == pytest.approx(3 / 6)
        assert null.pvalue(-inf) == pytest.approx(1.0)
        assert null.pvalue(-inf, "less") == pytest.approx(2 / 6)
        assert null.pvalue(1.5) == pytest.approx(4 / 6)
        assert null.quantile([0.0, 0.5, 0.6, 1.0]) == pytest.approx([-inf, 2.0, inf, inf])
        assert np.isnan(null.mean)
        assert np.isnan(null.sd)
        ranks = rank_pvalues(np.array([inf]), values[:, None], ["greater"])
        assert ranks[:, 0] == pytest.approx(np.array([3, 5, 4, 3, 3, 6]) / 6)

    def test_a_metric_without_a_value_leaves_the_others_alone(self):
        rng = np.random.default_rng(0)
        observed, values = np.array([2.2, 1.9, 0.3]), rng.normal(size=(99, 3))
        raw, adjusted = step_down_min_p(observed, values, ["greater"] * 3)
        for broken, column in [
            (np.nan, rng.normal(size=99)),
            (0.0, np.full(99, np.nan)),
            (np.nan, np.full(99, -np.inf)),
        ]:
            more = step_down_min_p(np.append(observed, broken), np.column_stack([values, column]), ["greater"] * 4)
            for got, expected in zip(more, (raw, adjusted), strict=True):
                assert got[:3].tolist() == expected.tolist()
                assert np.isnan(got[3])

    def test_failed_redraws_never_make_an_adjusted_pvalue_smaller_than_the_raw_one(self):
        values = np.random.default_rng(1).normal(size=(99, 2))
        values[5:, 1] = np.nan
        raw, adjusted = step_down_min_p(np.array([0.0, 9.0]), values, ["greater"] * 2)
        assert raw[1] == pytest.approx(1 / 6)
        assert (adjusted >= raw).all()

    @pytest.mark.parametrize("method", ["basic", "percentile", "bc", "bca", "normal"])
    def test_an_infinite_estimate_has_no_finite_interval(self, method):
        y, c = certain()
        r = cal.interval("nll", y, c, method=method, n_resamples=99, rng=0)
        assert r.value == np.inf
        assert not np.isfinite(r.high)
        assert np.isnan(r.standard_error)
        if method in ("basic", "normal", "bca"):
            assert np.isnan(r.low)
        # a third of the replicates miss the infinite row
        assert 0.2 < np.isfinite(r.draws).mean() < 0.5
        assert r.n_failed == 0

    def test_an_infinite_statistic_is_tested_by_its_rank(self):
        y, c = certain()
        assert cal.test("nll", y, c, method="monte-carlo", n_resamples=99, rng=0).pvalue == pytest.approx(0.02)
        r = cal.test("nll", y, c, method="monte-carlo", n_resamples=99, rng=0, alternative="less")
        assert r.pvalue == 1.0
        assert r.excess == np.inf

    def test_models_with_infinite_values_are_compared_as_far_as_they_can_be(self):
        y, c = certain()
        shrunk = 0.1 + 0.8 * c
        one = cal.compare("nll", y, c, shrunk, n_resamples=49, rng=0)
        assert one.value == np.inf
        assert 0.0 < one.pvalue <= 1.0
        both = cal.compare("nll", y, c, np.where(c > 0, shrunk, 0.0), n_resamples=49, rng=0)
        assert np.isnan(both.value)
        assert np.isnan(both.pvalue)
        assert np.isnan(cal.compare("nll", y, c, c, method="swap", n_resamples=49, rng=0).pvalue)
        assert np.isnan(cal.compare("nll", y, c, c, y_true_b=y, n_resamples=49, rng=0).pvalue)
        with pytest.raises(ValueError, match="nll of y_prob_a is infinite on some row"):
            cal.compare("nll", y, c, shrunk, method="paired-t")

    def test_huge_replicates_overflow_silently(self):
        values = np.array([[1e308], [-1e308], [3.0]])
        _, high = bootstrap.ends(np.array([1e308]), values, "basic", 0.9)
        assert high[0] == np.inf
        assert np.isinf(resampling.standard_errors(values)[0])


# -- detections --------------------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("entry", DETECTION, ids=lambda e: e.id)
def test_detection_metrics_resample_images_and_redraw_outcomes(entry):
    found = detections()
    result = cal.interval(entry.id, found, n_resamples=6, rng=0, method="basic")
    assert np.isfinite(np.atleast_1d(result.draws)).any()
    if entry.fixed is None and entry.weights == "repetition":
        rng = generator(0, "rows")
        for value in result.draws:
            counts = np.bincount(rng.integers(0, found.n_images, found.n_images), minlength=found.n_images)
            assert value == pytest.approx(entry(found.reweighted(counts)), rel=1e-9, nan_ok=True)
    if not entry.null:
        with pytest.raises(ValueError, match="has no null distribution"):
            cal.test(entry.id, found, method="monte-carlo", n_resamples=3)
        return
    drawn = cal.test(entry.id, found, method="monte-carlo", n_resamples=4, rng=1)
    rng = generator(1, "labels")
    for value in drawn.null.values:
        assert value == pytest.approx(
            entry(found.null_draw(rng, "threshold" if entry.link == "option" else entry.link)), rel=1e-9, nan_ok=True
        )


@quiet
def test_classifier_metrics_of_detections_resample_images_too():
    found = detections()
    result = cal.interval("ece", found, n_resamples=5, rng=0, method="basic")
    rng = generator(0, "rows")
    expected = []
    for value in result.draws:
        counts = np.bincount(rng.integers(0, found.n_images, found.n_images), minlength=found.n_images)
        assert value == pytest.approx(cal.compute("ece", found.reweighted(counts)), rel=1e-9)
        expected.append(cal.compute("ece", found.reweighted(counts), lens="class-wise"))
    got = cal.interval("ece", found, lens="class-wise", n_resamples=5, rng=0, method="basic")
    assert got.draws == pytest.approx(expected, rel=1e-9)
    table = cal.evaluate(found, metrics=["ece", "d_ece", "laece"], intervals=True, tests=True, n_resamples=19, rng=0)
    assert all(row.low is not None and row.pvalue is not None for row in table)


@quiet
def test_two_detectors_are_compared_on_the_same_images():
    a = detections(0)
    b = a.with_probability(a.score**1.5)
    r = cal.compare("d_ece", a, b, method="basic", n_resamples=9, rng=0)
    assert r.value == pytest.approx(cal.compute("d_ece", a) - cal.compute("d_ece", b))
    with pytest.raises(ValueError, match="different images"):
        cal.compare("d_ece", a, detections(1, n_images=9), n_resamples=9)


# -- frozen options ----------------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.fixed and e.id not in PAIRS], ids=lambda e: e.id)
def test_frozen_options_are_chosen_on_the_original_rows_and_kept(entry):
    for y, p, kw in problems(entry):
        view = cal.predictions(y, p)
        views = view.through(entry.lens_for(view, Question())).views
        chosen = entry.fixed(views[0], **kw)
        assert chosen
        if len(views) == 1:
            result = cal.interval(entry.id, y, p, method="basic", n_resamples=4, rng=5, **kw)
            rng = generator(5, "rows")
            drawn = [rng.integers(0, len(y), len(y)) for _ in range(4)]
            same(
                result.draws,
                [literal(entry, y[i], p[i], {**rows(kw, i), **rows(chosen, i)}) for i in drawn],
                entry,
            )


@quiet
@pytest.mark.parametrize("id", ["bkde", "dkde"])
@pytest.mark.parametrize(("bandwidth", "times"), [("loo-mle", 2), ("cv", 6)])
def test_widths_that_redrawn_labels_do_not_change_are_chosen_once(id, bandwidth, times, monkeypatch):
    y, c = sample(60, 5)
    rng = generator(0, "labels")
    drawn = [drawn_labels(rng.random(60), c) for _ in range(5)]
    expected = [cal.compute(id, labels, c, bandwidth=bandwidth) for labels in drawn]
    chosen = []
    original = cal.kernels.beta_bandwidth

    def counted(width, *args, **kw):
        chosen.extend([width] if isinstance(width, str) else [])
        return original(width, *args, **kw)

    for module in (sys.modules["calibrary.metrics.kernel.vector"], sys.modules["calibrary.metrics.kernel.vector"]):
        monkeypatch.setattr(module, "beta_bandwidth", counted)
    r = cal.test(id, y, c, bandwidth=bandwidth, method="monte-carlo", n_resamples=5, rng=0)
    assert r.null.values == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert len(chosen) <= times


@quiet
@pytest.mark.parametrize("lens", ["pairwise", "class-wise", "top-label"])
def test_redrawn_labels_with_several_classes_give_the_metric_of_those_labels(lens):
    y, p = multi(40, 3)
    rng = generator(0, "labels")
    drawn = [drawn_labels(rng.random(len(y)), p) for _ in range(4)]
    expected = [cal.compute("bkde", labels, p, lens=lens) for labels in drawn]
    r = cal.test("bkde", y, p, lens=lens, method="monte-carlo", n_resamples=4, rng=0)
    assert r.null.values == pytest.approx(expected, rel=1e-9, abs=1e-12)


@quiet
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_bandwidth_of_detections_is_chosen_once(average):
    found = detections()
    entry = cal.catalogue["l1cbod"]
    views = views_of(entry, found, Question(average=average))
    chosen = {key: entry.fixed(view) for key, view in zip(views.keys, views.views, strict=True)}
    question = Question(average=average, fixed=chosen)
    assert all(chosen.values())
    assert measure(entry, found, question) == pytest.approx(entry(found, average=average))
    result = cal.interval("l1cbod", found, average=average, n_resamples=4, rng=0, method="basic")
    rng = generator(0, "rows")
    for value in result.draws:
        counts = np.bincount(rng.integers(0, found.n_images, found.n_images), minlength=found.n_images)
        assert value == pytest.approx(measure(entry, found.reweighted(counts), question), rel=1e-9)


# -- level and coverage ------------------------------------------------------------------------------


@quiet
def test_monte_carlo_tests_keep_their_level_and_min_p_the_family_wise_error():
    rng = np.random.default_rng(1)
    raw, adjusted, runs = [], [], amount(60, 150)
    for _ in range(runs):
        c = rng.beta(0.8, 0.8, 60)
        y = (rng.random(60) < c).astype(int)
        table = cal.evaluate(y, c, metrics=("ece", "ks", "kuiper", "mce"), tests=True, n_resamples=59, rng=rng)
        raw.append([r.pvalue for r in table])
        adjusted.append([r.pvalue_adjusted for r in table])
    each = (np.array(raw) <= 0.05).sum(axis=0)
    assert (each <= most(runs, 0.05)).all()
    family, unadjusted = (np.array(adjusted) <= 0.05).any(axis=1).mean(), (np.array(raw) <= 0.05).any(axis=1).mean()
    assert family <= most(runs, 0.05) / runs
    assert family < unadjusted


@quiet
def test_coverage_is_good_for_proper_scores_and_poor_where_the_documentation_says_so():
    rng = np.random.default_rng(2)
    true_brier = 0.8 * 0.8 / (1.6 * 2.6)  # E c(1-c) of Beta(.8, .8): calibrated
    covered = {"brier": [], "percentile": [], "basic": []}
    for _ in range(60):
        c = rng.beta(0.8, 0.8, 300)
        y = (rng.random(300) < c).astype(int)
        low, high = cal.interval("bs", y, c, n_resamples=99, rng=rng, method="basic")
        covered["brier"].append(low <= true_brier <= high)
        for method in ("percentile", "basic"):
            low, high = cal.interval("ks", y, c, method=method, n_resamples=99, rng=rng)
            covered[method].append(low <= 0.0 <= high)
    share = {name: np.mean(values) for name, values in covered.items()}
    assert share["brier"] >= 0.85
    assert share["percentile"] == 0.0
    assert 0.6 <= share["basic"] < 1.0


def test_several_numbers_of_which_none_varies_have_a_p_value():
    # sets of all classes hold every label: coverage 1, size 2 and gap 0 in every redraw
    found = cal.test("set_coverage", np.ones(40, dtype=int), np.full(40, 0.32), n_resamples=19, rng=0)
    assert np.all(found.null_sd == 0.0)
    assert found.pvalue == 1.0
