"""Reports in MLflow: numbers as metrics of the run, the page and its JSON as artifacts.

``log_report(cal.report(y, p))`` inside ``mlflow.start_run()``. Needs MLflow (``pip install calibrary[mlflow]``).
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import mlflow

from calibrary.reporting.model import Report

__all__ = ["log_report", "logged_numbers"]


def log_report(report: Report, *, prefix: str = "calibration", step: int | None = None, page: bool = True) -> None:
    """Log a report to the active run of MLflow.

    Parameters
    ----------
    report : Report
        What :func:`calibrary.report` gave.
    prefix : str
        Metrics are called ``calibration/ece``, ``calibration/ece/low`` and so on; artifacts lie in the folder of this
        name. Give each model of a run a prefix of its own.
    step : int, optional
        Step of the metrics, for a report after every epoch.
    page : bool
        Also store the page (``report.html``) and the report as data (``report.json``, which
        ``Report.from_dict`` reads).

    Notes
    -----
    Logged are the numbers of the report's short list (the primary metric first), with both ends of their intervals and
    what a calibrated model would show. The answer in words becomes the tag ``calibration.headline``. Numbers that are
    not finite are left out, because MLflow's stores treat them differently.

    Examples
    --------
    >>> import mlflow, calibrary as cal  # doctest: +SKIP
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     cal.mlflow.log_report(cal.report(y, p))
    """
    mlflow.log_metrics(logged_numbers(report, prefix), step=step)
    mlflow.set_tag(f"{prefix}.headline", report.headline)
    if page:
        with tempfile.TemporaryDirectory() as folder:
            report.save(Path(folder) / "report.html")
            Path(folder, "report.json").write_text(json.dumps(report.to_dict()), encoding="utf-8")
            mlflow.log_artifacts(folder, artifact_path=prefix)


def logged_numbers(report: Report, prefix: str = "calibration") -> dict[str, float]:
    """The numbers :func:`log_report` logs, by the name it gives them.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.mlflow import logged_numbers  # doctest: +SKIP
    >>> report = cal.report(*cal.datasets.breast_cancer()[:2], n_resamples=49)
    >>> round(logged_numbers(report)["calibration/ece"], 3)  # doctest: +SKIP
    0.058
    """
    numbers: dict[str, Any] = {}
    for row in report.short_list:
        name = f"{prefix}/{row.id}" + (f"/{row.part}" if row.part else "")
        ends = {"low": row.low, "high": row.high, "if_calibrated": row.calibrated}
        numbers |= {name: row.value, **{f"{name}/{word}": value for word, value in ends.items()}}
    # MLflow allows these letters only
    clean = {re.sub(r"[^\w./ -]", "_", name): value for name, value in numbers.items() if value is not None}
    return {name: float(value) for name, value in clean.items() if math.isfinite(value)}
