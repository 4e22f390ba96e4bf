"""The query of a state in every dialect: parsed in its own, and run on real engines, always with the same digest.

DuckDB, SQLite and Polars run with the tests; ``make engines`` runs Postgres, ClickHouse, DataFusion and Spark as well.
Redshift, BigQuery, Snowflake, Databricks and Trino are parsed, translated to DuckDB by sqlglot, and run there.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

from adversarial import adversarial
from calibrary.cli.scan import sql as command
from calibrary.scale import State, sql
from calibrary.scale.sql import DIALECTS
from engines import WITHIN, in_postgres
from paths import ROOT

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


def _listed(where: str) -> list[str]:
    """The dialects in a text for people, in its order."""
    if where == "docstring":
        text = (sql.__doc__ or "").split("dialect : str\n")[1].split("The default")[0]
        return re.findall(r'"(\w+)"', text)
    if where == "command line":
        option = get_type_hints(command, include_extras=True)["dialect"].__metadata__[0]
        return re.findall(r"\w+", option.help.split(";")[0].replace(" or ", " "))
    table = (ROOT / "docs/evidence/scale.md").read_text(encoding="utf-8").split("| `dialect=` |")[1].split("\n\n")[0]
    return [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]


@pytest.mark.parametrize("where", ["docstring", "command line", "page"])
def test_every_list_of_dialects_is_that_of_the_table(where: str) -> None:
    assert sorted(_listed(where)) == sorted(set(DIALECTS) - {"generic"})


def test_the_readme_counts_the_dialects() -> None:
    words = {11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen"}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{words[len(DIALECTS) - 1]} dialects of SQL" in " ".join(text.split())


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


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize("dialect", sorted(WITHIN))
def test_an_engine_gives_the_state_of_the_rows(dialect: str, case: str) -> None:
    table = rows()
    query = sql("preds", dialect=dialect, **options_of(case, dialect))
    assert query.state(WITHIN[dialect](pa.table(table), query)).digest == CASES[case][1](table).digest


@pytest.mark.parametrize("dialect", ["generic", *sorted(WITHIN)])
def test_what_is_missing_in_an_engine_is_counted(dialect: str) -> None:
    run = WITHIN["duckdb" if dialect == "generic" else dialect]
    table = {"y": [0, 1, None, 1, 2, 1, 1], "p": [0.2, 1.5, 0.4, None, 0.5, -0.1, 0.6]}
    query = sql("preds", label="y", prob="p", dialect=dialect)
    found = query.state(run(pa.table(table), query), drop_invalid=True)
    assert found == State().update([0, 1], [0.2, 0.6])
    assert sum(found.dropped.values()) == 5


@pytest.mark.parametrize("dialect", sorted(WITHIN))
def test_a_weight_that_counts_nothing_is_dropped_by_every_engine(dialect: str) -> None:
    table = pa.table({"y": [1] * 7, "p": [0.3] * 7, "w": [1.0, None, 0.5, -1.0, float("inf"), 2.0, 0.0]})
    query = sql("preds", label="y", prob="p", weight="w", dialect=dialect)
    found = query.state(WITHIN[dialect](table, query), drop_invalid=True)
    assert (found.n, sum(found.dropped.values())) == (3, 4)


# -- Postgres ---------------------------------------------------------------------------------------


def cpu_of(process: int) -> float:
    """Seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("case", sorted(CASES))
def test_postgres_gives_the_state_of_the_rows(postgres: Any, case: str) -> None:
    table = rows()
    in_postgres(postgres, pa.table(table))
    query = sql("preds", dialect="postgres", **options_of(case, "postgres"))
    assert query.state(postgres.execute(query)).digest == CASES[case][1](table).digest


def test_postgres_counts_what_is_missing_and_takes_many_rows(postgres: Any) -> None:
    table = {"y": [0, 1, None, 1, 2, 1, 1], "p": [0.2, 1.5, 0.4, None, 0.5, -0.1, 0.6]}
    in_postgres(postgres, pa.table(table))
    query = sql("preds", label="y", prob="p", dialect="postgres")
    assert query.state(postgres.execute(query), drop_invalid=True) == State().update([0, 1], [0.2, 0.6])
    rng = RNG(1)
    p = rng.beta(0.7, 0.7, 100_000)
    y = (rng.random(100_000) < p).astype(int)
    in_postgres(postgres, pa.table({"y": y, "p": p}))
    server = postgres.execute("SELECT pg_backend_pid()").fetchone()[0]
    before, started = cpu_of(server), time.perf_counter()
    result = postgres.execute(query)
    cpu, wall = cpu_of(server) - before, time.perf_counter() - started
    print(f"Postgres: 100,000 rows in {cpu:.1f} s of CPU, {wall:.1f} s on this machine as it is")
    assert query.state(result) == State().update(y, p)
    assert cpu < 10  # what the server computes, however busy the machine is


# -- Spark ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", sorted(CASES))
def test_spark_gives_the_state_of_the_rows(one_spark: Any, tmp_path: Path, case: str) -> None:
    import pyarrow.parquet as pq

    import calibrary as cal

    table = rows()
    pq.write_table(pa.table(table), tmp_path / "preds.parquet")
    frame = one_spark.read.parquet(str(tmp_path / "preds.parquet"))
    assert cal.scale.spark(frame, **options_of(case, "spark")).digest == CASES[case][1](table).digest
