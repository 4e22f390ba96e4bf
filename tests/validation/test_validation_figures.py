"""The figures of a validation, and the benchmark of its intervals at a small size."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from scipy.special import expit, logit
from test_validate import X, Y, newton

import calibrary as cal
from calibrary import plots
from calibrary.validation.corrections import of_errors
from paths import ROOT


@pytest.fixture(scope="module")
def found():
    return cal.validate(newton, X, Y, metrics=["bs", "calibration slope"], n_resamples=20, rng=0)


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("validate_benchmark", ROOT / "benchmarks" / "validate.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("kind", ["curve", "prediction", "calibration", "classification"])
def test_a_figure_shows_what_the_refits_say(found, kind, tmp_path):
    pytest.importorskip("matplotlib")
    data = plots.validation_data(found, kind, threshold=0.4)
    np.testing.assert_array_equal(data.predicted, np.sort(found.predictions.c))
    np.testing.assert_array_equal(np.sort(data.changed), np.sort(found.instability.changed(0.4)))
    assert (data.low <= data.high).all()
    ax = plots.plot_validation(found, kind, threshold=0.4)
    title = {
        "curve": "corrected for optimism",
        "prediction": "of predictions",
        "calibration": "of calibration",
        "classification": "of decisions",
    }
    assert title[kind] in ax.get_title(loc="left")
    if kind in ("curve", "calibration"):
        place = len(data.grid) // 2
        near = np.abs(data.predicted - data.grid[place]) <= 0.05
        assert f"{near.sum()} cases predicted " in ax.calibrary_spots[0].words(place)
    assert plots.plot_validation(data, theme="dark").get_title(loc="left") == ax.get_title(loc="left")
    path = tmp_path / "validation.json"
    found.save(path)
    again = plots.validation_data(cal.results.Validation.load(path), kind, threshold=0.4)
    np.testing.assert_allclose(again.corrected, data.corrected)


def test_figures_need_bootstrap_refits_of_two_classes():
    found = cal.validate(newton, X, Y, metrics="bs", method="cv", folds=3, repeats=1, rng=0)
    with pytest.raises(ValueError, match="needs bootstrap refits"):
        plots.validation_data(found)
    with pytest.raises(ValueError, match="kind='pie' is not known"):
        plots.plot_validation(found, "pie")


def test_the_interval_subtracts_the_quantiles_of_the_errors(bench):
    """Of 39 errors at the level 0.95 the ends are the extremes: beyond each lies one in forty."""
    error = np.arange(39.0)[:, None]
    ends = of_errors(np.array([100.0]), error + 5.0, np.full((39, 1), 5.0), 0.95)
    assert (ends.low[0], ends.high[0]) == (62.0, 100.0)
    moved = bench.shifted(np.array([100.0]), error + 5.0, np.full((39, 1), 5.0), 0.95)
    assert moved.low[0] == pytest.approx(5.95 - 19.0)


def test_the_area_under_the_curve_has_its_interval_on_the_log_odds():
    rng = np.random.default_rng(0)
    training, test = rng.uniform(0.7, 0.95, (2, 39, 1))
    ends = of_errors(np.array([0.8]), training, test, 0.95, ["logit"])
    errors = logit(training) - logit(test)
    assert ends.low[0] == pytest.approx(expit(logit(0.8) - errors.max()))
    assert ends.high[0] == pytest.approx(expit(logit(0.8) - errors.min()))
    training[3] = 1.0  # no log odds
    plain = of_errors(np.array([0.8]), training, test, 0.95)
    assert of_errors(np.array([0.8]), training, test, 0.95, ["logit"]) == plain


def test_the_slope_of_a_likelihood_fit_has_errors_for_the_signal_that_is_real():
    test = np.linspace(0.6, 1.0, 39)[:, None]
    low, high = (e[0] for e in of_errors(np.array([1.0]), np.ones((39, 1)), test, 0.95, ["signal"]))
    assert low == pytest.approx(0.8 - 0.2 / np.sqrt(0.8))
    assert high == pytest.approx(0.8 + 0.2 / np.sqrt(0.8))
    other = of_errors(np.array([1.4]), np.ones((39, 1)), test, 0.95, ["signal"])
    assert other == of_errors(np.array([1.4]), np.ones((39, 1)), test, 0.95)


def test_a_validation_takes_the_laws_of_its_metrics():
    from calibrary.validation.measures import chosen

    found = cal.validate(newton, X, Y, metrics=["auroc", "bs", "calibration slope", "cis"], n_resamples=3, rng=0)
    laws = chosen(["auroc", "bs", "calibration slope", "cis"], "optimism").named(found.predictions).laws
    assert laws == ["logit", "", "signal", "", "signal"]


def test_intervals_hold_the_true_value_of_the_model(bench):
    """A small run of the benchmark; its stored counts are of a thousand samples for each size."""
    rows = bench.coverage(40, 60, 2, "cpu", cells=((200, 3),))
    held = {row["measure"]: row["held"] for row in rows if row["method"] == "of errors"}
    assert all(n >= 31 for n in held.values()), held
    assert {row["held"] for row in rows if row["method"] == "shifted" and row["measure"] == "calibration slope"} == {0}
