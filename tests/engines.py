"""The query of a state, run by real engines on a table called ``preds``; an engine that is not there skips its test."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def with_duckdb(table: pa.Table, query: Any) -> Any:
    db = pytest.importorskip("duckdb").connect()
    db.register("preds", table)
    return db.sql(str(query))


def with_sqlite(table: pa.Table, query: Any) -> Any:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("SELECT floor(0.5)")
    except sqlite3.OperationalError:
        pytest.skip("this build lacks: floor() of SQLite")
    db.execute("CREATE TABLE preds ({})".format(", ".join(f'"{name}"' for name in table.column_names)))
    places = ", ".join("?" * table.num_columns)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    db.executemany(f"INSERT INTO preds VALUES ({places})", rows)
    return db.execute(query)


def with_polars(table: pa.Table, query: Any) -> Any:
    polars = pytest.importorskip("polars")
    return polars.SQLContext(preds=polars.from_arrow(table)).execute(str(query), eager=True)


def with_datafusion(table: pa.Table, query: Any) -> Any:
    context = pytest.importorskip("datafusion").SessionContext()
    context.from_arrow(table, name="preds")
    return context.sql(str(query)).to_arrow_table()


def with_clickhouse(table: pa.Table, query: Any) -> Any:
    chdb = pytest.importorskip("chdb.session")
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, Path(folder, "preds.parquet"))
        session = chdb.Session()
        session.query(f"CREATE OR REPLACE VIEW preds AS SELECT * FROM file('{folder}/preds.parquet', Parquet)")
        found = session.query(str(query), "Arrow")
        read = pa.ipc.open_file(pa.BufferReader(found.bytes())).read_all()
        session.close()
    texts = [i for i, f in enumerate(read.schema) if pa.types.is_binary(f.type)]  # its texts are bytes
    for i in texts:
        read = read.set_column(i, read.schema.field(i).name, read.column(i).cast(pa.string()))
    return read


#: Engines that run inside of Python, by dialect.
WITHIN: dict[str, Callable[[pa.Table, Any], Any]] = {
    "duckdb": with_duckdb, "sqlite": with_sqlite, "polars": with_polars, "datafusion": with_datafusion,
    "clickhouse": with_clickhouse,
}  # fmt: skip


def in_postgres(db: Any, table: pa.Table) -> None:
    """Put the rows into the table ``preds`` of a server."""
    columns = ", ".join(f'"{field.name}" {_of_postgres(field.type)}' for field in table.schema)
    db.execute("DROP TABLE IF EXISTS preds")
    db.execute(f"CREATE TABLE preds ({columns})")
    with db.cursor() as cursor, cursor.copy("COPY preds FROM STDIN") as copy:
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            copy.write_row(row)


def _of_postgres(kind: pa.DataType) -> str:
    for holds, name in (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "bigint"),
        (pa.types.is_floating, "double precision"),
        (pa.types.is_date, "date"),
    ):
        if holds(kind):
            return name
    return "text"


def with_spark(session: Any, table: pa.Table, query: Any) -> dict[str, list[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, Path(folder, "preds.parquet"))
        session.read.parquet(f"{folder}/preds.parquet").createOrReplaceTempView("preds")
        frame = session.sql(str(query))
        rows = frame.collect()
    return {name: [row[i] for row in rows] for i, name in enumerate(frame.columns)}
