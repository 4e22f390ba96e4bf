"""The frame of figures: data from whatever was given, the axes, the words around them, and the same words as text."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from calibrary.base.errors import RefusedError
from calibrary.base.text import in_sentence
from calibrary.plots import style
from calibrary.plots.axis import in_log_odds, together
from calibrary.plots.data import FigureData, refuse_unknown

Made = TypeVar("Made", bound=FigureData)


class Said(NamedTuple):
    """The words around a diagram, and where they stand: the other fields are those of :func:`style.finish`."""

    title: str
    numbers: str
    reading: str = ""
    legend: str = "above"
    top: float = 1.0
    lift: float = 0.0
    below: Any = None
    drop: float = 38.0


def said(key: str, numbers: str, **facts: Any) -> Said:
    """The words of a figure in ``captions.toml``, with the facts that stand there in braces; others place the words."""
    words = _captions()[key]
    place = {name: facts.pop(name) for name in Said._fields[3:] if name in facts}
    return Said(words["title"].format(**facts), numbers, words["reading"].format(**facts), **place)


@functools.cache
def _captions() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("captions.toml").read_text(encoding="utf-8"))


class Plot(Protocol):
    """A function that draws a figure of data, or of what its data are computed from."""

    def __call__(
        self, *given: Any, ax: Any = None, caption: bool = True, theme: str = "light", **options: Any
    ) -> Any: ...


def each_model(models: Mapping[str, Any], make: Callable[..., Made], **options: Any) -> dict[str, Made]:
    """The figure data of several models, from {"name": (y, p)}, checked predictions, or figure data."""
    if not models:
        raise ValueError("the dict of models is empty: pass {'name': (y_true, y_prob), ...}")
    made = {}
    for name, given in models.items():
        if isinstance(given, FigureData):
            made[str(name)] = given
        else:
            made[str(name)] = make(*given, **options) if isinstance(given, tuple | list) else make(given, **options)
    return made  # type: ignore[return-value]


def on_one_axis(
    models: Mapping[str, Any], make: Callable[..., Any], axis: Any = "auto", **options: Any
) -> dict[str, Any]:
    """The figure data of several models on one axis."""
    made = each_model(models, make, axis=axis, **options)
    if in_log_odds(data.axis for data in made.values()) and not any(isinstance(m, FigureData) for m in models.values()):
        made = each_model(models, make, axis="log odds", **options)
    shared = together(data.axis for data in made.values())
    other = {name: models[name] for name, data in made.items() if data.axis != shared}
    again = {name: given for name, given in other.items() if not isinstance(given, FigureData)}
    return made | (each_model(again, make, axis=shared, **options) if again else {})


def drawn(
    kind: type[FigureData] | None = None,
    make: Callable[..., Any] | None = None,
    *,
    size: tuple[float, float] | Callable[..., tuple[float, float]] = (5.4, 6.3),
    several: Callable[..., Said] | None = None,
    gather: Callable[..., dict[str, Any]] = each_model,
    adjust: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
) -> Callable[[Callable[..., Said]], Plot]:
    """Make a figure of a function that draws data on axes and returns the words around them.

    The figure takes the arguments of ``make``, or the data themselves, and the keywords of the drawing function.

    Parameters
    ----------
    kind, make : the class of the data, and the function that computes them; None if the figure is of a result
    size : width and height in inches, or a function of the data and of the options of the drawing that gives them
    several : what draws a dict of models instead; ``gather`` computes the data of each
    adjust : called with the options of the data and of the drawing before anything is computed
    """

    def frame(draw: Callable[..., Said]) -> Plot:
        of_drawing = inspect.signature(draw).parameters
        own = [p for p in of_drawing.values() if p.kind is p.KEYWORD_ONLY and p.name != "caption"]
        of_data = {} if make is None else inspect.signature(make).parameters
        first = [p for p in of_data.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        first = first or [p for p in of_drawing.values() if p.kind is p.POSITIONAL_OR_KEYWORD][2:]
        named = [p for p in of_data.values() if p.kind is p.KEYWORD_ONLY]
        free = any(p.kind is p.VAR_KEYWORD for p in of_data.values())

        # what may be left out: all but the first; and that too where the data need nothing
        least = 1 if make is None or first[0].name in of_data else 0

        @functools.wraps(draw)
        def plot(*given: Any, ax: Any = None, caption: bool = True, theme: str = "light", **options: Any) -> Any:
            given += tuple(options.pop(p.name) for p in first[len(given) :] if p.name in options)
            drawing = {p.name: options.pop(p.name) for p in own if p.name in options}
            if several is not None and "models" in options:
                given = ({name: (*given, p) for name, p in options.pop("models").items()},)
            if adjust is not None:
                adjust(options, drawing)
            if not free:
                refuse_unknown(options, [p.name for p in named], draw.__name__)
            if several is not None and given and isinstance(given[0], Mapping):
                if drawing:
                    raise TypeError(f"{draw.__name__} of several models has no option {next(iter(drawing))!r}")
                made = gather(given[0], make, **options)
                wide, high = size if isinstance(size, tuple) else size(next(iter(made.values())))
                ax, look = style.new_axes(ax, theme, (wide, high - 0.25 + 0.15 * len(made)))
                said = several(ax, look, made)
            else:
                if "interval" in of_data:
                    options.setdefault("interval", caption)  # only the caption shows the interval
                if make is not None:
                    ready = bool(given) and kind is not None and isinstance(given[0], kind)
                    if given and not ready and not least and given[0] is not None:
                        wrong = f"{first[0].name}={in_sentence(given[0])}"
                        raise RefusedError(f"{wrong} is not what {make.__name__}() returns: pass that, or leave it out")
                    given = given[:1] if ready else (make(*(given if least else ()), **options),)
                ax, look = style.new_axes(ax, theme, size if isinstance(size, tuple) else size(*given, **drawing))
                said = draw(ax, look, *given, **drawing, **({"caption": caption} if "caption" in of_drawing else {}))
            title, numbers, reading, *place = said
            where = dict(zip(Said._fields[3:], place, strict=True))
            return style.finish(ax, look, title, numbers, reading, caption=caption, **where)

        first = [p.replace(default=None) if i >= least and p.default is p.empty else p for i, p in enumerate(first)]
        kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
        keywords = [inspect.Parameter(n, kinds[0], default=v, annotation=a) for n, v, a in _FRAME]
        rest = [inspect.Parameter("options", kinds[1], annotation="Any")] if free else named
        parameters = sorted([*first, *own, *keywords, *rest], key=lambda p: p.kind)
        plot.__signature__ = inspect.Signature(parameters, return_annotation="Any")  # type: ignore[attr-defined]
        plot.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": "Any"}
        return plot

    return frame


#: The keywords of every figure.
_FRAME = (("ax", None, "Any"), ("caption", True, "bool"), ("theme", "light", "str"))
