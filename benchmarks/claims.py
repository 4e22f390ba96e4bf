"""What is said, held to the truth: every claim on many data sets of known truth, and how often each was false.

``python benchmarks/claims.py 12288 --workers 16 --json benchmarks/claims.json`` draws that many data sets of the worlds
in ``tests/reporting/test_claims.py``. A fact must never be false; evidence may be false in at most 5% of the samples of
a world in which it is untrue, by the 99% binomial interval.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter, defaultdict
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import calibrary as cal

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "reporting")]


def part(given: tuple[int, int]) -> tuple[dict[str, Any], Counter[str], list[Any], Counter[str], float]:
    """So many data sets from one seed."""
    import test_claims as claims

    data_sets, seed = given
    warnings.simplefilter("ignore", cal.CalibrationWarning)
    started = time.process_time()
    wrong, samples, facts, made = claims.run(data_sets, seed)
    return {world: dict(by) for world, by in wrong.items()}, samples, facts, made, time.process_time() - started


def main() -> None:
    import test_claims as claims

    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("data_sets", type=int, nargs="?", default=1000)
    reader.add_argument("--workers", type=int, default=1)
    reader.add_argument("--json", type=Path)
    given = reader.parse_args()
    wrong, samples, made = defaultdict(Counter), Counter(), Counter()
    facts, seconds = [], 0.0
    jobs = [(given.data_sets // given.workers, seed) for seed in range(given.workers)]
    with Pool(given.workers) as pool:
        for each in pool.imap_unordered(part, jobs):
            for world, by in each[0].items():
                wrong[world].update(by)
            samples.update(each[1])
            facts += each[2]
            made.update(each[3])
            seconds += each[4]
    found = {
        "data sets": sum(samples.values()),
        "false facts": [list(each) for each in facts],
        "claims made": dict(sorted(made.items())),
        "worlds": {
            world: {
                "samples": samples[world],
                "false": dict(sorted(wrong[world].items())),
                "beyond the level": [r for r, k in wrong[world].items() if claims.too_many(k, samples[world])],
            }
            for world in claims.WORLDS
        },
        "seconds of one core": round(seconds),
    }
    text = json.dumps(found, indent=1, ensure_ascii=False)
    print(text)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
