"""Which of several models is better: the answer of a page or a table, from the comparisons of the models.

Every statement that one model is better, and every colour of a table, follows the p-value adjusted for all comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.numbers import number, percent, pvalue
from calibrary.inference import Comparison
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.entry import Entry
from calibrary.reporting.stored import Comparisons

#: Up to this number of models a sentence names them; of more it gives their number.
_NAMED = 4
#: What a page compares first, as (which metrics, what a better model does).
_ROLES: tuple[tuple[Callable[[Entry], bool], str], ...] = (
    (lambda e: e.judges, "is better calibrated"),
    (lambda e: e.measures == "ranking", "ranks better"),
    (lambda e: e.proper == "strictly", "has the better {}"),
)


def turned(c: Comparison, first: str) -> Comparison:
    """The same comparison as the difference of this model minus the other one."""
    if c.a == first:
        return c
    return replace(c, a=c.b, b=c.a, value_a=c.value_b, value_b=c.value_a, value=-c.value, low=-c.high, high=-c.low)


def better_of(metric: str, c: Comparison) -> str:
    """The significantly better model by the adjusted p-value; empty without evidence, or if the sign does not say it.

    The difference of two signed numbers does not say which is nearer to the perfect value; see ``nearer``.
    """
    better = catalogue[metric].better
    if not significant(c) or better not in ("lower", "higher"):
        return ""
    return c.a if (c.high < 0.0) == (better == "lower") else c.b


def nearer(metric: str, c: Comparison, a: Any, b: Any) -> str:
    """The model whose signed number is significantly nearer to its perfect value: empty unless both differ clearly.

    a is nearer than b if (a - b)(a + b - 2 perfect) is negative; ``a`` and ``b`` have the intervals of the numbers.
    """
    perfect = catalogue[metric].perfect
    if not significant(c) or perfect is None or catalogue[metric].better != "perfect":
        return ""
    if a is None or b is None or None in (a.low, a.high, b.low, b.high):
        return ""
    above, below = a.low + b.low > 2.0 * perfect, a.high + b.high < 2.0 * perfect
    if not above and not below:
        return ""
    return c.a if (c.high < 0.0) == above else c.b


def significant(c: Comparison) -> bool:
    """Whether two models differ, after adjustment for all comparisons."""
    return c.pvalue_adjusted <= 1.0 - c.level and (c.low > 0.0 or c.high < 0.0)


def best_of(values: Mapping[str, float], metric: str) -> str:
    """The model with the best value of a metric."""
    return min(values, key=lambda name: far(values[name], metric))


def far(value: float, metric: str) -> float:
    """How far a value is from the best: larger is worse."""
    entry = catalogue[metric]
    return {"lower": value, "higher": -value}.get(entry.better, abs(value - (entry.perfect or 0.0)))


def answer(comparisons: Comparisons, primary: str | None = None) -> tuple[Sentence, ...]:
    """Which model is better calibrated, which ranks better and which has the better score, one sentence for each.

    Of three and more models, the best by the first metric is compared with each other model.
    """
    by_metric: dict[str, list[Comparison]] = {}
    for metric, c in comparisons:
        by_metric.setdefault(metric, []).append(c)
    chosen = _first_of_each_role(by_metric, primary)
    if not chosen:
        return ()
    values = values_of(by_metric[chosen[0][0]])
    best = best_of(values, chosen[0][0])
    names = list(values)
    said = []
    for metric, does in chosen:
        pairs = by_metric[metric]
        if len(names) == 2:
            said.append(_of_two(metric, pairs[0], does))
        else:
            against = [turned(c, best) for c in pairs if best in (c.a, c.b)]
            said.append(_of_many(metric, best, against, does, lead=metric == chosen[0][0], n=len(names)))
    said.append(Sentence(_adjusted(comparisons, len(names))))
    return tuple(said)


def metrics_of(comparisons: Comparisons, primary: str | None = None) -> list[str]:
    """The metrics of the answer."""
    return [metric for metric, _ in _first_of_each_role(dict(comparisons), primary)]


def _adjusted(comparisons: Comparisons, models: int) -> str:
    every = len({m for m, _ in comparisons}) * models * (models - 1) // 2
    best = "" if models == 2 else ", because the best model was chosen on these rows"
    all_of = f"all {every} comparisons of two models by one number" if models > 2 else f"{every} comparisons"
    return f"p-values are adjusted for {all_of}{best}." if every > 1 else "The one comparison needs no adjustment."


def _first_of_each_role(ids: Iterable[str], primary: str | None) -> list[tuple[str, str]]:
    ids = [id for id in ids if id in catalogue]
    ordered = [primary, *(id for id in ids if id != primary)] if primary in ids else ids
    found = []
    for fits, does in _ROLES:
        id = next((id for id in ordered if fits(catalogue[id]) and catalogue[id].better != "perfect"), None)
        if id is not None:
            found.append((id, does.format(_name(id))))
    return found


def _name(metric: str) -> str:
    return catalogue[metric].spoken or catalogue[metric].name


def values_of(pairs: Sequence[Comparison]) -> dict[str, float]:
    """The value of each model, in the order in which the models were named."""
    values: dict[str, float] = {}
    for c in pairs:
        values.setdefault(c.a, c.value_a)
        values.setdefault(c.b, c.value_b)
    return values


def _of_two(metric: str, c: Comparison, does: str) -> Sentence:
    better = better_of(metric, c)
    numbers = f"{_name(metric)} {number(c.value_a)} of {c.a}, {number(c.value_b)} of {c.b}; {c.a} minus {c.b}: "
    interval = f", {percent(c.level)} interval {number(c.low)} to {number(c.high)}" if c.low == c.low else ""
    shown = measured(f"{numbers}{number(c.value)}{interval}, {_p(c)}", **{c.a: c.value_a, c.b: c.value_b})
    if not better:
        adjusted = "" if c.low <= 0.0 <= c.high else " after adjustment"
        return Sentence.joined("", [f"There is no evidence{adjusted} that one of the two {does} (", shown, ")."])
    other = c.b if better == c.a else c.a
    claim = _claim(f"{better} {does} than {other}", metric, better, other)
    other_way = "; the estimates have the other order, because they are biased by chance, which the interval corrects"
    return Sentence.joined("", [claim, " (", shown, ")", other_way if c.value * (c.low + c.high) < 0.0 else "", "."])


def _p(c: Comparison) -> str:
    return f"adjusted {pvalue(c.pvalue_adjusted, c.n_resamples or 10**6)}"


def _claim(text: str, metric: str, better: str, worse: str) -> Claim:
    lower = catalogue[metric].better == "lower"
    return Claim(text, "better of two models", metric=metric, better=better, worse=worse, lower=lower)


def _of_many(metric: str, best: str, against: Sequence[Comparison], does: str, *, lead: bool, n: int) -> Sentence:
    """The best model by the first metric against each other model."""
    wins = [c for c in against if better_of(metric, c) == best]
    losses = [c for c in against if better_of(metric, c) == c.b]
    open_ = [c for c in against if not better_of(metric, c)]
    parts: list[str] = []
    if lead:
        word = "lowest" if catalogue[metric].better == "lower" else "highest"
        value = against[0].value_a
        parts.append(
            measured(f"Of {n} models, {best} has the {word} {_name(metric)}, {number(value)}", **{best: value})
        )
    if wins:
        claims = [_claim("", metric, best, c.b) for c in wins]
        text = f"{'it' if lead else best} {does} than {_list(wins)}"
        parts.append(Sentence(text, *claims))
    if losses:
        claims = [_claim("", metric, c.b, best) for c in losses]
        parts.append(Sentence(f"{_list(losses)} {_plural(does, losses)} than {best}", *claims))
    if open_:
        others = _list(open_, p=False) if wins or losses else "any other model"
        parts.append(f"there is no evidence of a difference between {best} and {others} in the {_name(metric)}")
    joined = Sentence.joined("; ", parts)
    return Sentence(f"{joined[:1].upper() if not joined.startswith(best) else joined[:1]}{joined[1:]}.", *joined.claims)


def _plural(does: str, models: Sequence[Comparison]) -> str:
    verb, rest = does.split(" ", 1)
    return does if len(models) == 1 else f"{({'is': 'are', 'has': 'have', 'ranks': 'rank'})[verb]} {rest}"


def _list(found: Sequence[Comparison], p: bool = True) -> str:
    """The other models with their values and p-values, or their number."""
    if len(found) > _NAMED:
        most = max(found, key=lambda c: c.pvalue_adjusted)
        return f"{len(found)} of the other models" + (f" (largest {_p(most)})" if p else "")
    named = [f"{c.b} ({number(c.value_b)}{f', {_p(c)}' if p else ''})" for c in found]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
