"""``calibrary report`` and ``calibrary detection report``: from files to the answer."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

import calibrary as cal
from calibrary.base.once import once
from calibrary.cli.batch import Folder, Forms, batch, check_folder
from calibrary.cli.files import InputError
from calibrary.cli.gates import FailIf, Gates, Junit, Undecided, rule_of
from calibrary.cli.read import PredictionFile
from calibrary.cli.shared import (
    Bins,
    Blocks,
    ClassColumn,
    Drop,
    DropInvalid,
    Files,
    GroundTruth,
    Id,
    Iou,
    Jobs,
    Label,
    Labels,
    Lens,
    Logits,
    Metrics,
    ModelColumn,
    Normalize,
    Outputs,
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
    err,
    listed,
    load,
    out,
    plain,
    say,
    taking,
    written,
)
from calibrary.cli.shift import LEAST_DRAWS, curve_of, shares_typed, target_of
from calibrary.cli.waiting import waiting
from calibrary.evaluation import FAMILIES
from calibrary.lookup import catalogue

if TYPE_CHECKING:
    from calibrary.inference.draw.resampling import WorkDone
    from calibrary.reporting import ReportSettings

Title = Annotated[str | None, typer.Option("--title", help="Title of the page; by default the name of the file.")]
Purpose = Annotated[str, typer.Option("--purpose", help="What the page is for: it stands below the title.")]
Author = Annotated[str, typer.Option("--author", help="Who answers for the page; a line to sign stands at its end.")]
Date = Annotated[str | None, typer.Option("--date", help="Date of the page; today unless given, none where empty.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON, for the next program of a pipe.")]
Everything = Annotated[bool, typer.Option("--all", help="Print every metric, not only the short list.")]


@dataclass(frozen=True)
class ReportCommand:
    """What was typed after ``calibrary report``; its fields are the command's options."""

    files: Files
    label: Label = None
    prob: Prob = None
    model: Annotated[
        list[str] | None, typer.Option(help="Compare several models: a column or prefix each. Repeatable.")
    ] = None
    weight: Weight = None
    weight_type: WeightType = "frequency"
    unit: Unit = None
    blocks: Blocks = None
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="Columns that split the rows: who is affected. Repeatable, or commas."),
    ] = None
    time: Annotated[str | None, typer.Option("--time", help="Column of dates or order: calibration over time.")] = None
    threshold: Annotated[
        list[float] | None,
        typer.Option("--threshold", help="Probability from which someone acts: what errors cost there. Repeatable."),
    ] = None
    group: Annotated[str | None, typer.Option(help="Column of subgroups; the older spelling of --by.")] = None
    positive: Positive = None
    labels: Labels = None
    lens: Lens = "auto"
    metrics: Metrics = None
    family: Annotated[list[str] | None, typer.Option(help=f"Only these families: {', '.join(FAMILIES)}.")] = None
    primary: Annotated[str, typer.Option(help="The metric of the headline, chosen in advance.")] = "ece"
    bins: Bins = None
    resamples: Resamples = None
    seed: Seed = 0
    jobs: Jobs = None
    ordinal: Annotated[bool, typer.Option("--ordinal", help="The classes are in order.")] = False
    logits: Logits = False
    percent: Percent = False
    drop_missing: Drop = False
    drop_invalid: DropInvalid = False
    id_column: Id = None
    model_column: ModelColumn = None
    class_column: ClassColumn = None
    scorer: Scorer = None
    normalize: Normalize = "none"
    sampled: Annotated[
        bool, typer.Option("--sampled", help="Inspect log: the epochs are sampled answers, tested without their noise.")
    ] = False
    answer: Annotated[
        str, typer.Option(help="With --sampled, the answer that is measured: first, or split for a majority vote.")
    ] = "first"
    judge: Annotated[
        str | None, typer.Option("--judge", help="Column of a judge's labels; the label column holds few human ones.")
    ] = None
    inclusion: Annotated[
        str | None, typer.Option("--inclusion", help="Column of probabilities of being labelled (with --judge).")
    ] = None
    members: Annotated[
        list[str] | None,
        typer.Option(
            "--members", help="Members of an ensemble: columns, or an array (.npy, .npz) of rows and members."
        ),
    ] = None
    members_are: Annotated[
        str, typer.Option("--members-are", help="What members are: draws (of a posterior), or a mixture.")
    ] = "draws"
    features: Annotated[
        list[str] | None,
        typer.Option("--features", help="Columns that show how much spread is there (with --members)."),
    ] = None
    outside: Annotated[
        str | None,
        typer.Option("--outside", help="Column that says which rows belong to no class; they have no label."),
    ] = None
    prevalence_outside: Annotated[
        float | None, typer.Option("--prevalence-outside", help="Share of such rows where the model is used.")
    ] = None
    title: Title = None
    purpose: Purpose = ""
    author: Author = ""
    date: Date = None
    target: Annotated[
        str | None,
        typer.Option("--target", help="File of a target without labels: what the headline's metric is there."),
    ] = None
    assume: Annotated[
        str, typer.Option("--assume", help="What differs at the target: label (shares of classes), or covariate.")
    ] = "label"
    feature: Annotated[
        list[str] | None,
        typer.Option("--feature", help="Columns of both files for --assume covariate. Repeatable, or commas."),
    ] = None
    shift: Annotated[
        str | None, typer.Option("--shift", help="Column of groups in an order (severity, month): does it get worse?")
    ] = None
    prevalence: Annotated[
        str | None,
        typer.Option("--prevalence", help="Share of the positive class (or of each, with commas) where it is used."),
    ] = None
    output: Outputs = None
    folder: Folder = None
    form: Forms = None
    as_json: AsJson = False
    fail_if: FailIf = None
    undecided: Undecided = "pass"
    junit: Junit = None
    everything: Everything = False
    quiet: Quiet = False

    @property
    def split(self) -> list[str]:
        """The columns that split the rows."""
        return listed(self.by) or []

    @once
    def gates(self) -> Gates:
        return Gates([rule_of(text) for text in self.fail_if or []], self.undecided, self.junit)

    @property
    def settings(self) -> ReportSettings:
        """The settings of every report, whatever the file."""
        from calibrary.reporting import ReportSettings

        named = [*(listed(self.metrics) or []), *(listed(self.family) or [])]
        chosen = [*(named or FAMILIES), *self.gates.metrics] if named or self.gates.rules else None
        return ReportSettings(
            thresholds=self.threshold, command=_command(), metrics=chosen, primary=self.primary, lens=self.lens,
            weight_type=self.weight_type, ordinal=self.ordinal, n_bins=self.bins, n_resamples=self.resamples,
            rng=self.seed, jobs=self.jobs, blocks=_runs(self.blocks), prevalence=shares_typed(self.prevalence),
            purpose=self.purpose, author=self.author, date=_date(self.date),
        )  # fmt: skip

    def settings_of(self, found: PredictionFile, model: str) -> ReportSettings:
        """The settings of the report of one model of a file, whose columns they name."""
        split, unit = self.split or ([found.by] if found.by else []), self._unit(found)
        return replace(
            self.settings,
            groups=found.group if not split else None,
            by={column: found.others[column] for column in split} or None,
            time=found.others[self.time] if self.time else None,
            units=found.others[unit] if unit else None,
            source=_source(found, model, time=self.time, unit=unit),
            title=_title(found, model, self.title),
            notes=found.notes,
        )

    def _unit(self, found: PredictionFile) -> str | None:
        """The column of what belongs together: the one named, or the one that a log says itself."""
        return self.unit or (found.unit if self.blocks is None else "") or None

    def read(self, source: str | list[str]) -> PredictionFile:
        """The predictions of a file, or of one file per model."""
        beside = (self.unit, self.time, self.shift, *self.split, *(listed(self.feature) or []))
        others = list(dict.fromkeys(name for name in beside if name))
        return load(
            source, self.quiet, label=self.label, prob=self.prob, models=self.model, weight=self.weight,
            group=self.group, positive=self.positive, labels=self.labels, logits=self.logits, percent=self.percent,
            drop_missing=self.drop_missing or self.judge is not None, drop_invalid=self.drop_invalid, id=self.id_column,
            model_column=self.model_column, class_column=self.class_column, others=others, scorer=self.scorer,
            normalize=self.normalize,
        )  # fmt: skip

    def answered_sampled(self, source: str | list[str]) -> Any:
        """The report of sampled answers: their own test is the answer, and the rows are the shares."""
        from calibrary.cli.logs import sampled_answers_of

        files = [source] if isinstance(source, str) else source
        if len(files) != 1:
            raise InputError("--sampled reads one log at a time")
        found = sampled_answers_of(
            files[0], self.scorer, answer=self.answer, n_bins=self.bins or 10, n_resamples=self.resamples or 999,
            rng=self.seed,
        )  # fmt: skip
        if not self.quiet:
            err.print(f"[dim]{plain(found.log.said)}[/]")
        chosen = replace(
            self.settings, sampled=found.result, title=self.title or f"{Path(files[0]).name}: sampled answers",
            notes=(found.log.said, *found.log.notes), source={"path": files[0], "columns": {}},
        )  # fmt: skip
        return cal.report(found.right, found.share, settings=chosen)

    def _with_judge(self, source: str | list[str]) -> Any:
        """What the human labels and the judge say together; None without a judge."""
        if self.judge is None:
            return None
        from calibrary.cli.judge import judged_of

        files = [source] if isinstance(source, str) else source
        if len(files) != 1:
            raise InputError("--judge reads one file at a time")
        return judged_of(
            self.primary, files[0], self.judge, label=self.label, prob=self.prob, inclusion=self.inclusion,
            percent=self.percent, rng=self.seed, n_resamples=self.resamples or 999,
        )  # fmt: skip

    def answered_members(self, source: str | list[str]) -> Any:
        """The report of the mean of an ensemble, or of the rows inside: members and rows outside have a section."""
        from calibrary.cli.members import SecondOrderOptions, second_order_of

        files = [source] if isinstance(source, str) else source
        named = list(files[1:]) if self.members else []  # after --members, what is no file is one more of them
        if any(Path(name).exists() for name in named) or (len(files) > 1 and not named):
            raise InputError("--members and --outside read one file at a time")
        asked = SecondOrderOptions(
            [*(listed(self.members) or []), *named], self.members_are, self.outside, self.prevalence_outside,
            listed(self.features), self.label, self.prob, self.positive, self.percent,
        )  # fmt: skip
        draws = self.resamples or 999
        found = second_order_of(files[0], asked, rng=self.seed, n_resamples=draws)
        what = "mean of the members" if found.ensemble is not None else "rows inside"
        chosen = replace(
            self.settings, ensemble=found.ensemble, outside=found.outside, source={"path": files[0], "columns": {}},
            title=self.title or f"{Path(files[0]).name}: {what}",
        )  # fmt: skip
        return cal.report(found.y, found.mean, pos_label=self.positive, settings=chosen)

    def answered(self, source: str | list[str]) -> tuple[list[Any], Any]:
        """The reports of a file, one for each model, and the comparison of its models."""
        if self.sampled:
            return [self.answered_sampled(source)], ()
        if self.members or self.outside:
            return [self.answered_members(source)], ()
        judge = self._with_judge(source)
        found, draws = self.read(source), self.settings.draws
        reports: list[Any] = []
        # a bar has a thread of its own, and a process with threads is not copied
        no_bar = self.quiet or (self.jobs or 1) > 1
        with (
            waiting("computing every metric that applies", found, draws, no_bar) as work,
            self._told_at_once(work, len(found.models)),
        ):
            for name in found.models:
                settings = replace(self.settings_of(found, name), judge=judge, **self._other_data(found, name))
                reports.append(cal.report(found.predictions(name), settings=settings))
                work.piece(len(reports))
        for r in reports:
            say_left_out(r, listed(self.metrics) or [])
        if len(reports) == 1 or draws == 0:
            return reports, ()
        with waiting("comparing", found, draws, self.quiet, pieces=1):
            return reports, self._compared(found, reports)

    def _other_data(self, found: PredictionFile, model: str) -> dict[str, Any]:
        """The sentences about a target without labels, and along groups in an order, where they were named."""
        made: dict[str, Any] = {}
        draws = 999 if self.resamples is None else max(self.resamples, LEAST_DRAWS)
        if self.target is not None:
            made["target"] = target_of(
                self.primary, found, model, self.target, assume=self.assume, features=listed(self.feature) or [],
                percent=self.percent, logits=self.logits, n_resamples=draws, rng=self.seed,
                weight_type=self.weight_type,
            )  # fmt: skip
        elif self.assume != "label" or self.feature:
            raise InputError("--assume and --feature say how a target differs: name its file with --target")
        if self.shift is not None:
            unit = self._unit(found)
            made["shift"] = curve_of(
                self.primary, found, model, self.shift, unit=unit, n_resamples=draws, rng=self.seed,
                weight_type=self.weight_type,
            )  # fmt: skip
        return made

    @contextmanager
    def _told_at_once(self, work: WorkDone, models: int) -> Iterator[None]:
        """Print the answer of a single model as soon as it is known: sections, figures and files come after it."""
        if models != 1 or self.as_json or self.folder is not None:
            yield
            return
        from calibrary.reporting.compose import ANSWERED

        def tell(found: Any) -> None:
            work.hide()
            show_answer(found, self.quiet, brief=False)
            out.file.flush()

        told = ANSWERED.set(tell)
        try:
            yield
        finally:
            ANSWERED.reset(told)

    def _compared(self, found: PredictionFile, reports: list[Any]) -> Any:
        """Every model against the first, on the same draws of what belongs together."""
        from calibrary.reporting import compare_models
        from calibrary.reporting.compose import comparable

        unit = self._unit(found)
        said = {"units": found.others[unit] if unit else None, "blocks": _runs(self.blocks)}
        together = {name: given for name, given in said.items() if given is not None}
        return compare_models(
            found.y, found.models, metrics=comparable(reports[0]), n_resamples=self.settings.draws, rng=self.seed,
            sample_weight=found.weight, weight_type=self.weight_type, reference=next(iter(found.models)),
            outcomes=found.outcomes, **together,
        )  # fmt: skip


@taking(ReportCommand)
def report(asked: ReportCommand) -> None:
    """Is it calibrated, by how much, which way, where, and how sure is that?

    Examples: `calibrary report predictions.csv`, `calibrary report p.parquet --label y --prob p -o report.html`,
    `calibrary report p.csv --model a --model b --fail-if "ece>0.05"`, `calibrary report a.csv b.csv` (one per model),
    `calibrary report runs/*.parquet --folder reports` (a report per file). A report saved as JSON makes its page again:
    `calibrary report saved.json -o page.html`.
    """
    from calibrary.reporting.write import check_paths

    outputs, gates = asked.output or [], asked.gates
    check_paths(outputs)
    catalogue[asked.primary]
    if len(asked.files) == 1 and is_saved(asked.files[0]):
        _show_saved(Path(asked.files[0]), outputs, gates, asked.quiet, asked.everything)
        return
    _runs(asked.blocks)
    if asked.folder is not None:
        forms = asked.form or ["html", "json"]
        check_folder(asked.folder, outputs, forms)
        gates.apply(batch(asked.files, asked.folder, forms, asked.answered, asked.quiet))
        return
    reports, comparisons = asked.answered(asked.files)
    _given_out(
        reports, comparisons, asked, told=len(reports) == 1 and not (asked.sampled or asked.members or asked.outside)
    )
    gates.apply(reports)


def _given_out(
    reports: list[Any], comparisons: Any, asked: ReportCommand | DetectionReportCommand, told: bool = False
) -> None:
    """The reports on the terminal and as files; the answer of one may have been ``told`` before."""
    from calibrary.reporting.write import save

    outputs = asked.output or []
    if not asked.as_json:
        show(reports, comparisons, asked.quiet, asked.everything, told)
    save(reports, outputs, comparisons)
    if asked.as_json:
        show_json(reports, comparisons)
    for path in outputs:
        written(path)


def _runs(blocks: str | None) -> int | bool | None:
    """The length of the runs that belong together, as the library takes it."""
    if blocks is None or blocks == "auto":
        return None if blocks is None else True
    if not blocks.isdigit() or int(blocks) < 1:
        raise ValueError(f"--blocks {blocks}: pass a number of rows of at least 1, or auto")
    return int(blocks)


def _source(found: PredictionFile, model: str, **others: str | None) -> dict[str, Any]:
    """Where the rows came from, for the provenance of the page: the file, and which column is what."""
    dropped = {"missing values": found.n_dropped} if found.n_dropped else {}
    known = getattr(found, "columns", {})  # rows of a state had theirs when it was made
    of_model = known.get("models", {}).get(model, [])
    named = {**known, "probability": " ... ".join(dict.fromkeys([*of_model[:1], *of_model[-1:]])), **others}
    columns = {what: name for what, name in named.items() if name and what != "models"}
    rows = len(found.y) + found.n_dropped
    return {"path": found.source, "rows_read": rows, "dropped": dropped, "columns": columns}


def _command() -> str | None:
    """The command that was typed; None where something else called us."""
    called = Path(sys.argv[0])
    ours = called.stem == "calibrary" or (called.parent.name, called.stem) == ("calibrary", "__main__")
    served = sys.argv[1:2] == ["mcp"]  # a client asked, and what was typed is the start of the server
    return shlex.join(["calibrary", *sys.argv[1:]]) if ours and not served else None


def say_left_out(report: Any, named: list[str]) -> None:
    """A metric that was asked for by name and left out is named with its reason, whatever else is printed."""
    for name in named:
        key = catalogue[name].key if name not in FAMILIES else ""
        if key in report.evaluation.skipped:
            err.print(f"{plain(key)} not computed: {plain(report.evaluation.skipped[key])}", soft_wrap=True)


def show_json(reports: list[Any], comparisons: Any) -> None:
    """The report as JSON on standard output, for the next program of a pipe."""
    from calibrary.reporting.stored import as_json

    sys.stdout.write(as_json(reports, comparisons))


@dataclass(frozen=True)
class DetectionReportCommand:
    """What was typed after ``calibrary detection report``; its fields are the command's options."""

    ground_truth: GroundTruth
    results: Results
    iou_threshold: Iou = 0.5
    matching: Rule = "coco"
    metrics: Metrics = None
    primary: Annotated[str, typer.Option(help="The metric of the headline.")] = "d_ece"
    resamples: Resamples = None
    seed: Seed = 0
    title: Title = None
    purpose: Purpose = ""
    author: Author = ""
    date: Date = None
    output: Outputs = None
    as_json: AsJson = False
    fail_if: FailIf = None
    undecided: Undecided = "pass"
    junit: Junit = None
    everything: Everything = False
    quiet: Quiet = False

    def settings(self, gates: Gates) -> ReportSettings:
        """The settings of the report; metrics of gates must be in its table."""
        from calibrary.reporting import ReportSettings

        chosen = [*(listed(self.metrics) or FAMILIES), *gates.metrics] if self.metrics or gates.rules else None
        return ReportSettings(
            metrics=chosen, primary=self.primary, n_resamples=self.resamples, rng=self.seed,
            title=self.title or self.results.name, purpose=self.purpose, author=self.author, date=_date(self.date),
            source={"path": self.results, "columns": {"ground truth": str(self.ground_truth)}}, command=_command(),
        )  # fmt: skip


@taking(DetectionReportCommand)
def detection_report(asked: DetectionReportCommand) -> None:
    """A detector's calibration from the two COCO files: `calibrary detection report gt.json results.json`."""
    from calibrary.reporting.write import check_paths

    gates = Gates([rule_of(text) for text in asked.fail_if or []], asked.undecided, asked.junit)
    check_paths(asked.output or [])
    say("matching and computing", asked.quiet)
    matches = cal.match_detections(
        asked.ground_truth, asked.results, iou_threshold=asked.iou_threshold, matching=asked.matching
    )
    answer = cal.report(matches, settings=asked.settings(gates))
    _given_out([answer], (), asked)
    gates.apply([answer])


def _title(found: PredictionFile, model: str, given: str | None) -> str:
    """The title of one model's page: as it was given, with the name of the model where there are several."""
    if given and len(found.models) == 1:
        return given
    return f"{given or (Path(found.source).name if found.source != '-' else 'standard input')}: {model}"


def _date(given: str | None) -> str:
    """The date of the page: the one given, else today's."""
    return date.today().isoformat() if given is None else given


def is_saved(file: str) -> bool:
    """Is it a report that was saved, rather than rows of predictions?"""
    path = Path(file)
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as opened:
        beginning = opened.read(400)
    ours = '"calibrary report"' in beginning
    return ours or '"headline"' in beginning or ('"models"' in beginning and '"title"' in beginning)


def _show_saved(path: Path, output: list[Path], gates: Gates, quiet: bool, everything: bool) -> None:
    """A page made again from its JSON: nothing is computed."""
    from calibrary.reporting.stored import from_json
    from calibrary.reporting.write import save

    reports, comparisons = from_json(path)
    save(reports, output, comparisons)
    show(reports, comparisons, quiet, everything)
    for made in output:
        written(made)
    gates.apply(reports)


#: What the terminal shows of the short list, and how wide words may be in a window of 80; numbers are never broken.
_SHORT = (("metric", 14), ("value", None), ("interval", None), ("calibrated", None), ("verdict", 24))


def show_answer(r: Any, quiet: bool, brief: bool) -> None:
    """The headline, the statements and the short list."""
    out.print(f"\n[bold]{plain(r.title)}[/]")
    out.print(plain(r.headline))
    if quiet:
        return
    for finding in () if brief else r.statements:
        out.print(_item(finding))
    out.print(_short_table(r))


def show(reports: list[Any], comparisons: Any, quiet: bool, everything: bool = False, told: bool = False) -> None:
    """The answer in the terminal, where it was not ``told`` before, and what follows it; every metric when asked."""
    from calibrary.reporting.text import COMPARISON_HEAD, comparison_cells

    brief = len(reports) > 2 and not everything  # a page, not a scroll
    if len(reports) > _MOST_MODELS and not everything:
        _show_many(reports, comparisons)
        return
    for r in reports:
        if not told:
            show_answer(r, quiet, brief)
        if quiet:
            continue
        for section in (s for s in r.sections if s.key != "provenance" and not (brief and s.key != "help")):
            for sentence in section.sentences[:1]:
                out.print(_item(f"{section.title}: {sentence}"))
        if everything:
            _show_everything(r)
        else:
            more = f"{len(r.evaluation.rows)} numbers computed: --all prints them"
            left = f", {len(r.evaluation.skipped)} left out" if r.evaluation.skipped else ""
            out.print(f"[dim]{more}{left}[/]")
    if comparisons:
        table = Table(*COMPARISON_HEAD, title="comparison", title_justify="left", box=None, pad_edge=False)
        for texts in comparison_cells(comparisons):
            table.add_row(*(plain(t) for t in texts))
        out.print(table)


#: Models up to which each has paragraphs of its own in the terminal.
_MOST_MODELS = 4


def _show_many(reports: list[Any], comparisons: Any) -> None:
    """Many models as one table: a line each, with the metric of the headline and how far it is from the first's."""
    from calibrary.base.numbers import ends, number
    from calibrary.reporting import together

    primary = reports[0].primary
    table = Table("model", box=None, pad_edge=False)
    for head in ("answer", primary, "interval", *(["less the first"] if comparisons else [])):
        table.add_column(head, no_wrap=True)
    for name, r in zip(together.short_names(reports), reports, strict=True):
        row, cells = r.evaluation.row(primary), together.cells(r, reports, comparisons)
        said = r.headline.partition(" (")[0].removesuffix(" of miscalibration")
        apart = [c.difference for (id, _), c in zip(together.heads(reports), cells, strict=True) if id == primary]
        shown = (name, said, number(row.value), ends(row.low, row.high), *(apart if comparisons else ()))
        table.add_row(*(plain(t) for t in shown))
    out.print(table)
    out.print("[dim]--all prints the numbers of every model; -o writes the page[/]")


def _item(text: str) -> Any:
    """A point of a list, its further lines in line with the first."""
    from rich.text import Text

    point = Table.grid(padding=(0, 1, 0, 0))
    point.add_row("  -", Text.from_markup(plain(text), emoji=False))
    return point


def _short_table(r: Any) -> Table:
    from calibrary.reporting.text import short_cells

    table = Table(box=None, pad_edge=False)
    for name, width in _SHORT:
        narrow = width if out.width < 100 else None
        table.add_column(name, max_width=narrow, overflow="fold", no_wrap=width is None)
    for texts in short_cells(r):
        table.add_row(*(plain(t) for t in texts[:5]))
    return table


def _show_everything(r: Any) -> None:
    """Every metric by what it measures; a narrow window leaves columns out, never the verdict."""
    from calibrary.reporting.metric_table import grouped
    from calibrary.reporting.text import HEAD, folded_cells

    columns = [HEAD.index(name) for name in (HEAD if out.width >= 130 else _NARROW)]
    for title, rows in grouped(r.evaluation).items():
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for j in columns:
            table.add_column(HEAD[j], overflow="fold")
        for folded in rows:
            texts = folded_cells(folded, r.evaluation)
            table.add_row(*(plain(texts[j]) for j in columns), style="bold" if folded.row.primary else "")
        out.print(table)
    if r.evaluation.skipped:
        out.print(f"[dim]not computed ({len(r.evaluation.skipped)}): {', '.join(r.evaluation.skipped)}[/]")


#: What a table shows in a terminal too narrow for every column.
_NARROW = ("metric", "value", "interval", "p adjusted", "verdict")
