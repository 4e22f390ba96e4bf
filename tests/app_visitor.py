"""An app in a process of its own, and a visitor that speaks HTTP as a browser does, or as an attacker would."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paths import ROOT

ENDED = ("done", "failed", "cancelled")


class Visitor:
    """An app that was started for a test; ``ask`` sends what the page would send unless headers say otherwise."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.folder, self._errors = folder, tempfile.TemporaryFile()  # noqa: SIM115
        silent = [] if "BROWSER" in environment else ["--no-browser"]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(folder)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "calibrary", "app", "--port", "0", *silent, *options],
            stdout=subprocess.PIPE, stderr=self._errors, text=True, env={**env, **environment},
        )  # fmt: skip
        self.url = self.process.stdout.readline().strip()
        self.port = int(re.search(r":(\d+)/", self.url)[1])
        self.host, self.key = f"127.0.0.1:{self.port}", ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str | None) -> tuple[Any, bytes]:
        """The answer and its body; a header of None is left out, an underscore in its name is a hyphen."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        given: dict[str, str | None] = {"host": self.host, "x-calibrary-key": self.key}
        given |= {} if method == "GET" else {"origin": f"http://{self.host}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in given.items() if value}
        try:
            text = json.dumps(body) if isinstance(body, dict) else body
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has answered before all was sent
                connection.request(method, path, text, sent, encode_chunked=sent.get("transfer-encoding") == "chunked")
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def enter(self) -> Visitor:
        """Take the token from the address that was printed, as the page does."""
        self.key = self.url.partition("#token=")[2]
        return self

    def drop(self, name: str, content: bytes) -> str:
        answer, said = self.ask("POST", "/files", content, x_file_name=quote(name))
        assert answer.status == 201, said
        return json.loads(said)["id"]

    def preview(self, *ids: str) -> tuple[int, dict[str, Any]]:
        answer, said = self.ask("POST", "/preview", {"files": list(ids)})
        return answer.status, json.loads(said)

    def measure(self, *ids: str, **options: Any) -> str:
        answer, said = self.ask("POST", "/runs", {"files": list(ids), "options": {"resamples": 0, **options}})
        assert answer.status == 202, said
        return json.loads(said)["id"]

    def run(self, id: str) -> dict[str, Any]:
        return json.loads(self.ask("GET", f"/runs/{id}")[1])

    def ended(self, id: str) -> dict[str, Any]:
        """The report when it has ended in whichever way."""
        return self.until(lambda: (run := self.run(id))["status"] in ENDED and run)

    @staticmethod
    def until(true: Any) -> Any:
        """What it gives when it gives something; a machine may be slow, so that it waits for long."""
        for _ in range(3000):
            if found := true():
                return found
            time.sleep(0.1)
        raise AssertionError("it never happened")

    @property
    def private(self) -> list[Path]:
        """The private folders of apps."""
        return sorted(self.folder.glob("calibrary-app-*"))

    def children(self) -> list[int]:
        """The processes that the app has started, and those that they have started, the newest last."""
        found = [self.process.pid]
        for _ in range(4):  # the process that is copied, its copies, and what they have started
            found += [pid for pid, (parent, state) in processes().items() if parent in found and state != "Z"]
        return list(dict.fromkeys(found[1:]))

    @property
    def complaints(self) -> str:
        """What the app wrote to standard error."""
        self._errors.seek(0)
        return self._errors.read().decode()

    def stop(self, how: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(60)
        assert "Traceback" not in self.complaints, self.complaints
        return status


def processes() -> dict[int, tuple[int, str]]:
    """The parent and the state of every process; a system may lack the program ps, or the folder /proc."""
    if Path("/proc/self/stat").exists():
        known = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, parent = path.read_text().rpartition(")")[2].split()[:2]
            except OSError:  # it has just ended
                continue
            known[int(path.parent.name)] = (int(parent), state)
        return known
    listed = subprocess.run(["ps", "-eo", "pid,ppid,stat"], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()[1:]]
    return {int(pid): (int(parent), state[0]) for pid, parent, state in rows}


def runs(pid: int) -> bool:
    """Is there such a process that has not ended?"""
    return processes().get(pid, (0, "Z"))[1] != "Z"


def table(n: int = 200) -> bytes:
    """A file of predictions with columns for every purpose."""
    lines = ["patient,site,day,risk,second,outcome"]
    for i in range(n):
        p = (37 * i % 100 + 0.5) / 100
        lines.append(f"{i // 2},{'abc'[i % 3]},2024-01-{1 + i % 28:02d},{p},{p * p:.6f},{int(i * i % 101 < 100 * p)}")
    return "\n".join(lines).encode()
