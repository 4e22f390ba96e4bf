"""The pages of the documentation that are made from the library, and those whose examples must run."""

from __future__ import annotations

import importlib
import re
import sys

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.numbers import number
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
    page = make_docs.names_page(entries).partition("## Names with another use")[0]
    return [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]


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


def test_the_page_of_a_metric_lists_its_sources(make_docs):
    for entry in cal.catalogue.values():
        page = make_docs.metric_page(entry)
        assert all(f"- {work}" in page for work in entry.references)
        assert "from memory" not in page


def test_the_page_of_a_metric_tells_what_the_study_found(make_docs):
    from calibrary.study import stored_study

    row = stored_study().row("ece", 1000)
    page = make_docs.metric_page(cal.catalogue["ece"])
    cells = (number(row["null"]), f"{row['power']:.0%}", f"{row['power_by_law']['rare']:.0%}", f"{row['across']:.0%}")
    assert f"| 1,000 | {' | '.join(cells)} |" in page
    both = make_docs.metric_page(cal.catalogue["cis"])
    assert "Slope (`cis.slope`):" in both
    assert "Its own test on 1,000 rows detects" in both
    assert "| 1,000 |" in make_docs.metric_page(cal.catalogue["d_ece"])
    assert "Not in [the study]" in make_docs.metric_page(cal.catalogue["knn_reliability"])


def test_the_page_of_a_metric_opens_with_what_it_tells_and_what_it_detects(make_docs):
    from calibrary.study import stored_study

    entry = cal.catalogue["mce"]
    page = make_docs.metric_page(entry)
    parts = ("**", "## What it detects and what it misses", '!!! tip "Use it"', "## Definition", "| row in Table 2 |")
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    by = stored_study().row("mce", 1000)["power_by_family"]
    assert f"over-confidence: {by['over-confident']:.0%};" in page  # read out with the picture
    assert page.count('class="bar"') == len(by) + 1  # every shape of error, and all of them where events are rare
    misses = page.partition("It mostly misses ")[2].partition("\n")[0]
    assert "a fast wave and errors of all shapes where 5% of the rows are events." in misses
    assert "## What it detects" not in make_docs.metric_page(cal.catalogue["knn_reliability"])
    grows = make_docs.metric_page(cal.catalogue["ece"]).index("## How its value grows")
    assert grows > make_docs.metric_page(cal.catalogue["ece"]).index("## Definition")


def test_the_page_of_a_metric_that_was_not_studied_opens_with_how_its_value_grows(make_docs):
    (unstudied,) = [id for id in ("skce",) if not make_docs._detects(cal.catalogue[id])]
    page = make_docs.metric_page(cal.catalogue[unstudied])
    assert page.index("## How its value grows") < page.index('!!! tip "Use it"')
    assert page.count("## How its value grows") == 1


def test_every_shape_of_error_in_the_study_has_words(make_docs):
    from calibrary.lookup.study_findings import stored

    found = stored()["sizes"].values()
    families = {f for rows in found for row in rows.values() for f in row.get("power_by_family") or ()}
    assert families == set(make_docs._SHAPES)


def test_every_figure_has_a_chapter_of_the_gallery_and_a_sentence(make_docs):
    pytest.importorskip("matplotlib")
    from pathlib import Path

    from calibrary import gallery

    setup, calls = make_docs.gallery_code(Path(gallery.__file__).read_text(encoding="utf-8"))
    assert make_docs._chapter("reliability-map") == "Segments, hidden groups and time"
    for name, call in calls.items():
        assert make_docs._chapter(name)
        page = make_docs.figure_page(name, setup, call)
        assert len(page.splitlines()[2]) > 20, name
        assert f"]({name}.png)" in page


def test_a_metric_s_id_leads_to_its_page_and_shows_its_name(make_docs):
    text = "Take `ece`, not `cal` or [`mce`](x.md).\n\n```python\n`ece`\n```\n`smece`\n"
    assert make_docs.with_names(text, above="../") == (
        'Take [`ece`](../metrics/ece.md "expected calibration error"), not `cal` or [`mce`](x.md).\n\n'
        '```python\n`ece`\n```\n[`smece`](../metrics/smece.md "smooth ECE")\n'
    )


def test_the_pictures_of_lenses_show_what_the_lenses_do(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import lens_diagram

    for panel in lens_diagram.PANELS:
        assert (lens_diagram.OUT / f"{panel.lens}.svg").read_text() == lens_diagram.picture(panel)
        given = ([lens_diagram.LABEL], [lens_diagram.ROW])
        gaps = cal.compute("mae", *given, lens=panel.lens, average=None, labels=[0, 1, 2, 3], **panel.options)
        expected = [abs(confidence - outcome) for confidence, outcome in panel.pairs]
        found = [gap for gap in np.ravel(gaps) if not np.isnan(gap)]
        assert found[: len(expected)] == pytest.approx(expected), panel.lens


def test_printed_sentences_wrap_and_printed_tables_do_not(make_docs):
    wide = f"name  {'value' * 20}"
    blocks = f"``` {{ .text .output }}\na sentence\n\nanother\n\n{wide}\n\n{wide}\n```\n"
    sentence, table = make_docs.wrapped(blocks).split("\n\n```")
    assert sentence == "``` { .text .output .wrap }\na sentence\n\nanother\n```"
    assert table == f" {{ .text .output }}\n{wide}\n\n{wide}\n```\n"
    assert ".wrap" in make_docs.wrapped("``` { .text .output }\nname  value\n```\n")  # it is never as wide as a page
    code = "```python\nx\n\ny\n```\n\n"
    printed = make_docs.wrapped(f"{code}```text\none sentence\n```\n")
    assert printed == f"{code}``` {{ .text .output .wrap }}\none sentence\n```\n"
    assert make_docs.wrapped("words\n\n```text\na file\n```\n") == "words\n\n```text\na file\n```\n"


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


# -- pages that teach --------------------------------------------------------------------------------

TEACHING = (
    "app",
    "beyond",
    "ensembles",
    "gates",
    "language",
    "losses",
    "maps",
    "outside",
    "scale",
    "shift",
    "store",
    "uncertainty",
    "validation",
    "watched",
    "weights",
)


@pytest.mark.parametrize("page", TEACHING)
def test_a_page_that_teaches_begins_with_its_question_and_an_example(page):
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    title, rest = text.split("\n", 1)
    assert title.startswith("# ")
    question, _ = rest.split("```", 1)
    assert re.match(r"\s*\*[^*]+[?.]\*", rest), "the question, in italics, below the title"
    assert len(question.split()) < 150, "words before the first example"
    read = [line for line in text.splitlines() if not line.startswith("|")]  # a table is looked up
    assert len(re.findall(r"\S*\w\S*", "\n".join(read))) <= 1150, "put what was measured into docs/evidence"


def test_the_words_that_people_type_are_in_the_glossary():
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").lower()
    for word in ("AdaECE", "Platt", "isotonic", "overconfident", "temperature", "OOD", "Brier", "reliability"):
        assert word.lower() in text, word


def test_the_metrics_whose_weights_are_not_copies_differ_by_what_the_page_says():
    text = " ".join((ROOT / "docs/weights.md").read_text(encoding="utf-8").split())
    said = {id: float(limit) for id, limit in re.findall(r"`(emax|mvms)` by up to ([\d.]+\d)", text)}
    assert set(said) == {"emax", "mvms"}
    largest = dict.fromkeys([*said, "ece"], 0.0)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        p = rng.random(300)
        y, w = (rng.random(300) < p**1.3).astype(int), rng.integers(1, 4, 300)
        for id in largest:
            copies = cal.compute(id, np.repeat(y, w), np.repeat(p, w))
            largest[id] = max(largest[id], abs(cal.compute(id, y, p, sample_weight=w) - copies))
    assert largest.pop("ece") < 1e-12
    assert all(said[id] / 2 < found <= said[id] for id, found in largest.items()), largest


@pytest.fixture
def glossary(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("glossary")


def test_the_first_mention_of_a_word_is_linked_to_the_glossary(glossary):
    terms = glossary.meanings((ROOT / "docs/glossary.md").read_text(encoding="utf-8"))
    page = (
        "<h1>A store</h1><p>The page states it; <code>the store</code>. Each lens, and lenses. "
        '<a href="x">over-confident</a> and over-confident. A state is added to the state of a day.</p><p>the store</p>'
    )
    found = glossary.linked(page, terms, "../glossary.html")
    words = re.findall(r'<a class="word" href="\.\./glossary\.html#([\w-]+)" title="([^"]+)">([^<]+)</a>', found)
    assert [(place, shown) for place, _, shown in words] == [
        ("word-lens", "lens"), ("word-over-confident", "over-confident"), ("word-state", "state"),
        ("word-store", "store"),
    ]  # fmt: skip
    assert words[2][1] == "a small table of counts that stands for any number of predictions"
    assert re.sub(r'<a class="word"[^>]*>([^<]+)</a>', r"\1", found) == page
    assert "<p>the <a" in found  # not the heading, not the code


def test_every_word_that_is_linked_has_its_place_in_the_glossary(glossary):
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = glossary.meanings(text)
    assert {"Lens", "State", "Store", "World", "Claimed spread"} <= set(terms)
    assert all(len(said) > 10 for said in terms.values())
    assert len({glossary.anchor(term) for term in terms}) == len(terms)
