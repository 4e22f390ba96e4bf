"""Ensembles held to slow definitions and to worlds of known truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import f as f_law

import calibrary as cal
from calibrary.base.claims import RULES
from calibrary.secondorder.calibration import (
    FOLDS,
    _given_to_labels,
    cox,
    cross_fitted,
    judged_mean,
    mixture_weights,
    slope_of,
)
from calibrary.secondorder.given import given
from calibrary.secondorder.members import RedrawnTruths, exchanged_pvalue, redrawn_pvalue
from calibrary.secondorder.spread import CANNOT, _fitted, judged_spread, spread_of
from each import amount, most
from truths import KnownTruth, holds

pytestmark = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def world(seed, n=400, m=5, claimed=8.0, true=8.0, bias=0.0, r=2):
    """Members are beta draws around a known mean; the truth is one too, of another concentration or mean."""
    rng = np.random.default_rng([41, seed])
    odds = rng.normal(0.0, 1.2, n)
    a, b = expit(odds)[:, None], expit(odds + bias)
    p, q = rng.beta(a * claimed, (1 - a) * claimed, (n, m)), rng.beta(b * true, (1 - b) * true)
    return (rng.random((n, r)) < q[:, None]).astype(int), p, q


def several(seed=0, n=300, m=4, k=3, r=3):
    rng = np.random.default_rng([43, seed])
    a = rng.dirichlet(np.ones(k), n)
    draw = np.array([[rng.dirichlet(6.0 * row + 0.01) for _ in range(m + 1)] for row in a])
    y = np.array([rng.choice(k, r, p=row) for row in draw[:, m]])
    return y, draw[:, :m]


# -- slow definitions ---------------------------------------------------------------------------------------


def test_the_spread_that_is_there_is_the_mean_product_of_pairs():
    y, p, _ = world(1, n=60, r=3)
    found = cal.ensemble(y, p, rng=0, n_resamples=39).spread
    claimed, there = [], []
    for labels, members in zip(y, p, strict=True):
        mu = sum(members) / len(members)
        v = sum((x - mu) ** 2 for x in members) / (len(members) - 1)
        pairs = [(s - mu) * (t - mu) for s, t in itertools.combinations(labels, 2)]
        claimed.append(v)
        there.append(sum(pairs) / len(pairs) - v / len(members))
    assert found.claimed == pytest.approx(np.mean(claimed))
    assert found.value == pytest.approx(np.mean(there))
    assert found.excess.value == pytest.approx(np.mean(there) - np.mean(claimed))
    assert found.low < found.value < found.high
    mixture = cal.ensemble(y, p, members="mixture", rng=0, n_resamples=39).spread
    assert mixture.claimed == pytest.approx(p.var(axis=1).mean())
    assert mixture.value == pytest.approx(np.mean(there) + np.mean(claimed) / 5)


def test_several_classes_add_up_their_products():
    y, p = several(n=40)
    found = cal.ensemble(y, p, rng=0, n_resamples=39).spread
    there = []
    for labels, members in zip(y, p, strict=True):
        mu = members.mean(axis=0)
        v = members.var(axis=0, ddof=1).sum()
        pairs = [
            sum(((s == k) - mu[k]) * ((t == k) - mu[k]) for k in range(3)) for s, t in itertools.combinations(labels, 2)
        ]
        there.append(np.mean(pairs) - v / 4)
    assert found.value == pytest.approx(np.mean(there))


def test_what_is_judged_leaves_every_member_out_in_turn():
    y, p, _ = world(2, n=50, m=3)
    rows = given(y, p, None, None)
    each = rows.labels[:, None].astype(float)
    spread, mean = judged_spread(rows.p, each, "draws"), judged_mean(rows.p, each)[0]
    for m in range(3):
        place = np.array([3 * np.arange(50) + m])
        pairs, shares = spread.shown(place, rows.counts[None])[0], mean.shown(place, rows.counts[None])[0]
        for i in range(50):
            mu = sum(p[i, j] for j in range(3) if j != m) / 2
            assert pairs[i] == pytest.approx((y[i, 0] - mu) * (y[i, 1] - mu))
            assert shares[i] == pytest.approx(y[i].mean())
            assert spread.claim[i, m] == pytest.approx((p[i, m] - mu) ** 2)
            assert mean.claim[i, m] == pytest.approx(p[i, m])


def test_labels_that_change_places_change_the_sign():
    """The law of the test is that of random signs, so p-values of exchangeable labels are even."""
    rng = np.random.default_rng(8)
    found = []
    for seed in range(120):
        a = rng.beta(0.2, 4.0, (60, 3))  # events are rare, and rows few
        y = rng.random((60, 2)) < a[:, 2:]
        rows = given(y, a[:, :2], None, None)
        each = rows.labels[:, None].astype(float)
        truths = RedrawnTruths(rows.p, rows.labels, rows.weight, True)
        found.append(exchanged_pvalue([judged_spread(rows.p, each, "draws")], truths, rows.counts, 99, seed))
    assert np.mean(np.array(found) <= 0.05) <= 0.12
    assert np.mean(np.array(found) <= 0.5) <= 0.68


def test_redrawn_labels_come_from_the_member_that_is_the_truth():
    p = np.zeros((3, 2, 1))
    p[:, 1] = 1.0
    truths = RedrawnTruths(p, np.array([1, 2, 3]), np.ones(3), True)
    for place, counts in truths.draws(50, np.random.default_rng(0)):
        assert (counts[..., 0] == (place % 2) * np.array([1, 2, 3])).all()
        assert 0.3 < (place % 2).mean() < 0.7
    several_p = np.zeros((2, 2, 3))
    several_p[:, 0, 2], several_p[:, 1, 0] = 1.0, 1.0
    for place, counts in RedrawnTruths(several_p, np.array([2, 5]), np.ones(2), True).draws(
        20, np.random.default_rng(0)
    ):
        assert (counts[..., 2] == np.where(place % 2 == 0, [2, 5], 0)).all()
        assert (counts.sum(axis=2) == [2, 5]).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_a_mixture_have_the_least_log_loss(weighted):
    rng = np.random.default_rng(0)
    p, late = rng.uniform(0.05, 0.95, (4000, 2)), np.arange(4000) >= 2000
    y = rng.random(4000) < np.where(late, p @ [0.2, 0.8], p @ [0.8, 0.2])
    weight = np.where(late, 0.25, 1.75) if weighted else np.ones(4000)
    chance = np.where(y[:, None], p, 1 - p)
    found = mixture_weights(*_given_to_labels(given(y.astype(int), p, None, weight)))
    grid = np.linspace(0.0, 1.0, 1001)
    best = grid[np.argmin([-weight @ np.log(chance @ [w, 1 - w]) - np.log(max(w, 1e-9)) - np.log(max(1 - w, 1e-9))
                           for w in grid])]  # fmt: skip
    assert found[0] == pytest.approx(best, abs=2e-3)
    assert found.sum() == pytest.approx(1.0)


def test_the_weights_of_a_mixture_never_come_from_the_row_itself():
    y, p, _ = world(11, n=60)
    changed = y.copy()
    changed[7] = 1 - y[7]
    before, after = (cross_fitted(given(labels, p, None, None), 3)[:, 0] for labels in (y, changed))
    same = before == after
    assert same[7]
    assert 60 / FOLDS - 1 <= same.sum() <= 60 / FOLDS + 1  # the fold of the row, and no other
    assert ((p.min(axis=1) <= before) & (before <= p.max(axis=1))).all()


@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2.0, 80)])
def test_labels_of_one_row_are_one_unit(weight):
    y, p, _ = world(12, n=80, m=3, bias=1.0, r=3)
    found = cal.ensemble(y, p, members="mixture", sample_weight=weight, rng=0, n_resamples=99)
    unit = np.repeat(np.arange(80), 3)
    asked = {"rng": 0, "n_resamples": 99, "weight_type": "frequency" if weight is None else "importance"}
    each = [
        cal.predictions(y.ravel(), q[unit], sample_weight=None if weight is None else weight[unit])
        for q in (p.mean(axis=1), *p.T)
    ]
    assert tuple(found.mean) == pytest.approx(tuple(cal.interval("ece", each[0], units=unit, **asked)))
    assert [found.mean.pvalue, *(one.pvalue for one in found.members.rows)] == pytest.approx(
        [cal.decide(data, cal.Question(**asked), units=unit).pvalue for data in each]
    )


def test_the_slope_is_that_of_cox_and_its_interval_holds():
    rng = np.random.default_rng(3)
    odds = rng.normal(0.0, 1.5, 2000)
    y = (rng.random(2000) < expit(0.7 * odds)).astype(int)
    slope = slope_of([cox(expit(odds), y.astype(float), np.ones(2000))], 0.95)
    assert slope.value == pytest.approx(cal.compute("cis", y, expit(odds)).slope, abs=1e-6)
    assert slope.low < 0.7 < slope.high < 1.0
    assert slope.pvalue < 0.001


def test_decompositions_add_up():
    y, p = several(n=80)
    for probability in (p, world(4, n=80)[1]):
        d = cal.ensemble(y[:, 0] if probability is p else world(4, n=80)[0][:, 0], probability, rng=0, n_resamples=39)
        for parts in (d.decomposition.entropy, d.decomposition.variance):
            assert parts.total == pytest.approx(parts.aleatoric + parts.value)
            assert parts.rows.mean(axis=0) == pytest.approx([parts.total, parts.aleatoric, parts.value])
    q = p[0]
    by_hand = [
        sum(q[m, k] * math.log(q[m, k] / q[:, k].mean()) for k in range(3) if q[m, k] > 0) for m in range(len(q))
    ]
    rows = cal.ensemble(y, p, rng=0, n_resamples=39).decomposition
    assert rows.entropy.rows[0, 2] == pytest.approx(np.mean(by_hand))
    assert rows.variance.rows[0, 2] == pytest.approx(q.var(axis=0).sum())


# -- input ---------------------------------------------------------------------------------------------------


def test_two_columns_are_one():
    y, p, _ = world(5, n=120)
    one, two = (cal.ensemble(y, x, rng=0, n_resamples=39) for x in (p, np.stack([1 - p, p], axis=2)))
    assert one.spread.value == pytest.approx(two.spread.value)
    assert one.mean.value == pytest.approx(two.mean.value)
    assert one.sentence == two.sentence


def test_weight_2_is_the_row_written_twice():
    y, p, _ = world(6, n=90)
    w = 1 + np.arange(90) % 2
    twice = np.repeat(np.arange(90), w)
    one = cal.ensemble(y, p, sample_weight=w, rng=0, n_resamples=39)
    two = cal.ensemble(y[twice], p[twice], rng=0, n_resamples=39)
    assert one.sentence == two.sentence
    parts = cal.ensemble(y, p, sample_weight=w * 0.5, rng=0, n_resamples=39)
    assert parts.spread.value == pytest.approx(two.spread.value)


def test_missing_labels_and_names_are_read():
    y, p, _ = world(7, n=80)
    named = np.where(y == 1, "yes", "no").astype(object)
    named[:10, 1] = None
    whole = cal.ensemble(named, p, pos_label="yes", rng=0, n_resamples=39)
    assert whole.n_labels == 150
    assert whole.spread.n_rows == 70
    numbers = y.astype(float)
    numbers[:10, 1] = np.nan
    assert cal.ensemble(numbers, p, rng=0, n_resamples=39).sentence == whole.sentence


def test_one_label_a_row_says_what_cannot_be_known():
    y, p, _ = world(8, n=60)
    found = cal.ensemble(y[:, 0], p, rng=0, n_resamples=39)
    assert math.isnan(found.spread.value)
    assert found.spread.claimed == pytest.approx(p.var(axis=1, ddof=1).mean())
    assert CANNOT in found.sentence
    with pytest.raises(ValueError, match="cannot be estimated from one label per row"):
        found.plot()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y_prob": np.full((6, 1), 0.4)}, "y_prob has one member, and an ensemble needs two or more"),
        ({"y_prob": np.full((6, 2), 0.4)}, "members 0 and 1 are equal in every row: remove one of them"),
        ({"y_prob": np.full(6, 0.4)}, "y_prob has 1 dimensions: pass P"),
        ({"outside": [True] + [False] * 5}, "row 0 is outside and has the label 0: a row that belongs to no class"),
        ({"outside": [True, False]}, r"outside has shape \(2,\) and y_prob has 6 rows"),
        ({"members": "samples"}, "members='samples' is not known"),
        ({"y_true": [0, 1]}, r"y_true has shape \(2, 1\) and y_prob has 6 rows"),
        ({"y_true": [None] * 6}, "no row has a label"),
        ({"y_true": [0, 1, 0.5, 1, 0, 1]}, "y_true holds fractions"),
        ({"features": [[1.0], [2.0]]}, "features has shape"),
        ({"sample_weight": [1, 1, 1, 1, 1, -1]}, "negative"),
        ({"n_resamples": 2}, "n_resamples=2"),
        ({"confidence_level": 95}, "confidence_level"),
        ({"y_prob": np.linspace(0.1, 1.4, 12).reshape(6, 2)}, "is above 1"),
    ],
)
def test_bad_input_is_one_sentence(change, said):
    asked = {"y_true": [0, 1, 0, 1, 0, 1], "y_prob": np.linspace(0.1, 0.9, 12).reshape(6, 2), **change}
    with pytest.raises(ValueError, match=said) as refused:
        cal.ensemble(asked.pop("y_true"), asked.pop("y_prob"), rng=0, **asked)
    assert "\n" not in str(refused.value)


def test_equal_members_are_called_by_their_columns():
    pd = pytest.importorskip("pandas")
    p = np.linspace(0.1, 0.9, 6)
    frame = pd.DataFrame({"first": p, "second": p[::-1], "third": p})
    with pytest.raises(ValueError, match=r"^members first and third are equal in every row"):
        cal.ensemble([0, 1, 0, 1, 0, 1], frame, rng=0)


def test_the_answer_is_reproducible_and_plain():
    y, p, _ = world(9, n=100)
    one, two = (cal.ensemble(y, p, rng=3, n_resamples=39) for _ in range(2))
    assert one.to_dict() == two.to_dict()
    assert str(one) == one.sentence
    assert "<table" in one._repr_html_()
    order = np.random.default_rng(0).permutation(100)
    other = cal.ensemble(y[order], p[order], rng=3, n_resamples=39)
    assert other.spread.value == pytest.approx(one.spread.value)
    assert other.mean.value == pytest.approx(one.mean.value)


def test_the_figure_shows_the_groups():
    pytest.importorskip("matplotlib")
    y, p, _ = world(10, n=400, claimed=30.0, true=4.0)
    found = cal.ensemble(y, p, rng=0, n_resamples=39)
    ax = found.plot()
    shown = ax.lines[1].get_ydata()
    assert shown == pytest.approx(found.spread.groups[:, 1])
    assert len(shown) == 8
    assert ax.get_xlim()[1] == pytest.approx(1.15 * found.spread.groups[:, 0].max())  # as wide as the claims


# -- worlds --------------------------------------------------------------------------------------------------


def pvalues_of(seed, **asked):
    y, p, _ = world(seed, **asked)
    rows = given(y, p, None, None)
    each = rows.labels[:, None].astype(float)
    truths = RedrawnTruths(rows.p, rows.labels, rows.weight, True)
    return (
        exchanged_pvalue(judged_mean(rows.p, each), truths, rows.counts, 99, seed),
        exchanged_pvalue([judged_spread(rows.p, each, "draws")], truths, rows.counts, 99, seed),
    )


@pytest.mark.parametrize("m", [2, 5])
def test_a_right_posterior_is_seldom_rejected(m):
    runs = amount(25, 60)
    found = np.array([pvalues_of(seed, m=m, n=150) for seed in range(runs)])
    assert (found <= 0.05).sum(axis=0).max() <= most(runs, 0.05)


def test_wrong_posteriors_are_found_out():
    narrow = [pvalues_of(seed, claimed=40.0, true=4.0, n=1500)[1] for seed in range(6)]
    wide = [pvalues_of(seed, claimed=3.0, true=60.0, n=1500)[1] for seed in range(6)]
    biased = [pvalues_of(seed, bias=0.7, n=1500)[0] for seed in range(6)]
    for found in (narrow, wide, biased):
        assert sum(p <= 0.05 for p in found) >= 5


def test_the_mean_is_judged_in_every_class():
    """The predicted class is right, and half the chance of one of the others goes to the third."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p, q = (rng.dirichlet([24.0, 12.0, 4.0], size) for size in ((500, 4), 500))
        q[:, 2] += 0.5 * q[:, 1]
        q[:, 1] *= 0.5
        y = (rng.random((500, 2, 1)) > q.cumsum(axis=1)[:, None, :-1]).sum(axis=2)
        rows = given(y, p, None, None)
        truths = RedrawnTruths(rows.p, rows.labels, rows.weight, True)
        judged = judged_mean(rows.p, rows.labels[:, None].astype(float))
        assert len(judged) == 4
        found.append([exchanged_pvalue(each, truths, rows.counts, 99, seed) for each in (judged[:1], judged)])
    top, every = np.array(found).T
    assert (every <= 0.05).all()
    assert (top > 0.05).sum() >= 4


def test_binning_by_all_members_would_reject_a_right_posterior():
    """The mean of few draws regresses: this is why members are left out."""
    found = []
    for seed in range(12):
        y, p, _ = world(seed, n=1000, m=3)
        rows = given(y, p, None, None)
        each = rows.labels[:, None].astype(float)
        truths = RedrawnTruths(rows.p, rows.labels, rows.weight, False)
        found.append(redrawn_pvalue(judged_spread(rows.p, each, "mixture"), truths, rows.counts, 99, seed))
    assert sum(p <= 0.05 for p in found) >= 6


def test_features_show_at_least_a_part():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(5)
    a, u = rng.uniform(0.2, 0.8, 1500), rng.random(1500) < 0.5
    q = np.clip(a + np.where(u, 0.2, -0.2), 0.0, 1.0)
    p = np.clip(a[:, None] + rng.normal(0.0, 0.03, (1500, 4)), 0.01, 0.99)
    y = (rng.random(1500) < q).astype(int)
    found = cal.ensemble(y, p, features=np.column_stack([a, u]), rng=0, n_resamples=39).spread
    assert found.method == "features"
    assert found.claimed < 0.002 < found.low < 0.04 < found.high + 0.02
    assert found.pvalue < 0.001
    assert "at least" in found.sentence
    assert "claims too much cannot be known from one label per row" in found.sentence
    none = spread_of(given(y, p, None, None, rng.random((1500, 2))), "draws", 0.95, 39, 0)
    assert none.pvalue > 0.05
    assert 0.0 <= none.low <= none.value <= none.high
    assert "it may do so, because the true variance may be larger than this bound" in none.sentence


def test_the_bound_from_features_has_the_best_factor():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(6)
    x, p = rng.normal(size=(400, 2)), rng.uniform(0.3, 0.7, (400, 3))
    y = (rng.random(400) < np.where(x[:, 0] > 0.0, 0.8, 0.2)).astype(int)
    rows = given(y, p, None, None, x)
    r = y - p.mean(axis=1)
    first, second = _fitted(rows, r[:, None], rows.p.mean(axis=1), 0)[:, :, 0]
    f, squared = (first + second) / 2, np.mean(first * second)
    found = spread_of(rows, "mixture", 0.95, 39, 0)
    assert found.value == pytest.approx(np.mean(f * r) ** 2 / squared)
    bounds = [np.mean(2 * c * f * r) - c**2 * squared for c in np.linspace(0, 2, 2001)]
    assert found.value == pytest.approx(max(bounds))


def test_what_an_ensemble_says_is_true():
    worlds = {"right": {}, "narrow": {"claimed": 40.0, "true": 4.0}, "wide": {"claimed": 3.0, "true": 60.0}}
    told, false = {name: set() for name in worlds}, []
    for name, seed in itertools.product(worlds, range(amount(2, 4))):
        y, p, q = world(seed, n=500, **worlds[name])
        found = cal.ensemble(y, p, rng=seed, n_resamples=99)
        mu = p.mean(axis=1)
        variance = np.mean((q - mu) ** 2) - p.var(axis=1, ddof=1).mean() / 5
        truth = KnownTruth(
            mu, q,
            of_metric={
                "true less claimed spread": 0.0 if name == "right" else variance - p.var(axis=1, ddof=1).mean(),
                "true values": {"spread": variance},
                "right": ("draws",) if name == "right" else (),
                "true AUROC": {"epistemic uncertainty, errors": found.decomposition.errors.value},
            },
            measured={
                "claimed": p.var(axis=1, ddof=1).mean(), "found": found.spread.value, "members": 5.0,
                "mean_error": cal.ece(y.ravel(), np.repeat(mu, 2)),
                "total": np.mean(-mu * np.log(mu) - (1 - mu) * np.log1p(-mu)),
                "epistemic": found.decomposition.entropy.rows[:, 2].mean(),
            },
        )  # fmt: skip
        for claim in found.sentence.claims:
            told[name].add(claim.rule)
            if RULES[claim.rule].kind == "fact":
                assert holds(claim, truth), claim
            elif claim.rule in ("claimed spread", "ensemble is wrong") and not holds(claim, truth):
                false.append((name, claim.rule))
    assert "claimed spread" in told["narrow"] & told["wide"]
    assert len(false) <= amount(1, 3)


def test_the_pvalue_of_intercept_and_slope_is_hotellings_of_few_rows():
    rng = np.random.default_rng(8)
    c = rng.uniform(0.2, 0.8, 12)
    fit = cox(c, (rng.random(12) < c).astype(float), np.ones(12))
    away = fit.at - [0.0, 1.0]
    square = away @ np.linalg.solve(np.cov(fit.each.T) / 12, away)
    assert slope_of([fit], 0.95).pvalue == pytest.approx(f_law.sf(square / 2, 2, 10), rel=1e-6)


def test_the_error_of_the_mean_of_draws_is_no_part_of_the_spread_that_features_show():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(5)
    a, u = rng.uniform(0.3, 0.7, 400), rng.random(400) < 0.5
    p = np.clip(a[:, None] + rng.normal(0.0, 0.1, (400, 3)), 0.01, 0.99)
    y = (rng.random(400) < a + np.where(u, 0.25, -0.25)).astype(int)
    rows = given(y, p, None, None, np.column_stack([a, u]))
    of_draws, of_a_mixture = (spread_of(rows, kind, 0.95, 39, 0) for kind in ("draws", "mixture"))
    assert of_a_mixture.value - of_draws.value == pytest.approx(of_draws.claimed / 3)
