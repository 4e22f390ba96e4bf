"""Conditions on a report that decide the exit status: ``--fail-if "ece>0.05"``."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import typer

from calibrary.cli.options import err, plain
from calibrary.cli.read import InputError
from calibrary.lookup import catalogue

_OPERATORS = {
    ">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal,
}  # fmt: skip


def rule_of(text: str) -> tuple[str, str, str, float]:
    """Parse "ece>0.05", "cis.slope<0.8" or "ece.high>0.1"."""
    found = re.fullmatch(r"\s*([\w\- ]+?)(?:\.(\w+))?\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*", text)
    if not found:
        raise InputError(f'--fail-if {text!r} is not of the form "metric>number", e.g. "ece>0.05" or "cis.slope<0.8"')
    return catalogue[found[1]].id, found[2] or "", found[3], float(found[4])


def apply_rules(rules: list[tuple[str, str, str, float]], reports: list[Any]) -> None:
    failed = False
    for id, part, operator, limit in rules:
        for r in reports:
            side = part if part in ("low", "high", "pvalue", "pvalue_adjusted") else ""
            row = r.evaluation.row(id, "" if side else part)
            value = getattr(row, side) if side else row.value
            if value is None or math.isnan(value):
                raise InputError(f"--fail-if: {id} has no value to compare on these predictions")
            if _OPERATORS[operator](value, limit):
                failed = True
                name = f"{id}.{part}" if part else id
                err.print(
                    f"[red]failed:[/] {name} = {value:.6g} {operator} {limit:g} ({plain(r.title)})", highlight=False
                )
    if failed:
        raise typer.Exit(1)
