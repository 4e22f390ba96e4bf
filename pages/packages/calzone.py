# %% [markdown]
# # calzone
#
# *Compared version: calzone-tool 0.1.0.* Cox regression, Spiegelhalter's test and lowess agree with calibrary.
#
# ## The smallest confidence is left out
#
# All bins are open on the left, including the first. So with equal-width bins a confidence of exactly 0 is in no bin, and with bins of equal
# mass the row with the smallest confidence is never in a bin. The lines below compute the same as
# `reliability_diagram(y, two_columns, num_bins=15, class_to_plot=1, is_equal_freq=True)` followed by `calculate_ece_mce`.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)


# %%
def calzone_bins(y, c, edges):
    """Rows, outcomes and confidences of each bin: open on the left, also the first."""
    inside = (c > edges[:-1, None]) & (c <= edges[1:, None])
    return inside.sum(axis=1), inside @ y, inside @ c


def calzone_ece(y, c, edges):
    n, events, expected = calzone_bins(y, c, np.asarray(edges))
    return np.abs(events - expected).sum() / n.sum()


quantiles = np.quantile(c, np.linspace(0, 1, 16))
theirs = calzone_ece(y, c, quantiles)
edges = [0, *quantiles[1:-1], 1]
ours = cal.expected_calibration_error(y, c, edges=edges)
rest = c > c.min()
by_us = cal.expected_calibration_error(y[rest], c[rest], edges=edges)
print(f"calzone, 15 bins of equal mass: {theirs:.7f}")
print(f"calibrary, the same edges:      {ours:.7f}")
print(f"without the smallest, by us:    {by_us:.7f}")
assert np.isclose(theirs, by_us, rtol=1e-12)
assert not np.isclose(theirs, ours, rtol=1e-6)

# %% [markdown]
# Here two confidences are exactly 0, and one of them is wrong; there are ten bins of equal width:

# %%
zeros_c, zeros_y = np.array([0.0, 0.0, 0.3, 0.9]), np.array([1, 0, 0, 1])
theirs = calzone_ece(zeros_y, zeros_c, np.linspace(0, 1, 11))
ours = cal.expected_calibration_error(zeros_y, zeros_c, n_bins=10)
print(f"calzone:   {theirs:.3f}")
print(f"calibrary: {ours:.3f}")
assert theirs < ours

# %% [markdown]
# The Hosmer-Lemeshow statistic with equal-mass bins (`HL-C`) leaves out the same row.


# %%
def calzone_hosmer_lemeshow(y, c, n_bins=10):
    n, events, expected = calzone_bins(y, c, np.quantile(c, np.linspace(0, 1, n_bins + 1)))
    return np.sum((events - expected) ** 2 / (expected * (1 - expected / n)))


theirs, ours = calzone_hosmer_lemeshow(y, c), cal.hosmer_lemeshow(y, c)
tenths = [0, *np.quantile(c, np.linspace(0, 1, 11)[1:-1]), 1]
by_us = cal.hosmer_lemeshow(y[rest], c[rest], edges=tenths)
print(f"calzone:                     {theirs:.6f}")
print(f"calibrary:                   {ours:.6f}")
print(f"without the smallest, by us: {by_us:.6f}")
assert np.isclose(theirs, by_us, rtol=1e-9)
assert not np.isclose(theirs, ours, rtol=1e-6)
