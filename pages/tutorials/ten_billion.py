# %% [markdown]
# # Ten billion rows
#
# *Data: simulated here, ten billion predictions as counts.* Calibration needs little of each prediction: the narrow interval of confidence
# (the *cell*) in which it lies, and its outcome. A `State` is a table of counts by cell and outcome. States of parts add up to the state of
# the whole, in any order, so that a cluster, a database or a loop over files can compute them.

# %%
import numpy as np

import calibrary as cal


def part(seed, n=200_000):
    """What one file of a large folder might hold."""
    rng = np.random.default_rng(seed)
    c = rng.beta(0.6, 1.4, n)
    odds = 0.9 * np.log(c / (1 - c))
    return (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int), c


state = cal.scale.State()
for seed in range(5):
    state.update(*part(seed))
print(state)

# %% [markdown]
# ## Use a state like predictions
#
# Metrics that depend only on sums in bins are exact; for the others calibrary gives a bound on the error.

# %%
y, c = (np.concatenate(x) for x in zip(*(part(seed) for seed in range(5)), strict=True))
for name in ("ece", "bs", "smece", "ecce_mad"):
    words = f"{cal.catalogue[name].name} ({name})"
    print(f"{words:45s} state {cal.compute(name, state):.8f}, rows {cal.compute(name, y, c):.8f}")

# %% [markdown]
# ## From a million to ten billion
#
# A row of weight 2 counts as two copies, so 200,000 rows of weight 50,000 stand for 10^10 rows. The cost does not change: a state has the
# same size for any number of rows.

# %%
rows, p = part(99)
big = cal.scale.State()
big.update(rows, p, sample_weight=np.full(len(p), 50_000))
print(big)
found = cal.interval("ece", big, rng=0, n_resamples=199)
print(f"ECE {found.value:.6f}, true error between {found.low:.6f} and {found.high:.6f}")

# %% [markdown]
# With so many rows every small error is significant, and a p-value is not informative: report the size of the error.
#
# ## Where the rows really are
#
# - Files: `cal.scale.scan("folder/", label="y", prob="p")`, or `calibrary scale scan` on the command line.
# - A database or Spark: `calibrary scale sql --table t --label y --prob p` prints one query; only the small table is transferred.
# - Dask and PyTorch ranks: [More rows than memory](../scale.md).
