"""Compiled loops that are stored on disk: a loop compiled for other types is not run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from calibrary.numerics.compiled import _SafeCache, jit

numba = pytest.importorskip("numba")


class _Mixed:
    """A cache whose index names the file of another signature, which can happen if two processes compile at once."""

    def __init__(self, args):
        self.args, self.flushed = args, False

    def load_overload(self, signature, context):
        return SimpleNamespace(signature=SimpleNamespace(args=self.args))

    def flush(self):
        self.flushed = True


def test_a_loop_that_was_compiled_for_other_types_is_compiled_again():
    whole, real = (numba.int64[::1],), (numba.float64[::1],)
    mixed = _Mixed(whole)
    assert _SafeCache(mixed).load_overload(real, None) is None
    assert mixed.flushed
    kept = _Mixed(real)
    assert _SafeCache(kept).load_overload(real, None).signature.args == real
    assert _SafeCache(kept).load_overload(numba.float64(real[0]), None) is not None
    assert not kept.flushed


def test_both_types_of_one_loop_are_kept_apart():
    @jit
    def total(x):
        found = 0.0
        for value in x:
            found += value
        return found

    assert total(np.array([1.5, 2.5])) == 4.0
    assert total(np.array([1, 2])) == 3.0
