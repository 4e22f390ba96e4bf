"""Small pictures for the pages of metrics, as SVG inside the page, so that they follow its colors."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import numpy as np

W, H, LEFT, BOTTOM, TOP = 560, 236, 72, 40, 20
_LINES = (("spread", "response-a", "spread"), ("shift", "response-b", "mean"))

#: Of the picture of shapes: the height of a row, the side of its small picture, where bars begin and how long they can
#: be, and the whole width.
ROW, GLYPH, BAR, LONG, WIDE = 30, 24, 214, 156, 416
_GRID = np.linspace(0.02, 0.98, 49)
#: What the error is, its calibration curve, and the share of samples in which it is detected.
Row = tuple[str, Callable[..., np.ndarray] | None, float]


def detected(rows: list[Row], name: str, level: float = 0.05) -> str:
    """A bar for each shape of error, with a small picture of the shape: in which share of samples it is detected."""
    height = ROW * len(rows) + 26
    x = BAR + level * LONG
    said = "; ".join(f"{words}: {share:.0%}" for words, _, share in rows)
    parts = [
        f'<svg class="detected" viewBox="0 0 {WIDE} {height}" role="img" aria-label="{escape(name)}. {escape(said)}">'
    ]
    for i, (words, truth, share) in enumerate(rows):
        top = i * ROW + 3
        middle = top + GLYPH / 2
        parts += _glyph(truth, top) if truth is not None else []
        parts += [
            f'<text x="{GLYPH + 10}" y="{middle + 4}">{escape(words)}</text>',
            f'<rect class="track" x="{BAR}" y="{middle - 6}" width="{LONG}" height="12"/>',
            f'<rect class="bar" x="{BAR}" y="{middle - 6}" width="{share * LONG:.1f}" height="12"/>',
            f'<text class="share" x="{WIDE}" y="{middle + 4}" text-anchor="end">{share:.0%}</text>',
        ]
    end = ROW * len(rows)
    return "".join(
        [
            *parts,
            f'<line class="level" x1="{x:.1f}" x2="{x:.1f}" y1="2" y2="{end + 6}"/>',
            f'<text x="{x - 4:.1f}" y="{end + 20}">{level:.0%}: no better than chance</text>',
            "</svg>",
        ]
    )


def _glyph(truth: Callable[..., np.ndarray], top: float) -> list[str]:
    """How often the event happens (up) where a probability is stated (across), beside the diagonal."""
    points = " ".join(
        f"{GLYPH * c:.1f},{top + GLYPH * (1 - t):.1f}"
        for c, t in zip(_GRID, np.clip(truth(_GRID), 0.0, 1.0), strict=True)
    )
    return [
        f'<rect class="frame" x="0.5" y="{top + 0.5}" width="{GLYPH - 1}" height="{GLYPH - 1}"/>',
        f'<line class="diagonal" x1="0" x2="{GLYPH}" y1="{top + GLYPH}" y2="{top}"/>',
        f'<polyline points="{points}"/>',
    ]


def response(strengths: list[float], curves: dict[str, list[float]], name: str) -> str:
    """Two curves: predictions that are not extreme enough (left) or too extreme (right), and too low or too high."""
    values = [v for line in curves.values() for v in line]
    low, high = min(values), max(values)
    pad = 0.06 * (high - low or 1.0)
    low, high = low - pad, high + pad

    def x(s: float) -> float:
        return LEFT + (s - strengths[0]) / (strengths[-1] - strengths[0]) * (W - LEFT - 10)

    def y(v: float) -> float:
        return H - BOTTOM - (v - low) / (high - low) * (H - BOTTOM - TOP)

    parts = [
        f'<svg class="response" viewBox="0 0 {W} {H}" role="img" aria-label="{escape(name)} as the error grows">',
        f'<line class="zero" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{TOP}" y2="{H - BOTTOM}"/>',
        f'<line class="axis" x1="{LEFT}" x2="{W - 10}" y1="{H - BOTTOM}" y2="{H - BOTTOM}"/>',
    ]
    parts += [
        f'<text x="{LEFT - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v:.3g}</text>' for v in (low + pad, high - pad)
    ]
    for kind, css, _ in _LINES:
        points = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in zip(strengths, curves[kind], strict=True))
        parts.append(f'<polyline class="{css}" points="{points}"/>')
    bottom = H - BOTTOM + 16
    parts += [
        f'<text x="{LEFT}" y="{bottom}">not extreme enough; too low</text>',
        f'<text x="{x(0):.1f}" y="{TOP - 2}" text-anchor="middle">calibrated</text>',
        f'<text x="{W - 10}" y="{bottom}" text-anchor="end">too extreme; too high</text>',
        f'<text class="response-a" x="{LEFT}" y="{H - 6}">— error of the spread</text>',
        f'<text class="response-b" x="{LEFT + 190}" y="{H - 6}">— error of the mean</text>',
        "</svg>",
    ]
    return "".join(parts)
