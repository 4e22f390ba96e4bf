"""Write reports: the file name's extension chooses the format, and a file is written completely or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrary.base.files import check_writable, write_atomically
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
