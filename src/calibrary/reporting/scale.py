"""The small picture beside a number: where it lies between "calibrated" and "useless"."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrary.base.markup import Markup, element
from calibrary.base.numbers import number
from calibrary.lookup import catalogue
from calibrary.reporting.short import KeyNumber

_WIDTH, _HEIGHT, _LINE = 200.0, 30.0, 10.0
#: The width of a letter of the words below the line.
_LETTER = 4.9
#: Values further out than this (0 is calibrated, 1 useless) stand at the edge with an arrow.
_NEAREST, _FURTHEST = -1.0, 1.6


@dataclass(frozen=True)
class Scale:
    """A number line on which 0 is calibrated and 1 useless; if that is unknown, 1 is twice the largest value."""

    start: float
    unit: float
    known: bool
    left: float
    right: float

    def at(self, value: float) -> float:
        """Pixels from the left edge; larger values lie further to the right."""
        place = min(max((value - self.start) / self.unit, self.left), self.right)
        share = (place - self.left) / (self.right - self.left)
        return 6.0 + (_WIDTH - 12.0) * (share if self.unit > 0 else 1.0 - share)

    def outside(self, value: float) -> bool:
        return not self.left <= (value - self.start) / self.unit <= self.right


def scale_of(k: KeyNumber) -> Scale | None:
    """The axis below a key number, from the ideal value or a calibrated model's outwards; None if neither is known."""
    start = k.ideal if k.ideal is not None else k.calibrated
    if start is None or not math.isfinite(k.value):
        return None
    shown = [k.value, *(x for x in (k.low, k.high, k.calibrated_high) if x is not None and math.isfinite(x))]
    reach = max(abs(x - start) for x in shown)
    known = k.useless is not None and abs(k.useless - start) > max(0.2 * reach, 1e-12)
    unit = k.useless - start if known and k.useless is not None else 2.0 * reach or 1.0
    places = [(x - start) / unit for x in shown]
    left, right = max(min(0.0, *places), _NEAREST), min(max(1.0, *places), _FURTHEST)
    return Scale(start, unit, known, left - 0.04, right + 0.04)


def picture_of(k: KeyNumber) -> Markup | None:
    """The number line as inline SVG, in the page's colours, with the same in words as its title."""
    line = scale_of(k)
    if line is None:
        return None
    said = f"calibrated {number(line.start)}, " + (f"useless {number(k.useless)}, " if line.known else "")
    said += f"here {number(k.value)}"
    parts = [_level("track", "2", f"{_WIDTH - 2:g}"), _band(k, line), *_ticks(line)]
    if k.low is not None and k.high is not None and math.isfinite(k.low) and math.isfinite(k.high):
        x = sorted((line.at(k.low), line.at(k.high)))
        parts.append(_level("interval", f"{x[0]:.1f}", f"{x[1]:.1f}"))
    x0 = line.at(k.value)
    if line.outside(k.value):
        tip = 5.0 if x0 > _WIDTH / 2 else -5.0
        parts.append(element("path", class_="value", d=f"M{x0 + tip:.1f} {_LINE}l{-2 * tip:g} -5v10z"))
    else:
        parts.append(element("circle", class_="value", cx=f"{x0:.1f}", cy=_LINE, r="4.5"))
    shape = f"0 0 {_WIDTH:g} {_HEIGHT:g}"
    return element("svg", parts, class_="scale", viewBox=shape, role="img", aria_label=said)


def _level(kind: str, start: str, end: str) -> Markup:
    return element("line", class_=kind, x1=start, x2=end, y1=_LINE, y2=_LINE)


def _band(k: KeyNumber, line: Scale) -> Markup | None:
    """The range of most calibrated models: up to their 95% quantile, or as far to both sides for a signed number."""
    if k.calibrated_high is None or not math.isfinite(k.calibrated_high):
        return None
    signed = k.id in catalogue and catalogue[k.id].better == "perfect"
    middle = k.calibrated if k.calibrated is not None else line.start
    near = 2.0 * middle - k.calibrated_high if signed else (line.start if k.ideal is not None else middle)
    x = sorted((line.at(near), line.at(k.calibrated_high)))
    width = f"{max(x[1] - x[0], 1.5):.1f}"
    return element("rect", class_="chance", x=f"{x[0]:.1f}", y=_LINE - 6, width=width, height="12")


def _ticks(line: Scale) -> list[Markup]:
    """The two marks with their numbers; their words stay inside the picture and apart from each other."""
    marks = [(line.at(line.start), f"calibrated {number(line.start)}")]
    marks += [(line.at(line.start + line.unit), f"useless {number(line.start + line.unit)}")] if line.known else []
    marks.sort()
    wide = [_LETTER * len(text) for _, text in marks]
    starts = [min(max(x - w / 2.0, 0.0), _WIDTH - w) for (x, _), w in zip(marks, wide, strict=True)]
    if len(marks) == 2:  # the second gives way to the right, and where there is no room the first to the left
        starts[1] = min(max(starts[1], starts[0] + wide[0] + _LETTER), _WIDTH - wide[1])
        starts[0] = min(starts[0], starts[1] - wide[0] - _LETTER)
    found = []
    for (x, text), start in zip(marks, starts, strict=True):
        found.append(element("line", class_="tick", x1=f"{x:.1f}", x2=f"{x:.1f}", y1="3", y2="17"))
        found.append(element("text", text, x=f"{start:.1f}", y="27"))
    return found
