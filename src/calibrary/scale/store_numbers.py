"""A few metrics for very many segments, from a state, or by a query on the table of a state in a database.

Both give the same columns, so that a dashboard and Python agree: number of rows, expected calibration error, Brier
score, observed over expected events, and mean bias, with intervals for the last three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import one_of, whole
from calibrary.data.asked import checks_options
from calibrary.grouping import EqualWidth
from calibrary.numerics.cells import LEVELS, Grid
from calibrary.scale.keys import as_column, key_columns
from calibrary.scale.sql import DIALECTS, Steps
from calibrary.scale.state import State, usual_resolution
from calibrary.tables.arrow import need_arrow, pa

__all__ = ["segment_sql", "segment_table"]

Array = NDArray[np.float64]

#: The columns after those of the segments.
COLUMNS = (
    "n", "observed", "expected", "ece", "brier", "brier_low", "brier_high", "oe", "oe_low", "oe_high", "bias",
    "bias_low", "bias_high",
)  # fmt: skip


@checks_options
def segment_table(state: State, *, n_bins: int = 15, confidence_level: float = 0.95) -> Any:
    """One row for every segment of a state: number of rows, calibration error, Brier score, O/E and bias.

    Parameters
    ----------
    state : State
        A state with the segment columns (and days) as ``by`` columns.
    n_bins : int
        Bins of equal width of the expected calibration error.
    confidence_level : float
        Level of the intervals.

    Returns
    -------
    PyArrow table
        The columns of the segments, then ``n``, ``observed`` and ``expected`` (events), ``ece``, ``brier`` with
        ``brier_low`` and ``brier_high``, ``oe`` (observed over expected events), ``bias`` (mean prediction minus share
        of events) and their intervals. The intervals of the Brier score and of the bias are those of a mean of rows;
        that of O/E is Wilson's score interval, for events whose probabilities are the predictions times a number.
        Undefined values are missing.

    Examples
    --------
    >>> import calibrary as cal
    >>> sites = {"site": ["A", "A", "B", "B"]}
    >>> state = cal.scale.State(by="site").update([0, 1, 0, 0], [0.2, 0.7, 0.4, 0.6], by=sites)
    >>> table = cal.scale.segment_table(state)
    >>> [(row["site"], row["n"], round(row["bias"], 3)) for row in table.to_pylist()]
    [('A', 2, -0.05), ('B', 2, 0.5)]
    """
    need_arrow("a table of segments")

    keys = list(state.keys) if len(state) else []
    key, cell, y = state._read()
    c, z = state.grid.place(cell, state.table.mean), normal_quantile(confidence_level)
    made = _numbers(key, y.astype(float), c, state.table.n.astype(float), len(keys), whole("n_bins", n_bins), z)
    columns = {name: as_column(name, [k[i] for k in keys]) for i, name in enumerate(state.key_names)}
    columns |= {name: pa.array(values, from_pandas=True) for name, values in made.items()}
    return pa.table(columns)


def normal_quantile(level: float) -> float:
    """Half the width of an interval of this level, in standard errors."""
    return float(scipy.special.ndtri(0.5 + level / 2.0))


def _numbers(
    key: NDArray[np.int64], y: Array, c: Array, w: Array, keys: int, n_bins: int, z: float
) -> Mapping[str, NDArray[Any]]:
    """All columns except those of the segments, for all segments at once."""

    def total(x: Array, at: Any = key, size: int = keys) -> Array:
        return np.bincount(at, w * x, minlength=size).astype(np.float64)

    n, observed, expected, squares = total(np.ones(len(w))), total(y), total(c), total(c * c)
    gap, loss = c - y, (c - y) ** 2
    bins = key * n_bins + EqualWidth(n_bins).assign(c)
    in_bins = np.abs(total(gap, bins, keys * n_bins)).reshape(keys, n_bins).sum(axis=1)
    brier, bias = total(loss) / n, total(gap) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = [z * np.sqrt(total((x - m[key]) ** 2) / n / (n - 1.0)) for x, m in ((loss, brier), (gap, bias))]
        low, high = score_ends(observed, expected, squares, total(loss), z)
        oe = observed / expected
    made = {
        "n": n.astype(np.int64), "observed": observed.astype(np.int64), "expected": expected, "ece": in_bins / n,
        "brier": brier, "brier_low": np.maximum(brier - errors[0], 0.0),
        "brier_high": np.minimum(brier + errors[0], 1.0), "oe": oe, "oe_low": low, "oe_high": high, "bias": bias,
        "bias_low": bias - errors[1], "bias_high": bias + errors[1],
    }  # fmt: skip
    return {name: np.where(np.isfinite(made[name]), made[name], np.nan) if made[name].dtype == float else made[name]
            for name in COLUMNS}  # fmt: skip


def score_ends(observed: Array, expected: Array, squares: Array, losses: Array, z: float) -> tuple[Array, Array]:
    """The ratios r that a score test does not reject: (O - rE)^2 <= z^2 (rE - r^2 S + X), S the sum of squares of c.

    Events have the probabilities r c; with one common c this is Wilson's interval, divided by c. Outcomes of an
    over-confident model vary more: X is the excess of the squared residuals over those of the probabilities r c at the
    observed ratio.
    """
    ratio = observed / expected
    both = (squares + observed - losses) / 2.0  # the sum of c over the events
    excess = np.maximum(2.0 * ratio * (ratio * squares - both), 0.0)
    a, b = expected**2 + z * z * squares, 2.0 * observed * expected + z * z * expected
    root = np.sqrt(np.maximum(b * b - 4.0 * a * (observed**2 - z * z * excess), 0.0))
    return np.maximum((b - root) / (2.0 * a), 0.0), (b + root) / (2.0 * a)


# -- inside a database --------------------------------------------------------------------------------


@checks_options
def segment_sql(
    table: str,
    *,
    by: str | Sequence[str] = (),
    resolution: int | None = None,
    n_bins: int = 15,
    confidence_level: float = 0.95,
    dialect: str = "generic",
) -> str:
    """The text of a query that turns the table of a state into the numbers of :func:`segment_table`.

    The query uses the columns cell, y, n, s and s_high (from :func:`sql` or from the files of a :class:`Store`) and
    returns one row for each segment, equal to Python's up to rounding. It is one statement without a semicolon.

    Parameters
    ----------
    table : str
        The text after FROM: a table, a view, a function that reads files, or a query in parentheses with a name.
    by : str or sequence of str
        The segment columns; rows are summed over all other columns. NULL is a separate segment.
    resolution : int, optional
        Resolution of the state. Default: 1200 with ``by``, 19200 without, as in :class:`State`.
    n_bins, confidence_level
        As in :func:`segment_table`.
    dialect : str
        As in :func:`sql`. SQLite must have its mathematical functions (SQRT), as most builds do.

    Examples
    --------
    >>> import duckdb
    >>> import calibrary as cal
    >>> sites = {"site": ["A", "A", "B", "B"]}
    >>> state = cal.scale.State(by="site").update([0, 1, 0, 0], [0.2, 0.7, 0.4, 0.6], by=sites)
    >>> rows = state.to_table().append_column("s_high", [[0, 0, 0, 0]])
    >>> query = cal.scale.segment_sql("rows", by="site", dialect="duckdb")
    >>> [(row[0], round(row[-3], 3)) for row in duckdb.sql(query).order("site").fetchall()]
    [('A', -0.05), ('B', 0.5)]
    """
    one_of("dialect", dialect, tuple(DIALECTS))
    names = key_columns(by)
    grid = Grid(usual_resolution(resolution, names))
    return _Numbers(DIALECTS[dialect], grid, table, names).query(
        whole("n_bins", n_bins), normal_quantile(confidence_level)
    )


class _Numbers(Steps):
    """The steps of the query in one dialect."""

    def query(self, n_bins: int, z: float) -> str:
        g, number, by = self.grid.resolution, self.dialect.number, ", ".join(self.keys)
        edges = enumerate(EqualWidth(n_bins).inner_edges())
        bins = " ".join(f"WHEN {self._below(edge)} THEN {k}" for k, edge in edges)
        bins = f"CASE {bins} ELSE {n_bins - 1} END" if bins else "0"
        scale = self._by_level([number(float(g) * 16.0 ** (LEVELS - k)) for k in range(LEVELS + 1)])
        first = self._by_level([str(2 * g * k) for k in range(LEVELS + 1)])
        known = {"scale": scale, "first": first, "bin": bins, "z": number(z), "squared": number(z * z)}
        known |= (
            {"segment": f"PARTITION BY {by}", "grouped": f" GROUP BY {by}"} if by else {"segment": "", "grouped": ""}
        )
        return self.filled("segments", **known)

    def _by_level(self, values: list[str]) -> str:
        g = self.grid.resolution
        cases = " ".join(f"WHEN cal_left >= {2 * g * k} THEN {values[k]}" for k in range(LEVELS, 0, -1))
        return f"CASE {cases} ELSE {values[0]} END"

    def _below(self, edge: float) -> str:
        """The condition that a prediction is at most this edge, by its cell if the edge is an edge of cells."""
        cell, position = self.grid.locate(np.array([edge]))
        return f"cal_c <= {self.dialect.number(float(edge))}" if position[0] else f"cal_cell <= {int(cell[0])}"
