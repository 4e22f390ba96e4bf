"""Every attack in ``tests/forty.py`` ends as it must, and ``benchmarks/ATTACKS.md`` lists it."""

from __future__ import annotations

import re

import pytest

import forty
from paths import ROOT

for package in ("matplotlib", "pyarrow", "typer", "openpyxl"):
    pytest.importorskip(package)


@pytest.mark.parametrize("attack", forty.ATTACKS, ids=lambda attack: attack.name[:60])
def test_the_attack_ends_as_it_must(attack, tmp_path):
    ended = attack.run(tmp_path)
    assert re.search(attack.ends, ended, re.DOTALL), ended


def test_forty_attacks_are_listed():
    page = (ROOT / "benchmarks" / "ATTACKS.md").read_text(encoding="utf-8")
    assert len(forty.ATTACKS) >= 40
    assert [attack.name for attack in forty.ATTACKS if f"| {attack.name} |" not in page] == []


def test_every_promise_names_tests_that_exist():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promises = [line for line in page.splitlines() if line.startswith("| **")]
    assert len(promises) >= 8
    for promise in promises:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", promise)
        assert named, promise
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), (file, test)
