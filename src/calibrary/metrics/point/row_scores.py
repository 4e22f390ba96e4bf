"""One number per row: errors of a prediction, soft targets, how row scores are reduced to one number, and its skill."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, undefined
from calibrary.data.checks import ONE_THREAD, Array, are_probabilities, slices
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions, predictions
from calibrary.data.views import Views
from calibrary.metrics.machinery.declare import Common, Metric, metric

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
#: The result of a row score: a float, or with ``reduction="none"`` an array of one number per row.
Score: TypeAlias = float | Any


def reduced(view: Predictions, rows: Array, reduction: str) -> Score:
    """The weighted mean of the row scores, or the row scores themselves."""
    if reduction == "mean":
        return float(view.mean(rows)) + 0.0  # no -0.0
    one_of("reduction", reduction, ("mean", "none"))
    return rows


def mean_of_rows(rows: Array, sample_weight: Any, reduction: str) -> Score:
    """The weighted mean of row scores, or the row scores themselves, for rows that are not Predictions."""
    n = len(rows)
    weighted = predictions(Predictions(np.zeros(n, dtype=np.intp), np.zeros(n)), sample_weight=sample_weight)
    return reduced(weighted, weighted.align(rows, "y_true"), reduction)


def combine_rows(values: list[Any], views: Views, average: Any, options: dict[str, Any]) -> Score:
    """Average row scores over the views of a lens, also if each view gives one number per row."""
    if options.get("reduction", "mean") == "mean":
        return views.average(np.array(values), average)
    seen = [np.arange(view.n) if view.rows is None else view.rows for view in views.views]
    if not all(np.array_equal(rows, seen[0]) for rows in seen):
        raise RefusedError("reduction='none' needs a lens that has every row in every view, such as 'class-wise'")
    stacked = np.array(values)
    if isinstance(average, str) and average == "max":
        return stacked.max(axis=0)
    weights = views.weights(average)
    return weights[weights > 0] @ stacked[weights > 0]


#: What all plain means of row scores declare.
ROW_SCORE: dict[str, Any] = {"combine": combine_rows, "lenses": ALL_LENSES, "default_lens": "full"}


class RowOptions(Common, total=False):
    """Keywords that every mean of row scores accepts; :func:`row_score` handles them."""

    reduction: str


class SkillOptions(RowOptions, total=False):
    """Keywords of a mean of row scores that may also be given as a skill."""

    skill: bool


def row_score(
    id: str, *, mean: Callable[..., float | None] | None = None, **declared: Any
) -> Callable[[Callable[Concatenate[Any, P], R]], Metric[P, R]]:
    """Turn a function that gives one number per row into a metric: their mean, with ``reduction="none"`` the rows.

    If its keywords are :class:`SkillOptions`, the metric also has ``skill=True``. ``mean(view, **options)`` is a faster
    way to the mean, or None where there is no such way.
    """

    def decorate(rows: Callable[Concatenate[Any, P], R]) -> Metric[P, R]:
        def formula(view: Predictions, *, reduction: str = "mean", skill: bool = False, **options: Any) -> Score:
            if skill:
                return skill_of(formula, view, reduction, **options)
            if mean is not None and reduction == "mean" and (value := mean(view, **options)) is not None:
                return value
            return reduced(view, rows(view, **options), reduction)  # type: ignore[call-arg, arg-type]

        core = inspect.signature(rows)
        *own, keywords = core.parameters.values()
        added = ["reduction", *(["skill"] if "SkillOptions" in str(keywords.annotation) else [])]
        shared = inspect.signature(formula).parameters
        functools.update_wrapper(formula, rows)
        formula.__signature__ = core.replace(parameters=[*own, *map(shared.get, added), keywords])  # type: ignore[attr-defined, list-item]
        return metric(id, **{**ROW_SCORE, **declared})(formula)  # type: ignore[arg-type]

    return decorate


#: Number of rows that BLAS multiplies with a vector at a time: four, or eight where registers are long.
_ROWS_AT_ONCE = 8


def limited(c: Array, eps: float) -> Array:
    """Probabilities clipped to [eps, 1 - eps], entry by entry; rows are not rescaled."""
    if eps == 0.0:
        return c
    if not 0.0 <= eps < 0.5:
        raise RefusedError(f"eps={eps!r} must lie in [0, 0.5): probabilities are clipped to [eps, 1 - eps]")
    return np.clip(c, eps, 1.0 - eps)


def row_blocks(view: Predictions) -> list[slice]:
    """Slices of rows whose probabilities fit in the cache."""
    return slices(view.n, view.k)


def errors(view: Predictions, soft_target: Any = None) -> Iterator[tuple[slice, Array]]:
    """Blocks of y - c: one number per row of a binary view, else one per row and class."""
    target = None if soft_target is None else soft(view, soft_target)
    if view.binary:
        yield slice(None), view.residual if target is None else target - view.c
        return
    for rows in row_blocks(view):
        if target is not None:
            yield rows, target[rows] - view.p[rows]
            continue
        yield rows, _label_minus(view.p[rows], view.y[rows])


def _label_minus(p: Array, y: NDArray[Any]) -> Array:
    """y - c, where labels of several classes are one-hot rows (or rows of shares)."""
    if p.ndim == 1 or y.ndim == 2:
        e: Array = y.astype(np.float64)
        e -= p
        return e
    e = np.negative(p)
    e.ravel()[np.arange(0, e.size, e.shape[1]) + y] += 1.0
    return e


def mean_square(view: Predictions) -> float:
    """Weighted mean of (y - c)^2 over rows and classes, a block of rows at a time."""
    total = 0.0
    for rows in row_blocks(view):
        e = _label_minus(view.probability[rows], view.y[rows])
        flat = e.ravel()
        other = flat if view.w is None else (view.w[rows] * e.T).T.ravel()
        for i in range(0, flat.size, ONE_THREAD):
            part = slice(i, i + ONE_THREAD)
            total += flat[part].dot(other[part])
    return float(total) / (view.total if e.ndim == 1 else view.total * view.k)


def row_products(value: Array, share: Array) -> Array:
    """The product of every row with a vector, identical to the last bit wherever the row is in the array.

    BLAS multiplies several rows at a time and rounds a remainder of rows differently; the remainder is therefore
    padded.
    """
    rest = len(value) % _ROWS_AT_ONCE
    out: Array = value[: len(value) - rest] @ share
    if not rest:
        return out
    filled = np.zeros((_ROWS_AT_ONCE, value.shape[1]))
    filled[:rest] = value[len(value) - rest :]
    return np.concatenate([out, (filled @ share)[:rest]])


def class_mean(view: Predictions, loss: Callable[[Array], Array], soft_target: Any = None) -> Array:
    """Mean over the classes of loss(y - c), for every row."""
    if view.binary and soft_target is None:
        return loss(view.residual)
    share = np.full(view.k, 1.0 / view.k)
    out = np.empty(view.n)
    for rows, e in errors(view, soft_target):
        value = loss(e)
        out[rows] = value if value.ndim == 1 else row_products(value, share)
    return out


def soft(view: Predictions, soft_target: Any) -> Array:
    """Probabilities used in place of labels, in the shape of the view's own probabilities."""
    if not _is_the_problem_itself(view):
        raise RefusedError("soft_target replaces the labels as given: use lens='full', or 'binary' for two classes")
    target = view.align(soft_target, "soft_target").astype(np.float64)
    if view.binary and target.ndim == 2 and target.shape[1] == 2:
        target = target[:, 1]
    elif not view.binary and view.k == 2 and target.ndim == 1:
        target = np.column_stack([1.0 - target, target])
    if target.shape != view.probability.shape:
        raise RefusedError(
            f"soft_target has shape {target.shape}: pass shape {view.probability.shape}, as the probabilities have"
        )
    if not (target.min() >= 0.0 and target.max() <= 1.0):
        where = tuple(int(i) for i in np.argwhere(~are_probabilities(target))[0])
        place = ", ".join(map(str, where))
        raise RefusedError(f"soft_target[{place}] = {target[where]:g} is not a probability: pass numbers from 0 to 1")
    return target


def _is_the_problem_itself(view: Predictions) -> bool:
    # A view from another lens describes other events than the rows of soft_target.
    whole = view.origin
    if whole is None:
        return True
    same_event = view.k == whole.k == 2 and np.array_equal(view.p[:, 1], whole.p[:, 1])
    return same_event and np.array_equal(view.y, whole.y)


def skill_of(formula: Callable[..., Any], view: Predictions, reduction: str, **options: Any) -> float:
    """(S(base rate) - S) / (S(base rate) - S(certain and right)): 1 is perfect, 0 no better than the base rate.

    For scores whose best value is 0 this is 1 - S/S(base rate): the index of prediction accuracy (Brier), or one minus
    the normalized entropy (logarithm).
    """
    if reduction != "mean":
        raise RefusedError(
            f"skill=True compares means, and reduction={reduction!r} does not compute a mean: leave out one of the two"
        )
    if options.get("soft_target") is not None:
        raise RefusedError(
            "skill=True computes the base rate from the labels: pass the shares as y_true, not as soft_target"
        )
    given, base, best = (float(formula(v, **options)) for v in (view, _at_base_rate(view), _certain(view)))
    if base == best:
        return undefined(
            "the skill is undefined because all labels are the same, so the base rate is already a perfect prediction"
        )
    return (base - given) / (base - best)


def _at_base_rate(view: Predictions) -> Predictions:
    """Every row predicted with the class frequencies."""
    if view.binary:
        return view.view(view.y, np.full(view.n, min(float(view.mean(view.y)), 1.0)))
    return view.view(view.y, np.tile(view.class_share, (view.n, 1)), classes=view.class_names)


def _certain(view: Predictions) -> Predictions:
    """The predictions that give every row's true class the probability 1."""
    if view.binary:
        return view.view(view.y, view.y.astype(np.float64))
    return view.view(view.y, view.one_hot, classes=view.class_names)
