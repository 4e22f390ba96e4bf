"""Log reports to MLflow: numbers as metrics of the run, the page and its JSON as artifacts.

Call ``log_report(cal.report(y, p))`` inside ``mlflow.start_run()``, or name the evaluator:
``mlflow.models.evaluate(..., model_type="classifier", evaluators="calibrary")``. The module needs MLflow
(``pip install calibrary[mlflow]``).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import mlflow

from calibrary.tracking import logged_numbers

if TYPE_CHECKING:
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
            report.save(Path(folder, "report.html"), Path(folder, "report.json"))
            mlflow.log_artifacts(folder, artifact_path=prefix)
