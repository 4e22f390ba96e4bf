"""Writing reports: the ending chooses the form, and a file is either whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from calibrary.reporting import html, text
from calibrary.reporting.model import Report, form
from calibrary.reporting.text import Comparisons

ENDINGS = (".html", ".md", ".json", ".csv")


def check_paths(paths: Sequence[str | Path]) -> None:
    """Refuse endings we cannot write and folders that are not there, before any work is done."""
    for path in map(Path, paths):
        if path.suffix not in ENDINGS:
            raise ValueError(f"{path}: the ending chooses the form, one of {', '.join(ENDINGS)}")
        if not path.parent.is_dir():
            raise ValueError(f"{path}: the folder {path.parent} does not exist")


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
        write_atomically(path, content.encode())


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, then rename: nobody ever sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
