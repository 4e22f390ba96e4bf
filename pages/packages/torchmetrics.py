# %% [markdown]
# # torchmetrics (and torch-uncertainty)
#
# *Compared versions: torchmetrics 1.9.0, torch-uncertainty 0.13.0.* For most confidences `calibration_error` gives calibrary's ECE in
# single precision. Three things differ.
#
# ## A confidence of exactly 1
#
# Such a confidence falls into a bin of its own after the last edge, where no other confidence can cancel its error. Saturated networks do
# give exactly 1.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
small_c, small_y = np.array([0.95, 1.0]), np.array([1, 0])


def torchmetrics_ece(y, c, n_bins):
    bin_of = np.searchsorted(np.linspace(0, 1, n_bins + 1), c, side="right") - 1  # c = 1: one bin too far
    return sum(abs(y[bin_of == b].mean() - c[bin_of == b].mean()) * (bin_of == b).mean() for b in np.unique(bin_of))


theirs = torchmetrics_ece(small_y, small_c, 10)
ours = cal.expected_calibration_error(small_y, small_c, n_bins=10)
print(f"torchmetrics: {theirs:.3f}")
print(f"calibrary:    {ours:.3f}")
assert np.isclose(theirs, 0.525)
assert np.isclose(ours, 0.475)
assert np.isclose(torchmetrics_ece(y, c, 15), cal.expected_calibration_error(y, c))  # no confidence of exactly 1 here

# %% [markdown]
# ## Two classes: which probability?
#
# `task="binary"` takes P(class 1), as calibrary does by default. `task="multiclass"` with two classes takes the probability of the
# *predicted* class. Both are called ECE, and they differ:

# %%
print(f"P(class 1):          {cal.expected_calibration_error(y, c):.6f}")
print(f"the predicted class: {cal.expected_calibration_error(y, c, lens='top-label'):.6f}")

# %% [markdown]
# [Binary or top-label?](../binary-or-top-label.md) explains which one you want.
#
# ## One value outside 0 to 1
#
# If a single value is outside, torchmetrics applies a sigmoid to *all* values without a warning and returns a number. calibrary refuses the
# input:

# %%
try:
    cal.expected_calibration_error([0, 1], [0.3, 1.2])
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# torchmetrics also keeps every prediction in memory until `compute()`; [the Lightning example](../integrations.md) keeps a small table.
