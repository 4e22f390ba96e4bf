"""Tests that may be looked at as often as one likes: e-values, and a monitor that is fed batch by batch.

An e-value bets against calibration: it is the gain of a fixed mixture of alternatives over the predictions
themselves, as a ratio of likelihoods. Under calibration its expectation is 1 however many rows there are, so that it
exceeds 20 at any time at all in at most one stream in twenty (Ville's inequality).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedCallError, RefusedError, whole
from calibrary.base.numbers import percent
from calibrary.data.checks import Array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.data.views import Views
from calibrary.maps.shrunk_isotonic import ShrunkIsotonic
from calibrary.metrics.machinery.declare import CellFacts, Common, TestResult, calibration_test, metric
from calibrary.metrics.machinery.literature import cited
from calibrary.numerics.draw import generator, shuffled

_SHIFTS = (-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0)
_SLOPES = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
#: Rows whose factors are made together, and how many products of 64 of them are left.
_TOGETHER, _FACTORS = 512, 8
#: Points of a monitor's path that are kept.
_PATH = 1024


#: Log odds where 0.5 was said from which on a slope alone does not tell what is wrong.
_APART = 0.3


class Alternative(NamedTuple):
    """What the predictions may be instead of calibrated: logit q = shift + low log c - high log(1-c)."""

    shift: float
    low: float
    high: float

    def log_odds(self, c: float) -> float:
        """The log odds of the event, if this is the truth, where the prediction is c."""
        return self.shift + self.low * math.log(c) - self.high * math.log1p(-c)

    @property
    def words(self) -> str:
        """How predictions are wrong if this is the truth: what it makes of 0.1, 0.5 and 0.9.

        Different parameters may give nearly the same curve, so that words come from the curve.
        """
        stated = math.log(9.0)
        low, middle, high = (self.log_odds(c) for c in (0.1, 0.5, 0.9))
        true = percent(1.0 / (1.0 + math.exp(-middle)))
        if (low + stated) * (high - stated) > 0.0:
            side = "low" if low > -stated else "high"
            return f"probabilities too {side}: a stated 50% corresponds to {true}"
        slope = (high - low) / (2.0 * stated)
        if abs(middle) > _APART:  # on one side but for one end: neither a slope nor a shift alone
            return f"a stated 50% corresponds to {true}, slope {slope:.2g}"
        side = "over" if low > -stated or high < stated else "under"
        return f"{side}-confident, slope {slope:.2g}"


#: The alternatives of the mixture, fixed in advance: every shift and pair of slopes but the identity.
ALTERNATIVES = tuple(
    a for a in (Alternative(*z) for z in product(_SHIFTS, _SLOPES, _SLOPES)) if a != Alternative(0.0, 1.0, 1.0)
)
_SHIFT, _LOW, _HIGH = np.array(ALTERNATIVES).T
_POSITION = np.ravel_multi_index(
    (np.searchsorted(_SHIFTS, _SHIFT), np.searchsorted(_SLOPES, _LOW), np.searchsorted(_SLOPES, _HIGH)),
    (len(_SHIFTS), len(_SLOPES), len(_SLOPES)),
)


def log_ratios(view: Predictions) -> Array:
    """Log likelihood ratio of every alternative against the predictions of a binary view.

    log q and log(1-q) differ from their numerators by log((1-c)^high + e^shift c^low), which does not depend on the
    labels. That number lies between 0.09 and 4, so that those of 64 rows multiply to one that needs a single logarithm.
    A row with probability 0 that happened makes all ratios infinite.
    """
    c, y, w = view.c, view.y, view.w
    if (((c == 0.0) & (y == 1)) | ((c == 1.0) & (y == 0))).any():
        return np.full(len(ALTERNATIVES), math.inf)
    with np.errstate(divide="ignore"):
        log_c, log_d = np.log(c), np.log1p(-c)
    ones = float(view.sum(y))
    stated = float(view.sum(np.where(y == 1, log_c, 0.0))), float(view.sum(np.where(y == 0, log_d, 0.0)))
    common = np.zeros(len(_SHIFTS) * len(_SLOPES) ** 2)
    slopes, factor = np.array(_SLOPES)[:, None], np.exp(_SHIFTS)[:, None, None, None]
    for first in range(0, view.n, _TOGETHER):
        rows = slice(first, first + _TOGETHER)
        low, high = np.exp(slopes * log_c[rows]), np.exp(slopes * log_d[rows])
        each = (factor * low[:, None, :] + high).reshape(len(common), -1)
        if w is not None:
            common += np.log(each, out=each) @ w[rows]
            continue
        while each.shape[1] > _FACTORS and each.shape[1] % 2 == 0:
            half = each.shape[1] // 2
            each = np.multiply(each[:, :half], each[:, half:], out=each[:, :half])
        common += np.log(each).sum(axis=1)
    ratios: Array = _SHIFT * ones + (_LOW - 1.0) * stated[0] + (_HIGH - 1.0) * stated[1] - common[_POSITION]
    return ratios


def log_mean(log_values: Array) -> float:
    """Logarithm of the mean of numbers given by their logarithms."""
    return float(scipy.special.logsumexp(log_values)) - math.log(len(log_values))


# -- the mixture e-value ------------------------------------------------------------------------------


def _mean_e(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> float:
    """The mean of e-values is one, whatever they have in common; their largest is not."""
    if isinstance(average, str) and average == "max":
        raise RefusedError("average='max' of e-values is no e-value: use 'uniform', 'prevalence' or weights")
    weights = views.weights(average)
    logs = np.array(values) if options.get("log") else _log(np.array(values))
    log_e = float(scipy.special.logsumexp(logs, b=weights))
    return log_e if options.get("log") else _exp(log_e)


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        result: Array = np.log(x)
    return result


def _exp(log_e: float) -> float:
    """An e-value from its logarithm; infinite where no number is as large."""
    return math.exp(log_e) if log_e < 709.0 else math.inf


_FACTS: dict[str, Any] = {
    "status": "emerging",
    "since": "0.2",
    "costly": True,
    "combine": _mean_e,
    "range": (0.0, math.inf),
    "range_note": "the logarithm with log=True; at most 1 on average if calibrated",
    "perfect": None,
    "sign": "evidence against calibration: 20 or more rejects it at 5%, 1/E is a p-value",
}


#: Why no interval is put around an e-value.
_EVIDENCE = "an e-value is the evidence in these data, not an estimate of something: read it as it stands, or its test"


@metric(
    "calibration_e_value",
    parameter_free=True,
    no_interval=_EVIDENCE,
    family="curve",
    name="calibration e-value",
    aliases=("mixture e-value", "mixture_e", "anytime-valid calibration test"),
    symmetric=True,
    cells=CellFacts("smooth"),
    cost="342 products a row",
    equation="mean over alternatives k of prod q_k^y (1-q_k)^(1-y) / (c^y (1-c)^(1-y))",
    references=cited("grunwald2024", "henzi2023"),
    use="Looking after every batch, and stopping when one likes: the error rate holds however often one looks.",
    avoid="For one look at fixed data a test has more power. It is no measure of size and has no interval: it grows "
    "with the number of rows.",
    **_FACTS,
)
def calibration_e_value(view: Predictions, *, log: bool = False, **common: Unpack[Common]) -> float:
    r"""Evidence against calibration that stays valid however often one looks.

    .. math:: E = \frac{1}{342} \sum_k \prod_i
              \frac{q_{ki}^{y_i} (1 - q_{ki})^{1 - y_i}}{c_i^{y_i} (1 - c_i)^{1 - y_i}},
              \qquad \mathrm{logit}\, q_k = a + b \log c - d \log(1 - c)

    with a in {0, ±.25, ±.5, ±1} and b, d in {.5, .7, .85, 1, 1.2, 1.5, 2}, the identity left out. Under calibration it
    exceeds 1/alpha with probability alpha at most, at any time at all. Through a lens of several views it is the mean
    of their e-values. :func:`calibrary.calibration_monitor` keeps it for a stream.

    Parameters
    ----------
    log : bool
        Its natural logarithm, which is finite where the number itself is not.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(500)
    >>> y = rng.random(500) < 0.2 + 0.6 * c  # over-confident
    >>> cal.calibration_e_value(y, c) > 20
    True
    """
    log_e = log_mean(log_ratios(view))
    return log_e if log else _exp(log_e)


@dataclass(frozen=True)
class EValueResult(TestResult):
    """An e-value as a test.

    Attributes
    ----------
    statistic, pvalue : the e-value, and min(1, 1/E)
    log_e : natural logarithm of the e-value
    alternative : the alternative that gained most (of the mixture e-value)
    words : what it says about the predictions
    """

    log_e: float
    alternative: Alternative | None = None
    words: str = ""


def _as_test(log_e: float, alternative: Alternative | None = None) -> EValueResult:
    words = "" if alternative is None else alternative.words
    return EValueResult(_exp(log_e), min(1.0, math.exp(min(-log_e, 0.0))), log_e, alternative, words)


def _mean_test(results: list[EValueResult], views: Views, average: Any, options: dict[str, Any]) -> EValueResult:
    log_e = _mean_e([r.log_e for r in results], views, average, {"log": True})
    return _as_test(log_e, max(results, key=lambda r: r.log_e).alternative)


@calibration_test("calibration_e_value", combine=_mean_test, trusted=True)
def calibration_e_value_test(view: Predictions, **common: Unpack[Common]) -> EValueResult:
    """Reject calibration where the e-value is 20 or more; valid however often one looks.

    Returns
    -------
    EValueResult
        ``statistic`` is the e-value and ``pvalue`` min(1, 1/E); ``words`` say what the best alternative is.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.beta(0.8, 0.8, 1000)
    >>> y = rng.random(1000) < c**0.7 / (c**0.7 + (1 - c)**0.7)
    >>> result = cal.calibration_e_value_test(y, c)
    >>> result.pvalue < 0.05, result.words
    (True, 'over-confident, slope 0.75')
    """
    view.counts("an e-value")
    ratios = log_ratios(view)
    return _as_test(log_mean(ratios), ALTERNATIVES[int(ratios.argmax())])


# -- a monitor ----------------------------------------------------------------------------------------


@dataclass
class CalibrationMonitor:
    """Watches a stream of predictions and outcomes; made by :func:`calibrary.calibration_monitor`.

    Attributes
    ----------
    alpha : chance of a false alarm, over the whole life of the stream
    lens : how several classes are looked at
    n : rows seen
    log_ratios : of every alternative; what is needed to go on, and to merge
    peak : largest log e-value so far
    alarm_at : rows seen when the e-value first reached 1 / alpha; None before
    """

    alpha: float = 0.05
    lens: str = "auto"
    n: int = 0
    log_ratios: Array = field(default_factory=lambda: np.zeros(len(ALTERNATIVES)), repr=False)
    peak: float = 0.0
    alarm_at: int | None = None
    _path: list[tuple[int, float]] = field(default_factory=lambda: [(0, 0.0)], repr=False)
    _every: int = field(default=1, repr=False)
    _updates: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise RefusedError(f"alpha={self.alpha!r} is outside (0, 1): 0.05 is usual")

    def update(
        self, y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, labels: Any = None, pos_label: Any = None
    ) -> Self:
        """Take in a batch (or one row, as lists of one) and return the monitor.

        The batches of a stream must be fixed before their outcomes are known; how many there will be need not.
        """
        p = predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
        lens = ("binary" if p.k == 2 else "top-label") if self.lens == "auto" else self.lens
        views = p.through(as_lens(lens))
        if views.several or not views.views[0].binary:
            raise RefusedError(f"lens={self.lens!r} gives several views: watch one class with a monitor of its own")
        view = views.views[0]
        rows = int(view.counts("a monitor").sum())
        return self._add(log_ratios(view), rows)

    def merge(self, other: CalibrationMonitor) -> Self:
        """Take in what another monitor saw of other rows of the same stream, and return this one.

        The e-values multiply, alternative by alternative. The path of this monitor stays, and goes on with what the two
        together say; the other's path does not enter, because looking at both would be looking at two streams.
        """
        if not isinstance(other, CalibrationMonitor):
            raise RefusedCallError(f"other={other!r} is no monitor: pass what calibrary.calibration_monitor() made")
        return self._add(other.log_ratios, other.n)

    def _add(self, ratios: Array, rows: int) -> Self:
        # an impossible outcome stays one, whatever comes with it
        impossible = np.isinf(self.log_ratios) | np.isinf(ratios)
        self.log_ratios = np.where(impossible, math.inf, self.log_ratios + np.where(impossible, 0.0, ratios))
        self.n += rows
        self._updates += 1
        self._remember()
        return self

    def _remember(self) -> None:
        now = self.log_e
        self.peak = max(self.peak, now)
        if self.alarm_at is None and now >= -math.log(self.alpha):
            self.alarm_at = self.n
        if self._updates % self._every == 0:
            self._path.append((self.n, now))
        if len(self._path) > _PATH:  # every second point goes, so that memory stays what it is
            del self._path[1::2]
            self._every *= 2

    @property
    def log_e(self) -> float:
        """Natural logarithm of the e-value now."""
        return log_mean(self.log_ratios) if self.n else 0.0

    @property
    def e_value(self) -> float:
        """The e-value now."""
        return _exp(self.log_e)

    @property
    def alarm(self) -> bool:
        """Has the e-value ever reached 1 / alpha?"""
        return self.alarm_at is not None

    @property
    def pvalue(self) -> float:
        """Valid at any time: 1 over the largest e-value so far."""
        return min(1.0, math.exp(-self.peak))

    @property
    def path(self) -> tuple[Array, Array]:
        """Rows seen and log e-value after (some of) the updates, the last one included."""
        points = self._path if self._path[-1][0] == self.n else [*self._path, (self.n, self.log_e)]
        n, log_e = np.array(points, dtype=np.float64).T
        return n, log_e

    @property
    def alternative(self) -> Alternative:
        """The alternative with most posterior weight."""
        return ALTERNATIVES[int(self.log_ratios.argmax())]

    @property
    def words(self) -> str:
        """What to say now."""
        if not self.n:
            return "no rows yet"
        if self.alarm:
            return f"not calibrated (alarm at row {self.alarm_at:,}): {self.alternative.words}"
        if self.log_e <= 0.0:
            return "no evidence against calibration so far"
        return f"not enough to say; if anything: {self.alternative.words}"

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to go on later, as plain lists and numbers."""
        return {
            "alpha": self.alpha, "lens": self.lens, "n": self.n, "log_ratios": self.log_ratios.tolist(),
            "peak": self.peak, "alarm_at": self.alarm_at, "path": [list(point) for point in self._path],
            "every": self._every, "updates": self._updates,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """The monitor that :meth:`to_dict` described."""
        ratios = np.array(state["log_ratios"], dtype=np.float64)
        if ratios.shape != (len(ALTERNATIVES),):
            raise RefusedError(f"state has {ratios.size} log_ratios: a monitor has {len(ALTERNATIVES)}")
        path = [(int(n), float(e)) for n, e in state["path"]]
        return cls(
            state["alpha"], state["lens"], state["n"], ratios, state["peak"], state["alarm_at"], path, state["every"],
            state["updates"],
        )  # fmt: skip


def calibration_monitor(*, alpha: float = 0.05, lens: str = "auto") -> CalibrationMonitor:
    """A monitor of calibration for a stream, that may be looked at after every batch.

    It keeps 342 numbers however many rows it has seen; monitors of parts of a stream merge. It asks whether the stream
    as a whole is calibrated: what it loses while predictions are good must be won back when they turn bad. To watch
    for drift start a new monitor every period, and share ``alpha`` among the periods.

    Parameters
    ----------
    alpha : float
        Chance of ever raising an alarm on calibrated predictions.
    lens : str
        How several classes are looked at; "auto" is the top label.

    Returns
    -------
    CalibrationMonitor
        With ``update(y, p)``, ``merge(other)``, ``log_e``, ``pvalue``, ``alarm``, ``alarm_at``, ``path``, ``words``.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng, monitor = np.random.default_rng(0), cal.calibration_monitor()
    >>> for day in range(20):
    ...     c = rng.beta(0.8, 0.8, 100)
    ...     y = rng.random(100) < c**0.7 / (c**0.7 + (1 - c)**0.7)
    ...     if monitor.update(y, c).alarm:
    ...         break
    >>> monitor.words
    'not calibrated (alarm at row 300): over-confident, slope 0.67'
    """
    return CalibrationMonitor(alpha, lens)


# -- the inventors' split e-value ---------------------------------------------------------------------


@metric(
    "ehl",
    no_interval=_EVIDENCE,
    family="curve",
    name="e-value of Hosmer and Lemeshow",
    aliases=("eHL", "safe Hosmer-Lemeshow test"),
    weights="rows",
    weights_note="halves are made of rows: a row of weight 2 is the row written twice in one and the same half",
    order_free=False,
    order_note="rows are dealt to halves in their order; train= fixes them",
    cost="n_splits sorts of half the rows",
    equation="mean over splits of prod over the held half of q^y (1-q)^(1-y) / (c^y (1-c)^(1-y))",
    references=cited("henzi2023"),
    use="An e-value that learns its alternative from half of the rows, whatever its shape.",
    avoid="Where slopes and shifts are what may be wrong, calibration_e_value has about twice the power and no split.",
    **_FACTS,
)
def ehl(
    view: Predictions,
    *,
    n_splits: int = 10,
    rng: Any = 0,
    train: Any = None,
    log: bool = False,
    **common: Unpack[Common],
) -> float:
    r"""Evidence against calibration from a curve fitted to one half of the rows and judged on the other.

    .. math:: \frac{1}{S} \sum_s \prod_{i \text{ held}}
              \frac{q_{si}^{y_i} (1 - q_{si})^{1 - y_i}}{c_i^{y_i} (1 - c_i)^{1 - y_i}}

    with q the isotonic fit to a random half, its blocks at 0 and 1 moved to (s + 1/2) / (n + 1), and straight between
    blocks.

    Parameters
    ----------
    n_splits : int
        Random halves; the e-values are averaged.
    rng : int, Generator or None
        How rows are dealt.
    train : array-like of bool, optional
        One split as given: True for the rows that the curve is fitted to.
    log : bool
        Its natural logarithm.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(1000)
    >>> y = rng.random(1000) < 0.2 + 0.6 * c
    >>> cal.ehl(y, c) > 20
    True
    """
    log_e = _log_ehl(view, n_splits, rng, train)
    return log_e if log else _exp(log_e)


@calibration_test("ehl", combine=_mean_test, trusted=True)
def ehl_test(
    view: Predictions, *, n_splits: int = 10, rng: Any = 0, train: Any = None, **common: Unpack[Common]
) -> EValueResult:
    """Reject calibration where the e-value of Hosmer and Lemeshow is 20 or more.

    Parameters
    ----------
    n_splits, rng, train
        As in :func:`ehl`.

    Returns
    -------
    EValueResult

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(1000)
    >>> y = rng.random(1000) < 0.2 + 0.6 * c
    >>> cal.ehl_test(y, c).pvalue < 0.05
    True
    """
    view.counts("an e-value")
    return _as_test(_log_ehl(view, n_splits, rng, train))


def _log_ehl(view: Predictions, n_splits: int, rng: Any, train: Any) -> float:
    """The mean over the splits; sorted once, every half of the rows is sorted."""
    order = view.order
    rows = view.subset(order, view.y[order], view.c[order])
    return log_mean(np.array([_held_ratio(rows, seen[order]) for seen in _halves(view, n_splits, rng, train)]))


def _halves(view: Predictions, n_splits: int, rng: Any, train: Any) -> list[Any]:
    """For each split, which rows the curve is fitted to."""
    n_splits = whole("n_splits", n_splits)
    if train is not None:
        given = view.align(train, "train").astype(bool)
        if given.all() or not given.any():
            raise RefusedError(
                "train holds all rows or none: the curve needs some to learn from, and others to be judged"
            )
        return [given]
    if view.n < 2:
        raise RefusedError("eHL needs at least two rows: one half to learn from, the other to judge")
    source = generator(rng, "halves")
    halves = []
    for _ in range(n_splits):
        seen = np.zeros(view.n, dtype=bool)
        seen[shuffled(view.n, source, "halves")[: view.n // 2]] = True
        halves.append(seen)
    return halves


def _held_ratio(view: Predictions, seen: Any) -> float:
    """Log likelihood ratio of the curve fitted to the rows seen, on the others; rows are ascending."""
    some, held = np.flatnonzero(seen), np.flatnonzero(~seen)
    learned = view.subset(some, view.y[some], view.c[some])
    learned.ascending = True
    q = ShrunkIsotonic(rising=False).fit(learned).predict(view.c[held])
    y, c = view.y[held], view.c[held]
    stated = np.where(y == 1, c, 1.0 - c)
    if (stated == 0.0).any():  # said to be impossible, and it happened
        return math.inf
    with np.errstate(divide="ignore"):  # very large weights leave no room for the half case a block is shrunk by
        gain = np.log(np.where(y == 1, q, 1.0 - q)) - np.log(stated)
    return float(gain.sum() if view.w is None else gain @ view.w[held])
