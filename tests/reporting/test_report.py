"""The answer in words, HTML, Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import textwrap
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.base.numbers import number, with_interval
from calibrary.cli.main import app
from calibrary.reporting import together
from calibrary.reporting.compose import comparable, compare_models
from calibrary.reporting.figures import picture
from calibrary.reporting.html import page
from calibrary.reporting.sections import SECTIONS, Section, Table
from calibrary.reporting.short import discrimination
from calibrary.reporting.stored import from_json
from calibrary.reporting.text import grouped, left_out, markdown
from calibrary.reporting.words import verdict
from calibrary.reporting.write import save

METRICS = ["ece", "bs", "cis", "ecce_mad"]


@pytest.fixture(scope="module")
def wrong():
    y, p, _ = cal.datasets.breast_cancer()
    return cal.report(y, p, metrics=METRICS, n_resamples=199, about={"title": "naive Bayes"})


@pytest.fixture(scope="module")
def right():
    rng = np.random.default_rng(5)
    p = rng.random(400)
    return cal.report((rng.random(400) < p).astype(int), p, metrics=METRICS, n_resamples=199)


def test_the_headline_says_size_evidence_and_direction(wrong):
    ece = wrong.evaluation["ece"]
    assert wrong.headline.startswith("Not calibrated (overall test, p < 0.005): the probabilities are too extreme")
    assert f"{ece:.3f}" in wrong.headline
    assert "95% interval" in wrong.headline
    assert not any("too extreme" in f for f in wrong.statements)  # the headline says so
    assert any(f.startswith("Where: predictions") for f in wrong.statements)
    with pytest.warns(DeprecationWarning, match="use Report.statements"):
        assert wrong.findings == wrong.statements
    assert wrong.to_dict()["findings"] == list(wrong.statements)  # the key of 0.2's files


def test_the_headline_never_claims_calibration(right):
    assert right.headline.startswith("Cannot tell whether the ECE is within 0.05 (overall test, p = ")
    assert right.verdict == "cannot tell"
    assert re.search(r"an ECE up to 0\.\d+ is compatible with these 400 rows; about [\d,]+ rows would", right.headline)
    for text in (right.headline, *right.statements):
        assert "is calibrated" not in text
        assert "are calibrated" not in text


def test_without_draws_it_says_how_large_not_how_sure():
    y, p, _ = cal.datasets.breast_cancer()
    answer = cal.report(y, p, metrics=["ece"], n_resamples=0)
    assert "shows the size, not the evidence" in answer.headline
    assert answer.evaluation.row("ece").low is None


def test_verdicts_follow_the_adjusted_p_value(wrong):
    words = {r.id: verdict(r) for r in wrong.evaluation}
    assert words["ece"] == "miscalibrated"


def test_classes_and_groups_are_named():
    y, p, _ = cal.datasets.digits()
    answer = cal.report(y, p, metrics=["ece"], n_resamples=19, by={"group": np.where(y < 5, "low", "high")})
    assert [c.name for c in answer.classes] == [str(k) for k in range(10)]
    assert [g.name for g in answer.groups] == ["high", "low"]
    assert sum(g.n for g in answer.groups) == len(y)
    part = y < 5
    low = next(g for g in answer.groups if g.name == "low")
    assert low.value == pytest.approx(cal.compute("ece", y[part], p[part]))
    assert low.pvalue_adjusted >= low.pvalue


def test_json_round_trip_equals_the_library(wrong, tmp_path):
    path = tmp_path / "r.json"
    wrong.save(path)
    y, p, _ = cal.datasets.breast_cancer()
    for row in json.loads(path.read_text())["evaluation"]["metrics"]:
        value = cal.compute(row["id"], y, p)
        value = getattr(value, row["part"]) if row["part"] else value
        assert row["value"] == value


def test_markdown_and_csv_hold_every_row(wrong, tmp_path):
    wrong.save(tmp_path / "r.md", tmp_path / "r.csv")
    text = (tmp_path / "r.md").read_text()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    assert len(rows) == len(wrong.evaluation)
    assert float(rows[0]["value"]) == wrong.evaluation.rows[0].value
    for row in wrong.evaluation:
        assert row.id in text


class _Checker(HTMLParser):
    """Collects what must not be on the page: open tags, network addresses, scripts other than ours."""

    def __init__(self):
        super().__init__()
        self.stack, self.links, self.scripts = [], [], 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [v for k, v in attrs.items() if k in ("src", "href") and v and not v.startswith("#")]
        self.scripts += tag == "script"
        if tag not in ("meta", "input", "img", "br", "link"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if self.stack and self.stack[-1] == tag:
            self.stack.pop()


def test_the_page_is_self_contained(wrong):
    page = wrong.to_html()
    checker = _Checker()
    checker.feed(page)
    assert checker.links == []
    assert checker.scripts == 1
    assert "<svg" in page
    assert wrong.headline.split(": ")[1] in page


def test_hostile_names_are_escaped():
    evil = "<script>alert(1)</script>"
    y, p, _ = cal.datasets.breast_cancer()
    answer = cal.report(y, p, metrics=["ece"], n_resamples=19, about={"title": evil}, by={"group": [evil] * len(y)})
    page = answer.to_html()
    assert evil not in page
    assert "&lt;script&gt;alert(1)" in page
    from calibrary.reporting.text import as_csv

    formula = cal.report(y, p, metrics=["ece"], n_resamples=0, about={"title": "=1+1"})
    assert "'=1+1" in as_csv([formula])


def test_nothing_half_written_and_bad_endings_refused(wrong, tmp_path):
    with pytest.raises(ValueError, match=r"\.html, \.pdf, \.md, \.json, \.csv"):
        wrong.save(tmp_path / "r.doc")
    with pytest.raises(ValueError, match="does not exist"):
        wrong.save(tmp_path / "missing" / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_made_again_from_its_json_alone(wrong, tmp_path):
    path = tmp_path / "saved.json"
    wrong.save(path)
    reports, _ = from_json(path)
    assert reports[0].predictions is None
    assert reports[0].to_html() == wrong.to_html()
    assert cal.Report.from_dict(wrong.to_dict()).to_html() == wrong.to_html()
    again = CliRunner().invoke(app, ["report", str(path), "-o", str(tmp_path / "page.html"), "-q"])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "page.html").read_text() == wrong.to_html()


def test_a_stored_figure_with_a_script_is_refused(wrong):
    saved = wrong.to_dict()
    for evil in ("<script>alert(1)</script>", "<path onload='x()'/>", "<foreignObject/>"):
        saved["figures"] = [{"name": "bad", "caption": "", "svg": f"<svg>{evil}</svg>"}]
        with pytest.raises(ValueError, match="create the file again"):
            cal.Report.from_dict(saved)


def test_something_else_is_no_saved_report(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"headline": 1}')
    with pytest.raises(ValueError, match="is not a saved report"):
        from_json(path)
    path.write_text("not json")
    with pytest.raises(ValueError, match="is not a JSON file"):
        from_json(path)


@pytest.mark.usefixtures("outlined")
def test_a_number_is_the_same_wherever_the_page_shows_it():
    y, p, _ = cal.datasets.breast_cancer("logistic")
    ids = ["ece", "smece", "bs", "ecce_mad", "cis", "ace"]
    answer = cal.report(y, p, metrics=ids, n_resamples=99, n_bins=12, confidence_level=0.9)
    words = html.unescape(re.sub(r"<[^>]+>", " ", answer.to_html().split("<main>")[1].split("<template")[0]))
    names = {"ece": "ECE", "smece": "smooth ECE", "bs": "Brier score", "ecce_mad": "Kolmogorov-Smirnov error"}
    for id, name in names.items():
        row = answer.evaluation.row(id)
        said = f"{number(row.value)} ({number(row.low)} to {number(row.high)})"
        captions = re.findall(rf"(?<!smooth )\b{name} (\d\S* \([^)]*\))", words)
        assert captions, name
        assert set(captions) == {said}, name
    short = {k.label: (k.value, k.low, k.high) for k in answer.short_list}
    for row in answer.evaluation.rows:
        if row.label in short:
            assert short[row.label] == (row.value, row.low, row.high)
    assert "12 bins of equal width" in words
    assert "90% Wilson" in words


def test_the_short_list_is_short_and_led_by_the_metric_chosen_in_advance(wrong):
    assert 6 <= len(wrong.short_list) <= 8
    assert wrong.short_list[0].id == wrong.primary
    assert wrong.short_list[-1].id == "auc"
    ece = wrong.short_list[0]
    assert ece.ideal == 0
    assert ece.useless > ece.value > ece.calibrated


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_area_under_the_curve_is_scikit_learns(n_classes):
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(5)
    z = np.round(rng.normal(size=(300, n_classes)), 1)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (rng.random(300)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    w = rng.integers(1, 4, 300)
    given, several = (p[:, 1], {}) if n_classes == 2 else (p, {"multi_class": "ovr", "average": "macro"})
    found = discrimination(cal.predictions(y, given, sample_weight=w), 0.95)
    assert found.value == pytest.approx(roc_auc_score(y, given, sample_weight=w, **several), abs=1e-12)
    repeated = discrimination(cal.predictions(np.repeat(y, w), np.repeat(given, w, axis=0)), 0.95)
    for name in ("value", "low", "high", "standard_error", "expected_by_chance"):
        assert getattr(found, name) == pytest.approx(getattr(repeated, name), abs=1e-12), name
    assert found.low < found.value < found.high


def test_the_interval_of_the_area_has_the_width_of_a_bootstrap():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    found = discrimination(cal.predictions(y, p), 0.95)
    drawn = [discrimination(cal.predictions(y[i], p[i]), 0.95).value for i in rng.integers(0, 400, (200, 400))]
    assert (found.high - found.low) / 3.92 == pytest.approx(np.std(drawn), rel=0.15)
    assert found.expected_by_chance == pytest.approx(found.value, abs=0.05)


def test_numbers_that_are_the_same_take_one_row():
    y, p, _ = cal.datasets.breast_cancer()
    table = grouped(cal.evaluate(y, p, metrics=["bs", "rps", "sarps", "mae", "hinge", "ece", "nll"]))
    scores = {f.label: f.same for f in table["Scores: calibration and sharpness together"]}
    assert scores == {"bs": ("rps", "sarps"), "nll": (), "mae": ("hinge",)}
    assert next(iter(table)) == "Calibration error"


def test_the_terminal_shows_the_verdict_in_words_at_80_columns(wrong, tmp_path, monkeypatch):
    from calibrary.cli import report as command

    path = tmp_path / "saved.json"
    wrong.save(path)
    monkeypatch.setattr(command.out, "_width", 80)
    shown = CliRunner().invoke(app, ["report", str(path)]).output
    assert max(map(len, shown.splitlines())) <= 80
    assert len(shown.splitlines()) < 40
    for k in wrong.short_list:
        name = textwrap.wrap(k.title, 24, break_on_hyphens=False)[0]
        line = next(line for line in shown.splitlines() if line.startswith(name + " "))
        assert not k.verdict or line.rsplit("  ", 1)[-1].strip() in k.verdict
        assert set(k.verdict.split()) <= set(shown.split())  # a long one goes on in the next line, whole
        assert number(k.value) in line
    monkeypatch.setattr(command.out, "_width", 160)
    wide = CliRunner().invoke(app, ["report", str(path)]).output.splitlines()
    for k in wrong.short_list:
        assert any(line.startswith(f"{k.title} ({k.label})") for line in wide)


@pytest.mark.usefixtures("outlined")
def test_sections_are_shown_in_every_form(monkeypatch, tmp_path):
    said = Section(
        "help", "What would help", ("Scale it: <b>.",), (Table(("map", "gain"), (("beta|x", 0.0123), ("none", None))),)
    )
    monkeypatch.setitem(SECTIONS, "help", lambda context: said)
    y, p, _ = cal.datasets.breast_cancer()
    answer = cal.report(y, p, metrics=["ece"], n_resamples=0, thresholds=[0.3])
    assert said in answer.sections
    page = answer.to_html()
    for text in ("What would help", "Scale it:</b> &lt;b&gt;.", "beta|x", "0.012"):
        assert text in page
    answer.save(tmp_path / "r.md", tmp_path / "r.json")
    text = (tmp_path / "r.md").read_text()
    assert "## What would help" in text
    assert "| beta\\|x | 0.012 |" in text
    assert "What would help" in repr(answer)
    assert cal.Report.from_dict(json.loads((tmp_path / "r.json").read_text())).to_html() == page


@pytest.fixture(scope="module")
def two_models():
    y, p, _ = cal.datasets.breast_cancer()
    _, q, _ = cal.datasets.breast_cancer("logistic")
    models = {"bayes": p, "logistic": q}
    reports = [
        cal.report(y, m, metrics=METRICS, n_resamples=99, about={"title": f"x.csv: {name}"})
        for name, m in models.items()
    ]
    found = compare_models(y, models, metrics=comparable(reports[0]), n_resamples=99, rng=0, reference="bayes")
    return reports, found


def test_the_number_of_draws_does_not_hide_a_difference():
    """Six comparisons times the smallest p-value of 99 draws would be no evidence, however far apart the models."""
    rng = np.random.default_rng(0)
    c = rng.beta(0.8, 0.8, 2000)
    y = rng.random(2000) < c
    models = {"right": c, "wrong": 0.5 + 0.2 * (c - 0.5), "again": np.clip(c + 1e-3 * rng.normal(size=2000), 0, 1)}
    found = compare_models(y, models, metrics=("bs", "ece", "nll"), n_resamples=99, rng=0, reference="right")
    for metric, c in found:
        if c.a == "wrong":
            assert c.pvalue_adjusted < 0.001, metric
        else:
            direct = cal.compare(metric, y, models["again"], models["right"], n_resamples=99, rng=0)
            assert c.pvalue == direct.pvalue, metric  # what the draws can tell is left to them


def test_classes_read_the_same_in_figure_and_table():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.0] * 4, 600)
    y = (p.cumsum(axis=1)[:, :-1] < rng.random(600)[:, None]).sum(axis=1)
    for bins in (None, 7):
        answer = cal.report(y, p, metrics=["ece"], n_resamples=19, n_bins=bins)
        drawn = picture(next(f for f in answer.figures if f.name == "Reliability by class"))
        shown = dict(re.findall(r">(\d) +ECE ([\d.]+)<", drawn))
        table = next(s for s in answer.sections if s.key == "classes").tables[0]
        at = table.head.index("class-wise ECE")
        assert shown == {row[0]: number(row[at]) for row in table.rows}
        assert "Reliability by class" not in drawn  # the page writes it


@pytest.mark.usefixtures("outlined")
def test_what_was_not_computed_is_named_by_reason_in_words_for_readers():
    y, p, _ = cal.datasets.breast_cancer("logistic")
    answer = cal.report(y, p, n_resamples=0)
    reasons = left_out(answer.evaluation)
    assert {"d_ece", "laece", "egce"} <= set(reasons["is about the boxes of a detector"])
    assert sorted(id for ids in reasons.values() for id in ids) == sorted(answer.evaluation.skipped)
    assert "Matches object" not in answer.to_html() + markdown([answer])


def test_several_models_stand_side_by_side_with_their_differences(two_models):
    reports, comparisons = two_models
    table = {row.id for row in reports[0].evaluation.rows}
    assert {m for m, _ in comparisons} == {k.id for k in reports[0].short_list if not k.part and k.id in table}
    shown = dict(
        zip([id for id, _ in together.heads(reports)], together.cells(reports[1], reports, comparisons), strict=True)
    )
    for metric, c in comparisons:
        assert (c.a, c.b) == ("logistic", "bayes")
        assert c.value == pytest.approx(reports[1].evaluation[metric] - reports[0].evaluation[metric], abs=1e-12)
        assert shown[metric].difference.lstrip("+") == with_interval(c.value, c.low, c.high)
    assert shown["bs"].mood == "better"
    turned = [(m, replace(c, a=c.b, b=c.a, value=-c.value, low=-c.high, high=-c.low)) for m, c in comparisons]
    assert not any(c.difference for c in together.cells(reports[0], reports, comparisons))
    # with the other model subtracted, the difference stands beside the first one, with the other sign and color
    other = dict(
        zip([id for id, _ in together.heads(reports)], together.cells(reports[0], reports, turned), strict=True)
    )
    assert not any(c.difference for c in together.cells(reports[1], reports, turned))
    assert other["bs"].mood == "worse"
    assert other["bs"].difference.startswith("+")


@pytest.mark.usefixtures("outlined")
def test_the_page_of_several_models_is_made_again_too(two_models, tmp_path):
    reports, comparisons = two_models
    save(reports, [tmp_path / "r.json", tmp_path / "r.html", tmp_path / "r.md"], comparisons)
    text = (tmp_path / "r.html").read_text()
    assert page(*from_json(tmp_path / "r.json")) == text
    assert text.count('class="tip curve"') == 2
    assert "| logistic |" in (tmp_path / "r.md").read_text()


def test_weights_that_are_no_counts_give_a_report_that_says_what_was_not_judged():
    y, p, _ = cal.datasets.breast_cancer()
    weights = np.random.default_rng(0).random(len(y))
    answer = cal.report(y, p, sample_weight=weights, metrics=["ece"], n_resamples=0)
    assert answer.evaluation.row("ece").value == pytest.approx(cal.compute("ece", y, p, sample_weight=weights))
    said = next(s for s in answer.sections if s.key == "help").sentences
    assert "weight_type='importance'" in said[0]
    judged = cal.report(y, p, sample_weight=weights, weight_type="importance", metrics=["ece"], n_resamples=0)
    assert "log loss" in next(s for s in judged.sections if s.key == "help").sentences[0]


@pytest.mark.usefixtures("outlined")
def test_columns_of_the_file_reach_the_sections(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    lines = [f"{y[i]},{p[i]:.4f},{'mf'[i % 2]},2025-0{1 + i // 100}-01,{i // 2}" for i in range(300)]
    (tmp_path / "p.csv").write_text("\n".join(["y,p,sex,day,patient", *lines]))
    asked = ["--by", "sex", "--time", "day", "--threshold", "0.5", "--unit", "patient", "--metrics", "ece"]
    done = CliRunner().invoke(
        app, ["report", str(tmp_path / "p.csv"), *asked, "--resamples", "39", "-o", str(tmp_path / "r.json"), "-q"]
    )
    assert done.exit_code == 0, done.output
    saved = json.loads((tmp_path / "r.json").read_text())
    assert {s["key"] for s in saved["sections"]} >= {"affected", "time", "decisions", "provenance"}
    provenance = next(s for s in saved["sections"] if s["key"] == "provenance")
    assert provenance["data"]["rows read"] == 300


def test_the_expected_time_grows_with_the_work():
    from calibrary.cli.waiting import expected_seconds

    assert expected_seconds(1000, 2, 1, 199) < expected_seconds(10**6, 2, 1, 199) < expected_seconds(10**6, 10, 1, 199)
    assert expected_seconds(1000, 2, 3, 199) == 3 * expected_seconds(1000, 2, 1, 199)
    assert expected_seconds(1000, 2, 1, 0) < expected_seconds(1000, 2, 1, 199) / 3


@pytest.mark.parametrize("table", ["catalogue", "interval", "bins", "evaluate"])
def test_a_notebook_shows_tables(table):
    y, p, _ = cal.datasets.breast_cancer()
    shown = {
        "catalogue": lambda: cal.catalogue,
        "interval": lambda: cal.interval("bs", y, p, n_resamples=49, rng=0),
        "bins": lambda: cal.reliability_bins(y, p),
        "evaluate": lambda: cal.evaluate(y, p, metrics=["bs"]),
    }[table]()._repr_html_()
    assert shown.count("<table>") >= 1
    assert "<script" not in shown
    names = {"catalogue": "Brier score", "interval": "IntervalResult", "bins": "outcome", "evaluate": "Brier score"}
    assert names[table] in shown


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(wrong):
    shown = wrong._repr_html_()
    frame = re.search(r"<iframe [^>]*>", shown)[0]
    assert "allow-same-origin" not in frame  # its script cannot reach the notebook
    assert "sandbox=" in frame
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1])
    assert "<script" not in shown
    assert 'data-figure="reliability"' in page
    assert page.count("<table") >= 1


@pytest.mark.usefixtures("outlined")
@pytest.mark.parametrize(("given", "together"), [(("--units", "unit"), "units"), (("--blocks", "5"), "blocks")])
def test_rows_that_belong_together_do_so_where_models_are_compared_and_segments_say_that_theirs_do_not(
    tmp_path, given, together
):
    rng = np.random.default_rng(4)
    unit = np.repeat(np.arange(40), 5)
    p = np.clip(rng.random(40)[unit] + 0.02 * rng.standard_normal(200), 0.01, 0.99)
    y, q = (rng.random(40)[unit] < p).astype(int), np.round(0.5 + 0.6 * (p - 0.5), 6)
    lines = [f"{a},{b},{c},{u},{'fm'[i % 2]}" for i, (a, b, c, u) in enumerate(zip(y, p, q, unit, strict=True))]
    path = tmp_path / "p.csv"
    path.write_text("label,one,two,unit,sex\n" + "\n".join(lines))
    asked = ["report", str(path), "--model", "one", "--model", "two", "--by", "sex", "--metrics", "ece,bs", "-q"]
    assert CliRunner().invoke(app, [*asked, *given, "--resamples", "39", "-o", str(tmp_path / "r.json")]).exit_code == 0
    saved = json.loads((tmp_path / "r.json").read_text())
    found = next(c for c in saved["comparisons"] if c["metric"] == "bs")
    said = {"units": unit} if together == "units" else {"blocks": 5}
    direct = cal.compare("bs", y, p, q, n_resamples=39, rng=0, **said)
    assert (found["low"], found["high"]) == pytest.approx((direct.low, direct.high))
    by_rows = cal.compare("bs", y, p, q, n_resamples=39, rng=0)
    assert found["high"] - found["low"] > 1.2 * (by_rows.high - by_rows.low)
    affected = next(s for s in saved["models"][0]["sections"] if s["key"] == "affected")
    assert any(s.startswith("Rows are assumed to be independent here") for s in affected["sentences"])


def test_the_key_numbers_show_calibration_in_the_large_and_the_slope(wrong):
    shown = {k.label: k for k in wrong.short_list}
    assert "cis.intercept" not in shown
    assert {"citl", "cis.slope"} <= set(shown)
    large, slope = shown["citl"], shown["cis.slope"]
    y, p, _ = cal.datasets.breast_cancer()
    with pytest.warns(cal.CalibrationWarning, match="exactly 0 or 1"):
        found = cal.cox_intercept_slope(y, p)
    assert (large.value, slope.value) == pytest.approx((found.calibration_in_the_large, found.slope))
    assert large.low < large.value < large.high
    assert (large.title, slope.title) == ("calibration-in-the-large", "calibration slope")
    mean = wrong.decision.row("mean")
    assert ("miscalibrated" in large.verdict) == (mean.pvalue_adjusted <= 0.05 and not large.low <= 0 <= large.high)
    assert "cis.intercept" in {row.label for row in wrong.evaluation.rows}


@pytest.mark.usefixtures("outlined")
def test_the_bold_words_of_an_answer_end_with_a_word_or_a_whole_number():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    untested = cal.report(y, p, n_resamples=0, metrics=["ece"])
    value = untested.evaluation.row("ece").value
    page = untested.to_html()
    assert f"<strong>The expected calibration error is {value:.3f}.</strong>" in page.replace("\n", "")
    tested = cal.report(y, p, n_resamples=40, metrics=["ece"], rng=0).to_html()
    assert re.search(r"<strong>(Calibrated|Cannot tell|Not calibrated)[^<:(]*", tested)
