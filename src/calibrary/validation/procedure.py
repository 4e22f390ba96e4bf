"""The modelling procedure, which is refitted completely to every resample."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import RefusedCallError, RefusedError, extra, first_line, warn, whole
from calibrary.base.numbers import counted, percent
from calibrary.base.text import in_sentence, plain
from calibrary.data.checks import Array, Indices, as_array, checked_probabilities
from calibrary.data.columns import column_names, matched_names
from calibrary.data.identity import refuse_misaligned
from calibrary.inference.draw.unit_law import FEW_UNITS, UnitLaw
from calibrary.inference.draw.waiting import ProgressBar
from calibrary.numerics.draw import generator, row_counts, shuffled

#: A function from rows to probabilities.
Predictor = Callable[[Any], Any]


@dataclass(frozen=True)
class Refit:
    """One refit: its predicted probabilities, or the reason of its failure, and its CPU time in seconds."""

    probability: Array | None
    failure: str
    seconds: float


@dataclass(frozen=True)
class Procedure:
    """A model of which copies are fitted to resamples; the model itself is never changed.

    Attributes
    ----------
    model : a classifier with scikit-learn's interface, or a function ``(X, y) -> predict``
    classes : the classes in the order of the probabilities
    weight_name : the name of the weights in ``fit``; empty without weights
    """

    model: Any
    classes: tuple[Hashable, ...]
    weight_name: str = ""

    @property
    def estimator(self) -> bool:
        return is_estimator(self.model)

    @property
    def name(self) -> str:
        """The name of the model in a table."""
        if self.estimator:
            return plain(" ".join(repr(self.model).split()))
        return plain(getattr(self.model, "__name__", type(self.model).__name__))

    def fitted(self, X: Any, y: NDArray[Any], weight: Array | None) -> Predictor:
        """Fit a copy of the model to these rows, and return its prediction function."""
        weights = {} if weight is None else {self.weight_name: weight}
        if not self.estimator:
            predict: Predictor = self.model(X, y, **weights)
            if not callable(predict):
                raise RefusedCallError(
                    f"the function model returned {type(predict).__name__} and must return a function of X that gives "
                    "probabilities"
                )
            return predict
        made = unfitted(self.model).fit(X, y, **weights)
        return _ByClass(made, self.classes)

    def probabilities(self, predict: Predictor, X: Any, n: int) -> Array:
        """Checked probabilities of n rows: of the second class for two classes, or one column for each class."""
        answer = predict(X)
        refuse_misaligned(**{"X": X, "the model's probabilities": answer})
        given = as_array(_by_name(answer, self.classes), "the model's probabilities")
        k = len(self.classes)
        if given.ndim == 2 and given.shape[1] == 1:
            raise RefusedError(
                f"the model gave one column of probabilities for {k} classes: return one column for each class, or an "
                "array of shape (N,) for two classes"
            )
        if given.shape not in ((n, k), *(((n,),) if k == 2 else ())):
            raise RefusedError(f"the model gave probabilities of shape {given.shape} for {n} rows of {k} classes")
        try:
            p = checked_probabilities(given)
        except ValueError as error:
            raise RefusedError(str(error).replace("y_prob", "the model's probabilities")) from None
        return np.ascontiguousarray(p[:, 1]) if p.ndim == 2 and k == 2 else p

    def refit(self, X: Any, y: NDArray[Any], fit: tuple[Indices, Array | None], target: Indices | None) -> Refit:
        """Fit to some rows (with weights) and predict other rows, or all; an error is stored as a sentence."""
        began = process_time()
        rows, weight = fit
        try:
            labels = y[rows]
            self._refuse_missing(labels)
            predict = self.fitted(rows_of(X, rows), labels, weight)
            predicted = np.arange(len(y)) if target is None else target
            p = self.probabilities(predict, rows_of(X, predicted), len(predicted))
        except Exception as error:  # any error of the user's model is counted and reported
            return Refit(None, with_type(error), process_time() - began)
        return Refit(p, "", process_time() - began)

    def _refuse_missing(self, labels: NDArray[Any]) -> None:
        present = set(labels.tolist())
        for name in self.classes:
            if name not in present:
                raise RefusedError(f"class {in_sentence(name)} does not occur in the resample")


class _ByClass:
    """The probabilities of a fitted classifier, with its columns in the order of the classes."""

    def __init__(self, fitted: Any, classes: tuple[Hashable, ...]) -> None:
        self.fitted, self.classes = fitted, classes

    def __call__(self, X: Any) -> Any:
        p = self.fitted.predict_proba(X)
        own = list(getattr(self.fitted, "classes_", self.classes))
        if len(own) != len(self.classes) or set(own) != set(self.classes):
            raise RefusedError(
                f"the classes_ of {type(self.fitted).__name__} are {_listed(own)}, and y has the classes "
                f"{_listed(self.classes)}: the model must have one column of probabilities for each class of y"
            )
        if own == list(self.classes) or _names_classes(p, self.classes):
            return p
        return as_array(p, "the model's probabilities")[:, [own.index(name) for name in self.classes]]


def _names_classes(p: Any, classes: Sequence[Hashable]) -> list[str] | None:
    """The class of each column, if a model returned a table with a column for each class; otherwise None."""
    columns = column_names(p)
    return None if columns is None else matched_names(columns, set(map(str, classes)))


def _by_name(p: Any, classes: Sequence[Hashable]) -> Any:
    """Probabilities in the order of the classes, if the columns are named after them."""
    names = _names_classes(p, classes)
    if names is not None and len(names) == len(classes):
        return as_array(p, "the model's probabilities")[:, [names.index(str(name)) for name in classes]]
    strange = set(column_names(p) or ()) & set(map(str, classes)) if names is None else names
    if strange:
        raise RefusedError(
            f"the model's probabilities have the columns {_listed(column_names(p) or ())}, and the classes are "
            f"{_listed(classes)}: name one column after each class, or return an array in the order of the classes"
        )
    return p


def _listed(names: Sequence[Hashable]) -> str:
    return ", ".join(map(in_sentence, names[:5])) + (", ..." if len(names) > 5 else "")


def is_estimator(model: Any) -> bool:
    return hasattr(model, "fit") and not isinstance(model, type)


def procedure(model: Any, classes: tuple[Hashable, ...], weighted: bool) -> Procedure:
    """The procedure of a model; a model that cannot be refitted is refused with one sentence."""
    if isinstance(model, type):
        raise RefusedCallError(f"model is the class {model.__name__}: pass an object of it, {model.__name__}(...)")
    if is_estimator(model):
        if not hasattr(model, "predict_proba"):
            raise RefusedCallError(f"{type(model).__name__} has no predict_proba: validation needs probabilities")
        unfitted(model)
    elif not callable(model):
        raise RefusedCallError(
            f"model is {in_sentence(model)}: pass a classifier with fit and predict_proba, or a function (X, y) that "
            "returns a function of X"
        )
    return Procedure(model, classes, _weight_name(model) if weighted else "")


def unfitted(model: Any) -> Any:
    """An unfitted copy of the model."""
    name = type(model).__name__
    if not hasattr(model, "get_params"):
        raise RefusedCallError(
            f"{name} cannot be cloned, because it has no get_params: derive it from sklearn.base.BaseEstimator, or "
            "pass a function (X, y) that fits a new one and returns its probabilities as a function of X"
        )
    with extra("sklearn", "refitting a model"):
        from sklearn.base import clone
    try:
        return clone(model)
    except Exception as error:
        raise RefusedCallError(
            f"{name} cannot be cloned ({with_type(error)}): pass a function (X, y) that fits a new one and returns its "
            "probabilities as a function of X"
        ) from error


def _weight_name(model: Any) -> str:
    """The name of the sample weights in the model's ``fit``."""
    steps = getattr(model, "steps", None)
    if steps:  # a pipeline passes the weights to its last step
        return f"{steps[-1][0]}__{_weight_name(steps[-1][1])}"
    call = model.fit if is_estimator(model) else model
    names = inspect.signature(call).parameters
    inner = getattr(model, "estimator", None)  # a search passes the weights to its estimator
    if "sample_weight" in names or (inner is not None and any(p.kind is p.VAR_KEYWORD for p in names.values())):
        return "sample_weight" if inner is None or "sample_weight" in names else _weight_name(inner)
    what = type(model).__name__ if is_estimator(model) else "the function model"
    raise RefusedError(f"{what} takes no sample_weight: omit sample_weight, or add that argument to its fit")


def rows_of(X: Any, rows: Indices) -> Any:
    """A copy of some rows of a table, an array or a sparse matrix, which a model may change."""
    if hasattr(X, "iloc"):
        return X.iloc[rows].copy()  # all rows in order would be the table itself
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return X[rows]


def as_rows(X: Any) -> Any:
    """X in a form whose rows can be selected by position."""
    if hasattr(X, "iloc") or hasattr(X, "tocsr") or type(X).__module__.partition(".")[0] == "polars":
        return X
    return as_array(X, "X")


def same_values(X: Any, copy: Any) -> bool:
    """Whether a copy of a table, an array or a sparse matrix still has the same values."""
    if hasattr(X, "equals"):  # pandas, polars
        return bool(X.equals(copy))
    if hasattr(X, "tocsr"):
        return not (abs(X - copy) > 0.0).nnz
    if X.dtype.kind == "O":
        return all(map(operator.is_, X.ravel(), copy.ravel()))
    return np.array_equal(X, copy, equal_nan=X.dtype.kind in "fc")


def count_of(X: Any) -> int:
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[0]) if len(shape) else 0


def features_of(X: Any) -> int | None:
    """The number of predictors; None if X is not a table."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def with_type(error: BaseException) -> str:
    """The type and the first line of an error, for a sentence."""
    kind, line = type(error).__name__, first_line(error)
    return plain(kind if line == kind else f"{kind}: {line}", 300)


# -- all refits, in one or several processes, with a progress bar ------------------------------------

#: The rows to fit with their weights, and the rows to predict (None: all rows).
Task = tuple[tuple[Indices, Array | None], Indices | None]
#: A larger share of failed refits than this gives a warning.
_MANY_FAILED = 0.05


@dataclass
class Tally:
    """The number of refits, of failed ones, the reason of the first failure, and the CPU time in seconds."""

    n: int = 0
    n_failed: int = 0
    failure: str = ""
    seconds: float = 0.0

    def add(self, made: Refit) -> Refit:
        self.n += 1
        self.seconds += made.seconds
        if made.probability is None:
            self.n_failed += 1
            self.failure = self.failure or made.failure
        return made

    @property
    def sentence(self) -> Sentence:
        """The number of failed refits and the first reason, in words; empty if none failed."""
        if not self.n_failed:
            return Sentence("")
        text = (
            f"{self.n_failed:,} of {counted(self.n, 'refit')} failed ({percent(self.n_failed / self.n)}) and were left "
            f"out; the first: {self.failure}"
        )
        return Sentence(text, measured(text, refits=self.n, failed=self.n_failed))

    def refuse_or_warn(self) -> None:
        """Raise an error if every refit failed, and a warning if many did."""
        if self.n and self.n_failed == self.n:
            raise RefusedError(f"every one of {counted(self.n, 'refit')} failed; the first: {self.failure}")
        if self.n_failed > _MANY_FAILED * self.n:
            warn(self.sentence)


@dataclass
class Runner:
    """Refit a procedure to many samples of the rows."""

    procedure: Procedure
    X: Any
    y: NDArray[Any]
    workers: int | None = None
    progress: bool | Callable[[int, int], Any] | None = None
    tally: Tally = field(default_factory=Tally)

    def __call__(self, tasks: Iterable[Task], total: int, what: str) -> Iterator[Refit]:
        """The refits in the order of the tasks."""
        bar = ProgressBar(total, what, shown=None if callable(self.progress) else self.progress)
        try:
            for done, made in enumerate(self._made(tasks), start=1):
                bar.done(True)
                if callable(self.progress):
                    self.progress(done, total)
                yield self.tally.add(made)
        finally:
            bar.close()

    def _made(self, tasks: Iterable[Task]) -> Iterator[Refit]:
        if self.workers in (None, 1):
            for fit, target in tasks:
                yield self.procedure.refit(self.X, self.y, fit, target)
            return
        with extra("sklearn", "refitting in several processes"):
            from joblib import Parallel, delayed
        refit = delayed(self.procedure.refit)
        parallel = Parallel(n_jobs=self.workers, return_as="generator")
        yield from parallel(refit(self.X, self.y, fit, target) for fit, target in tasks)


# -- resamples ---------------------------------------------------------------------------------------

# The samples to which a model is refitted: bootstrap samples, folds, or all rows but a held-out part.


@dataclass(frozen=True)
class Rows:
    """The rows of a validation with the information for resampling.

    Attributes
    ----------
    label : the class of each row as a number
    weight : the weight of each row; None without weights
    unit : the patient, site or prompt of each row as a number; None if rows are drawn one by one
    """

    label: Indices
    weight: Array | None
    unit: Indices | None

    @property
    def n(self) -> int:
        return len(self.label)

    @property
    def n_units(self) -> int:
        return self.n if self.unit is None else int(self.unit.max()) + 1

    @property
    def copies(self) -> bool:
        """Whether the weights are whole numbers, which count equal rows."""
        return self.weight is not None and bool((self.weight == np.rint(self.weight)).all())

    @property
    def weight_type(self) -> str:
        """The type of the weights for an interval: whole numbers are frequencies."""
        return "frequency" if self.weight is None or self.copies else "importance"

    # -- bootstrap ------------------------------------------------------------------------------

    def bootstrap(self, n_resamples: int, rng: Any) -> Array:
        """The weight of each row in each bootstrap sample; 0 for rows that were not drawn."""
        source = generator(rng, "bootstrap samples")
        if self.unit is not None:
            drawn = row_counts(np.ones(self.n_units, dtype=np.int64), n_resamples, source)[:, self.unit]
        elif self.copies and self.weight is not None:
            return row_counts(self.weight.astype(np.int64), n_resamples, source).astype(np.float64)
        else:
            drawn = row_counts(np.ones(self.n, dtype=np.int64), n_resamples, source)
        return drawn.astype(np.float64) if self.weight is None else drawn * self.weight

    def to_fit(self, drawn: Array) -> tuple[Indices, Array | None]:
        """The rows of a bootstrap sample for fitting: repeated, or with weights if rows have weights."""
        if self.weight is None:
            return np.repeat(np.arange(self.n), drawn.astype(np.intp)), None
        rows = np.flatnonzero(drawn)
        return rows, drawn[rows]

    def all_but(self, held: Indices) -> tuple[Indices, Array | None]:
        """All rows except these, for fitting."""
        rows = np.setdiff1d(np.arange(self.n), held, assume_unique=True)
        return rows, None if self.weight is None else self.weight[rows]

    @property
    def everything(self) -> tuple[Indices, Array | None]:
        return np.arange(self.n), None if self.weight is None else self.weight.copy()

    # -- folds ----------------------------------------------------------------------------------

    def folds(self, folds: int, repeats: int, rng: Any) -> Iterator[list[Indices]]:
        """For each repeat, the rows of each fold; folds are stratified by class, and units are not divided."""
        k = whole("folds", folds, 2)
        if k > self.n_units:
            what = "rows" if self.unit is None else "units"
            raise RefusedError(f"folds={k} needs at least {k} {what}, and there are {self.n_units}: use fewer folds")
        source = generator(rng, "folds of validation")
        for _ in range(whole("repeats", repeats)):
            order = self._by_class(source, "folds of validation")
            fold = np.empty(self.n_units, dtype=np.intp)
            fold[order] = np.arange(self.n_units) % k
            mine = fold if self.unit is None else fold[self.unit]
            yield [np.flatnonzero(mine == f) for f in range(k)]

    def _by_class(self, rng: Any, purpose: str) -> Indices:
        """The rows, or the units by their largest label, in random order within each class."""
        largest = np.zeros(self.n_units, dtype=np.intp)
        np.maximum.at(largest, np.arange(self.n) if self.unit is None else self.unit, self.label)
        order = shuffled(self.n_units, rng, purpose)
        return order[np.argsort(largest[order], kind="stable")]

    # -- held out -------------------------------------------------------------------------------

    def held_out(self, holdout: Any, rng: Any) -> Indices:
        """The held-out rows: as marked, or a random share of the rows (or units), stratified by class."""
        if np.ndim(holdout) > 0:
            return self._marked(as_array(holdout, "holdout"))
        if isinstance(holdout, bool) or not isinstance(holdout, float) or not 0.0 < holdout < 1.0:
            raise RefusedError(
                f"holdout={holdout!r} must be a share above 0 and below 1, or an array that is True where a row is "
                "held out"
            )
        order = self._by_class(rng, "rows held out")
        # evenly spaced positions in rows sorted by class, so that each class has its share
        place = np.arange(self.n_units)
        taken = np.floor((place + 1) * holdout) > np.floor(place * holdout)
        held = np.zeros(self.n_units, dtype=bool)
        held[order[taken]] = True
        return np.flatnonzero(held if self.unit is None else held[self.unit])

    def _marked(self, marks: Any) -> Indices:
        if marks.dtype.kind != "b" or marks.shape != (self.n,):
            raise RefusedError(
                f"holdout has shape {marks.shape} and type {marks.dtype}: mark each of {self.n} rows True or False"
            )
        held = np.flatnonzero(marks)
        if not 0 < len(held) < self.n:
            raise RefusedError(
                f"holdout marks {len(held)} of {self.n} rows: some rows must be held out, and some must not"
            )
        if self.unit is not None and len(np.intersect1d(self.unit[held], self.unit[~marks])):
            raise RefusedError("holdout divides the rows of a unit: hold out whole units")
        return held


def say_few_units(unit: Indices, weight: Array) -> None:
    """Warn if there are few units, or if few of them have most of the rows."""
    size = np.bincount(np.unique(unit, return_inverse=True)[1].ravel(), weight)
    what = "corrected values and intervals are"
    UnitLaw(len(size), np.inf).say_few(what)
    effective = float(size.sum() ** 2 / (size @ size))
    if effective < FEW_UNITS <= len(size):
        warn(
            f"a few of the {len(size):,} units have most of the rows, which is equivalent to {effective:.1f} equal "
            f"units: with fewer than {FEW_UNITS}, {what} inaccurate"
        )
