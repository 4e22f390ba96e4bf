"""Fitted-curve family (rows 60, 64-72 of Table 2): fit a calibration map, then summarise it."""

from __future__ import annotations

from calibrary.metrics.curve.beta_test import *
from calibrary.metrics.curve.cox import *
from calibrary.metrics.curve.errors import *
from calibrary.metrics.curve.index import *
from calibrary.metrics.curve.neighbours import *
from calibrary.metrics.curve.reliability_map import *
from calibrary.metrics.curve.wald import *
