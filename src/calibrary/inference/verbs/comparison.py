"""Which model is better calibrated? Paired comparison by any metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedCallError, RefusedError, deprecated, one_of, warn
from calibrary.data import is_data
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array
from calibrary.data.identity import meeting
from calibrary.data.sample import Sample, sample_of, swaps
from calibrary.data.stacked import Block, Scheme
from calibrary.inference.draw.cells import cells_of_pair, values_agree
from calibrary.inference.draw.lines import view_of_lines
from calibrary.inference.draw.resampling import (
    Replicated,
    alpha_of,
    check_draws,
    check_level,
    check_resamples,
    difference,
    least_draws,
    one_by_one,
    replicate,
    slack,
    standard_errors,
)
from calibrary.inference.draw.statistic import Statistic, as_statistic, entry_of, read_call, refuse
from calibrary.inference.draw.unit_law import laws_of, widest
from calibrary.inference.methods import bootstrap, inversion, studentized, triangle
from calibrary.inference.methods.asymptotic import error_of_mean
from calibrary.inference.methods.choice import choice_of
from calibrary.inference.methods.drawn import Drawn
from calibrary.inference.methods.joint import ALONE, Joint, Side
from calibrary.inference.methods.multiplicity import adjust_pvalues
from calibrary.inference.methods.triangle import why_not_flipped
from calibrary.inference.result import Estimate
from calibrary.metrics.machinery.measure import automatic, measure, said_bins
from calibrary.numerics.draw import generator, seed_of

KINDS = ("basic", "percentile", "bc", "normal")
METHODS = ("auto", "joint", *KINDS, "bootstrap", "studentized", "swap", "paired-t")

#: From this many events on, a standard error is not made larger.
_MANY = 200.0
#: The draws for the standard error of a difference.
_FOR_A_DIFFERENCE = 249


@dataclass(frozen=True)
class Comparison(Estimate):
    """Two models by one metric: an :class:`Estimate` of the value of a minus that of b.

    Unpacks as ``difference, pvalue = result``. The p-value is that of the hypothesis that there is no difference (swap:
    that the models are exchangeable). The swap test has no interval.

    Attributes
    ----------
    value_a, value_b, a, b : the values and the names of the models
    interval, n_resamples, n_failed : the kind of interval, the number of replicates, and that of undefined ones
    pvalue_adjusted : adjusted by Holm, if several models were compared
    """

    value_a: float = math.nan
    value_b: float = math.nan
    interval: str = ""
    n_resamples: int = 0
    n_failed: int = 0
    pvalue_adjusted: float = math.nan
    a: str = "a"
    b: str = "b"

    def __iter__(self) -> Iterator[float]:
        yield self.value
        yield self.pvalue


@checks_options
def compare(
    metric: Any,
    y_true: Any,
    y_prob_a: Any,
    y_prob_b: Any = None,
    *,
    method: str = "auto",
    interval: str | None = None,
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Any = None,
    y_true_b: Any = None,
    sample_weight_b: Any = None,
    paired: bool = False,
    weight_type: str = "frequency",
    workers: int | None = None,
    **options: Any,
) -> Any:
    """Compare two models (or several) on the same rows by any metric.

    Parameters
    ----------
    metric : str or callable
        A metric's id, a function of calibrary, or any ``metric(y_true, y_prob)``.
    y_true : array-like
        The labels.
    y_prob_a, y_prob_b : array-like
        Predictions of the two models; or a mapping of names to predictions as ``y_prob_a`` alone, which compares
        every pair and adjusts the p-values by Holm. Detections: the ground truth and two sets of results, or two
        ``Matches`` of the same images.
    method : "auto", "joint", "basic", "percentile", "bc", "normal", "studentized", "swap" or "paired-t"
        The bootstrap kinds draw the same rows for both models. "joint" is for errors whose perfect value is an end of
        their range, whose estimates are biased by different amounts: the differences of all pairs of true errors under
        which the two estimates, and their difference, are not unusual. "auto" is "joint" for such errors,
        "studentized" for smooth scores with ``units``, and "basic" for other metrics. "studentized" is Student's t
        corrected for skewness, from row losses or with one unit left out at a time; "paired-t" is Student's test, for
        means of row losses. "swap" exchanges the two predictions row by row, which tests that the models are
        exchangeable in every respect, which is more than equal calibration.
    interval : "basic", "percentile", "bc" or "normal", optional
        Older name of the option for the kind of bootstrap.
    n_resamples, confidence_level, rng, weight_type, workers
        As for :func:`calibrary.interval`.
    y_true_b, sample_weight_b : optional
        The second model's own labels and weights, if it was evaluated on other rows: two independent bootstraps.
    paired : bool
        ``y_true_b`` belongs to the same questions as ``y_true``, row by row: each model has its own outcome, such as
        whether its answer is right. The questions (or ``units``) are then resampled for both models together.
    units, blocks : optional
        The units or block length of dependent rows, as for :func:`calibrary.interval`.
    **options
        ``sample_weight``, ``lens`` and other options of the metric.

    Returns
    -------
    Comparison, or a tuple of them for several models

    Notes
    -----
    Plug-in calibration errors (ECE and the like) are biased upwards by an amount that depends on the model, so a
    bootstrap interval of their difference covers the truth in .45 of samples where one model has an ECE of .02 and the
    other is calibrated (2,600 rows). "joint" covers it in .99 of these samples, and it finds the difference between
    ECEs of .05 and .03 in .90 of samples. An error that lies in a few bins only is biased more than "joint" assumes:
    with 10,000 rows the interval then covers the truth in .88 of samples. To choose between models, proper scores and
    unbiased metrics (``ce2_db``, ``skce_uq``) are better. The p-value agrees with the interval.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, a = [0, 1, 1, 0, 1, 0, 1, 1] * 10, [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3] * 10
    >>> result = cal.compare("bs", y, a, [0.5] * 80, rng=0)
    >>> round(result.value, 3), result.pvalue
    (-0.125, 0.002)
    """
    if method in ("inversion", "triangle"):
        deprecated(f"method={method!r} of compare", "method='joint'")
        method = "joint"
    one_of("method", method, METHODS)
    if interval is not None:
        one_of("interval", interval, KINDS)
        if method not in ("auto", "bootstrap"):
            raise RefusedCallError(f"interval={interval!r} and method={method!r} both set the method: pass one of them")
        method = "bootstrap"
    if method in KINDS:
        method, interval = "bootstrap", method
    interval = interval or "basic"
    check_resamples(n_resamples)
    check_level(confidence_level)
    settings = {
        "method": method, "interval": interval, "n_resamples": n_resamples, "confidence_level": confidence_level,
        "rng": rng, "weight_type": weight_type, "workers": workers,
    }  # fmt: skip
    if paired and method == "swap":
        raise RefusedError("method='swap' exchanges two predictions of one outcome: with paired=True use 'auto'")
    if isinstance(y_prob_a, Mapping):
        _refuse_second("one mapping of names holds all models", y_prob_b, y_true_b, sample_weight_b, paired)
        return _all_pairs(metric, y_true, y_prob_a, settings, options)
    if y_prob_b is None and is_data(y_true):  # two sets of data, each complete
        _refuse_second("two sets of data hold their own labels and weights", None, y_true_b, sample_weight_b, paired)
        same_units = True
        pair = _pair(metric, (y_true, None), (y_prob_a, None), options, options, weight_type, "same")
    elif y_prob_b is None:
        raise RefusedCallError("y_prob_b is missing: pass the second model's predictions, or a mapping of several")
    else:
        if paired and (y_true_b is None or sample_weight_b is not None):
            raise RefusedCallError("paired=True needs y_true_b, the second model's own labels, and no sample_weight_b")
        if y_true_b is None and sample_weight_b is not None:
            raise RefusedCallError(
                "sample_weight_b was given without y_true_b: the rows of y_true have one weight each for both models, "
                "sample_weight; pass y_true_b too if the second model was evaluated on other rows"
            )
        same_units = y_true_b is None or paired
        other = options if same_units else {**options, "sample_weight": sample_weight_b}
        second = y_true if y_true_b is None else y_true_b
        rows = "own outcomes" if paired else "same" if same_units else "other"
        pair = _pair(metric, (y_true, y_prob_a), (second, y_prob_b), options, other, weight_type, rows)
    settings["asked"] = method
    pair = replace(pair, same_units=same_units)
    choice = choice_of(pair.on_first, method, minus=pair.on_second, paired=same_units)
    method = settings["method"] = choice.method
    if not same_units and method not in ("joint", "bootstrap"):
        raise RefusedError(
            f"method={method!r} needs paired rows: for a second model on other rows use method='bootstrap'"
        )
    ways = {
        "joint": _joint, "bootstrap": _bootstrap, "studentized": _studentized, "swap": _swap, "paired-t": _paired_t,
    }  # fmt: skip
    found = _of_these_rows(pair, ways[method](pair, settings))
    notes = choice.note, found.note, said_bins(options, pair.on_first.question)
    return replace(found, note="; ".join(filter(None, notes)))


def _refuse_second(why: str, y_prob_b: Any, y_true_b: Any, sample_weight_b: Any, paired: bool) -> None:
    """Refuse arguments of a second model that would not be used."""
    given = {
        "y_prob_b": y_prob_b is not None, "y_true_b": y_true_b is not None,
        "sample_weight_b": sample_weight_b is not None, "paired": paired,
    }  # fmt: skip
    for name, used in given.items():
        if used:
            raise RefusedCallError(f"{why}: leave {name} out")


def _of_these_rows(pair: _Pair, found: Comparison) -> Comparison:
    """The comparison, without an interval and a p-value that so few rows (or units, or images) cannot give.

    A test by the signs of n paired differences has no p-value below 2^(1 - n), however large they are. Student's t,
    which takes the differences as normal, allows for their number.
    """
    a, b = pair.values
    if math.isinf(a) or math.isinf(b):
        warn(
            f"{pair.on_first.name} is {a:g} for the first model and {b:g} for the second: their difference is undefined"
        )
    n = min(s.n_units for s in (pair.first, pair.second))
    if n > 1 and (found.method in ("studentized", "paired-t") or (found.method == "joint" and pair.first.grouped)):
        return found
    least = 2.0 ** (1 - min(n, 1000))
    if least <= alpha_of(found.level):
        return replace(found, pvalue=float(np.maximum(found.pvalue, least)))
    needed, unit = 1 + math.ceil(-math.log2(alpha_of(found.level))), "units" if pair.first.grouped else "rows"
    warn(f"at level {found.level:g} no difference can be shown with fewer than {needed} {unit}, and there are {n} here")
    return replace(found, low=math.nan, high=math.nan, pvalue=math.nan)


# -- methods of comparison --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pair:
    """The prepared statistics of two models."""

    on_first: Statistic
    on_second: Statistic
    same_units: bool = True

    @property
    def first(self) -> Sample:
        return self.on_first.sample

    @property
    def second(self) -> Sample:
        return self.on_second.sample

    @property
    def values(self) -> tuple[float, float]:
        a, b = self.on_first.observed, self.on_second.observed
        if len(a) != 1 or len(b) != 1:
            raise RefusedError(
                f"{self.on_first.name} has {len(a)} values here: compare models by one of them, with your own function "
                "metric(y, p), or use a lens that gives one value"
            )
        return float(a[0]), float(b[0])

    def caution(self, asked: str) -> str:
        if not self.on_first.at_its_end:
            return ""
        other = "" if asked == "auto" else "use method='auto', or "
        return (
            f"{self.on_first.name} is biased upwards by an amount that differs between models, so the interval may "
            f"miss the true value: {other}compare by a proper score or an unbiased metric (skce_uq, ce2_db)"
        )


def _pair(
    metric: Any, a: tuple[Any, Any], b: tuple[Any, Any], of_a: dict[str, Any], of_b: dict[str, Any], weight_type: str,
    rows: str,
) -> _Pair:  # fmt: skip
    first, asked = read_call(metric, *a, of_a, weight_type=weight_type)
    second, asked_second = read_call(metric, *b, of_b, weight_type=weight_type)
    if rows != "other":
        second = sample_of(meeting(first.data, second.data, rows == "own outcomes"), weight_type)
    if automatic(of_a) and entry_of(metric) is not None:  # one number for both, with enough events by either model
        fewest = min(asked.options["n_bins"], asked_second.options["n_bins"])
        asked, asked_second = asked.with_options(n_bins=fewest), asked_second.with_options(n_bins=fewest)
    return _Pair(as_statistic(metric, first, asked), as_statistic(metric, second, asked_second))


def _all_pairs(
    metric: Any, y_true: Any, models: Mapping[str, Any], settings: dict[str, Any], options: dict[str, Any]
) -> tuple[Comparison, ...]:
    if len(models) < 2:
        raise RefusedError(f"{len(models)} model was given: a comparison needs at least two models")
    rng = settings.pop("rng")
    # every pair uses the same resampled rows, so that the comparisons are consistent
    seed = seed_of(rng)
    found = [
        replace(compare(metric, y_true, models[a], models[b], rng=seed, **settings, **options), a=str(a), b=str(b))
        for a, b in combinations(models, 2)
    ]
    adjusted = adjust_pvalues([c.pvalue for c in found], "holm")
    return tuple(replace(c, pvalue_adjusted=float(p)) for c, p in zip(found, adjusted, strict=True))


def _bootstrap(pair: _Pair, settings: dict[str, Any]) -> Comparison:
    a, b = pair.values
    drawn = _resampled(pair.on_first, pair.on_second, settings) if pair.same_units else _drawn(pair, settings)
    drawn.say_failures()
    return _bootstrapped(pair, a, b, difference(drawn.values[:, :1], drawn.values[:, 1:]), settings)


def _bootstrapped(pair: _Pair, a: float, b: float, values: Array, settings: dict[str, Any]) -> Comparison:
    d = a - b
    kind, level = settings["interval"], settings["confidence_level"]
    low, high = bootstrap.ends(np.array([d]), values, kind, level)
    known = values[~np.isnan(values)]
    n = len(known)
    error = float(standard_errors(values)[0])
    # the difference of two infinite values is undefined
    pvalue = np.nan if np.isnan(d) or n == 0 else _agreeing_pvalue(d, known, kind, error)
    caution = pair.caution(settings["asked"])
    if caution:
        warn(caution)
    return Comparison(
        d, float(low[0]), float(high[0]), level, error, float(pvalue), method="bootstrap", note=caution, value_a=a,
        value_b=b, interval=kind, n_resamples=len(values), n_failed=len(values) - n,
    )  # fmt: skip


def _agreeing_pvalue(d: float, known: Array, kind: str, error: float) -> float:
    """The smallest level at which the interval of this kind excludes 0."""
    if kind == "normal":
        return float(2.0 * scipy.special.ndtr(-abs(d) / error)) if error > 0 else float(d == 0)
    # zero lies outside the basic interval when 2d is extreme among the replicates
    x = 2.0 * d if kind == "basic" else 0.0
    n = len(known)
    if kind == "bc":
        below = np.sum(known < d - slack(d)) + np.sum(known <= d + slack(d))
        share = (1.0 + np.sum(known < 0.0) + 0.5 * np.sum(known == 0.0)) / (n + 2.0)
        z = scipy.special.ndtri(share) - 2.0 * scipy.special.ndtri(np.clip(below / (2.0 * n), 0.5 / n, 1 - 0.5 / n))
        return float(2.0 * scipy.special.ndtr(-abs(z)))
    tail = min(1.0 + np.sum(known <= x), 1.0 + np.sum(known >= x))
    return float(min(1.0, 2.0 * tail / (n + 1.0)))


def _joint(pair: _Pair, settings: dict[str, Any]) -> Comparison:
    """The pairs of true errors that the data do not reject."""
    (a, b), level, n = pair.values, settings["confidence_level"], settings["n_resamples"]
    alpha = alpha_of(level)
    check_draws(n, alpha)
    both = (pair.on_first, pair.on_second)
    for statistic in both:
        why = triangle.why_not(statistic) or (why_not_flipped(statistic) if statistic.sample.grouped else "")
        if why:
            raise RefusedError(f"method='joint' does not work for {statistic.name}: {why}")
    # enough draws for standard errors, and for the test of each model by itself
    draws = min(n, max(_FOR_A_DIFFERENCE, least_draws(ALONE * alpha)))
    settings = {**settings, "rng": seed_of(settings["rng"]), "n_resamples": draws}
    law = widest([*laws_of(both[0]), *laws_of(both[1])]) if pair.first.grouped else None
    if law is not None:
        law.say_few()
    drawn = _drawn(pair, settings)
    drawn.say_failures()
    few = _of_few(pair) if law is None else 1.0
    of_a, of_b = (_side(s, drawn.values[:, j], few, settings) for j, s in enumerate(both))
    if not np.isfinite([a, b, *(x for side in (of_a, of_b) for x in (side.spread, side.by_chance))]).all():
        return Comparison(a - b, level=level, method="joint", value_a=a, value_b=b, interval="joint", n_resamples=n)
    error = float(standard_errors(difference(drawn.values[:, :1], drawn.values[:, 1:]))[0])
    error = error * few if law is None else math.hypot(error, math.sqrt(law.missing))
    two = Joint(of_a, of_b, error, math.inf if law is None else law.df, pair.same_units)
    low, high, pvalue = _ends_and_pvalue(two.ends, alpha)
    if both[0].tail == "less":
        low, high = -high, -low
    note = "the interval is of the true errors; the difference of the two estimates is biased and may lie outside"
    return Comparison(
        a - b, low, high, level, error, pvalue, method="joint", note=note, value_a=a, value_b=b, interval="joint",
        n_resamples=n,
    )  # fmt: skip


def _of_few(pair: _Pair) -> float:
    """A factor for the standard error if there were few events: of more than were seen there are more to vary."""
    rows = [view_of_lines(s)[0] for s in (pair.on_first, pair.on_second)]
    counts = [float(v.weight @ (v.y == k)) for v in rows if v.binary for k in (0, 1)]
    fewest = max(min(counts, default=_MANY), 1.0)
    return 1.0 + 0.75 * max(float(fewest**-0.5) - float(_MANY**-0.5), 0.0)


def _drawn(pair: _Pair, settings: dict[str, Any]) -> Replicated:
    """The values of both models on the same resampled rows, or on rows of their own if the rows are not the same."""
    if not pair.same_units:
        way = bootstrap.Bootstrap(
            "normal", settings["n_resamples"], generator(settings["rng"], "rows"), settings["workers"]
        )
        each = [way.resample([s])[1] for s in (pair.on_first, pair.on_second)]
        return Replicated(np.hstack([one.values for one in each]), each[0].failure or each[1].failure)
    cells = cells_of_pair(pair.on_first, pair.on_second)
    if cells is not None:
        drawn = _resampled(*cells, settings)
        both = (pair.on_first, pair.on_second)
        if all(
            values_agree(s.observed, t.observed, drawn.values[:, [j]])
            for j, (s, t) in enumerate(zip(both, cells, strict=True))
        ):
            return drawn
    return _resampled(pair.on_first, pair.on_second, settings)


def _resampled(first: Statistic, second: Statistic, settings: dict[str, Any]) -> Replicated:
    schemes = first.sample.bootstrap(), second.sample.bootstrap()
    (of_first, fast), (of_second, fast_too) = first.path(schemes[0]), second.path(schemes[1])
    both = Scheme(schemes[0].draw, lambda drawn: (schemes[0].make(drawn), schemes[1].make(drawn)), schemes[0].base)

    def values(block: Block) -> Array:
        ones, others = zip(*block.replicates, strict=True)
        return np.hstack([of_first(Block(ones)), of_second(Block(others))])

    ours, source = "" if first.entry is None else first.name, generator(settings["rng"], "rows")
    n, workers = settings["n_resamples"], settings["workers"]
    return replicate(both, values, 2, n, source, workers, in_blocks=fast and fast_too, ours=ours)


def _side(statistic: Statistic, drawn: Array, wider: float, settings: dict[str, Any]) -> Side:
    """One model, with its errors on calibrated labels, as distances from the perfect value."""
    asked = statistic.question.changed(**{name: settings[name] for name in ("rng", "n_resamples", "workers")})
    null = Drawn(asked, intervals=False, tests=True, alone=True)
    null.on_rows(null.on_cells([statistic]))
    _, chance = null.labels[statistic.name]
    sign, perfect = -1.0 if statistic.tail == "less" else 1.0, statistic.perfect
    chance_, drawn_ = (sign * (x - perfect) for x in (chance.values[:, 0], drawn))
    side = Side(sign * (float(statistic.observed[0]) - perfect), chance_, drawn_, statistic.square, wider)
    if statistic.name != "ecce_mad":
        return side
    at_extreme, unsure = inversion.error_at_the_extreme(statistic), inversion.unsure_side(statistic)
    return replace(side, at_extreme=at_extreme, unsure=unsure)


def _studentized(pair: _Pair, settings: dict[str, Any]) -> Comparison:
    """The difference of two smooth scores by Student's t, from row losses or with one unit left out at a time."""
    a, b = pair.values
    d, level = np.array([a - b]), settings["confidence_level"]
    for statistic in (pair.on_first, pair.on_second):
        refuse(statistic, "studentized", studentized.why_not(statistic))
    if pair.first.grouped:
        widest([*laws_of(pair.on_first), *laws_of(pair.on_second)]).say_few()
    both = [studentized.scores_of(s) for s in (pair.on_first, pair.on_second)]
    scores = studentized.Scores(both[0].each - both[1].each, both[0].times)

    def ends(alpha: float) -> tuple[float, float]:
        low, high = scores.ends(d, 1.0 - alpha)
        return float(low[0]), float(high[0])

    low, high, pvalue = _ends_and_pvalue(ends, alpha_of(level))
    error = float(scores.standard_error[0])
    return Comparison(a - b, low, high, level, error, pvalue, method="studentized", value_a=a, value_b=b, interval="t")


def _ends_and_pvalue(ends: Callable[[float], tuple[float, float]], alpha: float) -> tuple[float, float, float]:
    """The interval at the level ``alpha``, and by bisection the smallest level at which it excludes 0."""

    def excludes_zero(low: float, high: float) -> bool:
        return low > 0.0 or high < 0.0

    low, high = ends(alpha)
    least, most = (0.0, alpha) if excludes_zero(low, high) else (alpha, 1.0)
    for _ in range(50):
        middle = (least + most) / 2.0
        least, most = (least, middle) if excludes_zero(*ends(middle)) else (middle, most)
    return low, high, most


def _swap(pair: _Pair, settings: dict[str, Any]) -> Comparison:
    p, q = pair.first.each_copy(), pair.second.each_copy()
    a, b = pair.values
    d = a - b

    def swapped(s: Any) -> Any:
        mask = s if p.binary else s[:, None]
        ones = np.where(mask, q.probability, p.probability), np.where(mask, p.probability, q.probability)
        return tuple(p.with_probability(probability) for probability in ones)

    statistic = pair.on_first
    drawn = replicate(
        swaps(p, swapped),
        one_by_one(lambda two: statistic.flat(statistic.of(two[0])) - statistic.flat(statistic.of(two[1]))),
        1, settings["n_resamples"], generator(settings["rng"], "swaps"), settings["workers"], in_blocks=False,
    )  # fmt: skip
    drawn.say_failures()
    values = drawn.values[~np.isnan(drawn.values)]
    extreme = np.nan if np.isnan(d) else np.sum(np.abs(values) >= abs(d) - slack(d))
    return Comparison(
        d, level=settings["confidence_level"], pvalue=float((1.0 + extreme) / (len(values) + 1.0)), method="swap",
        value_a=a, value_b=b, interval="none", n_resamples=settings["n_resamples"], n_failed=int(drawn.n_failed[0]),
        note="tests that the models are exchangeable in every respect, which is more than equal calibration",
    )  # fmt: skip


def _paired_t(pair: _Pair, settings: dict[str, Any]) -> Comparison:
    a, b = pair.values
    losses = []
    for statistic in (pair.on_first, pair.on_second):
        entry = statistic.entry
        if entry is None or not entry.means_rows:
            raise RefusedError(
                f"method='paired-t' needs a mean of row losses, which {statistic.name} is not: use method='bootstrap'"
            )
        asked = statistic.question.with_options(reduction="none")
        losses.append(np.asarray(measure(entry, statistic.sample.data, asked)))
    p = pair.first.p
    for losses_of, name in zip(losses, "ab", strict=True):
        if not np.isfinite(losses_of).all():
            raise RefusedError(
                f"{pair.on_first.name} of y_prob_{name} is infinite on some row: method='paired-t' needs finite "
                "losses, use 'swap' or a bounded score"
            )
    gap = losses[0] - losses[1]
    d = float(p.mean(gap))
    if not np.isclose(d, a - b, rtol=1e-9, atol=1e-12):
        raise RefusedError(f"{pair.on_first.name} is not a plain mean of row losses here: use method='bootstrap'")
    n = p.total if settings["weight_type"] == "frequency" else float(p.n)
    if n < 2:
        raise RefusedError("method='paired-t' needs at least two rows")
    error = error_of_mean(gap, p, settings["weight_type"])
    t = d / error if error > 0 else np.inf * np.sign(d) if d else 0.0
    half = float(scipy.special.stdtrit(n - 1.0, 0.5 + settings["confidence_level"] / 2.0)) * error
    return Comparison(
        d, d - half, d + half, settings["confidence_level"], error,
        float(2.0 * scipy.special.stdtr(n - 1.0, -abs(t))), method="paired-t", value_a=a, value_b=b, interval="t",
    )  # fmt: skip
