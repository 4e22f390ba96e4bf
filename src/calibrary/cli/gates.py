"""Conditions on a report that decide the exit status: ``--fail-if "ece>0.05"``.

Status 0: every gate held, or could not be decided on so few rows (said in words; ``--undecided fail`` makes that 1).
Status 1: a gate did not hold. Status 2: it could not be computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrary._errors import one_of
from calibrary._files import check_writable, write_atomically
from calibrary.cli.files import InputError
from calibrary.cli.options import err, plain, written
from calibrary.evaluation import Row
from calibrary.inference.verdict import Condition, Verdict, condition, judged
from calibrary.reporting.junit import Case, junit

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        help='Exit with status 1 if this holds, e.g. "ece>0.05" (by its interval). Repeatable.',
    ),
]
Undecided = Annotated[
    str, typer.Option(help="What a gate does where the interval holds its bound: pass (and say so) or fail.")
]
Junit = Annotated[Path | None, typer.Option(help="Write the gates as JUnit XML, for build servers.")]


def rule_of(text: str) -> Condition:
    """The condition that fails a build: "ece>0.05", "cis.slope<0.8", "ece.value>0.05", "ece.pvalue<0.01"."""
    try:
        return condition(text)
    except ValueError as error:
        reason = str(error).removeprefix(f"condition={text!r} ").removeprefix(f"condition={text!r}: ")
        raise InputError(f"--fail-if {text!r}: {reason}") from None


def check_gates(undecided: str, junit_file: Path | None) -> None:
    """Refuse, before any work is done, what could not be used at its end."""
    one_of("--undecided", undecided, ("pass", "fail"))
    if junit_file is not None:
        check_writable(junit_file)


def apply_rules(
    rules: Sequence[Condition], reports: Sequence[Any], undecided: str = "pass", junit_file: Path | None = None
) -> None:
    """Judge every rule on every report by the table it shows; say what did not hold and what is undecided."""
    cases = [_case(rule, report, undecided) for rule in rules for report in reports]
    for case in cases:
        if case.status != "pass":
            _tell(case)
    if junit_file is not None:
        write_atomically(junit_file, junit(cases).encode())
        written(junit_file)
    broken = next((case for case in cases if case.status == "error"), None)
    if broken is not None:
        raise InputError(f"--fail-if: {broken.sentence}")
    if not all(case.passed for case in cases):
        raise typer.Exit(1)


def _case(rule: Condition, report: Any, undecided: str) -> Case:
    gate = f"fails if {rule}"
    try:
        answer = _verdict(rule, report, undecided)
    except ValueError as error:
        return Case(report.title, gate, "error", False, str(error))
    return Case(report.title, gate, answer.status, answer.passed, answer.sentence)


def _verdict(rule: Condition, report: Any, undecided: str) -> Verdict:
    row: Row = report.evaluation.row(rule.metric, rule.part)
    several = [r.part for r in report.evaluation.rows if r.id == row.id]
    if len(several) > 1 and not rule.part:
        raise InputError(f"{rule.metric} has {len(several)} numbers: name one, as {rule.metric}.{several[0]}")
    if row.low is None and rule.field not in ("value", "pvalue", "pvalue_adjusted"):
        why = "--resamples 0 makes none" if not report.evaluation.settings else row.note or "it has none here"
        raise InputError(f"{rule.name} needs an interval ({why}): compare the estimate with {rule.metric}.value")
    numbers = (row.low, row.high, row.pvalue, row.pvalue_adjusted)
    low, high, pvalue, adjusted = (math.nan if x is None else x for x in numbers)
    return judged(
        rule.opposite, row.value, low, high, n=report.evaluation.n, method=row.method or "", pvalue=pvalue,
        pvalue_adjusted=adjusted, confidence_level=report.evaluation.settings.get("confidence_level", math.nan),
        on_undecided=undecided,
    )  # fmt: skip


def _tell(case: Case) -> None:
    word = {"undecided": "[yellow]undecided:[/]", "error": "[red]not computed:[/]"}.get(case.status, "[red]failed:[/]")
    if case.status != "error":  # said once, at the end
        err.print(f"{word} {plain(case.sentence)} ({plain(case.model)})", soft_wrap=True)
