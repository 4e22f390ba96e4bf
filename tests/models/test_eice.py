"""EICE and the leave-one-out predictions it needs, from real fitted models."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrary as cal
import definitions
from golden import arrays, parts

linear_model = pytest.importorskip("sklearn.linear_model")
eice = cal.expected_individual_calibration_error
jackknife = cal.jackknife_predictions


def logistic(**options):
    return linear_model.LogisticRegression(**{"tol": 1e-12, "max_iter": 10_000, **options})


def features(n=60, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    logits = X @ rng.normal(size=(2, k)) + rng.gumbel(size=(n, k))
    return X, logits.argmax(1)


@pytest.mark.parametrize("entry", parts("point", "eice"), ids=lambda e: str(sorted(e["params"].items())[:3]))
def test_golden_on_an_unpenalised_logistic_regression(entry):
    y, _, columns = arrays(entry["data"])
    options, n = entry["params"], entry["params"]["n_train"]
    X = np.column_stack([columns[name] for name in options["features"]])
    model = logistic(C=np.inf, solver="newton-cholesky").fit(X[:n], y[:n])
    left_out = jackknife(model, X[:n], y[:n], X[n:], method=options["method"], damp=options["damp"])
    got = eice(y[n:], left_out.prob, individual=left_out.individual(options["coverage"]))
    assert got == pytest.approx(entry["value"], rel=1e-6)
    prob, loo, residuals = left_out
    assert loo.shape == (n, len(y) - n)
    assert got == eice(y[n:], prob, loo=loo, loo_residuals=residuals, coverage=options["coverage"])


def test_eice_from_left_out_arrays_by_loops_with_weights():
    rng = np.random.default_rng(0)
    c, V, R = rng.random(7), rng.random((20, 7)), rng.random(20) / 3
    y = np.zeros(7, dtype=int)
    want = definitions.eice(y, c, loo=V, loo_residuals=R, coverage=0.8)
    assert eice(y, c, loo=V, loo_residuals=R, coverage=0.8) == pytest.approx(want)
    w = np.array([0, 1, 2, 0, 1, 3, 1])
    i = np.repeat(np.arange(7), w)
    want = definitions.eice(y[i], c[i], loo=V[:, i], loo_residuals=R)
    assert eice(y, c, loo=V, loo_residuals=R, sample_weight=w) == pytest.approx(want)
    assert eice(y, c, loo=V, loo_residuals=R) == eice(1 - y, c, loo=V, loo_residuals=R)  # labels never enter


def test_clipping_limits_the_ends_of_the_interval():
    V, R = np.full((5, 1), 0.9), np.full(5, 0.5)
    assert eice([1], [0.9], loo=V, loo_residuals=R) == pytest.approx(0.0)
    assert eice([1], [0.9], loo=V, loo_residuals=R, clip=True) == pytest.approx(0.2)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("C", [1.0, 0.05])
def test_newton_steps_come_closer_to_refitting_than_influence(k, C):
    X, y = features(80, k, seed=k)
    model = logistic(C=C).fit(X[:50], y[:50])
    exact = jackknife(model, X[:50], y[:50], X[50:], method="refit")
    influence = jackknife(model, X[:50], y[:50], X[50:])
    newton = jackknife(model, X[:50], y[:50], X[50:], method="newton")
    np.testing.assert_allclose(influence.prob, exact.prob, atol=1e-9)
    far, near = np.abs(influence.loo - exact.loo).mean(), np.abs(newton.loo - exact.loo).mean()
    assert near < far < 0.01
    assert np.abs(newton.loo_residuals - exact.loo_residuals).max() < 0.02
    value = eice(y[50:], newton.prob, individual=newton.individual())
    assert value == pytest.approx(eice(y[50:], exact.prob, individual=exact.individual()), rel=0.1, abs=1e-3)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", ["influence", "newton"])
def test_steps_solve_their_defining_equations(k, method):
    X, y = features(40, k, seed=5)
    model = logistic(C=2.0).fit(X, y)
    left_out = jackknife(model, X, y, X[:6], method=method, damp=0.1)
    D, n = np.column_stack([X, np.ones(40)]), 40
    theta = np.column_stack([model.coef_, model.intercept_])
    p = left_out._models.full(X)
    L = len(theta)
    ridge = np.tile([0.5, 0.5, 0.0], L)
    rows = []
    for i in range(n):
        q = p[i] if L > 1 else p[i, 1:]
        S = np.diag(q) - np.outer(q, q)
        rows.append(np.kron(S, np.outer(D[i], D[i])))
    H = (np.sum(rows, axis=0) + np.diag(ridge)) / n
    for i in range(0, n, 7):
        r = p[i] - np.eye(k)[y[i]] if L > 1 else p[i, 1:] - y[i]
        g = np.kron(r, D[i])
        A = n * (H + 0.1 * np.eye(len(H))) if method == "influence" else n * H - rows[i] + 0.1 * np.eye(len(H))
        moved = theta.ravel() + np.linalg.solve(A, g)
        np.testing.assert_allclose(left_out._models.moved[i].ravel(), moved, atol=1e-9)


def test_balanced_classes_and_liblinear_intercepts_follow_their_own_objective():
    X, y = features(60, seed=2)
    for options in ({"class_weight": {0: 1.0, 1: 3.0}}, {"solver": "liblinear", "intercept_scaling": 2.0}):
        model = logistic(C=0.3, **options).fit(X, y)
        exact = jackknife(model, X, y, X[:9], method="refit")
        newton = jackknife(model, X, y, X[:9], method="newton")
        np.testing.assert_allclose(newton.loo, exact.loo, atol=5e-3)


def test_the_top_label_lens_follows_the_predicted_class():
    X, y = features(60, seed=3)
    model = logistic().fit(X[:40], y[:40])
    one = jackknife(model, X[:40], y[:40], X[40:])
    top = jackknife(model, X[:40], y[:40], X[40:], lens="top-label")
    predicted = one.prob > 0.5
    np.testing.assert_allclose(top.loo, np.where(predicted, one.loo, 1 - one.loo))
    value = eice(y[40:], top.prob, individual=top.individual(), lens="top-label")
    assert 0 <= value < 0.05
    X, y = features(60, 3, seed=4)
    several = jackknife(logistic().fit(X[:40], y[:40]), X[:40], y[:40], X[40:])
    assert several.prob.shape == (20, 3)
    assert 0 <= eice(y[40:], several.prob, individual=several.individual()) < 0.05
    with pytest.raises(ValueError, match="top-label"):
        jackknife(logistic().fit(X[:40], y[:40]), X[:40], y[:40], X[40:], lens="binary")


def test_estimates_in_chunks_are_those_of_the_whole_array(monkeypatch):
    from calibrary.metrics.point import consistency
    from calibrary.models import leave_one_out as module

    X, y = features(60, 3)
    model = logistic().fit(X[:30], y[:30])
    whole = jackknife(model, X[:30], y[:30], X[30:]).individual()
    monkeypatch.setattr(module, "_CHUNK", 300)
    monkeypatch.setattr(consistency, "_CHUNK", 100)
    np.testing.assert_allclose(jackknife(model, X[:30], y[:30], X[30:]).individual(), whole, rtol=1e-12)


def test_any_estimator_can_be_refitted():
    from sklearn.naive_bayes import GaussianNB

    X, y = features(30, 3)
    names = np.array(["a", "b", "c"])[y]
    left_out = jackknife(GaussianNB().fit(X, names), X, names, X[:5], method="refit")
    assert left_out.loo.shape == (30, 5)
    without = GaussianNB().fit(X[1:], names[1:]).predict_proba(X[:5])
    top = left_out.prob.argmax(1)
    np.testing.assert_allclose(left_out.loo[0], without[np.arange(5), top])


def test_parameters_gradients_and_hessian_are_enough():
    X, y = features(40)
    model = logistic(C=1.0, fit_intercept=False).fit(X, y)
    theta = model.coef_[0]
    p = 1 / (1 + np.exp(-X @ theta))
    hessian = ((X * (p * (1 - p))[:, None]).T @ X + np.eye(2)) / 40
    given = jackknife(
        X_train=X,
        y_train=y,
        X_eval=X[:7],
        predict_fn=lambda t, x: 1 / (1 + np.exp(-np.asarray(x) @ t)),
        theta=theta,
        grads=(p - y)[:, None] * X,
        hessian=hessian,
    )
    direct = jackknife(model, X, y, X[:7])
    np.testing.assert_allclose(given.loo, direct.loo, atol=1e-9)
    np.testing.assert_allclose(given.loo_residuals, direct.loo_residuals, atol=1e-9)


def _torch_logistic(model, torch):
    layer = torch.nn.Linear(2, len(model.intercept_) if len(model.intercept_) > 1 else 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(model.coef_))
        layer.bias.copy_(torch.tensor(model.intercept_))
    return layer.double()


@pytest.mark.parametrize("k", [2, 3])
def test_a_network_that_is_a_logistic_regression_gives_the_same(k):
    torch = pytest.importorskip("torch")
    X, y = features(40, k)
    model = logistic(C=np.inf).fit(X, y)
    network = _torch_logistic(model, torch)
    damp = 0.05
    direct = jackknife(model, X, y, X[:7], damp=damp)
    left_out = jackknife(network, X, y, X[:7], damp=damp)
    np.testing.assert_allclose(left_out.loo, direct.loo, atol=1e-7)
    np.testing.assert_allclose(left_out.loo_residuals, direct.loo_residuals, atol=1e-7)
    assert network.training


def test_large_networks_use_products_with_the_hessian(monkeypatch):
    torch = pytest.importorskip("torch")
    from calibrary.models import leave_one_out as module

    X, y = features(20, 3)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    exact = jackknife(network, X, y, X[:5], damp=1.0)
    monkeypatch.setattr(module, "_EXACT_PARAMETERS", 0)
    products = jackknife(network, torch.tensor(X), torch.tensor(y), torch.tensor(X[:5]), damp=1.0)
    np.testing.assert_allclose(products.loo, exact.loo, atol=1e-7)
    with pytest.raises(ValueError, match="raise damp"):
        jackknife(network, X, y, X[:5], damp=-0.5)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="raise damp"):
        jackknife(network, X, y, X[:5], damp=-0.5)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({}, TypeError, "jackknife_predictions"),
        ({"loo": np.zeros((3, 2))}, TypeError, "jackknife_predictions"),
        ({"individual": [0.1, 0.2], "loo": np.zeros((3, 2))}, TypeError, "pass either individual="),
        ({"individual": [0.1]}, ValueError, "individual has 1 rows"),
        ({"individual": [0.1, math.nan]}, ValueError, r"individual\[1\]"),
        ({"loo": np.zeros((3, 4)), "loo_residuals": np.zeros(3)}, ValueError, "loo has shape"),
        ({"loo": np.zeros((3, 2)), "loo_residuals": np.zeros(2)}, ValueError, "loo_residuals has shape"),
        ({"loo": np.zeros((3, 2)), "loo_residuals": np.zeros(3), "coverage": 1.0}, ValueError, "coverage"),
        ({"individual": [0.1, 0.2], "lens": "class-wise"}, ValueError, "not defined for"),
    ],
)
def test_missing_or_wrong_estimates_are_refused(options, error, sentence):
    with pytest.raises(error, match=sentence):
        eice([0, 1], [0.2, 0.7], **options)


def test_models_without_a_closed_form_are_sent_to_refitting():
    from sklearn.naive_bayes import GaussianNB

    X, y = features(40, 3)
    with pytest.raises(TypeError, match="method='refit'"):
        jackknife(GaussianNB().fit(X, y), X, y, X)
    with pytest.raises(ValueError, match="not fitted"):
        jackknife(logistic(), X, y, X)
    with pytest.raises(ValueError, match="not a fitted"):
        jackknife(GaussianNB(), X, y, X, method="refit")
    with pytest.raises(TypeError, match="fitted model"):
        jackknife(X_train=X, y_train=y, X_eval=X)
    with pytest.raises(ValueError, match="l2 penalty"):
        jackknife(logistic(solver="saga", l1_ratio=0.5, tol=1e-3).fit(X, y), X, y, X)
    collinear, event = np.column_stack([X, X[:, 0] - 2 * X[:, 1]]), (y == 0).astype(int)
    model = logistic(C=np.inf).fit(collinear, event)
    with pytest.raises(ValueError, match="raise damp"):
        jackknife(model, collinear, event, collinear)
    assert jackknife(model, collinear, event, collinear, damp=1e-6).loo.shape == (40, 40)
    with pytest.raises(TypeError, match="X_train"):
        jackknife(logistic().fit(X, y))
    with pytest.raises(ValueError, match=r"y_train\[0\] = 9"):
        jackknife(logistic().fit(X, y), X, np.r_[9, y[1:]], X)
    with pytest.raises(ValueError, match="only row of its class"):
        jackknife(GaussianNB().fit(X, np.r_[5, y[1:]]), X, np.r_[5, y[1:]], X, method="refit")


def test_eice_is_blind_to_miscalibration():
    """Sharper logits make the model worse calibrated; EICE hardly moves."""
    y, _, columns = arrays("features500")
    X = np.column_stack([columns["x1"], columns["x2"]])
    model = logistic(C=np.inf).fit(X[:250], y[:250])
    values, gaps = [], []
    for factor in (0.25, 1.0, 4.0):
        sharper = logistic(C=np.inf).fit(X[:250], y[:250])
        sharper.coef_, sharper.intercept_ = factor * model.coef_, factor * model.intercept_
        left_out = jackknife(sharper, X[:250], y[:250], X[250:])
        values.append(eice(y[250:], left_out.prob, individual=left_out.individual()))
        gaps.append(cal.expected_calibration_error(y[250:], left_out.prob, n_bins=10))
    assert max(values) < 0.01
    assert gaps[2] > 0.15
