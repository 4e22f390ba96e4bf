"""The slow literal definition of every metric: one function per id of the catalogue, under the name of that id.

Written from the formulas, as loops and sums to be read beside them. Nothing here is fast, and nothing but the stream of
random numbers that a seed names comes from the library, so that it can be held against it: ``value("ece", y, p)`` looks
at the data as the metric does when no lens is named, ``ece(y, c)`` is the formula itself. Rows count one each: a weight
is tested by writing the row that often. Only where a metric counts rows apart from their weight does its definition
take weights ``w``.

``DEFINITIONS`` maps each id to its :class:`Definition`: what the function takes, through which lens several classes
become pairs, how closely the library must agree and, where that is not to the last digits, why.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from calibrary.numerics.draw import generator as stream  # which random numbers a seed gives is no part of a formula

# -- the table ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Definition:
    """What is needed to hold a metric to its definition.

    Attributes
    ----------
    function : the formula
    sees : what it takes: "pairs" (labels 0 and 1, confidences), "entries" (targets and probabilities of any shape),
        "vectors" (labels and one probability per class), "rows" (labels and what the user gave: one probability or
        one per class) or "detections" (scores and outcomes)
    lens : how several classes become pairs
    full : the formula for whole vectors, of a metric that otherwise sees pairs
    averaged : are the classes of a lens averaged, or is the answer one value for each
    power : of the mean over classes; "norm" is that of the option
    least, most : rows it needs, and rows beyond which it takes too long
    rtol, atol, why : how closely the metric must agree, and why not to the last digits
    """

    function: Callable[..., Any]
    sees: str
    lens: str = "full"
    full: Callable[..., Any] | None = None
    averaged: bool = True
    power: float | str = 1
    least: int = 1
    most: int = 10**9
    rtol: float = 1e-9
    atol: float = 1e-11
    why: str = ""
    two: str = "binary"  # the lens of one probability, unless another is requested

    @property
    def defaults(self) -> dict[str, Any]:
        """The keywords it honours, as the metric spells them, and what they are when not given."""
        found = list(inspect.signature(self.function).parameters.values())[2:]
        return {v.name: v.default for v in found if v.kind is not v.VAR_KEYWORD}

    @property
    def options(self) -> tuple[str, ...]:
        """The keywords it honours by name; a fitted map takes further ones."""
        return tuple(self.defaults)

    @property
    def takes_any(self) -> bool:
        """Does it hand further keywords on to a map?"""
        return any(v.kind is v.VAR_KEYWORD for v in inspect.signature(self.function).parameters.values())


DEFINITIONS: dict[str, Definition] = {}


def defines(sees: str, lens: str = "full", **facts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the function below as the definition of the metric that has its name."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        DEFINITIONS[function.__name__] = Definition(function, sees, lens, **facts)
        return function

    return enter


def defines_vectors(id: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the function below as what the metric is for whole probability vectors."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        DEFINITIONS[id] = replace(DEFINITIONS[id], full=function)
        return function

    return enter


def value(id: str, y: Any, p: Any, /, lens: str | None = None, **options: Any) -> Any:
    """What the definition gives for labels and probabilities, seen as the metric sees them by default.

    Over the classes of a lens it is the plain mean, or the mean of a power of the values.
    """
    d = DEFINITIONS[id]
    y, p = np.asarray(y), np.asarray(p, dtype=float)
    if lens is not None and d.sees != "pairs":
        raise ValueError(f"the definition of {id} takes {d.sees}: there is no lens={lens!r}")
    if d.sees == "rows":
        return d.function(y, p, **options)
    if d.sees == "vectors":
        return d.function(y, columns(p), **options)
    if d.sees == "entries":
        target = options.pop("soft_target", y if p.ndim == 1 else one_hot(y, p.shape[1]))
        return d.function(target, p, **options)
    if lens == "full" and d.full is not None:
        return d.full(y, columns(p), **options)
    if p.ndim == 1 and (lens or d.two) == "binary":
        return d.function(y, p, **options)
    values = [d.function(*pairs, **options) for pairs in LENSES[lens or d.lens](y, columns(p))]
    if (lens or d.lens) == "top-label" or not d.averaged:
        return values[0] if len(values) == 1 else values
    norm = {**d.defaults, **options}["norm"] if d.power == "norm" else d.power
    return max(values) if norm == math.inf else np.mean(np.power(values, norm)) ** (1 / norm)


# -- labels, columns, lenses -------------------------------------------------------------------------


def columns(p: Any) -> Any:
    """One probability per class: P(class 1) becomes the two columns (1 - c, c)."""
    return p if p.ndim == 2 else np.array([[1 - c, c] for c in p])


def one_hot(y: Any, k: int) -> Any:
    return np.array([[float(label == j) for j in range(k)] for label in y])


def targets(y: Any, p: Any, soft_target: Any = None) -> Any:
    """The one-hot labels, or the targets given in their place."""
    given = y if soft_target is None and np.ndim(y) == 2 else soft_target
    return one_hot(y, p.shape[1]) if given is None else columns(np.asarray(given, dtype=float))


def predicted(p: Any) -> Any:
    """The class of largest probability; of equal ones the first."""
    return np.array([max(range(len(row)), key=lambda k: (row[k], -k)) for row in p])


def top_label(y: Any, p: Any) -> list[tuple[Any, Any]]:
    top = predicted(p)
    return [((top == y).astype(int), np.array([max(row) for row in p]))]


def class_wise(y: Any, p: Any) -> list[tuple[Any, Any]]:
    return [((y == k).astype(int), p[:, k]) for k in range(p.shape[1])]


def true_class(y: Any, p: Any) -> list[tuple[Any, Any]]:
    [(right, confidence)] = top_label(y, p)
    return [(right[y == k], confidence[y == k]) for k in range(p.shape[1]) if (y == k).any()]


def predicted_class(y: Any, p: Any) -> list[tuple[Any, Any]]:
    [(right, confidence)] = top_label(y, p)
    top = predicted(p)
    return [(right[top == k], confidence[top == k]) for k in range(p.shape[1]) if (top == k).any()]


LENSES = {
    "top-label": top_label, "class-wise": class_wise, "true-class": true_class, "predicted-class": predicted_class,
}  # fmt: skip


# == points ==========================================================================================


def true_probability(y: Any, p: Any) -> list[float]:
    """c_y: what was given to the class that occurred."""
    return [float(p[i, y[i]]) for i in range(len(y))]


def log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def x_log_x(x: float) -> float:
    """Zero at zero."""
    return x * math.log(x) if x > 0 else 0.0


def mean(values: Any) -> float:
    return math.fsum(values) / len(values) if np.isfinite(values).all() else float(np.mean(values))


@defines("vectors")
def bs(y, p, scale="1/K", soft_target=None):
    t = targets(y, p, soft_target)
    n, k = p.shape
    factor = {"1/K": 1 / k, "sum": 1.0, "half": 0.5}[scale]
    return factor * mean([sum((p[i, j] - t[i, j]) ** 2 for j in range(k)) for i in range(n)])


@defines("vectors")
def rbs(y, p, scale="1/K", soft_target=None):
    return math.sqrt(bs(y, p, scale, soft_target))


@defines("vectors")
def stratified_bs(y, p, scale="1/K"):
    """The Brier score of the rows of each class; undefined without rows."""
    return [bs(y[y == k], p[y == k], scale) if (y == k).any() else math.nan for k in range(p.shape[1])]


@defines("vectors")
def nll(y, p, scale="sum", base=math.e, eps=0.0, soft_target=None):
    t = targets(y, p, soft_target)
    p = np.clip(p, eps, 1 - eps)
    n, k = p.shape
    rows = [sum(-t[i, j] * log(p[i, j]) for j in range(k) if t[i, j] > 0) for i in range(n)]
    return mean(rows) / math.log(base) / (k if scale == "1/K" else 1)


@defines("vectors")
def fl(y, p, gamma=2.0, alpha=None, scale="sum", eps=0.0):
    k = p.shape[1]
    c = true_probability(y, np.clip(p, eps, 1 - eps))
    if alpha is None:
        factor = [1.0] * k
    else:
        factor = [1 - alpha, alpha] if np.ndim(alpha) == 0 else list(alpha)
    rows = []
    for i, label in enumerate(y):
        if isinstance(gamma, str):  # "flsd-53"
            power = 5.0 if c[i] < 0.2 else 3.0
        else:
            power = gamma if np.ndim(gamma) == 0 else gamma[i]
        rows.append(-factor[label] * (1 - c[i]) ** power * log(c[i]) if factor[label] > 0 else 0.0)
    return mean(rows) / (k if scale == "1/K" else 1)


@defines("vectors")
def dual_fl(y, p, gamma=2.0, definition="authors", eps=0.0):
    """Only what the logarithm sees is limited by eps."""
    rows = []
    for row, c in zip(p, true_probability(y, p), strict=True):
        if definition == "authors":  # the largest probability strictly below that of the true class
            factor = 1 - c + max((x for x in row if x < c), default=0.0)
        else:
            first, second = sorted(row)[:-3:-1]
            factor = 1 - first + second
        rows.append(-(factor**gamma) * log(min(max(c, eps), 1 - eps)) if factor > 0 else 0.0)
    return mean(rows)


@defines("vectors")
def fcl(y, p, gamma=2.0, lam=1.0, alpha=None, eps=0.0, soft_target=None):
    if soft_target is None:
        return fl(y, p, gamma, alpha, eps=eps) + lam * bs(y, p, "sum")
    focal = drawn(fl, soft_target, p, gamma=gamma, alpha=alpha, eps=eps)
    return focal + lam * bs(y, p, "sum", soft_target)


@defines("vectors")
def ecd(y, p, eps=0.0):
    """Surprise less expected surprise."""
    p = np.clip(p, eps, 1 - eps)
    surprise = [-log(c) for c in true_probability(y, p)]
    return mean([s + sum(x_log_x(x) for x in row) for s, row in zip(surprise, p, strict=True)])


@defines("vectors")
def gsb(y, p, scale="1/K"):
    k = p.shape[1]
    total = sum((mean(p[:, j]) - mean(y == j)) ** 2 for j in range(k))
    return total / (k if scale == "1/K" else 1)


@defines("vectors")
def mdca(y, p):
    k = p.shape[1]
    return sum(abs(mean(p[:, j]) - mean(y == j)) for j in range(k)) / k


@defines("pairs", "top-label")
def eo(y, c, inverse=False):
    expected, observed = math.fsum(c), float(sum(y))
    if inverse:
        expected, observed = observed, expected
    if observed == 0:
        return math.nan if expected == 0 else math.inf
    return expected / observed


@defines("pairs", "top-label")
def oe(y, c):
    return eo(y, c, inverse=True)


@defines("vectors")
def sr(y, p, cost=None, cost_proportion=None):
    """Acts of least expected cost share; without costs the classes of largest probability."""
    if cost_proportion is not None:
        cost = [[0, 2 * cost_proportion], [2 * (1 - cost_proportion), 0]]
    rows = []
    for label, row in zip(y, p, strict=True):
        if cost is None:
            best = [k for k in range(len(row)) if row[k] == max(row)]
            rows.append((label in best) / len(best))
            continue
        expected = [sum(row[k] * cost[k][act] for k in range(len(row))) for act in range(len(cost[0]))]
        slack = 1e-12 * np.abs(cost).max()
        best = [act for act, e in enumerate(expected) if e <= min(expected) + slack]
        rows.append(1 - mean([cost[label][act] for act in best]))
    return mean(rows)


@defines("vectors")
def misclassification_loss(y, p, cost=None, cost_proportion=None):
    return 1 - sr(y, p, cost, cost_proportion)


def mahalanobis(target: Any, row: Any) -> tuple[float, float]:
    """(y-c)' S^-1 (y-c) and log det S, S = diag(c) - cc' without the last class of positive probability."""
    kept = [k for k in range(len(row)) if row[k] > 0][:-1]
    c = row[kept]
    gap = np.array([target[k] for k in kept]) - c
    cov = np.diag(c) - np.outer(c, c)
    return float(gap @ np.linalg.solve(cov, gap)) if kept else 0.0, float(np.linalg.slogdet(cov)[1]) if kept else 0.0


@defines("vectors")
def dss(y, p, eps=0.0, soft_target=None):
    p = np.clip(p, eps, 1 - eps)
    rows = []
    for target, row in zip(targets(y, p, soft_target), p, strict=True):
        if any(t > 0 and c == 0 for t, c in zip(target, row, strict=True)):
            rows.append(math.inf)
        elif min(row) == 0:  # the determinant vanishes
            rows.append(-math.inf)
        else:
            rows.append(sum(mahalanobis(target, row)))
    return mean(rows)


@defines("vectors")
def nses(y, p, eps=0.0, soft_target=None):
    p = np.clip(p, eps, 1 - eps)
    rows = [
        math.inf if any(t > 0 and c == 0 for t, c in zip(target, row, strict=True)) else mahalanobis(target, row)[0]
        for target, row in zip(targets(y, p, soft_target), p, strict=True)
    ]
    return mean(rows) / (p.shape[1] - 1)


@defines("vectors")
def spiegelhalter(y, p, soft_target=None):
    """The Brier score less its expectation under the predictions, divided by its standard deviation."""
    score = lambda row, k: sum((row[j] - (j == k)) ** 2 for j in range(len(row)))  # noqa: E731
    excess = variance = 0.0
    for target, row in zip(targets(y, p, soft_target), p, strict=True):
        of_label = [score(row, k) for k in range(len(row))]
        expected = sum(row[k] * of_label[k] for k in range(len(row)))
        excess += sum(target[k] * of_label[k] for k in range(len(row))) - expected
        variance += sum(row[k] * (of_label[k] - expected) ** 2 for k in range(len(row)))
    if variance <= 4e-24 * len(y):
        return math.nan if abs(excess) <= 2e-12 * len(y) else math.copysign(math.inf, excess)
    return excess / math.sqrt(variance)


@defines("pairs", "top-label")
def eice(y, c, individual=None, loo=None, loo_residuals=None, coverage=0.9, clip=False):
    """The labels are not used."""
    if individual is None:
        loo, loo_residuals = np.asarray(loo), np.asarray(loo_residuals)
        upper = [np.quantile(loo[:, i] + loo_residuals, 1 - (1 - coverage) / 2) for i in range(len(c))]
        lower = [np.quantile(loo[:, i] - loo_residuals, (1 - coverage) / 2) for i in range(len(c))]
        if clip:
            upper, lower = np.clip(upper, 0, 1), np.clip(lower, 0, 1)
        individual = [(u + v) / 2 for u, v in zip(upper, lower, strict=True)]
    return mean([abs(c[i] - individual[i]) for i in range(len(c))])


def entries(loss: Callable[[float, float], float], t: Any, c: Any) -> float:
    """Mean of a loss over every target and the probability given to it."""
    return mean([loss(a, b) for a, b in zip(np.ravel(t), np.ravel(c), strict=True)])


@defines("entries")
def mae(t, c):
    return entries(lambda t, c: abs(t - c), t, c)


@defines("entries")
def pwe(t, c, norm=1.0):
    if norm == math.inf:
        return float(np.abs(t - c).max())
    return entries(lambda t, c: abs(t - c) ** norm, t, c) ** (1 / norm)


@defines("entries")
def l1eps(t, c, eps=1e-4):
    return entries(lambda t, c: math.sqrt((t - c) ** 2 + eps), t, c)


@defines("entries")
def hinge(t, c, variant="unit"):
    if variant == "raw":
        return entries(lambda t, c: max(0.0, 1 - (2 * t - 1) * c), t, c)
    factor = {"unit": 0.5, "standard": 1.0}[variant]
    return factor * entries(lambda t, c: max(0.0, 1 - (2 * t - 1) * (2 * c - 1)), t, c)


@defines("entries")
def huber(t, c, eps=0.1):
    return entries(lambda t, c: (t - c) ** 2 / (4 * eps) if abs(t - c) < 2 * eps else abs(t - c) - eps, t, c)


@defines("entries")
def silf(t, c, eps=0.2, beta=0.8):
    def loss(t: float, c: float) -> float:
        d = abs(t - c)
        if d < (1 - beta) * eps:
            return 0.0
        if d <= (1 + beta) * eps:
            return (d - (1 - beta) * eps) ** 2 / (4 * beta * eps)
        return d - eps

    return entries(loss, t, c)


@defines("entries")
def asymmetric_ls(t, c, under=2.0, over=1.0):
    return entries(lambda t, c: (under if t > c else over) * (t - c) ** 2, t, c)


@defines("pairs", "binary")
def general_ls(y, c, W=None):
    n = len(y)
    W = np.eye(n) / n if W is None else np.diag(W) if np.ndim(W) == 1 else W
    return math.fsum((y[i] - c[i]) * W[i][j] * (y[j] - c[j]) for i in range(n) for j in range(n))


@defines("vectors")
def pss(y, p, alpha=2.0, form="score"):
    norm = [sum(x**alpha for x in row) ** (1 / alpha) for row in p]
    score = mean([(c / m) ** (alpha - 1) for c, m in zip(true_probability(y, p), norm, strict=True)])
    return score if form == "score" else (1 - score) / (alpha - 1)


@defines("vectors")
def ps(y, p, alpha=2.0, form="score"):
    power = 1 if form == "literal" else alpha - 1
    c = true_probability(y, p)
    score = mean([(alpha - 1) * sum(x**alpha for x in row) - alpha * c[i] ** power for i, row in enumerate(p)])
    return (score + 1) / alpha if form == "unit" else score


@defines("vectors")
def pls(y, p, form="score"):
    return ps(y, p, 2.0, form)


@defines("pairs", "top-label")
def sf1(y, c):
    below = math.fsum(2 - c - y)
    return 2 * math.fsum((1 - c) * (1 - y)) / below if below > 0 else math.nan


def cumulative_gaps(y: Any, p: Any, soft_target: Any) -> list[list[float]]:
    """F_k - H_k of every row, k = 0..K-2: predicted and observed chance of a class up to k."""
    t = targets(y, p, soft_target)
    return [[sum(row[: k + 1]) - sum(hit[: k + 1]) for k in range(len(row) - 1)] for row, hit in zip(p, t, strict=True)]


@defines("vectors")
def rps(y, p, normalize=True, soft_target=None):
    k = p.shape[1]
    rows = [sum(g**2 for g in gaps) for gaps in cumulative_gaps(y, p, soft_target)]
    return mean(rows) / (k - 1 if normalize else 1)


@defines("vectors")
def sarps(y, p, definition="authors", soft_target=None):
    k = p.shape[1]
    rows = [sum(abs(g) for g in gaps) for gaps in cumulative_gaps(y, p, soft_target)]
    if definition == "review":
        return mean([r**2 for r in rows]) / (k - 1)
    return mean([(r / (k - 1)) ** 2 for r in rows])


def normal_density(t: float) -> float:
    return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)


def normal_share(t: float) -> float:
    """Chance of a standard normal number below t."""
    return math.erfc(-t / math.sqrt(2)) / 2


def survival_share(z: Any, k: int, eps: float, noise: str) -> float:
    """How often the k-th of the logits z is the largest when each gets noise of size eps."""
    from scipy.integrate import quad

    if z[k] == -math.inf:
        return 0.0
    others = [x for j, x in enumerate(z) if j != k and x > -math.inf]
    if noise == "gaussian":
        inner = lambda t: normal_density(t) * math.prod(normal_share(t + (z[k] - x) / eps) for x in others)  # noqa: E731
        return float(quad(inner, -12, 12, epsabs=1e-12, limit=200)[0])
    below = lambda u, x: min(1.0, max(0.0, (z[k] + u - x + eps) / (2 * eps)))  # noqa: E731
    kinks = [u for x in others for u in (x - z[k] - eps, x - z[k] + eps) if -eps < u < eps]
    inner = lambda u: math.prod(below(u, x) for x in others) / (2 * eps)  # noqa: E731
    cuts = sorted({-eps, eps, *kinks})
    return sum(quad(inner, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(cuts))


def drawn(score: Any, shares: Any, p: Any, **options: Any) -> float:
    """A mean of row scores, expected over labels that are drawn with these shares."""
    rows = [(t, row) for t, row in zip(columns(np.asarray(shares, dtype=float)), p, strict=True)]
    one = lambda k, row: score(np.array([k]), row[None], **options)  # noqa: E731
    return mean([sum(t[k] * one(k, row) for k in range(len(row)) if t[k] > 0) for t, row in rows])


@defines("rows")
def consistency(y, p, consistency=None, metric="bs", eps=None, noise="gaussian"):
    """A metric with the shares of perturbed copies in the place of the labels."""
    if consistency is None:
        rows = columns(p)
        z = [[log(x) for x in row] for row in rows]
        consistency = np.array([[survival_share(row, k, eps, noise) for k in range(len(row))] for row in z])
        consistency = consistency if p.ndim == 2 else consistency[:, 1]
    if DEFINITIONS[metric].sees == "entries":
        return DEFINITIONS[metric].function(consistency, p)
    if "soft_target" in DEFINITIONS[metric].defaults:
        return DEFINITIONS[metric].function(y, columns(p), soft_target=consistency)
    if metric in ("gsb", "mdca"):  # of the shares of classes alone
        bias = [mean(column) for column in (columns(p) - columns(consistency)).T]
        return mean([b**2 if metric == "gsb" else abs(b) for b in bias])
    return drawn(DEFINITIONS[metric].function, consistency, columns(p))


# == bins ============================================================================================


def equal_width(c, n_bins=15, closed="right", edges=None):
    """(lo, hi] or [lo, hi) between the edges k/B; the outermost values belong to the outermost bins."""
    edges = [k / n_bins for k in range(n_bins + 1)] if edges is None else edges
    last = len(edges) - 2
    index = []
    for x in c:
        if closed == "right":
            held = [k for k in range(last + 1) if edges[k] < x <= edges[k + 1]] or [0]
        else:
            held = [k for k in range(last + 1) if edges[k] <= x < edges[k + 1]] or [last]
        index.append(held[0])
    return np.array(index)


def array_split_bins(n, n_bins):
    """The bin of every rank when n ranks are split into bins of equal size, the first n mod B one larger."""
    sizes = [n // n_bins + (b < n % n_bins) for b in range(n_bins)]
    return [b for b, size in enumerate(sizes) for _ in range(size)]


def equal_mass(c, n_bins=15, rule="floor"):
    """Equal confidences go together, with the first of them."""
    n, ordered = len(c), sorted(c)
    below = [int((c < x).sum()) for x in c]
    if rule == "floor":
        return np.array([n_bins * b // n for b in below])
    if rule == "split":
        of_rank = array_split_bins(n, n_bins)
        return np.array([of_rank[b] for b in below])
    if rule == "round":  # cut at the half-even rank; the value at the cut goes up
        ranks = [round(Fraction(b * n, n_bins)) for b in range(1, n_bins)]
        return np.array([sum(x >= ordered[r] for r in ranks if r < n) for x in c])
    cuts = [np.quantile(c, b / n_bins) for b in range(1, n_bins)]
    return np.array([sum(x > cut for cut in cuts) for x in c])


def area_cuts(c, area):
    """Sweep from 0, closing a bin at the smallest e with (e - s)(F(e) - F(s)) >= area, F the share up to a value."""
    values, n = sorted(set(c)), len(c)
    up_to = {v: int((c <= v).sum()) / n for v in values}
    cuts, start, used = [], 0.0, 0.0
    while True:
        end, held = None, 0.0
        for v in values:
            if v < start or (v == start and cuts):
                continue
            if held > 0 and start + area / held < v:  # closes between two values
                end = start + area / held
                break
            held = up_to[v] - used
            if (v - start) * held >= area:
                end = v
                break
        if end is None or end >= values[-1]:
            return cuts
        cuts.append(end)
        start, used = end, max((up_to[v] for v in values if v <= end), default=0.0)


def equal_area_cuts(c, n_bins):
    """The cuts of the smallest area that leaves at most B bins."""
    low, high = 0.0, 1.0
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if len(area_cuts(c, middle)) < n_bins else (middle, high)
    return area_cuts(c, high * (1 + 1e-9))


def equal_area(c, n_bins=15):
    if n_bins >= len(set(c)):
        return unique_values(c)
    cuts = equal_area_cuts(c, n_bins)
    return np.array([sum(x > cut for cut in cuts) for x in c])


def points_per_bin(c, m=100):
    bins = max(1, len(c) // m)
    return np.array([min(sum(other < x for other in c) // m, bins - 1) for x in c])


def unique_values(c):
    return np.array([sorted(set(c)).index(x) for x in c])


def monotonic_sweep(y, c, base="mass"):
    """The bins of the largest number of them such that no smaller number has a falling mean label."""
    n = len(c)
    most = n if base == "width" else math.ceil(n / min(np.unique(c, return_counts=True)[1]))
    bins = {"width": equal_width, "mass": equal_mass}[base]
    best = bins(c, 1)
    for b in range(2, most + 1):
        index = bins(c, b)
        heights = [Fraction(int(sum(y[rows])), len(rows)) for rows in members(index)]
        if any(after < before for before, after in itertools.pairwise(heights)):
            break
        best = index
    return best


def members(index: Any) -> list[list[int]]:
    """The rows of every bin that has any, from the first bin to the last."""
    found: dict[Any, list[int]] = {}
    for i, b in enumerate(index):
        found.setdefault(b, []).append(i)
    return [found[b] for b in sorted(found)]


def bins(y, c, binning="width", n_bins=15, closed="right", mass_rule="floor", edges=None, m=100):
    """The rows of every bin that has any."""
    if edges is not None:
        return members(equal_width(c, closed=closed, edges=edges))
    return members(
        {
            "width": lambda: equal_width(c, n_bins, closed),
            "mass": lambda: equal_mass(c, n_bins, mass_rule),
            "area": lambda: equal_area(c, n_bins),
            "points": lambda: points_per_bin(c, m),
            "unique": lambda: unique_values(c),
            "sweep": lambda: monotonic_sweep(y, c),
        }[binning]()
    )


def norm_of(values: Any, shares: Any, norm: float) -> float:
    """(sum_b p_b v_b^p)^(1/p); the largest for infinity."""
    return (
        max(values) if norm == math.inf else sum(s * v**norm for s, v in zip(shares, values, strict=True)) ** (1 / norm)
    )


def gap(y, c, rows):
    return mean(y[rows]) - mean(c[rows])


def gap_norm(y, c, parts, norm=1):
    return norm_of([abs(gap(y, c, rows)) for rows in parts], [len(rows) / len(y) for rows in parts], norm)


@defines("pairs", "top-label", power="norm")
def ece(y, c, norm=1, binning="width", n_bins=15, closed="right", mass_rule="floor", edges=None, points_per_bin=100):
    return gap_norm(y, c, bins(y, c, binning, n_bins, closed, mass_rule, edges, points_per_bin), norm)


@defines_vectors("ece")
def ece_of_vectors(y, p, norm=1, n_bins=15, distance="tv"):
    """A cell is the tuple of the bins of all K probabilities; of two classes the bin of class 1."""
    k = p.shape[1]
    which = [equal_width(p[:, j], n_bins) for j in (range(k) if k > 2 else [1])]
    cells = [tuple(b[i] for b in which) for i in range(len(y))]
    return vector_gap_norm(y, p, members(cells), norm, distance)


def vector_gap_norm(y, p, parts, norm=1, distance="tv"):
    """Distances between the mean vector and the class frequencies of every part."""
    size = {"tv": lambda g: sum(abs(g)) / 2, "l1": lambda g: sum(abs(g)), "l2": lambda g: math.sqrt(sum(g**2))}[
        distance
    ]
    hot = one_hot(y, p.shape[1])
    gaps = [size(hot[rows].mean(axis=0) - p[rows].mean(axis=0)) for rows in parts]
    return norm_of(gaps, [len(rows) / len(y) for rows in parts], norm)


@defines("pairs", "top-label", power=math.inf)
def mce(y, c, binning="width", n_bins=15, closed="right", mass_rule="floor"):
    return max(abs(gap(y, c, rows)) for rows in bins(y, c, binning, n_bins, closed, mass_rule))


@defines_vectors("mce")
def mce_of_vectors(y, p, n_bins=15, distance="tv"):
    return ece_of_vectors(y, p, math.inf, n_bins, distance)


@defines("pairs", "class-wise", power="norm")
def ace(y, c, norm=1, n_bins=15, mass_rule="floor"):
    return gap_norm(y, c, bins(y, c, "mass", n_bins, mass_rule=mass_rule), norm)


@defines("pairs", "class-wise", power="norm")
def tace(y, c, threshold=0.01, norm=1, n_bins=15, mass_rule="floor"):
    """Confidences at or below the threshold are left out; nothing left is no error."""
    kept = c > threshold
    return ace(y[kept], c[kept], norm, n_bins, mass_rule) if kept.any() else 0.0


@defines("rows")
def ice(y, p, alpha=None, binning="width", n_bins=15):
    """Bins weighed by the power of their share that is the entropy of the labels, 1 when classes are balanced."""
    k = 2 if p.ndim == 1 else p.shape[1]
    if alpha is None:
        alpha = -sum(x_log_x(mean(y == j)) for j in range(k)) / math.log(k)
    [(y, c)] = [(y, p)] if p.ndim == 1 else top_label(y, p)
    parts = bins(y, c, binning, n_bins)
    weight = [(len(rows) / len(y)) ** alpha for rows in parts]
    return sum(v * abs(gap(y, c, rows)) for v, rows in zip(weight, parts, strict=True)) / sum(weight)


def weighted(values: Any, w: Any) -> float:
    return float(np.dot(values, w) / np.sum(w))


@defines("pairs", "top-label")
def rbece(y, c, min_count=10, n_bins=15, w=None):
    """min_count counts rows, whatever they weigh."""
    w = np.ones(len(y)) if w is None else w
    parts = [rows for rows in bins(y, c, n_bins=n_bins) if len(rows) >= min_count]
    gaps = [abs(weighted(y[rows] - c[rows], w[rows])) for rows in parts]
    return mean(gaps) if gaps else math.nan


@defines("pairs", "top-label", power="norm")
def ece_lb(y, c, norm=1, binning="width", n_bins=15):
    """Every confidence against the mean label of its bin."""
    off = [abs(mean(y[rows]) - c[i]) for rows in bins(y, c, binning, n_bins) for i in rows]
    return norm_of(off, [1 / len(y)] * len(y), norm)


@defines("pairs", "top-label", power="norm")
def ece_sweep(y, c, base="mass", norm=1):
    return gap_norm(y, c, members(monotonic_sweep(y, c, base)), norm)


@defines("rows")
def cece(y, p, norm=1, binning="width", n_bins=15):
    each = [ece(*pairs, norm, binning, n_bins) for pairs in ([(y, p)] if p.ndim == 1 else class_wise(y, p))]
    return sum(e**2 for e in each) / sum(each) if sum(each) > 0 else 0.0


@defines("pairs", "top-label")
def esce(y, c, convention="review"):
    """Any bins: the sum does not depend on them."""
    signed = sum(len(rows) / len(y) * gap(y, c, rows) for rows in bins(y, c, n_bins=7))
    return signed if convention == "review" else -signed


@defines("vectors")
def wsmcs(y, p, group="mean", convention="review"):
    """Accuracy less confidence on the rows of each true class; over- and under-confident classes apart."""
    score = [mean(right) - mean(c) for right, c in true_class(y, p)]
    size = [len(right) for right, _ in true_class(y, p)]
    total = 0.0
    for some in ([k for k, s in enumerate(score) if s <= 1e-12], [k for k, s in enumerate(score) if s > 1e-12]):
        if not some:
            continue
        of_size = sum(size[k] * score[k] for k in some)
        part = {"mean": of_size / sum(size[k] for k in some), "sum": sum(score[k] for k in some)}.get(group)
        total += of_size / len(y) if group == "total" else len(some) / len(score) * part
    return total if convention == "review" else -total


def mean_split(x, w, min_size, min_leaf=1, split="mean"):
    """Split the widest coordinate at its mean (or median) as long as a node holds min_size rows."""
    leaves: list[Any] = []

    def grow(rows):
        if len(rows) >= min_size:
            center = [weighted(column[rows], w[rows]) for column in x.T]
            spread = [weighted((x[rows, j] - center[j]) ** 2, w[rows]) for j in range(x.shape[1])]
            axis = next(j for j in range(x.shape[1]) if spread[j] >= (1 - 1e-10) * max(spread))
            values = x[rows, axis]
            cut = center[axis] if split == "mean" else np.median(np.repeat(values, w[rows].astype(int)))
            low, high = rows[values < cut - 1e-12], rows[values >= cut - 1e-12]
            if min(len(low), len(high)) >= min_leaf:
                grow(low)
                grow(high)
                return
        leaves.append(rows)

    grow(np.arange(len(x)))
    return leaves


@defines("rows")
def mvms(y, p, min_count=100, min_leaf=1, split="mean", distance="tv", w=None):
    """Sizes count rows, whatever they weigh. Of two classes only class 1 is split."""
    w = np.ones(len(y)) if w is None else w
    p = columns(p)
    leaves = mean_split(p if p.shape[1] > 2 else p[:, 1:], w, min_count, min_leaf, split)
    hot, total = one_hot(y, p.shape[1]), 0.0
    for leaf in leaves:
        g = np.array([weighted(hot[leaf, j] - p[leaf, j], w[leaf]) for j in range(p.shape[1])])
        size = {"tv": sum(abs(g)) / 2, "l1": sum(abs(g)), "l2": math.sqrt(sum(g**2))}[distance]
        total += w[leaf].sum() / w.sum() * size
    return total


# -- fit on the test ---------------------------------------------------------------------------------


def shuffled_folds(n, cv, seed):
    """Consecutive chunks of the shuffled rows, the first n mod cv one larger."""
    order = np.arange(n)
    np.random.RandomState(seed).shuffle(order)
    of_place = array_split_bins(n, cv)
    return [np.array([order[i] for i in range(n) if of_place[i] == fold], dtype=int) for fold in range(cv)]


def rank_folds(y, c, cv):
    order = sorted(range(len(c)), key=lambda i: (c[i], y[i]))
    return [np.array(order[fold::cv]) for fold in range(cv)]


def binned_map(y, c, n_bins, base, roof="tilted", empty="zero"):
    """The map fitted to some rows: the mean label of the bin, or c plus the bin's gap. Bins are closed on the left."""
    if base == "width":
        starts = [k / n_bins for k in range(n_bins)]
    else:  # a bin begins at its smallest confidence, the first at 0
        index = equal_mass(c, n_bins, "split")
        starts = [0.0] + [min(c[rows]) for rows in members(index)[1:]]
    place = lambda x: sum(x >= s for s in starts[1:])  # noqa: E731
    index = [place(x) for x in c]
    found = {index[rows[0]]: (mean(y[rows]), gap(y, c, rows), line(y[rows], c[rows])) for rows in members(index)}

    def predict(x):
        if place(x) not in found:
            return 0.0 if empty == "zero" else x
        height, shift, straight = found[place(x)]
        if roof == "free":
            return min(max(straight(x), 0.0), 1.0)
        return height if roof == "flat" else x + shift

    return predict


def line(y, c):
    """Least squares; of slope zero where the confidences hardly differ."""
    middle = mean(c)
    spread = math.fsum((x - middle) ** 2 for x in c)
    slope = math.fsum((x - middle) * z for x, z in zip(c, y, strict=True)) / spread if spread > 1e-8 * len(c) else 0.0
    return lambda x: mean(y) + slope * (x - middle)


def binned_map_scores(y, c, base, roof="tilted", empty="zero", max_bins=40, cv=10, folds="shuffle", rng=1):
    """Mean over the folds of the held-out squared error, for 1, 2, ... bins."""
    parts = shuffled_folds(len(y), cv, rng) if folds == "shuffle" else rank_folds(y, c, cv)
    scores = []
    for b in range(1, max_bins + 1):
        errors = []
        for held in parts:
            train = np.array([i for i in range(len(y)) if i not in set(held)])
            predict = binned_map(y[train], c[train], b, base, roof, empty)
            errors.append(mean([(predict(c[i]) - y[i]) ** 2 for i in held]))
        scores.append(mean(errors))
    return scores


@defines("pairs", "top-label", least=10)
def ece_fott(y, c, n_bins="cv", base="mass", roof="tilted", norm=1, empty="zero", max_bins=40, cv=10, tolerance=0.0,
             folds="shuffle", rng=1):  # fmt: skip
    if n_bins == "cv":
        scores = binned_map_scores(y, c, base, roof, empty, max_bins, cv, folds, rng)
        limit = min(scores) * (1 + max(tolerance, 1e-12))
        n_bins = 1 + next(b for b, score in enumerate(scores) if score <= limit)
    predict = binned_map(y, c, n_bins, base, roof, empty)
    return mean([abs(predict(x) - x) ** norm for x in c])


# -- distances from calibration ----------------------------------------------------------------------


@defines(
    "pairs", "top-label", most=12, rtol=1e-7, atol=1e-8, why="a linear programme stops at its feasibility tolerance"
)
def lower_distance(y, c, grid=101):
    """Every row is spread over the points u of a grid so that at each of them the mean label is u."""
    from scipy.optimize import linprog

    u, n = [g / (grid - 1) for g in range(grid)], len(y)
    cost = [abs(c[i] - x) / n for i in range(n) for x in u]
    spread = [[float(i == j) for j in range(n) for _ in u] for i in range(n)]
    right = [[(y[j] - x) * float(x is z) for j in range(n) for z in u] for x in u]
    return linprog(cost, A_eq=np.array(spread + right), b_eq=[1.0] * n + [0.0] * grid).fun


@defines("pairs", "top-label", most=12)
def interval_partition_distance(y, c):
    """The best of all ways to cut the confidences into runs that move to their mean labels."""
    values = sorted(set(c))
    best = math.inf
    for cut in itertools.product([False, True], repeat=len(values) - 1):
        starts = [0] + [i + 1 for i, here in enumerate(cut) if here] + [len(values)]
        total = 0.0
        for a, b in itertools.pairwise(starts):
            inside = (c >= values[a]) & (c <= values[b - 1])
            total += math.fsum(abs(x - mean(y[inside])) for x in c[inside])
        best = min(best, total / len(y))
    return best


# -- intervals ---------------------------------------------------------------------------------------


@defines("pairs", "top-label")
def rice(y, c, width=0.1):
    """Mean over all shifts s of the cuts s + j width; between two breaks nothing changes, so the midpoint stands."""
    breaks = sorted({0.0, width, *(math.fmod(x, width) for x in c)})
    total = 0.0
    for low, high in itertools.pairwise(breaks):
        index = [math.floor((x - (low + high) / 2) / width) for x in c]
        total += (high - low) * sum(abs(math.fsum(y[rows] - c[rows])) for rows in members(index))
    return total / width / len(y)


@defines("pairs", "top-label")
def sice(y, c, eps=0.01, k_max=None):
    k_max = math.floor(-math.log2(eps / 2)) if k_max is None else k_max
    return min(rice(y, c, 2.0**-k) + 2.0**-k for k in range(k_max + 1))


@defines("pairs", "top-label", most=12)
def intce(y, c):
    """The best of all partitions of the confidences into intervals; twelve rows have 2048."""
    values = sorted(set(c))
    best = math.inf
    for cut in itertools.product([False, True], repeat=len(values) - 1):
        starts = [0] + [i + 1 for i, here in enumerate(cut) if here] + [len(values)]
        total = 0.0
        for a, b in itertools.pairwise(starts):
            inside = (c >= values[a]) & (c <= values[b - 1])
            total += abs(sum(y[inside] - c[inside])) + sum(inside) * (values[b - 1] - values[a])
        best = min(best, total / len(y))
    return best


@defines("pairs", "top-label")
def ece_averaged(y, c, widths=tuple(0.005 * k for k in range(1, 11)), closed="right"):
    """Edges 0, h, 2h, ..., 1 for every width h, as the decimals they stand for."""
    each = []
    for h in widths:
        inner = [round(k * h, 12) for k in range(math.ceil(round(1 / h, 9)))]
        if abs(round(1 / h) - 1 / h) < 1e-9:
            inner = [k / round(1 / h) for k in range(round(1 / h))]
        each.append(ece(y, c, edges=[*inner, 1.0], closed=closed))
    return mean(each)


@defines("pairs", "top-label")
def ece_at_k(y, c, k=100, n_bins=None, rank_by=None):
    """Rows tied at the cut share the places that are left."""
    score, n = c if rank_by is None else rank_by, len(y)
    k = min(int(k * n + 1e-9) if isinstance(k, float) else k, n)
    cut = sorted(score)[n - k]
    above, tied = sum(score > cut), sum(score == cut)
    place = [1.0 if s > cut else (k - above) / tied if s == cut else 0.0 for s in score]
    lowest = min(x for x, share in zip(c, place, strict=True) if share > 0)
    b = max(1, len(str(k)) - 1) if n_bins is None else n_bins
    inner = [round(lowest + (1 - lowest) * j / b, 12) for j in range(1, b)] if lowest < 1 else []
    index = [sum(x > edge for edge in inner) for x in c]
    return sum(abs(math.fsum(place[i] * (y[i] - c[i]) for i in rows)) for rows in members(index)) / k


@defines("pairs", "top-label", least=50)
def avg_ece_at_l(y, c, l=None, step=10, n_bins=None, rank_by=None):  # noqa: E741
    l = len(y) // 5 if l is None else l  # noqa: E741
    return mean([ece_at_k(y, c, k, n_bins, rank_by) for k in range(step, l + 1, step)])


# -- soft bins ---------------------------------------------------------------------------------------


def softmax(z: Any) -> Any:
    e = [math.exp(x - max(z)) for x in z]
    return np.array(e) / sum(e)


def soft_gap_norm(y, c, u, norm=1, label_binned=False):
    """Row i belongs to bin b with weight u_ib; a bin without weight is skipped."""
    n, total = len(y), 0.0
    for b in range(u.shape[1]):
        s = math.fsum(u[:, b])
        if s == 0:
            continue
        label, confidence = math.fsum(u[:, b] * y) / s, math.fsum(u[:, b] * c) / s
        if label_binned:
            total += math.fsum(u[i, b] * abs(label - c[i]) ** norm for i in range(n)) / n
        else:
            total += s / n * abs(label - confidence) ** norm
    return total ** (1 / norm)


@defines("pairs", "top-label", power="norm")
def sbece(y, c, n_bins=15, tau=0.01, norm=2, decay_factor=None, label_binned=False):
    tau = tau if decay_factor is None else 1 / (math.log(decay_factor) * n_bins**2)
    centers = [(b - 0.5) / n_bins for b in range(1, n_bins + 1)]
    u = np.array([softmax([-((x - m) ** 2) / tau for m in centers]) for x in c])
    return soft_gap_norm(y, c, u, norm, label_binned)


@defines("rows")
def dece(y, p, n_bins=15, tau=0.01, norm=1, accuracy="hard", tau_a=100.0, eps=0.0, confidence="max", sharpness=100.0):
    """Bin b beats bin b+1 below the edge b/B. Soft accuracy compares the true class with every other."""
    [(right, c)] = [(y, p)] if p.ndim == 1 else top_label(y, p)
    if confidence == "logsumexp":
        c = np.array([min(1.0, math.log(sum(math.exp(sharpness * x) for x in row)) / sharpness) for row in p])
    if accuracy == "soft":
        rank = [0.5 + sum(1 / (1 + math.exp(-tau_a * (x - row[k]))) for x in row) for k, row in zip(y, p, strict=True)]
        right = np.array([max(0.0, 2 - r) for r in rank])
    offset = [-sum(j / n_bins for j in range(1, b)) for b in range(1, n_bins + 1)]
    u = np.array([softmax([(b * x + offset[b - 1]) / tau for b in range(1, n_bins + 1)]) for x in c])
    return soft_gap_norm(right, c, (u + eps) / (1 + (n_bins + 1) * eps), norm)


# -- debiased ----------------------------------------------------------------------------------------


@defines("pairs", "top-label")
def ce2_db(y, c, n_bins=15, binning="mass", mass_rule="split", definition="authors", root=False):
    """A bin of one row adds nothing."""
    total = 0.0
    for rows in bins(y, c, binning, n_bins, mass_rule=mass_rule):
        rate = mean(y[rows]) if definition == "authors" else mean(c[rows])
        if len(rows) > 1:
            total += len(rows) / len(y) * (gap(y, c, rows) ** 2 - rate * (1 - rate) / (len(rows) - 1))
    return math.sqrt(max(total, 0.0)) if root else total


@defines("pairs", "top-label")
def ece_db(y, c, n_bins=15, binning="mass", mass_rule="split"):
    """Twice the plug-in error less its mean when every bin's label rate is drawn again, as a normal number."""
    from scipy.integrate import quad

    plain = drawn = 0.0
    for rows in bins(y, c, binning, n_bins, mass_rule=mass_rule):
        share, mu, rate = len(rows) / len(y), gap(y, c, rows), mean(y[rows])
        s = math.sqrt(rate * (1 - rate) / len(rows))
        plain += share * abs(mu)
        if s == 0:
            drawn += share * abs(mu)
            continue
        off = lambda t, mu=mu, s=s: abs(mu + s * t) * normal_density(t)  # noqa: E731
        middle = min(10.0, max(-10.0, -mu / s))
        drawn += share * (quad(off, -12, middle, epsabs=1e-13)[0] + quad(off, middle, 12, epsabs=1e-13)[0])
    return 2 * plain - drawn


# -- proximity and partitions ------------------------------------------------------------------------


def proximity_of(x, n_neighbors=10, reference=None):
    """Minus the mean distance to the nearest others: its exponential is the proximity."""
    near = []
    for i in range(len(x)):
        others = [x[j] for j in range(len(x)) if j != i] if reference is None else list(reference)
        distance = sorted(math.dist(x[i], other) for other in others)[:n_neighbors]
        near.append(-math.fsum(distance) / len(distance))
    return np.array(near)


@defines("pairs", "top-label", least=2)
def piece(y, c, features=None, proximity=None, reference=None, n_neighbors=10, n_bins=15, n_proximity_bins=10,
          binning="nested", w=None):  # fmt: skip
    """Cells and neighbors count rows, whatever they weigh."""
    w = np.ones(len(y)) if w is None else w
    near = proximity_of(features, n_neighbors, reference) if proximity is None else proximity
    if binning == "grid":
        cuts = [np.quantile(near, j / n_proximity_bins) for j in range(1, n_proximity_bins)]
        row = equal_width(c, n_bins, "left")
        cells = members([(row[i], sum(near[i] >= cut for cut in cuts)) for i in range(len(y))])
    else:
        cells = []
        for rows in members(equal_mass(c, n_bins, "split")):
            inner = members(equal_mass(near[rows], n_proximity_bins, "split"))
            cells += [[rows[i] for i in part] for part in inner]
    return sum(w[cell].sum() / w.sum() * abs(weighted(y[cell] - c[cell], w[cell])) for cell in cells)


@defines("pairs", "top-label", least=2)
def proximity_bias(y, c, features=None, proximity=None, reference=None, n_neighbors=10, share=0.2, w=None):
    """Labels of the most typical rows less those of the least typical, each matched with the nearest confidences."""
    w = np.ones(len(y)) if w is None else w
    near = proximity_of(features, n_neighbors, reference) if proximity is None else proximity
    size = int(share * len(y))
    if size == 0 or sorted(near)[size - 1] == sorted(near)[-size]:
        return math.nan
    low = [i for i in range(len(y)) if near[i] <= sorted(near)[size - 1]]
    high = [i for i in range(len(y)) if near[i] >= sorted(near)[-size]]
    differences = []
    for i in low:
        nearest = min(abs(c[j] - c[i]) for j in high)
        match = [j for j in high if abs(c[j] - c[i]) <= nearest + 1e-12]
        differences.append(weighted(y[match], w[match]) - y[i])
    return weighted(differences, w[low])


@defines("pairs", "top-label")
def pce(y, c, groups=None, partition_weights=None, loss="absolute"):
    """One column of ``groups``, or one list of a list of them, per partition."""
    partitions = groups if isinstance(groups, list) else np.asarray(groups).reshape(len(y), -1).T
    shares = np.ones(len(partitions)) if partition_weights is None else np.asarray(partition_weights, dtype=float)
    power = {"absolute": 1, "squared": 2}[loss]
    total = 0.0
    for share, column in zip(shares / shares.sum(), partitions, strict=True):
        total += share * sum(len(rows) / len(y) * abs(gap(y, c, rows)) ** power for rows in members(column))
    return total


@defines_vectors("pce")
def pce_of_vectors(y, p, groups=None, partition_weights=None, loss="absolute"):
    """The mean over the classes."""
    return mean([pce(*pairs, groups, partition_weights, loss) for pairs in class_wise(y, p)])


def two_sided_binomial(k: int, n: int, rate: float) -> float:
    """The chance of an outcome that is at most as likely as k."""
    from scipy.stats import binomtest

    return float(binomtest(int(k), int(n), float(rate)).pvalue)


def rejected_share(y, c, rows, alpha):
    """Share of the confidences of a bin that an exact test of its labels rejects."""
    return mean([two_sided_binomial(sum(y[rows]), len(rows), c[i]) <= alpha for i in rows])


@defines("pairs", "top-label", power="norm")
def gce(y, c, loss="mean-gap", norm=1, alpha=0.05, binning="width", n_bins=15, closed="right", mass_rule="floor"):
    parts = bins(y, c, binning, n_bins, closed, mass_rule)
    of = {
        "mean-gap": lambda rows: abs(gap(y, c, rows)),
        "point-gap": lambda rows: mean([abs(mean(y[rows]) - c[i]) for i in rows]),
        "rejection": lambda rows: rejected_share(y, c, rows, alpha),
    }[loss]
    return norm_of([of(rows) for rows in parts], [len(rows) / len(y) for rows in parts], norm)


# -- tests of bins -----------------------------------------------------------------------------------


@defines("pairs", "class-wise")
def hl(y, c, n_bins=10, binning="mass", variance="pooled", closed="right", mass_rule="floor"):
    """A bin without variance is left out when it is right and infinitely wrong when it is not."""
    total = 0.0
    for rows in bins(y, c, binning, n_bins, closed, mass_rule):
        observed, expected, n = sum(y[rows]), math.fsum(c[rows]), len(rows)
        spread = sum(x * (1 - x) for x in c[rows]) if variance == "exact" else expected * (1 - expected / n)
        if spread > 0:
            total += (observed - expected) ** 2 / spread
        elif observed != expected:
            return math.inf
    return total


@defines_vectors("hl")
def hl_of_vectors(y, p, n_bins=10, variance="pooled", reference_class=0):
    """Counts of every class in bins of 1 - c_ref; an impossible class is left out, or infinitely wrong."""
    total = 0.0
    for rows in members(equal_mass(1 - p[:, reference_class], n_bins)):
        observed, expected = one_hot(y, p.shape[1])[rows].sum(axis=0), p[rows].sum(axis=0)
        if any(observed[expected == 0] > 0):
            return math.inf
        if variance == "exact":
            cov = sum(np.diag(row) - np.outer(row, row) for row in p[rows])
            total += (observed - expected) @ np.linalg.pinv(cov, rcond=1e-10, hermitian=True) @ (observed - expected)
        else:
            total += sum((observed - expected)[expected > 0] ** 2 / expected[expected > 0])
    return total


def simplex_cell(row, m):
    """Edgewise subdivision of the simplex into m^(K-1) cells of equal volume: where the row lies."""
    sums = list(itertools.accumulate(reversed(row[1:])))
    floors = [min(sum(s >= k / m for k in range(1, m)), m - 1) for s in sums]
    remainders = [m * s - f for s, f in zip(sums, floors, strict=True)]
    return (*floors, *sorted(range(len(sums)), key=lambda j: (remainders[j], j)))


def different_rows(residual, index):
    """Products of the residuals of different rows of a bin."""
    total = 0.0
    for rows in members(index):
        total += math.fsum(residual[i] @ residual[j] for i, j in itertools.permutations(rows, 2)) / len(rows)
    return total / len(residual)


@defines("pairs", "top-label")
def tcal(y, c, n_bins=15):
    return different_rows((c - y)[:, None], equal_width(c, n_bins, "left"))


@defines_vectors("tcal")
def tcal_of_vectors(y, p, n_bins=15):
    return different_rows(p - one_hot(y, p.shape[1]), [simplex_cell(row.tolist(), n_bins) for row in p])


def constrained_blocks(size, total, n_min, n_max, last_bin="atom"):
    """PAVA with block sizes: how many of the groups of equal confidences each block takes."""
    size, total = list(size), list(total)
    aside = 0
    if n_min > 0 and not (last_bin == "atom" and size[-1] >= 2 and size[-1] >= n_min):
        held = 0
        while held < n_min and aside < len(size):
            aside += 1
            held += size[-aside]
    if aside == len(size):
        return [len(size)]
    stack: list[list[int]] = []
    for i in range(len(size) - aside):
        stack.append([size[i], total[i], 1])
        while len(stack) > 1:
            (w0, s0, m0), (w1, s1, m1) = stack[-2:]
            if w0 + w1 <= n_min or (w0 + w1 <= n_max and s0 * w1 >= s1 * w0):
                stack[-2:] = [[w0 + w1, s0 + s1, m0 + m1]]
            else:
                break
    atoms = [m for _, _, m in stack]
    if aside:
        tail = sum(size[-aside:])
        if tail + (stack[-1][0] if last_bin == "strict" else n_min) <= n_max:
            atoms[-1] += aside
        else:
            atoms.append(aside)
    return atoms


def bins_of_test(y, c, strategy="pava-bc", n_min=10, n_max=1000, last_bin="atom", n_bins=10):
    """Blocks of pooled labels, equal widths, or ranks cut at floor(bN/B)."""
    if strategy == "uniform":
        return members(equal_width(c, n_bins, "left"))
    if strategy == "quantile":
        cuts = [b * len(c) // n_bins for b in range(1, n_bins)]
        return members([sum(int((c < x).sum()) >= cut for cut in cuts) for x in c])
    if strategy == "pava":
        n_min, n_max = 0, math.inf
    atoms = members(c)
    taken = constrained_blocks([len(a) for a in atoms], [int(sum(y[a])) for a in atoms], n_min, n_max, last_bin)
    ends = [0, *itertools.accumulate(taken)]
    return [[i for atom in atoms[a:b] for i in atom] for a, b in itertools.pairwise(ends)]


@defines("pairs", "top-label")
def tce(y, c, alpha=0.05, strategy="pava-bc", min_count=10, n_max=1000, last_bin="atom", n_bins=10, percent=False):
    parts = bins_of_test(y, c, strategy, min_count, n_max, last_bin, n_bins)
    share = sum(len(rows) * rejected_share(y, c, rows, alpha) for rows in parts) / len(y)
    return 100 * share if percent else share


# -- windows, neighbors, combined scores -------------------------------------------------------------


@defines("pairs", "class-wise")
def calbin(y, c, window=None, inner="point", definition="authors"):
    """Windows of s sorted rows; equal confidences share their mean label. "review" is (57) as printed."""
    s = max(1, len(y) // 10) if window is None else window
    order = sorted(range(len(c)), key=lambda i: c[i])
    c, label = c[order], np.array([mean(y[c == c[i]]) for i in order])
    errors = []
    for b in range(len(c) - s + 1):
        height, inside = mean(label[b : b + s]), c[b : b + s]
        errors.append(abs(height - mean(inside)) if inner == "bin" else mean([abs(height - x) for x in inside]))
    if definition == "review":
        return mean([s * e for e in errors[:-1]]) if errors[:-1] else math.nan
    return mean(errors)


@defines("pairs", "top-label")
def ece_knn(y, c, n_neighbors=None):
    """Each row with its nearest others, and all that are as near as the last of them."""
    n = len(y)
    n_neighbors = min(math.isqrt(n) if n_neighbors is None else n_neighbors, n - 1)
    errors = []
    for i in range(n):
        others = sorted(abs(c[j] - c[i]) for j in range(n) if j != i)
        reach = others[n_neighbors - 1] if n_neighbors else 0.0
        errors.append(abs(gap(y, c, [j for j in range(n) if abs(c[j] - c[i]) <= reach + 1e-12])))
    return mean(errors)


@defines("rows")
def hcs(y, p, beta=1.0, n_bins=15):
    """Weighted harmonic mean of accuracy and 1 - ECE."""
    if p.ndim == 1:
        accuracy, error = mean([(c > 0.5) == label for label, c in zip(y, p, strict=True)]), ece(y, p, n_bins=n_bins)
    else:
        [(right, c)] = top_label(y, p)
        accuracy, error = mean(right), ece(right, c, n_bins=n_bins)
    below = beta * accuracy + 1 - error
    return (1 + beta) * accuracy * (1 - error) / below if below > 0 else 0.0


@defines("vectors")
def wcr(y, p):
    """Mean confidence and frequency of every class among the rows of every predicted class."""
    k, top = p.shape[1], predicted(p)
    total = 0.0
    for a, j in itertools.product(range(k), range(k)):
        rows = [i for i in range(len(y)) if top[i] == a]
        if rows:
            total += abs(mean(p[rows, j]) - mean(y[rows] == j))
    return 1 - total / k**2


@defines("vectors")
def cal(y, p):
    return math.sqrt((1 - math.sqrt(bs(y, p))) * wcr(y, p))


# == kernels =========================================================================================

#: k(u) and the standard deviation of k.
DENSITIES: dict[str, tuple[Callable[[Any], Any], float]] = {
    "gaussian": (lambda u: np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi), 1.0),
    "laplace": (lambda u: np.exp(-abs(u)) / 2, math.sqrt(2)),
    "uniform": (lambda u: 1 / 2 * (abs(u) <= 1), 1 / math.sqrt(3)),
    "triangular": (lambda u: (1 - abs(u)) * (abs(u) <= 1), 1 / math.sqrt(6)),
    "epanechnikov": (lambda u: 3 / 4 * (1 - u**2) * (abs(u) <= 1), 1 / math.sqrt(5)),
    "biweight": (lambda u: 15 / 16 * (1 - u**2) ** 2 * (abs(u) <= 1), 1 / math.sqrt(7)),
    "triweight": (lambda u: 35 / 32 * (1 - u**2) ** 3 * (abs(u) <= 1), 1 / 3),
    "tricube": (lambda u: 70 / 81 * (1 - abs(u) ** 3) ** 3 * (abs(u) <= 1), math.sqrt(35 / 243)),
}


def kernel_matrix(t, c, h, kernel="gaussian"):
    """k((t - c)/h) for every t (row) and c (column); h is one width or one for each c."""
    return DENSITIES[kernel][0]((np.asarray(t)[:, None] - c) / h)


def smooth_curve(y, c, h, kernel="gaussian", leave_one_out=False, t=None):
    """Nadaraya-Watson at the confidences themselves (or at t); NaN where no row has weight."""
    k = kernel_matrix(c if t is None else t, c, h, kernel) / (1.0 if np.ndim(h) == 0 else np.asarray(h))
    if leave_one_out:
        np.fill_diagonal(k, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return k @ y / k.sum(axis=1)


def standard_deviation(c):
    return math.sqrt(mean([(x - mean(c)) ** 2 for x in c]))


CV_WIDTHS = [0.005 * 100 ** (i / 40) for i in range(41)]
LOO_WIDTHS = [10 ** (-5 + 4 * i / 14) for i in range(15)] + [0.2, 0.4, 0.6, 0.8, 1.0]


def smallest(widths, errors):
    """The smallest width of those whose error is least, up to rounding."""
    return next(h for h, e in zip(widths, errors, strict=True) if e <= min(errors) * (1 + 1e-12) + 1e-300)


def curve_width(rule, y, c, kernel="gaussian"):
    """A width by its rule; "adaptive" is one for every row."""
    if not isinstance(rule, str):
        return rule
    if rule == "median":
        return median_width(c)
    h = 1.06 * standard_deviation(c) * len(c) ** -0.2
    if rule == "normal":
        return h
    if rule == "normal-sd":
        return h / DENSITIES[kernel][1]
    if rule == "adaptive":
        pilot = kernel_matrix(c, c, h, kernel).sum(axis=1)
        center = math.exp(mean([math.log(f) for f in pilot]))
        return np.array([h * (f / center) ** -0.5 for f in pilot])
    errors = []
    for width in CV_WIDTHS:
        left_out = smooth_curve(y, c, width, kernel, leave_one_out=True)
        others = [(sum(y) - y[j]) / (len(y) - 1) for j in range(len(y))]
        known = [others[j] if math.isnan(left_out[j]) else left_out[j] for j in range(len(y))]
        errors.append(mean([(y[j] - known[j]) ** 2 for j in range(len(y))]))
    return smallest(CV_WIDTHS, errors)


def curve_error(y, c, power, bandwidth, kernel, leave_one_out):
    """Rows without a neighbor are left out of the mean."""
    h = curve_width(bandwidth, y, c, kernel)
    off = np.abs(smooth_curve(y, c, h, kernel, leave_one_out) - c) ** power
    known = off[~np.isnan(off)]
    return mean(known) if len(known) else math.nan


@defines("pairs", "top-label")
def msce(y, c, bandwidth=0.08, kernel="gaussian", leave_one_out=False):
    return curve_error(y, c, 2, bandwidth, kernel, leave_one_out)


@defines("pairs", "top-label")
def sece(y, c, bandwidth=0.01, kernel="gaussian", leave_one_out=False):
    return curve_error(y, c, 1, bandwidth, kernel, leave_one_out)


def images(t, c, s):
    """(t - c)/s for each t (row) and c (column), with c mirrored at 0 and 1 as often as matters."""
    far = math.ceil(5 * s + 1)
    return [(np.atleast_1d(t)[:, None] - (2 * m + sign * c)) / s for m in range(-far, far + 1) for sign in (1, -1)]


def reflected(t, c, s):
    """Density at t of the Gaussian around c, mirrored at 0 and 1."""
    return sum(DENSITIES["gaussian"][0](u) for u in images(t, c, s)) / s


def absolute_mass(c, a, s):
    """Integral over [0, 1] of |sum_i a_i K_s(t, c_i)|, K the reflected Gaussian: its area between sign changes."""
    from scipy.special import ndtr

    height = lambda t: reflected(t, c, s) @ a  # noqa: E731
    t = np.linspace(0, 1, max(201, math.ceil(10 / s)))
    f = height(t)
    turns = f[:-1] * f[1:] < 0
    low, high, sign = t[:-1][turns], t[1:][turns], f[:-1][turns]
    for _ in range(40):  # halve the cells where the sign changes
        middle = (low + high) / 2
        before = sign * height(middle) > 0
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    up_to = sum(ndtr(u) for u in images(np.array([0.0, *low, 1.0]), c, s)) @ a
    return float(np.abs(np.diff(up_to)).sum())


def smece_at(y, c, s, grid=None):
    """The integral; or the mean over g/G, g = 1..G."""
    if grid is None:
        return absolute_mass(c, (y - c) / len(y), s)
    t = np.array([g / grid for g in range(1, grid + 1)])
    return mean(np.abs(reflected(t, c, s) @ (y - c)) / len(y))


@defines("pairs", "top-label", rtol=1e-7, atol=1e-7, why="the integral is only asked for to 1e-8")
def smece(y, c, sigma=None, grid=None):
    """The width that equals its own error."""
    from scipy.optimize import brentq

    if sigma is not None:
        return smece_at(y, c, sigma, grid)
    least = sum(abs(math.fsum((y - c)[c == x])) for x in set(c)) / len(y)
    if least <= 1e-8:
        return least
    return brentq(lambda s: smece_at(y, c, s, grid) - s, 0.01, 1.0, xtol=1e-10)


# -- beta and Dirichlet kernels ----------------------------------------------------------------------


def left_out_kernels(p, h):
    """Dirichlet densities with parameters c_i/h + 1 of all other rows i at every row j, log 0 read as log 1e-300.

    Each row is divided by its largest, whose logarithm comes beside.
    """
    constant = [math.lgamma(sum(row / h + 1)) - sum(math.lgamma(x / h + 1) for x in row) for row in p]
    logs = np.log(np.maximum(p, 1e-300)) @ (p / h).T + constant
    np.fill_diagonal(logs, -math.inf)
    top = logs.max(axis=1)
    return np.exp(logs - top[:, None]), top


def density_width(rule, y, p):
    """The width of largest leave-one-out likelihood, or of least leave-one-out squared error."""
    if not isinstance(rule, str):
        return rule
    n, hot, errors = len(y), one_hot(y, p.shape[1]), []
    for h in LOO_WIDTHS:
        k, top = left_out_kernels(p, h)
        if rule == "loo-mle":
            errors.append(-sum(top[j] + math.log(k[j].sum() / (n - 1)) for j in range(n)))
        else:
            errors.append(mean([sum((hot[j] - k[j] @ hot / k[j].sum()) ** 2) for j in range(n)]))
    if rule == "loo-mle":
        return LOO_WIDTHS[int(np.argmin(errors))]
    return smallest(LOO_WIDTHS, errors)


@defines("vectors", least=2)
def dkde(y, rows, norm=1, bandwidth="cv", root=False, debias=False):
    k, _ = left_out_kernels(rows, density_width(bandwidth, y, rows))
    hot = one_hot(y, rows.shape[1])
    terms = [
        sum(without_noise(hot[:, i], rows[j, i], k[j], norm) for i in range(rows.shape[1]))
        if debias
        else sum(abs(k[j] @ hot / k[j].sum() - rows[j]) ** norm)
        for j in range(len(y))
    ]
    return max(mean(terms), 0.0) ** (1 / norm) if root else mean(terms)


def absolute_normal(m, s):
    """E|X| of a normal X."""
    return abs(m) if s == 0 else 2 * s * normal_density(m / s) + m * (2 * normal_share(m / s) - 1)


def without_noise(y, c, k, norm):
    """The distance of the smoothed labels from c without what their noise adds: by pairs, or by a normal law."""
    smooth = k @ y / k.sum()
    if norm == 2:
        pairs = np.outer(k, k)
        np.fill_diagonal(pairs, 0.0)
        alone = pairs.sum() <= 1e-12 * k.sum() ** 2
        return (smooth - c) ** 2 if alone else (y - c) @ pairs @ (y - c) / pairs.sum()
    spread = math.sqrt(max(smooth * (1 - smooth), 0.0) * (k @ k)) / k.sum()
    return 2 * abs(smooth - c) - absolute_normal(smooth - c, spread)


@defines("pairs", "top-label", least=3)
def bkde(y, c, norm=2, debias=None, bandwidth="loo-mle", cross_term="pair"):
    """Pairs of different neighbors of each row; with one neighbor alone, its own square."""
    debias = norm == 2 if debias is None else debias
    k, _ = left_out_kernels(columns(c), density_width(bandwidth, y, columns(c)))
    terms = []
    for j in range(len(y)):
        smooth = k[j] @ y / k[j].sum()
        if not debias:
            terms.append(abs(smooth - c[j]) ** norm)
            continue
        if norm == 1:
            terms.append(without_noise(y, c[j], k[j], 1))
            continue
        center = c[j] if cross_term == "pair" else 0.0
        pairs = np.outer(k[j], k[j])
        np.fill_diagonal(pairs, 0.0)
        alone = pairs.sum() <= 1e-12 * k[j].sum() ** 2
        square = (smooth - center) ** 2 if alone else (y - center) @ pairs @ (y - center) / pairs.sum()
        terms.append(square if cross_term == "pair" else square - 2 * c[j] * y[j] + c[j] ** 2)
    return mean(terms)


# -- pairs -------------------------------------------------------------------------------------------


def distance(a, b, metric):
    """Total variation or Euclidean; of two numbers their difference."""
    if np.ndim(a) == 0:
        return abs(a - b)
    return sum(abs(x - z) for x, z in zip(a, b, strict=True)) / 2 if metric == "tv" else math.dist(a, b)


def median_width(p, metric="tv", include_self=False):
    """Median distance of all pairs; of the positive ones when it is zero; 1 when there are none."""
    n = len(p)
    all_pairs = [distance(p[i], p[j], metric) for i, j in itertools.combinations(range(n), 2)]
    if include_self:
        all_pairs = [distance(p[i], p[j], metric) for i in range(n) for j in range(n)]
    h = np.median(all_pairs) if all_pairs else 0.0
    if h == 0:
        positive = [d for d in all_pairs if d > 0]
        h = np.median(positive) if positive else 1.0
    return float(h)


#: The distance each kernel takes unless told otherwise.
METRIC = {"laplace": "tv", "gaussian": "euclidean"}


def similarity(p, kernel="laplace", metric=None, bandwidth="median", include_self=False):
    """k(c_i, c_j), one at distance zero."""
    metric = metric or METRIC[kernel]
    h = median_width(p, metric, include_self) if bandwidth == "median" else bandwidth
    d = np.array([[distance(a, b, metric) for b in p] for a in p]) / h
    return np.exp(-d) if kernel == "laplace" else np.exp(-d * d / 2)


@defines("pairs", "top-label", atol=1e-8, why="the root of a sum that cancels has half its digits")
def mmce(y, c, kernel="laplace", bandwidth=0.4, squared=False, weighted=False):
    n = len(y)
    if weighted:
        ones, zeros = sum(y == 1), sum(y == 0)
        if ones == 0 or zeros == 0:
            return 0.0
        a = np.array([(1 - c[i]) / ones if y[i] else -c[i] / zeros for i in range(n)])
    else:
        a = (y - c) / n
    k = similarity(c, kernel, "tv", bandwidth)
    total = max(0.0, math.fsum(a[i] * a[j] * k[i, j] for i in range(n) for j in range(n)))
    return total if squared else math.sqrt(total)


@defines("pairs", "top-label", atol=1e-8, why="the root of a sum that cancels has half its digits")
def lkce(y, c, bandwidth=1.0, squared=False):
    return mmce(y, c, "laplace", bandwidth, squared)


def skce_matrix(y, p, kernel="laplace", metric=None, bandwidth="median", matrix=None, include_self=False):
    """h_ij = (e_yi - c_i)' M (e_yj - c_j) k(c_i, c_j)."""
    e = one_hot(y, p.shape[1]) - p
    m = np.eye(p.shape[1]) if matrix is None else np.asarray(matrix)
    return e @ m @ e.T * similarity(p, kernel, metric, bandwidth, include_self)


def off_diagonal_mean(h):
    n = len(h)
    return math.fsum(h[i, j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))


@defines("vectors")
def skce_b(y, p, kernel="laplace", metric=None, bandwidth="median", matrix=None, include_self=False):
    return float(np.mean(skce_matrix(y, p, kernel, metric, bandwidth, matrix, include_self)))


@defines("vectors", least=2)
def skce_uq(y, p, kernel="laplace", metric=None, bandwidth="median", matrix=None, include_self=False):
    return off_diagonal_mean(skce_matrix(y, p, kernel, metric, bandwidth, matrix, include_self))


@defines("vectors", least=2)
def skce_ul(y, p, kernel="laplace", metric=None, bandwidth="median", matrix=None, block_size=2, w=None):
    """Pairs within blocks of consecutive rows, each weighing the product of its weights. The width takes copies."""
    w = np.ones(len(y)) if w is None else w
    if bandwidth == "median":
        bandwidth = median_width(np.repeat(p, w.astype(int), axis=0), metric or METRIC[kernel])
    h = skce_matrix(y, p, kernel, metric, bandwidth, matrix)
    starts = range(0, len(y) - block_size + 1, block_size)
    pairs = [(i, j) for a in starts for i, j in itertools.combinations(range(a, a + block_size), 2)]
    return weighted([h[i, j] for i, j in pairs], [w[i] * w[j] for i, j in pairs])


@defines("vectors", least=2)
def skce(y, p, estimator="uq", kernel="laplace", metric=None, bandwidth="median", matrix=None, include_self=False):
    given = (kernel, metric, bandwidth, matrix)
    return skce_ul(y, p, *given) if estimator == "ul" else ESTIMATOR[estimator](y, p, *given, include_self)


ESTIMATOR = {"uq": skce_uq, "b": skce_b}


def stein_features(y, p, operator="barker"):
    """g_i = sum over z != y_i of b_i(z) (e_z - e_yi); "difference" is the cyclic finite difference."""
    n, k = p.shape
    g = np.zeros((n, k))
    for i in range(n):
        own = p[i, y[i]]
        if operator == "difference":
            g[i, (y[i] - 1) % k] += 1.0
            g[i, y[i]] -= p[i, (y[i] + 1) % k] / own
            continue
        for z in range(k):
            if z == y[i]:
                continue
            if operator == "barker":
                b = p[i, z] / (p[i, z] + own) if p[i, z] + own > 0 else 0.5
            elif operator == "gibbs":
                b = p[i, z]
            else:
                b = min(1.0, p[i, z] / own) if own > 0 else 1.0
            g[i, z] += b
            g[i, y[i]] -= b
    return g


@defines("vectors", least=2)
def kccsd(y, p, operator="barker", estimator="u", kernel="gaussian", metric=None, bandwidth="median"):
    g = stein_features(y, p, operator)
    h = g @ g.T * similarity(p, kernel, metric, bandwidth)
    return off_diagonal_mean(h) if estimator == "u" else float(np.mean(h))


# -- integrals and bounds ----------------------------------------------------------------------------


@defines("pairs", "top-label", rtol=1e-6, atol=2e-6, why="the integral is only asked for to 1e-6")
def skde(y, c, norm=1, kernel="triweight", bandwidth="mix-n-match", reflect=True):
    """Mean of |t - yhat(t)|^norm under the density of the confidences, each mirrored at the nearer end."""
    if len(set(c)) == 1 and isinstance(bandwidth, str):
        return abs(mean(y) - c[0]) ** norm
    if bandwidth == "mix-n-match":
        spread = c[y == 1] if len(set(c[y == 1])) > 1 else c
        h = 3 * standard_deviation(spread) * (2 * len(c)) ** -0.2
    else:
        h = curve_width(bandwidth, y, c, kernel)
    t = np.array([i / 20_000 for i in range(20_001)])
    k = kernel_matrix(t, c, h, kernel)
    if reflect:
        k = k + kernel_matrix(t, np.array([-x if x < 0.5 else 2 - x for x in c]), h, kernel)
    s0, s1 = k.sum(axis=1), k @ y
    off = np.abs(t - s1 / np.where(s0 > 0, s0, 1.0)) ** norm * s0
    return float((off[1:] + off[:-1]).sum() / (s0[1:] + s0[:-1]).sum())


def lipschitz_maximum(x, r, slope):
    """The largest sum of r z over |z| <= 1 with |z_i - z_j| <= slope |x_i - x_j|, as a linear programme."""
    from scipy.optimize import linprog

    n, rows, limits = len(x), [np.zeros(len(x))], [0.0]
    for i, j in itertools.permutations(range(n), 2):
        row = np.zeros(n)
        row[i], row[j] = 1.0, -1.0
        rows.append(row)
        limits.append(slope * abs(x[i] - x[j]))
    return -linprog(-r, A_ub=np.array(rows), b_ub=limits, bounds=(-1, 1)).fun


@defines("pairs", "top-label", rtol=1e-7, atol=1e-9, why="a linear programme stops at its feasibility tolerance")
def sce(y, c, lipschitz=1.0):
    return lipschitz_maximum(c, (y - c) / len(y), lipschitz)


@defines("pairs", "top-label", rtol=1e-6, atol=1e-6, why="the integral is only asked for to 1e-6")
def lsece(y, c, sigma=0.1):
    """Residuals smoothed on the logit scale; confidences of exactly 0 and 1 stand apart."""
    inside = [i for i in range(len(c)) if 0 < c[i] < 1]
    ends = sum(y[i] for i in range(len(c)) if c[i] == 0) + sum(1 - y[i] for i in range(len(c)) if c[i] == 1)
    z = np.array([math.log(c[i]) - math.log1p(-c[i]) for i in inside])
    cuts = sorted({a for x in z for a in (x - 10 * sigma, x + 10 * sigma)})
    total = 0.0
    for a, b in itertools.pairwise(cuts):
        near = [i for i in range(len(z)) if z[i] - 10 * sigma < (a + b) / 2 < z[i] + 10 * sigma]
        if not near:
            continue
        t = np.linspace(a, b, 3 + math.ceil((b - a) / sigma * 100))
        rate = 1 / (1 + np.exp(-t))
        f = sum((y[inside[i]] - rate) * np.exp(-(((t - z[i]) / sigma) ** 2) / 2) for i in near)
        f = np.abs(f) / (sigma * math.sqrt(2 * math.pi))
        total += float((f[1:] + f[:-1]).sum() * (t[1] - t[0]) / 2)
    return (total + ends) / len(y)


# == fitted curves ===================================================================================
# A map is fitted to labels, confidences and weights, and gives a function of the confidence.

EPS = np.finfo(float).eps


def logit(c: Any) -> Any:
    c = np.clip(c, EPS, 1 - EPS)
    return np.log(c) - np.log1p(-c)


def logistic(z: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(z, -700, 700)))


def local_polynomial(x, y, w, x0, q, degree, span=1.0):
    """Value and slope at x0 of the tricube-weighted polynomial through the q nearest rows."""
    away = np.abs(x - x0)
    radius = sorted(away)[q - 1] * math.sqrt(max(1.0, span))
    near = away < radius
    if not near.any():  # all q are equally far: their mean
        at = away == sorted(away)[q - 1]
        return weighted(y[at], w[at]), 0.0
    root = np.sqrt(w[near] * (1 - (away[near] / radius) ** 3) ** 3)
    design = np.array([[(a - x0) ** j for j in range(degree + 1)] for a in x[near]]) * root[:, None]
    lengths = np.array([math.sqrt(sum(column**2)) or 1.0 for column in design.T])
    inverse = np.linalg.pinv(design / lengths, rcond=100 * EPS)
    fit = inverse @ (root * y[near]) / lengths
    return fit[0], fit[1] if degree else 0.0


def loess_vertices(x, leaf):
    """A cell of more than ``leaf`` sorted rows is cut at its middle value, or the nearest place without a tie."""
    s = sorted(x)
    margin = 0.005 * max(s[-1] - s[0], 1e-10 * max(map(abs, s)) + 1e-30)
    vertices, cells = {s[0] - margin, s[-1] + margin}, [(1, len(s), s[0] - margin, s[-1] + margin)]
    while cells:
        first, last, left, right = cells.pop(0)
        if last - first + 1 <= leaf:
            continue
        middle = (first + last) // 2
        for step in (0, 1, -1, *(sign * d for d in range(2, len(s)) for sign in (1, -1))):
            if not first <= middle + step < last:
                break
            if s[middle + step - 1] != s[middle + step]:
                middle += step
                break
        cut = s[middle - 1]
        if cut in (left, right):
            continue
        vertices.add(cut)
        cells += [(first, middle, left, cut), (middle + 1, last, cut, right)]
    return sorted(vertices)


def loess(y, c, w, span=0.75, degree=2, surface="interpolate", cell=0.2, transform=None):
    """R's loess: fits at the vertices and cubics in between, or ("direct") a fit at every place."""
    x = logit(c) if transform == "logit" else c
    at = (lambda t: float(logit(t))) if transform == "logit" else float
    n = len(x)
    if len(set(x)) == 1:
        return lambda t: weighted(y, w)
    q = min(n, math.floor(n * span + 1e-5))
    if surface == "direct":
        return lambda t: local_polynomial(x, y, w, at(t), q, degree, span)[0]
    vertices = loess_vertices(x, math.floor(n * span * cell))
    fits = [local_polynomial(x, y, w, v, q, degree, span) for v in vertices]

    def predict(t):
        z = at(t)
        j = next(j for j in range(len(vertices) - 1) if z <= vertices[j + 1])
        (f0, g0), (f1, g1), width = fits[j], fits[j + 1], vertices[j + 1] - vertices[j]
        u = (z - vertices[j]) / width
        cubic = (1 - u) ** 2 * (1 + 2 * u) * f0 + u**2 * (3 - 2 * u) * f1
        return cubic + width * (u * (1 - u) ** 2 * g0 + u**2 * (u - 1) * g1)

    return predict


def lowess_at(x, y, w, t, q):
    """A line through the q nearest rows with tricube weights; their mean where the rows hardly spread."""
    away = np.abs(x - t)
    h = sorted(away)[q - 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        k = np.where(away <= 0.001 * h, 1.0, (1 - (away / h) ** 3) ** 3)
    k = w * np.where(away <= 0.999 * h, k, 0.0)
    center = weighted(x, k)
    spread = weighted((x - center) ** 2, k)
    if math.sqrt(spread) <= 0.001 * (max(x) - min(x)):
        return weighted(y, k)
    return weighted(y, k) + (t - center) * weighted((x - center) * y, k) / spread


def lowess(y, c, w, span=2 / 3, delta=None):
    """Cleveland's smoother without robustness: fits no closer than delta, joined by lines."""
    q = max(2, min(len(c), math.floor(span * len(c) + 1e-7)))
    delta = 0.01 * (max(c) - min(c)) if delta is None else delta
    places = [min(c)]
    while places[-1] < max(c):
        within = [x for x in c if places[-1] < x <= places[-1] + delta]
        places.append(max(within) if within else min(x for x in c if x > places[-1]))
    heights = [lowess_at(c, y, w, t, q) for t in places]
    return lambda t: float(np.interp(t, places, heights))


def local_linear(y, c, w, bandwidth=0.01):
    """A line in a window with the Epanechnikov kernel, limited to [0.001, 0.999]; elsewhere the nearest rows."""

    total = sum(w)

    def predict(t):
        u = (c - t) / bandwidth
        k = np.where(np.abs(u) < 1, 0.75 * (1 - u**2) * w, 0.0)
        s0, s1, s2 = (float((k * u**j).sum()) for j in range(3))
        r0, r1 = float((k * y).sum()), float((k * y * u).sum())
        if s0 <= 1e-11 * total:  # at most a rounding error inside
            nearest = np.abs(c - t) < min(np.abs(c - t)) + 1e-12
            height = weighted(y[nearest], w[nearest])
        elif s0 * s2 - s1**2 <= 1e-12 * s0**2:
            height = r0 / s0
        else:
            height = (s2 * r0 - s1 * r1) / (s0 * s2 - s1**2)
        return min(max(height, 0.001), 0.999)

    return predict


def isotonic(y, c, w):
    """max over starts, min over ends, of the mean label of the run; linear between the confidences."""
    x = sorted(set(c))
    mass = [sum(w[c == v]) for v in x]
    total = [sum((w * y)[c == v]) for v in x]
    run = lambda i, j: sum(total[i : j + 1]) / sum(mass[i : j + 1])  # noqa: E731
    height = [max(min(run(i, j) for j in range(g, len(x))) for i in range(g + 1)) for g in range(len(x))]
    return lambda t: float(np.interp(t, x, height))


def parabola(y, c, w):
    root = np.sqrt(w)
    theta = np.linalg.lstsq(np.array([[1, a, a * a] for a in c]) * root[:, None], y * root, rcond=None)[0]
    return lambda t: theta[0] + theta[1] * t + theta[2] * t * t


def least_loss(loss, gradient, hessian, start):
    """The minimum of a convex function, by scipy's trust region."""
    from scipy.optimize import minimize

    found = minimize(
        loss, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-11, "maxiter": 500}
    )
    return found.x


def likelihood_fit(x, y, w, center, ridge=1e-10, offset=0.0):
    """Coefficients of a logistic regression, held to ``centre`` by a ridge that matters only where the data do not."""
    w = w / w.sum()
    center = np.asarray(center, dtype=float)
    z = lambda b: x @ b + offset  # noqa: E731
    loss = lambda b: w @ (np.logaddexp(0, z(b)) - y * z(b)) + ridge / 2 * sum((b - center) ** 2)  # noqa: E731
    gradient = lambda b: x.T @ (w * (logistic(z(b)) - y)) + ridge * (b - center)  # noqa: E731

    def hessian(b):
        q = logistic(z(b))
        return x.T @ (x * (w * q * (1 - q))[:, None]) + ridge * np.eye(len(b))

    return least_loss(loss, gradient, hessian, center), loss


def beta_columns(c, parameters="abm"):
    c = np.clip(c, EPS, 1 - EPS)
    up, down, one = np.log(c), -np.log1p(-c), np.ones_like(c)
    return {
        "abm": np.stack([up, down, one], axis=-1),
        "am": np.stack([up + down, one], axis=-1),
        "ab": np.stack([up + math.log(2), down - math.log(2)], axis=-1),
        "a": np.stack([up + down], axis=-1),
    }[parameters]


def beta_fit(y, c, w, parameters="abm"):
    """a, b >= 0: the best of the fits with some of them held at zero that keeps the others positive."""
    x, slopes = beta_columns(c, parameters), {"abm": 2, "am": 1, "ab": 2, "a": 1}[parameters]
    best, least = None, math.inf
    for held in itertools.product([False, True], repeat=slopes):
        free = [j for j in range(x.shape[1]) if j >= slopes or not held[j]]
        theta = np.zeros(x.shape[1])
        center = np.array([1.0] * slopes + [0.0] * (x.shape[1] - slopes))
        if free:
            theta[free], loss = likelihood_fit(x[:, free], y, w, center[free])
            height = loss(theta[free])
        else:
            height = math.log(2)
        if min(theta[:slopes]) >= 0 and height < least:
            best, least = theta, height
    return best


def beta(y, c, w, parameters="abm"):
    theta = beta_fit(y, c, w, parameters)
    return lambda t: float(logistic(beta_columns(np.array([t]), parameters) @ theta)[0])


def platt(y, c, w):
    x = np.stack([np.ones(len(c)), logit(c)], axis=1)
    (a, b), _ = likelihood_fit(x, y, w, [0, 1])
    return lambda t: float(logistic(a + b * logit(t)))


def temperature(y, c, w):
    (b,), _ = likelihood_fit(logit(c)[:, None], y, w, [1])
    return lambda t: float(logistic(b * logit(t)))


KNOT_PLACES = {
    3: [0.10, 0.5, 0.90], 4: [0.05, 0.35, 0.65, 0.95], 5: [0.05, 0.275, 0.5, 0.725, 0.95],
    6: [0.05, 0.23, 0.41, 0.59, 0.77, 0.95], 7: [0.025, 0.18333, 0.34167, 0.5, 0.65833, 0.81667, 0.975],
}  # fmt: skip


def spline_knots(x, n_knots):
    """Harrell's quantiles; below 100 rows the outer ones are the fifth from each end; equal ones merge."""
    if len(x) < 5:
        return []
    knots = [float(np.quantile(x, q)) for q in KNOT_PLACES[n_knots]]
    if len(x) < 100:
        knots[0], knots[-1] = sorted(x)[4], sorted(x)[-5]
    knots = sorted(set(knots))
    return knots if len(knots) >= 3 else []


def spline_columns(x, knots):
    """x and Harrell's truncated cubics, linear beyond the outer knots."""
    x, cube = np.asarray(x, dtype=float), lambda u: np.maximum(u, 0.0) ** 3
    found = [x]
    for t in knots[:-2]:
        last, before = knots[-1], knots[-2]
        term = cube(x - t) - cube(x - before) * (last - t) / (last - before)
        term = term + cube(x - last) * (before - t) / (last - before)
        found.append(term / (last - knots[0]) ** 2)
    return np.stack(found, axis=-1)


def scales(x, w):
    """Standard deviation of each column; 1 for a constant one."""
    return np.array([math.sqrt(weighted((column - weighted(column, w)) ** 2, w)) or 1.0 for column in x.T])


def rcs(y, c, w, n_knots=5):
    """Deviation from the identity on the logit scale as a restricted cubic spline."""
    z = logit(c)
    knots = spline_knots(z, n_knots)
    design = spline_columns(z, knots)
    scale = scales(design, w)
    x = np.column_stack([np.ones(len(c)), design / scale])
    theta, _ = likelihood_fit(x, y, w, np.zeros(x.shape[1]), offset=z)
    return lambda t: float(logistic(logit(t) + theta[0] + spline_columns(logit(t), knots) / scale @ theta[1:]))


# -- piecewise linear maps ---------------------------------------------------------------------------


def condensed(x, y, w):
    """At most fifty groups of equal or neighboring x: mean x, mean label, share of the weight."""
    order = np.argsort(x, kind="stable")
    parts = members(x) if len(set(x)) <= 50 else [order[list(r)] for r in members(array_split_bins(len(x), 50))]
    groups = [(weighted(x[g], w[g]), weighted(y[g], w[g]), sum(w[g])) for g in parts]
    gx, gy, gw = (np.array(column) for column in zip(*groups, strict=True))
    return gx, gy, gw / gw.sum()


def exchanged_knots(candidates, m, criterion):
    """Even places to begin with; then each knot in turn moves to its best place until none does."""
    n, k = len(candidates), m + 1
    if n <= m:
        return list(candidates)
    at: list[int] = []
    for i in range(m):
        place = min(max(math.floor((i + 1) * (n + 1) / k + 0.5) - 1, i), n - m + i)
        at.append(max(place, at[-1] + 1) if at else place)
    best = criterion([candidates[j] for j in at])
    for _ in range(50):
        moved = False
        for i in range(m):
            low, high = at[i - 1] if i else -1, at[i + 1] if i + 1 < m else n
            tried = {j: criterion([candidates[a] for a in [*at[:i], j, *at[i + 1 :]]]) for j in range(low + 1, high)}
            j = min(tried, key=lambda j: tried[j])
            if tried[j] < best - 1e-12:
                at[i], best, moved = j, tried[j], True
        if not moved:
            break
    return [candidates[j] for j in at]


def hats(x, knots):
    """Weight of every knot in the linear interpolation at each x."""
    return np.array(
        [[float(np.interp(a, knots, [float(i == j) for i in range(len(knots))])) for j in range(len(knots))] for a in x]
    )


def knot_error(x, y, share, inner):
    """Squared error of the best polygon with these knots, its values held to the diagonal by 1e-8."""
    knots = np.array([0.0, *inner, 1.0])
    h = np.vstack([hats(x, knots) * np.sqrt(share)[:, None], 1e-4 * np.eye(len(knots))])
    target = np.concatenate([y * np.sqrt(share), 1e-4 * knots])
    v = np.linalg.lstsq(h, target, rcond=None)[0]
    return float(sum((h @ v - target) ** 2))


def pl_fit(y, c, w, segments, loss="log"):
    """Knots from the groups by least squares, then values by the loss over all rows."""
    from scipy.optimize import lsq_linear, minimize

    gx, gy, gw = condensed(c, y, w)
    criterion = lambda inner: knot_error(gx, gy, gw, inner)  # noqa: E731
    candidates = sorted({a for a in gx[1:-1] if 0 < a < 1})
    knots = np.array([0.0, *exchanged_knots(candidates, segments - 1, criterion), 1.0])
    h, share = hats(c, knots), w / w.sum()
    if loss == "brier":
        root = np.sqrt(share)
        a = np.vstack([h * root[:, None], 1e-4 * np.eye(len(knots))])
        v = lsq_linear(a, np.concatenate([y * root, 1e-4 * knots]), (0, 1), tol=1e-14).x
    else:

        def surprise(v):
            q = h @ v
            gradient = h.T @ (share * (q - y) / (q * (1 - q))) + 1e-8 * (v - knots)
            return -share @ (y * np.log(q) + (1 - y) * np.log1p(-q)) + 5e-9 * sum((v - knots) ** 2), gradient

        limits = [(1e-12, 1 - 1e-12)] * len(knots)
        v = np.clip(knots, 0.01, 0.99)
        for _ in range(5):  # again from where it stopped
            v = minimize(surprise, v, jac=True, method="L-BFGS-B", bounds=limits,
                         options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 5000, "maxcor": 30}).x  # fmt: skip
    return lambda t: float(np.interp(t, knots, v))


def pl3_fit(y, c, w, segments):
    """On the logit scale, with free slopes at both ends."""
    x = logit(c)
    gx, gy, gw = condensed(x, y, w)
    design = lambda x, knots: np.stack([np.ones_like(x), x, *(np.maximum(x - t, 0) for t in knots)], axis=-1)  # noqa: E731
    center = lambda knots: np.array([0.0, 1.0] + [0.0] * len(knots))  # noqa: E731

    def criterion(knots):
        theta, loss = likelihood_fit(design(gx, knots), gy, gw, center(knots), 1e-8)
        return loss(theta)

    knots = exchanged_knots(sorted(set(gx[1:-1])), segments - 1, criterion)
    theta, _ = likelihood_fit(design(x, knots), y, w, center(knots), 1e-8)
    return lambda t: float(logistic(design(logit(np.array([t])), knots) @ theta)[0])


def piecewise(fit, y, c, w, segments=None, max_segments=16, cv=10, tolerance=0.0, ensemble=True, rng=0):
    """The number of segments with the least held-out squared error; the mean of the maps of its folds."""
    n = len(y)
    if n == 1 or (segments and not ensemble):
        return fit(y, c, w, segments or 1)
    parts = shuffled_folds(n, min(cv, n), rng)
    most = min(max(1 + n // 200, 2 if n >= 20 else 1), max_segments)
    maps, scores = {}, {}
    for k in [segments] if segments else range(1, most + 1):
        maps[k], errors = [], []
        for held in parts:
            train = np.array([i for i in range(n) if i not in set(held)])
            maps[k].append(fit(y[train], c[train], w[train], k))
            errors.append(weighted([(maps[k][-1](c[i]) - y[i]) ** 2 for i in held], w[held]))
        scores[k] = mean(errors)
    chosen = next(k for k in scores if scores[k] <= min(scores.values()) * (1 + tolerance))
    if not ensemble:
        return fit(y, c, w, chosen)
    return lambda t: mean([f(t) for f in maps[chosen]])


def pl(y, c, w, loss="log", **options):
    return piecewise(lambda *rows: pl_fit(*rows, loss=loss), y, c, w, **options)


def pl3(y, c, w, **options):
    return piecewise(pl3_fit, y, c, w, **options)


def cumulative_spline(y, c, w, n_knots=6):
    """Slope of the natural cubic spline of the cumulative difference, by values at its knots."""
    from scipy.interpolate import CubicSpline

    at = sorted(set(c[w > 0]))
    mass = [sum(w[i] for i in range(len(c)) if c[i] == a) for a in at]
    t = [sum(w[i] for i in range(len(c)) if c[i] <= a) / w.sum() for a in at]
    difference = [sum(w[i] * (y[i] - c[i]) for i in range(len(c)) if c[i] <= a) / w.sum() for a in at]
    knots = np.linspace(0, 1, n_knots)
    cards = CubicSpline(knots, np.eye(n_knots), bc_type="natural") if n_knots > 2 else None
    basis = cards(t) if cards else np.column_stack([1 - np.array(t), t])
    root = np.sqrt(mass)
    values = np.linalg.lstsq(basis * root[:, None], difference * root, rcond=None)[0]
    slope = cards(t, 1) @ values if cards else np.full(len(t), values[1] - values[0])
    q = [min(max(a + s, 0.0), 1.0) for a, s in zip(at, slope, strict=True)]
    return lambda x: float(np.interp(x, at, q))


def order_preserving(y, c, w, segments=6, invariant=True):
    """An increasing polygon of the log odds through 0, odd unless told otherwise; its slopes by maximum likelihood."""
    from scipy.optimize import minimize

    z = logit(c)

    def edges(side):
        ahead = sorted(
            (abs(a), b) for a, b in zip(z, w, strict=True) if b > 0 and a != 0 and (side == 0 or side * a > 0)
        )
        total, found = sum(b for _, b in ahead), [0.0]
        for j in range(1, segments):
            upto = 0.0
            for a, b in ahead:
                upto += b
                if upto >= total * j / segments - 1e-9 * total:
                    found.append(a)
                    break
        return sorted(set(found))

    def column(x):
        sides = [0] if invariant else [1, -1]
        parts = []
        for side in sides:
            starts = edges_of[side]
            for a, b in zip(starts, [*starts[1:], np.inf], strict=True):
                size = min(max(abs(x) - a, 0.0), b - a) if side * x >= 0 else 0.0
                parts.append(np.sign(x) * size)
        return parts

    edges_of = {side: edges(side) for side in (0, 1, -1)}
    x, share = np.array([column(a) for a in z]), w / w.sum()

    def surprise(s):
        eta = x @ s
        loss = share @ (np.logaddexp(0, eta) - y * eta) + 5e-11 * sum((s - 1) ** 2)
        return loss, x.T @ (share * (logistic(eta) - y)) + 1e-10 * (s - 1)

    s = np.ones(x.shape[1])
    for _ in range(5):  # again from where it stopped
        s = minimize(surprise, s, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(s),
                     options={"ftol": 1e-16, "gtol": 1e-13, "maxiter": 5000, "maxcor": 30}).x  # fmt: skip
    return lambda t: float(logistic(np.array(column(logit(np.array([t]))[0])) @ s))


MAPS: dict[str, Callable[..., Any]] = {
    "loess": loess, "lowess": lowess, "local_linear": local_linear, "isotonic": isotonic, "parabola": parabola,
    "beta": beta, "platt": platt, "temperature": temperature, "rcs": rcs, "pl": pl, "pl3": pl3,
    "cumulative_spline": cumulative_spline, "order_preserving": order_preserving,
}  # fmt: skip

_FITTED: dict[str, Any] = {
    "rtol": 1e-6, "atol": 1e-7, "least": 6, "why": "two optimizers stop at two places near the optimum",
}  # fmt: skip


# -- errors of maps ----------------------------------------------------------------------------------


def map_gaps(y, c, w, map, places, options):
    predict = MAPS[map](y, c, w, **options)
    return [abs(predict(t) - t) for t in places]


def integral(f, low, high):
    """Between places that are close together near the ends, where log odds run away."""
    from scipy.integrate import quad

    cuts = [0.0, 1e-9, 1e-6, 1e-4, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9, 1.0]
    places = [low + (high - low) * cut for cut in cuts]
    return sum(quad(f, a, b, limit=100, epsabs=1e-9)[0] for a, b in itertools.pairwise(places))


@defines("pairs", "top-label", **_FITTED)
def map_error(y, c, map="loess", norm=1, measure="sample", w=None, **options):
    """Mean of |yhat(c) - c|^norm over the rows, or ("uniform") over all c, of loess between the outermost rows."""
    w = np.ones(len(y)) if w is None else w
    if measure == "sample":
        return weighted([g**norm for g in map_gaps(y, c, w, map, c, options)], w)
    predict = MAPS[map](y, c, w, **options)
    low, high = (min(c), max(c)) if map == "loess" else (0.0, 1.0)
    return integral(lambda t: abs(predict(t) - t) ** norm, low, high) / (high - low)


@defines("pairs", "top-label", **_FITTED)
def error_at_level(y, c, at=0.5, map="loess", w=None, **options):
    height = MAPS[map](y, c, np.ones(len(y)) if w is None else w, **options)(at)
    return min(max(height, 0.0), 1.0) - at if height == height else height


@defines("pairs", "top-label", **_FITTED)
def ici(y, c, map="loess", w=None, **options):
    return map_error(y, c, map, w=w, **options)


@defines("pairs", "top-label", **_FITTED)
def ep(y, c, percentile=90.0, map="loess", measure="sample", w=None, **options):
    """Percentile of |yhat(c) - c| over the rows as often as they count, or over the grid k/2000."""
    w = np.ones(len(y)) if w is None else w
    if measure == "uniform":
        grid = [k / 2000 for k in range(2001)]
        return float(np.percentile(map_gaps(y, c, w, map, grid, options), percentile))
    return float(np.percentile(np.repeat(map_gaps(y, c, w, map, c, options), w.astype(int)), percentile))


@defines("pairs", "top-label", **_FITTED)
def e50(y, c, map="loess", w=None, **options):
    return ep(y, c, 50, map, w=w, **options)


@defines("pairs", "top-label", **_FITTED)
def e90(y, c, map="loess", w=None, **options):
    return ep(y, c, 90, map, w=w, **options)


@defines("pairs", "top-label", **_FITTED)
def emax(y, c, map="loess", w=None, **options):
    return ep(y, c, 100, map, w=w, **options)


@defines("pairs", "top-label", **_FITTED)
def fott_beta(y, c, norm=1, parameters="abm"):
    return map_error(y, c, "beta", norm, parameters=parameters)


_SLOW = {**_FITTED, "most": 22, "rtol": 1e-5, "atol": 1e-6}


@defines("pairs", "top-label", **_SLOW)
def ece_pl(
    y, c, norm=1, loss="log", segments=None, max_segments=16, cv=10, tolerance=0.0, ensemble=True, rng=0, w=None
):
    return map_error(y, c, "pl", norm, w=w, loss=loss, segments=segments, max_segments=max_segments, cv=cv,
                     tolerance=tolerance, ensemble=ensemble, rng=rng)  # fmt: skip


@defines("pairs", "top-label", **_SLOW)
def ece_pl3(y, c, norm=1, segments=None, max_segments=16, cv=10, tolerance=0.0, ensemble=True, rng=0, w=None):
    return map_error(y, c, "pl3", norm, w=w, segments=segments, max_segments=max_segments, cv=cv,
                     tolerance=tolerance, ensemble=ensemble, rng=rng)  # fmt: skip


def multinomial_fit(design, offset, y, w, ridge):
    """log(q_k/q_0) = offset_k + design @ theta_k for the other classes in order; y counts from the reference."""
    n, m, k = len(y), design.shape[1], offset.shape[1]
    share, hit = w / w.sum(), one_hot(y, k + 1)[:, 1:]

    def shares_of(theta):
        z = np.column_stack([np.zeros(n), offset + design @ theta.reshape(k, m).T])
        z = z - z.max(axis=1, keepdims=True)
        return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), z - np.log(np.exp(z).sum(axis=1, keepdims=True))

    def loss(theta):
        return -share @ shares_of(theta)[1][np.arange(n), y] + ridge / 2 * theta @ theta

    def gradient(theta):
        return ((share[:, None] * (shares_of(theta)[0][:, 1:] - hit)).T @ design).ravel() + ridge * theta

    def hessian(theta):
        total = ridge * np.eye(k * m)
        for i, q in enumerate(shares_of(theta)[0][:, 1:]):
            total += share[i] * np.kron(np.diag(q) - np.outer(q, q), np.outer(design[i], design[i]))
        return total

    return shares_of(least_loss(loss, gradient, hessian, np.zeros(k * m)))[0]


def multinomial_spline(y, p, w, n_knots=3, reference=0):
    """Fitted probabilities: the log odds against the reference plus a spline of every one of them."""
    order = [reference, *(k for k in range(p.shape[1]) if k != reference)]
    q = np.clip(p[:, order], EPS, 1 - EPS)
    odds = np.log(q[:, 1:] / q[:, :1])
    splines = [spline_columns(x, spline_knots(x, n_knots)) for x in odds.T]
    design = np.column_stack([np.ones(len(y)), *(x / scales(x, np.ones(len(y))) for x in splines)])
    fitted = multinomial_fit(design, odds, np.array([order.index(k) for k in y]), w, 1e-10)
    return fitted[:, [order.index(k) for k in range(p.shape[1])]]


@defines("vectors", **_FITTED)
def eci(y, p, map="multinomial_spline", scale="review", reference=0, w=None, **options):
    """Squares of c - q over all entries; q from one map of the whole vector, or one map per class (of two, class 1)."""
    w = np.ones(len(y)) if w is None else w
    k = p.shape[1]
    if map == "multinomial_spline":
        q = multinomial_spline(y, p, w, reference=reference, **options)
    elif k == 2:
        one = MAPS[map](y, p[:, 1], w, **options)
        q = np.array([[1 - one(c), one(c)] for c in p[:, 1]])
    else:
        maps = [MAPS[map]((y == j).astype(float), p[:, j], w, **options) for j in range(k)]
        q = np.array([[maps[j](row[j]) for j in range(k)] for row in p])
    size = lambda q: weighted([sum((row - other) ** 2) for row, other in zip(p, q, strict=True)], w) / k  # noqa: E731
    if scale == "relative":
        prevalence = np.array([weighted(y == j, w) for j in range(k)])
        return size(q) / size([prevalence] * len(y))
    return size(q) * (100 * k / 2 if scale == "percent" else 1)


# -- Cox, beta and Wald ------------------------------------------------------------------------------


@defines("pairs", "top-label", averaged=False, **_FITTED)
def cis(y, c, boundary="drop"):
    """Logistic regression of the labels on the log odds, and how much better it fits than a = 0, b = 1."""
    names = ("intercept", "slope", "se_intercept", "se_slope", "calibration_in_the_large", "lr_statistic",
             "lr_intercept_statistic", "lr_slope_statistic", "wald_statistic")  # fmt: skip
    if boundary == "drop":
        y, c = y[(c > 0) & (c < 1)], c[(c > 0) & (c < 1)]
    x = logit(c) if boundary == "clip" else np.log(c) - np.log1p(-c)
    if not (y == 0).any() or not (y == 1).any() or max(x[y == 0]) <= min(x[y == 1]) or max(x[y == 1]) <= min(x[y == 0]):
        return dict.fromkeys(names, math.nan)  # one class, or separated
    w, design = np.ones(len(y)), np.stack([np.ones(len(y)), x], axis=1)
    theta, loss = likelihood_fit(design, y, w, [0, 1], 0.0)
    (large,), loss_large = likelihood_fit(design[:, :1], y, w, [0], 0.0, offset=x)
    q = logistic(design @ theta)
    information = design.T @ (design * (q * (1 - q))[:, None])
    variance = np.linalg.inv(information)
    fits = [loss(np.array([0.0, 1.0])), loss_large(np.array([large])), loss(theta)]
    none, shifted, both = (2 * len(y) * f for f in fits)
    away = theta - [0, 1]
    values = (*theta, *np.sqrt(np.diag(variance)), large, none - both, none - shifted, shifted - both,
              away @ information @ away)  # fmt: skip
    return dict(zip(names, values, strict=True))


@defines("pairs", "top-label", averaged=False, **_FITTED)
def sbct(y, c, measure="uniform"):
    """Area between the fitted beta map and the diagonal."""
    return map_error(y, c, "beta", measure=measure)


@defines(
    "pairs",
    "top-label",
    averaged=False,
    rtol=1e-6,
    why="a parabola through few distinct confidences is nearly singular",
)
def pws(y, c, covariance="null", lags=None):
    """Least squares of y on 1, c, c^2: how far (0, 1, 0) is from the coefficients, by their covariance."""
    inside = c[(c > 0) & (c < 1)] if covariance == "null" else c
    if len(set(inside)) < 3:
        return math.nan
    n, x = len(y), np.array([[1, a, a * a] for a in c])
    bread = np.linalg.inv(x.T @ x)
    theta = bread @ (x.T @ y)
    e = y - x @ theta
    leverage = [row @ bread @ row for row in x]
    square = {
        "null": c * (1 - c), "HC0": e**2, "HC1": e**2 * n / (n - 3), "HC3": (e / (1 - np.array(leverage))) ** 2,
        "hac": e**2,
    }[covariance]  # fmt: skip
    meat = sum(s * np.outer(row, row) for s, row in zip(square, x, strict=True))
    if covariance == "hac":
        depth = math.floor(4 * (n / 100) ** (2 / 9)) if lags is None else lags
        for lag in range(1, depth + 1):
            g = sum(e[t] * e[t - lag] * np.outer(x[t], x[t - lag]) for t in range(lag, n))
            meat = meat + (1 - lag / (depth + 1)) * (g + g.T)
    away = theta - [0, 1, 0]
    return float(away @ np.linalg.inv(bread @ meat @ bread) @ away)


# -- reliability map and neighbors -------------------------------------------------------------------


def balanced_cells(x, m):
    """Halves along the widest standardized coordinate as long as a cell holds 2m rows."""
    z = np.array([(column - mean(column)) / (standard_deviation(column) or 1.0) for column in x.T]).T
    cells, leaves = [np.arange(len(x))], []
    while cells:
        rows = cells.pop(0)
        if len(rows) < 2 * m:
            leaves.append(rows)
            continue
        widest = int(np.argmax([max(z[rows, j]) - min(z[rows, j]) for j in range(z.shape[1])]))
        rows = rows[np.argsort(z[rows, widest], kind="stable")]
        cells += [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
    return leaves


def mean_reliability(y, c, w, features, clusters, bandwidth, map_bandwidth, cluster_size, calibration):
    """Mean over the rows of the smoothed share of the label variance that the confidence explains."""
    smooth = local_linear(y, c, w, bandwidth)
    if clusters is not None:
        parts = members(clusters)
    elif features is not None:
        parts = balanced_cells(np.column_stack([c, features]), cluster_size)
    else:
        order = np.argsort(c, kind="stable")
        parts = [order[rows] for rows in members(array_split_bins(len(c), max(len(c) // cluster_size, 1)))]
    centers, shares = [], []
    for rows in parts:
        n = len(rows)
        if n < 2:
            continue
        center = mean(c[rows])
        q = smooth(center) if calibration == "map" else min(max(center, 0.001), 0.999)
        centers.append(center)
        shares.append(1 + 1 / (n - 1) - (sum(y[rows]) - n * q) ** 2 / (n * (n - 1) * q * (1 - q)))
    if not centers:
        return math.nan
    width = 10 * bandwidth if map_bandwidth is None else map_bandwidth
    reliability = local_linear(np.array(shares), np.array(centers), np.ones(len(centers)), width)
    return weighted([reliability(t) for t in c], w)


@defines("rows", rtol=1e-6, why="a line through rows that are close together keeps half its digits")
def ls_ecoc_r(y, p, features=None, clusters=None, code="one-vs-rest", bandwidth=0.01, map_bandwidth=None,
              cluster_size=10, calibration="map", w=None):  # fmt: skip
    """One problem per class (or pair of classes); clusters are made of rows, whatever they weigh."""
    w = np.ones(len(y)) if w is None else w
    options = (bandwidth, map_bandwidth, cluster_size, calibration)
    if p.ndim == 1:
        return mean_reliability(y, p, w, features, clusters, *options)
    k = p.shape[1]
    if code == "one-vs-rest":
        problems = [([a], [b for b in range(k) if b != a]) for a in range(k)]
    else:
        problems = [([a], [b]) for a, b in itertools.combinations(range(k), 2)]
    values = []
    for plus, minus in problems:
        above, both = p[:, plus].sum(axis=1), p[:, plus].sum(axis=1) + p[:, minus].sum(axis=1)
        rows = [i for i in range(len(y)) if (y[i] in plus or y[i] in minus) and both[i] > 0]
        label = np.array([int(y[i] in plus) for i in rows])
        some = lambda x: None if x is None else x[rows]  # noqa: B023, E731
        confidence = np.minimum(above[rows] / both[rows], 1.0)
        values.append(mean_reliability(label, confidence, w[rows], some(features), some(clusters), *options))
    return mean(values)


@defines("vectors", least=2)
def knn_reliability(y, p, query=None, k=None, expected="neighbours"):
    """Labels of the k rows nearest to the query against what was predicted there; the first of equally near ones."""
    query = p.mean(axis=0) if query is None else np.asarray(query)
    far = [math.sqrt(sum((row - query) ** 2)) for row in p]
    near = sorted(range(len(y)), key=lambda i: far[i])[:k]
    observed = np.array([sum(y[near] == j) for j in range(p.shape[1])], dtype=float)
    if expected == "query":
        return float(sum((observed - k * query) ** 2 / (k * query)))
    gap = observed - p[near].sum(axis=0)
    cov = sum(np.diag(row) - np.outer(row, row) for row in p[near])
    return float(gap[:-1] @ np.linalg.solve(cov[:-1, :-1], gap[:-1]))


# == cumulative differences ==========================================================================


def cumulative_differences(y, c, order=None, w=None):
    """(1/N) sum of y - c over the rows up to each confidence, 0 first; or after every row of an order."""
    step = (y - c) / len(y) if w is None else w * (y - c) / sum(w)
    if order is not None:
        return [math.fsum(step[order[:k]]) for k in range(len(y) + 1)]
    return [0.0] + [math.fsum(step[c <= s]) for s in sorted(set(c))]


def walk(y, c, ties):
    """Equal confidences are one step, or ("stable") steps in the order of the rows."""
    return cumulative_differences(y, c, None if ties == "aggregate" else np.argsort(c, kind="stable"))


@defines("pairs", "top-label")
def ecce_mad(y, c, ties="aggregate"):
    return max(abs(d) for d in walk(y, c, ties))


@defines("pairs", "top-label")
def ecce_r(y, c, ties="aggregate"):
    return max(walk(y, c, ties)) - min(walk(y, c, ties))


# == newer than the review ===========================================================================


@defines("pairs", "top-label")
def atb(y, c, norm=2, debias=False, root=False):
    """Two bins, below and above a threshold, averaged over all thresholds; nothing changes between two confidences."""
    places = sorted({0.0, 1.0, *c})
    whole = math.fsum(y - c) / len(y)
    total = 0.0
    for low, high in itertools.pairwise(places):
        below = math.fsum((y - c)[c <= low]) / len(y)
        total += (high - low) * (abs(below) ** norm + abs(whole - below) ** norm)
    if debias:
        total -= math.fsum((y - c) ** 2) / len(y) ** 2
    return math.copysign(abs(total) ** (1 / norm), total) if root else total


# -- decisions ---------------------------------------------------------------------------------------


def shares_at(y, c, t):
    """Misses and false alarms, per row, of acting where c > t."""
    return sum((y == 1) & (c <= t)) / len(y), sum((y == 0) & (c > t)) / len(y)


def pieces(low, high, *breaks):
    """Between neighboring breaks nobody changes sides."""
    return itertools.pairwise(sorted({low, high, *(x for some in breaks for x in some if low < x < high)}))


@defines("pairs", "top-label", rtol=1e-7, why="two optimizers of a map stop at two places near the optimum")
def decision_loss(y, c, map="isotonic", cross_fit=False, folds=5, rng=0):
    """The largest regret in units of the larger stake; on a piece it is largest at one of its ends."""
    if cross_fit:
        g = cross_fitted(map, y, c, np.ones(len(y)), folds, rng)
    else:
        fitted = MAPS[map](y, c, np.ones(len(y)))
        g = np.clip([fitted(x) for x in c], 0, 1)
    worst = 0.0
    for low, high in pieces(0.0, 1.0, c, g, [0.5]):
        (m, f), (m_best, f_best) = (shares_at(y, s, (low + high) / 2) for s in (c, g))
        for t in (low, high):
            regret = (1 - t) * (m - m_best) + t * (f - f_best)
            worst = max(worst, regret / max(t, 1 - t))
    return worst


@defines("pairs", "top-label")
def net_benefit(y, c, threshold=0.5, standardized=False):
    """Acting where c >= t."""
    hits, alarms = sum((y == 1) & (c >= threshold)) / len(y), sum((y == 0) & (c >= threshold)) / len(y)
    benefit = hits - alarms * threshold / (1 - threshold)
    return benefit / mean(y) if standardized else benefit


@defines("pairs", "top-label")
def bounded_brier(y, c, low=0.0, high=1.0):
    """Twice the area under the cost curve between two thresholds, piece by piece."""
    total = 0.0
    for a, b in pieces(low, high, c):
        m, f = shares_at(y, c, (a + b) / 2)
        total += 2 * (m * ((b - a) - (b * b - a * a) / 2) + f * (b * b - a * a) / 2)
    return total


@defines("pairs", "top-label")
def bounded_log(y, c, low=0.0, high=1.0):
    """The same with the cost divided by t (1 - t)."""
    total = 0.0
    for a, b in pieces(low, high, c):
        m, f = shares_at(y, c, (a + b) / 2)
        total += m * (log(b) - log(a)) if m > 0 else 0.0
        total += f * (log(1 - a) - log(1 - b)) if f > 0 else 0.0
    return total


# -- cross-fitting -----------------------------------------------------------------------------------


def dealt(n, folds, rng=0):
    """The fold of every row, as given or dealt at random."""
    return stream(rng, "folds").permutation(n) % folds if np.ndim(folds) == 0 else np.asarray(folds)


def cross_fitted(map, y, c, w, folds, rng=0, fit=None):
    """Every row through the map fitted to the rows of the other folds."""
    fold, g = dealt(len(y), folds, rng), np.empty_like(c)
    for held in sorted(set(fold)):
        out, seen = fold == held, fold != held
        curve = (fit or MAPS[map])(y[seen], c[seen], w[seen])
        g[out] = [curve(x) for x in c[out]]
    return np.clip(g, 0, 1)


def free_beta(y, c, w):
    """The beta map without its constraint: it may fall."""
    theta, _ = likelihood_fit(beta_columns(c), y, w, [1, 1, 0])
    return lambda t: float(logistic(beta_columns(np.array([t])) @ theta)[0])


def shrunk_isotonic(y, c, w):
    """Isotonic blocks at 0 and 1 take (s + 1/2)/(n + 1); linear between the confidences."""
    x, curve = sorted(set(c)), isotonic(y, c, w)
    height = np.array([curve(v) for v in x])
    mass = np.array([sum(w[c == v]) for v in x])
    zeros, ones = mass[height <= 0].sum(), mass[height >= 1].sum()
    height = np.where(height <= 0, 0.5 / (zeros + 1), np.where(height >= 1, (ones + 0.5) / (ones + 1), height))
    return lambda t: float(np.interp(t, x, height))


def half_ends(fit):
    """A map of log odds: scores stay half as far from 0 and 1 as the nearest score that is neither."""

    def fitted(y, c, w):
        stated = [d for x in np.ravel(c) for d in (min(x, 1 - x),) if d > 0]
        end = min(stated) / 2 if stated else 0.5 / (w.sum() + 1)

        def inside(x):
            moved = np.clip(x, end, 1 - end)
            return moved / moved.sum(axis=-1, keepdims=True) if np.ndim(x) and c.ndim == 2 else moved

        curve = fit(y, inside(c), w)
        return lambda t: curve(inside(t))

    return fitted


def vector_temperature(y, p, w):
    """softmax(log c / T), 1/T by maximum likelihood."""
    from scipy.optimize import minimize_scalar

    z = np.log(np.clip(p, EPS, 1 - EPS))

    def loss(b):
        logs = b * z - np.log(np.exp(b * z - (b * z).max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))
        logs = logs - (b * z).max(axis=1, keepdims=True)
        return -weighted(logs[np.arange(len(y)), y], w) + 5e-11 * (b - 1) ** 2

    b = minimize_scalar(loss, bracket=(0.5, 1.5), tol=1e-12).x
    return lambda row: softmax(b * np.log(np.clip(row, EPS, 1 - EPS)))


ON_LOG_ODDS = ("beta", "platt", "temperature", "rcs", "pl3")


def row_scores(y, p, score="brier", scale="1/K", alpha=2.0):
    """A proper score of every row."""
    of = {
        "brier": lambda y, p: bs(y, p, scale), "log": nll, "spherical": lambda y, p: 1 - pss(y, p, alpha),
        "power": lambda y, p: ps(y, p, alpha), "rps": lambda y, p: rps(y, p, normalize=False),
    }[score]  # fmt: skip
    return np.array([of(y[[i]], p[[i]]) for i in range(len(y))])


@defines("rows", least=20, rtol=1e-6, atol=1e-8, why="two optimizers stop at two places near the optimum")
def calibration_loss(y, p, score="brier", map="auto", folds=5, rng=0, scale="1/K", alpha=2.0, w=None):
    """What the map fitted to the other folds takes off a proper score, and the standard error of the differences."""
    w = np.ones(len(y)) if w is None else w
    if map == "auto":
        map = "temperature" if p.ndim == 2 else "isotonic" if len(y) >= 300 else "beta"
    if p.ndim == 2:
        fit = half_ends(vector_temperature)
    elif score == "log" and map == "isotonic":
        fit = shrunk_isotonic
    else:
        fit = half_ends(MAPS[map]) if map in ON_LOG_ODDS else MAPS[map]
    g = cross_fitted(map, y, p, w, folds, rng, fit)
    before, after = (row_scores(y, columns(q), score, scale, alpha) for q in (p, g))
    given, refined = weighted(before, w), weighted(after, w)
    if not math.isfinite(given):
        return {"calibration_loss": given, "score": given, "refinement": refined}
    gain = before - after
    spread = sum(w * (gain - weighted(gain, w)) ** 2) / (sum(w) - 1)
    return {
        "calibration_loss": given - refined, "score": given, "refinement": refined,
        "standard_error": math.sqrt(spread / sum(w)),
    }  # fmt: skip


@defines("pairs", "top-label", least=20, rtol=1e-7, why="two optimizers of a map stop at two places near the optimum")
def variational_error(y, c, map="auto", folds=5, rng=0, direction=None, w=None):
    """On which side of the confidence the other folds see the truth, times the residual."""
    w = np.ones(len(y)) if w is None else w
    map = ("isotonic" if len(y) >= 300 else "beta") if map == "auto" else map
    g = cross_fitted(map, y, c, w, folds, rng, free_beta if map == "beta" else None)
    side = np.where(np.abs(g - c) > 1e-12, np.sign(g - c), 0.0)
    terms = []
    for i in range(len(y)):
        counts = direction is None or np.sign(0.5 - c[i]) * side[i] == (1 if direction == "over" else -1)
        terms.append(side[i] * (y[i] - c[i]) if counts else 0.0)
    return weighted(terms, w)


@defines_vectors("variational_error")
def variational_error_of_vectors(y, p, folds=5, rng=0, norm=1, w=None):
    """The residual along the gradient of the norm of g - c."""
    w = np.ones(len(y)) if w is None else w
    away = cross_fitted("temperature", y, p, w, folds, rng, vector_temperature) - p
    terms = []
    for d, residual in zip(np.where(abs(away) > 1e-12, away, 0.0), one_hot(y, p.shape[1]) - p, strict=True):
        if not d.any():
            slope = d
        elif norm == math.inf:
            slope = np.sign(d) * (np.arange(len(d)) == int(np.argmax(abs(d))))
        else:
            slope = abs(d) ** (norm - 1) * np.sign(d) / sum(abs(d) ** norm) ** (1 - 1 / norm)
        terms.append(slope @ residual)
    return weighted(terms, w)


# -- evidence ----------------------------------------------------------------------------------------


def likelihood_ratio(y, c, q):
    """Log of how much likelier the labels are under q; infinite when what was said to be impossible happened."""
    total = 0.0
    for label, stated, other in zip(y, c, q, strict=True):
        if (stated if label else 1 - stated) == 0:
            return math.inf
        total += log(other if label else 1 - other) - log(stated if label else 1 - stated)
    return total


@defines("pairs", "top-label")
def calibration_e_value(y, c, log=False):
    """The mean likelihood ratio of 342 alternatives, fixed in advance."""
    slopes = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
    ratios = []
    for a, b, d in itertools.product((0.0, 0.25, -0.25, 0.5, -0.5, 1.0, -1.0), slopes, slopes):
        if (a, b, d) != (0.0, 1.0, 1.0):
            with np.errstate(divide="ignore"):
                q = logistic(a + b * np.log(c) - d * np.log1p(-c))
            ratios.append(likelihood_ratio(y, c, np.where(c == 0, 0.0, np.where(c == 1, 1.0, q))))
    assert len(ratios) == 342
    return math.log(np.mean(np.exp(ratios))) if log else float(np.mean(np.exp(ratios)))


@defines("pairs", "top-label", least=4)
def ehl(y, c, n_splits=10, rng=0, train=None, log=False, w=None):
    """The likelihood ratio, on the other half, of the isotonic curve of one half; the mean over random halves."""
    w = np.ones(len(y)) if w is None else w
    generator = stream(rng, "halves")
    ratios = []
    for _ in range(n_splits if train is None else 1):
        if train is None:
            seen = np.zeros(len(y), dtype=bool)
            seen[generator.permutation(len(y))[: len(y) // 2]] = True
        else:
            seen = np.asarray(train, dtype=bool)
        curve = shrunk_isotonic(y[seen], c[seen], w[seen])
        held = np.repeat(np.flatnonzero(~seen), w[~seen].astype(int))
        ratios.append(likelihood_ratio(y[held], c[held], [curve(x) for x in c[held]]))
    return math.log(np.mean(np.exp(ratios))) if log else float(np.mean(np.exp(ratios)))


def honest_bounds(y, lower_places, upper_places, at, confidence_level):
    """Exact binomial bounds of every run of confidences, at a level that holds for all of them at once."""
    from scipy.stats import beta as beta_law

    low, high = np.zeros(len(at)), np.ones(len(at))
    for places, lower in ((lower_places, True), (upper_places, False)):
        values = sorted(set(places))
        a = (1 - confidence_level) / (len(values) * (len(values) + 1))
        for i, start in enumerate(values):
            for end in values[i:]:
                run = (places >= start) & (places <= end)
                n, x = int(run.sum()), int(y[run].sum())
                if lower and x > 0:
                    low = np.where(at >= end, np.maximum(low, beta_law.ppf(a, x, n - x + 1)), low)
                if not lower and x < n:
                    high = np.where(at <= start, np.minimum(high, beta_law.ppf(1 - a, x + 1, n - x)), high)
    return low, high


@defines("pairs", "top-label", most=30, averaged=False)
def honest_error(y, c, confidence_level=0.95, digits=None):
    """The least and the most that the mean error can be within the band, and the most that any error can be."""
    up = down = c
    if digits is not None:
        up, down = (f(np.round(c * 10**digits, 9)) / 10**digits for f in (np.ceil, np.floor))
    low, high = honest_bounds(y, up, down, c, confidence_level)
    return {
        "low": mean(np.maximum(0, np.maximum(low - c, c - high))),
        "high": mean(np.maximum(np.abs(low - c), np.abs(high - c))),
        "certified": float(np.maximum(np.abs(low - c), np.abs(high - c)).max()),
    }


# -- segments ----------------------------------------------------------------------------------------


def segments(by, depth=2, n_cuts=3, min_rows=10):
    """All rows, and every intersection of the levels of up to ``depth`` columns that holds enough rows."""
    levels = []
    for column in by.values():
        if np.asarray(column).dtype.kind == "f" and len(set(column)) > 10:
            cuts = [np.quantile(column, j / n_cuts) for j in range(1, n_cuts)]
            levels.append([sum(x > cut for cut in cuts) for x in column])
        else:
            levels.append(list(column))
    found = [list(range(len(levels[0])))]
    for size in range(1, depth + 1):
        for some in itertools.combinations(levels, size):
            found += [rows for rows in members(zip(*some, strict=True)) if len(rows) >= min_rows]
    return found


@defines("pairs", "top-label", least=20)
def multicalibration_error(y, c, by=None, depth=2, n_cuts=3, min_rows=10):
    """Kuiper's error of the worst segment, each divided by its noise, on the scale of the whole."""
    noise = lambda rows: math.sqrt(sum(c[rows] * (1 - c[rows]))) / len(rows)  # noqa: E731
    parts = segments(by, depth, n_cuts, min_rows)
    return noise(parts[0]) * max(ecce_r(y[rows], c[rows]) / noise(rows) for rows in parts if noise(rows) > 0)


@defines("pairs", "top-label", least=20)
def multiaccuracy_error(y, c, by=None, depth=2, n_cuts=3, min_rows=10):
    return max(abs(math.fsum((y - c)[rows])) for rows in segments(by, depth, n_cuts, min_rows)) / len(y)


# -- abstention and ranks ----------------------------------------------------------------------------


def wrong_among(y, c, k):
    """How many of the k most confident answers are wrong; of tied answers the mean over their orders."""
    cut = sorted(c)[len(c) - k]
    above, tied = c > cut, c == cut
    return sum(1 - y[above]) + (k - sum(above)) * mean(1 - y[tied])


@defines("pairs", "top-label", two="top-label")
def aurc(y, c):
    return mean([wrong_among(y, c, k) / k for k in range(1, len(y) + 1)])


@defines("pairs", "top-label", two="top-label")
def augrc(y, c):
    return mean([wrong_among(y, c, k) / len(y) for k in range(1, len(y) + 1)])


@defines("pairs", "top-label", two="top-label")
def e_aurc(y, c):
    """Less the area when the answers are ordered by what they turned out to be."""
    return aurc(y, c) - aurc(y, y)


@defines("pairs", "top-label")
def auroc(y, c):
    pairs = [(a > b) + 0.5 * (a == b) for a in c[y == 1] for b in c[y == 0]]
    return mean(pairs) if pairs else math.nan


@defines("pairs", "top-label", least=2)
def rank_calibration_error(y, c, n_bins=20):
    """Place by confidence against place by the accuracy of its bin (its middle), the best first."""
    n = len(y)
    order = sorted(range(n), key=lambda i: -c[i])
    ends = [round(Fraction(b * n, n_bins)) for b in range(1, n_bins)]
    index = [sum(int((c > c[i]).sum()) >= end for end in ends) for i in order]
    parts = members(index)
    accuracy, middle = np.empty(n), np.empty(n)
    for rows in parts:
        accuracy[rows] = mean(y[[order[r] for r in rows]])
        middle[rows] = (len(rows) - 1) / 2
    reached = [sum(accuracy >= a - 1e-12) - 1 for a in accuracy]
    return mean([abs(reached[r] - middle[r] - r) / (n - 1) for r in range(n)])


@defines("pairs", "top-label", power=2)
def rms_calibration_error(y, c, bin_size=100, tail="join", ties="pool"):
    """Consecutive bins of sorted answers; "drop" leaves the last one out of the sum but not out of N."""
    if ties == "pool":
        parts = members(points_per_bin(c, bin_size))
    else:
        order = np.argsort(c)  # the scripts' own: numpy decides in which order equal ones come
        count = max(1, len(c) // bin_size)
        parts = [order[b * bin_size : (b + 1) * bin_size if b < count - 1 else None] for b in range(count)]
    if tail == "drop" and len(parts) == 1:
        return math.nan
    if tail == "drop":
        parts = parts[:-1]
    return math.sqrt(sum(len(rows) / len(y) * gap(y, c, rows) ** 2 for rows in parts))


# -- labels that are shares, sets, fields ------------------------------------------------------------


@defines("vectors")
def dist_ce(y, p):
    t = targets(y, p)
    return mean([sum(abs(t[i] - p[i])) / 2 for i in range(len(p))])


@defines("vectors")
def ent_ce(y, p, base=math.e):
    t = targets(y, p)
    entropy = lambda row: -sum(x_log_x(x) for x in row) / math.log(base)  # noqa: E731
    differences = [entropy(p[i]) - entropy(t[i]) for i in range(len(p))]
    return {"signed": mean(differences), "absolute": mean([abs(d) for d in differences])}


@defines("vectors")
def rank_cs(y, p):
    t = targets(y, p)
    ranked = lambda row: sorted(range(len(row)), key=lambda k: (-row[k], k))  # noqa: E731
    return mean([ranked(t[i]) == ranked(p[i]) for i in range(len(p))])


@defines("vectors")
def set_coverage(y, p, level=0.9):
    """The fewest top classes whose probabilities reach the level."""
    hits, sizes, claims = [], [], []
    for label, row in zip(y, p, strict=True):
        order = sorted(range(len(row)), key=lambda k: (-row[k], k))
        size = next(m for m in range(1, len(row) + 1) if sum(row[order[:m]]) >= level - 1e-9 or m == len(row))
        hits.append(label in order[:size])
        sizes.append(size)
        claims.append(sum(row[order[:size]]))
    return {"coverage": mean(hits), "size": mean(sizes), "claimed": mean(claims), "gap": mean(hits) - mean(claims)}


@defines("pairs", "top-label")
def field_rce(y, c, groups=None):
    """Fields without an event do not count."""
    parts = [rows for rows in members(groups) if sum(y[rows]) > 0]
    return sum(len(rows) * abs(gap(y, c, rows)) / mean(y[rows]) for rows in parts) / len(y) if parts else math.nan


@defines("pairs", "top-label", least=20, averaged=False)
def grouping_loss(y, c, groups=None, n_bins=15, binning="width", closed="right"):
    """What cells within bins of confidence differ by, beyond chance and beyond what the confidences differ by."""
    h = lambda rate: 2 * rate * (1 - rate)  # noqa: E731
    parts = bins(y, c, binning, n_bins, closed)
    uncorrected = bias = induced = 0.0
    judged = 0
    k = max(1, int(0.1 * len(y)))
    curve = []
    for i in range(len(y)):
        reach = sorted(abs(c - c[i]))[min(k, len(y)) - 1]
        curve.append(mean(y[np.abs(c - c[i]) <= reach + 1e-12]))
    for rows in parts:
        rates = [curve[i] for i in rows]
        induced += len(rows) / len(y) * (h(mean(rates)) - mean([h(r) for r in rates]))
        cells = [[rows[j] for j in cell] for cell in members([groups[i] for i in rows])]
        cells = [cell for cell in cells if len(cell) > 1]  # one case alone says nothing
        kept = [i for cell in cells for i in cell]
        if not kept:
            continue
        judged += len(kept)
        for cell in cells:
            uncorrected += len(cell) * (h(mean(y[kept])) - h(mean(y[cell])))
            bias += len(cell) * h(mean(y[cell])) / (len(cell) - 1)
        bias -= len(kept) * h(mean(y[kept])) / (len(kept) - 1)
    uncorrected, bias = uncorrected / judged, bias / judged
    return {"loss": uncorrected - bias - induced, "uncorrected": uncorrected, "bias": bias, "induced": induced}


# == detections ======================================================================================
# Rows are detections: whether correct, score, overlap with the object found, class. ``missed`` counts the objects of
# each class that no detection found; ``place`` holds features of the box, each in [0, 1].


def score_cells(score, n_bins, closed, place=()):
    """Detections by the bin of their score and of every feature."""
    sizes = [n_bins] * (1 + len(place)) if np.ndim(n_bins) == 0 else n_bins
    which = [equal_width(np.clip(x, 0, 1), n, closed) for x, n in zip([score, *place], sizes, strict=True)]
    return members([tuple(b[i] for b in which) for i in range(len(score))])


def detection_gap(correct, score, cell):
    return abs(gap(correct, score, cell))


def by_class(formula, correct, score, average, category=None, missed=None, **per_row):
    """The formula over all detections ("micro"), or the mean over the classes where it is defined."""
    rows_of = {name: x for name, x in per_row.items() if x is not None}
    if average == "micro":
        return formula(correct, score, **rows_of, **({} if missed is None else {"missed": sum(missed.values())}))
    values, sizes = [], []
    for k in sorted({*category, *(missed or {})}):
        rows = np.array([i for i in range(len(score)) if category[i] == k], dtype=int)
        some = {name: x[rows] for name, x in rows_of.items()} | ({} if missed is None else {"missed": missed.get(k, 0)})
        each = formula(correct[rows], score[rows], **some)
        if not math.isnan(each):
            values.append(each)
            sizes.append(sum(some["w"]) if "w" in some else len(rows))
    return weighted(values, sizes) if average == "weighted" else mean(values)


@defines("detections")
def average_calibration_error(correct, score, n_bins=10, closed="left", empty="skip", average="micro", category=None):
    def formula(correct, score):
        if not len(score):
            return math.nan
        cells = score_cells(score, n_bins, closed)
        total = sum(detection_gap(correct, score, cell) for cell in cells)
        return total / (len(cells) if empty == "skip" else n_bins)

    return by_class(formula, correct, score, average, category)


@defines("detections")
def d_ece(correct, score, n_bins=20, min_count=8, closed="left", denominator="all", average="micro", category=None,
          place=(), w=None):  # fmt: skip
    """Cells of fewer than min_count rows are left out; undefined when no cell is left."""

    def formula(correct, score, place=(), w=None):
        w = np.ones(len(score)) if w is None else w
        cells = score_cells(score, n_bins, closed, place)
        kept = [cell for cell in cells if len(cell) >= min_count]
        if not kept:
            return math.nan
        total = sum(w[cell].sum() for cell in (cells if denominator == "all" else kept))
        return sum(w[cell].sum() * abs(weighted(correct[cell] - score[cell], w[cell])) for cell in kept) / total

    if average == "micro":
        return formula(correct, score, place, w)
    return by_class(formula, correct, score, average, category, w=w)


def class_terms(term, correct, score, iou, category, missed, classes):
    """One term per class; a class without detections adds 0."""
    values = []
    for k in sorted({*category, *(missed or {})}):
        rows = np.array([i for i in range(len(score)) if category[i] == k], dtype=int)
        objects = sum(correct[rows]) + (missed or {}).get(k, 0)
        each = term(score[rows], iou[rows]) if len(rows) else 0.0
        if classes == "saod":  # no objects: no error
            values.append(each if objects else 0.0)
        elif classes != "kuzucu" or (objects and len(rows) and each != 0):
            values.append(each)
    return mean(values) if values else math.nan


@defines("detections")
def laece(correct, score, n_bins=25, closed="left", classes="present", category=None, iou=None, missed=None):
    """Precision times the mean overlap of the true positives is the sum of overlaps over the detections of a bin."""

    def term(score, iou):
        cells = score_cells(score, n_bins, closed)
        return sum(len(cell) * abs(mean(iou[cell]) - mean(score[cell])) for cell in cells) / len(score)

    return class_terms(term, correct, score, iou, category, missed, classes)


@defines("detections")
def laace(correct, score, classes="present", category=None, iou=None, missed=None):
    term = lambda score, iou: mean([abs(o - c) for o, c in zip(iou, score, strict=True)])  # noqa: E731
    return class_terms(term, correct, score, iou, category, missed, classes)


def beta_log_density(z, center, h):
    """Log density at z of the beta law with parameters centre/h + 1 and (1 - centre)/h + 1; 0 log 0 is 0."""
    a, b = center / h, (1 - center) / h
    constant = math.lgamma(a + b + 2) - math.lgamma(a + 1) - math.lgamma(b + 1)
    return constant + (a * log(z) if a > 0 else 0.0) + (b * log(1 - z) if b > 0 else 0.0)


def others_at(score, v, h):
    """Kernels of all other detections at the score of v, divided by the largest, whose logarithm comes first."""
    logs = [beta_log_density(score[v], score[u], h) for u in range(len(score)) if u != v]
    return max(logs), [math.exp(x - max(logs)) for x in logs] if max(logs) > -math.inf else [0.0] * len(logs)


DETECTION_WIDTHS = [1e-3, 10**-2.5, 1e-2, 10**-1.5, 1e-1, 0.2, 0.4, 0.6, 0.8, 1.0]


def detection_likelihood(score, h, authors=False):
    """Leave-one-out log likelihood of the scores; one that no other reaches is left out."""
    n, total = len(score), 0.0
    for v in range(n):
        top, k = others_at(score, v, h)
        total += top + math.log(sum(k) / (n - 1)) if sum(k) > 0 else 0.0
    return total - (n * math.log(h) if authors else 0.0)


@defines("detections", most=60)
def l1cbod(correct, score, link="threshold", bandwidth="loo-mle", average="micro", category=None, iou=None):
    """Where no other detection reaches, the mean of all others stands."""

    def formula(correct, score, iou=None):
        n = len(score)
        if n < 2:
            return math.nan
        h = bandwidth
        if isinstance(h, str):
            heights = [detection_likelihood(score, width, h == "loo-authors") for width in DETECTION_WIDTHS]
            h = DETECTION_WIDTHS[int(np.argmax(heights))]
        psi = correct if link == "threshold" else iou
        errors = []
        for v in range(n):
            others = [u for u in range(n) if u != v]
            _, k = others_at(score, v, h)
            errors.append(abs((weighted(psi[others], k) if sum(k) > 0 else mean(psi[others])) - score[v]))
        return mean(errors)

    return by_class(formula, correct, score, average, category, iou=iou)


@defines("detections")
def egce(correct, score, n_bins=15, closed="right", confidence_threshold=0.1, reduction="mean", average="micro",
         category=None, missed=None):  # fmt: skip
    """Every missed object is a wrong detection of score 1; so is one found only below the threshold."""

    def formula(correct, score, missed):
        kept = score >= confidence_threshold
        missed = missed + int(sum(correct[~kept]))
        score = np.concatenate([score[kept], np.ones(missed)])
        correct = np.concatenate([correct[kept], np.zeros(missed)])
        total = sum(len(cell) * detection_gap(correct, score, cell) for cell in score_cells(score, n_bins, closed))
        return total if reduction == "sum" else total / len(score) if len(score) else math.nan

    return by_class(formula, correct, score, average, category, missed=missed or {})


def global_score(loss, correct, score, reduction, average, category, missed):
    """The loss of every detection, and 1 for every missed object."""

    def formula(correct, score, missed):
        total = math.fsum(loss(c, hit) for hit, c in zip(correct, score, strict=True)) + missed
        return total if reduction == "sum" else total / (len(score) + missed) if len(score) + missed else math.nan

    return by_class(formula, correct, score, average, category, missed=missed or {})


@defines("detections")
def qgc(correct, score, reduction="mean", average="micro", category=None, missed=None):
    return global_score(lambda c, hit: (hit - c) ** 2, correct, score, reduction, average, category, missed)


@defines("detections")
def sgc(correct, score, reduction="mean", average="micro", category=None, missed=None):
    loss = lambda c, hit: 1 - (c if hit else 1 - c) / math.hypot(c, 1 - c)  # noqa: E731
    return global_score(loss, correct, score, reduction, average, category, missed)


def overlap(a, b):
    """Intersection over union of two boxes (x, y, width, height)."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    return shared / (a[2] * a[3] + b[2] * b[3] - shared)


def object_error(own, vectors, overlaps, aggregation="mean"):
    """Squared distance of an object's class from the class vectors of the boxes on it; without any it is 1."""
    if not vectors:
        return 1.0
    if aggregation == "best":
        vectors, share = [vectors[int(np.argmax(overlaps))]], [1.0]
    else:
        share = [1.0] * len(vectors) if aggregation == "mean" else overlaps
    together = [weighted([v[k] for v in vectors], share) for k in range(len(own))]
    return sum((a - b) ** 2 for a, b in zip(own, together, strict=True))


def object_errors(truth, results, iou_thresholds=(0.5, 0.75), aggregation="mean", probabilities=None):
    """The error of every annotation of a COCO file, the mean over the thresholds."""
    ids = [c["id"] for c in truth["categories"]]
    vectors = [[r["score"] * (r["category_id"] == k) for k in ids] for r in results]
    vectors = vectors if probabilities is None else [list(row) for row in probabilities]
    errors = []
    for thing in truth["annotations"]:
        own = [float(thing["category_id"] == k) for k in ids]
        here = [j for j, r in enumerate(results) if r["image_id"] == thing["image_id"]]
        shared = {j: overlap(thing["bbox"], results[j]["bbox"]) for j in here}
        each = []
        for t in iou_thresholds:
            on = [j for j in here if shared[j] >= t]
            each.append(object_error(own, [vectors[j] for j in on], [shared[j] for j in on], aggregation))
        errors.append(mean(each))
    return errors


@defines("detections")
def oce(correct, score, iou_thresholds=(0.5, 0.75), average="micro", category=None, iou=None, missed=None):
    """Detections that came matched: one box on each object that was found, with its score at the right class."""

    def formula(correct, score, iou, missed):
        found = [(s, o) for hit, s, o in zip(correct, score, iou, strict=True) if hit]
        each = []
        for t in iou_thresholds:
            errors = [object_error([1.0], [[s]] if o >= t else [], [o]) for s, o in found] + [1.0] * missed
            each.append(mean(errors) if errors else math.nan)
        return mean(each)

    return by_class(formula, correct, score, average, category, missed=missed or {}, iou=iou)


# -- sampled answers: no metric of the catalogue -------------------------------------------------------


def sampled_error(y: Any, a: Any, n_bins: int = 10) -> float:
    """Error of sampled answers: ``y[i]`` is the outcome, ``a[i]`` whether each sample agrees with the answer."""
    gap = [0.0] * n_bins
    for outcome, samples in zip(y, a, strict=True):
        k = len(samples)
        for j in range(k):
            share = Fraction(sum(samples) - samples[j], k - 1)
            b = max(math.ceil(share * n_bins) - 1, 0)  # bins are closed on the right
            gap[b] += (outcome - samples[j]) / k / len(y)
    return sum(abs(g) for g in gap)


def sampled_null_mean(y: Any, a: Any, n_bins: int = 10) -> float:
    """Mean of the error over every choice of which of a question's k + 1 numbers is called the outcome."""
    each = [[outcome, *samples] for outcome, samples in zip(y, a, strict=True)]
    total, count = 0.0, 0
    for chosen in itertools.product(*(range(len(row)) for row in each)):
        outcome = [row[u] for row, u in zip(each, chosen, strict=True)]
        rest = [row[:u] + row[u + 1 :] for row, u in zip(each, chosen, strict=True)]
        total, count = total + sampled_error(outcome, rest, n_bins), count + 1
    return total / count


def sampled_brier(y: Any, a: Any) -> float:
    """Brier score of the model's own probabilities: pairs of different samples are unbiased for their square."""
    total = 0.0
    for outcome, samples in zip(y, a, strict=True):
        k = len(samples)
        squares = mean([samples[j] * samples[i] for j in range(k) for i in range(k) if j != i])
        total += outcome - 2 * outcome * mean(samples) + squares
    return total / len(y)


# -- few human labels and a judge ----------------------------------------------------------------------


def judged_error(y: Any, c: Any, judge: Any, edges: Any, weight: float) -> float:
    """Error of bins from human labels (NaN where there is none) and a judge who counts with a given weight."""
    seen = [i for i in range(len(c)) if y[i] == y[i]]
    total = 0.0
    for b in range(len(edges) - 1):
        inside = [edges[b] < x <= edges[b + 1] or (b == 0 and x == 0.0) for x in c]
        humans = sum(y[i] - c[i] for i in seen if inside[i]) / len(seen)
        of_all = sum(judge[i] - c[i] for i in range(len(c)) if inside[i]) / len(c)
        of_seen = sum(judge[i] - c[i] for i in seen if inside[i]) / len(seen)
        total += abs(humans + weight * (of_all - of_seen))
    return total


def judged_loss(y: Any, c: Any, judge: Any, weight: float) -> float:
    """Brier score from human labels and a judge who counts with a given weight."""
    seen = [i for i in range(len(c)) if y[i] == y[i]]
    by_judge = [judge[i] * (1 - c[i]) ** 2 + (1 - judge[i]) * c[i] ** 2 for i in range(len(c))]
    humans = mean([(y[i] - c[i]) ** 2 for i in seen])
    return humans + weight * (mean(by_judge) - mean([by_judge[i] for i in seen]))
