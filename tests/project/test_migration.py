"""The page on coming from 0.2: every old call works, warns once with the new name, and gives what the new one gives."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.public import RENAMED
from paths import ROOT

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = (RNG.random(300) < P).astype(int)
CORNERS = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
PLATT = cal.maps.as_map("platt").fit(Y, P)


def _verdict(**options):
    return cal.verdict("ece<0.05", Y, P, rng=1, **options).status


#: Old call, new call, and what the warning names.
CALLS = [
    (lambda: cal.compute(id="ece", y_true=Y, y_prob=P), lambda: cal.compute("ece", Y, P), "metric="),
    (
        lambda: cal.test(id="ece", y_true=Y, y_prob=P, rng=1).pvalue,
        lambda: cal.test(metric="ece", y_true=Y, y_prob=P, rng=1).pvalue,
        "metric=",
    ),
    (lambda: _verdict(on_undecided="fail"), lambda: _verdict(undecided="fail"), "undecided="),
    (lambda: _verdict(by="estimate"), lambda: _verdict(judged_by="estimate"), "judged_by="),
    (lambda: cal.calibration_curve_gap, lambda: cal.metrics.curve.distance.calibration_curve_gap, "distance"),
    (lambda: cal.brownian_abs_max_sf(1.0), lambda: cal.numerics.laws.brownian.brownian_abs_max_sf(1.0), "brownian"),
    (lambda: cal.Data, lambda: cal.data.Data, "calibrary.data"),
    (lambda: cal.as_data, lambda: cal.data.as_data, "calibrary.data"),
    (
        lambda: cal.metrics.cumulative.brownian_range_sf(1.0),
        lambda: cal.numerics.laws.brownian.brownian_range_sf(1.0),
        "calibrary.numerics.laws.brownian.brownian_range_sf",
    ),
    (
        lambda: cal.kernels.beta_log_kernel(P[:2], centres=P[:3], h=0.1).tolist(),
        lambda: cal.kernels.beta_log_kernel(P[:2], centers=P[:3], h=0.1).tolist(),
        "centers=",
    ),
    (
        lambda: cal.kernels.dirichlet_log_kernel(CORNERS, centres=CORNERS, h=0.1).tolist(),
        lambda: cal.kernels.dirichlet_log_kernel(CORNERS, CORNERS, 0.1).tolist(),
        "centers=",
    ),
    (lambda: vars(PLATT.kept()), lambda: vars(PLATT.for_refit()), "for_refit"),
    (lambda: cal.NeighbourCurve, lambda: cal.NeighborCurve, "NeighborCurve"),
]


@pytest.mark.parametrize(("old", "new", "named"), CALLS)
def test_an_old_call_gives_what_the_new_one_gives_and_names_it_once(old, new, named):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = old()
    said = [str(w.message) for w in heard if w.category is DeprecationWarning]
    assert len(said) == 1, said
    assert "is an old name: use" in said[0]
    assert named in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        assert found == new()


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_a_name_with_another_spelling_works_and_its_warning_has_the_new_one(name):
    with pytest.warns(DeprecationWarning, match=f"calibrary.{name} is an old name: use calibrary.{RENAMED[name]}$"):
        found = getattr(cal, name)
    assert found is getattr(cal, RENAMED[name])


def test_predictions_are_relabelled_under_the_old_name():
    with pytest.warns(DeprecationWarning, match="relabeled"):
        old = cal.predictions(Y, P).relabelled(1 - Y)
    assert cal.brier_score(old) == cal.brier_score(1 - Y, P)


def test_every_name_of_the_page_on_migration_exists():
    text = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(calibrary(?:\.\w+)+)`", text))
    assert len(named) > 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for name in named:
            found = cal
            for part in name.split(".")[1:]:
                found = getattr(found, part)


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
def test_the_names_of_metrics_that_mean_another_number_are_those_of_the_page():
    text = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    cox, square, loss = (cal.compute(metric, Y, P) for metric in ("cis", "ce2_db", "nll"))
    now = {
        "calibration intercept": cox.intercept,
        "calibration slope": cox.slope,
        "calibration-in-the-large": cox.calibration_in_the_large,
        "ECE-DEBIAS": np.sign(square) * abs(square) ** 0.5,
        "multinomial logistic loss": loss / 2,
    }
    for name, value in now.items():
        assert f'"{name}"' in text
        assert cal.compute(name, Y, P) == pytest.approx(value)
    for name in ("ACE", "MSCE", "ECCE"):
        assert f'"{name}"' in text
        assert np.isfinite(cal.compute(name, Y, P))


def test_a_state_takes_no_keys_as_the_page_says():
    with pytest.raises(TypeError, match="keys"):
        cal.scale.State().add(None, keys=((),))
