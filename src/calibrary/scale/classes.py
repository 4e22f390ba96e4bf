"""The state of predictions for several classes: the top label, every class, sums of row losses, a sample of rows."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, whole
from calibrary.base.once import once
from calibrary.data.asked import checks_options, share
from calibrary.data.checks import Array, as_array, given_weights
from calibrary.data.identity import refuse_misaligned
from calibrary.data.lens import Lens
from calibrary.data.predictions import Predictions
from calibrary.data.views import Looks, Views
from calibrary.numerics.draw import STEP, Hashes, finalized
from calibrary.scale.accuracy import Accuracy, accuracy_of, worst
from calibrary.scale.cell_rows import CellRows
from calibrary.scale.checks import checked_rows, valid_rows, whole_weights
from calibrary.scale.files import Label, MergeableRows, digest_of
from calibrary.scale.losses import USUAL_LOSSES, LossSum, checked_losses, loss_sum, row_losses
from calibrary.scale.state import RESOLUTION, State, plain_label
from calibrary.scale.sums import NONE, Batch
from calibrary.tables.arrow import need_arrow, pa, pc

Integers = NDArray[np.int64]

#: The most numbers in a sample: 80 MB.
MOST_NUMBERS = 10_000_000


@dataclass(frozen=True)
class HashedSample:
    """At most ``size`` rows: hash, label, probabilities and copies of each, ascending by hash.

    The hash of a row is a random number fixed by the row, so the rows of smallest hash are a uniform sample; the sample
    of two parts together consists of the smallest hashes of both. ``limit`` is the hash below which every row is in it.
    """

    size: int
    hash: Hashes
    y: Integers
    p: Array
    w: Integers
    limit: int = 2**64 - 1

    @classmethod
    def empty(cls, size: int, n_classes: int) -> HashedSample:
        whole = np.empty(0, dtype=np.int64)
        return cls(size, np.empty(0, dtype=np.uint64), whole, np.empty((0, n_classes)), whole)

    def __len__(self) -> int:
        return len(self.hash)

    def with_rows(self, hash: Hashes, y: NDArray[Any], p: Array, w: Integers) -> HashedSample:
        """The sample of the previous rows and these rows together."""
        near = np.flatnonzero(hash <= np.uint64(self.limit))
        copies = w[near] if len(w) else np.ones(len(near), dtype=np.int64)
        return self + HashedSample(self.size, hash[near], y[near].astype(np.int64), p[near], copies)

    def __add__(self, other: HashedSample) -> HashedSample:
        columns = ("hash", "y", "p", "w")
        joined: Any = (np.concatenate([getattr(self, of), getattr(other, of)]) for of in columns)
        both = HashedSample(self.size, *joined)
        # rows of equal hash are nearly always equal; otherwise they are ordered by content, not by arrival
        order = np.lexsort([both.w, *both.p.T[:2], both.y, both.hash])
        limit = min(self.limit, other.limit)
        if len(order) > self.size:
            limit = min(limit, int(both.hash[order[self.size - 1]]) if self.size else 0)
            order = order[: self.size]
        return both._taking(order[both.hash[order] <= np.uint64(limit)], limit)

    def _taking(self, rows: NDArray[Any], limit: int) -> HashedSample:
        return HashedSample(self.size, self.hash[rows], self.y[rows], self.p[rows], self.w[rows], limit)

    def __sub__(self, other: HashedSample) -> HashedSample:
        """The sample of the remaining rows: subtracted rows are removed from the sample."""
        return self._taking(~np.isin(self.hash, other.hash), self.limit)


def row_hashes(y: NDArray[Any], p: Array, ids: Any, seen: int) -> Hashes:
    """A hash of each row, from its identifier, or else from its content and position."""
    if ids is None:
        hash = _mixed(y.astype(np.uint64))
        for column in np.ascontiguousarray(p.T):
            hash = _mixed(hash ^ np.asarray(column + 0.0).view(np.uint64))
        place: Hashes = np.arange(seen, seen + len(y)).astype(np.uint64)
        return _mixed(hash ^ _mixed(place))
    given = as_array(ids, "ids")
    if given.shape != (len(y),):
        raise RefusedError(f"ids has shape {given.shape}: give one identifier for each of {len(y)} rows")
    if given.dtype.kind in "iu":
        return _mixed(given.astype(np.int64).view(np.uint64))
    return np.array([name_hash(str(v)) for v in given.tolist()], dtype=np.uint64)


def name_hash(name: str) -> int:
    """A 64-bit hash of a name, equal on all machines."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def file_ids(name: str, first: int, n: int) -> NDArray[np.int64]:
    """Identifiers of rows of a file: its name and their numbers."""
    start = np.uint64((name_hash(name) + first) % 2**64)
    return (start + np.arange(n, dtype=np.uint64)).view(np.int64)


def _mixed(x: Hashes) -> Hashes:
    return finalized(x + STEP)


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
    def of(cls, state: VectorState) -> Self:
        if not state.n:
            raise RefusedError("the state is empty: a metric needs at least one prediction")
        sample, top = state.sample, state.top.as_predictions()
        w = None if (sample.w == 1).all() else sample.w.astype(np.float64)
        made = cls(sample.y.astype(np.intp), sample.p, w, classes=state.labels)
        made.n_all, made.losses = top.n_predictions, {id: state.loss(id)[0] for id in state.losses}
        made.top_alone = top
        made.classes_alone = tuple(part.as_predictions() for part in state.classes.by("class").values())
        made.top_rows = made._seen(top, "top-label")
        made.class_rows = tuple(made._seen(rows, "class-wise") for rows in made.classes_alone)
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

    def accuracy(self, entry: Any, question: Any) -> Accuracy:
        """Exact for the mean of a summed loss, that of the least precise state of a lens, or on sampled rows."""
        lens = entry.lens_for(self, question)
        views = self.through(lens)
        if entry.id in views.known and not question.options:
            return Accuracy("exact", 0.0)
        if isinstance(views.views[0], CellRows):
            return worst([accuracy_of(view, entry, question.options) for view in views.views])
        if not self.n:
            return Accuracy("refused", reason=_NEEDS_ROWS.format(entry.id))
        return Accuracy("sampled", reason=f"on {self.n:,} of {self.n_all:,} rows")

    def note_for(self, entry: Any, question: Any) -> str:
        if entry.lens_for(self, question).name == "class-wise" and self.k > _MOST_NOTES:
            return "from states of the classes: calibrary.scale.accuracy(id, state.classes.by('class')[k]) bounds each"
        return str(self.accuracy(entry, question))

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
    raise RefusedError(_NEEDS_ROWS.format(entry.id))


_NEEDS_ROWS = (
    "{} needs complete rows, and the state stores only sums: create it with sample=100_000, or use lens='top-label' "
    "or lens='class-wise'"
)


#: The most classes for which a table computes bounds.
_MOST_NOTES = 12

_ONE_PART = (
    "a state of several classes stores the top label, each class and each loss separately, and averages over them "
    "cannot be resampled: use state.top, state.classes.by('class')[k] for class k, or state.loss_interval(id)"
)


__all__ = ["VectorState"]

#: The number of rows, each with K probabilities, that are processed at a time.
_NUMBERS = 1 << 22
_TOP = Lens("top-label")


#: The metadata of a saved state of several classes.
_WRITTEN = {
    "n_classes": int, "resolution": int, "class_resolution": int, "losses": tuple[str, ...], "sample": int,
    "limit": str, "labels": tuple[Label, ...] | None, "dropped": dict[str, int], "seen": int,
}  # fmt: skip


class VectorState(MergeableRows, kind="vectors", written=_WRITTEN):
    """A summary, of bounded size and from one pass, of predictions with one probability per class.

    The top label (its probability, and whether it was right) and every class against the rest are separate states,
    exact or bounded as for two classes. Sums of row losses are exact. Metrics that need whole rows are computed on a
    uniform sample of rows.

    Parameters
    ----------
    n_classes : int
    resolution, class_resolution : int
        Resolution of the state of the top label, and of the K states of the classes.
    losses : sequence of str
        Metrics that are means of row losses ("bs", "nll", ...), whose sums are computed in the same pass.
    sample : int
        Number of rows of the uniform sample; 0 for none.
    labels : sequence, optional
        Names of the classes, in column order.

    Attributes
    ----------
    top : State
        ``cal.interval("ece", state.top)``.
    classes : State
        By column ``class``: ``state.classes.by("class")[k]`` is class k against the rest.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrary as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 1000)
    >>> y = np.array([rng.choice(3, p=row) for row in p])
    >>> state = cal.scale.VectorState(3).update(y, p)
    >>> abs(cal.compute("ece", state) - cal.compute("ece", y, p)) < 1e-12
    True
    >>> abs(cal.compute("nll", state) - cal.compute("nll", y, p)) < 1e-12
    True
    """

    @checks_options
    def __init__(
        self,
        n_classes: int,
        *,
        resolution: int = RESOLUTION,
        class_resolution: int = 240,
        losses: str | Iterable[str] = USUAL_LOSSES,
        sample: int = 0,
        labels: Sequence[Hashable] | None = None,
    ) -> None:
        self.n_classes = whole("n_classes", n_classes, 2)
        if labels is not None and len(labels) != n_classes:
            raise RefusedError(f"labels={list(labels)!r} must name each of the {n_classes} classes once")
        if whole("sample", sample, 0) * n_classes > MOST_NUMBERS:
            raise RefusedError(
                f"sample={sample} rows of {n_classes} probabilities are more than {MOST_NUMBERS:,} numbers: "
                f"use at most sample={MOST_NUMBERS // n_classes}"
            )
        self.labels = None if labels is None else tuple(map(plain_label, labels))
        self.top = State(resolution, lens="top-label")
        self.classes = State(class_resolution, by="class")
        self.losses: dict[str, LossSum] = dict.fromkeys(checked_losses(losses), LossSum())
        self.sample = HashedSample.empty(sample, n_classes)
        self.dropped = {}
        self._seen = 0
        self._rows: VectorRows | None = None

    # -- adding rows ----------------------------------------------------------------------------

    @checks_options
    def update(
        self, y_true: Any, y_prob: Any, *, sample_weight: Any = None, ids: Any = None, drop_invalid: bool = False
    ) -> Self:
        """Add a batch of predictions, and return the state itself.

        Parameters
        ----------
        y_true, y_prob, sample_weight, drop_invalid
            As in :meth:`State.update`; ``y_prob`` has one column per class.
        ids : array-like, optional
            Identifiers of the rows, which determine the sample independent of the order of the rows. Without
            identifiers, the sample depends on the content of a row and its position.
        """
        refuse_misaligned(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, ids=ids)
        y, prob = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
        if prob.ndim != 2 or prob.shape[1] != self.n_classes:
            raise RefusedError(
                f"y_prob has shape {prob.shape}: the state has {self.n_classes} classes, one column each"
            )
        if len(prob) != len(y):
            raise RefusedError(f"y_true has {len(y)} rows, y_prob has {len(prob)}: pass one label per row")
        kept = np.ones(len(y), dtype=bool)
        given = given_weights(sample_weight, len(y))
        ids = None if ids is None else as_array(ids, "ids")
        if ids is not None and ids.shape[:1] != y.shape[:1]:
            raise RefusedError(f"ids has {ids.size} values, y_true has {len(y)} rows: pass one identifier per row")
        dropped: dict[str, int] = {}
        if drop_invalid:
            kept, dropped = valid_rows(y, prob, self.labels, None, given)
        w = NONE if given is None else whole_weights(given[kept], "sample_weight[{}]".format)
        if kept.any():
            p = checked_rows(y[kept], prob[kept], self.labels, None)
            self.add(p, w, None if ids is None else ids[kept])
        self.drop_all(dropped)
        return self

    def add(self, p: Predictions, w: NDArray[np.int64], ids: Any) -> None:
        """Add checked rows; ``w`` is empty if every row has weight 1."""
        self._rows = None
        step = max(1, _NUMBERS // self.n_classes)
        for first in range(0, p.n, step):
            rows = slice(first, first + step)
            part = Predictions(p.y[rows], p.probability[rows], classes=p.class_names)
            self._add_part(part, w[rows], None if ids is None else ids[rows])

    def _add_part(self, p: Predictions, w: NDArray[np.int64], ids: Any) -> None:
        if len(w):  # rows of weight zero are ignored
            there = w > 0
            p, w = Predictions(p.y[there], p.probability[there], classes=p.class_names), w[there]
            ids = None if ids is None else ids[there]
        sums = {id: loss_sum(each, w) for id, each in row_losses(p, self.losses).items()} if p.n else {}
        if self.sample.size:
            hashes = row_hashes(p.y, p.probability, ids, self._seen)
            self.sample = self.sample.with_rows(hashes, p.y, p.probability, w)
        view = p.through(_TOP).views[0]
        self.top.add(Batch(view.c, view.y.astype(np.uint8), w))
        self.classes.add_classes(p.y, p.probability, w)
        self.losses = {id: total + sums[id] for id, total in self.losses.items()} if sums else self.losses
        self._seen += p.n
        p.release()

    # -- content --------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """The number of predictions, with their weights."""
        return self.top.n

    def __repr__(self) -> str:
        kept = f", {len(self.sample):,} rows in the sample" if self.sample.size else ""
        return f"VectorState({self.n:,} predictions, {self.n_classes} classes{kept})"

    @property
    def digest(self) -> str:
        """A hash that is equal for equal states."""
        sums = {id: list(map(str, total.numbers)) for id, total in self.losses.items()}
        about = [1, self.n_classes, self.top.digest, self.classes.digest, sums, self.sample.size, *self._named()]
        return digest_of(about, self.sample.hash, self.sample.y, self.sample.p, self.sample.w)

    def _named(self) -> list[str]:
        """The names of the classes, if they are not numbers."""
        return [] if self.labels in (None, tuple(range(self.n_classes))) else ["labels", repr(self.labels)]

    def loss(self, id: str) -> tuple[float, float]:
        """The mean of a row loss and its standard error."""
        if id not in self.losses:
            raise RefusedError(f"the state has no sums of {id!r}: it was made with losses={list(self.losses)}")
        return self.losses[id].mean(self.n), self.losses[id].standard_error(self.n)

    def loss_interval(self, id: str, confidence_level: float = 0.95) -> tuple[float, float]:
        """The normal interval of a mean row loss, which is accurate for large numbers of rows.

        Examples
        --------
        >>> import calibrary as cal
        >>> y, p, _ = cal.datasets.digits()
        >>> low, high = cal.scale.VectorState(10).update(y, p).loss_interval("bs")
        >>> low < cal.compute("bs", y, p) < high
        True
        """
        share("confidence_level", confidence_level, 0.95)
        mean, error = self.loss(id)
        away = NormalDist().inv_cdf(0.5 + confidence_level / 2.0) * error
        return mean - away, mean + away

    def as_predictions(self) -> VectorRows:
        """The state as predictions; each lens uses the part that was stored for it."""
        if self._rows is None:
            self._rows = VectorRows.of(self)
        return self._rows

    # -- merging states ------------------------------------------------------------------------

    def merge(self, *others: VectorState) -> Self:
        """Add other states, and return the state itself."""
        for other in others:
            self._same_kind(other)
            self.classes.merge(other.classes)  # first, because their resolutions may not agree
            self.top.merge(other.top)
            self.losses = {id: total + other.losses[id] for id, total in self.losses.items()}
            self.sample = self.sample + other.sample
            self.drop_all(other.dropped)
            self._seen += other._seen
        self._rows = None
        return self

    def subtract(self, other: VectorState) -> Self:
        """Subtract another state, whose rows this one must contain; the sample gets smaller."""
        self._same_kind(other)
        dropped = self._dropped_without(other)
        classes = self.classes - other.classes  # what cannot be subtracted is refused before anything changes
        self.top.subtract(other.top)
        self.classes = classes
        self.losses = {id: total - other.losses[id] for id, total in self.losses.items()}
        self.sample = self.sample - other.sample
        self.dropped = dropped
        # _seen stays: it numbers the rows of the sample, and a number that was used is not used again
        self._rows = None
        return self

    def _same_kind(self, other: VectorState) -> None:
        if not isinstance(other, VectorState):
            raise RefusedCallError(f"a state can only be merged with a state, not with {type(other).__name__}")
        same = self._named() == other._named()  # labels that are the numbers of the classes need not be given
        self._refuse_other(self._settings(same), other._settings(same))

    def _settings(self, unnamed: bool) -> dict[str, Any]:
        top, labels = self.top.resolution, None if unnamed else self.labels
        settings = {"n_classes": self.n_classes, "resolution": top, "losses": tuple(self.losses)}
        return {**settings, "sample": self.sample.size, "labels": labels}

    def copy(self) -> Self:
        """Another state with the same rows."""
        made = copy.copy(self)
        made.top, made.classes = self.top.copy(), self.classes.copy()
        made.losses, made.dropped = dict(self.losses), dict(self.dropped)
        made._rows = None
        return made

    def coarser(self, resolution: int, class_resolution: int | None = None) -> Self:
        """The state at a lower resolution."""
        made = self.copy()
        made.top = made.top.coarser(resolution)
        if class_resolution is not None:
            made.classes = made.classes.coarser(class_resolution)
        return made

    # -- files ----------------------------------------------------------------------------------

    def to_table(self) -> Any:
        """One PyArrow table, whose column ``part`` distinguishes top label, classes, losses and sample."""
        need_arrow("a table of a state")

        sums = self.losses
        parts = {
            "top": self.top.to_table(),
            "class": self.classes.to_table(),
            "loss": pa.table({
                "id": list(sums), "total": [str(s.total) for s in sums.values()],
                "square": [str(s.square) for s in sums.values()], "infinite": [s.infinite for s in sums.values()],
                "minus_infinite": [s.minus_infinite for s in sums.values()],
            }) if sums else None,
            "sample": pa.table({
                "hash": self.sample.hash, "class": self.sample.y, "n": self.sample.w,
                "p": pa.FixedSizeListArray.from_arrays(pa.array(self.sample.p.ravel()), self.n_classes),
            }) if len(self.sample) else None,
        }  # fmt: skip
        tables = [
            table.replace_schema_metadata(None).append_column("part", pa.array([part] * len(table)).dictionary_encode())
            for part, table in parts.items()
            if table is not None
        ]
        return self._sealed(pa.concat_tables(tables, promote_options="permissive"))

    def _about(self) -> dict[str, Any]:
        return {
            "n_classes": self.n_classes, "resolution": self.top.resolution,
            "class_resolution": self.classes.resolution, "losses": list(self.losses), "sample": self.sample.size,
            "limit": str(self.sample.limit), "labels": None if self.labels is None else list(self.labels),
            "dropped": self.dropped, "seen": self._seen,
        }  # fmt: skip

    @classmethod
    def _of_saved(cls, table: Any, about: Mapping[str, Any]) -> Self:
        settings = ("n_classes", "resolution", "class_resolution", "losses", "sample", "labels")
        made = cls(**{name: about[name] for name in settings})
        parts = {part: _part(table, part) for part in ("top", "class", "loss", "sample")}
        columns = [name for name in ("cell", "y", "n", "s", "s_high") if name in table.column_names]
        made.top = State.of_table(parts["top"].select(columns), resolution=made.top.resolution, lens="top-label")
        made.classes = State.of_table(parts["class"].select(["class", *columns]), resolution=made.classes.resolution)
        if not set(about["losses"]) <= set(table.column("id").to_pylist() if about["losses"] else []):
            raise RefusedError("it lacks the sums of a loss that it names")
        for row in parts["loss"].to_pylist() if about["losses"] else []:
            if row["id"] not in made.losses:
                raise RefusedError(f"it holds sums of {row['id']!r}, which it does not name")
            made.losses[row["id"]] = LossSum(
                int(row["total"]), int(row["square"]), row["infinite"], row["minus_infinite"]
            )
        if len(parts["sample"]):
            made.sample = _sample_of(parts["sample"], about)
        made.dropped, made._seen = dict(about["dropped"]), about["seen"]
        return made


def _part(table: Any, part: str) -> Any:
    return table.filter(pc.equal(table.column("part").cast("string"), part))


def _sample_of(rows: Any, about: Mapping[str, Any]) -> HashedSample:
    hash, y, w = (rows.column(name).to_numpy() for name in ("hash", "class", "n"))
    lists = rows.column("p").cast(pa.list_(pa.float64(), about["n_classes"])).combine_chunks()
    values = lists.flatten().to_numpy(zero_copy_only=False)
    p = values.reshape(len(rows), about["n_classes"])
    return HashedSample(
        about["sample"], hash.astype(np.uint64), y.astype(np.int64), p, w.astype(np.int64), int(about["limit"])
    )
