"""Calibration of answers that were sampled several times, without the noise of the samples.

The share of k samples that agree with an answer is a draw, Binomial(k, q)/k, of the model's own probability q. A
calibrated model, whose answers are right with probability q, therefore shows a large calibration error of the shares.
Given q, however, the outcome y and the k agreements are exchangeable: each of the k + 1 numbers is equally likely to be
the outcome. With m = y + (number of agreeing samples), y is 1 with probability m/(k + 1) given m, which gives an exact
test for any statistic. Leaving each sample out in turn compares y with the left-out sample in the bin of the others'
share, which is (m - 1)/(k - 1) for every sample that contributes: the estimate is a binned sum of (k + 1)/k (y - m/(k +
1)), whose bins do not depend on which number is called the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence
from calibrary.base.errors import RefusedError, whole
from calibrary.base.markup import ToldByName
from calibrary.base.numbers import counted, number, percent, pvalue, with_interval
from calibrary.base.once import once
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, one_each
from calibrary.data.identity import knows_rows, refuse_misaligned
from calibrary.grouping.edges import EqualWidth
from calibrary.inference.draw.resampling import alpha_of, check_draws
from calibrary.inference.draw.unit_law import UnitLaw
from calibrary.inference.result import Estimate
from calibrary.language.answers import Agreement, agreement, evidence, norm_ends, ordered, tail, with_ends
from calibrary.numerics.draw import Counts, redrawn_labels, redrawn_rows, redrawn_signs, seed_of

#: Largest number of values in one batch of draws.
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class SampledResult(ToldByName, Estimate):
    """The calibration error of sampled answers without the noise of the samples.

    The interval is for the error that k samples can show, which is at most the expected calibration error of the
    model's own probabilities. ``pvalue`` is that of the hypothesis that the answers are calibrated; the method is
    "exact", or "approximate" if ``units`` were given.

    Attributes
    ----------
    naive_error : expected calibration error of the shares themselves, which includes the noise of the samples
    brier, naive_brier : Brier score of the model's own probabilities, and of the shares
    mean_confidence, accuracy : mean share of agreeing samples, and share of right answers
    mean_pvalue, ks_pvalue : p-values of the same hypothesis by accuracy - mean confidence (two-sided), and by the
        largest
        cumulative sum in order of the share
    n, k : number of questions, and of samples that measure each answer: one number, or the smallest and the largest
    n_resamples : number of draws
    edges, gap, null_low, null_high, naive_gap : edges of the bins of the share, contribution of each bin to the error
        with its sign, 95% of what a calibrated model shows there, and the contribution to the naive error
    """

    naive_error: float = math.nan
    brier: float = math.nan
    naive_brier: float = math.nan
    mean_confidence: float = math.nan
    accuracy: float = math.nan
    mean_pvalue: float = math.nan
    ks_pvalue: float = math.nan
    n: int = 0
    k: int | tuple[int, int] = 0
    n_resamples: int = 0
    edges: Any = field(default=(), repr=False)
    gap: Any = field(default=(), repr=False)
    null_low: Any = field(default=(), repr=False)
    null_high: Any = field(default=(), repr=False)
    naive_gap: Any = field(default=(), repr=False)

    def rows(self) -> list[tuple[str, str]]:
        """The numbers by name, written for people."""
        return [
            ("calibration error", with_interval(self.value, self.low, self.high)),
            ("expected by chance", number(self.expected_by_chance)),
            ("p-value", f"{pvalue(self.pvalue, self.n_resamples)} ({self.method} test)"),
            ("ECE of the shares", number(self.naive_error)),
            ("Brier score", number(self.brier)),
            ("Brier score of the shares", number(self.naive_brier)),
            ("accuracy", percent(self.accuracy)),
            ("mean confidence", percent(self.mean_confidence)),
            ("questions", counted(self.n, "question")),
            ("samples that measure an answer", _samples(self.k)),
        ]

    def plot(self, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
        """Draw the contribution of each bin with its range for a calibrated model; returns the matplotlib Axes."""
        from calibrary.plots.results import plot_sampled

        return plot_sampled(self, ax=ax, caption=caption, theme=theme)


@knows_rows
@checks_options
def sampled_answers(
    answers: Any,
    right: Any,
    *,
    answer: Any = "first",
    n_bins: int = 10,
    units: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = None,
    stopped_early: bool = False,
) -> SampledResult:
    """Test whether answers are right as often as the model's samples agree with them, without sampling noise.

    The share of k samples that agree is a noisy confidence. Even a perfectly calibrated model shows a large expected
    calibration error of such shares, and the usual test rejects it. Here each sample is left out in turn: the share of
    the other samples decides the bin of the question, and the outcome is compared with the sample that was left out.
    The test draws at random which of the k + 1 numbers of a question is the outcome, and is exact for every k and every
    number of questions.

    Parameters
    ----------
    answers : array-like of shape (N, k), or a list of N lists
        The samples of each question as labels of their meaning: ids, numbers, or texts (compared after trimming and
        lower-casing). None and NaN are missing samples. The number of samples may differ between questions.
    right : array-like
        The right label of each question; or True and False for each sample; or, if ``answers`` does not contain
        booleans itself, True and False for each question's answer.
    answer : "first", "split" or array-like of shape (N,)
        Which answer is measured. "first": the first sample, measured by the others. "split": the most frequent of the
        first half of the samples, measured by the other half. An array: an answer obtained separately from the samples,
        such as that of greedy decoding. The most frequent answer of the samples that also measure it is not accepted,
        because its share is too high.
    n_bins : int
        Number of equal-width bins.
    units : array-like of shape (N,), optional
        Questions that share their outcome or their source. The signs of whole units are then drawn, and the test is
        approximate.
    confidence_level, n_resamples : float and int
        Level of the interval, and number of draws of the test and of the bootstrap.
    rng : int, Generator or None
        Seed or generator of random numbers.
    stopped_early : bool
        Whether the number of samples of a question depended on its answers (sampling until they agree). True raises an
        error, because neither the test nor the estimate is valid then.

    Returns
    -------
    SampledResult

    Notes
    -----
    error = sum over bins of |1/N sum_i 1/k_i sum_j (y_i - a_ij) 1{share of the other samples in the bin}|, where a_ij
    says whether sample j agrees with the answer. The interval uses the triangle inequality, as with
    ``method="triangle"``, and is for sum over bins of |E[(P(y = 1 | q) - q) P(share in the bin | q)]|. The Brier score
    is mean (y - c)^2 - mean c (1 - c)/(k - 1), with c the share.

    Examples
    --------
    >>> import calibrary as cal
    >>> answers = [["4", "4", "5", "4"], ["9", "8", "9", "9"], ["2", "2", "2", "2"]] * 20
    >>> result = cal.sampled_answers(answers, ["4", "7", "2"] * 20, rng=0)
    >>> round(result.error, 4), round(result.accuracy, 4), result.k
    (0.3333, 0.6667, 3)
    """
    if stopped_early:
        raise RefusedError(
            "stopped_early=True is not supported: if the number of samples depended on the answers, the share of "
            "agreeing samples is biased; sample every question a number of times that was fixed in advance"
        )
    alpha = alpha_of(confidence_level)
    check_draws(n_resamples, alpha)
    refuse_misaligned(answers=answers, right=right, units=units)
    found = agreement(answers, right, answer)
    design = _Design(found, whole("n_bins", n_bins), None if units is None else _units(units, found.n))
    return _measured(design, alpha, n_resamples, seed_of(rng))


def _units(units: Any, n: int) -> Counts:
    rows, remedy = f"there are {n:,} questions", "give each question its unit, or leave the question out"
    array = one_each(ordered(units, "units"), "units", n, rows, "one unit per question", remedy)
    names, member = np.unique(array, return_inverse=True)
    if len(names) < 2:
        raise RefusedError("units has one value only: pass at least two units, because the resampling compares units")
    UnitLaw(len(names), math.inf).say_few()
    return member.astype(np.int64)


# -- the questions in cells --------------------------------------------------------------------------


class _Design:
    """Questions in cells of equal (k, m), in order of the share; a draw is determined by its sums in the cells."""

    def __init__(self, found: Agreement, n_bins: int, units: Counts | None = None) -> None:
        self.found, self.n_bins, self.units = found, n_bins, units
        k, m = found.k.astype(np.float64), (found.agree + found.right).astype(np.float64)
        share = np.clip((m - 1.0) / (k - 1.0), 0.0, 1.0)
        cells, self.cell, self.copies = np.unique(
            np.column_stack([share, k, m]), axis=0, return_inverse=True, return_counts=True
        )
        self.cell = self.cell.reshape(-1)
        self.share, self.k, self.m = cells.T
        grouping = EqualWidth(n_bins)
        self.edges: Array = grouping.edges_
        self.bin = grouping.assign(self.share)
        self.begins, self.there = _runs(self.bin)

    @property
    def n(self) -> int:
        return self.found.n

    @property
    def chance(self) -> Array:
        """The probability that the outcome of a question in each cell is 1, for a calibrated model."""
        return np.asarray(self.m / (self.k + 1.0))

    @once
    def residual(self) -> Array:
        """Each question's contribution: mean over its samples of outcome - sample."""
        scale, chance = (self.k + 1.0) / self.k, self.chance
        return np.asarray(scale[self.cell] * (self.found.right - chance[self.cell]))

    @once
    def sums(self) -> Array:
        """The mean contribution of each cell."""
        ones = np.bincount(self.cell[self.found.right], minlength=len(self.k))
        return np.asarray((self.k + 1.0) / self.k * (ones - self.copies * self.chance) / self.n)

    def gaps(self, sums: Array) -> Array:
        """Contributions of the bins, from those of the cells (last axis)."""
        gaps = np.zeros((*sums.shape[:-1], self.n_bins))
        gaps[..., self.there] = np.add.reduceat(sums, self.begins, axis=-1)
        return gaps

    # -- draws of the sums in the cells, in batches

    def null(self, n_resamples: int, seed: int) -> Iterator[Array]:
        """Draws for calibrated answers: the outcome is drawn among its k + 1 numbers, or signs of whole units."""
        if self.units is None:
            at_once = max(1, _AT_ONCE // len(self.k))
            scale = (self.k + 1.0) / self.k / self.n
            for ones in redrawn_labels(self.chance, self.copies, n_resamples, seed, at_once):
                yield scale * (ones - self.copies * self.chance)
            return
        n_units = int(self.units.max()) + 1
        one = np.ones(n_units, dtype=np.int64)
        for signs in redrawn_signs(one, n_resamples, seed, max(1, _AT_ONCE // self.n)):
            yield self._in_cells(signs[:, self.units]) / self.n

    def rows(self, n_resamples: int, seed: int) -> Iterator[Array]:
        """The sums in the cells if questions, or whole units, are drawn with replacement."""
        if self.units is None:
            place = 2 * self.cell + self.found.right
            kinds, member, copies = np.unique(place, return_inverse=True, return_counts=True)
            value = np.zeros(len(kinds))
            value[member] = self.residual
            begins, there = _runs(kinds // 2)
            for counts in redrawn_rows(copies, n_resamples, seed, max(1, _AT_ONCE // len(kinds))):
                sums = np.zeros((len(counts), len(self.k)))
                sums[:, there] = np.add.reduceat(counts * value, begins, axis=1)
                yield sums / self.n
            return
        size = np.bincount(self.units).astype(np.int64)
        for counts in redrawn_rows(np.ones_like(size), n_resamples, seed, max(1, _AT_ONCE // self.n)):
            yield self._in_cells(counts[:, self.units]) / (counts @ size)[:, None]

    def _in_cells(self, factors: Array) -> Array:
        """Sums of factor times contribution in the cells, for factors (draws, questions)."""
        order = np.argsort(self.cell, kind="stable")
        begins, _ = _runs(self.cell[order])
        return np.add.reduceat((factors * self.residual)[:, order], begins, axis=1)


def _runs(sorted_groups: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """The index at which each group of equal sorted numbers begins, and its number."""
    begins = np.flatnonzero(np.r_[True, np.diff(sorted_groups) != 0])
    return begins, sorted_groups[begins]


def _measured(design: _Design, alpha: float, n_resamples: int, seed: int) -> SampledResult:
    null, gaps = _statistics(design, design.null(n_resamples, seed))
    drawn, _ = _statistics(design, design.rows(n_resamples, seed))
    reading, gap = _statistics(design, iter([design.sums[None, :]]))
    error = float(reading[0, 0])
    low, high = norm_ends(error, null[:, 0], float(np.std(drawn[:, 0], ddof=1)), alpha)
    p, p_ks, p_mean = (tail(float(reading[0, i]), null[:, i]) for i in range(3))
    found = design.found
    k, y = found.k, found.right.astype(np.float64)
    c = found.agree / k
    noise = float(np.mean(c * (1.0 - c) / (k - 1.0)))
    naive_gap = np.bincount(EqualWidth(design.n_bins).assign(c), y - c, design.n_bins) / found.n
    naive_brier = float(np.mean((y - c) ** 2))
    null_low, null_high = np.quantile(gaps, [0.025, 0.975], axis=0)
    result = SampledResult(
        error, low, high, round(1.0 - alpha, 12), pvalue=p, expected_by_chance=float(null[:, 0].mean()),
        method="exact" if design.units is None else "approximate", naive_error=float(np.abs(naive_gap).sum()),
        brier=naive_brier - noise, naive_brier=naive_brier, mean_confidence=float(c.mean()), accuracy=float(y.mean()),
        mean_pvalue=p_mean, ks_pvalue=p_ks, n=found.n, n_resamples=n_resamples,
        k=int(k[0]) if (k == k[0]).all() else (int(k.min()), int(k.max())), edges=design.edges, gap=gap[0],
        null_low=null_low, null_high=null_high, naive_gap=naive_gap,
    )  # fmt: skip
    return replace(result, sentence=sentence(result))


def _statistics(design: _Design, batches: Iterator[Array]) -> tuple[Array, Array]:
    """The error, the largest cumulative sum and the mean of each draw, and the contributions of its bins."""
    values, gaps = [], []
    for sums in batches:
        of_bins = design.gaps(sums)
        running = np.abs(np.cumsum(sums, axis=1)).max(axis=1)
        values.append(np.column_stack([np.abs(of_bins).sum(axis=1), running, np.abs(sums.sum(axis=1))]))
        gaps.append(of_bins)
    return np.concatenate(values), np.concatenate(gaps)


# -- words -------------------------------------------------------------------------------------------


def _samples(k: int | tuple[int, int]) -> str:
    return f"{k:,}" if isinstance(k, int) else f"{k[0]:,} to {k[1]:,}"


def sentence(r: SampledResult) -> Sentence:
    """The result in words; a direction is named only if its own test rejects."""
    said = (
        f"The calibration error of {counted(r.n, 'sampled answer')} is {number(r.value)} ({percent(r.level)} interval "
        f"{number(r.low)} to {number(r.high)}); about {number(r.expected_by_chance)} is expected by chance."
    )
    known = {"accuracy": r.accuracy, "mean_confidence": r.mean_confidence, "n": r.n}
    parts: list[str] = [with_ends(said, "sampled answers", r, **known), evidence(r, r.method)]
    if r.mean_pvalue <= alpha_of(r.level):
        way = "over-confident" if r.mean_confidence > r.accuracy else "under-confident"
        said = (
            f"The model is {way}: {percent(r.accuracy)} of the answers are right and {percent(r.mean_confidence)} of "
            f"the samples agree with them ({r.method} test of the mean, {pvalue(r.mean_pvalue, r.n_resamples)})."
        )
        parts.append(Claim(said, "direction", gap=r.accuracy - r.mean_confidence))
    parts.append(
        f"The ECE of the shares is {number(r.naive_error)}, which includes the noise of shares of {_samples(r.k)} "
        "samples."
    )
    return Sentence.joined(" ", parts)
