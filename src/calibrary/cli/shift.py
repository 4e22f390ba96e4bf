"""``--target FILE``, ``--shift COLUMN`` and ``--prevalence``: other data than the labelled rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrary.cli.files import InputError, open_table
from calibrary.cli.read import FileLayout, PredictionFile, _complete_rows, _matrix, _numbers, _require
from calibrary.data.checks import Array

#: Draws for a target or a curve, whatever a page of few draws is asked for; each group of a curve needs twenty.
LEAST_DRAWS, _DRAWS_A_GROUP = 99, 20


def shares_typed(text: str | None) -> float | list[float] | None:
    """Shares as they are typed: one number, or one for each class with commas."""
    if text is None:
        return None
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--prevalence {text}: pass a share such as 0.02, or one for each class with commas") from None
    if not all(0.0 < share < 1.0 for share in shares):
        raise InputError(f"--prevalence {text}: shares lie above 0 and below 1")
    return shares[0] if len(shares) == 1 else shares


def target_of(
    metric: str,
    found: PredictionFile,
    model: str,
    source: str,
    *,
    assume: str,
    features: list[str],
    percent: bool,
    logits: bool,
    **settings: Any,
) -> Any:
    """The metric on a target without labels, whose file has the columns that the probabilities have in the first."""
    from calibrary.shift import under_shift

    table, named = open_table(source), found.columns.get("models", {}).get(model)
    if not named:
        raise InputError("--target needs the columns of the probabilities: the first file must be a table of rows")
    for name in (*named, *features):
        if name not in table.names:
            raise InputError(
                f"{Path(source).name} has no column {name!r}, which the labelled file has: both sets need the same "
                "classes, under the same names"
            )
        _require(list(table.names), name)
    values = table.columns([*named, *features])
    keep = _complete_rows(values, [*named, *features], table.name, drop=False)
    values = {name: column[keep] for name, column in values.items()}
    target = _matrix(values, list(named), FileLayout(percent=percent, logits=logits), [])
    more: dict[str, Any] = {}
    if features:
        more = {"features": _stacked(found.others, features), "target_features": _stacked(values, features)}
    return under_shift(metric, found.predictions(model), None, target, assume=assume, **more, **settings)


def _stacked(values: Any, names: list[str]) -> Array:
    return np.column_stack([_numbers(values[name], name) for name in names])


def curve_of(metric: str, found: PredictionFile, model: str, column: str, *, unit: str | None, **settings: Any) -> Any:
    """The metric along the groups of a column."""
    from calibrary.shift import shift_curve

    units, groups = found.others[unit] if unit else None, found.others[column]
    draws = max(settings.pop("n_resamples"), _DRAWS_A_GROUP * len(set(groups.tolist())))
    return shift_curve(metric, found.predictions(model), None, groups, units=units, n_resamples=draws, **settings)
