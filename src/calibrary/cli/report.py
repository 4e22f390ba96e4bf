"""``calibrary report`` and ``calibrary detection report``: from files to the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import calibrary as cal
from calibrary.cli.gates import apply_rules, rule_of
from calibrary.cli.options import (
    Bins,
    Drop,
    File,
    GroundTruth,
    Iou,
    Label,
    Lens,
    Logits,
    Metrics,
    Outputs,
    Positive,
    Prob,
    Quiet,
    Resamples,
    Results,
    Rule,
    Seed,
    Weight,
    err,
    listed,
    load,
    out,
    plain,
    say,
)
from calibrary.cli.read import PredictionFile
from calibrary.evaluation import FAMILIES
from calibrary.lookup import catalogue


def report(
    file: File,
    label: Label = None,
    prob: Prob = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Compare several models: a column or prefix each. Repeatable.")
    ] = None,
    weight: Weight = None,
    group: Annotated[str | None, typer.Option(help="Column of subgroups to report one by one.")] = None,
    positive: Positive = None,
    lens: Lens = "auto",
    metrics: Metrics = None,
    family: Annotated[list[str] | None, typer.Option(help=f"Only these families: {', '.join(FAMILIES)}.")] = None,
    primary: Annotated[str, typer.Option(help="The metric of the headline, chosen in advance.")] = "ece",
    bins: Bins = None,
    resamples: Resamples = None,
    seed: Seed = 0,
    ordinal: Annotated[bool, typer.Option("--ordinal", help="The classes are in order.")] = False,
    logits: Logits = False,
    drop_missing: Drop = False,
    output: Outputs = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option("--fail-if", help='Exit with status 1 if this holds, e.g. "ece>0.05". Repeatable.'),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Is it calibrated, by how much, which way, where, and how sure is that?

    Examples: `calibrary report predictions.csv`, `calibrary report p.parquet --label y --prob p -o report.html`,
    `calibrary report p.csv --model a --model b --fail-if "ece>0.05"`.
    """
    from calibrary.reporting import compare_models
    from calibrary.reporting.compose import default_resamples
    from calibrary.reporting.write import check_paths, save

    rules = [rule_of(text) for text in fail_if or []]
    check_paths(output or [])
    catalogue[primary]
    found = load(
        file, quiet, label=label, prob=prob, models=model, weight=weight, group=group, positive=positive,
        logits=logits, drop_missing=drop_missing,
    )  # fmt: skip
    wanted = [*(listed(metrics) or []), *(listed(family) or []), *(rule.metric for rule in rules)]
    say("computing every metric that applies", quiet)
    reports = [
        cal.report(
            found.predictions(name),
            groups=found.group,
            metrics=wanted if metrics or family else None,
            primary=primary,
            lens=lens,
            ordinal=ordinal,
            n_bins=bins,
            n_resamples=resamples,
            rng=seed,
            title=_title(found, name),
            notes=found.notes,
        )
        for name in found.models
    ]
    draws = default_resamples(len(found.y)) if resamples is None else resamples
    comparisons: Any = ()
    if len(reports) > 1 and draws > 0:
        comparisons = compare_models(
            found.y, found.models, metrics=(catalogue[primary].key, "bs"), n_resamples=draws, rng=seed,
            sample_weight=found.weight,
        )  # fmt: skip
    save(reports, output or [], comparisons)
    show(reports, comparisons, quiet)
    for path in output or []:
        err.print(f"written: {path}", highlight=False)
    apply_rules(rules, reports)


def detection_report(
    ground_truth: GroundTruth,
    results: Results,
    iou_threshold: Iou = 0.5,
    matching: Rule = "coco",
    metrics: Metrics = None,
    primary: Annotated[str, typer.Option(help="The metric of the headline.")] = "d_ece",
    resamples: Resamples = None,
    seed: Seed = 0,
    output: Outputs = None,
    fail_if: Annotated[list[str] | None, typer.Option("--fail-if", help='e.g. "d_ece>0.1". Repeatable.')] = None,
    quiet: Quiet = False,
) -> None:
    """A detector's calibration from the two COCO files: `calibrary detection report gt.json results.json`."""
    from calibrary.reporting.write import check_paths, save

    rules = [rule_of(text) for text in fail_if or []]
    check_paths(output or [])
    say("matching and computing", quiet)
    matches = cal.match_detections(ground_truth, results, iou_threshold=iou_threshold, matching=matching)
    answer = cal.report(
        matches, metrics=listed(metrics), primary=primary, n_resamples=resamples, rng=seed, title=results.name
    )
    save([answer], output or [])
    show([answer], (), quiet)
    for path in output or []:
        err.print(f"written: {path}", highlight=False)
    apply_rules(rules, [answer])


def _title(found: PredictionFile, model: str) -> str:
    return f"{Path(found.source).name if found.source != '-' else 'standard input'}: {model}"


def show(reports: list[Any], comparisons: Any, quiet: bool) -> None:
    from calibrary.reporting.text import COMPARISON_HEAD, HEAD, comparison_cells

    for r in reports:
        out.print(f"\n[bold]{plain(r.title)}[/]", highlight=False)
        out.print(plain(r.headline), highlight=False)
        if quiet:
            continue
        for finding in r.findings:
            out.print(f"  - {plain(finding)}", highlight=False)
        _show_table(r, [HEAD.index(name) for name in (HEAD if out.width >= 130 else _NARROW)])
        if r.evaluation.skipped:
            out.print(f"[dim]not computed ({len(r.evaluation.skipped)}): {', '.join(r.evaluation.skipped)}[/]")
    if comparisons:
        table = Table(*COMPARISON_HEAD, title="comparison", title_justify="left", box=None, pad_edge=False)
        for texts in comparison_cells(comparisons):
            table.add_row(*(plain(t) for t in texts))
        out.print(table)


#: What a table shows in a terminal too narrow for every column.
_NARROW = ("metric", "value", "interval", "p adjusted", "ideal", "verdict")


def _show_table(r: Any, columns: list[int]) -> None:
    from calibrary.reporting.text import HEAD, cells

    rows = list(zip(r.evaluation.rows, cells(r), strict=True))
    widths = [max(len(HEAD[j]), *(len(texts[j]) for _, texts in rows)) for j in columns]
    for family in dict.fromkeys(row.family for row, _ in rows):
        table = Table(title=f"{family} family", title_justify="left", box=None, pad_edge=False)
        for j, width in zip(columns, widths, strict=True):
            table.add_column(HEAD[j], min_width=min(width, 40))
        for row, texts in rows:
            if row.family == family:
                table.add_row(*(plain(texts[j]) for j in columns), style="bold" if row.primary else "")
        out.print(table)
