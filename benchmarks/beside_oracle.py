"""What ``deciding.py`` stored, as tables: coverage, width and power beside an oracle; before and after."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from scipy.special import ndtr

STORE = Path(__file__).with_name("deciding.json")
Z = 1.959964
NUMBERS = {
    "ece": "ECE", "smece": "smooth ECE", "ecce_mad": "KS (`ecce_mad`)", "bs": "Brier score", "cis.slope": "Cox's slope"
}  # fmt: skip


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {}
    return found


def spread(row: dict[str, Any], name: str) -> float:
    """The standard deviation of the estimate minus the truth over the samples."""
    n, mean = row["samples"], row[f"{name}away"] / row["samples"]
    return math.sqrt(max(row[f"{name}away squared"] / n - mean**2, 0.0))


def oracle_rows(kept: dict[str, Any]) -> list[list[Any]]:
    """World, rows, samples, number, coverage, width over the oracle's, and the shares that both reject."""
    found = []
    for key, row in kept.items():
        mode, *where = key.split(" | ")
        n = row["samples"]
        if mode == "power" and n:
            oracle = row["oracle rejects"] / n if "oracle rejects" in row else math.nan
            for id, name in NUMBERS.items():
                width = row[f"{id} width"] / n / (2.0 * Z * spread(row, f"{id} "))
                rejects = row[f"{id} rejects"] / n if f"{id} rejects" in row else math.nan
                found.append([*where, n, name, row[f"{id} covers"] / n, width, rejects, oracle])
            found.append([*where, n, "overall test", math.nan, math.nan, row["overall rejects"] / n, oracle])
        if mode == "parts" and n and row["away squared"] and where[3] == "rows":
            metric, world, rows, _ = where
            sd, gap = spread(row, ""), (row["true a"] - row["true b"]) / n
            power = float(ndtr(abs(gap) / sd - Z) + ndtr(-abs(gap) / sd - Z))
            width = row["auto width"] / n / (2.0 * Z * sd)
            name = f"comparison by {metric}"
            found.append([world, rows, n, name, row["auto covers"] / n, width, row["rejects"] / n, power])
    return found


def shown(x: float, digits: int = 2) -> str:
    return "" if math.isnan(x) else f"{x:.{digits}f}"


def long_table(kept: dict[str, Any]) -> str:
    """Every cell."""
    lines = ["| setting | rows | samples | number | coverage | width / oracle's | rejects | oracle rejects |",
             "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for world, rows, n, name, covers, width, rejects, oracle in oracle_rows(kept):
        numbers = [shown(covers, 3), shown(width), shown(rejects, 3), shown(oracle, 3)]
        lines.append(f"| {world} | {int(rows):,} | {n:,} | {name} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def short_rows(kept: dict[str, Any]) -> list[str]:
    """One row for each number: the lowest and highest coverage, the middle relative width, and the relative power."""
    by_name: dict[str, list[list[Any]]] = {}
    for row in oracle_rows(kept):
        by_name.setdefault(row[3], []).append(row)
    found = []
    for name, rows in by_name.items():
        covers = [row[4] for row in rows if not math.isnan(row[4])]
        widths = sorted(row[5] for row in rows if not math.isnan(row[5]))
        powers = [(row[6], row[7]) for row in rows if row[6] >= 0.0 and row[7] >= 0.1]
        power = sum(p for p, _ in powers) / sum(best for _, best in powers) if powers else math.nan
        between = f"{min(covers):.3f} to {max(covers):.3f}" if covers else ""
        middle = shown(widths[len(widths) // 2]) if widths else ""
        found.append(f"| {name} | {len(rows)} | {between} | {middle} | {shown(power)} |")
    return found


def ways_table(
    kept: dict[str, Any], ways: tuple[str, ...] = ("basic", "percentile", "normal", "triangle", "curve")
) -> str:
    """Coverage of other methods in the same cells, beside that of the default before and after the change."""
    lines = ["| metric | setting | rows | before | after (samples) | width | " + " | ".join(ways) + " |",
             "| --- | --- | ---: | ---: | ---: | ---: |" + " ---: |" * len(ways)]  # fmt: skip
    for key, row in kept.items():
        mode, *where = key.split(" | ")
        now = kept.get(key.replace("ways", "final", 1), {"samples": 0})
        if mode != "ways" or not row["samples"]:
            continue
        n, m = row["samples"], now["samples"]
        after = f"{now['auto covers'] / m:.3f} ({m:,})" if m else ""
        wide = f"{row['auto width'] / n:.4f}" + (f" → {now['auto width'] / m:.4f}" if m else "")
        other = [shown(row.get(f"{way} covers", math.nan) / n, 3) for way in ways]
        metric, world, rows = where
        lines.append(
            f"| `{metric}` | {world} | {int(rows):,} | {row['auto covers'] / n:.3f} ({n:,}) | {after} | {wide} | "
            f"{' | '.join(other)} |"
        )
    return "\n".join(lines)


def wider_table(kept: dict[str, Any]) -> str:
    """The cells whose interval is more than 5% wider than before, with both coverages."""
    lines = ["| metric | setting | rows | coverage before (samples) | now (samples) | width |",
             "| --- | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for key, row in kept.items():
        mode, *where = key.split(" | ")
        now = kept.get(key.replace("ways", "final", 1), {"samples": 0})
        n, m = row["samples"], now["samples"]
        if mode != "ways" or not n or not m or now["auto width"] / m <= 1.05 * row["auto width"] / n:
            continue
        metric, world, rows = where
        more = now["auto width"] / m / (row["auto width"] / n) - 1.0
        lines.append(
            f"| `{metric}` | {world} | {int(rows):,} | {row['auto covers'] / n:.3f} ({n:,}) | "
            f"{now['auto covers'] / m:.3f} ({m:,}) | {more:+.1%} |"
        )
    return "\n".join(lines)
