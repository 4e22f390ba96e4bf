"""The web server of the app: its pages, and the requests that they send."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import threading
from asyncio import Transport
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from calibrary.application.children import Children, StoppedError
from calibrary.application.folder import PrivateFolder
from calibrary.application.guard import LOCAL, Address, Guard, Secrets
from calibrary.application.limits import MOST_JSON, PREVIEW_SECONDS, AppLimits
from calibrary.application.runs import FORMS, AppRun, AppRuns, RefusedRunError
from calibrary.application.uploads import TooLargeError, UploadedFile, Uploads, megabytes
from calibrary.base.markup import element

#: The largest number of simultaneous connections; further requests get status 503.
_MOST_CONNECTIONS = 200
#: The largest number of connections of one client that have sent no whole request; a further one closes the oldest.
_MOST_HALF_OPEN = 50
#: Seconds in which the headers of a request, and the body of one that is not a file, must arrive.
_HEADER_SECONDS, _BODY_SECONDS = 10.0, 30.0
#: The number of previews that are computed at a time.
_PREVIEWS = 2
#: Seconds after a wrong password before the next password is checked.
_AFTER_WRONG_PASSWORD = 1.0


class NotFoundError(ValueError):
    """The requested file or report does not exist."""


class LocalApp:
    """One app: its files, reports and child processes, and the handlers of its requests."""

    def __init__(
        self,
        address: Address,
        *,
        limits: AppLimits | None = None,
        password: str | None = None,
        kept: Path | None = None,
        framed: bool = False,
    ) -> None:
        self.address, self.limits = address, limits or AppLimits()
        self.known = Secrets(password)
        self.folder = PrivateFolder()
        self.uploads = Uploads(self.folder, self.limits)
        self.children = Children(self.folder.path, self.limits)
        self.kept = kept
        self.guard = Guard(self._starlette(), address, self.known, framed)

    @property
    def url(self) -> str:
        """The address that opens the app."""
        place = f"http://{self.address.names[0]}:{self.address.port}/"
        return place if self.known.password is not None else f"{place}#token={self.known.token}"

    def written_address(self) -> Path:
        """A private page that leads to the app: a command that opens it shows no other user the token."""
        page = self.folder.path / "open.html"
        page.write_bytes(element("meta", http_equiv="refresh", content=f"0;url={self.url}").encode())
        return page

    def close(self) -> None:
        """Remove the private folder with all files and reports in it."""
        self.folder.remove()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.runs = AppRuns(self.folder, self.children, self.limits, self.kept)
        self._previewing = asyncio.Semaphore(_PREVIEWS)
        self._guessing = asyncio.Lock()
        self.children.prepare()
        try:
            yield
        finally:
            await self.runs.close()
            self.close()

    def _starlette(self) -> Starlette:
        def route(path: str, answer: Callable[[Request], Any], method: str = "GET") -> Route:
            return Route(path, answer, methods=[method])

        return Starlette(
            routes=[
                route("/", _static("app.html", "text/html")),
                route("/enter", self.enter),
                route("/app.css", _static("app.css", "text/css; charset=utf-8")),
                route("/app.js", _static("app.js", "text/javascript; charset=utf-8")),
                route("/login", self.login, "POST"),
                route("/files", self.listed_files),
                route("/files", self.add_file, "POST"),
                route("/files/{id}", self.remove_file, "DELETE"),
                route("/preview", self.preview, "POST"),
                route("/runs", self.listed_runs),
                route("/runs", self.ask_run, "POST"),
                route("/runs/{id}", self.one_run),
                route("/runs/{id}", self.delete_run, "DELETE"),
                route("/runs/{id}/cancel", self.cancel_run, "POST"),
                route("/runs/{id}/page", self.report_page),
                route("/runs/{id}/report.{form}", self.download),
            ],
            lifespan=self._lifespan,
            exception_handlers={
                TooLargeError: _sentence(413),
                RefusedRunError: _sentence(409),
                NotFoundError: _sentence(404),
                StoppedError: _sentence(422),
                OSError: _sentence(507),
                ClientDisconnect: _sentence(400),
            },
        )

    # -- pages ---------------------------------------------------------------------------------------

    async def enter(self, _: Request) -> Response:
        """What a page without the token shows: the login, or an explanation."""
        name, status = ("login.html", 200) if self.known.password is not None else ("closed.html", 403)
        return Response(_resource(name), status, media_type="text/html")

    async def login(self, request: Request) -> Response:
        """The token in exchange for the password; after a wrong password all logins wait for a second."""
        given = await _json(request)
        async with self._guessing:
            if not self.known.knows_password(str(given.get("password", ""))):
                await asyncio.sleep(_AFTER_WRONG_PASSWORD)
                return AsciiJson({"error": "This is not the password."}, 403)
        return AsciiJson({"token": self.known.token})

    # -- files ---------------------------------------------------------------------------------------

    async def listed_files(self, _: Request) -> Response:
        listed = [_about(file) for file in self.uploads.files.values()]
        return AsciiJson({"files": listed, "most": self.limits.file_bytes})

    async def add_file(self, request: Request) -> Response:
        """Store a file that is sent as the body of a request, piece by piece."""
        announced = request.headers.get("content-length", "")
        size = int(announced) if announced.isdecimal() else None
        name = unquote(request.headers.get("x-file-name", "file"), errors="replace")
        try:
            found = await self.uploads.add(name, request.stream(), size)
        except OSError as error:
            raise TooLargeError(f"the file cannot be stored: {(error.strerror or str(error)).lower()}") from error
        return AsciiJson(_about(found), 201)

    async def remove_file(self, request: Request) -> Response:
        self.uploads.remove(self._file(request.path_params["id"]).id)
        return AsciiJson({})

    async def preview(self, request: Request) -> Response:
        """The first rows of files and guesses for their columns, both from a child process that reads the files."""
        asked = await _json(request)
        chosen = self._chosen(asked)
        async with self._previewing:
            job = {"job": "preview", "files": [str(file.path) for file in chosen], "scorer": asked.get("scorer")}
            answer: dict[str, Any] = {}
            async for said in self.children.answered(job, PREVIEW_SECONDS):
                answer = said
        if "fault" in answer:
            print(answer.get("traceback", ""), end="", flush=True)
        failed = answer.get("error") or answer.get("fault")
        return AsciiJson({"error": failed} if failed else answer["result"], 422 if failed else 200)

    # -- reports -------------------------------------------------------------------------------------

    async def listed_runs(self, _: Request) -> Response:
        newest = sorted(self.runs.runs.values(), key=lambda run: -run.asked)
        return AsciiJson({"runs": [run.shown() for run in newest], "kept": str(self.kept or "")})

    async def ask_run(self, request: Request) -> Response:
        asked = await _json(request)
        options = asked.get("options")
        run = self.runs.ask(self._chosen(asked), options if isinstance(options, dict) else {})
        return AsciiJson(self._shown(run), 202)

    async def one_run(self, request: Request) -> Response:
        return AsciiJson(self._shown(self._run(request)))

    async def cancel_run(self, request: Request) -> Response:
        run = self._run(request)
        self.runs.cancel(run)
        return AsciiJson(self._shown(run))

    async def delete_run(self, request: Request) -> Response:
        self.runs.delete(self._run(request))
        return AsciiJson({})

    async def report_page(self, request: Request) -> Response:
        """The page of a report, which is sandboxed: its script cannot send requests to this server."""
        return Response(await self._content(self._finished(request), "html"), media_type=FORMS["html"])

    async def download(self, request: Request) -> Response:
        form = request.path_params["form"]
        if form not in FORMS:
            raise NotFoundError(f"a report has no format {form[:20]!r}: {', '.join(FORMS)}")
        run = self._finished(request)
        content = await self._content(run, form)
        stem = re.sub(r"[^\w.-]+", "_", run.names[0].partition(".")[0]) or "report"
        named = f"attachment; filename=\"report.{form}\"; filename*=UTF-8''{quote(f'{stem}-report.{form}')}"
        return Response(content, media_type=FORMS[form], headers={"content-disposition": named})

    async def _content(self, run: AppRun, form: str) -> bytes:
        """A file of a report; somebody may have deleted it meanwhile."""
        try:
            return await asyncio.to_thread((await self.runs.file(run, form)).read_bytes)
        except FileNotFoundError:
            raise NotFoundError("this report is no longer stored: its files were deleted") from None

    # -- files and reports by their ids --------------------------------------------------------------

    def _shown(self, run: AppRun) -> dict[str, Any]:
        return {**run.shown(), "before": self.runs.place_in_queue(run)}

    def _file(self, id: object) -> UploadedFile:
        found = self.uploads.files.get(str(id))
        if found is None or not found.path.exists():
            raise NotFoundError("this file is no longer stored: upload it again")
        return found

    def _chosen(self, asked: dict[str, Any]) -> list[UploadedFile]:
        named = asked.get("files")
        if not isinstance(named, list) or not named:
            raise NotFoundError("no file was chosen: upload one")
        if len(set(map(str, named))) < len(named):
            raise NotFoundError("the same file was chosen twice: choose each file once")
        return [self._file(id) for id in named]

    def _run(self, request: Request) -> AppRun:
        found = self.runs.runs.get(request.path_params["id"])
        if found is None:
            raise NotFoundError("this report is no longer stored")
        return found

    def _finished(self, request: Request) -> AppRun:
        run = self._run(request)
        if run.status != "done":
            raise NotFoundError(f"this report is {run.status}: it has no page")
        return run


def _about(file: UploadedFile) -> dict[str, Any]:
    return {"id": file.id, "name": file.name, "size": file.size, "said": megabytes(file.size)}


async def _json(request: Request) -> dict[str, Any]:
    """The body of a request as a JSON object; an empty one if it is anything else."""
    try:
        body = await asyncio.wait_for(_small_body(request), _BODY_SECONDS)
    except TimeoutError:
        raise TooLargeError(f"the request took longer than {_BODY_SECONDS:g} s to arrive") from None
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


async def _small_body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_JSON:
            raise TooLargeError(f"the request has more than {megabytes(MOST_JSON)}")
    return body


class AsciiJson(JSONResponse):  # type: ignore[misc]
    """JSON in which every other letter is escaped, so that half a character of a file is sent as it is."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False).encode()


def _sentence(status: int) -> Callable[[Request, Exception], Response]:
    """A handler that answers with the message of the error and this status."""

    def answer(_: Request, error: Exception) -> Response:
        said = (
            f"the app's files cannot be used: {error.strerror or error}" if isinstance(error, OSError) else str(error)
        )
        return AsciiJson({"error": said}, status, headers={"connection": "close"})

    return answer


def _resource(name: str) -> bytes:
    return (files("calibrary") / "application" / name).read_bytes()


def _static(name: str, kind: str) -> Callable[[Request], Any]:
    async def answer(_: Request) -> Response:
        return Response(_resource(name), media_type=kind)

    return answer


# -- listening ---------------------------------------------------------------------------------------


def listening(host: str, port: int) -> socket.socket:
    """A socket that already listens, so that the address can be printed before the server starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(256)
    except OSError as error:
        found.close()
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"--host {host} --port {port}: {reason}; --port 0 chooses a free port") from None
    return found


def address_of(host: str, port: int) -> Address:
    """The port and the host names by which an app on this host can be reached."""
    if host in LOCAL:
        return Address(port)
    anywhere = host in ("0.0.0.0", "::")
    own = (socket.gethostname().lower(), socket.getfqdn().lower(), *LOCAL)
    named = f"[{host}]" if ":" in host else host.lower()
    return Address(port, tuple(dict.fromkeys(own)) if anywhere else (named,), anywhere)


class TimedProtocol(H11Protocol):  # type: ignore[misc]
    """HTTP in which a client must send the headers of its first request soon, and may hold few connections before."""

    def connection_made(self, transport: Transport) -> None:
        super().connection_made(transport)
        self._due = self.loop.call_later(_HEADER_SECONDS, self._close_if_half_open)
        ours = [c for c in self.connections if isinstance(c, TimedProtocol) and c._is_half_open(self.client)]
        if len(ours) > _MOST_HALF_OPEN:
            min(ours, key=lambda c: c._due.when()).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._due.cancel()
        super().connection_lost(exc)

    def _is_half_open(self, client: tuple[str, int] | None) -> bool:
        known = self.client and client and self.client[0] == client[0]
        return bool(known) and self.cycle is None and not self.transport.is_closing()

    def _close_if_half_open(self) -> None:
        if self.cycle is None:
            self.transport.abort()


class _Server(uvicorn.Server):  # type: ignore[misc]
    """uvicorn's server, for which a second Ctrl-C is the same as the first: the files are removed in any case."""

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.should_exit = True


class AppServer:
    """The web server of one app; at its end it waits at most a second for open connections."""

    def __init__(self, app: LocalApp) -> None:
        config = uvicorn.Config(
            app.guard, log_level="warning", access_log=False, lifespan="on", ws="none", server_header=False,
            proxy_headers=False, limit_concurrency=_MOST_CONNECTIONS, timeout_graceful_shutdown=1, http=TimedProtocol,
        )  # fmt: skip
        self.served, self._server = app, _Server(config)

    def run_until_stopped(self, listener: socket.socket) -> None:
        """Answer requests until Ctrl-C, the end of the terminal or :meth:`stop`; then remove the private folder."""
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._server.handle_exit)  # uvicorn handles the other signals
        try:
            self._server.run(sockets=[listener])
        finally:
            self.served.close()
            listener.close()

    def stop(self) -> None:
        """Tell the server to end."""
        self._server.should_exit = True
