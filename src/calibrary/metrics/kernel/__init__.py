"""Kernel family (rows 50-59 and 61-63 of Table 2)."""

from calibrary.metrics.kernel.squared import *
from calibrary.metrics.kernel.stein import *
