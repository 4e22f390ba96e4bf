"""The environment of the other packages: ``.venv-bench``, beside calibrary's own and never mixed with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from dataclasses import asdict, dataclass, field
from pathlib import Path

from calls import PACKAGES, Package
from rich.console import Console

ROOT = Path(__file__).parent.parent
SHARED = ROOT / ".venv-bench"
#: The build without CUDA, a tenth of the size; first, so that no package pulls in the other one.
TORCH = "torch==2.13.0+cpu"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"


@dataclass
class Environment:
    """Which Python runs which package, the versions found, and why the others are missing."""

    python: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def build(out: Console) -> Environment:
    """Install every package once; later calls read what was noted."""
    note = SHARED / "packages.json"
    if note.exists():
        known = Environment(**json.loads(note.read_text()))
        if set(known.python) | set(known.missing) >= set(PACKAGES):
            return known
    home = Environment()
    python = _made(SHARED)
    for package in PACKAGES.values():
        with out.status(f"installing {package.name}"):
            _add(package, python, home)
        state = home.versions.get(package.name) or f"left out: {home.missing[package.name]}"
        out.print(f"{package.name}: {state}", highlight=False)
    note.write_text(json.dumps(asdict(home), indent=1))
    return home


def _add(package: Package, python: str, home: Environment) -> None:
    # What is installed stays as it is; a package that cannot live with it gets an environment of its own.
    installed = SHARED / "installed.txt"
    installed.write_text(_pip(python, "freeze", "--exclude-editable")[1])  # pip refuses editable ones as constraints
    asked = [*package.options, *package.requirement.split()]
    failed, said = _pip(python, "install", "--quiet", "--constraint", str(installed), *asked)
    if failed:
        python = _made(ROOT / f".venv-bench-{package.name}")
        failed, said = _pip(python, "install", "--quiet", "numpy", *asked)  # worker.py needs numpy
    if failed:
        home.missing[package.name] = _reason(said)
        return
    home.python[package.name] = python
    home.versions[package.name] = _version(python, package.name)


def _made(folder: Path) -> str:
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        if _pip(str(python), "install", "--quiet", TORCH)[0]:
            _pip(str(python), "install", "--quiet", "--extra-index-url", TORCH_INDEX, TORCH)
    return str(python)


def _pip(python: str, *arguments: str) -> tuple[int, str]:
    done = subprocess.run([python, "-m", "pip", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout if not done.returncode else done.stderr


def _version(python: str, name: str) -> str:
    code = f"from importlib.metadata import version; print(version({name!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _reason(said: str) -> str:
    errors = [line for line in said.splitlines() if re.match(r"ERROR|error", line)]
    return (errors or said.strip().splitlines() or ["pip gave no reason"])[-1][:200]


if __name__ == "__main__":
    sys.exit(bool(build(Console()).missing))
