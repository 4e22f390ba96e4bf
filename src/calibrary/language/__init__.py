"""Language models: logs as they are, sampled answers, a judge beside few human labels, confidences in words."""

from calibrary.language.logs import Log, LogError, read_log

__all__ = ["Log", "LogError", "read_log"]
