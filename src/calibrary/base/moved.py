"""Renamed modules, names, attributes and keywords: the old ones still work, for old pickles and programs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from calibrary.base.errors import deprecated

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Old package, new package, and the modules that moved; "options=option_checks" means that the module was also renamed.
_ROOMS = """
calibrary calibrary.base _errors=errors _text=text _numbers=numbers _files=files _once=once
calibrary calibrary.lookup findings=study_findings recommendation=recommend
calibrary calibrary.lookup curves=review_tables
calibrary.metrics calibrary.metrics.machinery declare entry facts measure one_pass by literature=cards table2=cards
calibrary.metrics.machinery calibrary.metrics.machinery literature=cards table2=cards
calibrary.metrics calibrary.metrics.machinery options=option_checks
calibrary.metrics calibrary.metrics.segments fields grouping_loss
calibrary.metrics calibrary.metrics.cumulative averaged_two_bin
calibrary.metrics calibrary.metrics.point coverage=set_coverage label_distributions scores=scoring_functions
calibrary.metrics calibrary.metrics.curve crossfit=cross_fitted distance
calibrary.metrics.point calibrary.metrics.point rows=row_scores
calibrary.metrics.bins calibrary.metrics.bins options=bin_options neighbours=neighbors
calibrary.metrics.curve calibrary.metrics.curve options=map_options neighbours=neighbors
calibrary.inference calibrary.inference.draw fast large=cells lines look null population redraws resampling statistic
calibrary.inference calibrary.inference.methods asymptotic bootstrap inversion multiplicity triangle units
calibrary.inference calibrary.inference.verbs band=chance comparison gate=superseded interval power test verdict
calibrary.inference.verbs calibrary.inference.verbs band=chance gate=superseded
calibrary.inference calibrary.inference.overall decision many sequential simultaneous
calibrary.inference calibrary.inference.overall drift=sequential
calibrary.diagnostics calibrary.diagnostics binomial=grades honest_band=reliability neighbors=reliability
calibrary.diagnostics calibrary.diagnostics neighbours=reliability
calibrary.recalibrate calibrary.recalibrate rows=fitted_rows inverse=recalibrator
calibrary.recalibrate calibrary.maps isotonic
calibrary.reporting calibrary.reporting rows=metric_table
calibrary.scale calibrary.scale rows=cell_rows
calibrary.cli calibrary.cli options=shared
calibrary.cli calibrary.tables arrow_sizes files sources stream=rewrite
calibrary.language calibrary.tables stream=json_stream
calibrary.scale calibrary.tables pieces
calibrary.study calibrary.inference.verbs chance reading=chance
calibrary.numerics.sums calibrary.numerics.sums tile_median=pair_median called=pair_matrix
calibrary.numerics.sums calibrary.numerics segments=runs segment_sums=runs
calibrary.maps calibrary.maps given=base free_beta=likelihood lowess=loess local_linear=loess
calibrary.maps calibrary.maps parabola=spline cumulative_spline=spline shrunk_isotonic=isotonic prevalence=prior_shift
calibrary.numerics.smooth calibrary.numerics.smooth lowess=loess
calibrary.numerics.compiled calibrary.numerics.compiled sliding=nearest
calibrary.numerics.laws calibrary.numerics.laws folded=noncentral
calibrary.numerics calibrary.numerics splitmix=draw
calibrary.inference.overall calibrary.inference.overall drift=sequential
calibrary.lookup calibrary.lookup measured_coverage=study_findings curve_names=review_tables
calibrary.secondorder calibrary.secondorder result=verb
calibrary.shift calibrary.shift assumption=target
calibrary.validation calibrary.validation intervals=corrections
calibrary.study calibrary.study laws=curves
calibrary.metrics.kernel calibrary.metrics.kernel mean_embedding=embedded
calibrary.losses calibrary.losses targets=scores line=nodes finite=blocks
"""
_LINES = [line.split() for line in _ROOMS.strip().splitlines()]
#: Old path of a module: its path today.
MOVED = {f"{old}.{n.split('=')[0]}": f"{new}.{n.split('=')[-1]}" for old, new, *names in _LINES for n in names}

#: Attributes of a class, names of a module or keywords of a function, old=new; a path if the name is in another module.
_OLD_NAMES = """
CalibrationMap kept=for_refit
Entry reads=data_type asked=question_of renewed=with_current_names
ExpectedByChance readings=values value=estimate expected=mean lower=low upper=high
Finding reads=null_mean strays=null_deviation
MapData min_samples=min_count
Power reads=mean reads_calibrated=mean_calibrated
Predictions relabelled=relabeled
Report findings=statements
TemperatureSweep readings=means
calibrary.diagnostics RatioInterval=calibrary.diagnostics.ratio.RatioInterval
calibrary.inference ConsistencyBand=ExpectedByChance ReadingBand=ExpectedByChance
calibrary.inference.verbs.interval Way=calibrary.inference.methods.choice.Way
calibrary.metrics.cumulative brownian_abs_max_log_sf=calibrary.numerics.laws.brownian.brownian_abs_max_log_sf
calibrary.metrics.cumulative brownian_abs_max_sf=calibrary.numerics.laws.brownian.brownian_abs_max_sf
calibrary.metrics.cumulative brownian_range_log_sf=calibrary.numerics.laws.brownian.brownian_range_log_sf
calibrary.metrics.cumulative brownian_range_sf=calibrary.numerics.laws.brownian.brownian_range_sf
calibrary.metrics.machinery.option_checks Option=MetricOption
calibrary.study ExpectedByChance=calibrary.inference.verbs.chance.ExpectedByChance
calibrary.study NullReading=calibrary.inference.verbs.chance.ExpectedByChance
beta_log_kernel centres=centers
d_ece_map min_samples=min_count
d_ece_map_data min_samples=min_count
dirichlet_log_kernel centres=centers
plot_d_ece_map min_samples=min_count
plot_reliability colour=color
recalibration_data window=axis
validate n_jobs=workers
verdict on_undecided=undecided
"""
#: A class, a module or a function: its old names, each with the new one.
OLD_NAMES: dict[str, dict[str, str]] = {}
for _owner, *_names in (line.split() for line in _OLD_NAMES.strip().splitlines()):
    OLD_NAMES.setdefault(_owner, {}).update({old: new for old, _, new in (name.partition("=") for name in _names)})

#: Functions that another call replaces: the path, where the function is now, and the new call.
_SUPERSEDED = """
calibrary.assert_calibrated verdict('ece<0.05', y_true, y_prob).require()
calibrary.calibration_gain compare(metric, y_true, before, after)
calibrary.consistency_band expected_by_chance(metric, y_true, y_prob, method='consistency')
calibrary.null_distribution expected_by_chance(metric, y_true, y_prob)
calibrary.reading_band=consistency_band expected_by_chance(metric, y_true, y_prob, method='consistency')
calibrary.inference.assert_calibrated verdict('ece<0.05', y_true, y_prob).require()
calibrary.inference.calibration_gain compare(metric, y_true, before, after)
calibrary.inference.consistency_band expected_by_chance(metric, y_true, y_prob, method='consistency')
calibrary.inference.null_distribution expected_by_chance(metric, y_true, y_prob)
calibrary.inference.reading_band=consistency_band expected_by_chance(metric, y_true, y_prob, method='consistency')
calibrary.study.expected_by_chance expected_by_chance(metric, y_true, y_prob)
calibrary.study.null_reading=expected_by_chance expected_by_chance(metric, y_true, y_prob)
calibrary.observed_expected_interval interval('oe', y_true, y_prob)
calibrary.diagnostics.observed_expected_interval interval('oe', y_true, y_prob)
"""
_OLD_FUNCTIONS = "calibrary.inference.verbs.superseded"
#: Path of a function that another call replaces: its module, its name there, and the new call.
SUPERSEDED: dict[str, tuple[str, str, str]] = {}
for _path, _call in (line.split(" ", 1) for line in _SUPERSEDED.strip().splitlines()):
    _path, _, _today = _path.partition("=")
    _today = _today or _path.rpartition(".")[2]
    _module = "calibrary.diagnostics.ratio" if _today == "observed_expected_interval" else _OLD_FUNCTIONS
    SUPERSEDED[_path] = (_module, _today, f"calibrary.{_call}")


def superseded(path: str) -> Any:
    """A function that another call replaces, with a warning that gives the new call."""
    module, name, call = SUPERSEDED[path]
    deprecated(path, call)
    return getattr(import_module(module), name)


class _Finder:
    """Import finder for the old paths: it returns the module itself, then in ``sys.modules`` under both names."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(MOVED[spec.name])
        spec.loader_state = module.__spec__  # the import system now writes the old spec on the module
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = module.__spec__ and module.__spec__.loader_state


def keep_old_paths() -> None:
    """Make the old paths importable; a function named like its old module remains the package's attribute."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
    for old, new in MOVED.items():
        package, _, name = old.rpartition(".")
        if new in sys.modules and package in sys.modules and name in vars(sys.modules[package]):
            sys.modules[old] = sys.modules[new]


def old_names(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module in which names were changed: an old name gives the new object and a warning."""

    def found(name: str) -> Any:
        if f"{module}.{name}" in SUPERSEDED:
            return superseded(f"{module}.{name}")
        if name not in OLD_NAMES.get(module, {}):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = OLD_NAMES[module][name]
        where, _, current = (new if "." in new else f"{module}.{new}").rpartition(".")
        deprecated(f"{module}.{name}", f"{where}.{current}")
        return getattr(import_module(where), current)

    return found


def takes_old_keywords(function: _Function) -> _Function:
    """The function, which also takes the old names of its keywords, with a warning."""
    name = function.__name__

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        for old, new in OLD_NAMES[name].items():
            if old in options:
                deprecated(f"{old}= of {name}", f"{new}=")
                options[new] = options.pop(old)
        return function(*arguments, **options)

    return cast("_Function", called)


class RenamedFields:
    """An object with renamed attributes: an old name gives the attribute and a warning, and old pickles are read."""

    @classmethod
    @functools.cache  # it is asked whenever an attribute is looked for and not there
    def _renamed(cls) -> dict[str, str]:
        """Old names of attributes, each with its new name."""
        return {old: new for base in cls.__mro__ for old, new in OLD_NAMES.get(base.__name__, {}).items()}

    if not TYPE_CHECKING:  # a type checker shall report unknown attributes

        def __getattr__(self, name: str) -> Any:
            cls, new = type(self), self._renamed().get(name)
            if new is None:
                return object.__getattribute__(self, name)  # the usual error, or the one inside a property
            deprecated(f"{cls.__name__}.{name}", f"{cls.__name__}.{new}")
            return getattr(self, new)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        renamed = self._renamed()
        vars(self).update({renamed.get(name, name): value for name, value in state.items()})
