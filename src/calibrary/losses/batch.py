"""A batch of labels and probabilities as the losses see it: checked shapes, lenses, weighted means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from calibrary._errors import one_of

LENSES = ("binary", "top-label", "class-wise", "full")


@dataclass(frozen=True)
class Batch:
    """Labels, probabilities and weights: (N,) confidences with labels 0/1, or (N, K) rows with classes."""

    y: Tensor
    p: Tensor
    w: Tensor | None

    @property
    def total(self) -> Any:
        return len(self.y) if self.w is None else self.w.sum()

    @property
    def weight(self) -> Tensor:
        return torch.ones(len(self.y), dtype=self.p.dtype, device=self.p.device) if self.w is None else self.w

    def mean(self, rows: Tensor) -> Tensor:
        """Weighted mean over the rows."""
        return rows.mean(dim=0) if self.w is None else torch.tensordot(self.w, rows, dims=1) / self.w.sum()

    @property
    def label(self) -> Tensor:
        """Labels 0/1 in the dtype of the probabilities."""
        return self.y.to(self.p.dtype)

    @property
    def rows(self) -> Tensor:
        """Probabilities as rows, one column per class."""
        return torch.stack([1.0 - self.p, self.p], dim=1) if self.p.ndim == 1 else self.p

    @property
    def one_hot(self) -> Tensor:
        return torch.nn.functional.one_hot(self.y, self.rows.shape[1]).to(self.p.dtype)

    @property
    def p_true(self) -> Tensor:
        """Probability of the class that occurred."""
        return self.rows.gather(1, self.y[:, None])[:, 0]


def batch(y_true: Any, y_prob: Any, sample_weight: Any = None) -> Batch:
    """Check shapes and types; values are left alone, since looking at them would wait for the device."""
    if not isinstance(y_prob, Tensor) or not y_prob.is_floating_point():
        raise TypeError("y_prob must be a floating-point tensor of probabilities: torch.softmax(logits, dim=1)")
    if y_prob.ndim not in (1, 2) or (y_prob.ndim == 2 and y_prob.shape[1] < 2):
        raise ValueError(f"y_prob has shape {tuple(y_prob.shape)}: pass (N,) or (N, K) with K at least 2")
    y = torch.as_tensor(y_true, device=y_prob.device)
    if y.ndim != 1 or len(y) != len(y_prob):
        raise ValueError(f"y_true has shape {tuple(y.shape)} and y_prob {len(y_prob)} rows: pass one label per row")
    if len(y) == 0:
        raise ValueError("y_prob is empty: a loss needs at least one prediction")
    w = None
    if sample_weight is not None:
        w = torch.as_tensor(sample_weight, device=y_prob.device).to(y_prob.dtype)
        if w.shape != y.shape:
            raise ValueError(f"sample_weight has shape {tuple(w.shape)}: give one weight for each of {len(y)} rows")
    return Batch(y.long(), y_prob, w)


def through(b: Batch, lens: str, measure: Callable[[Batch], Tensor], default: str = "top-label") -> Tensor:
    """The measure of what the lens shows; class-wise, the mean over classes."""
    if lens == "auto":
        lens = "binary" if b.p.ndim == 1 or b.p.shape[1] == 2 else default
    one_of("lens", lens, LENSES)
    if lens == "full":
        return measure(b)
    if lens == "binary":
        if b.p.ndim == 2 and b.p.shape[1] != 2:
            raise ValueError(f"lens='binary' needs one probability or two columns and y_prob has {b.p.shape[1]}")
        return measure(b if b.p.ndim == 1 else Batch(b.y, b.p[:, 1], b.w))
    if lens == "top-label":
        confidence, predicted = b.rows.max(dim=1)
        return measure(Batch((predicted == b.y).long(), confidence, b.w))
    views = [Batch((b.y == k).long(), b.rows[:, k], b.w) for k in range(b.rows.shape[1])]
    return torch.stack([measure(view) for view in views]).mean()


def safe_root(x: Tensor, order: float = 2.0) -> Tensor:
    """x^(1/order), with gradient zero where x is zero or, by rounding, below."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0) ** (1.0 / order), 0.0 * x)
