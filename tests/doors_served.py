"""Attacks on the app and on ``calibrary mcp``: requests that are right at first and are then changed in places.

One app and one server run for all cases of a process. Each case is judged by its status or sentence, by its time, by
the memory of the server, by the files that are left, and by the number where the request still asks for a known one.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from app_visitor import Visitor, table
from doors import Violation
from paths import ROOT

KINDS = ("app", "mcp")
#: Seconds that an answer may take, and the memory in bytes of a server: both far above what a right one needs.
_SECONDS, _MEMORY = 120.0, 2 << 30
#: Every so many cases the files, the memory and a right answer are looked at.
_LOOK = 200

#: Values that take the place of any other.
ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 10**12, 10**400, "", " ", "x", "-", "..", "../..", "a\0b", "\ud800", "y" * 5000,
    "é\u202e", "<script>", "0", "nan", [], [[]], [None], ["y"], ["y"] * 300, {}, {"a": {}}, {"files": []},
    "/etc/passwd", "p.csv/..",
]  # fmt: skip


def pick(rng: np.random.Generator, values: Any) -> Any:
    return list(values)[int(rng.integers(len(values)))]


def changed(rng: np.random.Generator, value: Any) -> Any:
    """The value with one place of it changed: another value, a key more, a key less, or a letter less."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        made, key = dict(value), pick(rng, value)
        what = rng.random()
        if what < 0.15:
            del made[key]
        elif what < 0.35:
            made[pick(rng, ["output", "zzz", "__class__", "path ", "Positive", "weights", key + "_"])] = pick(rng, ODD)
        else:
            made[key] = changed(rng, made[key])
        return made
    if isinstance(value, list) and value and rng.random() < 0.5:
        at = int(rng.integers(len(value)))
        return [*value[:at], changed(rng, value[at]), *value[at + 1 :], *(value[:1] * int(rng.integers(3)))]
    if isinstance(value, str) and value and rng.random() < 0.3:
        at = int(rng.integers(len(value)))
        return value[:at] + value[at + 1 :]
    return pick(rng, ODD)


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- the app ----------------------------------------------------------------------------------------


@functools.cache
def app() -> Visitor:
    folder = Path(tempfile.mkdtemp())
    started = Visitor(folder, "--most-mb", "2", "--memory-mb", "3000").enter()
    atexit.register(started.stop)
    started.known = started.drop("known.csv", table())
    started.right, started.outside = _measured(started)["headline"], sorted(folder.iterdir())
    return started


def _measured(visitor: Visitor) -> dict[str, Any]:
    """The known report, which some requests may delete."""
    run = visitor.ended(visitor.measure(visitor.known, label="outcome", prob=["risk"]))
    visitor.done = run["id"]
    return run


def requests(visitor: Visitor) -> list[tuple[str, str, Any]]:
    """Requests that the page could send."""
    measure = {
        "files": [visitor.known],
        "options": {"label": "outcome", "prob": ["risk"], "resamples": 0, "by": ["site"]},
    }
    run = f"/runs/{visitor.done}"
    return [
        ("GET", "/", None), ("GET", "/files", None), ("GET", "/runs", None), ("GET", run, None),
        ("GET", f"{run}/page", None), ("GET", f"{run}/report.csv", None),
        ("POST", "/files", b"y,p\n1,0.5\n0,0.25\n"), ("POST", "/runs", measure),
        ("POST", "/preview", {"files": [visitor.known], "scorer": None}), ("DELETE", "/files/x", None),
        ("POST", "/login", {"password": "x"}), ("POST", f"{run}/cancel", {}),
    ]  # fmt: skip


def app_turn(seed: int) -> str:
    """One request to the app, of which a part was changed."""
    rng, visitor = np.random.default_rng([7, seed]), app()
    method, path, body = pick(rng, requests(visitor))
    headers: dict[str, str | None] = {"x_file_name": "p.csv"} if body and isinstance(body, bytes) else {}
    for _ in range(int(rng.integers(1, 4))):
        what = rng.random()
        if what < 0.15:
            headers["x_calibrary_key"] = pick(rng, [None, "x", visitor.key[1:], visitor.key.lower() + "x"])
        elif what < 0.25:
            headers["host"] = pick(
                rng, ["evil.example", f"localhost:{visitor.port}", f"[::1]:{visitor.port}", "127.0.0.1"]
            )
        elif what < 0.35:
            headers["origin"] = pick(rng, [None, "null", "http://evil.example", f"http://127.0.0.1:{visitor.port + 1}"])
        elif what < 0.42:
            headers["sec_fetch_site"] = pick(rng, ["cross-site", "same-site", "none", "zzz"])
        elif what < 0.5:
            method = pick(rng, ["GET", "POST", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS"])
        elif what < 0.65:
            at = int(rng.integers(len(path) + 1))
            path = path[:at] + pick(rng, ["/", "..", "%2e%2e/", "%00", "?a=b", "//", "%ff", "x", "#", ";"]) + path[at:]
        elif what < 0.72:
            headers["x_file_name"] = pick(
                rng, ["..%2f..%2fx", "%00", "beginning.csv", "%ed%a0%80", "x" * 300, "-", ".csv"]
            )
        elif isinstance(body, dict):
            body = changed(rng, body)
        elif isinstance(body, bytes):
            body = bytes(rng.integers(0, 256, int(rng.integers(200)), dtype=np.uint8))
    path = path.partition("#")[0] or "/"
    sent = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
    refused = (
        "another host" if not str(headers.get("host", "localhost")).startswith("localhost")
        else "another page" if "origin" in headers and method not in ("GET", "HEAD")
        else "no token" if "x_calibrary_key" in headers and not _is_open(path, visitor)
        else ""
    )  # fmt: skip
    began = time.monotonic()
    try:
        answer, said = visitor.ask(method, path, sent, **headers)
    except (ValueError, UnicodeError):  # Python's client cannot send it
        return "app: not sent"
    except ConnectionError:  # it has refused the request before it had read all of it, and closed the connection
        return "app: refused before it was read"
    took = time.monotonic() - began
    if took > _SECONDS:
        raise Violation(f"{method} {path} took {took:.0f} s")
    if answer.status >= 500 or b"Traceback" in said:
        raise Violation(
            f"{method} {path} {headers} {str(sent)[:200]} was answered with {answer.status}: {said[:200]!r}"
        )
    if visitor.key.encode() in said or "set-cookie" in answer.headers:
        raise Violation(f"{method} {path} gave the token away")
    _tidy(visitor, method, answer.status, said)
    if refused and answer.status < 400:
        raise Violation(f"{method} {path} {headers} was answered with {answer.status}: {refused}")
    if seed % _LOOK == 0:
        _look(visitor)
    return f"app: {'answered' if answer.status < 400 else 'refused in a sentence'}"


def _is_open(path: str, visitor: Visitor) -> bool:
    """Whether the path needs no token: how to enter, or the page and files of a report whose id is known."""
    plain = path.partition("?")[0]
    return plain in ("/", "/enter", "/login") or (visitor.done in plain and ("/page" in plain or "/report." in plain))


def _tidy(visitor: Visitor, method: str, status: int, said: bytes) -> None:
    """Remove what the request has made, so that ten thousand cases fit."""
    if method == "POST" and status == 201:
        visitor.ask("DELETE", f"/files/{json.loads(said)['id']}")
    elif method == "POST" and status == 202:
        run = visitor.ended(json.loads(said)["id"])
        if run["status"] == "failed" and ("fault" in run["error"] or not run["error"].strip()):
            raise Violation(f"a report failed without a sentence: {run['error']!r}")
        visitor.ask("DELETE", f"/runs/{run['id']}")
    elif method == "DELETE" and status == 200:  # the known report, with the token and from the page
        _measured(visitor)


def _look(visitor: Visitor) -> None:
    """The right answer, the memory and the files of the app."""
    run = visitor.ended(visitor.measure(visitor.known, label="outcome", prob=["risk"]))
    if run["headline"] != visitor.right:
        raise Violation(f"the answer has changed: {run['headline']!r}")
    visitor.ask("DELETE", f"/runs/{run['id']}")
    listed = [file["name"] for file in json.loads(visitor.ask("GET", "/files")[1])["files"]]
    (private,) = visitor.private
    there = sorted(path.name for path in private.glob("files/*/*"))
    if listed != ["known.csv"] or there != listed:
        raise Violation(f"files are left: {there}, and {listed} are listed")
    if len(list(private.glob("runs/*"))) != 1 or sorted(visitor.folder.iterdir()) != visitor.outside:
        raise Violation("folders are left")
    if resident(visitor.process.pid) > _MEMORY:
        raise Violation(f"the app has {resident(visitor.process.pid) >> 20} MiB")


# -- agents -----------------------------------------------------------------------------------------


class Agent:
    """A client that speaks JSON-RPC with ``calibrary mcp`` line by line."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        data = self.folder / "data"
        data.mkdir()
        (data / "p.csv").write_bytes(table())
        (self.folder / "secret.csv").write_text("outcome,risk\n" + "1,0.123456\n0,0.123456\n" * 20)
        (data / "out.csv").symlink_to(self.folder / "secret.csv")
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(self.folder)}
        command = [sys.executable, "-m", "calibrary", "mcp", str(data)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
        )
        atexit.register(self.process.kill)
        self.count = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.ask("initialize", about)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.right = self.value(RIGHT)

    def send(self, message: Any) -> None:
        self.process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: Any) -> Any:
        self.count += 1
        self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise Violation("the server has ended")
            answer = json.loads(line)
            if answer.get("id") == self.count:
                return answer

    def value(self, arguments: dict[str, Any]) -> float:
        return self.ask("tools/call", {"name": "metric", "arguments": arguments})["result"]["structuredContent"][
            "value"
        ]


RIGHT = {"id": "bs", "path": "p.csv", "label": "outcome", "prob": ["risk"], "resamples": 99}
CALLS = {
    "metric": {**RIGHT, "weight": None, "positive": None, "percent": False, "seed": 0},
    "verdict": {"condition": "bs<0.5", **{k: v for k, v in RIGHT.items() if k != "id"}, "drop_missing": True},
    "compare": {
        "paths": ["p.csv"],
        "models": ["risk", "second"],
        "label": "outcome",
        "metrics": ["bs"],
        "resamples": 99,
    },
    "explain": {"id": "ece"},
    "recommend": {"task": "binary", "goal": "measure", "n": 100, "rare": 0.5, "most": 3},
}
agent = functools.cache(Agent)


def mcp_turn(seed: int) -> str:
    """One call of a tool, of which a part was changed."""
    rng, client = np.random.default_rng([8, seed]), agent()
    name = pick(rng, CALLS)
    arguments: Any = CALLS[name]
    for _ in range(int(rng.integers(1, 3))):
        arguments = changed(rng, arguments)
    if isinstance(arguments, dict) and rng.random() < 0.1 and "path" in arguments:
        arguments = {
            **arguments,
            "path": pick(rng, ["out.csv", "../secret.csv", str(client.folder / "secret.csv"), "./p.csv"]),
        }
    if rng.random() < 0.02:  # a line that is no message must not end the server
        client.send(pick(rng, ["{", "[]", "null", '{"jsonrpc": "2.0"}', '"x"', "{" * 5000]))
    if isinstance(arguments, dict) and isinstance(arguments.get("resamples"), int) and arguments["resamples"] > 99:
        arguments = {**arguments, "resamples": 10**6}  # refused; or it would take long
    if "\\ud800" in json.dumps(arguments):  # half a character is no JSON message: the protocol has no answer to it
        client.send(
            {"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        )
        return "mcp: no message"
    began = time.monotonic()
    method = pick(rng, ["tools/call"] * 40 + ["tools/cal", "tools/list"])
    answer = client.ask(method, {"name": name, "arguments": arguments})
    took, text = time.monotonic() - began, json.dumps(answer)
    if took > _SECONDS:
        raise Violation(f"{name} {str(arguments)[:200]} took {took:.0f} s")
    if "0.123456" in text or "Traceback" in text or len(text) > 5 << 20:
        raise Violation(f"{name} {str(arguments)[:300]} was answered with {text[:300]}")
    if seed % _LOOK == 0:
        if client.value(RIGHT) != client.right:
            raise Violation("the answer has changed")
        if list(client.folder.glob("calibrary-app-*/calls/*")) or resident(client.process.pid) > _MEMORY:
            raise Violation("files of calls, or too much memory, are left")
    if "error" in answer:
        return "mcp: refused in a sentence"
    result = answer["result"]
    if result.get("isError"):
        said = result["content"][0]["text"]
        if said.strip() == f"Error executing tool {name}":
            raise Violation(f"{name} {str(arguments)[:300]} failed without a sentence")
        return "mcp: refused in a sentence"
    if method == "tools/call":
        _judge_value(name, arguments, result, client)
    return "mcp: answered"


def _judge_value(name: str, arguments: Any, result: Any, client: Agent) -> None:
    """Where the changed call still asks for the known number, it must be that number."""
    if name != "metric" or not isinstance(arguments, dict):
        return
    kept = {key: value for key, value in arguments.items() if value is not None and value is not False}
    plain = {**RIGHT, "path": "p.csv"}
    if {**kept, "seed": 0, "resamples": 99} == {**plain, "seed": 0}:
        found = result["structuredContent"]["value"]
        if abs(found - client.right) > 1e-12:
            raise Violation(f"{arguments} gave {found}, not {client.right}")
    elif set(kept) - set(CALLS["metric"]):
        raise Violation(f"{str(arguments)[:300]} was answered, although the tool has no such argument")


def turn(kind: str, seed: int) -> str:
    return app_turn(seed) if kind == "app" else mcp_turn(seed)
