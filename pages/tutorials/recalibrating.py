# %% [markdown]
# # Recalibrating
#
# *Data: probabilities of a random forest for 1,797 handwritten digits.* A map from stated to better probabilities can be fitted to a few
# hundred rows. Two questions have to be answered: whether the map helps, and how to measure this on rows to which it was not fitted.

# %%
import calibrary as cal
from calibrary import plots

y, p, _ = cal.datasets.digits()

# %% [markdown]
# ## Would it help?
#
# Every map is fitted to nine tenths of the rows and judged on the last tenth. A map is recommended only if its gain is larger than two
# standard errors.

# %%
gain = cal.recalibration_gain(y, p)
print(gain)

# %% [markdown]
# ## Fit the map

# %%
recalibrate = cal.Recalibrator().fit(p[::2], y[::2])
after = recalibrate.transform(p[1::2])
print(recalibrate.map_)
for words, q in (("before", p[1::2]), ("after", after)):
    found = cal.interval("ece", y[1::2], q, rng=0)
    print(f"{words:7s} ECE {found.value:.3f}, true error between {found.low:.3f} and {found.high:.3f}")

# %%
plots.plot_reliability({"before": (y[1::2], p[1::2]), "after": (y[1::2], after)})

# %% [markdown]
# ## Never judge a map on the rows it was fitted to
#
# `judge` refuses, also after the map was saved and loaded:

# %%
try:
    recalibrate.judge(p[::2], y[::2])
except ValueError as refusal:
    print(refusal)
judged = recalibrate.judge(p[1::2], y[1::2])
print(f"log loss lower by {judged.gain:.3f} (se {judged.se:.3f}): worth it: {judged.worth}")

# %% [markdown]
# ## Save the map
#
# The map is JSON: it can be read in a code review, and loading it never runs code.

# %%
recalibrate.save("map.json")
print(open("map.json").read()[:300])

# %% [markdown]
# On the command line the map is fitted to one file and applied to another. The new probabilities are in a column of their own, named as the
# old one followed by `_recalibrated`:
#
# ```
# calibrary recalibrate fit validation.csv --label outcome --prob risk -o map.json
# calibrary recalibrate apply map.json new.csv -o recalibrated.csv
# ```
