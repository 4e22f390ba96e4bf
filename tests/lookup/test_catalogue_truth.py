"""What the catalogue says about the literature and the review is true and complete, for every entry."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict

import calibrary as cal
from calibrary.metrics.machinery.cards import subfamilies, works
from each import each

ENTRIES = list(cal.catalogue.values())
LITERATURE, SUBFAMILIES = works(), subfamilies()
TABLE_2 = {e.row: e.table2 for e in ENTRIES if e.row is not None}


@each(ENTRIES)
def test_every_entry_cites_works_of_the_bibliography(entry):
    printed = {str(work) for work in LITERATURE.values()}
    assert entry.references, f"{entry.id} has no reference"
    assert set(entry.references) <= printed, entry.references


@each(LITERATURE)
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


# -- the review -------------------------------------------------------------------------------------

#: The first and last equation of each section of the review.
EQUATIONS = {
    "3.3": (5, 5), "3.4": (6, 9), "3.5": (10, 12), "3.6": (13, 13), "3.7": (14, 15), "3.8": (16, 20), "3.9": (21, 21),
    "3.10": (22, 23), "3.11": (24, 24), "3.13": (25, 25), "3.14": (26, 27), "4.2": (28, 28), "4.5": (35, 39),
    "4.6": (40, 40), "4.7": (41, 42), "4.8": (43, 43), "4.9": (44, 49), "4.10": (50, 53), "4.12": (54, 56),
    "4.13": (57, 57), "4.14": (58, 62), "5.2": (64, 70), "5.3": (71, 77), "5.4": (78, 79), "5.5": (80, 81),
    "5.6": (82, 82), "5.7": (83, 84), "5.8": (85, 86), "5.9": (87, 87), "5.11": (88, 88), "5.12": (89, 90),
    "6.1": (91, 94), "7.2": (95, 95), "7.4": (96, 97), "7.5": (98, 98), "7.6": (99, 101),
}  # fmt: skip
#: Equations an entry has from another section: the definitions of 4.3 and 4.4, the curve of 5.1, (5), (28) and (40).
BORROWED = {
    "ece": set(range(29, 35)), "msce": {63}, "sece": {63}, "d_ece": {28}, "fcl": {5},
    "ece_pl": {40}, "ece_pl3": {40}, "fott_beta": {40}, "map_error": {40},
}  # fmt: skip
#: What was once wrong here, and what each must read.
NUMBERS = {
    "sbece": "(44)-(48)", "dece": "(45)-(49)", "dkde": "(69), (70)", "bkde": "(67), (68)", "skce_b": "(73), (74)",
    "skce_uq": "(73), (75)", "skce_ul": "(73), (76), (77)", "fott_beta": "(40)", "ici": "(85), (86)",
    "skde": "(78), (79)", "mmce": "(71), (72)", "lkce": "(71), (72)",
    **dict.fromkeys(("ace", "tace", "ece_at_k", "avg_ece_at_l", "mvms", "eice", "wsmcs", "ece_averaged"), "in words"),
    **dict.fromkeys(("kccsd", "egce"), "in words"),
}  # fmt: skip
SECTIONS = {
    "eice": "3.8", "ace": "4.5", "tace": "4.5", "ece_at_k": "4.5", "avg_ece_at_l": "4.5", "mvms": "4.5", "wsmcs": "4.8",
    "ece_averaged": "4.8", "kccsd": "5.12", "d_ece": "7.3", "egce": "7.6",
}  # fmt: skip
STABLE = [e for e in ENTRIES if e.status == "stable"]


@each(STABLE)
def test_equations_are_those_of_the_section(entry):
    assert entry.subfamily == SUBFAMILIES[entry.section]
    assert entry.equation, f"{entry.id}: an equation, or 'in words'"
    first, last = EQUATIONS.get(entry.section, (1, 0))
    ranges = re.findall(r"\((\d+)\)-\((\d+)\)", entry.equation)
    numbers = {int(n) for n in re.findall(r"\((\d+)\)", entry.equation)}
    numbers |= {n for a, b in ranges for n in range(int(a), int(b) + 1)}
    assert numbers <= set(range(first, last + 1)) | BORROWED.get(entry.id, set())
    assert numbers or "in words" in entry.equation or entry.id == "d_ece"


def test_numbers_that_were_once_wrong():
    assert {id: cal.catalogue[id].equation for id in NUMBERS} == NUMBERS
    assert {id: cal.catalogue[id].section for id in SECTIONS} == SECTIONS
    assert "(28)" in cal.catalogue["d_ece"].equation
    assert cal.catalogue["ace"].place == "section 4.5, in words"
    assert cal.catalogue["bs"].place == "section 3.3, equation (5)"


@each(ENTRIES)
def test_status_and_since_are_known(entry):
    assert entry.status in ("stable", "emerging")
    assert re.fullmatch(r"0\.\d+", entry.since)
    assert (entry.status == "emerging") == (entry.section == "")
    assert entry.to_dict()["subfamily"] == entry.subfamily


@each([e for e in ENTRIES if e.row])
def test_what_differs_from_table_2_is_said(entry):
    row, said = entry.table2, {c.fact: c for c in entry.corrections}
    family = "detection" if row.type.startswith("Object") else row.type.lower()
    assert family == entry.family or "type" in said
    range_said = entry.range_note or any("range" in fact for fact in said)
    assert _range(row.range) == entry.range or range_said
    proper = {"yes": ("strictly", "proper"), "no": ("no",), "unknown": ()}[row.proper]
    assert entry.proper in proper or any("proper" in fact for fact in said), f"Table 2: proper {row.proper}"
    assert (row.test == "yes") == entry.has_test or "hypothesis test" in said, f"Table 2: test {row.test}"


def test_table_2_has_pros_cons_and_references_in_every_row():
    assert sorted(TABLE_2) == list(range(1, 83))
    for row in TABLE_2.values():
        assert row.pros
        assert row.cons
        assert row.cites
        assert all(1 <= n <= 88 for n in row.cites)
        assert row.section in SUBFAMILIES
        assert len(set(row.pros)) == len(row.pros)
        assert len(set(row.cons)) == len(row.cons)
    # counts of bullets as printed, at some rows of the table
    counts = {1: (4, 2), 4: (2, 3), 23: (3, 7), 34: (2, 5), 44: (3, 5), 52: (6, 3), 67: (6, 1), 78: (3, 2), 82: (2, 2)}
    assert {n: (len(TABLE_2[n].pros), len(TABLE_2[n].cons)) for n in counts} == counts


def test_table_2_as_printed_at_known_rows():
    assert TABLE_2[60].type == "Kernel"
    assert TABLE_2[61].range == "[-1, 1]"
    assert TABLE_2[71].test == "no"
    assert [n for n, row in TABLE_2.items() if row.test == "yes"] == [16, 39, 40, 43, 44, 45, 57, 58, 63, 72, 73, 74]
    assert [n for n, row in TABLE_2.items() if row.proper == "unknown"] == [6, 7, 8, 15, 16, 20, 22, 39]
    for id in ("average_calibration_error", "d_ece", "laece", "laace", "l1cbod"):
        assert "does not count false negatives" in cal.catalogue[id].table2.cons


def _range(printed: str) -> tuple[float, float]:
    first = re.match(r"~?[\[(]([^,]+), ([^\])]+)[\])]", printed)
    low, high = (float(n.replace("eps", "1e-9").replace("--", "")) for n in first.groups())
    return low, high


# -- what the entries say ----------------------------------------------------------------------------


@each(ENTRIES)
def test_options_named_in_advice_and_corrections_exist(entry):
    test = cal.metrics.machinery.declare.TESTS.get(entry.id)
    known = {*entry.options, *entry.front.common}
    known |= set() if test is None else set(inspect.signature(test.function).parameters)
    text = " ".join([entry.use, entry.avoid, entry.range_note, *(c.ours for c in entry.corrections)])
    named = set(re.findall(r"\b([a-z_]+)=(?=['\w(\[]|$|\s|\.)", text))
    assert named <= known, named - known


@each(ENTRIES)
def test_the_short_form_of_a_sign_is_a_whole_clause(entry):
    assert entry.short_sign
    assert entry.sign.startswith(entry.short_sign)
    assert entry.short_sign.count("(") == entry.short_sign.count(")")
    numbers = {name for name, _ in entry.fields} | {getattr(alias, "field", "") for alias in entry.aliases} | {""}
    assert set(entry.in_short) <= numbers


@each(ENTRIES)
def test_a_correction_gives_the_words_of_the_review_and_ours(entry):
    for c in entry.corrections:
        assert c.fact
        assert c.review
        assert c.ours
        assert "code" not in c.review, "what the authors' code does is not what the review says"


#: Facts that were once quoted wrongly: what the review says there.
QUOTED = {
    ("sece", "(65)"): "SCE",
    ("ece_at_k", "bins"): "log10 k",
    ("avg_ece_at_l", "bins"): "log10 k",
    ("ici", "LOESS"): "fixed width apart",
    ("kccsd", "form"): "no equation",
    ("dkde", "bandwidth"): "not stated",
    ("ece_lb", "p"): "any p",
    ("mmce", "section 5.1"): "integrate to one",
    ("lkce", "section 5.1"): "integrate to one",
    ("skce_b", "proper"): "strictly proper",
    ("d_ece", "value if no bin has min_count detections"): "not said",
    ("laace", "detections on crowds"): "not said",
}


@each(QUOTED)
def test_quotations_that_were_once_wrong(id, fact):
    said = {c.fact: c.review for c in cal.catalogue[id].corrections}
    assert QUOTED[id, fact] in said[fact]


def test_nothing_is_attributed_to_the_review_that_it_does_not_say():
    for id, fact in (("ace", "weights"), ("skce_b", "range"), ("skce_ul", "proper"), ("skce_uq", "proper")):
        assert fact not in {c.fact for c in cal.catalogue[id].corrections}


def test_advice_agrees_with_the_review_or_says_that_it_does_not():
    advice = {e.id: (e.use, e.avoid) for e in ENTRIES}
    for id in ("wcr", "cal"):
        assert "review advises against" in advice[id][1]
    assert "inf" not in advice["pwe"][0]
    assert "review advises against" in advice["pwe"][1]
    assert "up to 100 classes" in advice["skce_ul"][0]
    assert "more sensitive" in advice["sgc"][0]
    assert "rows are few" in advice["rbs"][0]
    for id in ("average_calibration_error", "d_ece", "laece", "laace", "l1cbod"):
        assert "Missed objects do not count" in advice[id][1]
