"""How metrics and counts are written in the sentences of a page's sections."""

from __future__ import annotations

from calibrary.lookup import catalogue


def metric_words(id: str, name: str) -> str:
    """What a metric is called in a sentence."""
    return (catalogue[id].spoken if id in catalogue else "") or name


def whole_number(n: float) -> float:
    """A count as one, where it is one."""
    return int(n) if float(n).is_integer() else n
