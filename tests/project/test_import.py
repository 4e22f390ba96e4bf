"""What ``import calibrary`` loads: itself, and nothing that takes time."""

from __future__ import annotations

import subprocess
import sys

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


def test_floors_are_attributes_as_before():
    for floor in ("metrics", "inference", "grouping", "maps", "kernels", "numerics", "data", "lookup"):
        assert said(f"import calibrary; print(calibrary.{floor}.__name__)") == [f"calibrary.{floor}"]


def test_a_function_with_the_name_of_a_module_that_moved_stays_a_function():
    code = "import calibrary.inference.interval, calibrary as cal; print(type(cal.inference.interval).__name__)"
    assert said(code) == ["function"]
    assert said("from calibrary.inference.interval import interval; print(type(interval).__name__)") == ["function"]
