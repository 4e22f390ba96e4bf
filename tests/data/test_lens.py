"""Lenses: golden summaries, code matrices, and the views that each lens must give."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.data import lens as lenses
from golden import arrays, parts


def _lens(entry):
    params = entry["params"]
    if entry["lens"] == "pairwise":
        return lenses.pairwise(*params["pair"])
    if entry["lens"] == "partition":
        return lenses.partition(params["groups"])
    return lenses.as_lens(entry["lens"], params.get("r"))


@pytest.mark.parametrize("entry", parts("inference", "lens_summary"), ids=lambda e: f"{e['lens']}-{e['data']}")
def test_lens_summary_equals_the_golden_one(entry):
    y, p, _ = arrays(entry["data"])
    (view,) = cal.predictions(y, p).through(_lens(entry)).views
    want = entry["value"]
    assert view.n == want["n"]
    binary = view.binary
    label = np.mean(view.y)
    confidence = view.c.mean() if binary else view.p.mean(axis=0)
    bs = np.mean((view.c - view.y) ** 2) if binary else ((view.p - view.one_hot) ** 2).sum(axis=1).mean()
    found = {"label": label, "confidence": confidence, "bs": bs}
    for key, value in want.items():
        if key != "n":
            got = next(v for k, v in found.items() if k in key or key in k)
            np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("entry", parts("inference", "code_matrix"), ids=str)
def test_code_matrix_equals_the_golden_one(entry):
    got = cal.code_matrix(entry["params"]["k"], entry["params"]["kind"])
    np.testing.assert_array_equal(got, entry["value"])


@pytest.fixture
def problem():
    rng = np.random.default_rng(4)
    return rng.integers(0, 4, 80), rng.dirichlet(np.ones(4), 80)


def bs(y, p, **kw):
    return cal.brier_score(y, p, **kw)


def test_top_label_is_the_first_rank_and_within_top_one(problem):
    want = bs(*problem, lens="top-label")
    assert bs(*problem, lens="rth", r=1) == pytest.approx(want, abs=1e-15)
    assert bs(*problem, lens="within-top-r", r=1) == pytest.approx(want, abs=1e-15)


def test_within_all_classes_is_certain_and_right(problem):
    assert bs(*problem, lens="within-top-r", r=4) == 0.0


def test_one_vs_rest_code_is_class_wise(problem):
    code = lenses.code(cal.code_matrix(4))
    np.testing.assert_allclose(
        bs(*problem, lens=code, average=None), bs(*problem, lens="class-wise", average=None), rtol=1e-12
    )


def test_pairwise_code_is_pairwise(problem):
    code = lenses.code(cal.code_matrix(4, "pairwise"))
    np.testing.assert_allclose(
        bs(*problem, lens=code, average=None), bs(*problem, lens="pairwise", average=None), rtol=1e-12
    )


def test_a_partition_into_single_classes_is_the_full_lens(problem):
    same = lenses.partition([[0], [1], [2], [3]])
    assert bs(*problem, lens=same) == pytest.approx(bs(*problem, lens="full"), abs=1e-15)


@pytest.mark.parametrize("id", ["ecce_mad", "smece", "ici", "hl", "mmce"])
def test_merged_classes_are_looked_at_as_the_metric_always_does(problem, id):
    y, p = problem
    two = lenses.partition([[0, 3], [1, 2]])
    c = p[:, [1, 2]].sum(axis=1)
    assert cal.compute(id, y, p, lens=two) == pytest.approx(cal.compute(id, np.isin(y, [1, 2]), c), rel=1e-9)
    three = lenses.partition([[0], [1], [2, 3]])
    merged = np.column_stack([p[:, 0], p[:, 1], p[:, 2] + p[:, 3]])
    assert cal.compute(id, y, p, lens=three) == pytest.approx(cal.compute(id, np.minimum(y, 2), merged), rel=1e-9)


def test_ranked_all_but_one_keeps_the_score(problem):
    assert bs(*problem, lens="ranked", r=3, scale="sum") == pytest.approx(bs(*problem, scale="sum"), rel=1e-12)


def test_averages(problem):
    values = bs(*problem, lens="class-wise", average=None)
    share = np.bincount(problem[0]) / 80
    assert bs(*problem, lens="class-wise") == pytest.approx(values.mean())
    assert bs(*problem, lens="class-wise", average="macro") == pytest.approx(values.mean())
    assert bs(*problem, lens="class-wise", average="prevalence") == pytest.approx(share @ values)
    assert bs(*problem, lens="class-wise", average="max") == values.max()
    assert bs(*problem, lens="class-wise", average=[2, 0, 0, 2]) == pytest.approx((values[0] + values[3]) / 2)


def test_ties_in_the_top_class_go_to_the_first():
    (view,) = cal.predictions([1, 0], [[0.5, 0.5], [0.5, 0.5]]).through(lenses.as_lens("top-label")).views
    assert view.y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("lens", "sentence"),
    [
        (lenses.partition([[0, 1], [2]]), "exactly once"),
        (lenses.partition([[0, 1, 2, 3]]), "at least two groups"),
        (lenses.rth(5), "outside 1..4"),
        (lenses.code(np.ones((3, 1)) * [[1], [-1], [0]]), "one row per class"),
    ],
)
def test_a_lens_that_does_not_fit_is_refused(problem, lens, sentence):
    with pytest.raises(ValueError, match=sentence):
        bs(*problem, lens=lens)


def test_bad_code_matrices_are_refused():
    with pytest.raises(ValueError, match="needs both"):
        lenses.code([[1], [1]])
    with pytest.raises(ValueError, match="entries -1, 0 and 1"):
        lenses.code([[2], [-1]])


@pytest.mark.parametrize(
    ("average", "sentence"), [("mean", "not known"), ([1, 2], "one weight for each"), ([-1, 1, 1, 1], "negative")]
)
def test_bad_averages_are_refused(problem, average, sentence):
    with pytest.raises(ValueError, match=sentence):
        bs(*problem, lens="class-wise", average=average)


def test_pairs_weigh_by_the_rows_they_have():
    y = np.array([0, 0, 0, 0, 1, 1, 2])
    p = np.full((7, 3), 1 / 3)
    each = cal.brier_score(y, p, lens="pairwise", average=None)
    rows = np.array([6, 5, 3])  # pairs (0, 1), (0, 2), (1, 2)
    assert cal.brier_score(y, p, lens="pairwise", average="prevalence") == pytest.approx(rows @ each / rows.sum())
    uneven = cal.expected_calibration_error(y, p, lens="pairwise", average=None)
    assert np.ptp(uneven) > 0.1
    got = cal.expected_calibration_error(y, p, lens="pairwise", average="prevalence")
    assert got == pytest.approx(rows @ uneven / rows.sum())


def test_brier_through_the_cumulative_lens_is_the_ranked_probability_score():
    y, p, _ = arrays("ordinal5")
    assert bs(y, p, lens="cumulative") == pytest.approx(cal.ranked_probability_score(y, p), rel=1e-13)
    each = [np.mean((p[:, : k + 1].sum(axis=1) - (y <= k)) ** 2) for k in range(4)]
    np.testing.assert_allclose(bs(y, p, lens="cumulative", average=None), each, rtol=1e-12)


def test_the_cumulative_lens_of_two_classes_is_the_first_of_them():
    y, c, _ = arrays("binary500")
    assert cal.compute("ecce_r", y, c, lens="cumulative") == pytest.approx(cal.compute("ecce_r", 1 - y, 1 - c))


def test_the_pooled_lens_writes_every_class_of_every_row_down(problem):
    y, p = problem
    hot = y[:, None] == np.arange(4)
    w = 1.0 + np.arange(len(y)) % 3
    for id in ("ece", "bs", "smece", "ecce_r"):
        want = cal.compute(id, hot.ravel(), p.ravel(), sample_weight=np.repeat(w, 4))
        assert cal.compute(id, y, p, lens="pooled", sample_weight=w) == pytest.approx(want, rel=1e-12)
    groups = np.arange(len(y)) % 3  # extra inputs follow their rows
    assert cal.predictions(y, p).through(lenses.as_lens("pooled")).views[0].align(groups, "groups").tolist() == [
        int(g) for g in np.repeat(groups, 4)
    ]


@pytest.mark.parametrize("lens", ["cumulative", "pooled"])
def test_replicates_through_new_lenses_are_what_their_rows_give(problem, lens):
    y, p = problem
    checked = cal.predictions(y, p)
    checked.through(lenses.as_lens(lens))
    w = (np.arange(len(y)) % 3).astype(float)
    i = np.repeat(np.arange(len(y)), w.astype(int))
    assert cal.compute("ecce_r", checked.reweighted(w), lens=lens) == pytest.approx(
        cal.compute("ecce_r", y[i], p[i], lens=lens), rel=1e-12
    )
    other = (y + 1) % 4
    assert cal.compute("ecce_r", checked.relabeled(other), lens=lens) == pytest.approx(
        cal.compute("ecce_r", other, p, lens=lens), rel=1e-12
    )


@pytest.mark.parametrize("lens", ["class-wise", "pairwise"])
def test_a_resample_weighs_its_views_by_its_own_classes(lens):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), 60)
    y = np.repeat([0, 1, 2], 20)
    w = np.where(y == 0, 5, 1)  # the classes are no longer equally common
    checked = cal.predictions(y, p)
    cal.compute("ece", checked, lens=lens)  # seen before: the resample shares what was sorted
    i = np.repeat(np.arange(60), w)
    for average in ("prevalence", "uniform"):
        got = cal.compute("ece", checked.reweighted(w.astype(float)), lens=lens, average=average)
        assert got == pytest.approx(cal.compute("ece", y[i], p[i], lens=lens, average=average), rel=1e-12)


@pytest.mark.parametrize(("word", "lens"), [("multilabel", "class-wise"), ("ordinal", "cumulative")])
def test_words_for_lenses(problem, word, lens):
    assert bs(*problem, lens=word) == bs(*problem, lens=lens)


def test_a_calibrated_model_is_calibrated_through_every_lens_but_the_one_that_selects_by_label():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([4.0, 1.0, 1.0], 20_000)
    y = (rng.random(20_000)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    plain = ("top-label", "class-wise", "predicted-class", "pairwise", "cumulative", "pooled", "true-class")
    seen = [*({"lens": lens} for lens in plain), {"lens": "rth", "r": 2}, {"lens": "within-top-r", "r": 2}]
    error = {options["lens"]: cal.expected_calibration_error(y, p, **options) for options in seen}
    assert error.pop("true-class") > 0.3
    assert max(error.values()) < 0.03
