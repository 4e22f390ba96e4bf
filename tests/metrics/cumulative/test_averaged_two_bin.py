"""Averaged two-bin error: the integral, its null mean, its bounds, and that misstated probabilities do not lower it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrary as cal
from calibrary.numerics.draw import generator
from each import amount
from golden import arrays, assert_close, call, entries, parts, weights_of

MINE = [e for e in entries("emerging") if e["id"] == "atb"]


@pytest.mark.parametrize("entry", MINE, ids=lambda e: f"{e['data']}-{e['params']}")
def test_golden(entry):
    assert_close(call(entry), entry)


@pytest.mark.parametrize("entry", parts("emerging", "atb_null_mean"), ids=lambda e: e["data"])
def test_null_mean(entry):
    _, c, _ = arrays(entry["data"])
    assert_close(cal.averaged_two_bin_null_mean(c), entry)


def literally(y, c, w, norm, steps):
    """The integral as a sum over midpoints of a fine grid."""
    total = 0.0
    for t in (np.arange(steps) + 0.5) / steps:
        below = (w * (y - c))[c < t].sum() / w.sum()
        above = (w * (y - c))[c >= t].sum() / w.sum()
        total += (abs(below) ** norm + abs(above) ** norm) / steps
    return total


@pytest.mark.parametrize("norm", [1, 2, 3.5])
def test_it_is_the_integral(norm):
    y, c, _ = arrays("binary_ties")
    w = weights_of("1+i%3", len(y))
    got = cal.averaged_two_bin_error(y, c, norm=norm, sample_weight=w)
    assert got == pytest.approx(literally(y, c, w, norm, amount(4001, 20_001)), rel=2e-3)


def test_bounds_roots_and_reflection(binary_set):
    y, c = binary_set
    value = cal.averaged_two_bin_error(y, c)
    assert value <= 2 * cal.kuiper_calibration_error(y, c) ** 2 + 1e-15
    assert cal.averaged_two_bin_error(y, c, root=True) == pytest.approx(math.sqrt(value))
    assert cal.averaged_two_bin_error(1 - y, 1 - c) == pytest.approx(value, rel=1e-9)
    debiased = cal.averaged_two_bin_error(y, c, debias=True)
    assert value - debiased == pytest.approx(np.sum((y - c) ** 2) / len(y) ** 2)
    root = cal.averaged_two_bin_error(y, c, debias=True, root=True)
    assert root == pytest.approx(math.copysign(math.sqrt(abs(debiased)), debiased))


def test_the_null_mean_is_exact_and_debiasing_removes_it():
    c = np.random.default_rng(0).beta(0.8, 0.8, 40)
    null = cal.expected_by_chance("atb", None, c, n_resamples=4000, rng=1)
    assert null.mean == pytest.approx(cal.averaged_two_bin_null_mean(c), abs=4 * null.sd / math.sqrt(4000))
    debiased = cal.expected_by_chance("atb", None, c, n_resamples=2000, rng=1, debias=True)
    assert abs(debiased.mean) < 4 * debiased.sd / math.sqrt(2000)


def test_true_probabilities_score_best_while_ece_can_be_lowered_by_misstating():
    rng = np.random.default_rng(0)
    reports = {"truth": lambda c: c, "fifths": lambda c: np.round(5 * c) / 5, "constant": lambda c: np.full(100, 0.5)}
    values = {name: [] for name in reports}
    errors = {name: [] for name in reports}
    for _ in range(300):
        c = rng.beta(0.8, 0.8, 100)
        y = (rng.random(100) < c).astype(int)
        for name, state in reports.items():
            values[name].append(cal.averaged_two_bin_error(y, state(c)))
            errors[name].append(cal.expected_calibration_error(y, state(c)))
    atb = {name: np.mean(v) for name, v in values.items()}
    ece = {name: np.mean(v) for name, v in errors.items()}
    assert atb["truth"] < atb["constant"]
    assert atb["truth"] < atb["fifths"] + 2e-5
    assert ece["truth"] > ece["fifths"] > ece["constant"]


def test_replicates_are_those_of_the_metric_itself():
    y, c, _ = arrays("binary_ties")
    for options in ({}, {"norm": 1}, {"root": True}, {"debias": True}):
        fast = cal.interval("atb", y, c, method="basic", n_resamples=9, rng=0, clip=False, **options)
        rng = generator(0, "rows")
        for value in fast.draws:
            i = rng.integers(0, len(y), len(y))
            assert value == pytest.approx(cal.averaged_two_bin_error(y[i], c[i], **options), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"norm": 0.5}, "norm=0.5"), ({"norm": math.inf}, "norm=inf"), ({"norm": 1, "debias": True}, "debias=True is")],
)
def test_bad_options_get_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        cal.averaged_two_bin_error([0, 1], [0.2, 0.7], **options)
