"""Tools for whole models: leave-one-out predictions, and binary classifiers combined into a multi-class one."""

from __future__ import annotations

from calibrary.data.lens import code_matrix
from calibrary.models.ecoc import ls_ecoc, ls_ecoc_r
from calibrary.models.leave_one_out import JackknifePredictions, jackknife_predictions

__all__ = ["JackknifePredictions", "code_matrix", "jackknife_predictions", "ls_ecoc", "ls_ecoc_r"]


def __dir__() -> list[str]:
    return sorted(__all__)
