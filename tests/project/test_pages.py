"""The pages of the documentation that are made from the library, and those whose examples must run."""

from __future__ import annotations

import re
import sys

import pytest

import calibrary as cal
from calibrary.evaluation import FAMILIES
from calibrary.public import PUBLIC
from paths import ROOT

WRITTEN = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))


@pytest.fixture(scope="module")
def make_docs():
    before = sys.path[:]
    sys.path[:0] = [str(ROOT / "scripts")]
    try:
        return pytest.importorskip("make_docs")
    finally:
        sys.path[:] = before


@pytest.fixture(scope="module")
def names(make_docs):
    entries = sorted(cal.catalogue.values(), key=lambda e: FAMILIES.index(e.family))
    return [line.split(" | ") for line in make_docs.names_page(entries).splitlines() if line.startswith("| ")]


def test_every_name_is_listed_with_what_look_up_makes_of_it(names):
    listed = {row[0][2:]: row for row in names}
    for entry in cal.catalogue.values():
        for name in (entry.id, entry.name, *map(str, entry.aliases), entry.function.__name__):
            row = listed[name.replace("|", "\\|")]
            try:
                found = cal.catalogue[name]
            except cal.UnknownMetricError:
                assert "refused" in row[1]
            else:
                assert f"`{found.id}`" in row[1]
                assert (f"`{found.called.words}`" if found.called else "") in row[2]
    assert "`norm=2`" in listed["RMSCE"][2]
    assert "`ece`" in listed["SCE"][1]  # refused, with every meaning
    assert "`lens='class-wise'`" in listed["SCE"][1]
    assert "`sce`" in listed["SCE"][1]


def test_every_metric_is_in_the_navigation_of_its_family(make_docs):
    import navigation

    listed = {
        page: family
        for chapter in navigation.families()
        for family, pages in chapter.items()
        for page in (p if isinstance(p, str) else next(iter(p.values())) for p in pages)
    }
    for entry in cal.catalogue.values():
        assert listed[f"metrics/{entry.id}.md"] == navigation.SHORT[entry.family]
        assert f"(../metrics/{entry.id}.md)" in make_docs.family_page(entry.family)
    assert set(navigation.SHORT) == set(FAMILIES)


def test_every_erratum_is_shown_with_its_proof(make_docs):
    page = make_docs.errata_page(list(cal.catalogue.values()))
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    assert all(row[3].strip(" |") for row in rows)
    said = "*the largest brier score is two over k* (`test_errata.py`)"
    assert any(said in row[3] for row in rows)
    assert sum(len(e.corrections) for e in cal.catalogue.values()) == sum(row[0] != "| about" for row in rows)


def test_the_page_of_a_metric_marks_the_sources_that_were_not_compared(make_docs):
    """Who reads the page sees which sources nobody held beside a copy."""
    marked = 0
    for entry in cal.catalogue.values():
        page = make_docs.metric_page(entry)
        for work in entry.references:
            assert f"- {work}" in page
            marked += "[from memory, not compared with a copy]" in f"{work}"
    assert marked >= 10


def test_the_page_of_a_metric_tells_what_the_study_found(make_docs):
    from calibrary.study import stored_study

    row = stored_study().row("ece", 1000)
    page = make_docs.metric_page(cal.catalogue["ece"])
    cells = (f"{row['null']:.3g}", f"{row['power']:.0%}", f"{row['power_by_law']['rare']:.0%}", f"{row['across']:.0%}")
    assert f"| 1,000 | {' | '.join(cells)} |" in page
    both = make_docs.metric_page(cal.catalogue["cis"])
    assert "`cis.slope`:" in both
    assert "Its own test at 1,000 rows finds" in both
    assert "| 1,000 |" in make_docs.metric_page(cal.catalogue["d_ece"])
    assert "Not in [the study]" in make_docs.metric_page(cal.catalogue["knn_reliability"])


def test_printed_sentences_wrap_and_printed_tables_do_not(make_docs):
    blocks = "``` { .text .output }\na sentence\n```\n\n``` { .text .output }\nname  value\n```\n"
    sentence, table = make_docs.wrapped(blocks).split("\n\n")
    assert sentence.startswith("``` { .text .output .wrap }\n")
    assert table.startswith("``` { .text .output }\n")


def test_every_public_name_has_its_sentence(make_docs):
    page = make_docs.public_page()
    for name in PUBLIC:
        (line,) = [row for row in page.splitlines() if re.match(rf"\| \[?`{name}`", row)]
        assert len(line.split("|")[2].strip()) > 10, f"{name} has no first sentence"


def test_every_public_function_is_on_a_page():
    functions = [name for name, row in PUBLIC.items() if row.kind in ("verb", "table", "helper")]
    assert not [name for name in functions if not re.search(rf"\b{name}\b", WRITTEN)]


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
def test_the_examples_run_as_they_stand():
    page = (ROOT / "docs" / "beyond.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL))
    scope: dict[str, object] = {}
    exec(code, scope)
    assert scope["gain"].sentence
    assert len(scope["kept"]) < len(scope["found"])
