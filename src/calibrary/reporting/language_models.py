"""The sections about language models: sampled answers, and few human labels beside a judge."""

from __future__ import annotations

from functools import partial
from typing import Any

from calibrary.base.claims import Sentence, measured
from calibrary.base.numbers import counted, number, percent, pvalue, with_interval
from calibrary.inference.draw.resampling import alpha_of
from calibrary.reporting.sections import Figure, Section, Table, section
from calibrary.reporting.verdict import PageVerdict

#: The first sentence below the headline of a report of sampled answers.
CAUTION = (
    "Noise: the metrics and figures below use the shares of agreeing samples as confidences. They include the sampling "
    "noise, so they are not tested."
)


def sampled_verdict(found: Any, tolerance: float) -> PageVerdict:
    """The verdict of a page about sampled answers: their own test, and the error without sampling noise."""
    return PageVerdict(_rejected(found), tolerance, float(found.high), float(found.n), "answers")


def sampled_headline(found: Any, page: PageVerdict) -> Sentence:
    """The headline of a report of sampled answers: the verdict with the result of their test, and the error's size."""
    level = percent(found.confidence_level)
    p = pvalue(found.pvalue, found.n_resamples)
    why = page.reason()
    start = f"{page.words} ({found.method} test of sampled answers, {p})" + (f": {why}" if why else "")
    text = (
        f"{start}. The calibration error without sampling noise is "
        f"{number(found.error)} ({level} interval {number(found.low)} to {number(found.high)}); about "
        f"{number(found.expected_error)} is expected by chance."
    )
    return Sentence(text, *(claim for claim in found.sentence.claims if claim.rule in ("interval", "miscalibrated")))


def _rejected(found: Any) -> bool:
    return bool(found.pvalue <= alpha_of(found.confidence_level))


@section("sampled")
def sampled(found: Any) -> Section:
    """The calibration of sampled answers without the sampling noise, if they were given."""
    k = f"{found.k:,}" if isinstance(found.k, int) else f"{found.k[0]:,} to {found.k[1]:,}"
    rows = (
        ("calibration error", with_interval(found.error, found.low, found.high), "without sampling noise"),
        ("expected by chance", number(found.expected_error), "mean of a calibrated model"),
        ("p-value", pvalue(found.pvalue, found.n_resamples), f"{found.method} test"),
        ("ECE of the shares", number(found.naive_error), "with sampling noise"),
        ("Brier score", number(found.brier), f"of the shares: {number(found.naive_brier)}"),
        ("accuracy", percent(found.accuracy), f"mean share of agreeing samples: {percent(found.mean_confidence)}"),
    )
    sentences = (
        found.sentence,
        f"Samples: the confidence of each of {counted(found.n, 'answer')} is estimated from {k} samples. The interval "
        "is for the error that this many samples can show, which is at most that of the model's own probabilities.",
    )
    figure = Figure(
        "Contributions to the error",
        "Blue: outcome minus a left-out sample, by the share of the other samples that agree. Green: the range of 95% "
        "of calibrated models. Gray bars: outcome minus the shares themselves, which include the sampling noise.",
        partial(found.plot, caption=False),
    )
    table = Table(("number", "value", "what it is"), rows)
    data = {**found.to_dict(), "rejected": _rejected(found)}
    return Section("sampled", "Sampled answers", sentences, (table,), (figure,), data)


@section("judge")
def judge(found: Any) -> Section:
    """Estimates from few human labels and a judge together, if a judge was given."""
    way = "above" if found.judge_bias > 0 else "below"
    sentences = [found.sentence]
    if abs(found.judge_bias) >= 0.005:
        said = (
            f"Bias of the judge: on the rows that both labelled, the judge's mean label is "
            f"{number(abs(found.judge_bias))} {way} that of the humans."
        )
        sentences.append(Sentence(said, measured(said, judge_bias=found.judge_bias)))
    sentences.append("Rows: the rest of this page uses only the rows with a human label.")
    table = Table(("number", "value"), tuple(found.rows()))
    figure = Figure(
        "Estimates from each set of labels",
        "Estimates with intervals from the human labels alone and from humans and judge together, by the same method. "
        "The circle is the estimate from the judge alone; it has no interval, because the judge may be biased.",
        partial(found.plot, caption=False),
    )
    return Section("judge", "Human and judge", tuple(sentences), (table,), (figure,), found.to_dict())
