"""The long attack on every door (``tests/doors.py``): files, states, tables, SQL, commands, threads, pages, servers;
and on logs and stores that were made from known rows (``tests/oracle_logs.py``, ``tests/oracle_stores.py``).

    python benchmarks/fuzz_doors.py [--kind saved --minutes 10]

``benchmarks/fuzz_doors.json`` keeps, for each kind, the next seed, the counts of every outcome and each violation with
its seed, so that a run goes on where the last one ended. It fails while a violation is open. The goals are 10^5 saved
files, 2*10^4 tables (two for each case), 2,000 pages in a browser, 10^4 logs and 10^4 histories of stores.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

import calibrary as cal  # noqa: E402
import doors  # noqa: E402
import doors_served  # noqa: E402
import oracle  # noqa: E402
import oracle_logs  # noqa: E402
import oracle_stores  # noqa: E402

FILE = ROOT / "benchmarks" / "fuzz_doors.json"
GOALS = {
    "saved": 100_000,
    "state": 5_000,
    "table": 10_000,
    "sql": 5_000,
    "command": 2_000,
    "threads": 500,
    "page": 2_000,
    "app": 10_000,
    "mcp": 10_000,
    "log": 10_000,
    "words": 10_000,
    "store": 10_000,
    "writers": 40,
}
#: Cases with known answers.
KNOWN = {
    "log": oracle_logs.log_turn,
    "words": oracle_logs.words_turn,
    "store": oracle_stores.store_turn,
    "writers": oracle_stores.writers_turn,
}
MOST_KEPT = 40
#: The title of the last section of ATTACKS.md, which is written by hand.
SERVED = "\n## The app and agents\n"
#: Files that nobody keeps need no disk.
SHARED_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
#: A file must not take the memory of the machine.
MEMORY = 8 << 30


def kept() -> dict[str, Any]:
    """Where the last run ended."""
    return dict(json.loads(FILE.read_text())) if FILE.exists() else {"version": cal.__version__, "kinds": {}}


def save(kind: str, mine: dict[str, Any]) -> None:
    """Write down what one kind gave; another run may have written of other kinds."""
    whole = kept()
    whole["kinds"][kind] = mine
    whole["kinds"] = dict(sorted(whole["kinds"].items()))
    FILE.write_text(json.dumps(whole, indent=1) + "\n")


def one(kind: str, seed: int, folder: Path, driver: Any) -> str:
    """One case."""
    if kind in doors_served.KINDS:
        return doors_served.turn(kind, seed)
    if kind in KNOWN:
        return oracle.turn(KNOWN[kind], seed, folder / "known")
    if kind != "page":
        return doors.turn(kind, seed, folder)
    for at, fault in doors.page_turn(range(seed, seed + 1), folder, driver):
        raise doors.Violation(f"{at}: {fault}")
    return "page: opened"


def windows(mine: dict[str, Any], until: float, goal: int, folder: Path, driver: Any) -> None:
    """Pages, many in one window."""
    while mine["seed"] < goal and time.time() < until:
        seeds = range(mine["seed"], min(mine["seed"] + doors.TOGETHER, goal))
        faults = doors.page_turn(seeds, folder, driver)
        mine["violations"] += [{"seed": seed, "said": fault[:600]} for seed, fault in faults]
        mine["seed"] = seeds.stop
        mine["outcomes"]["page: opened"] = mine["outcomes"].get("page: opened", 0) + len(seeds) - len(faults)
        save("page", mine)


def browser() -> Any:
    """A headless browser that logs what it asks the network for."""
    import shutil

    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def run(kind: str, until: float, goal: int) -> int:
    """Cases of one kind until its goal or the time; how many violations are open."""
    mine = kept()["kinds"].get(kind, {"seed": 0, "outcomes": {}, "violations": [], "mended": 0})
    driver = browser() if kind == "page" else None
    outcomes, folder = mine["outcomes"], Path(tempfile.mkdtemp(dir=SHARED_MEMORY))
    still = []
    for found in mine["violations"]:  # those of earlier runs first
        try:
            one(kind, found["seed"], folder, driver)
        except doors.Violation as violation:
            still.append({"seed": found["seed"], "said": str(violation)[:600]})
        else:
            mine["mended"] += 1
    mine["violations"] = still
    saved = time.time()
    if kind == "page":
        windows(mine, until, goal, folder, driver)
    while mine["seed"] < goal and time.time() < until and len(mine["violations"]) < MOST_KEPT:
        seed = mine["seed"]
        mine["seed"] += 1
        try:
            outcome = one(kind, seed, folder, driver)
        except doors.Violation as violation:
            outcome = "violation"
            at = traceback.extract_tb((violation.__cause__ or violation).__traceback__)[-1]
            mine["violations"].append({"seed": seed, "said": f"{violation} ({at.name})"[:600]})
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if time.time() - saved > 30.0:
            saved = time.time()
            save(kind, mine)
    mine["most_memory_mib"] = max(
        mine.get("most_memory_mib", 0), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    )
    save(kind, mine)
    if driver is not None:
        driver.quit()
    print(f"{kind}: {mine['seed']:,} of {goal:,}; {len(mine['violations'])} violations open", flush=True)
    return len(mine["violations"])


#: What each kind draws, and what must be true of every case.
ABOUT = {
    "saved": ("saved reports, maps and studies with changed JSON, without a digest, with the old or a new one",
              "one sentence that names the file, or a page of our elements, a map within [0, 1], a study"),
    "state": ("saved states with other facts, columns and bytes", "one sentence, or a Brier score within [0, 1]"),
    "table": ("one table as two files of CSV, TSV, JSON, Parquet, Arrow, NPZ or Excel, cells and bytes changed",
              "one sentence, or a number; two formats of one unchanged table give the same number"),
    "sql": ("names of keys and labels", "one sentence, or text that SQLite runs and that counts every row once"),
    "command": ("command lines of any words", "status 0 or 2 (1 for gates), never a traceback"),
    "threads": ("public functions drawn at random, in four threads",
                "the answers of one thread; filters, rcParams, environment, seeds and handlers as before"),
    "page": ("changed reports that are accepted, as pages and in a notebook, opened in Chromium",
             "no script but ours by its hash, no request, no handler, the verdict's text is seen unchanged"),
    "app": ("requests of the app's page with other methods, paths, headers and bodies (`tests/doors_served.py`)",
            "never a 5xx, refused without the token, no secret, nothing left, the right answer afterwards"),
    "mcp": ("calls of an agent's tools with other arguments and paths, and lines that are no messages",
            "a sentence or the right number, nothing outside of the folder, nothing left, the server goes on"),
    "log": ("logs of lm-evaluation-harness and Inspect made from known answers, records and bytes changed",
            "the right rows, accuracy and Brier score; another number with a note or a warning; one sentence"),
    "words": ("texts that state a confidence", "the right number, or NaN with a warning"),
    "store": ("histories of stores made from known rows, files and calls changed, kills, a second writer, a reader",
              "the right rows, events and Brier score by day and segment, or one sentence"),
    "writers": ("two processes that write to one store, one of them killed, beside a reader", "the same"),
}  # fmt: skip


def surroundings(busy: dict[str, Any]) -> list[str]:
    """Where commands and scripts run."""
    ended = ", ".join(
        f"{count} ended with {how.replace(', ', ' and the ')} number" for how, count in busy["ended"].items()
    )
    return [
        "### Surroundings",
        "",
        f"Of {busy['runs']} commands on a machine of {busy['cores']} cores with a load of {busy['load_least']:g} to "
        f"{busy['load_most']:g} (`python benchmarks/busy.py`), {ended}.",
        "",
        "`tests/project/test_surroundings.py` runs commands with `-OO`, in an ASCII locale with names in other "
        "letters, without a home folder, a cache and a compiler, with closed streams and on a full disk (a tmpfs of "
        "64 KiB), and scripts with `spawn` and `forkserver`. Python without its global lock is untested: no such "
        "interpreter was at hand.",
        "",
    ]


def known_answers() -> list[str]:
    """How the cases with known answers ended, by mutation."""
    lines = [
        "### Known answers",
        "",
        "Every case is made from known rows, and the right numbers are computed from them with numpy. Another number "
        "without a note, a warning or a refusal is a violation, and so is an error that is not ours. *Right* cases "
        "gave the right numbers (with a note or a warning where one is due), *said* ones those of another reading with "
        "a note or a warning.",
        "",
        "| kind | mutation | cases | right | said | refused |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for kind in KNOWN:
        counts: dict[str, dict[str, int]] = {}
        for outcome, count in kept()["kinds"][kind]["outcomes"].items():
            name, _, end = outcome.rpartition(": ")
            counts.setdefault(name, {})[end] = count
        for name, ends in sorted(counts.items()):
            each = " | ".join(f"{ends.get(end, 0):,}" for end in ("right", "said", "refused"))
            lines.append(f"| {kind} | {name.replace('|', ' ')} | {sum(ends.values()):,} | {each} |")
    return [*lines, ""]


def write_page() -> None:
    """The second half of ATTACKS.md: kinds and counts, and single attacks."""
    import attacks

    import forty

    lines = ["", "Made with `python benchmarks/fuzz_doors.py --page`; `tests/doors.py` draws the cases.", ""]
    lines += ["| kind | what is drawn | what must be true | cases | refused in a sentence | open |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for kind, found in kept()["kinds"].items():
        refused = sum(
            count for name, count in found["outcomes"].items() if re.search("sentence|status 2|refused", name)
        )
        what, must = ABOUT[kind]
        lines.append(f"| {kind} | {what} | {must} | {found['seed']:,} | {refused:,} | {len(found['violations'])} |")
    mended = sum(found["mended"] for found in kept()["kinds"].values())
    lines += ["", f"{mended} cases showed a fault once and are mended.", ""]
    lines += surroundings(json.loads((ROOT / "benchmarks" / "busy.json").read_text()))
    lines += known_answers()
    lines += ["### Single attacks", ""]
    lines += [f"{len(forty.ATTACKS)} attacks (`tests/forty.py`), each held by `tests/project/test_attacks.py`:", ""]
    page = ROOT / "benchmarks" / "ATTACKS.md"
    before, _, after = page.read_text().partition(attacks.DOORS)
    by_hand = "".join(after.partition(SERVED)[1:])
    page.write_text(before + attacks.DOORS + "\n".join(lines) + "\n" + forty.table() + "\n" + by_hand)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", action="store_true", help="write the counts into ATTACKS.md and stop")
    parser.add_argument("--kind", choices=list(GOALS), action="append")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each kind")
    parser.add_argument("--more", type=int, default=0, help="so many cases beyond the goal")
    arguments = parser.parse_args()
    if arguments.page:
        write_page()
        return
    if not {"page", "app", "mcp"} & set(arguments.kind or ()):  # those have processes of their own
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    kinds = arguments.kind or [kind for kind in GOALS if kind not in ("page", *doors_served.KINDS)]
    open_ = sum(run(kind, time.time() + 60.0 * arguments.minutes, GOALS[kind] + arguments.more) for kind in kinds)
    sys.exit(1 if open_ else 0)


if __name__ == "__main__":
    main()
