"""Small multiples: one reliability diagram per class or pair of classes."""

from __future__ import annotations

from typing import Any

from calibrary.base.numbers import number
from calibrary.base.text import for_figure
from calibrary.data.lens import as_lens
from calibrary.data.predictions import predictions
from calibrary.inference.draw.look import look_at
from calibrary.inference.draw.redraws import beyond_chance
from calibrary.plots import style
from calibrary.plots.axis import square, together
from calibrary.plots.data import CHECKED
from calibrary.plots.reliability import BINS, ReliabilityData, draw_line, reliability_data
from calibrary.question import Question

#: The mark of a class in words.
MARKED = (
    "▲ and orange: the mean prediction differs significantly from the share of the class (5%, all classes at once)."
)


def class_data(
    y_true: Any, y_prob: Any = None, *, lens: Any = "class-wise", **options: Any
) -> dict[str, ReliabilityData]:
    """The bins of every class (or pair) by its name; options are those of :func:`reliability_data`.

    The interval of each ECE is computed only with ``interval=True``, because the small diagrams do not show it.
    """
    options.setdefault("interval", False)
    checked = {k: options.pop(k) for k in ("sample_weight", "labels", "pos_label") if k in options}
    p = predictions(y_true, y_prob, **checked)
    views = p.through(as_lens(lens, options.pop("r", None)))
    return {
        _name(key, p.classes): reliability_data(view, lens="binary", **options)
        for key, view in zip(views.keys, views.views, strict=True)
    }


def _significant(y_true: Any, y_prob: Any, lens: Any, checked: dict[str, Any]) -> set[str]:
    """The classes whose mean prediction differs significantly from their share, tested for all classes at once."""
    p = predictions(y_true, y_prob, **checked)
    if lens != "class-wise" or p.k < 3 or p.fractional:
        return set()
    look = look_at(p, Question(lens="top-label"))
    if look.classes is None:
        return set()
    off = beyond_chance(look, None, 0.05)[0]
    return {str(name) for name, far in zip(look.classes.names, off, strict=True) if far}


def _name(key: Any, classes: tuple[Any, ...]) -> str:
    if key is None:
        return "all"
    return f"{classes[key[0]]} v {classes[key[1]]}" if isinstance(key, tuple) else str(classes[key])


def small_multiples(
    y_true: Any,
    y_prob: Any = None,
    *,
    most: int = 36,
    columns: int | None = None,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """One small reliability diagram per class (or pair); with more than ``most``, those with the largest error.

    Takes the arguments of :func:`class_data`, or its result. A class is marked if its mean prediction differs
    significantly (at 5%, tested for all classes at once) from its share. Returns the matplotlib Figure.
    """
    marked = set[str]()
    if not isinstance(y_true, dict):
        checked = {k: v for k, v in options.items() if k in CHECKED}
        marked = _significant(y_true, y_prob, options.get("lens", "class-wise"), checked)
    data = y_true if isinstance(y_true, dict) else class_data(y_true, y_prob, **options)
    chosen = list(data)
    if len(chosen) > most:
        chosen = sorted(chosen, key=lambda name: (name not in marked, -data[name].ece))[:most]
    columns = columns or _columns(len(chosen))
    axis = together(data[name].axis for name in chosen)
    rows = -(-len(chosen) // columns)
    figure = style.new_figure((max(1.75 * columns + 0.5, 4.2), 2.05 * rows + 0.9), theme)
    look = style.look(theme)
    for place, name in enumerate(chosen):
        ax, _ = style.new_axes(figure.add_subplot(rows, columns, place + 1), theme)
        square(ax, look, axis, "", "")
        far = name in marked
        draw_line(ax, look, data[name], look.gap if far else look.model, None)
        if axis.whole:
            for set_ticks in (ax.set_xticks, ax.set_yticks):
                set_ticks([0, 0.5, 1], ["0", "0.5", "1"])
        title = f"{'▲ ' if far else ''}{for_figure(name, 30)}   ECE {number(data[name].ece)}"
        ax.set_title(title, fontsize=8, loc="left", color=look.ink, fontweight="bold" if far else "normal")
        first, last = place % columns == 0, place >= len(chosen) - columns
        ax.tick_params(labelsize=7.5, labelbottom=last, labelleft=first)
        ax.set_ylabel("Frequency" if first else "", fontsize=8)
        ax.set_xlabel("Prediction" if last else "", fontsize=8)
    left = f", the {len(chosen)} worst of {len(data)}" if len(chosen) < len(data) else ""
    style.around(figure, look, f"Reliability by class{left}", _numbers(data, marked), caption=caption)
    return figure


def _columns(n: int) -> int:
    """Up to six columns, with as few empty places as possible."""
    if n <= 3:
        return n
    fewest = 3 if n < 9 else 4
    return max(range(fewest, 7), key=lambda k: (-(-n % k), k))


def _numbers(data: dict[str, ReliabilityData], marked: set[str]) -> str:
    first = next(iter(data.values()))
    sizes = [d.n for d in data.values()]
    n = f"N = {min(sizes):,.0f}" + ("" if min(sizes) == max(sizes) else f" to {max(sizes):,.0f}")
    bars = " · bars: one standard error" if first.error == "se" else ""
    most = max(d.n_bins for d in data.values())
    said = f"\n{MARKED}" if marked else ""
    return f"{n} · {most} {BINS.get(first.binning, 'bins')}{bars} · larger points: more cases{said}"
