"""The command line: from a file of predictions to an answer.

``calibrary report predictions.csv`` is the main job; ``calibrary demo`` shows it on embedded data.
Each command is defined in the file named after it; this file registers the commands and prints errors as sentences.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import calibrary as cal
from calibrary.base.numbers import counted, number
from calibrary.cli import app_start, catalogue, demo, monitor, plan, recalibrate, report, scan, single, study, validate
from calibrary.cli.ending import run
from calibrary.cli.shared import out, plain

app = typer.Typer(
    help="Can these predicted probabilities be believed? Start with: calibrary demo, or calibrary report FILE.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for command in (report.report, single.metric, single.compare, single.plot, scan.scan, scan.sql, scan.state):
    app.command()(command)
for name, command in catalogue.COMMANDS.items():
    app.command(name)(command)
app.command()(plan.plan)
app.command()(monitor.monitor)
app.command()(validate.validate)
app.command("app")(app_start.app)
app.command()(demo.demo)
detection = typer.Typer(
    help="Calibration of object detectors, from COCO ground truth and results.", no_args_is_help=True
)
detection.command("report")(report.detection_report)
detection.command("plot")(single.detection_plot)
app.add_typer(detection, name="detection")
app.add_typer(recalibrate.app, name="recalibrate")
app.add_typer(study.app, name="study")


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


def main() -> None:
    """Run the command line."""
    run(app)


@app.command("schema")
def show_schema() -> None:
    """Print the JSON Schema of `calibrary report --json`: what each field of a report means."""
    import json

    from calibrary.reporting.schema import schema

    sys.stdout.write(json.dumps(schema(), indent=1) + "\n")


@app.command("mcp")
def serve_tools(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders whose files may be read; files elsewhere are refused.")
    ],
    most_mb: Annotated[
        int, typer.Option("--most-mb", min=1, help="Size in MB of the largest file that may be read.")
    ] = 1024,
) -> None:
    """Serve calibrary's tools to AI agents by the Model Context Protocol: `calibrary mcp data`."""
    from calibrary.base.errors import extra
    from calibrary.cli.allowed import AllowedFolders

    with extra("mcp", "calibrary mcp"):
        from calibrary.cli.server import serve
    serve(AllowedFolders(folders, most_mb * 1_000_000))


@app.command()
def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete the stored compiled code; it is compiled again when needed.")
    ] = False,
) -> None:
    """Show the folder and size of the stored compiled code; `calibrary cache --clear` deletes it."""
    from calibrary.numerics.compiled import available
    from calibrary.numerics.compiled import cache as kept

    if clear:
        kept.clear()
    files, size = kept.size()
    out.print(
        plain(f"{kept.root()}: {counted(files, 'file')}, {number(size / 1e6)} MB of compiled code"), soft_wrap=True
    )
    if not available():
        out.print(plain("numba is not installed: results are the same, but slower (pip install 'calibrary[fast]')"))
