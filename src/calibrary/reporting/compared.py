"""Several models: which is better, from their comparisons; their numbers side by side, and all curves in one figure.

Every statement that one model is better, and every colour of a table, follows the p-value adjusted for all comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.markup import Markup, element
from calibrary.base.numbers import ends, number, percent, pvalue, with_interval
from calibrary.evaluation import Row
from calibrary.inference import Comparison
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.entry import Entry
from calibrary.reporting.model import Report
from calibrary.reporting.short import KeyNumber
from calibrary.reporting.stored import Comparisons

if TYPE_CHECKING:
    from calibrary.plots.axis import Axis


#: Up to this number of models a sentence names them; of more it gives their number.
_NAMED = 4
#: What a page compares first, as (which metrics, what a better model does).
_ROLES: tuple[tuple[Callable[[Entry], bool], str], ...] = (
    (lambda e: e.judges, "is better calibrated"),
    (lambda e: e.measures == "ranking", "ranks better"),
    (lambda e: e.proper == "strictly", "has the better {}"),
)


def turned(c: Comparison, first: str) -> Comparison:
    """The same comparison as the difference of this model minus the other one."""
    if c.a == first:
        return c
    return replace(c, a=c.b, b=c.a, value_a=c.value_b, value_b=c.value_a, value=-c.value, low=-c.high, high=-c.low)


def better_of(metric: str, c: Comparison) -> str:
    """The significantly better model by the adjusted p-value; empty without evidence, or if the sign does not say it.

    The difference of two signed numbers does not say which is nearer to the perfect value; see ``nearer``.
    """
    better = catalogue[metric].better
    if not significant(c) or better not in ("lower", "higher"):
        return ""
    return c.a if (c.high < 0.0) == (better == "lower") else c.b


def nearer(metric: str, c: Comparison, a: Any, b: Any) -> str:
    """The model whose signed number is significantly nearer to its perfect value: empty unless both differ clearly.

    a is nearer than b if (a - b)(a + b - 2 perfect) is negative; ``a`` and ``b`` have the intervals of the numbers.
    """
    perfect = catalogue[metric].perfect
    if not significant(c) or perfect is None or catalogue[metric].better != "perfect":
        return ""
    if a is None or b is None or None in (a.low, a.high, b.low, b.high):
        return ""
    above, below = a.low + b.low > 2.0 * perfect, a.high + b.high < 2.0 * perfect
    if not above and not below:
        return ""
    return c.a if (c.high < 0.0) == above else c.b


def significant(c: Comparison) -> bool:
    """Whether two models differ, after adjustment for all comparisons."""
    return c.pvalue_adjusted <= 1.0 - c.level and (c.low > 0.0 or c.high < 0.0)


def best_of(values: Mapping[str, float], metric: str) -> str:
    """The model with the best value of a metric."""
    return min(values, key=lambda name: far(values[name], metric))


def far(value: float, metric: str) -> float:
    """How far a value is from the best: larger is worse."""
    entry = catalogue[metric]
    return {"lower": value, "higher": -value}.get(entry.better, abs(value - (entry.perfect or 0.0)))


def answer(comparisons: Comparisons, primary: str | None = None) -> tuple[Sentence, ...]:
    """Which model is better calibrated, which ranks better and which has the better score, one sentence for each.

    Of three and more models, the best by the first metric is compared with each other model.
    """
    by_metric: dict[str, list[Comparison]] = {}
    for metric, c in comparisons:
        by_metric.setdefault(metric, []).append(c)
    chosen = _first_of_each_role(by_metric, primary)
    if not chosen:
        return ()
    values = values_of(by_metric[chosen[0][0]])
    best = best_of(values, chosen[0][0])
    names = list(values)
    said = []
    for metric, does in chosen:
        pairs = by_metric[metric]
        if len(names) == 2:
            said.append(_of_two(metric, pairs[0], does))
        else:
            against = [turned(c, best) for c in pairs if best in (c.a, c.b)]
            said.append(_of_many(metric, best, against, does, lead=metric == chosen[0][0], n=len(names)))
    said.append(Sentence(_adjusted(comparisons, len(names))))
    return tuple(said)


def metrics_of(comparisons: Comparisons, primary: str | None = None) -> list[str]:
    """The metrics of the answer."""
    return [metric for metric, _ in _first_of_each_role(dict(comparisons), primary)]


def _adjusted(comparisons: Comparisons, models: int) -> str:
    every = len({m for m, _ in comparisons}) * models * (models - 1) // 2
    best = "" if models == 2 else ", because the best model was chosen on these rows"
    all_of = f"all {every} comparisons of two models by one number" if models > 2 else f"{every} comparisons"
    return f"p-values are adjusted for {all_of}{best}." if every > 1 else "The one comparison needs no adjustment."


def _first_of_each_role(ids: Iterable[str], primary: str | None) -> list[tuple[str, str]]:
    ids = [id for id in ids if id in catalogue]
    ordered = [primary, *(id for id in ids if id != primary)] if primary in ids else ids
    found = []
    for fits, does in _ROLES:
        id = next((id for id in ordered if fits(catalogue[id]) and catalogue[id].better != "perfect"), None)
        if id is not None:
            found.append((id, does.format(_name(id))))
    return found


def _name(metric: str) -> str:
    return catalogue[metric].spoken or catalogue[metric].name


def values_of(pairs: Sequence[Comparison]) -> dict[str, float]:
    """The value of each model, in the order in which the models were named."""
    values: dict[str, float] = {}
    for c in pairs:
        values.setdefault(c.a, c.value_a)
        values.setdefault(c.b, c.value_b)
    return values


def _of_two(metric: str, c: Comparison, does: str) -> Sentence:
    better = better_of(metric, c)
    numbers = f"{_name(metric)} {number(c.value_a)} of {c.a}, {number(c.value_b)} of {c.b}; {c.a} minus {c.b}: "
    interval = f", {percent(c.level)} interval {number(c.low)} to {number(c.high)}" if c.low == c.low else ""
    shown = measured(f"{numbers}{number(c.value)}{interval}, {_p(c)}", **{c.a: c.value_a, c.b: c.value_b})
    if not better:
        adjusted = "" if c.low <= 0.0 <= c.high else " after adjustment"
        return Sentence.joined("", [f"There is no evidence{adjusted} that one of the two {does} (", shown, ")."])
    other = c.b if better == c.a else c.a
    claim = _claim(f"{better} {does} than {other}", metric, better, other)
    other_way = "; the estimates have the other order, because they are biased by chance, which the interval corrects"
    return Sentence.joined("", [claim, " (", shown, ")", other_way if c.value * (c.low + c.high) < 0.0 else "", "."])


def _p(c: Comparison) -> str:
    return f"adjusted {pvalue(c.pvalue_adjusted, c.n_resamples or 10**6)}"


def _claim(text: str, metric: str, better: str, worse: str) -> Claim:
    lower = catalogue[metric].better == "lower"
    return Claim(text, "better of two models", metric=metric, better=better, worse=worse, lower=lower)


def _of_many(metric: str, best: str, against: Sequence[Comparison], does: str, *, lead: bool, n: int) -> Sentence:
    """The best model by the first metric against each other model."""
    wins = [c for c in against if better_of(metric, c) == best]
    losses = [c for c in against if better_of(metric, c) == c.b]
    open_ = [c for c in against if not better_of(metric, c)]
    parts: list[str] = []
    if lead:
        word = "lowest" if catalogue[metric].better == "lower" else "highest"
        value = against[0].value_a
        parts.append(
            measured(f"Of {n} models, {best} has the {word} {_name(metric)}, {number(value)}", **{best: value})
        )
    if wins:
        claims = [_claim("", metric, best, c.b) for c in wins]
        text = f"{'it' if lead else best} {does} than {_list(wins)}"
        parts.append(Sentence(text, *claims))
    if losses:
        claims = [_claim("", metric, c.b, best) for c in losses]
        parts.append(Sentence(f"{_list(losses)} {_plural(does, losses)} than {best}", *claims))
    if open_:
        others = _list(open_, p=False) if wins or losses else "any other model"
        parts.append(f"there is no evidence of a difference between {best} and {others} in the {_name(metric)}")
    joined = Sentence.joined("; ", parts)
    return Sentence(f"{joined[:1].upper() if not joined.startswith(best) else joined[:1]}{joined[1:]}.", *joined.claims)


def _plural(does: str, models: Sequence[Comparison]) -> str:
    verb, rest = does.split(" ", 1)
    return does if len(models) == 1 else f"{({'is': 'are', 'has': 'have', 'ranks': 'rank'})[verb]} {rest}"


def _list(found: Sequence[Comparison], p: bool = True) -> str:
    """The other models with their values and p-values, or their number."""
    if len(found) > _NAMED:
        most = max(found, key=lambda c: c.pvalue_adjusted)
        return f"{len(found)} of the other models" + (f" (largest {_p(most)})" if p else "")
    named = [f"{c.b} ({number(c.value_b)}{f', {_p(c)}' if p else ''})" for c in found]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


# -- the models side by side: the short list of each, differences from one of them, all curves in one figure


#: Points of a smooth curve; None where there are no predictions.
Curve: TypeAlias = Sequence[tuple[float, float | None]]
_SIDE, _LEFT, _BELOW = 300.0, 46.0, 40.0
_DASHES = ("", "7 4", "2 3")


@dataclass(frozen=True)
class Cell:
    """One number of one model, and whether it is significantly "better" or "worse" than the reference ("": neither)."""

    value: float
    text: str
    interval: str
    difference: str = ""
    mood: str = ""


def heads(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """The numbers in the columns: the short list of the first model, as (label, name)."""
    return [(k.label, k.title) for k in reports[0].short_list]


def cells(report: Report, reports: Sequence[Report], comparisons: Comparisons) -> list[Cell]:
    """The short list of one model in the columns of the first, each with its difference from the reference."""
    names = short_names(reports)
    here, reference = names[reports.index(report)], reference_of(comparisons)
    other, cells_ = dict(zip(names, reports, strict=True)).get(reference), []
    for id, _ in heads(reports):
        # the comparison of these two by this metric, as this model minus the reference
        both = (turned(c, here) for m, c in comparisons if m == id and {c.a, c.b} == {here, reference})
        cells_.append(_cell(report, other, id, next(both, None) if here != reference else None))
    return cells_


def reference_of(comparisons: Comparisons) -> str:
    """The model that is subtracted from each other model; empty without comparisons."""
    subtracted = {c.b for _, c in comparisons}
    if len(subtracted) <= 1:
        return next(iter(subtracted), "")
    metric = comparisons[0][0]
    return best_of(values_of([c for m, c in comparisons if m == metric]), metric)


def in_order(reports: Sequence[Report]) -> list[Report]:
    """The reports, the best model by the metric of the headline first."""
    primary = reports[0].primary
    named = {str(i): r.evaluation[primary] for i, r in enumerate(reports) if _number(r, primary) is not None}
    ranked = sorted(named, key=lambda i: far(named[i], primary))
    rest = [str(i) for i in range(len(reports)) if str(i) not in named]
    return [reports[int(i)] for i in (*ranked, *rest)]


def _number(report: Report, id: str) -> Row | KeyNumber | None:
    known = next((k for k in report.short_list if k.label == id), None)
    found = known or next((r for r in report.evaluation.rows if r.label == id), None)
    return None if found is None or math.isnan(found.value) else found


def _cell(report: Report, reference: Report | None, id: str, c: Comparison | None) -> Cell:
    found = _number(report, id)
    if found is None:
        return Cell(math.nan, "", "")
    shown = Cell(found.value, number(found.value), ends(found.low, found.high))
    if c is None:
        return shown
    said = f"{'+' if c.value > 0 else ''}{with_interval(c.value, c.low, c.high)}"
    other = None if reference is None else _number(reference, id)
    better = better_of(id, c) or nearer(id, c, found, other)
    mood = "" if not better else "better" if better == c.a else "worse"
    return Cell(shown.value, shown.text, shown.interval, said, mood)


def short_names(reports: Sequence[Report]) -> list[str]:
    """The titles without their common beginning: the models of one file are distinguished by their column."""
    titles = [r.title for r in reports]
    heads_ = {t.partition(": ")[0] for t in titles}
    same = len(heads_) == 1 and all(": " in t for t in titles)
    return [t.partition(": ")[2] for t in titles] if same else titles


def plain_cells(reports: Sequence[Report], comparisons: Comparisons) -> tuple[list[str], list[list[str]]]:
    """The same table as text: one row per model."""
    head = ["model", *(f"{name} ({id})" for id, name in heads(reports))]
    rows = []
    for name, report in zip(short_names(reports), reports, strict=True):
        rows.append([name])
        for c in cells(report, reports, comparisons):
            interval = f" ({c.interval})" if c.interval else ""
            rows[-1].append(c.text + interval + (f"; difference {c.difference}" if c.difference else ""))
    return head, rows


# -- the figure -------------------------------------------------------------------------------------


def overlay(reports: Sequence[Report]) -> Markup | None:
    """The smooth reliability curves of all models on one axis, as SVG in the page's colours; None without curves."""
    from calibrary.plots.axis import axis_names  # imports the drawing code, which a table does not need

    drawn = [(i, r) for i, r in enumerate(reports) if r.curve]
    if len(drawn) < 2:
        return None
    axis, names = shared_axis(reports), short_names(reports)
    ticks = [
        (
            element("text", text, x=f"{_x(place):.1f}", y=f"{_y(0) + 16:.1f}", text_anchor="middle"),
            element("text", text, x=f"{_LEFT - 8:.1f}", y=f"{_y(place) + 4:.1f}", text_anchor="end"),
        )
        for place, text in zip(axis.place(axis.ticks[0]), axis.ticks[1], strict=True)
    ]
    wide, high = _LEFT + _SIDE + 12, _SIDE + _BELOW + 12
    across, up = (name.lower() for name in axis_names(_lens(reports[0])))
    frame = element("path", class_="frame", d=f"M{_LEFT} {_y(1):g}V{_y(0):g}H{_x(1):g}")
    diagonal = element("path", class_="diagonal", d=f"M{_x(0):g} {_y(0):g}L{_x(1):g} {_y(1):g}")
    below = element("text", across, x=f"{_x(0.5):g}", y=f"{high - 4:g}", text_anchor="middle")
    beside = element("text", up, transform=f"translate(12 {_y(0.5):g}) rotate(-90)", text_anchor="middle")
    about = {"class_": "overlay", "viewBox": f"0 0 {wide:g} {high:g}", "role": "img"}
    curves = [_line(i, names[i], r, axis) for i, r in drawn]
    said = "Reliability of all models"
    return element("svg", frame, diagonal, ticks, below, beside, curves, **about, aria_label=said)


def shared_axis(reports: Sequence[Report]) -> Axis:
    """The axis of all curves, by the rule for several models in one figure."""
    from calibrary.plots.axis import in_log_odds, together

    curves = [r.curve for r in reports if r.curve]
    own = [_axis(curve) for curve in curves]
    return together([_axis(curve, log_odds=True) for curve in curves] if in_log_odds(own) else own)


def _axis(curve: Curve, log_odds: bool = False) -> Axis:
    """The axis on which the points of a curve are equally far apart, or log odds from the first point drawn on."""
    from calibrary.plots.axis import WHOLE, Axis

    at = np.array([x for x, _ in curve])
    if len(at) < 3 or not (np.diff(at) > 0.0).all() or at[0] < 0.0 or at[-1] > 1.0:
        return WHOLE
    if log_odds:
        shown = [x for x, y in curve if y is not None and 0.0 < x < 1.0] or [at[1], at[-2]]
        return Axis("log odds", float(shown[0]), float(shown[-1]))
    steps, half = np.diff(at), 0.5 / (len(at) - 1)
    kind = "zoomed" if np.ptp(steps) < 0.5 * steps.mean() else "log odds"
    low, high = Axis(kind, float(at[0]), float(at[-1])).at([-half, 1.0 + half]).clip(0.0, 1.0).tolist()
    return WHOLE if kind == "zoomed" and low < half and high > 1.0 - half else Axis(kind, low, high)


def _lens(report: Report) -> str:
    """The lens of a report, also of one that was read from JSON."""
    usual = "binary" if report.evaluation.n_classes == 2 else "top-label"
    decision = report.decision
    named = decision.get("lens") if isinstance(decision, Mapping) else getattr(decision, "lens", None)
    return str(named or usual)


def swatch(i: int) -> Markup:
    """The line of the i-th model in a legend."""
    line = element("path", **_stroke(i), d="M1 4H25")
    return element("svg", line, class_="swatch", viewBox="0 0 26 8", aria_hidden="true")


def _line(i: int, name: str, report: Report, axis: Axis) -> Markup:
    """A curve with gaps where there are no predictions."""
    path, pen = "", "M"
    for x, y in report.curve:
        if y is not None:
            path += f"{pen}{_x(float(axis.place(x))):.1f} {_y(float(axis.place(y))):.1f}"
        pen = "M" if y is None else "L"
    drawn = (element("path", class_="catch", d=path), element("path", **_stroke(i), d=path))
    return element("g", drawn, class_="tip curve", data_tip=name, data_curve=f"m{i}")


def _stroke(i: int) -> dict[str, object]:
    return {"style": f"stroke:var(--f-c{i % 8})", "stroke_dasharray": _DASHES[i // 8 % len(_DASHES)] or None}


def _x(place: float) -> float:
    return _LEFT + _SIDE * place


def _y(place: float) -> float:
    return 6.0 + _SIDE * (1.0 - place)
