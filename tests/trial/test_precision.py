"""Rows for a width: pmvalsampsize's values, the same formulas solved exactly, and widths measured by simulation."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

import calibrary as cal
from calibrary.trial.law import law_of
from each import amount
from paths import ROOT
from truths import KnownTruth, holds

HERE = ROOT / "tests" / "reference" / "trial"
PLAN = json.loads((HERE / "plan.json").read_text())
WITH_LAW = [
    case | {"how": dict(zip(("lp", "law"), (case["law"].get("normal"), case["law"].get("beta")), strict=True))}
    for case in PLAN["cases"]
]


def sample():
    return [float(row["p"]) for row in csv.DictReader((HERE / "centres.csv").read_text().splitlines())]


@pytest.mark.parametrize("case", WITH_LAW)
def test_rows_equal_the_exact_formulas_and_pmvalsampsize(case):
    widths, exact, how = case["widths"], case["exact"], case["how"]
    oe = cal.plan("oe", width=widths["oe"], prevalence=case["prevalence"], value=case["oe_value"])
    c = cal.plan("auroc", width=widths["c"], prevalence=case["prevalence"], value=case["c"])
    slope = cal.plan("cis.slope", width=widths["slope"], **how)
    citl = cal.plan("citl", width=widths["slope"], **how)
    brier = cal.plan("bs", width=case["brier_width"], **how)
    for found, name in ((oe, "oe"), (slope, "slope"), (citl, "citl"), (c, "c"), (brier, "brier")):
        assert found.n == exact[name]["n"]
        assert found.standard_error == pytest.approx(exact[name]["se"], rel=2e-3 if name == "c" else 1e-9)
        assert found.events == math.ceil(found.n * found.prevalence - 1e-9)
        theirs = case["pmvalsampsize"]["default"].get(name)
        assert theirs is None or found.n == pytest.approx(theirs, rel=0.006, abs=1.5)


def test_the_means_of_a_law_are_those_of_the_reference():
    for case in WITH_LAW:
        law, facts = law_of(**case["how"]), case["law_facts"]
        assert law.prevalence == pytest.approx(facts["prevalence"], rel=1e-9)
        assert law.c_statistic == pytest.approx(facts["c"], abs=1e-3)  # the reference has 200 points
        found = [law.information(k) for k in (0, 1, 2)]
        assert found == pytest.approx([facts["i00"], facts["i01"], facts["i11"]], abs=1e-9)


def test_rows_of_given_predictions():
    given, exact, widths = sample(), PLAN["sample"]["exact"], PLAN["sample"]["widths"]
    asked = {"oe": ("oe", widths["oe"]), "cis.slope": ("slope", widths["slope"]), "auroc": ("c", widths["c"])}
    asked |= {"citl": ("citl", widths["slope"]), "bs": ("brier", 0.02)}
    for metric, (name, width) in asked.items():
        assert int(cal.plan(metric, width=width, y_prob=given)) == exact[name]["n"]


def test_net_benefit_with_given_and_with_derived_shares():
    case = PLAN["net_benefit"]
    shares = {"sensitivity": case["sens"], "specificity": case["spec"]}
    found = cal.plan("net_benefit", width=case["width"], prevalence=case["prev"], threshold=case["t"], **shares)
    assert found.n == case["exact"]["n"]
    of_law = cal.plan("net_benefit", width=0.2, lp=(-2, 1), threshold=0.15)
    of_sample = cal.plan("net_benefit", width=0.2, y_prob=law_of(lp=(-2, 1)).quantiles(100_000), threshold=0.15)
    assert of_law.n == pytest.approx(of_sample.n, abs=2)


@pytest.mark.parametrize("metric", ["cis.slope", "cis.intercept", "citl", "bs"])
def test_the_formula_and_the_simulated_width_agree(metric):
    formula = cal.plan(metric, width=0.08 if metric == "bs" else 0.6, law=(2, 3))
    simulated = cal.plan(metric, width=formula.width, law=(2, 3), method="simulation", n_resamples=6)
    assert simulated.method == "simulation"
    assert simulated.n == pytest.approx(formula.n, rel=0.15)


def test_the_sentence_of_oe_gives_the_rows_of_our_narrower_interval():
    found = cal.plan("oe", width=0.2, law=(1, 1))
    assert found.n == 386
    assert "257 rows give its interval this width" in found.sentence
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(30):
        p = rng.random(257)
        widths.append(np.ptp(list(cal.interval("oe", (rng.random(257) < p).astype(int), p))))
    assert np.mean(widths) == pytest.approx(0.2, rel=0.06)


def test_ece_is_planned_by_simulation_and_reaches_its_width():
    found = cal.plan("ece", width=0.2, law=(1, 1), n_resamples=8)
    assert found.method == "simulation"
    assert "about" in found.sentence
    rng = np.random.default_rng(1)
    widths = []
    for _ in range(amount(8, 20)):
        p = rng.random(found.n)
        widths.append(np.ptp(list(cal.interval("ece", (rng.random(found.n) < p).astype(int), p, n_resamples=199))))
    assert np.mean(widths) == pytest.approx(0.2, rel=0.15)


def test_a_value_that_differs_from_the_law_is_stated_with_it():
    said = cal.plan("auroc", width=0.1, lp=(-2, 1), value=0.8, prevalence=0.2).sentence
    assert "the C statistic is 0.800 (that of the predictions is 0.747)" in said
    assert "prevalence of the predictions is 15.5%" in said
    assert "that of the predictions" not in cal.plan("auroc", width=0.1, lp=(-2, 1), value=0.745).sentence


def test_an_error_gives_rows_or_power_and_says_of_what():
    rows = cal.plan("spiegelhalter", error=0.1, n_resamples=99)
    assert int(rows) == cal.sample_size("spiegelhalter", 0.1, n_resamples=99).n
    assert "a mean absolute difference of 0.100 between true and stated probabilities" in rows.sentence
    share = cal.plan("spiegelhalter", error=0.1, n=300, law=(2, 2), n_resamples=99)
    assert share.power == cal.power("spiegelhalter", 300, error=0.1, law=(2, 2), n_resamples=99, rng=0).power


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (("oe", {"width": 0.0, "prevalence": 0.1}), "width=0.0 must be a number above 0"),
        (("oe", {"width": float("nan"), "prevalence": 0.1}), "width=nan must be"),
        (("oe", {"width": 0.1, "prevalence": 1.0}), r"prevalence=1.0 is outside \(0, 1\)"),
        (("oe", {"width": 0.1}), "oe needs the prevalence: pass prevalence="),
        (("cis.slope", {"width": 0.1}), "pass lp=.*law=.*y_prob="),
        (("bs", {"width": 0.1, "prevalence": 0.1}), "pass lp=.*law=.*y_prob="),
        (("oe", {"width": 0.1, "lp": (0, 1), "law": (1, 1)}), "lp, law and y_prob exclude each other, and lp and law"),
        (("oe", {"width": 0.1, "lp": (0, 0)}), "the standard deviation must be above 0"),
        (("oe", {"width": 0.1, "law": 3}), "pass the two numbers of a Beta law"),
        (("oe", {"width": 0.1, "y_prob": [0.2, 0.2]}), "y_prob is 0.2 in every row"),
        (("oe", {"width": 0.1, "y_prob": [0.2, 1.2]}), r"1.2 is above 1"),
        (("oe", {}), "width and error exclude each other, and one is needed"),
        (("oe", {"width": 0.1, "error": 0.1}), "width and error exclude each other"),
        (("oe", {"width": 1e-9, "prevalence": 0.1}), "needs more than 10,000,000 rows"),
        (("oe", {"width": 0.1, "prevalence": 0.1, "value": 0}), "O/E must be above 0"),
        (("auroc", {"width": 0.1, "prevalence": 0.1}), "pass lp="),
        (("auroc", {"width": 0.1, "law": (1, 1), "value": 1.0}), "the C statistic must be inside"),
        (("cis", {"width": 0.1, "law": (1, 1)}), "name one, cis.intercept or cis.slope"),
        (("cis", {"error": 0.1}), "name one, cis.intercept or cis.slope"),
        (("bs", {"width": 0.1, "law": (1, 1), "value": 0.2}), "value=0.2 has no use beside bs"),
        (("bs", {"width": 0.1, "law": (1, 1), "sensitivity": 0.2}), "sensitivity=0.2 has no use"),
        (("bs", {"error": 0.1, "prevalence": 0.2}), "prevalence=0.2 has no use beside error"),
        (("bs", {"width": 0.1, "law": (1, 1), "n": 20}), "n=20 has no use beside width"),
        (("net_benefit", {"width": 0.1, "law": (1, 1)}), "net_benefit needs threshold="),
        (("net_benefit", {"width": 0.1, "prevalence": 0.2, "threshold": 0.1}), "needs sensitivity and specificity"),
        (("ece", {"width": 0.1, "law": (1, 1), "method": "formula"}), "use method='simulation' for ece"),
        (("ece", {"width": 0.1, "law": (1, 1), "prevalence": 0.2}), "prevalence=0.2 differs"),
    ],
)
def test_what_cannot_be_planned_gets_one_sentence(call, sentence):
    metric, settings = call
    with pytest.raises(cal.RefusedError, match=sentence):
        cal.plan(metric, **settings)


def test_the_sentence_states_the_rows_and_events_of_the_formula():
    case = WITH_LAW[0]
    n = case["exact"]["slope"]["n"]
    truth = {"n": n, "events": math.ceil(n * case["law_facts"]["prevalence"])}
    (claim,) = cal.plan("cis.slope", width=case["widths"]["slope"], **case["how"]).sentence.claims
    assert holds(claim, KnownTruth(np.array([0.5]), np.array([0.5]), measured=truth))
    assert not holds(claim, KnownTruth(np.array([0.5]), np.array([0.5]), measured={**truth, "n": n + 1}))
