"""Computation in blocks whose intermediate values are not stored between the forward and the backward pass.

They are recomputed in the backward pass, or, where the blocks add up to one number, the gradients are computed in the
forward pass. One block may need much memory, but a loss over all pairs of rows takes memory linear in the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from calibrary.base.errors import RefusedError

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
    """Sum over blocks of rows of the number ``work(here, *of_rows in the block, *of_all)``, as one node of the graph.

    ``here`` is the slice of the block. One node for each block would leave thousands of small objects between the large
    arrays of the blocks, and the heap could not reuse the memory of these arrays: 6 GB for 20,000 rows. ``work`` must
    not use any other tensor that needs a gradient.
    """
    n = len(of_all[0])
    if n <= rows:
        return work(slice(0, n), *of_rows, *of_all)
    return _SummedOverPairs.apply(work, rows, len(of_rows), *of_rows, *of_all)


class _SummedOverPairs(torch.autograd.Function):  # type: ignore[misc]  # PyTorch is not type-checked
    """Blocks one after the other; each adds its value to the sum and its gradients to those of the sum.

    The sum is one number, so its gradients are known in the forward pass up to a factor: no block is computed twice.
    """

    @staticmethod
    def forward(ctx: Any, work: Callable[..., Tensor], rows: int, n_split: int, *tensors: Tensor) -> Tensor:
        wanted = ctx.needs_input_grad[3:]
        gradients = [torch.zeros_like(t) if need else None for t, need in zip(tensors, wanted, strict=True)]
        n, total = len(tensors[-1]), tensors[-1].new_zeros(())
        for start in range(0, n, rows):
            here = slice(start, min(start + rows, n))
            block = [t[here] if i < n_split else t for i, t in enumerate(tensors)]
            block = [t.detach().requires_grad_(need) for t, need in zip(block, wanted, strict=True)]
            with torch.set_grad_enabled(any(wanted)):
                value = work(here, *block)
            total += value.detach()
            found = iter(torch.autograd.grad(value, [t for t in block if t.requires_grad]) if any(wanted) else ())
            for i, gradient in enumerate(gradients):
                if gradient is not None:
                    (gradient[here] if i < n_split else gradient).add_(next(found))
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        return (None, None, None, *(None if g is None else g * factor for g in ctx.saved_tensors))


class _Single(torch.autograd.Function):  # type: ignore[misc]
    """Half precision to single; the gradient is returned within the range of half precision."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.dtype = x.dtype
        return x.float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        most = torch.finfo(ctx.dtype).max
        return gradient.clamp(-most, most).to(ctx.dtype)


def at_least_single(x: Tensor) -> Tensor:
    """x in single precision or better: a gradient such as 1/p^2 exceeds 65504, the limit of float16."""
    if torch.finfo(x.dtype).bits >= 32:
        return x
    return _Single.apply(x)


def safe_power(x: Tensor, exponent: float | Tensor) -> Tensor:
    """x^exponent for x >= 0, with gradient zero if x is zero or, by rounding, negative."""
    if isinstance(exponent, int | float) and exponent == 1:
        return x
    positive = x > 0
    power = torch.where(positive, x, 1.0) ** exponent
    at_zero = 1.0 if isinstance(exponent, int | float) and exponent == 0 else 0.0
    return torch.where(positive, power, at_zero)


def safe_root(x: Tensor, order: float = 2.0) -> Tensor:
    """x^(1/order), with gradient zero if x is zero or, by rounding, negative."""
    return x if order == 1 else safe_power(x, 1.0 / order)


def ratio(above: Tensor, below: Tensor, otherwise: float = 0.0) -> Tensor:
    """above / below, and ``otherwise`` if below is zero, or so small that the gradient would overflow."""
    number = torch.finfo(below.dtype)
    there = below > number.tiny / number.eps
    return torch.where(there, above / torch.where(there, below, 1.0), otherwise)


def x_log_x(x: Tensor) -> Tensor:
    """x log x, zero with gradient zero at x = 0."""
    positive = x > 0
    return torch.where(positive, x * torch.log(torch.where(positive, x, 1.0)), 0.0)


def limited(c: Tensor, eps: float) -> Tensor:
    """Probabilities clipped to [eps, 1 - eps], entry by entry."""
    if eps == 0.0:
        return c
    if not 0.0 <= eps < 0.5:
        raise RefusedError(f"eps={eps!r} must lie in [0, 0.5): probabilities are clipped to [eps, 1 - eps]")
    return c.clamp(eps, 1.0 - eps)


def positive(name: str, value: float) -> float:
    """A finite number above zero, or an error that names the option."""
    if isinstance(value, str) or not (value > 0 and math.isfinite(value)):
        raise RefusedError(
            f"{name}={value!r} must be a positive number: rules that choose it have no gradient, so compute it once "
            "(calibrary.kernels) and pass it"
        )
    return float(value)


def above(name: str, value: float, low: float, most: float = math.inf) -> float:
    """A finite number above ``low`` and at most ``most``, or an error that names the option."""
    if isinstance(value, str) or not (low < value <= most and value < math.inf):
        limits = f"above {low:g}" if most == math.inf else f"above {low:g} and at most {most:g}"
        raise RefusedError(f"{name}={value!r} must be a finite number {limits}")
    return float(value)


def not_negative(name: str, value: float) -> float:
    """A finite number of at least zero, or an error that names the option."""
    if isinstance(value, str) or not 0 <= value < math.inf:
        raise RefusedError(f"{name}={value!r} must be a finite number that is not negative")
    return float(value)
