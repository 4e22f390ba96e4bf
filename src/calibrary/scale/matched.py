"""A state of detections as matches: weighted rows, each of which represents many detections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.once import once
from calibrary.data.checks import Array, Indices
from calibrary.data.matches import Matches
from calibrary.data.predictions import Predictions
from calibrary.data.sample import ImageSample, sample_of
from calibrary.data.stacked import Replicate, Scheme
from calibrary.data.views import Looks, Views
from calibrary.metrics.detection.binned import default_bins, feature_names
from calibrary.numerics.cells import Grid
from calibrary.scale.cell_rows import CellRows
from calibrary.scale.facts import default, fact_of


@dataclass(frozen=True, eq=False, repr=False)
class CellMatches(Matches):
    """One row for each category, cell of score and outcome: mean score and mean overlap, weighted by their number.

    Correct detections with an overlap of at least their score are separate rows from the others, so that absolute
    differences of overlap and score are exact. Here an "image" is a block of images.
    """

    counted = True
    cell: Indices | None = None
    grid: Grid | None = None
    #: The stored features of the boxes, their number of bins, and which end of a bin is included.
    features: tuple[str, ...] = ()
    feature_bins: int = 1
    closed: str = "left"

    def _taking(self, index: Any, **changes: Any) -> CellMatches:
        assert self.cell is not None
        taken: CellMatches = super()._taking(index, **changes)  # type: ignore[assignment]
        return replace(taken, cell=self.cell[index])

    def rematched(self, **options: Any) -> Matches:
        for name, value in options.items():
            if value != getattr(self, name, None):
                raise RefusedError(
                    f"{name}={value!r}: a state keeps detections as they were matched ({name}="
                    f"{getattr(self, name, None)!r}); create a separate state for each matching"
                )
        return self

    def __repr__(self) -> str:
        return f"CellMatches({round(float(self.weights.sum())):,} detections in {len(self):,} rows)"

    def null_draw(self, rng: np.random.Generator, link: str = "threshold") -> Matches:
        if link == "identity":
            raise RefusedError(
                "a state stores the mean overlap in each cell, from which outcomes cannot be redrawn: there is no "
                "test, and an interval needs method='bca'"
            )
        return super().null_draw(rng, link)

    def through(self, lens: Looks) -> Views:
        """The views of the lens; metrics that cannot be computed from sums are refused."""
        return replace(super().through(lens), reading=_refused)

    @once
    def _predictions(self) -> Predictions:
        assert self.cell is not None
        assert self.grid is not None
        y, c = self.as_binary()
        made = DetectedCells(y, c, self.weight)
        made.cell, made.grid, made.category = self.cell, self.grid, self.category
        return made


class DetectedCells(CellRows):
    """The rows as predictions of whether a detection is correct; "class-wise" means per category."""

    category: Indices

    def through(self, lens: Looks) -> Views:
        if lens.name != "class-wise":
            return super().through(lens)
        present = np.unique(self.category)
        rows = [np.flatnonzero(self.category == k) for k in present]
        views = tuple(self.subset(r, self.y[r], self.probability[r]) for r in rows)
        prevalence = np.array([view.total for view in views])
        return replace(
            self.shown(),
            views=views,
            keys=tuple(present.tolist()),
            prevalence=prevalence,
            several=True,
            n_classes=len(views),
        )

    def subset(self, keep: NDArray[Any], y: NDArray[Any], probability: Array, **extra: Any) -> Predictions:
        made = super().subset(keep, y, probability, **extra)
        if isinstance(made, DetectedCells):
            made.category = self.category[keep]
        return made

    def _in_cells(self, made: Predictions, cell: Indices) -> CellRows:
        if isinstance(made, DetectedCells):
            return made
        kept = DetectedCells.__new__(DetectedCells)
        kept.__dict__.update(made.__dict__)
        kept.cell, kept.grid, kept.category = cell, self.grid, self.category
        return kept


@dataclass(frozen=True)
class BlockSample(ImageSample):
    """Blocks of images, resampled with all their detections and objects."""

    def bootstrap(self) -> Scheme:
        self._refuse_without_blocks()
        return super().bootstrap()

    def of_units(self, drawn: Indices) -> Replicate:
        self._refuse_without_blocks()
        return super().of_units(drawn)

    def _refuse_without_blocks(self) -> None:
        if self.n_units < 2:
            raise RefusedError(
                "an interval resamples images, and this state has only their sum: create it with blocks=100, and pass "
                "image= with the detections"
            )


sample_of.register(CellMatches, BlockSample)


# -- what sums cannot give ----------------------------------------------------------------------------


def _refused(view: CellMatches, entry: Any, options: Mapping[str, Any]) -> CellMatches:
    """The view, if the metric is a function of sums by category and bin."""
    kind = fact_of(entry, options).kind
    if kind == "boxes" or (kind != "detection" and entry.weights != "repetition"):
        raise RefusedError(
            f"{entry.id} cannot be computed from a state of detections: it needs every single box; compute it on "
            "a sample of the images"
        )
    assert view.grid is not None
    names = feature_names(options.get("features", "confidence"))
    bins = _bins(entry, names, options)
    if bins and view.grid.resolution % bins[0]:
        raise RefusedError(
            f"n_bins={bins[0]}: the edges of this number of score bins are not edges of cells at resolution "
            f"{view.grid.resolution}; use a number of bins that divides it, such as 10, 15 or 20"
        )
    if names:
        _refuse_other_features(view, names, bins[1:], options)
    least = options.get("confidence_threshold", default(entry, "confidence_threshold"))
    if least is not None and view.grid.locate(np.array([float(least)]))[0][0] % 2:
        raise RefusedError(
            f"confidence_threshold={least!r} lies inside a cell at resolution {view.grid.resolution}: use a threshold "
            "of two decimals, such as 0.1"
        )
    return view


def _bins(entry: Any, names: tuple[str, ...], options: Mapping[str, Any]) -> tuple[int, ...]:
    """Bins of the score and of each feature; none where the metric has no bins."""
    if "n_bins" not in entry.options:
        return ()
    given = options.get("n_bins", default(entry, "n_bins"))
    if given is None:
        given = default_bins(len(names))
    return (int(given),) * (1 + len(names)) if isinstance(given, int | np.integer) else tuple(map(int, given))


def _refuse_other_features(
    view: CellMatches, names: tuple[str, ...], bins: tuple[int, ...], options: Mapping[str, Any]
) -> None:
    missing = [name for name in names if name not in view.features]
    if missing:
        kept = f"features={list(view.features)!r}" if view.features else "the scores alone"
        raise RefusedError(
            f"features={options['features']!r}: the state was made with {kept}; make it with features= that hold "
            f"{missing[0]!r}"
        )
    other = [n for n in bins if view.feature_bins % n]
    if other or options.get("closed", "left") != view.closed:
        wrong = f"n_bins={other[0]}" if other else f"closed={options.get('closed', 'left')!r}"
        raise RefusedError(
            f"{wrong}: the state stores positions and sizes of boxes in {view.feature_bins} bins, "
            f"closed={view.closed!r}; use these, or a number of bins that divides this one"
        )


def middle_of_bins(place: Array, bins: int) -> Array:
    """The middle of each bin, which every coarser bin of the same edges holds too."""
    middle: Array = (place + 0.5) / bins
    return middle
