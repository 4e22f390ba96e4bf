"""A state on the device of a training job: torchmetrics' interface, constant memory, one all-reduce over the ranks."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("calibrary.scale.torch needs PyTorch: pip install 'calibrary[torch]'") from error

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import are_probabilities, as_array
from calibrary.data.identity import refuse_misaligned
from calibrary.lookup import catalogue
from calibrary.numerics.cells import LEVELS, POSITIONS, Grid
from calibrary.scale.checks import ROW_SUM
from calibrary.scale.classes import VectorState
from calibrary.scale.read import merged
from calibrary.scale.state import State
from calibrary.scale.sums import CountTable

__all__ = ["CalibrationMetric"]

#: The most rows in the sums of one device: this many positions below 2^28 fit 63 bits.
_MOST_ROWS = 1 << 34


class CalibrationMetric:
    """Calibration metrics over all batches of training or validation, on one rank or many.

    ``update`` adds a batch on its own device; ``compute`` adds the ranks of ``torch.distributed`` and returns the
    metrics. Memory is constant: 3.8 MB per rank at resolution 4800.

    Parameters
    ----------
    *metrics : str
        Ids of metrics; ``compute`` returns a number for one, a dictionary for several.
    lens : "binary" or "top-label"
        Probabilities of class 1; or one column per class, of which the top label is used.
    resolution : int
        As in :class:`State`.
    state : VectorState, optional
        Instead of lens and resolution: a state of several classes to be filled, for class-wise metrics; it stays in
        main memory.
    **options
        Options of the metrics.

    Examples
    --------
    >>> import torch
    >>> import calibrary as cal
    >>> metric = cal.scale.torch.CalibrationMetric("ece", "bs")
    >>> for _ in range(3):
    ...     metric.update(torch.tensor([0.2, 0.7, 0.9]), torch.tensor([0, 1, 1]))
    >>> {name: round(value, 4) for name, value in metric.compute().items()}
    {'ece': 0.2, 'bs': 0.0467}
    """

    def __init__(
        self,
        *metrics: str,
        lens: str = "binary",
        resolution: int = 4800,
        state: VectorState | None = None,
        **options: Any,
    ) -> None:
        one_of("lens", lens, ("binary", "top-label"))
        self.metrics = tuple(catalogue[name].key for name in metrics)
        self.options, self.lens, self.grid = options, lens, Grid(resolution)
        self.vectors = None if state is None else state.copy()
        self._empty = None if state is None else state.copy()
        self.sums = self._zeros("cpu")
        self.rows = 0

    def _zeros(self, device: Any) -> torch.Tensor:
        size = 0 if self.vectors is not None else 2 * self.grid.size
        return torch.zeros((size, 2), dtype=torch.int64, device=device)

    # -- torchmetrics' interface-----------------------------------------------------------------

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch: predicted probabilities, then labels (torchmetrics' order)."""
        if self.vectors is not None:
            self.vectors.update(target, preds)
            return
        refuse_misaligned(preds=preds, target=target)
        c, y = self._confidence(_tensor(preds, "preds"), _tensor(target, "target"))
        if self.rows + len(c) > _MOST_ROWS:
            raise OverflowError(f"more than {_MOST_ROWS:,} rows on one device: compute() and reset() before")
        if self.sums.device != c.device:
            self.to(c.device)
        _add(c, y, self.grid, self.sums)
        self.rows += len(c)

    def __call__(self, preds: Any, target: Any) -> Any:
        """Add a batch, and return the metrics of this batch alone."""
        batch = CalibrationMetric(
            *self.metrics, lens=self.lens, resolution=self.grid.resolution, state=self._empty, **self.options
        )
        batch.update(preds, target)
        self.merge_state(batch)
        return batch._measured(batch._state())

    forward = __call__

    def compute(self) -> Any:
        """The metrics of all batches of all ranks: a number, or a dictionary of numbers."""
        return self._measured(self.state())

    def reset(self) -> None:
        """Remove all batches."""
        self.sums = self._zeros(self.sums.device)
        self.rows = 0
        self.vectors = None if self._empty is None else self._empty.copy()

    def merge_state(self, other: CalibrationMetric) -> None:
        """Add the batches of another metric, without ``torch.distributed``."""
        if self.lens != other.lens or self.grid != other.grid:
            raise RefusedError(
                "the two metrics have different lenses or resolutions: create both with the same settings"
            )
        if self.vectors is not None and other.vectors is not None:
            self.vectors.merge(other.vectors)
        self.sums += other.sums.to(self.sums.device)
        self.rows += other.rows

    def to(self, device: Any) -> Self:
        """Move the sums to another device."""
        self.sums = self.sums.to(device)
        return self

    def state_dict(self) -> dict[str, Any]:
        """The content of a checkpoint."""
        return {"sums": self.sums.clone(), "rows": self.rows, "vectors": self.vectors and self.vectors.to_bytes()}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Restore the content of :meth:`state_dict`."""
        self.sums, self.rows = saved["sums"].clone(), int(saved["rows"])
        self.vectors = None if saved["vectors"] is None else VectorState.of_bytes(saved["vectors"])

    # -- the state ------------------------------------------------------------------------------

    def state(self) -> Any:
        """The state of all batches of all ranks (every rank must call)."""
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return self._state()
        if self.vectors is not None:
            gathered: list[Any] = [None] * torch.distributed.get_world_size()
            torch.distributed.all_gather_object(gathered, self.vectors.to_bytes())
            return merged(VectorState.of_bytes(each) for each in gathered)
        everyone = self.sums.clone()
        torch.distributed.all_reduce(everyone, op=torch.distributed.ReduceOp.SUM)
        return self._state(everyone)

    def _state(self, sums: torch.Tensor | None = None) -> Any:
        if self.vectors is not None:
            return self.vectors.copy()
        found = (self.sums if sums is None else sums).cpu().numpy()
        code = np.flatnonzero(found[:, 0])
        state = State(self.grid.resolution, lens=self.lens)
        state.add_sums(CountTable(code, found[code, 0], found[code, 1]))
        return state

    def _measured(self, state: Any) -> Any:
        rows = state.as_predictions()
        values = {id: catalogue[id](rows, **self.options) for id in self.metrics}
        return values[self.metrics[0]] if len(self.metrics) == 1 else values

    def _confidence(self, preds: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Confidence and 0/1 label of every row, checked."""
        if preds.shape[0] != target.shape[0] or target.ndim != 1:
            shapes = f"preds has shape {tuple(preds.shape)} and target {tuple(target.shape)}"
            raise RefusedError(f"{shapes}: pass one label per row")
        p = preds.double() if preds.device.type != "mps" else preds.cpu().double()
        y = target.to(p.device)
        if p.ndim == 2 and self.lens == "binary":
            if p.shape[1] != 2:
                raise RefusedError(f"preds has {p.shape[1]} columns: pass lens='top-label', or the column of class 1")
            p = p[:, 1]
        classes = 2 if p.ndim == 1 else p.shape[1]
        _check(p, y, classes)
        if self.lens == "binary":
            return p, y.long()
        if p.ndim == 1:
            return torch.maximum(p, 1.0 - p), (y.long() == (p > 0.5).long()).long()
        confidence = p.amax(dim=1)
        top = (p == confidence[:, None]).int().argmax(dim=1)  # the first of equal probabilities, on every device
        return confidence, (top == y.long()).long()


def _tensor(values: Any, name: str) -> torch.Tensor:
    """A tensor on its own device; other arrays are checked as everywhere, so that no mask is lost."""
    given = values if isinstance(values, torch.Tensor) else np.ascontiguousarray(as_array(values, name))
    return torch.as_tensor(given).detach()


def _check(p: torch.Tensor, y: torch.Tensor, classes: int) -> None:
    outside = ~are_probabilities(p)
    outside = outside if p.ndim == 1 else outside.any(dim=1)
    no_class = ~((y >= 0) & (y < classes) & (y == y.long()))
    bad = outside | no_class
    if p.ndim == 2:
        off = (p.sum(dim=1) - 1.0).abs() > ROW_SUM
        bad |= off
    if not bool(bad.any()):  # the only synchronization with the device
        return
    row = int(bad.int().argmax())
    if bool(outside[row]):
        raise RefusedError(f"preds[{row}] = {p[row].tolist()} is not in [0, 1]: pass probabilities, not logits")
    if bool(no_class[row]):
        raise RefusedError(f"target[{row}] = {y[row].item()} is not one of the classes 0 to {classes - 1}")
    raise RefusedError(f"preds[{row}] sums to {float(p[row].sum()):.9g}, not 1: pass probabilities, not logits")


def _add(c: torch.Tensor, y: torch.Tensor, grid: Grid, sums: torch.Tensor) -> None:
    """Counts and sums of positions, by the recipe of :class:`calibrary.numerics.cells.Grid`."""
    g = grid.resolution
    right = c > 0.5
    distance = torch.where(right, 1.0 - c, c)
    finest = torch.where(right, grid.levels_at_one, LEVELS)
    exponent = torch.frexp(distance)[1].long()
    level = torch.minimum((-exponent >> 2).clamp(min=0), finest)
    level = torch.where(distance == 0.0, finest, level)
    powers = torch.tensor([float(16**i) for i in range(LEVELS + 1)], dtype=torch.float64, device=c.device)
    finer = powers[level]
    x = (distance * finer) * g
    nearest = torch.floor(x + 0.5)
    scale = finer * g
    edge = torch.where(right, scale - nearest, nearest) / scale
    below = ((c > edge) == right).long()
    off = (c != edge).long()
    left = (LEVELS - level) * (2 * g) + 2 * nearest.long() + off * (1 - 2 * below)
    share = x - (nearest - below.double())
    position = torch.floor(share * POSITIONS + 0.5).clamp(1, POSITIONS - 1).long() * off
    code = 2 * torch.where(right, 2 * grid.middle - left, left) + y
    sums.index_add_(0, code, torch.stack([torch.ones_like(position), position], dim=1))
