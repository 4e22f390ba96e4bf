"""The decorators that turn a function of one view into a metric, and write its entry in the catalogue.

A metric is a function of one view with ``@metric(...)`` above it. The decorator creates the public function (which
checks the data, applies the lens and averages) and enters it in the ``catalogue`` with its facts. ``@calibration_test``
does the same for the hypothesis test of a metric.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, unknown_option
from calibrary.base.moved import RenamedFields
from calibrary.base.signatures import own_options
from calibrary.data import Data, as_data
from calibrary.data.asked import check_asked
from calibrary.data.columns import names_columns, out_of_table
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import predictions
from calibrary.data.views import Views
from calibrary.metrics.machinery.cards import CODE_FACTS, facts_of, read_card
from calibrary.metrics.machinery.entry import CODES, FUNCTIONS, Code, Front, Test, listed
from calibrary.metrics.machinery.entry import ENTRIES as ENTRIES
from calibrary.metrics.machinery.entry import TESTS as TESTS
from calibrary.metrics.machinery.entry import Common as Common
from calibrary.metrics.machinery.entry import Entry as Entry
from calibrary.metrics.machinery.facts import SHARED_TEXTS as SHARED_TEXTS
from calibrary.metrics.machinery.facts import Alias, CellFacts, Correction  # noqa: F401 - where 0.2 had them
from calibrary.metrics.machinery.facts import Options as Options
from calibrary.metrics.machinery.forms import of_stacks
from calibrary.metrics.machinery.measure import automatic, each_view, measure, usual_average, views_of, with_bins
from calibrary.metrics.machinery.option_checks import check_options
from calibrary.metrics.machinery.shown import in_notebook, one_line
from calibrary.question import LOOKING, Question, question_of

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


# -- declaring a metric -----------------------------------------------------------------------------


class Metric(Protocol[P, R]):
    """A public metric: it takes arrays or predictions and returns a number."""

    entry: Entry
    __name__: str

    def __call__(self, y_true: Any, y_prob: Any = None, *args: P.args, **kwargs: P.kwargs) -> R: ...


def metric(
    id: str,
    *,
    lenses: tuple[str, ...] = BINARY_LENSES,
    default_lens: str = "top-label",
    binary_lens: str = "binary",
    default_average: str = "uniform",
    iou_threshold: float = 0.5,
    stacks: str = "",
    combine_stacks: Callable[..., Any] | None = None,
    **code_and_facts: Any,
) -> Callable[[Callable[Concatenate[Any, P], R]], Metric[P, R]]:
    """Turn a function of one view into a metric, and enter it in the catalogue.

    The facts of a metric are in its card, ``cards/<id>.toml``; a metric outside calibrary, which has no card, gives
    them here (``family`` at least). Its lenses and the fields of :class:`Code` are declared here.

    ``stacks="weights"`` says that the formula also reads a stack of replicates with other labels or weights (see
    :mod:`calibrary.data.stacked`), and makes that its ``replicate`` form; ``stacks="labels"`` that replicates may
    differ in their labels only. ``combine(values, views, average, options)`` replaces the weighted mean over the views
    of a lens that has several; ``combine_stacks`` does so for replicates, if ``combine`` needs their views.
    """
    names = {f.name for f in fields(Code)}
    code = {name: value for name, value in code_and_facts.items() if name in names}
    given = {name: value for name, value in code_and_facts.items() if name not in names}
    seen = dict(zip(CODE_FACTS, (lenses, default_lens, binary_lens, default_average, iou_threshold), strict=True))

    def decorate(formula: Callable[Concatenate[Any, P], R]) -> Metric[P, R]:
        if id in CODES.made or (given and id in ENTRIES):
            raise RefusedError(f"the catalogue already has a metric {id!r}")
        entry = _entry_of(id, formula, given, seen)
        if stacks:
            code["replicate"] = of_stacks(formula, stacks, entry.weights, combine_stacks)
        CODES[id] = Code(formula, seen=seen, **code)
        function = FUNCTIONS[id] = public(formula, entry, _computing(entry), entry.front)
        function.entry = entry  # type: ignore[attr-defined]
        return function  # type: ignore[return-value]

    return decorate


def _entry_of(id: str, formula: Callable[..., Any], given: dict[str, Any], seen: dict[str, Any]) -> Entry:
    """The entry of a metric: from the index, from the facts given in the decorator, or from the card."""
    if id in ENTRIES:
        entry = ENTRIES[id]
        if any(getattr(entry, name) != value for name, value in seen.items()):  # the code is newer than the index
            entry = ENTRIES[id] = replace(entry, **seen)
        return entry
    facts = {"name": _spelled(formula), **given} if given else facts_of(id, read_card(id))
    entry = ENTRIES[id] = Entry(**{"id": id, **facts, **seen})
    return entry


def _computing(entry: Entry) -> Callable[[Any, Any, dict[str, Any]], Any]:
    """The public function's computation."""
    formula, read = entry.formula, entry.read
    plain = entry.of_plain_predictions
    looking = frozenset(LOOKING) - {*own_options(formula), *entry.extra_options}
    any_weight = entry.weights != "none"
    direct = entry.direct

    def call(first: Any, second: Any, keywords: dict[str, Any]) -> Any:
        if direct is not None and (value := direct(first, second, **keywords)) is not None:
            return value
        if plain and not keywords:  # must be fast in a loop: the lens would show p itself, so p is used directly
            p = as_data(first, second, keywords) if second is None else predictions(first, second)
            if p.plain and (any_weight or not p.weighted):
                return formula(p)
            return measure(entry, p)
        data = read(first, second, keywords)
        entry.check(keywords)
        if plain and data.plain and not automatic(keywords) and (any_weight or not data.weighted):
            looked = looking.intersection(keywords)
            if not looked:
                return formula(data, **keywords)
            if looked == {"lens"} and keywords["lens"] in ("auto", "binary"):  # the lens would show p itself
                return formula(data, **{name: value for name, value in keywords.items() if name != "lens"})
        question = question_of(keywords, entry.options)
        entry.say_change(data, question)
        return measure(entry, data, question)

    return call


def _spelled(formula: Callable[..., Any]) -> str:
    """The name of a metric that is not given: that of its function, in words."""
    return " ".join(_PROPER.get(word, word) for word in formula.__name__.split("_"))


#: Words in a function's name that are spelled differently in a metric's name.
_PROPER = {"brier": "Brier", "gebel": "Gebel", "huber": "Huber", "knn": "kNN", "rms": "RMS", "roc": "ROC"}


# -- declaring a test -------------------------------------------------------------------------------


class Result(RenamedFields):
    """Methods that every result object has."""

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; old names, except those of draws, are there too."""
        named = {f.name: plain_value(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]
        old = {old: new for old, new in self._renamed().items() if new != "draws"}  # which are long
        return {name: plain_value(attrgetter(new)(self)) for name, new in old.items()} | named

    __repr__ = one_line

    def __eq__(self, other: object) -> bool:
        """Results of one class are equal if all fields are, number by number; NaN equals NaN."""
        if type(self) is not type(other):
            return NotImplemented
        return all(alike(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(type(self))

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name in ("__repr__", "__eq__", "__hash__"):  # the dataclass decorator leaves what a class has by itself
            if name not in vars(cls):
                setattr(cls, name, getattr(cls, name))

    def _repr_html_(self) -> str:
        """For a notebook: a sentence, a picture and a small table, without draws."""
        return in_notebook(self)


def alike(a: Any, b: Any) -> bool:
    """Whether two values of results are equal; NaN equals NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        return bool(a.shape == b.shape and np.all((a == b) | ((a != a) & (b != b))))
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    return bool(a == b or (a != a and b != b))


def plain_value(value: Any) -> Any:
    """A value of a result as plain Python: arrays become lists, results dictionaries."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "_asdict"):
        return {name: plain_value(v) for name, v in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [plain_value(v) for v in value]
    if isinstance(value, Mapping):
        return {str(name): plain_value(v) for name, v in value.items()}
    return value


@dataclass(frozen=True)
class TestResult(Result):
    """Result of a hypothesis test. The result unpacks as ``statistic, pvalue = result``."""

    __test__ = False  # not a test class for pytest

    statistic: Any
    pvalue: Any

    def __iter__(self) -> Iterator[Any]:
        yield self.statistic
        yield self.pvalue

    @property
    def law(self) -> str:
        """The source of the p-value: "monte-carlo", "consistency", or the metric's own distribution, "asymptotic"."""
        method = getattr(self, "method", "")
        return method if method in (*METHODS, "flips") else "asymptotic"


@dataclass(frozen=True)
class BonferroniResult(TestResult):
    """Several tests of one hypothesis: mean statistic, K times the smallest p-value, and each result."""

    results: tuple[Any, ...] = ()
    keys: tuple[Any, ...] = ()


def bonferroni(results: list[Any], views: Views, average: Any, options: Mapping[str, Any]) -> BonferroniResult:
    """Combine one test per view: the mean statistic, and the smallest p-value times the number of tests."""
    statistics = np.array([float(r.statistic) for r in results])
    pvalues = np.array([float(r.pvalue) for r in results])
    defined = ~np.isnan(pvalues)
    pvalue = min(1.0, float(defined.sum() * pvalues[defined].min())) if defined.any() else float("nan")
    statistic = views.average(statistics, average)
    return BonferroniResult(statistic, pvalue, tuple(results), views.keys)


class Redrawing(Common, total=False):
    """Keywords of a test that redraws labels, which is possible for any metric."""

    method: Any
    n_resamples: int
    alternative: str | None
    rng: Any
    calibration_map: Any
    workers: int | None


#: Keywords that every hypothesis test accepts, because labels can be redrawn for any metric.
REDRAWING: dict[str, Any] = {
    "method": "asymptotic", "n_resamples": 999, "alternative": None, "rng": None, "calibration_map": None,
    "workers": None,
}  # fmt: skip


class Method(Protocol):
    """A method of testing for every metric: it redraws labels instead of using a known null distribution."""

    def test(self, entry: Entry, data: Data, question: Question) -> Any: ...


#: The methods of testing by name: the inference package registers them here, so that no import points upwards.
METHODS: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class OwnTest(Test):
    """The test of a metric, and how several views are combined.

    With a lens of several views there is one test for each, combined by ``combine(results, views, average, options)``;
    or ``joint(formula, views, average, options)`` tests all views together.
    """

    combine: Callable[..., Any] = bonferroni
    joint: Callable[..., Any] | None = None

    def run(self, entry: Entry, data: Data, question: Question) -> Any:
        """Run the test with its own null distribution."""
        seen, question = entry.seen(data), with_bins(entry, data, entry.settled(question))
        seen.check_law(entry.lens_for(seen, question))
        views = views_of(entry, data, question)
        if not views.several:
            return self.formula(views.views[0], **question.options)
        average = usual_average(entry, question)
        if self.joint is not None:
            return self.joint(self.formula, views, average, question.options)
        return self.combine(each_view(self.formula, views, question), views, average, question.options)


def calibration_test(id: str, **declared: Any) -> Callable[[Callable[Concatenate[Any, P], R]], Metric[P, R]]:
    """Make the hypothesis test of metric ``id`` from a function of one view that returns a TestResult.

    ``declared`` are fields of :class:`OwnTest` and :class:`~calibrary.metrics.machinery.entry.Test`.
    ``method="monte-carlo"`` and ``"consistency"`` are handled in the same way for every test, by redrawing labels.
    """

    def decorate(formula: Callable[Concatenate[Any, P], R]) -> Metric[P, R]:
        entry = ENTRIES[id]
        common, doc = {**entry.front.common, **REDRAWING}, f"{SHARED_TEXTS['redrawing']}\n{entry.front.doc_common}"
        front = replace(entry.front, common=common, doc_common=doc)
        function = public(formula, entry, functools.partial(run_test, entry), front)
        function.entry = entry  # type: ignore[attr-defined]
        TESTS[id] = OwnTest(formula, function, **declared)
        return function  # type: ignore[return-value]

    return decorate


def run_test(entry: Entry, first: Any, second: Any, keywords: dict[str, Any]) -> Any:
    """The metric's own test, or a test that redraws labels if ``method`` requests it or no other test exists."""
    keywords = dict(keywords)
    method = _redrawing(entry, keywords)
    data = entry.read(first, second, keywords)
    if method is not None:
        return method.test(entry, data, _redrawn_question(entry, keywords, method))
    check_options(entry.id, TESTS[entry.id].formula, entry.extra_options, keywords)
    return TESTS[entry.id].run(entry, data, question_of(keywords, entry.options))


def _redrawing(entry: Entry, keywords: dict[str, Any]) -> Method | None:
    """The method of redrawing that the keywords specify, removed from them; None for the metric's own test."""
    own = TESTS.get(entry.id)
    method = keywords.get("method", "asymptotic" if own is not None else "monte-carlo")
    if hasattr(method, "test"):
        del keywords["method"]
        refuse_settings_beside(method, {name: keywords[name] for name in REDRAWING if name in keywords})
        return method
    name = str(method).replace("_", "-")
    if name in METHODS:
        usual = 999 if own is None else _default(own.formula, "n_resamples", 999)
        settings = {word: keywords.pop(word) for word in REDRAWING if word in keywords and word != "method"}
        keywords.pop("method", None)
        return METHODS[name](**{"n_resamples": usual, **settings})
    if own is None:
        raise RefusedError(
            f"method={method!r}: {entry.id} has no test of its own; use {' or '.join(repr(m) for m in METHODS)}"
        )
    taken = own_options(own.formula)
    if name == "asymptotic":
        keywords.pop("method", None)
    for word in keywords:
        if word in REDRAWING and word not in taken:
            raise RefusedError(f"{word}={keywords[word]!r} needs method='monte-carlo' or 'consistency'")
    return None


def refuse_settings_beside(method: Any, settings: Mapping[str, Any]) -> None:
    """Refuse settings that differ from their defaults beside a method object, which has its own."""
    for name, value in settings.items():
        usual = REDRAWING[name]
        if value is not usual and not (isinstance(value, int) and value == usual):
            raise RefusedCallError(
                f"{name}= is a setting of the method object: pass it to {type(method).__name__}(...)"
            )


def _redrawn_question(entry: Entry, keywords: dict[str, Any], method: Method) -> Question:
    own = TESTS.get(entry.id)
    weight_type = keywords.pop("weight_type", "frequency")
    for name in keywords:
        if own is not None and name in own_options(own.formula) and name not in entry.options:
            word = getattr(method, "name", type(method).__name__)
            raise RefusedError(f"{name}={keywords[name]!r} has no effect with method={word!r}: leave it out")
    return entry.question_of(keywords).changed(weight_type=weight_type)


def _default(formula: Callable[..., Any], name: str, otherwise: Any) -> Any:
    found = own_options(formula).get(name)
    return otherwise if found is None else found.default


# -- the public function ----------------------------------------------------------------------------


def public(
    formula: Callable[..., Any], entry: Entry, call: Callable[[Any, Any, dict[str, Any]], Any], front: Front
) -> Callable[..., Any]:
    """The function a user calls: it accepts the data, and has the shared keywords in its signature and docstring."""
    signature = _signature(formula, entry, front)
    first, second = front.data
    known = set(signature.parameters)
    own = frozenset(known) - set(front.common) | set(own_options(formula))

    @functools.wraps(formula)
    def function(*data: Any, **keywords: Any) -> Any:
        if len(data) == 2 and not keywords:
            return call(*data, keywords)
        if not known.issuperset(keywords):
            keywords = entry.with_current_names(keywords)
            if names_columns(keywords) and not known.issuperset(("label", "prob")) and 0 < len(data) < 3:
                y, p, keywords = out_of_table(data[0], data[1] if len(data) == 2 else None, keywords)
                data = y, p
        for name in keywords:
            if name not in known:
                raise unknown_option(formula.__name__, name, known - {first, second})
        check_asked(keywords, own)
        if len(data) == 1 and first not in keywords and second not in keywords:
            return call(data[0], None, keywords)
        if len(data) != 2 or first in keywords or second in keywords:
            given = signature.bind(*data, **keywords).arguments
            data = given[first], given.get(second)
            keywords = {name: value for name, value in keywords.items() if name not in front.data}
        return call(*data, keywords)

    function.__signature__, function.formula = signature, formula  # type: ignore[attr-defined]
    paragraphs = (
        _DOC_DEFINITION.format(id=entry.id),
        entry.no_ends and f"The default interval has no ends: {entry.no_ends}",
    )
    notes = "\n\n".join(filter(None, paragraphs)) if formula is entry.formula else ""
    function.__doc__ = _documented(inspect.getdoc(formula) or "", entry, front, notes)
    del function.__wrapped__
    return function


def _signature(formula: Callable[..., Any], entry: Entry, front: Front) -> inspect.Signature:
    """The two data arguments, the metric's own options, those of its parts, then the options that all metrics share."""
    keyword, plain = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = list(own_options(formula).values())
    extra = entry.extra_options if isinstance(entry.extra_options, Options) else dict.fromkeys(entry.extra_options)
    taken = {v.name for v in own}
    own += [inspect.Parameter(n, keyword, default=d) for n, d in extra.items() if n not in taken]
    taken = {v.name for v in own}
    common = [inspect.Parameter(n, keyword, default=d) for n, d in front.common.items() if n not in taken]
    first, second = front.data
    data = [inspect.Parameter(first, plain), inspect.Parameter(second, plain, default=None)]
    return inspect.Signature([*data, *own, *common], return_annotation=inspect.signature(formula).return_annotation)


#: Where the formula is written as loops and sums, without the fast algorithm.
_DOC_DEFINITION = "Literal definition: ``tests/definitions.py::{id}``, with which the tests compare this function."


def _documented(doc: str, entry: Entry, front: Front, notes: str) -> str:
    """The docstring with the shared parameters included, and ``notes`` at the end of its Notes."""
    common = front.doc_common.format(
        lenses=listed(entry.lenses), binary_lens=entry.binary_lens, default_lens=entry.default_lens
    )
    if isinstance(entry.extra_options, Options):
        common = f"{entry.extra_options.doc}\n{common}"
    parts = re.split(r"\n\n?(?=[A-Z][\w ]*\n-{3,}\n)", doc)
    for i, part in enumerate(parts):
        if part.startswith("Parameters\n"):
            own = part.split("\n", 2)[2].strip("\n")
            parts[i] = f"Parameters\n----------\n{front.doc_data}\n{own}\n{common}"
            break
    else:
        parts.insert(1, f"Parameters\n----------\n{front.doc_data}\n{common}")
    if notes:
        _noted(parts, notes)
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _noted(parts: list[str], notes: str) -> None:
    """Extend the Notes, or add them where numpydoc expects them: before references and examples."""
    for i, part in enumerate(parts):
        if part.startswith("Notes\n"):
            parts[i] = part.rstrip("\n") + "\n\n" + notes
            return
    after = [i for i, part in enumerate(parts) if part.startswith(("References\n", "Examples\n"))]
    parts.insert(min(after, default=len(parts)), f"Notes\n-----\n{notes}")
