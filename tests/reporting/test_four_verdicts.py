"""The verdict of a page: its rule, its words, its colours, and what segments do to it; the facts below the title."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.errors import RefusedError
from calibrary.base.numbers import number
from calibrary.reporting.model import Report
from calibrary.reporting.numbers import if_calibrated
from calibrary.reporting.provenance import facts_words
from calibrary.reporting.verdict import COLOURS, NOT, NOT_BUT, UNKNOWN, WITHIN, PageVerdict, status_of, tolerance_of
from calibrary.reporting.words import verdict

pytestmark = pytest.mark.usefixtures("outlined")

FAST = {"metrics": ["ece", "bs"], "n_resamples": 99}


def world(n, factor=1.0, law=(1.0, 1.0), seed=0):
    """Predictions, and outcomes whose odds are the stated odds times a factor."""
    rng = np.random.default_rng(seed)
    p = rng.beta(*law, n)
    odds = p / (1.0 - p) * factor
    return (rng.random(n) < odds / (1.0 + odds)).astype(int), p


@pytest.mark.parametrize(
    ("rejected", "high", "excepted", "value", "color"),
    [
        (True, 0.051, (), NOT, "bad"), (True, 0.05, (), NOT_BUT, "warn"), (False, 0.05, (), WITHIN, "ok"),
        (False, 0.051, (), UNKNOWN, "unknown"), (False, 0.05, ("site = C",), NOT_BUT, "warn"),
        (False, 0.051, ("site = C",), UNKNOWN, "unknown"), (True, np.nan, (), NOT, "bad"),
        (False, np.nan, (), UNKNOWN, "unknown"),
    ],
)  # fmt: skip
def test_the_verdict_follows_the_test_and_the_end_of_the_interval(rejected, high, excepted, value, color):
    found = PageVerdict(rejected, 0.05, high, 100.0, excepted=excepted)
    assert (found.value, COLOURS[found.value]) == (value, color)
    words = (
        "Not calibrated",
        "Not calibrated, but within 0.05",
        "Within 0.05",
        "Calibrated within 0.05",
        "Cannot tell",
    )
    assert found.words.startswith(words)
    assert ("site = C" in found.reason()) is bool(excepted)


def test_a_verdict_that_cannot_tell_names_the_rows_that_would_settle_it():
    thirty = PageVerdict(False, 0.05, 0.24, 30.0)
    assert thirty.rows_needed == 700.0  # 30 * (0.24 / 0.05)^2 = 691
    assert thirty.reason() == ("an ECE up to 0.240 is compatible with these 30 rows; about 700 rows would settle it")
    assert "would settle" not in PageVerdict(False, 0.05, np.nan, 30.0).reason()


def test_the_default_tolerance_is_smaller_where_events_are_rare():
    y, p = np.r_[np.ones(18, int), np.zeros(982, int)], np.full(1000, 0.02)
    assert tolerance_of(None, cal.predictions(y, p)) == 0.0036
    assert tolerance_of(None, cal.predictions(1 - y, p)) == 0.0036  # of the rarer class, whichever it is
    assert tolerance_of(None, cal.predictions(*world(200))) == 0.05
    assert tolerance_of(0.1, cal.predictions(y, p)) == 0.1
    nothing = np.zeros(1000, int)  # no event was seen: the predicted share stands for the observed one
    assert (
        tolerance_of(None, cal.predictions(nothing, p))
        == tolerance_of(None, cal.predictions(1 - nothing, 1 - p))
        == 0.004
    )
    assert tolerance_of(None, cal.predictions(nothing, 0.0 * p)) == 0.05
    for wrong in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(RefusedError, match="pass an ECE above 0 and below 1"):
            tolerance_of(wrong, cal.predictions(y, p))


@pytest.mark.parametrize(
    ("words", "page", "status"),
    [
        ("miscalibrated", NOT, NOT), ("miscalibrated (p = 0.02)", NOT_BUT, NOT_BUT), ("no evidence", NOT, UNKNOWN),
        ("no evidence", UNKNOWN, UNKNOWN), ("no evidence", WITHIN, WITHIN), ("no evidence", NOT_BUT, WITHIN),
        ("unclear: p = 0.01, but", NOT_BUT, UNKNOWN), ("worse than its own probabilities imply", NOT, NOT),
        ("as its own probabilities imply", WITHIN, ""), ("", WITHIN, ""), ("no evidence", "", ""),
        ("probably miscalibrated", NOT, NOT),
    ],
)  # fmt: skip
def test_the_status_of_a_number(words, page, status):
    assert status_of(words, page) == status


@pytest.mark.parametrize(
    ("n", "factor", "value"), [(30, 1.0, UNKNOWN), (4000, 1.0, WITHIN), (3000, 3.0, NOT), (60_000, 1.08, NOT_BUT)]
)
def test_every_format_begins_with_the_verdict(n, factor, value, tmp_path):
    made = cal.report(*world(n, factor), **FAST)
    saved = json.loads(json.dumps(made.to_dict(), default=str))
    assert made.verdict == saved["verdict"] == value
    assert made.tolerance == saved["tolerance"] == 0.05
    page = made.to_html(interactive=False)
    assert f'class="headline {COLOURS[value]}"' in page
    first = re.search(r'class="headline [a-z]+"><strong>([^<]*)', page)[1].rstrip(" :.")
    assert made.headline.startswith(first)
    assert made.headline.startswith({NOT: "Not calibrated (", NOT_BUT: "Not calibrated, but within 0.05 (",
                                     WITHIN: "Calibrated within 0.05 (", UNKNOWN: "Cannot tell "}[value])  # fmt: skip
    assert made.headline in repr(made).replace("\n", " ")
    if value == UNKNOWN:
        assert 'class="v ok"' not in page  # nothing green where the data cannot tell
    assert Report.from_dict(saved).verdict == value
    assert [k.status for k in Report.from_dict(saved).short_list] == [k.status for k in made.short_list]
    with pytest.raises(ValueError, match="no verdict is called"):
        Report.from_dict({**saved, "verdict": "fine"})


def test_a_miscalibrated_segment_is_never_green_and_is_named():
    y, p = world(6000, seed=3)
    site = np.repeat(["A", "B"], 3000)
    wrong = (site == "A") & (np.arange(6000) % 3000 < 400)
    site = np.where(wrong, "C", site)
    rng = np.random.default_rng(1)
    # C is too low and the others too high by as much, so that the whole is right
    y = np.where(wrong, rng.random(6000) < p + 0.25 * p * (1 - p) * 4, y).astype(int)
    y = np.where(~wrong & (rng.random(6000) < 0.012), 0, y)
    made = cal.report(y, p, by={"site": site}, tolerance=0.2, **FAST)
    assert made.verdict == NOT_BUT
    assert "Worst of 3 segments: site = C" in str(made) or "strongest for site = C" in str(made)


def test_a_column_of_segments_never_changes_the_headline_and_blanks_are_a_segment():
    y, p = world(900)
    ward = np.where(np.arange(900) % 4 == 0, None, np.where(np.arange(900) % 2 == 0, "A", "B")).astype(object)
    alone, split = cal.report(y, p, **FAST), cal.report(y, p, by={"ward": ward}, **FAST)
    assert alone.headline == split.headline
    segments = next(s for s in split.sections if s.key == "affected").data["segments"]
    assert {s["name"]: s["n"] for s in segments}["ward = (missing)"] == 225


def test_the_facts():
    y, p = world(1000, law=(1.0, 30.0))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"default": y, "pd_12m": p})
    made = cal.report(frame, label="default", prob="pd_12m", **FAST)
    events = int(y.sum())
    assert made.facts["events"] == events
    said = facts_words(made.facts)
    assert said.startswith(f"1,000 rows, {events} events (")
    assert said.endswith("of default = 1, prediction pd_12m")
    assert said in made.to_html() and said in repr(made).replace("\n", " ")  # noqa: PT018
    facts = {**made.facts, "rows": 1159, "rows_read": 1200, "left_out": {"without p": 33, "without y": 8},
             "guessed": ["label"]}  # fmt: skip
    assert facts_words(facts).endswith("; 41 of 1,200 rows left out: 33 without p, 8 without y")
    assert "default = 1 (guessed)" in facts_words(facts)
    assert facts_words({}) == ""


def test_an_advice_follows_from_the_defect():
    y, p = world(2000, 2.3, (1.0, 130.0), seed=2)
    made = cal.report(y, p, **FAST)
    advice = next(s for s in made.sections if s.key == "help").sentences[0]
    assert made.decision.defect == "direction"
    low, high = map(float, re.search(r"odds by [\d.]+ \(95% interval ([\d.]+) to ([\d.]+)\)", advice).groups())
    assert low < 2.3 < high
    assert "No evidence that recalibration would help" not in advice
    helping = next(s for s in made.sections if s.key == "help")
    marked = [row[0] for row in helping.tables[0].rows if row[-1]]
    assert marked == ["a prevalence offset"]  # the table, the figure and the live figures show the same map
    assert helping.figures[0].caption.startswith("Before and after a prevalence offset. ")
    large = cal.report(y, p, **FAST | {"metrics": ["ece", "citl"]}, units=np.arange(2000) // 4)
    factor = next(s for s in large.sections if s.key == "help").sentences[0]
    citl = next(row for row in large.evaluation.rows if row.id == "citl")
    ends = f"{math.exp(citl.low):.2g} to {math.exp(citl.high):.2g}"  # of the same table, which allows for the units
    assert f"(95% interval {ends})" in factor
    assert made.live.views[1].name == "after a prevalence offset"
    calm = cal.report(*world(2000), **FAST)
    assert "advice" not in calm.sections[0].tables[0].head
    assert calm.sections[0].sentences[0].startswith("No evidence that recalibration would help")


def test_a_map_that_helps_has_the_factor_beside_it_for_what_the_headline_says():
    """The mean is what the headline names, and temperature scaling, which does not touch it, is advised."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 0.8, 4000)
    log_odds = 0.6 * np.log(p / (1.0 - p)) + 0.6
    y = (rng.random(4000) < 1.0 / (1.0 + np.exp(-log_odds))).astype(int)
    made = cal.report(y, p, **FAST)
    helping = next(s for s in made.sections if s.key == "help")
    said = helping.sentences[0]
    assert made.decision.defect in ("direction", "spread")
    what = "multiply the odds by" if made.decision.defect == "direction" else "multiply the log odds by"
    assert "would lower the log loss" in said
    assert re.search(rf"(That is: |To correct [a-z ]+, ){what} [\d.]+ \(95% interval [\d.]+ to [\d.]+\)", said)


def test_a_score_that_is_off_by_itself_is_not_as_its_probabilities_imply():
    y, p = world(1500, 0.8, (2.0, 2.0), seed=1)
    table = cal.report(y, p, metrics=["bs", "ece"], n_resamples=199).evaluation
    row = next(row for row in table.rows if row.id == "bs")
    alone = replace(row, pvalue=0.01, pvalue_adjusted=0.4)
    assert verdict(alone, table).startswith("not significant after adjustment")
    assert verdict(replace(row, pvalue=0.3, pvalue_adjusted=0.9), table) == "as its own probabilities imply"


def test_no_range_holds_nearly_all_rows_of_rare_events():
    y, p = world(20_000, 2.5, (1.0, 130.0))
    lines = [line for line in cal.report(y, p, **FAST).statements if line.startswith("Where")]
    assert lines
    assert all(int(n.replace(",", "")) <= 2_000 for n in re.findall(r"in ([\d,]+) cases", lines[0]))
    assert "the highest tenth of the predictions" in lines[0]


def test_one_defect_is_said_once():
    for factor, law in ((2.5, (1.0, 1.0)), (0.4, (2.0, 8.0))):
        made = cal.report(*world(2000, factor, law), **FAST)
        direction = re.search(r"on average too (low|high) \([^)]*\)", made.headline)[0]
        assert not [line for line in made.statements if direction in line]


@pytest.mark.parametrize("column", [np.arange(101, 113), np.arange(2001, 2021)])
def test_codes_are_names(column):
    y, p = world(1200)
    codes = np.resize(column, 1200)
    site = next(s for s in cal.report(y, p, by={"site": codes}, **FAST).sections if s.key == "affected")
    names = {s["name"] for s in site.data["segments"]}
    assert names == {f"site = {code}" for code in column}
    assert any(s.startswith(f"The column site holds {len(column)} different whole numbers") for s in site.sentences)
    tested = cal.test("multicalibration_error", y, p, by={"site": codes}, n_resamples=39, rng=0)
    assert set(tested.table["segment"]) == {"all rows", *names}


def test_quantities_are_cut():
    y, p = world(1200)
    income = next(s for s in cal.report(y, p, by={"income": p * 1e5}, **FAST).sections if s.key == "affected")
    assert len(income.data["segments"]) == 3
    age = {"age": cal.cut(np.resize(np.arange(101, 113), 1200), 4)}
    cut = next(s for s in cal.report(y, p, by=age, **FAST).sections if s.key == "affected")
    assert len(cut.data["segments"]) == 4


def test_a_cut_keeps_equal_values_together_and_gaps_as_gaps():
    found = cal.cut([1, 1, 1, 2, None, 9], 2)
    assert list(found) == ["up to 1", "up to 1", "up to 1", "above 1", None, "above 1"]
    with pytest.raises(RefusedError, match="no column of numbers"):
        cal.cut(["a", "b"])


def test_of_many_segments_the_worst_and_the_best_are_shown():
    y, p = world(6000)
    site = np.arange(6000) % 60
    y = np.where(site == 7, 1, y)
    made = next(s for s in cal.report(y, p, by={"site": site}, **FAST).sections if s.key == "affected")
    assert made.sentences[0].startswith("Worst of 60 segments: site = 7 (100 rows)")
    assert len(made.data["segments"]) == 15
    assert made.tables[0].rows[0][0] == "site = 7"
    assert any("the 12 worst and the 3 best of 60 segments" in s for s in made.sentences)
    # parts selected by their error are adjusted for all of them, not for those that are shown
    assert all(s["pvalue_adjusted"] >= min(1.0, 60 * s["pvalue"]) - 1e-12 for s in made.data["segments"])


def test_a_report_without_a_test_has_no_verdict():
    made = cal.report(*world(200), metrics=["ece"], n_resamples=0)
    assert made.verdict == ""
    assert 'class="headline none"' in made.to_html(interactive=False)


def test_the_verdict_needs_no_ece_in_the_table():
    made = cal.report(*world(4000), metrics=["bs"], primary="bs", n_resamples=99)
    assert made.verdict == WITHIN
    assert "an ECE up to 0.0" in made.headline
    assert replace(made, verdict=UNKNOWN).verdict == UNKNOWN


def test_the_noise_of_the_draws_is_not_shown_as_what_a_calibrated_model_shows():
    y, p = world(300)
    table = cal.evaluate(y, p, metrics=["ece", "citl"], tests=True, n_resamples=99, rng=0)
    assert table.row("citl").expected_by_chance not in (None, 0.0)  # the mean of 99 draws
    shown = {row.id: if_calibrated(row.expected_by_chance, row.null_high, row.perfect, table) for row in table}
    assert shown["citl"] == "0"
    assert shown["ece"] == number(table.row("ece").expected_by_chance)  # which chance makes larger than 0
    assert if_calibrated(0.3, 0.4, 0.0, table) == "0.300"
    assert if_calibrated(None, None, 0.0, table) == ""


def test_the_size_of_one_number_of_several_is_named_with_its_part():
    made = cal.report(*world(1000), metrics=["cis"], primary="cis", n_resamples=99)
    assert "The intercept of the Cox intercept and slope is " in " ".join(str(made).split())


def test_a_page_of_one_row_with_a_tolerance_next_to_nothing_asks_for_no_number_of_rows():
    page = cal.report([0], [1.5e-323], sample_weight=[1000.0], n_resamples=19, rng=0)
    assert "would settle it" not in str(page)
