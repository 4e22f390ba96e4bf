"""The progress bar of a report shows the remaining time, and Ctrl-C leaves no partial file."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import calibrary as cal
from calibrary.inference.draw.waiting import WATCHED, WorkDone, seconds_left


class Watched(WorkDone):
    def __init__(self, pieces: int = 1) -> None:
        super().__init__(pieces)
        self.seen: list[float] = []

    def at(self, fraction: float) -> None:
        super().at(fraction)
        self.seen.append(self.done)


def test_work_moves_with_every_metric_and_every_draw() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(300)
    work = Watched()
    token = WATCHED.set(work)
    try:
        cal.evaluate(rng.random(300) < p, p, metrics="point", intervals=True, tests=True, n_resamples=39, rng=0)
    finally:
        WATCHED.reset(token)
    assert work.seen == sorted(work.seen)
    assert len(set(work.seen)) > 60
    assert 0.7 < work.seen[-1] <= 0.9  # values and draws (scores need no draws); the rest of a report comes later


def test_two_models_are_two_halves() -> None:
    work = WorkDone(2)
    work.part(0.2)
    work.at(1.0)
    assert work.done == 0.1
    work.piece(1)
    work.part(0.2)
    work.at(0.5)
    assert work.done == 0.55


def test_the_remaining_time_starts_from_measured_times_and_follows_the_actual_pace() -> None:
    assert seconds_left(0.0, 0.0, 30.0) == 30.0
    assert seconds_left(0.5, 60.0, 30.0) == 60.0  # twice as slow as expected: the remaining time doubles
    assert seconds_left(0.9, 9.0, 30.0) < 6.0
    assert seconds_left(1.0, 9.0, 30.0) == 0.0


def test_ctrl_c_leaves_no_half_written_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(19_000)
    # more than the buffer of a pipe: the writer must wait for the reader
    rows = "\n".join(f"{int(u < q)},{q:.4f}" for u, q in zip(rng.random(len(p)), p, strict=True))
    page = tmp_path / "page.html"
    page.write_text("what was there")
    command = [sys.executable, "-m", "calibrary", "report", "-", "--metrics", "point", "--resamples", "30000"]
    running = subprocess.Popen(
        [*command, "-o", "page.html", "-o", "page.json"], cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test run in the background ignores it
    )  # fmt: skip
    assert running.stdin is not None
    running.stdin.write("y,p\n" + rows + "\n")
    running.stdin.flush()
    running.stdin.close()
    running.stdin = None
    time.sleep(1.0)
    assert running.poll() is None
    said = ""
    while running.poll() is None:  # a library that is being imported may swallow the first interrupt
        running.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, said = running.communicate(timeout=5.0)
    assert running.returncode == 130
    assert "stopped" in said
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html"]
    assert page.read_text() == "what was there"
    assert not (tmp_path / "page.json").exists()


SWALLOWED = """
import os, signal, sys, time
import calibrary as cal

asked = cal.report

def loading(*given, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
    except KeyboardInterrupt:  # what a module does that takes an interrupt for a failed import
        print("swallowed", file=sys.stderr)
    time.sleep(30)
    return asked(*given, **options)

cal.report = loading
from calibrary.cli import main

sys.argv = ["calibrary", "report", "p.csv", "--metrics", "ece", "--resamples", "0", "-o", "page.html"]
main()
"""


def test_an_interrupt_that_a_library_swallows_comes_again(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("y,p\n" + "0,0.2\n1,0.7\n" * 40)
    ran = subprocess.run(
        [sys.executable, "-c", SWALLOWED], cwd=tmp_path, capture_output=True, text=True, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert ran.returncode == 130, ran.stderr
    assert ran.stderr.split()[-3:] == ["swallowed", "calibrary:", "stopped"]
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
