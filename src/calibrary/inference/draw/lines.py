"""Lines of true probabilities from "calibrated" to "as observed", along which a test is inverted to get an interval.

A *truth* is a set of true probabilities from which labels could have been drawn: one for each prediction, or one row of
them. At t = 0 the truth is the prediction itself, at t = 1 what the data show. There are a few directions: the gaps of
equal-mass bins, which follow any shape coarsely; the gaps of the metric's own bins, which follow errors that alternate
from bin to bin; a logistic map, which follows the usual shapes finely; and the gaps of the predictions of exactly 0 and
1 alone, which hardly vary by chance and so add more to the estimate than gaps elsewhere. For several columns
(class-wise, or the whole row of probabilities) there are also the gaps that noise does not explain, which follow errors
of few classes, and a matrix of confusions, which follows classes that are taken for one another.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.data.checks import Array, softmax
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.grouping import Edges, EqualMass, EqualWidth, Grouping, as_grouping
from calibrary.inference.draw.statistic import Statistic
from calibrary.maps.base import EPS, logit
from calibrary.maps.likelihood import Platt, Temperature
from calibrary.maps.vector import bias_loss
from calibrary.metrics.machinery.entry import Entry
from calibrary.metrics.machinery.measure import combined, each_view, measure, views_of
from calibrary.numerics.solve.newton import minimize
from calibrary.question import Question

#: The number of equal-mass bins whose gaps define a direction.
_BINS = 15
#: The options that choose a metric's bins.
_BIN_OPTIONS = ("binning", "n_bins", "closed", "mass_rule", "edges", "points_per_bin", "strategy")
#: Above this many classes the logistic direction has a temperature but no class biases, and confusions are not fitted.
_FEW_CLASSES = 30
#: With fewer events (or non-events) than this, the interval includes all shifts that agree with their number.
_FEW_EVENTS = 10
#: The largest shift of log odds, and the number of bisection steps within that range.
_FARTHEST, _HALVINGS = 40.0, 50
#: Lenses with one pair (confidence, outcome) for each row, independent of the labels.
_ONE_VIEW = ("binary", "top-label", "rth", "within-top-r")


@dataclass(frozen=True)
class Line:
    """True probabilities along one direction: ``line(t)`` is an array of the shape of the predictions."""

    name: str
    truth: Callable[[float], Array]

    def __call__(self, t: float) -> Array:
        return self.truth(t)


def lines_of(statistic: Statistic) -> list[Line]:
    """The lines for a metric, constructed in the view that the metric uses."""
    p = statistic.sample.p
    view, lift = view_of_lines(statistic)
    total = p.n if statistic.sample.weight_type == "importance" else p.total
    own = own_bins(statistic)
    return [Line(name, _line(view, direction, lift)) for name, direction in directions(view, total, own)]


def directions(view: Predictions, total: float, own: Grouping | None = None) -> list[tuple[str, Array]]:
    """The directions from "calibrated" to "as observed" in a view of ``total`` rows, one for each kind of gap.

    ``own`` are the metric's bins, if it has bins that do not depend on the labels.
    """
    n_bins = max(1, min(_BINS, int(np.sqrt(total))))
    found = [("gaps", _gaps(view, total, EqualMass(n_bins)))]
    if own is not None:
        found.append(("own bins", _gaps(view, total, own, _shrunk_to_mean)))
        found.append(("marked gaps", _gaps(view, total, own, _marked)))
    if view.binary:
        found.append(("certain", _of_certain(view)))
    else:
        found.append(("clear gaps", _gaps(view, total, EqualMass(n_bins), _clear)))
        if view.k <= _FEW_CLASSES:
            found.append(("confusions", _confused(view, total)))
    logistic = _logistic(view)
    if logistic is not None:
        found.append(("logistic", logistic))
    return [(name, e) for name, e in found if np.isfinite(e).all() and np.abs(e).max(initial=0.0) > 0]


def _of_certain(view: Predictions) -> Array:
    """The gaps of the predictions of exactly 0 and 1, with all other predictions right."""
    found = np.zeros_like(view.c)
    for end in (0.0, 1.0):
        at = view.c == end
        if at.any():
            found[at] = np.average(view.y[at], weights=view.weight[at]) - end
    return found


def own_bins(statistic: Statistic) -> Grouping | None:
    """The bins that a metric uses with these options, if they depend neither on labels nor on weights."""
    entry, options = statistic.entry, statistic.question.options
    if entry is None or not {"n_bins", "binning"} <= set(entry.options):
        return None
    usual = inspect.signature(entry.formula).parameters.get("binning")
    given: dict[str, Any] = {"binning": "width" if usual is None else usual.default}
    given |= {name: options[name] for name in _BIN_OPTIONS if name in options}
    if isinstance(given["binning"], str) and given["binning"] not in ("width", "mass"):
        return None
    grouping = as_grouping(**given) if given["binning"] is not None else None
    return grouping if isinstance(grouping, EqualWidth | Edges | EqualMass) else None


def _line(view: Predictions, direction: Array, lift: Callable[[Array], Array]) -> Callable[[float], Array]:
    start = view.probability

    def truth(t: float) -> Array:
        q = np.clip(start + t * direction, 0.0, 1.0)
        if q.ndim == 2:
            total = q.sum(axis=1, keepdims=True)
            # a row whose probabilities are all clipped to 0 keeps its predictions
            q = np.where(total > 0.0, q / np.where(total > 0.0, total, 1.0), start)
        return lift(q)

    return truth


def view_of_lines(statistic: Statistic) -> tuple[Predictions, Callable[[Array], Array]]:
    """The view in which directions are constructed, and the function from its truths to class probabilities."""
    return statistic.remember("lines", lambda: _view_of_lines(statistic))


def _view_of_lines(statistic: Statistic) -> tuple[Predictions, Callable[[Array], Array]]:
    p = statistic.sample.p
    if statistic.entry is None or not statistic.entry.of_labels:
        return p, lambda q: q
    lens = statistic.entry.lens_for(p, statistic.question)
    if lens.name not in _ONE_VIEW or (p.binary and lens.name == "binary"):
        return p, lambda q: q
    view = views_of(statistic.entry, p, statistic.question).views[0]
    if view.n != p.n or not view.binary:
        return p, lambda q: q
    counts = _counting(statistic, p)
    return view, lambda q: _lifted(q, view.c, p, counts)


def _counting(statistic: Statistic, p: Predictions) -> NDArray[np.bool_]:
    """The classes of each row for which the view's outcome is 1."""
    assert statistic.entry is not None
    if statistic.entry.lens_for(p, statistic.question).name == "top-label":
        return np.arange(p.k) == p.top[:, None]
    columns = [
        views_of(statistic.entry, p.relabeled(np.full(p.n, k, dtype=np.intp)), statistic.question).views[0].y
        for k in range(p.k)
    ]
    return np.column_stack(columns).astype(bool)


def _lifted(q: Array, c: Array, p: Predictions, counts: NDArray[np.bool_]) -> Array:
    """Class probabilities for which the outcome has probability q, with unchanged proportions on either side."""
    truth = np.empty(counts.shape)
    for side, now, before in ((counts, q, c), (~counts, 1.0 - q, 1.0 - c)):
        known = before > 0.0
        scale = np.where(known, now / np.where(known, before, 1.0), 0.0)
        alike = now / np.maximum(side.sum(axis=1), 1)  # all probabilities on this side are 0: they become equal
        np.copyto(truth, np.where(known[:, None], p.p * scale[:, None], alike[:, None]), where=side)
    truth = np.clip(truth, 0.0, 1.0)
    return truth[:, 1] if p.binary else truth


def why_no_truths(statistic: Statistic) -> str:
    """The reason why the metric has no true value for known true probabilities; empty if it has one."""
    entry = statistic.entry
    if entry is None:
        return "the values of a function are only those on the data"
    if not entry.of_labels:
        return "it depends on more than which detections are correct"
    if entry.weights == "none":
        return "it takes no weights, so its true value cannot be computed"
    if entry.weights == "rows" and "min_count" in entry.options:  # a known truth writes every row once for each label
        return "its min_count is a number of rows, so its true value cannot be computed"
    if not entry.order_free:
        return "it depends on the order of the rows, so its true value cannot be computed"
    return (
        ""
        if statistic.sample.takes_truths
        else "true probabilities of weighted detections are not defined for each copy"
    )


# -- few events -------------------------------------------------------------------------------------


def rare_truths(statistic: Statistic, alpha: float, few: float = _FEW_EVENTS) -> list[Array]:
    """The extreme shifts of all log odds that agree with the number of events, if there were few events.

    These are less than ten, or less than ``few`` and a fifth of the rows.

    Without any event the observed gap points downwards, and so does every line from the data; yet the probabilities may
    have been too low, as Clopper and Pearson's interval shows. The result is empty if there were ten events and ten
    non-events, or if rows have no single outcome.
    """
    view, lift = view_of_lines(statistic)
    if not view.binary or view.fractional:
        return []
    n = np.ones(view.n) if statistic.sample.weight_type == "importance" else view.weight
    few = max(min(few, float(n.sum()) / 5.0), _FEW_EVENTS)
    return [lift(q) for q in shifted_by_count(view.c, n, n * view.y, alpha, few)]


def shifted_by_count(c: Array, n: Array, events: Array, alpha: float, few: float = _FEW_EVENTS) -> list[Array]:
    """The extreme shifts of log odds for n rows at each confidence, given the number of events at each."""
    found = []
    inside = (c > 0.0) & (c < 1.0)
    # rows of probability 0 or 1 have no log odds: their true error rate is bounded by the number of wrong ones
    wrong = np.where(c == 0.0, events, n - events)[~inside].sum()
    certain = n[~inside].sum()
    if certain > 0.0 and wrong < _FEW_EVENTS:
        often = (
            float(scipy.special.betaincinv(wrong + 1.0, certain - wrong, 1.0 - alpha / 2.0)) if wrong < certain else 1.0
        )
        found.append(np.where(inside, c, np.where(c == 0.0, often, 1.0 - often)))
    total, seen = float(n[inside].sum()), float(events[inside].sum())
    if total > 0.0 and min(seen, total - seen) < few:
        odds, mirrored = logit(c[inside]), seen > total / 2.0
        if mirrored:
            odds, seen = -odds, total - seen
        for more in (True, False):
            q = c.copy()
            q[inside] = scipy.special.expit(odds + _shift(odds, n[inside], seen, alpha / 2.0, more))
            q[inside] = 1.0 - q[inside] if mirrored else q[inside]
            found.append(q)
    return found


def _shift(odds: Array, n: Array, seen: float, tail: float, more: bool) -> float:
    """The shift of log odds at which at most this many events (at least, with ``more=False``) have this probability.

    The number of events is approximated by the binomial distribution of the same mean and variance.
    """
    low, high = -_FARTHEST, _FARTHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        q = scipy.special.expit(odds + middle)
        mean, square = float(n @ q), float(n @ (q * q))
        trials, chance = mean**2 / square, min(square / mean, 1.0)
        k = seen if more else seen - 1.0
        upto = (
            1.0 if k >= trials else 0.0 if k < 0.0 else 1.0 - float(scipy.special.betainc(k + 1.0, trials - k, chance))
        )
        above = upto < tail if more else 1.0 - upto > tail
        low, high = (low, middle) if above else (middle, high)
    return (low + high) / 2.0


# -- directions -------------------------------------------------------------------------------------


#: A function that adjusts the gaps of bins, given their noise variances and the bins' shares of the rows.
Reshaped = Callable[[Array, Array, Array], Array]


def _as_seen(gap: Array, noise: Array, share: Array) -> Array:
    return gap


def _shrunk_to_mean(gap: Array, noise: Array, share: Array) -> Array:
    """Shrink the sizes of the gaps to their mean, by the share of their variance that noise explains.

    Noise makes equal gaps unequal, and on new labels unequal gaps give a higher error than equal ones of the same
    mean. Without the shrinkage the upper end of the interval would be too low for wave-shaped errors.
    """
    middle = float(share @ np.abs(gap))
    spread = float(share @ (np.abs(gap) - middle) ** 2)
    kept = max(0.0, 1.0 - float(share @ noise) / spread) if spread > 0.0 else 1.0
    return np.sign(gap) * (middle + kept * (np.abs(gap) - middle))


def _clear(gap: Array, noise: Array, share: Array) -> Array:
    """Subtract from each gap the part that noise explains; the rest lies in few bins, as errors of few classes do.

    On new labels the metric is higher if the same error is concentrated in few bins than if it is spread over all.
    Without this direction the lower end of the interval would be too high.
    """
    square = gap**2  # 0 also for a gap below 1e-162
    return gap * np.maximum(0.0, 1.0 - noise / np.where(square == 0.0, 1.0, square))


def _marked(gap: Array, noise: Array, share: Array) -> Array:
    """Keep the gaps of more than two standard errors: only a part of the predictions may be wrong.

    The estimate is then larger than for an equal error in all bins, because the other bins add their noise to it.
    """
    return np.where(gap**2 > 4.0 * noise, gap, 0.0)


def _gaps(view: Predictions, total: float, bins: Grouping, reshaped: Reshaped = _as_seen) -> Array:
    """The observed frequency minus the mean prediction in each row's bin, for each column.

    The weights represent ``total`` rows, from which the noise is computed.
    """
    if view.binary:
        return _binned_gap(view.y.astype(np.float64), view.c, view, total, bins, reshaped)
    outcomes = ((view.y == k).astype(np.float64) for k in range(view.k))
    columns = [_binned_gap(y, view.p[:, k], view, total, bins, reshaped) for k, y in enumerate(outcomes)]
    return np.column_stack(columns)


def _binned_gap(outcome: Array, c: Array, view: Predictions, total: float, bins: Grouping, reshaped: Reshaped) -> Array:
    column = Predictions(outcome.astype(np.intp), np.ascontiguousarray(c), view.w)
    index = bins.groups(column).index
    weight = column.weight * (total / view.total)
    size = np.bincount(index, weights=weight)
    some = np.where(size > 0.0, size, 1.0)
    gap = np.bincount(index, weights=weight * (outcome - c)) / some
    noise = np.bincount(index, weights=weight * c * (1.0 - c)) / some**2
    return reshaped(gap, noise, size / size.sum())[index]


def _confused(view: Predictions, total: float) -> Array:
    """The predictions times the matrix of confusions that the labels show clearly, minus the predictions.

    An element is the share of one class that is another class in truth, by least squares; shares within two standard
    errors of 0 are left out. The matrix moves probability within a row and leaves the other classes as they are, while
    the gaps of bins are those of each column alone.
    """
    root = np.sqrt(view.weight / view.total)[:, None]
    x, away = root * view.p, root * (view.one_hot - view.p)
    share = np.linalg.lstsq(x, away, rcond=None)[0]
    variance = np.diag(np.linalg.pinv(x.T @ x))[:, None] * np.sum((away - x @ share) ** 2, axis=0) / total
    share = np.where((share > 0.0) & (share**2 > 4.0 * variance), share, 0.0)
    np.fill_diagonal(share, 0.0)
    np.fill_diagonal(share, np.maximum(1.0 - share.sum(axis=1), 0.0))
    return view.p @ (share / share.sum(axis=1, keepdims=True)) - view.p


def _logistic(view: Predictions) -> Array | None:
    """The fitted logistic map minus the predictions: intercept and slope, or temperature and class biases."""
    try:
        with collected_warnings(), np.errstate(all="ignore"):
            if view.binary:
                y = view.y.astype(bool)
                if y.all() or not y.any():
                    return None  # only one class occurs: the fitted map would be constant at 0 or 1
                fitted = Predictions(view.y, view.c, view.w)
                return Platt().fit(fitted)(view.c) - view.c
            return _softmax_map(view) - view.p
    except RefusedError:
        return None


def _softmax_map(view: Predictions) -> Array:
    z = np.log(np.clip(view.p, EPS, 1.0 - EPS))
    if view.k > _FEW_CLASSES:
        slope = Temperature().fit(Predictions(view.y, view.p, view.w)).inverse_
        return softmax(slope * z)
    best = minimize(bias_loss(view), np.append(1.0, np.zeros(view.k - 1)), tolerance=1e-6, max_iter=50).x
    return softmax(best[0] * z + np.append(best[1:], 0.0))


# -- the value of a metric under a truth --------------------------------------------------------------

#: The total weight of a row; weights are whole numbers.
_COPIES = 1e6
#: The largest number of entries (rows times labels times classes) of the table.
_MOST_NUMBERS = 30_000_000
#: Lenses whose views have every row, independent of the labels, with one outcome each.
_PAIRS = ("binary", "top-label", "class-wise", "rth", "within-top-r", "cumulative")


class NoPopulationError(ValueError):
    """The true value of the metric cannot be computed from known true probabilities."""


def population(statistic: Statistic, truth: Array) -> Array:
    """The true values of the metric if labels had the probabilities ``truth``, given the predictions."""
    value: Callable[[Array], Any] = statistic.remember("population", lambda: _prepared(statistic))
    with collected_warnings(), np.errstate(all="ignore"):
        return statistic.flat(value(truth))


def _prepared(statistic: Statistic) -> Callable[[Array], Any]:
    """The metric as a function of true probabilities: everything else is computed once."""
    entry = statistic.entry
    if entry is not None and (entry.weights == "none" or not entry.of_labels):
        raise NoPopulationError(f"{entry.id} takes no weights, so its true value cannot be computed")
    if entry is None and statistic.listed:
        raise NoPopulationError(f"{statistic.name} takes no sample_weight, so its true value cannot be computed")
    question, share = _scaled_up(statistic), _share(statistic)
    if entry is not None and (entry.combine is not None or question.average is not None):
        with collected_warnings(), np.errstate(all="ignore"):
            views = views_of(entry, statistic.sample.p, question)
            lens = entry.lens_for(statistic.sample.p, question)
        if lens.name in _PAIRS and all(view.binary and view.n == len(share) for view in views.views):
            return _of_pairs(entry, statistic.sample.p, question, views, share)
    return lambda truth: _of_all(statistic, truth, question, share)


def _of_pairs(entry: Entry, p: Predictions, question: Question, views: Views, share: Array) -> Callable[[Array], Any]:
    """The metric on each view, in which every row has both outcomes."""
    plain = p.binary and p.probability.ndim == 1 and len(views.views) == 1 and views.views[0] is p

    def outcomes() -> Iterator[list[Array]]:
        """For each label that all rows might have: the outcomes of the rows in every view."""
        for k in range(p.k):
            yield [view.y for view in views_of(entry, p.relabeled(np.full(p.n, k, dtype=np.intp)), question).views]

    few = not plain and p.n * p.k * len(views.views) <= _MOST_NUMBERS
    known = [[y.astype(bool) for y in each] for each in outcomes()] if few else []

    def value(truth: Array) -> Any:
        if plain:
            chances = [truth]
        else:
            table = np.column_stack([1.0 - truth, truth]) if truth.ndim == 1 else truth
            chances = [np.zeros(p.n) for _ in views.views]
            for k, each in enumerate(known or outcomes()):
                for chance, y in zip(chances, each, strict=True):
                    chance += table[:, k] * y
        soft = tuple(_both(view, np.clip(q, 0.0, 1.0), share) for view, q in zip(views.views, chances, strict=True))
        for view in soft:
            view.seen_through = views.views[0].seen_through
        prevalence = views.prevalence
        if len(prevalence) == len(chances):
            prevalence = np.array([np.average(q, weights=share) for q in chances])
        there = Views(soft, views.keys, prevalence, views.several, views.n_classes, views.skips_undefined)
        return combined(entry, each_view(entry.formula, there, question), there, question)

    return value


def _of_all(statistic: Statistic, truth: Array, question: Question, share: Array) -> Any:
    """Compute the metric on the data in which every row has every label."""
    p = statistic.sample.p
    table = np.column_stack([1.0 - truth, truth]) if truth.ndim == 1 else truth
    if p.n * p.k * (1 if p.binary else p.k) > _MOST_NUMBERS:
        raise NoPopulationError(
            f"a table of {p.n:,} rows with each of {p.k} labels is too large to compute the true value"
        )
    row = np.repeat(np.arange(p.n), p.k)
    weight = _whole(table.ravel() * np.repeat(share, p.k))
    kept = np.flatnonzero(weight > 0.0)
    row, y = row[kept], np.tile(np.arange(p.k), p.n)[kept]
    every = p.subset(row, y, p.probability[row], classes=p.class_names, origin=p.origin)
    every.w = weight[kept]
    if statistic.entry is None:
        return statistic.of(every)
    return measure(statistic.entry, every, question)


def _share(statistic: Statistic) -> Array:
    """The relative weight of each row, with mean 1."""
    p = statistic.sample.p
    return p.weight * (p.n / p.total)


def _both(view: Predictions, q: Array, share: Array) -> Predictions:
    """Every row of a view with both outcomes, weighted by their probabilities."""
    weight = _whole(np.concatenate([(1.0 - q) * share, q * share]))
    kept = np.flatnonzero(weight > 0.0)
    row, y = kept % view.n, (kept >= view.n).astype(np.intp)
    both = view.subset(row, y, view.probability[row], classes=view.class_names, origin=view.origin)
    both.w = weight[kept]
    return both


def _whole(weight: Array) -> Array:
    return np.rint(_COPIES * weight)


def _scaled_up(statistic: Statistic) -> Question:
    """The question, changed to frequency weights."""
    question = statistic.question
    if statistic.entry is not None and "weight_type" in statistic.entry.options:
        question = replace(question, options={**question.options, "weight_type": "frequency"})
    return question
