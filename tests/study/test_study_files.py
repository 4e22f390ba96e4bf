"""The files of a study: a version, a digest and a type for everything; damage is one sentence; 0.2's are read."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
from importlib.resources import files

import numpy as np
import pytest

from calibrary import study
from calibrary.base.saved import SavedFileError
from calibrary.study.result import StudyResult, stored_study
from calibrary.study.shards import Shard


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A study of one metric, and the folder it was drawn in."""
    out = tmp_path_factory.mktemp("study")
    return study.run("quick", metrics=["bs"], worlds=["wide"], n=100, draws=4, out=out), out


@pytest.fixture(scope="module")
def small(drawn):
    return drawn[0]


@pytest.fixture(scope="module")
def folder(drawn):
    return drawn[1]


def test_the_stored_study_is_what_a_reader_of_its_file_gets(tmp_path):
    path = tmp_path / "study.json.gz"
    path.write_bytes((files("calibrary") / "datasets" / "study.json.gz").read_bytes())
    assert StudyResult.load(path) == stored_study()


def test_a_study_comes_back_as_it_was_saved(small, tmp_path):
    small.save(tmp_path / "a.json")
    assert StudyResult.load(tmp_path / "a.json") == StudyResult(small.summary())
    whole = json.loads((tmp_path / "a.json").read_text())
    assert (whole["format"], whole["version"]) == ("calibrary study", 1)
    whole["about"]["seed"] += 1
    (tmp_path / "a.json").write_text(json.dumps(whole))
    with pytest.raises(SavedFileError, match="its content does not match its digest"):
        StudyResult.load(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("about", "seed"), "0", r"about\.seed = '0' must be a whole number"),
        (("about", "more"), 1, "unknown field, 'more'"),
        (("sizes",), {}, "must be numbers of rows"),
        (("sizes",), {"x": {}}, "must be numbers of rows"),
        (("sizes",), [], "sizes"),
        (("sizes", "100", "bs", "null"), [1], r"sizes = \[1\]"),
        (("sizes", "100", "ece"), {}, "'ece', which is not among the numbers"),
        (("means", "100", "bs"), [0.1], "one number for each of"),
        (("means",), {}, "of different numbers of rows"),
        (("numbers",), 3, "numbers = 3"),
        (("correlation",), {"n": 1, "names": ["a"], "rho": [[1.0, 0.0]]}, "must be square"),
        (("left_out",), {"a": 1}, "left_out = 1 must be text"),
        (("more",), 1, "unknown field, 'more'"),
    ],
)
def test_a_study_with_wrong_values_is_refused_in_one_sentence(small, tmp_path, path, value, why):
    attacked = copy.deepcopy(small.summary())
    place = attacked
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (tmp_path / "x.json").write_text(json.dumps(attacked))
    with pytest.raises(SavedFileError, match=why) as told:
        StudyResult.load(tmp_path / "x.json")
    assert "x.json is not a study" in str(told.value)
    assert "\n" not in str(told.value)


def test_what_is_no_study_is_refused(tmp_path):
    for content in (b"", b"[]", b"{}", b"\x1f\x8b", gzip.compress(b"[" * 100_000), b'{"format": "calibrary report"}'):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(SavedFileError, match="x is not a study"):
            StudyResult.load(tmp_path / "x")


def test_a_folder_goes_on_from_its_files_and_from_those_of_0_2(folder, tmp_path):
    first = study.gather(folder)
    old = shutil.copytree(folder, tmp_path / "old")
    for name in ("plan.json", "truths.json"):
        whole = json.loads((old / name).read_text())
        assert whole["digest"].startswith("sha256:")
        (old / name).write_text(json.dumps(whole["content"]))
    for path in old.glob("*.npz"):
        with np.load(path) as f:
            arrays = {name: f[name] for name in f.files if name != "digest"}
        np.savez(path, **arrays)
    assert study.gather(old).found == first.found


@pytest.mark.parametrize("name", ["plan.json", "truths.json"])
@pytest.mark.parametrize("text", ["", "[]", "3", '{"a": "b"}', '{"format": "x"}', '{"content": []}'])
def test_a_damaged_part_is_refused_in_one_sentence(folder, tmp_path, name, text):
    damaged = shutil.copytree(folder, tmp_path / "damaged")
    (damaged / name).write_text(text)
    with pytest.raises(SavedFileError, match=name) as told:
        study.gather(damaged)
    assert "\n" not in str(told.value)


def _arrays(folder):
    with np.load(next(folder.glob("*.npz"))) as f:
        return {name: f[name] for name in f.files}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"values": lambda a: a + 1.0}, "its content does not match its digest"),
        ({"digest": None, "values": lambda a: a[0]}, "another type or shape"),
        ({"digest": None, "values": lambda a: a.astype(str)}, "another type or shape"),
        ({"digest": None, "drawn": lambda a: a + 10**6}, "must be from 0 to"),
        ({"digest": None, "drawn": lambda a: -1 - a}, "must be from 0 to"),
        ({"digest": None, "seconds": lambda a: a[:0]}, "different lengths"),
        ({"digest": None, "undefined": lambda a: np.array("[]")}, "undefined"),
        ({"digest": None, "undefined": lambda a: np.array("{")}, "not a JSON file"),
        ({"digest": None, "names": lambda a: a.astype(object)}, "allow_pickle"),
        ({"names": None}, "names"),
    ],
)
def test_a_damaged_shard_is_refused_in_one_sentence(folder, tmp_path, change, why):
    arrays = _arrays(folder)
    for name, how in change.items():
        if how is None:
            del arrays[name]
        else:
            arrays[name] = how(arrays[name])
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(SavedFileError, match=why) as told:
        Shard.load(tmp_path / "x.npz")
    assert "is not a shard of a study" in str(told.value)


def test_bytes_that_are_no_shard_are_refused(folder, tmp_path):
    whole = next(folder.glob("*.npz")).read_bytes()
    for content in (b"", b"x", whole[:-30], whole[: len(whole) // 2], b"PK\x03\x04" + bytes(40)):
        (tmp_path / "x.npz").write_bytes(content)
        with pytest.raises(SavedFileError, match="is not a shard of a study"):
            Shard.load(tmp_path / "x.npz")
