"""The one binary view that a curve is made of."""

from __future__ import annotations

from typing import Any

from calibrary.data.lens import Lens, as_lens
from calibrary.data.predictions import Predictions, predictions


def one_view(
    y_true: Any, y_prob: Any = None, *, lens: str | Lens = "auto", r: int | None = None, **checked: Any
) -> tuple[Predictions, str]:
    """Predictions as one binary view, and the name of the lens. "auto": binary, or top-label for K > 2."""
    p = predictions(y_true, y_prob, **checked)
    if isinstance(lens, str) and lens == "auto":
        lens = "binary" if p.k == 2 else "top-label"
    chosen = as_lens(lens, r)
    views = p.through(chosen)
    if views.several or not views.views[0].binary:
        raise ValueError(
            f"lens={chosen.name!r} gives several views and this is one curve: pass one class as (y == k, p[:, k])"
        )
    return views.views[0], chosen.name
