"""Scores as objects (section 3.2): expected score, entropy and divergence, and whether a score is proper."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, suggest
from calibrary.data.asked import checks_options, is_number
from calibrary.data.checks import Array, as_floats
from calibrary.metrics.machinery.declare import ENTRIES, Entry, Result
from calibrary.numerics.draw import dirichlet_vectors

#: Number of points of the simplex that the check of propriety compares, on a lattice and at random.
_LATTICE, _RANDOM = 800, 200
#: A forecast that is better than the true probabilities by less than this share of the scores differs by rounding only.
_ROUNDING = 1e-9
#: Points closer than this count as equal when strict propriety is checked.
_APART = 1e-3

_SCORES = ("brier", "log", "spherical", "power", "rps")


@dataclass(frozen=True)
class ProperScore:
    """A proper score as a function of two probability vectors (rows): forecast p and true probabilities q."""

    name: str
    scale: str = "1/K"
    alpha: float = 2.0

    def __post_init__(self) -> None:
        one_of("score", self.name, _SCORES)
        one_of("scale", self.scale, ("1/K", "sum", "half"))
        if not is_number(self.alpha) or not 1 < self.alpha < np.inf:
            raise RefusedError(f"alpha={self.alpha!r} must be a finite number above 1")

    def expected(self, p: Array, q: Array) -> Array:
        """s(p, q): expected score of p if q is true."""
        return self.divergence(p, q) + self.entropy(q)

    def entropy(self, q: Array) -> Array:
        """e(q): the score of the true probabilities themselves."""
        if self.name == "brier":
            return self.factor(q.shape[1]) * (1.0 - _over_classes(q * q))
        if self.name == "log":
            return -_over_classes(scipy.special.xlogy(q, q))
        if self.name == "power":
            return -_over_classes(q**self.alpha)
        if self.name == "spherical":
            return 1.0 - _norm(q, self.alpha)
        below = np.cumsum(q, axis=1)[:, :-1]
        return _over_classes(below * (1.0 - below))

    def divergence(self, p: Array, q: Array) -> Array:
        """d(p, q): the loss from stating p instead of q; never negative."""
        a = self.alpha
        if self.name == "brier":
            return self.factor(p.shape[1]) * _over_classes((p - q) ** 2)
        if self.name == "log":
            return _over_classes(scipy.special.xlogy(q, q) - scipy.special.xlogy(q, p))
        if self.name == "power":
            return _over_classes((a - 1.0) * p**a - a * q * p ** (a - 1.0) + q**a)
        if self.name == "spherical":
            return _norm(q, a) - _over_classes(q * (p / _norm(p, a)[:, None]) ** (a - 1.0))
        return _over_classes(np.cumsum(p - q, axis=1)[:, :-1] ** 2)

    def factor(self, k: int) -> float:
        """Factor by which the squared distance of K probabilities is multiplied."""
        return {"1/K": 1.0 / k, "sum": 1.0, "half": 0.5}[self.scale]


def _over_classes(x: NDArray[Any]) -> Array:
    return np.einsum("nk->n", x)  # several times faster than sum(axis=1) for few classes


def _norm(q: Array, alpha: float) -> Array:
    largest = q.max(axis=1)
    return largest * _over_classes((q / largest[:, None]) ** alpha) ** (1.0 / alpha)


# -- scores of any kind ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoringFunction:
    """The expected score s(c, q) of a forecast c if the classes occur with frequencies q, equation (3).

    :func:`scoring_function` creates it. Lower scores are better. Forecasts and frequencies are given as a number
    (P(class 1) of two classes), a vector, or rows of a matrix; the result is a number, or one per row.

    Attributes
    ----------
    name : str
    rule : ``rule(c, k)``, the score of each row of the matrix c if class k[i] occurred
    """

    name: str
    rule: Callable[[Array, NDArray[np.intp]], Any] = field(repr=False)

    def __call__(self, c: Any, q: Any) -> Any:
        """s(c, q): sum over the classes of S(c, k) q_k; a class that never occurs costs nothing."""
        forecast, one = _rows(c, "c")
        truth, also_one = _rows(q, "q")
        if forecast.shape[1] != truth.shape[1]:
            raise RefusedError(
                f"c has {forecast.shape[1]} classes and q has {truth.shape[1]}: pass the same number of classes"
            )
        forecast, truth = np.broadcast_arrays(forecast, truth)
        value = _expected(self.losses(forecast), truth)
        return float(value[0]) if one and also_one else value

    def entropy(self, q: Any) -> Any:
        """s(q, q): the score of the true frequencies themselves."""
        return self(q, q)

    def divergence(self, c: Any, q: Any) -> Any:
        """s(c, q) - s(q, q): the loss from forecasting c; never negative if the score is proper."""
        return self(c, q) - self.entropy(q)

    def losses(self, c: Any) -> Array:
        """S(c, k) for every forecast c (rows) and class k (columns)."""
        forecast, _ = _rows(c, "c")
        n, classes = forecast.shape
        table = np.empty((n, classes))
        for k in range(classes):
            got = np.asarray(self.rule(forecast, np.full(n, k, dtype=np.intp)), dtype=np.float64)
            if got.shape != (n,):
                raise RefusedError(
                    f"the score {self.name} returned shape {got.shape} for {n} rows: return one number per row"
                )
            if np.isnan(got).any():
                raise RefusedError(
                    f"the score {self.name} is NaN for c = {forecast[np.isnan(got)][0].tolist()} and class {k}"
                )
            table[:, k] = got
        return table


def scoring_function(score: str | Callable[..., Any] | ScoringFunction, **options: Any) -> ScoringFunction:
    """A score as a function of forecast and frequencies, with its entropy and divergence.

    Parameters
    ----------
    score : str or callable
        The id of a metric that is a mean of row scores ("bs", "nll", "fl", "rps", ...), or your own ``score(c, k)``: a
        function of a matrix of forecasts, one per row, and the class of each row; lower is better.
    **options
        Options of the metric.

    Returns
    -------
    ScoringFunction

    Examples
    --------
    >>> import calibrary as cal
    >>> brier = cal.scoring_function("bs", scale="sum")
    >>> round(brier(0.7, 0.8), 4), round(brier.entropy(0.8), 4), round(brier.divergence(0.7, 0.8), 4)
    (0.34, 0.32, 0.02)
    """
    if isinstance(score, ScoringFunction):
        return score
    if callable(score):
        name = getattr(score, "__name__", type(score).__name__)
        return ScoringFunction(name, (lambda c, k: score(c, k, **options)) if options else score)
    entry = _row_score(score)
    entry.question_of(options)
    sign = -1.0 if entry.better == "higher" else 1.0

    def rule(c: Array, k: NDArray[np.intp]) -> Any:
        if c.shape[1] > 2 and "full" not in entry.lenses:
            raise RefusedError(
                f"score={entry.id!r} is defined for two classes, and there are {c.shape[1]}: use n_classes=2"
            )
        return sign * entry.function(k, c, reduction="none", **options)

    return ScoringFunction(entry.id, rule)


@dataclass(frozen=True)
class Propriety(Result):
    """Whether a score is proper, as :func:`check_propriety` reports it.

    Attributes
    ----------
    verdict : "strictly proper", "proper" or "improper"
    truth, forecast : the true frequencies, and the best-scoring other forecast; for an improper
        score, the pair with the largest gain
    gain : how much better that forecast scores than the true frequencies (at most 0 if the score is proper)
    n_classes, n_points : number of classes, and of points compared
    """

    verdict: str
    truth: tuple[float, ...]
    forecast: tuple[float, ...]
    gain: float
    n_classes: int
    n_points: int

    def __bool__(self) -> bool:
        return self.verdict != "improper"


@checks_options
def check_propriety(
    score: str | Callable[..., Any] | ScoringFunction, *, n_classes: int = 2, rng: Any = 0, **options: Any
) -> Propriety:
    """Check whether stating the true frequencies is the best forecast under this score.

    Every pair of about a thousand points inside the simplex is used as frequencies q and forecast c: the divergence
    s(c, q) - s(q, q) must nowhere be negative (proper), and zero only for c = q (strictly proper). A counterexample
    proves that a score is improper; finding none is only evidence that it is proper.

    Parameters
    ----------
    score : str or callable
        As in :func:`scoring_function`.
    n_classes : int
    rng : int, Generator or None
        Generator or seed for the random points.
    **options
        Options of the metric.

    Returns
    -------
    Propriety
        The result is true if the score is proper.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.check_propriety("bs", n_classes=3).verdict
    'strictly proper'
    >>> found = cal.check_propriety("fl", gamma=2)
    >>> found.verdict, bool(found)
    ('improper', False)
    """
    k = int(n_classes)
    if k != n_classes or k < 2:
        raise RefusedError(f"n_classes={n_classes!r} must be a whole number, 2 or more")
    scoring = scoring_function(score, **options)
    points = _simplex_points(k, rng)
    losses = scoring.losses(points)
    expected = _expected(losses[:, None, :], points[None, :, :])  # forecast, truth
    own = np.diagonal(expected)
    if not np.isfinite(own).all():
        raise RefusedError(
            f"the score {scoring.name} is not finite at a forecast inside the simplex: it cannot be checked"
        )
    with np.errstate(invalid="ignore"):
        gain = own[None, :] - expected
    rounding = _ROUNDING * max(1.0, float(np.abs(own).max()))
    if gain.max() <= rounding:  # proper: check that every other forecast scores worse, apart from neighbouring points
        gain[scipy.spatial.distance.cdist(points, points) < _APART] = -np.inf
    best, truth = np.unravel_index(int(np.argmax(gain)), gain.shape)
    largest = float(gain[best, truth])
    verdict = "improper" if largest > rounding else "proper" if largest > -rounding else "strictly proper"
    return Propriety(verdict, tuple(points[truth].tolist()), tuple(points[best].tolist()), largest, k, len(points))


def _row_score(name: str) -> Entry:
    """The metric with that id, if it is a mean of row scores."""
    plain = [e for e in ENTRIES.values() if e.means_rows and e.data_type == "predictions"]
    scores = {e.id: e for e in plain if set(e.needs) <= {"order"}}
    if name not in scores:
        raise RefusedError(f"score={name!r} is not a mean of row scores: {suggest(str(name), scores)}")
    return scores[name]


def _rows(x: Any, name: str) -> tuple[Array, bool]:
    """Probability vectors as rows, and whether only one vector was given."""
    p = as_floats(x, name) if np.ndim(x) else np.array([float(x)])
    one = p.ndim == 1
    if np.ndim(x) == 0:
        p = np.array([[1.0 - p[0], p[0]]])
    elif one:
        p = p[None, :]
    if p.ndim != 2 or p.shape[1] < 2:
        raise RefusedError(
            f"{name} has shape {np.shape(x)}: pass a number, a vector of class probabilities, or rows of such vectors"
        )
    if not (p.min() >= 0.0 and np.abs(p.sum(axis=1) - 1.0).max() <= 1e-6):
        raise RefusedError(f"{name} contains a row that is not a probability vector: pass numbers from 0 that sum to 1")
    return p, one


def _expected(losses: Array, truth: Array) -> Array:
    """Mean over the classes; infinite losses count only where the class occurs."""
    finite = np.isfinite(losses)
    value: Array = np.einsum("...k,...k->...", np.where(finite, losses, 0.0), truth)
    if finite.all():
        return value
    signed = np.einsum("...k,...k->...", np.where(finite, 0.0, np.sign(losses)), truth)
    return np.where(signed == 0.0, value, np.copysign(np.inf, signed))


def _simplex_points(k: int, rng: Any) -> Array:
    """Points of a lattice inside the simplex, as fine as the number of points allows, and random points."""
    if k == 2:
        c = (np.arange(_LATTICE) + 0.5) / _LATTICE
        lattice = np.column_stack([1.0 - c, c])
    else:
        parts = k
        while _n_compositions(parts + 1, k) <= _LATTICE:
            parts += 1
        cuts = itertools.combinations(range(1, parts), k - 1)
        whole = np.array([np.diff([0, *cut, parts]) for cut in cuts], dtype=np.float64)
        lattice = whole / parts
    return np.concatenate([lattice, dirichlet_vectors(np.ones(k), _RANDOM, rng)])


def _n_compositions(parts: int, k: int) -> int:
    """Number of ways to write a number as a sum of k positive numbers."""
    return int(scipy.special.comb(parts - 1, k - 1, exact=True))
