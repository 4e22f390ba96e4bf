"""Metrics by their names, what the stored study found of each, and which one answers a question."""

from __future__ import annotations

from calibrary.lookup.by_name import Catalogue, catalogue, compute

__all__ = ["Catalogue", "catalogue", "compute"]
