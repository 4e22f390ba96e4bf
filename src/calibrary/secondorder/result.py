"""What an ensemble shows: five answers, each with its number, interval and p-value, and all of them in words."""

from __future__ import annotations

from dataclasses import dataclass
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
    """What :func:`calibrary.ensemble` returns. Print it, or ask ``sentence``.

    Attributes
    ----------
    mean, members, mixture, spread, decomposition : the answers, each with ``estimate``, ``low``, ``high``, ``pvalue``
        and ``sentence``
    outside : what :func:`calibrary.outside_rows` says of rows that belong to no class, by the mean; None without any
    kind : what members are: "draws" or "mixture"
    n, n_members, n_classes, n_labels : rows, members, classes, labels
    confidence_level, n_resamples : how it was made
    sentence : all of it in words
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
        """All answers in words."""
        said = [part.sentence for part in (self.mean, self.members, self.mixture, self.spread, self.decomposition)]
        if self.outside is not None:
            said.append(self.outside.sentence)
        return Sentence.joined(" ", said)

    def __str__(self) -> str:
        return self.sentence

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The numbers by name, written for people: value, interval, p-value."""
        s, d = self.spread, self.decomposition
        told: list[tuple[str, Any]] = [
            ("calibration error of the mean", self.mean),
            ("mean slope of the members", self.members),
            ("calibration error of the best mixture", self.mixture),
            ("variance that is there" if s.method != "features" else "variance that is there at least", s),
            ("epistemic uncertainty (entropy)", d),
        ]
        rows = [(name, number(x.estimate), ends(x.low, x.high), pvalue_cell(x.pvalue)) for name, x in told]
        return [*rows[:3], ("variance that is claimed", number(s.claimed), "", ""), *rows[3:]]

    def _repr_html_(self) -> str:
        """For a notebook: the numbers."""
        return html_table(("", "estimate", "interval", "p"), self.rows())

    def plot(self, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
        """Draw claimed against found spread; returns the matplotlib Axes."""
        from calibrary.plots.ensembles import plot_spread

        return plot_spread(self, ax=ax, caption=caption, theme=theme)
