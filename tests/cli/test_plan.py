"""The number of rows that are needed: the review's rules, and ``calibrary plan``."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.numbers import percent

typer = pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

from calibrary.cli.main import app  # noqa: E402


def planned(*words):
    result = CliRunner().invoke(app, ["plan", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return " ".join(result.output.split())


@pytest.mark.parametrize(("rows", "error"), [(500, 0.1), (10_000, 0.02)])
def test_the_rules_of_the_review_are_special_cases(rows, error):
    for line in ("over-confident", "shift"):
        enough = cal.power("ece_db", rows, error=error, line=line, n_resamples=99, rng=0)
        assert enough.power > 0.8
        few = cal.power("ece_db", rows // 5, error=error, line=line, n_resamples=99, rng=0)
        assert few.power < 0.8


def test_plan_says_how_many_rows():
    n = cal.sample_size("spiegelhalter", 0.1, n_resamples=49, rng=0).n
    said = planned("spiegelhalter", "--error", "0.1", "--resamples", "49")
    assert f"The Spiegelhalter z test (spiegelhalter) at level 5% needs about {n:,} rows" in said
    assert "to detect a mean absolute difference of 0.100 between true and stated probabilities" in said
    assert said.endswith("This is for confidences like Beta(1, 1).")


def test_plan_says_the_power_of_a_file_like_yours(tmp_path):
    rng = np.random.default_rng(0)
    c = rng.beta(4, 1, 80).round(4)
    file = tmp_path / "predictions.csv"
    file.write_text("y,p\n" + "\n".join(f"{int(rng.random() < x)},{x}" for x in c))
    said = planned("ece", str(file), "--error", "0.1", "--rows", "300", "--resamples", "49", "--quiet")
    expected = cal.power("ece", 300, error=0.1, y_prob=c, n_resamples=49, rng=0)
    assert f"in {percent(expected.power)} of samples of 300 rows" in said
    assert "(80 rows)" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ece", "--law", "uniform"], "pass the two parameters of Beta"),
        (["ece", "--error", "0.9"], "is impossible"),
        (["ece", "--power", "2"], "--power 2.0: pass a number between 0 and 1"),
        (["ece", "--resamples", "9"], "use at least 19"),
        (["ece", "--line", "left"], "line='left'"),
    ],
)
def test_bad_plans_get_one_sentence(words, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        planned(*words)


# -- settings of intervals that cannot work -------------------------------------------------------------


def data(n=60):
    rng = np.random.default_rng(1)
    c = rng.random(n)
    return (rng.random(n) < c).astype(int), c


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"units": np.zeros(60)}, "units has one value only: pass at least two"),
        ({"blocks": 31}, "blocks=31 is too long for 60 rows"),
        ({"blocks": 0}, "blocks=0"),
        ({"confidence_level": 95}, "confidence_level=95 is outside"),
        ({"confidence_level": 1.0}, "confidence_level=1.0 is outside"),
        ({"n_resamples": 18}, "use at least 19"),
        ({"n_resamples": 50, "confidence_level": 0.99}, "use at least 99"),
        ({"n_resamples": 0}, "n_resamples=0"),
        ({"units": np.arange(60) // 2, "blocks": 3}, "pass one of them"),
    ],
)
def test_settings_that_cannot_work_get_a_sentence(options, sentence):
    y, c = data()
    with pytest.raises((ValueError, TypeError), match=sentence):
        cal.interval("ece", y, c, **options)


def test_a_metric_that_cannot_take_units_says_why():
    y, c = data()
    with pytest.raises(ValueError, match="is not a function of residuals"):
        cal.test("ici", y, c, units=np.arange(60) // 2)


def test_few_draws_for_quantiles_are_warned_about():
    y, c = data()
    with pytest.warns(cal.CalibrationWarning, match="too few for quantiles at the level 0.95.*at least 39"):
        cal.interval("bs", y, c, method="percentile", n_resamples=20, rng=0)


def test_draws_that_fail_are_said():
    y, c = data(12)

    def brittle(y, p):
        if y.sum() % 3 == 0:
            raise ValueError("no number here")
        return float(np.abs(y.mean() - p.mean()))

    with pytest.warns(cal.CalibrationWarning, match="replicates have no value and were left out: ValueError"):
        result = cal.interval(brittle, y, c, n_resamples=99, rng=0, perfect=0.0)
    assert result.n_failed > 0
    assert np.isfinite([result.low, result.high]).all()


def test_a_table_says_which_draws_failed_and_that_min_p_cannot_reject():
    rng = np.random.default_rng(0)
    c = np.append(rng.beta(60, 1, 30), 0.3)
    y = (rng.random(31) < c).astype(int)
    y[-1] = 0
    with pytest.warns(cal.CalibrationWarning, match="adjust='min-p' cannot reject any of"):
        found = cal.evaluate(
            y, c, metrics=["cis", "ece", "bs", "mae"], tests=True, adjust="min-p", n_resamples=39, rng=0
        )
    assert "the metric is undefined on" in found.row("cis").note
    assert "the metric is undefined on" not in found.row("bs").note


def test_rows_for_a_width_on_the_command_line(tmp_path):
    assert "needs 876 rows with 88 events (prevalence 10%)" in planned("oe", "--width", "0.4", "--prevalence", "0.1")
    said = planned("cis.slope", "--width", "0.3", "--lp", "-1.75,2.47")
    assert f"needs {cal.plan('cis.slope', width=0.3, lp=(-1.75, 2.47)).n:,} rows" in said
    file = tmp_path / "predictions.csv"
    file.write_text("y,p\n1,0.3\n0,0.1\n0,0.25\n")
    said = planned("citl", str(file), "--width", "0.5", "--quiet")
    assert f"needs {cal.plan('citl', width=0.5, y_prob=[0.3, 0.1, 0.25]).n:,} rows" in said
    with pytest.raises(ValueError, match="--lp x: pass mean and standard deviation"):
        planned("oe", "--width", "0.3", "--lp", "x")
