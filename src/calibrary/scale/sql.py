"""One SQL query that computes a state inside the database, in its dialect.

The query is a GROUP BY over the cells of :class:`calibrary.numerics.cells.Grid`, computed step by step; multiplication
by powers of sixteen is exact. The sum of positions has two columns, s + 2^14 * s_high, so that neither overflows 64
bits below 2^49 rows in a cell.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.asked import checks_options
from calibrary.numerics.cells import LEVELS, POSITIONS, Grid
from calibrary.scale.checks import ROW_SUM
from calibrary.scale.keys import key_columns
from calibrary.scale.state import State, plain_label, usual_resolution

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORDS = re.compile(r"[^\W\d]\w*( \w+)*\Z")
#: The databases, and the steps of the queries.
_TABLE = tomllib.loads(Path(__file__).with_name("sql.toml").read_text(encoding="utf-8"))
_RESERVED, _OPERATORS = (frozenset(_TABLE[name].split()) for name in ("reserved", "operators"))


@dataclass(frozen=True)
class Dialect:
    """A database's names of the 64-bit types, and its rules of quoting."""

    name: str
    double: str = "DOUBLE"
    bigint: str = "BIGINT"
    quotes: str = '""'
    #: The keyword between AS and the parenthesis of a step.
    materialized: str = ""
    #: How a text literal is written, a name in ``_TEXTS``; "" refuses texts that databases interpret differently.
    text: str = ""
    #: Whether literal numbers are cast, because they would be decimal numbers.
    cast_literals: bool = False
    #: The label as a double, if booleans cannot be cast to double.
    number_of_label: str = "CAST({label} AS {double})"

    def number(self, value: float) -> str:
        """A literal double."""
        written = f"{int(value)}e0" if value == int(value) else f"{value:.17e}"
        return f"CAST({written} AS {self.double})" if self.cast_literals else written

    def __getitem__(self, value: str) -> str:
        """A literal double, as templates name it: ``{d[0.5]}``."""
        return self.number(float(value))

    def column(self, name: str) -> str:
        """The name of a column, quoted if necessary."""
        if _PLAIN.match(name) and name.lower() not in _RESERVED:
            return name
        if "\x00" in name:
            raise RefusedError(f"{name!r} is not a valid column name: it contains the character NUL")
        first, last = self.quotes[0], self.quotes[1]
        if first == last == "`":  # a backslash begins an escape there
            return f"`{name.replace(chr(92), chr(92) * 2).replace('`', chr(92) + '`')}`"
        return first + name.replace(last, last * 2) + last

    def expression(self, given: str) -> str:
        """A column name, quoted if necessary, or an expression of columns, unchanged.

        Words without any sign between them are a name (``true label``), unless one of them is an operator.
        """
        if _WORDS.match(given) and (" " not in given or not _OPERATORS.intersection(given.lower().split())):
            return self.column(given)
        return given

    def literal(self, value: Hashable) -> str:
        """A label as a literal of this database."""
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, str):
            if "\x00" in value or (not self.text and "\\" in value):
                raise RefusedError(
                    f"labels: {value!r} contains a character that databases interpret differently: pass dialect=, or "
                    "map it to a number"
                )
            return _TEXTS[self.text or "doubled"](value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise RefusedError(
                f"labels: {value!r} cannot be written in SQL; use text, whole numbers, finite numbers or booleans"
            )
        return repr(value)

    def as_double(self, expression: str) -> str:
        return f"CAST({expression} AS {self.double})"

    def as_bigint(self, expression: str) -> str:
        return f"CAST({expression} AS {self.bigint})"


# -- texts ------------------------------------------------------------------------------------------


def _doubled(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _escaped(value: str) -> str:
    """A text literal for databases in which a backslash begins an escape.

    Two quotes in a row may there be the end of one text and the beginning of another.
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _escaped_and_doubled(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _of_postgres(value: str) -> str:
    """A text literal with the prefix E, in which a backslash begins an escape under any setting of the server."""
    return f"E{_escaped_and_doubled(value)}" if "\\" in value else _doubled(value)


def _by_code(value: str) -> str:
    """A text literal with backslashes as CHR(92), correct whether or not a backslash begins an escape."""
    return " || CHR(92) || ".join(_doubled(part) for part in value.split("\\"))


_TEXTS: dict[str, Callable[[str], str]] = {
    "doubled": _doubled,
    "escaped": _escaped,
    "escaped and doubled": _escaped_and_doubled,
    "escape string": _of_postgres,
    "by code": _by_code,
}
DIALECTS = {name: Dialect(name, **about) for name, about in _TABLE["dialects"].items()}


__all__ = ["StateQuery", "sql"]


class StateQuery(str):
    """The text of a query with its settings: ``query.state(result)`` is the state.

    Attributes
    ----------
    settings : dict
        ``resolution``, ``lens``, ``by``, ``labels`` and ``pos_label`` of the state.
    """

    settings: dict[str, Any]

    def state(self, result: Any, *, drop_invalid: bool = False) -> State:
        """The state from the database's result: a table, a data frame, columns, or a cursor after ``execute``."""
        if hasattr(result, "fetchall") and hasattr(result, "description") and not hasattr(result, "fetch_arrow_table"):
            result = rows_of(result)
        return State.of_table(result, drop_invalid=drop_invalid, **self.settings)


@checks_options
def sql(
    table: str,
    *,
    label: str,
    prob: str | Sequence[str],
    by: str | Sequence[str] = (),
    weight: str | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable | None = None,
    resolution: int | None = None,
    dialect: str = "generic",
) -> StateQuery:
    """The text of a SQL query that computes the table of a state: columns of ``by``, cell, y, n, s and s_high.

    Run the query in the database; ``query.state(result)`` turns its result into a state, as does
    :meth:`State.of_table` with the same resolution, lens and labels. No Python runs in the database, and only the small
    table is transferred. Rows without a valid label and probability are returned with cell NULL, to be refused or
    counted. The text is one statement without a semicolon, and can be a subquery in parentheses.

    Parameters
    ----------
    table : str
        The text after FROM: a table, a view, or a query in parentheses with a name.
    label, prob : str
        Columns, or expressions of columns. Several columns in ``prob`` are the probabilities of the classes 0, 1, ...,
        and the state is that of the top label; ``label`` is then the number of the class. Names such as ``order`` or
        ``true label`` are quoted.
    by : str or sequence of str
        Columns whose values get separate counts; NULL is a separate group.
    weight : str, optional
        A column of whole-number weights; a row of weight 2 counts as two equal rows.
    labels : sequence, optional
        The values of the label column, in the order of the classes, if they are not 0, 1, ... (Give them for text
        columns of SQLite, which would read any text as the number 0, and for truth values on Redshift.)
    pos_label : optional
        The label, of two, to which the probability refers; rows with a third label are invalid.
    resolution : int, optional
        As in :class:`State`.
    dialect : str
        "duckdb", "postgres", "redshift", "sqlite", "clickhouse", "bigquery", "snowflake", "databricks", "spark",
        "trino", "datafusion" or "polars". The default, "generic", works in most of them.

    Examples
    --------
    >>> import sqlite3
    >>> import calibrary as cal
    >>> db = sqlite3.connect(":memory:")
    >>> _ = db.execute("CREATE TABLE preds (y INTEGER, p REAL)")
    >>> _ = db.executemany("INSERT INTO preds VALUES (?, ?)", [(0, 0.2), (1, 0.7), (1, 0.9)])
    >>> query = cal.scale.sql("preds", label="y", prob="p", dialect="sqlite")
    >>> query.state(db.execute(query)) == cal.scale.State().update([0, 1, 1], [0.2, 0.7, 0.9])
    True
    """
    one_of("dialect", dialect, tuple(DIALECTS))
    names, top = key_columns(by), not isinstance(prob, str)
    classes = None if labels is None else tuple(map(plain_label, labels))
    text = _Text(DIALECTS[dialect], Grid(usual_resolution(resolution, names)), table, names)
    query = StateQuery(
        text.query(label, [prob] if isinstance(prob, str) else list(prob), top, weight, classes, pos_label)
    )
    query.settings = {
        "resolution": text.grid.resolution, "lens": "top-label" if top else "binary", "by": names, "labels": classes,
        "pos_label": plain_label(pos_label),
    }  # fmt: skip
    return query


class Steps:
    """A query of steps in one dialect, each of which reads the one before it, and the first a table."""

    def __init__(self, dialect: Dialect, grid: Grid, table: str, by: tuple[str, ...]) -> None:
        self.dialect, self.grid, self.table = dialect, grid, table
        self.keys = [dialect.column(name) for name in by]

    def filled(self, name: str, **known: str) -> str:
        """The query of this name, with these texts in its templates."""
        query, g, of = _TABLE[name], self.grid.resolution, {"d": self.dialect, "grid": self.grid}
        known |= {"table": self.table, "keys": "".join(f"{key}, " for key in self.keys), "levels": str(LEVELS)}
        known |= {"level_size": str(2 * g), "both_sides": str(2 * self.grid.middle)}
        numbers = {"resolution": g, "positions": POSITIONS, "last_position": POSITIONS - 1}
        known |= {name: self.dialect.number(value) for name, value in numbers.items()}
        for part, text in query["parts"].items():
            known[part] = text.format(**of, **known)
        steps = ((step, text.format(**of, **known)) for step, text in query["steps"].items())
        chain = ",\n".join(f"{step} AS {self.dialect.materialized}(\n  {text}\n)" for step, text in steps)
        return f"WITH {chain}\n{query['last'].format(**of, **known)}"


class _Text(Steps):
    """The steps of the query in one dialect."""

    def query(
        self, label: str, prob: list[str], top: bool, weight: str | None, labels: tuple[Any, ...] | None, pos_label: Any
    ) -> str:
        d, grid = self.dialect, self.grid
        label, prob = d.expression(label), [d.expression(column) for column in prob]
        if top:
            seen = self._top_label(label, prob, labels, pos_label)
        else:
            seen = self._binary(label, prob[0], labels, pos_label)
        powers = [d.number(16**level) for level in range(LEVELS + 1)]
        # the widest level first: few values lie near 0 or 1, and the first case that holds ends the search
        level = " ".join(
            f"WHEN {'cal_r = 1 OR ' if i == grid.levels_at_one else ''}cal_d * {powers[i + 1]} >= {d['1']} THEN {i}"
            for i in range(LEVELS)
        )
        finer = " ".join(f"WHEN {i} THEN {powers[i]}" for i in range(1, LEVELS + 1))
        copies = self._copies(None if weight is None else d.expression(weight))
        number = "1" if weight is None else "CASE WHEN cal_v IS NULL THEN 1 ELSE cal_w END"
        known = {"copies": copies, "number": number, "level": level, "finer": finer}
        return self.filled("state", seen=seen, **known)

    # -- labels and confidences------------------------------------------------------------------------

    def _binary(self, label: str, prob: str, labels: tuple[Any, ...] | None, pos_label: Any) -> str:
        if labels is not None and len(labels) != 2:
            raise RefusedError(f"labels={list(labels)!r} must name the two classes: negative, positive")
        inside = f"CASE WHEN {self._inside([prob])} THEN {self.dialect.as_double(prob)} END"
        return f"{inside} AS cal_c, {self._class(label, 2, labels, pos_label)} AS cal_y"

    def _inside(self, columns: list[str]) -> str:
        zero, one = self.dialect.number(0), self.dialect.number(1)
        return " AND ".join(f"{c} >= {zero} AND {c} <= {one}" for c in columns)

    def _class(self, label: str, n: int, labels: tuple[Any, ...] | None, pos_label: Any) -> str:
        """The number of the class, NULL for anything else."""
        d = self.dialect
        if labels is None and isinstance(pos_label, bool):
            labels = (not pos_label, pos_label)
        if labels is not None:
            cases = " ".join(f"WHEN {label} = {d.literal(value)} THEN {k}" for k, value in enumerate(labels))
        elif pos_label is not None:
            # the other label is the smallest one that occurs; a third label is invalid
            positive = d.literal(plain_label(pos_label))
            other = f"(SELECT MIN({label}) FROM {self.table} WHERE {label} <> {positive})"
            cases = f"WHEN {label} = {positive} THEN 1 WHEN {label} = {other} THEN 0"
        else:  # as a double, so that booleans work too
            number = d.number_of_label.format(label=label, double=d.double)
            cases = " ".join(f"WHEN {number} = {d.number(k)} THEN {k}" for k in range(n))
        return f"CASE {cases} END"

    def _top_label(self, label: str, columns: list[str], labels: tuple[Any, ...] | None, pos_label: Any) -> str:
        """The largest probability, and whether the first class that has it is the label."""
        k, d = len(columns), self.dialect
        if k < 2:
            raise RefusedError(f"prob={columns!r}: name one column, or one for each of at least two classes")
        if labels is not None and len(labels) != k:
            raise RefusedError(f"labels={list(labels)!r} must name the {k} classes in the order of the columns")
        if pos_label is not None:
            raise RefusedError(f"pos_label={pos_label!r} is for one column of probabilities: pass labels=[...]")
        total = " + ".join(d.as_double(c) for c in columns)
        low, high = d.number(1.0 - ROW_SUM), d.number(1.0 + ROW_SUM)
        valid = f"{self._inside(columns)} AND {total} >= {low} AND {total} <= {high}"
        leads = [" AND ".join(f"{c} >= {other}" for other in columns[i + 1 :]) for i, c in enumerate(columns[:-1])]
        largest = " ".join(f"WHEN {lead} THEN {d.as_double(c)}" for lead, c in zip(leads, columns, strict=False))
        first = " ".join(f"WHEN {lead} THEN {i}" for i, lead in enumerate(leads))
        confidence = f"CASE {largest} ELSE {d.as_double(columns[-1])} END"
        known = self._class(label, k, labels, None)
        right = f"CASE WHEN {known} = CASE {first} ELSE {k - 1} END THEN 1 ELSE 0 END"
        answer = f"CASE WHEN {known} IS NULL THEN NULL ELSE {right} END"
        return f"CASE WHEN {valid} THEN {confidence} END AS cal_c, {answer} AS cal_y"

    def _copies(self, weight: str | None) -> str:
        if weight is None:
            return "1"
        # only a number within the bounds is cast: some engines compute every branch of a CASE, and fail on infinity;
        # ClickHouse would cast the number under a NULL too
        inside = f"{weight} >= 0 AND {weight} < 4611686018427387904"
        whole = self.dialect.as_bigint(f"CASE WHEN {inside} THEN {weight} ELSE -1 END")
        return f"CASE WHEN {inside} AND {weight} = {whole} THEN {whole} END"


def rows_of(cursor: Any) -> dict[str, list[Any]]:
    """The result of a database cursor as columns, for :meth:`State.of_table`."""
    names = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
