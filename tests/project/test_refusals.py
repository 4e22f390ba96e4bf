"""What does not apply has its own type: nothing in the library catches more than that to leave something out.

A handler of ``Exception`` or ``ValueError`` must raise again, or show what it caught as a fault; the few that do not
are listed with what they wait for, so that a new one is seen.
"""

from __future__ import annotations

import ast

import numpy as np
import pytest

import calibrary as cal
import sources
from paths import ROOT

#: Rooms that leave a metric, a map, a row or a figure out where it does not apply.
ROOMS = (
    "evaluation.py", "inference", "diagnostics", "recalibrate", "validation", "study", "plots", "reporting", "metrics",
    "lookup", "language", "losses", "scale",
)  # fmt: skip
BROAD = {"Exception", "BaseException", "ValueError", "TypeError", ""}
#: Handlers that neither raise nor show a fault: (file, function) and what they wait for.
LISTED = {
    (
        "inference/draw/resampling.py",
        "or_nan",
    ): "replicates that fail together are done one by one; a failure is kept and told",
    ("inference/draw/statistic.py", "_takes_weights"): "whether a function of the user's has a signature",
    ("validation/procedure.py", "refit"): "whatever the user's model raises is counted and told",
}


def caught(handler):
    """The names that a handler catches; empty for a bare one."""
    if handler.type is None:
        return {""}
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(part) for part in parts}


def shown(handler):
    """Does it raise, or keep what it caught as a fault or as a failure that is told?"""
    calls = {ast.unparse(n.func) for n in ast.walk(handler) if isinstance(n, ast.Call)}
    return any(isinstance(n, ast.Raise) for n in ast.walk(handler)) or bool(calls & {"fault", "_keep"})


def quiet_handlers():
    found = set()
    for room in ROOMS:
        path = ROOT / "src" / "calibrary" / room
        for file in [path] if path.suffix else sorted(path.rglob("*.py")):
            for function in sources.nodes(file):
                if not isinstance(function, ast.FunctionDef):
                    continue
                for handler in ast.walk(function):
                    if isinstance(handler, ast.ExceptHandler) and caught(handler) & BROAD and not shown(handler):
                        found.add((str(file.relative_to(ROOT / "src" / "calibrary")), function.name))
    return found


def test_nothing_is_left_out_for_an_error_that_is_no_refusal():
    assert quiet_handlers() == set(LISTED)


def test_a_fault_in_a_study_is_no_missing_value():
    from calibrary.study.panel import Number

    def broken(predictions):
        raise ValueError("a fault")

    def refused(predictions):
        raise cal.RefusedError("too few rows")

    data = cal.predictions([0, 1, 1], [0.2, 0.6, 0.9])
    value, why = Number("refused", refused)(data)
    assert (np.isnan(value), why) == (True, "too few rows")
    with pytest.raises(ValueError, match="a fault"):
        Number("broken", broken, metric="ece")(data)
    value, why = Number("a function of the user's", broken)(data)
    assert (np.isnan(value), why) == (True, "a fault")


@pytest.mark.parametrize("error", [cal.RefusedError, cal.RefusedCallError])
def test_a_refusal_is_a_value_error(error):
    assert issubclass(error, ValueError)
    assert issubclass(cal.RefusedCallError, TypeError)


#: Rooms in which every error about the user's data or settings is a refusal. Overflow of a sum is not one.
ALL_REFUSED = ("language", "losses", "scale")


@pytest.mark.parametrize("room", ALL_REFUSED)
def test_an_error_of_the_user_is_a_refusal(room):
    plain = []
    for file in sorted((ROOT / "src" / "calibrary" / room).rglob("*.py")):
        for node in sources.nodes(file):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = ast.unparse(node.exc.func)
                plain += [f"{file.name}:{node.lineno}"] if name in ("ValueError", "TypeError") else []
    assert not plain
