"""The modules of the command line share functions by public names."""

from __future__ import annotations

import ast

import pytest

import sources
from paths import ROOT

MODULES = sorted((ROOT / "src" / "calibrary" / "cli").glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_private_name_is_imported_from_another_module(module):
    imported = [
        f"{node.module}.{name.name}"
        for node in sources.nodes(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("calibrary.")
        for name in node.names
        if name.name.startswith("_")
    ]
    assert imported == []
