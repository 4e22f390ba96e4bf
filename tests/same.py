"""Comparing what an earlier version said with what this one says."""

from __future__ import annotations

from typing import Any

import pytest


def assert_same(now: Any, before: Any, *, may_add: bool = False) -> None:
    """Equal but for rounding; with ``may_add`` a dictionary may have keys that it did not have before."""
    if isinstance(before, dict):
        assert may_add or set(now) == set(before)
        for key, value in before.items():
            assert_same(now[key], value, may_add=may_add)
    elif isinstance(before, list):
        assert len(now) == len(before)
        for one, other in zip(now, before, strict=True):
            assert_same(one, other, may_add=may_add)
    elif isinstance(before, float):
        assert now == pytest.approx(before, rel=1e-9, abs=1e-12, nan_ok=True)
    else:
        assert now == before
