# %% [markdown]
# # uncertainty-calibration
#
# *Compared version: 0.1.4 (Kumar et al.).* ECE and class-wise ECE agree with calibrary.
#
# ## Bins of equal mass
#
# If N is not a multiple of the number of bins, some bins have one row more. In `get_ece_em` these are the first bins (`np.array_split`);
# calibrary spreads them over all bins.

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
# - `get_ece(debias=True)` draws random numbers; calibrary computes their expectation exactly.
# - The debiased squared error is set to 0 if it is negative, and its root is returned. But an unbiased estimate *must* sometimes be negative:

# %%
truth = (np.random.default_rng(3).random(2000) < c).astype(int)  # calibrated
unbiased = cal.debiased_squared_calibration_error(truth, c)
print(f"uncertainty-calibration: {max(unbiased, 0.0) ** 0.5:.6f}")
print(f"calibrary, squared:      {unbiased:.6f}")
assert unbiased < 0

# %% [markdown]
# ## Missing values
#
# uncertainty-calibration puts missing values into some bin and returns a number. calibrary refuses them and names the row.

# %%
try:
    cal.expected_calibration_error([0, 1], [0.3, np.nan])
except ValueError as refusal:
    print(refusal)
