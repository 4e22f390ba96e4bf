"""``calibrary validate``: refit a model to resamples of a table, and estimate its performance on new rows.

Models are chosen by name only. A pickled model is a program that runs when it is opened, so no model file is accepted;
for your own model, use ``calibrary.validate`` in Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrary.base.errors import extra
from calibrary.cli.large import is_state
from calibrary.cli.shared import check_output, listed, out, plain, say, table_of, taking, written
from calibrary.data.checks import Array
from calibrary.reporting.validated import validation_page
from calibrary.tables.files import open_table
from calibrary.tables.guess import required_column
from calibrary.tables.sources import InputError
from calibrary.tables.values import plain_numbers, refuse_spellings
from calibrary.validation import Validation
from calibrary.validation import validate as run_validation


@taking("validate")
def validate(given: Any) -> None:
    """Refit a model and correct its measures for optimism: `calibrary validate data.csv --label outcome`.

    Models are taken by name and never from a file: a pickled model is a program that runs when it is read. For a
    model of your own, use `calibrary.validate(model, X, y)` in Python.
    """
    label, estimator, output = given.label, given.estimator, given.output
    if output is not None:
        said = "a validation is saved as a page or as JSON; name the file with .html or .json"
        check_output(output, said, ".html", ".json")
    if is_state(Path(given.file)):
        raise InputError(f"{given.file} is a saved state, and validate needs the rows: name a table of predictors")
    table = open_table(given.file)
    names = list(table.names)
    beside = {"sample_weight": given.weight, "units": given.unit, "imputations": given.imputations}
    others = [label, *(name for name in beside.values() if name is not None)]
    chosen = listed(given.features) or [n for n in names if n not in others]
    for name in (*chosen, *others):
        required_column(names, name)
    if label in chosen:
        raise InputError(f"{label!r} is the outcome and cannot be a predictor: name other --features")
    if not chosen:
        raise InputError("no column is left as a predictor: name some with --features")
    columns = table.columns([*chosen, *others])
    refuse_spellings(dict.fromkeys(columns[label].tolist()), label)
    given_columns: dict[str, Any] = {role: None if name is None else columns[name] for role, name in beside.items()}
    X = np.column_stack([_numbers(columns[name], name) for name in chosen])
    say(f"refitting {estimator} to {len(X):,} rows", given.quiet)
    found = run_validation(
        model_named(estimator, given.seed), X, columns[label], metrics=listed(given.metrics), method=given.method,
        n_resamples=given.resamples, folds=given.folds, repeats=given.repeats, rng=given.seed, workers=given.workers,
        **given_columns,
    )  # fmt: skip
    _show(found, given.tripod, given.quiet)
    if output is not None:
        if output.suffix == ".html":
            validation_page(found, output, thresholds=given.threshold or [0.5])
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
    numbers = plain_numbers(values)
    if numbers is None:
        what = "dates" if values.dtype.kind == "M" else "text"
        raise InputError(
            f"column {name!r} holds {what}: a predictor must be a number here; name others with --features, or encode "
            "it"
        )
    return numbers


def _show(found: Validation, tripod: bool, quiet: bool) -> None:
    out.print(plain(found.sentence), soft_wrap=True)
    if not quiet:
        for note in found.notes:
            out.print(plain(note), soft_wrap=True)
        head, body = found.cells()
        table = table_of(head, body, words=(0, 1))
        for column in table.columns[2:]:
            column.no_wrap = True
        out.print(table)
    if tripod:
        for words in str(found.tripod()).splitlines():
            out.print(plain(words), soft_wrap=True)
