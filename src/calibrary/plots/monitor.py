"""The path of a monitor: evidence against calibration as rows came in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary._errors import whole
from calibrary.data.checks import Array
from calibrary.inference.sequential import CalibrationMonitor, calibration_monitor
from calibrary.plots import style
from calibrary.plots.data import FigureData, binary_view


@dataclass(frozen=True)
class MonitorData(FigureData):
    """The path of the e-value.

    Attributes
    ----------
    n, log_e : rows seen, and natural logarithm of the e-value then
    alpha, alarm_at : chance of a false alarm; rows seen when the e-value reached 1 / alpha, or None
    words : what the monitor says at the end
    """

    n: Array
    log_e: Array
    alpha: float
    alarm_at: int | None
    pvalue: float
    words: str


def monitor_data(
    y_true: Any, y_prob: Any = None, *, batch: int = 100, alpha: float = 0.05, **checked: Any
) -> MonitorData:
    """The path of a monitor; or of one that is fed these predictions in their order, ``batch`` rows at a time."""
    if isinstance(y_true, CalibrationMonitor):
        monitor = y_true
    else:
        monitor = fed(y_true, y_prob, batch, alpha, checked)
    n, log_e = monitor.path
    return MonitorData(n, log_e, monitor.alpha, monitor.alarm_at, monitor.pvalue, monitor.words)


def fed(y_true: Any, y_prob: Any, batch: int, alpha: float, checked: dict[str, Any]) -> CalibrationMonitor:
    """A monitor that has seen these rows in their order."""
    view, _ = binary_view(y_true, y_prob, **checked)
    monitor, step = calibration_monitor(alpha=alpha), whole("batch", batch)
    for first in range(0, view.n, step):
        rows = slice(first, first + step)
        monitor.update(view.y[rows], view.c[rows], sample_weight=None if view.w is None else view.w[rows])
    return monitor


def plot_monitor(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Any = None,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """The e-value of a monitor over the rows it has seen, with the line at which it raises an alarm.

    Takes a :class:`calibrary.CalibrationMonitor`, the arguments of :func:`monitor_data`, or its result. Returns the
    matplotlib Axes.
    """
    data = y_true if isinstance(y_true, MonitorData) else monitor_data(y_true, y_prob, **options)
    ax, look = style.new_axes(ax, theme, size=(6.4, 4.4))
    tens = data.log_e / math.log(10.0)
    line = -math.log10(data.alpha)
    known = tens[np.isfinite(tens)]
    low, high = min(float(known.min(initial=0.0)), -0.6), max(float(known.max(initial=0.0)), line)
    room = 0.08 * (high - low)
    shown = np.where(np.isfinite(tens), tens, high + room)
    ax.set(xlim=(0, max(float(data.n[-1]), 1.0) * 1.02), ylim=(low - room, high + 2 * room))
    ax.axhspan(line, high + 2 * room, color=look.gap, alpha=0.1, lw=0)
    ax.axhline(line, color=look.gap, lw=1.2, ls=style.DASHED, label=f"alarm: E = {1 / data.alpha:g}")
    ax.axhline(0, color=look.grey, lw=0.8, zorder=1)
    ax.plot(data.n, shown, color=look.model, lw=1.6, zorder=3, label="e-value")
    if data.alarm_at is not None:
        _alarm(ax, look, data, shown)
    ax.set(xlabel="Rows seen", ylabel="E-value")
    _powers_of_ten(ax)
    style.finish(
        ax,
        look,
        "Calibration monitor",
        f"{data.words} · {style.pvalue(data.pvalue)} at any time · {data.n[-1]:,.0f} rows",
        f"Evidence against calibration after each look; on calibrated predictions it ever reaches the alarm in at most "
        f"{data.alpha:.0%} of streams, however often one looks.",
        caption=caption,
        legend="above",
    )
    return ax


def _alarm(ax: Any, look: style.Look, data: MonitorData, height: Array) -> None:
    assert data.alarm_at is not None
    at = float(np.interp(data.alarm_at, data.n, height))
    ax.plot(data.alarm_at, at, "o", color=look.gap, ms=7, mec=look.paper, zorder=5)
    left = data.alarm_at > 0.6 * data.n[-1]
    ax.annotate(  # beside the path, which rises there
        f"row {data.alarm_at:,}", (data.alarm_at, at), xytext=(-8, 8) if left else (8, -6), textcoords="offset points",
        ha="right" if left else "left", va="bottom" if left else "top", fontsize=8, color=look.ink,
    )  # fmt: skip


def _powers_of_ten(ax: Any) -> None:
    """Ticks that say what the number is, not its logarithm."""
    low, high = ax.get_ylim()
    step = max(1, math.ceil((high - low) / 7))
    ticks = [k for k in range(math.ceil(low), math.floor(high) + 1) if k % step == 0]
    ax.set_yticks(ticks, [f"{10.0**k:g}" if -3 <= k <= 4 else f"$10^{{{k}}}$" for k in ticks])
