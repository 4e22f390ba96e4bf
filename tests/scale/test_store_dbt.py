"""The dbt package in ``examples/dbt``: its model is what the library writes, and its table has Python's numbers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from calibrary.scale import State, Store, segment_table
from paths import ROOT

FOLDER = ROOT / "examples" / "dbt"


def made() -> Any:
    found = importlib.util.spec_from_file_location("make_models", FOLDER / "make_models.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    filled = Store(tmp_path / "store")
    for day in (1, 2, 3):
        rng = np.random.default_rng(day)
        p = rng.beta(0.7, 1.5, 600)
        state = State(by="site").update(rng.random(600) < p, p, by={"site": np.repeat(["A", "B", "C"], 200)})
        filled.upsert(state, source="a", day=f"2026-10-0{day}")
    return filled


def refuse_difference(rows: list[dict[str, Any]], store: Store) -> None:
    ours = {
        (row["day"], row["site"]): row for row in segment_table(store.window("all", by=["day", "site"])).to_pylist()
    }
    assert len(rows) == len(ours) == 9
    for row in rows:
        expected = ours[row["day"], row["site"]]
        assert row.keys() == expected.keys()
        assert [row[name] for name in row if name not in ("day", "site")] == pytest.approx(
            [expected[name] for name in row if name not in ("day", "site")], abs=1e-9
        )


def test_the_model_is_what_the_library_writes(store: Store) -> None:
    text = (FOLDER / "models" / "segment_numbers.sql").read_text(encoding="utf-8")
    assert text == made().model(["site"], 1200, "duckdb")
    query = text.partition("\n")[2].replace('{{ var("store") }}', store.path)
    refuse_difference(duckdb.sql(query).to_arrow_table().to_pylist(), store)


def test_dbt_builds_the_table(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("dbt.adapters.duckdb", reason="could not import 'dbt.adapters.duckdb'")
    project = tmp_path / "project"
    shutil.copytree(FOLDER, project)
    ran = subprocess.run(
        [f"{Path(sys.executable).parent}/dbt", "build", "--profiles-dir", ".", "--vars", f"{{store: {store.path}}}"],
        cwd=project, capture_output=True, text=True, check=False,
        env={**os.environ, "CALIBRATION_DB": "made.duckdb", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2000:]
    with duckdb.connect(str(project / "made.duckdb"), read_only=True) as db:
        refuse_difference(db.sql("SELECT * FROM segment_numbers").to_arrow_table().to_pylist(), store)
