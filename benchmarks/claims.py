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
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "reporting")]


def main() -> None:
    import test_claims as claims

    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("data_sets", type=int, nargs="?", default=1000)
    reader.add_argument("--workers", type=int, default=1)
    reader.add_argument("--json", type=Path)
    given = reader.parse_args()
    started = time.perf_counter()
    wrong, samples, facts, made = claims.run_shared(given.data_sets, workers=given.workers)
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
        "seconds": round(time.perf_counter() - started),
        "workers": given.workers,
    }
    text = json.dumps(found, indent=1, ensure_ascii=False)
    print(text)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
