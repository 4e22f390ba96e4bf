"""Check the input of a map: probabilities or logits, one column or several, and the names of the classes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import is_absent
from calibrary.data import is_data
from calibrary.data.checks import Array, as_array, checked_probabilities, outside, shown_place, sigmoid, softmax
from calibrary.data.predictions import Predictions


def probabilities(p: Any, *, logits: bool = False) -> Array:
    """Checked probabilities: an array (N,) of P(class 1), or (N, K); a single column becomes (N,)."""
    if hasattr(p, "tocsr"):
        raise RefusedError("p is a sparse matrix: pass a dense array, p.toarray()")
    given = as_array(p, "p")
    if given.dtype.kind == "c":
        raise RefusedError("p holds complex numbers (Complex data not supported): pass probabilities")
    if given.ndim == 2 and 0 in given.shape:
        raise RefusedError(
            f"p has {given.shape[0]} sample(s) and {given.shape[1]} feature(s) (shape={given.shape}) while a minimum "
            "of 1 is required: pass one row per prediction, one column per class"
        )
    if given.dtype.kind not in "fiub":
        try:
            given = given.astype(np.float64)
        except (ValueError, TypeError) as error:
            raise RefusedError(f"p holds {given.dtype} values, not numbers ({error})") from error
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if logits:
        return _from_logits(given)
    refuse_mixed_scales(given)
    try:
        return checked_probabilities(given)
    except ValueError as error:
        raise RefusedError(str(error).replace("y_prob", "p")) from None


def _from_logits(z: NDArray[Any]) -> Array:
    if z.ndim not in (1, 2) or not len(z):
        raise RefusedError(f"p has shape {z.shape}: pass logits of shape (N,) or (N, K)")
    wrong = np.argwhere(np.isnan(z))
    if len(wrong):
        raise RefusedError(f"p[{', '.join(map(str, wrong[0]))}] is missing: drop or fill missing logits first")
    return sigmoid(z) if z.ndim == 1 else softmax(z)


def refuse_mixed_scales(p: NDArray[Any]) -> None:
    """Refuse percentages mixed with fractions, because numbers below 1 could be either."""
    found = outside(p) if p.size and p.dtype.kind in "fiu" else None
    if found is None or not found.percentages:
        return
    place = f"p{shown_place(found.where)} = {found.value:g} looks like a percentage"
    if found.fraction is not None:
        raise RefusedError(
            f"{place} and p{shown_place(found.fraction)} = {p[found.fraction]:g} like a fraction: convert all to "
            "numbers from 0 to 1"
        )
    raise RefusedError(f"{place}: divide by 100")


def refuse_swapped(p: Any, y: Any) -> None:
    """Refuse labels and probabilities that were passed in the wrong order."""
    first, second = as_array(p, "p"), as_array(y, "y")
    if first.ndim != 1 or second.dtype.kind != "f" or first.dtype.kind not in "iubf":
        return
    within = second.size and np.nanmin(second) >= 0.0 and np.nanmax(second) <= 1.0
    if within and (second != np.rint(second)).any() and np.isin(first, (0, 1)).all():
        raise RefusedError("p holds only 0 and 1 and y holds fractions: the two look swapped; call fit(p, y)")


def class_names(y: NDArray[Any], p: Array, columns: Sequence[Any] | None) -> tuple[Hashable, ...]:
    """The classes in the order of the columns: sorted as in scikit-learn, unless the columns are named after them."""
    k = 2 if p.ndim == 1 else p.shape[1]
    if y.dtype.kind == "O" and any(map(is_absent, y.tolist())):
        raise RefusedError("y holds missing labels: drop the rows without one")
    if y.dtype.kind == "f" and not (np.isfinite(y).all() and (y == np.rint(y)).all()):
        raise RefusedError(
            "Unknown label type: continuous; y must hold the class that occurred in every row, not a score"
        )
    present = sorted(set(y.tolist()), key=lambda v: (str(type(v)), v) if not isinstance(v, int | float) else ("", v))
    numeric = all(isinstance(v, int | float) for v in present)
    if p.ndim == 1:
        for pair in ((0, 1), (-1, 1)):
            if set(present) <= set(pair):
                return pair
        shown = ", ".join(repr(v) for v in present[:3])
        if len(present) > 2:
            raise RefusedError(
                f"y holds {len(present)} labels ({shown} ...) and p is one column: pass one column per class"
            )
        raise RefusedError(
            f"y holds the labels {shown} and p is one column: say to which of them it refers with "
            f"classes=[negative, positive], e.g. Recalibrator(classes={present!r})"
        )
    if columns is not None and len(set(map(str, columns))) == k and set(map(str, present)) <= set(map(str, columns)):
        named = {str(v): v for v in present}
        return tuple(named.get(str(c), c) for c in columns)
    if len(present) == k:
        return tuple(present)
    if numeric and all(float(v).is_integer() and 0 <= v < k for v in present):
        return tuple(range(k))
    raise RefusedError(
        f"y holds {len(present)} classes and p has {k} columns: pass classes=[...], the class of each column in order"
    )


def in_units(p: Predictions, given: Any, units: Any) -> Predictions:
    """The predictions with the given units, or else with the units of the data."""
    if units is None and is_data(given) and p.together is None:
        units = given.units
    return p.in_units(units)


def column_names(p: Any) -> list[Any] | None:
    """The names of the columns of a table; None for arrays."""
    names = getattr(p, "columns", None)
    if names is None or getattr(p, "ndim", 2) != 2:
        return None
    return list(names)
