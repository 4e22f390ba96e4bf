"""Awkward data of every kind against what must be true of every answer (``tests/awkward.py``).

This is the quick profile. The long one, ``make fuzz``, draws the same cases by the million and keeps its place in
``benchmarks/fuzz.json``.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import awkward
import calibrary as cal
from awkward import CONTAINERS, LABEL_TYPES, LABELS, ROWS, SHAPES, WEIGHTS, Case
from each import amount

QUICK = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)
#: Cheap ones and those that broke before; all of them take their turn in the long profile.
IDS = sorted(id for id, entry in cal.catalogue.items() if awkward.taken(entry) and not entry.costly)

cases = st.builds(
    Case,
    shape=st.sampled_from(SHAPES),
    labels=st.sampled_from(LABELS),
    weights=st.sampled_from(WEIGHTS),
    container=st.sampled_from(CONTAINERS),
    label_type=st.sampled_from(LABEL_TYPES),
    rows=st.sampled_from(ROWS),
    columns=st.sampled_from((1, 2, 3, 12)),
    seed=st.integers(0, 2**32 - 1),
)


@settings(QUICK, max_examples=amount(60, 250))
@given(st.sampled_from(IDS), cases, st.integers(0, 20))
def test_every_metric_answers_awkward_data(id, case, turn):
    entry = cal.catalogue[id]
    lenses = ("auto", *entry.lenses)
    awkward.metric_call(entry, case, lenses[turn % len(lenses)], {})


#: Found by the long profile, each a fault of its own once.
ONCE_BROKEN = [
    # 2/3 and 1 - 1/3 differ by a rounding error, and a slope between them depended on the order of the rows
    ("ici", "top-label", Case("ties", "any", "some zero", "polars", "int64", 60, 1, 539814646)),
    ("ep", "true-class", Case("ties", "one class", "sum to one", "tuple", "object", 60, 1, 1861965098)),
    # a fit with next to no curvature stepped so far that the square of the step overflowed
    ("cis", "class-wise", Case("subnormal", "any", "ones", "masked", "bool", 8, 1, 2595704533)),
    # the information of log odds near -700 is singular but for rounding, and a variance came out negative
    ("cis", "binary", Case("subnormal", "any", "counts", "reversed", "uint64", 8, 1, 1580294037)),
    ("cis", "full", Case("subnormal", "any", "ones", "float16", "bool", 8, 1, 964694749)),
    # a Hessian singular but for rounding led uphill, and the fit ended at a slope of -5e31
    ("cis", "auto", Case("near ends", "any", "sum to one", "polars", "float64", 13, 1, 4216140523)),
    # a sign change exactly in the middle of a cell was missed
    ("smece", "pooled", Case("ordinary", "right", "sum to one", "float32", "uint64", 40, 1, 2421697705)),
    # tied rows of different weights came in the order of their weights, for either class
    ("calbin", "binary", Case("dyadic", "any", "fractions", "read-only", "uint64", 60, 1, 3384153905)),
    # between subnormal knots the slope of a map overflows, and it left [0, 1]
    ("ehl", "auto", Case("subnormal", "any", "counts", "torch", "bool", 13, 1, 3517966988)),
    # sums of weights that differ by rounding moved a bin's end, and told equal accuracies apart
    (
        "rank_calibration_error",
        "cumulative",
        Case("float32", "wrong", "sum to one", "masked", "uint64", 60, 3, 201488368),
    ),
    ("rank_calibration_error", "pooled", Case("float32", "any", "fractions", "torch", "uint64", 3, 1, 57363533)),
    # a probability next to 1 lost the digits of its distance from it
    ("sbct", "auto", Case("ends", "any", "some zero", "object", "int64", 2, 1, 1428465397)),
    # rows that are left out of a sum overflowed before they were
    ("bkde", "pairwise", Case("float32", "one class", "very unequal", "fortran", "float64", 40, 12, 4208193295)),
    # -inf of one class and +inf of another
    ("dss", "cumulative", Case("ties", "wrong", "very unequal", "float32", "object", 40, 12, 1467979269)),
    ("dss", "cumulative", Case("tiny", "wrong", "ones", "array", "int8", 8, 12, 4156908001)),
]


@pytest.mark.parametrize(("id", "lens", "case"), ONCE_BROKEN)
def test_what_the_long_attack_once_broke(id, lens, case):
    awkward.metric_call(cal.catalogue[id], case, lens, {})


@settings(QUICK, max_examples=amount(4, 12))
@given(st.sampled_from(("ece", "bs", "smece", "nll", "ecce_mad", "mmce")), st.sampled_from(SHAPES), st.integers(0, 99))
def test_a_thousand_classes_are_answered(id, shape, seed):
    awkward.metric_call(cal.catalogue[id], Case(shape=shape, rows=8, columns=1000, seed=seed), "auto", {})


@settings(QUICK, max_examples=amount(12, 40))
@given(
    st.sampled_from(("ece", "smece", "ecce_mad", "bs", "eo", "mce", "spiegelhalter", "gsb")),
    cases,
    st.sampled_from(("inversion", "triangle", "basic", "test", "compare")),
)
@example("ece", Case(rows=20, seed=3), "inversion")
@example("ece", Case(rows=60, labels="wrong", seed=3), "triangle")
@example("spiegelhalter", Case("tiny", "wrong", "ones", "array", "int64", 5, 1, 3742031899), "basic")  # no lower end
def test_intervals_tests_and_comparisons_of_awkward_data(id, case, what):
    awkward.inference_call(cal.catalogue[id], awkward.plain_case(case), what, {})


@pytest.mark.parametrize("case", [
    Case("ties", "right", "none", "array", "int64", 1, 12, 3605229495),
    Case(shape="ends", rows=3), Case(shape="subnormal", rows=8, weights="counts"),
    Case(shape="equal", labels="one class"), Case(shape="ties", columns=3, labels="wrong", rows=13),
])  # fmt: skip
def test_tables_of_awkward_data(case):
    awkward.evaluation_call(case, {})


def test_the_oracle_knows_what_must_not_happen():
    def warned():
        warnings.warn("invalid value", RuntimeWarning, stacklevel=1)
        return 1.0

    def broken():
        return [][0]

    def raw():
        return float("a")

    for call, said in (
        (broken, "IndexError"),
        (raw, "no sentence"),
        (warned, "RuntimeWarning"),
        (lambda: np.nan, "without"),
    ):
        with pytest.raises(awkward.Violation, match=said):
            awkward.asked(call, "")
    entry = cal.catalogue["ece"]
    with pytest.raises(awkward.Violation, match="is outside"):
        awkward._check_range(entry, awkward.Answer("number", np.array([1.5])), {"lens": "auto"}, Case().data(), "")


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_is_read(container):
    case = Case(container=container, rows=20, seed=1)
    awkward.metric_call(cal.catalogue["bs"], case, "auto", {})
    assert awkward.held(case.data()[1], container) is not None or container in ("pandas", "polars", "pyarrow", "torch")
