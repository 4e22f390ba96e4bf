"""Calibration over time: the e-value of a monitor over the rows, and a metric period by period."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import whole
from calibrary.base.numbers import counted, number, percent, pvalue, with_interval
from calibrary.data.checks import Array
from calibrary.inference.overall.sequential import CalibrationMonitor, calibration_monitor
from calibrary.plots import style
from calibrary.plots.data import FigureData, binary_view
from calibrary.plots.frame import Said, drawn, said
from calibrary.plots.pointed import series, tooltips

#: The legend's entry for the values of calibrated models.
_CHANCE = "95% if calibrated"
#: Names of periods with at most so many letters fit beside each other.
_SHORT = 3


@dataclass(frozen=True)
class MonitorData(FigureData):
    """The path of the e-value.

    Attributes
    ----------
    n, log_e : number of rows, and natural logarithm of the e-value at that point
    alpha, alarm_at : probability of a false alarm; number of rows when the e-value reached 1 / alpha, or None
    words : the final result in words
    times, alarm_time : the time of each check and of the alarm, if known
    """

    n: Array
    log_e: Array
    alpha: float
    alarm_at: int | None
    pvalue: float
    words: str
    times: tuple[str, ...] = ()
    alarm_time: str = ""


def monitor_data(
    y_true: Any, y_prob: Any = None, *, batch: int = 100, alpha: float = 0.05, **checked: Any
) -> MonitorData:
    """The path of a monitor; or of a new one that is updated with these predictions, ``batch`` rows at a time."""
    monitor = y_true if isinstance(y_true, CalibrationMonitor) else fed(y_true, y_prob, batch, alpha, checked)
    n, log_e = monitor.path
    return MonitorData(n, log_e, monitor.alpha, monitor.alarm_at, monitor.pvalue, monitor.words)


def fed(y_true: Any, y_prob: Any, batch: int, alpha: float, checked: dict[str, Any]) -> CalibrationMonitor:
    """A monitor updated with these rows in their order."""
    view, _ = binary_view(y_true, y_prob, **checked)
    monitor, step = calibration_monitor(alpha=alpha), whole("batch", batch)
    for first in range(0, view.n, step):
        rows = slice(first, first + step)
        monitor.update(view.y[rows], view.c[rows], sample_weight=None if view.w is None else view.w[rows])
    return monitor


@drawn(MonitorData, monitor_data, size=(6.4, 4.4))
def plot_monitor(ax: Any, look: style.Look, data: MonitorData) -> Said:
    """The e-value of a monitor over the number of rows, with the line at which it raises an alarm.

    Takes a :class:`calibrary.CalibrationMonitor`, the arguments of :func:`monitor_data`, or its result. Returns the
    matplotlib Axes.
    """
    tens = data.log_e / math.log(10.0)
    line = -math.log10(data.alpha)
    known = tens[np.isfinite(tens)]
    low, high = min(float(known.min(initial=0.0)), -0.6), max(float(known.max(initial=0.0)), line)
    room = 0.08 * (high - low)
    shown = np.where(np.isfinite(tens), tens, high + room)
    ax.set(xlim=(0, max(float(data.n[-1]), 1.0) * 1.02), ylim=(low - room, high + 2 * room))
    ax.axhspan(line, high + 2 * room, color=look.gap, alpha=0.1, lw=0)
    ax.axhline(line, color=look.gap, lw=1.2, ls=style.DASHED, label=f"alarm: E = {1 / data.alpha:g}")
    ax.axhline(0, color=look.gray, lw=0.8, zorder=1)
    ax.plot(data.n, shown, color=look.model, lw=1.6, zorder=3, label="e-value")
    tooltips(ax, data.n, shown, lambda i: _look_words(data, i), series="e-value", curve=True)
    if data.alarm_at is not None:
        _alarm(ax, look, data, shown)
    ax.set(xlabel="Rows seen", ylabel="E-value")
    if data.times:
        _time_axis(ax, data)
    _powers_of_ten(ax)
    return said("monitor", f"{data.words} · {pvalue(data.pvalue)} at any time · {data.n[-1]:,.0f} rows", data=data)


def _look_words(data: MonitorData, i: int) -> str:
    """The tooltip of a check."""
    when = f", {data.times[i]}" if i < len(data.times) else ""
    return f"{counted(data.n[i], 'row')} seen{when}\ne-value {number(math.exp(min(data.log_e[i], 700.0)))}"


def _alarm(ax: Any, look: style.Look, data: MonitorData, height: Array) -> None:
    assert data.alarm_at is not None
    at = float(np.interp(data.alarm_at, data.n, height))
    ax.plot(data.alarm_at, at, "o", color=look.gap, ms=7, mec=look.paper, zorder=5)
    left = data.alarm_at > 0.6 * data.n[-1]
    ax.annotate(  # beside the path, which rises there
        data.alarm_time or f"row {data.alarm_at:,}",
        (data.alarm_at, at), xytext=(-8, 8) if left else (8, -6), textcoords="offset points",
        ha="right" if left else "left", va="bottom" if left else "top", fontsize=8, color=look.ink,
        zorder=6, bbox={"fc": look.paper, "ec": "none", "alpha": 0.75, "pad": 1.0},
    )  # fmt: skip


def _time_axis(ax: Any, data: MonitorData) -> None:
    """Label the axis of row numbers with times."""
    last = float(data.n[-1])
    places = np.unique(np.searchsorted(data.n, np.linspace(0.0, last, 5)[1:]))
    places = places[places < len(data.times)]
    ax.set_xticks(data.n[places], [data.times[i].replace(" ", "\n") for i in places])
    ax.set_xlabel("Rows in order of time")


def _powers_of_ten(ax: Any) -> None:
    """Ticks that show the number, not its logarithm."""
    low, high = ax.get_ylim()
    step = max(1, math.ceil((high - low) / 7))
    ticks = [k for k in range(math.ceil(low), math.floor(high) + 1) if k % step == 0]
    ax.set_yticks(ticks, [f"{10.0**k:g}" if -3 <= k <= 4 else f"$10^{{{k}}}$" for k in ticks])


# -- period by period ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class PeriodsData(FigureData):
    """A metric in every period, in order.

    Attributes
    ----------
    period, n : name of each period, and its number of rows
    value, low, high : the metric and its interval; NaN if a period has too few rows
    null_mean, null_high : the mean value of a calibrated model there, and the value it exceeds in 5% of samples
    clear : whether the period is significantly miscalibrated, adjusted for the number of periods
    """

    period: tuple[str, ...]
    n: Array
    value: Array
    low: Array
    high: Array
    null_mean: Array
    null_high: Array
    clear: NDArray[np.bool_]
    metric: str
    level: float


@drawn(PeriodsData, size=lambda data: (max(6.4, 2.0 + 0.32 * len(data.period)), 4.6))
def plot_periods(ax: Any, look: style.Look, data: PeriodsData) -> Said:
    """A metric with its interval in each period, and its range by chance in grey. Returns the Axes."""
    place = np.arange(len(data.period))
    known = np.isfinite(data.value)
    tested = place[np.isfinite(data.null_high)]
    with series(ax, _CHANCE):
        for k in tested:
            label = _CHANCE if k == tested[0] else None
            ax.fill_between([k - 0.4, k + 0.4], 0, data.null_high[k], color=look.gray, alpha=0.16, lw=0, label=label)
            ax.plot([k - 0.4, k + 0.4], [data.null_mean[k]] * 2, color=look.gray, lw=1.1, zorder=2)
    ends = np.isfinite(data.low) & np.isfinite(data.high)
    # the ends may lie on one side of an estimate that is biased upwards
    ax.vlines(place[ends], data.low[ends], data.high[ends], color=look.ink, lw=1.3, zorder=3)
    for some, color, marker, words in (
        (known & ~data.clear, look.model, "o", "no evidence of miscalibration"),
        (known & data.clear, look.gap, "s", "significantly miscalibrated"),
    ):
        if some.any():
            look_of = {"color": color, "marker": marker, "ec": look.paper, "lw": 0.8}
            ax.scatter(place[some], data.value[some], s=38, zorder=4, label=words, **look_of)
    tooltips(ax, place, data.value, lambda i: _period_words(data, i))
    for k in place[~known]:
        ax.annotate("too few", (k, 0), xytext=(0, 4), textcoords="offset points", ha="center", rotation=90, fontsize=7,
                    color=look.gray)  # fmt: skip
    every = max(1, -(-len(place) // 12))
    short = all(len(name) <= _SHORT for name in data.period)
    slanted = {} if short else {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(place[::every], data.period[::every], fontsize=8, **slanted)
    chance = data.null_high[np.isfinite(data.null_high)]
    top = np.nanmax(np.concatenate([data.value[known], data.high[ends], chance, [0.0]]))
    bottom = min(0.0, float(np.nanmin(np.concatenate([data.value[known], data.low[ends], [0.0]]))))
    ax.set(xlim=(-0.6, len(place) - 0.4), ylim=(1.1 * bottom, 1.1 * top or 1.0), ylabel=data.metric)
    n = data.n
    return said(
        "periods", f"{len(place)} periods · {n.sum():,.0f} rows, {n.min():,.0f} to {n.max():,.0f} a period", data=data
    )


def _period_words(data: PeriodsData, i: int) -> str:
    """The tooltip of a period."""
    level = f", {percent(data.level)} interval" if np.isfinite(data.low[i]) else ""
    value = with_interval(float(data.value[i]), float(data.low[i]), float(data.high[i]))
    usual = f"\nif calibrated {number(data.null_mean[i])}, up to {number(data.null_high[i])} in 95% of samples"
    chance = usual if np.isfinite(data.null_high[i]) else ""
    return f"{data.period[i]}: {counted(data.n[i], 'row')}\n{data.metric} {value}{level}{chance}"
