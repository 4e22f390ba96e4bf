"""Tables and curves that are no single number: reliability bins, cumulative differences, decompositions, maps."""

from __future__ import annotations

from calibrary.diagnostics.binomial import *
from calibrary.diagnostics.coverage import *
from calibrary.diagnostics.cumulative import *
from calibrary.diagnostics.decisions import *
from calibrary.diagnostics.decomposition import *
from calibrary.diagnostics.detection_map import *
from calibrary.diagnostics.detection_threshold import *
from calibrary.diagnostics.direction import *
from calibrary.diagnostics.honest_band import *
from calibrary.diagnostics.neighbors import *
from calibrary.diagnostics.ratio import *
from calibrary.diagnostics.reliability import *
