"""Calibrated predictions, de-calibrated by temperature: what metrics make of it (section 9.2)."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.numerics.draw import generator
from calibrary.study import temperature_sweep

TRUTH = np.random.default_rng(5).beta(0.8, 0.8, 1500)
STEPS = [0.25, 0.5, 1.0, 2.0, 4.0]


def test_a_reading_is_the_metric_on_logits_divided_by_the_temperature():
    sweep = temperature_sweep(["ece", "spiegelhalter"], TRUTH, temperatures=STEPS, n_repeats=2, rng=1)
    rng = generator(1, "labels")
    labels = [(rng.random(1500) < TRUTH).astype(int) for _ in range(2)]
    for k, t in enumerate(STEPS):
        p = 1 / (1 + ((1 - TRUTH) / TRUTH) ** (1 / t))
        for id in ("ece", "spiegelhalter"):
            want = np.mean([cal.compute(id, y, p) for y in labels])
            assert sweep.means[id][k] == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(
    "truth", [TRUTH, np.random.default_rng(6).dirichlet([0.5] * 4, 1500)], ids=["binary", "vectors"]
)
def test_measures_that_find_the_truth_are_best_at_one_and_rise_on_both_sides(truth):
    sweep = temperature_sweep(["bs", "nll", "sce", "lkce", "nses", "pss"], truth, temperatures=STEPS, rng=0)
    assert set(sweep.best.values()) == {1.0}
    assert all(steady for id, steady in sweep.steady.items() if id != "nses")
    assert "temperature" in str(sweep)
    assert "lkce" in str(sweep)


def test_a_name_with_settings_keeps_them_and_what_misses_the_truth_shows():
    improper = temperature_sweep(["mae", "RMSCE"], TRUTH, temperatures=STEPS, rng=0)
    assert improper.best["mae"] == 0.25  # rewards extreme predictions
    assert improper.means["RMSCE"][0] > 0.1
    assert not improper.steady["mae"]


@pytest.mark.parametrize("bad", [[0.5, 2.0], [0.0, 1.0], [[1.0]]])
def test_temperatures_without_a_calibrated_one_are_refused(bad):
    with pytest.raises(ValueError, match="must be numbers above 0, with 1 among them"):
        temperature_sweep(["ece"], TRUTH, temperatures=bad)
