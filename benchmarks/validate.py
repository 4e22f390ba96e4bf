"""How often the intervals of a validation hold the true value of the model on new rows, and what 200 refits cost.

``python benchmarks/validate.py coverage`` simulates a logistic regression of 5 or 20 predictors on 300 or 1,000 rows
and counts, for each measure, in how many samples the interval holds the true value of this very model.
``python benchmarks/validate.py cost`` times 200 refits of scikit-learn's logistic regression, refitting and measuring
apart. ``python benchmarks/validate.py rms`` compares with the golden values of R. Results stand in ``validate.json``.
Many models are refitted at a time, with PyTorch on a GPU where there is one.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import alpha_of, means, quantiles
from calibrary.inference.result import ConfidenceInterval
from calibrary.validation.corrections import of_errors

HERE = Path(__file__).parent
CELLS = ((300, 5), (300, 20), (1000, 5), (1000, 20))
MEASURES = ("Brier score", "log loss", "AUROC", "calibration slope", "calibration intercept", "O/E")
#: How errors of refits depend on the strength of the model, as the entries of these measures say it.
LAWS = ("", "", "logit", "signal", "", "")
#: The log odds of the event have this mean and spread: 31% events, an AUROC of about 0.79.
MEAN, SPREAD = -1.0, 1.3
NODES = 4096
#: So many samples of every size are drawn before a partial table is stored.
BATCH = 50
#: A Newton step so small is the last one.
CONVERGED = 1e-8


def shifted(apparent: Array, training: Array, test: Array, level: float) -> ConfidenceInterval:
    """The interval of Noma and others: that of the apparent value, shifted by the optimism.

    Its width is 0 if the apparent values are constant, such as the slope of a maximum likelihood fit.
    """
    tail = alpha_of(level) / 2.0
    move = means(training - test)
    ends = np.array([quantiles(column, [tail, 1.0 - tail]) for column in training.T]).reshape(-1, 2)
    return ConfidenceInterval(ends[:, 0] - move, ends[:, 1] - move)


class Many:
    """Sums over many models at a time, of numpy or of PyTorch."""

    def __init__(self, device: str = "cpu") -> None:
        self.torch: Any = None
        if device != "cpu":
            import torch

            self.torch, self.device = torch, device

    def array(self, x: Any) -> Any:
        return np.asarray(x) if self.torch is None else self.torch.as_tensor(x, device=self.device)

    def back(self, x: Any) -> Any:
        return np.asarray(x) if self.torch is None else x.cpu().numpy()

    @property
    def xp(self) -> Any:
        return np if self.torch is None else self.torch

    def expit(self, x: Any) -> Any:
        return 1.0 / (1.0 + self.xp.exp(-x))

    def fit(self, X: Any, y: Any, w: Any, start: Any = 0.0, steps: int = 12) -> Any:
        """Maximum likelihood of many logistic regressions: X (N, P), y (.., N), w (M, N); NaN where it diverges."""
        xp = self.xp
        b = self.array(np.zeros((w.shape[0], X.shape[-1]))) + start
        ridge = 1e-10 * self.array(np.eye(X.shape[-1]))
        pairs = (X[..., :, None] * X[..., None, :]).reshape(*X.shape[:-1], -1)
        for _ in range(steps):
            p = self.expit(b @ X.T)
            gradient = (w * (y - p)) @ X
            hessian = ((w * p * (1.0 - p)) @ pairs).reshape(len(b), X.shape[1], X.shape[1]) + ridge
            step = xp.linalg.solve(hessian, gradient[..., None])[..., 0]
            b = b + xp.clip(step, -5.0, 5.0)
            if abs(step).max() < CONVERGED:
                break
        wrong = (abs(b).max(1) if self.torch is None else abs(b).max(1).values) > 40.0
        b[wrong] = math.nan
        return b

    def fit_line(self, z: Any, y: Any, w: Any, steps: int = 15) -> Any:
        """Intercept and slope of many logistic regressions on their own log odds z (M, N)."""
        a, b = self.array(np.zeros(len(z))), self.array(np.ones(len(z)))
        for _ in range(steps):
            p = self.expit(a[:, None] + b[:, None] * z)
            r, v = w * (y - p), w * p * (1.0 - p)
            ga, gb, aa = r.sum(1), (r * z).sum(1), v.sum(1)
            ab, bb = (v * z).sum(1), (v * z * z).sum(1)
            det = aa * bb - ab * ab
            to_a, to_b = (bb * ga - ab * gb) / det, (aa * gb - ab * ga) / det
            a, b = a + to_a, b + to_b
            if max(abs(to_a).max(), abs(to_b).max()) < CONVERGED:
                break
        return a, b

    def measures(self, z: Any, y: Any, w: Any) -> Any:
        """The six measures of many models with log odds z (M, N), labels or chances y, weights w (M, N) or (1, N)."""
        xp = self.xp
        p = self.expit(z)
        y, w = y + 0.0 * z, w + 0.0 * z
        total = w.sum(1)
        brier = (w * (y * (1.0 - p) ** 2 + (1.0 - y) * p**2)).sum(1) / total
        loss = (w * (y * xp.logaddexp(-z, 0.0 * z) + (1.0 - y) * xp.logaddexp(z, 0.0 * z))).sum(1) / total
        order = xp.argsort(z, axis=1) if self.torch is None else xp.argsort(z, dim=1)
        take = np.take_along_axis if self.torch is None else self.torch.take_along_dim
        one, none = take(w * y, order, 1), take(w * (1.0 - y), order, 1)
        below = xp.cumsum(none, 1) - 0.5 * none
        area = (one * below).sum(1) / (one.sum(1) * none.sum(1))
        intercept, slope = self.fit_line(z, y, w)
        return xp.stack([brier, loss, area, slope, intercept, (w * y).sum(1) / (w * p).sum(1)], 1)


def nodes() -> Any:
    """Points of two independent normal variables, evenly spread: what a model and the truth are functions of."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    return ndtri(qmc.Sobol(2, seed=1).random(NODES))


def truth(many: Many, b: Any, beta: Any, points: Any) -> Any:
    """The measures of a fitted model in the population of normal predictors."""
    size = float(np.linalg.norm(beta))
    along = float(b[1:] @ beta) / size
    across = math.sqrt(max(float(b[1:] @ b[1:]) - along**2, 0.0))
    chance = 1.0 / (1.0 + np.exp(-(MEAN + size * points[:, 0])))
    z = b[0] + along * points[:, 0] + across * points[:, 1]
    ones = np.ones((1, len(z)))
    return many.back(many.measures(many.array(z[None]), many.array(chance[None]), many.array(ones)))[0]


def counts(rng: Any, n: int, draws: int) -> Any:
    return rng.multinomial(n, np.full(n, 1.0 / n), size=draws).astype(np.float64)


def one_sample(many: Many, n: int, k: int, draws: int, rng: Any) -> dict[str, Any] | None:
    """A sample, its model, the model's true values, and each interval of them."""
    beta = np.full(k, SPREAD / math.sqrt(k))
    x = rng.normal(size=(n, k))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-(MEAN + x @ beta)))).astype(np.float64)
    X, labels = many.array(np.column_stack([np.ones(n), x])), many.array(y)
    whole = many.array(np.ones((1, n)))
    b = many.fit(X, labels, whole)
    apparent = many.back(many.measures(b @ X.T, labels, whole))[0]
    drawn = many.array(counts(rng, n, draws))
    z = many.fit(X, labels, drawn, start=b) @ X.T
    training, test = many.back(many.measures(z, labels, drawn)), many.back(many.measures(z, labels, whole))
    true = truth(many, many.back(b)[0], beta, nodes_once())
    known = np.isfinite(training).all(1) & np.isfinite(test).all(1)
    if not np.isfinite(apparent).all() or known.sum() < 0.5 * draws:
        return None
    training, test = training[known], test[known]
    corrected = apparent - (training - test).mean(0)
    found: dict[str, Any] = {
        "of errors": of_errors(apparent, training, test, 0.95, LAWS),
        "of errors, plain": of_errors(apparent, training, test, 0.95),
        "shifted": shifted(apparent, training, test, 0.95),
    }
    spread = 1.96 * (training - test).std(0, ddof=1)
    found["normal"] = (corrected - spread, corrected + spread)
    return {"ends": found, "true": true, "corrected": corrected, "apparent": apparent}


_NODES: list[Any] = []


def nodes_once() -> Any:
    if not _NODES:
        _NODES.append(nodes())
    return _NODES[0]


def coverage(
    samples: int, draws: int, seed: int, device: str, cells: Any = CELLS, keep: Any = None
) -> list[dict[str, Any]]:
    """For each size, method and measure: how many intervals held the true value, and their mean width.

    The samples of every size are drawn in batches, and ``keep`` gets the table after each batch.
    """
    many, rows = Many(device), []
    kept: dict[Any, list[Any]] = {cell: [] for cell in cells}
    for drawn in range(0, samples, BATCH):
        for n, k in cells:
            rng = np.random.default_rng([seed, n, k, drawn])
            kept[n, k] += [one_sample(many, n, k, draws, rng) for _ in range(min(BATCH, samples - drawn))]
        rows = [row for cell, made in kept.items() for row in summary(*cell, draws, seed, made)]
        if keep is not None:
            keep(rows)
    return rows


def summary(n: int, k: int, draws: int, seed: int, made: list[Any]) -> list[dict[str, Any]]:
    """The rows of one size: coverage, width, and the error of the corrected value."""
    kept = [m for m in made if m is not None]
    rows = []
    for method in kept[0]["ends"]:
        for j, measure in enumerate(MEASURES):
            ends = np.array([[m["ends"][method][0][j], m["ends"][method][1][j]] for m in kept])
            true = np.array([m["true"][j] for m in kept])
            gap = np.array([m["corrected"][j] for m in kept]) - true
            below, above = int((true < ends[:, 0]).sum()), int((true > ends[:, 1]).sum())
            share = 1.0 - (below + above) / len(kept)
            rows.append(
                {
                    "n": n, "predictors": k, "method": method, "measure": measure, "samples": len(kept),
                    "failed": len(made) - len(kept), "draws": draws, "seed": seed,
                    "held": len(kept) - below - above, "below": below, "above": above, "coverage": round(share, 4),
                    "error": round(math.sqrt(share * (1.0 - share) / len(kept)), 4),
                    "width": round(float((ends[:, 1] - ends[:, 0]).mean()), 4),
                    "bias_of_corrected": round(float(gap.mean()), 4),
                    "spread_of_corrected": round(float(gap.std()), 4),
                }
            )  # fmt: skip
    return rows


def cost(n_resamples: int = 200) -> list[dict[str, Any]]:
    """Seconds of CPU of refitting and of measuring, for a logistic regression without penalty."""
    from sklearn.linear_model import LogisticRegression

    import calibrary as cal

    rows = []
    for n, k in CELLS:
        rng = np.random.default_rng(n)
        x = rng.normal(size=(n, k))
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-(MEAN + SPREAD / math.sqrt(k) * x.sum(1))))).astype(int)
        found = cal.validate(LogisticRegression(C=np.inf), x, y, n_resamples=n_resamples, rng=0)
        began = time.process_time()
        _ = found.curve, found.instability
        rows.append(
            {
                "n": n, "predictors": k, "refits": found.n_refits, "refitting_s": round(found.seconds_refitting, 2),
                "measuring_s": round(found.seconds_measuring, 2), "curve_s": round(time.process_time() - began, 2),
            }
        )  # fmt: skip
        print(*rows[-1].values(), flush=True)
    return rows


def rms(n_resamples: int = 2000, seed: int = 1) -> list[dict[str, Any]]:
    """Apparent value, optimism and corrected value beside those of R's rms, with the Monte Carlo error of our mean."""
    import calibrary as cal

    golden = HERE.parent / "tests" / "reference" / "validate"
    theirs = json.loads((golden / "rms.json").read_text())
    table = np.loadtxt(golden / "clinical300.csv", delimiter=",", skiprows=1)
    metrics = ["calibration slope", "calibration intercept", "bs", "auroc"]
    found = cal.validate(
        logistic, table[:, :-1], table[:, -1].astype(int), metrics=metrics, n_resamples=n_resamples, rng=seed
    )
    rows = []
    for name, word, factor in (
        *zip(metrics, ("Slope", "Intercept", "Brier", "Dxy"), (1, 1, 1, 2), strict=True),
        ("emax_logistic", "Emax", 1),
    ):
        row, of_r = found[name], [theirs[each][word] for each in ("seed1", "seed2")]
        less = 1.0 if word == "Dxy" else 0.0
        rows.append(
            {
                "measure": name, "apparent": round(factor * row.apparent - less, 5),
                "optimism": round(factor * row.optimism, 5), "corrected": round(factor * row.corrected - less, 5),
                "optimism_of_r": [round(float(values[3]), 5) for values in of_r],
                "corrected_of_r": [round(float(values[4]), 5) for values in of_r],
            }
        )  # fmt: skip
        print(*rows[-1].values(), flush=True)
    return rows


def logistic(X: Any, y: Any) -> Any:
    """Maximum likelihood without penalty, as a function model."""
    many = Many()

    def columns(x: Any) -> Any:
        return np.column_stack([np.ones(len(x)), x])

    b = many.fit(columns(X), np.asarray(y, dtype=np.float64), np.ones((1, len(y))), steps=25)[0]
    return lambda new: many.expit(columns(new) @ b)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "cost", "rms"])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=HERE / "validate.json")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    def keep(found: Any) -> None:
        stored = json.loads(given.output.read_text()) if given.output.exists() else {}
        given.output.write_text(json.dumps({**stored, given.what: found}, indent=1) + "\n")

    if given.what == "cost":
        keep(cost())
    elif given.what == "rms":
        keep(rms())
    else:
        coverage(given.samples, given.draws, given.seed, given.device, keep=keep)


if __name__ == "__main__":
    main()
