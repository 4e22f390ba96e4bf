# %% [markdown]
# # calibre
#
# *Version looked at: 0.14.0.* ECE, MCE, sweep error, Brier score and the CORP decomposition agree with calibrary; input is checked well.
#
# ## `top_label_ece` and `classwise_ece` are not the ECE
#
# Under that name calibre gives the *root* of the *debiased squared* error with bins of equal mass.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
p = np.random.default_rng(0).dirichlet(np.ones(4) * 0.5, 2000)
label = (p.cumsum(axis=1) > np.random.default_rng(1).random((2000, 1)) ** 1.2).argmax(axis=1)
print(f"ECE of the predicted class:          {cal.expected_calibration_error(label, p):.6f}")
theirs = cal.debiased_squared_calibration_error(label, p, root=True, mass_rule="floor")
print(f"calibre's number, by our call:       {theirs:.6f}")

# %% [markdown]
# ## Debiased error: spare rows
#
# When N is not a multiple of the number of bins, some bins get one row more. The inventors give them to the first bins, and so does
# calibrary; calibre spreads them.

# %%
print(f"calibrary: {cal.debiased_squared_calibration_error(y[:1990], c[:1990]):.8f}")
print(f"calibre:   {cal.debiased_squared_calibration_error(y[:1990], c[:1990], mass_rule='floor'):.8f}")

# %% [markdown]
# Its smECE shares [relplot's](relplot.md) difference.
