"""Abstention and the confidence of language models: golden values, literal definitions, ties, identities."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import calibrary as cal
import definitions
from calibrary.metrics.selective import _distances, _Falling
from golden import arrays, assert_close, call, entries, parts

IDS = ("aurc", "augrc", "e_aurc", "rms_calibration_error")


@pytest.mark.parametrize(
    "entry", [e for e in entries("emerging") if e["id"] in IDS], ids=lambda e: f"{e['id']}-{e['data']}-{e['params']}"
)
def test_value_equals_the_golden_one(entry):
    assert_close(call(entry), entry)


@pytest.mark.parametrize("entry", parts("emerging", "rank_calibration_error"), ids=lambda e: str(e["params"]))
def test_rank_calibration_error_equals_the_inventors_code(entry):
    y, c, _ = arrays(entry["data"])
    assert_close(cal.rank_calibration_error(y, c, n_bins=entry["params"]["n_bins"]), entry)


def answers(n=200, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    c = rng.beta(2.0, 1.0, n)
    y = (rng.random(n) < c**2).astype(int)
    return y, c if decimals is None else np.round(c, decimals)


# -- risk and coverage -------------------------------------------------------------------------------


def over_all_orders(y, c):
    """(AURC, AUGRC): the mean over every order in which tied answers can follow one another."""
    groups = [np.flatnonzero(c == level) for level in sorted(set(c.tolist()), reverse=True)]
    found = []
    for orders in itertools.product(*(itertools.permutations(g) for g in groups)):
        wrong = np.cumsum(1 - y[np.concatenate(orders)])
        k = np.arange(1, len(y) + 1)
        found.append((np.mean(wrong / k), np.mean(wrong / len(y))))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("seed", range(8))
def test_ties_count_by_the_mean_over_their_orders(seed):
    rng = np.random.default_rng(seed)
    y, c = rng.integers(0, 2, 7), rng.integers(0, 3, 7) / 2
    got = [cal.compute(id, y, c, lens="binary") for id in ("aurc", "augrc")]
    np.testing.assert_allclose(got, over_all_orders(y, c), rtol=1e-12)
    np.testing.assert_allclose([definitions.aurc(y, c), definitions.augrc(y, c)], over_all_orders(y, c), rtol=1e-12)


def test_areas_without_ties_are_the_literal_means():
    y, c = answers()
    for id in ("aurc", "augrc"):
        for lens in (None, "binary"):
            found = cal.compute(id, y, c, lens=lens or "auto")
            assert found == pytest.approx(definitions.value(id, y, c, lens=lens), rel=1e-12)


def test_excess_is_the_area_less_that_of_the_best_order():
    y, c = answers(decimals=2)
    assert cal.compute("e_aurc", y, c, lens="binary") == pytest.approx(definitions.e_aurc(y, c), abs=1e-14)
    assert cal.compute("e_aurc", y, y * 0.5 + 0.2, lens="binary") == 0.0


@pytest.mark.parametrize("decimals", [None, 1])
def test_augrc_is_what_accuracy_and_auroc_make_it(decimals):
    y, c = answers(decimals=decimals)
    a, auroc = y.mean(), cal.compute("auroc", y, c)
    want = (1 - auroc) * a * (1 - a) + (1 - a) ** 2 / 2 + (1 - a) / (2 * len(y))
    assert cal.compute("augrc", y, c, lens="binary") == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("decimals", [None, 1])
def test_auroc_is_scikit_learns(decimals):
    y, c = answers(decimals=decimals)
    w = 1.0 + np.arange(len(y)) % 3
    assert cal.compute("auroc", y, c) == pytest.approx(roc_auc_score(y, c), rel=1e-13)
    assert cal.compute("auroc", y, c, sample_weight=w) == pytest.approx(roc_auc_score(y, c, sample_weight=w), rel=1e-13)


def test_auroc_of_one_kind_of_answer_is_undefined_and_says_so():
    with pytest.warns(cal.CalibrationWarning, match="all labels are the same"):
        assert math.isnan(cal.compute("auroc", [1, 1, 1], [0.2, 0.4, 0.9]))


def test_rising_changes_of_confidence_leave_ranks_alone():
    y, c = answers()
    for id in ("aurc", "e_aurc", "augrc", "auroc", "rank_calibration_error"):
        assert cal.compute(id, y, c**3, lens="binary") == cal.compute(id, y, c, lens="binary")


def test_the_top_label_is_the_answer_and_its_probability():
    y, p, _ = arrays("multi4")
    right, confidence = p.argmax(axis=1) == y, p.max(axis=1)
    for id in ("aurc", "augrc", "auroc", "rank_calibration_error", "rms_calibration_error"):
        assert cal.compute(id, y, p) == cal.compute(id, right, confidence, lens="binary")


# -- the error of the leaderboards -------------------------------------------------------------------


def circulating_script(correct, confidence, size):
    """The computation of the leaderboards' script: consecutive bins of sorted answers, without the last bin."""
    order = np.argsort(confidence)
    ends = [*range(size, size * (len(order) // size), size), len(order)]
    total, first = 0.0, 0
    for end in ends[:-1]:
        rows = order[first:end]
        total += (end - first) / len(order) * (confidence[rows].mean() - correct[rows].mean()) ** 2
        first = end
    return math.sqrt(total)


@pytest.mark.parametrize("n", [200, 299, 300, 830])
def test_drop_reproduces_the_circulating_script(n):
    y, c = answers(n, seed=n)
    assert cal.rms_calibration_error(y, c, tail="drop") == pytest.approx(circulating_script(y, c, 100), rel=1e-12)


@pytest.mark.parametrize("size", [37, 100])
def test_with_ties_the_script_is_reproduced_by_cutting_them_in_row_order(size):
    y, c = answers(830, decimals=1)
    got = cal.rms_calibration_error(y, c, tail="drop", ties="cut", bin_size=size)
    assert got == pytest.approx(circulating_script(y, c, size), rel=1e-12)


def test_join_is_ece_of_points_per_bin():
    y, c = answers(830, decimals=2)
    w = 1.0 + np.arange(830) % 3
    same = {"binning": "points", "points_per_bin": 60, "norm": 2}
    assert cal.rms_calibration_error(y, c, bin_size=60) == pytest.approx(
        cal.expected_calibration_error(y, c, **same), rel=1e-13
    )
    assert cal.rms_calibration_error(y, c, bin_size=60, sample_weight=w) == pytest.approx(
        cal.expected_calibration_error(y, c, sample_weight=w, **same), rel=1e-13
    )
    y, p, _ = arrays("multi4")
    assert cal.rms_calibration_error(y, p, bin_size=60, lens="class-wise") == pytest.approx(
        cal.expected_calibration_error(y, p, lens="class-wise", **same), rel=1e-13
    )


def test_dropping_the_tail_hides_over_confidence():
    data = cal.datasets.answers()
    sure = np.where(data.y_prob > 0.7, 0.99, data.y_prob)
    y = data.y_true
    assert cal.rms_calibration_error(y, sure, tail="drop") < 0.7 * cal.rms_calibration_error(y, sure)


def test_one_bin_cannot_be_dropped():
    y, c = answers(150)
    with pytest.warns(cal.CalibrationWarning, match="give only one bin"):
        assert math.isnan(cal.rms_calibration_error(y, c, tail="drop"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tail": "cut"}, "tail='cut' is not known"),
        ({"ties": "drop"}, "ties='drop' is not known"),
        ({"bin_size": 0}, "must be above 0"),
        ({"ties": "cut", "bin_size": 2.5}, "bin_size=2.5 must be a whole number"),
        ({"ties": "cut", "sample_weight": np.full(150, 2.0)}, "does not accept sample_weight"),
    ],
)
def test_invalid_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cal.rms_calibration_error(*answers(150), **options)


# -- ranks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "n_bins"), [(50, 20), (97, 20), (200, 7), (12, 20)])
def test_rank_calibration_error_is_its_definition(n, n_bins):
    y, c = answers(n, seed=n)
    assert cal.rank_calibration_error(y, c, n_bins=n_bins) == pytest.approx(
        definitions.rank_calibration_error(y, c, n_bins), rel=1e-12
    )


def test_places_of_tied_answers_are_added_up_one_by_one():
    rng = np.random.default_rng(3)
    size = rng.integers(1, 6, 9).astype(float)
    before = np.cumsum(size) - size
    rank = rng.random(9) * 30 - 3
    falling = _Falling(size, size * 0, before, before * 0)
    want = [sum(abs(r - (a + k)) for k in range(int(m))) for r, a, m in zip(rank, before, size, strict=True)]
    np.testing.assert_allclose(_distances(falling, rank, np.arange(9)), want, rtol=1e-12)


def test_equal_confidences_stay_in_one_bin():
    y, c = answers(400, decimals=1)
    i = np.random.default_rng(1).permutation(400)
    assert cal.rank_calibration_error(y, c) == pytest.approx(cal.rank_calibration_error(y[i], c[i]), rel=1e-13)
    assert cal.rank_calibration_error([0, 0, 1, 1], [0.2, 0.2, 0.8, 0.8], n_bins=2) == pytest.approx(1 / 6)


def test_rank_calibration_error_does_not_depend_on_the_order_of_weighted_rows():
    """Positions are compared with the rank of a bin: for weights that sum to one, rounding decided."""
    c, w = np.array([0.52, 0.40, 0.54]), np.array([3, 2, 1]) / 6
    found = {round(cal.rank_calibration_error([1, 1, 1], c[i], sample_weight=w[i]), 12) for i in orders(3)}
    assert len(found) == 1


def orders(n):
    return [list(order) for order in itertools.permutations(range(n))]


# -- two classes: the predicted class is judged -------------------------------------------------------


def sure_of_the_predicted_class(y, p):
    """(AURC, AUGRC, the error rate), answer by answer: the class above one half, its probability, its errors."""
    answers = sorted(((p[i], y[i] == 1) if p[i] > 0.5 else (1 - p[i], y[i] == 0)) for i in range(len(y)))[::-1]
    wrong, area, generalized = 0, 0.0, 0.0
    for k, (_, right) in enumerate(answers, start=1):
        wrong += not right
        area += wrong / k
        generalized += wrong / len(y)
    return area / len(y), generalized / len(y), wrong / len(y)


@pytest.mark.parametrize("seed", range(5))
def test_areas_of_two_classes_judge_the_predicted_class(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(80)  # mostly below one half: its errors are not 1 - y
    y = (rng.random(80) < p**2).astype(int)
    area, generalized, error = sure_of_the_predicted_class(y.tolist(), p.tolist())
    assert cal.aurc(y, p) == pytest.approx(area, rel=1e-12)
    assert cal.augrc(y, p) == pytest.approx(generalized, rel=1e-12)
    assert cal.compute("aurc", y, np.column_stack([1 - p, p])) == pytest.approx(area, rel=1e-12)
    assert error < 0.5 < 1 - y.mean()
    figure = cal.plots.risk_coverage(y, p)
    assert (figure.error, figure.aurc) == pytest.approx((error, area))
    assert figure.lens == "top-label"


def test_the_changed_default_is_said_once_and_not_for_a_lens_that_was_named(monkeypatch):
    from calibrary.base import errors

    monkeypatch.setattr(errors, "_SAID", set())
    y, c = answers()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.aurc(y, c, lens="binary")
        cal.report(y, c, metrics=["aurc", "ece"], n_resamples=0)  # a page is no place to say it
    with pytest.warns(cal.CalibrationWarning, match=r"aurc: since 0\.4 .* pass lens='binary'"):
        cal.aurc(y, c)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.aurc(y, c)
        cal.auroc(y, c)
    monkeypatch.setattr(errors, "_SAID", set())
    for called in (cal.plots.risk_coverage, lambda y, c: cal.interval("augrc", y, c, n_resamples=99)):
        with pytest.warns(cal.CalibrationWarning, match=r"judged in data of two classes is the predicted class"):
            called(y, c)
