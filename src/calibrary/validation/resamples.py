"""The samples to which a model is refitted: bootstrap samples, folds, or all rows but a held-out part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, warn, whole
from calibrary.data.checks import Array, Indices, as_array
from calibrary.inference.draw.unit_law import FEW_UNITS, UnitLaw
from calibrary.numerics.draw import generator, row_counts, shuffled


@dataclass(frozen=True)
class Rows:
    """The rows of a validation with the information for resampling.

    Attributes
    ----------
    label : the class of each row as a number
    weight : the weight of each row; None without weights
    unit : the patient, site or prompt of each row as a number; None if rows are drawn one by one
    """

    label: Indices
    weight: Array | None
    unit: Indices | None

    @property
    def n(self) -> int:
        return len(self.label)

    @property
    def n_units(self) -> int:
        return self.n if self.unit is None else int(self.unit.max()) + 1

    @property
    def copies(self) -> bool:
        """Whether the weights are whole numbers, which count equal rows."""
        return self.weight is not None and bool((self.weight == np.rint(self.weight)).all())

    @property
    def weight_type(self) -> str:
        """The type of the weights for an interval: whole numbers are frequencies."""
        return "frequency" if self.weight is None or self.copies else "importance"

    # -- bootstrap ------------------------------------------------------------------------------

    def bootstrap(self, n_resamples: int, rng: Any) -> Array:
        """The weight of each row in each bootstrap sample; 0 for rows that were not drawn."""
        source = generator(rng, "bootstrap samples")
        if self.unit is not None:
            drawn = row_counts(np.ones(self.n_units, dtype=np.int64), n_resamples, source)[:, self.unit]
        elif self.copies and self.weight is not None:
            return row_counts(self.weight.astype(np.int64), n_resamples, source).astype(np.float64)
        else:
            drawn = row_counts(np.ones(self.n, dtype=np.int64), n_resamples, source)
        return drawn.astype(np.float64) if self.weight is None else drawn * self.weight

    def to_fit(self, drawn: Array) -> tuple[Indices, Array | None]:
        """The rows of a bootstrap sample for fitting: repeated, or with weights if rows have weights."""
        if self.weight is None:
            return np.repeat(np.arange(self.n), drawn.astype(np.intp)), None
        rows = np.flatnonzero(drawn)
        return rows, drawn[rows]

    def all_but(self, held: Indices) -> tuple[Indices, Array | None]:
        """All rows except these, for fitting."""
        rows = np.setdiff1d(np.arange(self.n), held, assume_unique=True)
        return rows, None if self.weight is None else self.weight[rows]

    @property
    def everything(self) -> tuple[Indices, Array | None]:
        return np.arange(self.n), None if self.weight is None else self.weight.copy()

    # -- folds ----------------------------------------------------------------------------------

    def folds(self, folds: int, repeats: int, rng: Any) -> Iterator[list[Indices]]:
        """For each repeat, the rows of each fold; folds are stratified by class, and units are not divided."""
        k = whole("folds", folds, 2)
        if k > self.n_units:
            what = "rows" if self.unit is None else "units"
            raise RefusedError(f"folds={k} needs at least {k} {what}, and there are {self.n_units}: use fewer folds")
        source = generator(rng, "folds of validation")
        stratum = self.label if self.unit is None else self._largest_label()
        for _ in range(whole("repeats", repeats)):
            order = shuffled(self.n_units, source, "folds of validation")
            order = order[np.argsort(stratum[order], kind="stable")]
            fold = np.empty(self.n_units, dtype=np.intp)
            fold[order] = np.arange(self.n_units) % k
            mine = fold if self.unit is None else fold[self.unit]
            yield [np.flatnonzero(mine == f) for f in range(k)]

    def _largest_label(self) -> Indices:
        largest = np.zeros(self.n_units, dtype=np.intp)
        np.maximum.at(largest, np.arange(self.n) if self.unit is None else self.unit, self.label)
        return largest

    # -- held out -------------------------------------------------------------------------------

    def held_out(self, holdout: Any, rng: Any) -> Indices:
        """The held-out rows: as marked, or a random share of the rows (or units), stratified by class."""
        if np.ndim(holdout) > 0:
            return self._marked(as_array(holdout, "holdout"))
        if isinstance(holdout, bool) or not isinstance(holdout, float) or not 0.0 < holdout < 1.0:
            raise RefusedError(
                f"holdout={holdout!r} must be a share above 0 and below 1, or an array that is True where a row is "
                "held out"
            )
        stratum = self.label if self.unit is None else self._largest_label()
        order = shuffled(self.n_units, rng, "rows held out")
        order = order[np.argsort(stratum[order], kind="stable")]
        # evenly spaced positions in rows sorted by class, so that each class has its share
        place = np.arange(self.n_units)
        taken = np.floor((place + 1) * holdout) > np.floor(place * holdout)
        held = np.zeros(self.n_units, dtype=bool)
        held[order[taken]] = True
        return np.flatnonzero(held if self.unit is None else held[self.unit])

    def _marked(self, marks: Any) -> Indices:
        if marks.dtype.kind != "b" or marks.shape != (self.n,):
            raise RefusedError(
                f"holdout has shape {marks.shape} and type {marks.dtype}: mark each of {self.n} rows True or False"
            )
        held = np.flatnonzero(marks)
        if not 0 < len(held) < self.n:
            raise RefusedError(
                f"holdout marks {len(held)} of {self.n} rows: some rows must be held out, and some must not"
            )
        if self.unit is not None and len(np.intersect1d(self.unit[held], self.unit[~marks])):
            raise RefusedError("holdout divides the rows of a unit: hold out whole units")
        return held


def say_few_units(unit: Indices, weight: Array) -> None:
    """Warn if there are few units, or if few of them have most of the rows."""
    size = np.bincount(np.unique(unit, return_inverse=True)[1].ravel(), weight)
    what = "corrected values and intervals are"
    UnitLaw(len(size), np.inf).say_few(what)
    effective = float(size.sum() ** 2 / (size @ size))
    if effective < FEW_UNITS <= len(size):
        warn(
            f"a few of the {len(size):,} units have most of the rows, which is equivalent to {effective:.1f} equal "
            f"units: with fewer than {FEW_UNITS}, {what} inaccurate"
        )
