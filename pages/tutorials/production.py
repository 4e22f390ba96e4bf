# %% [markdown]
# # Nothing but confidences from production
#
# *Data: a simulated model of churn.* Labels come months later; for now production has only the model's inputs and its confidences. The mix of
# customers has changed since the model was validated: there are many new customers.

# %%
import numpy as np
from scipy.special import expit

import calibrary as cal

rng = np.random.default_rng(5)


def customers(n, months):
    """Months since joining and use of the product; who leaves, and what the model says: it learned too little of the months."""
    x = np.column_stack([rng.normal(months, 1.0, n), rng.normal(0.0, 1.0, n)])
    y = (rng.random(n) < expit(-0.5 - 0.9 * x[:, 0] - 0.8 * x[:, 1])).astype(int)
    return x, y, expit(-0.5 - 0.5 * x[:, 0] - 0.8 * x[:, 1])


x, y, p = customers(3000, 0.0)
x_now, later, p_now = customers(3000, -0.8)  # the labels of now are known later only
print(f"validated: ECE {cal.ece(y, p):.3f}; mean confidence {p.mean():.1%}, in production {p_now.mean():.1%}")

# %% [markdown]
# ## The assumption
#
# Under *covariate shift* the frequencies of types of customers change, and customers of one type leave as often as before. Rows of the
# validation are weighted by how frequent their type is in production, estimated by a logistic regression that predicts to which set a row
# belongs and is fitted to other rows.

# %%
found = cal.under_shift(
    "ece", y, p, p_now, assume="covariate", features=x, target_features=x_now, n_resamples=199, rng=0
)
print(found)

# %% [markdown]
# Whether customers of one type leave as often as before cannot be tested without labels of production: the sentence says that it is assumed.
# A test only compares the weighted validation rows with those of production.
#
# Months later the labels have come:

# %%
print(f"ECE in production, with the labels: {cal.ece(later, p_now):.3f}")

# %% [markdown]
# ## With confidences alone
#
# Without the inputs the confidences themselves can serve as the only feature. The assumption is then stronger: customers with the same
# confidence must leave as often as before, whatever their type. Here they do not, because the model learned too little about the months, and
# the confidences cannot show it.

# %%
alone = cal.under_shift("ece", y, p, p_now, assume="covariate", n_resamples=199, rng=0, check=False)
print(alone)

# %% [markdown]
# The estimate from confidences alone is too small: keep the inputs that the model was given, or label a few hundred rows of production. Where
# labels do come, month by month, `cal.shift_curve` shows the metric along the months with a band for all of them at once, and
# `cal.calibration_monitor` raises an alarm.
#
# ```
# calibrary report validated.csv --target production.csv --assume covariate --feature months --feature use -o page.html
# ```
