"""The exponential function in a version that compiled loops can vectorise."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from calibrary.numerics.compiled import jit

# Adding this to a double of moderate size rounds it to an integer, held in the lowest bits.
_ROUNDER = 1.5 * 2.0**52
_LOG2_E = 1.4426950408889634
# ln 2 in two pieces, so that x - n ln 2 is exact (Cody and Waite)
_LN2_HIGH = 6.93145751953125e-1
_LN2_LOW = 1.42860682030941723212e-6


@intrinsic
def _bits_of(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int64))

    return types.int64(types.float64), codegen


@intrinsic
def _from_bits(typing_context: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), codegen


@jit(fastmath={"contract"})
def exp_negative(x: float) -> float:
    """exp(x) for x <= 0, to 3e-16 relative; below -708 it stays at exp(-708) = 3e-308.

    The library function is called once per number and cannot be vectorised; this function can.
    """
    x = max(x, -708.0)
    rounded = x * _LOG2_E + _ROUNDER
    n = rounded - _ROUNDER
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    value: float = p * _from_bits((_bits_of(rounded) << 52) + (1023 << 52))
    return value
