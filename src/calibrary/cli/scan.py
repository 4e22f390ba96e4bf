"""``calibrary scan`` and ``calibrary sql``: states of any number of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrary.cli.files import InputError
from calibrary.cli.large import is_state, load_state, state_of
from calibrary.cli.shared import err, out, plain, written


def scan(
    files: Annotated[list[str], typer.Argument(help="Parquet, CSV or Arrow files or folders, and saved states.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the state goes: a .parquet file.")],
    label: Annotated[str | None, typer.Option("--label", help="Column of the true class (guessed if obvious).")] = None,
    prob: Annotated[list[str] | None, typer.Option("--prob", help="Column of P(class 1), or one per class.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of whole weights: 2 is the row written twice.")] = None,
    positive: Annotated[str | None, typer.Option(help="The label the probabilities are of, of two names.")] = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="Column to keep apart (day, site). Repeatable.")] = None,
    top_label: Annotated[bool, typer.Option("--top-label", help="Several classes: keep the top label alone.")] = False,
    resolution: Annotated[int, typer.Option(help="Cells of width 1/resolution: 240, 960, 4800, 19200, 76800.")] = 19200,
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

    if output.suffix != ".parquet":
        raise InputError(f"{output}: a state is a .parquet file")
    if not output.parent.is_dir():
        raise InputError(f"{output}: the folder {output.parent} does not exist")
    for file in files:
        if "://" not in file and not Path(file).exists():
            raise InputError(f"no such file: {file}")
    rows = [file for file in files if not is_state(Path(file))]
    states = [load_state(Path(file)) for file in files if file not in rows]
    if rows:
        more: dict[str, Any] = {"lens": "top-label"} if top_label else {"sample": sample}
        found, _, notes = state_of(
            rows, label=label, prob=prob, weight=weight, positive=positive, by=by or [], drop_invalid=drop_invalid,
            resolution=resolution, **more,
        )  # fmt: skip
        for note in notes:
            err.print(f"[dim]{plain(note)}[/]")
        states.append(found)
    state = merged(states)
    state.save(output)
    out.print(plain(repr(state)))
    for reason, count in state.dropped.items():
        err.print(f"{count:,} rows left out: {plain(reason)}")
    written(output)


def sql(
    table: Annotated[str, typer.Option("--table", help="The table, or what FROM takes in your database.")],
    label: Annotated[str, typer.Option("--label", help="Column of the label.")] = "y",
    prob: Annotated[list[str] | None, typer.Option("--prob", help="Column of P(class 1), or one per class.")] = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="Column to keep apart. Repeatable.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of whole weights.")] = None,
    resolution: Annotated[int, typer.Option(help="Cells of width 1/resolution.")] = 19200,
) -> None:
    """The text that makes a state in any database: `calibrary sql --table t --label y --prob p`."""
    from calibrary.scale import sql as text

    probs = prob or ["p"]
    print(
        text(
            table, label=label, prob=probs[0] if len(probs) == 1 else probs, by=by or (), weight=weight,
            resolution=resolution,
        )
    )  # fmt: skip
