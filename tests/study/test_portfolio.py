"""Worlds with boxes, features and fitted models: their truth, and what is stored of the metrics that need them."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.lookup.study_findings import finding, lines, stored, why_not
from calibrary.study import PORTFOLIO, DetectorWorld, FeatureWorld, FittedWorld, portfolio
from calibrary.study.portfolio import DETECTOR_CURVES, GROUPS

#: The metrics of the review that labels and confidences do not suffice for.
REST = ("d_ece", "laece", "laace", "egce", "qgc", "sgc", "l1cbod", "oce", "eice", "piece", "pce")


def test_the_worlds_hold_the_rest_of_the_review():
    assert set(REST) <= set(PORTFOLIO)
    in_table = {entry.id for entry in cal.catalogue.values() if entry.id in REST}
    assert in_table == set(REST)


@pytest.mark.parametrize("curve", DETECTOR_CURVES)
def test_boxes_are_right_as_often_as_the_curve_says(curve):
    world = DetectorWorld("wide", curve)
    found = world.sample(6000, rng=1)
    left = (found.box[:, 0] < 200.0).astype(float)
    chance, _ = world.chance(found.score, left)
    z = (found.correct - chance) / np.sqrt(np.maximum(chance * (1 - chance), 1e-9))
    for part in (left == 1.0, left == 0.0, found.score < 0.5, found.score >= 0.5):
        assert abs(z[part].sum()) / np.sqrt(part.sum()) < 4.0
    assert 0.12 < found.missed().sum() / 6000 < 0.18
    assert world.truth().l1 == pytest.approx(np.abs(chance - found.score).mean(), abs=0.01)


def test_overlaps_have_the_mean_that_is_stated():
    world = DetectorWorld("wide", "calibrated", "overlap")
    found = world.sample(8000, rng=2)
    assert world.truth().largest < 1e-12
    for low in (0.0, 0.25, 0.5, 0.75):
        part = (found.score >= low) & (found.score < low + 0.25)
        error = (found.iou * found.correct - found.score)[part]
        assert abs(error.mean()) < 4.0 * error.std() / np.sqrt(part.sum())
    assert cal.laece(found) < 0.03


def test_errors_by_group_are_seen_in_groups_alone():
    world = FeatureWorld("wide", "by group")
    rows = world.sample(20_000, rng=3)
    assert cal.ece(rows.data) < 0.02
    assert cal.compute("pce", rows.data, groups=rows.groups) > 0.08
    assert world.truth().l1 == pytest.approx(cal.compute("pce", rows.data, groups=rows.groups), abs=0.03)
    assert FeatureWorld("sharp").truth().largest == 0.0


def test_fits_err_as_they_are_made_to():
    pytest.importorskip("sklearn")
    errors = {fit: FittedWorld(fit).truth().l1 for fit in ("right", "too extreme", "overfitted")}
    assert errors["right"] < 0.05 < errors["overfitted"] < errors["too extreme"]
    rows = FittedWorld("right").sample(40, rng=0)
    assert cal.compute("eice", rows.data, individual=rows.individual) < 0.1


def test_a_small_portfolio_is_a_summary():
    found = portfolio(["qgc"], n=[100], draws={100: (2, 12)})
    row = found["sizes"]["100"]["qgc"]
    assert 0.0 <= row["power"] <= 1.0
    assert (row["draws"], row["null_draws"]) == (2, 12)
    assert not [name for name in row if "distance" in name]
    assert len(found["worlds"]) == 18
    with pytest.raises(ValueError, match="metrics='ece' is not known"):
        portfolio(["ece"])


def test_the_stored_portfolio_is_quoted_as_all_other_findings():
    study = stored()
    for name in REST:
        known = finding(name, 1000)
        assert (known.expected_by_chance, known.null_deviation) != (None, None), name
        assert known.power is not None, name
        assert why_not(name) == ""
        assert name not in study["left_out"]
        assert {"study, calibrated", "study, power"} <= set(lines(name)), name
    assert finding("d_ece", 1000).power > finding("oce", 1000).power
    sizes = {size for group in GROUPS for size in group.sizes}
    assert sizes <= {int(n) for n in study["sizes"]}


def test_every_metric_of_the_review_was_studied():
    table = {entry.row: entry.id for entry in cal.catalogue.values() if entry.row is not None}
    assert len(table) == 82
    unknown = {
        id for id in table.values() if (finding(id, 300).expected_by_chance, finding(id, 300).power) == (None, None)
    }
    assert unknown == set()
    assert all(why_not(id) == "" or why_not(id).startswith("studied on up to") for id in table.values())
