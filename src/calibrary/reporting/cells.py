"""A view in few cells, from which the script of a page computes any bins.

A cell is a run of rows that no bin parts: not one of equal width and not one of equal mass, up to :attr:`CellView.most`
bins. The counts in a bin are therefore exact, and its mean confidence is off by at most :data:`BOUND`, because
the cells keep six digits. So is the ECE. The page computes from the same cells what a calibrated model would show;
there the rows of one cell are taken to have one confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.saved import SavedFileError
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping import EqualMass, EqualWidth
from calibrary.numerics.runs import segment_sums

#: How far the ECE of a page's cells may be from the ECE of the rows: six digits of a confidence up to one half.
BOUND = 1e-6
#: The smallest and the largest number of bins that a page offers.
FEWEST, MOST = 2, 100
BINNINGS = ("width", "mass")


@dataclass(frozen=True)
class CellView:
    """One view of the data in cells.

    Attributes
    ----------
    kind, name : "all", "after" (recalibration), "class" or "segment", and what a reader calls it
    most : the largest number of bins that these cells can be put in
    n, y : weight and weight of the outcomes in each cell
    c : mean confidence of each cell; above one half, minus its distance from 1, so that both ends keep their digits
    v : sum of the squared weights in each cell, where a row does not count as copies of itself; else empty
    width, mass : how many cells lie in each bin, for 2 bins, then for 3, up to ``most``
    """

    kind: str
    name: str
    most: int
    n: tuple[float, ...]
    c: tuple[float, ...]
    y: tuple[float, ...]
    v: tuple[float, ...]
    width: tuple[int, ...]
    mass: tuple[int, ...]

    def __post_init__(self) -> None:
        size = len(self.n)
        if self.kind not in ("all", "after", "class", "segment") or not FEWEST <= self.most <= MOST or not size:
            raise SavedFileError("the cells of a figure have an unknown kind, a wrong number of bins, or no rows")
        if not (len(self.c) == len(self.y) == size and len(self.v) in (0, size)):
            raise SavedFileError("the cells of a figure have columns of different length")
        if not all(0.0 < n < math.inf and 0.0 <= y <= n for n, y in zip(self.n, self.y, strict=True)):
            raise SavedFileError("the cells of a figure have invalid counts")
        if not all(-0.5 <= c <= 1.0 for c in self.c) or not all(0.0 < v < math.inf for v in self.v):
            raise SavedFileError("the cells of a figure have confidences outside 0 and 1")
        for counts in (self.width, self.mass):
            if len(counts) != place(self.most + 1) or min(counts) < 0:
                raise SavedFileError("the bins of a figure have a wrong number of entries")
            if any(sum(counts[place(b) : place(b + 1)]) != size for b in range(FEWEST, self.most + 1)):
                raise SavedFileError("the bins of a figure do not add up to its cells")

    @property
    def confidence(self) -> Array:
        """The mean confidence of each cell."""
        c = np.array(self.c)
        return np.where(c < 0.0, 1.0 + c, c)

    def ece(self, binning: str, n_bins: int) -> float:
        """The ECE with this number of bins, from the cells alone, as the page computes it."""
        counts = (self.width if binning == "width" else self.mass)[place(n_bins) : place(n_bins + 1)]
        residual = np.array(self.y) - np.array(self.n) * self.confidence
        bounds = np.concatenate(([0], np.cumsum(counts)))
        return float(np.abs(segment_sums(residual, bounds)).sum()) / sum(self.n)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, written in as few characters as possible."""
        columns = {name: [_short(x) for x in getattr(self, name)] for name in ("n", "c", "y", "v")}
        facts = {"kind": self.kind, "name": self.name, "most": self.most}
        return {**facts, **columns, "width": list(self.width), "mass": list(self.mass)}


def place(n_bins: int) -> int:
    """The starts of the bins in ``width`` and ``mass`` for this number of bins."""
    return n_bins * (n_bins - 1) // 2 - 1


def cells_of(view: Predictions, most: int, kind: str = "all", name: str = "", importance: bool = False) -> CellView:
    """The cells of a binary view for up to ``most`` bins; of ``importance`` weights the squares are kept as well."""
    s = view.sorted
    inner = _starts(view, most)
    begin = np.unique(np.concatenate([starts for found in inner.values() for starts in found]))
    begin = begin[begin < view.n]
    bounds = np.append(begin, view.n)
    w = np.ones(view.n) if s.w is None else s.w
    n, c, q = (segment_sums(x, bounds) for x in (w, w * s.c, w * (1.0 - s.c)))
    squares = segment_sums(w * w, bounds) if importance and s.w is not None else np.empty(0)
    return CellView(
        kind, name, most, _digits(n), tuple(map(_from_the_nearer_end, c / n, q / n)),
        _digits(np.minimum(segment_sums(w * s.y, bounds), n)), _digits(squares),
        *(_in_bins(inner[binning], bounds) for binning in BINNINGS),
    )  # fmt: skip


def _starts(view: Predictions, most: int) -> dict[str, list[Indices]]:
    """The sorted row at which each bin begins, for every number of bins."""
    numbers = range(FEWEST, most + 1)
    edges = {"width": [EqualWidth(b).inner_edges() for b in numbers]}
    edges["mass"] = [EqualMass(b).fit_view(view).edges_[1:-1] for b in numbers]
    return {binning: [_begins(view, inner) for inner in found] for binning, found in edges.items()}


def _begins(view: Predictions, inner: Array) -> Indices:
    """A confidence equal to an edge belongs to the bin below it."""
    return np.append(0, view.sorted.c.searchsorted(inner, side="right"))


def _in_bins(starts: Sequence[Indices], bounds: Indices) -> tuple[int, ...]:
    """How many cells lie in each bin, for every number of bins."""
    ends = [np.append(bounds.searchsorted(s), len(bounds) - 1) for s in starts]
    return tuple(int(k) for e in ends for k in np.diff(e))


def _from_the_nearer_end(c: float, q: float) -> float:
    c, q = float(f"{c:.6g}"), float(f"{q:.6g}")
    return min(c, 0.5) if c <= q else max(-q, -0.5) if q > 0.0 else 1.0


def _digits(x: Array) -> tuple[float, ...]:
    """The number with six digits; whole numbers are unchanged."""
    return tuple(v if v.is_integer() else float(f"{v:.6g}") for v in x.tolist())


def _short(x: float) -> float | int:
    return int(x) if x.is_integer() else x
