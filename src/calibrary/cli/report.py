"""The commands that make a page: ``calibrary report``, ``answers``, ``ensemble``, ``outside``, ``detection report``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

import calibrary as cal
from calibrary.base.files import check_writable, write_atomically
from calibrary.base.numbers import counted, ends, number
from calibrary.base.once import once
from calibrary.cli.console import err, out, plain
from calibrary.cli.gates import Gates, rule_of
from calibrary.cli.members import LEAST_DRAWS, curve_of, shares_typed, target_of
from calibrary.cli.shared import draws_of, folder_of, listed, load, noted, reading, say, table_of, written
from calibrary.cli.taking import needs_option, refuse_unused, taking
from calibrary.cli.waiting import waiting
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.facts import FAMILIES
from calibrary.options import fields_of, options_of
from calibrary.reporting.write import ENDINGS, IndexLine, index, save
from calibrary.tables.layout import FileLayout, PredictionFile
from calibrary.tables.sources import InputError

#: A function that takes one file and returns its reports and their comparisons.
Maker = Callable[[str], tuple[list[Any], Any]]


def check_folder(folder: Path, outputs: Sequence[Path], forms: Sequence[str]) -> None:
    """Refuse, before any computation, an output folder or format that could not be written at the end."""
    if outputs:
        raise InputError("--folder and --output exclude each other: every file has its own report in the folder")
    for form in forms:
        if f".{form}" not in ENDINGS:
            raise InputError(f"--form {form!r} is not one of {', '.join(e[1:] for e in ENDINGS)}")
    try:
        folder_of(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be created: {(error.strerror or str(error)).lower()}") from error
    check_writable(folder / "index.html")


def batch(files: Sequence[str], folder: Path, forms: Sequence[str], make: Maker, quiet: bool) -> list[Any]:
    """One report for each file and an index of them all; the files that could not be read are named at the end.

    If one file fails, the reports of the other files are still written, and the exit status is 2.
    """
    lines: list[IndexLine] = []
    made: list[Any] = []
    broken: list[str] = []
    for source, name in zip(files, _names(files), strict=True):
        if not quiet:
            err.print(f"[dim]{plain(source)}[/]", soft_wrap=True)
        try:
            reports, comparisons = make(source)
            save(reports, [folder / f"{name}.{form}" for form in forms], comparisons)
        except (ValueError, OSError) as error:
            lines.append(IndexLine(source, "", str(error), failed=True))
            broken.append(f"{source}: {error}")
            continue
        made += reports
        for r in reports:
            named, row = source if len(reports) == 1 else f"{source}: {r.title}", r.evaluation.row(r.primary)
            cells = f"{r.evaluation.n:,}", row.id, number(row.value), ends(row.low, row.high)
            lines.append(IndexLine(named, f"{name}.{forms[0]}", r.headline, cells))
    page = index(f"{len(files)} calibration reports", ("rows", "metric", "value", "interval"), lines)
    write_atomically(folder / "index.html", page.encode("utf-8", "replace"))
    written(folder / "index.html")
    for sentence in broken:
        err.print(f"[red]no report:[/] {plain(sentence)}", soft_wrap=True)
    if broken:
        raise InputError(
            f"{len(broken)} of {len(files)} files could not be reported; {folder / 'index.html'} gives the reasons"
        )
    return made


def _names(files: Sequence[str]) -> list[str]:
    """The name of each report: the name of its file, preceded by the folder's where two files have the same name."""
    stems = [Path(f).name.removesuffix(".gz").rsplit(".", 1)[0] or Path(f).name for f in files]
    names = [
        s if stems.count(s) == 1 else f"{Path(f).parent.name or 'here'}-{s}" for f, s in zip(files, stems, strict=True)
    ]
    names = [f"{n}-report" if n == "index" else n for n in names]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise InputError(f"the reports of two files would both be named {twice!r}: rename one of the files")
    return names


if TYPE_CHECKING:
    from calibrary.inference.draw.waiting import WorkDone
    from calibrary.reporting import ReportSettings

#: The options that have an effect for a report that is already computed and saved.
_SAVED = ("output", "as_json", "fail_if", "undecided", "one_sided", "junit", "everything", "quiet")
#: Options that need another option.
_NEEDS: dict[str, tuple[str, ...]] = {
    "inclusion": ("--judge",),
    "form": ("--folder",),
    **dict.fromkeys(("feature", "assume"), ("--target",)),
}
#: The settings of a report whose value is not the one that was typed.
_CONVERTED = ("metrics", "by", "time", "centre", "unit", "blocks", "prevalence")


class _Page:
    """What the commands have in common that make a page."""

    verb: str
    output: Any
    as_json: bool
    everything: bool
    quiet: bool

    @once
    def gates(self: Any) -> Gates:
        return Gates([rule_of(text) for text in self.fail_if or []], self.undecided, self.junit, self.one_sided)

    @property
    def gated(self: Any) -> str:
        """Why columns must not be guessed by their content alone; empty if they may be."""
        return "a gate needs certain columns" if self.fail_if else ""

    @property
    def settings(self: Any) -> ReportSettings:
        """The settings that all reports of the command share."""
        from calibrary.reporting import ReportSettings

        named = [*(listed(self.metrics) or []), *(listed(getattr(self, "family", None)) or [])]
        chosen = [*(named or FAMILIES), *self.gates.metrics] if named or self.gates.rules else None
        asked = [o for o in options_of(self.verb) if o.settings and o.name not in _CONVERTED]
        day = date.today().isoformat() if self.date is None else self.date
        about = {"purpose": self.purpose, "author": self.author, "date": day, "command": _command()}
        given = {o.keyword: getattr(self, o.name) for o in asked}
        return ReportSettings(**given, metrics=chosen, about=about, **self._more_settings())

    def _more_settings(self: Any) -> dict[str, Any]:
        return {"prevalence": shares_typed(self.prevalence)}

    @property
    def split(self: Any) -> list[str]:
        """The columns that split the rows."""
        return [name for name, _ in self._by]

    @property
    def _by(self: Any) -> list[tuple[str, int | None]]:
        """The columns that split the rows, and into how many ranges each is cut (None: as it is)."""
        return [_name_and_parts(text) for text in listed(self.by) or []]

    def _segments(self: Any, columns: Mapping[str, Any]) -> dict[str, Any] | None:
        """The values of the columns that split the rows, cut where the option says so."""
        return {n: columns[n] if parts is None else cal.cut(columns[n], parts) for n, parts in self._by} or None

    @property
    def beside(self: Any) -> list[str]:
        """The columns that split the rows or order them."""
        return list(dict.fromkeys(name for name in (*self.split, self.group, self.time) if name))

    def _split_by(self: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that split or order the rows."""
        grouped = columns[self.group] if self.group else None
        return {"by": self._segments(columns) or _by_group(grouped), "time": columns[self.time] if self.time else None}


class ReportCommand(_Page, fields_of("report")):  # type: ignore[misc]
    """The arguments of ``calibrary report``; each field is an option of the command."""

    verb = "report"

    def _more_settings(self) -> dict[str, Any]:
        return {"prevalence": shares_typed(self.prevalence), "blocks": _runs(self.blocks)}

    def settings_of(self, found: PredictionFile, model: str) -> ReportSettings:
        """The settings for one model's report, which name columns of the file."""
        own, unit = {found.by: found.others[found.by]} if found.by else None, self._unit(found)
        source = _source(found, model, time=self.time, unit=unit, centre=self.centre)
        described = self.settings.with_about(source=source, title=_title(found, model, self.title), notes=found.notes)
        named = {"time": self.time, "centre": self.centre, "units": unit}
        columns: dict[str, Any] = {role: found.others[name] if name else None for role, name in named.items()}
        return replace(described, by=self._segments(found.others) or own or _by_group(found.group), **columns)

    def _unit(self, found: PredictionFile) -> str | None:
        """The column of units: the one that was named, or the one that a log declares."""
        return self.unit or (found.unit if self.blocks is None else "") or None

    def read(self, source: str | list[str]) -> PredictionFile:
        """The predictions of a file, or of one file per model."""
        read = {**reading(self), "group": self.group, "models": self.model, "others": self._others}
        read["gated"] = self.gated
        read["segments"] = [*self.split, *([self.group] if self.group else [])]
        return load(source, self.quiet, **{**read, "drop_missing": self.drop_missing or self.judge is not None})

    @property
    def _others(self) -> list[str]:
        named = (self.unit, self.time, self.centre, self.shift, *self.split, *(listed(self.feature) or []))
        return list(dict.fromkeys(name for name in (*named, self.judge, self.inclusion) if name))

    def _with_judge(self, source: str | list[str]) -> Any:
        """The estimate from human and judge labels together; None without --judge."""
        if self.judge is None:
            return None
        from calibrary.cli.members import judged_of

        how = FileLayout(
            label=self.label, prob=self.prob, models=self.model, weight=self.weight, group=self.group,
            id=self.id_column, others=self._others, percent=self.percent, logits=self.logits,
        )  # fmt: skip
        return judged_of(
            self.primary, _only(source, "--judge takes one file"), how, self.judge, self.inclusion, rng=self.seed,
            n_resamples=draws_of(self.resamples, "--judge"),
            **({"n_bins": self.bins} if "n_bins" in catalogue[self.primary].options else {}),
        )[0]  # fmt: skip

    def answered(self, source: str | list[str]) -> tuple[list[Any], Any]:
        """The reports of a file, one for each model, and the comparison of its models."""
        needs_option(self, _NEEDS)
        judge = self._with_judge(source)
        found, draws = self.read(source), self.settings.draws
        reports: list[Any] = []
        several = len(found.models) > 1 and draws > 0
        # a progress bar has its own thread, and a process with threads cannot be forked safely
        no_bar = self.quiet or (self.workers or 1) > 1
        with (
            waiting("computing every metric that applies", found, draws, no_bar, len(found.models) + several) as work,
            self._printed_early(work, len(found.models)),
        ):
            for name in found.models:
                results = [*([] if judge is None else [judge]), *self._other_data(found, name)]
                settings = replace(self.settings_of(found, name), sections=results)
                reports.append(cal.report(found.predictions(name), settings=settings))
                work.piece(len(reports))
            comparisons = self._compared(found, reports) if several else ()
        for r in reports:
            say_left_out(r, listed(self.metrics) or [])
        return reports, comparisons

    def _other_data(self, found: PredictionFile, model: str) -> list[Any]:
        """The results for a target without labels and for ordered groups, if --target or --shift was given."""
        made: list[Any] = []
        needed_by = "--target" if self.target is not None else "--shift" if self.shift is not None else ""
        draws = max(draws_of(self.resamples, needed_by), LEAST_DRAWS)
        how: dict[str, Any] = {"n_resamples": draws, "rng": self.seed, "weight_type": self.weight_type}
        if self.target is not None:
            made.append(target_of(self, found, model, **how))
        if self.shift is not None:
            made.append(curve_of(self.primary, found, model, self.shift, unit=self._unit(found), **how))
        return made

    @contextmanager
    def _printed_early(self, work: WorkDone, models: int) -> Iterator[None]:
        """Print a single model's result as soon as it is known, before sections, figures and files are computed."""
        if models != 1 or self.as_json or self.folder is not None:
            yield
            return
        from calibrary.reporting.compose import ANSWERED

        def tell(found: Any) -> None:
            work.hide()
            show_answer(found, self.quiet, brief=False)
            out.file.flush()

        token = ANSWERED.set(tell)
        try:
            yield
        finally:
            ANSWERED.reset(token)

    def _compared(self, found: PredictionFile, reports: list[Any]) -> Any:
        """Compare two models, or the best with each other one, on the same resamples of rows, units or blocks."""
        from calibrary.reporting import compare_models
        from calibrary.reporting.compose import comparable, subtracted

        unit = self._unit(found)
        said: dict[str, Any] = {
            "units": found.others[unit] if unit else None, "blocks": _runs(self.blocks), "n_bins": self.bins,
            "lens": None if self.lens == "auto" else self.lens,
        }  # fmt: skip
        together = {name: given for name, given in said.items() if given is not None}
        return compare_models(
            found.y, found.models, metrics=comparable(reports[0]), n_resamples=self.settings.draws, rng=self.seed,
            sample_weight=found.weight, weight_type=self.weight_type, reference=subtracted(reports, list(found.models)),
            outcomes=found.outcomes, **together,
        )  # fmt: skip


class AnswersCommand(_Page, fields_of("answers")):  # type: ignore[misc]
    """The arguments of ``calibrary answers``."""

    verb = "answers"

    def answered(self, source: str | list[str]) -> tuple[list[Any], Any]:
        """The report of sampled answers, with their own test as its verdict and the shares of agreement as its rows."""
        from calibrary.cli.read import sampled_answers_of

        file = _only(source, "calibrary answers takes one log")
        found = sampled_answers_of(
            file, self.scorer, answer=self.answer, unit=self.unit, others=self.beside, n_bins=self.bins or 10,
            n_resamples=draws_of(self.resamples, "calibrary answers"), rng=self.seed,
        )  # fmt: skip
        if not self.quiet:
            err.print(f"[dim]{plain(found.log.said)}[/]")
        title, notes = self.title or f"{Path(file).name}: sampled answers", (found.log.said, *found.log.notes)
        described = self.settings.with_about(title=title, notes=notes, source={"path": file, "columns": {}})
        chosen = replace(described, sections=[found.result], units=found.units, **self._split_by(found.others))
        return [cal.report(found.right, found.share, settings=chosen)], ()


class OutsideCommand(_Page, fields_of("outside")):  # type: ignore[misc]
    """The arguments of ``calibrary outside``."""

    verb = "outside"
    members: Any = None
    members_are = "draws"
    features: Any = None

    def answered(self, source: str | list[str]) -> tuple[list[Any], Any]:
        """The report of an ensemble's mean prediction, with sections about its members and about rows of no class."""
        from calibrary.cli.members import second_order_of

        files = [source] if isinstance(source, str) else source
        named = list(files[1:]) if self.members else []  # after --members, what is not a file is another member
        if any(Path(name).exists() for name in named) or (len(files) > 1 and not named):
            raise InputError(f"calibrary {self.verb} takes one file at a time")
        members, draws = [*(listed(self.members) or []), *named], draws_of(self.resamples, f"calibrary {self.verb}")
        found = second_order_of(files[0], self, members, rng=self.seed, n_resamples=draws)
        noted(found.notes, self.quiet)
        what = "mean of the members" if found.ensemble is not None else "rows inside"
        described = self.settings.with_about(
            title=self.title or f"{Path(files[0]).name}: {what}", notes=found.notes,
            source={"path": files[0], "columns": found.columns, "guessed": _guessed(found.notes)},
        )  # fmt: skip
        results = [result for result in (found.ensemble, found.outside) if result is not None]
        chosen = replace(described, sections=results, weight_type=found.weight_type, **self._split_by(found.others))
        return [cal.report(found.y, found.mean, sample_weight=found.weight, settings=chosen, **found.classes)], ()


class EnsembleCommand(fields_of("ensemble"), OutsideCommand):  # type: ignore[misc]
    """The arguments of ``calibrary ensemble``."""

    verb = "ensemble"
    prob: Any = None


@taking("report", ReportCommand)
def report(command: ReportCommand) -> None:
    """Test whether predictions are calibrated; estimate the error, its direction and the worst segments.

    Examples: `calibrary report predictions.csv`, `calibrary report p.parquet --label y --prob p -o report.html`,
    `calibrary report p.csv --model a --model b --fail-if "ece>0.05"`, `calibrary report a.csv b.csv` (one file per
    model), `calibrary report runs/*.parquet --folder reports` (one report per file). A report saved as JSON can be
    written as a page: `calibrary report saved.json -o page.html`.
    """
    if len(command.files) == 1 and is_saved(command.files[0]):
        _show_saved(Path(command.files[0]), command)
        return
    _runs(command.blocks)
    _paged(command, printed=True)


@taking("answers", AnswersCommand)
def answers(command: AnswersCommand) -> None:
    """Test whether the share of agreeing answers can be believed: `calibrary answers log.eval -o page.html`.

    The epochs of an Inspect log are sampled answers; the test allows for their sampling noise.
    """
    _paged(command)


@taking("ensemble", EnsembleCommand)
def ensemble(command: EnsembleCommand) -> None:
    """Evaluate an ensemble's mean, its members and their spread: `calibrary ensemble p.csv --members a,b,c`."""
    _paged(command)


@taking("outside", OutsideCommand)
def outside(command: OutsideCommand) -> None:
    """Evaluate predictions for rows that belong to no known class: `calibrary outside p.csv --outside unknown`."""
    _paged(command)


def _paged(command: Any, printed: bool = False) -> None:
    """Compute, print and write the reports of a command; ``printed`` says that a single one is printed early."""
    from calibrary.reporting.write import check_paths

    outputs, gates = command.output or [], command.gates
    check_paths(outputs)
    catalogue[command.primary]
    needs_option(command, _NEEDS)
    if command.folder is not None:
        forms = command.form or ["html", "json"]
        check_folder(command.folder, outputs, forms)
        gates.apply(batch(command.files, command.folder, forms, command.answered, command.quiet))
        return
    reports, comparisons = command.answered(command.files)
    _given_out(reports, comparisons, command, printed=printed and len(reports) == 1)
    gates.apply(reports)


def _given_out(reports: list[Any], comparisons: Any, command: Any, printed: bool = False) -> None:
    """Print the reports and write their files; ``printed`` says that the result was printed before."""
    from calibrary.reporting.stored import as_json

    outputs = command.output or []
    if not command.as_json:
        show(reports, comparisons, command.quiet, command.everything, printed)
    save(reports, outputs, comparisons)
    if command.as_json:  # on standard output, for the next program of a pipe
        sys.stdout.write(as_json(reports, comparisons))
    for path in outputs:
        written(path)


def _only(source: str | list[str], what: str) -> str:
    """The one file that was named; of several an error, which begins with ``what``."""
    files = [source] if isinstance(source, str) else source
    if len(files) != 1:
        raise InputError(f"{what} at a time")
    return files[0]


def _by_group(column: Any) -> dict[str, Any] | None:
    """The column of the old option --group as segments, with numbers as names; None without a column."""
    return None if column is None else {"group": np.asarray(column).astype(str)}


def _runs(blocks: str | None) -> int | bool | None:
    """The block length of the bootstrap from the option's text: a number, True for "auto", or None."""
    if blocks is None or blocks == "auto":
        return None if blocks is None else True
    if not blocks.isdigit() or int(blocks) < 1:
        raise ValueError(f"--blocks {blocks}: pass a number of rows of at least 1, or auto")
    return int(blocks)


def _source(found: PredictionFile, model: str, **others: str | None) -> dict[str, Any]:
    """The provenance of the rows for the page: the file and the role of each column."""
    dropped = getattr(found, "left_out", {}) or ({"missing values": found.n_dropped} if found.n_dropped else {})
    known = found.columns  # empty of a state, whose rows were checked when it was computed
    of_model = known.get("models", {}).get(model, [])
    named = {**known, "probability": " ... ".join(dict.fromkeys([*of_model[:1], *of_model[-1:]])), **others}
    columns = {what: name for what, name in named.items() if name and what != "models"}
    rows = len(found.y) + sum(dropped.values())
    guessed = _guessed(found.notes)
    return {"path": found.source, "rows_read": rows, "dropped": dropped, "columns": columns, "guessed": guessed}


def _guessed(notes: Iterable[str]) -> list[str]:
    """The roles whose columns were guessed."""
    return [role for role, said in _GUESSED.items() if any(note.startswith(said) for note in notes)]


#: The role of a column or label that was guessed, and the beginning of the note about it.
_GUESSED = {
    "label": "label column guessed", "probability": "probability columns guessed",
    "positive": "class of interest guessed",
}  # fmt: skip


def _name_and_parts(text: str) -> tuple[str, int | None]:
    """The name of a column and the number of ranges after its colon: age:4; None if there is none."""
    name, _, parts = text.rpartition(":")
    if not name or not parts.isdigit():
        return text, None
    if int(parts) < 2:
        raise InputError(f"--by {text}: pass a number of ranges of at least 2 after the colon")
    return name, int(parts)


def _command() -> str | None:
    """The command that was typed; None if another program called this function."""
    called = Path(sys.argv[0])
    ours = called.stem == "calibrary" or (called.parent.name, called.stem) == ("calibrary", "__main__")
    served = sys.argv[1:2] == ["mcp"]  # a client sent the request; the typed command is the one that started the server
    return shlex.join(["calibrary", *sys.argv[1:]]) if ours and not served else None


def say_left_out(report: Any, named: list[str]) -> None:
    """Print each metric that was requested by name and left out, with the reason."""
    for name in named:
        key = catalogue[name].key if name not in FAMILIES else ""
        if key in report.evaluation.skipped:
            err.print(f"{plain(key)} was not computed: {plain(report.evaluation.skipped[key])}", soft_wrap=True)


class DetectionReportCommand(_Page, fields_of("detection")):  # type: ignore[misc]
    """The arguments of ``calibrary detection report``."""

    verb = "detection"

    files: Any = ()
    folder = None

    def _more_settings(self) -> dict[str, Any]:
        return {}

    def answered(self, source: Any) -> tuple[list[Any], Any]:
        """The report of the boxes that match."""
        say("matching and computing", self.quiet)
        how = {"iou_threshold": self.iou_threshold, "matching": self.matching}
        matches = cal.match_detections(self.ground_truth, self.results, **how)
        about = {"path": self.results, "columns": {"ground truth": str(self.ground_truth)}}
        settings = self.settings.with_about(title=self.title or self.results.name, source=about)
        return [cal.report(matches, settings=settings)], ()


@taking("detection", DetectionReportCommand)
def detection_report(command: DetectionReportCommand) -> None:
    """A detector's calibration from the two COCO files: `calibrary detection report gt.json results.json`."""
    _paged(command)


def _title(found: PredictionFile, model: str, given: str | None) -> str:
    """The title of one model's page: the given title, with the model's name if there are several models."""
    if given and len(found.models) == 1:
        return given
    return f"{given or (Path(found.source).name if found.source != '-' else 'standard input')}: {model}"


def is_saved(file: str) -> bool:
    """Whether the file is a saved report rather than rows of predictions."""
    path = Path(file)
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as opened:
        beginning = opened.read(400)
    ours = '"calibrary report"' in beginning
    return ours or '"headline"' in beginning or ('"models"' in beginning and '"title"' in beginning)


def _show_saved(path: Path, command: ReportCommand) -> None:
    """Show or write a saved report again; nothing is computed."""
    from calibrary.reporting.stored import from_json
    from calibrary.reporting.write import check_paths

    check_paths(command.output or [])
    refuse_unused(command, "a saved report", _SAVED)
    reports, comparisons = from_json(path)
    _given_out(reports, comparisons, command)
    command.gates.apply(reports)


#: Columns of the short list in the terminal, and their widths at 80 characters, where names have no ids beside them;
#: numbers are never broken.
_SHORT = (("metric", 24), ("value", None), ("interval", None), ("calibrated", None), ("verdict", 19))


def show_answer(r: Any, quiet: bool, brief: bool) -> None:
    """The headline, the statements and the short list."""
    out.print(f"\n[bold]{plain(r.title)}[/]")
    if r.facts:
        from calibrary.reporting.provenance import facts_words

        out.print(f"[dim]{plain(facts_words(r.facts))}[/]")
    out.print(plain(r.headline))
    if quiet:
        return
    for finding in () if brief else r.statements:
        out.print(_item(finding))
    out.print(_short_table(r))


def show(reports: list[Any], comparisons: Any, quiet: bool, everything: bool = False, printed: bool = False) -> None:
    """Print the result, unless it was ``printed`` before, then the sections, and every metric if ``everything``."""
    from calibrary.reporting.compared import answer
    from calibrary.reporting.text import comparison_table

    if comparisons:
        out.print(f"[bold]Calibration of {len(reports)} models[/]")
        for sentence in answer(comparisons, reports[0].primary):
            out.print(_item(sentence))
    brief = len(reports) > 2 and not everything  # short enough to be seen without scrolling
    if len(reports) > _MOST_MODELS and not everything:
        _show_many(reports, comparisons)
        return
    for r in reports:
        if not printed:
            show_answer(r, quiet, brief)
        if quiet:
            continue
        for section in (s for s in r.sections if s.key != "provenance" and not (brief and s.key != "help")):
            for sentence in section.sentences[:1]:
                out.print(_item(f"{section.title}: {sentence}"))
        if everything:
            _show_everything(r)
        else:
            left = f"; {counted(len(r.evaluation.skipped), 'metric')} left out" if r.evaluation.skipped else ""
            out.print(f"[dim]{counted(len(r.evaluation.rows), 'value')} computed, which --all prints{left}[/]")
    if comparisons:
        out.print(table_of(*comparison_table(comparisons), title="comparison", title_justify="left"))


#: With more models than this, the terminal shows one table instead of paragraphs for each model.
_MOST_MODELS = 4


def _show_many(reports: list[Any], comparisons: Any) -> None:
    """Many models as one table: one line each, with the headline's metric and its difference from the best."""
    from calibrary.reporting import compared

    primary = reports[0].primary
    heads, lines = ("model", "answer", primary, "interval", *(["minus the best"] if comparisons else [])), []
    names = compared.short_names(reports)
    for r in compared.in_order(reports):
        name = names[reports.index(r)]
        row, cells = r.evaluation.row(primary), compared.cells(r, reports, comparisons)
        said = r.headline.partition(" (")[0].partition(" whether ")[0]  # "Cannot tell", without of what
        apart = [c.difference for (id, _), c in zip(compared.heads(reports), cells, strict=True) if id == primary]
        lines.append((name, said, number(row.value), ends(row.low, row.high), *(apart if comparisons else ())))
    table = table_of(heads, lines)
    for i, column in enumerate(table.columns):  # in a narrow terminal the answer is broken, never a name or a number
        if column.header != "answer":
            column.no_wrap, column.min_width = True, max(map(len, (heads[i], *(line[i] for line in lines))))
    out.print(table)
    out.print("[dim]--all prints the metrics of every model; -o writes the page[/]")


def _item(text: str) -> Any:
    """One item of a list, with its further lines indented like the first."""
    from rich.text import Text

    point = Table.grid(padding=(0, 1, 0, 0))
    point.add_row("  -", Text.from_markup(plain(text), emoji=False))
    return point


def _short_table(r: Any) -> Table:
    from calibrary.reporting.text import short_cells

    wide = out.width >= 100
    cells = zip(r.short_list, short_cells(r), strict=True)
    table = table_of([name for name, _ in _SHORT], (texts if wide else (k.title, *texts[1:]) for k, texts in cells))
    for column, (name, width) in zip(table.columns, _SHORT, strict=True):
        column.max_width = None if wide else width
        # names are not broken within a word; verdicts become narrower
        column.width = column.max_width if name == "metric" else None
        column.overflow, column.no_wrap = "fold", width is None
    return table


def _show_everything(r: Any) -> None:
    """Every metric, grouped by what it measures; a narrow window leaves out columns, but never the verdict."""
    from calibrary.reporting.text import HEAD, folded_cells, grouped

    wide = out.width >= 130
    columns = [HEAD.index(name) for name in (HEAD if wide else _NARROW)]
    for title, rows in grouped(r.evaluation).items():
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for j in columns:
            table.add_column(HEAD[j], overflow="fold", max_width=None if wide or j else 30)
        for folded in rows:
            texts = folded_cells(folded, r.evaluation)
            texts = texts if wide else (f"{folded.row.name} ({texts[0]})", *texts[1:])
            table.add_row(*(plain(texts[j]) for j in columns), style="bold" if folded.row.primary else "")
        out.print(table)
    if r.evaluation.skipped:
        out.print(f"[dim]not computed ({len(r.evaluation.skipped)}): {', '.join(r.evaluation.skipped)}[/]")


#: The columns of a table in a terminal that is too narrow for all.
_NARROW = ("metric", "value", "interval", "p adjusted", "verdict")


def main() -> None:
    """Run ``calibrary report`` without importing the other commands."""
    from calibrary.cli.ending import run_alone

    run_alone("report", report)
