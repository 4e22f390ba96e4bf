"""Options of calibration maps that the curve metrics share, and results that are never averaged."""

from __future__ import annotations

from typing import Any

from calibrary.data.views import Views
from calibrary.metrics.machinery.declare import SHARED_TEXTS, Common, Options


class MapOptions(Common, total=False):
    """Keywords of calibration maps; None uses the map's own default."""

    span: float | None
    degree: int | None
    surface: str | None
    cell: float | None
    transform: str | None
    clip: bool | None
    delta: float | None
    bandwidth: Any
    kernel: str | None
    n_knots: int | None
    invariant: bool | None
    parameters: str | None
    target_smoothing: bool | None
    segments: int | None
    max_segments: int | None
    loss: str | None
    cv: int | None
    tolerance: float | None
    ensemble: bool | None
    rng: Any
    n_bins: int | str | None
    base: str | None
    roof: str | None
    empty: str | None
    max_bins: int | None
    folds: str | None


MAP_OPTIONS = Options(
    SHARED_TEXTS["map"],
    **dict.fromkeys(name for name in MapOptions.__annotations__ if name not in Common.__annotations__),
)


def one_per_view(values: list[Any], views: Views, average: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Results that must not be averaged: one for each view."""
    return tuple(values)
