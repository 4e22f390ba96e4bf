"""Names of metrics and counts in the sentences of a page's sections."""

from __future__ import annotations

from calibrary.lookup import catalogue


def metric_words(id: str, name: str) -> str:
    """The name of a metric in a sentence."""
    return (catalogue[id].spoken if id in catalogue else "") or name


def whole_number(n: float) -> float:
    """A count as an integer, if it is one."""
    return int(n) if float(n).is_integer() else n
