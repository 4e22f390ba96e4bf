"""Estimate: unpacking, repr, JSON, equality, old names and pickles of every result with an interval."""

from __future__ import annotations

import ast
import copy
import functools
import json
import pickle
import warnings
from dataclasses import fields, replace
from operator import attrgetter

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.saved import typed
from calibrary.inference.result import Estimate
from calibrary.metrics.machinery.declare import alike, plain_value
from each import each
from paths import ROOT
from pickled import C, Y

FEW = {"n_resamples": 39, "rng": 0}
_RNG = np.random.default_rng(1)
_OUT = np.arange(len(Y)) % 4 == 0
_MEMBERS = np.clip(C[:, None] + _RNG.normal(0.0, 0.05, (len(C), 5)), 0.01, 0.99)
_TWICE = np.column_stack([Y, _RNG.random(len(C)) < C]).astype(int)


@functools.cache
def ensemble():
    return cal.ensemble(_TWICE, _MEMBERS, **FEW)


@functools.cache
def judged():
    human = np.where(np.arange(len(Y)) % 2 == 0, Y.astype(float), np.nan)
    return cal.judged("bs", human, C, judge=Y, **FEW)


@functools.cache
def sampled():
    return cal.sampled_answers(_MEMBERS > 0.5, Y, **FEW)


@functools.cache
def pooled():
    return cal.pooled(Y, C, centre=np.arange(len(Y)) % 3, metrics=["oe"])


@functools.cache
def outside():
    y = np.where(_OUT, None, Y)
    return cal.outside_rows(y, C, scores={"noise": np.arange(len(C)) % 7.0}, **FEW)


RESULTS = {
    "estimate": lambda: Estimate(0.2, 0.1, 0.3, 0.95),
    "inversion": lambda: cal.interval("ece", Y, C, **FEW),
    "bootstrap": lambda: cal.interval("ks", Y, C, method="basic", **FEW),
    "several": lambda: cal.interval("cis", Y, C),
    "chance": lambda: cal.expected_by_chance("ece", Y, C, **FEW),
    "comparison": lambda: cal.compare("bs", Y, C, 0.8 * C + 0.1, **FEW),
    "verdict": lambda: cal.verdict("ece < 0.9", Y, C, **FEW),
    "judged": judged,
    "sampled": sampled,
    "shift": lambda: cal.under_shift("ece", Y, C, C[::2], **FEW),
    "over centres": lambda: pooled().table[0],
    "centre": lambda: pooled().centres[0],
    "without a centre": lambda: pooled().leave_one_out[0],
    "ensemble mean": lambda: ensemble().mean,
    "ensemble member": lambda: ensemble().members.rows[1],
    "ensemble members": lambda: ensemble().members,
    "ensemble mixture": lambda: ensemble().mixture,
    "ensemble spread": lambda: ensemble().spread,
    "decomposition": lambda: ensemble().decomposition,
    "entropy": lambda: ensemble().decomposition.entropy,
    "detector": lambda: outside().detector,
    "gain": lambda: outside().gains[0],
    "confidence outside": lambda: outside().outside_confidence,
    "risk with outside": lambda: outside().open_set_error,
}
#: The classes with ends of their own. This list only becomes shorter: a new result is an Estimate, or holds some.
_DECLARED = """
Alternative Axis CalibrationDisplay ConfidenceInterval CorpData
DecisionCurve DecisionData DotData
Estimate GroupingData HonestError HorizonGroup
Instability MetricOption
MurphyDifference PeriodsData Range RatioInterval RecalibrationData ReliabilityData
ReliabilityMapData RiskCoverageData SegmentsData SetCoverageData
SmoothData ValidationData
WatchedDay _IntervalAnswer _Node
"""


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        warnings.simplefilter("error", DeprecationWarning)
        yield


def test_results_hold_estimates_instead_of_ends_of_their_own():
    found = set()
    for path in (ROOT / "src" / "calibrary").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = {getattr(x.target, "id", "") for x in node.body if isinstance(x, ast.AnnAssign)}
                if {"low", "high"} <= names:
                    found.add(node.name)
    assert found == set(_DECLARED.split())


@each(RESULTS)
def test_a_result_is_an_estimate_with_its_fields(name):
    found = RESULTS[name]()
    assert isinstance(found, Estimate)
    assert [f.name for f in fields(found)][: len(fields(Estimate))] == [f.name for f in fields(Estimate)]
    assert tuple(found.confidence_interval) == (found.low, found.high) or np.ndim(found.low)
    assert found.bootstrap_distribution is found.draws


@each(RESULTS)
def test_a_result_unpacks_as_before(name):
    found = RESULTS[name]()
    first, second = (found.value, found.pvalue) if name == "comparison" else (found.low, found.high)
    one, other = found
    assert one is first
    assert other is second


@each(RESULTS)
def test_the_known_fields_are_printed_on_one_line(name):
    found = RESULTS[name]()
    said = repr(found)
    assert said.startswith(f"{type(found).__name__}(value=")
    assert "\n" not in said
    assert "nan" not in said
    assert ("standard_error=" in said) == bool(np.isfinite(found.standard_error).all())
    assert len(said) < 900
    assert "<table" in found._repr_html_()


@each(RESULTS)
def test_json_has_every_field_under_its_old_name_too(name):
    found = RESULTS[name]()
    plain = json.loads(json.dumps(found.to_dict()))
    assert {f.name for f in fields(found)} <= set(plain)
    if name == "several":
        assert plain["value"] == list(found.value)
    else:
        assert plain["value"] == plain["estimate"] == found.value
        assert plain["level"] == plain["confidence_level"]
    assert "replicates" not in plain  # arrays are there once
    for old, new in type(found)._renamed().items():
        there = attrgetter(new)(found)
        assert old not in plain or alike(plain[old], plain_value(there))


@each(RESULTS)
def test_equal_results_are_equal_number_by_number(name):
    one = RESULTS[name]()
    two = copy.deepcopy(one)
    assert one == two
    assert hash(one) == hash(two)
    assert one != replace(one, method="another")
    assert one != replace(one, value=np.asarray(one.value) + 1.0)
    assert one != one.to_dict()
    if len(one.draws):
        assert one != replace(one, draws=one.draws[1:])


@each(RESULTS)
def test_old_names_work_and_warn_once(name):
    found = RESULTS[name]()
    for old, new in type(found)._renamed().items():
        with pytest.warns(DeprecationWarning, match=rf"\.{old} is an old name: use .*\.{new}") as said:
            assert alike(getattr(found, old), attrgetter(new)(found))
        assert len(said) == 1


@each(RESULTS)
def test_pickles_are_equal_also_with_the_old_names(name):
    found = RESULTS[name]()
    assert pickle.loads(pickle.dumps(found)) == found
    old, state = type(found)._renamed(), dict(vars(found))
    state |= {name: attrgetter(new)(found) for name, new in old.items()}
    for new in old.values():
        state.pop(new.partition(".")[0], None)
    again = object.__new__(type(found))
    again.__setstate__(state)
    for old_name, new in old.items():
        assert alike(attrgetter(new)(again), attrgetter(new)(found)), old_name
    if not any("." in new for new in old.values()):
        assert again == found


def test_an_inverted_interval_has_no_standard_error():
    inverted, resampled = RESULTS["inversion"](), RESULTS["bootstrap"]()
    assert np.isnan(inverted.standard_error)
    assert np.isfinite(inverted.expected_by_chance)
    assert resampled.standard_error == pytest.approx(np.std(resampled.draws, ddof=1))
    row = cal.evaluate(Y, C, metrics=["ece"], intervals=True, **FEW).row("ece")
    assert row.low is not None
    assert row.standard_error is None


def test_a_saved_comparison_is_read_under_both_names():
    found = RESULTS["comparison"]()
    plain = json.loads(json.dumps(found.to_dict()))
    old = {k: v for k, v in plain.items() if k not in ("value", "level", "draws")}
    names = {"estimate", "replicates"}
    assert type(found)(**typed(cal.Comparison, {k: v for k, v in old.items() if k not in names})) == found
    assert type(found)(**typed(cal.Comparison, plain)) == found
    with pytest.raises(ValueError, match="must be a number"):
        typed(cal.Comparison, {**plain, "value": "<b>"})
