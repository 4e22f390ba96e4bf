"""The report as one self-contained page: no network, light and dark, phone and paper."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from calibrary.base.markup import Markup, document, each, element, end_tag, markup, own, start_tag
from calibrary.base.numbers import number
from calibrary.base.text import capital
from calibrary.lookup import catalogue
from calibrary.lookup.study_findings import finding
from calibrary.reporting import compared
from calibrary.reporting import text as shared
from calibrary.reporting.agreement import alpha_for, pvalue_of
from calibrary.reporting.figures import BY_CLASS, RELIABILITY, placed, points_of, theme_variables, width_of
from calibrary.reporting.help import first_lines
from calibrary.reporting.model import Report, form
from calibrary.reporting.panel import data_of, numbers_table, panel
from calibrary.reporting.provenance import facts_words
from calibrary.reporting.sections import Figure, Section, Table
from calibrary.reporting.short import KeyNumber, picture_of
from calibrary.reporting.stored import Comparisons
from calibrary.reporting.verdict import COLOURS, status_of

#: The page writes a metric's name under its id, not in a separate column.
_COLUMNS = shared.HEAD[:-1]
#: Tables of more rows than this get a search box and scroll within their frame.
_LONG = 30
#: The text before a colon is the name of a finding if it is no longer than this.
_LONGEST_NAME = 24
#: Up to this number of models a table has room for the intervals of their differences.
_FEW_MODELS = 6
#: Up to this number of models the reliability diagram shows them all at once.
_DRAWN_TOGETHER = 4
#: Up to this number of models the page opens with all of them; of more it shows one at a time.
_OPENED_TOGETHER = 2
_ONE_AT_A_TIME = "What follows is about one model, at first the best; the menu at the top shows another one, or all."
#: Characters up to which the text of a cell stays in one line.
_SHORT_TEXT = 17
#: A number as a table writes it.
_NUMBER = re.compile(r"([<≤] ?)?[-−+]?[\d,]+(\.\d+)?(e-?\d+)?%?")
_KEYS = (
    ("j, k", "next and previous part"),
    ("1 to 9", "jump to a part"),
    ("/", "search the metrics"),
    ("[, ]", "previous and next model"),
    ("d", "dark or light"),
    ("?", "these keys"),
)


@form("page")
def page(reports: Sequence[Report], comparisons: Comparisons = (), *, interactive: bool = True) -> str:
    """A whole HTML document for one model or several; ``interactive`` brings figures that a reader can change."""
    live = panel(reports) if interactive else None
    several = len(reports) > 1
    title = reports[0].title if not several else "Calibration of " + ", ".join(r.title for r in reports)
    ids = dict.fromkeys(row.id for r in reports for row in r.evaluation.rows)
    first = _together(reports, comparisons, live) if several else None
    models = [_model(r, f"m{i}", several, None if several else live) for i, r in enumerate(reports)]
    again = element("code", "calibrary report saved.json -o page.html")
    said = "Made with calibrary. The JSON of this report makes the same page again: "
    sign = None
    if any(report.about.get("author") for report in reports):
        sign = element("div", each("span", ("Name", "Signature", "Date")), class_="sign")
    main = element("main", first, models, sign, element("footer", said, again, "."))
    return _document(title, reports, main, [_about(id) for id in ids], data_of(reports) if live else None)


def _document(title: str, reports: Sequence[Report], main: Markup, *data: object) -> str:
    """A page with what every page has around its main part, and ``data`` that only the script reads."""
    skip = element("a", "Skip to the answer", class_="skip", href="#m0")
    tip = element("div", id="tip", role="tooltip", hidden=True)
    return document(title, skip, _bar(reports), main, *data, tip, _keys(), style=_style(), script=script())


def section_page(title: str, headline: str, findings: Sequence[str], sections: Sequence[Section]) -> str:
    """A whole HTML document of sections alone, for results other than reports."""
    parts = [
        element("h1", title),
        element("p", headline, class_="headline none"),
        _statements(findings),
        *(_part("m0", s.key, s.title, _section_body(s, "m0")) for s in sections),
    ]
    article = element("article", parts, id="m0", class_="model", data_name=title)
    return _document(title, (), element("main", article, element("footer", "Made with calibrary.")))


@form("fragment")
def fragment(report: Report) -> str:
    """The answer and the whole page in a frame, for a notebook: its script reads nothing of the notebook."""
    frame = {
        "srcdoc": page([report]),
        "title": "The report",
        "sandbox": "allow-scripts allow-downloads allow-modals allow-popups",
        "style": "width:100%;height:50rem;border:1px solid #ccc",
    }
    facts = element("p", facts_words(report.facts)) if report.facts else None
    answer = element("h3", report.title), facts, element("p", report.headline)
    return markup(*answer, start_tag("iframe", frame), end_tag("iframe"))


def resource(name: str) -> str:
    """A file of this folder as text."""
    return (files("calibrary") / "reporting" / name).read_text(encoding="utf-8")


def script() -> Markup:
    """The one script of a page."""
    return own(resource("report.js") + resource("live.js"))


def _style() -> Markup:
    """The style sheet; its dark half serves those whose system is dark and those who choose it here."""
    light, dark = theme_variables("light"), theme_variables("dark")
    rules = re.sub(
        r"@dark\{(.*?)\}",
        rf":root[data-theme=dark]{{\1{dark}}}"
        rf"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{\1{dark}}}}}",
        resource("report.css"),
    )
    return own(f":root{{{light}}}\n{rules}")


# -- what stands around -----------------------------------------------------------------------------


def _bar(reports: Sequence[Report]) -> Markup:
    models = None
    if len(reports) > 1:
        options = [element("option", r.title, value=f"m{i}") for i, r in enumerate(reports)]
        best = reports.index(compared.in_order(reports)[0])  # of many models the page opens with this one
        chosen = element("select", element("option", "all", value=""), options, id="model", data_best=f"m{best}")
        models = element("label", "model ", chosen)
    jump = element("nav", id="jump", aria_label="parts of the page")
    buttons = _button("fold all", id="fold"), _button("dark", id="theme"), _button("?", id="help", aria_label="keys")
    return element("header", jump, models, *buttons, class_="bar")


def _button(text: object, **attributes: object) -> Markup:
    return element("button", text, type="button", **attributes)


def _keys() -> Markup:
    return element("dialog", element("h2", "Keys"), _listed(_KEYS), _button("close", class_="close"), id="keys")


# -- several models ---------------------------------------------------------------------------------


def _together(reports: Sequence[Report], comparisons: Comparisons, live: Markup | None) -> Markup:
    """The beginning of a page of several models: which is better, the numbers behind the answer, and all curves."""
    first, *more = compared.answer(comparisons, reports[0].primary) or ("",)
    clause = re.split(r"; | \(", first, maxsplit=1)[0]
    answer = [element("p", element("strong", clause), first[len(clause) :], class_="headline none")] if first else []
    answer += [_statements(more)] if more else []
    behind = compared.metrics_of(comparisons, reports[0].primary)
    every = _models_table(reports, comparisons, [id for id, _ in compared.heads(reports)])
    few = _models_table(reports, comparisons, behind) if behind else every
    interval = ", with its interval" if len(reports) <= _FEW_MODELS else ""
    differences = (
        f"Last line: the model minus {compared.reference_of(comparisons)}, on the same rows{interval}. Green: "
        "significantly better, red: significantly worse, by the p-values adjusted for all comparisons. If errors and "
        "proper scores disagree, decide by the score."
    )
    return element(
        "header",
        element("h1", f"Calibration of {len(reports)} models"),
        element("div", element("div", answer), _overlay(reports), class_="first"),
        few,
        element("p", differences if comparisons else None, class_="hint"),
        # on paper each model has its own table of them
        element("details", element("summary", "All key numbers of every model"), every, class_="screen")
        if behind
        else None,
        element("div", live, class_="figures") if live else None,
        element("p", _ONE_AT_A_TIME, class_="hint") if len(reports) > _OPENED_TOGETHER else None,
        class_="together",
    )


def _models_table(reports: Sequence[Report], comparisons: Comparisons, ids: Sequence[str]) -> Markup:
    """The numbers of every model, the best by the headline's metric first."""
    names = compared.short_names(reports)
    top = [_sorting_head(f"{capital(name)} ({short})") for short, name in compared.heads(reports) if short in ids]
    head = element("tr", _sorting_head("model"), element("th", "answer", scope="col"), top)
    placed = {id(r): i for i, r in enumerate(reports)}
    rows = [
        _together_row(placed[id(r)], names[placed[id(r)]], r, reports, comparisons, ids)
        for r in compared.in_order(reports)
    ]
    return element("div", _scrolling(_grid(head, rows, "sortable models"), len(reports)), class_="filtered")


def _overlay(reports: Sequence[Report]) -> Markup | None:
    """All curves in one figure beside the answer."""
    drawn = compared.overlay(reports)
    if drawn is None:
        return None
    axis = compared.shared_axis(reports).said
    said = f"Smooth reliability curves, where there are predictions{'; ' + axis if axis else ''}."
    named = enumerate(compared.short_names(reports)) if len(reports) <= _DRAWN_TOGETHER else ()
    legend = [element("b", compared.swatch(i), name, " ") for i, name in named]
    caption = element("figcaption", element("div", legend), said)
    return element("figure", drawn, caption, class_="glance")


def _together_row(
    i: int, name: str, report: Report, reports: Sequence[Report], comparisons: Comparisons, ids: Sequence[str]
) -> Markup:
    tds = [
        element(
            "td",
            element("b", c.text),
            element("span", c.interval, class_="ends"),
            _difference(c, len(reports)),
            data_label=id,
            data_key=_sort_key(c.value),
        )
        for (id, _), c in zip(compared.heads(reports), compared.cells(report, reports, comparisons), strict=True)
        if id in ids
    ]
    verdict = _verdict(_opening(report.headline)[0].strip(), _mood(report))
    link = element("a", name, href=f"#m{i}", data_model=f"m{i}")
    kind = "reference" if name == compared.reference_of(comparisons) else None
    cells = element("td", compared.swatch(i), link), element("td", verdict), tds
    return element("tr", *cells, data_curve=f"m{i}", class_=kind)


def _difference(c: compared.Cell, models: int) -> Markup | None:
    """The difference from the reference; with many models its interval is a tooltip, which saves width."""
    if not c.difference:
        return None
    shown, asked = (c.difference, None) if models <= _FEW_MODELS else (c.difference.partition(" ")[0], c.difference)
    return element("span", shown, class_=f"difference {c.mood}", title=asked)


# -- one model --------------------------------------------------------------------------------------


def _model(report: Report, anchor: str, several: bool, live: Markup | None) -> Markup:
    tail = [s for s in report.sections if s.key == "provenance"]
    body = [s for s in report.sections if s.key != "provenance"]
    keys = {s.key for s in report.sections}
    byline = [(element("b", f"{capital(name)}: "), said) for name, said in report.about.items() if said]
    parts = [
        element("h2" if several else "h1", report.title),
        element("p", each("span", byline), class_="byline") if byline else None,
        element("p", facts_words(report.facts), class_="facts") if report.facts else None,
        element("div", element("div", _answer(report)), _glance(report, anchor), class_="first"),
        _part(anchor, "numbers", "Key numbers", _short_list(report)),
        _part(anchor, "figures", "Figures", _figures(report.figures, f"{anchor}f", live)),
        *(_part(anchor, s.key, s.title, _section_body(s, anchor)) for s in body),
    ]
    if report.groups and "affected" not in keys:
        parts.append(_part(anchor, "groups", "Groups", _long_table(*shared.group_table(report))))
    if report.classes and "classes" not in keys:
        parts.append(_part(anchor, "classes", "Classes", _long_table(*shared.class_table(report))))
    n = len(report.evaluation.rows)
    parts.append(_part(anchor, "metrics", f"Every metric ({n} numbers)", _metrics(report), shut=True))
    counts = {name: f"{fact:,}" if isinstance(fact, int) else fact for name, fact in report.data.items()}
    made: list[Markup | None] = [*(_section_body(s, anchor) for s in tail), _facts("Data", counts)]
    if not tail:  # the table of provenance contains the settings
        made.append(_facts("Settings", report.settings))
    if skipped := report.evaluation.skipped:
        why = _listed((", ".join(ids), why) for why, ids in shared.left_out(report.evaluation).items())
        made.append(element("details", element("summary", f"Not computed ({len(skipped)}), and why"), why))
    if report.notes:
        made += [element("h3", "Notes"), element("ul", each("li", report.notes))]
    parts += [_part(anchor, "provenance", "Provenance", made)]
    return element("article", parts, id=anchor, class_="model", data_name=report.title)


def _part(anchor: str, key: str, title: str, inside: object, shut: bool = False) -> Markup:
    top = element("summary", element("h2", title))
    return element("details", top, inside, class_=f"part part-{key}", id=f"{anchor}-{key}", open=not shut)


def _answer(report: Report) -> Markup:
    first, mark, rest = _opening(report.headline)
    said = element("p", element("strong", first, mark), rest, class_=f"headline {_mood(report)}")
    return markup(said, _statements([*first_lines(report.sections, alpha_for(report.evaluation)), *report.statements]))


def _glance(report: Report, anchor: str) -> Markup | None:
    """The first figure of the page, small, beside the answer; paper and a page without figures do without it."""
    if not report.figures:
        return None
    first = report.figures[0]
    more = element("figcaption", element("a", f"{first.name}.", href=f"#{anchor}-figures"), " All figures are below.")
    return element("figure", placed(first, f"{anchor}glance"), more, class_="glance screen")


def _opening(headline: str) -> tuple[str, str, str]:
    """The first words of a headline up to its first stop, the stop, and the rest; the point of a number is no stop."""
    first, mark, rest = re.match(r"(.*?)(?=[:(]|\.\s|\.?$)([:.]?)(.*)", headline, re.S).groups()  # type: ignore[union-attr]
    return first, mark, rest


def _mood(report: Report) -> str:
    return COLOURS[report.verdict]


def _statements(said: Sequence[str]) -> Markup:
    return element("ul", each("li", map(_statement, said)), class_="findings")


def _statement(text: str) -> object:
    head, colon, rest = text.partition(": ")
    named = len(head) <= _LONGEST_NAME or head.startswith("Remedy for ")
    return (element("b", f"{head}:"), f" {rest}") if colon and named else text


# -- the short list ---------------------------------------------------------------------------------


def _short_list(report: Report) -> Markup:
    rows = [
        _short_row(k, texts, report.verdict)
        for k, texts in zip(report.short_list, shared.short_cells(report), strict=True)
    ]
    heads = ("number", "value", "interval", "between calibrated and useless", "if calibrated", "verdict")
    hint = (
        '"If calibrated": the mean of a calibrated model with these same predictions; '
        "grey: the range of most such models. Useless: predictions without any relation to the outcomes."
    )
    table = _grid(element("tr", each("th", heads, scope="col")), rows, "short")
    return markup(_scrolling(table), element("p", hint, class_="hint"))


def _short_row(k: KeyNumber, texts: Sequence[str], page: str) -> Markup:
    shown = {
        "number": (element("b", capital(k.title)), element("span", k.meaning, class_="name")),
        "value": element("span", texts[1], class_="big", title=repr(k.value)),
        "interval": texts[2],
        "scale": picture_of(k),
        "if calibrated": texts[3],
        "verdict": _verdict(k.verdict, COLOURS[status_of(k.verdict, page)]) if k.verdict else None,
    }
    return element("tr", [element("td", inside, data_label=name) for name, inside in shown.items()], data_id=k.label)


def _verdict(text: str, kind: str) -> Markup:
    return element("span", text, class_=f"v {kind}")


# -- figures, sections, tables ----------------------------------------------------------------------


def _figures(figures: Sequence[Figure], anchor: str, live: Markup | None = None) -> Markup | None:
    """Figures side by side, an odd one at the end in the whole width.

    The still reliability diagram gives way to the one that a reader can change.
    """
    beside = [f for f in figures if f.name != BY_CLASS and not (live and f.name == RELIABILITY)]

    def kind(f: Figure) -> str | None:
        if live and f.name == RELIABILITY:
            return "still"
        if len(figures) == 1:
            return "alone"
        return "odd" if len(beside) % 2 and f is beside[-1] else None

    drawn = []
    for i, f in enumerate(figures):
        caption = element("figcaption", element("b", f"{f.name}."), f" {f.caption}", _numbers(f))
        named = "reliability" if not live and f.name == RELIABILITY else None
        facts = {"class_": kind(f), "data_figure": named, "style": f"--w:{width_of(f)}"}
        drawn.append(element("figure", _picture(f, f"{anchor}{i}"), caption, **facts))
    return element("div", live, drawn, class_="figures") if drawn else None


def _picture(figure: Figure, anchor: str) -> Markup:
    """The picture; in a narrow window another one, if there is one."""
    if figure.narrow is None:
        return placed(figure, anchor)
    slim = replace(figure, draw=figure.narrow)
    both = (("roomy", placed(figure, anchor)), ("slim", placed(slim, f"{anchor}slim")))
    return markup([element("div", drawn, class_=kind) for kind, drawn in both])


def _numbers(figure: Figure) -> Markup | None:
    """The points of a figure as a table, one click away."""
    points = points_of(figure)
    if not points:
        return None
    rows = [element("tr", each("td", lines)) for lines in points]
    return numbers_table(element("tbody", rows))


def _section_body(section: Section, anchor: str) -> Markup:
    said = _statements(section.sentences) if section.sentences else None
    figures = _figures(section.figures, f"{anchor}{section.key}")
    return markup(said, [_section_table(t) for t in section.tables], figures)


def _section_table(table: Table) -> Markup:
    inside = _long_table(table.head, [[shared.cell_text(c) for c in row] for row in table.rows], table.rows)
    if getattr(table, "folded", False):
        return element("details", element("summary", table.caption), inside)
    return markup(element("p", table.caption, class_="caption") if table.caption else None, inside)


def _long_table(head: Sequence[str], rows: Sequence[Sequence[str]], keys: Sequence[Sequence[Any]] = ()) -> Markup:
    """A sortable table; a long one with a search box of its own, scrolling within its frame."""
    table = _scrolling(_table(head, rows, keys or rows), len(rows))
    if len(rows) <= _LONG:
        return table
    return element("div", _tools(f"search {len(rows)} rows", "search rows"), table, class_="filtered")


def _tools(hint: str, name: str, *more: Markup) -> Markup:
    return element("div", element("input", type="search", placeholder=hint, aria_label=name), more, class_="tools")


def _scrolling(table: Markup, n_rows: int = 0) -> Markup:
    """A frame in which a wide or long table scrolls."""
    kind = "scroll long" if n_rows > _LONG else "scroll"
    return element("div", table, class_=kind, role="group", aria_label="table")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], keys: Sequence[Sequence[Any]] = ()) -> Markup:
    """A sortable table; numbers stand below each other."""
    numeric = [_numeric(column, k > 0) for k, column in enumerate(zip(*keys, strict=True))] or [False] * len(head)
    top = [_sorting_head(h, class_="num" if is_number else None) for h, is_number in zip(head, numeric, strict=True)]
    columns = [aligned(c) if is_number else c for c, is_number in zip(zip(*rows, strict=True), numeric, strict=True)]
    body = []
    for row, own_keys in zip(zip(*columns, strict=True), keys or rows, strict=True):
        cells = []
        for text, key, is_number in zip(row, own_keys, numeric, strict=True):
            # a date or an interval is not broken into two lines
            kinds = ["num"] * is_number + ["whole"] * (len(text) <= _SHORT_TEXT)
            cells.append(element("td", text, class_=" ".join(kinds) or None, data_key=_sort_key(key)))
        body.append(element("tr", cells))
    return _grid(element("tr", top), body, "sortable")


def _grid(head: Markup, rows: Sequence[Markup], kind: str | None) -> Markup:
    return element("table", element("thead", head), element("tbody", *rows), class_=kind)


def _sorting_head(head: str, **more: object) -> Markup:
    """The heading of a sortable column; on paper, where repeated headings have no buttons, its text."""
    return element("th", _button(head), scope="col", data_head=head, **more)


def _numeric(column: Sequence[Any], texts: bool) -> bool:
    """Whether every cell of a column that is not empty is a number, or text of one (``texts``)."""
    filled = [key for key in column if key not in (None, "")]
    return bool(filled) and all(
        _NUMBER.fullmatch(key) is not None
        if texts and isinstance(key, str)
        else isinstance(key, int | float) and not isinstance(key, bool)
        for key in filled
    )


def aligned(texts: Sequence[str]) -> list[str]:
    """Numbers of one column with their points below each other: what is missing after them is filled with blanks."""
    after = [len(t.rstrip("%").partition(".")[2]) for t in texts]
    most = max(after, default=0)
    return [t + ("\u2008" if most and not k else "") + "\u2007" * (most - k) for t, k in zip(texts, after, strict=True)]


def _sort_key(key: Any) -> str | None:
    """The sort key of a number; text is its own key."""
    if isinstance(key, bool) or not isinstance(key, int | float) or math.isnan(key):
        return None
    return repr(key).replace("inf", "Infinity")


# -- every metric -----------------------------------------------------------------------------------


def _metrics(report: Report) -> Markup:
    """The table of every metric: sortable, filterable, each row unfolding to its explanation."""
    groups = shared.grouped(report.evaluation)
    options = (element("option", "all groups", value=""), each("option", groups))
    rows = [
        markup(
            element("tr", element("th", title, colspan=len(_COLUMNS), scope="rowgroup"), class_="group"),
            [_metric_row(folded, title, report) for folded in rows],
        )
        for title, rows in groups.items()
    ]
    hint = (
        element("span", "Click a metric for its meaning, a heading to sort. ", class_="screen"),
        "Each interval is for one number alone. p-values are adjusted for all tests of the table, except that of the "
        "metric chosen in advance (★). Scores that also measure sharpness get no verdict on calibration.",
    )
    head = element("tr", [_sorting_head(h) for h in _COLUMNS])
    chosen = element("select", options, aria_label="what it measures")
    tools = _tools("search: ece, proper, slope …", "search metrics", chosen)
    table = _scrolling(_grid(head, rows, "sortable metrics"))
    return element("div", tools, element("p", hint, class_="hint"), table, class_="filtered")


def _metric_row(folded: shared.Folded, group: str, report: Report) -> Markup:
    evaluation = report.evaluation
    row, texts = folded.row, shared.folded_cells(folded, evaluation)
    p = pvalue_of(row)
    start = row.value if row.low is None or math.isnan(row.low) else row.low
    keys: list[Any] = [None, row.value, start, row.expected_by_chance, p, row.perfect, None]
    shown: list[object] = list(texts[: len(_COLUMNS)])
    name = _button(f"{texts[0]} ★" if row.primary else texts[0], class_="more", aria_expanded="false")
    shown[0] = (name, element("span", texts[-1], class_="name"))
    if texts[6]:
        shown[6] = _verdict(texts[6], COLOURS[status_of(texts[6], report.verdict)])
    tds = [
        element("td", inside, data_label=head, data_key=_sort_key(key))
        for head, inside, key in zip(_COLUMNS, shown, keys, strict=True)
    ]
    known = finding(row.id, evaluation.n, evaluation.n_classes).sentence  # shown when the row is unfolded
    facts = {"data_id": folded.label, "data_about": f"about-{row.id}", "data_group": group}
    more = {"data_note": row.note or None, "data_study": f"In the study: {known}." if known else None}
    return element("tr", tds, class_="row", **facts, **more)


def _about(id: str) -> Markup:
    """The meaning of a metric, once per page; an unfolded row shows a copy."""
    entry = catalogue[id]
    facts = [("Use it", entry.use), ("Caution", entry.avoid), ("Defined in", entry.place), ("Cost", entry.cost)]
    facts += [(f"Erratum: {c.fact}", c.statement) for c in entry.corrections]
    meaning = (element("p", element("b", entry.meaning)), element("p", f"{capital(entry.sign)}."))
    return element("template", meaning, _listed(facts), id=f"about-{id}")


def _listed(facts: Iterable[tuple[object, object]]) -> Markup:
    return element("dl", [(element("dt", name), element("dd", said)) for name, said in facts])


def _facts(title: str, facts: dict[str, Any]) -> Markup:
    said = _listed((k, number(v) if isinstance(v, float) else str(v)) for k, v in facts.items())
    return element("details", element("summary", title), said)
