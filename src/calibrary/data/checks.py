"""Checks of numbers, probabilities and weights: an invalid argument raises an error of one sentence.

Labels are checked in ``labels``, named columns in ``columns``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, first_line, warn
from calibrary.base.numbers import is_absent
from calibrary.base.text import in_sentence

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Rows must sum to one within this tolerance, or within 32 roundings of the input's own precision. The tolerance is
#: slightly above 1e-6, so that rows with six decimals (1.000001 - 1) are accepted.
ROW_SUM_TOLERANCE = 1e-6 * (1 + 1e-6)
#: A sum this close to 1 may be that of probabilities in half precision.
_NEAR_ONE = 0.02


#: Numbers handled at a time, so that temporary arrays fit the processor's cache (and, with two numbers per row, so that
#: dot products are too short to start the threads of BLAS).
CHUNK = 20_000
#: Longer dot products wake the threads of BLAS, which may take a thousand times as long as the products themselves.
ONE_THREAD = 10_000


#: Confidences that all differ by less than this count as equal: squares of their differences would underflow.
SMALLEST_SPREAD = 1e-150

_WHOLE = [slice(0, None)]


def slices(n: int, width: int = 1) -> list[slice]:
    """Slices of n rows, each with ``width`` numbers, that fit the cache."""
    step = CHUNK // width or 1
    if n <= step:
        return _WHOLE
    return [slice(first, first + step) for first in range(0, n, step)]


def picked(matrix: Array, column: NDArray[Any]) -> Array:
    """The entry of each row of a contiguous matrix in the given column."""
    n, k = matrix.shape
    return matrix.ravel().take(np.arange(0, n * k, k) + column)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Any array-like as numpy; PyTorch tensors on any device are accepted without importing torch."""
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
    except (ValueError, TypeError, RuntimeError) as error:  # torch raises RuntimeError
        if type(error).__name__ == "TracerArrayConversionError":  # of JAX, which is not imported here
            raise RefusedError(
                f"{name} is traced by JAX (jit, grad or vmap) and has no numbers yet: metrics are computed with numpy, "
                "so call them outside of the transformation; differentiable losses are in calibrary.losses, for PyTorch"
            ) from error
        raise RefusedError(
            f"{name} cannot be converted to an array ({first_line(error)}): pass one number per row"
        ) from error


def _unmasked(values: NDArray[Any], name: str) -> NDArray[Any]:
    """A plain array in place of a matrix or a masked array, whose mask would otherwise be lost."""
    if np.ma.isMaskedArray(values):
        hidden = np.argwhere(np.ma.getmaskarray(values))
        if len(hidden):
            where = ", ".join(map(str, hidden[0].tolist()))
            raise RefusedError(f"{name}[{where}] is masked: leave out such rows with {name}[~mask] first")
        return np.asarray(values.data)
    return np.asarray(values)


def as_numbers(values: Any, name: str) -> NDArray[Any]:
    """Any array-like of real numbers, unchanged; dates, complex numbers and text raise an error."""
    given = as_array(values, name)
    kind = given.dtype.kind
    if kind in "fiub":
        return given
    if kind in "cmMV":
        what = {"c": "complex numbers", "m": "durations", "M": "dates"}.get(kind, f"{given.dtype} records")
        raise RefusedError(f"{name} contains {what}: pass real numbers")
    gone = missing(given.ravel().tolist())
    if gone is not None:
        raise RefusedError(f"{name}[{gone}] is missing: drop or fill missing values first")
    if given.ndim == 0 and isinstance(given.item(), dict):
        raise RefusedError(
            f"{name} is a dict with the keys {in_sentence(list(given.item()))}: pass an array or a table of one model; "
            "calibrary.compare(metric, y_true, a, b) compares two, and calibrary report a.csv b.csv shows several"
        )
    try:
        return given.astype(np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise RefusedError(f"{name} holds {given.dtype} values, not numbers ({error})") from error


def as_floats(values: Any, name: str) -> Array:
    """Any array-like of real numbers as float64."""
    return as_numbers(values, name).astype(np.float64, copy=False)


def need_rows(n: int, least: int, what: str) -> None:
    """Refuse data with fewer rows than something needs."""
    if n < least:
        raise RefusedError(f"{what} needs at least {least} rows, y_true has {n}")


def confidences(y_prob: Any, ask: str) -> Array:
    """One checked probability for each row; ``ask`` says what to pass in place of several columns."""
    given: Array = as_array(y_prob, "y_prob").astype(np.float64)
    if given.ndim != 1:
        raise RefusedError(f"y_prob has several columns: pass {ask}")
    checked_probabilities(given)
    return given


def missing(values: Sequence[Any]) -> int | None:
    """The position of the first missing value (None, NaN, pandas' NA and NaT), if there is one."""
    return next((i for i, value in enumerate(values) if is_absent(value)), None)


def absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries are missing: None, NaN, NaT and pandas' NA."""
    if values.dtype.kind != "O":
        return np.asarray(values != values)
    gone = [is_absent(value) for value in values.ravel().tolist()]
    return np.array(gone, dtype=bool).reshape(values.shape)


def one_each(values: Any, name: str, n: int, rows: str, wanted: str, remedy: str) -> NDArray[Any]:
    """A column with a value for each of n rows, which the words ``rows`` count; none may be missing."""
    given = as_array(values, name)
    if given.shape != (n,):
        raise RefusedError(f"{name} has shape {given.shape} and {rows}: pass {wanted}")
    if (gone := missing(given.tolist())) is not None:
        raise RefusedError(f"{name}[{gone}] is missing: {remedy}")
    return given


def given_weights(sample_weight: Any, n: int) -> NDArray[Any] | None:
    """The weights of n rows, if there are any; their values are not checked."""
    w = None if sample_weight is None else as_array(sample_weight, "sample_weight")
    if w is not None and w.shape != (n,):
        raise RefusedError(f"sample_weight has shape {w.shape}, y_true has {n} rows: pass one weight per row")
    return w


def checked_probabilities(y_prob: Any, percent: bool = False, rescale: bool = False) -> Array:
    """Probabilities as float64: one per row, or rows of one per class that sum to one.

    Rows that do not sum to one because their numbers were rounded are divided by their sum, with a warning; with
    ``rescale`` all rows that do not sum to one are.
    """
    given = as_numbers(y_prob, "y_prob")
    if given.ndim not in (1, 2):
        raise RefusedError(
            f"y_prob has {given.ndim} dimensions: pass (N,) with P(class 1), or (N, K) with one column per class; for "
            "images use calibrary.segmentation(...)"
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
    off = _off_one(p, max(ROW_SUM_TOLERANCE, 32 * _precision(given)))
    if len(off):
        p = _rescaled(p, off, given, percent, rescale)
    _warn_of_classes(p)
    return p


def _off_one(p: Array, tolerance: float) -> Indices:
    """The rows whose sum differs from 1 by more than the tolerance; numbers outside [0, 1] are refused."""
    ones = np.ones(p.shape[1])
    found: list[Indices] = []
    for rows in slices(len(p), p.shape[1]):
        if _may_leave_unit_interval(p[rows].ravel()):
            _refuse_probabilities(p)
        gap = np.abs(p[rows] @ ones - 1.0)
        if gap.max() > tolerance:
            found.append(rows.start + np.flatnonzero(gap > tolerance))
    return np.concatenate(found) if found else np.empty(0, dtype=np.intp)


def _rescaled(p: Array, off: Indices, given: NDArray[Any], percent: bool, rescale: bool) -> Array:
    """The probabilities, with the rows ``off`` one divided by their sums if rounding explains them or if asked."""
    sums = p[off].sum(axis=1)
    gap = np.abs(sums - 1.0)
    worst = int(gap.argmax())
    found = f"y_prob[{off[worst]}] sums to {sums[worst]:.9g}, not 1"
    if rescale and not sums.all():
        raise RefusedError(f"y_prob[{off[sums.argmin()]}] contains only zeros, which cannot be rescaled: drop this row")
    decimals = decimals_of(given)
    if not rescale and gap[worst] > rounding_of_sums(p.shape[1], decimals, percent):
        if gap[worst] < _NEAR_ONE:
            raise RefusedError(
                f"{found}, and rounding does not explain it: pass rescale=True to divide rows by their sums"
            )
        raise RefusedError(
            f"{found}: pass probabilities (for logits use calibrary.softmax(...)), or rescale=True to divide rows by "
            "their sums"
        )
    why = "" if rescale else f", which rounding to {decimals} decimals explains"
    warn(
        f"{len(off):,} of {len(p):,} rows of y_prob did not sum to 1 and were divided by their sums (largest "
        f"difference {gap[worst]:.2g}{why})"
    )
    p = p.copy()
    p[off] /= sums[:, None]
    return p


#: The most decimals at which numbers count as rounded, and the largest difference from 1 that rounding may explain.
_MOST_DECIMALS, _MOST_ROUNDING = 8, 0.05


def decimals_of(given: NDArray[Any]) -> int | None:
    """The smallest number of decimals that every number has; None if it is more than 8."""
    few = 2.0 * _precision(given)
    return next((d for d in range(_MOST_DECIMALS + 1) if (np.abs(np.round(given, d) - given) <= few).all()), None)


def rounding_of_sums(k: int, decimals: int | None, percent: bool = False) -> float:
    """The largest difference from 1 of the sum of k rounded probabilities: half a unit of the last decimal for each."""
    if decimals is None:
        return 0.0
    unit = 10.0 ** -(decimals + 2 if percent else decimals)
    return min(_MOST_ROUNDING, 0.5 * k * unit) * (1.0 + 1e-9)


def sum_to_one_rounded(p: NDArray[Any]) -> bool:
    """Whether every row sums to one, but for what rounding explains."""
    return bool(np.abs(p.sum(axis=1) - 1.0).max() <= rounding_of_sums(p.shape[1], decimals_of(p)))


#: With fewer rows than this, probabilities may be only 0 and 1 because an example is small.
_FEWEST_CLASSES = 10
#: Number of first rows that usually distinguish probabilities from classes, before all rows are checked.
_FIRST = 64


def starts_as_classes(p: Array) -> bool:
    """Whether the first rows contain only 0 and 1, as the output of ``model.predict`` does; the first number usually
    decides."""
    if p.item(0) not in (0.0, 1.0):
        return False
    first = p[:_FIRST]
    return bool(((first == 0.0) | (first == 1.0)).all())


def _warn_of_classes(p: Array) -> None:
    """Warn if every prediction is 0 or 1 and both occur."""
    if len(p) < _FEWEST_CLASSES or not starts_as_classes(p):
        return
    if p.min() == 0.0 and p.max() == 1.0 and ((p == 0.0) | (p == 1.0)).all():
        warn(
            "y_prob contains only 0 and 1, which look like predicted classes: the result was computed, but it says "
            "little about calibration; pass model.predict_proba(X), not model.predict(X)"
        )


def _precision(given: NDArray[Any]) -> float:
    """Relative precision of the input's numbers, before they were converted to float64."""
    return float(np.finfo(given.dtype).eps) if given.dtype.kind == "f" else 0.0


def _may_leave_unit_interval(p: Array) -> bool:
    # Interpreted as unsigned integers, the bits of a double in [0, 1] are at most those of 1.0, and those of any other
    # number (NaN, negative, above 1) are larger: one pass is enough, in place of a minimum and a maximum. Only -0.0
    # needs an extra check. (argmax starts in half the time of max.)
    bits = p.view(np.uint64)
    return bits.item(bits.argmax()) > _BITS_OF_ONE


_BITS_OF_ONE = int(np.float64(1.0).view(np.uint64))


def are_probabilities(p: Any, most: float = 1.0) -> Any:
    """Which numbers are probabilities (with ``most=100``: percentages). Tensors stay on their device."""
    return (p >= 0.0) & (p <= most)


#: Numbers outside [0, 1] by less than this are rounding errors.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Outside:
    """The first number that is not a probability, and what the numbers look like.

    All inputs (arrays, files, scores of a detector, maps) use this check, and name rows and columns in their own way.

    Attributes
    ----------
    where : the position of the number
    value : float
    percentages : whether all the numbers look like percentages
    fraction : if so, the position of a number between 0 and 1 among them, which may be meant as a probability
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
        """Whether the number is so close to 0 or 1 that rounding in single precision explains it."""
        return -_ROUNDING <= self.value <= 1.0 + _ROUNDING


def outside(p: NDArray[Any], most: float = 1.0) -> Outside | None:
    """The first number that is not a probability (with ``most=100``: not a percentage); None if all are."""
    wrong = np.argwhere(~are_probabilities(p, most))
    if not len(wrong):
        return None
    where = tuple(int(i) for i in wrong[0])
    # one or two numbers such as 1.04 are mistakes; percentages are larger
    percentages = bool(are_probabilities(p, 100.0).all() and p.max() > 2.0)
    small = np.argwhere((p > 0.0) & (p < 1.0) & percentages)
    return Outside(where, float(p[where]), percentages, tuple(int(i) for i in small[0]) if len(small) else None)


def shown_place(where: Sequence[int]) -> str:
    """A position in an array in Python's notation: [3], [3, 1]."""
    return f"[{', '.join(map(str, where))}]"


def refuse_outside(p: Array) -> None:
    """Raise an error for probabilities outside [0, 1], of any shape."""
    if _may_leave_unit_interval(p.ravel()):
        _refuse_probabilities(p)


def _refuse_probabilities(p: Array) -> None:
    found = outside(p)
    if found is None:
        return
    place = f"y_prob{shown_place(found.where)} = {found.value:.10g}"
    if found.missing:
        raise RefusedError(f"{place}: drop or fill missing predictions first")
    if found.percentages:
        raise RefusedError(f"{place} is {found.side} and none is above 100: pass percent=True if these are percentages")
    if found.rounding:
        raise RefusedError(f"{place} is {found.side} by rounding: pass np.clip(y_prob, 0, 1)")
    raise RefusedError(
        f"{place} is {found.side}: pass probabilities; for logits use calibrary.softmax(...) or "
        "calibrary.sigmoid(...), for percentages percent=True"
    )


def _from_percent(p: Array) -> Array:
    """Percentages as probabilities, at the user's request: nothing is divided without a request."""
    found = outside(p, 100.0)
    if found is not None:
        raise RefusedError(
            f"y_prob{shown_place(found.where)} = {found.value:.10g} is not a percentage: pass numbers from 0 to 100"
        )
    if p.max() <= 1.0:
        warn("percent=True, but no value of y_prob is above 1: if these are already probabilities, leave percent out")
    return p / 100.0


def softmax(logits: Any) -> Array:
    """Probabilities from logits, one row per prediction; safe for large values."""
    z = as_floats(logits, "logits")
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(logits: Any) -> Array:
    """P(class 1) from a logit; safe for large values."""
    from scipy.special import expit

    return expit(as_floats(logits, "logits"))


#: Largest ratio of two weights: beyond it, small weights are lost in the rounding of sums.
LARGEST_WEIGHT_RATIO = 1e12
#: Weights and their total stay below this and above its inverse, so that their squares and cubes are finite.
LARGEST_WEIGHT = 1e60


def refuse_negative(w: NDArray[Any], place: Callable[[int], str]) -> None:
    """Raise an error for weights that are negative, infinite or missing; ``place`` names the i-th."""
    if w.size and not (w.min() >= 0.0 and w.max() < np.inf):
        i = int(np.flatnonzero(~((w >= 0.0) & (w < np.inf)))[0])
        raise RefusedError(f"{place(i)} = {w[i]}: weights must be finite and not negative")


def checked_weights(sample_weight: Any, n: int, name: str = "sample_weight", rows: str = "y_true has {} rows") -> Array:
    """One weight for each of n rows: finite, not negative, not all zero, of a size that can be summed."""
    given = as_array(sample_weight, name)
    if given.ndim != 1 or len(given) != n:
        raise RefusedError(f"{name} has shape {given.shape}, {rows.format(n)}: pass one weight per row")
    w = as_floats(given, name)
    refuse_negative(w, f"{name}[{{}}]".format)
    least, most = w.min(), w.max()
    if most == 0.0:
        raise RefusedError(f"every {name} is zero: pass a positive weight for at least one row")
    if not 1.0 / LARGEST_WEIGHT <= most <= LARGEST_WEIGHT / n:
        raise RefusedError(
            f"{name} goes up to {most:g}, and sums of such weights overflow: divide all weights by their mean"
        )
    if least * LARGEST_WEIGHT_RATIO < most:
        least = w[w > 0.0].min()
        if least * LARGEST_WEIGHT_RATIO < most:
            raise RefusedError(
                f"{name} goes from {least:g} to {most:g}: weights may differ by a factor of at most "
                f"{LARGEST_WEIGHT_RATIO:g}, beyond which small ones are lost in rounding; leave those rows out"
            )
    return w
