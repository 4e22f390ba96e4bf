"""Reference data sets shared by the tests."""

from __future__ import annotations

import pytest

from golden import arrays

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
