"""The data that the names of the review are tried on, and what is computed there without looking a name up.

``tests/review_names.csv`` holds one row for every name printed in the review's Table 2 or its text: the id and the
settings it must mean and the value that gives, or the ids among which it leaves the choice. ``python
tests/review_names.py`` writes the values anew (by explicit calls of the metrics' functions, never by a name).
"""

from __future__ import annotations

import csv
import functools
import json
import pathlib
import warnings

import numpy as np

import calibrary as cal
from calibrary.metrics.machinery.entry import ENTRIES, FUNCTIONS

FILE = pathlib.Path(__file__).with_name("review_names.csv")
#: Rows that are used: each metric is tried once on each kind of data it takes.
N = 200


@functools.cache
def data(kind):
    """Labels and probabilities of the embedded data, or the two files of boxes."""
    if kind == "boxes":
        folder = pathlib.Path(cal.datasets.__file__).parent
        return str(folder / "demo_ground_truth.json"), str(folder / "demo_results.json")
    y, p, *_ = cal.datasets.digits() if kind == "digits" else cal.datasets.breast_cancer()
    y, p = np.asarray(y)[:N], np.asarray(p)[:N]
    if kind == "breast_cancer":
        return y, 0.02 + 0.96 * p  # no certain failure: log losses stay finite
    sharp = p**1.8  # on both sides of calibrated, so that few metrics agree by chance
    return y, 0.001 + 0.99 * sharp / sharp.sum(axis=1, keepdims=True)


def inputs(id):
    """What a metric needs beyond labels and probabilities."""
    rng = np.random.default_rng(1)
    made = {
        "features": lambda: {"features": rng.normal(size=(N, 2))},
        "groups": lambda: {"groups": rng.integers(0, 3, N)},
        "model": lambda: {"individual": rng.random(N)},
        "consistency": lambda: {"consistency": rng.random(N)},
        "query": lambda: {"k": 20},
    }
    needed = {}
    for need in ENTRIES[id].needs:
        needed.update(made.get(need, dict)())
    return needed


#: Where a metric costs a cross-validation, fewer folds; where boxes are few, no smallest number in a cell.
QUICK = {
    "ece_fott": {"n_bins": 10}, "ece_pl": {"segments": 2, "cv": 3}, "ece_pl3": {"segments": 2, "cv": 3},
    "d_ece": {"min_count": 1},
}  # fmt: skip


def kinds(id, settings):
    """The data on which a name is tried."""
    if ENTRIES[id].data_type == "matches":
        return ("boxes",)
    if ENTRIES[id].needs and "order" not in ENTRIES[id].needs:
        return ("breast_cancer",)
    if ENTRIES[id].default_lens == "binary" or settings.get("lens") == "binary":
        return ("breast_cancer",)
    return ("breast_cancer", "digits")


def numbers(value):
    """A value as a list of numbers."""
    fields = getattr(value, "__dataclass_fields__", None)
    if fields:
        value = [getattr(value, f) for f in fields if isinstance(getattr(value, f), float)]
    return [float(x) for x in np.ravel(value)]


@functools.cache
def explicit(id, settings, kind):
    """The value by the metric's own function with the settings spelled out (as JSON)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        given = {**inputs(id), **QUICK.get(id, {}), **json.loads(settings)}
        return numbers(FUNCTIONS[id](*data(kind), **given))


def rows():
    """What the file says, one dictionary for each name."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    names = rows()
    for row in names:
        if row["id"]:
            told = {
                kind: [float(f"{x:.12g}") for x in explicit(row["id"], row["settings"] or "{}", kind)]
                for kind in kinds(row["id"], json.loads(row["settings"] or "{}"))
            }
            row["value"] = json.dumps({k: v[0] if len(v) == 1 else v for k, v in told.items()})
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["name", "where", "id", "settings", "candidates", "value"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(names)
