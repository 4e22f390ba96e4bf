"""The target of each row: its class as a one-hot row, or soft labels in its place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError
from calibrary.losses.batch import View, like, visible


def targets(view: View, soft_target: Any = None) -> Tensor:
    """(V, N, K) labels: one-hot, or the soft labels given for the problem itself."""
    if soft_target is None:
        return view.one_hot
    if view.lens not in ("full", "binary"):
        raise RefusedError("soft_target replaces the labels as given: use lens='full', or 'binary' for two classes")
    soft = like(soft_target, "soft_target", view.p).to(view.p.dtype)
    if visible(soft) and not (float(soft.min()) >= 0.0 and float(soft.max()) <= 1.0):
        bad = float(soft.min()) if float(soft.min()) < 0.0 else float(soft.max())
        raise RefusedError(f"soft_target holds {bad:g}: pass probabilities, numbers from 0 to 1")
    if soft.ndim == 1 and view.k == 2:
        soft = torch.stack([1.0 - soft, soft], dim=1)
    if soft.shape != (view.n, view.k):
        raise RefusedError(
            f"soft_target has shape {tuple(soft.shape)}: pass shape ({view.n}, {view.k}), as the probabilities have"
        )
    return soft[None]


def errors(view: View, soft_target: Any = None) -> Tensor:
    """y - c of every row and class, (V, N, K); for one confidence per row that of class 1 only, (V, N, 1)."""
    if view.p.ndim == 3:
        return targets(view, soft_target) - view.p
    label = view.label if soft_target is None else targets(view, soft_target)[..., 1]
    return (label - view.p)[..., None]
