"""How a result is shown: a sentence, a small table and a picture in a notebook, one line in a terminal.

Draws are attributes of a result and are not printed; their mean and their range are shown instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.markup import Markup, element, html_table, markup
from calibrary.base.numbers import EXACT, number, percent, pvalue, pvalue_cell, with_interval

#: The largest number of rows of a table in a notebook.
_MOST_ROWS = 50
#: The largest number of entries of an array that are printed in one line.
_FEW = 6
#: The description of redrawn data whose labels are drawn from the predictions, without a calibration map.
CALIBRATED = "calibrated predictions"
#: The level of a test.
_LEVEL = 0.05
#: Columns of counts, which are arrays of floats because weights may be fractions.
_COUNTED = frozenset(("n", "count", "weight", "observed", "positives", "events"))
#: Fields that hold draws.
_DRAWS = frozenset(("replicates", "null", "null_values", "values", "draws", "distribution", "null_distribution"))


def one_line(result: Any) -> str:
    """A result as one line with all its fields; of a long array only the size is shown."""
    shown = (f"{f.name}={in_short(getattr(result, f.name))}" for f in fields(result) if f.repr)
    return f"{type(result).__name__}({', '.join(shown)})"


def in_short(value: Any) -> str:
    """A value on one line; of a long array the size."""
    if isinstance(value, np.ndarray) and value.size > _FEW:
        return f"[{' x '.join(map(str, value.shape))} numbers]"
    if isinstance(value, tuple | list | Mapping) and len(value) > _FEW and not hasattr(value, "_fields"):
        return f"[{len(value)} entries]"
    return " ".join(repr(value).split())


def in_notebook(result: Any) -> Markup:
    """The result for a notebook: its sentence, a picture, columns as a table, and its single fields folded.

    Draws are left out. A result without a sentence shows its fields at once.
    """
    said = sentence(result)
    columns, single = _tables(result)
    if said and single:
        single = element("details", element("summary", "All fields"), single)
    return markup(element("p", said) if said else None, picture(result), columns, single)


def sentence(result: Any) -> Sentence:
    """The result in words: its own sentence, or a sentence about its interval, difference, test or draws."""
    own = getattr(result, "sentence", "")
    if own:
        return Sentence.joined("", [own, "" if own.endswith(".") else "."])
    if not hasattr(result, "value_a") and _is_number(_named(result, "value", "estimate")) and hasattr(result, "high"):
        return estimate_sentence("estimate", result)
    if hasattr(result, "value_a") and _is_number(getattr(result, "pvalue", None)):
        p = pvalue(float(result.pvalue), getattr(result, "n_resamples", EXACT))
        a, b = getattr(result, "a", ""), getattr(result, "b", "")
        both = f"{a} {number(result.value_a)}, {b} {number(result.value_b)}; {a} minus {b}"
        of = both if a and b else "The difference"
        return Sentence.joined("", [difference_sentence(of, "difference", result, p), "."])
    if _is_number(getattr(result, "statistic", None)) and _is_number(getattr(result, "pvalue", None)):
        return _of_test(result)
    return _of_draws(_draws(result))


def estimate_sentence(name: str, result: Any) -> Sentence:
    """A sentence with an estimate and the interval of the true value."""
    estimate = float(_named(result, "value", "estimate"))
    said = f"The {name} is {number(estimate)}"
    value = measured(said, **{name: estimate})
    return Sentence.joined("", [value, *_interval(name, result), "."])


def difference_sentence(said: str, name: str, result: Any, p: str) -> Sentence:
    """A sentence with the difference of two models, its interval if it has one, and its p-value."""
    difference = _named(result, "value", "difference")
    value = measured(f"{said} is {number(difference)}", **{name: difference})
    return Sentence.joined("", [value, *_interval(name, result, f"; {p}")] if _has_ends(result) else [value, f" ({p})"])


def _interval(name: str, result: Any, more: str = "") -> list[str]:
    if not _has_ends(result):
        return []
    level, low, high = _named(result, "level", "confidence_level"), float(result.low), float(result.high)
    said = f" ({percent(level)} interval" if _is_number(level) else " (interval"
    return [Claim(f"{said} {number(low)} to {number(high)}{more})", "interval", metric=name, low=low, high=high)]


def _has_ends(result: Any) -> bool:
    return all(isinstance(end, int | float | np.number) and not math.isnan(end) for end in (result.low, result.high))


def _of_test(result: Any) -> Sentence:
    """The result of a test in words; if labels were drawn from a calibration map, the map is the tested hypothesis."""
    p, statistic = pvalue(float(result.pvalue), getattr(result, "n_resamples", EXACT)), float(result.statistic)
    value = measured(f" The statistic is {number(statistic)}.", statistic=statistic)
    of_map = getattr(result, "around", CALIBRATED) != CALIBRATED
    what = f"that the true probabilities are not those of {result.around}" if of_map else "of miscalibration"
    if result.pvalue > _LEVEL:
        return Sentence.joined("", [f"There is no evidence {what} ({p}).", value])
    words = getattr(result, "words", "") if hasattr(result, "log_e") else ""  # an e-value names its alternative
    fits = f"; the alternative that fits best: {words}" if words else ""
    found = Claim(f"There is evidence {what} ({p}{fits}).", "truth is not the map" if of_map else "miscalibrated")
    return Sentence.joined("", [found, value])


def _of_draws(draws: np.ndarray[Any, np.dtype[np.float64]] | None) -> Sentence:
    if draws is None:
        return Sentence("")
    mean, (low, high) = float(draws.mean()), _middle(draws)
    said = f"The mean of {len(draws):,} draws is {number(mean)}; 95% lie between {number(low)} and {number(high)}."
    return Sentence(said, measured(said, draws=len(draws), mean=mean, low=low, high=high))


def _named(result: Any, *names: str) -> Any:
    """The first of these fields that a result has, or None."""
    known = {f.name for f in fields(result)}
    return next((getattr(result, name) for name in names if name in known), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(float(value))


# -- the table ---------------------------------------------------------------------------------------


def _tables(result: Any) -> tuple[Markup | None, Markup | None]:
    """The columns of the result as a table, and its single fields as another."""
    named = {f.name: getattr(result, f.name) for f in fields(result)}
    columns = {
        name: value for name, value in named.items()
        if isinstance(value, np.ndarray) and value.ndim == 1 and name not in _DRAWS
    }  # fmt: skip
    parts = named.get("parts", ())
    if columns and isinstance(parts, tuple) and {len(c) for c in columns.values()} == {len(parts)}:
        columns = {"parts": np.array(parts, dtype=object), **columns}
    said = ("sentence", "words", "a", "b", "passed")  # a sentence, or another field, says them
    left = {n: v for n, v in named.items() if n not in columns and n not in _DRAWS and n not in said}
    tables = [value for value in map(_as_columns, left.values()) if _is_table(value)]
    cells = ((name, _named_cell(name, value)) for name, value in left.items() if not _is_table(_as_columns(value)))
    rest = [(name, text) for name, text in cells if text]
    title = type(result).__name__
    if len(columns) < 2 or len({len(c) for c in columns.values()}) > 1:
        lines = rest + [(name, _cell(value)) for name, value in columns.items()]
        return markup([_of_columns(table) for table in tables]) if tables else None, html_table(("", title), lines)
    return _of_columns(columns), html_table(("", title), rest) if rest else None


def _of_columns(columns: Mapping[str, Any]) -> Markup:
    rows = [
        [_named_cell(name, x) for name, x in zip(columns, row, strict=True)]
        for row in zip(*columns.values(), strict=True)
    ]
    return html_table(list(columns), rows[:_MOST_ROWS])


def _as_columns(value: Any) -> Any:
    """A tuple of records of one class as columns by name; any other value as it is."""
    if isinstance(value, tuple) and value and is_dataclass(value[0]) and len({type(each) for each in value}) == 1:
        return {f.name: [getattr(each, f.name) for each in value] for f in fields(value[0])}
    return value


def _named_cell(name: str, value: Any) -> str:
    """The text of a field by its name: p-values, levels and counts have formats of their own."""
    if not _is_number(value):
        return _cell(value)
    if name in ("pvalue", "pvalues") or (name.endswith(("_pvalue", "pvalue_adjusted")) and not name.startswith("log")):
        return pvalue_cell(float(value))
    if name in ("confidence_level", "level"):
        return percent(float(value))
    if (name in _COUNTED or name.startswith("n_")) and float(value).is_integer():
        return f"{float(value):,.0f}"
    return _cell(value)


def _is_table(value: Any) -> bool:
    """Whether the value is a mapping of columns of equal length."""
    if not isinstance(value, Mapping) or not value:
        return False
    return (
        all(isinstance(c, np.ndarray | tuple | list) for c in value.values())
        and len(set(map(len, value.values()))) == 1
    )


def _cell(value: Any) -> str:
    """The text of a field in a table: formatted numbers, the size of a long array, empty for None and NaN."""
    if isinstance(value, np.ndarray):
        if value.size <= _FEW and value.ndim == 1:
            return ", ".join(_cell(x) for x in value)
        return f"{' x '.join(map(str, value.shape))} numbers"
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else number(float(value))
    if isinstance(value, tuple | list) and len(value) > _FEW:
        return f"{len(value)} entries"
    if isinstance(value, tuple) and value and all(map(_is_number, value)) and not hasattr(value, "_asdict"):
        return ", ".join(_cell(x) for x in value)
    high = getattr(value, "high", None)
    if high is not None and is_dataclass(value) and _is_number(found := _named(value, "value", "estimate")):
        return with_interval(found, getattr(value, "low", math.nan), high)
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        return "" if _is_table(value) else type(value).__name__
    if hasattr(value, "_asdict"):
        return ", ".join(f"{name} {_cell(v)}" for name, v in value._asdict().items() if _cell(v))
    return "" if value is None or (isinstance(value, tuple) and not value) else str(value)


# -- the picture -------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _EDGE = 360, 62, 30


def picture(result: Any) -> Markup | None:
    """A number line with the interval and its estimate, or with the range of the draws and the statistic."""
    middle: Any = _named(result, "value", "estimate", "difference")
    if _is_number(middle) and all(_is_number(getattr(result, name, None)) for name in ("low", "high")):
        level = _named(result, "level", "confidence_level")
        dot = "difference" if hasattr(result, "value_a") else "estimate"
        title = f"grey bar: {percent(level) + ' ' if _is_number(level) else ''}interval; blue dot: {dot}"
        if hasattr(result, "around"):
            title = f"grey bar: {percent(level)} of values for {result.around}; blue dot: these data"
        return _line(float(result.low), float(result.high), float(middle), title)
    draws = _draws(result)
    if draws is None or not _is_number(getattr(result, "statistic", None)):
        return None if draws is None else _line(*_middle(draws), None, "grey bar: 95% of the draws")
    return _line(*_middle(draws), float(result.statistic), "grey bar: 95% of the draws; blue dot: these data")


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
    words = element("text", said, x=_WIDTH / 2, y=58, text_anchor="middle", font_size=11, fill="#667080")
    return element(
        "svg", element("title", said), bar, point, above, text(low, 42), text(high, 42), words,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", width=_WIDTH, height=_HEIGHT, role="img",
    )  # fmt: skip
