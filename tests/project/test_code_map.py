"""The map of the code names every module once, and names nothing else."""

from __future__ import annotations

import re

from calibrary.metrics.machinery.cards import read_cards
from paths import ROOT

SOURCE = ROOT / "src" / "calibrary"


def _named():
    """The modules of the map's table, in its order."""
    for line in (ROOT / "docs" / "code-map.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and "`" in cells[1]:
            for place in re.findall(r"`([^`]+)`", cells[1]):
                folder = place.removesuffix("/")
                names = re.findall(r"`([^`]+)`", cells[3]) if place.endswith("/") else []
                yield from ([f"{folder}/{name}.py" for name in names] if place.endswith("/") else [place])


def test_every_module_is_named_once():
    modules = [str(p.relative_to(SOURCE).as_posix()) for p in SOURCE.rglob("*.py") if p.name != "__init__.py"]
    assert sorted(_named()) == sorted(modules)


def test_the_page_for_contributors_names_every_folder_and_family_of_metrics():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders, families = re.search(r"Find its folder\*\*(.*?)\(\[.*?`family =`(.*?)A binned", text, re.DOTALL).groups()
    metrics = SOURCE / "metrics"
    there = {p.parent.name for p in metrics.glob("*/__init__.py")} - {"machinery"}
    assert set(re.findall(r"`(\w+)`", folders)) == there
    declared = {card["family"] for card in read_cards().values()}
    assert set(re.findall(r"`(\w+)`", families)) == declared
