"""calibrary beside the packages people use, on the same data in the same run: numbers, speed and memory.

    make bench                                  everything (see RESULTS.md for how long it took)
    python benchmarks/peers.py --quick          100 and 10,000 rows, one round
    python benchmarks/peers.py --only ece MAPIE --n 10000
    python benchmarks/peers.py --only ece --update      measure these calls again, keep the rest of RESULTS.md

Makes ``.venv-bench`` with the other packages (one that does not install is named and skipped), runs every call of
``calls.py`` in a fresh process, ours and theirs in turn, and writes ``benchmarks/RESULTS.md`` and ``results.json``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pickle
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from calls import OURS, PACKAGES, SURPRISES, TASKS, Peer, Task
from data import SIZED, make
from environment import Environment, build
from results import cells, markdown, ours_cells
from rich.console import Console
from rich.table import Table

from calibrary._errors import suggest

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS, STORED = HERE / "RESULTS.md", HERE / "results.json"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)
out = Console()

#: Number of rows (None: fixed data) to what a worker said about it.
Answers = dict[int | None, dict[str, Any]]


# -- one call ----------------------------------------------------------------------------------------


@dataclass
class Bench:
    """Where and how calls are run: time limit in seconds, memory limit in bytes, seconds spent on timing one call."""

    folder: Path
    limit: float = 120.0
    budget: float = 0.5
    memory: int = 16 * 2**30

    def data(self, kind: str, n: int | None) -> str:
        """File that holds the arrays, made once."""
        path = self.folder / f"{kind}-{n}.pickle"
        if not path.exists():
            with path.open("wb") as file:
                pickle.dump(make(kind, n), file, protocol=5)
        return str(path)

    def run(
        self,
        python: str,
        kind: str,
        sizes: Sequence[int | None],
        setup: str,
        call: str,
        *,
        timing: bool = True,
        also: dict[int | None, list[str]] | None = None,
    ) -> Answers:
        """What a fresh process answers for each size, smallest first; after a failure larger ones are not asked."""
        job = {
            "data": [self.data(kind, n) for n in sizes], "setup": setup, "call": call,
            "also": [(also or {}).get(n, []) for n in sizes],
            "memory": self.memory, "budget": self.budget if timing else 0.0,
        }  # fmt: skip
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
        command = [python, str(HERE / "worker.py"), json.dumps(job)]
        answers: Answers = {}
        with (
            tempfile.TemporaryFile("w+") as said,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=said, text=True, env=environment, cwd=ROOT
            ) as process,
        ):
            lines = _as_they_come(process)
            for n in sizes:
                try:
                    line = lines.get(timeout=self.limit)
                except queue.Empty:
                    process.kill()
                    answers[n] = {"error": f"more than {self.limit:g} s"}
                    break
                answers[n] = json.loads(line) if line else {"error": _why(process.wait(), said)}
                if "error" in answers[n]:
                    break
        return answers


def _as_they_come(process: subprocess.Popen[str]) -> queue.Queue[str]:
    """Lines of output, then an empty one: read by a thread, so that waiting for the next can end."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


def _why(code: int, said: IO[str]) -> str:
    if code in (-9, 137):
        return "memory"
    said.seek(0)
    return (said.read().strip().splitlines() or ["it gave no answer"])[-1][:300]


def least(a: Answers, b: Answers) -> Answers:
    """The better of two answers to the same question, size by size: the smaller time and the smaller memory."""
    return {n: _least(a.get(n), b.get(n)) for n in {**a, **b}}


def _least(a: dict[str, Any] | None, b: dict[str, Any] | None) -> dict[str, Any]:
    if a is None or b is None or "error" in a or "error" in b:
        return (a if b is None or "error" in b else b) or (b or {})
    return {**b, **{key: min(a[key], b[key]) for key in ("seconds", "first", "memory") if key in a and key in b}}


# -- all calls ---------------------------------------------------------------------------------------


@dataclass
class Row:
    """One comparison: a package's answer beside ours, at one number of rows; without a package, ours alone."""

    task: str
    package: str
    n: int | None
    ours: dict[str, Any]
    theirs: dict[str, Any]
    same: float | None = None


def compare(
    task: Task, peers: list[Peer], sizes: list[int | None], bench: Bench, home: Environment, rounds: int
) -> list[Row]:
    """Run ours and theirs in turn, several rounds, and keep the best of each."""
    timing = sizes != [None]
    repeats = {n: [p.same for p in peers if p.same and (n or 0) <= p.largest] for n in sizes}
    ours: Answers = {}
    theirs: list[Answers] = [{} for _ in peers]
    for _ in range(rounds if timing else 1):
        ours = least(ours, bench.run(sys.executable, task.data, sizes, OURS, task.ours, timing=timing, also=repeats))
        for i, peer in enumerate(peers):
            # what failed or ran out of time once is not asked again, nor is anything larger
            largest = min([peer.largest, *((n or 0) - 1 for n, answer in theirs[i].items() if "error" in answer)])
            asked = [n for n in sizes if (n or 0) <= largest]
            python = home.python[peer.package]
            answers = bench.run(python, task.data, asked, peer.setup, peer.call, timing=timing)
            theirs[i] = least(theirs[i], answers)
    rows = []
    for n in sizes:
        mine = ours.get(n, {"error": "not asked: a smaller size failed"})
        values = mine.get("also") or same_alone(task, n, repeats[n], bench)
        again = dict(zip(repeats[n], values, strict=True))
        found = [
            Row(task.id, p.package, n, mine, a[n], again.get(p.same))
            for p, a in zip(peers, theirs, strict=True)
            if n in a
        ]
        rows += found or [Row(task.id, "", n, mine, {})]
    return rows


def same_alone(task: Task, n: int | None, repeats: list[str], bench: Bench) -> list[float | None]:
    """Values of the calls that reproduce others, where our plain call refuses the data."""
    return [bench.run(sys.executable, task.data, [n], OURS, text, timing=False)[n].get("value") for text in repeats]


def selected(only: list[str], home: Environment) -> list[tuple[Task, list[Peer]]]:
    """Tasks with the packages that are there, narrowed to the ids and packages asked for."""
    chosen = []
    for task in (*TASKS, *SURPRISES):
        peers = [p for p in task.peers if p.package in home.python]
        packages = {o.lower() for o in only if o.lower() in {name.lower() for name in PACKAGES}}
        words = [o for o in only if o.lower() not in packages]
        if words and task.id not in words:
            continue
        peers = [p for p in peers if not packages or p.package.lower() in packages]
        if peers:
            chosen.append((task, peers))
    return chosen


def sizes_of(task: Task, sizes: list[int]) -> list[int | None]:
    if task.data not in SIZED:
        return [None]
    return [n for n in sizes if n <= task.largest]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="ids of calls, names of packages")
    parser.add_argument("--n", nargs="+", type=float, default=[100, 1e4, 1e5, 1e6, 1e7], help="numbers of rows")
    parser.add_argument("--rounds", type=int, default=2, help="fresh processes of each side")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a call is stopped")
    parser.add_argument("--quick", action="store_true", help="100 and 10,000 rows, one round, no table of limits")
    parser.add_argument("--update", action="store_true", help="replace the rows of these calls in what is written")
    parser.add_argument("--no-limits", action="store_true", help="leave out the comparison with sorting")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    known = [*(task.id for task in (*TASKS, *SURPRISES)), *PACKAGES]
    for word in given.only:
        if word.lower() not in {name.lower() for name in known}:
            parser.error(f"--only {word}: no such call or package: {suggest(word, known)}")
    if given.update and not given.output.exists():
        parser.error(f"--update: there is no {given.output} to bring up to date: run make bench first")
    sizes = [int(n) for n in ([100, 1e4] if given.quick else given.n)]
    rounds = 1 if given.quick else given.rounds
    started = time.time()
    home = build(out)
    rows: list[Row] = []
    stored = given.output.with_name(given.output.stem.lower() + STORED.suffix)
    before = json.loads(stored.read_text()) if given.update else None

    def write(limits: dict[str, Any]) -> None:  # also on the way, so that a run that is stopped leaves what it has
        results = {
            "about": about(home, sizes, rounds, time.time() - started),
            "rows": [asdict(row) for row in rows],
            "limits": limits,
        }
        if before is not None:
            results = updated(before, results)
        given.output.write_text(markdown(results), encoding="utf-8")
        stored.write_text(json.dumps(results, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), limit=given.limit, budget=0.2 if given.quick else 0.5)
        for task, peers in selected(given.only, home):
            found = compare(task, peers, sizes_of(task, sizes), bench, home, rounds)
            rows += found
            show(task, found)
            write({})
        if not (given.quick or given.no_limits or given.only):
            import limits

            write(limits.measure(bench))
    out.print(f"written: {given.output} ({time.time() - started:.0f} s)", highlight=False)


def updated(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Earlier results with the calls that were measured again in place of what they had."""
    tasks = dict.fromkeys((row["task"] for row in now["rows"]), now["about"])
    about = {**before["about"], "again": {**before["about"].get("again", {}), **tasks}}
    again = {(row["task"], row["n"]) for row in now["rows"]}
    kept = [row for row in before["rows"] if (row["task"], row["n"]) not in again]
    rows = sorted(kept + now["rows"], key=lambda row: row["n"] or 0)
    return {"about": about, "rows": rows, "limits": now["limits"] or before["limits"]}


def show(task: Task, rows: list[Row]) -> None:
    """Print what one call gave."""
    table = Table(title=f"{task.title} ({task.data})", title_justify="left")
    for name in ("package", "rows", "theirs", "difference", "s", "ratio", "MiB"):
        table.add_column(name, justify="left" if name == "package" else "right")
    for n, group in itertools.groupby(rows, key=lambda row: row.n):
        found = list(group)
        table.add_row(*ours_cells(n, found[0].ours), style="bold")
        for row in found:
            if row.package:
                table.add_row(*cells(asdict(row)))
    out.print(table)


def about(home: Environment, sizes: list[int], rounds: int, seconds: float) -> dict[str, Any]:
    """What a reader needs to repeat the run."""
    import numpy as np

    command = " ".join(["python benchmarks/peers.py", *sys.argv[1:]]) if sys.argv[1:] else "make bench"
    return {
        "command": command, "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(), "numpy": np.__version__,
        "machine": _machine(), "cores": os.cpu_count(), "sizes": sizes, "rounds": rounds,
        "minutes": round(seconds / 60, 1), "versions": home.versions, "missing": home.missing,
    }  # fmt: skip


def _machine() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
