"""Everything that is wrong with a file is said at once, with counts, first rows and the option that solves it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from calibrary.cli.read import read_predictions
from calibrary.tables.problems import ProblemsError
from calibrary.tables.sources import InputError

MESSY = """case,diagnosis,model_risk
1,healthy,0.1
2,sick,0.8
3,unknown,0.3
4,healthy,
5,sick,n.d.
6,sick,42.9%
7,healthy,1.2
8,,0.4
9,unknown,0.5
10,healthy,0.25
11,sick,0.75
"""


@pytest.fixture
def messy(tmp_path):
    path = tmp_path / "messy.csv"
    path.write_text(MESSY)
    return path


HOW = {"label": "diagnosis", "prob": ["model_risk"]}


def test_all_problems_are_in_one_table_with_rows_as_in_the_file(messy):
    with pytest.raises(ProblemsError) as found:
        read_predictions(messy, **HOW)
    counted = {(p.column, p.what): (p.count, p.rows, p.remedy) for p in found.value.problems}
    assert counted == {
        ("diagnosis", "missing values"): (1, (9,), "--drop-missing"),
        ("model_risk", "missing values"): (1, (5,), "--drop-missing"),
        ("model_risk", "text such as 'n.d.' in place of numbers"): (1, (6,), "--drop-invalid"),
        ("model_risk", "percent signs"): (1, (7,), "write all values on one scale, or --drop-invalid"),
        ("model_risk", "values outside 0 to 1"): (1, (8,), "--drop-invalid"),
        ("diagnosis", "the label 'unknown' beside 'healthy', 'sick'"): (2, (4, 10), "--drop-label unknown"),
    }
    lines = str(found.value).split("\n")
    assert lines[0].endswith("messy.csv has 6 problems (rows are counted as in the file, a header too):")
    assert len(lines) == 8
    assert len({line.index("what solves it" if i == 0 else "--") > 0 for i, line in enumerate(lines[1:])}) == 1


def test_the_named_options_solve_what_they_say(messy):
    found = read_predictions(messy, **HOW, drop_invalid=True, drop_label=["unknown"], positive="sick")
    assert found.y.tolist() == [0, 1, 0, 1]
    assert found.models["model_risk"].tolist() == [0.1, 0.8, 0.25, 0.75]
    assert "2 rows with the label 'unknown' left out" in found.notes
    assert found.n_dropped == 5
    with pytest.raises(ProblemsError) as rest:
        read_predictions(messy, **HOW, drop_missing=True)
    assert {p.remedy for p in rest.value.problems} >= {"--drop-invalid", "--drop-label unknown"}
    assert not any(p.what == "missing values" for p in rest.value.problems)


def test_one_problem_alone_is_one_sentence(tmp_path):
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n0,\n")
    with pytest.raises(InputError, match="has 1 missing value, the first in row 2") as found:
        read_predictions(tmp_path / "a.csv")
    assert not isinstance(found.value, ProblemsError)


def test_a_label_that_does_not_occur_cannot_be_left_out(messy):
    with pytest.raises(InputError, match="--drop-label 'unclear' is not a label of column 'diagnosis'"):
        read_predictions(messy, **HOW, drop_label=["unclear"])


def test_one_class_alone_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("y,p\nspam,0.5\nspam,0.6\n")
    with pytest.raises(InputError, match="holds one label alone, 'spam': calibration needs rows of both classes"):
        read_predictions(tmp_path / "a.csv")


def test_an_identifier_that_repeats_is_a_problem(tmp_path):
    (tmp_path / "a.csv").write_text("id,y,p\n1,1,0.5\n1,0,\n")
    with pytest.raises(ProblemsError) as found:
        read_predictions(tmp_path / "a.csv", id="id")
    assert [(p.column, p.rows) for p in found.value.problems] == [("p", (3,)), ("id", (3,))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,234.5", "separators of thousands"),
        ("0,5", "decimal point"),
        ("42.9%", "1 value with a percent sign, and 2 without"),
    ],
)
def test_a_text_that_is_nearly_a_number_says_what_it_may_be(tmp_path, text, said):
    (tmp_path / "a.csv").write_text(f'y,p\n1,0.5\n0,"{text}"\n1,0.3\n')
    with pytest.raises(InputError, match=said):
        read_predictions(tmp_path / "a.csv")


def test_probabilities_beside_percentages_are_refused_and_percentages_with_and_without_a_sign_are_not(tmp_path):
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n0,42.9%\n1,0.3\n")
    with pytest.raises(InputError, match="write all values on one scale"):
        read_predictions(tmp_path / "a.csv", percent=True)
    (tmp_path / "b.csv").write_text("y,p\n1,50\n0,42.9%\n1,0.3\n0,20\n")
    assert read_predictions(tmp_path / "b.csv", percent=True).models["p"].tolist() == pytest.approx(
        [0.5, 0.429, 0.003, 0.2]
    )
    with pytest.raises(InputError, match="--percent"):
        read_predictions(tmp_path / "b.csv")


def test_a_first_line_of_numbers_is_a_row_that_would_be_lost(tmp_path):
    (tmp_path / "a.csv").write_text("1,0.5\n0,0.2\n1,0.3\n")
    with pytest.raises(InputError, match=r"holds only numbers \(1,0.5\).*label,prob"):
        read_predictions(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("0,1\n1,0.5\n0,0.2\n1,0.3\n")  # the names that pandas gives to unnamed columns
    assert read_predictions(tmp_path / "b.csv", label="0", prob="1").models["1"].tolist() == [0.5, 0.2, 0.3]


def test_a_few_other_labels_are_left_out_by_an_option_and_many_are_classes(tmp_path):
    rows = [f"{'no' if i % 2 else 'yes'},0.{1 + i % 8}" for i in range(40)]
    for others, said in ((5, r"--drop-label \('unknown'\)"), (15, "one column per class, or a --label that says")):
        (tmp_path / "a.csv").write_text("\n".join(["y,p", *rows, *["unknown,0.5"] * others]))
        with pytest.raises(InputError, match=said):
            read_predictions(tmp_path / "a.csv", label="y", prob="p")


def test_log_probabilities_are_not_taken_for_logits(tmp_path):
    """Every number is below 0, and the logistic function of a log probability is no probability that anyone meant."""
    (tmp_path / "a.csv").write_text(
        "correct,logprob\n" + "\n".join(f"{i % 2},-{0.1 * (1 + i % 9):.1f}" for i in range(40))
    )
    with pytest.raises(InputError, match="if 'logprob' holds log probabilities, write exp of it"):
        read_predictions(tmp_path / "a.csv")


def test_the_terminal_shows_the_table_line_by_line_and_options_are_checked_first(messy):
    def run(*words):
        called = [sys.executable, "-m", "calibrary", "report", *words]
        return subprocess.run(called, capture_output=True, text=True, check=False)

    found = run(str(messy), "--label", "diagnosis", "--prob", "model_risk")
    assert found.returncode == 2
    assert len(found.stderr.splitlines()) == 8
    assert "--drop-label unknown" in found.stderr
    wrong = run(str(messy), "--threshold", "20")
    assert "--threshold 20" in wrong.stderr
    assert "problems" not in wrong.stderr


def _ten(tmp_path, decimals):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(10), 50).round(decimals)
    rows = [",".join(map(str, [rng.integers(10), *row])) for row in p]
    path = tmp_path / "ten.csv"
    path.write_text("\n".join([",".join(["y", *(f"p{j}" for j in range(10))]), *rows]))
    return path, int((np.abs(p.sum(axis=1) - 1) > 1.000001e-6).sum())


def test_rounded_rows_are_divided_by_their_sums_and_counted(tmp_path):
    path, off = _ten(tmp_path, 3)
    found = read_predictions(path)
    assert off > 0
    assert any(note.startswith(f"{off} of 50 rows did not sum to 1 and were divided") for note in found.notes)
    assert np.allclose(found.models["p"].sum(axis=1), 1.0, atol=1e-6)


def test_rows_that_rounding_does_not_explain_need_rescale(tmp_path):
    (tmp_path / "a.csv").write_text("y,p0,p1,p2\n0,0.5,0.3,0.1\n1,0.25,0.25,0.5\n")
    with pytest.raises(InputError, match="--rescale"):
        read_predictions(tmp_path / "a.csv")
    found = read_predictions(tmp_path / "a.csv", rescale=True)
    assert np.allclose(found.models["p"][0], np.array([5, 3, 1]) / 9)
    assert any("1 of 2 rows did not sum to 1" in note for note in found.notes)


def _remedies(tmp_path, text, **how):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ProblemsError) as found:
        read_predictions(tmp_path / "a.csv", **how)
    return {(p.column, p.what): (p.count, p.remedy) for p in found.value.problems}


def test_percentages_with_and_without_a_sign_are_one_problem(tmp_path):
    found = _remedies(tmp_path, "y,p\n1,50%\n0,60\n1,70\n,80%\n")
    assert found[("p", "percentages")] == (4, "--percent")
    assert ("p", "values outside 0 to 1") not in found


def test_an_option_that_would_leave_no_row_is_not_named_as_the_remedy(tmp_path):
    found = _remedies(tmp_path, "y,p,w\n1,high,\n0,low,\n1,high,\n", label="y", prob=["p"], weight="w")
    assert found == {
        ("w", "missing values"): (3, "name another column"),
        ("p", "text such as 'high' in place of numbers"): (3, "name another column with --prob"),
    }
    many = _remedies(tmp_path, "y,p\na,0.5\nb,0.4\nc,0.3\nd,\n", label="y", prob=["p"])
    assert many[("y", "4 labels beside one column of probabilities")][1].startswith("one column for each class")


def test_names_of_classes_that_do_not_occur_are_not_a_problem_of_the_rows(tmp_path):
    (tmp_path / "a.csv").write_text("y,p\nill,0.5\nwell,0.4\nsick,0.3\n")
    with pytest.raises(InputError, match="which --labels does not name"):
        read_predictions(tmp_path / "a.csv", labels=["a", "b"])


def test_every_row_that_was_left_out_is_counted_once(messy):
    found = read_predictions(messy, **HOW, drop_invalid=True, drop_label=["unknown"], positive="sick")
    assert found.left_out == {
        "with a label to leave out": 2, "without diagnosis": 1, "without model_risk": 1, "invalid": 3
    }  # fmt: skip
    assert len(found.y) + sum(found.left_out.values()) == 11


def test_one_problem_beside_rows_left_out_is_counted_as_in_the_file(tmp_path):
    path = tmp_path / "percent.csv"
    path.write_text("died,risk\n1,\n0,\n1,60%\n0,20%\n")
    with pytest.raises(ProblemsError, match="has 1 problem ") as found:
        read_predictions(path, label="died", prob=["risk"], drop_missing=True)
    assert [(p.rows, p.remedy) for p in found.value.problems] == [((4, 5), "--percent")]
