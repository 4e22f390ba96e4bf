"""Decompositions of a score into calibration, resolution and uncertainty: by forecast, by bin, by isotonic fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, one_of, undefined
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic
from calibrary.metrics.machinery.entry import Seen
from calibrary.metrics.point.brier import brier_score
from calibrary.metrics.point.row_scores import soft
from calibrary.metrics.point.scoring_functions import ProperScore
from calibrary.numerics.runs import run_starts

_METHODS = ("isotonic", "unique", "bins", "true")


class CorpDecomposition(NamedTuple):
    """The CORP decomposition: score = miscalibration - discrimination + uncertainty."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


class MurphyDecomposition(NamedTuple):
    """The Murphy decomposition: score = reliability - resolution + uncertainty."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float


class BinnedDecomposition(NamedTuple):
    """By bins: score = reliability - resolution + uncertainty + within_variance - within_covariance."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float


class TrueDecomposition(NamedTuple):
    """With known true probabilities: expected_score = epistemic + irreducible."""

    epistemic: float
    irreducible: float
    expected_score: float


def _usual_lens(k: int, options: Mapping[str, Any]) -> str:
    if k == 2:
        return "binary"
    return "class-wise" if options.get("method", "isotonic") in ("isotonic", "bins") else "full"


@diagnostic(brier_score, lens=_usual_lens)
def score_decomposition(
    views: Views,
    *,
    method: str = "isotonic",
    score: str = "brier",
    scale: str = "1/K",
    alpha: float = 2.0,
    decimals: int | None = None,
    bias_correction: bool = False,
    n_bins: int | None = None,
    binning: Any = None,
    closed: str | None = None,
    true_prob: Any = None,
    average: Any = "uniform",
    **common: Unpack[Seen],
) -> CorpDecomposition | MurphyDecomposition | BinnedDecomposition | TrueDecomposition:
    r"""Split a proper score into miscalibration, discrimination and the uncertainty of the outcomes.

    With :math:`s(p, q)` the expected score of forecast p when q is true, entropy :math:`e(q) = s(q, q)` and
    divergence :math:`d(p, q) = s(p, q) - e(q) \ge 0`:

    - ``"isotonic"`` (CORP): recalibrate by isotonic regression r. Miscalibration S(c) - S(r), discrimination
      S(base rate) - S(r), uncertainty S(base rate). Stable for continuous forecasts, without tuning parameters.
    - ``"unique"`` (Murphy, Bröcker): groups of identical forecasts. Reliability is the mean of d(forecast,
      frequency), resolution that of d(base rate, frequency), uncertainty e(base rate). If all forecasts differ,
      reliability is the score itself.
    - ``"bins"`` (Stephenson et al.): the Brier score by bins, with the two within-bin terms that make it exact.
    - ``"true"``: for simulations, where the true probabilities are known: epistemic loss d(c, q) and irreducible
      loss e(q); labels are not used. Without ``true_prob`` only the calibration part of the epistemic loss can be
      estimated (by the other methods); the rest, the grouping loss, cannot be found from labels and predictions.

    Parameters
    ----------
    method : "isotonic", "unique", "bins" or "true"
    score : "brier", "log", "spherical", "power" or "rps" (not normalised)
    scale : "1/K", "sum" or "half"
        Of the Brier score; for two classes the default is (c - y)^2.
    alpha : float
        Exponent of "spherical" (the loss 1 - score) and "power".
    decimals : int, optional
        Round forecasts before grouping ("unique").
    bias_correction : bool
        Ferro and Fricker's correction of "unique" for two classes and the Brier score; nan if a group has one row.
    n_bins, binning, closed : for "bins"
        Number of bins (15), binning rule ("width"), and which end an equal-width bin includes ("right").
    true_prob : array-like of shape (N,) or (N, K)
        The true probabilities, for "true".

    Returns
    -------
    named tuple
        ``CorpDecomposition``, ``MurphyDecomposition``, ``BinnedDecomposition`` or ``TrueDecomposition``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.3, 0.3, 0.6, 0.6, 0.9]
    >>> parts = cal.score_decomposition(y, p)
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (0.02, 0.0833, 0.25)
    """
    one_of("method", method, _METHODS)
    _refuse_without_effect(
        method, decimals=decimals, bias_correction=bias_correction or None, n_bins=n_bins, binning=binning,
        closed=closed, true_prob=true_prob,
    )  # fmt: skip
    proper = ProperScore(score, scale, alpha)

    def split(view: Predictions) -> Any:
        if method == "isotonic":
            return _isotonic(view, proper)
        if method == "unique":
            return _unique(view, proper, decimals, bias_correction)
        if method == "bins":
            return _bins(view, proper, binning or "width", n_bins=n_bins or 15, closed=closed or "right")
        return _true(view, proper, true_prob)

    terms = [split(view) for view in views.views]
    if not views.several:
        return terms[0]
    columns = (views.average(np.array(column), average) for column in zip(*terms, strict=True))
    return type(terms[0])(*columns)


#: The options that apply to one method only.
_OF_METHOD = {
    **dict.fromkeys(("decimals", "bias_correction"), "unique"),
    **dict.fromkeys(("n_bins", "binning", "closed"), "bins"),
    "true_prob": "true",
}


def _refuse_without_effect(method: str, **given: Any) -> None:
    """Refuse an option of another method, because it would have no effect."""
    for name, value in given.items():
        if value is not None and method != _OF_METHOD[name]:
            shown = f"{value!r}" if isinstance(value, bool | int | str) else ""
            what = f"{name}={shown} has no effect with method={method!r}"
            raise RefusedError(f"{what}: it belongs to method={_OF_METHOD[name]!r}")


# -- the four splits --------------------------------------------------------------------------------


def _isotonic(view: Predictions, score: ProperScore) -> CorpDecomposition:
    from calibrary.maps.isotonic import pooled_frequencies

    if not view.binary:
        raise RefusedError("method='isotonic' orders rows by one confidence: use lens='class-wise' or 'top-label'")
    ties = view.ties
    weight = ties.w / ties.w.sum()
    seen = _two_columns(ties.wy / ties.w)
    base = _two_columns(np.full(1, float(weight @ seen[:, 1])))
    as_given = float(weight @ score.expected(_two_columns(ties.c), seen))
    # the recalibrated forecast of a block is its frequency, so its score is its entropy
    fitted = pooled_frequencies(view)
    block = run_starts(fitted)
    recalibrated = float(np.add.reduceat(weight, block) @ score.entropy(_two_columns(fitted[block])))
    uncertainty = float(score.entropy(base)[0])
    # both terms are non-negative by construction, up to rounding
    return CorpDecomposition(
        as_given, max(0.0, as_given - recalibrated), max(0.0, uncertainty - recalibrated), uncertainty
    )


def _unique(view: Predictions, score: ProperScore, decimals: int | None, correct: bool) -> MurphyDecomposition:
    forecast, counts = _forecasts(view, decimals)
    size = counts.sum(axis=1)
    weight, seen = size / size.sum(), counts / size[:, None]
    base = (weight @ seen)[None, :]
    divergence = score.divergence(forecast, seen)
    from_base = score.divergence(np.broadcast_to(base, seen.shape), seen)
    means = [float(weight @ x) for x in (divergence + score.entropy(seen), divergence, from_base)]
    result = MurphyDecomposition(*means, *score.entropy(base).tolist())
    return _unbiased(result, view, score, size, seen[:, -1]) if correct else result


def _unbiased(
    terms: MurphyDecomposition, view: Predictions, score: ProperScore, size: Array, rate: Array
) -> MurphyDecomposition:
    if score.name != "brier" or not view.binary:
        raise RefusedError("bias_correction=True is for the Brier score of two classes (or a binary lens)")
    total = float(size.sum())
    if (size <= 1).any():
        nan = undefined(
            "bias_correction needs at least two rows for each distinct forecast: round forecasts with decimals="
        )
        return terms._replace(reliability=nan, resolution=nan, uncertainty=nan)
    factor, base = 2.0 * score.factor(2), float(size @ rate) / total
    within = factor * float(size @ (rate * (1.0 - rate) / (size - 1.0))) / total
    overall = factor * base * (1.0 - base) / (total - 1.0)
    _, reliability, resolution, uncertainty = terms
    return MurphyDecomposition(terms.score, reliability - within, resolution - within + overall, uncertainty + overall)


def _bins(view: Predictions, score: ProperScore, binning: Any, **options: Any) -> BinnedDecomposition:
    from calibrary.grouping import group

    if score.name != "brier" or not view.binary:
        raise RefusedError("method='bins' is for the Brier score through a binary lens; use 'unique' or 'isotonic'")
    groups = group(view, binning, **options)
    base = float(view.mean(view.y))
    offset = view.c - groups.confidence[groups.index]
    terms = (
        view.mean(view.residual**2),
        groups.share @ groups.gap**2,
        groups.share @ (groups.label - base) ** 2,
        base * (1.0 - base),
        view.mean(offset**2),
        2.0 * view.mean(offset * (view.y - groups.label[groups.index])),
    )
    factor = 2.0 * score.factor(2)
    return BinnedDecomposition(*(factor * float(term) for term in terms))


def _true(view: Predictions, score: ProperScore, true_prob: Any) -> TrueDecomposition:
    if true_prob is None:
        raise RefusedCallError("method='true' needs true_prob=, the true probabilities (known in simulations only)")
    truth = soft(view, true_prob)
    q = _two_columns(truth) if view.binary else truth
    epistemic = float(view.mean(score.divergence(view.p, q)))
    irreducible = float(view.mean(score.entropy(q)))
    return TrueDecomposition(epistemic, irreducible, epistemic + irreducible)


def _two_columns(c: Array) -> Array:
    return np.column_stack([1.0 - c, c])


def _forecasts(view: Predictions, decimals: int | None) -> tuple[Array, Array]:
    """The distinct forecasts, and the weight of each class among the rows of each."""
    given = view.probability if decimals is None else np.round(view.probability, decimals)
    if view.binary:
        ties = view.ties if decimals is None else Predictions(view.y, given, view.w).ties
        return _two_columns(ties.c), np.column_stack([ties.w - ties.wy, ties.wy])
    given = np.ascontiguousarray(given + 0.0)  # -0.0 equals 0.0 but has different bits
    whole = given.view(np.dtype((np.void, given.dtype.itemsize * view.k))).ravel()
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    counts = np.bincount(group.ravel() * view.k + view.y, weights=view.w, minlength=len(first) * view.k)
    return given[first], counts.reshape(-1, view.k).astype(np.float64)
