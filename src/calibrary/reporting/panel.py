"""The interactive part of a page: the reliability diagram with its controls, and the decision threshold.

Everything here is hidden until the script shows it; without a script, and on paper, the page has its still figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from calibrary.base.markup import Markup, element, markup
from calibrary.reporting.compared import short_names
from calibrary.reporting.model import Report


def panel(reports: Sequence[Report]) -> Markup | None:
    """The figures that the script draws, for all models of a page; None where no model has cells."""
    known = [(name, r) for name, r in zip(short_names(reports), reports, strict=True) if r.live is not None]
    if not known:
        return None
    names = [name for name, _ in known]
    decides = any(r.live is not None and r.live.thresholds is not None for _, r in known)
    return markup(_diagram(names if len(known) > 1 else []), _decisions() if decides else None)


def data_of(reports: Sequence[Report]) -> Markup:
    """The cells of every model, as text that the script reads."""
    kept = [
        element("template", r.live.text, class_="live-data", data_model=f"m{i}", data_name=name)
        for i, (name, r) in enumerate(zip(short_names(reports), reports, strict=True))
        if r.live is not None
    ]
    return markup(*kept)


def _diagram(names: Sequence[str]) -> Markup:
    models = [element("option", "all models", value="all")]
    models += [element("option", name, value=i) for i, name in enumerate(names)]
    controls = (
        _range("bins", "bins", 2, 50, 15),
        _choice("binning", "bins of equal", ("width", "mass")),
        _choice("axis", "axis", ("probability", "log odds")),
        element("label", "rows ", element("select", id="view")),
        element("label", "model ", element("select", models, id="live-model")) if names else None,
    )
    caption = (
        "A point is a bin with its interval (Wilson), faint below five cases; on the diagonal, the observed frequency "
        "equals the prediction. Point at a bin, or go from bin to bin with the arrow keys, for its numbers. Counts and "
        "errors are exact for every number of bins; the values expected of a calibrated model are accurate to within "
        "3%. Decide by the overall test of the page, which does not depend on bins."
    )
    return _figure("reliability", "Reliability diagram", controls, caption, numbers_table(element("tbody")))


def numbers_table(body: Markup) -> Markup:
    """The numbers of a figure as a table, one click away; the script may write its rows."""
    table = element("div", element("table", body), class_="scroll", role="group", aria_label="numbers")
    return element("details", element("summary", "The numbers as a table"), table, class_="screen numbers")


def _decisions() -> Markup:
    heads = ("segment", "alarms", "found", "missed")
    table = element(
        "table",
        element("caption", "Treated rows per 1,000 rows of each segment: alarms, events detected, events missed"),
        element("thead", element("tr", [element("th", head, scope="col") for head in heads])),
        element("tbody"),
    )
    caption = (
        "A row is treated if its probability is at least the threshold t. Net benefit: true positives per row minus "
        "t/(1-t) times the false positives per row; acting on none has net benefit 0. The shaded band is its interval, "
        "over rows or units. Probabilities after recalibration come from maps that were not fitted to their rows."
    )
    return _figure(
        "decision", "Decisions at a threshold", (_range("threshold", "act from", 0, 1, 0),), caption,
        element("div", table, class_="scroll segments", role="group", aria_label="segments", hidden=True),
    )  # fmt: skip


def _figure(key: str, title: str, controls: object, caption: str, *more: Markup) -> Markup:
    stage = element("div", element("div", class_="stage"), element("div", class_="legend"))
    chosen, said = element("div", controls, class_="controls"), element("div", class_="said", role="status")
    side = element("div", chosen, said, *more, element("p", caption, class_="hint"))
    head, sides = element("figcaption", element("b", title)), element("div", stage, side, class_="sides")
    return element("figure", head, sides, class_="live", data_figure=key, hidden=True)


def _range(id: str, name: str, low: int, high: int, value: int) -> Markup:
    slider = element("input", type="range", id=id, min=low, max=high, step=1, value=value)
    return element("label", f"{name} ", element("output", id=f"{id}-shown", for_=id), slider, class_="wide")


def _choice(id: str, name: str, values: Sequence[str]) -> Markup:
    return element("label", f"{name} ", element("select", [element("option", v, value=v) for v in values], id=id))
