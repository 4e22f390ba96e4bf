"""The review's Table 2 as data, gathered from the metrics themselves.

A metric is a function of one view with ``@metric(...)`` above it. The decorator makes the public function
(checks the input, looks through the lens, averages) and enters it in the ``catalogue`` with its facts.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar

import numpy as np

from calibrary._errors import UnknownMetricError, suggest
from calibrary.data.lens import BINARY_LENSES, Lens, Views, as_lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.metrics.table2 import TABLE_2

__all__ = [
    "Correction",
    "Entry",
    "TestResult",
    "catalogue",
    "compute",
    "test",
]

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Common(TypedDict, total=False):
    """The keywords every metric takes; the decorator handles them before the formula is reached."""

    sample_weight: Any
    lens: str | Lens
    average: Any
    r: int | None
    labels: Any
    pos_label: Any


_COMMON: dict[str, Any] = {
    "sample_weight": None, "lens": "auto", "average": "uniform", "r": None, "labels": None, "pos_label": None,
}  # fmt: skip

_DOC_DATA = """\
y_true : array-like of shape (N,)
    Labels, or an object made by :func:`calibrary.predictions`.
y_prob : array-like of shape (N,) or (N, K)
    P(class 1), or one column per class."""

_DOC_COMMON = """\
sample_weight : array-like of shape (N,), optional
    Weight 2 is the row written twice.
lens : str or Lens, default "auto"
    How classes become (confidence, outcome) pairs: {lenses}. "auto" is "{binary_lens}" for two classes
    (one probability or two columns) and "{default_lens}" for more.
average : "uniform", "prevalence", "max", array or None
    How the views of a class-wise or pairwise lens are combined; None gives one value each.
r : int, optional
    The rank of the lenses "rth", "within-top-r" and "ranked".
labels, pos_label : optional
    Names of the classes in column order; name of class 1 for two classes."""


@dataclass(frozen=True)
class Front:
    """What the public functions of one kind of metric take: the two data arguments and the keywords all share."""

    data: tuple[str, str]
    common: Mapping[str, Any]
    doc_data: str
    doc_common: str


CLASSIFIER = Front(("y_true", "y_prob"), _COMMON, _DOC_DATA, _DOC_COMMON)

#: What every hypothesis test takes besides, because redrawing labels works for any metric.
_REDRAWING: dict[str, Any] = {
    "method": "asymptotic", "n_resamples": 999, "alternative": None, "rng": None, "calibration_map": None,
    "workers": None,
}  # fmt: skip

_DOC_REDRAWING = """\
method : "asymptotic", "monte-carlo" or "consistency"
    The test's own law; or labels redrawn from the predictions ``n_resamples`` times, with ``rng``,
    ``alternative``, ``calibration_map`` and ``workers`` as in :func:`calibrary.null_distribution`."""

CLASSIFIER_TEST = Front(CLASSIFIER.data, {**_COMMON, **_REDRAWING}, _DOC_DATA, f"{_DOC_REDRAWING}\n{_DOC_COMMON}")


class Options(dict[str, Any]):
    """Options that metrics hand on to a part they share: name to default, and the text that documents them."""

    def __init__(self, doc: str, **defaults: Any) -> None:
        super().__init__(defaults)
        self.doc = doc


@dataclass(frozen=True)
class Correction:
    """A fact the review states and we state differently: which, what it says, what is right and why."""

    fact: str
    review: str
    ours: str


@dataclass(frozen=True)
class Entry:
    """Everything known about one metric. ``catalogue["ece"]`` is one of these.

    Attributes
    ----------
    id, name, aliases : the short name for ``compute``, the full one, and the others it is known by
    row : number in the review's Table 2, or None
    family : "point", "bin", "kernel", "curve", "cumulative" or "detection"
    range, perfect : lowest and highest value; the value of a calibrated model as N grows (None: depends on data)
    range_note : how the range depends on options or the number of classes
    better : "lower", "higher" or "perfect" (signed: distance from the perfect value counts)
    sign : what higher and lower mean
    proper : "strictly", "proper", "no", or "dataset" (not a mean of row scores)
    consistent : small exactly when the distance from calibration is small
    tail : which side of the null distribution counts against calibration
    null : may labels be redrawn from the predictions to test it? (else ``null_note`` says why not)
    lenses, default_lens, binary_lens : lenses it works through; what "auto" means for K > 2 and K = 2
    passes_on : further options it hands on to one of its parts (a map, a grouping): names, shown in its
        signature as None, or an :class:`Options` with their defaults and documentation
    needs : inputs beyond labels and probabilities ("features", "groups", "model", "boxes", "order")
    weights : "repetition" (weight 2 is the row twice), "rows" (weights count, but sizes count rows) or "none"
    order_free : does row order never change the value
    symmetric : is the value unchanged when the two classes are swapped, y -> 1-y and c -> 1-c
    fields : for a metric of several numbers, which of them a table shows, each with its perfect value
    slow_above : rows above which a table of everything leaves it out for K > 2 (for any K with ``slow_binary``),
        because its cost is quadratic
    costly : one value takes a cross-validation, a bandwidth search or all pairs, so that a table of many metrics gives
        it no interval and no p-value unless it is named
    cost, equation, references, use, avoid, corrections : for people
    resampled : for speed; ``resampled(view, **options)`` prepares sorting or grouping once and returns
        ``value(w, y)``, the metric with other weights (zeros allowed) or labels of the view's rows; None is unchanged
    frozen : ``frozen(view, **options)`` gives the options that must be chosen once on the original data and kept in
        every resample, because rows drawn twice mislead the choice (a leave-one-out bandwidth); with ``redrawn=True``
        only those that depend on the confidences alone, which redrawn labels do not change
    """

    id: str
    name: str
    family: str
    row: int | None = None
    aliases: tuple[str, ...] = ()
    range: tuple[float, float] = (0.0, 1.0)
    range_note: str = ""
    perfect: float | None = 0.0
    better: str = "lower"
    sign: str = "0 is perfect; larger is worse"
    proper: str = "no"
    consistent: bool = False
    tail: str = "greater"
    null: bool = True
    null_note: str = ""
    lenses: tuple[str, ...] = BINARY_LENSES
    default_lens: str = "top-label"
    binary_lens: str = "binary"
    passes_on: tuple[str, ...] | Options = field(default=(), hash=False)
    needs: tuple[str, ...] = ()
    weights: str = "repetition"
    weights_note: str = ""
    order_free: bool = True
    order_note: str = ""
    symmetric: bool = False
    fields: tuple[tuple[str, float], ...] = ()
    slow_above: int | None = None
    slow_binary: bool = False
    costly: bool = False
    cost: str = "O(N)"
    equation: str = ""
    references: tuple[str, ...] = ()
    use: str = ""
    avoid: str = ""
    corrections: tuple[Correction, ...] = ()
    resampled: Callable[..., Any] | None = field(default=None, repr=False, compare=False)
    frozen: Callable[..., dict[str, Any]] | None = field(default=None, repr=False, compare=False)
    core: Callable[..., Any] | None = field(default=None, repr=False, compare=False)
    combine: Callable[..., Any] | None = field(default=None, repr=False, compare=False)
    function: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    @property
    def planned(self) -> bool:
        """In the review's table, but not built yet."""
        return self.core is None

    @property
    def meaning(self) -> str:
        """One line that says what the number tells."""
        return (inspect.getdoc(self.core) or self.name).splitlines()[0] if self.core else self.name

    @property
    def has_test(self) -> bool:
        """Does it come with a hypothesis test of its own (any metric has a Monte Carlo one)?"""
        return self.id in _TESTS

    @property
    def options(self) -> tuple[str, ...]:
        """The metric's own keyword arguments."""
        return () if self.core is None else tuple(dict.fromkeys((*_own_options(self.core), *self.passes_on)))

    def lens_for(self, p: Predictions, lens: str | Lens = "auto", r: int | None = None) -> Lens:
        """The lens to use on these predictions; "auto" depends on the number of classes."""
        if isinstance(lens, str) and lens in ("auto", ""):
            lens = self.binary_lens if p.k == 2 else self.default_lens
        chosen = as_lens(lens, r)
        if chosen.name == "partition" and "partition" not in self.lenses and chosen.groups:
            # classes are merged first, then looked at as this metric always does
            return replace(chosen, then=self.binary_lens if len(chosen.groups) == 2 else self.default_lens)
        if chosen.name not in self.lenses:
            raise ValueError(f"{self.id} is not defined through lens={chosen.name!r}: use {_listed(self.lenses)}")
        return chosen

    def measure(
        self,
        p: Predictions,
        /,
        *,
        lens: str | Lens = "auto",
        average: Any = "uniform",
        r: int | None = None,
        **options: Any,
    ) -> Any:
        """The value on checked predictions, without checking them again."""
        if self.core is None:
            raise _not_built(self)
        if p.w is not None and self.weights == "none":
            raise ValueError(f"{self.id} does not take sample_weight: {self.weights_note or 'leave it out'}")
        if lens == "auto" and self.binary_lens == "binary" and p.probability.ndim == 1:
            return self.core(p, **options)  # what the lens would show is p itself
        views = p.through(self.lens_for(p, lens, r))
        if not views.several:
            return self.core(views.views[0], **options)
        values = [self.core(view, **options) for view in views.views]
        if self.combine is not None and average is not None:
            return self.combine(values, views, average, options)
        return views.average(np.array(values), average)

    def prepared(self, y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> tuple[Any, Any]:
        """What is resampled: the data as they came. A family with input of its own reads it here."""
        return y_true, y_prob

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the metric: ``catalogue["ece"](y, p)``."""
        if self.function is None:
            raise _not_built(self)
        return self.function(*args, **kwargs)


def _not_built(entry: Entry) -> NotImplementedError:
    return NotImplementedError(f"{entry.id} (row {entry.row} of Table 2, {entry.name}) is planned and not built yet")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(repr(n) for n in names)


class Metric(Protocol[P, R]):
    """A public metric: arrays or predictions in, number out."""

    entry: Entry
    __name__: str

    def __call__(self, y_true: Any, y_prob: Any = None, *args: P.args, **kwargs: P.kwargs) -> R: ...


def metric(
    id: str, *, family: str, combine: Callable[..., Any] | None = None, **facts: Any
) -> Callable[[Callable[Concatenate[Predictions, P], R]], Metric[P, R]]:
    """Make a metric of a function of one view, and enter it in the catalogue.

    ``facts`` are the fields of :class:`Entry`. ``combine(values, views, average, options)`` replaces the
    weighted mean over the views of a lens that has several.
    """

    def decorate(core: Callable[Concatenate[Predictions, P], R]) -> Metric[P, R]:
        entry = Entry(id=id, name=spoken_name(core, facts), family=family, core=core, combine=combine, **facts)
        plain: Callable[..., Any] | None = core if entry.binary_lens == "binary" else None

        def call(y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> Any:
            if not keywords:  # the plain call is what loops feel
                p = predictions(y_true, y_prob)
                return plain(p) if plain and p.probability.ndim == 1 and p.w is None else entry.measure(p)
            p, seen = _checked(y_true, y_prob, keywords, entry)
            return entry.measure(p, **seen, **keywords)

        function = public(core, entry, call)
        object.__setattr__(entry, "function", function)
        function.entry = entry
        register(entry)
        return function  # type: ignore[no-any-return]

    return decorate


@dataclass(frozen=True)
class TestResult:
    """Outcome of a hypothesis test. Unpacks as ``statistic, pvalue = result``."""

    __test__ = False  # not a test class for pytest

    statistic: Any
    pvalue: Any

    def __iter__(self) -> Iterator[Any]:
        yield self.statistic
        yield self.pvalue


@dataclass(frozen=True)
class BonferroniResult(TestResult):
    """Several tests of one hypothesis: mean statistic, K times the smallest p-value, and each result."""

    results: tuple[Any, ...] = ()
    keys: tuple[Any, ...] = ()


@dataclass(frozen=True)
class _Test:
    core: Callable[..., Any]
    combine: Callable[..., Any]
    function: Callable[..., Any]
    joint: Callable[..., Any] | None = None


def bonferroni(results: list[Any], views: Views, average: Any, options: dict[str, Any]) -> BonferroniResult:
    """Combine one test per view: average statistic; the smallest p-value times the number of tests."""
    statistics = np.array([float(r.statistic) for r in results])
    pvalues = np.array([float(r.pvalue) for r in results])
    defined = ~np.isnan(pvalues)
    pvalue = min(1.0, float(defined.sum() * pvalues[defined].min())) if defined.any() else float("nan")
    statistic = views.average(statistics, average)
    return BonferroniResult(statistic, pvalue, tuple(results), views.keys)


def calibration_test(
    id: str, *, combine: Callable[..., Any] = bonferroni, joint: Callable[..., Any] | None = None
) -> Callable[[Callable[Concatenate[Predictions, P], R]], Metric[P, R]]:
    """Make the hypothesis test of metric ``id`` from a function of one view that returns a TestResult.

    Through a lens with several views there is one test each, put together by ``combine(results, views, average,
    options)``; or ``joint(core, views, average, options)`` tests them all at once. ``method="monte-carlo"`` and
    ``"consistency"`` are handled for every test alike, by redrawing labels.
    """

    def decorate(core: Callable[Concatenate[Predictions, P], R]) -> Metric[P, R]:
        def call(y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> Any:
            return run_test(catalogue[id], y_true, y_prob, keywords)

        function = public(core, catalogue[id], call, CLASSIFIER_TEST)
        function.entry = catalogue[id]
        _TESTS[id] = _Test(core, combine, function, joint)
        return function  # type: ignore[no-any-return]

    return decorate


#: Ways of testing that work for every metric, because they only redraw labels.
RESAMPLING = ("monte-carlo", "consistency")


def run_test(entry: Entry, y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> Any:
    """The metric's own test, or the Monte Carlo one."""
    method = str(keywords.get("method", "")).replace("_", "-")
    own = _TESTS.get(entry.id)
    if own is None or method in RESAMPLING:
        from calibrary.inference.null import monte_carlo_test

        if own is None and method not in ("", *RESAMPLING):
            raise ValueError(
                f"method={keywords['method']!r}: {entry.id} has no test of its own; use 'monte-carlo' or 'consistency'"
            )
        y_true, y_prob = entry.prepared(y_true, y_prob, keywords)
        result: Any = monte_carlo_test(entry, y_true, y_prob, keywords)
        return result
    keywords = _without_redrawing(keywords, own.core)
    p, seen = _checked(y_true, y_prob, keywords, entry)
    average = seen.pop("average")
    views = p.through(entry.lens_for(p, **seen))
    if not views.several:
        return own.core(views.views[0], **keywords)
    if own.joint is not None:
        return own.joint(own.core, views, average, keywords)
    return own.combine([own.core(view, **keywords) for view in views.views], views, average, keywords)


def _without_redrawing(keywords: dict[str, Any], core: Callable[..., Any]) -> dict[str, Any]:
    """The keywords of a test's own law, refusing those that only matter when labels are redrawn."""
    own = _own_options(core)
    if keywords.get("method") == "asymptotic":
        keywords = {name: value for name, value in keywords.items() if name != "method"}
    for name in keywords:
        if name in _REDRAWING and name not in own:
            raise ValueError(f"{name}={keywords[name]!r} needs method='monte-carlo' or 'consistency'")
    return keywords


def _checked(y_true: Any, y_prob: Any, keywords: dict[str, Any], entry: Entry) -> tuple[Predictions, dict[str, Any]]:
    """Take the common keywords out of ``keywords`` and check the data they belong to."""
    p = predictions(
        y_true,
        y_prob,
        sample_weight=keywords.pop("sample_weight", None),
        labels=keywords.pop("labels", None),
        pos_label=keywords.pop("pos_label", None),
    )
    seen = {name: keywords.pop(name, _COMMON[name]) for name in ("lens", "average", "r")}
    return p, seen


def _own_options(core: Callable[..., Any]) -> tuple[str, ...]:
    kinds = (inspect.Parameter.KEYWORD_ONLY,)
    return tuple(n for n, v in inspect.signature(core).parameters.items() if v.kind in kinds)


def public(core: Callable[..., Any], entry: Entry, call: Callable[..., Any], front: Front = CLASSIFIER) -> Any:
    """The function a user sees: data in, shared keywords added to the signature and the docstring."""
    own = [v for v in inspect.signature(core).parameters.values() if v.kind is inspect.Parameter.KEYWORD_ONLY]
    passed = entry.passes_on if isinstance(entry.passes_on, Options) else dict.fromkeys(entry.passes_on)
    taken = {v.name for v in own}
    own += [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in passed.items() if n not in taken
    ]
    first, second = front.data
    known = {v.name for v in own} | set(front.common)

    @functools.wraps(core)
    def function(*data: Any, **keywords: Any) -> Any:
        if len(data) == 2 and not keywords:
            return call(*data, keywords)
        for name in keywords:
            if name not in known and name not in front.data:
                raise TypeError(f"{core.__name__} has no option {name!r}: {suggest(name, known)}")
        if len(data) == 1 and first not in keywords and second not in keywords:
            data = (data[0], None)
        elif len(data) != 2 or first in keywords or second in keywords:
            given = signature.bind(*data, **keywords).arguments
            data = given[first], given.get(second)
            keywords = {name: value for name, value in keywords.items() if name not in front.data}
        return call(*data, keywords)

    keyword = inspect.Parameter.KEYWORD_ONLY
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    arguments = [inspect.Parameter(first, plain), inspect.Parameter(second, plain, default=None)]
    taken = {v.name for v in own}
    common = [inspect.Parameter(n, keyword, default=d) for n, d in front.common.items() if n not in taken]
    returns = inspect.signature(core).return_annotation
    signature = inspect.Signature([*arguments, *own, *common], return_annotation=returns)
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = _documented(inspect.getdoc(core) or "", entry, front)
    del function.__wrapped__
    return function


def _documented(doc: str, entry: Entry, front: Front) -> str:
    """The docstring with the shared parameters written out."""
    common = front.doc_common.format(
        lenses=_listed(entry.lenses), binary_lens=entry.binary_lens, default_lens=entry.default_lens
    )
    if isinstance(entry.passes_on, Options):
        common = f"{entry.passes_on.doc}\n{common}"
    parts = re.split(r"\n\n?(?=[A-Z][\w ]*\n-{3,}\n)", doc)
    for i, part in enumerate(parts):
        if part.startswith("Parameters\n"):
            own = part.split("\n", 2)[2].strip("\n")
            parts[i] = f"Parameters\n----------\n{front.doc_data}\n{own}\n{common}"
            break
    else:
        parts.insert(1, f"Parameters\n----------\n{front.doc_data}\n{common}")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def spoken_name(core: Callable[..., Any], facts: dict[str, Any]) -> str:
    """The name Table 2 uses, or for a metric beyond it the one given, or the function's."""
    if facts.get("row") is not None:
        return TABLE_2[facts["row"]][1]
    return str(facts.pop("name", core.__name__.replace("_", " ")))


# -- the catalogue ----------------------------------------------------------------------------------

_ENTRIES: dict[str, Entry] = {}
_TESTS: dict[str, _Test] = {}


def register(entry: Entry) -> None:
    """Enter a metric; its id must be new."""
    if entry.id in _ENTRIES:
        raise ValueError(f"the catalogue already has a metric {entry.id!r}")
    _ENTRIES[entry.id] = entry


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("²", "2"))


def _names(entry: Entry) -> tuple[str, ...]:
    """Every name by which the metric is found, that of its function included."""
    function = () if entry.function is None else (entry.function.__name__,)
    return (entry.id, entry.name, *entry.aliases, *function)


class Catalogue(Mapping[str, Entry]):
    """Every metric by its short name: a read-only mapping that prints as a table.

    Look-up takes the exact id first, then any name or alias, whatever its case, dashes and underscores.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.catalogue["Brier-Score"].id
    'bs'
    """

    def __getitem__(self, name: str) -> Entry:
        if name in _ENTRIES:
            return _ENTRIES[name]
        planned = _planned()
        if name in planned:
            return planned[name]
        wanted = _squeezed(str(name))
        found = [e for e in self.values() if wanted in map(_squeezed, _names(e))]
        if len(found) == 1:
            return found[0]
        if found:
            candidates = "; ".join(f"{e.id!r}: {e.meaning}" for e in found)
            raise UnknownMetricError(f"{name!r} may mean several metrics, use an id: {candidates}")
        names = [n for e in self.values() for n in _names(e)]
        near = suggest(name, names)
        hint = near if near.startswith("did you mean") else "calibrary.catalogue lists them"
        raise UnknownMetricError(f"no metric is called {name!r}: {hint}")

    def __iter__(self) -> Iterator[str]:
        known = {**_planned(), **_ENTRIES}
        return iter(sorted(known, key=lambda i: (known[i].row is None, known[i].row or 0)))

    def __len__(self) -> int:
        return len(_ENTRIES) + len(_planned())

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except UnknownMetricError:
            return False
        return True

    def __repr__(self) -> str:
        rows = [
            (str(e.row or ""), e.id, e.family, e.name, f"[{e.range[0]:g}, {e.range[1]:g}]",
             "" if e.perfect is None else f"{e.perfect:g}", "planned" if e.planned else "")
            for e in self.values()
        ]  # fmt: skip
        head = ("row", "id", "family", "name", "range", "perfect", "")
        widths = [max(len(r[j]) for r in [head, *rows]) for j in range(len(head))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in [head, *rows]]
        return "\n".join(lines)


def _planned() -> dict[str, Entry]:
    built = {e.row for e in _ENTRIES.values()}
    return {
        id: Entry(id=id, name=name, family=family, row=row)
        for row, (id, name, family) in TABLE_2.items()
        if row not in built
    }


catalogue = Catalogue()


def compute(id: str, y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute one metric by its short name or any alias.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.compute("bs", [0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0467
    """
    return catalogue[id](y_true, y_prob, **options)


def test(id: str, y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Test the hypothesis that the predictions are calibrated, by any metric.

    Metrics with a test of their own use it; ``method="monte-carlo"`` redraws labels from the predictions
    instead, and works for every metric.

    Returns
    -------
    TestResult
        With ``statistic``, ``pvalue`` and what else the test knows.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3]
    >>> round(cal.test("spiegelhalter", y, p).pvalue, 4)
    0.4773
    """
    entry = catalogue[id]
    own = _TESTS.get(entry.id)
    if own is not None:
        return own.function(y_true, y_prob, **options)
    if entry.planned:
        raise _not_built(entry)
    return run_test(entry, y_true, y_prob, options)


test.__test__ = False  # type: ignore[attr-defined]  # a public function, not a test of pytest's
