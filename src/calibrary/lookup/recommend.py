"""Which metric for which question: a short ranked list with reasons, from the facts in the catalogue.

No metric is named in this file. All facts come from a metric's entry (what it measures, whether it is proper, where the
review recommends it) or from the study stored with the library (how often it detects an error, how it orders models,
its value for a calibrated model; see ``study_findings``). Each reason names its source. Metrics are ranked first by how
well they suit the goal; then by whether they were designed for the situation; then by the number of facts for them
minus those against; then by the study's measurements; and last by whether readers know them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from calibrary.base.claims import Claim, Sentence
from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.base.markup import html_table
from calibrary.base.numbers import number, percent
from calibrary.data.asked import checks_options
from calibrary.lookup.by_name import catalogue
from calibrary.lookup.study_findings import Finding, finding
from calibrary.metrics.machinery.declare import Entry

__all__ = ["Recommendation", "recommend"]

TASKS = ("binary", "multiclass", "ordinal", "detection")
GOALS = ("measure", "compare", "test", "train", "explain", "rank")

#: A class is rare below this share; rows are few below the first number, and an upward bias matters below the second.
_RARE = 0.1
_FEW_ROWS, _ROWS_THAT_READ_HIGH = 500, 2000
#: Largest mean value for a calibrated model that still counts as near 0.
_LITTLE = 0.035
#: Number of classes above which classes are very many.
_MANY_CLASSES = 100
#: A metric that orders at least this share of pairs of models by their true errors measures the size of the error.
_ORDERS = 0.75
#: An error above this value for a calibrated model on this many rows does not tend to 0.
_VERY_MANY_ROWS, _STILL_READS = 100_000, 0.01
#: Step in which shares of the study are compared: smaller differences are within its simulation error.
_STEP = 0.05
#: A test has its nominal level if it rejects at most this share of calibrated samples.
_KEEPS = 0.08


@dataclass(frozen=True)
class Need:
    """The user's situation; see :func:`recommend`."""

    task: str = "binary"
    goal: str = "measure"
    n: int = 1000
    rare: float = 0.5
    test: bool = False
    direction: bool = False
    ties: bool = False
    safety: bool = False
    assurance: bool = False
    label_noise: bool = False
    n_classes: int | None = None
    features: bool = False
    top_label_only: bool = False

    @property
    def situations(self) -> tuple[str, ...]:
        """The situations of the review's advice that apply."""
        size = self.goal == "measure" and not self.direction
        found = {
            "few rows": size and self.n < _FEW_ROWS and self.task != "detection",
            "detection": size and self.task == "detection",
            "rank": self.goal == "rank",
            "many classes": (self.n_classes or 0) > _MANY_CLASSES and self.goal == "measure",
            "label noise": self.label_noise and self.goal == "measure",
        }
        return tuple(name for name, applies in found.items() if applies)


class Reason(Claim):
    """A reason and its source: ``source`` is "review", "study" or "calibrary", with its ``place``.

    A reason is a claim about the metric: ``rule`` says when it is true, and ``values`` are the numbers in it.
    """

    source: str
    place: str

    def __new__(
        cls, text: str, source: str = "calibrary", place: str = "", rule: str = "declared", **values: Any
    ) -> Reason:
        reason = super().__new__(cls, text, rule, **values)
        assert isinstance(reason, Reason)
        reason.source, reason.place = source, place
        return reason

    def __reduce__(self) -> tuple[Any, ...]:
        return _reason, (str(self), self.source, self.place, self.rule, dict(self.values))

    @property
    def with_source(self) -> str:
        """The reason, with its source in brackets."""
        return f"{self} [{self.source}{f', {self.place}' if self.place else ''}]"


def _reason(text: str, source: str, place: str, rule: str, values: dict[str, Any]) -> Reason:
    return Reason(text, source, place, rule, **values)


@dataclass(frozen=True)
class Recommendation:
    """A metric, how well it fits, the reasons, and a caution.

    ``points`` only serve to rank: suitability for the goal (hundreds), design for the situation (tens), facts for the
    metric minus facts against it (units), and the study's measurements (the fraction). Each reason is a
    :class:`Reason`, a text with its source (the review, the study or calibrary); so are ``caution.claims``.
    """

    id: str
    name: str
    points: float
    reasons: tuple[Reason, ...]
    caution: Sentence


class Recommendations(list[Recommendation]):
    """The result of :func:`recommend`: a list, best first, that prints as a table."""

    def __str__(self) -> str:
        lines = []
        for r in self:
            lines.append(f"{r.name} ({r.id}): {'; '.join(each.with_source for each in r.reasons)}")
            lines += [f"  caution: {r.caution}"] if r.caution else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [[r.id, r.name, "; ".join(each.with_source for each in r.reasons), r.caution] for r in self]
        return html_table(["id", "name", "reasons", "caution"], rows)


@checks_options
def recommend(
    task: str = "binary",
    goal: str = "measure",
    *,
    n: int = 1000,
    rare: float = 0.5,
    test: bool = False,
    direction: bool = False,
    ties: bool = False,
    most: int = 5,
    safety: bool = False,
    assurance: bool = False,
    label_noise: bool = False,
    n_classes: int | None = None,
    features: bool = False,
    top_label_only: bool = False,
) -> Recommendations:
    """Recommend metrics for a task and a goal, from the facts in the catalogue.

    Parameters
    ----------
    task : "binary", "multiclass", "ordinal" or "detection"
    goal : "measure", "compare", "test", "train", "explain" or "rank"
        "measure": the size of the error. "compare": which of several models is better. "test": whether there is any
        miscalibration. "train": a training loss or penalty. "explain": the direction and shape of the error. "rank":
        which of several recalibration methods is better.
    n : int
        Number of predictions.
    rare : float
        Share of the rarest class.
    test, direction, ties : bool
        Whether a hypothesis test is needed; whether over- and under-confidence must be distinguished; whether the model
        gives few distinct scores.
    most : int
        Length of the list.
    safety : bool
        Whether the worst error matters rather than the average one.
    assurance : bool
        Whether the number must be reproducible: no random numbers, no options, no dependence on the order of rows.
    label_noise : bool
        Whether some labels are wrong.
    n_classes : int, optional
        Number of classes, if there are very many.
    features : bool
        Whether features or groups of the rows are available.
    top_label_only : bool
        Whether the model reports only the probability of the predicted class.

    Examples
    --------
    >>> import calibrary as cal
    >>> [r.id for r in cal.recommend("binary", "compare", most=2)]
    ['bs', 'nll']
    >>> [r.id for r in cal.recommend("detection", "train")]
    ['l1cbod']
    """
    one_of("task", task, TASKS)
    one_of("goal", goal, GOALS)
    whole("n", n)
    whole("most", most)
    if n_classes is not None:
        whole("n_classes", n_classes, least=2)
    if not (isinstance(rare, int | float) and 0.0 <= rare <= 1.0):
        raise RefusedError(f"rare={rare!r} is not a share: pass a number from 0 to 1")
    need = Need(
        task, goal, n, rare, test or goal == "test", direction or goal == "explain", ties, safety, assurance,
        label_noise, n_classes, features, top_label_only,
    )  # fmt: skip
    judged = [(_judged(e, need), e) for e in catalogue.values() if _possible(e, need)]
    ranked = sorted(judged, key=lambda found: (-found[0].points, *_lasting(found[1])))
    best: dict[str, Recommendation] = {}
    for found, entry in ranked:  # among several estimators of one metric only the best is listed
        best.setdefault(entry.preset_of or entry.id, found)
    return Recommendations(list(best.values())[:most])


def _lasting(entry: Entry) -> tuple[bool, bool, bool]:
    """Among equally ranked metrics: the best known first, then the cheapest, then those that will not change."""
    return not entry.familiar, entry.costly, entry.status != "stable"


# -- which metrics can be used, and which suit the goal ------------------------------------------------


def _possible(entry: Entry, need: Need) -> bool:
    at_hand = {"ordinal": {"order"}, "detection": {"boxes"}}.get(need.task, set())
    if need.features:
        at_hand = at_hand | {"features", "groups", "by"}
    if entry.covered or not set(entry.needs) <= at_hand:
        return False
    if entry.most_classes is not None and (need.n_classes or 0) > entry.most_classes:
        return False
    if need.task in ("binary", "detection") and entry.binary_lens == "full":
        return False
    if need.top_label_only and not {"top-label", "binary"} & set(entry.lenses):
        return False
    if need.task == "detection" and entry.data_type != "matches" and not (need.direction and _signed(entry)):
        return False
    return _suits(entry, need) is not None


def _signed(entry: Entry) -> bool:
    return entry.better == "perfect" and entry.judges


def _which_way(entry: Entry) -> Reason:
    """How a two-sided number shows the direction: by its sign, or by being above or below its perfect value."""
    ideals = {value for _, value in entry.fields or (("", entry.perfect),)} - {None}
    claim: dict[str, Any] = {"rule": "two-sided", "metric": entry.id, "ideals": tuple(ideals)}
    if ideals <= {0.0}:
        return Reason("its sign shows the direction of the error", **claim)
    sides = " and ".join(f"{value:g}" for value in sorted(value for value in ideals if value is not None))
    return Reason(f"the side of {sides} on which it lies shows the direction of the error", **claim)


#: How well a metric suits the goal, and why.
Suits = tuple[float, str] | None
#: Points for metrics that the review recommends in addition to those that suit the goal: slightly fewer.
_BESIDE = 0.97


_OWN_TEST = "it has a hypothesis test of its own"


def _declares(entry: Entry, text: str, **declared: Any) -> Reason:
    """A reason based on the entry's declarations."""
    return Reason(text, metric=entry.id, declared=declared)


def _measures(entry: Entry) -> Suits:
    vanishes = entry.perfect is not None or (not entry.has_test and (finding(entry.id).across or 0.0) >= _ORDERS)
    if entry.measures != "calibration" or entry.better != "lower" or entry.fields or not vanishes:
        return None
    if entry.perfect == 0 and _falls(entry):
        return 1, Reason("it tends to 0 for a calibrated model as data grow", rule="vanishes", metric=entry.id)
    return 1, _declares(entry, "it shows the size of the error", better="lower")


def _falls(entry: Entry) -> bool:
    """Whether the value of calibrated models falls as rows are added, according to the study if it covers the metric.

    EGCE is perfect at 0, but a calibrated detector that misses objects stays above it.
    """
    few, many = (finding(entry.id, n).expected_by_chance for n in (1000, 10_000))
    return few is None or many is None or many <= max(0.75 * few, 1e-3)


def _compares(entry: Entry) -> Suits:
    if entry.proper == "strictly":
        sentence = "it is strictly proper: no model gains by misstating its probabilities"
        return 2, Reason(sentence, rule="strictly proper", metric=entry.id)
    if entry.unbiased and entry.square == "yes":
        sentence = "it is an unbiased estimate of a square, so differences between models are unbiased too"
        return 1, _declares(entry, sentence, unbiased=True, square="yes")
    sentence = "it shows the size of the error, with the same bias for models on the same rows"
    return (0, _declares(entry, sentence, better="lower")) if _measures(entry) else None


def _tests(entry: Entry) -> Suits:
    if not entry.has_test:
        drawn = entry.null and entry.measures == "calibration"
        return (0, _declares(entry, "it can be tested by redrawing labels", null=True)) if drawn else None
    return 1, _declares(entry, _OWN_TEST, has_test=True)


def _trains(entry: Entry) -> Suits:
    if not entry.differentiable:
        return None
    sentence = _declares(entry, "it is differentiable, so it can be a training loss or penalty", differentiable=True)
    return (2 if entry.proper == "strictly" else 1), sentence


def _explains(entry: Entry) -> Suits:
    if _signed(entry):
        return 1, _which_way(entry)
    shown = "features" in entry.options and entry.data_type == "matches"
    return (0, _declares(entry, "it can be shown over the image", data_type="matches")) if shown else None


def _suits(entry: Entry, need: Need) -> Suits:
    """Whether the metric suits the goal; or, if direction must be shown, whether it has a sign."""
    wanted = need.direction and need.goal == "measure" and _signed(entry)
    sentence = _declares(entry, "it shows the size of the error and its direction", better="perfect") if wanted else ""
    found = (1, sentence) if wanted else _SUITS[need.goal](entry)
    return (_BESIDE, "") if found is None and _advice(entry, need) else found


def _advice(entry: Entry, need: Need) -> list[Reason]:
    """The review's advice on the metric in this situation."""
    advice = [entry.advised[name] for name in need.situations if name in entry.advised]
    parts = [text.partition(": ") for text in advice]
    return [Reason(says, "review", place, "of the review", metric=entry.id, section=place) for place, _, says in parts]


_SUITS: dict[str, Callable[[Entry], Suits]] = {
    "measure": _measures, "compare": _compares, "test": _tests, "train": _trains, "explain": _explains,
    "rank": _measures,
}  # fmt: skip


# -- facts for the situation --------------------------------------------------------------------------

#: How a fact about a metric counts (designed for the situation, for it, or against it), and the sentence.
MADE, FOR, AGAINST = "made", "for", "against"
#: The names of inputs that a metric may need, for a sentence.
_INPUTS = {"features": "the features", "groups": "the groups", "by": "the columns of the segments"}
Said = tuple[str, str]
_GRADES = {"made": MADE, "keeps": FOR}
_WHEN_RARE = {"made": "it is designed for unequal classes", "keeps": "it remains meaningful if one class is rare"}


def _of_task(entry: Entry, need: Need) -> Iterator[Said]:
    if need.task == "ordinal" and "order" in entry.needs:
        yield MADE, _declares(entry, "it takes the order of the classes into account", needs=entry.needs)
    if need.task == "multiclass" and entry.default_lens == "full" and not need.top_label_only:
        yield FOR, _declares(entry, "it covers the whole probability vector", default_lens="full")
    if need.top_label_only and entry.default_lens == "top-label":
        yield FOR, _declares(entry, "it needs only the probability of the predicted class", default_lens="top-label")
    if need.task == "detection" and entry.misses:
        yield MADE, _declares(entry, "it counts missed objects", misses=True)
    used = [_INPUTS[name] for name in entry.needs if name in _INPUTS]
    if need.features and used:
        sentence = f"it uses {used[0]}, so errors of different groups do not cancel"
        yield MADE, _declares(entry, sentence, needs=entry.needs)


def _of_goal(entry: Entry, need: Need) -> Iterator[Said]:
    if need.goal == "measure" and entry.consistent:
        sentence = "it is small exactly when the predictions are close to calibrated ones"
        yield FOR, _declares(entry, sentence, consistent=True)
    if need.goal == "explain" and entry.fields:
        yield FOR, _declares(entry, "it shows more than one aspect of the error", fields=entry.fields)
    if need.test and need.goal != "test":
        own = _declares(entry, _OWN_TEST, has_test=True)
        none = _declares(entry, "it has no test of its own", has_test=False)
        yield (FOR, own) if entry.has_test else (AGAINST, none)
    if need.direction and need.goal != "explain" and _signed(entry):
        yield MADE, _declares(entry, "it is signed, so it shows over- or under-confidence", better="perfect")


def _of_size(entry: Entry, need: Need) -> Iterator[Said]:
    reading = _found(entry, need).expected_by_chance
    near = entry.perfect == 0.0 and entry.better == "lower" and reading is not None and reading <= _LITTLE
    near = near and entry.data_type != "matches"  # how near depends on how many objects an image has
    if need.n < _FEW_ROWS and (entry.unbiased or near):
        yield FOR, Reason(
            "it is near 0 for a calibrated model even on few rows", "study" if near else "calibrary",
            rule="small when calibrated", metric=entry.id, n=need.n, most=2.0 * _LITTLE,
        )  # fmt: skip
    lowest = entry.at_its_end and entry.perfect == entry.range[0]
    if need.n < _ROWS_THAT_READ_HIGH and lowest and (reading is None or reading > _LITTLE):
        about = "" if reading is None else f" (about {number(reading)} when calibrated)"
        falls = reading is None or _falls(entry)
        why = f"by chance on {need.n:,} predictions" if falls else "for a calibrated model too, even on many rows"
        above = f"it is above {number(entry.perfect)} {why}{about}"
        sentence = f"{above}: compare it with the value of a calibrated model"
        whose = "calibrary" if reading is None else "study"
        yield _above(entry, sentence, whose, n=need.n, n_classes=_classes(need), shows=reading)
    still = finding(entry.id, _VERY_MANY_ROWS).expected_by_chance
    if lowest and still is not None and still > _STILL_READS:
        sentence = f"even on {_VERY_MANY_ROWS:,} rows a calibrated model shows {number(still)}"
        yield _above(entry, sentence, "study", n=_VERY_MANY_ROWS, n_classes=2, shows=still)
    if entry.slow_above is not None and need.n > entry.slow_above and (need.task == "multiclass" or entry.slow_binary):
        yield AGAINST, _declares(entry, f"its cost is {entry.cost}", cost=entry.cost)


def _above(entry: Entry, sentence: str, source: str, **known: Any) -> Said:
    return AGAINST, Reason(sentence, source, rule="above by chance", metric=entry.id, **known)


def _of_classes(entry: Entry, need: Need) -> Iterator[Said]:
    if need.rare < _RARE:
        if entry.imbalance:
            sentence = _declares(entry, _WHEN_RARE[entry.imbalance], imbalance=entry.imbalance)
            yield _GRADES[entry.imbalance], sentence
        elif _bins_by_width(entry):
            crowded = "if a class is rare, most predictions fall in one bin"
            yield AGAINST, Reason(crowded, rule="one bin", metric=entry.id, rare=need.rare)
    if (need.n_classes or 0) > _MANY_CLASSES and entry.many_classes:
        sentence = _declares(entry, "it is suitable for very many classes", many_classes=entry.many_classes)
        yield _GRADES[entry.many_classes], sentence


def _bins_by_width(entry: Entry) -> bool:
    return bool(entry.option_defaults.get("binning") == "width")


def _of_trust(entry: Entry, need: Need) -> Iterator[Said]:
    if need.safety and entry.worst_case:
        yield MADE, _declares(entry, "it shows the worst error, not the average one", worst_case=True)
    if need.assurance:
        if entry.parameter_free:
            yield FOR, _declares(entry, "it has no options to choose, so it is reproducible", parameter_free=True)
        if entry.costly or not entry.order_free:
            sentence = entry.order_note or "it depends on folds, widths or draws that must be chosen"
            yield AGAINST, _declares(entry, sentence, costly=entry.costly, order_free=entry.order_free)
    if need.label_noise and entry.label_noise:
        robust = entry.label_noise == "robust"
        sentence = "a few wrong labels hardly change it" if robust else "a single wrong label can change it strongly"
        yield FOR if robust else AGAINST, Reason(sentence, rule="wrong labels", metric=entry.id, robust=robust)


def _of_ties(entry: Entry, need: Need) -> Iterator[Said]:
    if need.ties and entry.family in ("kernel", "curve"):
        yield AGAINST, _declares(entry, "it smooths over the few distinct scores", family=entry.family)
    elif need.ties and entry.family in ("bin", "cumulative"):
        yield FOR, _declares(entry, "it is suited to few distinct scores", family=entry.family)


_RULES = (_of_task, _of_goal, _of_size, _of_classes, _of_trust, _of_ties)


def _judged(entry: Entry, need: Need) -> Recommendation:
    suits, advice = _suits(entry, need), _advice(entry, need)
    assert suits is not None
    graded = [*((MADE, text) for text in advice), *(each for rule in _RULES for each in rule(entry, need))]
    count = {kind: sum(grade == kind for grade, _ in graded) for kind in (MADE, FOR, AGAINST)}
    measured, how = _measured(entry, need)
    step = _STEP * round(measured / _STEP)
    points = round(100 * suits[0] + 10 * count[MADE] + count[FOR] - count[AGAINST] + step, 2)
    reasons = [suits[1], *(_of(entry, text) for grade, text in graded if grade != AGAINST), how]
    if entry.familiar:
        reasons.append(_of(entry, _declares(entry, "it is widely known, so readers can compare values", familiar=True)))
    cautions = [_of(entry, text) for grade, text in graded if grade == AGAINST]
    if not cautions and entry.avoid:
        cautions = [_declares(entry, entry.avoid, avoid=entry.avoid)]
    said = tuple(_of(entry, text) for text in reasons if text)
    return Recommendation(entry.id, entry.name, points, said, Sentence.joined("; ", cautions))


#: Reasons that Table 2 also gives: the words of the reason, and of the advantage in the table.
_IN_TABLE_2 = {
    "it is designed for unequal classes": ("suitable for imbalanced classes", "can be used to study rare classes"),
    "it counts missed objects": ("counts false negatives",),
    "it shows the worst error, not the average one": ("shows the worst case, which safety may require",),
    "it has no options to choose, so it is reproducible": (
        "no parameters to set",
        "no parameters to set, unlike most binned metrics",
    ),
    "it is widely known, so readers can compare values": ("in wide use",),
    "a few wrong labels hardly change it": ("outliers have little weight",),
    "it is suitable for very many classes": ("works for any number of classes",),
    "it takes the order of the classes into account": ("suitable for ordered classes",),
}


def _of(entry: Entry, text: str) -> Reason:
    """A reason with its source: the review if Table 2 says so too, otherwise calibrary."""
    reason = text if isinstance(text, Reason) else _declares(entry, text)
    pros = () if entry.table2 is None else entry.table2.pros
    if reason.source == "calibrary" and set(_IN_TABLE_2.get(str(text), ())) & set(pros):
        return Reason(text, "review", "Table 2", reason.rule, **reason.values)
    return reason


def _measured(entry: Entry, need: Need) -> tuple[float, str]:
    """The study's result on the metric for this goal, from 0 to 1, and in words."""
    found = _found(entry, need)
    if need.goal == "test":
        return _tested(entry, found, need)
    if need.safety:
        return 0.0, ""  # the average order of models does not matter here
    if need.goal in ("measure", "compare", "rank") and entry.proper != "strictly" and found.across is not None:
        sentence = f"it orders {percent(found.across)} of the study's pairs of models correctly"
        if found.across < 0.5:  # which counts against the metric
            return found.across, ""
        return found.across, _share(entry, sentence, found.across)
    return 0.0, ""


def _tested(entry: Entry, found: Finding, need: Need) -> tuple[float, str]:
    """How often the metric's own test detects an error; 0 if it rejects too many calibrated samples.

    For a metric without a test of its own, how often a test with redrawn labels detects an error.
    """
    own = entry.has_test and need.task == "binary"
    power, level = (found.test_power, found.test_level) if own else (found.power, None)
    if power is None:
        return 0.0, ""
    if level is not None and level > _KEEPS:
        sentence = f"its own test rejects {percent(level)} of calibrated samples instead of 5%"
        return 0.0, _share(entry, sentence, level)
    return power, _share(entry, f"it detects {percent(power)} of the study's errors", power)


def _share(entry: Entry, text: str, share: float) -> Reason:
    return Reason(text, "study", rule="shares", metric=entry.id, shares=(share,))


def _found(entry: Entry, need: Need) -> Finding:
    return finding(entry.id, need.n, _classes(need))


def _classes(need: Need) -> int:
    return need.n_classes or (10 if need.task == "multiclass" else 2)
