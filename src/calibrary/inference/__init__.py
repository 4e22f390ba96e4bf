"""Uncertainty for any metric: intervals, p-values, comparison of models, many metrics at once."""

from __future__ import annotations

from typing import Any


def monte_carlo_test(entry: Any, y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> Any:
    raise NotImplementedError("Monte Carlo tests are planned and not built yet")
