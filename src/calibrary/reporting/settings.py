"""The settings of a report, everything but the data, in one object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, TypeVar

from calibrary.base.errors import RefusedError
from calibrary.base.text import in_sentence
from calibrary.data.checks import as_array
from calibrary.inference.overall.decision import Decision
from calibrary.options import checked
from calibrary.question import Question
from calibrary.reporting.sections import Asked

#: Draws of a report of every metric: enough for p = 0.01, also two-sided and whatever the data.
DRAWS = 199

#: The results that have a section of their own: the class, and the verb that returns it.
_RESULTS = {
    "sampled": ("SampledResult", "sampled_answers"), "judge": ("JudgedResult", "judged"),
    "target": ("ShiftResult", "under_shift"), "shift": ("ShiftCurve", "shift_curve"),
    "ensemble": ("EnsembleResult", "ensemble"), "outside": ("OutsideResult", "outside_rows"),
}  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """The settings of :func:`calibrary.report`: everything but the data.

    ``cal.report(y, p, settings=ReportSettings(lens="class-wise"))`` is ``cal.report(y, p, lens="class-wise")``; one
    object then serves many reports, and a keyword beside it changes that setting alone.

    Parameters
    ----------
    groups : array-like of shape (N,), optional
        Subgroups to report one by one; the older spelling of ``by``.
    by : column or dict of columns, optional
        Columns that split the rows: who is affected.
    time : array-like of shape (N,), optional
        Dates or order of the rows: calibration over time.
    thresholds : list of float, optional
        Probabilities above which someone acts: what miscalibration costs there.
    units : array-like of shape (N,), optional
        Rows of one patient, image or prompt, which are drawn together: for the decision, the intervals and the tests.
    blocks : int or True, optional
        Rows are in time order, and runs of this many (True: N^(1/3)) are drawn together.
    source, command
        Where the rows came from and how the report was asked for, for its provenance.
    metrics : ids or families, optional
        What goes into the table; default everything that applies.
    primary : str
        The metric of the headline, chosen before looking at the data.
    lens, average, r, weight_type, ordinal
        As in :func:`calibrary.evaluate`; the same for the headline, the table and the figures.
    n_bins : int, optional
        Bins of every binned metric and figure; each metric's own number unless given.
    n_resamples : int, optional
        Bootstrap and Monte Carlo draws; 0 gives point values only. Default: 199.
    confidence_level : float
        Nominal coverage of the intervals.
    tolerance : float, optional
        The ECE up to which the verdict calls a model calibrated. Default: 0.05, and of two classes at most a fifth of
        the share of the rarer one.
    rng : int
        Seed; the same seed gives the same report.
    jobs : int, optional
        Processes that share the work, one on each core; the numbers are the same up to rounding for any number of them.
    sampled : SampledResult, optional
        What :func:`calibrary.sampled_answers` says: it is the answer of the page, whose rows are the shares.
    judge : JudgedResult, optional
        What :func:`calibrary.judged` says, in a section of its own; the rows are those with a human label.
    target : ShiftResult, optional
        What :func:`calibrary.under_shift` says of a target without labels, in a section of its own.
    shift : ShiftCurve, optional
        What :func:`calibrary.shift_curve` says of groups in an order, in a section of its own.
    prevalence : float or sequence, optional
        Share of the positive class (or of every class) where the model will be used: what would help is judged there,
        under label shift, with :class:`calibrary.recalibrate.PriorShift` among the maps.
    ensemble : EnsembleResult, optional
        What :func:`calibrary.ensemble` says, in a section of its own; the rows are those of the mean.
    outside : OutsideResult, optional
        What :func:`calibrary.outside_rows` says, in a section of its own; the rows are the others.
    title, notes
        What stands above the page, and sentences that stand below it.
    purpose, author, date : str, optional
        What the page is for, who made it and when; they stand below the title, and a line to sign at the end.
    options : dict
        Options of metrics and the extra inputs that some need (``features``, ``norm``, ...).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> quick = cal.ReportSettings(metrics=["ece", "bs"], n_resamples=0)
    >>> cal.report(y, p, settings=quick, title="Biopsies").headline
    'The expected calibration error is 0.058. No test was made, so this shows the size, not the evidence.'
    """

    groups: Any = None
    by: Any = None
    time: Any = None
    thresholds: Any = None
    units: Any = None
    blocks: int | bool | None = None
    source: Any = None
    command: Any = None
    metrics: Any = None
    primary: str = "ece"
    lens: Any = "auto"
    average: Any = "auto"
    r: int | None = None
    weight_type: str = "frequency"
    ordinal: bool = False
    n_bins: int | None = None
    n_resamples: int | None = None
    confidence_level: float = 0.95
    tolerance: float | None = None
    rng: int | None = 0
    jobs: int | None = None
    title: str = "Calibration report"
    notes: tuple[str, ...] = ()
    purpose: str = ""
    author: str = ""
    date: Any = ""
    sampled: Any = None
    judge: Any = None
    target: Any = None
    shift: Any = None
    prevalence: Any = None
    ensemble: Any = None
    outside: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked({name: getattr(self, name) for name in SETTINGS})
        for name, (kind, verb) in _RESULTS.items():
            value = getattr(self, name)
            if value is not None and type(value).__name__ != kind:
                raise RefusedError(f"{name}={in_sentence(value)} is no {kind}: pass what calibrary.{verb} returns")

    @classmethod
    def of(cls, settings: ReportSettings | None, keywords: Mapping[str, Any]) -> ReportSettings:
        """The settings changed by keywords; keywords that are not settings are options of metrics."""
        start = cls() if settings is None else settings
        if not isinstance(start, cls):
            raise TypeError(f"settings={settings!r}: pass calibrary.ReportSettings(...), or its fields as keywords")
        own = {name: value for name, value in keywords.items() if name in SETTINGS}
        options = {name: value for name, value in keywords.items() if name not in SETTINGS}
        return replace(start, **own, options={**start.options, **options})

    @property
    def about(self) -> dict[str, str]:
        """Purpose, author and date, if they were given."""
        named = {"purpose": self.purpose, "author": self.author, "date": self.date}
        return {name: str(value) for name, value in named.items() if value not in (None, "")}

    @property
    def draws(self) -> int:
        """Bootstrap and Monte Carlo draws; 0 if nothing is resampled, as with shares that include sampling noise."""
        if self.sampled is not None:
            return 0
        return DRAWS if self.n_resamples is None else self.n_resamples

    @property
    def question(self) -> Question:
        """The settings that headline, table and figures share."""
        bins = {} if self.n_bins is None else {"n_bins": self.n_bins}
        return Question(
            options={**self.options, **bins}, lens=self.lens, average=self.average, r=self.r,
            weight_type=self.weight_type, confidence_level=self.confidence_level, n_resamples=self.draws or 1,
            rng=self.rng, workers=self.jobs,
        )  # fmt: skip

    def asked(self, primary: str, decision: Decision | None) -> Asked:
        """The inputs of single sections."""
        by = self.by
        if by is None and self.groups is not None:
            by = {"group": as_array(self.groups, "groups").astype(str)}
        return Asked(
            by, self.thresholds, self.units, self.time, self.source, self.command, primary, decision, self.sampled,
            self.judge, self.target, self.shift, self.prevalence, self.ensemble, self.outside,
        )  # fmt: skip


#: The keywords of a report that are its settings.
SETTINGS = tuple(f.name for f in fields(ReportSettings) if f.name != "options")


def takes_settings(function: Function) -> Function:
    """Show the settings as keywords of a function that collects them: for ``help``, completion and the stub file."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    shown = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
        for f in fields(ReportSettings)
        if f.default is not MISSING
    ]
    more = inspect.Parameter("inputs", inspect.Parameter.VAR_KEYWORD, annotation="Any")
    function.__signature__ = signature.replace(parameters=[*own, *shown, more])  # type: ignore[attr-defined]
    return function
