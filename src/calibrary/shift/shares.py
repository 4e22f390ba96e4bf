"""Label shift: the estimated class shares in a target without labels, and the resulting weights of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import percent
from calibrary.base.once import once
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.numerics.laws import clopper_pearson
from calibrary.numerics.solve.newton import logistic_loss, minimize

#: The smallest singular value of the confusion matrix must be this many of its standard errors.
_STANDARD_ERRORS = 3.0
_MOST_STEPS = 2000


@dataclass(frozen=True)
class LabelWeighting:
    """Weights w[y] = share of the class in the target / share in the source.

    ``predicted`` is the predicted class of each row of the source and ``law`` the frequency of each predicted class in
    the target. The predicted class has the largest ratio of probability to share in the source; every fixed rule is
    valid, and this one also predicts rare classes. ``weight`` is the weight of each row, if not 1.
    """

    y: Indices
    predicted: Indices
    law: Array
    n_target: int
    weight: Array | None = None

    @classmethod
    def of(cls, p: Predictions, target: Array) -> LabelWeighting:
        """The weighting from the predictions of the source and the probabilities (rows, classes) of the target."""
        share = p.class_share
        for k in np.flatnonzero(share <= 0.0):
            raise RefusedError(
                f"class {p.classes[int(k)]!r} never occurs in y_true, so its share in the target cannot be "
                "estimated: remove it from y_prob, or label rows of this class"
            )
        seen = np.bincount(_classes(target, share), minlength=p.k) / len(target)
        return cls(p.y, _classes(p.p, share), seen, len(target), p.w)

    @property
    def kinds(self) -> Array:
        return np.eye(len(self.law))

    @once
    def own(self) -> Array:
        return np.eye(len(self.law))[self.predicted]

    def weights(self, row: Indices, label: Indices, target: Array) -> Array:
        """The weights of drawn rows; ``target`` counts the predicted classes of the drawn target."""
        counts = None if self.weight is None else self.weight[row]
        of_class = self.shares(self.predicted[row], label, counts, target / target.sum())[1]
        return of_class[label] if counts is None else counts * of_class[label]

    def shares(self, predicted: Indices, label: Indices, counts: Array | None, seen: Array) -> tuple[Array, Array]:
        """The class shares in the target, projected on the simplex, and the weights of the classes."""
        table = self._table(predicted, label, counts)
        own = table.sum(axis=0)
        try:
            ratio = np.linalg.solve(table, seen)
        except np.linalg.LinAlgError:  # the draw has no row of some class
            ratio = np.linalg.lstsq(table, seen, rcond=None)[0]
        found = on_simplex(own * ratio)
        return found, np.where(own > 0.0, found / np.where(own > 0.0, own, 1.0), 0.0)

    def _table(self, predicted: Indices, label: Indices, counts: Array | None) -> Array:
        k = len(self.law)
        table = np.bincount(predicted * k + label, counts, minlength=k * k).reshape(k, k)
        return np.asarray(table / table.sum())

    @once
    def estimated(self) -> tuple[Array, Array]:
        """The class shares and class weights from the observed sets."""
        return self.shares(self.predicted, self.y, self.weight, self.law)

    @property
    def observed(self) -> Array:
        """The weights of the observed source rows."""
        return self._of_rows(self.estimated[1])

    def _of_rows(self, of_class: Array) -> Array:
        return of_class[self.y] if self.weight is None else self.weight * of_class[self.y]

    def at_limits(self, classes: Indices, level: float) -> list[Array]:
        """The weights of the source rows if a predicted class had the least or greatest credible share in the target.

        The limits are Clopper and Pearson's, which are right for any number of target rows. Resampling few rows shows
        too little of their error, and none if all rows have the same predicted class or if the estimate is projected
        on the simplex.
        """
        found = []
        limits = np.column_stack(clopper_pearson(self.law, np.full(len(self.law), self.n_target), level))
        for k in classes.tolist():
            rest = self.law + 1e-9  # equal shares of the other classes if all rows have this one
            rest[k] = 0.0
            for share in limits[k]:
                seen = (1.0 - share) * rest / rest.sum()
                seen[k] = share
                found.append(self._of_rows(self.shares(self.predicted, self.y, self.weight, seen)[1]))
        return found

    def refuse_singular(self) -> None:
        """Refuse a confusion matrix from which the class shares cannot be estimated.

        Its columns are the distributions of the predicted class given each class. The smallest singular value is
        compared with its standard error (delta method), because a truly singular matrix is not singular in a sample.
        """
        table = self._table(self.predicted, self.y, self.weight)
        given = table / table.sum(axis=0)
        left, values, right = np.linalg.svd(given)
        u, v = left[:, -1], right[-1]
        spread = (u**2) @ given - (u @ given) ** 2
        copies = np.bincount(self.y, self.weight, minlength=len(u))
        error = float(np.sqrt(np.sum(v**2 * spread / copies)))
        if values[-1] <= max(_STANDARD_ERRORS * error, 1e-9):
            raise RefusedError(
                "the class shares in the target cannot be estimated, because the confusion matrix of y_true and "
                f"the predicted classes is singular (smallest singular value {values[-1]:.2g}, standard error "
                f"{error:.2g}): the predictions do not distinguish the classes; merge classes, or label rows of the "
                "target"
            )

    def calibrated_at_target(self, p: Array) -> tuple[Array, Array]:
        """Label probabilities in the source for predictions calibrated at the target, and the target's frequencies.

        Label k has a probability proportional to p_k / w_k, so that after weighting by w its probability is p_k; the
        rows of the target are those of the source, weighted by 1 over the sum.
        """
        own = np.bincount(self.y, self.weight, minlength=len(self.law))
        own = own / own.sum()
        # a share of 0 would give all other labels the probability 0
        found = np.maximum(self.estimated[0], 0.5 / self.n_target)
        odds = p / (found / found.sum() / own)
        total = odds.sum(axis=1)
        weight = (1.0 if self.weight is None else self.weight) / total
        law = np.bincount(self.predicted, weight, minlength=len(self.law))
        return odds / total[:, None], law / law.sum()


def _classes(p: Array, share: Array) -> Indices:
    return np.asarray((p / share).argmax(axis=1))


def on_simplex(x: Array) -> Array:
    """The nearest vector of non-negative numbers that sum to one."""
    if (x >= 0.0).all() and abs(x.sum() - 1.0) < 1e-12:
        return x
    down = np.sort(x)[::-1]
    excess = (np.cumsum(down) - 1.0) / np.arange(1, len(x) + 1)
    last = int(np.flatnonzero(down > excess)[-1])
    return np.asarray(np.maximum(x - excess[last], 0.0))


def likelihood_shares(p: Array, share: Array) -> Array:
    """The maximum likelihood class shares, if ``p`` is calibrated in a population with class shares ``share``.

    The EM algorithm of Saerens, Latinne and Decaestecker (2002).
    """
    ratio = p / share
    found = share.copy()
    for _ in range(_MOST_STEPS):
        joint = ratio * found
        new = (joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0)
        moved = float(np.abs(new - found).max())
        found = new
        if moved < 1e-9:
            break
    return np.asarray(found / found.sum())


def shares_in_both(names: tuple[object, ...], target: Array, source: Array) -> str:
    """The class shares in both sets in words; for many classes, those with the largest differences."""
    if len(names) == 2:
        return f"The target has {share_words(names, target)} and the source {percent(float(source[1]))}"
    most = np.argsort(-np.abs(target - source), kind="stable")[:3]
    each = [f"{percent(float(target[k]))} of class {names[k]} (the source {percent(float(source[k]))})" for k in most]
    return f"The target has {', '.join(each)}{', and other classes' if len(names) > 3 else ''}"


def share_words(names: tuple[object, ...], shares: Array) -> str:
    """Class shares in words; for two classes, the share of the second."""
    if len(names) == 2:
        return f"{percent(float(shares[1]))} of class {names[1]}"
    return ", ".join(f"{percent(float(x))} of class {name}" for name, x in zip(names, shares, strict=True))


# -- weights by a density ratio ----------------------------------------------------------------------

# Covariate shift: the density ratio of two sets, by cross-fitted logistic regression of set membership.

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
        rest = [1.0 - scipy.special.expit(x @ beta) for beta, _ in self._fits]
        return np.column_stack([self._scale(f) * each[:, None] * x for f, each in enumerate(rest)])

    @once
    def _away(self) -> Array:
        """The contribution of one source row to the gradients."""
        chance = scipy.special.expit(self.x @ np.column_stack([beta for beta, _ in self._fits]))  # by each fold's fit
        return np.column_stack([-np.where(self.fold == f, 0.0, chance[:, f])[:, None] * self.x for f in range(FOLDS)])

    @once
    def _settled(self) -> Array:
        """The gradients at the fitted coefficients for the observed sets, without the ridge penalty."""
        return np.asarray(self._counts @ self._away + self.kinds.sum(axis=0))

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
        return np.asarray(each * (self._counts.sum() / each.sum()))


def folds(rows: Array) -> Indices:
    """The fold of each row, by its rank among the distinct rows, so that copies of a row share a fold."""
    _, number = np.unique(rows, axis=0, return_inverse=True)
    return number.ravel() % FOLDS


def log_odds(p: Array) -> Array:
    """Features from the probabilities (rows, classes) themselves: log ratios to the last class."""
    z = np.log(np.clip(p, _END, 1.0))
    return z[:, :-1] - z[:, -1:]
