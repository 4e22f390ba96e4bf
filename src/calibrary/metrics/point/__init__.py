"""Point family (rows 1-22 of Table 2): scores of single predictions, averaged; global bias; decompositions."""

from __future__ import annotations

from calibrary.metrics.point import (
    bias,
    brier,
    consistency,
    decomposition,
    individual,
    jackknife,
    logarithmic,
    losses,
    moments,
    ordinal,
    power,
    spiegelhalter,
    success,
)
from calibrary.metrics.point.bias import *
from calibrary.metrics.point.brier import *
from calibrary.metrics.point.consistency import *
from calibrary.metrics.point.decomposition import *
from calibrary.metrics.point.individual import *
from calibrary.metrics.point.jackknife import *
from calibrary.metrics.point.logarithmic import *
from calibrary.metrics.point.losses import *
from calibrary.metrics.point.moments import *
from calibrary.metrics.point.ordinal import *
from calibrary.metrics.point.power import *
from calibrary.metrics.point.spiegelhalter import *
from calibrary.metrics.point.success import *

__all__ = [
    name
    for module in (
        bias,
        brier,
        consistency,
        decomposition,
        individual,
        jackknife,
        logarithmic,
        losses,
        moments,
        ordinal,
        power,
        spiegelhalter,
        success,
    )
    for name in module.__all__
]
