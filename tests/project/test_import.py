"""What ``import calibrary`` loads: itself, and nothing that takes time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from paths import ROOT

METRICS, INFERENCE = ROOT / "src" / "calibrary" / "metrics", "calibrary.inference"
LIGHT = {
    "calibrary", "calibrary._version", "calibrary.base", "calibrary.base.errors", "calibrary.base.moved",
    "calibrary.base.text", "calibrary.public",
}  # fmt: skip
OPTIONAL = ("numba", "matplotlib", "pandas", "polars", "torch", "sklearn", "pyarrow", "typer", "rich", "scipy.stats")


def said(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_importing_calibrary_loads_its_table_of_names_alone():
    loaded = set(said("import sys, calibrary; print(*sys.modules)"))
    assert {name for name in loaded if name.startswith(("calibrary", "numpy", "scipy"))} == LIGHT
    assert not loaded & set(OPTIONAL)


def test_a_metric_and_an_interval_load_no_optional_package():
    code = "import sys, calibrary as cal; cal.interval('ece', [0, 1, 1, 0] * 9, [0.1, 0.8, 0.6, 0.3] * 9, rng=0)"
    loaded = set(said(code + "; print(*sys.modules)"))
    assert not loaded & set(OPTIONAL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="does not apply: this system copies no processes")
def test_floors_are_attributes_as_before():
    # each of them first, in a copy of a process that has loaded nothing of calibrary but its table of names
    floors = ("metrics", "inference", "grouping", "maps", "kernels", "numerics", "data", "lookup")
    code = (
        "import os, numpy, scipy.stats, calibrary\n"
        f"for floor in {floors!r}:\n"
        "    if not os.fork():\n"
        "        print(getattr(calibrary, floor).__name__, flush=True)\n"
        "        os._exit(0)\n"
        "    assert os.wait()[1] == 0\n"
    )
    assert said(code) == [f"calibrary.{floor}" for floor in floors]


def test_a_function_with_the_name_of_a_module_that_moved_stays_a_function():
    code = "import calibrary.inference.interval, calibrary as cal; print(type(cal.inference.interval).__name__)"
    assert said(code) == ["function"]
    assert said("from calibrary.inference.interval import interval; print(type(interval).__name__)") == ["function"]


FORMULAS = tuple(f"calibrary.metrics.{p.name}" for p in METRICS.iterdir() if p.is_dir() and p.name != "machinery")


def loaded_by(code):
    """The packages of formulas, and inference, that a program loads."""
    return {
        name for name in said(f"{code}; import sys; print(*sys.modules)") if name.startswith((*FORMULAS, INFERENCE))
    }


def by_command(*words):
    quiet = "import io, sys, contextlib, calibrary.cli as cli; sys.argv = ['calibrary', *{}]\nheld = io.StringIO()\n"
    run = "with contextlib.redirect_stdout(held), contextlib.suppress(SystemExit): cli.main()\nassert held.getvalue()"
    return loaded_by(quiet.format(words) + run)


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("explain", "ece"),
        ("explain", "cis.slope"),
        ("recommend", "--task", "binary"),
        ("table2",),
        ("notation",),
    ],
    ids=" ".join,
)
def test_a_command_of_the_catalogue_loads_no_formula(words):
    pytest.importorskip("typer")
    assert by_command(*words) == set()


def test_the_list_of_metrics_needs_no_array():
    pytest.importorskip("typer")
    code = "import sys, calibrary.cli.catalogue as c; c.listing(c.listed_metrics(), 80); print(*sys.modules)"
    assert not {"numpy", "scipy"} & set(said(code))


def test_the_catalogue_loads_no_formula():
    looked_up = "cal.catalogue['RMSCE']; cal.catalogue['cis.slope'].title; repr(cal.catalogue); cal.catalogue.table2()"
    assert loaded_by(f"import calibrary as cal; {looked_up}; cal.recommend('binary'); cal.notation()") == set()
    facts = "[(e.meaning, e.options, e.has_test, e.covered, e._repr_html_()) for e in cal.catalogue.values()]"
    assert loaded_by(f"import calibrary as cal; {facts}") == set()


def test_a_metric_loads_its_own_module_alone():
    found = loaded_by("import calibrary as cal; assert cal.compute('bs', [0, 1], [0.2, 0.7]) > 0")
    assert "calibrary.metrics.point.brier" in found
    assert not any(name.startswith((INFERENCE, "calibrary.metrics.bins", "calibrary.metrics.curve")) for name in found)


def test_a_test_by_redrawn_labels_needs_no_other_import():
    code = "import calibrary as cal; y, p = [0, 1] * 20, [0.3, 0.6] * 20; print(cal.test('spiegelhalter', "
    assert 0 < float(said(f"{code}y, p, method='monte-carlo', n_resamples=19, rng=0).pvalue)")[0]) <= 1
