"""``Recalibrator``: a map that is fitted to some predictions, applied to others, and saved as JSON."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, flag
from calibrary.base.numbers import percent
from calibrary.data import is_data
from calibrary.data.asked import check_asked, check_type
from calibrary.data.checks import Array, are_probabilities, as_array
from calibrary.data.identity import refuse_misaligned
from calibrary.data.predictions import Predictions, predictions
from calibrary.maps.base import EPS
from calibrary.maps.ends import inside
from calibrary.maps.prior_shift import PrevalenceOffset, prior_shift
from calibrary.maps.vector import ClassWise
from calibrary.maps.venn_abers import VennAbersBounds
from calibrary.recalibrate import file
from calibrary.recalibrate.candidates import NAMES, candidate
from calibrary.recalibrate.fitted import IDENTITY, FittedMap, FittedRows, end_of, fit_candidate, problem
from calibrary.recalibrate.folds import fold_numbers
from calibrary.recalibrate.gain import Before, recalibration_gain
from calibrary.recalibrate.inputs import class_names, column_names, in_units, probabilities, refuse_swapped
from calibrary.recalibrate.scores import row_score, row_scores
from calibrary.recalibrate.segment_gain import SegmentGain, segment_gain
from calibrary.recalibrate.segments import SegmentMaps, fit_segments, no_maps, segment_names
from calibrary.recalibrate.table import MapGain, RecalibrationGain

#: The number of points at which the direction of a map is checked; two more are near 0 and 1.
_PLACES = np.concatenate(([0.0, 1e-9, 1e-6, 1e-4], np.linspace(0.0, 1.0, 2001)[1:-1], [1 - 1e-4, 1 - 1e-6, 1.0]))
#: The number of bisections down to adjacent floating-point numbers.
_HALVINGS = 60
_ROUNDING = 1e-12


def inverse_of(mapped: Callable[[Array], Array], q: Any, word: str) -> Array:
    """The smallest score that an increasing map maps to at least q (decreasing: the largest); NaN if there is none."""
    wanted = as_array(q, "q").astype(np.float64)
    if not are_probabilities(wanted).all():
        raise RefusedError(f"q={q!r} must hold probabilities: numbers from 0 to 1")
    if direction(mapped, word) < 0:
        return 1.0 - _rising(lambda c: mapped(1.0 - c), wanted)
    return _rising(mapped, wanted)


def direction(mapped: Callable[[Array], Array], word: str) -> int:
    """1 for an increasing map, -1 for a decreasing one; other maps are refused."""
    step = np.diff(mapped(_PLACES))
    rises, falls = bool((step > _ROUNDING).any()), bool((step < -_ROUNDING).any())
    if rises and falls:
        raise RefusedError(f"the map {word} is not monotone, so that one probability may correspond to two scores")
    if not rises and not falls:
        raise RefusedError(f"the map {word} is constant: it has no inverse")
    return 1 if rises else -1


def _rising(mapped: Callable[[Array], Array], wanted: Array) -> Array:
    low, high = np.zeros(wanted.shape), np.ones(wanted.shape)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        reaches = mapped(middle.ravel()).reshape(wanted.shape) >= wanted
        low, high = np.where(reaches, low, middle), np.where(reaches, middle, high)
    first, last = mapped(np.array([0.0, 1.0]))
    return np.where(wanted > last, np.nan, np.where(wanted <= first, 0.0, high))


def score_words(mapped: Callable[[Array], Array], q: float, word: str) -> str:
    """The stated probability that corresponds to the recalibrated probability q, in words."""
    score = float(inverse_of(mapped, [q], word)[0])
    if np.isnan(score):
        return f"No stated probability corresponds to {percent(q)} or more: all values of the map {word} are lower."
    if direction(mapped, word) < 0:
        return (
            f"A recalibrated probability of {percent(q)} or more corresponds to a stated probability of "
            f"{percent(score)} or less."
        )
    return f"A recalibrated probability below {percent(q)} corresponds to a stated probability below {percent(score)}."


class Recalibrator:
    """Recalibrate predictions from their scores alone, with scikit-learn's interface.

    The input is the output of ``predict_proba``, not features, so that it can follow any model; with ``logits=True``
    it is the output of ``decision_function`` or of a network's last layer. ``clone``, ``get_params``, pipelines and
    searches work; scikit-learn itself is not needed.

    Parameters
    ----------
    map : str or object
        "auto" uses the map that :func:`calibrary.recalibration_gain` recommends: the simplest one that is about the
        best, or none (unchanged predictions) if no map improves the score. Else "temperature", "platt", "beta", "rcs"
        (spline), "isotonic", "venn_abers", "cross_venn_abers", "histogram", "pl", "pl3", "prevalence"; for several
        classes these are fitted class by class and divided by their sum, while "temperature", "bias_temperature",
        "ensemble_temperature", "vector", "structured_matrix", "dirichlet", "matrix" and "multinomial_spline" transform
        whole rows. Or an object of :mod:`calibrary.maps`, or any with ``fit(y, c,
        sample_weight)`` and ``predict(c)``.
    ends : "half", "eps" or a number
        Scores of exactly 0 and 1 have no log odds. They are clipped at half the distance of the nearest other score of
        the fit, at 2.2e-16, or at this distance from 0 and 1.
    classes : sequence, optional
        The classes in the order of the columns (for one column: negative, positive). Needed if p is one column and
        the labels are two names; otherwise determined as in scikit-learn.
    logits : bool
        The input holds logits: the sigmoid (one column) or softmax (several columns) is applied first.
    scoring, folds, rng
        Of ``map="auto"``: ``score``, ``folds`` and ``rng`` of :func:`calibrary.recalibration_gain`. :meth:`score`
        and :meth:`judge` use ``scoring`` too.
    by : str, optional
        Name of the segments: a column of X if X is a table; otherwise pass their values to each method as ``by=``.
        Each segment then gets its own map, shrunk towards the common map (more strongly for small segments), if that
        gains more than two standard errors on rows to which it was not fitted. Otherwise all segments share one map.

    Attributes
    ----------
    map_ : id of the fitted map, "identity" if predictions are not changed
    classes_ : the classes, in column order
    gain_ : the :class:`calibrary.RecalibrationGain` behind "auto", else None
    segment_gain_ : the :class:`calibrary.SegmentGain` behind ``by``, with its sentence; None without ``by``
    segments_ : the change of each segment from the common map; without levels if all segments share one map
    n_features_in_ : number of columns of the input

    Notes
    -----
    Fit the map on rows on which the model was not trained, and test it on further rows: ``judge`` and ``score`` refuse
    the rows of the fit, even after the map was saved and loaded. A Recalibrator does not train or wrap models
    (``sklearn.calibration.CalibratedClassifierCV`` does), and does not give prediction sets (conformal prediction).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> recalibrate = cal.Recalibrator().fit(p[::2], y[::2])
    >>> recalibrate.map_, recalibrate.transform([0.001, 0.3, 0.999]).round(3).tolist()
    ('temperature', [0.274, 0.47, 0.726])
    >>> recalibrate.judge(p[1::2], y[1::2]).worth
    True
    """

    _estimator_type = "classifier"

    def __init__(
        self,
        map: Any = "auto",
        *,
        ends: Any = "half",
        classes: Sequence[Hashable] | None = None,
        logits: bool = False,
        scoring: str = "log",
        folds: Any = 10,
        rng: Any = 0,
        by: str | None = None,
    ) -> None:
        self.map, self.ends, self.classes, self.logits = map, ends, classes, logits
        self.scoring, self.folds, self.rng, self.by = scoring, folds, rng, by

    # -- learning -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, units: Any = None, by: Any = None) -> Self:
        """Fit the map to probabilities and outcomes.

        Parameters
        ----------
        X : array-like of shape (N,), (N, 1) or (N, K)
            P(class 1), or one column per class: the output of ``predict_proba``. Or matched detections (then without
            y).
        y : array-like of shape (N,)
            The class that occurred.
        sample_weight : array-like of shape (N,), optional
            A row of weight 2 counts as two equal rows.
        units : array-like of shape (N,), optional
            The patient, image or prompt of each row, for ``map="auto"`` and segments.
        by : array-like of shape (N,), optional
            The segment of each row, if X is not a table with that column.
        """
        refuse_misaligned(p=X, y=y, sample_weight=sample_weight, units=units, by=by)
        flag("logits", self.logits)
        check_asked({"rng": self.rng})
        check_type("scoring", self.scoring, "str")
        check_type("classes", self.classes, "Sequence | None")
        row_score(self.scoring)
        if np.ndim(self.folds) == 0:
            check_type("folds", self.folds, "int")
        X, names = self._apart(X, by)
        whole = self._predictions(X, y, sample_weight)
        p = in_units(problem(whole), X, units)
        self.gain_: RecalibrationGain | None = None
        if isinstance(self.map, str) and self.map == "auto":
            self.gain_ = recalibration_gain(
                p, score=self.scoring, folds=self.folds, ends=self.ends, rng=self.rng,
                weight_type=_weight_type(p),
            )  # fmt: skip
            chosen = self.gain_.advice
        else:
            chosen = self.map
        if chosen is None or (isinstance(chosen, str) and chosen == "identity"):
            end_of(p, self.ends)  # an invalid option is refused in any case
            self.fitted_map_ = IDENTITY
        else:
            self.fitted_map_ = fit_candidate(candidate(chosen, p.k), p, self.ends)
        self._fit_segments(p, None if names is None else p.align(names, "by"))
        self.rows_ = FittedRows.of(p.probability)
        return self

    def _fit_segments(self, p: Predictions, names: NDArray[np.str_] | None) -> None:
        """Fit a map for each segment, if that improves the score on rows to which it was not fitted."""
        self.segment_gain_, self.segments_ = None, None
        if self.by is None or names is None:
            return
        word = self.fitted_map_.word
        common = None if word == "identity" else candidate(word if isinstance(self.map, str) else self.map, p.k)
        self.segment_gain_ = segment_gain(
            p, self.by, names, common, fold_numbers(p, self.folds, self.rng), score=self.scoring, ends=self.ends,
            weight_type=_weight_type(p),
        )  # fmt: skip
        helps = self.segment_gain_.worth
        q = self.fitted_map_(p.probability)
        self.segments_ = fit_segments(self.by, q, p.y, p.w, names) if helps else no_maps(self.by)

    def _apart(self, X: Any, by: Any) -> tuple[Any, NDArray[np.str_] | None]:
        """The probabilities, and the segment of each row."""
        if self.by is None:
            if by is not None:
                raise RefusedError("by= names segments, and this map has none: create it with Recalibrator(by='site')")
            return X, None
        refuse_misaligned(p=X, by=by)
        columns = column_names(X)
        if by is None and columns is not None and self.by in columns:
            by = X[self.by]
            X = X[[name for name in columns if name != self.by]]
        if by is None:
            if hasattr(self, "fitted_map_") and not self._separate:
                return X, None  # all segments share one map, so that they need not be given
            raise RefusedError(f"the segments {self.by!r} are missing: pass by=, or a table with that column")
        return X, segment_names(as_array(by, "by"))

    @property
    def _separate(self) -> bool:
        """Whether each segment has its own map."""
        return self.segments_ is not None and bool(self.segments_.levels)

    def _predictions(self, X: Any, y: Any, sample_weight: Any) -> Predictions:
        """The checked rows of a fit; also stores the classes and the columns."""
        if is_data(X):
            made = predictions(X, sample_weight=sample_weight)
            self.classes_ = np.array(made.classes)
            self.n_features_in_ = 1 if made.binary else made.k
            return made
        if y is None:
            raise RefusedError("Recalibrator requires y to be passed, but the target y is None: call fit(p, y)")
        refuse_swapped(X, y)
        p = probabilities(X, logits=self.logits)
        columns = column_names(X)
        labels = as_array(y, "y")
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1 or len(labels) != len(p):
            raise RefusedError(f"y has shape {labels.shape} and p has {len(p)} rows: pass one label for each row")
        classes = tuple(self.classes) if self.classes is not None else class_names(labels, p, columns)
        checked = _labeled(labels, p, classes, sample_weight)
        self.classes_ = np.array(classes)
        self.n_features_in_ = 1 if p.ndim == 1 else p.shape[1]
        if columns is not None and all(isinstance(name, str) for name in columns):
            self.feature_names_in_ = np.array(columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return checked

    # -- using ----------------------------------------------------------------------------------

    @property
    def map_(self) -> str:
        """The id of the fitted map."""
        self._require_fit()
        return self.fitted_map_.word

    def transform(self, X: Any, *, by: Any = None) -> Any:
        """The recalibrated probabilities, in the shape of the input; matched detections with their new scores."""
        X, names = self._apart(X, by)
        if is_data(X):
            return X.with_probability(self._mapped(self._checked(X), names))
        given = np.shape(X) if isinstance(X, list | tuple) else as_array(X, "p").shape
        q = self._mapped(self._checked(X), names)
        if len(given) == 2 and q.ndim == 1:
            return q[:, None] if given[1] == 1 else np.column_stack([1.0 - q, q])
        return q

    def inverse(self, q: Any, segment: str | None = None) -> Array:
        """The stated probability that corresponds to the recalibrated probability q.

        For two classes and an increasing map, the smallest score with a recalibrated probability of at least q
        (decreasing map: the largest); NaN if there is none. If each segment has its own map, name one segment.
        """
        return inverse_of(self._one_column("no inverse", segment), q, self.map_)

    def which_score(self, q: float, segment: str | None = None) -> str:
        """The stated probability that corresponds to the recalibrated probability q, as a sentence."""
        return score_words(self._one_column("no inverse", segment), q, self.map_)

    def bounds(self, X: Any) -> VennAbersBounds:
        """``p0`` and ``p1`` of the Venn-Abers maps: isotonic fits in which each new row is a non-event, and an event.

        Several classes have one column for each class, against the rest; with "cross_venn_abers" there is one further
        axis, of the folds.
        """
        if self._separate:
            raise RefusedError("a map with segments has no bounds: fit one without by=")
        fitted, c = self.fitted_map_, self._checked(X)
        maps = fitted.map.maps_ if isinstance(fitted.map, ClassWise) else [fitted.map]
        if not hasattr(maps[0], "bounds"):
            raise RefusedError(f"the map {self.map_} has no bounds: use 'venn_abers' or 'cross_venn_abers'")
        c = inside(c, fitted.end)
        if len(maps) == 1:
            return maps[0].bounds(c)
        each = zip(*(map.bounds(column) for map, column in zip(maps, c.T, strict=True)), strict=True)
        return VennAbersBounds(*(np.stack(x, axis=1) for x in each))

    def _one_column(self, lacks: str, segment: str | None = None) -> Callable[[Array], Array]:
        """The map of two classes, for one segment if each segment has its own map."""
        self._require_fit()
        if len(self.classes_) > 2:
            raise RefusedError(
                f"a map of {len(self.classes_)} classes has {lacks}, because it combines the probabilities of all "
                "classes"
            )
        if self.segments_ is None or not self._separate:
            return self.fitted_map_
        if segment is None:
            raise RefusedError(f"each segment of {self.by} has its own map: name one segment with segment=")
        return self.segments_.of(segment, self.fitted_map_)

    def predict_proba(self, X: Any, *, by: Any = None) -> Array:
        """The recalibrated probabilities, one column for each of ``classes_``."""
        X, names = self._apart(X, by)
        q = self._mapped(self._checked(X), names)
        return np.column_stack([1.0 - q, q]) if q.ndim == 1 else q

    def predict(self, X: Any, *, by: Any = None) -> NDArray[Any]:
        """The class with the largest recalibrated probability."""
        best = self.predict_proba(X, by=by).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, by: Any = None) -> Any:
        """Fit the map and recalibrate the same rows, for inspection only, not for testing the map."""
        return self.fit(X, y, sample_weight, by=by).transform(X, by=by)

    def _checked(self, X: Any) -> Array:
        """Checked probabilities of the classes to which the map was fitted: one column for two classes."""
        self._require_fit()
        if not is_data(X):
            self._refuse_other_columns(column_names(X))
        p = X.probability if is_data(X) else probabilities(X, logits=self.logits)
        self._require_columns(1 if p.ndim == 1 else p.shape[1])
        return np.ascontiguousarray(p[:, 1]) if p.ndim == 2 and p.shape[1] == 2 else p

    def _require_columns(self, k: int) -> None:
        self._require_fit()
        n = len(self.classes_)
        if k != n and not (n == 2 and k == 1):
            raise RefusedError(
                f"p has {k} column{'s' * (k > 1)}, and this map was fitted to the {n} classes "
                f"{', '.join(map(str, self.classes_[:5]))}{' ...' if n > 5 else ''}: X has {k} features, but "
                f"Recalibrator is expecting {self.n_features_in_} features as input"
            )

    def _refuse_other_columns(self, columns: list[Any] | None) -> None:
        known = getattr(self, "feature_names_in_", None)
        if columns is None:
            return
        expected = list(self.classes_) if known is None else list(known)
        same = sorted(map(str, columns)) == sorted(map(str, expected))
        if [str(c) for c in columns] != [str(c) for c in expected] and (same or known is not None):
            how = "in another order" if same else "under other names"
            raise RefusedError(
                f"the columns of p are {', '.join(map(str, columns[:5]))} and the map was fitted to "
                f"{', '.join(map(str, expected[:5]))}: the same columns {how}; the feature names should match those "
                "that were passed during fit"
            )

    def _mapped(self, p: Array, names: NDArray[np.str_] | None = None) -> Array:
        self._require_fit()
        q = self.fitted_map_(p)
        if self.segments_ is None or names is None:
            return q
        if len(names) != len(q):
            raise RefusedError(f"by has {len(names)} values and there are {len(q)} rows: pass the segment of each row")
        return self.segments_(q, names)

    # -- judging --------------------------------------------------------------------------------

    def judge(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, units: Any = None, n_bins: int = 15, by: Any = None
    ) -> MapGain:
        """Test the map on rows to which it was not fitted: score and ECE before and after, with standard error."""
        p, q = self._recalibrated(X, y, sample_weight, units, by)
        word, entry = self.map_, row_score(self.scoring)
        end = self.fitted_map_.end or end_of(p, self.ends)
        before = Before.of(p, entry, end, n_bins, _weight_type(p))
        return before.against(word, NAMES.get(word, word), q, row_scores(entry, p, q))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, by: Any = None) -> float:
        """Minus the mean score (log loss by default) of the recalibrated rows, so that higher is better."""
        p, q = self._recalibrated(X, y, sample_weight, None, by)
        return -float(p.mean(row_scores(row_score(self.scoring), p, q)))

    def _recalibrated(self, X: Any, y: Any, sample_weight: Any, units: Any, by: Any) -> tuple[Predictions, Array]:
        """New rows in their units, and their recalibrated probabilities."""
        refuse_misaligned(p=X, y=y, sample_weight=sample_weight, units=units, by=by)
        X, names = self._apart(X, by)
        p = in_units(self._new_rows(X, y, sample_weight), X, units)
        return p, self._mapped(p.probability, None if names is None else p.align(names, "by"))

    def _new_rows(self, X: Any, y: Any, sample_weight: Any) -> Predictions:
        """Checked rows with the classes of the fit; the rows of the fit itself are refused."""
        self._require_fit()
        if is_data(X):
            p = problem(predictions(X, sample_weight=sample_weight))
            self._require_columns(1 if p.binary else p.k)
        else:
            p = _labeled(as_array(y, "y"), self._checked(X), tuple(self.classes_.tolist()), sample_weight)
        share = self.rows_.compare().add(p.probability).share
        if share:
            part = "the rows" if share == 1.0 else f"rows of which about {share:.0%} are those"
            raise RefusedError(
                f"these are {part} the map was fitted to, on which every map looks good: test it on other rows, or "
                "cross-fit it with recalibration_gain"
            )
        return p

    # -- keeping --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The fitted map as plain text and numbers, as stored in a file."""
        return file.as_dict(self._kept())

    @classmethod
    def from_dict(cls, given: Any) -> Recalibrator:
        """The recalibrator from the result of ``to_dict``."""
        return cls._of(file.from_dict(given))

    def save(self, path: str | Path) -> None:
        """Write the map to a JSON file; ``Recalibrator.load`` gives identical numbers."""
        file.save(self._kept(), path)

    @classmethod
    def load(cls, path: str | Path) -> Recalibrator:
        """Read a map from a JSON file; another version or invalid numbers are refused."""
        return cls._of(file.load(path))

    def _kept(self) -> file.Kept:
        self._require_fit()
        names = getattr(self, "feature_names_in_", None)
        columns = None if names is None else tuple(map(str, names))
        classes = tuple(self.classes_.tolist())
        return file.Kept(
            self.fitted_map_, classes, self.n_features_in_, bool(self.logits), self.rows_, columns, self.segments_
        )

    @classmethod
    def _of(cls, kept: file.Kept) -> Recalibrator:
        by = None if kept.segments is None else kept.segments.by
        made = cls(kept.fitted.word, logits=kept.logits, by=by)
        made.classes_ = np.array(kept.classes)
        made.n_features_in_ = kept.n_columns
        made.fitted_map_, made.rows_, made.gain_ = kept.fitted, kept.rows, None
        made.segments_, made.segment_gain_ = kept.segments, None
        if kept.columns is not None:
            made.feature_names_in_ = np.array(kept.columns, dtype=object)
        return made

    @classmethod
    def for_prevalence(cls, prevalence: float, source: float, *, classes: Sequence[Hashable] = (0, 1)) -> Recalibrator:
        """The map for a population with another prevalence than the model's data; no rows are needed.

        Bayes' rule for a population that differs only in the prevalence of the event (prior shift).

        Examples
        --------
        >>> import calibrary as cal
        >>> cal.Recalibrator.for_prevalence(0.02, source=0.2).transform([0.2, 0.5]).round(3).tolist()
        [0.02, 0.075]
        """
        map = PrevalenceOffset(prevalence, source)
        map.offset_, map.fitted_ = prior_shift(prevalence, source), True
        fitted = FittedMap("prevalence", map, EPS, EPS)
        return cls._of(file.Kept(fitted, tuple(classes), 1, False, FittedRows(0, 0, ())))

    # -- scikit-learn's interface ----------------------------------------------------------------

    fitted_map_: FittedMap
    rows_: FittedRows
    by: str | None = None  # maps of 0.2 have no segments
    segments_: SegmentMaps | None = None
    segment_gain_: SegmentGain | None = None
    classes_: NDArray[Any]
    feature_names_in_: NDArray[Any]

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_map_")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options of the constructor."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change options by name."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise RefusedError(f"Recalibrator has no option {name!r}: its options are {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        options = inspect.signature(type(self)).parameters.values()
        changed = [(o.name, getattr(self, o.name)) for o in options if not _same(getattr(self, o.name), o.default)]
        return f"Recalibrator({', '.join(f'{name}={value!r}' for name, value in changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(),
            classifier_tags=ClassifierTags(poor_score=True),
            input_tags=InputTags(one_d_array=True, positive_only=not self.logits),
        )


def _labeled(y: NDArray[Any], p: Array, classes: tuple[Hashable, ...], sample_weight: Any) -> Predictions:
    """Checked predictions of these classes."""
    try:
        return predictions(y, p, labels=classes, sample_weight=sample_weight)
    except ValueError as error:
        words = {"y_true": "y", "y_prob": "p", "labels=": "classes="}
        text = str(error)
        for theirs, ours in words.items():
            text = text.replace(theirs, ours)
        raise RefusedError(text) from None


def _weight_type(p: Predictions) -> str:
    """Whole-number weights are frequencies; others can only be importances."""
    return "frequency" if p.w is None or (p.w == np.rint(p.w)).all() else "importance"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not hasattr(value, "shape") and value == default)


def _not_fitted() -> Exception:
    text = "this Recalibrator is not fitted yet: call fit(p, y), or Recalibrator.load(path)"
    if sys.modules.get("sklearn"):
        from sklearn.exceptions import NotFittedError

        return NotFittedError(text)
    return ValueError(text)
