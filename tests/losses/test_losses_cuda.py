"""Losses on a GPU: the same numbers and gradients as on the CPU, without waiting for the device."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from calibrary import losses  # noqa: E402
from loss_cases import CASES, N, binary, by_row, multi, named  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

EVERY = [*CASES, ("atb", {}), ("bounded_brier", {"low": 0.1, "high": 0.9}), ("bounded_log", {"low": 0.1, "high": 0.9})]
every_case = pytest.mark.parametrize(("metric", "options"), EVERY, ids=named)


def moved(options, device):
    return {k: torch.tensor(v, device=device) if isinstance(v, np.ndarray) else v for k, v in options.items()}


def value_and_gradient(metric, y, p, options, device, dtype=torch.float64):
    q = torch.tensor(p, device=device, dtype=dtype, requires_grad=True)
    value = losses.loss_of(metric)(torch.tensor(y, device=device), q, **moved(options, device))
    value.backward()
    return value.detach().cpu().double(), q.grad.cpu().double()


@every_case
def test_a_gpu_gives_the_same_value_and_gradient(metric, options):
    for y, p in (binary(), multi(), multi(600, 4)):
        if (p.ndim == 2 and metric == "general_ls") or (len(y) != N and by_row(options)):
            continue
        for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 2e-3)):
            here = value_and_gradient(metric, y, p, options, "cpu", dtype)
            there = value_and_gradient(metric, y, p, options, "cuda", dtype)
            torch.testing.assert_close(there, here, rtol=tolerance, atol=tolerance / 100)


@every_case
def test_a_loss_does_not_wait_for_the_device(metric, options):
    y, p = binary() if metric == "general_ls" else multi()
    labels = torch.tensor(y, device="cuda")
    given = moved(options, "cuda")
    if metric == "pce":
        given["n_groups"] = 4
    q = torch.tensor(p, device="cuda", requires_grad=True)
    losses.loss_of(metric)(labels, q, **given).backward()  # plans of transforms are made once
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        losses.loss_of(metric)(labels, q, **given).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_devices_are_not_mixed():
    p = torch.tensor([0.2, 0.8], device="cuda")
    with pytest.raises(ValueError, match=r"y_true is on cpu and y_prob on cuda:0: move one of them"):
        losses.brier_score(torch.tensor([0, 1]), p)
    with pytest.raises(ValueError, match="sample_weight is on cpu"):
        losses.brier_score([0, 1], p, sample_weight=torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_autocast_and_half_precision_on_the_gpu(dtype):
    y, p = multi(300, 5)
    labels = torch.tensor(y, device="cuda")
    for metric, options in EVERY:
        if by_row(options) or metric == "general_ls":
            continue
        logits = torch.tensor(np.log(p), device="cuda", dtype=torch.float32, requires_grad=True)
        with torch.autocast("cuda", dtype=dtype):
            q = torch.softmax(logits, dim=1)
            value = losses.loss_of(metric)(labels, q.to(dtype), **options)
        value.backward()
        assert torch.isfinite(value), metric
        assert torch.isfinite(logits.grad).all(), metric
