"""The skill form of scores: against the base rate, through lenses, with weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import d2_brier_score, d2_log_loss_score

import calibrary as cal
from golden import arrays

SCORES = [id for id in cal.catalogue if "skill" in cal.catalogue[id].options]


def test_every_score_of_the_point_family_has_a_skill_form():
    proper = {
        e.id for e in cal.catalogue.values()
        if e.proper in ("strictly", "proper") and e.family == "point" and e.status == "stable"
    }  # fmt: skip
    assert proper - set(SCORES) == {"dss"}  # the best value of dss is minus infinity


@pytest.mark.parametrize("id", SCORES)
def test_the_base_rate_has_none_and_certainty_has_all(id, binary_set):
    y, _ = binary_set
    assert cal.compute(id, y, np.full(len(y), y.mean()), skill=True) == pytest.approx(0.0, abs=1e-12)
    assert cal.compute(id, y, y.astype(float), skill=True) == pytest.approx(1.0)


def test_skill_of_brier_and_log_is_one_minus_the_ratio(binary_set):
    y, c = binary_set
    c = np.clip(c, 0.01, 0.99)
    rate = np.full(len(y), y.mean())
    for id in ("bs", "nll", "rps"):
        want = 1 - cal.compute(id, y, c) / cal.compute(id, y, rate)
        assert cal.compute(id, y, c, skill=True) == pytest.approx(want, rel=1e-12)
    assert cal.brier_score(y, c, skill=True) == pytest.approx(d2_brier_score(y, c))
    assert cal.negative_log_likelihood(y, c, skill=True) == pytest.approx(d2_log_loss_score(y, c))


def test_several_classes_weights_and_lenses():
    y, p, _ = arrays("multi4")
    w = 1.0 + np.arange(len(y)) % 3
    share = np.bincount(y, w) / w.sum()
    base = np.tile(share, (len(y), 1))
    want = 1 - cal.brier_score(y, p, sample_weight=w) / cal.brier_score(y, base, sample_weight=w)
    assert cal.brier_score(y, p, sample_weight=w, skill=True) == pytest.approx(want, rel=1e-12)
    each = [cal.brier_score(y == k, p[:, k], skill=True) for k in range(4)]
    np.testing.assert_allclose(cal.brier_score(y, p, lens="class-wise", average=None, skill=True), each)
    right = p.argmax(axis=1) == y
    assert cal.brier_score(y, p, lens="top-label", skill=True) == pytest.approx(
        cal.brier_score(right, p.max(axis=1), skill=True)
    )


def test_intervals_of_skill_may_go_below_zero(binary_set):
    y, _ = binary_set
    rng = np.random.default_rng(0)
    worse = rng.random(len(y))
    found = cal.interval("bs", y, worse, skill=True, n_resamples=49, rng=0)
    assert found.low < found.value < 0.0
    assert found.value == pytest.approx(cal.brier_score(y, worse, skill=True))


def test_shares_have_skill_too():
    y, c = np.array([0.2, 0.7, 1.0, 0.4]), np.array([0.3, 0.6, 0.9, 0.5])
    want = 1 - np.mean((y - c) ** 2) / np.mean((y - y.mean()) ** 2)
    assert cal.brier_score(y, c, skill=True) == pytest.approx(want)


def test_scores_without_a_skill_version_say_why():
    with pytest.warns(cal.CalibrationWarning, match="all labels are the same"):
        assert np.isnan(cal.brier_score([1, 1], [0.3, 0.8], skill=True))
    with pytest.raises(ValueError, match="skill=True compares means"):
        cal.brier_score([0, 1], [0.3, 0.8], skill=True, reduction="none")
    with pytest.raises(ValueError, match="pass the shares as y_true"):
        cal.brier_score([0, 1], [0.3, 0.8], skill=True, soft_target=[0.2, 0.7])
