"""Results in a notebook: a sentence, a small table and a picture, never draws; one line in a terminal."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrary as cal

Y, P, _ = cal.datasets.breast_cancer()
Q = P.clip(1e-3, 1 - 1e-3)
RESULTS = {
    "test": lambda: cal.test("ece", Y, P, rng=0, n_resamples=99),
    "interval": lambda: cal.interval("ece", Y, P, rng=0, n_resamples=99),
    "several": lambda: cal.interval("cis", Y, Q, rng=0, n_resamples=49),
    "null": lambda: cal.null_distribution("ece", P, rng=0, n_resamples=99),
    "verdict": lambda: cal.verdict("ece<0.02", Y, P, rng=0, n_resamples=99),
    "compare": lambda: cal.compare("bs", Y, P, Q, rng=0, n_resamples=49),
    "own law": lambda: cal.hosmer_lemeshow_test(Y, Q),
    "bins": lambda: cal.reliability_bins(Y, P),
    "curve": lambda: cal.regret_curve(Y, P),
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request):
    return request.param, RESULTS[request.param]()


def test_a_terminal_shows_one_line(result):
    line = repr(result[1])
    assert "\n" not in line
    assert len(line) < 700
    assert line.startswith(type(result[1]).__name__)


def test_a_notebook_shows_a_small_table_and_no_draws(result):
    name, shown = result[0], result[1]._repr_html_()
    assert "<table" in shown
    assert shown.count("<tr") <= 70
    assert "array(" not in shown
    for draw in getattr(result[1], "replicates", np.array([]))[:5].ravel():
        assert f"{draw:.6f}" not in shown
    if name not in ("several", "bins", "curve"):
        assert re.match(r"<p>[^<]{20,}\.</p>", shown)


def test_an_interval_and_a_test_have_a_picture():
    interval, test = RESULTS["interval"]()._repr_html_(), RESULTS["test"]()._repr_html_()
    assert "The estimate is 0.058 (95% interval 0.0" in interval
    assert "There is evidence of miscalibration (p &lt; 0.05). The statistic is 0.058." in test
    for shown in (interval, test):
        assert shown.count("<svg") == 1
        assert "circle" in shown


def test_a_point_has_no_picture():
    same = cal.interval("bs", [0, 1] * 10, [0.5] * 20, rng=0, n_resamples=19)
    assert "<svg" not in same._repr_html_()


def test_the_numbers_of_a_metric_with_several_stand_in_rows():
    shown = RESULTS["several"]()._repr_html_()
    assert "<td>intercept</td>" in shown
    assert "<td>slope</td>" in shown
