"""Whether a bound is met, missed or undecided depends on the interval, not on the estimate, which is biased upwards."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.errors import collected_warnings
from calibrary.inference.verbs.verdict import condition


def problem(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < np.clip(c + shift, 0, 1)).astype(int), c


def test_pass_fail_and_undecided_are_those_of_the_interval():
    y, c = problem(300, shift=0.1)
    ends = cal.interval("ece", y, c, n_resamples=199, rng=0)
    middle = (ends.low + ends.high) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for bound, below, above in (
            (ends.high + 0.01, "pass", "fail"), (ends.low - 0.01, "fail", "pass"), (middle, "undecided", "undecided")
        ):  # fmt: skip
            assert cal.verdict(f"ece<{bound}", y, c, n_resamples=199, rng=0).status == below
            assert cal.verdict(f"ece > {bound}", y, c, n_resamples=199, rng=0).status == above


def test_a_good_model_on_few_rows_is_undecided_and_passes_with_a_warning():
    y, c = problem(60, seed=4)
    assert cal.compute("ece", y, c) > 0.05  # the estimate alone would fail it
    with collected_warnings() as said:
        result = cal.verdict("ece<0.05", y, c, n_resamples=199, rng=0)
    assert result.status == "undecided"
    assert result.passed
    assert bool(result)
    assert "rows would lead to a decision" in said[0]
    assert result.n_needed > 60
    with collected_warnings():
        strict = cal.verdict("ece<0.05", y, c, n_resamples=199, rng=0, undecided="fail")
    assert not strict.passed
    plain = cal.verdict("ece<0.05", y, c, n_resamples=199, rng=0, judged_by="estimate")
    assert (plain.status, plain.passed, math.isnan(plain.n_needed)) == ("fail", False, True)


def test_so_many_rows_do_decide_it():
    y, c = problem(150, seed=1)
    with collected_warnings():
        few = cal.verdict("ks<0.05", y, c, n_resamples=99, rng=0)
    assert few.status == "undecided"
    y, c = problem(int(6 * few.n_needed), seed=2)
    with collected_warnings():
        assert cal.verdict("ks<0.05", y, c, n_resamples=99, rng=0).status == "pass"


def test_conditions_are_read():
    assert str(condition(" ECE <= 5% ")) == "ece<=0.05"
    assert str(condition("Brier-Score>1e-3")) == "bs>0.001"
    for text in ("ece", "ece<", "<0.05", "ece<five", "ece=0.1", "ece<1.2.3"):
        with pytest.raises(ValueError, match="condition="):
            condition(text)
    with pytest.raises(KeyError, match="no metric is called 'ecee'"):
        condition("ecee<0.1")
    y, c = problem(40)
    with pytest.raises(ValueError, match="undecided='maybe' is not known"):
        cal.verdict("ece<0.1", y, c, undecided="maybe")


def test_scores_lenses_and_dictionaries():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 120)
    y = rng.integers(0, 3, 120)
    with collected_warnings():
        result = cal.verdict("ece<0.9", y, p, lens="class-wise", n_resamples=39, rng=0)
        assert cal.verdict("bs<0.01", y, p, n_resamples=39, rng=0).status == "fail"
    assert result.status == "pass"
    assert result.to_dict()["condition"] == "ece<0.9"
    with pytest.raises(ValueError, match="ece has 3 values here"):
        cal.verdict("ece<0.1", y, p, lens="class-wise", average=None, n_resamples=39)


def test_a_verdict_over_parts_of_the_data_takes_arrays():
    y, c = problem(400, shift=0.1)
    group = np.arange(400) % 2
    ends = cal.interval("ece", y, c, by=group, n_resamples=99, rng=0)
    for by in (group, {"group": group}):
        found = cal.verdict("ece<0.5", y, c, by=by, n_resamples=99, rng=0)
        assert (found.value, found.low, found.high) == (ends.value, ends.low, ends.high)
        assert found.status == "pass"
