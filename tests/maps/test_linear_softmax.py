"""Vector, matrix, Dirichlet and structured scaling, ensembles of temperatures: definitions and published packages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import calibrary as cal
from calibrary.maps import as_map
from calibrary.maps.vector import EnsembleTemperature
from golden import arrays

#: Values at 20 rows of probmetrics 1.3.0 (with logits of double precision, and temperature scaling without a mixture
#: before structured scaling) and of venn-abers 1.5.4.
PACKAGES = json.loads((Path(__file__).parent / "softmax_maps.json").read_text())
WORDS = ("vector", "matrix", "dirichlet", "structured_matrix")


def rows_of(name):
    if name == "multi4":
        y, p, _ = arrays("multi4")
        return y, p, p[:20]
    y, p, _ = cal.datasets.digits()
    p = (p + 1e-3) / 1.01  # without zeros, which the packages and calibrary clip differently
    return y[:600], p[:600], p[600:620]


def literal(word, y, p):
    """The penalized likelihood's optimum, found by scipy from the definition."""
    n, k = p.shape
    x = np.log(p)
    if word == "structured_matrix":
        x = log_softmax(x * as_map("temperature").fit(y, p).inverse_, axis=1)

    def parts(theta):
        w = np.diag(theta[:k]) if word == "vector" else theta[:-k].reshape(k, k)
        return w, theta[-k:]

    def loss(theta):
        w, b = parts(theta)
        diagonal = np.diag(w)
        off, on = (w**2).sum() - (diagonal**2).sum(), ((diagonal - 1) ** 2).sum()
        penalty = {
            "vector": 0.0,
            "matrix": 0.0,
            "dirichlet": 0.01 * off / (k * (k - 1)) + 0.01 * (b**2).mean(),
            "structured_matrix": k / n * ((b**2).sum() + on) + k * (k - 1) / n * off,
        }[word]
        return -log_softmax(x @ w.T + b, axis=1)[np.arange(n), y].mean() + penalty

    start = np.append(np.ones(k) if word == "vector" else np.eye(k), np.zeros(k))
    w, b = parts(minimize(loss, start, options={"gtol": 1e-9, "maxiter": 5000}).x)
    return softmax(x @ w.T + b, axis=1)


@pytest.mark.parametrize("word", WORDS)
def test_the_fit_is_the_optimum_of_the_penalized_likelihood(word):
    y, p, _ = rows_of("multi4")
    np.testing.assert_allclose(as_map(word).fit(y, p)(p), literal(word, y, p), atol=2e-5)


@pytest.mark.parametrize("data", ["multi4", "digits"])
@pytest.mark.parametrize("word", sorted(PACKAGES["multi4"]))
def test_values_are_those_of_the_published_packages(word, data):
    y, p, t = rows_of(data)
    if word == "bounds":
        p0, p1 = cal.Recalibrator("venn_abers").fit(p, y).bounds(t)
        for k, both in enumerate(PACKAGES[data][word]):
            np.testing.assert_allclose(np.column_stack([p0[:, k], p1[:, k]]), both, atol=1e-12)
        return
    found = cal.Recalibrator(word, ends="eps").fit(p, y).transform(t)
    np.testing.assert_allclose(found, PACKAGES[data][word], atol=5e-4)  # their optimizers stop early
    assert np.abs(t - PACKAGES[data][word]).max() > 0.01


def test_two_classes_make_vector_scaling_beta_calibration():
    y, c, _ = arrays("binary500")
    beta = as_map("beta").fit(y, c)
    assert min(beta.a_, beta.b_) > 0
    for word in ("vector", "matrix"):
        np.testing.assert_allclose(as_map(word).fit(y, c)(c), beta(c), atol=1e-7)


def test_a_strong_penalty_leaves_temperature_scaling_and_dirichlet_without_penalty_is_matrix_scaling():
    y, p, _ = rows_of("multi4")
    temperature, matrix = as_map("temperature").fit(y, p)(p), as_map("matrix").fit(y, p)(p)
    np.testing.assert_allclose(as_map("sms", penalty=1e9).fit(y, p)(p), temperature, atol=1e-6)
    np.testing.assert_allclose(as_map("dirichlet", off_diagonal=0, intercept=0).fit(y, p)(p), matrix, atol=1e-6)
    assert np.abs(matrix - temperature).max() > 0.01


def test_the_shares_of_an_ensemble_of_temperatures_are_the_likelihood_optimum():
    rng = np.random.default_rng(0)
    p = softmax(3 * rng.normal(size=(2000, 3)), axis=1)
    mixed = 0.7 * softmax(0.4 * np.log(p), axis=1) + 0.1 * p + 0.2 / 3
    y = (rng.random((2000, 1)) > np.cumsum(mixed, axis=1)).sum(axis=1)
    found = EnsembleTemperature().fit(y, p)
    parts = np.stack([softmax(found.inverse_ * np.log(p), axis=1), p, np.full(p.shape, 1 / 3)])[:, np.arange(2000), y]
    best = minimize(
        lambda s: -np.log(s @ parts).mean(), [0.4, 0.3, 0.3], bounds=[(0, 1)] * 3, method="SLSQP", tol=1e-14,
        constraints={"type": "eq", "fun": lambda s: s.sum() - 1},
    )  # fmt: skip
    np.testing.assert_allclose(found.shares_, best.x, atol=1e-4)
    assert (found(p).argmax(axis=1) == p.argmax(axis=1)).all()
    np.testing.assert_allclose(found(p).sum(axis=1), 1.0, atol=1e-12)


def test_names_that_people_type_and_what_is_refused():
    for name, word in (
        ("Vector Scaling", "vector"), ("dirichlet-calibration", "dirichlet"), ("SMS", "structured_matrix"),
        ("ETS", "ensemble_temperature"), ("temperature scaling", "temperature"), ("isotonic regression", "isotonic"),
        ("Platt scaling", "platt"), ("beta calibration", "beta"), ("histogram binning", "bins"),
    ):  # fmt: skip
        y, p, _ = rows_of("multi4")
        assert cal.Recalibrator(name).fit(p, y).map_ == word
    with pytest.raises(cal.RefusedError, match=r"off_diagonal=-1 must be a number of at least 0"):
        as_map("dirichlet", off_diagonal=-1).fit(y, p)
    with pytest.raises(cal.RefusedError, match=r"penalty='a' must be a number"):
        as_map("sms", penalty="a").fit(y, p)
    wide = np.full((99, 33), 1 / 33)
    with pytest.raises(cal.RefusedError, match=r"33 classes would fit 1,122 numbers.*map='vector'"):
        as_map("matrix").fit(np.arange(99) % 33, wide)
    with pytest.raises(cal.RefusedError, match="class 3 never occurs"):
        as_map("vector").fit(np.minimum(y, 2), p)
    with pytest.raises(cal.RefusedError, match="c has 3 columns and the map was fitted to 4 classes"):
        as_map("matrix").fit(y, p)(p[:, :3])
