"""One test for many cases that are quick and alike, so that a suite of thousands of facts is a few hundred tests."""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]
#: Whether simulations and drawn examples have their full number, as in `make release-check`.
FULL = os.environ.get("CALIBRARY_FULL") == "1"


def _name(case: Any) -> str:
    parts = case if type(case) is tuple else (case,)
    return "-".join(str(getattr(part, "id", part))[:80] for part in parts)


def each(
    cases: Iterable[Any], name: Callable[[Any], str] = _name
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Call the test with every case (a plain tuple is several arguments); a failure names all cases that failed."""
    cases = list(cases)
    assert cases

    def decorate(function: Test) -> Callable[[], None]:
        @functools.wraps(function)
        def together() -> None:
            failed, skipped = {}, ""
            for case in cases:
                try:
                    function(*(case if type(case) is tuple else (case,)))
                except pytest.skip.Exception as skip:
                    skipped = skipped if str(skip).startswith("does not apply") else str(skip)
                except (Exception, pytest.fail.Exception) as error:
                    failed[name(case)] = error
            if failed:
                told = "\n\n".join(f"{key}: {type(error).__name__}: {error}" for key, error in failed.items())
                raise AssertionError(f"{len(failed)} of {len(cases)} cases\n\n{told}") from next(iter(failed.values()))
            if skipped:
                pytest.skip(skipped)  # the other cases were run

        del together.__wrapped__  # type: ignore[attr-defined]  # pytest would ask for the arguments
        return together

    return decorate


def each_of_id(cases: Iterable[tuple[Any, ...]]) -> Callable[[Test], Test]:
    """As :func:`each`, with one test for each id, the first part of a case: a quick run chooses tests by id."""
    by_id: dict[str, list[tuple[Any, ...]]] = {}
    for case in cases:
        by_id.setdefault(getattr(case[0], "id", case[0]), []).append(case)

    def decorate(function: Test) -> Test:
        @pytest.mark.parametrize("id", by_id)
        @functools.wraps(function)
        def of_one(id: str) -> None:
            each(by_id[id])(function)()

        del of_one.__wrapped__  # type: ignore[attr-defined]
        return of_one

    return decorate


def turn(id: str, cases: Iterable[str]) -> str:
    """The one of these cases that is tried with the metric of this id, always the same."""
    cases = list(cases)
    return cases[zlib.crc32(id.encode()) % len(cases)]


def some_of(names: Iterable[str], cases: Iterable[str]) -> list[tuple[str, str]]:
    """Of every name three of the cases, in turn, so that all cases occur; in a full run all of them."""
    cases = list(cases)
    return [(name, cases[k % len(cases)]) for i, name in enumerate(names) for k in range(i, i + amount(3, len(cases)))]


def amount(quick: int, full: int) -> int:
    """How often something is simulated, or how many rows it has: few for every change, many before a release."""
    return full if FULL else quick


def most(runs: int, rate: float) -> int:
    """How often something of this rate may happen in so many runs: more happens once in a thousand times."""
    from scipy.stats import binom

    return int(binom.isf(0.001, runs, rate))
