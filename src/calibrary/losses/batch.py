"""A batch of labels and probabilities for a loss: checked once, then viewed through a lens.

A loss receives a :class:`View`: one or several problems of the same rows, labels (V, N) and confidences (V, N) or
probability rows (V, N, K). The class-wise lens gives one problem for every class, every other lens one problem in all,
so that one formula serves both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from calibrary.base.errors import RefusedCallError, RefusedError, one_of
from calibrary.losses.blocks import at_least_single

#: How far rounding may put a probability beyond 0 or 1, in units of its precision.
_ROUNDING = 16


@dataclass(frozen=True)
class View:
    """V problems of the same N rows, with labels y (V, N) and probabilities p, (V, N) or (V, N, K)."""

    y: Tensor
    p: Tensor
    w: Tensor | None
    #: The whole probability rows (N, K) and labels (N,) before the lens was applied.
    whole_p: Tensor
    whole_y: Tensor
    lens: str

    @property
    def n(self) -> int:
        return int(self.y.shape[1])

    @property
    def k(self) -> int:
        """Number of classes."""
        return 2 if self.p.ndim == 2 else int(self.p.shape[2])

    @property
    def c(self) -> Tensor:
        """Confidences (V, N): P(label = 1); for two columns, the second."""
        return self.p if self.p.ndim == 2 else self.p[..., 1]

    @property
    def label(self) -> Tensor:
        """Labels 0/1 as numbers."""
        return self.y.to(self.p.dtype)

    @property
    def residual(self) -> Tensor:
        """y - c."""
        return self.label - self.c

    @property
    def rows(self) -> Tensor:
        """Probabilities (V, N, K), one column per class."""
        return torch.stack([1.0 - self.p, self.p], dim=-1) if self.p.ndim == 2 else self.p

    @property
    def one_hot(self) -> Tensor:
        # compared, not scattered: inspecting the labels would wait for the device
        return (self.y[..., None] == torch.arange(self.k, device=self.y.device)).to(self.p.dtype)

    @property
    def p_true(self) -> Tensor:
        """Probability of the class that occurred."""
        if self.p.ndim == 2:
            return torch.where(self.y == 1, self.p, 1.0 - self.p)
        return self.p.gather(2, self.y[..., None])[..., 0]

    @property
    def weight(self) -> Tensor:
        """Weights (N,); ones by default."""
        return torch.ones(self.n, dtype=self.p.dtype, device=self.p.device) if self.w is None else self.w

    @property
    def total(self) -> Any:
        return float(self.n) if self.w is None else self.w.sum()

    def sum(self, values: Tensor) -> Tensor:
        """Weighted sum over the rows of values (V, N) or (V, N, K)."""
        if self.w is None:
            return values.sum(dim=1)
        return (values * (self.w if values.ndim == 2 else self.w[:, None])).sum(dim=1)

    def mean(self, values: Tensor) -> Tensor:
        """Weighted mean over the rows."""
        return self.sum(values) / self.total

    @property
    def wide(self) -> View:
        """This view in double precision, for sums over many rows or pairs of rows in which terms nearly cancel."""
        dtype = widest(self.p.device)
        return replace(self, p=self.p.to(dtype), w=None if self.w is None else self.w.to(dtype))


def walk(view: View) -> tuple[Tensor, Tensor]:
    """Ascending confidences and the cumulative residuals up to each, both (V, N), in double precision."""
    v = view.wide
    c, order = v.c.sort(dim=1)
    return c, (v.residual * v.weight).gather(1, order).cumsum(dim=1)


def widest(device: torch.device) -> torch.dtype:
    """Double precision, except on Apple's GPUs, which have none."""
    return torch.float32 if device.type == "mps" else torch.float64


def checked(y_true: Any, y_prob: Any, sample_weight: Any = None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Labels, probabilities (at least single precision) and weights, or an error with the remedy.

    Values are inspected on the CPU only: inspecting another device's memory would wait for it.
    """
    p = _probabilities(y_true, y_prob)
    y = like(y_true, "y_true", p)
    if y.ndim == 2:
        raise RefusedError(
            f"y_true has shape {tuple(y.shape)}: pass one class per row, y_true.argmax(dim=1) of a one-hot"
        )
    if y.ndim != 1 or len(y) != len(p):
        raise RefusedError(f"y_true has shape {tuple(y.shape)} and y_prob {len(p)} rows: pass one label per row")
    if visible(p):
        _look_at(p, y)
    return y.long(), p, _weights(sample_weight, p)


def like(values: Any, name: str, p: Tensor) -> Tensor:
    """Values of the user as a tensor on the device of the probabilities; labels and weights have no gradient."""
    if isinstance(values, Tensor):
        if values.device != p.device:
            raise RefusedError(
                f"{name} is on {values.device} and y_prob on {p.device}: move one of them, {name}.to(y_prob.device)"
            )
        if values.requires_grad:
            raise RefusedError(f"{name} requires a gradient, but a loss has no gradient in it: pass {name}.detach()")
        return values
    try:
        return torch.as_tensor(values, device=p.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise RefusedError(f"{name} cannot be read as a tensor ({error}): pass one number per row") from error


def per_row(values: Any, name: str, p: Tensor, what: str) -> Tensor:
    """One number of the user for each row of the probabilities, in their precision."""
    numbers = like(values, name, p).to(p.dtype)
    if numbers.shape != (len(p),):
        raise RefusedError(f"{name} has shape {tuple(numbers.shape)}: pass one {what} for each of the {len(p)} rows")
    return numbers


def visible(values: Tensor) -> bool:
    """Whether the values can be inspected without waiting for a device or breaking a compiled graph."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def _probabilities(y_true: Any, y_prob: Any) -> Tensor:
    if not isinstance(y_prob, Tensor) or not y_prob.is_floating_point():
        swapped = isinstance(y_true, Tensor) and y_true.is_floating_point()
        cause = ": the arguments look swapped, call loss(y_true, y_prob)" if swapped else ""
        raise RefusedCallError(
            "y_prob must be a floating-point tensor of probabilities, such as torch.softmax(logits, dim=1)" + cause
        )
    if y_prob.ndim == 2 and y_prob.shape[1] == 1:
        raise RefusedError("y_prob has one class: pass y_prob[:, 0] if it is P(class 1), or one column per class")
    if y_prob.ndim not in (1, 2):
        raise RefusedError(
            f"y_prob has shape {tuple(y_prob.shape)}: pass (N,) with P(class 1), or (N, K) with K at least 2"
        )
    if len(y_prob) == 0:
        raise RefusedError("y_prob is empty: a loss needs at least one prediction; leave out empty batches")
    return at_least_single(y_prob)


def _look_at(p: Tensor, y: Tensor) -> None:
    classes = 2 if p.ndim == 1 else p.shape[1]
    low, high = (float(v) for v in torch.aminmax(p.detach()))
    slack = _ROUNDING * torch.finfo(p.dtype).eps
    if low < -slack or high > 1.0 + slack:  # NaN passes, as in every loss of PyTorch
        bad = low if low < -slack else high
        raise RefusedError(
            f"y_prob holds {bad:g}: pass probabilities, torch.softmax(logits, dim=1) or torch.sigmoid(logits)"
        )
    if y.is_floating_point() and not bool((y == y.round()).all()):
        bad = float(y[y != y.round()][0])
        raise RefusedError(f"y_true holds {bad:g}: pass classes 0..{classes - 1}; soft labels go to soft_target=")
    least, most = (int(v) for v in torch.aminmax(y.long()))
    if least < 0 or most >= classes:
        bad = least if least < 0 else most
        raise RefusedError(f"y_true holds {bad} and y_prob has {classes} classes: pass classes 0..{classes - 1}")


def _weights(sample_weight: Any, p: Tensor) -> Tensor | None:
    if sample_weight is None:
        return None
    w = per_row(sample_weight, "sample_weight", p, "weight")
    if visible(w) and not (float(w.min()) >= 0.0 and float(w.sum()) > 0.0):
        raise RefusedError(f"sample_weight holds {float(w.min()):g}: weights must not be negative, nor all zero")
    return w


def look(y: Tensor, p: Tensor, w: Tensor | None, lens: str, lenses: tuple[str, ...], default: str) -> View:
    """The views of a batch through a lens; "auto" is "binary" for two classes and ``default`` for more."""
    if lens == "auto":
        lens = "binary" if p.ndim == 1 or p.shape[1] == 2 else default
    one_of("lens", lens, lenses)
    whole = torch.stack([1.0 - p, p], dim=1) if p.ndim == 1 else p
    if lens == "full":
        return View(y[None], whole[None], w, whole, y, lens)
    if lens == "binary":
        if p.ndim == 2 and p.shape[1] != 2:
            raise RefusedError(
                f"lens='binary' needs one probability or two columns and y_prob has {p.shape[1]}: "
                "use lens='top-label' or lens='class-wise'"
            )
        return View(y[None], (p if p.ndim == 1 else p[:, 1])[None], w, whole, y, lens)
    if lens == "top-label":
        confidence, predicted = whole.max(dim=1)
        return View((predicted == y).long()[None], confidence[None], w, whole, y, lens)
    classes = torch.arange(whole.shape[1], device=y.device)
    return View((classes[:, None] == y).long(), whole.T, w, whole, y, lens)
