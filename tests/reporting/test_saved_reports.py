"""A saved report is a file from anywhere: what is not of its type, or not ours to draw, is refused in one sentence."""

from __future__ import annotations

import copy
import json
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.saved import SavedFileError, parse_json, read_json
from calibrary.reporting.agreement import not_decided
from calibrary.reporting.html import page
from calibrary.reporting.model import Report
from calibrary.reporting.safe_svg import safe_svg
from calibrary.reporting.stored import from_json

pytest.importorskip("matplotlib").use("agg")


@pytest.fixture(scope="module")
def saved():
    rng = np.random.default_rng(0)
    c = rng.random(300)
    made = cal.report(rng.random(300) < c**1.5, c, n_resamples=19, metrics=["ece", "bs"])
    return json.loads(json.dumps(made.to_dict(), default=str))


def test_a_saved_report_comes_back_with_its_figures(saved):
    again = Report.from_dict(saved)
    assert again.headline == saved["headline"]
    assert [f.name for f in again.figures] == [f["name"] for f in saved["figures"]]


@pytest.mark.parametrize(("rejected", "color"), [(True, "bad"), (False, "unknown"), (None, "none")])
def test_the_color_of_the_headline_follows_its_test_not_its_words(saved, rejected, color):
    decision = None if rejected is None else {**saved["decision"], "rejected": rejected}
    earlier = {k: v for k, v in saved.items() if k != "verdict"}  # as 0.3.0 saved it: never green
    again = Report.from_dict({**earlier, "headline": "Other words.", "decision": decision})
    assert again.rejected is rejected
    assert f'class="headline {color}"' in again.to_html(interactive=False)


def test_a_report_of_version_0_2_keeps_the_result_of_its_test():
    old = Path(__file__).parents[1] / "reference" / "files_0_2" / "report.json"
    report = Report.from_dict(json.loads(old.read_text(encoding="utf-8")))
    assert report.rejected is False
    assert not_decided(report.evaluation)
    assert not not_decided(cal.evaluate([0, 1], [0.2, 0.7], metrics=["ece"]))


def test_a_notebook_shows_the_page_that_can_be_changed_in_a_frame_without_an_origin(saved):
    again = Report.from_dict(saved)
    shown = again._repr_html_()
    assert shown.count("<iframe") == 1
    assert shown.startswith(f"<h3>{again.title}</h3><p>")
    assert 'sandbox="allow-scripts allow-downloads allow-modals allow-popups"' in shown
    assert "<script" not in shown
    assert unescape(shown.partition('srcdoc="')[2].partition('"')[0]) == page([again])


ATTACKS = [
    '<svg xmlns="x"><svg/onload="document.title=1"></svg></svg>',
    '<svg><image src="x"onerror="alert(1)"/></svg>',
    '<svg><a href="java&#115;cript:alert(1)"><text>x</text></a></svg>',
    "<svg><embed src='//example.com'/></svg>",
    '<svg><meta http-equiv="refresh" content="0;url=//example.com"/></svg>',
    "<svg><style>.headline{display:none}</style></svg>",
    "<svg><style>@import '//example.com'</style></svg>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><foreignObject><iframe src='//example.com'></iframe></foreignObject></svg>",
    '<svg><image xlink:href="//example.com/x.png"/></svg>',
    '<svg><use href="data:image/svg+xml;base64,AAAA"/></svg>',
    '<svg><rect style="fill:url(//example.com/x)"/></svg>',
    '<svg><rect style="position:fixed;top:0"/></svg>',
    '<svg><g onclick="alert(1)"/></svg>',
    '<svg><animate attributeName="href" to="javascript:alert(1)"/></svg>',
    '<svg><set attributeName="onload" to="x"/></svg>',
    "<svg></svg><img src=x onerror=alert(1)>",
    "<!DOCTYPE svg [<!ENTITY x 'y'>]><svg>&x;</svg>",
    "<svg><g></svg>",
    "<svg",
    "",
]


@pytest.mark.parametrize("svg", ATTACKS)
def test_a_picture_that_is_not_ours_is_refused(saved, svg):
    attacked = copy.deepcopy(saved)
    attacked["figures"][0]["svg"] = svg
    with pytest.raises(ValueError, match="was not drawn by calibrary"):
        Report.from_dict(attacked)


def test_text_in_a_picture_stays_text():
    shown = safe_svg("<svg><text>a &lt;script&gt; &amp; b</text></svg>")
    assert shown == "<svg><text>a &lt;script&gt; &amp; b</text></svg>"
    assert safe_svg(shown) == shown


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("sections", 0, "key"), 'x"><meta http-equiv="refresh" content="0;url=//example.com">'),
        (("short_list", 0, "value"), '"><script>alert(1)</script>'),
        (("evaluation", "metrics", 0, "value"), [1]),
        (("evaluation", "metrics", 0, "primary"), "yes"),
        (("evaluation", "n"), 1e400),
        (("title",), ["x"]),
        (("headline",), None),
        (("curve",), [[0.1, "x"]]),
        (("figures",), {"a": 1}),
        (("notes",), "text"),
        (("evaluation",), []),
        (("classes",), 3),
    ],
)
def test_a_value_of_another_type_is_refused_in_one_sentence(saved, tmp_path, path, value):
    attacked = copy.deepcopy(saved)
    place = attacked
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (tmp_path / "x.json").write_text(json.dumps({"version": 1, **attacked}))
    with pytest.raises(SavedFileError, match="is not a saved report") as told:
        from_json(tmp_path / "x.json")
    assert "\n" not in str(told.value)


def test_what_is_no_report_at_all_is_refused(tmp_path):
    for text in ("", "[", "[]", "3", '"x"', "{}", '{"models": 3}', '{"version": 99}', "[" * 100_000):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ValueError, match=r"x\.json"):
            from_json(tmp_path / "x.json")
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SavedFileError, match="not UTF-8"):
        read_json(tmp_path / "x.json", "report")
    with pytest.raises(SavedFileError, match="nested too deeply"):
        parse_json("[" * 80 + "]" * 80, "report")
