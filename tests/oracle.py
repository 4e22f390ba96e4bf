"""The right numbers of logs and stores that were made from known rows, and whether what was read agrees with them.

A case is made from known rows, and a mutation of a table changes how they are written (``oracle_logs.py``,
``oracle_stores.py``). The mutation says how reading may end: "right" (the numbers of the rows), "said" (the right
numbers, or those of another reading that the mutation names, with a note or a warning) and "refused" (one sentence).
Everything else is a :class:`Violation`: above all another number without a word, and an error that is not ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from awkward import Violation
from calibrary.base.errors import FAULT, RefusedError, collected_warnings
from calibrary.base.saved import SavedFileError
from calibrary.language import LogError
from doors import sentence

__all__ = ["ANY", "EITHER", "SAID", "Answer", "Violation", "asked", "both", "ended", "same", "turn"]

#: How a case may end.
EITHER, SAID, ANY = "right or refused", "said or refused", "right or said or refused"
#: Errors that are ours; the text must be a sentence for people.
OURS = (RefusedError, SavedFileError, LogError)


@dataclass
class Answer:
    """What a call gave: numbers and what was said beside them, or None and the sentence of a refusal."""

    numbers: Any
    said: list[str]


def asked(call: Callable[[], tuple[Any, list[str]]]) -> Answer:
    """The numbers and notes that a call returns, with its warnings; an error that is not ours is a violation."""
    with collected_warnings() as warned:
        try:
            numbers, notes = call()
        except OURS as error:
            if FAULT in sentence(error):
                raise Violation(f"a fault, not a refusal: {error}") from error
            return Answer(None, [str(error)])
        except Violation:
            raise
        except Exception as error:
            raise Violation(f"an error that is not ours: {type(error).__name__}: {str(error)[:300]}") from error
    return Answer(numbers, [*notes, *warned])


def same(found: Any, right: Any) -> bool:
    """Whether all numbers are equal; a state rounds probabilities to its cells."""
    if isinstance(right, dict):
        return set(found) == set(right) and all(same(found[key], right[key]) for key in right)
    return bool(np.allclose(found, right, rtol=0.0, atol=1e-5))


def ended(answer: Answer, ends: str, right: Any, others: Any = ()) -> str:
    """How the call ended, if it may end so; a violation where it may not."""
    may = set(ends.split(" or "))
    if answer.numbers is None:
        if "refused" not in may:
            raise Violation(f"refused, though it may only end {ends}: {answer.said[0]}")
        return "refused"
    if same(answer.numbers, right) and ("right" in may or ("said" in may and answer.said)):
        return "right"
    if answer.said and any(same(answer.numbers, other) for other in others):
        return "said"
    raise Violation(f"{answer.numbers} for {right} (it may end {ends}); said {answer.said}")


def turn(case: Callable[..., str], seed: int, folder: Path, name: str | None = None) -> str:
    """One case, with the mutation of this name or any; whatever else is raised is a violation too."""
    try:
        return case(np.random.default_rng(seed), folder, name)
    except Violation:
        raise
    except Exception as error:
        raise Violation(f"{type(error).__name__}: {str(error)[:300]}") from error


def both(first: str, second: str) -> str:
    """How a case with two mutations may end."""
    one, two = (set(ends.split(" or ")) for ends in (first, second))
    numbers = [{"right", "said"} & may for may in (one, two)]
    given = {"right"} if all("right" in may for may in numbers) else {"said"} if all(numbers) else set()
    return " or ".join(sorted(given | ((one | two) & {"refused"})))
