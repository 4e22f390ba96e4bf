"""One metric, one comparison or one figure from files: ``calibrary metric | compare | plot``."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

import calibrary as cal
from calibrary.base.files import check_writable, write_atomically
from calibrary.cli.read import PredictionFile
from calibrary.cli.shared import (
    Bins,
    ClassColumn,
    Drop,
    DropInvalid,
    File,
    Files,
    GroundTruth,
    Id,
    Iou,
    Label,
    Labels,
    Lens,
    Logits,
    Metrics,
    ModelColumn,
    Normalize,
    Percent,
    Positive,
    Prob,
    Quiet,
    Resamples,
    Results,
    Rule,
    Scorer,
    Seed,
    Unit,
    Weight,
    WeightType,
    draws_of,
    err,
    listed,
    load,
    needs_option,
    out,
    plain,
    refuse_unused,
    say,
    taking,
    written,
)
from calibrary.cli.sources import InputError
from calibrary.lookup import catalogue


@dataclass(frozen=True)
class MetricCommand:
    """The arguments of ``calibrary metric``; each field is an option of the command."""

    id: Annotated[str, typer.Argument(help="Metric id or alias; calibrary list shows all.")]
    file: File
    label: Label = None
    prob: Prob = None
    weight: Weight = None
    weight_type: WeightType = "frequency"
    unit: Unit = None
    positive: Positive = None
    labels: Labels = None
    lens: Lens = "auto"
    interval: Annotated[bool, typer.Option("--interval", help="Add a confidence interval.")] = False
    test: Annotated[bool, typer.Option("--test", help="Add a test of perfect calibration.")] = False
    resamples: Resamples = None
    seed: Seed = 0
    logits: Logits = False
    percent: Percent = False
    id_column: Id = None
    class_column: ClassColumn = None
    scorer: Scorer = None
    normalize: Normalize = "none"
    drop_missing: Drop = False
    drop_invalid: DropInvalid = False
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge", help="Column of an automatic judge's labels; the label column holds a few human labels."
        ),
    ] = None
    inclusion: Annotated[
        str | None,
        typer.Option("--inclusion", help="Column of each row's probability of getting a human label (with --judge)."),
    ] = None
    quiet: Quiet = False

    def load(self) -> PredictionFile:
        """The predictions of the file."""
        return load(
            self.file, self.quiet, label=self.label, prob=self.prob, weight=self.weight, positive=self.positive,
            labels=self.labels, logits=self.logits, percent=self.percent, drop_missing=self.drop_missing,
            drop_invalid=self.drop_invalid, id=self.id_column, class_column=self.class_column, scorer=self.scorer,
            normalize=self.normalize, others=[self.unit] if self.unit else [],
        )  # fmt: skip


#: The options that have an effect with --judge, whose result always has an interval.
JUDGED = (
    "label", "prob", "interval", "test", "resamples", "seed", "logits", "percent", "judge", "inclusion", "quiet",
)  # fmt: skip


@taking(MetricCommand)
def metric(command: MetricCommand) -> None:
    """Compute one metric: `calibrary metric ece predictions.csv --interval`."""
    entry = catalogue[command.id]
    if command.judge is not None:
        _judged(entry, command, command.judge)
        return
    needs_option(command, {"inclusion": ("--judge",)})
    interval, test, lens, unit = command.interval, command.test, command.lens, command.unit
    draws = draws_of(command.resamples, "--interval" if interval else "--test" if test else "")
    found = command.load()
    p = found.predictions()
    if unit is None and found.unit and (interval or test):
        unit = found.unit
    result = cal.evaluate(
        p,
        metrics=[entry.key],
        lens=lens,
        weight_type=command.weight_type,
        intervals=interval and unit is None,
        tests=test and unit is None,
        primary=entry.key,
        n_resamples=draws,
        rng=command.seed,
    )
    if not result.rows:
        raise InputError(f"{entry.key}: {result.skipped[entry.key]}")
    rows: Sequence[Any] = result.rows
    if unit is not None:
        if not (interval or test):
            raise InputError("--unit affects only the resampling: add --interval or --test")
        settings = {
            "lens": lens, "weight_type": command.weight_type, "units": found.others[unit], "n_resamples": draws,
            "rng": command.seed,
        }  # fmt: skip
        rows = _by_unit(entry.key, p, rows, settings, interval, test)
    for row in rows:
        text = f"{_shown(row.name, f'{row.id}.{row.part}' if row.part else row.id)} {row.value:.10g}"
        if row.low is not None:
            text += f"  [{row.low:.6g}, {row.high:.6g}]"
        if row.pvalue is not None:
            text += f"  p = {row.pvalue:.4g}"
        out.print(plain(text))
        if row.note and not command.quiet:
            err.print(f"[yellow]{plain(row.note)}[/]")


def _judged(entry: Any, command: MetricCommand, judge: str) -> None:
    """Print the metric from human labels and a judge's labels together."""
    from calibrary.cli.judge import judged_of

    refuse_unused(command, "--judge", JUDGED)
    found = judged_of(
        entry.key, command.file, judge, label=command.label, prob=command.prob, inclusion=command.inclusion,
        percent=command.percent, logits=command.logits, rng=command.seed,
        n_resamples=draws_of(command.resamples, "--judge"),
    )  # fmt: skip
    if command.test and np.isnan(found.pvalue):
        raise InputError(f"{entry.key} is a mean of losses, which has no test with --judge: leave --test out")
    tested = f"  p = {found.pvalue:.4g}" if command.test else ""
    shown = _shown(entry.name, entry.key)
    out.print(plain(f"{shown} {found.estimate:.10g}  [{found.low:.6g}, {found.high:.6g}]{tested}"))
    if not command.quiet:
        err.print(plain(found.sentence), soft_wrap=True)


def _shown(name: str, id: str) -> str:
    """The id alone for the next program of a pipe; for a terminal, the name with the id."""
    return f"{name} ({id})" if out.file.isatty() else id


def _by_unit(
    id: str, p: Any, rows: Sequence[Any], settings: dict[str, Any], interval: bool, test: bool
) -> Sequence[Any]:
    """The metric's values with an interval and a p-value from resampling whole units."""
    if interval:
        ends = cal.interval(id, p, **settings)
        low, high = np.atleast_1d(ends.low), np.atleast_1d(ends.high)
        rows = [replace(row, low=float(low[i]), high=float(high[i])) for i, row in enumerate(rows)]
    if test:
        result = cal.test(id, p, **settings)
        pvalues = np.atleast_1d(result.pvalue if result.pvalues is None else result.pvalues)
        rows = [replace(row, pvalue=float(pvalues[i])) for i, row in enumerate(rows)]
    return rows


def compare(
    files: Files,
    prob: Annotated[
        list[str] | None,
        typer.Option(help="One column or prefix per model; with several files, the column in each file."),
    ] = None,
    label: Label = None,
    weight: Weight = None,
    weight_type: WeightType = "frequency",
    positive: Positive = None,
    labels: Labels = None,
    unit: Unit = None,
    metrics: Metrics = None,
    resamples: Resamples = None,
    seed: Seed = 0,
    logits: Logits = False,
    percent: Percent = False,
    id_column: Id = None,
    model_column: ModelColumn = None,
    scorer: Scorer = None,
    normalize: Normalize = "none",
    drop_missing: Drop = False,
    quiet: Quiet = False,
) -> None:
    """Compare models on the same rows: `calibrary compare p.csv --prob a --prob b`, or `... compare a.csv b.csv`."""
    from calibrary.reporting import compare_models

    draws = draws_of(resamples, "compare")
    beside = len(files) > 1 or model_column is not None  # the models are given by files or rows, not by columns
    found = load(
        files, quiet, label=label, weight=weight, positive=positive, labels=labels, logits=logits, percent=percent,
        id=id_column, drop_missing=drop_missing, model_column=model_column, scorer=scorer, normalize=normalize,
        others=[unit] if unit else [], **{"prob" if beside else "models": prob},
    )  # fmt: skip
    if len(found.models) < 2:
        raise InputError("compare needs at least two models: repeat --prob, name several files, or pass --model-column")
    ids = tuple(catalogue[m].key for m in listed(metrics) or ["ece", "bs"])
    say("comparing", quiet)
    unit = unit or found.unit
    found_pairs = compare_models(
        found.y,
        found.models,
        metrics=ids,
        n_resamples=draws,
        rng=seed,
        sample_weight=found.weight,
        weight_type=weight_type,
        outcomes=found.outcomes,
        units=found.others[unit] if unit else None,
    )
    from calibrary.reporting.text import COMPARISON_HEAD, comparison_cells

    table = Table(*COMPARISON_HEAD, box=None, pad_edge=False)
    for texts in comparison_cells(found_pairs):
        table.add_row(*(plain(t) for t in texts))
    out.print(table)


def plot(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="Figure to write: .svg, .pdf or .png.")],
    kind: Annotated[
        str, typer.Option(help="Type of figure: overview, reliability, smooth, corp, cumulative, brier, ...")
    ] = "overview",
    label: Label = None,
    prob: Prob = None,
    weight: Weight = None,
    positive: Positive = None,
    labels: Labels = None,
    bins: Bins = None,
    logits: Logits = False,
    percent: Percent = False,
    scorer: Scorer = None,
    normalize: Normalize = "none",
    drop_missing: Drop = False,
    quiet: Quiet = False,
) -> None:
    """Draw one figure: `calibrary plot predictions.csv --kind reliability -o figure.svg`.

    `calibrary plot figure3 -o f.png` draws a figure of the review, 1 to 7, from data that the library includes.
    """
    from calibrary.plots import draw, figure
    from calibrary.plots.review_figures import FIGURES

    _check_figure(output)
    if str(file) in FIGURES and not Path(file).exists():
        _save_figure(figure(str(file)), output)
        return
    found = load(
        file,
        quiet,
        label=label,
        prob=prob,
        weight=weight,
        positive=positive,
        labels=labels,
        logits=logits,
        percent=percent,
        scorer=scorer,
        normalize=normalize,
        drop_missing=drop_missing,
    )
    p = found.predictions()
    _save_figure(draw(kind, p, n_bins=bins or 15), output)


def _check_figure(output: Path) -> None:
    """Refuse, before any computation, an output file that could not be written at the end."""
    if output.suffix not in (".svg", ".pdf", ".png"):
        raise InputError(f"{output}: the extension chooses the format, and must be one of .svg, .pdf, .png")
    check_writable(output)


def _save_figure(figure: Any, output: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=output.suffix[1:], bbox_inches="tight", dpi=200)
    write_atomically(output, buffer.getvalue())
    written(output)


def detection_plot(
    ground_truth: GroundTruth,
    results: Results,
    output: Annotated[Path, typer.Option("--output", "-o", help="Figure to write: .svg, .pdf or .png.")],
    kind: Annotated[str, typer.Option(help="Type of figure: detection, d-ece-map, ...")] = "detection",
    iou_threshold: Iou = 0.5,
    matching: Rule = "coco",
) -> None:
    """Draw a figure of a detector's calibration."""
    from calibrary.plots import draw

    _check_figure(output)
    matches = cal.match_detections(ground_truth, results, iou_threshold=iou_threshold, matching=matching)
    _save_figure(draw(kind, matches), output)
