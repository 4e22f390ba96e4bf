"""Is it labels, probabilities, weights? What the user passed, checked once, or refused with one sentence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Rows must sum to one within this, or within 32 roundings of the input's own precision.
#: A hair more than 1e-6, because 1.000001 - 1 is: rows of six decimals are welcome.
ROW_SUM_TOLERANCE = 1e-6 * (1 + 1e-6)


#: Numbers handled at a time, so that what is made of them stays in the processor's cache (and, with two numbers a row,
#: short enough for a dot product not to wake the threads of BLAS).
CHUNK = 20_000


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
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):
        values = values.detach()
        if "bfloat16" in str(values.dtype):
            values = values.float()
        values = values.cpu()
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} cannot be read as an array ({error}): pass one number per row") from error


def checked_probabilities(y_prob: Any) -> Array:
    given = as_array(y_prob, "y_prob")
    if given.ndim not in (1, 2):
        raise ValueError(
            f"y_prob has {given.ndim} dimensions: pass (N,) with P(class 1), or (N, K) with one column per class; "
            "images go through calibrary.segmentation(...)"
        )
    if given.shape[0] == 0:
        raise ValueError("y_prob is empty: a metric needs at least one prediction")
    if given.dtype.kind not in "fiub":
        try:
            given = given.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise ValueError(f"y_prob holds {given.dtype} values, not numbers ({error})") from error
    p = np.ascontiguousarray(given, dtype=np.float64)
    if p.ndim == 1:
        if _may_leave_unit_interval(p):
            _refuse_probabilities(p)
        return p
    if p.shape[1] < 2:
        raise ValueError("y_prob has one column: pass y_prob[:, 0] if it is P(class 1), or one column per class")
    ones = np.ones(p.shape[1])
    for rows in slices(len(p), p.shape[1]):
        if _may_leave_unit_interval(p[rows].ravel()):
            _refuse_probabilities(p)
        gap = np.abs(p[rows] @ ones - 1.0)
        worst = int(gap.argmax())
        if gap[worst] > ROW_SUM_TOLERANCE and gap[worst] > 32 * _rounding(given):
            row = rows.start + worst
            raise ValueError(
                f"y_prob[{row}] sums to {p[row].sum():.9g}, not 1: pass probabilities "
                "(for logits use calibrary.softmax(...)); rows are never rescaled silently"
            )
    return p


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


def refuse_outside(p: Array) -> None:
    """Refuse probabilities outside [0, 1], of any shape."""
    if _may_leave_unit_interval(p.ravel()):
        _refuse_probabilities(p)


def _refuse_probabilities(p: Array) -> None:
    wrong = np.argwhere(~((p >= 0.0) & (p <= 1.0)))
    if not len(wrong):
        return
    where = tuple(int(i) for i in wrong[0])
    value = p[where]
    place = f"y_prob[{', '.join(map(str, where))}] = {value:.10g}"
    if np.isnan(value):
        raise ValueError(f"{place}: drop or fill missing predictions before measuring them")
    side = "above 1" if value > 1 else "below 0"
    raise ValueError(
        f"{place} is {side}: pass probabilities; for logits use calibrary.softmax(...) or calibrary.sigmoid(...), "
        "for percentages divide by 100"
    )


def checked_labels(
    y_true: Any, p: Array, labels: Sequence[Hashable] | None, pos_label: Hashable | None
) -> tuple[NDArray[np.intp], tuple[Hashable, ...] | None]:
    y = as_array(y_true, "y_true")
    if y.ndim != 1:
        y = _flat_labels(y, p)
    if len(y) == 0:
        raise ValueError("y_true is empty: a metric needs at least one label")
    k = 2 if p.ndim == 1 else p.shape[1]
    if labels is not None or pos_label is not None:
        return _named_labels(y, k, labels, pos_label)
    kind = y.dtype.kind
    if kind in "iu":
        index = y.astype(np.intp, copy=False)
    elif kind == "b":
        return y.astype(np.intp), None
    elif kind == "f":
        index = _whole_labels(y, p)
        if index.dtype.kind == "f":
            return index, None
    else:
        return _sorted_names(y, k)
    unsigned = index.view(np.uintp)  # in which a negative label is a huge one
    if unsigned.item(unsigned.argmax()) >= k:
        _refuse_labels(index, k)
    return index, None


def _flat_labels(y: NDArray[Any], p: Array) -> NDArray[Any]:
    """One label per row, from a single column or from rows of zeros and a one."""
    if y.ndim == 2 and y.shape[1] == 1:
        return y[:, 0]
    if y.ndim == 2 and y.shape == p.shape and np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all():
        return np.asarray(y.argmax(axis=1))
    raise ValueError(f"y_true has {y.ndim} dimensions: pass one label per row")


def _whole_labels(y: NDArray[Any], p: Array) -> NDArray[Any]:
    """Labels that came as floats: classes, or else shares between 0 and 1."""
    index = np.where(np.isfinite(y), y, -1).astype(np.intp)
    bad = np.flatnonzero(index != y)
    if not len(bad):
        return index
    missing = np.flatnonzero(~np.isfinite(y))
    if len(missing):
        i = int(missing[0])
        raise ValueError(f"y_true[{i}] = {y[i]}: every row needs a label; drop the rows without one")
    i = int(bad[0])
    if p.ndim == 1 and len(p) == len(y) and np.isin(p, (0.0, 1.0)).all() and (y >= 0).all() and (y <= 1).all():
        raise ValueError(
            f"y_true[{i}] = {y[i]:g} is not a label while y_prob holds only 0 and 1: the two arguments look "
            "swapped; call metric(y_true, y_prob)"
        )
    share = share_of_each(y, p)
    if share is not None:
        return share
    raise ValueError(f"y_true[{i}] = {y[i]:g} is not a label: pass the class that occurred (0, 1, ...), not a score")


def share_of_each(y: NDArray[Any], p: Array) -> Array | None:
    """Labels between 0 and 1 as shares of class 1 (two columns: as rows of two); None if they cannot be that."""
    if (p.ndim == 2 and p.shape[1] != 2) or len(y) != len(p):
        return None
    outside = np.flatnonzero((y < 0.0) | (y > 1.0))
    if len(outside):
        i = int(outside[0])
        raise ValueError(f"y_true[{i}] = {y[i]:g} is neither a class nor a share between 0 and 1, as other labels are")
    share = y.astype(np.float64)
    return share if p.ndim == 1 else np.column_stack([1.0 - share, share])


def _refuse_labels(y: NDArray[np.intp], k: int) -> None:
    i = int(np.flatnonzero((y < 0) | (y >= k))[0])
    raise ValueError(
        f"y_true[{i}] = {y[i]} is outside the {k} classes 0..{k - 1}: pass labels=[...] in column order, "
        "or pos_label= for two classes"
    )


def _sorted_names(y: NDArray[Any], k: int) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    # scikit-learn orders the columns of predict_proba by sorted class name; for two classes and one column
    # of probabilities that would silently choose which class is "1", so there the name is asked for.
    names = sorted(set(y.tolist()), key=str)
    if k == 2 or len(names) != k:
        remedy = (
            f"pass pos_label={names[-1]!r} (or labels=[negative, positive])"
            if k == 2
            else (f"y_true holds {len(names)} of them and y_prob has {k} columns: pass labels=[...] in column order")
        )
        raise ValueError(f"y_true holds class names such as {names[0]!r}: {remedy}")
    return _named_labels(y, k, names, None)


def _named_labels(
    y: NDArray[Any], k: int, labels: Sequence[Hashable] | None, pos_label: Hashable | None
) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    values = y.tolist()
    if labels is None:
        if k != 2:
            raise ValueError(f"pos_label={pos_label!r} is for two classes; y_prob has {k} columns: pass labels=[...]")
        others = sorted(set(values) - {pos_label}, key=str)
        if len(others) > 1:
            raise ValueError(
                f"y_true holds {len(others)} labels besides pos_label={pos_label!r}: "
                f"{others[:4]}; pass labels=[negative, positive] and keep only those rows"
            )
        names: list[Hashable] = [others[0] if others else f"not {pos_label}", pos_label]
    else:
        names = list(labels)
        if pos_label is not None and len(names) == 2 and names[1] != pos_label:
            names.reverse()
        if len(set(names)) != len(names) or len(names) != k:
            raise ValueError(f"labels={names!r} must name each of the {k} classes once")
    position = {name: i for i, name in enumerate(names)}
    try:
        index = np.fromiter((position[v] for v in values), dtype=np.intp, count=len(values))
    except (KeyError, TypeError) as error:
        i = next(i for i, v in enumerate(values) if v not in position)
        raise ValueError(f"y_true[{i}] = {values[i]!r} is not among labels={names!r}") from error
    return index, tuple(names)


def softmax(logits: Any) -> Array:
    """Probabilities from logits, one row per case; safe for large values."""
    z = as_array(logits, "logits").astype(np.float64)
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    result: Array = e / e.sum(axis=-1, keepdims=True)
    return result


def sigmoid(logits: Any) -> Array:
    """P(class 1) from a logit; safe for large values."""
    from scipy.special import expit

    result: Array = expit(as_array(logits, "logits").astype(np.float64))
    return result


def checked_weights(sample_weight: Any, n: int) -> Array:
    """One weight for each of n rows: finite, not negative, not all zero."""
    w = as_array(sample_weight, "sample_weight")
    if w.ndim != 1 or len(w) != n:
        raise ValueError(f"sample_weight has shape {w.shape}, y_true has {n} rows: give one weight per row")
    w = w.astype(np.float64, copy=False)
    if not (w.min() >= 0.0 and w.max() < np.inf):
        i = int(np.flatnonzero(~((w >= 0.0) & (w < np.inf)))[0])
        raise ValueError(f"sample_weight[{i}] = {w[i]}: weights must be finite and not negative")
    if not w.any():
        raise ValueError("every sample_weight is zero: at least one row must count")
    return w
