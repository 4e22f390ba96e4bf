"""The sections about a trial: performance over centres, and how many rows would halve the intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calibrary.base.numbers import number, percent, with_interval
from calibrary.base.text import capital
from calibrary.data.predictions import Predictions
from calibrary.inference.methods.scales import called
from calibrary.lookup import catalogue
from calibrary.reporting.sections import Context, Figure, Section, Table, section
from calibrary.trial.pooled import DEFAULT, CentreRow, Pooled, centres_of, pooled_data

#: The metrics with a forest plot, and the most centres that one shows.
_FORESTS, _MOST_CENTRES = ("oe", "cis.slope", "auroc"), 60
#: Numbers whose intervals shrink like 1/sqrt(rows).
_PRECISE = (("oe", ""), ("cis", "slope"), ("auroc", ""))


# -- centres -----------------------------------------------------------------------------------------


def over_centres(p: Predictions, centre: Any, level: float) -> Pooled | None:
    """The performance over centres, before anything that takes long: what cannot be pooled is refused at once."""
    return None if centre is None else pooled_data(p, centres_of(p, centre), list(DEFAULT), level=level)


@section("centres")
def centres(found: Pooled) -> Section:
    """Performance in each centre, its mean over centres, and the interval of a new one."""
    notes = tuple((row.metric, row.note) for row in found.table if row.note)
    first = replace(found, table=(replace(found.table[0], left_out=()),)).sentence
    sentences = [str(first), *found.said_of_left_out, *found.cautions]
    shown = len(found.names) <= _MOST_CENTRES
    if not shown:
        sentences.append(f"Forest plots show at most {_MOST_CENTRES} centres; the table has all {len(found.names)}.")
    head, cells = found.cells()
    tables = (
        Table(tuple(head), tuple(map(tuple, cells)), "Mean over centres, and the interval of the value in a new one"),
        _each(found),
        *([_without(found)] if found.leave_one_out else []),
        *([Table(("metric", "note"), notes, "Notes", folded=True)] if notes else []),
    )
    figures = (*(_forest(found, metric) for metric in _FORESTS if shown and metric in found.metrics), _curve(found))
    return Section("centres", "Centres", tuple(sentences), tables, figures, found.to_dict())


def _each(found: Pooled) -> Table:
    """One line for each centre, with all metrics."""
    by_name: dict[str, list[CentreRow]] = {}
    for row in found.centres:
        by_name.setdefault(row.centre, []).append(row)
    rows = []
    for name, its in by_name.items():
        values = [with_interval(row.value, row.low, row.high) if math.isfinite(row.value) else "" for row in its]
        why = "; ".join(dict.fromkeys(row.note for row in its if row.note))
        rows.append((name, its[0].n, its[0].events, number(its[0].expected), *values, why))
    head = ("centre", "rows", "events", "expected", *found.metrics, "note")
    return Table(head, tuple(rows), "Each centre", folded=True).without_empty("note")


def _without(found: Pooled) -> Table:
    """For each metric the centre whose omission changes the mean the most."""
    rows = []
    for whole in found.table:
        rest = [one for one in found.leave_one_out if one.metric == whole.metric]
        if rest:
            most = rest[int(np.argmax([abs(one.value - whole.value) for one in rest]))]
            values = with_interval(most.value, most.low, most.high)
            rows.append((whole.metric, with_interval(whole.value, whole.low, whole.high), most.left_out, values))
    head = ("metric", "mean", "without centre", "mean without it")
    return Table(head, tuple(rows), "The centre that changes each mean the most", folded=True)


def _forest(found: Pooled, metric: str) -> Figure:
    from calibrary.plots import plot_forest

    title = called(catalogue[metric]).removeprefix("the ")
    caption = (
        "Squares: the centres with their intervals, the area is the weight; text: events and rows. Diamond: the mean "
        "over centres. Bar: the interval of the true value in a new centre."
    )
    return Figure(f"{capital(title)} in each centre", caption, partial(plot_forest, found, metric, caption=False))


def _curve(found: Pooled) -> Figure:
    from calibrary.plots import plot_pooled_curve

    left = "".join(f" No curve: {name}, {why}." for name, why in found.curve.left_out)
    caption = (
        "Thin: the curve of each centre, by local lines on the log odds. Thick: their mean, pooled point by point by "
        f"random effects, with its band; the wide band is that of a new centre.{left}"
    )
    return Figure("Calibration curve over centres", caption, partial(plot_pooled_curve, found, caption=False))


# -- precision ---------------------------------------------------------------------------------------


@section("precision")
def precision(context: Context) -> Section | None:
    """The widths of the intervals that shrink like 1/sqrt(rows), and about how many rows would halve them."""
    if context.p.k != 2:
        return None
    rows = [row for row in context.evaluation.rows if (row.id, row.part or "") in _PRECISE]
    widths = {
        f"{row.id}.{row.part}" if row.part else row.id: row.high - row.low
        for row in rows
        if row.low is not None and row.high is not None and 0.0 < row.high - row.low < math.inf
    }
    if not widths:
        return None
    needed = 4 * context.p.n_predictions
    size = 10 ** max(0, math.floor(math.log10(needed)) - 1)  # two leading digits are enough
    needed = math.ceil(needed / size) * size
    shown = ", ".join(f"{number(width)} for {called(catalogue[name])}" for name, width in widths.items())
    said = (
        f"Width of the {percent(context.question.confidence_level)} interval: {shown}; half of it needs about "
        f"{needed:,} {context.data.nouns}."
    )
    return Section("precision", "Precision", (said,), data={"widths": widths, "rows_for_half": needed})
