"""The same state from real engines: SQLite, DuckDB, Dask with two workers, two ranks of gloo, Spark."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrary as cal
from adversarial import adversarial
from calibrary.scale import State, VectorState, merged, scan, sql

RNG = np.random.default_rng


def some(n: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(seed)
    p = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < p).astype(np.int64), p


# -- SQLite -------------------------------------------------------------------------------------------


def in_sqlite(columns: dict[str, list[Any]], text: str) -> dict[str, list[Any]]:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("SELECT floor(0.5)")
    except sqlite3.OperationalError:
        pytest.skip("this build lacks: floor() of SQLite")
    db.execute(f"CREATE TABLE preds ({', '.join(columns)})")
    places = ", ".join("?" * len(columns))
    db.executemany(f"INSERT INTO preds VALUES ({places})", zip(*columns.values(), strict=True))
    cursor = db.execute(text)
    names = [column[0] for column in cursor.description]
    rows = cursor.fetchall()
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


@pytest.mark.parametrize("g", [240, 19200])
def test_sqlite_finds_the_same_cells_for_adversarial_values(g: int) -> None:
    p = adversarial(many=400)[::4]
    y = (RNG(0).random(len(p)) < p).astype(int)
    table = in_sqlite({"y": y.tolist(), "p": p.tolist()}, sql("preds", label="y", prob="p", resolution=g))
    assert State.of_table(table, resolution=g) == State(g).update(y, p)


def test_sqlite_with_keys_weights_and_names() -> None:
    y, p = some(500)
    w, day = RNG(1).integers(0, 4, 500), RNG(2).integers(0, 3, 500)
    names = np.where(y == 1, "it's ill", "well")
    text = sql("preds", label="name", prob="p", by="day", weight="w", labels=["well", "it's ill"], resolution=960)
    columns = {"name": names.tolist(), "p": p.tolist(), "day": day.tolist(), "w": w.tolist()}
    expected = State(960, by="day").update(y, p, sample_weight=w, by={"day": day})
    assert State.of_table(in_sqlite(columns, text), resolution=960) == expected


def test_invalid_rows_come_back_without_a_cell() -> None:
    y: list[Any] = [0, 1, None, 1, 2, 1, 0, 1, 0]
    p: list[Any] = [0.2, 1.5, 0.4, None, 0.5, -0.1, 0.6, "abc", 0.7]
    table = in_sqlite({"y": y, "p": p}, sql("preds", label="y", prob="p", resolution=960))
    with pytest.raises(ValueError, match=r"6 rows have no probability in \[0, 1\] or no label 0 or 1"):
        State.of_table(table, resolution=960)
    kept = State.of_table(table, resolution=960, drop_invalid=True)
    assert kept == State(960).update([0, 0, 0], [0.2, 0.6, 0.7])
    assert sum(kept.dropped.values()) == 6
    weights = in_sqlite(
        {"y": [0, 1, 1], "p": [0.2, 0.3, 0.4], "w": [2, 0.5, -1]}, sql("preds", label="y", prob="p", weight="w")
    )
    assert State.of_table(weights, drop_invalid=True).dropped == {"no probability in [0, 1] or no label 0 or 1": 2}


def test_a_sum_beyond_64_bits_comes_in_two_columns() -> None:
    columns = {"y": [1, 1], "p": [0.30001, 0.30001], "w": [9 * 10**12, 8 * 10**12]}
    query = sql("preds", label="y", prob="p", weight="w", resolution=960)
    huge = in_sqlite(columns, query)
    found = query.state(huge)
    assert int(found.table.s[0]) > 2**64
    assert found == State(960).update([1, 1], [0.30001, 0.30001], sample_weight=columns["w"])
    with pytest.raises(OverflowError, match="use a finer"):  # what the text of 0.2 gave: one column, which overflows
        State.of_table({name: huge[name] for name in ("cell", "y", "n", "s")}, resolution=960)


def test_the_top_label_in_sql() -> None:
    rng = RNG(0)
    prob = rng.dirichlet(np.ones(3), 400)
    prob[:50] = np.round(prob[:50], 1)
    prob[:50, 2] = 1 - prob[:50, 0] - prob[:50, 1]
    prob = np.clip(prob, 0, 1)
    prob[7] = [0.5, 0.5, 0.0]
    y = rng.integers(0, 3, 400)
    expected = State(960, lens="top-label").update(y, prob)
    columns = {"y": y.tolist(), **{f"p{j}": prob[:, j].tolist() for j in range(3)}}
    text = sql("preds", label="y", prob=["p0", "p1", "p2"], resolution=960)
    assert State.of_table(in_sqlite(columns, text), resolution=960, lens="top-label") == expected
    columns["p0"][3] = 0.9999
    columns["y"][4] = 7
    broken = in_sqlite(columns, text)
    assert sum(State.of_table(broken, resolution=960, lens="top-label", drop_invalid=True).dropped.values()) == 2


def test_what_the_text_refuses() -> None:
    with pytest.raises(ValueError, match="name one column, or one for each of at least two"):
        sql("t", label="y", prob=["p"])
    with pytest.raises(ValueError, match="must name the two classes"):
        sql("t", label="y", prob="p", labels=["a"])
    with pytest.raises(ValueError, match="must name the 2 classes in the order"):
        sql("t", label="y", prob=["p", "q"], labels=["a"])
    with pytest.raises(ValueError, match="resolution=7"):
        sql("t", label="y", prob="p", resolution=7)


# -- DuckDB -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("g", [240, 4800, 19200, 76800])
def test_duckdb_finds_the_same_cells_for_adversarial_values(g: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    p = adversarial(many=100_000)
    y = (RNG(0).random(len(p)) < p).astype(int)
    db = duckdb.connect()
    db.register("preds", pa.table({"y": y, "p": p}))
    found = db.sql(sql("preds", label="y", prob="p", resolution=g))
    assert State.of_table(found, resolution=g) == State(g).update(y, p)


def test_duckdb_reads_the_files_a_scan_reads(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    y, p = some()
    for i in range(3):
        short = p.astype(np.float32) if i == 1 else p
        pq.write_table(pa.table({"y": y.astype(bool), "p": short, "site": y + i}), tmp_path / f"{i}.parquet")
    for i in (0, 1):
        text = sql(f"'{tmp_path}/{i}.parquet'", label="y", prob="p", by="site")
        assert State.of_table(duckdb.sql(text)) == scan(tmp_path / f"{i}.parquet", label="y", prob="p", by="site")


# -- Dask ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("dask.dataframe")
    # workers import the package from where it is tested
    os.environ["PYTHONPATH"] = os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def frame_of(columns: dict[str, Any], partitions: int) -> Any:
    import dask.dataframe as dd
    import pandas as pd

    return dd.from_pandas(pd.DataFrame(columns), npartitions=partitions)


def test_dask_gives_the_same_state(client: Any) -> None:
    y, p = some()
    day = np.array(["mon", "tue"])[RNG(0).integers(0, 2, len(y))]
    frame = frame_of({"y": y, "p": p, "day": day, "other": 0}, 7)
    assert cal.scale.dask(frame, label="y", prob="p") == State().update(y, p)
    keyed = cal.scale.dask(frame, label="y", prob="p", by="day", resolution=960)
    assert keyed == State(960, by="day").update(y, p, by={"day": day})
    empty = frame[frame.p > 2]
    assert cal.scale.dask(empty, label="y", prob="p").n == 0


def test_dask_reports_partition_and_row(client: Any) -> None:
    y, p = some(100)
    p[57] = 1.5
    frame = frame_of({"y": y, "p": p}, 4)
    with pytest.raises(ValueError, match=r"partition 2, row 7 \(from 0\): p = 1\.5 is not in"):
        cal.scale.dask(frame, label="y", prob="p")
    assert cal.scale.dask(frame, label="y", prob="p", drop_invalid=True).n == 99
    with pytest.raises(ValueError, match="frame has no column 'q'"):
        cal.scale.dask(frame, label="y", prob="q")


def test_dask_of_several_classes(client: Any) -> None:
    rng = RNG(0)
    prob, y = rng.dirichlet(np.ones(3), 600), rng.integers(0, 3, 600)
    frame = frame_of({"y": y, **{f"p{j}": prob[:, j] for j in range(3)}}, 4)
    found = cal.scale.dask(frame, label="y", prob=["p0", "p1", "p2"])
    assert found == VectorState(3).update(y, prob)
    sampled = cal.scale.dask(frame, label="y", prob=["p0", "p1", "p2"], sample=50)
    assert len(sampled.sample) == 50
    assert sampled == cal.scale.dask(frame, label="y", prob=["p0", "p1", "p2"], sample=50)


def test_dask_gives_the_same_state_when_a_worker_is_killed(client: Any, tmp_path: Path) -> None:
    import dask.dataframe as dd

    y, p = some(20_000)
    for i in range(24):
        rows = slice(i * 800, (i + 1) * 800)
        pq.write_table(pa.table({"y": y[rows], "p": p[rows]}), tmp_path / f"{i:02}.parquet")

    def slowly(part: Any) -> Any:
        time.sleep(0.25)
        return part

    frame = dd.read_parquet(tmp_path).map_partitions(slowly)
    pids = client.run(os.getpid)
    victim = next(iter(pids.values()))
    killer = threading.Timer(1.5, lambda: os.kill(victim, 9))
    killer.start()
    found = cal.scale.dask(frame, label="y", prob="p")
    killer.join()
    assert victim not in client.run(os.getpid).values()
    assert found == State().update(y[:19_200], p[:19_200])


# -- torch --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("g", [240, 4800, 19200, 76800])
def test_torch_finds_the_same_cells_for_adversarial_values(g: int) -> None:
    torch = pytest.importorskip("torch")
    p = adversarial(many=100_000)
    y = (RNG(0).random(len(p)) < p).astype(int)
    metric = cal.scale.torch.CalibrationMetric("ece", resolution=g)
    for rows in np.array_split(np.arange(len(p)), 3):
        metric.update(torch.from_numpy(p[rows]), torch.from_numpy(y[rows]))
    assert metric.state() == State(g).update(y, p)


def test_torch_metric_has_the_habits_of_torchmetrics() -> None:
    torch = pytest.importorskip("torch")
    metric_of = cal.scale.torch.CalibrationMetric
    y, p = some(600)
    batches = [(torch.from_numpy(p[i : i + 200]), torch.from_numpy(y[i : i + 200])) for i in (0, 200, 400)]
    metric = metric_of("ece", n_bins=10)
    value = [metric(*batch) for batch in batches]
    assert value[1] == pytest.approx(cal.compute("ece", y[200:400], p[200:400], n_bins=10), abs=1e-11)
    assert metric.compute() == pytest.approx(cal.compute("ece", y, p, n_bins=10), abs=1e-11)
    other = metric_of("ece", n_bins=10)
    other.load_state_dict(metric.state_dict())
    other.merge_state(metric)
    assert other.state() == merged([metric.state(), metric.state()])
    metric.reset()
    assert metric.state().n == 0
    with pytest.raises(ValueError, match="the state is empty"):
        metric.compute()
    with pytest.raises(ValueError, match="different lenses or resolutions"):
        metric.merge_state(metric_of("ece", resolution=240))
    several = metric_of("Brier-Score", "ece")
    several.update(*batches[0])
    assert set(several.compute()) == {"bs", "ece"}


def test_torch_metric_of_several_classes() -> None:
    torch = pytest.importorskip("torch")
    metric_of = cal.scale.torch.CalibrationMetric
    logits = torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    prob = torch.softmax(logits, dim=1)
    prob[3] = torch.tensor([0.25, 0.25, 0.25, 0.25])
    y = torch.randint(0, 4, (500,), generator=torch.Generator().manual_seed(1))
    top = metric_of("ece", lens="top-label", resolution=4800)
    top.update(prob, y)
    assert top.state() == State(4800, lens="top-label").update(y.numpy(), prob.double().numpy())
    each = metric_of("cece", "nll", state=VectorState(4))
    each.update(prob, y)
    each.merge_state(each)
    assert each.compute()["cece"] == pytest.approx(cal.compute("cece", y, prob), abs=1e-9)
    again = metric_of("cece", state=VectorState(4))
    again.load_state_dict(each.state_dict())
    assert again.state() == each.state()


def test_torch_metric_refuses_what_is_no_prediction() -> None:
    torch = pytest.importorskip("torch")
    metric = cal.scale.torch.CalibrationMetric("ece")
    for p, y, said in [
        ([0.2, 1.5], [0, 1], r"preds\[1\] = 1\.5 is not in \[0, 1\]: pass probabilities, not logits"),
        ([0.2, float("nan")], [0, 1], r"preds\[1\] = nan"),
        ([0.2, 0.5], [0, 2], r"target\[1\] = 2 is not one of the classes 0 to 1"),
        ([0.2, 0.5], [0], "pass one label per row"),
        ([[0.2, 0.3, 0.5]], [0], "pass lens='top-label'"),
    ]:
        with pytest.raises(ValueError, match=said):
            metric.update(torch.tensor(p), torch.tensor(y))
    with pytest.raises(ValueError, match=r"preds\[0\] sums to 0\.5"):
        cal.scale.torch.CalibrationMetric("ece", lens="top-label").update(torch.tensor([[0.2, 0.3]]), torch.tensor([0]))
    assert metric.state().n == 0


_RANK = """
import sys, numpy as np, torch, torch.distributed as dist
import calibrary as cal
from calibrary.scale import VectorState
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
data = np.load(f"{folder}/data.npz")
y, p, prob, label = (torch.from_numpy(data[name]) for name in ("y", "p", "prob", "label"))
half = slice(0, 1500) if rank == 0 else slice(1500, None)
metric = cal.scale.torch.CalibrationMetric("ece")
for first in range(0, 2000, 500):
    rows = slice(half.start + first, min(half.start + first + 500, half.stop or len(p)))
    if rows.start < (half.stop or len(p)):
        metric.update(p[rows], y[rows])
before = metric.state()
value = metric.compute()
assert metric.state() == before  # adding up the ranks leaves each rank's own sums alone
vectors = cal.scale.torch.CalibrationMetric("cece", state=VectorState(3))
vectors.update(prob[half], label[half])
open(f"{folder}/rank-{rank}", "w").write(f"{before.digest} {value!r} {vectors.state().digest}")
dist.destroy_process_group()
"""


def test_two_ranks_of_gloo_give_the_state_of_one_process(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this build lacks: gloo of PyTorch")
    y, p = some(4000)
    prob, label = RNG(1).dirichlet(np.ones(3), 4000), RNG(2).integers(0, 3, 4000)
    np.savez(tmp_path / "data.npz", y=y, p=p, prob=prob, label=label)
    script = tmp_path / "rank.py"
    script.write_text(textwrap.dedent(_RANK))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([sys.executable, script, str(r), tmp_path], env=environment) for r in (0, 1)]
    assert [rank.wait() for rank in ranks] == [0, 0]
    found = [(tmp_path / f"rank-{r}").read_text().split() for r in (0, 1)]
    assert found[0] == found[1]
    seen = State(4800).update(y[:3500], p[:3500])
    assert found[0][0] == seen.digest
    assert float(found[0][1]) == cal.compute("ece", seen)
    assert found[0][2] == VectorState(3).update(label, prob).digest


# -- Spark (make engines) -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    if os.environ.get("CALIBRARY_ENGINES") != "1":
        pytest.skip("no Spark: make engines runs this")
    pyspark = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("no Spark: there is no Java")
    made = (
        pyspark.SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.files.openCostInBytes", str(128 << 20))  # a task for every file
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.mark.parametrize("g", [240, 19200])
def test_spark_finds_the_same_cells_for_adversarial_values(session: Any, tmp_path: Path, g: int) -> None:
    p = adversarial(many=20_000)
    y = (RNG(0).random(len(p)) < p).astype(int)
    pq.write_table(pa.table({"y": y, "p": p}), tmp_path / "a.parquet")
    frame = session.read.parquet(str(tmp_path / "a.parquet"))
    assert cal.scale.spark(frame, label="y", prob="p", resolution=g) == State(g).update(y, p)


def test_spark_with_keys_booleans_and_bad_rows(session: Any, tmp_path: Path) -> None:
    y, p = some(2000)
    day = RNG(0).integers(0, 3, 2000)
    pq.write_table(pa.table({"y": y.astype(bool), "p": p.astype(np.float32), "day": day}), tmp_path / "a.parquet")
    frame = session.read.parquet(str(tmp_path / "a.parquet"))
    expected = State(by="day").update(y, p.astype(np.float32), by={"day": day})
    assert cal.scale.spark(frame, label="y", prob="p", by="day") == expected
    bad = session.createDataFrame([(0, 0.5), (1, 1.5), (2, 0.5), (None, 0.5), (1, None)], "y int, p double")
    with pytest.raises(ValueError, match="4 rows have no probability"):
        cal.scale.spark(bad, label="y", prob="p")
    assert cal.scale.spark(bad, label="y", prob="p", drop_invalid=True).n == 1


def executors_of(session: Any) -> list[int]:
    """Processes of this application's executors."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended
            continue
        backend = any("CoarseGrainedExecutorBackend" in argument for argument in arguments)
        if backend and session.sparkContext.applicationId in arguments:
            found.append(int(process.name))
    return found


def test_spark_gives_the_same_state_when_an_executor_is_killed(session: Any, tmp_path: Path) -> None:
    y, p = some(1_600_000)
    for i in range(64):
        rows = slice(i * 25_000, (i + 1) * 25_000)
        pq.write_table(pa.table({"y": y[rows], "p": p[rows]}), tmp_path / f"{i:02}.parquet")
    frame = session.read.parquet(str(tmp_path))
    found: list[Any] = []
    work = threading.Thread(target=lambda: found.append(cal.scale.spark(frame, label="y", prob="p")))
    before = executors_of(session)
    assert len(before) == 2
    work.start()
    killed = 0
    while work.is_alive() and not killed:
        time.sleep(0.05)
        tracker = session.sparkContext.statusTracker()
        active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage is not None and stage.numTasks == 64 and stage.numCompletedTasks >= 4 for stage in active):
            killed = before[0]
            os.kill(killed, 9)
    work.join()
    assert killed, "the work was done before an executor could be killed"
    assert killed not in executors_of(session)
    assert found == [State().update(y, p)]
