"""The views of a lens: one or several views of the data, and how their values are combined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, undefined
from calibrary.data.checks import Array, as_floats

#: With more rows than this in all classes together, a class does not keep its intermediate results, to save memory.
_MOST_KEPT = 4_000_000


class Looks(Protocol):
    """The interface of a lens that data use: its name, and its views."""

    @property
    def name(self) -> str: ...

    @property
    def whole_rows(self) -> bool:
        """Whether its views have whole probability vectors."""

    def look(self, p: Any) -> Views: ...


@dataclass(frozen=True)
class Views:
    """The views of a lens, the class or pair of each view, and its weight by prevalence.

    ``several`` is False for lenses that always give exactly one view, whose value is not averaged. ``skips_undefined``
    means that classes without a value are left out of the average (a listed category without detections), instead of
    making it undefined. Views that can be computed in more than one way have a ``reading``, which gives a metric its
    own; ``known`` contains metric values that were computed when the rows were read.
    """

    views: tuple[Any, ...]
    keys: tuple[Any, ...] = (None,)
    prevalence: Array = field(default_factory=lambda: np.ones(1))
    several: bool = False
    n_classes: int = 1
    skips_undefined: bool = False
    reading: Callable[[Any, Any, Mapping[str, Any]], Any] | None = None
    known: Mapping[str, float] = field(default_factory=dict)

    def read_by(self, facts: Any, options: Mapping[str, Any]) -> Views:
        """The views in the version that a metric with these options needs."""
        if self.reading is None:
            return self
        return replace(self, views=tuple(self.reading(view, facts, options) for view in self.views))

    def done_with(self, view: Any) -> None:
        """A metric has used this view: if there are very many rows, drop what the view has cached.

        The sorted rows of ten classes take ten times the memory of one.
        """
        if self.several and hasattr(view, "forget") and len(self.views) * view.n > _MOST_KEPT:
            view.forget(everything=True)

    def weights(self, average: Any) -> Array:
        """Weights of the views, summing to one, for ``average="uniform" | "prevalence" | array``."""
        if isinstance(average, str):
            one_of("average", average, ("uniform", "macro", "prevalence", "weighted", "max"))
            given = self.prevalence if average in ("prevalence", "weighted") else np.ones(len(self.views))
        else:
            given = as_floats(average, "average")
            if given.shape == (self.n_classes,) and len(self.views) != self.n_classes:
                given = given[list(self.keys)]
            if given.shape != (len(self.views),):
                raise RefusedError(
                    f"average has shape {given.shape}: pass one weight for each of the {len(self.views)} values"
                )
            if not ((given >= 0).all() and 0.0 < given.max(initial=0.0) < 1e300):
                raise RefusedError("average contains weights that are negative, infinite or all zero")
            given = given / given.max()
        return given / (given.sum() or 1.0)  # no detection at all: no class counts

    def average(self, values: Array, average: Any) -> Any:
        """Combine one value per view according to ``average``; None gives the array itself."""
        if average is None:
            return values
        known = ~np.isnan(values)
        if self.skips_undefined:
            return self._of_defined(values, average, known)
        if isinstance(average, str) and average == "max":
            return float(np.max(values))
        weights = self.weights(average)
        if not known.all():
            missing = [self.keys[i] for i in np.flatnonzero(~known)][:5]
            return undefined(f"the average is undefined because the value is undefined for {missing}")
        used = weights > 0
        if np.isneginf(values[used]).any() and np.isposinf(values[used]).any():
            return undefined("values of -inf and +inf have no average: pass average=None to see each of them")
        return float(np.dot(weights[used], values[used]))

    def _of_defined(self, values: Array, average: Any, known: NDArray[np.bool_]) -> float:
        weights = np.where(known, self.weights(average), 0.0)
        used = weights > 0.0
        if not used.any():
            return undefined("the average is undefined because the value is undefined for every class that counts")
        if isinstance(average, str) and average == "max":
            return float(values[used].max())
        return float(np.dot(weights[used], values[used]) / weights.sum())
