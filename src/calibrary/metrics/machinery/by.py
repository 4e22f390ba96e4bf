"""A metric for every part of the data (per image, site or prompt), and summaries over the parts."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, collected_warnings, warn
from calibrary.base.plain import float_or_array

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """The value of a metric for every part, and summaries; ``float`` of it is the plain mean over parts.

    Parts without a value (NaN) are left out of the summaries. A metric of several numbers has one column for each in
    ``values``, and summaries are arrays.

    Attributes
    ----------
    id : the metric
    keys : the value of the ``by`` column in each part
    values : one value per part
    sizes : total weight of each part
    names : of the numbers, for a metric of several
    ideal, better : the value of a calibrated model (None: depends on the data), and which direction is better
    """

    id: str
    keys: tuple[Hashable, ...]
    values: Array
    sizes: Array
    names: tuple[str, ...] = ()
    ideal: float | None = field(default=None, repr=False)
    better: str = field(default="lower", repr=False)

    def __float__(self) -> float:
        return float(self.mean)

    @property
    def mean(self) -> Any:
        """Plain mean over the parts: every part has the same weight."""
        return self._summary(np.nanmean)

    @property
    def weighted_mean(self) -> Any:
        """Mean over the parts, weighted by their size."""
        weight = self.sizes.reshape(-1, *[1] * (self.values.ndim - 1)) * ~np.isnan(self.values)
        return float_or_array(np.nansum(weight * self.values, axis=0) / weight.sum(axis=0))

    @property
    def median(self) -> Any:
        return self._summary(np.nanmedian)

    @property
    def max(self) -> Any:
        return self._summary(np.nanmax)

    @property
    def min(self) -> Any:
        return self._summary(np.nanmin)

    def quantile(self, q: Any) -> Any:
        """Quantiles over the parts, by linear interpolation."""
        return self._summary(lambda values, axis: np.nanquantile(values, q, axis=axis))

    @property
    def worst(self) -> tuple[Hashable, float]:
        """The worst part and its value: the part with the largest error or the lowest score."""
        if self.names:
            raise RefusedError(f"{self.id} has several numbers, {', '.join(self.names)}: choose a column of values")
        if self.better == "higher":
            badness = -self.values
        elif self.better == "perfect" and self.ideal is not None:
            badness = np.abs(self.values - self.ideal)
        else:
            badness = self.values
        i = int(np.nanargmax(badness))
        return self.keys[i], float(self.values[i])

    def named(self) -> dict[str, float]:
        """The means by name: a single mean has the empty name."""
        return dict(zip(self.names or ("",), np.atleast_1d(self.mean).tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists."""
        return {
            "id": self.id, "keys": list(self.keys), "values": self.values.tolist(), "sizes": self.sizes.tolist(),
            "names": list(self.names), "mean": np.asarray(self.mean).tolist(),
            "median": np.asarray(self.median).tolist(), "max": np.asarray(self.max).tolist(),
        }  # fmt: skip

    def _summary(self, of: Callable[..., Any]) -> Any:
        return float_or_array(of(self.values, axis=0))


def over_parts(facts: Any, data: Any, by: Any, value: Callable[[Any], dict[str, float]]) -> Parts:
    """``value`` of every part of the data; parts without a value are NaN, and repeated warnings are given once."""
    parts = data.parts(by)
    found: list[dict[str, float]] = []
    undefined: list[str] = []
    cautions: list[str] = []
    for _, part in parts:
        with collected_warnings() as messages:
            try:
                found.append(value(part))
            except RefusedError as error:  # too few rows for this metric
                messages.insert(0, str(error))
                found.append({})
        known = found[-1] and not np.isnan(list(found[-1].values())).any()
        (cautions if known else undefined).extend(messages[:1])
    names = next((tuple(each) for each in found if each), ())
    values = np.array([[each.get(name, np.nan) for name in names] for each in found])
    none = np.isnan(values).any(axis=1) if names else np.ones(len(parts), dtype=bool)
    if none.all():
        raise RefusedError(f"{facts.id} has no value in any of {len(parts)} parts; the first: {[*undefined, 'nan'][0]}")
    if none.any():
        why = f": {undefined[0]}" if undefined else ""
        warn(f"{int(none.sum())} of {len(parts)} parts have no value and are left out of the summaries{why}")
    if cautions:
        warn(f"in {len(cautions)} of {len(parts)} parts: {cautions[0]}")
    one = names == ("",)
    return Parts(
        facts.id, tuple(key for key, _ in parts), values[:, 0] if one else values,
        np.array([float(part.size) for _, part in parts]), () if one else names, facts.perfect, facts.better,
    )  # fmt: skip
