"""``cal.under_shift`` and ``cal.shift_curve`` on worlds of known truth: level and power of their tests, coverage.

Every cell is a world. It is run in rounds; after each round the counts are stored, and a cell is judged by the 99%
binomial interval of its share.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path

import numpy as np
import scipy

import calibrary as cal
from calibrary.shift.trend import PairSums

RESULT = Path(__file__).with_name("open_shift.json")
METRICS = ("ece", "bs")
#: Draws of a sample. Monte Carlo tests keep their level with any number of draws for which 0.05 (draws + 1) is whole,
#: and the intervals are made of such a test and of standard errors.
DRAWS = 39
#: Samples of a round, and of a world in all: where a level and coverages are asked, where the power is, and of trends.
ROUND, MOST, MOST_POWER = 20, 1000, 200
TREND_ROUND, MOST_TREND = 100, 2000
ROWS = 1000
LEVELS, LEAST_COVERAGE = (0.035, 0.065), 0.93
#: Rows from which the truth of a world is computed.
MANY = 100_000


# -- worlds of classes: normal numbers around a center for each class --------------------------------------


def classes_world(rng, n, share, apart, moved=0.0):
    """Labels with these shares, and what is seen of each row; ``moved`` moves the first class towards the others."""
    k = len(share)
    y = rng.choice(k, n, p=share)
    x = rng.normal(size=(n, 1 if k == 2 else k))
    if k == 2:
        x[:, 0] += apart * (y - 0.5)
        x[y == 0, 0] += moved
    else:
        x[np.arange(n), y] += apart * (1.0 - moved * (y == 0))
    return y, x


def posterior(x, share, apart, slope=1.0):
    """The probabilities of the classes where they have these shares; ``slope`` other than 1 misstates them."""
    z = apart * np.column_stack([-x[:, 0] / 2.0, x[:, 0] / 2.0]) if len(share) == 2 else apart * x
    return scipy.special.softmax(slope * (z + np.log(share)), axis=1)


def stated(p):
    return p[:, 1] if p.shape[1] == 2 else p


def true_value(metric, p, q):
    """The metric where every row has the labels q with certainty of their shares."""
    if metric == "bs":
        square = (p**2).sum(axis=1) - 2.0 * (p * q).sum(axis=1) + 1.0
        return float(square.mean()) / p.shape[1]  # the mean over the classes
    if p.shape[1] == 2:
        return float(cal.compute(metric, q[:, 1], p[:, 1]))
    top, row = p.argmax(axis=1), np.arange(len(p))
    return float(cal.compute(metric, q[row, top], p[row, top]))


def label_cell(source, target, apart, made_for="source", slope=1.0, moved=0.0, rows=ROWS):
    """A source and a target of these shares; the model is right for ``made_for``, but for its slope."""
    source, target = np.asarray(source), np.asarray(target)
    shares = source if made_for == "source" else target

    def both(rng):
        y, x = classes_world(rng, rows, source, apart)
        _, there = classes_world(rng, rows, target, apart, moved)
        return y, stated(posterior(x, shares, apart, slope)), stated(posterior(there, shares, apart, slope)), {}

    def truth(metric):
        _, x = classes_world(np.random.default_rng(99), MANY, target, apart)
        return true_value(metric, posterior(x, shares, apart, slope), posterior(x, target, apart))

    return {"assume": "label", "both": both, "truth": truth}


def covariate_cell(away=0.7, slope=1.0, changed=False, bent=False, rows=ROWS):
    """Two features; the target lies ``away``. ``bent``: the ratio of the densities is no longer log-linear."""

    def chance(x):
        return scipy.special.expit(1.2 * x[:, 0] - 0.8 * x[:, 1])

    def model(x):
        q = scipy.special.expit(slope * (1.2 * x[:, 0] - 0.8 * x[:, 1]))
        return np.column_stack([1.0 - q, q])

    def there(rng, n):
        x = rng.normal(size=(n, 2)) + np.array([away, 0.0])
        if bent:
            x[:, 0] = away + np.where(rng.random(n) < 0.5, -1.2, 1.2) + 0.5 * rng.normal(size=n)
        return x

    def both(rng):
        x, z = rng.normal(size=(rows, 2)), there(rng, rows)
        y = (rng.random(rows) < chance(x)).astype(int)
        return y, model(x)[:, 1], model(z)[:, 1], {"features": x, "target_features": z}

    def truth(metric):
        z = there(np.random.default_rng(99), MANY)
        return true_value(metric, model(z), np.column_stack([1.0 - chance(z), chance(z)]))

    return {"assume": "covariate", "both": both, "truth": truth}


def even(k):
    return np.full(k, 1.0 / k)


def first(k, share):
    """The first class has this share, the others the rest in equal parts."""
    return np.array([share] + [(1.0 - share) / (k - 1)] * (k - 1))


CELLS = {
    "label 2 classes .50 to .20": label_cell([0.5, 0.5], [0.8, 0.2], 2.0),
    "label 2 classes .50 to .05": label_cell([0.5, 0.5], [0.95, 0.05], 2.0),
    "label 2 classes .50 to .95": label_cell([0.5, 0.5], [0.05, 0.95], 2.0),
    "label 2 classes .20 to .80": label_cell([0.8, 0.2], [0.2, 0.8], 2.0),
    "label 2 classes .05 to .50": label_cell([0.95, 0.05], [0.5, 0.5], 2.0),
    "label 2 classes .50 to .20 calibrated there": label_cell([0.5, 0.5], [0.8, 0.2], 2.0, "target"),
    "label 2 classes .50 to .05 calibrated there": label_cell([0.5, 0.5], [0.95, 0.05], 2.0, "target"),
    "label 2 classes .50 to .50": label_cell([0.5, 0.5], [0.5, 0.5], 2.0),
    "label 2 classes .50 to .20 too extreme": label_cell([0.5, 0.5], [0.8, 0.2], 2.0, slope=1.6),
    "label 4 classes": label_cell(even(4), first(4, 0.55), 2.5),
    "label 4 classes calibrated there": label_cell(even(4), first(4, 0.55), 2.5, "target"),
    "label 10 classes": label_cell(even(10), first(10, 0.4), 3.0),
    "label 10 classes calibrated there": label_cell(even(10), first(10, 0.4), 3.0, "target"),
    "covariate": covariate_cell(),
    "covariate too extreme": covariate_cell(slope=1.6),
    "covariate far": covariate_cell(away=1.2, slope=1.3),
    "violated label, class 0 moved by .3": label_cell([0.5, 0.5], [0.8, 0.2], 2.0, moved=0.3),
    "violated label, class 0 moved by .6": label_cell([0.5, 0.5], [0.8, 0.2], 2.0, moved=0.6),
    "violated label, 10 classes": label_cell(even(10), first(10, 0.4), 3.0, moved=0.3),
    "violated covariate, two clusters": covariate_cell(bent=True),
}


def one(cell, metric, true, seed, draws=DRAWS):
    """One sample: was the assumption rejected, and did the interval hold the true value?"""
    rng = np.random.default_rng(seed)
    y, p, target, more = cell["both"](rng)
    try:
        found = cal.under_shift(
            metric, y, p, target, assume=cell["assume"], n_resamples=draws, rng=int(rng.integers(2**31)), check=False,
            **more,
        )  # fmt: skip
    except ValueError as error:
        return {"refused": str(error)[:60]}
    return {
        "rejected": found.assumption_pvalue <= 0.05,
        "covered": found.low - 1e-9 <= true <= found.high + 1e-9,
        "effective": found.effective_n,
        "share": float(found.shares[-1]),
    }


# -- groups in an order --------------------------------------------------------------------------------------


def trend_cell(slopes, sizes, shared=False):
    """Groups with these true slopes of the log odds; ``shared``: the same images with the same labels in all."""

    def sample(rng):
        place = np.repeat(np.arange(len(sizes)), sizes)
        unit = np.concatenate([np.arange(n) for n in sizes])
        z = rng.normal(0.0, 1.5, max(sizes))[unit] if shared else rng.normal(0.0, 1.5, len(place))
        seen = z + 0.3 * rng.normal(size=len(z)) if shared else z
        u = rng.random(max(sizes))[unit] if shared else rng.random(len(place))
        data = cal.predictions((u < scipy.special.expit(np.asarray(slopes)[place] * seen)).astype(int),
                               scipy.special.expit(seen))  # fmt: skip
        return data.in_units(unit) if shared else data, place

    return sample


TRENDS = {
    "trend none, calibrated, 6 groups": trend_cell([1.0] * 6, [200] * 6),
    "trend none, too extreme, 6 groups": trend_cell([0.6] * 6, [200] * 6),
    "trend none, calibrated, same images": trend_cell([1.0] * 6, [200] * 6, shared=True),
    "trend none, too extreme, same images": trend_cell([0.6] * 6, [200] * 6, shared=True),
    "trend none, calibrated, 3 unequal groups": trend_cell([1.0] * 3, [100, 300, 900]),
    "trend none, too extreme, 3 unequal groups": trend_cell([0.6] * 3, [100, 300, 900]),
    "trend none, too extreme, 2 groups": trend_cell([0.6] * 2, [300] * 2),
    "violated trend, slope 1 to .6, 6 groups": trend_cell(np.linspace(1.0, 0.6, 6), [300] * 6),
    "violated trend, slope 1 to .4, 6 groups": trend_cell(np.linspace(1.0, 0.4, 6), [300] * 6),
    "violated trend, slope 1 to .6, same images": trend_cell(np.linspace(1.0, 0.6, 6), [300] * 6, shared=True),
}


def trend_round(name, sample, kept, seed, size=TREND_ROUND):
    """Samples of groups: how often is a trend found?"""
    rng = np.random.default_rng(seed)
    for _ in range(size):
        data, place = sample(rng)
        found = PairSums.of(data, place, int(place.max()) + 1).trend()[1] <= 0.05
        add(kept, "power" if name.startswith("violated") else "level", found)


# -- counting ----------------------------------------------------------------------------------------------


def ends(count, n):
    """The 99% interval of a binomial share (Clopper and Pearson)."""
    beta = scipy.special.betaincinv
    low = float(beta(count, n - count + 1, 0.005)) if count else 0.0
    high = float(beta(count + 1, n - count, 0.995)) if count < n else 1.0
    return low, high


def judged(kind, count, n):
    """The share, its interval, and whether the bar lies in it."""
    low, high = ends(count, n)
    meets = high >= LEAST_COVERAGE if kind == "coverage" else low <= LEVELS[1] and high >= LEVELS[0]
    return {
        "n": n, "count": count, "share": round(count / n, 4), "low": round(low, 4), "high": round(high, 4),
        "verdict": "measured" if kind == "power" else "ok" if meets else "misses",
    }  # fmt: skip


def add(kept, kind, hit):
    of = kept.setdefault(kind, {"n": 0, "count": 0})
    kept[kind] = judged(kind.split()[0], of["count"] + int(hit), of["n"] + 1)


def round_of(name, cell, kept, seed, size=ROUND, draws=DRAWS):
    """So many more samples of a world, added to what is kept of it."""
    truths = kept.setdefault("truth", {metric: cell["truth"](metric) for metric in METRICS})
    violated = name.startswith("violated")
    for i in range(size):
        metric = METRICS[i % len(METRICS)]
        found = one(cell, metric, truths[metric], [seed, i], draws)
        if "refused" in found:
            kept["cannot be told"] = kept.get("cannot be told", 0) + 1
            continue
        add(kept, "power" if violated else "level", found["rejected"])
        if not violated:
            add(kept, f"coverage {metric}", found["covered"])
        kept["effective_n"] = round(found["effective"], 1)


def rounds_of(name):
    """How many rounds a world has in all."""
    if name in TRENDS:
        return MOST_TREND // TREND_ROUND
    return (MOST_POWER if name.startswith("violated") else MOST) // ROUND


def run(seconds, cells=""):
    """Rounds over all cells until the time is over or every cell has its samples."""
    began, stored = time.monotonic(), json.loads(RESULT.read_text()) if RESULT.exists() else {}
    warnings.simplefilter("ignore")
    for turn in range(max(rounds_of(name) for name in (*CELLS, *TRENDS))):
        for k, (name, cell) in enumerate([*CELLS.items(), *TRENDS.items()]):
            if not any(word in name for word in cells.split(",")) or turn >= rounds_of(name):
                continue
            kept = stored.setdefault(name, {"rounds": 0})
            if kept["rounds"] > turn:
                continue
            spent = time.process_time()
            (trend_round if name in TRENDS else round_of)(name, cell, kept, 1000 * k + turn)
            kept["rounds"] += 1
            kept["cpu_seconds"] = round(kept.get("cpu_seconds", 0.0) + time.process_time() - spent, 1)
            RESULT.write_text(json.dumps(stored, indent=1) + "\n")
            if time.monotonic() - began > seconds:
                return


# -- the page ------------------------------------------------------------------------------------------------


def words(of):
    """A share with its 99% interval."""
    if of is None:
        return ""
    return f"{of['share']:.1%} ({of['low']:.1%} to {of['high']:.1%}) of {of['n']}"


def together(kept, kind):
    """The counts of several worlds added up."""
    every = [of[kind] for of in kept.values() if kind in of]
    return judged(kind.split()[0], sum(of["count"] for of in every), sum(of["n"] for of in every)) if every else None


def lines(head, rows):
    return "\n".join(
        [f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]
    )


def tables(stored):
    """The tables of docs/evidence/shift.md, by the name of their mark."""
    right = {name: stored[name] for name in CELLS if name in stored and not name.startswith("violated")}
    kinds = {"level": "assumption rejected", "coverage ece": "interval of the ECE holds",
             "coverage bs": "interval of the Brier score holds"}  # fmt: skip
    rows = [[name, *(words(of.get(kind)) for kind in kinds)] for name, of in right.items()]
    rows.append(["all of these worlds", *(words(together(right, kind)) for kind in kinds)])
    power = [[name, words(stored[name]["power"])] for name in CELLS if name.startswith("violated") and name in stored]
    trends = [
        [name, "power" if name.startswith("violated") else "level", words(of.get("level", of.get("power")))]
        for name, of in ((name, stored[name]) for name in TRENDS if name in stored)
    ]
    return {
        "true": lines(["world", *kinds.values()], rows),
        "violated": lines(["world", "assumption rejected"], power),
        "trend": lines(["world", "", "trend found at 5%"], trends),
    }


if __name__ == "__main__":
    run(3600.0)
