"""Covariate shift: the density ratio of two sets, by cross-fitted logistic regression of set membership."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.base.once import once
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.numerics.solve.newton import logistic_loss, minimize

FOLDS = 5
#: The ridge penalty per row, which matters only if the two sets are perfectly separable.
_RIDGE = 1e-6
#: The distance from 0 and 1 at which probabilities are clipped when their log odds are the features.
_END = 1e-6


@dataclass(frozen=True)
class DensityWeighting:
    """Weights in proportion to the odds that a row belongs to the target.

    The odds of a row of the source come from a regression that was fitted to the other folds of the source and to the
    target. In a draw of both sets, the coefficients change by one Newton step from the fitted ones.
    """

    x: Array
    fold: Indices
    target: Array
    weight: Array | None = None

    @classmethod
    def of(cls, p: Predictions, x: Array, target: Array) -> DensityWeighting:
        """The weighting from the predictions of the source and the features of both sets."""
        both = np.concatenate([x, target])
        weight = np.concatenate([p.weight, np.ones(len(target))])
        mean = np.average(both, axis=0, weights=weight)
        sd = np.sqrt(np.average((both - mean) ** 2, axis=0, weights=weight))
        scaled = (both - mean) / np.where(sd > 0.0, sd, 1.0)
        design = np.column_stack([np.ones(len(both)), scaled])
        n = len(x)
        return cls(design[:n], folds(np.column_stack([p.y, p.p, x])), design[n:], p.w)

    @property
    def n_target(self) -> int:
        return len(self.target)

    @property
    def law(self) -> Array:
        return np.full(len(self.target), 1.0 / len(self.target))

    @property
    def _counts(self) -> Array:
        return np.ones(len(self.x)) if self.weight is None else self.weight

    @once
    def _fits(self) -> list[tuple[Array, Array]]:
        """The coefficients of each fold, and the inverse of the curvature there."""
        found = []
        for fold in range(FOLDS):
            counts = np.where(self.fold == fold, 0.0, self._counts)
            w = np.concatenate([counts, np.full(self.n_target, counts.sum() / self.n_target)])
            columns = np.ascontiguousarray(np.concatenate([self.x, self.target]).T)
            positive = np.concatenate([np.zeros(len(self.x)), w[len(self.x) :]])
            start = np.zeros(len(columns))
            best = minimize(logistic_loss(columns, positive, w, ridge=_RIDGE * w.sum(), center=start), start)
            found.append((best.x, np.asarray(np.linalg.pinv(best.hessian), dtype=np.float64)))
        return found

    @once
    def _odds(self) -> Array:
        """The probability of each source row to belong to the target, by each fold's regression: (rows, folds)."""
        chance: Array = scipy.special.expit(self.x @ np.column_stack([beta for beta, _ in self._fits]))
        return chance

    def _scale(self, fold: int) -> float:
        """The weight of a target row in a fold's regression, such that both sets have the same total weight."""
        return float(self._counts[self.fold != fold].sum()) / self.n_target

    @once
    def kinds(self) -> Array:
        return self._steps(self.target)

    @once
    def own(self) -> Array:
        return self._steps(self.x)

    def _steps(self, x: Array) -> Array:
        """The contribution of one target row to the gradient of each fold's regression, concatenated."""
        return np.column_stack(
            [
                self._scale(f) * (1.0 - scipy.special.expit(x @ beta))[:, None] * x
                for f, (beta, _) in enumerate(self._fits)
            ]
        )

    @once
    def _away(self) -> Array:
        """The contribution of one source row to the gradients."""
        return np.column_stack(
            [-np.where(self.fold == f, 0.0, self._odds[:, f])[:, None] * self.x for f in range(FOLDS)]
        )

    @once
    def _settled(self) -> Array:
        """The gradients at the fitted coefficients for the observed sets, without the ridge penalty."""
        total: Array = self._counts @ self._away + self.kinds.sum(axis=0)
        return total

    def weights(self, row: Indices, label: Indices, target: Array) -> Array:
        """The weights of drawn rows; ``target`` is the sum of the drawn target's contributions to the gradients."""
        counts = self._counts
        drawn = np.bincount(row, counts[row], minlength=len(counts))
        moved = (drawn @ self._away + target - self._settled).reshape(FOLDS, -1)
        z = np.empty(len(counts))
        for f, (beta, inverse) in enumerate(self._fits):
            here = self.fold == f
            z[here] = self.x[here] @ (beta + inverse @ moved[f])
        each: Array = counts * np.exp(z - z.max())
        scaled: Array = each * (drawn.sum() / (each @ np.bincount(row, minlength=len(counts))))
        return scaled[row]

    @property
    def observed(self) -> Array:
        """The weights of the observed source rows; their sum is the total weight of the rows."""
        z = np.sum(self.x * np.stack([beta for beta, _ in self._fits])[self.fold], axis=1)
        each = self._counts * np.exp(z - z.max())
        scaled: Array = each * (self._counts.sum() / each.sum())
        return scaled


def folds(rows: Array) -> Indices:
    """The fold of each row, by its rank among the distinct rows, so that copies of a row share a fold."""
    _, number = np.unique(rows, axis=0, return_inverse=True)
    fold: Indices = number.ravel() % FOLDS
    return fold


def log_odds(p: Array) -> Array:
    """Features from the probabilities (rows, classes) themselves: log ratios to the last class."""
    z = np.log(np.clip(p, _END, 1.0))
    ratios: Array = z[:, :-1] - z[:, -1:]
    return ratios
