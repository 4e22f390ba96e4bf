"""Rows for an interval of a given width, or for a test: ``calibrary plan oe --width 0.4 --prevalence 0.1``."""

from __future__ import annotations

from typing import Any

import calibrary as cal
from calibrary.base.numbers import number, percent
from calibrary.cli.large import require_rows
from calibrary.cli.shared import load, out, plain, reading, say, taking
from calibrary.lookup import catalogue
from calibrary.tables.sources import InputError


@taking("plan")
def plan(given: Any) -> None:
    """Compute the rows for a precision or a test: `calibrary plan oe --width 0.4 --prevalence 0.1`."""
    entry = catalogue[given.id]
    tested = given.width is None
    error = 0.05 if tested and given.error is None else given.error
    law = None if given.law is None else _pair("--law", given.law, _BETA)
    resamples = given.resamples or 199
    if given.sampled is not None:
        _plan_samples(given, error or 0.05, law or (1.0, 1.0), resamples)
        return
    settings: dict[str, Any] = {"error": error, "n": given.rows, "rng": given.seed, "n_resamples": given.resamples}
    settings |= {name: getattr(given, name) for name in _OF_WIDTH}
    settings["lp"] = None if given.lp is None else _pair("--lp", given.lp, "mean and standard deviation, such as -2,1")
    settings["law"] = law
    if tested:
        settings |= {"n_resamples": resamples, "alpha": given.alpha, "line": given.line, "power": given.power}
    else:
        settings |= {"confidence_level": 1.0 - given.alpha, "method": "simulation" if given.simulate else "auto"}
    words = (given.law or "1,1").replace(",", ", ")
    whose = f"confidences like Beta({words})" if given.lp is None else f"log odds like {given.lp}"
    if given.file is not None:
        found = load(given.file, given.quiet, **reading(given))
        require_rows(found, "plan")
        p = found.predictions()
        if not (tested or p.binary):
            raise InputError(
                f"{given.file} has {p.k} classes: --width is for two classes, so pass the column of one event"
            )
        settings["y_prob"] = p.probability if p.binary else p.probability.max(axis=1)
        whose = f"confidences like those of {given.file} ({p.n:,} rows)"
    say("simulating" if tested else "planning", given.quiet)
    planned = cal.plan(entry.key, **settings)
    sentence = str(planned.sentence)
    if tested:
        mean, calibrated = getattr(planned, "mean", None), getattr(planned, "mean_calibrated", None)
        sentence += f" This is for {whose}"
        if mean is not None:
            sentence += f"; the mean of the metric is {number(mean)} there, {number(calibrated)} for a calibrated model"
        sentence += "."
    out.print(plain(sentence), highlight=False, soft_wrap=True)


_BETA = "the two parameters of Beta(a, b), such as 1,1"
#: Options that go with a width as they are.
_OF_WIDTH = ("width", "prevalence", "value", "threshold", "sensitivity", "specificity")


def _plan_samples(given: Any, error: float, law: tuple[float, float], resamples: int) -> None:
    """Divide a budget of calls into questions and samples of each, and list the power of every division."""
    from calibrary.language.planning import sampled_plan

    say("simulating", given.quiet)
    how = {"line": given.line, "alpha": given.alpha, "n_resamples": resamples, "rng": given.seed}
    found = sampled_plan(given.sampled, error=error, law=law, **how)
    out.print(plain(found.sentence), highlight=False, soft_wrap=True)
    for n, k, power in () if given.quiet else found.tried:
        out.print(plain(f"  {n:,} questions, {k + 1} samples each: {percent(power)}"), highlight=False)


def _pair(option: str, text: str, what: str) -> tuple[float, float]:
    try:
        a, b = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} {text}: pass {what}, separated by a comma") from None
    return a, b
