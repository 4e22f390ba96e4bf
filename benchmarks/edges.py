"""Level and coverage at the edges: units that depend on each other, rare outcomes, few rows, blocks and weights.

``python benchmarks/edges.py`` runs every cell (a world and what is asked of it) and writes ``edges.json`` with counts,
shares and Monte Carlo errors; ``--cells units`` runs those whose name holds the word, ``--seconds`` ends early and
keeps what is done. A cell starts with 200 samples. As long as its share misses the bar but the 99% binomial interval
holds it, it is run on, up to 2,000 (``--most``), after the samples that are stored. A cell fails only if that interval
leaves out the bar.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy

import calibrary as cal
from calibrary.inference.draw.unit_law import unit_law
from calibrary.inference.verbs.verdict import condition
from calibrary.inference.verbs.verdict import judged as judged_bound

RESULT = Path(__file__).with_name("edges.json")
FIRST, MOST, DRAWS = 200, 2000, 99
ROWS = 20
MOST_LEVEL, LEAST_LEVEL, LEAST_COVERAGE, POWER = 0.065, 0.035, 0.93, 0.8

expit, logit = scipy.special.expit, scipy.special.logit


# -- worlds ------------------------------------------------------------------------------------------

CENTERS = {
    "half": lambda rng, shape: rng.beta(8, 8, shape),
    "low": lambda rng, shape: expit(rng.normal(-3.4, 0.6, shape)),
    "high": lambda rng, shape: expit(rng.normal(4.4, 0.6, shape)),
}


def units_world(rng, n_units, icc, center, many, bent=1.0, size=ROWS, latent=False):
    """Labels of units: marginal truth q, beta-binomial with this correlation (latent: a normal effect on log odds)."""
    c = CENTERS[center](rng, (n_units, size if many else 1)) * np.ones((n_units, size))
    q = expit(bent * logit(c))
    shared = rng.random((n_units, 1))
    if icc == 0.0:
        y = rng.random(c.shape) < q
    elif icc == 1.0:
        y = shared < q
    elif latent:
        y = rng.random(c.shape) < expit(_intercepts(q, icc) + _spread(icc) * scipy.special.ndtri(shared))
    else:
        k = 1.0 / icc - 1.0
        y = rng.random(c.shape) < scipy.special.betaincinv(q * k, (1.0 - q) * k, shared)
    return y.ravel().astype(int), c.ravel(), q.ravel(), np.repeat(np.arange(n_units), size)


def _spread(icc):
    return np.sqrt(icc / (1.0 - icc) * np.pi**2 / 3.0)


def _intercepts(q, icc):
    """Log odds whose mean probability over the normal effect is q."""
    x, w = np.polynomial.hermite_e.hermegauss(31)
    grid = np.linspace(-16.0, 16.0, 2001)
    return np.interp(q, expit(grid[:, None] + _spread(icc) * x) @ (w / w.sum()), grid)


def ece_of(c, q):
    bins = np.minimum((c * 15).astype(int), 14)
    return float(np.abs(np.bincount(bins, q - c, minlength=15)).sum()) / len(c)


def brier_of(c, q):
    return float(np.mean(q * (1.0 - c) ** 2 + (1.0 - q) * c**2))


def effective(y, c, unit):
    """How many units carry the squares of the residuals."""
    square = np.bincount(unit, y - c) ** 2
    return float(square.sum() ** 2 / (square @ square))


ROW_WORLDS = {
    "rare": lambda rng, n: expit(rng.normal(-5.0, 1.0, n)),
    "atoms": lambda rng, n: rng.choice([0.0, 0.05, 0.5, 0.95, 1.0], n, p=[0.2, 0.25, 0.1, 0.25, 0.2]),
    "sure": lambda rng, n: expit(rng.normal(4.4, 0.6, n)),
    "even": lambda rng, n: rng.beta(0.8, 0.8, n),
}


def rows_world(rng, n, law, truth):
    c = ROW_WORLDS[law](rng, n)
    if truth == "certain wrong":
        q = np.where(c <= 0.0, 0.03, np.where(c >= 1.0, 0.97, c))
    else:
        q = {"calibrated": lambda: c, "bent": lambda: expit(0.7 * logit(np.clip(c, 1e-9, 1 - 1e-9))),
             "doubled": lambda: np.minimum(2.2 * c, 1.0)}[truth]()  # fmt: skip
    return (rng.random(n) < q).astype(int), c, q


# -- cells -------------------------------------------------------------------------------------------


def inside(result, truth):
    return bool(result.low - 1e-12 <= truth <= result.high + 1e-12)


def law_cell(n_units, icc, center, many, latent=False, size=ROWS):
    """Level of the law of the units for the mean residual, which needs no draws."""

    def one(rng, seed):
        y, c, _, unit = units_world(rng, n_units, icc, center, many, size=size, latent=latent)
        law = unit_law(c, y - c, np.ones(len(c)), c * (1.0 - c), unit)
        sums = np.bincount(unit, y - c)
        t = abs(sums.sum()) / (law.stretch * np.sqrt(sums @ sums))
        return {"effective": effective(y, c, unit), "level mean": 2.0 * scipy.special.stdtr(law.df, -t) <= 0.05}

    return one


def units_cell(n_units, icc, center, many, latent=False, size=ROWS):
    """Levels on calibrated units, and coverage on units whose log odds are bent."""

    def one(rng, seed):
        found = {}
        y, c, q, unit = units_world(rng, n_units, icc, center, many, size=size, latent=latent)
        found["effective"] = effective(y, c, unit)
        for id in ("ece", "spiegelhalter"):
            found[f"level {id}"] = cal.test(id, y, c, units=unit, n_resamples=DRAWS, rng=seed).pvalue <= 0.05
        for id, truth in (("bs", brier_of(c, q)), ("oe", 1.0)):
            found[f"cover {id}"] = inside(cal.interval(id, y, c, units=unit, n_resamples=DRAWS, rng=seed), truth)
        y, c, q, unit = units_world(rng, n_units, icc, center, many, 0.7, size=size, latent=latent)
        for id, truth in (("ece", ece_of(c, q)), ("bs", brier_of(c, q)), ("oe", q.sum() / c.sum())):
            found[f"cover bent {id}"] = inside(cal.interval(id, y, c, units=unit, n_resamples=DRAWS, rng=seed), truth)
        return found

    return one


def headline_cell(n_units, icc, center, many, latent=False):
    def one(rng, seed):
        y, c, _, unit = units_world(rng, n_units, icc, center, many, latent=latent)
        data = cal.predictions(y, c).in_units(unit)
        return {"level headline": cal.decide(data, cal.Question(rng=seed), detectable=False).rejected}

    return one


def compare_cell(n_units, size, icc, id):
    """One model over-confident, the other calibrated, on units."""

    def one(rng, seed):
        y, c, q, unit = units_world(rng, n_units, icc, "half", True, size=size)
        c = rng.beta(2, 2, len(y)) if icc == 0.0 else c
        if icc == 0.0:
            y, q = (rng.random(len(c)) < c).astype(int), c
        sure = expit(2.0 * logit(c))
        of = ece_of if id == "ece" else brier_of
        result = cal.compare(id, y, sure, c, units=unit, n_resamples=DRAWS, rng=seed)
        return {f"cover difference {id}": inside(result, of(sure, q) - of(c, q))}

    return one


def score_cell(n, law, truth):
    def one(rng, seed):
        y, c, q = rows_world(rng, n, law, truth)
        found = {"cover bs": inside(cal.interval("bs", y, c, n_resamples=DRAWS, rng=seed), brier_of(c, q)),
                 "cover oe": inside(cal.interval("oe", y, c, n_resamples=DRAWS, rng=seed), q.sum() / c.sum()),
                 "cover mae": inside(cal.interval("mae", y, c, n_resamples=DRAWS, rng=seed),
                                     float(np.mean(q * (1 - c) + (1 - q) * c)))}  # fmt: skip
        if law in ("rare", "sure", "even"):
            loss = float(-np.mean(q * np.log(c) + (1.0 - q) * np.log1p(-c)))
            found["cover nll"] = inside(cal.interval("nll", y, c, n_resamples=DRAWS, rng=seed), loss)
        return found

    return one


def blocks_cell(n, run):
    """Rows in time order whose outcomes share one random number for a run of rows."""

    def one(rng, seed):
        c = rng.beta(2, 2, n)
        u = np.repeat(rng.random(-(-n // run)), run)[:n]
        y = (u < c).astype(int)
        found = {f"level {id}": cal.test(id, y, c, blocks=3 * run, n_resamples=DRAWS, rng=seed).pvalue <= 0.05
                 for id in ("ece", "ks")}  # fmt: skip
        result = cal.interval("bs", y, c, blocks=3 * run, n_resamples=DRAWS, rng=seed)
        return {**found, "cover bs": inside(result, brier_of(c, c))}

    return one


def weights_cell(n):
    """Frequency weights: each row stands for one to five, which are drawn one by one."""

    def one(rng, seed):
        c, w = rng.beta(2, 2, n), rng.integers(1, 6, n)
        k = rng.binomial(w, c)
        rows = np.concatenate([np.repeat([1, 0], 1)] * n), np.repeat(c, 2), np.column_stack([k, w - k]).ravel()
        y, p, copies = (column[rows[2] > 0] for column in rows)
        truth = float(np.average(c * (1 - c), weights=w))
        test = cal.test("ece", y, p, sample_weight=copies, n_resamples=DRAWS, rng=seed).pvalue <= 0.05
        result = cal.interval("bs", y, p, sample_weight=copies, n_resamples=DRAWS, rng=seed)
        return {"level ece": test, "cover bs": inside(result, truth)}

    return one


def certain_cell(n):
    """A fifth of the rows is certain of 0 and right in 95%, a fifth is certain of 1 and right in 90%."""

    def one(rng, seed):
        kind, c = rng.random(n), rng.beta(0.8, 0.8, n)
        c = np.where(kind < 0.2, 0.0, np.where(kind > 0.8, 1.0, c))
        y = (rng.random(n) < np.where(c == 0.0, 0.05, np.where(c == 1.0, 0.9, c))).astype(int)
        decision = cal.decide(cal.predictions(y, c), cal.Question(rng=seed), detectable=False)
        return {"always finds evidence": decision.rejected}

    return one


def planned_cell(n, bound):
    """Does the number of rows that an undecided verdict names decide, if the true error is the most plausible one?"""

    def one(rng, seed):
        many = rng.beta(0.8, 0.8, 20_000)
        truth, needed = ece_of(many, expit(0.6 * logit(many))), np.nan
        while not np.isfinite(needed):  # another sample, if these rows decide
            y, c = bent_rows(rng, n)
            result = cal.interval("ece", y, c, n_resamples=DRAWS, rng=seed)
            told = judged_bound(
                condition(f"ece<{bound}"), result.estimate, result.low, result.high, n=n, confidence_level=0.95,
                method=result.method, bias=result.estimate - truth,
            )  # fmt: skip
            needed = told.n_needed
        y, c = bent_rows(rng, min(int(needed), 20_000))
        again = cal.interval("ece", y, c, n_resamples=DRAWS, rng=seed)
        return {"power decides": not again.low <= bound <= again.high}

    return one


def bent_rows(rng, n):
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < expit(0.6 * logit(c))).astype(int), c


def cis_cell(n):
    """Few rows, many of them certain: is the p-value of intercept and slope one number?"""

    def one(rng, seed):
        c = rng.beta(0.5, 3, n)
        found = cal.test("cis", (rng.random(n) < c).astype(int), c, n_resamples=DRAWS, rng=seed)
        return {"always one number": np.ndim(found.pvalue) == 0, "level cis": bool(np.all(found.pvalue <= 0.05))}

    return one


def cells() -> dict[str, Callable]:
    found: dict[str, Callable] = {}
    for n in (20, 75, 300):
        for icc in (0.0, 0.26, 1.0):
            for center in CENTERS:
                for many in (True, False):
                    kind = "many" if many else "one"
                    found[f"law {n} icc {icc:g} {center} {kind}"] = law_cell(n, icc, center, many)
                    found[f"units {n} icc {icc:g} {center} {kind}"] = units_cell(n, icc, center, many)
    for center in CENTERS:
        found[f"units 75 latent icc 0.26 {center} many"] = units_cell(75, 0.26, center, True, latent=True)
        found[f"law 75 latent icc 0.26 {center} many"] = law_cell(75, 0.26, center, True, latent=True)
        found[f"law 50x10 icc 1 {center} one"] = law_cell(50, 1.0, center, False, size=10)
        found[f"units 50x10 icc 1 {center} one"] = units_cell(50, 1.0, center, False, size=10)
        for icc, latent in ((0.26, False), (0.26, True), (1.0, False)):
            word = "latent " if latent else ""
            found[f"headline 75 {word}icc {icc:g} {center}"] = headline_cell(75, icc, center, True, latent)
    for id in ("ece", "bs"):
        for n, size, icc in ((40, 10, 0.0), (20, 20, 0.0), (40, 10, 0.26), (75, 20, 0.26), (40, 10, 1.0)):
            found[f"compare {id} {n}x{size} icc {icc:g}"] = compare_cell(n, size, icc, id)
    for n in (60, 250, 1500, 20_000):
        for law in ROW_WORLDS:
            for truth in ("calibrated", "certain wrong") if law == "atoms" else ("calibrated", "bent", "doubled"):
                if truth != "doubled" or law == "rare":
                    found[f"scores {law} {n} {truth}"] = score_cell(n, law, truth)
    for n, run in ((300, 3), (2000, 10)):
        found[f"blocks {n} runs of {run}"] = blocks_cell(n, run)
    for n in (60, 500):
        found[f"weights {n}"] = weights_cell(n)
    for n in (300, 1000):
        found[f"certain {n}"] = certain_cell(n)
    found["cis 120"] = cis_cell(120)
    found["planned 250"] = planned_cell(250, 0.05)
    return found


# -- running -----------------------------------------------------------------------------------------


def bounds(k: int, n: int) -> tuple[float, float]:
    """The exact 99% binomial interval."""
    low = float(scipy.special.betaincinv(k, n - k + 1, 0.005)) if k else 0.0
    high = float(scipy.special.betaincinv(k + 1, n - k, 0.995)) if k < n else 1.0
    return low, high


def judged(name: str, k: int, n: int, carried: float) -> str:
    """ "ok", "doubtful" (beyond the bar, but the interval holds it) or "fails"."""
    share, (low, high) = k / n, bounds(k, n)
    if name.startswith("always"):
        return "ok" if k == n else "fails"
    if name.startswith("power"):
        return "ok" if low <= POWER <= high else "fails"
    if name.startswith("cover"):
        return "ok" if share >= LEAST_COVERAGE else "doubtful" if high >= LEAST_COVERAGE else "fails"
    if share > MOST_LEVEL:
        return "doubtful" if low <= MOST_LEVEL else "fails"
    if carried >= 30.0 and share < LEAST_LEVEL and not name.endswith("headline"):
        return "doubtful" if high >= LEAST_LEVEL else "fails"
    return "ok"


def run_cell(name: str, one: Callable, first: int, most: int, until: float, stored: dict) -> dict:
    """Samples of a cell until no verdict is doubtful, after those that are stored."""
    kept = {key: row for key, row in stored.items() if isinstance(row, dict)}
    counts = {key: row["count"] for key, row in kept.items()}
    n = max((row["n"] for row in kept.values()), default=0)
    before, began = stored.get("cpu_seconds", 0.0), time.process_time()
    carried: list[float] = []
    middle = max((row["effective"] for row in kept.values()), default=0.0)
    while True:
        for _ in range(first - n if n < first else 200):
            rng = np.random.default_rng([*name.encode(), n])
            for key, value in one(rng, n).items():
                if key == "effective":
                    carried.append(value)
                else:
                    counts[key] = counts.get(key, 0) + int(value)
            n += 1
        middle = middle or (float(np.median(carried)) if carried else 0.0)
        verdicts = {key: judged(key, k, n, middle) for key, k in counts.items()}
        if "doubtful" not in verdicts.values() or n >= most or time.time() > until:
            break
    return {
        key: {"n": n, "count": k, "share": round(k / n, 4), "se": round(float(np.sqrt(k / n * (1 - k / n) / n)), 4),
              "verdict": verdicts[key], "effective": round(middle, 1)}
        for key, k in counts.items()
    } | {"cpu_seconds": round(before + time.process_time() - began, 1)}  # fmt: skip


def whole(row: dict, first: int, most: int) -> bool:
    """Whether a cell that is stored needs no more samples."""
    found = [value for value in row.values() if isinstance(value, dict)]
    n = max((value["n"] for value in found), default=0)
    return n >= most or (n >= first and all(value["verdict"] != "doubtful" for value in found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="", help="run cells whose name holds these words")
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--again", action="store_true", help="run cells that have a result already, from the start")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    until = time.time() + asked.seconds
    words = asked.cells.split()
    for name, one in cells().items():
        row = {} if asked.again else stored.get(name, {})
        if not all(word in name.split() for word in words) or whole(row, asked.first, asked.most):
            continue
        if time.time() > until:
            break
        stored[name] = run_cell(name, one, asked.first, asked.most, until, row)
        asked.out.write_text(json.dumps(stored, indent=1) + "\n")
        told = " ".join(f"{key} {v['share']:.3f}{'' if v['verdict'] == 'ok' else ' ' + v['verdict'].upper()}"
                        for key, v in stored[name].items() if isinstance(v, dict))  # fmt: skip
        print(f"{name}: {told} ({stored[name]['cpu_seconds']} s)", flush=True)


if __name__ == "__main__":
    main()
