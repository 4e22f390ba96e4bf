"""Two things meet only if they are about the same rows: every array argument of every public function.

Each call is first made with all arrays as pandas objects of one index, which must give the result of the plain arrays.
Then each array in turn has another index, a mask, or one row more, and the call must be refused.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import calibrary as cal
from calibrary.public import PUBLIC
from each import each, each_of_id
from metric_cases import ENTRIES, binary, detections, extra, multi, quiet

pd = pytest.importorskip("pandas")
pytestmark = quiet

N = 60
Y, P = binary(N)
Q = np.clip(0.9 * P + 0.03, 0.0, 1.0)
W = np.random.default_rng(3).integers(1, 4, N).astype(float)
SITE = np.array(["a", "b", "c"])[np.arange(N) % 3]
UNITS = np.arange(N) // 2
INDEX = pd.Index(np.arange(100, 100 + N))
OTHER = pd.Index(np.roll(np.arange(100, 100 + N), 1))
ROWS = {"y_true": Y, "y_prob": P}
WEIGHTED = {**ROWS, "sample_weight": W}
PAIR = {"y_true": Y, "y_prob_a": P, "y_prob_b": Q}
CLASSES = dict(zip(("y_true", "y_prob"), multi(N), strict=True))
FEATURES = np.column_stack([P + np.random.default_rng(4).normal(0, 0.2, N), np.cos(np.arange(N))])
FEW = {"n_resamples": 19, "rng": 0}
NONE = np.arange(N) % 4 == 0
INSIDE = np.where(NONE, None, Y.astype(object))
MEMBERS = np.clip(P[:, None] + np.random.default_rng(5).normal(0, 0.05, (N, 5)), 0.01, 0.99)
ANSWERS = np.random.default_rng(6).choice(["A", "B"], (N, 4))


def mean_of(X, y, sample_weight=None):
    """A model that predicts the mean."""
    return lambda new: np.full(len(new), np.average(y, weights=sample_weight))


class Call(NamedTuple):
    """A public function, its arrays by argument, and its other arguments."""

    function: Any
    arrays: dict[str, Any]
    others: dict[str, Any] = {}  # noqa: RUF012


#: Functions whose arrays are not only labels and probabilities, or that need more.
CALLS = {
    "bs by": Call(cal.brier_score, {**ROWS, "by": SITE}),
    "ece by": Call(cal.expected_calibration_error, {**ROWS, "by": SITE}),
    "bs soft_target": Call(cal.brier_score, {**ROWS, "soft_target": Q}),
    "fl gamma": Call(cal.focal_loss, {**ROWS, "gamma": 1 + P}),
    "interval": Call(functools.partial(cal.interval, "bs"), WEIGHTED, FEW),
    "interval units": Call(functools.partial(cal.interval, "ece"), {**ROWS, "units": UNITS}, FEW),
    "interval by": Call(functools.partial(cal.interval, "bs"), {**ROWS, "by": SITE}, FEW),
    "test": Call(functools.partial(cal.test, "ece"), WEIGHTED, FEW),
    "test units": Call(functools.partial(cal.test, "ece"), {**ROWS, "units": UNITS}, FEW),
    "verdict": Call(functools.partial(cal.verdict, "ece < 0.2"), WEIGHTED, FEW),
    "verdict by": Call(functools.partial(cal.verdict, "bs < 0.5"), {**ROWS, "by": SITE}, FEW),
    "expected_by_chance without labels": Call(
        functools.partial(cal.expected_by_chance, "ece", None), {"y_prob": P, "sample_weight": W}, FEW
    ),
    "compare": Call(functools.partial(cal.compare, "bs"), {**PAIR, "sample_weight": W}, FEW),
    "compare units": Call(functools.partial(cal.compare, "bs"), {**PAIR, "units": UNITS}, FEW),
    "compare paired": Call(functools.partial(cal.compare, "bs", paired=True), {**PAIR, "y_true_b": 1 - Y}, FEW),
    "evaluate": Call(cal.evaluate, WEIGHTED, {"metrics": ["bs", "ece"]}),
    "evaluate units": Call(cal.evaluate, {**ROWS, "units": UNITS}, {"metrics": ["bs"], "intervals": True, **FEW}),
    "evaluate groups": Call(cal.evaluate, {**ROWS, "groups": SITE}, {"metrics": ["pce"]}),
    "pooled": Call(cal.pooled, {**ROWS, "centre": SITE}, {"metrics": ["oe", "bs"]}),
    "imputed_curve": Call(functools.partial(cal.imputed_curve, imputations=np.arange(N) % 2), ROWS),
    "interval imputations": Call(functools.partial(cal.interval, "bs"), {**ROWS, "imputations": np.arange(N) % 2}),
    "report": Call(cal.report, {**WEIGHTED, "by": SITE}, {"n_resamples": 0}),
    "report time": Call(cal.report, {**ROWS, "time": np.arange(N), "units": UNITS}, {"n_resamples": 0}),
    "report groups": Call(cal.report, {**ROWS, "groups": SITE}, {"n_resamples": 0}),
    "grade_tests": Call(cal.grade_tests, {**ROWS, "grades": SITE}),
    "horizon": Call(
        functools.partial(cal.horizon, t=20), {"time": np.arange(1.0, N + 1), "event": Y, "sample_weight": W}
    ),
    "matched_detections": Call(
        cal.matched_detections,
        {"correct": Y, "score": P, "iou": Q, "category": SITE, "image": UNITS, "sample_weight": W},
    ),
    "expected_by_chance": Call(functools.partial(cal.expected_by_chance, "ece"), WEIGHTED, FEW),
    "mine": Call(cal.study.mine, WEIGHTED, {"metrics": ["ece"], "draws": 3}),
    "monitor": Call(lambda **rows: cal.calibration_monitor().update(**rows), WEIGHTED),
    "map": Call(
        lambda y_true, y_prob, sample_weight: cal.maps.Platt().fit(y_true, y_prob, sample_weight).predict([0.3]),
        WEIGHTED,
    ),
    "ReliabilityMap": Call(
        lambda y_true, y_prob, features: cal.ReliabilityMap().fit(y_true, y_prob, features=features).predict([0.3]),
        {**ROWS, "features": FEATURES},
    ),
    "grouping": Call(
        lambda y_true, y_prob, sample_weight: cal.grouping.EqualMass(4).fit(y_prob, y_true, sample_weight).edges_,
        WEIGHTED,
    ),
    "fitted world": Call(cal.study.BiasByConstruction.fit, WEIGHTED),
    "compute": Call(functools.partial(cal.compute, "ece"), WEIGHTED),
    "null_data": Call(functools.partial(cal.plots.null_data, "ece"), WEIGHTED, FEW),
    "segments_data": Call(cal.plots.segments_data, {**ROWS, "by": SITE}, FEW),
    "grouping_data": Call(cal.plots.grouping_data, {**ROWS, "features": FEATURES}),
    "reliability_map_data": Call(cal.plots.reliability_map_data, {**ROWS, "features": FEATURES}, FEW),
    "simplex_data": Call(cal.plots.simplex_data, CLASSES, {"groups": [[0], [1], [2, 3]]}),
    "judged": Call(
        functools.partial(cal.judged, "bs"), {**ROWS, "judge": 1 - Y, "inclusion": W / 4}, {"n_resamples": 99, "rng": 0}
    ),
    "ensemble": Call(
        cal.ensemble,
        {"y_true": INSIDE, "y_prob": MEMBERS, "outside": NONE, "features": FEATURES, "sample_weight": W},
        {"n_resamples": 99, "rng": 0},
    ),
    "outside_rows": Call(
        lambda score, **rows: cal.outside_rows(**rows, scores={"s": score}, n_resamples=99, rng=0),
        {"y_true": INSIDE, "y_prob": P, "outside": NONE, "score": Q, "sample_weight": W},
    ),
    "under_shift": Call(
        functools.partial(cal.under_shift, "bs", assume="covariate", target_prob=Q, target_features=FEATURES),
        {**WEIGHTED, "features": FEATURES},
        {"n_resamples": 99, "rng": 0, "check": False},
    ),
    "under_shift target": Call(
        functools.partial(cal.under_shift, "bs", Y, P, assume="covariate", features=FEATURES),
        {"target_prob": Q, "target_features": FEATURES},
        {"n_resamples": 99, "rng": 0, "check": False},
    ),
    "shift_curve": Call(
        functools.partial(cal.shift_curve, "bs"),
        {**WEIGHTED, "groups": SITE, "units": UNITS},
        {"n_resamples": 199, "rng": 0},
    ),
    "validate": Call(
        functools.partial(cal.validate, mean_of),
        {"X": FEATURES, "y": Y, "units": UNITS, "sample_weight": W},
        {"metrics": ["bs"], "n_resamples": 3, "rng": 0, "progress": False},
    ),
    "validate holdout": Call(
        functools.partial(cal.validate, mean_of, method="holdout"),
        {"X": FEATURES, "y": Y, "holdout": np.arange(N) > 30},
        {"metrics": ["bs"], "rng": 0},
    ),
    "sampled_answers": Call(
        cal.sampled_answers,
        {"answers": ANSWERS, "right": ANSWERS[:, 0], "answer": ANSWERS[:, 1], "units": UNITS},
        {"n_resamples": 99, "rng": 0},
    ),
    "recalibration_gain": Call(
        cal.recalibration_gain, {**WEIGHTED, "units": UNITS, "folds": UNITS % 3}, {"maps": "platt"}
    ),
    "Recalibrator": Call(
        lambda p, **rows: cal.Recalibrator("platt", by="site", folds=3).fit(p, **rows).transform([0.3], by=["a"]),
        {"p": P, "y": Y, "sample_weight": W, "units": UNITS, "by": SITE},
    ),
    "Recalibrator judge": Call(
        lambda p, **rows: cal.Recalibrator("platt", by="site", folds=3).fit(Q, Y, by=SITE).judge(p, **rows),
        {"p": P, "y": Y, "sample_weight": W, "units": UNITS, "by": SITE},
    ),
    "Recalibrator score": Call(
        lambda p, **rows: cal.Recalibrator("platt", by="site", folds=3).fit(Q, Y, by=SITE).score(p, **rows),
        {"p": P, "y": Y, "sample_weight": W, "by": SITE},
    ),
    "Recalibrator transform": Call(
        lambda p, by: cal.Recalibrator("platt", by="site", folds=3).fit(Q, Y, by=SITE).transform(p, by=by),
        {"p": P, "by": SITE},
    ),
}  # fmt: skip
#: Functions with labels and probabilities that are no rows: images.
OF_IMAGES = {"segmentation"}


def add_walked() -> None:
    """Every other public function that takes labels and probabilities, and every metric."""
    for entry in ENTRIES:
        if entry.data_type == "predictions":
            given = extra(entry, N)
            arrays = {name: v for name, v in given.items() if isinstance(v, np.ndarray)}
            rows = {**ROWS, **arrays}
            if entry.weights != "none":
                rows["sample_weight"] = W
            CALLS[entry.id] = Call(entry.function, rows, {k: v for k, v in given.items() if k not in arrays})
    for room in (cal, cal.plots, cal.sklearn):
        for name in PUBLIC if room is cal else dir(room):
            function = getattr(room, name, None)
            if not inspect.isfunction(function) or name in CALLS or name in OF_IMAGES or name.startswith("plot_"):
                continue
            if room is cal and PUBLIC[name].kind not in ("verb", "table"):
                continue
            if {"y_true", "y_prob"} <= set(
                inspect.signature(function).parameters
            ) and "metric" not in inspect.signature(function).parameters:
                CALLS[name] = Call(function, ROWS)


add_walked()
GIVEN = [(name, argument) for name, call in CALLS.items() for argument in call.arrays]
MET = [(name, argument) for name, argument in GIVEN if len(CALLS[name].arrays) > 1]


def named(values, index=INDEX):
    """An array as a pandas object with this index."""
    return pd.Series(values, index=index) if values.ndim == 1 else pd.DataFrame(values, index=index)


def masked(values):
    return np.ma.masked_array(values, mask=np.arange(values.size).reshape(values.shape) == values.size - 1)


def shown(result):
    return re.sub(r"'seconds': [^,}]*", "", repr(result))


def called(name, **changed):
    call = CALLS[name]
    return call.function(**{**call.arrays, **changed}, **call.others)


@each_of_id([(name,) for name in CALLS])
def test_one_index_for_all_arrays_changes_nothing(name):
    indexed = called(name, **{k: named(v) for k, v in CALLS[name].arrays.items()})
    assert shown(indexed) == shown(called(name))


@each(MET)
def test_another_index_is_refused(name, argument):
    arrays = {k: named(v, OTHER if k == argument else INDEX) for k, v in CALLS[name].arrays.items()}
    with pytest.raises(cal.RefusedError, match="different indexes"):
        called(name, **arrays)


@each(GIVEN)
def test_a_masked_value_is_refused(name, argument):
    with pytest.raises(cal.RefusedError, match="is masked"):
        called(name, **{argument: masked(CALLS[name].arrays[argument])})


@each(GIVEN)
def test_one_row_more_is_refused(name, argument):
    values = CALLS[name].arrays[argument]
    with pytest.raises(cal.RefusedError):
        called(name, **{argument: np.concatenate([values, values[:1]])})


# -- two models, two sets of detections ---------------------------------------------------------------


def test_the_same_detections_in_another_order_do_not_differ():
    rng = np.random.default_rng(5)
    image = rng.integers(0, 40, 200)
    score = rng.random(200)
    correct = rng.random(200) < score
    order = rng.permutation(200)
    a = cal.matched_detections(correct, score, image=image)
    b = cal.matched_detections(correct[order], score[order], image=image[order])
    assert a.images != b.images
    found = cal.compare("bs", a, b, **FEW)
    assert (found.value, found.low, found.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


def test_detections_of_other_images_are_refused():
    image = np.arange(20) % 10
    a = cal.matched_detections(np.tile([0, 1], 10), np.linspace(0.1, 0.9, 20), image=image)
    b = cal.matched_detections(np.tile([0, 1], 10), np.linspace(0.1, 0.9, 20), image=np.where(image == 3, 11, image))
    with pytest.raises(cal.RefusedError, match=r"from different images \(only one has image 11\): compare"):
        cal.compare("bs", a, b, **FEW)


def test_images_in_another_order_keep_their_sizes_times_and_objects():
    a = detections()
    images = a.images[3:] + a.images[:3]
    b = a.at_times(np.arange(a.n_images)).ordered_by(images)
    assert [b.images[i] for i in b.image] == [a.images[i] for i in a.image]
    assert [b.images[i] for i in b.objects.image] == [a.images[i] for i in a.objects.image]
    assert b.time.tolist() == [*range(3, a.n_images), 0, 1, 2]
    assert cal.compute("laece", b) == cal.compute("laece", a)
    assert a.ordered_by(a.images) is a


def test_detectors_with_other_objects_are_refused():
    boxes = {"image": ["a", "a", "b"], "category": [1, 1, 1], "box": [[0, 0, 9, 9], [20, 0, 9, 9], [0, 0, 9, 9]]}
    found = cal.boxes(**boxes, score=[0.9, 0.6, 0.7])
    truth = cal.boxes(**boxes)
    fewer = cal.boxes(**{name: values[1:] for name, values in boxes.items()}, images=["a", "b"])
    a, b = cal.match_detections(truth, found), cal.match_detections(fewer, found)
    with pytest.raises(cal.RefusedError, match="different objects"):
        cal.compare("bs", a, b, **FEW)


def test_a_column_of_images_is_matched_by_its_index():
    found = cal.matched_detections([0, 1, 1], [0.1, 0.5, 0.9], image=["x", "y", "z"])
    times = pd.Series([3, 1, 2], index=["x", "y", "z"])
    assert found.at_times(times).time.tolist() == found.at_times([3, 1, 2]).time.tolist()
    assert found.at_times(times.reset_index(drop=True)).time.tolist() == [3, 1, 2]
    with pytest.raises(cal.RefusedError, match="the index of time is not the images of these data in their order"):
        found.at_times(times.sort_values())


def test_two_models_with_other_weights_are_not_on_the_same_rows():
    a, b = cal.predictions(Y, P, sample_weight=W), cal.predictions(Y, Q, sample_weight=W[::-1])
    first = int(np.flatnonzero(W[::-1] != W)[0])
    with pytest.raises(cal.RefusedError, match=rf"different weights \(row {first}: "):
        cal.compare("bs", a, b, **FEW)
    with pytest.raises(cal.RefusedError, match="different weights"):
        cal.compare("bs", a, cal.predictions(Y, Q), **FEW)
    same = cal.compare("bs", a, cal.predictions(Y, Q, sample_weight=W), **FEW)
    assert same == cal.compare("bs", Y, P, Q, sample_weight=W, **FEW)


def test_two_models_with_other_labels_or_indexes_are_not_on_the_same_rows():
    with pytest.raises(cal.RefusedError, match=rf"different labels \(row 0: {Y[0]} and {1 - Y[0]}\)"):
        cal.compare("bs", cal.predictions(Y, P), cal.predictions(1 - Y, Q), **FEW)
    with pytest.raises(cal.RefusedError, match="y_prob_b and y_prob_a have different indexes"):
        cal.compare("bs", Y, named(P), named(Q, OTHER), **FEW)
    with pytest.raises(cal.RefusedError, match="y_prob_b and y_prob_a have different indexes"):
        cal.compare("bs", Y, {"a": named(P), "b": named(Q, OTHER)}, **FEW)
    with pytest.raises(cal.RefusedError, match="different units"):
        cal.compare("bs", cal.predictions(Y, P).in_units(UNITS), cal.predictions(Y, Q).in_units(np.arange(N)), **FEW)


def test_models_with_their_own_outcomes_are_on_the_same_rows_too():
    own = {"paired": True, **FEW}
    with pytest.raises(cal.RefusedError, match="belong to different rows, 60 rows and 59 rows"):
        cal.compare("bs", Y, P, Q[:-1], y_true_b=Y[:-1], **own)
    with pytest.raises(cal.RefusedError, match="different indexes"):
        cal.compare("bs", named(Y), named(P), named(Q, OTHER), y_true_b=named(1 - Y, OTHER), **own)
    apart = cal.compare("bs", named(Y), named(P), named(Q, OTHER), y_true_b=named(1 - Y, OTHER), **FEW)
    assert apart.value_b == cal.brier_score(1 - Y, Q)  # other rows, which are not paired


def test_weights_of_the_second_model_need_its_own_labels():
    with pytest.raises(cal.RefusedCallError, match="sample_weight_b was given without y_true_b"):
        cal.compare("bs", Y, P, Q, sample_weight_b=np.ones(N), **FEW)
    assert cal.compare("bs", Y, P, Q, y_true_b=Y, sample_weight_b=W, **FEW).value_b == cal.brier_score(
        Y, Q, sample_weight=W
    )


def test_the_rows_of_two_states_cannot_be_paired():
    a, b = (cal.scale.State().update(Y, p).as_predictions() for p in (P, P))
    with pytest.raises(cal.RefusedError, match="rows of a state are counted and cannot be paired"):
        cal.compare("bs", a, b, **FEW)


def test_checked_predictions_remember_their_index():
    checked = cal.predictions(named(Y), P)
    assert checked.index is INDEX
    by = named(SITE, OTHER)
    with pytest.raises(cal.RefusedError, match=r"different indexes \(row 0 is 159 in by and 100 in y_true\)"):
        cal.brier_score(checked, by=by)
    assert repr(cal.brier_score(checked, by=by.to_numpy())) == repr(cal.brier_score(Y, P, by=SITE))
    assert cal.brier_score(checked, by=by.loc[INDEX]).values == pytest.approx(
        cal.brier_score(Y, P, by=by.loc[INDEX].to_numpy()).values
    )
    with pytest.raises(cal.RefusedError, match="sample_weight and y_true have different indexes"):
        cal.predictions(checked, sample_weight=named(W, OTHER))


def test_columns_of_a_mapping_and_of_a_frame_are_compared_one_by_one():
    with pytest.raises(cal.RefusedError, match=r"by\['b'\] and y_true have different indexes"):
        cal.brier_score(named(Y), named(P), by={"a": named(SITE), "b": named(SITE, OTHER)})
    frame = pd.DataFrame({"site": SITE}, index=OTHER)
    with pytest.raises(cal.RefusedError, match="different indexes"):
        cal.brier_score(named(Y), named(P), by=frame)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA, pd.NaT])
def test_a_missing_unit_is_no_unit(gone):
    units = [*range(N - 1), gone]
    with pytest.raises(cal.RefusedError, match=r"units\[59\] is missing"):
        cal.interval("bs", Y, P, units=units, **FEW)
