"""``calibrary ensemble`` and ``calibrary outside``: columns and arrays lead to the sections of a page."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

import calibrary as cal

pytestmark = pytest.mark.usefixtures("outlined")

QUICK = ("--metrics", "ece", "--resamples", 39, "-q")


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


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    a = rng.random(200)
    q, p = rng.beta(4 * a, 4 * (1 - a)), rng.beta(40 * a[:, None], 40 * (1 - a[:, None]), (200, 3))
    y = (rng.random((200, 2)) < q[:, None]).astype(int).astype(object)
    y[180:] = None
    return y, p


@pytest.fixture
def file(rows, tmp_path):
    y, p = rows
    path = tmp_path / "members.csv"
    lines = [
        ",".join([*("" if v is None else str(v) for v in y[i]), *(repr(float(v)) for v in p[i]), repr(float(p[i, 1])),
                  str(int(i >= 180)), str(int(i % 2 == 0)), "0"])
        for i in range(200)
    ]  # fmt: skip
    path.write_text("\n".join(["y1,y2,a,b,c,b2,out,odd,none", *lines]))
    return path


def sections(path):
    saved = json.loads(path.read_text())
    return saved, {section["key"]: section for section in saved["sections"]}


def test_members_of_columns_have_a_section(rows, file, tmp_path):
    y, p = rows
    page = tmp_path / "page.json"
    status, _, err = command("ensemble", file, "--label", "y1,y2", "--members", "a", "b", "c", "-o", page, *QUICK)
    assert status == 0, err
    saved, found = sections(page)
    whole = cal.ensemble(y, p, rng=0, n_resamples=39)
    assert found["ensemble"]["data"]["answers"]["spread"]["estimate"] == pytest.approx(whole.spread.estimate)
    assert found["ensemble"]["data"]["answers"]["spread"]["pvalue"] == pytest.approx(whole.spread.pvalue)
    assert [figure["name"] for figure in found["ensemble"]["figures"]] == ["Claimed and true spread"]
    assert str(whole.spread.sentence) in found["ensemble"]["sentences"]
    assert found["outside"]["data"]["n_outside"] == 20
    assert saved["data"]["rows"] == 180


def test_members_of_an_array_are_the_same(rows, file, tmp_path):
    y, p = rows
    np.save(tmp_path / "p.npy", np.stack([1 - p, p], axis=2))
    label = np.array([-1.0 if v is None else float(v) for v in y[:, 0]])
    np.savez(tmp_path / "all.npz", label=np.where(label < 0, np.nan, label), members=p)
    page, again = tmp_path / "page.json", tmp_path / "again.json"
    status, _, err = command("ensemble", file, "--label", "y1", "--members", tmp_path / "p.npy", "-o", page, *QUICK)
    assert status == 0, err
    status, _, err = command("ensemble", tmp_path / "all.npz", "--members", "members", "-o", again, *QUICK)
    assert status == 0, err
    one, two = (sections(path)[1]["ensemble"]["data"]["answers"] for path in (page, again))
    assert one["mean"]["estimate"] == pytest.approx(two["mean"]["estimate"])
    assert "cannot be estimated from one label per row" in one["spread"]["sentence"]


def test_rows_outside_have_a_section_without_members(rows, file, tmp_path):
    y, p = rows
    page = tmp_path / "page.html"
    asked = ("--label", "y1", "--prob", "a", "--outside", "out", "--prevalence-outside", 0.2)
    status, _, err = command("outside", file, *asked, "-o", page, *QUICK)
    assert status == 0, err
    found = cal.outside_rows(y[:, 0], p[:, 0], prevalence_outside=0.2, rng=0, n_resamples=39)
    assert "Rows that belong to no class" in page.read_text()
    assert str(found.sentence).split(".")[0] in page.read_text()


def test_guessed_columns_are_said_on_the_page_and_two_readings_are_refused(rows, tmp_path):
    y, p = rows
    path, page = tmp_path / "guessed.csv", tmp_path / "page.json"
    lines = [f"{label},{a},{b}" for label, (a, b) in zip(y[:180, 0], p[:180, :2], strict=True)]
    path.write_text("\n".join(["died,risk,m2", *lines]))
    last = ("--metrics", "ece", "--resamples", 39, "-o", page)
    status, _, err = command("ensemble", path, "--members", "risk,m2", *last)
    assert (status, "label column guessed: died (the only column with two values)" in err) == (0, True), err
    facts = json.loads(page.read_text())["facts"]
    assert (facts["label"], facts["prediction"]) == ("died", "risk, m2")
    assert facts["guessed"] == ["label"]
    marked = [f"{line},{i % 2},0" for i, line in enumerate(lines)]
    path.write_text("\n".join(["fell,risk,m2,slept,out", *marked, ",0.5,0.5,1,1"]))
    status, _, err = command("outside", path, "--outside", "out", *last)
    assert (status, "several columns may be the label, because their values fit ('fell', 'slept')" in err) == (2, True)
    status, _, err = command("outside", path, "--outside", "out", "--label", "fell", *last)
    assert (status, "probability columns guessed: risk" in err) == (0, True), err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--members", "a"), "--members a is one member, and an ensemble needs two or more"),
        (("--members", "a", "a"), "--members names the column 'a' twice: name every member once"),
        (("--members", "a", "b", "b2"), "members b and b2 are equal in every row: remove one of them"),
        (("--members", "a,x"), "no column is called 'x'"),
        (("--members", "a,b", "--members-are", "samples"), "--members-are 'samples' is not known"),
        (("--members", "nowhere.npy"), "there is no such file"),
        (("--prob", "a", "--outside", "a"), "--outside needs a column of true and false"),
        (
            ("--prob", "a", "--outside", "odd"),
            "row 1 (not counting a header) is marked in column 'odd' and has the label 1: a row that belongs to no "
            "class has no true label; leave its label empty, or remove the mark",
        ),
        (
            ("--members", "a,b", "--outside", "none"),
            "row 181 (not counting a header) has no label and is not marked in column 'none': drop the row, or mark it",
        ),
        (("--members", "a,b", "--prevalence-outside", "2"), "--prevalence-outside 2.0: pass a number between 0 and 1"),
    ],
)
def test_unreadable_members_give_one_sentence(file, words, said):
    verb = "ensemble" if "--members" in words else "outside"
    status, _, err = command(verb, file, "--label", "y1", *words, *QUICK)
    assert status == 2
    assert said in err
