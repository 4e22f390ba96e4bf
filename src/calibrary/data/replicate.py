"""One random copy of a sample: new weights or new labels of the same rows, in the format that a metric uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.once import once
from calibrary.data.checks import Array, Indices
from calibrary.data.matches import Matches
from calibrary.data.predictions import Predictions


class Replicate:
    """One random copy of a sample, in the format a metric can use.

    It gives the rows of the sample new weights (including zeros) or new labels: ``row_weights`` and ``row_labels`` in
    input order, None if unchanged; ``weights`` and ``labels`` in the order of ``base``, which has row ``order[i]`` at
    position i. ``weighted`` is the replicate as weighted rows, ``listed`` as repeated rows in drawn order, and
    ``drawn`` the rows that were drawn, if they determine the replicate.
    """

    def __init__(
        self,
        base: Predictions,
        *,
        order: Indices | None = None,
        w: Callable[[], Array] | None = None,
        y: NDArray[Any] | None = None,
        drawn: Indices | None = None,
        listed: Callable[[], Predictions] | None = None,
    ) -> None:
        self.base = base
        self.drawn = drawn
        self.row_labels = y
        self._order = order
        self._w = w
        self._listed = listed

    @once
    def row_weights(self) -> Array | None:
        return None if self._w is None else self._w()

    @once
    def weights(self) -> Array:
        return self.base.weight if self.row_weights is None else self._ordered(self.row_weights)

    @once
    def labels(self) -> NDArray[Any]:
        return self.base.y if self.row_labels is None else self._ordered(self.row_labels).astype(np.intp, copy=False)

    def _ordered(self, x: NDArray[Any]) -> NDArray[Any]:
        return x if self._order is None else x.take(self._order)

    @once
    def weighted(self) -> Predictions:
        p = self.base if self.row_labels is None else self.base.relabeled(self.labels)
        return p if self._w is None else p.reweighted(self.weights)

    @once
    def listed(self) -> Predictions:
        return self.weighted if self._listed is None else self._listed()

    def read(self, data_type: str, listed: bool = False, link: str = "threshold") -> Any:
        """The replicate in the format of a metric; ``link`` says what calibrated means for a detection metric."""
        return self.listed if listed else self.weighted


class ImageReplicate(Replicate):
    """A replicate of matched detections: predictions for classifier metrics, matches for the others."""

    def __init__(self, base: Predictions, matches: Callable[[str], Matches], **keywords: Any) -> None:
        super().__init__(base, **keywords)
        self._matches = matches

    def read(self, data_type: str, listed: bool = False, link: str = "threshold") -> Any:
        if data_type != "matches":
            return super().read(data_type, listed)
        found = self._matches(link)
        return found.repeated() if listed else found


class Block:
    """Several replicates that are computed together: their weights and labels, one row for each replicate.

    ``drawn`` holds the random numbers of each; without a scheme it holds the replicates themselves.
    """

    def __init__(self, drawn: Any, scheme: Scheme | None = None) -> None:
        self.drawn, self._scheme = drawn, scheme

    def __len__(self) -> int:
        return len(self.drawn)

    @once
    def replicates(self) -> list[Any]:
        return [one if self._scheme is None else self._scheme.make(one) for one in self.drawn]

    @once
    def row_weights(self) -> Array:
        return np.stack([one.base.weight if one.row_weights is None else one.row_weights for one in self.replicates])

    @once
    def weights(self) -> Array:
        return np.stack([one.weights for one in self.replicates])

    @once
    def row_labels(self) -> NDArray[Any]:
        if self._scheme is not None and self._scheme.labels is not None:
            return self._scheme.labels(self.drawn)
        return np.stack([one.row_labels for one in self.replicates])

    @once
    def labels(self) -> NDArray[Any]:
        return np.stack([one.labels for one in self.replicates])


@dataclass(frozen=True)
class Scheme:
    """A method of creating replicates: the random numbers that each needs, and how it is built from them.

    ``base`` contains the rows that every replicate gives new weights or, if ``relabels``, new labels; ``rows`` contains
    them in input order, and ``base`` has row ``order[i]`` at position i (None: they are the same). ``labels`` computes
    the new labels of many replicates at once from their uniform numbers (replicates, rows), if nothing else is needed.
    """

    draw: Callable[[np.random.Generator], Any]
    make: Callable[[Any], Any]
    base: Predictions
    relabels: bool = False
    order: Indices | None = None
    unsorted: Predictions | None = None
    labels: Callable[[Array], NDArray[Any]] | None = None

    def draws(self, rng: np.random.Generator, n: int) -> Any:
        """The random numbers of n replicates, one after the other."""
        return [self.draw(rng) for _ in range(n)] if self.labels is None else rng.random((n, self.rows.n))

    @property
    def rows(self) -> Predictions:
        return self.base if self.unsorted is None else self.unsorted
