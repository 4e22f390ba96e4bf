"""Kernels and the rules that choose their width.

There are three types, which must not be confused. *Density* kernels integrate to one and smooth curves (``KERNELS``).
*Pair* kernels are one at distance zero and compare predictions (``PAIR_KERNELS``). *Beta* and *Dirichlet* kernels are
densities on the interval and the simplex whose shape depends on their centre.
"""

from calibrary.base.moved import imported as _imported
from calibrary.kernels.bandwidth import (
    CURVE_RULES,
    CV_GRID,
    LOO_GRID,
    WEIGHT_TYPES,
    adaptive_bandwidth,
    beta_bandwidth,
    copies,
    curve_bandwidth,
    cv_bandwidth,
    effective_size,
    first_smallest,
    median_bandwidth,
    mix_n_match_bandwidth,
    normal_bandwidth,
    positive_width,
    smoothed_labels,
    spread,
)
from calibrary.kernels.density import (
    KERNELS,
    PAIR_KERNELS,
    Kernel,
    PairShape,
    beta_log_kernel,
    checked_pair_kernel,
    density_kernel,
    dirichlet_log_kernel,
    pair_values,
    reflected_gaussian,
    safe_log,
)

__all__ = _imported(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
