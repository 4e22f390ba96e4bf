# %% [markdown]
# # yardstick (R)
#
# *Compared functions: `brier_class` and `ranked_prob_score` with case weights.* Without weights the numbers agree with calibrary.
#
# ## Case weights pass through a softmax
#
# yardstick replaces weights w by exp(w)/sum(exp(w)). So a row of weight 0 still counts, and weights of 1 and 2 are used in the ratio 1 to 2.7.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
w = np.array([0, 1, 2, 1, 0, 3])
said, happened = np.array([0.9, 0.2, 0.7, 0.4, 0.1, 0.8]), np.array([0, 0, 1, 1, 1, 1])
soft = np.exp(w) / np.exp(w).sum()
print(f"softmax of the weights: {np.sum(soft * (said - happened) ** 2):.6f}")
print(f"calibrary:              {cal.brier_score(happened, said, sample_weight=w):.6f}")
print(f"rows written out:       {cal.brier_score(np.repeat(happened, w), np.repeat(said, w)):.6f}")
assert np.isclose(
    cal.brier_score(happened, said, sample_weight=w), cal.brier_score(np.repeat(happened, w), np.repeat(said, w))
)
