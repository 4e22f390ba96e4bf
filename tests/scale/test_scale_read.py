"""Scanning files: the same state as from arrays, and one sentence about every row that is no prediction."""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import calibrary as cal
from calibrary import RefusedError
from calibrary.scale import State, VectorState, scan

RNG = np.random.default_rng


def some(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(seed)
    p = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < p).astype(np.int8), p


def folder_of(tmp_path: Path, *tables: dict[str, Any] | pa.Table) -> Path:
    for i, table in enumerate(tables):
        made = table if isinstance(table, pa.Table) else pa.table(table)
        pq.write_table(made, tmp_path / f"part-{i}.parquet")
    return tmp_path


def scanned(source: Any, **options: Any) -> Any:
    return scan(source, **{"label": "y", "prob": "p", **options})


# -- what can be read ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "feather"])
def test_every_kind_of_file_gives_the_state_of_the_arrays(tmp_path: Path, kind: str) -> None:
    y, p = some()
    table = pa.table({"extra": np.arange(len(y)), "y": y, "p": p})
    path = tmp_path / f"predictions.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv":
        pa.csv.write_csv(table, path)
    else:
        pa.feather.write_feather(table, path)
    expected = State().update(y, p)
    assert scanned(path) == expected
    assert scanned(str(path), batch_rows=100) == expected
    assert scanned([path]) == expected
    assert scanned(tmp_path) == expected


def test_arrow_data_in_memory(tmp_path: Path) -> None:
    y, p = some()
    table, expected = pa.table({"y": y, "p": p}), State().update(y, p)
    assert scanned(table) == expected
    assert scanned(table, batch_rows=77) == expected
    assert scanned(iter(table.to_batches(100))) == expected
    assert scanned(table.to_batches()[0]) == expected
    assert scanned(ds.dataset(table)) == expected
    assert scanned(ds.dataset(folder_of(tmp_path, table))) == expected


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.decimal128(20, 10)])
def test_kinds_of_probability_columns(kind: Any) -> None:
    y, p = some(300)
    if pa.types.is_decimal(kind):
        column = pa.array(np.round(p, 2)).cast(kind)
        expected = np.round(p, 2)
    else:
        column = pa.array(p.astype(kind.to_pandas_dtype()))
        expected = column.to_numpy().astype(float)
    assert scanned(pa.table({"y": y, "p": column})) == State().update(y, expected)


@pytest.mark.parametrize(
    "kind", [pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]
)
def test_kinds_of_label_columns(kind: Any) -> None:
    y, p = some(300)
    column = pa.array(y).cast(kind)
    assert scanned(pa.table({"y": column, "p": p})) == State().update(y, p)
    coded = pa.array(y.astype(np.int64)).dictionary_encode()
    assert scanned(pa.table({"y": coded, "p": p})) == State().update(y, p)


def test_named_labels() -> None:
    y, p = some(300)
    names = np.where(y == 1, "ill", "well")
    for column in (pa.array(names), pa.array(names).dictionary_encode()):
        table = pa.table({"y": column, "p": p})
        assert scanned(table, pos_label="ill", batch_rows=50) == State(pos_label="ill").update(names, p)
        assert scanned(table, labels=["well", "ill"]) == State(labels=["well", "ill"]).update(names, p)
    table = pa.table({"y": ["well", "ill", "dead"], "p": [0.1, 0.2, 0.3]})
    with pytest.raises(ValueError, match=r"row 2 \(from 0\): y = 'dead' is a third label besides 'ill' and 'well'"):
        scanned(table, pos_label="ill")
    with pytest.raises(ValueError, match=r"row 2 \(from 0\): y = 'dead' is not one of the classes"):
        scanned(table, labels=["well", "ill"])
    assert scanned(table, labels=["well", "ill"], drop_invalid=True).n == 2
    with pytest.raises(ValueError, match=r"row 0 \(from 0\): y = 'well' names a class: pass labels="):
        scanned(table)
    with pytest.raises(ValueError, match=r"y holds string values, unlike labels=\[0, 1\]"):
        scanned(table, labels=[0, 1])


def test_weights_are_copies() -> None:
    y, p = some(300)
    w = RNG(1).integers(0, 4, 300)
    expected = State().update(np.repeat(y, w), np.repeat(p, w))
    for column in (w, w.astype(float), w.astype(np.uint8)):
        assert scanned(pa.table({"y": y, "p": p, "w": column}), weight="w", batch_rows=100) == expected
    for bad, said in [
        (0.5, "w = 0.5 is not a whole number"),
        (None, "w is missing"),
        (-2, "finite and not negative"),
    ]:
        table = pa.table({"y": [0, 1], "p": [0.1, 0.2], "w": pa.array([1, bad], pa.float64())})
        with pytest.raises(ValueError, match=rf"row 1 \(from 0\): .*{said}|row 1 \(from 0\): {said}"):
            scanned(table, weight="w")


def test_keys_from_columns_and_from_folders(tmp_path: Path) -> None:
    y, p = some(600)
    day, site = np.arange(600) // 200, np.array(["a", "b"])[RNG(0).integers(0, 2, 600)]
    for d in range(3):
        (tmp_path / f"day={d}").mkdir()
        rows = day == d
        table = pa.table({"y": y[rows], "p": p[rows], "site": site[rows]})
        pq.write_table(table, tmp_path / f"day={d}" / "part-0.parquet")
    expected = State(by=["day", "site"]).update(y, p, by={"day": day, "site": site})
    assert scanned(tmp_path, by=["day", "site"]) == expected
    assert scanned(tmp_path, by="site") == expected.regrouped(day=None)
    assert scanned(tmp_path) == State().update(y, p)
    with pytest.raises(ValueError, match=r"has no column 'sit': did you mean 'site'"):
        scanned(tmp_path, by="sit")


def test_threads_give_the_state_of_one_and_report_the_first_bad_row(monkeypatch: pytest.MonkeyPatch) -> None:
    y, p = some(5000)
    table = pa.table({"y": y, "p": p, "site": [f"s{i % 3}" for i in range(len(y))]})
    alone = scanned(table, by="site", batch_rows=300)
    monkeypatch.setattr("calibrary.scale.read.COMPILED_FROM", 0)
    monkeypatch.setattr("calibrary.scale.read._threads", lambda resolution: 3)
    assert scanned(table, by="site", batch_rows=300).digest == alone.digest
    p = p.copy()
    p[[1000, 1250, 4000]] = 2.0
    bad = table.set_column(1, "p", pa.array(p))
    with pytest.raises(ValueError, match=r"^row 1,000 \(from 0\): p = 2 is not in \[0, 1\]"):
        scanned(bad, by="site", batch_rows=300)
    found = scanned(bad, by="site", batch_rows=300, drop_invalid=True)
    assert (found.n, sum(found.dropped.values())) == (4997, 3)


def test_empty_partitions_and_files(tmp_path: Path) -> None:
    y, p = some(100)
    full, empty = pa.table({"y": y, "p": p}), pa.table({"y": pa.array([], pa.int8()), "p": pa.array([], pa.float64())})
    assert scanned(folder_of(tmp_path, empty, full, empty)) == State().update(y, p)
    assert scanned(empty).n == 0
    assert scanned(iter([])).n == 0
    with pytest.raises(ValueError, match="the state is empty"):
        cal.compute("ece", scanned(empty))
    none = pa.array([], pa.float64())
    assert scan(pa.table({"y": pa.array([], pa.int8()), "a": none, "b": none}), label="y", prob=["a", "b"]).n == 0
    with pytest.raises(ValueError, match="source has no rows, so the number of classes is not known"):
        scanned([pa.record_batch({"y": pa.array([], pa.int8()), "p": pa.array([], pa.list_(pa.float64()))})])


def test_top_label_of_one_column() -> None:
    y, p = some(300)
    found = scanned(pa.table({"y": y, "p": p}), lens="top-label")
    assert found == State(lens="top-label").update(y, p)


# -- bad rows -----------------------------------------------------------------------------------------


def test_all_that_is_wrong_with_files_is_told_in_one_table(tmp_path: Path) -> None:
    y, p = some(1000)
    parts = []
    for i in range(3):
        values = {"y": y.tolist(), "p": p.tolist(), "w": [1.0] * 1000}
        for row in range(5 * i):
            values["p"][100 + row] = 1.5
        values["y"][500 + i] = None if i else 7
        values["w"][900] = 0.5 if i == 1 else 1.0
        parts.append(pa.table({"y": pa.array(values["y"], pa.int64()), "p": values["p"], "w": values["w"]}))
    with pytest.raises(RefusedError) as error:
        scanned(folder_of(tmp_path, *parts), weight="w", batch_rows=64)
    said = str(error.value).split("\n")
    assert said[0] == "the source has 4 problems (rows are counted from 0 in each file):"
    assert said[1].split("  ")[0] == "column"
    rows = {tuple(re.split(" {2,}", line)[:2]): re.split(" {2,}", line)[2] for line in said[2:]}
    places = ", ".join(f"part-1.parquet, row {row}" for row in (100, 101, 102))
    assert rows["p", "values outside [0, 1]"] == f"15 rows: {places}, ..."
    assert rows["y", "missing values"] == "2 rows: part-1.parquet, row 501, part-2.parquet, row 502"
    assert rows["y", "labels that are none of the classes"] == "1 row: part-0.parquet, row 500"
    assert rows["w", "no whole numbers"] == "1 row: part-1.parquet, row 900"
    assert all(line.endswith("drop_invalid=True") for line in said[2:])


def test_several_rows_of_one_kind_are_told_in_a_sentence(tmp_path: Path) -> None:
    table = pa.table({"y": [0, 1, 1], "p": [0.2, 1.5, -0.5]})
    with pytest.raises(RefusedError, match=r"^row 1 \(from 0\): p = 1.5 is not in \[0, 1\]; .*, 2 rows here$"):
        scanned(table)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("p", 1.04, r"p = 1\.04 is not in \[0, 1\]"),
        ("p", -1e-9, r"p = -1e-09 is not in \[0, 1\]"),
        ("p", math.nan, "p is missing"),
        ("p", math.inf, "p = inf is not in"),
        ("p", None, "p is missing"),
        ("y", None, "y is missing"),
        ("y", 2, "y = 2 is not one of the classes"),
        ("y", -1, "y = -1 is not one of the classes"),
    ],
)
@pytest.mark.parametrize("label_type", [pa.int8(), pa.int64(), pa.float64()])
def test_one_bad_row_is_reported_with_file_and_row(
    tmp_path: Path, column: str, value: Any, said: str, label_type: Any
) -> None:
    y, p = some(1000)
    parts = []
    for i in range(3):
        values = {"y": y.tolist(), "p": p.tolist()}
        if i == 2:
            values[column][778] = value
        parts.append(pa.table({"y": pa.array(values["y"], label_type), "p": pa.array(values["p"], pa.float64())}))
    folder = folder_of(tmp_path, *parts)
    said = said.replace("= 2 ", r"= 2(\.0)? ").replace("= -1 ", r"= -1(\.0)? ")
    with pytest.raises(ValueError, match=rf"^part-2\.parquet, row 778 \(from 0\): {said}.*; drop_invalid=True"):
        scanned(folder, batch_rows=100)
    state = scanned(folder, drop_invalid=True, batch_rows=100)
    assert state.n == 2999
    assert sum(state.dropped.values()) == 1
    kept = np.arange(1000) != 778
    assert state == State().update(np.concatenate([y, y, y[kept]]), np.concatenate([p, p, p[kept]]))


def test_many_bad_rows_are_counted_by_reason() -> None:
    y, p = some(100_000)
    y, p = y.astype(np.int64), p.copy()
    p[::10] = np.nan
    p[5::1000] = 7
    y[3::50] = 9
    state = scanned(pa.table({"y": y, "p": p}), drop_invalid=True)
    inside = (p >= 0) & (p <= 1)
    assert state.dropped == {
        "probability missing or outside [0, 1]": int((~inside).sum()),
        "label missing or not one of the classes": int((inside & (y > 1)).sum()),
    }
    assert state.n + sum(state.dropped.values()) == 100_000


def test_schema_drift_between_files(tmp_path: Path) -> None:
    y, p = some(200)
    doubles = pa.table({"y": y, "p": p})
    short = pa.table({"p": p.astype(np.float32), "other": y, "y": y.astype(bool)})
    whole = pa.table({"p": np.ones(3, dtype=np.int64), "y": np.ones(3)})
    expected = State().update(y, p) + State().update(y, p.astype(np.float32)) + State().update([1, 1, 1], [1, 1, 1])
    assert scanned(folder_of(tmp_path, short, doubles, whole)) == expected
    pq.write_table(pa.table({"y": y, "prob": p}), tmp_path / "part-7.parquet")
    with pytest.raises(ValueError, match=r"part-7\.parquet has no column 'p': "):
        scanned(tmp_path)
    pq.write_table(pa.table({"y": y, "p": p.astype(str)}), tmp_path / "part-7.parquet")
    with pytest.raises(ValueError, match=r"part-7\.parquet: column 'p' holds (large_)?string, not numbers"):
        scanned(tmp_path)


def test_mixed_types_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("y,p\n" + "0,0\n1,1\n" * 200_000 + "1,0.25\n")  # would be guessed to be whole numbers
    assert scanned(path).n == 400_001
    path.write_text("y,p\n0,0.5\n1,many\n")
    with pytest.raises(ValueError, match=r"p\.csv cannot be read.*Row #3.*'many'"):
        scanned(path)
    path.write_text("y,p\n0,0.5\n1,\n,0.5\n")
    with pytest.raises(ValueError, match=r"\np +missing values  1 row: p\.csv, row 1 .*\ny +missing values  1 row: "):
        scanned(path)
    assert scanned(path, drop_invalid=True).dropped == {
        "probability missing or outside [0, 1]": 1, "label missing or not one of the classes": 1,
    }  # fmt: skip


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        scanned(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds no files"):
        scanned(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read"):
        scanned(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("y,p\n0,0.5\n")
    with pytest.raises(ValueError, match=r"holds files of several formats \(csv, parquet\): pass format="):
        scanned(tmp_path)
    (tmp_path / "c.xls").write_text("")
    with pytest.raises(ValueError, match=r"the extension '\.xls' is not known"):
        scanned(tmp_path / "c.xls")
    with pytest.raises(ValueError, match="format='xml' is not known"):
        scanned(tmp_path / "b.csv", format="xml")
    with pytest.raises(TypeError, match="source is a int"):
        scanned(3)
    with pytest.raises(TypeError, match="source gives a int: pass Arrow record batches"):
        scanned([3])
    with pytest.raises(ValueError, match="batch_rows=0"):
        scanned(tmp_path / "b.csv", batch_rows=0)


# -- several classes ----------------------------------------------------------------------------------


def vectors(n: int = 800, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, pa.Table, pa.Table]:
    rng = RNG(seed)
    p = rng.dirichlet(np.ones(k), n)
    y = rng.integers(0, k, n)
    wide = pa.table({"y": y, **{f"p{j}": p[:, j] for j in range(k)}})
    lists = pa.table({"y": y, "p": pa.FixedSizeListArray.from_arrays(p.ravel(), k)})
    return y, p, wide, lists


def test_several_classes_from_columns_and_from_lists() -> None:
    y, p, wide, lists = vectors()
    columns = ["p0", "p1", "p2"]
    expected = VectorState(3).update(y, p)
    assert scan(wide, label="y", prob=columns) == expected
    assert scan(lists, label="y", prob="p", batch_rows=100) == expected
    ragged = lists.set_column(1, "p", lists["p"].cast(pa.list_(pa.float64())))
    assert scan(ragged, label="y", prob="p") == expected
    top = scan(wide, label="y", prob=columns, lens="top-label")
    assert top == State(lens="top-label").update(y, p)
    keyed = scan(wide.append_column("g", pa.array(y % 2)), label="y", prob=columns, lens="top-label", by="g")
    assert keyed == State(lens="top-label", by="g").update(y, p, by={"g": y % 2})


def test_the_sample_does_not_depend_on_the_order_of_the_files(tmp_path: Path) -> None:
    tables = [vectors(seed=i)[2] for i in range(3)]
    folder = folder_of(tmp_path, *tables)
    options: dict[str, Any] = {"label": "y", "prob": ["p0", "p1", "p2"], "sample": 50}
    whole = scan(folder, **options)
    assert len(whole.sample) == 50
    paths = [folder / f"part-{i}.parquet" for i in (2, 0, 1)]
    assert scan(paths, **options, batch_rows=33) == whole
    assert sum(scan(path, **options) for path in paths) == whole


def test_bad_rows_of_several_classes() -> None:
    y, p, wide, _ = vectors()
    bad = p.copy()
    bad[5] *= 0.5
    bad[9, 1] = -0.1
    labels = y.copy()
    labels[7] = 3
    table = pa.table({"y": labels, **{f"p{j}": bad[:, j] for j in range(3)}})
    columns = ["p0", "p1", "p2"]
    with pytest.raises(ValueError, match=r"\np0 +probabilities that do not sum to 1 +1 row: row 5 .*\ny .* row 7 "):
        scan(table, label="y", prob=columns)
    state = scan(table, label="y", prob=columns, drop_invalid=True)
    assert state.n == 797
    assert state.dropped == {
        "probability missing or outside [0, 1]": 1, "probabilities that do not sum to 1": 1,
        "label missing or not one of the classes": 1,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"row 2 \(from 0\): y = 3 is not one of the classes"):
        scan(table.take([0, 1, 7]), label="y", prob=columns)
    with pytest.raises(ValueError, match=r"row 0 \(from 0\): p1 = -0\.1 is not in \[0, 1\]"):
        scan(table.take([9]), label="y", prob=columns)
    uneven = pa.table({"y": [0, 1], "p": pa.array([[0.5, 0.5], [0.2, 0.3, 0.5]])})
    with pytest.raises(ValueError, match=r"row 1 \(from 0\): p has 3 probabilities, not 2"):
        scan(uneven, label="y", prob="p")
    for options, said in [
        ({"by": "p0"}, "pass lens='top-label', or scan part by part"),
        ({"lens": "class-wise"}, "a scan of several classes makes a VectorState"),
        ({"pos_label": 1}, "pos_label=1 is for one column of probabilities"),
    ]:
        with pytest.raises(ValueError, match=said):
            scan(wide, label="y", prob=columns, **options)


def test_rows_dropped_before_the_first_valid_one_are_counted():
    """A batch without a valid row leaves the state empty, but not without its count."""
    p = [[0.9, 0.9, 0.9]] * 4 + [[0.2, 0.3, 0.5]] * 2
    table = pa.table({"y": [0, 1, 2, 0, 1, 2], **{f"p{k}": [row[k] for row in p] for k in range(3)}})
    for lens in ("top-label", None):
        state = scan(table, label="y", prob=["p0", "p1", "p2"], lens=lens, drop_invalid=True, batch_rows=2)
        assert (state.n, sum(state.dropped.values())) == (2, 4)


def test_dask_and_spark_have_the_options_of_a_scan_and_of_a_query() -> None:
    def named(function: Any) -> set[str]:
        return set(inspect.signature(function).parameters)

    assert named(cal.scale.dask) == named(cal.scale.scan) - {"source", "format", "batch_rows"} | {"frame"}
    assert named(cal.scale.spark) == named(cal.scale.sql) - {"table", "dialect"} | {"frame", "drop_invalid"}
    with pytest.raises(TypeError, match=r"dask\(\) got an unexpected keyword argument 'format'"):
        cal.scale.dask(None, label="y", prob="p", format="csv")
    with pytest.raises(TypeError, match=r"spark\(\) got an unexpected keyword argument 'dialect'"):
        cal.scale.spark(None, label="y", prob="p", dialect="duckdb")
