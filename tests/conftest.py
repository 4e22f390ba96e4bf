"""Reference data sets shared by the tests."""

from __future__ import annotations

import pytest

import skips
from golden import arrays

_SKIPPED = pytest.StashKey()

#: Calls for type checkers alone: some of them would need files or more rows.
collect_ignore = ["typed_calls.py"]


@pytest.fixture(params=["binary12", "binary500", "binary2000", "binary_ties"])
def binary_set(request):
    """(y, c) of each binary reference set."""
    return arrays(request.param)[:2]


@pytest.fixture(params=["multi4", "multi10", "ordinal5"])
def multi_set(request):
    """(y, p) of each multi-class reference set."""
    return arrays(request.param)[:2]


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
