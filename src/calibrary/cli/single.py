"""One metric, one comparison or one figure from files: ``calibrary metric | compare | plot``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

import calibrary as cal
from calibrary.base.files import write_atomically
from calibrary.cli.console import err, out, plain
from calibrary.cli.shared import check_output, draws_of, listed, load, noted, reading, say, table_of, written
from calibrary.cli.taking import needs_option, refuse_unused, taking
from calibrary.lookup import catalogue
from calibrary.tables.layout import FileLayout
from calibrary.tables.sources import InputError

#: The options that have an effect with --judge, whose result always has an interval.
JUDGED = (
    "label", "prob", "interval", "test", "resamples", "seed", "logits", "percent", "judge", "inclusion", "quiet",
)  # fmt: skip


@taking("metric")
def metric(command: Any) -> None:
    """Compute one metric: `calibrary metric ece predictions.csv --interval`."""
    entry = catalogue[command.id]
    if command.judge is not None:
        _judged(entry, command, command.judge)
        return
    needs_option(command, {"inclusion": ("--judge",)})
    interval, test, lens, unit = command.interval, command.test, command.lens, command.unit
    draws = draws_of(command.resamples, "--interval" if interval else "--test" if test else "")
    found = load(command.file, command.quiet, **reading(command), others=[command.unit] if command.unit else [])
    p = found.predictions()
    if unit is None and found.unit and (interval or test):
        unit = found.unit
    if unit is not None and not (interval or test):
        raise InputError("--unit affects only the resampling: add --interval or --test")
    units = found.others[unit] if unit else None
    result = cal.evaluate(
        p, metrics=[entry.key], primary=entry.key, lens=lens, weight_type=command.weight_type, n_resamples=draws,
        rng=command.seed, intervals=interval, tests=test, units=units,
    )  # fmt: skip
    if not result.rows:
        raise InputError(f"{entry.key}: {result.skipped[entry.key]}")
    for row in result.rows:
        if unit is not None and test and row.pvalue is None:
            cal.test(entry.key, p, units=units)  # refuses, and names metrics that have one
        text = f"{_shown(row.name, f'{row.id}.{row.part}' if row.part else row.id)} {row.value:.10g}"
        if row.low is not None and not np.isnan([row.low, row.high]).all():
            text += f"  [{row.low:.6g}, {row.high:.6g}]"
        if row.pvalue is not None:
            text += f"  p = {row.pvalue:.4g}"
        out.print(plain(text))
        if row.note and not command.quiet:
            err.print(f"[yellow]{plain(row.note)}[/]")


def _judged(entry: Any, command: Any, judge: str) -> None:
    """Print the metric from human labels and a judge's labels together."""
    from calibrary.cli.members import judged_of

    refuse_unused(command, "--judge", JUDGED)
    how = FileLayout(label=command.label, prob=command.prob, percent=command.percent, logits=command.logits)
    draws = draws_of(command.resamples, "--judge")
    found, notes = judged_of(
        entry.key, command.file, how, judge, command.inclusion, rng=command.seed, n_resamples=draws
    )
    noted(notes, command.quiet)
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


@taking("compare")
def compare(given: Any) -> None:
    """Compare models on the same rows: `calibrary compare p.csv --prob a --prob b`, or `... compare a.csv b.csv`."""
    unit = given.unit
    from calibrary.reporting import compare_models

    draws = draws_of(given.resamples, "compare")
    read = reading(given)
    if len(given.files) == 1 and given.model_column is None:  # else the models are given by files or rows
        read["models"] = read.pop("prob")
    found = load(given.files, given.quiet, **read, others=[unit] if unit else [])
    if len(found.models) < 2:
        raise InputError("compare needs at least two models: repeat --prob, name several files, or pass --model-column")
    ranking = ["auroc"] if next(iter(found.models.values())).ndim == 1 else []
    ids = tuple(catalogue[m].key for m in listed(given.metrics) or ["ece", "bs", *ranking])
    say("comparing", given.quiet)
    unit = unit or found.unit
    rows: dict[str, Any] = {"sample_weight": found.weight, "units": found.others[unit] if unit else None}
    rows |= {"outcomes": found.outcomes, "weight_type": given.weight_type}
    found_pairs = compare_models(found.y, found.models, metrics=ids, n_resamples=draws, rng=given.seed, **rows)
    from calibrary.reporting.compared import answer
    from calibrary.reporting.text import comparison_table

    for sentence in answer(found_pairs, ids[0]):
        out.print(plain(sentence))
    out.print()
    out.print(table_of(*comparison_table(found_pairs)))


@taking("plot")
def plot(given: Any) -> None:
    """Draw one figure: `calibrary plot predictions.csv --kind reliability -o figure.svg`.

    `calibrary plot figure3 -o f.png` draws a figure of the review, 1 to 7, from data that the library includes.
    """
    from calibrary.plots import draw, figure
    from calibrary.plots.review_figures import FIGURES

    check_output(given.output, *_FIGURE)
    if str(given.file) in FIGURES and not Path(given.file).exists():
        _save_figure(figure(str(given.file)), given.output)
        return
    p = load(given.file, given.quiet, **reading(given)).predictions()
    _save_figure(draw(given.kind, p, n_bins=given.bins, axis=given.axis), given.output)


#: Why a file is refused that cannot hold a figure, and the endings of those that can.
_FIGURE = ("the extension chooses the format, and must be one of .svg, .pdf, .png", ".svg", ".pdf", ".png")


def _save_figure(figure: Any, output: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=output.suffix[1:], bbox_inches="tight", dpi=200)
    write_atomically(output, buffer.getvalue())
    written(output)


@taking("detection-plot")
def detection_plot(given: Any) -> None:
    """Draw a figure of a detector's calibration."""
    from calibrary.plots import draw

    check_output(given.output, *_FIGURE)
    matches = cal.match_detections(
        given.ground_truth, given.results, iou_threshold=given.iou_threshold, matching=given.matching
    )
    _save_figure(draw(given.kind, matches), given.output)
