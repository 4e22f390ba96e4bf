"""Attacks on every door: saved files, tables, SQL names, command lines, calls in threads, pages.

One function for each kind draws a case from a generator, tries it, and returns how it ended. Whatever must not happen
is a :class:`Violation`: an error that is no sentence, a number that depends on the format of the file, a page with an
element that is not ours, a process that is not as it was. ``benchmarks/fuzz_doors.py`` draws them by the hundred
thousand, and ``tests/project/test_fuzz_doors.py`` draws some of them.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import csv
import dataclasses
import doctest
import functools
import gzip
import hashlib
import html
import inspect
import io
import json
import math
import os
import pickle
import re
import signal
import sqlite3
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

import awkward
import calibrary as cal
from awkward import Violation
from calibrary.base.saved import SavedFileError, sealed
from calibrary.public import PUBLIC

__all__ = ["KINDS", "Violation", "turn"]

Rng = np.random.Generator

#: Text that runs, loads, hides, breaks out of a literal or out of a line where it is not taken for text.
TEXTS = (
    "<script>window.owned=1</script>", "<img src=x onerror=window.owned=1>", "<svg/onload=window.owned=1>",
    "\" autofocus onfocus=\"window.owned=1\" x=\"", "' onmouseover='window.owned=1' x='",
    "</script><script>window.owned=1</script>", "</style><script>window.owned=1</script>", "--><script>window.owned=1",
    "</title></template></textarea><script>window.owned=1</script>", "javascript:window.owned=1",
    '<meta http-equiv="refresh" content="0;url=http://127.0.0.1:9/">', '<base href="http://127.0.0.1:9/">',
    '<link rel=stylesheet href="http://127.0.0.1:9/o.css">', "<style>.headline{display:none}</style>",
    "<iframe src=http://127.0.0.1:9/>", "red;}*{display:none", "{{7*7}}${7*7}%s{0}", "&lt;script&gt;", "&#60;b&#62;",
    "=cmd|' /C calc'!A0", "@SUM(1)", "'; DROP TABLE preds; --", "a\\'b", 'x"y', "`a`", "[bold red]x[/]", ":smile:",
    "\x1b[31mred", "\x00", "\u202eabc", "\u2028", "\x85", "\ud800", "e\u0301" * 40, "x" * 3000, "", " ", "nan", "inf",
    "-inf", "None", "true", "1e400", "007", "٣", "\N{FULLWIDTH DIGIT ONE}", "../../etc/passwd", "$x_{$", r"\[", "C:\\",
    "No evidence of miscalibration.", "__proto__", "constructor", "toString", "order", "select",
)  # fmt: skip
#: Values of JSON that stand where another was meant.
VALUES = (
    None, True, False, 0, -1, 1, 2, 1.5, -0.0, 1e308, -1e308, 5e-324, 2**53 + 1, 2**63, -(2**63), 2**64, 10**30, [], {},
    [[]], [None], {"a": 1}, {"": {}}, [1, 2, 3], [0.1] * 50, "0", "1", "0.5",
)  # fmt: skip


def any_text(rng: Rng) -> str:
    """A text that people could supply, most often an attack."""
    found = str(TEXTS[rng.integers(len(TEXTS))])
    return found + str(TEXTS[rng.integers(len(TEXTS))]) if rng.random() < 0.2 else found


def any_value(rng: Rng) -> Any:
    """A value of JSON."""
    return any_text(rng) if rng.random() < 0.5 else copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def sentence(error: Exception) -> str:
    """The text of an error if it is one sentence for people."""
    text = str(error)
    own = text.partition(" cannot be read")[0]  # what follows is the word of the library that read the file
    several = type(error).__name__ == "ProblemsError"  # a table with a line for each problem
    if awkward._RAW.search(own) or ("\n" in text) != several or not 15 <= len(text) <= (5000 if several else 900):
        raise Violation(f"no sentence for people: {type(error).__name__}: {text[:500]!r}") from error
    return text


# -- a JSON document, mutated -----------------------------------------------------------------------


def mutated(rng: Rng, whole: Any) -> Any:
    """The document with one or several of its places changed."""
    for _ in range(int(rng.integers(1, 4))):
        _change(rng, whole)
    return whole


def _change(rng: Rng, whole: Any) -> None:
    place = whole
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        inside = place[key]
        if isinstance(inside, dict | list) and inside and rng.random() < 0.9:
            place = inside
            continue
        how = rng.random()
        if how < 0.65:
            place[key] = _like(rng, inside)
        elif how < 0.75:
            del place[key]
        elif how < 0.85 and isinstance(place, dict):
            place[any_text(rng)] = place.pop(key)
        elif isinstance(place, list):
            place.insert(int(key), copy.deepcopy(place[rng.integers(len(place))]))
        else:
            place[any_text(rng)] = any_value(rng)
        return


def _like(rng: Rng, old: Any) -> Any:
    """Another value; half of the time of the same type, so that types alone do not find it."""
    if rng.random() < 0.35:
        return any_value(rng)
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return int(rng.choice([-1, 0, 1, 2, 10**6, 2**31, 2**53]))
    if isinstance(old, float):
        return float(rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0, 1e300, -1e300, 1e-320]))
    return any_text(rng)


def as_text(rng: Rng, whole: Any) -> bytes:
    """The document as JSON, sometimes damaged afterwards."""
    text = json.dumps(whole, indent=1 if rng.random() < 0.02 else None)
    if rng.random() < 0.12:
        at = int(rng.integers(len(text) + 1))
        what = str(rng.choice(["", '"', "{", "]", ",", "NaN", "1e999", "9" * 400, "[" * 200, "\\u0000", "\ufeff", "é"]))
        text = text[:at] + what + text[at + int(rng.integers(3)) :]
    content = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.05:
        content = damaged(rng, content)
    return gzip.compress(content, 1) if rng.random() < 0.01 else content


def damaged(rng: Rng, content: bytes) -> bytes:
    """The bytes cut off, changed at some places, or with others between them."""
    at = int(rng.integers(len(content) + 1)) if content else 0
    how = rng.random()
    if how < 0.3:
        return content[:at]
    if how < 0.8:
        changed = bytearray(content)
        for _ in range(int(rng.integers(1, 6))):
            if changed:
                changed[rng.integers(len(changed))] = int(rng.integers(256))
        return bytes(changed)
    return content[:at] + rng.bytes(int(rng.integers(1, 9))) + content[at:]


# -- saved files ------------------------------------------------------------------------------------

SMALL_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><g id="a"><path d="M 0 0 L 1 1" '
    'style="stroke:#000000"/><text>ece</text></g></svg>'
)


@functools.cache
def _data() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    p = rng.random(80)
    many = rng.dirichlet(np.ones(3), 80)
    return (rng.random(80) < p**1.5).astype(int), p, np.array([rng.choice(3, p=row) for row in many]), many


#: One document of every kind as 0.3 saves it; ``python tests/doors.py`` makes it again.
ORIGINALS = Path(__file__).parent / "reference" / "saved_files.json"


@functools.cache
def originals() -> dict[str, Any]:
    """One document of every kind, as it is saved."""
    return dict(json.loads(ORIGINALS.read_text(encoding="utf-8")))


def _made_originals() -> dict[str, Any]:
    import matplotlib as mpl

    mpl.use("agg")
    from calibrary.reporting.stored import as_json

    y, p, k, q = _data()
    fast: dict[str, Any] = {"n_resamples": 39, "metrics": ["ece", "bs"], "rng": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = cal.report(y, p, by={"site": np.arange(80) % 3}, thresholds=[0.3], time=np.arange(80), **fast)
        several = [cal.report(k, q, about={"title": title}, **fast) for title in ("a", "b")]
        compared = [
            ("bs", cal.compare("bs", k, q, q**1.1 / (q**1.1).sum(axis=1, keepdims=True), n_resamples=39, rng=0))
        ]
    found = {"report": json.loads(as_json([one])), "reports": json.loads(as_json(several, compared))}
    for word in ("platt", "beta", "isotonic", "rcs", "bins", "temperature"):
        found[f"map {word}"] = sealed(cal.Recalibrator(word).fit(p, y).to_dict())
    for word in ("bias_temperature", "multinomial_spline", "platt"):
        found[f"map of classes {word}"] = sealed(cal.Recalibrator(word).fit(q, k).to_dict())
    found["study"] = sealed({"format": "calibrary study", "version": 1, **_small_study()})
    for name in ("report", "reports"):
        _shrink(found[name])
    return found


@functools.cache
def _packed() -> dict[str, bytes]:
    return {name: pickle.dumps(whole) for name, whole in originals().items()}


def fresh(name: str) -> Any:
    """A copy of an original that may be changed."""
    return pickle.loads(_packed()[name])


def _small_study() -> dict[str, Any]:
    """The stored study with three metrics, two sizes and a few worlds."""
    from calibrary import study

    whole = copy.deepcopy(dict(study.stored_study().found))
    names, sizes = ["bs", "ece", "smece"], sorted(whole["sizes"], key=int)[1:3]
    whole["numbers"] = {name: whole["numbers"][name] for name in names}
    for part in ("sizes", "means", "powers"):
        whole[part] = {n: {k: v for k, v in whole[part][n].items() if k in names} for n in sizes}
    worlds = list(whole["worlds"])[:4]
    whole["worlds"] = {w: whole["worlds"][w] for w in worlds}
    for part in ("means", "powers"):
        whole[part] = {n: {k: v[:4] for k, v in by.items()} for n, by in whole[part].items()}
    whole["classes"] = {"worlds": {}, "sizes": {}}
    whole["correlation"] = {"n": 300, "names": ["a", "b"], "rho": [[1.0, 0.5], [0.5, 1.0]]}
    whole["real"] = dict(list(whole["real"].items())[:3])
    whole["tests"] = {n: dict(list(whole["tests"][n].items())[:2]) for n in sizes}
    whole["binnings"] = {n: whole["binnings"][n] for n in sizes}
    whole["left_out"] = dict(list(whole["left_out"].items())[:2])
    return whole


def _shrink(report: dict[str, Any]) -> None:
    """Small pictures in place of drawn ones: the same reader, a hundredth of the bytes."""
    for model in report.get("models", [report]):
        for figure in [*model["figures"], *(f for s in model["sections"] for f in s["figures"])]:
            figure["svg"] = SMALL_SVG
        del model["figures"][2:]
        for section in model["sections"]:
            for table in section["tables"]:
                del table["rows"][3:]
    report.pop("digest", None)
    report.update(sealed(report))


def saved_turn(rng: Rng, folder: Path) -> str:
    """A saved report, map or study with changes: it is refused in one sentence, or what it gives is in order."""
    kind = str(rng.choice(("report", "map", "study"), p=(0.36, 0.52, 0.12)))
    names = [name for name in originals() if name.startswith(kind)]
    name = names[rng.integers(len(names))]
    seal = rng.random()
    changed = fresh(name)
    if seal > 0.1:
        del changed["digest"]
    mutated(rng, changed)
    if seal > 0.85:
        with contextlib.suppress(ValueError):
            changed = sealed(changed)
    content = as_text(rng, changed)
    path = folder / "saved.json"
    path.write_bytes(content)
    try:
        found = _load(name, path)
    except SavedFileError as error:
        if "saved.json" not in sentence(error):
            raise Violation(f"the sentence does not name the file: {error}") from error
        return f"{name.split()[0]}: sentence"
    _use(name, found, rng)
    return f"{name.split()[0]}: read"


def _load(name: str, path: Path) -> Any:
    if name.startswith("report"):
        from calibrary.reporting.stored import from_json

        return from_json(path)
    if name == "study":
        from calibrary.study import StudyResult

        return StudyResult.load(path)
    return cal.Recalibrator.load(path)


def _use(name: str, found: Any, rng: Rng) -> None:
    if name.startswith("report"):
        reports, comparisons = found
        from calibrary.reporting.html import page
        from calibrary.reporting.stored import as_json

        if rng.random() < 0.15:
            look_at(page(reports, comparisons))
            as_json(reports, comparisons)
        elif reports:
            look_at(reports[0]._repr_html_(), whole=False)
            str(reports[0])
    elif name == "study":
        str(found)
        list(found.table)
    else:
        _, p, _, q = _data()
        given = p if found.n_features_in_ == 1 else np.column_stack([1 - p, p]) if found.n_features_in_ == 2 else q
        with np.errstate(all="raise", under="ignore"):
            try:
                result = np.asarray(found.transform(given))
            except ValueError as error:
                sentence(error)
                return
        if not ((result >= 0.0) & (result <= 1.0)).all():
            raise Violation(f"a map gave {result.min()} to {result.max()}")


# -- states -----------------------------------------------------------------------------------------


@functools.cache
def _state_table() -> Any:
    y, p, _, _ = _data()
    return cal.scale.State().update(y, p).to_table()


def state_turn(rng: Rng, folder: Path) -> str:
    """A saved state with other numbers, columns or facts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _state_table()
    metadata = dict(table.schema.metadata or {})
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    about = json.loads(metadata[b"calibrary"])
    if rng.random() < 0.6:
        about = mutated(rng, about)
    if rng.random() < 0.6:
        name = list(columns)[rng.integers(len(columns))]
        change = _like(rng, columns[name][0])
        columns[name] = [change if rng.random() < 0.2 else v for v in columns[name]]
    if rng.random() < 0.2:
        columns.pop(list(columns)[rng.integers(len(columns))])
    try:
        made = pa.table(columns)
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError):
        return "state: not writable"
    text = json.dumps(about, default=str).encode()
    if rng.random() < 0.1:
        text = damaged(rng, text)
    path = folder / "state.parquet"
    pq.write_table(made.replace_schema_metadata({**metadata, b"calibrary": text}), path)
    if rng.random() < 0.2:
        path.write_bytes(damaged(rng, path.read_bytes()))
    try:
        state = cal.scale.State.load(path)
    except (ValueError, OverflowError) as error:
        sentence(error)
        return "state: sentence"
    value = cal.compute("bs", state.as_predictions()) if state.n else np.nan
    if not (np.isnan(value) or 0.0 <= value <= 1.0):
        raise Violation(f"a state gave a Brier score of {value}")
    return "state: read"


# -- pages as text ----------------------------------------------------------------------------------

#: Every element that our pages have.
_OURS = (
    "html head meta title style body a main article header footer nav section div span p h1 h2 h3 ul ol li dl dt dd b "
    "strong em code table caption thead tbody tr th td details summary button select option optgroup label input "
    "output figure figcaption svg g path rect circle line text tspan defs use clippath polyline polygon image desc "
    "template dialog script iframe"
)
ELEMENTS = frozenset(_OURS.split())


@functools.cache
def our_script() -> str:
    """The hash of the one script that a page has."""
    from calibrary.reporting.html import script

    return base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()


class _Looker(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts = 0
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ELEMENTS:
            raise Violation(f"an element that is not ours: {tag[:60]!r}")
        given = {name: value or "" for name, value in attrs}
        if tag == "iframe":  # a whole page, which a notebook shows in no origin
            if set(given) != {"srcdoc", "title", "sandbox", "style"} or "same-origin" in given["sandbox"]:
                raise Violation(f"a frame that is not ours: {sorted(given)}")
            look_at(given.pop("srcdoc"))
        if any(name.startswith("on") or name in ("src", "srcdoc", "action", "formaction", "ping") for name in given):
            raise Violation(f"an attribute that is not ours: {sorted(given)}")
        for name in ("href", "xlink:href"):
            value = given.get(name, "#")
            if not value.startswith(("#", "data:image/png;base64,")):
                raise Violation(f"a link that leads elsewhere: {value[:60]!r}")
        if "url(" in given.get("style", "").replace("url(#", ""):
            raise Violation(f"a style that loads: {given['style'][:60]!r}")
        if tag == "meta" and given.get("http-equiv", "Content-Security-Policy") != "Content-Security-Policy":
            raise Violation(f"a meta element that is not ours: {given}")
        self.inside = tag
        self.scripts += tag == "script"

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            found = base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()
            if found != our_script():
                raise Violation(f"a script that is not ours: {data[:60]!r}")
        self.inside = ""


def look_at(text: str, whole: bool = True) -> None:
    """Refuse a page in which anything but our own elements, attributes and script stands."""
    looker = _Looker()
    looker.feed(text)
    looker.close()
    if looker.scripts != int(whole):
        raise Violation(f"{looker.scripts} scripts")


# -- tables -----------------------------------------------------------------------------------------

CELLS = (
    None, "", " ", "nan", "NaN", "NA", "null", "inf", "-inf", "1e400", "0.5", "50%", "0,5", "1_000", "0x1", "007", "7",
    "٣", True, False, 0, 1, 2, -1, 0.5, 1.0, 1.5, -0.25, 50.0, float("nan"), float("inf"), 2**53 + 1, 2**62, -(2**63),
    1e-320, "yes", "no", "<b>", "=1+1", "a,b", 'a"b', "a\nb", "a\rb", "\u2028", "\x85", "\x00", "é", "\ufeff",
    "x" * 500, "2024-01-01", "12345678901234567890", "1e5", "+1", "--1", ".5", "5.", "1.0.0",
)  # fmt: skip
FORMATS = ("csv", "tsv", "json", "jsonl", "columns.json", "parquet", "arrow", "stream.arrow", "npz", "xlsx")


def drawn_table(rng: Rng) -> tuple[dict[str, list[Any]], bool, dict[str, Any]]:
    """Columns by name, whether every column is of one type that all formats have, and how they are read."""
    n = int(rng.choice([1, 2, 5, 12, 30]))
    k = int(rng.choice([1, 1, 1, 3]))
    p = rng.random(n) if k == 1 else rng.dirichlet(np.ones(k), n)
    classes = [[0, 1], ["cat", "dog"], [False, True], [7, 9], [2**60, 2**60 + 1]][rng.integers(5)]
    classes = classes if k == 1 else [0, 1, 2]
    label = [classes[i] for i in rng.integers(0, len(classes), n)]
    options: dict[str, Any] = {"label": "y", "prob": ["p"]}
    options |= {"positive": str(classes[1])} if k == 1 and classes[0] and classes[1] in label else {}
    columns: dict[str, list[Any]] = {"y": label}
    columns |= {"p": p.tolist()} if k == 1 else {f"p{j}": p[:, j].tolist() for j in range(k)}
    if rng.random() < 0.3:
        columns["w"] = [int(x) for x in rng.integers(0, 4, n)]
    if rng.random() < 0.3:
        columns["id"] = [int(x) + 2**61 for x in rng.integers(0, 9, n)]
    options |= {"weight": "w"} if "w" in columns and rng.random() < 0.7 else {}
    options |= {"others": ["id"]} if "id" in columns else {}
    if rng.random() < 0.3:
        return columns, True, options
    for _ in range(int(rng.integers(1, 5))):
        name = list(columns)[rng.integers(len(columns))]
        how = rng.random()
        if how < 0.7:
            columns[name][rng.integers(n)] = CELLS[rng.integers(len(CELLS))]
        elif how < 0.8:
            columns[name] = [CELLS[rng.integers(len(CELLS))]] * n
        elif how < 0.9:
            columns[any_text(rng)] = columns.pop(name)
            return columns, False, options
        else:
            columns[any_text(rng)] = [CELLS[rng.integers(len(CELLS))] for _ in range(n)]
    return columns, False, options


class NotWritableError(Exception):
    """This format has no way to hold the table."""


def written(columns: dict[str, list[Any]], kind: str) -> bytes:
    """The table as the bytes of a file."""
    try:
        return _WRITERS[kind](columns)
    except (ValueError, TypeError, OverflowError, UnicodeError, NotImplementedError) as error:
        raise NotWritableError from error


def _as_csv(columns: dict[str, list[Any]], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue().encode("utf-8")


def _records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _as_arrow(columns: dict[str, list[Any]], kind: str) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pa.table(columns)
    except pa.ArrowException:
        table = pa.table({k: pa.array([None if x is None else str(x) for x in v]) for k, v in columns.items()})
    out = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, out)
    else:
        with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


def _as_npz(columns: dict[str, list[Any]]) -> bytes:
    out = io.BytesIO()
    arrays = {name: np.array(values) for name, values in columns.items()}
    if any("/" in name or not name or name == "file" or "\x00" in name for name in arrays):
        raise ValueError
    np.savez(out, **arrays)
    return out.getvalue()


def _as_xlsx(columns: dict[str, list[Any]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    try:
        sheet.append(list(columns))
        for row in zip(*columns.values(), strict=True):
            sheet.append(list(row))
        out = io.BytesIO()
        book.save(out)
    except openpyxl.utils.exceptions.IllegalCharacterError as error:
        raise ValueError from error
    return out.getvalue()


_WRITERS: dict[str, Callable[[dict[str, list[Any]]], bytes]] = {
    "csv": _as_csv,
    "tsv": lambda c: _as_csv(c, "\t"),
    "json": lambda c: json.dumps(_records(c)).encode(),
    "jsonl": lambda c: "\n".join(json.dumps(r) for r in _records(c)).encode(),
    "columns.json": lambda c: json.dumps(c).encode(),
    "parquet": lambda c: _as_arrow(c, "parquet"),
    "arrow": lambda c: _as_arrow(c, "file"),
    "stream.arrow": lambda c: _as_arrow(c, "stream"),
    "npz": _as_npz,
    "xlsx": _as_xlsx,
}


def answer(path: Path, options: dict[str, Any]) -> tuple[str, Any]:
    """What a file gives: the Brier score and what it was computed from, or a sentence."""
    from calibrary.cli.read import read_predictions

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            warnings.simplefilter("error", RuntimeWarning)
            found = read_predictions(path, **options)
            units = len(set(map(str, found.others["id"]))) if "id" in found.others else 0
            return "number", (round(float(cal.compute("bs", found.predictions())), 12), len(found.y), units)
    except (ValueError, TypeError, ModuleNotFoundError) as error:
        return "sentence", sentence(error)


def table_turn(rng: Rng, folder: Path) -> str:
    """A table in two formats: each gives a number or a sentence, and where both give numbers these are the same."""
    columns, clean, options = drawn_table(rng)
    options |= (
        {str(rng.choice(["drop_missing", "percent", "logits", "drop_invalid"])): True} if rng.random() < 0.2 else {}
    )
    outcomes = []
    kinds = list(rng.choice(FORMATS, 2, replace=False, p=_SHARES))
    hurt = not clean and rng.random() < 0.4
    for kind in kinds:
        try:
            content = written(columns, kind)
        except NotWritableError:
            outcomes.append((kind, "not writable", None))
            continue
        content = damaged(rng, content) if hurt else content
        packed = ".gz" if rng.random() < 0.05 and kind in ("csv", "jsonl") else ""
        path = folder / f"table.{kind}{packed}"
        path.write_bytes(gzip.compress(content, 1) if packed else content)
        outcomes.append((kind, *answer(path, options)))
    numbers = [found for _, how, found in outcomes if how == "number"]
    if clean and len(numbers) == 2 and numbers[0] != numbers[1]:
        raise Violation(f"{outcomes} of one table: {columns}")
    digits_lost = any("beyond 2^53" in str(found) for kind, _, found in outcomes if kind == "xlsx")
    if clean and {how for _, how, _ in outcomes} == {"number", "sentence"} and not digits_lost:
        raise Violation(f"{outcomes} of one table: {columns}")
    return f"table {kinds[0]}: {outcomes[0][1]}"


#: Spreadsheets take longest to write.
_SHARES = np.array([0.02 if kind == "xlsx" else 0.98 / 9 for kind in FORMATS])


# -- SQL names --------------------------------------------------------------------------------------


def sql_turn(rng: Rng, folder: Path) -> str:
    """Keys and labels of any name: a sentence, or text that SQLite runs and that counts every row once."""
    y, p = _data()[0][:8], _data()[1][:8]  # the text takes long to run on each row
    key, positive = any_text(rng), any_text(rng)
    labels = [any_text(rng), positive] if rng.random() < 0.5 else None
    options: dict[str, Any] = {"by": key} if rng.random() < 0.6 else {}
    try:
        text = cal.scale.sql("preds", label="y", prob="p", labels=labels, **options)
    except (ValueError, TypeError) as error:
        sentence(error)
        return "sql: sentence"
    db = sqlite3.connect(":memory:")
    named = '"' + key.replace('"', '""') + '"' if options else "site"
    try:
        db.execute(f"CREATE TABLE preds (y, p REAL, {named})")
    except (sqlite3.Error, ValueError, UnicodeError):
        return "sql: no such column"
    rows = [(labels[i] if labels else int(i), float(c), int(j % 3)) for j, (i, c) in enumerate(zip(y, p, strict=True))]
    try:
        db.executemany("INSERT INTO preds VALUES (?, ?, ?)", rows)
        # SQLite writes the steps into each other, which takes it a hundred times as long as to run them one by one
        cursor = db.execute(text if rng.random() < 0.02 else text.replace(" AS (\n", " AS MATERIALIZED (\n"))
        found = cursor.fetchall()
    except (UnicodeError, ValueError):
        return "sql: no such text"
    except sqlite3.Error as error:
        raise Violation(f"the text does not run: {error} for key={key!r}, labels={labels!r}") from error
    n = [name for name, *_ in cursor.description].index("n")
    counted = sum(row[n] for row in found)
    if counted != len(y) and not (labels and labels[0] == labels[1]):
        raise Violation(f"{counted} rows of {len(y)} for key={key!r}, labels={labels!r}")
    if db.execute("SELECT COUNT(*) FROM preds").fetchone()[0] != len(y):
        raise Violation(f"the table was changed by key={key!r}, labels={labels!r}")
    return "sql: run"


# -- command lines ----------------------------------------------------------------------------------

COMMANDS = (
    "metric ece",
    "metric bs",
    "metric",
    "explain list",
    "explain ece",
    "explain",
    "explain recommend",
    "scale sql",
    "schema",
    "compare",
)
OPTIONS = (
    "--label", "--prob", "--weight", "--unit", "--blocks", "--positive", "--lens", "--bins", "--resamples", "--seed",
    "--percent", "--logits", "--drop-missing", "-q", "--json", "--help", "--by", "--fail-if", "--resolution", "--group",
    "--option", "--level", "--method", "--interval", "--nonsense",
)  # fmt: skip
WORDS = (
    "y",
    "p",
    "0",
    "1",
    "-1",
    "5",
    "1e9",
    "auto",
    "class-wise",
    "nan",
    "ece",
    "",
    "-",
    "--",
    "p.csv",
    "none.csv",
    ".",
)


def command_turn(rng: Rng, folder: Path) -> str:
    """A command line of any words: status 0, or 2 with one sentence; never a traceback."""
    from calibrary.cli.main import main

    path = folder / "p.csv"
    if not path.exists():
        y, p, _, _ = _data()
        path.write_bytes(_as_csv({"y": y.tolist(), "p": p.tolist()}))
    words = str(rng.choice(COMMANDS)).split()
    words += [str(path)] if rng.random() < 0.8 else []
    for _ in range(int(rng.integers(0, 5))):
        words.append(str(OPTIONS[rng.integers(len(OPTIONS))]) if rng.random() < 0.6 else _word(rng))
    words = [word.encode("utf-8", "replace").decode().replace("\x00", "") for word in words]
    if {"1e9", "--resamples"} <= set(words):
        return "command: left out"
    said, argv, stdin, here = io.StringIO(), sys.argv, sys.stdin, Path.cwd()
    sys.argv, sys.stdin = ["calibrary", *words], io.TextIOWrapper(io.BytesIO(b""))
    status: Any = 0
    try:
        os.chdir(folder)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            main()
    except SystemExit as ended:
        status = ended.code or 0
    finally:
        sys.argv, sys.stdin = argv, stdin
        os.chdir(here)
    gated = any(word.startswith("--fail") for word in words)
    if (
        status not in ((0, 1, 2) if gated else (0, 2))
        or "Traceback" in said.getvalue()
        or "a fault of" in said.getvalue()
    ):
        raise Violation(f"status {status} of {words}: {said.getvalue()[-400:]}")
    return f"command: status {status}"


def _word(rng: Rng) -> str:
    return str(WORDS[rng.integers(len(WORDS))]) if rng.random() < 0.6 else any_text(rng)


# -- sequences of calls in threads ------------------------------------------------------------------


#: Functions of the public table that are called; classes and rooms are used by their examples.
CALLED = ("verb", "table", "metric", "test", "helper")


def _calls() -> dict[str, Callable[[], Any]]:
    """Every public function as its documentation calls it, and longer ways through the library."""
    found = {name: functools.partial(_example, text) for name, text in examples().items()}
    return found | _longer_calls()


@functools.cache
def examples() -> dict[str, str]:
    """The example in the docstring of each public name that has one."""
    docs = {name: inspect.getdoc(getattr(cal, name)) or "" for name in PUBLIC if PUBLIC[name].kind in (*CALLED, "noun")}
    return {name: text for name, text in docs.items() if doctest.DocTestParser().get_examples(text)}


def _example(text: str) -> list[Any]:
    """The values and the printed texts of an example."""
    told: list[Any] = []
    names: dict[str, Any] = {"__name__": "example", "print": lambda *given, **_: told.append(list(map(str, given)))}
    for line in doctest.DocTestParser().get_examples(text):
        try:
            code = compile(line.source, "<example>", "eval")
        except SyntaxError:
            exec(compile(line.source, "<example>", "exec"), names)
        else:
            told.append(eval(code, names))
    return told


def _longer_calls() -> dict[str, Callable[[], Any]]:
    y, p, k, q = _data()
    return {
        "sigmoid": lambda: cal.sigmoid(p),
        "softmax": lambda: cal.softmax(q),
        "code_matrix": lambda: cal.code_matrix(3),
        "read_yolo": lambda: cal.read_yolo(*_yolo()),
        "decide": lambda: cal.decide(cal.predictions(y, p), cal.Question(n_resamples=39, rng=0)).to_dict(),
        "gain": lambda: cal.recalibration_gain(y, p, rng=0).to_dict(),
        "classes": lambda: cal.compute("ece", k, q, lens="class-wise"),
        "state": lambda: cal.compute("bs", cal.scale.State().update(y, p).as_predictions()),
        "page": lambda: len(cal.report(y, p, n_resamples=39, metrics=["ece"], rng=0).to_html()),
        "plots.smooth_data": lambda: cal.plots.smooth_data(y, p, n_resamples=19, rng=0),
        "plots.corp_data": lambda: cal.plots.corp_data(y, p, n_resamples=19, rng=0),
        "refused": lambda: _refused(y),
    }


@functools.cache
def _yolo() -> tuple[str, str]:
    lines = ("0 0.5 0.5 0.2 0.2", "0 0.5 0.5 0.2 0.2 0.9")
    folders = [Path(tempfile.mkdtemp()) for _ in lines]
    for folder, line in zip(folders, lines, strict=True):
        (folder / "a.txt").write_text(f"{line}\n")
    return str(folders[0]), str(folders[1])


def flat(value: Any) -> list[Any]:
    """The numbers and texts of an answer, whatever its type."""
    if isinstance(value, str | bytes) or value is None:
        return [value]
    if isinstance(value, dict):
        return flat(list(value.items()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return flat([getattr(value, f.name) for f in dataclasses.fields(value)])
    if isinstance(value, np.ndarray):
        return flat(value.tolist())
    if isinstance(value, list | tuple):
        return [one for part in value for one in flat(part)]
    return [float(value)] if isinstance(value, int | float | np.number) else [type(value).__name__]


def same(a: list[Any], b: list[Any]) -> bool:
    """Equal but for the last digits, in which compiled and plain loops differ."""
    return len(a) == len(b) and all(
        math.isclose(x, z, rel_tol=1e-9, abs_tol=1e-12) or (x != x and z != z)
        if isinstance(x, float) and isinstance(z, float)
        else x == z
        for x, z in zip(a, b, strict=True)
    )


def _refused(y: Any) -> str:
    try:
        cal.compute("ece", y, np.full(len(y), 2.0))
    except ValueError as error:
        return str(error)
    raise Violation("a probability of 2 was taken")


@functools.cache
def _expected(name: str) -> list[Any]:
    """The answer of a call alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flat(_calls()[name]())


def process_state() -> tuple[Any, ...]:
    """What a call must leave as it was: filters, figures' settings, environment, seeds, signals, numpy's errors."""
    rc = tuple(sorted((k, repr(v)) for k, v in sys.modules["matplotlib"].rcParams.items() if k != "backend")) \
        if "matplotlib" in sys.modules else ()  # fmt: skip
    handlers = tuple(signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGPIPE", 2)))
    import random

    return (
        tuple(warnings.filters), warnings.showwarning, rc, tuple(sorted(os.environ.items())), random.getstate(),
        repr(np.random.get_state()), handlers, tuple(sorted(np.geterr().items())), Path.cwd(), sys.getrecursionlimit(),  # noqa: NPY002
        sys.excepthook, threading.excepthook,
    )  # fmt: skip


def thread_turn(rng: Rng, folder: Path) -> str:
    """Functions drawn at random in four threads: the answers are those of one thread, and the process is as before."""
    calls = _calls()
    names = [[str(name) for name in rng.choice(list(calls), 6)] for _ in range(4)]
    expected = {name: _expected(name) for mine in names for name in mine}
    wrong: list[str] = []

    def work(mine: list[str]) -> None:
        for name in mine:
            try:
                found = flat(calls[name]())
            except Exception as error:
                found = [repr(error)]
            if not same(found, expected[name]):
                wrong.append(f"{name}: {str(found)[:200]} and {str(expected[name])[:200]} alone")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = process_state()
        threads = [threading.Thread(target=work, args=(mine,)) for mine in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        after = process_state()
    if wrong:
        raise Violation("; ".join(wrong))
    if after != before:
        which = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        raise Violation(f"the process was left changed at {which} by {names}")
    return "threads: as alone"


# -- pages in a browser -----------------------------------------------------------------------------

#: In the window: for each page, whatever is not ours, and the verdict that is read.
INSPECT = """
return [...document.querySelectorAll('iframe')].map(frame => {
  const page = frame.contentDocument, all = [...page.querySelectorAll('*')];
  const owned = frame.contentWindow.owned || window.owned;
  const handlers = all.filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length;
  const links = all.filter(e => e.getAttribute('href') && !/^(#|data:image.png)/.test(e.getAttribute('href'))).length;
  const line = page.querySelector('p.headline, h3 + p');
  const box = line && line.getBoundingClientRect();
  const style = line && frame.contentWindow.getComputedStyle(line);
  const seen = line && box.width > 20 && box.height > 5 && style.visibility == 'visible' && style.opacity == '1';
  return [!!owned, handlers, links, [...page.scripts].map(s => s.textContent), line ? line.textContent : null, !!seen,
          [...new Set(all.map(e => e.tagName.toLowerCase()))]];
});
"""
#: Pages of one window.
TOGETHER = 40


def drawn_page(rng: Rng, folder: Path) -> tuple[str, str, bool] | None:
    """A changed report that is accepted: its page, its verdict, and whether it is a whole page (else a notebook's)."""
    from calibrary.base.text import plain
    from calibrary.reporting.html import page
    from calibrary.reporting.stored import from_json

    path = folder / "saved.json"
    for _ in range(60):
        name = "report" if rng.random() < 0.8 else "reports"
        changed = fresh(name)
        del changed["digest"]
        changed = hostile_text(rng, changed) if rng.random() < 0.7 else mutated(rng, changed)
        path.write_bytes(json.dumps(changed).encode("utf-8", "surrogatepass"))
        try:
            reports, comparisons = from_json(path)
        except SavedFileError:
            continue
        if reports and plain(reports[0].headline, None).strip():
            break
    else:
        return None
    whole = len(reports) > 1 or bool(rng.random() < 0.6)
    text = page(reports, comparisons) if whole else f"<!doctype html><meta charset=utf-8>{reports[0]._repr_html_()}"
    return text, " ".join(plain(reports[0].headline, None).split()), whole


def page_turn(seeds: range, folder: Path, driver: Any) -> list[tuple[int, str]]:
    """Pages in one window of a browser: no other script, no request, and each verdict is seen; the faults by seed."""
    drawn = {seed: found for seed in seeds if (found := drawn_page(np.random.default_rng([seed, 99]), folder))}
    frames = "".join(
        f'<iframe style="width:900px;height:700px" srcdoc="{html.escape(text)}"></iframe>'
        for text, _, _ in drawn.values()
    )
    file = folder / "window.html"
    file.write_bytes(f"<!doctype html><meta charset=utf-8><title>w</title>{frames}".encode("utf-8", "replace"))
    driver.get_log("performance")
    driver.get(file.as_uri())
    found = driver.execute_script(INSPECT)
    asked = [e["message"] for e in driver.get_log("performance") if "Network.requestWillBeSent" in e["message"]]
    requests = [m for m in asked if not re.search(r'"url":"(file|data|about|blob):', m)]
    faults = [
        (seed, fault) for (seed, page), one in zip(drawn.items(), found, strict=True) if (fault := _fault(page, one))
    ]
    if requests or len(found) != len(drawn) or driver.title != "w":
        faults.append((seeds.start, f"a request left, or the window was changed: {requests[:1]} {driver.title!r}"))
    return faults


def _fault(page: tuple[str, str, bool], found: Any) -> str:
    """What is wrong with a page, or nothing."""
    _, said, whole = page
    owned, handlers, links, scripts, headline, seen, tags = found
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    if owned or handlers or links or hashes != ([our_script()] if whole else []):
        return f"owned={owned}, handlers={handlers}, links={links}, scripts={len(scripts)}"
    if set(tags) - ELEMENTS - {"lineargradient"}:
        return f"elements that are not ours: {set(tags) - ELEMENTS}"
    if not seen or " ".join((headline or "").split()) != said:
        return f"the verdict {said!r} is shown as {headline!r}, seen: {seen}"
    return ""


def hostile_text(rng: Rng, report: Any) -> Any:
    """The report with an attack in a third of its texts; keys, names of metrics and pictures stay."""
    keep = ("key", "id", "svg", "format", "lens", "settings", "metric")

    def changed(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {k: changed(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [changed(v, name) for v in value]
        return any_text(rng) if isinstance(value, str) and name not in keep and rng.random() < 0.3 else value

    return changed(report, "")


# -- all kinds --------------------------------------------------------------------------------------

KINDS: dict[str, Callable[[Rng, Path], str]] = {
    "saved": saved_turn,
    "state": state_turn,
    "table": table_turn,
    "sql": sql_turn,
    "command": command_turn,
    "threads": thread_turn,
}


def turn(kind: str, seed: int, folder: Path) -> str:
    """One case of one kind; whatever is raised that no kind knows is a violation."""
    rng = np.random.default_rng([seed, sorted(KINDS).index(kind)])
    try:
        return KINDS[kind](rng, folder)
    except Violation:
        raise
    except Exception as error:
        raise Violation(f"{type(error).__name__}: {str(error)[:300]}") from error


if __name__ == "__main__":
    ORIGINALS.write_text(json.dumps(_made_originals(), separators=(",", ":")) + "\n", encoding="utf-8")
