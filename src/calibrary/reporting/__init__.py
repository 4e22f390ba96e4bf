"""The answer to the question, for people: headline, table, figures, in HTML, Markdown, JSON or CSV."""

from __future__ import annotations

from calibrary.reporting import (  # each enters the sections, or the forms, that it can give a report
    affected,
    decisions,
    ensembles,
    help,
    html,
    period,
    provenance,
    shifted,
    stored,
    text,
    tripod,
    write,
)
from calibrary.reporting.compose import compare_models, report
from calibrary.reporting.model import ClassRow, GroupRow, Report
from calibrary.reporting.settings import ReportSettings

__all__ = [
    "ClassRow",
    "GroupRow",
    "Report",
    "ReportSettings",
    "compare_models",
    "report",
]
