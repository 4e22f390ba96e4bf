"""Whether a metric from a state is exact, close or not available, from the declaration of its entry."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrary.base.errors import RefusedError
from calibrary.grouping.named import edges_among
from calibrary.metrics.machinery.entry import ENTRIES, Entry
from calibrary.metrics.machinery.facts import CellFacts


def declared() -> dict[str, CellFacts]:
    """The declarations of all metrics that have one, by id."""
    return {entry.id: entry.cells for entry in ENTRIES.values() if entry.cells is not None}


_REFUSED = {
    "counts": "its folds or limits need single rows, and a state stores only counts by cell: compute it on a "
    "sample of the rows",
    "keys": "it needs a column computed row by row: compute the column first and pass it as by=",
    "sample": "it needs complete rows, and a state stores only sums: use a calibrary.scale.VectorState with sample=",
    "detection": "it needs matched detections: pass a Matches object or a calibrary.scale.DetectionState",
    "boxes": "it needs matched detections: pass a Matches object",
}


def fact_of(entry: Entry, options: Mapping[str, Any]) -> CellFacts:
    """The declaration of a metric with these options; equal-mass bins always depend on the order of the rows."""
    entry, options = entry.specialized(options)
    fact = entry.cells
    if fact is None:  # no declaration: a mean over rows, independent of their order, can be computed from cells
        return CellFacts("smooth" if entry.weights == "repetition" and entry.order_free else "counts")
    kind_with = entry.code.cell_kind
    changed = None if kind_with is None else kind_with(options)
    if changed is not None:
        return CellFacts(changed)
    if "binning" in entry.options and fact.kind in ("exact", "smooth", "order"):
        kind = "order" if _by_rank(entry, fact, options) else "exact" if fact.kind == "order" else fact.kind
        # measured and proved precision applies to the declared type of bins; the norm of the gaps does not matter
        return fact if kind == fact.kind else replace(fact, kind=kind, measured=None)
    return fact


def _by_rank(entry: Entry, fact: CellFacts, options: Mapping[str, Any]) -> bool:
    """Whether the bins depend on the order of the rows instead of fixed edges."""
    if fact.by_rank:
        return True
    if edges_among(options) is not None:
        return False
    strategy = options.get("strategy")
    if strategy is not None:
        return bool(strategy != "uniform")
    return bool(options.get("binning", default(entry, "binning")) != "width")


def default(entry: Entry, option: str) -> Any:
    """The default value of an option of the metric or of the function to which it passes the option."""
    own = inspect.signature(entry.formula).parameters.get(option)
    if own is not None:
        return own.default
    return entry.extra_options.get(option) if isinstance(entry.extra_options, dict) else None


def refusal(entry: Entry, options: Mapping[str, Any]) -> str | None:
    """The reason why the metric cannot be computed from a state, or None."""
    reason = _REFUSED.get(fact_of(entry, options).kind)
    return None if reason is None else f"{entry.id} cannot be computed from a state: {reason}"


def reading(entry: Entry, options: Mapping[str, Any]) -> str:
    """The form in which a metric uses a state: "split" (each label at its mean) or "tied" (at the cell's mean)."""
    reason = refusal(entry, options)
    if reason is not None:
        raise RefusedError(reason)
    fact = fact_of(entry, options)
    return "tied" if fact.kind == "order" and not fact.split else "split"
