"""What the default interval and test of a million rows cost, in processor seconds beyond one sort of the same rows.

    python benchmarks/million.py [--rows 1000000] [--ids oe,cis,bs]

Each call is made once on few rows, so that nothing is imported or compiled while it is timed; then the least of two.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrary as cal

IDS = "oe,cis,bs,nll,auroc,ece,mce,ace,rms_ce,ece_db,ecce_mad,ecce_r,smece"


def seconds(call: Callable[[], Any], times: int = 2) -> float:
    """The least processor time of a few calls."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--ids", default=IDS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    p = rng.random(asked.rows)
    y = (rng.random(asked.rows) < p**1.05).astype(int)
    sort = seconds(lambda: np.argsort(p, kind="stable"), 3)
    print(f"one sort {sort:.2f} s\n{'':9}{'interval':>9}{'test':>9}")
    for id in asked.ids.split(","):
        found = []
        for verb in (cal.interval, cal.test):
            verb(id, y[:3000], p[:3000], rng=0)
            found.append(seconds(lambda verb=verb, id=id: verb(id, y, p, rng=0)) - sort)
        print(f"{id:9}{found[0]:9.2f}{found[1]:9.2f}", flush=True)


if __name__ == "__main__":
    main()
