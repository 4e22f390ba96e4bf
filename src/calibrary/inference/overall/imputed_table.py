"""A table of metrics over completed data sets: each estimate pooled by Rubin's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.predictions import Predictions
from calibrary.inference.methods.scales import poolable, scale_of
from calibrary.inference.verbs.imputed import rubin_interval
from calibrary.inference.verbs.interval import interval
from calibrary.lookup import catalogue


def evaluated(
    parts: list[Predictions],
    table_of: Callable[[Predictions], Any],
    options: Mapping[str, Any],
    intervals: bool,
    settings: Mapping[str, Any],
) -> Any:
    """The table of the first data set with pooled values; metrics that cannot be pooled are named in ``skipped``.

    ``table_of`` evaluates one data set; ``settings`` are those of intervals, with their level.
    """
    tables = [table_of(part) for part in parts]
    one = partial(interval, **settings)
    rows, skipped = [], dict(tables[0].skipped)
    for row in tables[0].rows:
        try:
            entry = poolable(row.label, "averaged over imputations")
            if intervals:
                own = {name: value for name, value in options.items() if name in entry.options}
                found = rubin_interval(entry.key, parts, own, one, settings["confidence_level"])
                numbers = {"low": found.low, "high": found.high, "standard_error": found.standard_error}
                rows.append(replace(row, value=found.value, **numbers, method="rubin", note=found.note))
                continue
        except RefusedError as error:
            skipped[row.label] = str(error)
            continue
        scale = scale_of(catalogue[row.label].key)
        each = scale.to(np.array([table.row(row.id, row.part).value for table in tables]))
        rows.append(replace(row, value=float(scale.back(each.mean()))))
    used = {"imputations": len(parts), **({"confidence_level": settings["confidence_level"]} if intervals else {})}
    return replace(tables[0], rows=tuple(rows), skipped=skipped, settings=used)
