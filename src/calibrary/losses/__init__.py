"""Differentiable metrics for PyTorch: the names, arguments and values of calibrary, with gradients.

    import calibrary.losses as losses
    p = torch.softmax(logits, dim=1)
    loss = losses.brier_score(y, p) + 0.5 * losses.soft_binned_calibration_error(y, p)
    loss.backward()

Every function takes labels and a tensor of probabilities, on any device and in any floating dtype, and returns a tensor
with one number that equals the metric. ``losses.LOSSES`` contains them by the metric's short name. Each is also a
module, ``losses.BrierScore(...)``, that is called as PyTorch calls a criterion: ``criterion(y_prob, y_true)``. Type
checkers read the names in ``__init__.pyi``, which scripts/make_stubs.py writes.
"""

from __future__ import annotations

try:
    import torch as _torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("calibrary.losses needs PyTorch: pip install 'calibrary[torch]'") from error

from calibrary.losses import bias, bins, curves, detection, neighbors, pairs, residuals, scores  # they fill LOSSES
from calibrary.losses.declare import LOSSES, loss_of
from calibrary.losses.modules import MODULES, LossModule
from calibrary.losses.weight import WeightChoice, suggest_weight

_FUNCTIONS = {function.__name__: function for function in LOSSES.values()}
globals().update(_FUNCTIONS, **MODULES)

__all__ = sorted(("LOSSES", "LossModule", "WeightChoice", "loss_of", "suggest_weight", *_FUNCTIONS, *MODULES))


def __dir__() -> list[str]:
    return __all__
