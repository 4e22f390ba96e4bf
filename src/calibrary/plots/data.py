"""What a figure shows, without the figure: dataclasses of arrays that export to JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from calibrary.lens import Lens, as_lens
from calibrary.predictions import Predictions, predictions


@dataclass(frozen=True)
class FigureData:
    """Base of every figure's data: named arrays and numbers."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def to_json(self) -> str:
        """JSON; NaN becomes null."""
        return json.dumps(self.to_dict(), indent=1)

    def to_csv(self) -> str:
        """The one-dimensional arrays of the longest common length, one column each."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        arrays = {k: v for k, v in columns.items() if isinstance(v, np.ndarray) and v.ndim == 1}
        longest = max((len(v) for v in arrays.values()), default=0)
        shown = {k: v for k, v in arrays.items() if len(v) == longest}
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(shown)
        writer.writerows(zip(*(v.tolist() for v in shown.values()), strict=True))
        return out.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, FigureData):
        return value.to_dict()
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value


def binary_view(
    y_true: Any, y_prob: Any = None, *, lens: str | Lens = "auto", r: int | None = None, **checked: Any
) -> tuple[Predictions, str]:
    """The one binary view a diagram shows, and the name of its lens. "auto": binary, or top-label for K > 2."""
    p = predictions(y_true, y_prob, **checked)
    if isinstance(lens, str) and lens == "auto":
        lens = "binary" if p.k == 2 else "top-label"
    chosen = as_lens(lens, r)
    views = p.through(chosen)
    if views.several or not views.views[0].binary:
        raise ValueError(f"lens={chosen.name!r} gives several views: a diagram shows one, use plots.small_multiples")
    return views.views[0], chosen.name


def axis_names(lens: str) -> tuple[str, str]:
    """What the axes of a reliability diagram are called through a lens."""
    if lens == "binary":
        return "Predicted probability", "Observed frequency"
    return "Confidence", "Accuracy"
