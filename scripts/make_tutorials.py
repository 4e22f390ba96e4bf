"""Run the pages that are programs, and store what they print and draw.

    python scripts/make_tutorials.py [NAME ...]     run (all, or those named) and store
    python scripts/make_tutorials.py --check        say which stored pages are older than their source

Sources are ``pages/<folder>/<name>.py``: cells of Markdown (``# %% [markdown]``, lines that start with ``# ``) and of
code (``# %%``). What a cell prints, the value of its last line and the figures it draws are stored beside it in
``docs/<folder>/<name>.md``, together with a hash of the source, so that the site is built without running anything. A
line ``# needs: torch`` names packages without which a page is left as it is.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import io
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PAGES, DOCS = ROOT / "pages", ROOT / "docs"
_STAMP = "<!-- made by scripts/make_tutorials.py from {source}, sha256 {digest} -->"


class Cell(NamedTuple):
    """Markdown, or code of the program."""

    kind: str
    text: str


def sources() -> list[Path]:
    return sorted(PAGES.rglob("*.py"))


def stored(source: Path) -> Path:
    """Where the page of a source is kept."""
    return (DOCS / source.relative_to(PAGES)).with_suffix(".md")


def stamp(source: Path) -> str:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return _STAMP.format(source=source.relative_to(ROOT).as_posix(), digest=digest)


def stale() -> list[str]:
    """Pages that were not made from what their source says now, and pages without a source."""
    wanted = {stored(s): s for s in sources()}
    old = [str(page) for page, s in wanted.items() if not page.exists() or stamp(s) not in page.read_text("utf-8")]
    mark = _STAMP.split("{")[0]
    made = [p for p in DOCS.rglob("*.md") if mark in p.read_text("utf-8")]
    return [*old, *(str(p) for p in made if p not in wanted)]


def cells(source: str) -> list[Cell]:
    """The cells of a program in percent format."""
    found = []
    for part in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            found.append(Cell("markdown", re.sub(r"^# ?", "", body.strip("\n"), flags=re.MULTILINE)))
        else:
            found.append(Cell("code", body.strip("\n")))
    return found


def needed(source: str) -> list[str]:
    """Packages that a page asks for and that are not installed."""
    asked = re.search(r"^# needs: (.+)$", source, re.MULTILINE)
    return [name for name in (asked[1].split() if asked else []) if importlib.util.find_spec(name) is None]


def run_page(source: Path) -> None:
    """Run one page and store it."""
    page = stored(source)
    page.parent.mkdir(parents=True, exist_ok=True)
    for old in page.parent.glob(f"{page.stem}-*.png"):
        old.unlink()
    lines, space, drawn = [], {"__name__": "__main__"}, 0
    with _elsewhere():
        for cell in cells(source.read_text("utf-8")):
            if cell.kind == "markdown":
                lines += ["", cell.text]
                continue
            lines += ["", "```python", cell.text, "```"]
            said = _run(cell.text, space, source)
            if said:
                lines += ["", "``` { .text .output }", said, "```"]
            for figure in _figures():
                drawn += 1
                name = f"{page.stem}-{drawn}.png"
                figure.savefig(page.parent / name, dpi=100, bbox_inches="tight")
                lines += ["", f"![{_caption(figure)}]({name}){{ .figure }}"]
            _close()
    lines += ["", stamp(source)]  # last, so that the title comes first
    page.write_text("\n".join(lines).lstrip() + "\n", "utf-8")
    print(f"{page.relative_to(ROOT)}: {drawn} figures")


def _run(code: str, space: dict[str, Any], source: Path) -> str:
    """What the code prints, and the value of its last line as a notebook would show it."""
    tree = ast.parse(code, str(source))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, str(source), "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(source), "eval"), space)
            if value is not None and not code.rstrip().endswith(";") and "matplotlib" not in type(value).__module__:
                print(value if isinstance(value, str) else repr(value))
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """A folder of its own for what a page writes."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def _figures() -> list[Any]:
    import matplotlib.pyplot as plt

    return [plt.figure(number) for number in plt.get_fignums()]


def _caption(figure: Any) -> str:
    """For people who do not see the figure."""
    titles = [ax.get_title("left") or ax.get_title() for ax in figure.axes]
    return "; ".join(t.replace("\n", " ") for t in titles if t) or "figure"


def _close() -> None:
    import matplotlib.pyplot as plt

    plt.close("all")


def main(names: list[str]) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    chosen = [s for s in sources() if not names or s.stem in names]
    if not chosen:
        raise SystemExit(f"no page is called {' or '.join(names)}: {', '.join(s.stem for s in sources())}")
    for source in chosen:
        missing = needed(source.read_text("utf-8"))
        if missing:
            print(f"{source.stem}: left as it is, because {' and '.join(missing)} is not installed")
        else:
            run_page(source)


if __name__ == "__main__":
    if "--check" in sys.argv:
        old = stale()
        if old:
            raise SystemExit(
                textwrap.dedent(f"""\
                stored pages are older than their source, run `make tutorials`:
                {chr(10).join(old)}""")
            )
    else:
        main(sys.argv[1:])
