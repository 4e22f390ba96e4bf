"""Validating a model and not only its predictions: refit it many times, and say how it would do on new rows.

``validate(model, X, y)`` corrects every measure for the optimism of a model's own data, and shows how much its
predictions change from refit to refit.
"""

from __future__ import annotations

from calibrary.validation.result import Validation, ValidationRow
from calibrary.validation.shown import Instability, ValidationCurve
from calibrary.validation.verb import validate

__all__ = ["Instability", "Validation", "ValidationCurve", "ValidationRow", "validate"]


def __dir__() -> list[str]:
    return sorted(__all__)
