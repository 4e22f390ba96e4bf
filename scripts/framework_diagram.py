"""The framework as one diagram, docs/framework.svg: ``python scripts/framework_diagram.py``."""

from __future__ import annotations

from html import escape
from pathlib import Path

OUT = Path(__file__).parent.parent / "docs" / "framework.svg"
W, ROW, BOX, GAP = 980, 118, 34, 10
STEPS = (
    (
        "1  Which question", "a lens", "#0173b2",
        ("binary", "top-label", "class-wise", "pairwise", "top-r", "full vector"),
    ),
    (
        "2  How often it happened", "an estimate of the frequency", "#029e73",
        ("bins", "kernel", "fitted curve", "isotonic", "cumulative sum", "each row alone"),
    ),
    (
        "3  How far apart they are", "a discrepancy", "#d55e00",
        ("mean gap", "largest gap", "mean square", "signed mean", "proper score", "pairs"),
    ),
    (
        "4  Is it more than chance?", "a comparison", "#cc78bc",
        ("interval", "test", "expected by chance", "two models", "sample size", "verdict"),
    ),
)  # fmt: skip


def diagram() -> str:
    height = len(STEPS) * ROW + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {height}" font-family="system-ui, sans-serif">',
        f'<rect width="{W}" height="{height}" rx="12" fill="#fbfbfd"/>',
    ]
    for k, (title, kind, color, names) in enumerate(STEPS):
        top = k * ROW + 16
        parts += [
            f'<text x="24" y="{top + 18}" font-size="18" font-weight="600" fill="{color}">{escape(title)}</text>',
            f'<text x="{W - 24}" y="{top + 18}" font-size="15" fill="#5b6370" text-anchor="end">{escape(kind)}</text>',
        ]
        width = (W - 48 - GAP * (len(names) - 1)) / len(names)
        for i, name in enumerate(names):
            x = 24 + i * (width + GAP)
            parts += [
                f'<rect x="{x:.1f}" y="{top + 30}" width="{width:.1f}" height="{BOX}" rx="8" fill="{color}"'
                f' fill-opacity="0.13" stroke="{color}"/>',
                f'<text x="{x + width / 2:.1f}" y="{top + 52}" font-size="15" text-anchor="middle" fill="#1d2129">'
                f"{escape(name)}</text>",
            ]
        if k + 1 < len(STEPS):
            y = top + 30 + BOX + 6
            parts.append(f'<path d="M{W / 2 - 9} {y} h18 l-9 14 z" fill="#aab2bd"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    OUT.write_text(diagram())
