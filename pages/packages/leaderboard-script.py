# %% [markdown]
# # The RMS script of the leaderboards
#
# *A function `calib_err` was published with a robustness benchmark and copied into evaluation scripts of language models.* It sorts
# answers by confidence, cuts them into bins of 100 and takes the root mean square of the gaps.
#
# ## It drops the most confident bin
#
# The loop runs over all bins except the last, which contains the most confident answers and the remainder. These answers matter most.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
order = np.argsort(c, kind="stable")
bins = [[100 * i, 100 * (i + 1)] for i in range(len(c) // 100)]
bins[-1][1] = len(c)
square = 0.0
for i in range(len(bins) - 1):  # the last bin is never added
    rows = order[bins[i][0] : bins[i][1]]
    square += len(rows) / len(c) * (y[rows].mean() - c[rows].mean()) ** 2
theirs = np.sqrt(square)
print(f"the script:               {theirs:.6f}")
print(f"calibrary:                {cal.rms_calibration_error(y, c):.6f}")
print(f"calibrary, tail='drop':   {cal.rms_calibration_error(y, c, tail='drop'):.6f}")
assert np.isclose(theirs, cal.rms_calibration_error(y, c, tail="drop"))

# %% [markdown]
# The script also fails with 100 answers or fewer, because there is only one bin and no bin is summed. Use `tail="drop"` only to
# reproduce a published number.
