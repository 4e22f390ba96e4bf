"""Every place that computes a metric's number by itself gives the metric's number.

The formula of a metric stands in its own file. A figure, a table of segments, SQL and the page's cells compute some
numbers again, because they have no rows or need them for many segments at once. Each of these places is an entry here;
the script of the page is compared in ``tests/browser/test_live_figures.py``, and forms that metrics declare in
``test_forms.py``.
"""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.inference.overall.anytime import Counts, Foreseen, intervals
from calibrary.plots import detection_reliability
from calibrary.reporting.live import cells_of
from calibrary.scale import State, segment_sql, segment_table
from calibrary.study.world import _grouped_gap

SEGMENTS = ("a", "b", "c")


def rows(n=600, seed=0):
    """Labels, probabilities with ties and both ends, and segments of unequal size."""
    rng = np.random.default_rng(seed)
    p = np.r_[0.0, 1.0, np.round(rng.beta(0.8, 1.6, n - 2), 2)]
    y = (rng.random(n) < p**1.3).astype(int)
    return y, p, rng.choice(SEGMENTS, n, p=[0.6, 0.3, 0.1])


def of_segments(table, y, p, segment):
    """The columns of a table of segments beside the metrics of each segment's rows."""
    names = {
        "ece": lambda y, p: cal.compute("ece", y, p, n_bins=15),
        "brier": lambda y, p: cal.compute("bs", y, p),
        "oe": lambda y, p: cal.compute("oe", y, p),
    }
    found = {row["g"]: row for row in table}
    assert set(found) == set(SEGMENTS)
    for name in SEGMENTS:
        here = segment == name
        for column, metric in names.items():
            yield found[name][column], metric(y[here], p[here])


def table_of_segments():
    y, p, segment = rows()
    state = State(by="g", resolution=960).update(y, p, by={"g": segment})
    yield from of_segments(segment_table(state, n_bins=15).to_pylist(), y, p, segment)


def query_of_segments():
    duckdb = pytest.importorskip("duckdb")
    y, p, segment = rows()
    table = State(by="g", resolution=960).update(y, p, by={"g": segment}).to_table()
    parts = table.append_column("s_high", [[0] * len(table)])  # a database may sum the halves of large numbers
    query = segment_sql("parts", by="g", resolution=960, n_bins=15, dialect="duckdb")
    with duckdb.connect() as connection:
        connection.register("parts", parts)
        found = connection.sql(query).to_arrow_table().to_pylist()
    yield from of_segments(found, y, p, segment)


def cells_of_the_page():
    y, p, _ = rows()
    view = cells_of(cal.predictions(y, p), 40)
    for binning in ("width", "mass"):
        for n_bins in (2, 15, 40):
            yield view.ece(binning, n_bins), cal.compute("ece", y, p, binning=binning, n_bins=n_bins)


def direction():
    y, p, _ = rows()
    for weight in (None, np.arange(len(y)) % 3):
        found = cal.confidence_direction(y, p, n_bins=12, n_resamples=19, sample_weight=weight)
        yield found.over + found.under, cal.compute("ece", y, p, n_bins=12, sample_weight=weight)


def figure_of_detections():
    y, p, _ = rows()
    matches = cal.matched_detections(y, p, image=np.arange(len(y)) % 40, n_missed=40)
    found = detection_reliability(matches, n_bins=10)
    yield found.d_ece, cal.compute("d_ece", matches, n_bins=10, min_count=1)


def naive_errors_of_sampled_answers():
    rng = np.random.default_rng(1)
    share = rng.random(300)
    answers = [["x" if u < s else f"o{i}" for u in rng.random(8)] for i, s in enumerate(share)]
    found = cal.sampled_answers(answers, ["x"] * 300, n_resamples=19, rng=0, n_bins=10)
    y = np.array([int(each[0] == "x") for each in answers])  # the first answer is judged
    c = np.array([(each.count(each[0]) - 1) / 7 for each in answers])
    yield found.naive_error, cal.compute("ece", y, c, n_bins=10)
    yield found.naive_brier, cal.compute("bs", y, c)


def truth_of_a_world():
    """The true error in groups of equal mass is the ECE of the true probabilities as shares."""
    rng = np.random.default_rng(2)
    stated = rng.random(5000)
    yield _grouped_gap(stated, stated**2), cal.compute("ece", stated**2, stated, binning="mass", n_bins=100)


def numbers_of_a_stream():
    y, p, _ = rows()
    y, p = y[(p > 0.0) & (p < 1.0)], p[(p > 0.0) & (p < 1.0)]  # a stream clips the log loss of certain predictions
    x, place = np.unique(p, return_inverse=True)
    n0, n1 = np.bincount(place, 1 - y), np.bincount(place, y)
    metrics = {
        "ece": "ece",
        "brier": "bs",
        "log_loss": "nll",
        "oe": "oe",
        "slope": "cis.slope",
        "offset": "calibration-in-the-large",
    }
    plan = Foreseen.of(x, n0 + n1, 1000)
    for found in intervals(Counts(x, n0, n1, float(p.sum())), plan, 0.05, tuple(metrics)):
        yield found.value, cal.compute(metrics[found.name], y, p)


def mean_of_an_ensemble():
    y, p, _ = rows(200)
    members = np.clip(np.stack([p, 0.5 * p + 0.3], axis=1), 0.01, 0.99)
    found = cal.ensemble(y, members, members="mixture", n_resamples=19, rng=0).mean
    yield found.value, cal.compute("ece", y, members.mean(axis=1))
    yield found.cox_slope.value, cal.compute("cis.slope", y, members.mean(axis=1))


#: The place, and pairs of its numbers and the metric's.
PLACES = {
    "scale/store_numbers.py": table_of_segments,
    "scale/store_numbers.py, SQL": query_of_segments,
    "reporting/live.py": cells_of_the_page,
    "diagnostics/direction.py": direction,
    "plots/detection.py": figure_of_detections,
    "language/sampled.py": naive_errors_of_sampled_answers,
    "study/classes.py": truth_of_a_world,
    "inference/overall/anytime.py": numbers_of_a_stream,
    "secondorder/calibration.py": mean_of_an_ensemble,
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_has_the_number_of_the_metric(place):
    pairs = list(PLACES[place]())
    assert pairs
    found, expected = np.array(pairs).T
    # cells of the page keep six digits; a state of 960 cells keeps predictions of two decimals to 1e-9
    assert found == pytest.approx(expected, abs=1e-6, rel=1e-6)
