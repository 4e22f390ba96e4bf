"""Time of the one-dimensional kernel and fitted-curve metrics on a million predictions, as a ratio to sorting them.

    python benchmarks/kernel.py [number of predictions] [words that select rows]

What the columns mean is said in ``sorts.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sorts import Row, main, metric

import calibrary as cal
from calibrary.kernels import median_bandwidth
from calibrary.maps import as_map


def _fit(name: str, **options: Any) -> Callable[..., Any]:
    def run(y: Any, c: Any, **keywords: Any) -> Any:
        return as_map(name, **options).fit(y, c, **keywords)

    return run


def _median(y: Any, c: Any) -> float:
    return median_bandwidth(cal.predictions(y, c))


ROWS: list[Row] = [
    ("MMCE", 2.0, metric("mmce"), "binary"),
    ("LKCE", 2.0, metric("lkce"), "binary"),
    ("MMCE, Gaussian kernel", None, metric("mmce", kernel="gaussian"), "binary"),
    ("MMCE, weighted rows", None, metric("mmce"), "weighted"),
    ("SCE", 4.0, metric("sce"), "binary"),
    ("SCE, slope 5", None, metric("sce", lipschitz=5), "binary"),
    ("smECE", 4.0, metric("smece"), "binary"),
    ("smECE, calibrated", 4.0, metric("smece"), "calibrated"),
    ("smECE, two decimals", 4.0, metric("smece"), "decimal"),
    ("MSCE", 4.0, metric("msce"), "binary"),
    ("SECE", 4.0, metric("sece"), "binary"),
    ("MSCE, leave-one-out", None, metric("msce", leave_one_out=True), "binary"),
    ("MSCE, triweight", None, metric("msce", kernel="triweight"), "binary"),
    ("LSECE", 4.0, metric("lsece"), "binary"),
    ("SKDE", 6.0, metric("skde"), "binary"),
    ("BKDE, h = 0.01", 6.0, metric("bkde", bandwidth=0.01), "binary"),
    ("BKDE plug-in, h = 0.01", 6.0, metric("bkde", bandwidth=0.01, p=1), "binary"),
    ("BKDE, h = 0.0001", 6.0, metric("bkde", bandwidth=1e-4), "binary"),
    ("median distance, exact", 6.0, _median, "binary"),
    ("median distance, two decimals", 6.0, _median, "decimal"),
    ("ICI, R's surface", 6.0, metric("ici"), "binary"),
    ("ICI, weighted rows", 10.0, metric("ici"), "weighted"),
    ("ICI, two decimals", 6.0, metric("ici"), "decimal"),
    ("E50, R's surface", 6.0, metric("e50"), "binary"),
    ("E90, R's surface", 6.0, metric("e90"), "binary"),
    ("ICI, exact at every sample", 20.0, metric("ici", surface="direct"), "binary"),
    ("E90, exact at every sample", 20.0, metric("e90", surface="direct"), "binary"),
    ("ICI, lowess", None, metric("ici", map="lowess"), "binary"),
    ("Epanechnikov local linear", 6.0, metric("map_error", map="local_linear"), "binary"),
    ("reliability map score", None, metric("ls_ecoc_r"), "binary"),
    ("Cox intercept and slope", 10.0, metric("cis"), "binary"),
    ("beta fit", 10.0, _fit("beta"), "binary"),
    ("Platt fit", 10.0, _fit("platt"), "binary"),
    ("isotonic fit", 10.0, _fit("isotonic"), "binary"),
    ("temperature fit", None, _fit("temperature"), "binary"),
    ("spline fit, 5 knots", None, _fit("rcs"), "binary"),
    ("FOTT beta", 10.0, metric("fott_beta"), "binary"),
    ("beta calibration statistic", 10.0, metric("sbct"), "binary"),
    ("parabolic Wald", 10.0, metric("pws"), "binary"),
]

if __name__ == "__main__":
    main(ROWS)
