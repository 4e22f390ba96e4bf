"""Labels, columns, file names and titles that try to run script, load something or break the layout: none does."""

from __future__ import annotations

from html import unescape

import numpy as np
import pytest

import calibrary as cal
from calibrary.reporting.html import page

#: What each of them tries; whatever runs says so in the title, whatever loads goes through the log of the network.
ATTACKS = {
    "script": "<script>document.title='owned'</script>",
    "onerror": "<img src=x onerror=\"document.title='owned'\">",
    "svg": "<svg/onload=document.title='owned'>",
    "attribute": "\" autofocus onfocus=\"document.title='owned'\" x=\"",
    "single quote": "' onmouseover='document.title=1' x='",
    "end of script": "</script><script>document.title='owned'</script>",
    "end of style": "</style><script>document.title='owned'</script>",
    "end of title": "</title><script>document.title='owned'</script>",
    "end of template": "</template></textarea><script>document.title='owned'</script>",
    "comment": "--><script>document.title='owned'</script><!--",
    "javascript link": "javascript:document.title='owned'",
    "load image": '<img src="http://127.0.0.1:9/owned.png">',
    "load style": '<link rel=stylesheet href="http://127.0.0.1:9/o.css"><style>@import "http://127.0.0.1:9/o.css";</style>',
    "load frame": "<iframe src=http://127.0.0.1:9/></iframe><object data=http://127.0.0.1:9/></object>",
    "refresh": '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/">',
    "base": '<base href="http://127.0.0.1:9/"><form action="http://127.0.0.1:9/"><button>go</button></form>',
    "css": "red;background:url(http://127.0.0.1:9/x);}*{display:none",
    "JSON": '{"__proto__": {"owned": 1}}\u2028\u2029</script>',
    "template": "{{constructor.constructor('document.title=1')()}} ${document.title='owned'} %s {0}",
    "long word": "x" * 5000,
    "wide": "W\u00a0" * 800,
    "right to left": "\u202eabc\u2066def",
    "marks": "e" + "\u0301" * 400,
    "nothing": "\x00\x07\x1b[31m\u200b",
    "half": "\ud800",
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile():
    """A report in which every text that people supply is an attack: two for each place, in turn."""
    names = list(ATTACKS.values())
    rng = np.random.default_rng(0)
    k = len(names)
    p = rng.dirichlet(np.ones(k) * 0.5, 400)
    y = np.array([rng.choice(k, p=row / row.sum()) for row in p])
    group = np.array(names, dtype=object)[rng.integers(0, k, 400)]
    reports = [
        cal.report(
            [names[k] for k in y], p, labels=names, metrics=["ece", "bs"], n_resamples=39, rng=0, title=title,
            by={column: group},
            source={"name": title, "rows_read": 400, "dropped": {column: 3}}, command=f"calibrary report {title}",
            notes=(column, title),
        )
        for title, column in (
            (ATTACKS["end of script"], ATTACKS["attribute"]), (ATTACKS["long word"], ATTACKS["script"]),
        )
    ]  # fmt: skip
    return page(reports)


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_a_page_of_hostile_texts_runs_loads_and_breaks_nothing(opened, hostile, size):
    driver = opened(hostile, size)
    driver.execute_script("all('details').forEach(d => d.open = true)")
    assert "owned" not in driver.title[:8]
    assert driver.execute_script("return document.title") != "owned"
    assert driver.execute_script("return ({}).owned") is None
    # nothing of what was supplied became an element
    assert driver.execute_script("return all('script').length") == 1
    for tag in ("img[src^=x]", "iframe", "object", "base", "form", "link", "meta[http-equiv=refresh]", "[onfocus]"):
        assert driver.execute_script(f"return document.querySelectorAll({tag!r}).length") == 0, tag
    handlers = (
        "return all('*').filter(e => [...e.attributes].some(a => a.name.startsWith('on') || "
        "/^\\s*javascript:/i.test(a.value) && a.name == 'href')).length"
    )
    assert driver.execute_script(handlers) == 0
    # the texts are there, as texts
    assert "document.title='owned'" in driver.execute_script("return document.body.textContent")
    # and none of them is wider than the window
    width = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    inside = "!e.closest('.scroll, nav, figure, svg') && e.getBoundingClientRect().right > innerWidth + 1"
    wide = driver.execute_script(f"return all('body *').filter(e => {inside}).map(e => e.tagName + '.' + e.className)")
    assert width[0] <= width[1], wide[:10]


def test_the_page_forbids_itself_to_load(hostile):
    policy = unescape(hostile.split('http-equiv="Content-Security-Policy" content="', 1)[1].split('"', 1)[0])
    assert "default-src 'none'" in policy
    assert "base-uri 'none'" in policy
    assert "form-action 'none'" in policy
