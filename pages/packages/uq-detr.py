# %% [markdown]
# # uq-detr
#
# *Version looked at: 0.1.1.* Matching of boxes is identical to calibrary's; 24 values agree to nine digits once the bins are the same.
#
# ## Bins over the range of the scores
#
# uq-detr spreads its bins from the smallest to the largest score of the data, so that the number depends on the extreme detections.
# calibrary's bins go from 0 to 1, as in the papers.

# %%
import numpy as np

import calibrary as cal

rng = np.random.default_rng(0)
z = rng.normal(0, 2, 2000)
c = 1 / (1 + np.exp(-z))  # the probability of class 1, over-confident
y = (rng.random(2000) < 1 / (1 + np.exp(-0.7 * z))).astype(int)

# %%
draw = np.random.default_rng(0)
score = draw.beta(4, 3, 300)
correct = (draw.random(300) < score**1.3).astype(int)
edges = np.linspace(score.min(), score.max(), 11)
stretched = cal.expected_calibration_error(correct, score, edges=[0, *edges[1:-1], 1])
print(f"bins from {score.min():.2f} to {score.max():.2f}: {stretched:.6f}")
print(f"bins from 0 to 1:       {cal.expected_calibration_error(correct, score, n_bins=10):.6f}")
