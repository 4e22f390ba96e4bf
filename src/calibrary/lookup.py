"""The catalogue: every metric by its names, gathered from the metrics themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from calibrary._errors import UnknownMetricError, suggest
from calibrary.curves import curve_named
from calibrary.metrics.declare import ENTRIES, Entry

__all__ = [
    "Catalogue",
    "catalogue",
    "compute",
]


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("²", "2"))


def _names(entry: Entry) -> tuple[str, ...]:
    """Every name by which the metric is found, that of its function included."""
    return (entry.id, entry.name, *entry.aliases, entry.function.__name__)


class Catalogue(Mapping[str, Entry]):
    """Every metric by its short name: a read-only mapping that prints as a table.

    Look-up takes the exact id first, then any name or alias, whatever its case, dashes and underscores.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.catalogue["Brier-Score"].id
    'bs'
    """

    def __getitem__(self, name: str) -> Entry:
        if name in ENTRIES:
            return ENTRIES[name]
        wanted = _squeezed(str(name))
        found = [e for e in self.values() if wanted in map(_squeezed, _names(e))]
        if len(found) == 1:
            return found[0]
        if found:
            candidates = "; ".join(f"{e.id!r}: {e.meaning}" for e in found)
            raise UnknownMetricError(f"{name!r} may mean several metrics, use an id: {candidates}")
        curve = curve_named(str(name))
        if curve is not None:
            raise UnknownMetricError(str(curve))
        names = [n for e in self.values() for n in _names(e)]
        near = suggest(name, names)
        hint = near if near.startswith("did you mean") else "calibrary.catalogue lists them"
        raise UnknownMetricError(f"no metric is called {name!r}: {hint}")

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(ENTRIES, key=lambda i: (ENTRIES[i].row is None, ENTRIES[i].row or 0)))

    def __len__(self) -> int:
        return len(ENTRIES)

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except UnknownMetricError:
            return False
        return True

    def __repr__(self) -> str:
        rows = [
            (str(e.row or ""), e.id, e.family, e.name, f"[{e.range[0]:g}, {e.range[1]:g}]",
             "" if e.perfect is None else f"{e.perfect:g}")
            for e in self.values()
        ]  # fmt: skip
        head = ("row", "id", "family", "name", "range", "perfect")
        widths = [max(len(r[j]) for r in [head, *rows]) for j in range(len(head))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in [head, *rows]]
        return "\n".join(lines)


catalogue = Catalogue()


def compute(id: str, y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute one metric by its short name or any alias.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.compute("bs", [0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0467
    """
    return catalogue[id](y_true, y_prob, **options)
