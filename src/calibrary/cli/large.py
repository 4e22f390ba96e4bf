"""Files larger than memory: they are summarized in a state, which is a histogram of the predictions.

A file or folder of more than :data:`MOST_ROWS` rows is never loaded into memory: ``report``, ``metric`` and ``plot``
scan it into a state. A saved state is accepted wherever a file of predictions is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.cli.taking import not_used
from calibrary.options import table
from calibrary.tables.guess import label_column, model_columns, refuse_weight
from calibrary.tables.pieces import dataset_of, without_blanks
from calibrary.tables.problems import ProblemsError
from calibrary.tables.sources import IN_BATCHES, InputError, named_errors
from calibrary.tables.table import Columns

#: Parquet and Arrow files with more rows (as their metadata state) are scanned, and CSV files with more bytes.
MOST_ROWS = 10_000_000
MOST_CSV_BYTES = 500_000_000

#: A state with more cells than this is reduced to a lower resolution, which suffices for resampling.
_MANY_CELLS = 100_000
_ENOUGH = 4800
#: Options that need all rows in memory.
_WHOLE = ("models", "logits", "percent", "id", "model_column", "class_column", "drop_label", "rescale")


@dataclass(frozen=True)
class ScannedFile:
    """A state with the attributes of a file of predictions, used in place of the file's rows."""

    source: str
    model: str
    data: Any
    group: list[Any] | None = None
    notes: tuple[str, ...] = ()
    n_dropped: int = 0
    weight: None = None
    others: Columns = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    unit: str = ""
    by: str = ""

    @property
    def models(self) -> dict[str, Any]:
        return {self.model: self.data}

    @property
    def y(self) -> NDArray[np.intp]:
        """One label for each row of the state."""
        return self.data.y

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(map(str, self.data.classes))

    def predictions(self, model: str | None = None) -> Any:
        """The rows of the state."""
        return self.data


def scanned(source: Any, **options: Any) -> ScannedFile | None:
    """The state that a file holds, or into which a large file is scanned; None for a file that fits into memory.

    The options are those of :func:`calibrary.tables.read.read_predictions`.
    """
    one = source[0] if isinstance(source, Sequence) and not isinstance(source, str) and len(source) == 1 else source
    if not isinstance(one, str | Path) or str(one) == "-":
        return None
    if is_state(Path(one)):
        _refuse_ignored(options)
        return _of_state(str(one), load_state(Path(one)), options, {})
    kind = _large(Path(one))
    by = _split_columns(options)
    if kind is None or any(options.get(name) for name in _WHOLE) or len(by) > 1:
        return None
    if options.get("drop_missing") and not options.get("drop_invalid"):
        raise InputError(
            f"{one} is scanned, as are all files of more than {MOST_ROWS:,} rows: use --drop-invalid instead of "
            "--drop-missing; it counts every row that is left out"
        )
    how: dict[str, Any] = {**{n: options.get(n) for n in _SCANNED}, "labels": whole_names(options.get("labels"))}
    state, columns, notes = state_of([str(one)], by=by, kind=kind, resolution=_ENOUGH if by else None, **how)
    notes = [
        f"more than {MOST_ROWS:,} rows: counted in a histogram (a state); each metric is shown with its precision",
        *notes,
    ]
    return _of_state(str(one), state, options, columns, notes)


#: Options that say how rows are read, which a state has behind it.
_OF_ROWS = ("label", "prob", "weight", "positive", "labels", *_WHOLE)


def _refuse_ignored(options: dict[str, Any]) -> None:
    """Refuse what would be ignored: the columns and classes of a state were chosen when it was made."""
    given = {"models": "model", "id": "id_column"}
    unused = [table()[given.get(name, name)][""].words[0] for name in _OF_ROWS if options.get(name)]
    if unused:
        raise not_used(unused, "a saved state")


_SCANNED = ("label", "prob", "weight", "positive", "drop_invalid")


def _of_state(
    source: str, state: Any, options: dict[str, Any], columns: dict[str, Any], notes: Sequence[str] = ()
) -> ScannedFile:
    from calibrary.scale import State

    by = _split_columns(options)
    name = str(columns.get("model", "state"))
    said = (*notes, *(f"{count:,} rows left out: {reason}" for reason, count in state.dropped.items()))
    if isinstance(state, State) and len(state) > _MANY_CELLS and state.resolution % _ENOUGH == 0:
        state = state.coarser(_ENOUGH)
        reduced = f"the histogram of {state.n:,} predictions was reduced to {_ENOUGH:,} cells, to make resampling fast"
        said = (*said, reduced)
    if not by:
        return ScannedFile(source, name, state.as_predictions(), None, said)
    if len(by) > 1:
        raise InputError(f"a saved state can be split by one column at a time: choose one of {', '.join(by)}")
    if by[0] not in getattr(state, "key_names", ()):
        raise InputError(f"{source} was not split by {by[0]!r}: scan again with --by {by[0]}")
    rows, values = state.rows_by(by[0])
    group = values if options.get("group") else None
    return ScannedFile(source, name, rows, group, said, others={by[0]: np.asarray(values)})


def _split_columns(options: dict[str, Any]) -> list[str]:
    """The requested columns of groups, periods and units."""
    return list(dict.fromkeys(name for name in (options.get("group"), *(options.get("others") or ())) if name))


# -- what kind of file it is ------------------------------------------------------------------------


def is_state(path: Path) -> bool:
    """Whether the file is a saved state rather than rows of predictions."""
    return _about(path) is not None


def is_scanned(path: Path) -> bool:
    """Whether the file is a saved state, or so large that it will be scanned into one."""
    return is_state(path) or _large(path) is not None


def _about(path: Path) -> dict[str, Any] | None:
    if path.suffix != ".parquet" or not path.is_file():
        return None
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = (pq.read_schema(path).metadata or {}).get(b"calibrary")
    except (pa.ArrowInvalid, OSError):  # the function that reads the file will report the error
        return None
    return None if found is None else dict(json.loads(found))


def load_state(path: Path) -> Any:
    """The state in a file: of two classes, of several, or of detections."""
    from calibrary.scale import State, VectorState

    about = _about(path)
    if about is None:
        raise InputError(f"{path} is not a saved state: write one with calibrary scale scan FILES -o {path.name}")
    return VectorState.load(path) if about.get("kind") == "vectors" else State.load(path)


def _large(path: Path) -> str | None:
    """The format of a file or folder that is too large for memory, else None."""
    try:
        files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path] if path.is_file() else []
    except OSError:
        return None
    files = [p for p in files if p.name[0] not in "._"]
    kinds = {IN_BATCHES.get(p.suffix) for p in files}
    if len(kinds) != 1 or None in kinds:
        return None
    kind = str(kinds.pop())
    if kind == "csv":
        return kind if sum(p.stat().st_size for p in files) > MOST_CSV_BYTES else None
    if sum(p.stat().st_size for p in files) < MOST_ROWS // 100:  # a row takes at least a few bits
        return None
    try:
        return kind if dataset_of(str(path), kind)[0].count_rows() > MOST_ROWS else None
    except (ValueError, OSError):  # the function that reads the file will report the error
        return None


# -- scanning ---------------------------------------------------------------------------------------


def state_of(
    files: Sequence[str],
    *,
    label: str | None,
    prob: Sequence[str] | None,
    weight: str | None,
    positive: str | None,
    drop_invalid: bool | None,
    by: Sequence[str] = (),
    kind: str | None = None,
    **more: Any,
) -> tuple[Any, dict[str, Any], list[str]]:
    """The state of several files, the columns that were used, and the notes about guessed columns."""
    from calibrary.scale import scan

    notes: list[str] = []
    with named_errors(files[0]):
        schema = dataset_of(files[0], kind)[0].schema
    known = list(schema.names)
    label = label_column(known, label, notes)
    columns = model_columns(known, label, prob, None, {*by, *([weight] if weight else [])}, notes)
    refuse_weight(weight, label, columns)
    model, probs = next(iter(columns.items()))
    try:
        state = scan(
            list(files), label=label, prob=probs[0] if len(probs) == 1 else probs, by=by, weight=weight,
            pos_label=_as_in(schema, label, positive), drop_invalid=bool(drop_invalid), format=kind, **more,
        )  # fmt: skip
        return state, {"model": model}, notes
    except ProblemsError as error:
        typed = [replace(problem, remedy="--drop-invalid") for problem in error.problems]
        raise ProblemsError(", ".join(files), typed, error.rows) from None
    except ValueError as error:
        raise InputError(_in_words_of_the_command_line(str(error))) from error


def _as_in(schema: Any, label: str, positive: str | None) -> str | int | None:
    """The class that was typed as the column of labels has it: a number, or a text."""
    from pyarrow import types

    kind = schema.field(label).type
    numbers = types.is_integer(kind) or types.is_floating(kind)
    return whole_name(positive) if positive is not None and numbers else positive


def class_names(labels: str | None, positive: str | None = None) -> list[str] | None:
    """The names of the classes given with --labels, in the same order."""
    if labels is None:
        return None
    if positive is not None:
        raise InputError("--positive and --labels both name the classes: pass only one of them")
    names = [name.strip() for name in labels.split(",")]
    if len(names) < 2 or "" in names or len(set(names)) < len(names):
        raise InputError(f"--labels {labels!r}: name each class once, with commas between the names")
    return names


def whole_names(names: list[str] | None) -> list[str | int] | None:
    """The class names as a database stores them: integers if all of them are integers."""
    if names is None:
        return None
    numbers = [whole_name(name) for name in names]
    return numbers if all(isinstance(number, int) for number in numbers) else list(names)


def whole_classes(labels: list[str] | None, positive: str | None) -> dict[str, Any]:
    """The classes that were named as a database stores them: all of them in order, and the one of interest of two."""
    return {"labels": whole_names(labels), "pos_label": None if positive is None else whole_name(positive)}


def whole_name(word: str) -> str | int:
    """The word as an integer if it is one, else unchanged."""
    return int(word) if word.removeprefix("-").isdecimal() and str(int(word)) == word else word


def require_rows(found: Any, command: str) -> None:
    """Refuse a state in place of rows."""
    if isinstance(found, ScannedFile):
        raise InputError(
            f"{found.source} is counted in a histogram (a state), and {command} needs rows: name a file of at most "
            f"{MOST_ROWS:,} rows"
        )


def read_result(path: Path) -> Any:
    """The table that a database returned, from a file. Empty texts of a CSV file count as missing."""
    import pyarrow as pa

    kind = IN_BATCHES.get(path.suffix)
    if not path.is_file() or kind is None:
        raise InputError(f"{path} is not a table: pass a .parquet, .csv or .arrow file")
    try:
        dataset = dataset_of(str(path))[0]
    except RefusedError as error:
        raise InputError(str(error).removesuffix(": pass format= if it is something else")) from error
    with named_errors(str(path)):
        table = dataset.to_table()
    if kind == "csv":
        table = pa.table({name: without_blanks(table.column(name)) for name in table.column_names})
    return table


def _in_words_of_the_command_line(sentence: str) -> str:
    for of_python, here in (
        ("drop_invalid=True leaves", "--drop-invalid leaves"),
        (
            "pass labels=[...], or pos_label= for two",
            "name them with --labels, or say which of two the probabilities are of with --positive",
        ),
        ("pass lens='top-label', or scan part by part", "add --top-label, or scan part by part"),
    ):
        sentence = sentence.replace(of_python, here)
    return sentence
