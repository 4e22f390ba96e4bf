"""The sections of a report below its answer: every sentence is true of its numbers, and what is too little is said.

Each test of words names what would make the sentence false: a case is a set of numbers and the sentence they allow.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.numbers import number, percent
from calibrary.data.belonging import as_times
from calibrary.data.matches import Matches
from calibrary.evaluation import evaluate_data
from calibrary.inference.overall.sequential import ALTERNATIVES, drift, log_ratios
from calibrary.inference.result import Estimate
from calibrary.metrics.segments import SegmentsTestResult
from calibrary.plots.axis import WHOLE, axis_of
from calibrary.question import Question
from calibrary.recalibrate import MapGain, RecalibrationGain
from calibrary.reporting import affected, decisions, help, parts, period, provenance
from calibrary.reporting.compared import overlay, shared_axis
from calibrary.reporting.figures import picture
from calibrary.reporting.sections import OF_RESULTS, ORDER, SECTIONS, Context, made
from calibrary.reporting.settings import ReportSettings

# -- data ------------------------------------------------------------------------------------------------


def context(data, *, draws=49, metrics=("ece",), primary="ece", asked=None, **question):
    asked = {"primary": primary, **(asked or {})}
    asked["about"] = {name: asked.pop(name) for name in ("source", "command") if name in asked}
    data = data.in_units(asked.get("units")).at_times(asked.get("time"))
    asks = Question(n_resamples=draws or 1, rng=0, **question)
    table = evaluate_data(
        data, asks, metrics=list(metrics), intervals=draws > 0, tests=draws > 0, primary=primary if draws else None
    )
    return Context(data, asks, table, draws, ReportSettings(**asked))


def bent(n, slope=1.0, seed=0):
    """Confidences and labels whose log odds are ``slope`` times those stated; 1 is calibrated."""
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    truth = c**slope / (c**slope + (1 - c) ** slope)
    return (rng.random(n) < truth).astype(int), c


def several(n, k, factor=1.0, seed=0):
    rng = np.random.default_rng(seed)
    z = 2.0 * rng.normal(size=(n, k))
    q, truth = (np.exp(f * z) / np.exp(f * z).sum(axis=1, keepdims=True) for f in (1.0, factor))
    return np.minimum((truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1), q


def detections(n=600, n_images=60, seed=0, power=1.7):
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 2, n)
    correct = rng.random(n) < score**power
    image = np.append(np.arange(n_images), rng.integers(0, n_images, n - n_images))
    return cal.matched_detections(
        correct, score, iou=np.where(correct, 0.7, 0.0), category=rng.integers(0, 3, n), image=image
    )


def texts(drawn):
    figure = getattr(drawn, "figure", drawn)
    return " ".join(t.get_text() for t in figure.findobj(match=lambda a: hasattr(a, "get_text")))


# -- the page ---------------------------------------------------------------------------------------------


def test_who_is_affected_says_what_a_map_for_each_segment_would_do():
    rng = np.random.default_rng(0)
    c = rng.beta(2, 3, 1200)
    site = np.array(["north", "south"])[rng.integers(0, 2, 1200)]
    off = np.where(site == "south", 1.2, 0.0)
    y = (rng.random(1200) < 1 / (1 + (1 - c) / c * np.exp(-off))).astype(int)
    found = affected.affected(context(cal.predictions(y, c), draws=0, asked={"by": {"site": site}}))
    said = [s for s in found.sentences if s.startswith("A map for each segment of site, shrunk")]
    assert len(said) == 1
    # the worst-segment test alone says which segments are miscalibrated; this test's p-values are columns
    assert "significantly" not in said[0]
    assert "p (one map)" in found.tables[-1].head
    assert found.data["own_maps"][0]["worth"]
    assert found.tables[-1].folded
    calm = (rng.random(1200) < c).astype(int)
    found = affected.affected(context(cal.predictions(calm, c), draws=0, asked={"by": {"site": site}}))
    said = "There is no evidence that a map for each segment of site improves"
    assert any(sentence.startswith(said) for sentence in found.sentences)


def test_every_place_on_the_page_has_a_maker():
    assert {*SECTIONS, *OF_RESULTS} == set(ORDER)


def test_a_page_that_was_asked_for_nothing_has_what_needs_no_asking():
    assert [s.key for s in made(context(cal.predictions(*bent(200)), draws=19))] == ["help", "provenance"]
    assert [s.key for s in made(context(cal.predictions(*several(200, 3)), draws=0))] == [
        "help", "classes", "provenance"
    ]  # fmt: skip


# -- what would help ----------------------------------------------------------------------------------------


def gain_of(advice, gain=0.083, se=0.016):
    row = MapGain("platt", "Platt scaling", 0.5, 0.5 - gain, gain, se, 0.048, 0.012, 0.011)
    nothing = SimpleNamespace(binary=False)
    return RecalibrationGain(
        (row,), advice, 0.5, 0.048, 0.011, "nll", 100, 2, 10, 15, 0.01, 0.0, 0, {}, nothing, {}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("advice", "errors", "sentence"),
    [
        # false if the gain, its error or any of the three errors were another number
        (
            "platt", help.Readings("ECE", 0.048, 0.012, 0.011),
            "Platt scaling would lower the log loss by 0.083 (se 0.016) and bring the ECE from 0.048 to 0.012; about "
            "0.011 is expected by chance.",
        ),
        # false if it said "bring": the error does not fall
        (
            "platt", help.Readings("ECE", 0.010, 0.012, 0.011),
            "Platt scaling would lower the log loss by 0.083 (se 0.016), though the ECE would go from 0.010 to 0.012; "
            "about 0.011 is expected by chance.",
        ),
        # nothing was drawn, so that nothing is said about calibrated models
        (
            "platt", help.Readings("D-ECE", 0.048, 0.012, math.nan),
            "Platt scaling would lower the log loss by 0.083 (se 0.016) and bring the D-ECE from 0.048 to 0.012.",
        ),
        # the page has no error to speak of
        (
            "platt", help.Readings("", math.nan, math.nan, math.nan),
            "Platt scaling would lower the log loss by 0.083 (se 0.016).",
        ),
        # false if a map gained more than two standard errors
        (
            None, help.Readings("ECE", 0.048, 0.012, 0.011),
            "No evidence that recalibration would help: no map lowers the log loss by more than two standard errors "
            "(best: Platt scaling, 0.083, se 0.016).",
        ),
    ],
)  # fmt: skip
def test_the_advice_in_words(advice, errors, sentence):
    gain = gain_of(advice)
    assert help.advice(gain, gain.rows[0], errors) == sentence


@pytest.mark.parametrize(
    ("data", "question"),
    [
        (lambda: cal.predictions(*bent(400, 0.4)), {}),
        (lambda: cal.predictions(*bent(400, 0.4)), {"options": {"n_bins": 7}}),
        (lambda: cal.predictions(*several(400, 3, 0.4)), {}),
        (lambda: cal.predictions(*several(400, 3, 0.4)), {"lens": "class-wise", "options": {"n_bins": 5}}),
    ],
)
def test_the_error_before_and_after_is_the_pages_own(data, question):
    asked = context(data(), **question)
    made_of = help.recalibration(asked)
    error = made_of.data["error"]
    gain = cal.recalibration_gain(asked.p, n_bins=asked.question.options.get("n_bins", 15), rng=0)
    after = gain.cross_fitted[made_of.data["advice"]]
    assert error["before"] == asked.evaluation["ece"]
    options = {**asked.question.options, "lens": asked.question.lens}
    assert error["after"] == pytest.approx(cal.expected_calibration_error(asked.p.y, after, **options), abs=1e-12)
    said = help.advice(
        gain, gain[gain.advice], help.Readings("ECE", error["before"], error["after"], error["calibrated"])
    )
    assert made_of.sentences[0].startswith(said)
    cells = {row[0]: row for row in made_of.tables[0].rows}
    assert cells["not recalibrated"][4] == error["before"]
    assert [row[0] for row in made_of.tables[0].rows if row[-1] == "use this"] == [gain[gain.advice].name]


def test_the_figure_of_the_map_shows_the_pages_numbers():
    asked = context(cal.predictions(*several(400, 3, 0.4)), lens="class-wise")
    found = help.recalibration(asked)
    shown = texts(found.figures[0].draw())
    assert f"not recalibrated: ECE {number(asked.evaluation['ece'])}" in shown
    assert f"ECE {number(found.data['error']['after'])}" in shown


def test_what_a_calibrated_model_reads_is_the_mean_over_redrawn_labels():
    asked = context(cal.predictions(*bent(300, 0.4)), draws=199)
    found = help.recalibration(asked).data
    gain = cal.recalibration_gain(asked.p, rng=0)
    drawn = cal.expected_by_chance("ece", None, gain.cross_fitted[found["advice"]], n_resamples=199, rng=0)
    # the mean is known exactly here, and the draws scatter about it
    assert found["error"]["calibrated"] == pytest.approx(drawn.mean, abs=4.0 * np.std(drawn.values) / 199**0.5)
    assert found["error"]["calibrated"] == gain[found["advice"]].ece_calibrated


def test_calibrated_predictions_are_hardly_ever_advised_to_be_recalibrated():
    # false if the rule acted on noise: 40 samples at 5% give 6 or more in 1.4% of runs
    acted = [
        cal.recalibration_gain(cal.predictions(*bent(150, seed=seed)), maps=("temperature", "platt", "beta")).advice
        for seed in range(40)
    ]
    assert sum(a is not None for a in acted) <= 5


def test_a_detectors_map_is_of_its_confidence_and_keeps_images_together():
    asked = context(detections(), metrics=("d_ece",), primary="d_ece", draws=19)
    found = help.recalibration(asked)
    assert "bring the D-ECE from" in found.sentences[0]
    assert "a map that was fitted to other images" in found.sentences[1]
    assert found.data["error"]["before"] == asked.evaluation["d_ece"]
    gain = cal.recalibration_gain(asked.data, rng=0)
    moved = replace(asked.data, score=gain.cross_fitted[gain.advice], again=None)
    assert found.data["error"]["after"] == pytest.approx(cal.detection_expected_calibration_error(moved), abs=1e-12)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (lambda: cal.predictions(*bent(49)), "49 rows are too few"),
        (
            lambda: cal.predictions([1] * 9 + [0] * 91, np.linspace(0.01, 0.4, 100)),
            "only 9 rows are not of the most frequent",
        ),
        (lambda: cal.predictions(np.full(100, 0.5), np.full(100, 0.5)), "labels are shares"),
    ],
)
def test_too_little_to_judge_a_map_is_said_and_not_computed(data, why):
    found = help.recalibration(context(data(), draws=0))
    assert why in found.sentences[0]
    assert not found.tables
    assert not found.figures


# -- who is affected ----------------------------------------------------------------------------------------


def segments_test(worst="site = west", p=0.003, mean=(0.3, 0.5), n=4, kuiper=0.2, sigma=6.0, second=1.0):
    table = {
        "segment": (worst, "all rows") if worst != "all rows" else ("all rows", "site = east"),
        "n": np.array([132.0, 400.0]), "mean_label": np.array([mean[1], 0.4]),
        "mean_confidence": np.array([mean[0], 0.4]), "kuiper": np.array([kuiper, 0.1]), "sigma": np.array([sigma, 2.0]),
        "excess": np.zeros(2), "pvalue": np.array([p, second]),
    }  # fmt: skip
    return SegmentsTestResult(sigma, p, 0.1, worst, table, 3.0, 0.0, n + 1, 999)


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        # false if the segment, its size, its means or the p-value were others
        (
            segments_test(),
            "Worst of 4 segments: site = west (132 rows), mean prediction 30%, observed 50% (p = 0.003, adjusted for "
            "4 segments and all rows).",
        ),
        # false if it named a lean: the mean gap is within two standard errors, 0.2 / 6
        (
            segments_test(mean=(0.3, 0.32), p=0.001),
            "Worst of 4 segments: site = west (132 rows), right on average (mean prediction 30%, observed 32%) but "
            "not at "
            "every confidence (p < 0.005, adjusted for 4 segments and all rows).",
        ),
        # false if p were below 0.05
        (
            segments_test(p=0.3),
            "There is no evidence that any segment is miscalibrated (worst-segment test, p = 0.3, adjusted for 4 "
            "segments and all rows); site = west deviates most.",
        ),
        # false if a segment were further off than the whole
        (
            segments_test(worst="all rows"),
            "The evidence of miscalibration is strongest for all rows together (p = 0.003, adjusted for 4 segments and "
            "all rows); no single one of 4 segments is significant.",
        ),
        # false if the segment were not significant by itself, or its size or means were others
        (
            segments_test(worst="all rows", second=0.01),
            "The evidence of miscalibration is strongest for all rows together (p = 0.003, adjusted for 4 segments and "
            "all rows); of 4 segments it is strongest for site = east (400 rows), right on average (mean prediction "
            "40%, observed 40%) but not at every confidence (p = 0.01).",
        ),
    ],
)
def test_the_worst_segment_in_words(test, sentence):
    assert affected.worst_words(test) == sentence


def small(name, n):
    return parts.Part(math.nan, name=name, n=n)


def part(name, p=math.nan, value=0.1, pvalue=None, draws=99, n=100.0):
    own = {"pvalue": p if pvalue is None else pvalue, "pvalue_adjusted": p, "n_resamples": draws}
    return parts.Part(value, 0.0, 0.2, name=name, n=n, mean_confidence=0.5, frequency=0.5, **own)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([part("a")], "1 segment measured; no test was made, so this shows the size, not the evidence."),
        ([small("a", 12.0)], "No segment is large enough to judge (at least 30)."),
        (
            [part("a"), part("c"), small("b", 12.0)],
            "2 segments measured; no test was made, so this shows the size, not the evidence. Too small to judge: 1 "
            "segment.",
        ),
    ],
)
def test_the_segments_without_a_test_in_words(rows, sentence):
    assert affected.segments_words(rows) == sentence


@pytest.fixture(scope="module")
def by_site():
    """Predictions that are wrong in one site alone, with columns of words, numbers and gaps."""
    rng = np.random.default_rng(3)
    c, site = rng.beta(0.8, 0.8, 900), rng.choice(["north", "south", "west"], 900, p=[0.5, 0.3, 0.2])
    y = (rng.random(900) < np.where(site == "west", c**2, c)).astype(int)
    age = rng.normal(50, 15, 900)
    age[:7] = np.nan
    asked = context(cal.predictions(y, c), draws=49, asked={"by": {"site": site, "age": age}})
    return asked, affected.affected(asked), site, age


def test_the_segment_that_is_wrong_is_found(by_site):
    _, found, _, _ = by_site
    assert found.sentences[0].startswith("Worst of")
    assert "site = west" in found.sentences[0].split("(")[0]
    assert found.data["worst"]["pvalue"] == 0.001
    clear = [s["name"] for s in found.data["segments"] if s["pvalue_adjusted"] < 0.05]
    assert clear
    assert all("site = west" in name for name in clear)


def test_a_segments_numbers_are_those_of_its_rows_alone(by_site):
    asked, found, site, _ = by_site
    west = next(s for s in found.data["segments"] if s["name"] == "site = west")
    rows = site == "west"
    y, c = asked.p.y[rows], asked.p.c[rows]
    assert west["n"] == rows.sum()
    assert (west["mean_confidence"], west["frequency"]) == pytest.approx((c.mean(), y.mean()))
    assert west["value"] == pytest.approx(cal.expected_calibration_error(y, c))
    assert west["low"] < west["value"]
    adjusted = cal.adjust_pvalues([s["pvalue"] for s in found.data["segments"] if s["pvalue"] == s["pvalue"]], "holm")
    assert [s["pvalue_adjusted"] for s in found.data["segments"] if s["pvalue"] == s["pvalue"]] == pytest.approx(
        list(adjusted)
    )


def test_numbers_are_cut_at_quantiles_and_gaps_are_a_segment_that_is_too_small(by_site):
    _, found, _, age = by_site
    names = [s["name"] for s in found.data["segments"]]
    low, high = np.quantile(age[7:], [1 / 3, 2 / 3], method="inverted_cdf")
    assert names[3:7] == [
        f"age = up to {low:.3g}", f"age = above {low:.3g} up to {high:.3g}", f"age = above {high:.3g}",
        "age = (missing)",
    ]  # fmt: skip
    cells = {row[0]: row for row in found.tables[0].rows}
    assert cells["age = (missing)"][1] == 7
    assert cells["age = (missing)"][2:5] == (None, None, None)
    assert found.tables[0].head[-1] == "note"
    assert "too few" in cells["age = (missing)"][-1]
    assert sum(s["n"] for s in found.data["segments"][3:7]) == 900
    assert any(" and " in name for name in names)
    assert any("intersections of fewer than 30 rows" in s for s in found.sentences)


def test_calibrated_segments_are_left_in_peace():
    site = np.repeat(["a", "b", "c"], 100)
    found = affected.affected(context(cal.predictions(*bent(300, seed=2)), asked={"by": site}))
    assert found.sentences[0].startswith("There is no evidence that any segment")
    assert [s["name"] for s in found.data["segments"]] == ["group = a", "group = b", "group = c"]
    assert found.tables[0].head[-1] == "p of its ECE"  # nothing to note


def test_the_smallest_p_value_can_still_be_small_after_adjusting():
    # 49 draws and 8 segments: without more draws the adjusted p-value could not go below 0.16
    c = np.tile(np.linspace(0.02, 0.98, 40), 8)
    y = (c < 0.5).astype(int)  # wrong all over
    found = affected.affected(
        context(cal.predictions(y, c), asked={"by": {"s": np.repeat(np.arange(8), 40).astype(str)}})
    )
    assert max(s["pvalue_adjusted"] for s in found.data["segments"]) <= 0.011


def test_columns_follow_the_rows_that_have_weight():
    y, c = bent(300)
    w = np.ones(300)
    w[::3] = 0
    site = np.where(np.arange(300) % 3 == 0, "gone", "here")
    found = affected.affected(context(cal.predictions(y, c, sample_weight=w), draws=0, asked={"by": {"site": site}}))
    assert [(s["name"], s["n"]) for s in found.data["segments"]] == [("site = here", 200.0)]


def test_more_segments_than_can_be_measured_are_counted():
    y, c = bent(1200)
    by = {"a": (np.arange(1200) % 6).astype(str), "b": (np.arange(1200) // 6 % 5).astype(str)}
    found = affected.affected(context(cal.predictions(y, c), draws=0, asked={"by": by}))
    assert len(found.data["segments"]) == affected.MOST_SEGMENTS
    assert any(s.startswith("26 further segments") for s in found.sentences)


def test_a_detectors_segments_are_of_images():
    m = detections()
    site = np.where(np.arange(m.n_images) < 20, "yard", "street")
    found = affected.affected(context(m, metrics=("d_ece",), primary="d_ece", draws=0, asked={"by": {"site": site}}))
    inside = site[m.image] == "yard"
    yard = next(s for s in found.data["segments"] if s["name"] == "site = yard")
    assert yard["n"] == inside.sum()
    assert yard["frequency"] == pytest.approx(m.correct[inside].mean())
    with pytest.raises(ValueError, match="one value for each of the 60 images"):
        affected.affected(context(m, metrics=("d_ece",), primary="d_ece", draws=0, asked={"by": {"site": [1, 2]}}))


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({}, "by holds no column"),
        ({"a": [1, 2]}, r"by\['a'\] has 2 rows but y_true has 60"),
        ({"a": np.zeros((60, 2))}, "2 dimensions"),
    ],
)
def test_columns_that_cannot_be_read(by, message):
    with pytest.raises(ValueError, match=message):
        affected.affected(context(cal.predictions(*bent(60)), draws=0, asked={"by": by}))


def test_units_are_not_passed_over_in_silence():
    asked = {"by": np.arange(120) % 2, "units": np.arange(120) // 2}
    found = affected.affected(context(cal.predictions(*bent(120)), draws=0, asked=asked))
    assert any("independent here, although some belong to the same unit" in s for s in found.sentences)


# -- the single classes -------------------------------------------------------------------------------------


def test_a_class_predicted_too_often_is_flagged_and_no_other():
    y, q = several(1500, 4, seed=1)
    q = q + np.array([0.12, 0, 0, 0])
    q /= q.sum(axis=1, keepdims=True)
    found = affected.classes(context(cal.predictions(y, q), draws=0))
    rows = {row[0]: row for row in found.tables[0].rows}
    assert rows["0"][-1] == "too high"
    assert found.tables[0].rows[0][0] == "0"
    assert f"0 (expected {percent(q[:, 0].mean())}, observed {percent((y == 0).mean())})" in found.sentences[0]
    fair = affected.classes(context(cal.predictions(*several(1500, 4, seed=1)), draws=0))
    assert fair.sentences == (
        "For none of 4 classes does the observed share differ significantly from the mean confidence.",
    )
    assert fair.tables[0].head[-1] == "class-wise ECE"  # no column in which nothing stands
    assert {len(row) for row in fair.tables[0].rows} == {len(fair.tables[0].head)}


def test_calibrated_classes_are_rarely_flagged():
    flagged = [
        any(r.clear for r in affected.class_rows(cal.predictions(*several(120, 8, seed=s)), Question()))
        for s in range(60)
    ]
    assert sum(flagged) <= 8  # 3 expected at 5% over all classes


def test_of_many_classes_the_worst_ten_come_first_and_the_rest_are_folded():
    found = affected.classes(context(cal.predictions(*several(600, 25)), draws=0))
    first, rest = found.tables
    assert (len(first.rows), len(rest.rows)) == (10, 15)
    assert (first.folded, rest.folded) == (False, True)
    rows = {r.name: r for r in affected.class_rows(cal.predictions(*several(600, 25)), Question())}
    order = [rows[row[0]] for row in (*first.rows, *rest.rows)]
    size = [(not r.clear, -abs(r.mean_prediction - r.frequency)) for r in order]
    assert size == sorted(size)
    assert sum(row[1] for row in (*first.rows, *rest.rows)) == 600


def test_two_classes_have_no_table_and_detections_one_for_their_categories():
    assert affected.classes(context(cal.predictions(*bent(60)), draws=0)) is None
    m = detections()
    found = affected.classes(context(m, metrics=("d_ece",), primary="d_ece", draws=0))
    assert found.tables[0].head[:4] == ("category", "detections", "mean confidence", "precision")
    assert sum(row[1] for row in found.tables[0].rows) == len(m)
    assert found.sentences[0].startswith("3 of 3 categories are significantly miscalibrated on average: ")


def test_weights_count_copies_of_rows():
    y, q = several(200, 3)
    w = np.arange(200) % 3 + 1
    weighted = affected.class_rows(cal.predictions(y, q, sample_weight=w), Question())
    written = affected.class_rows(cal.predictions(np.repeat(y, w), np.repeat(q, w, axis=0)), Question())
    for a, b in zip(weighted, written, strict=True):
        assert (a.n, a.mean_prediction, a.frequency) == pytest.approx((b.n, b.mean_prediction, b.frequency))
        assert a.clear == b.clear


# -- over time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["2026-11-15", "2026-11-16T08:30"], ["2026-11-15", "2026-11-16 08:30:00"]),
        ([datetime.date(2026, 1, 2), None], ["2026-01-02", None]),
        (["2026-11-15T23:00:00-05:00", ""], ["2026-11-16 04:00:00", None]),
        (np.array(["2026-01-02", "NaT"], dtype="datetime64[D]"), ["2026-01-02", None]),
        ([2020, 2021.5], ["2020", "2021.5"]),
        (np.array([3, None], dtype=object), ["3", None]),
    ],
)
def test_times_people_have(given, said):
    time = period.Times(as_times(np.asarray(given)))
    assert [None if gap else time.words(v) for v, gap in zip(time.value, time.missing, strict=True)] == said


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["15.11.2026"], r"time\[0\] = '15.11.2026' is not a date in ISO format"),
        ([True, False], "time contains True and False"),
        (np.array([object()]), "is not a date"),
        (np.zeros((2, 2)), "2 dimensions"),
    ],
)
def test_times_that_cannot_be_read(given, message):
    with pytest.raises(ValueError, match=message):
        as_times(np.asarray(given))


def spread(days, a_day):
    time = np.repeat(np.datetime64("2026-01-05") + np.arange(days), a_day)  # a Monday
    return period.Times(time.astype("datetime64[us]")), (np.ones(len(time)), np.arange(len(time)) % 2.0)


@pytest.mark.parametrize(
    ("days", "a_day", "unit", "n", "first"),
    [
        (10, 120, "day", 10, "2026-01-05"),
        (70, 20, "week", 10, "week of 2026-01-05"),
        (180, 5, "month", 7, "2026-01"),  # a week has 35 rows
        (300, 1, "equal counts", 3, "2026-01-05 to 2026-04-14"),  # a quarter has 90 rows, and it is one year
        (720, 2, "quarter", 8, "2026 Q1"),
        (2200, 1, "year", 7, "2026"),
        (2, 30, "", 0, ""),
        (400, 120, "month", 14, "2026-01"),  # 400 days and 58 weeks are too many to look at
    ],
)
def test_periods_are_the_finest_that_have_enough_rows(days, a_day, unit, n, first):
    time, outcomes = spread(days, a_day)
    found = period.periods_of(time, outcomes)
    assert (found.unit, len(found.names), found.names[0] if found.names else "") == (unit, n, first)
    if n:
        assert (np.diff(found.number) >= 0).all()
        assert np.array_equal(np.unique(found.number), np.arange(n))


def test_periods_of_numbers_and_of_rare_events():
    time = period.Times(np.repeat([2020.0, 2021.0, 2022.0], 200))
    outcomes = np.ones(600), np.arange(600) % 2.0
    assert period.periods_of(time, outcomes).names == ("2020", "2021", "2022")
    rare = np.zeros(600)
    rare[::75] = 1.0  # under three a year: too few to be judged by year, and too few for two halves
    assert period.periods_of(time, (np.ones(600), rare)).names == ()


@pytest.fixture(scope="module")
def turned():
    """Calibrated for 200 days, then over-confident; some rows without a date, in no order."""
    rng = np.random.default_rng(1)
    n = 1500
    day = rng.integers(0, 365, n)
    c = rng.beta(0.8, 0.8, n)
    slope = np.where(day < 200, 1.0, 0.3)
    y = (rng.random(n) < c**slope / (c**slope + (1 - c) ** slope)).astype(int)
    time = (np.datetime64("2025-01-01") + day).astype("datetime64[D]")
    time[:20] = np.datetime64("NaT", "D")
    asked = context(cal.predictions(y, c), asked={"time": time})
    return asked, period.over_time(asked), time


def test_a_change_is_seen_in_its_periods_and_by_the_alarm(turned):
    _, found, _ = turned
    clear = [p["name"] for p in found.data["periods"] if p["pvalue_adjusted"] < 0.05]
    assert clear
    assert min(clear) >= "2025-07"
    alarm = found.data["alarm"]
    assert "2025-07-20" <= alarm["at"] <= "2025-08-20"
    assert "2025-06-20" <= alarm["since"] <= "2025-08-20"
    assert alarm["at"] in found.sentences[1]
    assert alarm["words"].startswith("over-confident")


def test_rows_without_a_time_are_counted_and_left_out(turned):
    _, found, time = turned
    assert sum(p["n"] for p in found.data["periods"]) == (~np.isnat(time)).sum()
    assert "20 rows without a time were left out here." in found.sentences


def test_a_periods_numbers_are_those_of_its_rows_alone(turned):
    asked, found, time = turned
    assert found.data["unit"] == "month"
    for row in found.data["periods"][:2]:
        inside = np.array([str(t)[:7] == row["name"] for t in time])
        assert row["value"] == pytest.approx(cal.expected_calibration_error(asked.p.y[inside], asked.p.c[inside]))


def test_the_figures_over_time_name_the_periods_and_the_alarm(turned):
    _, found, _ = turned
    by_period, monitor = (texts(f.draw()) for f in found.figures)
    assert "2025-01" in by_period
    assert "significantly miscalibrated" in by_period
    assert found.data["alarm"]["at"] in monitor


def test_a_calibrated_stream_raises_no_alarm():
    found = period.over_time(context(cal.predictions(*bent(600, seed=4)), asked={"time": np.arange(600)}))
    assert found.sentences[0] == "In none of 6 periods is the ECE significant after adjustment for their number."
    assert found.sentences[1].startswith("Continuous monitoring would have raised no alarm up to 599 (")


def test_an_alarm_that_no_single_period_shows_is_said_first():
    y, c = bent(2400, seed=3)
    late = np.arange(2400) >= 1400
    y = np.where(late & (np.random.default_rng(0).random(2400) < 0.1), 0, y)  # too high, but little in each period
    found = period.over_time(context(cal.predictions(y, c), draws=19, asked={"time": np.arange(2400) // 100}))
    assert not any(p["pvalue_adjusted"] < 0.05 for p in found.data["periods"])
    assert found.data["alarm"]["at"] is not None
    assert found.sentences[0].startswith("Alarm: ")
    assert found.sentences[1].startswith("In none of 24 periods")


def test_sections_say_whether_rows_are_taken_as_independent():
    y, c = bent(400)
    by = {"site": np.arange(400) % 2}
    alone, units = (
        affected.affected(context(cal.predictions(y, c), draws=0, asked={"by": by, **more})).sentences[-1]
        for more in ({}, {"units": np.arange(400) // 4})
    )
    assert alone == (
        "Rows are assumed to be independent, here and on the whole page. If several rows belong to one patient, "
        "image or prompt, name that column as the unit."
    )
    assert "although some belong to the same unit" in units
    found = affected.affected(
        context(detections(), draws=19, metrics=["d_ece"], primary="d_ece", asked={"by": {"light": np.arange(60) % 2}})
    )
    assert "Images, with all their detections, are resampled" in found.sentences[-1]
    assert found.tables[0].head[1:4] == ("detections", "mean confidence", "precision")
    assert not any(re.search(r"\brows\b", s) for s in found.sentences)


def test_a_category_whose_bins_are_too_small_to_count_shows_no_error():
    """Left-out bins count as perfect: an error of 0.03 beside precision 0.31 for confidence 0.55 would be false."""
    matches = cal.datasets.detections()
    found = affected.classes(context(matches, draws=0, metrics=["d_ece"], primary="d_ece"))
    assert "D-ECE" not in found.tables[0].head
    assert {len(row) for row in found.tables[0].rows} == {len(found.tables[0].head)}
    many = affected.classes(context(detections(3000), draws=0, metrics=["d_ece"], primary="d_ece"))
    at = many.tables[0].head.index("D-ECE")
    assert all(row[at] > 0 for row in many.tables[0].rows)


def test_too_few_rows_over_time_are_said():
    found = period.over_time(context(cal.predictions(*bent(150)), draws=0, asked={"time": np.arange(150)}))
    assert found.sentences == (
        "Calibration over time was not judged: fewer than two periods of 100 rows and 5 of either outcome.",
    )


def test_weight_two_is_the_row_written_twice_over_time():
    y, c = bent(400, 0.5)
    w, day = np.arange(400) % 2 + 1, np.arange(400) // 40
    once = period.over_time(context(cal.predictions(y, c, sample_weight=w), draws=0, asked={"time": day}))
    twice = period.over_time(
        context(cal.predictions(np.repeat(y, w), np.repeat(c, w)), draws=0, asked={"time": np.repeat(day, w)})
    )
    assert once.data["alarm"] == pytest.approx(twice.data["alarm"])
    assert [p["n"] for p in once.data["periods"]] == [p["n"] for p in twice.data["periods"]]


def test_many_rows_of_a_look_taken_together_bet_the_same():
    y, c = bent(9000, 0.9)
    assert period._MANY_ROWS < 9000
    merged = log_ratios(period._bets(cal.predictions(y, c), np.arange(9000), False))
    assert merged == pytest.approx(log_ratios(cal.predictions(y, c)), abs=2e-3)


def test_the_evidence_of_a_change_is_one_on_average():
    # every outcome of three looks of two rows, weighted by its chance: a martingale that begins at 1
    c = np.array([0.2, 0.7])
    total = 0.0
    for labels in itertools.product([0, 1], repeat=6):
        y = np.array(labels).reshape(3, 2)
        chance = float(np.prod(np.where(y == 1, c, 1 - c)))
        total += chance * math.exp(drift(np.array([log_ratios(cal.predictions(row, c)) for row in y])).log_e[-1])
    assert total == pytest.approx(1.0, abs=1e-12)


def test_the_evidence_of_one_look_is_the_plain_e_value_and_what_is_impossible_is_infinite():
    y, c = bent(50)
    ratios = log_ratios(cal.predictions(y, c))[None]
    assert drift(ratios).log_e[0] == pytest.approx(cal.calibration_e_value(y, c, log=True))
    found = drift(np.vstack([ratios, np.full((1, len(ALTERNATIVES)), math.inf), ratios]))
    assert (found.alarm, found.log_e[2], found.pvalue) == (1, math.inf, 0.0)


@pytest.mark.parametrize(
    ("rows", "unit", "sentence"),
    [
        ([part("2026-01", 0.3), part("2026-02", 1.0)], "month",
         "In none of 2 periods (by month) is the ECE significant after adjustment for their number."),
        ([part("2020", 0.3), part("2021", 0.02, 0.2)], "value",
         "Periods: significantly miscalibrated in 1 of 2 periods: 2021 (ECE 0.200, p = 0.02)."),
        ([part(f"2026-0{i}", 0.02, 0.1 + (i == 3)) for i in range(1, 7)], "month",
         "Periods: significantly miscalibrated in 6 of 6 periods (by month), among them the first, the worst and the "
         "last: "
         "2026-01 "
         "(ECE 0.100, p = 0.02); 2026-03 (ECE 1.100, p = 0.02); 2026-06 (ECE 0.100, p = 0.02)."),
        ([part("2026-01"), small("2026-02", 3.0)], "month",
         "2 periods (by month) measured; no test was made, so this shows the size, not the evidence. Too small to "
         "judge: 1 period."),
        ([small("2026-02", 3.0)], "month", "None of 1 period (by month) is large enough to judge (at least 30)."),
    ],
)  # fmt: skip
def test_the_periods_in_words(rows, unit, sentence):
    assert period.periods_words(rows, unit, "ECE") == sentence


def test_a_detectors_time_is_of_images():
    m = detections(900)
    time = np.datetime64("2026-01-01") + np.arange(m.n_images)
    found = period.over_time(context(m, metrics=("d_ece",), primary="d_ece", draws=0, asked={"time": time}))
    assert sum(p["n"] for p in found.data["periods"]) == 900
    assert found.data["alarm"]["at"] is not None


# -- decisions ----------------------------------------------------------------------------------------------


def test_decisions_are_those_of_the_decision_curve():
    y, c = bent(500, 0.4)
    found = decisions.decisions(context(cal.predictions(y, c), draws=0, asked={"thresholds": [0.7, 0.2]}))
    curve = cal.decision_curve(y, c, thresholds=[0.2, 0.7])
    for d, value, all_rows, low in zip(
        found.data["decisions"], curve.net_benefit, curve.treat_all, curve.low, strict=True
    ):
        assert d["net_benefit"] == pytest.approx(cal.net_benefit(y, c, threshold=d["threshold"]))
        assert (d["net_benefit"], d["treat_all"]) == pytest.approx((value, all_rows))
        assert d["low"] == pytest.approx(low, abs=1e-4)  # the same but for N - 1
        assert d["advantage"] == pytest.approx(value - max(all_rows, 0.0))
        assert d["acted"] == (c >= d["threshold"]).mean()
        assert d["advantage_low"] < d["advantage"] < d["advantage_high"]
    assert [d["threshold"] for d in found.data["decisions"]] == [0.2, 0.7]


def test_regret_is_the_cost_that_recalibrated_probabilities_save():
    y, c = bent(500, 0.3)
    view = cal.predictions(y, c)
    found = decisions.assessed(view, np.array([0.2]), 0.95)[0]
    g = decisions._recalibrated(view, 0)
    cost = lambda q: np.where(y == 1, (1 - 0.2) * (q < 0.2), 0.2 * (q >= 0.2)).mean()  # noqa: E731
    assert found.regret.value == pytest.approx(cost(c) - cost(g))
    assert found.regret.low < found.regret.value < found.regret.high


def test_weights_and_units_in_decisions():
    y, c = bent(200, 0.4)
    w = np.arange(200) % 3 + 1
    weighted = decisions.assessed(cal.predictions(y, c, sample_weight=w), np.array([0.3]), 0.95)[0]
    written = decisions.assessed(cal.predictions(np.repeat(y, w), np.repeat(c, w)), np.array([0.3]), 0.95)[0]
    names = ("net_benefit", "low", "high", "advantage_low")
    assert [weighted.to_dict()[x] for x in names] == pytest.approx([written.to_dict()[x] for x in names])
    doubled = cal.predictions(np.repeat(y, 2), np.repeat(c, 2))
    by_unit = decisions.assessed(doubled.in_units(np.repeat(np.arange(200), 2)), np.array([0.3]), 0.95)[0]
    single = decisions.assessed(cal.predictions(y, c), np.array([0.3]), 0.95)[0]
    assert by_unit.net_benefit.standard_error == pytest.approx(single.net_benefit.standard_error)


@pytest.mark.parametrize("units", [None, np.arange(400)], ids=["counted", "row by row"])
def test_the_slider_acts_on_rows_at_the_threshold_too(units):
    y, c = bent(400)
    c = c.round(2)
    view = cal.predictions(y, c) if units is None else cal.predictions(y, c).in_units(units)
    found = decisions.threshold_curve(view, None, 0.95, "frequency", None, [("all", view)])
    t = np.array(found.t)
    acts = c >= t[:, None]
    assert (c == t[:, None]).any()
    assert found.before.alarms == found.segments[0].alarms == pytest.approx(acts.mean(axis=1), rel=1e-4)
    assert found.before.found == found.segments[0].found == pytest.approx((acts & (y == 1)).mean(axis=1), rel=1e-4)
    net = acts * np.where(y == 1, 1.0, -t[:, None] / (1.0 - t[:, None]))
    assert found.before.net == pytest.approx(net.mean(axis=1), rel=1e-4)
    assert found.before.net_se == pytest.approx(net.std(axis=1, ddof=1) / 20.0, rel=1e-4)


def decision(advantage, regret=(0.0, -0.1, 0.1), treat_all=0.1, threshold=0.2):
    of = [Estimate(*each) for each in ((0.1, 0.05, 0.15), advantage, regret)]
    return decisions.Decision(threshold, 0.5, treat_all, *of)


@pytest.mark.parametrize(
    ("d", "sentence"),
    [
        # false if the interval of the difference held 0, or acting on none were the better default
        (
            decision((0.02, 0.01, 0.03)),
            "At threshold 0.2, acting on the model is better than acting on every row, by 20.0 net true positives per "
            "1,000 rows (95% interval 10.0 to 30.0). There is no evidence that recalibration would improve decisions "
            "at this threshold.",
        ),
        (
            decision((-0.02, -0.03, -0.01), treat_all=-0.1),
            "At threshold 0.2, acting on the model is worse than acting on none, by 20.0 net true positives per 1,000 "
            "rows (95% interval 10.0 to 30.0). There is no evidence that recalibration would improve decisions at this "
            "threshold.",
        ),
        (
            decision((0.01, -0.01, 0.03), (0.004, 0.001, 0.007)),
            "At threshold 0.2, acting on the model is not significantly better or worse than acting on every row; the "
            "difference is 10.0 net true positives per 1,000 rows (95% interval -10.0 to 30.0). Recalibrated "
            "probabilities would improve decisions at this threshold: they would lower the cost by 4.0 per "
            "1,000 rows, where a miss costs 0.8 and a false alarm 0.2.",
        ),
    ],
)
def test_a_decision_in_words(d, sentence):
    assert decisions.decision_words(d, 0.95) == sentence


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (bent(20), "20 rows are too few"),
        (([1] * 3 + [0] * 60, np.linspace(0.01, 0.4, 63)), "only 3 rows have the rarer outcome"),
    ],
)
def test_too_little_for_decisions_is_said(data, why):
    found = decisions.decisions(context(cal.predictions(*data), draws=0, asked={"thresholds": 0.5}))
    assert why in found.sentences[0]
    assert not found.tables


def test_thresholds_outside_0_and_1_are_refused_and_none_asks_for_nothing():
    with pytest.raises(ValueError, match=r"thresholds\[0\]=1\.5"):
        context(cal.predictions(*bent(60)), draws=0, asked={"thresholds": [1.5]})
    with pytest.raises(ValueError, match=r"thresholds holds 1\.5"):
        cal.decision_curve(*bent(60), thresholds=[1.5])
    assert decisions.decisions(context(cal.predictions(*bent(60)), draws=0)) is None


def test_the_figure_of_decisions_marks_the_thresholds_in_use():
    y, c = bent(200, 0.5)
    found = decisions.decisions(context(cal.predictions(y, c), draws=19, asked={"thresholds": [0.3]}))
    assert f"0.3: {cal.net_benefit(y, c, threshold=0.3):.3f}" in texts(found.figures[0].draw())


# -- provenance ---------------------------------------------------------------------------------------------


def test_the_digest_can_be_computed_by_hand():
    y, c, w = np.array([0, 1, 1]), np.array([0.25, 0.5, 0.75]), np.array([1.0, 2.0, 3.0])
    by_hand = hashlib.sha256(json.dumps(["0", "1"]).encode())
    for array, kind in ((y, "<i8"), (c, "<f8"), (w, "<f8")):
        by_hand.update(array.astype(kind).tobytes())
    assert provenance.digest(cal.predictions(y, c, sample_weight=w)) == by_hand.hexdigest()


def test_the_digest_tells_rows_and_their_order_apart_and_nothing_else():
    y, c = [0, 1, 1, 0], [0.25, 0.5, 0.75, 0.0]
    same = provenance.digest(cal.predictions(y, c))
    assert provenance.digest(cal.predictions(np.array(y, dtype=bool), np.array(c, dtype=np.float32))) == same
    assert provenance.digest(cal.predictions(y, [0.25, 0.5, 0.75, -0.0])) == same
    others = [
        cal.predictions(y[::-1], c[::-1]), cal.predictions([1, 1, 1, 0], c),
        cal.predictions(y, [0.25, 0.5, 0.75, 1e-9]),
        cal.predictions(y, c, sample_weight=[1, 1, 1, 2]), cal.predictions(["a", "b", "b", "a"], c, labels=["a", "b"]),
    ]  # fmt: skip
    assert len({same, *map(provenance.digest, others)}) == 6


def test_what_went_in_and_what_did_not(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_bytes(b"y,p\n1,0.5\n")
    y, c = bent(60)
    w = np.ones(60)
    w[:2] = 0
    p = cal.predictions(np.where(y == 1, "ill", "well"), c, pos_label="ill", sample_weight=w)
    source = {"path": file, "rows_read": 63, "dropped": {"missing values": 3}}
    command = ["calibrary", "report", "my rows.csv"]
    found = provenance.provenance(context(p, draws=0, asked={"source": source, "command": command, "by": {"site": y}}))
    assert found.data["digest of the file"] == "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()
    assert found.data["rows read"] == 63
    assert found.data["rows"] == 58
    assert found.data["rows dropped"] == {"missing values": 3, "weight 0": 2}
    assert found.data["positive class"] == "ill"
    assert found.data["command"] == "calibrary report 'my rows.csv'"
    assert found.data["by"] == ["site"]
    assert (found.data["seed"], found.data["draws"]) == (0, 0)
    assert found.data["versions"]["calibrary"] == cal.__version__
    assert found.sentences == (
        f"58 rows with digest {found.data['digest'][:12]} (3 rows left out: missing values; 2 rows left out: weight "
        "0).",
    )


def test_a_source_that_is_no_file_is_named_and_no_digest_invented():
    found = provenance.provenance(context(cal.predictions(*bent(60)), draws=0, asked={"source": "warehouse.preds"}))
    assert found.data["source"] == "warehouse.preds"
    assert "digest of the file" not in found.data


def test_the_lens_and_the_matching_rule_are_those_that_were_used():
    found = provenance.provenance(context(cal.predictions(*several(60, 3)), draws=0))
    assert found.data["lens of the headline and the figures"] == "top-label"
    assert "positive class" not in found.data
    m = detections()
    assert isinstance(m, Matches)
    matched = provenance.provenance(context(m, metrics=("d_ece",), primary="d_ece", draws=0))
    assert matched.data["matching rule"] == "matched before"
    assert matched.data["images"] == 60
    assert matched.sentences[0].startswith("600 detections with digest ")


def test_the_data_of_every_section_are_plain():
    asked = {"by": np.arange(300) % 2, "time": np.arange(300), "thresholds": [0.5], "source": "x", "command": "y"}
    for found in made(context(cal.predictions(*bent(300)), draws=19, asked=asked)):
        json.dumps(found.data, allow_nan=True)
        for table in found.tables:
            assert all(len(row) == len(table.head) for row in table.rows)
            assert all(cell is None or isinstance(cell, str | int | float) for row in table.rows for cell in row)


# -- through the report ---------------------------------------------------------------------------------------


def test_a_report_has_the_sections_it_was_asked_for_and_says_one_number_everywhere():
    y, c = bent(300, 0.4)
    site = np.repeat(["a", "b", "c"], 100)
    answer = cal.report(
        y, c, metrics=["ece"], n_resamples=49, by={"site": site}, time=np.arange(300), thresholds=[0.3],
        source="rows.csv", command="calibrary report rows.csv",
    )  # fmt: skip
    found = {s.key: s for s in answer.sections}
    assert list(found) == ["help", "affected", "time", "decisions", "provenance"]
    assert f"bring the ECE from {number(answer.evaluation['ece'])} to" in found["help"].sentences[0]
    assert number(answer.evaluation["ece"]) in answer.headline
    assert found["provenance"].data["command"] == "calibrary report rows.csv"
    assert found["provenance"].data["digest"] == provenance.digest(cal.predictions(y, c))


def test_groups_are_the_column_group_of_the_sections():
    y, c = bent(300)
    answer = cal.report(y, c, metrics=["ece"], n_resamples=0, by={"group": (np.arange(300) % 12).astype(str)})
    assert len(answer.groups) == 12  # numbers given as groups are names, never cut
    section = next(s for s in answer.sections if s.key == "affected")
    assert [f"group = {g.name}" for g in answer.groups] == [s["name"] for s in section.data["segments"]]
    classes = cal.report(*several(300, 4), metrics=["ece"], n_resamples=0)
    rows = affected.class_rows(cal.predictions(*several(300, 4)), Question())
    assert classes.classes == rows


def test_the_alarm_is_raised_at_the_first_look_that_reaches_one_over_alpha():
    quiet, won = np.zeros(len(ALTERNATIVES)), np.full(len(ALTERNATIVES), 1.0)
    found = drift(np.array([quiet, won, won, won, won]))
    for t, reached in enumerate(np.exp(found.log_e[1:]), 1):  # e-values grow from look to look
        assert drift(np.array([quiet, won, won, won, won]), alpha=1 / reached * 1.001).alarm == t
        later = drift(np.array([quiet, won, won, won, won]), alpha=1 / reached * 0.999).alarm
        assert later == (t + 1 if t < 4 else None)


def test_a_large_segment_has_its_interval_the_right_way_round():
    rng = np.random.default_rng(0)
    c = rng.beta(0.8, 0.8, 12_000)
    y = (rng.random(len(c)) < c**1.3).astype(int)
    answer = cal.report(y, c, metrics=["ece"], by={"site": np.arange(len(c)) % 2}, n_resamples=99)
    rows = next(s for s in answer.sections if s.key == "affected").data["segments"]
    assert len(rows) >= 2
    for row in rows:
        assert row["low"] < row["high"]


def test_figures_of_a_detector_speak_of_confidence_and_precision():
    answer = cal.report(cal.datasets.detections(), metrics=["ece"], n_resamples=0)
    figures = [*answer.figures, *(f for s in answer.sections for f in s.figures)]
    assert len(figures) == 5
    said = [f"{f.name} {f.caption} " + " ".join(re.findall(r">([^<]+)</text>", picture(f))) for f in figures]
    assert not [s for s in said if re.search(r"probabilit|frequency|event|\bscore|predict|\brow", s, re.I)]
    assert sum("Confidence" in s and "Precision" in s for s in said) == 2


def test_the_figure_of_all_models_is_named_by_what_they_predict():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    two = [cal.report(p[:, :k].argmax(1), p if k == 3 else p[:, 0], metrics=["ece"], n_resamples=0) for k in (3, 2)]
    several, binary = (overlay([r, r]) for r in two)
    assert ">confidence<" in several
    assert ">accuracy<" in several
    assert ">predicted probability<" in binary


def test_the_figure_of_all_models_has_the_axis_of_other_figures():
    rng = np.random.default_rng(1)
    rare = np.exp(rng.normal(-5.0, 1.0, 3000)).clip(max=0.5)
    few, even = (cal.report(rng.random(3000) < p, p, metrics=["ece"], n_resamples=0) for p in (rare, rng.random(3000)))
    assert shared_axis([few, few]).kind == "log odds"
    view = few.predictions.as_predictions() if hasattr(few.predictions, "as_predictions") else few.predictions
    assert np.allclose(shared_axis([few])[1:], axis_of(view)[1:], rtol=1e-3)
    assert shared_axis([even, even]) == WHOLE
    assert shared_axis([even, few]).kind == "log odds"  # on 0 to 1 the rare events would be in a corner
    drawn = overlay([few, few])
    assert re.findall(r">([\d.]+%)</text>", drawn)
    assert all(0.0 <= y <= 340.0 for y in map(float, re.findall(r"L[\d.]+ ([\d.]+)", drawn)))
