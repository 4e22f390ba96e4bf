"""Names people use: two that are metrics of the catalogue under another name, and those that are curves."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.cli.main import app
from calibrary.lookup.review_tables import curve_named, known_curves
from calibrary.metrics.machinery.cards import nearest
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


# -- names that people type ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "id", "settings"),
    [
        ("adaptive ECE", "ece", {"binning": "mass"}),
        ("AdaECE", "ece", {"binning": "mass"}),
        ("ada_ece", "ece", {"binning": "mass"}),
        ("Brier skill score", "bs", {"skill": True}),
        ("BSS", "bs", {"skill": True}),
        ("PCOC", "eo", {}),
    ],
)
def test_a_name_that_people_type_finds_the_metric(name, id, settings, binary_set):
    y, c = binary_set
    assert (cal.catalogue[name].id, dict(cal.catalogue[name].settings)) == (id, settings)
    assert cal.compute(name, y, c) == cal.compute(id, y, c, **settings)


TYPED = {
    "normalized entropy": "skill=True",
    "Cllr": "base=2",
    "calibration belt": "calibrary.honest_band",
    "sharpness": "calibrary.score_decomposition",
    "histogram binning": r"calibrary.Recalibrator\('histogram'\)",
    "risk at coverage": "calibrary.plots.risk_coverage",
    "coverage at risk": "calibrary.plots.risk_coverage",
    "PRR": "'e_aurc'",
}


@pytest.mark.parametrize("name", sorted({*TYPED, *(name for row in nearest() for name in row["names"])}))
def test_a_name_that_is_no_metric_says_in_one_sentence_what_is_nearest(name):
    with pytest.raises(cal.UnknownMetricError, match=f"^no metric is called '{name}': .*{TYPED.get(name, '')}") as told:
        cal.compute(name, [0, 1], [0.2, 0.8])
    sentence = str(told.value).partition(": ")[2]
    assert ". " not in sentence
    calls = re.findall(r"calibrary\.([\w.]+)", sentence)
    assert all(callable(resolved(call)) for call in calls)
    assert all(id in cal.catalogue for id in re.findall(r"'(\w*aurc)'", sentence))
    assert calls or "'e_aurc'" in sentence


def test_the_formulas_in_these_sentences_are_right():
    y, c, _ = arrays("binary500")
    base = y.mean()
    entropy = -(base * math.log(base) + (1 - base) * math.log(1 - base))
    assert 1 - cal.nll(y, c, skill=True) == pytest.approx(cal.nll(y, c) / entropy)
    weight = np.where(y == 1, 1 / (y == 1).sum(), 1 / (y == 0).sum())
    cost = 0.5 * (np.mean(np.log2(1 / c[y == 1])) + np.mean(np.log2(1 / (1 - c[y == 0]))))
    assert cal.nll(y, c, base=2, sample_weight=weight) == pytest.approx(cost)
    assert cal.compute("PCOC", y, c) == pytest.approx(c.sum() / y.sum())
    aurc, excess = cal.aurc(y, c, lens="top-label"), cal.e_aurc(y, c, lens="top-label")
    wrong = (c >= 0.5) != y
    random = wrong.mean()
    order = np.argsort(-np.maximum(c, 1 - c), kind="stable")
    areas = [np.mean(np.cumsum(w) / np.arange(1, len(w) + 1)) for w in (wrong[order], np.sort(wrong))]
    assert 1 - excess / (random - aurc + excess) == pytest.approx((random - areas[0]) / (random - areas[1]), rel=1e-2)
