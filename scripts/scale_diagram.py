"""The diagram of docs/scale.md, from what the package knows: what fills a state, and how exact each metric of it is.

python scripts/scale_diagram.py          writes docs/scale.svg
python scripts/scale_diagram.py --check  fails if the file is not what would be written
"""

from __future__ import annotations

import sys
from collections import Counter
from html import escape
from pathlib import Path

from calibrary.scale.accuracy import declared

FILE = Path(__file__).parent.parent / "docs" / "scale.svg"

#: Title, explanation and color of each thing that fills a state, from top to bottom.
SOURCES = (
    ("scan", "Parquet, CSV, Arrow: one pass"),
    ("sql", "DuckDB, Spark, SQLite, a warehouse"),
    ("dask", "one task per partition"),
    ("torch", "all ranks: torch.distributed"),
    ("update", "a service, batch by batch"),
)


def answers() -> list[tuple[str, str, str]]:
    """What comes out: title, explanation, color."""
    n = Counter(fact.kind for fact in declared().values())
    return [
        (f"exact: {n['exact']} metrics", "bins with edges of cells, means: ECE, MCE, E/O", "#0b7a4b"),
        (f"bounded: {n['smooth']} smooth", "error falls with the square of the cell: BS, NLL, smECE", "#1a66a8"),
        (f"bounded or close: {n['order']} + {n['copies']}", "by order or copies: ACE, KS, AUC, ICI", "#5a55b5"),
        (f"by keys: {n['keys']}", "compute the column first, pass it as by=", "#8a6d1a"),
        (f"sampled: {n['sample']}, and whole vectors", "VectorState(sample=100_000): on a sample of rows", "#a8541a"),
        (f"refused: {n['counts']}", f"need single rows; {n['detection']} of detections: DetectionState", "#a02c3c"),
    ]  # fmt: skip


def box(x: int, y: int, width: int, title: str, text: str, color: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="52" rx="6" fill="#ffffff" stroke="{color}" stroke-width="2"/>'
        f'<text x="{x + 12}" y="{y + 22}" font-weight="700" fill="{color}">{escape(title)}</text>'
        f'<text x="{x + 12}" y="{y + 41}" font-size="12" fill="#333333">{escape(text)}</text>'
    )


def arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    middle = (x1 + x2) // 2
    path = f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="#8a94a3" stroke-width="1.5" marker-end="url(#tip)"/>'


def diagram() -> str:
    """The SVG as text."""
    out, parts, middle = answers(), [], 206
    for i, (title, text) in enumerate(SOURCES):
        y = 44 + i * 68
        parts += [box(10, y, 250, title, text, "#445066"), arrow(260, y + 26, 330, middle)]
    for i, (title, text, color) in enumerate(out):
        y = 10 + i * 68
        parts += [arrow(550, middle, 620, y + 26), box(624, y, 366, title, text, color)]
    lines = (
        ("State", 160, 18, "700"), ("a table of whole numbers:", 186, 13, "400"),
        ("cell, label, n, sum of positions", 206, 13, "400"), ("(and your by= columns)", 226, 13, "400"),
        ("merge, subtract, coarser, save", 256, 11, "700"),
    )  # fmt: skip
    parts.append(
        f'<rect x="334" y="{middle - 80}" width="212" height="160" rx="8" fill="#eef2f8" stroke="#445066" '
        'stroke-width="2"/>'
    )
    parts += [
        f'<text x="440" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="middle" fill="#1d2129">'
        f"{escape(text)}</text>"
        for text, y, size, weight in lines
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 420" role="img" '
        'font-family="system-ui, sans-serif" font-size="15">'
        "<title>Sources of a state, and the precision of each metric computed from it</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#8a94a3"/></marker></defs>'
        '<rect width="1000" height="420" fill="#ffffff"/>' + "\n".join(parts) + "</svg>\n"
    )


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if FILE.read_text() == diagram() else f"{FILE.name} is stale: python scripts/scale_diagram.py")
    FILE.write_text(diagram())
