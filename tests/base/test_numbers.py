"""One rule for writing a number."""

from __future__ import annotations

import math

import pytest

from calibrary.base.numbers import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0583, "0.058"), (0.00863, "0.0086"), (0.00996, "0.010"), (0.0000154, "0.000015"), (-0.0012, "-0.0012"),
        (3.2e-9, "3.2e-09"),
        (0.0, "0"), (1e-14, "0"), (12.3456, "12.346"), (123.456, "123.5"), (54321.0, "54,321"), (6.78e22, "6.8e+22"),
        (math.inf, "∞"),
        (math.nan, "undefined"), (None, ""),
    ],
)  # fmt: skip
def test_a_number_is_written_by_its_size(value: float | None, text: str) -> None:
    assert number(value) == text
