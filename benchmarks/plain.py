"""Every metric with and without the compiler: the same numbers, and how long they take.

``python benchmarks/plain.py`` computes the whole catalogue twice, each time in a process of its own: once without
numba, and once with every loop compiled. It writes ``plain.json`` with the largest relative difference of each metric,
and prints the table of docs/policy.md, which metrics differ most, and which take longest without numba.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: Metrics that take gigabytes or minutes with and without numba, and the most rows and classes they are computed for:
#: the first fits a coefficient for each pair of classes, the second solves a linear program.
MOST = {"eci": (math.inf, 20), "lower_distance": (2_000, math.inf)}


def samples(rows: int, classes: int):
    """Name, labels, probabilities, weights: plain, weighted and tied predictions of each kind."""
    import numpy as np

    rng = np.random.default_rng(rows + classes)
    c = rng.beta(0.8, 0.8, rows)
    y = (rng.random(rows) < c**1.3).astype(np.int64)
    w = rng.integers(1, 4, rows).astype(float)
    yield "binary", y, c, None
    yield "binary, weights", y, c, w
    yield "binary, ties", y, np.round(c, 2), None
    for k in (4, classes):
        some = rows if k == 4 else rows // 4
        z = rng.normal(size=(some, k)) * 1.5
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        label = np.array([rng.choice(k, p=row) for row in p**1.2 / (p**1.2).sum(axis=1, keepdims=True)])
        yield f"{k} classes", label, p, None
        if k == 4:
            yield "4 classes, weights", label, p, w
            tied = np.round(p * 20) / 20
            tied[tied.sum(axis=1) == 0.0] = 0.25
            yield "4 classes, ties", label, tied / tied.sum(axis=1, keepdims=True), None


def computed(rows: int, classes: int, only: str) -> dict[str, list[float]]:
    import calibrary as cal

    found: dict[str, list[float]] = {}
    for name, y, p, w in samples(rows, classes):
        for info in cal.catalogue.values():
            if only and info.id not in only.split(","):
                continue
            most_rows, most_classes = MOST.get(info.id, (math.inf, math.inf))
            if len(p) > most_rows or p[0].size > most_classes:
                continue
            started = time.process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    value = float(cal.compute(info.id, y, p, sample_weight=w))
            except (ValueError, TypeError) as error:  # needs other data, or refuses weights or classes
                value = str(error)[:60]
            except Exception as error:
                value = f"FAILED {type(error).__name__}: {error}"[:200]
            found[f"{info.id}, {name}"] = [value, time.process_time() - started]
            print(f"{rows} {info.id}, {name}: {value} {found[f'{info.id}, {name}'][1]:.2f} s", file=sys.stderr)
    return found


def shown(result: dict[str, Any]) -> str:
    """The table of docs/policy.md: how many metrics agree how closely, and which of them differ at all."""
    apart = result["largest relative difference"]
    kinds: dict[str, list[str]] = {"none": [], "at most 1e-15": [], "more": []}
    for id, difference in sorted(apart.items(), key=lambda item: (item[1], item[0])):
        kinds["none" if difference == 0.0 else "at most 1e-15" if difference <= 1e-15 else "more"].append(id)
    rows = [["largest relative difference", "metrics", ""], ["---", "---:", "---"]]
    for kind, ids in kinds.items():
        named = "" if kind == "none" else ", ".join(f"`{id}`" for id in ids)
        rows.append([f"at most {max(apart.values()):.0e}" if kind == "more" else kind, str(len(ids)), named])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 2000, 20_000])
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--only", default="", help="names of metrics, separated by commas")
    parser.add_argument("--child", choices=("plain", "compiled"))
    parser.add_argument("--out", type=Path, default=HERE / "plain.json")
    asked = parser.parse_args()
    if asked.child:
        if asked.child == "plain":
            sys.modules["numba"] = None  # type: ignore[assignment]
        else:
            import calibrary.numerics.compiled as compiled

            compiled.FORCED = True
        found = {f"{n} rows": computed(n, asked.classes, asked.only) for n in asked.rows}
        asked.out.write_text(json.dumps(found))
        return
    results = {}
    for child in ("plain", "compiled"):
        out = asked.out.with_suffix(f".{child}.json")
        again = ["--child", child, "--out", out, "--only", asked.only, "--classes", asked.classes]
        again += ["--rows", *asked.rows]
        subprocess.run([sys.executable, __file__, *map(str, again)], check=True)
        results[child] = json.loads(out.read_text())
        out.unlink()
    table = {}
    for rows, values in results["plain"].items():
        for key, (plain, seconds) in values.items():
            compiled_value, compiled_seconds = results["compiled"][rows][key]
            numbers = isinstance(plain, float) and isinstance(compiled_value, float)
            same = plain == compiled_value or (numbers and math.isnan(plain) and math.isnan(compiled_value))
            apart = (
                0.0 if same else abs(plain - compiled_value) / max(abs(compiled_value), 1e-300) if numbers else math.inf
            )
            table[f"{key}, {rows}"] = {"plain": plain, "apart": apart, "seconds": round(seconds, 3),
                                       "compiled_seconds": round(compiled_seconds, 3)}  # fmt: skip
    by_metric: dict[str, float] = {}
    for key, row in table.items():
        if isinstance(row["plain"], float):
            id = key.split(",")[0]
            by_metric[id] = max(by_metric.get(id, 0.0), row["apart"])
    numbers = sum(isinstance(row["plain"], float) for row in table.values())
    result = {
        "rows": asked.rows,
        "classes": asked.classes,
        "numbers": numbers,
        "largest relative difference": by_metric,
    }
    asked.out.write_text(json.dumps(result, indent=1) + "\n")
    print(shown(result))
    worst = sorted(table.items(), key=lambda item: -item[1]["apart"])[:20]
    for key, row in worst:
        print(f"{row['apart']:.1e}  {key}  {row['plain']}")
    slow = sorted(table.items(), key=lambda item: -item[1]["seconds"])[:15]
    for key, row in slow:
        print(f"{row['seconds']:8.2f} s ({row['compiled_seconds']:.2f})  {key}")


if __name__ == "__main__":
    main()
