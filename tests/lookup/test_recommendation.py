"""Which metric for which question: a table of situations, and the facts the advice rests on."""

from __future__ import annotations

import dataclasses
import inspect
import re

import numpy as np
import pytest

import calibrary as cal
from calibrary.lookup import recommend as recommendation
from calibrary.lookup.study_findings import finding
from calibrary.metrics.machinery.facts import Facts

#: Task, goal, what else is known; who must come first; who must be among the first six; who must not.
SITUATIONS = [
    ("binary", "measure", {}, ["smece"], ["ece"], ["mce", "hl", "bs"]),
    ("binary", "measure", {"n": 200}, [], ["fott_beta"], ["ece", "mce", "sice"]),
    ("binary", "measure", {"rare": 0.01}, ["tce"], ["rbece", "ice"], ["hl", "ece", "mce"]),
    ("multiclass", "measure", {"rare": 0.01, "n": 5000}, [], ["tce", "rbece", "ice"], ["hl", "ece"]),
    ("multiclass", "measure", {"n_classes": 200}, ["tace"], ["skce_uq"], ["dkde", "skce_ul", "mvms"]),
    ("binary", "measure", {"safety": True}, ["mce"], ["emax"], []),
    ("binary", "measure", {"assurance": True}, [], ["smece", "ecce_mad", "ecce_r"], ["ece_pl", "ece_fott", "lsece"]),
    ("binary", "measure", {"label_noise": True}, [], ["ace"], ["ecd"]),
    ("binary", "measure", {"features": True}, ["pce"], ["piece"], []),
    ("binary", "measure", {"ties": True}, [], ["ece", "intce"], ["smece", "bkde"]),
    ("binary", "measure", {"direction": True}, [], ["cis", "esce"], ["ece", "smece"]),
    ("binary", "compare", {}, ["bs", "nll"], [], ["ece", "mce"]),
    ("binary", "compare", {"label_noise": True}, ["bs"], [], ["ece"]),
    ("ordinal", "compare", {}, ["rps"], ["bs"], ["ece"]),
    ("detection", "compare", {}, ["qgc", "sgc"], ["egce"], []),
    # in the study Cox's test finds more than Spiegelhalter's, which led while one temperature was all that was measured
    ("binary", "test", {}, ["cis", "pws"], ["spiegelhalter"], ["skce_ul", "skce_b", "kccsd", "ece"]),
    ("multiclass", "test", {"n_classes": 1000}, ["spiegelhalter"], ["skce_uq"], ["skce_ul"]),
    ("multiclass", "test", {"n": 100_000}, ["spiegelhalter"], [], ["skce_ul", "skce_b"]),
    ("binary", "test", {"assurance": True}, ["cis"], ["spiegelhalter", "ecce_mad", "ecce_r"], ["skce_uq", "skce_ul"]),
    ("binary", "train", {}, ["bs", "nll"], ["fl"], ["ece", "smece", "mce"]),
    ("multiclass", "train", {}, ["bs", "nll"], ["fl", "mdca"], ["ece"]),
    ("ordinal", "train", {}, ["rps"], ["nll"], []),
    ("detection", "train", {}, ["l1cbod"], [], ["d_ece", "laece"]),
    ("detection", "measure", {}, ["egce"], ["qgc", "sgc", "laace", "d_ece"], []),
    ("detection", "explain", {}, ["cis"], ["eo"], ["laece", "l1cbod"]),
    ("binary", "explain", {}, ["cis"], ["eo", "spiegelhalter"], ["ece", "smece"]),
]


@pytest.mark.parametrize(("task", "goal", "known", "first", "among", "not_among"), SITUATIONS)
def test_situations(task, goal, known, first, among, not_among):
    found = [r.id for r in cal.recommend(task, goal, most=6, **known)]
    assert found[: len(first)] == first
    assert set(among) <= set(found)
    assert not set(not_among) & set(found)


def test_every_recommendation_says_why():
    for task, goal, known, *_ in SITUATIONS:
        found = cal.recommend(task, goal, **known)
        assert found
        assert all(r.reasons and r.caution for r in found)
        assert [r.points for r in found] == sorted((r.points for r in found), reverse=True)
    assert len({r.id for r in cal.recommend(most=500)}) == len(cal.recommend(most=500))


def test_the_advice_names_no_metric():
    """Facts live on the entries: no id, alive or dead, is spelled out where advice is made."""
    source = inspect.getsource(recommendation)
    source = re.sub(r'""".*?"""', "", source, flags=re.DOTALL)
    assert not set(re.findall(r'"([a-z0-9_]+)"', source)) & (set(cal.catalogue) - {"consistency"})


# -- the facts ---------------------------------------------------------------------------------------

#: What Table 2 says for or against a metric, and the fact that must go with it.
OF_TABLE_2 = {
    "suitable for imbalanced classes": lambda e: e.imbalance == "made",
    "can be used to study rare classes": lambda e: e.imbalance == "made",
    "differentiable, so it can be optimised": lambda e: e.differentiable,
    "as a training loss it calibrates better than the log loss": lambda e: e.differentiable,
    "shows the worst case, which safety may require": lambda e: e.worst_case,
    "counts false negatives": lambda e: e.misses,
    "works for any number of classes": lambda e: e.many_classes != "",
    "becomes worse with many classes, from a number between 100 and 1000 on": lambda e: e.most_classes == 100,
    "a few outliers or wrong labels change it a lot": lambda e: e.label_noise == "fragile",
    "outliers have little weight": lambda e: e.label_noise == "robust",
    "in wide use": lambda e: e.familiar,
}


@pytest.mark.parametrize("said", OF_TABLE_2)
def test_the_advice_of_table_2_holds(said):
    printed = [e.table2 for e in cal.catalogue.values() if e.table2 is not None]
    rows = [row for row in printed if said in (*row.pros, *row.cons)]
    assert rows
    for row in rows:
        assert OF_TABLE_2[said](cal.catalogue[row.id]), row.id


def test_facts_are_of_their_kind():
    words = {"imbalance": ("", "made", "keeps"), "many_classes": ("", "made", "keeps"),
             "label_noise": ("", "robust", "fragile")}  # fmt: skip
    known = {f.name for f in dataclasses.fields(Facts)}
    for entry in cal.catalogue.values():
        for name, allowed in words.items():
            assert name in known
            assert getattr(entry, name) in allowed
        assert not entry.misses or entry.data_type == "matches"


def test_measured_power_ranks_the_tests():
    """By how often a test finds the study's errors, in steps that its draws can tell apart, if it keeps its level."""
    found = cal.recommend("binary", "test", most=12)
    for n in (300, 1000):
        assert all(finding(r.id, n).test_power is not None for r in found)
    power = [0.05 * round(finding(r.id, 1000).test_power / 0.05) for r in found]
    assert power == sorted(power, reverse=True)
    binary = [e.id for e in cal.catalogue.values() if e.has_test and e.null and not e.needs and not e.covered]
    assert {id for id in binary if finding(id, 300).test_power is None} <= {"tcal", "sbct", "honest_error"}


def test_a_test_that_does_not_keep_its_level_is_not_praised(monkeypatch):
    first = cal.recommend("binary", "test", most=1)[0].id

    def liberal(id, n=1000, n_classes=2):
        known = finding(id, n, n_classes)
        return dataclasses.replace(known, test_level=0.2) if id == first else known

    monkeypatch.setattr(recommendation, "finding", liberal)
    assert cal.recommend("binary", "test", most=1)[0].id != first
    said = next(r for r in cal.recommend("binary", "test", most=50) if r.id == first)
    assert "its own test rejects 20% of calibrated samples instead of 5%" in said.reasons


def test_unbiased_metrics_are():
    """The mean over many small calibrated samples is 0, within its error."""
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(300):
        c = rng.random(30)
        draws.append(((rng.random(30) < c).astype(int), c))
    for id in ("ce2_db", "skce_uq", "skce_ul", "tcal", "kccsd"):
        assert cal.catalogue[id].unbiased
        options = {"n_bins": 4} if id in ("ce2_db", "tcal") else {"bandwidth": 0.3}
        values = np.array([cal.compute(id, y, c, **options) for y, c in draws])
        assert abs(values.mean()) < 3.5 * values.std() / np.sqrt(len(values)), id


def test_what_trains_has_a_loss():
    losses = pytest.importorskip("calibrary.losses")
    for entry in cal.catalogue.values():
        if entry.differentiable and entry.data_type == "predictions":
            assert losses.loss_of(entry.id).metric == entry.id


def test_repeatable_metrics_repeat_themselves():
    rng = np.random.default_rng(3)
    c = rng.random(80)
    y = (rng.random(80) < c).astype(int)
    order = rng.permutation(80)
    for r in cal.recommend("binary", "measure", assurance=True, most=8):
        assert (
            cal.compute(r.id, y, c) == cal.compute(r.id, y, c) == pytest.approx(cal.compute(r.id, y[order], c[order]))
        )


def test_recommendations_show_as_a_table():
    found = cal.recommend("binary", "test", most=2)
    assert str(found).startswith("Cox intercept and slope (cis): ")
    assert found._repr_html_().count("<tr>") == 3


def test_of_the_estimators_of_one_metric_one_is_recommended():
    found = [cal.catalogue[r.id] for r in cal.recommend("binary", "test", most=40)]
    named = [entry.preset_of or entry.id for entry in found]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("n", [100, 500, 10_000, 100_000])
def test_what_never_reads_0_is_not_recommended_to_measure(n):
    """MVMS, SICE and others keep reading an error of a calibrated model, however many rows there are."""
    for found in cal.recommend("binary", "measure", n=n, most=4):
        beside = "few rows" in cal.catalogue[found.id].advised  # an upper bound, which the review wants beside errors
        assert beside or (finding(found.id, 100_000).expected_by_chance or 0.0) < 0.01, found.id
    largest = cal.recommend("binary", "measure", n=n, safety=True)[0]  # made for safety, with that caution
    assert (largest.id, "a calibrated model shows" in largest.caution) == ("mce", True)


# -- the review's own recommendations ------------------------------------------------------------------

#: Section, situation, who must be among the first five, and in which order some of them must stand.
OF_THE_REVIEW = [
    ("3.3", {"n": 150}, {"rbs"}, []),
    ("3.3", {"n": 300, "task": "multiclass"}, {"rbs"}, []),
    ("4.5", {"task": "multiclass", "label_noise": True}, {"ace"}, ["ace", "ece"]),
    ("4.5", {"task": "multiclass", "n_classes": 200}, {"tace"}, ["tace", "ace"]),
    ("5.10", {"goal": "rank"}, {"ece", "ece_pl", "map_error"}, ["ece_pl", "ece_pl3"]),
    ("7.6", {"task": "detection"}, {"egce", "qgc", "sgc", "laace"}, ["egce", "d_ece"]),
    ("7.4", {"task": "detection"}, {"laace"}, ["laace", "laece"]),
]


@pytest.mark.parametrize(("section", "known", "among", "order"), OF_THE_REVIEW)
def test_the_advice_agrees_with_the_reviews_own(section, known, among, order):
    found = cal.recommend(most=200, **known)
    ids = [r.id for r in found]
    assert among <= set(ids[:5])
    places = [ids.index(id) for id in order if id in ids]
    assert places == sorted(places)
    for r in found[:5]:
        if r.id in among:
            assert any(each.source == "review" and each.place == section for each in r.reasons) or r.id == "laace"


def test_every_reason_says_whose_it_is():
    for task, goal, known, *_ in SITUATIONS:
        for r in cal.recommend(task, goal, **known):
            for reason in r.reasons:
                assert reason.source in ("review", "study", "calibrary")
                assert (reason.source == "review") == bool(reason.place)
                assert f"[{reason.source}" in str(cal.recommend(task, goal, **known))
                if "of the study's" in reason:
                    assert reason.source == "study", reason


def test_what_table_2_does_not_say_is_not_called_the_reviews():
    for r in cal.recommend(assurance=True, rare=0.01, safety=True, most=100):
        row = cal.catalogue[r.id].table2
        pros = () if row is None else row.pros
        for reason in r.reasons:
            if reason.place == "Table 2":
                assert set(recommendation._IN_TABLE_2[reason]) & set(pros), r.id


def test_where_only_the_top_label_is_known_whole_vectors_are_not_asked_for():
    found = cal.recommend("multiclass", most=200, top_label_only=True)
    assert found
    for r in found:
        assert {"top-label", "binary"} & set(cal.catalogue[r.id].lenses)
        assert not any("whole probability vector" in reason for reason in r.reasons)


def test_the_advice_stands_on_the_entries():
    situations = {"few rows", "detection", "rank", "many classes", "label noise"}
    for entry in cal.catalogue.values():
        assert set(entry.advised) <= situations
        for text in entry.advised.values():
            assert re.match(r"\d+\.\d+: ", text)


@pytest.mark.parametrize("goal", recommendation.GOALS)
def test_features_of_ordered_classes_are_no_fault(goal):
    found = cal.recommend("ordinal", goal, features=True, most=200)
    for each in found:
        uses = [reason for reason in each.reasons if "errors of different groups do not cancel" in reason]
        assert bool(uses) == bool({"features", "groups", "by"} & set(cal.catalogue[each.id].needs)), each.id
