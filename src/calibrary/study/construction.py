"""Simulated data that resemble your own predictions: bias by construction (section 4.11 of the review), and a study.

A law of the confidences and a calibration curve are chosen, or fitted to predictions. The bias of a metric is known by
construction, and a study of the fitted model shows how well each metric works on such predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.base.numbers import number, percent
from calibrary.data.checks import Array, Indices
from calibrary.data.lens import Lens, as_lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.grouping import norm_order
from calibrary.lookup import catalogue
from calibrary.numerics.draw import generator
from calibrary.numerics.solve.newton import Evaluated, Minimum, logistic_loss, minimize
from calibrary.study.panel import binary_panel
from calibrary.study.presets import Preset, Size
from calibrary.study.result import StudyResult
from calibrary.study.runs import run
from calibrary.study.world import CalibrationCurve, Law, World, beta_law, with_ones


def _log_flip(c: Array) -> Array:
    with np.errstate(divide="ignore"):  # log 0 = -inf at c = 1 is the correct limit
        return np.log1p(-c)


def _logit(c: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(c) - np.log1p(-c)


#: E[label | c] as a function of c and the two parameters.
CURVES: dict[str, Callable[[Array, float, float], Array]] = {
    "log_log": lambda c, a, b: np.exp(a) * c**b,
    "logflip_logflip": lambda c, a, b: 1.0 - np.exp(a) * (1.0 - c) ** b,
    "logit_logit": lambda c, a, b: scipy.special.expit(a + b * _logit(c)),
    "logit_logflip": lambda c, a, b: scipy.special.expit(a + b * _log_flip(c)),
    "power": lambda c, a, b: c**b,
    "flip_power": lambda c, a, b: 1.0 - (1.0 - c) ** b,
    "logistic": lambda c, a, b: scipy.special.expit(a * (c - b)),
}


@dataclass(frozen=True)
class Bias:
    """The bias of a metric on samples of known calibration error.

    Attributes
    ----------
    mean, sd : mean and standard deviation of the metric over the samples
    true_error : the true calibration error
    bias : mean - true_error
    standard_error : standard error of the mean
    mse : mean squared difference from the true error
    """

    mean: float
    bias: float
    sd: float
    standard_error: float
    mse: float
    true_error: float


@dataclass(frozen=True)
class Candidate:
    """One calibration curve fitted by maximum likelihood; ``free`` names the parameters that were fitted."""

    curve: str
    free: str
    a: float
    b: float
    aic: float


class BiasByConstruction:
    """Simulated data with known calibration error: confidences are beta distributed, labels follow a curve.

    Parameters
    ----------
    alpha, beta : float
        Confidences are Beta(alpha, beta).
    curve : str or callable
        Calibration curve T(c) = E[label | c], clipped to [0, 1]: "log_log" e^a c^b, "logflip_logflip"
        1 - e^a (1-c)^b, "logit_logit" expit(a + b logit c), "logit_logflip" expit(a + b log(1-c)), "power" c^b,
        "flip_power" 1 - (1-c)^b, "logistic" expit(a (c - b)), or a function of c.
    a, b : float
        Parameters of the curve; the default is a calibrated model.
    p1 : float
        Share of confidences that are exactly 1.

    Examples
    --------
    >>> from calibrary.study import BiasByConstruction
    >>> world = BiasByConstruction(2, 1, "power", b=2)
    >>> round(world.true_error(norm=1), 4)
    0.1667
    >>> world.bias("ece", 200, n_resamples=200, rng=0).bias > 0
    True
    """

    def __init__(
        self,
        alpha: float,
        beta: float,
        curve: str | Callable[[Array], Array] = "power",
        *,
        a: float = 0.0,
        b: float = 1.0,
        p1: float = 0.0,
        candidates: tuple[Candidate, ...] = (),
    ) -> None:
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"{name}={value!r} must be above 0 and finite")
        if not 0.0 <= p1 < 1.0:
            raise ValueError(f"p1={p1!r} must be at least 0 and below 1")
        if isinstance(curve, str):
            one_of("curve", curve, CURVES)
        self.alpha, self.beta, self.p1 = float(alpha), float(beta), float(p1)
        self.curve, self.a, self.b = curve, float(a), float(b)
        self.candidates = candidates

    def __repr__(self) -> str:
        curve = f"{self.curve!r}, a={self.a:.4g}, b={self.b:.4g}" if isinstance(self.curve, str) else repr(self.curve)
        return f"BiasByConstruction({self.alpha:.4g}, {self.beta:.4g}, {curve}, p1={self.p1:.4g})"

    def calibration(self, c: Any) -> Array:
        """T(c) = E[label | c]."""
        c = np.asarray(c, dtype=np.float64)
        value = CURVES[self.curve](c, self.a, self.b) if isinstance(self.curve, str) else self.curve(c)
        return np.clip(value, 0.0, 1.0)

    def true_error(self, norm: float | str = 2) -> float:
        """The true error (E|c - T(c)|^p)^(1/p), by adaptive quadrature; the largest gap for p = inf."""
        p = norm_order(norm)
        if p == np.inf:
            c = np.linspace(0.0, 1.0, 100_001)
            return float(np.abs(c - self.calibration(c)).max())

        def gap(c: float) -> float:
            return float(abs(c - self.calibration(c)) ** p)

        # the singular factor of the density is the quadrature's weight in each half
        exact = {"weight": "alg", "epsabs": 1e-14, "epsrel": 1e-11, "limit": 200}
        a, b, quad = self.alpha - 1, self.beta - 1, scipy.integrate.quad
        low = quad(lambda c: gap(c) * (1 - c) ** b, 0, 0.5, wvar=(a, 0), **exact)
        high = quad(lambda c: gap(c) * c**a, 0.5, 1, wvar=(0, b), **exact)
        continuous = (low[0] + high[0]) / scipy.special.beta(self.alpha, self.beta)
        return float(((1 - self.p1) * continuous + self.p1 * gap(1.0)) ** (1 / p))

    def sample(self, n: int, rng: Any = None) -> tuple[Indices, Array]:
        """Labels and confidences of n rows."""
        rng = generator(rng, "world")
        c = rng.beta(self.alpha, self.beta, whole("n", n))
        if self.p1 > 0.0:
            c[rng.random(n) < self.p1] = 1.0
        return (rng.random(n) < self.calibration(c)).astype(np.intp), c

    def bias(
        self,
        metric: str | Callable[..., float],
        n: int,
        *,
        norm: float | str = 1,
        n_resamples: int = 1000,
        rng: Any = None,
        **options: Any,
    ) -> Bias:
        """The bias of a metric, as an estimate of the true error, on samples of n rows.

        Parameters
        ----------
        metric : str or callable
            A metric's id, or any ``metric(y_true, y_prob)``.
        n : int
            Size of each sample.
        norm : float
            Norm of the true error, and of the metric if it has that option.
        n_resamples : int
            Number of samples.
        rng : int, Generator or None
        **options
            Options of the metric.
        """
        rng = generator(rng, "world")
        measure: Callable[..., Any] = metric if callable(metric) else catalogue[metric]
        if not callable(metric) and "norm" in catalogue[metric].options:
            options["norm"] = norm
        values = np.array(
            [float(measure(*self.sample(n, rng), **options)) for _ in range(whole("n_resamples", n_resamples, 2))]
        )
        truth = self.true_error(norm)
        sd = float(values.std(ddof=1))
        mean = float(values.mean())
        return Bias(mean, mean - truth, sd, sd / np.sqrt(n_resamples), float(np.mean((values - truth) ** 2)), truth)

    @classmethod
    def fit(
        cls, y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, lens: str | Lens = "auto"
    ) -> BiasByConstruction:
        """Fit the distribution and the curve to your predictions.

        The beta distribution is fitted by maximum likelihood to 0 < c < 1, and so is each of the four two-parameter
        curves with b, a or both free (the other at a = 0, b = 1); the one with the lowest AIC is used. All twelve are
        in ``candidates``, best first.

        Parameters
        ----------
        y_true, y_prob, sample_weight
            As for every metric.
        lens : str or Lens
            "auto" is "binary" for one column of probabilities and "top-label" for more.
        """
        view = one_view(predictions(y_true, y_prob, sample_weight=sample_weight), lens, "fit")
        alpha, beta = _fit_beta(view)
        candidates = sorted(_fit_curves(view), key=lambda found: found.aic)
        best = candidates[0]
        p1 = float(view.mean(view.c == 1.0))
        return cls(alpha, beta, best.curve, a=best.a, b=best.b, p1=p1, candidates=tuple(candidates))


def one_view(p: Predictions, lens: str | Lens, verb: str) -> Predictions:
    """The confidences of one lens: by default of the event, or of the predicted class."""
    if isinstance(lens, str) and lens == "auto":
        lens = "binary" if p.binary else "top-label"
    views = p.through(as_lens(lens))
    if views.several:
        raise RefusedError(
            f"lens={lens!r} gives several sets of confidences: {verb} one at a time, with lens='binary' or 'top-label'"
        )
    return views.views[0]


def _inside(view: Predictions) -> tuple[Array, Array, Array]:
    """Distinct confidences in (0, 1), their weight, and their weighted number of positive labels."""
    ties = view.ties
    inside = (ties.c > 0.0) & (ties.c < 1.0)
    if inside.sum() < 2:
        raise ValueError(
            f"y_prob has {int(inside.sum())} distinct confidences strictly between 0 and 1: a beta distribution needs "
            "two"
        )
    c, w, wy = ties.c[inside], ties.w[inside], ties.wy[inside]
    if wy.sum() in (0.0, w.sum()):
        raise RefusedError(
            "every label is the same: no calibration curve can be fitted; see expected_by_chance instead"
        )
    return c, w, wy


def _fit_beta(view: Predictions) -> tuple[float, float]:
    """Maximum likelihood, by Newton's method on the logarithms of the parameters."""
    digamma = scipy.special.digamma
    c, w, _ = _inside(view)
    log_c, log_d = np.average(np.log(c), weights=w), np.average(np.log1p(-c), weights=w)

    def slope(logs: Array) -> Array:
        alpha, beta = np.exp(logs)
        return np.array([digamma(alpha) - digamma(alpha + beta) - log_c, digamma(beta) - digamma(alpha + beta) - log_d])

    mean = np.average(c, weights=w)
    total = mean * (1 - mean) / np.average((c - mean) ** 2, weights=w) - 1
    found = scipy.optimize.root(slope, np.log([mean * total, (1 - mean) * total]), tol=1e-12)
    alpha, beta = np.exp(found.x)
    return float(alpha), float(beta)


def _fit_curves(view: Predictions) -> list[Candidate]:
    """Every two-parameter curve with every choice of free parameters.

    Each is linear in (a, b) behind a logit or a logarithm, so its likelihood is concave.
    """
    c, w, wy = _inside(view)
    families = {
        "log_log": (_least_log_loss, np.log(c), wy),
        "logflip_logflip": (_least_log_loss, np.log1p(-c), w - wy),
        "logit_logit": (_least_logistic_loss, np.log(c) - np.log1p(-c), wy),
        "logit_logflip": (_least_logistic_loss, np.log1p(-c), wy),
    }
    found = []
    for curve, (least, x, positive) in families.items():
        one = np.ones_like(x)
        both = np.vstack([one, x])
        designs = {"b": (x[None], None, [1.0]), "a": (one[None], x, [0.0]), "ab": (both, None, [0.0, 1.0])}
        for free, (columns, offset, start) in designs.items():
            best = least(columns, positive, w, offset, np.array(start))
            a = float(best.x[0]) if "a" in free else 0.0
            b = float(best.x[-1]) if "b" in free else 1.0
            found.append(Candidate(curve, free, a, b, 2.0 * len(free) + 2.0 * best.value))
    return found


def _least_logistic_loss(columns: Array, positive: Array, weight: Array, offset: Array | None, start: Array) -> Minimum:
    return minimize(logistic_loss(columns, positive, weight, offset=offset), start)


def _least_log_loss(columns: Array, positive: Array, weight: Array, offset: Array | None, start: Array) -> Minimum:
    """The maximum likelihood curve with log q = offset + theta @ columns below 0, by a barrier method.

    The rows are sorted by a single variable, so that the largest q is at one end and two barriers suffice.
    """
    negative = weight - positive
    shift = np.zeros(columns.shape[1]) if offset is None else offset
    ends = columns[:, [0, -1]]

    def loss(barrier: float) -> Callable[[Array], Evaluated]:
        def evaluate(theta: Array) -> Evaluated:
            eta = theta @ columns + shift
            if eta.max() >= 0.0:
                return np.inf, np.zeros(len(theta)), np.eye(len(theta))
            odds = np.exp(eta) / -np.expm1(eta)
            push = barrier / -eta[[0, -1]]
            value = -float(positive @ eta + negative @ np.log(-np.expm1(eta)) + barrier * np.log(-eta[[0, -1]]).sum())
            gradient = columns @ (negative * odds - positive) + ends @ push
            hessian = (columns * (negative * odds * (1.0 + odds))) @ columns.T + (ends * push**2 / barrier) @ ends.T
            return value, gradient, hessian

        return evaluate

    for barrier in 10.0 ** -np.arange(0, 11, 2):
        best = minimize(loss(barrier), start)
        start = best.x
    return best


# -- a study of your predictions ----------------------------------------------------------------------

#: The multiples of your error that a metric must rank.
_AMPLITUDES = (0.0, 0.5, 1.0, 1.5)
#: The largest sample size; larger samples take more time without changing the result.
_MOST_ROWS = 100_000


@dataclass(frozen=True)
class Mine:
    """The performance of metrics on predictions like yours; print the result as a table.

    Attributes
    ----------
    world : the fitted simulation model
    n : number of rows of every sample
    l1 : the true L1 error of the fitted model
    rows : for each number: ``value`` on your data; ``null``, ``null_sd`` and ``bar``, mean, standard deviation and
        95% quantile if such predictions were calibrated; ``mean`` in the fitted model; ``power``, how often an error
        like yours is above ``bar``; ``orders``, the share of pairs of models with 0, 0.5, 1 and 1.5 times your error in
        the right order
    study : the whole study
    """

    world: BiasByConstruction
    n: int
    l1: float
    rows: dict[str, dict[str, Any]]
    study: StudyResult

    def __str__(self) -> str:
        lines = [
            f"The simulation model fitted to your predictions: {self.world!r}",
            f"Its true error: {number(self.l1)}; samples of {self.n:,} rows.",
            "Value: of your data. Chance, 95%: mean and 95% quantile if such predictions were calibrated. Power: how "
            "often an",
            "error like yours is detected. Order: pairs of models of different error in the right order.",
            f"{'metric':24} {'value':>9} {'chance':>10} {'95%':>9} {'power':>8} {'order':>7}",
        ]
        for name, row in sorted(self.rows.items(), key=lambda item: -(item[1]["power"] or 0.0)):
            lines.append(
                f"{name:24} {number(row['value']) or '-':>9} {number(row['null']) or '-':>10} "
                f"{number(row['bar']) or '-':>9} "
                f"{percent(row['power']) or '-':>8} {percent(row['orders']) or '-':>7}"
            )
        return "\n".join(lines)


def mine(
    y_true: Any,
    y_prob: Any = None,
    *,
    metrics: Any = None,
    sample_weight: Any = None,
    lens: str | Lens = "auto",
    draws: int = 20,
    seed: int = 0,
    watch: Any = None,
) -> Mine:
    """Simulate how well metrics work on predictions like yours.

    A beta distribution and a calibration curve are fitted (:meth:`BiasByConstruction.fit`). Samples with as many rows
    as yours are drawn from this model, from its calibrated version, and with half and one and a half times its error.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As for every metric.
    metrics : optional
        Ids, functions of (labels, confidences), or a mapping of names to either; by default all metrics that take less
        than a tenth of a second.
    lens : str or Lens
        "auto" is "binary" for one column of probabilities and "top-label" for more.
    draws : int
        Number of samples of every setting; four times as many if it is calibrated.
    seed : int

    Examples
    --------
    >>> from calibrary import study
    >>> y, p = study.World("wide", "temperature 0.4").sample(300, rng=0)
    >>> found = study.mine(y, p, metrics=["ece", "spiegelhalter"], draws=10)
    >>> found.rows["ece"]["power"] > 0.9
    True
    """
    view = one_view(predictions(y_true, y_prob, sample_weight=sample_weight), lens, "study")
    fitted = BiasByConstruction.fit(view)
    n = min(view.n, _MOST_ROWS)
    worlds = {a: World(_law(fitted), _curve(fitted, a)) for a in _AMPLITUDES}
    preset = Preset(
        "mine", "the simulation model fitted to your predictions", tuple(worlds.values()), (Size(n, draws, 4 * draws),)
    )
    study = run(preset, metrics=metrics, seed=seed, watch=watch)
    numbers = {x.name: x for x in binary_panel(metrics, binnings=False)}
    rows = {}
    for name, measured in numbers.items():
        if name in study.found["sizes"][str(n)]:
            value, _ = measured(view)
            row = study.row(name, n)
            rows[name] = {
                "value": None if np.isnan(value) else value,
                "null": row.get("null"),
                "null_sd": row.get("null_sd"),
                "bar": next(iter(row.get("null_q95", {}).values()), None),
                "mean": study.means(name, n).get(worlds[1.0].name),
                "power": row.get("power_by_family", {}).get(worlds[1.0].family),
                "orders": row.get("within"),
            }
    return Mine(fitted, n, worlds[1.0].truth().l1, rows, study)


def _law(fitted: BiasByConstruction) -> Law:
    inside = beta_law(fitted.alpha, fitted.beta)
    return Law("yours", 20_000, with_ones(inside, 1.0 - fitted.p1), "your confidences")


def _curve(fitted: BiasByConstruction, amplitude: float) -> CalibrationCurve:
    """The fitted curve with a multiple of its error; each multiple is a separate family, so that power is separate."""
    name = f"your error x {amplitude:g}"

    def truth(c: Array) -> Array:
        return c + amplitude * (fitted.calibration(c) - c)

    return CalibrationCurve(name, 20_000 + round(1000 * amplitude), name if amplitude else "calibrated", truth)
