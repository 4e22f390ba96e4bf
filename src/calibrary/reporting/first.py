"""The sentences right below the headline: the worst segment, a remedy for it, and a remedy for all rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calibrary.base.claims import Sentence, claims_of, measured
from calibrary.base.numbers import percent
from calibrary.reporting.sections import Section


def first_lines(sections: Iterable[Section], alpha: float) -> list[Sentence]:
    """The most important sentences of the sections, each of which is in its section as well."""
    by_key = {s.key: s for s in sections}
    found = []
    if "affected" in by_key:
        found += _worst_segment(by_key["affected"], alpha)
    if "help" in by_key and "maps" in by_key["help"].data:
        advice = by_key["help"].sentences[0]
        found.append(Sentence(f"What would help: {advice}", *claims_of(advice)))
    return found


def _worst_segment(section: Section, alpha: float) -> list[Sentence]:
    """The worst segment if the worst-segment test rejects, and the effect of a separate map there."""
    worst = section.data.get("worst")
    if not isinstance(worst, Mapping):
        return []
    tested = zip(worst["table"]["segment"], worst["table"]["pvalue"], strict=True)
    name = next((str(segment) for segment, p in tested if segment != "all rows" and p < alpha), None)
    if name is None:
        return []
    said = section.sentences[0]
    return [
        Sentence(said, *claims_of(said)),
        *remedy_words(name, section.data.get("own_maps") or (), section.data.get("remedy") or ""),
    ]


def remedy_words(worst: str, own_maps: Iterable[Mapping[str, Any]], change: str = "") -> list[Sentence]:
    """Whether a separate map would help the worst segment or a segment that contains it.

    If no gain of a separate map is shown, ``change`` says how to correct the mean of the worst segment.
    """
    for gain in own_maps:
        rows = {f"{gain['by']} = {row['segment']}": row for row in gain["segments"]}
        inside = [
            name for name in rows if name == worst or worst.startswith(f"{name} and ") or worst.endswith(f" and {name}")
        ]
        if not inside:
            continue
        name = max(inside, key=len)
        if not gain["worth"]:
            more = "more than one map for all rows"
            if change:
                said = f"Remedy for {worst}: {change}; there is no evidence that a separate map helps {more}."
                return [Sentence(said, *claims_of(change))]
            return [Sentence(f"Remedy for {name}: there is no evidence that a separate map helps {more}.")]
        row = rows[name]
        said = (
            f"Remedy for {name}: a separate map would change its mean probability from {percent(row['stated'])} "
            f"to {percent(row['own'])}; the observed frequency is {percent(row['frequency'])}. One map for all rows "
            f"would change it to {percent(row['common'])}."
        )
        numbers = {f"{name} confidence": row["stated"], f"{name} outcome": row["frequency"]}
        alone = f" To correct the mean of {worst} alone, {change.partition(': ')[0]}." if change else ""
        return [Sentence(said + alone, measured(said, **numbers))]
    return [Sentence(f"Remedy for {worst}: {change}.", *claims_of(change))] if change else []
