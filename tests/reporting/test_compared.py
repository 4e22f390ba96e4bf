"""The answer of several models: its sentences follow the adjusted p-values, and are true for simulated models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import calibrary as cal
from calibrary.reporting import compared, together
from calibrary.reporting.compose import compare_models, subtracted
from truths import KnownTruth, holds

pytestmark = pytest.mark.usefixtures("outlined")

METRICS = ("ece", "bs", "auroc")


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def world(kind, n, rng):
    """True probabilities, and the predictions of two models."""
    x, u = rng.normal(size=n), rng.normal(size=n)
    q = sigmoid(1.5 * x + 0.8 * u)
    only_x = sigmoid(1.5 * x / np.sqrt(1.0 + 0.64 * np.pi / 8.0))  # nearly calibrated, and ranks worse
    return q, {
        "equal": (sigmoid(1.4 * x + 0.9 * u), sigmoid(1.4 * x + 0.9 * u + 1e-3)),
        "better": (q, sigmoid(1.8 * (1.5 * x + 0.8 * u) + 0.5)),
        "worse": (sigmoid(0.5 * (1.5 * x + 0.8 * u)), q),
        "calibrated but ranking worse": (only_x, sigmoid(2.0 * (1.5 * x + 0.8 * u))),
    }[kind]


def truth_of(kind):
    """The true values of both models, from many rows with their true probabilities as labels."""
    q, models = world(kind, 200_000, np.random.default_rng(99))
    values = {
        name: {id: cal.compute(id, q, p) for id in METRICS} for name, p in zip(("gbm", "logreg"), models, strict=True)
    }
    return KnownTruth.about({"true values of models": values})


KINDS = ("equal", "better", "worse", "calibrated but ranking worse")


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_of_simulated_pairs_are_true_and_follow_the_adjusted_pvalues(kind):
    truth, false, said = truth_of(kind), 0, []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q, (a, b) = world(kind, 1500, rng)
        y = (rng.random(1500) < q).astype(int)
        found = compare_models(y, {"gbm": a, "logreg": b}, metrics=METRICS, n_resamples=99, rng=seed)
        assert all((c.a, c.b) == ("gbm", "logreg") for _, c in found)  # the model named first minus the other
        sentences = compared.answer(found, "ece")
        by_sentence = dict(zip(("ece", "auroc", "bs"), sentences, strict=False))
        for metric, c in found:
            sentence = by_sentence[metric]
            beyond = c.pvalue_adjusted <= 0.05
            assert ("no evidence" not in sentence) == beyond, (metric, c, sentence)
            assert bool([claim for claim in sentence.claims if claim.rule == "better of two models"]) == beyond
        claims = [claim for s in sentences for claim in s.claims if claim.rule == "better of two models"]
        false += sum(not holds(claim, truth) for claim in claims)
        said.append({(claim.values["metric"], claim.values["better"]) for claim in claims})
    assert false == 0
    expected = {
        "equal": set(),
        "better": {("ece", "gbm"), ("bs", "gbm")},
        "worse": {("ece", "logreg"), ("bs", "logreg")},
        "calibrated but ranking worse": {("ece", "gbm"), ("auroc", "logreg")},
    }[kind]
    assert sum(expected <= each for each in said) >= 4, said


@pytest.fixture(scope="module")
def five():
    rng = np.random.default_rng(3)
    x = rng.normal(size=1200)
    y = (rng.random(1200) < sigmoid(x)).astype(int)
    noise = rng.normal(size=1200)
    return y, {
        "steep": sigmoid(2.2 * x), "right": sigmoid(x), "noisy": sigmoid(0.4 * x + 0.8 * noise), "high": sigmoid(x + 1),
        "again": sigmoid(1.02 * x),
    }  # fmt: skip


def test_the_best_of_five_is_compared_with_each_other_and_adjusted_for_every_pair(five):
    y, models = five
    reports = [
        cal.report(y, p, metrics=["ece", "bs", "auroc"], n_resamples=19, about={"title": f"f: {m}"})
        for m, p in models.items()
    ]
    best = subtracted(reports, list(models))
    errors = {m: cal.compute("ece", y, p) for m, p in models.items()}
    assert best == min(errors, key=errors.get)
    few = compare_models(y, models, metrics=METRICS, n_resamples=99, rng=0, reference=best)
    assert {c.b for _, c in few} == {best}
    every = {
        (m, frozenset((c.a, c.b))): c for m, c in compare_models(y, models, metrics=METRICS, n_resamples=99, rng=0)
    }
    for metric, c in few:  # never less than the adjustment over all pairs, from which the best was chosen
        assert c.pvalue_adjusted >= every[metric, frozenset((c.a, c.b))].pvalue_adjusted - 1e-12
    first, ranks, score, adjusted = compared.answer(few, "ece")
    assert first.startswith(f"Of 5 models, {best} has the lowest ECE, ")
    for name in ("steep", "high", "noisy"):
        assert name in first.partition("no evidence")[0]
    assert "no evidence of a difference" in first
    assert "noisy" in ranks
    assert "better Brier score" in score
    assert "all 30 comparisons" in adjusted
    order = [r.title for r in together.in_order(reports)]
    assert order == [f"f: {m}" for m in sorted(errors, key=errors.get)]
    assert together.reference_of(few) == best
    page = cal.reporting.html.page(reports, few)
    assert page.index("Of 5 models") < page.index("<table")
    assert "minus " + best in page


def test_colours_follow_the_adjusted_pvalue_also_of_signed_numbers(five):
    y, models = five
    two = {"steep": models["steep"], "right": models["right"]}
    reports = [
        cal.report(y, p, metrics=["ece", "ecd"], n_resamples=99, about={"title": f"f: {m}"}) for m, p in two.items()
    ]
    found = compare_models(y, two, metrics=("ece", "ecd"), n_resamples=99, rng=0)
    shown = {
        id: c for (id, _), c in zip(together.heads(reports), together.cells(reports[0], reports, found), strict=True)
    }
    for metric, c in found:
        assert c.pvalue_adjusted < 0.05
        assert shown[metric].mood == "worse", metric
        chance = [(m, replace(c, pvalue_adjusted=0.06)) for m, c in found]
    moods = {c.mood for c in together.cells(reports[0], reports, chance)}
    assert moods == {""}
    # two signed numbers on both sides of the perfect value: their difference does not say which is nearer
    row = replace(reports[0].evaluation.row("ecd"), low=-0.1, high=0.2)
    ecd = dict(found)["ecd"]
    assert compared.nearer("ecd", ecd, row, row) == ""


def test_estimates_in_the_other_order_are_explained():
    y, a, b = np.arange(80) % 2, np.full(80, 0.5), np.full(80, 0.6)
    c = dict(compare_models(y, {"a": a, "b": b}, metrics=("ece",), n_resamples=99, rng=0))["ece"]
    odd = replace(c, value=0.01, low=-0.09, high=-0.02, pvalue_adjusted=0.01)
    assert "the estimates have the other order" in compared.answer([("ece", odd)])[0]
    assert compared.answer([("ece", odd)])[0].startswith("a is better calibrated than b")
    assert compared.better_of("ece", replace(odd, low=0.02, high=0.09)) == "b"
    assert compared.better_of("ece", replace(odd, pvalue_adjusted=0.051)) == ""
