"""Reading the golden values: inventors' code, established packages, R, or independent slow implementations.

``entries("point")`` gives the entries of a family, ``arrays("binary500")`` a data set, ``call(entry)`` runs one.
Entries of kind "part" are building blocks; the test of that part reads them with ``parts("point", "eice")``.
"""

from __future__ import annotations

import csv
import functools
import json
import math
import re

import numpy as np

import calibrary as cal
from paths import REFERENCE

ROOT = REFERENCE


@functools.cache
def entries(family):
    return json.loads((ROOT / f"{family}.json").read_text())


def parts(family, id):
    return [e for e in entries(family) if e["kind"] == "part" and e["id"] == id]


@functools.cache
def columns(name):
    with open(ROOT / "data" / f"{name}.csv", newline="") as f:
        rows = list(csv.reader(f))
    return {n: np.array([float(r[i]) for r in rows[1:]]) for i, n in enumerate(rows[0])}


def arrays(data):
    """Labels, probabilities and all columns of a data set (a file stem, or inline {"y", "c"})."""
    if isinstance(data, dict):
        return np.array(data["y"]), np.array(data["c"], dtype=float), {}
    cols = columns(data)
    y = cols["y"].astype(int)
    if "c" in cols:
        return y, cols["c"], cols
    k = sum(n[0] == "c" and n[1:].isdigit() for n in cols)
    return y, np.column_stack([cols[f"c{j}"] for j in range(k)]), cols


def number(value):
    if value is None:
        return math.nan
    if isinstance(value, list):
        return [number(v) for v in value]
    return float(value) if isinstance(value, str) else value


def weights_of(rule, n):
    assert rule == "1+i%3"
    return 1.0 + np.arange(n) % 3


def groups_of(text, p, cols):
    c = p if p.ndim == 1 else p.max(axis=1)
    if found := re.fullmatch(r"min\(int\((\d+)\*(?:c|c_top)\),(\d+)\)", text):
        return np.minimum((int(found[1]) * c).astype(int), int(found[2]))
    if found := re.fullmatch(r"i(?:%(\d+))?", text):
        i = np.arange(len(c))
        return i % int(found[1]) if found[1] else i
    name, threshold = text.split(">")
    return (cols[name] > float(threshold)).astype(int)


def keywords(entry):
    """Keyword arguments of an entry, with the encodings resolved."""
    params = {k: math.inf if v == "inf" else v for k, v in entry["params"].items()}
    if isinstance(entry["data"], list):
        return params
    y, p, cols = arrays(entry["data"])
    if "sample_weight" in params:
        params["sample_weight"] = weights_of(params["sample_weight"], len(y))
    if "folds" in params:
        params["folds"] = groups_of(params["folds"], p, cols)
    if "groups" in params:
        g = params["groups"]
        params["groups"] = [groups_of(x, p, cols) for x in g] if isinstance(g, list) else groups_of(g, p, cols)
    if isinstance(params.get("features"), list):
        params["features"] = np.column_stack([cols[n] for n in params["features"]])
    if entry.get("lens") is not None:
        params["lens"] = entry["lens"]
    return params


@functools.cache
def detection_file(name):
    return json.loads((ROOT / "data" / name).read_text())


def call(entry):
    """The library's answer to a golden entry of kind "metric" or "test"."""
    run = cal.test if entry["kind"] == "test" else cal.compute
    if isinstance(entry["data"], list):
        data = [detection_file(name) for name in entry["data"]]
    else:
        data = arrays(entry["data"])[:2]
    # a golden test is that of the metric's own law, which `test` leaves where it does not keep its level
    own = {"method": "asymptotic"} if entry["kind"] == "test" else {}
    result = run(entry["id"], *data, **{**own, **keywords(entry)})
    value = result if entry.get("field") is None else getattr(result, entry["field"])
    return value if entry.get("index") is None else value[entry["index"]]


def assert_close(got, entry):
    np.testing.assert_allclose(
        np.asarray(got, dtype=float),
        np.asarray(number(entry["value"]), dtype=float),
        rtol=entry.get("rtol", 1e-7),
        atol=entry.get("atol", 1e-12),
    )
