"""Scanning from the command line: large files, which are scanned automatically, saved states, and invalid rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.base.errors import RefusedError
from calibrary.cli import large as reading
from calibrary.cli.main import app
from calibrary.tables.sources import InputError


def rows(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < p**0.7 / (p**0.7 + (1 - p) ** 0.7)).astype(np.int8), p


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    y, p = rows()
    made = tmp_path / "preds"
    made.mkdir()
    for i in range(2):
        day = pa.array([f"2026-11-{14 + k % 2}" for k in range(len(y[i::2]))])
        pq.write_table(pa.table({"y": y[i::2], "p": p[i::2], "day": day}), made / f"part-{i}.parquet")
    return made


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every file as too large to be loaded into memory."""
    monkeypatch.setattr(reading, "MOST_ROWS", 100)
    monkeypatch.setattr(reading, "MOST_CSV_BYTES", 100)


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_small_files_are_read_whole(folder: Path) -> None:
    assert reading.scanned(str(folder), label="y", prob=["p"]) is None
    assert reading.scanned("-") is None
    assert reading.scanned([str(folder), str(folder)]) is None


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_large_files_are_scanned_by_themselves(tmp_path: Path, large: None, kind: str) -> None:
    y, p = rows()
    table, path = pa.table({"y": y, "p": p}), tmp_path / f"preds.{kind}"
    if kind == "csv":
        pyarrow.csv.write_csv(table, path)
    elif kind == "arrow":
        pyarrow.feather.write_feather(table, path)
    else:
        pq.write_table(table, path)
    found = reading.scanned(str(path))  # the columns are guessed, as in any file
    assert found is not None
    assert found.predictions().n_predictions == len(y)
    assert "probability columns guessed: p" in found.notes
    text = run("metric", "ece", path, "-q")
    assert float(text.split()[1]) == pytest.approx(cal.compute("ece", y, p), abs=1e-10)


def test_ways_of_reading_that_need_all_rows_read_whole(folder: Path, large: None) -> None:
    assert reading.scanned(str(folder), label="y", prob=["p"], logits=True) is None


def test_a_report_of_a_large_folder(folder: Path, tmp_path: Path, large: None) -> None:
    page = tmp_path / "page.html"
    options = ("--metrics", "ece,calibration_loss", "--resamples", 19, "-o", page)
    text = run("report", folder, "--label", "y", "--prob", "p", *options)
    assert "Not calibrated" in text
    assert "counted in a histogram" in text
    assert "cannot be computed from a state" in page.read_text()  # what is left out is named with its reason


def test_a_bad_row_is_named_with_file_and_row(folder: Path, large: None) -> None:
    y, p = rows(500, 1)
    p[[77, 200]] = 1.5, np.nan
    pq.write_table(pa.table({"y": y, "p": p, "day": ["2026-11-14"] * 500}), folder / "part-2.parquet")
    arguments = ("metric", "ece", folder, "--label", "y", "--prob", "p")
    with pytest.raises(InputError, match=r"\np .* values outside \[0, 1\] .* part-2\.parquet, row 77 .*--drop-invalid"):
        run(*arguments)
    with pytest.raises(InputError, match="use --drop-invalid instead of --drop-missing"):
        run(*arguments, "--drop-missing")
    assert "2 rows left out: probability missing or outside [0, 1]" in run(*arguments, "--drop-invalid")


def test_drop_invalid_of_a_small_file(tmp_path: Path) -> None:
    y, p = rows(500, 1)
    bad = p.copy()
    bad[[77, 200]] = 1.5, np.nan
    pq.write_table(pa.table({"y": y, "p": bad}), tmp_path / "p.parquet")
    text = run("metric", "ece", tmp_path / "p.parquet", "--drop-invalid")
    assert "2 rows that are invalid were left out" in text
    kept = np.delete(np.arange(500), [77, 200])
    assert f"{cal.compute('ece', y[kept], p[kept]):.10g}" in text


def test_scan_writes_a_state_that_is_read_like_predictions(folder: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.parquet"
    assert "3,000 predictions" in run(
        "scale", "scan", folder, "--label", "y", "--prob", "p", "--by", "day", "-o", state
    )
    y, p = rows()
    saved = cal.scale.State.load(state)
    assert saved.regrouped(day=None).digest == cal.scale.State(1200).update(y, p).digest
    assert float(run("metric", "ece", state, "-q").split()[1]) == pytest.approx(cal.compute("ece", y, p), abs=1e-10)
    both = tmp_path / "both.parquet"
    run("scale", "scan", state, folder, "--label", "y", "--prob", "p", "--by", "day", "-o", both)
    assert cal.scale.State.load(both).digest == (saved + saved).digest
    found = reading.scanned(str(state), group="day")
    assert found is not None
    assert sorted(set(found.group or [])) == ["2026-11-14", "2026-11-15"]
    over_time = run("report", state, "--time", "day", "--metrics", "ece", "--resamples", 39)
    assert "Over time: Periods: significantly miscalibrated in 2 of 2 periods (by day)" in " ".join(over_time.split())
    with pytest.raises(InputError, match="was not split by 'site': scan again with --by site"):
        reading.scanned(str(state), group="site")


def test_a_state_of_several_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 400)
    y = np.array([rng.choice(3, p=row) for row in p])
    pq.write_table(pa.table({"y": y, "p0": p[:, 0], "p1": p[:, 1], "p2": p[:, 2]}), tmp_path / "p.parquet")
    state = tmp_path / "state.parquet"
    run("scale", "scan", tmp_path / "p.parquet", "--label", "y", "--prob", "p", "-o", state)
    assert float(run("metric", "ece", state, "-q").split()[1]) == pytest.approx(cal.compute("ece", y, p), abs=1e-10)
    run("scale", "scan", tmp_path / "p.parquet", "--label", "y", "--prob", "p", "--top-label", "-o", state)
    assert cal.scale.State.load(state).lens == "top-label"


def commands_that_read_files() -> list[str]:
    """Every command with options for the columns of labels and probabilities, by its words."""
    import click
    import typer.main

    found = []

    def walk(command: Any, words: tuple[str, ...]) -> None:
        if isinstance(command, click.Group) or hasattr(command, "commands"):
            for name, inner in command.commands.items():
                walk(inner, (*words, name))
        elif {"--label", "--prob"} <= {name for option in command.params for name in option.opts}:
            found.append(" ".join(words))

    walk(typer.main.get_command(app), ())
    return found


def test_every_command_that_reads_labels_takes_their_names() -> None:
    found = commands_that_read_files()
    assert {"report", "metric", "compare", "plot", "plan", "study mine", "recalibrate fit"} <= set(found)
    assert {"scale scan", "scale sql"} <= set(found)
    for words in found:
        assert "--labels" in run(*words.split(), "--help").replace("\n", " "), words


def test_labels_name_the_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    y, p = rows(300)
    table = pa.table({"y": np.where(y == 1, "ill", "well"), "p": p})
    pq.write_table(table, tmp_path / "two.parquet")
    words = ("metric", "bs", tmp_path / "two.parquet", "--label", "y", "--prob", "p", "-q", "--labels")
    for names, event in (("well,ill", y), ("ill, well", 1 - y)):
        true = cal.compute("bs", event, p)
        assert float(run(*words, names).split()[1]) == pytest.approx(true, rel=1e-9)
        with monkeypatch.context() as patch:  # as if the file were too large for memory
            patch.setattr(reading, "_large", lambda path: "parquet")
            assert float(run(*words, names).split()[1]) == pytest.approx(true, rel=1e-6)
    for names, said in (
        ("ill", "name each class once"),
        ("ill,ill", "name each class once"),
        ("well,sick", "holds 'ill', which --labels does not name: 'well', 'sick'"),
        ("a,b,c", "names 3 classes .* and there is one probability column, of two classes"),
    ):
        with pytest.raises(InputError, match=said):
            run(*words, names)
    with pytest.raises(InputError, match="--positive and --labels both name the classes"):
        run(*words, "well,ill", "--positive", "ill")
    prob = np.random.default_rng(0).dirichlet(np.ones(3), 90)
    label = np.random.default_rng(1).integers(0, 3, 90)
    columns = {"y": np.array(["x", "z", "m"])[label], **{f"q{k}": prob[:, k] for k in range(3)}}
    pq.write_table(pa.table(columns), tmp_path / "three.parquet")
    words = ("metric", "bs", tmp_path / "three.parquet", "--label", "y", "--prob", "q", "-q", "--labels")
    assert float(run(*words, "x,z,m").split()[1]) == pytest.approx(cal.compute("bs", label, prob), rel=1e-9)
    with pytest.raises(InputError, match="there are 3 probability columns"):
        run(*words, "x,z")


def test_a_file_that_is_scanned_twice_is_refused(folder: Path, tmp_path: Path) -> None:
    part, state = folder / "part-0.parquet", tmp_path / "state.parquet"
    words = ("--label", "y", "--prob", "p", "-o", state)
    for files in ((part, part), (part, f"{folder}/*.parquet"), (folder, part)):
        with pytest.raises(ValueError, match="is listed twice, and its rows would count twice"):
            run("scale", "scan", *files, *words)
    run("scale", "scan", part, folder / "part-1.parquet", *words)
    with pytest.raises(RefusedError, match="is listed twice"):
        run("scale", "scan", state, state, "-o", tmp_path / "more.parquet")


def test_what_a_saved_state_cannot_use_is_refused_and_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("y,p\n" + "1,0.2\n2,0.7\n" * 20)
    state = tmp_path / "s.parquet"
    run("scale", "scan", tmp_path / "p.csv", "--positive", "2", "-o", state)
    assert float(run("metric", "bs", state, "-q").split()[1]) == pytest.approx((0.2**2 + 0.3**2) / 2)
    for words, sentence in (
        (("metric", "bs", state, "--positive", "1", "--percent"), "--positive and --percent are not used with a saved"),
        (("report", state, "--model", "p"), "--model is not used with a saved state"),
        (("report", state, "--target", tmp_path / "p.csv"), "must be a table of rows, not a state or log"),
        (("validate", state, "--label", "y"), "is a saved state, and validate needs the rows"),
        (("validate", tmp_path / "p.csv", "--label", "y", "--weight", "p"), "no column is left as a predictor"),
        (("study", "mine", state), "and study mine needs rows"),
        (("plan", "ece", state), "counted in a histogram .* and plan needs rows"),
        (("recalibrate", "fit", state, "-o", tmp_path / "m.json"), "and recalibrate fit needs rows"),
    ):
        with pytest.raises(InputError, match=sentence):
            run(*words)


def test_scan_refuses_invalid_input(folder: Path, tmp_path: Path) -> None:
    for words, sentence in (
        ((folder, "-o", tmp_path / "s.csv"), "a state is saved as Parquet"),
        ((folder, "-o", tmp_path / "no" / "s.parquet"), "does not exist"),
        ((tmp_path / "none", "-o", tmp_path / "s.parquet"), "no such file"),
    ):
        with pytest.raises(ValueError, match=sentence):
            run("scale", "scan", *words)


def test_the_result_of_a_query_becomes_a_state(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    names = pa.table(
        {"Y": ["no", "yes", "yes", "no", None], "p": [0.2, 0.7, 0.9, 0.4, 0.5], "day": ["a", "b", None, "a", "a"]}
    )
    options = ("--label", "Y", "--prob", "p", "--by", "day", "--labels", "no,yes")
    text = run("scale", "sql", "--table", "names", *options, "--dialect", "duckdb")
    db = duckdb.connect()
    db.register("names", names)
    result = db.sql(text).to_arrow_table()
    result = result.rename_columns([name.upper() for name in result.column_names])
    for name in ("r.csv", "r.parquet"):
        db.register("result", result)
        db.execute(f"COPY result TO '{tmp_path / name}'")
        with pytest.raises(InputError, match=r"1 rows have no probability.*pass --drop-invalid"):
            run("scale", "state", tmp_path / name, "--by", "day", "--labels", "no,yes", "-o", tmp_path / "s.parquet")
        said = run(
            "scale",
            "state",
            tmp_path / name,
            "--by",
            "day",
            "--labels",
            "no,yes",
            "--drop-invalid",
            "-o",
            tmp_path / "s.parquet",
        )
        assert "4 predictions" in said
        expected = cal.scale.State(by="day", labels=["no", "yes"]).update(
            ["no", "yes", "yes", "no"], [0.2, 0.7, 0.9, 0.4], by={"day": ["a", "b", None, "a"]}
        )
        assert cal.scale.State.load(tmp_path / "s.parquet") == expected
    pq.write_table(names.slice(0, 4), tmp_path / "rows-1.parquet")
    run("scale", "scan", tmp_path / "rows-*.parquet", *options, "-o", tmp_path / "t.parquet")
    assert cal.scale.State.load(tmp_path / "t.parquet") == expected
    with pytest.raises(RefusedError, match="dialect='oracle'"):
        run("scale", "sql", "--table", "t", "--dialect", "oracle")
    with pytest.raises(InputError, match="is not a table"):
        run("scale", "state", tmp_path / "nowhere.csv", "-o", tmp_path / "s.parquet")


def test_sql_is_the_text_of_the_library() -> None:
    text = run("scale", "sql", "--table", "t", "--label", "y", "--prob", "p", "--by", "day")
    assert text.strip() == cal.scale.sql("t", label="y", prob="p", by=["day"]).strip()
