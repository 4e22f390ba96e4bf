"""The page as its readers use it: sort, search, fold, hover, switch models and colours, jump by keys."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.numbers import percent
from calibrary.reporting.html import page

METRICS = ["ece", "bs", "cis", "ecce_mad", "smece", "nll", "mae", "hinge"]


@pytest.fixture(scope="module")
def wrong():
    y, p, _ = cal.datasets.breast_cancer()
    return cal.report(y, p, metrics=METRICS, n_resamples=99, about={"title": "naive Bayes"})


def script(driver, body):
    return driver.execute_script(body)


def rows(driver):
    return script(driver, "return all('table.metrics tr.row').filter(r => !r.hidden).map(r => r.dataset.id)")


def click(driver, selector):
    script(driver, f"one({selector!r}).click()")


def press(driver, keys):
    from selenium.webdriver.common.by import By

    driver.find_element(By.TAG_NAME, "body").send_keys(keys)


def test_every_metric_is_folded_until_asked_for_and_sorts_and_unfolds(opened, wrong):
    driver = opened(wrong.to_html())
    assert script(driver, "return one('.part-metrics').open") is False
    click(driver, ".part-metrics summary")
    assert script(driver, "return one('.part-metrics').open") is True
    script(driver, "all('table.metrics th button')[1].click()")
    values = {r.id + (f".{r.part}" if r.part else ""): r.value for r in wrong.evaluation}
    shown = rows(driver)
    assert "hinge" not in shown  # the same number as mae
    order = [values[id] for id in shown]
    assert order == sorted(order)
    script(driver, "all('table.metrics th button')[1].click()")
    assert rows(driver) == shown[::-1]
    click(driver, "tr[data-id=ece] .more")
    assert "calibration" in script(driver, "return one('tr[data-id=ece] + tr.about').textContent")
    click(driver, "tr[data-id=ece] .more")
    assert script(driver, "return one('tr.about')") is None


def test_search_and_groups_leave_what_fits(opened, wrong):
    driver = opened(wrong.to_html())
    press(driver, "/")
    assert script(driver, "return document.activeElement.type") == "search"
    script(driver, "document.activeElement.value = 'cox'; document.activeElement.dispatchEvent(new Event('input'))")
    assert rows(driver) == ["cis.intercept", "cis.slope"]
    script(driver, "const s = one('.part-metrics input'); s.value = ''; s.dispatchEvent(new Event('input'))")
    script(driver, "const s = one('.part-metrics select'); s.selectedIndex = 2; s.dispatchEvent(new Event('change'))")
    assert rows(driver) == ["bs", "nll", "mae"]


def test_a_bin_tells_its_counts(opened, wrong):
    driver = opened(wrong.to_html())
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    for control, value in (("binning", "width"), ("axis", "probability")):
        chosen = f"const e = one('#{control}'); e.value = {value!r}; e.dispatchEvent(new Event('change'))"
        script(driver, chosen)
    first = driver.find_element(By.CSS_SELECTOR, ".tip .dot")
    script(driver, "one('figure').scrollIntoView()")
    ActionChains(driver).move_to_element(first).perform()
    said = script(driver, "return [one('#tip').hidden, one('#tip').textContent]")
    y, p, _ = cal.datasets.breast_cancer()
    inside = p <= 1 / 15
    assert said[0] is False
    assert f"{inside.sum():,} cases" in said[1]
    assert f"observed {percent(y[inside].mean())}" in said[1]
    ActionChains(driver).move_to_element(driver.find_element(By.ID, "theme")).perform()
    assert script(driver, "return one('#tip').hidden")


def test_dark_mode_is_chosen_and_the_figures_follow(opened, wrong):
    driver = opened(wrong.to_html())
    look = "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(one('figure text')).fill]"
    script(driver, "document.documentElement.dataset.theme = 'light'")
    light = script(driver, look)
    press(driver, "d")
    dark = script(driver, look)
    assert light != dark
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    press(driver, "d")
    assert script(driver, look) == light


def test_keys_jump_from_part_to_part_and_parts_fold(opened, wrong):
    driver = opened(wrong.to_html())
    press(driver, "2")
    assert script(driver, "return document.activeElement.textContent") == "Figures"
    place = script(driver, "return all('.part').indexOf(one('.part-metrics'))")
    press(driver, str(1 + place))
    assert script(driver, "return document.activeElement.closest('.part').className") == "part part-metrics"
    press(driver, "?")
    assert script(driver, "return one('#keys').open")
    click(driver, "#keys .close")
    click(driver, "#fold")
    assert script(driver, "return all('.part').some(part => part.open)") is False
    click(driver, "#fold")
    assert script(driver, "return all('.part').every(part => part.open)")


@pytest.mark.parametrize("size", ["wide", "narrow"])
def test_nothing_is_wider_than_the_window(opened, wrong, size):
    driver = opened(wrong.to_html(), size)
    click(driver, ".part-metrics summary")
    width, window = script(driver, "return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= window


def test_labels_that_try_to_run_script_do_not(opened):
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 60)
    labels = [evil, "</style></template><script>document.title='owned'</script>", "'\"><svg onload=document.title=1>"]
    y = [labels[k] for k in rng.integers(0, 3, 60)]
    answer = cal.report(
        y, p, labels=labels, metrics=["ece"], n_resamples=0, about={"title": evil, "notes": [evil]}, by={"group": y}
    )
    driver = opened(page([answer, answer]))
    assert "owned" not in script(driver, "return document.title").replace("='owned'", "")
    assert script(driver, "return all('img, main script').length") == 0


def test_a_hundred_classes_and_twenty_models_are_usable(opened):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(100), 400)
    y = (rng.random(400)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    labels = [f"class-{k}" for k in range(100)]
    answer = cal.report(
        [labels[k] for k in y], p, labels=labels, metrics=["ece"], n_resamples=0, about={"title": "a hundred"}
    )
    driver = opened(page([answer] * 20))
    assert script(driver, "return all('article:not([hidden])').length") == 1
    press(driver, "]")
    assert script(driver, "return one('article:not([hidden])').id") == "m1"
    assert script(driver, "return one('#model').value") == "m1"
    search = "const s = one('#m1 .part-classes input'); s.value = 'class-77'; s.dispatchEvent(new Event('input'))"
    script(driver, search)
    assert script(driver, "return all('#m1 .part-classes .filtered tbody tr:not([hidden])').length") == 1
    height = script(driver, "return one('#m1 .part-classes').getBoundingClientRect().height")
    assert height < 900


def test_on_paper_everything_is_open_and_the_tools_are_gone(opened, wrong):
    driver = opened(wrong.to_html())
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    script(driver, "dispatchEvent(new Event('beforeprint'))")
    assert script(driver, "return getComputedStyle(one('.bar')).display") == "none"
    assert script(driver, "return one('table.metrics').getBoundingClientRect().height") > 100
    # an A4 page within its margins: every column of the key numbers is on the paper
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    )
    assert script(driver, "return one('table.short').getBoundingClientRect().right") <= 718
    right = "return Math.max(...all('figure, table').map(e => e.getBoundingClientRect().right))"
    assert script(driver, right) <= 718
    # a triangle that folds says nothing on paper, and what stands left of the page is cut off there
    assert script(driver, "return all('summary').map(s => getComputedStyle(s).listStyleType)[0]") == "none"
    assert script(driver, "return getComputedStyle(one('.part-metrics .hint .screen')).display") == "none"
    # tables stay tables, though the page is as narrow as a phone's: cards would take twice the paper
    # and a head that is repeated on the next page has its words, which buttons have not there
    shown = "return getComputedStyle(one('table.metrics th'), '::before').content"
    assert script(driver, shown) == '"metric"'
    for table in ("short", "metrics"):
        assert script(driver, f"return getComputedStyle(one('table.{table} thead')).display") == "table-header-group"
    script(driver, "dispatchEvent(new Event('afterprint'))")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert script(driver, "return one('.part-metrics').open") is False


def test_the_table_of_models_and_the_names_of_the_parts_are_whole(opened, wrong):
    y, q, _ = cal.datasets.breast_cancer("logistic")
    day = np.arange(len(y)) // 100
    more = {"by": {"site": day % 2}, "time": day, "thresholds": [0.3], "n_resamples": 39, "metrics": METRICS}
    reports = [
        cal.report(y, p, about={"title": f"x: {n}"}, **more)
        for n, p in {"first": wrong.predictions.c, "other": q}.items()
    ]
    driver = opened(page(reports))
    frame = "const f = one('.together .scroll'); return [f.scrollWidth, f.clientWidth]"
    wide, room = script(driver, frame)
    assert wide <= room
    assert script(driver, "return all('table.models thead th').map(h => h.textContent)[1]") == "answer"
    wide, room = script(driver, "const n = one('#jump'); return [n.scrollWidth, n.clientWidth]")
    assert wide <= room
    # a figure alone in its part has its caption beside it, not a hole
    place = "const f = one('figure.alone'), c = one('figcaption', f).getBoundingClientRect(); "
    place += "return [c.left, one('svg', f).getBoundingClientRect().right]"
    caption, picture = script(driver, place)
    assert caption >= picture


def test_a_row_lights_its_curve_and_its_name_opens_the_model(opened, wrong):
    y, q, _ = cal.datasets.breast_cancer("logistic")
    other = cal.report(y, q, metrics=["ece"], n_resamples=0, about={"title": "<logistic>"})
    driver = opened(page([wrong, other]))
    assert script(driver, "return all('article:not([hidden])').length") == 2
    script(driver, "one('tr[data-curve=m1]').dispatchEvent(new PointerEvent('pointerenter'))")
    assert script(driver, "return all('.overlay .lit').map(g => g.dataset.tip)") == ["<logistic>"]
    script(driver, "one('tr[data-curve=m1]').dispatchEvent(new PointerEvent('pointerleave'))")
    assert script(driver, "return all('.lit').length") == 0
    click(driver, "a[data-model=m1]")
    assert script(driver, "return all('article:not([hidden])').map(a => a.id)") == ["m1"]
