"""``calibrary demo``: one example from data to page, and others by name."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import calibrary as cal
from calibrary.base.errors import one_of
from calibrary.base.numbers import counted, percent
from calibrary.cli import report as report_command
from calibrary.cli.shared import folder_of, out, plain, say, taking

#: The models of an example (labels, probabilities and segments by the title of the page), and the columns of its file.
Made = tuple[dict[str, tuple[Any, Any, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Example:
    """One example: its subject, its data, and the command to type next."""

    about: str
    data: Callable[[], Made]
    next: str


def _risks(rare: bool = False) -> Made:
    y, p, about, site = cal.datasets.risks(rare=rare)
    return {about: (y, p, {"site": site})}, {"outcome": y, "risk": p, "site": site}


def _classes() -> Made:
    y, p, about = cal.datasets.digits()
    return {about: (y, p, None)}, {"digit": y, **{f"p{k}": p[:, k] for k in range(p.shape[1])}}


def _detector() -> Made:
    return {"simulated detector": (cal.datasets.detections(), None, None)}, {}


def _models() -> Made:
    models = {model: cal.datasets.breast_cancer(model) for model in ("naive_bayes", "logistic")}
    columns = {"malignant": models["logistic"].y_true, **{model: d.y_prob for model, d in models.items()}}
    return {f"tumors: {model}": (d.y_true, d.y_prob, None) for model, d in models.items()}, columns


_HERE = files("calibrary") / "datasets"
EXAMPLES = {
    "risk": Example(
        "a risk model at four sites", _risks,
        "calibrary report {file} --label outcome --prob risk --by site -o page.html",
    ),
    "rare": Example(
        "a risk model whose event is rare", partial(_risks, rare=True),
        "calibrary report {file} --label outcome --prob risk --threshold 0.05 -o page.html",
    ),
    "classes": Example(
        "a model of ten classes", _classes,
        "calibrary report {file} --label digit --prob p -o page.html",
    ),
    "detector": Example(
        "an object detector", _detector,
        f"calibrary detection report {_HERE / 'demo_ground_truth.json'} {_HERE / 'demo_results.json'} -o page.html",
    ),
    "compare": Example(
        "two models of the same tumors", _models,
        "calibrary compare {file} --label malignant --prob naive_bayes --prob logistic",
    ),
}  # fmt: skip


@taking("demo")
def demo(given: Any) -> None:
    """Evaluate one example and write its page: `calibrary demo`, or another by name, `calibrary demo rare`."""
    from calibrary.reporting.write import check_paths, save

    one_of("example", given.example, EXAMPLES)
    output = folder_of(given.output)
    paths = [output / "report.html", output / "report.json"]
    check_paths(paths)
    chosen = EXAMPLES[given.example]
    say(f"evaluating {chosen.about}", False)
    models, columns = chosen.data()
    reports = [
        cal.report(
            y, p, by=by, primary="d_ece" if p is None else "ece", n_resamples=given.resamples, about={"title": title}
        )
        for title, (y, p, by) in models.items()
    ]
    save(reports, paths)
    report_command.show(reports, (), False)
    for one in reports:
        _picture(one)
    file = output / "predictions.csv"
    if columns:
        _written(file, columns)
    out.print(f"\nThe page with figures: [bold]{plain(paths[0])}[/]")
    out.print(f"Next: [bold]{plain(chosen.next.format(file=file))}[/]", soft_wrap=True)
    others = ", ".join(name for name in EXAMPLES if name != given.example)
    out.print(f"[dim]Other examples: calibrary demo {plain(others).replace(', ', ' | ')}[/]")


def _written(path: Path, columns: dict[str, Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))


#: Characters of a bar from 0% to 100%.
_WIDE = 40


def _picture(one: Any) -> None:
    """The reliability diagram as text: a bar for the observed frequency, a mark at the stated probability."""
    view = one.predictions
    if view is None or view.noun != "row":
        return
    bins = cal.reliability_bins(view, n_bins=10)
    out.print("\n[bold]stated   observed[/]   (| marks where the bar of a calibrated model would end)")
    for stated, happened, count in zip(bins.confidence, bins.outcome, bins.count, strict=True):
        if count:
            bar = list("█" * round(happened * _WIDE) + " " * (_WIDE + 1 - round(happened * _WIDE)))
            bar[min(round(stated * _WIDE), _WIDE)] = "|"
            share = f"{percent(round(stated, 2)):>6}   {percent(round(happened, 2)):>8}"
            line = f"{share}   {''.join(bar).rstrip()}  {counted(float(count), 'row')}"
            out.print(plain(line), highlight=False, no_wrap=True)
