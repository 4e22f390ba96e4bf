"""The settings of a report: one object, the keywords that fill it, and what units, blocks and time do to a page."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.cli.main import app
from calibrary.cli.report import ReportCommand
from calibrary.reporting.figures import picture
from calibrary.reporting.settings import SETTINGS, ReportSettings
from each import each

pytestmark = pytest.mark.usefixtures("outlined")

Y, P, _ = cal.datasets.breast_cancer()
N = len(Y)
DIGITS, OF_DIGITS, *_ = cal.datasets.digits()
M = len(DIGITS)
QUICK = {"metrics": ["ece", "bs"], "n_resamples": 19}


# -- one object -----------------------------------------------------------------------------------------


def test_an_object_says_what_keywords_say():
    asked = {
        **QUICK, "units": np.arange(N) // 4, "time": np.arange(N) // 150, "by": {"third": np.arange(N) % 3},
        "thresholds": [0.2], "about": {"title": "Biopsies", "notes": ["a note"]}, "n_bins": 10,
    }  # fmt: skip
    assert cal.report(Y, P, **asked).to_dict() == cal.report(Y, P, settings=cal.ReportSettings(**asked)).to_dict()


def test_a_keyword_beside_the_object_changes_that_setting_alone():
    settings = cal.ReportSettings(metrics=["ece"], n_resamples=0, n_bins=10, options={"norm": 2})
    page = cal.report(Y, P, settings=settings, n_bins=5)
    assert page.evaluation["ece"] == cal.expected_calibration_error(Y, P, n_bins=5, norm=2)
    assert settings.n_bins == 10
    assert cal.report(Y, P, settings=settings, norm=1).evaluation["ece"] == cal.expected_calibration_error(
        Y, P, n_bins=10
    )


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"n_resample": 3}, TypeError, "report takes no 'n_resample': did you mean 'n_resamples'"),
        ({"tolerence": 3}, TypeError, "report takes no 'tolerence': did you mean 'tolerance'"),
        ({"options": {}}, TypeError, "no metric here takes 'options'"),
        ({"settings": {"n_bins": 3}}, TypeError, "pass calibrary.ReportSettings"),
        ({"primary": "eec"}, LookupError, "eec"),
        ({"thresholds": [20]}, cal.RefusedError, r"thresholds\[0\]=20: pass a number between 0 and 1, such as 0.2"),
        ({"thresholds": "0.5"}, cal.RefusedError, "thresholds='0.5': pass a number between 0 and 1"),
        ({"workers": "two"}, cal.RefusedError, "workers='two': pass a whole number of at least 1"),
        ({"ordinal": "zzz"}, cal.RefusedError, "ordinal='zzz' is neither True nor False"),
        (
            {"confidence_level": 95},
            cal.RefusedError,
            "confidence_level=95: pass a number between 0 and 1, such as 0.95",
        ),
        *(
            pytest.param(
                {name: "zzz"},
                cal.RefusedError,
                f"{name}='zzz' is no .*: pass what calibrary",
                marks=pytest.mark.filterwarnings("ignore:.* is an old name"),
            )
            for name in ("sampled", "judge", "target", "shift", "ensemble", "outside")
        ),
        ({"sections": ["zzz"]}, cal.RefusedError, r"sections\[0\]='zzz' has no section: pass what calibrary.sampled_a"),
        ({"sections": 3}, cal.RefusedError, "sections=3: pass a list of results"),
        ({"about": "zzz"}, cal.RefusedError, "about='zzz': pass a dict"),
        ({"about": {"titel": "x"}}, cal.RefusedError, r"about\['titel'\] is not known: did you mean 'title'"),
        ({"about": {"author": 3}}, cal.RefusedError, r"about\['author'\]=3: pass text"),
        ({"about": {"notes": [3]}}, cal.RefusedError, r"about\['notes'\]=\[3\]: pass a list of sentences"),
        (
            {"about": {}, "title": "x"},
            TypeError,
            "title= is the old name of about={'title'",
        ),
        (
            {"by": {"a": Y}, "groups": Y},
            TypeError,
            "groups= is the old name of by={'group'",
        ),
        ({"units": np.zeros(N)}, ValueError, "units has one value only"),
        ({"units": np.zeros(3)}, ValueError, "units has 3 rows but y_true has 569"),
        ({"units": np.arange(N), "blocks": 3}, TypeError, "pass one of them"),
        ({"blocks": 300}, ValueError, "blocks=300 is too long for 569 rows"),
        ({"time": ["soon"] * N}, ValueError, r"time\[0\] = 'soon' is not a date"),
    ],
)
def test_what_cannot_be_asked_is_refused_as_before(asked, error, said):
    with pytest.raises(error, match=said):
        cal.report(Y, P, **{"metrics": ["ece"], "n_resamples": 19, **asked})


RARE = {"blocks", "average", "r", "weight_type", "ordinal"}


def test_every_setting_is_a_keyword_that_help_shows_and_both_texts_explain():
    shown = inspect.signature(cal.report).parameters
    settings = {f.name: f for f in dataclasses.fields(ReportSettings) if f.name != "options"}
    assert tuple(settings) == SETTINGS
    assert set(settings) - set(shown) == RARE
    assert {name: f.default for name, f in settings.items() if name not in RARE} == {
        name: shown[name].default for name in settings if name not in RARE
    }
    for text in (inspect.getdoc(cal.report), inspect.getdoc(ReportSettings)):
        told = {name for line in re.findall(r"^([\w, ]+)(?: :.*)?$", text, re.M) for name in line.split(", ")}
        assert set(settings) - RARE <= told
        assert all(f"``{name}``" in text for name in RARE) or told >= RARE | {"options"}


def test_a_report_has_at_most_thirty_parameters():
    assert len(inspect.signature(cal.report).parameters) <= 30


# -- the keywords of 0.3 --------------------------------------------------------------------------------

RESULTS = {
    "judge": lambda: cal.judged("bs", Y, P, judge=Y, n_resamples=19, rng=0),
    "target": lambda: cal.under_shift("bs", Y, P, P, n_resamples=19, rng=0),
    "shift": lambda: cal.shift_curve("bs", Y, P, groups=np.arange(N) % 3, n_resamples=99, rng=0),
    "outside": lambda: cal.outside_rows([None, *Y[1:]], P, n_resamples=19, rng=0),
    "ensemble": lambda: cal.ensemble(Y, np.column_stack([P, P * 0.9 + 0.05]), n_resamples=19, rng=0),
    "sampled": lambda: cal.sampled_answers([list("aab"), list("abb")] * 30, [[1, 1, 0], [1, 0, 0]] * 30, rng=0),
}
#: The rows of the page, where they are not all.
PAGE_OF = {"outside": (Y[1:], P[1:]), "sampled": (Y[:60], P[:60])}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_about_other_rows_is_refused(name):
    found, quick = RESULTS[name](), {"metrics": ["bs"], "n_resamples": 0}
    n = len(PAGE_OF.get(name, (Y, P))[0])
    with pytest.raises(
        cal.RefusedError, match=rf"sections\[0\] is about {n} rows and the page about 400: pass a result"
    ):
        cal.report(Y[-400:], P[-400:], **quick, sections=[found])
    if name != "sampled":  # it has no labels of the rows
        other = np.roll(PAGE_OF.get(name, (Y, P))[0], 1)
        with pytest.raises(
            cal.RefusedError, match=r"sections\[0\] has other labels than the page \(row \d+: [01] and [01]"
        ):
            cal.report(other, P[-n:], **quick, sections=[found])


def test_a_result_with_an_index_is_for_a_page_with_this_index():
    pd = pytest.importorskip("pandas")
    y, p, groups = pd.Series(Y), pd.Series(P), np.arange(N) % 3
    human = y.astype(object).where(y.index % 2 == 0, pd.NA)
    found = [cal.judged("bs", human, p, judge=Y, n_resamples=19, rng=0)]
    kept = human.notna()
    page = cal.report(y[kept], p[kept], metrics=["bs"], n_resamples=0, sections=found)
    assert page.sections[0].key == "judge"
    moved = y[kept].set_axis(np.flatnonzero(kept) + 1)
    with pytest.raises(
        cal.RefusedError, match=r"sections\[0\] and y_true have different indexes \(row 0 is 0 in sections"
    ):
        cal.report(moved, P[kept], metrics=["bs"], n_resamples=0, sections=found)
    curve = cal.shift_curve("bs", y, p, groups=groups, n_resamples=99, rng=0)
    assert cal.report(cal.predictions(y, p), metrics=["bs"], n_resamples=0, sections=[curve]).sections[0].key == "shift"


def test_jobs_is_the_old_name_of_workers():
    quick = {"metrics": ["bs"], "n_resamples": 0}
    with pytest.warns(DeprecationWarning, match="^jobs= of report is an old name: use workers=...$"):
        old = cal.report(Y, P, **quick, jobs=1)
    assert old.question.workers == 1
    with pytest.warns(DeprecationWarning, match="^ReportSettings.jobs is an old name"):
        assert cal.ReportSettings(workers=3).jobs == 3


def test_the_axis_of_the_diagrams_is_a_setting():
    asked = {"metrics": ["ece"], "n_resamples": 19}
    usual, odds, part = (cal.report(Y, P, **asked, axis=a) for a in ("auto", "log odds", (0.2, 0.5)))
    captions = [page.figures[0].caption for page in (usual, odds, part)]
    assert [page.live.axis for page in (usual, odds, part)] == ["probability", "log odds", "probability"]
    assert ["log-odds axes" in caption for caption in captions] == [False, True, False]
    assert "20%" in captions[2]
    helped = [
        f.caption for page in (usual, odds) for s in page.sections for f in s.figures if f.name.startswith("Before")
    ]
    assert ["log-odds axes" in caption for caption in helped] == [False, True]
    for wrong, said in (
        ("zzz", "'zzz' is not known: choose from"),
        ((0.5, 0.2), "not a part of 0 to 1"),
        (object(), ""),
    ):
        with pytest.raises(cal.RefusedError, match=f"^axis(=.*)?{said}"):
            cal.ReportSettings(axis=wrong)


def test_several_models_in_a_dict_are_refused_with_what_to_do():
    with pytest.raises(
        cal.RefusedError, match=r"y_prob is a dict with the keys \['a', 'b'\]: pass an array .*compare\("
    ):
        cal.report(Y, {"a": P, "b": P})


ABOUT = {"title": "a", "purpose": "b", "author": "c", "date": "d", "notes": ("e",), "source": {"name": "f.csv"},
         "command": "g"}  # fmt: skip


def test_what_stands_on_the_page_is_also_taken_as_keywords_of_0_3():
    quick = {"metrics": ["bs"], "n_resamples": 0}
    with pytest.warns(DeprecationWarning, match="= of report is an old name") as told:
        page = cal.report(Y, P, **quick, **ABOUT)
    told = [w for w in told if w.category is DeprecationWarning]
    assert {w.filename for w in told} == {__file__}
    for name in ABOUT:
        assert any(str(w.message).startswith(f"{name}= of report is an old name: use about={{'{name}'") for w in told)
    found = page.to_dict()
    assert found == cal.report(Y, P, **quick, about=ABOUT).to_dict()
    shown = json.dumps(found, default=str)
    assert [value for value in ("a", "b", "c", "d", "e", "f.csv", "g") if f'"{value}"' not in shown] == []


@each(ABOUT)
def test_settings_take_the_keywords_of_0_3(name):
    with pytest.warns(DeprecationWarning, match=f"^{name}= of .* is an old name"):
        old = cal.ReportSettings(**{name: ABOUT[name]})
    assert old == cal.ReportSettings(about={name: ABOUT[name]})
    with pytest.warns(DeprecationWarning, match=f"ReportSettings.{name} is an old name"):
        assert getattr(old, name) == ABOUT[name]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_makes_its_own_section_and_is_also_taken_as_a_keyword_of_0_3(name):
    found, quick = RESULTS[name](), {"metrics": ["bs"], "n_resamples": 0}
    y, p = PAGE_OF.get(name, (Y, P))
    page = cal.report(y, p, **quick, sections=[found])
    assert page.sections[0].key == name
    with pytest.warns(DeprecationWarning, match=rf"^{name}= of report is an old name: use sections=\[calibrary"):
        old = cal.report(y, p, **quick, **{name: found})
    assert json.dumps(old.to_dict(), default=str) == json.dumps(page.to_dict(), default=str)
    with pytest.warns(DeprecationWarning, match="old name"):
        assert getattr(cal.ReportSettings(sections=[found]), name) is found


def test_groups_are_a_column_of_by_with_numbers_as_names():
    with pytest.warns(DeprecationWarning, match="^groups= of report is an old name: use by={'group': ...}"):
        old = cal.report(Y, P, metrics=["ece"], n_resamples=19, groups=np.arange(N) % 12)
    assert [row.name for row in old.groups] == [str(i) for i in sorted(range(12), key=str)]
    today = cal.report(Y, P, metrics=["ece"], n_resamples=19, by={"group": (np.arange(N) % 12).astype(str)})
    assert old.groups == today.groups


def test_several_results_have_sections_in_the_order_of_the_page_and_a_second_one_of_a_kind_its_number():
    judged, target = RESULTS["judge"](), RESULTS["target"]()
    page = cal.report(Y, P, metrics=["bs"], n_resamples=0, sections=[target, judged, judged])
    assert [s.key for s in page.sections][:3] == ["judge", "judge-2", "target"]
    with pytest.raises(cal.RefusedError, match="sections holds two results of sampled_answers"):
        cal.ReportSettings(sections=[RESULTS["sampled"]()] * 2)


def test_a_validation_has_a_section():
    linear = pytest.importorskip("sklearn.linear_model")
    found = cal.validate(
        linear.LogisticRegression(), P[:, None], Y, metrics=["bs"], n_resamples=5, rng=0, progress=False
    )
    section = cal.report(Y, P, metrics=["bs"], n_resamples=0, sections=found).sections[0]
    assert (section.key, section.sentences[0]) == ("validation", found.sentence)
    assert section.data["metrics"][0]["corrected"] == found["bs"].corrected
    assert len(section.figures) == 4
    with pytest.raises(cal.RefusedError, match=r"sections\[0\] is a validation on 569 rows and the page is about 500"):
        cal.report(Y[:500], P[:500], metrics=["bs"], n_resamples=0, sections=found)
    completed = dataclasses.replace(found, imputations=2)
    both = cal.report(np.tile(Y, 2), np.tile(P, 2), metrics=["bs"], n_resamples=0, sections=completed)
    assert both.notes == ("The validation is about 569 rows in 2 completed data sets: the 1,138 rows of this page.",)


def test_the_command_asks_with_the_same_object(tmp_path):
    rows = [f"{y},{p:.6f},u{i // 4},{2000 + i // 150},{'ab'[i % 2]}" for i, (y, p) in enumerate(zip(Y, P, strict=True))]
    path = tmp_path / "p.csv"
    path.write_text("\n".join(["y,p,patient,year,site", *rows]))
    typed = ["--unit", "patient", "--time", "year", "--by", "site", "--threshold", "0.3", "--metrics", "ece"]
    saved = tmp_path / "r.json"
    done = CliRunner().invoke(app, ["report", str(path), *typed, "--resamples", "19", "-o", str(saved), "-q"])
    assert done.exit_code == 0, done.output
    page = json.loads(saved.read_text())
    command = ReportCommand(
        [str(path)], unit="patient", time="year", by=["site"], threshold=[0.3], metrics=["ece"], resamples=19,
        quiet=True,
    )  # fmt: skip
    found = command.read(str(path))
    model = next(iter(found.models))
    settings = command.settings_of(found, model)
    assert settings.units.tolist() == [f"u{i // 4}" for i in range(N)]
    ours = json.loads(json.dumps(cal.report(found.predictions(model), settings=settings).to_dict()))
    for part in ("headline", "findings", "evaluation", "short_list", "sections"):
        assert _without_command(page[part]) == _without_command(ours[part]), part


def _without_command(part):
    """The part of a page as text, without the line of provenance that says how it was asked for."""
    told = re.sub(r'\["command", "[^]]*"\],? ?|"command": "(\\"|[^"])*",? ?', "", json.dumps(part))
    return told.replace("NaN", "null")


# -- what belongs together, and when ----------------------------------------------------------------------


PAGES = {
    "units": {
        "data": (Y, P),
        "asked": {
            "units": np.arange(N) // 4, "time": 2000 + np.arange(N) // 150, "by": {"third": np.arange(N) % 3},
            "thresholds": [0.2, 0.6],
        },
        "values": [0.05722875541018515, 0.058002142581228086],
        "sums": {"smooth": 0.055994603244655564, "mean": 0.020287885207952015},
        "benefit": [(0.27773106448562657, 0.3778049636338814), (0.24574469809150315, 0.35530978345506975)],
        "periods": {
            "2000": 0.10743519449199844, "2001": 0.07087151708562951, "2002": 0.022170253766630777,
            "2003": 0.04227670348151019,
        },
        "alarm": "2000",
        "segments": [0.05193602075473199, 0.06932965618518817, 0.06382007353097192],
        "told": ("units", "one value for each of 569 rows"),
    },
    "blocks": {
        "data": (Y, P),
        "asked": {"blocks": 9, "time": np.datetime64("2026-01-01") + np.arange(N), "thresholds": [0.5]},
        "values": [0.05722875541018515, 0.058002142581228086],
        "sums": {"smooth": 0.055994603244655564, "mean": 0.020287885207952015},
        "benefit": [(0.25089226507366463, 0.37125184740436695)],
        "periods": {"2026": 0.06924288393073887, "2027": 0.04009285756262575},
        "alarm": "2026-02-12",
        "told": ("resampled together", "blocks of 9 in time order"),
    },
    "several classes": {
        "data": (DIGITS, OF_DIGITS),
        "asked": {"units": np.arange(M) // 3, "by": {"half": np.arange(M) % 2}},
        "values": [0.011588451068304063, 0.21088828269337784],
        "sums": {"smooth": 0.21068023817473572, "mean": 0.2106802381747357},
        "segments": [0.21133855839822027, 0.21128616703786193],
        "told": ("units", "one value for each of 1,797 rows"),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_page_with_units_blocks_and_time_says_what_it_said_in_0_2(name):
    known = PAGES[name]
    page = cal.report(*known["data"], **QUICK, **known["asked"])
    made = {s.key: s.data for s in page.sections}
    assert [r.value for r in page.evaluation.rows] == pytest.approx(known["values"], rel=1e-12)
    assert page.decision.path == "units"
    assert {id: page.decision.row(id).value for id in known["sums"]} == pytest.approx(known["sums"], rel=1e-9)
    assert page.notes[-1].startswith("Units, with all their rows, were resampled")
    what, value = known["told"]
    assert made["provenance"][what] == value
    if "benefit" in known:
        ends = [(d["low"], d["high"]) for d in made["decisions"]["decisions"]]
        assert ends == [pytest.approx(pair, rel=1e-9) for pair in known["benefit"]]
    if "periods" in known:
        assert {p["name"]: p["value"] for p in made["time"]["periods"]} == pytest.approx(known["periods"], rel=1e-9)
        assert made["time"]["alarm"]["at"] == known["alarm"]
    if "segments" in known:
        assert [s["value"] for s in made["affected"]["segments"]] == pytest.approx(known["segments"], rel=1e-9)
    else:
        assert "affected" not in made


def test_figures_take_rows_one_by_one_and_the_table_does_not():
    alone, together = (cal.report(Y, P, **QUICK, **more) for more in ({}, {"blocks": 40}))
    assert (alone.decision.path, together.decision.path) == ("rows", "units")
    assert alone.evaluation.row("bs").standard_error != together.evaluation.row("bs").standard_error
    smooth = [next(f for f in page.figures if f.name.startswith("Smooth")) for page in (alone, together)]
    assert picture(smooth[0]) == picture(smooth[1])
