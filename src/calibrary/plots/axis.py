"""The axis of a reliability diagram: all of 0 to 1, the part in which the predictions lie, or log odds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.numbers import percent
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.grouping import Groups, automatic_bins, group
from calibrary.grouping.edges import event_edges
from calibrary.plots import style

KINDS = ("probability", "zoomed", "log odds")
#: Log odds are for predictions of which this share lies within this distance of one end, and of which the odds of the
#: 95% quantile are this many times those of the 5% quantile.
_NEARLY_ALL, _NEAR_AN_END, _RATIO = 0.9, 0.1, 5.0
#: A part of [0, 1] is shown if it is at most this wide.
_NARROW = 0.4
#: The end of an axis of log odds.
_LEAST = 1e-6
_STEPS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_DECADES = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
_BETWEEN = tuple(sorted(p for d in (1e-4, 1e-3, 0.01, 0.1) for k in (1, 2, 5) for p in {k * d, 1.0 - k * d}))


class Axis(NamedTuple):
    """Both axes of a reliability diagram.

    Attributes
    ----------
    kind : "probability" (0 to 1), "zoomed" (a part of it) or "log odds"
    low, high : its ends, as probabilities
    """

    kind: str = "probability"
    low: float = 0.0
    high: float = 1.0

    @property
    def whole(self) -> bool:
        return self.kind == "probability"

    def _scaled(self, p: Any) -> Array:
        p = np.asarray(p, dtype=np.float64)
        return logit(p) if self.kind == "log odds" else p

    def place(self, p: Any) -> Array:
        """The place of probabilities on the axis, from 0 to 1."""
        low, high = self._scaled([self.low, self.high])
        return np.asarray(np.clip((self._scaled(p) - low) / (high - low), 0.0, 1.0))

    def at(self, place: Any) -> Array:
        """The probabilities at these places."""
        low, high = self._scaled([self.low, self.high])
        found = low + np.asarray(place, dtype=np.float64) * (high - low)
        return expit(found) if self.kind == "log odds" else np.asarray(found)

    def near(self, p: Any) -> Array:
        """Probabilities that can be drawn: on log odds none is 0 or 1, and a line leaves the picture all the same."""
        least, most = (self.low / 3.0, 1.0 - (1.0 - self.high) / 3.0) if self.kind == "log odds" else (-np.inf, np.inf)
        return np.asarray(np.clip(np.asarray(p, dtype=np.float64), least, most))

    def grid(self, points: int) -> Array:
        """So many probabilities that are equally far apart on the axis."""
        return self.at((np.arange(points) + 0.5) / points)

    def histogram(self, c: Array, w: Array) -> Array:
        """The share of the predictions in 40 equal parts of the axis."""
        return np.asarray(np.histogram(self.place(c), bins=40, range=(0.0, 1.0), weights=w)[0] / w.sum())

    @property
    def ticks(self) -> tuple[Array, list[str]]:
        """Probabilities that people read, and how they are written."""
        if self.whole:
            return np.arange(6) / 5, [f"{k / 5:.1f}" for k in range(6)]
        if self.kind == "zoomed":
            step = next(s for s in _STEPS if 7.5 * s >= self.high - self.low)
            at = np.arange(np.ceil(self.low / step - 1e-6), self.high / step + 1e-6) * step + 0.0  # no -0
        else:
            inside = [[p for p in some if self.low <= p <= self.high] for some in (_DECADES, _BETWEEN)]
            at = np.array(inside[0] if len(inside[0]) >= 3 else apart(inside[1], self))
        return at, [percent(p) for p in at]

    @property
    def said(self) -> str:
        """The axis in a caption."""
        if self.whole:
            return ""
        drawn = f"drawn from {percent(rounded(self.low))} to {percent(rounded(self.high))}"
        return f"axes {drawn}" if self.kind == "zoomed" else f"log-odds axes, {drawn}"


#: All of 0 to 1.
WHOLE = Axis()


def logit(p: Array) -> Array:
    """Log odds, finite for 0 and 1 too."""
    inside = np.clip(p, 1e-9, 1.0 - 1e-9)
    return np.asarray(np.log(inside / (1.0 - inside)))


def expit(x: Array) -> Array:
    """The probability of these log odds."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def rounded(p: float) -> float:
    """A probability with two digits of its distance from 0 or 1."""
    return 1.0 - float(f"{1.0 - p:.2g}") if p > 0.5 else float(f"{p:.2g}")


def apart(ticks: list[float], axis: Axis, room: float = 0.12) -> list[float]:
    """The ticks whose labels do not overlap: they have ``room``, a part of the axis."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or axis.place(tick) - axis.place(kept[-1]) > room:
            kept.append(tick)
    return kept


# -- the rules ----------------------------------------------------------------------------------------


def axis_of(view: Predictions, axis: Any = "auto") -> Axis:
    """The axis on which a view is drawn.

    Log odds where at least 90% of the predictions lie within 0.1 of one end and their odds differ much; a part of
    [0, 1] where nearly all predictions and outcomes lie in one that is narrow; else all of it. The outcomes decide
    where a part ends, not which kind of axis it is.

    Parameters
    ----------
    view : Predictions
    axis : "auto", "probability", "zoomed", "log odds", or the two ends of a part
    """
    if isinstance(axis, Axis):
        return axis
    if not isinstance(axis, str):
        return _between(axis)
    one_of("axis", axis, ("auto", *KINDS))
    if axis == "probability":
        return Axis()
    ties = view.ties
    share = np.cumsum(ties.w) / view.total
    low, some, many, high = ties.c[np.searchsorted(share, [0.005, 0.05, 0.95, 0.995]).clip(max=len(share) - 1)]
    bins = event_bins(view)
    below, above = _limits(bins)
    if axis == "log odds" or (axis == "auto" and _in_a_corner(view, some, many)):
        start, end = logit(np.array([min(low, below.min()), max(high, above.max())]))
        ends = expit(np.array([start - 0.3, end + 0.3])).clip(_LEAST, 1.0 - _LEAST)
        return Axis("log odds", float(ends[0]), float(ends[1]))
    if max(high, bins.label.max()) - min(low, bins.label.min()) > _NARROW:
        return Axis()
    low, high = min(low, below.min()), max(high, above.max())
    step = next(s for s in _STEPS if 6.0 * s >= 1.1 * (high - low))
    start, end = max(np.floor(low / step - 0.3) * step, 0.0), min(np.ceil(high / step + 0.3) * step, 1.0)
    return Axis("zoomed", round(float(start), 5), round(float(end), 5))


def _limits(bins: Groups) -> tuple[Array, Array]:
    """About where the intervals of the bins end (Agresti and Coull's), and never at 0 or 1."""
    n = bins.weight + 4.0
    middle = (bins.label * bins.weight + 2.0) / n
    half = 2.0 * np.sqrt(middle * (1.0 - middle) / n)
    return np.maximum(middle - half, middle / 4.0), np.minimum(middle + half, 1.0 - (1.0 - middle) / 4.0)


def together(axes: Iterable[Axis]) -> Axis:
    """One axis for several figures: what all of them show, and all of 0 to 1 if they differ in kind."""
    kinds, low, high = zip(*axes, strict=True)
    return Axis(kinds[0], min(low), max(high)) if len(set(kinds)) == 1 else Axis()


def in_log_odds(axes: Iterable[Axis]) -> bool:
    """Whether figures that differ in kind share log odds, because one of them would be in a corner of 0 to 1."""
    kinds = {axis.kind for axis in axes}
    return len(kinds) > 1 and "log odds" in kinds


def _between(ends: Any) -> Axis:
    pair = as_floats(ends, "axis")
    low, high = pair if pair.shape == (2,) else (1.0, 0.0)
    if not 0.0 <= low < high <= 1.0:
        raise RefusedError(f"axis={ends!r} is not a part of 0 to 1: pass two increasing probabilities, or 'log odds'")
    return Axis("zoomed", float(low), float(high))


def _in_a_corner(view: Predictions, some: float, many: float) -> bool:
    near = max(float(view.mean(view.c <= _NEAR_AN_END)), float(view.mean(view.c >= 1.0 - _NEAR_AN_END)))
    apart = float(np.diff(logit(np.array([some, many])))[0])
    return near >= _NEARLY_ALL and apart >= np.log(_RATIO)


def part_of(values: Array) -> Axis:
    """From the nearer end of 0 to 1 to the last of these probabilities, if that is a narrow part; else all of it."""
    low, high = float(values.min(initial=1.0)), float(values.max(initial=0.0))
    if high <= _NARROW:
        return Axis("zoomed", 0.0, high) if high > 0.0 else WHOLE
    return Axis("zoomed", low, 1.0) if 1.0 - low <= _NARROW and low < 1.0 else WHOLE


def event_bins(view: Predictions, n_bins: int | None = None) -> Groups:
    """Bins with equally many expected events (or non-events, where those are rare)."""
    return group(view, edges=event_edges(view, n_bins or automatic_bins(view.c, view.w)))


# -- words ------------------------------------------------------------------------------------------


def axis_names(lens: str) -> tuple[str, str]:
    """The axis labels of a reliability diagram for a lens."""
    if lens in ("binary", "pairwise", "code", "pooled"):
        return "Predicted probability", "Observed frequency"
    return "Confidence", "Precision" if lens == "detections" else "Accuracy"


def direction(lens: str, more: str) -> str:
    """The meaning of points on one side of the diagonal ("Above" or "Below")."""
    often = {"Above": "more", "Below": "less"}[more]
    if axis_names(lens)[0] == "Confidence":
        return f"{more} the diagonal: right {often} often than the confidence says."
    return f"{more} the diagonal: the event is {often} frequent than predicted."


# -- drawing ------------------------------------------------------------------------------------------


def square(ax: Any, colors: style.Palette, axis: Axis, x: str, y: str) -> None:
    """Equal axes with the dashed diagonal of perfect calibration."""
    style.unit_square(ax, colors, x, y)
    if not axis.whole:
        along(ax, axis, "xy")


def along(ax: Any, axis: Axis, sides: str = "x") -> None:
    """The sides of a diagram that are on this axis."""
    labels = _labels(ax, axis)  # before the limits change the size of a square
    room = 0.0 if axis.kind == "log odds" else 0.02 * (axis.high - axis.low)
    for side in sides:
        if axis.kind == "log odds":
            getattr(ax, f"set_{side}scale")("logit", nonpositive="clip")
        getattr(ax, f"set_{side}lim")(axis.low - room, axis.high + room)
        getattr(ax, f"set_{side}ticks")(*labels)
    ax.minorticks_off()


def _labels(ax: Any, axis: Axis) -> tuple[list[float], list[str]]:
    """The ticks whose labels have room on these axes, those nearest to one half first."""
    width = float(ax.get_position().width * ax.figure.get_figure(root=True).get_size_inches()[0])
    kept: dict[float, str] = {}
    for p, text in sorted(zip(*axis.ticks, strict=True), key=lambda tick: abs(tick[0] - 0.5)):
        if all(
            abs(axis.place(p) - axis.place(q)) * width > 0.04 * (len(text) + len(other)) + 0.08
            for q, other in kept.items()
        ):
            kept[float(p)] = text
    at = sorted(kept)
    return at, [kept[p] for p in at]


def strip_of(ax: Any, axis: Axis) -> Any:
    """Bare axes above a diagram in places of its axis, from 0 to 1."""
    inset = style.strip(ax)
    room = 0.0 if axis.kind == "log odds" else 0.02
    inset.set_xlim(-room, 1.0 + room)
    return inset
