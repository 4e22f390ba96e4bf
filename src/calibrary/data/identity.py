"""Which rows these are: two things meet only if they are about the same rows.

Labels and predictions, columns and rows, two models: each may say which rows it is about, by the index of a pandas
object or by the identifiers of images. Where two things both say it, they must agree; a plain array says nothing, and
meets others by position and length.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.text import in_sentence
from calibrary.data.checks import absent, as_array

if TYPE_CHECKING:
    from calibrary.data import Data

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


def index_of(values: Any) -> Any:
    """The names of the rows of a pandas object, or of checked data that were made from one; None for a plain array."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "equals") else None  # the index of a list is a method


def first_index(*given: Any) -> Any:
    """The names of the rows of the first of these that has any."""
    return next((index for values in given if (index := index_of(values)) is not None), None)


def refuse_misaligned(**given: Any) -> None:
    """Raise an error for pandas objects with different indexes, because the correspondence of their rows is unknown.

    Mappings of named columns, such as ``by={"site": site}``, are compared column by column.
    """
    known = [(name, index) for name, values in _columns(given) if (index := index_of(values)) is not None]
    for name, index in known[1:]:
        first, expected = known[0]
        if len(index) != len(expected) or index.equals(expected):
            continue
        pairs = zip(index.tolist(), expected.tolist(), strict=True)
        for i, (a, b) in enumerate(pairs):
            if a == b:
                continue
            raise RefusedError(
                f"{name} and {first} have different indexes (row {i} is {in_sentence(a)} in {name} and "
                f"{in_sentence(b)} in {first}): align them ({name}.loc[{first}.index]), or pass "
                f"{name}.to_numpy() if the rows are in the same order"
            )


@dataclass(frozen=True, eq=False)
class IdentifiedRows:
    """Which rows a result or a page is about: how many and, where they are known, their index and their labels."""

    n: int
    index: Any = None
    labels: Any = None

    @classmethod
    def of(cls, y_true: Any, y_prob: Any = None, outside: Any = None) -> IdentifiedRows | None:
        """The rows that have a label; None where a row may have several."""
        if hasattr(y_true, "identity"):
            of, names = getattr(y_true, "y", None), getattr(y_true, "classes", None)
            if names is None or of is None or of.ndim > 1 or y_true.fractional:
                return cls(y_true.n_places, index_of(y_true))
            return cls(y_true.n_places, index_of(y_true), np.asarray(names)[of.astype(np.intp)])
        labels = as_array(y_true, "y_true")
        if labels.ndim != 1:
            return None
        there = ~absent(labels)
        if outside is not None:
            there &= ~as_array(outside, "outside").astype(bool)
        index = first_index(y_true, y_prob)
        return cls(int(there.sum()), None if index is None else index[there], labels[there])

    def refuse_unless(self, other: IdentifiedRows, name: str) -> None:
        """Refuse a result, which is about ``other`` rows, on a page about these."""
        mine = "pass a result of the page's own rows"
        if self.n != other.n:
            raise RefusedError(f"{name} is about {other.n:,} rows and the page about {self.n:,}: {mine}")
        refuse_misaligned(y_true=self, **{name: other})
        if self.labels is None or other.labels is None or not set(other.labels.tolist()) <= set(self.labels.tolist()):
            return
        if len(differing := np.flatnonzero(self.labels != other.labels)):
            i = int(differing[0])
            ours, theirs = (in_sentence(np.asarray(rows.labels[i]).item()) for rows in (self, other))
            raise RefusedError(f"{name} has other labels than the page (row {i}: {theirs} and {ours}): {mine}")


def knows_rows(verb: _Verb) -> _Verb:
    """A public function whose result remembers which rows it is about (:func:`rows_of_result`)."""
    names = list(inspect.signature(verb).parameters)

    @functools.wraps(verb)
    def called(*given: Any, **keywords: Any) -> Any:
        result, named = verb(*given, **keywords), {**dict(zip(names, given, strict=False)), **keywords}
        rows: IdentifiedRows | None = None
        if "answers" in named:
            rows = IdentifiedRows(result.n, index_of(named["answers"]))
        else:
            rows = IdentifiedRows.of(named["y_true"], named.get("y_prob"), named.get("outside"))
        object.__setattr__(result, "_about_rows", rows)
        return result

    return called  # type: ignore[return-value]


def rows_of_result(result: Any) -> IdentifiedRows | None:
    """The rows that a result is about; None if it does not know them."""
    return getattr(result, "_about_rows", None)


def _columns(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, values in given.items():
        if isinstance(values, Mapping):
            yield from ((f"{name}[{key!r}]", column) for key, column in values.items())
        else:
            yield name, values


def refuse_other_names(values: Any, names: Any, name: str, noun: str) -> None:
    """Raise an error for a pandas object whose index names other entries, or names them in another order.

    An index that only counts from 0 is no name.
    """
    index = index_of(values)
    if index is None or list(index) == list(range(len(names))) or list(index) == list(names):
        return
    raise RefusedError(
        f"the index of {name} is not the {noun}s of these data in their order: pass a mapping {{{noun}: value}} where "
        f"it is accepted, or {name}.to_numpy() if the {noun}s are in the same order"
    )


@dataclass(frozen=True, eq=False)
class Identity:
    """What says which rows the data are about.

    Attributes
    ----------
    noun : the noun for one entry: "row" or "image"
    names : names of the entries (the index of a pandas object, identifiers of images); None if they have none
    columns : what must be equal, entry by entry, in two data sets about the same rows, by its name
    """

    noun: str
    names: Any
    columns: dict[str, NDArray[Any] | None]


def meeting(first: Data, second: Data, own_outcomes: bool = False) -> Any:
    """The second model's data, in the order of the first model's; an error unless both are about the same rows.

    Images are put in order by their identifiers. ``own_outcomes``: each model has labels of its own for the same rows.
    """
    a, b = first.identity, second.identity
    if a.noun != b.noun or first.n_places != second.n_places:
        raise RefusedError(
            f"the two models belong to different {a.noun}s, {first.n_places:,} {a.noun}s and {second.n_places:,} "
            f"{b.noun}s: compare models on the same {a.noun}s"
        )
    if getattr(first, "counted", False) or getattr(second, "counted", False):
        raise RefusedError("the rows of a state are counted and cannot be paired: compare models on their own rows")
    if a.noun == "image":
        second = second.ordered_by(a.names)  # type: ignore[union-attr]
        b = second.identity
    else:
        refuse_misaligned(y_prob_a=first, y_prob_b=second)
    for name, own in a.columns.items():
        other = b.columns[name]
        if own_outcomes and name == "labels":
            continue
        if own is None and other is None:
            continue
        if own is None or other is None or own.shape != other.shape:
            raise RefusedError(
                f"the two models have different {name}, so their {a.noun}s are not the same: compare models on the "
                f"same {a.noun}s with the same {name}"
            )
        differing = np.argwhere(own != other)
        if len(differing):
            i = int(differing[0][0])
            raise RefusedError(
                f"the two models have different {name} ({a.noun} {i}: {own[i]} and {other[i]}): compare models on the "
                f"same {a.noun}s, in the same order"
            )
    return second
