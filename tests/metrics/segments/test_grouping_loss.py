"""Grouping loss and relative errors of fields: golden values, definitions, what chance and bins add."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

import calibrary as cal
from golden import arrays, assert_close, parts


@pytest.fixture
def above_the_medians():
    y, c, columns = arrays("features500")
    x1, x2 = columns["x1"], columns["x2"]
    return y, c, 2 * (x1 > np.median(x1)) + (x2 > np.median(x2)), np.column_stack([x1, x2])


@pytest.mark.parametrize("entry", parts("emerging", "grouping_loss"), ids=lambda e: e["field"])
def test_parts_equal_the_golden_ones(entry, above_the_medians):
    y, c, cell, _ = above_the_medians
    assert_close(getattr(cal.grouping_loss(y, c, groups=cell, closed="left"), entry["field"]), entry)


def literal(y, c, cell, n_bins=15):
    """(uncorrected, bias, induced) by their definitions."""
    h = lambda p: 2 * p * (1 - p)  # noqa: E731
    bins = np.minimum((c * n_bins).astype(int), n_bins - 1)
    cells = [(b, y[(bins == b) & (cell == r)]) for b in np.unique(bins) for r in np.unique(cell[bins == b])]
    cells = [(b, labels) for b, labels in cells if len(labels) > 1]
    total = sum(len(labels) for _, labels in cells)
    uncorrected = bias = 0.0
    for b in np.unique([b for b, _ in cells]):
        inside = [labels for at, labels in cells if at == b]
        every = np.concatenate(inside)
        m = len(every)
        for labels in inside:
            uncorrected += len(labels) * (h(every.mean()) - h(labels.mean()))
            bias += len(labels) * h(labels.mean()) / (len(labels) - 1)
        bias -= m * h(every.mean()) / (m - 1)
    curve = KNeighborsRegressor(n_neighbors=min(2000, int(0.1 * len(c)))).fit(c[:, None], y).predict(c[:, None])
    induced = sum(
        (bins == b).sum() * (h(curve[bins == b].mean()) - h(curve[bins == b]).mean()) for b in np.unique(bins)
    )
    return uncorrected / total, bias / total, induced / len(c)


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_their_definitions(seed):
    rng = np.random.default_rng(seed)
    c = rng.beta(1, 2, 300)  # no ties, so that the nearest neighbors are told apart
    cell = rng.integers(0, 4, 300)
    y = (rng.random(300) < np.clip(c + 0.2 * (cell - 1.5), 0, 1)).astype(int)
    found = cal.grouping_loss(y, c, groups=cell, closed="left")
    np.testing.assert_allclose(found[1:], literal(y, c, cell), rtol=1e-10, atol=1e-14)
    assert found.loss == pytest.approx(found.uncorrected - found.bias - found.induced)


def test_unlike_cases_that_share_a_confidence_are_seen_and_like_ones_are_not():
    rng = np.random.default_rng(3)
    n = 20_000
    kind = rng.integers(0, 2, n)
    c = np.full(n, 0.5)
    unlike = (rng.random(n) < np.where(kind == 1, 0.9, 0.1)).astype(int)
    alike = (rng.random(n) < 0.5).astype(int)
    truth = 2 * 0.25 - 2 * 0.09  # h(.5) - h(.1)
    assert cal.grouping_loss(unlike, c, groups=kind).loss == pytest.approx(truth, abs=0.02)
    assert cal.grouping_loss(alike, c, groups=kind).loss == pytest.approx(0.0, abs=0.002)
    assert cal.compute("ece", unlike, c) < 0.02  # nothing of it is miscalibration
    many = rng.integers(0, 2000, n)  # cells that do not matter: chance is taken out
    assert cal.grouping_loss(alike, c, groups=many).uncorrected > 0.02
    assert cal.grouping_loss(alike, c, groups=many).loss == pytest.approx(0.0, abs=0.003)


def test_cells_are_learned_on_one_half_and_judged_on_the_other():
    rng = np.random.default_rng(4)
    n = 8000
    x = rng.normal(size=(n, 2))
    c = np.full(n, 0.5)
    y = (rng.random(n) < np.where(x[:, 0] > 0, 0.8, 0.2)).astype(int)
    found = cal.grouping_loss(y, c, features=x)
    assert found.loss == pytest.approx(0.5 - 2 * 0.16, abs=0.03)
    assert found == cal.grouping_loss(y, c, features=x)  # rng=0 unless given
    assert found != cal.grouping_loss(y, c, features=x, rng=1)
    noise = cal.grouping_loss((rng.random(n) < 0.5).astype(int), c, features=x)
    assert abs(noise.loss) < 0.005
    assert cal.grouping_loss(y, c, features=x[:, 0]).loss == pytest.approx(found.loss, abs=1e-12)


def test_its_test_finds_unlike_cases_and_passes_like_ones():
    rng = np.random.default_rng(5)
    c = rng.random(600)
    kind = rng.integers(0, 2, 600)
    alike = (rng.random(600) < c).astype(int)
    unlike = (rng.random(600) < np.clip(c + np.where(kind == 1, 0.25, -0.25), 0, 1)).astype(int)
    assert cal.test("grouping_loss", alike, c, groups=kind, n_resamples=99, rng=0).pvalue > 0.05
    assert cal.test("grouping_loss", unlike, c, groups=kind, n_resamples=99, rng=0).pvalue == 0.01


def test_single_cases_cannot_be_judged():
    with pytest.warns(cal.CalibrationWarning, match="no group has two rows"):
        assert np.isnan(cal.grouping_loss([0, 1], [0.2, 0.8], groups=["a", "b"]).loss)


def test_groups_or_features_must_be_given():
    y, c, _ = arrays("binary12")
    for given in ({}, {"groups": np.zeros(12), "features": np.zeros(12)}):
        with pytest.raises(ValueError, match="pass either groups="):
            cal.grouping_loss(y, c, **given)
    with pytest.raises(ValueError, match="n_groups=1 must be a whole number of at least 2"):
        cal.grouping_loss(y, c, features=np.zeros(12), n_groups=1)
    with pytest.raises(ValueError, match="features has 11 rows"):
        cal.grouping_loss(y, c, features=np.zeros(11))


# -- fields ------------------------------------------------------------------------------------------


def test_relative_error_of_fields_equals_the_golden_one():
    (entry,) = parts("emerging", "field_rce")
    y, c, columns = arrays(entry["data"])
    thirds = [np.searchsorted(np.quantile(columns[x], [1 / 3, 2 / 3]), columns[x]) for x in ("x1", "x2")]
    assert_close(cal.field_relative_calibration_error(y, c, groups=3 * thirds[0] + thirds[1]), entry)


def test_fields_without_an_event_are_named():
    y, c, field = [0, 0, 1, 0], [0.1, 0.2, 0.4, 0.4], ["a", "a", "b", "b"]
    with pytest.warns(cal.CalibrationWarning, match=r"1 of 2 fields \(2 rows\) have no event"):
        assert cal.compute("field_rce", y, c, groups=field) == pytest.approx((2 / 4) * (0.1 / 0.5))
    with pytest.warns(cal.CalibrationWarning, match="no field has an event"):
        assert np.isnan(cal.compute("field_rce", [0, 0], [0.1, 0.2], groups=["a", "b"]))
    with pytest.raises(ValueError, match="groups is missing"):
        cal.compute("field_rce", y, c)
