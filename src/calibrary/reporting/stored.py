"""A report as plain data and back: the JSON file is enough to reproduce the same page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from operator import methodcaller
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from calibrary.base.numbers import as_plain
from calibrary.base.saved import SavedFileError, opened, read_json, sealed, typed, value_of
from calibrary.evaluation import Evaluation, Row
from calibrary.inference import Comparison
from calibrary.reporting.figures import picture, stored
from calibrary.reporting.live import Live
from calibrary.reporting.model import ClassRow, GroupRow, Report, form
from calibrary.reporting.sections import ORDER, Figure, Section, Table
from calibrary.reporting.short import KeyNumber
from calibrary.reporting.verdict import COLOURS, NOT, UNKNOWN

FORMAT = "calibrary report"
#: Increased if a reader of an older version would misunderstand the file; added fields do not increase it.
VERSION = 1
#: Pairs of models: the metric and the result of comparing them.
Comparisons = Sequence[tuple[str, Comparison]]


@form("dict")
def as_dict(report: Report) -> dict[str, Any]:
    """Everything on a page, with figures as SVG; the predictions themselves are not included."""
    return {name: _AS_PLAIN.get(name, as_plain)(getattr(report, _FIELDS.get(name, name))) for name in _SAVED}


def _each(plain: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda values: [plain(value) for value in values]


#: What a saved report holds, in this order, the fields of a report that have other names there, and how they are saved.
_SAVED = (
    "title", "verdict", "tolerance", "facts", "headline", "findings", "decision", "primary", "short_list", "data",
    "settings", "evaluation", "classes", "groups", "sections", "figures", "curve", "notes", "about", "live",
)  # fmt: skip
_FIELDS = {"findings": "statements"}
#: Those that are saved as they are, and that no file lacks.
_NEEDED = ("title", "headline", "findings", "primary", "data", "settings", "notes")


def _figure(figure: Figure) -> dict[str, str]:
    return {"name": figure.name, "caption": figure.caption, "svg": str(picture(figure))}


def _section(section: Section) -> dict[str, Any]:
    tables = [{**vars(t), "head": list(t.head), "rows": as_plain(t.rows)} for t in section.tables]
    saved = {"tables": tables, "figures": [_figure(f) for f in section.figures], "data": as_plain(section.data)}
    return {"key": section.key, "title": section.title, "sentences": as_plain(section.sentences), **saved}


_AS_PLAIN: dict[str, Callable[[Any], Any]] = {
    "classes": _each(asdict),
    **dict.fromkeys(("short_list", "groups"), _each(methodcaller("to_dict"))),
    "headline": str,
    "sections": _each(_section),
    "figures": _each(_figure),
    "curve": _each(list),
    "notes": list,
    "about": dict,
    "evaluation": Evaluation.to_dict,
    "live": lambda live: None if live is None else live.to_dict(),
}


# -- JSON -------------------------------------------------------------------------------------------


def as_json(reports: Sequence[Report], comparisons: Comparisons = ()) -> str:
    """JSON with full precision; NaN and infinities become null and strings, so that any JSON reader accepts it."""
    models = [as_dict(r) for r in reports]
    whole = models[0] if len(models) == 1 else {"models": models}
    whole = {"format": FORMAT, "version": VERSION, **whole}
    if comparisons:
        whole = {**whole, "comparisons": [{"metric": m, **c.to_dict()} for m, c in comparisons]}
    plain = json.loads(json.dumps(any_reader(whole), default=str))
    return json.dumps(sealed(plain), indent=2) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every report in JSON fulfils."""
    text = (files("calibrary.reporting") / "report.schema.json").read_text(encoding="utf-8")
    return json.loads(text)


def any_reader(value: Any) -> Any:
    """The value with NaN replaced by null, and infinities by the words "inf" and "-inf", which JSON can represent."""
    if isinstance(value, dict):
        return {str(k): any_reader(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [any_reader(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


# -- and back ---------------------------------------------------------------------------------------


def from_json(source: str | Path) -> tuple[list[Report], Comparisons]:
    """The reports and comparisons of a file that ``save`` wrote."""
    whole = opened(read_json(source, "saved report"), "saved report", source, format=FORMAT, version=VERSION)
    models, comparisons = whole.get("models", [whole]), whole.get("comparisons", [])
    try:
        return [from_dict(m) for m in _list(models, "models")], tuple(
            _comparison(c) for c in _list(comparisons, "comparisons")
        )
    except SavedFileError as error:
        raise SavedFileError(f"{source} is not a saved report ({error}): write one with save('report.json')") from None


@form("from_dict")
def from_dict(saved: Mapping[str, Any]) -> Report:
    """The report from the result of :func:`as_dict`, also after it was saved as JSON."""
    if not isinstance(saved, Mapping):
        raise SavedFileError("a saved report must be a JSON object")

    def of(name: str, hint: Any) -> Any:
        if name not in saved:
            raise SavedFileError(f"it lacks {name!r}")
        return value_of(hint, saved[name], name)

    def each(name: str, kind: type) -> tuple[Any, ...]:
        return tuple(kind(**typed(kind, one)) for one in _list(saved.get(name, []), name))

    decision = value_of(dict[str, Any] | None, saved.get("decision"), "decision")
    hints = get_type_hints(Report)
    given = {_FIELDS.get(name, name): of(name, hints[_FIELDS.get(name, name)]) for name in _NEEDED}
    given |= {name: of(name, hints[name]) for name in ("curve", "about", "tolerance", "facts") if name in saved}
    return Report(
        **given,
        evaluation=_evaluation(of("evaluation", dict[str, Any]), decision),
        predictions=None,
        classes=each("classes", ClassRow),
        groups=each("groups", GroupRow),
        sections=tuple(_section_of(s) for s in _list(saved.get("sections", []), "sections")),
        short_list=each("short_list", KeyNumber),
        figures=_figures_of(saved.get("figures", [])),
        decision=decision,
        verdict=_verdict_of(saved, decision),
        live=None if saved.get("live") is None else value_of(Live, saved["live"], "live"),
    )


def _verdict_of(saved: Mapping[str, Any], decision: Mapping[str, Any] | None) -> str:
    """The verdict of a saved report; one saved before there were verdicts is never called calibrated."""
    if "verdict" not in saved:
        return "" if decision is None else NOT if decision.get("rejected") else UNKNOWN
    verdict: str = value_of(str, saved["verdict"], "verdict")
    if verdict not in COLOURS:
        raise SavedFileError(f"no verdict is called {verdict[:40]!r}")
    return verdict


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise SavedFileError(f"{what} is not a list")
    return list(value)


def _evaluation(saved: Mapping[str, Any], decision: Mapping[str, Any] | None) -> Evaluation:
    given = {k: v for k, v in saved.items() if k in _FACTS}
    facts = {k: v for k, v in typed(Evaluation, {"rows": [], **given}).items() if k != "rows"}
    if decision is not None:  # earlier versions saved the words of the decision with the table
        facts["settings"] = {"rejected": decision.get("rejected"), **facts.get("settings", {})}
    rows = tuple(Row(**typed(Row, _known(row))) for row in _list(saved.get("metrics"), "metrics"))
    settings = facts.get("settings", {})
    draws, level = settings.get("n_resamples", 0), settings.get("confidence_level", 0.95)
    if value_of(int, draws, "n_resamples") < 0:
        raise SavedFileError(f"n_resamples = {draws} must be at least 0")
    if not 0.0 < value_of(float, level, "confidence_level") < 1.0:
        raise SavedFileError(f"confidence_level = {level} must be between 0 and 1")
    return Evaluation(rows, **facts)


def _known(saved: Any) -> Any:
    """A saved row without what is unknown, which has the default then."""
    if not isinstance(saved, Mapping):
        return saved
    return {name: value for name, value in saved.items() if value is not None or name == "value"}


#: The fields of a table that are saved beside its rows.
_FACTS = ("skipped", "n", "n_classes", "lens", "settings")


@dataclass(frozen=True)
class _SavedFigure:
    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class _SavedSection:
    key: str
    title: str
    sentences: tuple[str, ...]
    tables: Any
    figures: Any
    data: dict[str, Any]


def _figures_of(saved: Any) -> tuple[Figure, ...]:
    return tuple(stored(**typed(_SavedFigure, one, "a figure")) for one in _list(saved, "figures"))


def _table_of(saved: Any) -> Table:
    table = Table(**typed(Table, saved, "a table"))
    if any(len(row) != len(table.head) for row in table.rows):
        raise SavedFileError(f"a table with {len(table.head)} columns has a row of another length")
    return table


def _section_of(saved: Any) -> Section:
    found = _SavedSection(**typed(_SavedSection, saved, "a section"))
    if found.key not in ORDER:
        raise SavedFileError(f"no section is called {found.key[:40]!r}")
    tables = tuple(map(_table_of, _list(found.tables, "tables")))
    return Section(found.key, found.title, found.sentences, tables, _figures_of(found.figures), found.data)


def _comparison(saved: Any) -> tuple[str, Comparison]:
    if not isinstance(saved, Mapping):
        raise SavedFileError("a comparison must be a JSON object")
    values = {k: v for k, v in saved.items() if k != "metric"}
    return value_of(str, saved.get("metric"), "metric"), Comparison(**typed(Comparison, values))
