"""Properties that every metric of the catalogue must have, including metrics that are added later.

These tests run for all entries of the catalogue; exceptions are declared in the entry, not in this file.
"""

from __future__ import annotations

import doctest
import functools
import inspect
import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrary as cal
from calibrary.base.signatures import own_options
from calibrary.data.lens import ALL_LENSES
from calibrary.lookup import by_name
from calibrary.metrics.machinery import option_checks
from calibrary.metrics.machinery.cards import table2
from calibrary.metrics.machinery.declare import TESTS
from each import FULL, amount, each, turn
from metric_cases import ENTRIES, binary, extra, multi, numbers, quiet, rows, rows_for_classes, same

every_metric = pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.id)
#: Metrics of labels and probabilities; metrics of matched detections are tested in test_detection.
CLASSIFIERS = [e for e in ENTRIES if e.data_type == "predictions"]
every_classifier = pytest.mark.parametrize("entry", CLASSIFIERS, ids=lambda e: e.id)


def value(entry, y, p, **kw):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        return entry(y, p, **kw)


def problems(entry):
    """Binary and multi-class problems this metric can take."""
    yield (*binary(), extra(entry, 90))
    y, p = multi()
    if entry.default_lens != "binary" and entry.data_type == "predictions":
        yield y, p, rows_for_classes(entry, extra(entry, 90), p)


def solved(entry):
    """The problems, each with the value of the metric, which is computed once for all tests of this file."""
    return zip(problems(entry), _values(entry), strict=True)


@functools.cache
def _values(entry):
    return [entry(y, p, **kw) for y, p, kw in problems(entry)]


# -- the catalogue -----------------------------------------------------------------------------------


def test_the_catalogue_holds_every_row_of_table_2():
    rows = {e.id: e.row for e in cal.catalogue.values() if e.row is not None}
    assert sorted(rows.values()) == list(range(1, 83))
    assert sorted(rows) == sorted(table2())


def test_no_two_metrics_share_an_id_or_function():
    functions = [e.function for e in cal.catalogue.values() if e.function]
    assert len(functions) == len(set(map(id, functions)))


@each(ENTRIES)
def test_facts_are_complete(entry):
    assert entry.meaning
    assert len(entry.meaning) < 160
    for fact in ("use", "avoid", "sign", "cost", "equation"):
        assert getattr(entry, fact), f"{entry.id} has no {fact}"
    assert entry.better in ("lower", "higher", "perfect")
    assert entry.proper in ("strictly", "proper", "no", "dataset")
    assert entry.tail in ("greater", "less", "two-sided")
    assert entry.weights in ("repetition", "rows", "none")
    assert entry.range[0] <= entry.range[1]
    assert entry.null or entry.null_note
    assert entry.order_free or entry.order_note
    assert entry.weights == "repetition" or entry.weights_note
    if entry.data_type == "predictions":
        assert entry.default_lens in entry.lenses
        assert entry.binary_lens in entry.lenses


@each(ENTRIES)
def test_the_docstring_teaches_and_its_example_runs(entry):
    doc = inspect.getdoc(entry.function)
    assert "Examples" in doc
    assert entry.front.data[0] in doc
    case = doctest.DocTestParser().get_doctest(doc, {}, entry.id, None, 0)
    assert case.examples
    if not FULL:  # the examples of src are run as they stand there
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(case)
    assert failed == 0


@each(ENTRIES)
def test_every_alias_finds_the_metric_or_says_which_ones_it_may_mean(entry):
    for alias in (entry.id, entry.id.upper(), entry.id.replace("_", "-"), *entry.aliases):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)  # a name with two meanings says the other one
            found = cal.catalogue[alias].id
        assert found == entry.id or f"{entry.id!r}: " in "; ".join(by_name.other_meanings(alias))


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("SCE", ("ece", "sce")), ("ACE", ("ace", "average_calibration_error")), ("DECE", ("dece", "d_ece")),
        ("MSCE", ("msce", "ce2_db")), ("CECE", ("cece", "ece")), ("smooth calibration error", ("smece", "sce")),
    ],
)  # fmt: skip
def test_ambiguous_names_say_the_other_candidates(name, candidates):
    by_name._warn_of_other_meanings.cache_clear()
    with pytest.warns(cal.CalibrationWarning, match="may also mean") as caught:
        found = cal.catalogue[name]
    assert found.id in candidates
    said = str(caught[0].message)
    assert all(f"'{id}': " in said for id in candidates if id != found.id)


@each(ENTRIES)
def test_the_name_of_its_function_finds_the_metric(entry):
    assert cal.catalogue[entry.function.__name__].id == entry.id


def test_near_misses_are_suggested():
    with pytest.raises(cal.UnknownMetricError, match="did you mean"):
        cal.compute("brier_scor", [0, 1], [0.2, 0.8])


# -- invariants --------------------------------------------------------------------------------------


@quiet
@every_metric
def test_row_order_changes_nothing(entry):
    if not entry.order_free:
        pytest.skip(f"does not apply: {entry.order_note}")
    for (y, p, kw), value in solved(entry):
        i = np.random.default_rng(5).permutation(len(y))
        same(entry(y[i], p[i], **rows(kw, i)), value)


@quiet
@every_metric
def test_weight_two_is_the_row_written_twice(entry):
    if entry.weights != "repetition":
        pytest.skip(f"does not apply: {entry.weights_note}")
    for y, p, kw in problems(entry):
        w = np.arange(len(y)) % 4  # zero leaves a row out
        i = np.repeat(np.arange(len(y)), w)
        same(entry(y, p, sample_weight=w, **kw), entry(y[i], p[i], **rows(kw, i)), rtol=1e-8)


@quiet
@every_metric
def test_weights_and_row_order_mean_the_same_for_many_rows(entry):
    # where few nodes stand for many rows, sums are compiled, or blocks follow one another
    other_input = set(entry.needs) - {"order", "distributions"}
    if entry.weights != "repetition" or entry.slow_binary or not entry.order_free or other_input:
        pytest.skip("does not apply: needs other input, is too slow, or does not promise it")
    y, c = binary(30_000, decimals=12)
    w = np.arange(len(y)) % 4
    i = np.random.default_rng(5).permutation(np.repeat(np.arange(len(y)), w))
    same(entry(y, c, sample_weight=w), entry(y[i], c[i]), rtol=1e-8)


@quiet
@every_metric
def test_unit_weights_change_nothing(entry):
    if entry.weights == "none":
        y, p = binary()
        with pytest.raises(ValueError, match="sample_weight"):
            entry(y, p, sample_weight=np.full(len(y), 2.0), **extra(entry, len(y)))
        return
    for (y, p, kw), value in solved(entry):
        same(entry(y, p, sample_weight=np.ones(len(y)), **kw), value)


@quiet
@every_metric
def test_a_predictions_object_gives_the_same_number_as_arrays(entry):
    for (y, p, kw), value in solved(entry):
        if entry.data_type == "matches":
            same(entry(cal.matched_detections(y, p, **kw)), value)
        else:
            same(entry(cal.predictions(y, p), **kw), value)


@quiet
@every_classifier
def test_two_columns_are_the_binary_problem(entry):
    y, c = binary()
    kw = extra(entry, len(y))
    kw2 = (
        {**kw, "consistency": np.column_stack([1 - kw["consistency"], kw["consistency"]])}
        if "consistency" in kw
        else kw
    )
    same(entry(y, np.column_stack([1 - c, c]), **kw2), _values(entry)[0])


CONTAINERS = {
    "list": lambda x: x.tolist(),
    "pandas": lambda x: pytest.importorskip("pandas").Series(x, index=np.arange(len(x))[::-1]),
    "polars": lambda x: pytest.importorskip("polars").Series(x),
    "pyarrow": lambda x: pytest.importorskip("pyarrow").array(x),
    "torch": lambda x: pytest.importorskip("torch").tensor(x),
}


@quiet
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_number(container):
    # all of them with one metric of each kind of data, and with every other metric one, which its id chooses
    y, c = binary(60)
    make = CONTAINERS[container]
    given = make(y), make(c)

    @each([e for e in ENTRIES if e.id in ("bs", "ece", "d_ece") or turn(e.id, CONTAINERS) == container])
    def take(entry):
        kw = extra(entry, len(y))
        same(entry(*given, **kw), entry(y, c, **kw))

    take()


def words(y):
    return np.where(y == 1, "yes", "no")


#: Other types of the same labels and probabilities, which single precision holds exactly.
TYPES = {
    "float32": lambda y, c: (y, c.astype(np.float32), {}),
    "bool": lambda y, c: (y.astype(bool), c, {}),
    "float": lambda y, c: (y.astype(float), c, {}),
    "uint8": lambda y, c: (y.astype(np.uint8), c, {}),
    "pos_label": lambda y, c: (words(y), c, {"pos_label": "yes"}),
    "labels": lambda y, c: (words(y).tolist(), c, {"labels": ["no", "yes"]}),
}


@quiet
@every_classifier
def test_label_types_and_float32_give_the_same_number(entry):
    # all of them with one metric for each way through the door, and with every other metric one, which its id chooses
    y, c = binary(60)
    c = c.astype(np.float32).astype(np.float64)
    kw = extra(entry, len(y))
    want = entry(y, c, **kw)
    for kind in TYPES if entry in ALL_CASES or FULL else [turn(entry.id, TYPES)]:
        y_true, y_prob, named = TYPES[kind](y, c)
        same(entry(y_true, y_prob, **named, **kw), want)


@quiet
@every_metric
def test_inputs_are_never_modified(entry):
    for y, p, kw in problems(entry):
        w = 1.0 + np.arange(len(y)) % 2
        for array in (y, p, w, *(v for v in kw.values() if isinstance(v, np.ndarray))):
            array.flags.writeable = False
        entry(y, p, **kw)
        if entry.weights != "none":
            entry(y, p, sample_weight=w, **kw)


@quiet
@every_metric
def test_swapping_the_classes_changes_nothing_where_the_entry_says_so(entry):
    if not entry.symmetric:
        pytest.skip("does not apply: not symmetric")
    # dyadic confidences, so that 1 - c is exact and ties stay ties; none on a bin edge
    rng = np.random.default_rng(3)
    c = rng.integers(1, 1024, 120) / 1024
    y = (rng.random(120) < c**1.3).astype(int)
    kw = extra(entry, 120)
    same(entry(1 - y, 1 - c, **kw), entry(y, c, **kw), rtol=1e-8, atol=1e-10)


@st.composite
def small_problem(draw):
    n = draw(st.integers(1, 30))
    grid = st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.9, 0.25, 1e-12, 1 - 1e-12])
    c = draw(st.lists(st.one_of(grid, st.floats(0, 1)), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return np.array(y), np.array(c)


@quiet
@every_metric
@settings(max_examples=amount(4, 12), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(problem=small_problem())
def test_the_value_stays_in_its_range(entry, problem):
    y, c = problem
    try:
        result = value(entry, y, c, **extra(entry, len(y)))
    except ValueError:
        return  # too little data for this metric; the edge-case tests check the sentence
    if entry.fields or not isinstance(result, float):
        return
    low, high = entry.range
    slack = 1e-9
    assert math.isnan(result) or low - slack <= result <= high + slack


EDGES = {
    "one row": ([1], [0.7]),
    "one sure row": ([0], [0.0]),
    "two rows": ([1, 0], [0.7, 0.2]),
    "two equal": ([1, 1], [0.3, 0.3]),
    "all positive": ([1] * 40, [i / 41 for i in range(1, 41)]),
    "all negative": ([0] * 40, [i / 41 for i in range(1, 41)]),
    "constant": ([0, 1] * 20, [0.5] * 40),
    "perfect": ([0, 1] * 20, [0.0, 1.0] * 20),
    "all wrong": ([1, 0] * 20, [0.0, 1.0] * 20),
    "ends": ([0, 1, 0, 1] * 10, [0.0, 1.0, 0.3, 0.6] * 10),
}


@each([(entry, case) for entry in ENTRIES for case in EDGES])
def test_edge_cases_give_a_value_a_warning_or_a_sentence(entry, case):
    y, c = EDGES[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = numbers(entry(y, c, **extra(entry, len(y))))
        except ValueError as error:
            assert len(str(error)) > 15  # noqa: PT017
            return
    assert not [w for w in caught if issubclass(w.category, RuntimeWarning)]
    if np.isnan(result).any():
        assert any(issubclass(w.category, cal.CalibrationWarning) for w in caught), "a silent NaN"


# -- bad input ---------------------------------------------------------------------------------------

Y, C = [0, 1, 1, 0, 1, 0] * 5, [0.1, 0.6, 0.9, 0.4, 0.7, 0.2] * 5
P = [[0.2, 0.3, 0.5]] * 30
BAD = {
    "nan": ((Y, [math.nan, *C[1:]]), {}, r"y_prob\[0\]"),
    "infinity": ((Y, [*C[:-1], math.inf]), {}, r"y_prob\[29\]"),
    "above one": ((Y, [0.1, 1.04, *C[2:]]), {}, r"y_prob\[1\] = 1.04"),
    "below zero": ((Y, [0.1, -0.2, *C[2:]]), {}, r"y_prob\[1\] = -0.2"),
    "rows that do not sum to one": (([0, 1, 2] * 10, [[0.5, 0.3, 0.3], *P[1:]]), {}, r"y_prob\[0\] sums to 1.1"),
    "label outside the classes": (([2, *Y[1:]], C), {}, r"y_true\[0\] = 2"),
    "negative label": (([-1, *Y[1:]], C), {}, r"y_true\[0\] = -1"),
    "label that is a score": (([0.3, *Y[1:]], C), {}, r"y_true\[0\] = 0.3"),
    "swapped": ((C, Y), {}, "swapped"),
    "different lengths": ((Y[:-1], C), {}, "29 rows and y_prob has 30"),
    "three dimensions": ((Y, [[C]]), {}, "dimensions"),
    "empty": (([], []), {}, "empty"),
    "one column": ((Y, [[c] for c in C]), {}, "one column"),
    "negative weight": ((Y, C), {"sample_weight": [-1.0] + [1.0] * 29}, r"sample_weight\[0\] = -1"),
    "nan weight": ((Y, C), {"sample_weight": [math.nan] + [1.0] * 29}, r"sample_weight\[0\] = nan"),
    "zero weights": ((Y, C), {"sample_weight": [0.0] * 30}, "every sample_weight is zero"),
    "weights of another length": ((Y, C), {"sample_weight": [1.0] * 7}, "sample_weight has shape"),
    "unknown lens": ((Y, C), {"lens": "toplable"}, "did you mean .*'top-label'"),
    "unknown option": ((Y, C), {"sample_weigth": [1.0] * 30}, "did you mean 'sample_weight'"),
    "names without pos_label": ((["yes" if y else "no" for y in Y], C), {}, "pos_label"),
    "unknown name": ((["yes"] * 29 + ["maybe"], C), {"labels": ["no", "yes"]}, r"y_true\[29\] = 'maybe'"),
    "no probabilities": ((Y,), {}, "y_prob is missing"),
}


def refused(entry, case, function=None):
    data, kw, sentence = BAD[case]
    if case == "label that is a score" and entry.fractional != "no":
        return  # it takes shares between 0 and 1 as labels
    with pytest.raises((ValueError, TypeError), match=sentence):
        (function or entry)(*data, **kw, **extra(entry, 30))


#: Every metric reads its data through the same door: all cases with one metric for each way through it.
ALL_CASES = [e for e in CLASSIFIERS if e.id in ("bs", "ece", "ice", "hl", "skce_ul", "cis", "gl", "piece")]


@each([(entry, case) for entry in ALL_CASES for case in BAD])
def test_bad_input_is_refused_with_a_sentence(entry, case):
    refused(entry, case)


@each(CLASSIFIERS)
def test_every_metric_refuses_the_bad_input_that_its_id_chooses(entry):
    refused(entry, turn(entry.id, BAD))


#: Other fronts than the metric's function: they refuse with the same sentences.
FRONTS = {
    "compute": lambda y, p=None, **kw: cal.compute("bs", *([y] if p is None else [y, p]), **kw),
    "test": lambda y, p=None, **kw: cal.test("ece", *([y] if p is None else [y, p]), n_resamples=9, rng=0, **kw),
    "interval": lambda y, p=None, **kw: cal.interval("bs", *([y] if p is None else [y, p]), n_resamples=9, **kw),
    "table": lambda y, p=None, **kw: cal.evaluate(*([y] if p is None else [y, p]), metrics=["bs"], **kw),
    "report": lambda y, p=None, **kw: cal.report(*([y] if p is None else [y, p]), n_resamples=0, **kw),
}


@each([(front, case) for front in FRONTS for case in BAD])
def test_other_fronts_refuse_bad_input_with_the_same_sentence(front, case):
    refused(cal.catalogue["bs"], case, FRONTS[front])


REFUSED = [(e, name) for e in ENTRIES for name in sorted(set(ALL_LENSES) - set(e.lenses) - {"partition", "code"})]


@each(REFUSED)
def test_a_lens_it_is_not_defined_through_is_refused_by_name(entry, name):
    y, p = multi(30) if entry.data_type == "predictions" else binary(30)
    rank = {"r": 1} if name in ("rth", "within-top-r", "ranked") else {}
    with pytest.raises((ValueError, TypeError), match=r"not defined for|has no option 'r'"):
        entry(y, p, lens=name, **rank, **extra(entry, 30))


# -- tests of their own ------------------------------------------------------------------------------

WITH_TEST = [e for e in ENTRIES if e.id in TESTS]


@quiet
@pytest.mark.parametrize("entry", WITH_TEST, ids=lambda e: e.id)
def test_a_p_value_is_a_probability_and_calibrated_data_pass(entry):
    rng = np.random.default_rng(11)
    c = rng.random(300)
    y = (rng.random(300) < c).astype(int)
    options = {"rng": 0} if "rng" in inspect.signature(TESTS[entry.id].formula).parameters else {}
    if "query" in entry.needs:
        pytest.skip("does not apply: needs a query point")
    result = cal.test(entry.id, y, c, **options, **extra(entry, 300))
    statistic, pvalue = result
    assert math.isfinite(statistic)
    assert 0.001 < pvalue <= 1.0
    wrong = cal.test(entry.id, y, c**3, **options, **extra(entry, 300))
    assert wrong.pvalue < min(0.3, result.pvalue)  # a distribution-free bound is weak even against gross errors


def test_every_line_of_the_table_of_options_is_about_an_option():
    """A line for one metric names an option of it or of its test, whose default is one of the words."""
    for key, known in option_checks._TABLE.items():
        id, _, name = key.partition(".")
        if name:
            declared = [own_options(each.formula) for each in (cal.catalogue[id], TESTS.get(id)) if each is not None]
            defaults = [options[name].default for options in declared if name in options]
            assert defaults, key
            if "words" in known:
                assert set(defaults) <= {*known["words"].split("|"), None}, key


@pytest.mark.parametrize("key", ["skce.estimator", "cis.boundary", "ps.form", "ici.measure", "hinge.variant"])
def test_an_unknown_word_is_refused_before_the_formula_is_called(key):
    id, _, name = key.partition(".")
    with pytest.raises(cal.RefusedError, match=f"^{name}='nonsense' is not known: choose from "):
        cal.compute(id, [0, 1, 1, 0, 1], [0.2, 0.7, 0.6, 0.3, 0.9], **{name: "nonsense"})
