"""The study: worlds whose truth is known, shards that can be stopped and shared, measures that mean what they say."""

from __future__ import annotations

import gzip
import html
import json

import numpy as np
import pytest
from scipy import integrate, stats

import calibrary as cal
from calibrary import study
from calibrary.base import numbers as written
from calibrary.lookup import study_findings as findings
from calibrary.study.measures import Field, Readings, spearman
from calibrary.study.panel import Number, binary_panel, left_out, studied
from calibrary.study.presets import PRESETS, Preset, Size
from calibrary.study.runs import StudyPlan
from calibrary.study.shards import Job, Shard, draw_shard
from each import amount
from paths import ROOT

CURVES = ("calibrated", "temperature 0.4", "shift +0.4")
TINY = Preset(
    "tiny",
    "for tests",
    tuple(study.World(law, curve) for law in ("wide", "top") for curve in CURVES),
    (Size(100, 4, 12), Size(200, 4, 12)),
    lies_at=(100,),
)


# -- known truth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [0.4, 0.8, 1.8])
def test_temperature_worlds_agree_with_quadrature(slope):
    world = study.World("wide", f"temperature {slope:g}")
    law = stats.beta(0.8, 0.8)

    def gap(c):
        return world.calibration(c) - c

    def mean(f):
        return 2 * integrate.quad(lambda c: f(c) * law.pdf(c), 0, 0.5, limit=400, epsabs=1e-10)[0]  # odd around 1/2

    truth = world.truth()
    assert truth.l1 == pytest.approx(mean(lambda c: abs(gap(c))), abs=2e-5)
    assert truth.l2 == pytest.approx(np.sqrt(mean(lambda c: gap(c) ** 2)), abs=2e-5)
    # the gap has one sign on each half, so the cumulative differences go half of the L1 error and come back
    assert truth.kuiper == pytest.approx(truth.l1 / 2, abs=2e-5)
    assert truth.base_rate == pytest.approx(0.5, abs=1e-9)
    assert truth.smooth <= 2 * truth.distance + 1e-3
    assert truth.distance <= truth.l1 + 1e-3


def test_one_sided_worlds_have_one_error():
    """Where every confidence is too low, all distances are the mean gap."""
    truth = study.World("sharp", "shift +0.4").truth()
    assert truth.kuiper == pytest.approx(truth.l1)
    assert truth.smooth == pytest.approx(truth.l1)
    assert truth.distance == pytest.approx(truth.l1, abs=2e-3)


def test_calibrated_worlds_have_none():
    for law in study.LAWS:
        truth = study.World(law).truth()
        assert max(truth[:-1]) == 0.0


@pytest.mark.parametrize("law", study.LAWS)
def test_samples_follow_law_and_curve(law):
    world = study.World(law, "groups")
    y, c = world.sample(20_000, rng=1)
    even = np.sort(world.quantiles(20_000))
    assert np.abs(np.sort(c) - even).mean() < 0.006
    assert y.mean() == pytest.approx(world.truth().base_rate, abs=4 * np.sqrt(0.25 / 20_000))


def test_quantities_of_a_plug_in_estimate_approach_the_truth():
    world = study.World("wide", "temperature 0.6")
    y, c = world.sample(200_000, rng=0)
    truth = world.truth()
    assert cal.expected_calibration_error(y, c, n_bins=30) == pytest.approx(truth.l1, abs=0.004)
    assert cal.lipschitz_calibration_error(y, c) == pytest.approx(truth.smooth, abs=0.003)


def test_class_worlds_are_calibrated_at_temperature_one():
    y, p = study.ClassWorld(5, 1.0, unequal=True).sample(20_000, rng=0)
    assert p.sum(axis=1) == pytest.approx(1.0)
    counts = np.bincount(y, minlength=5) / len(y)
    np.testing.assert_allclose(counts, p.mean(axis=0), atol=0.015)
    assert study.ClassWorld(5, 1.0).truth()["top-label"] < 0.002
    over, under = (study.ClassWorld(5, t).truth()["top-label"] for t in (1.5, 0.7))
    assert min(over, under) > 0.02


def test_worlds_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match=r"law='wild'.*wide"):
        study.World("wild")
    with pytest.raises(ValueError, match="curve='temperature'"):
        study.World("wide", "temperature")
    with pytest.raises(ValueError, match="amplitude=-1"):
        study.World("wide", "beta", amplitude=-1)
    with pytest.raises(ValueError, match="k=1"):
        study.ClassWorld(1)
    with pytest.raises(ValueError, match=r"preset='quik'.*quick"):
        study.run("quik")
    with pytest.raises(ValueError, match="part='0/3'"):
        study.run(TINY, metrics="ece", part="0/3")
    with pytest.raises(ValueError, match="d_ece cannot be studied"):
        study.run(TINY, metrics="d_ece")


# -- shards ------------------------------------------------------------------------------------------


def test_resume_and_parts_equal_one_run(tmp_path):
    whole = study.run(TINY, metrics=["ece", "smece"], out=tmp_path / "whole")
    for part in ("1/3", "2/3", "3/3"):
        shared = study.run(TINY, metrics=["ece", "smece"], out=tmp_path / "parts", part=part)
    assert _without_time(shared) == _without_time(whole)

    class StopError(Exception):
        pass

    def stop(progress):
        if progress.done == 5:
            raise StopError

    with pytest.raises(StopError):
        study.run(TINY, metrics=["ece", "smece"], out=tmp_path / "stopped", watch=stop)
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "stopped").glob("*.npz")}
    assert len(made) == 5
    resumed = study.run(TINY, metrics=["ece", "smece"], out=tmp_path / "stopped")
    assert _without_time(resumed) == _without_time(whole)
    assert all((tmp_path / "stopped" / name).stat().st_mtime_ns == at for name, at in made.items())


def test_a_metric_that_comes_later_sees_the_same_samples(tmp_path):
    def own(y, p):
        return abs(y.mean() - p.mean())

    study.run(TINY, metrics=["ece"], out=tmp_path / "a")
    later = study.run(TINY, metrics=["ece", own], out=tmp_path / "a")
    at_once = study.run(TINY, metrics=["ece", own], workers=2)
    assert _without_time(later) == _without_time(at_once)
    assert later.row("own", 100)["within"] > 0.5


def test_more_draws_are_added_to_those_that_are_there(tmp_path):
    calls = []

    def own(y, p):
        calls.append(1)
        return abs(y.mean() - p.mean())

    def read(out, draws):
        calls.clear()
        found = study.run(TINY, metrics=["ece", own], n=100, draws=draws, out=tmp_path / out)
        return _without_time(found), len(calls)

    few, first = read("grown", 2)
    grown, added = read("grown", 5)
    at_once, all_of_them = read("once", 5)
    assert grown == at_once != few
    assert first + added <= all_of_them + 2  # the two that a folder's first call needs to see what a number costs


def test_a_slow_number_is_read_from_fewer_draws():
    names = {"quick": 0.005, "slow": 0.02, "slower": 1.0, "hopeless": 3.0}
    size = study.Size(1000, 24, 120, quick=0.01, most=2.0)
    worlds = (study.World("wide", "calibrated"), study.World("wide", "beta"))
    preset = study.Preset("p", "", worlds, (size,), lies_at=())
    null, bent = StudyPlan(preset, 0, (), (), (), {"binary": {"1000": names}}).jobs()
    assert bent.draws == {"quick": 24, "slow": 12, "slower": 2}
    assert null.draws == {"quick": 120, "slow": 60, "slower": 10}


def test_a_folder_of_another_study_is_refused(tmp_path):
    study.run(TINY, metrics="ece", n=100, out=tmp_path)
    with pytest.raises(ValueError, match="seed=0, not 1"):
        study.run(TINY, metrics="ece", n=100, out=tmp_path, seed=1)


def test_the_stream_is_of_seed_size_and_world():
    world = study.World("top", "beta")
    job = Job(world, 50, {"first": 3})
    shard = draw_shard(job, [Number("first", lambda p: p.probability[0])], seed=7)
    rng = np.random.default_rng([7, 50, study.LAWS["top"].number, study.CURVES["beta"].number])
    assert shard.values[:, 0].tolist() == [world.sample(50, rng)[1][0] for _ in range(3)]
    numbers = [law.number for law in study.LAWS.values()]
    assert len(set(numbers)) == len(numbers)


def test_what_has_no_value_is_counted_and_explained():
    def never(y, p):
        raise ValueError("no value here")

    found = study.run(TINY, metrics=[never, "ece"], n=100)
    assert found.row("never", 100)["undefined"] == 1.0
    assert found.row("never", 100)["why"] == "no value here"
    assert found.row("ece", 100)["undefined"] == 0.0


# -- measures ----------------------------------------------------------------------------------------


def _readings(world, values):
    values = np.asarray(values, dtype=float)[:, None]
    shard = Shard(("m",), values, np.array([len(values)]), np.zeros(1), {})
    return Readings(world, 100, shard, world.truth()._asdict())


def test_measures_by_hand():
    null = study.World("wide")
    small, large = study.World("wide", "temperature 0.8"), study.World("wide", "temperature 0.4")
    readings = [
        _readings(null, np.arange(100) / 1000),  # 95% point: 0.09405
        _readings(small, [0.05, 0.2, 0.1, 0.09]),
        _readings(large, [0.3, 0.15, 0.1, 0.4]),
    ]
    field = Field(Number("m", lambda p: 0.0), readings)
    assert field.null()["null"] == pytest.approx(0.0495)
    assert {w.name: p for w, p in field.powers()} == {small.name: 0.5, large.name: 1.0}
    # large over null 4 of 4, small over null 4 of 4, large over small: right, wrong, tie, right
    assert field.order()["within"] == pytest.approx((4 + 4 + 2.5) / 12)
    assert "across" not in field.order()
    assert spearman(np.array([1.0, 2, 3]), np.array([10.0, 30, 20])) == pytest.approx(0.5)
    assert spearman(np.ones(3), np.arange(3.0)) is None


@pytest.mark.parametrize("draws", [1, 4, 20])
def test_the_standard_error_of_power_is_what_powers_vary_by(draws):
    curves = [curve for curve in study.CURVES if curve != "calibrated"]
    rng = np.random.default_rng(draws)

    def power():
        def readings(curve, values):
            shard = Shard(("m",), values[:, None], np.array([len(values)]), np.zeros(1), {})
            return Readings(study.World("wide", curve), 100, shard, {})

        found = [readings("calibrated", rng.normal(size=100))]
        found += [readings(curve, rng.normal(1.5, 1.0, draws)) for curve in curves]
        return Field(Number("m", lambda p: 0.0), found).power()

    found = [power() for _ in range(150)]
    said = np.sqrt(np.mean([f["power_se"] ** 2 for f in found]))
    assert 0.8 < said / np.std([f["power"] for f in found]) < 1.5


def test_errors_are_turned_so_that_more_is_worse():
    values = np.array([0.5, 1.5])
    assert Number("a", len, better="higher", ideal=1.0).error(values).tolist() == [0.5, -0.5]
    assert Number("a", len, better="perfect", ideal=1.0).error(values).tolist() == [0.5, 0.5]
    assert Number("a", len).error(values).tolist() == [0.5, 1.5]


def test_a_valid_test_rejects_five_per_cent_and_finds_errors():
    worlds = (study.World("wide"), study.World("sharp"), study.World("wide", "temperature 0.4"))
    preset = Preset("levels", "", worlds, (Size(300, 10, 300, 1.0, 1.0),), lies_at=(), tests_at=(300,))
    found = study.run(preset, metrics=["spiegelhalter", "ecce_r"])
    for id, test in found.found["tests"]["300"].items():
        assert test["level"] == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 600)), id
        assert test["power"] > 0.9


def test_lying_does_not_pay_with_a_proper_score_and_does_with_bins():
    found = study.run("quick", metrics=["bs", "ece"], worlds=["wide, beta"], n=1000, draws=10)
    assert found.found["numbers"]["bs"]["lie"] >= 1.0
    assert found.found["numbers"]["ece"]["lie"] < 0.7


def test_objectives_and_sweep():
    worlds = ["temperature 0.5", "temperature 0.9", "temperature 1.5"]
    found = study.run("temperature", metrics=["smece", "bs"], worlds=worlds, draws=3, n=1000)
    swept = study.by_temperature(found, 1000)
    assert study.least_at_one(swept["smece"]["wide"])
    assert sorted(swept["smece"]["wide"]) == [0.5, 0.9, 1.0, 1.5]
    assert not study.least_at_one(swept["bs"]["wide"])  # which falls as labels grow surer
    found = study.objectives(["beta", "platt"], worlds=TINY.worlds[: amount(3, 6)], n=300, draws=2)
    assert 0 < found["beta"].diagram < 0.1
    assert found["platt"].ranking > 0.5


def test_mine_tells_what_a_metric_is_worth_here():
    y, p = study.World("wide", "temperature 0.4").sample(400, rng=1)

    def bias(y, p):
        return abs(y.mean() - p.mean())

    found = study.mine(y, p, metrics=["ece", bias], draws=10)
    assert found.rows["ece"]["value"] == pytest.approx(cal.expected_calibration_error(y, p))
    assert found.rows["ece"]["power"] > 0.8 > 0.4 > found.rows["bias"]["power"]
    assert found.l1 == pytest.approx(study.World("wide", "temperature 0.4").truth().l1, abs=0.05)
    assert "ece" in str(found)
    many = study.ClassWorld(4, 1.5).sample(300, rng=0)
    assert study.mine(*many, metrics="ece", draws=amount(2, 5)).n == 300


# -- what is stored ----------------------------------------------------------------------------------


def test_the_stored_study_is_small_and_says_what_it_is():
    found = study.stored_study()
    from importlib.resources import files

    content = (files("calibrary") / "datasets" / "study.json.gz").read_bytes()
    assert len(content) < 1_000_000
    written = json.loads(gzip.decompress(content))
    assert written.pop("format") == "calibrary study"
    assert written.pop("digest").startswith("sha256:")
    assert written.pop("version") == 1
    assert found.summary() == written
    assert {"version", "seed", "preset", "shards", "of"} <= set(found.about)
    assert found.about["preset"] == "standard"
    row = found.row("ece", 1000)
    assert row["draws"] >= 10
    assert row["null_draws"] >= 40
    assert set(found.table[0]) >= {"number", "n", "null", "power", "within", "across", "draws"}


def test_every_metric_is_in_the_study_or_says_why_not():
    found = study.stored_study().found
    for entry in cal.catalogue.values():
        here = any(number["metric"] == entry.id for number in found["numbers"].values())
        assert here != bool(found["left_out"].get(entry.id)), entry.id
        if left_out(entry):
            assert len(left_out(entry)) > 20
    assert len(studied()) > 90
    assert len({number.name for number in binary_panel()}) == len(binary_panel())


@pytest.mark.parametrize(("law", "curve"), [("rare", "temperature 0.6"), ("ties", "shift -0.4")])
def test_a_shard_of_the_stored_study_reproduces(law, curve):
    """The first draws of the standard run, made again here: the stored mean is that of the same stream."""
    found = study.stored_study()
    names = ["ece", "smece", "mce", "fott_beta", "spiegelhalter", "bs"]
    world = study.World(law, curve)
    draws = {name: found.row(name, 100)["draws"] for name in names}
    numbers = [number for number in binary_panel(names) if number.name in names]
    shard = draw_shard(Job(world, 100, draws), numbers, found.about["seed"])
    for i, number in enumerate(numbers):
        mean = np.nanmean(number.error(shard.values[:, shard.names.index(number.name)]))
        assert found.means(number.name, 100)[world.name] == pytest.approx(mean, rel=1e-3), names[i]


def test_the_result_comes_back_from_its_file(tmp_path):
    found = study.run(TINY, metrics="ece", n=100)
    found.save(tmp_path / "a.json.gz")
    assert study.StudyResult.load(tmp_path / "a.json.gz") == found
    found.save(tmp_path / "a.json")
    assert study.StudyResult.load(tmp_path / "a.json") == found
    assert len(found.to_pandas()) == len(found.to_polars()) == 1
    with pytest.raises(ValueError, match="'mce' was not studied at n=100"):
        found.row("mce", 100)


def test_findings_lie_between_the_sizes():
    at = {n: findings.finding("ece", n).expected_by_chance for n in (100, 200, 300, 5000)}
    assert at[100] > at[200] > at[300] > at[5000]
    assert findings.finding("ece", 100).expected_by_chance == study.stored_study().row("ece", 100)["null"]
    assert "detects" in findings.finding("ece").sentence
    assert "detects" in findings.finding("d_ece").sentence  # from worlds of boxes
    assert findings.why_not("d_ece") == ""
    assert findings.why_not("ece") == ""


def test_presets_have_what_they_promise():
    assert {"quick", "standard", "full", "temperature", "objectives", "correlation", "construction"} == set(PRESETS)
    for preset in PRESETS.values():
        laws = {world.law_name for world in preset.worlds}
        assert laws == {world.law_name for world in preset.worlds if world.family == "calibrated"}
        assert len({world.name for world in preset.worlds}) == len(preset.worlds)


def _without_time(found):
    """A study less what a clock told."""
    found = found.summary()
    found["about"] = {k: v for k, v in found["about"].items() if k != "cpu_seconds"}
    for rows in found["sizes"].values():
        for row in rows.values():
            del row["seconds"]
    return found


# -- the page and the command line ----------------------------------------------------------------------


def _page():
    import importlib.util

    path = ROOT / "scripts" / "make_study_page.py"
    spec = importlib.util.spec_from_file_location("make_study_page", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_says_what_the_stored_study_says():
    module = _page()
    written = [path.read_text(encoding="utf-8") for path in module.PAGES]
    assert written == module.pages(study.stored_study())
    for name in ("null-reading", "power-and-rank", "clusters", "bias", "classes"):
        assert any(f"study/{name}.png" in text for text in written)
        assert (module.PICTURES / f"{name}.png").stat().st_size > 10_000


def test_figures_show_what_was_found():
    pytest.importorskip("matplotlib")
    from calibrary.study.figures import FIGURES

    found = study.run(TINY, metrics=["ece", "smece", "mce"])
    figure = FIGURES["null-reading"](found)
    line = next(line for line in figure.axes[0].lines if line.get_label() == "Expected calibration error")
    assert line.get_ydata()[0] == found.row("ece", 100)["null"]
    assert FIGURES["classes"](found) is None


def test_command_line(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from calibrary.cli.main import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("def gap(y, p):\n    return abs(y.mean() - p.mean())\n")
    y, p = study.World("wide", "temperature 0.4").sample(200, rng=0)
    rows = "\n".join(f"{a},{b}" for a, b in zip(y, p, strict=True))
    (tmp_path / "mine.csv").write_text("label,prob\n" + rows)

    def said(*words, code=0):
        result = CliRunner().invoke(app, ["study", *words])
        assert result.exit_code == code, result.output
        return result.output

    ran = said("run", "--metrics", "ece", "--function", "own.py:gap", "--worlds", "wide, beta", "--n", "100",
               "--draws", "3", "--out", "here")  # fmt: skip
    assert "gap" in ran
    assert "ece" in said("show", "--from", "here", "--n", "100")
    assert "100" in said("show", "ECE", "--from", "here")
    assert "power" in said("mine", "mine.csv", "--metrics", "ece", "--function", "own.py:gap", "--draws", "5")
    assert "rank correlation" in said("show", "smece")
    assert "pairs of models in the right order" in said("show")


def test_explain_and_report_quote_the_study():
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from calibrary.cli.main import app

    said = CliRunner().invoke(app, ["explain", "ece", "--n", "300"], env={"COLUMNS": "200"}).output
    shown = [line.split() for line in said.splitlines()]
    for n in (100, 300, 1000, 10_000):
        found = findings.finding("ece", n)
        shares = [written.percent(share) for share in (found.power, found.across, found.orders)]
        assert [f"{n:,}", written.number(found.expected_by_chance), *shares] in shown
    y, p = study.World("wide", "temperature 0.6").sample(300, rng=0)
    page = cal.report(y, p, metrics=["ece", "smece"], n_resamples=20).to_html()
    assert html.escape(findings.finding("smece", 300).sentence) in page
