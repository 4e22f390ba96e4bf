"""The constructs of the review, one by one, and what answers each of them here.

The list numbers 274 constructs in the order of the review. ``before`` is what version 0.1.0 did about them; ``answer``
names what does it now, or is "no" with a reason. Every answer is looked up, and every row is computed: a number must be
the same for the same sample and another one for another sample, an option must change it, a fact must be what is
known of named metrics. One test replaces forty answers drawn at random by constants of the same type and shape, in the
library itself, and expects each check to fail. An answer is one or several of: "metric NAME" (a name the catalogue
finds), "option ID.NAME" or "option ID.NAME=VALUE" (which the metric takes), "test ID", "loss ID", "map NAME",
"lens NAME", "lens-word NAME" (a lens that needs more), "call NAME" (found in calibrary), "fact NAME" (of an entry),
"correction ID" (the entry says where it differs from the review) and "command NAME".
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import calibrary as cal
from calibrary import plots
from calibrary.data.lens import as_lens, lens_name
from calibrary.maps import as_map
from calibrary.maps.base import CalibrationMap
from calibrary.metrics.machinery.entry import FUNCTIONS, Entry
from each import each
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
        import click
        import typer.main

        from calibrary.cli.main import app

        command = typer.main.get_command(app)
        for word in what.split():
            command = command.get_command(click.Context(command), word)
            assert command is not None
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
@each(ANSWERS)
def test_what_answers_a_construct_exists(answer):
    assert resolve(answer) is not None


def test_what_is_not_answered_is_named():
    """Whoever builds one of these takes it off this list; nothing else may fall out."""
    without = {int(row["number"]) for row in CONSTRUCTS if row["answer"] == "no"}
    assert without == {27, 50, 208, 226, 257, 270, 271}
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
    return cal.matched_detections(
        correct, score, iou=iou, category=rng.integers(0, 3, n), image=np.arange(n) // 5, n_missed={0: 1, 7: 3}
    )


def given(entry, seed):
    """Data of the kind that a metric takes, with what else it needs."""
    if entry.data_type == "matches":
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
    lines += [x for ax in figure.axes for patch in ax.patches for x in np.ravel(patch.get_path().vertices)]
    lines += [x for ax in figure.axes for points in ax.collections for x in np.ravel(points.get_offsets())]
    lines += [x for ax in figure.axes for shown in ax.collections for x in np.ravel(shown.get_facecolors())]
    texts = [x for ax in figure.axes for text in (*ax.texts, ax.title) for x in digits(text.get_text())]
    return lines + texts + [x for text in figure.texts for x in digits(text.get_text())]


def digits(text):
    return [float(x) for x in re.findall(r"\d+\.\d+|\d+", text)]


def predictions(seed):
    return cal.predictions(*sample(seed))


def of_images(seed, n=40):
    """Boxes of objects and of detections that lie near them."""
    rng = np.random.default_rng(seed)
    image, category = np.arange(n) // 4, rng.integers(0, 2, n)
    box = np.column_stack([rng.uniform(0, 60, (n, 2)), rng.uniform(15, 35, (n, 2))])
    off = np.column_stack([rng.normal(0, 4, (n, 2)), np.zeros((n, 2))])
    size = (100, 100)
    truth = cal.boxes(image, category, box, image_size=size)
    return truth, cal.boxes(image, category, box + off, score=rng.uniform(0.1, 0.95, n), image_size=size)


def of_places(seed, n=200):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.1, 0.95, n)
    box = np.column_stack([rng.uniform(0, 60, (n, 2)), rng.uniform(5, 35, (n, 2))])
    return cal.matched_detections(
        rng.random(n) < score, score, iou=np.full(n, 0.8), category=np.zeros(n, int), image=np.arange(n) // 5,
        box=box, image_size=(100, 100),
    )  # fmt: skip


def features(seed, n=120):
    return np.random.default_rng(seed + 10).normal(size=(n, 2))


def many(seed):
    """Enough rows for a diagram of groups."""
    y, c = sample(seed, 400)
    return y, c, np.column_stack([y + np.random.default_rng(seed).normal(size=400), c])


def counts(seed):
    from scipy.stats import poisson

    rate = np.random.default_rng(seed).uniform(0.5, 3.0, 30)
    return np.random.default_rng(seed).poisson(rate), poisson(rate)


def few_worlds(seed):
    names = ("calibrated", "temperature 0.6") if seed % 2 else ("calibrated", "temperature 0.4")
    return [cal.study.World("wide", curve) for curve in names]


def correlated(seed):
    rng = np.random.default_rng(seed)
    ranks = np.corrcoef(rng.normal(size=(4, 5 + seed)))
    names = [f"m{i}" for i in range(4)]
    return {"names": names, "rho": ranks.tolist()}


def proximity_cells(seed):
    return cal.grouping.ProximityCells(features(seed)[:, 0], 3, 2).fit_view(predictions(seed)).index_


def above_zero(x):
    return (x[:, 0] > 0).astype(int)


def narrow(seed):
    """Confidences near one value, the nearer the larger the seed."""
    rng = np.random.default_rng(seed)
    c = 0.5 + 0.1 / 10**seed * rng.normal(size=80)
    return cal.predictions((rng.random(80) < c).astype(int), c)


def two_models(seed):
    y, c = sample(seed)
    return {"one": (y, c), "other": (y, c**2)}


def laplace(d, h):
    return np.exp(-d / h)


def own_kernel(seed):
    return cal.compute("mmce", *sample(seed), kernel=laplace, bandwidth=0.1 * seed)


def bounds(seed):
    entry = cal.catalogue[("ece", "sr", "spiegelhalter")[seed]]
    return np.nan_to_num(cal.inference.ranges.range_of(entry, cal.Question(), predictions(seed)))


def small_tree(seed):
    """The last two families of the tree, which draw as the others do."""
    data = plots.tree_data(beyond=bool(seed % 2))
    return lines_of(plots.plot_tree(replace(data, subfamilies=dict(list(data.subfamilies.items())[-2:]))))


def has(*words):
    """A fact that holds all of these words."""
    return lambda value: all(word in str(value) for word in words)


#: What is known of a fact: its value for named metrics, or a function that says whether a value is right.
FACTS = {
    "aliases": {"bs": has("MSE"), "rbs": has("RMSE"), "smece": has("smECE")},
    "complete": {"smece": True, "bs": False, "d_ece": None},
    "consistent": {"smece": True, "ece": False},
    "differentiable": {"bs": True, "dkde": True, "bkde": True, "ece": False},
    "family": {"bs": "point", "ece": "bin", "smece": "kernel", "ici": "curve", "ecce_mad": "cumulative",
               "d_ece": "detection"},
    "has_test": {"spiegelhalter": True, "hl": True, "sgc": False},
    "homonyms": {"mce": has("marginal"), "tce": has("top-label"), "ece": {}},
    "most_classes": {"skce_ul": 100, "ece": None},
    "needs": {"ece": (), "d_ece": ("boxes",), "eice": ("model",)},
    "proper": {"bs": "strictly", "nll": "strictly", "rbs": "dataset", "ece": "no"},
    "range": {"ece": (0.0, 1.0), "bs": (0.0, 2.0), "eo": (0.0, np.inf), "spiegelhalter": (-np.inf, np.inf)},
    "references": {"bs": has("Brier (1950)"), "cis": has("Cox (1958)"), "smece": has("Nakkiran (2024)")},
    "row": {"bs": 1, "sgc": 82, "auroc": None},
    "sign": {"eo": has("above 1", "over-confident"), "spiegelhalter": has("below 0", "under-con"),
             "ece": has("0 is perfect")},
    "sound": {"smece": True, "ece": False, "d_ece": None},
    "subfamily": {"bs": "Brier score", "eo": "global", "skce_ul": "pairwise"},
    "table2": {"ece": has("in wide use"), "mce": has("worst case"), "bs": has("Brier score"), "auroc": None},
}  # fmt: skip
#: Few cells, so that an option has an effect on few rows.
FEW_CELLS = {"piece": {"n_bins": 4}}
#: Two values of an option that has no one value: the number must follow it.
OPTIONS = {
    "d_ece.min_count": (1, 12), "ece_pl.ensemble": (True, False), "l1cbod.bandwidth": (0.1, 0.4),
    "l1cbod.link": ("identity", "threshold"), "laece.classes": ("present", "kuzucu"), "lsece.sigma": (0.2, 2.0),
    "mmce.kernel": ("laplace", "gaussian"), "pce.loss": ("absolute", "squared"), "piece.n_neighbors": (3, 40),
    "skce_uq.matrix": ([[1, 0], [0, 1]], [[2, 1], [1, 3]]), "smece.sigma": (0.02, 0.3),
}  # fmt: skip


#: What a name that is called gives for the sample of a seed.
CALLS = {
    "Predictions.class_share": lambda s: cal.predictions(*sample(s)).class_share,
    "predictions": lambda s: predictions(s).c,
    "Matches": lambda s: of_boxes(s).score if hasattr(of_boxes(s), "score") else of_boxes(s).p.c,
    "matched_detections": lambda s: cal.compute("d_ece", of_boxes(s), min_count=1),
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
    "expected_by_chance": lambda s: cal.expected_by_chance("ece", *sample(s), n_resamples=19, rng=0),
    "recalibration_gain": lambda s: cal.recalibration_gain(*sample(s), maps=["temperature"], folds=3, rng=0).before,
    "datasets.review_example": lambda s: cal.datasets.review_example(rng=s),
    "ece_knn_curve": lambda s: cal.ece_knn_curve(*sample(s)),
    "consistency_error": lambda s: cal.consistency_error(*sample(s), consistency=sample(s + 1)[1]),
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
    "ClassWiseHosmerLemeshowResult": lambda s: (
        cal.test("hl", *of_classes(s, 400), lens="class-wise", n_bins=5, method="asymptotic").statistic
    ),
    "ScoringFunction": lambda s: cal.scoring_function("bs").entropy(0.2 * s),
    "above_thresholds": lambda s: cal.above_thresholds(of_boxes(s), 0.3).score,
    "boxes": lambda s: cal.match_detections(*of_images(s), iou_threshold=0.5).iou,
    "check_propriety": lambda s: [
        float(bool(cal.check_propriety(("bs", "fl", "ps")[s], **({"gamma": 2} if s == 1 else {}))))
    ],
    "consistency_confidence": lambda s: cal.consistency_confidence(above_zero, features(s), eps=1.0, n_draws=50, rng=0),
    "consistency_confidence_logits": lambda s: cal.consistency_confidence_logits(sample(s)[1], eps=1.0),
    "count_ranked_probability_score": lambda s: cal.count_ranked_probability_score(*counts(s)),
    "d_ece_map": lambda s: cal.d_ece_map(of_places(s), n_bins=2, min_count=1).map,
    "dawid_sebastiani_score_moments": lambda s: cal.dawid_sebastiani_score_moments(*features(s).T, np.ones(120)),
    "detection_thresholds": lambda s: cal.detection_thresholds(of_boxes(s)),
    "grouping.ProximityCells": proximity_cells,
    "grouping.SimplexCells": lambda s: cal.grouping.SimplexCells(4).cells(of_classes(s)[1]),
    "hinge_loss_scores": lambda s: cal.hinge_loss_scores(sample(s)[0], features(s)[:, 0]),
    "inference.ranges": bounds,
    "kernels.PairShape": own_kernel,
    "kernels.adaptive_bandwidth": lambda s: cal.kernels.adaptive_bandwidth(
        predictions(s), cal.kernels.density_kernel("epanechnikov"), 0.3
    ),
    "kernels.beta_bandwidth": lambda s: cal.kernels.beta_bandwidth("loo-mle", narrow(s)),
    "kernels.beta_log_kernel": lambda s: cal.kernels.beta_log_kernel(sample(s)[1][:5], sample(s)[1][5:8], 0.1),
    "lens.code": lambda s: cal.compute("ece", *of_classes(s), lens=cal.lens.code([[1, 1], [-1, 0], [0, -1]])),
    "ls_ecoc": lambda s: cal.ls_ecoc(of_classes(s)[1], cal.code_matrix(3, "ovr")),
    "maps.reliability.ReliabilityMap": lambda s: cal.ReliabilityMap(0.1).fit(*sample(s), features=features(s))(0.5),
    "neighbor_power": lambda s: cal.neighbor_power(0.8, 20 * s, truth=0.6),
    "neighbor_sample_size": lambda s: cal.neighbor_sample_size(0.8, truth=0.6 - 0.1 * s),
    "plots.HybridData": lambda s: plots.hybrid_curve(two_models(s)).cost,
    "plots.brier.hybrid_curve": lambda s: plots.hybrid_curve(two_models(s)).area,
    "plots.grouping_data": lambda s: plots.grouping_data(*many(s), n_bins=3),
    "plots.plot_d_ece_map": lambda s: lines_of(
        plots.plot_d_ece_map(of_places(s), n_bins=2, min_samples=1, counts=True)
    ),
    "plots.plot_grouping": lambda s: lines_of(plots.plot_grouping(*many(s), n_bins=3)),
    "plots.plot_reliability": lambda s: lines_of(plots.plot_reliability(*sample(s), kind="bar", interval=False)),
    "plots.plot_reliability_map": lambda s: lines_of(
        plots.plot_reliability_map(*sample(s), features(s), n_resamples=9, grid=11)
    ),
    "plots.plot_simplex": lambda s: lines_of(plots.plot_simplex(*of_classes(s))),
    "plots.plot_simplex_maps": lambda s: lines_of(plots.plot_simplex_maps(*of_classes(s), side=4)),
    "plots.plot_smooth_reliability": lambda s: lines_of(plots.plot_smooth_reliability(*sample(s), interval=False)),
    "plots.plot_tree": small_tree,
    "plots.reliability_map_data": lambda s: (
        plots.reliability_map_data(*sample(s), features(s), n_resamples=9, grid=11).reliability
    ),
    "power": lambda s: cal.power("spiegelhalter", 100 * s, error=0.1, n_resamples=49, rng=0).power,
    "sample_size": lambda s: int(cal.sample_size("spiegelhalter", 0.08 + 0.03 * s, n_resamples=199)),
    "scoring_function": lambda s: cal.scoring_function("bs", scale="sum")(0.3 * s, 0.8),
    "study.BiasByConstruction": lambda s: cal.study.BiasByConstruction(2, 1, "power", b=1.0 + s).true_error(norm=1),
    "study.objectives": lambda s: cal.study.objectives(["platt"], worlds=few_worlds(s), n=100, draws=1),
    "study.result.clusters": lambda s: [len(group) for group in cal.study.result.clusters(correlated(s), 0.3)],
    "study.run": lambda s: cal.study.run("quick", metrics=["ece"], worlds=["wide"], n=100, draws=2, seed=s).found[
        "means"
    ],
    "study.temperature_sweep": lambda s: cal.study.temperature_sweep(
        ["ece"], sample(s)[1], temperatures=[0.5, 1.0, 2.0], n_repeats=1, rng=0
    ),
    "recommend": lambda s: [r.points for r in cal.recommend(n=100 + 5000 * s)],
    "catalogue": lambda s: [cal.catalogue[list(cal.catalogue)[s]].row],
}


def probe(answer):
    """A function of the seed that computes the construct; None for what is only a place."""
    kind, _, what = answer.partition(" ")
    if kind == "metric":
        entry = cal.catalogue[what]
        if entry.data_type == "matches" and set(entry.settings) & {"features", "iou_threshold"}:
            return lambda seed: entry(*of_images(seed), **quick(entry))
        return lambda seed: entry(*given(entry, seed)[0], **{**given(entry, seed)[1], **quick(entry)})
    if kind == "option":
        return with_option(what)
    if kind == "test":
        entry = cal.catalogue[what]
        # the statistic is that of every method; these draw for their p-values whatever the method
        drawn = what in ("tcal", "ece_db", "kccsd")
        options = {"n_resamples": 299, "rng": 0} if drawn else {"method": "asymptotic"}
        return lambda seed: cal.test(what, *given(entry, seed)[0], **{**given(entry, seed)[1], **options}).statistic
    if kind == "map":
        binary = what != "multinomial_spline"
        return lambda seed: fitted(as_map(what), predictions(seed) if binary else cal.predictions(*of_classes(seed)))
    if kind == "lens":
        return lambda seed: [v.probability for v in cal.predictions(*of_classes(seed)).through(as_lens(what)).views]
    if kind == "fact" and what in FACTS:
        return lambda seed: known(what)
    if kind == "loss":
        return lambda seed: trained(what, seed)
    return CALLS.get(what) if kind == "call" else None


def with_option(what):
    """The metric with this setting; of an option without one, the differences that two settings make."""
    where, _, value = what.partition("=")
    id, _, name = where.partition(".")
    entry = cal.catalogue[id]

    def at(seed, setting):
        data, more = given(entry, seed)
        return entry(*data, **{**more, **quick(entry), **FEW_CELLS.get(id, {}), name: setting})

    if value:
        return lambda seed: at(seed, json.loads(value))
    if where not in OPTIONS:
        return None
    return lambda seed: [np.subtract(*(numbers_in(at(seed, setting)) for setting in OPTIONS[where]))]


def known(fact):
    """How a fact of the entries agrees with what is known of it: all must be True."""
    for id, right in FACTS[fact].items():
        value = getattr(cal.catalogue[id], fact)
        assert right(value) if callable(right) else value == right, (fact, id, value)
    return fact


def trained(id, seed):
    """A loss and its gradient."""
    torch = pytest.importorskip("torch")
    detected = cal.catalogue[id].data_type == "matches"
    y, p = sample(seed) if detected or cal.catalogue[id].default_lens == "binary" else of_classes(seed)
    given = torch.tensor(p, dtype=torch.float64, requires_grad=True)
    value = find("losses.loss_of")(id)(
        torch.tensor(y), given, **({"bandwidth": 0.1} if id in ("l1cbod", "bkde", "dkde") else {})
    )
    value.backward()
    return [float(value.detach()), *np.ravel(given.grad.numpy())]


def quick(entry):
    return QUICK.get(entry.id, {})


def fitted(made, p):
    return made.fit(p)(p.probability) if hasattr(made, "fit") else made(p).values


def computes(function, what="", repeated=True):
    """It gives numbers, the same for the same sample and others for another: a constant does not."""
    made = [function(1), function(2)]
    if what and made[0] == what:  # a fact, which was compared with what is known of it
        return
    first, other = map(numbers_in, made)
    assert first
    assert np.isfinite(first).any()
    if repeated:
        # a compiled loop that was loaded meanwhile may round differently
        np.testing.assert_allclose(first, numbers_in(function(1)), rtol=1e-12)
    assert len(first) != len(other) or not np.array_equal(first, other, equal_nan=True)


#: What draws for long: that a figure of the same sample is the same is shown of its numbers, ``..._data``.
DRAWN_ONCE = ("plots.plot_", "study.run", "plots.grouping_data")


def check(answer):
    kind, _, what = answer.partition(" ")
    computes(probe(answer), what if kind == "fact" else "", repeated=not what.startswith(DRAWN_ONCE))
    if kind == "option" and "=" not in what:
        assert np.abs(np.nan_to_num(numbers_in(probe(answer)(1)))).max() > 0.0  # the option has an effect


COMPUTED = [answer for answer in ANSWERS if probe(answer) is not None]


def test_every_construct_is_computed():
    rows = [row for row in CONSTRUCTS if row["answer"] != "no"]
    assert len(rows) == 267
    assert [row["number"] for row in rows if not set(row["answer"].split("; ")) & set(COMPUTED)] == []


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@each(COMPUTED)
def test_what_answers_a_construct_computes(answer):
    check(answer)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


# -- a constant in the place of a construct is noticed -----------------------------------------------------


def frozen(function):
    """The function as a constant: whatever it is asked, it gives what it gave first."""
    kept = []

    def constant(*args, **options):
        if not kept:
            kept.append(function(*args, **options))
        return kept[0]

    return constant


def replaced(answer, monkeypatch):
    """Put a constant of the same type and shape in the place of what answers a construct, in the library itself."""
    kind, _, what = answer.partition(" ")
    if kind in ("metric", "option"):
        monkeypatch.setattr(Entry, "__call__", frozen(Entry.__call__))
    elif kind == "test":
        monkeypatch.setattr(cal, "test", frozen(cal.test))
    elif kind == "map":
        monkeypatch.setattr(CalibrationMap, "predict", frozen(CalibrationMap.predict))
        monkeypatch.setattr(CalibrationMap, "__call__", frozen(CalibrationMap.__call__))
    elif kind == "lens":
        monkeypatch.setattr(cal.Predictions, "through", frozen(cal.Predictions.through))
    elif kind == "fact":
        first = getattr(cal.catalogue[next(iter(FACTS[what]))], what)
        monkeypatch.setattr(Entry, what, property(lambda entry: first), raising=False)
    elif kind == "loss":
        monkeypatch.setattr(find("losses"), "loss_of", lambda id: frozen(lambda *given, **options: 0.0))
    else:
        freeze_calls(CALLS[what], monkeypatch)


def freeze_calls(function, monkeypatch):
    """Every function of the library that a probe calls by its name, in whichever room it stands."""
    rooms = [cal, plots, cal.datasets, cal.kernels, cal.lens, cal.grouping, cal.study, cal.study.result,
             cal.inference.ranges]  # fmt: skip
    own = {"sample", "features", "matched_detections"}
    names = {name for name in called_by(function) if name not in own}
    frozen_any = False
    for room in rooms:
        for name in names:
            made = getattr(room, name, None)
            if callable(made):
                monkeypatch.setattr(room, name, frozen(made))
                frozen_any = True
    assert frozen_any


def called_by(function):
    """The names that a function uses, also those of this file's functions that it calls."""
    names = set(function.__code__.co_names)
    helpers = [globals()[name] for name in names if name in HELPERS]
    return names.union(*(helper.__code__.co_names for helper in helpers)) if helpers else names


HELPERS = ("own_kernel", "bounds", "proximity_cells", "small_tree")
#: Answers drawn at random; data that a probe makes for itself, and functions that it returns, cannot be replaced.
DRAWN = sorted({*np.random.default_rng(0).choice(COMPUTED, 40, replace=False)} - {"call scoring_function"})


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("answer", DRAWN)
def test_a_constant_of_the_same_type_and_shape_is_noticed(answer, monkeypatch):
    replaced(answer, monkeypatch)
    with pytest.raises(AssertionError):
        check(answer)
