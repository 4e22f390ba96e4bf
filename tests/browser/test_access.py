"""The page for people with a screen reader, a keyboard, a phone or the dark: no violation that axe knows."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.reporting.html import page
from each import FULL

pytest.importorskip("matplotlib").use("agg")


def report(seed, title, **more):
    rng = np.random.default_rng(seed)
    n = 400
    z = rng.normal(size=n) * 1.5 - 0.5
    y = rng.random(n) < 1 / (1 + np.exp(-0.6 * z))
    site = rng.choice(["the north of the country", "south"], n)
    return cal.report(
        y, 1 / (1 + np.exp(-z)), metrics=["ece", "bs", "cis"], n_resamples=39, title=title, by={"site": site},
        thresholds=[0.3], time=np.arange(n) // 100, author="A. Person", purpose="Audit", date="2026-05-04", **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def reports():
    return [report(0, "first"), report(1, "second")]


def violations(driver):
    base = pytest.importorskip("axe_core_python.base")
    driver.set_script_timeout(120)
    driver.execute_script(base.AXE_SCRIPT)
    return driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations.map("
        "v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 100)).slice(0, 3)])))"
    )


#: Theme, models and width of a page; a quick run leaves out those whose parts the others show.
PAGES = [("light", 1, "wide"), ("dark", 2, "wide"), ("dark", 1, "narrow")]
PAGES += [("light", 2, "wide"), ("dark", 1, "wide"), ("light", 1, "narrow")] if FULL else []


@pytest.mark.parametrize(("theme", "models", "size"), PAGES)
def test_axe_finds_no_violation_and_every_text_has_contrast(opened, reports, theme, models, size):
    driver = opened(page(reports[:models]), size)
    driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    driver.execute_script(
        "all('details').forEach(d => { d.open = true; }); all('.legend button').forEach(b => b.click())"
    )
    assert violations(driver) == []


def test_axe_finds_what_is_wrong(opened):
    driver = opened(
        "<!doctype html><html lang=en><title>x</title><main><h1>x</h1>"
        "<p style='color:#ccc;background:#fff'>pale</p></main>"
    )
    assert [v[0] for v in violations(driver)] == ["color-contrast"]


def test_words_in_figures_are_readable_on_a_phone(opened, reports):
    driver = opened(page(reports[:1]), "narrow")
    sizes = driver.execute_script(
        "return all('figure svg').filter(s => s.getBoundingClientRect().width).flatMap(s => { const k = "
        "s.getBoundingClientRect().width / s.viewBox.baseVal.width; return all('text', s).map(t => "
        "[k * parseFloat(getComputedStyle(t).fontSize), s.getAttribute('aria-label'), t.textContent]); })"
    )
    assert len(sizes) > 50
    assert [s for s in sizes if s[0] < 9.0] == []
    cut = driver.execute_script(
        "return all('figure svg text').filter(t => t.getBoundingClientRect().width && t.getBoundingClientRect().left < "
        "t.closest('figure').getBoundingClientRect().left).map(t => t.textContent)"
    )
    assert cut == []
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_a_figure_that_stands_alone_fills_its_card(opened, reports):
    driver = opened(page(reports[:1]))
    share = driver.execute_script(
        "return all('figure.alone').map(f => (one('svg', f).getBoundingClientRect().width + "
        "one('figcaption', f).getBoundingClientRect().width) / f.clientWidth)"
    )
    assert share
    assert min(share) > 0.9


def test_numbers_of_a_column_have_their_points_below_each_other(opened, reports):
    driver = opened(page(reports[:1]))
    shown = driver.execute_script(
        "return all('.part-affected table.sortable')[0].querySelectorAll('tbody tr td:nth-child(5)').length"
    )
    assert shown == 2
    points = "r => r.cells[4].textContent.replace(/.*[.]/, '').length"
    texts = driver.execute_script(f"return all('tbody tr', one('.part-affected table.sortable')).map({points})")
    assert len(set(texts)) == 1
    assert driver.execute_script("return getComputedStyle(one('.part-affected td.num')).textAlign") == "right"
    kinds = "return [...one('.part-affected tbody tr').cells].map(c => c.classList.contains('num'))"
    assert driver.execute_script(kinds) == [False, True, True, True, True, False, True, True]  # p-values are numbers


def test_points_are_aligned_with_blanks_alone():
    from calibrary.reporting.html import aligned

    assert aligned(["43%", "39.2%"]) == ["43%\u2008\u2007", "39.2%"]
    made = aligned(["0.152", "0.0086", "12", ""])
    assert [t.strip() for t in made] == ["0.152", "0.0086", "12", ""]
    assert len({len(t) - len(t.partition(".")[0].split("\u2008")[0]) for t in made}) == 1
