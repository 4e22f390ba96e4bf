"""Pickles and imports of version 0.2 still find their modules, including modules that have moved."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import subprocess
import sys
import warnings

import pytest

import calibrary as cal
from calibrary.base.moved import MOVED, OLD_NAMES, RenamedFields
from each import each
from paths import REFERENCE
from pickled import told
from same import assert_same

#: Every module of 0.2, with the classes it defined, which pickles name by that path.
MODULES = json.loads((REFERENCE / "modules_0_2.json").read_text(encoding="utf-8"))
#: Modules that were new in 0.3 and have moved since.
SINCE_0_3 = {
    "calibrary.base.plain", "calibrary.cli.app_columns", "calibrary.cli.arrow_sizes", "calibrary.cli.judge",
    "calibrary.cli.logs", "calibrary.cli.monitor", "calibrary.cli.shift", "calibrary.cli.sources",
    "calibrary.data.replicate", "calibrary.diagnostics.neighbors", "calibrary.inference.draw.fast",
    "calibrary.inference.draw.members", "calibrary.inference.draw.population", "calibrary.inference.methods.members",
    "calibrary.inference.methods.units",
    "calibrary.inference.overall.drift", "calibrary.inference.overall.imputed_table",
    "calibrary.inference.overall.many", "calibrary.inference.overall.simultaneous",
    "calibrary.inference.verbs.band", "calibrary.inference.verbs.gate", "calibrary.language.ends",
    "calibrary.language.packed", "calibrary.language.stream", "calibrary.lookup.curve_names",
    "calibrary.lookup.measured_coverage", "calibrary.maps.cumulative_spline", "calibrary.maps.order_preserving",
    "calibrary.maps.prevalence", "calibrary.metrics.bins.gap_forms", "calibrary.metrics.bins.neighbors",
    "calibrary.metrics.cumulative.averaged_two_bin", "calibrary.metrics.cumulative.running_sums",
    "calibrary.metrics.curve.neighbors", "calibrary.metrics.machinery.by", "calibrary.metrics.machinery.literature",
    "calibrary.metrics.machinery.one_pass", "calibrary.metrics.machinery.table2",
    "calibrary.metrics.machinery.trust", "calibrary.metrics.point.label_distributions",
    "calibrary.metrics.segments.fields", "calibrary.metrics.segments.multicalibration",
    "calibrary.metrics.selective.abstention", "calibrary.numerics.compiled.sliding",
    "calibrary.numerics.solve.polygons", "calibrary.numerics.splitmix", "calibrary.numerics.sums.segment_sums",
    "calibrary.plots.centres", "calibrary.recalibrate.fitted_rows",
    "calibrary.recalibrate.inverse", "calibrary.reporting.acting", "calibrary.reporting.cells",
    "calibrary.reporting.ensembles", "calibrary.reporting.facts", "calibrary.reporting.first",
    "calibrary.reporting.language_models",
    "calibrary.reporting.metric_table",
    "calibrary.reporting.remedy", "calibrary.reporting.shifted", "calibrary.reporting.trials",
    "calibrary.reporting.tripod",
    "calibrary.scale.dialects", "calibrary.scale.store_files", "calibrary.secondorder.detector",
    "calibrary.secondorder.result", "calibrary.shift.assumption", "calibrary.shift.density",
    "calibrary.study.chance", "calibrary.trial.one_stage", "calibrary.validation.intervals",
    "calibrary.validation.refits", "calibrary.validation.resamples", "calibrary.validation.shown",
}  # fmt: skip
PICKLES = {version: REFERENCE / f"pickles_{version}" for version in ("0_2", "0_3")}
TOLD = {version: json.loads((folder / "told.json").read_text(encoding="utf-8")) for version, folder in PICKLES.items()}


def imported(path):
    """Import the module without a warning; skip a module whose optional dependency is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return importlib.import_module(path)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("calibrary"):
                raise
            pytest.skip(f"could not import {path!r}: {error}")


@each(sorted(MODULES))
def test_every_old_module_path_finds_the_classes_it_had(path):
    module = imported(path)
    assert [name for name in MODULES[path] if not hasattr(module, name)] == []


@each(sorted(MOVED))
def test_a_module_is_one_object_under_both_paths(old):
    assert old in MODULES or old in SINCE_0_3
    module = imported(old)
    assert module is importlib.import_module(MOVED[old])
    assert module.__name__ == module.__spec__.name == MOVED[old]


def test_importing_an_old_path_leaves_the_function_of_that_name_alone():
    for name in ("interval", "power", "test", "verdict"):
        function = getattr(cal, name)
        module = importlib.import_module(f"calibrary.inference.{name}")
        assert getattr(cal.inference, name) is function is getattr(module, name)
    importlib.import_module("calibrary.metrics.grouping_loss")
    assert cal.metrics.grouping_loss is cal.grouping_loss


def _with_old_attributes(cls=RenamedFields):
    return {cls.__name__: cls} | {k: v for sub in cls.__subclasses__() for k, v in _with_old_attributes(sub).items()}


@each(sorted(OLD_NAMES))
def test_an_owner_of_old_names_has_the_new_ones_and_not_the_old(owner):
    functions = {**vars(cal.kernels), "d_ece_map": cal.d_ece_map, "verdict": cal.verdict, "validate": cal.validate}
    for name in ("plot_reliability", "plot_d_ece_map", "d_ece_map_data", "MapData", "recalibration_data"):
        functions[name] = getattr(cal.plots, name, None)  # without matplotlib there is none
    [getattr(cal.results, name) for name in dir(cal.results)]
    cal.Report, cal.study.TemperatureSweep, cal.maps.CalibrationMap  # noqa: B018 (loads the classes)
    for old, new in OLD_NAMES[owner].items():
        if "." in owner:
            path, _, name = (new if "." in new else f"{owner}.{new}").rpartition(".")
            assert hasattr(importlib.import_module(path), name)
            assert old not in vars(importlib.import_module(owner))
        elif owner[0].isupper() and functions.get(owner, owner) is not None:
            cls = _with_old_attributes()[owner]
            first = new.partition(".")[0]  # of an estimate that is held
            assert hasattr(cls, first) or first in cls.__dataclass_fields__
            assert old not in dir(cls)
        elif functions[owner] is not None:
            assert new in inspect.signature(functions[owner]).parameters
            assert old not in inspect.signature(functions[owner]).parameters


def test_old_paths_are_opened_only_when_asked_for():
    code = "import sys, calibrary.inference; print(sorted(m for m in calibrary.base.moved.MOVED if m in sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str([f"calibrary.inference.{name}" for name in ("interval", "power", "test", "verdict")])


@each([(version, name) for version in TOLD for name in sorted(TOLD[version])])
@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
def test_an_old_pickle_loads_with_the_same_content(version, name):
    thing = pickle.loads((PICKLES[version] / f"{name}.pkl").read_bytes())
    assert_same(told(name, thing), TOLD[version][name], may_add=True)
    again = pickle.loads(pickle.dumps(thing))
    assert type(again) is type(thing)
