"""Values are read exactly: all digits of whole numbers, leading zeros of codes, separators inside strings."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from calibrary.cli.read import read_predictions
from calibrary.tables import text_files as files
from calibrary.tables.files import open_table
from calibrary.tables.sources import InputError
from calibrary.tables.text_files import _is_text
from calibrary.tables.values import factor as _factor

pa = pytest.importorskip("pyarrow")
IDS = [2**60 + i for i in range(4)]


def _column(path, name="id"):
    return open_table(path).columns([name])[name]


def test_ids_of_64_bits_stay_different_in_json(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps({"id": i, "p": 0.5}) for i in IDS))
    assert _column(path).tolist() == IDS
    path.write_text("\n".join(json.dumps({"id": i}) for i in [*IDS, None]))
    assert _column(path).tolist() == [*IDS, None]


def test_ids_of_64_bits_stay_different_in_parquet_with_missing_values(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": pa.array([*IDS, None])}), path)
    assert _column(path).tolist() == [*IDS, None]
    pq.write_table(pa.table({"id": pa.array([1, 2, None])}), path)
    assert np.array_equal(_column(path), [1.0, 2.0, np.nan], equal_nan=True)


def test_ids_beyond_64_bits_stay_different_in_csv(tmp_path):
    path = tmp_path / "x.csv"
    large = [2**63 + i for i in range(4)]
    path.write_text("id\n" + "\n".join(map(str, large)) + "\n")
    assert len(set(_column(path).tolist())) == 4


def test_codes_keep_their_leading_zeros_in_csv(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("y,p_007,p_7\n007,0.9,0.1\n7,0.1,0.9\n007,0.8,0.2\n7,0.2,0.8\n")
    found = read_predictions(path, label="y", prob=["p_"])
    assert found.classes == ("007", "7")
    assert found.y.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (["7", "12"], False),
        (["7", None, "007"], True),
        ([" +012", "3"], True),
        (["0", "10"], False),
        (["9007199254740993", None, " 12 "], True),
        (["9007199254740993", "1.5"], False),
        (["9007199254740993", "-1"], False),
        (["9007199254740993", "1e17"], False),
    ],
)
def test_codes_are_recognized_in_few_and_in_many_rows(monkeypatch, texts, kept):
    written = pa.chunked_array([pa.array(texts, pa.string())])
    values = np.array([float(t) if t else np.nan for t in texts])
    if (np.abs(values[values == values]) < 2**53).all():
        values = np.nan_to_num(values).astype(np.int64)
    assert _is_text(written, values) is kept
    monkeypatch.setattr(files, "_FEW", 0)  # the functions of Arrow, which a long file needs
    assert _is_text(written, values) is kept


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\x0b", "\x1c"])
def test_line_separators_inside_a_string_of_json_end_no_line(tmp_path, separator):
    path = tmp_path / "x.jsonl"
    rows = [{"text": f"a{separator}b", "y": i % 2, "p": 0.5} for i in range(4)]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    assert read_predictions(path).y.tolist() == [0, 1, 0, 1]


def test_many_different_labels_are_numbered_in_linear_time():
    words = np.array([f"id{i}" for i in range(200_000)], dtype=object)
    names, place = _factor(words)  # with a search in a list this would take an hour
    assert len(names) == 200_000
    assert names[place[7]] == "id7"


def test_a_small_spreadsheet_that_claims_the_last_column_is_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["y", "p"])
    for i in range(1500):
        book.active.cell(i + 2, 1, i % 2)
        book.active.cell(i + 2, 16384, 1)
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(InputError, match="20,000,000 cells"):
        open_table(tmp_path / "x.xlsx")


def test_a_small_arrow_file_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrary.tables.sources.MOST_BYTES", 1 << 20)
    path = tmp_path / "x.arrow"
    batch = pa.record_batch({"p": pa.array(np.zeros(100_000))})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema, options=options) as writer:
        for _ in range(3):
            writer.write_batch(batch)
    with pytest.raises(InputError, match="unpacks to more than"):
        _column(path, "p")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_a_closed_stream_changes_no_exit_status(tmp_path, closed):
    (tmp_path / "f.csv").write_text("y,p\n" + "0,0.2\n1,0.7\n" * 20)
    command = f"{sys.executable} -m calibrary metric bs f.csv {closed}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert ("0.065" in done.stdout) == (closed != ">&-")


def test_without_the_compiler_switched_on_loops_run_as_they_are(tmp_path):
    code = "import calibrary as cal; y = [0, 1] * 40; p = [0.2, 0.7] * 40; print(cal.compute('skde', y, p))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 0.0 < float(done.stdout) < 1.0
