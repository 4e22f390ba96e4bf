"""The Tab key and ``--help`` use the stored list of commands, which agrees with the commands themselves."""

from __future__ import annotations

import gzip
import importlib
import json
import subprocess
import sys

import pytest

from calibrary.cli import start
from calibrary.cli.start import choices
from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
surface = importlib.import_module("surface")
START = [sys.executable, "-m", "calibrary"]


def names(words: str, begun: str = "") -> list[str]:
    return [name for name, _ in choices(words.split(), begun) if name.startswith(begun)]


def test_the_stored_list_is_that_of_the_commands():
    assert start._SURFACE.read_text(encoding="utf-8") == surface.text(), "run python scripts/make_stubs.py"


def test_commands_options_and_metrics_are_completed():
    assert "report" in names("", "rep")
    assert names("recalibrate") == ["fit", "apply", "score"] or {"fit", "apply"} <= set(names("recalibrate"))
    assert "--label" in names("report p.csv", "--la")
    assert "ece" in names("metric", "ec")
    assert "ece" in names("explain", "ec")
    assert "smece" in names("report p.csv --primary", "sm")


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.jsonl", "p.parquet"])
def test_columns_of_the_file_are_completed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mark = "\t" if name == "p.tsv" else ","
    text = mark.join(["outcome", "risk", "site"]) + "\n" + mark.join(["1", "0.5", "a"]) + "\n"
    if name.endswith(".parquet"):
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"outcome": [1], "risk": [0.5], "site": ["a"]}), name)
    elif name.endswith(".jsonl"):
        (tmp_path / name).write_text(json.dumps({"outcome": 1, "risk": 0.5, "site": "a"}) + "\n")
    else:
        data = text.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert names(f"report {name} --label") == ["outcome", "risk", "site"]
    assert names(f"report {name} --by", "s") == ["site"]
    assert names(f"report {name} --seed") == []  # a number
    assert names("report nothing.csv --label") == []


def test_a_file_that_cannot_be_read_gives_no_columns(tmp_path):
    broken = tmp_path / "b.jsonl"
    broken.write_bytes(b"\xff\xfe not JSON\n")
    assert names(f"report {broken} --label") == []
    (tmp_path / "b.csv.gz").write_bytes(b"not packed")
    assert names(f"report {tmp_path / 'b.csv.gz'} --label") == []


def completed(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(START, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"_CALIBRARY_COMPLETE": "complete_bash", "COMP_WORDS": "calibrary expl", "COMP_CWORD": "1"}, "explain\n"),
        (
            {
                "_CALIBRARY_COMPLETE": "complete_fish",
                "_TYPER_COMPLETE_ARGS": "calibrary ensem",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
            "ensemble\t",
        ),
        (
            {"_CALIBRARY_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "calibrary ensem"},
            '_arguments \'*: :(("ensemble"',
        ),
        ({"_CALIBRARY_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "calibrary report x"}, "_files\n"),
    ],
)
def test_every_shell_is_answered_without_a_message(environment, expected):
    done = completed(environment)
    assert done.returncode == 0
    assert done.stdout.startswith(expected)
    assert done.stderr == ""


def test_help_is_that_of_the_command_and_loads_nothing():
    code = "import sys; sys.argv = ['calibrary', 'report', '--help']; from calibrary.cli import main; main(); "
    code += "print(sorted({'typer', 'numpy', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: calibrary report [OPTIONS] FILES...")
    assert "--label, --correct LABEL" in done.stdout
    assert done.stdout.endswith("[]\n")
    assert done.stderr == ""


def test_help_of_an_unknown_command_is_left_to_the_command_line():
    done = subprocess.run([*START, "reprot", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "reprot" in done.stderr
