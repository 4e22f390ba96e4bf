"""Second-order predictions: ensembles, dropout, posterior draws, and rows that belong to no class."""

from __future__ import annotations

__all__: list[str] = []


def __dir__() -> list[str]:
    return sorted(__all__)
