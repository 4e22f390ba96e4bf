"""What all types of state share: they are compared, added and subtracted in the same way."""

from __future__ import annotations

from typing import Any, Self, TypeGuard

from calibrary.base.errors import RefusedError
from calibrary.scale.files import Saved


class Mergeable(Saved):
    """The operators of a state: ``+``, ``-`` and ``sum`` make a new one, ``+=`` and ``-=`` change it in place."""

    def merge(self, *others: Self) -> Self:
        """Add other states, and return the state itself."""
        raise NotImplementedError

    def subtract(self, other: Self) -> Self:
        """Subtract another state, whose rows this one must contain."""
        raise NotImplementedError

    def copy(self) -> Self:
        """Another state with the same content."""
        raise NotImplementedError

    def _of_our_kind(self, other: object) -> TypeGuard[Self]:
        return isinstance(other, Mergeable) and other._kind == self._kind

    def __eq__(self, other: object) -> bool:
        return self._of_our_kind(other) and self.digest == other.digest

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __add__(self, other: Self) -> Self:
        return self.copy().merge(other) if self._of_our_kind(other) else NotImplemented

    def __radd__(self, other: Any) -> Self:
        # so that sum(states) works
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented

    def __iadd__(self, other: Self) -> Self:
        return self.merge(other)

    def __sub__(self, other: Self) -> Self:
        return self.copy().subtract(other) if self._of_our_kind(other) else NotImplemented

    def __isub__(self, other: Self) -> Self:
        return self.subtract(other)


class MergeableRows(Mergeable):
    """A state of rows, which also counts the rows that were left out."""

    #: Rows left out because they were not valid, by reason.
    dropped: dict[str, int]

    def drop(self, reason: str, count: int) -> None:
        """Count rows that were left out."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def _merge_dropped(self, other: MergeableRows) -> None:
        for reason, count in other.dropped.items():
            self.drop(reason, count)

    def _dropped_without(self, other: MergeableRows) -> dict[str, int]:
        """The rows left out, without those of another state, which must be among them."""
        left = {reason: count - other.dropped.get(reason, 0) for reason, count in self.dropped.items()}
        if min(left.values(), default=0) < 0 or not other.dropped.keys() <= left.keys():
            raise RefusedError(
                "the subtracted state left out rows that the other did not: subtract only states that were merged"
            )
        return {reason: count for reason, count in left.items() if count}
