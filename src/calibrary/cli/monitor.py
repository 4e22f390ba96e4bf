"""``calibrary scale monitor``: which segments of a store are no longer calibrated, and since when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from calibrary.base.files import check_writable, write_atomically
from calibrary.cli.shared import err, out, plain, say, taking, written
from calibrary.tables.sources import InputError

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
        if path.suffix not in (".html", ".json"):
            raise InputError(f"{path}: name a .html or a .json file")
        check_writable(path)
    if "://" not in store and not Path(store).is_dir():
        raise InputError(f"no such folder: {store}")
    say("reading the store", given.quiet)
    found = watch(
        Store(store),
        by=given.by or None,
        restart=given.restart or None,
        units=given.unit,
        fail_if=given.fail_if or (),
        **{name: getattr(given, name) for name in _SAME},
    )
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
