"""A report as PDF: the page, printed by an installed browser."""

from __future__ import annotations

import locale
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from calibrary.base.markup import start_tag

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
