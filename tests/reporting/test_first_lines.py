"""Below the headline: the worst segment and what would help in it; above it: what the page is for and who made it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.claims import claims_of
from calibrary.base.numbers import percent
from calibrary.reporting import html
from calibrary.reporting.help import first_lines, remedy_words
from calibrary.reporting.model import Report

pytestmark = pytest.mark.usefixtures("outlined")

pytest.importorskip("matplotlib").use("agg")


def sites(shift, n=1200):
    rng = np.random.default_rng(3)
    site = rng.choice(["A", "B", "C"], n)
    z = rng.normal(size=n) - 1.0
    y = rng.random(n) < 1 / (1 + np.exp(-(z + shift * (site == "C"))))
    return y, 1 / (1 + np.exp(-z)), site


@pytest.fixture(scope="module")
def one_wrong():
    y, p, site = sites(1.8)
    about = {"title": "Risk", "author": "A. Person", "purpose": "Release 3 <b>", "date": "2026-05-04"}
    return cal.report(y, p, metrics=["ece"], n_resamples=39, by={"site": site}, about=about)


def test_the_worst_segment_and_its_remedy_stand_below_the_headline(one_wrong):
    y, p, site = sites(1.8)
    worst, remedy, everyone = first_lines(one_wrong.sections, 0.05)
    assert worst.startswith("Worst of 3 segments: site = C (")
    inside = site == "C"
    assert f"from {percent(p[inside].mean())} to" in remedy
    assert f"the observed frequency is {percent(y[inside].mean())}." in remedy
    assert {c.rule for c in claims_of(worst)} == {"part is miscalibrated", "measured"}
    assert everyone.startswith("What would help: ")
    page = one_wrong.to_html()
    assert 0 < page.index("site = C (") < page.index("a separate map would change") < page.index("Key numbers")
    assert first_lines(Report.from_dict(one_wrong.to_dict()).sections, 0.05) == [worst, remedy, everyone]


def test_where_no_segment_stands_out_none_is_named():
    y, p, site = sites(0.0)
    calm = cal.report(y, p, metrics=["ece"], n_resamples=39, by={"site": site})
    assert not [line for line in first_lines(calm.sections, 0.001) if line.startswith(("Worst", "Remedy"))]


def test_the_remedy_is_of_the_segment_that_the_worst_one_lies_in():
    row = {"segment": "C", "stated": 0.03, "own": 0.07, "frequency": 0.072, "common": 0.04}
    other = {**row, "segment": "C2"}
    gain = {"by": "site", "worth": True, "segments": [row, other]}
    inside = remedy_words("site = C and age = up to 40", [gain])[0]
    assert "for site = C: a separate map would change its mean probability from 3% to 7%" in inside
    assert "for site = C2: a separate map" in remedy_words("age = up to 40 and site = C2", [gain])[0]
    none = remedy_words("site = C", [{**gain, "worth": False}])[0]
    assert none.startswith("Remedy for site = C: there is no evidence that a separate map helps")
    assert remedy_words("age = up to 40", [gain]) == []
    assert remedy_words("website = C and age = up to 40", [gain]) == []


def test_the_table_of_segments_begins_with_the_worst(one_wrong):
    table = next(s for s in one_wrong.sections if s.key == "affected").tables[0]
    assert table.rows[0][0] == "site = C"


def test_title_purpose_author_date_and_a_line_to_sign(one_wrong):
    page = one_wrong.to_html()
    for text in ("Purpose: ", "Release 3 &lt;b&gt;", "Author: ", "A. Person", "Date: ", "2026-05-04"):
        assert text in page
    assert 'class="sign"' in page
    again = Report.from_dict(one_wrong.to_dict())
    assert again.about == {"purpose": "Release 3 <b>", "author": "A. Person", "date": "2026-05-04"}
    plain = cal.report([0, 1] * 30, [0.2, 0.7] * 30, metrics=["ece"], n_resamples=0).to_html()
    assert "byline" not in plain.partition("</style>")[2]
    assert 'class="sign' not in plain.partition("</style>")[2]  # a line to sign is asked for with an author
    together = html.page([one_wrong, one_wrong])
    assert together.count('class="sign"') == 1


def test_the_command_line_dates_the_page(tmp_path):
    from typer.testing import CliRunner

    from calibrary.cli.main import app
    from calibrary.reporting.stored import from_json

    rng = np.random.default_rng(0)
    lines = "\n".join(f"{int(rng.random() < 0.5)},{x:.3f}" for x in rng.random(60))
    (tmp_path / "p.csv").write_text("y,p\n" + lines)
    out = tmp_path / "r.json"
    asked = [
        "report",
        str(tmp_path / "p.csv"),
        "--label",
        "y",
        "--prob",
        "p",
        "--resamples",
        "0",
        "--metrics",
        "ece",
        "-o",
        str(out),
    ]
    more = ["--title", "Risk", "--author", "A. Person", "--purpose", "Audit", "--date", "2026-05-04"]
    assert CliRunner().invoke(app, [*asked, *more]).exit_code == 0
    found = from_json(out)[0][0]
    assert found.title == "Risk"
    assert found.about == {"purpose": "Audit", "author": "A. Person", "date": "2026-05-04"}
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", from_json(out)[0][0].about["date"])
