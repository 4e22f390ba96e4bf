"""The command line: from a file of predictions to an answer.

``calibrary report predictions.csv`` is the main job; ``calibrary demo`` shows it on embedded data.
Each command lives in the file named for it; this one puts them together and turns mistakes into sentences.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import calibrary as cal
from calibrary.cli import catalogue, recalibrate, report, single
from calibrary.cli.options import Resamples, err, out, plain, say
from calibrary.cli.read import InputError

app = typer.Typer(
    help="Can these predicted probabilities be believed? Start with: calibrary demo, or calibrary report FILE.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for command in (report.report, single.metric, single.compare, single.plot):
    app.command()(command)
app.command("list")(catalogue.list_metrics)
app.command()(catalogue.explain)
app.command()(catalogue.recommend)
detection = typer.Typer(help="Detectors: COCO ground truth and results in, answer out.", no_args_is_help=True)
detection.command("report")(report.detection_report)
detection.command("plot")(single.detection_plot)
app.add_typer(detection, name="detection")
app.add_typer(recalibrate.app, name="recalibrate")


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit status 2, never a traceback."""
    try:
        status = app(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except (InputError, ValueError, TypeError) as error:
        err.print(f"[red]calibrary:[/] {plain(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        err.print("stopped")
        sys.exit(130)
    except Exception as error:
        # click's usage errors know how to show themselves; anything else is a bug and keeps its traceback
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            error.show()
            sys.exit(error.exit_code)
        raise


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the report.")] = Path("demo"),
    resamples: Resamples = None,
) -> None:
    """Evaluate the embedded data: a binary and a ten-class model and a detector; write demo/report.html."""
    from importlib.resources import files

    from calibrary.reporting.write import save

    output.mkdir(parents=True, exist_ok=True)
    data = files("calibrary") / "datasets"
    say("evaluating three models", False)
    y, p, about = cal.datasets.breast_cancer()
    reports = [cal.report(y, p, n_resamples=resamples, title=about)]
    y, p, about = cal.datasets.digits()
    reports.append(cal.report(y, p, n_resamples=resamples, title=about))
    matches = cal.match_detections(str(data / "demo_ground_truth.json"), str(data / "demo_results.json"))
    reports.append(cal.report(matches, n_resamples=resamples, primary="d_ece", title="synthetic detector"))
    save(reports, [output / "report.html", output / "report.json"])
    report.show(reports, (), False)
    out.print(f"\nThe full report, with figures: [bold]{output / 'report.html'}[/]", highlight=False)
