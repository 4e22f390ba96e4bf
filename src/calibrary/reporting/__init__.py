"""Reports for people: headline, tables and figures, as HTML, Markdown, JSON or CSV."""

from __future__ import annotations

from calibrary.reporting import (  # each of these modules registers its sections or formats
    affected,
    decisions,
    help,
    html,
    other_data,
    period,
    provenance,
    stored,
    text,
    trials,
    validated,
    write,
)
from calibrary.reporting.compose import compare_models, report
from calibrary.reporting.model import ClassRow, GroupRow, Report
from calibrary.reporting.settings import ReportSettings

__all__ = ["ClassRow", "GroupRow", "Report", "ReportSettings", "compare_models", "report"]
