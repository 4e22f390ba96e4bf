"""The figures of a page: drawn with the page's own settings, with captions that quote the page's own table."""

from __future__ import annotations

import functools
import html
import io
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from calibrary.base.forked import Forked, can_fork
from calibrary.base.markup import Markup, start_tag
from calibrary.base.numbers import percent
from calibrary.base.saved import SavedFileError
from calibrary.base.text import in_sentence, plain
from calibrary.data import Matches, Predictions
from calibrary.evaluation import Evaluation
from calibrary.grouping import automatic_bins
from calibrary.inference.overall.decision import headline_view
from calibrary.question import Question
from calibrary.reporting.numbers import quoted
from calibrary.reporting.safe_svg import placed_svg, safe_svg
from calibrary.reporting.sections import Figure, captions

if TYPE_CHECKING:
    from calibrary.plots.axis import Axis

#: Figures that were drawn already, so that a page and its JSON draw each once.
_DRAWN: WeakKeyDictionary[Callable[[], Any], Markup] = WeakKeyDictionary()
_SETTINGS = threading.Lock()
#: The margin around the picture, in inches.
_MARGIN = 0.1
#: Settings of Matplotlib for a picture: ids that are the same each time, letters, and no layout after ours.
_AS_SVG = {
    "svg.hashsalt": "calibrary",
    "svg.fonttype": "none",
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
}
#: The diagram that an interactive page draws again.
RELIABILITY = captions()["reliability"]["name"]
#: The diagrams that take the whole width.
BY_CLASS = captions()["by-class"]["name"]
#: A place with a tooltip, invisible until it is pointed at.
_SPOT = {"class": "tip", "tabindex": "-1", "fill": "none", "r": "6"}
#: Points of a picture that its text alternative gives at most.
_SAID = 10
#: With more classes there is only the table of classes, without small diagrams.
_MOST_DIAGRAMS = 36


@functools.singledispatch
def figures_of(data: Any, question: Question, evaluation: Evaluation, axis: Any = "auto") -> tuple[Figure, ...]:
    """The figures of predictions, all of the view that the headline is about; those of a detector are others."""
    from calibrary import plots
    from calibrary.plots.axis import axis_of, direction

    view, lens = headline_view(data, question)
    level = percent(question.confidence_level)
    seen: dict[str, Any] = {"lens": lens, "confidence_level": question.confidence_level, "caption": False}
    way = direction(lens, "Above" if view.mean(view.residual) > 0 else "Below")
    seen["axis"] = axis = axis_of(view, axis)
    closer = f" Drawn on {axis.said}." if axis.said else ""
    bins, asked = _bins(view, axis, question)
    drawn = [
        Figure.captioned(
            "reliability",
            functools.partial(plots.plot_reliability, data, error="wilson", n_resamples=0, **asked, **seen),
            ece=quoted(evaluation, "ece", "ECE"), bins=bins, level=level, way=way, closer=closer,
        ),
        Figure.captioned(
            "smooth",
            functools.partial(plots.plot_smooth_reliability, data, n_resamples=200, **seen),
            smece=quoted(evaluation, "smece", "smooth ECE"), level=level, way=way, closer=closer,
        ),
        Figure.captioned(
            "corp",
            functools.partial(plots.plot_corp, data, n_resamples=400, **seen),
            brier=quoted(evaluation, "bs", "Brier score"), level=level, closer=closer,
        ),
        Figure.captioned(
            "cumulative",
            functools.partial(plots.plot_cumulative, data, lens=lens, caption=False),
            ks=quoted(evaluation, "ecce_mad", "Kolmogorov-Smirnov error"),
        ),
    ]  # fmt: skip
    if 2 < data.k <= _MOST_DIAGRAMS:
        small = functools.partial(plots.small_multiples, data, caption=False, **asked)
        narrow = functools.partial(small, columns=2)
        drawn.append(Figure.captioned("by-class", small, narrow, level=level, marked=plots.classes.MARKED))
    return tuple(drawn)


@figures_of.register
def _(data: Matches, question: Question, evaluation: Evaluation, axis: Any = "auto") -> tuple[Figure, ...]:
    from calibrary import plots

    drawn = [
        Figure.captioned(
            "detections",
            functools.partial(plots.plot_detection_reliability, data, caption=False),
            d_ece=quoted(evaluation, "d_ece", "D-ECE"), laece=quoted(evaluation, "laece", "LaECE"),
        ),
        Figure.captioned(
            "smooth-of-detections",
            functools.partial(plots.plot_smooth_reliability, data, axis=axis, caption=False),
            smece=quoted(evaluation, "smece", "smooth ECE"),
        ),
        Figure.captioned(
            "cumulative-of-detections",
            functools.partial(plots.plot_cumulative, data, caption=False),
            ks=quoted(evaluation, "ecce_mad", "Kolmogorov-Smirnov error"),
        ),
    ]  # fmt: skip
    if data.image_size is not None and data.box is not None:
        places = max(2, min(8, int((len(data) / 40) ** 0.5)))
        draw = functools.partial(plots.plot_d_ece_map, data, n_bins=[5, places, places], caption=False)
        drawn.append(Figure.captioned("image", draw))
    return tuple(drawn)


def _bins(view: Predictions, axis: Axis, question: Question) -> tuple[str, dict[str, Any]]:
    """The bins of the diagram in words, and the option that gives them; by default as the events allow."""
    asked = {name: value for name, value in question.options.items() if name == "n_bins"}
    n_bins = asked.get("n_bins", automatic_bins(view.c, view.w))
    return f"{n_bins} bins " + ("of equal width" if axis.whole else "with equally many expected events"), asked


def curve_of(view: Predictions, axis: Any = "auto") -> tuple[tuple[float, float | None], ...]:
    """The smooth reliability curve in points equally far apart on its axis, None where there are no predictions."""
    from calibrary.plots import smooth_data

    found = smooth_data(view, grid=101, n_resamples=0, axis=axis, interval=False)
    shown = (found.support >= 0.5) & np.isfinite(found.curve)
    points = zip(found.grid, found.curve, shown, strict=True)
    return tuple((round(float(x), 7), round(float(y), 7) if there else None) for x, y, there in points)


# -- pictures ---------------------------------------------------------------------------------------


def picture(figure: Figure) -> Markup:
    """A figure as SVG that follows the page's colours; drawn once, however many forms of the report show it."""
    if figure.draw not in _DRAWN:
        from calibrary import plots

        with plots.embedded():
            made = figure.draw()
        _DRAWN[figure.draw] = made if isinstance(made, Markup) else _svg(made)
    return _DRAWN[figure.draw]


def draw_in_processes(figures: Sequence[Figure], processes: int) -> None:
    """Draw the figures, a share of them in each process; every picture is the same for any number of processes."""
    left = [figure for figure in figures if figure.draw not in _DRAWN]
    shares = [left[k::processes] for k in range(min(processes, len(left)))]
    if len(shares) < 2 or not can_fork():
        return

    def drawn(share: Sequence[Figure]) -> list[Markup]:
        return [picture(figure) for figure in share]

    with ExitStack() as open_:
        children = [open_.enter_context(Forked(functools.partial(drawn, share))) for share in shares[1:]]
        drawn(shares[0])
        for share, child in zip(shares[1:], children, strict=True):
            _DRAWN.update({f.draw: svg for f, svg in zip(share, child.result(), strict=True)})


def stored(name: str, caption: str, svg: str) -> Figure:
    """A figure from its picture, as a saved report holds it."""
    try:
        safe = safe_svg(svg)
    except ValueError as error:
        name = in_sentence(name, 60)
        raise SavedFileError(
            f"the stored figure {name} was not drawn by calibrary ({error}): create the file again"
        ) from None

    def draw() -> Markup:
        return safe

    return Figure(name, caption, draw)


def _svg(made: Any) -> Markup:
    """SVG without fixed colours, sizes and random ids; letters stay letters, so that it can be searched and read."""
    from matplotlib import rc_context

    figure = getattr(made, "figure", made)
    for ax in _every_axes(figure):
        ax.yaxis.labelpad += 8.0  # a narrow window enlarges the numbers between the label and the axis
        ax.xaxis.labelpad += 3.0
        if hasattr(ax, "calibrary_header"):  # the page writes the title itself
            ax.set_title("", loc="left")
    if figure.get_suptitle():
        figure.suptitle("")
    figure.set_dpi(72)  # the resolution of an SVG, so that the layout made here is that of the file
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)  # once: it takes longer than the picture
    around = figure.get_tightbbox().padded(_MARGIN)
    named, said = _marked(figure)
    out = io.StringIO()
    # settings of Matplotlib belong to the whole process: two threads that set and restore them would leave one's behind
    with _SETTINGS, rc_context(_AS_SVG):
        figure.set_layout_engine(None)  # "none" would leave a placeholder, for which the figure is drawn once more
        nothing = dict.fromkeys(("Date", "Creator", "Description"))  # the page has the picture's text beside it
        figure.savefig(out, format="svg", bbox_inches=around, metadata=nothing)
    svg = out.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.S)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r"'DejaVu Sans'(, [^;\"]*)?", "system-ui, sans-serif", svg)
    for name, color in _colors().items():
        svg = re.sub(color, f"var(--{name},{color.upper()})", svg, flags=re.I)
    for id, attributes in named.items():
        svg = svg.replace(start_tag("g", {"id": id}), start_tag("g", attributes), 1)
    for id, places in said.items():
        svg = _answering(svg, id, places)
    return safe_svg(re.sub(r"\n\s*", "\n", svg).strip())  # the same text as that of a figure from a file


def _every_axes(figure: Any) -> list[Any]:
    return [ax for outer in figure.axes for ax in (outer, *outer.child_axes)]


def _marked(figure: Any) -> tuple[dict[str, dict[str, str]], dict[str, list[dict[str, str]]]]:
    """Give ids to the elements that a legend switches and to those with a tooltip: their attributes on a page, by id.

    The figure has its layout: which places are within the axes is known after it.
    """
    from calibrary.plots import pointed

    named: dict[str, dict[str, str]] = {}
    said: dict[str, list[dict[str, str]]] = {}
    for place, ax in enumerate(_every_axes(figure)):
        keys: dict[str, str] = {}
        for k, (label, artists, entry) in enumerate(_switched(ax)):
            keys[label] = f"{place}-{k}"
            for kind, some in (("data-series", artists), ("data-key", entry)):
                for j, artist in enumerate(some):
                    artist.set_gid(f"{kind}-{place}-{k}-{j}")
                    named[artist.get_gid()] = {kind: keys[label]}
        for j, spots in enumerate(pointed.spots(ax)):
            x, y, words = pointed.shown_spots(ax, spots)
            if not words:
                continue
            id = f"spots-{place}-{j}"
            # a marker of size 0 gives the position in the picture
            ax.plot(x, y, ls="none", marker=",", scalex=False, scaley=False, clip_on=False, gid=id)
            belongs = {"data-series": keys[spots.series]} if spots.series in keys else {}
            said[id] = [belongs | {"data-tip": "\n".join(plain(t, None) for t in w.split("\n"))} for w in words]
    return named, said


def _switched(ax: Any) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """The entries of the legend of axes: the label, what is drawn under it, and the entry itself."""
    from calibrary.plots import pointed

    legend = ax.get_legend()
    if legend is None:
        return
    members = pointed.members(ax)
    for handle, label, mark, text in zip(
        *ax.get_legend_handles_labels(), legend.legend_handles, legend.get_texts(), strict=True
    ):
        artists = members.get(label, list(handle) if isinstance(handle, tuple) else [handle])
        if artists:
            yield label, artists, [mark, text]


def _answering(svg: str, id: str, places: list[dict[str, str]]) -> str:
    """The markers with this id as invisible circles with a tooltip."""
    group = re.compile(
        re.escape(start_tag("g", {"id": id})) + r"\s*(?:<defs>.*?</defs>\s*)?<g[^>]*>(.*?)</g>\s*</g>", re.S
    )
    found = group.search(svg)
    assert found is not None, f"no markers {id} in the picture"
    circles = [
        start_tag("circle", _SPOT | place | {"cx": f"{float(x):.1f}", "cy": f"{float(y):.1f}"}, closed=True)
        for place, (x, y) in zip(places, re.findall(r' x="([-\d.]+)" y="([-\d.]+)"', found[1]), strict=True)
    ]
    return svg[: found.start()] + "\n".join(circles) + svg[found.end() :]


@functools.cache
def _colors() -> dict[str, str]:
    """The page's names for the colours of figures."""
    from calibrary.plots.style import look

    light = look("light")
    named = {"f-ink": light.ink, "f-paper": light.paper, "f-grey": light.gray, "f-light": light.light}
    return named | {f"f-c{i}": color for i, color in enumerate(light.colors)}


def theme_variables(theme: str) -> str:
    """The same names with the colours of a theme, for a style sheet."""
    from calibrary.plots.style import look

    chosen = look(theme)
    values = (chosen.ink, chosen.paper, chosen.gray, chosen.light, *chosen.colors)
    return "".join(f"--{name}:{value};" for name, value in zip(_colors(), values, strict=True))


def width_of(figure: Figure) -> int:
    """The width of a picture in its own units, from which a narrow window computes a readable text size."""
    found = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ', picture(figure))
    return round(float(found[1])) if found else 0


def placed(figure: Figure, anchor: str) -> Markup:
    """The picture on a page, with ids that differ from those of every other picture, and with its numbers as text."""
    points = points_of(figure)
    some = points[:: max(1, -(-len(points) // _SAID))]
    numbers = f": {len(points)} points; " + "; ".join(", ".join(lines) for lines in some) if points else ""
    return placed_svg(picture(figure), anchor, plain(figure.name, None) + numbers)


def points_of(figure: Figure) -> list[list[str]]:
    """The points of a picture in words, from their tooltips: a list of lines for each."""
    return [html.unescape(tip).split("\n") for tip in re.findall(r' data-tip="([^"]*)"', picture(figure))]
