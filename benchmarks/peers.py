"""calibrary beside the packages people use, on the same data in the same run: numbers, speed and memory.

    make bench                                  everything (see RESULTS.md for how long it took)
    python benchmarks/peers.py --quick          100 and 10,000 rows, one round
    python benchmarks/peers.py --only ece MAPIE --n 10000

Makes ``.venv-bench`` with the other packages (one that does not install is named and skipped), runs every call of
``calls.py`` in a fresh process, ours and theirs in turn, and writes ``benchmarks/RESULTS.md`` and ``results.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from calls import OURS, PACKAGES, SURPRISES, TASKS, Peer, Task
from data import SIZED, make
from environment import Environment, build
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
ROOT = HERE.parent
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)
out = Console()


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
        n: int | None,
        setup: str,
        call: str,
        *,
        timing: bool = True,
        also: Iterable[str] = (),
    ) -> dict[str, Any]:
        """The worker's answer, or why there is none."""
        job = {
            "data": self.data(kind, n), "setup": setup, "call": call, "also": list(also), "memory": self.memory,
            "budget": self.budget if timing else 0.0,
        }  # fmt: skip
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
        command = [python, str(HERE / "worker.py"), json.dumps(job)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=self.limit, env=environment, cwd=ROOT
            )
        except subprocess.TimeoutExpired:
            return {"error": f"more than {self.limit:g} s"}
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            return {"error": "memory" if done.returncode in (-9, 137) else _last(done.stderr)}
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["it gave no answer"])[-1][:300]


def least(a: dict[str, Any] | None, b: dict[str, Any]) -> dict[str, Any]:
    """The better of two answers to the same question: the smaller time and the smaller memory."""
    if a is None or "error" in a or "error" in b:
        return b if a is None or "error" in a else a
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


def compare(task: Task, peers: list[Peer], n: int | None, bench: Bench, home: Environment, rounds: int) -> list[Row]:
    """Run ours and theirs in turn, several rounds, and keep the best of each."""
    timing = n is not None
    asked = [p for p in peers if n is None or n <= p.largest]
    ours: dict[str, Any] | None = None
    theirs: dict[int, dict[str, Any]] = {}
    repeats = [peer.same for peer in asked if peer.same]
    for _ in range(rounds if timing else 1):
        ours = least(ours, bench.run(sys.executable, task.data, n, OURS, task.ours, timing=timing, also=repeats))
        for i, peer in enumerate(asked):
            if "error" not in theirs.get(i, {}):  # what ran out of time once is not asked again
                python = home.python[peer.package]
                answer = bench.run(python, task.data, n, peer.setup, peer.call, timing=timing)
                theirs[i] = least(theirs.get(i), answer)
    assert ours is not None
    if not asked:
        return [Row(task.id, "", n, ours, {})]
    again = iter(ours.get("also") or same_alone(task, n, repeats, bench))
    return [
        Row(task.id, peer.package, n, ours, theirs[i], next(again, None) if peer.same else None)
        for i, peer in enumerate(asked)
    ]


def same_alone(task: Task, n: int | None, repeats: list[str], bench: Bench) -> list[float | None]:
    """Values of the calls that reproduce others, where our plain call refuses the data."""
    return [bench.run(sys.executable, task.data, n, OURS, text, timing=False).get("value") for text in repeats]


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
    parser.add_argument("--no-limits", action="store_true", help="leave out the comparison with sorting")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    given = parser.parse_args()
    sizes = [int(n) for n in ([100, 1e4] if given.quick else given.n)]
    rounds = 1 if given.quick else given.rounds
    started = time.time()
    home = build(out)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), limit=given.limit, budget=0.2 if given.quick else 0.5)
        rows = run_all(given.only, sizes, bench, home, rounds)
        measured: dict[str, Any] = {}
        if not (given.quick or given.no_limits or given.only):
            import limits

            measured = limits.measure(bench)
    results = {
        "about": about(home, sizes, rounds, time.time() - started),
        "rows": [asdict(row) for row in rows],
        "limits": measured,
    }
    from results import markdown

    given.output.write_text(markdown(results), encoding="utf-8")
    given.output.with_name(given.output.stem.lower() + ".json").write_text(json.dumps(results, indent=1) + "\n")
    out.print(f"written: {given.output} ({time.time() - started:.0f} s)", highlight=False)


def run_all(only: list[str], sizes: list[int], bench: Bench, home: Environment, rounds: int) -> list[Row]:
    rows = []
    for task, peers in selected(only, home):
        table = Table(title=f"{task.title} ({task.data})", title_justify="left")
        for name in ("package", "rows", "theirs", "difference", "s", "ratio", "MiB"):
            table.add_column(name, justify="left" if name == "package" else "right")
        for n in sizes_of(task, sizes):
            found = compare(task, peers, n, bench, home, rounds)
            rows += found
            _show(table, n, found)
        out.print(table)
    return rows


def _show(table: Table, n: int | None, found: list[Row]) -> None:
    from results import cells, ours_cells

    table.add_row(*ours_cells(n, found[0].ours), style="bold")
    for row in found:
        if row.package:
            table.add_row(*cells(asdict(row)))


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
