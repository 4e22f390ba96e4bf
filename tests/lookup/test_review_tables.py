"""The review's tables on demand, its numbers of rows where they bind, and the law that a method asks for."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
import own
from calibrary.cli.main import app
from calibrary.lookup.study_findings import too_few
from calibrary.metrics.machinery import cards
from paths import ROOT

#: The columns of the review's Table 2, in its order.
PRINTED = ("Metric name", "Type", "Range", "Proper", "HT", "Pros", "Cons", "Ref")


def test_table_2_has_the_reviews_columns_in_its_order_and_ours_beside_them():
    table = cal.catalogue.table2()
    assert table.columns[:8] == PRINTED
    assert [row["row"] for row in table.records] == [str(n) for n in range(1, 83)]
    for row in table.records:
        printed = cards.table2()[row["id"]]
        assert (row["Range"], row["Proper"].lower(), row["HT"].lower()) == (printed.range, printed.proper, printed.test)
        assert row["Ref"].count("[") == len(printed.cites)
        assert cal.catalogue[row["id"]].row == int(row["row"])
    first = table.records[0]
    assert (first["Metric name"], first["Type"], first["Range"], first["Proper"]) == (
        "Brier score",
        "Point",
        "[0, 1]",
        "Yes",
    )
    dss = next(row for row in table.records if row["id"] == "dss")
    assert "any real number" in dss["stated differently"]


@pytest.mark.parametrize("table", [cal.catalogue.table2(), cal.notation()], ids=["table2", "notation"])
def test_a_table_says_the_same_in_every_format(table):
    assert json.loads(table.to_json()) == table.records
    read = list(csv.reader(io.StringIO(table.to_csv())))
    assert read == [list(table.columns), *map(list, table.rows)]
    assert len(table.to_markdown().splitlines()) == len(table) + 2
    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.shape == (len(table), len(table.columns))
    assert frame.iloc[3].tolist() == list(table.rows[3])


def test_the_notation_is_table_1_and_what_our_formulas_add():
    table = cal.notation()
    of_the_review = [row for row in table.rows if row[2].startswith("the review")]
    assert len(of_the_review) == 58
    assert len({row[0] for row in of_the_review}) == 58
    assert {"w_i", "W"} <= {row[0] for row in table.rows if row[2] == "calibrary"}


def test_the_page_of_notation_is_the_table():
    page = (ROOT / "docs/notation.md").read_text(encoding="utf-8")
    for symbol, meaning, source in cal.notation().rows:
        assert f"| `{symbol}` | {meaning} | {source} |" in page


def test_the_command_line_prints_them():
    done = CliRunner().invoke(app, ["explain", "table2", "--format", "csv"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Metric name,Type,Range")
    assert CliRunner().invoke(app, ["explain", "notation"]).stdout.startswith("| symbol")
    assert CliRunner().invoke(app, ["explain", "table2", "--format", "xml"]).exit_code != 0


# -- the review's numbers of rows ------------------------------------------------------------------------


def sample(n):
    rng = np.random.default_rng(0)
    c = rng.uniform(0.01, 0.99, n)
    return (rng.random(n) < c).astype(int), c


@pytest.mark.parametrize(("metric", "n", "said"), [("hl", 100, "400 rows"), ("ece_sweep", 200, "500 rows")])
def test_fewer_rows_than_the_review_asks_for_are_spoken_of(metric, n, said):
    with pytest.warns(cal.CalibrationWarning, match=f"{metric} on {n} rows.*{said}.*in our study it detects"):
        cal.test(metric, *sample(n), rng=0)


@pytest.mark.parametrize(("metric", "n"), [("hl", 400), ("ece_sweep", 500), ("ece", 100)])
def test_enough_rows_are_not_spoken_of(metric, n, recwarn):
    cal.test(metric, *sample(n), rng=0)
    assert not [w for w in recwarn if "the review" in str(w.message)]


def test_a_sample_size_below_the_reviews_has_a_note():
    found = cal.results.SampleSize(156, 0.8, 0.8, 0.1, 0.05, "ece_sweep", "temperature")
    assert "500 rows detect an error of 0.10" in found.note
    assert too_few(cal.catalogue["ece_sweep"], 500) == ""


def test_the_asymptotic_method_of_the_beta_test_is_its_gamma_law():
    y, c = sample(350)
    law = cal.test("sbct", y, c, method="asymptotic")
    assert law.pvalue == own.statistical_beta_calibration_test(y, c, null="gamma").pvalue
    assert law.n_resamples == 0
    with pytest.warns(cal.CalibrationWarning, match="gamma approximation is good from 300 rows on"):
        cal.test("sbct", *sample(200), method="asymptotic")
