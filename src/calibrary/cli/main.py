"""The command line: from a file of predictions to an answer.

``calibrary report predictions.csv`` is the main job; ``calibrary demo`` shows it on embedded data.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import calibrary as cal
from calibrary.cli import recalibrate
from calibrary.cli.read import InputError, PredictionFile, read_predictions
from calibrary.curves import Curve, curve_named
from calibrary.evaluation import FAMILIES
from calibrary.lookup import catalogue
from calibrary.metrics.declare import Entry

app = typer.Typer(
    help="Can these predicted probabilities be believed? Start with: calibrary demo, or calibrary report FILE.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
detection = typer.Typer(help="Detectors: COCO ground truth and results in, answer out.", no_args_is_help=True)
app.add_typer(detection, name="detection")
app.add_typer(recalibrate.app, name="recalibrate")

out = Console()
err = Console(stderr=True)


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit status 2, never a traceback."""
    try:
        status = app(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except (InputError, ValueError, TypeError) as error:
        err.print(f"[red]calibrary:[/] {_plain(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        err.print("stopped")
        sys.exit(130)
    except Exception as error:
        # click's usage errors know how to show themselves; anything else is a bug and keeps its traceback
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()
            sys.exit(error.exit_code)
        raise


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


# -- options shared by the commands ------------------------------------------------------------------

File = Annotated[str, typer.Argument(help="CSV, TSV (.gz), Parquet, Arrow, JSON lines or NPZ; - for standard input.")]
Label = Annotated[
    str | None, typer.Option("--label", "--correct", help="Column of the true class (guessed when obvious).")
]
Prob = Annotated[
    list[str] | None,
    typer.Option(
        "--prob", "--confidence", help="Probability column(s), or a prefix such as p for p0, p1, ... Repeatable."
    ),
]
Weight = Annotated[str | None, typer.Option(help="Column of weights: 2 is the row written twice.")]
Positive = Annotated[str | None, typer.Option(help="The label the probabilities are of, when labels are two names.")]
Lens = Annotated[str, typer.Option(help="auto, binary, top-label, class-wise, pairwise, full, ...")]
Bins = Annotated[
    int | None, typer.Option(help="Bins of every binned metric and figure; each metric's own number unless given.")
]
Logits = Annotated[bool, typer.Option("--logits", help="The columns hold logits, not probabilities.")]
Drop = Annotated[bool, typer.Option("--drop-missing", help="Leave rows with missing values out.")]
Resamples = Annotated[int | None, typer.Option(help="Bootstrap and Monte Carlo draws; 0 for point values only.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the answer.")]
Outputs = Annotated[
    list[Path] | None, typer.Option("--output", "-o", help="Write .html, .md, .json or .csv. Repeatable.")
]
Metrics = Annotated[list[str] | None, typer.Option(help="Only these metrics or families. Repeatable, or commas.")]


def _load(file: str, quiet: bool, **options: Any) -> PredictionFile:
    found = read_predictions(file, **options)
    if not quiet:
        for note in found.notes:
            err.print(f"[dim]{_plain(note)}[/]")
        if found.n_dropped:
            err.print(f"[dim]{found.n_dropped:,} rows with missing values left out[/]")
    return found


def _say(text: str, quiet: bool) -> None:
    """One line about what takes time; the bar of the resampling itself follows it."""
    if not quiet and err.is_terminal:
        err.print(f"[dim]{text} ...[/]")


def _listed(values: list[str] | None) -> list[str] | None:
    return None if not values else [part.strip() for v in values for part in v.split(",") if part.strip()]


# -- report ------------------------------------------------------------------------------------------


@app.command()
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

    rules = [_rule(text) for text in fail_if or []]
    check_paths(output or [])
    catalogue[primary]
    found = _load(
        file, quiet, label=label, prob=prob, models=model, weight=weight, group=group, positive=positive,
        logits=logits, drop_missing=drop_missing,
    )  # fmt: skip
    wanted = [*(_listed(metrics) or []), *(_listed(family) or []), *(rule[0] for rule in rules)]
    _say("computing every metric that applies", quiet)
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
            found.y, found.models, metrics=(catalogue[primary].id, "bs"), n_resamples=draws, rng=seed,
            sample_weight=found.weight,
        )  # fmt: skip
    save(reports, output or [], comparisons)
    _show(reports, comparisons, quiet)
    for path in output or []:
        err.print(f"written: {path}", highlight=False)
    _apply(rules, reports)


def _title(found: PredictionFile, model: str) -> str:
    return f"{Path(found.source).name if found.source != '-' else 'standard input'}: {model}"


def _show(reports: list[Any], comparisons: Any, quiet: bool) -> None:
    from calibrary.reporting.text import COMPARISON_HEAD, HEAD, comparison_cells

    for r in reports:
        out.print(f"\n[bold]{_plain(r.title)}[/]", highlight=False)
        out.print(_plain(r.headline), highlight=False)
        if quiet:
            continue
        for finding in r.findings:
            out.print(f"  - {_plain(finding)}", highlight=False)
        _show_table(r, [HEAD.index(name) for name in (HEAD if out.width >= 130 else _NARROW)])
        if r.evaluation.skipped:
            out.print(f"[dim]not computed ({len(r.evaluation.skipped)}): {', '.join(r.evaluation.skipped)}[/]")
    if comparisons:
        table = Table(*COMPARISON_HEAD, title="comparison", title_justify="left", box=None, pad_edge=False)
        for texts in comparison_cells(comparisons):
            table.add_row(*(_plain(t) for t in texts))
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
                table.add_row(*(_plain(texts[j]) for j in columns), style="bold" if row.primary else "")
        out.print(table)


_OPERATORS = {
    ">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal,
}  # fmt: skip


def _rule(text: str) -> tuple[str, str, str, float]:
    """Parse "ece>0.05", "cis.slope<0.8" or "ece.high>0.1"."""
    found = re.fullmatch(r"\s*([\w\- ]+?)(?:\.(\w+))?\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*", text)
    if not found:
        raise InputError(f'--fail-if {text!r} is not of the form "metric>number", e.g. "ece>0.05" or "cis.slope<0.8"')
    return catalogue[found[1]].id, found[2] or "", found[3], float(found[4])


def _apply(rules: list[tuple[str, str, str, float]], reports: list[Any]) -> None:
    failed = False
    for id, part, operator, limit in rules:
        for r in reports:
            side = part if part in ("low", "high", "pvalue", "pvalue_adjusted") else ""
            row = r.evaluation.row(id, "" if side else part)
            value = getattr(row, side) if side else row.value
            if value is None or math.isnan(value):
                raise InputError(f"--fail-if: {id} has no value to compare on these predictions")
            if _OPERATORS[operator](value, limit):
                failed = True
                name = f"{id}.{part}" if part else id
                err.print(
                    f"[red]failed:[/] {name} = {value:.6g} {operator} {limit:g} ({_plain(r.title)})", highlight=False
                )
    if failed:
        raise typer.Exit(1)


# -- one metric, two models, one figure ----------------------------------------------------------------


@app.command()
def metric(
    id: Annotated[str, typer.Argument(help="Metric id or alias; calibrary list shows them.")],
    file: File,
    label: Label = None,
    prob: Prob = None,
    weight: Weight = None,
    positive: Positive = None,
    lens: Lens = "auto",
    interval: Annotated[bool, typer.Option("--interval", help="Add a bootstrap interval.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Add a test of perfect calibration.")] = False,
    resamples: Resamples = None,
    seed: Seed = 0,
    logits: Logits = False,
    drop_missing: Drop = False,
    quiet: Quiet = False,
) -> None:
    """One number: `calibrary metric ece predictions.csv --interval`."""
    entry = catalogue[id]
    found = _load(
        file, quiet, label=label, prob=prob, weight=weight, positive=positive, logits=logits, drop_missing=drop_missing
    )
    p = found.predictions()
    draws = 999 if resamples is None else resamples
    result = cal.evaluate(
        p, metrics=[entry.id], lens=lens, intervals=interval, tests=test, primary=entry.id, n_resamples=draws, rng=seed
    )
    if not result.rows:
        raise InputError(f"{entry.id}: {result.skipped[entry.id]}")
    for row in result.rows:
        text = f"{row.id}{'.' + row.part if row.part else ''} {row.value:.10g}"
        if row.low is not None:
            text += f"  [{row.low:.6g}, {row.high:.6g}]"
        if row.pvalue is not None:
            text += f"  p = {row.pvalue:.4g}"
        out.print(_plain(text), highlight=False)
        if row.note and not quiet:
            err.print(f"[yellow]{_plain(row.note)}[/]", highlight=False)


@app.command()
def compare(
    file: File,
    prob: Annotated[list[str], typer.Option(help="One column or prefix per model; give two or more.")],
    label: Label = None,
    weight: Weight = None,
    positive: Positive = None,
    metrics: Metrics = None,
    resamples: Resamples = None,
    seed: Seed = 0,
    logits: Logits = False,
    drop_missing: Drop = False,
    quiet: Quiet = False,
) -> None:
    """Two or more models on the same rows: `calibrary compare p.csv --prob a --prob b`."""
    from calibrary.reporting import compare_models

    if len(prob) < 2:
        raise InputError("compare needs at least two models: repeat --prob")
    found = _load(
        file,
        quiet,
        label=label,
        models=prob,
        weight=weight,
        positive=positive,
        logits=logits,
        drop_missing=drop_missing,
    )
    ids = tuple(catalogue[m].id for m in _listed(metrics) or ["ece", "bs"])
    _say("comparing", quiet)
    draws = 999 if resamples is None else resamples
    found_pairs = compare_models(
        found.y, found.models, metrics=ids, n_resamples=draws, rng=seed, sample_weight=found.weight
    )
    from calibrary.reporting.text import COMPARISON_HEAD, comparison_cells

    table = Table(*COMPARISON_HEAD, box=None, pad_edge=False)
    for texts in comparison_cells(found_pairs):
        table.add_row(*(_plain(t) for t in texts))
    out.print(table)


@app.command()
def plot(
    file: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="Figure to write: .svg, .pdf or .png.")],
    kind: Annotated[str, typer.Option(help="overview, reliability, smooth, corp, cumulative, brier, ...")] = "overview",
    label: Label = None,
    prob: Prob = None,
    weight: Weight = None,
    positive: Positive = None,
    bins: Bins = None,
    logits: Logits = False,
    drop_missing: Drop = False,
    quiet: Quiet = False,
) -> None:
    """One figure: `calibrary plot predictions.csv --kind reliability -o figure.svg`."""
    from calibrary.plots import draw

    found = _load(
        file, quiet, label=label, prob=prob, weight=weight, positive=positive, logits=logits, drop_missing=drop_missing
    )
    p = found.predictions()
    _save_figure(draw(kind, p, n_bins=bins or 15), output)


def _save_figure(figure: Any, output: Path) -> None:
    import io

    from calibrary.reporting.write import write_atomically

    kind = output.suffix.lstrip(".")
    if kind not in ("svg", "pdf", "png"):
        raise InputError(f"{output}: the ending chooses the form, one of .svg, .pdf, .png")
    if not output.parent.is_dir():
        raise InputError(f"{output}: the folder {output.parent} does not exist")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, bbox_inches="tight", dpi=200)
    write_atomically(output, buffer.getvalue())
    err.print(f"written: {output}", highlight=False)


# -- detection -----------------------------------------------------------------------------------------

GroundTruth = Annotated[Path, typer.Argument(help="COCO ground truth (JSON).")]
Results = Annotated[Path, typer.Argument(help="COCO results (JSON).")]
Iou = Annotated[float, typer.Option(help="Overlap from which a detection counts as correct.")]
Rule = Annotated[str, typer.Option(help="Matching rule: coco, max-iou, gt-best or independent.")]


@detection.command("report")
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

    rules = [_rule(text) for text in fail_if or []]
    check_paths(output or [])
    _say("matching and computing", quiet)
    matches = cal.match_detections(ground_truth, results, iou_threshold=iou_threshold, matching=matching)
    answer = cal.report(
        matches, metrics=_listed(metrics), primary=primary, n_resamples=resamples, rng=seed, title=results.name
    )
    save([answer], output or [])
    _show([answer], (), quiet)
    for path in output or []:
        err.print(f"written: {path}", highlight=False)
    _apply(rules, [answer])


@detection.command("plot")
def detection_plot(
    ground_truth: GroundTruth,
    results: Results,
    output: Annotated[Path, typer.Option("--output", "-o", help="Figure to write: .svg, .pdf or .png.")],
    kind: Annotated[str, typer.Option(help="detection, d-ece-map, ...")] = "detection",
    iou_threshold: Iou = 0.5,
    matching: Rule = "coco",
) -> None:
    """A figure of a detector's calibration."""
    from calibrary.plots import draw

    matches = cal.match_detections(ground_truth, results, iou_threshold=iou_threshold, matching=matching)
    _save_figure(draw(kind, matches), output)


# -- the catalogue -------------------------------------------------------------------------------------


@app.command("list")
def list_metrics(
    family: Annotated[str | None, typer.Option(help=", ".join(FAMILIES))] = None,
    task: Annotated[str | None, typer.Option(help="binary, multiclass, ordinal or detection.")] = None,
    test: Annotated[bool, typer.Option("--test", help="Only metrics with a hypothesis test of their own.")] = False,
    proper: Annotated[bool, typer.Option("--proper", help="Only proper scores.")] = False,
    consistent: Annotated[bool, typer.Option("--consistent", help="Only consistent calibration measures.")] = False,
    needs: Annotated[str | None, typer.Option(help="Only metrics that need this: features, groups, boxes, ...")] = None,
) -> None:
    """What there is: `calibrary list --family bin --test`."""
    if family is not None and family not in FAMILIES:
        raise InputError(f"--family {family!r} is not known: choose from {', '.join(FAMILIES)}")
    table = Table("row", "id", "family", "name", "range", "ideal", "test", "proper", box=None, pad_edge=False)
    shown = [e for e in catalogue.values() if _wanted(e, family, task, test, proper, consistent, needs)]
    for e in shown:
        table.add_row(
            str(e.row or ""), e.id, e.family, _plain(e.name), _plain(f"[{e.range[0]:g}, {e.range[1]:g}]"),
            "" if e.perfect is None else f"{e.perfect:g}", "yes" if e.has_test else "", e.proper.replace("no", ""),
        )  # fmt: skip
    out.print(table)
    err.print(f"{len(shown)} metrics; calibrary explain ID tells more", highlight=False)


def _wanted(
    e: Entry, family: str | None, task: str | None, test: bool, proper: bool, consistent: bool, needs: str | None
) -> bool:
    fits_task = {
        None: True,
        "binary": e.family != "detection" and "order" not in e.needs,
        "multiclass": e.family != "detection" and "order" not in e.needs,
        "ordinal": e.family != "detection",
        "detection": e.family == "detection",
    }
    if task not in fits_task:
        raise InputError(f"--task {task!r} is not known: choose from binary, multiclass, ordinal, detection")
    return (
        fits_task[task]
        and (family is None or e.family == family)
        and (not test or e.has_test)
        and (not proper or e.proper in ("strictly", "proper"))
        and (not consistent or e.consistent)
        and (needs is None or needs in e.needs)
    )


@app.command()
def explain(id: Annotated[str, typer.Argument(help="Metric id or alias, or the name of a curve.")]) -> None:
    """What a metric tells, when to use it and when not: `calibrary explain ece`."""
    import inspect

    curve = None if id in catalogue else curve_named(id)
    if curve is not None:
        _explain_curve(curve)
        return
    e = catalogue[id]
    out.print(f"[bold]{_plain(e.name)}[/] ({e.id})" + (f", row {e.row} of Table 2" if e.row else ""), highlight=False)
    out.print(_plain(e.meaning), highlight=False)
    doc = inspect.getdoc(e.formula) or ""
    formula = re.search(r"\.\. math::\s*(.+?)(?:\n\n|\n[A-Z]|\Z)", doc, flags=re.DOTALL)
    facts = {
        "formula": re.sub(r"\s+", " ", formula[1]).strip() if formula else "",
        "equation in the review": e.equation,
        "also called": ", ".join(e.aliases),
        "range": f"{e.range[0]:g} to {e.range[1]:g}" + (f" ({e.range_note})" if e.range_note else ""),
        "ideal": "depends on the data" if e.perfect is None else f"{e.perfect:g}",
        "reading": e.sign,
        "use it": e.use,
        "do not": e.avoid,
        "proper score": {"strictly": "strictly proper", "proper": "proper", "no": "no", "dataset": "not a row score"}[
            e.proper
        ],
        "test": "has its own" if e.has_test else ("Monte Carlo" if e.null else f"none: {e.null_note}"),
        "lenses": ", ".join(e.lenses),
        "needs": ", ".join(e.needs),
        "weights": e.weights_note or {"repetition": "weight 2 is the row written twice"}.get(e.weights, e.weights),
        "options": ", ".join(e.options),
        "cost": e.cost,
        "references": "; ".join(e.references),
    }
    for name, text in facts.items():
        if text:
            out.print(f"[dim]{name}:[/] {_plain(text)}", highlight=False)
    for c in e.corrections:
        out.print(
            f"[dim]erratum, {_plain(c.fact)}:[/] review: {_plain(c.review)}; here: {_plain(c.ours)}", highlight=False
        )


def _explain_curve(curve: Curve) -> None:
    out.print(f"[bold]{_plain(curve.name)}[/], a curve", highlight=False)
    out.print(_plain(curve.meaning), highlight=False)
    facts = {
        "figure": f"calibrary.{curve.figure}(y, p)",
        "its points": f"calibrary.{curve.data}(y, p)",
        "as a number": "; ".join(f"{id}: {catalogue[id].meaning}" for id in curve.metrics if id in catalogue),
        "also called": ", ".join(curve.aliases),
    }
    for name, text in facts.items():
        if text:
            out.print(f"[dim]{name}:[/] {_plain(text)}", highlight=False)


@app.command()
def recommend(
    task: Annotated[str | None, typer.Option(help="binary, multiclass, ordinal or detection.")] = None,
    goal: Annotated[str | None, typer.Option(help="measure, compare, test, train or explain.")] = None,
    n: Annotated[int, typer.Option(help="Number of predictions.")] = 1000,
    rare: Annotated[float, typer.Option(help="Share of the rarest class.")] = 0.5,
    test: Annotated[bool, typer.Option("--test", help="A hypothesis test is needed.")] = False,
    direction: Annotated[bool, typer.Option("--direction", help="Over- or under-confidence must show.")] = False,
    ties: Annotated[bool, typer.Option("--ties", help="The model gives few distinct scores.")] = False,
    most: Annotated[int, typer.Option(help="Length of the list.")] = 5,
) -> None:
    """Which metric for which question; asks when run without flags in a terminal."""
    from calibrary.recommendation import GOALS, TASKS

    if sys.stdin.isatty() and task is None and goal is None:
        task = typer.prompt(f"task ({', '.join(TASKS)})", default="binary")
        goal = typer.prompt(f"goal ({', '.join(GOALS)})", default="measure")
        n = typer.prompt("number of predictions", default=n, type=int)
        rare = typer.prompt("share of the rarest class", default=rare, type=float)
    found = cal.recommend(
        task or "binary", goal or "measure", n=n, rare=rare, test=test, direction=direction, ties=ties, most=most
    )
    for rank, r in enumerate(found, 1):
        out.print(f"[bold]{rank}. {r.id}[/] {_plain(r.name)}", highlight=False)
        for reason in r.reasons:
            out.print(f"   + {_plain(reason)}", highlight=False)
        if r.caution:
            out.print(f"   - {_plain(r.caution)}", highlight=False)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report.")] = Path("demo"),
    resamples: Resamples = None,
) -> None:
    """Evaluate the embedded data: a binary and a ten-class model and a detector; write demo/report.html."""
    from importlib.resources import files

    from calibrary.reporting.write import save

    output.mkdir(parents=True, exist_ok=True)
    data = files("calibrary") / "datasets"
    _say("evaluating three models", False)
    y, p, about = cal.datasets.breast_cancer()
    reports = [cal.report(y, p, n_resamples=resamples, title=about)]
    y, p, about = cal.datasets.digits()
    reports.append(cal.report(y, p, n_resamples=resamples, title=about))
    matches = cal.match_detections(str(data / "demo_ground_truth.json"), str(data / "demo_results.json"))
    reports.append(cal.report(matches, n_resamples=resamples, primary="d_ece", title="synthetic detector"))
    save(reports, [output / "report.html", output / "report.json"])
    _show(reports, (), False)
    out.print(f"\nThe full report, with figures: [bold]{output / 'report.html'}[/]", highlight=False)
