"""Results over centres: metafor's and lme4's values, and what is said of centres that have none."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from scipy.stats import binomtest

import calibrary as cal
from calibrary.trial.effects import pooled_effects, reml
from paths import ROOT
from truths import KnownTruth, holds

HERE = ROOT / "tests" / "reference" / "trial"
R = json.loads((HERE / "trial.json").read_text())
ROWS = list(csv.DictReader((HERE / "centres.csv").read_text().splitlines()))
CENTRE = np.array([row["centre"] for row in ROWS])
Y, P = np.array([int(row["y"]) for row in ROWS]), np.array([float(row["p"]) for row in ROWS])
ALL = ("oe", "cis.slope", "citl", "cis.intercept", "auroc", "bs")
#: R's fits end at 1e-6 of a standard error.
CLOSE = {"rel": 2e-6, "abs": 1e-8}


@pytest.fixture(scope="module")
def found():
    return cal.pooled(Y, P, centre=CENTRE, metrics=ALL, zero="leave")


NAMES = {"oe": "oe_leave", "cis.slope": "slope", "citl": "citl", "cis.intercept": "joint_intercept", "auroc": "c"}


def compare(row, theirs, **close):
    close = close or CLOSE
    for ours, name in (
        ("k", "k"), ("value", "estimate"), ("low", "low"), ("high", "high"), ("standard_error", "se_hk"),
        ("tau2", "tau2"), ("i2", "i2"), ("q", "q"), ("q_pvalue", "q_pvalue"), ("hk_factor", "factor_q"),
        ("prediction_low", "prediction_low"), ("prediction_high", "prediction_high"),
    ):  # fmt: skip
        assert getattr(row, ours) == pytest.approx(theirs[name], **close), ours


@pytest.mark.parametrize("metric", NAMES)
def test_pooled_values_are_those_of_metafor(found, metric):
    compare(found[metric], R["pooled"][NAMES[metric]])
    assert found[metric].left_out == (("centre I", "it has no events"),)


def test_the_brier_score_keeps_every_centre_and_its_ends_are_clipped(found):
    row, theirs = found["bs"], R["pooled"]["brier"]
    compare(row, {**theirs, "prediction_low": 0.0})
    assert theirs["prediction_low"] < 0.0
    assert "clipped" in row.note
    assert row.left_out == ()


def test_leave_one_out_is_that_of_metafor(found):
    for metric, name in NAMES.items():
        ours = [(x.value, x.low, x.high, x.tau2) for x in found.leave_one_out if x.metric == metric]
        theirs = R["pooled"][name]["leave_one_out_estimate_low_high_tau2"]
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_each_centre_is_that_of_r(found):
    names = {
        "cis.slope": "slope",
        "cis.intercept": "joint_intercept",
        "citl": "citl",
        "auroc": "logit_c",
        "bs": "brier",
    }
    for row in found.centres:
        theirs = R["centres"]["each"][row.centre]
        assert (row.n, row.events) == (theirs["n"], theirs["events"])
        assert row.expected == pytest.approx(theirs["expected"])
        name = {"oe": "log_oe", **names}[row.metric]
        if name in theirs:
            assert (row.on_scale, row.standard_error) == pytest.approx(tuple(theirs[name]), rel=2e-5, abs=1e-7)
        else:
            assert row.note == "left out: it has no events"
            assert np.isnan(row.weight)
    shares = [row.weight for row in found.centres if row.metric == "oe" and row.weight == row.weight]
    assert sum(shares) == pytest.approx(1.0)


def test_zero_half_and_the_exact_interval_of_a_centre_without_events():
    found = cal.pooled(Y, P, centre=CENTRE, metrics="oe")
    compare(found["oe"], R["pooled"]["oe_half"])
    last = found.centres[-1]
    assert (last.centre, last.value) == ("centre I", 0.0)
    exact = np.array(binomtest(0, last.n).proportion_ci(method="exact")) * last.n / last.expected
    assert (last.low, last.high) == pytest.approx(tuple(exact))
    assert (last.low, last.high) == pytest.approx(tuple(R["centres"]["each"]["centre I"]["exact_oe"]))
    assert "1/2 is added" in found["oe"].note


def test_zero_one_stage_is_the_poisson_model_of_metafor():
    row, theirs = cal.pooled(Y, P, centre=CENTRE, metrics="oe", zero="one-stage")["oe"], R["pooled"]["oe_one_stage"]
    ours = (row.k, row.value, row.low, row.high, row.tau2, row.standard_error)
    assert ours == pytest.approx(
        tuple(theirs[x] for x in ("k", "estimate", "low", "high", "tau2", "se_on_scale")), rel=1e-4
    )
    assert row.left_out == ()


def test_hanley_and_the_truncated_correction():
    row = cal.pooled(Y, P, centre=CENTRE, metrics="auroc", c_variance="hanley")["auroc"]
    compare(row, R["pooled"]["c_hanley"])
    truncated = cal.pooled(Y, P, centre=CENTRE, metrics=ALL, zero="leave", hartung_knapp="truncated")
    for metric, name in NAMES.items():
        theirs = R["pooled"][name]
        expected = (theirs["truncated_low"], theirs["truncated_high"])
        assert (truncated[metric].low, truncated[metric].high) == pytest.approx(expected, rel=1e-5)
        assert "narrower" not in truncated[metric].note


def test_what_must_be_said_is_in_notes_and_in_the_sentence(found):
    assert "DeLong's variance is unreliable with 2 events" in found["auroc"].note
    assert "narrower than without the correction; hartung_knapp='truncated'" in found["oe"].note
    assert (
        "Centre 'centre I' is left out of oe, cis.slope, citl, cis.intercept, auroc: it has no events."
        in found.sentence
    )
    assert "in a new centre 0.472 to 2.185" in found.sentence


def test_the_one_stage_model_is_that_of_lme4():
    fit, theirs = (
        cal.pooled(Y, P, centre=CENTRE, metrics="oe", one_stage=True).one_stage,
        R["pooled"]["one_stage_logistic"],
    )
    for name in ("intercept", "slope", "var_intercept", "var_slope", "covariance"):
        assert getattr(fit, name) == pytest.approx(theirs[name], abs=0.003)
    assert (fit.se_intercept, fit.se_slope) == pytest.approx(tuple(theirs["se"]), abs=0.003)
    assert fit.note == "the fit is at the boundary: the correlation of random intercept and slope is -1"


def test_many_centres_of_one_class_are_one_sentence_and_their_bias_is_stated():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.4, 300)
    y = (rng.random(300) < p).astype(int)
    found = cal.pooled(y, p, centre=np.arange(300) // 3, metrics=["oe", "citl"])
    alone = [i for i in range(100) if y[3 * i : 3 * i + 3].sum() == 0]
    ten = ", ".join(repr(str(i)) for i in alone[:10])
    assert found.said_of_left_out[0] == (
        f"Centres {ten} and {len(alone) - 10} more are left out of citl, each because it has no events."
    )
    every = len(alone) + sum(y[3 * i : 3 * i + 3].sum() == 3 for i in range(100))
    assert found.cautions == (
        f"O/E is biased, because {every} of 100 centres have one class only and 1/2 is added to observed and expected "
        "events there: pass zero='one-stage'.",
    )
    assert abs(np.log(found["oe"].value)) > 0.2
    right = cal.pooled(y, p, centre=np.arange(300) // 3, metrics="oe", zero="one-stage")
    assert right.cautions == ()
    assert right["oe"].low < 1 < right["oe"].high


def test_numbers_are_names_of_centres_however_many():
    rng = np.random.default_rng(0)
    centre, p = np.repeat(np.arange(101, 131), 60), rng.uniform(0.2, 0.8, 1800)
    found = cal.pooled((rng.random(1800) < p).astype(int), p, centre=centre, metrics="oe")
    assert found["oe"].k == 30
    assert found.names == tuple(str(x) for x in range(101, 131))


def test_dates_are_names_of_centres():
    rng = np.random.default_rng(0)
    p, day = rng.uniform(0.2, 0.8, 600), np.repeat(np.arange("2026-11-01", "2026-11-11", dtype="datetime64[D]"), 60)
    found = cal.pooled((rng.random(600) < p).astype(int), p, centre=day, metrics="oe")
    assert found.names[0] == "2026-11-01"


def test_a_table_names_the_column_of_the_centres():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"died": Y, "risk": P, "site": CENTRE})
    found = cal.pooled(table, label="died", prob="risk", centre="site", metrics="oe")
    assert found["oe"].value == cal.pooled(Y, P, centre=CENTRE, metrics="oe")["oe"].value
    assert found.to_pandas().shape[0] == 1


def test_metrics_outside_the_table_use_the_error_of_their_interval():
    row = cal.pooled(Y, P, centre=CENTRE, metrics=["nll"])["nll"]
    parts = [cal.interval("nll", Y[c == CENTRE], P[c == CENTRE]) for c in sorted(set(CENTRE))]
    e = pooled_effects(np.array([x.value for x in parts]), np.array([x.standard_error**2 for x in parts]))
    assert (row.value, row.low, row.high) == pytest.approx((e.value, e.low, e.high))
    assert "squared standard error of its interval" in row.method


def test_two_centres_have_no_prediction_interval():
    two = np.isin(CENTRE, ["centre A", "centre B"])
    row = cal.pooled(Y[two], P[two], centre=CENTRE[two], metrics="oe")["oe"]
    assert np.isnan([row.prediction_low, row.prediction_high]).all()
    assert "two centres give no prediction interval" in row.note


def test_separated_and_perfectly_ranked_centres_are_left_out_and_named():
    p = np.concatenate([np.linspace(0.1, 0.9, 40), P])
    y = np.concatenate([(np.linspace(0.1, 0.9, 40) > 0.5).astype(int), Y])
    found = cal.pooled(y, p, centre=np.concatenate([["z"] * 40, CENTRE]))
    assert "separates the two classes" in dict(found["cis.slope"].left_out)["z"]
    assert "C statistic is 1" in dict(found["auroc"].left_out)["z"]
    assert "z" not in dict(found["oe"].left_out)


def test_the_curve_bands_contain_the_diagonal_of_calibrated_centres():
    rng = np.random.default_rng(3)
    centre, p = np.repeat(np.arange(8), 400), rng.beta(2, 3, 3200)
    curve = cal.pooled((rng.random(3200) < p).astype(int), p, centre=centre, metrics="oe").curve
    middle = (curve.grid > 0.15) & (curve.grid < 0.8)
    assert (curve.k[middle] == 8).all()
    inside = (curve.low <= curve.grid) & (curve.grid <= curve.high)
    assert inside[middle].mean() > 0.85
    assert (curve.prediction_low[middle] <= curve.low[middle]).all()
    shifted = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + 0.8)))
    off = cal.pooled((rng.random(3200) < shifted).astype(int), p, centre=centre, metrics="oe").curve
    assert (off.low > off.grid)[middle].mean() > 0.9


def test_restricted_likelihood_has_no_higher_value_on_a_fine_grid():
    rng = np.random.default_rng(5)
    for _ in range(20):
        k = int(rng.integers(2, 12))
        theta, v = rng.normal(0, 0.6, k), rng.uniform(0.01, 0.5, k)

        def value(t, theta=theta, v=v):
            w = 1 / (v + t)
            mu = w @ theta / w.sum()
            return 0.5 * (np.log(w).sum() - np.log(w.sum()) - w @ (theta - mu) ** 2)

        best = reml(theta, v)
        assert value(best) >= max(value(t) for t in np.linspace(0, 4, 4001)) - 1e-9


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"centre": ["a"] * 4}, "centre has 1 value, 'a'"),
        ({"centre": ["a", "b"]}, r"centre has shape \(2,\) and y_true has 4 rows"),
        ({"centre": ["a", None, "b", "b"]}, r"centre\[1\] is missing"),
        ({"y": [0, 0, 0, 0]}, "no events"),
        ({"y": [1, 1, 1, 1]}, "only events"),
        ({"zero": "halves"}, "zero='halves' is not known: choose from half, leave, one-stage"),
        ({"hartung_knapp": "no"}, "choose from 'plain', 'truncated'"),
        ({"c_variance": "no"}, "choose from 'delong', 'hanley'"),
        ({"metrics": "ece"}, "ece cannot be pooled over centres: .* use 'bs'"),
        ({"metrics": "cis"}, "name one, cis.intercept or cis.slope"),
        ({"confidence_level": 95}, "confidence_level=95 is outside"),
    ],
)
def test_what_cannot_be_pooled_is_refused(call, sentence):
    given = {"y": [0, 1, 1, 0], "centre": ["a", "a", "b", "b"], **call}
    with pytest.raises(cal.RefusedError, match=sentence):
        cal.pooled(given.pop("y"), [0.2, 0.7, 0.6, 0.3], **given)


def test_the_figures_show_every_centre_and_both_intervals(found):
    pytest.importorskip("matplotlib")
    from calibrary import plots

    ax = plots.plot_forest(found)
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown == [*(f"centre {x}" for x in "ABCDEFGHI"), "mean", "new centre"]
    texts = [text.get_text() for text in ax.texts]
    assert "0.472 to 2.185" in texts
    assert "left out  0/40" in [text.get_text() for text in plots.plot_forest(found, "auroc").texts]
    assert "0.794 (0.626 to 1.006)  56/310" in texts
    bands = plots.plot_pooled_curve(found).get_legend_handles_labels()[1]
    assert bands[1:] == ["95% band of a new centre", "95% band of the mean", "mean over centres"]


def test_the_sentence_states_the_pooled_values_of_metafor():
    row = cal.pooled(Y, P, centre=CENTRE, metrics="oe", zero="leave")
    (claim,) = row.sentence.claims
    truth = {"oe": R["pooled"]["oe_leave"]["estimate"]}
    assert holds(claim, KnownTruth(P, P, measured=truth))
    assert not holds(claim, KnownTruth(P, P, measured={"oe": 1.0}))


def test_the_coverage_that_is_stated_is_the_one_that_was_measured():
    """``benchmarks/centres.json``: 1,000 simulated meta-analyses of 5, 10 and 30 centres."""
    stored = json.loads((ROOT / "benchmarks" / "centres.json").read_text())
    assert {(row["centres"], row["runs"]) for row in stored} == {(5, 1000), (10, 1000), (30, 1000)}

    def ends(name, *centres):
        found = [round(100 * row[name] / row["runs"]) for row in stored if row["centres"] in centres]
        return f"{min(found)}% to {max(found)}%"

    said = " ".join(cal.pooled.__doc__.split())
    assert f"contained its true value in {ends('mean_inside', 5, 10, 30)}" in said
    new = [ends("new_inside", k) for k in (5, 10, 30)]
    assert f"in {new[0]} with 5 centres, {new[1]} with 10 and {new[2]} with 30" in said
    (caution,) = cal.pooled(Y, P, centre=CENTRE, metrics="oe").cautions
    assert (
        f"in {ends('new_inside', 5, 10)} of 1,000 simulations with 5 to 10 centres, and in {new[2]} with 30" in caution
    )
