"""The app in a notebook: a frame with the table already loaded, and no files left at its end."""

from __future__ import annotations

import http.client
import json

import numpy as np
import pytest

import calibrary as cal
from app_visitor import Visitor, table

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")


def asked(url, path):
    port = int(url.split(":")[2].split("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"host": f"localhost:{port}", "x-calibrary-key": url.partition("=")[2]})
    answer = connection.getresponse()
    return answer, answer.read()


def tables():
    pd, pl, pa = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {"y": np.array([0, 1, 1]), "p": np.array([0.25, 0.5, 0.75])}
    return [columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]


def test_any_table_is_dropped_with_its_columns(tmp_path):
    import pyarrow.parquet as pq

    from calibrary.application.notebook import _write_table

    for i, given in enumerate(tables()):
        _write_table(given, tmp_path / f"{i}.parquet")
        assert pq.read_table(tmp_path / f"{i}.parquet").to_pydict() == {"y": [0, 1, 1], "p": [0.25, 0.5, 0.75]}


def test_a_frame_shows_the_app_and_its_end_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "p.csv"
    path.write_bytes(table())
    frame = cal.app([path, {"y": [0, 1], "p": [0.5, 0.5]}])
    try:
        shown = frame._repr_html_()
        assert f'src="{frame.url.replace("127.0.0.1", "localhost")}"' in shown
        assert repr(frame) == f"The app runs at {frame.url} until .stop() is called."
        answer, _ = asked(frame.url, "/")
        assert (
            "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*" in answer.headers["content-security-policy"]
        )
        files = json.loads(asked(frame.url, "/files")[1])["files"]
        assert [file["name"] for file in files] == ["p.csv", "table.parquet"]
        assert len(list(tmp_path.glob("calibrary-app-*"))) == 1
    finally:
        frame.stop()
    assert frame._repr_html_() == "<p>The app has ended.</p>"
    Visitor.until(lambda: not list(tmp_path.glob("calibrary-app-*")))
    with pytest.raises(OSError):
        asked(frame.url, "/")


def test_data_other_than_a_table_are_refused_without_leftovers(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(cal.RefusedCallError, match="int is not a table"):
        cal.app(3)
    with pytest.raises(FileNotFoundError):
        cal.app("no.csv")
    assert list(tmp_path.iterdir()) == []
