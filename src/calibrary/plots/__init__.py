"""Figures of calibration, each with a function for its data and a function that draws it.

``reliability_data(y, p)`` returns the data (dataclasses that export to JSON and CSV, without matplotlib),
``plot_reliability(y, p)`` draws them on ``ax=`` or a new figure. No global setting is changed.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from calibrary.base.errors import suggest
from calibrary.data.asked import checks_options

for _line in Path(__file__).with_name("names.txt").read_text(encoding="utf-8").splitlines()[1:]:
    _module, *_names = _line.split()
    _loaded = import_module(f"{__name__}.{_module}")
    globals().update({_name: getattr(_loaded, _name) for _name in _names})

# every public function of this room checks its options, also where it is called by the path of its module
for _name, _function in list(globals().items()):
    if inspect.isfunction(_function) and _function.__module__.startswith(f"{__name__}."):
        globals()[_name] = checks_options(_function)
        setattr(sys.modules[_function.__module__], _name, globals()[_name])

#: Figures by the word that the command line uses: the function, its options, and what stands before the predictions.
_DRAWN: dict[str, tuple[Any, ...]] = {
    "overview": ("overview", {}),
    "reliability": ("plot_reliability", {}),
    "bar": ("plot_reliability", {"kind": "bar"}),
    "tilted-roof": ("plot_reliability", {"kind": "tilted-roof"}),
    "classes": ("small_multiples", {}),
    "smooth": ("plot_smooth_reliability", {}),
    "corp": ("plot_corp", {}),
    "bias": ("plot_corp", {"diagram": "bias"}),
    "cumulative": ("plot_cumulative", {}),
    "brier": ("plot_brier_curve", {}),
    "murphy": ("plot_murphy", {}),
    "decision": ("plot_decision", {}),
    "honest": ("plot_corp", {"band": "honest"}),
    "monitor": ("plot_monitor", {}),
    "risk-coverage": ("plot_risk_coverage", {}),
    "set-coverage": ("plot_set_coverage", {}),
    "simplex": ("plot_simplex", {}),
    "simplex-maps": ("plot_simplex_maps", {}),
    "null": ("plot_null", {}, "ece"),
    "recalibration": ("plot_recalibration", {}),
}
#: Those of matched detections alone.
_OF_DETECTIONS: dict[str, tuple[Any, ...]] = {
    "detection": ("plot_detection_reliability", {}),
    "d-ece-map": ("plot_d_ece_map", {}),
    "d-ece-shape": ("plot_d_ece_map", {"features": "shape"}),
    "d-ece-line": ("plot_d_ece_map", {"features": ["cx"]}),
}
_WITH_BINS = ("overview", "reliability", "bar", "tilted-roof", "classes", "recalibration")
_WITH_AXIS = (*_WITH_BINS[1:], "smooth", "corp", "bias", "honest", "decision")


def draw(kind: str, predictions: Any, *, n_bins: int | str | None = None, axis: Any = "auto", **options: Any) -> Any:
    """Draw a figure by name and return the matplotlib Figure.

    ``predictions`` are checked predictions, or matched detections, which have additional figures. ``n_bins`` is for
    figures with bins, and ``axis`` for those with an axis of predictions (see :func:`reliability_data`).

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.plots import draw
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> draw("reliability", cal.predictions(y, p), n_bins=10).axes[0].get_xlabel()
    'Predicted probability'
    """
    kinds = {**_DRAWN, **_OF_DETECTIONS} if hasattr(predictions, "n_images") else _DRAWN
    if kind not in kinds:
        raise ValueError(f"kind={kind!r} is not a figure: {suggest(kind, kinds)}")
    if n_bins not in (None, "auto") and kind in _WITH_BINS:
        options["n_bins"] = n_bins
    if axis != "auto":
        if kind not in _WITH_AXIS:
            raise ValueError(f"axis={axis!r} is of reliability diagrams and decision curves, not of {kind!r}")
        options["axis"] = axis
    function, own, *first = kinds[kind]
    drawn = globals()[function](*first, predictions, **own, **options)
    return getattr(drawn, "figure", drawn)


__all__ = sorted(
    n for n, value in globals().items() if n[0] != "_" and getattr(value, "__module__", "").startswith(__name__)
)


def __dir__() -> list[str]:
    return sorted(__all__)
