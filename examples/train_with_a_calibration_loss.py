"""Does a calibration loss help a small network? Cross-entropy against cross-entropy + loss, on noisy digits.

    python examples/train_with_a_calibration_loss.py [--figure reliability.png] [--quick]

Needs PyTorch and scikit-learn (for the images). Handwritten digits with noise, 400 to train on: a network of two hidden
layers learns them by heart and becomes over-confident. For each of three losses the weight is chosen on 400 validation
rows by their log loss (`suggest_weight`), then three networks are trained and judged on 997 test rows that nothing was
chosen on. Temperature scaling on the same validation rows stands beside them: it costs nothing, so a loss has to
beat it.

A few minutes on two cores.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import calibrary as cal
from calibrary import losses

NOISE, EPOCHS, BATCH, HIDDEN = 0.4, 60, 100, 128
#: Losses beside the cross-entropy, and the weights that are tried. All are called as criteria, predictions first.
CANDIDATES: dict[str, tuple[nn.Module, list[float]]] = {
    "weighted MMCE": (losses.MaximumMeanCalibrationError(weighted=True), [0.1, 0.3, 1.0, 3.0]),
    "SKCE": (losses.SquaredKernelCalibrationErrorUq(bandwidth=0.5), [3.0, 10.0, 30.0, 100.0]),
    "soft-binned ECE": (losses.SoftBinnedCalibrationError(), [0.3, 1.0, 3.0]),
}


class Digits:
    """Noisy images and their labels, in three parts."""

    def __init__(self) -> None:
        images, labels = load_digits(return_X_y=True)
        rng = np.random.default_rng(0)
        noisy = images / 16.0 + NOISE * rng.standard_normal(images.shape)
        order = rng.permutation(len(labels))
        self.x, self.y = torch.tensor(noisy[order], dtype=torch.float32), torch.tensor(labels[order])
        self.train, self.validation, self.test = slice(0, 400), slice(400, 800), slice(800, None)


def trained(data: Digits, loss: nn.Module | None, weight: float, seed: int, epochs: int) -> nn.Module:
    """A network trained on cross-entropy + weight * loss."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10)
    )
    x, y = data.x[data.train], data.y[data.train]
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(BATCH):
            logits = network(x[rows])
            value = nn.functional.cross_entropy(logits, y[rows])
            if loss is not None and weight > 0.0:
                value = value + weight * loss(torch.softmax(logits, dim=1), y[rows])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    return network


@torch.no_grad()
def predicted(network: nn.Module, x: Tensor, temperature: float = 1.0) -> np.ndarray:
    return torch.softmax(network(x).double() / temperature, dim=1).numpy()


def best_temperature(network: nn.Module, data: Digits) -> float:
    """The temperature with the smallest log loss on the validation rows."""
    tried = np.geomspace(0.3, 10.0, 200)
    y, x = data.y[data.validation].numpy(), data.x[data.validation]
    return float(min(tried, key=lambda t: cal.negative_log_likelihood(y, predicted(network, x, t))))


def chosen_weight(data: Digits, loss: nn.Module, weights: list[float], epochs: int) -> losses.WeightChoice:
    def fit(weight: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        network = trained(data, loss, weight, seed, epochs)
        return data.y[data.validation].numpy(), predicted(network, data.x[data.validation])

    return losses.suggest_weight(fit, weights, seeds=(10, 11, 12))


def judged(data: Digits, name: str, networks: list[nn.Module], scaled: bool = False) -> list[np.ndarray]:
    """Print test figures of the networks, after temperature scaling if asked; returns their predictions."""
    print(name + (", then temperature scaling" if scaled else ""))
    y, x = data.y[data.test].numpy(), data.x[data.test]
    found = [predicted(n, x, best_temperature(n, data) if scaled else 1.0) for n in networks]
    for seed, p in enumerate(found):
        gap = cal.expected_signed_calibration_error(y, p, convention="mcs")
        log = cal.interval("nll", y, p, n_resamples=399, rng=0)
        error = cal.interval("smece", y, p, lens="top-label", n_resamples=199, rng=0)
        print(
            f"    seed {seed}  accuracy {np.mean(p.argmax(axis=1) == y):.3f}  over-confidence {gap:+.3f}  "
            f"log loss {log.value:.3f} [{log.low:.3f}, {log.high:.3f}]  "
            f"smECE {error.value:.3f} [{error.low:.3f}, {error.high:.3f}]"
        )
    return found


def reliability(y: np.ndarray, before: np.ndarray, after: np.ndarray, name: str) -> None:
    """Accuracy in ten bins of confidence, plus or minus two standard errors, before and after."""
    print(
        "\nreliability of the first seed, accuracy in bins of confidence\n"
        f"    {'bin':10}{'cross-entropy':>28}{name:>28}"
    )
    tables = [cal.reliability_bins(y, p, n_bins=10, lens="top-label") for p in (before, after)]
    for low in np.arange(1, 10) / 10:
        cells = []
        for t in tables:
            at = np.flatnonzero(np.isclose(t.lower, low))
            cells.append("-" if not len(at) else _cell(t, int(at[0])))
        print(f"    {low:.1f}-{low + 0.1:.1f}   " + "".join(f"{cell:>28}" for cell in cells))


def _cell(t: object, i: int) -> str:
    return f"{t.outcome[i]:.2f} +- {2 * t.standard_error[i]:.2f} ({t.count[i]} rows)"  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", help="draw the reliability before and after into this file")
    parser.add_argument("--quick", action="store_true", help="two weights and few epochs: does it run?")
    asked = parser.parse_args()
    data, epochs, seeds = Digits(), 3 if asked.quick else EPOCHS, (0, 1, 2)
    y = data.y[data.test].numpy()

    plain = [trained(data, None, 0.0, seed, epochs) for seed in seeds]
    before = judged(data, "cross-entropy", plain)
    judged(data, "cross-entropy", plain, scaled=True)

    best: tuple[float, str, list[np.ndarray]] | None = None
    for name, (loss, weights) in CANDIDATES.items():
        choice = chosen_weight(data, loss, weights[-2:-1] if asked.quick else weights, epochs)
        print(f"{name}: {choice.words}")
        if choice.weight == 0.0:
            continue
        networks = [trained(data, loss, choice.weight, seed, epochs) for seed in seeds]
        after = judged(data, f"cross-entropy + {choice.weight:g} x {name}", networks)
        for seed, old, new in zip(seeds, before, after, strict=True):
            change = cal.compare("nll", y, new, old, n_resamples=399, rng=0)
            print(f"    seed {seed}  change of log loss {change.value:+.3f} [{change.low:+.3f}, {change.high:+.3f}]")
        judged(data, f"cross-entropy + {choice.weight:g} x {name}", networks, scaled=True)
        gain = max(row["gain"] for row in choice.table)
        if best is None or gain > best[0]:
            best = (gain, name, after)
    if best is None:
        print("\nno loss helped on the validation rows: use temperature scaling, or nothing")
        return
    reliability(y, before[0], best[2][0], f"with {best[1]}")
    if asked.figure:
        draw(y, before[0], best[2][0], best[1], asked.figure)


def draw(y: np.ndarray, before: np.ndarray, after: np.ndarray, name: str, path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 5))
    for axis, p, title in ((axes[0], before, "cross-entropy"), (axes[1], after, f"cross-entropy + {name}")):
        cal.plots.plot_reliability(y, p, lens="top-label", ax=axis)
        axis.set_title(title)
    figure.savefig(path, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    main()
