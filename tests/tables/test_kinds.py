"""Kinds of files that people have: they are read and said, or refused in one sentence that says what they are."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from calibrary.cli.read import read_predictions
from calibrary.tables.files import open_table
from calibrary.tables.sources import InputError
from calibrary.tables.values import is_missing

ROWS = "y,p\n1,0.75\n0,0.25\n1,0.5\n"


def _read(path):
    found = read_predictions(path)
    assert found.y.tolist() == [1, 0, 1]
    assert found.models["p"].tolist() == [0.75, 0.25, 0.5]
    return found.notes


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ROWS.encode("utf-16"), "UTF-16"),
        (ROWS.encode("utf-8-sig"), ""),
        (b"# exported 2026-11-18\n# by a program\n" + ROWS.encode(), "2 lines of comments before the header"),
        (ROWS.replace(",", ";").replace(".", ",").encode(), "decimal commas"),
        (ROWS.replace("\n", "\r\n").encode(), ""),
        (b"y,p,n\n1,0.75,1\n0,0.25,1\n1,0.5,1\nTotal,,3\n", "left out, because it is a line of totals: Total,,3"),
    ],
    ids=["utf-16", "bom", "comments", "semicolons", "crlf", "total"],
)
def test_text_as_programs_write_it_is_read(tmp_path, content, said):
    (tmp_path / "a.csv").write_bytes(content)
    assert said in "\n".join(_read(tmp_path / "a.csv"))


@pytest.mark.parametrize("listed", [True, False])
def test_a_long_json_file_is_never_whole_in_memory(tmp_path, listed):
    rows = [f'{{"y": {i % 2}, "p": 0.{i % 89 + 10}, "text": "{"long " * 60}"}}' for i in range(30_000)]
    path = tmp_path / "a.json"
    path.write_text("[" + ",\n".join(rows) + "]" if listed else "\n".join(rows))
    tracemalloc.start()
    table = open_table(path)
    found = table.columns(["y", "p"])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(found["y"]), found["p"][88]) == (30_000, 0.98)
    assert most < path.stat().st_size
    assert len(table.beginning().columns(["p"])["p"]) == 1000
    (tmp_path / "b.json").write_text('[{"y": 1, "p": 0.5}] more')
    with pytest.raises(InputError, match="character 21 begins more text after the list"):
        open_table(tmp_path / "b.json").columns(["y"])


def test_utf_16_of_json_is_read(tmp_path):
    (tmp_path / "a.jsonl").write_bytes('{"y": 1, "p": 0.75}\n{"y": 0, "p": 0.25}\n{"y": 1, "p": 0.5}'.encode("utf-16"))
    _read(tmp_path / "a.jsonl")


def test_rows_are_counted_after_comments(tmp_path):
    (tmp_path / "a.csv").write_text("# one\ny,p\n1,2\n0,\n")
    with pytest.raises(InputError) as found:
        read_predictions(tmp_path / "a.csv")
    assert [p.rows for p in found.value.problems] == [(4,), (3,)]


def test_a_row_that_only_looks_like_a_total_is_kept(tmp_path):
    (tmp_path / "a.csv").write_text("name,y,p\nfirst,1,0.75\nsecond,0,0.25\ntotal,1,0.5\n")
    assert not any("total" in note for note in _read(tmp_path / "a.csv"))


def test_a_binary_file_with_a_text_ending_is_read_by_its_content(tmp_path):
    np.savez(tmp_path / "a.npz", y=[1, 0, 1], p=[0.75, 0.25, 0.5])
    (tmp_path / "a.npz").rename(tmp_path / "a.csv")
    assert any("is a file of NPZ, whatever its name says" in note for note in _read(tmp_path / "a.csv"))


_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.xls", _OLE, "is an old Excel workbook"),
        ("a.csv", _OLE, "is an old Excel workbook"),
        ("a.xls", _OLE + "EncryptedPackage".encode("utf-16-le"), "protected by a password"),
        ("a.xlsx", _OLE, r"is an old Excel workbook \(.xls\) or protected by a password"),
        ("a.csv", b"y,p\x00\x01,\x00\n1,0.5\n", "is not text"),
        ("a.csv", b"\xff\xfey", "begins as UTF-16 text and is not"),
    ],
    ids=["xls", "xls named csv", "password", "password xlsx", "binary", "cut utf-16"],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, said):
    pytest.importorskip("openpyxl")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_predictions(tmp_path / name)


def test_files_of_models_are_matched_by_the_column_that_identifies_their_rows(tmp_path):
    (tmp_path / "a.csv").write_text("case_id,y,p\n1,1,0.9\n2,0,0.2\n3,1,0.6\n")
    (tmp_path / "b.csv").write_text("case_id,y,p\n3,1,0.5\n1,1,0.8\n2,0,0.1\n")
    found = read_predictions([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert found.models["b.csv"].tolist() == [0.8, 0.1, 0.5]
    assert found.notes[0] == "rows of the files matched by column 'case_id', which identifies each row in every file"


def test_labels_left_out_of_files_of_models_leave_their_rows_together(tmp_path):
    (tmp_path / "a.csv").write_text("id,y,p\n1,1,0.9\n2,?,0.2\n3,0,0.6\n4,1,0.3\n")
    (tmp_path / "b.csv").write_text("id,y,p\n4,1,0.4\n3,0,0.5\n1,1,0.8\n2,?,0.1\n")
    found = read_predictions([tmp_path / "a.csv", tmp_path / "b.csv"], drop_label=["?"])
    assert found.models["a.csv"].tolist() == [0.9, 0.6, 0.3]
    assert found.models["b.csv"].tolist() == [0.8, 0.5, 0.4]


MIXED = (
    "code,site,when,y,p,w,n,flag\n"
    '007,a,2026-01-02,1,0.75,2,10,true\n010,"b, c",2026-01-03,0,0.25,,20,false\n100,,2026-01-04,1,NA,1.5,,true\n'
)


def test_a_csv_file_is_read_alike_with_and_without_arrow(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.csv").write_bytes(b"# made by hand\n\xef\xbb\xbf"[:15] + MIXED.encode())
    (tmp_path / "b.csv").write_text(MIXED.replace('"b, c"', "b").replace(",", ";").replace(".", ","))
    for name in ("a.csv", "b.csv"):
        table = open_table(tmp_path / name)
        with_arrow = table.columns(table.names)
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "pyarrow", None)
            table = open_table(tmp_path / name)
            plainly = table.columns(table.names)
        for column, values in with_arrow.items():
            if values.dtype.kind == "M":
                continue  # dates stay text
            gone = is_missing(values)
            assert gone.tolist() == is_missing(plainly[column]).tolist(), column
            assert values[~gone].tolist() == plainly[column][~gone].tolist(), column
    assert plainly["code"].tolist() == ["007", "010", "100"]


def test_a_row_with_too_few_values_is_named_without_arrow_too(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.csv").write_text("# one\ny,p\n1,0.5\n0\n")
    with pytest.raises(InputError, match="line 4 has 1 values and the header has 2"):
        read_predictions(tmp_path / "a.csv")


def test_a_url_is_read_where_fsspec_is_installed(tmp_path, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://a.csv", "wb") as file:
        file.write(ROWS.encode())
    _read("memory://a.csv")
    with pytest.raises(InputError, match=r"memory://b\.csv"):
        read_predictions("memory://b.csv")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match="is a URL: install fsspec to read it, or download the file first"):
        read_predictions("memory://a.csv")


def test_tools_for_agents_read_no_url(tmp_path):
    from calibrary.cli.allowed import AllowedFolders

    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://a.csv", "wb") as file:
        file.write(ROWS.encode())
    (tmp_path / "a.csv").write_text(ROWS)
    for url in ("memory://a.csv", f"file://{tmp_path}/a.csv", "http://127.0.0.1:9/a.csv"):
        with pytest.raises(InputError, match="does not exist in the folders that may be read"):
            AllowedFolders([tmp_path]).fetched(url, tmp_path)


def test_the_app_reads_no_url(tmp_path):
    from calibrary.application.uploads import safe_name
    from calibrary.cli.app_work import preview

    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://a.csv", "wb") as file:
        file.write(ROWS.encode())
    with pytest.raises(InputError, match="no such file"):
        preview(Path("memory://a.csv"))
    assert "/" not in safe_name("http://127.0.0.1:9/a.csv")  # the name under which the app reads an upload
