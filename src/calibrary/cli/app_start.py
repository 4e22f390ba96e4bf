"""``calibrary app``: a local page on which the user drops a file and gets the report."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from typing import Any

from calibrary.base.errors import extra
from calibrary.cli.taking import taking
from calibrary.options import fields_of

#: The environment variable with the password of an app that other machines can reach. It is not an option, because
#: other users can see the arguments of a command.
PASSWORD = "CALIBRARY_APP_PASSWORD"
_SHORTEST_PASSWORD = 12
#: The largest number of minutes of a report: a year.
_MOST_MINUTES = 525_600.0
_LOCAL = ("127.0.0.1", "localhost")


class AppCommand(fields_of("app")):  # type: ignore[misc]
    """The arguments of ``calibrary app``."""

    @property
    def password(self) -> str | None:
        """The password of an app that other machines can reach; None if the app listens on this machine only."""
        if self.host in _LOCAL:
            return None
        if not self.i_know:
            raise ValueError(
                f"--host {self.host}: others could reach the app there, and nothing is encrypted; pass --i-know and "
                f"set {PASSWORD}, or leave --host out"
            )
        given = os.environ.get(PASSWORD, "")
        if len(given) < _SHORTEST_PASSWORD:
            raise ValueError(f"{PASSWORD}: set a password of at least {_SHORTEST_PASSWORD} characters")
        return given

    def serve(self) -> None:
        """Start the app, print its address, and answer requests until Ctrl-C."""
        password = self.password
        if not self.minutes <= _MOST_MINUTES:
            raise ValueError(f"--minutes {self.minutes}: pass a number of minutes of at most {_MOST_MINUTES:,.0f}")
        with extra("app", "calibrary app"):
            from calibrary.application.server import AppServer, LocalApp, address_of, listening
        from calibrary.application.limits import AppLimits

        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
        most = self.most_mb * 1_000_000
        limits = AppLimits(most, 4 * most, self.memory_mb * 1_000_000, self.minutes * 60.0)
        listener = listening(self.host, self.port)
        address = address_of(self.host, listener.getsockname()[1])
        _on_signals(lambda *_: sys.exit(0))  # from here on, the end removes the private folder
        app = LocalApp(address, limits=limits, password=password, kept=self.keep)
        try:
            print(app.url, flush=True)
            print("The app runs until Ctrl-C. Nothing leaves this machine.", file=sys.stderr)
            if password is not None:
                print("Others can reach this address, and the connection is not encrypted.", file=sys.stderr)
            if not self.no_browser:  # the command that opens a browser may wait until the browser is closed
                page = app.written_address().as_uri()
                threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
            AppServer(app).run_until_stopped(listener)
        finally:
            _on_signals(signal.SIG_IGN)
            app.close()


def _on_signals(handler: Any) -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), handler)


@taking("app", AppCommand)
def app(command: AppCommand) -> None:
    """Open a local page in the browser: drop a file, see the result, download the report.

    Files stay on this machine, in a private folder that is removed when the app ends.
    """
    command.serve()


def main() -> None:
    """Run ``calibrary app`` without importing the other commands, so that the page opens at once."""
    from calibrary.cli.ending import run_alone

    run_alone("app", app)
