"""Work in blocks whose intermediate numbers are made again in the backward pass instead of being kept.

What one block makes may be large; between the forward and the backward pass only the inputs of the blocks stay in
memory, so that a loss over all pairs of rows takes time quadratic in the rows, but memory linear in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

#: Numbers a block may hold in one of its tensors: 128 MB in double precision.
BLOCK = 1 << 24
#: The same where the numbers should stay near the processor.
CPU_BLOCK = 1 << 20


def slices(n: int, numbers: int, device: torch.device) -> list[slice]:
    """Slices of n rows whose blocks hold about ``BLOCK`` numbers, each row having ``numbers`` of them."""
    step = max(1, (CPU_BLOCK if device.type == "cpu" else BLOCK) // max(numbers, 1))
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]


def forgotten(work: Callable[..., Any], *tensors: Tensor) -> Any:
    """``work(*tensors)``, whose intermediate numbers are forgotten and made again when gradients are asked for."""
    if not torch.is_grad_enabled():
        return work(*tensors)
    return checkpoint(work, *tensors, use_reentrant=False, preserve_rng_state=False)


def each(parts: list[slice], work: Callable[[slice], Any]) -> list[Any]:
    """``work`` of every part; a single part needs no second pass."""
    if len(parts) == 1:
        return [work(parts[0])]
    return [forgotten(_of(work, part)) for part in parts]


def _of(work: Callable[[slice], Any], part: slice) -> Callable[[], Any]:
    return lambda: work(part)
