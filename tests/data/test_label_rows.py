"""Labels that are not one class per row: shares, rows of shares, several labels at once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.data.predictions import Predictions
from golden import arrays, assert_close, parts
from metric_cases import extra, numbers, same

quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")

#: Metrics of group means and curves: a share y is y right rows and 1 - y wrong ones.
SPLIT = (
    "eo", "oe", "sf1", "ece", "ace", "tace", "ice", "ece_lb", "ece_sweep", "cece", "mce", "mvms", "sice", "esce",
    "sbece", "dece", "pce", "ece_knn", "msce", "sece", "smece", "mmce", "lkce", "skde", "sce", "lsece", "fott_beta",
    "ecce_mad", "ecce_r", "rice", "intce", "ece_averaged", "gce", "gsb", "mdca", "aurc", "augrc", "auroc",
    "rms_calibration_error", "rank_calibration_error", "field_rce", "atb", "decision_loss", "multicalibration_error",
    "multiaccuracy_error",
)  # fmt: skip
#: Metrics of y - c row by row, held to their own soft_target=.
SOFT = ("bs", "rbs", "nll", "mae", "pwe", "l1eps", "hinge", "huber", "silf", "asymmetric_ls", "rps", "sarps")
#: Metrics of a curve that is linear in the labels.
LINEAR = ("ici", "ep", "e50", "e90", "emax", "map_error")
#: Held to their definitions one by one below.
OTHER = ("pls", "general_ls", "e_aurc", "dist_ce", "ent_ce", "rank_cs", "set_coverage")


def shares(n=120, seed=0):
    rng = np.random.default_rng(seed)
    c = np.round(rng.beta(0.8, 0.9, n), 2)
    return np.clip(np.round((c + rng.normal(0, 0.4, n)) * 4) / 4, 0, 1), c


def panel(n=150, k=4, seed=0):
    """Rows of shares, and predictions that are off."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    return rng.multinomial(5, 0.7 * p + 0.3 / k) / 5, p


def test_every_metric_of_shares_is_compared_with_a_reference():
    takes = {e.id for e in cal.catalogue.values() if e.fractional != "no"}
    assert takes <= {*SPLIT, *SOFT, *LINEAR, *OTHER}


@quiet
@pytest.mark.parametrize("id", SPLIT)
def test_a_share_is_that_part_of_a_row_right_and_the_rest_wrong(id, monkeypatch):
    entry = cal.catalogue[id]
    y, c = shares()
    kw = extra(entry, len(y))
    row = np.repeat(np.arange(len(y)), 2)
    part = np.column_stack([y, 1 - y]).ravel()
    kept = part > 0
    twice = {k: v[row] if isinstance(v, np.ndarray) else v for k, v in kw.items()}
    with monkeypatch.context() as patch:
        # the two parts of a row are one row: metrics that ask how many rows there are must not count them as two
        patch.setattr(Predictions, "copies_per_weight", 1.0)
        want = entry(np.tile([1, 0], len(y)), c[row], sample_weight=part, **twice)
    same(entry(y, c, **kw), want, rtol=1e-8)
    assert kept.sum() < 2 * len(y)  # some labels are 0 or 1


@quiet
@pytest.mark.parametrize("id", SOFT)
def test_shares_are_the_soft_target_of_row_scores(id):
    y, c = shares()
    inside = np.clip(c, 0.01, 0.99)
    same(cal.compute(id, y, inside), cal.compute(id, y > 0.5, inside, soft_target=y))
    rows, p = panel()
    same(cal.compute(id, rows, p), cal.compute(id, rows.argmax(axis=1), p, soft_target=rows))
    if id == "hinge":
        same(
            cal.compute(id, rows, p, variant="raw"),
            cal.compute(id, rows.argmax(axis=1), p, soft_target=rows, variant="raw"),
        )


@quiet
@pytest.mark.parametrize("map", ["loess", "lowess"])
def test_a_linear_curve_of_shares_is_the_mean_curve_of_the_votes(map):
    # y is the mean of four votes; a linear smoother may be averaged before or after
    rng = np.random.default_rng(2)
    y, c = shares(300)
    votes = np.array([rng.permutation(4)[:4] < 4 * v for v in y]).T.astype(int)
    np.testing.assert_allclose(votes.mean(axis=0), y)
    curve, *curves = (cal.maps.as_map(map).fit(labels, c).predict(c) for labels in (y, *votes))
    np.testing.assert_allclose(curve, np.mean(curves, axis=0), atol=1e-9)


@quiet
def test_errors_of_the_curve_are_those_of_its_distance_from_the_diagonal():
    y, c = shares(300)
    off = np.abs(cal.maps.as_map("loess").fit(y, c).predict(c) - c)
    assert cal.compute("ici", y, c) == pytest.approx(off.mean(), abs=1e-12)
    assert cal.compute("map_error", y, c) == pytest.approx(off.mean(), abs=1e-12)
    assert cal.compute("emax", y, c) == pytest.approx(off.max(), abs=1e-12)
    for id, level in (("e50", 50), ("e90", 90), ("ep", 90)):
        assert cal.compute(id, y, c) == pytest.approx(np.percentile(off, level), abs=1e-3)


def test_the_other_metrics_of_shares_equal_their_definitions():
    y, c = shares()
    assert cal.compute("general_ls", y, c) == pytest.approx(np.mean((y - c) ** 2))
    assert cal.compute("pls", y, c) == pytest.approx(2 * np.mean((y - c) ** 2) - 1)
    best = cal.compute("aurc", y, y, lens="binary")
    assert cal.compute("e_aurc", y, c, lens="binary") == pytest.approx(cal.compute("aurc", y, c, lens="binary") - best)
    assert cal.compute("e_aurc", y, y, lens="binary") == 0.0


# -- panels: distributions of labels -----------------------------------------------------------------


@pytest.mark.parametrize("id", ["dist_ce", "ent_ce", "rank_cs"])
def test_panels_equal_the_golden_values(id):
    for entry in parts("emerging", id):
        got = cal.compute(id, entry["inputs"]["human"], entry["inputs"]["predicted"])
        assert_close(getattr(got, entry["field"]) if entry["field"] else got, entry)


def test_panels_of_two_classes_are_one_share():
    y, c = shares()
    rows, p = np.column_stack([1 - y, y]), np.column_stack([1 - c, c])
    for id in ("dist_ce", "ent_ce", "rank_cs", "bs", "nll", "ece", "smece"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            same(cal.compute(id, rows, p), cal.compute(id, y, c))
            same(cal.compute(id, y, p), cal.compute(id, y, c))


def test_distance_of_panels_is_half_of_the_absolute_differences():
    rows, p = panel()
    want = np.abs(rows - p).sum(axis=1) / 2
    np.testing.assert_allclose(cal.distribution_calibration_error(rows, p, reduction="none"), want)
    entropy = lambda q: -np.where(q > 0, q * np.log(np.where(q > 0, q, 1)), 0).sum(axis=1)  # noqa: E731
    found = cal.entropy_calibration_error(rows, p, base=2)
    assert found.signed == pytest.approx((entropy(p) - entropy(rows)).mean() / np.log(2))
    assert found.absolute == pytest.approx(np.abs(entropy(p) - entropy(rows)).mean() / np.log(2))


LENSES = [
    ("top-label", None),
    ("class-wise", None),
    ("rth", 2),
    ("within-top-r", 2),
    ("cumulative", None),
    ("pooled", None),
]


@pytest.mark.parametrize(("lens", "r"), LENSES)
@pytest.mark.parametrize("average", ["uniform", "prevalence", "max"])
def test_rows_of_zeros_and_a_one_are_the_class_through_every_lens(lens, r, average):
    y, p, _ = arrays("multi4")
    rows = Predictions((y[:, None] == np.arange(4)).astype(float), p)
    for id in ("ece", "bs", "ecce_r"):
        same(
            cal.compute(id, rows, lens=lens, r=r, average=average),
            cal.compute(id, y, p, lens=lens, r=r, average=average),
        )


def test_the_views_of_shares_through_every_lens():
    rows, p = panel()
    top = p.argmax(axis=1)
    agreed = rows[np.arange(len(rows)), top]
    assert cal.compute("ece", rows, p) == pytest.approx(cal.compute("ece", agreed, p.max(axis=1)))
    each = [cal.compute("ece", rows[:, k], p[:, k]) for k in range(4)]
    np.testing.assert_allclose(cal.compute("ece", rows, p, lens="class-wise", average=None), each)
    assert cal.compute("ece", rows, p, lens="class-wise") == pytest.approx(np.mean(each))
    weighted = np.average(each, weights=rows.mean(axis=0))
    assert cal.compute("ece", rows, p, lens="class-wise", average="prevalence") == pytest.approx(weighted)
    assert cal.compute("bs", rows, p, lens="cumulative") == pytest.approx(cal.compute("rps", rows, p))
    share, c = shares()
    right = np.where(c > 0.5, share, 1 - share)
    assert cal.compute("ece", share, c, lens="top-label") == pytest.approx(
        cal.compute("ece", right, np.maximum(c, 1 - c))
    )


@pytest.mark.parametrize("lens", ["pairwise", "true-class", "predicted-class", "ranked"])
def test_lenses_that_ask_which_class_occurred_are_refused(lens):
    with pytest.raises(ValueError, match=f"lens='{lens}' needs the class that occurred"):
        cal.compute("bs", *panel(), lens=lens, **({"r": 1} if lens == "ranked" else {}))


def test_weight_two_is_the_share_written_twice():
    y, c = shares()
    w = np.arange(len(y)) % 4
    i = np.repeat(np.arange(len(y)), w)
    for id in ("ece", "bs", "smece", "ecce_r", "aurc", "mmce"):
        same(cal.compute(id, y, c, sample_weight=w), cal.compute(id, y[i], c[i]), rtol=1e-8)
    rows, p = panel(120)
    for id in ("bs", "nll", "dist_ce", "ece"):
        same(cal.compute(id, rows, p, sample_weight=w), cal.compute(id, rows[i], p[i]), rtol=1e-8)


def test_intervals_of_shares_and_of_panels():
    y, c = shares()
    found = cal.interval("ece", y, c, n_resamples=99, rng=0)
    assert found.low < found.high
    rows, p = panel()
    for id in ("bs", "dist_ce", "ece"):
        found = cal.interval(id, rows, p, n_resamples=99, rng=0)
        assert np.all(np.asarray(found.low) < np.asarray(found.high))


def test_shares_have_no_p_value():
    y, c = shares()
    for id in ("ece", "bs", "ecce_r"):
        with pytest.raises(ValueError, match="there is no p-value"):
            cal.test(id, y, c)
    with pytest.raises(ValueError, match="there is no p-value"):
        cal.test("ece", y, c, method="consistency")


def test_evaluate_takes_shares_and_says_what_it_leaves_out():
    table = cal.evaluate(*shares(), metrics=["ece", "bs", "spiegelhalter", "dist_ce"])
    assert table["ece"] > 0
    assert "not a label" in table.skipped["spiegelhalter"]
    assert cal.evaluate(*arrays("binary500")[:2], metrics=["dist_ce"]).skipped["dist_ce"] == "needs distributions"


@pytest.mark.parametrize("id", ["spiegelhalter", "hl", "fl", "cis", "stratified_bs", "skce_ul"])
def test_metrics_that_need_the_class_say_so(id):
    y, c = shares()
    i = int(np.flatnonzero((y > 0) & (y < 1))[0])
    with pytest.raises(ValueError, match=rf"y_true\[{i}\] = {y[i]:g} is not a label: {id} needs the class"):
        cal.compute(id, y, c)
    with pytest.raises(ValueError, match=rf"is not a label: {id} needs the class"):
        cal.compute(id, *panel())


def test_options_that_need_zeros_and_ones_are_refused():
    y, c = shares()
    with pytest.raises(ValueError, match="weighted=True needs labels of 0 and 1"):
        cal.compute("mmce", y, c, weighted=True)
    with pytest.raises(ValueError, match="pooling rows into blocks needs labels of 0 and 1"):
        cal.compute("ece", y, c, binning=cal.grouping.BlockPAVA())
    with pytest.raises(ValueError, match="on whole probability vectors needs the class"):
        cal.compute("ece", *panel(), lens="full")


@pytest.mark.parametrize(
    ("y", "p", "sentence"),
    [
        ([0.5, 1.5], [0.2, 0.3], r"y_true\[1\] = 1.5 is neither a class nor a share between 0 and 1"),
        ([0.5, -0.5], [0.2, 0.3], r"y_true\[1\] = -0.5 is neither a class nor a share between 0 and 1"),
        ([0.5, 2.0], [0.2, 0.3], r"y_true\[1\] = 2 is neither a class nor a share between 0 and 1"),
        ([0.5, np.nan], [0.2, 0.3], r"y_true\[1\] = nan"),
        ([0.5, 0.2], [0.0, 1.0], "swapped"),
        ([0.5, 0.2], [[0.1, 0.4, 0.5]] * 2, r"y_true\[0\] = 0.5 is not a label"),
        ([[0.5, 1.5], [0, 1]], [[0.2, 0.3]] * 2, r"y_true\[0, 1\] = 1.5 is not a share"),
        ([[0.5, np.nan], [0, 1]], [[0.2, 0.3]] * 2, r"y_true\[0, 1\] = nan is not a share"),
        ([[0.5, 0.5], [0, 1]], [[0.2, 0.3]] * 2, r"y_prob\[0\] sums to 0.5, not 1"),
        ([[1, 1], [0, 1]], [[0.2, 1.3]] * 2, r"y_prob\[0, 1\] = 1.3 is above 1"),
        ([[1, 1], [0, 1]], [[0.2, np.nan]] * 2, r"y_prob\[0, 1\] = nan"),
        ([["a", "b"], ["a", "b"]], [[0.2, 0.3]] * 2, "contains <U1 values"),
        ([[1, 1, 0], [0, 1, 0]], [[0.2, 0.8]] * 2, "y_true has 2 dimensions"),
    ],
)
def test_labels_that_cannot_be_shares_are_refused(y, p, sentence):
    with pytest.raises(ValueError, match=sentence):
        cal.compute("ece", y, p)


# -- several labels at once --------------------------------------------------------------------------


def several_labels(n=200, k=3, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random((n, k)), 2)
    return (rng.random((n, k)) < p**1.5).astype(int), p


@pytest.mark.parametrize("id", ["ece", "bs", "smece", "ecce_r", "hl", "ici", "auroc", "ce2_db", "spiegelhalter"])
@pytest.mark.parametrize("lens", ["auto", "multilabel", "class-wise"])
def test_every_label_is_a_question_of_its_own(id, lens):
    y, p = several_labels()
    each = [cal.compute(id, y[:, k], p[:, k]) for k in range(3)]
    np.testing.assert_allclose(cal.compute(id, y, p, lens=lens, average=None), each)
    assert cal.compute(id, y, p, lens=lens) == pytest.approx(np.mean(each))
    assert cal.compute(id, y, p, lens=lens, average="max") == pytest.approx(max(each), rel=1e-12)


def test_labels_weigh_by_how_often_they_occur():
    y, p = several_labels()
    each = cal.compute("ece", y, p, average=None)
    assert cal.compute("ece", y, p, average="prevalence") == pytest.approx(np.average(each, weights=y.mean(axis=0)))


def test_several_labels_pooled_are_one_long_problem():
    y, p = several_labels()
    assert cal.compute("ece", y, p, lens="pooled") == cal.compute("ece", y.ravel(), p.ravel())


def test_rows_that_do_not_sum_to_one_come_in_with_a_matrix_of_labels():
    y, p, _ = arrays("multi4")
    hot = (y[:, None] == np.arange(4)).astype(int)
    unnormalised = np.minimum(p * 1.2, 1.0)
    each = [cal.compute("ece", hot[:, k], unnormalised[:, k]) for k in range(4)]
    np.testing.assert_allclose(cal.compute("ece", hot, unnormalised, average=None), each)
    with pytest.raises(ValueError, match="sums to 1"):
        cal.compute("ece", y, unnormalised)


def test_several_labels_are_tested_one_by_one():
    y, p = several_labels()
    both = cal.test("spiegelhalter", y, p)
    each = [cal.test("spiegelhalter", y[:, k], p[:, k]).pvalue for k in range(3)]
    assert both.pvalue == pytest.approx(min(1.0, 3 * min(each)))
    with pytest.raises(ValueError, match="test each by itself"):
        cal.test("ece", y, p)
    found = cal.interval("ece", y, p, n_resamples=99, rng=0)
    assert found.low < found.high


@pytest.mark.parametrize("lens", ["full", "cumulative", "within-top-r"])
def test_lenses_of_classes_that_exclude_each_other_are_refused(lens):
    with pytest.raises(ValueError, match=r"needs mutually exclusive classes|needs the class that occurred"):
        cal.compute("ece", *several_labels(), lens=lens, **({"r": 2} if lens == "within-top-r" else {}))


def test_names_of_several_labels():
    y, p = several_labels()
    assert cal.predictions(y, p, labels=["cat", "dog", "sky"]).classes == ("cat", "dog", "sky")
    with pytest.raises(ValueError, match="must name each of the 3 columns once"):
        cal.predictions(y, p, labels=["cat", "dog"])


def test_pooled_pairs_are_not_independent_and_have_no_law_of_their_own():
    y, p, _ = arrays("multi4")
    with pytest.raises(ValueError, match="these pairs are not independent"):
        cal.test("spiegelhalter", y, p, lens="pooled")
    assert 0 < cal.test("spiegelhalter", y, p, lens="pooled", method="monte-carlo", n_resamples=49, rng=0).pvalue <= 1


def test_containers_of_shares_and_rows():
    pandas = pytest.importorskip("pandas")
    torch = pytest.importorskip("torch")
    y, c = shares(60)
    want = cal.compute("ece", y, c)
    for made in (y.tolist(), pandas.Series(y), torch.tensor(y), y.astype(np.float32)):
        same(cal.compute("ece", made, c), want)
    rows, p = several_labels(60)
    want = cal.compute("ece", rows, p)
    for made in (rows.tolist(), pandas.DataFrame(rows), torch.tensor(rows), rows.astype(bool), rows.astype(float)):
        same(cal.compute("ece", made, p), want)
    assert numbers(want).shape == (1,)
