"""The results as text: RESULTS.md, the cells of the printed tables, and what needs attention."""

from __future__ import annotations

import math
from typing import Any

from calls import PACKAGES, SINGLE_PRECISION, SURPRISES, TASKS, Peer, Task

TASK = {task.id: task for task in (*TASKS, *SURPRISES)}
#: Labels of the other rows are in the type that a column says.
USUAL = "int64"
HEAD = ("package", "rows", "value", "difference", "seconds", "ratio", "MiB")


# -- judging a row -----------------------------------------------------------------------------------


def peer_of(row: dict[str, Any]) -> Peer:
    return next(p for p in TASK[row["task"]].peers if p.package == row["package"])


def close(a: float, b: float, tolerance: float) -> bool:
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-15) or (math.isnan(a) and math.isnan(b))


def agrees(row: dict[str, Any]) -> bool | None:
    """Do both give the same number? None where one of them gives none."""
    a, b = row["ours"].get("value"), row["theirs"].get("value")
    return None if a is None or b is None else close(a, b, TASK[row["task"]].tolerance)


def reproduced(row: dict[str, Any]) -> bool | None:
    """Does the call that should give their number do so? None where there is no such call or no number."""
    same, value = row["same"], row["theirs"].get("value")
    if same is None or value is None:
        return None
    return close(same, value, 1e-3 if SINGLE_PRECISION in peer_of(row).why else 1e-6)


def explained(row: dict[str, Any]) -> bool:
    """The same number, or a difference with a name (and, where a call should reproduce it, one that does)."""
    if agrees(row) in (True, None):
        return True
    peer = peer_of(row)
    if peer.why == SINGLE_PRECISION:
        return close(row["ours"]["value"], row["theirs"]["value"], 1e-3)
    return bool(peer.why) and reproduced(row) is not False


def ratio(row: dict[str, Any]) -> float | None:
    """How many times longer the other package takes."""
    a, b = row["ours"].get("seconds"), row["theirs"].get("seconds")
    return b / a if a and b and row["n"] is not None else None


# -- cells -------------------------------------------------------------------------------------------


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1 or unit == "µs":
            return f"{value * scale:.3g} {unit}"
    return ""


def count(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def size(row: dict[str, Any]) -> str:
    """Number of rows, and the type of labels where it is not the usual one."""
    kind = row.get("labels", USUAL)
    return count(row["n"]) + ("" if kind == USUAL or row["n"] is None else f" {kind}")


def ours_cells(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """A row for calibrary itself: the least time it took beside the others."""
    ours = rows[0]["ours"]
    value = ours.get("error") or number(ours.get("value"))
    times = [r["ours"]["seconds"] for r in rows if r["ours"].get("seconds")]
    took = seconds(min(times)) if times and rows[0]["n"] is not None else ""
    return "calibrary", size(rows[0]), value, "", took, "", _mib(ours)


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row for another package."""
    theirs, shown = row["theirs"], ratio(row)
    value = theirs.get("error") or number(theirs.get("value"))
    difference = ""
    if agrees(row) is False:
        difference = f"{theirs['value'] - row['ours']['value']:+.2g}" + ("" if explained(row) else " UNEXPLAINED")
    elif agrees(row):
        difference = "same"
    took = "" if row["n"] is None else seconds(theirs.get("seconds"))
    return (
        row["package"],
        size(row),
        value,
        difference,
        took,
        "" if shown is None else f"{shown:.2f}",
        _mib(theirs),
    )


def _mib(answer: dict[str, Any]) -> str:
    return "" if "memory" not in answer else f"{answer['memory']:.0f}"


def table(head: tuple[str, ...], body: list[tuple[str, ...]]) -> list[str]:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in body]


# -- RESULTS.md --------------------------------------------------------------------------------------


def markdown(results: dict[str, Any]) -> str:
    """The whole page."""
    rows = results["rows"]
    compared = [r for r in rows if r["package"]]
    lines = ["# calibrary compared with other packages", "", *_how(results["about"]), ""]
    lines += [*_attention(compared), ""]
    for task in TASKS:
        lines += _section(task, [r for r in rows if r["task"] == task.id])
    lines += ["## Ordinary calls with surprising answers", "", "Small fixed data; values only.", ""]
    for task in SURPRISES:
        lines += _section(task, [r for r in rows if r["task"] == task.id])
    if results["limits"]:
        from limits import sections

        lines += sections(results["limits"])
    return "\n".join(lines).rstrip() + "\n"


def _how(about: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    notes = [f"({p.name}: {p.note}.)" for p in PACKAGES.values() if p.note and p.name in about["versions"]]
    beside = f"; meanwhile {about['beside']}" if about.get("beside") else ""
    lines = [
        f"Made by `{about['command']}` on {about['date']} in {about['minutes']} minutes: "
        f"{about['machine']}, {about['cores']} cores, Python {about['python']}, numpy {about['numpy']}{beside}.",
        "",
        "Every package runs in a process with one thread, and each of its calls is timed in turn with ours: ours, "
        "theirs, ours, theirs. Times are processor seconds, the smallest of these turns after calls of a fifth of a "
        "second to warm up (a call of more than 4 s is made once); memory is what a call adds to the peak of the "
        "process. calibrary's loops are compiled beforehand, as they are in a process that has called them for some "
        "seconds (`calibrary[fast]`). Arrays are float64, as `np.load` gives them, and labels int64 unless stated "
        "otherwise. Each package gets its input in the form in which it is fastest: tensors and objects are built "
        "before, and its input checks are switched off if it has a switch. calibrary checks its input in every call. "
        "**ratio** is their time over ours in the same turns: above 1, calibrary is faster; the line of calibrary "
        "shows its smallest time in any comparison. A package that fails, or would "
        f"take more than {about.get('limit', 20):g} s, is not run with more rows.",
        "",
        f"Packages: {versions}. {' '.join(notes)}",
    ]
    again: dict[tuple[str, str], list[str]] = {}
    for task, later in about.get("again", {}).items():
        again.setdefault((later["command"], later["date"]), []).append(f"`{task}`")
    for (command, date), tasks in again.items():
        lines += ["", f"Measured again, in the same way, by `{command}` on {date}: {', '.join(sorted(tasks))}."]
    for name, reason in about["missing"].items():
        lines += ["", f"Left out: {name}, which did not install ({reason})."]
    return lines


def _title(row: dict[str, Any]) -> str:
    """What a row measured, in words."""
    return TASK[row["task"]].title


def _attention(rows: list[dict[str, Any]]) -> list[str]:
    slower = [r for r in rows if (ratio(r) or 1.0) < 1.0]
    strange = [r for r in rows if not explained(r)]
    timed = [r for r in rows if ratio(r) is not None]
    lines = [
        "## In short",
        "",
        f"{len(timed)} timed comparisons; calibrary is faster in {len(timed) - len(slower)}, the other package in "
        f"{len(slower)}. {len(rows) - len(strange)} of {len(rows)} values agree or differ for a reason given below.",
    ]
    known = {r["task"] for r in timed}
    waiting = sorted({r["task"] for r in rows if r["n"] is not None} - known)
    if waiting:
        lines += ["", f"Values only, not timed in this run (`peers.py --resume` times them): {', '.join(waiting)}."]
    if slower:
        body = [(_title(r), r["package"], size(r), seconds(r["ours"]["seconds"]), seconds(r["theirs"]["seconds"]),
                 f"{ratio(r):.2f}") for r in sorted(slower, key=lambda r: ratio(r) or 1.0)]  # fmt: skip
        lines += ["", "Where another package is faster:", ""]
        lines += table(("call", "package", "rows", "calibrary", "theirs", "ratio"), body)
    if strange:
        body = [(_title(r), r["package"], size(r), number(r["ours"]["value"]), number(r["theirs"]["value"]),
                 number(r["same"])) for r in strange]  # fmt: skip
        lines += ["", "Values without an explanation:", ""]
        lines += table(("call", "package", "rows", "calibrary", "theirs", "reproduced as"), body)
    return lines + _by_labels(rows)


def _by_labels(rows: list[dict[str, Any]]) -> list[str]:
    """Our time beside that of the quickest other package, for each type of labels."""
    body = []
    for task in (t for t in TASKS if len(t.labels) > 1):
        for labels in task.labels:
            timed = [r for r in rows if r["task"] == task.id and r.get("labels") == labels and ratio(r) is not None]
            best = [min((r for r in timed if r["n"] == n), key=lambda r: ratio(r) or 0.0) for n in _sizes(timed)]
            body += [(task.title, labels, count(r["n"]), seconds(r["ours"]["seconds"]), r["package"],
                      seconds(r["theirs"]["seconds"]), f"{ratio(r):.2f}") for r in best]  # fmt: skip
    if not body:
        return []
    head = ("call", "labels", "rows", "calibrary", "quickest other", "its time", "ratio")
    return ["", "### By type of labels", "", "Beside the quickest of the others.", "", *table(head, body)]


def _sizes(rows: list[dict[str, Any]]) -> list[int]:
    return sorted({r["n"] for r in rows})


def _section(task: Task, rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    lines = [f"### {task.title}", "", f"calibrary: `{task.ours}` on {task.data}.", ""]
    body: list[tuple[str, ...]] = []
    for key in dict.fromkeys((r.get("labels", USUAL), r["n"]) for r in rows):
        here = [r for r in rows if (r.get("labels", USUAL), r["n"]) == key]
        body.append(ours_cells(here))
        body += [cells(r) for r in here if r["package"]]
    lines += [*table(HEAD, body), ""]
    for peer in task.peers:
        mine = [r for r in rows if r["package"] == peer.package]
        if mine:
            lines.append(f"- {peer.package}: `{peer.call}`{_because(peer, mine)}")
    return [*lines, ""]


def _because(peer: Peer, rows: list[dict[str, Any]]) -> str:
    if all(agrees(r) for r in rows):
        return ""
    text = f". {peer.why[0].upper()}{peer.why[1:]}." if peer.why else ""
    known = [r for r in rows if reproduced(r) is not None]
    if known:
        worst = max(abs(r["same"] - r["theirs"]["value"]) for r in known)
        text += f" Reproduced by `{peer.same}` to {worst:.1g}."
    return text
