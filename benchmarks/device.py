"""Metrics over all pairs of probability vectors: on the GPU where the predictions are, and on the processor.

    python benchmarks/device.py [--rows 10000 100000] [--classes 10 1000] [--processor 10000]

Wall seconds of the faster of two runs, checking of the input included; the processor only up to ``--processor`` rows.
The two numbers must agree to 1e-12.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch

import calibrary as cal

METRICS: list[tuple[str, str, dict[str, Any]]] = [
    ("skce_uq, Euclidean", "skce_uq", {"kernel": "gaussian", "bandwidth": 0.3}),
    ("skce_uq, total variation", "skce_uq", {"bandwidth": 0.3}),
    ("skce_uq, median width", "skce_uq", {}),
    ("kccsd", "kccsd", {"bandwidth": 0.3}),
    ("dkde", "dkde", {"bandwidth": 0.1}),
]


def best(work: Any, runs: int = 2) -> tuple[float, float]:
    found, value = float("inf"), float("nan")
    for _ in range(runs):
        start = time.perf_counter()
        value = work()
        found = min(found, time.perf_counter() - start)
    return found, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--processor", type=int, default=10_000)
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this machine has no CUDA device")
    for k in asked.classes:
        for n in asked.rows:
            rng = np.random.default_rng(0)
            y, p = rng.integers(0, k, n), torch.softmax(2.0 * torch.randn(n, k, device="cuda"), dim=1).double()
            p = p / p.sum(dim=1, keepdim=True)
            here = p.cpu().numpy()
            for name, metric, options in METRICS:
                gpu, value = best(lambda m=metric, o=options, y=y, p=p: cal.compute(m, y, p, **o))
                line = f"{name:26} N={n:<7} K={k:<5} GPU {gpu:8.3f} s"
                if n <= asked.processor:
                    cpu, same = best(lambda m=metric, o=options, y=y, p=here: cal.compute(m, y, p, **o))
                    line += f"   processor {cpu:8.3f} s   relative difference {abs(value / same - 1):.0e}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
