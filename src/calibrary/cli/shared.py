"""What the commands share: the two consoles, the options every file needs, and how a file is read.

Text that people supply is printed through :func:`plain`, which is the one way to a terminal.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from rich.console import Console

from calibrary.base.text import for_terminal as plain
from calibrary.cli.large import class_names, scanned
from calibrary.cli.read import PredictionFile, read_predictions

#: No colon becomes a picture and no number a color: what is printed is what was said.
out = Console(emoji=False, highlight=False)
err = Console(stderr=True, emoji=False, highlight=False)

_KINDS = (
    "CSV, TSV, JSON lines (.gz), Parquet, Arrow, NPZ, Excel, torch, a log of Inspect (.eval, .json) or "
    "lm-evaluation-harness (samples_*.jsonl), or a folder of parts; - for standard input."
)
File = Annotated[str, typer.Argument(help=_KINDS)]
Files = Annotated[list[str], typer.Argument(help=f"{_KINDS} Several files: one per model, on the same rows.")]
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
WeightType = Annotated[
    str, typer.Option("--weight-type", help="frequency: weights count rows; importance: how much a row counts.")
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", "--units", help="Column of patients, images or prompts: their rows are drawn together."),
]
Blocks = Annotated[
    str | None,
    typer.Option(help="Rows are in time order: block length for the bootstrap, or auto for the cube root of N."),
]
Positive = Annotated[str | None, typer.Option(help="The label the probabilities are of, when labels are two names.")]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels", help="Names of the classes with commas between them, in the order of the columns; of two: no,yes."
    ),
]
Lens = Annotated[str, typer.Option(help="auto, binary, top-label, class-wise, pairwise, full, ...")]
Bins = Annotated[
    int | None,
    typer.Option(min=1, help="Bins of every binned metric and figure; each metric's own number unless given."),
]
Logits = Annotated[bool, typer.Option("--logits", help="The columns hold logits, not probabilities.")]
Percent = Annotated[bool, typer.Option("--percent", help="The columns hold percentages, also written 85%.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that says which rows of files or models are the same.")]
ModelColumn = Annotated[str | None, typer.Option(help="Long table: column of the model; one row for each of them.")]
ClassColumn = Annotated[str | None, typer.Option(help="Long table: column of the class (with --id); one row for each.")]
DropInvalid = Annotated[
    bool, typer.Option("--drop-invalid", help="Leave out rows that are no predictions, and count them.")
]
Drop = Annotated[bool, typer.Option("--drop-missing", help="Leave rows with missing values out.")]
Scorer = Annotated[str | None, typer.Option("--scorer", help="Inspect log: the scorer that is meant, of several.")]
Normalize = Annotated[
    str,
    typer.Option(help="lm-evaluation-harness log: length divides log-likelihoods by the length of the option's text."),
]
Resamples = Annotated[int | None, typer.Option(min=0, help="Bootstrap and Monte Carlo draws; 0 for point values only.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Processes that evaluate the draws; the numbers are the same for any number.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the answer.")]
Outputs = Annotated[
    list[Path] | None, typer.Option("--output", "-o", help="Write .html, .pdf, .md, .json or .csv. Repeatable.")
]
Metrics = Annotated[list[str] | None, typer.Option(help="Only these metrics or families. Repeatable, or commas.")]


__all__ = ["err", "listed", "load", "out", "plain", "say", "taking", "written"]

Options = TypeVar("Options")


def taking(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Make a command of a function of one object: the fields of its dataclass are the command's options."""
    types = get_type_hints(kind, include_extras=True)

    def made(run: Callable[[Options], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            run(kind(**given))

        command.__name__, command.__qualname__, command.__module__ = run.__name__, run.__qualname__, run.__module__
        command.__doc__, command.__annotations__ = run.__doc__, types
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [p.replace(annotation=types[name]) for name, p in inspect.signature(kind).parameters.items()]
        )
        return command

    return made


def load(file: str | list[str], quiet: bool, **options: Any) -> PredictionFile:
    """Read the file (or one file per model) and say what was guessed; ``labels`` is the text of --labels."""
    options["labels"] = class_names(options.get("labels"), options.get("positive"))
    found: Any = scanned(file, **options) or read_predictions(file, **options)
    if not quiet:
        for note in found.notes:
            err.print(f"[dim]{plain(note)}[/]")
        if found.n_dropped:
            what = "that are no predictions" if options.get("drop_invalid") else "with missing values"
            err.print(f"[dim]{found.n_dropped:,} rows {what} left out[/]")
    return found  # type: ignore[no-any-return]


def mistake(error: Exception) -> str | None:
    """What is printed about an error that the user can put right; None for a fault of ours."""
    if isinstance(error, ValueError | TypeError | ModuleNotFoundError):
        return str(error)
    if isinstance(error, OSError):
        reason = (error.strerror or str(error)).lower()
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{reason}"
    if isinstance(error, MemoryError):
        return "the memory does not suffice: use fewer rows, fewer --resamples or fewer --metrics"
    return None


def say(text: str, quiet: bool) -> None:
    """One line about what takes time; the bar of the resampling itself follows it."""
    if not quiet and err.is_terminal:
        err.print(f"[dim]{text} ...[/]")


def written(path: Path) -> None:
    """Where something was written."""
    err.print(f"written: {plain(path)}", soft_wrap=True)


def listed(values: list[str] | None) -> list[str] | None:
    return None if not values else [part.strip() for v in values for part in v.split(",") if part.strip()]


# -- options of the commands about detectors

GroundTruth = Annotated[Path, typer.Argument(help="COCO ground truth (JSON).")]
Results = Annotated[Path, typer.Argument(help="COCO results (JSON).")]
Iou = Annotated[float, typer.Option(help="Overlap from which a detection counts as correct.")]
Rule = Annotated[str, typer.Option(help="Matching rule: coco, max-iou, gt-best or independent.")]
