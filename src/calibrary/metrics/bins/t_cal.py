"""T-Cal (row 44): the debiased plug-in estimator of squared calibration error, and the adaptive test built on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping import Groups, group
from calibrary.grouping.edges import whole
from calibrary.grouping.simplex import SimplexCells, nested_cells
from calibrary.grouping.windows import prefix_sums
from calibrary.metrics.machinery.declare import CellFacts, Common, Correction, TestResult, calibration_test, metric
from calibrary.metrics.machinery.literature import cited
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.draw import batches, generator, label_counts, rows_with_labels
from calibrary.numerics.sums.segment_sums import segment_sums


@metric(
    "tcal",
    unbiased=True,
    square="yes",
    family="bin",
    row=44,
    aliases=(
        "dpe",
        "T-Cal",
        "test for calibration",
        "de-biased plugin estimator",
    ),
    range=(-1.0, 2.0),
    range_note="at most 1 for pairs and 2 for whole vectors; a little below 0 by chance",
    sign="0 is perfect; larger is worse; below 0 is less deviation than label noise alone would give",
    lenses=("binary", "top-label", "full"),
    law="debiased square",
    grouped=lambda view, options: _grouped(view, options.get("n_bins", 15)),
    cells=CellFacts("exact", (5e-14, 1e-16), bound="debiased bins"),
    reads_cells=True,
    equation="(56)",
    references=cited("lee2023"),
    use="Test calibration without choosing bins: the adaptive test uses every dyadic number of bins.",
    avoid="It is on the squared scale, and conservative by Bonferroni over scales; few distinct scores: "
    "multiple_binomial_test.",
    corrections=(
        Correction("range", "(-eps, 1)", "(-eps, 1] for pairs, (-eps, 2] for whole vectors; a squared scale"),
        Correction(
            "sensitivity",
            "could be overly sensitive: one number of bins that rejects is enough (Table 2)",
            "every number of bins is tested at its share of alpha, so that the whole keeps its level",
        ),
    ),
)
def debiased_plugin_estimator(
    view: Predictions, *, n_bins: int = 15, weight_type: str = "frequency", **common: Unpack[Common]
) -> float:
    r"""Mean squared gap over bins without the terms of each row with itself: 0 on average when calibrated.

    .. math:: \frac{1}{N} \sum_b \frac{1}{n_b} \sum_{i \ne j \in b} (c_i - y_i)(c_j - y_j)

    Whole vectors are grouped into n_bins^(K-1) cells of equal volume and multiplied as vectors. Exactly unbiased
    under calibration, for any bins; otherwise (n_b - 1)/n_b times the squared gap of each bin.

    Parameters
    ----------
    n_bins : int
        Equal-width bins, closed left; parts of every edge of the simplex for whole vectors.
    weight_type : "frequency" or "importance"
        Whether weights count copies, which are pairs with each other, or rescale distinct rows, of which only the
        pairs of different ones are left (then the scale of the weights does not matter).

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.debiased_plugin_estimator([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6], n_bins=2), 4)
    -0.035
    """
    distinct = view.noise_by_row(weight_type, "the noise that is subtracted")
    if view.binary:
        groups = _grouped(view, n_bins)
        own = groups.sum(view.weight * view.residual**2) if distinct else groups.total(lambda c, y: (y - c) ** 2)
        total = groups.residual**2
    else:
        groups = SimplexCells(n_bins).groups(view)
        square = (view.p**2).sum(axis=1) + 1.0 - 2.0 * view.p_true
        own = groups.sum(view.weight * square if distinct else square)
        total = (groups.residual**2).sum(axis=1)
    return float(((total - own) / groups.weight).sum() / view.total)


def _grouped(view: Predictions, n_bins: int) -> Groups:
    """Rows with one confidence each in bins of equal width, closed left."""
    return group(view, "width", n_bins=n_bins, closed="left")


@dataclass(frozen=True)
class TCalResult(TestResult):
    """Outcome of T-Cal.

    Attributes
    ----------
    statistic : the estimate at the scale with the smallest p-value (the coarsest of several)
    pvalue : that p-value times the number of scales
    n_bins, n_scales : bins of that scale; number of scales
    scales, statistics, pvalues : bins, estimate and p-value of every scale
    n_resamples : draws from the null
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
    r"""Test calibration at every scale at once: T-Cal, adaptive over 2, 4, 8, ... bins.

    The debiased plug-in estimate at each scale is compared with its values on simulated calibrated data; the
    smallest p-value is multiplied by the number of scales. Reject when ``pvalue <= alpha``.

    Parameters
    ----------
    n_bins : int, optional
        Test at this one scale only.
    smoothness : float, optional
        Test at the one scale that is optimal for a calibration function of this Hölder smoothness.
    null : "consistency" or "labels"
        Simulate by drawing rows with replacement and then labels from their confidences (the inventors), or keep
        the rows and draw labels only (exact given the confidences, and faster).
    n_resamples : int
        Draws from the null; at least (number of scales)/alpha - 1, or the test could never reject.
    alpha : float
        Level at which you will test.
    rng : int, Generator or None
    weight_type : "frequency" or "importance"
        The test itself draws copies of rows, so that weights must count them; ``method="monte-carlo"`` takes both.

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
    one_of("null", null, ("consistency", "labels"))
    if view.noise_by_row(weight_type, "T-Cal"):
        raise RefusedError("weight_type='importance' has no copies of rows to draw: use method='monte-carlo'")
    atoms = _Atoms(view)
    scales = _scales(atoms.total, view.k, n_bins, smoothness)
    if n_resamples + 1 < len(scales) / alpha * (1 - 1e-12):
        raise RefusedError(
            f"n_resamples={n_resamples} is too few to reject at alpha={alpha} over {len(scales)} scales: "
            f"take at least {math.ceil(len(scales) / alpha) - 1}"
        )
    cells = _Cells(atoms, scales)
    statistics = cells.estimates(atoms.count[None].astype(np.float64), atoms.label_count[None])[0]
    exceeded = np.zeros(len(scales))
    source = generator(rng, "labels")
    draw = atoms.relabeled if null == "labels" else atoms.resampled
    for size in batches(n_resamples, max(1, 2**19 // atoms.p.size)):  # memory stays linear in the rows
        replicates = cells.estimates(*draw(size, source))
        # equal in exact arithmetic counts as reached, on discrete data it often is
        exceeded += (replicates >= statistics - 1e-12).sum(axis=0)
    pvalues = (1.0 + exceeded) / (n_resamples + 1.0)
    best = int(pvalues.argmin())
    return TCalResult(
        float(statistics[best]),
        min(1.0, len(scales) * float(pvalues[best])),
        scales[best],
        len(scales),
        tuple(scales),
        statistics,
        pvalues,
        n_resamples,
    )


def _scales(n: int, k: int, n_bins: int | None, smoothness: float | None) -> list[int]:
    if n < 3:
        raise RefusedError(f"T-Cal needs at least 3 rows and there are {n}")
    if n_bins is not None and smoothness is not None:
        raise RefusedError("n_bins and smoothness both fix the scale: pass one of them")
    if n_bins is not None:
        return [whole("n_bins", n_bins)]
    if smoothness is not None:
        if not smoothness > 0:
            raise RefusedError(f"smoothness={smoothness!r} must be above 0")
        return [max(1, math.floor(n ** (2.0 / (4.0 * smoothness + k - 1)) * (1 + 1e-12)))]
    levels = max(1, math.floor(2.0 / (k - 1) * math.log2(n / math.sqrt(math.log(n)))))
    return [2**b for b in range(1, levels + 1)]


class _Atoms:
    """Distinct predictions with the number of rows that have each, and draws of them and of their labels.

    A binary prediction has one component, c and y; a whole vector K of them.
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
        """Numbers of rows, and numbers of labels drawn for them, ``size`` times."""
        copies = np.broadcast_to(self.count, (size, len(self.p)))
        return self.count[None].astype(np.float64), label_counts(copies, self.p, rng)

    def resampled(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same, after drawing the rows themselves with replacement."""
        return rows_with_labels(self.count, self.p, size, rng)


class _Cells:
    """The cells of every scale as runs of atoms, so that all estimates follow from prefix sums.

    The scales are nested. Cells that hold a single atom need no sums of their own: at every scale they
    contribute what the atom alone does. The atoms are put in the order of the cells.
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
        """(replicates, scales) estimates from the rows (R, A) and labels (R, A, J) of every atom."""
        if worth_compiling("nested_cells.off_diagonal_sums", 0.03 * label_count.size):
            from calibrary.numerics.compiled.nested_cells import off_diagonal_sums
        else:
            off_diagonal_sums = _off_diagonal_sums
        sums: Array = off_diagonal_sums(count, label_count, self.p, self.first, self.last, self.level_ends)
        return sums / self.total


def _off_diagonal_sums(n: Array, k: Array, p: Array, first: Indices, last: Indices, level_ends: Indices) -> Array:
    """The sums of :func:`calibrary.numerics.compiled.nested_cells.off_diagonal_sums`, by numpy."""
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
