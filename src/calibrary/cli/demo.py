"""``calibrary demo``: one example from data to page, and others by name."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import calibrary as cal
from calibrary.base.errors import one_of
from calibrary.base.numbers import counted, percent
from calibrary.cli import report as report_command
from calibrary.cli.shared import out, plain, say, taking


@dataclass(frozen=True)
class Example:
    """One example: its subject, its reports, a file of its predictions, and the command to type next."""

    about: str
    reports: Callable[[int | None], list[Any]]
    columns: Callable[[], dict[str, Any]] | None
    next: str


def _risks(rare: bool) -> Callable[[int | None], list[Any]]:
    def reports(resamples: int | None) -> list[Any]:
        y, p, about, site = cal.datasets.risks(rare=rare)
        return [cal.report(y, p, by={"site": site}, n_resamples=resamples, about={"title": about})]

    return reports


def _risk_columns(rare: bool) -> Callable[[], dict[str, Any]]:
    def columns() -> dict[str, Any]:
        y, p, _, site = cal.datasets.risks(rare=rare)
        return {"outcome": y, "risk": p, "site": site}

    return columns


def _classes(resamples: int | None) -> list[Any]:
    y, p, about = cal.datasets.digits()
    return [cal.report(y, p, n_resamples=resamples, about={"title": about})]


def _class_columns() -> dict[str, Any]:
    y, p, _ = cal.datasets.digits()
    return {"digit": y, **{f"p{k}": p[:, k] for k in range(p.shape[1])}}


def _detector(resamples: int | None) -> list[Any]:
    found = cal.datasets.detections()
    return [cal.report(found, n_resamples=resamples, primary="d_ece", about={"title": "simulated detector"})]


def _models() -> dict[str, Any]:
    return {model: cal.datasets.breast_cancer(model) for model in ("naive_bayes", "logistic")}


def _compare(resamples: int | None) -> list[Any]:
    return [
        cal.report(d.y_true, d.y_prob, n_resamples=resamples, about={"title": f"tumors: {model}"})
        for model, d in _models().items()
    ]


def _compare_columns() -> dict[str, Any]:
    models = _models()
    return {"malignant": models["logistic"].y_true, **{model: d.y_prob for model, d in models.items()}}


_HERE = files("calibrary") / "datasets"
EXAMPLES = {
    "risk": Example(
        "a risk model at four sites", _risks(False), _risk_columns(False),
        "calibrary report {file} --label outcome --prob risk --by site -o page.html",
    ),
    "rare": Example(
        "a risk model whose event is rare", _risks(True), _risk_columns(True),
        "calibrary report {file} --label outcome --prob risk --threshold 0.05 -o page.html",
    ),
    "classes": Example(
        "a model of ten classes", _classes, _class_columns,
        "calibrary report {file} --label digit --prob p -o page.html",
    ),
    "detector": Example(
        "an object detector", _detector, None,
        f"calibrary detection report {_HERE / 'demo_ground_truth.json'} {_HERE / 'demo_results.json'} -o page.html",
    ),
    "compare": Example(
        "two models of the same tumors", _compare, _compare_columns,
        "calibrary compare {file} --label malignant --prob naive_bayes --prob logistic",
    ),
}  # fmt: skip


@taking("demo")
def demo(given: Any) -> None:
    """Evaluate one example and write its page: `calibrary demo`, or another by name, `calibrary demo rare`."""
    output = given.output
    from calibrary.reporting.write import check_paths, save

    one_of("example", given.example, EXAMPLES)
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file: name a folder")
    output.mkdir(parents=True, exist_ok=True)
    paths = [output / "report.html", output / "report.json"]
    check_paths(paths)
    chosen = EXAMPLES[given.example]
    say(f"evaluating {chosen.about}", False)
    reports = chosen.reports(given.resamples)
    save(reports, paths)
    report_command.show(reports, (), False)
    for one in reports:
        _picture(one)
    file = output / "predictions.csv"
    if chosen.columns is not None:
        _written(file, chosen.columns())
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
