"""A table with the names of its columns, wherever labels and probabilities are passed."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal

pd = pytest.importorskip("pandas", reason="package: pandas")

RNG = np.random.default_rng(0)
P = RNG.random(120).round(3)
Y = (RNG.random(120) < P).astype(int)
SITE = np.where(np.arange(120) % 3 == 0, "north", "south")
WHO = np.arange(120) // 4
FRAME = pd.DataFrame({"outcome": Y, "risk": P, "site": SITE, "patient": WHO, "copies": 1 + np.arange(120) % 2})
NAMED = {"label": "outcome", "prob": "risk"}


def test_every_verb_takes_names():
    drawn = {"n_resamples": 19, "rng": 0}
    assert cal.expected_calibration_error(FRAME, **NAMED) == cal.ece(Y, P)
    assert cal.ece(FRAME, **NAMED, n_bins=4, sample_weight="copies") == cal.ece(
        Y, P, n_bins=4, sample_weight=FRAME.copies
    )
    assert cal.compute("bs", FRAME, **NAMED) == cal.bs(Y, P)
    assert cal.predictions(FRAME, **NAMED).y.tolist() == Y.tolist()
    by_name = cal.interval("ece", FRAME, **NAMED, units="patient", **drawn)
    assert (by_name.low, by_name.high) == tuple(cal.interval("ece", Y, P, units=WHO, **drawn))
    assert cal.test("spiegelhalter", FRAME, **NAMED).pvalue == cal.test("spiegelhalter", Y, P).pvalue
    assert cal.evaluate(FRAME, **NAMED, metrics="bs")["bs"] == cal.bs(Y, P)
    assert cal.verdict("ece<0.5", FRAME, **NAMED, **drawn).passed
    assert cal.verdict("ece<0.5", FRAME, **NAMED, **drawn).require()
    found = cal.report(FRAME, **NAMED, by="site", units="patient", metrics=["ece"], n_resamples=39)
    assert {row["name"] for row in next(s for s in found.sections if s.key == "affected").data["segments"]} >= {
        "site = north",
        "site = south",
    }


def test_parts_are_named_by_one_column_or_several():
    assert dict(cal.ece(FRAME, **NAMED, by="site").to_dict()) == dict(cal.ece(Y, P, by=SITE).to_dict())
    several = cal.ece(FRAME, **NAMED, by=["site", "copies"])
    assert len(several.values) == 4


@pytest.mark.parametrize("kind", ["polars", "lazy", "arrow"])
def test_tables_of_other_packages(kind):
    columns = {"outcome": Y, "p0": 1 - P, "p1": P}
    if kind == "arrow":
        table = pytest.importorskip("pyarrow", reason="package: pyarrow").table(columns)
    else:
        pl = pytest.importorskip("polars", reason="package: polars")
        table = pl.DataFrame(columns) if kind == "polars" else pl.LazyFrame(columns)
    assert cal.ece(table, label="outcome", prob="p1") == cal.ece(Y, P)
    assert cal.bs(table, label="outcome", prob=["p0", "p1"]) == cal.bs(Y, np.column_stack([1 - P, P]))


@pytest.mark.parametrize(
    ("given", "keywords", "words"),
    [
        ((FRAME,), {"label": "outcome"}, "prob is missing: name the columns"),
        ((FRAME,), {"prob": "risk"}, "label is missing"),
        (
            (FRAME,),
            {"label": "outcom", "prob": "risk"},
            "label='outcom' is not a column of the table: did you mean",
        ),
        ((FRAME,), {"label": "outcome", "prob": ["risk", "risks"]}, "prob='risks' is not a column"),
        ((FRAME,), {**NAMED, "by": "sites"}, "by='sites' is not a column"),
        ((FRAME, P), NAMED, "leave y_prob out"),
        ((Y,), NAMED, "pass a table first"),
    ],
)
def test_an_invalid_table_gives_one_sentence(given, keywords, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cal.ece(*given, **keywords)
    with pytest.raises((ValueError, TypeError), match=words):
        cal.compute("ece", *given, **keywords)
