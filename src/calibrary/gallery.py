"""Draw every figure from included data, as PNG and SVG, with an index page: ``python -m calibrary.gallery OUT``."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
    cancer, nb, _ = cal.datasets.breast_cancer()
    models = {"over-confident": (y, c), "recalibrated": (y, s.truth(c)), "under-confident": (y, 0.5 + 0.35 * (c - 0.5))}
    digit, q, _ = cal.datasets.digits()
    three = [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9]]
    data = files("calibrary") / "datasets"
    matches = cal.match_detections(str(data / "demo_ground_truth.json"), str(data / "demo_results.json"))
    asked = cal.datasets.answers()
    speakers = {"as stated": (asked.y_true, asked.y_prob), "at random": (asked.y_true, s.c[: len(asked.y_true)])}
    many = np.random.default_rng(1)
    crowd = many.dirichlet(np.full(30, 0.15), 6000)
    member = (crowd.cumsum(axis=1) > many.random((6000, 1))).argmax(axis=1)

    def metrics(**theme: Any) -> Any:
        found = cal.evaluate(y, c, metrics=list(_ERRORS), intervals=True, tests=True, n_resamples=49, rng=0)
        return plots.plot_metrics(found, **theme)

    return {
        "theory": plots.plot_theory,
        "reliability-line": lambda **o: plots.plot_reliability(y, c, true_curve=s.truth, **o),
        "reliability-equal-mass": lambda **o: plots.plot_reliability(y, c, binning="mass", error="wilson", **o),
        "reliability-consistency": lambda **o: plots.plot_reliability(y, c, error="consistency", **o),
        "reliability-bar": lambda **o: plots.plot_reliability(y, c, kind="bar", n_bins=10, **o),
        "reliability-tilted-roof": lambda **o: plots.plot_reliability(y, c, kind="tilted-roof", n_bins=10, **o),
        "reliability-top-label": lambda **o: plots.plot_reliability(digit, q, **o),
        "reliability-several-models": lambda **o: plots.plot_reliability(models, n_bins=10, **o),
        "reliability-by-class": lambda **o: plots.small_multiples(digit, q, **o),
        "reliability-many-classes": lambda **o: plots.small_multiples(member, crowd, most=24, **o),
        "smooth": lambda **o: plots.plot_smooth_reliability(y, c, **o),
        "smooth-several-models": lambda **o: plots.plot_smooth_reliability(models, **o),
        "smooth-loess": lambda **o: plots.plot_smooth_reliability(y, c, map="loess", n_resamples=40, **o),
        "corp": lambda **o: plots.plot_corp(y, c, n_resamples=400, **o),
        "corp-confidence": lambda **o: plots.plot_corp(cancer, nb, band="confidence", n_resamples=400, **o),
        "corp-bias": lambda **o: plots.plot_corp(y, c, diagram="bias", n_resamples=400, **o),
        "corp-honest": lambda **o: plots.plot_corp(y, c, band="honest", **o),
        "cumulative": lambda **o: plots.plot_cumulative(y, c, **o),
        "cumulative-several-models": lambda **o: plots.plot_cumulative(models, **o),
        "brier-curve": lambda **o: plots.plot_brier_curve(y, c, cost_lines=True, **o),
        "brier-several-models": lambda **o: plots.plot_brier_curve({k: models[k] for k in list(models)[::2]}, **o),
        "murphy": lambda **o: plots.plot_murphy({k: models[k] for k in list(models)[:2]}, **o),
        "decision": lambda **o: plots.plot_decision(y, c, thresholds=[0.2, 0.6], **o),
        "decision-several-models": lambda **o: plots.plot_decision(models, **o),
        "segments": lambda **o: plots.plot_segments(
            y, c, by={"x1": s.features[:, 0], "x2": s.features[:, 1]}, n_resamples=199, rng=0, **o
        ),
        "monitor": lambda **o: plots.plot_monitor(y, c, batch=20, **o),
        "risk-coverage": lambda **o: plots.plot_risk_coverage(asked.y_true, asked.y_prob, lens="binary", **o),
        "risk-coverage-digits": lambda **o: plots.plot_risk_coverage(digit, q, **o),
        "risk-coverage-several-models": lambda **o: plots.plot_risk_coverage(speakers, lens="binary", **o),
        "set-coverage": lambda **o: plots.plot_set_coverage(member, crowd, **o),
        "reliability-map": lambda **o: plots.plot_reliability_map(*s, **o),
        "grouping": lambda **o: plots.plot_grouping(*s, n_bins=8, **o),
        "simplex": lambda **o: plots.plot_simplex(digit, q, groups=three, **o),
        "simplex-equal-mass": lambda **o: plots.plot_simplex(digit, q, groups=three, binning="mass", **o),
        "simplex-maps": lambda **o: plots.plot_simplex_maps(digit, q, groups=three, **o),
        "simplex-gaps": lambda **o: plots.plot_simplex_maps(digit, q, groups=three, show="gap", side=6, **o),
        "detection-reliability": lambda **o: plots.plot_detection_reliability(matches, **o),
        "d-ece-location": lambda **o: plots.plot_d_ece_map(matches, n_bins=[5, 6, 6], min_count=2, counts=True, **o),
        "d-ece-shape": lambda **o: plots.plot_d_ece_map(
            matches, features="shape", n_bins=[4, 12, 12], min_count=2, **o
        ),
        "d-ece-line": lambda **o: plots.plot_d_ece_map(matches, features=["cx"], n_bins=[5, 5], min_count=4, **o),
        "null-distribution": lambda **o: plots.plot_null("ece", y, c, n_resamples=499, **o),
        "recalibration": lambda **o: plots.plot_recalibration(y, c, **o),
        "metrics": metrics,
        "family-tree": plots.plot_tree,
        "overview": lambda **o: plots.overview(y, c, title="An over-confident model", **o),
        "overview-detection": lambda **o: plots.overview(matches, title="A detector", **o),
    }


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
