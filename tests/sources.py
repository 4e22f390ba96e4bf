"""The package's own sources, parsed once for the tests that read them."""

from __future__ import annotations

import ast
import functools
import pathlib

from paths import ROOT

SRC = ROOT / "src" / "calibrary"


@functools.cache
def tree(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: pathlib.Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))
