# %% [markdown]
# # MAPIE
#
# *Compared version: 1.6.0.* Scores and Spiegelhalter's test agree with calibrary. The following calls give other numbers.
#
# ## `expected_calibration_error` has one bin too few
#
# The edges are `np.linspace(0, 1, num_bins)`: that many *edges*, and so one bin fewer than requested. The same holds for quantile bins and
# for the class-wise and top-label versions. The lines below write out MAPIE's rule.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)


# %%
def mapie_ece(y, c, num_bins):
    edges = np.linspace(0, 1, num_bins)
    bin_of = np.digitize(c, edges[1:-1], right=True)
    gaps = [abs(y[bin_of == b].mean() - c[bin_of == b].mean()) * (bin_of == b).mean() for b in np.unique(bin_of)]
    return sum(gaps)


theirs, ours = mapie_ece(y, c, 10), cal.expected_calibration_error(y, c, n_bins=10)
print(f"MAPIE, num_bins=10:     {theirs:.6f}")
print(f"calibrary, n_bins=10:   {ours:.6f}")
print(f"calibrary, n_bins=9:    {cal.expected_calibration_error(y, c, n_bins=9):.6f}")
assert np.isclose(theirs, cal.expected_calibration_error(y, c, n_bins=9))
assert not np.isclose(theirs, ours)

# %% [markdown]
# ## `kuiper_statistic` leaves out the start of the cumulative sum
#
# Kuiper's statistic is the range of the cumulative differences, which start at 0. MAPIE takes the range of the sums without that 0, which
# is smaller if all sums have the same sign. The paper that MAPIE cites and the inventors' code include the 0.

# %%
said, happened = np.array([0.2, 0.4, 0.6, 0.8]), np.array([1, 1, 1, 1])
walk = np.cumsum(happened - said) / 4
print(f"range without the start: {np.ptp(walk):.2f}")
print(f"range with the start:    {np.ptp(np.concatenate([[0.0], walk])):.2f}")
print(f"calibrary:               {cal.kuiper_calibration_error(happened, said):.2f}")
assert np.isclose(cal.kuiper_calibration_error(happened, said), 0.5)

# %% [markdown]
# Equal scores also make a difference: MAPIE adds them one by one, so that its p-value depends on the order of the rows in the file (0.79 or
# 0.9998 in the example of its own documentation). calibrary sums rows of equal score first.
#
# ## p-values below about 1e-9
#
# MAPIE computes one minus a distribution function. If the result is tiny, it consists of rounding errors and can even be negative. calibrary
# sums the tail itself; `result.log_pvalue` is accurate for still smaller p-values.
