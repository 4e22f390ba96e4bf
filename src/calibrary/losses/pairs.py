"""Squared kernel calibration errors of whole probability rows: large if residuals of similar predictions agree.

Two classes need one confidence only and cost a sort (Laplace) or a grid (Gaussian). More classes need all pairs of
rows, in blocks that are not stored for the backward pass: time quadratic in the rows, memory linear.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.signatures import options_of
from calibrary.losses.batch import View, like, visible
from calibrary.losses.blocks import positive, ratio, safe_root, step, summed_over_pairs
from calibrary.losses.declare import ROWS, LossKeywords, loss
from calibrary.losses.nodes import pair_form

_OPERATORS = ("barker", "gibbs", "metropolis", "difference")
#: Squared distances below this share of the squared lengths are rounding errors.
_ROUNDING = 1e-13
#: Number of classes above which cdist is faster on a GPU, too.
_MANY_CLASSES = 64


@loss("skce_b", lens="full", lenses=ROWS)
def squared_kernel_calibration_error_b(
    view: View,
    *,
    bandwidth: float,
    kernel: str = "laplace",
    metric: str | None = None,
    matrix: Any = None,
    **common: Unpack[LossKeywords],
) -> Tensor:
    """How strongly residuals of similar predictions have the same direction: squared, over all pairs (SKCE, biased).

    Never negative. The value is biased upwards by the pairs of a row with itself, so that it also rewards certainty.

    Parameters
    ----------
    bandwidth : float
        Width h of the kernel. A rule that chooses it has no gradient: compute it once with
        ``calibrary.kernels.median_bandwidth``.
    kernel : "laplace" or "gaussian"
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions.
    metric : "tv" or "euclidean", optional
        Total variation (default of the Laplace kernel) or the Euclidean distance (of the Gaussian).
    matrix : tensor of shape (K, K), optional
        A positive semi-definite matrix that compares residuals; the identity by default.
    """
    v = view.wide
    compare = _Comparison(v, kernel, metric, bandwidth)
    total, _ = _sums(v, compare, _residuals(v, matrix))
    return total.clamp(min=0.0) / v.total**2


@loss("skce_uq", lens="full", lenses=ROWS)
@options_of(squared_kernel_calibration_error_b)
def squared_kernel_calibration_error_uq(view: View, *, bandwidth: float, matrix: Any, **kernel: Any) -> Tensor:
    """Squared kernel calibration error over pairs of distinct rows: unbiased, so that batches estimate the whole.

    Slightly negative values occur by chance. At least two rows are needed; with weights, the copies of a row are
    distinct rows.

    Parameters
    ----------
    bandwidth, kernel, metric, matrix : see :func:`squared_kernel_calibration_error_b`
    """
    v = view.wide
    return _over_distinct(v, *_sums(v, _Comparison(v, bandwidth=bandwidth, **kernel), _residuals(v, matrix)))


@loss("skce_ul", lens="full", lenses=ROWS)
@options_of(squared_kernel_calibration_error_b)
def squared_kernel_calibration_error_ul(view: View, *, bandwidth: float, matrix: Any, **kernel: Any) -> Tensor:
    """Squared kernel calibration error over rows 1 and 2, 3 and 4, ...: unbiased and fast, but noisier; shuffle first.

    Parameters
    ----------
    bandwidth, kernel, metric, matrix : see :func:`squared_kernel_calibration_error_b`
    """
    v = view.wide
    _needs_a_pair(v)
    compare = _Comparison(v, bandwidth=bandwidth, **kernel)
    g, x, w = _residuals(v, matrix), v.p if v.p.ndim == 2 else v.rows, v.weight
    even = slice(0, v.n - 1, 2)
    odd = slice(1, v.n, 2)
    pair = w[even] * w[odd]
    h = (g[:, even] * g[:, odd]).sum(dim=-1) * compare.between(x[:, even], x[:, odd])
    return (h * pair).sum(dim=1) / pair.sum()


@loss("kccsd", lens="full", lenses=ROWS)
@options_of(squared_kernel_calibration_error_b, "matrix", kernel="gaussian")
def kernel_calibration_conditional_stein_discrepancy(
    view: View, *, bandwidth: float, operator: str = "barker", estimator: str = "u", **kernel: Any
) -> Tensor:
    """How far labels depart from the predicted odds, with similar predictions taken together (KCCSD).

    Parameters
    ----------
    bandwidth : float
        Width h of the kernel.
    operator : "barker", "gibbs", "metropolis" or "difference"
        Jump rates between classes, as in the metric; "gibbs" gives SKCE.
    estimator : "u" or "b"
        "u" is the mean over pairs of distinct rows, unbiased; "v" the mean over all pairs, never negative.
    kernel, metric : see :func:`squared_kernel_calibration_error_b`
    """
    one_of("operator", operator, _OPERATORS)
    one_of("estimator", estimator, ("u", "b"))
    v = view.wide
    total, own = _sums(v, _Comparison(v, bandwidth=bandwidth, **kernel), _stein_features(v, operator))
    return total.clamp(min=0.0) / v.total**2 if estimator == "b" else _over_distinct(v, total, own)


# -- features ---------------------------------------------------------------------------------------


def _residuals(view: View, matrix: Any) -> Tensor:
    """g with <g_i, g_j> = (e_y - c)_i' M (e_y - c)_j: (V, N, 1) on a line, else (V, N, K)."""
    m = None if matrix is None else like(matrix, "matrix", view.p).to(view.p.dtype)
    if m is not None and m.shape != (view.k, view.k):
        raise RefusedError(
            f"matrix has shape {tuple(m.shape)}, but it compares residuals of {view.k} classes: pass shape "
            f"({view.k}, {view.k})"
        )
    if view.k == 2:  # the residual is (y - c) times (-1, 1)
        size = 2.0 if m is None else (m[0, 0] - m[0, 1] - m[1, 0] + m[1, 1]).clamp(min=0.0)
        return (size**0.5 * view.residual)[..., None]
    residual = view.one_hot - view.rows
    if m is None:
        return residual
    values, vectors = torch.linalg.eigh(m)
    return residual @ (vectors * values.clamp(min=0.0).sqrt())


def _stein_features(view: View, operator: str) -> Tensor:
    """The result of a discrete Stein operator on the label's one-hot features: sum over z of b(z) (e_z - e_y)."""
    if view.k == 2 and operator in ("barker", "gibbs"):
        return -math.sqrt(2.0) * view.residual[..., None]
    p, hot, own = view.rows, view.one_hot, view.p_true[..., None]
    if operator == "difference":
        following = (p.roll(-1, dims=-1) * hot).sum(dim=-1, keepdim=True)
        return hot.roll(-1, dims=-1) - following / own * hot
    if operator == "gibbs":
        rate = p
    elif operator == "metropolis":
        rate = ratio(torch.minimum(p, own), own.expand_as(p), 1.0)
    else:
        rate = ratio(p, p + own, 0.5)
    rate = rate * (1.0 - hot)
    g = rate - rate.sum(dim=-1, keepdim=True) * hot
    # for two classes g is a number times (-1, 1)
    return math.sqrt(2.0) * g[..., 1:] if view.k == 2 else g


# -- sums over pairs --------------------------------------------------------------------------------


class _Comparison:
    """The kernel that compares two predictions: its name, distance and width."""

    def __init__(self, view: View, kernel: str, metric: str | None, bandwidth: float) -> None:
        one_of("kernel", kernel, ("laplace", "gaussian"))
        metric = ("tv" if kernel == "laplace" else "euclidean") if metric is None else metric
        one_of("metric", metric, ("tv", "euclidean"))
        if kernel == "gaussian" and metric == "tv" and view.k > 2:
            raise RefusedError(
                "kernel='gaussian' with metric='tv' is not positive definite for more than two classes: "
                "use metric='euclidean' or kernel='laplace'"
            )
        self.kernel, self.metric, self.h = kernel, metric, positive("bandwidth", bandwidth)

    @property
    def h_on_a_line(self) -> float:
        """The width for confidences: the Euclidean distance of two columns is sqrt 2 |c - c'|."""
        return self.h / (math.sqrt(2.0) if self.metric == "euclidean" else 1.0)

    def between(self, a: Tensor, b: Tensor) -> Tensor:
        """Kernel values of confidences (V, P) or rows (V, P, K) against others, one by one."""
        if a.ndim == 2:
            d, h = (a - b).abs(), self.h_on_a_line
        elif self.metric == "tv":
            d, h = 0.5 * (a - b).abs().sum(dim=-1), self.h
        else:
            d, h = safe_root((a - b).square().sum(dim=-1)), self.h
        return torch.exp(-d / h if self.kernel == "laplace" else -0.5 * (d / h) ** 2)

    def block(self, a: Tensor, b: Tensor) -> Tensor:
        """Kernel values of all rows (P, K) against all others (Q, K)."""
        if self.metric == "tv":
            return torch.exp(-total_variation(a, b) / self.h)
        length = a.square().sum(dim=1)[:, None] + b.square().sum(dim=1)
        square = length - 2.0 * (a @ b.T)
        square = torch.where(square > _ROUNDING * length.detach(), square, 0.0)
        return torch.exp(-safe_root(square) / self.h if self.kernel == "laplace" else square * (-0.5 / self.h**2))


def _sums(view: View, compare: _Comparison, g: Tensor) -> tuple[Tensor, Tensor]:
    """For every problem: the sum over all pairs of w_i w_j <g_i, g_j> k_ij, and that of w_i <g_i, g_i>, (V,) both."""
    own = view.sum(g.square().sum(dim=-1))
    if g.shape[-1] == 1:
        return pair_form(view.c, g[..., 0] * view.weight, compare.kernel, compare.h_on_a_line), own
    rows, weighted = view.rows, g * view.weight[:, None]
    return torch.stack([_pair_sum(rows[v], weighted[v], compare) for v in range(len(rows))]), own


def _pair_sum(x: Tensor, g: Tensor, compare: _Comparison) -> Tensor:
    """Sum over all pairs of <g_i, g_j> k(x_i, x_j), in which pairs of different blocks are computed once."""
    x = x - x.detach().mean(dim=0)  # distances stay, lengths shrink: less rounding error

    def with_later(here: slice, a: Tensor, left: Tensor, x: Tensor, g: Tensor) -> Tensor:
        later = slice(here.start, None)
        products = (left @ g[later].T) * compare.block(a, x[later])
        return 2.0 * products.sum() - products[:, : len(a)].sum()

    return summed_over_pairs(with_later, step(len(x), x.device), (x, g), (x, g))


def _over_distinct(view: View, total: Tensor, own: Tensor) -> Tensor:
    pairs = view.total**2 - view.total
    if view.w is None:
        _needs_a_pair(view)
    elif visible(view.w) and float(view.w.sum()) <= 1.0:
        raise RefusedError(
            f"sample_weight sums to {float(view.w.sum()):g}, but weights count copies of rows here and must sum to "
            "more than 1: multiply them"
        )
    return (total - own) / pairs


def _needs_a_pair(view: View) -> None:
    if view.n < 2:
        raise RefusedError("y_prob has one row, and pairs of rows are compared: pass at least two rows")


def total_variation(a: Tensor, b: Tensor) -> Tensor:
    """Half the sum of absolute differences of all rows (P, K) and (Q, K)."""
    # on a GPU cdist takes ten times as long as a loop over few classes; on a CPU it is faster
    if a.device.type == "cpu" or a.shape[1] > _MANY_CLASSES:
        return 0.5 * torch.cdist(a, b, p=1.0)
    return _TotalVariation.apply(a, b)


class _TotalVariation(torch.autograd.Function):  # type: ignore[misc]  # PyTorch is not type-checked
    """A loop over the classes that stores nothing of the size of a block for its backward pass."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        total = a.new_zeros(len(a), len(b))
        for x, y in zip(a.T, b.T, strict=True):
            total += (x[:, None] - y).abs_()
        return 0.5 * total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        to_a, to_b = [], []
        for x, y in zip(a.T, b.T, strict=True):
            pull = (x[:, None] - y).sign() * gradient
            to_a.append(pull.sum(dim=1))
            to_b.append(-pull.sum(dim=0))
        return 0.5 * torch.stack(to_a, dim=1), 0.5 * torch.stack(to_b, dim=1)
