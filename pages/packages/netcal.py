# %% [markdown]
# # netcal
#
# *Compared version: 1.4.0.* `ECE` and `MCE` of P(class 1) agree with calibrary, also if a confidence is exactly 0 or 1.
#
# ## `MMCE` of one column mixes two questions
#
# With one column of probabilities, netcal compares P(class 1) with "the prediction thresholded at 0.5 was right". A prediction of 0.1 that
# is right (the event did not happen) then counts as an error of 0.9. So the metric is far from 0 even for a perfectly calibrated model.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
truth = (np.random.default_rng(1).random(2000) < c).astype(int)  # outcomes drawn from the predictions: calibrated


def mmce(outcome, c, width=0.4):
    kernel = np.exp(-np.abs(c[:, None] - c[None, :]) / width)
    r = outcome - c
    return np.sqrt(r @ kernel @ r) / len(c)


right = ((c > 0.5) == truth).astype(int)
print(f"netcal, one column, calibrated model: {mmce(right, c):.4f}")
print(f"calibrary, calibrated model:          {cal.maximum_mean_calibration_error(truth, c):.4f}")
assert np.isclose(mmce(truth, c), cal.maximum_mean_calibration_error(truth, c), rtol=1e-6)
assert mmce(right, c) > 5 * mmce(truth, c)

# %% [markdown]
# With two columns netcal is right and uses the predicted class, as calibrary does with `lens="top-label"`.
#
# ## `ACE` is another metric
#
# In netcal (`ACE(15).measure(c, y)`) ACE is the plain mean of the bins' gaps. In calibrary, and in the paper that most people mean (Nixon et
# al.), `ace` has bins of equal mass.

# %%
bin_of = np.minimum((c * 15).astype(int), 14)
gaps = [abs(y[bin_of == b].mean() - c[bin_of == b].mean()) for b in np.unique(bin_of)]
theirs, ours = np.mean(gaps), cal.adaptive_calibration_error(y, c)
by_us = cal.region_balanced_calibration_error(y, c, min_count=1)
print(f"netcal's ACE:              {theirs:.6f}")
print(f"adaptive, our ace:         {ours:.6f}")
print(f"their number, by our call: {by_us:.6f}")
assert np.isclose(theirs, by_us, rtol=1e-12)
assert not np.isclose(theirs, ours, rtol=1e-3)

# %% [markdown]
# ## Bins of equal mass
#
# `ECE(15, equal_intervals=False)` cuts at interpolated quantiles and closes bins on the left. calibrary puts N/B rows in each bin. The same
# edges give the same number:

# %%
inner = np.quantile(c, np.linspace(0, 1, 16)[1:-1])
bin_of = np.searchsorted(inner, c, side="right")
theirs = sum(abs(np.sum(y[bin_of == b] - c[bin_of == b])) for b in range(15)) / len(c)
ours = cal.adaptive_calibration_error(y, c)
by_us = cal.expected_calibration_error(y, c, edges=[0, *inner, 1], closed="left")
print(f"netcal:                    {theirs:.6f}")
print(f"calibrary:                 {ours:.6f}")
print(f"their number, by our call: {by_us:.6f}")
assert np.isclose(theirs, by_us, rtol=1e-12)
assert not np.isclose(theirs, ours, rtol=1e-6)
