"""Gates: conditions that are tested with intervals, exit statuses, and JUnit XML."""

from __future__ import annotations

import json
import runpy
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.errors import collected_warnings
from calibrary.base.numbers import number
from calibrary.inference.verbs.verdict import condition
from paths import ROOT

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


# -- in a test of one's own -----------------------------------------------------------------------------


def required(y, p, *conditions, **options):
    return [cal.verdict(asked, y, p, **options).require() for asked in conditions]


def test_conditions_pass_or_fail_with_a_sentence_for_each():
    y, p = problem(2000)
    assert [v.status for v in required(y, p, "ece<0.2", "bs<0.3", n_resamples=99, rng=0)] == ["pass"] * 2
    y, p = problem(2000, shift=0.2)
    for failing in ("ece<0.05", "ecce_mad<0.01"):
        with pytest.raises(AssertionError, match=f"{failing} does not hold$"):
            required(y, p, failing, n_resamples=99, rng=0)


def test_an_undecided_condition_passes_with_a_warning_or_fails_if_requested():
    y, p = problem(60, seed=4)
    with collected_warnings() as said:
        (answer,) = required(y, p, "ece<0.05", n_resamples=99, rng=0)
    assert answer.status == "undecided"
    assert "rows would lead to a decision" in said[0]
    with collected_warnings(), pytest.raises(AssertionError, match="undecided"):
        required(y, p, "ece<0.05", undecided="fail", n_resamples=99, rng=0)
    with pytest.raises(AssertionError, match=r"does not meet ece\.value<0\.05"):  # the plain estimate is biased upwards
        required(y, p, "ece.value<0.05", n_resamples=99, rng=0)


def test_parts_and_single_numbers_can_be_asked_for():
    y, p = problem(400)
    answers = required(
        y, p, "cis.slope>0.2", "cis.slope.value<2", "ece.high<0.5", "ece.pvalue>=0", n_resamples=99, rng=0
    )
    assert [a.condition for a in answers] == ["cis.slope>0.2", "cis.slope.value<2", "ece.high<0.5", "ece.pvalue>=0"]
    assert required(y, p, "bs < 90%", n_resamples=19, rng=0)[0].condition == "bs<0.9"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (("ece",), "cannot parse"),
        (("ece<1e",), "cannot parse|no number"),
        (("no_such<1",), "no metric is called"),
        (("ece.part<1",), "has no part 'part': it is one number"),
        (("cis<1",), "name one of intercept, slope"),
        (("cis.slop<1",), "did you mean 'slope'"),
    ],
)
def test_an_invalid_condition_gives_one_sentence(asked, sentence):
    y, p = problem(50)
    with pytest.raises(ValueError, match=sentence):
        required(y, p, *asked, n_resamples=19, rng=0)


def test_an_undefined_value_does_not_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="not defined"):
            required([0, 0, 0], [0.0, 0.0, 0.0], "eo<1", n_resamples=19, rng=0)


def test_the_opposite_of_a_condition_holds_exactly_when_it_does_not():
    for text in ("ece<0.1", "ece<=0.1", "ece>0.1", "ece>=0.1"):
        for value in (0.05, 0.1, 0.2):
            assert condition(text).holds(value) != condition(text).opposite.holds(value)


# -- the command line ---------------------------------------------------------------------------------


def test_exit_status_zero_held_one_did_not_hold(call, file):
    assert call("report", file(), *FAST, "--fail-if", "ece>0.5")[0] == 0
    status, _, said = call("report", file(shift=0.25), *FAST, "--fail-if", "ece>0.05", "--fail-if", "bs>0.9")
    assert status == 1
    assert said.startswith("failed: ece is")
    assert "ece<=0.05 does not hold" in said


def test_an_undecided_gate_is_reported_in_words(call, file):
    few = file(60, seed=4)
    status, _, said = call("report", few, *FAST, "--fail-if", "ece>0.05")
    assert status == 0
    assert said.startswith("undecided: ece is")
    assert "rows would lead to a decision" in said
    assert call("report", few, *FAST, "--fail-if", "ece>0.05", "--undecided", "fail")[0] == 1
    assert call("report", few, *FAST, "--fail-if", "ece.value>0.05")[0] == 1
    status, _, said = call("report", few, "--resamples", "0", *FAST[2:], "--fail-if", "ece>0.05")
    assert status == 2
    assert "use ece.value for a bound on the estimate" in said
    assert call("report", few, "--resamples", "0", *FAST[2:], "--fail-if", "ece.value>0.05")[0] == 1
    status, _, said = call("report", few, *FAST, "--undecided", "maybe")
    assert status == 2
    assert "--undecided" in said


def test_a_one_sided_gate_uses_the_bound_that_decides(call, file):
    """The bounds are the ends of an interval with 10% outside: they decide where the usual interval does not."""
    y, p = problem(400, seed=4)
    usual = cal.interval("ece", y, p, n_resamples=99, rng=0)
    bound = cal.interval("ece", y, p, n_resamples=99, rng=0, alternative="less")
    between = (usual.high + bound.high) / 2.0
    assert bound.high < between < usual.high
    words = ["report", file(400, seed=4), *FAST, "--seed", "0", "--fail-if", f"ece>{between:.6f}"]
    status, _, said = call(*words, "--undecided", "fail")
    assert status == 1
    assert "undecided: ece is" in said
    status, _, said = call(*words, "--undecided", "fail", "--one-sided")
    assert (status, said) == (0, "")
    bound = cal.interval("ece", *problem(400, shift=0.1), n_resamples=99, rng=0, alternative="greater")
    words = ["report", file(400, shift=0.1), *FAST, "--seed", "0", "--one-sided", "--fail-if"]
    status, _, said = call(*words, f"ece>{bound.low - 1e-4:.6f}")
    assert status == 1
    assert "the true value is at least" in said
    assert call(*words, f"ece>{bound.low + 1e-4:.6f}")[0] == 0


def test_an_interval_without_ends_leaves_a_gate_undecided_and_prints_no_nan(call, file):
    reason = cal.catalogue["calbin"].no_ends
    words = [file(100), "--resamples", "99"]
    status, _, said = call("report", *words, "-q", "--metrics", "calbin,ece", "--fail-if", "calbin>0.05")
    assert status == 0
    assert "undecided: calbin is" in said
    assert reason[:60] in said
    status, told, said = call("metric", "calbin", *words, "--interval")
    assert status == 0
    assert "nan" not in told
    assert "no interval: " in said


def test_a_gate_says_what_the_table_shows(call, file, tmp_path):
    out = tmp_path / "r.json"
    _, _, said = call("report", file(shift=0.25), *FAST, "--fail-if", "ece>0.05", "-o", out)
    row = next(m for m in json.loads(out.read_text())["evaluation"]["metrics"] if m["id"] == "ece")
    assert (
        f"is {number(row['value'])}; the true value lies between {number(row['low'])} and {number(row['high'])}" in said
    )


def test_junit_has_a_case_for_each_gate(call, file, tmp_path):
    out = tmp_path / "gates.xml"
    rules = [part for text in ("ece>0.9", "ece.value>0.01", "ece>0.03") for part in ("--fail-if", text)]
    status, _, _ = call("report", file(60, seed=4), *FAST, *rules, "--junit", out)
    assert status == 1
    suite = ET.parse(out).getroot()[0]
    assert [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["3", "1", "0", "1"]
    held, failed, open_ = suite
    assert held.get("classname") == "p.csv: p"
    assert held.get("name") == "fails if ece>0.9"
    assert failed[0].tag == "failure"
    assert "does not meet" in failed[0].get("message")
    assert open_[0].tag == "skipped"
    status, _, said = call("report", file(60), *FAST, "--fail-if", "piece>1", "--fail-if", "ece>0.9", "--junit", out)
    assert status == 2
    assert "needs features" in said
    assert [ET.parse(out).getroot()[0].get(k) for k in ("tests", "errors")] == ["2", "1"]
    status, _, said = call("report", file(60), *FAST, "--junit", tmp_path / "no" / "x.xml")
    assert status == 2
    assert "does not exist" in said


def test_junit_takes_any_name():
    from calibrary.cli.gates import Case, junit

    made = junit([Case("a<b>&\"'\x1b\x00", "g", "fail", False, "\ud800]]>")])
    assert ET.fromstring(made.encode())[0][0].get("classname").startswith("a<b>&\"'")


def test_rows_of_one_prompt_are_drawn_together(call, tmp_path):
    """Fifty samples of each of twelve prompts count as twelve units, not as six hundred rows."""
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(12), 50)
    y = np.repeat((rng.random(12) < 0.5).astype(int), 50)
    path = tmp_path / "samples.jsonl"
    path.write_text(
        "".join(
            json.dumps({"prompt": f"q{i // 50}", "conf": c, "ok": bool(a)}) + "\n"
            for i, (a, c) in enumerate(zip(y, p, strict=True))
        )
    )
    words = ["report", path, "--confidence", "conf", "--correct", "ok", "--resamples", "199", "--metrics", "bs", "-q"]
    rule = ["--primary", "bs", "--fail-if", "bs>0.3"]
    assert call(*words, *rule)[0] == 1
    status, _, said = call(*words, *rule, "--unit", "prompt")
    assert status == 0
    assert said.startswith("undecided: bs is")


def test_the_examples_hold(monkeypatch):
    """The commands in the example files exist: the test passes, and every option is one of calibrary report."""
    import re

    from typer.main import get_command

    from calibrary.cli.main import app

    folder = ROOT / "examples" / "gate"
    with collected_warnings():
        runpy.run_path(str(folder / "test_calibration.py"))["test_the_model_is_calibrated"]()
    known = {o for p in get_command(app).commands["report"].params for o in p.opts}
    for name in ("calibration.yml", "pre-commit-config.yaml"):
        text = (folder / name).read_text()
        call = re.search(r"calibrary report .*?(?=\n\s*(?:- |files:))", text, re.S)[0]
        assert set(re.findall(r"(?<= )--?[a-z][a-z-]*", call)) <= known


def test_junit_counts_what_failed_apart_from_what_could_not_be_computed():
    from calibrary.cli.gates import Case, junit

    text = junit([
        Case("a", "x", "pass", True, ""), Case("a", "y", "fail", False, ""), Case("a", "z", "error", False, ""),
        Case("a", "v", "undecided", True, ""), Case("a", "w", "undecided", False, ""),
    ])  # fmt: skip
    assert 'tests="5" failures="2" errors="1" skipped="1"' in text
    assert [text.count(f"<{kind}") for kind in ("failure", "error", "skipped")] == [2, 1, 1]
