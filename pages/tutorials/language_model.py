# %% [markdown]
# # Confidences of a language model
#
# *Data: 600 simulated answers of an over-confident language model, three to each of 200 questions on four topics, with the
# confidence it stated in round figures.* The answers are simulated because real ones have licences; everything below works with yours.

# %%
import calibrary as cal
from calibrary import plots

answers = cal.datasets.answers()
y, p = answers.y_true, answers.y_prob  # was it right, and how sure did it say it was
print(f"right {y.mean():.1%}, stated {p.mean():.1%}, {len(set(p.tolist()))} different confidences")

# %% [markdown]
# ## Answers to one question belong together
#
# The three answers to a question are right or wrong together more often than by chance. Intervals that treat them as 600 independent rows
# are too narrow. `units=` says which rows belong together.

# %%
alone = cal.interval("ece", y, p, rng=0)
together = cal.interval("ece", y, p, units=answers.question, rng=0)
for words, found in (("600 rows", alone), ("200 questions", together)):
    print(f"{words:14s} ECE {found.value:.3f}, true error between {found.low:.3f} and {found.high:.3f}")

# %%
plots.plot_reliability(y, p)

# %% [markdown]
# ## Is the confidence useful?
#
# The confidences of an over-confident model can still be higher for right answers than for wrong ones. Then it is useful to let the model
# abstain when its confidence is low. The curve shows the share of wrong answers among those that it gives.

# %%
plots.plot_risk_coverage(y, p, lens="binary")  # y says whether each answer was right

# %%
for name in ("auroc", "aurc", "rms_calibration_error"):
    entry = cal.catalogue[name]
    print(f"{cal.compute(name, y, p, lens='binary'):.3f}  {entry.name} ({name}): {entry.meaning}")

# %% [markdown]
# ## By topic

# %%
import numpy as np

for topic in np.unique(answers.topic):
    rows = answers.topic == topic
    print(f"{topic:12s} right {y[rows].mean():.0%}, stated {p[rows].mean():.0%}")

# %% [markdown]
# ## Partial credit
#
# Graders may give half a point. Labels between 0 and 1 are taken wherever a metric is defined for them:

# %%
print(f"ECE of partial credit: {cal.expected_calibration_error(answers.credit, p):.3f}")
