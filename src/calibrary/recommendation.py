"""Which metric for which question: a short ranked list with reasons, from the facts in the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from calibrary._errors import one_of
from calibrary.lookup import catalogue
from calibrary.metrics.declare import Entry

__all__ = [
    "Recommendation",
    "recommend",
]

TASKS = ("binary", "multiclass", "ordinal", "detection")
GOALS = ("measure", "compare", "test", "train", "explain")


@dataclass(frozen=True)
class Need:
    """The user's situation.

    ``goal``: "measure" how far off, "compare" models, "test" for miscalibration, "train" a model, or "explain" the
    direction and shape of the error. ``rare`` is the share of the rarest class, ``n`` the number of predictions.
    """

    task: str = "binary"
    goal: str = "measure"
    n: int = 1000
    rare: float = 0.5
    test: bool = False
    direction: bool = False
    ties: bool = False


@dataclass(frozen=True)
class Recommendation:
    """A metric, how well it fits, and why (and what to watch)."""

    id: str
    name: str
    points: float
    reasons: tuple[str, ...]
    caution: str


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
) -> list[Recommendation]:
    """Recommend metrics for a task and a goal.

    Examples
    --------
    >>> import calibrary as cal
    >>> [r.id for r in cal.recommend("binary", "compare", most=2)]
    ['bs', 'nll']
    """
    one_of("task", task, TASKS)
    one_of("goal", goal, GOALS)
    need = Need(task, goal, n, rare, test or goal == "test", direction or goal == "explain", ties)
    found = [_judged(e, need) for e in catalogue.values() if _possible(e, need)]
    return sorted(found, key=lambda r: -r.points)[:most]


def _possible(entry: Entry, need: Need) -> bool:
    if (entry.family == "detection") != (need.task == "detection"):
        return False
    if any(n in ("model", "consistency", "query", "groups", "features") for n in entry.needs):
        return False
    return not ("order" in entry.needs and need.task != "ordinal")


def _judged(entry: Entry, need: Need) -> Recommendation:
    said = [(points, reason) for rule in _RULES for points, reason in rule(entry, need)]
    reasons = tuple(reason for points, reason in said if points > 0 and reason)
    cautions = [reason for points, reason in said if points < 0 and reason]
    points = sum(p for p, _ in said)
    return Recommendation(entry.id, entry.name, points, reasons, "; ".join(cautions) or entry.avoid)


Rule = Callable[[Entry, Need], list[tuple[float, str]]]


def _goal(entry: Entry, need: Need) -> list[tuple[float, str]]:
    if need.goal == "compare" and entry.proper == "strictly":
        return [(5, "strictly proper: no model gains by misstating its probabilities")]
    if need.goal == "measure" and entry.consistent:
        return [(4, "small exactly when the predictions are close to calibrated ones")]
    if need.goal == "measure" and entry.proper == "no" and entry.perfect == 0 and entry.better == "lower":
        return [(2, "0 for a calibrated model as data grow")]
    if need.goal == "train" and entry.id in _DIFFERENTIABLE:
        return [(6 if entry.proper == "strictly" else 4, "differentiable: usable as a training loss or penalty")]
    if need.goal == "explain" and entry.better == "perfect":
        return [(4, "its sign says which way the predictions err")]
    return []


def _test(entry: Entry, need: Need) -> list[tuple[float, str]]:
    if not need.test:
        return []
    if entry.has_test:
        return [(4, "has a hypothesis test of its own")]
    return [(-3, "")] if not entry.null else []


def _direction(entry: Entry, need: Need) -> list[tuple[float, str]]:
    if need.direction and need.goal != "explain" and entry.better == "perfect":
        return [(3, "signed: shows over- or under-confidence")]
    return []


def _size(entry: Entry, need: Need) -> list[tuple[float, str]]:
    said: list[tuple[float, str]] = []
    if need.n < 2000 and entry.id in _BIASED_SMALL:
        said.append((-2, f"biased upward on {need.n:,} predictions: compare it with its value for a calibrated model"))
    if need.n < 2000 and entry.id in _UNBIASED:
        said.append((2, "unbiased (or nearly) for a calibrated model at any number of predictions"))
    if entry.slow_above is not None and need.n > entry.slow_above and need.task == "multiclass":
        said.append((-4, f"costs {entry.cost}"))
    return said


def _imbalance(entry: Entry, need: Need) -> list[tuple[float, str]]:
    if need.rare >= 0.1:
        return []
    if entry.id in _FOR_IMBALANCE:
        return [(2, "keeps its meaning when one class is rare")]
    if entry.family == "bin" and entry.id in ("ece", "mce", "rbece"):
        return [(-1, "most predictions fall in one bin when a class is rare")]
    return []


def _ties(entry: Entry, need: Need) -> list[tuple[float, str]]:
    if need.ties and entry.id in ("bkde", "dkde", "smece", "lsece"):
        return [(-1, "smooths over the few distinct scores")]
    return [(1, "natural for few distinct scores")] if need.ties and entry.id in ("ece", "hl", "cumulative") else []


def _known(entry: Entry, need: Need) -> list[tuple[float, str]]:
    points = _FAMILIAR.get(entry.id, 0.0)
    return [(points, "widely reported, so readers can compare" if points >= 1.5 else "")] if points else []


def _task(entry: Entry, need: Need) -> list[tuple[float, str]]:
    if need.task == "ordinal" and "order" in entry.needs:
        return [(5, "knows that the classes are ordered")]
    if need.task == "multiclass" and entry.default_lens == "full":
        return [(1, "sees the whole probability vector")]
    return []


_RULES: tuple[Rule, ...] = (_goal, _test, _direction, _size, _imbalance, _ties, _task, _known)

_DIFFERENTIABLE = {"bs", "nll", "fl", "dual_fl", "mdca", "sbece", "dece", "mmce", "sf1", "dkde", "bkde", "rps"}
_BIASED_SMALL = {"ece", "ace", "tace", "mce", "rbece", "ece_lb", "sece", "msce", "dkde", "piece", "ece_knn", "calbin"}
_UNBIASED = {"skce_uq", "skce_ul", "ce2_db", "dpe", "kccsd"}
_FOR_IMBALANCE = {"ace", "ice", "ecce_mad", "ecce_r", "cis", "ici", "eo", "stratified_bs", "hl"}
#: How often the literature reports a metric: a small bonus, so that equals are ranked by what readers know.
_FAMILIAR = {
    "bs": 2.0, "nll": 1.8, "ece": 2.0, "smece": 1.6, "cis": 1.6, "ici": 1.5, "ecce_mad": 1.5, "ecce_r": 1.2, "hl": 1.2,
    "spiegelhalter": 1.5, "ace": 1.2, "skce_uq": 1.2, "mmce": 1.0, "rps": 1.5, "eo": 1.2, "esce": 1.0, "sce": 1.0,
    "d_ece": 2.0, "laece": 1.8, "qgc": 1.0, "ce2_db": 1.0, "mce": 0.5, "fl": 1.0, "sbece": 1.0, "l1cbod": 1.0,
}  # fmt: skip
