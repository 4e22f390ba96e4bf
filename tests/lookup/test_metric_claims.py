"""What ``explain`` and ``recommend`` say of metrics: each line, reason and caution is a claim, held to computed truth.

The rules stand in ``base/claims.py``; this file finds what is so without the sentences: by values on samples of known
truth, by calling the public functions, by the stored study and by the review's table.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest

import calibrary as cal
import definitions
from calibrary.base.claims import Claim, Sentence
from calibrary.base.numbers import number, percent
from calibrary.cli import catalogue as explained
from calibrary.lookup.study_findings import coverage_words, finding, numbers_by_size, remarks
from calibrary.metrics.machinery.declare import Alias
from definitions import DEFINITIONS
from truths import KnownTruth, holds

pytestmark = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def rows(n, seed=0, slope=1.0, shift=0.0):
    """Labels and confidences; slope 1 and shift 0 are calibrated."""
    rng = np.random.default_rng([13, seed])
    c = rng.uniform(0.03, 0.97, n)
    q = 1.0 / (1.0 + np.exp(-(slope * np.log(c / (1.0 - c)) + shift)))
    return (rng.random(n) < q).astype(int), c


def found_boxes(n, seed=0, slope=1.0, shift=0.0):
    """The same as detections."""
    y, c = rows(n, seed, slope, shift)
    return cal.matched_detections(
        y, c, iou=np.where(y, 0.7, 0.0), category=np.zeros(n, dtype=int), image=np.arange(n) // 4
    )


def value(id, data, **options):
    """One number of a metric on rows or on detections; the last field of a larger result."""
    given = data if isinstance(data, tuple) else (data,)
    found = cal.compute(id, *given, **options)
    fields = [name for name, ideal in cal.catalogue[id].fields if ideal is not None]
    return float(getattr(found, fields[-1])) if fields else float(np.mean(found))


#: What metrics of parts are given: features, groups and columns that have nothing to do with the outcomes.
INPUTS = {
    "features": lambda n: {"features": np.random.default_rng(3).normal(size=(n, 2))},
    "groups": lambda n: {"groups": np.arange(n) % 4},
    "by": lambda n: {"by": {"part": np.arange(n) % 4}},
}


@functools.cache
def shown_when_calibrated(id, n):
    """The mean value on calibrated samples of the kinds that the study draws."""
    given = {k: v for need in cal.catalogue[id].needs if need in INPUTS for k, v in INPUTS[need](n).items()}
    if given:
        return float(np.mean([value(id, rows(n, i), **given) for i in range(3)]))
    if cal.catalogue[id].data_type == "matches":
        return float(np.mean([value(id, found_boxes(n, i)) for i in range(4)]))
    values = []
    for i in range(12):
        rng = np.random.default_rng([11, i])
        c = np.clip(rng.beta(*((1.0, 1.0), (0.5, 0.5), (1.0, 12.0))[i % 3], n), 1e-3, 1 - 1e-3)
        values.append(value(id, ((rng.random(n) < c).astype(int), c)))
    return float(np.mean(values))


@functools.cache
def moved_by_a_wrong_label(id):
    """How far one of a thousand labels moves the value, beside the value of a model that knows nothing."""
    y, c = rows(1000)
    c = c.copy()
    c[0], y[0] = 1.0 - 1e-300 if cal.catalogue[id].label_noise == "fragile" else 1.0 - 1e-9, 1
    c[0] = min(c[0], 1.0 - 1e-16)
    wrong = y.copy()
    wrong[0] = 0
    good, bad = value(id, (y, c)), value(id, (wrong, c))
    return abs(bad - good) / max(abs(good), 0.1)


def largest_bin(rare):
    """The share of the fullest of fifteen bins of equal width, for a common law of rare outcomes."""
    c = np.random.default_rng(0).beta(0.5, 0.5 * (1.0 - rare) / rare, 20_000)
    return float(np.bincount(np.minimum((15 * c).astype(int), 14)).max() / len(c))


def simple(entry):
    """Can it be computed of labels and one probability?"""
    return entry.data_type == "predictions" and not entry.needs and "binary" in entry.lenses


# -- what is so of each line of explain ----------------------------------------------------------------------


def meaning(entry, told):
    """The first line of the public function, and on a sample the number that the definition gives."""
    if told["metric"] != entry.id or not inspect.getdoc(entry.function).startswith(entry.meaning):
        return False
    definition = DEFINITIONS[entry.id]
    y, c = rows(min(40, definition.most))
    if not simple(entry) or entry.fields or entry.costly or len(y) < definition.least:
        return True  # test_definitions.py computes them with what they need
    want = definitions.value(entry.id, y, c)
    want = np.mean(want if not isinstance(want, dict) else next(iter(want.values())))
    return np.allclose(value(entry.id, (y, c)), want, rtol=definition.rtol, atol=definition.atol, equal_nan=True)


def names_lead_here(entry, told):
    if told["line"] == "a preset":
        y, c = rows(60)
        base = cal.catalogue[str(entry.preset_of)]
        same = not simple(entry) or np.isclose(
            value(entry.id, (y, c)), value(base.id, (y, c), **entry.preset_of.settings), equal_nan=True
        )
        return same and str(entry.preset_of) in told["stated"]
    carries = told["line"] == "names with settings"
    names = [a for a in entry.aliases if isinstance(a, Alias) == carries]
    also = explained._also(entry)
    for name in names:
        found = cal.catalogue[name]
        if found.id != entry.id and also.get(str(name)) != f"means {found.id!r} here":
            return False
    return (
        all(str(name) in told["stated"] and (not carries or name.words in told["stated"]) for name in names) and names
    )


def values_lie_in_the_range(entry, told):
    low, high = entry.range
    if not told["stated"].startswith(f"{low:g} to {high:g}"):
        return False
    make = rows if simple(entry) else found_boxes if entry.data_type == "matches" and not entry.needs else None
    if make is None or entry.fields:
        return True
    seen = [value(entry.id, make(60, i, *way)) for i, way in enumerate(((1, 0), (0.3, 0), (3, 0), (1, -2)))]
    return all(np.isnan(v) or low - 1e-9 <= v <= high + 1e-9 for v in seen)


def ideal(entry, told):
    ideals = {name: v for name, v in entry.fields if v is not None} or {"": entry.perfect}
    if not all(v is None or f"{v:g}" in told["stated"] for v in ideals.values()):
        return False
    few, many = finding(entry.id, 1000), finding(entry.id, 100_000)
    off = [
        f.null_deviation if f.expected_by_chance is None else abs(f.expected_by_chance - (entry.perfect or 0.0))
        for f in (few, many)
    ]
    if entry.perfect is None or None in off or entry.range == (-np.inf, np.inf):  # a statistic of fixed scatter
        return "still" not in told["stated"]
    return (off[1] > max(0.75 * off[0], 2e-3)) == ("still" in told["stated"])


def propriety(entry, told):
    words = {"strictly": "strictly proper", "proper": "proper", "no": "no", "dataset": "not a score of single rows"}
    if told["stated"] != words[entry.proper]:
        return False
    if entry.proper not in ("strictly", "proper") or not simple(entry) or "reduction" not in entry.options:
        return True
    classes = 3 if "full" in entry.lenses else 2
    found = cal.check_propriety(entry.id, n_classes=classes).verdict
    return found in (told["stated"], "strictly proper")  # which is proper too


def in_the_review(entry):
    row = f"row {entry.row} of Table 2, " if entry.row else ""
    return f"Lane (2025), arXiv:2504.18278: {row}{entry.place}"


def has_its_test(entry, told):
    named = re.match(r"calibrary\.(\w+): (.+)", told["stated"])
    if bool(named) != entry.has_test or (named and not inspect.getdoc(getattr(cal, named[1])).startswith(named[2])):
        return False
    if not simple(entry) or entry.costly:
        return True
    if told["stated"].startswith("none"):
        with pytest.raises(cal.RefusedError):
            cal.test(entry.id, *rows(60), n_resamples=9, rng=0)
        return True
    found = cal.test(entry.id, *rows(60), n_resamples=9, rng=0)
    return np.all((np.asarray(found.pvalue) > 0.0) & (np.asarray(found.pvalue) <= 1.0) | np.isnan(found.pvalue))


def weights(entry, told):
    if told["stated"] != "a row of weight 2 counts as two equal rows" or not simple(entry) or entry.costly:
        return True
    y, c = rows(40)
    w = np.ones(40)
    w[3] = 2.0
    twice = (np.append(y, y[3]), np.append(c, c[3]))
    options = {"sample_weight": w}
    return bool(np.isclose(value(entry.id, (y, c), **options), value(entry.id, twice), rtol=1e-9, equal_nan=True))


def lenses(entry, told):
    if told["stated"] != ", ".join(entry.lenses):
        return False
    if entry.data_type == "matches" or entry.needs or entry.costly:
        return True
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 60)
    y = (p.cumsum(axis=1) > rng.random((60, 1))).argmax(axis=1)
    for lens in ("top-label", "class-wise", "full"):
        if lens in entry.lenses:
            cal.compute(entry.id, y, p, lens=lens)
        else:
            with pytest.raises(cal.RefusedError):
                cal.compute(entry.id, y, p, lens=lens)
    return True


def needs(entry, told):
    if "distributions" in entry.needs:  # and a single label is a certain one
        y, c = rows(60)
        certain = np.column_stack([1 - y, y]).astype(float)
        both = value(entry.id, (y, c)), value(entry.id, (certain, np.column_stack([1.0 - c, c])))
        return "a single label counts as a distribution with all its mass there" in told["stated"] and np.isclose(*both)
    if not {"boxes", "order"} & set(entry.needs):
        with pytest.raises((ValueError, TypeError)):
            cal.compute(entry.id, *rows(60))
    return told["stated"] == ", ".join(entry.needs)


def options(entry, told):
    taken = set(inspect.signature(entry.function).parameters)
    return set(told["stated"].split(", ")) == set(entry.options) <= taken


#: What neither truth nor confidence of binary rows moves in one direction: its sentence is that of the entry.
NOT_OF_ERRORS = ("ranking", "fit", "consistency")


def turns(entry, told):
    if told["stated"] != entry.sign:
        return False
    make = rows if simple(entry) else found_boxes if entry.data_type == "matches" and not entry.needs else None
    if make is None or entry.measures in NOT_OF_ERRORS or entry.costly:
        return True
    good, bad = (
        np.nanmean([value(entry.id, make(400, i, *way)) for i in range(2)]) for way in ((1.0, 0.0), (0.2, -1.5))
    )
    if entry.better == "perfect":
        center = next((v for _, v in reversed(entry.fields) if v is not None), entry.perfect)
        return abs(bad - center) > abs(good - center)
    return bad > good if entry.better == "lower" else bad < good


def table_2(entry, told):
    row = cal.catalogue.table2().to_pandas().set_index("id").loc[entry.id]
    return told["stated"] in " ".join(map(str, row)).replace("\n", "; ") or told["stated"] == "; ".join(
        getattr(entry.table2, told["line"].split()[0])
    )


def coverage(entry, told):
    stored = json.loads(files("calibrary.lookup").joinpath("coverage.json").read_text(encoding="utf-8"))
    if entry.no_interval or entry.no_ends:
        return (entry.no_interval or entry.no_ends) in told["stated"]
    if entry.id not in stored:
        return "was not measured" in told["stated"]
    row = stored[entry.id]
    return all(text in told["stated"] for text in (percent(row["mean"]), percent(row["worst"]), f"{row['samples']:,}"))


def line_of(entry):
    """The text of a line that rests on what the entry declares alone."""

    def text(line):
        if line.startswith("erratum, "):
            stated = {c.fact: f"the review says: {c.review}; here: {c.ours}" for c in entry.corrections}
            return stated[line.removeprefix("erratum, ")]
        homonyms = explained._also(entry)
        declared = {
            "formula": explained.formula_of(entry), "in the review": in_the_review(entry),
            "newer than the review": entry.equation,
            "family": f"{entry.family}, {entry.subfamily}" if entry.section else entry.family, "when to use": entry.use,
            "caution": entry.avoid, "distance from calibration": entry.robustness, "cost": entry.cost,
            "references": "; ".join(entry.references),
            "since": entry.since + ", emerging: the definition may still change" * (entry.status == "emerging"),
            "ambiguous names": "; ".join(f"{name} {other}" for name, other in homonyms.items()),
            "this name": "" if entry.called is None else f"{entry.called} means {entry.id} with {entry.called.words}",
        }  # fmt: skip
        return declared.get(line)

    return text


LINES = {
    "meaning": meaning, "names lead here": names_lead_here, "values lie in the range": values_lie_in_the_range,
    "ideal": ideal,
    "propriety": propriety, "tested": has_its_test, "weights count": weights, "lenses taken": lenses,
    "inputs needed": needs, "options taken": options,
    "turns": turns, "table 2": table_2, "coverage": coverage,
}  # fmt: skip


class OfMetric(dict):
    """What is so of a metric: declared facts by their names, and what is computed when a rule asks for it."""

    def __init__(self, id):
        entry = cal.catalogue[id]
        super().__init__({"id": id, "range": entry.range, "calibrated": functools.partial(shown_when_calibrated, id)})
        self["perfect"], self["line of"] = entry.perfect, line_of(entry)
        self["study"] = lambda n, k: finding(id, n, k).expected_by_chance
        self["largest bin"], self["moved by a wrong label"] = largest_bin, functools.partial(moved_by_a_wrong_label, id)
        self.update({name: functools.partial(found, entry) for name, found in LINES.items()})
        self["sections"] = {text.partition(":")[0] for text in entry.advised.values()}
        self.entry = entry

    def get(self, name, default=None):
        if name == "strictly proper":
            if self.entry.data_type == "matches":  # no score of rows: Table 2 says it of the detectors' scores
                return self.entry.table2.proper == "yes"
            return cal.check_propriety(self.entry.id, n_classes=3).verdict == "strictly proper"
        if name == "calibrated means":
            at = {n: finding(self.entry.id, n).expected_by_chance for n in (1000, 10_000, 100_000)}
            return {n: value for n, value in at.items() if value is not None} or {0: 0.0}
        if name == "shares":
            known = [finding(self.entry.id, n, k) for n in NUMBERS for k in (2, 10, 200, 1000)]
            every = (x for f in known for x in (f.power, f.rare, f.orders, f.across, f.test_power, f.test_level))
            return {x for x in every if x is not None}
        return self[name] if name in self else getattr(self.entry, name, default)


NUMBERS = (100, 150, 200, 300, 1000, 5000, 10_000, 100_000)
ASKED = [
    {"task": task, "goal": goal, "n": n}
    for task in ("binary", "multiclass", "ordinal", "detection")
    for goal in ("measure", "compare", "test", "train", "explain", "rank")
    for n in (200, 1000)
] + [
    {"rare": 0.01}, {"safety": True}, {"assurance": True}, {"label_noise": True}, {"features": True}, {"ties": True},
    {"direction": True}, {"test": True}, {"task": "multiclass", "n_classes": 200},
    {"task": "multiclass", "top_label_only": True}, {"n": 100_000}, {"n": 150},
]  # fmt: skip


def test_every_reason_and_caution_of_the_advice_is_a_claim_that_holds():
    made, false = Counter(), []
    for need in ASKED:
        for found in cal.recommend(**need, most=6):
            truth = KnownTruth.about(OfMetric(found.id))
            assert isinstance(found.caution, Sentence)
            assert str(found.caution) == "; ".join(found.caution.claims)
            for reason in (*found.reasons, *found.caution.claims):
                assert isinstance(reason, Claim)
                made[reason.rule] += 1
                if not holds(reason, truth):
                    false.append((need, found.id, reason.rule, str(reason)))
    assert false == []
    assert {"declared", "strictly proper", "two-sided", "vanishes", "shares", "of the review"} <= set(made)
    assert {"small when calibrated", "above by chance", "wrong labels"} <= set(made)


@pytest.mark.parametrize("rare", [0.01, 0.05, 0.09])
def test_of_a_rare_class_most_predictions_fall_in_one_bin(rare):
    every = [c for r in cal.recommend(rare=rare, most=60) for c in r.caution.claims if c.rule == "one bin"]
    assert every
    assert all(holds(claim, KnownTruth.about(OfMetric(claim.values["metric"]))) for claim in every)
    assert not holds(Claim("one bin", "one bin", metric="ece", rare=0.5), KnownTruth.about(OfMetric("ece")))


def test_a_reason_given_to_another_metric_is_caught():
    reason = next(each for r in cal.recommend("binary", "compare") for each in r.reasons if "strictly proper" in each)
    assert not holds(reason, KnownTruth.about(OfMetric("mae")))
    way = next(each for r in cal.recommend("binary", "explain") for each in r.reasons if each.rule == "two-sided")
    assert not holds(way, KnownTruth.about(OfMetric("ece")))
    rules = ("declared", "shares", "of the review", "vanishes", "small when calibrated", "strictly proper")
    for rule in (*rules, "above by chance", "one bin", "wrong labels", *LINES):
        assert not holds(Claim("said of nothing", rule, metric="ece", n=1, most=0.1), KnownTruth.about({})), rule


def test_the_praise_of_0_2_0_for_few_rows_is_caught():
    """0.2.0 recommended dss, pss, ps and pls because each "reads near 0 for a calibrated model even on few rows"."""
    for id in ("dss", "pss", "ps", "pls"):
        old = Claim(
            "near 0 for a calibrated model even on few rows", "small when calibrated", metric=id, n=200, most=0.07
        )
        assert not holds(old, KnownTruth.about(OfMetric(id)))


def test_the_sign_of_0_2_0_is_caught():
    """0.2.0 said of ratios, which are never negative, that "its sign says which way"."""
    for id in ("eo", "nses"):
        old = Claim("its sign says which way", "two-sided", metric=id, ideals=(0.0,))
        assert not holds(old, KnownTruth.about(OfMetric(id)))


@pytest.mark.parametrize("part", range(6))
def test_what_explain_says_of_every_metric_is_a_claim_that_holds(part):
    made, false = Counter(), []
    for id in list(cal.catalogue)[part::6]:
        truth = KnownTruth.about(OfMetric(id))
        for name, text in {"meaning": cal.catalogue[id].meaning, **explained.facts_of(cal.catalogue[id])}.items():
            assert type(text) is Claim, (id, name)
            made[text.rule] += 1
            if not holds(text, truth):
                false.append((id, name, str(text)))
    assert false == []
    assert {"meaning", "declared", "values lie in the range", "ideal", "turns", "tested", "coverage"} <= set(made)


#: The headings of an explanation in their order; the last four are shown by --all.
HEADINGS = (
    "When to use", "Caution", "How to judge a value", "Formula", "Options", "Evidence", "Names", "References", "Errata",
)  # fmt: skip


def page_of(id, capsys, monkeypatch, **options):
    """The blocks of an explanation, which blank lines separate, each a list of lines."""
    from rich.console import Console

    monkeypatch.setattr(explained, "out", Console(width=100_000, emoji=False, highlight=False, color_system=None))
    explained.explain(**{"id": id, "n": None, "everything": False, **options})
    return [block.splitlines() for block in capsys.readouterr().out.strip().split("\n\n")]


@pytest.mark.parametrize("id", [*list(cal.catalogue)[::9], "calibration slope", "ECE-DEBIAS", "skce_uq"])
def test_nothing_is_printed_by_explain_but_claims_and_the_study(id, capsys, monkeypatch):
    """A line that is no claim and no number of the study would be a fact that nothing holds to the truth."""
    entry, facts = cal.catalogue[id], explained.facts_of(cal.catalogue[id])
    head, *blocks = page_of(id, capsys, monkeypatch, everything=True)
    assert head[:2] == [f"{entry.name} ({entry.id})", entry.meaning]
    headings = [block[0] for block in blocks]
    assert headings == [heading for heading in HEADINGS if heading in headings]
    claims = {*facts.values(), *(f"{name}: {claim}" for name, claim in facts.items())}
    heads, rows = numbers_by_size(entry.id)
    study = {*remarks(entry.id), f"The study's numbers are those of {entry.id} with its default options."}
    printed = [line for block in [head[2:], *(block[1:] for block in blocks)] for line in block]
    others = [line for line in printed if line not in claims | study]
    table = [heads, *rows] if rows else []
    assert [line.split() for line in others] == [" ".join(cells).split() for cells in table]
    told = {name for name in facts if not name.startswith("study, ")}
    assert {name for name in told if any(line in (facts[name], f"{name}: {facts[name]}") for line in printed)} == told


def test_explain_is_a_page_that_begins_with_when_to_use_the_metric(capsys, monkeypatch):
    head, *blocks = page_of("ece", capsys, monkeypatch)
    assert [block[0] for block in blocks[:-1]] == list(HEADINGS[:5])
    assert len([line for block in (head, *blocks) for line in block]) < 30
    assert blocks[-1] == ["calibrary explain ece --all adds evidence, names, references and errata"]
    every = " ".join(line for block in page_of("ece", capsys, monkeypatch, everything=True) for line in block)
    assert "in the review: Lane (2025), arXiv:2504.18278: row 23 of Table 2, section 4.2" in every


def test_the_numbers_of_the_study_at_the_rows_of_the_user():
    heads, rows = numbers_by_size("cis", 500)
    assert [row[0] for row in rows] == ["100", "500", "1,000", "10,000"]
    found = finding("cis", 500)
    assert dict(zip(heads, rows[1], strict=True)) == {
        "rows": "500",
        "a calibrated model shows": f"1 ± {number(found.null_deviation)}",
        "errors it detects": percent(found.power),
        "errors its test detects": percent(found.test_power),
        "models in the right order": percent(found.across),
        "of equal confidences": percent(found.orders),
    }
    assert found.test_power > found.power, "the test of intercept and slope detects more than the slope alone"
    first = next(iter(remarks("cis")))
    assert first == "The study's numbers are those of the slope alone, cis.slope, except for the test."


def test_a_coverage_is_told_once():
    for entry in cal.catalogue.values():
        assert coverage_words(entry).count("contained the true value") <= 1, entry.id


def test_a_line_that_is_false_is_caught():
    """One line of each rule, told of a metric of which it is not true."""
    said = {
        "values lie in the range": ("bs", "0 to 0.1"), "ideal": ("ece", "1"), "propriety": ("mae", "strictly proper"),
        "lenses taken": ("ece", "full"), "options taken": ("ece", "n_bins, moon"),
        "turns": ("ece", "larger is better"), "coverage": ("ece", "it contained the true value in 100% of samples"),
        "table 2": ("ece", "the review praises it"), "names lead here": ("bs", "ECE"),
    }  # fmt: skip
    assert not holds(cal.catalogue["bs"].meaning, KnownTruth.about(OfMetric("ece")))
    lines_of = {"table 2": "pros in Table 2", "names lead here": "also called"}
    for rule, (id, text) in said.items():
        claim = Claim(text, rule, metric=id, line=lines_of.get(rule, rule), stated=text)
        assert not holds(claim, KnownTruth.about(OfMetric(id))), rule
    old = Claim("calibrated models show -0.84", "values in the range", values=(-0.84,), range=cal.catalogue["sr"].range)
    assert not holds(old, KnownTruth.about({}))
