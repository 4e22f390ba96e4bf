"""PyArrow, which is optional: its modules under their usual names, each imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from calibrary.base.errors import extra


class LazyModule:
    """A module that is imported when one of its names is first used."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._path), name)


def need_arrow(purpose: str = "reading files") -> None:
    """Raise an error that says what to install, if PyArrow is missing."""
    with extra("files", purpose):
        import_module("pyarrow")


pa, pc, pq, ds = map(LazyModule, ("pyarrow", "pyarrow.compute", "pyarrow.parquet", "pyarrow.dataset"))
arrow_csv, arrow_fs = map(LazyModule, ("pyarrow.csv", "pyarrow.fs"))
