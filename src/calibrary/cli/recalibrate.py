"""``calibrary recalibrate fit`` fits and saves a recalibration map; ``apply`` transforms other files with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import typer

from calibrary.base.errors import suggest
from calibrary.base.files import beside
from calibrary.cli.large import require_rows
from calibrary.cli.shared import check_output, err, load, out, plain, reading, table_of, taking, written
from calibrary.data.checks import Array, outside
from calibrary.data.matching import match_detections
from calibrary.recalibrate import RecalibrationGain, Recalibrator, recalibration_gain
from calibrary.tables.rewrite import FileJob, kind_of, run
from calibrary.tables.sources import InputError

app = typer.Typer(help="Fit a recalibration map, and apply it to other files.", no_args_is_help=True)


@app.command()
@taking("fit")
def fit(given: Any) -> None:
    """Fit a map and estimate its gain: `calibrary recalibrate fit valid.csv -o map.json`."""
    output = given.output
    check_output(output, "a map is saved as JSON; name the file with .json", ".json")
    columns: list[str] = ["score"]
    units: Any = None
    if given.results is not None:
        data: Any = match_detections(given.file, given.results, iou_threshold=given.iou_threshold)
    else:
        found = load(given.file, given.quiet, **reading(given), group=given.unit)
        require_rows(found, "recalibrate fit")
        data, units = found.predictions(), found.group
        columns = next(iter(found.columns["models"].values()))
    fitted = Recalibrator(given.map, logits=given.logits, scoring=given.score, folds=given.folds, rng=given.seed).fit(
        data, units=units
    )
    gain = fitted.gain_ or recalibration_gain(
        data, maps=given.map, score=given.score, folds=given.folds, units=units, rng=given.seed
    )
    fitted.feature_names_in_ = np.array(columns, dtype=object)
    fitted.save(output)
    _show(gain, given.as_json, given.quiet)
    if fitted.map_ == "identity":
        err.print("the map does not change the predictions")
    written(output)


def _show(gain: RecalibrationGain, as_json: bool, quiet: bool) -> None:
    if as_json:
        out.print_json(json.dumps(gain.to_dict()))
        return
    out.print(plain(gain.sentence), soft_wrap=True)
    if quiet:
        return
    for note in gain.notes:
        out.print(plain(note), soft_wrap=True)
    head, body = gain.table()
    table = table_of(head, body, words=(0, len(head) - 1))
    for row, line in zip(table.rows, body, strict=True):
        row.style = "bold" if line[-1] else ""
    out.print(table)
    if gain.advice is not None:
        out.print("Test the map on data to which it was not fitted.")


@app.command()
@taking("apply")
def apply(given: Any) -> None:
    """Add recalibrated probabilities to a file: `calibrary recalibrate apply map.json new.csv -o out.csv`."""
    map, file, output, suffix = given.map, given.file, given.output, given.suffix
    recalibrator = Recalibrator.load(map)
    if recalibrator.by is not None:
        raise InputError(
            f"{map} has a map for each segment of {recalibrator.by}: apply it in Python, with the segment of each row"
        )
    if not file.is_file():
        raise InputError(f"no such file: {file}" if not file.exists() else f"{file} is a folder: name a file")
    if output.exists() and output.samefile(file):
        raise InputError(f"{output} is the input file: name another output, so that nothing is recalibrated twice")
    kind_of(output)
    seen = recalibrator.rows_.compare()

    columns: list[str] = []

    def find(names: list[str]) -> list[str]:
        columns[:] = _columns(names, given.prob, recalibrator, map)
        return columns

    fractions = False

    def transform(p: Array, first: int) -> Array:
        nonlocal fractions
        fractions = fractions or bool(((p > 0.0) & (p < 1.0)).any())
        if not recalibrator.logits:
            _refuse_scale(p, first, file, fractions)
        given = p if p.shape[1] > 1 else p[:, 0]
        seen.add(recalibrator._checked(given))
        q: Array = recalibrator.transform(given)
        return q if q.ndim == 2 else q[:, None]

    with beside(output) as temporary:
        n = run(FileJob(file, temporary, find, transform, suffix, given.keep_missing, given.overwrite))
        if seen.share and not given.fitted_rows:
            part = "the rows" if seen.share == 1.0 else f"about {seen.share:.0%} of the rows"
            raise InputError(
                f"this map was fitted to {part} of {file}, and on these rows every map looks good, so nothing was "
                "written; use other rows, or pass --fitted-rows to write them anyway"
            )
    if not given.quiet:
        where = ", ".join(f"{c}{suffix}" for c in columns[:3]) + (" ..." if len(columns) > 3 else "")
        of = f" in {plain(where)}" if columns else ""
        err.print(f"written: {plain(output)} ({n:,} rows, {recalibrator.map_}{of})", soft_wrap=True)


@app.command()
@taking("inverse")
def inverse(given: Any) -> None:
    """Find the score that corresponds to a recalibrated probability: `calibrary recalibrate inverse map.json 0.02`."""
    recalibrator = Recalibrator.load(given.map)
    for q in given.probability:
        out.print(plain(recalibrator.which_score(q)), soft_wrap=True)


def _columns(names: list[str], prob: list[str] | None, recalibrator: Recalibrator, map: Path) -> list[str]:
    """The probability columns: as requested, or with the names of the fitted columns."""
    wanted = [c.strip() for v in prob or [] for c in v.split(",") if c.strip()]
    wanted = wanted or [str(c) for c in getattr(recalibrator, "feature_names_in_", ())]
    if not wanted:
        raise InputError(f"{map} does not say which columns it was fitted to: name them with --prob")
    if len(wanted) == 1 and wanted[0] not in names:
        wanted = _of_prefix(wanted[0], names, recalibrator)
    for name in wanted:
        if name not in names:
            how = "" if prob else " (as when the map was fitted; name others with --prob)"
            raise InputError(f"no column is called {name!r}{how}: {suggest(name, names)}")
        if names.count(name) > 1:
            raise InputError(f"two columns are called {name!r}: rename one of them")
    k, n = len(wanted), len(recalibrator.classes_)
    if k != n and not (n == 2 and k == 1):
        classes = ", ".join(str(c) for c in recalibrator.classes_[:5])
        raise InputError(f"{k} probability column(s) for a map of {n} classes ({classes}): name one column per class")
    return wanted


def _of_prefix(prefix: str, names: list[str], recalibrator: Recalibrator) -> list[str]:
    """The columns with this prefix, in the order of the classes or of their numbers."""
    ends = {re.sub(r"^[_\-. ]+", "", name[len(prefix) :]): name for name in names if name.startswith(prefix)}
    classes = [str(c) for c in recalibrator.classes_]
    if set(classes) <= set(ends):
        return [ends[c] for c in classes]
    numbers = sorted((int(end), name) for end, name in ends.items() if end.isdigit())
    if len(numbers) == len(classes) and not set(ends) & set(classes):
        return [name for _, name in numbers]
    return [prefix]


def _refuse_scale(p: Array, first: int, file: Path, fractions: bool) -> None:
    """Refuse numbers that are not probabilities, naming the row in the whole file."""
    found = outside(p)
    if found is None:
        return
    if found.percentages:
        why = "percentages are mixed with fractions; convert all to numbers from 0 to 1"
        cause = f"looks like a percentage: {why if fractions else 'divide by 100'}"
    else:
        cause = "is not a probability: pass numbers from 0 to 1, or fit the map with --logits"
    raise InputError(f"{file}: {found.value:g} in row {first + found.where[0] + 1:,} (not counting a header) {cause}")
