"""The command line: from a file of predictions to an answer.

``calibrary report predictions.csv`` is the main job; ``calibrary demo`` shows it on embedded data.
Each command is defined in the file named after it; this file registers the commands and prints errors as sentences.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

import calibrary as cal
from calibrary.base.numbers import counted, number
from calibrary.cli import app_start, catalogue, demo, plan, recalibrate, report, scan, single, study, validate
from calibrary.cli.ending import run
from calibrary.cli.shared import out, plain, taking

app = typer.Typer(
    help="Can these predicted probabilities be believed? Start with: calibrary demo, or calibrary report FILE.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(requested: bool) -> None:
    if requested:
        out.print(f"calibrary {cal.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Can these predicted probabilities be believed? Start with: calibrary demo, or calibrary report FILE."""


def show_schema() -> None:
    """Print the JSON Schema of `calibrary report --json`: what each field of a report means."""
    import json

    from calibrary.reporting.stored import schema

    sys.stdout.write(json.dumps(schema(), indent=1) + "\n")


@taking("mcp")
def serve_tools(given: Any) -> None:
    """Serve calibrary's tools to AI agents by the Model Context Protocol: `calibrary mcp data`."""
    from calibrary.base.errors import extra
    from calibrary.cli.allowed import AllowedFolders

    with extra("mcp", "calibrary mcp"):
        from calibrary.cli.server import serve
    serve(AllowedFolders(given.folders, given.most_mb * 1_000_000))


@taking("cache")
def cache(given: Any) -> None:
    """Show the folder and size of the stored compiled code; `calibrary cache --clear` deletes it."""
    from calibrary.numerics.compiled import available
    from calibrary.numerics.compiled import cache as kept

    if given.clear:
        kept.clear()
    files, size = kept.size()
    out.print(
        plain(f"{kept.root()}: {counted(files, 'file')}, {number(size / 1e6)} MB of compiled code"), soft_wrap=True
    )
    if not available():
        out.print(plain("numba is not installed: results are the same, but slower (pip install 'calibrary[fast]')"))


def main() -> None:
    """Run the command line."""
    run(app)


detection = typer.Typer(
    help="Calibration of object detectors, from COCO ground truth and results.", no_args_is_help=True
)
detection.command("report")(report.detection_report)
detection.command("plot")(single.detection_plot)
scale = typer.Typer(help="Summarize very many rows in a state, and watch a store of states.", no_args_is_help=True)
for command in (scan.scan, scan.sql, scan.state, scan.monitor):
    scale.command()(command)

#: The commands by the headings of the help; those below "" are not listed.
COMMANDS: dict[str, dict[str, typer.Typer | Callable[..., None]]] = {
    "Start": {"demo": demo.demo, "app": app_start.app, "report": report.report},
    "Measure": {
        "metric": single.metric, "compare": single.compare, "plot": single.plot, "recalibrate": recalibrate.app,
        "validate": validate.validate, "plan": plan.plan,
    },
    "Special data": {
        "answers": report.answers, "ensemble": report.ensemble, "outside": report.outside, "detection": detection,
    },
    "Look up": {"explain": catalogue.app},
    "Scale": {"scale": scale},
    "Serve": {"mcp": serve_tools},
    "": {"study": study.app, "schema": show_schema, "cache": cache},
}  # fmt: skip

for heading, commands in COMMANDS.items():
    for name, made in commands.items():
        shown: dict[str, Any] = {"rich_help_panel": heading, "hidden": not heading}
        if isinstance(made, typer.Typer):
            app.add_typer(made, name=name, **shown)
        else:
            app.command(name, **shown)(made)
