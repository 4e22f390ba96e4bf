"""Every figure from embedded data, in PNG and SVG, with an index page: ``python -m calibrary.plots.gallery OUT``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import calibrary as cal
from calibrary import plots


def figures() -> dict[str, Callable[[], Any]]:
    """Name -> function that draws it."""
    y, p, _ = cal.datasets.breast_cancer()
    other = cal.datasets.breast_cancer("logistic").y_prob
    digit, q, _ = cal.datasets.digits()
    synthetic = _synthetic()
    data = files("calibrary") / "data"
    matches = cal.match_detections(str(data / "demo_ground_truth.json"), str(data / "demo_results.json"))
    three = [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9]]
    models = {"naive Bayes": (y, p), "logistic": (y, other)}

    def evaluated() -> Any:
        return cal.evaluate(
            synthetic[0], synthetic[1], metrics=["bin", "cumulative"], intervals=True, tests=True, n_resamples=99, rng=0
        )

    return {
        "theory": plots.plot_theory,
        "reliability-line": lambda: plots.plot_reliability(*synthetic[:2], true_curve=synthetic[3]),
        "reliability-consistency": lambda: plots.plot_reliability(*synthetic[:2], error="consistency"),
        "reliability-bar": lambda: plots.plot_reliability(*synthetic[:2], kind="bar", n_bins=10),
        "reliability-tilted-roof": lambda: plots.plot_reliability(*synthetic[:2], kind="tilted-roof", n_bins=10),
        "reliability-several-models": lambda: plots.plot_reliability(models, n_bins=10),
        "reliability-by-class": lambda: plots.small_multiples(digit, q),
        "smooth": lambda: plots.plot_smooth_reliability(*synthetic[:2]),
        "smooth-dark": lambda: plots.plot_smooth_reliability(*synthetic[:2], theme="dark"),
        "loess": lambda: plots.plot_smooth_reliability(*synthetic[:2], map="loess", n_resamples=40),
        "corp": lambda: plots.plot_corp(*synthetic[:2], n_resamples=400),
        "corp-bias": lambda: plots.plot_corp(*synthetic[:2], diagram="bias", n_resamples=200),
        "cumulative": lambda: plots.plot_cumulative(*synthetic[:2]),
        "brier-curve": lambda: plots.plot_brier_curve(*synthetic[:2], cost_lines=True),
        "brier-several-models": lambda: plots.plot_brier_curve(models),
        "grouping": lambda: plots.plot_grouping(*synthetic[:3], n_bins=8),
        "simplex": lambda: plots.plot_simplex(digit, q, groups=three),
        "detection-reliability": lambda: plots.plot_detection_reliability(matches),
        "d-ece-map": lambda: plots.plot_d_ece_map(matches, n_bins=[5, 4, 4], min_samples=2),
        "d-ece-line": lambda: plots.plot_d_ece_map(matches, features=["cx"], n_bins=[5, 5], min_samples=4),
        "null-distribution": lambda: plots.plot_null("ece", *synthetic[:2], n_resamples=499),
        "metrics": lambda: plots.plot_metrics(evaluated()),
        "family-tree": plots.plot_tree,
        "overview": lambda: plots.overview(*synthetic[:2]),
        "overview-detection": lambda: plots.overview(matches),
    }


def _synthetic(n: int = 3000) -> tuple[Any, Any, Any, Callable[[Any], Any]]:
    """Over-confident predictions whose true frequency is known, and a feature that hides two groups."""
    rng = np.random.default_rng(0)
    c = rng.beta(0.9, 0.9, n)

    def truth(t: Any) -> Any:
        return 0.12 + 0.72 * np.asarray(t)

    feature = rng.normal(size=(n, 2))
    shift = 0.2 * np.where(feature[:, 0] > 0, 1, -1) * 4 * c * (1 - c)
    y = (rng.random(n) < np.clip(truth(c) + shift, 0, 1)).astype(int)
    return y, c, feature, truth


def main(folder: str) -> None:
    """Draw everything into ``folder``."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    names = []
    for name, drawn in figures().items():
        made = drawn()
        figure = getattr(made, "figure", made)
        figure.savefig(out / f"{name}.png", dpi=110, bbox_inches="tight")
        figure.savefig(out / f"{name}.svg", bbox_inches="tight")
        names.append(name)
    cells = "\n".join(
        f'<figure><a href="{n}.svg"><img src="{n}.png" alt="{escape(n)}" loading="lazy"></a>'
        f"<figcaption>{escape(n)}</figcaption></figure>"
        for n in names
    )
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>calibrary gallery</title>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        "<style>body{font:16px system-ui,sans-serif;margin:1.5rem;background:#fafafa;color:#1d2129}"
        "main{display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));gap:1rem}"
        "figure{margin:0;background:#fff;border:1px solid #ddd;border-radius:.5rem;padding:.6rem}"
        "img{width:100%;height:auto}figcaption{color:#666;font-size:.9rem}</style>"
        f"<h1>calibrary gallery</h1><main>{cells}</main></html>"
    )
    (out / "index.html").write_text(page, encoding="utf-8")
    print(f"{len(names)} figures in {out}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gallery")
