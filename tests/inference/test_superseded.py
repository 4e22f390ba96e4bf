"""Functions that another call replaces: each works as before, and its warning has a call that gives the same."""

from __future__ import annotations

import functools
import inspect
import warnings

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.moved import SUPERSEDED
from calibrary.metrics.machinery.entry import TESTS
from calibrary.public import PUBLIC

RNG = np.random.default_rng(5)
P = RNG.uniform(0.05, 0.95, 120)
Y = (RNG.random(120) < P**1.3).astype(int)
FEW = {"n_resamples": 19, "rng": 0}

#: Old path: what is asked of it, and what is asked of the new call beside what the warning says.
ASKED = {
    "assert_calibrated": (lambda old: old(Y, P, "ece<0.9", **FEW)[0], {"y_true": Y, "y_prob": P}),
    "calibration_gain": (lambda old: old("bs", Y, P, P / 2, **FEW), {"metric": "bs", "before": P, "after": P / 2}),
    "consistency_band": (lambda old: old("ece", Y, P, **FEW), {"metric": "ece", "alternative": "two-sided"}),
    "reading_band": (lambda old: old("ece", Y, P, **FEW), {"metric": "ece", "alternative": "two-sided"}),
    "null_distribution": (lambda old: old("ece", P, **FEW), {"metric": "ece"}),
    "expected_by_chance": (lambda old: old("cis", Y, P, part="slope", **FEW), {"metric": "cis.slope"}),
    "null_reading": (lambda old: old("ece", Y, P, **FEW), {"metric": "ece"}),
    "observed_expected_interval": (lambda old: old(Y, P), {}),
}
#: Options without which a metric's test is refused.
OF_TESTS = {
    "knn_reliability": {"k": 10}, "multiaccuracy_error": {"by": P > 0.5}, "multicalibration_error": {"by": P > 0.5}
}  # fmt: skip


def resolved(path):
    """The object of an old path, with its one warning."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = functools.reduce(getattr, path.split(".")[1:], cal)
    said = [w for w in said if w.category is DeprecationWarning]
    assert len(said) == 1
    assert said[0].filename == __file__ or "functools" in said[0].filename
    return found, str(said[0].message).removeprefix(f"{path} is an old name: use ")


def called(call, **more):
    """The result of a call as a warning writes it."""
    options = {"verdict": FEW, "interval": {}}.get(call.split("(")[0].split(".")[1], FEW)
    names = {"calibrary": cal, "y_true": Y, "y_prob": P, **more}
    extra = {"alternative": more["alternative"]} if "alternative" in more else {}
    function, _, rest = call.partition("(")
    inside, _, after = rest.partition(")")
    return eval(f"{function}({inside}, **given){after}", {**names, "given": {**options, **extra}})


def numbers(found):
    """Every number of a result."""
    if hasattr(found, "to_dict"):
        found = {name: value for name, value in found.to_dict().items() if name not in ("condition", "sentence")}
    return {name: value for name, value in found.items() if not isinstance(value, str)}


@pytest.mark.parametrize("path", SUPERSEDED)
def test_a_function_works_as_before_and_its_warning_has_the_new_call(path):
    ask, given = ASKED[path.rpartition(".")[2]]
    old, call = resolved(path)
    before, now = ask(old), called(call, **given)
    if "ece<0.05" in call:
        now = cal.verdict("ece<0.9", Y, P, **FEW).require()
    if type(before).__name__ == "RatioInterval":
        assert (before.ratio, before.low, before.high) == (now.value, now.low, now.high)
    elif type(before).__name__ == "NullDistribution":
        np.testing.assert_array_equal(before.values, now.null.values)
    else:
        np.testing.assert_equal(numbers(before), numbers(now))
    assert path.rpartition(".")[2] not in dir(functools.reduce(getattr, path.split(".")[1:-1], cal)) or "study" in path


@pytest.mark.parametrize("name", sorted(name for name, row in PUBLIC.items() if row.kind == "test"))
def test_a_metrics_own_test_is_the_verb_with_its_id(name):
    old, call = resolved(f"calibrary.{name}")
    asked = {"rng": 0} if "rng" in inspect.signature(TESTS[old.entry.id].formula).parameters else {}
    asked |= OF_TESTS.get(old.entry.id, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        before = old(Y, P, **asked)
        now = eval(call.replace(")", ", **asked)"), {"calibrary": cal, "y_true": Y, "y_prob": P, "asked": asked})
    np.testing.assert_equal(numbers(before), numbers(now))
    assert name not in dir(cal)


def test_old_names_of_the_class_lead_to_the_new_one():
    for room in (cal, cal.results, cal.inference):
        for name in ("ConsistencyBand", "ReadingBand"):
            with pytest.warns(DeprecationWarning, match=r"is an old name: use calibrary[.\w]*\.ExpectedByChance$"):
                assert getattr(room, name) is cal.ExpectedByChance
    with pytest.warns(DeprecationWarning, match="ExpectedByChance"):
        assert cal.study.ExpectedByChance is cal.ExpectedByChance


def test_a_verdict_that_does_not_hold_is_an_assertion_error():
    verdict = cal.verdict("ece<0.9", Y, P, **FEW)
    assert verdict.require() is verdict
    with pytest.raises(AssertionError, match=r"which does not meet ece\.value<0\.001$"):
        cal.verdict("ece.value<0.001", Y, P, **FEW).require()
