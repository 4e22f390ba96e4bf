"""How a formula becomes a loss: checked input, a lens, blocks of classes, reduction, a module of the same name."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError, UnknownMetricError, one_of, refuse_unknown, suggest
from calibrary.base.signatures import own_options
from calibrary.lookup import catalogue
from calibrary.losses.batch import View, checked, look
from calibrary.losses.blocks import in_blocks, step

P = ParamSpec("P")

#: Lenses of a loss of (confidence, 0/1) pairs, and of a loss of whole probability rows.
LINE, ROWS = ("binary", "top-label", "class-wise"), ("binary", "top-label", "class-wise", "full")
REDUCTIONS = ("mean", "sum", "none")
#: Number of values that a loss stores for every confidence, which determines the blocks of classes.
_PER_CONFIDENCE = 16


class LossKeywords(TypedDict, total=False):
    """Keywords that every loss accepts; the decorator handles them before the formula is called."""

    sample_weight: Any
    lens: str
    reduction: str


Common = LossKeywords  # the name of this class in version 0.2, which old pickles and imports may still use


class Loss(Protocol[P]):
    """A loss as a function: it takes labels, probabilities and options, and returns a tensor with one number."""

    #: Short name of the corresponding metric, as in ``calibrary.catalogue``.
    metric: str
    #: The values of ``lens=``, besides "auto".
    lenses: tuple[str, ...]
    __name__: str

    def __call__(self, y_true: Any, y_prob: Tensor, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...


#: Every loss under the short name of its metric.
LOSSES: dict[str, Callable[..., Tensor]] = {}

_DOC = """\
y_true : tensor or array-like of shape (N,)
    Classes 0..K-1; for one probability per row, 0 or 1.
y_prob : tensor of shape (N,) or (N, K)
    P(class 1), or one column per class: torch.sigmoid or torch.softmax of the logits, in any floating dtype and on any
    device. Half precision is computed in single precision."""

_DOC_COMMON = """\
sample_weight : tensor or array-like of shape (N,), optional
    A row of weight 2 counts as the row repeated.
lens : {lenses}
    How classes become binary problems. "auto" is "binary" for two classes and "{lens}" for more.
reduction : {reductions}
    {reduction}"""

_ROW_REDUCTION = "Weighted mean of the rows, their weighted sum, or one number per row."
_SET_REDUCTION = "The value, or the value times the total weight, to be added to a criterion that sums over rows."


def loss(
    metric: str,
    *,
    lens: str = "top-label",
    lenses: tuple[str, ...] = LINE,
    rows: bool = False,
    combine: Callable[[Tensor, dict[str, Any]], Tensor] | None = None,
    own_blocks: bool = False,
) -> Callable[[Callable[Concatenate[View, P], Tensor]], Loss[P]]:
    """Turn a formula of one :class:`View` into a loss, and enter it under its metric's short name.

    A formula returns one value for each problem of the view, (V,), or with ``rows`` one for each row of each, (V, N).
    ``lens`` is the meaning of "auto" for more than two classes; ``combine`` combines the problems' values, by default
    their mean. Many problems are computed a few at a time, unless the formula works in ``own_blocks``.
    """

    def decorate(core: Callable[Concatenate[View, P], Tensor]) -> Loss[P]:
        def call(
            y_true: Any,
            y_prob: Any,
            *,
            sample_weight: Any = None,
            lens: str = "auto",
            reduction: str = "mean",
            **options: Any,
        ) -> Tensor:
            if not known.issuperset(options):
                options = with_current_names(function, options)
            _check_reduction(reduction, rows, function.__name__)
            y, p, w = checked(y_true, y_prob, sample_weight)
            # half-precision products in a sum that nearly cancels would lose all digits
            with torch.autocast(p.device.type, enabled=False):
                view = look(y, p, w, lens, lenses, default)
                values = formula(view, **options) if own_blocks else _of_classes(formula, view, options)
                return _reduced(view, values, reduction, rows, options, combine).to(p.dtype)

        formula: Callable[..., Tensor] = core
        known = set(own_options(core))
        default = lens
        function: Any = functools.wraps(core)(call)
        function.metric, function.lenses, function.formula = metric, lenses, core
        function.__signature__ = _signature(core)
        function.__doc__ = _documented(core, default, lenses, rows)
        LOSSES[metric] = function
        return function

    return decorate


def loss_of(metric: str) -> Callable[..., Tensor]:
    """The loss that equals a metric of the catalogue, by its short name.

    Parameters
    ----------
    metric : str
        Such as "mmce" or "skce_uq".

    Examples
    --------
    >>> from calibrary import losses
    >>> losses.loss_of("mmce").__name__
    'maximum_mean_calibration_error'
    """
    if metric not in LOSSES:
        raise UnknownMetricError(
            f"{metric!r} has no loss ({suggest(metric, LOSSES)}); the page on losses gives the reason for each metric"
        )
    return LOSSES[metric]


def with_current_names(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Options with the metric's old names replaced by current ones; unknown ones raise an error."""
    metric = function.metric  # type: ignore[attr-defined]  # every loss has one
    if metric in catalogue:
        options = catalogue[metric].with_current_names(options)
    refuse_unknown(function.__name__, options, list(own_options(function)))
    return options


def _of_classes(core: Callable[..., Tensor], view: View, options: dict[str, Any]) -> Tensor:
    """Values of all problems, in blocks of classes that fit the memory."""

    def some(y: Tensor, p: Tensor) -> Tensor:
        return core(replace(view, y=y, p=p), **options)

    return torch.cat(in_blocks(some, step(_PER_CONFIDENCE * view.n, view.p.device), view.y, view.p, dim=0))


def _reduced(
    view: View,
    values: Tensor,
    reduction: str,
    rows: bool,
    options: dict[str, Any],
    combine: Callable[[Tensor, dict[str, Any]], Tensor] | None,
) -> Tensor:
    if rows:
        if reduction == "none":
            return values.mean(dim=0)
        return (view.mean if reduction == "mean" else view.sum)(values).mean()
    value = values.mean() if combine is None else combine(values, options)
    return value if reduction == "mean" else value * view.total


def _check_reduction(reduction: str, rows: bool, name: str) -> None:
    one_of("reduction", reduction, REDUCTIONS)
    if reduction == "none" and not rows:
        raise RefusedError(
            f"reduction='none' requests one number per row, but {name} is one number for a whole batch: use 'mean', "
            "or 'sum' for the value times the number of rows"
        )


def _signature(core: Callable[..., Any]) -> inspect.Signature:
    both = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("y_true", "y_prob")]
    defaults = {"sample_weight": None, "lens": "auto", "reduction": "mean"}
    common = [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in defaults.items()]
    return inspect.Signature([*both, *own_options(core).values(), *common], return_annotation="Tensor")


def _documented(core: Callable[..., Any], lens: str, lenses: tuple[str, ...], rows: bool) -> str:
    """The formula's documentation with the arguments that all losses share."""
    text = inspect.getdoc(core) or ""
    *first, last = [f'"{name}"' for name in ("auto", *lenses)]
    kinds, reduction = ('"mean", "sum" or "none"', _ROW_REDUCTION) if rows else ('"mean" or "sum"', _SET_REDUCTION)
    named = f"{', '.join(first)} or {last}"
    common = _DOC_COMMON.format(lenses=named, lens=lens, reductions=kinds, reduction=reduction)
    head, mark, tail = text.partition("Parameters\n----------\n")
    if not mark:
        head, other, rest = text.partition("Examples\n--------\n")
        head, mark, tail = f"{head.rstrip()}\n\n", "Parameters\n----------\n", f"\n\n{other}{rest}" if other else ""
    own, gap, rest = tail.partition("\n\n")
    return textwrap.dedent(f"{head}{mark}{_DOC}\n{own.strip()}{chr(10) if own.strip() else ''}{common}{gap}{rest}")
