"""Small pictures for the pages of metrics, as SVG inside the page, so that they follow its colors."""

from __future__ import annotations

from html import escape

W, H, LEFT, BOTTOM, TOP = 560, 236, 72, 40, 20
_LINES = (("spread", "response-a", "spread"), ("shift", "response-b", "mean"))


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
