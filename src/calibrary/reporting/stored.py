"""A report as plain data and back: what is written as JSON is enough to make the same page again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

from calibrary.evaluation import Evaluation, Row
from calibrary.inference import Comparison
from calibrary.reporting.figures import picture, stored
from calibrary.reporting.model import ClassRow, GroupRow, Report, form
from calibrary.reporting.schema import FORMAT, VERSION, refuse_other_version
from calibrary.reporting.sections import Figure, Section, Table
from calibrary.reporting.short import KeyNumber

#: Pairs of models: the metric and what comparing them by it gave.
Comparisons = Sequence[tuple[str, Comparison]]


@form("dict")
def as_dict(report: Report) -> dict[str, Any]:
    """Everything a page shows, its figures as SVG; the predictions themselves stay where they are."""
    return {
        "title": report.title,
        "headline": report.headline,
        "findings": list(report.findings),
        "decision": _plain(report.decision),
        "primary": report.primary,
        "short_list": [asdict(k) for k in report.short_list],
        "data": _plain(report.data),
        "settings": _plain(report.settings),
        "evaluation": report.evaluation.to_dict(),
        "classes": [asdict(c) for c in report.classes],
        "groups": [asdict(g) for g in report.groups],
        "sections": [_section(s) for s in report.sections],
        "figures": [_figure(f) for f in report.figures],
        "curve": [list(point) for point in report.curve],
        "notes": list(report.notes),
    }


def _figure(figure: Figure) -> dict[str, str]:
    return {"name": figure.name, "caption": figure.caption, "svg": picture(figure)}


def _section(section: Section) -> dict[str, Any]:
    return {
        "key": section.key,
        "title": section.title,
        "sentences": list(section.sentences),
        "tables": [{**vars(t), "head": list(t.head), "rows": _plain(t.rows)} for t in section.tables],
        "figures": [_figure(f) for f in section.figures],
        "data": _plain(section.data),
    }


def _plain(value: Any) -> Any:
    """Dictionaries, lists, text, numbers and None, whatever it was."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return _plain(value.tolist())
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


# -- JSON -------------------------------------------------------------------------------------------


def as_json(reports: Sequence[Report], comparisons: Comparisons = ()) -> str:
    """JSON with full precision; NaN and infinities become null and strings, so that any reader takes it."""
    models = [as_dict(r) for r in reports]
    whole = models[0] if len(models) == 1 else {"models": models}
    whole = {"format": FORMAT, "version": VERSION, **whole}
    if comparisons:
        whole = {**whole, "comparisons": [{"metric": m, **asdict(c)} for m, c in comparisons]}
    return json.dumps(_any_reader(whole), indent=2, default=str) + "\n"


def _any_reader(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _any_reader(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_any_reader(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


# -- and back ---------------------------------------------------------------------------------------


def from_json(source: str | Path) -> tuple[list[Report], Comparisons]:
    """The reports and comparisons of a file that ``save`` wrote."""
    try:
        whole = json.loads(Path(source).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{source} is no report: it does not hold JSON ({error})") from None
    refuse_other_version(whole, source)
    models = whole.get("models", [whole]) if isinstance(whole, dict) else [whole]
    comparisons = whole.get("comparisons", []) if isinstance(whole, dict) else []
    try:
        return [from_dict(m) for m in models], tuple(_comparison(c) for c in comparisons)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{source} is no saved report ({error}): write one with save('report.json')") from error


@form("from_dict")
def from_dict(saved: Mapping[str, Any]) -> Report:
    """The report that :func:`as_dict` wrote down, also by way of JSON."""
    return Report(
        title=saved["title"],
        headline=saved["headline"],
        findings=tuple(saved["findings"]),
        evaluation=_evaluation(saved["evaluation"]),
        primary=saved["primary"],
        data=_numbers(saved["data"]),
        settings=_numbers(saved["settings"]),
        predictions=None,
        classes=tuple(ClassRow(**_filled(ClassRow, c)) for c in saved["classes"]),
        groups=tuple(GroupRow(**_filled(GroupRow, g)) for g in saved["groups"]),
        notes=tuple(saved["notes"]),
        sections=tuple(_section_of(s) for s in saved.get("sections", ())),
        short_list=tuple(KeyNumber(**_filled(KeyNumber, k)) for k in saved.get("short_list", ())),
        figures=tuple(stored(**f) for f in saved.get("figures", ())),
        curve=tuple((float(x), y) for x, y in saved.get("curve", ())),
        decision=_numbers(saved.get("decision")),
    )


def _evaluation(saved: Mapping[str, Any]) -> Evaluation:
    rows = []
    for row in saved["metrics"]:
        values = _filled(Row, row)
        values["range"] = tuple(float(x) for x in values["range"])
        rows.append(Row(**values))
    named = {k: saved[k] for k in ("n", "n_classes", "lens", "settings")}
    return Evaluation(tuple(rows), dict(saved["skipped"]), **_numbers(named))


def _section_of(saved: Mapping[str, Any]) -> Section:
    return Section(
        saved["key"],
        saved["title"],
        tuple(saved["sentences"]),
        tuple(Table(**{**t, "head": tuple(t["head"]), "rows": _rows(t["rows"])}) for t in saved["tables"]),
        tuple(stored(**f) for f in saved["figures"]),
        _numbers(saved["data"]),
    )


def _rows(rows: Sequence[Sequence[Any]]) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(_numbers(cell) for cell in row) for row in rows)


def _comparison(saved: Mapping[str, Any]) -> tuple[str, Comparison]:
    values = {k: v for k, v in saved.items() if k != "metric"}
    return saved["metric"], Comparison(**_filled(Comparison, values))


def _filled(kind: type, saved: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they were; a missing number that must be one was NaN."""
    required = {f.name for f in fields(kind) if f.type == "float"}
    return {k: math.nan if v is None and k in required else _numbers(v) for k, v in saved.items()}


def _numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return float(value) if value in ("inf", "-inf") else value
