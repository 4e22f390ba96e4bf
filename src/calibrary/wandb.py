"""Log reports to Weights & Biases: numbers as summary of the run, the page, and the reliability diagram as a table.

Call ``log_report(cal.report(y, p))`` in a run. The function needs wandb (``pip install calibrary[wandb]``).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrary.base.errors import RefusedCallError, extra
from calibrary.tracking import logged_numbers

if TYPE_CHECKING:
    from calibrary.reporting.model import Report

__all__ = ["log_report"]


def log_report(report: Report, *, run: Any = None, prefix: str = "calibration", page: bool = True) -> None:
    """Log a report to a run of Weights & Biases.

    Parameters
    ----------
    report : Report
        The result of :func:`calibrary.report`.
    run : wandb.Run, optional
        The active run by default.
    prefix : str
        The beginning of all names (``calibration/ece``, ``calibration/ece/low``, ...); a different one for each model.
    page : bool
        Also log the page (``calibration/page``), and the page and its data as an artifact.

    Notes
    -----
    The numbers are those that :func:`calibrary.mlflow.log_report` logs, and ``calibration/headline`` is the answer in
    words. The table ``calibration/reliability`` has one row per bin, for line and scatter plots of W&B. A report that
    was read from its JSON has no predictions, and then no table.

    Examples
    --------
    >>> import calibrary as cal
    >>> import wandb  # doctest: +SKIP
    >>> with wandb.init(project="calibration") as run:  # doctest: +SKIP
    ...     cal.wandb.log_report(cal.report(y, p))
    """
    with extra("wandb", "calibrary.wandb.log_report"):
        import wandb
    run = wandb.run if run is None else run
    if run is None:
        raise RefusedCallError("no run of Weights & Biases is active: call wandb.init(project=...) first, or pass run=")
    run.summary.update({**logged_numbers(report, prefix), f"{prefix}/headline": report.headline})
    if report.predictions is not None:
        from calibrary.plots.reliability import reliability_data

        bins = reliability_data(report.predictions, interval=False)
        columns = {**bins.table(), "low": bins.low, "high": bins.high}
        rows = [[float(x) for x in row] for row in zip(*columns.values(), strict=True)]
        run.log({f"{prefix}/reliability": wandb.Table(columns=list(columns), data=rows)})
    if page:
        with tempfile.TemporaryDirectory() as folder:
            report.save(Path(folder, "report.html"), Path(folder, "report.json"))
            text = Path(folder, "report.html").read_text(encoding="utf-8")
            run.log({f"{prefix}/page": wandb.Html(text, inject=False)})
            kept = wandb.Artifact(prefix.replace("/", "-"), type="calibration report")
            kept.add_dir(folder)
            run.log_artifact(kept)


def __dir__() -> list[str]:
    return sorted(__all__)
