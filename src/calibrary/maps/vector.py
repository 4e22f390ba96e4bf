"""Maps of whole probability vectors: temperatures with class biases, ensembles of them, and ``softmax(W log c + b)``.

Vector, matrix and Dirichlet scaling are that last map with different W and penalties; one curve per class is another.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, softmax
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.maps import fit_map
from calibrary.maps.base import EPS, CalibrationMap
from calibrary.maps.likelihood import RIDGE, Temperature
from calibrary.numerics.solve.newton import Evaluated, minimize, minimize_in_box


class VectorMap(CalibrationMap):
    """A map of whole rows; a subclass implements ``_rows(p)`` for one column per class. P(class 1) alone will do."""

    takes_vectors = True
    n_classes_: int

    def _rows(self, p: Array) -> Array:
        raise NotImplementedError

    def _evaluate(self, c: Array) -> Array:
        p = np.column_stack([1.0 - c, c]) if c.ndim == 1 else c
        if p.shape[1] != self.n_classes_:
            raise RefusedError(
                f"c has {p.shape[1]} columns and the map was fitted to {self.n_classes_} classes: pass one column per "
                "class"
            )
        q = self._rows(p)
        return q[:, 1] if c.ndim == 1 else q


@dataclass
class BiasTemperature(VectorMap):
    """Temperature scaling with a bias for each class: ``softmax(log c / T + b)``.

    The biases correct what temperature cannot: classes that are predicted too often or too rarely. For two classes this
    is Platt scaling. 1/T and the biases, which sum to zero, are fitted by maximum likelihood; a class that never occurs
    has no finite bias and raises an error.

    References
    ----------
    Alexandari, Kundaje, Shrikumar (2020), Maximum likelihood with bias-corrected calibration is hard-to-beat at label
    shift adaptation.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.maps import as_map
    >>> y, p, _ = cal.datasets.digits()
    >>> curve = as_map("bias_temperature").fit(y, p)
    >>> round(1 / curve.inverse_, 2), curve.bias_.shape
    (0.25, (10,))
    """

    def _learn(self, view: Predictions) -> None:
        self.n_classes_ = view.k
        refuse_absent_classes(view, "temperature with class biases")
        start = np.zeros(view.k)
        start[0] = 1.0
        theta = minimize(bias_loss(view), start).x
        self.inverse_ = float(theta[0])
        bias = np.append(theta[1:], 0.0)
        self.bias_ = bias - bias.mean()

    def _rows(self, p: Array) -> Array:
        return softmax(self.inverse_ * logs(p) + self.bias_)


@dataclass
class EnsembleTemperature(VectorMap):
    """Ensemble temperature scaling: a mixture of ``softmax(log c / T)``, c itself and equal probabilities.

    T is that of temperature scaling; the three shares are then fitted by maximum likelihood. The order of the classes
    never changes.

    References
    ----------
    Zhang, Kailkhura, Han (2020), Mix-n-Match: ensemble and compositional methods for uncertainty calibration in deep
    learning.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.maps import as_map
    >>> y, p, _ = cal.datasets.digits()
    >>> as_map("ensemble_temperature").fit(y, p).shares_.round(2).tolist()
    [1.0, 0.0, 0.0]
    """

    def _learn(self, view: Predictions) -> None:
        self.n_classes_ = view.k
        self.inverse_ = Temperature().fit(view).inverse_
        true = np.maximum([part[np.arange(view.n), view.y] for part in self._parts(view.p)], EPS)
        identity = np.array([1.0, 0.0, 0.0])

        def evaluate(shares: Array) -> Evaluated:
            # without a bound on their sum, but with its value added to the loss, the best shares sum to one
            away, mixed = shares - identity, shares @ true
            ratio = true / mixed
            value = float(shares.sum() - view.mean(np.log(mixed))) + 0.5 * RIDGE * float(away @ away)
            gradient = 1.0 - np.array([view.mean(part) for part in ratio]) + RIDGE * away
            return value, gradient, (ratio * (view.weight / view.total)) @ ratio.T + RIDGE * np.eye(3)

        found = minimize_in_box(evaluate, np.full(3, 1.0 / 3.0), 0.0, 1.0)
        self.shares_ = found / found.sum()

    def _parts(self, p: Array) -> tuple[Array, Array, Array]:
        return softmax(self.inverse_ * logs(p)), p, np.full(p.shape, 1.0 / self.n_classes_)

    def _rows(self, p: Array) -> Array:
        return np.tensordot(self.shares_, self._parts(p), axes=1)


def logs(p: Array) -> Array:
    """Logarithms of probabilities, moved inside (0, 1)."""
    return np.log(np.clip(p, EPS, 1.0 - EPS))


def bias_loss(view: Predictions) -> Callable[[Array], Evaluated]:
    """Mean log loss as a function of 1/T and the biases of all classes but the last."""
    x = logs(view.p)
    hit = x[np.arange(view.n), view.y]
    share = view.class_share
    weight = view.weight[:, None] / view.total
    identity = np.zeros(view.k)
    identity[0] = 1.0

    def evaluate(theta: Array) -> Evaluated:
        z = theta[0] * x
        z[:, :-1] += theta[1:]
        top = z.max(axis=1, keepdims=True)
        e = np.exp(z - top)
        total = e.sum(axis=1, keepdims=True)
        q = e / total
        mean = np.einsum("nk,nk->n", q, x)
        weighted = q * weight
        away = theta - identity
        value = view.mean((top + np.log(total))[:, 0] - theta[0] * hit) - float(share[:-1] @ theta[1:])
        expected = weighted.sum(axis=0)
        gradient = np.append(view.mean(mean - hit), (expected - share)[:-1]) + RIDGE * away
        hessian = np.empty((view.k, view.k))
        centered = x - mean[:, None]
        hessian[0, 0] = float(np.einsum("nk,nk->", weighted, centered * centered))
        hessian[0, 1:] = hessian[1:, 0] = np.einsum("nk,nk->k", weighted, centered)[:-1]
        hessian[1:, 1:] = (np.diag(expected) - weighted.T @ q)[:-1, :-1]
        hessian[np.diag_indices(view.k)] += RIDGE
        return float(value) + 0.5 * RIDGE * float(away @ away), gradient, hessian

    return evaluate


@dataclass
class ClassWise(CalibrationMap):
    """One curve per class, each fitted to "this class or not"; the rows are then divided by their sums.

    Parameters
    ----------
    map : a calibration map, or any object with ``fit(y, c, sample_weight)`` and ``predict(c)``
        The map is copied for every class.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.maps.isotonic import Isotonic
    >>> from calibrary.maps.vector import ClassWise
    >>> y, p, _ = cal.datasets.digits()
    >>> ClassWise(Isotonic()).fit(y, p)(p[:2]).sum(axis=1)
    array([1., 1.])
    """

    map: Any

    takes_vectors = True

    def _learn(self, view: Predictions) -> None:
        refuse_absent_classes(view, "one curve per class")
        self.n_classes_ = view.k
        views = view.through(as_lens("class-wise")).views
        self.maps_ = [fitted_copy(self.map, one) for one in views]

    def _evaluate(self, c: Array) -> Array:
        if c.ndim != 2 or c.shape[1] != self.n_classes_:
            got = "one" if c.ndim == 1 else str(c.shape[1])
            raise RefusedError(
                f"c has {got} columns and the map was fitted to {self.n_classes_} classes: pass one column per class"
            )
        q = np.column_stack([curve.predict(column) for curve, column in zip(self.maps_, c.T, strict=True)])
        total = q.sum(axis=1, keepdims=True)
        # if every curve is 0 there, the result is undetermined
        return np.divide(q, total, out=np.full(q.shape, 1.0 / self.n_classes_), where=total > 0.0)


def fitted_copy(map: Any, view: Predictions) -> Any:
    """A copy of the map, fitted to a view; the original object is not changed."""
    return fit_map(map if isinstance(map, CalibrationMap) else copy.deepcopy(map), view)


def refuse_absent_classes(view: Predictions, what: str) -> None:
    """Raise an error if a class does not occur, for a map that estimates the frequency of each class."""
    absent = np.flatnonzero(view.class_share == 0.0)
    if len(absent):
        name = view.classes[absent[0]]
        raise RefusedError(
            f"class {name!r} never occurs in the fitted rows, and {what} needs every class: use map='temperature', or "
            "more rows"
        )


#: Largest number of classes for which a full matrix is fitted.
MOST_CLASSES = 31
#: Rows times squared parameters that are handled at once.
_BLOCK = 2**24


@dataclass
class VectorScaling(VectorMap):
    """Vector scaling: ``softmax(w log c + b)`` with one slope and one bias for each class, by maximum likelihood.

    For two classes this is beta calibration without its bounds.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.maps import as_map
    >>> y, p, _ = cal.datasets.digits()
    >>> float(p[5].max()), round(float(as_map("vector").fit(y, p)(p[5:6]).max()), 2)
    (0.423906, 0.54)
    """

    full: ClassVar[bool] = False
    spoken: ClassVar[str] = "vector scaling"
    inverse_ = 1.0

    def _learn(self, view: Predictions) -> None:
        k = self.n_classes_ = view.k
        refuse_absent_classes(view, self.spoken)
        if self.full and k > MOST_CLASSES:
            raise RefusedError(
                f"{self.spoken} of {k} classes would fit {k * k + k:,} numbers, and at most {MOST_CLASSES} classes are "
                "possible: use map='vector', 'bias_temperature' or 'temperature'"
            )
        x = self._inputs(view.p)
        slopes = x[:, None, :] if self.full else x[:, :, None]
        design = np.concatenate([slopes, np.ones((*slopes.shape[:2], 1))], axis=2)
        identity = np.eye(k, k + 1) if self.full else np.tile([1.0, 0.0], (k, 1))
        penalty = 0.5 * RIDGE + self._penalty(k, view.total)
        loss = softmax_loss(np.broadcast_to(design, (view.n, *identity.shape)), view, penalty, identity)
        theta = minimize(loss, identity.ravel()).x.reshape(identity.shape)
        self.weights_, self.bias_ = theta[:, :-1] if self.full else theta[:, 0], theta[:, -1]

    def _inputs(self, p: Array) -> Array:
        return logs(p)

    def _penalty(self, k: int, n: float) -> Array | float:
        """The strength of the penalty on the square of each parameter's distance from the identity."""
        return 0.0

    def _rows(self, p: Array) -> Array:
        x = self._inputs(p)
        return softmax((x @ self.weights_.T if self.full else x * self.weights_) + self.bias_)


@dataclass
class MatrixScaling(VectorScaling):
    """Matrix scaling: ``softmax(W log c + b)`` with any matrix W, by maximum likelihood.

    It has K^2 + K numbers and overfits unless there are very many rows; ``structured_matrix`` has a penalty.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks.
    """

    full: ClassVar[bool] = True
    spoken: ClassVar[str] = "matrix scaling"


@dataclass
class DirichletScaling(MatrixScaling):
    """Dirichlet calibration: matrix scaling with a penalty on what is not diagonal, and on the biases.

    Parameters
    ----------
    off_diagonal : float
        The penalty is this number times the mean square of W off its diagonal,
    intercept : float
        and this number times the mean square of b. The authors choose both by cross-validation.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019), Beyond temperature scaling: obtaining
    well-calibrated multi-class probabilities with Dirichlet calibration.
    """

    off_diagonal: float = 0.01
    intercept: float = 0.01

    spoken: ClassVar[str] = "Dirichlet calibration"

    def _penalty(self, k: int, n: float) -> Array:
        off_diagonal, intercept = (_strength(name, getattr(self, name)) for name in ("off_diagonal", "intercept"))
        return _penalties(k, off_diagonal / (k * (k - 1)), 0.0, intercept / k)


@dataclass
class StructuredMatrix(MatrixScaling):
    """Structured matrix scaling: temperature scaling, then a matrix that is pulled towards the identity.

    The penalty on squares is K/N for the diagonal and the biases, and K(K-1)/N for the rest, times ``penalty``: with
    few rows the map is nearly temperature scaling, with many it is any linear map of log probabilities.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2026), Structured matrix scaling for multi-class calibration.
    """

    penalty: float = 1.0

    spoken: ClassVar[str] = "structured matrix scaling"

    def _learn(self, view: Predictions) -> None:
        self.inverse_ = Temperature().fit(view).inverse_
        super()._learn(view)

    def _inputs(self, p: Array) -> Array:
        return logs(softmax(self.inverse_ * logs(p)))

    def _penalty(self, k: int, n: float) -> Array:
        strength = _strength("penalty", self.penalty) * k / n
        return _penalties(k, strength * (k - 1), strength, strength)


def _strength(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 <= value < np.inf:
        raise RefusedError(f"{name}={value!r} must be a number of at least 0")
    return float(value)


def _penalties(k: int, off_diagonal: float, diagonal: float, intercept: float) -> Array:
    slopes = off_diagonal + (diagonal - off_diagonal) * np.eye(k)
    return np.column_stack([slopes, np.full(k, intercept)])


def softmax_loss(
    design: Array, view: Predictions, penalty: Array | float, center: Array
) -> Callable[[Array], Evaluated]:
    """Mean log loss of ``log q_k = design_k @ theta_k + constant``, for :func:`minimize`.

    ``design`` is (N, K, p), and ``penalty * (theta - center)^2`` is added, with one penalty for each parameter.
    """
    n, k, p = design.shape
    block = max(_BLOCK // (k * p) ** 2, 64)
    weight = view.weight / view.total
    hits = (view.y[:, None] == np.arange(k)) * weight[:, None]
    strength = np.broadcast_to(penalty, center.shape)

    def evaluate(theta: Array) -> Evaluated:
        away = theta.reshape(k, p) - center
        value, gradient = float((strength * away**2).sum()), 2.0 * strength * away
        hessian = np.diag(2.0 * strength.ravel())
        for i in range(0, n, block):
            d, w, hit = design[i : i + block], weight[i : i + block, None], hits[i : i + block]
            z = np.einsum("nkp,kp->nk", d, theta.reshape(k, p))
            z -= z.max(axis=1, keepdims=True)
            q = np.exp(z)
            total = q.sum(axis=1, keepdims=True)
            q /= total
            value += float((w * np.log(total)).sum() - (hit * z).sum())
            gradient = gradient + np.einsum("nk,nkp->kp", w * q - hit, d)
            spread = (q[:, :, None] * d).reshape(len(d), -1)
            hessian -= spread.T @ (spread * w)
            for j in range(k):
                own = slice(j * p, (j + 1) * p)
                hessian[own, own] += (d[:, j] * (w * q[:, [j]])).T @ d[:, j]
        return value, gradient.ravel(), hessian

    return evaluate
