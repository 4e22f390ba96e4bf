"""Names that people look up like metrics: of curves, and of what has something near to it; each leads to its call."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from calibrary.base.saved import typed
from calibrary.base.text import squeezed
from calibrary.metrics.machinery.cards import curves, nearest


@dataclass(frozen=True)
class Curve:
    """A curve with a name.

    Attributes
    ----------
    name, aliases : the name of the curve, and other names
    meaning : one line on what the curve shows
    figure, data : the functions that draw it and that give its points, as names in :mod:`calibrary`
    metrics : ids of the metrics that are areas, extremes or points of the curve
    """

    name: str
    aliases: tuple[str, ...]
    meaning: str
    figure: str
    data: str
    metrics: tuple[str, ...]

    def __str__(self) -> str:
        ids = " and ".join(repr(id) for id in self.metrics)
        return (
            f"{self.name} is a curve: calibrary.{self.figure}(y, p) draws it, calibrary.{self.data}(y, p) gives its "
            f"points; as a number see {ids}"
        )


@functools.cache
def known_curves() -> tuple[Curve, ...]:
    """Every curve with a name."""
    return tuple(Curve(**typed(Curve, written, "cards/curves.toml")) for written in curves())


def curve_named(name: str) -> Curve | None:
    """The curve with that name, ignoring case, dashes and spaces; None if there is none."""
    wanted = squeezed(name)
    return next((c for c in known_curves() if wanted in map(squeezed, (c.name, *c.aliases))), None)


def nearest_to(name: str) -> str:
    """What is nearest to a name that is no metric, in one sentence; empty text if the name is not known."""
    wanted = squeezed(name)
    found = (row["said"] for row in nearest() if wanted in map(squeezed, row["names"]))
    return " ".join(next(found, "").split())
