"""Are these numbers, probabilities, weights? What the user passed, checked once, or refused with one sentence.

Labels have a file of their own (``labels``), and so have named columns (``columns``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, warn

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Rows must sum to one within this, or within 32 roundings of the input's own precision.
#: A hair more than 1e-6, because 1.000001 - 1 is: rows of six decimals are welcome.
ROW_SUM_TOLERANCE = 1e-6 * (1 + 1e-6)
#: A sum this near to 1 may be that of probabilities in half precision.
_NEAR_ONE = 0.02


#: Numbers handled at a time, so that what is made of them stays in the processor's cache (and, with two numbers a row,
#: short enough for a dot product not to wake the threads of BLAS).
CHUNK = 20_000


#: Confidences all closer than this are one: the squares of their differences are no numbers.
SMALLEST_SPREAD = 1e-150

_WHOLE = [slice(0, None)]


def slices(n: int, width: int = 1) -> list[slice]:
    """Slices of n rows, each with ``width`` numbers, that fit the cache."""
    step = CHUNK // width or 1
    if n <= step:
        return _WHOLE
    return [slice(first, first + step) for first in range(0, n, step)]


def picked(matrix: Array, column: NDArray[Any]) -> Array:
    """One entry of each row of a contiguous matrix."""
    n, k = matrix.shape
    entries: Array = matrix.ravel().take(np.arange(0, n * k, k) + column)
    return entries


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Any array-like as numpy; PyTorch tensors of any device come in without importing torch."""
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ndarray):
        return _unmasked(values, name)
    if hasattr(values, "tocoo") or getattr(values, "is_sparse", False):
        dense = "to_dense" if hasattr(values, "to_dense") else "toarray"
        raise RefusedError(
            f"{name} is sparse, and its zeros count here too: pass the dense array ({name}.{dense}) instead"
        )
    try:
        if hasattr(values, "detach"):
            values = values.detach()
            if "bfloat16" in str(values.dtype):
                values = values.float()
            values = values.cpu()
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError is what torch raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RefusedError(f"{name} cannot be read as an array ({reason}): pass one number per row") from error


def _unmasked(values: NDArray[Any], name: str) -> NDArray[Any]:
    """A plain array in place of a matrix or a masked array, whose mask would be forgotten on the way."""
    if np.ma.isMaskedArray(values):
        hidden = np.argwhere(np.ma.getmaskarray(values))
        if len(hidden):
            where = ", ".join(map(str, hidden[0].tolist()))
            raise RefusedError(f"{name}[{where}] is masked: leave such rows out with {name}[~mask] before measuring")
        return np.asarray(values.data)
    return np.asarray(values)


def as_numbers(values: Any, name: str) -> NDArray[Any]:
    """Any array-like of real numbers, as it is; dates, complex numbers and text that is no number are refused."""
    given = as_array(values, name)
    kind = given.dtype.kind
    if kind in "fiub":
        return given
    if kind in "cmMV":
        what = {"c": "complex numbers", "m": "durations", "M": "dates"}.get(kind, f"{given.dtype} records")
        raise RefusedError(f"{name} holds {what}: pass real numbers")
    gone = missing(given.ravel().tolist())
    if gone is not None:
        raise RefusedError(f"{name}[{gone}] is missing: drop or fill missing values first")
    try:
        return given.astype(np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise RefusedError(f"{name} holds {given.dtype} values, not numbers ({error})") from error


def as_floats(values: Any, name: str) -> Array:
    """Any array-like of real numbers as float64."""
    return as_numbers(values, name).astype(np.float64, copy=False)


def missing(values: Sequence[Any]) -> int | None:
    """The place of the first missing value (None, NaN, pandas' NA and NaT), if there is one."""
    return next((i for i, value in enumerate(values) if value is None or _is_not_itself(value)), None)


def _is_not_itself(value: Any) -> bool:
    if isinstance(value, str | int):
        return False
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA: whether it is itself is not known either
        return True
    except ValueError:  # an array, which is something
        return False


def checked_probabilities(y_prob: Any, percent: bool = False) -> Array:
    """Probabilities as float64: one for each row, or rows of one for each class that sum to one."""
    given = as_numbers(y_prob, "y_prob")
    if given.ndim not in (1, 2):
        raise RefusedError(
            f"y_prob has {given.ndim} dimensions: pass (N,) with P(class 1), or (N, K) with one column per class; "
            "images go through calibrary.segmentation(...)"
        )
    if given.shape[0] == 0:
        raise RefusedError("y_prob is empty: a metric needs at least one prediction")
    p = np.ascontiguousarray(given, dtype=np.float64)
    if percent:
        p = _from_percent(p)
    if p.ndim == 1:
        if _may_leave_unit_interval(p):
            _refuse_probabilities(p)
        _warn_of_classes(p)
        return p
    if p.shape[1] < 2:
        raise RefusedError("y_prob has one column: pass y_prob[:, 0] if it is P(class 1), or one column per class")
    ones = np.ones(p.shape[1])
    for rows in slices(len(p), p.shape[1]):
        if _may_leave_unit_interval(p[rows].ravel()):
            _refuse_probabilities(p)
        gap = np.abs(p[rows] @ ones - 1.0)
        worst = int(gap.argmax())
        if gap[worst] > ROW_SUM_TOLERANCE and gap[worst] > 32 * _rounding(given):
            row = rows.start + worst
            remedy = "pass probabilities (for logits use calibrary.softmax(...))"
            if gap[worst] < _NEAR_ONE:
                remedy = "if that is rounding, pass y_prob / y_prob.sum(axis=1, keepdims=True)"
            raise RefusedError(
                f"y_prob[{row}] sums to {p[row].sum():.9g}, not 1: {remedy}; rows are never rescaled silently"
            )
    _warn_of_classes(p)
    return p


#: Fewer rows than this may hold only 0 and 1 because an example is small.
_FEWEST_CLASSES = 10
#: Rows at the beginning that tell most predictions from classes, before all of them are read.
_FIRST = 64


def starts_as_classes(p: Array) -> bool:
    """Do the first rows hold only 0 and 1, as the output of ``model.predict`` does?"""
    first = p[:_FIRST]
    return bool(((first == 0.0) | (first == 1.0)).all())


def _warn_of_classes(p: Array) -> None:
    """Warn where every prediction is 0 or 1 and both occur."""
    if len(p) < _FEWEST_CLASSES or not starts_as_classes(p):
        return
    if p.min() == 0.0 and p.max() == 1.0 and ((p == 0.0) | (p == 1.0)).all():
        warn(
            "y_prob holds only 0 and 1, which look like predicted classes: the numbers were computed, but they "
            "say little "
            "about calibration; pass model.predict_proba(X), not model.predict(X)"
        )


def _rounding(given: NDArray[Any]) -> float:
    """Relative spacing of the numbers of the input, before they became float64."""
    return float(np.finfo(given.dtype).eps) if given.dtype.kind == "f" else 0.0


def _may_leave_unit_interval(p: Array) -> bool:
    # Read as unsigned integers, the bits of a double in [0, 1] are at most those of 1.0, and those of anything else
    # (NaN, negative, above 1) are larger: one pass decides, in place of a minimum and a maximum. Only -0.0 needs a
    # second look. (argmax starts in half the time of max.)
    bits = p.view(np.uint64)
    return bits.item(bits.argmax()) > _BITS_OF_ONE


_BITS_OF_ONE = int(np.float64(1.0).view(np.uint64))


def are_probabilities(p: Any, most: float = 1.0) -> Any:
    """Which numbers are probabilities (with ``most=100``: percentages). Tensors stay where they are."""
    return (p >= 0.0) & (p <= most)


#: Numbers outside [0, 1] by less than this are there by rounding.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Outside:
    """The first number that is no probability, and what the numbers look like.

    Every door (arrays, files, scores of a detector, maps) asks here, and says it in its own names of rows and columns.

    Attributes
    ----------
    where : the place of the number
    value : float
    percentages : do all the numbers look like percentages?
    fraction : where they do, the place of a number between 0 and 1 among them, which may be meant as it is
    """

    where: tuple[int, ...]
    value: float
    percentages: bool
    fraction: tuple[int, ...] | None

    @property
    def missing(self) -> bool:
        return math.isnan(self.value)

    @property
    def side(self) -> str:
        return "above 1" if self.value > 1.0 else "below 0"

    @property
    def rounding(self) -> bool:
        """So near to 0 or 1 that arithmetic in single precision may have carried it there."""
        return -_ROUNDING <= self.value <= 1.0 + _ROUNDING


def outside(p: NDArray[Any], most: float = 1.0) -> Outside | None:
    """The first number that is no probability (with ``most=100``: no percentage); None where all are."""
    wrong = np.argwhere(~are_probabilities(p, most))
    if not len(wrong):
        return None
    where = tuple(int(i) for i in wrong[0])
    # one that is 1.04 is a slip, and so are two; percentages are larger
    percentages = bool(are_probabilities(p, 100.0).all() and p.max() > 2.0)
    small = np.argwhere((p > 0.0) & (p < 1.0) & percentages)
    return Outside(where, float(p[where]), percentages, tuple(int(i) for i in small[0]) if len(small) else None)


def shown_place(where: Sequence[int]) -> str:
    """A place in an array as Python writes it: [3], [3, 1]."""
    return f"[{', '.join(map(str, where))}]"


def refuse_outside(p: Array) -> None:
    """Refuse probabilities outside [0, 1], of any shape."""
    if _may_leave_unit_interval(p.ravel()):
        _refuse_probabilities(p)


def _refuse_probabilities(p: Array) -> None:
    found = outside(p)
    if found is None:
        return
    place = f"y_prob{shown_place(found.where)} = {found.value:.10g}"
    if found.missing:
        raise RefusedError(f"{place}: drop or fill missing predictions before measuring them")
    if found.percentages:
        raise RefusedError(f"{place} is {found.side} and none is above 100: pass percent=True if these are percentages")
    if found.rounding:
        raise RefusedError(f"{place} is {found.side} by rounding: pass np.clip(y_prob, 0, 1)")
    raise RefusedError(
        f"{place} is {found.side}: pass probabilities; for logits use calibrary.softmax(...) or "
        "calibrary.sigmoid(...), for percentages percent=True"
    )


def _from_percent(p: Array) -> Array:
    """Percentages as probabilities, because the user said that they are: nothing is divided unasked."""
    found = outside(p, 100.0)
    if found is not None:
        raise RefusedError(
            f"y_prob{shown_place(found.where)} = {found.value:.10g} is no percentage: they go from 0 to 100"
        )
    if p.max() <= 1.0:
        warn("percent=True and no value of y_prob is above 1: are these percentages, or probabilities already?")
    return p / 100.0


def softmax(logits: Any) -> Array:
    """Probabilities from logits, one row per case; safe for large values."""
    z = as_floats(logits, "logits")
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    result: Array = e / e.sum(axis=-1, keepdims=True)
    return result


def sigmoid(logits: Any) -> Array:
    """P(class 1) from a logit; safe for large values."""
    from scipy.special import expit

    result: Array = expit(as_floats(logits, "logits"))
    return result


#: Weights may differ by this factor: beyond it the rows of small weight are lost in the rounding of sums.
LARGEST_WEIGHT_RATIO = 1e12
#: Weights and their total stay within this and its inverse, so that their squares and cubes are numbers too.
LARGEST_WEIGHT = 1e60


def refuse_negative(w: NDArray[Any], place: Callable[[int], str]) -> None:
    """Refuse weights that are negative, infinite or missing; ``place`` names the i-th."""
    if w.size and not (w.min() >= 0.0 and w.max() < np.inf):
        i = int(np.flatnonzero(~((w >= 0.0) & (w < np.inf)))[0])
        raise RefusedError(f"{place(i)} = {w[i]}: weights must be finite and not negative")


def checked_weights(sample_weight: Any, n: int, name: str = "sample_weight", rows: str = "y_true has {} rows") -> Array:
    """One weight for each of n rows: finite, not negative, not all zero, of a size that can be added up."""
    given = as_array(sample_weight, name)
    if given.ndim != 1 or len(given) != n:
        raise RefusedError(f"{name} has shape {given.shape}, {rows.format(n)}: give one weight per row")
    w = as_floats(given, name)
    refuse_negative(w, f"{name}[{{}}]".format)
    least, most = w.min(), w.max()
    if most == 0.0:
        raise RefusedError(f"every {name} is zero: at least one row must count")
    if not 1.0 / LARGEST_WEIGHT <= most <= LARGEST_WEIGHT / n:
        raise RefusedError(
            f"{name} goes up to {most:g}, and sums of such weights leave the numbers: divide all by their mean"
        )
    if least * LARGEST_WEIGHT_RATIO < most:
        least = w[w > 0.0].min()
        if least * LARGEST_WEIGHT_RATIO < most:
            raise RefusedError(
                f"{name} goes from {least:g} to {most:g}: weights may differ by a factor of at most "
                f"{LARGEST_WEIGHT_RATIO:g}, beyond which small ones are lost in rounding; leave those rows out"
            )
    return w
