"""Powers, roots and logarithms whose gradient stays finite where the function does."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError


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
    single: Tensor = _Single.apply(x)
    return single


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
