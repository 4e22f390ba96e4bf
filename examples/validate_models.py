"""Two models that are validated by refitting: risk of an event within two years, and boosting with early stopping.

Run it with ``python examples/validate_models.py``; it needs ``pip install 'calibrary[sklearn]'``.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import calibrary as cal


def followed(n: int = 600, seed: int = 0):
    """Patients with five predictors, a time to the event, and follow-up that ends early for some."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    time = rng.exponential(3.0 * np.exp(-0.7 * X[:, 0] - 0.4 * X[:, 1]))
    censored = rng.exponential(6.0, n)
    return X, np.minimum(time, censored), (time <= censored).astype(int)


def within_two_years(n_resamples: int = 200):
    """``horizon`` gives labels and weights: patients who were followed also stand for those who were censored."""
    X, time, event = followed()
    y, weight = cal.horizon(time, event, t=2.0)
    return cal.validate(
        LogisticRegression(C=np.inf), X, y, sample_weight=weight, metrics=["calibration slope", "oe", "bs", "auroc"],
        n_resamples=n_resamples, rng=0,
    )  # fmt: skip


def boosted(n_resamples: int = 50):
    """Every refit chooses its own number of trees: early stopping is part of what is refitted."""
    X, time, event = followed()
    y, weight = cal.horizon(time, event, t=2.0)
    model = HistGradientBoostingClassifier(early_stopping=True, validation_fraction=0.2, random_state=0)
    return cal.validate(
        model, X, y, sample_weight=weight, metrics=["calibration slope", "bs", "auroc"], method="cv", folds=5,
        repeats=max(n_resamples // 25, 1), rng=0,
    )  # fmt: skip


if __name__ == "__main__":
    print(within_two_years(), end="\n\n")
    print(boosted())
