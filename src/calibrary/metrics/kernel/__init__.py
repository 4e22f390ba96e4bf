"""Kernel family (rows 50-59 and 61-63 of Table 2)."""

from calibrary.maps.nadaraya_watson import *
from calibrary.metrics.kernel.beta import *
from calibrary.metrics.kernel.embedded import *
from calibrary.metrics.kernel.lipschitz import *
from calibrary.metrics.kernel.mean_embedding import *
from calibrary.metrics.kernel.residual import *
from calibrary.metrics.kernel.smooth import *
from calibrary.metrics.kernel.squared import *
from calibrary.metrics.kernel.stein import *
from calibrary.metrics.kernel.vector import *
