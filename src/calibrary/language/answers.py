"""Sampled answers as numbers: which samples have the meaning of the chosen answer, and whether that answer is right.

A question has samples j = 1..n_i, each with a label for its meaning that the user provides. One answer is chosen
separately from the samples that measure it; the result for each question is the number of samples that measure the
answer (``k``), how many of them agree with it (``agree``) and whether it is right (``right``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedCallError, RefusedError, one_of
from calibrary.base.numbers import is_absent, pvalue
from calibrary.data.checks import Array, as_array
from calibrary.data.identity import refuse_misaligned
from calibrary.inference.draw.resampling import alpha_of, slack
from calibrary.inference.result import Estimate

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: How the answer may be chosen among the samples.
CHOICES = ("first", "split")
#: Smallest number of samples that must measure an answer: each is compared with the share of the others.
LEAST = 2


@dataclass(frozen=True)
class Agreement:
    """For each question: number of samples that measure its answer, how many agree with it, and whether it is right."""

    k: Counts
    agree: Counts
    right: Flags

    @property
    def n(self) -> int:
        return len(self.k)


@dataclass(frozen=True)
class _Samples:
    """All samples in one array: the code of each answer, its question, and where each question begins."""

    code: Counts
    question: Counts
    starts: Counts
    size: Counts
    codes: dict[Any, int]

    @property
    def n(self) -> int:
        return len(self.size)

    @property
    def place(self) -> Counts:
        """The index of each sample within its question, from 0."""
        return np.arange(len(self.code)) - np.repeat(self.starts, self.size)


def agreement(answers: Any, right: Any, answer: Any) -> Agreement:
    """The chosen answer of each question, compared with the samples that measure it."""
    refuse_misaligned(answers=answers, right=right, answer=answer)
    answers, right, answer = ordered(answers, "answers"), ordered(right, "right"), ordered(answer, "answer")
    samples, kept = _coded(answers)
    if isinstance(answer, str):
        _refuse_majority(answer)
        one_of("answer", answer, CHOICES)
        voters = np.ones(samples.n, dtype=np.int64) if answer == "first" else samples.size // 2
        chosen, at = _voted(samples, voters)
    else:
        voters, at = np.zeros(samples.n, dtype=np.int64), None
        chosen = _given(answer, samples)
    truth = _truth(right, samples, kept, chosen, at, voted=at is not None and answer == "split")
    k = samples.size - voters
    _require_samples(k, samples.size, answer)
    measuring = samples.place >= voters[samples.question]
    same = (samples.code == chosen[samples.question]) & measuring
    agree = np.bincount(samples.question[same], minlength=samples.n)
    return Agreement(k, agree, truth)


def ordered(values: Any, name: str) -> Any:
    """The values as an array, or as a sequence that can be read twice; without an order they are refused."""
    if isinstance(values, np.ndarray):
        return as_array(values, name)
    if isinstance(values, Mapping | Set) or not (hasattr(values, "__iter__") or hasattr(values, "__array__")):
        raise RefusedCallError(
            f"{name} is of type {type(values).__name__}: pass a list or an array in the order of the questions"
        )
    return values if hasattr(values, "__getitem__") or hasattr(values, "__array__") else list(values)


def _refuse_majority(answer: str) -> None:
    if answer in ("majority", "most frequent", "mode"):
        raise RefusedError(
            f"answer={answer!r} is not possible: the share of the most frequent answer among the same samples is too "
            'high (the winner\'s curse); use answer="split" (half of the samples vote, the other half measure the '
            'winner) or answer="first"'
        )


def _require_samples(k: Counts, size: Counts, answer: Any) -> None:
    few = np.flatnonzero(k < LEAST)
    if not len(few):
        return
    i = int(few[0])
    needs = "3 or more" if isinstance(answer, str) else "2 or more"
    raise RefusedError(
        f"answers[{i}] has {size[i]} samples, of which {k[i]} measure the answer, and at least {LEAST} are needed: "
        f"sample each question {needs} times, or leave out the {len(few):,} questions with fewer"
    )


# -- labels of meaning -------------------------------------------------------------------------------


def _coded(answers: Any) -> tuple[_Samples, Flags]:
    """The samples as codes; None and NaN are missing samples, and ``kept`` marks the others."""
    array = answers.to_numpy() if hasattr(answers, "to_numpy") else answers
    if isinstance(array, np.ndarray):
        if array.ndim != 2:
            raise RefusedError(
                f"answers has {array.ndim} dimension(s): pass one row per question and one column per sample, or lists"
            )
        lengths = np.full(len(array), array.shape[1], dtype=np.int64)
        code, codes = _codes_of(array.ravel())
    else:
        rows = [_row(row, i) for i, row in enumerate(array)]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        code, codes = _codes_of([label for row in rows for label in row])
    if not len(lengths):
        raise RefusedError("answers is empty: pass at least one question")
    question, kept = np.repeat(np.arange(len(lengths)), lengths), code >= 0
    size = np.bincount(question[kept], minlength=len(lengths)).astype(np.int64)
    none = np.flatnonzero(size == 0)
    if len(none):
        raise RefusedError(f"answers[{int(none[0])}] has no samples: leave out questions without samples")
    starts = np.concatenate(([0], np.cumsum(size)[:-1]))
    return _Samples(code[kept], question[kept], starts, size, codes), kept


def _row(row: Any, i: int) -> Sequence[Any]:
    if isinstance(row, str | bytes) or not hasattr(row, "__iter__"):
        raise RefusedError(
            f"answers[{i}] = {row!r} is one answer: pass the samples of each question, one row per question"
        )
    return list(row)


def _codes_of(flat: Any) -> tuple[Counts, dict[Any, int]]:
    """A number for each meaning, -1 for a missing sample; text is trimmed and lower-cased."""
    codes: dict[Any, int] = {}
    if isinstance(flat, np.ndarray) and flat.dtype.kind in "biuf":
        known = flat == flat
        distinct, inverse = np.unique(flat[known], return_inverse=True)
        found = np.full(len(flat), -1, dtype=np.int64)
        found[known] = inverse
        return found, {value: i for i, value in enumerate(distinct.tolist())}

    @functools.cache
    def code(label: Any) -> int:
        return -1 if is_absent(label) else codes.setdefault(meaning(label), len(codes))

    listed = flat.tolist() if isinstance(flat, np.ndarray) else flat
    for label in listed:
        if not (isinstance(label, str | int | float | bool | np.generic) or is_absent(label)):
            raise RefusedCallError(
                f"answers contains {type(label).__name__} values ({label!r:.60}): pass a label for the meaning of each "
                "sample, such as a text or a number"
            )
    return np.fromiter(map(code, listed), dtype=np.int64, count=len(listed)), codes


def meaning(label: Any) -> Any:
    """The key of a meaning, equal for samples of the same meaning: trimmed lower-case text, or the number itself."""
    if isinstance(label, str):
        return label.strip().casefold()
    return label.item() if isinstance(label, np.generic) else label


# -- which answer, and whether it is right ------------------------------------------------------------


def _voted(samples: _Samples, voters: Counts) -> tuple[Counts, Counts]:
    """The most frequent code among the first ``voters`` samples of each question (ties: the earliest).

    Returns the code, and the position of one sample that has it.
    """
    at = np.flatnonzero(samples.place < voters[samples.question])
    question, code = samples.question[at], samples.code[at]
    _, first, votes = np.unique(question * len(samples.codes) + code, return_index=True, return_counts=True)
    best = first[np.lexsort((first, -votes, question[first]))]
    winner = best[np.unique(question[best], return_index=True)[1]]
    # of a question without voters: the error about the number of samples follows
    chosen, place = np.full(samples.n, -3, dtype=np.int64), samples.starts.copy()
    chosen[question[winner]], place[question[winner]] = code[winner], at[winner]
    return chosen, place


def _given(answer: Any, samples: _Samples) -> Counts:
    labels = np.asarray(answer, dtype=object) if not isinstance(answer, np.ndarray) else answer
    if labels.ndim != 1 or len(labels) != samples.n:
        raise RefusedError(
            f"answer has shape {labels.shape} and there are {samples.n:,} questions: pass one answer per question, "
            '"first" or "split"'
        )
    _require_present(labels.tolist(), "answer")
    return np.array([samples.codes.get(meaning(label), -3) for label in labels.tolist()], dtype=np.int64)


def _require_present(labels: list[Any], name: str) -> None:
    """Refuse a question without a label, which would otherwise count as one that no sample agrees with."""
    gone = [i for i, label in enumerate(labels) if is_absent(label)]
    if gone:
        raise RefusedError(
            f"{name}[{gone[0]}] is missing ({len(gone):,} of {len(labels):,}): leave out the questions without one"
        )


def _truth(right: Any, samples: _Samples, kept: Flags, chosen: Counts, at: Counts | None, *, voted: bool) -> Flags:
    """Whether the chosen answers are right; ``at`` are samples that have them, None for given answers."""
    array = right.to_numpy() if hasattr(right, "to_numpy") else right
    if isinstance(array, np.ndarray):
        of_samples = array.ndim == 2
    else:
        of_samples = any(hasattr(v, "__iter__") and not isinstance(v, str | bytes) for v in array)
    if of_samples:
        whole = isinstance(array, np.ndarray)
        flat = array.ravel() if whole else np.array([v for row in array for v in row], dtype=object)
        if len(flat) != len(kept):
            raise RefusedError(f"right has {len(flat):,} values and answers {len(kept):,}: pass one for each sample")
        flags = _one_truth(_flags(flat[kept]), samples)
        return _found(flags, samples, chosen) if at is None else flags[at]
    labels = list(array)
    if len(labels) != samples.n:
        raise RefusedError(
            f"right has {len(labels):,} values and there are {samples.n:,} questions: pass the right label of each "
            "question, or whether each sample is right"
        )
    _require_present(labels, "right")
    boolean = all(isinstance(v, bool | np.bool_) for v in labels)
    if boolean and not all(isinstance(v, bool | np.bool_) for v in samples.codes):
        if voted:
            raise RefusedError(
                'right gives one value per question, but answer="split" chooses the answer: pass the right label of '
                "each question, or whether each sample is right"
            )
        return np.array(labels, dtype=bool)
    code = np.array([samples.codes.get(meaning(v), -4) for v in labels], dtype=np.int64)
    return _same(code, chosen, labels, samples)


def _same(code: Counts, chosen: Counts, labels: list[Any], samples: _Samples) -> Flags:
    if samples.n >= _SUSPECT and not (np.isin(samples.code, code)).any():
        raise RefusedError(
            f"no sample of any question is a right label ({labels[0]!r:.40} for question 0): check that the labels in "
            "answers and right are of the same type (text or numbers)"
        )
    return np.asarray(code == chosen)


#: From this many questions on, no right label among all samples counts as a mistake of the caller.
_SUSPECT = 10


def _flags(values: NDArray[Any]) -> Flags:
    if values.dtype.kind == "b":
        return values
    bad = [v for v in values.tolist() if not (isinstance(v, bool) or v in (0, 1))]
    if bad:
        raise RefusedError(f"right contains {bad[0]!r}: one value per sample must be True or False")
    return values.astype(bool)


def _one_truth(flags: Flags, samples: _Samples) -> Flags:
    """Raise an error if the same answer to a question is marked right once and wrong once."""
    order = np.lexsort((samples.code, samples.question))
    same = (np.diff(samples.question[order]) == 0) & (np.diff(samples.code[order]) == 0)
    apart = np.flatnonzero(same & (flags[order][1:] != flags[order][:-1]))
    if len(apart):
        i = int(samples.question[order][apart[0]])
        raise RefusedError(
            f"right marks two samples of question {i} with the same answer right once and wrong once: give different "
            "meanings different labels"
        )
    return flags


def _found(flags: Flags, samples: _Samples, chosen: Counts) -> Flags:
    """Whether given answers are right, according to a sample with the same meaning."""
    same = samples.code == chosen[samples.question]
    known = np.zeros(samples.n, dtype=bool)
    known[samples.question[same]] = True
    if not known.all():
        i = int(np.flatnonzero(~known)[0])
        raise RefusedError(
            f"answer[{i}] is none of the samples of its question, so right does not show whether it is right: pass "
            "the right label of each question instead"
        )
    truth = np.zeros(samples.n, dtype=bool)
    truth[samples.question[same]] = flags[same]
    return truth


# -- the words of a result ---------------------------------------------------------------------------


def with_ends(said: str, metric: str, found: Estimate, **known: float) -> Sentence:
    """A sentence that states an interval, with the numbers that it may state besides."""
    return Sentence(
        said, Claim(said, "interval", metric=metric, low=found.low, high=found.high), measured(said, **known)
    )


def evidence(found: Any, by: str) -> str:
    """Whether the test of a result, named by its method, rejects."""
    tested = f"evidence of miscalibration ({by} test, {pvalue(found.pvalue, found.n_resamples)})."
    rejects = found.pvalue <= alpha_of(found.level)
    return Claim(f"There is {tested}", "miscalibrated") if rejects else f"There is no {tested}"


# -- the ends of an interval -------------------------------------------------------------------------

# Interval ends for a norm of averaged residuals, by the triangle inequality.


def tail(reading: float, null: Array) -> float:
    """The Monte Carlo p-value of a statistic that is large if the hypothesis is false."""
    return float((1.0 + np.sum(null >= reading - slack(reading))) / (len(null) + 1.0))


def norm_ends(reading: float, null: Array, standard_error: float, alpha: float) -> tuple[float, float]:
    """The lower end subtracts what noise alone gives; the upper end adds a normal quantile of the standard error.

    The lower end is above 0 exactly when :func:`tail` is at most ``alpha``.
    """
    place = int(np.floor(alpha * (len(null) + 1) + 1e-9))
    noise = float(np.sort(null)[-place])
    low = reading - noise
    low = 0.0 if low <= slack(reading) else low
    return low, max(low, reading + float(scipy.special.ndtri(1.0 - alpha / 2.0)) * standard_error)
