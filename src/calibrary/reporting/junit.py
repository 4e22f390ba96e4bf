"""Verdicts as JUnit XML, the form in which build servers read the outcome of tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from calibrary.base.text import plain


@dataclass(frozen=True)
class Case:
    """One gate on one model: ``status`` is "pass", "fail", "undecided" or "error", ``passed`` what counts."""

    model: str
    gate: str
    status: str
    passed: bool
    sentence: str


def junit(cases: Sequence[Case]) -> str:
    """One test suite with a test case for each gate; what is undecided and may pass is a skipped test."""
    failed = sum(case.status != "error" and not case.passed for case in cases)
    errors = sum(case.status == "error" for case in cases)
    skipped = sum(case.status == "undecided" and case.passed for case in cases)
    counts = f'tests="{len(cases)}" failures="{failed}" errors="{errors}" skipped="{skipped}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {counts}>"]
    lines += [f'<testsuite name="calibrary" {counts} time="0">', *map(_case, cases), "</testsuite>", "</testsuites>"]
    return "\n".join(lines) + "\n"


def _case(case: Case) -> str:
    start = f'<testcase classname={_quoted(case.model)} name={_quoted(case.gate)} time="0"'
    message = f"message={_quoted(case.sentence)}"
    if case.status == "error":
        return f'{start}><error type="CouldNotBeComputed" {message}/></testcase>'
    if not case.passed:
        return f"{start}><failure type={_quoted(case.status)} {message}/></testcase>"
    if case.status == "undecided":
        return f"{start}><skipped {message}/></testcase>"
    return f"{start}/>"


def _quoted(text: str) -> str:
    # control characters have no place in XML at all, escaped or not
    return quoteattr(plain(text, None))
