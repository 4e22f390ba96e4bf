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

from calibrary.base.errors import extra, one_of, whole
from calibrary.data.asked import checks_options
from calibrary.grouping import EqualWidth
from calibrary.numerics.cells import LEVELS, POSITIONS, Grid
from calibrary.scale.keys import as_column, key_columns
from calibrary.scale.sql import DIALECTS, Steps
from calibrary.scale.state import State, usual_resolution

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
    with extra("files", "a table of segments"):
        import pyarrow as pa

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
    return _Numbers(DIALECTS[dialect], grid, names).query(
        table, whole("n_bins", n_bins), normal_quantile(confidence_level)
    )


class _Numbers(Steps):
    """The steps of the query in one dialect."""

    def query(self, table: str, n_bins: int, z: float) -> str:
        steps = {"cal_sums": self._sums(table), "cal_sides": self._sides(), "cal_levels": self._levels()}
        steps |= {"cal_placed": self._placed(), "cal_gaps": self._gaps(n_bins), "cal_means": self._means()}
        steps |= {"cal_bins": self._bins(), "cal_segments": self._segments()}
        return f"{self.chain(steps)}\n{self._last(z)}"

    def _sums(self, table: str) -> str:
        """The sums over rows of one segment, cell and label."""
        d = self.dialect
        n, low, high = (f"SUM({d.as_double(name)})" for name in ("n", "s", "s_high"))
        where = f"({low} + {self.number(1 << 14)} * {high}) / {n}"
        groups = ", ".join([*self.keys, "cell", "y"])
        label = d.as_double("y")
        return (
            f"SELECT {self.kept}cell AS cal_cell, {label} AS cal_y, {n} AS cal_n, {where} AS cal_position\n"
            f"  FROM {table} WHERE cell IS NOT NULL GROUP BY {groups}"
        )

    def _sides(self) -> str:
        """The distance of each cell from the nearer end, in cells."""
        middle = self.grid.middle
        return (
            f"SELECT {self.kept}cal_cell, cal_y, cal_n, cal_position, CASE WHEN cal_cell > {middle} THEN 1 ELSE 0 END "
            f"AS cal_right, CASE WHEN cal_cell > {middle} THEN {2 * middle} - cal_cell ELSE cal_cell END AS cal_left\n"
            "  FROM cal_sums"
        )

    def _levels(self) -> str:
        """The number of cells of this width in the unit interval, and the number of cells before this one."""
        g, d = self.grid.resolution, self.dialect
        scale = self._by_level([self.number(float(g) * 16.0 ** (LEVELS - k)) for k in range(LEVELS + 1)])
        first = self._by_level([str(2 * g * k) for k in range(LEVELS + 1)])
        half = f"({d.as_double(f'cal_left - {first}')} - CASE WHEN cal_position > {self.number(0)} THEN "
        half += f"{self.number(1)} ELSE {self.number(0)} END) / {self.number(2)}"
        return (
            f"SELECT {self.kept}cal_cell, cal_y, cal_n, cal_right, {scale} AS cal_scale, "
            f"{half} + cal_position / {self.number(POSITIONS)} AS cal_cells\n  FROM cal_sides"
        )

    def _by_level(self, values: list[str]) -> str:
        g = self.grid.resolution
        cases = " ".join(f"WHEN cal_left >= {2 * g * k} THEN {values[k]}" for k in range(LEVELS, 0, -1))
        return f"CASE {cases} ELSE {values[0]} END"

    def _placed(self) -> str:
        """The mean prediction of each row."""
        placed = "CASE WHEN cal_right = 1 THEN cal_scale - cal_cells ELSE cal_cells END / cal_scale"
        return f"SELECT {self.kept}cal_cell, cal_y, cal_n, {placed} AS cal_c\n  FROM cal_levels"

    def _gaps(self, n_bins: int) -> str:
        cases = [f"WHEN {self._below(edge)} THEN {k}" for k, edge in enumerate(EqualWidth(n_bins).inner_edges())]
        number = f"CASE {' '.join(cases)} ELSE {n_bins - 1} END" if cases else "0"
        return (
            f"SELECT {self.kept}cal_y, cal_n, cal_c, {number} AS cal_bin, cal_c - cal_y AS cal_gap, "
            "(cal_c - cal_y) * (cal_c - cal_y) AS cal_loss\n  FROM cal_placed"
        )

    def _below(self, edge: float) -> str:
        """The condition that a prediction is at most this edge, by its cell if the edge is an edge of cells."""
        cell, position = self.grid.locate(np.array([edge]))
        return f"cal_c <= {self.number(float(edge))}" if position[0] else f"cal_cell <= {int(cell[0])}"

    def _means(self) -> str:
        over = f"OVER (PARTITION BY {', '.join(self.keys)})" if self.keys else "OVER ()"
        return (
            f"SELECT {self.kept}cal_y, cal_n, cal_c, cal_bin, cal_gap, cal_loss, "
            f"SUM(cal_n * cal_loss) {over} / SUM(cal_n) {over} AS cal_mean_loss, "
            f"SUM(cal_n * cal_gap) {over} / SUM(cal_n) {over} AS cal_mean_gap\n  FROM cal_gaps"
        )

    def _bins(self) -> str:
        sums = {
            "rows": "cal_n", "observed": "cal_n * cal_y", "expected": "cal_n * cal_c",
            "squares": "cal_n * cal_c * cal_c", "losses": "cal_n * cal_loss", "gaps": "cal_n * cal_gap",
            "loss_spread": "cal_n * (cal_loss - cal_mean_loss) * (cal_loss - cal_mean_loss)",
            "gap_spread": "cal_n * (cal_gap - cal_mean_gap) * (cal_gap - cal_mean_gap)",
        }  # fmt: skip
        shown = ", ".join(f"SUM({of}) AS bin_{name}" for name, of in sums.items())
        groups = ", ".join([*self.keys, "cal_bin"])
        return f"SELECT {self.kept}cal_bin, {shown}\n  FROM cal_means GROUP BY {groups}"

    def _segments(self) -> str:
        names = ("rows", "observed", "expected", "squares", "losses", "gaps", "loss_spread", "gap_spread")
        shown = ", ".join(f"SUM(bin_{name}) AS cal_{name}" for name in names)
        groups = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {self.kept}{shown}, SUM(ABS(bin_gaps)) AS cal_bin_gaps\n  FROM cal_bins{groups}"

    def _last(self, z: float) -> str:
        d, number = self.dialect, self.number
        zero, one, two, four = (number(k) for k in (0, 1, 2, 4))
        squared = number(z * z)
        a = f"(cal_expected * cal_expected + {squared} * cal_squares)"
        b = f"({two} * cal_observed * cal_expected + {squared} * cal_expected)"
        # a division by zero is an error in some engines and infinite in others; NULL works in all
        events, twice = f"NULLIF(cal_expected, {zero})", f"NULLIF({two} * {a}, {zero})"
        ratio = f"(cal_observed / {events})"
        both = f"(cal_squares + cal_observed - cal_losses) / {two}"
        excess = f"({two} * {ratio} * ({ratio} * cal_squares - {both}))"
        excess = f"(CASE WHEN {excess} > {zero} THEN {excess} ELSE {zero} END)"
        inside = f"({b} * {b} - {four} * {a} * (cal_observed * cal_observed - {squared} * {excess}))"
        root = f"SQRT(CASE WHEN {inside} > {zero} THEN {inside} ELSE {zero} END)"
        loss, gap = "cal_losses / cal_rows", "cal_gaps / cal_rows"
        loss_error, gap_error = (
            f"{number(z)} * SQRT(cal_{name}_spread / cal_rows / NULLIF(cal_rows - {one}, {zero}))"
            for name in ("loss", "gap")
        )
        columns = {
            "n": d.as_bigint("cal_rows"),
            "observed": d.as_bigint("cal_observed"),
            "expected": "cal_expected",
            "ece": "cal_bin_gaps / cal_rows",
            "brier": loss,
            "brier_low": f"CASE WHEN {loss} - {loss_error} < {zero} THEN {zero} ELSE {loss} - {loss_error} END",
            "brier_high": f"CASE WHEN {loss} + {loss_error} > {one} THEN {one} ELSE {loss} + {loss_error} END",
            "oe": f"cal_observed / {events}",
            "oe_low": f"CASE WHEN {b} < {root} THEN {zero} ELSE ({b} - {root}) / {twice} END",
            "oe_high": f"({b} + {root}) / {twice}",
            "bias": gap,
            "bias_low": f"{gap} - {gap_error}",
            "bias_high": f"{gap} + {gap_error}",
        }
        assert tuple(columns) == COLUMNS
        shown = ",\n  ".join(f"{of} AS {name}" for name, of in columns.items())
        return f"SELECT {self.kept}{shown}\nFROM cal_segments"
