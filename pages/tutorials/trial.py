# %% [markdown]
# # A trial: from the file to the signed page
#
# *Data: 1,600 simulated patients of eight hospitals.* A published model predicts the risk of death. You plan a study that validates it,
# collect the patients, and write the page that you sign. On the way come the four questions that clinicians ask: how many patients, what
# happens in another hospital, what if predictors are missing, and what if patients die of something else.

# %%
import numpy as np
import pandas as pd

import calibrary as cal
from calibrary import plots

# %% [markdown]
# ## How many patients?
#
# Choose how wide an interval may be. An interval of O/E (observed over expected deaths) from 0.8 to 1.2 is 0.4 wide. For slope and C statistic
# you also need an idea of the predicted risks: here the log odds have mean -1.4 and standard deviation 1, as in the paper of the model.

# %%
for metric, width in (("oe", 0.4), ("cis.slope", 0.4), ("auroc", 0.1)):
    print(cal.plan(metric, width=width, lp=(-1.4, 1.0)).sentence)

# %% [markdown]
# The slope needs the most patients. On the command line: `calibrary plan cis.slope --width 0.4 --lp -1.4,1`; with a file of predictions like
# those to come, `calibrary plan cis.slope risks.csv --width 0.4`.
#
# ## The file
#
# One row for each patient: hospital, predicted risk, and whether the patient died. In hospital F more patients die than predicted.

# %%
rng = np.random.default_rng(8)
sizes = [360, 310, 260, 220, 180, 140, 90, 40]
hospital = np.repeat(list("ABCDEFGH"), sizes)
log_odds = rng.normal(-1.4, 1.0, len(hospital))
excess = np.repeat([-0.2, 0.0, 0.3, -0.1, 0.1, 1.0, 0.2, -0.3], sizes)
died = rng.random(len(hospital)) < 1 / (1 + np.exp(-(excess + log_odds)))
risk = 1 / (1 + np.exp(-log_odds))
pd.DataFrame({"hospital": hospital, "risk": risk.round(4), "died": died.astype(int)}).to_csv(
    "patients.csv", index=False
)
patients = pd.read_csv("patients.csv")
patients.groupby("hospital").agg(patients=("died", "size"), deaths=("died", "sum"), expected=("risk", "sum")).round(1)

# %% [markdown]
# ## What would another hospital see?
#
# `pooled` estimates each number in each hospital, and then the mean over hospitals and how much they differ (random effects). The interval
# of the mean says how well the mean is known. The interval of a new hospital says what to expect elsewhere, and is the one to look at
# before a model is used in a place that was not in the study.

# %%
found = cal.pooled(patients, label="died", prob="risk", centre="hospital")
for row in found:
    new = f"{row.prediction_low:.2f} to {row.prediction_high:.2f}"
    print(f"{row.metric:10s} {row.value:6.2f}  mean {row.low:.2f} to {row.high:.2f}  new hospital {new}")

# %%
plots.plot_forest(found, "oe")

# %%
plots.plot_pooled_curve(found)

# %% [markdown]
# The thick line is the mean over hospitals. Its narrow band is about the mean, the wide band about the curve of a new hospital. A hospital
# without deaths stays in O/E by a correction, as a note says, and is named where a slope or a C statistic does not exist.
#
# With few hospitals the interval of a new one is uncertain itself. In 1,000 simulations with 5 hospitals such a 95% interval contained the
# true value in 87% to 91%; `print(found)` says so below its first sentence. Do not read its ends as exact.
#
# ## If predictors are missing
#
# Multiple imputation completes the data several times, and the model gives each patient one risk in every completed data set. Stack the data
# sets and number them: each is estimated by itself, and the results are pooled by Rubin's rules. The rows are never counted five times. The
# model that fills the gaps must know the outcome, or the slope will be too small.

# %%
gone = rng.random(len(risk)) < 0.3
completed = []
for _ in range(5):  # the simplest imputation: a risk of a patient with the same outcome
    filled = risk.copy()
    for outcome in (False, True):
        known = risk[~gone & (died == outcome)]
        filled[gone & (died == outcome)] = rng.choice(known, (gone & (died == outcome)).sum())
    completed.append(filled)
for metric in ("oe", "cis.slope", "auroc"):
    one = cal.interval(metric, died.astype(int), completed, imputations=True)
    share = f"{one.rubin.fmi:.0%} of the information is missing"
    print(f"{metric:10s} {one.value:.3f} ({one.low:.3f} to {one.high:.3f}), {share}")

# %% [markdown]
# `cal.evaluate(..., imputations=)` does this for a table of metrics, `cal.imputed_curve` for the calibration curve, and `cal.validate(..., imputations=)` corrects a model that you
# developed yourself for optimism, within each completed data set.
#
# ## If patients die of something else
#
# The risk of a stroke within three years: some patients are lost before (0), some have the stroke (1), some die first (2). A death before is
# no censoring, because this patient cannot have a stroke any more. `horizon` makes labels and weights, with which every metric works.

# %%
rates = 0.06 * np.exp(0.8 * (log_odds + 1.4)), 0.05  # of a stroke and of death, in a year
times = [rng.exponential(1 / rates[0]), rng.exponential(1 / rates[1], len(risk)), rng.uniform(1.0, 8.0, len(risk))]
years, code = np.min(times, axis=0), np.array([1, 2, 0])[np.argmin(times, axis=0)]
stroke = rates[0] / sum(rates) * (1 - np.exp(-3 * sum(rates)))  # the predicted risk of a stroke within 3 years

three = cal.horizon(years, code, t=3)
y, w = three
print(f"observed risk {three.incidence:.3f} (standard error {three.standard_error:.3f}), predicted {stroke.mean():.3f}")
print(f"Brier score {cal.brier_score(y, stroke, sample_weight=w):.3f}")
print(f"net benefit at a threshold of 10% {cal.net_benefit(y, stroke, threshold=0.1, sample_weight=w):.3f}")
for group in three.groups(stroke, n_groups=4):
    seen = f"observed {group.observed:.3f} ({group.low:.3f} to {group.high:.3f})"
    print(f"{group.n:.0f} patients, predicted {group.expected:.3f}, {seen}")

# %% [markdown]
# The observed risks are those of Aalen and Johansen. One minus Kaplan-Meier would count deaths as lost patients and overstate the risk.
# Calibration over the whole time axis (D-calibration, A-calibration) is the subject of the package SurvivalEVAL.
#
# ## The page that you sign
#
# Back to the risk of death. One call makes the page: the answer, the hospitals, the decisions at 20%, and how many patients would halve the
# intervals. `by=` tests each hospital as well, so that the first sentence names one in which the risks are wrong. Title, purpose, author and date stand above, and a line to sign at the end.

# %%
about = {"title": "Risk of death", "purpose": "External validation", "author": "A. Clinician", "date": "2026-11-19"}
page = cal.report(
    patients, label="died", prob="risk", centre="hospital", by="hospital", thresholds=[0.2], about=about,
    metrics=["oe", "citl", "cis", "auroc", "bs"], primary="oe",
)  # fmt: skip
page.save("page.html")
print(page.headline)
for section in page.sections:
    if section.key in ("centres", "decisions", "precision"):
        print(f"{section.title}: {section.sentences[0]}")

# %% [markdown]
# The same on the command line: `calibrary report patients.csv --label died --prob risk --centre hospital --by hospital --threshold 0.2
# --author "A. Clinician" -o page.html`.
#
# ## The checklist of the paper
#
# `tripod()` fills the items of TRIPOD+AI that numbers can answer.

# %%
items = page.tripod()
for item in ("10", "12d", "23b"):
    print(f"{item}: {items[item]}\n")
