"""Numbers of benchmarks that the documents quote are those that are stored.

Every pattern must be found in its document, and each of its groups must be the text made from the stored results. The
tables of the first answer, the app, language models, open problems and coverage have tests of their own.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from paths import ROOT


def stored(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))


def said(document: str) -> str:
    """The document with every run of white space as one space."""
    return " ".join((ROOT / document).read_text(encoding="utf-8").split())


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}"


# -- README --------------------------------------------------------------------------------------------


def compared() -> list[str]:
    from results import ratio

    found = stored("results")
    ratios = [value for value in map(ratio, found["rows"]) if value is not None]
    return [str(sum(value > 1 for value in ratios)), str(len(ratios)), spelled(sum(value <= 1 for value in ratios))]


def spelled(number: int) -> str:
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return words[number] if number < len(words) else str(number)


# -- docs ----------------------------------------------------------------------------------------------


def scanned() -> list[str]:
    found = stored("scale")["200000000"]
    read, scan = found["read"], found["scan"]
    return [
        f"{read['cpu']:.1f}", f"{read['cpu'] * 5:.0f}", f"{scan['cpu']:.1f}", f"{scan['cpu'] * 5:.0f}",
        f"{scan['cpu'] / read['cpu']:.1f}", f"{scan['wall'] / read['wall']:.1f}", f"{scan['peak_gb']:.1f}",
        f"{scan['saved_mb']:.2f}", str(found["evaluate"]["metrics"]), f"{found['evaluate']['cpu']:.1f}",
        str(len(found["inference"]["inference"])), f"{found['inference']['cpu']:.0f}",
    ]  # fmt: skip


def summed() -> list[str]:
    errors = {id: row["error"] for id, row in stored("scale")["200000000"]["sums"]["sums"].items()}
    assert max(errors[id] for id in ("ece", "mce", "mae", "hinge")) < 1e-14
    return [f"{max(errors[id] for id in ('bs', 'nll', 'fl')):.1e}".replace("e-0", "e-")]


def compared_with_rows() -> list[str]:
    errors = stored("scale")["10000000"]["exact"]["errors"].values()
    assert max(row["error"] for row in errors if row["kind"] == "exact" and row["bound"] == 0.0) < 1e-14
    return [
        str(len(errors)),
        f"{max(row['relative'] for row in errors if row['kind'] == 'smooth'):.0e}".replace("e-0", "e-"),
    ]


def merged_states() -> list[str]:
    found = stored("keyed")["merged"]
    return [f"{found[n]:.2f}" for n in ("2000", "4000")]


def keyed_rows() -> list[str]:
    rows = []
    for n, of in (("10^6", "1000000"), ("2*10^7", "20000000")):
        for keys, cell in stored("keyed")[of].items():
            rows.append(
                f"| {n} | {int(keys):,} | {cell['read_ns']:.0f} ns | {cell['scan_ns']:.0f} ns | {cell['ratio']:.2f} "
                f"| {cell['read_gb']:.2f} GB | {cell['scan_gb']:.2f} GB |"
            )
    return rows


def killed() -> list[str]:
    found = stored("store_kills")
    assert found["failures"] == 0
    return [str(found["kills at random times"]), str(found["ends at a step"])]


def watched() -> list[str]:
    found = stored("store_watch")
    assert found["stores with a false alarm"] == found["other segments with an alarm"] == 0
    assert found["change found"] == found["its day right to within a day"] == found["changed stores"]
    return [str(found["calibrated stores"]), f"{found['segment-days']:,}", str(found["changed stores"])]


def every_look() -> list[str]:
    kinds = stored("watched")["kinds"]
    left = {name: kind["ever leaves the truth"] for name, kind in kinds.items()}
    assert left["dependent days, units=day"]["O/E, bias, offset"] <= 0.05 < left["dependent days, units=row"]["slope"]
    own = [
        v for name in left if "units" not in name for k, v in left[name].items() if "once" not in k and "pub" not in k
    ]
    wide = kinds["dependent days, units=day"]["width beside once at the planned rows"]["O/E, bias, offset"]
    return [
        percent(left["calibrated"]["O/E, bias, offset, once"]),
        percent(left["dependent days, units=row"]["O/E, bias, offset"]),
        f"{wide:.0f}",
        percent(max(own)),
        str(kinds["offset"]["half are found on day"]["O/E"]),
    ]


def headline() -> list[str]:
    found = stored("headline")
    summary, level = found["summary"], [name for name in found["cells"] if name.startswith("level/")]
    calibrated, power = summary["false on calibrated samples, all laws"], summary["power, 1000 rows"]
    return [
        f"{calibrated['samples']:,}", str(len(level)), percent(calibrated["headline"]),
        percent(summary["largest share in one cell"]["headline"][0]), str(power["worlds"]),
        percent(power["decision"], 0), percent(power["best single test"], 0),
    ]  # fmt: skip


def map_rows() -> list[str]:
    found = stored("recalibration")["several"].items()
    return [f"| `{word}` | {row['helped']} | {row['harmed']} | {row['median_gain']:+.3f} |" for word, row in found]


def oracle_rows() -> list[str]:
    from beside_oracle import short_rows

    return short_rows(stored("deciding"))


def sizes() -> list[str]:
    """Rows that the library gives for an error of the ECE, by simulation with seed 0."""
    import calibrary as cal

    asked = [(0.1, "over-confident"), (0.1, "shift"), (0.1, "wave"), (0.02, "over-confident")]
    return [f"{int(cal.sample_size('ece', error, line=line, n_resamples=99, rng=0)):,}" for error, line in asked]


def inverted_sizes() -> list[str]:
    from calibrary.inference.methods import inversion

    return [f"{min(inversion._COARSE)}", f"{max(inversion._COARSE):.0f}"]


def validated_rows() -> list[str]:
    found = stored("validate")["coverage"]
    sizes = [(300, 5), (300, 20), (1000, 5), (1000, 20)]
    cells = {(row["n"], row["predictors"], row["method"], row["measure"]): row["coverage"] for row in found}
    names = {"O/E": "observed over expected"}
    rows = []
    for measure in ("Brier score", "log loss", "AUROC", "calibration slope", "calibration intercept", "O/E"):
        shares = [f"{cells[n, k, 'of errors', measure]:.3f}" for n, k in sizes]
        rows.append("| " + " | ".join([names.get(measure, measure), *shares]) + " |")
    return rows


QUOTES: list[tuple[str, str, Callable[[], list[str]]]] = [
    ("README.md", r"faster in (\d+) of (\d+) timed comparisons; the (\w+) where it is slower head the table", compared),
    (
        "docs/evidence/scale.md",
        r"two columns \| ([\d.]+) s CPU, (\d+) ns a row \| \| `scan`.*?\| ([\d.]+) s CPU, (\d+) ns a row: ([\d.]+) "
        r"times the CPU time of reading, ([\d.]+) times its wall time; peak ([\d.]+) GB \| \| "
        r"the state on disk \| ([\d.]+) MB \| \| "
        r"`evaluate\(state\)`, (\d+) metrics, values \| ([\d.]+) s CPU \| \| (\w+) metrics .*?\| (\d+) s CPU \|",
        lambda: [spelled(int(text)) if place == 10 else text for place, text in enumerate(scanned())],
    ),
    (
        "docs/evidence/scale.md",
        r"On those 10\^7 rows (\d+) metrics of the state .*? exact metrics agreed to rounding, smooth ones within "
        r"([\de-]+) of their value",
        compared_with_rows,
    ),
    (
        "docs/scale.md",
        r"2\*10\^8 rows took ([\d.]+) s of CPU, ([\d.]+) times as much as reading alone, and ([\d.]+) GB",
        lambda: [scanned()[k] for k in (2, 4, 6)],
    ),
    ("docs/evidence/scale.md", r"2,000 and 4,000 states .*? takes ([\d.]+) and ([\d.]+) s\.", merged_states),
    ("docs/evidence/scale.md", r"Brier, NLL and focal loss within ([\d.e-]+)\.", summed),
    ("docs/evidence/store.md", r"has (\d+) kills at random times and (\d+) stops at a step", killed),
    ("docs/evidence/store.md", r"In (\d+) simulated stores .*?\(([\d,]+) segment-days\) .*? In (\d+) others", watched),
    (
        "docs/watched.md",
        r"wrong in ([\d.]+)% .*? missed the true value in ([\d.]+)% .*? were (\d+) times .*? at most ([\d.]+)%"
        r".*? by day (\d+) at",
        every_look,
    ),
    (
        "docs/uncertainty.md",
        r"headline rejects ([\d.]+)% at a level of 5%, and it detects (\d+)% of simulated errors",
        lambda: [headline()[2], headline()[5]],
    ),
    (
        "docs/evidence/uncertainty.md",
        r"on ([\d,]+) calibrated samples of (\d+) types .*?rejects ([\d.]+)%, and ([\d.]+)% for the worst type; of "
        r"(\d+) miscalibrated populations of 1,000 rows it detects (\d+)%, where .*? would detect (\d+)%",
        headline,
    ),
    (
        "docs/evidence/uncertainty.md",
        r"gives (\d+) rows for over-confidence, (\d+) for a shift and (\d+) for a wave; .*? it gives ([\d,]+) rows",
        sizes,
    ),
    ("docs/evidence/uncertainty.md", r"multiples of the observed gaps, from ([\d.]+) to (\d+)\.", inverted_sizes),
]  # fmt: skip


@pytest.fixture(autouse=True)
def benchmarks_in_the_path(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])


@pytest.mark.parametrize(("document", "pattern", "expected"), QUOTES, ids=[f"{q[0]}:{q[1][:30]}" for q in QUOTES])
def test_a_quoted_number_is_the_stored_one(document, pattern, expected):
    quoted = re.search(pattern, said(document))
    assert quoted, f"{document} has no {pattern}"
    assert list(quoted.groups()) == expected()


@pytest.mark.parametrize(
    ("document", "rows"),
    [
        ("docs/evidence/scale.md", keyed_rows),
        ("docs/evidence/validation.md", validated_rows),
        ("docs/maps.md", map_rows),
        ("docs/uncertainty.md", oracle_rows),
    ],
)
def test_the_rows_of_a_table_are_the_stored_ones(document, rows):
    page = (ROOT / document).read_text(encoding="utf-8")
    expected = rows()
    assert expected
    assert [row for row in expected if row not in page] == []


def test_the_page_of_results_is_made_of_the_stored_ones():
    from results import markdown

    assert markdown(stored("results")) == (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
