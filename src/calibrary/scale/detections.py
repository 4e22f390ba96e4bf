"""The state of detections: counts and sums by category and cell of score, after matching each image."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, one_of, whole
from calibrary.base.once import once
from calibrary.data import as_matches, matched_detections
from calibrary.data.checks import Array, Indices
from calibrary.data.matches import Matches, Objects
from calibrary.data.predictions import Predictions
from calibrary.data.sample import ImageSample, sample_of
from calibrary.data.stacked import Replicate, Scheme
from calibrary.data.views import Looks, Views
from calibrary.metrics.detection.binned import bins_of, default_bins, feature_names
from calibrary.numerics.cells import POSITIONS, Grid
from calibrary.scale.accuracy import default, fact_of
from calibrary.scale.cell_rows import CellRows
from calibrary.scale.checks import whole_weights
from calibrary.scale.files import Mergeable, digest_of, whole_column
from calibrary.scale.sums import EMPTY, CountTable, Integers, added
from calibrary.tables.arrow import need_arrow, pa


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
        made = CellRows(y, c, self.weight)
        made.cell, made.grid, made.category = self.cell, self.grid, self.category
        return made


DetectedCells = CellRows  # a class of its own up to version 0.3, which old pickles name


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


__all__ = ["DetectionState"]

#: Overlaps are stored as integer multiples of this unit, so that their sums do not depend on the order.
OVERLAP = 2.0**-36
#: Outcomes: wrong; correct with an overlap below the score; correct with one of at least the score; a missed object.
_WRONG, _BELOW, _ABOVE, _MISSED = range(4)
_COLUMNS = ("block", "category", "place", "cell", "outcome", "n", "s", "u")
#: The metadata of a saved state: its arguments, and what the first detections say of their matching.
_SETTINGS = {
    "resolution": int, "categories": tuple[str | int | float, ...], "names": tuple[str, ...],
    "features": tuple[str, ...], "feature_bins": int, "closed": str, "blocks": int,
}  # fmt: skip
_MATCHING = {"iou_threshold": float | None, "matching": str | None, "has_overlaps": bool | None}


class DetectionState(Mergeable, kind="detections", written=_SETTINGS | {"n_images": int} | _MATCHING):
    """Matched detections as counts and sums by category and cell of score, of bounded size and mergeable.

    Images are matched one by one or in batches. The state stores whole numbers, so that states can be added in any
    order with identical results. D-ECE, the average calibration error, LaECE, LaACE and EGCE are exact for bins whose
    edges are edges of cells, and QGC and SGC are accurate within 1e-8. Metrics of predictions use the detections like
    a :class:`State`.

    Parameters
    ----------
    categories : sequence, optional
        Identifiers of all categories, in the order of the metrics' ``average=None``; by default a single category.
    names : sequence of str, optional
        Names of the categories.
    resolution : int
        Cells of score of width 1/resolution, finer towards 0 and 1.
    features, feature_bins, closed
        Features of the boxes ("location", "shape", "full", or names among cx, cy, w, h) and the number of
        bins in which each is stored: needed for location- and shape-based D-ECE with that number of bins or a divisor.
    blocks : int
        Number of blocks into which images are divided by their identifiers; intervals resample blocks. 0: no intervals.

    Attributes
    ----------
    n_images : int
        Number of images with a detection or an object.
    iou_threshold : float or None
        Overlap threshold of the matching, from the first detections; None if they were added as arrays.

    Examples
    --------
    >>> import calibrary as cal
    >>> found = cal.datasets.detections()
    >>> state = cal.scale.DetectionState(found.categories).update(found)
    >>> abs(cal.compute("d_ece", state) - cal.compute("d_ece", found)) < 1e-12
    True
    >>> abs(cal.compute("laece", state) - cal.compute("laece", found)) < 1e-10
    True
    """

    def __init__(
        self,
        categories: Sequence[Hashable] = ("all",),
        *,
        names: Sequence[str] | None = None,
        resolution: int = 4800,
        features: str | Sequence[str] = "confidence",
        feature_bins: int = 8,
        closed: str = "left",
        blocks: int = 0,
    ) -> None:
        one_of("closed", closed, ("left", "right"))
        self.categories = tuple(_identifier(category) for category in categories)
        if not self.categories or len(set(self.categories)) != len(self.categories):
            raise RefusedError(f"categories={list(categories)!r} must name each category once")
        if names is not None and len(names) != len(self.categories):
            raise RefusedError(f"names={list(names)!r} must give a name for each of {len(self.categories)} categories")
        self.names = tuple(map(str, self.categories if names is None else names))
        self.grid = Grid(resolution)
        self.features = feature_names(features)
        self.feature_bins = whole("feature_bins", feature_bins) if self.features else 1
        self.closed = closed
        self.blocks = whole("blocks", blocks, 0)
        if max(1, self.blocks) * len(self.categories) * self._places * self.grid.size * 4 >= 2**63:
            raise RefusedError(
                f"feature_bins={feature_bins} of {len(self.features)} features, {len(self.categories)} categories and "
                f"{self.blocks} blocks give too many cells: use fewer feature_bins"
            )
        self.n_images = 0
        self.iou_threshold: float | None = None
        self.matching: str | None = None
        self.has_overlaps: bool | None = None
        self._scores = self._overlaps = EMPTY
        self._found: CellMatches | None = None

    # -- adding detections ----------------------------------------------------------------------

    def update(self, found: Any, score: Any = None, **arrays: Any) -> Self:
        """Add the detections of some images, and return the state itself.

        Parameters
        ----------
        found : Matches or array-like
            The result of :func:`calibrary.match_detections`; or an array that says whether each detection is correct.
        score, **arrays
            With arrays: scores, and ``iou``, ``category``, ``image``, ``n_missed`` and the others of
            :func:`calibrary.matched_detections`. Weights are whole numbers of copies.
        """
        given = as_matches(found)
        if given is not None and (score is not None or arrays):
            raise RefusedCallError("found is a Matches object: omit the arrays")
        found = matched_detections(found, score, **arrays) if given is None else given
        self._agree(found)
        position = self._positions(found)
        block = self._blocks_of(found.images)
        detected = self._detected(found, position, block)
        self._scores, self._overlaps = self._scores + detected[0], self._overlaps + detected[1]
        missed = self._missed(found, position, block)
        self._scores, self._overlaps = self._scores + missed, self._overlaps + missed
        self.n_images += int(found.size)
        self._found = None
        return self

    def _agree(self, found: Matches) -> None:
        """Store the settings of the matching, or refuse detections that were matched with other settings."""
        overlaps = bool(~np.isnan(found.iou[found.correct]).any()) if found.correct.any() else None
        for name, theirs in zip(_MATCHING, (found.iou_threshold, found.matching, overlaps), strict=True):
            self._agree_on(name, theirs)
        hit = found.object[found.correct]
        if len(np.unique(hit)) < len(hit):
            raise RefusedError(
                f"matching={found.matching!r} allows several detections of one object, which a state cannot represent: "
                "match with 'coco' or 'gt-best'"
            )

    def _agree_on(self, name: str, theirs: Any) -> None:
        ours = getattr(self, name)
        if ours is not None and theirs is not None and ours != theirs:
            shown = "overlaps (iou=)" if name == "has_overlaps" else name
            raise RefusedError(
                f"the state holds detections with {shown} {ours!r}, and these have {theirs!r}: use a separate state"
            )
        setattr(self, name, theirs if ours is None else ours)

    def _positions(self, found: Matches) -> Indices:
        """The index of each category of the matches among the state's categories."""
        known = {category: k for k, category in enumerate(self.categories)}
        used = np.zeros(len(found.categories), dtype=bool)
        used[found.category] = True
        used[found.objects.category[found.missed() & (found.objects.category >= 0)]] = True
        for k in np.flatnonzero(used):
            if found.categories[k] not in known:
                raise RefusedError(
                    f"category {found.categories[k]!r} is not among the {len(known)} of the state: pass all in "
                    "categories= when you create the state"
                )
        if (found.objects.category[found.missed()] < 0).any():
            raise RefusedError("a state counts missed objects by category: pass n_missed as {category: count}")
        return np.array([known.get(category, -1) for category in found.categories], dtype=np.intp)

    def _blocks_of(self, images: Sequence[Hashable]) -> Indices:
        if not self.blocks:
            return np.zeros(len(images), dtype=np.intp)
        hashed = (hashlib.blake2b(repr(image).encode(), digest_size=8).digest() for image in images)
        return np.array([int.from_bytes(h, "little") % self.blocks for h in hashed], dtype=np.intp)

    def _detected(self, found: Matches, position: Indices, block: Indices) -> tuple[CountTable, CountTable]:
        cell, at = self.grid.locate(found.score)
        w = np.ones(len(found), dtype=np.int64)
        if found.weight is not None:
            w = whole_weights(found.weight, "weight of detection {}".format)
        iou = np.nan_to_num(found.iou, nan=0.0)
        outcome = np.where(found.correct, np.where(iou >= found.score, _ABOVE, _BELOW), _WRONG)
        place = np.zeros(len(found), dtype=np.int64)
        for name in self.features:
            inside = np.clip(getattr(found, name), 0.0, 1.0)
            place = place * self.feature_bins + bins_of(inside, self.feature_bins, self.closed)
        code = self._code(block[found.image], position[found.category], place, cell, outcome)
        if len(w) and int(w.max()) > 2**26:
            raise OverflowError(f"a weight of {w.max():,} is too large for a state")
        overlap = np.rint(iou / OVERLAP).astype(np.int64)
        return added(code, w, w * at), added(code, w, w * overlap)

    def _missed(self, found: Matches, position: Indices, block: Indices) -> CountTable:
        rows = np.flatnonzero(found.missed())
        objects = found.objects
        n = np.ones(len(rows), dtype=np.int64)
        if objects.weight is not None:
            n = whole_weights(objects.weight[rows], "weight of object {}".format)
        nothing = np.zeros(len(rows), dtype=np.int64)
        code = self._code(block[objects.image[rows]], position[objects.category[rows]], nothing, nothing, _MISSED)
        return added(code, n, nothing)

    # -- what it holds --------------------------------------------------------------------------

    def _code(self, block: Any, category: Any, place: Any, cell: Any, outcome: Any) -> Integers:
        code = (np.asarray(block, dtype=np.int64) * len(self.categories) + category) * self._places + place
        return np.asarray((code * self.grid.size + cell) * 4 + outcome)

    @property
    def _places(self) -> int:
        return int(self.feature_bins ** len(self.features))

    def _read(self) -> dict[str, Integers]:
        """The columns of the table."""
        rest, outcome = np.divmod(self._scores.code, 4)
        rest, cell = np.divmod(rest, self.grid.size)
        rest, place = np.divmod(rest, self._places)
        block, category = np.divmod(rest, len(self.categories))
        columns = (block, category, place, cell, outcome, self._scores.n, self._scores.s, self._overlaps.s)
        return dict(zip(_COLUMNS, columns, strict=True))

    @property
    def resolution(self) -> int:
        """Cells of width 1/resolution."""
        return int(self.grid.resolution)

    @property
    def n(self) -> int:
        """The number of detections, with their weights."""
        return int(self._scores.n[self._scores.code % 4 != _MISSED].sum())

    @property
    def n_missed(self) -> int:
        """The number of missed objects."""
        return int(self._scores.n[self._scores.code % 4 == _MISSED].sum())

    def __len__(self) -> int:
        """The number of rows of the table."""
        return len(self._scores)

    def __repr__(self) -> str:
        kinds = f"{len(self.categories)} categor{'y' if len(self.categories) == 1 else 'ies'}"
        return (
            f"DetectionState({self.n:,} detections and {self.n_missed:,} missed objects of {kinds} in "
            f"{len(self):,} rows, resolution {self.resolution})"
        )

    @property
    def digest(self) -> str:
        """A hash that is equal for equal states: sha256 of their metadata and the columns of the table."""
        return digest_of({"version": 1, "kind": "detections", **self._about()}, *self._read().values())

    # -- putting states together ----------------------------------------------------------------

    def merge(self, *others: DetectionState) -> Self:
        """Add other states, and return the state itself; the order does not matter."""
        for other in others:
            self._same_kind(other)
            self._scores, self._overlaps = self._scores + other._scores, self._overlaps + other._overlaps
            self.n_images += other.n_images
        self._found = None
        return self

    def subtract(self, other: DetectionState) -> Self:
        """Subtract another state, whose detections this one must contain, for a moving window."""
        self._same_kind(other)
        scores, overlaps = self._scores - other._scores, self._overlaps - other._overlaps
        self._scores, self._overlaps = scores, overlaps
        self.n_images -= other.n_images
        self._found = None
        return self

    def _same_kind(self, other: DetectionState) -> None:
        if not isinstance(other, DetectionState):
            raise RefusedCallError(f"a state of detections is merged with another, not with {type(other).__name__}")
        self._refuse_other(*({name: getattr(state, name) for name in _SETTINGS} for state in (self, other)))
        for name in _MATCHING:
            self._agree_on(name, getattr(other, name))

    def copy(self) -> Self:
        """Another state with the same detections."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)  # tables are never changed in place
        return made

    # -- as matches -----------------------------------------------------------------------------

    def as_matches(self) -> CellMatches:
        """The state as matched detections with weights, for every metric of detections."""
        if self._found is None:
            self._found = self._made()
        return self._found

    def _made(self) -> CellMatches:
        if not len(self):
            raise RefusedError("the state is empty: add detections with update() first")
        table = self._read()
        seen = table["outcome"] != _MISSED
        rows, missed = ({name: x[which] for name, x in table.items()} for which in (seen, ~seen))
        n = rows["n"].astype(np.float64)
        correct = rows["outcome"] != _WRONG
        iou = np.where(correct, rows["u"] / n * OVERLAP if self.has_overlaps else np.nan, 0.0)
        hits = np.flatnonzero(correct)
        found = np.full(len(n), -1, dtype=np.intp)
        found[hits] = np.arange(len(hits))
        objects = Objects(
            np.concatenate([rows["block"][hits], missed["block"]]).astype(np.intp),
            np.concatenate([rows["category"][hits], missed["category"]]).astype(np.intp),
            np.ones(len(hits) + len(missed["n"]), dtype=bool),
            np.concatenate([n[hits], missed["n"].astype(np.float64)]),
        )
        return CellMatches(
            self.grid.place(rows["cell"], rows["s"] / n), correct, iou, rows["category"].astype(np.intp),
            rows["block"].astype(np.intp), found, np.arange(len(n)), objects, self.categories, self.names,
            range(max(self.blocks, 1)), n, self._boxes(rows["place"]),
            np.ones((max(self.blocks, 1), 2)) if self.features else None, self.iou_threshold, self.matching,
            cell=rows["cell"], grid=self.grid, features=self.features, feature_bins=self.feature_bins,
            closed=self.closed,
        )  # fmt: skip

    def _boxes(self, place: Integers) -> Array | None:
        """Boxes in an image of size one whose features are at the centers of their bins."""
        if not self.features:
            return None
        at: dict[str, NDArray[Any]] = {}
        for name in reversed(self.features):
            place, number = np.divmod(place, self.feature_bins)
            at[name] = (
                number + 0.5
            ) / self.feature_bins  # the middle of a bin, which every coarser bin of the same edges holds
        half = np.full(len(place), 0.5)
        w, h = at.get("w", half), at.get("h", half)
        return np.column_stack([at.get("cx", half) - w / 2.0, at.get("cy", half) - h / 2.0, w, h])

    # -- tables and files -----------------------------------------------------------------------

    def to_table(self) -> Any:
        """A PyArrow table: block, category, place, cell, outcome, n, s and u."""
        need_arrow("a table of a state")

        kinds = {"outcome": np.int8, "place": np.int64, "n": np.int64, "s": np.int64, "u": np.int64}
        columns = {name: pa.array(x.astype(kinds.get(name, np.int32))) for name, x in self._read().items()}
        return self._sealed(pa.table(columns))

    @classmethod
    def _of_saved(cls, table: Any, about: Mapping[str, Any]) -> Self:
        made = cls(**{name: about[name] for name in _SETTINGS})
        for name in ("n_images", *_MATCHING):
            setattr(made, name, about[name])
        columns = [whole_column(table.column(name), name) for name in _COLUMNS]
        block, category, place, cell, outcome, n, s, u = columns
        ends = (max(made.blocks, 1), len(made.categories), made._places, made.grid.size, 4)
        if any(((column < 0) | (column >= end)).any() for column, end in zip(columns, ends, strict=False)):
            raise RefusedError("the table holds categories, cells or outcomes that the state does not have")
        code = made._code(block, category, place, cell, outcome)
        made._scores, made._overlaps = added(code, n, s), added(code, n, u)
        if (n <= 0).any() or (s < 0).any() or (s > n * (POSITIONS - 1)).any() or len(made) != len(n):
            raise RefusedError("the table holds sums that no detections can give: save the state again")
        return made

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_found": None}


def _identifier(category: Any) -> Any:
    """A text or a number, as a file can hold it."""
    plain = category.item() if isinstance(category, np.generic) else category
    if not isinstance(plain, str | int | float):
        raise RefusedError(f"categories holds {category!r}: identify categories by texts or numbers")
    return plain
