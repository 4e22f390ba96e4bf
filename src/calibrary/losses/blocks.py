"""Computation in blocks whose intermediate values are recomputed in the backward pass instead of being stored.

One block may need much memory; between the forward and the backward pass only the inputs of the blocks are stored, so
that a loss over all pairs of rows takes time quadratic in the rows, but memory linear in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

#: Largest number of values in a tensor of a block: 256 MB in double precision.
BLOCK = 1 << 25
#: The same where smaller blocks fit the processor's cache.
CPU_BLOCK = 1 << 22


def step(numbers: int, device: torch.device) -> int:
    """Number of rows in a block, each of which needs ``numbers`` values."""
    return max(1, (CPU_BLOCK if device.type == "cpu" else BLOCK) // max(numbers, 1))


def in_blocks(work: Callable[..., Any], rows: int, *tensors: Tensor, dim: int = 1) -> list[Any]:
    """``work`` on every block of that many rows along ``dim``; a single block is not recomputed."""
    if tensors[0].shape[dim] <= rows:
        return [work(*tensors)]
    # split, not sliced: the gradient of each slice would be as long as the whole tensor
    return [recomputed(work, *block) for block in zip(*(t.split(rows, dim) for t in tensors), strict=True)]


def summed(work: Callable[..., Tensor], rows: int, *tensors: Tensor) -> Tensor:
    """Sum over the blocks of the results of ``work``."""
    found = in_blocks(work, rows, *tensors)
    return found[0] if len(found) == 1 else torch.stack(found).sum(dim=0)


def recomputed(work: Callable[..., Any], *tensors: Tensor) -> Any:
    """``work(*tensors)``, whose intermediate values are dropped and recomputed for gradients."""
    if not torch.is_grad_enabled():
        return work(*tensors)
    return checkpoint(work, *tensors, use_reentrant=False, preserve_rng_state=False)


def summed_over_pairs(
    work: Callable[..., Tensor], rows: int, of_rows: Sequence[Tensor], of_all: Sequence[Tensor]
) -> Tensor:
    """Sum over blocks of rows of ``work(*of_rows in the block, *of_all)``, as one node of the graph.

    One node for each block would leave thousands of small objects between the large arrays of the blocks, and the heap
    could not reuse the memory of these arrays: 6 GB for 20,000 rows. ``work`` must not use any other tensor that needs
    a gradient.
    """
    if len(of_rows[0]) <= rows:
        return work(*of_rows, *of_all)
    total: Tensor = _SummedOverPairs.apply(work, rows, len(of_rows), *of_rows, *of_all)
    return total


class _SummedOverPairs(torch.autograd.Function):  # type: ignore[misc]  # PyTorch is not type-checked
    """Blocks one after the other, and again in the backward pass, where each adds to the gradients."""

    @staticmethod
    def forward(ctx: Any, work: Callable[..., Tensor], rows: int, n_split: int, *tensors: Tensor) -> Tensor:
        ctx.work, ctx.rows, ctx.n_split = work, rows, n_split
        ctx.save_for_backward(*tensors)
        of_all = tensors[n_split:]
        total = None
        for block in zip(*(t.split(rows) for t in tensors[:n_split]), strict=True):
            value = work(*block, *of_all)
            total = value if total is None else total + value
        return total

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        tensors, wanted = ctx.saved_tensors, ctx.needs_input_grad[3:]
        gradients = [torch.zeros_like(t) if need else None for t, need in zip(tensors, wanted, strict=True)]
        for start in range(0, len(tensors[0]), ctx.rows):
            here = slice(start, start + ctx.rows)
            block = [t[here] if i < ctx.n_split else t for i, t in enumerate(tensors)]
            block = [t.detach().requires_grad_(need) for t, need in zip(block, wanted, strict=True)]
            with torch.enable_grad():
                value = ctx.work(*block)
            found = iter(torch.autograd.grad(value, [t for t in block if t.requires_grad], gradient))
            for i, total in enumerate(gradients):
                if total is not None:
                    (total[here] if i < ctx.n_split else total).add_(next(found))
        return (None, None, None, *gradients)
