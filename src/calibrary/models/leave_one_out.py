"""Leave-one-out predictions of a fitted model: by influence, by a Newton step, or by refitting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, one_of
from calibrary.base.once import once
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, Indices, as_array, as_floats, softmax
from calibrary.metrics.point.consistency import interval_middles
from calibrary.numerics.draw import generator

__all__ = ["JackknifePredictions", "jackknife_predictions"]

#: Largest number of values handled at a time: left-out models times evaluation rows times classes.
_CHUNK = 2**21
#: Number of parameters above which the Hessian of a network is applied without being stored.
_EXACT_PARAMETERS = 3000


@dataclass(frozen=True)
class JackknifePredictions:
    """Predictions of a model and of its left-out copies. The result unpacks as ``prob, loo, loo_residuals``.

    ``individual()`` gives the estimates that EICE needs without storing the (n, N) array ``loo``.
    """

    prob: Array
    loo_residuals: Array
    _models: LeftOut
    _rows: Any
    _classes: Indices

    @once
    def loo(self) -> Array:
        """(n, N): probability of the class of interest of each row under each left-out model."""
        return np.concatenate([part for _, part in self._parts()], axis=1)

    def individual(self, coverage: float = 0.9, clip: bool = False) -> Array:
        """Midpoint of the jackknife interval of each evaluated row."""
        return np.concatenate([interval_middles(part, self.loo_residuals, coverage, clip) for _, part in self._parts()])

    def __iter__(self) -> Any:
        yield from (self.prob, self.loo, self.loo_residuals)

    def _parts(self) -> Any:
        n, total = len(self.loo_residuals), len(self._classes)
        step = max(1, _CHUNK // (n * self._models.n_classes))
        for start in range(0, total, step):
            rows = slice(start, start + step)
            yield rows, self._models.probability(_take(self._rows, rows), self._classes[rows])


@checks_options
def jackknife_predictions(
    model: Any = None,
    X_train: Any = None,
    y_train: Any = None,
    X_eval: Any = None,
    *,
    method: str = "influence",
    damp: float | None = None,
    lens: str = "auto",
    loss_fn: Callable[..., Any] | None = None,
    predict_fn: Callable[[Array, Any], Any] | None = None,
    theta: Any = None,
    grads: Any = None,
    hessian: Any = None,
) -> JackknifePredictions:
    r"""The predictions that a fitted model would make with each training row left out in turn.

    Left-out parameters are approximated at the cost of one matrix solve, or computed exactly by refitting:

    - ``"influence"``: :math:`\theta + \frac1n (H + \lambda I)^{-1} g_k`, H the Hessian of the mean training loss
      (penalty included) and :math:`g_k` the gradient of row k's loss.
    - ``"newton"``: :math:`\theta + (nH - H_k + \lambda I)^{-1} g_k`, closer to the truth at the same cost (logistic
      regression only).
    - ``"refit"``: fit n clones (any scikit-learn estimator with ``predict_proba``).

    Parameters
    ----------
    model : fitted scikit-learn estimator, or torch.nn.Module that maps features to logits
        Influence and Newton steps need a ``LogisticRegression`` (two classes or multinomial, no l1 penalty).
    X_train, y_train : array-like
        The rows the model was fitted on.
    X_eval : array-like
        The rows to predict.
    method : "influence", "newton" or "refit"
    damp : float, optional
        :math:`\lambda`; default 0, for networks 0.01.
    lens : "auto", "binary" or "top-label"
        Class of interest: class 1, or the predicted class ("auto": class 1 for two classes, else predicted).
    loss_fn : callable(logits, labels), optional
        Mean loss a network was trained with; cross-entropy by default.
    predict_fn, theta, grads, hessian : for any other model
        ``predict_fn(theta, X)`` gives probabilities, ``theta`` (P,) the fitted parameters, ``grads`` (n, P) the
        gradients of the rows' losses and ``hessian`` (P, P) that of the mean loss.

    Returns
    -------
    JackknifePredictions
        ``prob, loo, loo_residuals = result``; ``result.individual()`` for large data.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.linspace(-2, 2, 40)[:, None]; y = (np.sin(9 * x[:, 0]) + x[:, 0] > 0).astype(int)
    >>> model = LogisticRegression().fit(x[::2], y[::2])
    >>> left_out = cal.jackknife_predictions(model, x[::2], y[::2], x[1::2])
    >>> eice = cal.expected_individual_calibration_error(y[1::2], left_out.prob, individual=left_out.individual())
    >>> bool(eice < 0.05)
    True
    """
    one_of("method", method, ("influence", "newton", "refit"))
    one_of("lens", lens, ("auto", "binary", "top-label"))
    if X_train is None or y_train is None or X_eval is None:
        raise RefusedCallError(
            "X_train, y_train or X_eval is missing: pass the rows the model was fitted on, and the rows to predict"
        )
    if model is None and predict_fn is None:
        raise RefusedCallError("model is missing: pass a fitted model, or predict_fn with theta, grads and hessian")
    models: LeftOut
    if predict_fn is not None:
        models = _given(predict_fn, theta, grads, hessian, X_train, y_train, method, damp)
    elif hasattr(model, "named_parameters"):
        models = _network(model, X_train, y_train, loss_fn, method, damp)
    elif method == "refit":
        models = _refitted(model, X_train, y_train)
    else:
        models = _logistic(model, X_train, y_train, method, damp)
    return _assembled(models, X_train, X_eval, lens)


def _assembled(models: LeftOut, X_train: Any, X_eval: Any, lens: str) -> JackknifePredictions:
    prob = models.full(X_eval)
    if lens == "binary" and models.n_classes != 2:
        raise RefusedError(f"lens='binary' needs two classes and the model has {models.n_classes}: use 'top-label'")
    if lens == "top-label" or models.n_classes != 2:
        shown, own = _top(prob), _top(models.full(X_train))
    else:
        shown, own = np.ones(len(prob), dtype=np.intp), np.ones(len(models.labels), dtype=np.intp)
    residuals = np.abs((models.labels == own) - models.own(X_train, own))
    return JackknifePredictions(prob[:, 1] if models.n_classes == 2 else prob, residuals, models, X_eval, shown)


def _top(prob: Array) -> Indices:
    # for two classes compare with 1/2, as the top-label lens does on P(class 1)
    return (prob[:, 1] > 0.5).astype(np.intp) if prob.shape[1] == 2 else prob.argmax(axis=1)


# -- models given by their parameters ---------------------------------------------------------------


@dataclass(frozen=True)
class _Linear:
    """Logistic regression: logits are linear, so all left-out copies are evaluated by one product."""

    theta: Array  # (L, D), L = 1 for two classes
    moved: Array  # (n, L, D)
    labels: Indices
    design: Callable[[Any], Array]

    @property
    def n_classes(self) -> int:
        return max(2, len(self.theta))

    def full(self, X: Any) -> Array:
        """(N, K) probabilities of the fitted model."""
        return softmax(_two_logits(self.design(X) @ self.theta.T))

    def probability(self, X: Any, classes: Indices) -> Array:
        """(n, N): probability of class classes[i] for row i under each left-out copy."""
        logits = _two_logits(np.einsum("nld,ed->nel", self.moved, self.design(X), optimize=True))
        return _picked(softmax(logits), classes[None, :])

    def own(self, X: Any, classes: Indices) -> Array:
        """(n,): probability of class classes[k] for training row k under the copy without it."""
        return _picked(softmax(_two_logits(np.einsum("nld,nd->nl", self.moved, self.design(X)))), classes)


@dataclass(frozen=True)
class _Evaluated:
    """Any model that can be evaluated at each of n left-out parameter vectors (or n fitted estimators).

    The methods are those of :class:`_Linear`.
    """

    predict: Callable[[Any, Any], Array]
    fitted: Any
    moved: Any
    labels: Indices
    n_classes: int

    def full(self, X: Any) -> Array:
        return self.predict(self.fitted, X)

    def probability(self, X: Any, classes: Indices) -> Array:
        return np.stack([_picked(self.predict(one, X), classes) for one in self.moved])

    def own(self, X: Any, classes: Indices) -> Array:
        rows = (self.predict(one, _take(X, slice(k, k + 1))) for k, one in enumerate(self.moved))
        return np.array([p[0, c] for p, c in zip(rows, classes, strict=True)])


#: A fitted model and its n copies, each without one training row.
LeftOut = _Linear | _Evaluated


def _logistic(model: Any, X_train: Any, y_train: Any, method: str, damp: float | None) -> _Linear:
    _refuse_other_models(model)
    K = len(model.classes_)
    labels = _positions(y_train, model.classes_)

    def design(X: Any) -> Array:
        x = as_floats(X, "X")
        return np.column_stack([x, np.ones(len(x))]) if model.fit_intercept else x

    x = design(X_train)
    theta = np.column_stack([model.coef_, model.intercept_]) if model.fit_intercept else np.asarray(model.coef_)
    p = softmax(_two_logits(x @ theta.T))
    L, (n, D) = len(theta), x.shape
    weight = _class_weights(model, labels)
    if L == 1:
        residual = (p[:, 1] - labels)[:, None]
        curvature = (p[:, 1] * p[:, 0])[:, None, None]
    else:
        residual = p - np.eye(K)[labels]
        curvature = p[:, :, None] * np.eye(K) - p[:, :, None] * p[:, None, :]
    residual, curvature = residual * weight[:, None], curvature * weight[:, None, None]
    A = np.einsum("nab,ni,nj->aibj", curvature, x, x, optimize=True).reshape(L * D, L * D)
    A += np.diag(np.tile(_ridge(model, D), L)) + (damp or 0.0) * (n if method == "influence" else 1) * np.eye(L * D)
    if L > 1:
        # Adding the same vector to every class has no effect; gradients are orthogonal to that direction, so making it
        # definite does not change any step.
        A += np.kron(np.full((K, K), 1.0 / K), np.eye(D)) * max(1.0, float(np.trace(A)) / len(A))
    if method == "newton":
        # Woodbury: removing row k's curvature S costs an L x L solve, (I - S M)^-1 with M its leverage
        inverse = _solve(A, np.eye(L * D)).reshape(L, D, L, D)
        leverage = np.einsum("ni,aibj,nj->nab", x, inverse, x, optimize=True)
        residual = np.linalg.solve(np.eye(L) - curvature @ leverage, residual[..., None])[..., 0]
    step = _solve(A, (residual[:, :, None] * x[:, None, :]).reshape(n, L * D).T).T
    return _Linear(theta, theta + step.reshape(n, L, D), labels, design)


def _refuse_other_models(model: Any) -> None:
    names = {cls.__name__ for cls in type(model).__mro__}
    if "LogisticRegression" not in names or "LogisticRegressionCV" in names:
        raise RefusedCallError(
            "influence and Newton steps are available for LogisticRegression and torch modules, not "
            f"{type(model).__name__}: use method='refit', or pass predict_fn, theta, grads and hessian"
        )
    if not hasattr(model, "coef_"):
        raise RefusedError("model is not fitted: call model.fit(X_train, y_train) first")
    one_vs_rest = len(model.classes_) > 2 and (
        getattr(model, "multi_class", "auto") == "ovr" or model.solver == "liblinear"
    )
    if one_vs_rest or getattr(model, "penalty", None) in ("l1", "elasticnet") or getattr(model, "l1_ratio", 0):
        raise RefusedError("influence and Newton steps need a smooth joint likelihood (l2 penalty): use method='refit'")


def _ridge(model: Any, D: int) -> Array:
    """Second derivative of the penalty: 1/C on coefficients; liblinear alone also penalises its intercept."""
    strength = 0.0 if getattr(model, "penalty", "l2") in (None, "none") else 1.0 / model.C
    ridge = np.full(D, strength)
    if model.fit_intercept:
        ridge[-1] = strength / model.intercept_scaling**2 if model.solver == "liblinear" else 0.0
    return ridge


def _class_weights(model: Any, labels: Indices) -> Array:
    if model.class_weight is None:
        return np.ones(len(labels))
    from sklearn.utils.class_weight import compute_class_weight

    names = model.classes_[labels]
    return np.asarray(compute_class_weight(model.class_weight, classes=model.classes_, y=names)[labels])


def _refitted(model: Any, X_train: Any, y_train: Any) -> _Evaluated:
    from sklearn.base import clone

    if not hasattr(model, "classes_"):
        raise RefusedError("model is not a fitted classifier: call model.fit(X_train, y_train) first")
    y = as_array(y_train, "y_train")
    classes, n = model.classes_, len(y)

    def without(k: int) -> Any:
        rows = np.delete(np.arange(n), k)
        fitted = clone(model).fit(_take(X_train, rows), y[rows])
        if len(fitted.classes_) != len(classes):
            raise RefusedError(
                f"y_train[{k}] = {y[k]!r} is the only row of its class, so the model without it lacks that class: "
                "leave that class out"
            )
        return fitted

    moved = [without(k) for k in range(n)]
    return _Evaluated(lambda one, X: one.predict_proba(X), model, moved, _positions(y, classes), len(classes))


def _given(
    predict_fn: Any, theta: Any, grads: Any, hessian: Any, X_train: Any, y_train: Any, method: str, damp: float | None
) -> _Evaluated:
    if theta is None or grads is None or hessian is None:
        raise RefusedCallError("predict_fn needs theta (P,), grads (n, P) and hessian (P, P) as well")
    if method != "influence":
        raise RefusedError(f"method={method!r} needs the model itself: predict_fn needs method='influence'")
    center = as_floats(theta, "theta")
    g, H = as_floats(grads, "grads"), as_floats(hessian, "hessian")
    n, P = len(as_array(y_train, "y_train")), center.size
    if center.ndim != 1 or g.shape != (n, P) or H.shape != (P, P):
        raise RefusedError(
            f"theta has shape {center.shape}, grads {g.shape} and hessian {H.shape}: pass shapes (P,), ({n}, P) and "
            "(P, P) for P parameters"
        )

    def predict(one: Array, X: Any) -> Array:
        p = as_floats(predict_fn(one, X), "predict_fn(theta, X)")
        return np.column_stack([1.0 - p, p]) if p.ndim == 1 else p

    moved = center + _solve(H + (damp or 0.0) * np.eye(P), g.T).T / n
    K = predict(center, _take(X_train, slice(0, 1))).shape[1]
    return _Evaluated(predict, center, moved, _positions(y_train, np.arange(K)), K)


# -- PyTorch ----------------------------------------------------------------------------------------


def _network(model: Any, X_train: Any, y_train: Any, loss_fn: Any, method: str, damp: float | None) -> _Evaluated:
    import torch
    from torch.func import functional_call, grad, vmap

    if method != "influence":
        raise RefusedError(f"method={method!r} is not available for torch modules: use method='influence'")
    names = [name for name, _ in model.named_parameters()]
    shapes = [value.shape for _, value in model.named_parameters()]
    # double precision throughout: the left-out steps are differences of nearly equal numbers
    theta = torch.cat([value.detach().double().reshape(-1) for _, value in model.named_parameters()])
    fixed = {n: b.detach().double() if b.is_floating_point() else b.detach() for n, b in model.named_buffers()}

    def inputs(X: Any) -> Any:
        values = X.detach().cpu().numpy() if hasattr(X, "detach") else np.asarray(X)
        tensor = torch.as_tensor(np.array(values), device=theta.device)
        return tensor.double() if tensor.is_floating_point() else tensor

    def logits(flat: Any, x: Any) -> Any:
        parts = torch.split(flat, [math.prod(s) for s in shapes])
        named = {name: part.reshape(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
        return functional_call(model, {**named, **fixed}, (x,))

    x, y = inputs(X_train), torch.as_tensor(np.array(as_array(y_train, "y_train")), device=theta.device).long()
    loss = loss_fn or _cross_entropy

    def mean_loss(flat: Any, rows: Any, labels: Any) -> Any:
        return loss(logits(flat, rows), labels)

    def predict(flat: Any, X: Any) -> Array:
        with _evaluating(model), torch.no_grad():
            out = logits(torch.as_tensor(flat, device=theta.device), inputs(X)).cpu().numpy()
        return softmax(_two_logits(out.reshape(len(out), -1)))

    with _evaluating(model):
        one_row = grad(lambda flat, row, label: mean_loss(flat, row[None], label[None]))
        g = vmap(one_row, in_dims=(None, 0, 0))(theta, x, y).cpu().numpy()
        step = _network_solve(lambda flat: mean_loss(flat, x, y), theta, g, 1e-2 if damp is None else damp)
    K = predict(theta, X_train).shape[1]
    moved = theta.cpu().numpy() + step / len(g)
    return _Evaluated(predict, theta.cpu().numpy(), moved, _positions(y_train, np.arange(K)), K)


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def _cross_entropy(logits: Any, labels: Any) -> Any:
    from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

    flat = logits.reshape(len(labels), -1)
    if flat.shape[1] == 1:
        return binary_cross_entropy_with_logits(flat[:, 0], labels.to(flat.dtype))
    return cross_entropy(flat, labels)


def _network_solve(loss: Any, theta: Any, g: Array, damp: float) -> Array:
    """(H + damp I)^-1 applied to every row of g."""
    from torch.autograd.functional import hessian, hvp

    P = len(theta)
    if P <= _EXACT_PARAMETERS:
        H = hessian(loss, theta).cpu().numpy()
        return _solve((H + H.T) / 2.0 + damp * np.eye(P), g.T).T
    from scipy.sparse.linalg import LinearOperator, cg, eigsh

    def apply(v: Array) -> Array:
        product = hvp(loss, theta, theta.new_tensor(v.ravel()))[1].cpu().numpy()
        return np.asarray(product + damp * v.ravel())

    H_times = LinearOperator((P, P), matvec=apply, dtype=np.float64)
    start = generator(0, "first vector").standard_normal(P)
    if eigsh(H_times, k=1, which="SA", v0=start, tol=1e-2, return_eigenvectors=False)[0] <= 0:
        raise _not_definite()
    steps = []
    for row in g:
        step, failed = cg(H_times, row, rtol=1e-8, maxiter=10 * P)
        if failed:
            raise RefusedError(f"conjugate gradients did not converge in {10 * P} steps: raise damp (now {damp:g})")
        steps.append(step)
    return np.array(steps)


# -- small parts ------------------------------------------------------------------------------------


def _solve(A: Array, B: Array) -> Array:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        factor = cho_factor(A)
    except LinAlgError as error:
        raise _not_definite() from error
    # the share of each parameter's curvature that the others do not explain; rounding can leave 1e-16 of none
    own = np.diag(factor[0]) ** 2 / np.diag(A)
    if own.min() <= 10.0 * len(A) * np.finfo(np.float64).eps:
        raise _not_definite()
    return np.asarray(cho_solve(factor, B))


def _not_definite() -> ValueError:
    return ValueError(
        "the Hessian is not positive definite (collinear features, or a network away from a minimum): raise damp"
    )


def _two_logits(z: Array) -> Array:
    """One logit per class; a single logit s means (0, s)."""
    return np.concatenate([np.zeros_like(z), z], axis=-1) if z.shape[-1] == 1 else z


def _picked(prob: Array, classes: Indices) -> Array:
    index = np.broadcast_to(classes, prob.shape[:-1])[..., None]
    return np.take_along_axis(prob, index, axis=-1)[..., 0]


def _positions(y: Any, classes: NDArray[Any]) -> Indices:
    """Labels as positions among the model's classes."""
    position = {name: i for i, name in enumerate(classes.tolist())}
    values = as_array(y, "y_train").tolist()
    for k, value in enumerate(values):
        if value not in position:
            raise RefusedError(f"y_train[{k}] = {value!r} is not among the model's classes {classes.tolist()}")
    return np.array([position[value] for value in values], dtype=np.intp)


def _take(X: Any, rows: Any) -> Any:
    """Some rows of an array, tensor or data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else (X if hasattr(X, "shape") else np.asarray(X))[rows]
