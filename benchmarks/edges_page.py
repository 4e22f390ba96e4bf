"""What ``edges.py``, ``edges_inversion.py``, ``headline.py`` and ``coverage.py`` stored about extreme cases, as a page.

``python benchmarks/edges_page.py`` writes ``benchmarks/EDGES.md``: fifteen answers of version 0.2.0 that were wrong,
with the share that was measured then and the one that is stored now, and every stored cell. It simulates nothing.
"""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
PAGE = FOLDER / "EDGES.md"
Cell = tuple[str, int, int]  # name, count, samples


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


def of_edges(kept: dict[str, Any], pattern: str, key: str) -> list[Cell]:
    """The cells of ``edges.json`` whose names and keys match."""
    return [(f"{name}, {k}", row["count"], row["n"]) for name, cell in kept.items() if fnmatch(name, pattern)
            for k, row in cell.items() if fnmatch(k, key) and isinstance(row, dict)]  # fmt: skip


def of_inversion(kept: dict[str, Any], pattern: str, source: str = "now") -> list[Cell]:
    """The cells of ``edges_inversion.json`` whose names match: how many intervals contain the true value."""
    return [(key.removeprefix(f"{source} | "), round(row["done"] - row["below"] - row["above"]), row["done"])
            for key, row in kept.items() if fnmatch(key, f"{source} | {pattern}") and row.get("done")]  # fmt: skip


def error(k: int, n: int) -> float:
    """The Monte Carlo standard error of a share; that of half a sample if none or all samples count."""
    share = min(max(k / n, 0.5 / n), 1.0 - 0.5 / n)
    return float(np.sqrt(share * (1.0 - share) / n))


def told(cells: list[Cell]) -> str:
    """The share of one cell, or the smallest and the largest of several, with Monte Carlo errors."""
    if not cells:
        return "not measured"
    ranked = sorted(cells, key=lambda cell: cell[1] / cell[2])
    ends = [f"{k / n:.3f} ± {error(k, n):.3f}" for _, k, n in (ranked[0], ranked[-1])]
    if len(cells) == 1:
        return f"{ends[0]} ({cells[0][2]:,} samples)"
    fewest, most = min(n for *_, n in cells), max(n for *_, n in cells)
    samples = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    return f"{ends[0]} to {ends[1]} ({len(cells)} settings of {samples} samples)"


def answers() -> list[tuple[str, str, str, str]]:
    """(what, setting, 0.2.0, now) for the fifteen answers."""
    edges, inverted = stored("edges.json"), stored("edges_inversion.json")
    cost = {key.split(" | ")[2]: row for key, row in inverted.items() if key.startswith("cost | now")}

    def seconds(name: str) -> str:
        row = cost.get(name)
        return "not measured" if row is None else ", ".join(f"{row[n]:.2f}" for n in ("1000", "10000", "100000"))

    return [
        ("S1, level of `test(units=)`", "75 units of 20 rows, correlation 0.26, confidences near 0.985, ECE",
         "0.142 ± 0.020", told(of_edges(edges, "units 75 icc 0.26 high many", "level ece"))),
        ("", "the same, Spiegelhalter's z", "0.169",
         told(of_edges(edges, "units 75 icc 0.26 high many", "level spiegelhalter"))),
        ("", "the same near 0.04, ECE", "0.081 ± 0.013",
         told(of_edges(edges, "units 75 icc 0.26 low many", "level ece"))),
        ("", "one probability for each of 50 units of 10 equal outcomes, ECE", "0.117",
         told(of_edges(edges, "units 50x10 icc 1 * one", "level ece"))),
        ("S2, coverage of the ECE", "250 rows, 0.3% events, truth 2.2 c", "0.841 ± 0.030",
         told(of_inversion(inverted, "rare, truth 2.2 c | ece | auto | 250"))),
        ("S3, coverage of the ECE", "c + 0.12 sin(15 pi c), 1,500 rows", "0.883 ± 0.029",
         told(of_inversion(inverted, "wave .12 sin* | ece | auto | 1500"))),
        ("S4, coverage of the class-wise ECE", "one class confused with the next, 250 rows", "0.860 ± 0.053",
         told(of_inversion(inverted, "classes, .* | ece | class-wise | 250"))),
        ("S5, coverage of `compare(units=)`", "an over-confident and a calibrated model, 400 rows, ECE",
         "0.581 ± 0.040 and 0.678 ± 0.035", told(of_edges(edges, "compare ece * icc 0", "cover*"))),
        ("S6, coverage of the Brier score", "20 units", "0.851 ± 0.033",
         told(of_edges(edges, "units 20 *", "cover* bs"))),
        ("S7, coverage of the Brier score", "rare outcomes, 1,500 rows", "0.907",
         told(of_edges(edges, "scores rare 1500 calibrated", "cover bs"))),
        ("", "masses at 0 and 1, 60 rows", "0.910", told(of_edges(edges, "scores atoms 60 *", "cover bs"))),
        ("S7, coverage of O/E", "all laws and sizes", "0.885 to 0.911", told(of_edges(edges, "scores *", "cover oe"))),
        ("S8, rows that would decide", "share of samples of so many rows that decide; 0.8 is stated",
         "0.43 ± 0.09", told(of_edges(edges, "planned *", "power*"))),
        ("S9, `test(\"cis\").pvalue` is one number", "Beta(0.5, 3), 120 rows", "8 of 60",
         told(of_edges(edges, "cis 120", "always*"))),
        ("S10, certain and wrong", "share of samples in which the headline rejects; truth 0.05 at 0 and 0.90 at 1",
         "\"No evidence\" for 13 of 198", told(of_edges(edges, "certain *", "always*"))),
        ("S11, words", "", "\"predicted\" for an expected share", "changed; tests of sentences"),
        ("S12, stated rates with units", "50 units of 10 equal outcomes", "stated without their setting",
         "docs/uncertainty.md states setting and counts"),
        ("S13, CPU seconds at 10^3, 10^4, 10^5 rows", "`interval(\"ece\")`", "0.41, 1.73, 1.02",
         seconds("interval ece")),
        ("", "`interval(\"ks\")`", "0.54, 4.15, 1.17", seconds("interval ecce_mad")),
        ("", "`evaluate`, values", "1.75, 7.65, 2.23", seconds("evaluate, values")),
        ("S14, coverage of the ECE", "waves that alternate from bin to bin, 250 to 5,000 rows",
         "0.33 and 0.85; a point in place of an interval",
         told(of_inversion(inverted, "wave from bin to bin* | ece | auto | *"))),
        ("S15, level of the headline with units", "75 units, confidences near 0.985", "0.104 ± 0.019",
         told(of_edges(edges, "headline 75 * high", "level*"))),
    ]  # fmt: skip


def verdicts(cells: list[Cell], judged: Any) -> list[str]:
    lines = ["| setting | samples | share | Monte Carlo error | |", "| --- | ---: | ---: | ---: | --- |"]
    return lines + [f"| {name} | {n:,} | {k / n:.3f} | {error(k, n):.3f} | {judged(name, k, n)} |"
                    for name, k, n in cells]  # fmt: skip


def page() -> str:
    import edges as study
    import edges_inversion as inversion

    edges, inverted = stored("edges.json"), stored("edges_inversion.json")
    families = {key: row for key, row in stored("coverage.json").items() if key.startswith("family")}
    effective = {f"{name}, {key}": row["effective"] for name, cell in edges.items() for key, row in cell.items()
                 if isinstance(row, dict)}  # fmt: skip

    def judged(name: str, k: int, n: int) -> str:
        key = name.partition(", ")[2] if name in effective else "cover"
        return {"ok": "", "doubtful": "doubtful", "fails": "FAILS"}[
            study.judged(key, k, n, effective.get(name, 0.0))
        ]  # fmt: skip

    every = of_edges(edges, "*", "*")
    parts = {
        "Units: level and coverage": [c for c in every if c[0].startswith("units")],
        "Units: level of the mean residual, level of the headline, coverage of a comparison":
            [c for c in every if c[0].startswith(("law", "headline", "compare"))],
        "Scores without units, 60 to 20,000 rows": [c for c in every if c[0].startswith("scores")],
        "Rows in time order, frequency weights, certain predictions, planned sizes":
            [c for c in every if c[0].startswith(("blocks", "weights", "certain", "cis", "planned"))],
        "Intervals by inversion: waves, rare outcomes, masses at 0 and 1, confused classes, other metrics":
            of_inversion(inverted, "*"),
    }  # fmt: skip
    wanted = [name for name in study.cells() if name not in edges]
    wanted += [
        f"{world}, {metric}{'' if lens == 'auto' else ' ' + lens}, {n:,} rows"
        for world, metric, lens, n in inversion.cells()
        if not inverted.get(f"now | {world} | {metric} | {lens} | {n}", {}).get("done")
    ]
    lines = [
        "# Answers in extreme cases",
        "Dependent rows, rare outcomes, waves, certain predictions. `python benchmarks/edges_page.py` makes this page "
        "from `edges.json`, `edges_inversion.json`, `headline.json` and `coverage.json`. A share stands with its "
        "Monte Carlo standard error.",
        "The requirements: a test at 5% rejects at most 6.5% of calibrated samples (and at least 3.5% if 30 or more "
        "units are effective), and a 95% interval contains the true value in at least 93% of samples. A setting fails "
        "if its 99% binomial interval excludes the requirement; if only the share itself misses it, the setting is "
        "doubtful and needs more samples.",
        "In the names of settings, `half`, `low` and `high` are confidences near 0.5, 0.04 and 0.985; `icc` is the "
        "correlation of the outcomes of a unit; `many` and `one` are the number of probabilities in a unit; `level` is "
        "the share of calibrated samples that a test at 5% rejects, `cover` the share of intervals that contain the "
        "true value, and `bent` an over-confident model. Some settings have only 20 to 60 samples: they can show a "
        "gross fault, but not that a requirement is met.",
        "## Fifteen wrong answers of version 0.2.0, before and now",
        "\n".join(["| what | setting | 0.2.0 | now |", "| --- | --- | --- | --- |",
                   *("| " + " | ".join(row) + " |" for row in answers())]),
        "## CPU seconds",
        "\n".join(["| call | version | 10^3 rows | 10^4 rows | 10^5 rows |", "| --- | --- | ---: | ---: | ---: |",
                   *(f"| {key.split(' | ')[2]} | {'0.2.0' if 'before' in key else 'now'} | "
                     + " | ".join(f"{row[n]:.2f}" for n in ("1000", "10000", "100000")) + " |"
                     for key, row in inverted.items() if key.startswith("cost"))]),
        "## Many metrics at once, calibrated samples",
        "\n".join(["| data | metrics | samples | share in which any metric is rejected |",
                   "| --- | ---: | ---: | ---: |",
                   *(f"| {key.split(' | ')[1]}, {key.split(' | ')[2]} rows | {row['metrics']} | {row['done']:,} | "
                     f"{row['rejected'] / row['done']:.3f} ± {error(int(row['rejected']), row['done']):.3f} |"
                     for key, row in families.items() if row["done"])]),
    ]  # fmt: skip
    for title, cells in parts.items():
        lines += [f"## {title}", "\n".join(verdicts(cells, judged))]
    lines += [
        "## Not measured",
        "\n".join(f"- {name}" for name in wanted) or "Every listed setting has samples.",
    ]
    return "\n\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
