"""Many metrics at once: step-down max-T keeps the family-wise error and does not lose what one metric shows alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrary as cal
from calibrary.base.errors import collected_warnings
from calibrary.inference.methods.multiplicity import step_down_max_t
from calibrary.lookup import catalogue
from each import amount

SCORES = {
    "bs", "rbs", "nll", "fl", "sr", "dss", "mae", "pwe", "l1eps", "pss", "ps", "pls", "sf1", "rps", "sarps", "wsmcs",
    "hcs", "laace", "qgc", "sgc", "stratified_bs", "cal", "dual_fl", "fcl", "hinge", "huber", "silf", "asymmetric_ls",
    "general_ls", "misclassification_loss", "bounded_brier", "bounded_log", "net_benefit",
}  # fmt: skip
BIASES = {"gsb", "mdca", "eo", "oe", "esce", "proximity_bias", "multiaccuracy_error", "error_at_level"}

#: No rising change of the confidences alters them, so that nothing they read is about calibration.
RANKINGS = {"aurc", "e_aurc", "augrc", "auroc"}


def test_the_kind_of_measure_of_every_metric():
    for entry in catalogue.values():
        expected = "calibration and sharpness" if entry.id in SCORES else "bias" if entry.id in BIASES else None
        if expected is None:
            others = {"ls_ecoc_r": "fit", "consistency": "consistency", **dict.fromkeys(RANKINGS, "ranking")}
            expected = others.get(entry.id, "calibration")
        assert entry.measures == expected, entry.id
        assert entry.judges == (entry.measures in ("calibration", "bias"))


def by_definition(observed, values, tails):
    """Step-down max-T, written out."""
    mean, sd = values.mean(axis=0), values.std(axis=0, ddof=1)
    turn = {"greater": lambda x: x, "less": lambda x: -x, "two-sided": np.abs}
    z = np.array([turn[t]((observed[j] - mean[j]) / sd[j]) for j, t in enumerate(tails)])
    drawn = np.array([[turn[t]((row[j] - mean[j]) / sd[j]) for j, t in enumerate(tails)] for row in values])
    left, so_far, adjusted = list(range(len(z))), 0.0, np.empty(len(z))
    while left:
        best = max(left, key=lambda j: z[j])
        hits = sum(max(row[j] for j in left) >= z[best] for row in drawn)
        so_far = max(so_far, (1 + hits) / (len(values) + 1))
        adjusted[best] = so_far
        left.remove(best)
    return adjusted


def test_max_t_is_its_definition():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(59, 5)) @ rng.normal(size=(5, 5)) + 3.0
    observed = values.mean(axis=0) + np.array([0.1, 4.0, -9.0, 1.0, 2.0])
    tails = ["greater", "greater", "two-sided", "less", "greater"]
    raw, adjusted = step_down_max_t(observed, values, tails)
    np.testing.assert_allclose(adjusted, np.maximum(by_definition(observed, values, tails), raw))
    assert (adjusted >= raw).all()


def test_infinite_failed_and_constant_columns():
    rng = np.random.default_rng(1)
    values = np.column_stack([rng.normal(size=99), np.full(99, 2.0), np.full(99, 2.0), rng.normal(size=99)])
    values[0, 0], values[1, 0] = np.inf, np.nan
    observed = np.array([np.inf, 2.0, 3.0, np.nan])
    raw, adjusted = step_down_max_t(observed, values, ["greater"] * 4)
    assert adjusted[0] == pytest.approx(2 / 99)  # one redraw is as infinite as the data
    assert np.isnan(adjusted[1])
    assert np.isnan(raw[1])
    assert adjusted[2] == 0.02  # no redraw gave it, but one redraw of another column is as extreme
    assert np.isnan(adjusted[3])


def over_confident(n, slope, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.beta(0.8, 0.8, n).clip(1e-9, 1 - 1e-9)
    return (rng.random(n) < q).astype(int), expit(slope * logit(q))


def test_a_table_of_many_metrics_detects_what_one_metric_detects():
    y, c = over_confident(1500, 3.0)
    metrics = ["point", "cumulative", "ece", "ace", "mce", "tce", "hl"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = cal.evaluate(y, c, metrics=metrics, tests=True, n_resamples=199, rng=0)
    rows = {r.id: r for r in table.rows}
    for id in ("spiegelhalter", "bs", "nll", "ece", "hl"):
        assert rows[id].pvalue_adjusted <= 0.01
    assert sum(r.pvalue_adjusted is not None and r.pvalue_adjusted < 0.05 for r in table.rows) > len(table.rows) / 2


def test_min_p_and_holm_say_that_they_cannot_reject():
    y, c = over_confident(300, 3.0)
    for adjust in ("min-p", "holm"):
        statistics = [cal.inference.draw.statistic.as_statistic(id, *asked) for id, asked in prepared(y, c)]
        with collected_warnings() as said:
            cal.inference.methods.drawn.infer_many(
                statistics, statistics[0].question.changed(n_resamples=39, adjust=adjust, rng=0), intervals=False
            )
        assert any("cannot reject any of 6 metrics with n_resamples=39: use at least 120" in text for text in said)


def prepared(y, c):
    sample, question = cal.inference.draw.statistic.read_call("ece", y, c, {})
    return [(id, (sample, question)) for id in ("ece", "bs", "nll", "ks", "mae", "ace")]


def test_too_few_draws_for_the_level_are_refused_with_the_number_needed():
    y, c = over_confident(100, 1.0)
    with pytest.raises(ValueError, match=r"n_resamples=18 is too few for the level 0.95.*at least 19"):
        cal.evaluate(y, c, metrics=["ece"], tests=True, n_resamples=18)


@pytest.mark.parametrize("k", [2, 4])
def test_family_wise_error_on_calibrated_samples(k):
    """Of many small samples 5%, with Monte Carlo error, have any adjusted p-value below 0.05."""
    rng, alarms, n_samples = np.random.default_rng(k), 0, amount(60, 200)
    metrics = ["bs", "nll", "ece", "ace", "ks", "kuiper", "spiegelhalter", "mdca", "mae", "eo", "mce"]
    for _ in range(n_samples):
        if k == 2:
            p = rng.beta(0.8, 0.8, 120)
            y = (rng.random(120) < p).astype(int)
        else:
            p = rng.dirichlet(np.ones(k), 120)
            y = (p.cumsum(axis=1) < rng.random(120)[:, None]).sum(axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = cal.evaluate(y, p, metrics=metrics, tests=True, n_resamples=39, rng=rng)
        alarms += min(r.pvalue_adjusted for r in table.rows if r.pvalue_adjusted is not None) < 0.05
    assert alarms / n_samples < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_samples)
