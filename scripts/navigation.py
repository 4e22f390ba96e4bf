"""The pages of metrics, by family, and of figures in the navigation (a hook of mkdocs)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from calibrary import catalogue
from calibrary.evaluation import FAMILIES
from calibrary.metrics.machinery.declare import Entry

SHORT = {
    "point": "Point",
    "bin": "Bins",
    "kernel": "Kernels",
    "curve": "Fitted curves",
    "cumulative": "Cumulative",
    "detection": "Detection",
}
_WRITTEN = {"brier": "Brier", "rms": "RMS", "knn": "kNN", "roc": "ROC"}


def heading(e: Entry) -> str:
    """The name of a metric as a heading writes it."""
    name = re.sub(r"\b(brier|rms|knn|roc)\b", lambda m: _WRITTEN[m[0]], e.name)
    return name if name[:2] == "kN" else f"{name[0].upper()}{name[1:]}"


def in_order(family: str) -> list[Entry]:
    """The metrics of a family: those of the review's Table 2 by row, then the others by name."""
    found = [e for e in catalogue.values() if e.family == family]
    return sorted(found, key=lambda e: (e.row or 1000, e.name.lower()))


def families() -> list[dict[str, list[Any]]]:
    """One chapter for each family: its own page and those of its metrics."""
    return [
        {SHORT[f]: [f"metrics/family-{f}.md", *({heading(e): f"metrics/{e.id}.md"} for e in in_order(f))]}
        for f in FAMILIES
    ]


def on_config(config: Any) -> Any:
    drawn = sorted(Path(config.docs_dir).glob("figures/*.md"))
    for chapter in config.nav:
        if "Metrics" in chapter:
            chapter["Metrics"].append({"By family": families()})
        if "Gallery" in chapter:
            chapter["Gallery"] += [f"figures/{page.name}" for page in drawn]
    return config
