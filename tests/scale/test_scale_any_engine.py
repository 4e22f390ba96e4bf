"""Any rows, cut into any parts, held by any files and engines, in any order: one state, that of the valid rows.

The tests state in plain Python which rows are valid. Rows have missing, infinite and wrong probabilities, labels,
weights and sums; keys are missing, or arrive as numbers of several types. SQLite, DuckDB and Polars run with the tests,
and so do DataFusion and ClickHouse where they are installed; ``make engines`` runs Postgres and Spark as well.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adversarial import adversarial
from calibrary.base.saved import SavedFileError
from calibrary.scale import State, VectorState, merged, scan, sql
from engines import WITHIN, in_postgres, with_spark

RNG = np.random.default_rng
Run = Callable[[pa.Table, Any], Any]

_HARD = adversarial(many=50)
_LABELS = ["it's", "a\\b"]
_WRONG = [None, math.nan, 1.5, -0.1, math.inf, -math.inf, float(np.nextafter(1, 2)), -5e-324]


@dataclass
class Rows:
    """Rows of predictions, how they are asked for, the state of the valid ones, and how many are not valid."""

    table: pa.Table
    options: dict[str, Any]
    expected: State
    n_wrong: int


def drawn(data: st.DataObject, dialect: str) -> Rows:
    """Two or three classes, labels of several types, weights or none, two keys."""
    rng = RNG(data.draw(st.integers(0, 2**32), label="seed"))
    n = data.draw(st.integers(1, 40), label="rows")
    classes = data.draw(st.sampled_from([2, 2, 3]), label="classes")
    columns, valid, seen = _predictions(data, rng, n, classes)
    weight = None
    if data.draw(st.booleans(), label="weights"):
        columns["w"] = [float(v) for v in rng.integers(0, 4, n)]
        for i in np.flatnonzero(rng.random(n) < 0.1):
            columns["w"][i] = [None, 0.5, -1.0, math.inf][rng.integers(4)]
        weight, valid = "w", valid & np.array([w in (0, 1, 2, 3) for w in columns["w"]])
    columns |= {"day": _days(data, rng, n, dialect), "site": [["x", "it's", None][v] for v in rng.integers(0, 3, n)]}
    table = pa.table({name: _arrow(name, values) for name, values in columns.items()})
    kept = np.flatnonzero(valid)
    labels = data.draw(st.sampled_from([None, _LABELS]), label="labels") if classes == 2 else None
    if labels is not None:
        names = [labels[int(v)] if v in (0, 1) else v if v is None else "other" for v in columns["y"]]
        table = table.set_column(table.column_names.index("y"), "y", pa.array(names, pa.string()))
    expected = State(240, by=["day", "site"], lens="binary" if classes == 2 else "top-label", labels=labels)
    y = table.column("y").take(kept).to_pylist()
    expected.update(
        np.array(y if labels else [int(v) for v in y]) if len(kept) else np.zeros(0, int), seen[kept],
        sample_weight=None if weight is None else np.array([columns["w"][i] for i in kept], int),
        by={name: [columns[name][i] for i in kept] for name in ("day", "site")},
    )  # fmt: skip
    prob: str | list[str] = "p0" if classes == 2 else [f"p{k}" for k in range(3)]
    options = {"label": "y", "prob": prob, "by": ["day", "site"], "weight": weight, "labels": labels, "resolution": 240}
    return Rows(table, options, expected, n - len(kept))


def _predictions(data: st.DataObject, rng: Any, n: int, classes: int) -> tuple[dict[str, list[Any]], Any, Any]:
    """Columns of labels and probabilities, which rows are valid, and the probabilities as numbers."""
    wrong = np.flatnonzero(rng.random(n) < 0.15)
    if classes == 2:
        p: list[Any] = np.where(rng.random(n) < 0.5, rng.choice(_HARD, n), rng.random(n)).tolist()
        for i in wrong:
            p[i] = _WRONG[rng.integers(len(_WRONG))]
        seen = np.array([math.nan if v is None else v for v in p])
        valid = (seen >= 0) & (seen <= 1)
        columns = {"p0": p}
    else:
        seen = rng.dirichlet(np.ones(3), n)
        seen[: n // 3] = np.round(seen[: n // 3] * 8) / 8  # ties
        seen[:, 2] = np.clip(1 - seen[:, 0] - seen[:, 1], 0, 1)
        seen[wrong, 2] += rng.choice([3e-6, -3e-6, 3.9e-6, 1e-4, math.nan, 1.0], len(wrong))
        total = seen[:, 0] + seen[:, 1] + seen[:, 2]
        valid = (seen >= 0).all(1) & (seen <= 1).all(1) & (total >= 1 - 2.0**-18) & (total <= 1 + 2.0**-18)
        columns = {f"p{k}": [None if math.isnan(v) else v for v in seen[:, k].tolist()] for k in range(3)}
    floats = data.draw(st.booleans(), label="labels as doubles")
    y: list[Any] = [float(v) if floats else int(v) for v in rng.integers(0, classes, n)]
    for i in np.flatnonzero(rng.random(n) < 0.1):
        y[i] = [None, classes, -1][rng.integers(3)]
    return {"y": y, **columns}, valid & np.array([v in range(classes) for v in y]), seen


def _days(data: st.DataObject, rng: Any, n: int, dialect: str) -> list[Any]:
    day = rng.integers(0, 3, n).tolist()
    kinds = (
        ["int", "float", "missing"] if dialect == "sqlite" else ["int", "float", "missing", "date"]
    )  # it has no dates
    kind = data.draw(st.sampled_from(kinds), label="type of the key")
    if kind == "date":
        return [datetime.date(2026, 11, 14) + datetime.timedelta(v) for v in day]
    return [float(v) if kind == "float" else None if kind == "missing" and v == 2 else v for v in day]


def _arrow(name: str, values: list[Any]) -> pa.Array:
    """A column with a type, also where every value is missing: engines have no columns without one."""
    if name[0] in "pw" or any(isinstance(v, float) for v in values):
        return pa.array([v if v is None else float(v) for v in values], pa.float64())
    return pa.array(values, pa.int64() if name == "y" else None)


def one_part(data: st.DataObject, rows: Rows, part: pa.Table, dialect: str, run: Run) -> State:
    """The state of a part of the rows, from the engine or from something that is scanned."""
    kinds = ["engine", "engine", "parquet", "arrow", "csv", "table", "frame"]
    kind = data.draw(st.sampled_from(kinds), label="held by")
    found: Any
    if kind == "engine":
        query = sql("preds", dialect=dialect, **rows.options)
        found = query.state(run(part, query), drop_invalid=True)
    else:
        lens = None if isinstance(rows.options["prob"], str) else "top-label"
        with tempfile.TemporaryDirectory() as folder:
            source = _stored(part, kind, Path(folder))
            found = scan(source, **rows.options, lens=lens, drop_invalid=True, batch_rows=7)
    assert isinstance(found, State)
    return found


def _stored(part: pa.Table, kind: str, folder: Path) -> Any:
    path = folder / f"part.{kind}"
    if kind == "parquet":
        pq.write_table(part, path, row_group_size=11)
    elif kind == "csv":
        part.to_pandas().to_csv(path, index=False)
    elif kind == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, part.schema) as writer:
            writer.write_table(part)
    else:
        return part if kind == "table" else part.to_pandas()
    return path


def check_any_parts(data: st.DataObject, dialect: str, run: Run) -> None:
    rows = drawn(data, dialect)
    n = len(rows.table)
    order = data.draw(st.permutations(range(n)), label="order")
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=3), label="cuts"))
    parts = [order[i:j] for i, j in zip([0, *cuts], [*cuts, n], strict=True) if j > i]
    states = [one_part(data, rows, rows.table.take(part), dialect, run) for part in parts]
    found = merged(data.draw(st.permutations(states), label="order of the states"))
    assert found.digest == rows.expected.digest
    assert sum(found.dropped.values()) == rows.n_wrong
    saved = found.to_bytes()
    assert State.of_bytes(saved) == found
    place = data.draw(st.integers(0, 8 * len(saved) - 1), label="flipped bit")
    damaged = bytearray(saved)
    damaged[place // 8] ^= 1 << (place % 8)
    with contextlib.suppress(SavedFileError):
        assert State.of_bytes(bytes(damaged)) == found  # a bit that nobody reads


def examples(n: int) -> Any:
    """So many examples with the tests, and three times as many by ``make engines``."""
    times = 3 if os.environ.get("CALIBRARY_ENGINES") == "1" else 1
    return settings(max_examples=times * n, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("dialect", ["duckdb", "polars", "sqlite"])
@examples(8)
@given(data=st.data())
def test_any_parts_in_any_order_give_one_state(dialect: str, data: st.DataObject) -> None:
    check_any_parts(data, dialect, WITHIN[dialect])


@pytest.mark.parametrize("dialect", ["clickhouse", "datafusion"])
@examples(4)
@given(data=st.data())
def test_any_parts_give_one_state_on_heavier_engines(dialect: str, data: st.DataObject) -> None:
    check_any_parts(data, dialect, WITHIN[dialect])


@examples(5)
@given(data=st.data())
def test_any_parts_give_one_state_on_postgres(postgres: Any, data: st.DataObject) -> None:
    def run(table: pa.Table, query: Any) -> Any:
        in_postgres(postgres, table)
        return postgres.execute(query)

    check_any_parts(data, "postgres", run)


@examples(2)
@given(data=st.data())
def test_any_parts_give_one_state_on_spark(one_spark: Any, data: st.DataObject) -> None:
    check_any_parts(data, "spark", lambda table, query: with_spark(one_spark, table, query))


@examples(20)
@given(data=st.data())
def test_losses_of_several_classes_do_not_depend_on_parts_and_order(data: st.DataObject) -> None:
    rng = RNG(data.draw(st.integers(0, 2**32)))
    n, k = data.draw(st.integers(2, 60)), data.draw(st.integers(2, 5))
    prob, y = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)
    table = pa.table({"y": y, **{f"p{j}": prob[:, j] for j in range(k)}})
    cuts = sorted(data.draw(st.lists(st.integers(1, n - 1), max_size=3, unique=True)))
    order = rng.permutation(n)
    parts = [table.take(order[i:j]) for i, j in zip([0, *cuts], [*cuts, n], strict=True)]
    options: dict[str, Any] = {"label": "y", "prob": [f"p{j}" for j in range(k)]}
    states: list[Any] = [scan(part, **options, batch_rows=9) for part in parts]
    found = merged([states[i] for i in rng.permutation(len(states))])
    assert found == VectorState(k).update(y, prob)
