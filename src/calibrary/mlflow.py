"""Log reports to MLflow: numbers as metrics of the run, the page and its JSON as artifacts.

Call ``log_report(cal.report(y, p))`` inside ``mlflow.start_run()``. The module needs MLflow
(``pip install calibrary[mlflow]``).
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
        The result of :func:`calibrary.report`.
    prefix : str
        The beginning of the metrics' names (``calibration/ece``, ``calibration/ece/low``, ...), and the name of the
        folder of the artifacts. Use a different prefix for each model of a run.
    step : int, optional
        Step of the metrics, for a report after every epoch.
    page : bool
        Also store the page (``report.html``) and the report as data (``report.json``, which
        ``Report.from_dict`` reads).

    Notes
    -----
    The numbers of the report's short list (the primary metric first) are logged, with both ends of their intervals and
    the values expected by chance for a calibrated model. The headline becomes the tag ``calibration.headline``. Numbers
    that are not finite are left out, because the stores of MLflow treat them differently.

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
    """The numbers that :func:`log_report` logs, by their names in MLflow.

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
    # MLflow allows only these characters
    clean = {re.sub(r"[^\w./ -]", "_", name): value for name, value in numbers.items() if value is not None}
    return {name: float(value) for name, value in clean.items() if math.isfinite(value)}
