"""Lenses turn a multi-class prediction into smaller ones: top-label, class-wise, pairwise, top-r, grouped classes.

A lens maps predictions to one or several views, each of which is a set of predictions again. The review calls it a
decomposition in section 2.3 and a lens in section 9.4. Full calibration implies calibration for every lens except
``true-class``, which selects rows by their label; the converse is false.

======================  =======================  ==============================  =============================
lens                    views                    label                           confidence
======================  =======================  ==============================  =============================
``binary``              one                      class 1 occurred                P(class 1)
``full``                one, K classes           the class                       the whole row
``top-label``           one                      predicted class right           largest probability
``class-wise``          one per class            class k occurred                probability of class k
``cumulative``          one per class but last   class k or an earlier one       sum up to class k
``pooled``              one, N K rows            class k occurred                probability of class k
``true-class``          one per class present    predicted class right, on rows  largest probability
                                                 whose label is k
``predicted-class``     one per class predicted  predicted class right, on rows  largest probability
                                                 predicted k
``pairwise``            one per pair a < b       a occurred, on rows with a, b   c_a / (c_a + c_b)
``rth`` (r)             one                      r-th ranked class right         r-th largest probability
``within-top-r`` (r)    one                      true class among the r largest  their sum
``ranked`` (r)          one, r + 1 classes       rank of the true class          r largest, then the rest
``partition`` (groups)  one, one class a group   group of the label              group sums
``code`` (matrix)       one per column           + side                          sum(+) / (sum(+) + sum(-))
======================  =======================  ==============================  =============================
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, one_of, suggest, whole
from calibrary.data.checks import Array, Indices, as_array, picked
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views

__all__ = ["Lens", "code_matrix"]

#: Lenses whose views are binary, so that any metric of (confidence, 0/1) pairs can be averaged over them.
BINARY_LENSES = (
    "binary", "top-label", "class-wise", "true-class", "predicted-class", "pairwise", "rth", "within-top-r", "code",
    "cumulative", "pooled",
)  # fmt: skip
#: Lenses with whole probability vectors.
VECTOR_LENSES = ("full", "ranked", "partition")
ALL_LENSES = BINARY_LENSES + VECTOR_LENSES


@dataclass(frozen=True)
class Lens:
    """A lens: which events of the predictions are evaluated. Create one with a function of this module, or by name."""

    name: str
    r: int | None = None
    groups: tuple[tuple[int, ...], ...] | None = None
    matrix: tuple[tuple[int, ...], ...] | None = None
    pair: tuple[int, int] | None = None
    then: str | None = None  # after a partition: the lens on the merged classes

    def __post_init__(self) -> None:
        if self.r is not None:
            whole("r", self.r)

    @property
    def whole_rows(self) -> bool:
        return self.name in VECTOR_LENSES

    def look(self, p: Predictions) -> Views:
        """The views of these predictions."""
        shows_itself = self.name == ("binary" if p.binary else "full")
        drops_rows = self.name in ("true-class", "predicted-class", "pairwise") or self.then is not None
        if p.parent is None or shows_itself or drops_rows:
            return self._views(p)
        return self._views_like(p, p.parent)

    def _views(self, p: Predictions) -> Views:
        return _LOOKS[self.name](_as_rows(p, self) if p.fractional or p.y.ndim == 2 else p, self)

    def _views_like(self, p: Predictions, parent: Predictions) -> Views:
        # A reweighted or relabelled copy of earlier predictions: its views share the sort order, so that a bootstrap
        # sorts once. Views that leave rows out are computed anew.
        before = parent.through(self)
        if any(view.n != parent.n for view in before.views):
            return self._views(p)
        w = p.weight_in_parent
        if w is None:
            fresh = self._views(p)
            for new, old in zip(fresh.views, before.views, strict=True):
                new.sorted_like(old)
            return fresh
        views = [view.reweighted(w, origin=p) for view in before.views]
        prevalence = before.prevalence
        if self.name == "class-wise":
            prevalence = p.class_share
        elif before.several:
            prevalence = np.array([v.total for v in views])
        return Views(tuple(views), before.keys, prevalence, before.several, before.n_classes)


# -- making lenses ----------------------------------------------------------------------------------


def as_lens(lens: str | Lens, r: int | None = None) -> Lens:
    """A lens by name; ``r`` is needed for ``rth``, ``within-top-r`` and ``ranked``."""
    if isinstance(lens, Lens):
        return lens
    if not isinstance(lens, str):
        raise RefusedCallError(f"lens={lens!r} is not valid: pass a name, or a lens from calibrary.lens")
    return _named(lens, None if r is None else whole("r", r))


def lens_name(lens: str | Lens) -> str:
    """The name of a lens in this module, from any of its synonyms; an unknown word is returned unchanged."""
    if isinstance(lens, Lens):
        return lens.name
    word = re.sub(r"[\s_-]+", "-", lens.strip().lower())
    return _SYNONYMS.get(word, word)


@functools.cache
def _named(lens: str, r: int | None) -> Lens:
    name = lens_name(lens)
    if name not in _LOOKS:
        raise RefusedError(f"lens={lens!r} is not known: {suggest(name, _LOOKS)}")
    if name in ("rth", "within-top-r", "ranked"):
        if r is None:
            raise RefusedError(f"lens={lens!r} needs r=, the rank or the number of ranks (1 is the top label)")
        return Lens(name, r=r)
    if name in ("partition", "code"):
        raise RefusedError(f"lens={lens!r} needs its groups or its matrix: pass lens=calibrary.lens.{name}(...)")
    return Lens(name)


def rth(r: int) -> Lens:
    """Whether the r-th most likely class is the true one."""
    return Lens("rth", r=whole("r", r))


def within_top_r(r: int) -> Lens:
    """Whether the true class is among the r most likely ones."""
    return Lens("within-top-r", r=whole("r", r))


def ranked(r: int) -> Lens:
    """Classes are replaced by ranks: first, ..., r-th, other."""
    return Lens("ranked", r=whole("r", r))


def pairwise(a: int | None = None, b: int | None = None) -> Lens:
    """Every pair of classes, or the one pair (a, b) with a as the positive class."""
    if a is None and b is None:
        return Lens("pairwise")
    if a is None or b is None:
        raise RefusedError(f"pairwise({a!r}, {b!r}) names one class: pass two, or none for every pair")
    pair = whole("a", a, least=0), whole("b", b, least=0)
    if pair[0] == pair[1]:
        raise RefusedError(f"pairwise({a!r}, {b!r}) names one class twice: pass two different classes")
    return Lens("pairwise", pair=pair)


def partition(groups: Sequence[Sequence[int]]) -> Lens:
    """Merge classes: ``groups`` lists the class indices of each group and contains every class once."""
    return Lens("partition", groups=tuple(tuple(int(k) for k in g) for g in groups))


def code(matrix: Any) -> Lens:
    """Sub-problems from a code matrix: rows are classes, columns sub-problems, entries +1, -1 or 0."""
    m = as_array(matrix, "matrix")
    if m.ndim == 1:
        m = m[:, None]
    if m.ndim != 2 or not np.isin(m, (-1, 0, 1)).all():
        raise RefusedError("matrix must be two-dimensional with entries -1, 0 and 1")
    for j in range(m.shape[1]):
        if not ((m[:, j] == 1).any() and (m[:, j] == -1).any()):
            raise RefusedError(f"matrix column {j} needs both a +1 and a -1")
    return Lens("code", matrix=tuple(tuple(int(v) for v in row) for row in m))


def code_matrix(n_classes: int, kind: str = "one-vs-rest") -> NDArray[np.int64]:
    """Code matrix of the one-vs-rest ("ovr") or pairwise ("pair") scheme: rows classes, columns sub-problems."""
    kind = {"ovr": "one-vs-rest", "pair": "pairwise"}.get(kind, kind) if isinstance(kind, str) else kind
    one_of("code", kind, ("one-vs-rest", "pairwise"))
    if kind == "one-vs-rest":
        return 2 * np.eye(n_classes, dtype=np.int64) - 1
    pairs = list(itertools.combinations(range(n_classes), 2))
    matrix = np.zeros((n_classes, len(pairs)), dtype=np.int64)
    for j, (a, b) in enumerate(pairs):
        matrix[a, j], matrix[b, j] = 1, -1
    return matrix


#: Other names of lenses.
_SYNONYMS = {
    "confidence": "top-label", "toplabel": "top-label", "most-likely-class": "top-label",
    "canonical": "full", "multiclass": "full", "multi-class": "full", "joint": "full", "strong": "full",
    "ovr": "class-wise", "one-vs-rest": "class-wise", "one-versus-rest": "class-wise", "one-vs-all": "class-wise",
    "one-versus-all": "class-wise", "classwise": "class-wise", "marginal": "class-wise", "static": "class-wise",
    "multilabel": "class-wise", "multi-label": "class-wise",
    "pair": "pairwise", "pair-wise": "pairwise", "comprehensive-pairwise": "pairwise", "one-vs-one": "pairwise",
    "one-versus-one": "pairwise", "ovo": "pairwise",
    "top-r": "within-top-r", "top-k": "within-top-r", "k-largest": "within-top-r",
    "k-largest-predictions": "within-top-r", "rth-most-likely": "rth",
    "fixed-partition": "partition", "code-matrix": "code",
    "ordinal": "cumulative", "token-level": "pooled", "flattened": "pooled",
}  # fmt: skip


# -- labels that are shares or rows (see label_rows) ------------------------------------------------


#: Lenses that do not depend on which class occurred; those marked need mutually exclusive classes.
_OF_ROWS = {
    "binary": True, "full": True, "within-top-r": True, "cumulative": True,
    "top-label": False, "class-wise": False, "rth": False, "pooled": False,
}  # fmt: skip


def _as_rows(p: Predictions, lens: Lens) -> Predictions:
    """Predictions with one row of labels each; an error if the lens needs the class that occurred."""
    if lens.name == "binary" and p.binary:
        return p
    if lens.name not in _OF_ROWS:
        raise RefusedError(
            f"lens={lens.name!r} needs the class that occurred, and y_true contains shares or several classes: use "
            + ", ".join(repr(name) for name in _OF_ROWS)
        )
    if _OF_ROWS[lens.name] and not p.exclusive:
        raise RefusedError(
            f"lens={lens.name!r} needs mutually exclusive classes, and these rows do not sum to one: use "
            "lens='class-wise' (or 'multilabel'), 'top-label' or 'pooled'"
        )
    return p if p.y.ndim == 2 else p.view(np.column_stack([1.0 - p.y, p.y]), p.p, classes=p.class_names)


def _label_at(p: Predictions, column: Any) -> NDArray[Any]:
    """Whether this class (of each row, or of all rows) occurred. For rows of labels: the share of this class."""
    if p.y.ndim == 1:
        return (p.y == column).astype(np.intp)
    return np.ascontiguousarray(p.y[:, column]) if np.ndim(column) == 0 else picked(p.y, column)


def _label_up_to(p: Predictions, k: int) -> NDArray[Any]:
    return np.asarray((p.y <= k).astype(np.intp) if p.y.ndim == 1 else np.minimum(p.y[:, : k + 1].sum(axis=1), 1))


# -- the views of each lens -------------------------------------------------------------------------


def _binary(p: Predictions, lens: Lens) -> Views:
    if p.binary:
        return Views((p,))
    if p.k != 2:
        raise RefusedError(
            f"lens='binary' needs one probability or two columns and y_prob has {p.k}: "
            "use lens='top-label' or lens='class-wise'"
        )
    y = p.y if p.y.ndim == 1 else _label_at(p, 1)
    return Views((p.view(y, np.ascontiguousarray(p.probability[:, 1]), classes=p.class_names),))


def _full(p: Predictions, lens: Lens) -> Views:
    return Views((p.view(p.y, p.p, classes=p.class_names) if p.binary else p,))


def _top(p: Predictions) -> tuple[NDArray[Any], Array]:
    if p.binary:
        confidence = np.maximum(p.probability, 1.0 - p.probability)
    else:  # selected by index, without another search
        confidence = picked(p.probability, p.top)
    return _label_at(p, p.top), confidence


def _top_label(p: Predictions, lens: Lens) -> Views:
    return Views((p.view(*_top(p)),))


def _class_wise(p: Predictions, lens: Lens) -> Views:
    columns = _by_column(p.p)
    views = tuple(p.view(_label_at(p, k), columns[k]) for k in range(p.k))
    return Views(views, tuple(range(p.k)), p.class_share, True, p.k)


def _by_column(matrix: Array, block: int = 2048) -> Array:
    # transposed in blocks that fit the processor's cache: half the time of a plain copy of matrix.T
    columns = np.empty(matrix.shape[::-1])
    for first in range(0, len(matrix), block):
        columns[:, first : first + block] = matrix[first : first + block].T
    return columns


def _cumulative(p: Predictions, lens: Lens) -> Views:
    columns = _by_column(np.minimum(np.cumsum(p.p, axis=1), 1.0))
    views = tuple(p.view(_label_up_to(p, k), columns[k]) for k in range(p.k - 1))
    return Views(views, tuple(range(p.k - 1)), np.full(p.k - 1, p.total), True, p.k - 1)


def _pooled(p: Predictions, lens: Lens) -> Views:
    row = np.repeat(np.arange(p.n), p.k)
    occurred = p.y if p.y.ndim == 2 else (p.y[:, None] == np.arange(p.k)).astype(np.intp)
    return Views((p.subset(row, occurred.ravel(), p.p.ravel()),))


def _by_class(p: Predictions, lens: Lens) -> Views:
    """The rows of each true, or predicted, class."""
    (correct, confidence), classes = _top(p), p.y if lens.name == "true-class" else p.top
    rows_of = {k: rows for k in range(p.k) if len(rows := np.flatnonzero(classes == k))}
    views = {k: p.subset(rows, correct[rows], confidence[rows]) for k, rows in rows_of.items()}
    return _apart(views, p.k)


def _apart(views: Mapping[Any, Predictions], n_classes: int, several: bool = True) -> Views:
    """Views of different rows, by their keys."""
    totals = np.array([view.total for view in views.values()])
    return Views(tuple(views.values()), tuple(views), totals, several, n_classes)


def _rows_of_classes(p: Predictions) -> list[Indices]:
    """The rows of every class, found by one sort: with many classes, a search for each class would cost far more."""
    order = np.argsort(p.y, kind="stable")
    return np.split(order, np.searchsorted(p.y[order], np.arange(1, p.k)))


def _pairs_with_rows(rows_of: list[Indices]) -> Iterator[tuple[int, int]]:
    """The pairs a < b that have rows, one by one."""
    seen = [k for k, rows in enumerate(rows_of) if len(rows)]
    for a, rows in enumerate(rows_of):
        others = range(a + 1, len(rows_of)) if len(rows) else seen[bisect.bisect(seen, a) :]
        yield from ((a, b) for b in others)


def _pairwise(p: Predictions, lens: Lens) -> Views:
    views = {}
    if lens.pair is not None and max(lens.pair) >= p.k:
        raise RefusedError(f"pairwise{lens.pair} names class {max(lens.pair)}, and classes are 0..{p.k - 1}")
    rows_of = _rows_of_classes(p)
    for a, b in _pairs_with_rows(rows_of) if lens.pair is None else [lens.pair]:
        rows = np.sort(np.concatenate((rows_of[a], rows_of[b])))
        first = p.p[rows, a]
        both = first + p.p[rows, b]
        if not (both > 0).all():
            rows, first, both = rows[both > 0], first[both > 0], both[both > 0]
        if len(rows):
            views[a, b] = p.subset(rows, (p.y[rows] == a).astype(np.intp), first / both)
    if not views:
        raise RefusedError("lens='pairwise': no row belongs to a pair of classes")
    return _apart(views, len(views), lens.pair is None)


def _rank_order(p: Predictions, lens: Lens) -> tuple[Indices, int]:
    """The classes of each row from the most likely on, and how many ranks the lens asks for."""
    r = int(lens.r or 0)
    if not 1 <= r <= p.k:
        raise RefusedError(f"r={r} is outside 1..{p.k}, the number of classes")
    # stable sort of -probability: equal probabilities are ranked by class index
    return np.argsort(-p.p, axis=1, kind="stable"), r


def _rth(p: Predictions, lens: Lens) -> Views:
    order, r = _rank_order(p, lens)
    ranked_class = order[:, r - 1]
    confidence = np.take_along_axis(p.p, ranked_class[:, None], axis=1)[:, 0]
    return Views((p.view(_label_at(p, ranked_class), confidence),))


def _within_top_r(p: Predictions, lens: Lens) -> Views:
    order, r = _rank_order(p, lens)
    top = order[:, :r]
    hit = np.add.reduce([_label_at(p, top[:, j]) for j in range(r)])
    if r == p.k:  # the sum is one by definition; its rounded value would leave 1e-17
        return Views((p.view(hit, np.ones(p.n)),))
    confidence = np.minimum(np.take_along_axis(p.p, top, axis=1).sum(axis=1), 1.0)
    return Views((p.view(hit, confidence),))


def _ranked(p: Predictions, lens: Lens) -> Views:
    order, r = _rank_order(p, lens)
    largest = np.take_along_axis(p.p, order[:, :r], axis=1)
    rest = np.maximum(1.0 - largest.sum(axis=1), 0.0)
    rank = np.minimum((order == p.y[:, None]).argmax(axis=1), r)
    names = (*(f"rank {i + 1}" for i in range(r)), "other")
    return Views((p.view(rank, np.column_stack([largest, rest]), classes=names),))


def _partition(p: Predictions, lens: Lens) -> Views:
    groups = lens.groups or ()
    if sorted(k for g in groups for k in g) != list(range(p.k)):
        raise RefusedError(f"groups={list(map(list, groups))} must contain every class 0..{p.k - 1} exactly once")
    if len(groups) < 2:
        raise RefusedError("groups must contain at least two groups of classes")
    sums = np.minimum(np.column_stack([p.p[:, list(g)].sum(axis=1) for g in groups]), 1.0)
    member = np.empty(p.k, dtype=np.intp)
    for j, group in enumerate(groups):
        member[list(group)] = j
    names: tuple[Hashable, ...] = tuple("+".join(str(p.classes[k]) for k in g) for g in groups)
    merged = p.view(member[p.y], sums, classes=names)
    return Views((merged,)) if lens.then is None else merged.through(Lens(lens.then))


def _code(p: Predictions, lens: Lens) -> Views:
    matrix = np.array(lens.matrix)
    if len(matrix) != p.k:
        raise RefusedError(f"matrix has {len(matrix)} rows and there are {p.k} classes: pass one row per class")
    views = {}
    for j in range(matrix.shape[1]):
        column = matrix[:, j]
        plus = p.p[:, column == 1].sum(axis=1)
        both = plus + p.p[:, column == -1].sum(axis=1)
        side = column[p.y]
        rows = np.flatnonzero((side != 0) & (both > 0))
        if len(rows):
            confidence = np.minimum(plus[rows] / both[rows], 1.0)
            views[j] = p.subset(rows, (side[rows] == 1).astype(np.intp), confidence)
    if not views:
        raise RefusedError("lens='code': no row belongs to a column of the matrix")
    return _apart(views, matrix.shape[1], matrix.shape[1] > 1)


_LOOKS: dict[str, Callable[[Predictions, Lens], Views]] = {
    "binary": _binary,
    "full": _full,
    "top-label": _top_label,
    "class-wise": _class_wise,
    "cumulative": _cumulative,
    "pooled": _pooled,
    "true-class": _by_class,
    "predicted-class": _by_class,
    "pairwise": _pairwise,
    "rth": _rth,
    "within-top-r": _within_top_r,
    "ranked": _ranked,
    "partition": _partition,
    "code": _code,
}


def __dir__() -> list[str]:
    return sorted(__all__)
