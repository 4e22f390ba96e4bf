"""Scoring functions as objects: equation (3), divergences, and whether a score is proper."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
from calibrary.metrics.machinery.entry import ENTRIES
from calibrary.metrics.point.scoring_functions import ProperScore

ROW_SCORES = [
    e.id for e in ENTRIES.values()
    if "reduction" in e.options and e.data_type == "predictions" and set(e.needs) <= {"order"}
]  # fmt: skip


def test_a_score_is_its_mean_over_outcomes():
    """Equation (3): the average score of many cases whose classes occur with frequencies q."""
    q, c = np.array([0.2, 0.5, 0.3]), np.array([0.3, 0.3, 0.4])
    y = np.repeat([0, 1, 2], [2, 5, 3])
    p = np.tile(c, (10, 1))
    for id, options in (
        ("bs", {"scale": "sum"}),
        ("nll", {}),
        ("rps", {}),
        ("fl", {"gamma": 2.0}),
        ("ps", {"alpha": 3}),
    ):
        assert cal.scoring_function(id, **options)(c, q) == pytest.approx(cal.compute(id, y, p, **options), rel=1e-12)


def test_rewards_are_turned_into_losses():
    assert cal.scoring_function("sr")([0.3, 0.7], [0.2, 0.8]) == pytest.approx(-0.8)


@pytest.mark.parametrize(("id", "name"), [("bs", "brier"), ("nll", "log"), ("rps", "rps")])
def test_entropy_and_divergence_are_those_of_the_closed_forms(id, name):
    rng = np.random.default_rng(0)
    c, q = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(4), 50)
    made, closed = cal.scoring_function(id, **({"normalize": False} if id == "rps" else {})), ProperScore(name)
    np.testing.assert_allclose(made.entropy(q), closed.entropy(q), rtol=1e-10)
    np.testing.assert_allclose(made.divergence(c, q), closed.divergence(c, q), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(made(c, q), closed.expected(c, q), rtol=1e-10)


def test_impossible_classes_that_never_occur_cost_nothing():
    log = cal.scoring_function("nll")
    assert log([0.0, 1.0], [0.0, 1.0]) == 0.0
    assert log([0.0, 1.0], [0.1, 0.9]) == np.inf
    assert log(0.25, 0.5) == pytest.approx(-0.5 * np.log(0.25 * 0.75))


@pytest.mark.parametrize("id", ROW_SCORES)
def test_the_catalogue_says_which_scores_are_proper(id):
    entry = cal.catalogue[id]
    for k in (2, 4) if "full" in entry.lenses else (2,):
        found = cal.check_propriety(id, n_classes=k)
        if k == 2 and id == "sarps":
            assert found  # for two classes it is the Brier score
        elif entry.proper == "strictly":
            assert found.verdict == "strictly proper"
        else:
            assert bool(found) == (entry.proper == "proper"), found


def test_a_counterexample_is_shown():
    found = cal.check_propriety("fl", gamma=2)
    score = cal.scoring_function("fl", gamma=2)
    assert found.gain == pytest.approx(-score.divergence(found.forecast, found.truth))
    assert found.gain > 0.05
    best = np.linspace(0.5, 0.8, 3001)
    rows = np.column_stack([1 - best, best])
    assert best[np.argmin(score(rows, np.tile([0.2, 0.8], (3001, 1))))] == pytest.approx(0.627, abs=5e-4)


def test_your_own_score_can_be_checked():
    def spherical(c, k):
        return -c[np.arange(len(c)), k] / np.linalg.norm(c, axis=1)

    def linear(c, k):
        return -c[np.arange(len(c)), k]

    assert cal.check_propriety(spherical, n_classes=3).verdict == "strictly proper"
    assert cal.check_propriety(linear, n_classes=3).verdict == "improper"
    assert cal.check_propriety(lambda c, k: np.zeros(len(c))).verdict == "proper"
    assert cal.check_propriety("ps", alpha=3, form="literal").verdict == "improper"  # (23) as printed
    assert cal.check_propriety("ps", alpha=3).verdict == "strictly proper"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cal.scoring_function("ece"), "score='ece' is not a mean of row scores"),
        (lambda: cal.check_propriety("bs", n_classes=1), "n_classes=1"),
        (lambda: cal.check_propriety("bounded_brier", n_classes=3), "two classes"),
        (lambda: cal.scoring_function("bs")([0.5, 0.5], [0.2, 0.3, 0.5]), "2 classes and q has 3"),
        (lambda: cal.scoring_function("bs")([0.5, 0.6], [0.2, 0.8]), "not a probability vector"),
        (lambda: cal.check_propriety(lambda c, k: 0.0), "one number per row"),
        (lambda: cal.check_propriety(lambda c, k: np.full(len(c), np.nan)), "is NaN"),
    ],
)
def test_an_invalid_score_is_refused_with_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
