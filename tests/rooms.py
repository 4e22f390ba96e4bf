"""The size of each room and what it takes from inside the core; ``python tests/rooms.py`` prints rooms.toml anew.

A line of code is one with a part that is no comment and no docstring. The core is what one person can own: nothing
in it imports the rooms around it, and these use its public names; what else they import from inside is counted.
"""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import tomllib

import sources
from calibrary import public
from paths import ROOT

LIMITS = ROOT / "tests" / "rooms.toml"
CORE = (
    "base", "options", "numerics", "data", "grouping", "kernels", "maps", "question", "metrics", "lookup", "inference",
    "evaluation",
)  # fmt: skip
#: What every room may use: texts, files and errors are no statistics.
SHARED = ("base", "options")
_DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def room_of(path: pathlib.Path) -> str:
    return path.relative_to(sources.SRC).parts[0].removesuffix(".py")


def files() -> list[pathlib.Path]:
    return sorted(sources.SRC.rglob("*.py"))


def code_lines(path: pathlib.Path) -> int:
    """The lines of a file that hold code."""
    written = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    lines = {number for number, line in written if line.strip() and not line.lstrip().startswith("#")}
    docstrings: set[int] = set()
    for node in sources.nodes(path):
        first = node.body[0] if isinstance(node, _DESCRIBED) and node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            docstrings |= _lines_of(first)
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            lines |= _lines_of(node)  # blank lines and marks of comments inside of a string too
    return len(lines - docstrings)


def _lines_of(node: ast.expr | ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def imported(path: pathlib.Path) -> set[str]:
    """What a file imports from calibrary, by its full path: ``data.checks.softmax``."""
    package = ("calibrary", *path.relative_to(sources.SRC).with_suffix("").parts)[:-1]
    found: set[str] = set()
    for node in sources.nodes(path):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join((*above, *([node.module] if node.module else [])))
            found |= {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.removeprefix("calibrary.") for name in found if name.startswith("calibrary.")}


def from_inside(path: pathlib.Path) -> set[str]:
    """The names that a room around the core imports from inside it and that are not public."""
    if room_of(path) in CORE:
        return set()
    public_names = {f"{name.module}.{name.name}".removeprefix("calibrary.") for name in public.PUBLIC.values()}
    rooms = set(CORE) - set(SHARED)
    return {name for name in imported(path) if name.split(".")[0] in rooms} - public_names


@functools.cache
def sizes() -> dict[str, dict[str, int]]:
    """Of each room its lines of code, its files, and the names that it imports from inside the core."""
    lines: collections.Counter[str] = collections.Counter()
    number: collections.Counter[str] = collections.Counter()
    inside: dict[str, set[str]] = collections.defaultdict(set)
    for path in files():
        room = room_of(path)
        lines[room] += code_lines(path)
        number[room] += 1
        inside[room] |= from_inside(path)
    return {room: {"lines": lines[room], "files": number[room], "inside": len(inside[room])} for room in sorted(lines)}


def limits() -> dict[str, dict[str, int]]:
    return tomllib.loads(LIMITS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for room, size in sizes().items():
        print(f"{room} = {{ lines = {size['lines']}, files = {size['files']}, inside = {size['inside']} }}")
