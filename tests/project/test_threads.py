"""Many threads on one object, several processes on one cache, and ends that nobody asked for.

Ctrl-C, a reader that goes away, a disk that is full.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrary as cal
from calibrary.metrics.machinery.measure import numbers
from each import FULL

SOURCE = str(Path(cal.__file__).parent.parent)


# -- threads ----------------------------------------------------------------------------------------


def _numbers(id: str, data: Any) -> list[float]:
    return list(numbers(cal.compute(id, data), cal.catalogue[id].fields).values())


@pytest.mark.parametrize("columns", [1, 4])
def test_metrics_of_one_object_from_many_threads_are_those_of_one(columns):
    rng = np.random.default_rng(columns)
    p = rng.random(300) if columns == 1 else rng.dirichlet(np.ones(columns), 300)
    y = rng.integers(0, max(columns, 2), 300)
    ids = [e.id for e in cal.catalogue.values() if e.data_type == "predictions" and not e.needs and not e.costly]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = {}
        for id in ids:
            try:
                alone[id] = _numbers(id, cal.predictions(y, p))
            except ValueError:
                continue  # ordered classes and the like
        shared = cal.predictions(y, p)  # nothing of it is sorted or looked at yet
        work = [id for _ in range(3) for id in alone]
        np.random.default_rng(0).shuffle(work)
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda id: _numbers(id, shared), work))
    for id, told in zip(work, together, strict=True):
        # which sums are there already decides on the last digit
        np.testing.assert_allclose(told, alone[id], rtol=1e-11, atol=1e-13, err_msg=id)


def test_intervals_from_many_threads_are_those_of_one():
    rng = np.random.default_rng(5)
    p = rng.random(80)
    shared = cal.predictions((rng.random(80) < p).astype(int), p)

    def told(seed: int) -> tuple[float, float]:
        found = cal.interval("ece", shared, n_resamples=99, rng=seed)
        return found.low, found.high

    alone = [told(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(told, [0, 1, 2, 3] * 2)) == alone * 2


def test_pictures_from_many_threads_leave_the_settings_of_matplotlib():
    mpl = pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from calibrary.reporting.figures import _svg

    def drawn(width: int) -> str:
        figure = Figure(figsize=(2 + width, 2))
        figure.subplots().plot([0, 1], [0, width])
        return _svg(figure)

    before = dict(mpl.rcParams)
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(drawn, range(12)))
    assert dict(mpl.rcParams) == before
    assert together == [drawn(width) for width in range(12)]


# -- processes --------------------------------------------------------------------------------------


def test_two_processes_compile_at_once(tmp_path):
    code = (
        "import calibrary as cal, numpy as np; rng = np.random.default_rng(0); p = rng.random(300);"
        "y = (rng.random(300) < p).astype(int); print(*(repr(cal.compute(id, y, p)) for id in ('calbin', 'tce')))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": SOURCE}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    told = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0, 0], told
    assert told[0][0] == told[1][0] != b""


# -- the end of a command ---------------------------------------------------------------------------

CSV = "y,p,q\n" + "".join(f"{k % 2},{(37 * k % 100) / 100},{(17 * k % 100) / 100}\n" for k in range(120))
FAST = ["--resamples", "39", "--metrics", "ece,bs"]
COMMANDS = {
    "report": ["report", "f.csv", "--prob", "p", *FAST],
    "report to a page": ["report", "f.csv", "--prob", "p", *FAST, "-o", "r.html"],
    "metric": ["metric", "ece", "f.csv", "--prob", "p"],
    "compare": ["compare", "f.csv", "--prob", "p", "--prob", "q", "--resamples", "39"],
    "plot": ["plot", "f.csv", "--prob", "p", "--kind", "reliability", "-o", "r.png"],
    "list": ["explain", "list"],
    "explain": ["explain", "ece"],
    "recommend": ["explain", "recommend", "--task", "binary", "--goal", "measure"],
    "table2": ["explain", "table2"],
    "notation": ["explain", "notation"],
    "scan": ["scale", "scan", "f.csv", "--label", "y", "--prob", "p", "-o", "s.parquet"],
    "sql": ["scale", "sql", "--table", "t", "--label", "y", "--prob", "p"],
    "state": ["scale", "state", "r.csv", "-o", "t.parquet"],
    "schema": ["schema"],
    "cache": ["cache"],
    "recalibrate fit": ["recalibrate", "fit", "f.csv", "--prob", "p", "-o", "m.json"],
    "plan": ["plan", "--help"],
    "monitor": ["scale", "monitor", "--help"],
    "validate": ["validate", "f.csv", "--label", "y", "--features", "p,q", "--resamples", "20", "--repeats", "1"],
    "ensemble": ["ensemble", "f.csv", "--label", "y", "--members", "p", "--members", "q", "--resamples", "39"],
    "answers": ["answers", "--help"],
    "outside": ["outside", "--help"],
    "mcp": ["mcp", "--help"],
    "app": ["app", "--help"],
}


def _commands() -> list[str]:
    from calibrary.cli.main import app

    named = {(c.name or c.callback.__name__).replace("_", "-") for c in app.registered_commands}
    return sorted(named)


def test_every_command_is_ended_here():
    assert set(_commands()) - {"demo"} <= {arguments[0] for arguments in COMMANDS.values()}  # demo is a report of three


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("ends")
    (made / "f.csv").write_text(CSV)
    (made / "r.csv").write_text("cell,y,n,s,s_high\n480000,1,3,0,0\n")
    return made


#: Runs commands one after the other in one process, each in a child of its own: the package is imported once.
RUNNER = r"""
import json, os, resource, signal, sys
import matplotlib.pyplot, pyarrow.csv, calibrary.plots, calibrary.reporting, calibrary.evaluation  # once for all
from calibrary.cli.main import main
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(job["folder"])
        for name, number in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT), number)
        if job.get("broken"):
            read, write = os.pipe()
            os.close(read)
            os.dup2(write, 1)
        if job.get("largest") is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (job["largest"], job["largest"]))
        if job.get("stop"):
            # in processor time: a busy machine must not end the process before the command has begun
            signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
            signal.setitimer(signal.ITIMER_PROF, job["stop"])
        sys.argv = ["calibrary", *job["arguments"]]
        status = 0
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
        try:
            sys.stdout.flush()
        except BaseException as error:
            os.write(2, f"Traceback at the end: {error!r}".encode())
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def ended(folder):
    """How a command ends: its status, and what it says on the way."""
    import json

    environment = {**os.environ, "PYTHONPATH": SOURCE, "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )

    def end(arguments: list[str], **job: Any) -> tuple[int, str]:
        said = folder / "said"
        said.write_text("")
        job = {"folder": str(folder), "stdout": "/dev/null", "stderr": str(said), "arguments": arguments, **job}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline()), said.read_text()

    yield end
    assert process.stdin is not None
    process.stdin.close()
    process.wait()


#: Of every command one of the two ends, in turn; a full run has both.
FULL_DISK, NO_READER = (list(COMMANDS) if FULL else list(COMMANDS)[k::2] for k in (0, 1))


@pytest.mark.parametrize("name", FULL_DISK)
def test_a_full_disk_is_one_sentence(ended, folder, name):
    outputs = {"r.html", "r.png", "s.parquet", "t.parquet", "m.json"}
    for file in outputs:
        (folder / file).unlink(missing_ok=True)
    writes = outputs & set(COMMANDS[name])
    status, said = ended(COMMANDS[name], **({"largest": 100} if writes else {"stdout": "/dev/full"}))
    assert status == 2, said
    assert "Traceback" not in said
    assert sum(line.startswith("calibrary:") for line in said.splitlines()) == 1
    assert not any((folder / file).exists() for file in outputs)  # nothing half written is left
    assert {file.name for file in folder.iterdir()} <= {"f.csv", "r.csv", "said"}


@pytest.mark.parametrize("name", NO_READER)
def test_a_reader_that_goes_away_ends_a_command_quietly(ended, folder, name):
    status, said = ended(COMMANDS[name], broken=True)
    for file in ("r.html", "r.png", "s.parquet", "t.parquet", "m.json"):
        (folder / file).unlink(missing_ok=True)
    assert status in (0, 2)  # 0: it had nothing to say there
    assert "Traceback" not in said
    assert not any(line.startswith("calibrary:") for line in said.splitlines())


@pytest.mark.parametrize("name", ["report to a page", "compare", "plot", "recalibrate fit", "metric"])
@pytest.mark.parametrize("after", [0.005, 0.2])
def test_ctrl_c_says_stopped_and_leaves_nothing_half_written(ended, folder, name, after):
    for file in ("r.html", "r.png", "m.json"):
        (folder / file).unlink(missing_ok=True)
    longer = {"39": "999", "reliability": "overview"}
    arguments = [longer.get(a, a) for a in COMMANDS[name]]
    status, said = ended(arguments, stop=after)
    assert status in (0, 130), said  # it may have been done by then
    assert "Traceback" not in said
    assert status == 0 or "stopped" in said
    left = {file.name for file in folder.iterdir()} - {"f.csv", "r.csv", "said", "r.html", "r.png", "m.json"}
    assert left == set()
    if status == 130:
        assert not {"r.html", "r.png", "m.json"} & {file.name for file in folder.iterdir()}


@pytest.mark.parametrize(
    ("command", "module"), [("explain", "catalogue"), ("app", "app_start"), ("report", "report"), ("metric", "main")]
)
def test_ctrl_c_while_importing_is_no_traceback(command, module):
    code = (
        f"import os, signal, sys; sys.argv = ['calibrary', {command!r}]\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background begins with it ignored\n"
        "from calibrary.cli import main\n"
        "class Stop:\n"
        "    def find_spec(name, *rest):\n"
        f"        if name == 'calibrary.cli.{module}': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop)\nmain()\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (found.returncode, found.stdout) == (130, "")
    assert found.stderr.strip() == "calibrary: stopped"
