"""What people see: the names, their types, what is missing without an extra, and that nothing leaks."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys

import pytest

import calibrary as cal
from calibrary.metrics.machinery.declare import Redrawing
from calibrary.metrics.machinery.entry import FUNCTIONS, TESTS
from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
make_stubs = importlib.import_module("make_stubs")
PUBLIC = {f.__name__: f for f in (*FUNCTIONS.values(), *(t.function for t in TESTS.values()))}


def test_the_stub_file_is_fresh():
    assert make_stubs.TARGET.read_text() == make_stubs.text(), "run python scripts/make_stubs.py"


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_keyword_of_the_signature_has_a_declared_type_and_no_other(name):
    function = PUBLIC[name]
    keywords = {n for n, v in inspect.signature(function).parameters.items() if v.kind is v.KEYWORD_ONLY}
    declared = set(make_stubs.declared(make_stubs._formula(function)))
    if function not in FUNCTIONS.values():
        declared |= set(Redrawing.__annotations__)
    assert keywords == declared


def test_names_are_public_there_and_few():
    names = dir(cal)
    assert [n for n in names if n.startswith("_") and n != "__version__"] == []
    assert all(hasattr(cal, n) for n in cal.__all__)
    assert set(cal.__all__) <= set(names)
    assert not {"Any", "TYPE_CHECKING", "annotations", "numerics", "infer_many", "step_down_min_p"} & set(names)
    assert {"expected_calibration_error", "evaluate", "report", "interval", "compare", "catalogue"} <= set(cal.__all__)


@pytest.mark.parametrize("room", ["datasets", "gallery", "lens", "maps", "plots", "scale", "sklearn", "study"])
def test_a_room_shows_what_it_has_and_not_what_it_is_built_with(room):
    module = getattr(cal, room)
    names = dir(module)
    assert names
    assert [n for n in names if n.startswith("_")] == []
    for name in names:
        thing = getattr(module, name)
        home = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", "calibrary")
        assert home.partition(".")[0] == "calibrary", name


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
assert len(inspect.getmembers(cal)) > 150
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
        cal.null_distribution("ece", p, n_resamples=9, rng=0),
        cal.hosmer_lemeshow_test(y, p),
        cal.spiegelhalter_z_test(y, p),
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
    assert interval.bootstrap_distribution is interval.replicates
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
    with pytest.raises(TypeError, match="old name of norm: give one of them"):
        cal.pointwise_lp_error(y, p, p=2, norm=2)
    with pytest.warns(DeprecationWarning, match="calibrary.normalized_squared_error_score"):
        assert cal.normalised_squared_error_score is cal.normalized_squared_error_score


def test_names_that_people_have_for_a_metric_are_answered_with_what_to_call():
    with pytest.raises(AttributeError, match=r"calibrary\.expected_calibration_error\(\.\.\.\), or .*compute\('ece'"):
        cal.ece  # noqa: B018
    with pytest.raises(AttributeError, match=r"call calibrary\.compute\('RMSCE'"):  # a name with settings of its own
        cal.RMSCE  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_thing'$"):
        cal.no_such_thing  # noqa: B018
