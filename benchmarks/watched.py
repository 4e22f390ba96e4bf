"""How often intervals ever leave the truth when one looks every day, and how soon a wrong stream is found.

    python benchmarks/watched.py --streams 1000 --save

Streams of sixty days and of six kinds: calibrated; log odds off by 0.3; slope 0.7; log odds off by 0.5 from the
thirty-first day on; rare events (0.5%, log odds off by 0.5); and days that share a shock and are calibrated on average,
with rows and with days as units. Predictions have twenty values. Beside the intervals of :func:`calibrary.watch` stand
the interval that holds once, looked at every day, and the published interval of the offset alone: the mean of a plug-in
estimate and of a mixture of fixed offsets, over the likelihood (the method of ``probcal.monitor``). A stream is found
on the first day on which O/E, offset or slope of a calibrated one lies outside. Results are kept in
``benchmarks/watched.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp

from calibrary.inference.overall import anytime
from calibrary.inference.overall.anytime import DIRECTIONS, Foreseen, logit, offsets
from calibrary.inference.overall.sequential import ALTERNATIVES, PLAIN, Bets, changes

RESULTS = Path(__file__).parent / "watched.json"
DAYS, CHANGE, ALPHA = 60, 30, 0.05
GRID = np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0])


def kinds(rng: np.random.Generator, streams: int) -> Any:
    """Each kind: its name, values, rows of each value a day, probabilities by stream, day and value, units."""
    z = logit(np.linspace(0.03, 0.9, 20))
    n = np.full(20, 10.0)
    day = np.arange(DAYS)[:, None]
    for name, m, change in (
        ("calibrated", expit(z + 0.0 * day), None),
        ("offset", expit(z + 0.3 + 0.0 * day), 0),
        ("slope", expit(0.7 * z + 0.0 * day), 0),
        ("change", expit(z + 0.5 * (day >= CHANGE)), CHANGE),
    ):
        yield name, expit(z), n, m[None], m, "row", change
    rare = logit(np.geomspace(0.001, 0.02, 20))
    m = expit(rare + 0.5 + 0.0 * day)
    yield "rare", expit(rare), n * 10, m[None], m, "row", 0
    shock = 1.0 + rng.choice([-0.3, 0.3], (streams, DAYS, 1))
    p = expit(z)
    for units in ("row", "day"):
        yield f"dependent days, units={units}", p, n, p + (shock - 1.0) * p * (1.0 - p), p + 0.0 * day, units, None


def run(
    rng: np.random.Generator, streams: int, x: Any, n: Any, m: Any, mean: Any, units: str, change: int | None
) -> dict[str, Any]:
    """All looks of these streams: the share that ever leaves the truth, and the day on which half are found."""
    y = rng.binomial(n.astype(int), np.broadcast_to(m, (streams, DAYS, len(x)))).astype(float)
    t = np.arange(1, DAYS + 1)
    rows, total = n * t[:, None], n.sum() * t
    events, true = np.cumsum(y, axis=1), np.cumsum(n * mean, axis=0)
    plan = Foreseen.of(x, n, int(total[-1] // 2))
    w = plan.directions(x)
    planned = np.array(plan.rates) * plan.rows
    away = (events - true) @ w.T  # streams, days, directions: sums of w (y - m)
    terms = (y - n * x) @ w.T
    left: dict[str, Any] = {}
    paid: list[Any] = []
    ends = np.empty((DIRECTIONS + 1, streams, DAYS, 2))  # how far each sum is above and below 0
    levels = np.r_[np.full(3, ALPHA), ALPHA * anytime._SHARES[:-1], ALPHA * anytime._SHARES[-1]]
    for d in range(DIRECTIONS + 1):
        k = d if d < DIRECTIONS else 0
        if units == "row":
            each = anytime.row_costs(w[k : k + 1][0], x)
            costs = [(rows - events) @ zero + events @ one for zero, one in each]
        else:
            reach = [float(r @ n) for r in anytime.reaches(w[k], x)]
            costs = [np.cumsum(anytime.cost(terms[:, :, k], np.full((1,), r)), axis=1) for r in reach]
        if d < DIRECTIONS and units == "day":
            paid.append(np.array(costs))
        ends[d] = np.moveaxis(anytime.bounds(np.array(costs), anytime.two_sided(levels[d]), planned[k : k + 1]), 0, -1)
    once = 1.96 * np.sqrt((rows - events) @ (w**2 * x**2).T + events @ (w**2 * (1 - x) ** 2).T)
    held = (away <= ends[:DIRECTIONS, ..., 0].transpose(1, 2, 0)) & (
        -away <= ends[:DIRECTIONS, ..., 1].transpose(1, 2, 0)
    )
    for name, d in (("O/E, bias, offset", 0), ("Brier score", 1), ("log loss", 2)):
        left[name] = float((~held[..., d]).any(axis=1).mean())
        left[f"{name}, once"] = float((np.abs(away[..., d]) > once[..., d]).any(axis=1).mean())
    # slope: its directions and the number of events at the best logistic description of the truth
    true_fit = np.array([_fit(x, rows[i], true[i]) for i in range(DAYS)])
    found = {"O/E": (np.abs((events - rows * x) @ w[0]) > _side(ends[0], (events - rows * x) @ w[0]))}
    left["slope"] = float((~_inside(x, rows, events, w, ends, true_fit[:, :1], true_fit[:, 1])).any(axis=1).mean())
    fitted = np.array([offsets(x, rows[i], rows[i] @ x + np.zeros(1))[0] for i in range(DAYS)])
    tried = fitted[:, None] + np.linspace(-1.2, 1.2, 97)
    found["slope"] = ~_inside(x, rows, events, w, ends, tried, np.ones(DAYS))
    found["offset, published"], outside = _published(x, n, y, true)
    left["offset, published"] = float(outside.any(axis=1).mean())
    found["O/E, once"] = np.abs((events - rows * x) @ w[0]) > once[..., 0]
    left["ECE"] = _ece(x, n, rows, events, true, plan, y, units)
    bets, plain = _bets(x, n, y)
    if units == "day":
        day_costs = np.stack(paid, axis=3)  # sides, streams, days, directions, lambdas
        for i in range(DAYS):
            here = np.moveaxis(day_costs[:, :, i], 0, 2)
            sums = np.cumsum(terms, axis=1)[:, i]
            bets[:, i] = anytime.evidence(sums, here, np.broadcast_to(planned, (streams, DIRECTIONS)))
    found["alarm"] = bets >= np.log(1 / ALPHA)
    made: dict[str, Any] = {"ever leaves the truth": left}
    made["half are found on day"] = {name: _half(each) for name, each in found.items()}
    made["found by the last day"] = {name: float(each.any(axis=1).mean()) for name, each in found.items()}
    width = (ends[..., 0] + ends[..., 1])[:, :, DAYS // 2 - 1].mean(axis=1)
    made["width beside once at the planned rows"] = {
        name: round(float(width[d] / (2 * once[:, DAYS // 2 - 1, d].mean())), 2)
        for name, d in (("O/E, bias, offset", 0), ("Brier score", 1), ("log loss", 2))
    }
    if change is not None:
        sets = [changes(each, ALPHA) for each in plain]
        made["dates"] = {
            "hold the day of the change": float(np.mean([each[change] for each in sets])),
            "median number of days": float(np.median([each.sum() for each in sets])),
        }
    return made


def _side(ends: Any, away: Any) -> Any:
    return np.where(away > 0, ends[..., 0], ends[..., 1])


def _half(found: Any) -> int | None:
    """The day by which half of the streams have been found."""
    first = np.where(found.any(axis=1), found.argmax(axis=1) + 1, DAYS + 1)
    day = int(np.sort(first)[len(first) // 2])
    return day if day <= DAYS else None


def _fit(x: Any, rows: Any, true: Any) -> tuple[float, float]:
    a, b, z = 0.0, 1.0, logit(x)
    for _ in range(30):
        p = expit(a + b * z)
        v, off = rows * p * (1 - p), true - rows * p
        step = np.linalg.solve([[v.sum(), v @ z], [v @ z, v @ z**2]], [off.sum(), off @ z])
        a, b = a + step[0], b + step[1]
    return a, b


def _inside(x: Any, rows: Any, events: Any, w: Any, ends: Any, intercepts: Any, slopes: Any) -> Any:
    """Whether any of the intercepts (days, some) is allowed with the slope of the day."""
    use, at = [*range(3, DIRECTIONS), 0], [*range(3, DIRECTIONS), DIRECTIONS]
    made = np.zeros(events.shape[:2], dtype=bool)
    for i in range(DAYS):
        p = expit(intercepts[i][:, None] + slopes[i] * logit(x))
        away = (events[:, i] @ w[use].T)[:, None] - (p * rows[i]) @ w[use].T
        above, below = (ends[at, :, i, side].T[:, None] for side in (0, 1))
        made[:, i] = ((away <= above) & (-away <= below)).all(axis=2).any(axis=1)
    return made


def _published(x: Any, n: Any, y: Any, true: Any) -> tuple[Any, Any]:
    """Whether an offset of 0, and the true one, lie outside the published interval on each day."""
    z, streams = logit(x), len(y)

    def ll(a: Any, ones: Any, rows: Any) -> Any:
        odds = z + np.asarray(a)[..., None]
        return (ones * odds).sum(axis=-1) - (rows * np.logaddexp(0.0, odds)).sum(axis=-1)

    plug, mix, zero, estimate = np.zeros(streams), np.zeros((streams, len(GRID))), np.zeros(streams), np.zeros(streams)
    out = np.zeros((2, streams, y.shape[1]), dtype=bool)
    ones = np.zeros((streams, len(x)))
    for i in range(y.shape[1]):
        plug += ll(estimate, y[:, i], n)
        mix += np.stack([ll(np.full(streams, g), y[:, i], n) for g in GRID], axis=1)
        ones += y[:, i]
        rows = n * (i + 1)
        zero = ll(np.zeros(streams), ones, rows)
        numerator = np.logaddexp(plug, logsumexp(mix, axis=1) - np.log(len(GRID))) - np.log(2.0)
        truth = offsets(x, rows, np.array([true[i].sum()]))[0]
        out[0, :, i] = numerator - zero >= np.log(1 / ALPHA)
        out[1, :, i] = numerator - ll(np.full(streams, truth), ones, rows) >= np.log(1 / ALPHA)
        estimate = offsets(x, rows, np.clip(ones.sum(axis=1), 0.5, rows.sum() - 0.5))
    return out[0], out[1]


def _ece(x: Any, n: Any, rows: Any, events: Any, true: Any, plan: Any, y: Any, units: str) -> float:
    """The share of streams whose interval of the ECE ever leaves that of the true probabilities."""
    bins = (np.ceil(x * 15)[:, None] == np.arange(1, 16)) * 1.0
    used, most = (bins.sum(axis=0) > 0).sum(), np.maximum(x, 1 - x)
    if units == "row":
        costs = (rows - events) @ anytime.cost(x, most) + events @ anytime.cost(1 - x, most)
    else:
        costs = np.cumsum(anytime.cost(np.abs((y - n * x) @ bins).sum(axis=2), np.full((1,), most @ n)), axis=1)
    away = anytime.bounds(
        costs, np.asarray(np.log(1 / ALPHA) + used * np.log(2)), plan.rates[0] * np.full(1, plan.rows)
    )
    seen, real = (np.abs((sums - rows * x) @ bins).sum(axis=-1) for sums in (events, true))
    return float((np.abs(seen - real) > away).any(axis=1).mean())


def _bets(x: Any, n: Any, y: Any) -> tuple[Any, Any]:
    """The log e-value on each day, and the log ratios of the plain alternatives."""
    a = np.array(ALTERNATIVES)
    odds = a[:, :1] + a[:, 1:2] * np.log(x) - a[:, 2:] * np.log1p(-x)
    log1, log0 = -np.logaddexp(0, -odds) - np.log(x), -np.logaddexp(0, odds) - np.log1p(-x)
    bets, log_e, plain = Bets(len(y)), np.empty(y.shape[:2]), np.empty((*y.shape[:2], len(PLAIN)))
    for i in range(y.shape[1]):
        bets.look()
        ratios = y[:, i] @ log1.T + (n - y[:, i]) @ log0.T
        log_e[:, i], plain[:, i] = bets.add(ratios), ratios[:, PLAIN]
    return log_e, plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    begun, rng = time.process_time(), np.random.default_rng(70)
    found: dict[str, Any] = {"streams of each kind": asked.streams, "days": DAYS, "kinds": {}}
    for name, x, n, m, mean, units, change in kinds(rng, asked.streams):
        found["kinds"][name] = {"rows a day": int(n.sum()), **run(rng, asked.streams, x, n, m, mean, units, change)}
        print(name, json.dumps(found["kinds"][name]), flush=True)
    found["CPU seconds"] = round(time.process_time() - begun)
    print(found["CPU seconds"])
    if asked.save:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
