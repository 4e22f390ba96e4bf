"""Several models side by side: the short list of each, differences from one of them, and all curves in one figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibrary.base.markup import Markup, element
from calibrary.base.numbers import ends, number, with_interval
from calibrary.evaluation import Row
from calibrary.inference import Comparison
from calibrary.reporting.compared import best_of, better_of, far, nearer, turned, values_of
from calibrary.reporting.model import Report
from calibrary.reporting.short import KeyNumber
from calibrary.reporting.stored import Comparisons

if TYPE_CHECKING:
    from calibrary.plots.axis import Axis

#: Points of a smooth curve; None where there are no predictions.
Curve: TypeAlias = Sequence[tuple[float, float | None]]
_SIDE, _LEFT, _BELOW = 300.0, 46.0, 40.0
_DASHES = ("", "7 4", "2 3")


@dataclass(frozen=True)
class Cell:
    """One number of one model, and whether it is significantly "better" or "worse" than the reference ("": neither)."""

    value: float
    text: str
    interval: str
    difference: str = ""
    mood: str = ""


def heads(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """The numbers in the columns: the short list of the first model, as (label, name)."""
    return [(k.label, k.title) for k in reports[0].short_list]


def cells(report: Report, reports: Sequence[Report], comparisons: Comparisons) -> list[Cell]:
    """The short list of one model in the columns of the first, each with its difference from the reference."""
    names = short_names(reports)
    here, reference = names[reports.index(report)], reference_of(comparisons)
    other, cells_ = dict(zip(names, reports, strict=True)).get(reference), []
    for id, _ in heads(reports):
        # the comparison of these two by this metric, as this model minus the reference
        both = (turned(c, here) for m, c in comparisons if m == id and {c.a, c.b} == {here, reference})
        cells_.append(_cell(report, other, id, next(both, None) if here != reference else None))
    return cells_


def reference_of(comparisons: Comparisons) -> str:
    """The model that is subtracted from each other model; empty without comparisons."""
    subtracted = {c.b for _, c in comparisons}
    if len(subtracted) <= 1:
        return next(iter(subtracted), "")
    metric = comparisons[0][0]
    return best_of(values_of([c for m, c in comparisons if m == metric]), metric)


def in_order(reports: Sequence[Report]) -> list[Report]:
    """The reports, the best model by the metric of the headline first."""
    primary = reports[0].primary
    named = {str(i): r.evaluation[primary] for i, r in enumerate(reports) if _number(r, primary) is not None}
    ranked = sorted(named, key=lambda i: far(named[i], primary))
    rest = [str(i) for i in range(len(reports)) if str(i) not in named]
    return [reports[int(i)] for i in (*ranked, *rest)]


def _number(report: Report, id: str) -> Row | KeyNumber | None:
    known = next((k for k in report.short_list if k.label == id), None)
    found = known or next((r for r in report.evaluation.rows if r.label == id), None)
    return None if found is None or math.isnan(found.value) else found


def _cell(report: Report, reference: Report | None, id: str, c: Comparison | None) -> Cell:
    found = _number(report, id)
    if found is None:
        return Cell(math.nan, "", "")
    shown = Cell(found.value, number(found.value), ends(found.low, found.high))
    if c is None:
        return shown
    said = f"{'+' if c.value > 0 else ''}{with_interval(c.value, c.low, c.high)}"
    other = None if reference is None else _number(reference, id)
    better = better_of(id, c) or nearer(id, c, found, other)
    mood = "" if not better else "better" if better == c.a else "worse"
    return Cell(shown.value, shown.text, shown.interval, said, mood)


def short_names(reports: Sequence[Report]) -> list[str]:
    """The titles without their common beginning: the models of one file are distinguished by their column."""
    titles = [r.title for r in reports]
    heads_ = {t.partition(": ")[0] for t in titles}
    same = len(heads_) == 1 and all(": " in t for t in titles)
    return [t.partition(": ")[2] for t in titles] if same else titles


def plain_cells(reports: Sequence[Report], comparisons: Comparisons) -> tuple[list[str], list[list[str]]]:
    """The same table as text: one row per model."""
    head = ["model", *(f"{name} ({id})" for id, name in heads(reports))]
    rows = []
    for name, report in zip(short_names(reports), reports, strict=True):
        rows.append([name])
        for c in cells(report, reports, comparisons):
            interval = f" ({c.interval})" if c.interval else ""
            rows[-1].append(c.text + interval + (f"; difference {c.difference}" if c.difference else ""))
    return head, rows


# -- the figure -------------------------------------------------------------------------------------


def overlay(reports: Sequence[Report]) -> Markup | None:
    """The smooth reliability curves of all models on one axis, as SVG in the page's colours; None without curves."""
    from calibrary.plots.axis import axis_names  # imports the drawing code, which a table does not need

    drawn = [(i, r) for i, r in enumerate(reports) if r.curve]
    if len(drawn) < 2:
        return None
    axis, names = shared_axis(reports), short_names(reports)
    ticks = [
        (
            element("text", text, x=f"{_x(place):.1f}", y=f"{_y(0) + 16:.1f}", text_anchor="middle"),
            element("text", text, x=f"{_LEFT - 8:.1f}", y=f"{_y(place) + 4:.1f}", text_anchor="end"),
        )
        for place, text in zip(axis.place(axis.ticks[0]), axis.ticks[1], strict=True)
    ]
    wide, high = _LEFT + _SIDE + 12, _SIDE + _BELOW + 12
    across, up = (name.lower() for name in axis_names(_lens(reports[0])))
    frame = element("path", class_="frame", d=f"M{_LEFT} {_y(1):g}V{_y(0):g}H{_x(1):g}")
    diagonal = element("path", class_="diagonal", d=f"M{_x(0):g} {_y(0):g}L{_x(1):g} {_y(1):g}")
    below = element("text", across, x=f"{_x(0.5):g}", y=f"{high - 4:g}", text_anchor="middle")
    beside = element("text", up, transform=f"translate(12 {_y(0.5):g}) rotate(-90)", text_anchor="middle")
    about = {"class_": "overlay", "viewBox": f"0 0 {wide:g} {high:g}", "role": "img"}
    curves = [_line(i, names[i], r, axis) for i, r in drawn]
    said = "Reliability of all models"
    return element("svg", frame, diagonal, ticks, below, beside, curves, **about, aria_label=said)


def shared_axis(reports: Sequence[Report]) -> Axis:
    """The axis of all curves, by the rule for several models in one figure."""
    from calibrary.plots.axis import in_log_odds, together

    curves = [r.curve for r in reports if r.curve]
    own = [_axis(curve) for curve in curves]
    return together([_axis(curve, log_odds=True) for curve in curves] if in_log_odds(own) else own)


def _axis(curve: Curve, log_odds: bool = False) -> Axis:
    """The axis on which the points of a curve are equally far apart, or log odds from the first point drawn on."""
    from calibrary.plots.axis import WHOLE, Axis

    at = np.array([x for x, _ in curve])
    if len(at) < 3 or not (np.diff(at) > 0.0).all() or at[0] < 0.0 or at[-1] > 1.0:
        return WHOLE
    if log_odds:
        shown = [x for x, y in curve if y is not None and 0.0 < x < 1.0] or [at[1], at[-2]]
        return Axis("log odds", float(shown[0]), float(shown[-1]))
    steps, half = np.diff(at), 0.5 / (len(at) - 1)
    kind = "zoomed" if np.ptp(steps) < 0.5 * steps.mean() else "log odds"
    low, high = Axis(kind, float(at[0]), float(at[-1])).at([-half, 1.0 + half]).clip(0.0, 1.0).tolist()
    return WHOLE if kind == "zoomed" and low < half and high > 1.0 - half else Axis(kind, low, high)


def _lens(report: Report) -> str:
    """The lens of a report, also of one that was read from JSON."""
    usual = "binary" if report.evaluation.n_classes == 2 else "top-label"
    decision = report.decision
    named = decision.get("lens") if isinstance(decision, Mapping) else getattr(decision, "lens", None)
    return str(named or usual)


def swatch(i: int) -> Markup:
    """The line of the i-th model in a legend."""
    line = element("path", **_stroke(i), d="M1 4H25")
    return element("svg", line, class_="swatch", viewBox="0 0 26 8", aria_hidden="true")


def _line(i: int, name: str, report: Report, axis: Axis) -> Markup:
    """A curve with gaps where there are no predictions."""
    path, pen = "", "M"
    for x, y in report.curve:
        if y is not None:
            path += f"{pen}{_x(float(axis.place(x))):.1f} {_y(float(axis.place(y))):.1f}"
        pen = "M" if y is None else "L"
    drawn = (element("path", class_="catch", d=path), element("path", **_stroke(i), d=path))
    return element("g", drawn, class_="tip curve", data_tip=name, data_curve=f"m{i}")


def _stroke(i: int) -> dict[str, object]:
    return {"style": f"stroke:var(--f-c{i % 8})", "stroke_dasharray": _DASHES[i // 8 % len(_DASHES)] or None}


def _x(place: float) -> float:
    return _LEFT + _SIDE * place


def _y(place: float) -> float:
    return 6.0 + _SIDE * (1.0 - place)
