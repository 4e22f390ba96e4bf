"""The layout of figures, in which captions are never cut off."""

from __future__ import annotations

from typing import Any

from matplotlib.layout_engine import ConstrainedLayoutEngine

#: Inches by which text may lie outside before the figure is enlarged, and how often it is enlarged at most.
_LITTLE, _MOST = 0.005, 3


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
