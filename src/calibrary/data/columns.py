"""Tables with named columns, which are matched to classes by name: in an array the names would be lost."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, suggest
from calibrary.base.text import in_sentence
from calibrary.data.checks import Array, as_array
from calibrary.data.labels import plain_labels


def column_names(table: Any) -> list[str] | None:
    """The names of the columns of a table of any type; None for an array."""
    names = getattr(table, "column_names", None)  # PyArrow
    if names is None:
        names = getattr(table, "columns", None)  # pandas, polars
    if names is None or callable(names) or getattr(table, "ndim", 2) != 2:
        return None
    return [str(name) for name in names]


Verb = TypeVar("Verb", bound=Callable[..., Any])

#: Keywords with a value for every row, which a call with a table may give as column names.
_OF_ROWS = ("sample_weight", "by", "units", "time", "groups", "features", "centre", "imputations")


def names_columns(keywords: Mapping[str, Any]) -> bool:
    """Whether a call names columns of a table, ``label="outcome", prob="risk"``."""
    return "label" in keywords or "prob" in keywords


def out_of_table(table: Any, y_prob: Any, keywords: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Labels, probabilities and keywords of a call with a table, whose columns are named.

    ``label`` names the column of the labels, ``prob`` that of the probabilities (or several, one for each class). Other
    keywords with a value for every row may be names too: ``by="site"``, ``units="patient"``.
    """
    others = dict(keywords)
    label, prob = others.pop("label", None), others.pop("prob", None)
    names = column_names(table)
    if names is None:
        raise RefusedCallError("label= and prob= name columns: pass a table first, such as a pandas data frame")
    if y_prob is not None:
        raise RefusedCallError("label= and prob= name the columns of the table: leave y_prob out")
    if label is None or prob is None:
        gone = "label" if label is None else "prob"
        raise RefusedCallError(
            f"{gone} is missing: name the columns, label='outcome', prob='risk'; {suggest('', names)}"
        )
    if hasattr(table, "collect"):
        table = table.collect()  # a lazy frame of polars
    for name in _OF_ROWS:
        value = others.get(name)
        if isinstance(value, str):
            column = _column(table, names, name, value)
            others[name] = {value: column} if name == "by" else column
        elif isinstance(value, list | tuple) and value and all(isinstance(v, str) and v in names for v in value):
            others[name] = {v: table[v] for v in value} if name == "by" else _part(table, value)
    several = not isinstance(prob, str)
    if several:
        for name in prob:
            _column(table, names, "prob", name)
    p = _part(table, list(prob)) if several else _column(table, names, "prob", prob)
    return _column(table, names, "label", label), p, others


def takes_table(verb: Verb) -> Verb:
    """A function that accepts a table in place of ``y_true``, and names of its columns as ``label`` and ``prob``."""
    signature = inspect.signature(verb)
    place = list(signature.parameters).index("y_true")

    @functools.wraps(verb)
    def called(*given: Any, **keywords: Any) -> Any:
        if not keywords or not names_columns(keywords):
            return verb(*given, **keywords)
        before, rest = given[:place], list(given[place:])
        table = rest.pop(0) if rest else keywords.pop("y_true", None)
        y_prob = rest.pop(0) if rest and not isinstance(rest[0], str) else keywords.pop("y_prob", None)
        y, p, others = out_of_table(table, y_prob, keywords)
        return verb(*before, y, p, *rest, **others)

    called.__signature__ = signature.replace(parameters=_with_names(signature.parameters.values()))  # type: ignore[attr-defined]
    return called  # type: ignore[return-value]


def _with_names(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters with ``label`` and ``prob`` after the others, before ``*args`` and ``**kwargs``."""
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("label", "prob")]
    shown = list(parameters)
    collected = [shown.pop()] if shown[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    return [*shown, *named, *collected]


def _column(table: Any, names: list[str], argument: str, name: Any) -> Any:
    if name not in names:
        raise RefusedError(f"{argument}={in_sentence(name)} is not a column of the table: {suggest(name, names)}")
    return table[name]


def _part(table: Any, names: Sequence[str]) -> Any:
    select = getattr(table, "select", None)  # polars, PyArrow
    return table[list(names)] if select is None else select(list(names))


def by_name(columns: list[str], p: Array, y_true: Any, labels: Any) -> tuple[Array, Any]:
    """Probabilities and ``labels`` in the same order, that of the columns' names; an error if they do not fit."""
    if len(columns) != p.shape[1]:
        return p, labels
    if labels is not None:
        return _ordered_as(columns, p, labels), labels
    y = as_array(y_true, "y_true")
    if y.ndim != 1:
        _refuse_other_order(column_names(y_true), columns)
        return p, None
    distinct = set(plain_labels(y).tolist())
    if all(isinstance(value, str) for value in distinct):
        names = matched_names(columns, distinct)
        if names is None:
            raise RefusedError(
                f"the columns of y_prob ({_some(columns)}) do not name the classes in y_true "
                f"({_some(sorted(distinct))}): rename them, or pass labels=[...] in column order"
            )
        return p, names
    return _numbered(columns, p, {_word(value) for value in distinct})


def _ordered_as(columns: list[str], p: Array, labels: Any) -> Array:
    """The columns in the order of ``labels``, which have priority over names that do not match them."""
    words = [_word(name) for name in (labels.tolist() if hasattr(labels, "tolist") else labels)]
    names = matched_names(columns, set(words))
    if names is not None and len(words) == len(names):
        return np.ascontiguousarray(p[:, [names.index(word) for word in words]])
    both = set(words) & set(columns)
    if both and columns != [str(k) for k in range(len(columns))]:
        raise RefusedError(
            f"labels={list(words)!r} and the columns of y_prob ({_some(columns)}) share {_some(sorted(both))} but not "
            "all: name every column after its class, or pass y_prob.to_numpy()"
        )
    return p


_PLACES = {"False": 0, "True": 1}


def _numbered(columns: list[str], p: Array, words: set[str]) -> tuple[Array, Any]:
    """Columns for labels that are numbers: positions, unless the columns' own numbers differ."""
    k = len(columns)
    places = [str(i) for i in range(k)]
    names = matched_names(columns, set(places)) or matched_names(columns, {"False", "True"})
    if names is not None:
        order = sorted(range(k), key=lambda i: _PLACES[names[i]] if names[i] in _PLACES else int(names[i]))
        return (p if order == list(range(k)) else np.ascontiguousarray(p[:, order])), None
    if "0" in words or "False" in words or k == 2:
        return p, None
    from_one = matched_names(columns, {str(i + 1) for i in range(k)})
    if from_one is not None and str(k) in words and words <= set(from_one):
        order = sorted(range(k), key=lambda i: int(from_one[i]))
        return np.ascontiguousarray(p[:, order]), [i + 1 for i in range(k)]
    raise RefusedError(
        f"y_true contains {_some(sorted(words))} and never 0, and the columns of y_prob ({_some(columns)}) do not "
        f"show whether classes count from 0 or 1: pass labels={list(range(k))!r} or labels={list(range(1, k + 1))!r}"
    )


def matched_names(columns: Sequence[str], words: set[str]) -> list[str] | None:
    """The class that each column is named after, if every one of ``words`` has its column; otherwise None.

    Columns may share a prefix and a suffix: ``prob_cat, prob_car`` are the columns of cat and car.
    """
    found = {
        tuple(column[before : len(column) - after] for column in columns)
        for before in range(_shared(columns) + 1)
        for after in range(_shared([column[::-1] for column in columns]) + 1)
        if before + after < min(map(len, columns))
    }
    fitting = [list(names) for names in found if words <= set(names) and len(set(names)) == len(columns)]
    if len(fitting) > 1:
        raise RefusedError(
            f"the columns {_some(columns)} can be interpreted as {_some(fitting[0])} and as {_some(fitting[1])}"
        )
    return fitting[0] if fitting else None


def _shared(words: Sequence[str]) -> int:
    """The length of the common beginning of all words."""
    n = 0
    while all(len(word) > n and word[n] == words[0][n] for word in words):
        n += 1
    return n


def _refuse_other_order(of_labels: list[str] | None, columns: list[str]) -> None:
    if of_labels is not None and of_labels != columns and set(of_labels) & set(columns):
        raise RefusedError(
            f"the columns of y_true ({_some(of_labels)}) and of y_prob ({_some(columns)}) differ: use the same "
            "columns in the same order"
        )


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _some(names: Sequence[Any], most: int = 4) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (", ..." if len(names) > most else "")
