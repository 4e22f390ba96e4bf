"""Losses at size: fast sums equal the sums over all pairs, blocks change nothing, and nothing quadratic is kept."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import calibrary as cal

torch = pytest.importorskip("torch")

from calibrary import losses  # noqa: E402
from calibrary.losses import blocks, curves, nodes, pairs  # noqa: E402
from calibrary.losses.nodes import Nodes  # noqa: E402
from calibrary.losses.residuals import absolute_integral  # noqa: E402
from loss_cases import CASES, binary, multi, named  # noqa: E402


def confidences(n=1500, seed=0):
    """Saturated, rounded and plain confidences."""
    rng = np.random.default_rng(seed)
    c = rng.beta(0.4, 0.4, n)
    c[: n // 3] = c[: n // 3].round(2)
    c[:10] = [0.0, 1.0] * 5
    return (rng.random(n) < c**1.4).astype(int), c


def dense(y, c, kernel, h):
    r = (y - c) / len(y)
    d = np.abs(np.subtract.outer(c, c)) / h
    return np.sqrt(max(r @ np.exp(-d if kernel == "laplace" else -0.5 * d**2) @ r, 0.0))


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
@pytest.mark.parametrize("h", [1.0, 0.4, 0.02, 1e-3])
def test_mean_embeddings_equal_the_sum_over_all_pairs(kernel, h):
    y, c = confidences()
    got = losses.maximum_mean_calibration_error(y, torch.tensor(c), kernel=kernel, bandwidth=h)
    assert got.item() == pytest.approx(dense(y, c, kernel, h), rel=1e-11)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
@pytest.mark.parametrize("h", [0.4, 1e-3])
def test_gradients_of_mean_embeddings_equal_those_of_the_sum_over_all_pairs(kernel, h):
    y, c = confidences(600)
    labels = torch.tensor(y).double()
    gradients = []
    for fast in (True, False):
        p = torch.tensor(c, requires_grad=True)
        if fast:
            value = losses.maximum_mean_calibration_error(y, p, kernel=kernel, bandwidth=h, squared=True)
        else:
            d = (p[:, None] - p).abs() / h
            r = (labels - p) / len(p)
            value = r @ torch.exp(-d if kernel == "laplace" else -0.5 * d**2) @ r
        value.backward()
        gradients.append(p.grad)
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-8 * float(gradients[1].abs().max()))


@pytest.mark.parametrize("h", [0.3, 0.08, 0.01, 1e-3])
@pytest.mark.parametrize("power", [1, 2])
def test_curves_on_nodes_equal_the_curves_over_all_pairs(h, power):
    y, c = confidences()
    k = np.exp(-0.5 * (np.subtract.outer(c, c) / h) ** 2)
    want = np.mean(np.abs(k @ y / k.sum(axis=1) - c) ** power)
    function = losses.mean_squared_calibration_error if power == 2 else losses.smooth_label_calibration_error
    assert function(y, torch.tensor(c), bandwidth=h).item() == pytest.approx(want, abs=1e-10)


def test_gradients_of_curves_on_nodes_equal_those_over_all_pairs(monkeypatch):
    y, c = confidences(600)
    gradients = []
    for few in (0, 10_000):
        monkeypatch.setattr(curves, "FEW_ROWS", few)
        p = torch.tensor(c, requires_grad=True)
        losses.mean_squared_calibration_error(y, p, bandwidth=0.05).backward()
        gradients.append(p.grad)
    torch.testing.assert_close(*gradients, rtol=1e-7, atol=1e-11)


def test_a_very_narrow_curve_is_summed_over_all_pairs():
    y, c = confidences(700)
    got = losses.smooth_label_calibration_error(y, torch.tensor(c), bandwidth=1e-6)
    assert got.item() == pytest.approx(cal.smooth_label_calibration_error(y, c, bandwidth=1e-6), rel=1e-9)


@pytest.mark.parametrize("sigma", [None, 0.3, 0.02, 1e-3])
def test_smoothed_residuals_equal_the_metric_at_size(sigma):
    y, c = confidences(20_000)
    got = losses.smooth_calibration_error_residual(y, torch.tensor(c), sigma=sigma)
    assert got.item() == pytest.approx(cal.smooth_calibration_error_residual(y, c, sigma=sigma), abs=1e-9)


def test_the_gradient_of_the_fixed_point_is_that_of_the_implicit_function():
    labels, c = binary(300)
    p = torch.tensor(c, requires_grad=True)
    losses.smooth_calibration_error_residual(labels, p).backward()
    direction = np.random.default_rng(1).normal(size=len(p))
    step = 1e-6
    above, below = (cal.compute("smece", labels, c + s * step * direction) for s in (1, -1))
    assert p.grad.numpy() @ direction == pytest.approx((above - below) / (2 * step), rel=1e-5)


def test_the_integral_between_sign_changes_is_exact_for_smooth_functions():
    t = torch.linspace(-0.02, 1.02, 105, dtype=torch.float64)  # two nodes beyond each end of [0, 1]
    for frequency in (3.0, 10.0):
        f = torch.sin(frequency * t + 0.3)
        fine = np.abs(np.sin(frequency * np.linspace(0, 1, 2_000_001) + 0.3))
        assert absolute_integral(f, 0.01).item() == pytest.approx(np.trapezoid(fine, dx=5e-7), abs=3e-7)


def test_nodes_carry_smooth_sums():
    x = torch.tensor(confidences()[1])[None]
    a = torch.sin(5 * x)
    nodes = Nodes.on_unit_interval(0.05)
    at = nodes.positions(x)
    got = nodes.spread(x, a)
    for smooth in (torch.cos(3 * at), torch.exp(-((at - 0.3) ** 2) / 0.02)):
        here = nodes.read(x, smooth[None, None])[0, 0]
        assert float(got[0] @ smooth) == pytest.approx(float((a[0] * here).sum()), rel=1e-10)
    read = nodes.read(x, torch.cos(3 * at)[None, None])[0, 0]
    torch.testing.assert_close(read, torch.cos(3 * x[0]), atol=1e-12, rtol=0)


def test_total_variation_in_a_loop_equals_cdist():
    rng = np.random.default_rng(0)
    a, b = (torch.tensor(rng.dirichlet(np.ones(5), n), requires_grad=True) for n in (7, 4))
    torch.testing.assert_close(pairs._TotalVariation.apply(a, b), 0.5 * torch.cdist(a, b, p=1))
    assert torch.autograd.gradcheck(pairs._TotalVariation.apply, (a, b))


@pytest.mark.parametrize(("metric", "options"), [case for case in CASES if case[0] != "pce"], ids=named)
def test_blocks_change_neither_value_nor_gradient(metric, options, monkeypatch):
    monkeypatch.setattr(nodes, "FEW_ROWS", 0)
    monkeypatch.setattr(curves, "FEW_ROWS", 0)
    for y, p in (binary(), multi()):
        if p.ndim == 2 and metric == "general_ls":
            continue
        for lens in ("auto", "class-wise"):
            given = {"lens": lens, **options}
            if given["lens"] not in ("auto", *losses.loss_of(metric).lenses):
                continue
            found = []
            for size in (1 << 20, 100):
                monkeypatch.setattr(blocks, "CPU_BLOCK", size)
                q = torch.tensor(p, requires_grad=True)
                value = losses.loss_of(metric)(y, q, **given)
                value.backward()
                found.append((value.detach(), q.grad))
            torch.testing.assert_close(*found, rtol=1e-9, atol=1e-12)


class Held:
    """A tensor that the graph of a loss holds for its backward pass."""

    def __init__(self, tensor):
        self.tensor = tensor


def kept(work):
    """Bytes that the graph still holds when the loss is computed; each storage counts once."""
    seen = []

    def hold(tensor):
        held = Held(tensor)
        seen.append(weakref.ref(held))
        return held

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda held: held.tensor):
        result = work()
    storages = [held.tensor.untyped_storage() for ref in seen if (held := ref()) is not None]
    assert result.requires_grad  # it is alive, and so is its graph
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("skce_uq", {"bandwidth": 0.3}),
        ("kccsd", {"bandwidth": 0.3}),
        ("dkde", {"bandwidth": 0.1}),
        ("bkde", {"bandwidth": 0.1}),
        ("mmce", {}),
        ("sece", {}),
        ("smece", {}),
        ("sbece", {"lens": "class-wise"}),
    ],
    ids=named,
)
def test_nothing_quadratic_is_kept_for_the_backward_pass(metric, options, monkeypatch):
    monkeypatch.setattr(blocks, "CPU_BLOCK", 1 << 14)
    sizes = []
    for n in (1024, 2048):
        y, p = multi(n, 4)
        q = torch.tensor(p, requires_grad=True)
        sizes.append(kept(lambda y=y, q=q: losses.loss_of(metric)(y, q, **options)))
    assert sizes[1] < 2048**2
    assert sizes[1] < 3 * sizes[0]
