"""The field above long tables of the site leaves the rows that contain every word."""

from __future__ import annotations

import pytest

from paths import ROOT

SCRIPT = ROOT / "docs" / "filter.js"
PAGE = """<!doctype html><article class="md-typeset"><input class="filter" hidden>
<h2>One</h2><div class="catalogue"><table><thead><tr><th>name</th></tr></thead>
<tbody><tr><td>Kernel error, unbiased</td></tr><tr><td>Kernel error</td></tr></tbody></table></div>
<h2>Two</h2><div class="catalogue"><table><thead><tr><th>name</th></tr></thead>
<tbody><tr><td>Bins</td></tr></tbody></table></div></article><script>{script}</script>"""


@pytest.mark.skipif(not SCRIPT.exists(), reason="not a checkout")
def test_rows_and_chapters_without_the_words_are_hidden(opened):
    driver = opened(PAGE.format(script=SCRIPT.read_text(encoding="utf-8")))
    field = driver.find_element("css selector", "input.filter")
    assert field.is_displayed()  # without a script it would not be

    def shown():
        return [e.text for e in driver.find_elements("css selector", "h2, td") if e.is_displayed()]

    field.send_keys("KERNEL unb")
    assert shown() == ["One", "Kernel error, unbiased"]
    field.clear()
    field.send_keys("x")
    field.send_keys("\b")
    assert len(shown()) == 5
