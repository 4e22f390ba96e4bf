"""Parts of the data one by one: a segment or a period, with the page's primary metric, its interval and its p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.base.numbers import ends, known, number, pvalue, pvalue_cell
from calibrary.data.checks import Indices
from calibrary.data.sample import sample_of
from calibrary.evaluation import Row, evaluate_data
from calibrary.inference import adjust_pvalues
from calibrary.inference.draw.cells import takes_cells
from calibrary.inference.draw.look import headline_view
from calibrary.inference.draw.null import MonteCarlo
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.draw.statistic import as_statistic
from calibrary.inference.methods.choice import choice_of
from calibrary.inference.methods.drawn import interval_of
from calibrary.inference.result import Estimate
from calibrary.lookup import catalogue
from calibrary.numerics.runs import run_starts
from calibrary.question import Question
from calibrary.reporting.numbers import whole_number
from calibrary.reporting.sections import Context

#: For parts with fewer rows only the size is given, and nothing is computed.
LEAST_ROWS = 30
#: Up to this many rows a part's interval is by test inversion like the page's; above, a faster method is nearly equal.
_INVERTED_ROWS = 5_000
#: The largest number of labels drawn for one test of rows that cannot be merged into cells.
_MOST_LABELS = 200_000_000
#: The fields of a subgroup in a saved report.
GROUP_FIELDS = (
    "name", "n", "mean_confidence", "frequency", "value", "low", "high", "pvalue", "pvalue_adjusted", "note",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GroupRow(Estimate):
    """The page's primary metric in one subgroup: its size, mean confidence and observed frequency.

    ``pvalue_adjusted`` allows for the number of groups (Holm). NaN where there is none, and then ``note`` says why.
    """

    name: str
    n: float
    mean_confidence: float = math.nan
    frequency: float = math.nan
    pvalue_adjusted: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """The fields in a saved report; the level is that of the page."""
        return {name: getattr(self, name) for name in GROUP_FIELDS}


@dataclass(frozen=True, kw_only=True)
class Part(GroupRow):
    """One part: a segment or a period.

    A calibrated model exceeds ``null_high`` in 5% of samples, and ``alpha`` is the level of the page.
    """

    null_high: float = math.nan
    n_resamples: int = 0
    alpha: float = 0.05

    def to_dict(self) -> dict[str, Any]:
        """The fields in a saved report, where two have the names of earlier versions."""
        chance = {"null_mean": self.expected_by_chance, "null_high": self.null_high, "draws": self.n_resamples}
        return {**super().to_dict(), **chance}

    @property
    def measured(self) -> bool:
        """Whether the metric was computed."""
        return not math.isnan(self.value)

    @property
    def cells(self) -> tuple[Any, ...]:
        """The first cells of its row in a table: name, rows, mean confidence, frequency, value and interval."""
        shown = map(known, (self.mean_confidence, self.frequency, self.value))
        return self.name, whole_number(self.n), *shown, ends(self.low, self.high)

    @property
    def p_words(self) -> str:
        """The adjusted p-value in a sentence; a bound if no draw was as extreme. Empty if there is none."""
        return "" if math.isnan(self.pvalue_adjusted) else pvalue(self.pvalue_adjusted, at_most=self._no_draw_beyond)

    @property
    def p_cell(self) -> str:
        """The adjusted p-value in a table."""
        return pvalue_cell(self.pvalue_adjusted, at_most=self._no_draw_beyond)

    @property
    def _no_draw_beyond(self) -> bool:
        return bool(self.pvalue <= (1.0 + 1e-9) / (self.n_resamples + 1.0))

    @property
    def clear(self) -> bool:
        """Whether it is significantly miscalibrated, adjusted for the number of parts."""
        return self.pvalue_adjusted < self.alpha


def each_part(context: Context, parts: Sequence[tuple[str, Any]], metric: Row, among: int = 0) -> list[Part]:
    """Every part with the page's metric; p-values are adjusted for the number of parts.

    Parts that were selected by their error from more (``among``) are adjusted for all of these.
    """
    # a few units of a part say little: its rows are drawn one by one, and units_words says so
    sized = [(name, part.one_by_one(), part.total) for name, part in parts]
    enough = sum(n >= LEAST_ROWS for _, _, n in sized)
    # enough draws that the smallest p-value, multiplied by the number of parts, can be significant
    draws = max(context.draws, 100 * enough - 1) if context.draws else 0
    found = [_part(name, part, n, metric.id, context, draws) for name, part, n in sized]
    raw = np.array([part.pvalue for part in found])
    adjusted = np.full(len(found), math.nan)
    tested = ~np.isnan(raw)
    if tested.any():
        adjusted[tested] = (
            np.minimum(raw[tested] * among, 1.0) if among > len(found) else adjust_pvalues(raw[tested], "holm")
        )
    alpha = alpha_of(context.question.confidence_level)
    return [replace(part, pvalue_adjusted=float(a), alpha=alpha) for part, a in zip(found, adjusted, strict=True)]


def part_words(part: Part, metric: str) -> Sentence:
    """A significantly miscalibrated part, with its number."""
    said = f"{part.name} ({metric} {number(part.value)}, {part.p_words})"
    return Sentence(
        said, Claim(said, "part is miscalibrated", part=part.name), measured(said, **{part.name: part.value})
    )


def units_words(context: Context) -> tuple[str, ...]:
    """A caution if rows belong to units, because the tests of parts ignore units."""
    if context.data.one_by_one().units is not None:
        return (
            "Images, with all their "
            f"{context.data.nouns}, are resampled for intervals and for tests of single parts; the worst-segment test "
            "and the alarm treat them as independent, so that their p-values may be too small.",
        )
    if not context.data.in_groups:
        return (
            "Rows are assumed to be independent, here and on the whole page. If several rows belong to one patient, "
            "image or prompt, name that column as the unit.",
        )
    return (
        "Rows are assumed to be independent here, although some belong to the same unit: these intervals may be too "
        "narrow, and p-values too small.",
    )


def _part(name: str, part: Any, n: float, id: str, context: Context, draws: int) -> Part:
    if n < LEAST_ROWS:
        return Part(math.nan, name=name, n=n, note=f"too few (at least {LEAST_ROWS})")
    question = context.question.of(catalogue[id].options)
    view, _ = headline_view(part.read_as("predictions", "a report"), question)
    stated, happened = float(view.mean(view.c)), float(view.mean(view.y))
    inverted = context.draws > 0 and view.n <= _INVERTED_ROWS
    result = evaluate_data(part, question, metrics=[id], intervals=inverted, primary=id)
    if not result.rows:
        why = next(iter(result.skipped.values()))
        return Part(math.nan, name=name, n=n, mean_confidence=stated, frequency=happened, note=why)
    row = result.rows[0]
    low, high = (math.nan if end is None else end for end in row)
    if draws and not inverted and not row.part:
        low, high = _quick_interval(part, id, question)
    made = Part(row.value, low, high, name=name, n=n, mean_confidence=stated, frequency=happened, note=row.note)
    return _tested(made, part, id, question, draws, view.n) if draws and not row.part else made


def _quick_interval(part: Any, id: str, question: Question) -> tuple[float, float]:
    """The interval of a large part: inverted where it can be read from cells, since by rows that would take seconds."""
    with collected_warnings():
        statistic = as_statistic(catalogue[id], sample_of(part, question.weight_type), question)
        choice = choice_of(statistic)
        if choice.method == "inversion" and choice.statistic.sample.p.n > _INVERTED_ROWS and not takes_cells(statistic):
            choice = replace(choice, method="triangle")
        found = interval_of(statistic, choice, question, question.confidence_level, clip=True)
    return float(found.low), float(found.high)


def _tested(made: Part, part: Any, id: str, question: Question, draws: int, n: int) -> Part:
    try:
        with collected_warnings():
            statistic = as_statistic(catalogue[id], sample_of(part, question.weight_type), question)
            if not takes_cells(statistic):  # cells cost the same whatever the rows
                draws = min(draws, max(_MOST_LABELS // n, 19))
            test = MonteCarlo(n_resamples=draws, rng=question.rng).test(catalogue[id], part, question)
    except RefusedError as error:  # labels that cannot be drawn: shares, weights that are no counts
        return replace(made, note=made.note or f"no test: {error}")
    high = float(test.null.quantile(0.95))
    return replace(
        made, pvalue=float(test.pvalue), expected_by_chance=float(test.expected_by_chance), null_high=high,
        n_resamples=test.n_resamples,
    )  # fmt: skip


def split(context: Context, number: Indices) -> list[tuple[int, Any]]:
    """The data split by a number for each row (or image); rows with a negative number are left out."""
    order = np.argsort(number, kind="stable")
    order = order[int((number < 0).sum()) :]
    first = run_starts(number[order])
    return [(int(number[rows[0]]), context.data.part(rows)) for rows in np.split(order, first[1:]) if len(rows)]
