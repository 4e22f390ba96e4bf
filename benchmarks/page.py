"""The page that a reader can change: how long a redraw takes, how large the page is, how close its numbers are.

``python benchmarks/page.py`` writes ``benchmarks/page.json``; it needs chromium and its driver. A redraw is the time
from the event of the slider to the end of the script and of the layout that follows, the median and the slowest of 49.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

import calibrary as cal
from calibrary.inference.draw.null import MonteCarlo
from calibrary.lookup import catalogue
from calibrary.question import Question
from calibrary.reporting.live import cells_of

#: Spread and shift of the log odds of each world.
WORLDS = {"plain": (1.2, 0.0), "rare": (1.3, -4.0), "sure": (8.0, 0.0)}
REDRAW = """
const slider = document.getElementById("bins"), took = [];
for (let count = 2; count <= 50; count++) {
  const start = performance.now();
  slider.value = count;
  slider.dispatchEvent(new Event("input"));
  document.body.getBoundingClientRect();
  took.push(performance.now() - start);
}
return took;
"""


def rows(n: int, world: str, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities that are too extreme."""
    rng = np.random.default_rng(seed)
    spread, shift = WORLDS[world]
    z = rng.normal(size=n) * spread + shift
    return rng.random(n) < 1 / (1 + np.exp(-0.7 * z)), 1 / (1 + np.exp(-z))


def browser():
    """A window without a screen."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def closeness(driver, world: str, n: int, draws: int) -> dict[str, float]:
    """The largest distance of the page's numbers from the library's over bins of both kinds; of chance, as a share."""
    y, p = rows(n, world, seed=2)
    data = cal.predictions(y, p)
    cells = cells_of(data, 50)
    ece, mean, high = [], [], []
    for binning in ("width", "mass"):
        for count in (5, 10, 15, 20, 30, 50):
            asked = Question({"n_bins": count, "binning": binning}, n_resamples=draws, rng=0)
            null = MonteCarlo(n_resamples=draws, rng=0).test(catalogue["ece"], data, asked).null
            value, found = driver.execute_script(
                "const bins = binsOf(...arguments); return [eceOf(bins), chanceOf(bins)]",
                cells.to_dict(), binning, count,
            )  # fmt: skip
            ece.append(abs(value - cal.expected_calibration_error(y, p, n_bins=count, binning=binning)))
            mean.append(abs(found["mean"] / float(np.mean(null.values)) - 1.0))
            high.append(abs(found["high"] / float(null.quantile(0.95)) - 1.0))
    return {"ece": max(ece), "mean if calibrated": max(mean), "95% quantile if calibrated": max(high)}


def measured(sizes: tuple[int, ...] = (1_000, 30_000), draws: int = 4_000) -> dict:
    """Every number of the benchmark."""
    driver = browser()
    found: dict = {"redraw in ms": {}, "bytes": {}, "distance from the library": {}}
    try:
        for n in sizes:
            y, p = rows(n, "plain")
            site = np.random.default_rng(3).choice(["a", "b", "c"], n)
            made = cal.report(y, p, metrics=["ece", "bs"], n_resamples=39, by={"site": site}, thresholds=[0.3])
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "page.html"
                made.save(path)
                driver.get(path.as_uri())
                found["bytes"][n] = {"page": path.stat().st_size, "cells": len(made.live.text)}
            took = driver.execute_script(REDRAW)
            found["redraw in ms"][n] = {"median": statistics.median(took), "slowest": max(took)}
        found["distance from the library"] = {w: closeness(driver, w, 1_000, draws) for w in WORLDS}
    finally:
        driver.quit()
    return found


if __name__ == "__main__":
    result = measured((1_000,), 400) if "--quick" in sys.argv else measured()
    Path(__file__).with_name("page.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
