"""The query of a state in every dialect: parsed in its own, and run on real engines, always with the same digest.

DuckDB, SQLite and Polars run with the tests; ``make engines`` runs Postgres, ClickHouse, DataFusion and Spark as well.
Redshift, BigQuery, Snowflake, Databricks and Trino are parsed, translated to DuckDB by sqlglot, and run there.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from adversarial import adversarial
from calibrary.scale import State, sql
from calibrary.scale.dialects import DIALECTS

RNG = np.random.default_rng
#: Names and texts that must be quoted, and a quote and a backslash in a label.
_LABELS = ["it's", "a\\b"]


def rows(n: int = 600) -> dict[str, Any]:
    """Columns of predictions: two classes, three classes, names that must be quoted, weights, missing values."""
    rng = RNG(0)
    p = np.concatenate([adversarial(many=100)[:: max(1, 3000 // n)], rng.beta(0.7, 0.7, n)])[-n:]
    y = (rng.random(n) < p).astype(int)
    prob = rng.dirichlet(np.ones(3), n)
    site = np.array(["x", "it's", "\\", None], dtype=object)[rng.integers(0, 4, n)]
    return {
        "y": y.tolist(), "p": p.tolist(), "order": [_LABELS[v] for v in y], "true label": (y == 1).tolist(),
        "site": site.tolist(), "day of": rng.integers(0, 3, n).tolist(), "w": rng.integers(0, 4, n).tolist(),
        "k": rng.integers(0, 3, n).tolist(), **{f"p{j}": prob[:, j].tolist() for j in range(3)},
    }  # fmt: skip


#: name: (options of the query, the state that it must give)
CASES: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], State]]] = {
    "plain": (
        {"label": "y", "prob": "p", "resolution": 19200},
        lambda t: State(19200).update(t["y"], t["p"]),
    ),
    "keys, weights": (
        {"label": "y", "prob": "p", "by": ["site", "day of"], "weight": "w"},
        lambda t: State(by=["site", "day of"]).update(
            t["y"], t["p"], sample_weight=t["w"], by={"site": t["site"], "day of": t["day of"]}
        ),
    ),
    "labels": (
        {"label": "order", "prob": "p", "labels": _LABELS, "resolution": 960},
        lambda t: State(960, labels=_LABELS).update(t["order"], t["p"]),
    ),
    "pos_label": (
        {"label": "order", "prob": "p", "pos_label": _LABELS[1], "resolution": 960},
        lambda t: State(960, pos_label=_LABELS[1]).update(t["order"], t["p"]),
    ),
    "truth values": (
        {"label": "true label", "prob": "p", "resolution": 960},
        lambda t: State(960).update(t["true label"], t["p"]),
    ),
    "classes": (
        {"label": "k", "prob": ["p0", "p1", "p2"], "by": "site", "resolution": 960},
        lambda t: State(960, by="site", lens="top-label").update(
            t["k"], np.column_stack([t[f"p{j}"] for j in range(3)]), by={"site": t["site"]}
        ),
    ),
}  # fmt: skip


def options_of(case: str, dialect: str) -> dict[str, Any]:
    options = dict(CASES[case][0])
    if dialect == "redshift" and case == "truth values":  # as its documentation says
        options["labels"] = [False, True]
    return options


def test_an_unknown_dialect_is_refused_with_all_that_are_known() -> None:
    with pytest.raises(ValueError, match="dialect='oracle'") as error:
        sql("t", label="y", prob="p", dialect="oracle")
    assert all(name in str(error.value) for name in DIALECTS)


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"generic", "datafusion", "polars"}))
@pytest.mark.parametrize("case", sorted(CASES))
def test_the_text_is_of_its_dialect_and_gives_the_same_state_in_duckdb(dialect: str, case: str) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    duckdb = pytest.importorskip("duckdb")
    table = rows()
    query = sql("preds", dialect=dialect, **options_of(case, dialect))
    parsed = sqlglot.parse(str(query), read=dialect)
    assert len(parsed) == 1
    db = duckdb.connect()
    db.register("preds", pa.table(table))
    inside = f"SELECT * FROM ({parsed[0].sql('duckdb')}) AS q"  # one statement that stands inside another
    assert query.state(db.sql(inside)).digest == CASES[case][1](table).digest


# -- engines that are really run --------------------------------------------------------------------


def with_duckdb(table: dict[str, Any], query: Any) -> Any:
    duckdb = pytest.importorskip("duckdb")
    db = duckdb.connect()
    db.register("preds", pa.table(table))
    return db.sql(str(query))


def with_sqlite(table: dict[str, Any], query: Any) -> Any:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("SELECT floor(0.5)")
    except sqlite3.OperationalError:
        pytest.skip("this build lacks: floor() of SQLite")
    db.execute("CREATE TABLE preds ({})".format(", ".join(f'"{name}"' for name in table)))
    places = ", ".join("?" * len(table))
    db.executemany(f"INSERT INTO preds VALUES ({places})", zip(*table.values(), strict=True))
    return db.execute(query)


def with_polars(table: dict[str, Any], query: Any) -> Any:
    polars = pytest.importorskip("polars")
    return polars.SQLContext(preds=polars.from_arrow(pa.table(table))).execute(str(query), eager=True)


def with_datafusion(table: dict[str, Any], query: Any) -> Any:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.from_arrow(pa.table(table), name="preds")
    return context.sql(str(query)).to_arrow_table()


def with_clickhouse(table: dict[str, Any], query: Any) -> Any:
    chdb = pytest.importorskip("chdb.session")
    import tempfile

    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table(table), Path(folder, "preds.parquet"))
        session = chdb.Session()
        session.query(f"CREATE OR REPLACE VIEW preds AS SELECT * FROM file('{folder}/preds.parquet', Parquet)")
        found = session.query(str(query), "Arrow")
        reader = pa.ipc.open_file(pa.BufferReader(found.bytes()))
        read = reader.read_all()
        session.close()
    texts = [i for i, f in enumerate(read.schema) if pa.types.is_binary(f.type)]  # its texts are bytes
    for i in texts:
        read = read.set_column(i, read.schema.field(i).name, read.column(i).cast(pa.string()))
    return read


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize(
    ("dialect", "run"),
    [
        ("duckdb", with_duckdb), ("sqlite", with_sqlite), ("polars", with_polars), ("datafusion", with_datafusion),
        ("clickhouse", with_clickhouse),
    ],
)  # fmt: skip
def test_an_engine_gives_the_state_of_the_rows(dialect: str, run: Any, case: str) -> None:
    table = rows()
    query = sql("preds", dialect=dialect, **options_of(case, dialect))
    assert query.state(run(table, query)).digest == CASES[case][1](table).digest


@pytest.mark.parametrize("dialect", ["generic", "duckdb", "sqlite", "polars", "datafusion", "clickhouse"])
def test_what_is_missing_in_an_engine_is_counted(dialect: str) -> None:
    run = {
        "generic": with_duckdb, "duckdb": with_duckdb, "sqlite": with_sqlite, "polars": with_polars,
        "datafusion": with_datafusion, "clickhouse": with_clickhouse,
    }[dialect]  # fmt: skip
    table = {"y": [0, 1, None, 1, 2, 1, 1], "p": [0.2, 1.5, 0.4, None, 0.5, -0.1, 0.6]}
    query = sql("preds", label="y", prob="p", dialect=dialect)
    found = query.state(run(table, query), drop_invalid=True)
    assert found == State().update([0, 1], [0.2, 0.6])
    assert sum(found.dropped.values()) == 5


# -- Postgres ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: Any) -> Iterator[Any]:
    """A server of its own on a free port of this machine; it refuses root, and then runs as the user postgres."""
    if os.environ.get("CALIBRARY_ENGINES") != "1":
        pytest.skip("no Postgres: make engines runs this")
    psycopg = pytest.importorskip("psycopg")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb") or next((str(b / "initdb") for b in installed if (b / "initdb").exists()), None)
    if found is None:
        pytest.skip("no Postgres: there is no initdb")
    folder = Path(found).resolve().parent
    data = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if user:
        shutil.chown(data, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(*command: str) -> None:
        done = subprocess.run([*user, *command], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout

    where = str(data / "cluster")
    run(str(folder / "initdb"), "-D", where, "-A", "trust", "-U", "calibrary", "-E", "UTF8", "--no-sync")
    settings = f"-p {port} -k {data} -h 127.0.0.1 -F"
    run(str(folder / "pg_ctl"), "-D", where, "-w", "-l", str(data / "log"), "-o", settings, "start")
    try:
        with psycopg.connect(f"host=127.0.0.1 port={port} user=calibrary dbname=postgres", autocommit=True) as db:
            yield db
    finally:
        run(str(folder / "pg_ctl"), "-D", where, "-m", "immediate", "stop")
        shutil.rmtree(data, ignore_errors=True)


def cpu_of(process: int) -> float:
    """Seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_postgres(db: Any, table: dict[str, Any]) -> None:
    kinds = {int: "bigint", float: "double precision", str: "text", bool: "boolean"}
    columns = []
    for name, values in table.items():
        first = next(v for v in values if v is not None)
        columns.append(f'"{name}" {kinds[type(first)]}')
    db.execute("DROP TABLE IF EXISTS preds")
    db.execute(f"CREATE TABLE preds ({', '.join(columns)})")
    with db.cursor() as cursor, cursor.copy("COPY preds FROM STDIN") as copy:
        for row in zip(*table.values(), strict=True):
            copy.write_row(row)


@pytest.mark.parametrize("case", sorted(CASES))
def test_postgres_gives_the_state_of_the_rows(postgres: Any, case: str) -> None:
    table = rows()
    in_postgres(postgres, table)
    query = sql("preds", dialect="postgres", **options_of(case, "postgres"))
    assert query.state(postgres.execute(query)).digest == CASES[case][1](table).digest


def test_postgres_counts_what_is_missing_and_takes_many_rows(postgres: Any) -> None:
    table = {"y": [0, 1, None, 1, 2, 1, 1], "p": [0.2, 1.5, 0.4, None, 0.5, -0.1, 0.6]}
    in_postgres(postgres, table)
    query = sql("preds", label="y", prob="p", dialect="postgres")
    assert query.state(postgres.execute(query), drop_invalid=True) == State().update([0, 1], [0.2, 0.6])
    rng = RNG(1)
    p = rng.beta(0.7, 0.7, 100_000)
    y = (rng.random(100_000) < p).astype(int)
    in_postgres(postgres, {"y": y.tolist(), "p": p.tolist()})
    server = postgres.execute("SELECT pg_backend_pid()").fetchone()[0]
    before, started = cpu_of(server), time.perf_counter()
    result = postgres.execute(query)
    cpu, wall = cpu_of(server) - before, time.perf_counter() - started
    print(f"Postgres: 100,000 rows in {cpu:.1f} s of CPU, {wall:.1f} s on this machine as it is")
    assert query.state(result) == State().update(y, p)
    assert cpu < 10  # what the server computes, however busy the machine is


# -- Spark ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_spark() -> Iterator[Any]:
    if os.environ.get("CALIBRARY_ENGINES") != "1":
        pytest.skip("no Spark: make engines runs this")
    pyspark = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("no Spark: there is no Java")
    builder = pyspark.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    made = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.mark.parametrize("case", sorted(CASES))
def test_spark_gives_the_state_of_the_rows(one_spark: Any, tmp_path: Path, case: str) -> None:
    import pyarrow.parquet as pq

    import calibrary as cal

    table = rows()
    pq.write_table(pa.table(table), tmp_path / "preds.parquet")
    frame = one_spark.read.parquet(str(tmp_path / "preds.parquet"))
    assert cal.scale.spark(frame, **options_of(case, "spark")).digest == CASES[case][1](table).digest
