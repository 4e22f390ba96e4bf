"""Sums over all pairs on the device of the user's tensor equal those computed on the CPU."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import calibrary as cal
from calibrary.numerics.sums.dirichlet import leave_one_out_shares
from calibrary.numerics.sums.pair_median import middle_distances
from calibrary.numerics.sums.tiles import TiledMatrix, pair_tiles

torch = pytest.importorskip("torch")

from calibrary.numerics.sums import torch_tiles  # noqa: E402

CPU = torch.device("cpu")
DEVICES = [
    CPU,
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]
on_devices = pytest.mark.parametrize("device", DEVICES, ids=str)
KERNELS = [("laplace", "tv"), ("laplace", "euclidean"), ("gaussian", "euclidean"), ("gaussian", "tv")]


def multi(n=300, k=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    p[: n // 5] = p[n // 5 : 2 * (n // 5)]  # equal rows
    return rng.integers(0, k, n), p / p.sum(axis=1, keepdims=True)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(torch_tiles, "SIDE", 64)
    monkeypatch.setattr(torch_tiles, "ENTRIES", 64 * 300)


def given_on(device, y, p, **options):
    """Predictions as if the user had passed a tensor on that device."""
    made = cal.predictions(y, p, **options)
    (made if made.parent is None else made.parent)._device = torch.device(device)
    return made


@on_devices
@pytest.mark.parametrize(("kernel", "metric"), KERNELS)
@pytest.mark.parametrize("k", [4, 70])
def test_a_matrix_on_a_device_answers_as_the_one_on_the_processor(device, kernel, metric, k, small_tiles):
    y, x = multi(300, k)
    g = np.eye(k)[y] - x
    rng = np.random.default_rng(1)
    u, v, b = rng.random(300), rng.random(300), rng.random((300, 3))
    here, there = TiledMatrix(x, g, kernel, metric, 0.3), pair_tiles(x, g, kernel, metric, 0.3, device)
    assert isinstance(there, torch_tiles.DeviceMatrix)
    assert there.total() == pytest.approx(here.total(), rel=1e-12)
    assert there.total(u) == pytest.approx(here.total(u), rel=1e-12)
    np.testing.assert_allclose(there.diagonal, here.diagonal, rtol=1e-13)
    np.testing.assert_allclose(there.power_sums(u, v), here.power_sums(u, v), rtol=1e-11)
    np.testing.assert_allclose(there.product(b), here.product(b), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(there.forms(b), here.forms(b), rtol=1e-11)
    assert there.triangles(u) == pytest.approx(here.triangles(u), rel=1e-11)
    rows = np.concatenate([block for _, block in there.row_blocks(4000)])
    np.testing.assert_allclose(rows, np.concatenate([block for _, block in here.row_blocks()]), atol=1e-14)
    scaled, before = there.scaled(v), here.scaled(v)
    assert scaled.total() == pytest.approx(before.total(), rel=1e-12)
    np.testing.assert_allclose(scaled.diagonal, before.diagonal, rtol=1e-13)


@on_devices
@pytest.mark.parametrize("metric", ["tv", "euclidean"])
def test_middle_distances_on_a_device_are_those_of_the_processor(device, metric, small_tiles):
    x = np.unique(multi(400, 5)[1], axis=0)
    mass = 1.0 + np.arange(len(x)) % 3
    pairs = (mass.sum() ** 2 - mass @ mass) / 2
    for rank in (0.0, pairs / 7, pairs / 2, 0.99 * pairs):
        want = middle_distances(x, metric, mass, rank)
        assert middle_distances(x, metric, mass, rank, device) == pytest.approx(want, rel=1e-12)


@on_devices
@pytest.mark.parametrize("weight_type", ["frequency", "importance"])
def test_class_shares_on_a_device_are_those_of_the_processor(device, weight_type, small_tiles):
    y, p = multi()
    p[0] = [1.0, 0.0, 0.0, 0.0]
    for w in (None, 1.0 + np.arange(300) % 3):
        widths = np.array([0.01, 0.3])
        found = {}
        for where in (None, device):
            shares = np.empty((2, 300, 4))
            logs = np.empty((2, 300))
            for part in leave_one_out_shares(p, y, widths, w, weight_type=weight_type, device=where):
                shares[part.width, part.rows], logs[part.width, part.rows] = part.shares, part.log_total
            found[where] = shares, logs
        np.testing.assert_allclose(found[device][0], found[None][0], atol=1e-11)
        np.testing.assert_allclose(found[device][1], found[None][1], rtol=1e-12, atol=1e-11)


@on_devices
@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("skce_uq", {}),
        ("skce_b", {"kernel": "gaussian"}),
        ("skce_uq", {"bandwidth": 0.3, "matrix": np.diag([1.0, 2.0, 3.0, 4.0])}),
        ("kccsd", {}),
        ("dkde", {}),
        ("dkde", {"bandwidth": 0.1, "norm": 2}),
    ],
)
def test_metrics_on_a_device_equal_those_on_the_processor(device, metric, options, small_tiles):
    y, p = multi()
    for w in (None, 1.0 + np.arange(300) % 3):
        want = cal.compute(metric, y, p, sample_weight=w, **options)
        got = cal.compute(metric, given_on(device, y, p, sample_weight=w), **options)
        assert got == pytest.approx(want, rel=1e-12)


@on_devices
def test_tests_and_intervals_follow_the_device(device, small_tiles):
    y, p = multi(200)
    there = given_on(device, y, p)
    for metric, options in (
        ("skce_uq", {"method": "pearson"}),
        ("skce_uq", {"n_resamples": 50, "rng": 0}),
        ("kccsd", {"rng": 0}),
    ):
        want = cal.test(metric, y, p, **options)
        got = cal.test(metric, there, **options)
        assert got.statistic == pytest.approx(want.statistic, rel=1e-12)
        assert got.pvalue == pytest.approx(want.pvalue, rel=1e-9)
    want, got = (cal.interval("skce_uq", *data, bandwidth=0.3, n_resamples=30, rng=0) for data in ((y, p), (there,)))
    assert (got.low, got.high) == pytest.approx((want.low, want.high), rel=1e-9)


def test_views_and_resamples_know_where_their_source_is():
    y, p = multi()
    made = given_on(CPU, y, p)
    assert made.device == CPU
    assert made.reweighted(np.arange(300.0)).device == CPU
    assert made.relabeled(y[::-1].copy()).device == CPU
    assert all(view.device == CPU for view in made.through(cal.lens.as_lens("class-wise")).views)
    assert cal.predictions(y, p).device is None


def test_a_tensor_in_main_memory_stays_with_numpy():
    y, p = multi()
    assert cal.predictions(y, torch.tensor(p)).device is None


def test_nothing_imports_torch_without_a_tensor_on_a_gpu():
    code = (
        "import sys, numpy as np, calibrary as cal; rng = np.random.default_rng(0);"
        "cal.compute('skce_uq', rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50), bandwidth=0.3);"
        "cal.compute('dkde', rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50), bandwidth=0.3);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_tensor_on_a_gpu_is_measured_there():
    y, p = multi(3000, 10)
    there = cal.predictions(y, torch.tensor(p, device="cuda"))
    assert there.device.type == "cuda"
    for metric, options in (
        ("skce_uq", {"bandwidth": 0.3}),
        ("skce_uq", {}),
        ("kccsd", {}),
        ("dkde", {"bandwidth": 0.1}),
    ):
        assert cal.compute(metric, there, **options) == pytest.approx(cal.compute(metric, y, p, **options), rel=1e-12)
    single = torch.tensor(p, device="cuda", dtype=torch.float32)
    single = single / single.sum(dim=1, keepdim=True)
    here = cal.compute("skce_uq", y, single.cpu(), bandwidth=0.3)
    assert cal.compute("skce_uq", y, single, bandwidth=0.3) == pytest.approx(here, rel=1e-12)
