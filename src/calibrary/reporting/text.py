"""The report as text, Markdown and CSV; ``as_json`` is in ``stored``."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from calibrary.base.numbers import ends, number, pvalue_cell
from calibrary.base.text import for_csv
from calibrary.base.text import plain as shown_text
from calibrary.data.predictions import NEEDS_DETECTIONS
from calibrary.evaluation import Evaluation, Row
from calibrary.lookup import catalogue
from calibrary.reporting import compared
from calibrary.reporting.agreement import pvalue_of
from calibrary.reporting.compared import answer
from calibrary.reporting.model import Report, form
from calibrary.reporting.numbers import draws_of, if_calibrated
from calibrary.reporting.provenance import facts_words
from calibrary.reporting.sections import Section
from calibrary.reporting.stored import Comparisons as Comparisons
from calibrary.reporting.stored import as_json as as_json
from calibrary.reporting.words import verdict

#: Column headings of the table of every metric, shared by every format of the report.
HEAD = ("metric", "value", "interval", "if calibrated", "p adjusted", "ideal", "verdict", "name")
SHORT_HEAD = ("metric", "value", "interval", "if calibrated", "verdict")
#: The width of a column of words in plain text.
_WORDS_WIDE = 24

#: A heading, and the texts of each row.
TextTable = tuple[tuple[str, ...], list[tuple[str, ...]]]


# -- the table of every metric: grouped by what the numbers measure, with one row for numbers that are the same -----


#: The titles of the table's groups, in their order on the page, by the fact ``measures`` of the entries.
GROUPS = {
    "calibration": "Calibration error",
    "bias": "Bias: calibration on the whole",
    "calibration and sharpness": "Scores: calibration and sharpness together",
    "ranking": "Ranking: whether confident predictions are right",
    "fit": "Fit of a map",
    "consistency": "Consistency of repeated predictions",
}


@dataclass(frozen=True)
class Folded:
    """One row of the table and the labels of the other metrics with exactly the same number here."""

    row: Row
    same: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.row.label


def grouped(evaluation: Evaluation) -> dict[str, list[Folded]]:
    """The rows by what they measure, each number once; of equal numbers the metric chosen in advance is shown."""
    by_group: dict[str, list[Row]] = {title: [] for title in GROUPS.values()}
    for row in sorted(evaluation.rows, key=lambda row: not row.primary):
        by_group[GROUPS[catalogue[row.id].measures]].append(row)
    return {title: _folded(rows) for title, rows in by_group.items() if rows}


def left_out(evaluation: Evaluation) -> dict[str, list[str]]:
    """The metrics that were not computed, grouped by the reason."""
    by_reason: dict[str, list[str]] = {}
    for id, why in evaluation.skipped.items():
        # a reason for a function call, in words for the reader of a page
        reason = why.removeprefix(f"{id} ").replace(NEEDS_DETECTIONS, "is about the boxes of a detector")
        by_reason.setdefault(reason, []).append(id)
    return by_reason


def _folded(rows: list[Row]) -> list[Folded]:
    found: list[Folded] = []
    for row in rows:
        twin = next((i for i, f in enumerate(found) if _same(f.row, row)), None)
        if twin is None:
            found.append(Folded(row))
        else:
            found[twin] = Folded(found[twin].row, (*found[twin].same, row.label))
    return found


def _same(a: Row, b: Row) -> bool:
    """Whether they are the same number; not if it is exactly 0 or 1, where different metrics may agree by chance."""
    if a.id == b.id or not math.isfinite(a.value) or a.value in (0.0, 1.0, -1.0):
        return False
    return math.isclose(a.value, b.value, rel_tol=1e-12) and a.perfect == b.perfect and a.better == b.better


# -- cells, the same in every format ----------------------------------------------------------------


def short_cells(report: Report) -> list[tuple[str, ...]]:
    """The short list, in the order of SHORT_HEAD."""
    table = report.evaluation
    chance = [if_calibrated(k.expected_by_chance, k.calibrated_high, k.ideal, table) for k in report.short_list]
    return [
        (f"{k.title} ({k.label})", number(k.value), ends(k.low, k.high), usual, k.verdict)
        for k, usual in zip(report.short_list, chance, strict=True)
    ]


def row_cells(row: Row, evaluation: Evaluation) -> tuple[str, ...]:
    """One number of the big table, in the order of HEAD."""
    usual = if_calibrated(row.expected_by_chance, row.null_high, row.perfect, evaluation)
    tested = pvalue_cell(pvalue_of(row), draws_of(evaluation)), "" if row.perfect is None else f"{row.perfect:g}"
    return (row.label, number(row.value), ends(row.low, row.high), usual, *tested, verdict(row, evaluation), row.name)


def folded_cells(folded: Folded, evaluation: Evaluation) -> tuple[str, ...]:
    """The same for a row that represents several metrics with the same number."""
    texts = row_cells(folded.row, evaluation)
    return (*texts[:-1], texts[-1] + (f" (the same number: {', '.join(folded.same)})" if folded.same else ""))


def group_table(report: Report) -> TextTable:
    """The segments of a report that has no section about them."""
    head = ("group", "rows", "mean confidence", "observed", "error", "interval", "p adjusted", "note")
    return head, [
        (g.name, f"{g.n:,}", number(g.mean_confidence), number(g.frequency), number(g.value),
         ends(g.low, g.high), pvalue_cell(g.pvalue_adjusted, draws_of(report.evaluation)), g.note)
        for g in report.groups
    ]  # fmt: skip


def class_table(report: Report) -> TextTable:
    """The classes of a report that has no section about them."""
    return ("class", "cases", "mean prediction", "frequency", "ECE", "significant"), [
        (c.name, f"{c.n:,.0f}", *map(number, (c.mean_prediction, c.frequency, c.value)), "yes" if c.clear else "")
        for c in report.classes
    ]


def comparison_table(comparisons: Comparisons) -> TextTable:
    """Every comparison of two models; a metric has its name and its id."""
    rows = []
    for metric, c in comparisons:
        name = f"{catalogue[metric].name} ({metric})" if metric in catalogue else metric
        tested = (pvalue_cell(p, c.n_resamples or 10**6) for p in (c.pvalue, c.pvalue_adjusted))
        rows.append((name, c.a, c.b, number(c.value), ends(c.low, c.high), *tested))
    return ("metric", "model a", "model b", "a - b", "interval", "p", "p adjusted"), rows


def cell_text(value: Any) -> str:
    """A plain value of a section's table as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)


# -- text -------------------------------------------------------------------------------------------


@form("plain")
def plain(report: Report) -> str:
    """For the terminal and the notebook's plain output: the answer and the short list, 80 columns wide."""
    lines = [report.title, "=" * min(len(report.title), 80), *textwrap.wrap(facts_words(report.facts), 80), ""]
    lines += [*textwrap.wrap(report.headline, 80), ""]
    lines += [line for said in report.statements for line in _item(said)]
    lines += ["", *_columns(SHORT_HEAD, short_cells(report))]
    for section in report.sections:
        lines += ["", section.title, *(line for said in section.sentences for line in _item(said))]
    n = len(report.evaluation.rows)
    return "\n".join([*lines, "", f"{n} numbers in .evaluation; save('report.html') writes the page with figures."])


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; the first and the last column, which hold words, are wrapped."""
    most = [_WORDS_WIDE, *(None for _ in head[1:-1]), _WORDS_WIDE]
    folded = [[_wrapped(c, w) for c, w in zip(row, most, strict=True)] for row in [head, *rows]]
    widths = [max(len(line) for row in folded for line in row[j]) for j in range(len(head))]
    lines = [line for row in folded for line in zip_longest(*row, fillvalue="")]
    return ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]


def _wrapped(text: str, width: int | None) -> list[str]:
    return [text] if width is None else textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _item(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, 80, initial_indent="- ", subsequent_indent="  ")


# -- Markdown ---------------------------------------------------------------------------------------


def markdown(reports: Sequence[Report], comparisons: Comparisons = ()) -> str:
    """The report as Markdown, for a review or an issue."""
    parts: list[str] = []
    for report in reports:
        parts += [f"# {_md(report.title)}", *([_md(facts_words(report.facts))] if report.facts else [])]
        parts += [_md(report.headline), "\n".join(f"- {_md(f)}" for f in report.statements)]
        parts += ["## Key numbers", _md_table(SHORT_HEAD, short_cells(report))]
        for section in report.sections:
            parts += _md_section(section)
        if report.groups and not _has(report, "affected"):
            parts += ["## Groups", _md_table(*group_table(report))]
        if report.classes and not _has(report, "classes"):
            parts += ["## Classes", _md_table(*class_table(report))]
        parts.append("## Every metric")
        for title, rows in grouped(report.evaluation).items():
            parts += [f"### {title}", _md_table(HEAD, [folded_cells(f, report.evaluation) for f in rows])]
        if report.evaluation.skipped:
            named = left_out(report.evaluation).items()
            left = "\n".join(f"- {', '.join(f'`{_md(id)}`' for id in ids)}: {_md(why)}" for why, ids in named)
            parts += ["## Not computed", left]
        parts += ["## Data", "\n".join(f"- {_md(k)}: {_md(str(v))}" for k, v in report.data.items())]
        parts += ["## Settings", "\n".join(f"- {_md(k)}: {_md(str(v))}" for k, v in report.settings.items())]
        if report.notes:
            parts += ["## Notes", "\n".join(f"- {_md(n)}" for n in report.notes)]
    if len(reports) > 1:
        head, models = compared.plain_cells(reports, comparisons)
        said = "\n".join(f"- {_md(s)}" for s in answer(comparisons, reports[0].primary))
        parts = [f"# Calibration of {len(reports)} models", *([said] if said else []), _md_table(head, models), *parts]
    if comparisons:
        parts += ["## Comparison of models", _md_table(*comparison_table(comparisons))]
    return "\n\n".join(parts) + "\n"


def _has(report: Report, key: str) -> bool:
    return any(section.key == key for section in report.sections)


def _md_section(section: Section) -> list[str]:
    parts = [f"## {_md(section.title)}"]
    parts += ["\n".join(f"- {_md(s)}" for s in section.sentences)] if section.sentences else []
    for table in section.tables:
        parts += [_md(table.caption)] if table.caption else []
        parts.append(_md_table(table.head, [[cell_text(c) for c in row] for row in table.rows]))
    return parts


def _md(text: str) -> str:
    """Text in Markdown: no table, no element, no link and no picture comes of it."""
    shown = shown_text(text, None)
    for character in "\\|[":
        shown = shown.replace(character, f"\\{character}")
    return shown.replace("<", "&lt;")


def _md_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(map(_md, head)) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_md(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


# -- CSV --------------------------------------------------------------------------------------------


def as_csv(reports: Sequence[Report]) -> str:
    """One line per number, every column of the table, full precision."""
    out = io.StringIO()
    writer = csv.writer(out)
    fields = [k for k in reports[0].evaluation.rows[0].to_dict() if k != "range"]
    writer.writerow(["model", *fields, "range_low", "range_high"])
    for report in reports:
        for row in report.evaluation.rows:
            values = row.to_dict()
            low, high = values.pop("range")
            writer.writerow([_safe(report.title), *(_safe(values[k]) for k in fields), low, high])
    return out.getvalue()


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return for_csv(value)
    return "" if value is None else value
