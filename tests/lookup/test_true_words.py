"""What is said about a metric is so: each test holds one sentence of 0.2.0 that was not."""

from __future__ import annotations

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.base.numbers import number
from calibrary.cli.main import app
from calibrary.lookup.review_tables import curve_named
from calibrary.lookup.study_findings import finding, lines, shown, stored, target_of
from calibrary.metrics.machinery.cards import works
from calibrary.reporting.parts import Part
from paths import ROOT

#: Each false sentence of 0.2.0, and the test that holds what is said now.
AUDIT = {
    "a calibrated model reads -0.84 (success rate)": "test_a_value_of_the_study_lies_in_the_range_of_its_metric",
    "scores are recommended because they read near 0": "test_no_score_is_praised_for_a_value_near_0_that_it_has_not",
    "under-confident wherever it is miscalibrated": "test_a_direction_is_evidence_and_names_no_absence",
    "the sign of E/O says which way": "test_a_ratio_shows_the_direction_by_its_side_of_1",
    "SECE of a few hundred rows is mean |y - c|": "test_what_is_said_of_sece_on_few_rows",
    "every metric has a test": "test_the_evidence_counts_the_metrics_with_a_test",
    "ACE is of the predicted class": "test_the_framework_names_the_lens_of_every_metric",
    "the Brier curve is the Murphy diagram": "test_brier_curve_and_murphy_diagram_are_two_curves",
    "options without effect are refused": "test_options_of_another_method_are_refused",
    "intervals of evaluate are bootstrap intervals": "test_small_statements_of_the_documentation",
    "the figure's ECE has the interval [0.014, 0.066]": "tests/plots/test_plots.py",
    "a calibrated model reads 0.059, and 0.064": "test_the_page_and_the_gain_say_one_number",
    "5% on a page of another level": "test_one_level_on_a_page",
    # names
    "ECE-DEBIAS is the square without its root; one name, two meanings": "tests/lookup/test_names.py",
    # random numbers
    "rng=0 is the stream of the user's default_rng(0)": "tests/project/test_draws.py",
    # figures
    "the default figures 1 to 3 are the review's": "tests/plots/test_review_figures.py",
    # advice
    "the advice agrees with the review's own": "tests/lookup/test_recommendation.py",
    # what was missing of the review
    "Table 2, Table 1 and the review's numbers of rows": "tests/lookup/test_review_tables.py",
    "the spline and the order-preserving family": "tests/maps/test_maps.py",
    "the whole portfolio is compared": "tests/study/test_portfolio.py",
    "inputs that belong to no class": "tests/secondorder/test_outside.py",
    "epistemic uncertainty": "tests/secondorder/test_ensemble.py",
    "the law of SBCT draws nothing": "tests/lookup/test_review_tables.py",
    "sources from memory are marked": "test_a_source_that_was_not_compared_is_marked_for_developers_alone",
    # checks that could not fail
    "every construct computes, and constants are noticed": "tests/lookup/test_constructs.py",
    "a fault is not shown as a metric that does not apply": "tests/evaluation/test_evaluate.py",
    "thresholds and planning numbers are guarded": "tests/inference/test_planning_numbers.py",
    "every sentence is a claim that is held to the truth": "tests/reporting/test_claims.py",
    "so are the sections of a page and the sentences of results": "tests/reporting/test_page_claims.py",
    "so are the sentences of notebooks": "tests/metrics/test_shown_results.py",
    "so are those of the MCP server": "tests/cli/test_mcp.py",
    "so are the lines of explain, and reasons and cautions of recommend": "tests/lookup/test_metric_claims.py",
    "nothing catches every exception to call it skipped": "tests/project/test_refusals.py",
    "figures saved without a tight box are whole": "tests/plots/test_whole_figures.py",
}


def test_every_line_of_the_audit_has_its_test():
    for name in AUDIT.values():
        assert name in globals() or (ROOT / name).exists(), name


def test_a_source_that_was_not_compared_is_marked_for_developers_alone():
    assert any(not work.checked for work in works().values())
    for entry in cal.catalogue.values():
        assert not any("from memory" in str(text) for text in (*entry.references, entry.function.__doc__)), entry.id
    for id in ("wcr", "hl"):
        assert "from memory" not in " ".join(CliRunner().invoke(app, ["explain", id]).output.split())


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_value_of_the_study_lies_in_the_range_of_its_metric(n_classes):
    for name in stored()["numbers"]:
        entry = cal.catalogue[name.split(",")[0].split(".")[0]]
        if "," in name:
            continue
        for n in (100, 1000, 30_000):
            found = finding(entry.id, n, n_classes)
            if found.expected_by_chance is not None:
                assert entry.range[0] <= found.expected_by_chance <= entry.range[1], (name, found.expected_by_chance)
                assert found.null_deviation is None
                assert f"shows about {number(found.expected_by_chance)}" in found.sentence
            if found.null_deviation is not None:
                assert entry.better == "perfect", name
                assert found.null_deviation >= 0.0


def test_the_study_shows_what_the_metric_gives():
    """The number itself, on calibrated predictions that the study has not drawn."""
    rng = np.random.default_rng(5)
    for id in ("sr", "pss", "sf1", "auroc", "hcs", "cal", "wcr"):
        values = []
        for _ in range(6):
            c = rng.beta(1.0, 1.0, 1000)
            values.append(float(cal.compute(id, rng.random(1000) < c, c)))
        assert abs(np.mean(values) - finding(id, 1000).expected_by_chance) < 0.15, id
    assert shown("sr", -0.8439) == "0.844"
    assert shown("wcr", 0.033) == "0.967"
    assert shown("eo", 0.088) == "1 ± 0.088"
    assert shown("ece, 10 width", 0.02) == "0.020"
    assert target_of("cis.slope").ideal == 1.0
    assert lines("eo")["study, calibrated"].startswith(
        "the values of calibrated models differ from 1 by 0.163 / 0.088 / 0.018 on average"
    )


def test_the_study_of_one_metric_shows_its_own_value():
    said = CliRunner().invoke(app, ["study", "show", "sr"])
    text = said.output if said.exit_code == 0 else CliRunner().invoke(app, ["study", "sr"]).output
    assert "-0.84" not in text
    assert "lying" not in text


def test_no_score_is_praised_for_a_value_near_0_that_it_has_not():
    for goal in ("compare", "measure", "train"):
        for r in cal.recommend("binary", goal, n=200, most=200):
            if any("near 0" in reason for reason in r.reasons):
                entry = cal.catalogue[r.id]
                assert entry.unbiased or (entry.perfect == 0.0 and finding(r.id, 200).expected_by_chance <= 0.035), r.id
    assert [r.id for r in cal.recommend("binary", "compare", n=200, most=2)] == ["bs", "nll"]


# -- a direction ---------------------------------------------------------------------------------------


def two_directions(n, seed):
    """Over-confident above 0.58 and under-confident below."""
    rng = np.random.default_rng(seed)
    c = rng.random(n)
    truth = np.where(c > 0.58, c - 0.6 * (c - 0.58), c + 0.12 * np.sin(np.pi * c / 0.58))
    return (rng.random(n) < truth).astype(int), c


def test_a_direction_is_evidence_and_names_no_absence():
    found = [cal.confidence_direction(*two_directions(200, seed), n_resamples=99) for seed in range(12)]
    assert {f.finding for f in found} & {"over-confident", "under-confident"}  # the case of which 0.2.0 said too much
    for each in found:
        assert "wherever" not in str(each)
        assert str(each) == each.sentence
        assert str(each).startswith(("There is evidence of", "There is no evidence of"))
        assert f"{number(each.over)} comes from bins whose confidence is too high" in str(each)
        assert each.over + each.under == pytest.approx(each.ece)


def test_a_ratio_shows_the_direction_by_its_side_of_1():
    for r in cal.recommend("binary", "explain", most=50):
        entry = cal.catalogue[r.id]
        for reason in r.reasons:
            if "its sign" in reason:
                assert entry.range[0] < 0.0, r.id
            if "the side of" in reason:
                assert "1" in reason, r.id
    said = {r.id: r.reasons[0] for r in cal.recommend("binary", "explain", most=50)}
    assert said["eo"].startswith("the side of 1")
    assert said["ecd"].startswith("its sign")
    assert "signed" not in cal.catalogue["nses"].use


# -- single statements ---------------------------------------------------------------------------------


def test_what_is_said_of_sece_on_few_rows():
    rng = np.random.default_rng(0)
    for n, near in ((30, True), (200, False), (300, False)):
        c = rng.random(n)
        y = rng.random(n) < c
        ratio = cal.compute("sece", y, c) / float(np.mean(abs(y - c)))
        assert (ratio > 0.7) == near, (n, ratio)
    assert "few dozen rows it is close to mean |y - c|" in cal.catalogue["sece"].avoid


def test_the_metrics_and_those_with_a_test_are_counted():
    tested = sum(entry.null or entry.has_test for entry in cal.catalogue.values())
    evidence = (ROOT / "docs/evidence/uncertainty.md").read_text(encoding="utf-8")
    assert f"{tested} metrics have a test of calibration" in evidence
    assert f"{len(cal.catalogue)} metrics" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_evidence_counts_the_metrics_with_a_test():
    text = (ROOT / "docs" / "evidence" / "uncertainty.md").read_text(encoding="utf-8")
    tested = sum(entry.null or entry.has_test for entry in cal.catalogue.values())
    assert f"{tested} metrics have a test of calibration" in text


def test_the_framework_names_the_lens_of_every_metric():
    spoken = {
        "top-label": "predicted class",
        "class-wise": "every class by itself",
        "full": "all classes",
        "binary": "binary",
    }
    rows = re.findall(
        r"\[[^]]+\]\(metrics/(\w+)\.md\) \| ([^|]+) \|", (ROOT / "docs/framework.md").read_text(encoding="utf-8")
    )
    assert len(rows) >= 9
    for id, lens in rows:
        assert lens.strip() in (spoken[cal.catalogue[id].default_lens], "binary"), id


def test_brier_curve_and_murphy_diagram_are_two_curves():
    brier, murphy = curve_named("Brier curve"), curve_named("Murphy diagram")
    assert brier.figure != murphy.figure
    y, c = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.7, 0.9, 0.4, 0.3])
    with pytest.raises(cal.UnknownMetricError, match="Brier curve is a curve"):
        cal.compute("Brier curve", y, c)
    from calibrary.plots import brier_curve, murphy_data

    one, other = brier_curve(y, c), murphy_data(y, c)
    area = float(np.diff(other.threshold) @ (other.cost[1:] + other.cost[:-1])) / 2.0
    assert one.area[0] == pytest.approx(2.0 * area)  # "it is twice the Murphy diagram"


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("isotonic", {"true_prob": [0.2, 0.7, 0.9]}), ("isotonic", {"n_bins": 7}), ("isotonic", {"decimals": 1}),
        ("isotonic", {"binning": "mass"}), ("unique", {"closed": "left"}), ("bins", {"decimals": 1}),
        ("true", {"n_bins": 3}),
    ],
)  # fmt: skip
def test_options_of_another_method_are_refused(method, given):
    with pytest.raises(ValueError, match=f"{next(iter(given))}=.* has no effect with method='{method}'"):
        cal.score_decomposition([0, 1, 1], [0.2, 0.7, 0.9], method=method, **given)


def test_small_statements_of_the_documentation():
    assert "bootstrap interval" not in cal.evaluate.__doc__
    assert "fewer for large data" not in cal.report.__doc__
    assert ".pdf" in cal.Report.save.__doc__
    assert r"\log \left( c_i (1 - c_i) \right)" in cal.dawid_sebastiani_score.__doc__
    for features in (True, False):
        for r in cal.recommend(features=features, most=50):
            assert "uses the by" not in " ".join(r.reasons)


def test_the_page_and_the_gain_say_one_number():
    rng = np.random.default_rng(0)
    c = rng.beta(0.6, 0.6, 400)
    y = rng.random(400) < 1 / (1 + np.exp(-0.4 * np.log(c / (1 - c))))
    gain = cal.recalibration_gain(y, c, folds=10, rng=0)
    page = cal.report(y, c, metrics=["ece"], n_resamples=99)
    help = next(s for s in page.sections if s.key == "help")
    assert gain.advice is not None
    assert help.data["error"]["calibrated"] == pytest.approx(gain[gain.advice].ece_calibrated, rel=1e-9)
    assert "is expected by chance" in help.data["sentence"]
    chance = re.search(r"about ([0-9.]+) is expected", help.data["sentence"])[1]
    assert f"about {chance} is expected" in gain.sentence


def test_one_level_on_a_page():
    assert Part(0.2, name="a", n=100, pvalue_adjusted=0.03).clear
    assert not Part(0.2, name="a", n=100, pvalue_adjusted=0.03, alpha=0.01).clear
    rng = np.random.default_rng(3)
    c = rng.random(300)
    y = (rng.random(300) < np.clip(c + 0.05, 0, 1)).astype(int)
    segment = np.where(rng.random(300) < 0.5, "a", "b")
    found = {}
    for level in (0.99, 0.5):
        page = cal.report(
            y, c, metrics=["ece"], n_resamples=99, confidence_level=level, by={"s": segment}, time=np.arange(300)
        )
        parts = next(s for s in page.sections if s.key == "affected").data["segments"]
        assert all("alpha" not in part for part in parts)
        said = next(s for s in page.sections if s.key == "time").sentences
        found[level] = next(text for text in said if "larm" in text)
    assert "at most 1% of calibrated streams" in found[0.99]
    assert "at most 50% of calibrated streams" in found[0.5]


def test_without_draws_a_direction_is_judged_at_the_level_of_the_page():
    rng = np.random.default_rng(2)
    c = rng.random(400)
    y = (rng.random(400) < c - 0.055).astype(int)
    clear = {}
    for level in (0.6, 0.9999):
        page = cal.report(y, np.clip(c, 0, 1), metrics=["ece"], n_resamples=0, confidence_level=level)
        clear[level] = "not significant" not in page.statements[0]
    assert clear == {0.6: True, 0.9999: False}
