"""Write docs/study.md, docs/evidence/study.md and their figures from the stored study.

    python scripts/make_study_page.py [--no-figures]

Every number on the page is read from the stored file here, so that the page cannot differ from it; a test compares.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.lookup.study_findings import stored, target_of
from calibrary.study.figures import FIGURES
from calibrary.study.measures import FEWEST_NULLS
from calibrary.study.panel import full_name
from calibrary.study.result import StudyResult, clusters, stored_study

ROOT = Path(__file__).parent.parent
PAGES, PICTURES = (ROOT / "docs" / "study.md", ROOT / "docs" / "evidence" / "study.md"), ROOT / "docs" / "study"
#: The words of the two pages, with names in braces where numbers go, and the line between the pages.
BETWEEN = "<!-- evidence/study.md -->\n"
TEMPLATE = ROOT / "scripts" / "study_page.md"

#: The metrics in the rows of the table, for a reader who has to choose one.
SHOWN = (
    "smece", "ece_sweep", "rice", "ece", "ece, 5 width", "ece, 100 width", "ece_db", "ici", "fott_beta",
    "variational_error", "skce_uq", "ecce_r", "atb", "lkce", "sce", "hl", "spiegelhalter", "ecd", "cis.slope", "eo",
    "emax", "mce", "bs", "nll",
)  # fmt: skip
#: Distributions for which a fast wave does not change the mean; with rare events it also shifts the mean.
WAVY = ("wide", "sharp", "two humps")


class Found:
    """The numbers of the stored study that the page quotes."""

    def __init__(self, study: StudyResult) -> None:
        self.study = study
        self.found = study.found

    def at(self, name: str, n: int, field: str) -> float | None:
        return self.found["sizes"].get(str(n), {}).get(name, {}).get(field)

    def rare(self, name: str, n: int = 1000) -> float | None:
        row = self.found["sizes"].get(str(n), {}).get(name, {})
        return (row.get("power_by_law") or {}).get("rare")

    def wave(self, name: str, n: int = 1000) -> float | None:
        powers = self.study.powers(name, n) if name in self.found["sizes"].get(str(n), {}) else {}
        known = [powers[f"{law}, wave 10"] for law in WAVY if f"{law}, wave 10" in powers]
        return float(np.mean(known)) if known else None

    def limit(self, name: str, field: str) -> float | None:
        return self.found["numbers"].get(name, {}).get("limit", {}).get(field)

    def lie(self, name: str) -> float | None:
        return self.found["numbers"].get(name, {}).get("lie")

    def rows_for(self, name: str) -> float | None:
        return self.found["numbers"].get(name, {}).get("n_for_small")

    def classes(self, name: str, k: int, field: str, n: int = 1000, family: str = "over-confident") -> float | None:
        row = self.found["classes"]["sizes"].get(str(n), {}).get(name, {}).get(f"{k} classes", {})
        return (row.get("power") or {}).get(family) if field == "power" else row.get(field)

    def real(self, name: str, field: str = "halves") -> float | None:
        return self.found.get("real", {}).get(name, {}).get(field)

    def mean(self, names: tuple[str, ...], get: Callable[[str], float | None]) -> float | None:
        known = [value for name in names if (value := get(name)) is not None]
        return float(np.mean(known)) if known else None

    def between(self, a: tuple[str, ...], b: tuple[str, ...]) -> float | None:
        names = self.found["correlation"]["names"]
        pairs = [(x, y) for x in a for y in b if x != y and x in names and y in names]
        rho = self.found["correlation"]["rho"]
        return float(np.mean([rho[names.index(x)][names.index(y)] for x, y in pairs])) if pairs else None


def num(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "–"
    if value != 0.0 and abs(value) < 0.5 * 10.0**-digits:
        return "0"
    return f"{value:.{digits if abs(value) < 1 else 2}f}"


def named(name: str) -> str:
    """A number of the study by its full name and settings, with its id."""
    return f"{full_name(name)} (`{name.partition(', ')[0]}`)"


def share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}%"


def rows(value: float | None) -> str:
    return "–" if value is None else f"{round(value, -1 if value < 1000 else -2):,.0f}"


def main(figures: bool = True) -> None:
    study = stored_study()
    for path, text in zip(PAGES, pages(study), strict=True):
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    if figures:
        PICTURES.mkdir(exist_ok=True)
        for name, draw in FIGURES.items():
            figure = draw(study)
            if figure is not None:
                figure.savefig(PICTURES / f"{name}.png", dpi=110)
                print((PICTURES / f"{name}.png").relative_to(ROOT))


def calibrated(name: str, error: float | None) -> str:
    """The mean for a calibrated model; for a two-sided number the perfect value and the mean distance from it."""
    target = target_of(name)
    return f"{num(target.ideal or 0.0)} ± {num(error)}" if target.two_sided else num(target.own(error))


def table(f: Found) -> str:
    head = (
        "metric", "a calibrated model shows, N = 100 / 1,000 / 10,000", "N for < 0.02", "detects, N = 1,000", "rare",
        "fast wave", "orders: same distribution / across", "rho L1 / distance", "false report",
    )  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name in SHOWN:
        if name not in f.found["numbers"]:
            continue
        size = " / ".join(calibrated(name, f.at(name, n, "null")) for n in (100, 1000, 10_000))
        power, error = f.at(name, 1000, "power"), f.at(name, 1000, "power_se")
        lines.append(
            f"| {named(name)} | {size} | {rows(f.rows_for(name))} | {share(power)} ± {100 * (error or 0.0):.0f} | "
            f"{share(f.rare(name))} | {share(f.wave(name))} | {share(f.at(name, 1000, 'within'))} / "
            f"{share(f.at(name, 1000, 'across'))} | {num(f.limit(name, 'rho_l1'), 2)} / "
            f"{num(f.limit(name, 'rho_distance'), 2)} | {num(f.lie(name), 2)} |"
        )
    return "\n".join(lines)


# -- the claims of the first, smaller study, and whether they held -------------------------------------------


def findings(f: Found) -> list[tuple[str, str, str, Any]]:
    """Claim of the prototype, its numbers, those of the stored study, and whether it held (None: not measured)."""
    across = {name: f.at(name, 1000, "across") for name in f.found["sizes"]["1000"]}
    same = {name: f.at(name, 1000, "within") for name in f.found["sizes"]["1000"]}
    family = ("ece", "smece", "ece_sweep", "rice", "dece", "ici", "fott_beta")
    l1, far = ("ece", "smece", "ici", "ece_sweep", "rice", "dece"), ("sce", "lkce", "mmce", "ecce_r", "ecce_mad")
    poor = ("mce", "cis.intercept", "eo", "sbct", "emax", "nses", "wcr", "cis.slope")
    stay = {"mvms": 0.023, "calbin": 0.017, "ece_lb": 0.015, "sice": 0.012, "tce": 0.033, "emax": 0.019, "mce": 0.039}
    limits = {name: f.limit(name, "null") for name in stay}
    usual = {name: f.limit(name, "null") for name in ("ece", "smece", "ici", "ece_sweep")}
    miss, detect = ("mce", "emax", "sbct", "wcr"), ("ecce_r", "atb", "lkce", "mmce")
    smooth = ("smece", "ici", "fott_beta", "ece_sweep", "sce", "spiegelhalter")
    fine = ("ece, 20 width", "ece, 50 width", "sice", "sece", "ece_knn")
    groups = [group for group in clusters(f.found["correlation"]) if len(group) > 1] if f.found["correlation"] else []
    fold = {n: f.found["binnings"].get(str(n), {}) for n in (300, 1000, 10_000)}
    worst = min((v for name in family if (v := same[name]) is not None), default=None)
    full = [f.classes(name, k, "power") for name in ("spiegelhalter", "ecd") for k in (3, 10, 30, 100)]
    kernel = [f.classes("skce_uq", k, "power") for k in (3, 10, 30, 100)]
    drawn = [int(f.classes("skce_uq", k, "draws") or 0) for k in (3, 10, 30, 100)]
    mdca = [f.classes("mdca", k, "power") for k in (3, 10, 30, 100)]
    halves, bias = f.mean(l1, f.real), f.mean(("gsb", "mdca", "esce"), f.real)
    within, apart = f.between(l1, l1), f.between(l1, far)
    rows_over = {name: dominated(f, name) for name in ("ece, 10 width", "ece", "ece, 50 width", "ece, 100 width")}
    never = {name: dominated(f, name) for name in ("smece", "ece_sweep", "ici", "fott_beta")}
    return [
        (
            "The metrics measure about five different things",
            "five clusters; rank correlation 0.98 within the L1-like, 0.91 between L1-like and distance-like",
            f"{len(groups)} groups of two or more at rank correlation 0.9, of {sum(map(len, groups))} numbers, the "
            f"largest with {len(groups[0]) if groups else 0}; {num(within, 2)} within, {num(apart, 2)} between",
            None if within is None or apart is None else (within > 0.95 > apart, "more than five"),
        ),
        (
            "For ranking, the choice inside the L1 family hardly matters",
            "0.93-0.94 at N = 1,000; 100 bins cost 13 points across distributions",
            f"{share(worst)}-{share(max(v for n in family if (v := same[n]) is not None))} within a distribution; 100 "
            f"bins cost {100 * ((across['ece'] or 0) - (across['ece, 100 width'] or 0)):.0f} points across "
            "distributions",
            worst is not None
            and max(v for n in family if (v := same[n]) is not None) - worst <= 0.03
            and (across["ece"] or 0) - (across["ece, 100 width"] or 0) > 0.05,
        ),
        (
            "Some metrics must not be used to rank models",
            "mce 0.50, joint Cox intercept 0.46, eo 0.58, sbct 0.63, emax 0.64, nses 0.67, wcr 0.67, slope 0.68",
            ", ".join(f"{name} {num(across[name], 2)}" for name in poor),
            all((across[name] or 0.0) < 0.78 < (across["ece"] or 0.0) for name in poor),
        ),
        (
            "Bias dominates below a few hundred rows",
            "10 bins: N < 300; 15: 500; 50: 3,000; 100: 10,000; never for smece, sweep, ici, beta fit",
            "; ".join(f"{name}: {up_to(n)}" for name, n in rows_over.items())
            + "; "
            + "; ".join(f"{name}: {up_to(n)}" for name, n in never.items()),
            biased(rows_over, never),
        ),
        (
            "Some metrics do not approach 0 for a calibrated model",
            ", ".join(f"{name} {num(v)}" for name, v in stay.items()) + " at 300,000 rows",
            ", ".join(f"{name} {num(v)}" for name, v in limits.items())
            + " at 100,000 rows (beside "
            + ", ".join(f"{name} {num(v)}" for name, v in usual.items())
            + ")",
            vanishing(f, tuple(stay)),
        ),
        (
            "The value depends on the binning",
            "12 binnings differ 2.6-, 1.75- and 1.09-fold at N = 300, 1,000, 10,000; order of two models depends on it "
            "in 45%, 36%, 15%",
            "-, ".join(num(by.get("fold"), 2) for by in fold.values())
            + "-fold; order depends on it in "
            + ", ".join(share(by.get("order_depends")) for by in fold.values())
            + "; on calibrated data "
            + "-, ".join(num(by.get("fold_calibrated"), 1) for by in fold.values())
            + "-fold",
            (fold[1000].get("fold") or 0) > 1.4 and (fold[1000].get("order_depends") or 0) > 0.2,
        ),
        (
            "If events are rare, four metrics miss nearly every error",
            "mce, emax, sbct, wcr detect 3-10%; kernel and cumulative ones 82-85%",
            ", ".join(f"{name} {share(f.rare(name))}" for name in miss)
            + "; "
            + ", ".join(f"{name} {share(f.rare(name))}" for name in detect),
            max(f.rare(name) or 0.0 for name in miss) < 0.2 < 0.7 < min(f.rare(name) or 0.0 for name in detect),
        ),
        (
            "Only fine groupings detect fast waves at N = 1,000",
            "smooth ones at most 19%; 20 bins 53%, 50 33%, sice 43%, sece and kNN 40%",
            ", ".join(f"{name} {share(f.wave(name))}" for name in smooth)
            + "; "
            + ", ".join(f"{name} {share(f.wave(name))}" for name in fine),
            max(f.wave(name) or 0.0 for name in smooth) < min(f.wave(name) or 0.0 for name in fine),
        ),
        (
            "Several classes: Spiegelhalter's z and ECD detect over-confidence; full kernels and MDCA do not",
            "1.00 for K = 3 to 100; full SKCE 0.57, 0.42, 0.10, 0.05; MDCA 0.00-0.07",
            f"Spiegelhalter and ECD {'-'.join(_span(full))}; SKCE {', '.join(num(v, 2) for v in kernel)} of "
            f"{', '.join(map(str, drawn))} draws; "
            f"MDCA {', '.join(num(v, 2) for v in mdca)} (K = 3, 10, 30, 100)",
            classes_held(full, drawn, mdca),
        ),
        (
            "Real data: two halves rank models similarly by L1-like metrics, and hardly by bias alone",
            "rank agreement 0.6-0.7, and 0.25",
            f"{num(halves, 2)}, and {num(bias, 2)}",
            None if halves is None or bias is None else halves > bias + 0.1,
        ),
    ]


def dominated(f: Found, name: str) -> int:
    """The largest studied number of rows at which bias exceeds the spread; 0 where it never does."""
    over = [n for n in f.study.sizes if (f.at(name, n, "bias_over_sd") or 0.0) > 1.0]
    return max(over, default=0)


def biased(often: dict[str, int], never: dict[str, int]) -> Any:
    """Fine binnings are dominated by bias for longer than coarse ones, and smooth metrics never are."""
    if not any(often.values()):
        return None
    also = {name: n for name, n in never.items() if n}
    holds = often["ece"] <= often["ece, 50 width"] <= often["ece, 100 width"] and all(n <= 100 for n in also.values())
    return (holds, f"at N = 100 also {', '.join(also)}") if also else holds


def vanishing(f: Found, names: tuple[str, ...]) -> Any:
    """Whether values stay above 0: from 10,000 to 100,000 rows noise falls to a third, a lasting value does not.

    A metric that keeps at least three fifths of its value counts as not approaching 0.
    """
    pairs = {name: (f.at(name, 10_000, "null"), f.at(name, 100_000, "null")) for name in names}
    if any(None in pair for pair in pairs.values()):
        return None
    falls = [name for name, (few, many) in pairs.items() if (many or 0.0) < 0.6 * (few or 0.0)]
    return (len(falls) < len(names), f"{', '.join(falls)} still fall") if falls else True


def classes_held(full: list[float | None], drawn: list[int], mdca: list[float | None]) -> Any:
    if None in full or None in mdca:
        return None
    holds = min(v or 0.0 for v in full) > 0.9 and max(v or 0.0 for v in mdca) < 0.5
    return (holds, "the kernel has too few draws to tell") if min(drawn) < 8 else holds


def up_to(n: int) -> str:
    return f"up to {n:,}" if n else "never"


def _span(values: list[float | None]) -> list[str]:
    known = [v for v in values if v is not None]
    return [num(min(known), 2), num(max(known), 2)] if known else ["–"]


def held(verdict: bool | tuple[bool, str] | None) -> str:
    """Whether a claim held; a pair is a claim that held with an exception, which it names."""
    if isinstance(verdict, tuple):
        return f"held in part: {verdict[1]}" if verdict[0] else "**did not hold**"
    return {True: "held", False: "**did not hold**", None: "not measured"}[verdict]


def pages(study: StudyResult) -> list[str]:
    f = Found(study)
    tests = {id: row for id, row in f.found["tests"].get("1000", {}).items() if row.get("power") is not None}
    good = {id: row for id, row in tests.items() if row["level"] <= 0.08}
    best = max(good, key=lambda id: good[id]["power"])
    spiegelhalter = tests.get("spiegelhalter", {}).get("power")
    claims = findings(f)
    words = {
        "worlds": len(f.found["worlds"]),
        "numbers": len(f.found["numbers"]),
        "smece_within": share(f.at("smece", 1000, "within")),
        "ece_within": share(f.at("ece", 1000, "within")),
        "smece_null": num(f.at("smece", 1000, "null")),
        "ece_null": num(f.at("ece", 1000, "null")),
        "beta_100": num(f.at("fott_beta", 100, "null")),
        "ici_100": num(f.at("ici", 100, "null")),
        "var_100": num(f.at("variational_error", 100, "null")),
        "ece_100": num(f.at("ece", 100, "null")),
        "skce_power": share(f.at("skce_uq", 1000, "power")),
        "smece_power": share(f.at("smece", 1000, "power")),
        "skce_rare": share(f.rare("skce_uq")),
        "atb_rare": share(f.rare("atb")),
        "kuiper_rare": share(f.rare("ecce_r")),
        "mce_rare": share(f.rare("mce")),
        "smece_wave": share(f.wave("smece")),
        "sece_wave": share(f.wave("sece")),
        "bs_across": share(f.at("bs", 1000, "across")),
        "mce_across": share(f.at("mce", 1000, "across")),
        "emax_across": share(f.at("emax", 1000, "across")),
        "eo_across": share(f.at("eo", 1000, "across")),
        "intercept_across": share(f.at("cis.intercept", 1000, "across")),
        "wavy": ", ".join(WAVY),
        "limit": f"{f.limit('ece', 'n') or 0:,}",
        "table": table(f),
        "clusters": cluster_words(f),
        "findings": "\n".join(f"| {claim} | {then} | {now} | {held(v)} |" for claim, then, now, v in claims),
        "claim_names": claim_names(claims),
        **{f"{id}_test": share(tests.get(id, {}).get("power")) for id in ("cis", "pws", "mmce")},
        "cis_level": share(tests.get("cis", {}).get("level")),
        "cis_logit": family_mean(tests, "cis", ("over-confident", "under-confident", "shift")),
        "cis_other": family_mean(tests, "cis", ("wave 2", "wave 10", "steps", "region")),
        "skce_other": family_mean(tests, "skce_uq", ("wave 2", "wave 10", "steps", "region")),
        "hl_other": family_mean(tests, "hl", ("wave 2", "wave 10", "steps", "region")),
        "beta_power": share(f.at("fott_beta", 1000, "power")),
        "spiegelhalter_test": share(spiegelhalter),
        "best_test": named(best),
        "best_power": share(good[best]["power"]),
        "made": made(f),
        "rest_worlds": len(stored()["portfolio"]["worlds"]),
        "rest_table": rest_table(),
        "rest_words": rest_words(),
    }  # fmt: skip
    return TEMPLATE.read_text(encoding="utf-8").format(**words).split(BETWEEN)


def family_mean(tests: dict[str, Any], id: str, families: tuple[str, ...]) -> str:
    """Mean power of a test over kinds of errors."""
    by = tests.get(id, {}).get("power_by_family", {})
    known = [by[name] for name in families if name in by]
    return share(float(np.mean(known)) if known else None)


def claim_names(claims: list[tuple[str, str, str, Any]]) -> str:
    """The full names of the metrics that the claims name by their ids."""
    text = " ".join(f"{then} {now}" for _, then, now, _ in claims)
    words = dict.fromkeys(word.strip(",;:()").partition(".")[0] for word in text.split())
    return "; ".join(f"`{word}`: {full_name(word)}" for word in words if full_name(word) != word)


def cluster_words(f: Found) -> str:
    if not f.found["correlation"]:
        return ""
    groups = [group for group in clusters(f.found["correlation"]) if len(group) > 1]
    lines = [
        f"Groups whose mean rank correlation over the worlds is 0.9 or more, at N = {f.found['correlation']['n']:,}:",
        "",
    ]
    return "\n".join(lines + [f"- **{len(group)} metrics**: {'; '.join(map(named, group))}" for group in groups])


REST = (
    "d_ece", "d_ece, location", "average_calibration_error", "laece", "laace", "egce", "qgc", "sgc", "l1cbod", "oce",
    "eice", "piece", "pce",
)  # fmt: skip
#: Errors of the score, and errors that only places, groups or neighbors show.
TEMPERATURES = ("over-confident", "under-confident")
HIDDEN = ("by place", "by group", "far cases")


def rest_table() -> str:
    """The results of the metrics that need more than labels and confidences."""
    head = (
        "metric", "a calibrated model shows, N = 100 / 1,000 / 10,000", "detects, N = 1,000",
        "detects errors hidden from the score", "orders: same distribution / across",
    )  # fmt: skip
    sizes = stored()["portfolio"]["sizes"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name in REST:
        at = {n: sizes.get(str(n), {}).get(name, {}) for n in (100, 1000, 10_000)}
        if not any(at.values()):
            continue
        by = at[1000].get("power_by_family") or {}
        hidden = [by[family] for family in HIDDEN if family in by]
        lines.append(
            f"| {named(name)} | {' / '.join(calibrated(name, row.get('null')) for row in at.values())} | "
            f"{share(at[1000].get('power'))} ± {100 * (at[1000].get('power_se') or 0.0):.0f} | "
            f"{share(float(np.mean(hidden))) if hidden else '–'} | "
            f"{share(at[1000].get('within'))} / {share(at[1000].get('across'))} |"
        )
    return "\n".join(lines)


def rest_words() -> str:
    """The main results of the table in words."""
    rows = stored()["portfolio"]["sizes"].get("1000", {})

    def power(name: str, *families: str) -> str:
        by = rows.get(name, {}).get("power_by_family") or {}
        known = [by[family] for family in families if family in by]
        return share(float(np.mean(known)) if known else None)

    return (
        f"- Errors of the score itself (temperature): D-ECE (`d_ece`) detects {power('d_ece', *TEMPERATURES)} "
        f"at N = 1,000, the kernel error (`l1cbod`) {power('l1cbod', *TEMPERATURES)}. The two global scores (`qgc`, "
        f"`sgc`) detect {power('qgc', 'over-confident')} of over-confidence and {power('qgc', 'under-confident')} of "
        "under-confidence: they are scores, and a detector whose detections are right more often than stated has a "
        "good score.\n"
        f"- Errors by place: D-ECE of the score alone detects {power('d_ece', 'by place')}, with the position of the "
        f"box {power('d_ece, location', 'by place')}. Errors by group: the partitioned error (`pce`) detects "
        f"{power('pce', 'by group')}, and {power('pce', *TEMPERATURES)} of temperatures, which leave the mean of a "
        "group nearly as it is.\n"
        "- The global errors (`egce`, `qgc`, `sgc`) and the object error (`oce`) count missed objects: their value "
        "for a calibrated detector comes mostly from misses, and they order detectors by the number of misses.\n"
        f"- The individual error (`eice`) detects {power('eice', 'overfitted')} of overfitted models, "
        f"{power('eice', 'too extreme')} of those with too extreme probabilities and "
        f"{power('eice', 'not extreme enough')} of those whose probabilities are not extreme enough: it measures "
        "how much a fit would change without a row, and uses no labels."
    )


def left_out(f: Found) -> dict[str, list[str]]:
    """The metrics that were not studied, by the reason."""
    by_reason: dict[str, list[str]] = {}
    studied = stored()["portfolio"]["numbers"]
    for id, why in f.found["left_out"].items():
        if id in studied:
            continue
        by_reason.setdefault(why, []).append(named(id))
    return by_reason


def made(f: Found) -> str:
    about = f.study.about
    slow = {name: row["largest_n"] for name, row in f.found["numbers"].items() if row["largest_n"] < max(f.study.sizes)}
    few: dict[int, list[str]] = {}
    for name, n in slow.items():
        few.setdefault(n, []).append(named(name))
    at_the_limit = about["draws"]["two classes, N = 100,000"][0]
    undefined = {
        name: row["undefined"] for name, row in f.found["sizes"]["100"].items() if row["undefined"] > 0.02
    } if "100" in f.found["sizes"] else {}  # fmt: skip
    lines = [
        f"- calibrary {about['version']}, seed {about['seed']}, preset `{about['preset']}`: {about['shards']} of "
        f"{about['of']} shards, {about['cpu_seconds'] / 60:.0f} CPU minutes.",
        "- The table below has the number of samples of each world. A number that takes longer "
        "than 10 ms (100 ms at 100,000 rows, 20 ms for several classes) is computed from fewer samples in proportion "
        f"to its time, down to a twelfth, but from at least {FEWEST_NULLS} calibrated ones. Standard errors of power "
        "(jackknife over draws) are in the table; those of the order are about one percentage point.",
        "- Computed on few rows only, because they are slow: "
        + "; ".join(f"up to {n:,}: {', '.join(names)}" for n, names in sorted(few.items()))
        + ".",
        "- Not studied: " + "; ".join(f"{', '.join(ids)}: {why}" for why, ids in left_out(f).items()) + ".",
        f"- The limit of a metric is its mean at the largest size, from {at_the_limit} draws of each world; the "
        "distance from calibration is a linear programme on 120 quantiles and 61 places. Calibration curves are smooth "
        "except for steps and regions, and have one amplitude; `--preset full` has three.",
    ]
    read = f.found["classes"]["sizes"].get("1000", {})
    count = {k: sum(f"{k} classes" in by for by in read.values()) for k in (3, 10, 30, 100)}
    lines.append(
        "- Numbers computed for several classes at N = 1,000: "
        f"{', '.join(f'{c} for K = {k}' for k, c in count.items())}; the others take more than a second there."
    )
    if about["missing"]:
        lacking = "; ".join(f"{size}: {count} shards" for size, count in about["missing"].items())
        lines.append(f"- **Missing** (the run goes on with `make study`): {lacking}.")
    if undefined:
        lines.append(
            "- Undefined in more than 2% of samples of 100 rows (mostly where no event happened): "
            + "; ".join(f"{named(name)}: {share(v)}" for name, v in undefined.items())
            + "."
        )
    return "\n".join([*lines, "", *draws_table(about["draws"])])


def draws_table(draws: dict[str, tuple[int, int]]) -> list[str]:
    """How many samples each world has, by the number of rows."""
    head = ("classes", "rows", "samples of a miscalibrated world", "samples of a calibrated world")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    sized = [(*size.split(", N = "), *pair) for size, pair in draws.items()]
    for classes, rows, wrong, right in sorted(sized, key=lambda r: (r[0] != "two classes", int(r[1].replace(",", "")))):
        lines.append(f"| {classes.removesuffix(' classes')} | {rows} | {wrong} | {right} |")
    return lines


if __name__ == "__main__":
    main(figures="--no-figures" not in sys.argv)
