"""Segments: the worst of all intersections, their names, and p-values that allow for the number of segments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import calibrary as cal
import own
from calibrary.grouping.segments import columns_of, partitions
from calibrary.metrics import segments as module
from calibrary.numerics.draw import generator
from golden import arrays, assert_close, parts, weights_of

quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def thirds(x):
    cuts = np.quantile(x, [1 / 3, 2 / 3])
    return np.searchsorted(cuts, x)


def literally(y, c, columns, depth, min_rows=10):
    """Every segment by itself: (range of the walk, sum of residuals, sum of variances, rows)."""
    found = [np.ones(len(y), dtype=bool)]
    for size in range(1, depth + 1):
        for some in itertools.combinations(columns, size):
            found += [
                np.all([x == v for x, v in zip(some, levels, strict=True)], axis=0)
                for levels in itertools.product(*(np.unique(x) for x in some))
            ]
    out = []
    for rows in found:
        if rows.sum() < min_rows:
            continue
        r, s = (y - c)[rows], c[rows]
        walk = [0.0] + [r[s <= t].sum() for t in np.unique(s)]
        out.append((np.ptp(walk), r.sum(), (s * (1 - s)).sum(), rows.sum()))
    return np.array(out)


def problem(n=700, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    c = rng.beta(1.2, 1.2, n)
    c = c if decimals is None else np.round(c, decimals)
    site = rng.choice(["north", "south", "west"], n)
    age = rng.normal(50, 10, n)
    y = (rng.random(n) < np.where((site == "west") & (age > 55), c**2, c)).astype(int)
    return y, c, {"site": site, "age": age}


@pytest.mark.parametrize("entry", parts("emerging", "multicalibration"), ids=lambda e: e["field"])
def test_golden(entry):
    y, c, columns = arrays("features500")
    result = own.multicalibration_error_test(y, c, by={"x1": columns["x1"], "x2": columns["x2"]}, n_resamples=9)
    got = {"sigma": result.statistic, "mce": result.error}.get(entry["field"], result.unadjusted_pvalue)
    assert_close(got, entry)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("decimals", [None, 1])
def test_values_equal_the_definition(depth, decimals):
    y, c, by = problem(decimals=decimals)
    by["weekday"] = np.arange(len(y)) % 7
    split = [by["site"], thirds(by["age"]), by["weekday"]]
    found = literally(y, c, split, depth)
    sigma = (found[:, 0] / np.sqrt(found[:, 2])).max()
    result = own.multicalibration_error_test(y, c, by=by, depth=depth, n_resamples=9, rng=0)
    assert result.statistic == pytest.approx(sigma, rel=1e-10)
    assert result.n_segments == len(found)
    whole = math.sqrt(found[0, 2]) / len(y)
    assert cal.multicalibration_error(y, c, by=by, depth=depth) == pytest.approx(sigma * whole, rel=1e-10)
    want = np.abs(found[:, 1]).max() / len(y)
    assert cal.multiaccuracy_error(y, c, by=by, depth=depth) == pytest.approx(want, rel=1e-10)
    np.testing.assert_allclose(np.sort(result.table["kuiper"]), np.sort(found[:, 0] / found[:, 3]), rtol=1e-9)


def test_one_segment_is_kuiper():
    y, c, _ = arrays("binary_ties")
    with pytest.warns(cal.CalibrationWarning, match="only the whole data set is tested"):
        got = cal.multicalibration_error(y, c, by=np.arange(len(y)).astype(str))
    assert got == pytest.approx(cal.kuiper_calibration_error(y, c), rel=1e-12)


def test_the_worst_segment_is_named_and_the_table_is_worst_first():
    y, c, by = problem(4000)
    result = own.multicalibration_error_test(y, c, by=by, n_resamples=199, rng=0)
    assert result.worst == result.table["segment"][0]
    assert result.worst.startswith("site = west and age > 5")
    assert result.pvalue == pytest.approx(1 / 200)
    assert (np.diff(result.table["sigma"]) <= 0).all()
    assert (np.diff(result.table["pvalue"]) >= 0).all()
    assert "all rows" in result.table["segment"]
    i = result.table["segment"].index("site = north")
    rows = by["site"] == "north"
    assert result.table["n"][i] == rows.sum()
    assert result.table["mean_label"][i] == pytest.approx(y[rows].mean())
    assert result.table["mean_confidence"][i] == pytest.approx(c[rows].mean())
    assert result.table["excess"][i] == pytest.approx((y - c)[rows].sum() / len(y))


def test_the_p_value_allows_for_the_number_of_segments():
    """On calibrated data the worst of many segments is significant by itself, but not after adjustment."""
    adjusted = alone = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        c = rng.beta(0.8, 0.8, 600)
        y = (rng.random(600) < c).astype(int)
        by = {name: rng.normal(size=600) for name in "abc"}
        result = own.multicalibration_error_test(y, c, by=by, n_resamples=99, rng=seed)
        adjusted += result.pvalue <= 0.05
        alone += result.unadjusted_pvalue <= 0.05
    assert adjusted <= 7
    assert alone >= 12


def test_the_null_is_the_metric_on_redrawn_labels():
    y, c, by = problem(300, decimals=2)
    walks = module._walks(cal.predictions(y, c), by, 2, 3, 10)
    null = walks.redrawn(5, 3, lambda spans, sums: walks.sigma(spans))
    rng, order = generator(3, "labels"), np.argsort(c)
    values = []
    for _ in range(5):
        drawn = np.empty(300, dtype=int)
        drawn[order] = rng.random(300) < c[order]
        values.append(own.multicalibration_error_test(drawn, c, by=by, n_resamples=1).statistic)
    np.testing.assert_allclose(null, np.sort(values), rtol=1e-10)


@pytest.mark.parametrize("decimals", [None, 2])
def test_the_compiled_walks_are_the_same(decimals):
    y, c, by = problem(6000, decimals=decimals)
    walks = module._walks(cal.predictions(y, c), by, 2, 3, 300)
    residual = (np.random.default_rng(0).random((21, 6000)) < np.sort(c)) - np.sort(c)
    spans, sums = walks._side_by_side(residual)
    plain = [split.walks(residual) for split in walks.splits]
    np.testing.assert_allclose(spans, np.hstack([s for s, _ in plain]), atol=1e-9)
    np.testing.assert_allclose(sums, np.hstack([s for _, s in plain]), atol=1e-9)


@quiet
def test_weights_are_repeated_rows_in_cuts_sizes_and_tests():
    y, c, by = problem(400, decimals=2)
    w = weights_of("1+i%3", 400)
    i = np.repeat(np.arange(400), w.astype(int))
    repeated = {name: x[i] for name, x in by.items()}
    for options in ({}, {"min_rows": 60}, {"n_cuts": 5, "depth": 1}):
        weighted = own.multicalibration_error_test(y, c, by=by, sample_weight=w, n_resamples=19, rng=0, **options)
        written = own.multicalibration_error_test(y[i], c[i], by=repeated, n_resamples=19, rng=0, **options)
        assert weighted.statistic == pytest.approx(written.statistic, rel=1e-9)
        assert weighted.n_segments == written.n_segments
        assert sorted(weighted.table["segment"]) == sorted(written.table["segment"])
    with pytest.raises(ValueError, match="whole number"):
        own.multicalibration_error_test(y, c, by=by, sample_weight=w / 7)
    tenth = cal.multicalibration_error(y, c, by=by, sample_weight=w / 10, min_rows=0)
    assert tenth == pytest.approx(cal.multicalibration_error(y, c, by=by, sample_weight=w, min_rows=0), rel=0.2)


def test_redrawn_copies_have_labels_of_their_own():
    y, c, by = problem(200)
    w = np.full(200, 4.0)
    one = own.multiaccuracy_error_test(y, c, by=by, sample_weight=w, n_resamples=400, rng=0)
    i = np.repeat(np.arange(200), 4)
    other = own.multiaccuracy_error_test(y[i], c[i], by={k: v[i] for k, v in by.items()}, n_resamples=400, rng=1)
    assert one.null_high == pytest.approx(other.null_high, rel=0.12)


# -- columns -------------------------------------------------------------------------------------------


def tables():
    by = problem(200)[2]
    yield "mapping", by
    yield "pandas", pytest.importorskip("pandas").DataFrame(by)
    yield "polars", pytest.importorskip("polars").DataFrame(by)
    yield "arrow", pytest.importorskip("pyarrow").table(by)


@pytest.mark.parametrize("kind", ["mapping", "pandas", "polars", "arrow"])
def test_segments_from_any_type_of_table(kind):
    y, c, by = problem(200)
    got = own.multicalibration_error_test(y, c, by=dict(tables())[kind], n_resamples=9, rng=0)
    want = own.multicalibration_error_test(y, c, by=by, n_resamples=9, rng=0)
    assert got.table["segment"] == want.table["segment"]
    assert got.statistic == want.statistic


def test_an_array_is_one_column_or_several():
    y, c, by = problem(200)
    one = own.multicalibration_error_test(y, c, by=by["site"].tolist(), n_resamples=9)
    assert set(one.table["segment"]) == {"all rows", "group = north", "group = south", "group = west"}
    pandas = pytest.importorskip("pandas")
    named = own.multicalibration_error_test(y, c, by=pandas.Series(by["site"], name="site"), n_resamples=9)
    assert "site = north" in named.table["segment"]
    two = np.column_stack([np.arange(200) % 2, np.arange(200) % 3])
    assert own.multicalibration_error_test(y, c, by=two, n_resamples=9).n_segments == 1 + 2 + 3 + 6


def words(by, n=30, **options):
    view = cal.predictions(np.arange(n) % 2, np.full(n, 0.5))
    return [column.words for column in columns_of(by, view, **options)]


def test_the_names_of_segments():
    n = 30
    assert words({"ill": np.arange(n) % 2 == 0}) == [("ill = False", "ill = True")]
    assert words({"stage": np.arange(n) % 3 + 1}) == [("stage = 1", "stage = 2", "stage = 3")]
    assert words({"age": np.arange(n) / 2}) == [("age ≤ 4.5", "4.5 < age ≤ 9.5", "age > 9.5")]
    assert words({"age": np.arange(n)}, n_cuts=2) == [("age ≤ 14", "age > 14")]
    mixed = np.array(["a", 1] * 15, dtype=object)
    assert words({"x": mixed}) == [("x = 1", "x = a")]
    days = np.datetime64("2024-01-01") + np.arange(n)
    assert words({"day": days}, n_cuts=2) == [("day ≤ 2024-01-15", "day > 2024-01-15")]


def test_cuts_are_said_in_as_few_digits_as_tell_them_apart():
    near = np.random.default_rng(0).normal(1000.0, 0.01, 30)
    (said,) = words({"x": near})
    assert len(set(said)) == 3
    assert words({"x": np.linspace(1, 2, 30) / 3}) == [("x ≤ 0.437", "0.437 < x ≤ 0.552", "x > 0.552")]


def test_ties_at_a_cut_stay_together_and_no_part_is_empty():
    x = np.array([0.0] * 25 + list(range(1, 16)), dtype=float)
    view = cal.predictions(np.arange(40) % 2, np.full(40, 0.5))
    (column,) = columns_of({"x": x}, view)
    assert column.words == ("x ≤ 0", "0 < x ≤ 2", "x > 2")
    assert (np.bincount(column.level) > 0).all()
    (column,) = columns_of({"x": -x}, view)  # the largest value holds more than two thirds
    assert len(column.words) == len(np.unique(column.level))


def test_more_cells_than_rows_are_numbered_by_need():
    n = 50
    view = cal.predictions(np.arange(n) % 2, np.full(n, 0.5))
    many = {f"x{j}": (np.arange(n) * (j + 3) % 10).astype(str) for j in range(4)}
    for partition in partitions(columns_of(many, view), view, 4, 2):
        rows = np.bincount(partition.segment, minlength=len(partition.words) + 1)[: len(partition.words)]
        assert (rows >= 2).all()
        for number, said in enumerate(partition.words):
            one = np.flatnonzero(partition.segment == number)
            for part in said.split(" and ") if said != "all rows" else []:
                name, level = part.split(" = ")
                assert (many[name][one] == level).all()


# -- lenses, edges, bad input --------------------------------------------------------------------------


def test_several_classes():
    y, p, _ = arrays("multi4")
    by = np.arange(len(y)) % 3
    each = [cal.multicalibration_error(y == k, p[:, k], by=by) for k in range(4)]
    assert cal.multicalibration_error(y, p, by=by, lens="class-wise") == pytest.approx(np.mean(each))
    result = cal.test("multicalibration_error", y, p, by=by, lens="class-wise", n_resamples=39, rng=0)
    assert len(result.results) == 4
    subset = cal.multicalibration_error(y, p, by=by, lens="predicted-class", average="max")
    assert 0 < subset < 1


def test_certain_segments():
    c = np.array([0.0] * 20 + [0.5] * 20)
    y = np.array([0] * 20 + [0, 1] * 10)
    by = np.repeat(["sure", "unsure"], 20)
    right = own.multicalibration_error_test(y, c, by=by, n_resamples=9, rng=0)
    assert math.isfinite(right.statistic)
    y[0] = 1
    wrong = own.multicalibration_error_test(y, c, by=by, n_resamples=9, rng=0)
    assert wrong.statistic == wrong.error == math.inf
    assert wrong.worst == "group = sure"
    assert wrong.unadjusted_pvalue == 0.0
    assert wrong.pvalue == pytest.approx(0.1)


def test_intervals_and_generic_tests_work():
    y, c, by = problem(400)
    assert cal.interval("multicalibration_error", y, c, by=by, n_resamples=19, rng=0).n_failed == 0
    generic = cal.test("multiaccuracy_error", y, c, by=by, method="monte-carlo", n_resamples=99, rng=0)
    own = cal.test("multiaccuracy_error", y, c, by=by, n_resamples=99, rng=0)
    assert generic.statistic == pytest.approx(own.statistic)
    assert abs(generic.pvalue - own.pvalue) < 0.2


Y, C = [0, 1] * 20, [0.3, 0.6] * 20


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "by is missing: pass the columns"),
        ({"by": {}}, "by contains no column"),
        ({"by": {"site": ["a", "b"]}}, r"by\['site'\] has 2 rows but y_true has 40"),
        ({"by": {"age": [1.0] * 39 + [math.nan]}}, r"by\['age'\] has no value in row 39, .* do not cover every row"),
        ({"by": {"site": ["a", None] * 20}}, r"by\['site'\] has no value in row 1"),
        ({"by": {"x": np.zeros((40, 2))}}, "2 dimensions"),
        ({"by": ["a", "b"] * 20, "depth": 0}, "depth=0"),
        ({"by": ["a", "b"] * 20, "n_cuts": 1}, "n_cuts=1"),
        ({"by": ["a", "b"] * 20, "min_rows": -1}, "min_rows=-1"),
    ],
)
def test_bad_input_gets_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        cal.multicalibration_error(Y, C, **options)


def test_missing_values_of_pandas_and_of_dropped_rows():
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(["a", pandas.NA] * 20, dtype="object")
    with pytest.raises(ValueError, match="row 1"):
        cal.multiaccuracy_error(Y, C, by=column)
    w = np.tile([1.0, 0.0], 20)  # rows that do not count need no segment
    assert cal.multiaccuracy_error(Y, C, by=column, sample_weight=w, min_rows=1) >= 0
    with pytest.raises(ValueError, match="n_resamples=0"):
        own.multiaccuracy_error_test(Y, C, by=["a", "b"] * 20, n_resamples=0)
