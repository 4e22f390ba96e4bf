"""What is said, held to the truth: every claim on many data sets of known truth, and how often each was false.

``python benchmarks/claims.py 1000 --json benchmarks/claims.json`` draws a thousand data sets of the worlds in
``tests/reporting/test_claims.py``. A fact must never be false; evidence may be false in at most 5% of the samples of a
world in which it is untrue, by the 99% binomial interval.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import calibrary as cal

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "reporting")]


def main() -> None:
    import test_claims as claims

    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("data_sets", type=int, nargs="?", default=1000)
    reader.add_argument("--json", type=Path)
    given = reader.parse_args()
    warnings.simplefilter("ignore", cal.CalibrationWarning)
    started = time.process_time()
    wrong, samples, facts, made = claims.run(given.data_sets)
    worlds = {
        world: {
            "samples": n,
            "false": dict(sorted(wrong[world].items())),
            "beyond the level": [rule for rule, k in wrong[world].items() if claims.too_many(k, n)],
        }
        for world, n in samples.items()
    }
    found = {
        "data sets": given.data_sets,
        "false facts": [list(each) for each in facts],
        "claims made": dict(sorted(made.items())),
        "worlds": worlds,
        "seconds of one core": round(time.process_time() - started),
    }
    text = json.dumps(found, indent=1, ensure_ascii=False)
    print(text)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
