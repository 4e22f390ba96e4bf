"""``calibrary validate``: refit a model to resamples of a table, and estimate its performance on new rows.

Models are chosen by name only. A pickled model is a program that runs when it is opened, so no model file is accepted;
for your own model, use ``calibrary.validate`` in Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from calibrary.base.errors import extra, one_of, suggest
from calibrary.base.files import check_writable
from calibrary.cli.files import open_table
from calibrary.cli.shared import Quiet, Unit, Weight, listed, out, plain, say, written
from calibrary.cli.sources import InputError
from calibrary.data.checks import Array
from calibrary.reporting.validated import validation_page
from calibrary.validation import Validation
from calibrary.validation import validate as run_validation

ESTIMATORS = ("logistic", "forest", "boosting")


def validate(
    file: Annotated[str, typer.Argument(help="A table of predictors and outcomes: CSV, TSV, Parquet, Excel, ...")],
    label: Annotated[str, typer.Option(help="Column of the outcome.")],
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of the predictors; by default all but the outcome. Repeatable, or separated by commas."
        ),
    ] = None,
    estimator: Annotated[str, typer.Option(help="Model: logistic (without penalty), forest or boosting.")] = "logistic",
    method: Annotated[str, typer.Option(help="Method of validation: optimism, 632, 632+, cv or holdout.")] = "optimism",
    metrics: Annotated[
        list[str] | None, typer.Option(help="Metrics to validate. Repeatable, or separated by commas.")
    ] = None,
    weight: Weight = None,
    unit: Unit = None,
    resamples: Annotated[int, typer.Option(min=2, help="Bootstrap samples.")] = 200,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds of a cross-validation.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Number of repetitions of a cross-validation.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the resamples and of the model.")] = 0,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Number of processes; -1 for all cores.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a page (.html) or the validation (.json).")
    ] = None,
    tripod: Annotated[
        bool, typer.Option("--tripod", help="Print the items of the TRIPOD+AI checklist that the validation answers.")
    ] = False,
    threshold: Annotated[
        list[float] | None,
        typer.Option(help="Probability above which a decision is taken, shown on the page. Repeatable."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Refit a model and correct its measures for optimism: `calibrary validate data.csv --label outcome`.

    Models are taken by name and never from a file: a pickled model is a program that runs when it is read. For a
    model of your own, use `calibrary.validate(model, X, y)` in Python.
    """
    one_of("--estimator", estimator, ESTIMATORS)
    if output is not None:
        if output.suffix not in (".html", ".json"):
            raise InputError(f"{output}: a validation is saved as a page or as JSON; name the file with .html or .json")
        check_writable(output)
    table = open_table(file)
    names = list(table.names)
    chosen = listed(features) or [n for n in names if n not in (label, weight, unit)]
    wanted = [*chosen, *(name for name in (label, weight, unit) if name is not None)]
    for name in wanted:
        if name not in names:
            raise InputError(f"no column is called {name!r}: {suggest(name, names)}")
    if label in chosen:
        raise InputError(f"{label!r} is the outcome and cannot be a predictor: name other --features")
    columns = table.columns(wanted)
    X = np.column_stack([_numbers(columns[name], name) for name in chosen])
    say(f"refitting {estimator} to {len(X):,} rows", quiet)
    found = run_validation(
        model_named(estimator, seed), X, columns[label], metrics=listed(metrics), method=method, n_resamples=resamples,
        folds=folds, repeats=repeats, units=None if unit is None else columns[unit],
        sample_weight=None if weight is None else columns[weight], rng=seed, n_jobs=jobs,
    )  # fmt: skip
    _show(found, tripod, quiet)
    if output is not None:
        if output.suffix == ".html":
            validation_page(found, output, thresholds=threshold or [0.5])
        else:
            found.save(output)
        written(output)


def model_named(estimator: str, seed: int) -> Any:
    """The scikit-learn model of this name."""
    with extra("sklearn", "calibrary validate"):
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    if (
        estimator == "logistic"
    ):  # predictors are standardized so that the solver converges; the predictions do not change
        return make_pipeline(StandardScaler(), LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000))
    if estimator == "forest":
        return RandomForestClassifier(n_estimators=300, min_samples_leaf=5, random_state=seed)
    return HistGradientBoostingClassifier(early_stopping=True, random_state=seed)


def _numbers(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"column {name!r} holds text: a predictor must be a number here; name others with --features, or encode it"
        ) from None


def _show(found: Validation, tripod: bool, quiet: bool) -> None:
    out.print(plain(found.sentence), soft_wrap=True)
    if not quiet:
        for note in found.notes:
            out.print(plain(note), soft_wrap=True)
        head, body = found.cells()
        table = Table(box=None, pad_edge=False)
        for j, name in enumerate(head):
            table.add_column(name, justify="left" if j < 2 else "right", no_wrap=j > 1)
        for line in body:
            table.add_row(*map(plain, line))
        out.print(table)
    if tripod:
        for words in str(found.tripod()).splitlines():
            out.print(plain(words), soft_wrap=True)
