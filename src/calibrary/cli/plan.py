"""How many rows are needed to detect an error of a given size? ``calibrary plan ece --error 0.05``."""

from __future__ import annotations

from typing import Any

import calibrary as cal
from calibrary.base.numbers import number, percent
from calibrary.cli.shared import load, out, plain, reading, say, taking
from calibrary.inference.verbs.power import name_of_test
from calibrary.lookup import catalogue
from calibrary.tables.sources import InputError


@taking("plan")
def plan(given: Any) -> None:
    """Compute the sample size for a given error, or the power of a sample: `calibrary plan ece --error 0.05`."""
    file, error, rows, law, line, alpha = given.file, given.error, given.rows, given.law, given.line, given.alpha
    entry = catalogue[given.id]
    if given.sampled is not None:
        _plan_samples(given.sampled, error, _law(law), line, alpha, given.resamples, given.seed, given.quiet)
        return
    settings: dict[str, Any] = {"line": line, "alpha": alpha, "n_resamples": given.resamples, "rng": given.seed}
    if file is None:
        settings["law"], whose = _law(law), f"confidences like Beta({law.replace(',', ', ')})"
    else:
        p = load(file, given.quiet, **reading(given)).predictions()
        settings["y_prob"] = p.probability if p.binary else p.probability.max(axis=1)
        whose = f"confidences like those of {file} ({p.n:,} rows)"
    say("simulating", given.quiet)
    test = name_of_test(entry.id)
    if rows is not None:
        result = cal.power(entry.id, rows, error=error, **settings)
        sentence = (
            f"{test} at level {percent(alpha)} detects an error of {error:g} "
            f"({line}) in {percent(result.power)} of samples of {rows:,} rows with {whose}; the mean of the metric is "
            f"{number(result.mean)} there, and {number(result.mean_calibrated)} for a calibrated model."
        )
    else:
        needed = cal.sample_size(entry.id, error, power=given.power, **settings)
        sentence = (
            f"{test} at level {percent(alpha)} needs about {needed.n:,} rows with "
            f"{whose} to detect an error of {error:g} ({line}) in {100 * given.power:g}% of samples."
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
