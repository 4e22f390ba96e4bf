"""The settings of a report, everything but the data, in one object."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from calibrary.base.errors import RefusedCallError, RefusedError, deprecated, suggest
from calibrary.base.text import in_sentence
from calibrary.data.asked import check_asked
from calibrary.data.checks import as_array
from calibrary.lookup import catalogue
from calibrary.options import checked, documented, fields_of_settings, settings
from calibrary.question import Question

#: Draws of a report of every metric: enough for p = 0.01, also two-sided and whatever the data.
DRAWS = 199

#: The entries of ``about``.
_ABOUT = ("title", "purpose", "author", "date", "notes", "source", "command")
#: Classes of results that make a section of their own: its key, and the verb that returns such a result.
RESULTS = {
    "SampledResult": ("sampled", "sampled_answers"),
    "JudgedResult": ("judge", "judged"),
    "EnsembleResult": ("ensemble", "ensemble"),
    "OutsideResult": ("outside", "outside_rows"),
    "ShiftResult": ("target", "under_shift"),
    "ShiftCurve": ("shift", "shift_curve"),
    "Validation": ("validation", "validate"),
    "Pooled": ("centres", "pooled"),
}
#: Keywords of 0.3, each with what is passed today.
_OLD = {
    "groups": "by={'group': ...}",
    "jobs": "workers=...",
    **{name: f"about={{{name!r}: ...}}" for name in _ABOUT},
    **{key: f"sections=[calibrary.{verb}(...)]" for key, verb in RESULTS.values() if verb != "validate"},
}

Function = TypeVar("Function", bound=Callable[..., Any])
Settings = TypeVar("Settings", bound="ReportSettings")


def _takes_old_keywords(kind: type[Settings]) -> type[Settings]:
    """The class of settings as a dataclass, which also takes the keywords of 0.3, with a warning."""
    kind = dataclass(frozen=True, kw_only=True)(kind)
    usual = kind.__init__

    @functools.wraps(usual)
    def called(self: Settings, **given: Any) -> None:
        usual(self, **_current(given))

    kind.__init__ = called  # type: ignore[assignment]
    kind.__doc__ = documented(kind.__doc__)
    return kind


@_takes_old_keywords
class ReportSettings(fields_of_settings()):  # type: ignore[misc]
    """The settings of :func:`calibrary.report`: everything but the data.

    ``cal.report(y, p, settings=ReportSettings(lens="class-wise"))`` is ``cal.report(y, p, lens="class-wise")``; one
    object then serves many reports, and a keyword beside it changes that setting alone.

    Parameters
    ----------
    ...

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> quick = cal.ReportSettings(metrics=["ece", "bs"], n_resamples=0)
    >>> cal.report(y, p, settings=quick, about={"title": "Biopsies"}).headline
    'The expected calibration error is 0.058. No test was made, so this shows the size, not the evidence.'
    """

    def __post_init__(self) -> None:
        checked({name: getattr(self, name) for name in SETTINGS})
        if not isinstance(self.axis, str):
            from calibrary.plots.axis import axis_of

            axis_of(None, self.axis)  # type: ignore[arg-type]  # two ends need no data
        check_asked({name: getattr(self, name) for name in ("lens", "average", "r", "rng")})
        object.__setattr__(self, "options", self.options or {})
        object.__setattr__(self, "about", _about(self.about))
        object.__setattr__(self, "sections", _results(self.sections))

    if not TYPE_CHECKING:  # a type checker shall report old names

        def __getattr__(self, name: str) -> Any:
            if name not in _OLD:
                raise AttributeError(f"'ReportSettings' object has no attribute {name!r}")
            deprecated(f"ReportSettings.{name}", _OLD[name])
            return self._old(name)

    def _old(self, name: str) -> Any:
        """The value of a keyword of 0.3; None if it was not given."""
        if name == "jobs":
            return self.workers
        if name == "groups":
            return self.by.get("group") if isinstance(self.by, Mapping) else None
        return self.about.get(name) if name in _ABOUT else self.result(name)

    @classmethod
    def of(cls, settings: ReportSettings | None, keywords: Mapping[str, Any]) -> ReportSettings:
        """The settings changed by keywords; keywords that are not settings are options of metrics."""
        start = cls() if settings is None else settings
        if not isinstance(start, cls):
            raise TypeError(f"settings={settings!r}: pass calibrary.ReportSettings(...), or its fields as keywords")
        for name in (name for name in _OLD if name in keywords):
            today = _OLD[name].partition("=")[0]
            if keywords.get(today) is not None:
                raise RefusedCallError(
                    f"{name}= is the old name of {_OLD[name]}, and {today}= is given too: pass {today}="
                )
        own = {name: value for name, value in keywords.items() if name in SETTINGS or name in _OLD}
        options = {name: value for name, value in keywords.items() if name not in own}
        for name in options:
            near = get_close_matches(name, SETTINGS, n=1, cutoff=0.8)
            if near and not any(name in entry.options for entry in catalogue.values()):
                raise RefusedCallError(f"report takes no {name!r}: did you mean {near[0]!r}?")
        kept = {"by": start.by, "workers": start.workers, "about": start.about, "sections": start.sections}
        return replace(start, **_current({**kept, **own}), options={**start.options, **options})

    def with_about(self, **facts: Any) -> ReportSettings:
        """These settings with other entries of ``about``."""
        return replace(self, about={**self.about, **facts})

    def result(self, key: str) -> Any:
        """The first of the ``sections`` that is the result with this key on the page; None if there is none."""
        return next((found for found in self.sections if RESULTS[type(found).__name__][0] == key), None)

    @property
    def signed(self) -> dict[str, str]:
        """Purpose, author and date, if they were given."""
        named = {name: self.about.get(name) for name in ("purpose", "author", "date")}
        return {name: str(value) for name, value in named.items() if value not in (None, "")}

    @property
    def draws(self) -> int:
        """Bootstrap and Monte Carlo draws; 0 if nothing is resampled, as with shares that include sampling noise."""
        if self.result("sampled") is not None:
            return 0
        return DRAWS if self.n_resamples is None else self.n_resamples

    @property
    def question(self) -> Question:
        """The settings that headline, table and figures share."""
        bins = {} if self.n_bins is None else {"n_bins": self.n_bins}
        return Question(
            options={**self.options, **bins}, lens=self.lens, average=self.average, r=self.r,
            weight_type=self.weight_type, confidence_level=self.confidence_level, n_resamples=self.draws or 1,
            rng=self.rng, workers=self.workers,
        )  # fmt: skip


def _about(given: Any) -> dict[str, Any]:
    """The entries of ``about``, checked."""
    if not isinstance(given, Mapping | None):
        raise RefusedError(f"about={in_sentence(given)}: pass a dict, such as about={{'title': 'My model'}}")
    found = {name: value for name, value in (given or {}).items() if value is not None}
    for name, value in found.items():
        if name not in _ABOUT:
            raise RefusedError(f"about[{name!r}] is not known: {suggest(str(name), _ABOUT)}")
        if name in ("title", "purpose", "author") and not isinstance(value, str):
            raise RefusedError(f"about[{name!r}]={in_sentence(value)}: pass text")
    notes = found.get("notes", ())
    listed = [notes] if isinstance(notes, str) else notes
    if not isinstance(listed, Sequence) or not all(isinstance(note, str) for note in listed):
        raise RefusedError(f"about['notes']={in_sentence(notes)}: pass a list of sentences")
    return {**found, "notes": tuple(listed)} if listed else found


def _results(given: Any) -> tuple[Any, ...]:
    """The results in ``sections``, checked: each of a kind that has a section."""
    found = [given] if type(given).__name__ in RESULTS else given
    if not isinstance(found, Sequence | None) or isinstance(found, str):
        raise RefusedError(f"sections={in_sentence(given)}: pass a list of results, such as [calibrary.judged(...)]")
    for place, result in enumerate(found or ()):
        if type(result).__name__ not in RESULTS:
            verbs = [f"calibrary.{verb}" for _, verb in RESULTS.values()]
            named = f"{', '.join(verbs[:-1])} or {verbs[-1]}"
            raise RefusedError(f"sections[{place}]={in_sentence(result)} has no section: pass what {named} returns")
    if sum(type(result).__name__ == "SampledResult" for result in found or ()) > 1:
        raise RefusedError("sections holds two results of sampled_answers, and a page has one answer: make two reports")
    return tuple(found or ())


def _current(given: dict[str, Any]) -> dict[str, Any]:
    """Keywords of settings with those of 0.3 under their names of today, each with a warning."""
    for name in (name for name in _OLD if name in given):
        deprecated(f"{name}= of report", _OLD[name])
        value = given.pop(name)
        if name == "jobs":
            given["workers"] = value
        elif name == "groups" and value is not None:
            # as names, also where they are numbers; a Series keeps its index, by which rows are compared
            given["by"] = {"group": (value if hasattr(value, "index") else as_array(value, "groups")).astype(str)}
        elif name in _ABOUT:
            given["about"] = {**(given.get("about") or {}), name: value}
        elif value is not None:
            kind, verb = next((kind, verb) for kind, (key, verb) in RESULTS.items() if key == name)
            if type(value).__name__ != kind:
                raise RefusedError(f"{name}={in_sentence(value)} is no {kind}: pass what calibrary.{verb} returns")
            others = [found for found in given.get("sections") or () if type(found).__name__ != kind]
            given["sections"] = [*others, value]
    return given


#: The keywords of a report that are its settings.
SETTINGS = tuple(name for name in settings() if name != "options")


def takes_settings(function: Function) -> Function:
    """Show the settings as keywords of a function that collects them: for ``help``, completion and the stub file."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.initial, annotation="Any")
        for name, option in settings().items()
        if not option.rare
    ]
    more = inspect.Parameter("inputs", inspect.Parameter.VAR_KEYWORD, annotation="Any")
    function.__doc__ = documented(function.__doc__, rare=False)
    function.__signature__ = signature.replace(parameters=[*own, *shown, more])  # type: ignore[attr-defined]
    return function
