"""Long work in Python shows one line with the time left, where somebody sees it, and removes it at the end."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

import calibrary as cal
from calibrary import study
from calibrary.inference.draw import waiting
from calibrary.inference.draw.waiting import WATCHED, ProgressLine, WorkDone, in_sight, progress_of

RNG = np.random.default_rng(0)
P = RNG.random(200)
Y = (RNG.random(200) < P).astype(int)


class Seen(io.StringIO):
    """A stream like that of a terminal."""

    def isatty(self) -> bool:
        return True


class Cell(io.StringIO):
    """A stream like that of a notebook, which is no terminal."""


Cell.__module__ = "ipykernel.iostream"


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(waiting, "_PATIENCE", 0.0)
    monkeypatch.setattr(waiting, "_OFTEN", 0.0)


def fitted(X, y):
    return lambda Z: np.clip(0.1 + 0.8 * np.asarray(Z)[:, 0], 0.0, 1.0)


CALLS = {
    "report": lambda **how: cal.report(Y, P, metrics=["bs"], n_resamples=39, **how),
    "evaluate": lambda **how: cal.evaluate(Y, P, metrics="point", intervals=True, tests=True, n_resamples=39, **how),
    "refitting": lambda **how: cal.validate(fitted, P.reshape(-1, 1), Y, n_resamples=5, rng=0, **how),
    "study": lambda **how: study.run("quick", metrics=["ece"], worlds=["wide"], n=100, draws=4, **how),
}


@pytest.mark.parametrize("stream", [Seen, Cell])
@pytest.mark.parametrize("name", CALLS)
def test_a_terminal_and_a_notebook_show_one_line_that_is_removed(monkeypatch, at_once, name, stream):
    monkeypatch.setattr("sys.stderr", stream())
    CALLS[name]()
    import sys

    lines = sys.stderr.getvalue().split("\r")
    assert any(re.search(rf"{name}.*: \d+%", line) for line in lines)
    assert any(re.search(r"about \d+ s left|nearly done", line) for line in lines)
    assert lines[-1] == ""
    assert not lines[-2].strip()  # spaces over the last text


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_shown_in_a_pipe_nor_where_it_is_not_wanted(monkeypatch, at_once, name):
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    CALLS[name]()
    assert "%" not in pipe.getvalue()
    seen = Seen()
    monkeypatch.setattr("sys.stderr", seen)
    CALLS[name](progress=False)
    assert "%" not in seen.getvalue()


def test_short_work_shows_nothing(monkeypatch):
    seen = Seen()
    monkeypatch.setattr("sys.stderr", seen)
    CALLS["evaluate"]()
    assert seen.getvalue() == ""


def test_the_time_left_is_that_of_the_work_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(waiting, "monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr", seen := Seen())
    line = ProgressLine("work", pieces=4)
    line.part(1.0)
    now[0] = 1.0
    line.at(0.5)
    assert seen.getvalue() == ""  # two seconds have not passed
    now[0] = 10.0
    line.at(1.0)
    assert seen.getvalue() == "\rwork: 25%, about 30 s left"
    line.piece(2)
    line.part(1.0)
    now[0] = 20.0
    line.at(0.0)
    assert seen.getvalue().endswith("\rwork: 50%, about 20 s left")


def test_work_that_something_else_watches_has_no_line_of_its_own(monkeypatch, at_once):
    monkeypatch.setattr("sys.stderr", seen := Seen())
    token = WATCHED.set(whole := WorkDone())
    try:
        with progress_of("part") as work:
            assert work is whole
            CALLS["evaluate"]()
    finally:
        WATCHED.reset(token)
    assert seen.getvalue() == ""
    assert whole.done > 0.5


def test_a_closed_standard_error_is_no_place_to_show_anything(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert not in_sight()
