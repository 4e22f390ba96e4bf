"""Every golden value, one test for each metric."""

from __future__ import annotations

import itertools
import warnings

import calibrary as cal
from each import each_of_id
from golden import assert_close, call, entries

FAMILIES = ("point", "cumulative", "bins_a", "bins_b", "kernel", "curve", "detection")


def _name(entry):
    data = entry["data"]
    return data if isinstance(data, str) else "inline" if isinstance(data, dict) else data[0].split("_")[0]


def _cases():
    for family in FAMILIES:
        run = [e for e in entries(family) if e["kind"] != "part"]
        key = lambda e: (e["id"], e["kind"], _name(e))  # noqa: E731
        for (id, kind, data), group in itertools.groupby(sorted(run, key=key), key):
            yield id, f"{family}-{kind}-{data}", list(group)


@each_of_id(_cases())
def test_value_equals_the_golden_one(id, name, group):
    for entry in group:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            assert_close(call(entry), entry)
