"""``calibrary mcp``: a real client over standard input and output, and attacks on the folders that may be read."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys

import numpy as np
import pytest

import calibrary as cal
from calibrary.cli.allowed import AllowedFolders
from calibrary.cli.sources import InputError
from paths import ROOT

LOGS = ROOT / "tests" / "data" / "logs"


def asked(folders, *calls, options=()):
    """The answers of the tools, the list of tools and the schema of a server for these folders, in one session."""
    mcp = pytest.importorskip("mcp")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    command = ["-m", "calibrary", "mcp", *map(str, folders), *options]
    server = mcp.StdioServerParameters(command=sys.executable, args=command, env=env)

    async def session():
        async with mcp.Client(mcp.stdio_client(server)) as client:
            listed = (await client.list_tools()).tools
            told = await client.read_resource("calibrary://report.schema.json")
            return listed, json.loads(told.contents[0].text), [await client.call_tool(n, given) for n, given in calls]

    return asyncio.run(session())


@pytest.fixture
def folder(tmp_path):
    """A folder with predictions of two models in one file."""
    y, p, _ = cal.datasets.breast_cancer()
    rows = [f"{a},{b},{0.5 + 0.5 * (b - 0.5)}" for a, b in zip(y[:200], p[:200], strict=True)]
    data = tmp_path / "data"
    data.mkdir()
    (data / "p.csv").write_text("y,p,shrunk\n" + "\n".join(rows) + "\n")
    return data


# -- a client's session ------------------------------------------------------------------------------


def test_a_client_asks_every_tool(folder):
    jsonschema = pytest.importorskip("jsonschema")
    few = {"resamples": 99}
    tools, schema, found = asked(
        [folder, LOGS],
        ("metric", {"id": "bs", "path": "inspect_sums.json", **few}),
        ("metric", {"id": "ece", "path": str(folder / "p.csv"), "label": "y", "prob": ["p"], **few}),
        ("verdict", {"condition": "bs<0.5", "path": "inspect_sums.json", **few}),
        ("compare", {"paths": ["p.csv"], "models": ["p", "shrunk"], "label": "y", "metrics": ["bs"], **few}),
        ("explain", {"id": "ECE"}),
        ("recommend", {"goal": "test", "most": 2}),
        ("report", {"path": "inspect_sums.json", "metrics": ["bs"], **few}),
        ("metric", {"id": "bs", "path": "../secret.csv"}),
        ("metric", {"id": "brie", "path": "p.csv"}),
        ("metric", {"id": "bs", "path": "p.csv", "resamples": 10**9}),
    )  # fmt: skip
    assert [t.name for t in tools] == ["report", "metric", "verdict", "compare", "explain", "recommend"]
    assert all(t.annotations.read_only_hint and t.description and t.output_schema for t in tools)
    by_name = {t.name: t.output_schema for t in tools}
    names = ("metric", "metric", "verdict", "compare", "explain", "recommend", "report")
    for name, answer in zip(names, found[:7], strict=True):
        assert not answer.is_error, answer.content[0].text
        jsonschema.validate(answer.structured_content, by_name[name])
        assert answer.content[0].text == answer.structured_content["sentence"]
    bs, ece, verdict, compared, explained, recommended, report = (a.structured_content for a in found[:7])
    log = cal.language.read_log(LOGS / "inspect_sums.json")
    assert bs["value"] == pytest.approx(cal.brier_score(log.columns["correct"], log.columns["confidence"]))
    assert (bs["n"], bs["notes"][0]) == (60, log.said)
    y, p, _ = cal.datasets.breast_cancer()
    ends = cal.interval("ece", y[:200], p[:200], rng=0, n_resamples=99)
    assert (ece["value"], ece["low"], ece["high"]) == pytest.approx((ends.estimate, ends.low, ends.high))
    assert ece["sentence"] == f"The expected calibration error is {ece['value']:.3f} (95% interval " + (
        f"{ece['low']:.3f} to {ece['high']:.3f})."
    )
    assert (verdict["status"], verdict["n_needed"]) == ("pass", None)
    (pair,) = compared["comparisons"]
    assert (pair["metric"], pair["a"], pair["b"]) == ("bs", "p", "shrunk")
    assert pair["difference"] == pytest.approx(
        cal.brier_score(y[:200], p[:200]) - cal.brier_score(y[:200], 0.5 + 0.5 * (p[:200] - 0.5))
    )
    assert explained["sentence"] == cal.catalogue["ece"].meaning
    assert explained["facts"]["when to use"] == cal.catalogue["ece"].use
    assert [r["id"] for r in recommended["recommendations"]] == [r.id for r in cal.recommend("binary", "test", most=2)]
    jsonschema.validate(report["report"], schema)
    assert report["sentence"].startswith(report["report"]["headline"])
    assert "calibrary mcp" not in json.dumps(report)  # a client sent the request, so that there is no typed command
    outside, unknown, many = (a.content[0].text for a in found[7:])
    assert all(a.is_error for a in found[7:])
    assert "'../secret.csv' is outside of the folders that may be read" in outside
    assert "no metric is called 'brie'" in unknown
    assert "less than or equal to 9999" in many


def test_a_client_cannot_leave_the_folders_nor_wait_forever(folder, tmp_path):
    (tmp_path / "secret.csv").write_text("y,p\n1,0.5\n0,0.4\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    os.mkfifo(folder / "pipe.csv")
    with (folder / "huge.csv").open("wb") as file:
        file.truncate(1 << 42)
    paths = {
        str(tmp_path / "secret.csv"): "outside of the folders",
        "link.csv": "outside of the folders",
        "pipe.csv": "is not a regular file",
        "/dev/zero": "outside of the folders",
        "huge.csv": "has 4,398,047 MB and the most is 5 MB",
        "a\0b.csv": "is not a path",
    }
    *_, found = asked(
        [folder],
        *(("metric", {"id": "bs", "path": p}) for p in paths),
        ("compare", {"paths": ["p.csv", "link.csv"]}),
        options=("--most-mb", "5"),
    )
    for answer, said in zip(found, [*paths.values(), "outside of the folders"], strict=True):
        assert answer.is_error
        assert said in answer.content[0].text
        assert "0.5" not in answer.content[0].text


def test_without_a_folder_there_is_no_server(tmp_path):
    from typer.testing import CliRunner

    from calibrary.cli.main import app

    pytest.importorskip("mcp")
    ran = CliRunner().invoke(app, ["mcp", str(tmp_path / "none")])
    assert isinstance(ran.exception, InputError)
    assert "is not a folder: name the folders whose files may be read" in str(ran.exception)


# -- the folders, without a server ---------------------------------------------------------------------


@pytest.mark.parametrize("path", ["..", "../data2/p.csv", "sub/../../x", "/etc/passwd", "/proc/self/environ", "~/x"])
def test_paths_out_of_the_folders_are_refused(folder, path):
    beside = folder.parent / "data2"  # its name begins with that of the folder
    beside.mkdir()
    (beside / "p.csv").write_text("y,p\n1,0.5\n")
    with pytest.raises(InputError, match=r"outside of the folders|does not exist"):
        AllowedFolders([folder]).find(path)


def test_links_are_followed_before_they_are_checked(folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "p.csv").write_text("y,p\n1,0.5\n")
    allowed = AllowedFolders([folder])
    (folder / "inner.csv").symlink_to(folder / "p.csv")
    assert allowed.find("inner.csv") == (folder / "p.csv").resolve()
    (folder / "way").symlink_to(outside)
    for path in ("way/p.csv", "way/../p.csv", "way"):
        with pytest.raises(InputError, match=r"outside of the folders|does not exist"):
            allowed.find(path)
    with pytest.raises(InputError, match="holds a link out of the folders that may be read: 'way'"):
        allowed.find(".")  # a folder read as one table
    (folder / "way").unlink()
    (folder / "circle").symlink_to(folder / "circle")
    with pytest.raises(InputError, match=r"cannot be read|does not exist|is not a path"):
        allowed.find("circle")
    linked = tmp_path / "linked"
    linked.symlink_to(folder)  # the folder itself may be named by a link
    assert AllowedFolders([linked]).find("p.csv") == (folder / "p.csv").resolve()


def test_devices_pipes_and_sockets_are_never_opened(folder):
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(folder)  # the name of a socket must be short
        try:
            server.bind("socket.csv")
        finally:
            os.chdir(here)
    os.mkfifo(folder / "pipe.csv")
    for name in ("socket.csv", "pipe.csv"):
        with pytest.raises(InputError, match="is not a regular file: a device, pipe or socket is never opened"):
            AllowedFolders([folder]).find(name)
    with pytest.raises(InputError, match="is not a regular file"):
        AllowedFolders([folder]).find(".")
    with pytest.raises(InputError, match="is not a regular file"):
        AllowedFolders(["/dev"]).find("null")


def test_sizes_names_and_empty_paths(folder, monkeypatch):
    allowed = AllowedFolders([folder], most_bytes=1000)
    with pytest.raises(InputError, match="start the server with a larger --most-mb"):
        allowed.find("p.csv")
    parts = folder / "parts"
    parts.mkdir()
    for i in range(3):
        (parts / f"{i}.csv").write_text("x" * 400)
    with pytest.raises(InputError, match="'parts' has"):
        allowed.find("parts")  # its files together
    monkeypatch.setattr("calibrary.cli.allowed.MOST_FILES", 2)
    with pytest.raises(InputError, match="holds more than 2 files"):
        allowed.find("parts")
    for path in ("", " ", "a\0b"):
        with pytest.raises(InputError, match="is not a path: name a file"):
            allowed.find(path)
    with pytest.raises(InputError, match="cannot be the name of a file"):
        allowed.find("\ud800.csv")
    odd = os.fsdecode(b"caf\xe9.csv")  # a name that is not UTF-8
    (folder / odd).write_text("y,p\n1,0.5\n")
    assert allowed.find(odd) == folder.resolve() / odd
    with pytest.raises(InputError, match="has 5,000 characters: name a file"):
        allowed.find("x" * 5000)
    with pytest.raises(InputError, match="does not exist"):
        allowed.find("x" * 300)  # longer than a name may be
    with pytest.raises(InputError, match="no folder was named"):
        AllowedFolders([])


def test_a_tool_prints_nothing(folder, capfd):
    """Standard output belongs to the protocol."""
    pytest.importorskip("mcp")
    from calibrary.cli.server import Tools

    answer = Tools(AllowedFolders([folder])).report("p.csv", prob=["p"], metrics=["bs"], resamples=39)
    assert answer["sentence"]
    assert capfd.readouterr().out == ""


def test_nan_and_infinities_become_null_and_words_in_json():
    pytest.importorskip("mcp")
    from calibrary.cli.server import _for_json

    assert _for_json({"a": np.float64("inf"), "b": [float("nan"), np.int64(3)], "c": (-np.inf, 0.5, "x")}) == {
        "a": "inf", "b": [None, 3], "c": ["-inf", 0.5, "x"],
    }  # fmt: skip


# -- what the server says ----------------------------------------------------------------------------


def test_the_claims_of_an_estimate_and_a_comparison_are_true():
    pytest.importorskip("mcp")
    from calibrary.base.claims import KnownTruth, holds
    from calibrary.cli.server import _comparison_sentence
    from calibrary.metrics.machinery.shown import estimate_sentence

    rng = np.random.default_rng(3)
    q = rng.uniform(0.05, 0.95, 400)
    y, other = (rng.random(400) < q).astype(int), 0.5 + 0.2 * (q - 0.5)
    brier, true = [np.mean((y - p) ** 2) for p in (q, other)], [np.mean(q + p * p - 2 * p * q) for p in (q, other)]
    few = {"rng": 0, "n_resamples": 199}
    (compared,) = cal.compare("bs", y, {"q": q, "other": other}, **few)
    said = _comparison_sentence("bs", compared)
    told = {"bs of q": brier[0], "bs of other": brier[1], "bs": brier[0] - brier[1], "Brier score": brier[0]}
    so = KnownTruth(q, q, measured=told, of_metric={"true values": {"bs": true[0] - true[1], "Brier score": true[0]}})
    estimate = estimate_sentence("Brier score", cal.interval("bs", y, q, **few))
    rules = [claim.rule for claim in (*said.claims, *estimate.claims)]
    assert rules == ["measured", "measured", "interval", "measured", "interval"]
    assert all(holds(claim, so) for claim in (*said.claims, *estimate.claims)), (said, estimate)
    assert said.startswith("bs: 'q' has 0.")
    wrong = KnownTruth(
        q, q, measured=dict.fromkeys(told, 0.0), of_metric={"true values": {"bs": 0.0, "Brier score": 0.0}}
    )
    assert not any(holds(claim, wrong) for claim in (*said.claims, *estimate.claims))
