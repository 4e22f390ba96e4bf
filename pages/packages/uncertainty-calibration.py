# %% [markdown]
# # uncertainty-calibration
#
# *Version looked at: 0.1.4 (Kumar et al.).* ECE and class-wise ECE agree with calibrary.
#
# ## Bins of equal mass
#
# `get_ece_em` gives spare rows to the first bins (`np.array_split`); calibrary spreads them.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
parts = np.array_split(np.argsort(c, kind="stable"), 15)
theirs = sum(abs(y[rows].mean() - c[rows].mean()) * len(rows) for rows in parts) / len(c)
print(f"array_split: {theirs:.8f}")
print(f"calibrary:   {cal.adaptive_calibration_error(y, c):.8f}")
print(f"calibrary, mass_rule='split': {cal.adaptive_calibration_error(y, c, mass_rule='split'):.8f}")
assert np.isclose(theirs, cal.adaptive_calibration_error(y, c, mass_rule="split"))

# %% [markdown]
# ## Debiased errors
#
# - `get_ece(debias=True)` draws random numbers; calibrary computes the expectation they scatter around.
# - The debiased squared error is cut to 0 when it is negative, and its root is returned. An unbiased estimate *must* sometimes be negative:

# %%
truth = (np.random.default_rng(3).random(2000) < c).astype(int)  # calibrated
unbiased = cal.debiased_squared_calibration_error(truth, c)
print(f"uncertainty-calibration: {max(unbiased, 0.0) ** 0.5:.6f}")
print(f"calibrary, squared:      {unbiased:.6f}")
assert unbiased < 0

# %% [markdown]
# ## Missing values
#
# They go into some bin and a number comes back. calibrary refuses and names the row.

# %%
try:
    cal.expected_calibration_error([0, 1], [0.3, np.nan])
except ValueError as refusal:
    print(refusal)
