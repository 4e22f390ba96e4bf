"""Bytes and CPU seconds of a store by rows of a segment-day: what the page on scale multiplies out.

    python benchmarks/store_sizes.py --save

For each number of rows some segments of one day (logit-normal predictions) are put into a store and read again: bytes
of the file for each segment, and CPU for each segment of the upsert, of reading a window, of the numbers of the segment
and of its evidence. Results are kept in ``benchmarks/store_sizes.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.scale import State, Store, segment_table, watch

RESULTS = Path(__file__).parent / "store_sizes.json"
#: Rows of a segment-day, and how many segments are measured.
SIZES = ((1_000, 400), (10_000, 200), (100_000, 20), (10_000_000, 2))
_CHUNK = 1_000_000


def state_of(rows: int, segments: int, resolution: int) -> State:
    rng, state = np.random.default_rng(rows), State(resolution, by="site")
    for segment in range(segments):
        for first in range(0, rows, _CHUNK):
            p = 1 / (1 + np.exp(-rng.normal(-1, 1.5, min(_CHUNK, rows - first))))
            state.update(rng.random(len(p)) < p, p, by={"site": f"segment-{segment:05}"})
    len(state)
    return state


def measured(rows: int, segments: int, resolution: int) -> dict[str, Any]:
    state = state_of(rows, segments, resolution)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        cpu = {"upsert": _cpu(lambda: store.upsert(state, source="a", day="2026-11-16"))}
        cpu["window"] = _cpu(store.window)
        cpu["numbers"] = _cpu(lambda: segment_table(state))
        cpu["evidence"] = _cpu(lambda: watch(store))
        size = sum(os.path.getsize(file) for file in store.files())
    each = {f"{name}, ms of CPU": round(1e3 * seconds / segments, 3) for name, seconds in cpu.items()}
    return {"rows": rows, "resolution": resolution, "table rows": round(len(state) / segments),
            "bytes": round(size / segments), **each}  # fmt: skip


def _cpu(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    measured(100, 2, 240)  # what is loaded once does not count
    found = [measured(*size, resolution) for size in SIZES for resolution in (240, 1200)]
    for line in found:
        print(json.dumps(line), flush=True)
    if asked.save:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
