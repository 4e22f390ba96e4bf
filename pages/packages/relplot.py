# %% [markdown]
# # relplot (and calibre's and probmetrics' smECE)
#
# *Compared versions: relplot 1.0.3, calibre 0.14.0.* `binnedECE` agrees with calibrary except for a confidence of exactly 1, which gets a bin
# of its own ([as in torchmetrics](torchmetrics.md)).
#
# ## smECE
#
# smECE smooths residuals with a Gaussian kernel that is reflected at 0 and 1. relplot cuts the kernel at a distance of 0.5 and treats the
# end points of its grid differently. This matters if errors, and with them the width of the kernel, are large, and if most confidences lie
# at 0 and 1. The lines below write out the definition:

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
x = np.random.default_rng(0).random(200)
flipped = (np.random.default_rng(1).random(200) < 1 - x).astype(int)  # says 90% where 10% is true


def reflected(t, s, sigma):
    images = np.arange(-3, 4)[:, None, None]
    near = np.exp(-0.5 * ((t[:, None] - s[None, :] - 2 * images) / sigma) ** 2)
    far = np.exp(-0.5 * ((t[:, None] + s[None, :] - 2 * images) / sigma) ** 2)
    return (near + far).sum(axis=0) / (sigma * np.sqrt(2 * np.pi))


def smooth_error(y, c, sigma, n=1001):
    t = np.linspace(0, 1, n)
    return np.trapezoid(np.abs(reflected(t, c, sigma) @ (y - c)) / len(c), t)


low, high = 0.001, 1.0
for _ in range(16):  # the width at which the error equals the width
    middle = (low + high) / 2
    low, high = (middle, high) if smooth_error(flipped, x, middle, 201) > middle else (low, middle)
print(f"definition: {smooth_error(flipped, x, low):.5f}")
print(f"calibrary:  {cal.smooth_calibration_error_residual(flipped, x):.5f}")
assert np.isclose(smooth_error(flipped, x, low), cal.smooth_calibration_error_residual(flipped, x), rtol=2e-3)

# %% [markdown]
# On such data relplot and calibre give a value that is several percent larger (0.353 where the definition gives 0.306, in calibre's own test
# data).
#
# The next model is good and has most of its confidences near 0 and 1, where the end points of the grid matter most:

# %%
y, p, _ = cal.datasets.breast_cancer("logistic")
low, high = 0.001, 1.0
for _ in range(12):
    middle = (low + high) / 2
    low, high = (middle, high) if smooth_error(y, p, middle) > middle else (low, middle)
print(f"definition: {smooth_error(y, p, low):.4f}")
print(f"calibrary:  {cal.smooth_calibration_error_residual(y, p):.4f}")

# %% [markdown]
# relplot gives 0.0211 here, 12% more.
#
# ## `laplace_calibration_approx` and `intCE_rand`
#
# Both are random estimates without a seed, so that every call gives another number. calibrary computes their expectation exactly (the
# Laplace kernel calibration error `lkce` and the surrogate interval calibration error `sice`).
