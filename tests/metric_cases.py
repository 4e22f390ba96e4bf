"""Small data for any metric of the catalogue, and how its result is compared, whatever its shape."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import calibrary as cal

ENTRIES = list(cal.catalogue.values())
quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def drawn(n=300, seed=0, decimals=None, *, law=(0.7, 0.9), truth=lambda c: c):
    """Labels that are 1 with the chance ``truth(c)``, and confidences c of a beta law."""
    rng = np.random.default_rng(seed)
    c = rng.beta(*law, n)
    c = c if decimals is None else np.round(c, decimals)
    return (rng.random(n) < truth(c)).astype(int), c


def binary(n=90, seed=0, decimals=2):
    """Over-confident predictions with ties."""
    return drawn(n, seed, decimals, truth=lambda c: 0.15 + 0.7 * c)


def multi(n=90, k=4, seed=0):
    y, p = _multi(n, k, seed)
    return y.copy(), p.copy()


@functools.cache
def _multi(n, k, seed):
    rng = np.random.default_rng(seed)
    p = np.round(rng.dirichlet(np.ones(k), n), 3)
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    p = np.abs(p) / np.abs(p).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(k, p=row) for row in 0.6 * p + 0.4 / k])
    return y, p


def extra(entry, n, seed=1):
    """Inputs beyond labels and probabilities."""
    rng = np.random.default_rng(seed)
    made = {
        "features": lambda: {"features": rng.normal(size=(n, 2))},
        "groups": lambda: {"groups": rng.integers(0, 3, n)},
        "by": lambda: {"by": np.column_stack([rng.integers(0, 3, n), rng.normal(size=n).round(1)])},
        "model": lambda: {"individual": rng.random(n)},
        "consistency": lambda: {"consistency": rng.random(n)},
        "query": lambda: {"query": None, "k": min(20, n)},
        "order": dict,
        "boxes": lambda: {"iou": rng.uniform(0.5, 1.0, n), "category": rng.integers(0, 2, n), "n_missed": {0: 2, 1: 1}},
        "distributions": dict,
    }
    needed = {}
    for need in entry.needs:
        needed.update(made[need]())
    return needed


def rows(kw, index):
    """The extra inputs of some rows."""
    return {k: v[index] if isinstance(v, np.ndarray) else v for k, v in kw.items()}


def numbers(result):
    """A result as a flat array, whatever its shape."""
    if isinstance(result, tuple | list):
        return np.concatenate([numbers(r) for r in result])
    if hasattr(result, "__dataclass_fields__"):
        return np.concatenate([numbers(getattr(result, f)) for f in result.__dataclass_fields__] or [np.array([])])
    if isinstance(result, int | float | np.ndarray | np.number):
        return np.atleast_1d(np.asarray(result, dtype=float)).ravel()
    return np.array([])


def same(a, b, rtol=1e-9, atol=1e-11):
    np.testing.assert_allclose(numbers(a), numbers(b), rtol=rtol, atol=atol)


def rows_for_classes(entry, kw, p):
    if "consistency" in kw:
        kw = {**kw, "consistency": np.full_like(p, 1 / p.shape[1])}
    return kw


def detections(seed=0, n=120, n_images=15):
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(2, 1, n), 3)
    correct = rng.random(n) < score**1.5
    iou = np.where(correct, 0.5 + 0.5 * rng.random(n), 0.0)
    return cal.matched_detections(
        correct, score, iou=iou, category=rng.integers(0, 2, n), image=np.sort(rng.integers(0, n_images, n)),
        box=rng.random((n, 4)) * 40 + 10, image_size=(100, 100), n_missed=5,
    )  # fmt: skip
