"""The app of calibrary behind the proxy of a Hugging Face Space; the README of this folder says how to set it up."""

from __future__ import annotations

import os
import sys
from typing import Any

from calibrary.application.guard import Address
from calibrary.application.limits import AppLimits
from calibrary.application.server import AppServer, LocalApp, listening

PORT = int(os.environ.get("PORT", "7860"))


class BehindProxy:
    """Give the app the requests for the Space's own name as requests for this machine.

    The proxy ends the encryption and keeps the Host and Origin headers of the browser. Requests with other names are
    passed on as they are, and the app refuses them.
    """

    def __init__(self, app: Any, host: str) -> None:
        self.app = app
        self.own = {
            (b"host", host.encode()): f"localhost:{PORT}".encode(),
            (b"origin", f"https://{host}".encode()): f"http://localhost:{PORT}".encode(),
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if "headers" in scope:
            headers = [(name, self.own.get((name, value.lower()), value)) for name, value in scope["headers"]]
            scope = {**scope, "headers": headers}
        await self.app(scope, receive, send)


def main() -> None:
    """Answer requests until the Space stops."""
    password = os.environ.get("CALIBRARY_APP_PASSWORD", "")
    if len(password) < 12:
        sys.exit("add the secret CALIBRARY_APP_PASSWORD, of at least 12 characters, in the settings of the Space")
    limits = AppLimits(file_bytes=500 << 20, all_bytes=2 << 30, memory=4 << 30, seconds=900.0)
    app = LocalApp(Address(PORT, any_ip=True), limits=limits, password=password)
    app.guard = BehindProxy(app.guard, os.environ.get("SPACE_HOST", "localhost").lower())
    AppServer(app).run_until_stopped(listening("0.0.0.0", PORT))


if __name__ == "__main__":
    main()
