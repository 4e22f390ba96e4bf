"""Intervals that hold at every row: the bets on which they rest, their widths, and that they keep the truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy

import calibrary as cal
from calibrary.inference.overall import anytime
from calibrary.inference.overall.anytime import LAMBDAS, NUMBERS, Counts, Foreseen, intervals
from calibrary.inference.overall.sequential import ALTERNATIVES, PLAIN, Mixture, changes
from each import amount


def counted(c: np.ndarray, y: np.ndarray) -> Counts:
    x, place = np.unique(c, return_inverse=True)
    n1 = np.bincount(place, y, len(x))
    return Counts(x, np.bincount(place, minlength=len(x)) - n1, n1, float(c.sum()))


def plan_of(c: np.ndarray, rows: int) -> Foreseen:
    x, n = np.unique(c, return_counts=True)
    return Foreseen.of(x, n.astype(float), rows)


def drawn(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    c = np.clip(np.round(rng.beta(1, 2, n), 2), 0.01, 0.99)
    return c, (rng.random(n) < c).astype(float)


def test_no_bet_is_expected_to_grow_whatever_the_probability_is() -> None:
    """exp(lambda w (y - m) - cost) has an expectation of at most 1, over x, w, m and both sides."""
    grown = []
    for x, w, m in itertools.product((0.0, 0.01, 0.3, 0.9), (-2.0, -0.5, 1.0, 3.0), (0.0, 0.005, 0.2, 0.7, 1.0)):
        costs = anytime.row_costs(np.array([w]), np.array([x]))
        for side, sign in enumerate((1.0, -1.0)):
            each = [np.exp(sign * LAMBDAS * w * (y - m) - costs[side, y, 0]) for y in (0, 1)]
            grown.append((1 - m) * each[0] + m * each[1])
    assert np.max(grown) <= 1.0 + 1e-12
    assert np.max(grown) > 0.999  # and some bets lose nearly nothing


def test_the_reach_of_a_mixture_is_where_it_meets_its_bound() -> None:
    rng = np.random.default_rng(1)
    logs, slopes = rng.normal(0, 3, (5, 7)), rng.random(7) + 0.1
    x = Mixture(logs).reach(slopes, np.full(5, 2.5))
    assert Mixture(logs + slopes * x[:, None]).log_e == pytest.approx(np.full(5, 2.5))


def test_widths_at_the_planned_number_of_rows() -> None:
    c, y = drawn(20_000)
    found = {i.name: i for i in intervals(counted(c, y), plan_of(c[:400], 20_000), 0.05)}
    assert set(found) == set(NUMBERS)
    assert all(1.0 < found[name].ratio < 1.7 for name in ("bias", "oe", "offset", "brier", "log_loss"))
    assert 1.0 < found["slope"].ratio < 2.2
    assert found["slope"].value == pytest.approx(cal.compute("cis", y, c).slope, abs=1e-6)
    assert found["offset"].value == pytest.approx(cal.compute("cis", y, c).calibration_in_the_large, abs=1e-6)
    assert found["brier"].value == pytest.approx(cal.brier_score(y, c))
    assert found["ece"].value == pytest.approx(cal.expected_calibration_error(y, c))
    error = 2 * 1.96 * cal.compute("cis", y, c).se_slope
    assert found["slope"].once_high - found["slope"].once_low == pytest.approx(error, rel=0.05)


def test_the_error_of_one_bin_is_the_size_of_the_bias() -> None:
    """One bin has two patterns of signs, which are the two sides of the bias: the intervals are the same."""
    c, y = np.full(400, 0.5), (np.arange(400) < 320).astype(float)
    bias, ece = intervals(counted(c, y), plan_of(c, 400), 0.05, ("bias", "ece"))
    assert bias.value == pytest.approx(-0.3)
    assert (ece.value, ece.low, ece.high) == pytest.approx((0.3, -bias.high, -bias.low))


def test_a_wrong_plan_keeps_the_level_and_widens() -> None:
    c, y = drawn(20_000)
    widths = [
        intervals(counted(c, y), plan_of(c[:400], rows), 0.05, ("oe",))[0].ratio for rows in (200, 20_000, 2_000_000)
    ]
    assert widths[1] < min(widths[0], widths[2])


def test_the_intervals_hold_at_every_look_together() -> None:
    """Of streams of 5 looks whose truth is not calibrated at most a few ever leave it."""
    left = dict.fromkeys(NUMBERS, 0)
    for seed in range(amount(16, 40)):
        rng = np.random.default_rng(seed)
        c = np.clip(np.round(rng.beta(1, 2, 2000), 1), 0.05, 0.95)
        m = scipy.special.expit(0.3 + 0.8 * scipy.special.logit(c))
        y = (rng.random(2000) < m).astype(float)
        plan, out = plan_of(c[:50], 1000), set()
        for n in range(400, 2001, 400):
            true = {
                "bias": (c - m)[:n].mean(),
                "oe": m[:n].sum() / c[:n].sum(),
                "slope": 0.8,
                "brier": (m * (1 - c) ** 2 + (1 - m) * c**2)[:n].mean(),
                "log_loss": -(m * np.log(c) + (1 - m) * np.log1p(-c))[:n].mean(),
            }
            found = {i.name: i for i in intervals(counted(c[:n], y[:n]), plan, 0.05, tuple(true))}
            out |= {name for name, t in true.items() if not found[name].low <= t <= found[name].high}
        for name in out:
            left[name] += 1
    assert max(left.values()) <= amount(3, 4)
    assert min(found["slope"].high, 1.0) < 1.0  # and in the end a wrong slope is known to be wrong


def test_streams_without_a_fit_have_no_slope() -> None:
    c = np.array([0.2, 0.4, 0.6, 0.8])
    for y in (np.zeros(4), np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4)):
        found = {i.name: i for i in intervals(counted(c, y), plan_of(c, 100), 0.05)}
        assert (found["slope"].low, found["slope"].high) == (-math.inf, math.inf)
        assert found["bias"].low <= 0.5 - y.mean() <= found["bias"].high
        assert found["offset"].low < found["offset"].high


def test_the_dates_of_a_change_hold_it() -> None:
    """The set has the true first look in nearly all streams, and few others where the change is large."""
    rng, kept, sizes = np.random.default_rng(3), 0, []
    z = np.linspace(-2, 2, 21)
    plain = [ALTERNATIVES[i] for i in PLAIN]
    odds = np.array([[a.shift + a.low * v for v in z] for a in plain])
    log1 = scipy.special.log_expit(odds) - scipy.special.log_expit(z)
    log0 = scipy.special.log_expit(-odds) - scipy.special.log_expit(-z)
    for _ in range(60):
        gains = []
        for t in range(20):
            p = scipy.special.expit(z + (1.0 if t >= 12 else 0.0))
            n1 = rng.binomial(6, p)
            gains.append(log1 @ n1 + log0 @ (6 - n1))
        held = changes(np.array(gains), 0.05)
        kept += bool(held[12])
        sizes.append(held.sum())
        likelihood = np.array([np.exp(np.array(gains)[t:].sum(axis=0)) for t in range(20)])
        t = np.arange(1, 21)
        mixture = (likelihood.mean(axis=1) / (t * (t + 1))).sum() + 1 / 21
        assert (held == (likelihood.max(axis=1) >= 0.05 * mixture)).all()
    assert kept >= 54
    assert np.median(sizes) <= 8
