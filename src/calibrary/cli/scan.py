"""``calibrary scan``, ``sql`` and ``state``: summarize any number of predictions in a state, a small histogram."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrary.cli.large import class_names, is_state, load_state, read_result, state_of, whole_name, whole_names
from calibrary.cli.shared import Labels, err, out, plain, written
from calibrary.cli.sources import InputError

_RESOLUTION = (
    "Number of histogram cells between 0 and 1: 240, 960, 4800, 19200 or 76800. Default 19200; 1200 with --by."
)


def scan(
    files: Annotated[list[str], typer.Argument(help="Parquet, CSV or Arrow files or folders, and saved states.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file of the state (.parquet).")],
    label: Annotated[str | None, typer.Option("--label", help="Column of the true class (guessed if obvious).")] = None,
    prob: Annotated[list[str] | None, typer.Option("--prob", help="Column of P(class 1), or one per class.")] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of whole-number weights; a row of weight 2 counts as two equal rows.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The label to which the probabilities refer, if the labels are two names.")
    ] = None,
    labels: Labels = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Column whose values get separate counts (day, site). Repeatable.")
    ] = None,
    top_label: Annotated[
        bool, typer.Option("--top-label", help="Several classes: store only the predicted class and its confidence.")
    ] = False,
    resolution: Annotated[int | None, typer.Option(help=_RESOLUTION)] = None,
    sample: Annotated[
        int, typer.Option(min=0, help="Several classes: number of complete rows to store, for metrics that need them.")
    ] = 0,
    drop_invalid: Annotated[
        bool,
        typer.Option(
            "--drop-invalid",
            help="Leave out invalid rows (missing values, probabilities outside 0 to 1) and count them.",
        ),
    ] = False,
) -> None:
    """Summarize any number of predictions in a small file: `calibrary scan folder/ --prob p --label y -o s.parquet`.

    States can be added: `calibrary scan monday.parquet tuesday.parquet -o week.parquet`. A state is evaluated by
    `calibrary report state.parquet`.
    """
    from calibrary.scale import merged

    _refuse_output(output)
    files = [found for file in files for found in _matching(file)]
    for file in files:
        if "://" not in file and not Path(file).exists():
            raise InputError(f"no such file: {file}")
    _refuse_twice(files)
    rows = [file for file in files if not is_state(Path(file))]
    states = [load_state(Path(file)) for file in files if file not in rows]
    if rows:
        more: dict[str, Any] = {"lens": "top-label"} if top_label else {"sample": sample}
        more["labels"] = whole_names(class_names(labels, positive))
        found, _, notes = state_of(
            rows, label=label, prob=prob, weight=weight, positive=positive, by=by or [], drop_invalid=drop_invalid,
            resolution=resolution, **more,
        )  # fmt: skip
        for note in notes:
            err.print(f"[dim]{plain(note)}[/]")
        states.append(found)
    _save(merged(states), output)


def state(
    table: Annotated[Path, typer.Argument(help="Result of the query, as a .parquet, .csv or .arrow file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file of the state (.parquet).")],
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Column whose values got separate counts in the query. Repeatable.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The label to which the probabilities refer, if the labels are two names.")
    ] = None,
    labels: Labels = None,
    top_label: Annotated[bool, typer.Option("--top-label", help="The query had one probability per class.")] = False,
    resolution: Annotated[int | None, typer.Option(help=_RESOLUTION)] = None,
    drop_invalid: Annotated[
        bool, typer.Option("--drop-invalid", help="Leave out rows that were invalid and count them.")
    ] = False,
) -> None:
    """Turn the result of a `calibrary sql` query into a state: `calibrary state result.csv -o state.parquet`.

    Pass the same options as to `calibrary sql`; the database may return column names in capitals.
    """
    from calibrary.scale import State

    _refuse_output(output)
    try:
        made = State.of_table(
            read_result(table), by=by, lens="top-label" if top_label else "binary", resolution=resolution,
            labels=whole_names(class_names(labels, positive)),
            pos_label=None if positive is None else whole_name(positive),
            drop_invalid=drop_invalid,
        )  # fmt: skip
    except (ValueError, OverflowError) as error:
        sentence = (
            str(error).replace("pass drop_invalid=True", "pass --drop-invalid").replace("resolution=", "--resolution ")
        )
        raise InputError(f"{table}: {sentence}") from error
    _save(made, output)


def _save(made: Any, output: Path) -> None:
    made.save(output)
    out.print(plain(repr(made)))
    for reason, count in made.dropped.items():
        err.print(f"{count:,} rows left out: {plain(reason)}")
    written(output)


def _refuse_output(output: Path) -> None:
    if output.suffix != ".parquet":
        raise InputError(f"{output}: a state is saved as Parquet; name the file with .parquet")
    if not output.parent.is_dir():
        raise InputError(f"{output}: the folder {output.parent} does not exist")


def _refuse_twice(files: list[str]) -> None:
    from calibrary.scale.pieces import refuse_twice

    try:
        refuse_twice(files)
    except ValueError as error:
        raise InputError(str(error)) from error


def _matching(file: str) -> list[str]:
    from calibrary.scale.pieces import matching

    try:
        return matching(file)
    except FileNotFoundError as error:
        raise InputError(f"no such file: {file}") from error


def sql(
    table: Annotated[
        str, typer.Option("--table", help="The table, or any expression that your database accepts after FROM.")
    ],
    label: Annotated[str, typer.Option("--label", help="Column of the label.")] = "y",
    prob: Annotated[list[str] | None, typer.Option("--prob", help="Column of P(class 1), or one per class.")] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Column whose values get separate counts. Repeatable.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of whole-number weights.")] = None,
    positive: Annotated[
        str | None, typer.Option(help="The label to which the probabilities refer, if the labels are two names.")
    ] = None,
    labels: Labels = None,
    resolution: Annotated[int | None, typer.Option(help=_RESOLUTION)] = None,
    dialect: Annotated[
        str,
        typer.Option(
            help="duckdb, postgres, redshift, sqlite, clickhouse, bigquery, snowflake, databricks, spark, trino, "
            "datafusion or polars; generic works in most of them."
        ),
    ] = "generic",
) -> None:
    """Print the SQL query that computes a state: `calibrary sql --table t --label y --prob p --dialect postgres`."""
    from calibrary.scale import sql as text

    probs = prob or ["p"]
    try:
        query = text(
            table, label=label, prob=probs[0] if len(probs) == 1 else probs, by=by or (), weight=weight,
            labels=whole_names(class_names(labels, positive)),
            pos_label=None if positive is None else whole_name(positive),
            resolution=resolution, dialect=dialect,
        )  # fmt: skip
    except ValueError as error:
        raise InputError(str(error)) from error
    print(query)
