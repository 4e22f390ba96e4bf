"""Reports for people: headline, tables and figures, as HTML, Markdown, JSON or CSV."""

from __future__ import annotations

from calibrary.reporting import period, validated, write  # like those that they import, they register their sections
from calibrary.reporting.compose import compare_models, report
from calibrary.reporting.model import ClassRow, GroupRow, Report
from calibrary.reporting.settings import ReportSettings

__all__ = ["ClassRow", "GroupRow", "Report", "ReportSettings", "compare_models", "report"]
