"""Reference data sets shared by the tests."""

from __future__ import annotations

import collections
import functools
import inspect
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest

import calibrary.inference  # noqa: F401 - the catalogue is complete, whatever a test imports first
import skips
from calibrary.base.markup import Markup
from calibrary.metrics.machinery.entry import FUNCTIONS
from each import FULL
from golden import arrays
from paths import ROOT, TESTS

# compiled files are kept even where the environment says otherwise: hundreds of tests start a process of their own
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# the workers share the cores: threads of OpenMP for each of them only wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")

_SKIPPED = pytest.StashKey()
#: Where the tests of single metrics are.
METRICS = TESTS / "metrics"
#: What --quick leaves out: rooms and files that take minutes.
_LONG = (
    "application/", "browser/", "cli/", "integrations/", "plots/", "reporting/", "scale/", "secondorder/",
    "shift/", "study/", "validation/", "test_action.py", "test_anytime.py", "test_bare.py", "test_benchmarks.py",
    "test_cells.py", "test_compare_errors.py", "test_constructs.py", "test_crossfit.py", "test_curve.py",
    "test_door.py", "test_fuzz.py", "test_fuzz_doors.py", "test_fuzz_oracle.py", "test_honest_band.py",
    "test_import.py", "test_intervals_agree.py", "test_inversion.py", "test_kernel_vector.py",
    "test_language_report.py", "test_large.py", "test_log_attacks.py", "test_metric_claims.py",
    "test_multiplicity.py", "test_names.py", "test_names_of_curves.py", "test_numerics_beta_kernel.py",
    "test_numerics_loess.py", "test_numerics_sketch.py", "test_plain.py", "test_pooled.py", "test_precision.py",
    "test_refusals.py", "test_sequential.py", "test_site.py", "test_skce_tests.py", "test_space.py",
    "test_surroundings.py", "test_t_cal.py", "test_threads.py", "test_words.py",
)  # fmt: skip

#: No tests: calls for type checkers (some would need files or more rows), and files that pytest itself imports.
collect_ignore = ["typed_calls.py", "conftest.py", "browser/conftest.py"]


@pytest.fixture(params=["binary12", "binary500", "binary2000", "binary_ties"])
def binary_set(request):
    """(y, c) of each binary reference set."""
    return arrays(request.param)[:2]


@pytest.fixture(params=["multi4", "multi10", "ordinal5"])
def multi_set(request):
    """(y, p) of each multi-class reference set."""
    return arrays(request.param)[:2]


@pytest.fixture(autouse=True)
def figures_closed():
    """Figures that a test leaves open are not the next one's."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def outlined(monkeypatch):
    """Pages about words and numbers are not drawn, which takes most of their time; a full run draws them all."""
    from calibrary.reporting import figures, stored

    picture = figures.picture

    def outline(figure):
        """What would be drawn and with which settings."""
        if not isinstance(figure.draw, functools.partial):
            return picture(figure)  # from a file
        simple = str | int | float | tuple | list | None
        plain = {name: value for name, value in figure.draw.keywords.items() if isinstance(value, simple)}
        told = escape(f"{figure.name} {figure.draw.func.__name__} {plain}")
        return Markup(f'<svg viewBox="0 0 300 300"><text>{told}</text></svg>')

    for module in () if FULL else (figures, stored):
        monkeypatch.setattr(module, "picture", outline)


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line in this process: its status, and the words of both of its streams."""

    def run(*words):
        from calibrary.cli.main import main

        monkeypatch.setattr("sys.argv", ["calibrary", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, " ".join(said.err.split())

    return run


def pytest_addoption(parser):
    text = (
        "leave out what takes minutes, and of every test keep at most two of its parameter sets, the first and the "
        "last; of a metric whose file or card has changed keep all"
    )
    parser.addoption("--quick", action="store_true", help=text)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Only docstrings of src hold examples: files of tests, and files without examples, are not searched for them."""
    found = yield
    examples = found and TESTS not in file_path.parents and b">>> " in file_path.read_bytes()
    return [one for one in found if examples or type(one) is pytest.Module]


def pytest_ignore_collect(collection_path, config):
    if not config.getoption("--quick") or not any(part in collection_path.as_posix() for part in _LONG):
        return None  # as pytest decides
    mine = METRICS in collection_path.parents and collection_path.is_file()
    return not (mine and _names_of_changed() & _words_of(collection_path.read_text(encoding="utf-8")))  # not imported


@functools.cache
def _changed_metrics():
    """The ids of the metrics whose file or card differs from the last commit."""
    told = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    changed = {ROOT / line[3:] for line in told.stdout.splitlines()}
    homes = {id: sys.modules[function.__module__].__file__ for id, function in FUNCTIONS.items()}
    cards = ROOT / "src" / "calibrary" / "cards"
    return {id for id, home in homes.items() if {Path(home), cards / f"{id}.toml"} & changed}


def _names_of_changed():
    """The ids and the functions of the changed metrics."""
    changed = _changed_metrics()
    return changed | {FUNCTIONS[id].__name__ for id in changed}


def _words_of(text):
    return set(re.findall(r"\w+", text))


def _words(item):
    """What the parameters of a test name, ids of metrics among others; of a test of metrics also what it calls."""
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    found = {str(getattr(value, "id", value)) for value in given} | _words_of(item.path.stem)
    if METRICS in item.path.parents and hasattr(item, "function"):
        found |= _words_of(inspect.getsource(inspect.unwrap(item.function)))
    return found


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--quick"):
        return
    of_one_test = collections.defaultdict(list)
    for item in items:
        of_one_test[item.path, getattr(item, "originalname", item.name)].append(item)
    kept = {item for same in of_one_test.values() for item in (same[0], same[-1])}
    changed = _names_of_changed()
    kept |= {item for item in items if changed and changed & _words(item)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _reason(report):
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def pytest_sessionfinish(session):
    """A skip whose reason is not in tests/skips.py, or must not occur in this run, fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:  # a worker: the run as a whole is judged by its parent
        return
    counts, refused = skips.counted([_reason(report) for report in reporter.stats.get("skipped", [])])
    session.config.stash[_SKIPPED] = (counts, refused)
    if refused and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    counts, refused = terminalreporter.config.stash.get(_SKIPPED, ({}, []))
    for name, count in sorted(counts.items()):
        command = skips.REASONS.get(name, ("", None))[1]
        terminalreporter.write_line(f"skipped {count:4d}  {name}" + (f": {command}" if command else ""))
    for text in refused:
        terminalreporter.write_line(f"this reason for a skip is not allowed here: {text}", red=True)
