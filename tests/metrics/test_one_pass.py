"""Plain calls of common metrics in one compiled pass: the same values, and the same errors for invalid data."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import calibrary as cal
from calibrary.numerics import compiled

METRICS = [cal.expected_calibration_error, cal.brier_score, cal.negative_log_likelihood]


@pytest.fixture(autouse=True)
def warm(monkeypatch):
    monkeypatch.setattr(compiled, "_STARTED", {"width_bins.add_residuals", "width_bins.of_class"})


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", [np.int64, bool, np.float64])
@pytest.mark.parametrize("n", [1, 7, 600, 20_000, 45_001])
def test_one_pass_gives_every_digit_of_the_ordinary_way(metric, kind, n):
    rng = np.random.default_rng(n)
    for c in (rng.random(n), rng.random(n).round(2), np.arange(n) % 16 / 15, rng.integers(0, 2, n) / 1.0):
        y = (rng.random(n) < c).astype(kind)
        assert metric(y, c) == metric(cal.predictions(y, c))


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("n", [1, 7, 600, 9001])
def test_one_pass_over_classes_gives_every_digit_of_the_ordinary_way(k, n):
    rng = np.random.default_rng(n)
    for p in (rng.dirichlet(np.ones(k), n), np.eye(k)[rng.integers(0, k, n)]):
        y = rng.integers(0, k, n)
        assert cal.negative_log_likelihood(y, p) == cal.negative_log_likelihood(cal.predictions(y, p))
        for scale in ("1/K", "sum", "half"):
            assert cal.brier_score(y, p, scale=scale) == cal.brier_score(cal.predictions(y, p), scale=scale)


def test_options_have_an_effect_in_one_pass():
    rng = np.random.default_rng(0)
    c = rng.random(600)
    y = (rng.random(600) < c).astype(int)
    assert cal.brier_score(y, c, scale="sum") == 2.0 * cal.brier_score(y, c)
    assert cal.brier_score(y, c, skill=True) == cal.brier_score(cal.predictions(y, c), skill=True)
    assert cal.expected_calibration_error(y, c, n_bins=2) < cal.expected_calibration_error(y, c)
    with pytest.raises(ValueError, match="scale='third'"):
        cal.brier_score(y, c, scale="third")
    with pytest.raises(ValueError, match="scale"):
        cal.brier_score(y, c, scale=["sum"])


def test_invalid_class_data_are_refused_as_in_the_ordinary_computation():
    p, y = np.full((4, 3), 1 / 3), np.array([0, 1, 2, 1])
    for place, bad, said in (((1, 1), np.nan, "missing"), ((2, 0), 1.5, "above 1"), ((0, 2), 0.5, "sums to")):
        wrong = p.copy()
        wrong[place] = bad
        for metric in (cal.negative_log_likelihood, cal.brier_score):
            with pytest.raises(ValueError, match=said):
                metric(y, wrong)
    for labels in ([0, 1, 3, 1], [0, -1, 2, 1]):
        for metric in (cal.negative_log_likelihood, cal.brier_score):
            with pytest.raises(ValueError, match=r"y_true\[\d\]"):
                metric(np.array(labels), p)
    with pytest.raises(ValueError, match="lengths differ"):
        cal.negative_log_likelihood(y[:3], p)


@pytest.mark.parametrize("n_bins", [2, 10, 49, 97])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_compiled_bins_of_equal_width_are_the_bins(n_bins, closed, monkeypatch):
    rng = np.random.default_rng(n_bins)
    edges = np.repeat(np.arange(n_bins + 1) / n_bins, 20)
    c = np.concatenate((edges, np.nextafter(edges, 0), np.nextafter(edges, 1), rng.random(2000)))
    y = (rng.random(len(c)) < c).astype(int)
    monkeypatch.setattr(compiled, "FORCED", False)
    plain = cal.expected_calibration_error(y, c, n_bins=n_bins, closed=closed)
    monkeypatch.setattr(compiled, "FORCED", True)
    assert cal.expected_calibration_error(y, c, n_bins=n_bins, closed=closed) == plain


@pytest.mark.parametrize("metric", METRICS)
def test_invalid_data_are_refused_as_in_the_ordinary_computation(metric):
    y, c = np.array([0, 1, 1]), np.array([0.2, 0.7, 0.9])
    for place, bad, said in ((1, np.nan, "missing"), (2, 1.5, "above 1"), (0, -0.1, "below 0")):
        wrong = c.copy()
        wrong[place] = bad
        with pytest.raises(ValueError, match=said):
            metric(y, wrong)
    for labels in (np.array([0, 1, 2]), np.array([0, -1, 1]), np.array([0.0, np.nan, 1.0]), np.array([0.0, 7.0, 1.0])):
        with pytest.raises(ValueError, match=r"y_true\[\d\]"):
            metric(labels, c)
    with pytest.raises(ValueError, match="lengths differ"):
        metric(y, c[:2])
    with pytest.raises(ValueError, match="empty"):
        metric(y[:0], c[:0])


def test_shares_and_other_types_take_the_ordinary_way():
    c = np.array([0.2, 0.7, 0.9])
    shares = np.array([0.1, 0.5, 1.0])
    assert cal.brier_score(shares, c) == pytest.approx(np.mean((shares - c) ** 2))
    for y in (np.array([0, 1, 1], dtype=np.uint8), [0, 1, 1], np.array([0, 1, 1, 0])[::-1][1:]):
        assert cal.brier_score(y, c) == pytest.approx(np.mean((np.asarray(y) - c) ** 2))


@pytest.mark.parametrize("id", ["tce", "calbin", "ece_knn", "intce"])
@pytest.mark.parametrize("decimals", [2, 16])
def test_loops_give_the_same_number_compiled_and_plain(id, decimals, monkeypatch):
    rng = np.random.default_rng(3)
    c = rng.beta(0.7, 0.6, 700).round(decimals)
    y, w = (rng.random(700) < c**1.5).astype(int), rng.integers(1, 4, 700)
    found = []
    for forced in (False, True):
        monkeypatch.setattr(compiled, "FORCED", forced)
        found.append([cal.compute(id, y, c), cal.compute(id, y, c, sample_weight=w)])
    assert found[0] == pytest.approx(found[1], rel=1e-13)


@pytest.mark.parametrize("options", [{}, {"degree": 1}, {"degree": 0}, {"span": 1.4}, {"surface": "direct"}])
@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_local_fits_give_the_same_number_compiled_and_plain(options, decimals, monkeypatch):
    rng = np.random.default_rng(4)
    c = rng.beta(0.7, 0.6, 120).round(decimals)
    y, w = (rng.random(120) < c**1.5).astype(int), rng.integers(1, 4, 120)
    found = []
    for forced in (False, True):
        monkeypatch.setattr(compiled, "FORCED", forced)
        found.append([cal.compute("ici", y, c, **options), cal.compute("ici", y, c, sample_weight=w, **options)])
    assert found[0] == pytest.approx(found[1], rel=1e-11)


def test_one_call_on_few_rows_starts_no_compiler():
    code = (
        "import sys, numpy as np, calibrary as cal\n"
        "c = np.linspace(0.01, 0.99, 500); y = (np.arange(500) % 3 == 0).astype(int)\n"
        "for id in ('ece', 'bs', 'tce', 'calbin', 'ece_knn', 'intce', 'skce_uq', 'ici'): cal.compute(id, y, c)\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
