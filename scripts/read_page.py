"""Open a report in a real browser and print its headlines: ``python scripts/read_page.py demo/report.html``.

A headless Chromium renders the page. The exit status is 1 where it shows no headline, 2 where there is no browser.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path


def headlines(dom: str) -> list[str]:
    """The text of every headline of a rendered page."""
    found = re.findall(r'<p class="headline[^"]*">(.*?)</p>', dom, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", text)).split()) for text in found]


def rendered(page: Path, browser: str) -> str:
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        command = [browser, *flags, f"--user-data-dir={profile}", "--dump-dom", page.resolve().as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def main(path: str) -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no browser: install chromium")
        return 2
    shown = headlines(rendered(Path(path), browser))
    for text in shown:
        print(f"{path}: {text}")
    return 0 if shown and all(len(text) > 20 for text in shown) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
