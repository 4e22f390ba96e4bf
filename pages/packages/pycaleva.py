# %% [markdown]
# # pycaleva
#
# *Compared version: 0.8.2.*
#
# ## `ace` counts every bin the same
#
# Its bins lie between interpolated quantiles, and each of the B bins has the weight 1/B, however many rows it contains. The lines below
# compute the same as the package; its own call, `CalibrationEvaluator(y, c, outsample=True, n_groups=15).ace`, gives the same number.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)


# %%
def grouped(y, c, n_groups):
    """Rows, outcomes and confidences of pycaleva's groups: pandas.qcut, closed on the right."""
    inner = np.quantile(c, np.linspace(0, 1, n_groups + 1)[1:-1])
    group = np.searchsorted(inner, c, side="left")
    return [np.bincount(group, weights=v) for v in (np.ones(len(c)), y, c)]


def pycaleva_ace(y, c, n_groups=15):
    n, events, expected = grouped(y, c, n_groups)
    return np.mean(np.abs(events / n - expected / n))


ours = cal.adaptive_calibration_error(y, c)
theirs = pycaleva_ace(y, c)
by_us = cal.region_balanced_calibration_error(y, c, binning="mass", mass_rule="quantile", min_count=1)
print(f"pycaleva's ace:            {theirs:.8f}")
print(f"calibrary's ace:           {ours:.8f}")
print(f"their number, by our call: {by_us:.8f}")
assert np.isclose(theirs, by_us, rtol=1e-12)
assert not np.isclose(theirs, ours, rtol=1e-6)

# %% [markdown]
# The Hosmer-Lemeshow test of pycaleva uses groups between interpolated quantiles too. Its call is
# `CalibrationEvaluator(y, c, outsample=True, n_groups=10).hosmerlemeshow(verbose=False).statistic`.


# %%
def pycaleva_hosmer_lemeshow(y, c, n_groups=10):
    n, events, expected = grouped(y, c, n_groups)
    return np.sum((events - expected) ** 2 / (expected * (1 - expected / n)))


y, c = y[:1993], c[:1993]  # no multiple of ten, so that the groups differ
theirs, ours = pycaleva_hosmer_lemeshow(y, c), cal.hosmer_lemeshow(y, c)
by_us = cal.hosmer_lemeshow(y, c, mass_rule="quantile")
print(f"pycaleva's Hosmer-Lemeshow: {theirs:.6f}")
print(f"calibrary's:                {ours:.6f}")
print(f"their number, by our call:  {by_us:.6f}")
assert np.isclose(theirs, by_us, rtol=1e-12)
assert not np.isclose(theirs, ours, rtol=1e-6)
