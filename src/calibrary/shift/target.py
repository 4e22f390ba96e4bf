"""``under_shift``: estimate a metric on a target set without labels, under the assumption that is named."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedCallError, RefusedError, one_of, warn
from calibrary.base.markup import ToldByName
from calibrary.base.numbers import counted, number, percent, pvalue, with_interval
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, Indices, as_floats, checked_probabilities
from calibrary.data.columns import column_names, matched_names
from calibrary.data.identity import knows_rows, refuse_misaligned
from calibrary.data.predictions import Predictions
from calibrary.data.sample import RowSample
from calibrary.inference.draw.null import pvalues
from calibrary.inference.draw.resampling import Replicated, alpha_of, check_level
from calibrary.inference.draw.statistic import Statistic, as_statistic, read_call, redrawn
from calibrary.inference.draw.two_sets import TwoSets
from calibrary.inference.methods import bootstrap, triangle
from calibrary.inference.result import Estimate
from calibrary.maps.prior_shift import PriorShift
from calibrary.numerics.draw import generator, seed_of
from calibrary.question import Question
from calibrary.shift.shares import DensityWeighting, LabelWeighting, likelihood_shares, log_odds, shares_in_both

#: With more classes than this, only the most frequent classes are compared.
_MOST_CLASSES = 20


class _Distances:
    """The Kolmogorov-Smirnov distances of two weightings of the same rows, one for each column."""

    def __init__(self, columns: Array) -> None:
        self._order = np.argsort(columns, axis=0, kind="stable").T
        ascending = np.take_along_axis(columns, self._order.T, axis=0).T
        # positions within a tie, where the distribution functions are not evaluated
        self._inside = np.zeros(ascending.shape, dtype=bool)
        self._inside[:, :-1] = ascending[:, 1:] == ascending[:, :-1]

    def largest(self, a: Array, b: Array) -> float:
        """The largest distance over all columns."""
        gap = np.cumsum((a / a.sum() - b / b.sum())[self._order], axis=1)
        gap[self._inside] = 0.0
        return float(np.abs(gap).max())


def compared_variables(p: Array, features: Array | None, classes: Indices) -> Array:
    """The compared variables: each class's probability (one for two classes), the largest of each row, and features."""
    columns = [p[:, 1:]] if p.shape[1] == 2 else [p[:, classes], p.max(axis=1)[:, None]]
    return np.column_stack(columns if features is None else [*columns, features])


def compared_classes(share: Array) -> Indices:
    """The classes whose probabilities are compared: all, or the most frequent of very many."""
    return np.sort(np.argsort(-share, kind="stable")[:_MOST_CLASSES])


def assumption_test(
    sets: TwoSets, observed: Array, columns: Array, target: Array, n_resamples: int, rng: object
) -> tuple[float, float]:
    """The largest distance between the target and the weighted source, and its p-value.

    ``observed`` are the weights of the source's rows; ``columns`` and ``target`` are the compared variables.
    """
    n, m = len(columns), len(target)
    both = _Distances(np.concatenate([columns, target]))
    distance = both.largest(np.concatenate([observed, np.zeros(m)]), np.concatenate([np.zeros(n), np.ones(m)]))
    own = _Distances(columns)
    drawn = np.array([own.largest(*pair) for pair in sets.both_from_source(observed, n_resamples, rng)])
    return distance, float((1 + np.sum(drawn >= distance - 1e-12)) / (n_resamples + 1))


ASSUMPTIONS = ("label", "covariate")
#: The smallest effective number of weighted rows for an estimate at the target.
LEAST_EFFECTIVE = 30
#: With fewer rows of the target there is a warning.
FEW_TARGET_ROWS = 30
#: With more rows times classes, drawn rows are listed one by one instead of being counted for every possible label.
_MOST_CELLS = 2_000_000
#: The significance level of the test of the assumption.
LEVEL = 0.05


@dataclass(frozen=True)
class ShiftResult(ToldByName, Estimate):
    """A metric on a target without labels, under the assumption. Unpacks as ``low, high = result``.

    Where a page shows that the data contradict the assumption, everything that rests on it is NaN or empty.

    Attributes
    ----------
    source : the metric on the labelled rows
    shares : share of each class in the target, in the order of the columns (two classes: the last is the positive one)
    effective_n : effective sample size: the number of unweighted rows with the same precision
    assumption_pvalue : p-value of the test of the assumption's testable part
    pvalue : p-value of calibration at the target, from the same noise as the interval, whose lower end excludes the
        perfect value if this p-value is at most 1 - level; NaN for a metric without a test
    source_shares : share of each class among the labelled rows
    likelihood_shares : shares of the target by maximum likelihood, which assumes calibrated predictions; for comparison
    corrected : under label shift that the data do not contradict, the metric on the target after
        :class:`calibrary.recalibrate.PriorShift` with ``shares``; otherwise NaN
    distance : largest distance between the distribution functions of the target and of the weighted source
    weights : weight of each labelled row (of each copy, for frequency weights)
    metric, assume, n, n_target, n_resamples : the settings
    """

    source: float = math.nan
    shares: Any = ()
    effective_n: float = math.nan
    assumption_pvalue: float = math.nan
    source_shares: Any = ()
    likelihood_shares: Any = ()
    corrected: float = math.nan
    distance: float = math.nan
    weights: Any = field(default=(), repr=False)
    metric: str = ""
    assume: str = "label"
    n: int = 0
    n_target: int = 0
    n_resamples: int = 999

    def rows(self) -> list[tuple[str, str]]:
        """The numbers by name, formatted for display."""
        tested = ("test of the assumption", pvalue(self.assumption_pvalue, self.n_resamples))
        if np.isnan(self.value):
            return [("value at the source", number(self.source)), ("value at the target", "no estimate"), tested]
        after = [] if np.isnan(self.corrected) else [("value at the target after PriorShift", number(self.corrected))]
        return [
            ("value at the source", number(self.source)),
            ("value at the target", with_interval(self.value, self.low, self.high)),
            *after,
            ("shares in the target", ", ".join(percent(float(x)) for x in self.shares)),
            ("shares in the source", ", ".join(percent(float(x)) for x in self.source_shares)),
            ("effective rows", f"{self.effective_n:,.0f} of {self.n:,}"),
            tested,
        ]


class ContradictedError(RefusedError):
    """The data contradict the assumption; ``result`` has the test and no estimate."""

    def __init__(self, message: str, result: ShiftResult) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.result)


@knows_rows
@checks_options
def under_shift(
    metric: Any,
    y_true: Any,
    y_prob: Any = None,
    target_prob: Any = None,
    *,
    assume: str = "label",
    features: Any = None,
    target_features: Any = None,
    sample_weight: Any = None,
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Any = None,
    check: bool = True,
    weight_type: str = "frequency",
    **options: Any,
) -> ShiftResult:
    r"""Estimate a metric, with an interval, on a target for which only predictions are known.

    Under *label shift* the classes have different shares in the target, and the distribution of rows within a class is
    the same. Rows of the source are weighted by :math:`w_k = \pi_k / s_k`, the share of their class in the target over
    that in the source. The shares :math:`\pi` come from the confusion matrix of the source and the predicted classes of
    the target; this does not need calibrated predictions. Under *covariate shift* the features have a different
    distribution, and outcomes given the features are the same. The weights come from a cross-fitted logistic regression
    of set membership.

    The testable part of the assumption is tested, and if the test rejects it at 5%, no value is given. Under covariate
    shift it cannot be tested without labels of the target that P(y | x) is unchanged; this is assumed.

    Parameters
    ----------
    metric : str or callable
        A metric that takes weights, by its id or function; or your own function with ``sample_weight``.
    y_true, y_prob
        The source: labels and probabilities, as for every metric.
    target_prob : array-like of shape (M,) or (M, K)
        The probabilities of the target, for the same classes.
    assume : "label" or "covariate"
    features, target_features : array-like of shape (N, D) and (M, D), optional
        For covariate shift: the variables in which the two sets differ. By default the log odds of the predictions
        are used, and then P(y | prediction) must be the same in both sets.
    sample_weight : array-like of shape (N,), optional
        Weights of the source: a row of weight 2 counts as two equal rows.
    n_resamples, confidence_level, rng
        As in :func:`calibrary.interval`. Both sets are resampled, and the weights are estimated again in each draw. For
        an error that grows from a perfect value the interval is the "triangle" of :func:`calibrary.interval`, whose
        null is calibration at the target; for other metrics it is the estimate and its bootstrap standard errors. Under
        label shift the interval also contains the values at the limits of each predicted class's share in the target,
        so that it is valid for few rows of the target, of which resampling shows too little error.
    check : bool
        False computes the value even if the assumption is rejected.
    weight_type : "frequency" or "importance"
        With frequency weights (whole numbers) single copies are drawn; with importance weights rows and their weights.
    **options
        ``lens``, ``average``, ``labels``, ``pos_label`` and the metric's own options.

    Returns
    -------
    ShiftResult

    Raises
    ------
    ValueError
        If the assumption is rejected, if the confusion matrix is singular, if the effective sample size is below 30,
        or if the target has other classes.

    References
    ----------
    Lipton, Wang, Smola (2018), Detecting and correcting for label shift with black box predictors.
    Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a classifier to new a priori probabilities.

    Examples
    --------
    >>> import numpy as np, calibrary as cal
    >>> rng = np.random.default_rng(0)
    >>> def city(n, share):
    ...     y = rng.random(n) < share
    ...     return y, 1 / (1 + np.exp(-rng.normal(np.where(y, 1.0, -1.0), np.sqrt(2))))
    >>> y, p = city(2000, 0.5)
    >>> _, elsewhere = city(2000, 0.2)
    >>> found = cal.under_shift("ece", y, p, elsewhere, rng=0)
    >>> bool(abs(found.shares[1] - 0.2) < 0.06), bool(found.low > found.source), bool(found.assumption_pvalue > 0.05)
    (True, True, True)
    """
    level = check_level(confidence_level, n_resamples)
    one_of("assume", assume, ASSUMPTIONS)
    if target_prob is None:
        raise RefusedCallError("target_prob is missing: pass the probabilities of the target, which has no labels")
    refuse_misaligned(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, features=features)
    refuse_misaligned(target_prob=target_prob, target_features=target_features)
    keywords = {**options, "sample_weight": sample_weight}
    sample, question = read_call(metric, y_true, y_prob, keywords, weight_type=weight_type, confidence_level=level)
    if not sample.row_by_row or sample.p.fractional or sample.p.y.ndim != 1:
        raise RefusedError("under_shift weights single rows by their class: pass one label and one probability a row")
    p = sample.each_copy()
    target = _target_of(p, y_prob, target_prob)
    if len(target) < FEW_TARGET_ROWS:
        warn(
            f"the target has {counted(len(target), 'row')}: the interval allows for that, but with fewer than "
            f"{FEW_TARGET_ROWS} the estimate and the shares are imprecise, and the test of the assumption detects "
            "little"
        )
    weighting, x = _weighting(p, target, assume, features, target_features)
    sets, observed = TwoSets(_unweighted(p), weighting), weighting.observed
    effective = float(observed.sum() ** 2 / np.sum(observed**2))
    if not effective >= LEAST_EFFECTIVE:
        raise RefusedError(
            f"the effective sample size after weighting is {effective:.0f}, and at least {LEAST_EFFECTIVE} is needed: "
            "the two sets differ too much; label rows of the target"
        )
    seed = seed_of(rng)
    classes = compared_classes(p.class_share)
    here, there = (compared_variables(q, f, classes) for q, f in ((p.p, x[0]), (target, x[1])))
    distance, tested = assumption_test(sets, observed, here, there, n_resamples, seed)
    at_target = _weighted_metric(metric, _heavier(p, observed), question)
    spoken = at_target.name if at_target.entry is None else at_target.entry.spoken or at_target.entry.name
    tested_only = ShiftResult(
        math.nan, level=level, source=float(as_statistic(metric, sample, question).observed[0]),
        assumption_pvalue=tested, source_shares=p.class_share, distance=distance, metric=at_target.name, assume=assume,
        n=p.n, n_target=len(target), n_resamples=n_resamples,
    )  # fmt: skip
    if check and tested <= LEVEL:
        sentence, refusal = _contradiction(tested_only, spoken)
        raise ContradictedError(refusal, replace(tested_only, sentence=sentence))
    low, high, calibrated, method = _interval(at_target, sets, observed, level, n_resamples, seed)
    if assume == "label":
        limits = weighting.at_limits(classes, level)
        values = [float(_weighted_metric(metric, _heavier(p, w), question).observed[0]) for w in limits]
        low, high = min(low, *values), max(high, *values)
    shares = _shares(p, weighting, observed)
    result = replace(
        tested_only, value=float(at_target.observed[0]), low=low, high=high, shares=shares, effective_n=effective,
        pvalue=calibrated, likelihood_shares=likelihood_shares(target, p.class_share), weights=observed, method=method,
        corrected=_after_prior_shift(metric, p, observed, question, shares)
        if assume == "label" and tested > LEVEL
        else math.nan,
    )  # fmt: skip
    return replace(result, sentence=_sentence(result, spoken, p.classes, features is not None))


# -- the two sets ------------------------------------------------------------------------------------


def _target_of(p: Predictions, y_prob: Any, target_prob: Any) -> Array:
    """The probabilities of the target (rows, classes) in the order of the source's columns."""
    target = checked_probabilities(target_prob)
    if target.ndim == 1:
        target = np.column_stack([1.0 - target, target])
    if target.shape[1] != p.k:
        raise RefusedError(
            f"target_prob has {target.shape[1]} classes and y_prob has {p.k}: both sets need the same classes, in the "
            "same columns"
        )
    columns = column_names(target_prob)
    if columns is None or len(columns) != p.k:
        return target
    words = [str(name) for name in p.classes]
    named = matched_names(columns, set(words))
    if named is not None:
        return np.ascontiguousarray(target[:, [named.index(word) for word in words]])
    names = column_names(y_prob)
    if names is not None and names != columns:
        raise RefusedError(
            f"target_prob has the columns {', '.join(columns)} and y_prob {', '.join(names)}: both sets need the same "
            "classes, under the same names"
        )
    return target


def _weighting(
    p: Predictions, target: Array, assume: str, features: Any, target_features: Any
) -> tuple[Any, tuple[Array | None, Array | None]]:
    """The weighting of the rows, and the features that the test compares."""
    if assume == "label":
        if features is not None or target_features is not None:
            raise RefusedCallError("features are for assume='covariate': label shift needs the predictions alone")
        weighting = LabelWeighting.of(p, target)
        weighting.refuse_singular()
        return weighting, (None, None)
    if (features is None) != (target_features is None):
        raise RefusedCallError("features and target_features must be passed together")
    if features is None:
        _refuse_few(len(target), p.k - 1)
        return DensityWeighting.of(p, log_odds(p.p), log_odds(target)), (None, None)
    here, there = (_features(f, name) for f, name in ((features, "features"), (target_features, "target_features")))
    here = p.align(here, "features")
    names, others = column_names(features), column_names(target_features)
    if names is not None and others is not None and names != others:
        if sorted(names) != sorted(others) or len(set(names)) < len(names):
            raise RefusedError(
                f"features has the columns {', '.join(names[:5])} and target_features {', '.join(others[:5])}: give "
                "both sets the same features, under the same names"
            )
        there = there[:, [others.index(name) for name in names]]
    if len(there) != len(target) or here.shape[1] != there.shape[1]:
        raise RefusedError(
            f"target_features has the shape {there.shape}: pass {len(target):,} rows, as target_prob has, and "
            f"{here.shape[1]} columns, as features has"
        )
    _refuse_few(len(target), here.shape[1])
    return DensityWeighting.of(p, here, there), (here, there)


def _refuse_few(n_target: int, n_features: int) -> None:
    """Refuse too few target rows for the regression of set membership: two for each coefficient are needed."""
    least = 2 * (n_features + 1)
    if n_target < least:
        raise RefusedError(
            f"target_prob has {counted(n_target, 'row')}, and weights from {counted(n_features, 'feature')} need at "
            f"least {least}: pass more rows of the target, or fewer features"
        )


def _features(values: Any, name: str) -> Array:
    x = as_floats(values, name)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or not np.isfinite(x).all():
        raise RefusedError(
            f"{name} must be numbers without missing values, with one row per prediction and one column per feature"
        )
    return x


def _unweighted(p: Predictions) -> Predictions:
    """The rows without their weights, which are part of the weighting."""
    return Predictions(p.y, p.probability, classes=p.class_names, rows=p.rows, n_input=p.n_input, origin=p.origin)


def _heavier(p: Predictions, w: Array) -> Predictions:
    return _unweighted(p).reweighted(w)


def _shares(p: Predictions, weighting: Any, observed: Array) -> Array:
    if hasattr(weighting, "estimated"):
        return np.asarray(weighting.estimated[0])
    return np.asarray(np.bincount(p.y, observed, minlength=p.k) / observed.sum())


def _weighted_metric(metric: Any, p: Predictions, question: Question) -> Statistic:
    """The metric on weighted rows."""
    found = as_statistic(metric, RowSample(p, "importance"), question.changed(weight_type="importance"))
    if len(found.observed) != 1:
        raise RefusedError(f"{found.name} has {len(found.observed)} values here: choose a metric with one value")
    return found


def _after_prior_shift(metric: Any, p: Predictions, observed: Array, question: Question, shares: Array) -> float:
    """The metric on weighted rows whose probabilities are corrected for these shares; NaN if a share is 0."""
    if not (shares > 0.0).all():
        return float("nan")
    corrected = p.with_probability(PriorShift(shares.tolist()).fit(p).predict(p.probability))
    return float(_weighted_metric(metric, _heavier(corrected, observed), question).observed[0])


# -- the interval ------------------------------------------------------------------------------------


def _interval(
    statistic: Statistic, sets: TwoSets, observed: Array, level: float, n_resamples: int, seed: int
) -> tuple[float, float, float, str]:
    """The ends of the interval, the p-value of calibration at the target, and the method."""
    drawn = _replicates(statistic, sets.bootstrap(observed), n_resamples, seed, "rows")
    value = statistic.observed
    if not triangle.why_not(statistic):
        chance, law = _calibrated(sets)
        many = sets.n * sets.rows.k > _MOST_CELLS
        null = _replicates(statistic, sets.null(chance, law, written_out=many), n_resamples, seed, "labels", many)
        wider = _noise_ratio(sets, observed, chance)
        away = statistic.perfect + (wider**2 if statistic.square else wider) * (null.values - statistic.perfect)
        noise = Replicated(away, null.failure)
        low, high = triangle.triangle_ends(statistic, value, noise, drawn, alpha_of(level))
        tested, method = float(pvalues(value, noise.values, statistic.tail)[0]), "triangle"
    else:
        low, high = bootstrap.ends(value, drawn.values, "normal", level)
        tested, method = float("nan"), "normal"
    low, high = np.clip(low, *statistic.range), np.clip(high, *statistic.range)
    return float(low[0]), float(high[0]), tested, method


def _replicates(
    statistic: Statistic, scheme: Any, n_resamples: int, seed: int, purpose: str, written_out: bool = False
) -> Replicated:
    if written_out:
        statistic = replace(statistic, listed=True)
    drawn = redrawn([statistic], scheme, n_resamples, generator(seed, purpose))[1]
    drawn.say_failures()
    return drawn


def _calibrated(sets: TwoSets) -> tuple[Array, Array | None]:
    """Label probabilities in the source for predictions calibrated at the target, and the target's frequencies."""
    p = sets.rows.p
    if hasattr(sets.weighting, "calibrated_at_target"):
        chance, law = sets.weighting.calibrated_at_target(p)
        return chance, law
    return p, None


def _noise_ratio(sets: TwoSets, observed: Array, chance: Array) -> float:
    """The ratio of the noise of the weighted residuals to that of a calibrated target; at least 1.

    Weights depend on the labels, so that the noise depends on the distribution of labels: with a model that is
    calibrated at the source, labels of large weight are more frequent than with one calibrated at the target.
    """
    p, y = sets.rows.p, sets.rows.y
    away = 1.0 - 2.0 * p + np.sum(p**2, axis=1, keepdims=True)  # squared residual of the row with each label
    weight: Any = sets.weighting
    each = np.tile(observed[:, None], p.shape[1])
    if hasattr(weight, "estimated"):
        each = (np.ones(len(y)) if weight.weight is None else weight.weight)[:, None] * weight.estimated[1]
    seen = float(np.mean(observed**2 * away[np.arange(len(y)), y]))
    calibrated = float(np.mean(np.sum(chance * each**2 * away, axis=1)))
    return max(1.0, float(np.sqrt(seen / calibrated))) if calibrated > 0.0 else 1.0


# -- words ---------------------------------------------------------------------------------------------


def _contradiction(r: ShiftResult, spoken: str) -> tuple[Sentence, str]:
    """What the test found, for a page and for an error."""
    found = (
        f"the data contradict the assumption of {r.assume} shift (Kolmogorov-Smirnov test, "
        f"{pvalue(r.assumption_pvalue, r.n_resamples)}): the target and the weighted source differ by "
        f"{number(r.distance)} in distribution"
    )
    other = {
        "label": ["assume covariate shift with features in which the two sets differ"],
        "covariate": ["add features in which the two sets differ", "assume label shift"],
    }[r.assume]
    said = Claim(f"{found[0].upper()}{found[1:]}.", "assumption fails", assume=r.assume)
    numbers = measured(str(said), distance=r.distance)
    page = (
        f"{said} No estimate of the {spoken} at the target is given. {_either(['Label rows of the target', *other])}."
    )
    anyway = "pass check=False to compute the value anyway"
    return Sentence(page, said, numbers), f"{found}; {_either(['label rows of the target', *other, anyway])}"


def _either(ways: list[str]) -> str:
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def _sentence(r: ShiftResult, spoken: str, classes: tuple[object, ...], features: bool) -> Sentence:
    first = (
        f"Under {r.assume} shift, the {spoken} at the target is {with_interval(r.value, None, None)} "
        f"({percent(r.level)} interval {number(r.low)} to {number(r.high)}); at the source it is {number(r.source)}."
    )
    if r.assume == "label":
        about = "the assumption"
        second = (
            f"{shares_in_both(classes, r.shares, r.source_shares)}; with weights, the {counted(r.n, 'row')} of the "
            f"source have an effective sample size of {round(r.effective_n):,}."
        )
    else:
        about = "the balance of the two sets after weighting"
        what = "the features," if features else "the predictions alone, because no features were given,"
        second = (
            f"The weights come from {what} and the effective sample size of the {counted(r.n, 'row')} of the source is "
            f"{round(r.effective_n):,}. It is assumed that, given these variables, outcomes are distributed alike in "
            "both sets: this cannot be tested without labels of the target."
        )
    tested = f"evidence against {about} (Kolmogorov-Smirnov test, {pvalue(r.assumption_pvalue, r.n_resamples)})."
    failed = r.assumption_pvalue <= LEVEL
    interval = Claim(first, "interval", metric=r.metric, low=r.low, high=r.high)
    parts = [
        Sentence(first, interval, measured(first, source=r.source, target=r.value)),
        measured(second, effective_n=r.effective_n, n=r.n),
        Claim(f"There is {tested}", "assumption fails", assume=r.assume) if failed else f"There is no {tested}",
    ]
    if not np.isnan(r.corrected):
        said = f"After PriorShift with these shares the {spoken} at the target would be {number(r.corrected)}."
        parts.append(measured(said, corrected=r.corrected))
    return Sentence.joined(" ", parts)
