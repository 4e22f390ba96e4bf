"""The decorator that turns a function of views into a public diagnostic (a table or a curve).

A diagnostic takes the same data and lenses as a metric, and returns a result object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from calibrary.base.errors import RefusedError
from calibrary.data.views import Views
from calibrary.metrics.machinery.declare import Metric
from calibrary.metrics.machinery.declare import public as public_function
from calibrary.metrics.machinery.measure import usual_average, views_of, with_bins
from calibrary.metrics.machinery.option_checks import check_options
from calibrary.question import question_of

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


def diagnostic(
    like: Metric[..., Any], *, lens: Callable[[int, Mapping[str, Any]], str] | None = None
) -> Callable[[Callable[Concatenate[Any, P], R]], Metric[P, R]]:
    """Turn a function of views into a public function of data.

    Data and lens are handled as by the metric ``like``. ``lens(k, options)`` names another lens for "auto". A function
    with an option ``average`` gets the rule by which views are combined.
    """

    def decorate(formula: Callable[Concatenate[Any, P], R]) -> Metric[P, R]:
        entry = like.entry
        averages = "average" in inspect.signature(formula).parameters

        def call(first: Any, second: Any, keywords: dict[str, Any]) -> Any:
            check_options(formula.__name__, formula, entry.extra_options, keywords)
            data = entry.front.read(first, second, keywords)
            question = question_of(keywords, entry.options)
            if lens is not None and isinstance(question.lens, str) and question.lens == "auto":
                k = data.read_as(entry.data_type, formula.__name__).k
                question = question.changed(lens=lens(k, question.options))
            question = with_bins(entry, data, question)
            combined = {"average": usual_average(entry, question)} if averages else {}
            of_views: Callable[..., Any] = formula
            return of_views(views_of(entry, data, question), **question.options, **combined)

        return public_function(formula, entry, call, entry.front)  # type: ignore[return-value]

    return decorate


def only_view(views: Views, what: str) -> Any:
    """The view of a lens that has exactly one; a lens with several views is refused."""
    if len(views.views) != 1:
        raise RefusedError(
            f"the lens gives {len(views.views)} binary problems and {what} needs one: pass one class as "
            "(y == k, p[:, k]), or one pair of classes with lens=calibrary.lens.pairwise(a, b)"
        )
    return views.views[0]
