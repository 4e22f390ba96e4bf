# %% [markdown]
# # pycaleva
#
# *Version looked at: 0.8.2.*
#
# ## `ace` counts every bin the same
#
# Its bins lie between interpolated quantiles, and each counts 1/B whatever it holds. Hosmer-Lemeshow uses the same bins.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
ours = cal.adaptive_calibration_error(y, c)
theirs = cal.region_balanced_calibration_error(y, c, binning="mass", mass_rule="quantile", min_count=1)
print(f"calibrary's ace:               {ours:.8f}")
print(f"pycaleva's ace, by our call:   {theirs:.8f}")
print(
    f"Hosmer-Lemeshow: {cal.hosmer_lemeshow(y, c):.4f} (calibrary),"
    f" {cal.hosmer_lemeshow(y, c, mass_rule='quantile'):.4f} (pycaleva's bins)"
)
