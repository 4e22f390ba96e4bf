"""Files that 0.2.0 saved are read, and say what they said: reports, maps, states and studies."""

from __future__ import annotations

import json

import pytest

from paths import REFERENCE
from same import assert_same
from saved_old import BINARY_MAPS, CLASS_MAPS, FILES

OLD = REFERENCE / "files_0_2"
TOLD = json.loads((OLD / "told.json").read_text(encoding="utf-8"))


def test_every_kind_of_file_is_kept():
    assert {path.name for path in OLD.iterdir()} == {*FILES, "told.json"}
    assert len(TOLD["maps.jsonl"]) == len(BINARY_MAPS) + len(CLASS_MAPS)


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
def test_a_file_of_0_2_is_read_with_the_same_content(name):
    _, read = FILES[name]
    assert_same(json.loads(json.dumps(read(OLD / name))), TOLD[name])
