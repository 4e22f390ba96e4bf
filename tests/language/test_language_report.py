"""Pages and commands about language models: sampled answers, a judge, and plans of samples."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

import calibrary as cal
from calibrary.language.planning import sampled_plan
from calibrary.reporting.other_data import CAUTION
from paths import ROOT

LOGS = ROOT / "tests" / "data" / "logs"


def command(*words):
    """Run the command line in this process."""
    from calibrary.cli.main import main

    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        patch.setattr("sys.argv", ["calibrary", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code or 0, " ".join(out.getvalue().split()), " ".join(err.getvalue().split())


def answers(n=120, k=5, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    q = rng.beta(2, 2, n)
    samples = np.where(rng.random((n, k)) < q[:, None], 1, 0)
    return samples, rng.random(n) < q**power


def sampled(**world):
    samples, right = answers(**world)
    return (
        right.astype(int),
        samples.mean(axis=1),
        cal.sampled_answers(samples, right, answer=np.ones(len(right)), rng=0),
    )


def test_the_test_of_sampled_answers_is_the_answer_of_the_page():
    y, share, found = sampled()
    page = cal.report(y, share, sections=[found], metrics=["ece", "bs"])
    within = "Calibrated within 0.05" if found.high <= 0.05 else "Cannot tell whether the ECE is within 0.05"
    assert page.headline.startswith(f"{within} (exact test of sampled answers, p = ")
    assert page.verdict == ("calibrated within tolerance" if found.high <= 0.05 else "cannot tell")
    assert page.statements == (CAUTION,)
    section = next(s for s in page.sections if s.key == "sampled")
    assert section.title == "Sampled answers"
    assert section.sentences[0] == found.sentence
    assert "estimated from 5 samples" in section.sentences[1]
    assert section.data["error"] == found.value
    assert all(row.pvalue is None for row in page.evaluation.rows)  # the shares are noisy: they are not tested
    html = page.to_html()
    assert "Contributions to the error" in html
    assert cal.Report.from_dict(json.loads(json.dumps(page.to_dict()))).to_html() == html
    y, share, found = sampled(n=400, power=2.0)
    page = cal.report(y, share, sections=[found], metrics=["ece"])
    assert page.headline.startswith("Not calibrated (exact test of sampled answers, p < 0.005). The calibration error")


def test_a_log_of_epochs_makes_a_page(tmp_path):
    pytest.importorskip("zstandard")
    path = tmp_path / "page.html"
    status, out, err = command("answers", LOGS / "inspect_epochs.eval", "--metrics", "ece,bs", "-o", path)
    assert status == 0, err
    assert "(exact test of sampled answers, p = 0.5" in out.replace("\n", " ")
    assert "Not calibrated" not in out
    assert "60 questions with 300 samples" in err
    assert "Sampled answers" in path.read_text()
    status, out, err = command("answers", LOGS / "inspect_epochs.eval", "--answer", "split", "-q")
    assert (status, "without sampling noise is 0.122" in out) == (0, True)
    status, _, err = command("answers", LOGS / "inspect_epochs.eval", "--answer", "majority")
    assert (status, "winner's curse" in err) == (2, True)
    status, _, err = command("answers", LOGS / "inspect_sums.eval")
    assert (status, "one answer for each question" in err) == (2, True)


@pytest.fixture
def labelled(tmp_path):
    """A file with 800 rows, a judge of all of them, and 120 human labels."""
    rng = np.random.default_rng(0)
    c = np.round(rng.random(800), 4)
    y = (rng.random(800) < c).astype(int)
    judge = np.where(rng.random(800) < 0.9, y, 1 - y)
    path = tmp_path / "judged.csv"
    rows = [f"{y[i] if i < 120 else ''},{c[i]},{judge[i]},{0.15}" for i in range(800)]
    path.write_text("human,p,gpt,chance\n" + "\n".join(rows) + "\n")
    human = np.where(np.arange(800) < 120, y, np.nan)
    return path, human, c, judge


def test_a_judge_has_a_section_and_a_number(labelled, tmp_path):
    path, human, c, judge = labelled
    found = cal.judged("ece", human, c, judge=judge, rng=0)
    status, out, err = command("metric", "ece", path, "--label", "human", "--judge", "gpt")
    assert status == 0, err
    assert out == f"ece {found.value:.10g} [{found.low:.6g}, {found.high:.6g}]"
    assert found.sentence in err
    known = cal.judged("bs", human, c, judge=judge, inclusion=np.full(800, 0.15), rng=0)
    status, out, _ = command("metric", "bs", path, "--label", "human", "--judge", "gpt", "--inclusion", "chance", "-q")
    assert out == f"bs {known.value:.10g} [{known.low:.6g}, {known.high:.6g}]"
    page = tmp_path / "page.json"
    options = ("--label", "human", "--prob", "p", "--judge", "gpt", "--metrics", "ece", "--resamples", 99, "-o", page)
    status, out, err = command("report", path, *options)
    assert status == 0, err
    saved = json.loads(page.read_text())
    section = next(s for s in saved["sections"] if s["key"] == "judge")
    assert section["title"] == "Human and judge"
    assert section["data"]["n_labels"] == 120
    assert [figure["name"] for figure in section["figures"]] == ["Estimates from each set of labels"]
    assert saved["data"]["rows"] == 120
    status, _, err = command("metric", "ece", path, "--label", "human", "--judge", "gtp")
    assert (status, "no column is called 'gtp'" in err) == (2, True)


def test_the_columns_beside_a_judge_are_said_or_refused(labelled, tmp_path):
    lines = labelled[0].read_text().splitlines()
    asked = ("--judge", "gpt", "--metrics", "ece", "--resamples", 99)
    _, _, err = command("metric", "ece", labelled[0], "--judge", "gpt", "--resamples", 99)
    assert "label column guessed: human (the only column with two values, beside those named" in err
    assert "probability columns guessed: p" in err
    page = tmp_path / "page.json"
    status, _, err = command("report", labelled[0], *asked, "-o", page)
    assert status == 0, err
    assert json.loads(page.read_text())["facts"]["guessed"] == ["label", "probability"]
    two = tmp_path / "two.csv"
    two.write_text("\n".join([lines[0] + ",score", *(f"{line},{line.split(',')[1]}" for line in lines[1:])]))
    for words in (("metric", "ece", two, "--judge", "gpt"), ("report", two, *asked)):
        status, _, err = command(*words)
        assert (status, "several columns may be the probability" in err) == (2, True), err
    both = ("metric", "ece", labelled[0], "--prob", "p", "--label", "gpt", "--judge", "gpt")
    assert "column 'gpt' is named as the judge and taken as the label" in command(*both)[2]


def test_a_budget_of_calls_is_divided():
    found, more = (sampled_plan(budget, error=0.15, n_resamples=40, rng=0) for budget in (900, 902))
    assert found.n * (found.k + 1) <= 900
    assert found.power == max(power for *_, power in found.tried)
    paid = [(one, two) for one, two in zip(found.tried, more.tried, strict=True) if one[0] == two[0]]
    assert len(paid) == len(found.tried) - 1  # two calls more pay for a question with ten samples, and for nothing else
    assert all(one == two for one, two in paid)
    assert f"{found.n:,} questions with {found.k + 1} samples each" in found.sentence
    none = sampled_plan(900, error=1e-9, n_resamples=60, rng=0)
    assert all(power <= 0.2 for *_, power in none.tried)
    with pytest.raises(ValueError, match="budget=30"):
        sampled_plan(30)


def test_the_command_plans_samples():
    status, out, err = command("plan", "ece", "--sampled", 600, "--error", 0.15, "--law", "2,2", "--resamples", 20)
    assert status == 0, err
    assert "With 600 calls," in out
    assert "samples each:" in out
