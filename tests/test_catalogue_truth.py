"""What the catalogue says about the literature and the review is true and complete, for every entry."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

import calibrary as cal
from calibrary.metrics.literature import LITERATURE

ENTRIES = list(cal.catalogue.values())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
def test_every_entry_cites_works_of_the_bibliography(entry):
    printed = {str(work) for work in LITERATURE.values()}
    assert entry.references, f"{entry.id} has no reference"
    assert set(entry.references) <= printed, entry.references


@pytest.mark.parametrize("key", LITERATURE)
def test_a_work_has_author_year_title_and_place(key):
    work = LITERATURE[key]
    assert re.match(r"(de |van |Van |Paes )?[A-ZÀ-Ž]", work.authors)
    assert 1900 < work.year < 2030
    assert str(work.year) in key
    assert len(work.title) > 10
    assert not work.title.endswith(".")
    assert len(work.venue) > 2
    assert work.identifier == "" or re.match(r"doi:10\.\d{4,}/\S+$|arXiv:\d{4}\.\d{4,5}$", work.identifier)
    assert work.identifier or work.venue != "preprint", f"{key}: a preprint needs its number"
    assert not re.search(r"\[\d+\]|review's|inventors", str(work)), "a number in the review is no reference"


def test_works_are_listed_once_and_all_are_cited():
    assert len({w.title.lower() for w in LITERATURE.values()}) == len(LITERATURE)
    used = {r for e in ENTRIES for r in e.references}
    assert not [key for key, work in LITERATURE.items() if str(work) not in used]


def test_a_person_is_spelled_in_one_way():
    spellings = defaultdict(set)
    for work in LITERATURE.values():
        for name in work.authors.removesuffix(" et al.").split(", "):
            spellings[_folded(name)].add(name)
    assert not {k: v for k, v in spellings.items() if len(v) > 1}


def _folded(name: str) -> str:
    plain = str.maketrans("łöäüéèàøÖÜŠ", "loaueeaoous")
    return re.sub(r"[^a-z]", "", name.lower().translate(plain))
