# %% [markdown]
# # Many classes
#
# *Data: 1,797 handwritten digits; probabilities of a random forest for ten classes, held out by ten-fold cross-validation.* With ten
# probabilities for each row, "is it calibrated?" is more than one question. A [lens](../lenses.md) says which one is asked.

# %%
import calibrary as cal
from calibrary import plots

y, p, _ = cal.datasets.digits()
print(p.shape, f"accuracy {(p.argmax(axis=1) == y).mean():.1%}, mean confidence {p.max(axis=1).mean():.1%}")

# %% [markdown]
# ## The predicted class
#
# The default for several classes: is the model right as often as the probability of its predicted class says?

# %%
plots.plot_reliability(y, p)

# %% [markdown]
# The forest is *under*-confident: it says 55% and is right nearly always. Averaging many trees pulls probabilities to the middle.
#
# ## Through other lenses

# %%
for lens in ("top-label", "class-wise", "pairwise", "true-class"):
    print(f"{lens:12s} {cal.expected_calibration_error(y, p, lens=lens):.3f}")

# %% [markdown]
# The class-wise number is much smaller, although the model is the same: nine of ten probabilities in a row are near 0 and nearly right,
# and they are counted too. So compare numbers only through the same lens. `true-class` selects rows by their label, and even a calibrated
# model can show a large error through it.
#
# Which class is worst?

# %%
by_class = cal.expected_calibration_error(y, p, lens="class-wise", average=None)
for digit, error in sorted(enumerate(by_class), key=lambda pair: -pair[1])[:3]:
    print(f"digit {digit}: {error:.3f}")

# %% [markdown]
# ## All ten probabilities at once
#
# A kernel error uses the whole vector. Its test asks whether *anything* about it is wrong:

# %%
print(f"SKCE {cal.compute('skce_uq', y, p):.5f}, p = {cal.test('skce_uq', y, p, rng=0).pvalue:.3f}")

# %% [markdown]
# ## What would help?

# %%
print(cal.recalibration_gain(y, p).sentence)
