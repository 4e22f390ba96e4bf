# %% [markdown]
# # Choosing a metric
#
# There are 136 metrics because there is more than one question. `recommend` ranks them for yours, and gives its reasons.

# %%
import calibrary as cal

for found in cal.recommend("binary", "measure", n=500):
    print(f"{cal.catalogue[found.id].name} ({found.id}): {'; '.join(found.reasons)}")

# %% [markdown]
# ## The same data, another goal

# %%
for goal in ("measure", "compare", "test", "explain", "train"):
    print(f"{goal:8s} {', '.join(cal.catalogue[found.id].name for found in cal.recommend('binary', goal, n=500))}")

# %% [markdown]
# - **measure**: how large is the error of the probabilities?
# - **compare**: which of several models is best? Only proper scores answer this, because a calibration error is smallest for a model that
#   always predicts the base rate.
# - **test**: is there any miscalibration at all?
# - **explain**: in which direction and where are the probabilities wrong?
# - **train**: which loss with a gradient can be used in training?
#
# ## The value expected by chance at your sample size
#
# Errors such as the ECE are not 0 in a sample, even for a calibrated model. How large they are by chance depends on the metric and on the
# number of rows. Here are four metrics on calibrated predictions, whose true error is 0: the expected calibration error (`ece`), the largest
# gap of a bin (`mce`), the smooth error of residuals (`smece`) and the debiased error (`ece_db`).

# %%
import numpy as np

rng = np.random.default_rng(0)
print("rows    " + "".join(f"{name:>10s}" for name in ("ece", "mce", "smece", "ece_db")))
for n in (200, 2000, 20000):
    c = rng.beta(0.8, 0.8, n)
    y = (rng.random(n) < c).astype(int)
    print(f"{n:<8d}" + "".join(f"{cal.compute(name, y, c):10.3f}" for name in ("ece", "mce", "smece", "ece_db")))

# %% [markdown]
# The largest gap of a bin (MCE) is several times as large as the mean gap (ECE), and both shrink slowly. So never compare an error with
# 0, or errors of two samples of different size. `cal.expected_by_chance` gives the value to compare it with.
#
# ## How many rows do I need?

# %%
rows = cal.sample_size("ece", 0.05, n_resamples=99, rng=0)
print(f"to detect an ECE of 0.05 in 4 of 5 samples: about {int(rows)} rows")

# %% [markdown]
# The [catalogue](../catalogue.md) has a page for each metric with its meaning, use, pitfalls and errata.
