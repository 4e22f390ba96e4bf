"""The report as one self-contained page: no network, light and dark, phone and paper."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from calibrary._text import for_html as escape
from calibrary.data import Matches, Predictions
from calibrary.inference.decision import headline_view
from calibrary.lookup import catalogue
from calibrary.question import Question
from calibrary.reporting.model import Report, form
from calibrary.reporting.text import (
    CLASS_HEAD,
    COMPARISON_HEAD,
    GROUP_HEAD,
    HEAD,
    Comparisons,
    cells,
    class_cells,
    comparison_cells,
    group_cells,
    number,
)

#: The page writes a metric's name under its id, not in a column of its own.
_COLUMNS = HEAD[:-1]


@form("page")
def page(reports: Sequence[Report], comparisons: Comparisons = ()) -> str:
    """A whole HTML document for one model or several."""
    style = _resource("report.css")
    script = _resource("report.js")
    title = escape(reports[0].title if len(reports) == 1 else "Calibration of " + ", ".join(r.title for r in reports))
    body = "\n".join(_model(r, f"m{i}", several=len(reports) > 1) for i, r in enumerate(reports))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        f"{_models_nav(reports, comparisons)}{body}\n"
        "<footer>Made with calibrary. Every number can be computed again from the settings above.</footer>\n"
        f"</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


@form("fragment")
def fragment(report: Report) -> str:
    """The headline and the table, for a notebook."""
    return (
        f"<h3>{escape(report.title)}</h3><p>{escape(report.headline)}</p>"
        f"<ul>{''.join(f'<li>{escape(f)}</li>' for f in report.findings)}</ul>{_table(HEAD, cells(report))}"
    )


def _resource(name: str) -> str:
    return (files("calibrary") / "reporting" / name).read_text(encoding="utf-8")


def _models_nav(reports: Sequence[Report], comparisons: Comparisons) -> str:
    if len(reports) == 1:
        return ""
    links = "".join(f'<a href="#m{i}">{escape(r.title)}</a>' for i, r in enumerate(reports))
    table = _table(COMPARISON_HEAD, comparison_cells(comparisons)) if comparisons else ""
    note = (
        "<p class='hint'>Differences are model a minus model b on the same rows. Plug-in calibration errors are biased "
        "differently for well and badly calibrated models: decide with the proper score where the two disagree.</p>"
        if comparisons
        else ""
    )
    return (
        f"<header><h1>Calibration of {len(reports)} models</h1><nav>{links}</nav>"
        f"<div class='scroll'>{table}</div>{note}</header>"
    )


def _model(report: Report, anchor: str, several: bool) -> str:
    level = "h2" if several else "h1"
    findings = "".join(f"<li>{_finding(f)}</li>" for f in report.findings)
    parts = [
        f'<section id="{anchor}" class="model"><{level}>{escape(report.title)}</{level}>',
        f'<p class="headline">{escape(report.headline)}</p>',
        f'<ul class="findings">{findings}</ul>',
        '<div class="figures">' + "".join(f"<figure>{svg}</figure>" for svg in _figures(report, anchor)) + "</div>",
    ]
    if report.groups:
        parts.append("<h3>Groups</h3>" + _scrolling(_table(GROUP_HEAD, group_cells(report))))
    if report.classes:
        parts.append("<h3>Classes</h3>" + _scrolling(_table(CLASS_HEAD, class_cells(report))))
    parts += [_metrics(report), _skipped(report), _facts("Data", report.data)]
    parts.append(_facts("Settings, to make this report again", report.settings))
    if report.notes:
        parts.append("<h3>Notes</h3><ul>" + "".join(f"<li>{escape(n)}</li>" for n in report.notes) + "</ul>")
    return "\n".join([*parts, "</section>"])


def _finding(text: str) -> str:
    head, colon, rest = text.partition(": ")
    return f"<b>{escape(head)}:</b> {escape(rest)}" if colon else escape(text)


def _scrolling(table: str) -> str:
    return f'<div class="scroll">{table}</div>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _metrics(report: Report) -> str:
    """The table of every metric: sortable, filterable, each row unfolding to its explanation."""
    families = list(dict.fromkeys(r.family for r in report.evaluation.rows))
    options = "".join(f'<option value="{f}">{f}</option>' for f in families)
    head = "".join(f'<th scope="col"><button type="button">{escape(h)}</button></th>' for h in _COLUMNS)
    rows = list(zip(report.evaluation.rows, cells(report), strict=True))
    body = "".join(
        f'<tr class="family"><th colspan="{len(_COLUMNS)}" scope="rowgroup">{f} family</th></tr>'
        + "".join(_metric_row(row, texts) for row, texts in rows if row.family == f)
        for f in families
    )
    return (
        '<h3>Every metric that applies</h3>\n<div class="tools"><input type="search" placeholder="filter: ece, proper, '
        'miscalibrated …" aria-label="filter metrics"><select aria-label="family">'
        f'<option value="">all families</option>{options}</select></div>\n'
        '<p class="hint">Click a metric for its meaning, a heading to sort. p-values are adjusted for testing many '
        "metrics at once; the primary metric, marked ★, was chosen in advance and is not.</p>\n"
        f'<div class="scroll"><table class="metrics"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _metric_row(row: Any, texts: Sequence[str]) -> str:
    entry = catalogue[row.id]
    p = row.pvalue if row.primary else row.pvalue_adjusted
    start = row.value if row.low is None else row.low
    values = [texts[0], row.value, start, p, row.range[0], row.perfect, texts[6]]
    tds = []
    for i, (text, key) in enumerate(zip(texts[: len(_COLUMNS)], values, strict=True)):
        sort = "" if key is None else escape(str(key))
        shown = escape(text)
        if i == 0:
            star = " ★" if row.primary else ""
            shown = f'<button type="button" class="more" aria-expanded="false">{shown}{star}</button>'
            shown += f'<span class="name">{escape(row.name)}</span>'
        if i == 6 and text:
            shown = f'<span class="v {_verdict_class(text)}">{shown}</span>'
        tds.append(f'<td data-label="{escape(HEAD[i])}" data-key="{sort}">{shown}</td>')
    about = (
        f"<p><b>{escape(entry.meaning)}</b></p><p>{escape(entry.sign)}.</p>"
        f"<dl><dt>Use it</dt><dd>{escape(entry.use)}</dd><dt>Do not</dt><dd>{escape(entry.avoid)}</dd>"
        f"<dt>Defined in</dt><dd>{escape(entry.place)}</dd><dt>Cost</dt><dd>{escape(entry.cost)}</dd>"
    )
    if row.null_mean is not None:
        about += f"<dt>If calibrated</dt><dd>about {number(row.null_mean)} on these confidences</dd>"
    for c in entry.corrections:
        about += f"<dt>Erratum: {escape(c.fact)}</dt><dd>review: {escape(c.review)}; here: {escape(c.ours)}</dd>"
    about += "</dl>"
    if row.note:
        about += f"<p class='caution'>{escape(row.note)}</p>"
    return (
        f'<tr class="row" data-family="{escape(row.family)}">{"".join(tds)}</tr>'
        f'<tr class="about" hidden><td colspan="{len(_COLUMNS)}">{about}</td></tr>'
    )


def _verdict_class(text: str) -> str:
    return {"miscalibrated": "bad", "probably miscalibrated": "warn", "no evidence against": "ok"}.get(text, "none")


def _skipped(report: Report) -> str:
    if not report.evaluation.skipped:
        return ""
    rows = "".join(f"<dt>{escape(id)}</dt><dd>{escape(why)}</dd>" for id, why in report.evaluation.skipped.items())
    n = len(report.evaluation.skipped)
    return f"<details><summary>Not computed ({n}), and why</summary><dl>{rows}</dl></details>"


def _facts(title: str, facts: dict[str, Any]) -> str:
    rows = "".join(
        f"<dt>{escape(k)}</dt><dd>{escape(f'{v:.4g}' if isinstance(v, float) else str(v))}</dd>"
        for k, v in facts.items()
    )
    return f"<details><summary>{escape(title)}</summary><dl>{rows}</dl></details>"


def _figures(report: Report, anchor: str) -> list[str]:
    """The telling figures one by one, so that a narrow screen can stack them."""
    from calibrary import plots

    with plots.embedded():
        return [
            _inline_svg(getattr(made, "figure", made), f"{anchor}f{i}") for i, made in enumerate(_drawn(report)) if made
        ]


def _drawn(report: Report) -> list[Any]:
    return _figures_of(report.predictions, report.question)


@functools.singledispatch
def _figures_of(data: Any, question: Question) -> list[Any]:
    """The telling figures of one kind of data, all about the view the headline is about."""
    raise TypeError(f"{type(data).__name__} has no figures")


@_figures_of.register
def _(data: Predictions, question: Question) -> list[Any]:
    from calibrary import plots

    _, lens = headline_view(data, question)
    seen: dict[str, Any] = {"lens": lens, "confidence_level": question.confidence_level}
    drawn = [
        plots.plot_reliability(data, n_bins=question.options.get("n_bins", 15), **seen),
        plots.plot_smooth_reliability(data, **seen),
        plots.plot_cumulative(data, lens=lens),
        plots.plot_corp(data, **seen),
    ]
    return [*drawn, plots.small_multiples(data)] if 2 < data.k <= 36 else drawn


@_figures_of.register
def _(data: Matches, question: Question) -> list[Any]:
    from calibrary import plots

    return [
        plots.plot_detection_reliability(data),
        _map_if_possible(data),
        plots.plot_smooth_reliability(data),
        plots.plot_cumulative(data),
    ]


def _map_if_possible(matches: Any) -> Any:
    from calibrary import plots

    return plots.plot_d_ece_map(matches) if matches.image_size is not None and matches.box is not None else None


def _inline_svg(figure: Any, anchor: str) -> str:
    """A figure as inline SVG whose ids cannot meet those of another figure on the page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{anchor}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{anchor}-", svg)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", svg, count=1)
    return svg.replace("<svg ", '<svg role="img" aria-label="calibration figure" ', 1)
