"""How much the app takes: bytes of a file, of all files, memory and time of the work."""

from __future__ import annotations

import os
from dataclasses import dataclass

#: Bytes of a body that is no file: names of columns, of which a table may have thousands.
MOST_JSON = 1 << 20
#: Files that are kept at once.
MOST_UPLOADS = 200
#: Jobs that wait for their turn, and finished ones that are kept.
MOST_WAITING = 20
MOST_RUNS = 100
#: Seconds that a look at the first rows may take.
PREVIEW_SECONDS = 600.0
#: Less memory than this is not worth a limit: Python with its libraries takes part of it.
_LEAST_MEMORY = 2 << 30


@dataclass(frozen=True)
class AppLimits:
    """Limits of one app: ``file_bytes`` of a file, ``all_bytes`` of all of them, ``memory`` in bytes, ``seconds``."""

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
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return 2 * _LEAST_MEMORY
    return max(whole * 3 // 4, _LEAST_MEMORY)
