"""Small data sets shipped with calibrary, for examples, the demonstration and the tests."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrary.data.checks import Array


class Dataset(NamedTuple):
    """Labels and probabilities, ready for any metric: ``evaluate(*dataset[:2])``."""

    y_true: NDArray[np.intp]
    y_prob: Array
    description: str


def _columns(name: str) -> dict[str, list[str]]:
    with (files("calibrary") / "datasets" / name).open() as f:
        rows = list(csv.reader(f))
    return dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))


def breast_cancer(model: str = "naive_bayes") -> Dataset:
    """Binary: 569 tumours, P(malignant) held out by ten-fold cross-validation.

    ``model`` is "naive_bayes" (over-confident) or "logistic" (about right).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> len(y), round(float(p.mean()), 3)
    (569, 0.352)
    """
    columns = _columns("breast_cancer.csv")
    y = (np.array(columns["diagnosis"]) == "malignant").astype(np.intp)
    return Dataset(y, np.array(columns[model], dtype=float), f"breast cancer, {model} held out by 10-fold CV")


def digits() -> Dataset:
    """Ten classes: 1,797 handwritten digits, random-forest probabilities held out by ten-fold cross-validation.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.datasets.digits().y_prob.shape
    (1797, 10)
    """
    columns = _columns("digits.csv")
    p = np.column_stack([np.array(columns[f"p{k}"], dtype=float) for k in range(10)])
    return Dataset(np.array(columns["digit"], dtype=np.intp), p, "digits, random forest held out by 10-fold CV")


class Answers(NamedTuple):
    """Answers of a language model: ``y_true`` is "was it right", ``y_prob`` the confidence it stated."""

    y_true: NDArray[np.intp]
    y_prob: Array
    description: str
    credit: Array
    question: NDArray[np.str_]
    topic: NDArray[np.str_]


def answers() -> Answers:
    """Simulated: 600 answers of an over-confident language model, three to each of 200 questions on four topics.

    ``credit`` is the partial credit of graders, a label between 0 and 1; ``question`` and ``topic`` say which rows
    belong together. The confidences are the round figures models state, so there are many ties.

    Examples
    --------
    >>> import calibrary as cal
    >>> answers = cal.datasets.answers()
    >>> len(answers.y_true), len(set(answers.y_prob.tolist()))
    (600, 13)
    """
    with (files("calibrary") / "datasets" / "answers.jsonl").open() as f:
        rows = [json.loads(line) for line in f]
    return Answers(
        np.array([row["correct"] for row in rows], dtype=np.intp),
        np.array([row["confidence"] for row in rows], dtype=float),
        "simulated answers of a language model with stated confidence",
        np.array([row["credit"] for row in rows], dtype=float),
        np.array([row["question"] for row in rows]),
        np.array([row["topic"] for row in rows]),
    )
