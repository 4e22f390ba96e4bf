"""Access control of the app: only a page with the token of the printed address may use it.

Every request is checked. Its Host header must name the app, so that another host name for the same address (DNS
rebinding) gets no answer. A request that changes something must come from the app's own page. The token must be in a
header, which the page sets: it is written after the # of the address, which browsers send to no server, and is kept in
the page's session storage. There is no cookie, because browsers send the cookies of a host to all its ports, on which
other users may listen. The page and the files of a report, which a frame or a link opens without headers, have the
report's random id in their address instead. The headers of every answer forbid other pages to show, read or store it.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Names by which a machine refers to itself.
LOCAL = ("127.0.0.1", "localhost")
#: HTTP methods that change nothing.
_SAFE = ("GET", "HEAD")
#: The header that holds the token.
KEY = "x-calibrary-key"
#: Paths that need no token: the first page with its style sheet and script, and how to enter.
_OPEN = ("/", "/enter", "/login", "/app.css", "/app.js")
#: The page and the files of a report: their address has the report's id, which only the page with the token knows.
_OF_REPORT = re.compile(r"/runs/[^/]+/(page|report\.[^/]+)")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src 'self' "
    "data:; base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}"
)
#: The page of a report allows its own script by the script's hash. The page is sandboxed, so that the script has no
#: origin and cannot read anything from the app.
_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-modals allow-popups; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {ancestors}"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), clipboard-read=()",
}


@dataclass
class Secrets:
    """The secrets that give access: the token, and the password that a page exchanges for the token."""

    password: str | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def knows_token(self, given: str) -> bool:
        return _same(given, self.token)

    def knows_password(self, given: str) -> bool:
        return self.password is not None and _same(given, self.password)


def _same(given: str, true: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), true.encode("utf-8", "replace"))


@dataclass(frozen=True)
class Address:
    """The port and the host names of the app; ``any_ip`` means that it listens on all addresses of the machine."""

    port: int
    names: tuple[str, ...] = LOCAL
    any_ip: bool = False

    def is_ours(self, host: str) -> bool:
        """Whether a Host header with this value names the app."""
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if port != str(self.port):
            return False
        return name.lower() in self.names or (self.any_ip and _is_ip(name.strip("[]")))

    def is_our_origin(self, origin: str) -> bool:
        return origin.startswith("http://") and self.is_ours(origin.removeprefix("http://"))


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class Guard:
    """The app with the checks of every request."""

    def __init__(self, app: Asgi, address: Address, known: Secrets, framed: bool = False) -> None:
        self.app, self.address, self.known = app, address, known
        # a notebook shows the app in a frame; its page comes from some port of this machine
        self.ancestors = "'self' http://localhost:* http://127.0.0.1:*" if framed else "'none'"
        self.inner = "'self' http://localhost:* http://127.0.0.1:*" if framed else "'self'"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # the app has no websockets
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(send, *refused, self._security_headers(scope["path"]))
            return

        known = self._has_token(headers)

        async def protected(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = self._security_headers(scope["path"])
                own |= {} if known else {"connection": "close"}  # a stranger holds no connection
                message["headers"] = [*message.get("headers", []), *((k.encode(), v.encode()) for k, v in own.items())]
            await send(message)

        await self.app(scope, receive, protected)

    def _security_headers(self, path: str) -> dict[str, str]:
        """The security headers of an answer."""
        report = path.endswith("/page")
        policy = (_REPORT_POLICY if report else _POLICY).format(ancestors=self.inner if report else self.ancestors)
        return {**_HEADERS, "content-security-policy": policy}

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """The status and the message if the request is refused; None if it is allowed."""
        if not self.address.is_ours(headers.get("host", "")):
            return 421, "This is not the address of the app: open the address that was printed."
        if scope["method"] not in _SAFE:
            if not self.address.is_our_origin(headers.get("origin", "")):
                return 403, "This request does not come from the page of the app."
            if headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return 403, "This request comes from another page."
        elif headers.get("sec-fetch-site") in ("cross-site", "same-site") and scope["path"] != "/":
            return 403, "This request comes from another page."  # another port of this machine is the same site
        is_open = scope["path"] in _OPEN or (scope["method"] in _SAFE and _OF_REPORT.fullmatch(scope["path"]))
        if not is_open and not self._has_token(headers):
            return 403, "The app's token is missing: open the address that was printed."
        return None

    def _has_token(self, headers: dict[str, str]) -> bool:
        return self.known.knows_token(headers.get(KEY, ""))


async def _answer(send: Send, status: int, sentence: str, headers: dict[str, str]) -> None:
    size = str(len(sentence.encode()))
    own = {**headers, "content-type": "text/plain; charset=utf-8", "content-length": size, "connection": "close"}
    sent = [(name.encode(), value.encode()) for name, value in own.items()]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": sentence.encode()})
