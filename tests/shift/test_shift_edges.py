"""Edges of ``under_shift`` and ``shift_curve``: columns by name, rows by index, few target rows, small groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calibrary as cal
from calibrary.base.errors import CalibrationWarning, RefusedError
from calibrary.data.predictions import predictions
from calibrary.shift.shares import LabelWeighting
from calibrary.shift.trend import PairSums
from each import amount

RNG = np.random.default_rng(2)
FAST = {"n_resamples": 99, "rng": 0}


def city(n, share=0.5, rng=RNG):
    y = (rng.random(n) < share).astype(int)
    return y, 1 / (1 + np.exp(-rng.normal(np.where(y, 1.0, -1.0), np.sqrt(2))))


Y, P = city(500)
_, ELSEWHERE = city(400, 0.3)
F = pd.DataFrame({"age": RNG.normal(0, 1, 500), "dose": RNG.normal(5, 2, 500)})
G = pd.DataFrame({"age": RNG.normal(0.3, 1, 400), "dose": RNG.normal(5, 2, 400)})


def covariate(features, target_features, **given):
    made = {"metric": "bs", "y_true": Y, "y_prob": P, "target_prob": ELSEWHERE, "check": False, **FAST, **given}
    return cal.under_shift(assume="covariate", features=features, target_features=target_features, **made)


# -- which rows, which columns -----------------------------------------------------------------------


def test_features_are_matched_by_name():
    expected = covariate(F, G)
    assert covariate(F, G[["dose", "age"]]).weights == pytest.approx(expected.weights, abs=1e-12)
    assert covariate(F.to_numpy(), G.to_numpy()).value == expected.value
    with pytest.raises(RefusedError, match="effective sample size"):  # arrays meet by position
        covariate(F.to_numpy(), G[["dose", "age"]].to_numpy())
    f, g = (table.assign(sex=np.arange(len(table)) % k // 2) for table, k in ((F, 3), (G, 4)))
    expected, order = covariate(f, g).weights, ["sex", "age", "dose"]  # three in turn, unlike two that change places
    for pair in ((f, g[order]), (f[order], g)):
        assert covariate(*pair).weights == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("names", [["age", "weight"], ["age", "age"]])
def test_features_of_other_names_are_refused(names):
    with pytest.raises(
        RefusedError, match=f"features has the columns age, dose and target_features {', '.join(names)}"
    ):
        covariate(F, G.set_axis(names, axis=1))


def test_rows_of_the_target_with_another_index_are_refused():
    with pytest.raises(RefusedError, match="target_features and target_prob have different indexes"):
        covariate(F, G.sample(frac=1, random_state=1), target_prob=pd.Series(ELSEWHERE))
    shifted = G.set_index(G.index + 1000)  # the rows of the target are not those of the source
    assert covariate(F, shifted, y_true=pd.Series(Y), target_prob=pd.Series(ELSEWHERE, index=shifted.index)).n == 500


# -- few rows of the target --------------------------------------------------------------------------


def test_the_interval_covers_for_any_number_of_target_rows():
    """Before, 0, 8, 13 and 14 of 19 intervals contained 1 with 1, 2, 3 and 5 rows. A proportion of 0.95 or more shows
    at least 33 of 38, or 10 of 13, with a probability of 0.99."""
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.95, 1000)
    y = (rng.uniform(size=1000) < p).astype(int)
    for m in (1, 2, 5, 20):
        found = [
            cal.under_shift("oe", y, p, np.random.default_rng(100 + s).uniform(0.05, 0.95, m), check=False, **FAST)
            for s in range(amount(13, 38))
        ]
        assert sum(z.low <= 1.0 <= z.high for z in found) >= amount(10, 33), m
        assert all(z.low <= z.value <= z.high for z in found)


@pytest.mark.parametrize("metric", ["bs", "ece", "oe"])
def test_the_interval_of_many_target_rows_is_that_of_the_resamples(metric):
    """The limits of the shares are inside the bootstrap interval if the source is the smaller set."""
    y, p = city(300, rng=np.random.default_rng(1))
    _, q = city(5000, 0.4, rng=np.random.default_rng(2))
    found = cal.under_shift(metric, y, p, q, **FAST)
    weighting = LabelWeighting.of(predictions(y, p), np.column_stack([1 - q, q]))
    values = [float(cal.compute(metric, y, p, sample_weight=w)) for w in weighting.at_limits(np.arange(2), 0.95)]
    assert found.low < min(values) < found.value < max(values) < found.high


def test_the_limits_are_those_of_clopper_and_pearson():
    """Of 4 target rows none is predicted positive: at most 1 - 0.025^(1/4) of the target is, with 95% confidence."""
    data = predictions(np.repeat([0, 1], 50), np.repeat([0.1, 0.9, 0.1, 0.9], [40, 10, 10, 40]))
    weighting = LabelWeighting.of(data, np.tile([0.9, 0.1], (4, 1)))
    of_class_1 = [w[data.y == 1].sum() / w.sum() for w in weighting.at_limits(np.arange(2), 0.95)]
    most = (1 - 0.025**0.25 - 0.2) / (0.8 - 0.2)  # of predicted shares 0.2 and 0.8 given the classes
    assert sorted(of_class_1) == pytest.approx([0.0, 0.0, most, most], abs=1e-9)


@pytest.mark.parametrize("m", [1, 29])
def test_few_target_rows_are_said_with_their_number(m):
    with pytest.warns(CalibrationWarning, match=f"the target has {m} rows?: .* with fewer than 30"):
        cal.under_shift("bs", Y, P, ELSEWHERE[:m], check=False, **FAST)


def test_weights_from_features_need_two_target_rows_for_each_coefficient():
    with pytest.raises(RefusedError, match="target_prob has 5 rows, and weights from 2 features need at least 6"):
        covariate(F, G[:5], target_prob=ELSEWHERE[:5])
    assert covariate(F, G[:6], target_prob=ELSEWHERE[:6]).n_target == 6
    with pytest.raises(RefusedError, match="weights from 1 feature need at least 4"):
        covariate(None, None, target_prob=ELSEWHERE[:3])


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_enough_target_rows():
    cal.under_shift("bs", Y, P, ELSEWHERE[:30], check=False, **FAST)


def test_a_class_that_the_target_lacks_leaves_the_other_labels_possible():
    """No row is predicted to be of class 1: its share is 0, and calibrated labels of class 1 must remain possible."""
    data = predictions(np.repeat([0, 1], 50), np.repeat([0.1, 0.9, 0.1, 0.9], [40, 10, 10, 40]))
    weighting = LabelWeighting.of(data, np.tile([0.9, 0.1], (10, 1)))
    assert weighting.estimated[0].tolist() == [1.0, 0.0]
    chance, law = weighting.calibrated_at_target(data.p)
    share = np.array([1.0, 0.05]) / 1.05  # half a row of ten
    odds = data.p / (share / 0.5)
    assert chance == pytest.approx(odds / odds.sum(axis=1, keepdims=True))
    assert 0.0 < chance.min() < chance.max() < 1.0
    assert law.sum() == pytest.approx(1.0)


# -- groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", [None, np.nan, pd.NaT, pd.NA])
def test_a_missing_group_is_refused(gone):
    groups = np.array(["a", "b"] * 250, dtype=object)
    groups[3] = gone
    with pytest.raises(RefusedError, match=r"groups\[3\] is missing"):
        cal.shift_curve("bs", Y, P, groups, **FAST)


def test_numbers_are_sorted_as_numbers_whatever_holds_them():
    groups = np.repeat([1, 2, 10], [200, 200, 100])
    for given in (groups, groups.astype(object), pd.Series(groups, dtype="Int64"), groups.tolist()):
        assert cal.shift_curve("bs", Y, P, given, n_resamples=199, rng=0).groups == ("1", "2", "10")


def test_a_group_of_one_row_is_refused():
    with pytest.raises(RefusedError, match="the group b has 1 rows: each group needs at least two"):
        cal.shift_curve("bs", Y, P, ["a"] * 499 + ["b"], **FAST)
    cal.shift_curve("bs", Y, P, ["a"] * 498 + ["b"] * 2, **FAST)


def test_a_permutation_test_never_has_a_p_value_of_zero():
    """Of 8 groups with a perfect order, no drawn order is as steep: the observed one counts as a draw."""
    rng = np.random.default_rng(0)
    place = np.repeat(np.arange(8), 400)
    p = np.full(3200, 0.5)
    y = (rng.random(3200) < 0.5 + 0.06 * place).astype(int)
    pairs = PairSums.of(predictions(y, p), place, 8)
    slope, found = pairs.permutation_test(99, 0)
    assert slope > 0.0
    assert found == pytest.approx(0.01)


def test_a_feature_that_is_the_same_in_every_row_changes_nothing():
    usual = covariate(F, G)
    constant = covariate(F.assign(unit=1.0), G.assign(unit=1.0))
    assert constant.weights == pytest.approx(usual.weights, rel=1e-4)


def test_a_class_without_rows_in_a_draw_has_no_weight():
    weighting = LabelWeighting.of(predictions([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]), np.tile([0.5, 0.5], (4, 1)))
    share, weight = weighting.shares(np.array([0, 0, 1]), np.array([0, 0, 0]), None, np.array([0.5, 0.5]))
    assert weight.tolist() == [share[0], 0.0]
