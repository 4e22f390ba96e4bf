"""The answer to the question, for people: headline, table, figures, in HTML, Markdown, JSON or CSV."""

from __future__ import annotations

from calibrary.reporting.answer import GroupRow, Report, compare_models, report

__all__ = [
    "GroupRow",
    "Report",
    "compare_models",
    "report",
]
