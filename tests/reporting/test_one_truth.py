"""One truth per page: its sentences, the verdicts of its rows and their intervals never say two things."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrary as cal
from calibrary.evaluation import Evaluation, Row
from calibrary.reporting.agreement import holds_ideal, one_truth
from calibrary.reporting.words import verdict

METRICS = ["ece", "cis", "spiegelhalter", "eo", "esce", "ecce_mad"]
MISCALIBRATED = "miscalibrated"


def labels(rng, q):
    return (rng.random(len(q)) < q).astype(int)


def binary(rng, slope=1.0, shift=0.0, n=300):
    p = rng.beta(0.8, 0.8, n).clip(1e-4, 1 - 1e-4)
    return labels(rng, expit(slope * logit(p) + shift)), p


def nearly_certain(rng, n=250):
    """Heavy tails: a handful of rows decides everything, and whether a resample holds them is chance."""
    p = rng.beta(30.0, 1.0, n)
    return labels(rng, 1.0 / (1.0 + ((1.0 - p) / p) ** 0.7)), p


def hundred_classes(rng, n=400):
    """Too sure of each prediction: the mean confidence is wrong, the slope of the log odds hardly."""
    odds = 2.0 * rng.normal(size=(n, 100))
    p, q = (np.exp(odds * s) / np.exp(odds * s).sum(axis=1, keepdims=True) for s in (1.0, 0.8))
    return (q.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, 99), p


def detections(rng, n=100):
    image, score = np.repeat(np.arange(n), 4), rng.uniform(0.2, 0.95, 4 * n)
    return (cal.matched_detections(labels(rng, (score - 0.08).clip(0, 1)), score, image=image),)


KINDS = {
    "calibrated": (binary, 3),
    "extreme": (lambda rng: binary(rng, 0.8), 2),
    "shifted": (lambda rng: binary(rng, 1.0, 0.3), 2),
    "nearly certain": (nearly_certain, 3),
    "100 classes": (hundred_classes, 1),
    "detector": (detections, 1),
}


def shown(page: str) -> dict[str, tuple[str, str, str]]:
    """Interval, ideal and verdict of each row of the table of every metric, as a reader of the page sees them."""
    found = {}
    for id, cells in re.findall(r'<tr class="row" data-id="([^"]*)".*?>(.*?)</tr>', page, re.S):
        texts = {name: re.sub("<[^>]*>", "", inside) for name, inside in
                 re.findall(r'<td data-label="([^"]*)"[^>]*>(.*?)</td>', cells, re.S)}  # fmt: skip
        found[id] = (texts["interval"], texts["ideal"], texts["verdict"])
    return found


def state(verdict: str) -> str:
    if verdict.startswith(MISCALIBRATED):
        return "beyond"
    return "unclear" if verdict.startswith("unclear: ") else "within"


def said(finding: str) -> str:
    if finding.endswith("not significant."):
        return "within"
    return "unclear" if ", but " in finding else "beyond"


def check(answer) -> None:
    rows = shown(replace(answer, figures=(), sections=()).to_html())
    calibrated = not answer.rejected
    assert (answer.verdict in ("not calibrated", "not calibrated, but within tolerance")) is answer.rejected
    for interval, ideal, word in rows.values():
        if interval and ideal and word.startswith(MISCALIBRATED):
            low, high = map(float, interval.split(" to "))
            assert not low <= float(ideal) <= high or float(ideal) in (low, high)  # as far as the digits go
        assert not (calibrated and word.startswith(MISCALIBRATED))
    for row in answer.evaluation:
        assert not (verdict(row, answer.evaluation).startswith(MISCALIBRATED) and holds_ideal(row))
    first = answer.headline.partition(". ")[0].partition("): ")[2]
    # what the headline says is not said again below it
    statements = {"Spread": first, "Direction": first, **{f.partition(":")[0]: f for f in answer.statements}}
    assert said(statements["Spread"]) == state(rows["cis.slope"][2]), (statements["Spread"], rows["cis.slope"])
    of_mean = {state(rows[id][2]) for id in ("eo", "esce") if id in rows}
    if of_mean:
        worst = "unclear" if "unclear" in of_mean else of_mean.pop()
        assert said(statements["Direction"]) == worst, (statements["Direction"], rows)
    for word, name in (("too extreme", "Spread"), ("not extreme enough", "Spread"), ("on average too", "Direction")):
        assert word not in first or said(statements[name]) == "beyond"


@pytest.mark.parametrize("kind", KINDS)
def test_sentences_rows_and_intervals_agree_on_every_page(kind):
    make, times = KINDS[kind]
    rng = np.random.default_rng(7)
    for seed in range(times):
        check(cal.report(*make(rng), metrics=METRICS, n_resamples=99, rng=seed))


def test_a_slope_that_only_a_wrong_mean_makes_look_wrong_is_within_chance_in_row_and_sentence():
    rng = np.random.default_rng(0)
    p = rng.beta(1.0, 3.0, 3000).clip(1e-3, 1 - 1e-3)
    y = labels(rng, expit(logit(p) - 1.5))  # the slope is right
    answer = cal.report(y, p, metrics=METRICS, n_resamples=99)
    assert answer.decision.row("slope").pvalue_adjusted <= 0.01
    row = answer.evaluation.row("cis", "slope")
    assert row.pvalue > 0.5
    assert verdict(row, answer.evaluation) == "no evidence"
    assert "Spread: the Cox slope is 1.005 (1 is ideal); the difference is not significant." in answer.statements


def test_what_an_interval_speaks_against_is_unclear_in_row_sentence_and_headline(monkeypatch):
    from calibrary.reporting import compose

    def doubted(*given):
        made = one_truth(*given)
        wide = {"cis": (0.2, 1.1), "eo": (0.9, 1.5), "esce": (-0.2, 0.1), "spiegelhalter": (-1.0, 9.0)}
        rows = (replace(r, low=wide[r.id][0], high=wide[r.id][1]) if r.id in wide else r for r in made.rows)
        return replace(made, rows=tuple(rows))

    monkeypatch.setattr(compose, "one_truth", doubted)
    extreme = cal.report(*binary(np.random.default_rng(1), 0.4, n=2000), metrics=METRICS, n_resamples=99)
    assert (
        "the log odds of the probabilities do not follow the outcomes as those of a calibrated model would (the Cox "
        "slope is" in extreme.headline
    )
    check(extreme)
    shifted = cal.report(*binary(np.random.default_rng(1), 1.0, 0.8, n=1000), metrics=METRICS, n_resamples=99)
    assert "further apart than expected of a calibrated model, but the interval of" in shifted.headline
    check(shifted)


def row(**facts) -> Row:
    known = {"id": "eo", "name": "", "family": "point", "value": 1.2, "perfect": 1.0, "low": 1.1, "high": 1.3}
    return Row(**{**known, "pvalue": 0.004, "pvalue_adjusted": 0.004, **facts})


def table(rows=(), **settings) -> Evaluation:
    return Evaluation(tuple(rows), {}, 100, 2, "auto", {"n_resamples": 999, "confidence_level": 0.95, **settings})


def test_the_verdict_reads_the_interval_the_level_and_the_decision():
    assert verdict(row(), table()) == "miscalibrated"
    assert verdict(row(low=0.9), table()) == "unclear: p = 0.004, but its interval includes 1"
    refused = table(rejected=False)
    assert verdict(row(), refused) == "unclear: p = 0.004, but the overall test is not significant"
    within = {"pvalue": 0.2, "pvalue_adjusted": 0.3}
    assert (
        verdict(row(**within), table())
        == "not significant after adjustment (p = 0.3), although its interval excludes 1"
    )
    assert verdict(row(**within, low=0.9), table()) == "no evidence"
    at_90 = row(pvalue=0.07, pvalue_adjusted=0.08)
    assert verdict(at_90, table(confidence_level=0.9)) == "miscalibrated (p = 0.08)"
    assert verdict(at_90, table()).startswith("not significant")
    chosen = row(pvalue=0.02, pvalue_adjusted=0.2, primary=True)
    assert verdict(chosen, table()) == "miscalibrated (p = 0.02)"
    # one that decides is read among those that do, also where it was chosen in advance
    assert verdict(replace(chosen, among=4), table()) == (
        "not significant after adjustment for 4 numbers of the overall test (alone p = 0.02)"
    )
