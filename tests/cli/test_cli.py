"""The command line: the main commands, exit statuses, and one sentence for each mistake."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import stat
import subprocess
import sys
import threading
import warnings
from contextlib import redirect_stderr, redirect_stdout
from importlib.resources import files

import numpy as np
import pytest

import calibrary as cal

pytestmark = pytest.mark.usefixtures("outlined")

DATA = files("calibrary") / "datasets"
BINARY = [str(DATA / "breast_cancer.csv"), "--label", "diagnosis", "--positive", "malignant"]
FAST = ["--resamples", "39", "--metrics", "ece,bs"]


def run(*args, stdin=None):
    """Run the command line in this process, with its exit status and output."""
    from calibrary.cli.main import main

    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        patch.setattr("sys.argv", ["calibrary", *map(str, args)])
        if stdin is not None:
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            main()
    return subprocess.CompletedProcess(args, ended.value.code or 0, out.getvalue(), err.getvalue())


def call(*args):
    done = run(*args)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def four(tmp_path):
    """A file of four predictions."""
    path = tmp_path / "four.csv"
    path.write_text("y,p\n1,0.9\n0,0.2\n1,0.7\n0,0.4\n")
    return path


def test_report_prints_the_answer_and_writes_every_form(tmp_path):
    outputs = [tmp_path / f"r.{e}" for e in ("html", "md", "json", "csv")]
    done = run("report", *BINARY, "--prob", "naive_bayes", *FAST, *(a for o in outputs for a in ("-o", str(o))))
    assert done.returncode == 0, done.stderr
    assert "Not calibrated" in done.stdout.replace("\n", " ")
    assert all(o.stat().st_size > 300 for o in outputs)
    y, p, _ = cal.datasets.breast_cancer()
    values = {m["id"]: m["value"] for m in json.loads(outputs[2].read_text())["evaluation"]["metrics"]}
    assert values["ece"] == cal.compute("ece", y, p)


def test_several_models_are_compared(tmp_path):
    out = tmp_path / "r.json"
    done = run("report", *BINARY, "--model", "naive_bayes", "--model", "logistic", *FAST, "-o", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert len(found["models"]) == 2
    assert {c["metric"] for c in found["comparisons"]} == {"ece", "bs"}


def test_groups_are_reported():
    done = run("report", *BINARY, "--prob", "logistic", *FAST, "--group", "size", "-q")
    assert done.returncode == 0, done.stderr


def test_one_metric_from_standard_input():
    text = "y,p\n1,0.9\n0,0.2\n1,0.7\n0,0.4\n"
    done = run("metric", "brier-score", "-", "--quiet", stdin=text)
    assert done.stdout.strip() == "bs 0.075"


def test_compare_lists_every_pair():
    done = run("compare", *BINARY, "--prob", "naive_bayes", "--prob", "logistic", "--resamples", "19")
    assert done.returncode == 0, done.stderr
    assert "naive_bayes" in done.stdout
    assert "bs" in done.stdout


def test_compare_draws_whole_units(tmp_path):
    """Rows of one patient are drawn together, in columns of one file and in two files alike."""
    rng = np.random.default_rng(4)
    unit = np.repeat(np.arange(40), 5)
    one = np.clip(rng.random(40)[unit] + 0.02 * rng.standard_normal(200), 0.01, 0.99)
    y, two = (rng.random(40)[unit] < one).astype(int), np.round(0.5 + 0.6 * (one - 0.5), 6)
    for name, columns in {"both": (one, two), "one": (one,), "two": (two,)}.items():
        head = "label,patient," + ",".join(["one", "two"] if name == "both" else ["p"])
        np.savetxt(
            tmp_path / f"{name}.csv", np.column_stack([y, unit, *columns]), "%.17g", ",", header=head, comments=""
        )
    asked = ["--unit", "patient", "--metrics", "bs", "--resamples", "99", "-q"]
    columns = run("compare", tmp_path / "both.csv", "--prob", "one", "--prob", "two", *asked)
    assert columns.returncode == 0, columns.stderr
    in_files = run("compare", tmp_path / "one.csv", tmp_path / "two.csv", *asked)
    assert in_files.returncode == 0, in_files.stderr
    by_unit, by_row = (cal.compare("bs", y, one, two, n_resamples=99, rng=0, units=units) for units in (unit, None))
    assert by_unit.high - by_unit.low > 1.2 * (by_row.high - by_row.low)
    ends = sorted(f"{abs(end):.3f}" for end in (by_unit.low, by_unit.high))
    for done in (columns, in_files):
        assert all(end in done.stdout for end in ends), (ends, done.stdout)
    missing = run("compare", tmp_path / "both.csv", "--prob", "one", "--prob", "two", "--unit", "ward")
    assert (missing.returncode, "ward" in missing.stderr) == (2, True)


@pytest.mark.parametrize("kind", ["reliability", "cumulative"])
def test_plot_writes_a_figure(tmp_path, kind):
    out = tmp_path / "f.svg"
    done = run("plot", *BINARY, "--prob", "logistic", "--kind", kind, "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "<svg" in out.read_text()


def test_detection_report_and_plot(tmp_path):
    pair = [str(DATA / "demo_ground_truth.json"), str(DATA / "demo_results.json")]
    out = tmp_path / "r.json"
    done = run("detection", "report", *pair, "--resamples", "19", "--metrics", "d_ece,qgc", "-o", str(out))
    assert done.returncode == 0, done.stderr
    values = {m["id"]: m["value"] for m in json.loads(out.read_text())["evaluation"]["metrics"]}
    assert values["d_ece"] == cal.compute("d_ece", *pair)
    figure = tmp_path / "f.png"
    assert run("detection", "plot", *pair, "-o", str(figure)).returncode == 0
    assert figure.stat().st_size > 1000


def test_answers_of_a_language_model_are_reported_by_their_own_words(tmp_path):
    out = tmp_path / "r.json"
    wanted = "ece,rms_calibration_error,smece,bs,auroc,aurc"
    columns = ("--confidence", "confidence", "--correct", "correct")
    done = run(
        "report", str(DATA / "answers.jsonl"), *columns, "--metrics", wanted, "--resamples", "19", "-o", str(out)
    )
    assert done.returncode == 0, done.stderr
    values = {m["id"]: m["value"] for m in json.loads(out.read_text())["evaluation"]["metrics"]}
    answers = cal.datasets.answers()
    for id in wanted.split(","):
        assert values[id] == cal.compute(id, answers.y_true, answers.y_prob)


def test_list_explain_recommend():
    listed = run("explain", "list", "--family", "cumulative")
    assert "ecce_mad" in listed.stdout
    assert "ecce_r" in listed.stdout
    told = run("explain", "KS")
    assert "\nWhen to use\n" in told.stdout
    assert "erratum" not in told.stdout
    assert "\nErrata\nerratum, " in run("explain", "KS", "--all").stdout
    advised = run("explain", "recommend", "--task", "binary", "--goal", "compare")
    assert "1. bs" in advised.stdout


def test_the_cache_is_named_and_cleared(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "calibrary" / "old").mkdir(parents=True)
    (tmp_path / "calibrary" / "old" / "loop.nbi").write_bytes(b"x" * 1000)
    said = run("cache").stdout
    assert str(tmp_path) in said
    assert "1 file" in said
    assert "0 files" in run("cache", "--clear").stdout
    assert not (tmp_path / "calibrary").exists()


def test_provenance_names_the_columns_and_the_command(tmp_path, monkeypatch):
    table = tmp_path / "p.csv"
    rng = np.random.default_rng(0)
    c = rng.random(120).round(4)
    lines = [f"{int(u < x)},{x},{i},s{i % 30}" for i, (u, x) in enumerate(zip(rng.random(120), c, strict=True))]
    table.write_text("sick,risk,day,patient\n" + "\n".join(lines))
    saved = tmp_path / "r.json"
    typed = ["report", str(table), "--label", "sick", "--prob", "risk", "--time", "day", "--unit", "patient"]
    for called in ("/usr/bin/calibrary", "/lib/calibrary/__main__.py"):
        monkeypatch.setattr("sys.argv", [called, *typed])
        from typer.testing import CliRunner

        from calibrary.cli.main import app

        done = CliRunner().invoke(app, [*typed, "-q", "--resamples", "19", "--metrics", "ece", "-o", str(saved)])
        assert done.exit_code == 0, done.output
        known = next(s for s in json.loads(saved.read_text())["sections"] if s["key"] == "provenance")["data"]
        assert known["columns"] == {"label": "sick", "probability": "risk", "time": "day", "unit": "patient"}
        assert known["command"] == " ".join(["calibrary", *typed])
        assert (known["time"], known["units"]) == ("day", "patient")


def test_many_models_are_one_table_in_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    c = rng.random(300)
    y = (rng.random(300) < c).astype(int)
    models = {f"m{i}": np.clip(0.5 + (1 - i / 6) * (c - 0.5), 0, 1).round(5) for i in range(6)}
    rows = zip(y, *models.values(), strict=True)
    table = tmp_path / "p.csv"
    table.write_text(",".join(["label", *models]) + "\n" + "\n".join(",".join(map(str, row)) for row in rows))
    asked = [a for m in models for a in ("--model", m)]
    done = run("report", table, *asked, "--metrics", "ece,bs", "--resamples", "39")
    lines = done.stdout.splitlines()
    assert len(lines) < 25  # the answer, and a line or two for each model
    assert next(line for line in lines if line.startswith("m0")).split()[1:3] == ["Cannot", "tell"]
    assert all("…" not in line for line in lines)
    assert next(line for line in lines if line.startswith("m5")).split()[1:3] == ["Not", "calibrated"]
    assert f"{cal.expected_calibration_error(y, models['m5']):.3f}" in done.stdout
    every = run("report", table, *asked, "--metrics", "ece,bs", "--resamples", "39", "--all")
    assert len(every.stdout.splitlines()) > 60


def test_numbers_are_not_broken_at_80_columns(monkeypatch):
    from types import SimpleNamespace

    from rich.console import Console

    from calibrary.cli import report
    from calibrary.reporting.short import KeyNumber

    console = Console(width=80, file=io.StringIO())
    monkeypatch.setattr(report, "out", console)
    small = KeyNumber(
        -1.54e-5, -2.51e-5, 1.26e-5, expected_by_chance=-1.11e-5, id="ecd", name="difference",
        verdict="not significant (p = 0.19), although its interval excludes 0",
    )  # fmt: skip
    console.print(report._short_table(SimpleNamespace(short_list=[small], evaluation=None)))
    assert console.file.getvalue().splitlines()[1].split()[:6] == [
        "difference", "-0.000015", "-0.000025", "to", "0.000013", "-0.000011",
    ]  # fmt: skip


def test_the_list_leaves_columns_out_rather_than_break_names():
    from rich.console import Console

    from calibrary.cli.catalogue import listing

    for width in (80, 100, 120, 200):
        console = Console(width=width, file=io.StringIO(), emoji=False)
        console.print(listing(cal.catalogue.values(), width))
        text = console.file.getvalue()
        assert "…" not in text
        words = " ".join(text.split())
        for entry in cal.catalogue.values():
            assert f" {entry.id} " in words
            assert all(word in words for word in entry.name.split())  # wrapped between words, if at all
        assert len(text.splitlines()) < 1.2 * len(cal.catalogue)
    piped = run("explain", "list").stdout.splitlines()
    assert len(piped) == len(cal.catalogue) + 1


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["report", "nowhere.csv"], "no such file"),
        (["report", str(DATA / "digits.csv"), "--label", "digits"], "did you mean 'digit'"),
        (["report", *BINARY, "--prob", "naive_bayes", "--lens", "toplabl"], "did you mean"),
        (["report", *BINARY, "--prob", "naive_bayes", "--fail-if", "ece=3"], "cannot parse"),
        (["report", *BINARY, "--prob", "naive_bayes", "-o", "r.doc"], "the extension chooses the format"),
        (["metric", "brier_scor", *BINARY, "--prob", "logistic"], "did you mean"),
        (["explain", "nonsense"], "no metric is called"),
        (["plot", *BINARY, "--prob", "logistic", "--kind", "pie", "-o", "x.svg"], "is not a figure"),
        (["explain", "list", "--family", "bins"], "choose from"),
        (["explain", "recommend", "--goal", "win"], "goal='win'"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(args, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*args)
    assert done.returncode == 2
    assert sentence in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_teaches():
    assert "calibrary report" in run("--help").stdout
    assert "Examples" in run("report", "--help").stdout


# -- the door: every foreseeable failure is one sentence and status 2 --------------------------------


def refused(done, sentence):
    """Check that the command ends with status 2 and one sentence that contains this text."""
    status, _, said = done
    assert status == 2, said
    assert sentence in said.replace("\n", " ")
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1


def test_files_that_cannot_be_read_are_one_sentence(tmp_path, four):
    packed = gzip.compress(four.read_bytes() * 100)
    files = {
        "cut.csv.gz": (packed[: len(packed) // 2], "is incomplete (the compressed data end too early)"),
        "bad.csv.gz": (packed[:20] + b"\0" * 20 + packed[40:], "is damaged"),
        "empty.csv": (b"", "is empty"),
        "deep.jsonl": (b"[" * 100_000, "nested too deeply"),
        "deep2.jsonl": (b'{"y": ' * 50_000, "nested too deeply"),
        "no.npz": (b"hello", "is not an NPZ file"),
        "no.xlsx": (b"hello", "is not an Excel file"),
        "no.parquet": (b"PAR1 but not really", "cannot be read as Parquet"),
        "latin.csv": ("y,p\u00e9\n1,0.5\n".encode("latin-1"), "is not UTF-8 text"),
        "wide.csv": (b"\xff\xfe" + "y,p\n1,0.5\n".encode("utf-16-le")[:-1], "begins as UTF-16 text and is not"),
        "twice.csv": (b"y,p,p\n1,0.5,0.5\n", "two columns of"),
        "one.npy": (b"\x93NUMPY", "one array without a name"),
        "p.csv.bz2": (b"BZh9", "unpack it first"),
        "p.zip": (b"PK\3\4", "unpack it first"),
        "p.pkl": (b"\x80\x04", "is a pickle"),
        "p.dta": (b"<stata_dta>", "export CSV or Parquet"),
    }
    for name, (content, sentence) in files.items():
        (tmp_path / name).write_bytes(content)
        refused(call("metric", "bs", tmp_path / name), sentence)
    refused(call("metric", "bs", "x" * 5000), "name too long")
    refused(call("detection", "report", tmp_path / "gt.json", tmp_path / "r.json"), "gt.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="not as root: root may read everything")
def test_a_file_that_may_not_be_read_is_one_sentence(four):
    four.chmod(0)
    refused(call("metric", "bs", four), "permission denied")


def test_a_small_file_that_unpacks_to_very_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrary.tables.sources.MOST_BYTES", 10_000)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"y,p\n" + b"0,0.1\n" * 10_000))
    refused(call("metric", "bs", tmp_path / "bomb.csv.gz"), "unpacks to more than")
    np.savez_compressed(tmp_path / "bomb.npz", y=np.zeros(10_000), p=np.zeros(10_000))
    refused(call("metric", "bs", tmp_path / "bomb.npz"), "unpacks to more than")
    np.savez(tmp_path / "wide.npz", p=np.zeros((1, 30_000)))
    monkeypatch.setattr("calibrary.tables.sources.MOST_BYTES", 1 << 30)
    refused(call("metric", "bs", tmp_path / "wide.npz"), "has 30,000 columns")


def test_pipes_are_read(tmp_path, four):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    sender = threading.Thread(target=lambda: fifo.write_bytes(four.read_bytes()))
    sender.start()
    assert call("metric", "bs", fifo, "-q")[:2] == (0, "bs 0.075\n")
    sender.join()


def test_an_unwritable_output_is_refused_before_the_computation(tmp_path, four, monkeypatch):
    monkeypatch.setattr(cal, "report", lambda *a, **k: pytest.fail("computed"))
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").write_text("")
    for place, sentence in (
        (tmp_path / "folder.html", "is a folder: name a file"),
        (tmp_path / "nowhere" / "r.html", "does not exist"),
        (tmp_path / ("x" * 300 + ".html"), "file name too long"),
        ("/proc/r.html", "cannot be written"),
        (tmp_path / "r.doc", "the extension chooses the format"),
    ):
        refused(call("report", four, "-o", place), sentence)
    refused(call("demo", "-o", tmp_path / "file"), "is a file: name a folder")
    refused(call("plot", four, "-o", "/proc/f.svg"), "cannot be written")
    refused(call("recalibrate", "fit", four, "-o", "/proc/map.json"), "cannot be written")


def test_outputs_follow_the_umask_keep_their_rights_and_write_through_links(tmp_path):
    from calibrary.base.files import write_atomically

    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o600)
    (tmp_path / "link").symlink_to("new")
    write_atomically(tmp_path / "link", b"2")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").read_bytes() == b"2"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "new"]


def test_a_full_disk_leaves_the_old_file_as_it_was(tmp_path):
    from calibrary.base.files import write_atomically

    (tmp_path / "r.json").write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(ValueError, match=r"r\.json cannot be written: file too large"):
            write_atomically(tmp_path / "r.json", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert (tmp_path / "r.json").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_closed_pipe_and_a_full_output_are_status_two(four):
    start = [sys.executable, "-m", "calibrary"]
    with open("/dev/full", "w") as full:
        done = subprocess.run([*start, "metric", "bs", four, "-q"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "calibrary: no space left on device\n")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*start, "explain", "list"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (2, "")


def test_a_terminal_shows_the_name_with_the_id_and_a_pipe_the_id(four):
    screen, inside = os.openpty()
    start = [sys.executable, "-m", "calibrary", "metric", "bs", four, "-q"]
    subprocess.run(start, stdout=inside, stderr=subprocess.PIPE, check=True)
    os.close(inside)
    shown = os.read(screen, 1000).decode()
    os.close(screen)
    assert "Brier score (bs) 0.075" in shown
    forced = {**os.environ, "FORCE_COLOR": "1"}
    piped = subprocess.run(start, capture_output=True, text=True, check=True, env=forced)
    assert piped.stdout == "bs 0.075\n"


def test_a_closed_standard_input_is_one_sentence(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    refused(call("metric", "bs", "-"), "standard input is closed")


def test_a_fault_of_ours_keeps_its_traceback_and_is_not_status_one(four, monkeypatch):
    monkeypatch.setattr(cal, "evaluate", lambda *a, **k: 1 / 0)
    status, _, said = call("metric", "bs", four, "-q")
    assert status == 2
    assert "ZeroDivisionError" in said
    assert "please report it" in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--fail-if", "piece>0.1"], "piece"),
        (["--fail-if", "ece.foo>0.1"], "foo"),
        (["--fail-if", "cis.slop<0.8"], "slop"),
        (["--fail-if", "ece>1e"], "--fail-if"),
        (["--fail-if", "nonsense>1"], "nonsense"),
        (["--primary", "piece"], "piece"),
        (["--resamples", "-5"], "resamples"),
        (["--seed", "-1"], "seed"),
        (["--bins", "0"], "--bins"),
        (["--model", "p", "--model", "p"], "twice"),
        (["--prob", "p,p"], "twice"),
        (["--weight-type", "copies"], "--weight-type"),
        (["--logits", "--percent"], "exclude each other"),
        (["--nonsense"], "--nonsense is not an option of calibrary report"),
    ],
)
def test_an_invalid_option_gives_one_sentence(four, options, sentence):
    refused(call("report", four, "-q", *FAST[:2], *([] if "--metrics" in options else FAST[2:]), *options), sentence)


def test_names_cannot_control_the_terminal(tmp_path):
    path = tmp_path / "f.csv"
    path.write_bytes(b"y,\x1b]0;owned\x07p,a\\[/red],:smile:\n1,0.9,0.9,0.9\n")
    for options in ((), ("--label", "a\\[/red]"), ("--label", "[bold]"), ("--prob", ":smile:", "--label", "no")):
        status, shown, said = call("metric", "bs", path, *options)
        assert status == 2
        assert "\x1b]" not in shown + said
        assert "\x07" not in shown + said
    assert ":smile:" in said
    refused(call("metric", "bs", os.fsdecode(b"a\xffb.csv")), "no such file")
    refused(call("metric", "bs", "[/red].csv"), "[/red].csv")


def test_a_warning_is_printed_as_one_sentence(monkeypatch, capsys):
    from calibrary.base.errors import warn
    from calibrary.cli import _warn_in_sentences

    monkeypatch.setattr("warnings.formatwarning", warnings.formatwarning)
    _warn_in_sentences()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr("warnings.showwarning", lambda *given: print(warnings.formatwarning(*given[:4]), end=""))
        warn("the value is rough")
        warnings.warn("something else", UserWarning, stacklevel=1)
    mine, other, *_ = capsys.readouterr().out.splitlines()
    assert mine == "calibrary: the value is rough"
    assert "UserWarning: something else" in other


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("2", "2")])
def test_a_matrix_product_has_one_thread_unless_the_user_says_otherwise(given, used):
    code = (
        "import atexit, os; from calibrary.cli import main\n"
        "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'])); main()"
    )
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    env |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    found = subprocess.run([sys.executable, "-c", code, "--version"], env=env, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == used
