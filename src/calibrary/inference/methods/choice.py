"""One choice of method: how the interval of a metric is computed, on which rows, and why.

``interval``, tables of many metrics, the parts of a page, ``compare`` and everything that is built on them ask
:func:`choice_of`, so that a metric has the same interval wherever it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.sample import single_labels
from calibrary.inference.draw.cells import celled, takes_cells
from calibrary.inference.draw.statistic import Statistic, as_statistic
from calibrary.inference.methods import asymptotic, inversion, studentized, triangle
from calibrary.inference.methods.asymptotic import Asymptotic
from calibrary.inference.methods.bootstrap import METHODS as BOOTSTRAPS
from calibrary.inference.methods.bootstrap import Bootstrap
from calibrary.inference.methods.inversion import Inversion
from calibrary.inference.methods.studentized import Studentized
from calibrary.inference.methods.triangle import JACKKNIFE, WHOLE_UNITS, unit_way
from calibrary.inference.result import IntervalResult
from calibrary.metrics.machinery.declare import refuse_settings_beside
from calibrary.numerics.draw import generator

METHODS = ("auto", "inversion", "triangle", "studentized", "asymptotic", *BOOTSTRAPS)

#: The most rows for inversion: for a metric without a fast path, and for one with a fast path.
_FEW_ROWS = 2000
_MANY_ROWS = 20_000
#: The caution for an error that grows from a perfect value, if labels cannot be drawn.
MAY_MISS = "rows are resampled, and the interval may miss a true value near the perfect one"
#: Why resampled rows give an interval that covers.
_VALID = "its estimate is not at an end of its range, so resampling rows is valid"
#: Why resampled rows give no ends: they would be far too close.
ONE_LABEL = "all labels are the same, and resampled rows never show another one"
#: Asymptotic formulas with better coverage than the bootstrap.
_RATIOS = ("observed over expected", "expected over observed")


class Way(Protocol):
    """A method for an interval."""

    def interval(
        self, statistic: Statistic, confidence_level: float, clip: bool = True, note: str = ""
    ) -> IntervalResult: ...


@dataclass(frozen=True)
class Choice:
    """How an interval is computed.

    Attributes
    ----------
    statistic : the metric on the rows that are drawn: those of the data, or a table of cells of very many rows
    method : the name of a method, or an object with its own settings
    note : the reason, if the method was chosen and not asked for
    celled : whether ``statistic`` reads a table of cells
    no_ends : why no ends are given, if the ends of no method are known to cover
    """

    statistic: Statistic
    method: Any
    note: str = ""
    celled: bool = False
    no_ends: str = ""

    @property
    def drawn_together(self) -> bool:
        """Whether the interval follows from resampled rows and redrawn labels that several metrics can share."""
        kinds = BOOTSTRAPS if self.note else ("basic",)
        return isinstance(self.method, str) and self.method in ("triangle", *kinds) and not self.celled


def choice_of(
    statistic: Statistic,
    method: Any = "auto",
    *,
    brief: bool = False,
    minus: Statistic | None = None,
    paired: bool = True,
) -> Choice:
    """The method of a metric's interval, the reason, and the rows that are drawn.

    ``brief`` is for metrics that nobody named, in a table of many: their draws must be fast. With ``minus`` the
    interval is of the difference of two models, which have the same rows if ``paired``.
    """
    if minus is not None:
        return Choice(statistic, *(_of_difference(statistic, minus, paired) if method == "auto" else (method, "")))
    if statistic.entry is not None and statistic.entry.no_interval:
        raise RefusedError(f"{statistic.name} has no confidence interval: {statistic.entry.no_interval}")
    drawn, table = _in_single_labels(statistic), None
    brief = brief and not (drawn.entry is not None and drawn.entry.inverted_in_tables)
    if not brief and drawn.one_sided and isinstance(method, str) and method in ("auto", "inversion", "triangle"):
        table = celled(drawn)
    drawn = table or drawn
    if isinstance(method, str) and method == "auto":
        method, note = chosen(drawn, brief=brief)
        no_ends = "" if statistic.entry is None else statistic.entry.no_ends
        if method == "basic" and statistic.sample.p.class_share.max() == 1.0:
            no_ends = no_ends or ONE_LABEL
        return Choice(drawn, method, note, table is not None, no_ends)
    if isinstance(method, str) and method == "triangle" and not drawn.sample.grouped:
        triangle.check(drawn)
    jackknifed = drawn.sample.grouped and isinstance(method, str) and method == "studentized"
    return Choice(drawn, method, JACKKNIFE if jackknifed else "", celled=table is not None)


def _in_single_labels(statistic: Statistic) -> Statistic:
    """The metric for labels that are shares, on rows that can be redrawn: a share q becomes rows of weight q and 1 - q.

    A share is then at least as uncertain as two labels of half the weight, so that intervals are somewhat too wide for
    the mean of many votes. Metrics that use shares differently (a score of the share itself) are not changed.
    """
    sample = statistic.sample
    if not (statistic.one_sided and sample.p.fractional and sample.p.exclusive) or not sample.row_by_row:
        return statistic
    try:
        again = as_statistic(statistic.entry, single_labels(sample.p), statistic.question)
        same = np.allclose(again.observed, statistic.observed, rtol=1e-6, atol=1e-9)
    except RefusedError:  # a metric that takes no weights
        return statistic
    return again if same else statistic


def as_way(method: Any, statistic: Statistic, **settings: Any) -> Way:
    """The method from its name, or as an object with its own settings."""
    grouped = statistic.sample.grouped
    if hasattr(method, "interval"):
        if grouped and not isinstance(method, Bootstrap):
            raise RefusedError(f"{type(method).__name__} draws rows one by one: with units or blocks use method='auto'")
        refuse_settings_beside(method, settings)
        return method
    one_of("method", method, METHODS)
    if grouped:
        if method == "inversion":
            raise RefusedError(
                "method='inversion' redraws labels one by one: with units or blocks use 'auto' or 'triangle'"
            )
        if method == "asymptotic":
            raise RefusedError("method='asymptotic' assumes independent rows: with units or blocks use 'auto'")
    if method == "inversion":
        return Inversion(**settings)
    if method in ("studentized", "asymptotic"):
        generator(settings.get("rng"), "rows")  # nothing is drawn, but an invalid seed is refused as everywhere
    if method == "studentized":
        return Studentized()
    if method == "asymptotic":
        return Asymptotic()
    return Bootstrap(method, **settings)


def chosen(statistic: Statistic, *, brief: bool = False) -> tuple[str, str]:
    """The method that "auto" selects for a metric, and why."""
    if statistic.sample.grouped:
        return unit_way(statistic)
    if not statistic.one_sided:
        return _of_score(statistic)
    why = triangle.why_not(statistic)
    if why:
        return "basic", f"labels cannot be drawn ({why}): {MAY_MISS}"
    why = inversion.why_not(statistic) or _too_dear(statistic, brief)
    if why:
        return "triangle", f"not inverted: {why}"
    return "inversion", ""


def _of_score(statistic: Statistic) -> tuple[str, str]:
    """The method for a metric other than an error that grows from a perfect value."""
    entry = statistic.entry
    if entry is not None and entry.law in _RATIOS and not asymptotic.why_not(statistic):
        return "asymptotic", "its number of events has an exact distribution"
    if entry is not None and entry.law == "profile likelihood" and not asymptotic.why_no_profile(statistic):
        return "asymptotic", "profile likelihood"
    if not studentized.why_not(statistic):
        return "studentized", "it is a mean of row losses" + _never_failed(statistic)
    return "basic" if entry is None else entry.bootstrap, _VALID


def _of_difference(a: Statistic, b: Statistic, paired: bool) -> tuple[str, str]:
    """The method for the difference of two models.

    A single unbiased error near 0 cannot be below it, and its test is inverted; the difference of two has no such end,
    and its estimate is right on average: resampling is valid for it, as for a score.
    """
    biased = [s.at_its_end for s in (a, b)]
    alike = all(biased) and len(a.observed) == len(b.observed) == 1
    if a.sample.grouped or b.sample.grouped:
        if alike and all(s.entry is not None and s.entry.residual_only for s in (a, b)):
            return "joint", ""  # its own note says why
        if paired and not any(biased) and not any(studentized.why_not(s) for s in (a, b)):
            return "studentized", JACKKNIFE
        return "bootstrap", WHOLE_UNITS
    if not alike:
        return "bootstrap", "" if any(biased) else _VALID
    why = triangle.why_not(a) or triangle.why_not(b)
    return ("bootstrap", f"labels cannot be drawn ({why}): {MAY_MISS}") if why else ("joint", "")


def _never_failed(statistic: Statistic) -> str:
    """A remark on predictions of exactly 0 or 1 whose log loss is finite only because none of them failed."""
    p = statistic.sample.p
    if statistic.entry is None or statistic.entry.key != "nll" or not np.isin(p.probability, (0.0, 1.0)).any():
        return ""
    rows = p.probability if p.probability.ndim == 2 else np.column_stack([p.probability, 1.0 - p.probability])
    n = int((rows == 1.0).any(axis=1).sum())
    return (
        f"; but {n:,} of the predictions are certain and none of them failed here: if one can fail, the true value is "
        "infinite, and the interval does not allow for that"
    )


def _too_dear(statistic: Statistic, brief: bool) -> str:
    entry, n = statistic.entry, statistic.sample.p.n
    if takes_cells(statistic):
        return ""
    if entry is None:
        return "" if n <= _FEW_ROWS else f"draws of your own function are slow on {n:,} rows"
    if entry.inverted_in_tables:
        return "" if n <= _MANY_ROWS else f"draws are slow on {n:,} rows"
    if not entry.draws_in_a_pass:
        return "each draw is slow"
    if brief:
        return "draws are too slow for a table of many metrics"
    return "" if n <= _FEW_ROWS else f"draws are slow on {n:,} rows"
