"""Differentiable metrics for PyTorch: the names, arguments and values of calibrary, with gradients.

    import calibrary.losses as losses
    loss = losses.brier_score(y, probs) + 0.5 * losses.soft_binned_calibration_error(y, probs)
    loss.backward()

Every function takes labels and a tensor of probabilities (``torch.sigmoid`` or ``torch.softmax`` of the logits), on
any device and in any floating dtype, and gives a tensor with one number. Pair metrics look at all pairs of a batch.
"""

from __future__ import annotations

try:
    import torch as _torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("calibrary.losses needs PyTorch: pip install 'calibrary[torch]'") from error

from calibrary.losses.bins import *
from calibrary.losses.kernels import *
from calibrary.losses.scores import *
