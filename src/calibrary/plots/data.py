"""The data of figures: dataclasses of arrays that export to JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedError, suggest
from calibrary.base.numbers import as_plain
from calibrary.data import is_data
from calibrary.data.checks import Array
from calibrary.data.lens import Lens, as_lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.inference.draw.resampling import alpha_of, least_draws
from calibrary.inference.verbs.interval import interval
from calibrary.numerics.runs import run_starts
from calibrary.question import Question

#: Resampled figures merge confidences closer than this fraction: far below their Monte-Carlo noise.
CELLS = 4096


@dataclass(frozen=True)
class FigureData:
    """Base of every figure's data: named arrays and numbers."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {f.name: as_plain(getattr(self, f.name), finite=True) for f in fields(self)}

    def to_json(self) -> str:
        """JSON; NaN and infinities become null."""
        return json.dumps(as_plain(self.to_dict(), finite=True), indent=1)

    def to_csv(self) -> str:
        """A CSV with a column for every array (for a matrix, each of its columns); shorter columns are padded."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        table = {name: column for field, value in columns.items() for name, column in _columns(field, value)}
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(table)
        writer.writerows(zip_longest(*table.values(), fillvalue=""))
        return out.getvalue()


def _columns(name: str, value: Any) -> list[tuple[str, list[Any]]]:
    if isinstance(value, tuple) and all(isinstance(v, str) for v in value):
        return [(name, list(value))]
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return []
    if value.ndim == 1:
        return [(name, value.tolist())]
    flat = value.reshape(len(value), -1)
    return [(f"{name}_{j}", flat[:, j].tolist()) for j in range(flat.shape[1])]


# -- the view of a diagram ----------------------------------------------------------------------------


#: The options of every figure that say how predictions are checked.
CHECKED = ("sample_weight", "labels", "pos_label", "percent", "rescale")


def refuse_unknown(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse an option that a figure does not have, with an error that names the figure."""
    known = tuple(known)
    for name in given:
        if name not in known:
            raise TypeError(f"{what} has no option {name!r}: {suggest(name, known)}")


def binary_view(
    y_true: Any,
    y_prob: Any = None,
    *,
    lens: str | Lens = "auto",
    r: int | None = None,
    like: Any = None,
    **checked: Any,
) -> tuple[Predictions, str]:
    """The pairs of confidence and outcome that a diagram shows, and the name of their lens.

    The lens "auto" is binary for two classes and top-label for more; or that of the metric ``like``.
    """
    refuse_unknown(checked, (*CHECKED, "lens", "r"), "this figure")
    p = predictions(y_true, y_prob, **checked)
    if isinstance(lens, str) and lens == "auto":
        if like is not None:
            like.say_change(p, Question())
        lens = p.usual_lens(like, "auto") if like else "binary" if p.k == 2 else "top-label"
    chosen = as_lens(lens, r)
    views = p.through(chosen)
    if views.several or not views.views[0].binary:
        raise RefusedError(
            f"lens={chosen.name!r} gives several curves and this diagram shows one: use plots.small_multiples"
        )
    return views.views[0], (y_true.own_view if is_data(y_true) else None) or chosen.name


def interval_of(
    metric: str,
    y_true: Any,
    y_prob: Any,
    *,
    n_resamples: int,
    confidence_level: float,
    sample_weight: Any = None,
    **question: Any,
) -> tuple[float, float]:
    """The ends of a metric's interval by :func:`calibrary.interval`; NaN if there are too few resamples."""
    if n_resamples < least_draws(alpha_of(confidence_level)):
        return np.nan, np.nan
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
        question |= {"sample_weight": sample_weight}
        question |= {} if (weight == np.rint(weight)).all() else {"weight_type": "importance"}
    question |= {"n_resamples": n_resamples, "confidence_level": confidence_level}
    found = interval(metric, y_true, y_prob, **question)
    return float(found.low), float(found.high)


#: What is drawn of predictions through a lens, in a caption.
_SEEN = {"binary": "", "top-label": "confidence in the predicted class", "pairwise": "one class against another"}


def facts(n: Any, lens: str, *others: str) -> str:
    """The number of cases, or the different ones of several models, what is drawn of them, and other facts."""
    if isinstance(n, Mapping):
        n = " and ".join(dict.fromkeys(f"{data.n:,.0f}" for data in n.values()))
    size = n if isinstance(n, str) else f"{n:,.0f}"
    return " · ".join(filter(None, (f"N = {size}", _SEEN.get(lens, lens.replace("-", " ")), *others)))


class ConfidenceCells(NamedTuple):
    """Distinct confidences (merged into cells if there are very many) with the weight of each label."""

    c: Array
    positive: Array
    negative: Array

    @property
    def weight(self) -> Array:
        return self.positive + self.negative


Cells = ConfidenceCells  # its name in 0.2, which pickles and imports may have


def cells(view: Predictions) -> ConfidenceCells:
    """The view as at most ``CELLS`` confidences, for figures that resample it."""
    ties = view.ties
    if len(ties.c) <= CELLS:
        return ConfidenceCells(ties.c, ties.wy, ties.w - ties.wy)
    cell = np.minimum((ties.c * CELLS).astype(np.intp), CELLS - 1)
    first = run_starts(cell)
    w, wy = np.add.reduceat(ties.w, first), np.add.reduceat(ties.wy, first)
    return ConfidenceCells(np.add.reduceat(ties.w * ties.c, first) / w, wy, w - wy)
