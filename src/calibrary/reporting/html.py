"""The report as one self-contained page: no network, light and dark, phone and paper."""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from calibrary.base.numbers import number
from calibrary.base.text import capital, content_security_policy
from calibrary.base.text import for_html as escape
from calibrary.evaluation import Evaluation, Row
from calibrary.lookup import catalogue
from calibrary.lookup.study_findings import finding
from calibrary.reporting import together
from calibrary.reporting.agreement import pvalue_of
from calibrary.reporting.figures import placed, theme_variables
from calibrary.reporting.metric_table import Folded, grouped, left_out
from calibrary.reporting.model import Report, form
from calibrary.reporting.scale import picture_of
from calibrary.reporting.sections import Figure, Section, Table
from calibrary.reporting.short import KeyNumber
from calibrary.reporting.stored import Comparisons
from calibrary.reporting.text import (
    CLASS_HEAD,
    GROUP_HEAD,
    HEAD,
    SHORT_HEAD,
    cell_text,
    class_cells,
    folded_cells,
    group_cells,
    short_cells,
)

#: The page writes a metric's name under its id, not in a column of its own.
_COLUMNS = HEAD[:-1]
#: Tables of more rows than this get a search box and scroll within their frame.
_LONG = 30
#: What stands before a colon is the name of a finding if it is no longer than this.
_LONGEST_NAME = 24
#: Up to so many models a table has room for the intervals of their differences.
_FEW_MODELS = 6
#: Characters up to which the text of a cell stays in one line.
_SHORT_TEXT = 17
_NOTEBOOK = itertools.count()


@form("page")
def page(reports: Sequence[Report], comparisons: Comparisons = ()) -> str:
    """A whole HTML document for one model or several."""
    script = _resource("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = content_security_policy(f"'sha256-{digest}'")
    several = len(reports) > 1
    title = escape(reports[0].title if not several else "Calibration of " + ", ".join(r.title for r in reports))
    body = _together(reports, comparisons) if several else ""
    body += "\n".join(_model(r, f"m{i}", several) for i, r in enumerate(reports))
    ids = dict.fromkeys(row.id for r in reports for row in r.evaluation.rows)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_style()}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#m0">Skip to the answer</a>\n{_bar(reports)}<main>\n'
        f"{body}\n<footer>Made with calibrary. The JSON of this report makes the same page again: "
        "<code>calibrary report saved.json -o page.html</code>.</footer>\n</main>\n"
        f'{"".join(map(_about, ids))}<div id="tip" role="tooltip" hidden></div>\n{_KEYS}\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


@form("fragment")
def fragment(report: Report) -> str:
    """The answer, the short list and the figures, for a notebook."""
    anchor = f"cal{next(_NOTEBOOK)}"
    drawn = "".join(
        f'<div style="flex:1 1 20rem;max-width:28rem">{placed(f, f"{anchor}f{i}")}</div>'
        for i, f in enumerate(report.figures)
    )
    return (
        f"<h3>{escape(report.title)}</h3><p>{escape(report.headline)}</p>"
        f"<ul>{''.join(f'<li>{escape(f)}</li>' for f in report.statements)}</ul>"
        f"{_table(SHORT_HEAD, short_cells(report))}"
        f'<div style="display:flex;flex-wrap:wrap;gap:1rem">{drawn}</div>'
    )


def _resource(name: str) -> str:
    return (files("calibrary") / "reporting" / name).read_text(encoding="utf-8")


def _style() -> str:
    """The style sheet; its dark half serves those whose system is dark and those who choose it here."""
    light, dark = theme_variables("light"), theme_variables("dark")
    sheet = re.sub(
        r"@dark\{(.*?)\}",
        rf":root[data-theme=dark]{{\1{dark}}}"
        rf"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{\1{dark}}}}}",
        _resource("report.css"),
    )
    return f":root{{{light}}}\n{sheet}"


# -- what stands above ------------------------------------------------------------------------------

_KEYS = """<dialog id="keys"><h2>Keys</h2><dl><dt>j, k</dt><dd>next and previous part</dd><dt>1 to 9</dt>
<dd>jump to a part</dd><dt>/</dt><dd>search the metrics</dd><dt>[, ]</dt><dd>previous and next model</dd><dt>d</dt>
<dd>dark or light</dd><dt>?</dt><dd>these keys</dd></dl><button type="button" class="close">close</button></dialog>"""


def _bar(reports: Sequence[Report]) -> str:
    models = ""
    if len(reports) > 1:
        options = "".join(f'<option value="m{i}">{escape(r.title)}</option>' for i, r in enumerate(reports))
        models = f'<label>model <select id="model"><option value="">all</option>{options}</select></label>'
    return (
        f'<div class="bar"><nav id="jump" aria-label="parts of the page"></nav>{models}'
        '<button type="button" id="fold">fold all</button><button type="button" id="theme">dark</button>'
        '<button type="button" id="help" aria-label="keys">?</button></div>\n'
    )


# -- several models ---------------------------------------------------------------------------------


def _together(reports: Sequence[Report], comparisons: Comparisons) -> str:
    """What is read first of several models: the short list of each, differences from the first, all curves."""
    names = together.short_names(reports)
    top = "".join(_sorting_head(id, f' title="{escape(name)}"') for id, name in together.heads(reports))
    rows = "".join(_together_row(i, names[i], r, reports, comparisons) for i, r in enumerate(reports))
    figure = together.overlay(reports)
    drawn = (
        f'<figure class="alone">{figure}<figcaption><b>All models.</b> Smooth reliability curves, drawn where there '
        "are predictions. Closer to the diagonal is better. Point at a curve or a row to tell which is "
        "which.</figcaption></figure>"
        if figure
        else ""
    )
    interval = ", with its interval" if len(reports) <= _FEW_MODELS else ""
    differences = (
        f"Last line: the difference from {escape(names[0])} on the same rows{interval}; green is better, red worse, "
        "beyond chance among all these comparisons. Where errors and proper scores disagree, decide by the score."
        if comparisons
        else ""
    )
    return (
        f'<header class="together"><h1>Calibration of {len(reports)} models</h1><div class="filtered">'
        f'<div class="scroll{" long" if len(reports) > _LONG else ""}"><table class="sortable models"><thead><tr>'
        f'{_sorting_head("model")}<th scope="col">answer</th>{top}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div></div><p class="hint">{differences}</p>{drawn}</header>'
    )


def _together_row(i: int, name: str, report: Report, reports: Sequence[Report], comparisons: Comparisons) -> str:
    tds = "".join(
        f'<td data-label="{escape(id)}"{_sort_key(c.value)}><b>{c.text}</b><span class="ends">{c.interval}</span>'
        + _difference(c, len(reports))
        + "</td>"
        for (id, _), c in zip(together.heads(reports), together.cells(report, reports, comparisons), strict=True)
    )
    verdict = re.match(r"[^:.(]*", report.headline)
    said = verdict[0].strip() if verdict else ""
    kind = ' class="reference"' if i == 0 and comparisons else ""
    return (
        f'<tr data-curve="m{i}"{kind}><td>{together.swatch(i)}<a href="#m{i}" data-model="m{i}">{escape(name)}</a></td>'
        f'<td><span class="v {_mood(report.headline)}">{escape(said)}</span></td>{tds}</tr>'
    )


def _difference(c: together.Cell, models: int) -> str:
    """How far from the reference; of many models the interval is told when asked, so that more of them are seen."""
    if not c.difference:
        return ""
    few = models <= _FEW_MODELS
    shown, asked = (c.difference, "") if few else (c.difference.partition(" ")[0], f' title="{escape(c.difference)}"')
    return f'<span class="difference {c.mood}"{asked}>{escape(shown)}</span>'


# -- one model --------------------------------------------------------------------------------------


def _model(report: Report, anchor: str, several: bool) -> str:
    tail = [s for s in report.sections if s.key == "provenance"]
    body = [s for s in report.sections if s.key != "provenance"]
    keys = {s.key for s in report.sections}
    parts = [
        f'<article id="{anchor}" class="model" data-name="{escape(report.title)}">',
        f"<{'h2' if several else 'h1'}>{escape(report.title)}</{'h2' if several else 'h1'}>",
        _answer(report),
        _part(anchor, "numbers", "Key numbers", _short_list(report)),
        _part(anchor, "figures", "Figures", _figures(report.figures, f"{anchor}f")),
        *(_section(s, anchor) for s in body),
    ]
    if report.groups and "affected" not in keys:
        parts.append(_part(anchor, "groups", "Groups", _long_table(GROUP_HEAD, group_cells(report))))
    if report.classes and "classes" not in keys:
        parts.append(_part(anchor, "classes", "Classes", _long_table(CLASS_HEAD, class_cells(report))))
    n = len(report.evaluation.rows)
    parts.append(_part(anchor, "metrics", f"Every metric ({n} numbers)", _metrics(report), shut=True))
    made = "".join(_section_body(s, anchor) for s in tail) + _facts("Data", report.data)
    made += _facts("Settings", report.settings) + _skipped(report)
    if report.notes:
        made += "<h3>Notes</h3><ul>" + "".join(f"<li>{escape(n)}</li>" for n in report.notes) + "</ul>"
    parts.append(_part(anchor, "provenance", "Provenance", made))
    return "\n".join([*parts, "</article>"])


def _part(anchor: str, key: str, title: str, inside: str, shut: bool = False) -> str:
    return (
        f'<details class="part part-{escape(key)}" id="{escape(anchor)}-{escape(key)}"{"" if shut else " open"}>'
        f"<summary><h2>{escape(title)}</h2></summary>{inside}</details>"
    )


def _answer(report: Report) -> str:
    first, mark, rest = re.match(r"([^:.(]*)([:.]?)(.*)", report.headline, re.S).groups()  # type: ignore[union-attr]
    said = f"<strong>{escape(first)}{mark}</strong>{escape(rest)}"
    statements = "".join(f"<li>{_statement(f)}</li>" for f in report.statements)
    return f'<p class="headline {_mood(report.headline)}">{said}</p><ul class="findings">{statements}</ul>'


def _mood(headline: str) -> str:
    if headline.startswith(("Not calibrated", "The probabilities are not")):
        return "bad"
    return "ok" if headline.startswith("No evidence") else "none"


def _statement(text: str) -> str:
    head, colon, rest = text.partition(": ")
    name = colon and len(head) <= _LONGEST_NAME
    return f"<b>{escape(head)}:</b> {escape(rest)}" if name else escape(text)


# -- the short list ---------------------------------------------------------------------------------


def _short_list(report: Report) -> str:
    rows = "".join(_short_row(k, texts) for k, texts in zip(report.short_list, short_cells(report), strict=True))
    heads = ("number", "value", "interval", "between calibrated and useless", "if calibrated", "verdict")
    top = "".join(f'<th scope="col">{h}</th>' for h in heads)
    return (
        f'<div class="scroll"><table class="short"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'
        '<p class="hint">"If calibrated": what a calibrated model with these very predictions would read on average; '
        "grey, where most such models lie. Useless: predictions that have nothing to do with the outcomes.</p>"
    )


def _short_row(k: KeyNumber, texts: Sequence[str]) -> str:
    shown = (
        ("number", f"<b>{escape(capital(k.name))}</b>{_part_of(k)}<span class='name'>{escape(k.meaning)}</span>"),
        ("value", f'<span class="big" title="{k.value!r}">{texts[1]}</span>'),
        ("interval", escape(texts[2])),
        ("scale", picture_of(k)),
        ("if calibrated", escape(texts[3])),
        ("verdict", f'<span class="v {_verdict_class(k.verdict)}">{escape(k.verdict)}</span>' if k.verdict else ""),
    )
    tds = "".join(f'<td data-label="{name}">{inside}</td>' for name, inside in shown)
    return f'<tr data-id="{escape(k.label)}">{tds}</tr>'


def _part_of(k: KeyNumber) -> str:
    return f" ({escape(k.part)})" if k.part else ""


# -- figures, sections, tables ----------------------------------------------------------------------


def _figures(figures: Sequence[Figure], anchor: str) -> str:
    kind = ' class="alone"' if len(figures) == 1 else ""
    drawn = "".join(
        f"<figure{kind}>{placed(f, f'{anchor}{i}')}<figcaption><b>{escape(f.name)}.</b> {escape(f.caption)}"
        "</figcaption></figure>"
        for i, f in enumerate(figures)
    )
    return f'<div class="figures">{drawn}</div>' if drawn else ""


def _section(section: Section, anchor: str) -> str:
    return _part(anchor, section.key, section.title, _section_body(section, anchor))


def _section_body(section: Section, anchor: str) -> str:
    said = "".join(f"<li>{_statement(s)}</li>" for s in section.sentences)
    parts = [f'<ul class="findings">{said}</ul>' if said else ""]
    parts += [_section_table(t) for t in section.tables]
    parts.append(_figures(section.figures, f"{anchor}{section.key}"))
    return "".join(parts)


def _section_table(table: Table) -> str:
    inside = _long_table(table.head, [[cell_text(c) for c in row] for row in table.rows], table.rows)
    if getattr(table, "folded", False):
        return f"<details><summary>{escape(table.caption)}</summary>{inside}</details>"
    return (f"<p class='caption'>{escape(table.caption)}</p>" if table.caption else "") + inside


def _long_table(head: Sequence[str], rows: Sequence[Sequence[str]], keys: Sequence[Sequence[Any]] = ()) -> str:
    """A sortable table; a long one with a search box of its own, scrolling within its frame."""
    table = _table(head, rows, keys or rows, sortable=True)
    if len(rows) <= _LONG:
        return f'<div class="scroll">{table}</div>'
    box = (
        f'<div class="tools"><input type="search" placeholder="search {len(rows)} rows" aria-label="search rows"></div>'
    )
    return f'<div class="filtered">{box}<div class="scroll long">{table}</div></div>'


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], keys: Sequence[Sequence[Any]] = (), sortable: bool = False
) -> str:
    top = "".join(_sorting_head(h) if sortable else f'<th scope="col">{escape(h)}</th>' for h in head)
    body = "".join(
        "<tr>" + "".join(_td(text, key) for text, key in zip(row, own, strict=True)) + "</tr>"
        for row, own in zip(rows, keys or rows, strict=True)
    )
    kind = ' class="sortable"' if sortable else ""
    return f"<table{kind}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _sorting_head(head: str, more: str = "") -> str:
    """The head of a column that sorts; on paper, where a head is repeated without its buttons, its text."""
    return f'<th scope="col" data-head="{escape(head)}"{more}><button type="button">{escape(head)}</button></th>'


def _td(text: str, key: Any) -> str:
    # a date or an interval in two lines is read twice
    whole = ' class="whole"' if len(text) <= _SHORT_TEXT else ""
    return f"<td{whole}{_sort_key(key)}>{escape(text)}</td>"


def _sort_key(key: Any) -> str:
    """What a number is sorted by; text is sorted by itself."""
    if isinstance(key, bool) or not isinstance(key, int | float) or math.isnan(key):
        return ""
    return f' data-key="{repr(key).replace("inf", "Infinity")}"'


# -- every metric -----------------------------------------------------------------------------------


def _metrics(report: Report) -> str:
    """The table of every metric: sortable, filterable, each row unfolding to its explanation."""
    groups = grouped(report.evaluation)
    options = "".join(f"<option>{escape(title)}</option>" for title in groups)
    head = "".join(_sorting_head(h) for h in _COLUMNS)
    body = "".join(
        f'<tr class="group"><th colspan="{len(_COLUMNS)}" scope="rowgroup">{escape(title)}</th></tr>'
        + "".join(_metric_row(folded, title, report.evaluation) for folded in rows)
        for title, rows in groups.items()
    )
    return (
        '<div class="filtered"><div class="tools"><input type="search" placeholder="search: ece, proper, slope …" '
        'aria-label="search metrics"><select aria-label="what it measures">'
        f'<option value="">all groups</option>{options}</select></div>\n'
        '<p class="hint">Click a metric for its meaning, a heading to sort. Intervals are of each number alone; '
        "p-values are adjusted for testing many at once, but for the one chosen in advance (★). Scores that also "
        "measure sharpness get no verdict.</p>\n"
        f'<div class="scroll"><table class="sortable metrics"><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        "</table></div></div>"
    )


def _metric_row(folded: Folded, group: str, evaluation: Evaluation) -> str:
    row, texts = folded.row, folded_cells(folded, evaluation)
    p = pvalue_of(row)
    start = row.value if row.low is None or math.isnan(row.low) else row.low
    keys: list[Any] = [None, row.value, start, row.null_mean, p, row.perfect, None]
    tds = []
    for i, (text, key) in enumerate(zip(texts[: len(_COLUMNS)], keys, strict=True)):
        shown = escape(text)
        if i == 0:
            star = " ★" if row.primary else ""
            shown = f'<button type="button" class="more" aria-expanded="false">{shown}{star}</button>'
            shown += f'<span class="name">{escape(texts[-1])}</span>'
        if i == 6 and text:
            shown = f'<span class="v {_verdict_class(text)}">{shown}</span>'
        tds.append(f'<td data-label="{escape(HEAD[i])}"{_sort_key(key)}>{shown}</td>')
    note = (f' data-note="{escape(row.note)}"' if row.note else "") + _of_study(row, evaluation)
    return (
        f'<tr class="row" data-id="{escape(folded.label)}" data-about="about-{escape(row.id)}" '
        f'data-group="{escape(group)}"{note}>{"".join(tds)}</tr>'
    )


def _of_study(row: Row, evaluation: Evaluation) -> str:
    """What the study found of the metric at this N, for the row when it is unfolded."""
    known = finding(row.id, evaluation.n, evaluation.n_classes).sentence
    return f' data-study="{escape(f"In the study: {known}.")}"' if known else ""


def _about(id: str) -> str:
    """What a metric means, once per page; a row clones it when it is unfolded."""
    entry = catalogue[id]
    said = (
        f"<p><b>{escape(entry.meaning)}</b></p><p>{escape(entry.sign)}.</p>"
        f"<dl><dt>Use it</dt><dd>{escape(entry.use)}</dd><dt>Do not</dt><dd>{escape(entry.avoid)}</dd>"
        f"<dt>Defined in</dt><dd>{escape(entry.place)}</dd><dt>Cost</dt><dd>{escape(entry.cost)}</dd>"
    )
    for c in entry.corrections:
        said += f"<dt>Erratum: {escape(c.fact)}</dt><dd>review: {escape(c.review)}; here: {escape(c.ours)}</dd>"
    return f'<template id="about-{escape(id)}">{said}</dl></template>\n'


def _verdict_class(text: str) -> str:
    said = {"miscalibrated": "bad", "probably miscalibrated": "warn", "no evidence against": "ok"}
    if text.startswith("unclear"):
        return "warn"
    return "ok" if text.endswith("within chance") else said.get(text, "none")


def _skipped(report: Report) -> str:
    if not report.evaluation.skipped:
        return ""
    rows = "".join(
        f"<dt>{escape(', '.join(ids))}</dt><dd>{escape(why)}</dd>" for why, ids in left_out(report.evaluation).items()
    )
    n = len(report.evaluation.skipped)
    return f"<details><summary>Not computed ({n}), and why</summary><dl>{rows}</dl></details>"


def _facts(title: str, facts: dict[str, Any]) -> str:
    rows = "".join(
        f"<dt>{escape(k)}</dt><dd>{escape(number(v) if isinstance(v, float) else str(v))}</dd>"
        for k, v in facts.items()
    )
    return f"<details><summary>{escape(title)}</summary><dl>{rows}</dl></details>"
