"""The question to be answered from data: metric options, lens and average, and the confidence level.

A ``Question`` is created once, in the function the user calls (a metric, ``interval``, ``evaluate``, ``report``), and
is passed unchanged with the data, so that a page's headline, table and figures answer the same question.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from calibrary.base.errors import one_of, whole
from calibrary.data.asked import check_asked, check_type
from calibrary.data.lens import Lens, lens_name

_NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Question:
    """All settings that a user can choose besides the data.

    Attributes
    ----------
    options : the metrics' own options by name; each metric uses those it has
    lens, r : which events of the predictions are evaluated, and the rank for lenses that need one
    average : how the views of a lens are combined; "auto" is the metric's default
    weight_type : what weights mean in tests and standard errors
    confidence_level, n_resamples, rng, workers : settings of intervals and tests
    adjust : how p-values of many metrics are adjusted; None is the table's default
    by : columns that split the rows, for one result per part
    fixed : options chosen once on the original data and kept in every resample, by the key of the view
    """

    options: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    lens: str | Lens = "auto"
    average: Any = "auto"
    r: int | None = None
    weight_type: str = "frequency"
    confidence_level: float = 0.95
    n_resamples: int = 999
    rng: Any = None
    workers: int | None = None
    adjust: str | None = None
    by: Any = None
    fixed: Mapping[Hashable, Mapping[str, Any]] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        one_of("weight_type", self.weight_type, ("frequency", "importance"))
        check_asked({name: getattr(self, name) for name in ("n_resamples", "workers", "average")})
        if self.r is not None:
            whole("r", self.r)
        check_type("options", self.options, "Mapping")

    def changed(self, **changes: Any) -> Question:
        """The same question with these settings changed."""
        return replace(self, **changes)

    def of(self, names: Iterable[str]) -> Question:
        """The question for a metric with these options: other options are left out."""
        if not self.options:
            return self
        known = set(names)
        return replace(self, options={name: value for name, value in self.options.items() if name in known})

    def with_options(self, **options: Any) -> Question:
        """The same question with further options."""
        return replace(self, options={**self.options, **options}) if options else self


#: Words with the same meaning for a setting.
_SAME: dict[str, dict[Any, Any]] = {
    "average": {"macro": "uniform", "weighted": "prevalence"},
    "norm": {"l1": 1, "l2": 2, "max": float("inf")},
}


def same_setting(name: str, a: Any, b: Any) -> bool:
    """Whether two values of a setting mean the same."""
    if name == "lens":
        return lens_name(a) == lens_name(b)
    if not all(isinstance(value, str | float | int | None) for value in (a, b)):
        return a is b
    same = _SAME.get(name, {})
    return bool(same.get(a, a) == same.get(b, b))


#: The question of a call without options.
PLAIN = Question()

#: Keywords for the lens and for parts of the data, which are not options of a metric.
LOOKING = ("lens", "average", "r", "by")
_SETTINGS = {f.name for f in fields(Question)} - {"options", "fixed"}


def question_of(keywords: Mapping[str, Any], own: Iterable[str] = (), **settings: Any) -> Question:
    """The question of a call: ``keywords`` except those of lens and parts, or the metric's ``own``, are options."""
    if not keywords and not settings:
        return PLAIN
    looked = [name for name in LOOKING if name not in own]
    options = {name: value for name, value in keywords.items() if name not in looked}
    looking = {name: keywords[name] for name in looked if name in keywords}
    return Question(options=options, **looking, **settings)
