# %% [markdown]
# # uq-detr
#
# *Compared version: 0.1.1.* The matching of boxes is identical to calibrary's; 24 values agree to nine digits if the bins are the same.
#
# ## Bins over the range of the scores
#
# uq-detr spreads its bins from the smallest to the largest score of the data, so that the number depends on the extreme detections.
# calibrary's bins go from 0 to 1, as in the papers.

# %%
import numpy as np

import calibrary as cal

draw = np.random.default_rng(0)
score = draw.beta(4, 3, 300)
correct = (draw.random(300) < score**1.3).astype(int)
edges = np.linspace(score.min(), score.max(), 11)
bin_of = np.searchsorted(edges[1:-1], score)
theirs = sum(abs(np.sum(correct[bin_of == b] - score[bin_of == b])) for b in range(10)) / len(score)
ours = cal.expected_calibration_error(correct, score, n_bins=10)
by_us = cal.expected_calibration_error(correct, score, edges=[0, *edges[1:-1], 1])
print(f"uq-detr, bins from {score.min():.2f} to {score.max():.2f}: {theirs:.6f}")
print(f"calibrary, bins from 0 to 1:     {ours:.6f}")
print(f"their number, by our call:       {by_us:.6f}")
assert np.isclose(theirs, by_us, rtol=1e-12)
assert not np.isclose(theirs, ours, rtol=1e-3)
