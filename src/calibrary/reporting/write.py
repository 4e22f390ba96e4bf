"""Write reports: the file name's extension chooses the format, and a file is written completely or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from calibrary.base.files import check_writable, write_atomically
from calibrary.base.markup import Markup, document, each, element, own
from calibrary.base.text import plain
from calibrary.reporting import html, pdf, stored, text
from calibrary.reporting.figures import draw_in_processes
from calibrary.reporting.model import Report, form
from calibrary.reporting.text import Comparisons

ENDINGS = (".html", ".pdf", ".md", ".json", ".csv")
#: The formats that include figures.
_DRAWN = (".html", ".pdf", ".json")


def check_paths(paths: Sequence[str | Path]) -> None:
    """Refuse unknown extensions and folders that cannot be written to, before any computation."""
    for path in map(Path, paths):
        if path.suffix not in ENDINGS:
            raise ValueError(f"{path}: the extension chooses the format, and must be one of {', '.join(ENDINGS)}")
        check_writable(path)
        if path.suffix == ".pdf":
            pdf.browser()


@form("save")
def save(
    reports: Sequence[Report], paths: Sequence[str | Path], comparisons: Comparisons = (), *, interactive: bool = True
) -> None:
    """Write the report(s) to every path."""
    check_paths(paths)
    for report in reports if any(Path(path).suffix in _DRAWN for path in paths) else ():
        figures = [*report.figures, *(figure for section in report.sections for figure in section.figures)]
        draw_in_processes(figures, report.question.workers or 1)
    for path in map(Path, paths):
        write_atomically(path, _content(path.suffix, reports, comparisons, interactive))


def _content(ending: str, reports: Sequence[Report], comparisons: Comparisons, interactive: bool) -> bytes:
    if ending == ".pdf":
        return pdf.pdf(html.page(reports, comparisons, interactive=False))
    if ending == ".html":
        content = html.page(reports, comparisons, interactive=interactive)
    elif ending == ".md":
        content = text.markdown(reports, comparisons)
    elif ending == ".json":
        content = stored.as_json(reports, comparisons)
    else:
        content = text.as_csv(reports)
    return content.encode("utf-8", "replace")  # names may contain lone surrogates


# -- the page that leads to many reports: one line each, with its answer ---------------------------


@dataclass(frozen=True)
class IndexLine:
    """A file with the link to its report, or the reason why there is none."""

    source: str
    link: str
    headline: str
    cells: tuple[str, ...] = ()
    failed: bool = False


Line = IndexLine  # its name in 0.2, which pickles and imports may have


_STYLE = own(html.resource("index.css"))


def index(title: str, head: Sequence[str], lines: Sequence[IndexLine]) -> str:
    """The whole page; ``head`` names the cells of each line."""
    top = element("thead", element("tr", each("th", ("file", *head, "answer"))))
    rows = element("tbody", [_row(line, len(head)) for line in lines])
    title = plain(title)
    failed = sum(line.failed for line in lines)
    said = f"{len(lines) - failed} reports{f'; {failed} could not be made' if failed else ''}."
    body = (element("h1", title), element("p", said), element("table", top, rows))
    return document(title, *body, style=_STYLE)


def _row(line: IndexLine, n_cells: int) -> Markup:
    name = plain(line.source)
    if line.failed:
        why = element("td", line.headline, class_="failed", colspan=n_cells + 1)
        return element("tr", element("td", name), why)
    link = element("td", element("a", name, href=quote(line.link)))
    return element("tr", link, each("td", line.cells, class_="number"), element("td", line.headline))
