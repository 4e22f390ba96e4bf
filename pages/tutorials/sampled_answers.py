# %% [markdown]
# # Why your self-consistency ECE is wrong
#
# *Data: simulated answers of a model that is calibrated by construction.* Ask a model the same question six times: the first sample is its
# answer, and the share of the other five that agree is its confidence. That share varies by chance around the model's own probability, and
# the expected calibration error counts this noise as miscalibration.

# %%
import matplotlib.pyplot as plt
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)


def asked(n, k, truth=lambda q: q):
    """Answers (samples) to n questions: the first is the answer, and k others measure it. Right with chance truth(q)."""
    q = rng.beta(2, 2, n)  # the model's own probability of its answer
    answers = np.where(rng.random((n, k + 1)) < q[:, None], "same", "other")
    answers[:, 0] = "same"
    return answers, rng.random(n) < truth(q)


answers, right = asked(n=300, k=5)
share = (answers[:, 1:] == "same").mean(axis=1)
naive = cal.interval("ece", right, share, rng=0)
print(f"ECE of the shares {naive.value:.3f}, 95% interval {naive.low:.3f} to {naive.high:.3f}, p = {naive.pvalue:.3f}")

# %% [markdown]
# The model is calibrated: each answer is right with exactly the probability that the model gives it. The usual test says that it is not.
# The fewer the samples, the larger the error of a calibrated model:

# %%
ks = (3, 5, 10, 30)
shown = {}
for k in ks:
    shown[k] = []
    for i in range(50):
        samples, y = asked(300, k)
        r = cal.sampled_answers(samples, y, n_resamples=99, rng=i)
        usual = cal.test("ece", y, (samples[:, 1:] == "same").mean(axis=1), n_resamples=99, rng=i)
        shown[k].append((r.naive_error, r.value, r.expected_by_chance, usual.pvalue, r.pvalue))
naive, error, expected, usual, ours = (np.array([[row[i] for row in shown[k]] for k in ks]) for i in range(5))
for k, a, b in zip(ks, (usual <= 0.05).mean(axis=1), (ours <= 0.05).mean(axis=1), strict=True):
    print(f"{k:2d} samples: called miscalibrated in {a:4.0%} of data sets by the usual test, in {b:4.0%} by ours")

figure, ax = plt.subplots(figsize=(6.4, 4.2))
for values, color, label in (
    (naive, "#9a9a9a", "ECE of the shares"),
    (error, "#2a5fa5", "error without sampling noise"),
):
    ax.plot(ks, values.mean(axis=1), "o-", color=color, lw=2, label=label)
    ax.fill_between(ks, values.min(axis=1), values.max(axis=1), color=color, alpha=0.18, lw=0)
ax.plot(ks, expected.mean(axis=1), "--", color="#2a7d4f", lw=1.5, label="expected by chance")
ax.set(xscale="log", xticks=ks, xlabel="Samples that measure each answer", ylabel="Calibration error", ylim=(0, None))
ax.set_xticklabels([str(k) for k in ks])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
ax.set_title("A calibrated model, 300 questions, 50 data sets", loc="left", fontsize=11)

# %% [markdown]
# ## Without the noise of the samples
#
# `sampled_answers` leaves each sample out in turn, computes the share of the others, and compares the outcome with the sample that was left
# out. A calibrated model shows 0 on average in every bin, for any number of samples. The test redraws which of the k + 1 numbers of a
# question (the outcome and k samples) is the outcome, and it is exact: it rejects a calibrated model in at most 5% of data sets.

# %%
found = cal.sampled_answers(answers, right, rng=0)
print(found)

# %%
found.plot()

# %% [markdown]
# ## A model that is not calibrated
#
# This model is right with probability q^1.5 where it states q. The same test detects this with 500 questions and 5 samples.

# %%
answers, right = asked(n=500, k=5, truth=lambda q: q**1.5)
over = cal.sampled_answers(answers, right, rng=0)
print(over)

# %% [markdown]
# ## A majority vote
#
# It is common to take the most frequent answer, with its share among the same samples as the confidence. That share is too high, because the
# same samples also chose the answer. calibrary refuses it; with `answer="split"` half of the samples choose the answer and the other half
# measure its confidence.

# %%
try:
    cal.sampled_answers(answers, right, answer="majority")
except ValueError as error:
    print(error)

# %% [markdown]
# ## Your own logs
#
# The epochs of an Inspect log are sampled answers: `calibrary answers log.eval -o page.html`. To plan how many questions and samples
# to pay for, use `calibrary plan ece --sampled 3000 --error 0.1`. In Python:

# %%
from calibrary.language.planning import sampled_plan

print(sampled_plan(1500, error=0.1, n_resamples=50, rng=0).sentence)
