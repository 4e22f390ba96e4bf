"""Checked input: sharing, sorting, ties, and the accepted containers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import calibrary as cal
from calibrary.data.lens import Lens


@pytest.fixture
def tied():
    rng = np.random.default_rng(0)
    c = np.round(rng.random(500), 2)
    return (rng.random(500) < c).astype(int), c


def test_sorted_view_is_the_plain_sort(tied):
    y, c = tied
    s = cal.predictions(y, c).sorted
    order = np.lexsort((y, c))
    np.testing.assert_array_equal(s.c, c[order])
    np.testing.assert_array_equal(s.y, y[order])
    assert s.w is None


def test_negative_zero_sorts_as_zero():
    s = cal.predictions([1, 0, 1], [0.2, -0.0, 0.0]).sorted
    np.testing.assert_array_equal(s.c, [0, 0, 0.2])
    assert not np.signbit(s.c).any()


def test_ties_hold_the_counts_of_each_distinct_confidence(tied):
    y, c = tied
    w = 1.0 + np.arange(500) % 3
    t = cal.predictions(y, c, sample_weight=w).ties
    values, inverse = np.unique(c, return_inverse=True)
    np.testing.assert_array_equal(t.c, values)
    np.testing.assert_allclose(t.w, np.bincount(inverse, weights=w))
    np.testing.assert_allclose(t.wy, np.bincount(inverse, weights=w * y))


def test_reweighting_does_not_sort_again(tied, monkeypatch):
    y, c = tied
    p = cal.predictions(y, c)
    p.order  # noqa: B018 - sorted once, here
    monkeypatch.setattr(np, "argsort", lambda *a, **k: pytest.fail("sorted again"))
    w = np.random.default_rng(1).integers(0, 3, 500).astype(float)
    again = p.reweighted(w)
    s = again.sorted
    assert (np.diff(s.c) >= 0).all()
    assert s.w.sum() == w.sum()
    np.testing.assert_allclose(np.dot(s.w, s.y), np.dot(w, y))


@pytest.mark.parametrize("lens", ["top-label", "class-wise", "pairwise", "true-class", "predicted-class"])
def test_a_lens_on_reweighted_predictions_is_the_lens_on_the_weighted_rows(lens):
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 60)
    y = rng.integers(0, 3, 60)
    whole = cal.predictions(y, p)
    whole.through(Lens(lens))
    w = rng.integers(0, 3, 60).astype(float)
    got = whole.reweighted(w).through(Lens(lens))
    want = cal.predictions(y[w > 0], p[w > 0], sample_weight=w[w > 0]).through(Lens(lens))
    assert got.keys == want.keys
    np.testing.assert_allclose(got.prevalence / got.prevalence.sum(), want.prevalence / want.prevalence.sum())
    for a, b in zip(got.views, want.views, strict=True):
        np.testing.assert_allclose(a.sorted.c, b.sorted.c)
        np.testing.assert_allclose(a.mean(a.residual), b.mean(b.residual))
        assert a.total == b.total


def test_extra_inputs_follow_dropped_rows():
    p = cal.predictions([0, 1, 1], [0.2, 0.6, 0.7], sample_weight=[1, 0, 2])
    np.testing.assert_array_equal(p.align([10, 20, 30], "features"), [10, 30])
    with pytest.raises(ValueError, match="features has 2 rows but y_true has 3"):
        p.align([1, 2], "features")


def test_one_sort_serves_every_metric(tied, monkeypatch):
    y, c = tied
    sorts = []
    original = cal.Predictions._sorted_packed
    monkeypatch.setattr(cal.Predictions, "_sorted_packed", lambda self: sorts.append(1) or original(self))
    p = cal.predictions(y, c)
    for _ in range(3):
        p.sorted  # noqa: B018
        p.ties  # noqa: B018
    assert len(sorts) == 1


def test_one_hot_labels_are_labels():
    y, p = np.eye(3)[[0, 2, 1]], np.full((3, 3), 1 / 3)
    np.testing.assert_array_equal(cal.predictions(y, p).y, [0, 2, 1])


def test_class_names_may_come_in_sorted_order_without_labels():
    p = cal.predictions(["cat", "dog", "eel"], np.eye(3))
    assert p.classes == ("cat", "dog", "eel")
    np.testing.assert_array_equal(p.y, [0, 1, 2])


def test_two_columns_of_named_classes_follow_the_sorted_names_as_three_do():
    y, p = ["well", "ill", "well"], [[0.2, 0.8], [0.6, 0.4], [0.3, 0.7]]
    found = cal.predictions(y, p)
    assert found.y.tolist() == [1, 0, 1]
    assert found.classes == ("ill", "well")
    assert cal.predictions(y, p, pos_label="well").y.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match=r"pos_label='ill' needs one column"):  # the second column is of "well"
        cal.predictions(y, p, pos_label="ill")


def test_pos_label_names_class_one():
    assert cal.predictions([-1, 1, 1], [0.2, 0.6, 0.7], pos_label=1).y.tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="besides pos_label"):
        cal.predictions(["a", "b", "c"], [0.2, 0.6, 0.7], pos_label="a")


def test_float32_rows_may_be_a_rounding_off_one():
    rng = np.random.default_rng(0)
    p = cal.softmax(rng.normal(size=(200, 1000)) * 5).astype(np.float32)
    assert cal.predictions(rng.integers(0, 1000, 200), p).k == 1000


def test_rows_of_six_decimals_may_miss_one_by_the_last():
    assert cal.predictions([0, 2], [[0.333334, 0.333334, 0.333333], [0.333333, 0.333333, 0.333333]]).n == 2
    with pytest.raises(ValueError, match=r"y_prob\[0\] sums to 1.000003"):
        cal.predictions([0], [[0.333335, 0.333334, 0.333334]])


def test_softmax_and_sigmoid_are_safe_for_large_logits():
    np.testing.assert_allclose(cal.softmax([[1000.0, 1000.0], [-1e4, 0.0]]), [[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(cal.sigmoid([-800.0, 0.0, 800.0]), [0.0, 0.5, 1.0])


def test_fractional_frequency_weights_are_refused_where_copies_are_counted():
    p = cal.predictions([0, 1], [0.2, 0.6], sample_weight=[0.5, 1.5])
    with pytest.raises(ValueError, match="importance"):
        p.counts("the test")
    np.testing.assert_array_equal(p.variance_weight("importance", "the test"), [0.25, 2.25])


def test_importing_calibrary_stays_light():
    heavy = (
        "numba",
        "matplotlib",
        "pandas",
        "polars",
        "torch",
        "sklearn",
        "pyarrow",
        "typer",
        "rich",
        "scipy.stats",
    )
    code = f"import sys, calibrary; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("bad", [np.nan, -1e-300, 1.0 + 2**-52, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 29_999])
def test_the_first_number_outside_the_unit_interval_is_named(bad, row):
    c = np.full(30_000, 0.5)
    c[row] = bad
    with pytest.raises(ValueError, match=rf"^y_prob\[{row}\] = "):
        cal.predictions(np.zeros(30_000, dtype=int), c)
    p = np.column_stack([1.0 - c, c])
    with pytest.raises(ValueError, match=rf"^y_prob\[{row}, [01]\] = "):
        cal.predictions(np.zeros(30_000, dtype=int), p)


def test_the_ends_of_the_unit_interval_are_inside():
    p = cal.predictions([0, 1, 1], [-0.0, 1.0, 5e-324])
    assert p.n == 3


def test_a_row_far_down_that_does_not_sum_to_one_is_named():
    p = np.full((30_000, 3), 1 / 3)
    p[29_998] = [0.5, 0.5, 0.1]
    with pytest.raises(ValueError, match=r"^y_prob\[29998\] sums to 1\.1, not 1"):
        cal.predictions(np.zeros(30_000, dtype=int), p)


@pytest.mark.parametrize("bad", [-1, 2, np.iinfo(np.int64).min])
def test_a_label_outside_the_classes_is_named(bad):
    y = np.zeros(30_000, dtype=np.int64)
    y[29_997] = bad
    with pytest.raises(ValueError, match=rf"^y_true\[29997\] = {bad} is outside the 2 classes"):
        cal.predictions(y, np.full(30_000, 0.5))


def test_labels_may_be_strided_unsigned_or_of_the_other_byte_order():
    y, c = np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.9, 0.4])
    value = cal.brier_score(y, c)
    spread = np.repeat(y, 2)[::2]
    for same in (spread, y.astype(np.uint8), y.astype(np.uint64), y.astype(">i8"), y.astype(bool)):
        assert cal.brier_score(same, c) == value
    assert cal.brier_score(y, np.repeat(c, 2)[::2]) == value
    assert cal.brier_score(y, c.astype(">f8")) == value


def test_an_option_of_a_wrong_type_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^scale=\['sum'\] must be a word"):
        cal.brier_score([0, 1], [0.2, 0.7], scale=["sum"])
    with pytest.raises(ValueError, match=r"^distance=\[\] must be a word"):
        cal.expected_calibration_error([0, 1], [0.2, 0.7], distance=[])


def test_jax_arrays_are_read_and_traced_ones_are_refused_with_the_remedy():
    jax = pytest.importorskip("jax")
    y, p = np.array([0, 1, 1, 0]), np.array([0.25, 0.75, 0.875, 0.375])
    assert cal.brier_score(jax.numpy.asarray(y), jax.numpy.asarray(p)) == cal.brier_score(y, p)
    remedy = r"is traced by JAX \(jit, grad or vmap\).*call them outside of the transformation.*calibrary.losses"
    for name, call in {
        "y_prob": jax.jit(lambda q: cal.brier_score(y, q)),
        "y_prob ": jax.grad(lambda q: cal.ece(y, q)),
        "sample_weight": jax.jit(lambda w: cal.ece(y, p, sample_weight=w)),
    }.items():
        with pytest.raises(cal.RefusedError, match=f"{name.strip()} {remedy}"):
            call(jax.numpy.asarray(p))
