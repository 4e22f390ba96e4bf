"""Sampled answers: against the literal definition, exactness of the test, choice of the answer, refusals, words."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import calibrary as cal
from calibrary.language.answers import agreement, norm_ends, tail
from definitions import sampled_brier, sampled_error, sampled_null_mean
from each import amount, most


def world(n, k, seed, power=1.0, law=(2.0, 2.0)):
    """Answers "A" to the question (with a right or a wrong one) and samples that agree with it with probability q."""
    rng = np.random.default_rng(seed)
    q = rng.beta(*law, n)
    right = rng.random(n) < q**power
    samples = np.where(rng.random((n, k)) < q[:, None], "A", "other")
    return np.full(n, "A"), samples, right


def ragged(n, seed):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 2, rng.integers(2, 8)).tolist() for _ in range(n)]
    return rows, rng.integers(0, 2, n).tolist()


def measured(rows, y, **options):
    return cal.sampled_answers([["A" if a else "b" for a in row] for row in rows], np.array(y, dtype=bool),
                               answer=["A"] * len(y), **options)  # fmt: skip


@pytest.mark.parametrize("n_bins", [1, 3, 10, 15])
@pytest.mark.parametrize("seed", range(3))
def test_the_error_is_that_of_the_definition_for_any_numbers_of_samples(seed, n_bins):
    rows, y = ragged(40, seed)
    found = measured(rows, y, n_bins=n_bins, n_resamples=99, rng=0)
    assert found.value == pytest.approx(sampled_error(y, rows, n_bins), abs=1e-13)
    assert found.brier == pytest.approx(sampled_brier(y, rows), abs=1e-13)
    assert found.k == (min(map(len, rows)), max(map(len, rows)))
    assert np.abs(found.gap).sum() == pytest.approx(found.value)
    assert np.abs(found.naive_gap).sum() == pytest.approx(found.naive_error)
    assert found.naive_error == pytest.approx(
        cal.expected_calibration_error(y, [np.mean(r) for r in rows], n_bins=n_bins)
    )


def test_the_mean_under_the_null_is_that_over_every_choice_of_the_outcome():
    rows, y = [[1, 1, 0], [0, 0], [1, 0, 0], [1, 1, 1], [0, 1]], [1, 0, 0, 1, 1]
    found = measured(rows, y, n_resamples=19999, rng=1)
    assert found.expected_by_chance == pytest.approx(sampled_null_mean(y, rows), abs=0.004)


def test_the_test_is_exact_given_the_numbers_of_a_question():
    """Over every choice of the outcome, equally likely, the p-value is at most u with probability at most u."""
    rows, y = [[1, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 1], [0, 1, 1]], [1, 0, 0, 1, 0]
    each = [[outcome, *row] for outcome, row in zip(y, rows, strict=True)]
    pvalues = {}
    for chosen in itertools.product(range(4), repeat=5):
        outcome = tuple(row[u] for row, u in zip(each, chosen, strict=True))
        if outcome not in pvalues:
            rest = [row[:u] + row[u + 1 :] for row, u in zip(each, chosen, strict=True)]
            pvalues[outcome] = measured(rest, outcome, n_resamples=1999, rng=3).pvalue
        pvalues.setdefault("all", []).append(pvalues[outcome])
    p = np.array(pvalues["all"])
    assert len(set(p)) > 3
    for level in sorted(set(p)):
        assert np.mean(p <= level) <= level + 0.03


def test_the_interval_leaves_out_noise_below_and_has_half_of_alpha_above():
    null = np.arange(1.0, 100.0)  # of 99 draws, the fifth largest is 95
    low, high = norm_ends(96.0, null, 10.0, 0.05)
    assert (low, high) == pytest.approx((1.0, 96.0 + 1.959964 * 10.0))
    assert tail(96.0, null) == 0.05
    assert norm_ends(94.0, null, 10.0, 0.05)[0] == 0.0
    assert tail(94.0, null) > 0.05


def test_a_calibrated_model_is_not_called_miscalibrated_though_its_shares_are_far_off():
    rejected, naive, runs = 0, [], amount(60, 200)
    for seed in range(runs):
        answer, samples, right = world(300, 4, seed)
        found = cal.sampled_answers(samples, right, answer=answer, n_resamples=99, rng=seed)
        rejected += found.pvalue <= 0.05
        naive.append(found.naive_error)
        assert (found.low > 0) == (found.pvalue <= 0.05)
    assert rejected <= most(runs, 0.05)
    assert np.mean(naive) > 0.12
    found = sum(
        cal.sampled_answers(s, r, answer=a, n_resamples=99, rng=0).pvalue <= 0.05
        for a, s, r in (world(300, 4, seed, 1.5) for seed in range(20))
    )
    assert found >= 15


def test_units_keep_the_level_where_questions_share_their_outcome():
    rejected, runs = {"units": 0, "rows": 0}, amount(40, 100)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        q = np.repeat(rng.beta(2, 2, 60), 5)
        right = np.repeat(rng.random(60) < q[::5], 5)
        samples = np.where(rng.random((300, 5)) < q[:, None], 1, 0)
        for name, units in (("units", np.repeat(np.arange(60), 5)), ("rows", None)):
            found = cal.sampled_answers(samples, right, answer=np.ones(300), units=units, n_resamples=99, rng=seed)
            rejected[name] += found.pvalue <= 0.05
            assert found.method == ("exact" if units is None else "approximate")
    assert rejected["units"] <= most(runs, 0.05) < rejected["rows"]


def test_few_units_are_warned_about():
    answer, samples, right = world(50, 4, 0)
    with pytest.warns(cal.CalibrationWarning, match="there are only 5 units"):
        cal.sampled_answers(samples, right, answer=answer, units=np.arange(50) % 5, n_resamples=99)
    with pytest.raises(ValueError, match="one unit per question"):
        cal.sampled_answers(samples, right, answer=answer, units=[1, 2], n_resamples=99)


# -- which answer ----------------------------------------------------------------------------------------


def test_the_first_sample_is_measured_by_the_others():
    found = agreement([["a", "A ", "b", "a"], ["c", "d", "d"]], ["a", "d"], "first")
    assert (found.k.tolist(), found.agree.tolist(), found.right.tolist()) == ([3, 2], [2, 0], [True, False])


def test_half_of_the_samples_vote_and_the_other_half_measure():
    found = agreement([["b", "a", "a", "a", "b", "a"], ["x", "y", "y", "x"]], ["a", "x"], "split")
    assert (found.k.tolist(), found.agree.tolist(), found.right.tolist()) == ([3, 2], [2, 1], [True, True])


def test_a_given_answer_is_measured_by_all_samples():
    found = agreement([[1, 2, 2], [3, 3, 4]], [2, 4], [2, 9])
    assert (found.k.tolist(), found.agree.tolist(), found.right.tolist()) == ([3, 3], [2, 0], [True, False])


def test_arrays_lists_and_missing_samples_say_the_same():
    rows = [[1, 1, 2, 1], [2, 2, 2, None], [1, 2, 1, 1]]
    padded = np.array([[np.nan if v is None else v for v in row] for row in rows])
    right = [1, 2, 2]
    shorter = [[v for v in row if v is not None] for row in rows]
    seen = [agreement(a, right, "first") for a in (rows, padded, shorter, np.array(rows, dtype=object))]
    for found in seen:
        assert (found.k.tolist(), found.agree.tolist(), found.right.tolist()) == ([3, 2, 3], [2, 2, 2], [1, 1, 0])


def test_rightness_by_label_by_sample_and_by_question_agree():
    answers, right = [["a", "a", "b"], ["b", "c", "b"]], ["a", "c"]
    flags = [[v == truth for v in row] for row, truth in zip(answers, right, strict=True)]
    for given in (right, flags, np.array(flags), np.array([True, False])):
        assert agreement(answers, given, "first").right.tolist() == [True, False]


REFUSED = [
    ({"answer": "majority"}, r"winner's curse.*answer=\"split\".*answer=\"first\""),
    ({"stopped_early": True}, r"stopped_early=True is not supported: .*fixed in advance"),
    ({"answers": [["a", "b"]], "right": ["a"]}, r"answers\[0\] has 2 samples, of which 1 measure.*3 or more times"),
    ({"answers": [["a"]], "right": ["a"], "answer": ["a"]}, r"answers\[0\] has 1 samples.*2 or more times"),
    ({"answers": ["abc", "abd"], "right": ["a", "b"]}, r"answers\[0\] = 'abc' is one answer"),
    ({"answers": np.array(["a", "b"]), "right": ["a", "b"]}, r"answers has 1 dimension\(s\)"),
    ({"answers": []}, r"answers is empty"),
    ({"answers": [["a", "b", "c"], []], "right": ["a", "b"]}, r"answers\[1\] has no samples"),
    ({"right": ["a"]}, r"right has 1 values and there are 12 questions"),
    ({"right": [True] * 12, "answer": "split"}, r"answer=\"split\" chooses the answer"),
    ({"right": [[True, False, True]] * 12}, r"question 0 with the same answer right once and wrong once"),
    ({"answer": ["a"]}, r"answer has shape \(1,\)"),
    ({"answer": ["z"] * 12, "right": [[True] * 3] * 12}, r"answer\[0\] is none of the samples"),
    ({"answers": [[1, 1, 2]] * 12}, r"no sample of any question is a right label \('a' for question 0\)"),
    ({"answers": [[{}, {}, {}]] * 12}, r"answers contains dict values"),
    ({"answer": "best"}, r"answer='best' is not known"),
    ({"n_bins": 0}, r"n_bins=0"),
    ({"n_resamples": 9}, r"n_resamples=9 is too few"),
    ({"rng": -1}, r"rng=-1 is not a seed"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "said"), REFUSED)
def test_what_cannot_be_served_is_refused_in_one_sentence(changed, said):
    given = {"answers": [["a", "a", "a"]] * 12, "right": ["a"] * 12, **changed}
    with pytest.raises(cal.RefusedError, match=said):
        cal.sampled_answers(given.pop("answers"), given.pop("right"), **given)


# -- words and figure -------------------------------------------------------------------------------------


def test_the_sentence_says_what_the_numbers_say():
    answer, samples, right = world(400, 5, 1, 2.0)
    found = cal.sampled_answers(samples, right, answer=answer, rng=0)
    assert found.pvalue <= 0.05
    assert "There is evidence of miscalibration (exact test, p < 0.005)" in found.sentence
    assert "The model is over-confident" in found.sentence
    assert "of the shares is" in found.sentence
    assert "shares of 5 samples" in found.sentence
    assert str(found) == found.sentence
    assert found.sentence in found._repr_html_().replace("&lt;", "<")
    answer, samples, right = world(60, 5, 3)
    calm = cal.sampled_answers(samples, right, answer=answer, rng=0)
    assert "There is no evidence of miscalibration" in calm.sentence
    assert "confident" not in calm.sentence


def test_a_direction_is_named_in_at_most_the_level_of_calibrated_models():
    named, runs = 0, amount(60, 200)
    for seed in range(runs):
        answer, samples, right = world(100, 5, seed)
        named += "confident" in cal.sampled_answers(samples, right, answer=answer, n_resamples=199, rng=1).sentence
    assert named <= most(runs, 0.05)


def test_the_figure_shows_the_contributions():
    pytest.importorskip("matplotlib")
    answer, samples, right = world(200, 5, 1, 2.0)
    found = cal.sampled_answers(samples, right, answer=answer, rng=0, n_resamples=99)
    ax = found.plot()
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights[:10], found.naive_gap)
    np.testing.assert_allclose(heights[10:], found.gap)


def test_the_same_seed_gives_the_same_answer_in_any_order_of_the_questions():
    answer, samples, right = world(100, 5, 1)
    one = cal.sampled_answers(samples, right, answer=answer, rng=4)
    turned = cal.sampled_answers(samples[::-1], right[::-1], answer=answer, rng=4)
    for name in ("value", "low", "high", "pvalue", "expected_by_chance", "mean_pvalue", "ks_pvalue", "sentence"):
        assert getattr(one, name) == getattr(turned, name)
    assert one.naive_error == pytest.approx(turned.naive_error)


# -- what is given -----------------------------------------------------------------------------------------


ANSWERS = [["A", "A", "B", "A"], ["B", "A", "B", "B"], ["A", "B", "A", "A"]] * 12
TRUTHS = ["A", "A", "B"] * 12
OF_SAMPLES = [[label == truth for label in row] for row, truth in zip(ANSWERS, TRUTHS, strict=True)]


@pytest.mark.parametrize("right", [TRUTHS, OF_SAMPLES])
def test_generators_lose_nothing(right):
    expected = cal.sampled_answers(ANSWERS, right, rng=0, n_resamples=99)
    given = (iter(row) for row in ANSWERS), (iter(row) if isinstance(row, list) else row for row in right)
    found = cal.sampled_answers(*given, rng=0, n_resamples=99)
    assert (found.value, found.accuracy, found.n) == (expected.value, expected.accuracy, 36)
    views = dict(enumerate(ANSWERS)).values(), dict(enumerate(right)).values()
    assert cal.sampled_answers(*views, rng=0, n_resamples=99).value == expected.value


def test_answers_and_units_may_be_generators():
    options = {"rng": 0, "n_resamples": 99}
    expected = cal.sampled_answers(ANSWERS, TRUTHS, answer=TRUTHS, units=range(36), **options)
    found = cal.sampled_answers(ANSWERS, TRUTHS, answer=iter(TRUTHS), units=iter(range(36)), **options)
    assert (found.value, found.pvalue) == (expected.value, expected.pvalue)


@pytest.mark.parametrize("wrong", [None, 3, {"A", "B"}, {0: "A"}])
@pytest.mark.parametrize("name", ["answers", "right", "answer", "units"])
def test_what_has_no_order_is_refused(name, wrong):
    given = {"answers": ANSWERS, "right": TRUTHS, name: wrong}
    if name == "units" and wrong is None:
        return
    with pytest.raises(ValueError, match=f"{name} is of type {type(wrong).__name__}: pass a list or an array"):
        cal.sampled_answers(**given, rng=0, n_resamples=99)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA])
def test_a_missing_unit_is_refused(gone):
    with pytest.raises(ValueError, match=r"units\[0\] is missing"):
        cal.sampled_answers(ANSWERS, TRUTHS, units=[gone, *range(35)], rng=0, n_resamples=99)


def test_one_unit_is_refused():
    with pytest.raises(ValueError, match="units has one value only"):
        cal.sampled_answers(ANSWERS, TRUTHS, units=[1] * 36, rng=0, n_resamples=99)


def test_the_band_of_a_bin_holds_95_of_100_draws_of_calibrated_answers():
    rng = np.random.default_rng(4)
    k, n = 10, 600
    share = rng.random(n)
    rows, y = (rng.random((n, k)) < share[:, None]).astype(int), (rng.random(n) < share).astype(int)
    found = measured(rows.tolist(), y, n_bins=1, n_resamples=9999, rng=0)
    chance = (rows.sum(axis=1) + y) / (k + 1)
    error = (k + 1) / k * np.sqrt(np.sum(chance * (1.0 - chance))) / n
    assert [found.null_low[0], found.null_high[0]] == pytest.approx([-1.96 * error, 1.96 * error], rel=0.06)


def test_pandas_missing_value_is_a_missing_sample_and_a_missing_answer_or_truth_is_refused():
    rows = [["a", "a", pd.NA, "b"], ["b", None, "b", "a"]] * 6
    plain = [[label for label in row if label is not pd.NA and label is not None] for row in rows]
    right = ["a", "b"] * 6
    given = cal.sampled_answers(rows, right, answer="first", n_resamples=19, rng=0)
    assert str(given) == str(cal.sampled_answers(plain, right, answer="first", n_resamples=19, rng=0))
    for gone in (None, np.nan, pd.NA):
        with pytest.raises(cal.RefusedError, match=r"right\[3\] is missing \(1 of 12\)"):
            cal.sampled_answers(rows, [*right[:3], gone, *right[4:]], answer="first", n_resamples=19)
        with pytest.raises(cal.RefusedError, match=r"answer\[11\] is missing"):
            cal.sampled_answers(rows, right, answer=[*right[:11], gone], n_resamples=19)
