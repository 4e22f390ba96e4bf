"""The figures that a reader can change: the script's numbers are the library's, and mouse, keys and sliders work."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.numbers import number, percent
from calibrary.inference.draw.null import MonteCarlo
from calibrary.lookup import catalogue
from calibrary.question import Question
from calibrary.recalibrate.scores import calibrated_ece
from calibrary.reporting.html import page
from calibrary.reporting.live import BOUND, MOST_CHARACTERS, cells_of

#: What the page says of the numbers that a calibrated model would show: they are computed to within this share.
CLOSE = 0.03


def script(driver, body, *given):
    return driver.execute_script(body, *given)


def chosen(driver, id, value, event="input"):
    script(
        driver,
        "const [id, value, event] = arguments; const e = document.getElementById(id); e.value = value; "
        "e.dispatchEvent(new Event(event))",
        id, str(value), event,
    )  # fmt: skip


def rows(seed, n, spread=1.2, shift=0.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * spread + shift
    return rng.random(n) < 1 / (1 + np.exp(-0.7 * z)), 1 / (1 + np.exp(-z))


@pytest.fixture(scope="module")
def binary():
    y, p = rows(1, 1000)
    site = np.random.default_rng(2).choice(["north", "south", "west"], 1000)
    return cal.report(
        y, p, metrics=["ece", "bs"], n_resamples=39, by={"site": site}, thresholds=[0.3], title="<b>risk</b>"
    )


@pytest.fixture(scope="module")
def many():
    y, p, *_ = cal.datasets.digits()
    return cal.report(y, p, metrics=["ece"], n_resamples=0, about={"title": "digits"})


# -- numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "rare", "sure", "tied", "weighted"])
def test_bins_and_errors_of_the_script_are_the_librarys(opened, binary, kind):
    n = 3000
    y, p = rows(3, n, *{"rare": (1.3, -4.0), "sure": (8.0, 0.0)}.get(kind, (1.2, 0.0)))
    p = np.round(p, 2) if kind == "tied" else p
    w = np.random.default_rng(4).integers(1, 5, n) if kind == "weighted" else None
    view = cal.predictions(y, p, sample_weight=w)
    cells = cells_of(view, 50)
    driver = opened(binary.to_html())
    computed = script(
        driver,
        "const v = arguments[0], found = []; for (const kind of ['width', 'mass']) for (let b = 2; b <= 50; b++) {"
        "const bins = binsOf(v, kind, b); found.push([kind, b, eceOf(bins), chanceOf(bins), bins]); } return found",
        cells.to_dict(),
    )
    assert len(computed) == 98
    for binning, count, ece, chance, bins in computed:
        expected = cal.expected_calibration_error(y, p, sample_weight=w, n_bins=count, binning=binning)
        assert abs(ece - expected) <= BOUND
        table = cal.reliability_bins(y, p, sample_weight=w, n_bins=count, binning=binning)
        assert [b["n"] for b in bins] == table.weight.tolist()
        assert np.allclose([b["y"] / b["n"] for b in bins], table.outcome)
        assert np.allclose([b["c"] / b["n"] for b in bins], table.confidence, atol=BOUND)
        assert chance["mean"] <= chance["high"]
        if count % 5 == 0:
            groups = cal.grouping.group(view, binning, n_bins=count)
            assert chance["mean"] == pytest.approx(calibrated_ece(groups), rel=CLOSE)


@pytest.mark.parametrize("kind", ["plain", "rare", "sure"])
@pytest.mark.parametrize("binning", ["width", "mass"])
def test_what_a_calibrated_model_exceeds_in_a_twentieth_of_samples_is_what_draws_say(opened, binary, kind, binning):
    y, p = rows(5, 1000, *{"rare": (1.3, -4.0), "sure": (8.0, 0.0)}.get(kind, (1.2, 0.0)))
    data = cal.predictions(y, p)
    driver = opened(binary.to_html())
    for count in (5, 15, 50):
        question = Question({"n_bins": count, "binning": binning}, n_resamples=4000, rng=0)
        null = MonteCarlo(n_resamples=4000, rng=0).test(catalogue["ece"], data, question).null
        found = script(
            driver, "return chanceOf(binsOf(arguments[0], arguments[1], arguments[2]))",
            cells_of(data, 50).to_dict(), binning, count,
        )  # fmt: skip
        assert found["mean"] == pytest.approx(float(np.mean(null.values)), rel=CLOSE)
        assert found["high"] == pytest.approx(float(null.quantile(0.95)), rel=CLOSE + 0.01)  # draws have noise of 1%


def test_numbers_are_written_as_everywhere(opened, binary):
    values = [0.0, 1e-13, 3.2e-7, 0.00123, 0.0086, 0.00994, 0.00996, 0.1521, 0.9, 1.0, 12.3456, 123.46, 4321.6, -0.0123]
    driver = opened(binary.to_html())
    assert script(driver, "return arguments[0].map(shownNumber)", values) == [
        number(v).replace("e-07", "e-7") for v in values
    ]
    shares = [0.0, 1.0, 0.43, 0.072, 0.0026, 0.99947, 0.5]
    assert script(driver, "return arguments[0].map(shownPercent)", shares) == [percent(v) for v in shares]


# -- a page as a reader uses it -------------------------------------------------------------------------


def test_the_slider_of_bins_redraws_and_says_the_error(opened, binary):
    driver = opened(binary.to_html())
    assert script(driver, "return document.getElementById('bins').type") == "range"
    y, p = rows(1, 1000)
    for binning in ("width", "mass"):
        chosen(driver, "binning", binning, "change")
        for count in (5, 20, 50):
            chosen(driver, "bins", count)
            points = script(driver, "return all('[data-figure=reliability] [data-bin]').length")
            assert points == len(cal.reliability_bins(y, p, n_bins=count, binning=binning).count)
            said = script(driver, "return one('[data-figure=reliability] .said').textContent")
            assert f"ECE {number(cal.expected_calibration_error(y, p, n_bins=count, binning=binning))}" in said
            assert f"{count} bins of equal {binning}" in said
    assert script(driver, "return one('figure.still').offsetParent") is None


def test_at_the_pages_own_bins_the_numbers_are_the_tables(opened, binary):
    driver = opened(binary.to_html())
    said = script(driver, "return one('[data-figure=reliability] .said').textContent")
    row = binary.evaluation.row("ece")
    for value in (row.value, row.expected_by_chance, row.null_high):
        assert number(value) in said


def test_as_opened_a_page_has_one_ece_also_where_the_diagram_has_other_bins(opened):
    p = np.random.default_rng(3).beta(1, 60, 1500)
    y = np.random.default_rng(4).random(1500) < p
    report = cal.report(y, p, metrics=["ece"], n_resamples=39)
    drawn = cal.ece(y, p, n_bins=report.live.n_bins, binning="mass")
    assert number(drawn) != number(report.evaluation["ece"])
    assert (report.live.binning, report.live.own_binning) == ("mass", "width")
    driver = opened(report.to_html())
    said = "return one('[data-figure=reliability] .said').textContent"
    own = number(report.evaluation["ece"])
    assert set(re.findall(r"ECE (\d[\d.]*\d)", script(driver, said))) == {own}
    assert f"{report.live.n_bins} bins of equal mass" in script(driver, said)
    chosen(driver, "bins", 20)
    assert f"ECE {number(cal.ece(y, p, n_bins=20, binning='mass'))} with 20 bins" in script(driver, said)


def test_a_bin_says_its_numbers_to_the_mouse_and_to_the_keyboard(opened, binary):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver = opened(binary.to_html())
    script(driver, "one('[data-figure=reliability]').scrollIntoView()")
    point = driver.find_elements("css selector", "[data-figure=reliability] [data-bin] .dot")[4]
    ActionChains(driver).move_to_element(point).perform()
    said = script(driver, "return [one('#tip').hidden, one('#tip').textContent]")
    y, p = rows(1, 1000)
    table = cal.reliability_bins(y, p, n_bins=15)
    assert said[0] is False
    assert f"{table.count[4]} cases" in said[1]
    assert f"observed {percent(float(table.outcome[4]))}" in said[1]
    assert re.search(r"95% interval [\d.]+% to [\d.]+%", said[1])
    script(driver, "one('[data-bin][tabindex=\"0\"]').focus()")
    driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    here = script(
        driver, "const e = document.activeElement; return [e.dataset.bin, e.getAttribute('aria-label'), e.role]"
    )
    assert here[0] == "2"
    assert "bin 3 of 15" in here[1]
    assert script(driver, "return one('#tip').textContent.startsWith('bin 3 of 15')")
    driver.switch_to.active_element.send_keys(Keys.END)
    assert script(driver, "return document.activeElement.dataset.bin") == str(14)
    assert script(driver, "return all('[data-bin][tabindex=\"0\"]').length") == 1


def test_log_odds_are_chosen_where_most_confidences_are_near_an_end(opened, binary):
    y, p = rows(6, 800, 1.3, -4.2)
    rare = cal.report(y, p, metrics=["ece"], n_resamples=0)
    driver = opened(rare.to_html())
    assert script(driver, "return one('#axis').value") == "log odds"
    labels = script(driver, "return all('[data-figure=reliability] .stage text').map(t => t.textContent)")
    assert "1%" in labels
    chosen(driver, "axis", "probability", "change")
    other = script(driver, "return all('[data-figure=reliability] .stage text').map(t => t.textContent)")
    assert other != labels
    driver = opened(binary.to_html())
    assert script(driver, "return one('#axis').value") == "probability"


def test_segments_classes_and_the_legend(opened, binary, many):
    driver = opened(binary.to_html())
    options = script(driver, "return all('#view option').map(o => o.textContent)")
    assert options[0] == "all cases"
    assert {"site = north", "site = south", "site = west"} <= set(options)
    before = script(driver, "return one('[data-figure=reliability] .said').textContent")
    chosen(driver, "view", 2, "change")
    after = script(driver, "return one('[data-figure=reliability] .said').textContent")
    assert after.startswith("site = ")
    assert before != after
    chosen(driver, "view", 0, "change")
    switch = "all('[data-figure=reliability] .legend button').find(b => b.textContent.startsWith(arguments[0]))"
    script(driver, switch + ".click()", "after ")
    assert script(driver, "return all('[data-figure=reliability] .said p').length") == 2
    assert script(driver, f"return {switch}.getAttribute('aria-pressed')", "after ") == "true"
    script(driver, switch + ".click()", "95% intervals")
    assert script(driver, "return all('[data-figure=reliability] .interval').length") == 0
    driver = opened(many.to_html())
    names = script(driver, "return all('#view optgroup').map(g => [g.label, g.children.length])")
    assert names == [["classes, each against the rest", 10]]
    whole = "const f = one('[aria-label^=\"Reliability by class\"]').closest('figure'); "
    assert script(driver, whole + "return f.offsetWidth / f.parentElement.offsetWidth") > 0.99


def test_every_figure_answers_the_pointer_and_the_arrow_keys(opened, binary):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver = opened(binary.to_html())
    silent = script(
        driver, "return all('figure > svg').filter(s => !all('circle.tip', s).length).map(s => s.ariaLabel)"
    )
    assert silent == []
    names = script(driver, "return all('figure:not(.still) > svg').map(s => s.ariaLabel)")
    # the one beside the answer, smooth, isotonic, cumulative, recalibration, segments, decisions
    assert len(names) == 7
    for k, name in enumerate(names):
        here = f"all('figure:not(.still) > svg')[{k}]"
        script(driver, f"{here}.scrollIntoView({{block: 'center'}})")
        spot = script(driver, f"const t = all('circle.tip', {here}); return t[Math.floor(t.length / 2)]")
        ActionChains(driver).move_to_element(spot).perform()
        said = script(driver, "return [one('#tip').hidden, one('#tip').textContent, all('circle.lit').length]")
        assert [said[0], said[2]] == [False, 1], name
        assert said[1] == spot.get_attribute("data-tip")
        script(driver, f"one('circle.tip[tabindex=\"0\"]', {here}).focus()")
        driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        focused = script(driver, f"return all('circle.tip', {here}).indexOf(document.activeElement)")
        assert focused == 1, name
        told = script(driver, "return [document.activeElement.ariaLabel, one('#tip').textContent]")
        assert told[0] == told[1].replace("\n", "; ")
        assert script(driver, f"return all('circle.tip[tabindex=\"0\"]', {here}).length") == 1


def test_the_numbers_of_a_figure_are_those_of_its_data(opened, binary):
    from calibrary.plots import smooth_data

    driver = opened(binary.to_html())
    y, p = rows(1, 1000)
    found = smooth_data(y, p, grid=200, n_resamples=200)
    told = script(
        driver,
        "return all('figure > svg[aria-label^=\"Smooth\"] circle.tip').map(c => c.dataset.tip.split('\\n'))",
    )
    assert len(told) == 40
    curve = {percent(t): percent(c) for t, c in zip(found.grid, found.curve, strict=True)}
    places = {percent(t): t for t in found.grid}
    for predicted, observed, band, near in told:
        at = predicted.removeprefix("predicted ")
        assert observed == f"observed, smoothed: {curve[at]}"
        assert band.startswith("95% band ")
        counted = int(near.partition(" ")[0].replace(",", ""))
        assert counted == (np.abs(p - places[at]) <= found.sigma).sum()
        assert near.endswith(f" to {percent(min(places[at] + found.sigma, 1.0))}")


def test_the_legend_of_every_figure_switches_what_it_names(opened, binary):
    from selenium.webdriver.common.keys import Keys

    driver = opened(binary.to_html())
    entries = "all('figure:not(.still) > svg [data-key][aria-pressed]')"
    n = script(driver, f"return {entries}.length")
    assert n >= 12
    drawn = "all(`[data-series='${e.dataset.key}']`, e.closest('svg')).filter(s => s.getBoundingClientRect().width)"
    for k in range(n):
        counted = f"const e = {entries}[{k}]; return {drawn}.length"
        before = script(driver, counted)
        assert before > 0, script(driver, f"return {entries}[{k}].textContent")
        script(driver, f"{entries}[{k}].focus()")
        driver.switch_to.active_element.send_keys(Keys.ENTER)
        assert script(driver, f"return {entries}[{k}].getAttribute('aria-pressed')") == "false"
        assert script(driver, counted) == 0
        driver.switch_to.active_element.send_keys(Keys.SPACE)
        assert script(driver, counted) == before


def test_a_page_of_many_models_opens_with_the_best(opened):
    y, p = rows(1, 600)
    pulled = {
        "high": np.clip(1.4 * p, 0, 1),
        "low": 0.5 * p,
        "as it was": p,
        "half": np.full_like(p, 0.3),
        "up": p**0.4,
    }
    models = [cal.report(y, q, metrics=["ece"], n_resamples=0, title=name) for name, q in pulled.items()]
    best = min(pulled, key=lambda name: cal.ece(y, pulled[name]))
    driver = opened(page(models))
    assert script(driver, "return one('article.model:not([hidden])').dataset.name") == best
    assert script(driver, "const m = one('#live-model'); return m.options[m.selectedIndex].textContent") == best


def test_models_are_drawn_together_and_one_by_one(opened, binary):
    y, p = rows(1, 1000)
    other = cal.report(y, np.clip(p * 0.8, 0, 1), metrics=["ece"], n_resamples=0, about={"title": "other"})
    driver = opened(page([binary, other]))
    assert script(driver, "return all('#bins').length") == 1
    assert script(driver, "return all('[data-figure=reliability] .said p').length") == 2
    assert script(driver, "return [...new Set(all('[data-bin]').map(e => e.dataset.model))]") == ["m0", "m1"]
    chosen(driver, "live-model", 1, "change")
    assert script(driver, "return [...new Set(all('[data-bin]').map(e => e.dataset.model))]") == ["m1"]


def test_the_slider_of_the_threshold_says_what_acting_does(opened, binary):
    driver = opened(binary.to_html())
    figure = "[data-figure=decision]"
    assert script(driver, "return one('#threshold-shown').textContent") == "0.3"
    y, p = rows(1, 1000)
    section = next(s for s in binary.sections if s.key == "decisions").data["decisions"][0]
    said = script(driver, f"return one('{figure} .said').textContent")
    assert f"{round((p >= 0.3).sum())} alarms per 1,000" in said
    assert f"Net benefit {number(section['net_benefit'])}" in said
    assert f"interval {number(section['low'])} to {number(section['high'])}" in said
    place = binary.live.thresholds.t.index(0.6)
    chosen(driver, "threshold", place)
    said = script(driver, f"return one('{figure} .said').textContent")
    assert f"{(p >= 0.6).sum()} alarms per 1,000" in said
    assert f"{((p >= 0.6) & y).sum()} (" in said
    assert script(driver, f"return all('{figure} tbody tr').length") == 3
    script(driver, f"all('{figure} .legend button')[1].click()")
    assert script(driver, f"return all('{figure} .said p').length") == 2


def test_without_a_script_and_on_paper_the_still_figure_stands(opened, binary):
    driver = opened(binary.to_html())
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    tall = "f => f.getBoundingClientRect().height > 50"
    shown = f"return [...document.querySelectorAll('figure.live, figure.still')].map({tall})"
    assert script(driver, shown) == [False, False, True]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver = opened(binary.to_html())
        assert script(driver, shown) == [False, False, True]
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_plain_page_has_nothing_to_change(opened, binary, tmp_path):
    binary.save(tmp_path / "plain.html", interactive=False)
    binary.save(tmp_path / "page.html")
    plain = (tmp_path / "plain.html").read_text(encoding="utf-8")
    assert 'id="bins"' not in plain
    assert "live-data" not in plain.partition("<script>")[0]
    assert 'id="bins"' in (tmp_path / "page.html").read_text(encoding="utf-8")
    driver = opened(plain)
    assert script(driver, "return one('figure[data-figure=reliability] svg') !== null")


def test_the_page_is_small(binary, many):
    assert len(binary.to_html()) <= 1_500_000
    for report in (binary, many):
        assert len(report.live.text) <= MOST_CHARACTERS + 10_000 <= 300_000


def test_cells_that_were_changed_are_refused(binary):
    from calibrary.base.saved import SavedFileError
    from calibrary.reporting.model import Report

    saved = json.loads(json.dumps(binary.to_dict(), default=str))
    assert Report.from_dict(saved).live == binary.live
    for path, value in (
        (("views", 0, "n", 0), -1), (("views", 0, "kind"), "x"), (("views", 0, "width", 0), 999),
        (("views", 0, "c"), [0.5]), (("axis",), "x"), (("thresholds", "start"), 10**6), (("views",), []),
        (("thresholds", "before", "net", 0), None), (("level",), 2.0),
    ):  # fmt: skip
        changed = json.loads(json.dumps(saved["live"]))
        inside = changed
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value
        with pytest.raises(SavedFileError):
            Report.from_dict({**saved, "live": changed})
