# %% [markdown]
# # calibre
#
# *Compared version: 0.14.0.* ECE, MCE, sweep error, Brier score and the CORP decomposition agree with calibrary; calibre checks its input well.
#
# ## `top_label_ece` and `classwise_ece` are not the ECE
#
# Under these names calibre gives the *root* of the *debiased squared* error with bins of equal mass. The lines below compute the same as
# `calibre.top_label_ece(label, p, n_bins=15)`, and give the same number.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)


# %%
def calibre_debiased(y, c, n_bins=15):
    """The squared error of bins of equal mass, less the variance of each bin's mean label."""
    rank = np.argsort(np.argsort(c, kind="stable"))
    bin_of = rank * n_bins // len(c)
    n, events, expected = [np.bincount(bin_of, weights=v) for v in (np.ones(len(c)), y, c)]
    label, confidence = events / n, expected / n
    return np.sum(n / len(c) * ((confidence - label) ** 2 - label * (1 - label) / (n - 1)))


p = np.random.default_rng(0).dirichlet(np.ones(4) * 0.5, 2000)
truth = np.where(p.max(axis=1, keepdims=True) > 0.8, 0.8 * p + 0.05, p)  # wrong only where it is most certain
label = (truth.cumsum(axis=1) > np.random.default_rng(1).random((2000, 1))).argmax(axis=1)
theirs = np.sqrt(calibre_debiased(p.argmax(axis=1) == label, p.max(axis=1)))
ours = cal.expected_calibration_error(label, p)
by_us = cal.debiased_squared_calibration_error(label, p, root=True, mass_rule="floor")
print(f"calibre's top_label_ece:         {theirs:.6f}")
print(f"ECE of the predicted class:      {ours:.6f}")
print(f"calibre's number, by our call:   {by_us:.6f}")
assert np.isclose(theirs, by_us, rtol=1e-9)
assert not np.isclose(theirs, ours, rtol=1e-2)

# %% [markdown]
# ## Debiased error: rows that do not divide evenly
#
# If N is not a multiple of the number of bins, some bins have one row more than others. In the inventors' code and in calibrary these are
# the first bins; calibre (`calibre.debiased_calibration_error(y, c, squared=True)`) spreads them over all bins.

# %%
y, c = y[:1990], c[:1990]
theirs, ours = calibre_debiased(y, c), cal.debiased_squared_calibration_error(y, c)
by_us = cal.debiased_squared_calibration_error(y, c, mass_rule="floor")
print(f"calibre:                       {theirs:.8f}")
print(f"calibrary:                     {ours:.8f}")
print(f"calibre's number, by our call: {by_us:.8f}")
assert np.isclose(theirs, by_us, rtol=1e-9)
assert not np.isclose(theirs, ours, rtol=1e-6)

# %% [markdown]
# Its smECE differs from ours as [relplot's](relplot.md) does.
