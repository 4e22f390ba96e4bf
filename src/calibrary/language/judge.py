"""Few human labels and a judge's labels for all rows: the human labels make intervals valid, the judge narrower.

With residuals (y - c) of the labelled rows and (j - c) of all rows, every averaged residual is estimated by
mean_labelled[y - c] + l (mean_all[j - c] - mean_labelled[j - c]). Whatever the judge's quality, the term in brackets
has expectation 0; l in [0, 1] is chosen on other folds of the labelled rows to minimise the variance, and l = 0 uses
the human labels alone. As a residual of each row this is r_i = N w_i/W ((y_i - c_i) - l (j_i - c_i)) + l (j_i - c_i),
the first part for labelled rows only, and a metric that is a norm of averaged residuals uses c + r in place of its
labels. Noise is simulated by random signs on the contributions of the rows, centred among the labelled and among the
unlabelled rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from calibrary.base.claims import Sentence
from calibrary.base.errors import RefusedCallError, RefusedError, collected_warnings, whole
from calibrary.base.markup import ToldByName
from calibrary.base.numbers import counted, number, percent, pvalue, with_interval
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array
from calibrary.data.identity import knows_rows
from calibrary.data.predictions import Predictions
from calibrary.grouping.edges import EqualMass, EqualWidth
from calibrary.grouping.named import edges_among
from calibrary.inference.draw.resampling import alpha_of, check_draws
from calibrary.inference.result import UNKNOWN, Estimate
from calibrary.inference.verbs.test import test
from calibrary.language.answers import evidence, norm_ends, tail, with_ends
from calibrary.language.labels import JudgedRows, judged_rows
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.declare import Entry
from calibrary.metrics.machinery.measure import measure
from calibrary.numerics.draw import coin_signs, seed_of, shuffled

FOLDS = 5
#: Smallest number of labelled rows in a bin: the variance of an empty bin would be estimated as 0.
LEAST_IN_BIN = 5
#: Number of bins for choosing l for a metric without bins.
_USUAL_BINS = 10
_AT_ONCE = 2_000_000
#: A judge whose squared t statistic is not above this is ignored: its weight would be noise.
_FORGONE = 2.0
#: Number of disagreements between judge and humans added to those observed: few labels may show few of them by chance.
_ADDED = 2.0
#: With fewer labelled rows than this that have the larger loss, the interval includes more of them.
_FEW = 10.0


@dataclass(frozen=True)
class JudgedResult(ToldByName, Estimate):
    """A metric from few human labels and a judge. The result unpacks as ``low, high = result``.

    ``pvalue`` is that of the hypothesis that the predictions are calibrated, ``expected_by_chance`` the value from
    noise alone (both NaN for a mean of losses).

    Attributes
    ----------
    humans : the :class:`Estimate` from the human labels alone, computed in the same way
    judge_only : the metric if the judge's labels were the true labels; it has no interval, because it may be biased
    tuning : l, the weight of the judge from 0 (the humans alone) to 1
    worth : number of human labels that would give the same precision without the judge
    label_more : number of further rows to label for half the width; infinite if all rows would not suffice
    agreement : share of the human labels with which the judge agrees (its probabilities are rounded)
    judge_bias : mean of the judge's labels minus that of the human labels, on the same rows
    judge_error, judge_pvalue : expected calibration error of the judge's probabilities against the human labels, and
        its test; NaN where the judge gives 0 and 1 only
    metric, n, n_labels, n_bins : what was measured, rows, human labels, bins after merging (0 without bins)
    n_resamples : number of draws
    """

    humans: Estimate = UNKNOWN
    judge_only: float = math.nan
    tuning: float = math.nan
    worth: float = math.nan
    label_more: float = math.nan
    agreement: float = math.nan
    judge_bias: float = math.nan
    judge_error: float = math.nan
    judge_pvalue: float = math.nan
    metric: str = ""
    n: int = 0
    n_labels: int = 0
    n_bins: int = 0
    n_resamples: int = 0

    def plot(self, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
        """Draw the intervals of the humans alone and of both, beside the judge; returns the matplotlib Axes."""
        from calibrary.plots.results import plot_judged

        return plot_judged(self, ax=ax, caption=caption, theme=theme)

    def rows(self) -> list[tuple[str, str]]:
        """The numbers by name, written for people."""
        pairs = [
            ("humans and judge", with_interval(self.value, self.low, self.high)),
            ("humans alone, same method", with_interval(self.humans.value, *self.humans)),
            ("judge's labels alone", number(self.judge_only)),
            ("weight of the judge", number(self.tuning)),
            ("human labels", f"{self.n_labels:,} of {self.n:,}"),
            ("as good as", counted(round(self.worth), "human label")),
            ("further labels for half the width", "more than there are rows" if math.isinf(self.label_more)
             else f"{self.label_more:,.0f}"),
            ("judge agrees with humans", percent(self.agreement)),
        ]  # fmt: skip
        if not math.isnan(self.judge_error):
            pairs.append(("ECE of the judge", f"{number(self.judge_error)} ({pvalue(self.judge_pvalue)})"))
        return pairs


@knows_rows
@checks_options
def judged(
    metric: str,
    y_true: Any,
    y_prob: Any,
    *,
    judge: Any,
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = None,
    inclusion: Any = None,
    **options: Any,
) -> JudgedResult:
    """Estimate a metric if few rows have a human label, and all rows have a label by a judge.

    If a judge's labels are taken as true, intervals may be arbitrarily wrong; if only the human labels are used, the
    intervals are wide. Here the judge reduces the noise of the human labels and cannot bias them: with an uninformative
    judge the result is that of the human labels alone.

    Parameters
    ----------
    metric : str
        An error that is a norm of averaged residuals ("ece", "smece", "ecce_mad", "mmce", ...) or a mean of losses
        ("bs", "nll", ...).
    y_true : array-like of shape (N,)
        Human labels, 0 and 1, with NaN or None for rows without one; for several classes their numbers.
    y_prob : array-like of shape (N,) or (N, K)
        Probabilities; for several classes the most likely class is judged.
    judge : array-like of shape (N,)
        The judge's labels of all rows, or its probabilities of label 1.
    n_bins : int, optional
        Bins of a binned metric; neighbouring bins are merged until each has 5 labelled rows.
    confidence_level, n_resamples, rng
        As in :func:`calibrary.interval`.
    inclusion : array-like of shape (N,), optional
        The known probabilities with which rows were selected for labelling; by default they were selected at random.
    **options
        Options of the metric.

    Returns
    -------
    JudgedResult

    Examples
    --------
    >>> import numpy as np, calibrary as cal
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> y = (rng.random(2000) < c).astype(float)
    >>> judge = np.where(rng.random(2000) < 0.9, y, 1 - y)
    >>> y[200:] = np.nan
    >>> found = cal.judged("ece", y, c, judge=judge, rng=0)
    >>> found.low, found.n_labels, found.worth > 250
    (0.0, 200, True)
    """
    entry = catalogue[metric]
    alpha = alpha_of(confidence_level)
    check_draws(n_resamples, alpha)
    rows = judged_rows(y_true, y_prob, judge, inclusion)
    seed = seed_of(rng)
    if n_bins is not None:
        whole("n_bins", n_bins)
        if "n_bins" not in entry.options:
            raise RefusedCallError(f"{entry.key} has no bins: leave n_bins out")
        options["n_bins"] = n_bins
    if entry.means_rows:
        numbers = _mean_of_losses(entry, rows, options, alpha, seed)
    else:
        _require_norm(entry)
        numbers = _norm(entry, rows, options, alpha, n_resamples, seed)
    result = JudgedResult(
        **numbers, **_about_judge(rows, seed), metric=entry.key, n=rows.n, n_labels=rows.n_labels,
        level=confidence_level, n_resamples=n_resamples,
    )  # fmt: skip
    return replace(result, sentence=_sentence(entry, result))


def _is_norm(entry: Entry) -> bool:
    return entry.residual_only and entry.tail == "greater" and entry.perfect == 0.0 and entry.square != "yes"


def _require_norm(entry: Entry) -> None:
    if not _is_norm(entry):
        served = [e.id for e in catalogue.values() if e.familiar and (_is_norm(e) or e.means_rows)]
        raise RefusedError(
            f"{entry.id} cannot use a judge, because it is neither a norm of averaged residuals nor a mean of losses: "
            f"use one of {', '.join(served)}"
        )


# -- the weight of the judge -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tuned:
    """Contributions of the rows: ``own`` for labelled rows, ``shared`` for all; their sum is N times the mean."""

    own: Array
    shared: Array
    tuning: float


def _tuned(rows: JudgedRows, human: Array, judge: Array, bin: Any, seed: int) -> _Tuned:
    """Cross-fitting: the weight of the judge for a fold of labelled rows is chosen on the other folds."""
    place = np.flatnonzero(rows.labelled)
    if len(place) == rows.n:  # no row is without a human label
        return _alone(rows, human)
    order = shuffled(len(place), seed, "folds of labels")
    weights, each = rows.weight[place], np.empty(len(place))
    for fold in range(FOLDS):
        here = order[fold::FOLDS]
        rest = np.delete(np.arange(len(place)), here)
        each[here] = _best(human[place[rest]], judge[place[rest]], bin[place[rest]], weights[rest])
    mean = float(np.sum(weights * each) / np.sum(weights))
    own = np.zeros(rows.n)
    own[place] = rows.n / rows.n_labels * weights * (human[place] - each * judge[place])
    return _Tuned(own, mean * judge, mean)


def _best(human: Array, judge: Array, bin: Any, weight: Array) -> float:
    """Sum of covariances divided by sum of variances of the bin averages, in [0, 1]."""
    w = weight / weight.sum()
    v = w**2 / np.sum(w**2)  # the variance of a weighted mean has squared weights
    means = [np.bincount(bin, w * x) for x in (human, judge)]
    squares = [np.bincount(bin, v * x) for x in (human, judge)]

    def together(a: int, b: int, product: Array) -> float:
        return float(v @ product - means[a] @ squares[b] - means[b] @ squares[a] + means[a] @ means[b])

    covariance, variance = together(0, 1, human * judge), together(1, 1, judge**2)
    own = together(0, 0, human**2)
    if variance <= 0.0 or own <= 0.0 or covariance <= 0.0:
        return 0.0
    explained = min(covariance**2 / (variance * own), 1.0)
    strength = explained / max(1.0 - explained, 1e-12) / float(np.sum(w**2))  # the squared t of the judge
    shrunk = max(0.0, 1.0 - _FORGONE / strength) if strength > 0.0 else 0.0
    return float(np.clip(shrunk * covariance / variance, 0.0, 1.0))


def _alone(rows: JudgedRows, human: Array) -> _Tuned:
    """The humans alone."""
    own = np.where(rows.labelled, rows.n / rows.n_labels * rows.weight * np.where(rows.labelled, human, 0.0), 0.0)
    return _Tuned(own, np.zeros(rows.n), 0.0)


class _Noise:
    """Random signs on the contributions of the rows, summed in bins of neighbouring rows (or one bin per row).

    A labelled row contributes with the average size at its confidence, not with its own: few labelled rows of a bin may
    show no disagreement between judge and humans by chance, and the noise of the bin would be estimated as 0. The
    judge's contributions are centred among the rows that were drawn together.
    """

    def __init__(self, rows: JudgedRows, tuned: _Tuned, begins: Any) -> None:
        self._begins, self._n = begins, rows.n
        labelled = rows.labelled
        total = tuned.own + tuned.shared
        usual = _usual_size(total[labelled] / rows.weight[labelled], rows.c[labelled])
        self._each = tuned.shared.copy()
        self._each[labelled] = np.copysign(rows.weight[labelled] * usual, total[labelled])
        rest = (~labelled).astype(np.float64)
        self._mean = rest / max(rest.sum(), 1.0)
        self._sum = self.summed(rest * tuned.shared)
        self._matrix: Array | None = None
        if len(begins) < rows.n:
            self._matrix = np.zeros((rows.n, len(begins)))
            bin = np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, rows.n]))
            self._matrix[np.arange(rows.n), bin] = self._each

    def summed(self, x: Array) -> Array:
        """Sums in the bins."""
        return np.add.reduceat(x, self._begins)

    def of(self, signs: Array) -> Array:
        """The noise in the bins for signs (draws, rows)."""
        moved = signs * self._each if self._matrix is None else signs @ self._matrix
        return np.asarray(moved - (signs @ self._mean)[:, None] * self._sum)


def _usual_size(x: Array, c: Array) -> Array:
    """Root mean square of the contributions at each confidence, modelled by a constant and a multiple of c (1 - c)."""
    square, spread = x**2, 4.0 * c * (1.0 - c)
    design = np.column_stack([np.ones(len(c)), spread])
    fit, *_ = np.linalg.lstsq(design, square, rcond=None)
    if fit[0] < 0.0:
        fit = np.array([0.0, float(spread @ square) / max(float(spread @ spread), 1e-300)])
    elif fit[1] < 0.0:
        fit = np.array([float(square.mean()), 0.0])
    return np.asarray(np.sqrt(design @ fit))


def _spread(rows: JudgedRows, tuned: _Tuned, bin: Any) -> tuple[float, float]:
    """The variance of the averages summed over the bins, and the part that more labels would not reduce."""

    def of(x: Array, count: int) -> float:
        return float(np.sum(x**2) - np.sum(np.bincount(bin, x) ** 2) / max(count, 1)) / rows.n**2

    labelled = rows.labelled
    here = np.where(labelled, tuned.own + tuned.shared, 0.0)
    there = np.where(labelled, 0.0, tuned.shared)
    total = of(here, rows.n_labels) + of(there, rows.n - rows.n_labels)
    return total, of(tuned.shared, rows.n)


def _gain(rows: JudgedRows, both: _Tuned, alone: _Tuned, bin: Any) -> dict[str, float]:
    """The number of labels that the judge is worth, and how many more would halve the width."""
    (total, floor), (humans, _) = _spread(rows, both, bin), _spread(rows, alone, bin)
    worth = rows.n_labels if total <= 0.0 else min(rows.n_labels * humans / total, float(rows.n))
    wanted = total / 4.0 - floor
    needed = math.inf if wanted <= 0.0 else rows.n_labels * max(total - floor, 0.0) / wanted
    more = math.inf if needed > rows.n else float(math.ceil(needed) - rows.n_labels)
    return {"worth": max(float(worth), 0.0), "label_more": more}


# -- norms of averaged residuals ---------------------------------------------------------------------


def _norm(
    entry: Entry, rows: JudgedRows, options: dict[str, Any], alpha: float, n_resamples: int, seed: int
) -> dict[str, Any]:
    order = np.argsort(rows.c, kind="stable")
    rows = JudgedRows(rows.c[order], rows.judge[order], rows.y[order], rows.weight[order], rows.known)
    bin, options, n_bins = _bins(entry, rows, options)
    human, judge = np.where(rows.labelled, rows.y - rows.c, 0.0), rows.judge - rows.c
    values = _BinnedMetric(entry, rows.c, bin, options)
    both, alone = _tuned(rows, human, judge, bin, seed), _alone(rows, human)
    value, low, high, p, expected = _ends(rows, both, values, alpha, n_resamples, seed)
    humans = _ends(rows, alone, values, alpha, n_resamples, seed)[:3]
    return {
        "value": value, "low": low, "high": high, "pvalue": p, "expected_by_chance": expected,
        "humans": Estimate(*humans, 1.0 - alpha),
        "judge_only": values.of(np.add.reduceat(judge, values.begins)), "tuning": both.tuning, "n_bins": n_bins,
        "method": "triangle",
        **_gain(rows, both, alone, bin),
    }  # fmt: skip


def _ends(
    rows: JudgedRows, tuned: _Tuned, values: _BinnedMetric, alpha: float, n_resamples: int, seed: int
) -> tuple[float, float, float, float, float]:
    noise = _Noise(rows, tuned, values.begins)
    residual = noise.summed(tuned.own + tuned.shared)
    reading = values.of(residual)
    null, drawn = [], []
    for signs in coin_signs(rows.n, n_resamples, seed, max(1, _AT_ONCE // rows.n)):
        for moved in noise.of(signs):
            null.append(values.of(moved))
            drawn.append(values.of(residual + moved))
    alone = np.array(null)
    low, high = norm_ends(reading, alone, float(np.std(drawn, ddof=1)), alpha)
    return reading, low, high, tail(reading, alone), float(alone.mean())


class _BinnedMetric:
    """A metric as a function of sums of residuals, for confidences in ascending order.

    A binned metric uses the sums of its bins only: each bin is one row, with the weight of its rows. For any other
    metric each row is a bin.
    """

    def __init__(self, entry: Entry, c: Array, bin: Any, options: dict[str, Any]) -> None:
        self._entry, self._question = entry, entry.question_of(options)
        binned = "edges" in entry.options
        self.begins = np.flatnonzero(np.r_[True, np.diff(bin) != 0]) if binned else np.arange(len(c))
        self._size = np.diff(np.r_[self.begins, len(c)]).astype(np.float64)
        self._c = np.add.reduceat(c, self.begins) / self._size
        self._weight = self._size if len(self._size) < len(c) else None
        form = entry.replicate
        view = _view(self._c, self._c, self._weight)
        self._values = None if form is None else form.of_labels(view, self._question.options)

    def of(self, sums: Array) -> float:
        y = self._c + sums / self._size
        if self._values is not None:
            return float(self._values(y[None])[0])
        return float(measure(self._entry, _view(y, self._c, self._weight), self._question))


def _view(y: Any, c: Array, weight: Array | None) -> Predictions:
    view = Predictions(y, c, weight)
    view.ascending = True
    return view


def _bins(entry: Entry, rows: JudgedRows, options: dict[str, Any]) -> tuple[Any, dict[str, Any], int]:
    """Bins that all have labelled rows, for the metric and for the weight of the judge."""
    if "edges" not in entry.options:
        edges = EqualMass(min(_USUAL_BINS, max(1, rows.n_labels // LEAST_IN_BIN))).fit(rows.c).edges_
        return _merged(edges, rows)[1], options, 0
    if (edges := edges_among(options)) is not None:
        edges = np.asarray(edges, dtype=np.float64)
    else:
        kind = EqualMass if options.get("binning", options.get("strategy")) in ("mass", "quantile") else EqualWidth
        n_bins = options.get("n_bins", entry.question_of({}).options.get("n_bins", 15))
        edges = kind(n_bins).fit(rows.c).edges_
    edges, bin = _merged(edges, rows)
    rest = {name: given for name, given in options.items() if name not in ("n_bins", "binning", "strategy", "edges")}
    return bin, {**rest, "edges": edges}, len(edges) - 1


def _merged(edges: Array, rows: JudgedRows) -> tuple[Array, Any]:
    """Neighbouring bins are merged until each has enough labelled rows."""
    inner = edges[1:-1]
    count = np.bincount(np.searchsorted(inner, rows.c[rows.labelled], side="left"), minlength=len(inner) + 1)
    kept, held = [], 0
    for cut, here in zip(inner, count, strict=False):
        held += int(here)
        if held >= LEAST_IN_BIN:
            kept.append(float(cut))
            held = 0
    if kept and held + int(count[-1]) < LEAST_IN_BIN:
        kept.pop()
    merged = np.array([0.0, *kept, 1.0])
    return merged, np.searchsorted(merged[1:-1], rows.c, side="left")


# -- means of losses ---------------------------------------------------------------------------------


def _mean_of_losses(entry: Entry, rows: JudgedRows, options: dict[str, Any], alpha: float, seed: int) -> dict[str, Any]:
    """A mean of losses: the loss under the judge's probability is the mean over the two labels."""
    question = entry.question_of({**options, "reduction": "none"})
    zero, one = (
        np.asarray(measure(entry, Predictions(np.full(rows.n, label, dtype=np.intp), rows.c), question))
        for label in (0, 1)
    )
    if zero.shape != (rows.n,):
        raise RefusedError(f"{entry.id} with these options does not have one loss for each row")
    endless = np.flatnonzero(~(np.isfinite(zero) & np.isfinite(one)))
    if len(endless):
        at = int(endless[0])
        raise RefusedError(
            f"y_prob[{at}] = {rows.c[at]:g} has an infinite {entry.id} if its label is the other one, so that the mean "
            "of the losses cannot be estimated: clip y_prob, or use bs"
        )
    human = np.where(rows.labelled, np.where(rows.y == 1.0, one, zero), 0.0)
    judge = zero + rows.judge * (one - zero)
    bin = np.zeros(rows.n, dtype=np.intp)
    both, alone = _tuned(rows, human, judge, bin, seed), _alone(rows, human)
    wide, narrow = (_half_width(rows, tuned, one - zero, alpha) for tuned in (alone, both))
    if narrow >= wide:  # the human labels alone are more precise
        both, narrow = alone, wide
    results = {}
    for name, tuned, half in (("both", both, narrow), ("alone", alone, wide)):
        estimate = float(np.mean(tuned.own + tuned.shared))
        results[name] = (estimate, *_with_rare(estimate - half, estimate + half, rows, zero, one, alpha))
    seen = human[rows.labelled]
    if np.ptp(seen) <= 1e-12:  # the variance of equal losses is 0, and says nothing of rows that have other losses
        both = alone
        results = dict.fromkeys(results, _around(float(seen[0]), np.concatenate([zero, one]), rows, alpha))
    return {
        **dict(zip(("value", "low", "high"), results["both"], strict=True)),
        "humans": Estimate(*results["alone"], 1.0 - alpha), "judge_only": float(judge.mean()),
        "tuning": both.tuning, "n_bins": 0, "method": "asymptotic", **_gain(rows, both, alone, bin),
    }  # fmt: skip


def _with_rare(low: float, high: float, rows: JudgedRows, zero: Array, one: Array, alpha: float) -> tuple[float, float]:
    """The ends of an interval if few labelled rows have the label with the larger loss.

    Their variance then says little. All rows have at least their smaller loss; the upper end includes Clopper and
    Pearson's upper bound of the share of rows with the larger one.
    """
    seen, w = rows.labelled, rows.weight[rows.labelled] / rows.n_labels
    larger = (one > zero)[seen] == (rows.y[seen] == 1.0)
    n = 1.0 / float(w @ w)
    k = n * float(w @ larger)
    least = float(np.minimum(zero, one).mean())
    if k >= _FEW:
        return max(low, least), high
    share = float(scipy.special.betaincinv(k + 1.0, n - k, 1.0 - alpha / 2.0)) if k < n else 1.0
    return max(low, least), max(high, least + share * float(np.abs(one - zero).mean()))


def _half_width(rows: JudgedRows, tuned: _Tuned, apart: Array, alpha: float) -> float:
    """Half-width for a mean of contributions; ``apart`` is the difference between the two labels' losses in each row.

    Each labelled row is divided by one minus its leverage, and a few large contributions have few degrees of freedom.
    """
    labelled = rows.labelled
    share = rows.weight / rows.n_labels
    mean = float(tuned.own.sum() / rows.n)
    own = np.where(labelled, (tuned.own - share * rows.n * mean) / (1.0 - share), 0.0)
    if rows.known:
        shared = tuned.shared - tuned.shared.mean()
    else:
        middle = [tuned.shared[part].mean() if part.any() else 0.0 for part in (labelled, ~labelled)]
        shared = tuned.shared - np.where(labelled, *middle)
    unseen = _ADDED * tuned.tuning**2 * float(np.mean((rows.n * share * apart)[labelled] ** 2))
    square = (own + shared) ** 2
    fourth = float(np.sum(square**2))
    freedom = max(float(square.sum() ** 2) / fourth, 1.0) if fourth > 0.0 else 1.0  # after Welch and Satterthwaite
    quantile = float(scipy.special.stdtrit(freedom, 1.0 - alpha / 2.0))
    return quantile * float(np.sqrt(square.sum() + unseen)) / rows.n


def _around(loss: float, losses: Array, rows: JudgedRows, alpha: float) -> tuple[float, float, float]:
    """The mean of equal losses, and the ends of its interval if rows with other ``losses`` are too rare to be labelled.

    A share q of such rows, which n labelled rows miss with the probability (1 - q)^n, moves the mean by at most q times
    the distance to the smallest or largest loss.
    """
    w = rows.weight[rows.labelled]
    share = 1.0 - (alpha / 2.0) ** (float(w @ w) / float(w.sum()) ** 2)
    return loss, loss - share * (loss - float(losses.min())), loss + share * (float(losses.max()) - loss)


# -- the judge itself, and words ----------------------------------------------------------------------


def _about_judge(rows: JudgedRows, seed: int) -> dict[str, Any]:
    seen, w = rows.labelled, rows.weight[rows.labelled] / rows.n_labels
    y, j = rows.y[seen], rows.judge[seen]
    hard = bool(np.isin(rows.judge, (0.0, 1.0)).all())
    error, p = math.nan, math.nan
    if not hard:
        with collected_warnings():
            found = test("ece", y.astype(np.intp), j, n_resamples=999, rng=seed)
        error, p = float(found.statistic), float(found.pvalue)
    return {
        "agreement": float(w @ ((j >= 0.5) == (y == 1.0))), "judge_bias": float(w @ (j - y)), "judge_error": error,
        "judge_pvalue": p,
    }  # fmt: skip


def _sentence(entry: Entry, r: JudgedResult) -> Sentence:
    said = (
        f"The {entry.spoken or entry.name} is {number(r.value)} ({percent(r.level)} interval {number(r.low)} "
        f"to {number(r.high)}) from {counted(r.n_labels, 'human label')} and a judge of {counted(r.n, 'row')}."
    )
    known = {"n_labels": r.n_labels, "n": r.n, "agreement": r.agreement, "judge_only": r.judge_only}
    parts: list[str] = [with_ends(said, r.metric, r, **known)]
    parts += [] if math.isnan(r.pvalue) else [evidence(r, "multiplier")]
    parts += [
        f"The human labels alone give {number(r.humans.value)} ({number(r.humans.low)} to {number(r.humans.high)}); "
        f"with this judge they are as good as {counted(round(r.worth), 'human label')}.",
        f"The judge agrees with {percent(r.agreement)} of the human labels; if its labels were true, the value would "
        f"be {number(r.judge_only)}.",
    ]
    return Sentence.joined(" ", parts)
