"""Nothing that is said is false: every claim is held to what is so, on data of known truth.

A world gives samples with their truth. Facts must hold in every sample; evidence may be wrong in at most 5% of the
samples of each world in which it is untrue, judged by the 99% binomial interval. ``CALIBRARY_CLAIMS=1000`` draws a
thousand data sets, as ``make claims`` and ``make release-check`` do; otherwise there are thirty. Many data sets are
shared among as many processes as there are cores, and the result does not depend on their number.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import warnings
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import calibrary as cal
from calibrary.base.claims import RULES, Claim, Sentence
from calibrary.base.numbers import number
from calibrary.data import as_data
from calibrary.evaluation import evaluate_data
from calibrary.inference.overall.decision import decide
from calibrary.lookup.study_findings import claims as study_claims
from calibrary.lookup.study_findings import stored
from calibrary.question import Question
from calibrary.reporting import words
from calibrary.reporting.agreement import one_truth
from paths import ROOT
from truths import TRUE, KnownTruth, holds

DATA_SETS = int(os.environ.get("CALIBRARY_CLAIMS", "30"))
DRAWS = 99
N_BINS = 15
#: Fewer data sets are drawn in this process.
MANY = 200


def binary(rng, n, stated, curve, law=lambda rng, n: rng.uniform(0.02, 0.98, n)):
    del stated
    c = law(rng, n)
    q = np.clip(curve(c), 0.0, 1.0)
    return cal.predictions((rng.random(n) < q).astype(int), c), KnownTruth(c, q)


def tempered(slope, shift=0.0):
    return lambda c: 1.0 / (1.0 + np.exp(-(slope * np.log(c / (1.0 - c)) + shift)))


def crossing(c):
    """Too confident above 0.58 and not confident enough below."""
    return np.where(c > 0.58, c - 0.6 * (c - 0.58), c + 0.12 * np.sin(np.pi * c / 0.58))


def rare_law(rng, n):
    return 1.0 / (1.0 + np.exp(-rng.normal(-3.5, 1.0, n)))


def classes(rng, n, k, slope):
    true = rng.dirichlet(np.full(k, 0.4), n) * 0.98 + 0.02 / k
    y = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    stated = true ** (1.0 / slope)
    stated /= stated.sum(axis=1, keepdims=True)
    top = stated.argmax(axis=1)
    rows = np.arange(n)
    return cal.predictions(y, stated), KnownTruth(stated[rows, top], true[rows, top], stated, true)


def units(rng, n):
    """Calibrated, and the rows of a unit share their noise: outcomes of one unit are drawn from one uniform number."""
    unit = np.arange(n) // 6
    c = rng.uniform(0.1, 0.9, n)
    shared = rng.random(unit[-1] + 1)[unit]
    own = rng.random(n)
    u = np.where(rng.random(n) < 0.3, shared, own)
    return cal.predictions((u < c).astype(int), c).in_units(unit), KnownTruth(c, c)


def detections(rng, n):
    score = rng.uniform(0.05, 0.95, n)
    correct = rng.random(n) < score
    image = np.arange(n) // 4
    iou, category = np.where(correct, 0.7, 0.0), np.zeros(n, dtype=int)
    made = cal.matched_detections(correct, score, iou=iou, category=category, image=image)
    return made, KnownTruth(score, score)


WORLDS = {
    "calibrated": lambda rng: binary(rng, 300, None, lambda c: c),
    "calibrated, few rows": lambda rng: binary(rng, 60, None, lambda c: c),
    "calibrated, rare": lambda rng: binary(rng, 500, None, lambda c: c, rare_law),
    "over-confident": lambda rng: binary(rng, 300, None, tempered(0.5)),
    "under-confident": lambda rng: binary(rng, 300, None, tempered(1.8)),
    "too high": lambda rng: binary(rng, 300, None, tempered(1.0, -0.5)),
    "too low, few rows": lambda rng: binary(rng, 80, None, tempered(1.0, 0.7)),
    "both ways": lambda rng: binary(rng, 400, None, crossing),
    "many classes, calibrated": lambda rng: classes(rng, 300, 8, 1.0),
    "many classes, over-confident": lambda rng: classes(rng, 300, 8, 0.5),
    "units, calibrated": lambda rng: units(rng, 300),
    "detections, calibrated": lambda rng: detections(rng, 300),
}


def bins_of(c):
    """Bins of equal width whose upper end belongs to them, as the page's."""
    return np.clip(np.ceil(c * N_BINS).astype(int) - 1, 0, N_BINS - 1)


def error_of(c, y):
    """The expected calibration error, in plain numpy; of true probabilities instead of labels it is the true one."""
    return float(np.abs(np.bincount(bins_of(c), y - c)).sum() / len(c))


def redrawn(world, data, c, rng):
    """Labels of a calibrated model with these confidences, as the world draws them."""
    if world.startswith("units"):
        unit = np.arange(len(c)) // 6
        u = np.where(rng.random(len(c)) < 0.3, rng.random(unit[-1] + 1)[unit], rng.random(len(c)))
        return (u < c).astype(float)
    return (rng.random(len(c)) < c).astype(float)


def known(world, data, truth):
    """What is so of a sample, computed from its rows without the sentences."""
    view = data.read_as("predictions", "a test")
    if view.k > 2:
        top = view.p.argmax(axis=1)
        y = (view.y == top).astype(float)
    else:
        y = np.asarray(view.y, dtype=float)
    c, rng = truth.c, np.random.default_rng(5)
    gap = np.bincount(bins_of(c), y - c) / len(c)
    told = {
        "confidence": c.mean(), "outcome": y.mean(), "slope": KnownTruth(c, y).slope, "rows": len(c), "impossible": 0.0,
        "ece": error_of(c, y), "over": -gap[gap < 0].sum(), "under": gap[gap > 0].sum(), "esce": gap.sum(),
    }  # fmt: skip
    if hasattr(data, "n_images"):
        told["d_ece"] = float(cal.compute("d_ece", data, n_bins=N_BINS))
    for k in range(view.k if view.k > 2 else 0):
        told |= {f"expected {k}": view.p[:, k].mean(), f"occurred {k}": (view.y == k).mean()}
    drawn = np.array([error_of(c, redrawn(world, data, c, rng)) for _ in range(200)])
    true = error_of(c, truth.q)
    facts = {"true values": {"ece": true, "d_ece": true}, "drawn when calibrated": drawn, "draws": DRAWS}
    facts["units"] = {"units": len(c) // 6, "detections": len(c) // 4}.get(world.split(",")[0], 0)
    return replace(truth, of_metric=facts, measured=told, y=y)


def said_of(data, question):
    """Every claim of the page, of the direction and of the advice, without figures."""
    metric = "d_ece" if hasattr(data, "n_images") else "ece"
    table = evaluate_data(data, question, metrics=[metric], intervals=True, tests=True, primary=metric)
    decision = decide(data, question)
    table = one_truth(table, decision, data, question)
    answer = words.answer(data, question, table.row(metric), decision, table)
    for text in (answer.headline, *answer.statements):
        assert isinstance(text, Sentence)
        assert text.claims or text.startswith(SILENT), text
    return list(answer.claims)


#: Sentences of the paragraph and below it that state nothing: a test that does not reject is told as that.
SILENT = ("Where: no single range of confidence is significantly", "Classes: for no class does the expected share")


def also_said_of(data):
    """What single functions say of rows one by one, with the numbers that they told and how they are found."""
    if hasattr(data, "n_images") or data.in_groups or data.k > 2:
        return [], {}
    direction = cal.confidence_direction(data, n_bins=N_BINS, n_resamples=DRAWS)
    verdict = cal.verdict("ece<0.05", data, n_bins=N_BINS, n_resamples=DRAWS, rng=0)
    if data.n < 80:
        return [*direction.claims, *verdict.sentence.claims], {}
    gain = cal.recalibration_gain(data, folds=5, maps=["temperature", "platt"], rng=0)
    return [*direction.claims, *verdict.sentence.claims, *gain.claims], gains_of(gain, data)


def gains_of(gain, data):
    """What maps gain, in plain numpy, from the probabilities that they gave to rows they had not seen."""
    c, y = np.asarray(data.c), np.asarray(data.y, dtype=float)

    def loss(p):
        return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))

    told = {"ECE before": error_of(c, y)}
    for map, probability in gain.cross_fitted.items():
        after = np.asarray(probability)
        told |= {f"gain of {map}": loss(c) - loss(after), f"ECE after {map}": error_of(after, y)}
    return told


def too_many(wrong, n, level=0.05, looks=1):
    """Is the share of wrong samples above the level, by the 99% binomial interval, for so many looks together?"""
    return wrong > 0 and scipy.stats.binom.sf(wrong - 1, n, level) < 0.01 / looks


def run(data_sets, seed=0, first=0, step=1):
    """Samples of every world; for each world and rule: in how many samples it was untrue and said all the same."""
    wrong, samples, facts = defaultdict(Counter), Counter(), []
    question = Question({"n_bins": N_BINS}, n_resamples=DRAWS, rng=0)
    made = Counter()
    names = list(WORLDS)
    for i in range(first, data_sets, step):
        name = names[i % len(names)]
        data, truth = WORLDS[name](np.random.default_rng([seed, i]))
        data = as_data(data, None, {})
        samples[name] += 1
        truth = known(name, data, truth)
        more, told = also_said_of(data)
        truth = replace(truth, measured={**truth.measured, **told})
        said = [*said_of(data, question), *more]
        made.update(claim.rule for claim in said)
        false = {claim.rule: claim for claim in said if not holds(claim, truth)}
        for rule, claim in false.items():
            if RULES[rule].kind == "fact":
                facts.append((name, i, rule, str(claim)))
            else:
                wrong[name][rule] += 1
    return {world: dict(by) for world, by in wrong.items()}, samples, facts, made


def run_part(given):
    """One part of the data sets, in a process of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return run(*given)


def run_shared(data_sets, seed=0, workers=1):
    """The same shared among processes: every one of them takes each ``workers``-th data set."""
    given = [(data_sets, seed, first, workers) for first in range(workers)]
    if workers == 1:
        parts = [run_part(given[0])]
    else:
        # a new process finds this file by its folder
        sys.path[:0] = [here for here in (os.path.dirname(__file__), str(ROOT / "tests")) if here not in sys.path]
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            parts = pool.map(run_part, given)
    wrong, samples, facts, made = defaultdict(Counter), Counter(), [], Counter()
    for part in parts:
        for world, by in part[0].items():
            wrong[world].update(by)
        samples.update(part[1])
        facts += part[2]
        made.update(part[3])
    return wrong, samples, facts, made


@pytest.fixture(scope="module")
def outcome():
    return run_shared(DATA_SETS, workers=(os.cpu_count() or 1) if DATA_SETS >= MANY else 1)


def test_no_fact_is_false(outcome):
    assert outcome[2] == []


def test_evidence_is_wrong_in_at_most_five_percent_of_the_samples_of_a_world(outcome):
    wrong, samples, _, _ = outcome
    over = {(world, rule): (k, samples[world]) for world, by in wrong.items() for rule, k in by.items()
            if too_many(k, samples[world], looks=len(WORLDS))}  # fmt: skip
    assert over == {}
    total = sum(samples[world] for world in samples if "calibrated" in world)
    told = Counter(rule for world, by in wrong.items() if "calibrated" in world for rule in by.elements())
    assert not {rule: k for rule, k in told.items() if too_many(k, total)}


def test_something_is_said(outcome):
    """Silence would pass every test above: in worlds with errors most kinds of claims are made."""
    made = outcome[3]
    assert {"miscalibrated", "measured", "by chance", "interval", "bound", "parts add up"} <= set(made)
    assert len(made) >= 6
    assert made["miscalibrated"] >= DATA_SETS // 6


def test_every_rule_has_a_kind_and_can_fail():
    rng = np.random.default_rng(0)
    c = rng.uniform(0.1, 0.9, 200)
    calm = KnownTruth(c, c)
    values = {
        "direction": {"gap": 0.1}, "spread": {"slope": 0.5}, "parts add up": {"over": 1.0, "under": 1.0, "whole": 1.0},
        "where": {"low": 0.2, "high": 0.4, "confidence": 0.3, "label": 0.5, "count": 9.0},
        "class": {"index": 0, "expected": 0.1, "occurred": 0.2}, "in its range": {"value": -1.0, "range": (0.0, 1.0)},
        "is the value": {"stated": 1.0, "computed": 2.0}, "sureness": {"z": 1.0},
        "part is miscalibrated": {"part": "a"},
        "better of two models": {"metric": "ece", "better": "a", "worse": "b", "lower": True},
        "worth acting": {"threshold": 0.5, "default": "none", "sign": -1.0}, "decides better": {"threshold": 0.5},
        "ensemble is wrong": {"what": "mean"}, "trend": {"slope": 1.0},
    }  # fmt: skip
    assert TRUE.keys() == RULES.keys()
    for name, condition in TRUE.items():
        assert not condition(values.get(name, {}), calm), name
    with pytest.raises(ValueError, match="no rule is called"):
        Claim("The moon is calibrated.", "moon")


def test_what_the_study_says_of_every_metric_is_a_fact():
    nothing = KnownTruth(np.array([0.5]), np.array([0.5]))
    ids = {name.split(",")[0].split(".")[0] for name in stored()["numbers"]}
    told = [
        claim for id in sorted(ids) for n in (100, 1000, 10_000) for k in (2, 10) for claim in study_claims(id, n, k)
    ]
    assert len(told) > 400
    assert all(holds(claim, nothing) for claim in told)


def test_the_stored_run_of_many_data_sets_is_within_the_level():
    """``python benchmarks/claims.py 12288 --workers 16`` made it: about a thousand samples of every world."""
    stored_run = json.loads((ROOT / "benchmarks" / "claims.json").read_text(encoding="utf-8"))
    assert stored_run["data sets"] >= 1000
    assert stored_run["false facts"] == []
    assert set(stored_run["worlds"]) == set(WORLDS)
    for world, found in stored_run["worlds"].items():
        assert not [rule for rule, k in found["false"].items() if too_many(k, found["samples"])], world


# -- the sentences of 0.2.0 are caught -------------------------------------------------------------------


def old_direction(data):
    """0.2.0: "under-confident wherever it is miscalibrated" where one part alone was beyond chance."""
    found = cal.confidence_direction(data, n_resamples=DRAWS)
    return found.finding if found.finding in ("over-confident", "under-confident") else ""


def test_the_direction_of_0_2_0_is_caught():
    wrong, n = 0, 20
    for i in range(n):
        data, truth = binary(np.random.default_rng([7, i]), 200, None, crossing)
        said = old_direction(data)
        other = {"over-confident": "under-confident somewhere", "under-confident": "over-confident somewhere"}
        wrong += bool(said) and TRUE[other[said]]({}, truth)  # "wherever" denies the other direction
    assert too_many(wrong, n)


def test_the_readings_of_0_2_0_are_caught():
    """0.2.0 told the study's turned numbers: -0.84 for a success rate."""
    nothing = KnownTruth(np.array([0.5]), np.array([0.5]))
    at = stored()["sizes"]["1000"]
    caught = []
    for id in ("sr", "pss", "sf1", "hcs", "cal", "auroc", "ls_ecoc_r"):
        value = at[id]["null"]
        old = Claim(f"at this N a calibrated model reads {number(value)}", "in its range", value=value,
                    range=cal.catalogue[id].range)  # fmt: skip
        caught.append(not holds(old, nothing))
    assert all(caught)


def test_the_figures_interval_of_0_2_0_is_caught():
    """0.2.0 printed a basic bootstrap interval of the ECE beside the reliability diagram."""
    wrong, n = 0, 14
    for i in range(n):
        data, truth = WORLDS["calibrated"](np.random.default_rng([8, i]))
        found = cal.interval("ece", data, method="basic", n_resamples=DRAWS, rng=0)
        if found.low > 0.0:
            old = Claim(f"ECE {number(found.low)} to {number(found.high)}", "interval beyond the perfect value")
            wrong += not holds(old, truth)
    assert too_many(wrong, n)


def test_the_two_numbers_of_0_2_0_are_caught():
    """0.2.0 said 0.059 in one sentence and 0.064 in the other about the same rows."""
    data, truth = WORLDS["over-confident"](np.random.default_rng(3))
    gain = cal.recalibration_gain(data, folds=5, maps=["temperature"], rng=0)
    drawn = cal.expected_by_chance("ece", None, gain.cross_fitted["temperature"], n_resamples=49, rng=1).mean
    exact = gain["temperature"].ece_calibrated
    old = Claim("a calibrated model reads ...", "is the value", stated=drawn, computed=exact)
    assert not holds(old, truth)
