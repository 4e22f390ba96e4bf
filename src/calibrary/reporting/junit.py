"""Verdicts as JUnit XML, the format in which build servers read test results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrary.base.markup import XML, Markup, element, markup


@dataclass(frozen=True)
class Case:
    """One gate on one model: ``status`` is "pass", "fail", "undecided" or "error", ``passed`` what counts."""

    model: str
    gate: str
    status: str
    passed: bool
    sentence: str


def junit(cases: Sequence[Case]) -> str:
    """One test suite with a test case for each gate; an undecided gate that may pass is a skipped test."""
    failed = sum(case.status != "error" and not case.passed for case in cases)
    errors = sum(case.status == "error" for case in cases)
    skipped = sum(case.status == "undecided" and case.passed for case in cases)
    counts = {"tests": len(cases), "failures": failed, "errors": errors, "skipped": skipped}
    lines = markup("", *map(_case, cases), "", between="\n")
    suite = element("testsuite", lines, name="calibrary", **counts, time="0")
    return markup(XML, element("testsuites", markup("", suite, "", between="\n"), **counts), "", between="\n")


def _case(case: Case) -> Markup:
    outcome: tuple[Markup, ...] = ()
    if case.status == "error":
        outcome = (element("error", type="CouldNotBeComputed", message=case.sentence),)
    elif not case.passed:
        outcome = (element("failure", type=case.status, message=case.sentence),)
    elif case.status == "undecided":
        outcome = (element("skipped", message=case.sentence),)
    return element("testcase", *outcome, classname=case.model, name=case.gate, time="0")
