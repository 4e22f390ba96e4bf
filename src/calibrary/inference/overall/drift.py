"""An e-value against calibration that also detects a change: one bet on every alternative, starting at every look.

The e-value of :mod:`calibrary.inference.overall.sequential` tests whether a stream as a whole is calibrated: it
decreases while predictions are good and must recover when they become bad. Here half of the stake is a bet on the whole
stream, and the other half is divided equally among bets that begin at a later look; a bet that has not begun keeps its
stake. Under calibration the sum is a martingale that begins at 1, so that the probability of ever reaching 1/alpha is
at most alpha, for any number of looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.data.checks import Array
from calibrary.inference.overall.sequential import ALTERNATIVES, Alternative


@dataclass(frozen=True)
class Drift:
    """The result of the bets on a change of calibration.

    Attributes
    ----------
    log_e : natural logarithm of the e-value after every look
    alpha : probability of ever raising an alarm on calibrated predictions
    alarm : number of the look after which the e-value first reached 1 / alpha; None if it never did
    start : first look of the bet with the largest gain at the end (0: the whole stream)
    alternative : the alternative of that bet
    """

    log_e: Array
    alpha: float
    alarm: int | None
    start: int
    alternative: Alternative

    @property
    def pvalue(self) -> float:
        """The p-value, valid at any time: 1 over the largest e-value so far."""
        return min(1.0, math.exp(-max(0.0, float(self.log_e.max(initial=0.0)))))


def drift(log_ratios: Array, alpha: float = 0.05) -> Drift:
    """The e-value of a stream from log likelihood ratios: one row for each look, one column for each alternative.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> from calibrary.inference.overall.sequential import log_ratios
    >>> rng = np.random.default_rng(0)
    >>> looks = []
    >>> for look in range(20):
    ...     c = rng.beta(0.8, 0.8, 100)
    ...     slope = 1.0 if look < 10 else 0.4
    ...     y = rng.random(100) < c**slope / (c**slope + (1 - c)**slope)
    ...     looks.append(log_ratios(cal.predictions(y, c)))
    >>> found = drift(np.array(looks))
    >>> found.alarm, found.start, found.alternative.words
    (10, 10, 'over-confident, slope 0.5')
    """
    looks, n = log_ratios.shape
    impossible = np.isinf(log_ratios).any(axis=1)
    won = np.vstack([np.zeros(n), np.cumsum(np.where(np.isinf(log_ratios), 0.0, log_ratios), axis=0)])
    stake = np.full(looks, -math.log(2.0 * max(looks - 1, 1)))
    stake[0] = -math.log(2.0) if looks > 1 else 0.0
    log_e = np.empty(looks)
    for t in range(looks):
        begun = won[t + 1] - won[: t + 1] + stake[: t + 1, None]
        waiting = math.log(max(1.0 - float(np.exp(stake[: t + 1]).sum()), 1e-300))
        log_e[t] = np.logaddexp(float(scipy.special.logsumexp(begun)) - math.log(n), waiting)
    log_e[np.cumsum(impossible) > 0] = math.inf  # an outcome of probability 0 occurred
    over = np.flatnonzero(log_e >= -math.log(alpha))
    start, best = np.unravel_index(int(np.argmax(won[-1] - won[:-1] + stake[:, None])), (looks, n))
    return Drift(log_e, alpha, int(over[0]) if len(over) else None, int(start), ALTERNATIVES[int(best)])
