"""Every loss as a module, called as PyTorch calls a criterion: ``criterion(y_prob, y_true)``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from calibrary.losses.declare import LOSSES, with_current_names


class LossModule(nn.Module):  # type: ignore[misc]  # PyTorch is not type-checked
    """A loss with its options, for use as a PyTorch criterion.

    Arguments are in PyTorch's order, predictions first. Options are those of the function of the same name.

    Parameters
    ----------
    from_logits : bool
        Predictions are logits: a sigmoid (one per row) or a softmax (one per class) is applied first.
    **options
        Options of the loss.

    Examples
    --------
    >>> import torch
    >>> from calibrary import losses
    >>> criterion = losses.MaximumMeanCalibrationError(bandwidth=0.2, from_logits=True)
    >>> criterion
    MaximumMeanCalibrationError(bandwidth=0.2, from_logits=True)
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 0.5]], requires_grad=True)
    >>> criterion(logits, torch.tensor([0, 1, 1])).requires_grad
    True
    """

    #: The function of this module; each class has its own.
    loss: Callable[..., Tensor]

    def __init__(self, *, from_logits: bool = False, **options: Any) -> None:
        super().__init__()
        self.from_logits = from_logits
        self.options = with_current_names(type(self).loss, options)

    def forward(self, y_prob: Tensor, y_true: Any, sample_weight: Any = None) -> Tensor:
        if self.from_logits:
            y_prob = torch.sigmoid(y_prob) if y_prob.ndim == 1 else torch.softmax(y_prob, dim=1)
        options = self.options if sample_weight is None else {**self.options, "sample_weight": sample_weight}
        return type(self).loss(y_true, y_prob, **options)

    def extra_repr(self) -> str:
        shown = {**self.options, **({"from_logits": True} if self.from_logits else {})}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


def _module(function: Callable[..., Tensor]) -> type[LossModule]:
    name = "".join(word.capitalize() for word in function.__name__.split("_"))
    first, *_ = (inspect.getdoc(function) or "").splitlines()
    text = f"{first}\n\nThe module of :func:`{function.__name__}`; see :class:`LossModule`."
    return type(name, (LossModule,), {"loss": staticmethod(function), "__doc__": text, "__module__": __name__})


#: Every module by its name, which pickles look for here.
MODULES = {module.__name__: module for module in map(_module, LOSSES.values())}
globals().update(MODULES)
