"""Limits of the app: the size of a file and of all files, and the memory and time of a report."""

from __future__ import annotations

import os
from dataclasses import dataclass

#: Bytes of a request that is not a file; it may contain the names of thousands of columns.
MOST_JSON = 1 << 20
#: The largest number of stored files.
MOST_UPLOADS = 200
#: The largest number of waiting reports, and of stored reports.
MOST_WAITING = 20
MOST_RUNS = 100
#: Seconds that the preview of a file may take.
PREVIEW_SECONDS = 600.0
#: The smallest memory limit, because Python and its libraries need part of it.
_LEAST_MEMORY = 2 << 30


@dataclass(frozen=True)
class AppLimits:
    """Limits of one app: bytes of one file and of all files, memory in bytes and seconds of a report."""

    file_bytes: int = 4 << 30
    all_bytes: int = 16 << 30
    memory: int = 0
    seconds: float = 3600.0

    def __post_init__(self) -> None:
        if not self.memory:
            object.__setattr__(self, "memory", default_memory())


def default_memory() -> int:
    """Three quarters of the memory of this machine."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # the system does not provide these numbers
        return 2 * _LEAST_MEMORY
    return max(whole * 3 // 4, _LEAST_MEMORY)
