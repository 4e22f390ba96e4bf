# %% [markdown]
# # scikit-learn
#
# *Compared version: 1.9.1.* Brier score, log loss and `calibration_curve` agree with calibrary. scikit-learn has no calibration error
# (one is under discussion).
#
# ## Log loss if an outcome with a predicted probability of exactly 0 happened
#
# The log loss is infinite. scikit-learn clips probabilities by the rounding error of the number type and gives a large finite number.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
import warnings

from sklearn.metrics import log_loss

said, happened = np.array([0.2, 0.0, 0.9]), np.array([0, 1, 1])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ours = cal.negative_log_likelihood(happened, said)
print(f"scikit-learn:              {log_loss(happened, said):.6f}")
print(f"calibrary:                 {ours}")
print(f"calibrary, eps=2.2e-16:    {cal.negative_log_likelihood(happened, said, eps=np.finfo(float).eps):.6f}")
assert np.isclose(log_loss(happened, said), cal.negative_log_likelihood(happened, said, eps=np.finfo(float).eps))

# %% [markdown]
# ## Input that scikit-learn guesses and calibrary refuses
#
# With one column of probabilities calibrary refuses labels 1 and 2, or two names, without `pos_label=`; with several it refuses rows that do
# not sum to 1. It takes `labels=` as the order of the columns and does not sort them.
