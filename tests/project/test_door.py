"""What broke 0.1.0 when it was attacked: every label, weight, option and file is read rightly or refused.

The numbers of the sections (A1, C3, ...) are those of the list of attacks in ``benchmarks/attacks.py``, which shows the
same attacks before and after.
"""

from __future__ import annotations

import datetime
import io
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.text import for_csv, for_figure, for_terminal
from calibrary.data.columns import matched_names
from calibrary.data.lens import as_lens
from calibrary.numerics.sums import gaussian
from calibrary.numerics.sums.diffusion import Diffusion

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def twelve():
    """400 calibrated predictions of twelve classes."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(12, 0.3), 400)
    y = np.array([rng.choice(12, p=row) for row in p])
    return y, p


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(1)
    p = rng.random(60)
    return (rng.random(60) < p).astype(int), p


# -- A: labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hold", [lambda y: y.astype(object), lambda y: pd.Series(y, dtype=object), list, lambda y: y * 1.0]
)
def test_whole_numbers_are_ordered_as_numbers_whatever_holds_them(twelve, hold):
    y, p = twelve
    assert cal.expected_calibration_error(hold(y), p) == cal.expected_calibration_error(y, p)


def test_whole_numbers_written_as_text_are_ordered_as_numbers(twelve):
    y, p = twelve
    checked = cal.predictions(y.astype(str), p)
    assert checked.classes == tuple(str(k) for k in range(12))
    np.testing.assert_array_equal(checked.y, y)


@pytest.mark.parametrize("gone", [None, np.nan, float("nan"), pd.NA, pd.NaT])
def test_a_missing_label_is_no_class(gone):
    y = np.array(["a", "c", gone, "c"], dtype=object)
    with pytest.raises(ValueError, match=r"y_true\[2\] is missing"):
        cal.predictions(y, np.full((4, 3), 1 / 3))
    with pytest.raises(ValueError, match=r"y_true\[2\] is missing"):
        cal.predictions(pd.Series([1, 0, gone, 1], dtype=object), [0.1, 0.2, 0.3, 0.4], pos_label=1)


@pytest.mark.parametrize(
    "container", [lambda v: pd.Series(v, dtype="string"), lambda v: pd.Series(v, dtype="category")]
)
def test_missing_labels_of_pandas_are_missing(container):
    with pytest.raises(ValueError, match=r"y_true\[1\] is missing"):
        cal.predictions(container(["a", None, "b"]), [0.1, 0.2, 0.3], pos_label="a")


def test_a_missing_number_is_no_negative():
    with pytest.raises(ValueError, match=r"y_true\[1\] is missing"):
        cal.brier_score(np.array([1.0, np.nan, 1.0]), [0.1, 0.2, 0.3], pos_label=1)


def test_masked_values_are_refused_and_an_empty_mask_is_none(binary):
    y, p = binary
    mask = np.arange(60) == 7
    with pytest.raises(ValueError, match=r"y_prob\[7\] is masked"):
        cal.brier_score(y, np.ma.masked_array(p, mask))
    with pytest.raises(ValueError, match=r"y_true\[7\] is masked"):
        cal.brier_score(np.ma.masked_array(y, mask), p)
    with pytest.raises(ValueError, match=r"sample_weight\[7\] is masked"):
        cal.brier_score(y, p, sample_weight=np.ma.masked_array(np.ones(60), mask))
    for id in ("bs", "nll", "ece", "smece"):
        whole = cal.compute(id, np.ma.masked_array(y, False), np.ma.masked_array(p, False))
        assert whole == cal.compute(id, y, p)


@pytest.mark.parametrize("labels", [[1, 2], ["1", "2"], [True, "no"], [-1, 1]])
def test_labels_other_than_zero_and_one_are_never_guessed(labels):
    with pytest.raises(ValueError, match=r"pos_label|mixes"):
        cal.brier_score(np.array([labels[0], labels[1], labels[0]], dtype=object), [0.1, 0.9, 0.2])


@pytest.mark.parametrize(
    "wrong",
    [
        [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)],
        np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"),
        np.array([0 + 0j, 1 + 0j]),
        [{}, {}],
        np.array([[1], [2, 3]], dtype=object),
    ],
)
def test_dates_complex_numbers_and_containers_are_no_labels(wrong):
    with pytest.raises(ValueError, match=r"^y_true"):
        cal.brier_score(wrong, [0.2, 0.7], pos_label=wrong[0] if isinstance(wrong, list) and wrong[0] else None)


@pytest.mark.parametrize(
    ("y", "shown"),
    [(np.array([0, 2**64 - 1], dtype=np.uint64), "18446744073709551615"), (np.array([0.0, 1e300]), "1e")],
)
def test_huge_labels_are_named_as_they_are(y, shown):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=rf"y_true\[1\] = {shown}"):
            cal.brier_score(y, [0.2, 0.7])
        with pytest.raises(ValueError, match=r"y_true\[0\] = inf"):
            cal.brier_score(np.array([10**400, 1], dtype=object), [0.2, 0.7])


@pytest.mark.parametrize("labels", [["a", "b"], None])
def test_pos_label_is_refused_where_every_class_has_a_column(labels):
    p = np.array([[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(ValueError, match="pos_label='a' needs one column of probabilities, and y_prob has 2"):
        cal.brier_score(["a", "b"], p, labels=labels, pos_label="a")


@pytest.mark.parametrize("labels", [5, "ab", ["a", None], [["a"], ["b"]], ["a", "a"], ["a"]])
def test_labels_that_name_no_classes_are_refused(labels):
    with pytest.raises(ValueError, match=r"^labels="):
        cal.brier_score(["a", "b"], [0.1, 0.9], labels=labels)


def test_pos_label_must_be_a_label():
    with pytest.raises(ValueError, match=r"pos_label=\[1\] is not a label"):
        cal.brier_score([1, 2], [0.1, 0.9], pos_label=[1])
    with pytest.raises(ValueError, match="pos_label='c' is not among labels"):
        cal.brier_score(["a", "b"], [0.1, 0.9], labels=["a", "b"], pos_label="c")
    with pytest.raises(ValueError, match="pos_label='a' that it is another one: pass one of them"):
        cal.brier_score(["a", "b"], [0.9, 0.1], labels=["a", "b"], pos_label="a")
    assert cal.brier_score(["a", "b"], [0.9, 0.1], labels=["b", "a"], pos_label="a") == pytest.approx(0.01)


def test_names_given_with_checked_predictions_are_refused(binary):
    with pytest.raises(TypeError, match="already a Predictions object"):
        cal.brier_score(cal.predictions(*binary), pos_label=1)


# -- A: tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [["cat", "car"], ["prob_cat", "prob_car"], ["cat.p", "car.p"], ["car", "cat"]])
def test_columns_are_matched_to_classes_by_name_in_any_order(columns):
    rng = np.random.default_rng(2)
    cat = rng.random(200)
    y = np.where(rng.random(200) < cat, "cat", "car")
    of = {name: cat if "cat" in name else 1 - cat for name in columns}
    want = cal.brier_score(y, cat, pos_label="cat")
    assert cal.brier_score(y, pd.DataFrame(of)) == pytest.approx(want)
    assert cal.brier_score(y, pd.DataFrame(of), labels=["car", "cat"]) == pytest.approx(want)
    polars = pytest.importorskip("polars")
    assert cal.brier_score(y, polars.DataFrame(of)) == pytest.approx(want)


@pytest.mark.parametrize("numbers", [range(12), [f"p{k}" for k in range(12)], [f"p_{k + 1}" for k in range(12)]])
def test_numbered_columns_are_put_in_the_order_of_their_numbers(twelve, numbers):
    y, p = twelve
    table = pd.DataFrame(p, columns=list(numbers))[list(reversed(numbers))]
    start = int(str(numbers[0])[-1])
    assert cal.expected_calibration_error(y + start, table) == cal.expected_calibration_error(y, p)


def test_numbers_that_may_count_from_zero_or_one_are_asked_about():
    table = pd.DataFrame(np.full((2, 3), 1 / 3), columns=["p_cat", "p_dog", "p_fish"])
    with pytest.raises(ValueError, match=r"count from 0 or 1: pass labels=\[0, 1, 2\] or labels=\[1, 2, 3\]"):
        cal.brier_score([1, 2], table)
    assert cal.predictions([1, 2], table, labels=[1, 2, 3]).y.tolist() == [0, 1]
    assert cal.predictions([0, 2], table).y.tolist() == [0, 2]


def test_columns_named_after_other_things_are_refused():
    table = pd.DataFrame(np.full((2, 3), 1 / 3), columns=["x", "y", "z"])
    with pytest.raises(ValueError, match="do not name the classes in y_true"):
        cal.brier_score(["a", "b"], table)
    with pytest.raises(ValueError, match="share 'cat' but not all"):
        cal.brier_score(["cat", "dog"], pd.DataFrame(np.eye(2), columns=["cat", "pdog"]), labels=["dog", "cat"])
    assert cal.predictions(["a", "b"], table, labels=["c", "b", "a"]).y.tolist() == [2, 1]


def test_names_within_columns():
    assert matched_names(["prob_cat", "prob_car"], {"cat", "car"}) == ["cat", "car"]
    assert matched_names(["p10", "p11"], {"10", "11"}) == ["10", "11"]
    assert matched_names(["dove", "dog", "duck"], {"dog", "duck"}) == ["dove", "dog", "duck"]
    assert matched_names(["a", "b"], {"c"}) is None


def test_indexes_that_differ_are_refused(binary):
    y, p = pd.Series(binary[0]), pd.Series(binary[1])
    shuffled = p.sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match="y_prob and y_true have different indexes"):
        cal.brier_score(y, shuffled)
    with pytest.raises(ValueError, match="sample_weight and y_true have different indexes"):
        cal.brier_score(y, binary[1], sample_weight=pd.Series(np.ones(60), index=np.arange(60)[::-1]))
    assert cal.brier_score(y, shuffled.loc[y.index]) == cal.brier_score(*binary)


# -- A: numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [np.array([0.2 + 0.5j, 0.7]), np.array([0, 1], "timedelta64[s]"), ["a", "b"], [None, 1]]
)
def test_what_is_no_real_number_is_no_probability_and_no_weight(wrong):
    with pytest.raises(ValueError, match=r"^y_prob"):
        cal.brier_score([0, 1], wrong)
    with pytest.raises(ValueError, match=r"^sample_weight"):
        cal.brier_score([0, 1], [0.2, 0.7], sample_weight=wrong)
    with pytest.raises(ValueError, match=r"^edges|^average"):
        cal.expected_calibration_error([0, 1], [0.2, 0.7], edges=wrong)


def test_percentages_are_refused_until_they_are_declared(binary):
    y, p = binary
    with pytest.raises(ValueError, match=r"y_prob\[0\] = .* pass percent=True if these are percentages"):
        cal.brier_score(y, 100 * p)
    assert cal.brier_score(y, 100 * p, percent=True) == pytest.approx(cal.brier_score(y, p))
    assert cal.evaluate(y, 100 * p, percent=True, metrics="bs")["bs"] == pytest.approx(cal.brier_score(y, p))
    assert cal.interval("bs", y, 100 * p, percent=True, n_resamples=19).value == pytest.approx(cal.brier_score(y, p))
    rows = np.column_stack([100 - 100 * p, 100 * p])
    assert cal.brier_score(y, rows, percent=True) == pytest.approx(cal.brier_score(y, p))
    with pytest.raises(ValueError, match="is not a percentage"):
        cal.brier_score(y, 101 + p, percent=True)
    with pytest.raises(ValueError, match="percent='no' must be True"):
        cal.brier_score(y, p, percent="no")
    with pytest.warns(cal.CalibrationWarning, match="already probabilities"):
        cal.brier_score(y, p, percent=True)


def test_percent_of_a_metric_that_has_it_stays_with_the_metric(binary):
    assert cal.compute("tce", *binary, percent=True) == 100 * cal.compute("tce", *binary)


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        ([1.7e308, 1.7e308], "goes up to 1.7e\\+308"),
        ([1e300, 1e300], "divide all weights by their mean"),
        ([1e-300, 1e-300], "divide all weights by their mean"),
        ([1e15, 1.0], "differ by a factor of at most 1e\\+12"),
        ([np.inf, 1.0], "finite"),
        ([-1.0, 1.0], "not negative"),
        ([0.0, 0.0], "every sample_weight is zero"),
        (np.ones((2, 1)), "shape"),
    ],
)
def test_weights_that_cannot_be_added_up_are_refused(weight, sentence):
    with pytest.raises(ValueError, match=f"sample_weight.*{sentence}|{sentence}"):
        cal.brier_score([0, 1], [0.2, 0.4], sample_weight=weight)


@pytest.mark.parametrize("scale", [1e-50, 1e50])
def test_weights_within_the_limits_are_fine_for_every_metric(binary, scale):
    y, p = binary
    w = scale * np.tile([1.0, 2.0, 3.0], 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = cal.evaluate(y, p, sample_weight=w)
    failed = {id: why for id, why in result.skipped.items() if why.startswith("failed")}
    assert not failed


# -- C: copies are counted, never written out ------------------------------------------------------


@pytest.mark.parametrize("inner", ["point", "bin"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("definition", ["authors", "review"])
def test_windows_of_copies_are_windows_of_the_rows_written_out(inner, seed, definition):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    c, y = np.round(rng.random(n), 1 + seed % 3), rng.integers(0, 2, n)
    w = rng.integers(1, (2, 5, 40)[seed % 3], n)
    for window in (None, 1, 2, int(w.sum() // 2), int(w.sum()) - 1):
        options = {"window": window, "inner": inner, "definition": definition}
        if window == 0 or window == w.sum():
            continue
        got = cal.calbin(y, c, sample_weight=w.astype(float), **options)
        assert got == pytest.approx(cal.calbin(np.repeat(y, w), np.repeat(c, w), **options), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("weight", [1e9, 2.0**40, 2.0**62, 1e19, 1e30])
def test_any_number_of_copies_can_slide(weight):
    y, p = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]
    # with ever more copies the window becomes an interval of the distribution
    want = cal.calbin(np.repeat(y, 100_000), np.repeat(p, 100_000))
    assert cal.calbin(y, p, sample_weight=[weight] * 4) == pytest.approx(want, rel=1e-4)


def test_a_sweep_over_groups_meets_the_same_ends_as_one_over_bins():
    from calibrary.grouping.adaptive import _Sweep

    rng = np.random.default_rng(0)
    for seed in range(20):
        c = np.arange(1, 6) / 7
        sweep = _Sweep(cal.predictions(rng.integers(0, 2, 5), c, sample_weight=rng.integers(1, 4 + 30 * seed, 5)))
        for b in (21, 40, 97):
            targets = np.arange(b) * (sweep.below[-1] / b)
            whole = sweep._closed(sweep.below.searchsorted(targets * (1 - 1e-12)))
            np.testing.assert_array_equal(np.unique(whole), np.unique(sweep.mass_ends(b)))


@pytest.mark.parametrize("light", [1e-3, 1e-5, 1e-11])
def test_a_sweep_over_rows_of_very_different_weight_ends(light):
    # the light row never gets a bin of its own, whatever the number of bins
    got = cal.sweep_calibration_error([1, 0, 1], [0.1, 0.2, 0.8], sample_weight=[light, 1, 1])
    assert got == pytest.approx(0.2, abs=2 * light)


@pytest.mark.parametrize("method", ["basic", "bca"])
def test_intervals_of_very_many_copies_take_no_more_than_the_rows(binary, method):
    y, p = binary
    counts = np.random.default_rng(0).integers(1, 100, 60)
    few = cal.interval("bs", y, p, sample_weight=counts, method=method, n_resamples=499, rng=0)
    many = cal.interval("bs", y, p, sample_weight=counts * 10.0**8, method=method, n_resamples=499, rng=0)
    assert many.value == pytest.approx(few.value)
    # the same shares of 10^8 times as many cases: 10^4 times as narrow
    assert many.standard_error == pytest.approx(few.standard_error / 1e4, rel=0.15)


@pytest.mark.parametrize("method", ["monte-carlo", "consistency"])
def test_redrawing_very_many_copies_agrees_with_writing_them_out(method):
    rng = np.random.default_rng(3)
    p = rng.random(40)
    copies = rng.integers(200, 400, 40)
    y, c = np.tile([0, 1], 40), np.repeat(p, 2)
    w = np.column_stack([copies - np.rint(copies * p), np.rint(copies * p)]).ravel()
    far = 20 * w  # 240,000 copies: counted
    counted = cal.test("ece", y, c, sample_weight=far, method=method, n_resamples=199, rng=0)
    n = far.astype(int)
    listed = cal.test("ece", np.repeat(y, n), np.repeat(c, n), method=method, n_resamples=199, rng=0)
    assert counted.statistic == pytest.approx(listed.statistic)
    assert counted.expected_by_chance == pytest.approx(listed.expected_by_chance, rel=0.05)


def test_what_needs_every_copy_by_itself_says_so(binary):
    y, p = binary
    with pytest.raises(ValueError, match="counted and never listed"):
        cal.interval("mvms", y, p, sample_weight=np.full(60, 1e9), n_resamples=19)


def test_a_table_of_ten_billion_copies_evaluates(binary):
    y, p = binary
    result = cal.evaluate(
        y, p, sample_weight=np.full(60, 10.0**10 / 60 // 1), intervals=True, tests=True, n_resamples=19, rng=0,
    )  # fmt: skip
    assert not [why for why in result.skipped.values() if why.startswith("failed")]
    assert result.row("ece").high - result.row("ece").low < 1e-3
    assert result.row("bs").pvalue is not None


# -- B and D: compiled code -------------------------------------------------------------------------

COMPILED = """
import numpy as np
from calibrary.numerics.compiled import compiled
from calibrary.numerics.compiled.nearest import range_means
print(compiled(range_means)(np.arange(4.0), np.arange(4.0), np.arange(2), np.arange(2) + 2))
"""


def run_python(code, **environment):
    environment = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_compiled_code_runs_where_nothing_can_be_cached():
    nowhere = "from numba.core import caching\ncaching.CompileResultCacheImpl._locator_classes = []\n"
    refused = "try: numba.njit(cache=True)(textwrap.dedent)\nexcept RuntimeError: print('nothing is cached here')\n"
    said = run_python("import numba, textwrap\n" + nowhere + refused + COMPILED)
    assert said.splitlines() == ["nothing is cached here", run_python(COMPILED)]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    full = (
        "from numba.core import caching\n"
        "def full(*a, **k): raise OSError(28, 'No space left on device')\n"
        "caching.IndexDataCacheFile.save = full\n"
    )
    run_python(full + COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    assert not list(tmp_path.rglob("*.nbc"))


def test_a_broken_cache_is_made_again(tmp_path):
    value = run_python(COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
    files = [path for path in tmp_path.rglob("*.nb*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:40])
    assert run_python(COMPILED, NUMBA_CACHE_DIR=str(tmp_path)) == value
    assert max(path.stat().st_size for path in tmp_path.rglob("*.nbi")) > 40


# -- A, C and D: options ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "options"),
    [
        ("ece", {"aggregate": "foo"}),
        ("ace", {"closed": "foo"}),
        ("ece", {"mass_rule": "foo"}),
        ("mmce", {"weight_type": "foo"}),
        ("lkce", {"weight_type": "foo"}),
        ("ece_fott", {"cv": "foo", "n_bins": 5}),
        ("smece", {"grid": "foo"}),
        ("lsece", {"n_samples": "foo"}),
        ("ece", {"points_per_bin": "foo"}),
        ("rice", {"n_resamples": "foo"}),
        ("mmce", {"squared": "no"}),
        ("eo", {"inverse": 1.0}),
        ("ece", {"n_bins": 10**9}),
        ("ece", {"n_bins": 2.5}),
        ("ece", {"n_bins": True}),
        ("ici", {"span": np.inf}),
        ("ici", {"cell": np.inf}),
        ("ici", {"cv": 2.5}),
        ("ece_pl", {"segments": 1.5}),
        ("ece_pl", {"tolerance": -1}),
        ("skce_ul", {"block_size": np.inf}),
        ("tce", {"min_count": np.inf}),
        ("sice", {"k_max": 10**9}),
        ("lsece", {"bandwidth": 1e9}),
        ("ice", {"alpha": 1e9}),
        ("ice", {"alpha": np.nan}),
        ("general_ls", {"W": np.full((2, 2), np.nan)}),
        ("piece", {"proximity": np.full(60, np.nan)}),
        ("bs", {"reduction": 3}),
        ("ece", {"norm": np.nan}),
    ],
)
def test_an_option_is_refused_by_name_whether_it_is_read_or_not(binary, id, options):
    name = next(iter(options))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in (cal.compute, lambda *a, **k: cal.interval(*a, n_resamples=19, **k)):
            if name == "n_resamples" and call is not cal.compute:
                continue
            with pytest.raises(ValueError, match=rf"^{name}"):
                call(id, *binary, **options)


def test_evaluate_refuses_what_no_metric_can_use_and_leaves_out_those_that_cannot(binary):
    with pytest.raises(ValueError, match=r"^n_bins=-1 must be a whole number of at least 1"):
        cal.evaluate(*binary, n_bins=-1)
    result = cal.evaluate(*binary, metrics=["fl", "tce", "ice"], alpha=0.5)
    assert set(result.skipped) <= {"fl", "tce"}
    assert "ice" not in result.skipped


def test_options_without_effect_are_refused(binary):
    for id in ("ece", "mce"):
        with pytest.raises(ValueError, match="points_per_bin=20 has no effect"):
            cal.compute(id, *binary, points_per_bin=20, binning="mass")
        assert cal.compute(id, *binary, points_per_bin=20, binning="points") >= 0
    with pytest.raises(ValueError, match="bias_correction=True has no effect with method='bins'"):
        cal.score_decomposition(*binary, method="bins", bias_correction=True)


def test_every_option_of_every_metric_refuses_what_it_cannot_be():
    """No option takes a word, a number and a container alike, but those that are arrays of the user's."""
    open_ended = set()
    for entry in cal.catalogue.values():
        for name in entry.options:
            refused = 0
            for value in ("foo", np.nan, object(), -1.5):
                try:
                    entry.check({name: value})
                except ValueError as error:
                    assert str(error).startswith(name)  # noqa: PT017
                    refused += 1
            if not refused:
                open_ended.add(name)
    assert open_ended <= {
        "alpha", "gamma", "clusters", "code", "consistency", "features", "groups", "individual", "loo", "digits",
        "iou_thresholds", "folds", "train", "by", "probabilities",
        "loo_residuals", "map", "matrix", "query", "rank_by", "reference", "rng", "soft_target", "bins", "clip",
        "transform", "kernel", "loss", "bandwidth", "metric", "target_smoothing", "include_self", "leave_one_out",
        "statistic", "binning", "widths", "proximity", "partition_weights", "cost", "W", "edges", "grid",
        "invariant",
    }  # fmt: skip


@pytest.mark.parametrize("bad", [(0, 0), (-1, 0), (1,), (0.5, 1)])
def test_a_pair_is_two_classes(bad):
    with pytest.raises(ValueError, match=r"pairwise|whole number"):
        cal.lens.pairwise(*bad)


def test_a_pair_and_a_rank_must_exist(twelve):
    with pytest.raises(ValueError, match=r"names class 99, and classes are 0\.\.11"):
        cal.compute("ece", *twelve, lens=cal.lens.pairwise(0, 99))
    for r in (1.5, "1", 0, True):
        with pytest.raises(ValueError, match=r"r=.*whole number"):
            cal.compute("ece", *twelve, lens="rth", r=r)


@pytest.mark.parametrize("average", [[np.inf] + [1.0] * 11, [np.nan] + [1.0] * 11, [0.0] * 12, [-1.0] + [1.0] * 11])
def test_weights_of_classes_are_numbers(twelve, average):
    with pytest.raises(ValueError, match="average contains weights"):
        cal.compute("ece", *twelve, lens="class-wise", average=average)


def test_huge_weights_of_classes_are_only_weights(twelve):
    plain = cal.compute("ece", *twelve, lens="class-wise")
    assert cal.compute("ece", *twelve, lens="class-wise", average=[1e299] * 12) == pytest.approx(plain)


# -- A and D: files of detections -------------------------------------------------------------------


def coco(**changes):
    """One image with one object that was found; ``changes`` go into the annotation."""
    box = changes.get("bbox", [10.0, 10.0, 30.0, 20.0])
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "iscrowd": 0, **changes}
    truth = {"images": [{"id": 1, "width": 100, "height": 100}], "categories": [{"id": 1}], "annotations": [annotation]}
    return truth, [{"image_id": 1, "category_id": 1, "bbox": box, "score": 0.9}]


@pytest.mark.parametrize(("flag", "n"), [("0", 1), ("1", 0), (0, 1), (1, 0), (None, 1), (False, 1), ("true", 0)])
def test_crowd_flags_are_read_as_they_are_meant(flag, n):
    assert cal.match_detections(*coco(iscrowd=flag)).correct.sum() == n


@pytest.mark.parametrize("flag", ["maybe", 2, [0]])
def test_other_crowd_flags_are_refused(flag):
    with pytest.raises(ValueError, match=r"annotations\[0\]\.iscrowd = .* is neither 0 nor 1"):
        cal.match_detections(*coco(iscrowd=flag))


def test_identifiers_that_are_missing_are_refused():
    with pytest.raises(ValueError, match=r"annotations\[0\]\.image_id is missing"):
        cal.match_detections(*coco(image_id=float("nan")))
    truth, found = coco()
    truth["images"][0]["id"] = float("nan")
    with pytest.raises(ValueError, match=r"images\[0\]\.id = nan is missing"):
        cal.match_detections(truth, found)
    side = cal.boxes([np.nan], [1], [[0, 0, 1, 1]])
    with pytest.raises(ValueError, match=r"image\[0\] is missing"):
        cal.match_detections(side, cal.boxes([np.nan], [1], [[0, 0, 1, 1]], score=[0.5]))


@pytest.mark.parametrize("huge", [10**400, 1e160, float("nan")])
def test_numbers_that_no_box_has_are_refused(huge):
    with pytest.raises(ValueError, match=r"annotations\[0\]\.bbox = "):
        cal.match_detections(*coco(bbox=[0, 0, huge, 10]))
    truth, found = coco()
    found[0]["score"] = 10**400
    with pytest.raises(ValueError, match=r"results\[0\]\.score = a whole number of 1329 bits is not a number"):
        cal.match_detections(truth, found)


def test_boxes_that_are_too_small_for_an_area_are_refused():
    with pytest.raises(ValueError, match="too small to compute an area"):
        cal.match_detections(*coco(bbox=[0, 0, 1e-170, 1e-170]))
    assert cal.match_detections(*coco(bbox=[0, 0, 1e-90, 1e90])).correct.all()


@pytest.mark.parametrize("threshold", [None, [0.5], True, "0.5", 1.5, float("nan")])
def test_a_threshold_is_a_number(threshold):
    with pytest.raises(ValueError, match=r"^iou_threshold="):
        cal.match_detections(*coco(), iou_threshold=threshold)


def yolo(folder, label, result):
    for name, line in (("labels", label), ("results", result)):
        (folder / name).mkdir()
        (folder / name / "a.txt").write_bytes(line if isinstance(line, bytes) else line.encode())
    return folder / "labels", folder / "results"


@pytest.mark.parametrize(
    ("label", "result"),
    [
        ("0 .5 .5 .2 .4", "0 .5 .5 .2 .4 .9"),
        ("0 .5 .5 .2 .4", "0 .5 .5 .2 .4 .9 17"),
        ("0 .4 .3 .6 .3 .6 .7 .4 .7", "0 .5 .5 .2 .4 .9"),
        ("0 .4 .5 .5 .3 .6 .5 .5 .7", "0 .4 .5 .5 .3 .6 .5 .5 .7 .9"),
    ],
)
def test_outlines_of_yolo_become_the_boxes_around_them(tmp_path, label, result):
    found = cal.match_detections(*yolo(tmp_path, label, result))
    assert found.correct.all()
    np.testing.assert_allclose(found.iou, 1.0)
    assert found.score.tolist() == [0.9]


@pytest.mark.parametrize(
    ("label", "result", "sentence"),
    [
        ("0 .5 .5 .2 .4 .9 .8 .7", "0 .5 .5 .2 .4 .9", "8 numbers: a YOLO line must be"),
        ("0 .5 .5 .2 .4", "0 .1 .1 .2 .2 .3 .1", "7 numbers: a YOLO line must be"),
        ("1e19 .5 .5 .2 .4", "0 .5 .5 .2 .4 .9", "a YOLO line must be the numbers"),
        ("-1 .5 .5 .2 .4", "0 .5 .5 .2 .4 .9", "a YOLO line must be the numbers"),
        ("é .5 .5 .2 .4".encode("latin-1"), "0 .5 .5 .2 .4 .9", "a.txt is not a text file of numbers"),
    ],
)
def test_other_lines_of_yolo_are_refused(tmp_path, label, result, sentence):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=sentence):
            cal.match_detections(*yolo(tmp_path, label, result))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"annotations": ' + "9" * 5000 + "}"])
def test_files_no_reader_could_hold_are_refused(tmp_path, text):
    (tmp_path / "deep.json").write_text(text)
    with pytest.raises(ValueError, match=r"deep\.json is nested too deeply, or contains too long a number"):
        cal.match_detections(tmp_path / "deep.json", [])


# -- D: nothing that is no number comes without a word ----------------------------------------------


@pytest.mark.parametrize("id", ["nll", "fl", "ecd", "nses", "fcl", "dual_fl"])
def test_an_interval_of_an_infinite_value_says_so(id):
    with pytest.warns(cal.CalibrationWarning, match=f"{id} is infinite on these data"):
        result = cal.interval(id, [0, 1, 1, 0], [0.0, 0.3, 0.0, 0.2], n_resamples=19, rng=0)
    assert np.isinf(result.value)


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 1, 1, 0], [0.0, 0.3, 0.0, 0.2]),
        ([1, 1, 1, 1], [0.0, 0.0, 1.0, 1.0]),
        ([0, 1, 1] * 10, [5e-324, 1e-323, 1.5e-323] * 10),
        ([0, 1, 1, 0] * 10, list(0.3 + 1e-15 * np.arange(40))),
        ([1], [0.3]),
    ],
)
def test_no_row_of_a_table_is_infinite_or_undefined_without_a_note(y, p):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = cal.evaluate(y, p)
        assert not {id: why for id, why in result.skipped.items() if why.startswith("failed")}
    for row in result:
        assert np.isfinite(row.value) or row.note, row.id
    tried = cal.evaluate(y, p, metrics="point", intervals=True, tests=True, n_resamples=19, rng=0)
    for row in tried:
        assert (np.isfinite(row.value) and np.isfinite(row.low)) or row.note, row.id


@pytest.mark.parametrize("id", ["bkde", "dkde"])
def test_one_row_has_no_kernel_density_and_no_warning_of_numpy(id):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        for call in (
            lambda: cal.interval(id, [1], [0.3], n_resamples=19).low,
            lambda: cal.compare(id, [1], [0.3], [0.4], n_resamples=19).pvalue,
            lambda: cal.test(id, [1], [0.3], method="monte-carlo", n_resamples=19).pvalue,
        ):
            try:
                assert np.isnan(call())
            except ValueError as error:
                assert "needs at least 2 rows" in str(error)  # noqa: PT017


def test_a_slope_along_confidences_that_only_rounding_tells_apart_does_not_exist():
    with pytest.warns(cal.CalibrationWarning, match="every confidence is the same"):
        result = cal.compute("cis", [0, 1, 1, 0] * 10, 0.3 + 1e-15 * np.arange(40))
    assert np.isnan(result.slope)
    assert result.calibration_in_the_large == pytest.approx(np.log(0.5 / 0.5) - np.log(0.3 / 0.7))


@pytest.mark.parametrize("id", ["tcal", "ece_db", "ce2_db"])
def test_metrics_that_subtract_noise_refuse_fractions_or_do_not_depend_on_their_scale(binary, id):
    w = np.random.default_rng(3).random(60)
    with pytest.raises(ValueError, match=r"sample_weight contains .* pass counts, or weight_type='importance'"):
        cal.compute(id, *binary, sample_weight=w)
    value = cal.compute(id, *binary, sample_weight=w, weight_type="importance")
    for scale in (1 / w.sum(), 1e-9, 7e8):
        assert cal.compute(id, *binary, sample_weight=scale * w, weight_type="importance") == pytest.approx(value)
    equal = cal.compute(id, *binary, sample_weight=np.full(60, 1 / 3), weight_type="importance")
    assert equal == pytest.approx(cal.compute(id, *binary))


def test_the_pairs_of_importance_weights_are_those_of_different_rows():
    rng = np.random.default_rng(4)
    c, y, w = rng.random(30), rng.integers(0, 2, 30), rng.random(30)
    expected = 0.0
    for b in range(5):
        (rows,) = np.nonzero(np.minimum(np.floor(5 * c), 4) == b)
        pairs = sum(w[i] * w[j] * (y[i] - c[i]) * (y[j] - c[j]) for i in rows for j in rows if i != j)
        expected += pairs / w[rows].sum() if len(rows) else 0.0
    got = cal.compute("tcal", y, c, n_bins=5, sample_weight=w, weight_type="importance")
    assert got == pytest.approx(expected / w.sum())


# -- C: many classes --------------------------------------------------------------------------------


def test_pairs_of_classes_are_those_that_have_rows():
    rng = np.random.default_rng(5)
    p, y = rng.dirichlet(np.ones(7), 40), rng.choice([0, 2, 3, 6], 40)
    p[3, 2:4] = 0.0
    p[3] /= p[3].sum()
    views = cal.predictions(y, p).through(as_lens("pairwise"))
    expected = []
    for a in range(7):
        for b in range(a + 1, 7):
            (rows,) = np.nonzero(((y == a) | (y == b)) & (p[:, a] + p[:, b] > 0))
            if len(rows):
                expected.append((a, b))
                view = views.views[views.keys.index((a, b))]
                np.testing.assert_array_equal(view.rows, rows)
                np.testing.assert_array_equal(view.y, y[rows] == a)
                np.testing.assert_allclose(view.c, p[rows, a] / (p[rows, a] + p[rows, b]))
    assert list(views.keys) == expected
    one = cal.predictions(y, p).through(cal.lens.pairwise(3, 2))
    np.testing.assert_array_equal(one.views[0].rows, np.flatnonzero(((y == 2) | (y == 3)) & (p[:, 2] + p[:, 3] > 0)))


def test_a_thousand_classes_cost_no_more_than_those_that_occur(monkeypatch):
    rng = np.random.default_rng(6)
    p, y = rng.dirichlet(np.ones(1000), 20), rng.integers(0, 1000, 20)
    sizes = []
    whole = Diffusion.mass_and_slope
    monkeypatch.setattr(Diffusion, "mass_and_slope", lambda flow, s: sizes.append(s) or whole(flow, s))
    each = cal.compute("smece", y, p, lens="class-wise", average=None)
    assert len(sizes) < 20 * len(set(y.tolist()))  # where a class never occurs, nothing can cancel at any width
    never = np.setdiff1d(np.arange(1000), y)
    np.testing.assert_allclose(each[never], p[:, never].mean(axis=0), rtol=1e-12)
    looked = cal.predictions(y, p).through(as_lens("pairwise"))
    assert len(looked.keys) < 20 * 1000


@pytest.mark.parametrize("spread", [1e-4, 1e-2, 1.0])
def test_rounding_in_empty_stretches_is_no_change_of_sign(spread, monkeypatch):
    rng = np.random.default_rng(7)
    c, y = 0.5 + spread * (rng.random(20) - 0.5), rng.integers(0, 2, 20)
    quick = cal.compute("smece", y, c)
    monkeypatch.setattr(gaussian, "_ROUNDING", 0.0)
    assert quick == pytest.approx(cal.compute("smece", y, c), abs=1e-14)


@pytest.mark.parametrize("lens", ["class-wise", "true-class", "predicted-class", "pairwise", "full"])
def test_evaluate_works_through_every_lens(lens):
    y, p = (a[:60] for a in cal.datasets.digits()[:2])
    result = cal.evaluate(y, p, lens=lens, metrics=["bs", "ece", "cis", "pws", "sbct", "nll"])
    assert not {id: why for id, why in result.skipped.items() if why.startswith("failed")}


def test_one_metric_that_fails_leaves_the_others_alone(binary, monkeypatch):
    def broken(view, **options):
        raise ZeroDivisionError("division by zero")

    entry = cal.catalogue["ks"] if "ks" in cal.catalogue else cal.catalogue["mce"]
    monkeypatch.setitem(entry.__dict__, "code", replace(entry.code, formula=broken))
    result = cal.evaluate(*binary, metrics=[entry.id, "bs"])
    assert result.skipped == {entry.id: "fault of calibrary, please report it: ZeroDivisionError: division by zero"}
    assert result["bs"] == cal.brier_score(*binary)


def test_one_metric_that_fails_on_redrawn_data_leaves_the_others_alone(binary, monkeypatch):
    from calibrary import evaluation

    infer_many = evaluation.infer_many

    def breaks(statistics, *args, **options):
        if any(s.name == "bs" for s in statistics):
            raise ZeroDivisionError("division by zero")
        return infer_many(statistics, *args, **options)

    monkeypatch.setattr(evaluation, "infer_many", breaks)
    asked = {"intervals": True, "tests": True, "n_resamples": 39, "rng": 0}
    result = cal.evaluate(*binary, metrics=["bs", "mae", "ece"], primary="bs", **asked)
    assert (
        result.row("bs").note
        == "no interval and no test: fault of calibrary, please report it: ZeroDivisionError: division by zero"
    )
    assert result.row("bs").low is None
    other = cal.evaluate(*binary, metrics=["mae", "ece"], **asked)
    assert (result.row("mae").low, result.row("ece").pvalue) == (other.row("mae").low, other.row("ece").pvalue)
    with pytest.raises(ZeroDivisionError):
        cal.evaluate(*binary, metrics=["bs"], **asked)


def test_threads_leave_the_warnings_of_others_alone(binary):
    from concurrent.futures import ThreadPoolExecutor

    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(lambda _: cal.evaluate(*binary, metrics=["ece", "nll"], intervals=True, n_resamples=19), range(8))
        )
    assert warnings.filters == before
    with pytest.warns(cal.CalibrationWarning):
        cal.compute("eo", [0, 0], [0.0, 0.0])


def test_entries_travel_in_a_pickle():
    for entry in cal.catalogue.values():
        assert pickle.loads(pickle.dumps(entry)) is entry


def test_tensors_that_hold_no_numbers_are_refused_with_a_sentence():
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="y_prob cannot be converted to an array"):
        cal.brier_score([0, 1], torch.empty(2, device="meta"))
    with pytest.raises(ValueError, match="y_prob cannot be converted to an array"):
        cal.brier_score([0, 1], [torch.tensor(0.2, requires_grad=True), torch.tensor(0.3)])
    assert cal.brier_score([0], torch.tensor([0.5], requires_grad=True)) == 0.25


# -- A: names in files ------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "prob"), [(("cat", "car"), ["cat,car"]), (("prob_cat", "prob_car"), ["prob_"])])
def test_columns_of_a_file_are_matched_by_the_whole_name(tmp_path, columns, prob):
    from calibrary.cli.read import read_predictions

    (tmp_path / "f.csv").write_text(f"y,{columns[0]},{columns[1]}\ncat,0.9,0.1\ncar,0.2,0.8\n")
    found = read_predictions(tmp_path / "f.csv", prob=prob)
    assert found.classes == ("cat", "car")
    assert found.y.tolist() == [0, 1]


def test_labels_of_a_file_are_never_guessed(tmp_path):
    from calibrary.cli.read import InputError, read_predictions

    (tmp_path / "two.csv").write_text("y,p\n1,0.1\n2,0.9\n")
    with pytest.raises(InputError, match="--positive '2'"):
        read_predictions(tmp_path / "two.csv")
    (tmp_path / "three.csv").write_text("y,p_cat,p_dog,p_fish\n1,.1,.2,.7\n2,.1,.2,.7\n")
    with pytest.raises(InputError, match="classes are numbered from 0 or 1"):
        read_predictions(tmp_path / "three.csv", prob=["p_"])


# -- B and E: text that people supply ---------------------------------------------------------------

HOSTILE = ["$5_$10", "$0-$50", "a\x1b]0;owned\x07b", "a\\[/red]", "<script>", "\ud800", "猫", "\u202eabc", "x" * 10_000]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_can_be_drawn_and_is_drawn_as_it_is(name):
    from matplotlib.figure import Figure

    figure = Figure()
    text = figure.add_subplot().set_title(for_figure(name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    assert not text._preprocess_math(text.get_text())[1], "read as mathematics"
    if "$" in name:
        assert text._preprocess_math(text.get_text())[0] == name


@pytest.mark.parametrize("name", HOSTILE)
def test_a_terminal_shows_names_and_obeys_nothing_in_them(name):
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=20_000, force_terminal=True, color_system="truecolor").print(
        f"[red]{for_terminal(name)}[/red]", highlight=False, emoji=False
    )
    shown = out.getvalue()
    assert "\x07" not in shown
    assert "\x1b]" not in shown
    assert shown.startswith("\x1b[31m")
    if name.isprintable():
        assert name in shown


def test_a_spreadsheet_takes_names_as_text():
    for start in ("=", "+", "-", "@", "\t", "\r"):
        assert for_csv(f"{start}1+1") == f"'{start}1+1"
    assert for_csv("a-b") == "a-b"


def test_class_names_with_dollars_are_plotted():
    y, p = cal.datasets.digits()[:2]
    names = [f"${k}_${k}" for k in range(10)]
    data = cal.predictions(np.array(names)[y], p, labels=names)
    cal.plots.small_multiples(data).canvas.draw()


@pytest.mark.parametrize("seed", range(40))
def test_copies_are_weights_where_only_a_few_digits_are_left(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    near = 10.0 ** -rng.integers(1, 15, n)
    c = [1.0 - near, near, 0.5 + 1e-9 * rng.random(n), np.where(rng.random(n) < 0.5, 1e-13, 1.0 - 1e-13)][seed % 4]
    y, w = rng.integers(0, 2, n), rng.integers(1, 5, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        for id in ("hl", "pws"):
            weighted = cal.compute(id, y, c, sample_weight=w.astype(float))
            written = cal.compute(id, np.repeat(y, w), np.repeat(c, w))
            assert weighted == pytest.approx(written, rel=1e-12, nan_ok=True)


# -- B, C, D, E: what is left of the list -----------------------------------------------------------


def test_several_numbers_through_several_views_have_intervals_and_differences(twelve):
    y, p = (a[:120] for a in twelve)
    found = cal.interval("cis", y, p, lens="class-wise", method="basic", n_resamples=19, rng=0)
    assert found.low.shape == found.value.shape
    assert any(part.endswith("slope") for part in found.parts)
    code = cal.lens.code(cal.lens.code_matrix(12, "one-vs-rest"))
    result = cal.evaluate(y, p, lens=code, metrics=["cis", "bs", "ece"])
    assert {row.id for row in result.rows} == {"cis", "bs", "ece"}


def test_a_matrix_of_one_column_is_a_column(binary):
    y, p = binary
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        assert cal.brier_score(np.matrix(y).T, p) == cal.brier_score(y, p)


FOUR = "y,p\n0,0.2\n1,0.7\n1,0.9\n0,0.4\n"


@pytest.mark.parametrize(
    ("name", "content", "arguments", "said"),
    [
        ("f.jsonl", '{"y": 1, "p": [1, 2]}\n', ["metric", "bs", "FILE"], "one value is expected"),
        ("f.jsonl", '{"y": ' * 50_000, ["metric", "bs", "FILE"], "nested too deeply"),
        ("f.csv", FOUR, ["report", "FILE", "--model", "p", "--model", "p"], "same columns twice"),
        ("f.csv", "y,a,b\na,0.9,0.1\nb,0.2,0.8\n", ["metric", "bs", "FILE", "--prob", "a,b", "--positive", "a"],
         "--positive needs a single probability column"),
        ("f.csv", FOUR, ["metric", "bs", ":x:.csv"], "no such file: :x:.csv"),
        ("f.csv", FOUR, ["explain", "recommend", "--n", "-1"], "--n"),
        ("f.csv", FOUR, ["explain", "recommend", "--rare", "7"], "--rare"),
        ("f.csv", FOUR, ["explain", "recommend", "--most", "-3"], "--most"),
        ("f.csv", FOUR, ["metric", "ece", "FILE", "--unit", "u", "--interval"], "no column is called 'u'"),
        ("f.csv", FOUR, ["metric", "ece", "FILE", "--unit", "y"], "add --interval or --test"),
    ],
)  # fmt: skip
def test_what_a_command_cannot_do_is_one_sentence(tmp_path, capsys, monkeypatch, name, content, arguments, said):
    from calibrary.cli.main import main

    file = tmp_path / name
    file.write_text(content)
    monkeypatch.setattr("sys.argv", ["calibrary", *(str(file) if a == "FILE" else a for a in arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    sentence = [line for line in capsys.readouterr().err.splitlines() if line.startswith("calibrary:")]
    assert len(sentence) == 1
    assert said in sentence[0]


def test_an_array_of_too_many_columns_is_refused_before_it_is_read(tmp_path, capsys, monkeypatch):
    from calibrary.cli.main import main

    np.savez(tmp_path / "f.npz", p=np.zeros((1, 30_000)))
    monkeypatch.setattr("sys.argv", ["calibrary", "metric", "bs", str(tmp_path / "f.npz")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "is it transposed?" in capsys.readouterr().err


def test_an_interval_of_units_on_the_command_line_is_that_of_the_library(tmp_path, capsys, monkeypatch):
    from calibrary.cli.main import main

    rng = np.random.default_rng(2)
    p = np.round(rng.random(80), 3)
    y, unit = (rng.random(80) < p).astype(int), np.arange(80) // 4
    rows = "\n".join(f"{a},{b},{u}" for a, b, u in zip(y, p, unit, strict=True))
    (tmp_path / "f.csv").write_text(f"y,p,u\n{rows}\n")
    arguments = ["metric", "ece", str(tmp_path / "f.csv"), "--prob", "p", "--unit", "u", "--interval", "--test"]
    monkeypatch.setattr("sys.argv", ["calibrary", *arguments, "--resamples", "99", "-q"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        want = cal.interval("ece", y, p, units=unit, n_resamples=99, rng=0)
        pvalue = cal.test("ece", y, p, units=unit, n_resamples=99, rng=0).pvalue
    assert f"[{want.low:.6g}, {want.high:.6g}]  p = {pvalue:.4g}" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "value"), [("n", 0), ("most", -3), ("rare", 7.0), ("n_classes", 1), ("n", 2.5)])
def test_a_recommendation_needs_numbers_that_can_be(change, value):
    with pytest.raises(ValueError, match=f"^{change}="):
        cal.recommend(**{change: value})


# -- each check is written once ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        ({"data/checks.py"}, r"\(\w+ >= 0\.0\) & \(\w+ <= (1\.0|100\.0|most|top)\)"),  # a probability
        ({"data/checks.py"}, r"weights must (be finite and )?not (be )?negative"),
        ({"data/checks.py"}, r"already probabilities|none is above 100"),
        ({"data/predictions.py"}, r"which is not a whole number: \{purpose\}"),
        ({"data/labels.py"}, r"is missing: every row needs a label"),
        ({"base/errors.py"}, r"must be a whole number of at least"),
        ({"base/errors.py"}, r"is not known: \{suggest\(value, choices\)\}"),
    ],
)
def test_each_check_is_written_in_one_place(written, pattern):
    import re
    from pathlib import Path

    root = Path(cal.__file__).parent
    found = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        # tensors and confidence bands are other things; compiled code says it in its own way
        if re.search(pattern, file.read_text()) and file.parent.name not in ("losses", "plots", "compiled")
    }
    assert found == written


@pytest.mark.parametrize("id", ["aurc", "e_aurc", "augrc", "rank_calibration_error"])
def test_areas_under_risk_curves_do_not_depend_on_the_scale_of_fractions(binary, id):
    w = np.random.default_rng(8).random(60)
    value = cal.compute(id, *binary, sample_weight=w)
    assert 0.0 <= value <= 1.0
    assert cal.compute(id, *binary, sample_weight=w / w.sum()) == pytest.approx(value)
    assert cal.compute(id, *binary, sample_weight=np.full(60, 1 / 3)) == pytest.approx(cal.compute(id, *binary))


@pytest.mark.parametrize("value", [1.0000001, -1e-9])
def test_a_probability_that_rounding_carried_outside_is_no_logit(value):
    with pytest.raises(ValueError, match=r"by rounding: pass np\.clip\(y_prob, 0, 1\)"):
        cal.compute("ece", [0, 1, 1], [0.2, 0.7, value])
