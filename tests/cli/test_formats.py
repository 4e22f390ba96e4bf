"""Every supported file format, read from the command line; every guess is printed."""

from __future__ import annotations

import gzip
import html
import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import calibrary as cal

pytestmark = pytest.mark.usefixtures("outlined")

RNG = np.random.default_rng(0)
P = np.round(RNG.random(40), 3)
Y = (RNG.random(40) < P).astype(int)
Q = RNG.dirichlet(np.ones(3), 40)
K = np.array([RNG.choice(3, p=row) for row in Q])
NAMES = ["cat", "dog", "eel"]


def run(*args, stdin=None):
    """Run a command: its exit status, standard output and standard error."""
    from calibrary.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.argv", ["calibrary", *map(str, args)])
        if stdin is not None:
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code or 0, out.getvalue(), err.getvalue()


def value(*args, id="bs", stdin=None):
    """The number that ``calibrary metric`` prints."""
    status, out, err = run("metric", id, *args, stdin=stdin)
    assert status == 0, err
    return float(out.split()[1])


def refused(sentence, *args):
    status, _, err = run("metric", "bs", *args)
    assert status == 2, err
    assert sentence in err, err


def columns(**more):
    return {"y": Y.tolist(), "p": P.tolist(), **more}


def csv_text(table, sep=","):
    rows = zip(*table.values(), strict=True)
    return "\n".join([sep.join(table), *(sep.join(map(str, row)) for row in rows)]) + "\n"


def lines(table):
    return "".join(json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in zip(*table.values(), strict=True))


def excel(path, table):
    import openpyxl

    book = openpyxl.Workbook()
    for row in [list(table), *zip(*table.values(), strict=True)]:
        book.active.append(list(row))
    book.create_sheet("notes")
    book.save(path)


def torch_file(path, table):
    torch = pytest.importorskip("torch")
    torch.save({name: torch.tensor(values) for name, values in table.items()}, path)


WRITERS = {
    "p.csv": lambda path, t: path.write_text(csv_text(t)),
    "p.tsv": lambda path, t: path.write_text(csv_text(t, "\t")),
    "semicolons.csv": lambda path, t: path.write_text(csv_text(t, ";")),
    "commas.csv": lambda path, t: path.write_text(csv_text(t, ";").replace(".", ",")),
    "p.csv.gz": lambda path, t: path.write_bytes(gzip.compress(csv_text(t).encode())),
    "bom.csv": lambda path, t: path.write_bytes(b"\xef\xbb\xbf" + csv_text(t).encode()),
    "p.jsonl": lambda path, t: path.write_text(lines(t)),
    "p.jsonl.gz": lambda path, t: path.write_bytes(gzip.compress(lines(t).encode())),
    "list.json": lambda path, t: path.write_text(f"[{lines(t).strip().replace(chr(10), ',')}]"),
    "columns.json": lambda path, t: path.write_text(json.dumps(t, indent=1)),
    "inside.json": lambda path, t: path.write_text(f'{{"run": 1, "rows": [{lines(t).strip().replace(chr(10), ",")}]}}'),
    "p.parquet": lambda path, t: pq.write_table(pa.table(t), path),
    "p.feather": lambda path, t: feather.write_feather(pa.table(t), path),
    "p.npz": lambda path, t: np.savez(path, **t),
    "p.xlsx": excel,
    "p.pt": torch_file,
    "unnamed": lambda path, t: pq.write_table(pa.table(t), path),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_number(tmp_path, name):
    WRITERS[name](tmp_path / name, columns())
    assert value(tmp_path / name) == pytest.approx(cal.brier_score(Y, P), rel=1e-6 if name == "p.pt" else 1e-9)


def test_guesses_are_said_and_quiet_is_quiet(tmp_path):
    excel(tmp_path / "p.xlsx", columns())
    _, _, said = run("metric", "bs", tmp_path / "p.xlsx")
    assert "first of 2 sheets" in said
    assert "label column guessed: y" in said
    (tmp_path / "p.csv").write_text(csv_text(columns(), ";").replace(".", ","))
    _, _, said = run("metric", "bs", tmp_path / "p.csv")
    assert "separated by ';'" in said
    assert "decimal commas" in said
    assert run("metric", "bs", tmp_path / "p.csv", "-q")[2] == ""


def test_json_lines_of_a_language_model(tmp_path):
    table = {"ok": (Y == 1).tolist(), "conf": P.tolist(), "answer": ['a [[ " {'] * 40, "usage": [{"n": 3}] * 40}
    (tmp_path / "a.jsonl").write_text(lines(table))
    assert value(tmp_path / "a.jsonl", "--confidence", "conf", "--correct", "ok") == pytest.approx(
        cal.brier_score(Y, P)
    )
    nested = [{"graded": {"correct": bool(a)}, "said": {"confidence": b}} for a, b in zip(Y, P, strict=True)]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(r) + "\n" for r in nested))
    found = value(tmp_path / "b.jsonl", "--confidence", "said.confidence", "--correct", "graded.correct")
    assert found == pytest.approx(cal.brier_score(Y, P))


def test_verbalised_percentages_are_declared_never_guessed(tmp_path):
    words = [f"{100 * p:.1f}%" if i % 2 else round(100 * p, 1) for i, p in enumerate(P.tolist())]
    right = ["correct" if a else "incorrect" for a in Y]
    path = tmp_path / "a.jsonl"
    path.write_text(lines({"ok": right, "conf": words}))
    names = ("--confidence", "conf", "--correct", "ok")
    assert value(path, *names, "--percent") == pytest.approx(cal.brier_score(Y, P), abs=1e-12)
    assert "class of interest guessed: correct" in run("metric", "bs", path, *names, "--percent")[2]
    refused("add --percent", path, *names)
    path.write_text(lines({"ok": right, "conf": [round(100 * p, 1) for p in P.tolist()]}))
    refused("--percent", path, *names)
    path.write_text(lines({"ok": right, "conf": ["high"] * 40}))
    refused("'high' in row 1, which is not a number", path, *names, "--percent")
    path.write_text(lines({"ok": right, "conf": [140] * 40}))
    refused("percentages lie between 0 and 100", path, *names, "--percent")


def test_labels_as_words_ask_which_one_is_meant(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(csv_text({"y": ["ill" if a else "well" for a in Y], "p": P}))
    refused("--positive", path)
    assert value(path, "--positive", "ill") == pytest.approx(cal.brier_score(Y, P))
    path.write_text(csv_text({"y": [str(a + 1) for a in Y], "p": P}))
    refused("--positive '2'", path)
    assert value(path, "--positive", "2") == pytest.approx(cal.brier_score(Y, P))
    path.write_text(csv_text({"y": ["yes" if a else "no" for a in Y], "p": P}))
    assert value(path) == pytest.approx(cal.brier_score(Y, P))


def test_one_class_written_in_two_ways_is_refused(tmp_path):
    labels = [("Yes " if i % 3 else "yes") if y else "no" for i, y in enumerate(Y)]
    path = tmp_path / "p.csv"
    path.write_text(csv_text({"y": labels, "p": P}))
    for words in (("metric", "ece", path), ("validate", path, "--label", "y")):
        status, _, err = run(*words)
        assert status == 2
        assert "differ only in capital letters or spaces" in err


def test_a_line_that_names_the_separator_is_skipped_and_other_line_ends_are_named(tmp_path):
    path = tmp_path / "p.csv"
    text = csv_text({"y": Y, "p": P})
    path.write_text("sep=;\n" + text.replace(",", ";"))
    assert value(path) == pytest.approx(cal.brier_score(Y, P))
    path.write_bytes(text.replace("\r\n", "\n").replace("\n", "\r").encode())
    refused("end with a carriage return alone: save it with line feeds", path)
    (tmp_path / "p.csv.lz4").write_bytes(b"\x04")
    refused("is an archive: unpack it first", tmp_path / "p.csv.lz4")


def test_a_date_is_no_predictor(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(csv_text({"y": Y, "p": P, "day": [f"2026-11-{i % 28 + 1:02d}" for i in range(len(Y))]}))
    status, _, err = run("validate", path, "--label", "y")
    assert status == 2
    assert "column 'day' holds dates: a predictor must be a number here" in " ".join(err.split())


@pytest.mark.parametrize("parts", ["0", "1"])
def test_a_column_is_cut_into_two_ranges_or_more(tmp_path, parts):
    path = tmp_path / "p.csv"
    path.write_text(csv_text({"y": Y, "p": P, "age": np.arange(len(Y))}))
    status, _, err = run("report", path, "--label", "y", "--prob", "p", "--by", f"age:{parts}")
    assert status == 2
    assert f"--by age:{parts}: pass a number of ranges of at least 2" in err


@pytest.mark.parametrize(("head", "cell"), [("y,p", "0.0_1"), ("y;p", "0,0_1")])
def test_a_text_with_an_underscore_is_no_number(tmp_path, head, cell):
    path, comma = tmp_path / "p.csv", head[1]
    cells = [cell, *(str(p).replace(".", cell[1]) for p in P[1:])]
    path.write_text("\n".join([head, *(f"{y}{comma}{c}" for y, c in zip(Y, cells, strict=True))]) + "\n")
    status, _, err = run("metric", "ece", path, "--prob", "p")
    assert status == 2
    assert "0_1' in row 1" in err


def test_wide_and_long_tables_of_classes_give_the_same_number(tmp_path):
    words = [NAMES[k] for k in K]
    wide = tmp_path / "wide.csv"
    wide.write_text(csv_text({"y": words, **{f"p_{n}": Q[:, j] for j, n in enumerate(NAMES)}}))
    right = cal.brier_score(K, Q)
    assert value(wide, "--prob", "p_") == pytest.approx(right)
    rows = [(i, words[i], name, Q[i, j]) for i in range(40) for j, name in enumerate(NAMES)]
    order = RNG.permutation(len(rows))
    long = tmp_path / "long.csv"
    long.write_text("case,y,class,p\n" + "".join(",".join(map(str, rows[i])) + "\n" for i in order))
    long_way = ("--label", "y", "--prob", "p", "--class-column", "class")
    assert value(long, *long_way, "--id", "case") == pytest.approx(right)
    refused("needs --id", long, *long_way)
    long.write_text("case,y,class,p\n" + "".join(",".join(map(str, row)) + "\n" for row in rows[:-1]))
    refused("do not have the same rows", long, *long_way, "--id", "case")


@pytest.mark.parametrize("ending", ["npz", "pt"])
def test_logits_of_several_classes(tmp_path, ending):
    z = np.log(Q) + 3.0
    path = tmp_path / f"z.{ending}"
    if ending == "npz":
        np.savez(path, logits=z, labels=K)
    else:
        torch_file(path, {"logits": z, "labels": K})
    assert value(path, "--logits") == value(path) == pytest.approx(cal.brier_score(K, Q))
    assert "their name and their values are those of logits" in " ".join(run("metric", "bs", path)[2].split())


def test_a_folder_holds_parts_of_one_table(tmp_path):
    (tmp_path / "parts").mkdir()
    for i in range(4):
        part = {name: values[10 * i : 10 * i + 10] for name, values in columns().items()}
        pq.write_table(pa.table(part), tmp_path / "parts" / f"part-{i}.parquet")
    (tmp_path / "parts" / "_SUCCESS").write_text("")
    assert value(tmp_path / "parts") == pytest.approx(cal.brier_score(Y, P))
    assert "4 files of" in run("metric", "bs", tmp_path / "parts")[2]
    (tmp_path / "parts" / "x.csv").write_text("a,b\n1,2\n")
    refused("are not parts of one table", tmp_path / "parts")


def compared(*args):
    status, out, err = run("compare", *args, "--resamples", "19", "--metrics", "bs")
    return status, out, err


def difference(table):
    return float(re.search(r"-?\d\.\d+", table.splitlines()[-1])[0])


def test_one_file_per_model_and_a_long_table_of_models(tmp_path):
    other = np.round(np.sqrt(P), 4)
    (tmp_path / "first.csv").write_text(csv_text({"y": Y, "p": P, "row": np.arange(40)}))
    shuffled = RNG.permutation(40)
    (tmp_path / "second.csv").write_text(csv_text({"y": Y, "p": other, "row": np.arange(40)}))
    (tmp_path / "mixed.csv").write_text(
        csv_text({"y": Y[shuffled], "p": other[shuffled], "row": np.arange(40)[shuffled]})
    )
    first, second, mixed = (tmp_path / f"{n}.csv" for n in ("first", "second", "mixed"))
    status, out, err = compared(first, second)
    assert status == 0, err
    assert "first.csv" in out
    assert "second.csv" in out
    status, _, err = compared(first, mixed)
    assert status == 2
    assert "--id" in err
    status, out, err = compared(first, mixed, "--id", "row", "--prob", "p")
    assert status == 0, err
    rows = [(i, Y[i], m, q[i]) for m, q in (("a", P), ("b", other)) for i in range(40)]
    long = tmp_path / "long.csv"
    long.write_text("row,y,model,p\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    again, out_long, err = compared(long, "--model-column", "model", "--prob", "p")
    assert again == 0, err
    right = cal.brier_score(Y, P) - cal.brier_score(Y, other)
    assert difference(out) == difference(out_long) == pytest.approx(right, abs=1e-3)


@pytest.fixture
def two(tmp_path):
    """Write two files of one model each, on the same rows; the columns may be changed."""

    def made(first=None, second=None):
        row = np.arange(40)
        table = {"row": row, "y": Y, "p": P, "w": 1.0 + row % 3, "site": row % 4}
        for name, q, changed in (("a", P, first), ("b", np.round(np.sqrt(P), 4), second)):
            (tmp_path / f"{name}.csv").write_text(csv_text({**table, "p": q, **(changed or {})}))
        return tmp_path / "a.csv", tmp_path / "b.csv"

    return made


def lacking(values, *rows):
    return ["" if i in rows else v for i, v in enumerate(values)]


@pytest.mark.parametrize("how", [{}, {"id": "row"}], ids=["by position", "by id"])
def test_a_row_that_one_file_lacks_is_dropped_from_every_file(two, how):
    from calibrary.cli.read import read_predictions

    other = np.round(np.sqrt(P), 4)
    order = np.arange(40) if not how else RNG.permutation(40)
    second = {"row": order, "y": Y[order], "p": lacking(other[order], 20, 30), "w": (1.0 + np.arange(40) % 3)[order]}
    files = two({"p": lacking(P, 3)}, {**second, "site": (np.arange(40) % 4)[order]})
    found = read_predictions([*map(str, files)], label="y", prob=["p"], drop_missing=True, **how)
    kept = np.setdiff1d(np.arange(40), [3, *order[[20, 30]]])
    rows = found.others["row"].astype(int) if how else kept
    assert sorted(rows.tolist()) == kept.tolist()
    assert found.y.tolist() == Y[rows].tolist()
    assert found.models["a.csv"].tolist() == P[rows].tolist()
    assert found.models["b.csv"].tolist() == other[rows].tolist()
    assert found.n_dropped == 3
    said = f"rows that are lacking a value in one file are left out of every file: 1 in {files[0]}, 2 in {files[1]}"
    assert said in found.notes
    status, out, err = compared(
        *files, "--label", "y", "--prob", "p", "--drop-missing", *(f"--{k}={v}" for k, v in how.items())
    )
    assert status == 0, err
    assert difference(out) == pytest.approx(
        cal.brier_score(Y[kept], P[kept]) - cal.brier_score(Y[kept], other[kept]), abs=1e-3
    )


def test_files_of_other_lengths_are_not_matched_by_position_after_rows_were_dropped(two, tmp_path):
    first, second = two({"p": lacking(P, 0)})
    second.write_text("".join(second.read_text().splitlines(keepends=True)[:-1]))
    status, _, err = compared(first, second, "--label", "y", "--prob", "p", "--drop-missing")
    assert status == 2
    assert "b.csv has 39 rows and " in err
    assert "name the column that identifies a row with --id" in " ".join(err.split())


@pytest.mark.parametrize(("column", "options", "said"), [
    ("w", ("--weight", "w"), "differ in their weights, first in row 8 ('9' and '2')"),
    ("site", ("--unit", "site"), "differ in their column 'site', first in row 8 ('9' and '3')"),
    ("y", (), "differ in their labels, first in row 8"),
    ("row", ("--id", "row"), "hold different rows: their columns 'row' differ"),
    ("w", ("--id", "row", "--weight", "w"), "differ in their weights, first in row 7 ('9' and '2')"),
])  # fmt: skip
def test_other_columns_of_the_second_file_are_compared_with_the_first(two, column, options, said):
    changed = {"w": 9.0, "site": 9, "y": 1 - Y[7], "row": 99}[column]
    values = {"w": 1.0 + np.arange(40) % 3, "site": np.arange(40) % 4, "y": Y, "row": np.arange(40)}[column].copy()
    values[7] = changed
    status, _, err = compared(*two(second={column: values}), "--label", "y", "--prob", "p", *options)
    assert status == 2
    assert said in " ".join(err.split())
    assert compared(*two(), "--label", "y", "--prob", "p", *options)[0] == 0


@pytest.mark.parametrize("column", ["w", "site"])
def test_other_columns_of_a_long_table_are_the_same_for_every_model(tmp_path, column):
    rows = [(i, Y[i], m, P[i], 1 + (m == "b" and column == "w"), m if column == "site" else "s")
            for m in "ab" for i in range(40)]  # fmt: skip
    long = tmp_path / "long.csv"
    long.write_text("row,y,model,p,w,site\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    option = {"w": ("--weight", "w"), "site": ("--unit", "site")}[column]
    status, _, err = compared(long, "--model-column", "model", "--label", "y", "--prob", "p", "--id", "row", *option)
    assert status == 2
    assert f"have different values in '{column}' for the same row" in " ".join(err.split())


def test_a_row_that_one_model_of_a_long_table_lacks_is_dropped_from_every_model(tmp_path):
    from calibrary.cli.read import read_predictions

    rows = [(i, Y[i], m, "" if (i, m) in ((2, "a"), (5, "b")) else P[i]) for m in "ab" for i in range(40)]
    long = tmp_path / "long.csv"
    long.write_text("row,y,model,p\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    options = {"label": "y", "prob": ["p"], "model_column": "model", "drop_missing": True}
    found = read_predictions(long, id="row", **options)
    kept = np.setdiff1d(np.arange(40), [2, 5])
    at = found.others["row"].astype(int)
    assert sorted(at.tolist()) == kept.tolist()
    assert found.models["a"].tolist() == found.models["b"].tolist() == P[at].tolist()
    with pytest.raises(ValueError, match="name the column that identifies a row with --id"):
        read_predictions(long, **options)


@pytest.mark.parametrize(("options", "said"), [
    (("--label", "y", "--prob", "y"), "column 'y' is named as the label and as a probability"),
    (("--label", "y", "--prob", "p", "--weight", "y"), "column 'y' is named as the weight and as the label"),
    (("--label", "y", "--prob", "p", "--weight", "p"), "column 'p' is named as the weight and as the probability"),
])  # fmt: skip
def test_one_column_has_one_role(tmp_path, options, said, monkeypatch):
    path = tmp_path / "p.csv"
    path.write_text(csv_text(columns()))
    refused(said, path, *options)
    monkeypatch.setattr("calibrary.cli.large.MOST_CSV_BYTES", 100)  # the same file is scanned
    refused(said, path, *options)


@pytest.mark.parametrize("role", ["weight", "group", "id", "others"])
def test_an_empty_name_is_no_column(tmp_path, role):
    from calibrary.cli.read import read_predictions

    path = tmp_path / "p.csv"
    path.write_text(csv_text(columns()))
    with pytest.raises(ValueError, match="no column is called ''"):
        read_predictions(path, **{role: [""] if role == "others" else ""})


@pytest.mark.parametrize(("cells", "option", "said"), [
    ([0.2, 0.7, 1.0], "--percent", "--percent was given, but no value of p is above 1"),
    ([0.2, 0.7, 1.0], "--logits", "--logits was given, but every value of p lies in [0, 1]"),
    (["0.2%", "0.7%", "1%"], "--percent", ""),
    ([0.2, 0.7, 1.2], "--logits", ""),
    ([20, 70, 100], "--percent", ""),
])  # fmt: skip
def test_percentages_and_logits_that_look_like_probabilities_are_warned_about(tmp_path, cells, option, said):
    path = tmp_path / "p.csv"
    path.write_text(csv_text({"y": [0, 1, 1], "p": cells}))
    status, _, err = run("metric", "bs", path, option)
    assert status == 0, err
    text = " ".join(err.split())
    assert (said in text) if said else ("was given, but" not in text)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("chunks", [1, 3])
def test_a_missing_value_of_a_category_is_missing(tmp_path, ending, chunks):
    """Arrow's own conversion gives the last category for it."""
    from calibrary.cli.read import read_predictions

    labels = pa.chunked_array([pa.array(["no", "yes", None] * 20).dictionary_encode()] * chunks)
    table = pa.table({"y": labels, "p": np.linspace(0.1, 0.9, 60 * chunks)})
    path = tmp_path / f"p.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path, compression="uncompressed")
    refused("column 'y' has", path, "--label", "y", "--prob", "p")
    found = read_predictions(path, label="y", prob=["p"], drop_missing=True)
    assert (found.n_dropped, found.y.tolist(), found.classes) == (20 * chunks, [0, 1] * 20 * chunks, ("no", "yes"))


def _two_long_labels(n=4000):
    return pa.table({"y": ["a" * 300_000, "b" * 300_000] * (n // 2), "p": np.linspace(0.1, 0.9, n)})


def _nulls(n=1 << 28):
    return pa.table({"y": pa.nulls(n), "p": pa.nulls(n)})


def _runs(n=1 << 28):
    run = pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array([1.0]))
    return pa.table({"y": run, "p": run})


@pytest.mark.parametrize(("make", "ending"), [
    (_two_long_labels, "parquet"), (_two_long_labels, "arrow"), (_nulls, "arrow"), (_runs, "arrow"),
])  # fmt: skip
def test_a_small_file_that_becomes_gigabytes_is_refused_before(tmp_path, make, ending):
    """In a process that may take half a gigabyte more than its libraries."""
    path = tmp_path / f"p.{ending}"
    table = make()
    if ending == "parquet":
        pq.write_table(table, path, compression="zstd")
    else:
        if make is _two_long_labels:
            table = table.set_column(0, "y", table.column("y").dictionary_encode())
        with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as made:
            made.write_table(table)
    assert path.stat().st_size < 200_000
    code = (
        "import resource, sys\nimport pyarrow.parquet, pyarrow.compute, calibrary.cli.main\n"
        "from calibrary.cli.read import read_predictions\n"
        "before = int(open('/proc/self/statm').read().split()[5]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (before + (1 << 29),) * 2)\n"
        "read_predictions(sys.argv[1], label='y', prob=['p'], positive='a' * 300_000)"
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("does not apply: Linux alone counts memory there")
    ended = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert re.search(r"(is small but unpacks|the texts of column 'y' of .* unpack) to more than 1 GiB", ended.stderr)


def test_texts_that_rows_share_are_kept_once(tmp_path):
    from calibrary.tables.files import open_table

    pq.write_table(
        pa.table({"y": ["a" * 3000, "b" * 3000] * 50, "p": np.linspace(0.1, 0.9, 100)}), tmp_path / "p.parquet"
    )
    values = open_table(tmp_path / "p.parquet").columns(["y"])["y"]
    assert values[0] is values[2]
    assert values.tolist() == ["a" * 3000, "b" * 3000] * 50


def test_objects_of_other_packages_come_in():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    right = cal.brier_score(Y, P)
    assert cal.brier_score(pd.Series(Y), pd.Series(P)) == right
    assert cal.brier_score(pl.Series(Y), pl.Series(P)) == right
    assert cal.brier_score(pa.array(Y), pa.chunked_array([P[:9], P[9:]])) == right
    named = np.array(NAMES)[K]
    frame = {n: Q[:, j] for j, n in reversed(list(enumerate(NAMES)))}
    for table in (pd.DataFrame(frame), pl.DataFrame(frame), pa.table(frame)):
        assert cal.brier_score(named, table) == pytest.approx(cal.brier_score(K, Q))


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    excel(tmp_path / "p.xlsx", columns())
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    refused("pip install 'calibrary[excel]'", tmp_path / "p.xlsx")


# -- what comes out ---------------------------------------------------------------------------------

FAST = ("--resamples", "19", "--metrics", "ece,bs", "-q")


def fulfils_the_schema(report):
    jsonschema = pytest.importorskip("jsonschema")
    from calibrary.reporting.stored import schema

    jsonschema.Draft202012Validator(schema()).validate(report)


def test_reports_of_classes_groups_and_detectors_fulfil_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    from importlib.resources import files

    from calibrary.reporting.stored import as_json, schema

    jsonschema.Draft202012Validator.check_schema(schema())
    fast = {"n_resamples": 19, "metrics": ["ece", "bs"]}
    data = files("calibrary") / "datasets"
    matches = cal.match_detections(str(data / "demo_ground_truth.json"), str(data / "demo_results.json"))
    reports = [
        cal.report(K, Q, by={"group": K % 2}, **fast),
        cal.report(
            [0, 1, 1, 0] * 5, [0.0, 0.3, 0.0, 0.2] * 5, n_resamples=0, metrics=["nll", "eo", "piece"], primary="nll"
        ),
        cal.report(matches, n_resamples=19, metrics=["d_ece"], primary="d_ece"),
    ]
    for r in reports:
        found = json.loads(as_json([r]))
        fulfils_the_schema(found)
    assert found["version"] == 1
    for change in ({"version": 2}, {"headline": 3}, {"title": None}):
        with pytest.raises(jsonschema.ValidationError):
            fulfils_the_schema({**found, **change})
    broken = json.loads(as_json([reports[1]]))
    broken["evaluation"]["metrics"][0]["value"] = "high"
    with pytest.raises(jsonschema.ValidationError):
        fulfils_the_schema(broken)


def test_a_report_of_another_version_is_refused(tmp_path):
    (tmp_path / "r.json").write_text('{"format": "calibrary report", "version": 2, "title": "t", "headline": "h"}')
    status, _, err = run("report", tmp_path / "r.json")
    assert status == 2
    assert "has version 2 and this calibrary reads version 1" in err


def test_the_schema_is_printed():
    status, out, _ = run("schema")
    assert status == 0
    assert json.loads(out)["$id"] == "urn:calibrary:report:1"


def test_json_goes_to_standard_output(tmp_path):
    (tmp_path / "p.csv").write_text(csv_text(columns()))
    status, out, err = run("report", tmp_path / "p.csv", *FAST, "--json")
    assert status == 0, err
    found = json.loads(out)
    fulfils_the_schema(found)
    assert {m["id"]: m["value"] for m in found["evaluation"]["metrics"]}["bs"] == pytest.approx(cal.brier_score(Y, P))


def test_many_files_have_a_report_each_and_a_page_that_leads_to_them(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.csv").write_text(csv_text(columns()))
    (tmp_path / "<i>.csv").write_text(csv_text(columns()))
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n")
    files = [tmp_path / "a" / "run.csv", tmp_path / "b" / "run.csv", tmp_path / "<i>.csv"]
    reports = tmp_path / "reports"
    status, _, err = run("report", *files, *FAST, "--folder", reports, "--form", "csv")
    assert status == 0, err
    assert sorted(p.name for p in reports.iterdir()) == ["<i>.csv", "a-run.csv", "b-run.csv", "index.html"]
    page = (reports / "index.html").read_text()
    assert page.count("<a href=") == 3
    assert 'href="%3Ci%3E.csv"' in page
    assert "<i>" not in page
    assert "default-src 'none'" in html.unescape(page)
    status, _, err = run("report", *files[:1], tmp_path / "broken.csv", *FAST, "--folder", reports, "--form", "md")
    assert status == 2
    assert "1 of 2 files could not be reported" in err
    assert (reports / "run.md").exists()
    assert "no column looks like the label" in (reports / "index.html").read_text()
    for options, sentence in (
        (("--folder", files[0]), "is a file: name a folder"),
        (("--folder", reports, "-o", tmp_path / "r.html"), "exclude each other"),
        (("--folder", reports, "--form", "doc"), "is not one of"),
    ):
        status, _, err = run("report", *files, *FAST, *options)
        assert status == 2
        assert sentence in err


def test_one_file_per_model_in_a_report(tmp_path):
    (tmp_path / "a.csv").write_text(csv_text(columns()))
    (tmp_path / "b.csv").write_text(csv_text({"y": Y, "p": np.sqrt(P)}))
    status, out, err = run("report", tmp_path / "a.csv", tmp_path / "b.csv", *FAST, "--json")
    assert status == 0, err
    found = json.loads(out)
    fulfils_the_schema(found)
    assert len(found["models"]) == 2
    assert {name for c in found["comparisons"] for name in (c["a"], c["b"])} == {"a.csv", "b.csv"}


def test_a_metric_asked_for_and_left_out_is_named(tmp_path):
    (tmp_path / "p.csv").write_text(csv_text(columns()))
    status, _, err = run("report", tmp_path / "p.csv", "--resamples", "0", "--metrics", "d_ece,bs", "-q")
    assert status == 0
    assert "d_ece was not computed:" in err


def test_weights_that_are_no_counts_say_what_they_are(tmp_path):
    (tmp_path / "p.csv").write_text(csv_text(columns(w=(P + 0.1).tolist())))
    weighted = ("report", tmp_path / "p.csv", "--label", "y", "--prob", "p", "--weight", "w", *FAST)
    status, _, err = run(*weighted)
    assert status == 2
    assert "importance" in err
    assert run(*weighted, "--weight-type", "importance")[0] == 0


def test_a_pdf_says_what_is_missing(tmp_path, monkeypatch):
    from calibrary.reporting import pdf

    (tmp_path / "p.csv").write_text(csv_text(columns()))
    monkeypatch.setattr(cal, "report", lambda *a, **k: pytest.fail("computed"))
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    monkeypatch.setattr(pdf, "_of_playwright", lambda: None)
    monkeypatch.delenv("CALIBRARY_BROWSER", raising=False)
    status, _, err = run("report", tmp_path / "p.csv", "-o", tmp_path / "r.pdf")
    assert status == 2
    assert "install Chromium or Chrome" in err


@pytest.mark.parametrize(
    ("locale", "size"),
    [
        ("en_US.UTF-8", "Letter"),
        ("fr_CA", "Letter"),
        ("es_MX@x", "Letter"),
        ("de_DE.UTF-8", "A4"),
        ("en_GB", "A4"),
        ("C.UTF-8", "A4"),
    ],
)
def test_the_paper_is_that_of_the_locale(locale, size, monkeypatch):
    from calibrary.reporting import pdf

    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LC_PAPER", locale)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    assert pdf.paper() == size


def test_a_pdf_has_the_size_of_the_paper(monkeypatch):
    import re

    from calibrary.reporting import pdf

    try:
        pdf.browser()
    except ValueError as missing:
        pytest.skip(f"no browser: {missing}")
    for locale, wide in (("de_DE", 595), ("en_US", 612)):
        monkeypatch.setenv("LC_ALL", locale)
        made = pdf.pdf("<!doctype html><style>p{color:red}</style><p>calibrated</p>")
        assert float(re.search(rb"/MediaBox\s*\[0 0 ([\d.]+)", made)[1]) == pytest.approx(wide, abs=1.5)


def test_a_pdf_is_the_printed_page():
    from calibrary.reporting import pdf

    try:
        pdf.browser()
    except ValueError as missing:
        pytest.skip(f"no browser: {missing}")
    made = pdf.pdf("<!doctype html><title>x</title><p>calibrated</p>")
    assert made.startswith(b"%PDF")
