"""The figures of a page: one beside the answer, their numbers as text, and another one for a narrow window."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

import calibrary as cal
from calibrary.plots.axis import axis_of
from calibrary.reporting.figures import BY_CLASS, points_of


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(3)
    x = rng.normal(-4.6, 1.0, 1500)
    y = (rng.random(1500) < 1 / (1 + np.exp(-x - 0.9))).astype(int)
    return cal.report(y, 1 / (1 + np.exp(-x)), metrics=["ece"], n_resamples=19)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.0] * 3, 300)
    y = (p.cumsum(axis=1)[:, :-1] < rng.random(300)[:, None]).sum(axis=1)
    return cal.report(y, p, metrics=["ece"], n_resamples=19)


def test_a_picture_stands_beside_the_answer_and_not_on_paper(rare):
    page = rare.to_html()
    first = page.index('class="first"')
    assert first < page.index('class="glance screen"') < page.index("Key numbers</h2>")
    assert 'href="#m0-figures"' in page[first : page.index("Key numbers</h2>")]


def test_every_figure_of_the_page_is_drawn_on_the_axis_that_its_caption_names(rare):
    view = cal.predictions([0, 1], [0.2, 0.7])
    assert axis_of(view).whole
    drawn = [f for f in rare.figures if "Reliability diagram" in f.name or "reliability diagram" in f.name]
    assert len(drawn) == 3
    assert all("Drawn on log-odds axes" in f.caption for f in drawn)
    assert rare.live.axis == "log odds"
    assert rare.live.n_bins == 2
    assert rare.live.own_bins == 15


def test_the_text_alternative_and_the_table_hold_the_numbers_of_the_bins(rare):
    figure = rare.figures[0]
    points = points_of(figure)
    assert len(points) == 2
    page = rare.to_html()
    label = html.unescape(re.search(r'aria-label="(Reliability diagram: [^"]*)"', page)[1])
    shown = re.search(r"predicted [\d.]+%, observed [\d.]+%", points[0][1])[0]
    assert label.startswith("Reliability diagram: 2 points; ")
    assert shown in label
    assert f"<td>{shown}</td>" in page


def test_small_multiples_have_another_picture_for_a_narrow_window(classes):
    page = classes.to_html()
    box = r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) '
    wide, narrow = (re.search(box, page[page.index(f'class="{kind}"') :])[1] for kind in ("roomy", "slim"))
    assert float(narrow) < float(wide)
    figure = next(f for f in classes.figures if f.name == BY_CLASS)
    assert figure.narrow is not None
