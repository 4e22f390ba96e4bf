"""``calibrary scan``, ``sql`` and ``state``: states of any number of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrary.cli.files import InputError
from calibrary.cli.large import class_names, is_state, load_state, read_result, state_of, whole_name, whole_names
from calibrary.cli.shared import Labels, err, out, plain, written

_RESOLUTION = "Cells of width 1/resolution: 240, 960, 4800, 19200, 76800. Default 19200, and 1200 with --by."


def scan(
    files: Annotated[list[str], typer.Argument(help="Parquet, CSV or Arrow files or folders, and saved states.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the state goes: a .parquet file.")],
    label: Annotated[str | None, typer.Option("--label", help="Column of the true class (guessed if obvious).")] = None,
    prob: Annotated[list[str] | None, typer.Option("--prob", help="Column of P(class 1), or one per class.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of whole weights: 2 is the row written twice.")] = None,
    positive: Annotated[str | None, typer.Option(help="The label the probabilities are of, of two names.")] = None,
    labels: Labels = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="Column to keep apart (day, site). Repeatable.")] = None,
    top_label: Annotated[bool, typer.Option("--top-label", help="Several classes: keep the top label alone.")] = False,
    resolution: Annotated[int | None, typer.Option(help=_RESOLUTION)] = None,
    sample: Annotated[int, typer.Option(min=0, help="Several classes: whole rows to keep for what needs them.")] = 0,
    drop_invalid: Annotated[
        bool, typer.Option("--drop-invalid", help="Leave out rows that are no predictions, and count them.")
    ] = False,
) -> None:
    """Any number of predictions into one small file: `calibrary scan folder/ --prob p --label y -o state.parquet`.

    States add up: `calibrary scan monday.parquet tuesday.parquet -o week.parquet`. `calibrary report state.parquet`
    reads one.
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
    table: Annotated[Path, typer.Argument(help="What the database returned, as a .parquet, .csv or .arrow file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the state goes: a .parquet file.")],
    by: Annotated[list[str] | None, typer.Option("--by", help="Column that was kept apart. Repeatable.")] = None,
    positive: Annotated[str | None, typer.Option(help="The label the probabilities are of, of two names.")] = None,
    labels: Labels = None,
    top_label: Annotated[bool, typer.Option("--top-label", help="The query had one probability per class.")] = False,
    resolution: Annotated[int | None, typer.Option(help=_RESOLUTION)] = None,
    drop_invalid: Annotated[
        bool, typer.Option("--drop-invalid", help="Leave out rows that were no predictions, and count them.")
    ] = False,
) -> None:
    """The state of what a query returned: `calibrary state result.csv -o state.parquet`, after `calibrary sql ...`.

    Give the options that the query was made with; names of columns may come back in capitals.
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
        raise InputError(f"{output}: a state is a .parquet file")
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
    table: Annotated[str, typer.Option("--table", help="The table, or what FROM takes in your database.")],
    label: Annotated[str, typer.Option("--label", help="Column of the label.")] = "y",
    prob: Annotated[list[str] | None, typer.Option("--prob", help="Column of P(class 1), or one per class.")] = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="Column to keep apart. Repeatable.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of whole weights.")] = None,
    positive: Annotated[str | None, typer.Option(help="The label the probabilities are of, of two names.")] = None,
    labels: Labels = None,
    resolution: Annotated[int | None, typer.Option(help=_RESOLUTION)] = None,
    dialect: Annotated[
        str, typer.Option(help="duckdb, postgres, redshift, sqlite, clickhouse, bigquery, snowflake, spark, trino, ...")
    ] = "generic",
) -> None:
    """The text that makes a state in any database: `calibrary sql --table t --label y --prob p --dialect postgres`."""
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
