"""T-Cal (row 44): the debiased plug-in estimator of squared calibration error, and the adaptive test built on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, ratio
from calibrary.grouping import Groups, group
from calibrary.grouping.edges import whole
from calibrary.grouping.proximity import SimplexCells, nested_cells
from calibrary.grouping.windows import prefix_sums
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.draw import batches, generator, label_counts, rows_with_labels
from calibrary.numerics.runs import segment_sums


@metric(
    "tcal",
    lenses=("binary", "top-label", "full"),
    grouped=lambda view, options: _grouped(view, options.get("n_bins", 15)),
    stacks="weights",
)
def debiased_plugin_estimator(
    view: Predictions, *, n_bins: int = 15, weight_type: str = "frequency", **common: Unpack[Common]
) -> float:
    r"""Mean squared gap over bins without the products of each row with itself: 0 on average for a calibrated model.

    .. math:: \frac{1}{N} \sum_b \frac{1}{n_b} \sum_{i \ne j \in b} (c_i - y_i)(c_j - y_j)

    Whole vectors are grouped into n_bins^(K-1) cells of equal volume, and their residuals are multiplied as vectors.
    The estimate is exactly unbiased for a calibrated model, whatever the bins; otherwise its mean is (n_b - 1)/n_b
    times the squared gap of each bin.

    Parameters
    ----------
    n_bins : int
        Number of equal-width bins, closed left; for whole vectors, number of parts of every edge of the simplex.
    weight_type : "frequency" or "importance"
        "frequency": weights count copies of a row, and two copies form a pair. "importance": weights rescale distinct
        rows, and only pairs of different rows are used (the scale of the weights then does not matter).

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.debiased_plugin_estimator([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6], n_bins=2), 4)
    -0.035
    """
    distinct = view.noise_by_row(weight_type, "the label noise that is subtracted")
    if view.binary:
        groups = _grouped(view, n_bins)
        own = groups.sum(view.weight * view.residual**2) if distinct else groups.total(lambda c, y: (y - c) ** 2)
        total = groups.residual**2
    else:
        groups = SimplexCells(n_bins).groups(view)
        square = (view.p**2).sum(axis=1) + 1.0 - 2.0 * view.p_true
        own = groups.sum(view.weight * square if distinct else square)
        total = (groups.residual**2).sum(axis=1)
    return as_number(ratio(total - own, groups.weight).sum(axis=-1) / view.total)


def _grouped(view: Predictions, n_bins: int) -> Groups:
    """Group binary rows in bins of equal width, closed left."""
    return group(view, "width", n_bins=n_bins, closed="left")


@dataclass(frozen=True)
class TCalResult(TestResult):
    """Result of the T-Cal test.

    Attributes
    ----------
    statistic : the estimate at the scale with the smallest p-value (the coarsest of several)
    pvalue : that p-value times the number of scales
    n_bins, n_scales : bins of that scale; number of scales
    scales, statistics, pvalues : bins, estimate and p-value of every scale
    n_resamples : number of draws under the null hypothesis
    """

    n_bins: int = 0
    n_scales: int = 0
    scales: tuple[int, ...] = ()
    statistics: Array = field(default_factory=lambda: np.empty(0))
    pvalues: Array = field(default_factory=lambda: np.empty(0))
    n_resamples: int = 0


@calibration_test("tcal", simulated=True)
def t_cal_test(
    view: Predictions,
    *,
    n_bins: int | None = None,
    smoothness: float | None = None,
    null: str = "consistency",
    n_resamples: int = 3000,
    alpha: float = 0.05,
    rng: Any = None,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> TCalResult:
    r"""Test calibration at several scales together: T-Cal, adaptive over 2, 4, 8, ... bins.

    The debiased plug-in estimate at each scale is compared with its values for simulated calibrated data; the smallest
    p-value is multiplied by the number of scales. Reject when ``pvalue <= alpha``.

    Parameters
    ----------
    n_bins : int, optional
        Test at this one scale only.
    smoothness : float, optional
        Test at the one scale that is optimal for a calibration function of this Hölder smoothness.
    null : "consistency" or "labels"
        Simulate by drawing rows with replacement and then labels from their confidences (as the inventors do), or draw
        labels only, with the rows fixed (exact given the confidences, and faster).
    n_resamples : int
        Number of draws under the null hypothesis; with fewer than (number of scales)/alpha - 1 the test could never
        reject.
    alpha : float
        The level at which you will test.
    rng : int, Generator or None
    weight_type : "frequency" or "importance"
        This test draws copies of rows, so weights must be counts; ``method="monte-carlo"`` accepts both.

    Returns
    -------
    TCalResult

    Examples
    --------
    >>> import calibrary as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(300)
    >>> y = rng.random(300) < c**2
    >>> result = cal.t_cal_test(y, c, null="labels", n_resamples=999, rng=1)
    >>> result.n_bins, round(result.pvalue, 3)
    (2, 0.013)
    """
    if view.noise_by_row(weight_type, "T-Cal"):
        raise RefusedError("weight_type='importance' gives no copies of rows to draw: use method='monte-carlo'")
    atoms = _Atoms(view)
    scales = _scales(atoms.total, view.k, n_bins, smoothness)
    if n_resamples + 1 < len(scales) / alpha * (1 - 1e-12):
        raise RefusedError(
            f"n_resamples={n_resamples} is too few to reject at alpha={alpha} over {len(scales)} scales: pass at "
            f"least {math.ceil(len(scales) / alpha) - 1}"
        )
    cells = _Cells(atoms, scales)
    statistics = cells.estimates(atoms.count[None].astype(np.float64), atoms.label_count[None])[0]
    exceeded = np.zeros(len(scales))
    source = generator(rng, "labels")
    draw = atoms.relabeled if null == "labels" else atoms.resampled
    for size in batches(n_resamples, max(1, 2**19 // atoms.p.size)):  # memory is linear in the number of rows
        replicates = cells.estimates(*draw(size, source))
        # values that are equal in exact arithmetic count as reached; in discrete data they often are equal
        exceeded += (replicates >= statistics - 1e-12).sum(axis=0)
    pvalues = (1.0 + exceeded) / (n_resamples + 1.0)
    best = int(pvalues.argmin())
    statistic, pvalue = float(statistics[best]), min(1.0, len(scales) * float(pvalues[best]))
    return TCalResult(statistic, pvalue, scales[best], len(scales), tuple(scales), statistics, pvalues, n_resamples)


def _scales(n: int, k: int, n_bins: int | None, smoothness: float | None) -> list[int]:
    if n < 3:
        raise RefusedError(f"T-Cal needs at least 3 rows and there are {n}")
    if n_bins is not None and smoothness is not None:
        raise RefusedError("n_bins and smoothness both determine the scale: pass one of them")
    if n_bins is not None:
        return [whole("n_bins", n_bins)]
    if smoothness is not None:
        if not smoothness > 0:
            raise RefusedError(f"smoothness={smoothness!r} must be above 0")
        return [max(1, math.floor(n ** (2.0 / (4.0 * smoothness + k - 1)) * (1 + 1e-12)))]
    levels = max(1, math.floor(2.0 / (k - 1) * math.log2(n / math.sqrt(math.log(n)))))
    return [2**b for b in range(1, levels + 1)]


class _Atoms:
    """Distinct predictions, the number of rows with each, and random draws of rows and of labels.

    A binary prediction has one component, c and y; a whole vector has K.
    """

    def __init__(self, view: Predictions) -> None:
        copies = view.counts("T-Cal")
        if view.binary:
            self.p = view.ties.c[:, None]
            self.count = view.ties.w.astype(np.int64)
            self.label_count = view.ties.wy[:, None]
        else:
            rows, index = np.unique(view.p, axis=0, return_inverse=True)
            index = index.reshape(-1)
            self.p = rows
            self.count = np.bincount(index, copies).astype(np.int64)
            cell = index * view.k + view.y
            by_class = np.bincount(cell, copies, minlength=rows.size).astype(np.float64)
            self.label_count = by_class.reshape(rows.shape)
        self.total = int(self.count.sum())

    def rearrange(self, order: Indices) -> None:
        """Put the atoms in another order."""
        self.p, self.count, self.label_count = self.p[order], self.count[order], self.label_count[order]

    def relabeled(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Numbers of rows, and numbers of positive labels drawn for them, ``size`` times."""
        copies = np.broadcast_to(self.count, (size, len(self.p)))
        return self.count[None].astype(np.float64), label_counts(copies, self.p, rng)

    def resampled(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Numbers of rows drawn with replacement, and of positive labels drawn for them, ``size`` times."""
        return rows_with_labels(self.count, self.p, size, rng)


class _Cells:
    """The cells of every scale as runs of atoms, so that all estimates follow from prefix sums.

    The scales are nested. A cell with a single atom needs no sum of its own: at every scale its contribution is that of
    the atom alone. The atoms are put in the order of the cells.
    """

    def __init__(self, atoms: _Atoms, scales: list[int]) -> None:
        p = atoms.p[:, 0] if atoms.p.shape[1] == 1 else atoms.p
        order, starts = nested_cells(p, scales)
        atoms.rearrange(order)
        self.p = atoms.p
        self.total = atoms.total
        ends = [np.append(s[1:], len(self.p)) for s in starts]
        several = [e - s > 1 for s, e in zip(starts, ends, strict=True)]
        self.first: Indices = np.concatenate([s[m] for s, m in zip(starts, several, strict=True)])
        self.last: Indices = np.concatenate([e[m] for e, m in zip(ends, several, strict=True)])
        self.level_ends = np.cumsum([m.sum() for m in several])

    def estimates(self, count: Array, label_count: Array) -> Array:
        """Estimates of shape (replicates, scales) from the rows (R, A) and labels (R, A, J) of every atom."""
        if worth_compiling("cells.off_diagonal_sums", 0.03 * label_count.size):
            from calibrary.numerics.compiled.cells import off_diagonal_sums
        else:
            off_diagonal_sums = _off_diagonal_sums
        sums: Array = off_diagonal_sums(count, label_count, self.p, self.first, self.last, self.level_ends)
        return sums / self.total


def _off_diagonal_sums(n: Array, k: Array, p: Array, first: Indices, last: Indices, level_ends: Indices) -> Array:
    """The sums of :func:`calibrary.numerics.compiled.cells.off_diagonal_sums`, computed with numpy."""
    out = np.empty((len(k), len(level_ends)))
    bounds = np.concatenate(([0], level_ends))
    for r in range(len(k)):
        row = n[r if len(n) > 1 else 0]
        x = row[:, None] * p - k[r]
        own = (row[:, None] * p * p + k[r] * (1.0 - 2.0 * p)).sum(axis=1)
        by_itself = np.divide((x * x).sum(axis=1) - own, row, out=np.zeros(len(p)), where=row > 0.0)
        alone, drawn, squares = prefix_sums(by_itself), prefix_sums(row), prefix_sums(own)
        sums = np.concatenate((np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)))
        both = ((sums[last] - sums[first]) ** 2).sum(axis=1) - (squares[last] - squares[first])
        size = drawn[last] - drawn[first]
        of_cell = np.divide(both, size, out=np.zeros(len(first)), where=size > 0.0) - (alone[last] - alone[first])
        out[r] = alone[-1] + segment_sums(of_cell, bounds)
    return out
