"""What a scan takes: frames of other packages, Arrow data, patterns and lists of files, names in capitals.

Whatever holds the rows, the state is that of the arrays; a file that is named twice is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from calibrary.scale import State, VectorState, scan, sql
from calibrary.tables.pieces import Columns, pieces

RNG = np.random.default_rng
N = 400


def table() -> pa.Table:
    rng = RNG(0)
    p = rng.beta(0.8, 0.8, N)
    site = np.array(["a", "b", None], dtype=object)[rng.integers(0, 3, N)]
    return pa.table({
        "y": (rng.random(N) < p).astype(np.int64), "p": p, "site": pa.array(site.tolist(), pa.string()),
        "w": rng.integers(1, 4, N), "other": rng.random(N),
    })  # fmt: skip


def expected(rows: pa.Table) -> State:
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names}
    return State(by="site").update(columns["y"], columns["p"], sample_weight=columns["w"], by={"site": columns["site"]})


OPTIONS: dict[str, Any] = {"label": "y", "prob": "p", "by": "site", "weight": "w"}


def in_pandas(rows: pa.Table) -> Any:
    return rows.to_pandas()


def in_polars(rows: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(rows)


def in_lazy_polars(rows: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(rows).lazy()


def in_duckdb(rows: pa.Table) -> Any:
    connection = pytest.importorskip("duckdb").connect()
    connection.register("preds", rows)
    return connection.table("preds")


def in_ibis(rows: pa.Table) -> Any:
    return pytest.importorskip("ibis").memtable(rows)


def in_ibis_on_polars(rows: pa.Table) -> Any:
    pytest.importorskip("polars")
    return pytest.importorskip("ibis").polars.connect().create_table("preds", rows)


SOURCES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": in_pandas,
    "Polars": in_polars,
    "lazy Polars": in_lazy_polars,
    "DuckDB": in_duckdb,
    "Ibis": in_ibis,
    "Ibis on Polars": in_ibis_on_polars,
    "a table": lambda rows: rows,
    "a record batch": lambda rows: rows.combine_chunks().to_batches()[0],
    "a reader": lambda rows: rows.to_reader(max_chunksize=70),
    "a generator": lambda rows: (batch for batch in rows.to_batches(max_chunksize=70)),
    "a dataset": ds.dataset,
}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_holder_of_rows_gives_their_state(name: str) -> None:
    rows = table()
    assert scan(SOURCES[name](rows), **OPTIONS) == expected(rows)


@pytest.mark.parametrize(
    ("name", "at_once"), [("lazy Polars", "collect"), ("Ibis", "to_pyarrow"), ("Ibis on Polars", "to_pyarrow")]
)
def test_rows_that_are_computed_on_demand_come_in_batches(
    name: str, at_once: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SOURCES[name](table())
    compute, computed = getattr(type(source), at_once), []

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        found = compute(self, *args, **options)
        computed.append(len(found))
        return found

    monkeypatch.setattr(type(source), at_once, counted)
    sizes = [len(piece) for piece in pieces(source, Columns("y", "p"), None, 70)]
    assert sum(sizes) == N
    assert max([*sizes, *computed]) <= 70


@pytest.mark.parametrize("name", ["pandas", "Polars", "lazy Polars", "Ibis"])
def test_a_column_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=r"has no column 'q': .*'p'"):
        scan(SOURCES[name](table()), label="y", prob="q")


@pytest.mark.parametrize("name", ["pandas", "Polars", "lazy Polars", "Ibis"])
def test_frames_of_several_classes(name: str) -> None:
    prob, y = RNG(1).dirichlet(np.ones(3), 50), RNG(2).integers(0, 3, 50)
    rows = pa.table({"y": y, **{f"p{k}": prob[:, k] for k in range(3)}})
    found = scan(SOURCES[name](rows), label="y", prob=["p0", "p1", "p2"])
    assert found == VectorState(3).update(y, prob)


# -- files --------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = table()
    for i, day in enumerate(("01", "02", "03")):
        pq.write_table(rows.slice(i * 100, 100), tmp_path / f"2026-{day}.parquet")
    (tmp_path / "more").mkdir()
    pq.write_table(rows.slice(300), tmp_path / "more" / "2026-04.parquet")
    return tmp_path


def test_patterns_lists_and_folders_are_the_same_files(folder: Path) -> None:
    rows = table()
    assert scan(f"{folder}/2026-*.parquet", **OPTIONS) == expected(rows.slice(0, 300))
    assert scan(folder / "2026-0[12].parquet", **OPTIONS) == expected(rows.slice(0, 200))
    for whole in (
        folder,
        f"{folder}/**/*.parquet",
        [f"{folder}/2026-*.parquet", folder / "more"],
        [folder / "more" / "2026-04.parquet", *sorted(folder.glob("*.parquet"))],
    ):
        assert scan(whole, **OPTIONS) == expected(rows)
    with pytest.raises(FileNotFoundError, match=r"2027-\*\.parquet matches no file"):
        scan(f"{folder}/2027-*.parquet", **OPTIONS)


def test_a_file_that_is_named_twice_is_refused(folder: Path) -> None:
    one = folder / "2026-01.parquet"
    link = folder.parent / f"{folder.name}.parquet"
    link.symlink_to(one)
    for source in (
        [one, one],
        [one, str(one)],
        [one, f"{folder}/more/../{one.name}"],
        [one, f"{folder}/2026-*.parquet"],
        [f"{folder}/2026-*.parquet", f"{folder}/*-01.parquet"],
        [folder, one],
        [folder / "more", folder],
        [one, link],
    ):
        with pytest.raises(ValueError, match="is listed twice, and its rows would count twice"):
            scan(source, **OPTIONS)


# -- names in capitals --------------------------------------------------------------------------------


def test_columns_in_capitals_come_back_under_their_own_names() -> None:
    """Some databases write every name in capitals: the table of a state is read all the same."""
    duckdb = pytest.importorskip("duckdb")
    rows = table()
    connection = duckdb.connect()
    connection.register("preds", rows)
    query = sql("preds", **OPTIONS, dialect="duckdb")
    result = connection.sql(query).to_arrow_table()
    loud = result.rename_columns([name.upper() for name in result.column_names])
    assert query.state(loud) == expected(rows)
    assert query.state(loud.to_pandas()) == expected(rows)
    assert State.of_table(loud).key_names == ("SITE",)


def test_files_with_columns_in_capitals(tmp_path: Path) -> None:
    rows = table()
    pq.write_table(rows.rename_columns([name.upper() for name in rows.column_names]), tmp_path / "t.parquet")
    found = scan(tmp_path / "t.parquet", label="Y", prob="P", by="SITE", weight="W")
    assert found.regrouped(SITE=None) == expected(rows).regrouped(site=None)
    with pytest.raises(ValueError, match=r"has no column 'y': .*'Y'"):
        scan(tmp_path / "t.parquet", label="y", prob="P")
