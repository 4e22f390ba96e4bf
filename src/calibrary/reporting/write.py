"""Writing reports: the ending chooses the form, and a file is either whole or not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrary._files import check_writable, write_atomically
from calibrary.reporting import html, text
from calibrary.reporting.model import Report, form
from calibrary.reporting.text import Comparisons

ENDINGS = (".html", ".md", ".json", ".csv")


def check_paths(paths: Sequence[str | Path]) -> None:
    """Refuse endings we cannot write and places where nothing can be written, before any work is done."""
    for path in map(Path, paths):
        if path.suffix not in ENDINGS:
            raise ValueError(f"{path}: the ending chooses the form, one of {', '.join(ENDINGS)}")
        check_writable(path)


@form("save")
def save(reports: Sequence[Report], paths: Sequence[str | Path], comparisons: Comparisons = ()) -> None:
    """Write the report(s) to every path."""
    check_paths(paths)
    for path in map(Path, paths):
        if path.suffix == ".html":
            content = html.page(reports, comparisons)
        elif path.suffix == ".md":
            content = text.markdown(reports, comparisons)
        elif path.suffix == ".json":
            content = text.as_json(reports, comparisons)
        else:
            content = text.as_csv(reports)
        write_atomically(path, content.encode("utf-8", "replace"))
