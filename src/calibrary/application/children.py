"""Child processes that do the work: one for each job, with limits; a child is ended together with all its own children.

They compute the reports of the app and the tools of ``calibrary mcp``.

A child runs the command line. It takes its job as one line of JSON and answers with lines of JSON: its progress, its
result, or an error. On Linux one process loads the libraries in advance and is copied for each job, so that no job
waits for the libraries; on other systems every job starts a new process.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from calibrary.application.limits import AppLimits

#: The module that a child runs. It belongs to the command line, which this package must not import.
_PROGRAM = "calibrary.cli.app_work"
#: The largest number of bytes in one line of a child's answer.
_LONGEST_LINE = 8 << 20


class StoppedError(Exception):
    """The work ended without an answer; the message gives the reason."""


class WorkProcess:
    """A child process that waits for one job, does it and ends."""

    def __init__(self, answers: asyncio.StreamReader, asked: asyncio.StreamWriter) -> None:
        self._answers, self._asked = answers, asked
        self._pid = 0
        self.cancelled = self.timed_out = self.ended = False

    async def answers(self, job: dict[str, Any], seconds: float) -> AsyncIterator[dict[str, Any]]:
        """Send the job and yield every answer of the child; the child is always ended afterwards."""
        ending = asyncio.get_running_loop().call_later(seconds, self._out_of_time)
        try:
            with suppress(ConnectionError):  # the child has ended already; the caller reports a missing answer
                self._asked.write(json.dumps(job).encode() + b"\n")
                await self._asked.drain()
            while line := await self._line():
                if "pid" in line:
                    self._pid = int(line["pid"])
                    if self.cancelled or self.timed_out:
                        self.stop()
                else:
                    yield line
        finally:
            ending.cancel()
            self.stop()
            self.ended = True
            self._asked.close()

    async def _line(self) -> dict[str, Any]:
        """The next answer of the child; empty if the child has ended."""
        try:
            line = await self._answers.readline()
        except ConnectionError:
            return {}
        except ValueError:
            raise StoppedError("the answer of the process is too long to be shown") from None
        return dict(json.loads(line)) if line.endswith(b"\n") else {}

    def cancel(self) -> None:
        """End the work at the user's request."""
        self.cancelled = True
        self.stop()

    def stop(self) -> None:
        """Kill the child and its own children; a child whose process number is not yet known is killed once it is."""
        if not self._pid or self.ended:
            return
        with suppress(ProcessLookupError, PermissionError):  # all these processes have ended
            if os.name == "posix":
                os.killpg(self._pid, signal.SIGKILL)
            else:
                os.kill(self._pid, signal.SIGTERM)

    def _out_of_time(self) -> None:
        self.timed_out = True
        self.stop()


class Children:
    """The child processes of one app: the process that is copied, and its copies that have a job."""

    def __init__(self, folder: Path, limits: AppLimits, copies: bool | None = None, loads: Sequence[str] = ()) -> None:
        self.limits, self._loads = limits, loads
        self._folder = folder
        self._copies = (sys.platform == "linux") if copies is None else copies
        self._source: asyncio.Task[tuple[asyncio.subprocess.Process, socket.socket]] | None = None
        self._at_work: set[WorkProcess] = set()

    def prepare(self) -> None:
        """Start the process that is copied, unless it has been started."""
        if self._copies and self._source is None:
            self._source = asyncio.create_task(self._loaded())

    async def _loaded(self) -> tuple[asyncio.subprocess.Process, socket.socket]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = await self._new_process(str(theirs.fileno()), *self._loads, pass_fds=[theirs.fileno()])
        return process, ours

    async def _new_process(self, *words: str, **how: Any) -> asyncio.subprocess.Process:
        package = Path(__file__).parents[2]
        before = os.environ.get("PYTHONPATH")
        environment = {
            **os.environ,
            "PYTHONPATH": f"{package}{os.pathsep}{before}" if before else str(package),
            "TMPDIR": str(self._folder),
            "MPLBACKEND": "agg",
            "OPENBLAS_NUM_THREADS": "1",  # processes, not threads, share the draws of a report
        }
        limits = [str(self.limits.memory), str(int(self.limits.seconds) + 1)]
        command = [sys.executable, "-m", _PROGRAM, *limits, *words]
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.DEVNULL)
        own = {"cwd": self._folder, "env": environment, "limit": _LONGEST_LINE, "start_new_session": True}
        return await asyncio.create_subprocess_exec(*command, **{**nothing, **own, **how})

    async def take(self) -> WorkProcess:
        """A child that waits for its job."""
        found = await (self._copy() if self._copies else self._started())
        self._at_work.add(found)
        return found

    async def _copy(self) -> WorkProcess:
        for _ in range(2):  # the process that is copied may have been killed
            self.prepare()
            assert self._source is not None
            source = self._source
            try:
                _, jobs = await source
            except OSError as error:
                self._source = None if self._source is source else self._source
                raise StoppedError(f"no process could be started for the work: {error.strerror or error}") from None
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    socket.send_fds(jobs, [b"j"], [theirs.fileno()])
                except OSError:
                    ours.close()
                    self._source = None if self._source is source else self._source
                    continue
            ours.setblocking(False)
            return WorkProcess(*await asyncio.open_connection(sock=ours, limit=_LONGEST_LINE))
        raise StoppedError("no process could be started for the work")

    async def _started(self) -> WorkProcess:
        pipe = asyncio.subprocess.PIPE
        process = await self._new_process(stdin=pipe, stdout=pipe)
        assert process.stdout is not None and process.stdin is not None
        return WorkProcess(process.stdout, process.stdin)

    async def answered(
        self, job: dict[str, Any], seconds: float, child: WorkProcess | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Give one job to a child and yield its answers; an error if it ends without a result."""
        found = child or await self.take()
        ended = False
        try:
            async for said in found.answers(job, seconds):
                ended = ended or bool({"result", "error", "fault"} & said.keys())
                yield said
        finally:
            self._at_work.discard(found)
        if not ended:
            raise StoppedError(_why(found, seconds))

    async def close(self) -> None:
        """End all child processes."""
        for child in self._at_work:
            child.stop()
        if self._source is not None:
            try:
                process, jobs = await self._source
            except OSError:  # it could not be started
                return
            jobs.close()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _why(child: WorkProcess, seconds: float) -> str:
    if child.cancelled:
        return "cancelled"
    if child.timed_out:
        return f"the work took longer than {seconds / 60:.0f} minutes and was stopped: use fewer rows or fewer draws"
    return (
        "the process that did the work ended early, perhaps because it exceeded its memory limit: use fewer rows, "
        "or start the app with a larger --memory-mb"
    )
