# %% [markdown]
# # Comparing two models
#
# *Data: a naive Bayes model and a logistic regression on the same 569 tumors.* Which one should be used, and is the difference more than
# chance?

# %%
import calibrary as cal
from calibrary import plots

y, bayes, _ = cal.datasets.breast_cancer("naive_bayes")
_, logistic, _ = cal.datasets.breast_cancer("logistic")

# %% [markdown]
# ## To choose a model, use a proper score
#
# The Brier score rewards both calibration and discrimination between ill and healthy. Both models predict the same rows, so the rows are
# resampled for both together.

# %%
found = cal.compare("bs", y, bayes, logistic, rng=0)
print(f"Brier {found.value_a:.4f} and {found.value_b:.4f}")
print(f"difference {found.value:.4f} [{found.low:.4f}, {found.high:.4f}], p = {found.pvalue:.3f}")

# %% [markdown]
# ## Is one better calibrated?

# %%
found = cal.compare("ece", y, bayes, logistic, rng=0)
print(f"ECE {found.value_a:.4f} and {found.value_b:.4f}")
print(f"difference of the true errors between {found.low:.4f} and {found.high:.4f}")

# %% [markdown]
# The estimate of the ECE is too high, and by a different amount for each model, so that a plain bootstrap of the difference is wrong. The
# default contains the differences of all pairs of true errors under which the two estimates and their difference are not unusual; its
# interval is wider, and it covers the difference.
#
# ## Where does the difference come from?
#
# A score splits into miscalibration, which recalibration can remove, and discrimination, which it cannot.

# %%
for name, p in (("naive Bayes", bayes), ("logistic", logistic)):
    parts = cal.score_decomposition(y, p)
    print(f"{name:12s} miscalibration {parts.miscalibration:.4f}, discrimination {parts.discrimination:.4f}")

# %% [markdown]
# Of the difference of 0.0375, 0.0160 is miscalibration, which recalibrating naive Bayes would remove. The larger part, 0.0215, is
# discrimination: the logistic regression also knows better who is ill.

# %%
plots.plot_cumulative({"naive Bayes": (y, bayes), "logistic": (y, logistic)})

# %% [markdown]
# The curve needs no bins: where it rises, the outcome happened more often than predicted; where it falls, less often. The curve of
# a calibrated model ends within the height of the grey triangle.
