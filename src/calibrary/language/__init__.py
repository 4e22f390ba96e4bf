"""Language models: evaluation logs, sampled answers, a judge with few human labels, and confidences in words."""

from calibrary.language.logs import Log, LogError, read_log
from calibrary.language.verbal import PHRASES, verbal_confidence

__all__ = ["PHRASES", "Log", "LogError", "read_log", "verbal_confidence"]


def __dir__() -> list[str]:
    return sorted(__all__)
