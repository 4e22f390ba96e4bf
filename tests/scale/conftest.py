"""A Postgres server and a Spark session for the tests of this folder, which ``make engines`` runs; no syncing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncing is for power cuts and takes most of the time of small files."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture(scope="session")
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
        where_it_is = f"host=127.0.0.1 port={port} user=calibrary dbname=postgres"
        # a plan is not kept: the columns of a table change from test to test
        with psycopg.connect(where_it_is, autocommit=True, prepare_threshold=None) as db:
            yield db
    finally:
        run(str(folder / "pg_ctl"), "-D", where, "-m", "immediate", "stop")
        shutil.rmtree(data, ignore_errors=True)


@pytest.fixture(scope="module")  # another module has a session with other settings
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
