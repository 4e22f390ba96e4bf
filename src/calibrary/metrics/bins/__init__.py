"""Bin family (rows 23-49 of Table 2): cases are put in groups, and labels compared with confidences in each."""

from __future__ import annotations

from calibrary.metrics.bins.combined import *
from calibrary.metrics.bins.debiased import *
from calibrary.metrics.bins.expected import *
from calibrary.metrics.bins.fit_on_test import *
from calibrary.metrics.bins.hosmer_lemeshow import *
from calibrary.metrics.bins.interval import *
from calibrary.metrics.bins.mean_split import *
from calibrary.metrics.bins.neighbours import *
from calibrary.metrics.bins.partition import *
from calibrary.metrics.bins.reliability import *
from calibrary.metrics.bins.signed import *
from calibrary.metrics.bins.soft import *
from calibrary.metrics.bins.sweep import *
from calibrary.metrics.bins.t_cal import *
from calibrary.metrics.bins.test_based import *
from calibrary.metrics.bins.top_k import *
