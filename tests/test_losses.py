"""Losses equal their metrics, and their gradients equal finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal

torch = pytest.importorskip("torch")

from calibrary import losses  # noqa: E402

CASES = [
    ("brier_score", {}),
    ("brier_score", {"scale": "sum"}),
    ("negative_log_likelihood", {}),
    ("negative_log_likelihood", {"eps": 0.2}),
    ("focal_loss", {}),
    ("focal_loss", {"gamma": 3.0}),
    ("dual_focal_loss", {}),
    ("multiclass_difference_of_confidence_and_accuracy", {}),
    ("soft_f1_score", {}),
    ("soft_binned_calibration_error", {}),
    ("soft_binned_calibration_error", {"n_bins": 7, "tau": 0.05, "norm": 1}),
    ("differentiable_calibration_error", {}),
    ("differentiable_calibration_error", {"norm": 2, "eps": 1e-3}),
    ("maximum_mean_calibration_error", {}),
    ("maximum_mean_calibration_error", {"squared": True, "kernel": "gaussian", "bandwidth": 0.2}),
    ("maximum_mean_calibration_error", {"weighted": True}),
    ("mean_squared_calibration_error", {}),
    ("smooth_label_calibration_error", {"bandwidth": 0.05}),
    ("beta_kernel_calibration_error", {"bandwidth": 0.05}),
    ("beta_kernel_calibration_error", {"bandwidth": 0.05, "p": 1}),
    ("beta_kernel_calibration_error", {"bandwidth": 0.2, "debias": False}),
    ("dirichlet_kernel_calibration_error", {"bandwidth": 0.05}),
    ("dirichlet_kernel_calibration_error", {"bandwidth": 0.05, "p": 2, "root": True}),
]
every_loss = pytest.mark.parametrize(("name", "options"), CASES, ids=lambda v: v if isinstance(v, str) else str(v))


def binary(n=40, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.02, 0.98, n)
    return (rng.random(n) < 0.2 + 0.6 * c).astype(int), c


def multi(n=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    return rng.integers(0, k, n), p


@every_loss
def test_a_loss_equals_its_metric(name, options):
    w = 1.0 + np.arange(40) % 3
    for y, p in (binary(), multi()):
        metric = getattr(cal, name)
        lenses = ["auto", "top-label", "class-wise"]
        for lens in lenses:
            for weights in (None, w):
                got = getattr(losses, name)(
                    torch.tensor(y), torch.tensor(p), lens=lens, sample_weight=weights, **options
                )
                assert got.ndim == 0
                want = metric(y, p, lens=lens, sample_weight=weights, **options)
                assert float(got) == pytest.approx(want, rel=1e-9, abs=1e-12)


@every_loss
def test_gradients_equal_finite_differences(name, options):
    loss = getattr(losses, name)
    rng = np.random.default_rng(2)
    for shape in ((9,), (9, 3)):
        logits = torch.tensor(rng.normal(size=shape), requires_grad=True)
        y = torch.tensor(rng.integers(0, 2 if len(shape) == 1 else 3, 9))

        def value(z, y=y):
            p = torch.sigmoid(z) if z.ndim == 1 else torch.softmax(z, dim=1)
            return loss(y, p, **options)

        assert torch.autograd.gradcheck(value, (logits,), eps=1e-6, atol=1e-5)


@every_loss
def test_saturated_predictions_give_finite_gradients_where_the_loss_is_finite(name, options):
    p = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5, 0.5], dtype=torch.float64, requires_grad=True)
    value = getattr(losses, name)(torch.tensor([0, 1, 0, 1, 0, 1]), p, **options)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(p.grad).all()


def test_single_precision_stays_single_and_close():
    y, p = multi()
    value = losses.dirichlet_kernel_calibration_error(torch.tensor(y), torch.tensor(p).float(), bandwidth=0.1)
    assert value.dtype == torch.float32
    assert float(value) == pytest.approx(cal.dirichlet_kernel_calibration_error(y, p, bandwidth=0.1), rel=1e-4)


def test_a_calibration_loss_can_be_minimised():
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(0, 2, 300))
    y = torch.tensor((rng.random(300) < 1 / (1 + np.exp(-0.4 * z.numpy()))).astype(int))
    slope = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([slope], lr=0.05)
    before = losses.maximum_mean_calibration_error(y, torch.sigmoid(slope * z)).item()
    for _ in range(60):
        optimiser.zero_grad()
        loss = losses.maximum_mean_calibration_error(y, torch.sigmoid(slope * z))
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.6 * before
    assert 0.2 < slope.item() < 0.7


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 1], [0.2, 0.8]), "floating-point tensor"),
        (([0, 1, 1], torch.tensor([0.2, 0.8])), "one label per row"),
        (([0, 1], torch.tensor([[0.2], [0.8]])), "K at least 2"),
        (([], torch.zeros(0)), "empty"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(arguments, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        losses.brier_score(*arguments)


def test_bad_options_are_refused_by_name():
    y, p = torch.tensor([0, 1, 1]), torch.tensor([0.2, 0.8, 0.6])
    with pytest.raises(ValueError, match="sample_weight"):
        losses.brier_score(y, p, sample_weight=[1.0])
    with pytest.raises(ValueError, match="lens"):
        losses.brier_score(y, p, lens="pairwise")
    with pytest.raises(ValueError, match="bandwidth"):
        losses.dirichlet_kernel_calibration_error(y, p, bandwidth=0.0)
    with pytest.raises(ValueError, match="too small"):
        losses.beta_kernel_calibration_error(y[:2], p[:2], bandwidth=0.1)
    with pytest.raises(ValueError, match="debias"):
        losses.beta_kernel_calibration_error(y, p, bandwidth=0.1, p=1, debias=True)
    with pytest.raises(ValueError, match="lens='binary'"):
        losses.soft_f1_score(y, torch.full((3, 4), 0.25), lens="binary")
