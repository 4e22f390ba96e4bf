"""Draw every figure from included data, as PNG and SVG, with an index page: ``python -m calibrary.gallery OUT``."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import calibrary as cal
from calibrary import plots
from calibrary.base.markup import document, element, own
from calibrary.data.checks import Array, Indices

__all__ = ["Synthetic", "figures", "main"]

#: Errors that are fast to compute and have the same scale, for the dot plot.
_ERRORS = ("ece", "ace", "ece_sweep", "mce", "ece_lb", "ece_db", "smece", "sece", "ici", "ecce_mad", "ecce_r")

_STYLE = own("""
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}
body{background:#fafafa;color:#1d2129}
main{display:grid;grid-template-columns:repeat(auto-fill,minmax(22rem,1fr));gap:1.2rem;align-items:start}
figure{margin:0;background:#fff;border:1px solid #dfe3e8;border-radius:.6rem;padding:.8rem}
figure.dark{background:#14171b;color:#e7e9ec;border-color:#14171b}
img{width:100%;height:auto;display:block}figcaption{font-size:.9rem;margin-top:.5rem}
code{font-size:.8rem;color:#667080;overflow-wrap:anywhere}
""")
_SAID = "Every figure of calibrary, drawn from data that the library includes. A click opens the figure as SVG."


class Synthetic(NamedTuple):
    """Over-confident predictions whose true frequency is known, and features that hide two groups."""

    y: Indices
    c: Array
    features: Array

    @staticmethod
    def truth(c: Any) -> Any:
        return 0.12 + 0.72 * np.asarray(c)

    @classmethod
    def make(cls, n: int = 3000) -> Synthetic:
        rng = np.random.default_rng(0)
        c = rng.beta(0.9, 0.9, n)
        features = rng.normal(size=(n, 2))
        shift = 0.2 * np.where(features[:, 0] > 0, 1, -1) * 4 * c * (1 - c)
        y = (rng.random(n) < np.clip(cls.truth(c) + shift, 0, 1)).astype(np.intp)
        return cls(y, c, features)


def figures() -> dict[str, Callable[..., Any]]:
    """The functions that draw the figures, by name; the theme is an option."""
    s = Synthetic.make()
    y, c = s.y, s.c
    models = {"over-confident": (y, c), "recalibrated": (y, s.truth(c)), "under-confident": (y, 0.5 + 0.35 * (c - 0.5))}
    asked, (digit, q, _) = cal.datasets.answers(), cal.datasets.digits()
    folder = files("calibrary") / "datasets"
    many = np.random.default_rng(1)
    crowd = many.dirichlet(np.full(30, 0.15), 6000)
    rows: dict[str, tuple[Any, ...]] = {
        "nothing": (),
        "synthetic": (y, c),
        "metric": ("ece", y, c),
        "with features": tuple(s),
        "models": (models,),
        "two models": ({name: models[name] for name in list(models)[:2]},),
        "opposite models": ({name: models[name] for name in list(models)[::2]},),
        "cancer": cal.datasets.breast_cancer()[:2],
        "digits": (digit, q),
        "detector": (cal.match_detections(str(folder / "demo_ground_truth.json"), str(folder / "demo_results.json")),),
        "answers": (asked.y_true, asked.y_prob),
        "speakers": ({"as stated": (asked.y_true, asked.y_prob), "at random": (asked.y_true, c[: len(asked.y_true)])},),
        "crowd": ((crowd.cumsum(axis=1) > many.random((6000, 1))).argmax(axis=1), crowd),
    }
    of_one: dict[str, dict[str, Any]] = {
        "reliability-line": {"true_curve": s.truth},
        "segments": {"by": {"x1": s.features[:, 0], "x2": s.features[:, 1]}},
    }

    def metrics(**theme: Any) -> Any:
        found = cal.evaluate(y, c, metrics=list(_ERRORS), intervals=True, tests=True, n_resamples=49, rng=0)
        return plots.plot_metrics(found, **theme)

    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    made: dict[str, Callable[..., Any]] = {
        name: partial(getattr(plots, plot), *rows[of], **options, **of_one.get(name, {}))
        for name, (plot, of, options) in table.items()
    }
    made["metrics"] = metrics
    return made


#: Figures that are also drawn in the dark theme.
_DARK = ("reliability-line", "reliability-bar", "smooth", "corp", "cumulative", "brier-curve", "simplex", "family-tree")


def main(folder: str) -> None:
    """Draw every figure and write the index page into ``folder``."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    every = figures()
    jobs = [(name, name, "light") for name in every] + [(f"{name}-dark", name, "dark") for name in _DARK]
    cells = []
    for name, kind, theme in jobs:
        with plots.embedded():
            made = every[kind](theme=theme)
        _save(getattr(made, "figure", made), out / name)
        drawn = element("img", src=f"{name}.png", alt=name, loading="lazy")
        shown = (element("a", drawn, href=f"{name}.svg"), element("figcaption", name))
        cells.append(element("figure", shown, class_=theme))
    title = "calibrary gallery"
    page = document(title, element("h1", title), element("p", _SAID), element("main", cells), style=_STYLE)
    (out / "index.html").write_text(page, encoding="utf-8")
    print(f"{len(jobs)} figures in {out}")


def _save(figure: Any, path: Path) -> None:
    """Save the figure as PNG and SVG; its layout is computed only once."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    around = figure.get_tightbbox().padded(0.1)
    for ending in ("png", "svg"):
        figure.savefig(
            f"{path}.{ending}", dpi=110, bbox_inches=around, metadata={"Date": None} if ending == "svg" else {}
        )


def __dir__() -> list[str]:
    return sorted(__all__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gallery")
