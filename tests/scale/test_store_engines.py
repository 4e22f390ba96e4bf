"""A store that Spark reads as it is, and the same store in a bucket of S3 (moto's server stands for it)."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrary.scale import State, Store, segment_sql, segment_table
from calibrary.scale.store_log import FsspecFolder


def some(seed: int, n: int = 200, sites: tuple[Any, ...] = ("A", "B", "C")) -> State:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    site = [sites[i] for i in rng.integers(0, len(sites), n)]
    return State(240, by="site").update(rng.random(n) < p, p, by={"site": site})


def filled(path: str) -> Store:
    store = Store(path)
    for i in range(3):
        store.upsert(some(i), source=f"{i}", day=datetime.date(2026, 10, 1 + i))
    store.upsert(some(9, sites=(None,)), source="none", day="2026-10-03")
    return store


# -- Spark --------------------------------------------------------------------------------------------


def test_spark_reads_the_files_as_they_are(one_spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    store = filled(str(tmp_path / "s"))
    frame = one_spark.read.option("basePath", store.path + "/states").parquet(*store.files())
    assert set(frame.columns) == {"day", "site", "cell", "y", "n", "s", "s_high"}
    found = State.of_table(frame.toArrow(), resolution=240, by=["day", "site"])
    ours = store.window("all", by=["day", "site"])
    assert found.digest == ours.digest

    frame.createOrReplaceTempView("states")
    numbers = one_spark.sql(segment_sql("states", by=["day", "site"], resolution=240, dialect="spark"))
    expected = {(row["day"], row["site"]): row for row in segment_table(ours).to_pylist()}
    rows = [row.asDict() for row in numbers.collect()]
    assert len(rows) == len(expected) == 10
    for row in rows:
        mine = expected[row.pop("day"), row.pop("site")]
        assert {k: None if v is None else float(v) for k, v in row.items()} == pytest.approx(
            {k: v for k, v in mine.items() if k in row}, abs=1e-9
        )


# -- S3 -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An address in a bucket of a server of this process."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    s3fs = pytest.importorskip("s3fs")
    server.start()
    known = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**known, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("calibration")
        yield "s3://calibration"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def test_a_store_in_a_bucket_holds_what_a_store_on_a_disk_holds(bucket: str, tmp_path: Path) -> None:
    far, near = filled(f"{bucket}/one"), filled(str(tmp_path / "s"))
    for store in (far, near):
        assert not store.upsert(some(0), source="0", day="2026-10-01")  # the same again
        assert store.upsert(some(5), source="0", day="2026-10-01")  # other rows
        assert store.compact(before="2026-11-01") == 1
    again = Store(f"{bucket}/one")
    assert again.window("all", by=["day", "site"]).digest == near.window("all", by=["day", "site"]).digest
    assert again.window("all", where={"site": "A"}).digest == near.window("all", where={"site": "A"}).digest
    assert again.sources() == near.sources()
    assert again.retain(1) == near.retain(1)
    assert again.days == near.days


def test_a_bucket_creates_a_file_once(bucket: str) -> None:
    one, other = FsspecFolder(f"{bucket}/two"), FsspecFolder(f"{bucket}/two")
    assert one.create("log/1.json", b"first")
    assert not other.create("log/1.json", b"second")
    assert other.read("log/1.json") == b"first"


def test_several_writers_of_a_bucket_lose_nothing(bucket: str) -> None:
    def put(i: int) -> bool:
        return Store(f"{bucket}/three").upsert(some(i), source=f"{i}", day="2026-10-01")

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(put, range(8)))
    assert Store(f"{bucket}/three").window().digest == State(240, by="site").merge(*map(some, range(8))).digest
