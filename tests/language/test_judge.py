"""Few human labels beside a judge: the literal formula, the humans alone at l = 0, coverage, refusals, words."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

import calibrary as cal
from calibrary.language import judge as room
from calibrary.language.labels import judged_rows
from definitions import judged_error, judged_loss
from each import amount, most


def world(n=1500, labels=150, right=0.9, seed=0, truth=lambda c: c, soft=False):
    rng = np.random.default_rng(seed)
    c = rng.random(n)
    y = (rng.random(n) < truth(c)).astype(float)
    j = np.where(rng.random(n) < right, y, 1.0 - y)
    if soft:
        j = np.where(j == 1.0, 0.9, 0.1)
    human = np.full(n, np.nan)
    taken = rng.permutation(n)[:labels]
    human[taken] = y[taken]
    return human, c, j


def fixed_tuning(monkeypatch, value):
    monkeypatch.setattr(room, "_best", lambda *_: value)


# -- the formula --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tuning", [0.0, 0.4, 1.0])
def test_the_estimate_is_that_of_the_definition(monkeypatch, tuning):
    fixed_tuning(monkeypatch, tuning)
    human, c, j = world(300, 60)
    edges = [0.0, 0.2, 0.45, 0.7, 1.0]
    found = cal.judged("ece", human, c, judge=j, edges=edges, n_resamples=19, confidence_level=0.9, rng=0)
    assert found.n_bins == 4
    assert found.tuning == pytest.approx(tuning)
    assert found.value == pytest.approx(judged_error(human, c, j, edges, tuning), abs=1e-12)
    assert found.humans.value == pytest.approx(judged_error(human, c, j, edges, 0.0), abs=1e-12)
    loss = cal.judged("bs", human, c, judge=j, rng=0)
    assert loss.tuning in (0.0, pytest.approx(tuning))  # the humans alone where they say more
    assert loss.value == pytest.approx(judged_loss(human, c, j, loss.tuning), abs=1e-12)


def test_the_noise_of_the_judge_is_centred_among_the_rows_without_a_label():
    human, c, j = world(200, 60)
    order = np.argsort(c)
    rows = judged_rows(human[order], c[order], j[order], None)
    shared = 0.7 * (rows.judge - rows.c)
    for begins in (np.array([0, 40, 110]), np.arange(200)):
        noise = room._Noise(rows, room._Tuned(np.zeros(200), shared, 0.7), begins)
        alike = np.where(rows.labelled, 0.0, 1.0)[None]  # one sign for all of them: nothing differs from its mean
        np.testing.assert_allclose(noise.of(alike), 0.0, atol=1e-12)
        assert np.abs(noise.of(alike * np.where(np.arange(200) % 2, 1.0, -1.0))).max() > 0.1


def test_the_interval_of_the_humans_alone_divides_each_row_by_one_less_its_leverage():
    human, c, j = world(400, 80)
    y, p = (x[~np.isnan(human)] for x in (human, c))
    loss = (y - p) ** 2
    away = (loss - loss.mean()) / (1.0 - 1.0 / len(loss)) / len(loss)
    freedom = np.sum(away**2) ** 2 / np.sum(away**4)
    half = stdtrit(freedom, 0.95) * np.sqrt(np.sum(away**2))
    found = cal.judged("bs", human, c, judge=j, confidence_level=0.9, rng=0).humans
    assert found.high == pytest.approx(loss.mean() + half, rel=1e-9)
    assert found.low == pytest.approx(max(loss.mean() - half, np.mean(np.minimum(c, 1 - c) ** 2)), rel=1e-9)


def test_the_humans_alone_are_the_metric_of_the_labelled_rows():
    human, c, j = world(600, 200)
    seen = ~np.isnan(human)
    for id in ("bs", "nll", "mae"):
        found = cal.judged(id, human, c, judge=j, rng=0)
        assert found.humans.value == pytest.approx(cal.compute(id, human[seen].astype(int), c[seen]), abs=1e-12)
    edges = np.linspace(0, 1, 6)
    found = cal.judged("ece", human, c, judge=j, edges=edges, n_resamples=19, confidence_level=0.9, rng=0)
    assert found.humans.value == pytest.approx(
        cal.expected_calibration_error(human[seen].astype(int), c[seen], edges=edges), abs=1e-12
    )
    chance = 0.1 + 0.8 * c  # a row that was chosen with half the probability stands for twice as many rows
    found = cal.judged("bs", human, c, judge=j, inclusion=chance, rng=0)
    assert found.humans.value == pytest.approx(
        np.average((human - c)[seen] ** 2, weights=1.0 / chance[seen]), abs=1e-12
    )


def test_where_all_rows_are_labelled_the_judge_changes_nothing():
    human, c, j = world(200, 200)
    for id in ("ece", "smece", "ecce_mad", "mmce", "bs"):
        found = cal.judged(id, human, c, judge=j, n_resamples=19, confidence_level=0.9, rng=0)
        assert found.value == pytest.approx(found.humans.value, abs=1e-12)
        if id != "ece":  # whose bins are merged
            assert found.value == pytest.approx(cal.compute(id, human.astype(int), c), abs=1e-9)


def test_the_judge_taken_as_the_truth_is_the_metric_of_its_labels():
    human, c, j = world()
    found = cal.judged("ecce_mad", human, c, judge=j, n_resamples=19, confidence_level=0.9, rng=0)
    assert found.judge_only == pytest.approx(cal.compute("ecce_mad", j.astype(int), c), abs=1e-12)


def test_every_bin_has_labelled_rows():
    human, c, j = world(3000, 50)
    rows = judged_rows(human, c, j, None)
    edges, bin = room._merged(np.linspace(0, 1, 16), rows)
    counts = np.bincount(bin[rows.labelled], minlength=len(edges) - 1)
    assert counts.min() >= room.LEAST_IN_BIN
    assert counts.sum() == 50
    assert len(edges) - 1 > 5


# -- what it is worth ------------------------------------------------------------------------------------


def test_a_good_judge_narrows_and_a_worthless_one_does_no_harm():
    width = {}
    for right in (0.95, 0.5):
        found = [cal.judged("ece", *world(2000, 100, right, seed)[:2], judge=world(2000, 100, right, seed)[2],
                            n_resamples=99, rng=seed) for seed in range(amount(6, 12))]  # fmt: skip
        both = np.mean([f.high - f.low for f in found])
        humans = np.mean([f.humans.high - f.humans.low for f in found])
        width[right] = both / humans
        worth = np.mean([f.worth for f in found])
        assert (worth > 180) if right > 0.9 else (80 < worth <= 105)
    assert width[0.95] < 0.85
    assert width[0.5] < 1.05


def test_intervals_cover_and_tests_keep_their_level_though_the_judge_leans():
    covers, rejects, losses, runs = 0, 0, 0, amount(20, 60)
    for seed in range(runs):
        human, c, j = world(1500, 150, 0.8, seed)
        j = np.maximum(j, np.random.default_rng(seed + 999).random(1500) < 0.3)
        found = cal.judged("ece", human, c, judge=j, n_resamples=99, rng=seed)
        rejects += found.pvalue <= 0.05
        covers += found.low == 0.0
        assert (found.low > 0.0) == (found.pvalue <= 0.05)
        loss = cal.judged("bs", human, c, judge=j, rng=seed)
        losses += loss.low <= np.mean(c * (1 - c)) <= loss.high
    assert rejects <= most(runs, 0.05)
    assert runs - covers <= most(runs, 0.05)
    assert runs - losses <= most(runs, 0.05)


def test_rows_chosen_with_known_probabilities_are_not_biased():
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        c = rng.random(2000)
        y = (rng.random(2000) < c**2).astype(float)
        j = np.where(rng.random(2000) < 0.8, y, 1.0 - y)
        chance = np.clip(0.02 + 0.25 * c**2, 0.0, 1.0)
        human = np.where(rng.random(2000) < chance, y, np.nan)
        found = cal.judged("bs", human, c, judge=j, inclusion=chance, rng=seed)
        plain = cal.judged("bs", human, c, judge=j, rng=seed)
        truth = np.mean(c**2 * (1 - c) ** 2 + (1 - c**2) * c**2)
        errors.append((found.value - truth, plain.humans.value - truth, found.low <= truth <= found.high))
    bias, plain, covered = np.mean(errors, axis=0)
    assert abs(bias) < 0.01 < abs(plain)
    assert covered >= 0.85


def test_more_labels_for_half_the_width_do_halve_it():
    human, c, j = world(20000, 200, 0.8)
    found = cal.judged("bs", human, c, judge=j, rng=0)
    more, *_ = world(20000, 200 + int(found.label_more), 0.8)
    half = cal.judged("bs", more, c, judge=j, rng=0)
    assert (half.high - half.low) / (found.high - found.low) == pytest.approx(0.5, abs=0.06)
    human, c, j = world(400, 200, 0.5)
    assert math.isinf(cal.judged("bs", human, c, judge=j, rng=0).label_more)


def test_the_judge_s_own_agreement_and_calibration():
    human, c, j = world(1500, 300, soft=True)
    found = cal.judged("bs", human, c, judge=j, rng=0)
    seen = ~np.isnan(human)
    assert found.agreement == pytest.approx(np.mean((j[seen] >= 0.5) == human[seen]))
    assert found.judge_error == pytest.approx(cal.expected_calibration_error(human[seen].astype(int), j[seen]))
    assert 0.0 < found.judge_pvalue <= 1.0
    hard = cal.judged("bs", *world()[:2], judge=world()[2], rng=0)
    assert math.isnan(hard.judge_error)


def test_several_classes_ask_whether_the_most_likely_one_is_right():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 500)
    y = np.array([rng.choice(3, p=row) for row in p]).astype(float)
    j = np.where(rng.random(500) < 0.9, y, (y + 1) % 3)
    human = np.where(np.arange(500) < 100, y, np.nan)
    found = cal.judged("bs", human, p, judge=j, rng=0)
    top = p.argmax(axis=1)
    same = cal.judged("bs", np.where(np.isnan(human), np.nan, human == top), p.max(axis=1), judge=j == top, rng=0)
    assert found.value == same.value


# -- bad input and words ---------------------------------------------------------------------------------

REFUSED = [
    (
        {"metric": "cis"},
        "cis cannot use a judge, because it is neither a norm of averaged residuals nor a mean of losses: use",
    ),
    ({"metric": "gsb"}, "gsb cannot use a judge"),
    ({"judge": np.full(300, np.nan)}, r"judge\[0\] is missing: the judge must label every row"),
    ({"judge": np.full(300, 2.0)}, r"judge\[0\] = 2 is outside \[0, 1\]"),
    ({"judge": np.zeros(5)}, r"judge has shape \(5,\) and y_prob has 300 rows"),
    ({"y": np.full(300, 3.0)}, r"y_true\[0\] = 3 is neither 0 nor 1"),
    ({"y": ["yes"] * 300}, r"y_true\[0\] = 'yes' is not a number"),
    ({"y": np.full(300, np.nan)}, "y_true has 0 human labels: at least 20 are needed"),
    ({"inclusion": np.zeros(300)}, r"inclusion\[\d+\] = 0 of a row with a human label must be above 0"),
    ({"inclusion": np.ones(4)}, r"inclusion has shape \(4,\)"),
    ({"inclusion": ["half"] * 300}, r"inclusion\[0\] = 'half' is not a number: pass numbers"),
    ({"n_resamples": 5}, "n_resamples=5 is too few"),
]


@pytest.mark.parametrize(("changed", "said"), REFUSED)
def test_what_cannot_be_served_is_refused_in_one_sentence(changed, said):
    human, c, j = world(300, 60)
    given = {"metric": "ece", "y": human, "judge": j, **changed}
    with pytest.raises(cal.RefusedError, match=said):
        cal.judged(given.pop("metric"), given.pop("y"), c, **given)


def test_missing_labels_may_be_none_and_empty_text():
    human, c, j = world(300, 60)
    listed = [None if np.isnan(v) else bool(v) for v in human]
    words = ["" if np.isnan(v) else str(int(v)) for v in human]
    one, two, three = (cal.judged("bs", y, c, judge=j, rng=0).value for y in (human, listed, words))
    assert one == two == three


def test_the_sentence_says_what_the_numbers_say():
    human, c, j = world(2000, 300, truth=lambda c: c**2)
    found = cal.judged("ece", human, c, judge=j, rng=0)
    assert found.sentence.startswith(f"The ECE is {found.value:.3f} (95% interval {found.low:.3f} to {found.high:.3f})")
    assert "from 300 human labels and a judge of 2,000 rows" in found.sentence
    assert "There is evidence of miscalibration (multiplier test, p < 0.005)" in found.sentence
    assert f"as good as {round(found.worth)} human labels" in found.sentence
    assert tuple(found) == (found.low, found.high)
    assert "judge agrees with humans" in found._repr_html_()
    loss = cal.judged("bs", human, c, judge=j, rng=0)
    assert "evidence" not in loss.sentence


def test_the_same_seed_gives_the_same_answer():
    human, c, j = world(400, 80)
    one, two = (cal.judged("ece", human, c, judge=j, n_resamples=99, rng=3) for _ in range(2))
    assert one == two


# -- which rows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["boolean", "string", "object"])
def test_missing_labels_of_pandas_are_rows_without_a_label(dtype):
    human, c, j = world(300, 60)
    kind = {"boolean": bool, "string": str, "object": float}[dtype]
    listed = pd.Series([pd.NA if math.isnan(v) else kind(v) for v in human], dtype=dtype)
    found = cal.judged("bs", listed, c, judge=j, rng=0, n_resamples=99)
    assert found.n_labels == 60
    assert found.value == cal.judged("bs", human, c, judge=j, rng=0, n_resamples=99).value


def test_columns_of_classes_are_matched_by_name():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 200)
    y = np.array([rng.choice(3, p=q) for q in p])
    human = np.where(np.arange(200) < 80, y, np.nan)
    expected = cal.judged("bs", human, p, judge=y, rng=0, n_resamples=99).value
    for names in ([2, 0, 1], ["p2", "p0", "p1"]):
        table = pd.DataFrame(p)[[2, 0, 1]].set_axis(names, axis=1)
        assert cal.judged("bs", human, table, judge=y, rng=0, n_resamples=99).value == pytest.approx(expected)
    with pytest.raises(ValueError, match="share '1', '2' but not all"):
        cal.judged("bs", human, pd.DataFrame(p, columns=[1, 2, 3]), judge=y, rng=0, n_resamples=99)


# -- equal losses, and losses without end ----------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_a_loss_that_no_label_changes_is_known():
    human, _, j = world(300, 60)
    found = cal.judged("bs", human, np.full(300, 0.5), judge=j, rng=0, n_resamples=99)
    assert (found.value, *found) == (0.25, 0.25, 0.25)
    assert (found.humans.low, found.humans.high) == (0.25, 0.25)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("chances", [None, 0.2])
def test_equal_losses_may_hide_rare_ones(chances):
    """60 labels of 1: with 95% confidence at most 1 - 0.025^(1/60) of the rows have label 0, whose loss is 0.81."""
    human = np.where(np.arange(300) < 60, 1.0, np.nan)
    inclusion = None if chances is None else np.full(300, chances)
    found = cal.judged("bs", human, np.full(300, 0.9), judge=np.ones(300), inclusion=inclusion, rng=0, n_resamples=99)
    most = 0.01 + (1 - 0.025 ** (1 / 60)) * 0.8
    assert (found.value, *found) == pytest.approx((0.01, 0.01, most))
    assert tuple(found.humans) == pytest.approx((0.01, most))


@pytest.mark.filterwarnings("error")
def test_an_infinite_loss_is_refused():
    human, c, j = world(300, 60)
    c[7] = 1.0
    with pytest.raises(ValueError, match=r"y_prob\[7\] = 1 has an infinite nll if its label is the other one"):
        cal.judged("nll", human, c, judge=j, rng=0, n_resamples=99)
    cal.judged("bs", human, c, judge=j, rng=0, n_resamples=99)


# -- the weight of the judge, and further labels ---------------------------------------------------------------


def test_the_weight_of_the_judge_has_squared_weights():
    """In one bin: l = cov/var of squared weights v around means of weights w, shrunk by 2 over the squared t."""
    rng = np.random.default_rng(0)
    judge = rng.normal(size=40)
    human = 0.7 * judge + 0.5 * rng.normal(size=40)
    w = np.repeat([1.0, 9.0], 20)
    w /= w.sum()
    v = w**2 / np.sum(w**2)
    a, b = human - w @ human, judge - w @ judge
    covariance, variance, own = v @ (a * b), v @ b**2, v @ a**2
    explained = covariance**2 / (variance * own)
    squared_t = explained / (1 - explained) / np.sum(w**2)
    expected = (1 - 2 / squared_t) * covariance / variance
    assert 0.0 < expected < 1.0
    assert room._best(human, judge, np.zeros(40, dtype=int), 3.0 * w) == pytest.approx(expected)


def test_further_labels_are_enough_for_half_the_width():
    """The smallest whole number of labels whose variance, total of n labels times n over theirs, is a quarter."""
    human, c, j = world(3000, 301, right=0.5)
    found = cal.judged("bs", human, c, judge=j, rng=0, n_resamples=99)
    assert found.tuning == 0.0  # the humans alone, whose variance is that of a mean
    assert found.label_more == 3 * 301
    rows = judged_rows(human, c, j, None)
    own = np.where(rows.labelled, 3000 / 301 * (np.where(rows.labelled, rows.y, 0.0) - c), 0.0)
    shared = 0.4 * (j - c)
    total, floor = room._spread(rows, room._Tuned(own, shared, 0.4), np.zeros(3000, dtype=int))
    needed = 301 * (total - floor) / (total / 4 - floor)
    assert needed != round(needed)
    alone = room._Tuned(own, np.zeros(3000), 0.0)
    more = room._gain(rows, room._Tuned(own, shared, 0.4), alone, np.zeros(3000, dtype=int))["label_more"]
    assert needed <= 301 + more < needed + 1


def test_few_labels_of_the_rarer_outcome_widen_the_interval_of_a_score():
    inside = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        c = rng.uniform(0.97, 1, 3000)
        y = (rng.random(3000) < c).astype(float)
        judge = np.where(rng.random(3000) < 0.9, y, 1 - y)
        y[50:] = np.nan
        found = cal.judged("bs", y, c, judge=judge, rng=0)
        assert found.low >= np.mean((1 - c) ** 2) - 1e-12
        inside += found.low <= np.mean(c * (1 - c)) <= found.high
    assert inside >= 28  # with the variance of the few labels alone: two thirds


def test_the_sentence_writes_the_name_of_a_metric_as_everywhere():
    c = np.linspace(0.05, 0.95, 400)
    y = (np.arange(400) % 10 < 10 * c).astype(float)
    found = cal.judged("bs", np.where(np.arange(400) < 100, y, np.nan), c, judge=y, rng=0)
    assert str(found.sentence).startswith("The Brier score is ")
