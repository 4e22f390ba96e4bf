"""``calibrary monitor``: which segments of a store are no longer calibrated, and since when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from calibrary.base.files import check_writable, write_atomically
from calibrary.cli.shared import Quiet, out, plain, say, written
from calibrary.cli.sources import InputError

#: The exit status after an alarm, the same as for a gate that fails.
ALARM = 1
#: The largest number of segments that are named in the terminal.
_NAMED = 10


def monitor(
    store: Annotated[str, typer.Argument(help="Folder or address of a calibrary.scale.Store of daily predictions.")],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="Columns whose values define the segments. Repeatable. Default: all."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="First day, such as 2026-11-01. Default: the first day in the store.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Last day. Default: the last day in the store.")] = None,
    alpha: Annotated[float, typer.Option(help="Probability of ever raising a false alarm in any segment.")] = 0.05,
    output: Annotated[
        list[Path] | None, typer.Option("--output", "-o", help="Write .html or .json. Repeatable.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Find the segments that are no longer calibrated, and since when: `calibrary monitor STORE -o page.html`.

    The exit status is 0 without an alarm, 1 with an alarm, and 2 if nothing could be computed.
    """
    from calibrary.scale import Store, watch

    paths = output or []
    for path in paths:
        if path.suffix not in (".html", ".json"):
            raise InputError(f"{path}: name a .html or a .json file")
        check_writable(path)
    if "://" not in store and not Path(store).is_dir():
        raise InputError(f"no such folder: {store}")
    say("reading the store", quiet)
    found = watch(Store(store), by=by or None, since=since, until=until, alpha=alpha)
    for path in paths:
        write_atomically(path, _content(found, path.suffix).encode())
    out.print(plain(found.sentence), soft_wrap=True)
    for segment in () if quiet else found.alarms[:_NAMED]:
        out.print(plain(f"  {segment.sentence}"), soft_wrap=True)
    if not quiet and len(found.alarms) > _NAMED:
        out.print(plain(f"  {len(found.alarms) - _NAMED:,} more alarms: -o page.html writes all of them"))
    for path in paths:
        written(path)
    if found.alarms:
        raise typer.Exit(ALARM)


def _content(found: object, suffix: str) -> str:
    from calibrary.reporting.watched import watch_page
    from calibrary.scale import StoreWatch

    assert isinstance(found, StoreWatch)
    return watch_page(found) if suffix == ".html" else json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n"
