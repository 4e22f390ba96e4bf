"""No option is ignored silently: what has no effect beside another option is refused, and what has one is passed on."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrary as cal
from calibrary.language.sampled import sampled_answers
from paths import ROOT

pytestmark = pytest.mark.usefixtures("outlined")

LOG = ROOT / "tests" / "data" / "logs" / "inspect_epochs.eval"
QUICK = ("--metrics", "ece", "--resamples", 39, "-q")
NO_DRAWS = "--resamples 0 requests no draws, and {} needs some: give a number of draws (999 is usual)"


@pytest.fixture
def refused(command):
    """Run a command that must be refused, and check that its only sentence is the expected one."""

    def run(sentence, *words):
        status, printed, said = command(*words)
        assert (status, printed, said) == (2, "", f"calibrary: {sentence}")

    return run


def written(path, **columns):
    lines = [",".join("" if v is None else str(v) for v in row) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]))
    return path


@pytest.fixture
def judged(tmp_path):
    """A file with a judge's labels of 400 rows and 120 human labels, and its columns."""
    rng = np.random.default_rng(0)
    c = np.round(rng.random(400), 4)
    y = (rng.random(400) < c).astype(int)
    judge = np.where(rng.random(400) < 0.9, y, 1 - y)
    z = np.round(np.log(c + 0.001) - np.log(1.001 - c), 6)
    human = [int(v) if i < 120 else None for i, v in enumerate(y)]
    return written(tmp_path / "j.csv", human=human, p=c, z=z, gpt=judge), human, c, z, judge


@pytest.fixture
def ensemble(tmp_path):
    """A file of three members and rows of no class, and its columns."""
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(4, 4, (120, 3)), 6)
    y = [int(rng.random() < p[i, 0]) if i < 110 else None for i in range(120)]
    name = [None if v is None else ("no", "yes")[v] for v in y]
    i = np.arange(120)
    columns = {
        "label": y, "name": name, "a": p[:, 0], "b": p[:, 1], "c": p[:, 2], "out": (i >= 110).astype(int),
        "w": 1 + i % 3, "half": 0.5 + i % 2, "site": ["ab"[k % 2] for k in i],
    }  # fmt: skip
    return written(tmp_path / "m.csv", **columns), columns, p


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(1)
    p = np.round(rng.random(200), 4)
    y = (rng.random(200) < p).astype(int)
    return written(tmp_path / "p.csv", y=y, p=p, q=np.round(p**2, 4), month=np.arange(200) // 50)


# -- metric --judge ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--weight", "w"), "--weight is"),
        (("--weight-type", "importance"), "--weight-type is"),
        (("--unit", "nonsense"), "--unit is"),
        (("--lens", "nonsense"), "--lens is"),
        (("--positive", "1", "--labels", "no,yes"), "--positive and --labels are"),
        (("--normalize", "length", "--scorer", "s"), "--scorer and --normalize are"),
        (("--id", "i", "--class-column", "c"), "--id and --class-column are"),
        (("--drop-missing", "--drop-invalid"), "--drop-missing and --drop-invalid are"),
        (("--weight", "w", "--unit", "u", "--lens", "full", "--test"), "--weight, --lens and --unit are"),
    ],
)
def test_a_metric_with_a_judge_refuses_options_without_effect(judged, refused, words, named):
    out = "leave it out" if named.endswith("is") else "leave them out"
    refused(f"{named} not used with --judge: {out}", "metric", "ece", judged[0], "--judge", "gpt", *words)


def test_a_metric_with_a_judge_passes_on_logits_and_prints_its_test(judged, command, refused):
    path, human, _, z, judge = judged
    y = np.array([np.nan if v is None else v for v in human])
    found = cal.judged("ece", y, 1 / (1 + np.exp(-z)), judge=judge, rng=0, n_resamples=99)
    asked = ("--label", "human", "--prob", "z", "--judge", "gpt", "--logits", "--interval", "--resamples", 99, "-q")
    status, printed, said = command("metric", "ece", path, *asked, "--test")
    assert (status, said) == (0, "")
    assert printed == f"ece {found.estimate:.10g}  [{found.low:.6g}, {found.high:.6g}]  p = {found.pvalue:.4g}\n"
    assert command("metric", "ece", path, *asked)[1] == printed.partition("  p")[0] + "\n"
    sentence = "bs is a mean of losses, which has no test with --judge: leave --test out"
    refused(sentence, "metric", "bs", path, "--label", "human", "--prob", "p", "--judge", "gpt", "--test")


def test_a_metric_with_a_judge_prints_the_guessed_column(judged, command):
    asked = ("metric", "ece", judged[0], "--label", "human", "--judge", "gpt", "--resamples", 99)
    assert "probability columns guessed: p " in command(*asked)[2]
    assert "guessed" not in command(*asked, "-q")[2]


def test_a_report_with_a_judge_uses_its_bins(judged, command, tmp_path):
    path, human, c, _, judge = judged
    y = np.array([np.nan if v is None else v for v in human])
    asked = ("--label", "human", "--prob", "p", "--judge", "gpt", "--bins", 3, *QUICK, "-o", tmp_path / "page.json")
    status, _, said = command("report", path, *asked)
    assert status == 0, said
    section = next(s for s in json.loads((tmp_path / "page.json").read_text())["sections"] if s["key"] == "judge")
    found = cal.judged("ece", y, c, judge=judge, rng=0, n_resamples=39, n_bins=3)
    assert section["data"]["estimate"] == pytest.approx(found.estimate)


@pytest.mark.parametrize(
    ("words", "option", "needed"),
    [
        (("metric", "ece", "--inclusion", "nonsense"), "--inclusion", "--judge"),
        (("report", "--inclusion", "nonsense"), "--inclusion", "--judge"),
        (("report", "--feature", "q"), "--feature", "--target"),
        (("report", "--assume", "covariate"), "--assume", "--target"),
        (("report", "--form", "html"), "--form", "--folder"),
    ],
)
def test_an_option_that_needs_another_is_refused_alone(rows, refused, words, option, needed):
    sentence = f"{option} is used only with {needed}: add {needed}, or leave {option} out"
    refused(sentence, *words, rows, "--prob", "p")


def test_the_tool_of_a_server_refuses_options_without_effect(judged, tmp_path):
    pytest.importorskip("mcp")
    from calibrary.cli.allowed import AllowedFolders
    from calibrary.cli.server import Tools
    from calibrary.tables.sources import InputError

    for number, option in enumerate(({"unit": "z"}, {"weight": "w"}, {"positive": "1"}, {"drop_missing": True})):
        tools = Tools(AllowedFolders([tmp_path]), tmp_path / str(number))
        with pytest.raises(
            InputError, match="weight, positive, drop_missing and rescale are not used with judge: leave them out"
        ):
            tools.metric("ece", judged[0].name, label="human", prob=["p"], judge="gpt", **option)


# -- ensemble, outside and answers --------------------------------------------------------------------

NO_EFFECT = [
    ("--weight-type", "importance"), ("--shift", "site"), ("--target", "t.csv"), ("--assume", "covariate"),
    ("--feature", "a"), ("--judge", "a"), ("--inclusion", "b"), ("--model", "a"), ("--id", "i"),
    ("--model-column", "m"), ("--logits",), ("--drop-missing",), ("--blocks", "auto"), ("--normalize", "length"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        ("ensemble", [("--prob", "a"), ("--unit", "site")]),
        ("outside", [("--members-are", "mixture"), ("--features", "a"), ("--unit", "site")]),
        ("answers", [("--weight", "i"), ("--label", "correct"), ("--prob", "p"), ("--ordinal",), ("--members", "a")]),
    ],
)
def test_an_option_without_effect_is_no_option_of_the_command(command, verb, more):
    for words in [*NO_EFFECT, *more]:
        status, printed, said = command(verb, "nothing.csv", *words)
        assert (status, printed) == (2, "")
        assert said.startswith(f"calibrary: {words[0]} is not an option of calibrary {verb}: "), said


def page_of(command, path, verb, *words):
    status, _, said = command(verb, *words, *QUICK, "-o", path)
    assert status == 0, said
    saved = json.loads(path.read_text())
    return saved, {section["key"]: section for section in saved["sections"]}


@pytest.mark.parametrize(("column", "kind"), [("w", "frequency"), ("half", "importance")])
def test_members_are_weighted_and_split(ensemble, command, tmp_path, column, kind):
    path, columns, p = ensemble
    asked = ("ensemble", path, "--label", "label", "--members", "a,b,c", "--weight", column, "--by", "site")
    saved, sections = page_of(command, tmp_path / "page.json", *asked)
    y, w = np.array(columns["label"], dtype=object), np.asarray(columns[column], dtype=float)
    whole = cal.ensemble(y, p, sample_weight=w, rng=0, n_resamples=39)
    assert sections["ensemble"]["data"]["answers"]["mean"]["estimate"] == pytest.approx(whole.mean.estimate)
    kept = [v is not None for v in y]
    mean = cal.report(
        y[kept].astype(int), p[kept].mean(axis=1), sample_weight=w[kept], weight_type=kind, metrics=["ece"],
        n_resamples=39, rng=0,
    ).evaluation.row("ece")  # fmt: skip
    found = saved["evaluation"]["metrics"][0]
    assert (found["value"], found["low"], found["high"]) == pytest.approx((mean.value, mean.low, mean.high))
    assert "site" in json.dumps(sections["affected"])


def test_rows_outside_are_weighted(ensemble, command, tmp_path):
    path, columns, p = ensemble
    asked = ("outside", path, "--label", "label", "--prob", "a", "--outside", "out", "--weight", "w")
    _, sections = page_of(command, tmp_path / "page.json", *asked)
    y = np.array(columns["label"], dtype=object)
    found = cal.outside_rows(y, p[:, 0], sample_weight=columns["w"], rng=0, n_resamples=39)
    assert str(found.sentence) in sections["outside"]["sentences"]


@pytest.mark.parametrize(
    ("words", "positive"),
    [
        (("--label", "name", "--labels", "yes,no"), 0),
        (("--label", "name", "--positive", "yes"), 1),
        (("--label", "label", "--labels", "1,0"), 0),
        (("--label", "label", "--positive", "0"), 0),
    ],
)
def test_members_use_the_named_classes(ensemble, command, tmp_path, words, positive):
    path, columns, p = ensemble
    saved, _ = page_of(command, tmp_path / "page.json", "ensemble", path, "--members", "a,b,c", *words)
    kept = np.array([v is not None for v in columns["label"]])
    y = np.array([v == positive for v in columns["label"]])[kept].astype(int)
    assert saved["evaluation"]["metrics"][0]["value"] == pytest.approx(cal.compute("ece", y, p[kept].mean(axis=1)))


def test_an_array_of_members_may_hold_percentages(ensemble, command, tmp_path):
    path, _, p = ensemble
    np.save(tmp_path / "p.npy", 100 * p)
    asked = ("ensemble", path, "--label", "label", "--members", tmp_path / "p.npy", "--percent")
    saved, _ = page_of(command, tmp_path / "array.json", *asked)
    plain, _ = page_of(command, tmp_path / "columns.json", "ensemble", path, "--label", "label", "--members", "a,b,c")
    value, same = (page["evaluation"]["metrics"][0]["value"] for page in (saved, plain))
    assert value == pytest.approx(same)


def test_sampled_answers_have_units_and_segments(command, refused, tmp_path):
    pytest.importorskip("zstandard")
    from calibrary.language.logs import read_log

    log = read_log(LOG, sampled=True)
    answers, right, questions = log.sampled()
    unit = dict(zip(log.columns["id"], log.columns["i"], strict=True))
    units = [unit[id] for id in questions]
    found = sampled_answers(answers, right, units=units, rng=0, n_resamples=39)
    asked = ("answers", LOG, "--unit", "i", "--by", "topic")
    _, sections = page_of(command, tmp_path / "page.json", *asked)
    assert sections["sampled"]["data"]["pvalue"] == pytest.approx(found.pvalue)
    assert found.pvalue != sampled_answers(answers, right, rng=0, n_resamples=39).pvalue
    assert "topic" in json.dumps(sections["affected"])
    refused("no column is called 'topik': did you mean 'topic'?", "answers", LOG, "--by", "topik", "-q")
    refused(
        "the samples of question 'q0' have different values of 'epoch': here every question needs a single "
        "value, so name another column",
        "answers", LOG, "--time", "epoch", "-q",
    )  # fmt: skip


def test_the_unit_that_a_log_has_itself_changes_nothing(command):
    pytest.importorskip("zstandard")
    alone = command("answers", LOG, *QUICK)
    assert command("answers", LOG, "--unit", "id", *QUICK) == alone


# -- --resamples 0 -----------------------------------------------------------------------------------


def test_no_draws_are_refused_where_draws_are_needed(rows, judged, ensemble, refused):
    one, none = (rows, "--label", "y", "--prob", "p"), ("--resamples", 0, "-q")
    refused(NO_DRAWS.format("--interval"), "metric", "ece", *one, "--interval", *none)
    refused(NO_DRAWS.format("--test"), "metric", "ece", *one, "--test", *none)
    refused(NO_DRAWS.format("compare"), "compare", *one, "--prob", "q", *none)
    refused(NO_DRAWS.format("--shift"), "report", *one, "--shift", "month", *none)
    refused(NO_DRAWS.format("--target"), "report", *one, "--target", rows, *none)
    for words in (("metric", "ece"), ("report",)):
        refused(
            NO_DRAWS.format("--judge"), *words, judged[0], "--prob", "p", "--label", "human", "--judge", "gpt", *none
        )
    refused(
        NO_DRAWS.format("calibrary ensemble"), "ensemble", ensemble[0], "--label", "label", "--members", "a,b", *none
    )
    refused(NO_DRAWS.format("calibrary outside"), "outside", ensemble[0], "--prob", "a", "--outside", "out", *none)
    refused(NO_DRAWS.format("calibrary answers"), "answers", LOG, *none)


def test_no_draws_give_estimates_where_none_are_needed(rows, command):
    one = (rows, "--label", "y", "--prob", "p", "--resamples", 0)
    status, printed, _ = command("metric", "ece", *one)
    assert (status, printed[:4], "[" in printed) == (0, "ece ", False)
    status, printed, _ = command("report", *one, "--metrics", "ece", "-q")
    assert (status, "No test was made" in " ".join(printed.split())) == (0, True)


# -- a saved report ----------------------------------------------------------------------------------


@pytest.fixture
def saved(rows, command, tmp_path):
    path = tmp_path / "saved.json"
    words = ("--label", "y", "--prob", "p", "--metrics", "ece", "--resamples", 0, "-q", "-o", path)
    status, _, said = command("report", rows, *words)
    assert status == 0, said
    return path


def test_a_saved_report_is_printed_as_json(saved, command, tmp_path):
    status, printed, said = command("report", saved, "--json", "-o", tmp_path / "page.html")
    assert (status, said) == (0, f"written: {tmp_path / 'page.html'}")
    assert json.loads(printed) == json.loads(saved.read_text())
    status, _, said = command("report", saved, "--json", "--fail-if", "ece.value>0")
    assert (status, said[:7]) == (1, "failed:")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--folder", "reports", "--form", "html"), "--folder and --form are"),
        (("--title", "T", "--purpose", "P", "--author", "A"), "--title, --purpose and --author are"),
        (("--date", ""), "--date is"),
        (("--metrics", "bs"), "--metrics is"),
        (("--primary", "bs", "--family", "bin"), "--family and --primary are"),
        (("--label", "y", "--prob", "p", "--weight", "w"), "--label, --prob and --weight are"),
        (("--resamples", 0), "--resamples is"),
        (("--seed", 3, "--bins", 5, "--workers", 2), "--bins, --seed and --workers are"),
        (("--by", "site", "--unit", "u", "--lens", "full"), "--lens, --unit and --by are"),
        (("--judge", "j", "--level", 0.9), "--level and --judge are"),
    ],
)
def test_a_saved_report_refuses_options_without_effect(saved, refused, words, named):
    out = "leave it out" if named.endswith("is") else "leave them out"
    refused(f"{named} not used with a saved report: {out}", "report", saved, *words)
