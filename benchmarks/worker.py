"""Answer questions about calls, one JSON line for each: value, seconds, memory.

    echo '{"do": "open", "data": "FOLDER", "labels": "bool", "setup": "...", "call": "..."}' | python worker.py

Needs nothing but the package that is called (and numpy), so that it runs in any environment; it stays, so that a
package is imported once and two of them can be timed in turn. Arrays are read by ``np.load``: an array that was
unpickled has a dtype that is not numpy's own, and functions such as ``np.add.at`` are ten times slower on it. Times are
processor seconds of one thread, so that other work on the machine counts little.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np


class Worker:
    """The call that was opened last, and what can be asked about it."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.call: CodeType = compile("nothing_is_open", "<call>", "eval")  # an error, not a very short call

    def open(self, data: str, labels: str | None, setup: str, call: str) -> dict[str, Any]:
        """Read the data and run the setup."""
        self.names = read(Path(data), labels)
        exec(setup, self.names)
        self.call = compile(call, "<call>", "eval")
        return {}

    def first(self) -> dict[str, Any]:
        """Value and seconds of the first call."""
        start = time.process_time()
        value = eval(self.call, self.names)
        return {"value": float(value), "seconds": time.process_time() - start}

    def warm(self, seconds: float) -> dict[str, Any]:
        """Call until the time is over; a package that compiles what is called often has then done so."""
        start, number = time.process_time(), 0
        while not number or time.process_time() - start < seconds:
            eval(self.call, self.names)
            number += 1
        return {"seconds": (time.process_time() - start) / number}

    def time(self, number: int) -> dict[str, Any]:
        """Seconds of one among so many calls in a row."""
        start = time.process_time()
        for _ in range(number):
            eval(self.call, self.names)
        return {"seconds": (time.process_time() - start) / number}

    def memory(self) -> dict[str, Any]:
        """MiB that a call adds at its peak, and its seconds."""
        start = time.process_time()
        added = memory(lambda: eval(self.call, self.names))
        return {"memory": added, "seconds": time.process_time() - start}

    def values(self, calls: list[str]) -> dict[str, Any]:
        """Values of other calls on the same data; None where one fails: they only explain another."""
        return {"values": [self._value(text) for text in calls]}

    def _value(self, text: str) -> float | None:
        try:
            return float(eval(text, self.names))
        except Exception:
            return None


def read(folder: Path, labels: str | None) -> dict[str, Any]:
    """What a folder holds, by name; labels ``y`` in the type asked for."""
    names: dict[str, Any] = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    names |= {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    if labels and "y" in names:
        names["y"] = names["y"].astype(labels)
    return names


def answer(worker: Worker, asked: dict[str, Any]) -> dict[str, Any]:
    """What the worker says; what goes wrong is part of the answer."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return getattr(worker, asked.pop("do"))(**asked)
    except MemoryError:
        return {"error": "memory"}
    except Exception as error:
        text = " ".join(str(error).split())
        if "can't allocate memory" in text:
            return {"error": "memory"}
        return {"error": f"{type(error).__name__}: {text}"[:300]}


def memory(run: Callable[[], Any]) -> float:
    """MiB of resident memory that a call adds at its peak."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # what earlier calls left behind would be used again, and not seen
    before = _status("VmRSS")
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    except OSError:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    peak = _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(0.0, (peak - before) / 1024)


def _status(key: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), 0)


def main(most_memory: int) -> None:
    """Answer until there are no more questions; whatever a package prints goes nowhere."""
    if most_memory:
        resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        worker = Worker()
        for line in sys.stdin:
            print(json.dumps(answer(worker, json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 0)
