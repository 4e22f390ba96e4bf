"""Where a report comes from: the line of facts below its title, the input, the settings, and how to reproduce it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrary._version import __version__
from calibrary.base.numbers import counted, percent
from calibrary.data import Data
from calibrary.data.predictions import Predictions
from calibrary.reporting.sections import Context, Section, Table, section

#: The number of bytes of a file that are read at a time.
_BLOCK = 1 << 20


@section("provenance")
def provenance(context: Context) -> Section:
    """The facts needed to check the page, as a table."""
    facts = {**_input(context), **_looking(context), **_made(context)}
    known = {name: value for name, value in facts.items() if value not in (None, "")}
    table = Table(("what", "value"), tuple((name, _cell(value, name)) for name, value in known.items()))
    return Section("provenance", "Provenance", (digest_words(known, context.data.noun),), (table,), data=known)


def digest_words(facts: Mapping[str, Any], noun: str) -> str:
    """The number of rows of the page, the rows that were left out, and the digest that identifies the rows."""
    rows, dropped = facts["rows"], facts.get("rows dropped") or {}
    gone = "; ".join(f"{counted(n, 'row')} left out: {why}" for why, n in dropped.items())
    return f"{counted(rows, noun)} with digest {facts['digest'][:12]}" + (f" ({gone})." if gone else ".")


# -- the input ---------------------------------------------------------------------------------------


def _input(context: Context) -> dict[str, Any]:
    given, p = source_of(context.settings.about.get("source")), context.p
    dropped = _dropped(given, p)
    facts: dict[str, Any] = {"source": given.get("name"), "digest of the file": given.get("digest")}
    facts["columns"] = given.get("columns") or None
    facts |= {"rows read": given.get("rows_read"), "rows": p.n_predictions, "rows dropped": dropped or None}
    facts["cells that hold them"] = p.n if p.n_predictions != p.n else None
    facts |= {"total weight": p.total if p.w is not None else None, "digest": digest(context.data)}
    return facts | context.data.contents


def source_of(source: Any) -> dict[str, Any]:
    """The known facts about the source of the rows.

    ``source`` is a path, or a mapping with ``name`` (or ``path``), ``rows_read`` and ``dropped`` ({reason: rows}). The
    digest of a file is that of its bytes.
    """
    if source is None:
        return {}
    given: dict[str, Any] = dict(source) if isinstance(source, Mapping) else {"name": str(source)}
    if "path" in given:
        given["name"] = str(given.pop("path"))
    name = given.get("name")
    if name and "digest" not in given and os.path.isfile(str(name)):  # unlike Path's, False for any name at all
        given["digest"] = "sha256:" + _digest_of_file(Path(str(name)))
    return given


def _dropped(given: Mapping[str, Any], p: Predictions) -> dict[str, int]:
    """The number of rows that were left out, by the reason."""
    dropped = {str(why): int(n) for why, n in (given.get("dropped") or {}).items() if n}
    return dropped | ({"weight 0": p.n_input - p.n} if p.n_input > p.n else {})


def _digest_of_file(path: Path) -> str:
    running = hashlib.sha256()
    with path.open("rb") as opened:
        while block := opened.read(_BLOCK):
            running.update(block)
    return running.hexdigest()


def digest(data: Data) -> str:
    """sha256 of the evaluated data: the same labels, probabilities and weights in the same order give the same digest.

    Bytes in this order: the classes as JSON, then the labels (8-byte integers, or floats where they are shares), the
    probabilities and the weights (8-byte floats; none where every row counts once), all little-endian, row by row. Of
    detections: the categories as JSON, then score, overlap, whether correct, category, image and weight.
    """
    names, arrays = data.digest_parts
    running = hashlib.sha256(json.dumps([str(name) for name in names]).encode())
    for array in arrays:
        kind = "<f8" if array.dtype.kind == "f" else "<i8"
        running.update(np.ascontiguousarray(array + 0, dtype=kind).data)  # + 0: no -0.0
    return running.hexdigest()


# -- settings ----------------------------------------------------------------------------------------


def _looking(context: Context) -> dict[str, Any]:
    question, p = context.question, context.p
    facts: dict[str, Any] = {"lens of the headline and the figures": context.headline_view[1], **context.data.making}
    asked, source = context.settings, context.settings.about.get("source")
    columns = (source.get("columns") if isinstance(source, Mapping) else None) or {}
    primary = context.primary
    facts["primary metric"] = None if primary is None else primary.id
    facts["options"] = {name: _word(value) for name, value in question.options.items()} or None
    facts["weights are"] = None if p.w is None else question.weight_type
    given = {
        "by": _names(asked.by), "time": _word(asked.time), "thresholds": _word(asked.thresholds),
        "units": _word(asked.units),
    }  # fmt: skip
    facts |= {n: columns.get(n.removesuffix("s"), value) for n, value in given.items() if value is not None}
    if p.together is not None and p.together.block is not None:
        facts["resampled together"] = f"blocks of {p.together.block} in time order"
    return facts


def _names(by: Any) -> Any:
    if isinstance(by, Mapping):
        return [str(name) for name in by]
    return [str(name) for name in by.columns] if hasattr(by, "columns") else _word(by)


def _word(value: Any) -> Any:
    """A setting as it was given; for a long column only its length."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if np.ndim(value) and len(value) > 20:
        return f"one value for each of {len(value):,} rows"
    listed = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(listed, int | float | str):
        return listed
    return [v if isinstance(v, int | float) else str(v) for v in listed]


# -- how it was computed -----------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """The versions of what computes a report."""
    import scipy

    own = {"calibrary": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    return {**own, "python": platform.python_version()}


def _made(context: Context) -> dict[str, Any]:
    question, command = context.question, context.settings.about.get("command")
    return {
        "seed": question.rng,
        "draws": context.draws,
        "confidence level": question.confidence_level,
        "command": command if command is None or isinstance(command, str) else shlex.join(map(str, command)),
        "versions": versions(),
    }


def _cell(value: Any, what: str = "") -> Any:
    if isinstance(value, Mapping):
        between = ": " if what == "columns" else " "
        return ", ".join(f"{name}{between}{n}" for name, n in value.items())
    if isinstance(value, list):
        more = f", ... ({len(value)} in all)" if len(value) > 20 else ""
        return ", ".join(str(v) for v in value[:20]) + more
    return value


# -- the line of facts below a title: rows, events and of what, columns, rows left out and why, what was guessed


def facts_of(data: Data, view: Predictions, source: Any) -> dict[str, Any]:
    """The facts as plain values.

    ``source`` describes the input: columns by role, rows read, rows dropped by reason, and the
    roles whose columns were guessed.
    """
    given: Mapping[str, Any] = source if isinstance(source, Mapping) else {}
    p: Predictions = data.read_as("predictions", "a report")
    columns = given.get("columns") or {}
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
        "left_out": _dropped(given, p),
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
