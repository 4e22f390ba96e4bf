"""Sequential tests of calibration, valid at any time: e-values, and a monitor for batches of a stream.

An e-value is a bet against calibration: the likelihood ratio of a fixed mixture of alternatives to the predictions.
Under calibration its expectation is 1 for any number of rows, and it ever exceeds 20 in at most one stream in twenty
(Ville's inequality).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, whole
from calibrary.base.numbers import percent
from calibrary.data.asked import checks_options, share
from calibrary.data.checks import Array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.data.views import Views
from calibrary.maps.isotonic import ShrunkIsotonic
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.numerics.draw import generator, shuffled

_SHIFTS = (-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0)
_SLOPES = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
#: The number of rows processed together, and the resulting number of products of 64 factors.
_TOGETHER, _FACTORS = 512, 8
#: The largest number of stored points of a monitor's path.
_PATH = 1024


#: The true log odds at a stated 0.5 from which a slope alone does not describe the error.
_APART = 0.3


class Alternative(NamedTuple):
    """One form of miscalibration: logit q = shift + low log c - high log(1-c)."""

    shift: float
    low: float
    high: float

    def log_odds(self, c: float) -> float:
        """The true log odds of the event at the prediction c under this alternative."""
        return self.shift + self.low * math.log(c) - self.high * math.log1p(-c)

    @property
    def words(self) -> str:
        """A description of this miscalibration, from its true probabilities at 0.1, 0.5 and 0.9.

        The description comes from the curve, because different parameters may give nearly the same curve.
        """
        stated = math.log(9.0)
        low, middle, high = (self.log_odds(c) for c in (0.1, 0.5, 0.9))
        true = percent(1.0 / (1.0 + math.exp(-middle)))
        if (low + stated) * (high - stated) > 0.0:
            side = "low" if low > -stated else "high"
            return f"probabilities too {side}: a stated 50% corresponds to {true}"
        slope = (high - low) / (2.0 * stated)
        if abs(middle) > _APART:  # the curve is neither a slope nor a shift alone
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
    labels. That term lies between 0.09 and 4, so that the product over 64 rows needs a single logarithm. If an event of
    probability 0 occurred, all ratios are infinite.
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
    return _SHIFT * ones + (_LOW - 1.0) * stated[0] + (_HIGH - 1.0) * stated[1] - common[_POSITION]


def log_mean(log_values: Array) -> float:
    """Logarithm of the mean of numbers given by their logarithms."""
    return float(Mixture(log_values).log_e)


# -- mixtures of bets -----------------------------------------------------------------------------------


@dataclass
class Mixture:
    """A weighted mean of bets against a hypothesis, each of which begins at 1 and is not expected to grow under it.

    So the mean exceeds 1/alpha with a probability of at most alpha, at any time. E-values, alarms and the intervals of
    :mod:`calibrary.inference.overall.anytime` are all such means.

    Attributes
    ----------
    logs : logarithm of each bet, along the last axis; one mixture for each place of the others
    log_weights : logarithm of the weight of each bet; equal weights if None
    """

    logs: Array
    log_weights: Array | None = None

    @property
    def _weighted(self) -> Array:
        each = np.asarray(self.logs, dtype=np.float64)
        return each - math.log(each.shape[-1]) if self.log_weights is None else each + self.log_weights

    @property
    def log_e(self) -> Array:
        """Logarithm of the mean."""
        return np.asarray(scipy.special.logsumexp(self._weighted, axis=-1))

    def reach(self, slopes: Array, log_bound: Any) -> Array:
        """The largest x for which bets that also gain ``slopes`` (above 0) times x stay within the bound."""
        at, bound = self._weighted, np.asarray(log_bound, dtype=np.float64)
        x = ((bound[..., None] - at) / slopes).min(axis=-1)  # no single bet exceeds the bound below this
        for _ in range(60):  # Newton's method falls onto the root of a convex function
            each = at + slopes * x[..., None]
            top = scipy.special.logsumexp(each, axis=-1)
            step = (top - bound) / np.maximum((np.exp(each - top[..., None]) * slopes).sum(axis=-1), 1e-300)
            x = x - step
            if (np.abs(step) <= 1e-9 * (1.0 + np.abs(x))).all():
                break
        return np.asarray(x)


class Bets:
    """Bets on every alternative that begin at every look, for one or more streams side by side.

    A look has the share 1/(t (t + 1)) of the stake unless ``shares`` has others; a bet that has not begun keeps its
    stake. Under calibration the sum is a martingale that begins at 1, and a change at a later look is found without
    recovering earlier losses.
    """

    #: What is known of each stream; ``factor`` is the logarithm of the stake, 0 unless evidence was joined.
    ARRAYS = ("logs", "best", "begun", "peak", "at_peak", "factor")

    def __init__(self, streams: int = 1, shares: Array | None = None) -> None:
        self.shares, self.number, self.begun_share = shares, 0, 0.0
        n = len(ALTERNATIVES)
        self.logs, self.best = np.full((streams, n), -math.inf), np.zeros((streams, n))
        self.begun = np.zeros((streams, n), dtype=np.int64)  # the first look of the best run of each alternative
        self.peak, self.factor, self.at_peak = np.zeros(streams), np.zeros(streams), np.zeros((streams, 2), np.int64)

    def look(self) -> None:
        """Begin the bets of the next look, for all streams."""
        self.number += 1
        share = 1.0 / (self.number * (self.number + 1.0)) if self.shares is None else self.shares[self.number - 1]
        self.begun_share += share
        self.logs = np.logaddexp(self.logs, math.log(share) + self.factor[:, None])

    def more(self, streams: int) -> None:
        """Further streams, for which no look had rows so far."""
        fresh = Bets(streams)
        if self.begun_share:
            fresh.logs[:] = math.log(self.begun_share)
        for name in self.ARRAYS:
            setattr(self, name, np.concatenate([getattr(self, name), getattr(fresh, name)]))

    @property
    def now(self) -> Array:
        """The logarithm of the e-value of each stream."""
        return self._log_e(slice(None))

    def _log_e(self, rows: Any) -> Array:
        waiting = math.log(max(1.0 - self.begun_share, 1e-300)) + self.factor[rows]
        return np.asarray(np.logaddexp(Mixture(self.logs[rows]).log_e, waiting))

    def add(self, ratios: Array, rows: Any = slice(None)) -> Array:
        """Add log ratios of the current look, one row for each of these streams; returns the logs of their e-values."""
        best, begun = self.best[rows], self.begun[rows]
        fresh = best <= 0.0
        self.begun[rows] = begun = np.where(fresh, self.number, begun)
        self.best[rows] = best = np.where(fresh, 0.0, best) + ratios
        self.logs[rows] += ratios
        log_e, chosen = self._log_e(rows), best.argmax(axis=1)
        now = np.stack([begun[np.arange(len(chosen)), chosen], chosen], axis=1)
        higher = log_e > self.peak[rows]
        self.at_peak[rows] = np.where(higher[:, None], now, self.at_peak[rows])
        self.peak[rows] = np.where(higher, log_e, self.peak[rows])
        return log_e

    def join(self, other: Bets, number: NDArray[np.int64], fresh: int) -> None:
        """Take the streams of other bets under these numbers: the last ``fresh`` are new, others multiply evidence.

        The product of two e-values of different rows is one; what was won continues on this stream's alternatives.
        """
        first = len(self.logs)
        self.more(fresh)
        new = number >= first
        for name in self.ARRAYS:
            getattr(self, name)[number[new]] = getattr(other, name)[new]
        won, old = other.now[~new], number[~new]
        stronger = other.peak[~new] > self.peak[old]
        self.at_peak[old] = np.where(stronger[:, None], other.at_peak[~new], self.at_peak[old])
        self.logs[old] += won[:, None]
        self.factor[old] += won
        self.peak[old] = np.maximum(self.peak[old], self.now[old])


@dataclass(frozen=True)
class Drift:
    """The result of the bets on a change of calibration.

    Attributes
    ----------
    log_e : natural logarithm of the e-value after every look
    alpha : probability of ever raising an alarm on calibrated predictions
    alarm : number of the look after which the e-value first reached 1 / alpha; None if it never did
    start : first look of the bet with the largest gain at the end (0: the whole stream)
    alternative : the alternative of that bet
    """

    log_e: Array
    alpha: float
    alarm: int | None
    start: int
    alternative: Alternative

    @property
    def pvalue(self) -> float:
        """The p-value, valid at any time: 1 over the largest e-value so far."""
        return min(1.0, math.exp(-max(0.0, float(self.log_e.max(initial=0.0)))))


def drift(log_ratios: Array, alpha: float = 0.05) -> Drift:
    """The e-value of a stream from log likelihood ratios: one row for each look, one column for each alternative.

    Half of the stake is a bet on the whole stream, and the rest is divided equally among bets that begin later.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> from calibrary.inference.overall.sequential import log_ratios
    >>> rng = np.random.default_rng(0)
    >>> looks = []
    >>> for look in range(20):
    ...     c = rng.beta(0.8, 0.8, 100)
    ...     slope = 1.0 if look < 10 else 0.4
    ...     y = rng.random(100) < c**slope / (c**slope + (1 - c)**slope)
    ...     looks.append(log_ratios(cal.predictions(y, c)))
    >>> found = drift(np.array(looks))
    >>> found.alarm, found.start, found.alternative.words
    (10, 10, 'over-confident, slope 0.5')
    """
    looks, n = log_ratios.shape
    shares = np.full(looks, 0.5 / max(looks - 1, 1))
    shares[0] = 0.5 if looks > 1 else 1.0
    impossible = np.isinf(log_ratios).any(axis=1)
    gains = np.where(np.isinf(log_ratios), 0.0, log_ratios)
    bets, log_e = Bets(shares=shares), np.empty(looks)
    for t in range(looks):
        bets.look()
        log_e[t] = bets.add(gains[t : t + 1])[0]
    log_e[np.cumsum(impossible) > 0] = math.inf  # an outcome of probability 0 occurred
    over = np.flatnonzero(log_e >= -math.log(alpha))
    won = np.cumsum(gains[::-1], axis=0)[::-1] + np.log(shares)[:, None]
    start, best = np.unravel_index(int(np.argmax(won)), (looks, n))
    return Drift(log_e, alpha, int(over[0]) if len(over) else None, int(start), ALTERNATIVES[int(best)])


#: The alternatives with one slope, with which the set of first days of a change is found.
PLAIN = np.array([i for i, a in enumerate(ALTERNATIVES) if a.low == a.high])


def changes(ratios: Array, alpha: float) -> NDArray[np.bool_]:
    """Which looks may be the first of a change, from the log ratios of the alternatives ``PLAIN`` at every look.

    If predictions were calibrated before a look and follow one of the alternatives since, the bets on all looks and
    alternatives, divided by the bet on this look and the best alternative, ever exceed 1/alpha with a probability of at
    most alpha. The looks for which they do not are the set, which holds at every time at once.
    """
    gains = np.cumsum(np.asarray(ratios, dtype=np.float64)[::-1], axis=0)[::-1]
    t = np.arange(1, len(gains) + 1)
    begun = Mixture(gains).log_e - np.log(t * (t + 1.0))
    whole = np.logaddexp(scipy.special.logsumexp(begun), -math.log(len(gains) + 1.0))
    return gains.max(axis=1) >= whole + math.log(alpha)


# -- the mixture e-value ------------------------------------------------------------------------------


def _mean_e(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> float:
    """Average e-values: a mean of e-values is an e-value under any dependence, a maximum is not."""
    if isinstance(average, str) and average == "max":
        raise RefusedError("average='max' of e-values is not an e-value: use 'uniform', 'prevalence' or weights")
    weights = views.weights(average)
    logs = np.array(values) if options.get("log") else _log(np.array(values))
    log_e = float(scipy.special.logsumexp(logs, b=weights))
    return log_e if options.get("log") else _exp(log_e)


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        result: Array = np.log(x)
    return result


def _exp(log_e: float) -> float:
    """An e-value from its logarithm; infinite on overflow."""
    return math.exp(log_e) if log_e < 709.0 else math.inf


@metric("calibration_e_value", combine=_mean_e)
def calibration_e_value(view: Predictions, *, log: bool = False, **common: Unpack[Common]) -> float:
    r"""Evidence against calibration that is valid at any time, for any number of looks.

    .. math:: E = \frac{1}{342} \sum_k \prod_i
              \frac{q_{ki}^{y_i} (1 - q_{ki})^{1 - y_i}}{c_i^{y_i} (1 - c_i)^{1 - y_i}},
              \qquad \mathrm{logit}\, q_k = a + b \log c - d \log(1 - c)

    with a in {0, ±.25, ±.5, ±1} and b, d in {.5, .7, .85, 1, 1.2, 1.5, 2}, the identity left out. Under calibration the
    probability that it ever exceeds 1/alpha is at most alpha. For a lens with several views it is the mean of their
    e-values. :func:`calibrary.calibration_monitor` updates it for a stream.

    Parameters
    ----------
    log : bool
        Return the natural logarithm, which is finite even if the e-value overflows.

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
    """Test of calibration by an e-value.

    Attributes
    ----------
    statistic, pvalue : the e-value, and min(1, 1/E)
    log_e : natural logarithm of the e-value
    alternative : the alternative with the largest likelihood (of the mixture e-value)
    words : a description of that alternative
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
    """Reject calibration if the e-value is 20 or more; valid for any number of looks.

    Returns
    -------
    EValueResult
        ``statistic`` is the e-value and ``pvalue`` min(1, 1/E); ``words`` describes the best alternative.

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
    """A monitor of a stream of predictions and outcomes, created by :func:`calibrary.calibration_monitor`.

    Attributes
    ----------
    alpha : probability of a false alarm, over the whole life of the stream
    lens : which event of several classes is monitored
    n : number of rows so far
    log_ratios : log likelihood ratio of every alternative, from which monitoring continues or merges
    peak : largest log e-value so far
    alarm_at : number of rows when the e-value first reached 1 / alpha; None before
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
        share("alpha", self.alpha)
        if self.lens != "auto":
            as_lens(self.lens)

    def update(
        self, y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, labels: Any = None, pos_label: Any = None
    ) -> Self:
        """Add a batch (or one row, as lists of one) and return the monitor.

        The rows of a batch must be fixed before their outcomes are known; the number of batches need not be.
        """
        p = predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
        lens = ("binary" if p.k == 2 else "top-label") if self.lens == "auto" else self.lens
        views = p.through(as_lens(lens))
        if views.several or not views.views[0].binary:
            raise RefusedError(f"lens={self.lens!r} gives several binary problems: use one monitor for each class")
        view = views.views[0]
        rows = int(view.counts("a monitor").sum())
        return self._add(log_ratios(view), rows)

    def merge(self, other: CalibrationMonitor) -> Self:
        """Add the evidence of another monitor on other rows of the same stream, and return this monitor.

        The likelihood ratios of each alternative are multiplied. This monitor's path continues with the combined
        evidence; the other's path is dropped, because alarms on both paths would be tests of two streams.
        """
        if not isinstance(other, CalibrationMonitor):
            raise RefusedCallError(
                f"other={other!r} is not a monitor: pass a monitor from calibrary.calibration_monitor()"
            )
        return self._add(other.log_ratios, other.n)

    def _add(self, ratios: Array, rows: int) -> Self:
        # after an impossible outcome the ratio stays infinite
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
        if len(self._path) > _PATH:  # every second point is dropped, so that memory stays bounded
            del self._path[1::2]
            self._every *= 2

    @property
    def log_e(self) -> float:
        """Natural logarithm of the current e-value."""
        return log_mean(self.log_ratios) if self.n else 0.0

    @property
    def e_value(self) -> float:
        """The current e-value."""
        return _exp(self.log_e)

    @property
    def alarm(self) -> bool:
        """Whether the e-value has ever reached 1 / alpha."""
        return self.alarm_at is not None

    @property
    def pvalue(self) -> float:
        """Valid at any time: 1 over the largest e-value so far."""
        return min(1.0, math.exp(-self.peak))

    @property
    def path(self) -> tuple[Array, Array]:
        """Number of rows and log e-value after (some of) the updates, including the last."""
        points = self._path if self._path[-1][0] == self.n else [*self._path, (self.n, self.log_e)]
        n, log_e = np.array(points, dtype=np.float64).T
        return n, log_e

    @property
    def alternative(self) -> Alternative:
        """The alternative with the largest posterior weight."""
        return ALTERNATIVES[int(self.log_ratios.argmax())]

    @property
    def words(self) -> str:
        """The current result in words."""
        if not self.n:
            return "no rows yet"
        if self.alarm:
            return f"not calibrated (alarm at row {self.alarm_at:,}): {self.alternative.words}"
        if self.log_e <= 0.0:
            return "no evidence against calibration so far"
        return f"too little evidence for an alarm; the most likely alternative is: {self.alternative.words}"

    def to_dict(self) -> dict[str, Any]:
        """The state of the monitor as plain lists and numbers, to continue later."""
        return {
            "alpha": self.alpha, "lens": self.lens, "n": self.n, "log_ratios": self.log_ratios.tolist(),
            "peak": self.peak, "alarm_at": self.alarm_at, "path": [list(point) for point in self._path],
            "every": self._every, "updates": self._updates,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """The monitor from the result of :meth:`to_dict`."""
        ratios = np.array(state["log_ratios"], dtype=np.float64)
        if ratios.shape != (len(ALTERNATIVES),):
            raise RefusedError(f"state has {ratios.size} log_ratios: a monitor has {len(ALTERNATIVES)}")
        path = [(int(n), float(e)) for n, e in state["path"]]
        return cls(
            state["alpha"], state["lens"], state["n"], ratios, state["peak"], state["alarm_at"], path, state["every"],
            state["updates"],
        )  # fmt: skip


@checks_options
def calibration_monitor(*, alpha: float = 0.05, lens: str = "auto") -> CalibrationMonitor:
    """Create a calibration monitor for a stream, which may be checked after every batch.

    The monitor stores 342 numbers for any number of rows; monitors of parts of a stream can be merged. It tests whether
    the stream as a whole is calibrated: its e-value decreases while predictions are good, and must recover when they
    become bad. To detect drift, start a new monitor every period, and divide ``alpha`` among the periods.

    Parameters
    ----------
    alpha : float
        Probability of ever raising an alarm on calibrated predictions.
    lens : str
        Which event of several classes is monitored; "auto" is the top label.

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


@metric("ehl", combine=_mean_e)
def ehl(
    view: Predictions,
    *,
    n_splits: int = 10,
    rng: Any = 0,
    train: Any = None,
    log: bool = False,
    **common: Unpack[Common],
) -> float:
    r"""Evidence against calibration from a curve fitted to one half of the rows and tested on the other half.

    .. math:: \frac{1}{S} \sum_s \prod_{i \text{ held}}
              \frac{q_{si}^{y_i} (1 - q_{si})^{1 - y_i}}{c_i^{y_i} (1 - c_i)^{1 - y_i}}

    with q the isotonic fit to a random half, its blocks at 0 and 1 moved to (s + 1/2) / (n + 1), and straight between
    blocks.

    Parameters
    ----------
    n_splits : int
        Number of random splits into halves; the e-values are averaged.
    rng : int, Generator or None
        Seed or generator of the random splits.
    train : array-like of bool, optional
        A fixed split: True for the rows to which the curve is fitted.
    log : bool
        Return the natural logarithm.

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
    """Reject calibration if the e-value of Hosmer and Lemeshow is 20 or more.

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
    """The logarithm of the mean over splits; rows are sorted once, so that every half is sorted."""
    order = view.order
    rows = view.subset(order, view.y[order], view.c[order])
    return log_mean(np.array([_held_ratio(rows, seen[order]) for seen in _halves(view, n_splits, rng, train)]))


def _halves(view: Predictions, n_splits: int, rng: Any, train: Any) -> list[Any]:
    """For each split, a mask of the rows to which the curve is fitted."""
    n_splits = whole("n_splits", n_splits)
    if train is not None:
        given = view.align(train, "train").astype(bool)
        if given.all() or not given.any():
            raise RefusedError(
                "train selects all rows or none: some rows are needed to fit the curve, and others to test it"
            )
        return [given]
    if view.n < 2:
        raise RefusedError("eHL needs at least two rows: one half to fit the curve, the other to test it")
    source = generator(rng, "halves")
    halves = []
    for _ in range(n_splits):
        seen = np.zeros(view.n, dtype=bool)
        seen[shuffled(view.n, source, "halves")[: view.n // 2]] = True
        halves.append(seen)
    return halves


def _held_ratio(view: Predictions, seen: Any) -> float:
    """Log likelihood ratio, on the held-out rows, of the curve fitted to the other rows; rows are sorted."""
    some, held = np.flatnonzero(seen), np.flatnonzero(~seen)
    learned = view.subset(some, view.y[some], view.c[some])
    learned.ascending = True
    q = ShrunkIsotonic(rising=False).fit(learned).predict(view.c[held])
    y, c = view.y[held], view.c[held]
    stated = np.where(y == 1, c, 1.0 - c)
    if (stated == 0.0).any():  # an outcome of probability 0 occurred
        return math.inf
    with np.errstate(
        divide="ignore"
    ):  # with very large weights the shrinkage of a block by half a row vanishes by rounding
        gain = np.log(np.where(y == 1, q, 1.0 - q)) - np.log(stated)
    return float(gain.sum() if view.w is None else gain @ view.w[held])
