"""Processes that answer calls, and how two of them are timed in turn: ours, theirs, ours, theirs.

A process is started once for a package and asked by JSON lines (``worker.py``). A call that takes too long ends its
process; the next question starts another.
"""

from __future__ import annotations

import json
import os
import platform
import queue
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from data import make

HERE = Path(__file__).parent
ROOT = HERE.parent
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)
#: Seconds of calls before any is timed: enough for calibrary to compile what it compiles after a tenth of a second.
WARM = 0.2
#: Seconds that one timing should last at least, by repeating the call; and beyond which it is not repeated.
SHORTEST, LONG = 0.01, 4.0
#: Seconds that importing a package and reading the data may take.
IMPORT = 120.0
#: How often each side is timed at the most.
MOST_TURNS = 12

Answer = dict[str, Any]


class Process:
    """One Python with one package; ``ask`` waits for the answer, but for no more work than the limit allows."""

    def __init__(self, python: str, memory: int) -> None:
        self.command = [python, str(HERE / "worker.py"), str(memory)]
        self._process: subprocess.Popen[str] | None = None
        self._said: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as the process)

    def ask(self, do: str, limit: float, **asked: Any) -> Answer:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **asked}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            line: str | None = ""
        else:
            line = self._next(self._process.pid, limit)
        if line is None:
            self.close()
            return {"error": f"more than {limit:g} s"}
        if line:
            found: Answer = json.loads(line)
            return found
        code = self._process.wait()
        self._process = None
        return {"error": self._why(code)}

    def _next(self, pid: int, limit: float) -> str | None:
        """The next line, or None when the process has worked longer than the limit: waiting for a core is no work."""
        end, latest = _worked(pid) + limit, time.monotonic() + 600.0 + 20.0 * limit
        while _worked(pid) < end and time.monotonic() < latest:
            with suppress(queue.Empty):
                return self._lines.get(timeout=0.5)
        with suppress(queue.Empty):
            return self._lines.get_nowait()
        return None

    def _start(self) -> None:
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
            text=True, env=environment, cwd=ROOT,
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()

    def _why(self, code: int) -> str:
        if code in (-9, 137):
            return "memory"
        self._said.seek(0)
        return (self._said.read().strip().splitlines() or ["it gave no answer"])[-1][:300]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _worked(pid: int) -> float:
    """Processor seconds of a process; where the system does not say, the time on the clock."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read(stream: IO[str], lines: queue.Queue[str]) -> None:
    """Lines of output, then an empty one: read by a thread, so that waiting for the next can end."""
    for line in stream:
        lines.put(line)
    lines.put("")


@dataclass
class Bench:
    """Where and how calls are run: seconds a call may take, seconds of timing for a pair, bytes a process may use."""

    folder: Path
    limit: float = 20.0
    budget: float = 0.5
    memory: int = 10 * 2**30
    processes: dict[str, Process] = field(default_factory=dict)

    def process(self, python: str, name: str) -> Process:
        """The process of a package."""
        if name not in self.processes:
            self.processes[name] = Process(python, self.memory)
        return self.processes[name]

    def side(self, python: str, name: str, kind: str, n: int | None, setup: str, call: str, labels: str = "") -> Side:
        """A call on one size of data, opened and made once: its answer has a value or an error."""
        process = self.process(python, name)
        opened = process.ask("open", IMPORT, data=self.data(kind, n), labels=labels, setup=setup, call=call)
        return Side(process, self.limit, opened if "error" in opened else process.ask("first", self.limit))

    def data(self, kind: str, n: int | None) -> str:
        """Folder that holds the arrays, made once."""
        folder = self.folder / f"{kind}-{n}"
        if not folder.exists():
            folder.mkdir()
            for name, value in make(kind, n).items():
                if isinstance(value, np.ndarray):
                    np.save(folder / f"{name}.npy", value)
                else:
                    (folder / f"{name}.json").write_text(json.dumps(value))
        return str(folder)

    def close(self) -> None:
        for process in self.processes.values():
            process.close()
        self.processes.clear()


@dataclass
class Side:
    """One call that is open in a process, with the least seconds and the memory it took so far."""

    process: Process
    limit: float
    answer: Answer

    def ask(self, do: str, **asked: Any) -> Answer:
        return self.process.ask(do, self.limit + 3 * LONG, **asked)

    @property
    def failed(self) -> bool:
        return "error" in self.answer

    @property
    def repeated(self) -> bool:
        """Is the call short enough to be made again?"""
        return not self.failed and bool(self.answer["seconds"] < LONG)

    def prepare(self, warm: float) -> None:
        """Warm up and measure memory; a failure takes the place of the answer."""
        if not self.repeated:
            return
        if self.answer["seconds"] < warm:
            self._take(self.ask("warm", seconds=warm))
        if not self.failed:
            self._take(self.ask("memory"))

    def once_more(self) -> float:
        """Time the call again; what that took."""
        number = max(1, int(SHORTEST / max(self.answer["seconds"], 1e-7)))
        self._take(self.ask("time", number=number))
        return number * float(self.answer["seconds"]) if not self.failed else 0.0

    def _take(self, found: Answer) -> None:
        if "error" in found:
            self.answer = found
            return
        least = min(self.answer["seconds"], found["seconds"])
        self.answer = {**self.answer, **found, "seconds": least}


def in_turn(ours: Side, theirs: Side, budget: float) -> tuple[Answer, Answer]:
    """The answers of both with the least seconds of a few timings in turn; what ours took beside others is left out."""
    ours = Side(ours.process, ours.limit, dict(ours.answer))
    if ours.repeated and theirs.repeated:
        ours.answer["seconds"] = ours.ask("time", number=1)["seconds"]
    _repeat([ours, theirs] if not theirs.failed else [], budget)
    return ours.answer, theirs.answer


def alone(side: Side, budget: float) -> Answer:
    """The answer of one with the least seconds of a few timings."""
    _repeat([side], budget)
    return side.answer


def _repeat(sides: list[Side], budget: float) -> None:
    spent, turns = 0.0, 0
    while spent < budget and turns < MOST_TURNS:
        again = [side for side in sides if side.repeated]
        if not again:
            return
        spent += sum(side.once_more() for side in again)
        turns += 1


def machine() -> str:
    """The processor, as far as the system names it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
