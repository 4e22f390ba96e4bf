"""How many rows does it take? ``calibrary plan ece --error 0.05``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import calibrary as cal
from calibrary.base.numbers import number, percent
from calibrary.cli.files import InputError
from calibrary.cli.shared import Drop, Label, Labels, Logits, Positive, Prob, Quiet, Seed, load, out, plain, say
from calibrary.inference.verbs.power import LINES
from calibrary.lookup import catalogue


def plan(
    id: Annotated[str, typer.Argument(help="Metric id or alias whose Monte Carlo test is planned.")],
    file: Annotated[
        str | None, typer.Argument(help="Predictions like those of the planned sample; otherwise --law.")
    ] = None,
    error: Annotated[
        float, typer.Option(help="Error to detect: mean distance of the true probabilities from the stated ones.")
    ] = 0.05,
    rows: Annotated[int | None, typer.Option(help="Compute the power of this number of rows instead.")] = None,
    power: Annotated[float, typer.Option(help="Power: share of samples in which the error is detected.")] = 0.8,
    law: Annotated[str, typer.Option(help="Confidences follow Beta(a, b): 1,1 is even, 30,1 nearly sure.")] = "1,1",
    line: Annotated[str, typer.Option(help=f"How truth departs from confidence: {', '.join(LINES)}.")] = LINES[0],
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    resamples: Annotated[int, typer.Option(help="Simulated samples, calibrated and not.")] = 199,
    seed: Seed = 0,
    label: Label = None,
    prob: Prob = None,
    positive: Positive = None,
    labels: Labels = None,
    logits: Logits = False,
    drop_missing: Drop = False,
    quiet: Quiet = False,
    sampled: Annotated[
        int | None, typer.Option("--sampled", help="Budget of calls: how many questions, and samples of each?")
    ] = None,
) -> None:
    """Sample size to detect a given error, or power of a given sample: `calibrary plan ece --error 0.05`."""
    entry = catalogue[id]
    if sampled is not None:
        _plan_samples(sampled, error, _law(law), line, alpha, resamples, seed, quiet)
        return
    settings: dict[str, Any] = {"line": line, "alpha": alpha, "n_resamples": resamples, "rng": seed}
    if file is None:
        settings["law"], whose = _law(law), f"confidences like Beta({law.replace(',', ', ')})"
    else:
        found = load(
            file,
            quiet,
            label=label,
            prob=prob,
            positive=positive,
            labels=labels,
            logits=logits,
            drop_missing=drop_missing,
        )
        p = found.predictions()
        settings["y_prob"] = p.probability if p.binary else p.probability.max(axis=1)
        whose = f"confidences like those of {file} ({p.n:,} rows)"
    say("simulating", quiet)
    if rows is not None:
        result = cal.power(entry.id, rows, error=error, **settings)
        sentence = (
            f"{entry.id} detects an error of {error:g} ({line}) in {percent(result.power)} of samples of {rows:,} rows "
            f"with {whose}, tested at {percent(alpha)}; it shows {number(result.reads)} there, and "
            f"{number(result.reads_calibrated)} if calibrated"
        )
    else:
        needed = cal.sample_size(entry.id, error, power=power, **settings)
        sentence = (
            f"{entry.id} needs about {needed.n:,} rows with {whose} to find an error of {error:g} ({line}) in "
            f"{100 * power:g}% of samples, tested at {percent(alpha)}"
        )
    out.print(plain(sentence), highlight=False, soft_wrap=True)


def _plan_samples(
    budget: int, error: float, law: tuple[float, float], line: str, alpha: float, resamples: int, seed: int, quiet: bool
) -> None:
    """Questions and samples of each for a budget of calls; every division that was tried is listed."""
    from calibrary.language.planning import sampled_plan

    say("simulating", quiet)
    found = sampled_plan(budget, error=error, law=law, line=line, alpha=alpha, n_resamples=resamples, rng=seed)
    out.print(plain(found.sentence), highlight=False, soft_wrap=True)
    for n, k, power in () if quiet else found.tried:
        out.print(plain(f"  {n:,} questions, {k + 1} samples each: {percent(power)}"), highlight=False)


def _law(text: str) -> tuple[float, float]:
    try:
        a, b = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--law {text}: give the two numbers of Beta(a, b) with a comma, such as 1,1") from None
    return a, b
