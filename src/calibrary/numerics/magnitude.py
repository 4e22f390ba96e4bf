"""A unit in which numbers of any magnitude can be squared and cubed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit_of(x: NDArray[np.float64]) -> NDArray[Any]:
    """The largest power of two that is no larger than the largest magnitude of each column of x; 1/2 if all are 0.

    Powers of ``x / unit_of(x)`` neither overflow nor all vanish. A power of two changes no digit of x.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.numerics.magnitude import unit_of
    >>> float(unit_of(np.array([0.3, -5.0])))
    4.0
    """
    unit: NDArray[Any] = np.ldexp(1.0, np.frexp(np.abs(x).max(axis=0, initial=0.0))[1] - 1)
    return unit
