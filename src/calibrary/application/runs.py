"""The queue of requested reports: one report is computed at a time, and finished reports are stored."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from calibrary.application.children import Children, StoppedError, WorkProcess
from calibrary.application.folder import PrivateFolder
from calibrary.application.limits import MOST_RUNS, MOST_WAITING, AppLimits
from calibrary.application.uploads import UploadedFile
from calibrary.base.files import write_atomically

#: The formats in which a report can be downloaded: the file name extension, and its media type.
FORMS = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "pdf": "application/pdf",
}
#: Seconds that printing a page as PDF may take.
_PRINTING = 330.0
_FACTS = "run.json"
#: The id of a report: a random word.
_ID = re.compile(r"[\w-]{16,64}")


class RefusedRunError(ValueError):
    """The report is refused; the message gives the reason."""


@dataclass
class AppRun:
    """One report: ``status`` is waiting, running, done, failed or cancelled."""

    id: str
    folder: Path
    names: tuple[str, ...]
    options: dict[str, Any]
    status: str = "waiting"
    done: float = 0.0
    left: float | None = None
    headline: str = ""
    statements: tuple[str, ...] = ()
    error: str = ""
    command: str = ""
    python: str = ""
    notes: tuple[str, ...] = ()
    asked: float = field(default_factory=time.time)
    seconds: float = 0.0
    child: WorkProcess | None = None

    @property
    def ended(self) -> bool:
        return self.status in ("done", "failed", "cancelled")

    def shown(self) -> dict[str, Any]:
        """The fields that are sent to the page."""
        hidden = ("folder", "child", "options")
        return {name: value for name, value in vars(self).items() if name not in hidden}


class AppRuns:
    """The reports of one app; ``kept`` is the user's folder for finished reports, or None for the private folder."""

    def __init__(self, folder: PrivateFolder, children: Children, limits: AppLimits, kept: Path | None = None) -> None:
        self.folder, self.children, self.limits, self.kept = folder, children, limits, kept
        self.runs: dict[str, AppRun] = _stored_runs(kept)
        self._turn = asyncio.Lock()
        self._printing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, files: Sequence[UploadedFile], options: dict[str, Any]) -> AppRun:
        """Add a report to the queue; its input files stay available to it even if the user removes them."""
        if sum(not run.ended for run in self.runs.values()) > MOST_WAITING:
            raise RefusedRunError(f"{MOST_WAITING} reports are waiting already: cancel some of them, or wait")
        if len(self.runs) >= MOST_RUNS:
            raise RefusedRunError(f"{MOST_RUNS} reports are stored already: delete some of them")
        made = self.folder.new("runs")
        inputs = made / "inputs"
        inputs.mkdir(mode=0o700)
        names = _distinct_names([file.name for file in files])
        for file, name in zip(files, names, strict=True):
            _link_or_copy(file.path, inputs / name)
        run = AppRun(secrets.token_urlsafe(24), made, tuple(names), options)
        self.runs[run.id] = run
        task = asyncio.create_task(self._compute(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    def cancel(self, run: AppRun) -> None:
        """Stop computing a report, or remove it from the queue."""
        if run.ended:
            return
        run.status, run.left = "cancelled", None
        if run.child is not None:
            run.child.cancel()

    def delete(self, run: AppRun) -> None:
        """Delete a report and its files."""
        self.cancel(run)
        del self.runs[run.id]
        shutil.rmtree(run.folder, ignore_errors=True)

    def place_in_queue(self, run: AppRun) -> int:
        """The number of reports that will be computed before this one."""
        others = [other for other in self.runs.values() if not other.ended and other.asked < run.asked]
        return len(others)

    async def _compute(self, run: AppRun) -> None:
        async with self._turn:
            if run.status == "cancelled":
                return
            run.status, began = "running", time.monotonic()
            try:
                await self._run_child(run)
            except (StoppedError, OSError) as error:
                _failed(run, str(error))
            finally:
                run.child, run.seconds, run.left = None, time.monotonic() - began, None
                shutil.rmtree(run.folder / "inputs", ignore_errors=True)
            if run.status == "running":
                self._keep(run)
                run.status = "done"

    async def _run_child(self, run: AppRun) -> None:
        job = {"job": "report", "folder": str(run.folder), "files": list(run.names), "options": run.options}
        run.child = child = await self.children.take()
        if run.status == "cancelled":
            child.cancel()
        async for said in self.children.answered(job, self.limits.seconds, child):
            if run.status != "cancelled":
                self._record(run, said)

    def _record(self, run: AppRun, said: dict[str, Any]) -> None:
        if "error" in said or "fault" in said:
            _failed(run, str(said.get("error") or said.get("fault")))
            print(said.get("traceback", ""), end="", file=sys.stderr)
            return
        for name in ("done", "left", "headline", "command", "python", "statements", "notes"):
            if name in said:
                setattr(run, name, tuple(said[name]) if isinstance(said[name], list) else said[name])
        if "result" in said:
            run.done = 1.0

    def _keep(self, run: AppRun) -> None:
        """Move a finished report to the user's folder, if there is one: whole, or not at all with an error."""
        if self.kept is None:
            return
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(run.asked))}-{secrets.token_hex(4)}"
        part = self.kept / f".{name}.part"
        facts = {**run.shown(), "status": "done", "options": run.options}
        try:
            part.mkdir()
            for file in run.folder.glob("report.*"):
                write_atomically(part / file.name, file.read_bytes())
            write_atomically(part / _FACTS, json.dumps(facts).encode())
            part.rename(self.kept / name)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            reason = (error.strerror or str(error)).lower()
            run.error = f"this report could not be stored in {self.kept} ({reason}): download it before the app ends"
            print(f"calibrary: {run.error}", file=sys.stderr)
        else:
            shutil.rmtree(run.folder, ignore_errors=True)
            run.folder = self.kept / name

    async def file(self, run: AppRun, form: str) -> Path:
        """The file of a report in one of the formats; the PDF is printed when it is first requested."""
        path = run.folder / f"report.{form}"
        if form == "pdf":
            async with self._printing:
                if not path.exists():
                    await self._printed(run)
        return path

    async def _printed(self, run: AppRun) -> None:
        job = {"job": "pdf", "folder": str(run.folder)}
        async for said in self.children.answered(job, _PRINTING):
            if "error" in said or "fault" in said:
                raise RefusedRunError(str(said.get("error") or said.get("fault")))

    async def close(self) -> None:
        """Cancel all running and waiting reports, and end the child processes."""
        for run in list(self.runs.values()):
            self.cancel(run)
        await self.children.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _failed(run: AppRun, why: str) -> None:
    if run.status != "cancelled":
        run.status, run.error = "failed", why


def _distinct_names(names: Sequence[str]) -> list[str]:
    """Distinct names for the files of one report, because the name of a file is the name of its model."""
    own: dict[str, None] = {}
    numbers: dict[str, Iterator[int]] = {}
    for name in names:
        stem, dot, ending = name.partition(".")
        given = name
        while given in own:
            given = f"{stem}-{next(numbers.setdefault(name, count(2)))}{dot}{ending}"
        own[given] = None
    return list(own)


def _link_or_copy(source: Path, target: Path) -> None:
    """Create a hard link to the file, or a copy if the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _stored_runs(kept: Path | None) -> dict[str, AppRun]:
    """The reports stored in the user's folder by an earlier app, by their ids."""
    found: dict[str, AppRun] = {}
    for facts in sorted(kept.glob(f"[!.]*/{_FACTS}")) if kept is not None else []:
        try:
            known = json.loads(facts.read_bytes())
            numbers = float(known["asked"]), float(known["seconds"])
            if not known["names"] or not all(map(math.isfinite, numbers)) or not _ID.fullmatch(str(known["id"])):
                raise ValueError("its id, names or times are not those of a report")
            run = AppRun(
                str(known["id"]), facts.parent, tuple(map(str, known["names"])), dict(known["options"]), "done", 1.0,
                None, str(known["headline"]), tuple(map(str, known["statements"])), "", str(known["command"]),
                str(known["python"]), tuple(map(str, known["notes"])), *numbers,
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            print(f"calibrary: {facts} is not a finished report and is ignored: {error}", file=sys.stderr)
            continue
        found[run.id] = run
    return found
