"""The segments of a store on one page: a small figure for each, those with an alarm first.

A figure has two parts over the same days: observed over expected events with intervals, around the line of 1, and the
evidence so far, against the line at which there is an alarm. The days since the change are shaded.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence

from calibrary.base.markup import Markup, document, element, own
from calibrary.base.numbers import counted, ends, number, percent, pvalue
from calibrary.base.text import capital
from calibrary.reporting.html import resource
from calibrary.scale.store_watch import StoreWatch, WatchedDay, WatchedSegment

#: The largest number of segments without an alarm that have a figure, and of all segments with a figure.
_QUIET, _MOST = 24, 240
#: Size of a figure, its margins, and where its two parts lie.
_WIDTH, _LEFT, _RIGHT = 300, 34, 8
_TOP, _MIDDLE, _BELOW, _BOTTOM, _HEIGHT = 18, 110, 134, 172, 192
#: The largest ratio of a figure, on a logarithmic scale: the first of these that includes all values, or the last.
_REACH = (1.25, 1.5, 2.0, 3.0, 4.0)

_STYLE = own(resource("watched.css"))


def watch_page(watched: StoreWatch) -> str:
    """The whole page."""
    calm = [segment for segment in watched.segments if not segment.alarm]
    alarms, quiet = watched.alarms[:_MOST], calm[:_QUIET]
    scale = _Scale(watched)
    title = f"Calibration by {', '.join(watched.by) or 'day'}, {watched.first} to {watched.last}"
    body = (
        element("h1", _dated(title)),
        element("p", _dated(watched.sentence), class_="headline bad" if watched.alarms else "headline"),
        element("p", _HINT, class_="hint"),
        _part("Segments with an alarm", _left_out(watched.alarms, alarms), alarms, scale),
        _part("Segments without an alarm", _left_out(calm, quiet), quiet, scale),
        element("p", _dated(f"Store: {watched.store}. {_bound(watched)}"), class_="soft"),
    )
    return document(title, element("main", body), style=_STYLE)


_HINT = (
    "Each figure shows observed over expected events for each day with 95% intervals (1 is calibrated on the whole, "
    "above 1 predictions are too low); between the dotted lines lies the ratio of all days so far, at every look at "
    "once. Below is the evidence so far: an alarm is raised at the latest where the "
    "line crosses the dashed one. The days since the change are shaded."
)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)")


def _dated(text: str) -> list[object]:
    """The text with dates that are not broken at line ends."""
    return [element("time", part) if _DATE.fullmatch(part) else part for part in _DATE.split(text)]


def _bound(watched: StoreWatch) -> str:
    notes = "".join(f" {note}" for note in watched.notes)
    if watched.error == "fdr":
        return (
            f"Evidence is an e-process for each segment. At most {percent(watched.alpha)} of the alarms here are"
            f" expected to be false, however often it is made.{notes}"
        )
    return (
        "Evidence is an e-process for each segment; p-values are adjusted for "
        f"{counted(len(watched.segments), 'segment')} (Holm). If all segments were calibrated, an alarm would ever be "
        f"raised with a probability of at most {percent(watched.alpha)}, however often this page is made, as long as "
        f"the first day stays {watched.first}.{notes}"
    )


def _left_out(all_of: Sequence[WatchedSegment], shown: Sequence[WatchedSegment]) -> str:
    if len(shown) == len(all_of):
        return ""
    return f"The {len(shown)} with most evidence of {counted(len(all_of), 'segment')} are shown; the JSON file has all."


def _part(title: str, note: str, segments: Sequence[WatchedSegment], scale: _Scale) -> Markup | None:
    if not segments:
        return None
    cards = element("div", [_card(segment, scale) for segment in segments], class_="grid")
    return element("section", element("h2", title), element("p", note, class_="soft") if note else None, cards)


def _card(segment: WatchedSegment, scale: _Scale) -> Markup:
    rows, said = f"{counted(segment.n, 'row')}, {pvalue(segment.adjusted)} adjusted", None
    if segment.alarm:
        words = _dated(f"{capital(segment.words)}. Alarm on {segment.alarm_on}.")
        said = element("p", element("b", _dated(f"Since {segment.since}: ")), words)
    so_far = element("p", _so_far(segment), class_="rows") if segment.intervals else None
    top = element("h3", segment.name), said, element("p", rows, class_="rows"), so_far
    return element("article", *top, _figure(segment, scale), class_="card alarm" if segment.alarm else "card")


def _so_far(segment: WatchedSegment) -> str:
    """O/E of all days, with the interval that holds at every look beside the one that holds once."""
    found = next(each for each in segment.intervals if each.name == "oe")
    return (
        f"Observed over expected so far {number(found.value)}, {ends(found.low, found.high)} at every look "
        f"({number(found.ratio)[:4]} times as wide as for one look)"
    )


# -- the figure of one segment ----------------------------------------------------------------------


class _Scale:
    """Positions of days, ratios and evidence; the same for all segments, so that figures can be compared."""

    def __init__(self, watched: StoreWatch) -> None:
        self.first, self.last = _ordinal(watched.first), _ordinal(watched.last)
        self.days = watched.first, watched.last
        self.limit = math.log(len(watched.segments) / watched.alpha)
        ratios = [day.oe for segment in watched.segments for day in segment.days if day.oe]
        spread = max((abs(math.log(r)) for r in ratios), default=0.0)
        self.reach = next((reach for reach in _REACH if math.log(reach) >= spread), _REACH[-1])

    def x(self, day: str) -> float:
        share = (_ordinal(day) - self.first) / max(self.last - self.first, 1)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def ratio(self, r: float) -> float:
        inside = min(max(r, 1.0 / self.reach), self.reach)
        share = 0.5 - 0.5 * math.log(inside) / math.log(self.reach)
        return round(_TOP + share * (_MIDDLE - _TOP), 1)

    def evidence(self, log_e: float) -> float:
        """From no evidence to one and a half times the evidence that raises an alarm for a single segment."""
        share = min(max(log_e, 0.0) / (1.5 * self.limit), 1.0)
        return round(_BOTTOM - share * (_BOTTOM - _BELOW), 1)


def _ordinal(day: str) -> int:
    return datetime.date.fromisoformat(day).toordinal()


def _figure(segment: WatchedSegment, scale: _Scale) -> Markup:
    label = f"{segment.name}: observed over expected events and evidence by day"
    one = element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=scale.ratio(1.0), y2=scale.ratio(1.0), stroke="currentColor")
    ratios = (
        [_line("rule", scale.ratio(r)) for r in (scale.reach, 1.0 / scale.reach)],
        one,
        [
            element("text", number(r)[:4].rstrip("0").rstrip("."), x=_LEFT - 4, y=scale.ratio(r) + 4, text_anchor="end")
            for r in (scale.reach, 1.0, 1.0 / scale.reach)
        ],
        [_edge(segment.days, end, scale) for end in ("low", "high")],
        [_ratio_of(day, scale) for day in segment.days],
    )
    points = [f"{scale.x(day.day)} {scale.evidence(day.log_e)}" for day in segment.days]
    path = element("path", d="M" + " L".join(points), class_="path")
    evidence = (_line("rule", _BOTTOM), _line("limit", scale.evidence(scale.limit)), path)
    places = (("observed over expected", _TOP - 7), ("evidence", _BELOW - 6), (scale.days[0], _HEIGHT - 4))
    texts = [element("text", text, x=_LEFT, y=y) for text, y in places]
    texts.append(element("text", scale.days[1], x=_WIDTH - _RIGHT, y=_HEIGHT - 4, text_anchor="end"))
    frame = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "aria_label": label}
    return element("svg", _shade(segment, scale), *ratios, *evidence, texts, **frame)


def _shade(segment: WatchedSegment, scale: _Scale) -> Markup | None:
    if segment.since is None:
        return None
    x = scale.x(segment.since)
    return element("rect", x=x, y=_TOP, width=_WIDTH - _RIGHT - x + 3, height=_BOTTOM - _TOP, class_="since")


def _line(kind: str, y: float) -> Markup:
    return element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_=kind)


def _ratio_of(day: WatchedDay, scale: _Scale) -> list[Markup]:
    if day.oe is None:
        return []
    x = scale.x(day.day)
    low, high = (scale.ratio(end) if end else scale.ratio(1.0 / scale.reach) for end in (day.oe_low, day.oe_high))
    said = f"{day.day}: {number(day.oe)} ({number(day.oe_low)} to {number(day.oe_high)}), {counted(day.n, 'row')}"
    bar = element("line", x1=x, x2=x, y1=low, y2=high, class_="bar")
    dot = element("circle", element("title", said), cx=x, cy=scale.ratio(max(day.oe, 1e-9)), r=2.4, class_="dot")
    return [bar, dot]


def _edge(days: Sequence[WatchedDay], end: str, scale: _Scale) -> Markup:
    """An end of the interval of all days so far, which holds at every look."""
    known = [(day.day, getattr(day, end)) for day in days if getattr(day, end) is not None]
    points = [f"{scale.x(day)} {scale.ratio(max(value, 1e-9))}" for day, value in known]
    return element("path", d="M" + " L".join(points or ["0 0"]), class_="edge")
