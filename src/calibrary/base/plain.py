"""Values as plain types: the types of JSON, and Python numbers in place of numpy numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def as_plain(value: Any, *, finite: bool = False) -> Any:
    """Dictionaries, lists, text, numbers and None from any value; ``finite`` turns NaN and infinities into None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_plain(getattr(value, f.name), finite=finite) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): as_plain(v, finite=finite) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(v, finite=finite) for v in value]
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return as_plain(value.tolist(), finite=finite)
    if finite and isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or type(value) in (bool, int, float, str) else str(value)


def float_or_array(x: Any) -> Any:
    """A Python number for a single number, otherwise the array."""
    return float(x) if np.ndim(x) == 0 else x


def known(x: float) -> float | None:
    """None in place of NaN."""
    return None if math.isnan(x) else x
