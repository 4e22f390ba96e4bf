"""One SQL text that makes a state wherever the predictions are: Spark, DuckDB, SQLite, a warehouse.

The text is a GROUP BY over the recipe of :class:`calibrary.numerics.cells.Grid`, step by step. Literals have exponents,
because a plain 0.5 is a decimal number in some engines; powers of sixteen multiply exactly.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from calibrary.numerics.cells import LEVELS, POSITIONS, Grid
from calibrary.scale.keys import key_columns
from calibrary.scale.state import RESOLUTION

__all__ = ["sql"]


def sql(
    table: str,
    *,
    label: str,
    prob: str | Sequence[str],
    by: str | Sequence[str] = (),
    weight: str | None = None,
    labels: Sequence[Hashable] | None = None,
    resolution: int = RESOLUTION,
) -> str:
    """The text of a query that gives the table of a state: columns of ``by``, cell, y, n and s.

    Run it where the predictions are, and make the state of what comes back with :meth:`State.of_table`. No Python runs
    there, and only the small table travels. Rows without a valid label and probability come back with cell NULL, so
    that ``of_table`` can refuse or count them.

    Parameters
    ----------
    table : str
        What stands after FROM: a table, a view, or a query in parentheses with a name.
    label, prob : str
        Columns, or expressions of columns. Several columns in ``prob`` are the probabilities of the classes 0, 1, ...,
        and the state is that of the top label; ``label`` is then the number of the class.
    by : str or sequence of str
        Columns whose values are kept apart.
    weight : str, optional
        A column of whole numbers: how many copies each row stands for.
    labels : sequence, optional
        The values of the label column, in the order of the classes, if they are not 0, 1, ... (Give them for text
        columns of SQLite, which would read any text as the number 0.)
    resolution : int
        As in :class:`State`; pass the same to ``of_table``.

    Examples
    --------
    >>> import sqlite3
    >>> import calibrary as cal
    >>> db = sqlite3.connect(":memory:")
    >>> _ = db.execute("CREATE TABLE preds (y INTEGER, p REAL)")
    >>> _ = db.executemany("INSERT INTO preds VALUES (?, ?)", [(0, 0.2), (1, 0.7), (1, 0.9)])
    >>> cursor = db.execute(cal.scale.sql("preds", label="y", prob="p"))
    >>> columns = [name for name, *_ in cursor.description]
    >>> table = dict(zip(columns, zip(*cursor.fetchall())))
    >>> cal.scale.State.of_table(table) == cal.scale.State().update([0, 1, 1], [0.2, 0.7, 0.9])
    True
    """
    grid = Grid(resolution)
    keys = key_columns(by)
    if isinstance(prob, str):
        seen = _binary(label, prob, labels)
    else:
        seen = _top_label(label, list(prob), labels)
    kept = "".join(f"{name}, " for name in keys)
    steps = [
        ("cal_given", f"SELECT {kept}{seen}, {_copies(weight)} AS cal_w FROM {table}"),
        *_located(grid, kept),
    ]
    chain = ",\n".join(f"{name} AS (\n  {text}\n)" for name, text in steps)
    groups = ", ".join([*keys, "cell", "y"])
    return (
        f"WITH {chain}\n"
        f"SELECT {kept}cell, y, SUM(cal_n) AS n, SUM(cal_n * cal_q) AS s\nFROM cal_found\n"
        f"WHERE cal_n > 0\nGROUP BY {groups}"
    )


# -- what a row is ----------------------------------------------------------------------------------


def _binary(label: str, prob: str, labels: Sequence[Hashable] | None) -> str:
    if labels is not None and len(labels) != 2:
        raise ValueError(f"labels={list(labels)!r} must name the two classes: negative, positive")
    inside = f"{prob} >= 0e0 AND {prob} <= 1e0"
    return f"CASE WHEN {inside} THEN CAST({prob} AS DOUBLE) END AS cal_c, {_class(label, 2, labels)} AS cal_y"


def _class(label: str, n: int, labels: Sequence[Hashable] | None) -> str:
    """The number of the class, NULL for anything else."""
    if labels is not None:
        cases = " ".join(f"WHEN {label} = {_literal(value)} THEN {k}" for k, value in enumerate(labels))
    else:  # as a double, so that booleans work too
        cases = " ".join(f"WHEN CAST({label} AS DOUBLE) = {k}e0 THEN {k}" for k in range(n))
    return f"CASE {cases} END"


def _literal(value: Hashable) -> str:
    if isinstance(value, str):
        if "\\" in value:  # in Spark, BigQuery and MySQL it would begin an escape, and end the text in others
            raise ValueError(
                f"labels: {value!r} holds a backslash, which databases read differently: map it to a number"
            )
        return "'" + value.replace("'", "''") + "'"
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(
            f"labels: {value!r} cannot be written in SQL; use text, whole numbers, finite numbers or booleans"
        )
    return repr(value)


def _top_label(label: str, columns: list[str], labels: Sequence[Hashable] | None) -> str:
    """The largest probability, and whether the first class that has it is the label."""
    k = len(columns)
    if k < 2:
        raise ValueError(f"prob={columns!r}: name one column, or one for each of at least two classes")
    if labels is not None and len(labels) != k:
        raise ValueError(f"labels={list(labels)!r} must name the {k} classes in the order of the columns")
    inside = " AND ".join(f"{c} >= 0e0 AND {c} <= 1e0" for c in columns)
    total = " + ".join(f"CAST({c} AS DOUBLE)" for c in columns)
    # as for arrays: 1e-6, or 32 roundings of float32
    valid = f"{inside} AND {total} >= 0.999996e0 AND {total} <= 1.000004e0"
    leads = [" AND ".join(f"{c} >= {other}" for other in columns[i + 1 :]) for i, c in enumerate(columns[:-1])]
    largest = " ".join(f"WHEN {lead} THEN CAST({c} AS DOUBLE)" for lead, c in zip(leads, columns, strict=False))
    first = " ".join(f"WHEN {lead} THEN {i}" for i, lead in enumerate(leads))
    confidence = f"CASE WHEN NOT ({valid}) THEN NULL {largest} ELSE CAST({columns[-1]} AS DOUBLE) END"
    right = f"CASE {_class(label, k, labels)} WHEN CASE {first} ELSE {k - 1} END THEN 1 ELSE 0 END"
    known = f"CASE WHEN {_class(label, k, labels)} IS NULL THEN NULL ELSE {right} END"
    return f"CASE WHEN {valid} THEN {confidence} END AS cal_c, {known} AS cal_y"


def _copies(weight: str | None) -> str:
    if weight is None:
        return "1"
    return f"CASE WHEN {weight} >= 0 AND {weight} = CAST({weight} AS BIGINT) THEN CAST({weight} AS BIGINT) END"


# -- where it lies ----------------------------------------------------------------------------------


def _located(grid: Grid, kept: str) -> list[tuple[str, str]]:
    """The steps from a confidence to its cell and position."""
    g, carried = grid.resolution, f"{kept}cal_c, cal_y, cal_w"
    powers = [f"{16**level}e0" for level in range(LEVELS + 1)]
    # the widest level first: few values lie near 0 or 1, and the first case that holds ends the search
    level = " ".join(
        f"WHEN {'cal_r = 1 OR ' if i == grid.levels_at_one else ''}cal_d * {powers[i + 1]} >= 1e0 THEN {i}"
        for i in range(LEVELS)
    )
    finer = " ".join(f"WHEN {i} THEN {powers[i]}" for i in range(1, LEVELS + 1))
    position = f"FLOOR((cal_x - (cal_k - CASE WHEN cal_side < 0 THEN 1e0 ELSE 0e0 END)) * {POSITIONS}e0 + 5e-1)"
    return [
        (
            "cal_valid",
            f"SELECT {kept}CASE WHEN cal_y IS NULL OR cal_w IS NULL THEN NULL ELSE cal_c END AS cal_c, "
            "cal_y, cal_w FROM cal_given",
        ),
        (
            "cal_half",
            f"SELECT {carried}, CASE WHEN cal_c > 5e-1 THEN 1 ELSE 0 END AS cal_r, "
            "CASE WHEN cal_c > 5e-1 THEN 1e0 - cal_c ELSE cal_c END AS cal_d FROM cal_valid",
        ),
        ("cal_level", f"SELECT {carried}, cal_r, cal_d, CASE {level} ELSE {LEVELS} END AS cal_l FROM cal_half"),
        (
            "cal_finer",
            f"SELECT {carried}, cal_r, cal_d, cal_l, CASE cal_l {finer} ELSE 1e0 END AS cal_f FROM cal_level",
        ),
        (
            "cal_scaled",
            f"SELECT {carried}, cal_r, cal_l, (cal_d * cal_f) * {g}e0 AS cal_x, {g}e0 * cal_f AS cal_s FROM cal_finer",
        ),
        ("cal_near", f"SELECT {carried}, cal_r, cal_l, cal_x, cal_s, FLOOR(cal_x + 5e-1) AS cal_k FROM cal_scaled"),
        (
            "cal_edge",
            f"SELECT {carried}, cal_r, cal_l, cal_x, cal_k, "
            "CASE WHEN cal_r = 1 THEN cal_s - cal_k ELSE cal_k * 1e0 END / cal_s AS cal_e FROM cal_near",
        ),
        (
            "cal_sided",
            f"SELECT {carried}, cal_r, cal_l, cal_x, cal_k, CASE WHEN cal_c = cal_e THEN 0 "
            "WHEN CASE WHEN cal_c > cal_e THEN 1 ELSE 0 END <> cal_r THEN 1 ELSE -1 END AS cal_side FROM cal_edge",
        ),
        (
            "cal_placed",
            f"SELECT {carried}, cal_r, cal_side, "
            f"({LEVELS} - cal_l) * {2 * g} + 2 * CAST(cal_k AS BIGINT) + cal_side AS cal_left, "
            f"CAST({position} AS BIGINT) AS cal_p FROM cal_sided",
        ),
        (
            "cal_found",
            f"SELECT {kept}CASE WHEN cal_c IS NULL THEN NULL WHEN cal_r = 1 THEN {2 * grid.middle} - cal_left "
            "ELSE cal_left END AS cell, CASE WHEN cal_c IS NULL THEN NULL ELSE cal_y END AS y, "
            "CASE WHEN cal_c IS NULL THEN 1 ELSE cal_w END AS cal_n, "
            f"CASE WHEN cal_c IS NULL OR cal_side = 0 THEN 0 WHEN cal_p BETWEEN 1 AND {POSITIONS - 1} THEN cal_p "
            f"WHEN cal_p < 1 THEN 1 ELSE {POSITIONS - 1} END AS cal_q FROM cal_placed",
        ),
    ]


def rows_of(cursor: Any) -> dict[str, list[Any]]:
    """The result of a database cursor as columns, for :meth:`State.of_table`."""
    names = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
