"""Numbers: how they are written wherever people read them, and any value as the plain types of Python and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A p-value from a formula does not depend on a number of draws.
EXACT = 10**9
#: Bounds below which a p-value is stated if the draws cannot resolve it.
_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
#: The usual significance level.
_USUAL = 0.05


def is_absent(value: Any) -> bool:
    """Whether a value is missing: None, NaN, NaT or pandas' NA."""
    if isinstance(value, str | int):
        return False
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA: even its comparison with itself is NA
        return True
    except ValueError:  # an array, which is not missing
        return False


def number(value: float | None) -> str:
    """Three decimals, or two digits below 0.01 (0.0086 and 0.152 have the same precision); fewer from 100 on."""
    if value is None:
        return ""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = 0.0 if abs(value) < 1e-12 else abs(value)  # rounding
    if size == 0.0:
        return "0"
    if size < 0.00995:
        return f"{value:.{1 - math.floor(math.log10(size))}f}".rstrip("0") if size >= 1e-6 else f"{value:.1e}"
    if size >= 1e7:  # an e-value may have a hundred digits
        return f"{value:.1e}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 100 else f"{value:.3f}"


def percent(x: float | None) -> str:
    """A share or a level: one decimal at most, or two digits of its distance from 0% or 100%: 43%, 7.2%, 0.26%."""
    if x is None:
        return ""
    shown = 100.0 * x
    away = round(min(abs(shown), abs(100.0 - shown)), 9)
    digits = max(1, 1 - math.floor(math.log10(away))) if away else 0
    text = f"{shown:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text}%"


def pvalue(p: float, draws: int = EXACT, *, at_most: bool = False) -> str:
    """A p-value in a sentence: two digits, never smaller than "p < 0.001", and a bound if draws cannot say more.

    Two-sided ranks among ``draws`` give no value below 2 / (draws + 1). ``at_most`` says that the value is a bound.
    """
    if math.isnan(p):
        return "no test"
    sign, digits = _sign_and_digits(p, draws, at_most)
    return f"p {sign} {digits}"


def pvalue_cell(p: float | None, draws: int = EXACT, *, at_most: bool = False) -> str:
    """A p-value as a table shows it."""
    if p is None or math.isnan(p):
        return ""
    sign, digits = _sign_and_digits(p, draws, at_most)
    return digits if sign == "=" else f"{sign} {digits}"


def _sign_and_digits(p: float, draws: int, at_most: bool) -> tuple[str, str]:
    if p < _BOUNDS[0] or at_most or p <= 2.0 / (draws + 1.0):
        return "<", f"{next((b for b in _BOUNDS if b > p), 1.0):g}"
    text = f"{p:.2g}"
    # the third digit shows on which side of the level it is
    return "=", f"{p:.3g}" if float(text) == _USUAL else text


def ends(low: float | None, high: float | None) -> str:
    """An interval; empty if there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"{number(low)} to {number(high)}"


def with_interval(value: float, low: float | None, high: float | None) -> str:
    """A number and its interval in running text."""
    between = ends(low, high)
    return f"{number(value)} ({between})" if between else number(value)


def counted(n: float, noun: str, plural: str = "") -> str:
    """1 row, 2 rows, 1,000 rows."""
    return f"{n:,.0f} {noun if n == 1 else plural or noun + 's'}"


def in_repr(x: Any) -> str:
    """A number or an array in the repr of a result: six digits of a number, four decimals of an array."""
    return f"{x:.6g}" if np.ndim(x) == 0 else np.array2string(np.asarray(x), precision=4)


def distinct_digits(values: Sequence[Any] | NDArray[Any]) -> list[str]:
    """Ascending numbers (or dates) with as few digits as keep them distinct."""
    for digits in (3, 4, 6, 9, 17):
        texts = [f"{v:.{digits}g}" if isinstance(v, float | np.floating) else str(v) for v in values]
        if len(set(texts)) == len(texts):
            break
    return texts


def as_plain(value: Any, *, finite: bool = False) -> Any:
    """Dictionaries, lists, text, numbers and None from any value; ``finite`` turns NaN and infinities into None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_plain(getattr(value, f.name), finite=finite) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): as_plain(v, finite=finite) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(v, finite=finite) for v in value]
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return as_plain(value.tolist(), finite=finite)
    if finite and isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or type(value) in (bool, int, float, str) else str(value)


def float_or_array(x: Any) -> Any:
    """A Python number for a single number, otherwise the array."""
    return float(x) if np.ndim(x) == 0 else x


def known(x: float) -> float | None:
    """None in place of NaN."""
    return None if math.isnan(x) else x
