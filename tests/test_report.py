"""The answer in words, HTML, Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import calibrary as cal
from calibrary.reporting.words import verdict

METRICS = ["ece", "bs", "cis", "ecce_mad"]


@pytest.fixture(scope="module")
def wrong():
    y, p, _ = cal.datasets.breast_cancer()
    return cal.report(y, p, metrics=METRICS, n_resamples=199, title="naive Bayes")


@pytest.fixture(scope="module")
def right():
    rng = np.random.default_rng(5)
    p = rng.random(400)
    return cal.report((rng.random(400) < p).astype(int), p, metrics=METRICS, n_resamples=199)


def test_the_headline_says_size_evidence_and_direction(wrong):
    ece = wrong.evaluation["ece"]
    assert wrong.headline.startswith("Not calibrated (p < .005): the probabilities are too extreme")
    assert f"{ece:.3f}" in wrong.headline
    assert "95% interval" in wrong.headline
    assert any("too extreme" in f for f in wrong.findings)
    assert any(f.startswith("Where: between") for f in wrong.findings)


def test_the_headline_never_claims_calibration(right):
    assert right.headline.startswith("No evidence of miscalibration (p = ")
    assert "would be found out in 4 of 5 samples; smaller errors may go unseen" in right.headline
    for text in (right.headline, *right.findings):
        assert "is calibrated" not in text
        assert "are calibrated" not in text


def test_without_draws_it_says_how_large_not_how_sure():
    y, p, _ = cal.datasets.breast_cancer()
    answer = cal.report(y, p, metrics=["ece"], n_resamples=0)
    assert "how large, not how sure" in answer.headline
    assert answer.evaluation.row("ece").low is None


def test_verdicts_follow_the_adjusted_p_value(wrong):
    words = {r.id: verdict(r) for r in wrong.evaluation}
    assert words["ece"] == "miscalibrated"


def test_classes_and_groups_are_named():
    y, p, _ = cal.datasets.digits()
    answer = cal.report(y, p, metrics=["ece"], n_resamples=49, groups=np.where(y < 5, "low", "high"))
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
    answer = cal.report(y, p, metrics=["ece"], n_resamples=19, title=evil, groups=[evil] * len(y))
    page = answer.to_html()
    assert evil not in page
    assert "&lt;script&gt;alert(1)" in page
    from calibrary.reporting.text import as_csv

    formula = cal.report(y, p, metrics=["ece"], n_resamples=0, title="=1+1")
    assert "'=1+1" in as_csv([formula])


def test_nothing_half_written_and_bad_endings_refused(wrong, tmp_path):
    with pytest.raises(ValueError, match=r"\.html, \.md, \.json, \.csv"):
        wrong.save(tmp_path / "r.doc")
    with pytest.raises(ValueError, match="does not exist"):
        wrong.save(tmp_path / "missing" / "r.html")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def browser():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no browser")
    return found


def _dom(browser, page, tmp_path, script=""):
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=3000",
               f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_in_a_browser_rows_unfold_sort_and_filter(browser, wrong, tmp_path):
    script = """
    const name = row => row.querySelector("button").textContent;
    const rows = () => [...document.querySelectorAll("tr.row")].filter(r => !r.hidden).map(name);
    const out = {};
    document.querySelector(".more").click();
    out.open = !document.querySelector("tr.about").hidden;
    document.querySelectorAll("table.metrics th button")[1].click();
    out.sorted = rows();
    const search = document.querySelector("input[type=search]");
    search.value = "cox"; search.dispatchEvent(new Event("input"));
    out.filtered = rows();
    document.body.setAttribute("data-out", JSON.stringify(out));
    """
    dom = _dom(browser, wrong.to_html(), tmp_path, script)
    import html
    import re

    out = json.loads(html.unescape(re.search(r'data-out="([^"]*)"', dom)[1]))
    assert out["open"]
    values = {r.id + (f".{r.part}" if r.part else ""): r.value for r in wrong.evaluation}
    order = [values[name.replace(" ★", "")] for name in out["sorted"]]
    assert order == sorted(order)
    assert out["filtered"]
    assert all("cis" in name for name in out["filtered"])
