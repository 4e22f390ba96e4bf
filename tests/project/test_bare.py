"""The public surface can be walked with any optional package missing: dir, hasattr, getmembers, help and getattr."""

from __future__ import annotations

import subprocess
import sys

import pytest

from each import FULL

OPTIONAL = (
    "torch", "matplotlib", "pandas", "polars", "pyarrow", "sklearn", "typer", "rich", "openpyxl", "dask", "duckdb",
    "pyspark", "mlflow", "starlette", "uvicorn",
)  # fmt: skip

WALK = """
import inspect, pydoc, sys, types
blocked = sys.argv[1].split(",")
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
import calibrary as cal
seen = 0
def walk(module, depth):
    global seen
    inspect.getmembers(module)
    pydoc.render_doc(module)
    for name in dir(module):
        if not name.startswith("_"):
            value = getattr(module, name)  # what dir names is there
            seen += 1
            if isinstance(value, types.ModuleType) and value.__name__.startswith("calibrary") and depth < 2:
                walk(value, depth + 1)
walk(cal, 0)
for room in ("losses", "mlflow", "sklearn", "plots", "gallery"):
    hasattr(cal, room)
hasattr(cal.scale, "torch")
print(seen)
"""


def walked(*blocked: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WALK, ",".join(blocked)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("package", ["all of them", *(OPTIONAL if FULL else ("matplotlib",))])
def test_the_public_surface_can_be_walked_without(package):
    done = walked(*(OPTIONAL if package == "all of them" else [package]))
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 300


@pytest.mark.parametrize("path", ["losses", "scale.torch"])
def test_a_room_without_its_package_is_not_in_dir_and_says_what_to_install(path):
    code = f"""
import sys
sys.modules["torch"] = None
import calibrary as cal
parent, _, room = "cal.{path}".rpartition(".")
assert room not in dir(eval(parent)) and not hasattr(eval(parent), room)
cal.{path}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(f"calibrary.{path} needs PyTorch: pip install 'calibrary[torch]'")
