# needs: torch sklearn
# %% [markdown]
# # Training with a calibration loss
#
# *Data: 1,797 digits with noise, 400 of them for training.* A network that memorizes its training rows becomes over-confident. Does a loss
# that penalizes miscalibration help, and is it better than temperature scaling, which needs no training?

# %%
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import calibrary as cal
from calibrary import losses

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(labels))
x = torch.tensor((images / 16 + 0.4 * rng.standard_normal(images.shape))[order], dtype=torch.float32)
y = torch.tensor(labels[order])
train, valid, test = slice(0, 400), slice(400, 800), slice(800, None)

# %% [markdown]
# The loss is *added* to the cross-entropy and never used alone, because a model that predicts the base rate is perfectly calibrated. Modules
# take the prediction first, as PyTorch's do.

# %%
penalty = losses.MaximumMeanCalibrationError(weighted=True)


def fitted(weight, seed=0, epochs=40):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(400).split(100):
            logits = network(x[train][rows])
            loss = nn.functional.cross_entropy(logits, y[train][rows])
            if weight:
                loss = loss + weight * penalty(torch.softmax(logits, dim=1), y[train][rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return torch.softmax(network(x), dim=1).numpy()


# %% [markdown]
# ## Compare on rows that were not used for any choice

# %%
plain, punished = fitted(0.0), fitted(1.0)
temperature = cal.Recalibrator("temperature").fit(plain[valid], y[valid].numpy())
for words, p in (
    ("cross-entropy", plain[test]),
    ("cross-entropy + MMCE", punished[test]),
    ("temperature scaling", temperature.transform(plain[test])),
):
    answer = y[test].numpy()
    accuracy = (p.argmax(axis=1) == answer).mean()
    nll, ece = (cal.compute(name, answer, p) for name in ("nll", "ece"))
    print(f"{words:21s} accuracy {accuracy:.3f}, log loss {nll:.3f}, ECE {ece:.3f}")

# %% [markdown]
# Here the loss costs accuracy, and temperature scaling has the lowest log loss and the lowest ECE. That is the usual outcome, and the
# reason to try it first. This is one seed and one weight, so it is an example and not a result: [Losses](../losses.md) compares several seeds,
# with weights chosen by the log loss of held-out rows. Never choose a weight by the ECE.
