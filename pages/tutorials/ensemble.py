# %% [markdown]
# # An ensemble that claims too little
#
# *Data: 4,000 simulated patients, five members of a deep ensemble, and two readers for each scan.* The members agree with each other, so
# the ensemble looks sure of its probabilities. Is it right to be?

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(4)
n, m = 4000, 5
site = rng.integers(0, 2, n)  # the ensemble does not know it
shade = rng.normal(0.0, 1.2, n)
mean = 1 / (1 + np.exp(-shade))
truth = 1 / (1 + np.exp(-(shade + np.where(site == 1, 0.9, -0.9))))
p = rng.beta(40 * mean[:, None], 40 * (1 - mean[:, None]), (n, m))
y = (rng.random((n, 2)) < truth[:, None]).astype(int)
print(f"members of the first patient: {np.round(p[0], 2)}; true probability {truth[0]:.2f}")

# %% [markdown]
# ## Is the mean calibrated?
#
# The mean of the members is nearly calibrated, and a report of the mean shows little error. An ensemble also has a spread, which says how
# uncertain the probability of this patient is. So pass all members.

# %%
found = cal.ensemble(y, p, rng=0)
print(found.mean.sentence)

# %% [markdown]
# ## Claimed and observed spread
#
# Two labels of one patient agree more often than labels of two patients with the same prediction, and the more so the more the true
# probabilities of such patients differ. So pairs of labels estimate the true variance; the spread of the members is the claimed variance.

# %%
print(found.spread.sentence)

# %%
found.plot()

# %% [markdown]
# The members are taken as draws of a posterior (`members="draws"`): if the posterior were right, the true probability would be one more draw.
# Each member is left out in turn, and the others are compared with the labels and with labels drawn from the member that was left out. Random
# signs give the exact distribution of the difference. The test takes into account that the mean of few draws has an error of its own.
#
# ## One label for each patient
#
# The spread cannot be estimated from one label per row, and the result says so.

# %%
print(cal.ensemble(y[:, 0], p, rng=0).spread.sentence)

# %% [markdown]
# Features that the ensemble did not use, here the site, give a lower bound of the spread.

# %%
bound = cal.ensemble(y[:, 0], p, features=site, rng=0).spread
print(bound.sentence)

# %% [markdown]
# ## Uses of the spread
#
# The total uncertainty has two parts: the randomness of outcomes, and the disagreement of members. The second part should be higher where
# the ensemble is wrong, and on scans that show no patient at all.

# %%
print(found.decomposition.sentence)

# %%
noise = rng.beta(3, 3, (300, m))  # scans of an empty table
labels = np.concatenate([y[:, 0].astype(object), np.full(300, None)])
outside = cal.ensemble(labels, np.concatenate([p, noise]), rng=0)
print(outside.outside.sentence)
print(outside.decomposition.sentence)

# %% [markdown]
# The same on the command line: `calibrary ensemble scans.csv --label reader1,reader2 --members p1 p2 p3 p4 p5`, or `--members p.npy` for an
# array of rows, members and classes.
