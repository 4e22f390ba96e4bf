"""Where commands and scripts run: no docstrings, an ASCII locale, no home, no compiler, a full disk, many processes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import calibrary as cal
from calibrary.base.files import write_atomically
from each import FULL, amount

pytest.importorskip("typer")
pytest.importorskip("matplotlib")

SOURCE = str(Path(cal.__file__).parent.parent)
REPORT = ("--resamples", "39", "--metrics", "ece,bs")


def _run(
    folder: Path, *words: str, flags: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": SOURCE, "COLUMNS": "100", **environment}
    command = [sys.executable, *flags, "-m", "calibrary", *words]
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("around")
    rows = [((37 * k % 100) / 100, "jä" if (61 * k % 100) < (37 * k % 100) else "nein") for k in range(120)]
    (made / "täst.csv").write_text("größe,wahr\n" + "".join(f"{y},{p}\n" for p, y in rows), encoding="utf-8")
    (made / "f.csv").write_text("y,p\n" + "".join(f"{int(y == 'jä')},{p}\n" for p, y in rows))
    return made


ASCII_ONLY = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
NOWHERE = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "NUMBA_CACHE_DIR": "/dev/null", "NUMBA_DISABLE_JIT": "1"}
NAMED = ("täst.csv", "--label", "größe", "--prob", "wahr", "--positive", "jä")


def _value(folder: Path, id: str) -> float:
    y, p = zip(*csv.reader((folder / "f.csv").read_text().splitlines()[1:]), strict=True)
    return float(cal.compute(id, [int(x) for x in y], [float(x) for x in p]))


def test_an_ascii_locale_takes_names_in_every_letter(folder):
    done = _run(folder, "metric", "bs", *NAMED, **ASCII_ONLY)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout.split()[1]) == pytest.approx(_value(folder, "bs"))


def test_a_report_needs_no_docstrings_no_home_and_no_utf_8(folder):
    pages = ("ü.html", "ü.json") if FULL else ("ü.json",)  # the libraries of figures are compiled anew for -OO
    out = [word for page in pages for word in ("-o", page)]
    done = _run(folder, "report", *NAMED, *REPORT, *out, flags=("-OO",), **ASCII_ONLY, **NOWHERE)
    assert done.returncode == 0, done.stderr
    assert "t\\xe4st" in done.stdout
    assert all("täst" in (folder / page).read_text(encoding="utf-8") for page in pages if page.endswith("html"))
    assert "täst" in json.loads((folder / "ü.json").read_text())["title"]


def test_no_cache_and_no_compiler_change_no_answer(folder):
    done = _run(folder, "metric", "skde", "f.csv", **NOWHERE)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[1]) == pytest.approx(_value(folder, "skde"), rel=1e-9)


#: What a command gives, the words of it, and the status that holds whatever stream is closed.
ENDS = {
    "an answer": (("metric", "bs", "f.csv"), 0),
    "a mistake": (("metric", "bs", "none.csv"), 2),
    "a gate that does not hold": (("report", "f.csv", *REPORT, "-q", "--fail-if", "bs>0.0001"), 1),
}


@pytest.mark.parametrize("what", ENDS)
def test_closed_streams_change_no_status(folder, what):
    words, status = ENDS[what]
    given = {**os.environ, "PYTHONPATH": SOURCE}
    line = ["bash", "-c", 'exec "$0" -m calibrary "$@" <&- >&- 2>&-', sys.executable, *words]
    assert subprocess.run(line, cwd=folder, env=given, check=False).returncode == status


# -- a full disk ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A disk of 64 KiB."""
    place = tmp_path_factory.mktemp("disk")
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no small disk: {error}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def _state(path: Path) -> None:
    y, p = [0, 1] * 4000, [k / 8000 for k in range(8000)]
    cal.scale.State(resolution=4000).update(y, p).save(path)


def _map(path: Path) -> None:
    fitted = cal.Recalibrator("platt").fit([0.1, 0.4, 0.6, 0.8] * 20, [0, 1, 0, 1] * 20)
    fitted.save(path)


WRITTEN = {
    "a report": ("r.json", lambda path: _some_report().save(path)),
    "a page": ("r.html", lambda path: _some_report().save(path)),
    "a state": ("s.parquet", _state),
    "a map": ("m.json", _map),
}


def _some_report(made: list[Any] = []) -> Any:  # noqa: B006 - made once
    if not made:
        y, p = [0, 1, 1] * 40, [0.1, 0.6, 0.8] * 40
        made.append(cal.report(y, p, n_resamples=39, metrics=["ece", "bs"], rng=0))
    return made[0]


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("what", WRITTEN)
def test_a_full_disk_leaves_the_old_file_and_no_temporary(disk, what):
    name, save = WRITTEN[what]
    place = disk / name
    place.write_bytes(b"as it was")
    (disk / "fills").write_bytes(b"x" * (60 << 10))
    with pytest.raises(ValueError, match=rf"{name} cannot be written: no space left on device"):
        save(place)
    assert place.read_bytes() == b"as it was"
    assert sorted(file.name for file in disk.iterdir()) == sorted(["fills", name])
    (disk / "fills").unlink()
    write_atomically(place, b"room again")
    assert place.read_bytes() == b"room again"
    place.unlink()


# -- other processes --------------------------------------------------------------------------------

#: A script as people write it, with a guard; each process imports the package anew or takes it from its parent.
POOL = """
import multiprocessing, sys
import calibrary as cal

Y, P = [0, 1, 1, 0] * 30, [0.2, 0.7, 0.9, 0.4] * 30
METHODS, SEEDS = sys.argv[1].split(","), range(int(sys.argv[2]))

def answers(seed):
    report = cal.report(Y, P, n_resamples=39, metrics=["ece", "bs"], rng=seed)
    return cal.interval("ece", Y, P, n_resamples=99, rng=seed).low, report.headline

if __name__ == "__main__":
    alone = [answers(seed) for seed in SEEDS]
    for method in METHODS:
        if method in multiprocessing.get_all_start_methods():
            with multiprocessing.get_context(method).Pool(1) as pool:
                print(method, pool.map(answers, SEEDS) == alone)
"""


def test_spawned_and_forked_processes_give_the_answers_of_one(tmp_path):
    (tmp_path / "pool.py").write_text(POOL)
    given = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "pool.py", "spawn,forkserver" if FULL else "spawn", str(amount(1, 2))],
        cwd=tmp_path,
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() in (["spawn", "True", "forkserver", "True"], ["spawn", "True"])
