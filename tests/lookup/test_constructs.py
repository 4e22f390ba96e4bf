"""The constructs of the review, one by one, and what answers each of them here.

The list numbers 274 constructs in the order of the review. ``before`` is what version 0.1.0 did about them; ``answer``
names what does it now, or is "no" with a reason. What answers is looked up and, where it is no mere fact or place, it
is computed on two samples: it must give the same numbers for the same sample and others for another, which a constant
of the same type and shape does not. An answer is one or several of: "metric NAME" (a name the catalogue
finds), "option ID.NAME" or "option ID.NAME=VALUE" (which the metric takes), "test ID", "loss ID", "map NAME",
"lens NAME", "lens-word NAME" (a lens that needs more), "call NAME" (found in calibrary), "fact NAME" (of an entry),
"correction ID" (the entry says where it differs from the review) and "command NAME".
"""

from __future__ import annotations

import csv
import importlib
import json
import re
from collections import Counter

import numpy as np
import pytest

import calibrary as cal
from calibrary import plots
from calibrary.data.lens import as_lens, lens_name
from calibrary.maps import as_map
from calibrary.metrics.machinery.entry import FUNCTIONS
from metric_cases import extra
from paths import TESTS
from review_names import QUICK

with (TESTS / "review_constructs.csv").open(newline="", encoding="utf-8") as file:
    CONSTRUCTS = list(csv.DictReader(file))
ANSWERS = sorted({part for row in CONSTRUCTS if row["answer"] != "no" for part in row["answer"].split("; ")})


def find(path):
    """An object by its dotted name inside calibrary; rooms are opened on the way."""
    found = cal
    done = "calibrary"
    if path.startswith("losses"):
        pytest.importorskip("torch")
    for name in path.split("."):
        done += f".{name}"
        found = getattr(found, name) if hasattr(found, name) else importlib.import_module(done)
    return found


def resolve(answer):
    kind, _, what = answer.partition(" ")
    if kind == "metric":
        return cal.catalogue[what]
    if kind == "option":
        return taken(what)
    if kind == "test":
        assert cal.catalogue[what].has_test
    elif kind == "loss":
        return find("losses.loss_of")(what)
    elif kind == "map":
        return as_map(what)
    elif kind == "lens":
        return as_lens(what)
    elif kind == "lens-word":
        assert lens_name(what) in ("partition", "within-top-r")
    elif kind == "call":
        return find(what)
    elif kind == "fact":
        assert hasattr(cal.catalogue["ece"], what)
    elif kind == "correction":
        assert cal.catalogue[what].corrections
    elif kind == "command":
        from calibrary.cli.main import app

        assert what in {c.name or c.callback.__name__ for c in app.registered_commands}
    else:
        raise ValueError(f"{answer!r} names no kind of answer")
    return what


def taken(what):
    """The metric has the option; with a value, it computes."""
    where, _, value = what.partition("=")
    id, _, name = where.partition(".")
    assert name in cal.catalogue[id].options
    if value:
        rng = np.random.default_rng(0)
        c = rng.uniform(0.05, 0.95, 60)
        return FUNCTIONS[id]((rng.random(60) < c).astype(int), c, **{name: json.loads(value)})
    return name


def test_the_list_is_whole_and_in_order():
    assert [int(row["number"]) for row in CONSTRUCTS] == list(range(1, 275))
    assert Counter(row["before"] for row in CONSTRUCTS) == {"right": 211, "weak": 42, "missing": 18, "left out": 3}
    assert all(bool(row["reason"]) == (row["answer"] == "no") for row in CONSTRUCTS)


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_answers_a_construct_exists(answer):
    assert resolve(answer) is not None


def test_what_is_not_answered_is_named():
    """Whoever builds one of these takes it off this list; nothing else may fall out."""
    without = {int(row["number"]) for row in CONSTRUCTS if row["answer"] == "no"}
    assert without == {27, 50, 204, 205, 208, 226, 257, 270, 271}
    assert not [row for row in CONSTRUCTS if row["before"] == "right" and row["answer"] == "no"]


# -- what answers a construct computes -------------------------------------------------------------------


def sample(seed, n=120):
    """Over-confident predictions; another seed is another sample."""
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.03, 0.97, n)
    return (rng.random(n) < 0.1 + 0.7 * c).astype(int), c


def of_classes(seed, n=120, k=3):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.8), n) * 0.97 + 0.01
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


def of_boxes(seed, n=150):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.05, 0.95, n)
    correct = rng.random(n) < score
    iou = np.where(correct, 0.5 + 0.5 * rng.random(n), 0.4 * rng.random(n))
    return cal.matched_detections(correct, score, iou=iou, category=rng.integers(0, 3, n), image=np.arange(n) // 5)


def given(entry, seed):
    """Data of the kind that a metric takes, with what else it needs."""
    if entry.reads == "matches":
        return (of_boxes(seed),), {"min_count": 1} if "min_count" in entry.options else {}
    if entry.binary_lens == "full" or "order" in entry.needs:
        return of_classes(seed), {}
    more = extra(entry, 120, seed)
    return sample(seed), {name: value for name, value in more.items() if value is not None}


def numbers_in(value):
    """Every number in a result, whatever its type."""
    if isinstance(value, dict):
        return [x for each in value.values() for x in numbers_in(each)]
    if hasattr(value, "__dataclass_fields__"):
        return [x for name in value.__dataclass_fields__ for x in numbers_in(getattr(value, name))]
    if isinstance(value, str) or value is None or callable(value):
        return []
    if isinstance(value, list | tuple):
        return [x for each in value for x in numbers_in(each)]
    try:
        return [float(x) for x in np.ravel(np.asarray(value, dtype=float))]
    except (TypeError, ValueError):
        return []


def lines_of(drawn):
    figure = getattr(drawn, "figure", drawn)
    lines = [x for ax in figure.axes for line in ax.lines for x in np.ravel(line.get_data())]
    texts = [x for ax in figure.axes for text in (*ax.texts, ax.title) for x in digits(text.get_text())]
    return lines + texts + [x for text in figure.texts for x in digits(text.get_text())]


def digits(text):
    return [float(x) for x in re.findall(r"\d+\.\d+|\d+", text)]


def predictions(seed):
    return cal.predictions(*sample(seed))


#: What a name that is called gives for the sample of a seed.
CALLS = {
    "Predictions.class_share": lambda s: predictions(s).class_share,
    "predictions": lambda s: predictions(s).c,
    "Matches": lambda s: of_boxes(s).score if hasattr(of_boxes(s), "score") else of_boxes(s).p.c,
    "matched_detections": lambda s: cal.compute("d_ece", of_boxes(s), min_count=1),
    "calibration_gain": lambda s: cal.calibration_gain("bs", *sample(s), sample(s)[1] ** 2, rng=0),
    "compare": lambda s: cal.compare("bs", *sample(s), sample(s)[1] ** 2, n_resamples=9, rng=0),
    "confidence_direction": lambda s: cal.confidence_direction(*sample(s), n_resamples=19),
    "cumulative_difference": lambda s: cal.cumulative_difference(*sample(s)),
    "reliability_bins": lambda s: cal.reliability_bins(*sample(s)),
    "score_decomposition": lambda s: cal.score_decomposition(*sample(s)),
    "CorpDecomposition": lambda s: cal.score_decomposition(*sample(s)),
    "MurphyDecomposition": lambda s: cal.score_decomposition(*sample(s), method="unique", decimals=1),
    "BinnedDecomposition": lambda s: cal.score_decomposition(*sample(s), method="bins"),
    "TrueDecomposition": lambda s: cal.score_decomposition(*sample(s), method="true", true_prob=sample(s + 1)[1]),
    "CoxResult": lambda s: cal.cox_intercept_slope(*sample(s)),
    "CumulativeTestResult": lambda s: cal.test("ecce_mad", *sample(s), method="asymptotic"),
    "TestResult": lambda s: cal.test("spiegelhalter", *sample(s), method="asymptotic"),
    "test": lambda s: cal.test("spiegelhalter", *sample(s), method="asymptotic"),
    "interval": lambda s: cal.interval("bs", *sample(s), n_resamples=19, rng=0),
    "Bootstrap": lambda s: cal.interval("bs", *sample(s), method=cal.Bootstrap(n_resamples=19, rng=0)),
    "Asymptotic": lambda s: cal.interval("bs", *sample(s), method="asymptotic"),
    "Consistency": lambda s: cal.test("ece", *sample(s), method="consistency", n_resamples=19, rng=0),
    "null_distribution": lambda s: cal.null_distribution("ece", sample(s)[1], n_resamples=9, rng=0).values,
    "reading_band": lambda s: cal.reading_band("ece", *sample(s), n_resamples=19, rng=0),
    "recalibration_gain": lambda s: cal.recalibration_gain(*sample(s), maps=["temperature"], folds=3, rng=0).before,
    "datasets.review_example": lambda s: cal.datasets.review_example(rng=s),
    "ece_knn_curve": lambda s: cal.ece_knn_curve(*sample(s)),
    "consistency_error": lambda s: cal.consistency_error(*sample(s), consistency=sample(s + 1)[1]),
    "study.null_reading": lambda s: cal.study.null_reading("ece", *sample(s), n_resamples=9, rng=0),
    "plots.reliability_data": lambda s: plots.reliability_data(*sample(s), interval=False).outcome,
    "plots.brier.brier_curve": lambda s: plots.brier_curve(*sample(s)).total,
    "plots.BrierCurveData": lambda s: plots.brier_curve(*sample(s)).area,
    "plots.plot_brier_curve": lambda s: lines_of(plots.plot_brier_curve(*sample(s))),
    "plots.plot_cumulative": lambda s: lines_of(plots.plot_cumulative(*sample(s))),
    "plots.plot_theory": lambda s: lines_of(plots.plot_theory(example=0.2 + 0.1 * s)),
    "plots.theory_data": lambda s: plots.theory_data(lambda c: c ** (1 + s)).curve,
    "plots.tree_data": lambda s: [len(ids) for ids in plots.tree_data(beyond=bool(s % 2)).families.values()],
    "code_matrix": lambda s: cal.code_matrix(3 + s, "one-vs-rest"),
    "lens.rth": lambda s: cal.compute("ece", *of_classes(s), lens=cal.lens.rth(2)),
    "lens.within_top_r": lambda s: cal.compute("ece", *of_classes(s), lens=cal.lens.within_top_r(2)),
    "lens.partition": lambda s: cal.compute("ece", *of_classes(s), lens=cal.lens.partition([[0], [1, 2]])),
    "kernels.median_bandwidth": lambda s: cal.kernels.median_bandwidth(predictions(s)),
    "kernels.normal_bandwidth": lambda s: cal.kernels.normal_bandwidth(predictions(s)),
    "recommend": lambda s: [r.points for r in cal.recommend(n=100 + 5000 * s)],
    "catalogue": lambda s: [cal.catalogue[list(cal.catalogue)[s]].row],
}


def probe(answer):
    """A function of the seed that computes the construct; None for what is only a fact or a place."""
    kind, _, what = answer.partition(" ")
    if kind == "metric":
        entry = cal.catalogue[what]
        if entry.reads == "matches" and set(entry.settings) & {"features", "iou_threshold"}:
            return None  # they need boxes: tests/lookup/test_names.py computes them
        return lambda seed: entry(*given(entry, seed)[0], **{**given(entry, seed)[1], **quick(entry)})
    if kind == "option" and "=" in what:
        where, _, value = what.partition("=")
        id, _, name = where.partition(".")
        set_to = {name: json.loads(value)}
        entry = cal.catalogue[id]
        return lambda seed: entry(*given(entry, seed)[0], **{**given(entry, seed)[1], **quick(entry), **set_to})
    if kind == "test":
        entry = cal.catalogue[what]
        options = {"n_resamples": 299, "rng": 0} if what in ("sbct", "tcal") else {}  # their statistic depends on draws
        return lambda seed: cal.test(what, *given(entry, seed)[0], **{**given(entry, seed)[1], **options}).statistic
    if kind == "map":
        binary = what != "multinomial_spline"
        return lambda seed: fitted(as_map(what), predictions(seed) if binary else cal.predictions(*of_classes(seed)))
    if kind == "lens":
        return lambda seed: [v.probability for v in cal.predictions(*of_classes(seed)).through(as_lens(what)).views]
    return CALLS.get(what) if kind == "call" else None


def quick(entry):
    return QUICK.get(entry.id, {})


def fitted(made, p):
    return made.fit(p)(p.probability) if hasattr(made, "fit") else made(p).values


def computes(function):
    """It gives numbers, the same for the same sample and others for another: a constant does not."""
    first, again, other = (numbers_in(function(seed)) for seed in (1, 1, 2))
    assert first
    assert np.isfinite(first).any()
    np.testing.assert_equal(first, again)
    assert len(first) != len(other) or not np.array_equal(first, other, equal_nan=True)


COMPUTED = [answer for answer in ANSWERS if probe(answer) is not None]


def test_most_constructs_are_computed():
    rows = [row for row in CONSTRUCTS if row["answer"] != "no"]
    computed = [row for row in rows if any(part in COMPUTED for part in row["answer"].split("; "))]
    assert len(rows) == 265
    assert len(computed) >= 195  # the others are facts, classes, files and figures, which are looked up


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("answer", COMPUTED)
def test_what_answers_a_construct_computes(answer):
    computes(probe(answer))


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("answer", sorted(np.random.default_rng(0).choice(COMPUTED, 40, replace=False)))
def test_a_constant_of_the_same_type_and_shape_is_noticed(answer):
    constant = probe(answer)(1)
    with pytest.raises(AssertionError):
        computes(lambda seed: constant)
