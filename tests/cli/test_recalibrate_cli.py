"""recalibrate fit and apply: every file format, in chunks, without partial files, one sentence for each mistake."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet as pq
import pytest

import calibrary as cal
from calibrary.cli.main import main
from calibrary.tables import rewrite as stream
from each import amount
from golden import arrays

Y, C, _ = arrays("binary500")
MULTI_Y, MULTI_P, _ = arrays("multi4")
FIT, NEW = slice(0, 300), slice(300, 500)
DATA = files("calibrary") / "datasets"


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*args):
        monkeypatch.setattr(sys, "argv", ["calibrary", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return SimpleNamespace(status=ended.value.code, out=said.out, err=" ".join(said.err.split()))

    return call


def table(rows, name="p"):
    y, c = Y[rows], C[rows]
    return pa.table({"id": [f"{i:04d}" for i in range(len(y))], "label": y, name: c, "note": ['a, "b"; c'] * len(y)})


@pytest.fixture
def fitted(run, tmp_path):
    pyarrow.csv.write_csv(table(FIT), tmp_path / "valid.csv")
    done = run("recalibrate", "fit", tmp_path / "valid.csv", "-o", tmp_path / "map.json", "--map", "platt")
    assert done.status == 0, done.err
    assert "Platt scaling" in done.out
    return cal.Recalibrator.load(tmp_path / "map.json")


def leftovers(folder):
    return [p.name for p in folder.iterdir() if p.name.startswith(".")]


def written(path, kind):
    if kind == "parquet":
        return pq.read_table(path)
    if kind == "feather":
        return pyarrow.feather.read_table(path)
    if kind == "jsonl":
        return pyarrow.json.read_json(path)
    if kind == "csv.gz":
        return pyarrow.csv.read_csv(pa.BufferReader(gzip.decompress(path.read_bytes())))
    delimiter = "\t" if kind == "tsv" else ","
    return pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter))


def write(path, kind, given):
    if kind == "parquet":
        pq.write_table(given, path, row_group_size=64)
    elif kind == "feather":
        pyarrow.feather.write_feather(given, path, chunksize=64)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in given.to_pylist()))
    else:
        delimiter = "\t" if kind == "tsv" else ","
        out = pa.BufferOutputStream()
        pyarrow.csv.write_csv(given, out, pyarrow.csv.WriteOptions(delimiter=delimiter))
        data = out.getvalue().to_pybytes()
        path.write_bytes(gzip.compress(data) if kind == "csv.gz" else data)


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "jsonl", "parquet", "feather"])
@pytest.mark.parametrize("suffix", ["", "_new", "_recalibrated"])
def test_every_kind_of_file_goes_through_in_chunks(kind, suffix, run, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "CHUNK", 33)
    source, target = tmp_path / f"new.{kind}", tmp_path / f"out.{kind}"
    write(source, kind, table(NEW))
    more = {"": ["--suffix", "", "--overwrite"], "_new": ["--suffix", "_new"], "_recalibrated": []}[suffix]
    done = run("recalibrate", "apply", tmp_path / "map.json", source, "-o", target, *more)
    assert done.status == 0, done.err
    assert f"200 rows, platt in p{suffix})" in done.err
    found, given = written(target, kind), written(source, kind)
    np.testing.assert_array_equal(found[f"p{suffix}"].to_numpy(), fitted.transform(C[NEW]))
    for name in ("id", "label", "note", *(["p"] if suffix else [])):
        assert found[name].equals(given[name])
    assert found.num_columns == given.num_columns + bool(suffix)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "feather"])
def test_a_column_that_is_there_is_replaced_only_when_asked(kind, run, fitted, tmp_path):
    once, again, target = (tmp_path / f"{name}.{kind}" for name in ("once", "again", "out"))
    write(once, kind, table(NEW))
    apply = ["recalibrate", "apply", tmp_path / "map.json"]
    assert run(*apply, once, "-o", again).status == 0
    given = written(again, kind)
    for more, column in (([], "p_recalibrated"), (["--suffix", ""], "p")):
        done = run(*apply, again, "-o", target, *more)
        assert done.status == 2
        assert f"already has a column '{column}': choose another --suffix, or replace" in done.err
        assert not target.exists()
        assert run(*apply, again, "-o", target, *more, "--overwrite").status == 0
        found = written(target, kind)
        assert found.column_names == given.column_names
        np.testing.assert_array_equal(found[column].to_numpy(), fitted.transform(C[NEW]))
        target.unlink()


def test_a_column_that_only_later_objects_have_is_not_replaced_either(run, fitted, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"p": 0.2}\n{"p": 0.3, "p_recalibrated": 0.4}\n')
    done = run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "new.jsonl", "-o", tmp_path / "out.jsonl")
    assert done.status == 2
    assert "already has a column 'p_recalibrated'" in done.err


def test_other_columns_of_a_csv_stay_as_they_were_written(run, fitted, tmp_path):
    (tmp_path / "new.csv").write_text('id;p;x\n007;0.40;1e-3\n008;0.5;"a;b"\n', newline="")
    run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    a, b = fitted.transform([0.4, 0.5]).tolist()
    assert (tmp_path / "out.csv").read_text() == f'id;p;x;p_recalibrated\n007;0.40;1e-3;{a!r}\n008;0.5;"a;b";{b!r}\n'


def test_fit_prints_what_the_library_says(run, tmp_path):
    pyarrow.csv.write_csv(table(slice(0, 500)), tmp_path / "all.csv")
    done = run("recalibrate", "fit", tmp_path / "all.csv", "-o", tmp_path / "map.json", "--json")
    expected = cal.recalibration_gain(Y, C)
    said = json.loads(done.out)
    assert said["sentence"] == expected.sentence
    assert [m["gain"] for m in said["maps"]] == pytest.approx([row.gain for row in expected.rows], rel=1e-9)
    kept = cal.Recalibrator.load(tmp_path / "map.json")
    assert kept.map_ == (expected.advice or "identity")
    plain = run("recalibrate", "fit", tmp_path / "all.csv", "-o", tmp_path / "map.json")
    assert expected.sentence in plain.out
    assert "if calibrated" in plain.out


def test_nothing_to_gain_writes_a_map_that_does_nothing(run, tmp_path):
    rng = np.random.default_rng(0)
    c = rng.random(600)
    y = (rng.random(600) < c).astype(int)
    pyarrow.csv.write_csv(pa.table({"y": y[:300], "p": c[:300]}), tmp_path / "valid.csv")
    pyarrow.csv.write_csv(pa.table({"y": y[300:], "p": c[300:]}), tmp_path / "new.csv")
    done = run("recalibrate", "fit", tmp_path / "valid.csv", "-o", tmp_path / "map.json")
    assert "No evidence that recalibration would help" in done.out
    assert "does not change the predictions" in done.err
    assert (
        run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "new.csv", "-o", tmp_path / "o.csv").status == 0
    )
    np.testing.assert_array_equal(pyarrow.csv.read_csv(tmp_path / "o.csv")["p_recalibrated"].to_numpy(), c[300:])


def several(rows, names):
    return pa.table({"y": MULTI_Y[rows], **{name: MULTI_P[rows, k] for k, name in enumerate(names)}})


def test_several_classes_by_name_number_and_prefix(run, tmp_path):
    pyarrow.csv.write_csv(several(slice(0, None, 2), ["p0", "p1", "p2", "p3"]), tmp_path / "valid.csv")
    assert (
        run("recalibrate", "fit", tmp_path / "valid.csv", "-o", tmp_path / "m.json", "--map", "temperature").status == 0
    )
    expected = cal.Recalibrator.load(tmp_path / "m.json").transform(MULTI_P[1::2])
    for names, more in (
        (["p0", "p1", "p2", "p3"], []),
        (["q_0", "q_1", "q_2", "q_3"], ["--prob", "q"]),
        (["a", "b", "c", "d"], ["--prob", "a,b,c", "--prob", "d"]),
    ):
        given = several(slice(1, None, 2), names)
        pyarrow.csv.write_csv(given.select(["y", *reversed(names)]), tmp_path / "new.csv")
        done = run("recalibrate", "apply", tmp_path / "m.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv", *more)
        assert done.status == 0, done.err
        found = pyarrow.csv.read_csv(tmp_path / "out.csv")
        np.testing.assert_array_equal(np.column_stack([found[f"{n}_recalibrated"].to_numpy() for n in names]), expected)


def test_a_map_applied_to_other_classes_is_a_sentence(run, fitted, tmp_path):
    pyarrow.csv.write_csv(several(slice(0, None, 2), ["p0", "p1", "p2", "p3"]), tmp_path / "valid.csv")
    run("recalibrate", "fit", tmp_path / "valid.csv", "-o", tmp_path / "m4.json", "--map", "temperature")
    three = several(slice(1, None, 2), ["p0", "p1", "p2", "p3"]).drop_columns("p3")
    pyarrow.csv.write_csv(three, tmp_path / "new.csv")
    done = run("recalibrate", "apply", tmp_path / "m4.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.status == 2
    assert "no column is called 'p3' (as when the map was fitted" in done.err
    done = run(
        "recalibrate", "apply", tmp_path / "m4.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv",
        "--prob", "p0,p1,p2",
    )  # fmt: skip
    assert "3 probability column(s) for a map of 4 classes (0, 1, 2, 3)" in done.err
    assert not (tmp_path / "out.csv").exists()


def test_logits_are_remembered(run, tmp_path):
    z = np.log(C / (1 - C))
    pyarrow.csv.write_csv(pa.table({"y": Y[FIT], "score": z[FIT]}), tmp_path / "valid.csv")
    pyarrow.csv.write_csv(pa.table({"score": z[NEW]}), tmp_path / "new.csv")
    fit = run("recalibrate", "fit", tmp_path / "valid.csv", "-o", tmp_path / "m.json", "--map", "platt", "--logits")
    assert fit.status == 0, fit.err
    run("recalibrate", "apply", tmp_path / "m.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    expected = cal.Recalibrator("platt").fit(C[FIT], Y[FIT]).transform(C[NEW])
    found = pyarrow.csv.read_csv(tmp_path / "out.csv")["score_recalibrated"].to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_units_stay_together(run, tmp_path):
    pyarrow.csv.write_csv(pa.table({"y": Y, "p": C, "patient": np.arange(500) // 5}), tmp_path / "v.csv")
    done = run("recalibrate", "fit", tmp_path / "v.csv", "-o", tmp_path / "m.json", "--unit", "patient", "--json")
    expected = cal.recalibration_gain(Y, C, units=np.arange(500) // 5)
    assert json.loads(done.out)["maps"][0]["se"] == pytest.approx(expected.rows[0].se, rel=1e-9)


def test_the_rows_of_the_fit_are_refused_unless_asked_for(run, fitted, tmp_path):
    again = ["recalibrate", "apply", tmp_path / "map.json", tmp_path / "valid.csv", "-o", tmp_path / "out.csv"]
    done = run(*again)
    assert done.status == 2
    assert "this map was fitted to the rows of" in done.err
    assert "nothing was written" in done.err
    assert not (tmp_path / "out.csv").exists()
    assert leftovers(tmp_path) == []
    assert run(*again, "--fitted-rows").status == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "p,x\n0.2,1\n85,1\n",
            "new.csv: 85 in row 2 (not counting a header) looks like a percentage: percentages are mixed",
        ),
        (
            "p,x\n0.2,1\n1,1\n85,1\n90,1\n",
            "85 in row 3 (not counting a header) looks like a percentage: percentages are mixed",
        ),
        ("p,x\n20,1\n85,1\n", "20 in row 1 (not counting a header) looks like a percentage: divide by 100"),
        ("p,x\n0.2,1\n-3,1\n", "-3 in row 2 (not counting a header) is not a probability"),
        ("p,x\n0.2,1\nhigh,1\n", "column 'p' holds 'high' in row 2 (not counting a header), which is not a number"),
        ("p,x\n0.2,1\n,1\n", "column 'p' has no number in row 2"),
        ("p,x\n0.2,1\n0.3\n", "row 2 has 1 values and the header has 2"),
        ("q,x\n0.2,1\n", "no column is called 'p' (as when the map was fitted"),
        ("", "is empty"),
    ],
)
def test_a_bad_file_is_one_sentence_and_leaves_nothing_behind(text, said, run, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "CHUNK", 2)
    (tmp_path / "new.csv").write_text(text)
    (tmp_path / "out.csv").write_text("as it was")
    done = run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.status == 2
    assert said in done.err
    assert (tmp_path / "out.csv").read_text() == "as it was"
    assert leftovers(tmp_path) == []


def test_which_score_means_two_percent_is_a_sentence(run, tmp_path):
    cal.Recalibrator.for_prevalence(0.02, source=0.2).save(tmp_path / "map.json")
    done = run("recalibrate", "inverse", tmp_path / "map.json", "0.02", "0.5")
    assert done.status == 0
    assert (
        done.out.splitlines()[0] == "A recalibrated probability below 2% corresponds to a stated probability below 20%."
    )
    assert run("recalibrate", "inverse", tmp_path / "map.json", "2").status == 2


def test_missing_probabilities_may_stay_missing(run, fitted, tmp_path):
    (tmp_path / "new.csv").write_text("p,x\n0.2,1\n,2\n0.9,3\n")
    more = ["-o", tmp_path / "out.csv", "--keep-missing"]
    assert run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "new.csv", *more).status == 0
    a, b = fitted.transform([0.2, 0.9]).tolist()
    assert (tmp_path / "out.csv").read_text() == f"p,x,p_recalibrated\n0.2,1,{a!r}\n,2,\n0.9,3,{b!r}\n"
    pq.write_table(pa.table({"p": [0.2, None, 0.9]}), tmp_path / "new.parquet")
    more = ["-o", tmp_path / "out.parquet", "--keep-missing"]
    assert run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "new.parquet", *more).status == 0
    assert pq.read_table(tmp_path / "out.parquet")["p_recalibrated"].to_pylist() == [a, None, b]


def test_wrong_files_and_names(run, fitted, tmp_path):
    (tmp_path / "new.csv").write_text("p\n0.2\n")
    apply = ["recalibrate", "apply", tmp_path / "map.json"]
    for args, said in (
        ([tmp_path / "none.csv", "-o", tmp_path / "out.csv"], "no such file"),
        ([tmp_path, "-o", tmp_path / "out.csv"], "is a folder"),
        ([tmp_path / "new.csv", "-o", tmp_path / "out.parquet"], "in the format of the input"),
        ([tmp_path / "new.csv", "-o", tmp_path / "out.xlsx"], "the extension must be one of"),
        ([tmp_path / "new.csv", "-o", tmp_path / "no" / "out.csv"], "does not exist"),
        ([tmp_path / "new.csv", "-o", tmp_path / "new.csv"], "is the input file"),
        ([tmp_path / "new.csv", "-o", tmp_path / "out.csv", "--prob", "q"], "no column is called 'q'"),
    ):
        done = run(*apply, *args)
        assert done.status == 2
        assert said in done.err
    fit = ["recalibrate", "fit", tmp_path / "valid.csv", "-o"]
    assert "name the file with .json" in run(*fit, tmp_path / "map.pkl").err
    assert "does not exist" in run(*fit, tmp_path / "no" / "map.json").err
    assert "not a map to recalibrate with" in run(*fit, tmp_path / "m.json", "--map", "magic").err
    given = json.loads((tmp_path / "map.json").read_text())
    given["version"] = 9
    (tmp_path / "other.json").write_text(json.dumps(given))
    done = run("recalibrate", "apply", tmp_path / "other.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "has version 9" in done.err
    assert not (tmp_path / "out.csv").exists()


def test_two_columns_of_the_fitted_name_are_refused(run, fitted, tmp_path):
    (tmp_path / "new.csv").write_text("p,label,p\n0.2,0,0.8\n0.7,1,0.3\n")
    done = run("recalibrate", "apply", tmp_path / "map.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.status == 2
    assert "two columns are called 'p': rename one of them" in done.err
    assert not (tmp_path / "out.csv").exists()


def test_a_detector_s_scores(run, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "CHUNK", 50)
    truth, results = DATA / "demo_ground_truth.json", DATA / "demo_results.json"
    done = run("recalibrate", "fit", truth, "--results", results, "-o", tmp_path / "m.json", "--map", "platt")
    assert done.status == 0, done.err
    kept = cal.Recalibrator.load(tmp_path / "m.json")
    expected = cal.Recalibrator("platt").fit(cal.match_detections(str(truth), str(results)))
    assert kept.to_dict()["numbers"] == expected.to_dict()["numbers"]
    given = json.loads(results.read_text())
    (tmp_path / "new.json").write_text(
        json.dumps([{**d, "score": round(d["score"] * 0.9, 5)} for d in given], indent=1)
    )
    apply = ["recalibrate", "apply", tmp_path / "m.json", tmp_path / "new.json", "-o", tmp_path / "out.json"]
    assert "already has a column 'score'" in run(*apply, "--suffix", "").err
    done = run(*apply, "--suffix", "", "--overwrite")
    assert done.status == 0, done.err
    found = json.loads((tmp_path / "out.json").read_text())
    assert [d["bbox"] for d in found] == [d["bbox"] for d in given]
    scores = np.array([round(d["score"] * 0.9, 5) for d in given])
    np.testing.assert_array_equal([d["score"] for d in found], kept.transform(scores))
    (tmp_path / "cut.json").write_text((tmp_path / "new.json").read_text()[:5000])
    done = run("recalibrate", "apply", tmp_path / "m.json", tmp_path / "cut.json", "-o", tmp_path / "o.json")
    assert "it was cut off or is damaged" in done.err
    assert not (tmp_path / "o.json").exists()


def test_damaged_files_are_a_sentence(run, fitted, tmp_path):
    whole = gzip.compress(b"p\n0.2\n0.3\n")
    for name, data, said in (
        ("a.csv.gz", whole[:-9], "cannot be read"),
        ("b.csv.gz", b"p\n0.2\n", "cannot be read"),
        ("c.csv", b"p,x\n0.2,\xe9\n", "is not UTF-8 text"),
        ("d.parquet", b"PAR1", "d.parquet"),
        ("e.jsonl", b'{"p": 0.2}\n{"p": ', "line 2 is not JSON"),
        ("f.jsonl", b"[0.2]\n", "not an object"),
        ("g.json", b'[{"p": 0.2}, 3]', "not an object"),
    ):
        source, target = tmp_path / name, tmp_path / f"out_{name}"
        source.write_bytes(data)
        done = run("recalibrate", "apply", tmp_path / "map.json", source, "-o", target)
        assert done.status == 2, name
        assert said in done.err, name
        assert not target.exists()
    done = run("recalibrate", "fit", tmp_path / "gt.json", "--results", tmp_path / "r.json", "-o", tmp_path / "m.json")
    assert done.status == 2
    assert "does not exist" in done.err
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_file(kind, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "CHUNK", 250)

    def peak(n):
        rng = np.random.default_rng(0)
        source = tmp_path / f"{n}.{kind}"
        write(source, kind, pa.table({"p": rng.random(n), "note": ["some words of text"] * n}))
        job = stream.Job(source, tmp_path / f"o.{kind}", lambda names: ["p"], lambda p, i: fitted.transform(p))
        stream.run(job)
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        assert stream.run(job) == n
        traced = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return traced + pa.total_allocated_bytes() - before

    assert peak(amount(8_000, 40_000)) < 1.5 * peak(amount(2_000, 4_000))
