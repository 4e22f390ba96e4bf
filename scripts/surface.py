"""The commands with their arguments and options as plain data, for the file ``surface.json``.

Completion and ``--help`` use that file. ``make_stubs.py`` writes it, and a test compares it with the commands.
"""

from __future__ import annotations

import json
from typing import Any

from calibrary.options import table


def surface() -> dict[str, Any]:
    """Every command with its help, arguments and options, and every metric with its name."""
    from typer.main import get_command

    from calibrary.cli.main import COMMANDS, app
    from calibrary.lookup.by_name import catalogue

    metrics = {entry.id: entry.name for entry in catalogue.values()}
    found = _of(get_command(app))
    listed = {name: found["commands"][name] for heading, made in COMMANDS.items() if heading for name in made}
    return {**found, "commands": listed, "metrics": dict(sorted(metrics.items()))}


def text() -> str:
    """The content of ``surface.json``, with one line for each command."""
    made = surface()
    commands = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in made.pop("commands").items())
    return f'{json.dumps(made)[:-1]}, "commands": {{\n{commands}\n}}}}\n'


def _of(command: Any) -> dict[str, Any]:
    shown = [p for p in command.params if not getattr(p, "hidden", False)]
    found: dict[str, Any] = {
        "help": _plain(command.help or ""),
        "arguments": [_argument(p) for p in shown if p.param_type_name == "argument"],
        "options": [_option(p) for p in shown if p.param_type_name == "option"],
    }
    found["options"].append(
        {"names": ["--help"], "value": "", "help": "Show this message.", "default": "", "wants": "", "group": ""}
    )
    inside = getattr(command, "commands", {})
    alone = inside.get("metric") if "metric" in inside and inside["metric"].hidden else None
    if alone is not None:  # what is typed without the name of a command
        found |= {key: _of(alone)[key] for key in ("arguments", "options")}
    if inside:
        found["commands"] = {name: _of(one) for name, one in inside.items() if not one.hidden}
        for name, one in found["commands"].items():
            one["group"] = getattr(inside[name], "rich_help_panel", None) or ""
    return found


def _argument(p: Any) -> dict[str, Any]:
    name = p.name.upper() if p.required else f"[{p.name.upper()}]"
    help = _plain(getattr(p, "help", "") or "")
    return {"name": f"{name}{'...' if p.nargs == -1 else ''}", "help": help, "wants": _wanted(p)}


def _option(p: Any) -> dict[str, Any]:
    help = _plain(p.help or "")
    value = "" if p.is_flag else p.name.upper()
    default = p.default if isinstance(p.default, int | float | str) and not isinstance(p.default, bool) else ""
    return {
        "names": [*p.opts, *p.secondary_opts], "value": value, "help": help, "default": str(default),
        "wants": _wanted(p), "group": getattr(p, "rich_help_panel", None) or "",
    }  # fmt: skip


def _wanted(p: Any) -> str:
    """Which names are completed: columns or metrics; empty if the shell should complete file names."""
    what = {form.what for form in table().get(p.name, {}).values()}
    return "column" if "column" in what else "metric" if "metric" in what else ""


def _plain(help: str) -> str:
    return help.replace("`", "").strip()
