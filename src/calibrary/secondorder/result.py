"""The result of an ensemble: five parts, each with estimate, interval, p-value and sentence."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

from calibrary.base.claims import Sentence
from calibrary.base.markup import html_table
from calibrary.base.numbers import ends, number, pvalue_cell
from calibrary.metrics.machinery.declare import Result
from calibrary.secondorder.calibration import EnsembleMean, EnsembleMembers, EnsembleMixture
from calibrary.secondorder.outside import OutsideResult
from calibrary.secondorder.spread import EnsembleSpread
from calibrary.secondorder.uncertainty import EnsembleDecomposition


@dataclass(frozen=True)
class EnsembleResult(Result):
    """The result of :func:`calibrary.ensemble`. Print it, or use ``sentence``.

    Attributes
    ----------
    mean, members, mixture, spread, decomposition : the parts, each with ``estimate``, ``low``, ``high``, ``pvalue``
        and ``sentence``
    outside : the result of :func:`calibrary.outside_rows` for the mean; None without rows that belong to no class
    kind : the interpretation of the members: "draws" or "mixture"
    n, n_members, n_classes, n_labels : numbers of rows, members, classes and labels
    confidence_level, n_resamples : the settings
    sentence : the whole result in words
    """

    mean: EnsembleMean
    members: EnsembleMembers
    mixture: EnsembleMixture
    spread: EnsembleSpread
    decomposition: EnsembleDecomposition
    outside: OutsideResult | None
    kind: str
    n: int
    n_members: int
    n_classes: int
    n_labels: int
    confidence_level: float
    n_resamples: int

    @property
    def sentence(self) -> Sentence:
        """The whole result in words."""
        said = [part.sentence for part in (self.mean, self.members, self.mixture, self.spread, self.decomposition)]
        if self.outside is not None:
            said.append(self.outside.sentence)
        return Sentence.joined(" ", said)

    def __str__(self) -> str:
        return self.sentence

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The numbers by name, formatted for display: value, interval, p-value."""
        s, d = self.spread, self.decomposition
        answers: list[tuple[str, Any]] = [
            ("calibration error of the mean", self.mean),
            ("mean slope of the members", self.members),
            ("calibration error of the best mixture", self.mixture),
            ("true variance" if s.method != "features" else "smallest true variance", s),
            ("epistemic uncertainty (entropy), p as a detector of errors", d),
        ]
        rows = [
            (
                name,
                "no estimate" if isnan(x.estimate) else number(x.estimate),
                ends(x.low, x.high),
                pvalue_cell(x.pvalue),
            )
            for name, x in answers
        ]
        return [*rows[:3], ("claimed variance", number(s.claimed), "", ""), *rows[3:]]

    def _repr_html_(self) -> str:
        """The numbers as HTML, for notebooks."""
        return html_table(("", "estimate", "interval", "p"), self.rows())

    def plot(self, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
        """Draw the estimated against the claimed spread; returns the matplotlib Axes."""
        from calibrary.plots.ensembles import plot_spread

        return plot_spread(self, ax=ax, caption=caption, theme=theme)
