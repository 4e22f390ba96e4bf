"""The sections about language models: sampled answers, and few human labels beside a judge."""

from __future__ import annotations

from functools import partial
from typing import Any

from calibrary.base.claims import Sentence, measured
from calibrary.base.numbers import counted, number, percent, pvalue, with_interval
from calibrary.inference.draw.resampling import alpha_of
from calibrary.reporting.sections import Context, Figure, Section, Table, section

#: What stands under the headline of a page of sampled answers.
CAUTION = (
    "Noise: the metrics and figures below take the shares of agreeing samples as confidences and include the noise of "
    "the samples, so no test is made of them."
)


def sampled_headline(found: Any) -> Sentence:
    """The answer of a page of sampled answers: what the test of them says, and how large the error is."""
    level = percent(found.confidence_level)
    p = pvalue(found.pvalue, found.n_resamples)
    said = "Not calibrated" if found.pvalue <= alpha_of(found.confidence_level) else "No evidence of miscalibration"
    text = (
        f"{said} ({found.method} test of sampled answers, {p}). The calibration error without sampling noise is "
        f"{number(found.error)} ({level} interval {number(found.low)} to {number(found.high)}); about "
        f"{number(found.expected_error)} is expected by chance."
    )
    return Sentence(text, *(claim for claim in found.sentence.claims if claim.rule in ("interval", "miscalibrated")))


@section("sampled")
def sampled(context: Context) -> Section | None:
    """What sampled answers show without the noise of the samples, where they were given."""
    found = context.asked.sampled
    if found is None:
        return None
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
        f"Samples: each of {counted(found.n, 'answer')} is measured by {k} samples. The interval is of the error that "
        "so many samples can show, which is at most the error of the model's own probabilities.",
    )
    figure = Figure(
        "Contributions to the error",
        "Outcome less left-out sample, by the share of the other samples that agree (blue), with 95% of what "
        "calibrated models show (green); gray bars are the shares themselves, which include the noise of the samples.",
        partial(found.plot, caption=False),
    )
    table = Table(("number", "value", "what it is"), rows)
    return Section("sampled", "Sampled answers", sentences, (table,), (figure,), found.to_dict())


@section("judge")
def judge(context: Context) -> Section | None:
    """What few human labels and a judge show together, where a judge was given."""
    found = context.asked.judge
    if found is None:
        return None
    lean = "the judge says 1" if found.lean > 0 else "the judge says 0"
    sentences = [found.sentence]
    if abs(found.lean) >= 0.005:
        said = f"Lean: {lean} more often than the humans, by {percent(abs(found.lean))} of the rows they labelled."
        sentences.append(Sentence(said, measured(said, lean=found.lean)))
    sentences.append("Rows: the rest of this page is about the rows with a human label alone.")
    table = Table(("number", "value"), tuple(found.rows()))
    figure = Figure(
        "Estimates from each set of labels",
        "Intervals of the human labels alone and of humans and judge, made by the same method; the judge taken as the "
        "truth is a circle without an interval, because it may be biased however many rows it labelled.",
        partial(found.plot, caption=False),
    )
    return Section("judge", "Human and judge", tuple(sentences), (table,), (figure,), found.to_dict())
