"""Vector, matrix and Dirichlet scaling: one map, ``softmax(W log c + b)``, with different W and penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, softmax
from calibrary.data.predictions import Predictions
from calibrary.maps.likelihood import RIDGE, Temperature
from calibrary.maps.vector import VectorMap, logs, refuse_absent_classes
from calibrary.numerics.solve.newton import Evaluated, minimize

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
