"""The properties of a metric: null distribution, power, ranking, bias, spread, and whether misreporting lowers it.

All properties are means over the simulated settings ("worlds") of estimates from draws; standard errors are those of
the draws, because the settings are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.study.panel import Number
from calibrary.study.shards import Shard
from calibrary.study.world import AnyWorld, World

#: Two settings count as different if their true errors differ by this amount and this factor.
_GAP, _RATIO = 0.01, 1.25
#: The range of true errors of the settings in which bias and spread are compared.
_USUAL = (0.03, 0.08)
_LEVEL = 0.05
_BLOCKS = 10
#: The fewest calibrated draws for a 95% quantile.
FEWEST_NULLS = 10


@dataclass(frozen=True)
class Readings:
    """The values of all metrics in one setting at one sample size, and the true errors."""

    world: AnyWorld
    n: int
    shard: Shard
    truth: Mapping[str, float]

    def values(self, name: str) -> Array:
        """The draws of one metric; empty if it was not computed."""
        if name not in self.shard.names:
            return np.empty(0)
        i = self.shard.names.index(name)
        return np.asarray(self.shard.values[: int(self.shard.drawn[i]), i])

    @property
    def null(self) -> bool:
        return self.world.family == "calibrated"


class Field:
    """One metric in all settings of one sample size, with the sign such that larger is worse."""

    def __init__(self, number: Number, readings: Sequence[Readings]) -> None:
        self.number = number
        self.read = [r for r in readings if len(r.values(number.name))]
        self.errors = [number.error(r.values(number.name)) for r in self.read]
        self.all = list(zip(self.read, self.errors, strict=True))
        self.nulls = {r.world.law_name: e for r, e in self.all if r.null}
        self.others = [(r, e) for r, e in self.all if not r.null]

    @property
    def draws(self) -> int:
        return min((len(e) for _, e in self.others), default=min((len(e) for e in self.nulls.values()), default=0))

    # -- calibrated settings --------------------------------------------------------------------------

    def null(self) -> dict[str, Any]:
        """Mean and standard deviation on calibrated settings, overall and for each distribution."""
        known = {law: e[np.isfinite(e)] for law, e in self.nulls.items()}
        known = {law: e for law, e in known.items() if len(e) > 1}
        if not known:
            return {}
        means, sds = ({law: float(f(e)) for law, e in known.items()} for f in (np.mean, _sd))
        error = np.sqrt(sum(_sd(e) ** 2 / len(e) for e in known.values())) / len(known)
        return {
            "null": _mean(means.values()), "null_sd": _mean(sds.values()), "null_se": float(error),
            "null_by_law": means, "null_q95": {law: float(np.quantile(e, 0.95)) for law, e in known.items()},
        }  # fmt: skip

    # -- power ------------------------------------------------------------------------------------------

    def power(self) -> dict[str, Any]:
        """The power (see :meth:`powers`), by distribution and by type of error, with a standard error."""
        if not self.others:
            return {}
        found = self.powers()
        if not found:
            return {}
        whole = _mean(p for _, p in found)
        left_out = [self.powers(_without(b)) for b in range(_BLOCKS)]
        each = np.array([_mean(p for _, p in block) for block in left_out if block])
        error = np.sqrt((len(each) - 1) / len(each) * np.sum((each - each.mean()) ** 2))
        return {
            "power": whole, "power_se": float(error),
            "power_by_law": _by(found, lambda w: w.law_name), "power_by_family": _by(found, lambda w: w.family),
        }  # fmt: skip

    def power_by_world(self) -> dict[str, float]:
        """The power in each world, by its name."""
        return {world.name: round(power, 3) for world, power in self.powers()}

    def powers(self, kept: Callable[[Array, int], Array] = lambda e, _: e) -> list[tuple[AnyWorld, float]]:
        """The share of samples of each miscalibrated setting above the 95% quantile of the calibrated one."""
        enough = {law: e for law, e in self.nulls.items() if len(e) >= FEWEST_NULLS}
        bars = {law: _quantile(kept(e, i), 1.0 - _LEVEL) for i, (law, e) in enumerate(enough.items())}
        found = []
        for i, (r, e) in enumerate(self.others):
            bar, e = bars.get(r.world.law_name, np.nan), kept(e, i)
            e = e[np.isfinite(e)]
            if np.isfinite(bar) and len(e):
                found.append((r.world, float(np.mean(e > bar))))
        return found

    # -- order ------------------------------------------------------------------------------------------

    def order(self) -> dict[str, Any]:
        """The share of pairs of settings ranked by their true errors, within and across distributions."""
        draws = self.draws
        if draws < 1 or len(self.read) < 3:
            return {}
        table = np.array([e[:draws] for e in self.errors])
        laws = np.array([r.world.law_name for r in self.read])
        found: dict[str, Any] = {}
        for truth, suffix in (("l1", ""), ("distance", "_distance")):
            true = np.array([r.truth[truth] for r in self.read])
            worse, better = np.nonzero((true[:, None] - true[None] >= _GAP) & (true[:, None] >= _RATIO * true[None]))
            same = laws[worse] == laws[better]
            for name, which in (("within", same), ("across", ~same)):
                if which.any():
                    difference = table[worse[which]] - table[better[which]]
                    right = np.where(difference == 0.0, 0.5, difference > 0.0)
                    right[~np.isfinite(difference)] = np.nan
                    share = _means(right)
                    if not len(share):
                        continue
                    found[name + suffix] = float(np.mean(share))
                    found[name + suffix + "_se"] = float(_sd(share) / np.sqrt(len(share))) if len(share) > 1 else None
        return found

    def row(self) -> dict[str, Any]:
        """The results at one sample size that need no other: null distribution, power, order, numbers of draws."""
        return {
            **self.null(), **self.power(), **self.order(),
            "undefined": float(np.mean(~np.isfinite(np.concatenate(self.errors)))),
            "draws": self.draws, "null_draws": min((len(e) for e in self.nulls.values()), default=0),
        }  # fmt: skip

    # -- bias and spread ---------------------------------------------------------------------------------

    def bias(self, limits: Mapping[str, float]) -> dict[str, Any]:
        """For settings of a usual error: bias from its own limit and from the true L1 error, and the spread."""
        usual = [(r, e[np.isfinite(e)]) for r, e in self.others if _USUAL[0] <= r.truth["l1"] <= _USUAL[1]]
        usual = [(r, e) for r, e in usual if len(e) > 1]
        if not usual:
            return {}
        sd = _mean(_sd(e) for _, e in usual)
        own = [float(e.mean()) - limits[r.world.name] for r, e in usual if r.world.name in limits]
        found: dict[str, Any] = {"sd": sd, "bias_l1": _mean(float(e.mean()) - r.truth["l1"] for r, e in usual)}
        if own:
            found["bias"] = _mean(own)
            found["bias_over_sd"] = abs(found["bias"]) / sd if sd > 0.0 else None
        return found

    # -- large samples -----------------------------------------------------------------------------------

    def limits(self) -> dict[str, float]:
        """The mean in every setting, by its name."""
        return {r.world.name: float(np.nanmean(e)) for r, e in self.all if np.isfinite(e).any()}

    def at_limit(self) -> dict[str, Any]:
        """The rank correlation of its means with the true errors, and its mean on calibrated settings."""
        means = self.limits()
        known = [r for r in self.read if r.world.name in means]
        if len(known) < 5:
            return {}
        mine = np.array([means[r.world.name] for r in known])
        found: dict[str, Any] = {"n": known[0].n}
        for truth in ("l1", "l2", "largest", "kuiper", "smooth", "distance"):
            found[f"rho_{truth}"] = spearman(mine, np.array([r.truth[truth] for r in known]))
        over = [means[r.world.name] / r.truth["l1"] for r in known if not r.null and r.truth["l1"] > 0.0]
        null = [means[r.world.name] for r in known if r.null]
        found["over_l1"] = float(np.median(over)) if over else None
        found["null"] = _mean(null) if null else None
        return found


def lie_ratio(number: Number, honest: Sequence[Readings], lies: Sequence[Readings]) -> dict[str, Any]:
    """The smallest value of a misreport (rounded, constant, shrunk) over that of the true report; median."""
    ratios: dict[str, dict[str, float]] = {}
    for r in honest:
        true_report = number.error(r.values(number.name))
        true_report = true_report[np.isfinite(true_report)]
        few = not r.null or len(true_report) < 2
        if few or true_report.mean() < 2.0 * _sd(true_report) / np.sqrt(len(true_report)):
            continue
        for lie in lies:
            values = number.error(lie.values(number.name))
            # a report that is sometimes undefined (an infinite log loss) gains nothing
            same = lie.world.law_name == r.world.law_name and len(values) and true_report[: len(values)].mean() > 0.0
            if same and np.isfinite(values).all():
                # compared with the draws of the same rows under the true report
                ratios.setdefault(lie.world.report, {})[r.world.law_name] = float(
                    values.mean() / true_report[: len(values)].mean()
                )
    laws = {law for by in ratios.values() for law in by}
    if not laws:
        return {}
    best = {law: min(by[law] for by in ratios.values() if law in by) for law in laws}
    return {
        "lie": float(np.median(list(best.values()))),
        "lie_by_report": {report: float(np.median(list(by.values()))) for report, by in ratios.items()},
    }


def binning_sensitivity(numbers: Sequence[Number], readings: Sequence[Readings]) -> dict[str, Any]:
    """How much the ECE of the same predictions differs between usual binnings, and how often the ranking changes."""
    known = [r for r in readings if all(len(r.values(number.name)) for number in numbers)]
    if len(numbers) < 2 or len(known) < 2:
        return {}
    draws = min(len(r.values(number.name)) for r in known for number in numbers)
    cube = np.array([[r.values(number.name)[:draws] for number in numbers] for r in known])
    with np.errstate(divide="ignore", invalid="ignore"):
        fold = cube.max(axis=1) / cube.min(axis=1)
    null = np.array([r.null for r in known])
    found: dict[str, Any] = {"draws": draws}
    for name, which in (("fold", ~null), ("fold_calibrated", null)):
        if which.any():
            found[name] = float(np.nanmedian(fold[which]))
    i, j = np.triu_indices(len(known), 1)
    sign = np.sign(cube[i] - cube[j])
    found["order_depends"] = float(np.mean(sign.min(axis=1) != sign.max(axis=1)))
    return found


def test_levels(number: Number, readings: Sequence[Readings]) -> dict[str, Any]:
    """The share of p-values up to 5% on calibrated and on miscalibrated settings."""
    shares = [(r, _rejected(r.values(number.name))) for r in readings if len(r.values(number.name))]
    shares = [(r, s) for r, s in shares if len(s)]
    null = [s for r, s in shares if r.null]
    if not null:
        return {}
    rate = np.array([s.mean() for s in null])
    error = np.sqrt(sum(s.mean() * (1.0 - s.mean()) / len(s) for s in null)) / len(null)
    found = [(r.world, float(s.mean())) for r, s in shares if not r.null]
    by_law = {r.world.law_name: float(s.mean()) for r, s in shares if r.null}
    return {
        "level": float(rate.mean()), "level_se": float(error), "level_by_law": by_law,
        "power": _mean(p for _, p in found) if found else None, "power_by_family": _by(found, lambda w: w.family),
        "power_by_law": _by(found, lambda w: w.law_name), "draws": min(len(s) for _, s in shares),
    }  # fmt: skip


test_levels.__test__ = False  # type: ignore[attr-defined]


def class_measures(number: Number, readings: Sequence[Readings]) -> dict[str, Any]:
    """The results of a metric of several classes at one sample size: mean and power by family and distribution."""
    found: dict[str, Any] = {}
    for law in dict.fromkeys(r.world.law_name for r in readings):
        here = Field(number, [r for r in readings if r.world.law_name == law])
        if law not in here.nulls:
            continue
        null = here.null()
        power = here.power()
        if null:
            found[law] = {
                "calibrated": null["null"], "sd": null["null_sd"],
                **{r.world.family: float(np.nanmean(e)) for r, e in here.others if np.isfinite(e).any()},
                "power": power.get("power_by_family", {}), "draws": here.draws,
            }  # fmt: skip
    return found


# -- helpers -------------------------------------------------------------------------------------------


def spearman(a: Array, b: Array) -> float | None:
    """Rank correlation; None if one of the two is constant."""
    x, y = _ranks(a), _ranks(b)
    if min(float(np.ptp(x)), float(np.ptp(y))) == 0.0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(x: Array) -> Array:
    _, inverse, count = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2.0)[inverse.ravel()])


def _without(block: int) -> Callable[[Array, int], Array]:
    """All draws except those of one block, for the jackknife."""
    return lambda e, world: e[(np.arange(len(e)) + world) % _BLOCKS != block]


def _rejected(p: Array) -> Array:
    return np.asarray(p[np.isfinite(p)] <= _LEVEL, dtype=np.float64)


def _quantile(e: Array, q: float) -> float:
    e = e[np.isfinite(e)]
    return float(np.quantile(e, q)) if len(e) > 1 else np.nan


def _means(table: Array) -> Array:
    """Column means over defined values, for columns with at least one."""
    known = np.isfinite(table)
    columns = known.any(axis=0)
    return np.asarray(np.nansum(table[:, columns], axis=0) / known[:, columns].sum(axis=0))


def _sd(e: Array) -> float:
    return float(np.std(e, ddof=1)) if len(e) > 1 else 0.0


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


def _by(found: Sequence[tuple[AnyWorld, float]], of: Callable[[AnyWorld], str]) -> dict[str, float]:
    names = dict.fromkeys(of(world) for world, _ in found)
    return {name: _mean(p for world, p in found if of(world) == name) for name in names}


def is_honest_binary(r: Readings) -> bool:
    """Whether the setting has two classes and the model reports its true confidence."""
    return isinstance(r.world, World) and r.world.report == "honest"
