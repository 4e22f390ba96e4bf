"""Every sentence is a claim: situations whose answer is known, and the exact words that must be printed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from typer.testing import CliRunner

import calibrary as cal
from calibrary.cli.main import app
from calibrary.data import as_data
from calibrary.evaluation import Evaluation, Row
from calibrary.inference import decide
from calibrary.inference.draw.look import look_at
from calibrary.inference.draw.redraws import beyond_chance
from calibrary.inference.methods.multiplicity import adjust_pvalues
from calibrary.reporting import words


def exact(shares: dict[float, tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Labels and confidences with so many positives among so many cases at each confidence."""
    y, c = [], []
    for confidence, (positive, total) in shares.items():
        y += [1] * positive + [0] * (total - positive)
        c += [confidence] * total
    return np.array(y), np.array(c)


def several(right: int, total: int, top: float, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Rows that predict class 0 with probability ``top``, ``right`` of them rightly, the rest spread evenly."""
    p = np.full((total, k), (1 - top) / (k - 1))
    p[:, 0] = top
    y = np.zeros(total, dtype=int)
    y[right:] = 1 + np.arange(total - right) % (k - 1)
    return y, p


TOO_LOW = exact({0.2: (120, 300), 0.6: (240, 300)})
TOO_HIGH = exact({0.4: (60, 300), 0.8: (180, 300)})
CALIBRATED = exact({0.2: (60, 300), 0.6: (180, 300)})
FEW = exact({0.25: (2, 4), 0.75: (3, 4)})
RARE = exact({0.01: (30, 1000), 0.5: (10, 20)})
OVER = several(120, 200, 0.9)
UNDER = several(190, 200, 0.6)


def wave() -> tuple[np.ndarray, np.ndarray]:
    """Too low, then too high, twice over: right on the whole."""
    c = np.linspace(0.15, 0.85, 8)
    gap = np.array([0.12, 0.12, -0.14, -0.1, 0.1, 0.1, -0.1, -0.1])
    return exact({round(float(a), 2): (round(400 * (a + d)), 400) for a, d in zip(c, gap, strict=True)})


def slope(b: float) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes whose log odds are b times those predicted, to the nearest case."""
    c = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    truth = 1 / (1 + (1 / c - 1) ** b)
    return exact({float(a): (round(2000 * q), 2000) for a, q in zip(c, truth, strict=True)})


def detections(precision: int) -> cal.Matches:
    """Four hundred detections of score .7 on a hundred images, so many of each hundred right."""
    correct = np.arange(400) % 100 < precision
    return cal.matched_detections(correct.astype(int), np.full(400, 0.7), image=np.arange(400) % 100)


def many_classes() -> tuple[np.ndarray, np.ndarray]:
    """Forty classes predicted 2.5% each; the last occurs four times as often."""
    p = np.full((2000, 40), 1 / 40)
    y = np.repeat(np.arange(40), 50)
    y[:150:] = 39
    return y, p


WAVE, EXTREME, TIMID = wave(), slope(0.5), slope(1.7)
DIRECTIONS = [
    ("too low", TOO_LOW, "the probabilities are on average too low (mean prediction 40%, observed 60%)", True),
    ("too high", TOO_HIGH, "the probabilities are on average too high (mean prediction 60%, observed 40%)", True),
    ("calibrated", CALIBRATED, "the mean prediction is 40% and the observed frequency 40%", False),
    ("few rows", FEW, "the mean prediction is 50% and the observed frequency 62.5%", False),
    ("rare class", RARE, "the probabilities are on average too low (mean prediction 2%, observed 3.9%)", True),
    ("over-confident", OVER, "the predictions are over-confident (mean confidence 90%, accuracy 60%)", True),
    ("under-confident", UNDER, "the predictions are under-confident (mean confidence 60%, accuracy 95%)", True),
    ("wave", WAVE, "the mean prediction is 50% and the observed frequency 50%", False),
    ("detector", (detections(40),), "the detections are over-confident (mean confidence 70%, precision 40%)", True),
]


@pytest.mark.parametrize("draws", [0, 199])
@pytest.mark.parametrize(("data", "said", "clear"), [d[1:] for d in DIRECTIONS], ids=[d[0] for d in DIRECTIONS])
def test_the_direction_is_said_as_it_is(data, said, clear, draws):
    answer = cal.report(*data, metrics=["ece"], n_resamples=draws)
    if not draws and "precision" in said:
        return  # images are units, whose spread only redraws show
    line = f"Direction: {said}" + ("." if clear else "; the difference is not significant.")
    in_headline = said in answer.headline
    assert (line in answer.statements) is not in_headline  # once on the page, and not twice
    assert clear or not in_headline


def said(data, decision=None, units=None, **facts):
    """Headline and findings for given numbers of the error, with the decision of the data (or given changes of it)."""
    known = {"perfect": 0.0, "range": (0.0, 1.0), "expected_by_chance": 0.02, "null_high": 0.04, **facts}
    row = Row(id="ece", name="expected calibration error", family="bin", **known)
    question = cal.Question(rng=0)
    found = as_data(data[0], *(data[1:] or (None,)), {}).in_units(units)
    made = replace(decide(found, question), **(decision or {}))
    return words.answer(found, question, row, made)


SIZE = {"value": 0.2, "low": 0.15, "high": 0.25}
NOT = "Not calibrated (overall test, p < 0.005): "
NO = "No evidence of miscalibration (overall test, p = "
SIZED = (
    "The expected calibration error is 0.200; the true error lies between 0.150 and 0.250 (95% interval); a perfectly "
    "calibrated model would still show about 0.020."
)
SMALL = {"value": 0.03, "low": 0.0, "high": 0.029}
UNSURE = (
    "The expected calibration error is 0.030; the true error lies between 0 and 0.029 (95% interval), so that the size "
    "alone does not exclude 0; a perfectly calibrated model would still show about 0.020."
)
NOTHING = {"pvalue_text": "p = 0.31", "detectable": 0.0412}
PARAGRAPHS = [
    (
        "too low", TOO_LOW, SIZE, None,
        NOT + "the probabilities are on average too low (mean prediction 40%, observed 60%). "
        + SIZED,
    ),
    (
        "too high", TOO_HIGH, SIZE, None,
        NOT + "the probabilities are on average too high (mean prediction 60%, observed 40%). "
        + SIZED,
    ),
    (
        "over-confident", OVER, SIZE, None,
        NOT + "the predictions are over-confident (mean confidence 90%, accuracy 60%). " + SIZED,
    ),
    (
        "under-confident", UNDER, SIZE, None,
        NOT + "the predictions are under-confident (mean confidence 60%, accuracy 95%). " + SIZED,
    ),
    (
        "too extreme", EXTREME, SIZE, None,
        NOT + "the probabilities are too extreme, too close to 0 and 1 (Cox slope 0.500; 1 is "
        "ideal). " + SIZED,
    ),
    (
        "not extreme enough, and its size alone says nothing", TIMID, SMALL, None,
        NOT + "the probabilities are not extreme enough, too far from 0 and 1 (Cox slope 1.702; 1 is "
        "ideal). " + UNSURE,
    ),
    (
        "rare class", RARE, SIZE, None,
        NOT + "the squared error of the predictions is larger "
        "than their probabilities imply (Spiegelhalter's z 6.356). " + SIZED,
    ),
    (
        "wave", WAVE, SIZE, None,
        NOT + "predictions at 0.35: mean prediction 35%, observed 21% in 400 cases. "
        + SIZED,
    ),
    (
        "many classes", many_classes(), SMALL, None,
        NOT + "class 39 was expected in 2.5% of cases and observed in 10%. " + UNSURE,
    ),
    (
        "detector", (detections(40),), SIZE, None,
        NOT + "the detections are over-confident (mean confidence 70%, precision 40%). " + SIZED,
    ),
    (
        "calibrated", CALIBRATED, {**SMALL, "value": 0.03, "high": 0.05}, NOTHING,
        NO + "0.31). The expected calibration error is 0.030; the true error lies between "
        "0 and 0.050 (95% interval); a perfectly calibrated model would still show about 0.020.",
    ),
    (
        "the reading may lie outside", CALIBRATED,
        {"value": 0.053, "low": 0.0, "high": 0.05, "expected_by_chance": 0.053}, NOTHING,
        NO + "0.31). The expected calibration error is 0.053; the true error lies between "
        "0 and 0.050 (95% interval); a perfectly calibrated model would still show about 0.053.",
    ),
    (
        "few rows", FEW, {**SMALL, "high": 0.3}, {"pvalue_text": "p = 0.82"},
        NO + "0.82). The expected calibration error is 0.030; the true error lies between "
        "0 and 0.300 (95% interval); a perfectly calibrated model would still show about 0.020.",
    ),
    (
        "certain and wrong", (np.r_[CALIBRATED[0], 0], np.r_[CALIBRATED[1], 1.0]), {"value": math.nan}, NOTHING,
        NO + "0.31), but for 1 case with probability exactly 0 or 1 that "
        "was wrong. The expected calibration error is undefined here.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "facts", "changed", "paragraph"), [p[1:] for p in PARAGRAPHS], ids=[p[0] for p in PARAGRAPHS]
)
def test_the_headline_is_this_paragraph(data, facts, changed, paragraph):
    assert said(data, changed, **facts).headline == paragraph


def test_without_redraws_the_headline_says_how_large_only():
    row = Row(id="ece", name="expected calibration error", family="bin", value=0.005)
    answer = words.answer(cal.predictions(*OVER), cal.Question(), row)
    assert (
        answer.headline
        == "The expected calibration error is 0.005. No test was made, so this shows the size, not the evidence."
    )


def test_the_report_carries_the_decision_of_its_headline():
    answer = cal.report(*EXTREME, metrics=["ece"], n_resamples=99)
    assert answer.headline.startswith(f"{answer.decision.calibrated} (overall test, {answer.decision.pvalue_text}): ")
    kept = answer.to_dict()["decision"]
    assert (kept["calibrated"], kept["rejected"], kept["defect"]) == ("Not calibrated", True, "spread")
    assert [row["id"] for row in kept["rows"]] == ["smooth", "slope", "mean", "spiegelhalter"]
    assert cal.report(*EXTREME, metrics=["ece"], n_resamples=0).decision is None


_DIFFER = "Classes: expected and observed shares differ significantly for "
FINDINGS = [
    (
        "too extreme", EXTREME,
        "Spread: the probabilities are too extreme, too close to 0 and 1 (Cox slope 0.500; 1 is ideal).",
    ),
    (
        "not extreme enough", TIMID,
        "Spread: the probabilities are not extreme enough, too far from 0 and 1 (Cox slope 1.702; 1 is ideal).",
    ),
    ("too low throughout", TOO_LOW, "Spread: the Cox slope is 1.000 (1 is ideal); the difference is not significant."),
    ("few rows", FEW, "Spread: the Cox slope is 0.500 (1 is ideal); the difference is not significant."),
    (
        "reversed", (1 - EXTREME[0], EXTREME[1]),
        "Spread: the probabilities are reversed, higher where the outcome is rarer (Cox slope -0.500; 1 is ideal): "
        "check to which class they belong.",
    ),
    ("few rows", FEW, "Where: no single range of confidence is significantly miscalibrated."),
    (
        "certain", (np.r_[CALIBRATED[0], 0], np.r_[CALIBRATED[1], 1.0]),
        "Certain and wrong: 1 case with probability exactly 0 or 1 was wrong; a calibrated model "
        "is never wrong at 0 or 1; if they were rounded, give more digits.",
    ),
    (
        "many classes", many_classes(),
        "Classes: expected and observed shares differ significantly for 39 (expected 2.5%, observed 10%), 0 (expected "
        "2.5%, observed 0%), 1 (expected 2.5%, observed 0%) and 1 more.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("data", "sentence"), [f[1:] for f in FINDINGS], ids=[f[0] for f in FINDINGS])
def test_the_findings_hold_this_sentence(data, sentence):
    answer = said(data, **SIZE)
    in_headline = sentence.partition(": ")[2].rstrip(".") in answer.headline
    assert (sentence in answer.statements) is not in_headline  # once on the page, and not twice


def test_a_range_of_nearly_all_rows_is_neither_named_nor_denied():
    for data in (OVER, (detections(40),)):  # one confidence for all rows
        assert not [line for line in said(data, **SIZE).statements if line.startswith("Where")]


def test_rows_left_out_of_the_slope_are_counted():
    y, c = np.r_[EXTREME[0], np.ones(50, dtype=int)], np.r_[EXTREME[1], np.ones(50)]
    assert "(Cox slope 0.500; 1 is ideal; 50 cases with probability 0 or 1 left out)." in said((y, c), **SIZE).headline


@pytest.mark.parametrize("data", [TOO_LOW, TIMID, OVER, several(120, 200, 0.9, 12)])
def test_every_sentence_is_the_same_for_weights_and_for_rows_written_out(data):
    y, p = data
    rng = np.random.default_rng(0)
    w = rng.integers(1, 4, len(y))
    row = np.repeat(np.arange(len(y)), w)
    weighted = cal.report(y, p, sample_weight=w, metrics=["ece"], n_resamples=39)
    written = cal.report(y[row], p[row], metrics=["ece"], n_resamples=39)
    assert weighted.decision.pvalue == written.decision.pvalue
    # the interval of the error is drawn by the table, whose draws follow the rows
    assert weighted.headline.split(". ")[0] == written.headline.split(". ")[0]
    assert weighted.statements[:-1] == written.statements[:-1]


def test_direction_with_ten_copies_of_each_row_is_as_sure_as_the_rows():
    y, c = np.repeat([1, 0], [26, 14]), np.full(40, 0.5)
    once = cal.report(y, c, metrics=["ece"], n_resamples=0)
    ten = cal.report(y, c, sample_weight=np.full(40, 10), metrics=["ece"], n_resamples=0)
    assert once.statements[0] == (
        "Direction: the mean prediction is 50% and the observed frequency 65%; the difference is not significant."
    )
    assert ten.statements[0] == (
        "Direction: the probabilities are on average too low (mean prediction 50%, observed 65%)."
    )


def test_units_reach_every_sentence_of_the_report():
    y, p = several(140, 200, 0.8)
    y, p = np.repeat(y, 5), np.repeat(p, 5, axis=0)
    rows = cal.report(y, p, metrics=["ece"], n_resamples=39)
    assert rows.decision.rejected
    assert all(c.clear for c in rows.classes)
    units = cal.report(y, p, metrics=["ece"], n_resamples=39, units=np.repeat(np.arange(200), 5))
    ten = cal.report(y, p, metrics=["ece"], n_resamples=39, units=np.arange(1000) // 100)
    assert units.decision.path == ten.decision.path == "units"
    assert units.decision.pvalue < ten.decision.pvalue
    assert not any(c.clear for c in ten.classes)
    assert (
        "Classes: for no class does the expected share differ significantly from the observed share." in ten.statements
    )


def test_weights_that_are_no_counts_weigh():
    w = np.random.default_rng(0).random(600)
    row = Row(id="ece", name="expected calibration error", family="bin", value=0.2)
    told = [words.answer(cal.predictions(*TOO_LOW, sample_weight=k * w), cal.Question(), row) for k in (1, 1000)]
    assert told[0].statements[:2] == told[1].statements[:2]
    assert told[0].statements[0].startswith("Direction: the probabilities are on average too low")


def row_of(id, p, adjusted, value=0.1, primary=False):
    facts = {"id": id, "name": "", "family": "bin", "value": value}
    return Row(**facts, pvalue=p, pvalue_adjusted=adjusted, primary=primary)


def table(tested):
    rows = (row_of("ece", 0.5, 0.5),) * tested
    return Evaluation(rows, {}, 100, 2, "auto", {"n_resamples": 999, "confidence_level": 0.95})


VERDICTS = [
    (0.009, "miscalibrated"), (0.01, "miscalibrated"), (0.011, "miscalibrated (p = 0.011)"),
    (0.05, "miscalibrated (p = 0.05)"), (0.051, "no evidence"), (0.5, "no evidence"), (None, ""),
    (math.nan, ""),
]  # fmt: skip


@pytest.mark.parametrize(("p", "word"), VERDICTS)
def test_the_verdict_is_read_from_the_right_p_value(p, word):
    assert words.verdict(row_of("ece", p, p)) == word
    assert words.verdict(row_of("ece", p, 0.0001, primary=True)) == word
    assert words.verdict(row_of("ece", p, p, value=math.nan)) == "undefined here"


def test_a_number_that_is_within_chance_among_many_says_both():
    assert (
        words.verdict(row_of("ece", 0.03, 0.4), table(87))
        == "not significant after adjustment for 87 numbers (alone p = 0.03)"
    )
    assert (
        words.verdict(row_of("ece", 0.03, 0.4)) == "not significant after adjustment for all numbers (alone p = 0.03)"
    )


@pytest.mark.parametrize("id", ["bs", "nll", "mae"])
def test_scores_that_mix_in_sharpness_are_never_called_miscalibrated(id):
    assert words.verdict(row_of(id, 0.001, 0.001)) == "not as its own probabilities imply"
    assert words.verdict(row_of(id, 0.3, 0.4)) == "as its own probabilities imply"
    # the headline may name this number: the table must not say that nothing was found
    assert words.verdict(row_of(id, 0.03, 0.4)).startswith("not significant after adjustment")


def places(gaps: dict[int, float], n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Ten ranges right but for these, n cases each."""
    return exact({0.05 + k / 10: (round(n * (0.05 + k / 10 + gaps.get(k, 0.0))), n) for k in range(10)})


def ranges(data, **keywords):
    question = cal.Question(options={"n_bins": 10})
    return words.where(look_at(cal.predictions(*data).in_units(keywords.get("units")), question), question)


def test_where_names_ranges_beyond_chance_worst_first_and_allows_for_their_number():
    chance = 2.5 * math.sqrt(0.25 * 0.75 / 400)  # beyond 1.96 standard errors, within the bound for ten ranges (2.81)
    assert ranges(places({2: chance})) == []
    assert ranges(places({2: 3.2 * chance / 2.5})) != []
    found = ranges(places({7: 0.2, 4: -0.1}))
    assert found == [
        "the eighth tenth of the predictions (at 0.75): mean prediction 75%, observed 95% in 400 cases",
        "the fifth tenth of the predictions (at 0.45): mean prediction 45%, observed 35% in 400 cases",
    ]
    assert ranges(exact({0.001: (4, 9), 0.5: (50, 100)})) == []  # too few cases to be named


def test_where_and_classes_count_units_once():
    y, c = places({7: 0.2}, 20)
    ten = np.repeat(y, 10), np.repeat(c, 10)
    assert ranges(ten) != []
    assert ranges(ten, units=np.repeat(np.arange(len(y)), 10)) == []
    y, p = several(140, 200, 0.8)
    look = look_at(cal.predictions(np.repeat(y, 5), np.repeat(p, 5, axis=0)), cal.Question())
    assert words.classes(look)[0].startswith(_DIFFER + "0 (expected 80%, observed 70%)")
    units = np.repeat(np.arange(200) % 20, 5)
    look = look_at(cal.predictions(np.repeat(y, 5), np.repeat(p, 5, axis=0)).in_units(units), cal.Question())
    assert "Classes" in words.classes(look)[0]


def test_the_bound_of_a_range_is_the_binomial_tail():
    from scipy.stats import binom

    between = 0
    for n in (30, 41):
        for k in range(n + 1):
            look = look_at(cal.predictions(*exact({0.2: (k, n), 0.9: (45, 50)})), cal.Question())
            beyond = beyond_chance(look, (look.c > 0.5).astype(np.intp), 0.05)[0]
            tail = min(binom.sf(k - 1, n, 0.2), binom.cdf(k, n, 0.2))
            assert beyond[0] == (tail <= 0.05 / 4)
            assert not beyond[1]
            between += 0.05 / 4 < tail <= 0.05 / 2
    assert between  # so that a bound for one side only would have failed


def test_classes_are_flagged_when_predicted_more_often_than_they_occur_and_only_then():
    y, p = several(120, 200, 0.9)
    flags = {row.name: row.clear for row in cal.report(y, p, metrics=["ece"], n_resamples=0).classes}
    assert flags == {"0": True, "1": True, "2": True}
    y, p = several(160, 200, 0.8)
    answer = cal.report(y, p, metrics=["ece"], n_resamples=0)
    assert not any(row.clear for row in answer.classes)
    assert (
        "Classes: for no class does the expected share differ significantly from the observed share."
        in answer.statements
    )
    y, p = several(120, 200, 0.9)
    assert any(f.startswith(_DIFFER + "0 (expected 90%, observed 60%)") for f in cal.report(
        y, p, metrics=["ece"], n_resamples=0).statements)  # fmt: skip


def test_groups_are_adjusted_by_holm():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.2, 0.8, 900)
    y = (rng.random(900) < np.where(np.arange(900) < 300, np.sqrt(c), c)).astype(int)
    groups = np.repeat(["bad", "good", "well"], 300)
    rows = cal.report(y, c, by={"group": groups}, metrics=["ece"], n_resamples=199).groups
    raw = np.array([row.pvalue for row in rows])
    np.testing.assert_allclose([row.pvalue_adjusted for row in rows], adjust_pvalues(raw, "holm"))
    order = np.argsort(raw)
    by_hand = np.minimum(np.maximum.accumulate(raw[order] * np.array([3, 2, 1])), 1.0)
    np.testing.assert_allclose(np.array([row.pvalue_adjusted for row in rows])[order], by_hand)
    assert [row.name for row in rows] == ["bad", "good", "well"]
    assert rows[0].pvalue_adjusted < 0.05 < rows[1].pvalue_adjusted


def test_benjamini_hochberg_takes_the_smaller_of_later_steps():
    # 0.02 alone would become 0.04; the step after it gives 0.03, which it must not exceed
    np.testing.assert_allclose(adjust_pvalues([0.02, 0.024, 0.03, 0.5], "bh"), [0.04, 0.04, 0.04, 0.5])
    np.testing.assert_allclose(adjust_pvalues([0.01, 0.04, 0.041], "bh"), [0.03, 0.041, 0.041])


GATES = [
    ("ece.value>0.25", False), ("ece.value>=0.25", True), ("ece.value>0.24", True), ("ece.value<0.25", False),
    ("ece.value<=0.25", True),
    ("ece.value<0.26", True), ("ece.value>0.3", False), ("cis.slope.value<100", True), ("cis.slope.value>100", False),
    ("cis.intercept.value>0", True), ("ece.high>0.25", True), ("ece.high>0.4", False), ("ece.low<0.25", True),
    ("ece.low>0.25", False), ("ECE-EM.value>0.24", True), ("KS.value>=0.25", True), ("KS.value>0.25", False),
]  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("gate") / "low.csv"
    y, c = exact({0.25: (150, 300), 0.5: (225, 300)})  # the gap is exactly 1/4 in every bin
    path.write_text("y,p\n" + "\n".join(f"{a},{b}" for a, b in zip(y, c, strict=True)))
    return str(path)


@pytest.mark.parametrize(("rule", "fails"), GATES)
def test_fail_if_reads_the_number_and_the_operator_it_names(file, rule, fails):
    draws = ["--resamples", "29"] if rule.startswith(("ece.high", "ece.low")) else ["--resamples", "0"]
    metric = "ece,cis,ace,ks"
    done = CliRunner().invoke(app, ["report", file, "--metrics", metric, "--fail-if", rule, "-q", *draws])
    assert done.exit_code == (1 if fails else 0), done.output


def test_the_band_of_the_cumulative_plot_is_as_wide_as_its_caption_says():
    from calibrary.plots.cumulative import cumulative_data, plot_cumulative

    data = cumulative_data(*CALIBRATED)
    drawn = plot_cumulative(*CALIBRATED)
    ax = getattr(drawn, "axes", drawn)
    ax = ax[0] if isinstance(ax, list) else ax
    bands = [c.get_paths()[0].vertices[:, 1] for c in ax.collections if len(c.get_paths())]
    widest = 2 * np.max(data.sigma)
    assert max(float(b.max()) for b in bands) == pytest.approx(widest, rel=1e-6)
    assert min(float(b.min()) for b in bands) == pytest.approx(-widest, rel=1e-6)


def test_recommend_prefers_metrics_for_rare_classes_when_a_class_is_rare():
    usual = {r.id: r.points for r in cal.recommend("binary", "measure", n=5000, most=200)}
    rare = {r.id: r.points for r in cal.recommend("binary", "measure", n=5000, rare=0.01, most=200)}
    assert rare["ace"] > usual["ace"]
    assert rare["ece"] < usual["ece"]
    assert rare["ecce_mad"] - usual["ecce_mad"] == pytest.approx(rare["ace"] - usual["ace"])


def test_draws_that_can_reject_nothing_are_no_evidence_for_a_model():
    y, p, _ = cal.datasets.breast_cancer()
    few = cal.report(y, p, metrics=["ece", "bs"], n_resamples=20)
    row = few.evaluation.row("bs")
    assert row.pvalue == pytest.approx(2 / 21)
    assert words.verdict(row, few.evaluation) == "too few draws to tell"
    enough = cal.report(y, p, metrics=["ece", "bs"], n_resamples=99)
    assert words.verdict(enough.evaluation.row("bs"), enough.evaluation) == "worse than its own probabilities imply"


def test_predicted_classes_are_told_from_probabilities():
    y = np.random.default_rng(0).integers(0, 2, 200)
    flipped = np.where(np.arange(200) % 5 == 0, 1 - y, y)
    said, rounded = (
        next(
            f for f in cal.report(y, p, metrics=["ece"], n_resamples=19).statements if f.startswith("Certain and wrong")
        )
        for p in (flipped.astype(float), np.where(np.arange(200) % 7 == 0, 0.4, flipped))
    )
    assert "as predicted classes are: give probabilities" in said
    assert "if they were rounded, give more digits" in rounded


def test_a_ranking_is_not_called_miscalibrated():
    y, p, _ = cal.datasets.breast_cancer()
    answer = cal.report(y, p, metrics=["ece", "auroc", "aurc"], n_resamples=99)
    assert {words.verdict(answer.evaluation.row(id), answer.evaluation) for id in ("auroc", "aurc")} <= {
        "as its own probabilities imply", "better than its own probabilities imply",
        "worse than its own probabilities imply",
    }  # fmt: skip


def test_a_shift_of_units_is_no_claim_about_the_slope():
    """Log odds that are all too high by the same amount have slope 1, also if the rows of a unit have one outcome."""
    rng, question, wrong, rejected = np.random.default_rng(7), cal.Question(rng=0), 0, 0
    for _ in range(20):
        z = rng.normal(2.0, 1.0, 600)
        y = (np.repeat(rng.random(100), 6) < expit(z - 2.0)).astype(int)
        data = cal.predictions(y, expit(z)).in_units(np.repeat(np.arange(100), 6))
        decision = decide(data, question, detectable=False)
        rejected += decision.rejected
        wrong += words.spread_of(look_at(data, question), decision).clear
    assert rejected == 20  # the shift is found
    assert wrong <= 4  # more has a chance of 0.3% at 5%
