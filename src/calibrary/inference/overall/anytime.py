"""Intervals of a stream that hold at every row at once: confidence sequences for calibration, from counts by cell.

Let c be the prediction of a row, y its outcome and m its probability given everything before. The error of most numbers
is a sum of w(c) (y - m), with a weight that depends on the prediction alone: w = 1 for the bias, O/E and the offset,
1 - 2c for the Brier score, -logit c for the log loss, logit c - a constant for the slope. For each lambda

    prod exp(lambda w (y - m) - (lambda w (y - c))^2 g(lambda r)),   g(t) = (-log(1 - t) - t) / t^2,

with -r the least value of w (y - c), is expected not to grow, whatever the probabilities are [Fan, Grama and Liu 2015;
Howard, Ramdas, McAuliffe and Sekhon 2021]. A fixed mixture over lambda (:class:`Mixture`) therefore bounds the sum at
all rows at once. The mixture is tightest near the planned number of rows. With days as units, the rows of a day are one
term: w (y - c) and r are summed over the day, and rows of a day may depend on each other in any way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.data.checks import Array
from calibrary.inference.overall.sequential import Mixture
from calibrary.inference.result import Estimate

#: The numbers that have an interval; the bias is the mean prediction minus the share of events.
NUMBERS = ("bias", "oe", "offset", "slope", "brier", "log_loss", "ece")
#: The values of lambda, and how much less weight the mixture gives to the next one.
LAMBDAS = 2.0 ** (-np.arange(-6, 34) / 2.0)
_FALL = math.log(2.0) / 2.0
#: The slope's directions, in standard deviations from the first batch's mean logit, and their shares of alpha; the
#: last share is that of the number of events.
_TURNS = (0.0, -0.5, 0.5, -1.0, 1.0)
_SHARES = np.array([0.46, 0.16, 0.16, 0.07, 0.07, 0.08])
#: Where directions are: bias, Brier score, log loss, then those of the slope.
_SLOPE = slice(3, 3 + len(_TURNS))
DIRECTIONS = 3 + len(_TURNS)
BINS = 15
#: A cost that ends a bet: lambda is too large for the range of a term.
_ENDED = 1e30
_STEEPEST = 60.0


def logit(x: Array) -> Array:
    """The log odds of predictions; 0 and 1 are moved inwards by 1e-12."""
    inside = np.clip(x, 1e-12, 1.0 - 1e-12)
    return np.asarray(np.log(inside) - np.log1p(-inside))


@dataclass(frozen=True)
class Foreseen:
    """What is fixed before the outcomes of the first batch: the planned rows, and the law of its predictions.

    ``centre`` and ``spread`` are those of the logits, and ``rates`` the predicted variance of a row in each direction.
    """

    rows: int
    centre: float
    spread: float
    rates: tuple[float, ...]

    @classmethod
    def of(cls, x: Array, n: Array, rows: int) -> Foreseen:
        """The plan from the first batch's predictions, n of them at each x."""
        v, z = n * x * (1.0 - x), logit(x)
        total = max(float(v.sum()), 1e-9)
        centre = float((v * z).sum() / total)
        spread = max(math.sqrt(float((v * (z - centre) ** 2).sum()) / total), 0.1)
        made = cls(rows, centre, spread, ())
        rates = np.maximum((made.directions(x) ** 2 * v).sum(axis=1) / n.sum(), 1e-7)
        return cls(rows, centre, spread, tuple(float(r) for r in rates))

    def directions(self, x: Array) -> Array:
        """The weight w of a prediction in each direction; the slope leaves out predictions of exactly 0 and 1."""
        z = logit(x)
        turned = np.where((x > 0) & (x < 1), (z - self.centre) / self.spread + np.array(_TURNS)[:, None], 0.0)
        return np.vstack([np.ones_like(x), 1.0 - 2.0 * x, -z, turned])


def _weights(log_bound: Array, planned: Array) -> Array:
    """Log weights of the lambdas: largest where they are best at the planned variance."""
    best = np.sqrt(2.0 * (log_bound + 1.0) / planned)
    away = np.abs(np.log(LAMBDAS) - np.log(best)[..., None]) / _FALL
    each = -_FALL * away
    return np.asarray(each - scipy.special.logsumexp(each, axis=-1, keepdims=True))


def cost(term: Array, reach: Array) -> Array:
    """The cost of each lambda for a term, of which ``-reach`` is the least value; lambdas are the last axis."""
    t = LAMBDAS * np.asarray(reach)[..., None]
    inside = np.minimum(t, 0.99)
    small = inside < 1e-4
    safe = np.where(small, 0.5, inside)
    g = np.where(small, 0.5 + inside / 3.0, (-np.log1p(-safe) - safe) / safe**2)
    return np.where(t > 0.99, _ENDED, (LAMBDAS * np.asarray(term)[..., None]) ** 2 * g)


def reaches(w: Array, x: Array) -> tuple[Array, Array]:
    """How far w (y - x) can lie below 0, and above."""
    return np.abs(w) * np.where(w > 0, x, 1.0 - x), np.abs(w) * np.where(w > 0, 1.0 - x, x)


def row_costs(w: Array, x: Array) -> Array:
    """The cost of a row at each x for every lambda: sides below and above, outcomes 0 and 1, x, lambda."""
    return np.array([[cost(-w * x, reach), cost(w * (1.0 - x), reach)] for reach in reaches(w, x)])


def bounds(costs: Array, log_bound: Array, planned: Array) -> Array:
    """How far a sum of w (y - m) is above and below 0 at most, both at once; sides are the first axis of the costs."""
    return Mixture(-costs, _weights(log_bound, planned)).reach(LAMBDAS, np.broadcast_to(log_bound, costs.shape[:-1]))


def evidence(terms: Array, costs: Array, planned: Array) -> Array:
    """Log e-value against calibration from sums of w (y - c) and their costs, on the bias and on the slope."""
    each = [
        Mixture(side * LAMBDAS * terms[:, d, None] - costs[:, d, k], _weights(two_sided(0.05), planned[:, d])).log_e
        for d in (0, _SLOPE.start)
        for k, side in enumerate((1.0, -1.0))
    ]
    return Mixture(np.stack(each, axis=-1)).log_e


def two_sided(alpha: float | Array) -> Array:
    """The log of the bound on each of two mixtures, one for each side."""
    return np.log(2.0 / np.asarray(alpha, dtype=np.float64))


# -- one stream ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """A stream so far: n0 and n1 rows with either outcome at each x, and the sum of all predictions.

    ``day_costs`` are the summed costs of days, for each direction as :func:`row_costs` and with those of the ECE last,
    if days are the units; ``day_squares`` are the sums of the squared terms of days.
    """

    x: Array
    n0: Array
    n1: Array
    expected: float
    day_costs: Array | None = None
    day_squares: Array | None = None

    def costs(self, w: Array) -> Array:
        """The cost of each lambda, for both sides, if rows are the units."""
        each = row_costs(w, self.x)
        return np.asarray(self.n0 @ each[:, 0] + self.n1 @ each[:, 1])


@dataclass(frozen=True, kw_only=True)
class AnytimeInterval(Estimate):
    """A number of a stream, its interval that holds at every look, and one that holds for a single look.

    The second has the usual asymptotic form, with the observed squared errors as the variance; it is missing for the
    ECE.
    """

    name: str
    once_low: float = math.nan
    once_high: float = math.nan

    @property
    def ratio(self) -> float:
        """How many times as wide as the interval that holds once."""
        once = self.once_high - self.once_low
        return (self.high - self.low) / once if once > 0.0 else math.nan


def intervals(counts: Counts, plan: Foreseen, alpha: float, names: tuple[str, ...] = NUMBERS) -> list[AnytimeInterval]:
    """The intervals of a stream, each of which holds at all rows at once with a probability of 1 - alpha."""
    return [_MAKERS[name](_Sums(counts, plan, alpha)) for name in names]


class _Sums:
    """The sums of a stream from which all its intervals follow."""

    def __init__(self, counts: Counts, plan: Foreseen, alpha: float) -> None:
        self.counts, self.plan, self.alpha = counts, plan, alpha
        self.x, self.rows = counts.x, counts.n0 + counts.n1
        self.n, self.events = float(self.rows.sum()), float(counts.n1.sum())
        self.w = plan.directions(counts.x)
        self.z = float(scipy.special.ndtri(1.0 - alpha / 2.0))

    def bound(self, d: int, alpha: float) -> Array:
        """How far the sum in a direction is above and below 0."""
        costs = self.counts.costs(self.w[d]) if self.counts.day_costs is None else self.counts.day_costs[d]
        return bounds(costs, two_sided(alpha), np.asarray(self.plan.rows * self.plan.rates[d]))

    def spread(self, w: Array) -> float:
        """The standard deviation of the sum of w (y - m), from the squared errors."""
        return math.sqrt(float((w**2 * (self.counts.n0 * self.x**2 + self.counts.n1 * (1.0 - self.x) ** 2)).sum()))

    def once(self, d: int) -> float:
        """Half the width of the interval of the sum that holds once."""
        if self.counts.day_squares is None:
            return self.z * self.spread(self.w[d])
        return self.z * math.sqrt(float(self.counts.day_squares[d]))

    def held(
        self, name: str, value: float, low: float, high: float, once_low: float = math.nan, once_high: float = math.nan
    ) -> AnytimeInterval:
        """A number with its interval, and with the one that holds once if there is one."""
        level = 1.0 - self.alpha
        return AnytimeInterval(value, low, high, level, name=name, once_low=once_low, once_high=once_high)

    @property
    def sums(self) -> tuple[float, float, float, float]:
        """The sum of the rows' probabilities: its ends at all rows at once, and its ends once."""
        above, below = self.bound(0, self.alpha)
        once = self.once(0)
        ends = self.events - above, self.events + below, self.events - once, self.events + once
        return tuple(float(np.clip(end, 0.0, self.n)) for end in ends)  # type: ignore[return-value]


def _bias(of: _Sums) -> AnytimeInterval:
    e, n = of.counts.expected, of.n
    low, high, once_low, once_high = of.sums
    each = (e - of.events, e - high, e - low, e - once_high, e - once_low)
    return of.held("bias", *(x / n for x in each))


def _oe(of: _Sums) -> AnytimeInterval:
    e = of.counts.expected
    return of.held("oe", *(x / e if e > 0.0 else math.nan for x in (of.events, *of.sums)))


def _offset(of: _Sums) -> AnytimeInterval:
    ends = np.array([of.events, *of.sums])
    return of.held("offset", *(float(a) for a in offsets(of.x, of.rows, ends)))


def offsets(x: Array, rows: Array, sums: Array, slope: float = 1.0) -> Array:
    """The offsets of the log odds at which the probabilities add up to each of these sums."""
    z, low, high = slope * logit(x), np.full(len(sums), -_STEEPEST), np.full(len(sums), _STEEPEST)
    for _ in range(50):
        middle = 0.5 * (low + high)
        over = scipy.special.expit(z + middle[:, None]) @ rows > sums
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    middle = 0.5 * (low + high)
    infinite = np.where(sums <= 0.0, -math.inf, math.inf)
    return np.where((sums <= 0.0) | (sums >= rows.sum()), infinite, middle)


def _loss(name: str, d: int) -> Callable[[_Sums], AnytimeInterval]:
    def made(of: _Sums) -> AnytimeInterval:
        inside = np.clip(of.x, 1e-12, 1.0 - 1e-12)
        zero, one = (of.x**2, (1.0 - of.x) ** 2) if name == "brier" else (-np.log1p(-inside), -np.log(inside))
        total = float(of.counts.n0 @ zero + of.counts.n1 @ one)
        above, below = of.bound(d, of.alpha)
        once = of.once(d)
        least = float(np.minimum(zero, one) @ of.rows)
        ends = (total, max(total - above, least), total + below, max(total - once, least), total + once)
        return of.held(name, *(float(end) / of.n for end in ends))

    return made


def _ece(of: _Sums) -> AnytimeInterval:
    """The ECE of 15 bins of equal width: the bound on the sum over bins holds for every pattern of signs at once."""
    place = np.clip(np.ceil(of.x * BINS).astype(int) - 1, 0, BINS - 1)
    gaps = np.bincount(place, of.counts.n1 - of.rows * of.x, minlength=BINS)
    used = len(np.unique(place[of.rows > 0]))
    bound = np.asarray(math.log(1.0 / of.alpha) + used * math.log(2.0))
    if of.counts.day_costs is None:
        one = np.maximum(of.x, 1.0 - of.x)
        costs = of.counts.n0 @ cost(of.x, one) + of.counts.n1 @ cost(1.0 - of.x, one)
    else:
        costs = of.counts.day_costs[DIRECTIONS, 0]
    value = float(np.abs(gaps).sum())
    away = float(bounds(costs, bound, np.asarray(of.plan.rows * of.plan.rates[0])))
    return of.held("ece", value / of.n, max(value - away, 0.0) / of.n, min((value + away) / of.n, 1.0))


# -- the slope -----------------------------------------------------------------------------------------


class Slope:
    """The slopes that the bounds on all directions allow, with some intercept."""

    def __init__(self, of: _Sums) -> None:
        inside = (of.x > 0.0) & (of.x < 1.0)
        self.z, self.rows, self.events = logit(of.x[inside]), of.rows[inside], of.counts.n1[inside]
        self.w = np.vstack([of.w[_SLOPE], of.w[:1]])[:, inside]
        places = [*range(*_SLOPE.indices(DIRECTIONS)), 0]
        self.ends = np.array([of.bound(d, of.alpha * s) for d, s in zip(places, _SHARES, strict=True)])
        self.seen = self.w @ self.events
        self.of = of

    def strain(self, slope: float, intercepts: Array) -> Array:
        """The largest share of its bound that a direction needs, for each intercept; at most 1 is allowed."""
        p = scipy.special.expit(intercepts[:, None] + slope * self.z)
        away = self.seen - (p * self.rows) @ self.w.T
        return np.maximum(away / self.ends[:, 0], -away / self.ends[:, 1]).max(axis=1)

    def allowed(self, slope: float) -> bool:
        """Whether some intercept is allowed with this slope."""
        total, (above, below) = float(self.events.sum()), self.ends[-1]
        ends = np.clip([total - above, total + below], 1e-9, self.rows.sum() * (1.0 - 1e-12))
        x = scipy.special.expit(self.z)
        low, high = offsets(x, self.rows, ends, slope)
        for _ in range(4):
            tried = np.linspace(low, high, 25)
            strain = self.strain(slope, tried)
            best = int(strain.argmin())
            if strain[best] <= 1.0:
                return True
            low, high = tried[max(best - 1, 0)], tried[min(best + 1, 24)]
        return False

    def fit(self) -> tuple[float, float, float]:
        """Intercept and slope of the logistic fit, and the standard deviation of the slope."""
        a, b = 0.0, 1.0
        for _ in range(60):
            p = scipy.special.expit(a + b * self.z)
            v = self.rows * p * (1.0 - p)
            off = self.events - self.rows * p
            j = np.array([[v.sum(), v @ self.z], [v @ self.z, v @ self.z**2]])
            if np.linalg.cond(j) > 1e12:
                return math.nan, math.nan, math.nan
            step = np.linalg.solve(j, [off.sum(), off @ self.z])
            size = min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
            a, b = a + size * step[0], b + size * step[1]
            if np.abs(step).max() < 1e-9:
                break
        across = (self.z - j[0, 1] / j[0, 0]) / (j[1, 1] - j[0, 1] ** 2 / j[0, 0])
        noise = self.events * (1.0 - p) ** 2 + (self.rows - self.events) * p**2
        return float(a), float(b), math.sqrt(float(across**2 @ noise))

    def end(self, start: float, step: float) -> float:
        """The last allowed slope from the fitted one on, in the direction of the step."""
        inside = start
        while self.allowed(start + step):
            inside, step = start + step, 2.0 * step
            if abs(step) > _STEEPEST:
                return math.copysign(math.inf, step)
        outside = start + step
        while abs(outside - inside) > 1e-4 * (abs(step) + 1e-3):
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if self.allowed(middle) else (inside, middle)
        return outside


def _slope(of: _Sums) -> AnytimeInterval:
    made = Slope(of)
    _, fitted, deviation = made.fit() if 0.0 < made.events.sum() < made.rows.sum() else (math.nan,) * 3
    if not math.isfinite(fitted) or abs(fitted) > _STEEPEST:
        return of.held("slope", math.nan, -math.inf, math.inf)
    once = of.z * deviation
    ends = made.end(fitted, -2.0 * deviation), made.end(fitted, 2.0 * deviation)
    if of.counts.day_squares is not None:
        once *= math.sqrt(float(of.counts.day_squares[_SLOPE.start])) / max(of.spread(of.w[_SLOPE.start]), 1e-300)
    return of.held("slope", fitted, *ends, fitted - once, fitted + once)


_MAKERS = {
    "bias": _bias,
    "oe": _oe,
    "offset": _offset,
    "slope": _slope,
    "brier": _loss("brier", 1),
    "log_loss": _loss("log_loss", 2),
    "ece": _ece,
}
