"""Groupings: the position of the edges, the group of each row, and refused options."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import calibrary as cal
import definitions
from calibrary.grouping import (
    BlockPAVA,
    CrossValidated,
    Edges,
    EqualArea,
    EqualMass,
    EqualWidth,
    MeanSplit,
    MonotonicSweep,
    PointsPerBin,
    RandomIntervals,
    UniqueValues,
    UserGroups,
    as_grouping,
    group,
)
from calibrary.grouping.cross_validated import FirstValues
from calibrary.grouping.windows import CopyWindows
from golden import arrays, parts
from metric_cases import drawn

DECIMALS = np.round(np.arange(101) / 100, 2)


sample = partial(drawn, truth=lambda c: c**1.3)


def index_of(grouping, c, y=None, w=None):
    return grouping.fit(c, y, w).assign(c)


def test_bin_counts_equal_the_golden_ones():
    for entry in parts("bins_a", "bin_counts"):
        y, c, _ = arrays(entry["data"])
        assert group(cal.predictions(y, c), **entry["params"]).count.tolist() == entry["value"]


# -- equal width ------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("n_bins", [1, 2, 3, 6, 7, 10, 15, 20, 49, 98, 103, 187])
def test_equal_width_edges_are_the_rounded_quotients_to_the_last_bit(n_bins, closed):
    edges = np.arange(n_bins + 1) / n_bins
    c = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1), DECIMALS])
    c = c[(c >= 0) & (c <= 1)]
    if closed == "right":
        expected = np.maximum([(edges < x).sum() - 1 for x in c], 0)
    else:
        expected = np.minimum([(edges <= x).sum() - 1 for x in c], n_bins - 1)
    assert index_of(EqualWidth(n_bins, closed), c).tolist() == expected.tolist()


def test_decimal_confidences_fall_as_exact_fractions_say():
    for n_bins in (5, 10, 20, 25, 50):
        exact = [max(0, -(-Fraction(i, 100) * n_bins // 1) - 1) for i in range(101)]
        assert index_of(EqualWidth(n_bins), DECIMALS).tolist() == exact


def test_equal_width_on_a_range_covers_it_and_refuses_the_rest():
    bins = EqualWidth(2, range=(0.4, 1.0)).fit([0.4, 0.7, 1.0])
    assert bins.edges_.tolist() == [0.4, 0.7, 1.0]
    assert bins.assign([0.4, 0.7, 0.70001, 1.0]).tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match=r"confidence 0\.3 .*outside"):
        EqualWidth(2, range=(0.4, 1.0)).fit([0.3])


# -- equal mass -------------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [None, 2, 1])
@pytest.mark.parametrize("n_bins", [1, 3, 10, 15, 400])
def test_floor_rule_is_the_share_strictly_below(n_bins, decimals):
    _, c = sample(decimals=decimals)
    assert index_of(EqualMass(n_bins), c).tolist() == definitions.equal_mass(c, n_bins).tolist()


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("n", [7, 40, 41, 44])
def test_split_rule_has_the_sizes_of_array_split_and_keeps_ties_with_their_first_member(n, decimals):
    c = sample(n, decimals=decimals)[1]
    assert index_of(EqualMass(10, "split"), c).tolist() == definitions.equal_mass(c, 10, "split").tolist()
    sizes = [len(part) for part in np.array_split(c, 10)]
    assert np.bincount(definitions.array_split_bins(n, 10), minlength=10).tolist() == sizes


@pytest.mark.parametrize("n", [3, 7, 25, 40, 45])
def test_round_rule_cuts_at_the_half_even_rank_and_the_cut_goes_up(n):
    c = sample(n, decimals=2)[1]
    assert index_of(EqualMass(10, "round"), c).tolist() == definitions.equal_mass(c, 10, "round").tolist()


def test_quantile_rule_cuts_where_numpy_does():
    for n in (11, 12, 57, 300):
        c = sample(n)[1]
        np.testing.assert_array_equal(EqualMass(7, "quantile").fit(c).edges_[1:-1], np.quantile(c, np.arange(1, 7) / 7))


@pytest.mark.parametrize("rule", ["floor", "split", "round", "quantile"])
def test_whole_weights_cut_where_repeated_rows_do(rule):
    y, c = sample(120, decimals=2)
    w = 1 + np.arange(120) % 3
    weighted = EqualMass(10, rule).fit(c, y, w)
    repeated = EqualMass(10, rule).fit(np.repeat(c, w))
    np.testing.assert_allclose(weighted.edges_, repeated.edges_, rtol=1e-14)


def test_fractional_weights_cut_by_weight_or_are_refused():
    y, c = sample(60)
    w = np.random.default_rng(1).random(60) + 0.1
    below = np.array([w[c < x].sum() for x in c]) / w.sum()
    np.testing.assert_array_equal(index_of(EqualMass(6), c, y, w), (6 * below + 1e-9).astype(int))
    np.testing.assert_array_equal(index_of(EqualMass(6, "split"), c, y, w), index_of(EqualMass(6), c, y, w))
    with pytest.raises(ValueError, match="whole number"):
        EqualMass(6, "round").fit(c, y, w)


# -- other intervals --------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [None, 1])
def test_points_per_bin_puts_consecutive_points_together(decimals):
    c = sample(47, decimals=decimals)[1]
    assert index_of(PointsPerBin(10), c).tolist() == definitions.points_per_bin(c, 10).tolist()
    assert set(index_of(PointsPerBin(100), c)) == {0}


def test_unique_values_make_one_bin_each():
    c = np.array([0.0, 0.5, 0.5, 1.0, 0.0])
    assert index_of(UniqueValues(), c).tolist() == [0, 1, 1, 2, 0]


@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.parametrize("n_bins", [2, 5, 9])
def test_equal_area_is_the_smallest_area_that_needs_few_enough_bins(n_bins, decimals):
    _, c = sample(60, decimals=decimals)
    w = 1.0 + np.arange(60) % 2
    found = EqualArea(n_bins).fit(c, sample_weight=w)
    want = definitions.equal_area_cuts(np.repeat(c, w.astype(int)), n_bins)
    np.testing.assert_allclose(found.edges_[1:-1], want, rtol=1e-12)
    assert found.n_bins_ <= n_bins


def test_equal_area_with_few_distinct_values_gives_each_its_bin():
    assert index_of(EqualArea(5), np.array([0.2, 0.9, 0.2, 0.0])).tolist() == [1, 2, 1, 0]


def test_random_intervals_are_left_closed_and_shifted():
    bins = RandomIntervals(0.25, shift=0.1).fit([0.5])
    assert bins.assign([0.0, 0.1, 0.34, 0.35, 1.0]).tolist() == [0, 1, 1, 2, 4]


def test_own_edges_must_increase_and_cover():
    with pytest.raises(ValueError, match=r"edges\[1\] = 0\.5 and edges\[2\] = 0\.5 do not increase"):
        Edges([0, 0.5, 0.5, 1])
    with pytest.raises(ValueError, match="at least two"):
        Edges([0.5])
    with pytest.raises(ValueError, match=r"confidence 0\.9 \(row 1\) is outside"):
        cal.expected_calibration_error([0, 1], [0.2, 0.9], edges=[0, 0.5])


# -- sweep, mean split, cross-validation, user groups -------------------------------------------------


@pytest.mark.parametrize("base", ["mass", "width"])
@pytest.mark.parametrize("decimals", [None, 1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_sweep_stops_at_the_first_drop(seed, decimals, base):
    y, c = sample(60, seed, decimals)
    found = MonotonicSweep(base).fit(c, y)
    bins = {"width": definitions.equal_width, "mass": definitions.equal_mass}[base]
    assert bins(c, found.n_bins_).tolist() == definitions.monotonic_sweep(y, c, base).tolist()


def test_sweep_takes_the_finest_bins_when_labels_rise_throughout():
    c = np.array([0.1, 0.2, 0.3, 0.4, 0.4])
    swept = MonotonicSweep().fit(c, [0, 0, 1, 1, 1])
    assert swept.n_bins_ == 5
    assert swept.assign(c).tolist() == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("split", ["mean", "median"])
@pytest.mark.parametrize("decimals", [None, 1])
def test_mean_split_grows_the_tree_of_the_definition(split, decimals):
    rng = np.random.default_rng(3)
    y, c = sample(250, 3, decimals)
    p = rng.dirichlet(np.ones(3), 250)
    for x, given in ((c[:, None], c), (p, p)):
        found = MeanSplit(20, 3, split).fit(given, y % 2)
        index = found.assign(given)
        leaves = definitions.mean_split(x, np.ones(250), 20, 3, split)
        assert len(leaves) == found.n_bins_
        assert all(len(set(index[rows])) == 1 for rows in leaves)


def test_weighted_mean_split_splits_where_repeated_rows_do():
    rng = np.random.default_rng(0)
    p, w = rng.dirichlet(np.ones(3), 40), rng.integers(1, 4, 40)
    c = np.round(p[:, 0], 2)
    for split in ("mean", "median"):
        for x in (c, p):
            # only the root is large enough to be split, so sizes cannot matter
            repeated = MeanSplit(w.sum(), 1, split).fit(np.repeat(x, w, axis=0)).assign(x)
            weighted = MeanSplit(40, 1, split).fit(x, sample_weight=w).assign(x)
            assert set(weighted) == {0, 1}
            np.testing.assert_array_equal(weighted, repeated)


def test_two_columns_split_like_their_second_one():
    y, c = sample(200, decimals=2)
    two = np.column_stack([1 - c, c])
    np.testing.assert_array_equal(MeanSplit(30).fit(two, y).assign(two), MeanSplit(30).fit(c, y).assign(c))


def test_cross_validation_needs_as_many_rows_as_folds():
    with pytest.raises(ValueError, match="cv=10 folds need at least as many rows"):
        CrossValidated().fit([0.1, 0.2], [0, 1])


def test_map_bins_begin_at_their_smallest_confidence():
    c = np.array([0.1, 0.2, 0.4, 0.4, 0.8, 0.9])
    assert FirstValues(3).fit(c).edges_.tolist() == [0.0, 0.4, 0.8, 1.0]
    assert FirstValues(3).fit(c).assign([0.0, 0.39, 0.4, 0.79, 1.0]).tolist() == [0, 0, 1, 1, 2]


def test_user_groups_follow_their_rows_and_must_cover_them():
    y, c = sample(30)
    hospital = np.array(["a", "b", "c"])[np.arange(30) % 3]
    value = cal.expected_calibration_error(y, c, binning=UserGroups(hospital))
    expected = sum(abs((y - c)[hospital == h].sum()) for h in "abc") / 30
    assert value == pytest.approx(expected)
    w = np.arange(30) % 2  # rows of weight 0 take their group with them
    half = cal.expected_calibration_error(y, c, binning=UserGroups(hospital), sample_weight=w)
    keep = w == 1
    assert half == pytest.approx(cal.expected_calibration_error(y[keep], c[keep], binning=UserGroups(hospital[keep])))
    with pytest.raises(ValueError, match="groups has 29 rows but y_true has 30"):
        cal.expected_calibration_error(y, c, binning=UserGroups(hospital[1:]))
    with pytest.raises(ValueError, match=r"groups\[1\] is missing"):
        UserGroups(["a", None, "b"])
    with pytest.raises(ValueError, match=r"groups\[0\] is missing"):
        UserGroups([np.nan, 1.0])


# -- groups -------------------------------------------------------------------------------------------

GROUPINGS = [
    EqualWidth(7), EqualWidth(7, "left"), EqualMass(7), EqualMass(7, "split"), EqualArea(7), PointsPerBin(9),
    UniqueValues(), MonotonicSweep(), MeanSplit(20), Edges([0, 0.3, 1]), RandomIntervals(0.2, 0.05), CrossValidated(),
]  # fmt: skip


@pytest.mark.parametrize("grouping", GROUPINGS, ids=lambda g: type(g).__name__)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", ["sorted", "unsorted"])
def test_every_number_of_a_group_is_that_of_its_rows(grouping, weighted, first):
    y, c = sample(150, decimals=2)
    w = 1.0 + np.arange(150) % 3 if weighted else None
    view = cal.predictions(y, c, sample_weight=w)
    if first == "sorted":
        _ = view.sorted
    found = grouping.groups(view)
    weight = view.weight
    index = grouping.fit(c, y, w).assign(c)
    assert found.position.tolist() == sorted(set(index))
    for b, position in enumerate(found.position):
        rows = index == position
        assert found.count[b] == rows.sum()
        assert (found.index == b).tolist() == rows.tolist()
        assert found.weight[b] == pytest.approx(weight[rows].sum())
        assert found.share[b] == pytest.approx(weight[rows].sum() / weight.sum())
        assert found.confidence[b] == pytest.approx(np.average(c[rows], weights=weight[rows]))
        assert found.label[b] == pytest.approx(np.average(y[rows], weights=weight[rows]))
        assert found.gap[b] == pytest.approx(np.average((y - c)[rows], weights=weight[rows]), abs=1e-14)
        if found.lower is not None:
            assert found.lower[b] <= c[rows].min()
            assert c[rows].max() <= found.upper[b]


@pytest.mark.parametrize("grouping", GROUPINGS[:-1], ids=lambda g: type(g).__name__)
def test_row_order_never_changes_the_groups(grouping):
    y, c = sample(200, 5, decimals=1)
    shuffled = np.random.default_rng(0).permutation(200)
    np.testing.assert_array_equal(
        grouping.fit(c, y).assign(c)[shuffled], grouping.fit(c[shuffled], y[shuffled]).assign(c[shuffled])
    )


@pytest.mark.parametrize("grouping", GROUPINGS, ids=lambda g: type(g).__name__)
def test_one_row_is_one_group(grouping):
    if isinstance(grouping, CrossValidated):
        pytest.skip("does not apply: needs as many rows as folds")
    assert len(grouping.groups(cal.predictions([1], [0.25]))) == 1


def test_grouping_a_view_leaves_the_object_as_it_was():
    grouping = EqualMass(4)
    grouping.groups(cal.predictions([0, 1], [0.2, 0.7]))
    assert not hasattr(grouping, "edges_")


def test_scikit_learn_words_are_understood():
    y, c = sample(100)
    p = cal.predictions(y, c)
    uniform, quantile = group(p, strategy="uniform", n_bins=5), group(p, strategy="quantile", n_bins=5)
    assert uniform.count.tolist() == group(p, "width", n_bins=5).count.tolist()
    assert quantile.count.tolist() == group(p, "mass", mass_rule="quantile", n_bins=5).count.tolist()
    for word, p_of_norm in (("l1", 1), ("l2", 2), ("max", np.inf)):
        assert uniform.gap_norm(word) == uniform.gap_norm(p_of_norm)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"binning": "widht"}, "did you mean 'width'"),
        ({"n_bins": 0}, "n_bins=0 must be a whole number of at least 1"),
        ({"n_bins": 2.5}, "n_bins=2.5 must be a whole number"),
        ({"closed": "both"}, "closed='both' is not known"),
        ({"binning": "mass", "mass_rule": "flor"}, "did you mean 'floor'"),
        ({"binning": "points", "points_per_bin": 0}, "points_per_bin=0 must be above 0"),
        ({"strategy": "kmeans"}, "strategy='kmeans' is not known"),
        ({"norm": 0.5}, "norm=0.5 is not a norm"),
        ({"norm": "l3"}, "norm='l3' is not known"),
        ({"distance": "tvd"}, "did you mean 'tv'"),
    ],
)
def test_unknown_words_and_numbers_are_refused_with_the_remedy(options, message):
    with pytest.raises(ValueError, match=message):
        cal.expected_calibration_error([0, 1, 1], [0.2, 0.4, 0.9], **options)


def test_a_word_and_its_object_are_the_same_grouping():
    assert isinstance(as_grouping("area", n_bins=4), EqualArea)
    assert as_grouping("sweep").base == "mass"
    own = EqualMass(3)
    assert as_grouping(own) is own


@pytest.mark.parametrize(("word", "made"), [("mean-split", MeanSplit), ("pava-bc", BlockPAVA)])
def test_groupings_of_single_metrics_have_names_too(word, made):
    y, p, _ = cal.datasets.breast_cancer()
    assert cal.compute("ece", y, p, binning=word) == cal.compute("ece", y, p, binning=made())
    assert cal.compute("ece", y, p, binning=word) != cal.compute("ece", y, p)


EDGES = [0, 0.1, 0.5, 1]


@pytest.mark.parametrize("name", ["ece", "mce", "ace", "hl"])
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_a_list_of_edges_is_a_binning(name, kind):
    y, p, _ = cal.datasets.breast_cancer()
    by_binning = cal.compute(name, y, p, binning=kind(EDGES))
    assert by_binning == cal.compute(name, y, p, edges=EDGES)
    assert by_binning != cal.compute(name, y, p)


def test_a_list_of_edges_is_a_binning_in_every_verb():
    y, p, _ = cal.datasets.breast_cancer()
    verbs = [
        lambda **bins: cal.interval("ece", y, p, rng=0, **bins).high,
        lambda **bins: cal.test("ece", y, p, rng=0, **bins).statistic,
        lambda **bins: cal.evaluate(y, p, metrics=["ece"], **bins)["ece"],
        lambda **bins: cal.reliability_bins(y, p, **bins).count.tolist(),
        lambda **bins: cal.plots.reliability_data(y, p, interval=False, **bins).count.tolist(),
        lambda **bins: cal.judged("ece", y, p, judge=y, rng=0, **bins).value,
    ]
    for verb in verbs:
        assert verb(binning=np.array(EDGES)) == verb(edges=EDGES)
    listed = cal.compute("tce", y, p, binning=EDGES)
    assert listed == cal.compute("tce", y, p, binning=cal.grouping.Edges(EDGES))


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (
            {"binning": EDGES, "edges": EDGES},
            r"edges= lists the edges of the bins, so binning=\[0, 0.1, 0.5, 1\] has no",
        ),
        ({"binning": EDGES, "n_bins": 10}, "binning= lists the edges of the bins, so n_bins=10 has no effect"),
        ({"edges": EDGES, "n_bins": 10}, "edges= lists the edges of the bins, so n_bins=10 has no effect"),
        ({"edges": EDGES, "binning": "mass"}, "edges= lists the edges of the bins, so binning='mass' has no effect"),
        ({"edges": EDGES, "strategy": "uniform"}, "so strategy='uniform' has no effect"),
        ({"binning": [0, 0.5, 0.1, 1]}, r"binning\[1\] = 0.5 and binning\[2\] = 0.1 do not increase: sort them"),
        ({"binning": [0.5]}, "pass at least two increasing numbers"),
        ({"binning": [0.1, 0.5]}, "is outside binning"),
        ({"binning": ["a", "b"]}, "binning holds"),
    ],
)
def test_listed_edges_are_refused_with_another_choice_of_bins(bins, message):
    y, p, _ = cal.datasets.breast_cancer()
    for call in (cal.ece, cal.reliability_bins, cal.plots.reliability_data, cal.hosmer_lemeshow):
        with pytest.raises(cal.RefusedError, match=message):
            call(y, p, **bins)


def test_windows_of_many_copies_are_those_of_the_listed_copies():
    rng = np.random.default_rng(3)
    for _ in range(60):
        m = int(rng.integers(1, 12))
        c = np.sort(rng.random(m))
        w = rng.integers(1, 60, m).astype(np.float64)
        wy = rng.binomial(w.astype(np.int64), np.where(rng.random(m) < 0.5, c, rng.random(m))).astype(np.float64)
        windows = CopyWindows(c, w, wy, float(rng.integers(1, int(w.sum()) + 1)))
        copies = w.astype(np.int64)
        x, label = np.repeat(c, copies), np.repeat(wy / w, copies)
        size = int(windows.size)
        starts = range(int(windows.number))
        means = [label[s : s + size].mean() for s in starts]
        bins = [abs(mean - x[s : s + size].mean()) for s, mean in zip(starts, means, strict=True)]
        points = [np.abs(mean - x[s : s + size]).mean() for s, mean in zip(starts, means, strict=True)]
        assert windows.mean_error("bin") == pytest.approx(np.mean(bins), abs=1e-12)
        assert windows.mean_error("point") == pytest.approx(np.mean(points), abs=1e-12)
        if len(points) > 1:
            assert windows.mean_error("point", last=False) == pytest.approx(np.mean(points[:-1]), abs=1e-12)
