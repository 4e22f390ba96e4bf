"""Total, aleatoric and epistemic uncertainty of each row, and the epistemic part as a detector."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.numbers import ends, number, percent, pvalue, with_interval
from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import alpha_of
from calibrary.metrics.machinery.declare import Result
from calibrary.secondorder.calibration import HowAsked
from calibrary.secondorder.detector import Detector, Scored, detector, selective_curve
from calibrary.secondorder.given import Members
from calibrary.secondorder.spread import interval_of


@dataclass(frozen=True)
class UncertaintyParts(Result):
    """Mean uncertainty over the rows: ``total`` is ``aleatoric`` plus ``epistemic``; ``rows`` holds those of each row.

    ``low`` and ``high`` are the ends of the interval of the epistemic part.
    """

    total: float
    aleatoric: float
    epistemic: float
    low: float
    high: float
    rows: Array


@dataclass(frozen=True)
class EnsembleDecomposition(Result):
    """The uncertainty of the outcomes (aleatoric) and the disagreement of the members (epistemic).

    Attributes
    ----------
    estimate, low, high : mean epistemic uncertainty by entropy (the mutual information), in nats, and its interval
    pvalue : p-value of the hypothesis that epistemic uncertainty does not separate wrong from right predictions
    entropy, variance : :class:`UncertaintyParts` by entropy and by variance (summed over the classes of several)
    errors : epistemic uncertainty as a detector of errors of the mean (of the first label of each row)
    outside : epistemic uncertainty as a detector of rows outside, or None
    selective : (points, 2) coverage and error rate as rows with the largest epistemic uncertainty are left out
    sentence : the result in words
    """

    estimate: float
    low: float
    high: float
    pvalue: float
    entropy: UncertaintyParts
    variance: UncertaintyParts
    errors: Detector
    outside: Detector | None
    selective: Array
    sentence: Sentence = field(default=Sentence(""))


def entropy_parts(p: Array) -> Array:
    """An array (rows, 3): entropy of the mean, mean entropy of the members, and their difference."""

    def entropy(q: Array) -> Array:
        both: Array = entr(q).sum(axis=-1) + (entr(1.0 - q).sum(axis=-1) if q.shape[-1] == 1 else 0.0)
        return both

    total, aleatoric = entropy(p.mean(axis=1)), entropy(p).mean(axis=1)
    return np.column_stack([total, aleatoric, np.maximum(total - aleatoric, 0.0)])


def variance_parts(p: Array) -> Array:
    """An array (rows, 3): label variance under the mean, mean label variance of members, variance of members."""
    mean = p.mean(axis=1)
    total, aleatoric = (mean * (1.0 - mean)).sum(axis=1), (p * (1.0 - p)).sum(axis=2).mean(axis=1)
    return np.column_stack([total, aleatoric, np.maximum(total - aleatoric, 0.0)])


def decomposition_of(given: Members, asked: HowAsked) -> EnsembleDecomposition:
    """Both decompositions of the uncertainty, and how well the epistemic part (by entropy) detects wrong rows."""
    parts = [_parts(of(given.p), given.weight, asked.level) for of in (entropy_parts, variance_parts)]
    epistemic = parts[0].rows[:, 2]
    wrong = wrong_rows(given)
    found = detector(
        Scored("epistemic uncertainty, errors", epistemic[wrong], epistemic[~wrong], given.weight[wrong],
               given.weight[~wrong]),
        asked.level, asked.n_resamples, asked.seed,
    )  # fmt: skip
    outside = None
    if len(given.outside_p):
        there = entropy_parts(given.outside_p)[:, 2]
        scored = Scored("epistemic uncertainty, outside", there, epistemic, given.outside_weight, given.weight)
        outside = detector(scored, asked.level, asked.n_resamples, asked.seed)
    curve = selective_curve(epistemic, wrong.astype(np.float64), given.weight)
    answer = EnsembleDecomposition(
        parts[0].epistemic, parts[0].low, parts[0].high, found.pvalue, parts[0], parts[1], found, outside, curve
    )
    return replace(answer, sentence=_sentence(answer, asked))


def wrong_rows(given: Members) -> NDArray[np.bool_]:
    """Whether the class that the mean predicts differs from the first label of the row."""
    row, label = given.single
    first = label[np.searchsorted(row, np.arange(given.n))]
    mean = given.p.mean(axis=1)
    predicted = (mean[:, 0] > 0.5).astype(np.intp) if mean.shape[1] == 1 else mean.argmax(axis=1)
    return np.asarray(predicted != first, dtype=bool)


def _parts(rows: Array, w: Array, level: float) -> UncertaintyParts:
    total, aleatoric = (float(w @ rows[:, j] / w.sum()) for j in (0, 1))
    epistemic, low, high = interval_of(rows[:, 2], w, level)
    return UncertaintyParts(total, aleatoric, epistemic, max(low, 0.0), high, rows)


def _sentence(d: EnsembleDecomposition, asked: HowAsked) -> Sentence:
    share = d.entropy.epistemic / d.entropy.total if d.entropy.total > 0.0 else 0.0
    first = (
        f"The mean entropy is {number(d.entropy.total)}, of which {number(d.estimate)} ({percent(asked.level)} "
        "interval "
        f"{ends(d.low, d.high)}), or {percent(share)}, is disagreement of the members."
    )
    claims = [measured(first, total=d.entropy.total, epistemic=d.entropy.epistemic)]
    said = [first]
    for what, one in (("errors", d.errors), ("rows outside", d.outside)):
        if one is None or not one.n_found or not one.n_others:
            continue
        area = f"AUROC {with_interval(one.estimate, one.low, one.high)}, {pvalue(one.pvalue)}"
        if one.pvalue <= alpha_of(asked.level):
            side = "higher" if one.estimate > 0.5 else "lower"
            text = f"The disagreement is {side} on {what} ({area})."
            claims.append(Claim(text, "detects", what=one.name, sign=one.estimate - 0.5))
        else:
            text = f"There is no evidence that the disagreement distinguishes {what} from other rows ({area})."
        said.append(text)
    return Sentence(" ".join(said), *claims)
