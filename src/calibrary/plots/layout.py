"""Figures of which captions are never cut off, and whose files hold them in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from calibrary.plots.pointed import alternative

#: Inches by which text may lie outside before the figure is enlarged, and how often it is enlarged at most.
_LITTLE, _MOST = 0.005, 3
#: Where a file of each format holds the text of a figure.
_TEXT = {"png": "Description", "svg": "Description", "pdf": "Subject"}


class DescribedFigure(Figure):
    """A figure whose files hold the text of :func:`calibrary.plots.alternative`, unless ``metadata`` has another."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure as matplotlib does, with its text."""
        named = Path(fname).suffix[1:] if isinstance(fname, str | Path) else ""
        field = _TEXT.get((options.get("format") or named or rcParams["savefig.format"]).lower())
        metadata = options.get("metadata") or {}
        if field and field not in metadata:
            options["metadata"] = {field: alternative(self), **metadata}
        super().savefig(fname, **options)


class WholeLayout(ConstrainedLayoutEngine):
    """Constrained layout in a figure that is enlarged until its text fits.

    Square axes may leave less room than planned, so that a caption could be cut off.
    """

    def execute(self, fig: Any) -> Any:
        """Lay out the figure; if text lies outside, enlarge the figure and repeat."""
        made = super().execute(fig)
        for _ in range(_MOST):
            box, (wide, high) = fig.get_tightbbox(), fig.get_size_inches()
            more = max(-box.x0, 0.0) + max(box.x1 - wide, 0.0), max(-box.y0, 0.0) + max(box.y1 - high, 0.0)
            if max(more) <= _LITTLE:
                break
            across, up = (1.1 * part + 0.04 if part > 0.0 else 0.0 for part in more)
            fig.set_size_inches(wide + across, high + up)
            made = super().execute(fig)
        return made
