"""How a number is written, wherever the library writes one for people: sentences, tables, captions, figures."""

from __future__ import annotations

import math


def number(value: float | None) -> str:
    """Three decimals, or two digits below 0.01, so that 0.0086 beside 0.152 claims no more; fewer from 100 on."""
    if value is None:
        return ""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = 0.0 if abs(value) < 1e-12 else abs(value)  # rounding
    if size == 0.0:
        return "0"
    if size < 0.00995:
        return f"{value:.{1 - math.floor(math.log10(size))}f}".rstrip("0") if size >= 1e-6 else f"{value:.1e}"
    if size >= 1e7:  # an e-value may have a hundred digits
        return f"{value:.1e}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 100 else f"{value:.3f}"
