"""``--target FILE``, ``--shift COLUMN`` and ``--prevalence``: calibration on data other than a file's labelled rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.tables.files import open_table
from calibrary.tables.guess import required_column
from calibrary.tables.layout import FileLayout, PredictionFile
from calibrary.tables.sources import InputError
from calibrary.tables.values import complete_rows, numbers_of, probabilities_of

#: The fewest draws for a target or a curve, even if fewer --resamples are requested; each group needs twenty.
LEAST_DRAWS, _DRAWS_A_GROUP = 99, 20


def shares_typed(text: str | None) -> float | list[float] | None:
    """Parse class shares: one number, or one for each class separated by commas."""
    if text is None:
        return None
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--prevalence {text}: pass a share such as 0.02, or one for each class separated by commas"
        ) from None
    if not all(0.0 < share < 1.0 for share in shares):
        raise InputError(f"--prevalence {text}: shares must lie strictly between 0 and 1")
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
    """Estimate the metric on a target without labels; its file has the same probability columns.

    If the data contradict the assumption, the result has the test and no estimate.
    """
    from calibrary.shift import under_shift
    from calibrary.shift.target import ContradictedError

    table, named = open_table(source), found.columns.get("models", {}).get(model)
    if not named:
        raise InputError(
            "--target needs probability columns: the first file must be a table of rows, not a state or log"
        )
    for name in (*named, *features):
        if name not in table.names:
            raise InputError(
                f"{Path(source).name} has no column {name!r}, which the labelled file has: both files need the same "
                "probability columns, under the same names"
            )
        required_column(list(table.names), name)
    values = table.columns([*named, *features])
    keep = complete_rows(values, [*named, *features], table.name, drop=False)
    values = {name: column[keep] for name, column in values.items()}
    target = probabilities_of(values, list(named), FileLayout(percent=percent, logits=logits), [])
    more: dict[str, Any] = {}
    if features:
        more = {"features": _stacked(found.others, features), "target_features": _stacked(values, features)}
    try:
        return under_shift(metric, found.predictions(model), None, target, assume=assume, **more, **settings)
    except ContradictedError as contradicted:
        return contradicted.result


def _stacked(values: Any, names: list[str]) -> Array:
    return np.column_stack([numbers_of(values[name], name) for name in names])


def curve_of(metric: str, found: PredictionFile, model: str, column: str, *, unit: str | None, **settings: Any) -> Any:
    """The metric in each of the ordered groups of a column."""
    from calibrary.shift import shift_curve

    units, groups = found.others[unit] if unit else None, found.others[column]
    draws = max(settings.pop("n_resamples"), _DRAWS_A_GROUP * len(set(groups.tolist())))
    curve = shift_curve(metric, found.predictions(model), None, groups, units=units, n_resamples=draws, **settings)
    return replace(curve, by=column)
