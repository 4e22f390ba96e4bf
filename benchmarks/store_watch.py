"""How often the monitor of a store raises an alarm where all segments are calibrated, and how soon where one is not.

    python benchmarks/store_watch.py --stores 20 --save

Each store has 50 segments and 20 days, 1,000 segment-days of 20 to 400 rows; predictions follow a Beta law of the
segment's own. A store has a false alarm if any of its segments ever has one; the bound is alpha = 5% of the stores. The
same number of stores has one segment whose log odds are shifted from the eleventh day on: how often it is found by the
last day, how often its day is right, and how often another segment has an alarm. Results are kept in
``benchmarks/store_watch.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.scale import State, Store, StoreWatch, watch

RESULTS = Path(__file__).parent / "store_watch.json"
SEGMENTS, DAYS, CHANGE = 50, 20, 10


def watched(seed: int, shift: float) -> StoreWatch:
    """A store whose first segment has its log odds shifted from a day on."""
    rng = np.random.default_rng(seed)
    law = rng.uniform(0.4, 4.0, (SEGMENTS, 2))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        for t in range(DAYS):
            rows = rng.integers(20, 401, SEGMENTS)
            site = np.repeat(np.arange(SEGMENTS), rows)
            p = np.clip(rng.beta(*law[site].T), 1e-12, 1 - 1e-12)
            moved = shift * ((site == 0) & (t >= CHANGE))
            truth = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + moved)))
            state = State(240, by="site").update(rng.random(len(p)) < truth, p, by={"site": site})
            store.upsert(state, source=str(t), day=str(np.datetime64("2026-10-01") + t))
        return watch(store)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", type=int, default=2)
    parser.add_argument("--shift", type=float, default=1.0)
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    os.fsync = lambda file: None  # nothing is kept
    begun = time.process_time()
    false = [watched(seed, 0.0) for seed in range(asked.stores)]
    changed = [watched(10_000 + seed, asked.shift) for seed in range(asked.stores)]
    right = [next((s for s in w.alarms if s.key == (0,)), None) for w in changed]
    days = [None if s is None else int(str(s.since)[-2:]) - 1 - CHANGE for s in right]
    found: dict[str, Any] = {
        "calibrated stores": asked.stores, "segment-days": asked.stores * SEGMENTS * DAYS,
        "stores with a false alarm": sum(bool(w.alarms) for w in false),
        "segments with a false alarm": sum(len(w.alarms) for w in false),
        "changed stores": asked.stores, "shift of the log odds": asked.shift,
        "change found": sum(s is not None for s in right),
        "its day right to within a day": sum(d is not None and abs(d) <= 1 for d in days),
        "other segments with an alarm": sum(s.key != (0,) for w in changed for s in w.alarms),
        "CPU seconds": round(time.process_time() - begun),
    }  # fmt: skip
    print(json.dumps(found))
    if asked.save:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
