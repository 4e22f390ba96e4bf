"""What people see: the names, their types, what is missing without an extra, and that nothing leaks."""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import re
import subprocess
import sys

import pytest

import calibrary as cal
import own
from calibrary.base.errors import installed
from calibrary.base.moved import MOVED
from calibrary.metrics.machinery.declare import Redrawing
from calibrary.metrics.machinery.entry import FUNCTIONS, TESTS
from calibrary.public import FAMILIAR, INSTEAD, KNOWN, NEEDS, PUBLIC, WITHDRAWN
from each import each
from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
make_stubs = importlib.import_module("make_stubs")
OWN_TESTS = {t.function.__name__: t.function for t in TESTS.values()}
DECLARED = {**{f.__name__: f for f in FUNCTIONS.values()}, **OWN_TESTS}
EXTRAS = {name for name, row in PUBLIC.items() if row.kind == "extra"}
#: Old paths that stood beside the floors: an import of one is an attribute from then on.
MOVED_NAMES = [old.removeprefix("calibrary.") for old in MOVED if old.count(".") == 1]


def test_the_index_of_the_cards_is_fresh():
    assert make_stubs.INDEX.read_text(encoding="utf-8") == make_stubs.index(), "run python scripts/make_stubs.py"


def test_the_stub_files_are_fresh():
    assert make_stubs.TARGET.read_text() == make_stubs.text(), "run python scripts/make_stubs.py"
    assert make_stubs.RESULTS.read_text() == make_stubs.results(), "run python scripts/make_stubs.py"


@each(sorted(PUBLIC))
def test_a_public_name_is_what_the_table_says(name):
    row = PUBLIC[name]
    if row.name in NEEDS and not installed(NEEDS[row.name]):
        assert not hasattr(cal, name)
        return
    thing = getattr(cal, name)
    scope: dict[str, object] = {}
    exec(f"from calibrary import {name}", scope)
    assert scope[name] is thing
    if row.kind in ("room", "extra"):
        assert thing is importlib.import_module(row.module)
        return
    assert vars(importlib.import_module(row.module))[name] is thing
    assert getattr(thing, "__module__", row.module) == row.module, "it is defined elsewhere"
    assert row.since in ("0.1", "0.2", "0.3", "0.4")
    assert (row.kind in ("noun", "result")) == inspect.isclass(thing)
    assert (row.kind == "metric") == (thing in FUNCTIONS.values())
    assert (row.kind == "test") == (name in OWN_TESTS)
    assert hasattr(cal.results, name) == (row.kind == "result")


def test_every_metric_and_every_test_is_in_the_table():
    assert set(DECLARED) == {name for name, row in PUBLIC.items() if row.kind in ("metric", "test")}


def test_the_classes_that_public_functions_name_are_public():
    named = set()
    for name, row in PUBLIC.items():
        if row.kind in ("verb", "table", "metric", "test", "helper") and name != "catalogue":
            defined = vars(importlib.import_module(row.module))
            words = re.findall(r"\w+", str(inspect.signature(getattr(cal, name)).return_annotation))
            named |= {w for w in words if getattr(defined.get(w), "__module__", "").startswith("calibrary")}
    assert len(named) > 30
    assert sorted(named - set(PUBLIC)) == []


def test_nothing_can_be_reached_that_is_neither_public_nor_a_floor():
    inspect.getmembers(cal)  # loads whatever is loaded on first use
    reached = {n for n in vars(cal) if not n.startswith("_")}
    floors = {path.stem for path in (ROOT / "src" / "calibrary").iterdir() if path.name != "__pycache__"}
    assert sorted(reached - set(PUBLIC) - floors - set(MOVED_NAMES) - {"annotations"}) == []


def test_every_name_is_imported_by_itself():
    starred = [str(p) for p in (ROOT / "src").rglob("*.py") if re.search(r"^ *from .* import \*", p.read_text(), re.M)]
    assert starred == []


def test_results_stand_in_a_module_of_their_own():
    assert cal.results.IntervalResult is cal.IntervalResult
    assert {"IntervalResult", "TestResult", "Verdict", "Evaluation"} <= set(dir(cal.results))
    assert not set(dir(cal.results)) & set(dir(cal))
    with pytest.raises(AttributeError, match="'Predictions'"):  # people construct it
        cal.results.Predictions  # noqa: B018


@each(sorted(WITHDRAWN))
def test_a_name_that_was_never_listed_leads_to_its_module(name):
    with pytest.warns(DeprecationWarning, match=rf"use {WITHDRAWN[name]}\.{name}$"):
        thing = getattr(cal, name)
    assert thing is getattr(importlib.import_module(WITHDRAWN[name]), name)
    assert name not in dir(cal)


@each(sorted(DECLARED))
def test_every_keyword_of_the_signature_has_a_declared_type_and_no_other(name):
    function = DECLARED[name]
    keywords = {n for n, v in inspect.signature(function).parameters.items() if v.kind is v.KEYWORD_ONLY}
    declared = set(make_stubs.declared(make_stubs._formula(function)))
    if function not in FUNCTIONS.values():
        declared |= set(Redrawing.__annotations__)
    assert keywords == declared


def test_names_are_public_there_and_few():
    names = dir(cal)
    assert [n for n in names if n.startswith("_") and n != "__version__"] == []
    assert all(hasattr(cal, n) for n in cal.__all__)
    assert set(cal.__all__) == {*names, *dir(cal.metrics)} - {*EXTRAS, "__version__"}
    assert not {"Any", "TYPE_CHECKING", "annotations", "numerics", "infer_many", "step_down_min_p"} & set(names)
    assert {"expected_calibration_error", "evaluate", "decide", "interval", "compare", "catalogue"} <= set(cal.__all__)
    assert len(names) <= 130
    shown = {cal.catalogue[id].declared.function for id, entry in cal.catalogue.items() if entry.familiar}
    assert shown == FAMILIAR
    assert set(names) & set(dir(cal.metrics)) == shown
    assert [n for n in names if n.endswith("_test") and n != "multiple_binomial_test"] == []


def test_every_metric_is_in_the_room_of_metrics_and_an_attribute_as_before():
    assert dir(cal.metrics) == sorted(f.__name__ for f in FUNCTIONS.values())
    for name in dir(cal.metrics):
        assert getattr(cal.metrics, name) is getattr(cal, name)
    with pytest.raises(AttributeError, match=r"module 'calibrary.metrics' has no attribute 'no_such_metric'"):
        cal.metrics.no_such_metric  # noqa: B018


@pytest.mark.parametrize("room", sorted(n for n, row in PUBLIC.items() if row.kind in ("room", "extra")))
def test_a_room_shows_what_it_has_and_not_what_it_is_built_with(room):
    if room in NEEDS:
        pytest.importorskip(NEEDS[room])
    module = getattr(cal, room)
    names = dir(module)
    assert names
    assert [n for n in names if n.startswith("_")] == []
    for name in names:
        thing = getattr(module, name)
        home = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", "calibrary")
        assert home.partition(".")[0] in ("calibrary", "types"), name  # an alias of several types is of "types"


def test_maps_are_found_by_the_names_of_their_classes():
    assert {"Loess", "Isotonic", "Beta", "as_map"} <= set(dir(cal.maps))
    assert cal.maps.Isotonic is cal.maps.map_class("isotonic")
    with pytest.raises(AttributeError, match="Isotonic"):
        cal.maps.Isotonc  # noqa: B018


def test_no_module_hides_a_public_object():
    for name in cal.__all__:
        thing = getattr(cal, name)
        if not inspect.ismodule(thing):
            assert not (ROOT / "src" / "calibrary" / f"{name}.py").exists()
            assert not (ROOT / "src" / "calibrary" / name / "__init__.py").exists()


def test_help_and_getmembers_work_without_optional_packages():
    code = """
import sys
for name in ("torch", "matplotlib", "sklearn", "rich", "typer", "pyarrow", "pandas"):
    sys.modules[name] = None
import calibrary as cal
import inspect, pydoc
assert not hasattr(cal, "losses")
assert len(inspect.getmembers(cal)) > 90
assert "expected_calibration_error" in pydoc.render_doc(cal)
from calibrary import *
every = cal.evaluate([0, 1, 1, 0] * 9, [0.2, 0.7, 0.9, 0.4] * 9)
print(round(cal.brier_score([0, 1], [0.2, 0.7]), 3), every["ece"] > 0)
try:
    cal.plots.plot_reliability([0, 1], [0.2, 0.7])
except ModuleNotFoundError as error:
    print(error)
try:
    cal.losses
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, plots, losses = done.stdout.splitlines()
    assert first == "0.065 True"
    assert plots == "drawing needs matplotlib: pip install 'calibrary[plots]'"
    assert "calibrary[torch]" in losses


def test_the_command_line_without_its_extra_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from calibrary.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "calibrary: the command line needs typer: pip install 'calibrary[cli]'"


def test_entries_and_results_can_be_pickled_and_written_as_plain_dictionaries():
    y, p = [0, 1, 1, 0, 1, 0, 1, 1] * 5, [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3] * 5
    assert pickle.loads(pickle.dumps(cal.catalogue["ece"])) is cal.catalogue["ece"]
    results = [
        cal.interval("bs", y, p, n_resamples=9, rng=0),
        cal.compare("bs", y, p, [0.5] * 40, n_resamples=9, rng=0),
        cal.test("ece", y, p, method=cal.MonteCarlo(n_resamples=9, rng=0)),
        cal.expected_by_chance("ece", None, p, n_resamples=9, rng=0),
        own.hosmer_lemeshow_test(y, p),
        own.spiegelhalter_z_test(y, p),
        cal.reliability_bins(y, p),
        cal.cumulative_difference(y, p),
        cal.evaluate(y, p, metrics=["bs"]),
    ]
    for result in results:
        again = pickle.loads(pickle.dumps(result))
        assert str(again.to_dict()) == str(result.to_dict())
        assert all(isinstance(key, str) for key in result.to_dict())


def test_results_speak_the_words_of_scipy():
    y, p = [0, 1, 1, 0] * 9, [0.2, 0.7, 0.9, 0.4] * 9
    interval = cal.interval("bs", y, p, n_resamples=19, rng=0)
    assert tuple(interval.confidence_interval) == (interval.low, interval.high)
    assert interval.bootstrap_distribution is interval.draws
    test = cal.test("bs", y, p, n_resamples=19, rng=0)
    assert test.null_distribution is test.null


@pytest.mark.parametrize("id", ["hl", "ecce_mad", "skce_uq"])
def test_a_method_object_is_the_string_with_its_settings(id):
    y, p = [0, 1, 1, 0, 1, 0, 1, 1] * 5, [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3] * 5
    by_name = cal.test(id, y, p, method="monte-carlo", n_resamples=29, rng=3)
    by_object = cal.test(id, y, p, method=cal.MonteCarlo(n_resamples=29, rng=3))
    assert by_name.pvalue == by_object.pvalue
    with pytest.raises(TypeError, match="setting of the method object"):
        cal.test(id, y, p, method=cal.MonteCarlo(), n_resamples=29)


def test_old_names_still_work_and_warn():
    y, p = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]
    with pytest.warns(DeprecationWarning, match="p=2 of pwe is an old name: use norm=2"):
        assert cal.pointwise_lp_error(y, p, p=2) == cal.pointwise_lp_error(y, p, norm=2)
    with pytest.warns(DeprecationWarning, match="definition='review'"):
        old = cal.compute("sarps", y, p, form="literal")
    assert old == cal.compute("sarps", y, p, definition="review")
    with pytest.warns(DeprecationWarning, match="n_neighbors=2"):
        cal.interval("ece_knn", y, p, k=2, method="basic", n_resamples=3, rng=0)
    with pytest.raises(TypeError, match="old name of norm: pass one of them"):
        cal.pointwise_lp_error(y, p, p=2, norm=2)
    with pytest.warns(DeprecationWarning, match="calibrary.normalized_squared_error_score"):
        assert cal.normalised_squared_error_score is cal.normalized_squared_error_score


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
def test_old_keywords_of_verbs_still_work_and_warn():
    y, p = [0, 1, 1, 0] * 9, [0.2, 0.7, 0.9, 0.4] * 9
    with pytest.warns(DeprecationWarning, match="id= of compute is an old name: use metric=") as seen:
        assert cal.compute(id="ece", y_true=y, y_prob=p) == cal.compute("ece", y, p)
    assert seen[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="id= of test"):
        old = cal.test(id="ece", y_true=y, y_prob=p, n_resamples=39, rng=0)
    assert old.pvalue == cal.test(metric="ece", y_true=y, y_prob=p, n_resamples=39, rng=0).pvalue
    asked = {"n_resamples": 39, "rng": 0}
    bound = f"ece<{cal.interval('ece', y, p, **asked).high * 0.9:.3f}"
    with pytest.warns(DeprecationWarning, match="on_undecided= of verdict is an old name: use undecided="):
        assert not cal.verdict(bound, y, p, on_undecided="fail", **asked)
    assert not cal.verdict(bound, y, p, undecided="fail", **asked)
    assert cal.verdict(bound, y, p, **asked)
    with pytest.warns(DeprecationWarning, match="by= of verdict is an old name: use judged_by="):
        old = cal.verdict(bound, y, p, by="estimate", **asked)
    assert old == cal.verdict(bound, y, p, judged_by="estimate", **asked)
    assert old.status != "undecided"


def test_every_verb_names_its_metric_alike():
    for name in ("compute", "test", "interval", "compare", "expected_by_chance", "power",
                 "sample_size"):  # fmt: skip
        assert next(iter(inspect.signature(getattr(cal, name)).parameters)) == "metric", name
    with pytest.raises(TypeError, match=r"compute needs a metric: compute\('ece', y_true, y_prob\)"):
        cal.compute()
    p, y = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2], [0.3, 0.3, 0.4]], [1, 2, 0, 2]
    other = cal.squared_kernel_calibration_error_uq(y, p, metric="euclidean")  # an option of the same name
    assert cal.compute("skce_uq", y, p, metric="euclidean") == other != cal.compute("skce_uq", y, p)


def test_decide_asks_for_a_question():
    with pytest.raises(TypeError, match=r"decide\(calibrary.predictions\(y, p\), calibrary.Question\(\)\)"):
        cal.decide([0, 1], [0.2, 0.7])


def test_a_metric_is_found_by_its_short_name_and_by_plain_words_for_it():
    y, p = [0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.4, 0.6]
    for id, entry in cal.catalogue.items():
        found = getattr(cal, id)
        assert found is (getattr(cal, id) if id in PUBLIC else entry.function), id
    assert cal.ece is cal.expected_calibration_error
    assert cal.brier is cal.bs is cal.brier_score
    assert cal.log_loss(y, p) == cal.negative_log_likelihood(y, p)
    assert cal.RMSCE(y, p) == cal.compute("ece", y, p, norm=2) != cal.ece(y, p)  # a name with settings of its own
    assert {"ece", "brier", "RMSCE"}.isdisjoint([*dir(cal), *cal.__all__])


def test_names_of_other_packages_work_or_say_what_to_call():
    for name in KNOWN:
        assert callable(getattr(cal, name)), name
    for name, call in INSTEAD.items():
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}: call {call}")):
            getattr(cal, name)
        function = re.match(r"calibrary\.([\w.]+)\(", call)
        assert callable(functools.reduce(getattr, function[1].split("."), cal)), call
        method = re.search(r"Recalibrator\('(\w+)'\)", call)
        assert method is None or cal.Recalibrator(method[1]).fit([0.2, 0.7, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0, 1] * 9)
    assert cal.plot_reliability is cal.plots.plot_reliability
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_thing'$"):
        cal.no_such_thing  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'plot_no_such_thing'$"):
        cal.plot_no_such_thing  # noqa: B018
