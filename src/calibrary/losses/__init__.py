"""Differentiable metrics for PyTorch: the names, arguments and values of calibrary, with gradients.

    import calibrary.losses as losses
    p = torch.softmax(logits, dim=1)
    loss = losses.brier_score(y, p) + 0.5 * losses.soft_binned_calibration_error(y, p)
    loss.backward()

Every function takes labels and a tensor of probabilities, on any device and in any floating dtype, and gives a tensor
with one number that equals its metric. ``losses.LOSSES`` holds them by the metric's short name. Each is also a module,
``losses.BrierScore(...)``, that is called as PyTorch calls a criterion: ``criterion(y_prob, y_true)``.
"""

from __future__ import annotations

try:
    import torch as _torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("calibrary.losses needs PyTorch: pip install 'calibrary[torch]'") from error

from calibrary.losses.bias import *
from calibrary.losses.bins import *
from calibrary.losses.cumulative import *
from calibrary.losses.curves import *
from calibrary.losses.declare import LOSSES, loss_of
from calibrary.losses.detection import *
from calibrary.losses.embedding import *
from calibrary.losses.errors import *
from calibrary.losses.evidence import *
from calibrary.losses.modules import *
from calibrary.losses.neighbors import *
from calibrary.losses.pairs import *
from calibrary.losses.residuals import *
from calibrary.losses.scores import *
from calibrary.losses.weight import *
