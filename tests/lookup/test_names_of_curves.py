"""Names people use: two that are metrics of the catalogue under another name, and those that are curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.cli.main import app
from calibrary.lookup.curve_names import curve_named, known_curves
from golden import arrays, assert_close, call, entries

#: Functions of the decision room.
OF_DECISIONS = {"plots.plot_decision", "decision_curve", "net_benefit"}


@pytest.mark.parametrize("name", ["cutoff calibration error", "cutoff_error", "Cutoff-Calibration-Error"])
def test_cutoff_calibration_error_is_the_largest_gap_of_any_interval_of_scores(name, binary_set):
    y, c = binary_set
    assert cal.catalogue[name].id == "ecce_r"
    if len(y) > 500:
        y, c = y[:300], c[:300]
    cuts = np.unique(c)
    worst = max(
        abs(np.sum((y - c)[(c >= low) & (c <= high)])) / len(y) for i, low in enumerate(cuts) for high in cuts[i:]
    )
    assert cal.compute(name, y, c) == pytest.approx(worst, rel=1e-12)


def test_cutoff_calibration_error_equals_the_golden_values():
    for entry in [e for e in entries("emerging") if e["id"] == "ecce_r"]:
        assert_close(call({**entry, "id": "cutoff calibration error"}), entry)


@pytest.mark.parametrize("name", ["USS", "uss", "le Cessie-Copas test", "unweighted sum of squares test"])
def test_the_unweighted_sum_of_squares_test_is_spiegelhalters(name, binary_set):
    y, c = binary_set
    # with known probabilities: sum of squares less its mean, over its standard deviation
    z = np.sum((y - c) ** 2 - c * (1 - c)) / math.sqrt(np.sum((1 - 2 * c) ** 2 * c * (1 - c)))
    assert cal.compute(name, y, c) == pytest.approx(z, rel=1e-10)
    assert cal.test(name, y, c, method="asymptotic").pvalue == pytest.approx(
        math.erfc(abs(z) / math.sqrt(2)), rel=1e-9, abs=1e-300
    )


def resolved(path):
    found = cal
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


@pytest.mark.parametrize("curve", known_curves(), ids=lambda c: c.name)
def test_a_curve_points_to_its_figure_its_data_and_its_number(curve):
    for path in (curve.figure, curve.data):
        assert callable(resolved(path)) or path in OF_DECISIONS
    for id in curve.metrics:
        assert id in cal.catalogue or id in OF_DECISIONS
    for name in (curve.name, *curve.aliases, curve.name.upper(), curve.name.replace(" ", "_")):
        assert curve_named(name) is curve
        with pytest.raises(cal.UnknownMetricError, match=rf"is a curve: calibrary\.{curve.figure}"):
            cal.compute(name, [0, 1], [0.2, 0.8])
        told = CliRunner().invoke(app, ["explain", name])
        assert told.exit_code == 0
        assert f"calibrary.{curve.figure}" in told.stdout.replace("\n", "")


def test_the_murphy_diagram_has_the_brier_score_as_its_area():
    y, c, _ = arrays("binary500")
    assert resolved(curve_named("Brier curve").data)(y, c).area[0] == pytest.approx(cal.brier_score(y, c))
    assert resolved(curve_named("Murphy diagram").data)(y, c).brier == pytest.approx(cal.brier_score(y, c))


def test_names_that_are_neither_are_still_unknown():
    assert curve_named("pie chart") is None
    with pytest.raises(cal.UnknownMetricError, match="no metric is called"):
        cal.compute("pie chart", [0, 1], [0.2, 0.8])
