# %% [markdown]
# # A metric of your own
#
# *Data: the simulated risk model of the quick start, and the worlds (simulated models whose true calibration curve is known) of the study.*
# You propose a calibration metric. A paper about it has to say what the metric shows for a calibrated model, how precise an estimate is,
# which errors it detects and misses, and how it compares with existing metrics. A plain Python function is enough for all of this.

# %%
import numpy as np

import calibrary as cal
from calibrary import study


def tail_gap(y, p, sample_weight=None):
    """Gap between outcome and confidence among the rows that the model is nearly sure of."""
    w = np.ones(len(p)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    gaps = [abs(np.sum((w * (y - p))[tail])) for tail in (p <= 0.1, p >= 0.9)]
    return sum(gaps) / w.sum()


y, p, *_ = cal.datasets.risks()
print(f"tail gap {tail_gap(y, p):.4f}")

# %% [markdown]
# Labels come first. A function that takes `sample_weight` is given counts instead of repeated rows, which makes resampling faster.
#
# ## What does a calibrated model show?
#
# Labels are drawn again from the predictions, as if they were calibrated. This gives the value to expect by chance.

# %%
chance = cal.expected_by_chance(tail_gap, y, p, n_resamples=199, rng=0)
print(f"a calibrated model would show about {chance.expected_by_chance:.4f}")

# %% [markdown]
# ## How sure is the estimate, and is it more than chance?
#
# `perfect=` states the value of a calibrated model. The interval then covers the true value instead of adding the bias of the estimate a
# second time ([why](../uncertainty.md)), and its p-value is that of the exact test on the same draws.

# %%
found = cal.interval(tail_gap, y, p, perfect=0.0, n_resamples=199, rng=0)
print(f"estimate {found.value:.4f}, 95% interval {found.low:.4f} to {found.high:.4f} ({found.method})")
print(f"p = {found.pvalue:.3f}")

# %% [markdown]
# ## Does the test keep its level, and does the interval cover?
#
# Simulate data whose truth is known. Here the model is calibrated, so a test at 5% should reject in about 5% of the samples, and a 95%
# interval should contain 0 in at least 95% of them.

# %%
rng = np.random.default_rng(1)
rejected, covered, samples = 0, 0, 60
for i in range(samples):
    c = rng.beta(0.8, 0.8, 300)
    labels = (rng.random(300) < c).astype(int)
    again = cal.interval(tail_gap, labels, c, perfect=0.0, n_resamples=99, rng=i)
    rejected += again.pvalue <= 0.05
    covered += again.low <= 0.0 <= again.high
print(f"rejected in {rejected} of {samples} samples, covered in {covered} of {samples}")

# %% [markdown]
# ## Which errors does it detect, compared with other metrics?
#
# In each world of the study the calibration curve is known. `study.run` computes your function and any metrics of the catalogue on the
# same samples, and tests at the same level of 5%. Here the tail gap is compared with the expected calibration error (`ece`), the smooth error
# (`smece`) and the largest gap of a bin (`mce`).

# %%
metrics = {"tail gap": tail_gap, "ece": "ece", "smece": "smece", "mce": "mce"}
result = study.run("quick", metrics=metrics, worlds=["wide", "sharp"], n=1000, draws=10)
print(result)

# %%
families = list(result.row("ece", 1000)["power_by_family"])
print(f"{'share detected':16s}" + "".join(f"{name:>10s}" for name in metrics))
for family in families:
    shares = [result.row(name, 1000)["power_by_family"][family] for name in metrics]
    print(f"{family:16s}" + "".join(f"{share:10.0%}" for share in shares))

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 4.2))
for name, marker in zip(metrics, "osD^", strict=True):
    shares = [result.row(name, 1000)["power_by_family"][family] for family in families]
    ax.plot(shares, families, marker, ms=7, alpha=0.8, label=name)
ax.axvline(0.05, color="0.6", lw=1, ls="--")
ax.set(xlim=(-0.02, 1.02), xlabel="Share of samples in which the error is detected, 1,000 rows")
ax.invert_yaxis()
ax.grid(axis="x", color="0.9")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
ax.set_title("What each metric detects", loc="left", fontsize=11)

# %% [markdown]
# The tail gap uses only the rows that the model is nearly sure of. It detects over-confidence as often as the smooth error (`smece`), and it
# misses most shifts, which change probabilities near 0 and 1 least: a paper should say both. *Across* in the table above is the share of
# pairs of models that a metric puts in the order of their true error; there the tail gap is the worst of the four. Ten samples of each world
# give rough shares; take more for a paper.
#
# ## On predictions like yours
#
# `study.mine` fits a world to your own predictions and shows how well each metric works there.

# %%
print(study.mine(y, p, metrics=metrics, draws=10))

# %% [markdown]
# ## All worlds, and a result to cite
#
# ```
# calibrary study run --preset standard --function my.py:tail_gap
# ```
#
# runs all 84 worlds and six sample sizes, in parts that can be stopped and shared among machines. [The study](../study.md) has the results
# of every metric of the catalogue in the same worlds, and the page of each metric shows what it detects.
#
# ## Into the catalogue
#
# A metric that others should use has an id, a page, weights, lenses, tests against a literal definition and a place in every report. It is one
# decorated function: [Contributing](../contributing.md) shows the five steps.
