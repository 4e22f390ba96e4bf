"""The numbers of segments are the metrics' own, in Python and inside a database."""

from __future__ import annotations

import datetime
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import calibrary as cal
from calibrary.scale import State, Store, merged, segment_sql, segment_table
from calibrary.scale.store_numbers import COLUMNS


def keyed(resolution: int = 1200, seed: int = 0) -> State:
    """Four segments: usual, all at the ends and on edges, one row, and a missing name."""
    rng = np.random.default_rng(seed)
    state = State(resolution, by=["day", "site"])
    for day in (1, 2):
        p = rng.beta(0.5, 0.8, 3000)
        put = lambda y, p, site: state.update(y, p, by={"day": datetime.date(2026, 10, day), "site": site})  # noqa: E731,B023
        put(rng.random(3000) < 0.1 + 0.8 * p, p, "A")
        edges = np.concatenate([np.arange(16) / 15, [1e-14, 1 - 1e-14, 1e-5, 1 - 2e-7, 0.5]])
        put(rng.random(63) < 0.5, np.repeat(edges, 3), "B")
        put([1], [0.3], "C")
        put(rng.random(50) < 0.01, np.full(50, 0.02), None)
        put([0, 0], [0.0, 0.0], "zero")
    return state


def as_rows(table: Any) -> dict[Any, dict[str, Any]]:
    return {(row["day"], row["site"]): row for row in table.to_pylist()}


@pytest.mark.parametrize("resolution", [240, 1200, 19200])
def test_segments_have_the_metrics_own_numbers(resolution: int) -> None:
    state = keyed(resolution)
    found = as_rows(segment_table(state))
    assert len(found) == 10
    for key, part in state.by("day", "site").items():
        row = found[key]
        assert row["n"] == part.n
        assert row["ece"] == pytest.approx(cal.compute("ece", part), abs=1e-12)
        assert row["brier"] == pytest.approx(cal.compute("bs", part), abs=1e-12)
        rows = part.as_predictions()
        assert row["bias"] == pytest.approx(float(rows.mean(rows.c) - rows.mean(rows.y)), abs=1e-12)
        if key[1] == "zero":
            assert row["oe"] is None
            continue
        assert row["oe"] == pytest.approx(cal.compute("oe", part), abs=1e-12)
        if part.n > 1:
            usual = cal.interval("bs", part, method="asymptotic")
            assert [row["brier_low"], row["brier_high"]] == pytest.approx([usual.low, usual.high], abs=1e-12)
        else:
            assert row["brier_low"] is None
            assert row["bias_high"] is None


def test_ends_of_observed_over_expected_are_wilsons_and_near_the_exact_law() -> None:
    y = np.repeat([0, 1], [40, 10])
    row = segment_table(State(by="g").update(y, np.full(50, 0.25), by={"g": 1})).to_pylist()[0]
    z, n, k = 1.959963984540054, 50, 10
    centre, half = (k + z * z / 2) / (n + z * z), z / (n + z * z) * np.sqrt(k * (n - k) / n + z * z / 4)
    assert [row["oe_low"], row["oe_high"]] == pytest.approx([(centre - half) / 0.25, (centre + half) / 0.25], abs=1e-12)
    part = keyed().by("site")["A"].regrouped(day=None)
    row = segment_table(part).to_pylist()[0]
    exact = cal.interval("oe", part, method="asymptotic")
    width = exact.high - exact.low
    # the exact law moves log odds and ours multiplies, so that ends agree to some percent of the width
    assert [row["oe_low"], row["oe_high"]] == pytest.approx([exact.low, exact.high], abs=0.1 * width)


def test_ends_cover_the_true_ratio() -> None:
    """Of 400 calibrated segments about 95% have a ratio of 1 inside; below 91% is three standard errors away."""
    rng = np.random.default_rng(3)
    p = rng.beta(0.6, 2.0, 400 * 100)
    state = State(240, by="g").update(rng.random(len(p)) < p, p, by={"g": np.repeat(np.arange(400), 100)})
    table = segment_table(state).to_pandas()
    for name, true in (("oe", 1.0), ("bias", 0.0)):
        inside = ((table[f"{name}_low"] <= true) & (table[f"{name}_high"] >= true)).mean()
        assert 0.91 < inside < 0.985, name


def test_ends_cover_the_ratio_of_over_confident_segments() -> None:
    """With the variance of the predictions alone, 87% of these intervals cover the ratio."""
    rng = np.random.default_rng(3)
    p = np.clip(rng.beta(0.6, 2.0, (400, 100)), 1e-6, 1 - 1e-6)
    truth = 1 / (1 + ((1 - p) / p) ** 0.4)
    segments = np.repeat(np.arange(400), 100)
    state = State(240, by="g").update((rng.random(p.shape) < truth).ravel(), p.ravel(), by={"g": segments})
    table = segment_table(state).to_pandas()
    true = truth.sum(axis=1) / p.sum(axis=1)
    inside = ((table["oe_low"] <= true) & (table["oe_high"] >= true)).mean()
    assert inside >= 0.93


def parts(state: State) -> pa.Table:
    """The table of a state in pieces, of which several have the same segment, cell and label."""
    rows = state.to_table()
    if "s_high" not in rows.column_names:
        rows = rows.append_column("s_high", pa.array(np.zeros(len(rows), dtype=np.int64)))
    return rows.replace_schema_metadata(None)


def of_duckdb(rows: pa.Table, query: str) -> pa.Table:
    return duckdb.connect().register("rows", rows).sql(query).to_arrow_table()


def of_sqlite(rows: pa.Table, query: str) -> pa.Table:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("SELECT SQRT(4.0)")
    except sqlite3.OperationalError:
        pytest.skip("this build lacks: the mathematical functions of SQLite")
    db.execute(f"CREATE TABLE rows ({', '.join(rows.column_names)})")
    values = [tuple(str(v) if isinstance(v, datetime.date) else v for v in row.values()) for row in rows.to_pylist()]
    db.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * rows.num_columns)})", values)
    cursor = db.execute(query)
    names = [about[0] for about in cursor.description]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in cursor.fetchall()])


def largest_difference(one: pa.Table, other: pa.Table, by: list[str]) -> float:
    def sorted_rows(table: pa.Table) -> dict[Any, Any]:
        return {tuple(str(row[name]) for name in by): row for row in table.to_pylist()}

    ours, theirs = sorted_rows(one), sorted_rows(other)
    assert ours.keys() == theirs.keys()
    worst = 0.0
    for key, row in ours.items():
        for name in COLUMNS:
            assert (row[name] is None) == (theirs[key][name] is None), (key, name)
            if row[name] is not None:
                worst = max(worst, abs(float(row[name]) - float(theirs[key][name])))
    return worst


@pytest.mark.parametrize(("dialect", "run"), [("duckdb", of_duckdb), ("generic", of_duckdb), ("sqlite", of_sqlite)])
@pytest.mark.parametrize("by", [["day", "site"], ["site"], []])
@pytest.mark.parametrize("resolution", [1200, 240])
def test_a_database_has_the_same_numbers(dialect: str, run: Any, by: list[str], resolution: int) -> None:
    """Equal to 1e-9; 240 has not all edges of 25 bins, so that predictions are compared there."""
    state = keyed(resolution)
    others = {name: None for name in state.key_names if name not in by}
    ours = segment_table(state.regrouped(**others) if others else state, n_bins=25, confidence_level=0.9)
    query = segment_sql("rows", by=by, resolution=resolution, n_bins=25, confidence_level=0.9, dialect=dialect)
    assert largest_difference(ours, run(parts(state), query), by) < 1e-9


def test_numbers_of_a_store_in_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "s")
    for day in (1, 2):
        for source in (1, 2):
            rng = np.random.default_rng([day, source])
            p = rng.random(500)
            state = State(by="site").update(rng.random(500) < p, p, by={"site": rng.integers(0, 3, 500)})
            store.upsert(state, source=f"{source}", day=f"2026-10-0{day}")
    files = f"read_parquet('{tmp_path}/s/states/*/*.parquet', hive_partitioning = true)"
    found = duckdb.sql(segment_sql(files, by=["day", "site"], dialect="duckdb")).to_arrow_table()
    ours = segment_table(store.window("all", by=["day", "site"]))
    assert largest_difference(ours, found, ["day", "site"]) < 1e-9


def test_very_many_rows_in_one_cell() -> None:
    """The sum of positions needs two columns; the database adds them as the state does."""
    state = State(240, by="g").update([0, 1], [0.3001, 0.3002], sample_weight=[2**40, 2**39], by={"g": "x"})
    whole = merged([state, state.copy(), state.copy()])
    found = of_duckdb(parts(whole), segment_sql("rows", by="g", resolution=240, dialect="duckdb"))
    assert largest_difference(segment_table(whole), found, ["g"]) < 1e-9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dialect": "cobol"}, "dialect"),
        ({"by": "cell"}, "rename yours"),
        ({"n_bins": 0}, "n_bins"),
        ({"confidence_level": 1.0}, "confidence_level=1.0 is outside"),
        ({"resolution": 7}, "multiple of 16"),
    ],
)
def test_settings_that_make_no_query_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        segment_sql("rows", **settings)


def test_ends_of_a_brier_score_are_within_0_and_1():
    for y, end, bound in (([0, 0, 0, 1], "brier_high", 1.0), ([1, 1, 1, 0], "brier_low", 0.0)):
        state = State(by="site").update(y, [0.97] * 4, by={"site": ["A"] * 4})
        row = segment_table(state).to_pylist()[0]
        assert row[end] == bound
        assert row["brier_low"] < row["brier"] < row["brier_high"]
