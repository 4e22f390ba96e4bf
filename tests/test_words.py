"""Every sentence is a claim: situations whose answer is known, and the exact words that must be printed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.cli.main import app
from calibrary.evaluation import Row
from calibrary.inference.multiplicity import adjust_pvalues
from calibrary.reporting import compose, words


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

DIRECTIONS = [
    ("too low", TOO_LOW, "on average too low (mean prediction 40%, observed 60%)", True),
    ("too high", TOO_HIGH, "on average too high (mean prediction 60%, observed 40%)", True),
    ("calibrated", CALIBRATED, "on average too high (mean prediction 40%, observed 40%)", False),
    ("few rows", FEW, "on average too low (mean prediction 50%, observed 62.5%)", False),
    ("rare class", RARE, "on average too low (mean prediction 1.96%, observed 3.92%)", True),
    ("over-confident", OVER, "over-confident (mean confidence 90%, accuracy 60%)", True),
    ("under-confident", UNDER, "under-confident (mean confidence 60%, accuracy 95%)", True),
]


@pytest.mark.parametrize(("data", "said", "clear"), [d[1:] for d in DIRECTIONS], ids=[d[0] for d in DIRECTIONS])
def test_the_direction_is_said_as_it_is(data, said, clear):
    answer = cal.report(*data, metrics=["ece"], n_resamples=0)
    end = "." if clear else "; the difference is within chance."
    assert answer.findings[0] == f"Direction: {said}{end}"


HEADLINES = [
    (
        {"value": 0.2, "low": 0.15, "high": 0.25, "pvalue": 0.002, "null_mean": 0.02, "null_high": 0.04}, TOO_LOW,
        "The probabilities are not calibrated: expected calibration error 0.200 (95% interval 0.150 to 0.250); a "
        "perfectly calibrated model would read about 0.020 on 600 such cases (p = 0.002). They are on average too low "
        "(mean prediction 40%, observed 60%).",
    ),
    (
        {"value": 0.2, "low": 0.15, "high": 0.25, "pvalue": 0.0499, "null_mean": 0.02, "null_high": 0.04}, CALIBRATED,
        "The probabilities are not calibrated: expected calibration error 0.200 (95% interval 0.150 to 0.250); a "
        "perfectly calibrated model would read about 0.020 on 600 such cases (p = 0.05). There is no clear lean to one "
        "side overall.",
    ),
    (
        {"value": 0.03, "low": 0.0, "high": 0.05, "pvalue": 0.0501, "null_mean": 0.02, "null_high": 0.04}, CALIBRATED,
        "No evidence of miscalibration was found: expected calibration error 0.030 (95% interval 0 to 0.050); a "
        "perfectly calibrated model would read about 0.020 on 600 such cases (p = 0.05). With this many cases, errors "
        "below about 0.040 cannot be told from chance.",
    ),
    (
        {"value": 0.005, "pvalue": None}, OVER,
        "Expected calibration error 0.005. No test was made, so this says how large, not how sure.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "data", "paragraph"), HEADLINES)
def test_the_headline_is_this_paragraph(facts, data, paragraph):
    row = Row(id="ece", name="expected calibration error", family="bin", **facts)
    p = cal.predictions(*data)
    view, name = compose.headline_view(p, cal.Question())
    way = words.direction(view, name)
    assert words.headline(row, way, view.total, row.null_mean, row.null_high, 0.95) == paragraph


VERDICTS = [
    (0.009, "miscalibrated"), (0.01, "probably miscalibrated"), (0.049, "probably miscalibrated"),
    (0.05, "no evidence against"), (0.5, "no evidence against"), (None, ""), (math.nan, ""),
]  # fmt: skip


@pytest.mark.parametrize(("p", "word"), VERDICTS)
def test_the_verdict_is_read_from_the_right_p_value(p, word):
    facts = {"id": "ece", "name": "", "family": "bin", "value": 0.1}
    assert words.verdict(Row(**facts, pvalue=0.0001, pvalue_adjusted=p)) == word
    assert words.verdict(Row(**facts, pvalue=p, pvalue_adjusted=0.0001, primary=True)) == word
    assert words.verdict(Row(**{**facts, "value": math.nan}, pvalue_adjusted=p)) == "undefined here"


def test_where_names_ranges_beyond_chance_worst_first_and_allows_for_their_number():
    low, high = np.linspace(0, 0.9, 10), np.linspace(0.1, 1, 10)
    confidence, count = low + 0.05, np.full(10, 400.0)
    variance = confidence * (1 - confidence) / count
    gap = np.zeros(10)
    gap[2] = 2.5 * np.sqrt(variance[2])  # beyond 1.96 standard errors, within the bound for ten ranges (2.81)
    assert words.where(low, high, count, confidence, confidence + gap, variance) == []
    gap[7], gap[4] = 0.2, -0.1
    assert words.where(low, high, count, confidence, confidence + gap, variance) == [
        "between 0.7 and 0.8 (400 cases, 75% predicted) it happened 95% of the time",
        "between 0.4 and 0.5 (400 cases, 45% predicted) it happened 35% of the time",
    ]
    few = np.full(10, 9.0)
    assert words.where(low, high, few, confidence, confidence + 0.9 * gap, variance / 100) == []


def test_classes_are_flagged_when_predicted_more_often_than_they_occur_and_only_then():
    y, p = several(120, 200, 0.9)
    flags = {row.name: row.clear for row in cal.report(y, p, metrics=["ece"], n_resamples=0).classes}
    assert flags == {"0": True, "1": True, "2": True}
    y, p = several(160, 200, 0.8)
    answer = cal.report(y, p, metrics=["ece"], n_resamples=0)
    assert not any(row.clear for row in answer.classes)
    assert "Classes: no class is predicted more or less often than it occurs, beyond chance." in answer.findings
    y, p = several(120, 200, 0.9)
    assert any(f.startswith("Classes: 0 predicted 90.0%, occurred 60.0%") for f in cal.report(
        y, p, metrics=["ece"], n_resamples=0).findings)  # fmt: skip


def test_groups_are_adjusted_by_holm():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.2, 0.8, 900)
    y = (rng.random(900) < np.where(np.arange(900) < 300, np.sqrt(c), c)).astype(int)
    groups = np.repeat(["bad", "good", "well"], 300)
    rows = cal.report(y, c, groups=groups, metrics=["ece"], n_resamples=199).groups
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
    ("ece.value>0.25", False), ("ece.value>=0.25", True), ("ece.value>0.24", True), ("ece.value<0.25", False), ("ece.value<=0.25", True),
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
    assert rare["ecce_mad"] - usual["ecce_mad"] == rare["ace"] - usual["ace"]
