"""Reports that were asked for: they wait for their turn, one is made at a time, and finished ones are kept."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrary.application.children import Children, StoppedError, WorkProcess
from calibrary.application.folder import PrivateFolder
from calibrary.application.limits import MOST_RUNS, MOST_WAITING, AppLimits
from calibrary.application.uploads import UploadedFile
from calibrary.base.files import write_atomically

#: What can be taken home: the ending and the type that a browser is told.
FORMS = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "pdf": "application/pdf",
}
#: Seconds that a browser may take to print a page.
_PRINTING = 330.0
_FACTS = "run.json"


class RefusedRunError(ValueError):
    """A report is not made; the text says why."""


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
        """What the page receives."""
        hidden = ("folder", "child", "options")
        return {name: value for name, value in vars(self).items() if name not in hidden}


class AppRuns:
    """The reports of one app; ``kept`` is the folder of finished ones where the user named one, else a private one."""

    def __init__(self, folder: PrivateFolder, children: Children, limits: AppLimits, kept: Path | None = None) -> None:
        self.folder, self.children, self.limits, self.kept = folder, children, limits, kept
        self.runs: dict[str, AppRun] = _found_again(kept)
        self._turn = asyncio.Lock()
        self._printing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, files: Sequence[UploadedFile], options: dict[str, Any]) -> AppRun:
        """Put a report in the queue; its files are those of now, also where they are removed meanwhile."""
        if sum(not run.ended for run in self.runs.values()) > MOST_WAITING:
            raise RefusedRunError(f"{MOST_WAITING} reports wait already: cancel some, or wait")
        if len(self.runs) >= MOST_RUNS:
            raise RefusedRunError(f"{MOST_RUNS} reports are kept already: delete some of the recent ones")
        made = self.folder.new("runs")
        inputs = made / "inputs"
        inputs.mkdir(mode=0o700)
        names = _own_names([file.name for file in files])
        for file, name in zip(files, names, strict=True):
            _linked(file.path, inputs / name)
        run = AppRun(secrets.token_urlsafe(12), made, tuple(names), options)
        self.runs[run.id] = run
        task = asyncio.create_task(self._made(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    def cancel(self, run: AppRun) -> None:
        """End the work on a report, or take it out of the queue."""
        if run.ended:
            return
        run.status, run.left = "cancelled", None
        if run.child is not None:
            run.child.cancel()

    def delete(self, run: AppRun) -> None:
        """Forget a report and remove its files."""
        self.cancel(run)
        del self.runs[run.id]
        shutil.rmtree(run.folder, ignore_errors=True)

    def place_in_queue(self, run: AppRun) -> int:
        """How many reports are made before this one."""
        others = [other for other in self.runs.values() if not other.ended and other.asked < run.asked]
        return len(others)

    async def _made(self, run: AppRun) -> None:
        async with self._turn:
            if run.status == "cancelled":
                return
            run.status, began = "running", time.monotonic()
            try:
                await self._worked(run)
            except StoppedError as error:
                _failed(run, str(error))
            finally:
                run.child, run.seconds, run.left = None, time.monotonic() - began, None
                shutil.rmtree(run.folder / "inputs", ignore_errors=True)
        if run.status == "done":
            self._keep(run)

    async def _worked(self, run: AppRun) -> None:
        job = {"job": "report", "folder": str(run.folder), "files": list(run.names), "options": run.options}
        run.child = child = await self.children.take()
        if run.status == "cancelled":
            child.cancel()
        async for said in self.children.answered(job, self.limits.seconds, child):
            if run.status != "cancelled":
                self._heard(run, said)

    def _heard(self, run: AppRun, said: dict[str, Any]) -> None:
        if "error" in said or "fault" in said:
            _failed(run, str(said.get("error") or said.get("fault")))
            print(said.get("traceback", ""), end="", file=sys.stderr)
            return
        for name in ("done", "left", "headline", "command", "python"):
            if name in said:
                setattr(run, name, said[name])
        for name in ("statements", "notes"):
            if name in said:
                setattr(run, name, tuple(said[name]))
        if "result" in said:
            run.status, run.done = "done", 1.0

    def _keep(self, run: AppRun) -> None:
        """Write down what was found, in the user's folder where one was named."""
        if self.kept is not None:
            place = self.kept / f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(run.asked))}-{secrets.token_hex(4)}"
            shutil.copytree(run.folder, place)
            shutil.rmtree(run.folder, ignore_errors=True)
            run.folder = place
            write_atomically(place / _FACTS, json.dumps({**run.shown(), "options": run.options}).encode())

    async def file(self, run: AppRun, form: str) -> Path:
        """A report in a form; the PDF is printed when it is asked for first."""
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
        """End everything that runs or waits."""
        for run in list(self.runs.values()):
            self.cancel(run)
        await self.children.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _failed(run: AppRun, why: str) -> None:
    if run.status != "cancelled":
        run.status, run.error = "failed", why


def _own_names(names: Sequence[str]) -> list[str]:
    """The names of the files of one report, each a different one: it is the name of its model."""
    own: list[str] = []
    for name in names:
        stem, dot, ending = name.partition(".")
        tried = [name, *(f"{stem}-{k}{dot}{ending}" for k in range(2, len(names) + 2))]
        own.append(next(t for t in tried if t not in own))
    return own


def _linked(source: Path, target: Path) -> None:
    """The same bytes under a second name; where a disk knows no such thing, a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _found_again(kept: Path | None) -> dict[str, AppRun]:
    """The finished reports in the user's folder, by their ids."""
    found: dict[str, AppRun] = {}
    for facts in sorted(kept.glob(f"*/{_FACTS}")) if kept is not None else []:
        try:
            known = json.loads(facts.read_bytes())
            run = AppRun(
                str(known["id"]), facts.parent, tuple(map(str, known["names"])), dict(known["options"]), "done", 1.0,
                None, str(known["headline"]), tuple(map(str, known["statements"])), "", str(known["command"]),
                str(known["python"]), tuple(map(str, known["notes"])), float(known["asked"]), float(known["seconds"]),
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"calibrary: {facts} is not a finished report and is left alone: {error}", file=sys.stderr)
            continue
        found[run.id] = run
    return found
