"""Internal validation of a model: refit it many times, and estimate its performance on new rows.

``validate(model, X, y)`` corrects every metric for optimism (the difference between the model's own rows and new
rows), and shows how much the predictions change from refit to refit.
"""

from __future__ import annotations

from calibrary.validation.corrections import Instability, ValidationCurve
from calibrary.validation.result import Validation, ValidationRow
from calibrary.validation.verb import validate

__all__ = ["Instability", "Validation", "ValidationCurve", "ValidationRow", "validate"]


def __dir__() -> list[str]:
    return sorted(__all__)
