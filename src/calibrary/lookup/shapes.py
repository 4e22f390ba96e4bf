"""The shapes of error in the study, and which of them a metric detects: in words and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from calibrary.base.markup import Markup, element, markup
from calibrary.data.checks import Array
from calibrary.lookup.study_findings import stored

Truth: TypeAlias = Callable[[Array], Array]

# -- the true probability where the model states c -------------------------------------------------------


def _on_the_logit(change: Truth) -> Truth:
    def truth(c: Array) -> Array:
        from scipy.special import expit, logit

        return np.asarray(expit(change(np.asarray(logit(c)))))

    return truth


def temperature(slope: float) -> Truth:
    """expit(slope x logit c): below 1 the model is over-confident, above 1 under-confident."""
    return _on_the_logit(lambda x: slope * x)


def shift(by: float) -> Truth:
    """expit(logit c + by): predictions are too low where ``by`` is positive."""
    return _on_the_logit(lambda x: x + by)


def wave(periods: int) -> Truth:
    """Predictions that are too low and too high in turn, by at most 0.08."""
    return lambda c: c + 0.08 * np.sin(2.0 * np.pi * periods * c)


def steps(c: Array) -> Array:
    """One frequency in each fifth of the stated probabilities."""
    return (np.minimum(np.floor(5.0 * c), 4.0) + 0.5) / 5.0


def beta(c: Array) -> Array:
    """Beta calibration with different slopes at both ends."""
    from scipy.special import expit

    with np.errstate(divide="ignore"):
        return np.asarray(expit(0.6 * np.log(c) - 1.3 * np.log1p(-c) - 0.4))


def region(c: Array) -> Array:
    """Calibrated except between .6 and .85, where the event is a quarter less frequent than stated."""
    return np.where((c >= 0.6) & (c < 0.85), 0.75 * c, c)


def groups(c: Array) -> Array:
    """Half of the rows are from a group with over-confident predictions, half from one with too high predictions."""
    return 0.5 * temperature(0.5)(c) + 0.5 * shift(-0.5)(c)


# -- what a metric detects -------------------------------------------------------------------------------

#: The study's families of errors: words for each, and a curve that shows it if it depends on the stated probability.
_FAMILIES: dict[str, tuple[str, Truth | None]] = {
    "over-confident": ("over-confidence", temperature(0.6)),
    "under-confident": ("under-confidence", temperature(1.8)),
    "shift": ("a shift up or down", shift(0.4)),
    "groups": ("different errors in 2 groups", groups),
    "beta": ("unequal slopes at 0 and 1", beta),
    "region": ("an error in one region", region),
    "steps": ("five steps", steps),
    "wave 2": ("a slow wave", wave(2)),
    "wave 10": ("a fast wave", wave(10)),
    "too extreme": ("a fit made too extreme", None),
    "not extreme enough": ("a fit not extreme enough", None),
    "overfitted": ("an overfitted model", None),
    "by place": ("opposite errors by place", None),
    "by group": ("opposite errors by group", None),
    "far cases": ("errors of unusual rows", None),
}
_RARE = {"any of these, 5% events": "errors of all shapes where 5% of the rows are events"}
#: The number of rows that is shown; of a metric that was studied on fewer rows, its largest.
_ROWS = 1000
_OFTEN, _SELDOM = 0.9, 0.3
#: The height of a row of the picture, the side of its small curve, the start and the length of a bar, and the width.
_ROW, _GLYPH, _BAR, _LONG, _WIDE = 30, 24, 214, 156, 416
_GRID = np.linspace(0.02, 0.98, 49)
_BLUE, _ORANGE, _GREY = "#0173b2", "#de8f05", "#8a94a3"
#: An error in words, its curve, and the share of samples in which it is detected.
Row: TypeAlias = tuple[str, Truth | None, float]


def detected_by(name: str) -> tuple[int, list[Row]]:
    """Rows of a sample, and the errors on which a number ("ece", "cis.slope") was studied; none if it was not."""
    sizes = {int(n): by[name] for n, by in stored()["sizes"].items() if int(n) <= _ROWS and name in by}
    n = max(sizes, default=0)
    found = sizes.get(n, {})
    by, rare = found.get("power_by_family") or {}, (found.get("power_by_law") or {}).get("rare")
    rows = [(words, truth, by[key]) for key, (words, truth) in _FAMILIES.items() if by.get(key) is not None]
    return n, [*rows, *((words, None, rare) for words in _RARE if rows and rare is not None)]


def detected_words(rows: list[Row]) -> str:
    """A sentence that says which errors are nearly always detected, and which mostly are not."""
    detects = [_RARE.get(words, words) for words, _, share in rows if share >= _OFTEN]
    misses = [_RARE.get(words, words) for words, _, share in rows if share < _SELDOM]
    said = [f"It nearly always detects {_listed(detects)}."] if detects else []
    said += [f"It mostly misses {_listed(misses)}."] if misses else []
    return " ".join(said) or "It detects every shape of error in some of the samples."


def _listed(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def detected_picture(rows: list[Row], title: str, level: float = 0.05) -> Markup:
    """A bar for each error: the share of samples in which it is detected; beside it a small curve of the error."""
    end, x = _ROW * len(rows), _BAR + level * _LONG
    said = "; ".join(f"{words}: {share:.0%}" for words, _, share in rows)
    return element(
        "svg",
        [list(_detected(row, _ROW * i + 3)) for i, row in enumerate(rows)],
        element("line", x1=x, x2=x, y1=2, y2=end + 6, stroke=_GREY, stroke_dasharray="3 3"),
        element("text", f"{level:.0%}: no better than chance", x=x - 4, y=end + 20),
        class_="detected", viewBox=f"0 0 {_WIDE} {end + 26}", width=_WIDE, role="img", aria_label=f"{title}. {said}",
        font_size=13, fill="currentColor",
    )  # fmt: skip


def _detected(row: Row, top: float) -> Iterator[Markup]:
    words, truth, share = row
    middle, bar = top + _GLYPH / 2, {"x": _BAR, "y": top + _GLYPH / 2 - 6, "height": 12}
    if truth is not None:  # how often the event happens (up) where a probability is stated (across)
        points = zip(_GLYPH * _GRID, top + _GLYPH * (1 - np.clip(truth(_GRID), 0.0, 1.0)), strict=True)
        side, grey = _GLYPH - 1, {"stroke": _GREY, "opacity": 0.5}
        yield element("rect", x=0.5, y=top + 0.5, width=side, height=side, fill="none", **grey)
        yield element("line", x1=0, x2=_GLYPH, y1=top + _GLYPH, y2=top, **grey)
        curve = " ".join(f"{across:.1f},{up:.1f}" for across, up in points)
        yield element("polyline", points=curve, fill="none", stroke=_ORANGE, stroke_width=1.5)
    yield element("text", words, x=_GLYPH + 10, y=middle + 4)
    yield element("rect", width=_LONG, fill=_GREY, opacity=0.25, **bar)
    yield element("rect", width=f"{share * _LONG:.1f}", fill=_BLUE, **bar)
    yield element("text", f"{share:.0%}", x=_WIDE, y=middle + 4, text_anchor="end")


def detects(names: list[str]) -> Markup | None:
    """For a notebook: the errors that each number of a metric detects; None if the study has none of them."""
    shown = []
    for name, (n, rows) in ((name, detected_by(name)) for name in names):
        if rows:
            told = f"Share of samples of {n:,} rows in which {name} detects an error of each shape, at a level of 5%"
            picture = detected_picture(rows, told)
            shown.append(markup(element("p", f"{told}. {detected_words(rows)}"), picture))
    return markup(shown) if shown else None
