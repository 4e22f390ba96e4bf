"""Metrics by name, the stored study's results for each metric, and recommendations of metrics for a question."""

from __future__ import annotations

from calibrary.lookup.by_name import Catalogue, catalogue, compute

__all__ = ["Catalogue", "catalogue", "compute"]
