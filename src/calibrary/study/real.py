"""Real predictions without known truth: do two halves of the rows agree on the ranking of models?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from calibrary.base.errors import extra, whole
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import predictions
from calibrary.lookup import catalogue
from calibrary.numerics.draw import addressed
from calibrary.study.measures import spearman
from calibrary.study.panel import Number, binary_panel

#: The name of the gain of recalibration on new rows.
_GAIN = "calibration_loss"


def real_sets(seed: int = 0) -> dict[str, dict[str, tuple[Indices, Array]]]:
    """Cross-fitted predictions of nine classifiers on four tasks of scikit-learn's data: task -> model -> (y, p)."""
    with extra("sklearn", "real predictions"):
        from sklearn.datasets import load_breast_cancer, load_digits
        from sklearn.model_selection import cross_val_predict

    cancer, digits = (load(return_X_y=True) for load in (load_breast_cancer, load_digits))
    tasks = {
        "breast cancer": cancer,
        "odd digits": (digits[0], digits[1] % 2),
        "large digits": (digits[0], (digits[1] >= 5).astype(int)),
        "eights": (digits[0], (digits[1] == 8).astype(int)),
    }
    return {
        task: {
            name: (y.astype(np.intp), cross_val_predict(model, x, y, cv=5, method="predict_proba")[:, 1])
            for name, model in _models(seed)
        }
        for task, (x, y) in tasks.items()
    }


def _models(seed: int) -> Iterator[tuple[str, Any]]:
    from sklearn import discriminant_analysis as discriminant
    from sklearn import ensemble, linear_model, naive_bayes, neighbors, tree
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    yield "logistic", make_pipeline(StandardScaler(), linear_model.LogisticRegression(max_iter=500))
    yield "naive Bayes", naive_bayes.GaussianNB()
    yield "neighbors", make_pipeline(StandardScaler(), neighbors.KNeighborsClassifier(10))
    yield "tree", tree.DecisionTreeClassifier(max_depth=5, random_state=seed)
    yield "forest", ensemble.RandomForestClassifier(40, random_state=seed)
    yield "extra trees", ensemble.ExtraTreesClassifier(40, random_state=seed)
    yield "boosting", ensemble.GradientBoostingClassifier(n_estimators=40, max_depth=2, random_state=seed)
    yield "LDA", make_pipeline(StandardScaler(), discriminant.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1))
    yield "AdaBoost", ensemble.AdaBoostClassifier(n_estimators=30, random_state=seed)


def halves_agree(
    metrics: Any = None, *, sets: Any = None, splits: int = 6, seed: int = 0, most: float = 0.02
) -> dict[str, dict[str, float]]:
    """Rank agreement of models between random halves of real predictions, mean over tasks and splits.

    Parameters
    ----------
    metrics : optional
        As in :func:`run`; by default all that take less than ``most`` seconds.
    sets : mapping, optional
        task -> model -> (labels, probabilities of class 1); by default those of :func:`real_sets`.
    splits : int
        Number of random splits of every task into halves.
    seed : int
    most : float
        Seconds above which a number is left out.

    Returns
    -------
    dict
        number -> ``halves``, the rank correlation of its values on the two halves, and ``gain``, that of its values on
        one half with the gain of recalibration on the other.
    """
    splits = whole("splits", splits)
    tasks = real_sets(seed) if sets is None else sets
    numbers = binary_panel(metrics, binnings=metrics is None)
    gain = binary_panel([catalogue[_GAIN].id])[0]
    numbers = _affordable(numbers, next(iter(next(iter(tasks.values())).values())), most)
    found: dict[str, dict[str, list[float]]] = {number.name: {"halves": [], "gain": []} for number in numbers}
    for place, (_, models) in enumerate(sorted(tasks.items())):
        rows = len(next(iter(models.values()))[0])
        rng = addressed(seed, place)
        for _ in range(splits):
            order = rng.permutation(rows)
            first, second = (_read([*numbers, gain], models, half) for half in np.array_split(order, 2))
            for i, number in enumerate(numbers):
                for kind, with_what in (("halves", second[i]), ("gain", second[-1])):
                    known = np.isfinite(first[i]) & np.isfinite(with_what)
                    rho = spearman(first[i][known], with_what[known]) if known.sum() > 2 else None
                    if rho is not None:
                        found[number.name][kind].append(rho)
    return {
        name: {kind: round(float(np.mean(rhos)), 3) for kind, rhos in by.items() if rhos} for name, by in found.items()
    }


def _affordable(numbers: Sequence[Number], sample: tuple[Any, Any], most: float) -> list[Number]:
    import time

    kept = []
    for number in numbers:
        p = predictions(*sample)
        number(p)
        started = time.process_time()
        number(p)
        if time.process_time() - started <= most:
            kept.append(number)
    return kept


def _read(numbers: Sequence[Number], models: Any, half: Indices) -> Array:
    """The values by model, with the sign such that larger is worse."""
    table = np.empty((len(numbers), len(models)))
    for j, (y, p) in enumerate(models.values()):
        checked = predictions(y[half], p[half])
        for i, number in enumerate(numbers):
            table[i, j] = number.error(np.array([number(checked)[0]]))[0]
    return table
