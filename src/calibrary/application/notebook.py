"""The app in a notebook: ``cal.app(df)`` shows it in a frame."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from calibrary.base.errors import RefusedCallError, extra
from calibrary.base.markup import element, markup

#: Seconds to wait for the server to end.
_READY = 30.0


class AppFrame:
    """An app that runs until :meth:`stop` or the end of the notebook; a notebook shows it as a frame.

    Attributes
    ----------
    url : str
        The address that opens the app in a browser tab.
    ended : bool
        Whether the app was stopped.
    """

    def __init__(self, server: Any, url: str, framed_url: str, thread: threading.Thread, height: int) -> None:
        self.url, self.height, self.ended = url, height, False
        self._server, self._framed_url, self._thread = server, framed_url, thread
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the app and its running reports, and remove its files."""
        self.ended = True
        self._server.stop()
        self._thread.join(timeout=_READY)
        atexit.unregister(self.stop)

    def __repr__(self) -> str:
        return "The app has ended." if self.ended else f"The app runs at {self.url} until .stop() is called."

    def _repr_html_(self) -> str:
        if self.ended:
            return element("p", repr(self))
        link = element("a", "open it in a tab", href=self.url, target="_blank", rel="noopener")
        style = f"width:100%;height:{self.height}px;border:1px solid #ccc"
        frame = element("iframe", src=self._framed_url, style=style, title="calibrary")
        hint = ("The app runs on this machine until .stop() is called; if the frame stays empty, ", link, ".")
        return markup(frame, element("p", hint))


def app(data: Any = None, *, height: int = 900) -> AppFrame:
    """Show the app in a notebook, with a table or files already loaded.

    This is the app of the command ``calibrary app``: a page to choose columns, compute a report and download it. It
    listens on this machine only, and its files are removed when it ends. A notebook that runs on another machine cannot
    show the app: use :func:`calibrary.report` there.

    Parameters
    ----------
    data : data frame, mapping of columns, path or list of paths, optional
        A pandas, polars or Arrow table, a dictionary of arrays, or files that ``calibrary report`` reads.
    height : int
        Height of the frame in pixels.

    Returns
    -------
    AppFrame
        Its attribute ``url`` is the address of the app; its method ``stop()`` ends the app.

    Examples
    --------
    >>> import calibrary as cal
    >>> frame = cal.app({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9]})  # doctest: +SKIP
    >>> frame.stop()  # doctest: +SKIP
    """
    with extra("app", "calibrary.app"):
        from calibrary.application.server import AppServer, LocalApp, address_of, listening

    listener = listening("127.0.0.1", 0)
    local = LocalApp(address_of("127.0.0.1", listener.getsockname()[1]), framed=True)
    try:
        _drop(local.uploads, data)
    except BaseException:
        listener.close()
        local.close()
        raise
    server = AppServer(local)
    thread = threading.Thread(target=server.run_until_stopped, args=(listener,), daemon=True, name="calibrary app")
    thread.start()
    # notebooks are usually opened at localhost, and some browsers give a frame from another host name no storage
    return AppFrame(server, local.url, local.url.replace("127.0.0.1", "localhost", 1), thread, height)


def _drop(uploads: Any, data: Any) -> None:
    """Add the files or the table that the user passed to the files of the app."""
    if data is None:
        return
    for file in data if isinstance(data, list | tuple) else [data]:
        if isinstance(file, str | PathLike):
            place = uploads.put(Path(file).name)
            place.write_bytes(Path(file).read_bytes())
        else:
            place = uploads.put("table.parquet")
            _write_table(file, place)
        uploads.keep(place)


def _write_table(table: Any, place: Path) -> None:
    """Write a table of pandas, polars or Arrow, or a dictionary of columns, as a Parquet file."""
    with extra("app", "calibrary.app"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    if isinstance(table, Mapping):
        table = pa.table({str(name): pa.array(_plain(values)) for name, values in table.items()})
    elif hasattr(table, "to_arrow"):  # polars
        table = table.to_arrow()
    elif hasattr(table, "iloc"):
        table = pa.Table.from_pandas(table, preserve_index=False)
    if not isinstance(table, pa.Table):
        kind = type(table).__name__
        raise RefusedCallError(f"data: {kind} is not a table: pass a data frame, columns by name, or a path")
    pq.write_table(table, place)


def _plain(values: Any) -> Any:
    import numpy as np

    return np.asarray(values)
