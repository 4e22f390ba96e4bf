"""Files that 0.2.0 and 0.3.0 saved are read, and say what they said: reports, maps, states and studies."""

from __future__ import annotations

import json

import pytest

from paths import REFERENCE
from same import assert_same
from saved_old import BINARY_MAPS, CLASS_MAPS, FILES

OLD = {version: REFERENCE / f"files_{version}" for version in ("0_2", "0_3")}
TOLD = {version: json.loads((folder / "told.json").read_text(encoding="utf-8")) for version, folder in OLD.items()}


@pytest.mark.parametrize("version", OLD)
def test_every_kind_of_file_is_kept(version):
    assert {path.name for path in OLD[version].iterdir()} >= {*FILES, "told.json"}
    assert len(TOLD[version]["maps.jsonl"]) == len(BINARY_MAPS) + len(CLASS_MAPS)


@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
def test_a_file_of_an_earlier_version_is_read_with_the_same_content(name, version):
    _, read = FILES[name]
    assert_same(json.loads(json.dumps(read(OLD[version] / name))), TOLD[version][name])
