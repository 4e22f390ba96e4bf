"""A few points replace very many log odds: every fit and every sum must be the same as from all of them."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import calibrary as cal
from calibrary.maps import as_map, likelihood
from calibrary.metrics.curve.summaries import estimated_calibration_index
from calibrary.metrics.machinery.measure import measure


def data(kind, n=80_000):
    rng = np.random.default_rng(5)
    z = rng.normal(0.3, 2.0, n)
    slope = {"steep": 40.0}.get(kind, 0.7)
    y = (rng.random(n) < 1 / (1 + np.exp(-slope * (z - 0.2)))).astype(int)
    c = 1 / (1 + np.exp(-z))
    if kind == "ends":
        c[:50], c[50:100], c[100:120], c[120:140] = 0.0, 1.0, 1e-17, 1e-5
    if kind == "ties":
        c = np.round(c, 5)
    w = rng.integers(1, 4, n).astype(float) if kind == "weights" else None
    return cal.predictions(y, c, sample_weight=w)


def fresh(view):
    return cal.predictions(view.y, view.c, sample_weight=view.w)


KINDS = ["plain", "steep", "ends", "ties", "weights"]
MAPS = [("beta", {}), ("beta", {"parameters": "ab"}), ("platt", {}), ("platt", {"target_smoothing": True}),
        ("rcs", {}), ("rcs", {"n_knots": 3}), ("multinomial_spline", {})]  # fmt: skip


@pytest.fixture
def thinned(monkeypatch):
    def on():
        monkeypatch.setattr(likelihood, "_MANY", 1000)

    return on


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "options"), MAPS)
def test_maps_are_the_same_from_few_points(kind, name, options, thinned):
    view = data(kind)
    whole = as_map(name, **options).fit(fresh(view))
    expected = whole.predict(view.ties.c)
    thinned()
    view = fresh(view)
    np.testing.assert_allclose(as_map(name, **options).fit(view).at(view), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("id", ["cis", "fott_beta", "sbct", "eci", "lsece"])
def test_metrics_are_the_same_from_few_points(kind, id, thinned):
    view = data(kind)
    entry = cal.catalogue[id]
    with pytest.warns() if (kind, id) == ("ends", "cis") else nullcontext():
        expected = measure(entry, fresh(view))
        thinned()
        found = measure(entry, fresh(view))
    for name in ("intercept", "slope", "lr_statistic", "se_slope") if id == "cis" else (None,):
        a, b = (found, expected) if name is None else (getattr(found, name), getattr(expected, name))
        assert a == pytest.approx(b, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("kind", ["plain", "ends", "ties", "weights"])
def test_few_points_are_used_where_curves_are_gentle(kind, thinned):
    view = data(kind)
    thinned()
    view = fresh(view)
    points = likelihood.logits(view, clip=True).points(kinks=(-1.0, 0.5))
    assert points.n_nodes > 0
    assert points.w.sum() == pytest.approx(view.total, rel=1e-13)
    assert (points.wy @ points.z**3) == pytest.approx(view.ties.wy @ likelihood.logit(view.ties.c) ** 3, rel=1e-12)
    kinked = np.maximum(points.z + 1.0, 0.0) ** 3
    direct = np.maximum(likelihood.logit(view.ties.c) + 1.0, 0.0) ** 3
    assert points.w @ kinked == pytest.approx(view.ties.w @ direct, rel=1e-12)
    assert not points.resolve(40.0 * points.z)


def test_two_columns_and_one_confidence_have_the_same_index():
    view = data("plain", 2000)
    two = cal.predictions(view.y, view.p)
    several = as_map("multinomial_spline").fit(two).predict(view.p)[:, 1]
    np.testing.assert_allclose(as_map("multinomial_spline").fit(view).predict(view.c), several, atol=1e-9)
    both = as_map("multinomial_spline").fit(view).predict(view.p)
    np.testing.assert_allclose(both, np.column_stack([1 - several, several]), atol=1e-9)
    expected = np.mean((view.c - several) ** 2)
    assert estimated_calibration_index(view) == pytest.approx(expected, rel=1e-8)
