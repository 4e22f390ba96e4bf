"""Small data sets shipped with calibrary, for examples, the demonstration and the tests."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import one_of
from calibrary.data.checks import Array

if TYPE_CHECKING:
    from calibrary.data import Matches

__all__ = [
    "Answers",
    "Dataset",
    "Risks",
    "Simulated",
    "answers",
    "breast_cancer",
    "detections",
    "digits",
    "ordinal",
    "overconfident_curve",
    "review_example",
    "risks",
    "three_classes",
]


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
    """Binary: 569 tumours, P(malignant) from ten-fold cross-validation.

    ``model`` is "naive_bayes" (over-confident) or "logistic" (nearly calibrated).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> len(y), round(float(p.mean()), 3)
    (569, 0.352)
    """
    one_of("model", model, ("naive_bayes", "logistic"))
    columns = _columns("breast_cancer.csv")
    y = (np.array(columns["diagnosis"]) == "malignant").astype(np.intp)
    return Dataset(y, np.array(columns[model], dtype=float), f"breast cancer, {model} held out by 10-fold CV")


def digits() -> Dataset:
    """Ten classes: 1,797 handwritten digits, random-forest probabilities from ten-fold cross-validation.

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
    """Answers of a language model: ``y_true`` is 1 if the answer was right, ``y_prob`` is the stated confidence."""

    y_true: NDArray[np.intp]
    y_prob: Array
    description: str
    credit: Array
    question: NDArray[np.str_]
    topic: NDArray[np.str_]


def answers() -> Answers:
    """Simulated: 600 answers of an over-confident language model, three to each of 200 questions on four topics.

    ``credit`` is the partial credit of graders, a label between 0 and 1; ``question`` and ``topic`` show which rows
    belong together. The confidences are round numbers, as models state them, so there are many ties.

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


class Simulated(NamedTuple):
    """Labels drawn from known probabilities: ``truth`` is P(y = 1) of each row, or one column per class."""

    y_true: NDArray[np.intp]
    y_prob: Array
    description: str
    truth: Array


def overconfident_curve(c: Array) -> Array:
    """The true calibration curve of :func:`review_example`: below the diagonal everywhere, 0.574 at 0.7."""
    return c - 0.6 * c * (1.0 - c)


def review_example(n: int = 500, *, rng: int | np.random.Generator = 0) -> Simulated:
    """Simulated: 500 rows of an over-confident model with a known calibration curve, as in Figs. 2 to 5 of the review.

    The review draws 500 confidences and labels from the curve of its Fig. 2 without printing either; here the curve is
    :func:`overconfident_curve` and confidences are uniform.

    Parameters
    ----------
    n : int
    rng : int or Generator

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _, truth = cal.datasets.review_example()
    >>> len(y), round(float((p - truth).mean()), 3)
    (500, 0.1)
    """
    draw = np.random.default_rng(rng)
    c = draw.random(n)
    truth = overconfident_curve(c)
    y = (draw.random(n) < truth).astype(np.intp)
    return Simulated(y, c, "simulated from a known over-confident calibration curve", truth)


def three_classes(n: int = 2000, *, rng: int | np.random.Generator = 0) -> Simulated:
    """Simulated: three classes and a nearly calibrated model that favors class 1, as in Fig. 6 of the review.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _, truth = cal.datasets.three_classes()
    >>> p.shape, bool((p[:, 1] >= truth[:, 1]).all())
    ((2000, 3), True)
    """
    draw = np.random.default_rng(rng)
    truth = draw.dirichlet(np.full(3, 0.9), n)
    y = (truth.cumsum(axis=1) > draw.random((n, 1))).argmax(axis=1)
    stated = truth * np.array([1.0, 1.35, 1.0])
    return Simulated(y, stated / stated.sum(axis=1, keepdims=True), "simulated: three classes, class 1 favored", truth)


def ordinal(n: int = 600, *, rng: int | np.random.Generator = 0) -> Simulated:
    """Simulated: 600 rows of five ordered classes (grades, stages), from a slightly over-confident model.

    The classes are intervals of a normal variable that the model knows up to noise; ``y_prob`` assumes seven tenths of
    the true noise, ``truth`` the true noise. For :func:`calibrary.ranked_probability_score` and similar metrics.

    Parameters
    ----------
    n : int
    rng : int or Generator

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _, truth = cal.datasets.ordinal()
    >>> p.shape, cal.ranked_probability_score(y, truth) < cal.ranked_probability_score(y, p)
    ((600, 5), True)
    """
    from scipy.special import ndtr

    draw = np.random.default_rng(rng)
    known, noise, cuts = draw.normal(0.0, 1.2, n), 0.8, np.array([-1.5, -0.5, 0.5, 1.5])
    y = np.searchsorted(cuts, known + noise * draw.normal(size=n)).astype(np.intp)

    def shares(spread: float) -> Array:
        below = ndtr((cuts - known[:, None]) / spread)
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    return Simulated(y, shares(0.7 * noise), "simulated ordered classes, slightly over-confident", shares(noise))


class Risks(NamedTuple):
    """Outcomes and predicted risks with the site of each row: ``report(y, p, by={"site": site})``."""

    y_true: NDArray[np.intp]
    y_prob: Array
    description: str
    site: NDArray[np.str_]


def risks(n: int = 3000, *, rare: bool = False, rng: int | np.random.Generator = 0) -> Risks:
    """Simulated: a risk model at four sites, too extreme at all sites, and too low at the site "north".

    Parameters
    ----------
    n : int
    rare : bool
        About 3% of the rows have the event, instead of 40%.
    rng : int or Generator

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _, site = cal.datasets.risks()
    >>> round(float(y.mean()), 2), round(float(p.mean()), 2)
    (0.41, 0.39)
    """
    from scipy.special import expit

    draw = np.random.default_rng(rng)
    score = draw.normal(-5.0 if rare else -0.6, 1.6, n)
    site = draw.choice(np.array(["east", "north", "south", "west"]), n)
    centre = -3.6 if rare else -0.5
    truth = expit(centre + 0.7 * (score - centre) + np.where(site == "north", 0.6, 0.0))
    y = (draw.random(n) < truth).astype(np.intp)
    return Risks(y, expit(score), f"simulated risk model at four sites{', rare events' if rare else ''}", site)


def detections() -> Matches:
    """Simulated: detections on small images, matched with their objects, ready for any detection metric.

    The underlying files are in COCO's format; ``calibrary demo detector`` reports on them.

    Examples
    --------
    >>> import calibrary as cal
    >>> found = cal.datasets.detections()
    >>> len(found) > 100
    True
    """
    from calibrary.data.matching import match_detections

    here = files("calibrary") / "datasets"
    return match_detections(str(here / "demo_ground_truth.json"), str(here / "demo_results.json"))


def __dir__() -> list[str]:
    return sorted(__all__)
