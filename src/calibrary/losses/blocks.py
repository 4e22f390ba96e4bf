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

#: Numbers a block may hold in one of its tensors: 256 MB in double precision.
BLOCK = 1 << 25
#: The same where fewer of them stay nearer to the processor.
CPU_BLOCK = 1 << 22


def step(numbers: int, device: torch.device) -> int:
    """Rows of a block, each of which makes ``numbers`` numbers."""
    return max(1, (CPU_BLOCK if device.type == "cpu" else BLOCK) // max(numbers, 1))


def in_blocks(work: Callable[..., Any], rows: int, *tensors: Tensor, dim: int = 1) -> list[Any]:
    """``work`` of every block of that many rows, which lie along ``dim``; a single block needs no second pass."""
    if tensors[0].shape[dim] <= rows:
        return [work(*tensors)]
    # split, not sliced: the gradient of each slice would be as long as the whole
    return [forgotten(work, *block) for block in zip(*(t.split(rows, dim) for t in tensors), strict=True)]


def summed(work: Callable[..., Tensor], rows: int, *tensors: Tensor) -> Tensor:
    """Sum over the blocks of what ``work`` makes of each."""
    found = in_blocks(work, rows, *tensors)
    return found[0] if len(found) == 1 else torch.stack(found).sum(dim=0)


def forgotten(work: Callable[..., Any], *tensors: Tensor) -> Any:
    """``work(*tensors)``, whose intermediate numbers are forgotten and made again when gradients are asked for."""
    if not torch.is_grad_enabled():
        return work(*tensors)
    return checkpoint(work, *tensors, use_reentrant=False, preserve_rng_state=False)
