# %% [markdown]
# # calzone
#
# *Version looked at: calzone-tool 0.1.0.* Cox regression, Spiegelhalter's test and lowess agree with calibrary.
#
# ## The smallest confidence is left out
#
# All bins are open on the left, the first too. With equal-width bins a confidence of exactly 0 is in no bin; with bins of equal mass the row
# with the smallest confidence is in none, always.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
edges = [0, *np.quantile(c, np.linspace(0, 1, 16)[1:-1]), 1]
rest = c > c.min()
theirs = cal.expected_calibration_error(y[rest], c[rest], edges=edges)
ours = cal.expected_calibration_error(y, c, edges=edges)
print(f"calzone, 15 bins of equal mass: {theirs:.6f}")
print(f"the same edges, every row:      {ours:.6f}")
assert theirs != ours
zeros_c, zeros_y = np.array([0.0, 0.0, 0.3, 0.9]), np.array([1, 0, 0, 1])
left_out = zeros_c > 0
print(
    f"two confidences of 0: {cal.expected_calibration_error(zeros_y[left_out], zeros_c[left_out], n_bins=10):.3f}"
    f" (calzone), {cal.expected_calibration_error(zeros_y, zeros_c, n_bins=10):.3f} (calibrary)"
)

# %% [markdown]
# The Hosmer-Lemeshow statistic with equal-mass bins (`HL-C`) leaves out the same row.
