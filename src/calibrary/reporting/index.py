"""The page that leads to many reports: one line each, with its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from calibrary.base.text import content_security_policy, for_html


@dataclass(frozen=True)
class IndexLine:
    """A file and what became of it: the link to its report, or why there is none."""

    source: str
    link: str
    headline: str
    cells: tuple[str, ...] = ()
    failed: bool = False


Line = IndexLine  # its name in 0.2, which pickles and imports may have


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #1a1a1a;
       background: #fff; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
td.failed { color: #a40000; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #161616; } a { color: #8ab4f8; }
  th, td { border-color: #444; } td.failed { color: #ff8a80; } }
"""


def index(title: str, head: Sequence[str], lines: Sequence[IndexLine]) -> str:
    """The whole page; ``head`` names the cells of each line."""
    top = "".join(f"<th>{for_html(name)}</th>" for name in ("file", *head, "answer"))
    body = "\n".join(_row(line, len(head)) for line in lines)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{content_security_policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{for_html(title, 80)}</title><style>{_STYLE}</style></head>
<body><h1>{for_html(title, 80)}</h1>
<p>{_counted(lines)}</p>
<table><thead><tr>{top}</tr></thead><tbody>
{body}
</tbody></table></body></html>
"""


def _counted(lines: Sequence[IndexLine]) -> str:
    failed = sum(line.failed for line in lines)
    made = f"{len(lines) - failed} reports"
    return made + (f"; {failed} could not be made" if failed else "") + "."


def _row(line: IndexLine, n_cells: int) -> str:
    name = for_html(line.source, 80)
    if line.failed:
        return f'<tr><td>{name}</td><td class="failed" colspan="{n_cells + 1}">{for_html(line.headline)}</td></tr>'
    cells = "".join(f'<td class="number">{for_html(cell)}</td>' for cell in line.cells)
    return f'<tr><td><a href="{quote(line.link)}">{name}</a></td>{cells}<td>{for_html(line.headline)}</td></tr>'
