"""Over- and under-confidence in different places, score thresholds of detectors, and scores of counts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import nbinom, poisson

import calibrary as cal
from calibrary.inference.draw.look import look_at
from calibrary.inference.overall.decision import decide
from calibrary.reporting.words import both_ways


def draw(curve, n=2000, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.random(n)
    return (rng.random(n) < curve(c)).astype(int), c


@pytest.mark.parametrize(
    ("curve", "finding"),
    [
        (lambda c: c**1.5, "over-confident"),
        (lambda c: c**0.6, "under-confident"),
        (lambda c: np.clip(c + 0.12 * np.sin(2 * np.pi * c), 0, 1), "mixed"),
        (lambda c: c, "none"),
    ],
)
def test_the_direction_is_found(curve, finding):
    found = cal.confidence_direction(*draw(curve), n_resamples=199)
    assert found.finding == finding
    assert "ECE" in str(found)


def test_the_parts_add_up_to_ece_and_their_difference_is_esce():
    y, c = draw(lambda c: c**1.5, 300)
    w = 1 + np.arange(300) % 3
    for weights in (None, w):
        found = cal.confidence_direction(y, c, n_resamples=19, sample_weight=weights)
        assert found.over + found.under == pytest.approx(cal.compute("ece", y, c, sample_weight=weights))
        assert found.under - found.over == pytest.approx(cal.compute("esce", y, c, sample_weight=weights))
    heavy = cal.confidence_direction(np.repeat(y, w), np.repeat(c, w), n_resamples=19)
    assert heavy.over == pytest.approx(found.over)


def test_a_calibrated_model_is_rarely_rejected_for_direction():
    found = [cal.confidence_direction(*draw(lambda c: c, 300, s), n_resamples=99).finding for s in range(60)]
    assert sum(f != "none" for f in found) <= 9  # 5 % of 60 is 3


def test_many_rows_are_drawn_by_bins_and_rarely_rejected():
    rng = np.random.default_rng(3)
    c = rng.beta(0.3, 0.3, 21_000)
    found = [
        cal.confidence_direction((rng.random(len(c)) < c).astype(int), c, n_resamples=99, rng=s) for s in range(60)
    ]
    assert sum(f.finding != "none" for f in found) <= 9
    assert 0.3 < np.mean([f.over_pvalue for f in found]) < 0.7
    wave = np.clip(c + 0.03 * np.sin(2 * np.pi * c), 0, 1)
    y = (rng.random(len(c)) < wave).astype(int)
    assert cal.confidence_direction(y, c, n_resamples=199).finding == "mixed"
    few = cal.confidence_direction(y, c, n_resamples=99, sample_weight=1 + np.arange(len(c)) % 2)
    assert few.finding == "mixed"


WAVE = lambda c: np.clip(c + 0.15 * np.sin(2 * np.pi * c), 0, 1)  # noqa: E731


def test_the_page_says_when_errors_go_both_ways():
    y, c = draw(WAVE, 800)
    page = cal.report(y, c, metrics=["ece"], n_resamples=199, rng=0)
    (line,) = [line for line in page.statements if line.startswith("Both ways:")]
    found = cal.confidence_direction(y, c, n_resamples=199, rng=0)
    told = [float(number) for number in re.findall(r"-?0\.\d+", line)]
    np.testing.assert_allclose(told, [found.over, found.under, found.ece, found.esce], atol=6e-4)
    assert "too high at some confidences and too low at others" in line


@pytest.mark.parametrize(
    ("curve", "units", "said"),
    [
        (WAVE, False, True),
        (WAVE, True, False),  # labels of a unit are dependent and are not drawn one by one
        (lambda c: c**1.5, False, False),  # one way only
        (lambda c: c, False, False),
    ],
)
def test_errors_in_both_directions_are_reported_only_if_both_have_evidence(curve, units, said):
    data, question = cal.predictions(*draw(curve, 800)), cal.Question(n_resamples=199, rng=0)
    who = np.arange(800) // 3 if units else None
    decision = decide(data, question, units=who)
    assert decision.rejected == (curve(0.3) != 0.3)
    assert bool(both_ways(look_at(data.in_units(who), question), question, decision)) == said
    assert both_ways(look_at(data.in_units(who), question), question, None) == ""


# -- thresholds ----------------------------------------------------------------------------------------


def lrp(correct, score, iou, objects, threshold, tau):
    """The literal error of the detections from a threshold on."""
    kept = score >= threshold
    tp, fp = kept & correct, kept & ~correct
    fn = objects - tp.sum()
    return ((1 - iou[tp]).sum() / (1 - tau) + fp.sum() + fn) / (tp.sum() + fp.sum() + fn)


def test_thresholds_are_the_best_of_all():
    found = cal.datasets.detections()
    chosen = cal.detection_thresholds(found)
    for k, category in enumerate(found.categories):
        mine = found.category == k
        args = found.correct[mine], found.score[mine], found.iou[mine], found.n_objects[k]
        every = [lrp(*args, t, found.iou_threshold) for t in (*np.unique(found.score[mine]), 1.1)]
        assert chosen.error[category] == pytest.approx(min(every))
        assert lrp(*args, chosen.thresholds[category], found.iou_threshold) == pytest.approx(min(every))


def test_dropped_detections_leave_their_objects_missed_and_stay_dropped_when_matched_again():
    found = cal.datasets.detections()
    kept = cal.above_thresholds(found, 0.4)
    assert kept.score.min() >= 0.4
    assert kept.n_objects.sum() == found.n_objects.sum()
    assert kept.missed().sum() == found.n_objects.sum() - len(set(kept.object[kept.correct]))
    again = kept.rematched(iou_threshold=0.1)
    assert again.score.min() >= 0.4
    assert 0 < cal.compute("laece", again) < 1
    f1 = cal.detection_thresholds(found, objective="f1")
    assert all(0 <= e <= 1 for e in f1.error.values())
    with pytest.raises(ValueError, match="objective='ap'"):
        cal.detection_thresholds(found, objective="ap")
    with pytest.raises(ValueError, match="lack the class"):
        cal.above_thresholds(found, {})


# -- counts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [poisson([0.5, 3.0, 9.0, 30.0]), nbinom([2, 3, 4, 5], [0.5, 0.3, 0.2, 0.1])])
def test_counts_are_scored_as_with_all_classes_written_out(law):
    y = np.array([0, 5, 7, 41])
    p = np.diff(law.cdf(np.arange(2000)[:, None]).T, prepend=0.0, axis=1)
    want = cal.ranked_probability_score(y, p / p.sum(axis=1, keepdims=True), normalize=False, reduction="none")
    rows = cal.count_ranked_probability_score(y, law, reduction="none")
    np.testing.assert_allclose(rows, want, rtol=1e-9)
    w = np.array([1, 2, 4, 3])
    assert cal.count_ranked_probability_score(y, law.cdf, sample_weight=w) == pytest.approx(np.average(rows, weights=w))


@pytest.mark.parametrize(
    ("counts", "law", "words"),
    [([0.5], poisson(1.0), "whole numbers"), ([1], 3, "cdf"), ([1], lambda k: 2.0 + 0 * k, "outside")],
)
def test_invalid_counts_and_distributions_are_refused(counts, law, words):
    with pytest.raises(ValueError, match=words):
        cal.count_ranked_probability_score(counts, law)
