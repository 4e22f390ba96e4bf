"""The answer to the question, for people: headline, table, figures, in HTML, Markdown, JSON or CSV."""

from __future__ import annotations

from calibrary.reporting import html, stored, text, write  # each enters the forms it can give a report
from calibrary.reporting.compose import compare_models, report
from calibrary.reporting.model import ClassRow, GroupRow, Report

__all__ = [
    "ClassRow",
    "GroupRow",
    "Report",
    "compare_models",
    "report",
]
