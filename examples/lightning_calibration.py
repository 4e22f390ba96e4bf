"""Calibration in a Lightning module, logged like any torchmetrics metric.

    python examples/lightning_calibration.py

``CalibrationOfRun`` is a ``torchmetrics.Metric``: it adds up batches and ranks, resets after each epoch, and works
in a ``MetricCollection``. It keeps a table of fixed size (``calibrary.scale``), not the predictions, so that
memory does not grow with the data. Needs ``pip install calibrary lightning torchmetrics`` and PyTorch.
"""

from __future__ import annotations

from typing import Any

import lightning
import numpy as np
import torch
import torchmetrics
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from calibrary.scale.torch import CalibrationMetric


class CalibrationOfRun(torchmetrics.Metric):
    """A metric of the catalogue over everything seen: probabilities of class 1, or one column per class (top label)."""

    is_differentiable = False
    full_state_update = False
    sums: Tensor

    def __init__(self, metric: str = "ece", lens: str = "binary", **options: Any) -> None:
        super().__init__()
        self._table = CalibrationMetric(metric, lens=lens, **options)
        # torchmetrics resets this and adds it up over ranks
        self.add_state("sums", default=torch.zeros_like(self._table.sums), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        self._table.reset()
        self._table.update(preds, target)
        self.sums += self._table.sums.to(self.sums.device)

    def compute(self) -> Tensor:
        self._table.reset()
        self._table.sums = self.sums.clone()
        self._table.rows = int(self.sums[:, 0].sum())
        return torch.tensor(self._table.compute())


class Classifier(lightning.LightningModule):
    """A small network whose calibration is logged after each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
        self.calibration = torchmetrics.MetricCollection(
            {"ece": CalibrationOfRun("ece"), "smece": CalibrationOfRun("smece"), "brier": CalibrationOfRun("bs")}
        )

    def training_step(self, batch: Any, _: int) -> Tensor:
        x, y = batch
        return nn.functional.binary_cross_entropy_with_logits(self.network(x)[:, 0], y.float())

    def validation_step(self, batch: Any, _: int) -> None:
        x, y = batch
        self.calibration.update(torch.sigmoid(self.network(x)[:, 0]), y)
        self.log_dict(self.calibration, on_epoch=True, on_step=False)

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=0.02)


def points(n: int, seed: int) -> TensorDataset:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * x[:, 0] + x[:, 1] ** 2))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y.astype(int)))


def main(epochs: int = 5) -> dict[str, float]:
    """Train, validate, and give what was logged last."""
    lightning.seed_everything(0)
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    train, valid = points(2000, 0), points(5000, 1)
    trainer.fit(Classifier(), DataLoader(train, 100, shuffle=True), DataLoader(valid, 500))
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


if __name__ == "__main__":
    print(main())
