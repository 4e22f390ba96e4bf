"""How many rows are needed to detect an error of a given size? ``calibrary plan ece --error 0.05``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import calibrary as cal
from calibrary.base.numbers import number, percent
from calibrary.cli.shared import Drop, Label, Labels, Logits, Positive, Prob, Quiet, Seed, load, out, plain, say
from calibrary.cli.sources import InputError
from calibrary.inference.verbs.power import LINES, name_of_test
from calibrary.lookup import catalogue


def plan(
    id: Annotated[str, typer.Argument(help="Metric id or alias whose Monte Carlo test is planned.")],
    file: Annotated[
        str | None, typer.Argument(help="File of predictions like those of the planned sample; without a file, --law.")
    ] = None,
    error: Annotated[
        float, typer.Option(help="Error to detect: mean absolute difference of true and stated probabilities.")
    ] = 0.05,
    rows: Annotated[
        int | None, typer.Option(help="Compute the power of a sample of this many rows, instead of the sample size.")
    ] = None,
    power: Annotated[float, typer.Option(help="Power: share of samples in which the error is detected.")] = 0.8,
    law: Annotated[str, typer.Option(help="Confidences follow Beta(a, b): 1,1 is uniform, 30,1 close to 1.")] = "1,1",
    line: Annotated[
        str, typer.Option(help=f"How the true probability departs from the stated one: {', '.join(LINES)}.")
    ] = LINES[0],
    alpha: Annotated[float, typer.Option(help="Level of the test.")] = 0.05,
    resamples: Annotated[
        int, typer.Option(help="Number of simulated samples, of calibrated and of miscalibrated models.")
    ] = 199,
    seed: Seed = 0,
    label: Label = None,
    prob: Prob = None,
    positive: Positive = None,
    labels: Labels = None,
    logits: Logits = False,
    drop_missing: Drop = False,
    quiet: Quiet = False,
    sampled: Annotated[
        int | None,
        typer.Option("--sampled", help="Budget of model calls, to be divided into questions and samples of each."),
    ] = None,
) -> None:
    """Compute the sample size for a given error, or the power of a sample: `calibrary plan ece --error 0.05`."""
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
    test = name_of_test(entry.id)
    if rows is not None:
        result = cal.power(entry.id, rows, error=error, **settings)
        sentence = (
            f"{test} at level {percent(alpha)} detects an error of {error:g} "
            f"({line}) in {percent(result.power)} of samples of {rows:,} rows with {whose}; the mean of the metric is "
            f"{number(result.mean)} there, and {number(result.mean_calibrated)} for a calibrated model."
        )
    else:
        needed = cal.sample_size(entry.id, error, power=power, **settings)
        sentence = (
            f"{test} at level {percent(alpha)} needs about {needed.n:,} rows with "
            f"{whose} to detect an error of {error:g} ({line}) in {100 * power:g}% of samples."
        )
    out.print(plain(sentence), highlight=False, soft_wrap=True)


def _plan_samples(
    budget: int, error: float, law: tuple[float, float], line: str, alpha: float, resamples: int, seed: int, quiet: bool
) -> None:
    """Divide a budget of calls into questions and samples of each, and list the power of every division."""
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
        raise InputError(
            f"--law {text}: pass the two parameters of Beta(a, b) separated by a comma, such as 1,1"
        ) from None
    return a, b
