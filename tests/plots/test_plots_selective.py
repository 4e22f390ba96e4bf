"""Risk-coverage figure and coverage diagram: their numbers, and that they draw."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary import plots
from golden import arrays


@pytest.fixture
def asked():
    data = cal.datasets.answers()
    return data.y_true, data.y_prob


def test_risk_at_every_threshold_is_that_of_the_answers_given(asked):
    y, c = asked
    data = plots.risk_coverage(y, c, lens="binary")
    assert len(data.threshold) == len(set(c.tolist()))
    for threshold, coverage, risk, low, high in zip(
        data.threshold, data.coverage, data.risk, data.low, data.high, strict=True
    ):
        given = c >= threshold
        assert coverage == pytest.approx(given.mean())
        assert risk == pytest.approx(1 - y[given].mean(), abs=1e-12)
        assert low <= risk <= high
    for id in ("aurc", "e_aurc", "augrc", "auroc"):
        assert getattr(data, id) == cal.compute(id, y, c, lens="binary")
    assert data.error == pytest.approx(1 - y.mean())


def test_the_path_between_thresholds_has_the_area(asked):
    y, c = asked
    n = len(y)
    every = plots.selective._risk(np.arange(1.0, n + 1), *_steps(y, c))
    assert every.mean() == pytest.approx(cal.compute("aurc", y, c, lens="binary"), rel=1e-12)
    best = plots.selective._risk(np.arange(1.0, n + 1), *_steps(y, y.astype(float)))
    assert (every - best).mean() == pytest.approx(cal.compute("e_aurc", y, c, lens="binary"), rel=1e-10)


def _steps(y, c):
    ties = cal.predictions(y, c).ties
    return np.cumsum(ties.w[::-1]), np.cumsum((ties.w - ties.wy)[::-1])


def test_weights_and_lenses(asked):
    y, c = asked
    w = 1.0 + np.arange(len(y)) % 3
    i = np.repeat(np.arange(len(y)), w.astype(int))
    weighted, written = plots.risk_coverage(y, c, sample_weight=w), plots.risk_coverage(y[i], c[i])
    np.testing.assert_allclose(weighted.risk, written.risk)
    np.testing.assert_allclose(weighted.path_risk, written.path_risk)
    label, p, _ = arrays("multi4")
    assert plots.risk_coverage(label, p).error == pytest.approx(np.mean(p.argmax(axis=1) != label))


def test_the_coverage_diagram_holds_the_metric():
    y, p, _ = arrays("multi4")
    data = plots.set_coverage_data(y, p)
    found = cal.set_coverage(y, p, level=0.9)
    assert (data.coverage[89], data.size[89], data.claimed[89]) == pytest.approx(found[:3])
    assert (data.low <= data.coverage).all()
    assert (data.coverage <= data.high).all()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_figures_draw(asked, theme):
    y, p, _ = arrays("multi4")
    for ax in (
        plots.plot_risk_coverage(*asked, theme=theme),
        plots.plot_risk_coverage(y, p, band=False, caption=False, theme=theme),
        plots.plot_risk_coverage({"first": asked, "second": cal.predictions(y, p)}, theme=theme),
        plots.plot_set_coverage(y, p, theme=theme),
        plots.plot_set_coverage(plots.set_coverage_data(y, p, levels=[0.5, 0.9]), theme=theme),
    ):
        ax.figure.draw_without_rendering()
        assert ax.get_title(loc="left")
    assert plots.draw("risk-coverage", cal.predictions(*asked)).axes
    assert "threshold" in plots.risk_coverage(*asked).to_csv()
    assert "null" not in plots.risk_coverage(*asked).to_json()


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
def test_one_kind_of_answer_can_be_drawn():
    for y in ([1, 1, 1], [0, 0, 0]):
        ax = plots.plot_risk_coverage(y, [0.2, 0.6, 0.9])
        ax.figure.draw_without_rendering()
