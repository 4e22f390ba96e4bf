"""The gain of a separate map for each segment over one common map, on rows to which neither was fitted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedError
from calibrary.base.markup import Tabled
from calibrary.base.numbers import counted, number, percent, pvalue_cell
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.inference.methods.multiplicity import adjust_pvalues
from calibrary.recalibrate.candidates import CandidateMap
from calibrary.recalibrate.fitted import IDENTITY, fit_candidate
from calibrary.recalibrate.gain import refuse_one_class_left
from calibrary.recalibrate.scores import MeanWithError, row_score, row_scores, spoken_score
from calibrary.recalibrate.segments import MOST_SEGMENTS, fit_segments, segment_pvalue

#: A segment with an adjusted p-value below this counts as miscalibrated.
LEVEL = 0.05


@dataclass(frozen=True)
class SegmentRow:
    """The results of one segment, on rows to which the maps were not fitted.

    Attributes
    ----------
    segment, n : its name, and its number of rows
    frequency : observed frequency of the event
    stated, common, own : mean probability as stated, after the common map, after the segment's own map
    gain, se : gain of its own map over the common map, and the standard error
    pvalue_before, pvalue_common, pvalue_after : adjusted p-values (Holm) of calibration as stated, after the common
        map and after its own map; NaN if the segment is too small for a test
    """

    segment: str
    n: int
    frequency: float
    stated: float
    common: float
    own: float
    gain: float
    se: float
    pvalue_before: float
    pvalue_common: float
    pvalue_after: float


@dataclass(frozen=True, repr=False)
class SegmentGain(Tabled):
    """The gain of a map for each segment over one common map. Print the result, or use ``sentence``.

    Attributes
    ----------
    by : the name of the segments
    rows : one :class:`SegmentRow` for each
    gain, se : mean gain in the score over the common map, cross-fitted, and its standard error
    spread : mean spread of the segments around the common map, in log odds
    score, n_folds : id of the score, and folds
    """

    by: str
    rows: tuple[SegmentRow, ...]
    gain: float
    se: float
    spread: float
    score: str
    n_folds: int

    @property
    def worth(self) -> bool:
        """Whether the gain is more than two standard errors."""
        return self.gain > 2.0 * self.se

    def n_clear(self, when: str) -> int:
        """The number of segments that are miscalibrated after adjustment: "before", "common" or "after"."""
        return sum(getattr(row, f"pvalue_{when}") < LEVEL for row in self.rows)

    @property
    def sentence(self) -> Sentence:
        """Whether a map for each segment improves the score, and in how many segments calibration is rejected."""
        if not self.worth:
            return self.effect
        clear = [self.n_clear(when) for when in ("before", "common", "after")]
        text = (
            f" Of {counted(len(self.rows), 'segment')}, {clear[0]} are significantly miscalibrated without a map, "
            f"{clear[1]} with one map for all and {clear[2]} with a map for each (test of intercept and slope, Holm)."
        )
        return Sentence(self.effect + text, *self.effect.claims)

    @property
    def effect(self) -> Sentence:
        """Whether a map for each segment improves the score, and by how much, in words."""
        spoken = spoken_score(self.score)
        values = {f"gain by {self.by}": self.gain}
        if not self.worth:
            text = (
                f"There is no evidence that a map for each segment of {self.by} improves on one map for all: it would "
                f"{'raise' if self.gain < 0.0 else 'lower'} the {spoken} by {number(abs(self.gain))} "
                f"(se {number(self.se)})."
            )
            return Sentence(text, measured(text, **values))
        text = (
            f"A map for each segment of {self.by}, shrunk towards the common one, would lower the {spoken} by "
            f"{number(self.gain)} (se {number(self.se)}) compared with one map for all."
        )
        return Sentence(text, Claim(text, "segments differ", by=self.by), measured(text, **values))

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The heading and the cells of the printed table.

        Shares are the observed frequency and the mean probability as stated, with one map for all and with the
        segment's own map; the last three columns are the adjusted p-values of calibration for the same three.
        """
        maps = ["stated", "one map", "own map"]
        head = [self.by, "rows", "observed", *maps, "gain", "se", *(f"p ({map})" for map in maps)]
        body = [
            [row.segment, f"{row.n:,}", *(percent(x) for x in (row.frequency, row.stated, row.common, row.own)),
             number(row.gain), number(row.se),
             *map(pvalue_cell, (row.pvalue_before, row.pvalue_common, row.pvalue_after))]
            for row in self.rows
        ]  # fmt: skip
        return head, body

    cells = table

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, words and lists, ready for JSON."""
        rows = [{k: None if v != v else v for k, v in asdict(row).items()} for row in self.rows]
        names = ("by", "gain", "se", "spread", "score", "n_folds", "worth", "sentence")
        return {**{name: getattr(self, name) for name in names}, "segments": rows}


def segment_gain(
    p: Predictions,
    by: str,
    names: NDArray[np.str_],
    common: CandidateMap | None,
    fold: Indices,
    *,
    score: str = "log",
    ends: Any = "half",
    weight_type: str = "frequency",
) -> SegmentGain:
    """The cross-fitted gain of a map for each segment over the common map (None: over the stated probabilities)."""
    if not p.binary:
        raise RefusedError(f"by={by!r} needs predictions of two classes, and there are {p.k} classes")
    levels = np.unique(names)
    if len(levels) < 2:
        raise RefusedError(
            f"every row has the same value {str(levels[0])!r} of {by}: a map for each segment needs several segments"
        )
    if len(levels) > MOST_SEGMENTS:
        raise RefusedError(
            f"{by} has {len(levels):,} values, which is too many segments: divide numbers into a few ranges first"
        )
    refuse_one_class_left(p, fold)
    one, own, spread = _cross_fitted(p, by, names, common, fold, ends)
    entry, mean = row_score(score), MeanWithError(p, weight_type)
    difference = row_scores(entry, p, one) - row_scores(entry, p, own)
    gain, se = mean(difference)
    rows = _rows(p, names, levels, (p.c, one, own), difference, weight_type)
    return SegmentGain(by, rows, gain, se, spread, entry.id, int(fold.max()) + 1)


def _cross_fitted(
    p: Predictions, by: str, names: NDArray[np.str_], common: CandidateMap | None, fold: Indices, ends: Any
) -> tuple[Array, Array, float]:
    one, own, spreads = np.empty(p.n), np.empty(p.n), []
    for f in range(int(fold.max()) + 1):
        held, others = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        learning = p.part(others)
        fitted = IDENTITY if common is None else fit_candidate(common, learning, ends)
        segments = fit_segments(by, fitted(learning.c), learning.y, learning.w, names[others])
        one[held] = fitted(p.c[held])
        own[held] = segments(one[held], names[held])
        spreads.append(segments.spread)
    return one, own, float(np.mean(spreads))


def _rows(
    p: Predictions, names: NDArray[np.str_], levels: NDArray[np.str_], q: tuple[Array, Array, Array],
    difference: Array, weight_type: str,
) -> tuple[SegmentRow, ...]:  # fmt: skip
    square = None if p.w is None else p.variance_weight(weight_type, "a standard error")
    parts = [np.flatnonzero(names == level) for level in levels]

    def tested(x: Array) -> Array:
        each = [
            segment_pvalue(x[i], p.y[i], None if square is None else square[i], None if p.w is None else p.w[i],
                           None if p.units is None else p.units[i])
            for i in parts
        ]  # fmt: skip
        return adjust_pvalues(each) if not np.isnan(each).all() else np.array(each)

    pvalues = [tested(x) for x in q]
    rows = []
    for j, (level, i) in enumerate(zip(levels.tolist(), parts, strict=True)):
        part = p.part(i)
        gain, se = MeanWithError(part, weight_type)(difference[i])
        stated, common, own = (float(part.mean(whole[i])) for whole in q)
        before, between, after = (float(x[j]) for x in pvalues)
        happened = float(part.mean(part.y))
        rows.append(SegmentRow(level, len(i), happened, stated, common, own, gain, se, before, between, after))
    return tuple(rows)
