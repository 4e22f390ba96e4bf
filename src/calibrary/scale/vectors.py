"""A state of several classes as predictions; each lens uses the part that was stored for it."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.once import once
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.views import Looks, Views
from calibrary.scale.accuracy import accuracy_of, worst
from calibrary.scale.cell_rows import CellRows
from calibrary.scale.sample import HashedSample


class VectorRows(Predictions):
    """Predictions for K classes, of which sums and a sample are stored.

    The rows are those of the sample. The lenses "top-label" and "class-wise" (and "binary" for two classes) use
    weighted rows that represent all predictions; the means of summed losses are exact; every other lens uses the
    sample.
    """

    n_all: int
    top_alone: CellRows
    classes_alone: tuple[CellRows, ...]
    top_rows: CellRows
    class_rows: tuple[CellRows, ...]
    losses: dict[str, float]

    @classmethod
    def of(
        cls,
        sample: HashedSample,
        top: CellRows,
        classes: Sequence[CellRows],
        losses: dict[str, float],
        labels: tuple[Hashable, ...] | None,
    ) -> Self:
        w = None if (sample.w == 1).all() else sample.w.astype(np.float64)
        made = cls(sample.y.astype(np.intp), sample.p, w, classes=labels)
        made.n_all, made.losses = top.n_predictions, losses
        made.top_alone, made.classes_alone = top, tuple(classes)
        made.top_rows = made._seen(top, "top-label")
        made.class_rows = tuple(made._seen(rows, "class-wise") for rows in classes)
        return made

    def _seen(self, rows: CellRows, lens: str) -> CellRows:
        view = copy.copy(rows)
        view.origin, view.seen_through = self, lens
        return view

    @once
    def class_share(self) -> Array:
        return np.array([rows.class_share[1] for rows in self.class_rows])

    @property
    def class_counts(self) -> Array:
        return self.class_share * self.n_all

    @property
    def class_means(self) -> Array:
        return np.array([rows.mean(rows.c) for rows in self.class_rows])

    @property
    def exchangeable(self) -> bool:
        """False, because only sums and the sample's rows are stored."""
        return False

    def __repr__(self) -> str:
        return f"VectorRows({self.n_all:,} predictions, {self.k} classes, {self.n:,} whole rows)"

    @property
    def n_predictions(self) -> int:
        return self.n_all

    def through(self, lens: Looks) -> Views:
        if lens.name == "top-label":
            return self.top_rows.shown()
        if lens.name == "class-wise":
            shown = self.top_rows.shown()
            return replace(
                shown, views=self.class_rows, keys=tuple(range(self.k)), prevalence=self.class_share, several=True,
                n_classes=self.k,
            )  # fmt: skip
        if lens.name == "binary" and self.k == 2:
            return self.class_rows[1].shown()
        known = self.losses if lens.name == "full" else {}
        if not self.n:
            return Views((self,), reading=_needs_rows, known=known)
        return replace(super().through(lens), known=known)

    def drawn_by(self, lens: Looks) -> Predictions:
        """The state that can be resampled: the top label, or the event for two classes."""
        if self.k > 2 and lens.name == "top-label":
            return self.top_alone
        if self.k == 2 and lens.name == "binary":
            return self.classes_alone[1]
        raise RefusedError(_ONE_PART)

    def note_for(self, entry: Any, question: Any) -> str:
        lens = entry.lens_for(self, question)
        views = self.through(lens)
        if entry.id in views.known and not question.options:
            return "exact"
        if lens.name not in ("top-label", "class-wise", "binary"):
            return f"on {self.n:,} of {self.n_all:,} rows"
        if len(views.views) > _MOST_NOTES:
            return "from states of the classes: calibrary.scale.accuracy(id, state.classes.by('class')[k]) bounds each"
        return str(worst([accuracy_of(view, entry, question.options) for view in views.views]))

    # -- what a sample cannot do ----------------------------------------------------------------

    def reweighted(self, w: Array, origin: Predictions | None = None) -> Predictions:
        raise RefusedError(_ONE_PART)

    def relabeled(self, y: NDArray[Any]) -> Predictions:
        raise RefusedError(_ONE_PART)

    def subset(self, keep: NDArray[Any], y: NDArray[Any], probability: Array, **extra: Any) -> Predictions:
        if len(y) == len(self.y) and probability.shape == self.probability.shape:  # drawn again, or in another order
            raise RefusedError(_ONE_PART)
        return super().subset(keep, y, probability, **extra)


def _needs_rows(view: Any, entry: Any, options: Mapping[str, Any]) -> Any:
    """Refuse metrics that need complete rows, if there is no sample."""
    if entry.id in view.losses and not options:
        return view
    raise RefusedError(
        f"{entry.id} needs complete rows, and the state stores only sums: create it with sample=100_000, or use "
        "lens='top-label' "
        "or lens='class-wise'"
    )


#: The most classes for which a table computes bounds.
_MOST_NOTES = 12

_ONE_PART = (
    "a state of several classes stores the top label, each class and each loss separately, and averages over them "
    "cannot be resampled: use state.top, state.classes.by('class')[k] for class k, or state.loss_interval(id)"
)
