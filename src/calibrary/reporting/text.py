"""The report as text, Markdown, plain dictionaries and CSV."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from calibrary._text import for_csv
from calibrary.inference import Comparison
from calibrary.reporting.model import Report, form
from calibrary.reporting.words import verdict

#: Pairs of models: the metric and what comparing them by it gave.
Comparisons = Sequence[tuple[str, Comparison]]

#: Column heads of the metric table, shared by every form of the report.
HEAD = ("metric", "value", "interval", "p adjusted", "range", "ideal", "verdict", "name")


def number(value: float | None, digits: int = 4) -> str:
    """A number as a table shows it."""
    if value is None or math.isnan(value):
        return "" if value is None else "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits}f}"
    return f"{value:.3g}"


def pvalue(p: float | None) -> str:
    """A p-value as a table shows it."""
    if p is None or math.isnan(p):
        return ""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def ends(low: float | None, high: float | None) -> str:
    """An interval as a table shows it; nothing where there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"{number(low)} to {number(high)}"


def cells(report: Report) -> list[tuple[str, ...]]:
    """The metric table: one tuple of texts per row, in the order of HEAD."""
    return [
        (
            row.id + (f".{row.part}" if row.part else ""),
            number(row.value),
            ends(row.low, row.high),
            pvalue(row.pvalue if row.primary else row.pvalue_adjusted),
            f"{number(row.range[0], 2)} to {number(row.range[1], 2)}",
            "" if row.perfect is None else f"{row.perfect:g}",
            verdict(row),
            row.name,
        )
        for row in report.evaluation.rows
    ]


@form("plain")
def plain(report: Report) -> str:
    """For the terminal and the notebook's plain output."""
    lines = [report.title, "=" * len(report.title), "", *textwrap.wrap(report.headline, 100), ""]
    for finding in report.findings:
        lines += textwrap.wrap(finding, 100, initial_indent="- ", subsequent_indent="  ")
    return "\n".join([*lines, "", repr(report.evaluation)])


def markdown(reports: Sequence[Report], comparisons: Comparisons = ()) -> str:
    """For a review or an issue."""
    parts: list[str] = []
    for report in reports:
        parts += [f"# {_md(report.title)}", report.headline, "\n".join(f"- {_md(f)}" for f in report.findings)]
        if report.groups:
            parts += ["## Groups", _md_table(GROUP_HEAD, group_cells(report))]
        if report.classes:
            parts += ["## Classes", _md_table(CLASS_HEAD, class_cells(report))]
        parts += ["## Metrics", _md_table(HEAD, cells(report))]
        if report.evaluation.skipped:
            left = "\n".join(f"- `{id}`: {_md(why)}" for id, why in report.evaluation.skipped.items())
            parts += ["## Not computed", left]
        parts += ["## Data", "\n".join(f"- {k}: {_md(str(v))}" for k, v in report.data.items())]
        parts += ["## Settings", "\n".join(f"- {k}: {_md(str(v))}" for k, v in report.settings.items())]
    if comparisons:
        parts += ["## Comparison of models", _md_table(COMPARISON_HEAD, comparison_cells(comparisons))]
    return "\n\n".join(parts) + "\n"


GROUP_HEAD = ("group", "rows", "mean confidence", "observed", "value", "interval", "p adjusted", "note")
CLASS_HEAD = ("class", "cases", "mean prediction", "frequency", "ECE", "beyond chance")
COMPARISON_HEAD = ("metric", "model a", "model b", "a - b", "interval", "p", "p adjusted")


def group_cells(report: Report) -> list[tuple[str, ...]]:
    return [
        (g.name, f"{g.n:,}", number(g.mean_confidence), number(g.frequency), number(g.value),
         ends(g.low, g.high), pvalue(g.pvalue_adjusted), g.note)
        for g in report.groups
    ]  # fmt: skip


def class_cells(report: Report) -> list[tuple[str, ...]]:
    return [
        (
            c.name,
            f"{c.n:,.0f}",
            number(c.mean_prediction),
            number(c.frequency),
            number(c.value),
            "yes" if c.clear else "",
        )
        for c in report.classes
    ]


def comparison_cells(comparisons: Comparisons) -> list[tuple[str, ...]]:
    return [
        (metric, c.a, c.b, number(c.difference), ends(c.low, c.high), pvalue(c.pvalue),
         pvalue(c.pvalue_adjusted))
        for metric, c in comparisons
    ]  # fmt: skip


def _md(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _md_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_md(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


@form("dict")
def as_dict(report: Report) -> dict[str, Any]:
    """Everything but the figures and the raw predictions."""
    return {
        "title": report.title,
        "headline": report.headline,
        "findings": list(report.findings),
        "decision": None if report.decision is None else report.decision.to_dict(),
        "primary": report.primary,
        "data": report.data,
        "settings": report.settings,
        "evaluation": report.evaluation.to_dict(),
        "classes": [asdict(c) for c in report.classes],
        "groups": [asdict(g) for g in report.groups],
        "notes": list(report.notes),
    }


def as_json(reports: Sequence[Report], comparisons: Comparisons = ()) -> str:
    """JSON with full precision; NaN and infinities become null and strings, so that any reader takes it."""
    import json

    models = [as_dict(r) for r in reports]
    whole = models[0] if len(models) == 1 else {"models": models}
    if comparisons:
        whole = {**whole, "comparisons": [{"metric": m, **asdict(c)} for m, c in comparisons]}
    return json.dumps(_plain_numbers(whole), indent=2, default=str) + "\n"


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain_numbers(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_numbers(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def as_csv(reports: Sequence[Report]) -> str:
    """One line per number, every column of the table, full precision."""
    out = io.StringIO()
    writer = csv.writer(out)
    fields = [k for k in asdict(reports[0].evaluation.rows[0]) if k != "range"]
    writer.writerow(["model", *fields, "range_low", "range_high"])
    for report in reports:
        for row in report.evaluation.rows:
            values = asdict(row)
            low, high = values.pop("range")
            writer.writerow([_safe(report.title), *(_safe(values[k]) for k in fields), low, high])
    return out.getvalue()


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return for_csv(value)
    return "" if value is None else value
