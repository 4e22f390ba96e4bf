# %% [markdown]
# # A clinical prediction model
#
# *Data: 160 of 569 needle biopsies of the breast (Wisconsin, from scikit-learn).* You have developed a risk model on your own patients and
# want to report how good its risks will be in new patients. We go from a data frame to the paragraph of the paper: calibration and
# discrimination corrected for optimism, the stability of the model, and the items of TRIPOD+AI that numbers can answer. The last parts
# are about a published model: external validation in your own patients, and another prevalence.

# %%
import textwrap

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrary as cal
from calibrary import plots

table = load_breast_cancer(as_frame=True).frame.sample(160, random_state=0)
predictors = ["mean texture", "mean smoothness", "mean symmetry"]
predictors += ["texture error", "smoothness error"]
X, y = table[predictors], (table["target"] == 0).astype(int)  # 1: malignant
print(f"{len(y)} patients, {y.sum()} events, {len(predictors)} predictors")

# %% [markdown]
# We keep 160 patients and five predictors, as a small study would have them. That makes about a dozen events for each predictor.
#
# ## Why the model's own rows do not suffice
#
# A logistic regression fitted by maximum likelihood has a calibration slope of exactly 1 on the rows it was fitted to, whatever it is
# worth. So the whole procedure is fitted again to 200 bootstrap samples. The difference between a refit's performance on its own sample and
# on the original rows is the optimism, and its mean is subtracted.

# %%
model = make_pipeline(StandardScaler(), LogisticRegression(C=np.inf))
found = cal.validate(model, X, y, n_resamples=200, repeats=2, rng=1)
print(found)

# %% [markdown]
# *Apparent* is the value on the rows to which the model was fitted, and *corrected* the value to expect in new patients. The two numbers to
# report first:
#
# - The **calibration slope** of 0.85 suggests that risks will be too extreme in new patients: high risks too high, low risks too low. Its
#   interval contains 1, so that 160 patients are too few to be sure.
# - **Observed over expected events** (`oe`) of 1.00 suggests that risks will be right on average.
#
# The other rows are the mean error of the risks (expected calibration error `ece`, its smooth form `smece`, the integrated calibration index
# `ici`, its maximum `emax`), scores of the whole prediction (Brier score `bs`, log loss `nll`) and the c statistic (`auroc`).
#
# Selection and tuning must be part of the model that you pass, as a pipeline or a search, so that every refit repeats them. If there are
# several rows of one patient, pass `units=patient`: whole patients are then resampled.
#
# ## The corrected curve

# %%
plots.plot_validation(found, "curve")

# %% [markdown]
# ## Would another sample have given another model?
#
# Each refit predicts the same patients. Where the predictions of the refits differ much, a decision would depend on who happened to be in
# the study.

# %%
plots.plot_validation(found, "prediction")

# %%
print(found.instability.sentence_at(0.3))

# %% [markdown]
# ## The paragraph of the paper


# %%
def said(metric, digits=2):
    row = found[metric]
    return f"{row.value:.{digits}f} (95% CI {row.low:.{digits}f} to {row.high:.{digits}f})"


paragraph = (
    f"The model was developed with logistic regression in {len(y)} patients ({y.sum()} events, {len(predictors)} predictors). Performance "
    f"was corrected for optimism with {found.n_resamples} bootstrap samples, in each of which all modelling steps were repeated. The "
    f"corrected calibration slope was {said('calibration slope')}, the observed to expected ratio {said('oe')}, the c statistic "
    f"{said('auroc')} and the Brier score {said('bs', 3)}. Apparent values were {found['calibration slope'].apparent:.2f}, "
    f"{found['oe'].apparent:.2f}, {found['auroc'].apparent:.2f} and {found['bs'].apparent:.3f}. Across bootstrap models a patient's "
    f"predicted risk differed from that of the model by {100 * found.instability.overall:.0f} percentage points on average."
)
print(textwrap.fill(paragraph, 110))

# %% [markdown]
# ## The checklist
#
# `tripod()` fills the items of TRIPOD+AI that numbers can answer, and says "not given" for the others. `to_markdown()` makes a table for
# the supplement.

# %%
print(found.tripod())

# %% [markdown]
# ## The page
#
# One file holds the table, the corrected curve, the figures of instability at the thresholds where someone acts, and the checklist.

# %%
page = cal.validation_page(found, "validation.html", thresholds=[0.3])
print(f"{len(page) // 1000} kB")

# %% [markdown]
# ## A published model in your own patients
#
# External validation needs no refitting: the predicted risks and the outcomes are enough. Here they come from 3,000 simulated patients of four
# hospitals.

# %%
event, risk, _, hospital = cal.datasets.risks()
measures = ("calibration-in-the-large", "calibration slope", "oe", "auroc")
for measure in measures:
    part = cal.interval(measure, event, risk, n_resamples=199, rng=0)
    print(f"{measure:24s} {part.value:.2f} (95% CI {part.low:.2f} to {part.high:.2f})")

# %% [markdown]
# Calibration-in-the-large above 0, and observed over expected events (`oe`) above 1, mean that events are more frequent than predicted. A slope
# below 1 means that the risks are too extreme. The c statistic (`auroc`) says how well the risks separate patients with and without the event,
# and nothing about calibration.
#
# The decision curve shows at which thresholds acting on the risks is better than treating everybody or nobody:

# %%
plots.plot_decision(event, risk, thresholds=[0.2])

# %% [markdown]
# `cal.report(event, risk, by={"hospital": hospital}, thresholds=[0.2])` makes a page of all this, with each hospital and with what would
# help. The page can have a title, a purpose, an author and a date, and ends with a line to sign.
#
# ## In a hospital where the disease is rarer
#
# If 5% instead of 36% of the patients have the disease, and nothing else differs, all log odds are shifted by the same number. The inverse of
# the map gives the score that corresponds to the risk at which one would act.

# %%
elsewhere = cal.Recalibrator.for_prevalence(0.05, source=float(y.mean()))
print(elsewhere.transform([0.2, 0.5, 0.8]).round(3))
print(elsewhere.which_score(0.02))

# %% [markdown]
# On the command line: `calibrary validate patients.csv --label malignant --features texture,smoothness -o page.html`. There a model is chosen
# by its name (logistic, forest, boosting) and never read from a file, because a pickled model can run any code when it is loaded.
