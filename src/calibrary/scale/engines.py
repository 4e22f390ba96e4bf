"""States of data frames on the user's cluster, computed by the engine itself."""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from calibrary.base.errors import RefusedError, extra, suggest
from calibrary.data.asked import checks_options
from calibrary.scale.classes import VectorState
from calibrary.scale.detections import DetectionState
from calibrary.scale.keys import key_columns
from calibrary.scale.losses import USUAL_LOSSES, checked_losses
from calibrary.scale.read import Scan
from calibrary.scale.sql import sql
from calibrary.scale.state import State, usual_resolution
from calibrary.tables.pieces import Columns, pieces

__all__ = ["dask", "spark"]

S = TypeVar("S", State, VectorState, DetectionState)

#: The number of states that one task merges.
_SPLIT_EVERY = 8
_BATCH = 1 << 19


@checks_options
def dask(
    frame: Any,
    *,
    label: str,
    prob: str | Sequence[str],
    by: str | Sequence[str] = (),
    weight: str | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable | None = None,
    lens: str | None = None,
    resolution: int | None = None,
    class_resolution: int = 240,
    losses: str | Iterable[str] = USUAL_LOSSES,
    sample: int = 0,
    drop_invalid: bool = False,
) -> State | VectorState:
    """The state of a Dask data frame, computed on the current scheduler or cluster.

    One task per partition computes its state, and a tree of tasks adds the states. Tasks are pure functions, so that a
    task that is repeated after the loss of a worker counts once. The parameters are those of :func:`scan`; an invalid
    row is reported with its partition and row number.

    Examples
    --------
    >>> import pandas as pd
    >>> import dask.dataframe as dd
    >>> import calibrary as cal
    >>> frame = dd.from_pandas(pd.DataFrame({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9]}), npartitions=2)
    >>> cal.scale.dask(frame, label="y", prob="p").n
    3
    """
    with extra("scale", "calibrary.scale.dask"):
        import dask.bag
        from dask import delayed

    columns = Columns(label, prob if isinstance(prob, str) else tuple(prob), key_columns(by), weight)
    missing = [name for name in columns.all if name not in frame.columns]
    if missing:
        raise RefusedError(f"frame has no column {missing[0]!r}: {suggest(missing[0], map(str, frame.columns))}")
    settings = Scan(
        columns, None if labels is None else tuple(labels), pos_label, lens, usual_resolution(resolution, columns.by),
        class_resolution, checked_losses(losses), sample, drop_invalid,
    )  # fmt: skip
    parts = frame[list(columns.all)].to_delayed()
    states = [delayed(_of_partition)(part, number, settings) for number, part in enumerate(parts)]
    bag = dask.bag.from_delayed(states)
    found: list[Any] = bag.reduction(_added, _added_lists, split_every=_SPLIT_EVERY).compute()
    return settings.state_of(iter(())) if not found else merged(found)


def _of_partition(frame: Any, number: int, settings: Scan) -> list[State | VectorState]:
    import pyarrow as pa

    if not len(frame):  # for a column of lists, the number of classes would be unknown
        return []
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return [settings.state_of(pieces(table, settings.columns, None, _BATCH, f"partition {number}"))]


def _added(states: Iterable[Any]) -> list[Any]:
    found = list(states)
    return [merged(found)] if found else []


def _added_lists(lists: Iterable[list[Any]]) -> list[Any]:
    return _added(state for states in lists for state in states)


def merged(states: Iterable[S]) -> S:
    """The sum of all states; the given states are not changed.

    Examples
    --------
    >>> import calibrary as cal
    >>> days = [cal.scale.State().update([0, 1], [0.2, p]) for p in (0.6, 0.7)]
    >>> cal.scale.merged(days).n
    4
    """
    rest: Iterator[S] = iter(states)
    first = next(rest, None)
    if first is None:
        raise RefusedError("states is empty: pass at least one state")
    return first.copy().merge(*rest)


@checks_options
def spark(
    frame: Any,
    *,
    label: str,
    prob: str | Sequence[str],
    by: str | Sequence[str] = (),
    weight: str | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable | None = None,
    resolution: int | None = None,
    drop_invalid: bool = False,
) -> State:
    """The state of a Spark data frame, computed by the query of :func:`sql`, without Python on the workers.

    The parameters are those of :func:`sql`; ``drop_invalid`` as in :meth:`State.of_table`.
    """
    session, name = frame.sparkSession, f"cal_{uuid.uuid4().hex}"
    query = sql(
        name, label=label, prob=prob, by=by, weight=weight, labels=labels, pos_label=pos_label, resolution=resolution,
        dialect="spark",
    )  # fmt: skip
    frame.createOrReplaceTempView(name)
    try:
        rows = session.sql(str(query)).collect()
    finally:
        session.catalog.dropTempView(name)
    names = [*key_columns(by), "cell", "y", "n", "s", "s_high"]
    return query.state({column: [row[column] for row in rows] for column in names}, drop_invalid=drop_invalid)
