"""Results in a notebook: a sentence, a small table and a picture, never draws; one line in a terminal."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.stats

import calibrary as cal
import own
from calibrary.base.claims import RULES
from calibrary.base.markup import escaped
from calibrary.base.numbers import number, percent
from calibrary.lookup.study_findings import stored
from calibrary.metrics.machinery.shown import sentence
from truths import KnownTruth, holds

Y, P, _ = cal.datasets.breast_cancer()
Q = P.clip(1e-3, 1 - 1e-3)
RESULTS = {
    "test": lambda: cal.test("ece", Y, P, rng=0, n_resamples=99),
    "interval": lambda: cal.interval("ece", Y, P, rng=0, n_resamples=99),
    "several": lambda: cal.interval("cis", Y, Q, rng=0, n_resamples=49),
    "null": lambda: cal.expected_by_chance("ece", None, P, rng=0, n_resamples=99).null,
    "verdict": lambda: cal.verdict("ece<0.02", Y, P, rng=0, n_resamples=99),
    "compare": lambda: cal.compare("bs", Y, P, Q, rng=0, n_resamples=49),
    "own law": lambda: own.hosmer_lemeshow_test(Y, Q),
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
    for draw in np.asarray(getattr(result[1], "draws", ()))[:5].ravel():
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


# -- what is said is so ------------------------------------------------------------------------------------


def world(slope, seed, n=300):
    """Labels, confidences and true probabilities; with slope 1 the confidences are calibrated."""
    rng = np.random.default_rng([41, seed])
    c = rng.uniform(0.05, 0.95, n)
    q = 1.0 / (1.0 + np.exp(-slope * np.log(c / (1.0 - c))))
    return (rng.random(n) < q).astype(int), c, q


def brier(y, c):
    return float(np.mean((y - c) ** 2))


def squares(y, c, q):
    """Results about the Brier score and its parts, each with the numbers of these rows and the true values."""
    other = 0.5 + 0.5 * (c - 0.5)
    gap = float(np.mean(q * (1 - c) ** 2 + (1 - q) * c**2) - np.mean(q * (1 - other) ** 2 + (1 - q) * other**2))
    true = float(np.mean(q * (1 - c) ** 2 + (1 - q) * c**2))
    draws = np.array([brier(np.random.default_rng([2, i]).random(len(c)) < c, c) for i in range(300)])
    by_chance = {"drawn when calibrated": draws, "draws": 99}
    tested = {"statistic": brier(y, c)}
    few = {"rng": 0, "n_resamples": 99}
    null = cal.expected_by_chance("bs", None, c, **few).null
    of_draws = {"draws": 99, "mean": np.mean(null.values)}
    of_draws |= dict(zip(("low", "high"), np.quantile(null.values, (0.025, 0.975)), strict=True))
    return [
        (cal.interval("bs", y, c, **few), {"estimate": brier(y, c)}, {"true values": {"estimate": true}}),
        (cal.compare("bs", y, c, other, **few), {"difference": brier(y, c) - brier(y, other)},
         {"true values": {"difference": gap}}),
        (cal.compare("bs", y, c, other, method="swap", **few), {"difference": brier(y, c) - brier(y, other)}, {}),
        (cal.test("bs", y, c, method="monte-carlo", **few), tested, {}),
        (cal.test("bs", y, c, method="monte-carlo", calibration_map=lambda p: 0.5 + 0 * p, **few), tested,
         {"map is true": False}),
        (cal.expected_by_chance("bs", y, c, **few), {"value": brier(y, c)}, by_chance),
        (null, of_draws, {}),
        (own.variational_error_test(y, c), {}, {"true values": {"variational_error": np.abs(q - c).mean()}}),
        (cal.test("calibration_e_value", y, c), {"statistic": float(cal.calibration_e_value(y, c))}, {}),
    ]  # fmt: skip


@pytest.mark.parametrize("slope", [1.0, 0.4])
def test_the_sentences_of_a_notebook_are_true(slope):
    false, made, n = 0, set(), 4
    for seed in range(n):
        y, c, q = world(slope, seed)
        for found, told, facts in squares(y, c, q):
            truth, said = KnownTruth(c, q, y=y, of_metric=facts, measured=told), sentence(found)
            assert str(said) in str(found._repr_html_()).replace("&lt;", "<")
            made |= {claim.rule for claim in said.claims}
            for claim in said.claims:
                assert holds(claim, truth) or RULES[claim.rule].kind == "evidence", claim
                false += not holds(claim, truth)
    assert not scipy.stats.binom.sf(false - 1, 8 * n, 0.05) < 0.01
    assert {"measured", "interval", "by chance", "truth is not the map"} <= made
    assert "miscalibrated" in made or slope == 1.0


def test_sentences_about_calibrated_predictions_claim_no_error():
    """A band of values is not called an interval, an e-value of 0.05 is not evidence, a swap test has no interval."""
    y, c, q = world(1.0, 0)
    said = [str(sentence(found)) for found, *_ in squares(y, c, q)]
    assert re.fullmatch(r"a [0-9.]+, b [0-9.]+; a minus b is -?[0-9.]+ \(p [=<] [0-9.]+\)\.", said[2])
    assert "are not those of the fitted map" in said[4]
    assert said[5].startswith("The Brier score is ")
    assert "interval" not in said[5]
    assert said[7].startswith("There is no evidence of miscalibration (p = ")
    assert said[8].startswith("There is no evidence of miscalibration (p = ")
    above = own.variational_error_test(*world(0.2, 1)[:2], margin=0.02)
    assert str(above.sentence).startswith("There is evidence that the calibration error is above 0.020 (p < 0.001)")
    assert not holds(above.sentence.claims[1], KnownTruth.about({"true values": {"variational_error": 0.0}}))


def test_a_point_has_no_picture():
    same = cal.interval("bs", [0, 1] * 10, [0.5] * 20, rng=0, n_resamples=19)
    assert "<svg" not in same._repr_html_()


def test_the_numbers_of_a_metric_with_several_stand_in_rows():
    shown = RESULTS["several"]()._repr_html_()
    assert "<td>intercept</td>" in shown
    assert "<td>slope</td>" in shown


@pytest.mark.parametrize("name", ["ece", "cis.slope", "e50", "laece"])
def test_a_metric_of_the_catalogue_shows_what_it_tells_you(name):
    metric = cal.catalogue[name]
    assert repr(metric) == f"Entry({name!r}, name={metric.title!r}, family={metric.family!r})"
    shown = metric._repr_html_()
    assert shown.startswith(f"<p>{escaped(str(metric.meaning))}</p>")
    assert f"calibrary.{metric.function.__name__}" in shown
    assert shown.count("<tr>") <= 8


def test_the_picture_of_a_metric_shows_what_the_study_says_of_it():
    shown = cal.catalogue["ece"]._repr_html_()
    by = stored()["sizes"]["1000"]["ece"]["power_by_family"]
    assert f"over-confidence: {by['over-confident']:.0%}; under-confidence: {by['under-confident']:.0%}" in shown
    assert "It nearly always detects over-confidence, different errors in 2 groups, an error in one region" in shown
    assert cal.catalogue["cis"]._repr_html_().count('class="detected"') == 2  # the intercept and the slope


def test_fields_are_written_by_what_they_are():
    shown = str(own.hosmer_lemeshow_test(Y, Q)._repr_html_())
    assert "the alternative that fits best" not in shown  # its own words are about the misfit, not an alternative
    few = {"n_resamples": 99, "rng": 0}
    assert "<td>level</td><td>95%</td>" in str(cal.interval("bs", Y, P, **few)._repr_html_())
    kuiper = own.kuiper_calibration_error_test(Y, Q)
    assert f"<td>log_pvalue</td><td>{number(kuiper.log_pvalue)}</td>" in str(kuiper._repr_html_())
    assert f"<td>signed</td><td>{number(kuiper.signed[0])}, {number(kuiper.signed[1])}</td>" in str(
        kuiper._repr_html_()
    )
    bins = cal.reliability_bins(Y, P)
    assert f"<td>{bins.weight[0]:,.0f}</td>" in str(bins._repr_html_())


def test_the_overall_test_and_the_power_of_a_test_are_sentences_and_tables():
    decision = cal.decide(cal.predictions(Y, P), cal.Question(rng=0))
    shown = str(decision._repr_html_())
    assert shown.startswith("<p>There is evidence of miscalibration (overall test, p &lt; 0.005).</p>")
    assert "DecisionRow(" not in shown
    assert "<td>Spiegelhalter&#x27;s z</td>" in shown or "<td>Spiegelhalter's z</td>" in shown
    assert holds(decision.sentence.claims[0], KnownTruth(np.array([0.5]), np.array([0.9]), y=np.array([1])))
    power = cal.power("spiegelhalter", 60, error=0.1, n_resamples=49, rng=0)
    said = (
        "The Spiegelhalter z test (spiegelhalter) at level 5% detects a mean absolute difference of 0.100 between true "
        "and stated probabilities (over-confident) in "
    )
    assert str(power.sentence) == f"{said}{percent(power.power)} of samples of 60 rows."
    size = cal.sample_size("ece", 0.2, n_resamples=49, rng=0)
    assert str(size.sentence).startswith("The test of the expected calibration error (ece) at level 5% needs about ")
