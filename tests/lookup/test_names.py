"""Every name means what it says: the names of the review, the settings they carry, and the words for lenses."""

from __future__ import annotations

import json
import math
import pickle
import warnings

import numpy as np
import pytest

import calibrary as cal
import definitions
from calibrary.cli.main import app
from calibrary.data.lens import as_lens
from calibrary.data.sample import sample_of
from calibrary.inference.draw.statistic import as_statistic
from calibrary.lookup import by_name
from calibrary.metrics.machinery.entry import ENTRIES, FUNCTIONS
from calibrary.metrics.machinery.facts import Alias
from calibrary.question import Question
from each import each
from review_names import QUICK, data, explicit, inputs, numbers, rows

NAMES = rows()
MEANT = [row for row in NAMES if row["id"]]
REFUSED = [row for row in NAMES if not row["id"]]
#: One name for every metric with settings: the others are only looked up.
ONE_EACH = list({(row["id"], row["settings"]): row for row in MEANT}.values())
quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def settings(row):
    return json.loads(row["settings"] or "{}")


def told(row):
    return {kind: np.ravel(value) for kind, value in json.loads(row["value"]).items()}


def read_carefully(name):
    """The same name as other people write it."""
    return {name, name.upper(), name.lower(), name.replace("-", " "), name.replace(" ", "_"), name.replace(" ", "-")}


# -- the names of the review -------------------------------------------------------------------------


def test_the_list_holds_the_names_of_the_review():
    in_table = [row for row in NAMES if row["where"] == "Table 2"]
    assert len(in_table) >= 175
    assert len(NAMES) >= 337
    assert len({row["name"] for row in NAMES}) == len(NAMES)
    assert {e.id for e in cal.catalogue.values() if e.row} <= {row["id"] for row in NAMES}


@each(MEANT, name=lambda row: row["name"])
def test_a_name_finds_its_metric_and_its_settings(row):
    for name in read_carefully(row["name"]):
        entry = cal.catalogue[name]
        assert (entry.id, dict(entry.settings)) == (row["id"], settings(row)), name


@each(REFUSED, name=lambda row: row["name"])
def test_a_name_of_several_metrics_is_one_of_them_and_says_the_others_once(row):
    for name in sorted(read_carefully(row["name"]) - set(ENTRIES)):  # an exact id has one meaning
        by_name._warn_of_other_meanings.cache_clear()
        with pytest.warns(cal.CalibrationWarning, match="may also mean") as caught:
            first = cal.catalogue[name]
        others = {entry.id for entry in by_name._meanings(name)} - {first.id}
        assert {first.id} | others == set(row["candidates"].split())
        assert all(f"'{id}': " in str(caught[0].message) for id in others)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cal.catalogue[name] == first  # said once


#: What each of these means here: the metric whose id it is, else whose full name, else the first in Table 2.
GIVEN = {
    "ACE": "ace", "CECE": "cece", "DECE": "dece", "D-ECE": "d_ece", "MSCE": "msce", "SCE": "sce", "TCE": "tce",
    "MCE": "mce", "ICE": "ice", "HL": "hl", "MAE": "mae", "Smooth ECE": "smece", "ECCE": "ecce_mad",
}  # fmt: skip


@each(GIVEN)
def test_names_with_two_meanings_follow_one_rule(name):
    by_name._warn_of_other_meanings.cache_clear()
    with pytest.warns(cal.CalibrationWarning, match="it may also mean"):
        assert cal.catalogue[name].id == GIVEN[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cal.catalogue[GIVEN[name]].id == GIVEN[name]  # an id in its own spelling says nothing


def test_a_name_of_one_number_gives_that_number():
    y, c = data("breast_cancer")
    whole = cal.cox_intercept_slope(y, c)
    numbers_of = {"calibration slope": whole.slope, "calibration intercept": whole.intercept,
                  "calibration-in-the-large": whole.calibration_in_the_large}  # fmt: skip
    for name, value in numbers_of.items():
        assert cal.compute(name, y, c) == value
        assert cal.compute(name.upper(), y, c) == value
        found = cal.interval(name, y, c, n_resamples=39, rng=0)
        assert float(found.low) < value < float(found.high)
        assert np.ndim(cal.test(name, y, c, n_resamples=39, rng=0).pvalue) == 0
        assert pickle.loads(pickle.dumps(cal.catalogue[name])) == cal.catalogue[name]
    assert cal.catalogue["calibration slope"].perfect == 1.0
    assert cal.compute("cis", y, c) == whole


def test_ece_debias_is_on_the_scale_of_the_ece():
    y, c = data("breast_cancer")
    assert cal.compute("ECE-DEBIAS", y, c) == pytest.approx(cal.compute("ce2_db", y, c) ** 0.5)
    assert 0.3 < cal.compute("ECE-DEBIAS", y, c) / cal.compute("ece", y, c) < 2.0
    assert np.isfinite(cal.test("ECE-DEBIAS", y, c, n_resamples=39, rng=0).pvalue)


def test_multinomial_logistic_loss_has_the_reviews_factor():
    y, p = data("digits")
    assert cal.compute("multinomial logistic loss", y, p) == pytest.approx(cal.compute("nll", y, p) / p.shape[1])


@quiet
@each(ONE_EACH, name=lambda row: row["name"])
def test_a_name_gives_the_value_of_the_explicit_call(row):
    """The stored value, the metric's own function with the settings spelled out, and the name agree."""
    given = {**inputs(row["id"]), **QUICK.get(row["id"], {})}
    for kind, value in told(row).items():
        np.testing.assert_allclose(explicit(row["id"], row["settings"] or "{}", kind), value, rtol=1e-7, atol=1e-10)
        by_name = cal.compute(row["name"], *data(kind), **given)
        np.testing.assert_allclose(numbers(by_name), value, rtol=1e-7, atol=1e-10)


#: Names whose value comes from the slow definitions, which know no names at all.
BY_DEFINITION = {
    "RMSCE": lambda y, p: definitions.value("ece", y, p, norm=2),
    "root mean-square calibration error": lambda y, p: definitions.value("ece", y, p, norm=2),
    "ECE": lambda y, p: definitions.value("ece", y, p),
    "confidence-ECE": lambda y, p: definitions.value("ece", y, p, lens="top-label"),
    "CWCE": lambda y, p: definitions.value("ece", y, p, lens="class-wise"),
    "class-wise ECE": lambda y, p: definitions.value("ece", y, p, lens="class-wise"),
    "static calibration error": lambda y, p: definitions.value("ece", y, p, lens="class-wise"),
    "MSECE": lambda y, p: np.mean(each_class("ece", y, p)),
    "WSECE": lambda y, p: np.bincount(y, minlength=width(p)) @ each_class("ece", y, p) / len(y),
    "class-stratified ECE": lambda y, p: each_class("ece", y, p),
    "multiclass-ECE": lambda y, p: definitions.value("ece", y, p, lens="full"),
    "ECE-EM": lambda y, p: definitions.value("ace", y, p),
    "MCE": lambda y, p: definitions.value("mce", y, p),
    "MSE": lambda y, p: definitions.value("bs", y, p),
    "RMSE": lambda y, p: math.sqrt(definitions.value("bs", y, p)),
    "total variation": lambda y, p: definitions.value("mae", y, p),
    "spherical score": lambda y, p: definitions.value("pss", y, p, alpha=2.0),
    "OE ratio": lambda y, p: 1.0 / definitions.value("eo", y, p),
    "KS": lambda y, p: definitions.value("ecce_mad", y, p),
    "Kuiper": lambda y, p: definitions.value("ecce_r", y, p),
}


def width(p):
    return p.shape[1] if p.ndim == 2 else 2


def each_class(id, y, p):
    pairs = definitions.class_wise(y, definitions.columns(p))
    return np.array([definitions.DEFINITIONS[id].function(*pair) for pair in pairs])


@quiet
@pytest.mark.parametrize("kind", ["breast_cancer", "digits"])
@pytest.mark.parametrize("name", BY_DEFINITION)
def test_a_famous_name_gives_the_value_of_its_definition(name, kind):
    y, p = data(kind)
    np.testing.assert_allclose(cal.compute(name, y, p), BY_DEFINITION[name](y, p), rtol=1e-9)


def test_the_h_statistic_sums_over_bins_of_equal_width():
    y, p = data("breast_cancer")
    which = np.ceil(10 * p).astype(int)
    parts = [which == b for b in set(which)]
    value = sum(m.sum() * (y[m].mean() - p[m].mean()) ** 2 / (p[m].mean() * (1 - p[m].mean())) for m in parts)
    assert cal.compute("H-statistic", y, p) == pytest.approx(value)


def test_laece0_matches_every_touching_pair():
    matches = cal.match_detections(*data("boxes"), iou_threshold=0.5)
    value = FUNCTIONS["laece"](*data("boxes"), iou_threshold=0.0)
    assert cal.compute("LAECE0", *data("boxes")) == value
    assert cal.compute("LAECE0", matches) == value  # matched again
    assert cal.compute("laece", matches) != value
    with pytest.raises(ValueError, match="iou_threshold"):
        cal.compute("LAECE0", [1, 0], [0.9, 0.4], iou=[0.8, 0.0])


# -- everywhere a name is taken ----------------------------------------------------------------------

#: A name that carries an option, a lens, a lens and an average.
CARRYING = [
    ("RMSCE", "ece", {"norm": 2}),
    ("CWCE", "ece", {"lens": "class-wise"}),
    ("WSECE", "ece", {"lens": "class-wise", "average": "prevalence"}),
    ("ECE-EW", "ece", {"binning": "width"}),
]
carrying = pytest.mark.parametrize(("name", "id", "given"), CARRYING, ids=[name for name, _, _ in CARRYING])


@quiet
@carrying
def test_interval_test_and_compare_ask_what_the_name_says(name, id, given):
    y, p = (x[:150] for x in data("digits"))
    q = 0.5 * p + 0.05
    draws = {"n_resamples": 39, "rng": 0, "confidence_level": 0.9}
    mine, plain = (cal.interval(m, y, p, **draws, **kw) for m, kw in ((name, {}), (id, given)))
    assert (mine.value, mine.low, mine.high) == (plain.value, plain.low, plain.high)
    mine, plain = (cal.test(m, y, p, n_resamples=39, rng=0, **kw) for m, kw in ((name, {}), (id, given)))
    assert (mine.statistic, mine.pvalue) == (plain.statistic, plain.pvalue)
    mine, plain = (cal.compare(m, y, p, q, method="basic", **draws, **kw) for m, kw in ((name, {}), (id, given)))
    assert (mine.value, mine.low, mine.high) == (plain.value, plain.low, plain.high)


@quiet
def test_the_own_test_of_a_metric_takes_what_the_name_says():
    y, p = data("breast_cancer")
    for method in ("auto", "asymptotic", "monte-carlo"):
        settings = {"method": method} | ({"rng": 0, "n_resamples": 39} if method == "monte-carlo" else {})
        mine, plain = cal.test("H-statistic", y, p, **settings), cal.test("hl", y, p, binning="width", **settings)
        assert mine.statistic == plain.statistic != cal.test("hl", y, p, **settings).statistic


def test_a_table_shows_each_name_with_its_own_value():
    y, p = data("digits")
    names = ["RMSCE", "ece", "cwce", "WSECE"]
    table = cal.evaluate(y, p, metrics=names, intervals=True, tests=True, n_resamples=39, confidence_level=0.9, rng=0)
    assert [row.id for row in table] == ["RMSCE", "ece", "CWCE", "WSECE"]
    for name, (id, given) in zip(names, [("ece", {"norm": 2}), ("ece", {}), *((i, g) for _, i, g in CARRYING[1:3])],
                                 strict=True):  # fmt: skip
        value = FUNCTIONS[id](y, p, **given)
        assert table[name] == value
        assert table.row(name).pvalue is not None
    assert "norm=2" in table.row("RMSCE").name
    assert table.row("CWCE").low < table.row("CWCE").high < table["ece"]
    assert cal.evaluate(y, p, metrics=["ece"], primary="RMSCE")["RMSCE"] == table["RMSCE"]
    report = cal.report(y, p, metrics=["CWCE"], primary="RMSCE", n_resamples=0)
    assert report.evaluation["RMSCE"] == table["RMSCE"]
    assert f"{table['RMSCE']:.3g}" in report.headline
    assert cal.verdict("RMSCE<0.9", y, p, n_resamples=39, confidence_level=0.9, rng=0).value == table["RMSCE"]


def test_a_name_that_matches_boxes_anew_keeps_to_itself_in_a_table():
    matches = cal.match_detections(*data("boxes"))
    table = cal.evaluate(
        matches, metrics=["LAECE0", "laece"], intervals=True, n_resamples=39, confidence_level=0.9, rng=0
    )
    assert table["LAECE0"] == FUNCTIONS["laece"](*data("boxes"), iou_threshold=0.0) != table["laece"]
    assert table.row("LAECE0").low is None
    assert "needs another matching of boxes" in table.row("LAECE0").note
    assert table.row("laece").low is not None
    alone = cal.interval("LAECE0", matches, n_resamples=39, confidence_level=0.9, rng=0)
    assert alone.value == table["LAECE0"]


@carrying
def test_a_setting_that_contradicts_the_name_is_refused_with_a_sentence(name, id, given):
    y, p = data("digits")
    other = {"norm": 1, "lens": "top-label", "average": "uniform", "binning": "mass"}
    for option in given:
        for call in (
            lambda **kw: cal.compute(name, y, p, **kw),
            lambda **kw: cal.catalogue[name](y, p, **kw),
            lambda **kw: cal.interval(name, y, p, n_resamples=39, confidence_level=0.9, **kw),
            lambda **kw: cal.test(name, y, p, n_resamples=39, **kw),
        ):
            with pytest.raises(ValueError, match=f"{option}='?{other[option]}'? contradicts the name '{name}'"):
                call(**{option: other[option]})
        skipped = cal.evaluate(y, p, metrics=[name], **{option: other[option]}).skipped
        assert "contradicts the name" in skipped[name]


def test_the_same_setting_in_other_words_is_no_contradiction():
    y, p = data("digits")
    assert cal.compute("RMSCE", y, p, norm="l2") == cal.compute("RMSCE", y, p)
    assert cal.compute("CWCE", y, p, lens="one-vs-rest") == cal.compute("CWCE", y, p, lens="auto")
    assert cal.compute("WSECE", y, p, average="weighted") == cal.compute("WSECE", y, p)
    assert cal.compute("CWCE", y, p, n_bins=5) == cal.compute("ece", y, p, lens="class-wise", n_bins=5)


def test_an_entry_under_a_name_travels():
    entry = cal.catalogue["RMSCE"]
    assert entry is cal.catalogue["rmsce"]
    assert entry != cal.catalogue["ece"]
    assert entry.key == "RMSCE"
    assert pickle.loads(pickle.dumps(entry)) is entry
    assert pickle.loads(pickle.dumps(cal.catalogue["ece"])) is cal.catalogue["ece"]
    assert entry.to_dict()["presets"]["RMSCE"] == {"norm": 2}
    statistic = as_statistic(entry, sample_of(cal.predictions(*data("digits")), "frequency"), Question())
    assert (statistic.name, dict(statistic.question.options)) == ("RMSCE", {"norm": 2})
    json.dumps(entry.to_dict()["presets"])


@each(cal.catalogue.values())
def test_what_a_name_carries_exists_on_its_metric(entry):
    for alias in entry.aliases:
        if isinstance(alias, Alias):
            entry.check({n: v for n, v in alias.settings.items() if n in entry.options})
            assert set(alias.settings) <= {*entry.options, *entry.front.common}
            assert not alias.settings.get("lens") or as_lens(alias.settings["lens"]).name in entry.lenses


PRESETS = [e for e in cal.catalogue.values() if e.preset_of is not None]


@quiet
@pytest.mark.parametrize("entry", PRESETS, ids=lambda e: e.id)
@pytest.mark.parametrize("kind", ["breast_cancer", "digits"])
def test_a_preset_is_its_metric_with_a_setting(entry, kind):
    y, p = data(kind)
    base, fixed = str(entry.preset_of), dict(entry.preset_of.settings)
    assert cal.compute(entry.id, y, p) == cal.compute(base, y, p, **fixed)
    assert f"{base} with {entry.preset_of.words}" in explained(entry.id)
    assert cal.catalogue[base].specialized(fixed) == (entry, {})
    if kind == "breast_cancer" and entry.family == "kernel":
        draws = {"n_resamples": 39, "rng": 0}
        mine, its = cal.test(entry.id, y, p, **draws), cal.test(base, y, p, **fixed, **draws)
        assert (mine.statistic, mine.pvalue, type(mine)) == (its.statistic, its.pvalue, type(its))
        mine, its = (
            cal.interval(m, y, p, confidence_level=0.9, **draws, **kw) for m, kw in ((entry.id, {}), (base, fixed))
        )
        assert (mine.low, mine.high, mine.method) == (its.low, its.high, its.method)


def test_the_presets_are_those_people_ask_for_by_name():
    assert {e.id for e in PRESETS} == {"skce_b", "skce_uq", "skce_ul", "e50", "e90", "emax", "mce", "oe", "lkce"}
    everything = [row.id for row in cal.evaluate(*data("breast_cancer"), metrics="kernel")]
    assert "skce" not in everything  # its three estimators are there already
    assert {"skce_b", "skce_uq", "skce_ul"} <= set(everything)
    y, p = data("breast_cancer")
    assert cal.evaluate(y, p, metrics="skce", estimator="b")["skce"] == cal.compute("skce_b", y, p)
    with pytest.raises(ValueError, match="are for estimator='ul'"):
        cal.compute("skce", y, p, block_size=4)
    assert cal.compute("skce", y, p, estimator="ul", block_size=4) == cal.compute("skce_ul", y, p, block_size=4)


# -- names with another use, and what the command line says ------------------------------------------


@pytest.mark.parametrize(
    ("name", "id", "other"),
    [
        ("MCE", "mce", "marginal classification error"),
        ("TCE", "tce", "top-label calibration error"),
        ("ICE", "ice", "intce"),
        ("HL", "hl", "hinge"),
        ("MAE", "mae", "emax"),
        ("ECE-PL", "ece_pl", "plugin estimator"),
    ],
)
def test_a_word_the_review_uses_twice_means_the_metric_of_that_id_and_names_the_other(name, id, other):
    assert cal.catalogue[name].id == id
    assert other in cal.catalogue[name].homonyms[name]
    assert other in explained(name)
    assert other in cal.catalogue


@each(cal.catalogue.values())
def test_a_homonym_is_one_of_the_metric_s_own_names(entry):
    for name in entry.homonyms:
        assert cal.catalogue[name].id == entry.id


def explained(name):
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, ["explain", name, "--all"], env={"COLUMNS": "5000"})
    assert result.exit_code == 0
    return " ".join(result.stdout.split())  # whatever the width of the terminal


def test_explain_says_what_a_name_carries():
    assert "RMSCE means ece with norm=2" in explained("RMSCE")
    plain = explained("ece")
    assert "means ece with" not in plain
    assert "norm=2: l2-ECE, RMSCE" in plain
    assert "lens='class-wise', average='prevalence': WSECE" in plain


def test_the_command_line_computes_what_the_name_says(tmp_path):
    from typer.testing import CliRunner

    y, p = data("breast_cancer")
    file = tmp_path / "p.csv"
    file.write_text("label,prob\n" + "".join(f"{a},{b!r}\n" for a, b in zip(y.tolist(), p.tolist(), strict=True)))
    result = CliRunner().invoke(app, ["metric", "H-statistic", str(file), "--quiet"])
    assert result.exit_code == 0
    assert float(result.stdout.split()[-1]) == pytest.approx(cal.compute("hl", y, p, binning="width"))
    refused = CliRunner().invoke(app, ["metric", "confidence-ECE", str(file), "--lens", "class-wise", "--quiet"])
    assert refused.exit_code != 0


# -- words for lenses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lens", "words"),
    [
        ("top-label", ("confidence", "top label", "Top-Label", "top_label")),
        ("class-wise", ("class wise", "one-vs-rest", "OVR", "marginal", "static", "one versus rest", "one-vs-all")),
        ("full", ("multiclass", "Multi-class", "joint", "canonical", "strong")),
        ("pairwise", ("comprehensive pairwise", "one-vs-one", "pair", "OVO")),
    ],
)  # fmt: skip
def test_words_for_a_lens(lens, words):
    y, p = data("digits")
    value = cal.compute("ece", y, p, lens=lens)
    assert [cal.compute("ece", y, p, lens=word) for word in words] == [value] * len(words)


def test_words_for_a_lens_that_needs_more():
    y, p = data("digits")
    value = cal.compute("ece", y, p, lens="within-top-r", r=2)
    for word in ("k-largest", "k-largest-predictions", "k largest predictions", "top-k"):
        assert cal.compute("ece", y, p, lens=word, r=2) == value
    with pytest.raises(ValueError, match=r"lens='fixed partition' needs its groups or its matrix"):
        cal.compute("ece", y, p, lens="fixed partition")
    with pytest.raises(ValueError, match=r"lens='weak' is not known"):
        cal.compute("ece", y, p, lens="weak")


def test_no_value_of_the_list_is_nothing():
    for row in MEANT:
        assert all(np.isfinite(value).all() for value in told(row).values()), row["name"]


def test_every_name_that_a_table_prints_is_accepted():
    y, p, *_ = cal.datasets.breast_cancer()
    whole = cal.cox_intercept_slope(y, p)
    assert cal.compute("cis.slope", y, p) == whole.slope
    assert cal.compute("cis.intercept", y, p) == whole.intercept
    assert cal.interval("cis.slope", y, p, n_resamples=20, rng=0).value == whole.slope
    for entry in cal.catalogue.values():
        for field, perfect in entry.fields:
            one = cal.catalogue[f"{entry.id}.{field}"]
            assert (one.id, one.part, one.perfect) == (entry.id, field, perfect)
