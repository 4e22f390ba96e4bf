"""``validate``: refit the whole modelling procedure to resamples, and estimate its performance on new rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, bounded, collected_warnings, flag, one_of, warn, whole
from calibrary.base.moved import takes_old_keywords
from calibrary.base.numbers import is_absent
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, Indices, as_array, checked_weights, one_each
from calibrary.data.identity import refuse_misaligned
from calibrary.data.predictions import Predictions
from calibrary.inference.draw.resampling import check_level, means
from calibrary.inference.result import ConfidenceInterval
from calibrary.inference.verbs.interval import interval
from calibrary.numerics.draw import generator
from calibrary.validation import corrections
from calibrary.validation import procedure as fitting
from calibrary.validation.corrections import Corrected, no_ends, of_errors
from calibrary.validation.imputed import data_sets, poolable_metrics, pooled_validation
from calibrary.validation.measures import Measured, Measures, chosen
from calibrary.validation.result import Refits, Validation, ValidationRow, table_rows

METHODS = ("optimism", "632", "632+", "cv", "holdout")
#: The numbers of refits that a method does not use.
_UNUSED = {
    "holdout": ("n_resamples", "folds", "repeats"), "cv": ("n_resamples",),
    "632": ("folds", "repeats"), "632+": ("folds", "repeats"),
}  # fmt: skip
#: The largest number of refits' predictions in memory, for the curve and the instability.
_KEPT = 20_000_000


@takes_old_keywords
@checks_options
def validate(
    model: Any,
    X: Any,
    y: Any,
    *,
    metrics: Any = None,
    method: str = "optimism",
    n_resamples: int = 200,
    folds: int = 10,
    repeats: int = 10,
    holdout: Any = 0.3,
    units: Any = None,
    sample_weight: Any = None,
    imputations: Any = None,
    confidence_level: float = 0.95,
    rng: Any = None,
    workers: int | None = None,
    progress: bool | Callable[[int, int], Any] | None = None,
) -> Validation:
    """Estimate a model's performance on new rows of the same population, by refitting it to resamples.

    A model performs better on the rows to which it was fitted than on new rows; a logistic regression fitted by maximum
    likelihood has a calibration slope of exactly 1 there. The whole procedure is therefore fitted again to resamples.
    The optimism is the mean difference between the performance of a refit on its own sample and on the original rows,
    and is subtracted.

    Parameters
    ----------
    model : classifier, or function
        Anything with scikit-learn's ``fit`` and ``predict_proba``; a pipeline or a search is refitted completely,
        including its selection. Or a function ``(X, y)`` (with ``sample_weight`` if weights are given) that returns a
        function from X to probabilities. The given model is never changed.
    X, y
        The predictors (a data frame, an array or a sparse matrix) and the outcome of each row.
    metrics : str, list of str, or mapping of names to options, optional
        Any metrics of the catalogue. Default: calibration slope and intercept, O/E, ECE, smECE, ICI, Emax, Brier score,
        scaled Brier score, AUROC and log loss.
    method : "optimism", "632", "632+", "cv" or "holdout"
        Harrell's optimism bootstrap (default); Efron's .632 and Efron and Tibshirani's .632+ (Brier score, log loss,
        AUROC and slope); repeated cross-validation, pooled within a repeat; one part of the rows held out. With
        "optimism", metrics that use bins or smoothing (ECE, smECE, ICI, Emax) are corrected by cross-validation,
        because the repeated rows of a bootstrap sample add a further bias. The table states the method of each row.
    n_resamples, folds, repeats : int
        Number of bootstrap samples; number of folds (stratified by class) and of repetitions of a cross-validation.
    holdout : float or array of bool
        For ``method="holdout"``: the share of held-out rows, or True for each held-out row (for example the last
        years).
    units : array-like of shape (N,), optional
        The patient or site of each row: whole units are resampled, and stay in one fold.
    sample_weight : array-like of shape (N,), optional
        Passed to ``fit`` and to the metrics. Whole numbers count equal rows; other weights are importances, such as
        those of :func:`calibrary.horizon`. Rows of weight zero are left out.
    imputations : array-like of shape (N,), or True, optional
        The number of the completed data set (multiple imputation) of each row; or True, with X a list of tables. Each
        data set is validated by itself, and corrected values are pooled by Rubin's rules (log for O/E, logit for
        AUROC). Metrics that grow from a perfect value, such as the ECE, are left out of the default and refused.
    confidence_level : float
        Level of the intervals.
    rng : int, Generator or None
        Seed of the resamples; a model that uses random numbers needs its own ``random_state``.
    workers : int, optional
        Processes for the refits (-1: all cores). The result does not depend on it.
    progress : bool or function, optional
        ``False`` shows no progress (default: after two seconds, in a terminal or a notebook); or a function of the
        number of finished and of all refits.

    Returns
    -------
    Validation
        ``table``, ``curve``, ``instability``, ``sentence``, ``tripod()``, ``save(path)``; prints as a table.

    References
    ----------
    Harrell, Lee, Mark (1996), Multivariable prognostic models. Efron, Tibshirani (1997), Improvements on
    cross-validation: the .632+ bootstrap method. Noma et al. (2021), Confidence intervals of prediction accuracy
    measures for multivariable prediction models based on the bootstrap-based optimism correction methods. Riley,
    Collins (2023), Stability of clinical prediction models developed using statistical or machine learning methods.

    Examples
    --------
    >>> import calibrary as cal
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = cal.validate(GaussianNB(), X, y, metrics=["bs", "auroc"], n_resamples=20, rng=0)
    >>> round(found["bs"].apparent, 3), found["bs"].value > found["bs"].apparent
    (0.054, True)
    """
    one_of("method", method, METHODS)
    measures = chosen(metrics, method)
    check_level(confidence_level)
    refuse_misaligned(X=X, y=y, units=units, sample_weight=sample_weight, holdout=holdout)
    asked = {"n_resamples": (n_resamples, 200), "folds": (folds, 10), "repeats": (repeats, 10)}
    for name in _UNUSED.get(method, ()):
        value, usual = asked[name]
        if value != usual:
            raise RefusedCallError(f"{name}={value} has no effect with method={method!r}: leave it out")
    whole("folds", folds, 2)
    if progress is not None and not callable(progress):
        flag("progress", progress)
    if method != "holdout" and not (isinstance(holdout, float) and holdout == 0.3):
        raise RefusedCallError(f"holdout= has no effect with method={method!r}: leave it out, or pass method='holdout'")
    if imputations is not None:
        metrics = poolable_metrics(metrics)
        columns = {"units": units, "sample_weight": sample_weight, "holdout": holdout}
        settings: dict[str, Any] = {
            "metrics": metrics, "method": method, "n_resamples": n_resamples, "folds": folds, "repeats": repeats,
            "confidence_level": confidence_level, "rng": rng, "workers": workers, "progress": progress,
        }  # fmt: skip
        parts = list(data_sets(X, y, imputations, columns))
        return pooled_validation([validate(model, **part, **settings) for part in parts])
    given = _given(model, X, y, units, sample_weight)
    runner = fitting.Runner(given.procedure, given.X, given.y, workers, progress)
    if method == "holdout":
        return _held_out(given, measures, holdout, confidence_level, rng)
    whole_fit = _fit_to_all(given)
    if given.rows.unit is not None:
        fitting.say_few_units(given.rows.unit, whole_fit.weight)
    measures = measures.named(whole_fit)
    study = _Study(given, measures, runner, whole_fit, confidence_level, generator(rng, "validation"))
    rows: list[ValidationRow] = []
    refits: Refits | None = None
    by_bootstrap = measures if method.startswith("632") else measures.those(smooth=True)
    if method != "cv" and by_bootstrap.pairs:
        made, refits = study.bootstrapped(by_bootstrap, method, whole("n_resamples", n_resamples, 2))
        rows += made
    by_folds = (
        measures if method == "cv" else Measures(()) if method.startswith("632") else measures.those(smooth=False)
    )
    if by_folds.pairs:
        rows += study.folded(by_folds, folds, repeats)
    runner.tally.refuse_or_warn()
    order = [name.key for name in measures.names]
    rows.sort(key=lambda row: order.index(row.metric))
    used = {"folds": folds, "repeats": repeats} if by_folds.pairs else {}
    if refits is not None:
        used["n_resamples"] = n_resamples
    tally = runner.tally
    counts = {"n_refits": tally.n, "n_failed": tally.n_failed, "seconds_refitting": tally.seconds}
    found = given.validation(rows, method, confidence_level, failure=tally.failure, **used, **counts)
    return replace(found, seconds_measuring=study.seconds, predictions=whole_fit, refits=refits)


# -- input ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Given:
    """The checked input: the procedure, the rows of X with positive weight, and their labels, weights and units."""

    procedure: fitting.Procedure
    X: Any
    y: NDArray[Any]
    rows: fitting.Rows

    def validation(self, table: list[ValidationRow], method: str, level: float, **more: Any) -> Validation:
        """The result with these rows of its table, and the facts about model and data."""
        rows, classes = self.rows, self.procedure.classes
        of_class = tuple(np.bincount(rows.label, minlength=len(classes)).tolist())
        facts = (table_rows(table), method, self.procedure.name, rows.n, tuple(map(str, classes)), of_class)
        n_units = None if rows.unit is None else rows.n_units
        return Validation(*facts, n_units, fitting.features_of(self.X), confidence_level=level, **more)

    def predictions(self, probability: Array, rows: Indices | None = None) -> Predictions:
        """Predictions of all rows, or of some rows, with the names of the classes."""
        label, weight = self.rows.label, self.rows.weight
        if rows is not None:
            label, weight = label[rows], None if weight is None else weight[rows]
        return Predictions(label, probability, weight, classes=self.procedure.classes)


def _given(model: Any, X: Any, y: Any, units: Any, sample_weight: Any) -> _Given:
    X, labels = fitting.as_rows(X), as_array(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    n = fitting.count_of(X)
    if labels.ndim != 1 or len(labels) != n:
        raise RefusedError(f"y has shape {labels.shape} and X has {n} rows: pass one outcome for each row")
    words = (f"X has {n} rows", "the unit of each row", "give each row its unit, or leave the row out")
    unit = None if units is None else one_each(units, "units", n, *words)
    weight = None if sample_weight is None else checked_weights(sample_weight, n)
    if weight is not None and (weight == 0.0).any():
        kept = np.flatnonzero(weight)
        X, labels, weight = fitting.rows_of(X, kept), labels[kept], weight[kept]
        unit = None if unit is None else unit[kept]
    classes, label = _classes(labels)
    place = None if unit is None else np.unique(unit, return_inverse=True)[1].ravel().astype(np.intp)
    rows = fitting.Rows(label, weight, place)
    if rows.n_units < 2:
        raise RefusedError("units has one value only: pass at least two units, because whole units are resampled")
    return _Given(fitting.procedure(model, classes, weight is not None), X, labels, rows)


def _classes(labels: NDArray[Any]) -> tuple[tuple[Hashable, ...], Indices]:
    """The classes in order, and the index of each row's class."""
    if labels.dtype.kind == "O" and any(map(is_absent, labels.tolist())):
        raise RefusedError("y holds missing outcomes: drop the rows without one")
    if labels.dtype.kind == "f" and not (np.isfinite(labels).all() and (labels == np.rint(labels)).all()):
        raise RefusedError("y holds fractions or missing numbers: pass the class that occurred in every row")
    found, label = np.unique(labels, return_inverse=True)
    if len(found) < 2:
        raise RefusedError(
            f"every row of y is of class {found.tolist()[0]!r}: a model needs rows of at least two classes"
        )
    return tuple(found.tolist()), label.ravel().astype(np.intp)


def _fit_to_all(given: _Given) -> Predictions:
    """The model fitted to all rows; an error of the model becomes one sentence, and a change of its X a warning."""
    rows, weight = given.rows.everything
    own, again = fitting.rows_of(given.X, rows), fitting.rows_of(given.X, rows)
    try:
        predict = given.procedure.fitted(own, given.y.copy(), weight)
    except Exception as error:
        raise RefusedError(f"the model cannot be fitted to all rows: {fitting.with_type(error)}") from error
    found = given.predictions(given.procedure.probabilities(predict, again, given.rows.n))
    if not (fitting.same_values(given.X, own) and fitting.same_values(given.X, again)):
        warn(
            f"{given.procedure.name} changes its X in place: it was given copies, so that your X and this result are "
            "not affected; make it work on a copy (copy=True in scikit-learn) before you use it elsewhere"
        )
    return found


# -- the methods ------------------------------------------------------------------------------------


@dataclass
class _Study:
    """One running validation: it draws samples, refits, computes the metrics and summarizes."""

    given: _Given
    measures: Measures
    runner: fitting.Runner
    whole: Predictions
    level: float
    rng: np.random.Generator
    seconds: float = 0.0

    def measured(self, measures: Measures, p: Predictions) -> Array:
        began = process_time()
        found = measures.of(p)
        self.seconds += process_time() - began
        return found

    def bootstrapped(self, measures: Measures, method: str, n_resamples: int) -> tuple[list[ValidationRow], Refits]:
        rows, n = self.given.rows, self.given.rows.n
        drawn = rows.bootstrap(bounded("n_resamples", n_resamples), self.rng)
        tasks = ((rows.to_fit(one), None) for one in drawn)
        training, test = np.full((2, n_resamples, len(measures.names)), np.nan)
        most = max(1, min(n_resamples, _KEPT // max(1, self.whole.probability.size)))
        kept: list[Array] = []
        kept_drawn: list[Array] = []
        for b, made in enumerate(self.runner(tasks, n_resamples, "refitting to bootstrap samples")):
            if made.probability is None:
                continue
            p = self.given.predictions(made.probability)
            training[b] = self.measured(measures, p.reweighted(drawn[b]))
            if method == "optimism":
                test[b] = self.measured(measures, p)
            else:
                outside = np.flatnonzero(drawn[b] == 0.0)
                test[b] = self.measured(measures, p.part(outside)) if len(outside) else np.nan
            if len(kept) < most:
                kept.append(made.probability)
                kept_drawn.append(drawn[b].astype(np.float32))
        self.runner.tally.refuse_or_warn()
        apparent = self.measured(measures, self.whole)
        found, ends = self._summed(measures, method, apparent, training, test)
        refits = Refits(np.array(kept), np.array(kept_drawn), n)
        return _rows(measures, _WORDS[method], apparent, found, ends), refits

    def _summed(
        self, measures: Measures, method: str, apparent: Array, training: Array, test: Array
    ) -> tuple[Corrected, ConfidenceInterval]:
        if method == "optimism":
            found = corrections.optimism(apparent, training, test)
            return found, of_errors(apparent, training, test, self.level, measures.laws)
        if method == "632":
            return corrections.point_632(apparent, training, test), no_ends(len(apparent))
        without = self.measured(measures, corrections.uninformed(self.whole))
        return corrections.point_632_plus(apparent, training, test, without), no_ends(len(apparent))

    def folded(self, measures: Measures, folds: int, repeats: int) -> list[ValidationRow]:
        rows = self.given.rows
        splits = list(rows.folds(folds, repeats, self.rng))
        tasks = [(rows.all_but(held), held) for split in splits for held in split]
        made = self.runner(tasks, len(tasks), "refitting without each fold")
        pooled = np.full((len(splits), len(measures.names)), np.nan)
        for r, split in enumerate(splits):
            parts = [(held, next(made).probability) for held in split]
            known = [(held, p) for held, p in parts if p is not None]
            if not known:
                continue
            held, p = np.concatenate([h for h, _ in known]), np.concatenate([q for _, q in known])
            order = np.argsort(held)
            pooled[r] = self.measured(measures, self.given.predictions(p[order], held[order]))
        next(made, None)  # completes the progress bar
        self.runner.tally.refuse_or_warn()
        apparent, test = self.measured(measures, self.whole), means(pooled)
        found = Corrected(np.full(len(test), np.nan), test, apparent - test, test)
        return _rows(measures, _WORDS["cv"], apparent, found, no_ends(len(test)))


_WORDS = {"optimism": "bootstrap", "632": ".632", "632+": ".632+", "cv": "cross-validation", "holdout": "holdout"}


def _rows(
    measures: Measures, method: str, apparent: Array, found: Corrected, ends: ConfidenceInterval
) -> list[ValidationRow]:
    gone = [_spoken(name) for name, x in zip(measures.names, found.corrected, strict=True) if np.isnan(x)]
    if gone:
        warn(
            f"{', '.join(gone)} has no corrected value, because it is undefined on the rows on which every refit was "
            "measured: pass more rows or units, or use another method"
        )
    columns = {"training": found.training, "test": found.test, "optimism": found.optimism, "value": found.corrected}
    rows = np.column_stack([apparent, *columns.values(), ends.low, ends.high]).tolist()
    named = [dict(zip(("apparent", *columns, "low", "high"), row, strict=True)) for row in rows]
    return [
        ValidationRow(**own, method=method, metric=name.key, name=_spoken(name))
        for name, own in zip(measures.names, named, strict=True)
    ]


def _spoken(name: Measured) -> str:
    """The name of a value in a sentence: the requested name, if that name implies settings."""
    entry = name.entry
    words = entry.key if entry.called is not None else entry.spoken or entry.name
    return f"{words} ({name.part})" if name.part else words


def _held_out(given: _Given, measures: Measures, holdout: Any, level: float, rng: Any) -> Validation:
    """One model fitted to a part of the rows, evaluated there and on the held-out rows, with an interval there."""
    held = given.rows.held_out(holdout, rng)
    fit = given.rows.all_but(held)
    made = given.procedure.refit(given.X, given.y, fit, None)
    if made.probability is None:
        raise RefusedError(f"the model cannot be fitted to the rows that are not held out: {made.failure}")
    began = process_time()
    inside = given.predictions(made.probability[fit[0]], fit[0])
    outside = given.predictions(made.probability[held], held)
    if given.rows.unit is not None:
        outside = outside.in_units(given.rows.unit[held])
        fitting.say_few_units(given.rows.unit[held], outside.weight)
    measures = measures.named(inside)
    apparent, test = measures.of(inside), measures.of(outside)
    low, high = np.full((2, len(test)), np.nan)
    with collected_warnings():
        for j, name in enumerate(measures.names):
            question = next(q for e, q in measures.pairs if e is name.entry)
            if name.part:
                continue
            found = interval(
                name.entry.key, outside, confidence_level=level, n_resamples=399, weight_type=given.rows.weight_type,
                rng=generator(rng, "interval of rows held out"), **question.options,
            )  # fmt: skip
            low[j], high[j] = found.low, found.high
    found_columns = Corrected(apparent, test, apparent - test, test)
    rows = _rows(measures, _WORDS["holdout"], apparent, found_columns, ConfidenceInterval(low, high))
    seconds = {"seconds_refitting": made.seconds, "seconds_measuring": process_time() - began}
    counts = {"n_held_out": len(held), "n_refits": 1}
    return given.validation(rows, "holdout", level, **counts, **seconds, predictions=outside)
