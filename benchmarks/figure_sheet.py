"""Twelve figures of four data sets, beside those of another version, of scikit-learn and of relplot.

    python benchmarks/figure_sheet.py draw FOLDER            one picture per figure and data set
    python benchmarks/figure_sheet.py sheet OUT.png BEFORE AFTER [OTHERS]

``draw`` draws with what can be imported: run it once for each version or environment (relplot needs one of its own),
with a folder each. ``sheet`` puts pictures of the same figure and data below each other, two rows per data set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("agg")
import matplotlib.pyplot as plt

KINDS = (
    "reliability", "bar", "smooth", "corp", "bias", "cumulative", "recalibration", "decision", "murphy", "brier",
    "risk-coverage", "null",
)  # fmt: skip
OTHERS = ("scikit-learn", "relplot")


def _logistic(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _binary(n: int, mean: float, spread: float, slope: float, shift: float, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(mean, spread, n)
    return (rng.random(n) < _logistic(slope * x + shift)).astype(int), _logistic(x)


def _ten(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(6)
    z = 1.6 * rng.normal(size=(n, 10))
    truth, stated = (np.exp(k * z) / np.exp(k * z).sum(1, keepdims=True) for k in (1.0, 1.6))
    return (truth.cumsum(1) < rng.random((n, 1))).sum(1).clip(0, 9), stated


DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "ordinary": lambda: _binary(2000, 0.0, 1.5, 0.7, 0.0, 4),
    "rare": lambda: _binary(2000, -5.0, 1.0, 1.0, 0.9, 5),
    "thirty": lambda: _binary(30, 0.0, 1.5, 0.7, 0.0, 3),
    "ten": lambda: _ten(3000),
}


def _drawn() -> Iterator[tuple[str, Callable[[Any, Any], Any]]]:
    """What can be drawn here: a name, and a function of labels and probabilities."""
    try:
        from sklearn.calibration import CalibrationDisplay

        yield "scikit-learn", lambda y, p: CalibrationDisplay.from_predictions(*_answer(y, p)[::-1], n_bins=10)
    except ImportError:
        pass
    try:
        import calibrary as cal
        from calibrary.plots import draw

        for kind in KINDS:
            yield kind, lambda y, p, kind=kind: draw(kind, cal.predictions(y, p))
    except ImportError:
        pass
    try:  # the last one: it changes the settings of matplotlib
        from relplot import rel_diagram

        yield "relplot", lambda y, p: rel_diagram(*_answer(y, p))
    except ImportError:
        pass


def _answer(y: Any, p: Any) -> tuple[Any, Any]:
    """Probabilities and outcomes of two classes; of many, of the most probable one."""
    return (p, y) if p.ndim == 1 else (p.max(1), (p.argmax(1) == y).astype(int))


def draw_all(folder: Path) -> None:
    """One picture for each figure and data set; a refusal is a picture of its words."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in _drawn():
        for data, of in DATA.items():
            plt.close("all")
            try:
                made = name, make(*of())
                figure = made[1] if hasattr(made[1], "savefig") else plt.gcf()
            except ValueError as refused:
                figure = plt.figure(figsize=(5, 5))
                figure.text(0.5, 0.5, str(refused), ha="center", va="center", wrap=True)
            figure.savefig(folder / f"{data}-{name}.png", dpi=80, bbox_inches="tight")


def sheet(out: Path, before: Path, after: Path, *others: Path) -> None:
    """All pictures: for each data set a row before and a row after, which ends with those of other packages."""
    names = (*KINDS, *OTHERS)
    rows = [(data, folder) for data in DATA for folder in (before, after)]
    figure, axes = plt.subplots(len(rows), len(names), figsize=(2.6 * len(names), 3.0 * len(rows)), squeeze=False)
    for (data, folder), line in zip(rows, axes, strict=True):
        for name, ax in zip(names, line, strict=True):
            ax.axis("off")
            where = (before,) if folder == before else (after, *others)
            pictures = [place / f"{data}-{name}.png" for place in where]
            for picture in filter(Path.exists, pictures):
                ax.imshow(plt.imread(picture))
                ax.set_title(f"{name}: {data}, {picture.parent.name}", fontsize=7)
    figure.subplots_adjust(0, 0, 1, 0.99, 0.01, 0.06)
    figure.savefig(out, dpi=90)


if __name__ == "__main__":
    verb, first, *more = sys.argv[1:]
    if verb == "draw":
        draw_all(Path(first))
    else:
        sheet(Path(first), *map(Path, more))
