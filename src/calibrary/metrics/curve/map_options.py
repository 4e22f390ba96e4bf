"""Options of calibration maps that the curve metrics share, and results that are never averaged."""

from __future__ import annotations

from typing import Any

from calibrary.data.views import Views
from calibrary.metrics.machinery.declare import Common, Options


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
    """\
span, degree, surface, cell, transform, clip : optional
    For ``map="loess"``: share of the rows in a window (0.75), degree of the local polynomial (2), "interpolate" (R's
    default) or "direct" (exact at every point), size of R's cells (0.2), "logit" to fit on log odds, and whether the
    curve is clipped to [0, 1]. ``span``, ``delta`` and ``clip`` also apply to "lowess".
bandwidth, kernel : optional
    For "local_linear" and "nadaraya_watson".
n_knots : int, optional
    For "rcs": number of knots, 3 to 7 (5). For "cumulative_spline": number of knots, 2 or more (6).
invariant : bool, optional
    For "order_preserving", with ``segments`` (6): whether both sides of 1/2 share one curve (True).
parameters, target_smoothing : optional
    For "beta" ("abm", "am", "ab", "a") and for "platt".
segments, max_segments, loss, cv, tolerance, ensemble, rng : optional
    For "pl" and "pl3": see :func:`calibrary.piecewise_linear_calibration_error`.
n_bins, base, roof, empty, max_bins, folds : optional
    For "bins": see :class:`calibrary.maps.piecewise.Binned`.""",
    **dict.fromkeys(name for name in MapOptions.__annotations__ if name not in Common.__annotations__),
)


def one_per_view(values: list[Any], views: Views, average: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Results that must not be averaged: one for each view."""
    return tuple(values)
