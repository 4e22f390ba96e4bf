"""calibrary: can these predicted probabilities be believed?

Every probability-calibration metric, one library. Start with ``evaluate(y, p)`` for everything that applies,
``compute("ece", y, p)`` for one number, ``catalogue`` for what there is.
"""

from __future__ import annotations

from calibrary import datasets, lens
from calibrary.catalogue import Correction, Entry, TestResult, catalogue, compute, test
from calibrary.detection import *
from calibrary.errors import CalibrationWarning, UnknownMetricError
from calibrary.evaluate import Evaluation, evaluate
from calibrary.lens import Lens, code_matrix
from calibrary.metrics.bins import *
from calibrary.metrics.cumulative import *
from calibrary.metrics.detection import *
from calibrary.metrics.kernel import *
from calibrary.metrics.point import *
from calibrary.predictions import Predictions, predictions, sigmoid, softmax
from calibrary.recommend import recommend
from calibrary.report import Report, report

# isort: split
# after the families, whose star imports also bring the names of their modules (interval)
from calibrary.inference import *

__version__ = "0.1.0"
