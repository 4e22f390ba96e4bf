"""Intervals over completed data sets: Rubin's rules, on the scale on which an estimate is nearly normal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError
from calibrary.data import predictions
from calibrary.data.checks import Array, one_each
from calibrary.data.identity import refuse_misaligned
from calibrary.data.predictions import Predictions
from calibrary.inference.methods.scales import how, on_scale, poolable, scale_of
from calibrary.inference.ranges import range_of
from calibrary.inference.result import IntervalResult
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.declare import Result
from calibrary.question import PLAIN

#: Settings of predictions that completed data sets can have.
_READ = ("labels", "pos_label", "percent", "rescale")


@dataclass(frozen=True)
class RubinResult(Result):
    """How the estimates of m completed data sets were pooled, on their scale.

    Attributes
    ----------
    m, scale : number of data sets, and the scale
    estimate_on_scale, standard_error : the mean of the estimates, and the root of ``total``
    within, between, total : mean variance within a data set, variance between them, and within + (1 + 1/m) between
    df : degrees of freedom of Barnard and Rubin
    fmi : fraction of missing information
    each : the estimate of each data set
    """

    m: int
    scale: str
    estimate_on_scale: float
    standard_error: float
    within: float
    between: float
    total: float
    df: float
    fmi: float
    each: Array


def completed(y_true: Any, y_prob: Any, imputations: Any, settings: Mapping[str, Any]) -> list[Predictions]:
    """The completed data sets: stacked rows with the number of each row's data set, or lists with ``True``."""
    if imputations is True:
        if not isinstance(y_prob, list | tuple) or not all(np.ndim(one) == 1 for one in y_prob):
            raise RefusedCallError(
                "imputations=True needs y_prob as a list of arrays, one for each completed data set; for stacked rows "
                "pass imputations= the number of each row's data set"
            )
        several = isinstance(y_true, list | tuple) and len(y_true) == len(y_prob) and np.ndim(y_true[0]) == 1
        labels = y_true if several else [y_true] * len(y_prob)
        sizes = [len(one) for one in y_prob]
        check_sizes(sizes)
        return [predictions(y, p, **settings) for y, p in zip(labels, y_prob, strict=True)]
    refuse_misaligned(y_true=y_true, y_prob=y_prob, imputations=imputations)
    p = predictions(y_true, y_prob, **settings)
    given = imputation_numbers(imputations, p.n, f"y_true has {p.n:,} rows")
    _, of, sizes_of = np.unique(given, return_inverse=True, return_counts=True)
    check_sizes(sizes_of.tolist())
    return [p.part(np.flatnonzero(of.ravel() == i)) for i in range(len(sizes_of))]


def imputation_numbers(imputations: Any, n: int, rows: str) -> NDArray[Any]:
    """The data set of each row, checked."""
    wanted, remedy = "the data set of each row", "give each row the number of its data set"
    return one_each(imputations, "imputations", n, rows, wanted, remedy)


def check_sizes(sizes: list[int]) -> None:
    """Refuse a single data set, and data sets of different sizes."""
    if len(sizes) < 2:
        raise RefusedError(
            f"imputations: there is 1 data set, of {sizes[0] if sizes else 0:,} rows; pass at least 2, or leave "
            "imputations out"
        )
    if len(set(sizes)) > 1:
        raise RefusedError(
            f"imputations: the data sets have {', '.join(f'{n:,}' for n in sizes)} rows; each must hold all rows once"
        )


def refuse_beside_imputations(given: Mapping[str, Any]) -> None:
    """Raise an error for settings that have no meaning over completed data sets."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise RefusedCallError(f"{name}={value!r} has no use beside imputations: leave {name} out")


def imputed_interval(
    metric: Any,
    y_true: Any,
    y_prob: Any,
    imputations: Any,
    options: dict[str, Any],
    one: Callable[..., IntervalResult],
    level: float,
    clip: bool = True,
) -> IntervalResult:
    """The interval of a metric over completed data sets; ``one`` makes that of a single data set."""
    if not isinstance(metric, str):
        entry = getattr(metric, "entry", metric)
        metric = getattr(entry, "key", None)
        if metric is None:
            raise RefusedError("imputations are for metrics of the catalogue: pass a metric's id")
    key = poolable(metric, "averaged over imputations").key
    read = {name: options.pop(name) for name in _READ if name in options}
    refuse_beside_imputations({name: options.pop(name, None) for name in ("sample_weight", "units", "blocks")})
    parts = completed(y_true, y_prob, imputations, read)
    return rubin_interval(key, parts, options, one, level, clip)


def rubin_interval(
    key: str,
    parts: list[Predictions],
    options: Mapping[str, Any],
    one: Callable[..., IntervalResult],
    level: float,
    clip: bool = True,
) -> IntervalResult:
    """As :func:`imputed_interval`, for checked data sets."""
    if parts[0].k != 2 or parts[0].fractional:
        raise RefusedError("imputations are for labels of two classes: pass 0 and 1, and the probability of the event")

    def spread(name: str, part: Predictions) -> tuple[float, float]:
        found = one(name, part, **options)
        return float(found.value), float(found.standard_error) ** 2

    found = []
    for i, part in enumerate(parts):
        each = on_scale(key, part, spread=spread) if not options else _apart(key, part, spread)
        if each.why:
            raise RefusedError(
                f"imputations: {key} cannot be pooled, because in data set {i + 1} of {len(parts)} {each.why}"
            )
        found.append(each)
    scale = scale_of(key)
    q, u = (np.array([getattr(each, name) for each in found]) for name in ("value", "variance"))
    pooled = rubin(q, u, parts[0].n - (2 if key.startswith("cis.") else 1), scale.name)
    half = float(scipy.special.stdtrit(pooled.df, 0.5 + level / 2.0)) * pooled.standard_error
    mean = pooled.estimate_on_scale
    estimate, low, high = (float(scale.back(x)) for x in (mean, mean - half, mean + half))
    if clip:
        bounds = range_of(poolable(key, ""), PLAIN, parts[0])
        low, high = (min(max(x, bounds[0]), bounds[1]) for x in (low, high))
    slope = {"log": estimate, "logit": estimate * (1.0 - estimate)}.get(scale.name, 1.0)
    note = (
        f"{len(parts)} completed data sets pooled by Rubin's rules on the {scale.name} scale, with {how(key)} in each"
    )
    notes = dict.fromkeys([note, *(each.note for each in found if each.note)])
    return IntervalResult(
        estimate, low, high, level, slope * pooled.standard_error, method="rubin", note="; ".join(notes),
        draws=np.asarray(scale.back(q)), rubin=pooled,
    )  # fmt: skip


def _apart(key: str, part: Predictions, spread: Any) -> Any:
    """A metric with options, whose formula in the table would not hold."""
    from calibrary.inference.methods.scales import OnScale

    if scale_of(key).name != "identity":
        raise RefusedError(f"{key} takes no further options beside imputations: leave them out")
    value, variance = spread(key, part)
    return OnScale(value, variance, "" if math.isfinite(value + variance) else "it has no finite value or variance")


def rubin(q: Array, u: Array, nu: float, scale: str) -> RubinResult:
    """Rubin's rules for estimates q with variances u; nu is the degrees of freedom of the complete data."""
    m = len(q)
    within, between = float(u.mean()), float(q.var(ddof=1))
    extra = (1.0 + 1.0 / m) * between
    total = within + extra
    share = extra / total
    of_data = (nu + 1.0) / (nu + 3.0) * nu * (1.0 - share)
    old = (m - 1.0) / share**2 if share > 0.0 else math.inf
    df = of_data if math.isinf(old) else old * of_data / (old + of_data)
    r = extra / within
    fmi = (r + 2.0 / (df + 3.0)) / (r + 1.0)
    return RubinResult(m, scale, float(q.mean()), math.sqrt(total), within, between, total, df, fmi, q)


# -- tables of many metrics ---------------------------------------------------------------------------


def evaluated(
    parts: list[Predictions],
    table_of: Callable[[Predictions], Any],
    options: Mapping[str, Any],
    one: Callable[..., IntervalResult] | None,
    level: float,
) -> Any:
    """The table of the first data set with pooled values; metrics that cannot be pooled are named in ``skipped``.

    ``table_of`` evaluates one data set, and ``one`` makes the interval of one metric there, if intervals are wanted.
    """
    tables = [table_of(part) for part in parts]
    rows, skipped = [], dict(tables[0].skipped)
    for row in tables[0].rows:
        try:
            entry = poolable(row.label, "averaged over imputations")
            if one is not None:
                own = {name: value for name, value in options.items() if name in entry.options}
                found = rubin_interval(entry.key, parts, own, one, level)
                names = ("value", "low", "high", "level", "standard_error", "note")
                rows.append(replace(row, **{name: getattr(found, name) for name in names}, method="rubin"))
                continue
        except RefusedError as error:
            skipped[row.label] = str(error)
            continue
        scale = scale_of(catalogue[row.label].key)
        each = scale.to(np.array([table.row(row.id, row.part).value for table in tables]))
        rows.append(replace(row, value=float(scale.back(each.mean()))))
    used = {"imputations": len(parts), **({"confidence_level": level} if one is not None else {})}
    return replace(tables[0], rows=tuple(rows), skipped=skipped, settings=used)
