"""Jobs that write to a store are killed, at random times and at every step that touches a file.

    python benchmarks/store_kills.py --kills 2000 --save

A job puts sources into a store, replaces each by a corrected one and compacts old days. It is killed (SIGKILL) after a
random time, and the next job goes on. After every kill the store must hold exactly what its manifest names, no source
that was finished may be lost or counted twice, and the jobs together must end with the digest of one that was never
killed. Then the same job is ended at its first step that touches a file, at its second, and so on to the last; a file
that is being written is left half written. ``--save`` adds what was counted to ``benchmarks/store_kills.json``; give
each run a seed of its own. ``--stride 0`` leaves the single steps out.
"""

from __future__ import annotations

import argparse
import glob
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.scale import State, Store, merged

RESULTS = Path(__file__).parent / "store_kills.json"
SOURCES = 24
#: A job is killed at most so long after it began; all its sources take a little longer.
MOST_SECONDS = 1.0
_DAY = np.datetime64("2026-10-01")


def state_of(source: int, version: int) -> State:
    rng = np.random.default_rng([source, version])
    p = rng.random(60)
    return State(240, by="site").update(rng.random(60) < p, p, by={"site": rng.integers(0, 3, 60)})


def day_of(source: int) -> str:
    return str(_DAY + source // 3)


def job(path: str, sources: int = SOURCES) -> None:
    """Put all sources in that are not there in their last version."""
    store = Store(path)
    held = versions(store)
    for i in range(sources):
        if held.get(i) != 2:
            for version in (1, 2):
                store.upsert(state_of(i, version), source=f"part-{i}", day=day_of(i))
        if i % 6 == 5:
            store.compact(before=day_of(i - 2))


def versions(store: Store) -> dict[int, int]:
    """Which version of each source the manifest names."""
    found = {}
    for file in store._log.snapshot().files.values():
        for source, digest in file.sources.items():
            i = int(source.removeprefix("part-"))
            assert i not in found, f"source {i} counts twice"
            assert file.day == day_of(i)
            found[i] = 1 if digest == state_of(i, 1).digest else 2 if digest == state_of(i, 2).digest else 0
    return found


def check(path: str, finished: dict[int, int], sources: int = SOURCES) -> dict[int, int]:
    """The store holds what its manifest names, and everything that was finished before."""
    store = Store(path)
    held = versions(store)
    assert all(held.get(i, 0) >= version > 0 for i, version in finished.items()), "a source was lost"
    if held:
        expected = merged(state_of(i, version) for i, version in held.items())
        assert store.window("all").digest == expected.digest, "the rows are not those of the manifest"
    return held


def check_end(path: str, sources: int = SOURCES) -> None:
    """All sources are there, and a reader that takes every file it sees counts them once."""
    import pyarrow.parquet as pq

    job(path, sources)
    assert check(path, {}) == dict.fromkeys(range(sources), 2)
    Store(path).compact(abandoned=0.0)
    seen = sum(int(np.sum(pq.read_table(f)["n"].to_numpy())) for f in glob.glob(f"{path}/states/*/*.parquet"))
    assert seen == 60 * sources, "a file that does not count is left"


# -- processes -----------------------------------------------------------------------------------------


def forked(work: Callable[[], Any], before: Callable[[], Any] = dict) -> int:
    """Start the work in a process of its own, whose status is 1 where it fails; returns when ``before`` is done.

    PyArrow has threads, which a process that is forked has not: only the new process imports it.
    """
    begins, begun = os.pipe()
    child = os.fork()
    if child:
        os.close(begun)
        os.read(begins, 1)
        os.close(begins)
        return child
    status = 1
    try:
        import pyarrow.parquet  # noqa: F401

        os.fsync = _nothing  # a process that is killed loses nothing that it wrote: syncing is for power cuts
        before()
        os.write(begun, b".")
        work()
        status = 0
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _nothing(file: int) -> None:
    """Takes the place of os.fsync."""


def ended(child: int) -> int:
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 1:
        raise SystemExit("a check failed")
    return status


def at_random(kills: int, seed: int) -> dict[str, Any]:
    """Kill jobs until so many were killed while they worked."""
    rng, done, stores = random.Random(seed), 0, 0
    while done < kills:
        with tempfile.TemporaryDirectory() as folder:
            path, seen = f"{folder}/store", Path(folder, "seen.json")
            seen.write_text("{}")

            def remember(path: str = path, seen: Path = seen) -> None:
                finished = {int(i): v for i, v in json.loads(seen.read_text()).items()}
                seen.write_text(json.dumps(check(path, finished)))

            while done < kills:
                child = forked(lambda path=path: job(path), before=remember)
                time.sleep(rng.uniform(0.0, MOST_SECONDS))
                os.kill(child, signal.SIGKILL)
                if ended(child) == 0:
                    break
                done += 1
            ended(forked(remember))
            ended(forked(lambda path=path: check_end(path)))
            stores += 1
    return {"kills at random times": done, "stores": stores}


def at_each_step(sources: int, stride: int) -> dict[str, Any]:
    """End the job at its first step that touches a file, at its second, and so on until it is finished."""
    for step in itertools.count(1, stride):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/store"
            finished = ended(forked(lambda step=step, path=path: _until(step, lambda: job(path, sources)))) == 0
            ended(forked(lambda path=path: (check(path, {}), check_end(path, sources))))
        if finished:
            return {"ends at a step": (step - 1) // stride}
    raise AssertionError("the steps of a job come to an end")


def _until(step: int, work: Callable[[], None]) -> None:
    """Do the work, and end the process without a word at this step that touches a file."""
    left = [step]

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if name == "write_bytes":
                    with Path(arguments[0]).open("wb") as half:
                        half.write(arguments[1][: len(arguments[1]) // 2])
                os._exit(9)
            return real(*arguments, **options)

        return called

    for owner, name in ((os, "link"), (os, "fsync"), (Path, "write_bytes"), (Path, "replace"), (Path, "unlink")):
        setattr(owner, name, counted(name, getattr(owner, name)))
    work()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sources", type=int, default=7, help="of the job that is ended at each step")
    parser.add_argument("--stride", type=int, default=1, help="of these steps, one in so many")
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    begun = time.perf_counter()
    found = at_random(asked.kills, asked.seed)
    if asked.stride:
        found |= at_each_step(asked.sources, asked.stride)
    found |= {"failures": 0, "seconds": round(time.perf_counter() - begun)}
    print(json.dumps(found), flush=True)
    if asked.save:
        stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        both = {name: stored.get(name, 0) + found.get(name, 0) for name in {**stored, **found}}
        RESULTS.write_text(json.dumps(both, indent=1) + "\n")


if __name__ == "__main__":
    main()
