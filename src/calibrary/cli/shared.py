"""What the commands share: the two consoles, their options, and the reading of a file.

Text supplied by people is always printed through :func:`plain`, so that none of it is taken as markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from calibrary.base.files import check_writable
from calibrary.cli.console import err, out, plain, table_of
from calibrary.cli.large import class_names, scanned
from calibrary.cli.read import PredictionFile, read_predictions
from calibrary.cli.taking import given_options, needs_option, refuse_unused, taking
from calibrary.options import table
from calibrary.tables.sources import InputError

__all__ = [
    "check_output", "draws_of", "err", "folder_of", "given_options", "listed", "load", "needs_option", "noted", "out",
    "plain", "reading", "refuse_unused", "say", "table_of", "taking", "written",
]  # fmt: skip


def draws_of(resamples: int | None, needed_by: str) -> int:
    """The number of draws: 999 by default; 0 is refused if something needs draws (empty text: nothing does)."""
    if resamples == 0 and needed_by:
        raise InputError(
            f"--resamples 0 requests no draws, and {needed_by} needs some: give a number of draws (999 is usual)"
        )
    return 999 if resamples is None else resamples


def reading(given: Any) -> dict[str, Any]:
    """The options of a command that say how a file is read, for :func:`load`."""
    named = {name: getattr(given, name) for name, forms in table().items() if forms[""].reads and hasattr(given, name)}
    return {"id" if name == "id_column" else name: value for name, value in named.items()}


def load(file: str | list[str], quiet: bool, **options: Any) -> PredictionFile:
    """Read the file (or one file per model) and print what was guessed; ``labels`` is the text of --labels.

    ``gated`` says why columns must not be guessed by their content alone, if they must not.
    """
    gated = options.pop("gated", "")
    options["labels"] = class_names(options.get("labels"), options.get("positive"))
    found: Any = scanned(file, **options) or read_predictions(file, **options)
    if isinstance(found, PredictionFile):
        found.refuse_guesses(gated)
    what = "that are invalid" if options.get("drop_invalid") else "with missing values"
    noted([*found.notes, *([f"{found.n_dropped:,} rows {what} were left out"] if found.n_dropped else [])], quiet)
    return found


def noted(notes: Iterable[str], quiet: bool) -> None:
    """Print what was guessed and left out."""
    for note in () if quiet else notes:
        err.print(f"[dim]{plain(note)}[/]")


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


def check_output(path: Path, said: str, *endings: str) -> None:
    """Refuse, before any computation, a file with another ending, or one that could not be written at the end."""
    if path.suffix not in endings:
        raise InputError(f"{path}: {said}")
    check_writable(path)


def folder_of(path: Path) -> Path:
    """The folder of this name, which is made if there is none."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file: name a folder")
    path.mkdir(parents=True, exist_ok=True)
    return path


def written(path: Path) -> None:
    """Print the path of a file that was written."""
    err.print(f"written: {plain(path)}", soft_wrap=True)


def listed(values: list[str] | None) -> list[str] | None:
    return None if not values else [part.strip() for v in values for part in v.split(",") if part.strip()]
