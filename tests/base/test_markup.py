"""Elements: text cannot become markup, however it is passed."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest

from calibrary.base.markup import Markup, document, each, element, html_table, markup, own

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='x",
    "</p><!--",
    "]]><svg/onload=1>",
    "&lt;b&gt; &amp; &",
    "a\nb\x00<b\u2028>",
    "\ud800<i>",
)


class _Seen(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text_as_a_child_and_as_a_value(text):
    seen = _Seen(element("p", text, [text, (text,)], title=text))
    shown = "".join(c if c.isprintable() else "" for c in text)
    assert seen.tags == ["p"]
    assert [name for name, _ in seen.attributes] == ["title"]
    for letter in "<>\"&'":
        assert seen.text.count(letter) == 3 * shown.count(letter)
        assert (seen.attributes[0][1] or "").count(letter) == shown.count(letter)


def test_markup_in_a_sum_or_f_string_is_plain_text_again():
    bold = element("b", "x")
    assert element("p", bold) == "<p><b>x</b></p>"
    for mixed in (f"{bold}<i>", bold + "<i>", "".join([bold, "<i>"])):
        assert element("p", mixed) == f"<p>{html.escape(mixed)}</p>"
    # markup within an attribute would end its quotes
    assert element("p", title=Markup('"><b>')) == '<p title="&quot;&gt;&lt;b&gt;"></p>'


@pytest.mark.parametrize("name", ["onclick", "ONload", "x y", "x=", "x>", "", "/x"])
def test_a_name_that_would_hold_code_or_end_the_tag_is_refused(name):
    with pytest.raises(ValueError, match="is not a name of an element or attribute"):
        element("p", **{name: "1"})
    with pytest.raises(ValueError, match="is not a name of an element or attribute"):
        element(name)


def test_how_elements_are_written():
    assert element("input", type="search", data_key=0, hidden=True, open=False, id=None) == (
        '<input type="search" data-key="0" hidden>'
    )
    assert element("path", d="M0 0") == '<path d="M0 0"/>'
    assert element("p") == "<p></p>"
    assert each("li", ("a", element("b", 1)), class_="x") == '<li class="x">a</li><li class="x"><b>1</b></li>'
    assert markup("<", None, element("i"), between="\n") == "&lt;\n\n<i></i>"
    assert html_table(["<"], [[None], [(1, 2)]]) == (
        "<table><thead><tr><th>&lt;</th></tr></thead>"
        "<tbody><tr><td>None</td></tr><tr><td>(1, 2)</td></tr></tbody></table>"
    )


def test_a_page_allows_its_own_script_only():
    with_script = document("a<b", element("p", "x"), style=own("p{}"), script=own("let a = 1 < 2"))
    assert "<title>a&lt;b</title>" in with_script
    assert "<script>let a = 1 < 2</script>" in with_script
    assert "script-src &#x27;sha256-" in with_script
    without = document("t", element("p", "x"), style=own("p{}"))
    assert "<script" not in without
    assert "script-src &#x27;none&#x27;" in without
