"""Make the embedded demonstration predictions: held-out probabilities of real classifiers.

Run with scikit-learn installed: ``python scripts/make_demo_predictions.py``. Data sets that ship with scikit-learn
(breast cancer, digits); every probability comes from a model that did not see its row.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

OUT = Path(__file__).parents[1] / "src" / "calibrary" / "datasets"
FOLDS = StratifiedKFold(10, shuffle=True, random_state=0)


def held_out(model, data):
    return cross_val_predict(model, data.data, data.target, cv=FOLDS, method="predict_proba")


def write(name, header, rows):
    with open(OUT / name, "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(header)
        writer.writerows(rows)


def main():
    OUT.mkdir(exist_ok=True)
    cancer = load_breast_cancer()
    malignant = list(cancer.target_names).index("malignant")
    columns = {
        "naive_bayes": held_out(GaussianNB(), cancer)[:, malignant],
        "logistic": held_out(make_pipeline(StandardScaler(), LogisticRegression()), cancer)[:, malignant],
    }
    labels = cancer.target_names[cancer.target]
    size = np.where(cancer.data[:, 0] > np.median(cancer.data[:, 0]), "large", "small")
    rows = zip(labels, size, *(c.tolist() for c in columns.values()), strict=True)
    write("breast_cancer.csv", ["diagnosis", "size", *columns], rows)

    digits = load_digits()
    p = np.round(held_out(RandomForestClassifier(200, min_samples_leaf=2, random_state=0), digits), 6)
    p[np.arange(len(p)), p.argmax(axis=1)] += 1.0 - p.sum(axis=1)  # rounding must not break the sum
    rows = ([y, *(f"{v:.6f}" for v in row)] for y, row in zip(digits.target, p, strict=True))
    write("digits.csv", ["digit", *(f"p{k}" for k in range(10))], rows)


if __name__ == "__main__":
    main()
