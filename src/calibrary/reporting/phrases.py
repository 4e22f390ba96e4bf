"""How numbers are said in the sentences of a page's sections."""

from __future__ import annotations

from calibrary.inference.overall.decision import pvalue_text
from calibrary.lookup import catalogue

#: Draws of a p-value that was not drawn.
_EXACT = 10**9


def percent(x: float) -> str:
    """Three digits: 7.25%, 43%."""
    return f"{100 * x:.3g}%"


def p_words(p: float, draws: int = _EXACT) -> str:
    """A p-value in words; where hardly a draw came near, a bound that they do support."""
    return pvalue_text(p, draws)


def metric_words(id: str, name: str) -> str:
    """What a metric is called in a sentence."""
    return (catalogue[id].spoken if id in catalogue else "") or name


def counted(n: float, noun: str, plural: str = "") -> str:
    """1 row, 2 rows, 1,000 rows."""
    return f"{n:,.0f} {noun if n == 1 else plural or noun + 's'}"


def whole_number(n: float) -> float:
    """A count as one, where it is one."""
    return int(n) if float(n).is_integer() else n
