"""The SQL text: names that collide with its own are refused, and labels are written as every engine reads them."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from calibrary.scale import State, sql
from calibrary.scale.sql import rows_of


@pytest.mark.parametrize("name", ["cal_c", "cal_y", "cal_w", "CAL_C", "Y", "Cell", "N", "s"])
def test_a_key_with_the_name_of_a_column_of_the_query_is_refused(name):
    with pytest.raises(ValueError, match="rename yours"):
        sql("preds", label="label", prob="p", by=name)


def test_two_keys_that_differ_in_capitals_alone_are_refused():
    with pytest.raises(ValueError, match="twice"):
        sql("preds", label="label", prob="p", by=["site", "SITE"])


def test_labels_of_numpy_are_written_as_numbers():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE preds (label INTEGER, p REAL)")
    db.executemany("INSERT INTO preds VALUES (?, ?)", [(3, 0.2), (7, 0.7), (7, 0.9)])
    text = sql("preds", label="label", prob="p", labels=np.unique([3, 7]))
    assert "int64" not in text
    try:
        table = rows_of(db.execute(text))
    except sqlite3.OperationalError:
        pytest.skip("this build lacks: floor() of SQLite")
    assert State.of_table(table) == State().update([0, 1, 1], [0.2, 0.7, 0.9])


@pytest.mark.parametrize("label", [None, float("nan"), float("inf"), object(), "a\\' OR 1=1 --"])
def test_labels_that_engines_read_differently_are_refused(label):
    with pytest.raises(ValueError, match="labels: "):
        sql("preds", label="label", prob="p", labels=["x", label])
