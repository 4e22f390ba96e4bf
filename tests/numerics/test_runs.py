"""Runs of equal neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from calibrary.numerics.runs import run_lengths, run_starts


@pytest.mark.parametrize("values", [[], [3], [3, 3], [-1, -1, 0, 0, 0, 2], [1, 2, 1, 1], ["b", "b", "a"], [-0.0, 0.0]])
def test_runs_are_those_of_groupby(values):
    x = np.array(values)
    lengths = [len(list(run)) for _, run in itertools.groupby(values)]
    starts = run_starts(x)
    assert starts.tolist() == np.cumsum([0, *lengths])[:-1].tolist()
    assert run_lengths(starts, len(x)).tolist() == lengths


def test_missing_numbers_are_not_equal_to_each_other():
    assert run_starts(np.array([np.nan, np.nan, 1.0])).tolist() == [0, 1, 2]
