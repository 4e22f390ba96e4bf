"""Gates: what must hold, judged by intervals; exit statuses and JUnit XML."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import calibrary as cal
from calibrary._errors import heard
from calibrary.inference.verdict import condition

FAST = ["--resamples", "99", "--metrics", "ece,bs", "-q"]


def problem(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < np.clip(p + shift, 0, 1)).astype(int), p


@pytest.fixture
def call(monkeypatch, capsys):
    from calibrary.cli.main import main

    def called(*args):
        monkeypatch.setattr("sys.argv", ["calibrary", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return called


@pytest.fixture
def file(tmp_path):
    """A file of predictions: calibrated unless shifted."""

    def made(n=300, seed=0, shift=0.0):
        y, p = problem(n, seed, shift)
        path = tmp_path / "p.csv"
        path.write_text("y,p\n" + "".join(f"{a},{b!r}\n" for a, b in zip(y.tolist(), p.tolist(), strict=True)))
        return path

    return made


# -- the helper for tests -----------------------------------------------------------------------------


def test_what_holds_passes_and_what_does_not_fails_with_every_sentence():
    y, p = problem(2000)
    assert [v.status for v in cal.assert_calibrated(y, p, "ece<0.2", "bs<0.3", n_resamples=99, rng=0)] == ["pass"] * 2
    y, p = problem(2000, shift=0.2)
    with pytest.raises(AssertionError) as caught:
        cal.assert_calibrated(y, p, "ece<0.05", "bs<0.9", "ks<0.01", n_resamples=99, rng=0)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "ece<0.05 does not hold" in lines[0]
    assert "ecce_mad<0.01 does not hold" in lines[1]


def test_what_few_rows_cannot_tell_passes_with_a_warning_or_fails_when_asked():
    y, p = problem(60, seed=4)
    with heard() as said:
        (answer,) = cal.assert_calibrated(y, p, "ece<0.05", n_resamples=99, rng=0)
    assert answer.status == "undecided"
    assert "rows would decide it" in said[0]
    with heard(), pytest.raises(AssertionError, match="undecided"):
        cal.assert_calibrated(y, p, "ece<0.05", undecided="fail", n_resamples=99, rng=0)
    with pytest.raises(AssertionError, match=r"does not meet ece\.value<0\.05"):  # the plain estimate reads high
        cal.assert_calibrated(y, p, "ece.value<0.05", n_resamples=99, rng=0)


def test_parts_and_single_numbers_can_be_asked_for():
    y, p = problem(400)
    answers = cal.assert_calibrated(
        y, p, "cis.slope>0.2", "cis.slope.value<2", "ece.high<0.5", "ece.pvalue>=0", n_resamples=99, rng=0
    )
    assert [a.condition for a in answers] == ["cis.slope>0.2", "cis.slope.value<2", "ece.high<0.5", "ece.pvalue>=0"]
    assert cal.assert_calibrated(y, p, "bs < 90%", n_resamples=19, rng=0)[0].condition == "bs<0.9"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ((), "needs what must hold"),
        (("ece",), "is not read"),
        (("ece<1e",), "is not read|no number"),
        (("no_such<1",), "no metric is called"),
        (("ece.part<1",), "has no part 'part': it is one number"),
        (("cis<1",), "name one of intercept, slope"),
        (("cis.slop<1",), "did you mean 'slope'"),
    ],
)
def test_a_condition_that_cannot_be_is_one_sentence(asked, sentence):
    y, p = problem(50)
    with pytest.raises(ValueError, match=sentence):
        cal.assert_calibrated(y, p, *asked, n_resamples=19, rng=0)


def test_what_is_not_defined_is_no_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="not defined"):
            cal.assert_calibrated([0, 0, 0], [0.0, 0.0, 0.0], "eo<1", n_resamples=19, rng=0)


def test_the_opposite_of_a_condition_holds_exactly_when_it_does_not():
    for text in ("ece<0.1", "ece<=0.1", "ece>0.1", "ece>=0.1"):
        for value in (0.05, 0.1, 0.2):
            assert condition(text).holds(value) != condition(text).opposite.holds(value)


def test_junit_takes_any_name():
    from calibrary.reporting.junit import Case, junit

    made = junit([Case("a<b>&\"'\x1b\x00", "g", "fail", False, "\ud800]]>")])
    assert ET.fromstring(made.encode())[0][0].get("classname").startswith("a<b>&\"'")
