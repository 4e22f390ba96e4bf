"""The condition under which each kind of claim is true, as a function of the values in it and of a known truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import RULES, Claim

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class KnownTruth:
    """The true properties of a simulated sample.

    Attributes
    ----------
    c, q : stated and true probability of the view's event, row by row
    stated, true : stated and true probabilities of all classes, if there are several
    of_metric : true properties of the metric in a claim, determined without the sentence
    measured : numbers of these rows by their names, computed without the sentence
    y : outcome in the view, row by row
    parts : the rows of each segment or period by name
    """

    c: _Array
    q: _Array
    stated: _Array | None = None
    true: _Array | None = None
    of_metric: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, _Array] = field(default_factory=dict)
    y: _Array | None = None

    @classmethod
    def about(cls, facts: Mapping[str, Any]) -> KnownTruth:
        """True properties of a metric, for a claim that does not concern data."""
        half = np.array([0.5])
        return cls(half, half, of_metric=facts)

    @property
    def calibrated(self) -> bool:
        """Whether every stated probability is the true one, in the view and for every class."""
        same = bool(np.allclose(self.c, self.q, atol=1e-12))
        if self.stated is None or self.true is None:
            return same
        return same and bool(np.allclose(self.stated, self.true, atol=1e-12))

    @property
    def slope(self) -> float:
        """Cox's slope in the population: the logistic regression of the true frequency on the stated log odds."""
        inside = (self.c > 0.0) & (self.c < 1.0)
        x, q = np.log(self.c[inside] / (1.0 - self.c[inside])), self.q[inside]
        design, beta = np.column_stack([np.ones_like(x), x]), np.array([0.0, 1.0])
        for _ in range(100):
            fitted = 1.0 / (1.0 + np.exp(-design @ beta))
            weight = fitted * (1.0 - fitted) + 1e-12
            step = np.linalg.solve((design * weight[:, None]).T @ design, design.T @ (q - fitted))
            beta = beta + np.clip(step, -0.5, 0.5)  # with few rows a full Newton step may increase the loss
            if np.abs(step).max() < 1e-10:
                break
        return float(beta[1])


_Condition = Callable[[Mapping[str, Any], KnownTruth], bool]
#: The name of a rule: its condition.
TRUE: dict[str, _Condition] = {}


def _true(name: str) -> Callable[[_Condition], _Condition]:
    def register(condition: _Condition) -> _Condition:
        assert name in RULES
        TRUE[name] = condition
        return condition

    return register


def holds(claim: Claim, truth: KnownTruth) -> bool:
    """Whether the claim is true for this sample."""
    return bool(TRUE[claim.rule](claim.values, truth))


# -- the rules ------------------------------------------------------------------------------------------


@_true("miscalibrated")
def _miscalibrated(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return not truth.calibrated


@_true("direction")
def _direction(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(values["gap"] * float(np.mean(truth.q - truth.c)) > 0.0)


@_true("both ways")
def _both(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool((truth.q > truth.c + 1e-9).any() and (truth.q < truth.c - 1e-9).any())


@_true("over-confident somewhere")
def _over(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool((truth.q < truth.c - 1e-9).any())


@_true("under-confident somewhere")
def _under(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool((truth.q > truth.c + 1e-9).any())


@_true("spread")
def _spread(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    if values.get("reversed", False):
        return truth.slope < 0.0
    return bool((values["slope"] - 1.0) * (truth.slope - 1.0) > 1e-12)


@_true("where")
def _where(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    # a claim about a bin of the sample: its ends belong to the bin as in the page's bins, up to rounding of the text
    inside = (truth.c > values["low"] - 1e-12) & (truth.c <= values["high"] + 1e-12)
    gap = float(np.mean((truth.q - truth.c)[inside])) if inside.any() else 0.0
    return bool(gap * (values["label"] - values["confidence"]) > 0.0)


@_true("class")
def _of_class(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    if truth.stated is None or truth.true is None:
        return False
    gap = (truth.true - truth.stated)[:, int(values["index"])]
    return bool(float(gap.mean()) * (values["occurred"] - values["expected"]) > 0.0)


@_true("interval beyond the perfect value")
def _beyond(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return not truth.calibrated


@_true("sureness")
def _sureness(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(values["z"] * float(np.mean((truth.q - truth.c) * (1.0 - 2.0 * truth.c))) > 0.0)


@_true("claimed spread")
def _claimed_spread(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    more = truth.of_metric.get("true less claimed spread")
    return more is not None and bool(values["sign"] * more > 0.0 if values["sign"] else more != 0.0)


@_true("ensemble is wrong")
def _ensemble_wrong(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return values["what"] not in truth.of_metric.get("right", (values["what"],))


@_true("detects")
def _detects(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    true = truth.of_metric.get("true AUROC", {}).get(values.get("what"))
    return true is not None and bool(values["sign"] * (true - 0.5) > 0.0)


@_true("interval")
def _interval(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    true = truth.of_metric.get("true values", {}).get(values.get("metric"))
    return true is not None and bool(values["low"] - 1e-12 <= true <= values["high"] + 1e-12)


@_true("bound")
def _bound(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    true = truth.of_metric.get("true values", {}).get(values.get("metric"))
    return true is not None and bool(values["condition"].holds(true)) is values["holds"]


@_true("part is miscalibrated")
def _part(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    rows = truth.parts.get(values.get("part", ""))
    return rows is not None and not np.allclose(truth.c[rows], truth.q[rows], atol=1e-12)


@_true("segments differ")
def _segments_differ(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    own = [rows for name, rows in truth.parts.items() if name.startswith(f"{values.get('by')} = ")]
    gaps = [float(np.mean((truth.q - truth.c)[rows])) for rows in own]
    return len(gaps) > 1 and max(gaps) - min(gaps) > 1e-9


@_true("assumption fails")
def _assumption_fails(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return truth.of_metric.get("assumption holds") is False


@_true("truth is not the map")
def _not_the_map(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return truth.of_metric.get("map is true") is False


@_true("trend")
def _trend(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(values["slope"] * truth.of_metric.get("trend", 0.0) > 0.0)


@_true("worth acting")
def _worth(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    worth = _worth_of_acting(values["threshold"], truth)
    default = worth if values["default"] == "every row" else 0.0 * worth
    return bool(values["sign"] * float(np.mean(np.where(truth.c >= values["threshold"], worth, 0.0) - default)) > 0.0)


@_true("decides better")
def _decides_better(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    t = values["threshold"]
    return bool(float(np.mean(_worth_of_acting(t, truth) * ((truth.q >= t) * 1.0 - (truth.c >= t)))) > 0.0)


def _worth_of_acting(threshold: float, truth: KnownTruth) -> _Array:
    """The expected net benefit of acting on each row."""
    return truth.q - (1.0 - truth.q) * threshold / (1.0 - threshold)


@_true("recalibration helps")
def _helps(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return not truth.calibrated


@_true("better of two models")
def _better_of_two(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    true = truth.of_metric.get("true values of models", {})
    better, worse = (true.get(values[which], {}).get(values["metric"]) for which in ("better", "worse"))
    if better is None or worse is None:
        return False
    return bool(better < worse) if values["lower"] else bool(better > worse)


@_true("in its range")
def _in_range(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = values["range"]
    return bool(low <= values["value"] <= high)


@_true("parts add up")
def _parts(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(np.isclose(values["over"] + values["under"], values["whole"], atol=1e-12))


@_true("is the value")
def _value(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(np.isclose(values["stated"], values["computed"], rtol=1e-9, equal_nan=True))


@_true("measured")
def _measured(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    stated = values.get("stated", {"nothing": 0.0})
    return all(
        name in truth.measured and np.isclose(value, truth.measured[name], rtol=1e-6, atol=1e-9, equal_nan=True)
        for name, value in stated.items()
    )


@_true("range")
def _range(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    if truth.y is None:
        return False
    inside = (truth.c > values["low"] - 1e-12) & (truth.c <= values["high"] + 1e-12)
    found = (float(inside.sum()), float(truth.c[inside].mean()), float(truth.y[inside].mean()))
    return bool(np.allclose((values["count"], values["confidence"], values["label"]), found, rtol=1e-9))


@_true("by chance")
def _by_chance(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    drawn = truth.of_metric.get("drawn when calibrated")
    if drawn is None:
        return False
    # both sides are means and quantiles of draws: the tolerance is five of their standard errors
    noise = 5.0 * np.sqrt(1.0 / len(drawn) + 1.0 / truth.of_metric["draws"])
    error = noise * drawn.std()
    if truth.of_metric.get("units"):  # the spread is estimated from n units, with a relative error of 1/sqrt(2n)
        error += 5.0 * drawn.mean() / np.sqrt(2.0 * truth.of_metric["units"])
    below = 1.0 if "high" not in values else float(np.mean(drawn <= values["high"] + 1e-12))
    return bool(abs(values["mean"] - drawn.mean()) <= error + 1e-12 and below >= 0.95 - noise * np.sqrt(0.95 * 0.05))


@_true("planned")
def _planned(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    power = truth.of_metric.get("power of")
    return power is not None and abs(values["power"] - power(values["n"], values["k"])) <= 4.0 * np.sqrt(
        0.5 / values["draws"]
    )


# -- about metrics: the sentences of explain and recommend ------------------------------------------------


@_true("declared")
def _declared(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    said = {"id": values.get("metric"), **values.get("declared", {})}
    if "line" in values:  # for explain: the text is that of the field it quotes
        said["line"] = truth.of_metric["line of"](values["line"]) if "line of" in truth.of_metric else None
        return bool(said["line"] == values["stated"])
    return "id" in truth.of_metric and all(truth.of_metric.get(name) == value for name, value in said.items())


def _line_of_explain(name: str) -> None:
    """A line of ``explain``: the true value is computed by ``of_metric`` under the name of the rule."""

    @_true(name)
    def true(values: Mapping[str, Any], truth: KnownTruth) -> bool:
        found = truth.of_metric.get(name)
        return found is not None and bool(found(values))


for _name in (
    "meaning",
    "names lead here",
    "values lie in the range",
    "ideal",
    "propriety",
    "tested",
    "weights count",
    "lenses taken",
    "inputs needed",
    "options taken",
    "turns",
    "table 2",
    "coverage",
):
    _line_of_explain(_name)


@_true("strictly proper")
def _strictly_proper(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(truth.of_metric.get("strictly proper", False))


@_true("small when calibrated")
def _small(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return "calibrated" in truth.of_metric and abs(truth.of_metric["calibrated"](values["n"])) <= values["most"]


@_true("above by chance")
def _above_by_chance(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    if "calibrated" not in truth.of_metric or values.get("metric") != truth.of_metric.get("id"):
        return False
    stated, n, k = values["shows"], values["n"], values["n_classes"]
    perfect = truth.of_metric.get("perfect")
    if perfect != truth.of_metric["range"][0] or (stated is not None and stated != truth.of_metric["study"](n, k)):
        return False
    # above 2,000 rows the number of the study is enough, and no models are simulated
    return n > 2000 or bool(truth.of_metric["calibrated"](n) > perfect + 1e-6)


@_true("one bin")
def _one_bin(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return "largest bin" in truth.of_metric and truth.of_metric["largest bin"](values["rare"]) > 0.5


@_true("wrong labels")
def _wrong_labels(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    moved = truth.of_metric.get("moved by a wrong label")
    if moved is None:
        return False
    return bool(moved() <= 0.05) if values["robust"] else bool(moved() > 0.05)


@_true("vanishes")
def _vanishes(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    at = truth.of_metric.get("calibrated means", {})
    sizes = sorted(at)
    return len(sizes) > 0 and (len(sizes) == 1 or at[sizes[-1]] <= max(0.75 * at[sizes[0]], 1e-3))


@_true("two-sided")
def _two_sided(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = truth.of_metric.get("range", (0.0, 0.0))
    return all(low < ideal < high for ideal in values.get("ideals", (0.0,)))


@_true("shares")
def _shares(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    stated = [share for share in values.get("shares", (-1.0,)) if share is not None]
    return all(0.0 <= share <= 1.0 for share in stated) and set(stated) <= set(truth.of_metric.get("shares", stated))


@_true("of the review")
def _of_the_review(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return values.get("section") in truth.of_metric.get("sections", ())


@_true("values in the range")
def _values_in_range(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = values.get("range", (0.0, 0.0))
    return all(low <= value <= high for value in values.get("values", (1.0,)) if value is not None)
