# %% [markdown]
# # 300 human labels and a judge
#
# *Data: 3,000 simulated answers of an over-confident model.* A judge (another model) has labelled all of them as right or wrong; humans
# labelled 300 of them, drawn at random. The judge's label is correct for 85% of the answers, and it says "right" too often.

# %%
import matplotlib.pyplot as plt
import numpy as np

import calibrary as cal

rng = np.random.default_rng(1)
n, n_labels = 3000, 300
c = rng.beta(4, 2, n)  # the confidences
truth = (rng.random(n) < c**1.6).astype(float)
judge = np.where(truth == 1, rng.random(n) < 0.95, rng.random(n) < 0.25).astype(float)
human = np.full(n, np.nan)
looked = rng.choice(n, n_labels, replace=False)
human[looked] = truth[looked]
print(f"right in truth {truth.mean():.1%}, by the judge {judge.mean():.1%}; mean confidence {c.mean():.1%}")

# %% [markdown]
# ## The judge's labels alone
#
# The 3,000 labels give a narrow interval around a wrong number, because the judge accepts many wrong answers.

# %%
alone = cal.interval("ece", judge, c, rng=0)
print(f"judge as the truth: ECE {alone.value:.3f}, 95% interval {alone.low:.3f} to {alone.high:.3f}")
exact = cal.expected_calibration_error(truth, c)
print(f"all 3,000 in truth: ECE {exact:.3f}")

# %% [markdown]
# ## Both together
#
# `judged` rests on the human labels. The judge reduces their noise and cannot bias the estimate; with an uninformative judge the result is
# that of the human labels alone.

# %%
found = cal.judged("ece", human, c, judge=judge, rng=0)
print(found)

# %%
rows = [
    ("judge as the truth", alone.value, alone.low, alone.high, "#b3402a"),
    (f"{n_labels} human labels", found.humans.value, *found.humans, "#9a9a9a"),
    ("humans and judge", found.value, found.low, found.high, "#2a5fa5"),
]
figure, ax = plt.subplots(figsize=(6.4, 2.4))
for place, (_, value, low, high, color) in enumerate(rows):
    ax.plot([low, high], [place, place], color=color, lw=5, solid_capstyle="butt", alpha=0.45)
    ax.plot(value, place, "o", color=color, ms=7)
ax.axvline(exact, color="#222222", lw=1, ls="--")
ax.annotate("all 3,000 labels", (exact, 2.5), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
ax.set(yticks=range(3), yticklabels=[row[0] for row in rows], ylim=(-0.6, 2.8), xlim=(0, None))
ax.set_xlabel("Expected calibration error, 95% interval")
ax.spines[["top", "right", "left"]].set_visible(False)
ax.tick_params(axis="y", length=0)
ax.set_title("What each set of labels says", loc="left", fontsize=11)

# %% [markdown]
# `worth` is the number of human labels that would give the same precision without the judge, and `label_more` the number of further rows to
# label for half the width.

# %%
for name, text in found.rows():
    print(f"{name:35s} {text}")

# %% [markdown]
# ## Rows that were not drawn at random
#
# People prefer to label doubtful answers. This is possible if the probability with which each row was chosen is known: pass these
# probabilities as `inclusion=`.

# %%
chance = np.clip(0.4 * np.minimum(c, 1 - c), 0.02, 1)
chosen = rng.random(n) < chance
found = cal.judged("ece", np.where(chosen, truth, np.nan), c, judge=judge, inclusion=chance, rng=0)
print(f"{chosen.sum()} labels: ECE {found.value:.3f}, 95% interval {found.low:.3f} to {found.high:.3f}")

# %% [markdown]
# In a terminal, with a file that has a column for each of them, empty in rows without a human label:
#
# ```
# calibrary report answers.csv --label human --prob p --judge gpt -o page.html
# calibrary metric ece answers.csv --label human --prob p --judge gpt --inclusion chance
# ```
