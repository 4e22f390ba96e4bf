"""The files of a study: its summary, its plan and the true errors, each with a version and a digest."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrary.base.files import write_atomically
from calibrary.base.numbers import as_plain
from calibrary.base.saved import SavedFileError, opened, read_json, sealed, typed, value_of
from calibrary.base.text import in_sentence

FORMAT = "calibrary study"
VERSION = 1

#: The columns of a table for one value at one sample size.
COLUMNS = (
    "null", "null_sd", "null_se", "bias", "bias_l1", "sd", "bias_over_sd", "power", "power_se", "within", "within_se",
    "across", "across_se", "within_distance", "across_distance", "undefined", "seconds", "draws", "null_draws",
)  # fmt: skip

#: The columns that are shares of samples or of pairs of settings.
_SHARES = ("power", "within", "across", "undefined")

#: A number, or null if undefined.
Value = int | float | None
#: The results of one value: numbers, text, and numbers by the name of a distribution or family.
Measured = dict[str, str | Value | dict[str, Value]]


@dataclass(frozen=True)
class About:
    """The origin of a study."""

    version: str
    preset: str
    seed: int
    shards: int
    of: int
    missing: dict[str, int] = field(default_factory=dict)
    draws: dict[str, tuple[int, int]] = field(default_factory=dict)
    cpu_seconds: Value = None


@dataclass(frozen=True)
class ClassMeasures:
    """The results on several classes."""

    worlds: dict[str, dict[str, Value]]
    sizes: dict[str, dict[str, dict[str, Any]]]


@dataclass(frozen=True)
class Correlation:
    """Rank correlations of metrics over settings."""

    n: int
    names: tuple[str, ...]
    rho: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Summary:
    """The type of every field of a study's summary."""

    about: About
    worlds: dict[str, dict[str, str | Value]]
    numbers: dict[str, Measured]
    sizes: dict[str, dict[str, Measured]]
    means: dict[str, dict[str, tuple[Value, ...]]]
    powers: dict[str, dict[str, tuple[Value, ...]]]
    binnings: dict[str, dict[str, Any]]
    tests: dict[str, dict[str, Measured]]
    classes: ClassMeasures
    correlation: dict[str, Any]
    left_out: dict[str, str]
    real: dict[str, dict[str, Value]] = field(default_factory=dict)


def write_summary(found: Mapping[str, Any], path: str | Path) -> None:
    """Write a summary as JSON, compressed where the name ends in .gz."""
    content = sealed({"format": FORMAT, "version": VERSION, **found})
    text = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    # no time stamp: the same study is the same file
    write_atomically(path, gzip.compress(text, 9, mtime=0) if str(path).endswith(".gz") else text)


def read_summary(path: str | Path) -> dict[str, Any]:
    """The summary in a file, after its types were checked."""
    whole = opened(read_json(path, "study"), "study", path, format=FORMAT, version=VERSION)
    found = {name: value for name, value in whole.items() if name not in ("format", "version")}
    try:
        _refuse_disagreement(Summary(**typed(Summary, found, "the study")))
    except SavedFileError as error:
        raise SavedFileError(
            f"{path} is not a study of calibrary ({error}): run one with calibrary study run"
        ) from None
    return found


def _refuse_disagreement(summary: Summary) -> None:
    """Refuse a summary whose parts have different sample sizes, settings or metrics."""
    if not summary.sizes or not all(n.isascii() and n.isdigit() and len(n) < 19 for n in summary.sizes):
        raise SavedFileError(f"sizes = {in_sentence(list(summary.sizes), 40)} must be numbers of rows")
    for part in ("means", "powers"):
        by_size: dict[str, dict[str, tuple[Value, ...]]] = getattr(summary, part)
        if by_size.keys() != summary.sizes.keys():
            raise SavedFileError(f"{part} and sizes are of different numbers of rows")
        if any(len(values) != len(summary.worlds) for by in by_size.values() for values in by.values()):
            raise SavedFileError(f"{part} must hold one number for each of {len(summary.worlds)} worlds")
    unknown = sorted({name for by in summary.sizes.values() for name in by} - summary.numbers.keys())
    if unknown:
        raise SavedFileError(f"sizes hold {in_sentence(unknown[0], 40)}, which is not among the numbers")
    for row in (row for by in summary.sizes.values() for row in by.values()):
        wrong = next((name for name in COLUMNS if isinstance(row.get(name), str | dict)), None)
        if wrong is not None:
            raise SavedFileError(f"{wrong} = {in_sentence(row[wrong], 40)} must be a number")
        share = next((name for name in _SHARES if not 0.0 <= (row.get(name) or 0.0) <= 1.0), None)  # type: ignore[operator]
        if share is not None:
            raise SavedFileError(f"{share} = {in_sentence(row[share], 40)} must be from 0 to 1")
    if summary.correlation:
        table = Correlation(**typed(Correlation, summary.correlation, "correlation"))
        if {len(table.rho), *map(len, table.rho)} != {len(table.names)}:
            raise SavedFileError(f"correlation must be square, with {len(table.names)} rows")


# -- other files in the folder of the shards ----------------------------------------------------------


def write_part(path: Path, what: str, content: Any) -> None:
    """Write a part of a study, such as its plan."""
    whole = {"format": f"{FORMAT}: {what}", "version": VERSION, "content": as_plain(content, finite=True)}
    write_atomically(path, json.dumps(sealed(whole), indent=1, allow_nan=False).encode())


def read_part(path: Path, what: str, hint: Any) -> Any:
    """Read a part that :func:`write_part` wrote, as this type; version 0.2 wrote the content alone."""
    saved, name = read_json(path, f"{what} of a study"), f"{what} of a study"
    if isinstance(saved, dict) and "format" in saved:
        saved = opened(saved, name, path, format=f"{FORMAT}: {what}", version=VERSION).get("content")
    try:
        return value_of(hint, saved, what)
    except SavedFileError as error:
        raise SavedFileError(f"{path} is not a {name} ({error}): remove it, and the study computes it again") from None


@dataclass(frozen=True)
class KeptPlan:
    """The content of a stored plan: the preset, the seed, and seconds by number of classes, rows and metric."""

    preset: str
    seed: int
    seconds: dict[str, dict[str, dict[str, float]]]
