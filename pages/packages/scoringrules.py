# %% [markdown]
# # scoringrules
#
# *Compared version: 0.11.0.* Brier and log scores agree with calibrary.
#
# ## `rps_score` counts classes from 1
#
# scoringrules does not check labels, so that labels that start at 0 give a wrong number without a warning. It also does not divide the sum
# by K - 1.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
p = np.random.default_rng(0).dirichlet(np.ones(4), 500)
label = (p.cumsum(axis=1) > np.random.default_rng(1).random((500, 1))).argmax(axis=1)


def rps(label, p):
    return np.mean(np.sum((p.cumsum(axis=1) - (np.arange(1, 5)[None, :] >= label[:, None])) ** 2, axis=1))


print(f"labels 0..3 as they are:  {rps(label, p):.6f}")
print(f"labels 1..4:              {rps(label + 1, p):.6f}")
print(f"calibrary, normalize=False: {cal.compute('rps', label, p, normalize=False):.6f}")
print(f"calibrary:                  {cal.compute('rps', label, p):.6f}")
assert np.isclose(rps(label + 1, p), cal.compute("rps", label, p, normalize=False))
assert np.isclose(rps(label + 1, p), 3 * cal.compute("rps", label, p))
