"""How a result is shown: a sentence, a small table and a picture in a notebook, one line in a terminal.

Draws are kept as attributes and never printed: a thousand of them say less than their mean and their range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from calibrary.base.markup import Markup, element, html_table, markup
from calibrary.base.numbers import EXACT, number, percent, pvalue, pvalue_cell

#: Rows of a table that a notebook shows.
_MOST_ROWS = 50
#: Numbers of an array that fit in a line.
_FEW = 6
#: Fields that hold draws.
_DRAWS = frozenset(("replicates", "null", "null_values", "values", "draws", "distribution", "null_distribution"))


def one_line(result: Any) -> str:
    """A result as one line: its fields, with long arrays by their size."""
    shown = (f"{f.name}={_short(getattr(result, f.name))}" for f in fields(result) if f.repr)
    return f"{type(result).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > _FEW:
        return f"[{' x '.join(map(str, value.shape))} numbers]"
    if isinstance(value, tuple | list | Mapping) and len(value) > _FEW and not hasattr(value, "_fields"):
        return f"[{len(value)} entries]"
    return " ".join(repr(value).split())


def in_notebook(result: Any) -> Markup:
    """A sentence where there is one, a picture of an estimate and of what chance gives, and a table without draws."""
    said = sentence(result)
    return markup(element("p", said) if said else None, picture(result), _table(result))


def sentence(result: Any) -> str:
    """What the result says: its own sentence, or that of an interval or of a test."""
    for name in ("sentence", "words"):
        own = getattr(result, name, None)
        if isinstance(own, str) and own:
            return own if own.endswith(".") else f"{own}."
    if _is_number(getattr(result, "estimate", None)) and _is_number(getattr(result, "low", None)):
        level = getattr(result, "confidence_level", math.nan)
        named = f"{percent(level)} interval" if _is_number(level) else "interval"
        return f"The estimate is {number(result.estimate)} ({named} {number(result.low)} to {number(result.high)})."
    if _is_number(getattr(result, "difference", None)) and _is_number(getattr(result, "pvalue", None)):
        ends = f"{percent(result.confidence_level)} interval {number(result.low)} to {number(result.high)}"
        p = pvalue(float(result.pvalue), getattr(result, "n_resamples", EXACT))
        return f"The difference is {number(result.difference)} ({ends}; {p})."
    if _is_number(getattr(result, "statistic", None)) and _is_number(getattr(result, "pvalue", None)):
        evidence = "There is evidence of miscalibration" if result.pvalue <= 0.05 else "No evidence of miscalibration"
        p = pvalue(float(result.pvalue), getattr(result, "n_resamples", EXACT))
        return f"{evidence} ({p}). The statistic is {number(float(result.statistic))}."
    draws = _draws(result)
    if draws is not None:
        low, high = _middle(draws)
        return (
            f"The mean of {len(draws):,} draws is {number(float(draws.mean()))}; 95% lie between "
            f"{number(low)} and {number(high)}."
        )
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(float(value))


# -- the table ---------------------------------------------------------------------------------------


def _table(result: Any) -> Markup:
    named = {f.name: getattr(result, f.name) for f in fields(result)}
    columns = {
        name: value for name, value in named.items()
        if isinstance(value, np.ndarray) and value.ndim == 1 and name not in _DRAWS
    }  # fmt: skip
    parts = named.get("parts", ())
    if columns and isinstance(parts, tuple) and {len(c) for c in columns.values()} == {len(parts)}:
        columns = {"parts": np.array(parts, dtype=object), **columns}
    left = {n: v for n, v in named.items() if n not in columns and n not in _DRAWS and n not in ("sentence", "words")}
    tables = [value for value in left.values() if _is_table(value)]
    cells = ((n, pvalue_cell(v) if n.endswith("pvalue") and _is_number(v) else _cell(v)) for n, v in left.items())
    rest = [(name, text) for name, text in cells if text]
    title = type(result).__name__
    if len(columns) < 2 or len({len(c) for c in columns.values()}) > 1:
        lines = rest + [(name, _cell(value)) for name, value in columns.items()]
        return markup(html_table(("", title), lines), [_of_columns(table) for table in tables])
    return markup(_of_columns(columns), html_table(("", title), rest) if rest else None)


def _of_columns(columns: Mapping[str, Any]) -> Markup:
    rows = [[_cell(x) for x in row] for row in zip(*columns.values(), strict=True)][:_MOST_ROWS]
    return html_table(list(columns), rows)


def _is_table(value: Any) -> bool:
    """Is it a mapping of columns of one length?"""
    if not isinstance(value, Mapping) or not value:
        return False
    return (
        all(isinstance(c, np.ndarray | tuple | list) for c in value.values())
        and len(set(map(len, value.values()))) == 1
    )


def _cell(value: Any) -> str:
    """A field in a table: numbers as people read them, long arrays by their size, nothing where there is nothing."""
    if isinstance(value, np.ndarray):
        if value.size <= _FEW and value.ndim == 1:
            return ", ".join(_cell(x) for x in value)
        return f"{' x '.join(map(str, value.shape))} numbers"
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else number(float(value))
    if isinstance(value, tuple | list) and len(value) > _FEW:
        return f"{len(value)} entries"
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        return "" if _is_table(value) else type(value).__name__
    if hasattr(value, "_asdict"):
        return ", ".join(f"{name} {_cell(v)}" for name, v in value._asdict().items() if _cell(v))
    return "" if value is None or (isinstance(value, tuple) and not value) else str(value)


# -- the picture -------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _EDGE = 360, 46, 30


def picture(result: Any) -> Markup | None:
    """A number line: the interval with its estimate, or the statistic beside what calibrated predictions give."""
    if _is_number(getattr(result, "estimate", None)) and _is_number(getattr(result, "low", None)):
        return _line(float(result.low), float(result.high), float(result.estimate), "interval and estimate")
    draws = _draws(result)
    if draws is None or not _is_number(getattr(result, "statistic", None)):
        return None if draws is None else _line(*_middle(draws), None, "95% of calibrated predictions")
    return _line(*_middle(draws), float(result.statistic), "grey: 95% of calibrated predictions; dot: these data")


def _draws(result: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    for f in fields(result):
        value = getattr(result, f.name)
        value = getattr(value, "values", value) if f.name in _DRAWS and not isinstance(value, np.ndarray) else value
        if f.name in _DRAWS and isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "f":
            kept = value[np.isfinite(value)]
            return kept if len(kept) > _FEW else None
    return None


def _middle(draws: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    low, high = np.quantile(draws, (0.025, 0.975))
    return float(low), float(high)


def _line(low: float, high: float, dot: float | None, said: str) -> Markup | None:
    """A bar from ``low`` to ``high``, a dot, and the ends in numbers."""
    known = [low, high] if dot is None else [low, high, dot]
    least, most = min(known), max(known)
    if not most > least:
        return None

    def at(x: float) -> str:
        return f"{_EDGE + (x - least) / (most - least) * (_WIDTH - 2 * _EDGE):.1f}"

    def text(x: float, y: int) -> Markup:
        return element("text", number(x), x=at(x), y=y, text_anchor="middle", font_size=11, fill="currentColor")

    ends = {"x1": at(low), "x2": at(high), "y1": 22, "y2": 22}
    bar = element("line", **ends, stroke="#8a94a3", stroke_width=6, stroke_linecap="round")
    point = None if dot is None else element("circle", cx=at(dot), cy=22, r=5, fill="#0b5fa5")
    above = None if dot is None else text(dot, 11)
    return element(
        "svg", element("title", said), bar, point, above, text(low, 42), text(high, 42),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", width=_WIDTH, height=_HEIGHT, role="img",
    )  # fmt: skip
