# needs: inspect_ai zstandard
# %% [markdown]
# # An Inspect log to a page in two lines
#
# *Data: a task that Inspect runs here with its mock model, which needs no key and no network.* Each answer is a sum with a stated
# confidence; the scorer writes the confidence in the metadata of its score.

# %%
import numpy as np
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
from inspect_ai.solver import solver

from calibrary.inspect_ai import brier, ece
from calibrary.language import verbal_confidence


@solver
def answered():
    """Right with a probability a little below the confidence that it states."""

    async def solve(state, generate):
        rng = np.random.default_rng(int(state.metadata["number"]))
        sure = round(float(rng.uniform(0.5, 1.0)), 2)
        right = rng.random() < sure - 0.15
        said = f"{state.target.text if right else 12}\nConfidence: {sure:.0%}"
        state.output = ModelOutput.from_content("mockllm/model", said)
        return state

    return solve


@scorer(metrics=[accuracy(), ece(), brier()])
def stated():
    async def score(state, target):
        answer, words = state.output.completion.split("\n")
        sure = float(verbal_confidence([words])[0])
        right = answer == target.text
        return Score(
            value=CORRECT if right else INCORRECT,
            answer=answer,
            metadata={"confidence": sure},
        )

    return score


def question(i):
    return Sample(f"{i} + {i + 1}", target=str(2 * i + 1), id=f"q{i}", metadata={"number": i})


samples = [question(i) for i in range(150)]
task = Task(dataset=samples, solver=answered(), scorer=stated(), name="sums")
(log,) = eval(task, model="mockllm/model", log_dir="logs", display="none")
for score in log.results.scores:
    for name, value in score.metrics.items():
        print(f"{name:10s} {value.value:.3f}")

# %% [markdown]
# `ece()` and `brier()` come from `calibrary.inspect_ai`; each gives its value and both ends of its 95% interval.
#
# ## The two lines
#
# In a terminal it is one: `calibrary report logs/*.eval -o page.html`. In Python:

# %%
import glob

import calibrary as cal

log = cal.language.read_log(glob.glob("logs/*.eval")[0])
page = cal.report(log.columns["correct"], log.columns["confidence"], about={"title": "sums"}, rng=0)

# %%
page.save("page.html")
print(log.said)
print()
print(page.headline)

# %% [markdown]
# One line describes the log, and further lines count what was left out: samples with an error, samples without a score, and scores that are
# neither right nor wrong.

# %%
from calibrary import plots

plots.plot_reliability(log.columns["correct"], log.columns["confidence"])

# %% [markdown]
# ## Two models
#
# `calibrary compare a.eval b.eval` pairs the samples of two logs by id and epoch. Each model is measured on its own outcomes, because one
# model may be right where the other is wrong. The questions are resampled for both models together, so that questions that are hard for both
# do not add to the uncertainty of the difference.
#
# Several epochs of a question are resampled together, or they are treated as [sampled answers](sampled_answers.md).
