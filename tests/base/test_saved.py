"""The reader of saved files checks limits, version and digest before it uses a value; a defect gives one sentence."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

import numpy as np
import pytest

from calibrary.base import saved
from calibrary.base.saved import SavedFileError, digest, opened, parse_json, read_json, sealed, value_of, verified

CONTENT = {
    "format": "x",
    "version": 1,
    "values": [1.0, 0.1, -0.0, 1e300, None, True, "é\ud800"],
    "by": {"b": 1, "a": 2},
}


def test_a_digest_holds_however_the_json_is_written():
    once = json.loads(json.dumps(sealed(CONTENT)))
    assert verified(once, "x", "f") == json.loads(json.dumps(CONTENT))
    reordered = json.loads(json.dumps(once, indent=3, sort_keys=True).replace("1.0,", "1,").replace("-0.0", "0"))
    assert verified(reordered, "x", "f")


@pytest.mark.parametrize("change", [{"version": 2}, {"values": [1.0]}, {"by": {"b": 1}}, {"more": 0}, {"digest": None}])
def test_other_content_is_refused(change):
    with pytest.raises(SavedFileError, match="its content does not match its digest"):
        verified({**sealed(CONTENT), **change}, "x", "f")


def test_content_without_a_digest_is_read_as_files_of_0_2_are():
    assert opened(dict(CONTENT), "x", "f", format="x", version=1) == CONTENT


def test_the_digest_of_arrays_sees_names_types_shapes_and_values():
    a = {"x": np.arange(6.0), "s": np.array(["u", "v"])}
    same = {"s": np.array(["u", "v"]), "x": np.arange(6.0).astype(">f8")}
    assert digest({}, a) == digest({}, same)
    others = [
        {"x": np.arange(6.0), "t": a["s"]},
        {**a, "x": np.arange(6.0).reshape(2, 3)},
        {**a, "x": np.arange(6)},
        {**a, "x": np.arange(6.0) + 1e-16 * (np.arange(6) == 0)},
        {**a, "s": np.array(["u", "w"])},
    ]
    assert len({digest({}, each) for each in [a, *others]}) == 6


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1e999]", "beyond the largest float"),
        ("[" + "9" * 400 + "]", "does not fit 64 bits"),
        ("[18446744073709551616]", "does not fit 64 bits"),
        ("[NaN]", "NaN, which is not valid JSON"),
        ("[-Infinity]", "-Infinity, which is not valid JSON"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ("[" * 80 + "]" * 80, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "is not a JSON file"),
    ],
)
def test_numbers_names_and_depth_are_bounded(text, why):
    with pytest.raises(SavedFileError, match=why) as told:
        parse_json(text, "map", "f.json")
    assert str(told.value).startswith("f.json is not a map: ")
    assert len(str(told.value)) < 200
    assert "\n" not in str(told.value)


def test_a_packed_file_is_read_and_one_that_unpacks_too_far_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b"[1]"))
    assert read_json(path, "study") == [1]
    monkeypatch.setattr(saved, "MOST_BYTES", 1000)
    path.write_bytes(gzip.compress(b" " * 100_000 + b"[1]"))
    with pytest.raises(SavedFileError, match="more than 1,000 bytes"):
        read_json(path, "study")
    path.write_bytes(b" " * 2000)
    with pytest.raises(SavedFileError, match="more than 1,000 bytes"):
        read_json(path, "study")
    for damaged in (gzip.compress(b"[1]")[:-6], b"\x1f\x8bxxxxxxxxxxxxxxxxxxxxxxx"):
        path.write_bytes(damaged)
        with pytest.raises(SavedFileError, match="cannot be decompressed"):
            read_json(path, "study")
    with pytest.raises(SavedFileError, match="No such file"):
        read_json(tmp_path / "none.json", "study")


def test_format_and_version_come_first():
    for found, why in [
        ([], "contains no object"),
        ({"format": "y"}, "its format is 'y'"),
        ({"format": ["x"]}, r"its format is \['x'\]"),
        ({"format": "x", "version": 2}, "has version 2 and this calibrary reads version 1"),
        ({"format": "x", "version": True}, "has version True"),
        ({"format": "x", "version": "1"}, "has version '1'"),
    ]:
        with pytest.raises(SavedFileError, match=why):
            opened(found, "x", "f", format="x", version=1)


@dataclass(frozen=True)
class Inner:
    n: int
    name: str = ""


@dataclass(frozen=True)
class Outer:
    inner: Inner
    many: list[Inner]
    by: dict[str, float]


def test_types_reach_into_objects_and_lists():
    given = {"inner": {"n": 1}, "many": [{"n": 2, "name": "b"}], "by": {"a": "inf"}}
    assert value_of(Outer, given, "it") == Outer(Inner(1), [Inner(2, "b")], {"a": np.inf})
    for wrong in ({"inner": {"n": 1.5}}, {"many": [{"n": 2, "more": 1}]}, {"many": {}}, {"by": {"a": "x"}}):
        with pytest.raises(SavedFileError, match=r"it\."):
            value_of(Outer, {**given, **wrong}, "it")
