"""Rows that belong to no class, held to slow definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import calibrary as cal
from calibrary.base.claims import RULES
from calibrary.secondorder.uncertainty import Scored, auroc, detector
from truths import KnownTruth, holds

pytestmark = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def rows(seed=0, n=200, n_out=80):
    rng = np.random.default_rng([47, seed])
    p = np.concatenate([rng.beta(0.7, 0.7, n), rng.beta(2.0, 2.0, n_out)]).round(2)
    y = [int(u < q) for u, q in zip(rng.random(n), p, strict=False)] + [None] * n_out
    return y, p, np.arange(n + n_out) >= n


def test_the_detector_is_the_share_of_pairs_and_the_best_threshold():
    rng = np.random.default_rng(0)
    found, others = rng.normal(1.0, 1.0, 40).round(1), rng.normal(0.0, 1.0, 60).round(1)
    d = detector(Scored("s", found, others, np.ones(40), np.ones(60)), 0.95, 199, 0)
    pairs = [(x > z) + 0.5 * (x == z) for x in found for z in others]
    assert d.value == pytest.approx(np.mean(pairs))
    threshold = np.sort(others)[56]  # 95% of 60 rows are at or below it
    assert d.missed.value == pytest.approx(np.mean(found <= threshold))
    errors = [0.5 * (np.mean(found <= t) + np.mean(others > t)) for t in np.concatenate([[-9.0], found, others])]
    assert d.best_error.value == pytest.approx(min(errors))
    assert d.low < d.value < d.high
    assert d.pvalue < 0.001
    twice = detector(Scored("s", found, others, np.full(40, 2.0), np.full(60, 0.5)), 0.95, 199, 0)
    assert twice.value == pytest.approx(d.value)


def test_the_area_agrees_with_mann_and_whitney():
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(1)
    found, others = rng.integers(0, 8, 50) * 1.0, rng.integers(0, 7, 70) * 1.0
    d = detector(Scored("s", found, others, np.ones(50), np.ones(70)), 0.95, 199, 0)
    expected = mannwhitneyu(found, others, method="asymptotic", use_continuity=False)
    assert d.value == pytest.approx(expected.statistic / 3500)
    assert d.pvalue == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_kinds_that_never_overlap_leave_an_interval(sign):
    d = detector(Scored("s", sign * np.arange(5.0, 10.0), sign * np.arange(5.0), np.ones(5), np.ones(5)), 0.95, 199, 0)
    assert d.value == (sign > 0)
    assert (d.low < 0.6, d.high == 1.0) == (True, True) if sign > 0 else (d.low == 0.0, d.high > 0.4) == (True, True)


def test_rows_outside_by_hand():
    y, p, out = rows()
    found = cal.outside_rows(y, p, rng=0, n_resamples=99)
    said = cal.outside_rows(y, p, outside=out, rng=0, n_resamples=99)
    assert found.sentence == said.sentence
    c = np.maximum(p, 1 - p)
    right = np.array([y[i] is not None and (p[i] > 0.5) == y[i] for i in range(len(p))], dtype=int)
    assert found.outside_confidence.value == pytest.approx(c[out].mean())
    assert found.inside_confidence.value == pytest.approx(c[~out].mean())
    assert found.open_set_error.value == pytest.approx(cal.ece(right, c, lens="binary"))
    assert found.closed_error.value == pytest.approx(cal.ece(right[~out], c[~out], lens="binary"))
    assert found.selective_risk.value == pytest.approx(cal.compute("aurc", right, c, lens="binary"))
    assert found.prevalence_outside == pytest.approx(80 / 280)
    pairs = [(a < b) + 0.5 * (a == b) for a in c[out] for b in c[~out]]
    assert found.detector.value == pytest.approx(np.mean(pairs))
    told = {
        "outside_confidence": c[out].mean(), "inside_confidence": c[~out].mean(), "auroc": np.mean(pairs),
        "fpr": found.detector.missed.value, "open_set_error": cal.ece(right, c, lens="binary"),
        "closed_error": cal.ece(right[~out], c[~out], lens="binary"),
    }  # fmt: skip
    truth = KnownTruth(c, c, measured=told, of_metric={"true AUROC": {"confidence, outside": 0.7}})
    assert all(holds(claim, truth) for claim in found.sentence.claims)
    assert {"detects", "measured"} == {claim.rule for claim in found.sentence.claims if claim.rule in RULES}


def test_the_stated_share_weighs_them():
    y, p, out = rows(1)
    found = cal.outside_rows(y, p, prevalence_outside=0.02, rng=0, n_resamples=99)
    c = np.maximum(p, 1 - p)
    right = np.array([y[i] is not None and (p[i] > 0.5) == y[i] for i in range(len(p))], dtype=int)
    w = np.where(out, 0.02 / out.sum(), 0.98 / (~out).sum())
    assert found.open_set_error.value == pytest.approx(cal.ece(right, c, lens="binary", sample_weight=w))


@pytest.mark.parametrize("share", [None, 0.02])
def test_weights_are_copies_of_rows_inside_and_outside(share):
    y, p, _ = rows(3, 60, 30)
    order = np.random.default_rng(4).permutation(90)
    y, p = [y[i] for i in order], p[order]
    s, w = np.random.default_rng(5).random(90).round(1), 1 + (8 * np.abs(p - 0.5)).astype(int)
    again, asked = np.repeat(np.arange(90), w), {"prevalence_outside": share, "rng": 0, "n_resamples": 99}
    written = cal.outside_rows([y[i] for i in again], p[again], scores={"s": s[again]}, **asked)
    assert cal.outside_rows(y, p, scores={"s": s}, sample_weight=w, **asked).to_dict() == written.to_dict()
    halves = cal.outside_rows(y, p, scores={"s": s}, sample_weight=0.5 * w, **asked)
    for name in ("open_set_error", "closed_error"):  # the other areas count single copies
        assert getattr(halves, name).value == pytest.approx(getattr(written, name).value), name
    for one, two in zip((halves.detector, *halves.scores), (written.detector, *written.scores), strict=True):
        assert (one.value, one.missed.value, one.best_error.value) == pytest.approx(
            (two.value, two.missed.value, two.best_error.value)
        )
    assert halves.gains[0].value == pytest.approx(written.gains[0].value)
    for one, two in zip((halves.inside_confidence, halves.outside_confidence),
                        (written.inside_confidence, written.outside_confidence), strict=True):  # fmt: skip
        assert one.value == pytest.approx(two.value)
        assert one.quantiles == pytest.approx(two.quantiles)
        assert one.histogram == pytest.approx(two.histogram)


def test_other_scores_are_compared_with_confidence():
    y, p, out = rows(2)
    rng = np.random.default_rng(0)
    found = cal.outside_rows(
        y, p, scores={"good": out + rng.normal(0, 0.5, len(p)), "noise": rng.random(len(p))}, rng=0
    )
    good, noise = found.gains
    assert good.low > 0.0
    assert good.pvalue < 0.001
    assert noise.value < 0.0
    assert found.scores[0].value - found.detector.value == pytest.approx(good.value)
    assert "The score good changes the AUROC" in found.sentence


def test_several_classes_and_an_ensemble_say_the_same_of_the_mean():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), (150, 4))
    y = np.array([*rng.integers(0, 3, 100), *[None] * 50], dtype=object)
    whole = cal.ensemble(y, p, rng=0, n_resamples=39)
    mean = cal.outside_rows(y, p.mean(axis=1), rng=0, n_resamples=39)
    assert whole.outside is not None
    assert whole.outside.detector.value == pytest.approx(mean.detector.value)
    assert whole.decomposition.outside.n_found == 50
    assert "rows outside" in whole.sentence


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y_true": [0, 1, 0]}, "no row is outside: mark rows that belong to no class"),
        ({"outside": [False, False, True], "y_true": [0, 1, 1]}, "row 2 is outside and has the label 1"),
        ({"outside": [False, True, False]}, "row 1 is outside and has the label 1"),
        ({"outside": [False, False, False]}, "row 2 has no label and is not marked as outside"),
        ({"prevalence_outside": 1.5}, "prevalence_outside=1.5 must be a share above 0 and below 1"),
        ({"prevalence_outside": 1.0}, "prevalence_outside=1.0 must be a share above 0 and below 1"),
        ({"prevalence_outside": 0.0}, "prevalence_outside=0.0 must be a share above 0 and below 1"),
        ({"scores": {"s": [1.0]}}, r"scores\['s'\] has shape"),
        ({"y_prob": np.zeros((3, 2, 2, 2))}, "y_prob has 4 dimensions"),
    ],
)
def test_bad_input_is_one_sentence(change, said):
    asked = {"y_true": [0, 1, None], "y_prob": [0.2, 0.7, 0.6], **change}
    with pytest.raises(ValueError, match=said) as refused:
        cal.outside_rows(asked.pop("y_true"), asked.pop("y_prob"), rng=0, **asked)
    assert "\n" not in str(refused.value)


def test_the_gain_of_a_score_is_delongs_from_pairs_of_few_rows():
    rng = np.random.default_rng(3)
    p, other = rng.beta(2.0, 2.0, 13).round(2), rng.random(13).round(1)
    y = [int(v) for v in rng.random(8) < 0.5] + [None] * 5
    gain = cal.outside_rows(y, p, scores={"other": other}, rng=0, n_resamples=99).gains[0]
    detected = np.array([other, -np.maximum(p, 1.0 - p)])
    pairs = [[[(a > b) + 0.5 * (a == b) for b in s[:8]] for a in s[8:]] for s in detected]
    apart = np.subtract(*np.array(pairs))  # (outside, inside)
    error = np.sqrt(np.var(apart.mean(axis=1), ddof=1) / 5 + np.var(apart.mean(axis=0), ddof=1) / 8)
    assert gain.value == pytest.approx(apart.mean())
    assert (gain.high - gain.low) / 2 == pytest.approx(1.959964 * error, rel=1e-6)
    assert gain.pvalue == pytest.approx(chi2.sf((apart.mean() / error) ** 2, 1))


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_end_of_a_perfect_area_is_that_of_the_smaller_group(level):
    """Of five rows none was out of order: a share that this happens to with half of the rest of the level."""
    few, many = np.arange(5.0), np.arange(8.0)
    end = ((1.0 - level) / 2.0) ** (1.0 / 5.0)
    ones = np.ones(5), np.ones(8)
    assert auroc(Scored("s", 10.0 + few, many, *ones), level)[:3] == pytest.approx((1.0, end, 1.0))
    assert auroc(Scored("s", few - 10.0, many, *ones), level)[:3] == pytest.approx((0.0, 0.0, 1.0 - end))
