"""``calibrary scale scan``, ``sql``, ``state`` and ``monitor``: more predictions than memory can hold, and a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from calibrary.base.files import write_atomically
from calibrary.cli.large import class_names, is_state, load_state, read_result, state_of, whole_classes, whole_names
from calibrary.cli.shared import check_output, err, out, plain, say, taking, written
from calibrary.tables.pieces import matching, refuse_twice
from calibrary.tables.sources import InputError


@taking("scan")
def scan(given: Any) -> None:
    """Summarize very many predictions in a small file: `calibrary scale scan folder/ --prob p --label y -o s.parquet`.

    States can be added: `calibrary scale scan monday.parquet tuesday.parquet -o week.parquet`. A state is evaluated by
    `calibrary report state.parquet`.
    """
    files = given.files
    from calibrary.scale import merged

    check_output(given.output, *_STATE)
    files = [found for file in files for found in _matching(file)]
    refuse_twice(files)
    rows = [file for file in files if not is_state(Path(file))]
    states = [load_state(Path(file)) for file in files if file not in rows]
    if rows:
        more: dict[str, Any] = {"lens": "top-label"} if given.top_label else {"sample": given.sample}
        more["labels"] = whole_names(class_names(given.labels, given.positive))
        found, _, notes = state_of(
            rows, label=given.label, prob=given.prob, weight=given.weight, positive=given.positive, by=given.by or [],
            drop_invalid=given.drop_invalid, resolution=given.resolution, **more,
        )  # fmt: skip
        for note in notes:
            err.print(f"[dim]{plain(note)}[/]")
        states.append(found)
    _save(merged(states), given.output)


@taking("state")
def state(given: Any) -> None:
    """Turn the result of `scale sql` into a state: `calibrary scale state result.csv -o state.parquet`.

    Pass the same options as to `calibrary scale sql`; the database may return column names in capitals.
    """
    table = given.table
    from calibrary.scale import State

    check_output(given.output, *_STATE)
    try:
        made = State.of_table(
            read_result(table), by=given.by, lens="top-label" if given.top_label else "binary",
            resolution=given.resolution, drop_invalid=given.drop_invalid, **_classes(given),
        )  # fmt: skip
    except (ValueError, OverflowError) as error:
        sentence = (
            str(error).replace("pass drop_invalid=True", "pass --drop-invalid").replace("resolution=", "--resolution ")
        )
        raise InputError(f"{table}: {sentence}") from error
    _save(made, given.output)


def _classes(given: Any) -> dict[str, Any]:
    return whole_classes(class_names(given.labels, given.positive), given.positive)


def _save(made: Any, output: Path) -> None:
    made.save(output)
    out.print(plain(repr(made)))
    for reason, count in made.dropped.items():
        err.print(f"{count:,} rows left out: {plain(reason)}")
    written(output)


#: Why a file is refused that cannot hold a state, and its ending.
_STATE = ("a state is saved as Parquet; name the file with .parquet", ".parquet")


def _matching(file: str) -> list[str]:
    """The files of a pattern; a pattern, or a path on this machine, without a file is refused."""
    try:
        found = matching(file)
    except FileNotFoundError as error:
        raise InputError(f"no such file: {file}") from error
    if "://" not in file and not all(Path(one).exists() for one in found):
        raise InputError(f"no such file: {file}")
    return found


@taking("sql")
def sql(given: Any) -> None:
    """Print the SQL query of a state: `calibrary scale sql --table t --label y --prob p --dialect postgres`."""
    from calibrary.scale import sql as text

    probs = given.prob or ["p"]
    query = text(
        given.table, label=given.label, prob=probs[0] if len(probs) == 1 else probs, by=given.by or (),
        weight=given.weight, resolution=given.resolution, dialect=given.dialect, **_classes(given),
    )  # fmt: skip
    print(query)


#: The exit status after an alarm, the same as for a gate that fails.
ALARM = 1
#: The largest number of segments that are named in the terminal.
_NAMED = 10
#: The options that are keywords of :func:`calibrary.scale.watch`.
_SAME = ("since", "until", "alpha", "error", "planned_rows", "mature", "record")


@taking("monitor")
def monitor(given: Any) -> None:
    """Find the segments that are no longer calibrated, and since when: `calibrary scale monitor STORE -o page.html`.

    The exit status is 0 without an alarm, 1 with an alarm (with --fail-if: if a condition holds for the whole interval
    of a segment, which is valid at every look), and 2 if nothing could be computed.
    """
    store = given.store
    from calibrary.scale import Store, watch

    paths = given.output or []
    for path in paths:
        check_output(path, "name a .html or a .json file", ".html", ".json")
    if "://" not in store and not Path(store).is_dir():
        raise InputError(f"no such folder: {store}")
    say("reading the store", given.quiet)
    how: dict[str, Any] = {**{name: getattr(given, name) for name in _SAME}, "units": given.unit}
    found = watch(Store(store), by=given.by or None, restart=given.restart or None, fail_if=given.fail_if or (), **how)
    for path in paths:
        write_atomically(path, _content(found, path.suffix).encode())
    out.print(plain(found.sentence), soft_wrap=True)
    for segment in () if given.quiet else found.alarms[:_NAMED]:
        out.print(plain(f"  {segment.sentence}"), soft_wrap=True)
    if not given.quiet and len(found.alarms) > _NAMED:
        out.print(plain(f"  {len(found.alarms) - _NAMED:,} more alarms: -o page.html writes all of them"))
    for note in () if given.quiet else found.notes:
        err.print(f"[dim]{plain(note)}[/]", soft_wrap=True)
    for failed in found.failed:
        err.print(plain(f"gate failed: {failed}"), soft_wrap=True)
    for path in paths:
        written(path)
    if found.failed if given.fail_if else found.alarms:
        raise typer.Exit(ALARM)


def _content(found: object, suffix: str) -> str:
    from calibrary.reporting.watched import watch_page
    from calibrary.scale import StoreWatch

    assert isinstance(found, StoreWatch)
    return watch_page(found) if suffix == ".html" else json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n"
