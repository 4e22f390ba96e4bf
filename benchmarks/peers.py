"""calibrary beside the packages people use, on the same data in the same run: numbers, speed and memory.

    make bench                                  everything (see RESULTS.md for how long it took)
    python benchmarks/peers.py --quick          100 and 10,000 rows
    python benchmarks/peers.py --only ece MAPIE --n 10000
    python benchmarks/peers.py --only ece --update      measure these calls again, keep the rest of RESULTS.md
    python benchmarks/peers.py --minutes 30             stop after half an hour ...
    python benchmarks/peers.py --resume                 ... and go on from there

Makes ``.venv-bench`` with the other packages (one that does not install is named and skipped), asks a process of every
package for the calls of ``calls.py``, each in turn with ours, and writes ``benchmarks/RESULTS.md`` and
``results.json`` after every call.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import HERE, WARM, Answer, Bench, alone, in_turn, machine
from calls import OURS, PACKAGES, SURPRISES, TASKS, Peer, Task
from environment import Environment, build
from results import cells, markdown, ours_cells
from rich.console import Console
from rich.table import Table

from calibrary.base.errors import suggest
from data import SIZED

RESULTS, STORED = HERE / "RESULTS.md", HERE / "results.json"
out = Console()


# -- one call ----------------------------------------------------------------------------------------


@dataclass
class Row:
    """One comparison: a package's answer beside ours, at one number of rows; without a package, ours alone."""

    task: str
    package: str
    n: int | None
    labels: str
    ours: dict[str, Any]
    theirs: dict[str, Any]
    same: float | None = None


def compare(task: Task, peers: list[Peer], sizes: list[int | None], bench: Bench, home: Environment) -> Iterator[Row]:
    """Ours beside each of the others, one type of labels and one size after the other."""
    for labels in task.labels:
        asked = {p.package: p for p in peers}
        for n in sizes:
            here = [p for p in asked.values() if (n or 0) <= p.largest]
            for row in beside(task, here, n, labels, bench, home):
                # who fails, or would take too long, is not asked for more rows
                if "error" in row.theirs or row.theirs.get("seconds", 0.0) > bench.limit / 8:
                    asked.pop(row.package)
                yield row


def beside(task: Task, peers: list[Peer], n: int | None, labels: str, bench: Bench, home: Environment) -> Iterator[Row]:
    """Ours beside each of the others on the same rows."""
    ours = bench.side(sys.executable, "calibrary", task.data, n, OURS, task.ours, labels)
    again = same_values([p.same for p in peers if p.same], bench)
    timed = n is not None and bench.budget > 0.0
    if timed:
        ours.prepare(WARM)
    for peer in peers:
        theirs = bench.side(home.python[peer.package], peer.package, task.data, n, peer.setup, peer.call, labels)
        pair: tuple[Answer, Answer] = ours.answer, theirs.answer
        if timed:
            theirs.prepare(WARM / 4)
            pair = in_turn(ours, theirs, bench.budget)
        yield Row(task.id, peer.package, n, labels, *pair, again.get(peer.same))
    if not peers:
        yield Row(task.id, "", n, labels, alone(ours, bench.budget), {})


def same_values(calls: list[str], bench: Bench) -> dict[str, float | None]:
    """Values of the calls that reproduce others', on the data that our process has open."""
    if not calls:
        return {}
    process = bench.process(sys.executable, "calibrary")
    found = process.ask("values", bench.limit * (1 + len(calls)), calls=calls)
    return dict(zip(calls, found.get("values", [None] * len(calls)), strict=True))


# -- all calls ---------------------------------------------------------------------------------------


def selected(only: list[str], home: Environment) -> list[tuple[Task, list[Peer]]]:
    """Tasks with the packages that are there, narrowed to the ids and packages asked for; the common ones first."""
    chosen = []
    for task in (*sorted(TASKS, key=lambda task: len(task.labels) == 1), *SURPRISES):
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
    """Numbers of rows that a task is asked for: 10^5 only where types of labels are compared."""
    if task.data not in SIZED:
        return [None]
    return [n for n in sizes if n <= task.largest and (n != 10**5 or len(task.labels) > 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="ids of calls, names of packages")
    parser.add_argument("--n", nargs="+", type=float, default=[100, 1e4, 1e5, 1e6], help="numbers of rows")
    parser.add_argument("--limit", type=float, default=10, help="processor seconds after which a call is stopped")
    parser.add_argument("--minutes", type=float, default=60, help="minutes after which no further call is begun")
    parser.add_argument("--quick", action="store_true", help="100 and 10,000 rows, no table of limits")
    parser.add_argument("--values", action="store_true", help="one call of each, for its value")
    parser.add_argument("--update", action="store_true", help="replace the rows of these calls in what is written")
    parser.add_argument("--resume", action="store_true", help="go on with the run that was stopped")
    parser.add_argument("--no-limits", action="store_true", help="leave out the comparison with sorting")
    parser.add_argument("--beside", default="", help="what else ran on the machine, in words for the page")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    known = [*(task.id for task in (*TASKS, *SURPRISES)), *PACKAGES]
    for word in given.only:
        if word.lower() not in {name.lower() for name in known}:
            parser.error(f"--only {word}: no such call or package: {suggest(word, known)}")
    for option in ("update", "resume"):
        if getattr(given, option) and not given.output.exists():
            parser.error(f"--{option}: there is no {given.output} to go on from: run make bench first")
    Run(given).all()


class Run:
    """One run of the benchmark: what is asked, what was found before and what is found now."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.started = time.time()
        self.home = build(out)
        self.sizes = [int(n) for n in ([100, 1e4] if given.quick else given.n)]
        self.stored = given.output.with_name(given.output.stem.lower() + STORED.suffix)
        self.before = json.loads(self.stored.read_text()) if given.update or given.resume else None
        self.rows: list[Row] = []
        self.untimed: list[Row] = []  # kept for their values until they are timed
        self.minutes = 0.0
        if given.resume:
            found = [Row(**row) for row in self.before["rows"]]
            timed = {row.task for row in found if row.n is None or "seconds" in row.ours}
            self.rows = [row for row in found if row.task in timed]
            self.untimed = [row for row in found if row.task not in timed]
            self.minutes = self.before["about"]["minutes"]
        self.done = {row.task for row in self.rows}

    def all(self) -> None:
        """Every call that is asked for, and what was found after each of them."""
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(
                Path(folder),
                limit=self.given.limit,
                budget=0.0 if self.given.values else 0.1 if self.given.quick else 0.2,
            )
            try:
                left = self.calls(bench)
                if not (left or self.given.quick or self.given.no_limits or self.given.only):
                    import limits

                    self.write(limits.measure(bench))
            finally:
                bench.close()
        out.print(f"written: {self.given.output} ({time.time() - self.started:.0f} s)", highlight=False)
        if left:
            out.print(f"left for --resume: {' '.join(left)}", highlight=False)

    def calls(self, bench: Bench) -> list[str]:
        """Compare call after call; ids of those that the minutes did not suffice for."""
        todo = [(task, peers) for task, peers in selected(self.given.only, self.home) if task.id not in self.done]
        for place, (task, peers) in enumerate(todo):
            if time.time() - self.started > 60 * self.given.minutes:
                return [task.id for task, _ in todo[place:]]
            found = list(compare(task, peers, sizes_of(task, self.sizes), bench, self.home))
            self.rows += found
            show(task, found)
            self.write({})
        return []

    def write(self, limits: dict[str, Any]) -> None:
        measured = {row.task for row in self.rows}
        rows = self.rows + [row for row in self.untimed if row.task not in measured]
        results = {"about": self.about(), "rows": [asdict(row) for row in rows], "limits": limits}
        if not limits and self.stored.exists():
            results["limits"] = json.loads(self.stored.read_text())["limits"]
        if self.given.update:
            results = updated(self.before, results)
        self.given.output.write_text(markdown(results), encoding="utf-8")
        self.stored.write_text(json.dumps(results, indent=1) + "\n")

    def about(self) -> dict[str, Any]:
        """What a reader needs to repeat the run."""
        import numpy as np

        command = " ".join(["python benchmarks/peers.py", *sys.argv[1:]]) if sys.argv[1:] else "make bench"
        return {
            "command": command, "date": time.strftime("%Y-%m-%d"),
            "python": platform.python_version(), "numpy": np.__version__,
            "machine": machine(), "cores": os.cpu_count(), "beside": self.given.beside, "sizes": self.sizes,
            "limit": self.given.limit,
            "minutes": round(self.minutes + (time.time() - self.started) / 60, 1),
            "versions": self.home.versions, "missing": self.home.missing,
        }  # fmt: skip


def updated(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Earlier results with the calls that were measured again in place of what they had."""
    tasks = dict.fromkeys((row["task"] for row in now["rows"]), now["about"])
    about = {**before["about"], "again": {**before["about"].get("again", {}), **tasks}}
    again = {(row["task"], row["n"], row.get("labels")) for row in now["rows"]}
    kept = [row for row in before["rows"] if (row["task"], row["n"], row.get("labels")) not in again]
    rows = sorted(kept + now["rows"], key=lambda row: row["n"] or 0)
    return {"about": about, "rows": rows, "limits": now["limits"] or before["limits"]}


def show(task: Task, rows: list[Row]) -> None:
    """Print what one call gave."""
    table = Table(title=f"{task.title} ({task.data})", title_justify="left")
    for name in ("package", "rows", "theirs", "difference", "s", "ratio", "MiB"):
        table.add_column(name, justify="left" if name == "package" else "right")
    for _, group in itertools.groupby(rows, key=lambda row: (row.labels, row.n)):
        found = list(group)
        table.add_row(*ours_cells([asdict(row) for row in found]), style="bold")
        for row in found:
            if row.package:
                table.add_row(*cells(asdict(row)))
    out.print(table)


if __name__ == "__main__":
    main()
