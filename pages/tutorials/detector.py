# %% [markdown]
# # A detector, from two COCO files
#
# *Data: a small detector's results in COCO's format, with the ground truth, as they come with calibrary.* A detection says "a car, 80%".
# Is it right 80% of the time, and is the box where the car is?

# %%
from importlib.resources import files

import calibrary as cal
from calibrary import plots

folder = files("calibrary") / "datasets"
matches = cal.match_detections(
    str(folder / "demo_ground_truth.json"), str(folder / "demo_results.json"), iou_threshold=0.5
)
print(f"{len(matches.correct)} detections, {matches.correct.mean():.1%} correct, mean score {matches.score.mean():.1%}")

# %% [markdown]
# Which detections count as correct depends on the matching, so report how it was done: `matching="coco"` gives each object to the detection
# with the highest score, exactly as pycocotools does. `score_threshold=` removes detections that your application never shows; every number
# depends on it.

# %%
plots.plot_detection_reliability(matches)

# %% [markdown]
# ## Numbers

# %%
for name in ("d_ece", "laece", "oce"):
    entry = cal.catalogue[name]
    print(f"{cal.compute(name, matches):.3f}  {entry.name} ({name}): {entry.meaning}")

# %% [markdown]
# The figure above shows 0.123 and 0.197 instead: it has ten bins and pools all classes, while the metrics have the bins of
# their inventors (20 and 25), and LaECE is a mean over classes. State the bins and the classes with each number that you report.
#
# Detections of one image depend on each other, so intervals resample whole images:

# %%
found = cal.interval("d_ece", matches, rng=0)
print(f"D-ECE {found.value:.3f}, true error between {found.low:.3f} and {found.high:.3f}")

# %% [markdown]
# ## Where in the image?

# %%
plots.plot_d_ece_map(matches, n_bins=[5, 6, 6], min_count=2, counts=True)

# %% [markdown]
# Hatched cells have too few detections for an estimate. On the command line: `calibrary detection report ground_truth.json results.json`.
