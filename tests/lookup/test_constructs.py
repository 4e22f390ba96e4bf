"""The constructs of the review, one by one, and what answers each of them here.

The list numbers 274 constructs in the order of the review. ``before`` is what version 0.1.0 did about them; ``answer``
names what does it now, or is "no" with a reason. An answer is one or several of: "metric NAME" (a name the catalogue
finds), "option ID.NAME" or "option ID.NAME=VALUE" (which the metric takes), "test ID", "loss ID", "map NAME",
"lens NAME", "lens-word NAME" (a lens that needs more), "call NAME" (found in calibrary), "fact NAME" (of an entry),
"correction ID" (the entry says where it differs from the review) and "command NAME".
"""

from __future__ import annotations

import csv
import importlib
import json
from collections import Counter

import numpy as np
import pytest

import calibrary as cal
from calibrary.data.lens import as_lens, lens_name
from calibrary.maps import as_map
from calibrary.metrics.machinery.entry import FUNCTIONS
from paths import TESTS

with (TESTS / "review_constructs.csv").open(newline="", encoding="utf-8") as file:
    CONSTRUCTS = list(csv.DictReader(file))
ANSWERS = sorted({part for row in CONSTRUCTS if row["answer"] != "no" for part in row["answer"].split("; ")})


def find(path):
    """An object by its dotted name inside calibrary; rooms are opened on the way."""
    found = cal
    done = "calibrary"
    if path.startswith("losses"):
        pytest.importorskip("torch")
    for name in path.split("."):
        done += f".{name}"
        found = getattr(found, name) if hasattr(found, name) else importlib.import_module(done)
    return found


def resolve(answer):
    kind, _, what = answer.partition(" ")
    if kind == "metric":
        return cal.catalogue[what]
    if kind == "option":
        return taken(what)
    if kind == "test":
        assert cal.catalogue[what].has_test
    elif kind == "loss":
        return find("losses.loss_of")(what)
    elif kind == "map":
        return as_map(what)
    elif kind == "lens":
        return as_lens(what)
    elif kind == "lens-word":
        assert lens_name(what) in ("partition", "within-top-r")
    elif kind == "call":
        return find(what)
    elif kind == "fact":
        assert hasattr(cal.catalogue["ece"], what)
    elif kind == "correction":
        assert cal.catalogue[what].corrections
    elif kind == "command":
        from calibrary.cli.main import app

        assert what in {c.name or c.callback.__name__ for c in app.registered_commands}
    else:
        raise ValueError(f"{answer!r} names no kind of answer")
    return what


def taken(what):
    """The metric has the option; with a value, it computes."""
    where, _, value = what.partition("=")
    id, _, name = where.partition(".")
    assert name in cal.catalogue[id].options
    if value:
        rng = np.random.default_rng(0)
        c = rng.uniform(0.05, 0.95, 60)
        return FUNCTIONS[id]((rng.random(60) < c).astype(int), c, **{name: json.loads(value)})
    return name


def test_the_list_is_whole_and_in_order():
    assert [int(row["number"]) for row in CONSTRUCTS] == list(range(1, 275))
    assert Counter(row["before"] for row in CONSTRUCTS) == {"right": 211, "weak": 42, "missing": 18, "left out": 3}
    assert all(bool(row["reason"]) == (row["answer"] == "no") for row in CONSTRUCTS)


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_answers_a_construct_exists(answer):
    assert resolve(answer) is not None


def test_what_is_not_answered_is_named():
    """Whoever builds one of these takes it off this list; nothing else may fall out."""
    without = {int(row["number"]) for row in CONSTRUCTS if row["answer"] == "no"}
    assert without == {27, 50, 204, 205, 208, 226, 257, 270, 271}
    assert not [row for row in CONSTRUCTS if row["before"] == "right" and row["answer"] == "no"]
