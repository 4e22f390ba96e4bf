"""The cards: what each may say, and the sentence that names the file and the key where one is wrong."""

from __future__ import annotations

import shutil
from dataclasses import fields

import pytest

import calibrary as cal
from calibrary.metrics.machinery.cards import CARDS, CODE_FACTS, Card, index, read_card, read_cards
from calibrary.metrics.machinery.declare import metric
from calibrary.metrics.machinery.facts import Facts

WRITTEN = {path.stem: path.read_text(encoding="utf-8") for path in CARDS.glob("*.toml")}


@pytest.fixture
def folder(tmp_path):
    """A copy of the cards."""
    for path in CARDS.glob("*.toml"):
        shutil.copy(path, tmp_path)
    return tmp_path


def changed(folder, name, old, new):
    path = folder / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refusal(folder):
    with pytest.raises(cal.RefusedError) as refused:
        read_cards(folder)
    return str(refused.value)


def test_every_metric_has_a_card_and_every_card_a_metric():
    assert set(read_cards()) == set(index()) == set(cal.catalogue)


@pytest.mark.parametrize(
    ("card", "old", "new", "sentence"),
    [
        ("ece", "familiar", "familar", "cards/ece.toml: ece contains an unknown field, 'familar'"),
        (
            "ece",
            "range = [0.0, 1.0]",
            "range = 'wide'",
            "cards/ece.toml: ece.range = 'wide' must be tuple[float, float]",
        ),
        ("ece", "row = 23", "row = '23'", "cards/ece.toml: ece.row = '23' must be int | None"),
        ("ece", "perfect = 0.0", "perfect = 'none'", "cards/ece.toml: ece.perfect = 'none' must be a number, or"),
        ("bs", 'name = "Brier score"', "", "cards/bs.toml: bs lacks 'name'"),
        ("bs", "use =", "advice =", "cards/bs.toml: bs contains an unknown field, 'advice'"),
        ("bs", 'equation = "(5)"', "", "cards/bs.toml: bs lacks 'equation'"),
        (
            "bs",
            "row = 1",
            "row = 1\nlenses = ['binary']",
            "cards/bs.toml: bs.lenses is not a fact of a card: the decorator",
        ),
        ("bs", 'references = ["brier1950"]', "references = []", "cards/bs.toml: bs.references is empty"),
        (
            "bs",
            "brier1950",
            "brier1905",
            "cards/bs.toml: bs.references has 'brier1905', which is not a work of works.toml",
        ),
        ("bs", 'fact = "range"', 'what = "range"', "cards/bs.toml: bs.corrections contains an unknown field, 'what'"),
        ("bs", 'family = "point"', 'family = "points"', "cards/bs.toml: bs.family = 'points' is not a family"),
        ("bs", "settings = { skill", "setting = { skill", "cards/bs.toml: bs.aliases = "),
        ("nll", "row = 3", "row = 1", "cards/nll.toml: nll.row = 1 is the row of cards/bs.toml too"),
        (
            "stratified_bs",
            'family = "point"',
            'family = "point"\nrow = 83',
            "needs a table [stratified_bs] in cards/table2",
        ),
        ("table2", "[rbs]", "[rbz]", "needs a table [rbs] in cards/table2.toml"),
        ("table2", 'type = "Point"', "type = 1", "cards/table2.toml: bs.type = 1 must be text"),
        ("works", "year = 1936", 'year = "1936"', "cards/works.toml: aitken1936.year = '1936' must be a whole number"),
        ("ece", 'name = "', "name = ", "cards/ece.toml is not TOML: "),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_a_wrong_card_is_refused_in_one_sentence_with_the_file_and_the_key(folder, card, old, new, sentence):
    changed(folder, card, old, new)
    said = refusal(folder)
    assert sentence in said
    assert "\n" not in said


def test_a_name_that_two_cards_claim_is_refused_unless_both_say_so(folder):
    changed(folder, "bs", '"Brier", ', '"Brier", "Log Loss", ')
    claimed = [name for name in ("log loss", "logloss") if name in WRITTEN["nll"].lower()]
    assert claimed
    said = refusal(folder)
    assert said.startswith("cards/nll.toml: the name ")
    assert "is claimed by cards/bs.toml too" in said
    changed(folder, "nll", 'family = "point"', 'family = "point"\nnamesakes = ["bs"]')
    assert "add namesakes = ['nll'] to cards/bs.toml" in refusal(folder)
    changed(folder, "bs", 'namesakes = ["pls"]', 'namesakes = ["pls", "nll"]')
    assert read_cards(folder)["nll"]["namesakes"] == ["bs"]


def test_a_namesake_is_a_metric(folder):
    changed(folder, "bs", 'namesakes = ["pls"]', 'namesakes = ["pls", "nil"]')
    assert refusal(folder).startswith("cards/bs.toml: bs.namesakes has 'nil': did you mean")


def test_a_metric_without_a_card_is_refused():
    with pytest.raises(
        cal.RefusedError, match=r"'no_such_metric' has no card: write src/calibrary/cards/no_such_metric"
    ):

        @metric("no_such_metric")
        def no_such_metric(view):
            """Nothing."""

    assert "no_such_metric" not in cal.catalogue


def test_a_fact_in_the_decorator_of_a_metric_with_a_card_is_refused():
    with pytest.raises(cal.RefusedError, match="already has a metric 'ece'"):
        metric("ece", family="bin")(lambda view: 0.0)


def test_a_text_of_several_lines_is_one_sentence():
    assert "\n" in WRITTEN["ece"].split('use = """')[1].split('"""')[0].strip()
    assert "\n" not in read_card("ece")["use"]
    assert "  " not in read_card("ece")["use"]


def test_a_card_can_say_every_fact_but_those_of_the_code():
    facts = {f.name for f in fields(Facts)} - {"id", "subfamily", "table2", *CODE_FACTS}
    assert facts <= {f.name for f in fields(Card)}
    used = {name for card in read_cards().values() for name in card}
    assert facts <= used, "a fact that no card says is not needed"
