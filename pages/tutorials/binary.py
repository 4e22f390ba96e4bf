# %% [markdown]
# # A binary risk model
#
# *Data: 569 breast tumors; P(malignant) of a naive Bayes model, held out by ten-fold cross-validation.* The question: can a doctor
# rely on the predicted risk?

# %%
import calibrary as cal
from calibrary import plots

y, p, about = cal.datasets.breast_cancer("naive_bayes")
print(about)
print(f"{len(y)} rows, {y.mean():.1%} malignant, mean prediction {p.mean():.1%}")

# %% [markdown]
# ## Look first
#
# Each point is a bin of predictions. On the diagonal the predicted and the observed frequency are equal. The vertical lines are 95%
# limits for the frequency; bins with few rows are faded.

# %%
plots.plot_reliability(y, p)

# %% [markdown]
# Nearly all predictions are close to 0 or 1, and there the model is wrong more often than it says. The mean is about right, so a
# check of the mean alone would have found nothing.
#
# ## One number, and how sure it is

# %%
ece = cal.interval("ece", y, p, rng=0)
chance = cal.expected_by_chance("ece", y, p, rng=0)
print(f"ECE {ece.value:.3f}, true error between {ece.low:.3f} and {ece.high:.3f}")
print(f"a calibrated model with these predictions shows {chance.expected_by_chance:.3f} on average")
print(f"p = {ece.pvalue}")

# %% [markdown]
# 0.058 is far above the 0.007 that is expected by chance, and the interval does not contain 0: the model is not calibrated.
#
# ## In which way is it wrong?
#
# Cox's regression of the outcome on the log odds of the prediction has a slope of 1 for a calibrated model. Below 1, predictions are
# too extreme: too close to 0 and 1. (Predictions of exactly 0 or 1 have no log odds and are left out; the warning says how many.)

# %%
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", cal.CalibrationWarning)
    cox = cal.compute("cis", y, p)
print(f"intercept {cox.intercept:.2f}, slope {cox.slope:.2f}")

# %% [markdown]
# ## What would help?

# %%
gain = cal.recalibration_gain(y, p)
print(gain.sentence)

# %% [markdown]
# A logistic regression on the same tumors needs no such repair:

# %%
_, q, _ = cal.datasets.breast_cancer("logistic")
other = cal.interval("ece", y, q, rng=0)
print(f"ECE {other.value:.3f}, true error between {other.low:.3f} and {other.high:.3f}, p = {other.pvalue}")

# %% [markdown]
# Its error is not 0 either, but not larger than expected by chance. That is why the interval starts at 0.
#
# **Next:** `cal.report(y, p).save("report.html")` writes all of this and more on one page, and
# [Recalibrating](recalibrating.md) shows how to apply the map.
