"""The best numbers of questions and of samples per question for a budget of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.claims import Claim, Sentence
from calibrary.base.errors import whole
from calibrary.base.numbers import counted, percent
from calibrary.inference.draw.resampling import check_draws
from calibrary.inference.verbs.power import _confidences, _truth
from calibrary.language.answers import Agreement, tail
from calibrary.language.sampled import _Design, _statistics
from calibrary.metrics.machinery.declare import Result
from calibrary.numerics.draw import redrawn_labels, seed_of

#: Numbers of samples per answer among which the best is searched.
TRIED = (2, 3, 4, 5, 7, 10, 15, 20, 30)
#: Smallest number of questions in a plan.
_LEAST = 20
#: Number of draws of the test for every simulated sample.
_DRAWS = 99


@dataclass(frozen=True)
class SampledPlan(Result):
    """How to spend a budget of calls.

    Attributes
    ----------
    n, k : number of questions, and of samples that measure each answer besides the answer itself
    power : share of simulated samples in which the exact test rejects
    budget, error, line, alpha : the arguments
    tried : questions, samples and power of every division of the budget
    sentence : the result in words
    """

    n: int
    k: int
    power: float
    budget: int
    error: float
    line: str
    alpha: float
    tried: tuple[tuple[int, int, float], ...]
    sentence: Sentence


def sampled_plan(
    budget: int,
    *,
    error: float = 0.1,
    law: tuple[float, float] = (2.0, 2.0),
    line: str = "over-confident",
    alpha: float = 0.05,
    n_resamples: int = 199,
    rng: Any = None,
) -> SampledPlan:
    """Find the division of a budget of N times (k + 1) calls that detects an error of this size most often.

    Each question costs its answer and k samples that measure it. The model's own probabilities follow Beta(*law*), and
    the true probabilities depart from them along ``line``, as in :func:`calibrary.power`.
    """
    whole("budget", budget, _LEAST * (TRIED[0] + 1))
    check_draws(_DRAWS, alpha)
    seed = seed_of(rng)
    tried = [
        (budget // (k + 1), k, _power(budget // (k + 1), k, error, law, line, alpha, n_resamples, seed))
        for k in TRIED
        if budget // (k + 1) >= _LEAST
    ]
    n, k, power = max(tried, key=lambda one: one[2])
    text = (
        f"With {counted(budget, 'call')}, {counted(n, 'question')} with {k + 1} samples each (one is the answer, {k} "
        f"measure it) detect an error of {error:g} ({line}) most often: in {percent(power)} of samples, tested at "
        f"{percent(alpha)}."
    )
    sentence = Sentence(text, Claim(text, "planned", n=n, k=k, power=power, draws=n_resamples))
    return SampledPlan(n, k, power, budget, error, line, alpha, tuple(tried), sentence)


def _power(n: int, k: int, error: float, law: Any, line: str, alpha: float, n_resamples: int, seed: int) -> float:
    q = _confidences(n, None, law)
    truth = _truth(q, error, line)
    copies = np.full(n, k, dtype=np.int64)
    right = next(redrawn_labels(truth, None, n_resamples, seed, n_resamples))
    agree = next(redrawn_labels(q, copies, n_resamples, seed + 1, n_resamples))
    rejected = 0
    for i in range(n_resamples):
        design = _Design(Agreement(copies, agree[i].astype(np.int64), right[i].astype(bool)), 10)
        null, _ = _statistics(design, design.null(_DRAWS, seed + i))
        reading, _ = _statistics(design, iter([design.sums[None, :]]))
        rejected += tail(float(reading[0, 0]), null[:, 0]) <= alpha
    return rejected / n_resamples
