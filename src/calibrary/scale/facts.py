"""What a state gives of each metric, from what its entry declares: is a value exact, close or not to be had."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrary.base.errors import RefusedError
from calibrary.metrics.machinery.entry import ENTRIES, Entry
from calibrary.metrics.machinery.facts import CellFacts


def declared() -> dict[str, CellFacts]:
    """What every metric says of cells that says something, by id."""
    return {entry.id: entry.cells for entry in ENTRIES.values() if entry.cells is not None}


_REFUSED = {
    "counts": "its folds or limits need rows one by one, and a state keeps cells of them: compute it on a sample of "
    "the rows",
    "keys": "it needs a column made row by row: make the column first and keep its values apart with by=",
    "sample": "it needs whole rows, and a state keeps sums: use a calibrary.scale.VectorState with sample=",
    "detection": "it needs matched detections: pass a Matches object or a calibrary.scale.DetectionState",
    "boxes": "it needs matched detections: pass a Matches object",
}


def fact_of(entry: Entry, options: Mapping[str, Any]) -> CellFacts:
    """What cells give of a metric with these options; bins by mass depend on the order, whatever the metric."""
    entry, options = entry.specialized(options)
    fact = entry.cells
    if fact is None:  # what nobody has studied: a mean over rows in any order may be read from cells
        return CellFacts("smooth" if entry.weights == "repetition" and entry.order_free else "counts")
    changed = None if fact.kind_with is None else fact.kind_with(options)
    if changed is not None:
        return CellFacts(changed)
    if "binning" in entry.options and fact.kind in ("exact", "smooth", "order"):
        kind = "order" if _by_rank(entry, fact, options) else "exact" if fact.kind == "order" else fact.kind
        # what was measured and proved holds for the kind that was declared; which gaps are added up does not change
        return fact if kind == fact.kind else replace(fact, kind=kind, measured=None)
    return fact


def _by_rank(entry: Entry, fact: CellFacts, options: Mapping[str, Any]) -> bool:
    """Do the bins follow the order of the rows, rather than fixed edges?"""
    if fact.by_rank:
        return True
    if options.get("edges") is not None:
        return False
    strategy = options.get("strategy")
    if strategy is not None:
        return bool(strategy != "uniform")
    return bool(options.get("binning", default(entry, "binning")) != "width")


def default(entry: Entry, option: str) -> Any:
    """The default of an option of a metric's own or of the part it hands options on to."""
    own = inspect.signature(entry.formula).parameters.get(option)
    if own is not None:
        return own.default
    return entry.extra_options.get(option) if isinstance(entry.extra_options, dict) else None


def refusal(entry: Entry, options: Mapping[str, Any]) -> str | None:
    """Why a state cannot give this metric, or None."""
    reason = _REFUSED.get(fact_of(entry, options).kind)
    return None if reason is None else f"{entry.id} cannot be computed from a state: {reason}"


def reading(entry: Entry, options: Mapping[str, Any]) -> str:
    """How the metric takes the rows of a state: "split" (each label at its mean) or "tied" (both at the cell's)."""
    reason = refusal(entry, options)
    if reason is not None:
        raise RefusedError(reason)
    fact = fact_of(entry, options)
    return "tied" if fact.kind == "order" and not fact.split else "split"
