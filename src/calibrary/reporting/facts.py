"""The line of facts below a title: rows, events and of what, columns, rows left out and why, and what was guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrary.base.numbers import counted, percent
from calibrary.data import Data
from calibrary.data.predictions import Predictions


def facts_of(data: Data, view: Predictions, source: Any) -> dict[str, Any]:
    """The facts as plain values.

    ``source`` describes the input: columns by role, rows read, rows dropped by reason, and the
    roles whose columns were guessed.
    """
    given: Mapping[str, Any] = source if isinstance(source, Mapping) else {}
    p: Predictions = data.read_as("predictions", "a report")
    columns = given.get("columns") or {}
    dropped = {str(why): int(n) for why, n in (given.get("dropped") or {}).items() if n}
    if p.n_input > p.n:
        dropped["weight 0"] = p.n_input - p.n
    own = p.k == 2 and data is p
    share = float(p.class_share[-1]) if own else float(view.mean(view.y))
    return {
        "rows": p.n_predictions,
        "noun": data.noun,
        "classes": p.k,
        "events": None if p.fractional or p.k != 2 else round(share * p.total, 6),
        "share": share,
        "event": str(p.classes[-1]) if own else None,
        "label": columns.get("label"),
        "prediction": columns.get("probability"),
        "rows_read": given.get("rows_read"),
        "left_out": dropped,
        "guessed": list(given.get("guessed") or ()),
    }


def facts_words(facts: Mapping[str, Any]) -> str:
    """The facts in a line; empty for a report saved without them."""
    if not facts:
        return ""
    parts = [counted(facts["rows"], facts["noun"]), _outcomes(facts)]
    if facts.get("prediction"):
        parts.append(f"prediction {facts['prediction']}{_guessed(facts, 'probability')}")
    lines = [", ".join(part for part in parts if part), left_out_words(facts)]
    return "; ".join(line for line in lines if line)


def _outcomes(facts: Mapping[str, Any]) -> str:
    """How many events there are, and the class they are of."""
    label, event, share = facts.get("label"), facts.get("event"), percent(facts["share"])
    guessed = _guessed(facts, "label")
    if event is None:
        right = "accuracy" if facts["noun"] == "row" else "right"
        many = f"{facts['classes']:,} classes" if facts["classes"] > 2 else ""
        of = f" of {label}{guessed}" if label else ""
        return ", ".join(part for part in (many and many + of, f"{right} {share}") if part)
    events = facts.get("events")
    known = f"events {share}" if events is None else f"{counted(events, 'event')} ({share})"
    of = f"{label} = {event}" if label else f"class {event}"
    return f"{known} of {of}{guessed or _guessed(facts, 'positive')}"


def _guessed(facts: Mapping[str, Any], role: str) -> str:
    return " (guessed)" if role in (facts.get("guessed") or ()) else ""


def left_out_words(facts: Mapping[str, Any]) -> str:
    """The rows that were left out, with the reasons; empty if there are none."""
    gone: Mapping[str, int] = facts.get("left_out") or {}
    if not gone:
        return ""
    total = facts["rows_read"] - facts["rows"] if facts.get("rows_read") else sum(gone.values())
    of = f" of {facts['rows_read']:,}" if facts.get("rows_read") else ""
    why = ", ".join(f"{n:,} {reason}" for reason, n in gone.items())
    return f"{total:,}{of} rows left out: {why}"
