"""Files of predictions: CSV, TSV, Parquet, Arrow, JSON lines, NPZ and standard input, through PyArrow."""

from __future__ import annotations

import gzip
import io
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from calibrary._errors import extra, suggest
from calibrary.data.checks import Array, sigmoid, softmax
from calibrary.data.columns import matched_names
from calibrary.data.predictions import Predictions, predictions

#: Beyond this a file is not one row per prediction; better a sentence than an hour of work.
MOST_COLUMNS = 20_000

_LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "truth", "true_label", "outcome", "class", "actual")
_PROB_NAMES = ("prob", "p", "y_prob", "probability", "score", "confidence", "prediction", "pred", "c", "y_pred")
_POSITIVE_NAMES = ("true", "yes", "positive", "pos", "case", "event")


class InputError(ValueError):
    """Something about the file or its columns that the user can put right; the text says how."""


@dataclass(frozen=True)
class PredictionFile:
    """What a file of predictions holds: labels, one set of probabilities per model, weights, groups.

    ``notes`` states every guess that was made, ``classes`` the class names in column order.
    """

    source: str
    y: NDArray[np.intp]
    models: dict[str, Array]
    classes: tuple[str, ...]
    weight: Array | None = None
    group: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    n_dropped: int = 0
    columns: dict[str, Any] = field(default_factory=dict)

    def predictions(self, model: str | None = None) -> Predictions:
        """The checked predictions of one model (the first by default), with the class names of the file."""
        p = predictions(self.y, self.models[model or next(iter(self.models))])
        named = Predictions(p.y, p.probability, classes=self.classes)
        return named if self.weight is None else predictions(named, sample_weight=self.weight)


def read_predictions(
    source: str | Path,
    *,
    label: str | None = None,
    prob: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    weight: str | None = None,
    group: str | None = None,
    positive: str | None = None,
    logits: bool = False,
    drop_missing: bool = False,
) -> PredictionFile:
    """Read labels and probabilities from a file.

    Parameters
    ----------
    source : path, or "-" for standard input
        CSV, TSV (also gzip), Parquet, Arrow/Feather, JSON lines or NPZ, told apart by name or content.
    label, weight, group : column names
        ``label`` is guessed when obvious ("label", "y", "target", ...) and the guess is stated in ``notes``.
    prob : column names or a prefix
        One column of P(class 1), one column per class, or a prefix such as "p" for p0, p1, ...
    models : column names or prefixes
        Several models to compare: one column or prefix each. Replaces ``prob``.
    positive : str
        The label that counts as class 1 when the labels are two names.
    logits : bool
        The columns hold logits, not probabilities.
    drop_missing : bool
        Leave rows with missing values out instead of refusing them.
    """
    table = read_table(source)
    notes: list[str] = []
    label = _label_column(table, label, notes)
    columns = _model_columns(table, label, prob, models, {weight, group}, notes)
    used = [label, *(c for cs in columns.values() for c in cs), *(c for c in (weight, group) if c)]
    for name in (weight, group):
        if name is not None:
            _require(table, name)
    keep = _complete_rows(table, used, str(source), drop_missing)
    values = {name: table[name][keep] for name in used}
    probabilities = {model: _matrix(values, cs, logits) for model, cs in columns.items()}
    n_columns = {1 if p.ndim == 1 else p.shape[1] for p in probabilities.values()}
    if len(n_columns) > 1:
        raise InputError(f"the models have different numbers of probability columns: {sorted(n_columns)}")
    y, classes = _class_labels(values[label], label, columns, n_columns.pop(), positive, notes)
    return PredictionFile(
        str(source),
        y,
        probabilities,
        classes,
        None if weight is None else _numbers(values[weight], weight),
        None if group is None else values[group],
        tuple(notes),
        int(len(keep) - keep.sum()),
        {"label": label, "models": columns, "weight": weight, "group": group},
    )


# -- tables -----------------------------------------------------------------------------------------


def read_table(source: str | Path) -> dict[str, NDArray[Any]]:
    """A file as named numpy columns; missing values are NaN or None."""
    if str(source) == "-":
        return _checked_table(_read_stream(sys.stdin.buffer.read(), "standard input"), "standard input")
    path = Path(source)
    if not path.exists():
        near = suggest(path.name, (p.name for p in path.parent.iterdir())) if path.parent.is_dir() else ""
        hint = f": {near}" if near.startswith("did you mean") else ""
        raise InputError(f"no such file: {path}{hint}")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty")
    return _checked_table(_read_stream(path.read_bytes(), str(path)), str(path))


def _read_stream(data: bytes, name: str) -> dict[str, NDArray[Any]]:
    if not data:
        raise InputError(f"{name} is empty")
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
        name = name.removesuffix(".gz")
    kind = _kind(data, name)
    try:
        if kind == "npz":
            return _read_npz(data, name)
        return _as_columns(_read_arrow(io.BytesIO(data), kind, name))
    except InputError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{name} cannot be read as {_KIND_NAMES[kind]}: {reason}") from error


_KIND_NAMES = {
    "npz": "NPZ", "parquet": "Parquet", "arrow": "Arrow", "json": "JSON lines", "tsv": "TSV", "csv": "CSV",
}  # fmt: skip
_KIND_ENDINGS = {
    "npz": (".npz",), "parquet": (".parquet", ".pq"), "arrow": (".arrow", ".feather", ".ipc"),
    "json": (".jsonl", ".ndjson", ".json"), "tsv": (".tsv", ".tab"), "csv": (".csv", ".txt"),
}  # fmt: skip


def _kind(data: bytes, name: str) -> str:
    for kind, endings in _KIND_ENDINGS.items():
        if name.lower().endswith(endings):
            return kind
    magic = {b"PK\x03\x04": "npz", b"PAR1": "parquet", b"ARRO": "arrow"}
    if data[:4] in magic:
        return magic[data[:4]]
    head = data[:4096].lstrip()
    if head[:1] == b"{":
        return "json"
    return "tsv" if head.split(b"\n", 1)[0].count(b"\t") else "csv"


def _read_arrow(data: IO[bytes], kind: str, name: str) -> Any:
    with extra("files", "reading files"):
        import pyarrow as pa  # noqa: F401

    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.read_table(data)
    if kind == "arrow":
        import pyarrow.feather as feather

        return feather.read_table(data)
    if kind == "json":
        import pyarrow.json as pj

        return pj.read_json(data)
    import pyarrow.csv as pc

    first = data.readline()
    data.seek(0)
    delimiter = "\t" if kind == "tsv" else ","
    if first.count(delimiter.encode()) >= MOST_COLUMNS:
        raise InputError(_too_wide(name, first.count(delimiter.encode()) + 1))
    return pc.read_csv(data, parse_options=pc.ParseOptions(delimiter=delimiter))


def _read_npz(data: bytes, name: str) -> dict[str, NDArray[Any]]:
    # allow_pickle stays off: a pickle in a downloaded file could run any code
    columns: dict[str, NDArray[Any]] = {}
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for key in arrays.files:
            array = arrays[key]
            if array.ndim == 2:
                columns.update({f"{key}{j}": array[:, j] for j in range(array.shape[1])})
            elif array.ndim == 1:
                columns[key] = array
    if not columns:
        raise InputError(f"{name} holds no one- or two-dimensional arrays")
    return columns


def _as_columns(table: Any) -> dict[str, NDArray[Any]]:
    if table.num_columns > MOST_COLUMNS:
        raise InputError(_too_wide("the file", table.num_columns))
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}


def _too_wide(name: str, columns: int) -> str:
    return f"{name} has {columns:,} columns: one row per prediction is expected (is it transposed?)"


def _checked_table(table: dict[str, NDArray[Any]], name: str) -> dict[str, NDArray[Any]]:
    lengths = {len(v) for v in table.values()}
    if len(lengths) > 1:
        raise InputError(f"the columns of {name} have different lengths: {sorted(lengths)}")
    if not table or not lengths.pop():
        raise InputError(f"{name} has no rows")
    return table


# -- which column is what ---------------------------------------------------------------------------


def _require(table: dict[str, NDArray[Any]], name: str) -> str:
    if name in table:
        return name
    raise InputError(f"no column is called {name!r}: {suggest(name, table)}")


def _label_column(table: dict[str, NDArray[Any]], label: str | None, notes: list[str]) -> str:
    if label is not None:
        return _require(table, label)
    found = [name for name in table if name.lower() in _LABEL_NAMES]
    if len(found) != 1:
        what = (
            "no column looks like the label" if not found else f"several columns may be the label ({', '.join(found)})"
        )
        raise InputError(f"{what}: name it with --label; the columns are {_some(table)}")
    notes.append(f"label column guessed: {found[0]}")
    return found[0]


def _model_columns(
    table: dict[str, NDArray[Any]],
    label: str,
    prob: Sequence[str] | None,
    models: Sequence[str] | None,
    taken: set[str | None],
    notes: list[str],
) -> dict[str, list[str]]:
    free = [name for name in table if name != label and name not in taken]
    if models:
        return {name.rstrip("_-. "): _columns_named(table, free, name) for name in models}
    if prob:
        names = [part.strip() for value in prob for part in ([value] if value in table else value.split(","))]
        columns = [c for name in names for c in _columns_named(table, free, name)]
        return {names[0] if len(names) == 1 else "model": columns}
    found = [name for name in free if name.lower() in _PROB_NAMES]
    if len(found) != 1:
        found = _numbered(free)
    if not found:
        raise InputError(f"no column looks like a probability: name it with --prob; the columns are {_some(table)}")
    notes.append("probability columns guessed: " + (found[0] if len(found) == 1 else f"{found[0]} ... {found[-1]}"))
    return {_prefix(found[0]) if len(found) > 1 else found[0]: found}


def _columns_named(table: dict[str, NDArray[Any]], free: list[str], name: str) -> list[str]:
    if name in table:
        return [name]
    matching = [c for c in free if c.startswith(name) and c != name]
    if len(matching) < 2:
        raise InputError(f"no column, and no prefix of several columns, is called {name!r}: {suggest(name, table)}")
    numbers = [re.fullmatch(r"\d+", c[len(name) :].lstrip("_-. ")) for c in matching]
    if all(numbers):
        matching.sort(key=lambda c: int(c[len(name) :].lstrip("_-. ")))
    return matching


def _numbered(names: Iterable[str]) -> list[str]:
    """Columns such as p0, p1, ..., if one prefix has all numbers from 0 or 1 on."""
    series: dict[str, dict[int, str]] = {}
    for name in names:
        if found := re.fullmatch(r"(.*?\D|)(\d+)", name):
            series.setdefault(found[1], {})[int(found[2])] = name
    full = [
        [numbers[i] for i in sorted(numbers)]
        for numbers in series.values()
        if len(numbers) > 1 and max(numbers) - min(numbers) + 1 == len(numbers) and min(numbers) in (0, 1)
    ]
    return full[0] if len(full) == 1 else []


def _prefix(name: str) -> str:
    return re.sub(r"[\d_\-. ]+$", "", name) or name


def _some(names: Iterable[str], most: int = 12) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (f", ... ({len(listed)} in all)" if len(listed) > most else "")


# -- values -----------------------------------------------------------------------------------------


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        nan: NDArray[np.bool_] = np.isnan(values)
        return nan
    if values.dtype.kind == "O":
        return np.array([v is None or v == "" or v != v for v in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _complete_rows(table: dict[str, NDArray[Any]], used: list[str], name: str, drop: bool) -> NDArray[np.bool_]:
    keep = np.ones(len(table[used[0]]), dtype=bool)
    for column in dict.fromkeys(used):
        gone = _missing(table[column])
        if gone.any() and not drop:
            first = int(np.flatnonzero(gone)[0])
            raise InputError(
                f"{name}: column {column!r} has {int(gone.sum()):,} missing values, the first in row {first + 1} "
                "(not counting a header): fill them, or go on without those rows with --drop-missing"
            )
        keep &= ~gone
    if not keep.any():
        raise InputError(f"{name}: every row has a missing value in the columns used")
    return keep


def _numbers(values: NDArray[Any], column: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        bad = next((v for v in values if not _is_number(v)), None)
        raise InputError(f"column {column!r} holds {bad!r}, which is not a number") from error


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (ValueError, TypeError):
        return False
    return True


def _matrix(values: dict[str, NDArray[Any]], columns: list[str], logits: bool) -> Array:
    numbers = [_numbers(values[c], c) for c in columns]
    p = numbers[0] if len(numbers) == 1 else np.column_stack(numbers)
    if logits:
        return sigmoid(p) if p.ndim == 1 else softmax(p)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        rows = np.flatnonzero(wrong if p.ndim == 1 else wrong.any(axis=1))[:3]
        shown = "; ".join(f"row {i + 1}: {np.atleast_1d(p[i])[np.atleast_1d(wrong[i])][0]:g}" for i in rows)
        raise InputError(
            f"column {columns[0] if p.ndim == 1 else ', '.join(columns[:3]) + ' ...'} holds values outside [0, 1] "
            f"({shown}): use --logits if they are logits, divide by 100 if they are percentages"
        )
    return p


def _class_labels(
    values: NDArray[Any],
    label: str,
    columns: dict[str, list[str]],
    n_columns: int,
    positive: str | None,
    notes: list[str],
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Labels as class numbers, and the class names in column order."""
    distinct, member = _factor(values)
    if n_columns > 1:
        candidate = _classes_of_columns(next(iter(columns.values())), distinct, label)
        return _positions(distinct, member, candidate), tuple(candidate)
    if len(distinct) > 2:
        more = f"{len(distinct):,} different labels ({_some(distinct, 4)})"
        raise InputError(f"column {label!r} holds {more} but there is one probability column: name one per class")
    chosen = _positive_label(distinct, positive, label, notes)
    negative = next((d for d in distinct if d != chosen), f"not {chosen}")
    return _positions(distinct, member, [negative, chosen]), (negative, chosen)


def _factor(values: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct labels as words, sorted, and which one each row has."""
    if values.dtype.kind == "O":
        place: dict[Any, int] = {}
        codes = np.fromiter((place.setdefault(v, len(place)) for v in values), dtype=np.intp, count=len(values))
        words = [str(v) for v in place]
    else:
        distinct, codes = np.unique(values, return_inverse=True)
        words = [_as_word(v) for v in distinct.tolist()]
    names = sorted(set(words))
    rank = np.array([names.index(w) for w in words], dtype=np.intp)
    return names, rank[codes]


def _as_word(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _classes_of_columns(columns: list[str], distinct: list[str], label: str) -> list[str]:
    """The class of each column: by name where the columns have the names of the classes, else by number from 0."""
    k = len(columns)
    names = matched_names(columns, set(distinct))
    from_zero, from_one = [str(i) for i in range(k)], [str(i + 1) for i in range(k)]
    of_columns = matched_names(columns, set(from_zero)) or matched_names(columns, set(from_one))
    if names is not None and (of_columns is None or of_columns == names or "0" in distinct):
        return names
    if set(distinct) <= set(from_zero) and "0" in distinct:
        return from_zero
    if set(distinct) <= set(from_one) and str(k) in distinct:
        return from_one
    if set(distinct) <= set(from_one):
        raise InputError(
            f"column {label!r} holds {_some(distinct, 4)} and never 0, and the probability columns "
            f"({_some(columns, 4)}) do not say whether classes count from 0 or 1: name the columns after the classes"
        )
    raise InputError(
        f"column {label!r} holds {len(distinct):,} different labels ({_some(distinct, 4)}) and there are "
        f"{k} probability columns ({_some(columns, 4)}): name the columns after the classes"
    )


def _positions(distinct: list[str], member: NDArray[np.intp], names: Sequence[str]) -> NDArray[np.intp]:
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[d] for d in distinct], dtype=np.intp)[member]


def _positive_label(distinct: list[str], positive: str | None, label: str, notes: list[str]) -> str:
    if positive is not None:
        if positive not in distinct:
            raise InputError(f"--positive {positive!r} is not a label of column {label!r}: {_some(distinct)}")
        return positive
    if set(distinct) <= {"0", "1"} or set(distinct) == {"-1", "1"}:
        return "1"
    found = [d for d in distinct if d.lower() in _POSITIVE_NAMES]
    if len(found) == 1:
        notes.append(f"class of interest guessed: {found[0]}")
        return found[0]
    raise InputError(
        f"column {label!r} holds the labels {_some(distinct)}: say which one the probabilities are of, "
        f"e.g. --positive {distinct[-1]}"
    )
