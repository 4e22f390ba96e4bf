"""Slow literal versions of the ways to correct a model's measures: loops over rows written out, no library.

``fit(X, y)`` returns a function of X that gives probabilities; ``draws`` are lists of row numbers, repeated as drawn.
"""

from __future__ import annotations

import math


def brier(y, p):
    return sum((p[i] - y[i]) ** 2 for i in range(len(y))) / len(y)


def log_loss(y, p):
    return sum(-math.log(p[i] if y[i] == 1 else 1 - p[i]) for i in range(len(y))) / len(y)


def auroc(y, p):
    pairs = [(p[i], p[j]) for i in range(len(y)) for j in range(len(y)) if y[i] == 1 and y[j] == 0]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)


def observed_over_expected(y, p):
    return sum(y) / sum(p)


def ece(y, p, n_bins=15):
    total = 0.0
    for b in range(n_bins):
        rows = [
            i for i in range(len(y)) if b == min(math.ceil(p[i] * n_bins) - 1, n_bins - 1) or (b == 0 and p[i] == 0)
        ]
        total += abs(sum(y[i] - p[i] for i in rows))
    return total / len(y)


def slope(y, p):
    """Newton's method for the two numbers of a logistic regression on the log odds."""
    z = [math.log(q / (1 - q)) for q in p]
    a, b = 0.0, 1.0
    for _ in range(500):
        m = [1 / (1 + math.exp(-(a + b * t))) for t in z]
        v = [q * (1 - q) for q in m]
        ga, gb = sum(y[i] - m[i] for i in range(len(y))), sum((y[i] - m[i]) * z[i] for i in range(len(y)))
        aa, ab = sum(v), sum(v[i] * z[i] for i in range(len(y)))
        bb = sum(v[i] * z[i] ** 2 for i in range(len(y)))
        det = aa * bb - ab * ab
        steps = ((bb * ga - ab * gb) / det, (aa * gb - ab * ga) / det)
        short = min(1.0, 0.5 / max(abs(steps[0]), abs(steps[1]), 1e-300))  # a whole step may overshoot on few rows
        a, b = a + short * steps[0], b + short * steps[1]
        if max(map(abs, steps)) < 1e-13:
            break
    return b


def taken(x, rows):
    return [x[i] for i in rows]


def optimism(metric, fit, X, y, draws):
    """Harrell: apparent - mean over b of (refit b on sample b, less refit b on all rows)."""
    apparent = metric(y, fit(X, y)(X))
    excess = []
    for rows in draws:
        predict = fit(taken(X, rows), taken(y, rows))
        excess.append(metric(taken(y, rows), predict(taken(X, rows))) - metric(y, predict(X)))
    return apparent - sum(excess) / len(excess)


def outside_value(metric, fit, X, y, draws):
    values = []
    for rows in draws:
        out = [i for i in range(len(y)) if i not in rows]
        predict = fit(taken(X, rows), taken(y, rows))
        values.append(metric(taken(y, out), predict(taken(X, out))))
    return sum(values) / len(values)


def point_632(metric, fit, X, y, draws):
    inside = 1 - math.exp(-1)
    return (1 - inside) * metric(y, fit(X, y)(X)) + inside * outside_value(metric, fit, X, y, draws)


def point_632_plus(metric, fit, X, y, draws):
    inside = 1 - math.exp(-1)
    p = fit(X, y)(X)
    apparent, out = metric(y, p), outside_value(metric, fit, X, y, draws)
    pairs = [(y[i], p[j]) for i in range(len(y)) for j in range(len(y))]  # every outcome with every prediction
    no_information = metric([a for a, _ in pairs], [b for _, b in pairs])
    if (out - apparent) * (no_information - apparent) <= 0:
        rate = 0.0
    else:
        rate = min((out - apparent) / (no_information - apparent), 1.0)
    if rate == 1.0:
        out = no_information
    if rate == 0.0 and no_information > apparent:
        out = min(out, no_information)
    if rate == 0.0 and no_information < apparent:
        out = max(out, no_information)
    weight = inside / (1 - (1 - inside) * rate)
    return (1 - weight) * apparent + weight * out


def cross_validation(metric, fit, X, y, repeats):
    """Predictions of all folds of a repeat pooled, the metric of each repeat, and their mean."""
    values = []
    for folds in repeats:
        p = [None] * len(y)
        for held in folds:
            rest = [i for i in range(len(y)) if i not in held]
            predicted = fit(taken(X, rest), taken(y, rest))(taken(X, held))
            for i, q in zip(held, predicted, strict=True):
                p[i] = q
        values.append(metric(y, p))
    return sum(values) / len(values)
