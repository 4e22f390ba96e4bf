"""The page on coming from 0.2: every old call works, warns once with the new name, and gives what the new one gives."""

from __future__ import annotations

import dataclasses
import json
import re
import statistics
import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.lookup.study_findings import finding
from calibrary.public import RENAMED
from calibrary.scale.sums import Batch
from paths import ROOT

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = (RNG.random(300) < P).astype(int)
CORNERS = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
MATCHED = cal.matched_detections([1, 0], [0.9, 0.6], box=[[0, 0, 20, 20], [80, 80, 20, 20]], image_size=(100, 100))
BAND = cal.expected_by_chance("bs", Y, P, n_resamples=9, rng=0)
POWER = cal.power("bs", 50, error=0.1, n_resamples=19, rng=0)
SWEEP = cal.study.temperature_sweep(["bs"], P, temperatures=[0.5, 1.0], n_repeats=1, rng=0)
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
    (lambda: cal.brownian_abs_max_sf(1.0), lambda: cal.numerics.laws.brownian_abs_max_sf(1.0), "brownian"),
    (lambda: cal.Data, lambda: cal.data.Data, "calibrary.data"),
    (lambda: cal.as_data, lambda: cal.data.as_data, "calibrary.data"),
    (
        lambda: cal.metrics.cumulative.brownian_range_sf(1.0),
        lambda: cal.numerics.laws.brownian_range_sf(1.0),
        "calibrary.numerics.laws.brownian_range_sf",
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
    (
        lambda: cal.d_ece_map(MATCHED, n_bins=2, min_samples=1).n_kept.sum(),
        lambda: cal.d_ece_map(MATCHED, n_bins=2, min_count=1).n_kept.sum(),
        "min_count=",
    ),
    (lambda: vars(PLATT.kept()), lambda: vars(PLATT.for_refit()), "for_refit"),
    (lambda: BAND.values is BAND.draws, lambda: True, "ExpectedByChance.values"),
    (lambda: POWER.reads, lambda: POWER.mean, "Power.mean"),
    (lambda: POWER.reads_calibrated, lambda: POWER.mean_calibrated, "Power.mean_calibrated"),
    (lambda: cal.inference.ReadingBand, lambda: cal.ExpectedByChance, "calibrary.inference.ExpectedByChance"),
    (lambda: cal.study.NullReading, lambda: cal.ExpectedByChance, "ExpectedByChance"),
    (lambda: SWEEP.readings is SWEEP.means, lambda: True, "TemperatureSweep.means"),
    (lambda: cal.catalogue["laece"].reads, lambda: "matches", "Entry.data_type"),
    (lambda: finding("ece", 1000).reads, lambda: finding("ece", 1000).expected_by_chance, "Finding.expected_by_chance"),
    (lambda: finding("ecd", 1000).strays, lambda: finding("ecd", 1000).null_deviation, "Finding.null_deviation"),
    (lambda: cal.NeighbourCurve, lambda: cal.NeighborCurve, "NeighborCurve"),
    (
        lambda: cal.catalogue["ece"].asked({"n_bins": 7}).options,
        lambda: cal.catalogue["ece"].question_of({"n_bins": 7}).options,
        "question_of",
    ),
    (
        lambda: cal.catalogue["ece"].renewed({"n_bins": 7}),
        lambda: cal.catalogue["ece"].with_current_names({"n_bins": 7}),
        "with_current_names",
    ),
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


def test_a_result_has_no_attribute_of_another_name():
    with pytest.raises(AttributeError, match="'Power' object has no attribute 'read'"):
        POWER.read  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'calibrary.study' has no attribute 'no_such_thing'"):
        cal.study.no_such_thing  # noqa: B018


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


@pytest.mark.parametrize("keys", [((),), (("A",), ("B",))])
def test_a_state_takes_the_places_of_keys_as_before(keys):
    by, site = ("site",) if keys[0] else (), (P > 0.5).astype(int)
    batch = Batch(P, Y.astype(np.uint8), key=site if by else np.empty(0, dtype=np.int64))
    found = cal.scale.State(by=by)
    with pytest.warns(DeprecationWarning, match=r"State\.key_numbers"):
        found.add(batch, keys)
    with pytest.warns(DeprecationWarning, match=r"State\.key_numbers"):
        found.add(batch, keys=keys)
    twice = {"site": np.where(np.tile(site, 2), "B", "A")} if by else None
    assert found == cal.scale.State(by=by).update(np.tile(Y, 2), np.tile(P, 2), by=twice)


def test_a_report_is_made_with_statements_as_the_page_says():
    with pytest.raises(TypeError, match="findings"):
        cal.Report(findings=())
    assert "statements" in {field.name for field in dataclasses.fields(cal.Report)}


@pytest.mark.parametrize(
    ("made", "drawn", "new"),
    [
        (lambda: cal.plots.smooth_data(Y, P, n_resamples=20, rng=1), cal.plots.plot_smooth_reliability, "axis"),
        (cal.plots.tree_data, cal.plots.plot_tree, "names"),
    ],
)
def test_the_data_of_a_figure_are_made_and_drawn_without_the_new_field(made, drawn, new):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    now = made()
    fields = [field.name for field in dataclasses.fields(now)]
    assert fields[-1] == new
    old = type(now)(*(getattr(now, name) for name in fields[:-1]))
    drawn(old)
    pyplot.close("all")
    page = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    assert f"`{new}`" in page
    assert f"`calibrary.plots.{type(now).__name__}`" in page


def test_the_map_of_detections_takes_the_old_name_of_its_smallest_count():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with pytest.warns(DeprecationWarning, match="min_samples= of d_ece_map_data is an old name: use min_count="):
        old = cal.plots.d_ece_map_data(MATCHED, n_bins=2, min_samples=1)
    new = cal.plots.d_ece_map_data(MATCHED, n_bins=2, min_count=1)
    assert old.to_json() == new.to_json()
    with pytest.warns(DeprecationWarning, match="MapData.min_count"):
        assert new.min_samples == new.min_count == 1
    with pytest.warns(DeprecationWarning, match="min_samples= of plot_d_ece_map is an old name: use min_count="):
        assert "bins with at least 1" in str([t.get_text() for t in _texts(cal.plots.plot_d_ece_map, min_samples=1)])
    pyplot.close("all")


def _texts(plot, **options):
    import matplotlib.text

    return plot(MATCHED, n_bins=2, **options).figure.findobj(matplotlib.text.Text)


def test_the_page_names_every_call_that_takes_longer():
    page = (ROOT / "docs/migration.md").read_text(encoding="utf-8").split("## Calls that take longer")[1]
    calls = json.loads((ROOT / "benchmarks/versions.json").read_text())["calls"]
    slower = [call for call in calls if call["ratio"] > 1.25]
    assert f"Of {len(calls):,} calls with 100 and 10,000 rows, {len(slower)} take more than 1.25 times" in page
    assert f"the median\ncall takes {statistics.median(call['ratio'] for call in calls):.2f} times" in page
    assert {call["id"].split()[-1] for call in slower} <= set(re.findall(r"`(?:plots\.)?(\w+)`", page))
