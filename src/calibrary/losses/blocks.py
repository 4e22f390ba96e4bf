"""Computation in blocks whose intermediate values are not stored between the forward and the backward pass.

They are recomputed in the backward pass, or, where the blocks add up to one number, the gradients are computed in the
forward pass. One block may need much memory, but a loss over all pairs of rows takes memory linear in the rows.
"""

from __future__ import annotations

from collections.abc import Callable
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


def summed_over_pairs(work: Callable[..., Tensor], rows: int, *tensors: Tensor) -> Tensor:
    """Sum over blocks of rows of the number ``work(here, *tensors)``, as one node of the graph; ``here`` is a slice.

    One node for each block would leave thousands of small objects between the large arrays of the blocks, and the heap
    could not reuse the memory of these arrays: 6 GB for 20,000 rows. ``work`` must not use any other tensor that needs
    a gradient.
    """
    n = len(tensors[0])
    if n <= rows:
        return work(slice(0, n), *tensors)
    total: Tensor = _SummedOverPairs.apply(work, rows, *tensors)
    return total


class _SummedOverPairs(torch.autograd.Function):  # type: ignore[misc]  # PyTorch is not type-checked
    """Blocks one after the other; each adds its value to the sum and its gradients to those of the sum.

    The sum is one number, so its gradients are known in the forward pass up to a factor: no block is computed twice.
    """

    @staticmethod
    def forward(ctx: Any, work: Callable[..., Tensor], rows: int, *tensors: Tensor) -> Tensor:
        wanted = ctx.needs_input_grad[2:]
        inputs = [t.detach().requires_grad_(need) for t, need in zip(tensors, wanted, strict=True)]
        changing = [t for t in inputs if t.requires_grad]
        total, gradients = tensors[0].new_zeros(()), [torch.zeros_like(t) for t in changing]
        for start in range(0, len(tensors[0]), rows):
            with torch.set_grad_enabled(bool(changing)):
                value = work(slice(start, min(start + rows, len(tensors[0]))), *inputs)
            total += value.detach()
            if changing:
                for gradient, found in zip(gradients, torch.autograd.grad(value, changing), strict=True):
                    gradient += found
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        gradients = iter(ctx.saved_tensors)
        return (None, None, *(next(gradients) * factor if need else None for need in ctx.needs_input_grad[2:]))
