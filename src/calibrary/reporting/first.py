"""What a page says right below its headline: the worst segment, what would help in it, and what would help all rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calibrary.base.claims import Sentence, claims_of, measured
from calibrary.base.numbers import percent
from calibrary.reporting.sections import Section


def first_lines(sections: Iterable[Section], alpha: float) -> list[Sentence]:
    """The sentences of the sections that a reader must not miss, each of which stands in its section as well."""
    by_key = {s.key: s for s in sections}
    found = []
    if "affected" in by_key:
        found += _worst_segment(by_key["affected"], alpha)
    if "help" in by_key and "maps" in by_key["help"].data:
        advice = by_key["help"].sentences[0]
        found.append(Sentence(f"What would help: {advice}", *claims_of(advice)))
    return found


def _worst_segment(section: Section, alpha: float) -> list[Sentence]:
    """The worst segment where the test of all segments finds one, and what a map of its own would do there."""
    worst = section.data.get("worst")
    if not isinstance(worst, Mapping):
        return []
    tested = zip(worst["table"]["segment"], worst["table"]["pvalue"], strict=True)
    name = next((str(segment) for segment, p in tested if segment != "all rows" and p < alpha), None)
    if name is None:
        return []
    said = section.sentences[0]
    return [Sentence(said, *claims_of(said)), *remedy_words(name, section.data.get("own_maps") or ())]


def remedy_words(worst: str, own_maps: Iterable[Mapping[str, Any]]) -> list[Sentence]:
    """Whether a map of its own would help the segment that the worst one is, or lies in."""
    for gain in own_maps:
        rows = {f"{gain['by']} = {row['segment']}": row for row in gain["segments"]}
        inside = [name for name in rows if name == worst or f"{name} and " in worst or worst.endswith(f" and {name}")]
        if not inside:
            continue
        name = max(inside, key=len)
        if not gain["worth"]:
            beyond = "beyond one map for all rows"
            return [Sentence(f"Remedy there: there is no evidence that a map of its own for {name} helps {beyond}.")]
        row = rows[name]
        said = (
            f"Remedy there: a map of its own would bring the mean probability of {name} from {percent(row['stated'])} "
            f"to {percent(row['own'])}, with {percent(row['frequency'])} observed; one map for all rows would bring it "
            f"to {percent(row['common'])}."
        )
        told = {f"{name} confidence": row["stated"], f"{name} outcome": row["frequency"]}
        return [Sentence(said, measured(said, **told))]
    return []
