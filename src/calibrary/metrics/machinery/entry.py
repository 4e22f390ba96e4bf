"""The entry of a metric: its facts, its formula, how data are passed to it, and when its test is trusted."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from operator import attrgetter
from typing import Any, TypedDict, TypeVar

import numpy as np

from calibrary.base.claims import Claim
from calibrary.base.errors import RefusedCallError, RefusedError, deprecated, refuse_unknown, warn_once
from calibrary.base.markup import Markup, element, html_table, markup
from calibrary.base.moved import RenamedFields
from calibrary.base.numbers import as_plain
from calibrary.base.signatures import own_options
from calibrary.data import Data, as_data
from calibrary.data.asked import check_asked
from calibrary.data.checks import Array
from calibrary.data.lens import Lens, as_lens
from calibrary.data.predictions import Predictions
from calibrary.grouping import Groups
from calibrary.metrics.machinery.cards import Declared, declared, index, indexed_facts
from calibrary.metrics.machinery.facts import SHARED_TEXTS, Alias, Facts, Options
from calibrary.metrics.machinery.forms import CellForm, Direct, ReplicateForm
from calibrary.metrics.machinery.option_checks import check_options
from calibrary.question import LOOKING, Question, question_of, same_setting


class _Named(TypedDict, total=False):
    sample_weight: Any
    lens: str | Lens
    r: int | None
    labels: Any
    pos_label: Any
    rescale: bool


class Seen(_Named, total=False):
    """Keywords of the data and the lens."""

    percent: bool


class Looked(_Named, total=False):
    """Keywords of a metric that has its own option ``percent``."""

    average: Any
    by: Any


class Averaged(Seen, total=False):
    """Keywords of the data and the lens, and how views are combined."""

    average: Any


class Common(Averaged, total=False):
    """Keywords that every metric accepts; the decorator handles them before the formula is called."""

    by: Any


_COMMON: dict[str, Any] = {
    "sample_weight": None, "lens": "auto", "average": "uniform", "r": None, "labels": None, "pos_label": None,
    "by": None, "percent": False, "rescale": False,
}  # fmt: skip


@dataclass(frozen=True)
class Front:
    """How data are passed to the public functions of one kind of metric.

    The two data arguments, the shared keywords with their documentation, and ``read``, which removes the data keywords
    from a call and returns the data.
    """

    data: tuple[str, str]
    common: Mapping[str, Any]
    doc_data: str
    doc_common: str
    read: Callable[[Any, Any, dict[str, Any]], Data] = as_data


CLASSIFIER = Front(("y_true", "y_prob"), _COMMON, SHARED_TEXTS["predictions"], SHARED_TEXTS["lens"])


# -- the entry --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Code:
    """What a metric is besides its facts: its formula, and what the decorator of the formula declares with it.

    Attributes
    ----------
    formula : the metric as a function of one view
    combine : ``combine(values, views, average, options)`` in place of the weighted mean over views
    fixed : ``fixed(view, **options)`` returns the options that must be chosen once on the original data and used in
        every resample, because repeated rows would distort the choice (a leave-one-out bandwidth); with
        ``redrawn=True`` only options that depend on the confidences alone, which redrawn labels do not change
    range_with : ``range_with(options, n_classes)`` is the range with these options
    grouped : ``grouped(view, options)`` returns the groups in which the formula puts the rows, for a null distribution
        that needs them
    direct, replicate, cell_value : faster computations of the formula (see
        :mod:`calibrary.metrics.machinery.forms`): from plain arrays, for other weights or labels of the same rows,
        and from counts in cells
    cell_kind : ``cell_kind(options)`` is the kind of :class:`~calibrary.metrics.machinery.facts.CellFacts` with these
        options, or None if they do not change it
    cell_edges : ``cell_edges(options)`` returns the bin edges, if the options ``edges`` and ``n_bins`` do not determine
        them
    extra_options : options that the metric passes on to one of its parts (a map, a grouping): names, shown in its
        signature as None, or an :class:`Options` with their defaults and documentation
    renamed : old names of options, each with the new name, or with the new name and new names for old values
    front : how data are passed to the public function
    seen : the facts that the decorator declares: the lenses and other defaults
    """

    formula: Callable[..., Any]
    combine: Callable[..., Any] | None = None
    fixed: Callable[..., dict[str, Any]] | None = None
    range_with: Callable[[Mapping[str, Any], int], tuple[float, float]] | None = None
    grouped: Callable[[Any, Mapping[str, Any]], Groups] | None = None
    direct: Direct | None = None
    replicate: ReplicateForm | None = None
    cell_value: CellForm | None = None
    cell_kind: Callable[[Mapping[str, Any]], str | None] | None = None
    cell_edges: Callable[[Mapping[str, Any]], Array] | None = None
    extra_options: tuple[str, ...] | Options = ()
    renamed: Mapping[str, str | tuple[str, Mapping[Any, Any]]] = field(default_factory=dict)
    front: Front = CLASSIFIER
    seen: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry(Facts, RenamedFields):
    """All facts about one metric, and how it is computed. ``catalogue["ece"]`` is an Entry.

    Besides the facts (see :class:`~calibrary.metrics.machinery.facts.Facts`):

    Attributes
    ----------
    called : the name by which the metric was requested, if that name implies settings, which then apply wherever the
        metric is computed
    own : code in place of that of the metric, for an entry that computes it otherwise
    code : the formula and what is declared with it (:class:`Code`); its module is imported when it is first needed.
        Each attribute of the code is an attribute of the entry too: ``entry.formula``
    """

    called: Alias | None = None
    own: Code | None = field(default=None, repr=False, compare=False)

    @functools.cached_property
    def code(self) -> Code:
        """The formula and what is declared with it."""
        if self.own is not None:
            return self.own
        return CODES[self.id] if not self.part else _code_of_field(self.id, self.part)

    # what the code declares is read from the entry too: ``entry.formula``
    formula = property(attrgetter("code.formula"), doc="The metric as a function of one view.")
    combine = property(attrgetter("code.combine"), doc="What replaces the weighted mean over views.")
    fixed = property(attrgetter("code.fixed"), doc="The options that are chosen once on the original data.")
    range_with = property(attrgetter("code.range_with"), doc="The range with given options.")
    grouped = property(attrgetter("code.grouped"), doc="The groups in which the formula puts the rows.")
    direct = property(attrgetter("code.direct"), doc="The computation from plain arrays.")
    replicate = property(attrgetter("code.replicate"), doc="The computation for other weights or labels of the rows.")
    cell_value = property(attrgetter("code.cell_value"), doc="The computation from counts in cells.")
    extra_options = property(attrgetter("code.extra_options"), doc="Options that the metric passes on to its parts.")
    renamed = property(attrgetter("code.renamed"), doc="Old names of options.")
    front = property(attrgetter("code.front"), doc="How data are passed to the public function.")

    @property
    def declared(self) -> Declared:
        """What the code says about the metric, from the index; from the code itself if the index lacks the metric."""
        return declared(self.id) or declared_by(self)

    def __repr__(self) -> str:
        return f"Entry({self.key!r}, name={self.title!r}, family={self.family!r})"

    def _repr_html_(self) -> str:
        """For a notebook: what the number tells you, and a small table of facts."""
        low, high = self.range
        facts = {
            "name": f"{self.title} ({self.key})",
            "family": self.family,
            "range": f"{low:g} to {high:g}",
            "value of a calibrated model": self._of_calibrated,
            "when to use it": self.use,
            "caution": self.avoid,
            "function": f"calibrary.{self.declared.function}",
        }
        rows = [(name, text) for name, text in facts.items() if text]
        names = (
            [f"{self.id}.{self.part}"] if self.part else [self.id, *(f"{self.id}.{name}" for name, _ in self.fields)]
        )
        return markup(element("p", self.meaning), html_table(("", ""), rows), [draw(names) for draw in PICTURES])

    @property
    def _of_calibrated(self) -> str:
        """The value of a calibrated model, and whether an estimate of it is larger by chance."""
        if self.perfect is None:
            return "depends on the data"
        by_chance = self.tail == "greater" and self.judges and not self.unbiased
        return f"{self.perfect:g}" + (" in an infinite sample, larger by chance in any other" if by_chance else "")

    @property
    def key(self) -> str:
        """The name by which the catalogue returns this entry: its id, or the name that implies settings."""
        return self.id if self.called is None else str(self.called)

    @property
    def title(self) -> str:
        """The name for a table or a sentence, including the settings that the requested name implies."""
        return self.name if self.called is None else f"{self.name} ({self.called.words})"

    @property
    def part(self) -> str:
        """The one field of the result that the requested name refers to; empty for the whole result."""
        return "" if self.called is None else self.called.field

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the requested name implies."""
        return {} if self.called is None else self.called.settings

    def under(self, name: str) -> Entry:
        """The metric under this name: with the settings that the name implies, if any."""
        return _called(self.id, name) if isinstance(name, Alias) else self

    @property
    def function(self) -> Callable[..., Any]:
        """The public function."""
        return FUNCTIONS[self.id]

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain dictionaries, lists, numbers and text."""
        options = {"extra_options": as_plain(self.extra_options), "renamed": as_plain(self.renamed)}
        return {**super().to_dict(), **options}

    @property
    def meaning(self) -> Claim:
        """One line that says what the number tells you."""
        return Claim(self.declared.meaning, "meaning", metric=self.id)

    @property
    def of_plain_predictions(self) -> bool:
        """Whether the metric uses binary predictions as they are, unless a lens is requested."""
        return self.front is CLASSIFIER and self.binary_lens == "binary"

    @property
    def has_test(self) -> bool:
        """Whether the metric has a hypothesis test of its own (a Monte Carlo test exists for any metric)."""
        return not self.part and (self.declared.default_preset or self.id) in TESTS

    @property
    def means_rows(self) -> bool:
        """Whether the metric is a mean of row losses: ``reduction="none"`` returns the loss of each row."""
        return "reduction" in self.options

    @property
    def options(self) -> tuple[str, ...]:
        """The metric's own keyword arguments."""
        return tuple(self.option_defaults)

    @functools.cached_property
    def option_defaults(self) -> Mapping[str, Any]:
        """The metric's own keyword arguments and those of its parts, each with its default."""
        return self.declared.options

    def lens_for(self, data: Any, question: Question) -> Lens:
        """The lens to use on these data; "auto" depends on the number of classes."""
        question = self.settled(question)
        lens, r = question.lens, question.r
        if isinstance(lens, str) and lens in ("auto", ""):
            given = question.average
            lens = data.usual_lens(self, self.default_average if isinstance(given, str) and given == "auto" else given)
        chosen = as_lens(lens, r)
        if chosen.name == "partition" and "partition" not in self.lenses and chosen.groups:
            # classes are merged first, then the metric's default lens is applied
            return replace(chosen, then=self.binary_lens if len(chosen.groups) == 2 else self.default_lens)
        if chosen.name not in self.lenses:
            raise RefusedError(f"{self.id} is not defined for lens={chosen.name!r}: use {listed(self.lenses)}")
        if chosen.name == "binary" and getattr(data, "k", 2) > 2:
            raise RefusedError(self._not_two_classes(data.k))
        return chosen

    def say_change(self, data: Any, question: Question) -> None:
        """Warn once if the usual lens is not that of the version before, where the metric was called by name."""
        if self.changed and question.lens == "auto" and getattr(data, "k", 0) == 2:
            warn_once(f"{self.id}: {self.changed}")

    def _not_two_classes(self, k: int) -> str:
        """The remedy for lens="binary" with more classes: lenses that this metric accepts."""
        others = [f"lens={name!r}" for name in ("top-label", "class-wise", "full") if name in self.lenses][:2]
        if others:
            return f"lens='binary' needs one probability or two columns and y_prob has {k}: use {' or '.join(others)}"
        return (
            f"{self.id} is defined for two classes and y_prob has {k}: pass the probability of one class, or merge "
            "classes with lens=calibrary.lens.partition([[0], [1, ...]])"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the metric: ``catalogue["ece"](y, p)``."""
        if self.called is None:
            return self.function(*args, **kwargs)
        value = self.function(*args, **(self.settled_keywords(kwargs) if self.settings else kwargs))
        return value if not self.part else _one_field(value, self.part)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.called is not None:
            return _called, (self.id, self.called)
        return _entry, (self.id,)  # restored by its id: an entry is part of the library, not of the data

    # -- presets --------------------------------------------------------------------------------------

    def specialized(self, options: Mapping[str, Any]) -> tuple[Entry, dict[str, Any]]:
        """The metric of the catalogue that these options correspond to, whose facts then hold, and other options."""
        for preset in _presets(self.id):
            assert preset.preset_of is not None
            fixed = preset.preset_of.settings
            given = {**{name: default_of(self.formula, name) for name in fixed}, **options}
            if all(same_setting(name, given[name], value) for name, value in fixed.items()):
                kept = {name: value for name, value in options.items() if name not in fixed}
                if not kept:
                    return preset, kept
                own = TESTS[preset.id].formula if preset.id in TESTS else preset.formula
                foreign = set(kept) & set(self.options) - {*preset.options, *own_options(own)}
                return (self, dict(options)) if foreign else (preset, kept)  # the formula refuses unknown options
        return self, dict(options)

    @property
    def of_labels(self) -> bool:
        """Whether the metric depends on labels and confidences alone, so that redrawn labels give its distribution."""
        return self.data_type == "predictions"

    @property
    def covered(self) -> bool:
        """Whether a table of all metrics already contains this metric under another name."""
        return self.row is None and bool(self.declared.default_preset)

    # -- settings that its name implies -----------------------------------------------------------

    def settled_keywords(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords of a call with the settings its name implies; a contradicting keyword is refused."""
        merged = dict(keywords)
        for name, carried in self.settings.items():
            given = merged.get(name, carried)
            if name in LOOKING and isinstance(given, str) and given == "auto":
                given = carried
            if not same_setting(name, given, carried):
                assert self.called is not None
                raise RefusedError(
                    f"{name}={given!r} contradicts the name {str(self.called)!r}, which means {self.id} with "
                    f"{self.called.words}: leave {name} out, or use {self.id!r}"
                )
            merged[name] = carried
        return merged

    def settled(self, question: Question) -> Question:
        """The question with the settings that the metric's name implies."""
        if not self.settings:
            return question
        looking = {name: getattr(question, name) for name in LOOKING if name in self.settings}
        if looking.get("r", 0) is None:
            del looking["r"]
        merged = self.settled_keywords({**question.options, **looking})
        options = {name: value for name, value in merged.items() if name in self.options or name in question.options}
        return question.changed(options=options, **{name: merged[name] for name in LOOKING if name in self.settings})

    def seen(self, data: Data) -> Data:
        """The data as the metric uses them, with boxes matched as its name says."""
        return self.matched(data.read_as(self.data_type, self.id))

    def matched(self, data: Any) -> Data:
        """The data with their boxes matched as the metric's name says; the same data if the name implies nothing."""
        if not self.settings:
            return data
        matching = {n: v for n, v in self.settings.items() if n not in LOOKING and n not in self.options}
        if all(getattr(data, name) == value for name, value in matching.items()):
            return data
        return data.rematched(**matching)

    def with_current_names(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords of a call with old names of options replaced by current names, with a warning for each."""
        current = dict(keywords)
        for old, new in self.renamed.items():
            if old not in current:
                continue
            name, values = new if isinstance(new, tuple) else (new, {})
            if name in current:
                raise RefusedCallError(f"{old} is the old name of {name}: pass one of them")
            value = current.pop(old)
            key = value if isinstance(value, bool | str | int | float) else None
            current[name] = values.get(key, value)
            deprecated(f"{old}={value!r} of {self.id}", f"{name}={current[name]!r}")
        return current

    def read(self, first: Any, second: Any, keywords: dict[str, Any]) -> Data:
        """The data of a call, removed from the keywords; a keyword that is an option of the metric stays."""
        keywords.update(self.settled_keywords(keywords))
        own = {name: keywords.pop(name) for name in ("percent",) if name in keywords and name in self.options}
        data = self.front.read(first, second, keywords)
        keywords.update(own)
        return data

    def question_of(self, keywords: Mapping[str, Any]) -> Question:
        """The question of a call, with the names and values of its options checked."""
        if self.renamed:
            keywords = self.with_current_names(keywords)
        refuse_unknown(self.id, keywords, [*self.options, *self.front.common])
        check_asked(keywords, self.options)
        self.check(keywords)
        return self.settled(question_of(keywords, self.options))

    def check(self, options: Mapping[str, Any]) -> None:
        """Raise an error for values that the options cannot have, whether or not the chosen variant uses them."""
        check_options(self.id, self.formula, self.extra_options, options)


def _entry(id: str) -> Entry:
    return ENTRIES[id]


def _presets(id: str) -> tuple[Entry, ...]:
    return _presets_among(id, len(ENTRIES))


@functools.cache
def _presets_among(id: str, size: int) -> tuple[Entry, ...]:
    return tuple(e for e in ENTRIES.values() if e.preset_of == id)


@functools.cache
def default_of(formula: Callable[..., Any], name: str) -> Any:
    """The default of a keyword, or ``inspect.Parameter.empty``."""
    found = inspect.signature(formula).parameters.get(name)
    return inspect.Parameter.empty if found is None else found.default


@functools.cache
def _called(id: str, name: Alias) -> Entry:
    entry = ENTRIES[id]
    if not name.field:
        return replace(entry, called=name)
    # one number of the result: tests and the overall decision use the whole result only
    return replace(
        entry, called=name, fields=(), perfect=name.perfect,
        better=entry.better if name.perfect is None else "perfect", overall={},
    )  # fmt: skip


@functools.cache
def _code_of_field(id: str, name: str) -> Code:
    """The code of one number of a result."""
    code = CODES[id]
    of_field = None if code.replicate is None else code.replicate.of_field
    return replace(
        code, combine=None, direct=None, replicate=of_field and of_field(name), cell_value=None,
        formula=_field_of(code.formula, name),
    )  # fmt: skip


def _field_of(formula: Callable[..., Any], field: str) -> Callable[..., Any]:
    """The formula of one field of a result."""

    @functools.wraps(formula)
    def one(view: Any, **options: Any) -> Any:
        return _one_field(formula(view, **options), field)

    return one


def _one_field(value: Any, field: str) -> Any:
    """One field of a result, or of one result per view; a result split into parts stays unchanged."""
    if hasattr(value, field):
        return getattr(value, field)
    return np.array([getattr(each, field) for each in value]) if isinstance(value, tuple) else value


def listed(names: tuple[str, ...]) -> str:
    """Names in quotes, for a sentence."""
    return ", ".join(repr(n) for n in names)


T = TypeVar("T")


class LazyTable(MutableMapping[str, T]):
    """A value for every metric: those of the index are made when they are first needed, others are added."""

    def __init__(self, ids: Callable[[], Mapping[str, Any]], make: Callable[[str], T | None]) -> None:
        self._ids, self._make = ids, make
        self.made: dict[str, T] = {}
        self._added: set[str] = set()

    def __getitem__(self, id: str) -> T:
        if id in self.made:
            return self.made[id]
        if id not in self._ids():
            raise KeyError(id)
        value = self._make(id)  # None from an import, which adds the value itself
        return self.made.setdefault(id, value) if value is not None else self.made[id]

    def __setitem__(self, id: str, value: T) -> None:
        self.made[id] = value
        if id not in self._ids():
            self._added.add(id)

    def __delitem__(self, id: str) -> None:
        del self.made[id]
        self._added.discard(id)

    def __contains__(self, id: object) -> bool:
        return id in self.made or id in self._ids()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._ids(), *self.made)))

    def __len__(self) -> int:
        return len(self._ids()) + len(self._added)


def _declaring(id: str) -> None:
    """Import the module that declares a metric."""
    import_module(index()[id]["code"]["module"])


def _testing(id: str) -> None:
    """Import the module that declares the test of a metric."""
    import_module(index()[id]["code"]["test_module"])


@functools.cache
def _tested() -> dict[str, None]:
    return dict.fromkeys(id for id, each in index().items() if each["code"].get("test"))


#: Every metric by its id, in the order of declaration; the catalogue uses this table.
ENTRIES: LazyTable[Entry] = LazyTable(index, lambda id: Entry(**indexed_facts(id)))
#: The code of every metric, its public function, and the test of those that have one.
CODES: LazyTable[Code] = LazyTable(index, _declaring)
FUNCTIONS: LazyTable[Callable[..., Any]] = LazyTable(index, _declaring)
TESTS: LazyTable[Test] = LazyTable(_tested, _testing)
#: What a higher floor shows of a metric's numbers in a notebook: functions of their names.
PICTURES: list[Callable[[list[str]], Markup | None]] = []


def declared_by(entry: Entry, presets: Mapping[str, Alias | None] | None = None) -> Declared:
    """What the code of a metric says about it, for the index; ``presets`` are the metrics that are presets."""
    if presets is None:
        presets = {each.id: each.preset_of for each in ENTRIES.values()}
    code, test = CODES[entry.id], TESTS.get(entry.id)
    doc = inspect.getdoc(code.formula) or ""
    formula = re.search(r"\.\. math::\s*(.+?)(?:\n\n|\n[A-Z]|\Z)", doc, flags=re.DOTALL)
    extra = code.extra_options if isinstance(code.extra_options, Options) else dict.fromkeys(code.extra_options)
    own = {name: option.default for name, option in own_options(code.formula).items()}
    options = {**own, **{name: value for name, value in extra.items() if name not in own}}
    special = (
        id
        for id, preset in presets.items()
        if preset == entry.id and all(same_setting(name, options[name], v) for name, v in preset.settings.items())
    )
    return Declared(
        code.formula.__module__,
        FUNCTIONS[entry.id].__name__,
        (doc or entry.name).splitlines()[0],
        formula[1] if formula else "",
        options,
        "" if test is None else test.function.__name__,
        "" if test is None else test.formula.__module__,
        "" if test is None else (inspect.getdoc(test.formula) or "").partition("\n")[0],
        next(special, ""),
    )


#: Whether the large-sample distribution is reliable on a view with these options. True: for any sample. False: for
#: none, so labels are redrawn.
Trust = bool | Callable[[Predictions, Mapping[str, Any]], bool]

#: Number of fully uncertain rows (probability 1/2) that a large-sample distribution needs. Measured on calibrated
#: predictions (uniform, Beta(.3, .3), Beta(30, 1), Beta(200, 1), Beta(1, 60); 140 to 400 samples each) tests at 5%
#: reject from here on 2 to 7%: Cox 4-6, Spiegelhalter 4-8, cumulative 1-7; with half as many up to 17 (kernels), 13
#: (Wald) and 12 (Cox).
UNCERTAIN_ROWS = 50.0


def uncertain_rows(view: Predictions) -> float:
    """Effective number of rows with probability 1/2: the sum of 4 c (1 - c), for whole vectors of 2 (1 - sum p^2)."""
    if view.binary:
        return float(view.sum(4.0 * view.c * (1.0 - view.c)))
    return float(view.sum(2.0 * (1.0 - np.einsum("nk,nk->n", view.p, view.p))))


def enough_uncertain(least: float = UNCERTAIN_ROWS) -> Callable[[Predictions, Mapping[str, Any]], bool]:
    """The rule that requires enough rows with an uncertain outcome."""
    return lambda view, options: uncertain_rows(view) >= least


_ENOUGH_UNCERTAIN = enough_uncertain()


@dataclass(frozen=True)
class Test:
    """The test of a metric: its formula for one view, its public function, and when it is reliable.

    Attributes
    ----------
    trusted : ``trusted(view, options)`` returns whether the null distribution has the nominal level on such data, for
        ``method="auto"``: True if it holds for any sample, False if redrawn labels should always replace it
    simulated : whether the p-value is not a formula: the test draws, or is a bound
    closed_form : the options that select a formula, if there is one, for ``method="asymptotic"``
    beside : a number that is compared with its redraws together with those of the metric
    """

    __test__ = False  # not a test class for pytest

    formula: Callable[..., Any]
    function: Callable[..., Any]
    trusted: Trust = _ENOUGH_UNCERTAIN
    simulated: bool = False
    closed_form: Mapping[str, Any] = field(default_factory=dict)
    beside: str = ""

    def run(self, entry: Entry, data: Data, question: Question) -> Any:
        """Run the test with its own null distribution."""
        raise NotImplementedError
