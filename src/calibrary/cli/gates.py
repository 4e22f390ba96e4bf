"""Conditions on a report that set the exit status: ``--fail-if "ece>0.05"``.

Status 0: no condition holds, or the interval is too wide to decide (a sentence says so; with ``--undecided fail`` the
status is then 1). Status 1: a condition holds, so the gate fails. Status 2: a gate could not be computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from calibrary.base.errors import collected_warnings, one_of
from calibrary.base.files import check_writable, write_atomically
from calibrary.base.markup import XML, Markup, element, markup
from calibrary.cli.shared import err, plain, written
from calibrary.evaluation import Row
from calibrary.inference.verbs.verdict import Condition, Verdict, condition, judged, verdict
from calibrary.lookup import catalogue
from calibrary.tables.sources import InputError


def rule_of(text: str) -> Condition:
    """Parse a condition that fails a build: "ece>0.05", "cis.slope<0.8", "ece.value>0.05", "ece.pvalue<0.01"."""
    try:
        return condition(text)
    except ValueError as error:
        reason = str(error).removeprefix(f"condition={text!r}: ").replace(f"condition={text!r}", "this condition")
        raise InputError(f"--fail-if {text!r}: {reason}") from None


@dataclass(frozen=True)
class Case:
    """One gate on one model: ``status`` is "pass", "fail", "undecided" or "error", ``passed`` what counts."""

    model: str
    gate: str
    status: str
    passed: bool
    sentence: str


@dataclass(frozen=True)
class Gates:
    """The gates of a command: the conditions, the result of an undecided one, and the JUnit file for build servers.

    ``one_sided`` gates use the bound on the side that decides: whether the condition holds, or with undecided="fail"
    whether its opposite does. A gate that could not be applied at the end is refused here, before any computation.
    """

    rules: Sequence[Condition]
    undecided: str = "pass"
    junit_file: Path | None = None
    one_sided: bool = False

    def __post_init__(self) -> None:
        one_of("--undecided", self.undecided, ("pass", "fail"))
        if self.junit_file is not None:
            check_writable(self.junit_file)

    @property
    def metrics(self) -> list[str]:
        """The metrics that the table must contain."""
        return [rule.metric for rule in self.rules]

    def apply(self, reports: Sequence[Any]) -> None:
        """Apply every gate to every report; print the gates that failed and those that are undecided."""
        cases = [self._case(rule, report) for rule in self.rules for report in reports]
        for case in cases:
            _tell(case)
        if self.junit_file is not None:
            write_atomically(self.junit_file, junit(cases).encode())
            written(self.junit_file)
        broken = next((case for case in cases if case.status == "error"), None)
        if broken is not None:
            raise InputError(f"--fail-if: {broken.sentence}")
        if not all(case.passed for case in cases):
            raise typer.Exit(1)

    def _case(self, rule: Condition, report: Any) -> Case:
        gate = f"fails if {rule}"
        try:
            grouped = report.predictions is not None and report.predictions.in_groups
            wanted, side = rule.opposite, self._side(rule)
            apart = (grouped and rule.field != "value") or side != "two-sided"
            asked = (wanted, report, self.undecided)
            answer = _by_data(*asked, side) if apart else _by_table(*asked)
        except ValueError as error:
            return Case(report.title, gate, "error", False, str(error))
        return Case(report.title, gate, answer.status, answer.passed, answer.sentence)

    def _side(self, rule: Condition) -> str:
        """The bound that decides: a lower one shows that "ece>0.05" holds, an upper one that it does not."""
        if not self.one_sided or rule.field:
            return "two-sided"
        return "greater" if (rule.sign[0] == ">") == (self.undecided == "pass") else "less"


def _by_table(wanted: Condition, report: Any, undecided: str) -> Verdict:
    """Apply a gate to the interval in the report's table."""
    row: Row = report.evaluation.row(wanted.metric, wanted.part)
    several = [r.part for r in report.evaluation.rows if r.id == row.id]
    if len(several) > 1 and not wanted.part:
        raise InputError(f"{wanted.metric} has {len(several)} values: name one, such as {wanted.metric}.{several[0]}")
    if row.low is None and not row.method and wanted.field not in ("value", "pvalue", "pvalue_adjusted"):
        none = row.note or "none is available here"
        why = none if report.evaluation.settings else "with --resamples 0 there is none"
        raise InputError(
            f"{wanted.name} needs an interval ({why}): use {wanted.metric}.value for a bound on the estimate"
        )
    numbers = (row.low, row.high, row.pvalue, row.pvalue_adjusted)
    low, high, pvalue, adjusted = (math.nan if x is None else x for x in numbers)
    return judged(
        wanted, row.value, low, high, n=report.evaluation.n, method=row.method, pvalue=pvalue,
        pvalue_adjusted=adjusted, confidence_level=report.evaluation.settings.get("confidence_level", math.nan),
        undecided=undecided, why=catalogue[wanted.metric].no_ends,
    )  # fmt: skip


def _by_data(wanted: Condition, report: Any, undecided: str, side: str) -> Verdict:
    """Apply a gate to an interval of its own, computed from the report's data: with units, or a one-sided bound."""
    if report.predictions is None:
        raise InputError("--one-sided needs predictions: pass --confidence-level 0.9 for bounds at 95%")
    if not report.evaluation.settings:
        raise InputError(
            f"{wanted.name} needs an interval, and with --resamples 0 there is none: use {wanted.metric}.value for a "
            "bound on the estimate"
        )
    question = report.question
    with collected_warnings():  # undecided gates are printed below
        return verdict(
            wanted, report.predictions, undecided=undecided, alternative=side, n_resamples=question.n_resamples,
            confidence_level=question.confidence_level, rng=question.rng, lens=question.lens, average=question.average,
            weight_type=question.weight_type, **question.of(catalogue[wanted.metric].options).options,
        )  # fmt: skip


def _tell(case: Case) -> None:
    if case.status in ("fail", "undecided"):
        word = "[yellow]undecided:[/]" if case.status == "undecided" else "[red]failed:[/]"
        err.print(f"{word} {plain(case.sentence)} ({plain(case.model)})", soft_wrap=True)


# -- verdicts as JUnit XML, the format in which build servers read test results ----------------------


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
