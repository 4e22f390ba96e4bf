"""The sections of a trial: centres and precision, on the page and on the command line."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import calibrary as cal
from paths import ROOT

FILE = ROOT / "tests" / "reference" / "trial" / "centres.csv"
ROWS = list(csv.DictReader(FILE.read_text().splitlines()))
CENTRE = np.array([row["centre"] for row in ROWS])
Y, P = np.array([int(row["y"]) for row in ROWS]), np.array([float(row["p"]) for row in ROWS])
QUICK = {"metrics": ["oe", "cis", "auroc"], "primary": "oe", "n_resamples": 39}


def section_of(report, key):
    return next((s for s in report.sections if s.key == key), None)


@pytest.fixture(scope="module")
def page():
    return cal.report(Y, P, centre=CENTRE, **QUICK)


def test_the_section_of_centres_is_what_pooled_says(page):
    found, shown = cal.pooled(Y, P, centre=CENTRE), section_of(page, "centres")
    assert shown.data == found.to_dict() or json.dumps(shown.data) == json.dumps(found.to_dict())
    means, each, without, notes = shown.tables
    assert [row[0] for row in means.rows] == list(found.metrics)
    assert means.rows[0][2:5] == ("1.002", "0.762 to 1.317", "0.473 to 2.121")
    assert [row[0] for row in each.rows] == sorted(set(CENTRE))
    assert each.rows[-1][-1].endswith("left out: it has no events")
    assert without.rows[0][2] == "centre D"  # 80 events of 45 expected
    assert "Hartung and Knapp's factor" in notes.rows[0][1]
    assert "in a new centre 0.473 to 2.121" in shown.sentences[0]
    assert shown.sentences[1] == "Centre 'centre I' is left out of cis.slope, citl, auroc: it has no events."
    assert "With 9 centres the interval of a new centre is somewhat too narrow" in shown.sentences[2]


def test_the_figures_are_drawn(page):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    figures = section_of(page, "centres").figures
    assert [f.name for f in figures] == [
        "Ratio O/E of observed to expected events (oe) in each centre", "Calibration slope (cis.slope) in each centre",
        "C statistic (auroc) in each centre", "Calibration curve over centres",
    ]  # fmt: skip
    for figure in figures:
        drawn = figure.draw().figure
        assert drawn.axes[0].get_xlabel()
        plt.close(drawn)


def test_four_times_the_rows_halve_the_intervals(page):
    shown = section_of(page, "precision")
    assert "half of it needs about 5,600 rows" in shown.sentences[0]
    rows = np.tile(np.arange(len(Y)), 4)
    wide = shown.data["widths"]
    assert list(wide) == ["oe", "cis.slope", "auroc"]
    assert f"{wide['auroc']:.3f} for the C statistic" in shown.sentences[0]
    for metric in ("oe", "cis.slope"):  # the interval of the C statistic is by few draws on this page
        low, high = cal.interval(metric, Y[rows], P[rows], n_resamples=199, rng=0)
        assert high - low == pytest.approx(wide[metric] / 2, rel=0.1), metric
        assert f"{wide[metric]:.3f} for" in shown.sentences[0]


def test_without_intervals_or_with_more_classes_nothing_is_said_of_precision():
    assert section_of(cal.report(Y, P, **{**QUICK, "n_resamples": 0}), "precision") is None
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    three = cal.report(rng.integers(0, 3, 200), p, metrics=["ece"], n_resamples=39)
    assert section_of(three, "precision") is None
    assert section_of(three, "centres") is None


def test_the_checklist_answers_size_clusters_and_their_differences(page):
    items = page.tripod()
    assert items["10"].startswith("1400 rows. Width of") or items["10"].startswith("1,400 rows. Width of")
    assert "pooled by random effects" in items["12d"]
    assert "in a new centre 0.473 to 2.121" in items["23b"]
    assert "left out of cis.slope" in items["23b"]
    assert items["11"] == "not given"
    plain = cal.report(Y, P, metrics=["oe"], n_resamples=0).tripod()
    assert plain["12d"] == plain["23b"] == "not given"
    about = {"source": {"rows_read": 1407, "dropped": {"missing values": 7}}}
    dropped = cal.report(Y, P, metrics=["oe"], n_resamples=0, about=about)
    assert dropped.tripod()["11"] == "7 of 1,407 rows left out: 7 missing values"


@pytest.mark.usefixtures("outlined")
def test_a_saved_report_keeps_both_sections(page, tmp_path):
    page.save(tmp_path / "page.json")
    from calibrary.reporting.stored import from_json

    (again,), _ = from_json(tmp_path / "page.json")
    for key in ("centres", "precision"):
        assert section_of(again, key).sentences == section_of(page, key).sentences


def test_units_are_said_to_be_independent_within_centres():
    found = cal.report(Y, P, centre=CENTRE, units=np.arange(len(Y)) // 2, **{**QUICK, "n_resamples": 0})
    assert "Single segments, centres and periods treat rows as independent" in found.notes[-1]


def test_a_result_of_pooled_is_a_section_of_its_own():
    own = cal.pooled(Y, P, centre=CENTRE, metrics=["auroc", "bs"])
    shown = section_of(cal.report(Y, P, sections=[own], **{**QUICK, "n_resamples": 0}), "centres")
    assert [row[0] for row in shown.tables[0].rows] == ["auroc", "bs"]
    assert [f.name for f in shown.figures] == ["C statistic (auroc) in each centre", "Calibration curve over centres"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"centre": ["a"] * len(Y)}, "centre has 1 value, 'a'"),
        ({"centre": CENTRE[:9]}, r"centre has shape \(9,\) and y_true has 1,400 rows"),
        ({"centre": CENTRE, "sample_weight": np.full(len(Y), 2.0)}, "takes no weights"),
        ({"centre": CENTRE, "y": Y * 0}, "no events in any centre"),
    ],
)
def test_what_cannot_be_pooled_is_refused_before_anything_is_computed(call, sentence, monkeypatch):
    from calibrary.reporting import compose

    monkeypatch.setattr(compose, "evaluate_data", lambda *a, **k: pytest.fail("the table was computed first"))
    y = call.pop("y", Y)
    with pytest.raises(cal.RefusedError, match=sentence):
        cal.report(y, P, **call)


@pytest.mark.usefixtures("outlined")
def test_the_command_line_takes_the_column_of_the_centres(tmp_path, command):
    out = tmp_path / "page.json"
    given = ("--label", "y", "--prob", "p", "--metrics", "oe", "--resamples", 0)
    status, printed, said = command("report", FILE, *given, "--centre", "centre", "-o", out)
    assert status == 0, said
    assert "in a new centre 0.473 to 2.121" in " ".join(printed.split())
    saved = json.loads(out.read_text())
    assert any(s["key"] == "centres" for s in saved["sections"])
    status, _, said = command("report", FILE, *given, "--centre", "hospital")
    assert status == 2
    assert "hospital" in said
    one = tmp_path / "gone.csv"
    lines = FILE.read_text().splitlines()
    at = lines[0].split(",").index("centre")
    cells = lines[3].split(",")
    cells[at] = ""
    one.write_text("\n".join([*lines[:3], ",".join(cells), *lines[4:]]))
    status, _, said = command("report", one, *given, "--centre", "centre")
    assert status == 2
    assert "centre" in said
