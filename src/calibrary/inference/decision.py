"""Is it calibrated? One decision from few statistics fixed in advance, whatever a table of ninety metrics shows.

All of them are sums of residuals y - c, so that a redraw of the labels costs one pass:

=============  ============================================  ==================================================
statistic      what it sums                                  what it sees
=============  ============================================  ==================================================
smooth         |residuals smoothed by a Gaussian|            a place on the scale where the probabilities err
slope          residual times log odds, given the mean       probabilities too extreme or too timid (Cox)
mean           residual                                      probabilities too high or too low on the whole
spiegelhalter  residual times 1 - 2c                         more or less sure than right
classes        the largest residual of a class               a class predicted more or less often than it occurs
=============  ============================================  ==================================================

The last belongs to several classes, where the others read the predicted class. The largest of them, each in its own
standard deviations, is compared with the largest on labels redrawn from the predictions (max-T), and names the defect.
Where rows belong together (units, blocks, the images of detections) the residuals of whole units are flipped instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary._errors import warn
from calibrary.data import Data
from calibrary.data.checks import Array, Indices
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.data.sample import ImageSample, UnitSample, in_units, sample_of
from calibrary.data.views import Views
from calibrary.inference.multiplicity import step_down_max_t
from calibrary.inference.resampling import alpha_of, check_draws, check_level
from calibrary.lookup import catalogue
from calibrary.maps.base import logit
from calibrary.metrics.declare import Result
from calibrary.numerics.cells import Grid
from calibrary.numerics.laws.coupled import coupled_counts
from calibrary.question import Question

#: A decision is never made with fewer redraws: they cost little, and p-values below .005 need them.
LEAST_DRAWS = 999
#: The smooth error: places on the scale, and the width of the Gaussian.
PLACES, WIDTH = 100, 0.08
#: Above so many different confidences (or units) they are drawn in cells (or together).
_MOST_DRAWN = 20_000
#: Cells of 1/400: each lies in one place of the smooth error.
_GRID = Grid(400)
#: Numbers drawn at a time.
_AT_ONCE = 4_000_000
_FEW_UNITS = 30
#: A range or class with fewer units than this has too few signs for a bound.
_LEAST_UNITS = 8
#: What would be found: how often, and by how many samples that is estimated.
_POWER, _POWER_DRAWS = 0.8, 299
#: The plainest first: for rare events Spiegelhalter's z is nearly the mean, and "too low" says more than "too sure".
_PLAIN, _AS_STRONG = ("mean", "slope", "classes", "smooth", "spiegelhalter"), 0.9
#: Up to so many classes it shows that they exclude each other.
_FEW_CLASSES = 30

_LINEAR = ("slope", "mean", "spiegelhalter")
_NAMES = {
    "smooth": "smooth error", "slope": "slope", "mean": "mean", "spiegelhalter": "Spiegelhalter's z",
    "classes": "class bias",
}  # fmt: skip
NOT_CALIBRATED, NO_EVIDENCE = "Not calibrated", "No evidence of miscalibration"


@dataclass(frozen=True)
class DecisionRow(Result):
    """One of the statistics that decide.

    Attributes
    ----------
    id, name : "smooth", "slope", "mean", "spiegelhalter" or "classes", and in words
    value : the smooth error and the mean residual in units of probability; z for slope and Spiegelhalter (above 0:
        too timid; too sure); the largest standardized residual of a class
    standardized : distance from the mean over the redraws, in their standard deviations
    pvalue, pvalue_adjusted : by itself, and among the statistics that decide
    law_pvalue : by the normal law, which knows no smallest value; NaN for those that have none
    """

    id: str
    name: str
    value: float
    standardized: float
    pvalue: float
    pvalue_adjusted: float
    law_pvalue: float


@dataclass(frozen=True)
class Decision(Result):
    """Whether the predictions are calibrated, as far as the data can tell.

    Attributes
    ----------
    calibrated : "Not calibrated" or "No evidence of miscalibration": the words a headline starts with
    rejected : the same as a bool
    pvalue, pvalue_text : of the whole set, and as it is printed ("p < .005" where no redraw came near)
    decisive : the id of the statistic that is furthest from chance
    defect : what that means, where it is rejected: "where", "spread", "direction", "too sure", "not sure enough" or
        "class bias"; else ""
    rows : one for each statistic, in a fixed order
    n_resamples, level, lens : redraws, confidence level, how several classes were looked at ("detections" for matches)
    path : what was drawn: "rows", "cells" of nearly equal confidence, or "units" with all their rows
    worst_class : the class of the largest residual, where there are several
    impossible : cases of probability exactly 0 or 1 that came out otherwise, which calibration excludes (but rounding
        does not: they are reported and do not decide by themselves)
    detectable : where nothing was found: how far off probabilities must be on average, by being too extreme, to be
        found out in 4 of 5 such samples; infinite if none would be; NaN where rejected, or rows belong together
    """

    calibrated: str
    rejected: bool
    pvalue: float
    pvalue_text: str
    decisive: str
    defect: str
    rows: tuple[DecisionRow, ...]
    n_resamples: int
    level: float
    lens: str
    path: str
    worst_class: str = ""
    impossible: float = 0.0
    detectable: float = math.nan

    def row(self, id: str) -> DecisionRow:
        """The row of one statistic."""
        for row in self.rows:
            if row.id == id:
                return row
        raise KeyError(f"{id!r} did not decide here: {', '.join(row.id for row in self.rows)} did")


def decide(data: Data, question: Question, *, units: Any = None, blocks: Any = None) -> Decision:
    """One decision about calibration: the set of statistics above, by max-T over the same redrawn labels.

    Parameters
    ----------
    data : Predictions or Matches
        What was measured.
    question : Question
        ``lens``, ``confidence_level``, ``weight_type``, ``rng``; ``n_resamples`` below 999 is raised to it.
    units : array-like of shape (N,), optional
        Rows of one patient, user or document belong together.
    blocks : int or True, optional
        Rows are in time order: length of the runs that belong together.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.inference import decide
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> answer = decide(cal.predictions(y, p), cal.Question(rng=0))
    >>> answer.calibrated, answer.pvalue_text
    ('Not calibrated', 'p < .005')
    """
    level = check_level(question.confidence_level)
    n_resamples = check_draws(max(int(question.n_resamples), LEAST_DRAWS), alpha_of(level))
    look = look_at(data, question, units, blocks)
    rng = np.random.default_rng(question.rng)
    null, path = _null(look, n_resamples, rng)
    read = _Reading(look, null.spread)
    observed, redrawn = look.observed, list(null.draws)
    drawn = np.vstack([read(sums) for sums in redrawn])
    pattern = read.pattern(observed.places[0], np.vstack([sums.places for sums in redrawn]))
    decision = _decided(look, read, read(observed)[0], drawn, pattern, level, path)
    if decision.rejected or look.unit is not None or not decision.decisive:
        return decision
    return replace(decision, detectable=_detectable(look, read, drawn, alpha_of(level), rng))


def headline_view(p: Predictions, question: Question) -> tuple[Predictions, str]:
    """The one binary view that decision, sentences and figures are about, and its lens."""
    views, lens = _one_view(p, question)
    return views.views[0], lens


def _one_view(p: Predictions, question: Question) -> tuple[Views, str]:
    """What the question's lens shows if that is one binary view, else the top label."""
    usual = "binary" if p.k == 2 else "top-label"
    lens = as_lens(usual) if question.lens == "auto" else as_lens(question.lens, question.r)
    views = p.through(lens)
    if views.several or not views.views[0].binary:
        lens = as_lens("top-label")
        views = p.through(lens)
    return views, lens.name


# -- what is summed -----------------------------------------------------------------------------------


class _Sums(NamedTuple):
    """Sums of residuals, one row for each redraw: by place, with the linear weights, and of each class (or None)."""

    places: Array
    linear: Array
    classes: Array | None


@dataclass(frozen=True)
class _Classes:
    """Sums over rows of each class: occurred, expected, and of squares; ``scale`` is what one case weighs."""

    names: tuple[Any, ...]
    occurred: Array
    expected: Array
    variance: Array
    scale: Array

    @property
    def trials(self) -> Array:
        """Trials of the binomial law with the same mean and variance, in cases."""
        mean, variance = self.expected / self.scale, self.variance / self.scale**2
        with np.errstate(divide="ignore", invalid="ignore"):
            n = mean / np.maximum(1.0 - variance / mean, 1e-9)
        return np.where(mean > 0.0, np.maximum(np.rint(n), np.ceil(mean)), 1.0)


@dataclass(frozen=True)
class Look:
    """The rows that decide.

    Attributes
    ----------
    view, lens : the one binary view, and how it was made
    c, w, v : confidence, weight, and the weight that enters variances
    unit : what belongs together; None: each row by itself
    p, classes : the predictions of all classes and their sums, where there are several
    importance : are weights how much a row counts, rather than copies?
    """

    view: Predictions
    lens: str
    c: Array
    w: Array
    v: Array
    unit: Indices | None
    p: Predictions | None
    classes: _Classes | None
    importance: bool

    @property
    def residual(self) -> Array:
        result: Array = self.w * (self.view.y - self.c)
        return result

    @property
    def total(self) -> float:
        return float(self.w.sum())

    @property
    def spread(self) -> Array:
        """Variance of each row's label."""
        result: Array = self.c * (1.0 - self.c)
        return result

    @property
    def design_effect(self) -> float:
        """How many times more the sum of all residuals varies by unit than it would by row."""
        assert self.unit is not None
        return float((np.bincount(self.unit, self.residual) ** 2).sum()) / (float(self.v @ self.spread) or 1.0)

    @property
    def place(self) -> Indices:
        return _place(self.c)

    @property
    def lean(self) -> Array:
        """The weights of slope, mean and Spiegelhalter, one column each."""
        inside = (self.c > 0.0) & (self.c < 1.0)
        odds = np.where(inside, logit(np.where(inside, self.c, 0.5)), 0.0)
        weight = self.v * self.spread
        middle = float(weight @ odds) / (weight.sum() or 1.0)
        # rows of probability 0 or 1 have no log odds: like Cox's slope, this one leaves them out
        slope = np.where(inside, odds - middle, 0.0)
        return np.column_stack([slope, np.ones_like(self.c), 1.0 - 2.0 * self.c])

    @property
    def observed(self) -> _Sums:
        r = self.residual
        places: Array = np.bincount(self.place, r, minlength=PLACES).astype(np.float64)
        classes = None if self.classes is None else (self.classes.occurred - self.classes.expected)[None]
        return _Sums(places[None], (r @ self.lean)[None], classes)


def _place(c: Array) -> Indices:
    return np.minimum((c * PLACES).astype(np.intp), PLACES - 1)


def look_at(data: Data, question: Question, units: Any, blocks: Any) -> Look:
    """The one binary view with its weights and units."""
    importance = question.weight_type == "importance"
    sample = in_units(sample_of(data, question.weight_type), units, blocks)
    if isinstance(sample, ImageSample):
        return _of_images(sample, importance)
    p = sample.p
    views, lens = _one_view(p, question)
    # rows of a state that differ in their label only have one confidence: so do cumulative metrics read them
    view = views.read_by(catalogue["ecce_mad"], {}).views[0]
    v = view.variance_weight(question.weight_type, "the decision")
    unit = sample.unit if isinstance(sample, UnitSample) else None
    if lens == "pooled":  # the classes of a row belong together
        case = np.repeat(np.arange(p.n), p.k)
        unit = case if unit is None else unit[case]
    elif unit is None and (view.fractional or p.y.ndim == 2):
        unit = np.arange(view.n)  # labels that are shares, or several a row, cannot be drawn: they are flipped
    classes = _classes(p, view, importance) if lens == "top-label" and p.y.ndim == 1 and not p.fractional else None
    return Look(view, lens, view.c, view.weight, v, unit, p if classes else None, classes, importance)


def _of_images(sample: ImageSample, importance: bool) -> Look:
    """Was a detection right, and how sure was it? Detections of an image belong together; copies of one do not."""
    view, image = sample.p, sample.found.image
    if view.w is None or importance:
        return Look(view, "detections", view.c, view.weight, view.weight**2, image, None, None, importance)
    copies = view.counts("the decision")
    row = np.repeat(np.arange(view.n), copies)
    copy = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    unit = np.unique(np.column_stack([image[row], copy]), axis=0, return_inverse=True)[1].ravel()
    written = Predictions(view.y[row], view.c[row])
    return Look(written, "detections", written.c, written.weight, written.weight, unit, None, None, False)


def _classes(p: Predictions, view: Predictions, importance: bool) -> _Classes | None:
    """How often each class occurred, and how often it was expected."""
    if p.n_predictions != p.n or abs(view.total - p.total) > 1e-9 * p.total:  # a state: its classes were kept apart
        views = p.through(as_lens("class-wise")).views
        if len(views) != p.k or any(abs(one.total - view.total) > 1e-9 * view.total for one in views):
            return None
        sums = [(one.sum(one.y), one.sum(one.c), one.sum(one.c * (1.0 - one.c))) for one in views]
        occurred, expected, variance = (np.array(column, dtype=np.float64) for column in zip(*sums, strict=True))
        return _Classes(p.classes, occurred, expected, variance, np.ones(p.k))
    w = p.weight
    occurred, expected = p.class_share * p.total, w @ p.p
    squares = expected - np.einsum("n,nk,nk->k", w, p.p, p.p)
    if not importance:
        return _Classes(p.classes, occurred, expected, squares, np.ones(p.k))
    variance = w**2 @ p.p - np.einsum("n,nk,nk->k", w**2, p.p, p.p)
    scale = np.where(squares > 0.0, variance / np.where(squares > 0.0, squares, 1.0), 1.0)
    return _Classes(p.classes, occurred, expected, variance, scale)


# -- from sums to statistics --------------------------------------------------------------------------


class _Reading:
    """The statistics of sums: columns smooth, slope, mean, Spiegelhalter, and classes where there are several."""

    def __init__(self, look: Look, spread: tuple[Array, Array] | None) -> None:
        self.total = look.total
        self.kernel = _reflected_gaussian()
        self.classes = look.classes
        own = np.sqrt((look.v * look.spread) @ look.lean**2)
        # with units, the spread of the flipped sums; by rows, what calibrated labels have
        self.sd: Array = own if spread is None else spread[0]
        self.class_sd: Array | None = None if spread is None else spread[1]
        self.ids = ("smooth", *_LINEAR, *(() if look.classes is None else ("classes",)))
        self.tails = ["greater", *("two-sided" for _ in _LINEAR), *("greater" for _ in self.ids[4:])]

    def __call__(self, sums: _Sums) -> Array:
        smooth = np.abs(sums.places @ self.kernel).sum(axis=1) / self.total
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(self.sd > 1e-9 * math.sqrt(self.total), sums.linear / self.sd, np.nan)
        columns = [smooth[:, None], z]
        if sums.classes is not None:
            columns.append(np.abs(self.of_classes(sums.classes)).max(axis=1, initial=0.0)[:, None])
        return np.hstack(columns)

    def pattern(self, observed: Array, drawn: Array) -> float:
        """The sum over places with the signs that the data show, in standard deviations of the same sum redrawn."""
        signs = self.kernel @ np.sign(observed @ self.kernel)
        spread = float((drawn @ signs).std(ddof=1))
        return float(observed @ signs) / spread if spread > 0.0 else math.inf

    def of_classes(self, residual: Array) -> Array:
        """The residual of each class in standard deviations, also where a class is rare.

        By rows it is the signed root of the deviance from the binomial law of the same mean and variance: one case
        of a class that was expected .01 times is 2.7, where the plain residual would be 10 and drown all others.
        """
        assert self.classes is not None
        if self.class_sd is not None:
            return np.where(self.class_sd > 0.0, residual / np.where(self.class_sd > 0.0, self.class_sd, 1.0), 0.0)
        n, e = self.classes.trials, self.classes.expected / self.classes.scale
        o = np.clip(residual / self.classes.scale + e, 0.0, n)
        xlogy = scipy.special.xlogy
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = 2.0 * (xlogy(o, o / e) + xlogy(n - o, (n - o) / (n - e)))
        possible = (e > 0.0) & (n > e)
        return np.where(possible, np.sign(o - e) * np.sqrt(np.maximum(np.where(possible, deviance, 0.0), 0.0)), 0.0)


def _reflected_gaussian() -> Array:
    """What a residual at each place (row) adds to every place (column): a Gaussian, reflected at 0 and 1."""
    x = (np.arange(PLACES) + 0.5) / PLACES
    images = [x, -x, 2.0 - x, x - 2.0, x + 2.0]
    kernel: Array = sum((np.exp(-0.5 * ((x[:, None] - at) / WIDTH) ** 2) for at in images), np.zeros((PLACES, PLACES)))
    result: Array = kernel / kernel.sum(axis=1, keepdims=True)
    return result


# -- redraws -----------------------------------------------------------------------------------------


class _Null(NamedTuple):
    """Redrawn sums a few at a time, and their spread where it is not that of labels drawn one by one."""

    draws: Iterator[_Sums]
    spread: tuple[Array, Array] | None = None


def _null(look: Look, n_resamples: int, rng: np.random.Generator) -> tuple[_Null, str]:
    """The redraws and what is drawn in them."""
    if look.unit is not None:
        return _flips(look, n_resamples, rng), "units"
    if look.classes is None:
        atoms = _atoms(look)
        return _Null(_counts(atoms, n_resamples, rng)), atoms.path
    copies = 1 if look.importance else look.w.sum() / len(look.w)
    if look.p is not None and look.p.n == look.view.n and look.p.n * copies <= _MOST_DRAWN:
        return _Null(_labels(look, n_resamples, rng)), "rows"
    atoms = _atoms(look)
    return _Null(_with_class_counts(look, _counts(atoms, n_resamples, rng), rng)), atoms.path


@dataclass(frozen=True)
class _Atoms:
    """Rows of one confidence (or cell), ascending: copies, weight of a copy, probability, linear weights."""

    n: NDArray[np.int64]
    weight: Array
    q: Array
    lean: Array
    path: str


def _atoms(look: Look) -> _Atoms:
    order = np.argsort(look.c, kind="stable")
    c, w, lean = look.c[order], look.w[order], look.lean[order]
    if look.importance:
        if len(c) <= _MOST_DRAWN:
            return _Atoms(np.ones(len(c), dtype=np.int64), w, c, lean, "rows")
    else:
        first = np.flatnonzero(np.concatenate(([True], c[1:] != c[:-1])))
        if len(first) <= _MOST_DRAWN:
            copies = np.rint(np.add.reduceat(w, first)).astype(np.int64)
            return _Atoms(copies, np.ones(len(first)), c[first], lean[first], "rows")
    cell = _GRID.locate(c)[0]
    first = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
    total, square = np.add.reduceat(w, first), np.add.reduceat(look.v[order], first)
    q = np.add.reduceat(w * c, first) / total
    pull = look.v[order] * c * (1.0 - c)
    pulled = np.add.reduceat(pull, first)
    leaning = np.add.reduceat(pull[:, None] * lean, first, axis=0) / np.where(pulled > 0.0, pulled, 1.0)[:, None]
    # weights that are no counts: as many cases as have the same variance
    n = np.maximum(np.rint(total**2 / square if look.importance else total), 1.0)
    return _Atoms(n.astype(np.int64), total / n, np.clip(q, 0.0, 1.0), leaning, "cells")


def _counts(atoms: _Atoms, n_resamples: int, rng: np.random.Generator, truth: Array | None = None) -> Iterator[_Sums]:
    """Labels drawn from the confidences (or from other probabilities), counted for each atom."""
    q = atoms.q if truth is None else truth
    place = _place(atoms.q)
    first = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
    single = np.flatnonzero(atoms.n == 1)
    several = np.flatnonzero(atoms.n > 1)
    lean = atoms.weight[:, None] * atoms.lean
    for size in _chunks(n_resamples, len(atoms.q)):
        events = np.empty((size, len(atoms.q)))
        events[:, single] = rng.random((size, len(single))) < q[single]
        events[:, several] = rng.binomial(atoms.n[several], q[several], (size, len(several)))
        residual = events - atoms.n * atoms.q
        places = np.zeros((size, PLACES))
        places[:, place[first]] = np.add.reduceat(residual * atoms.weight, first, axis=1)
        yield _Sums(places, residual @ lean, None)


def _labels(look: Look, n_resamples: int, rng: np.random.Generator) -> Iterator[_Sums]:
    """Classes drawn from whole rows of probabilities, each copy by itself."""
    assert look.p is not None
    assert look.classes is not None
    p = look.p
    order = np.lexsort([*p.p.T[:8], p.top, look.c])  # so that the order of the rows does not matter
    if not look.importance:
        order = np.repeat(order, np.rint(look.w[order]).astype(np.intp))
    w = look.w[order] if look.importance else np.ones(len(order))
    c, top, k = look.c[order], p.top[order], p.k
    lean, place = w[:, None] * look.lean[order], _place(c)
    first = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
    row = np.arange(len(order))
    upto = np.minimum(np.cumsum(p.p[order], axis=1), 1.0)
    upto[:, -1] = 1.0
    ends = (upto + row[:, None]).ravel()
    for size in _chunks(n_resamples, len(order)):
        u = rng.random((size, len(order))) + row
        label = np.minimum(np.searchsorted(ends, u.ravel(), side="right").reshape(u.shape) - k * row, k - 1)
        residual = (label == top).astype(np.float64) - c
        places = np.zeros((size, PLACES))
        places[:, place[first]] = np.add.reduceat(residual * w, first, axis=1)
        code = (label + k * np.arange(size)[:, None]).ravel()
        counts = np.bincount(code, np.tile(w, size), minlength=size * k).reshape(size, k)
        yield _Sums(places, residual @ lean, counts - look.classes.expected)


def _with_class_counts(look: Look, sums: Iterator[_Sums], rng: np.random.Generator) -> Iterator[_Sums]:
    """Large samples: how often each class occurs is drawn from the binomial law of its mean and variance.

    Classes exclude each other, which shows where there are few: their counts are then drawn as correlated as they are.
    """
    assert look.classes is not None
    classes = look.classes
    n = classes.trials
    q = np.clip(classes.expected / classes.scale / n, 0.0, 1.0)
    root = _root_of_correlation(look)
    for some in sums:
        z = rng.standard_normal((len(some.linear), len(q))) @ root
        counts = coupled_counts(scipy.special.ndtr(z), z, n, q)
        yield some._replace(classes=classes.scale * (counts - n * q))


def _root_of_correlation(look: Look) -> Array:
    """A matrix that gives independent normal numbers the correlations of the classes' residuals."""
    p = look.p
    assert p is not None
    if p.k > _FEW_CLASSES or p.n != look.view.n:
        return np.eye(p.k)
    covariance = -(p.p * look.v[:, None]).T @ p.p
    covariance[np.diag_indices(p.k)] += look.v @ p.p
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    values, vectors = np.linalg.eigh(covariance / np.where(sd > 0.0, np.outer(sd, sd), 1.0))
    root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return root


def _flips(look: Look, n_resamples: int, rng: np.random.Generator) -> _Null:
    """The residuals of whole units with random signs."""
    assert look.unit is not None
    n = int(look.unit.max()) + 1
    if n < _FEW_UNITS:
        warn(f"there are {n} units only: below {_FEW_UNITS} the decision is rough")
    unit = look.unit % _MOST_DRAWN  # many units: some share a sign, which is as good
    n = min(n, _MOST_DRAWN)
    r, own = look.residual, look.v * look.spread
    every = scipy.sparse.csr_array((r, (unit, look.place)), shape=(n, PLACES))
    places = every * _widened(every.power(2).sum(axis=0), np.bincount(look.place, own, PLACES).astype(np.float64), look)
    flat = np.column_stack([np.bincount(unit, r * column, minlength=n) for column in look.lean.T])
    linear = flat * _widened((flat**2).sum(axis=0), own @ look.lean**2, look)
    classes = None
    if look.classes is not None:
        classes = _of_classes_by_unit(look, unit, n)
        classes = classes * _widened((classes**2).sum(axis=0), look.classes.variance, look)

    def draws() -> Iterator[_Sums]:
        for size in _chunks(n_resamples, n):
            signs = 2.0 * rng.integers(0, 2, (size, n)) - 1.0
            yield _Sums(signs @ places, signs @ linear, None if classes is None else signs @ classes)

    of_classes = np.empty(0) if classes is None else np.sqrt((classes**2).sum(axis=0))
    return _Null(draws(), (np.sqrt((linear**2).sum(axis=0)), of_classes))


def _widened(flipped: Array, own: Array, look: Look) -> Array:
    """By how much flipped sums must be stretched to vary at least as much as labels of calibrated units would.

    Where nearly every prediction is right, residuals are many and small but for a rare large one; a sample without any
    of those has small residuals only, and signs alone would make them look certain. ``own`` is the variance of
    independent labels; that of units is larger by the design effect, which all rows together show.
    """
    if look.view.fractional:  # shares vary less than labels do
        return np.ones_like(flipped)
    least = max(look.design_effect, 1.0) * own
    short = (flipped > 0.0) & (flipped < least)
    return np.where(short, np.sqrt(least / np.where(short, flipped, 1.0)), 1.0)


def _of_classes_by_unit(look: Look, unit: Indices, n: int) -> Array:
    """The residual of each class in each unit."""
    p = look.p
    assert p is not None
    member = scipy.sparse.csr_array((p.weight, (unit, np.arange(p.n))), shape=(n, p.n))
    result: Array = member @ ((p.y[:, None] == np.arange(p.k)) - p.p)
    return result


def _chunks(n_resamples: int, numbers: int) -> Iterator[int]:
    """Redraws at a time, so that memory stays small."""
    size = max(1, _AT_ONCE // max(numbers, 1))
    for done in range(0, n_resamples, size):
        yield min(size, n_resamples - done)


# -- what would be found -----------------------------------------------------------------------------


def _detectable(look: Look, read: _Reading, null: Array, alpha: float, rng: np.random.Generator) -> float:
    """The mean error, by probabilities too extreme, at which the decision has a power of 4 in 5."""
    atoms = _atoms(look)
    tails = np.array(read.tails)
    center, spread = null.mean(axis=0), null.std(axis=0, ddof=1)
    tested = spread > 0.0

    def largest(table: Array) -> Array:
        z = (table - center)[:, tested] / spread[tested]
        result: Array = np.where(tails[tested] == "two-sided", np.abs(z), z).max(axis=1)
        return result

    bound = np.quantile(largest(null), 1.0 - alpha)
    odds = logit(np.clip(atoms.q, 1e-12, 1.0 - 1e-12))
    copies = atoms.n * atoms.weight

    def truth(t: float) -> Array:
        bent = scipy.special.expit(odds / (1.0 + t))
        return np.where((atoms.q > 0.0) & (atoms.q < 1.0), bent, atoms.q)

    def power(t: float) -> float:
        table = np.vstack([read(sums) for sums in _counts(atoms, _POWER_DRAWS, rng, truth(t))])
        if table.shape[1] < null.shape[1]:  # classes are drawn from whole rows: as if they were calibrated
            table = np.hstack([table, null[rng.integers(0, len(null), len(table)), 4:]])
        return float((largest(table) > bound).mean())

    low, high = 0.0, 0.25
    while power(high) < _POWER:
        low, high = high, 2.0 * high
        if high > 64.0:
            return math.inf
    for _ in range(5):
        middle = (low + high) / 2.0
        low, high = (low, middle) if power(middle) >= _POWER else (middle, high)
    return float(copies @ np.abs(truth(high) - atoms.q)) / float(copies.sum())


# -- ranges and classes ------------------------------------------------------------------------------


def beyond_chance(
    look: Look, member: NDArray[np.intp] | None, alpha: float, rng: Any = 0
) -> tuple[NDArray[np.bool_], Array, Array, Array]:
    """Which groups of rows (or classes, if ``member`` is None) err by more than chance, all of them at once.

    By rows the bound is exact: a sum of independent labels is beyond a count no more often than the binomial law of
    their mean probability says (Hoeffding), here at alpha / (2 groups) on either side. With units it is the largest
    standardized residual when the residuals of whole units are flipped.

    Returns
    -------
    beyond, size, confidence, frequency : for each group
    """
    size, expected, occurred, scale = _groups(look, member)
    count = np.where(size > 0.0, size, 1.0)
    if look.unit is None:
        beyond = _beyond_binomial(occurred / scale, expected / scale, size / scale, alpha / max(len(size), 1))
    else:
        beyond = _beyond_flips(look, member, len(size), alpha, rng)
    return beyond & (size > 0.0), size, expected / count, occurred / count


def _groups(look: Look, member: NDArray[np.intp] | None) -> tuple[Array, Array, Array, Array]:
    """Total weight, expected and occurred of each group, and what one case weighs there."""
    if member is None:
        assert look.classes is not None
        classes = look.classes
        return np.full(len(classes.expected), look.total), classes.expected, classes.occurred, classes.scale
    n = int(member.max()) + 1

    def total(x: Array) -> Array:
        result: Array = np.bincount(member, x, n).astype(np.float64)
        return result

    size = total(look.w)
    scale = total(look.w**2) / np.where(size > 0.0, size, 1.0) if look.importance else np.ones(n)
    return size, total(look.w * look.c), total(look.w * look.view.y), np.where(size > 0.0, scale, 1.0)


def _beyond_binomial(k: Array, mean: Array, n: Array, alpha: float) -> NDArray[np.bool_]:
    beta = scipy.special.betainc
    q = np.clip(mean / np.where(n > 0.0, n, 1.0), 0.0, 1.0)
    some, fewer = k > 1e-9, k < n - 1e-9
    k_up, k_down = np.where(some, k, 1.0), np.where(fewer, k, 0.0)
    up = np.where(some, beta(k_up, np.maximum(n - k_up, 0.0) + 1.0, q), 1.0)
    down = np.where(fewer, beta(np.maximum(n - k_down, 1e-9), k_down + 1.0, 1.0 - q), 1.0)
    result: NDArray[np.bool_] = np.minimum(up, down) <= alpha / 2.0
    return result


def _beyond_flips(
    look: Look, member: NDArray[np.intp] | None, groups: int, alpha: float, rng: Any
) -> NDArray[np.bool_]:
    assert look.unit is not None
    n = int(look.unit.max()) + 1
    if member is None:
        assert look.classes is not None
        parts, own = _of_classes_by_unit(look, look.unit, n), look.classes.variance
    else:
        parts = scipy.sparse.csr_array((look.residual, (look.unit, member)), shape=(n, groups)).toarray()
        own = np.bincount(member, look.v * look.spread, groups).astype(np.float64)
    square = (parts**2).sum(axis=0)
    sure = 1.0 / _widened(square, own, look)  # the observed sum counts for less where flips are stretched
    spread = np.sqrt(square)
    each = parts / np.where(spread > 0.0, spread, 1.0)
    # a group that rests on a few units has a handful of signs: it is never beyond chance
    enough = (parts != 0.0).sum(axis=0) >= _LEAST_UNITS
    generator = np.random.default_rng(rng)
    drawn = [
        np.abs((2.0 * generator.integers(0, 2, (size, n)) - 1.0) @ each[:, enough]).max(axis=1, initial=0.0)
        for size in _chunks(LEAST_DRAWS, n)
    ]
    bound = np.quantile(np.concatenate(drawn), 1.0 - alpha)
    result: NDArray[np.bool_] = enough & (np.abs(each.sum(axis=0)) * sure > bound)
    return result


# -- the decision ------------------------------------------------------------------------------------


def _decided(
    look: Look, read: _Reading, observed: Array, drawn: Array, pattern: float, level: float, path: str
) -> Decision:
    raw, adjusted = step_down_max_t(observed, drawn, read.tails)
    with np.errstate(invalid="ignore", divide="ignore"):
        away = (observed - drawn.mean(axis=0)) / drawn.std(axis=0, ddof=1)
    values = observed.copy()
    values[2] = float(look.residual.sum()) / look.total
    law = [2.0 * float(scipy.special.ndtr(-abs(observed[j]))) if id in _LINEAR else math.nan
           for j, id in enumerate(read.ids)]  # fmt: skip
    rows = tuple(
        DecisionRow(id, _NAMES[id], float(values[j]), float(away[j]), float(raw[j]), float(adjusted[j]), law[j])
        for j, id in enumerate(read.ids)
    )
    tested = np.flatnonzero(~np.isnan(adjusted))
    undecided = Decision(
        NO_EVIDENCE, False, math.nan, "no test: every prediction is certain", "", "", rows, len(drawn), level,
        look.lens, path, "" if look.classes is None else _worst_class(look.classes, read),
        float(look.w[np.abs(look.view.y - look.c) >= 1.0].sum()),
    )  # fmt: skip
    if not len(tested):
        return undecided
    p = float(np.nanmin(adjusted))
    rejected = p <= alpha_of(level)
    able = np.flatnonzero(adjusted <= alpha_of(level)) if rejected else tested
    first = _named(able, _strength(observed, drawn, pattern), read.ids)
    return replace(
        undecided, calibrated=NOT_CALIBRATED if rejected else NO_EVIDENCE, rejected=rejected, pvalue=p,
        pvalue_text=pvalue_text(p, len(drawn)), decisive=read.ids[first],
        defect=_defect(read.ids[first], float(away[first])) if rejected else "",
    )  # fmt: skip


def _strength(observed: Array, drawn: Array, pattern: float) -> Array:
    """How far each statistic is from chance, on one scale: that of a normal deviate.

    A sum of absolute values, or the largest of many, varies little around its mean, so that far out its own standard
    deviations are too small a unit, and it would name every defect. For the smooth error ``pattern`` is the deviate of
    the sum with the signs that the data show, less what the choice of signs is worth: its square has as many degrees
    of freedom as the smooth error has places that vary by themselves. The largest class varies as one class does.
    """
    strength = np.abs(observed)
    square = drawn[:, 0] ** 2
    places = 2.0 * square.mean() ** 2 / max(float(square.var()), np.finfo(float).tiny)
    strength[0] = math.sqrt(max(pattern**2 - places, 0.0))
    strength[4:] = np.maximum(observed[4:] - drawn[:, 4:].mean(axis=0), 0.0)
    return strength


def _named(able: Indices, strength: Array, ids: tuple[str, ...]) -> int:
    """The strongest statistic, or one nearly as strong that says it more plainly."""
    close = [j for j in able.tolist() if strength[j] >= _AS_STRONG * strength[able].max()]
    return int(min(close or able.tolist(), key=lambda j: _PLAIN.index(ids[j])))


def _worst_class(classes: _Classes, read: _Reading) -> str:
    size = np.abs(read.of_classes((classes.occurred - classes.expected)[None])[0])
    return str(classes.names[int(size.argmax())])


def _defect(id: str, away: float) -> str:
    if id == "spiegelhalter":
        return "too sure" if away > 0.0 else "not sure enough"
    return {"smooth": "where", "slope": "spread", "mean": "direction", "classes": "class bias"}[id]


def pvalue_text(p: float, n_resamples: int) -> str:
    """A p-value of redraws in words: where none (or one) of them came near, a bound that they do support."""
    if math.isnan(p):
        return "no test"
    if p <= 2.0 / (n_resamples + 1.0):  # two-sided ranks have no smaller value
        bounds = (1e-4, 5e-4, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
        return f"p < {_short(next((b for b in bounds if b > p), 1.0))}"
    return f"p = {_short(p)}"


def _short(p: float) -> str:
    # near the usual level a third digit says on which side
    text = f"{p:.3f}" if 0.045 <= p < 0.055 else f"{p:.1g}" if p < 0.0095 else f"{p:.2f}"
    text = text.rstrip("0") if 0.045 <= p < 0.055 else text
    return text[1:] if text.startswith("0.") else text
