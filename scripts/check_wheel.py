"""Build the wheel and the source archive, and use them as a stranger would.

    python scripts/check_wheel.py [--tag v0.4.0] [--pythons python3.11,python3.13]

The archives are checked by twine. For every Python (by default the one that runs this script) the plain wheel is
installed in an empty environment and computes a metric, with the extra ``all`` it runs ``calibrary demo``, and with the
extra ``app`` it serves the start page of the app. The source archive makes the same wheel. Needs ``build`` and
``twine``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"

_PLAIN = """
import importlib.util, sys
import calibrary as cal
assert "site-packages" in cal.__file__, cal.__file__
for name in ("matplotlib", "typer", "pyarrow", "pandas", "sklearn", "torch"):
    assert importlib.util.find_spec(name) is None, f"{name} came along with the plain wheel"
y, p, _ = cal.datasets.breast_cancer()
ece, test = cal.expected_calibration_error(y, p), cal.test("spiegelhalter", y, p)
assert 0.05 < ece < 0.07 and test.pvalue < 0.01, (ece, test)
assert 0 < cal.interval("ece", y, p, n_resamples=99, rng=0).low < ece
print(f"plain wheel: calibrary {cal.__version__}, ECE {ece:.4f}")
"""


def main(tag: str | None = None, pythons: tuple[str, ...] = (sys.executable,)) -> None:
    if tag is not None:
        check_tag(tag)
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(DIST.iterdir())))
    wheel, source = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    check_contents(wheel)
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            plain = environment(Path(folder) / "plain", python)
            run(plain, "--version")
            run(plain, "-m", "pip", "install", "--quiet", str(wheel))
            run(plain, "-c", _PLAIN, cwd=folder)
            check_source(plain, source, wheel, Path(folder))
            check_demo(wheel, Path(folder), python)
            check_app(wheel, Path(folder), python)
    print(f"checked: {wheel.name}, {source.name}")


def check_tag(tag: str) -> None:
    """A release has one version in every place, and a date."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/calibrary/_version.py").read_text())[1]  # type: ignore[index]
    assert tag == f"v{version}", f"the tag is {tag}, the version in src/calibrary/_version.py {version}"
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE), (
        f"CHANGELOG.md has no heading '## {version} (date)'"
    )


def check_contents(wheel: Path) -> None:
    """Every file of the package is in the wheel, and nothing else is."""
    inside = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    ignored = ("__pycache__", ".nbi", ".nbc")
    files = [f for f in (ROOT / "src/calibrary").rglob("*") if f.is_file()]
    wanted = {f.relative_to(ROOT / "src").as_posix() for f in files if not any(i in str(f) for i in ignored)}
    assert inside == wanted, f"missing: {sorted(wanted - inside)}; too much: {sorted(inside - wanted)}"


def check_source(python: str, source: Path, wheel: Path, folder: Path) -> None:
    """The source archive makes a wheel with the same files."""
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "again"), str(source))
    again = next((folder / "again").glob("*.whl"))
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist(), "sdist and wheel differ"


def check_demo(wheel: Path, folder: Path, python: str) -> None:
    full = environment(folder / "full", python)
    run(full, "-m", "pip", "install", "--quiet", f"{wheel}[all]")
    run(command(full), "demo", cwd=folder)
    page = (folder / "demo" / "report.html").read_text(encoding="utf-8")
    assert len(page) > 100_000, "the demonstration wrote no page"
    print(f"calibrary[all]: the demonstration wrote {len(page) / 1e6:.1f} MB of report")


def check_app(wheel: Path, folder: Path, python: str) -> None:
    app = environment(folder / "app", python)
    run(app, "-m", "pip", "install", "--quiet", f"{wheel}[app]")
    started = subprocess.Popen(
        [command(app), "app", "--no-browser"], stdout=subprocess.PIPE, text=True, cwd=folder, env=clean()
    )
    assert started.stdout is not None
    try:
        address = next(found for line in started.stdout if (found := re.search(r"http://\S+", line)))[0]
        with urllib.request.urlopen(address, timeout=60) as answer:
            page = answer.read().decode()
        assert "calibrary" in page.partition("<title>")[2], page[:300]
    finally:
        started.terminate()
        started.communicate(timeout=60)
    print(f"calibrary[app]: the app served its start page of {len(page):,} characters")


def environment(folder: Path, python: str) -> str:
    run(python, "-m", "venv", str(folder))
    return str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def command(python: str) -> str:
    """The command ``calibrary`` of an environment."""
    return str(Path(python).with_name("calibrary.exe" if os.name == "nt" else "calibrary"))


def clean() -> dict[str, str]:
    """The environment without PYTHONPATH: the checkout must not stand in for what was installed."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONUTF8": "1"}


def run(*command: str, cwd: str | Path | None = None) -> None:
    subprocess.run(command, check=True, cwd=cwd, env=clean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="the tag of a release")
    parser.add_argument("--pythons", default=sys.executable, help="interpreters, separated by commas")
    args = parser.parse_args()
    main(args.tag, tuple(args.pythons.split(",")))
