"""Write reports: the extension chooses the format, and a file is written whole or not at all; a browser prints PDF."""

from __future__ import annotations

import locale
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from calibrary.base.files import check_writable, write_atomically
from calibrary.base.markup import Markup, document, each, element, own, start_tag
from calibrary.base.text import plain
from calibrary.reporting import html, stored, text
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
            browser()


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
        return pdf(html.page(reports, comparisons, interactive=False))
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


# -- the page as PDF, printed by an installed browser ----------------------------------------------


#: Command names of browsers that can print a page without a window.
_BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge",
)  # fmt: skip
#: The longest time in seconds for the browser; figures of large data take a few seconds.
_LONGEST = 300


def browser() -> str:
    """The browser that will print; ValueError says what is missing."""
    named = os.environ.get("CALIBRARY_BROWSER")
    if named and shutil.which(named) is None:
        raise ValueError(f"CALIBRARY_BROWSER={named!r} is not a program: name Chromium, Chrome or Edge")
    found = named or next(filter(None, map(shutil.which, _BROWSERS)), None) or _of_playwright()
    if found is None:
        raise ValueError(
            "a PDF is printed by a browser and none was found: install Chromium or Chrome, or pip install "
            "'calibrary[pdf]' and playwright install chromium, or print the .html page from any browser"
        )
    return found


def _of_playwright() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return None
    with sync_playwright() as play:
        path = str(play.chromium.executable_path)
    return path if Path(path).exists() else None


#: Countries whose usual paper is Letter.
_LETTER = ("US", "CA", "MX")


def paper() -> str:
    """The size of paper: Letter for a locale of North America, otherwise A4."""
    named = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_PAPER", "LANG"))), None) or locale.getlocale()[0] or ""
    return "Letter" if named.partition(".")[0].partition("@")[0].partition("_")[2].upper() in _LETTER else "A4"


def pdf(page: str) -> bytes:
    """The page in its print layout."""
    program = browser()
    style = start_tag("style", {})
    page = page.replace(style, f"{style}@page{{size:{paper()}}}", 1)
    with tempfile.TemporaryDirectory(prefix="calibrary-") as folder:
        source, target = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(page, encoding="utf-8", errors="replace")
        command = [
            program, "--headless", "--disable-gpu", "--disable-extensions", "--no-first-run", "--no-pdf-header-footer",
            f"--user-data-dir={folder}/profile", f"--print-to-pdf={target}", source.as_uri(),
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # which Chromium does not start as root without
        try:
            done = subprocess.run(command, capture_output=True, timeout=_LONGEST, check=False)
        except subprocess.TimeoutExpired:
            raise ValueError(f"{program} did not print the report within {_LONGEST} s: print the .html page") from None
        if not target.exists():
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise ValueError(f"{program} did not print the report ({said[-1] if said else 'no message'})")
        return target.read_bytes()
