"""calibrary: can these predicted probabilities be believed?

Every probability-calibration metric, one library. Start with ``evaluate(y, p)`` for everything that applies,
``compute("ece", y, p)`` for one number, ``catalogue`` for what there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrary import datasets as datasets
from calibrary._errors import *
from calibrary.data import *
from calibrary.data import lens as lens
from calibrary.data.lens import *
from calibrary.data.predictions import *
from calibrary.diagnostics import *
from calibrary.evaluation import *
from calibrary.inference import *
from calibrary.lookup import *
from calibrary.maps.nadaraya_watson import *
from calibrary.maps.reliability import *
from calibrary.metrics.bins.combined import *
from calibrary.metrics.bins.debiased import *
from calibrary.metrics.bins.expected import *
from calibrary.metrics.bins.fit_on_test import *
from calibrary.metrics.bins.hosmer_lemeshow import *
from calibrary.metrics.bins.interval import *
from calibrary.metrics.bins.mean_split import *
from calibrary.metrics.bins.neighbours import *
from calibrary.metrics.bins.partition import *
from calibrary.metrics.bins.signed import *
from calibrary.metrics.bins.soft import *
from calibrary.metrics.bins.sweep import *
from calibrary.metrics.bins.t_cal import *
from calibrary.metrics.bins.test_based import *
from calibrary.metrics.bins.top_k import *
from calibrary.metrics.cumulative import *
from calibrary.metrics.curve.beta_test import *
from calibrary.metrics.curve.cox import *
from calibrary.metrics.curve.errors import *
from calibrary.metrics.curve.index import *
from calibrary.metrics.curve.neighbours import *
from calibrary.metrics.curve.reliability_map import *
from calibrary.metrics.curve.wald import *
from calibrary.metrics.declare import Entry, TestResult
from calibrary.metrics.detection import *
from calibrary.metrics.distance import *
from calibrary.metrics.facts import Correction
from calibrary.metrics.kernel.beta import *
from calibrary.metrics.kernel.embedded import *
from calibrary.metrics.kernel.lipschitz import *
from calibrary.metrics.kernel.mean_embedding import *
from calibrary.metrics.kernel.residual import *
from calibrary.metrics.kernel.smooth import *
from calibrary.metrics.kernel.squared import *
from calibrary.metrics.kernel.stein import *
from calibrary.metrics.kernel.vector import *
from calibrary.metrics.point.bias import *
from calibrary.metrics.point.brier import *
from calibrary.metrics.point.consistency import *
from calibrary.metrics.point.individual import *
from calibrary.metrics.point.logarithmic import *
from calibrary.metrics.point.losses import *
from calibrary.metrics.point.moments import *
from calibrary.metrics.point.ordinal import *
from calibrary.metrics.point.power import *
from calibrary.metrics.point.spiegelhalter import *
from calibrary.metrics.point.success import *
from calibrary.models.ecoc import *
from calibrary.models.leave_one_out import *
from calibrary.recommendation import *
from calibrary.reporting import *

if TYPE_CHECKING:
    from calibrary import grouping as grouping
    from calibrary import kernels as kernels
    from calibrary import maps as maps
    from calibrary import plots as plots
    from calibrary import study as study

from calibrary._version import __version__

#: Rooms with dependencies of their own, opened when first entered.
_ROOMS = ("grouping", "kernels", "losses", "maps", "plots", "sklearn", "study")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        from importlib import import_module

        return import_module(f"calibrary.{name}")
    raise AttributeError(f"module 'calibrary' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOMS})
