"""Answer the Tab key and ``--help`` from a stored list of commands, without importing the commands.

Both must be quick. ``surface.json`` lists every command with its arguments and options; ``scripts/make_stubs.py``
writes this file, and Typer answers for a command that is not listed.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_VARIABLE = "_CALIBRARY_COMPLETE"
_SURFACE = Path(__file__).with_name("surface.json")
#: The number of bytes at the beginning of a file in which its column names are searched.
_HEAD = 1 << 16

Choice = tuple[str, str]


def answered() -> bool:
    """Answer a completion or ``--help``; False if Typer must answer instead."""
    instruction = os.environ.get(_VARIABLE, "")
    if instruction in _SHELLS:
        return _completed(instruction)
    words = sys.argv[1:]
    if words[-1:] != ["--help"]:
        return False
    command = _command(words[:-1])
    if command is None:
        return False
    _printed("\n".join(_help(words[:-1], command)))
    return True


def _printed(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the program that receives the output, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _surface() -> dict[str, Any]:
    return json.loads(_SURFACE.read_text(encoding="utf-8"))


def _command(words: list[str]) -> dict[str, Any] | None:
    """The command named by the words; None if they name no command or contain further words."""
    found = _surface()
    for word in words:
        if word not in found.get("commands", {}):
            return None
        found = found["commands"][word]
    return found


# -- help --------------------------------------------------------------------------------------------


def _help(words: list[str], command: dict[str, Any]) -> Iterator[str]:
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    names = " ".join(argument["name"] for argument in command.get("arguments", []))
    rest = " | ".join(filter(None, (names, "COMMAND [ARGS]..." if "commands" in command else "")))
    yield f"Usage: {' '.join(['calibrary', *words])} [OPTIONS] {rest}".rstrip()
    yield ""
    for paragraph in command["help"].split("\n\n"):
        yield textwrap.fill(" ".join(paragraph.split()), max(width - 2, 20), initial_indent=" ", subsequent_indent=" ")
        yield ""
    yield from _listed("Arguments", [(a["name"], a["help"]) for a in command.get("arguments", [])], width)
    for heading, options in _grouped(command.get("options", [])).items():
        yield from _listed(heading or "Options", list(map(_spelled_and_explained, options)), width)
    commands = [{"name": name, **found} for name, found in command.get("commands", {}).items()]
    for heading, found in _grouped(commands).items():
        yield from _listed(heading or "Commands", [(c["name"], c["help"].split("\n\n")[0]) for c in found], width)


def _grouped(entries: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The entries by their headings; those without one come first."""
    groups: dict[str, list[dict[str, Any]]] = {"": []}
    for entry in entries:
        groups.setdefault(entry["group"], []).append(entry)
    return groups


def _spelled_and_explained(option: dict[str, Any]) -> Choice:
    default = f"[default: {option['default']}]" if option["default"] else ""
    return f"{', '.join(option['names'])} {option['value']}".strip(), f"{option['help']} {default}".strip()


def _listed(title: str, rows: list[Choice], width: int) -> Iterator[str]:
    if not rows:
        return
    column = min(max(len(name) for name, _ in rows), 28) + 4
    yield f"{title}:"
    for name, text in rows:
        start = f"  {name}".ljust(column)
        lines = textwrap.wrap(" ".join(text.split()), max(width - column, 20)) or [""]
        if len(start) > column:
            yield start
            start = " " * column
        yield f"{start}{lines[0]}".rstrip()
        yield from (" " * column + line for line in lines[1:])
    yield ""


# -- completion --------------------------------------------------------------------------------------


def _completed(shell: str) -> bool:
    words, begun = _SHELLS[shell]()
    found = [choice for choice in choices(words, begun) if choice[0].startswith(begun)]
    if shell == "complete_fish" and os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        sys.exit(0 if found else 1)
    if shell == "complete_zsh":
        said = "\n".join(f'"{_quoted(name)}":"{_quoted(help)}"' for name, help in found)
        _printed(f"_arguments '*: :(({said}))'" if found else "_files")
    else:
        tab = "\t" if shell == "complete_fish" else ""
        _printed("\n".join(f"{name}{tab}{help if tab else ''}" for name, help in found))
    return True


def _bash() -> tuple[list[str], str]:
    words, at = os.environ.get("COMP_WORDS", "").split(), int(os.environ.get("COMP_CWORD", "1"))
    return words[1:at], words[at] if at < len(words) else ""


def _typed() -> tuple[list[str], str]:
    typed = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        words = shlex.split(typed)
    except ValueError:  # the typed line ends inside quotation marks
        words = typed.split()
    begun = words.pop() if words and not typed.endswith(" ") else ""
    return words[1:], begun


_SHELLS = {"complete_bash": _bash, "complete_zsh": _typed, "complete_fish": _typed}


def _quoted(text: str) -> str:
    for letter, instead in (("\\", ""), ("'", "''"), ('"', '""'), ("$", "\\$"), ("`", "\\`"), (":", ";")):
        text = text.replace(letter, instead)
    return text


def choices(words: list[str], begun: str) -> list[Choice]:
    """The possible next words: commands, options, columns of the named files, ids of metrics."""
    surface = command = _surface()
    while words and words[0] in command.get("commands", {}):
        command, words = command["commands"][words[0]], words[1:]
    inside = [(name, found["help"].split("\n\n")[0]) for name, found in command.get("commands", {}).items()]
    if inside and not command["arguments"]:
        return inside
    options = {name: option for option in command["options"] for name in option["names"]}
    if words and words[-1] in options and options[words[-1]]["value"]:
        return _values(options[words[-1]], words, surface)
    if begun.startswith("-"):
        return [(name, option["help"]) for name, option in options.items() if name.startswith("--")]
    at = sum(1 for _ in _bare(words, options))
    arguments = command["arguments"]
    place = arguments[min(at, len(arguments) - 1)] if arguments else None
    return [*inside, *(_values(place, words, surface) if place is not None else [])]


def _bare(words: list[str], options: dict[str, Any]) -> Iterator[str]:
    """The words that are neither options nor their values."""
    value = False
    for word in words:
        if value:
            value = False
        elif word.startswith("-") and len(word) > 1:
            value = bool(options.get(word, {}).get("value"))
        else:
            yield word


def _values(place: dict[str, Any], words: list[str], surface: dict[str, Any]) -> list[Choice]:
    wants = place["wants"]
    if wants == "metric":
        return list(surface["metrics"].items())
    if wants == "column":
        files = [Path(word) for word in words if not word.startswith("-") and Path(word).is_file()]
        return [(name, "column") for name in dict.fromkeys(name for path in files for name in _columns_of(path))]
    return []


def _columns_of(path: Path) -> list[str]:
    """The column names of a file; an empty list if the format is not supported or the file cannot be read."""
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith((".parquet", ".arrow", ".feather")):
            return _arrow_columns(path, name)
        with (gzip.open if path.name.lower().endswith(".gz") else open)(path, "rb") as file:
            head = file.read(_HEAD).decode("utf-8-sig", errors="replace")
        first = head.split("\n", 1)[0].strip("\r")
        if name.endswith((".jsonl", ".ndjson")):
            return list(json.loads(first))
        if name.endswith((".csv", ".tsv", ".txt")):
            return [cell.strip().strip('"') for cell in first.split(max("\t;,", key=first.count))]
    except (OSError, ValueError, ImportError):
        return []
    return []


def _arrow_columns(path: Path, name: str) -> list[str]:
    if name.endswith(".parquet"):
        from pyarrow.parquet import read_schema

        return list(read_schema(path).names)
    from pyarrow import ipc, memory_map

    with memory_map(str(path)) as file:
        return list(ipc.open_file(file).schema.names)
