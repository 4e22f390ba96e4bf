# %% [markdown]
# # A detector in another city
#
# *Data: simulated crops of a pedestrian detector.* The model was validated in one city, where half of the crops show a pedestrian. It will
# be used in a city with fewer pedestrians, and it will be used in rain. There are no labels from that city.

# %%
import numpy as np
from scipy.special import expit

import calibrary as cal

rng = np.random.default_rng(4)


def crops(n, share):
    """Labels and what the detector says: the posterior where both kinds of crops are as frequent."""
    y = (rng.random(n) < share).astype(int)
    return y, expit(rng.normal(np.where(y == 1, 1.5, -1.5), np.sqrt(3.0)))


y, p = crops(2000, 0.5)
truth, elsewhere = crops(2000, 0.15)  # the labels of the other city: we look at them at the very end only
print(cal.interval("ece", y, p, n_resamples=199, rng=0))

# %% [markdown]
# ## Fewer pedestrians that look the same
#
# This is label shift: the shares of the classes changed, and crops of each class look as before. `under_shift` estimates the shares from the
# detections of the new city and weights the labelled crops by them. It tests the assumption on the confidences of both cities, and gives no
# estimate if they contradict it.

# %%
found = cal.under_shift("ece", y, p, elsewhere, n_resamples=199, rng=0)
print(found)

# %% [markdown]
# A detector that is calibrated at home is over-confident where pedestrians are rare. The labels of the other city, which we would not have,
# agree:

# %%
print(f"ECE with the labels of the other city: {cal.ece(truth, elsewhere):.3f}")

# %% [markdown]
# ## The remedy needs no labels either
#
# Under label shift Bayes' rule corrects calibrated probabilities exactly. `recalibration_gain(shares=...)` judges every map in the new
# population, and `PriorShift` is among them.

# %%
gain = cal.recalibration_gain(y, p, shares=found.shares, maps=["temperature", "platt"])
print(gain.sentence)
corrected = cal.recalibrate.PriorShift(found.shares).fit(y, p)(elsewhere)
print(f"ECE with the labels of the other city, corrected: {cal.ece(truth, corrected):.3f}")

# %% [markdown]
# ## Where the assumption is wrong
#
# At night empty crops look more like pedestrians. This is not label shift, and `under_shift` gives no estimate.

# %%
night = expit(np.where(truth == 1, 0.0, 1.2) + np.log(elsewhere / (1 - elsewhere)))
try:
    cal.under_shift("ece", y, p, night, n_resamples=199, rng=0)
except ValueError as error:
    print(error)

# %% [markdown]
# ## Rain, from light to heavy
#
# The data are the same 400 crops with rain of five strengths, with labels. Does the detector get worse, and is it the accuracy or the
# calibration that suffers? `units=` says that rows of one crop belong together.

# %%
strength = np.repeat(np.arange(5), 400)
crop = np.tile(np.arange(400), 5)
z = np.tile(rng.normal(0.0, 2.0, 400), 5)
label = (np.tile(rng.random(400), 5) < expit(z)).astype(int)
said = expit(z * 1.1**strength + 0.5 * strength * rng.normal(size=2000))
curve = cal.shift_curve("ece", label, said, strength, units=crop, n_resamples=199, rng=0)
print(curve)
curve.plot()

# %% [markdown]
# In a terminal:
#
# ```
# calibrary report city.csv --target other_city.csv --assume label -o page.html
# calibrary report rain.csv --shift strength --unit crop -o page.html
# calibrary report city.csv --prevalence 0.15 -o page.html
# ```
