"""The catalogue: every metric by its names, collected from the metrics' declarations."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from calibrary.base.errors import RefusedCallError, UnknownMetricError, deprecated, suggest, warn
from calibrary.base.markup import Markup, html_table
from calibrary.base.text import in_columns, squeezed
from calibrary.data.columns import takes_table
from calibrary.lookup.review_tables import ReviewTable, curve_named, nearest_to, table2
from calibrary.metrics.machinery.declare import ENTRIES, Entry
from calibrary.metrics.machinery.entry import PICTURES
from calibrary.metrics.machinery.facts import Alias
from calibrary.public import PUBLIC

__all__ = ["Catalogue", "catalogue", "compute"]


def _names(entry: Entry) -> tuple[str, ...]:
    """Every name of the metric: that of its function, its aliases, and its numbers, such as "cis.slope"."""
    numbers = [Alias(f"{entry.id}.{name}", of=(name, perfect)) for name, perfect in entry.fields]
    return (entry.id, entry.name, *entry.aliases, entry.declared.function, *numbers)


@functools.lru_cache(maxsize=1)
def _index(ids: tuple[str, ...]) -> dict[str, list[Entry]]:
    """Every normalised name with its possible meanings: metrics, with the settings that the name implies."""
    meanings: dict[str, list[Entry]] = {}
    for entry in map(ENTRIES.__getitem__, ids):
        for name in _names(entry):
            meant = meanings.setdefault(squeezed(name), [])
            if entry.under(name) not in meant:
                meant.append(entry.under(name))
    return meanings


def _meanings(name: str) -> list[Entry]:
    """The possible meanings of a name. For "smooth ECE (SECE)" both the words and the letters must have the meaning."""
    index = _index(tuple(ENTRIES))
    found = index.get(squeezed(name), [])
    both = re.fullmatch(r"(.*)\(([^()]+)\)(.*)", name)
    if found or both is None:
        return found
    words, letters = index.get(squeezed(both[1] + both[3]), []), index.get(squeezed(both[2]), [])
    return [e for e in words if e in letters] or words or letters


def _ranked(name: str) -> list[Entry]:
    """The possible meanings of a name, the preferred one first."""
    spelled = re.sub(r"[\s-]+", "_", name.strip().lower())

    def rank(entry: Entry) -> tuple[bool, bool, tuple[float, int]]:
        by_id = entry.id == spelled and entry.called is None
        return not by_id, squeezed(entry.name) != squeezed(name), _place(entry)

    found = _meanings(name)
    return found if len(found) < 2 else sorted(found, key=rank)


def other_meanings(name: str) -> list[str]:
    """The other possible meanings of a name, in words; homonyms come before metrics that only share the name."""
    found = _ranked(name)
    if not found:
        return []
    homonyms = [other for given, other in found[0].homonyms.items() if squeezed(given) == squeezed(name)]
    return [*homonyms, *map(_candidate, found[1:])]


@functools.cache
def _warn_of_other_meanings(name: str) -> None:
    """Warn of the other meanings of a name, the first time it is used."""
    others = other_meanings(name)
    if others:
        first = _ranked(name)[0]
        warn(f"{name!r} is {first.key!r} here ({first.title}); it may also mean {'; or '.join(others)}")


def _candidate(entry: Entry) -> str:
    carried = "" if entry.called is None else f" (with {entry.called.words})"
    return f"{entry.id!r}: {entry.meaning}{carried}"


#: The position of every function in the table of public names.
_PLACES = {name: place for place, name in enumerate(PUBLIC)}


def _place(entry: Entry) -> tuple[float, int]:
    """Position by the row in Table 2; then metrics without a row in the order of public names, then users' metrics."""
    row = math.inf if entry.row is None else entry.row
    return row, _PLACES.get(entry.declared.function, len(_PLACES))


_HEAD = ("row", "id", "family", "name", "range", "perfect")


class Catalogue(Mapping[str, Entry]):
    """Every metric by its short name: a read-only mapping that prints as a table.

    Look-up tries the exact id first, then any name or alias, ignoring case, dashes and underscores. A name that implies
    settings gives the metric with these settings. A name with several meanings gives the metric with that id, otherwise
    the metric with that full name, otherwise the first in Table 2, and a warning gives the other meanings once; an id
    in its exact spelling has one meaning and gives no warning.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.catalogue["Brier-Score"].id
    'bs'
    >>> cal.catalogue["RMSCE"].id, dict(cal.catalogue["RMSCE"].settings)
    ('ece', {'norm': 2})
    """

    def __getitem__(self, name: str) -> Entry:
        if name in ENTRIES:
            return ENTRIES[name]
        found = _ranked(str(name))
        if found:
            _warn_of_other_meanings(str(name))
            return found[0]
        curve = curve_named(str(name))
        if curve is not None:
            raise UnknownMetricError(str(curve))
        near = nearest_to(str(name))
        if near:
            raise UnknownMetricError(f"no metric is called {name!r}: {near}")
        names = [n for e in self.values() for n in _names(e)]
        near = suggest(name, names)
        if not near.startswith("did you mean"):
            near = "calibrary.catalogue (in a terminal: calibrary explain list) has all metrics"
        raise UnknownMetricError(f"no metric is called {name!r}: {near}")

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(ENTRIES, key=lambda id: _place(ENTRIES[id])))

    def __len__(self) -> int:
        return len(ENTRIES)

    def __contains__(self, name: object) -> bool:
        return name in ENTRIES or bool(_meanings(str(name)))

    def table2(self) -> ReviewTable:
        """The review's Table 2 in its columns and order, with our columns added."""
        return table2()

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (str(e.row or ""), e.id, e.family, e.name, f"[{e.range[0]:g}, {e.range[1]:g}]",
             "" if e.perfect is None else f"{e.perfect:g}")
            for e in self.values()
        ]  # fmt: skip

    def _repr_html_(self) -> str:
        return html_table(_HEAD, self._rows())

    def __repr__(self) -> str:
        return "\n".join(in_columns([_HEAD, *self._rows()]))


catalogue = Catalogue()


@PICTURES.append
def _detects(names: list[str]) -> Markup | None:
    """The errors that each number of a metric detects."""
    from calibrary.lookup.shapes import detects

    return detects(names)


def of_metric(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first argument, ``metric``, may also be passed as a keyword.

    If the first argument is given, ``metric=`` is an option of the metric, because a few metrics have an option of that
    name.
    """

    @functools.wraps(verb)
    def called(*given: Any, **options: Any) -> Any:
        if given:
            return verb(*given, **options)
        if "id" in options and "metric" not in options:
            deprecated(f"id= of {verb.__name__}", "metric=")
            options["metric"] = options.pop("id")
        if "metric" not in options:
            raise RefusedCallError(f"{verb.__name__} needs a metric: {verb.__name__}('ece', y_true, y_prob)")
        return verb(options.pop("metric"), **options)

    first, *others = inspect.signature(verb).parameters.values()
    shown = [first.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD), *others]
    called.__signature__ = inspect.signature(verb).replace(parameters=shown)  # type: ignore[attr-defined]
    return called


@takes_table
@of_metric
def compute(metric: str, /, y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute one metric by its short name or any alias.

    A name may imply settings: "RMSCE" is ece with ``norm=2``, "class-wise ECE" is ece with ``lens="class-wise"``. An
    option that contradicts the name raises an error. ``calibrary.catalogue[name].settings`` shows the settings that a
    name implies.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.compute("bs", [0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0467
    >>> cal.compute("RMSCE", [0, 1, 1], [0.2, 0.7, 0.9]) == cal.compute("ece", [0, 1, 1], [0.2, 0.7, 0.9], norm=2)
    True
    """
    return catalogue[metric](y_true, y_prob, **options)
