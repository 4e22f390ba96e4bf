"""Each room is at most as large as rooms.toml says, and the core imports nothing of the rooms around it."""

from __future__ import annotations

import pytest

import rooms
import sources


@pytest.mark.parametrize("what", ["lines", "files", "inside"])
def test_a_room_is_at_most_as_large_as_its_line_says(what):
    limits, sizes = rooms.limits(), rooms.sizes()
    larger = {
        room: f"{size[what]:,}, its line says {limits.get(room, {}).get(what, 0):,}"
        for room, size in sizes.items()
        if size[what] > limits.get(room, {}).get(what, 0)
    }
    assert not larger, "merge or delete, or change the line of tests/rooms.toml and say why in the commit"


def test_every_line_is_of_a_room_that_exists():
    assert set(rooms.limits()) == set(rooms.sizes())


def test_the_core_imports_nothing_of_the_rooms_around_it():
    allowed = {*rooms.CORE, "public"}  # the table of public names says which metrics exist
    outside = {
        f"{path.relative_to(sources.SRC)}: {name}"
        for path in rooms.files()
        if rooms.room_of(path) in rooms.CORE
        for name in rooms.imported(path)
        if name.split(".")[0] not in allowed
    }
    assert not outside


def test_the_count_sees_code_and_no_comment(tmp_path):
    path = tmp_path / "one.py"
    path.write_text(
        '"""Doc\nstring."""\n\n# comment\nX = (\n    1,\n)\n\n\ndef f():\n    """Doc."""\n    return X  # said\n'
    )
    assert rooms.code_lines(path) == 5


def test_an_import_is_found_however_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "SRC", tmp_path)
    (tmp_path / "plots").mkdir()
    path = tmp_path / "plots" / "one.py"
    path.write_text("from ..data import checks\nfrom calibrary.data.lens import lens_for\nimport calibrary.metrics\n")
    assert rooms.imported(path) == {"data.checks", "data.lens.lens_for", "metrics"}
    assert rooms.from_inside(path) == rooms.imported(path)
