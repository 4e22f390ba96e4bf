"""The web server of the app: its pages, and the requests that they send."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from calibrary.application.children import Children, StoppedError
from calibrary.application.folder import PrivateFolder
from calibrary.application.guard import LOCAL, Address, Guard, Secrets
from calibrary.application.limits import MOST_JSON, PREVIEW_SECONDS, AppLimits
from calibrary.application.runs import FORMS, AppRun, AppRuns, RefusedRunError
from calibrary.application.uploads import TooLargeError, UploadedFile, Uploads, megabytes

#: The largest number of simultaneous connections; further requests get status 503.
_MOST_CONNECTIONS = 200
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
        return place if self.known.password is not None else f"{place}?token={self.known.token}"

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
                route("/", self.page),
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
                ClientDisconnect: _sentence(400),
            },
        )

    # -- pages ---------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        """The page of the app for a visitor with the token or the cookie; otherwise the login or an explanation."""
        by_token = self.known.knows_token(request.query_params.get("token", ""))
        if not by_token and not self.guard.has_cookie(dict(request.headers)):
            name, status = ("login.html", 200) if self.known.password is not None else ("closed.html", 403)
            return Response(_resource(name), status, media_type="text/html")
        answer = Response(_resource("app.html"), media_type="text/html")
        return self._with_cookie(answer) if by_token else answer

    async def login(self, request: Request) -> Response:
        """Set the cookie if the password is right; after a wrong password all logins wait for a second."""
        given = await _json(request)
        async with self._guessing:
            if not self.known.knows_password(str(given.get("password", ""))):
                await asyncio.sleep(_AFTER_WRONG_PASSWORD)
                return JSONResponse({"error": "This is not the password."}, 403)
        return self._with_cookie(JSONResponse({}))

    def _with_cookie(self, answer: Response) -> Response:
        answer.set_cookie(
            self.address.cookie_name, self.known.cookie, httponly=True, samesite="strict", path="/", max_age=None
        )
        return answer

    # -- files ---------------------------------------------------------------------------------------

    async def listed_files(self, _: Request) -> Response:
        listed = [_about(file) for file in self.uploads.files.values()]
        return JSONResponse({"files": listed, "most": self.limits.file_bytes})

    async def add_file(self, request: Request) -> Response:
        """Store a file that is sent as the body of a request, piece by piece."""
        announced = request.headers.get("content-length", "")
        size = int(announced) if announced.isdecimal() else None
        name = unquote(request.headers.get("x-file-name", "file"), errors="replace")
        try:
            found = await self.uploads.add(name, request.stream(), size)
        except OSError as error:
            raise TooLargeError(f"the file cannot be stored: {(error.strerror or str(error)).lower()}") from error
        return JSONResponse(_about(found), 201)

    async def remove_file(self, request: Request) -> Response:
        self.uploads.remove(self._file(request.path_params["id"]).id)
        return JSONResponse({})

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
        return JSONResponse({"error": failed} if failed else answer["result"], 422 if failed else 200)

    # -- reports -------------------------------------------------------------------------------------

    async def listed_runs(self, _: Request) -> Response:
        newest = sorted(self.runs.runs.values(), key=lambda run: -run.asked)
        return JSONResponse({"runs": [run.shown() for run in newest], "kept": str(self.kept or "")})

    async def ask_run(self, request: Request) -> Response:
        asked = await _json(request)
        options = asked.get("options")
        run = self.runs.ask(self._chosen(asked), options if isinstance(options, dict) else {})
        return JSONResponse(self._shown(run), 202)

    async def one_run(self, request: Request) -> Response:
        return JSONResponse(self._shown(self._run(request)))

    async def cancel_run(self, request: Request) -> Response:
        run = self._run(request)
        self.runs.cancel(run)
        return JSONResponse(self._shown(run))

    async def delete_run(self, request: Request) -> Response:
        self.runs.delete(self._run(request))
        return JSONResponse({})

    async def report_page(self, request: Request) -> Response:
        """The page of a report, which is sandboxed: its script cannot send requests to this server."""
        run = self._finished(request)
        return FileResponse(await self.runs.file(run, "html"), media_type=FORMS["html"])

    async def download(self, request: Request) -> Response:
        form = request.path_params["form"]
        if form not in FORMS:
            raise NotFoundError(f"a report has no format {form[:20]!r}: {', '.join(FORMS)}")
        run = self._finished(request)
        path = await self.runs.file(run, form)
        stem = re.sub(r"[^\w.-]+", "_", run.names[0].partition(".")[0]) or "report"
        named = f"attachment; filename=\"report.{form}\"; filename*=UTF-8''{quote(f'{stem}-report.{form}')}"
        return FileResponse(path, media_type=FORMS[form], headers={"content-disposition": named})

    # -- files and reports by their ids --------------------------------------------------------------

    def _shown(self, run: AppRun) -> dict[str, Any]:
        return {**run.shown(), "before": self.runs.place_in_queue(run)}

    def _file(self, id: object) -> UploadedFile:
        found = self.uploads.files.get(str(id))
        if found is None:
            raise NotFoundError("this file is no longer stored: upload it again")
        return found

    def _chosen(self, asked: dict[str, Any]) -> list[UploadedFile]:
        named = asked.get("files")
        if not isinstance(named, list) or not named:
            raise NotFoundError("no file was chosen: upload one")
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
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_JSON:
            raise TooLargeError(f"the request has more than {megabytes(MOST_JSON)}")
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _sentence(status: int) -> Callable[[Request, Exception], Response]:
    """A handler that answers with the message of the error and this status."""

    def answer(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, status, headers={"connection": "close"})

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


class AppServer:
    """The web server of one app; at its end it waits at most a second for open connections."""

    def __init__(self, app: LocalApp) -> None:
        config = uvicorn.Config(
            app.guard, log_level="warning", access_log=False, lifespan="on", ws="none", server_header=False,
            proxy_headers=False, limit_concurrency=_MOST_CONNECTIONS, timeout_graceful_shutdown=1,
        )  # fmt: skip
        self.served, self._server = app, uvicorn.Server(config)

    def run_until_stopped(self, listener: socket.socket) -> None:
        """Answer requests until Ctrl-C, the end of the terminal or :meth:`stop`; then remove the private folder."""
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                if hasattr(signal, name):  # after the end uvicorn raises the signal again, for this harmless handler
                    signal.signal(getattr(signal, name), lambda *_: self.stop())
        try:
            self._server.run(sockets=[listener])
        finally:
            self.served.close()
            listener.close()

    def stop(self) -> None:
        """Tell the server to end."""
        self._server.should_exit = True
