"""calibrary: can these predicted probabilities be believed?

Every probability-calibration metric, one library. Start with ``evaluate(y, p)`` for everything that applies,
``compute("ece", y, p)`` for one number, ``catalogue`` for what there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrary import datasets as datasets
from calibrary import lens as lens
from calibrary.catalogue import *
from calibrary.detection import *
from calibrary.errors import *
from calibrary.evaluate import *
from calibrary.lens import *
from calibrary.metrics.bins import *
from calibrary.metrics.cumulative import *
from calibrary.metrics.curve import *
from calibrary.metrics.detection import *
from calibrary.metrics.distance import *
from calibrary.metrics.kernel import *
from calibrary.metrics.point import *
from calibrary.predictions import *
from calibrary.recommend import *
from calibrary.report import *

# isort: split
# after the families, whose star imports also bring the names of their modules (interval)
from calibrary.inference import *

if TYPE_CHECKING:
    from calibrary import grouping as grouping
    from calibrary import kernels as kernels
    from calibrary import maps as maps
    from calibrary import plots as plots
    from calibrary import study as study

__version__ = "0.1.0"

#: Rooms with dependencies of their own, opened when first entered.
_ROOMS = ("grouping", "kernels", "losses", "maps", "plots", "sklearn", "study")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        from importlib import import_module

        return import_module(f"calibrary.{name}")
    raise AttributeError(f"module 'calibrary' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS})
