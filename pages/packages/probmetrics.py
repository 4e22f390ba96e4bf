# %% [markdown]
# # probmetrics
#
# *Compared version: 1.3.0.* Most numbers agree in single precision.
#
# ## Brier score and other sums of two columns
#
# probmetrics takes two columns and sums over both. For two classes that is twice the usual number.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
two = np.column_stack([1 - c, c])
theirs = np.mean(np.sum((two - np.eye(2)[y]) ** 2, axis=1))
print(f"probmetrics: {theirs:.6f}")
print(f"calibrary:   {cal.brier_score(y, c):.6f}")
print(f"calibrary, scale='sum': {cal.brier_score(y, c, scale='sum'):.6f}")
assert np.isclose(theirs, cal.brier_score(y, c, scale="sum"))
assert np.isclose(theirs, 2 * cal.brier_score(y, c))

# %% [markdown]
# ## Lp errors of two classes
#
# The same happens with Lp calibration errors of two columns: both columns have the same gaps, so that for p = 1 the sum is twice that of
# P(class 1). Use one column, or divide by 2.
#
# ## `kuiper` of several classes
#
# probmetrics takes the class number 0, 1, 2, ... as the outcome and column 1 as its probability. The result can be larger than 1, which is
# not possible for a Kuiper error of probabilities:

# %%
p = np.random.default_rng(0).dirichlet(np.ones(4), 2000)
label = (p.cumsum(axis=1) > np.random.default_rng(1).random((2000, 1))).argmax(axis=1)  # calibrated
order = np.argsort(p[:, 1])
walk = np.concatenate([[0.0], np.cumsum((label - p[:, 1])[order]) / 2000])
print(f"probmetrics: {np.ptp(walk):.3f}")
print(f"calibrary:   {cal.kuiper_calibration_error(label, p):.3f} (predicted class)")
assert np.ptp(walk) > 1
