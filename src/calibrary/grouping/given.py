"""Groups that the user defines: hospitals, cameras, age bands."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Indices, as_array
from calibrary.data.identity import index_of, refuse_misaligned
from calibrary.data.predictions import Predictions
from calibrary.grouping.edges import Grouping
from calibrary.grouping.groups import Groups, groups_by_number


class UserGroups(Grouping):
    """One group per distinct value of ``groups``, which has one entry per row of the input.

    Examples
    --------
    >>> from calibrary.grouping import UserGroups
    >>> UserGroups(["a", "b", "a"]).fit([0.2, 0.3, 0.9]).assign([0.2, 0.3, 0.9])
    array([0, 1, 0])
    """

    def __init__(self, groups: Any) -> None:
        self.given, self.index = as_array(groups, "groups"), index_of(groups)
        if self.given.ndim != 1:
            raise RefusedError(f"groups has {self.given.ndim} dimensions: pass one group per row")
        missing = np.flatnonzero(_missing(self.given))
        if len(missing):
            raise RefusedError(f"groups[{missing[0]}] is missing: pass a group for every row")

    def fit_view(self, view: Predictions) -> Self:
        refuse_misaligned(y_true=view, groups=self)
        names, index = np.unique(view.align(self.given, "groups"), return_inverse=True)
        self.names_ = names
        self.n_bins_ = len(names)
        self.index_: Indices = index
        return self

    def assign(self, c: Any) -> Indices:
        if len(c) != len(self.index_):
            raise RefusedError(
                f"groups are known for {len(self.index_)} rows, not for {len(c)}: pass one group per row"
            )
        return self.index_

    def _split(self, view: Predictions) -> Groups:
        return groups_by_number(view, self.n_bins_, self.index_)


def _missing(groups: NDArray[Any]) -> NDArray[np.bool_]:
    if groups.dtype.kind == "f":
        return np.asarray(np.isnan(groups))
    if groups.dtype.kind == "O":
        return np.array([g is None or g != g for g in groups.tolist()], dtype=bool)
    return np.zeros(len(groups), dtype=bool)
