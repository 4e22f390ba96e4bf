"""Several models side by side: the short list of each, differences from the first, and all curves in one figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrary.base.markup import Markup, element
from calibrary.base.numbers import ends, number, with_interval
from calibrary.evaluation import Row
from calibrary.inference import Comparison
from calibrary.lookup import catalogue
from calibrary.reporting.model import Report
from calibrary.reporting.stored import Comparisons

_SIDE, _LEFT, _BELOW = 420.0, 46.0, 40.0
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
    """The short list of one model in the columns of the first, each with its difference from the first."""
    names = short_names(reports)
    here, reference = names[reports.index(report)], names[0]
    return [_cell(report, id, _compared(comparisons, id, here, reference)) for id, _ in heads(reports)]


def _cell(report: Report, id: str, compared: tuple[float, Comparison] | None) -> Cell:
    known = next((k for k in report.short_list if k.label == id), None)
    row: Row | None = next((r for r in report.evaluation.rows if r.label == id), None)
    found = known or row
    if found is None:
        return Cell(math.nan, "", "")
    shown = Cell(found.value, number(found.value), ends(found.low, found.high))
    if compared is None:
        return shown
    sign, c = compared
    low, high = sorted((sign * c.low, sign * c.high))
    said = f"{'+' if sign * c.difference > 0 else ''}{with_interval(sign * c.difference, low, high)}"
    by_chance = c.pvalue_adjusted > 1.0 - c.confidence_level
    return Cell(shown.value, shown.text, shown.interval, said, "" if by_chance else _mood(id, low, high))


def _mood(id: str, low: float, high: float) -> str:
    """Better or worse than the reference, if the interval of the difference excludes 0."""
    better = catalogue[id].better
    if better not in ("lower", "higher") or not (low > 0.0 or high < 0.0):
        return ""
    return "better" if (high < 0.0) == (better == "lower") else "worse"


def _compared(comparisons: Comparisons, id: str, here: str, reference: str) -> tuple[float, Comparison] | None:
    """The comparison of these two by this metric, and the sign that makes it "here minus reference"."""
    for metric, c in comparisons:
        if metric == id and {c.a, c.b} == {here, reference} and here != reference:
            return (1.0 if c.a == here else -1.0), c
    return None


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
        shown = [
            c.text
            + (f" ({c.interval})" if c.interval else "")
            + (f"; difference {c.difference}" if c.difference else "")
            for c in cells(report, reports, comparisons)
        ]
        rows.append([name, *shown])
    return head, rows


# -- the figure -------------------------------------------------------------------------------------


def overlay(reports: Sequence[Report]) -> Markup | None:
    """The smooth reliability curves of all models in one diagram, as SVG in the page's colours; None without curves."""
    drawn = [(i, r) for i, r in enumerate(reports) if r.curve]
    if len(drawn) < 2:
        return None
    names = short_names(reports)
    lines = [_line(i, names[i], r) for i, r in drawn]
    ticks = [
        (
            element("text", f"{t:g}", x=f"{_x(t):.1f}", y=f"{_y(0) + 16:.1f}", text_anchor="middle"),
            element("text", f"{t:g}", x=f"{_LEFT - 8:.1f}", y=f"{_y(t) + 4:.1f}", text_anchor="end"),
        )
        for t in (0, 0.2, 0.4, 0.6, 0.8, 1)
    ]
    wide, high = _LEFT + _SIDE + 12, _SIDE + _BELOW + 12
    from calibrary.plots.data import axis_names  # imports the drawing code, which a table does not need

    across, up = (name.lower() for name in axis_names(_lens(reports[0])))
    return element(
        "svg",
        element("path", class_="frame", d=f"M{_LEFT} {_y(1):g}V{_y(0):g}H{_x(1):g}"),
        element("path", class_="diagonal", d=f"M{_x(0):g} {_y(0):g}L{_x(1):g} {_y(1):g}"),
        ticks,
        element("text", across, x=f"{_x(0.5):g}", y=f"{high - 4:g}", text_anchor="middle"),
        element("text", up, transform=f"translate(12 {_y(0.5):g}) rotate(-90)", text_anchor="middle"),
        lines,
        class_="overlay",
        viewBox=f"0 0 {wide:g} {high:g}",
        role="img",
        aria_label="Reliability of all models",
    )


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


def _line(i: int, name: str, report: Report) -> Markup:
    """A curve with gaps where there are no predictions."""
    path, pen = "", "M"
    for x, y in report.curve:
        if y is None:
            pen = "M"
        else:
            path += f"{pen}{_x(x):.1f} {_y(min(max(y, 0.0), 1.0)):.1f}"
            pen = "L"
    drawn = (element("path", class_="catch", d=path), element("path", **_stroke(i), d=path))
    return element("g", drawn, class_="tip curve", data_tip=name, data_curve=f"m{i}")


def _stroke(i: int) -> dict[str, object]:
    return {"style": f"stroke:var(--f-c{i % 8})", "stroke_dasharray": _DASHES[i // 8 % len(_DASHES)] or None}


def _x(t: float) -> float:
    return _LEFT + _SIDE * t


def _y(t: float) -> float:
    return 6.0 + _SIDE * (1.0 - t)
