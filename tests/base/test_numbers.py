"""One rule for writing a number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from calibrary.base.numbers import (
    EXACT,
    as_plain,
    counted,
    distinct_digits,
    ends,
    float_or_array,
    in_repr,
    known,
    number,
    percent,
    pvalue,
    pvalue_cell,
    with_interval,
)  # fmt: skip
from calibrary.metrics.machinery.facts import Alias, Correction


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


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"), (1.0, "100%"), (0.43, "43%"), (0.0726, "7.3%"), (0.765, "76.5%"), (0.95, "95%"),
        (0.00262, "0.26%"), (0.0196, "2%"), (0.00004, "0.004%"), (0.9995, "99.95%"), (0.99999, "99.999%"), (None, ""),
    ],
)  # fmt: skip
def test_a_share_has_one_decimal_or_two_digits_of_its_distance_from_0_or_1(share: float | None, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("p", "draws", "text"),
    [
        (0.001, 999, "p < 0.005"), (0.002, 999, "p < 0.005"), (0.003, 999, "p = 0.003"), (0.01, 199, "p < 0.05"),
        (0.005, 199, "p < 0.01"),  # the smallest p-value that 199 draws can give is printed as a bound
        (0.0001, 9999, "p < 0.001"), (0.0004, 9999, "p < 0.001"), (0.0, EXACT, "p < 0.001"),
        (0.0042, EXACT, "p = 0.0042"), (0.049, 999, "p = 0.049"), (0.0496, 999, "p = 0.0496"), (0.05, 999, "p = 0.05"),
        (0.0504, 999, "p = 0.0504"), (0.02, 199, "p = 0.02"), (0.123, 999, "p = 0.12"), (0.5, 999, "p = 0.5"),
        (1.0, 999, "p = 1"), (math.nan, 999, "no test"),
    ],
)  # fmt: skip
def test_a_p_value_has_two_digits_and_is_never_printed_at_its_floor(p: float, draws: int, text: str) -> None:
    assert pvalue(p, draws) == text


def test_a_p_value_in_a_cell_has_no_letter() -> None:
    assert [pvalue_cell(p, 999) for p in (0.001, 0.123, math.nan, None)] == ["< 0.005", "0.12", "", ""]


def test_an_interval_is_written_with_to() -> None:
    assert with_interval(0.0583, 0.0391, 0.0762) == "0.058 (0.039 to 0.076)"
    assert with_interval(0.0583, None, None) == with_interval(0.0583, math.nan, math.nan) == "0.058"
    assert ends(None, 0.1) == ""


def test_counts_have_thousands_and_a_plural() -> None:
    assert [counted(n, "row") for n in (1, 2, 1000)] == ["1 row", "2 rows", "1,000 rows"]
    assert counted(2, "class", "classes") == "2 classes"


def test_a_repr_has_six_digits() -> None:
    assert in_repr(0.123456789) == "0.123457"
    assert in_repr(np.array([0.5, 0.123456])) == "[0.5    0.1235]"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.1, 0.25, 1e-3], ["0.1", "0.25", "0.001"]),
        ([100.1, 100.2], ["100.1", "100.2"]),
        ([1.0, 1.0 + 1e-12], ["1", "1.0000000000010001"]),
        (np.array(["2026-01-01", "2026-02-01"], dtype="datetime64[D]"), ["2026-01-01", "2026-02-01"]),
        ([1_000_000, 2_000_000], ["1000000", "2000000"]),
    ],
)
def test_numbers_are_written_with_as_few_digits_as_keep_them_distinct(values: Any, said: list[str]) -> None:
    assert distinct_digits(values) == said


def test_values_become_types_of_json() -> None:
    given = {
        1: (np.float64(0.5), np.int64(2), np.bool_(True), None),
        "array": np.array([[1.0, math.nan]]),
        "name": Alias("RMSCE", norm=2),
        "data": Correction("a", "b", "c"),
    }
    plain = as_plain(given, finite=True)
    assert plain == {
        "1": [0.5, 2, True, None],
        "array": [[1.0, None]],
        "name": "RMSCE",
        "data": {"fact": "a", "review": "b", "ours": "c"},
    }
    assert [type(v) for v in (*plain["1"], plain["name"])] == [float, int, bool, type(None), str]
    assert math.isnan(as_plain(math.nan))


def test_one_number_is_a_float_and_several_stay_an_array() -> None:
    assert type(float_or_array(np.array(0.5))) is float
    several = np.array([0.5, 0.6])
    assert float_or_array(several) is several
    assert (known(0.5), known(math.nan)) == (0.5, None)
