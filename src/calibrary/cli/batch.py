"""One report for each of many files, and an index page: ``calibrary report runs/*.parquet --folder reports/``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from calibrary.base.files import check_writable, write_atomically
from calibrary.base.numbers import ends, number
from calibrary.cli.shared import err, plain, written
from calibrary.reporting.write import ENDINGS, IndexLine, index, save
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
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
        lines += [IndexLine(_source(source, r, reports), f"{name}.{forms[0]}", r.headline, _cells(r)) for r in reports]
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


def _source(source: str, report: Any, reports: list[Any]) -> str:
    return source if len(reports) == 1 else f"{source}: {report.title}"


def _cells(report: Any) -> tuple[str, ...]:
    row = report.evaluation.row(report.primary)
    return f"{report.evaluation.n:,}", row.id, number(row.value), ends(row.low, row.high)
