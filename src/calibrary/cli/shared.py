"""What the commands share: the two consoles, the options of every file, and the reading of a file.

Text supplied by people is always printed through :func:`plain`, so that none of it is taken as markup.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from calibrary.cli.console import err, out, plain
from calibrary.cli.large import class_names, scanned
from calibrary.cli.read import PredictionFile, read_predictions
from calibrary.cli.sources import InputError

#: Text is printed unchanged: no emoji for words between colons, no colors for numbers.

_KINDS = (
    "CSV, TSV, JSON lines (.gz), Parquet, Arrow, NPZ, Excel, torch, a log of Inspect (.eval, .json) or "
    "lm-evaluation-harness (samples_*.jsonl), or a folder of parts; - for standard input."
)
File = Annotated[str, typer.Argument(help=_KINDS)]
Files = Annotated[list[str], typer.Argument(help=f"{_KINDS} Several files hold one model each, on the same rows.")]
Label = Annotated[
    str | None,
    typer.Option("--label", "--correct", help="Column of the true class (guessed if the name is a usual one)."),
]
Prob = Annotated[
    list[str] | None,
    typer.Option(
        "--prob", "--confidence", help="Probability column(s), or a prefix such as p for p0, p1, ... Repeatable."
    ),
]
Weight = Annotated[str | None, typer.Option(help="Column of weights; a row of weight 2 counts as two equal rows.")]
WeightType = Annotated[
    str,
    typer.Option(
        "--weight-type",
        help="frequency: a weight is a number of equal rows; importance: a weight is the relative importance of a row.",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", "--units", help="Column of patients, images or prompts, whose rows are resampled together."),
]
Blocks = Annotated[
    str | None,
    typer.Option(help="Rows are in time order: block length for the bootstrap, or auto for the cube root of N."),
]
Positive = Annotated[
    str | None, typer.Option(help="The label to which the probabilities refer, if the labels are two names.")
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="Names of the classes, separated by commas, in the order of the columns; for two classes: no,yes.",
    ),
]
Lens = Annotated[
    str, typer.Option(help="Which events are tested (lens): auto, binary, top-label, class-wise, pairwise, full, ...")
]
Bins = Annotated[
    int | None,
    typer.Option(min=1, help="Number of bins of every binned metric and figure; by default each metric's own."),
]
Logits = Annotated[bool, typer.Option("--logits", help="The columns hold logits, not probabilities.")]
Percent = Annotated[bool, typer.Option("--percent", help="The columns hold percentages, also written 85%.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that identifies the same row in several files or models.")]
ModelColumn = Annotated[
    str | None, typer.Option(help="Long table: column of the model, with one row for each prediction and model.")
]
ClassColumn = Annotated[
    str | None,
    typer.Option(help="Long table: column of the class (with --id), with one row for each prediction and class."),
]
DropInvalid = Annotated[
    bool,
    typer.Option(
        "--drop-invalid", help="Leave out invalid rows (missing values, probabilities outside 0 to 1) and count them."
    ),
]
Drop = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")]
Scorer = Annotated[
    str | None,
    typer.Option("--scorer", help="Log: the scorer (Inspect) or filter (lm-evaluation-harness), if there are several."),
]
Normalize = Annotated[
    str,
    typer.Option(help="lm-evaluation-harness log: length divides log-likelihoods by the length of the option's text."),
]
Resamples = Annotated[
    int | None, typer.Option(min=0, help="Number of bootstrap resamples and Monte Carlo draws; 0 for estimates only.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Number of processes that share the work; the numbers do not depend on it.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result, without notes and progress.")]
Outputs = Annotated[
    list[Path] | None, typer.Option("--output", "-o", help="Output file: .html, .pdf, .md, .json or .csv. Repeatable.")
]
Metrics = Annotated[
    list[str] | None, typer.Option(help="Only these metrics or families. Repeatable, or separated by commas.")
]


__all__ = [
    "draws_of", "err", "given_options", "listed", "load", "needs_option", "out", "plain", "refuse_unused", "say",
    "taking", "written",
]  # fmt: skip

Options = TypeVar("Options")


def taking(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Turn a function of one dataclass object into a command whose options are the dataclass's fields."""
    types = get_type_hints(kind, include_extras=True)

    def command_of(run: Callable[[Options], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            run(kind(**given))

        command.__name__, command.__qualname__, command.__module__ = run.__name__, run.__qualname__, run.__module__
        command.__doc__, command.__annotations__ = run.__doc__, types
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [p.replace(annotation=types[name]) for name, p in inspect.signature(kind).parameters.items()]
        )
        return command

    return command_of


def given_options(command: Any) -> dict[str, str]:
    """The fields of a command that differ from their defaults, each with its option as it is typed."""
    types = get_type_hints(type(command), include_extras=True)
    given: dict[str, str] = {}
    for field in fields(command):
        if field.default is MISSING or getattr(command, field.name) in (field.default, []):
            continue
        info = get_args(types[field.name])[1]
        declared = [d for d in (info.default, *(info.param_decls or ())) if isinstance(d, str) and d[:2] == "--"]
        given[field.name] = declared[0] if declared else f"--{field.name.replace('_', '-')}"
    return given


def refuse_unused(command: Any, beside: str, used: Collection[str]) -> None:
    """Refuse the options that were given and are not among those ``used`` with ``beside``, so that none is ignored."""
    unused = [option for name, option in given_options(command).items() if name not in used]
    if unused:
        verb, them = ("is", "it") if len(unused) == 1 else ("are", "them")
        named = " and ".join([", ".join(unused[:-1]), unused[-1]]) if len(unused) > 1 else unused[0]
        raise InputError(f"{named} {verb} not used with {beside}: leave {them} out")


def needs_option(command: Any, needed: dict[str, tuple[str, ...]]) -> None:
    """Refuse a field that was given without any of the fields that it needs, which are named by their options."""
    given = given_options(command)
    for name, options in needed.items():
        if name in given and not any(option in given.values() for option in options):
            with_ = " or ".join(options)
            raise InputError(f"{given[name]} is used only with {with_}: add {with_}, or leave {given[name]} out")


def draws_of(resamples: int | None, needed_by: str) -> int:
    """The number of draws: 999 by default; 0 is refused if something needs draws (empty text: nothing does)."""
    if resamples == 0 and needed_by:
        raise InputError(
            f"--resamples 0 requests no draws, and {needed_by} needs some: give a number of draws (999 is usual)"
        )
    return 999 if resamples is None else resamples


def load(file: str | list[str], quiet: bool, **options: Any) -> PredictionFile:
    """Read the file (or one file per model) and print what was guessed; ``labels`` is the text of --labels."""
    options["labels"] = class_names(options.get("labels"), options.get("positive"))
    found: Any = scanned(file, **options) or read_predictions(file, **options)
    if not quiet:
        for note in found.notes:
            err.print(f"[dim]{plain(note)}[/]")
        if found.n_dropped:
            what = "that are invalid" if options.get("drop_invalid") else "with missing values"
            err.print(f"[dim]{found.n_dropped:,} rows {what} were left out[/]")
    return found  # type: ignore[no-any-return]


def mistake(error: Exception) -> str | None:
    """The message for an error that the user can correct; None for a bug of this library."""
    if isinstance(error, ValueError | TypeError | ModuleNotFoundError):
        return str(error)
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{reason}"
    if isinstance(error, MemoryError):
        return "there is not enough memory: use fewer rows, fewer --resamples or fewer --metrics"
    return None


def say(text: str, quiet: bool) -> None:
    """Print one line about a step that takes time; a progress bar of the resampling follows."""
    if not quiet and err.is_terminal:
        err.print(f"[dim]{text} ...[/]")


def written(path: Path) -> None:
    """Print the path of a file that was written."""
    err.print(f"written: {plain(path)}", soft_wrap=True)


def listed(values: list[str] | None) -> list[str] | None:
    return None if not values else [part.strip() for v in values for part in v.split(",") if part.strip()]


# -- options of the commands about detectors

GroundTruth = Annotated[Path, typer.Argument(help="COCO ground truth (JSON).")]
Results = Annotated[Path, typer.Argument(help="COCO results (JSON).")]
Iou = Annotated[float, typer.Option(help="Overlap (IoU) from which a detection counts as correct.")]
Rule = Annotated[str, typer.Option(help="Matching rule: coco, max-iou, gt-best or independent.")]
