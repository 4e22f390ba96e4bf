"""What each lens takes of one row, as small pictures in docs/lenses: ``python scripts/lens_diagram.py``."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

OUT = Path(__file__).parent.parent / "docs" / "lenses"
NAMES, ROW, LABEL = ("cat", "dog", "fox", "owl"), (0.45, 0.30, 0.20, 0.05), 1  # the animal is a dog
W, TOP, STEP, BAR, LONG = 330, 44, 26, 60, 200
INK, QUIET, USED, FAINT = "#1d2129", "#5b6370", "#0173b2", "#dde1e7"


class Panel(NamedTuple):
    """A lens with its options, which bars it uses, what it asks, and the pairs of confidence and outcome it makes."""

    lens: str
    options: dict[str, int]
    used: tuple[int, ...]
    asks: str
    pairs: tuple[tuple[float, int], ...]


PANELS = (
    Panel("top-label", {}, (0,), "Is the predicted class right?", ((0.45, 0),)),
    Panel(
        "class-wise", {}, (0, 1, 2, 3), "A cat or not? A dog or not? ...", tuple(zip(ROW, (0, 1, 0, 0), strict=True))
    ),
    Panel("within-top-r", {"r": 2}, (0, 1), "Is the class among the first two?", ((0.75, 1),)),
    Panel("rth", {"r": 2}, (1,), "Is the second class right?", ((0.30, 1),)),
    Panel("pairwise", {}, (0, 1), "Of cat and dog, is it the cat?", ((0.60, 0),)),
    Panel("cumulative", {}, (0, 1, 2), "Cat? Cat or dog? Cat, dog or fox?", ((0.45, 0), (0.75, 1), (0.95, 1))),
)


def picture(panel: Panel) -> str:
    """The four probabilities of the row, those that the lens uses in color, and what the lens makes of them."""
    height = TOP + STEP * len(NAMES) + 46
    options = "".join(f", {name}={value}" for name, value in panel.options.items())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {height}" font-family="system-ui, sans-serif">',
        f'<rect x="0.5" y="0.5" width="{W - 1}" height="{height - 1}" rx="8" fill="#fbfbfd" stroke="{FAINT}"/>',
        f'<text x="14" y="26" font-size="17" font-weight="600" fill="{USED}">{panel.lens}{options}</text>',
    ]
    for k, (name, share) in enumerate(zip(NAMES, ROW, strict=True)):
        y = TOP + k * STEP
        used = k in panel.used
        parts += [
            f'<text x="14" y="{y + 15}" font-size="15" fill="{INK if used else QUIET}">{name}</text>',
            f'<rect x="{BAR}" y="{y + 2}" width="{LONG * share / ROW[0]:.1f}" height="17" rx="3"'
            f' fill="{USED if used else FAINT}"/>',
            f'<text x="{BAR + LONG * share / ROW[0] + 6:.1f}" y="{y + 15}" font-size="14" fill="{QUIET}">{share:.2f}'
            f"{' true class' if k == LABEL else ''}</text>",
        ]
    made = ", ".join(f"{confidence:.2f} → {outcome}" for confidence, outcome in panel.pairs)
    bottom = TOP + STEP * len(NAMES)
    parts += [
        f'<text x="14" y="{bottom + 16}" font-size="15" fill="{INK}">{escape(panel.asks)}</text>',
        f'<text x="14" y="{bottom + 36}" font-size="14" font-weight="600" fill="{INK}">{made}</text>',
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for panel in PANELS:
        (OUT / f"{panel.lens}.svg").write_text(picture(panel))
