"""The range of a metric holds with the options in use, and intervals are cut to it or not at all."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.data.predictions import predictions
from calibrary.inference.ranges import ANYWHERE, range_of
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.measure import measure
from calibrary.question import Question
from each import each_of_id

#: Options that make a metric leave the range of its defaults.
WIDER = [
    ("gsb", {"scale": "sum"}),
    ("ps", {"alpha": 4.0}),
    ("ps", {"alpha": 1.2}),
    ("pss", {"form": "loss", "alpha": 1.1}),
    ("sr", {"cost": [[0.0, 5.0, 5.0], [5.0, 0.0, 5.0], [5.0, 5.0, 0.0]]}),
    ("misclassification_loss", {"cost": [[0.0, 5.0, 5.0], [5.0, 0.0, 5.0], [5.0, 5.0, 0.0]]}),
    ("l1eps", {"eps": 9.0}),
    ("ece", {"lens": "full", "distance": "l1"}),
    ("ece", {"lens": "full", "distance": "l2"}),
    ("mce", {"lens": "full", "distance": "l1"}),
    ("mvms", {"distance": "l1"}),
    ("mvms", {"distance": "l2"}),
    ("wsmcs", {"group": "sum"}),
    ("pce", {"groups": "rows", "loss": lambda y, c: 50.0 * np.abs(y - c)}),
    ("gce", {"loss": lambda y, c, w: 50.0 * abs(float(np.mean(y - c)))}),
    ("tce", {"percent": True}),
    ("eci", {"scale": "percent"}),
    ("mmce", {"weighted": True}),
    ("sice", {"k_max": 1}),
    ("skce_b", {"matrix": 9.0 * np.eye(3)}),
    ("skce_uq", {"matrix": 9.0 * np.eye(3)}),
    ("skce_ul", {"matrix": 9.0 * np.eye(3)}),
    ("kccsd", {"operator": "difference"}),
]


def problem(k: int, n: int = 90, *, wrong: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are nearly certain and (mostly) wrong, which drives errors to the end of their range."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, k, n)
    told = (y + 1 + rng.integers(0, max(1, k - 1), n) * (k > 2)) % k if wrong else rng.integers(0, k, n)
    p = np.full((n, k), 0.02 / max(1, k - 1))
    p[np.arange(n), told] = 0.98
    p /= p.sum(axis=1, keepdims=True)
    return y, (p[:, 1] if k == 2 else p)


def options_of(options: dict, n: int) -> dict:
    return {name: np.arange(n) % 4 if isinstance(v, str) and v == "rows" else v for name, v in options.items()}


@pytest.mark.parametrize(("id", "options"), WIDER, ids=lambda x: x if isinstance(x, str) else "-".join(x))
def test_intervals_with_options_that_change_the_range_hold_their_estimate(id, options):
    y, p = problem(3)
    options = options_of(options, len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = cal.interval(id, y, p, method="percentile", n_resamples=39, rng=0, **options)
        free = cal.interval(id, y, p, method="percentile", n_resamples=39, rng=0, clip=False, **options)
    low, high = range_of(catalogue[id], catalogue[id].question_of(options), predictions(y, p))
    assert low <= result.value <= high
    assert result.low == pytest.approx(max(free.low, low))
    assert result.high == pytest.approx(min(free.high, high))
    assert free.low - 1e-12 <= result.low < result.high or np.isclose(free.low, free.high)


@each_of_id([(entry, k, wrong) for entry in catalogue.values() for k in (2, 3) for wrong in (True, False)])
def test_every_metric_stays_in_its_range_on_the_worst_data(entry, k, wrong):
    if entry.data_type != "predictions" or set(entry.needs) & {"features", "groups", "model"} or entry.fields:
        pytest.skip("does not apply: needs more than predictions")
    y, p = problem(k, wrong=wrong)
    data = predictions(y, p)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            value = measure(entry, data, Question())
        except (ValueError, TypeError) as error:
            pytest.skip(f"does not apply: {error}")
    low, high = range_of(entry, Question(), data)
    value = np.asarray(value, dtype=float)
    known = value[~np.isnan(value)] if value.ndim else value
    assert np.all(np.isnan(known) | ((known >= low - 1e-9) & (known <= high + 1e-9)))


def test_a_metric_of_several_numbers_has_no_one_range():
    y, p = problem(2)
    assert range_of(catalogue["cis"], Question(), predictions(y, p)) == ANYWHERE


def test_sums_over_detections_are_not_cut_to_the_range_of_the_mean():
    rng = np.random.default_rng(0)
    score, image = rng.random(60), np.repeat(np.arange(20), 3)
    correct = (rng.random(60) < score).astype(int)
    found = cal.matched_detections(correct, score, image=image, n_missed=5)
    for id in ("qgc", "sgc", "egce"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = cal.interval(id, found, method="basic", reduction="sum", n_resamples=39, rng=0)
        assert result.low < result.value < result.high
        assert result.value > 1.0
