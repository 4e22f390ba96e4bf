# %% [markdown]
# # Quick start
#
# ```
# pip install "calibrary[all]"
# ```
#
# Suppose that a model gave a probability for each row, and that you know the outcomes. Put the outcomes and the probabilities in
# lists, numpy arrays, or columns of pandas, polars, PyArrow or PyTorch. The example below is a simulated risk model at four
# hospitals. You can paste every block of code as it stands.

# %%
import calibrary as cal

y, p, _, site = cal.datasets.risks()
print(f"{len(y):,} patients, {y.mean():.1%} had the event")
print(f"mean predicted risk {p.mean():.1%}")

# %% [markdown]
# In every call the labels `y` come first, as in scikit-learn, then the probabilities `p`; all other arguments are keywords. `p`
# has one column, P(class 1), or one column for each class.
#
# ## Look at it

# %%
from calibrary import plots

plots.plot_reliability(y, p)

# %% [markdown]
# Each point of the diagram is a bin of predictions. The x axis is the mean prediction of the bin, the y axis how often the event
# happened. The points of a calibrated model lie near the diagonal. This model is too extreme: where it predicts a low risk, the
# event is more frequent than predicted, and where it predicts a high risk, it is rarer.
#
# ## Measure it

# %%
ece = cal.interval("ece", y, p, rng=0)
chance = cal.expected_by_chance("ece", y, p, rng=0).expected_by_chance
print(f"expected calibration error {ece.value:.3f}")
print(f"95% interval {ece.low:.3f} to {ece.high:.3f}")
print(f"a perfectly calibrated model would show about {chance:.3f} on this many rows")

# %% [markdown]
# Compare a calibration error with the error that a calibrated model would show, not with 0. Errors such as the expected
# calibration error (ECE) are never negative, so chance alone makes them larger than 0. [How sure is a calibration
# error?](uncertainty.md) says more.
#
# ## Test it

# %%
print(cal.test("ece", y, p, rng=0).pvalue)  # could it be chance?
print(cal.verdict("ece<0.1", y, p, rng=0).sentence)  # does the model meet a bound?

# %% [markdown]
# The p-value says how often a calibrated model would show an error at least as large as this one. To compute the p-value,
# outcomes are drawn from the predictions again and again. A bound such as `ece<0.1` is compared with the whole interval of the
# error: the bound holds, does not hold, or is undecided ([gates](gates.md)).
#
# ## In which direction, where, and what would help?

# %%
for name in ("calibration slope", "calibration-in-the-large"):
    print(f"{name} {cal.compute(name, y, p):.2f}")
for name in ("east", "north", "south", "west"):
    here = site == name
    print(f"{name:6s} predicted {p[here].mean():.1%}, observed {y[here].mean():.1%}")
print(cal.recalibration_gain(y, p).sentence)

# %% [markdown]
# A calibration slope of 1 is ideal; below 1 the probabilities are too extreme. A calibration-in-the-large of 0 is ideal; above 0
# the event is more frequent than predicted. So the predicted risks of this model are too extreme, and on average a little too
# low. At the hospital "north" the predicted risks are clearly too low. [Recalibrating](tutorials/recalibrating.md) shows how to
# fit a recalibration map, which corrects such errors.
#
# ## All of it on one page

# %%
page = cal.report(y, p, by={"site": site}, rng=0)
page.save("report.html")
print(page.headline)

# %% [markdown]
# The page is one file that you can send. It has the answer in words, the figures, every metric, the results for each site, and
# what recalibration would gain. Intervals on the page can differ in the third digit from those of `cal.interval`, because the
# page uses fewer resamples.
#
# The first command below makes the same page in a terminal, from a file with the columns `outcome`, `risk` and `site`. The second
# command makes a build fail if the expected calibration error (`ece`) is above 0.05:
#
# ```
# calibrary report predictions.csv --label outcome --prob risk --by site -o report.html
# calibrary report predictions.csv --label outcome --prob risk --fail-if "ece>0.05"
# ```
#
# ## Several classes
#
# With more than two classes, "is the model calibrated?" has several meanings, and a [lens](lenses.md) says which one you mean.
# The default is about the predicted class: is this class right as often as the model says?

# %%
y, p, _ = cal.datasets.digits()  # ten columns of probabilities
print(f"{cal.expected_calibration_error(y, p):.3f}")  # the predicted class
print(f"{cal.expected_calibration_error(y, p, lens='class-wise'):.3f}")  # each class by itself
plots.plot_reliability(y, p)

# %% [markdown]
# ## Which metric?

# %%
for found in cal.recommend("binary", "measure", n=500)[:3]:
    print(f"{cal.catalogue[found.id].name} ({found.id}): {'; '.join(found.reasons)}")

# %% [markdown]
# Each metric has a short name, such as `ece`. You can use the short name, the full name or the names of other packages. The
# [catalogue](catalogue.md) lists every metric, [choosing a metric](tutorials/choosing.md) helps to choose one, and
# `calibrary explain ece` describes one.
