"""Who is affected: segments by the given columns, with a test of the worst segment; and the single classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.base.numbers import counted, known, percent, pvalue, pvalue_cell
from calibrary.data import Data
from calibrary.data.checks import Indices, as_array
from calibrary.data.matches import ByCategory
from calibrary.data.predictions import Predictions
from calibrary.grouping.segments import FEW_VALUES, MISSING, Column, known_values, measures, partitions, ranges_of
from calibrary.inference.draw.look import headline_view, look_at
from calibrary.inference.draw.redraws import beyond_chance
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.overall.decision import Decision
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.measure import measure
from calibrary.metrics.segments import SegmentsTestResult, multicalibration_error_test
from calibrary.question import Question
from calibrary.recalibrate.candidates import candidate
from calibrary.recalibrate.fitted import problem
from calibrary.recalibrate.folds import fold_numbers
from calibrary.recalibrate.segment_gain import SegmentGain, segment_gain
from calibrary.reporting.help import odds_words, too_little
from calibrary.reporting.model import ClassRow
from calibrary.reporting.numbers import metric_words, whole_number
from calibrary.reporting.parts import GROUP_FIELDS, LEAST_ROWS, GroupRow, Part, each_part, units_words
from calibrary.reporting.sections import Context, Figure, Section, Table, section
from calibrary.reporting.words import nouns, off_classes

#: The largest number of values of single columns that are measured, a third of a second each; and the largest number
#: of segments with their intersections.
MOST_VALUES, MOST_SEGMENTS = 30, 15
#: Number of segments or classes named in one sentence.
NAMED = 3
#: Number of classes listed at the top; the others are folded.
FIRST_CLASSES = 10
#: Up to this many rows the worst-segment test uses more draws than the page.
_FEW_ROWS = 5_000
#: Up to this many rows a map for each segment is judged in ten folds; above, in two, which have rows enough.
_TEN_FOLDS = 50_000
#: Of more segments than are measured, this many of the best are shown beside the worst.
N_BEST = 3


@section("affected")
def affected(context: Context) -> Section | None:
    """The segments of the columns in ``by``, and the worst segment among them and their intersections of two."""
    by, metric = context.settings.by, context.primary
    if by is None or metric is None:
        return None
    columns, test, reason = tested_segments(context)
    chosen = _segments(columns, context, test)
    rows = {s.name: context.data.part(s.rows) for s in chosen.measured}
    parts = each_part(context, list(rows.items()), metric, chosen.among)
    context.kept["segments"] = [(p.name, rows[p.name]) for p in worst_first(parts, test)]
    own = own_maps(columns, context)
    name, alpha = metric_words(metric.id, metric.name), alpha_of(context.question.confidence_level)
    small, stated = sum(not p.measured for p in parts), nouns(context.data.own_view or context.headline_view[1]).mean
    sentences = [
        *([segments_words(parts)] if test is None else [worst_words(test, context.data.noun, alpha, stated)]),
        *([] if not reason else [f"No test of the worst segment was made: {reason}"]),
        *(gain.effect for gain in own),
        *(f"The column {column} {c.done}." for column, c in columns.items() if c.done),
        *chosen.left_out,
        *([f"Too small to judge: {counted(small, 'segment')}."] if small and test is not None else []),
        *units_words(context),
    ]
    figures = () if test is None else (_figure(test),)
    tables = [_table(parts, name, stated, context.data, test)]
    for gain in own:
        head, body = gain.table()
        caption = f"What a map for each segment of {gain.by} would do to rows that it was not fitted to"
        tables.append(Table(tuple(head), tuple(map(tuple, body)), caption, folded=True))
    data: dict[str, Any] = {
        "segments": [p.to_dict() for p in parts],
        "worst": None if test is None else _segments_dict(test),
    }
    data |= {"own_maps": [gain.to_dict() for gain in own], "remedy": _remedy(test, rows, context, alpha)}
    return Section("affected", "Who is affected", tuple(sentences), tuple(tables), figures, data)


def _remedy(test: SegmentsTestResult | None, rows: Mapping[str, Any], context: Context, alpha: float) -> Sentence:
    """The change of the odds that corrects the mean of the worst significant segment; empty without one."""
    name = "" if test is None else next(iter(_significant(test, alpha)), "")
    part = rows.get(name)
    if part is None or too_little(part.read_as("predictions", "a report"), context.question.weight_type):
        return Sentence("")
    view, _ = headline_view(part.read_as("predictions", "a report"), context.question)
    if abs(float(view.mean(view.y)) - float(view.mean(view.c))) <= 2.0 * math.sqrt(
        float(view.mean(view.c * (1.0 - view.c))) / view.total
    ):  # the mean is right; what is wrong is the spread or a range
        return Sentence("")
    return odds_words(context, view, name)


def tested_segments(context: Context) -> tuple[dict[str, Levels], SegmentsTestResult | None, str]:
    """The columns as levels, the worst-segment test, and the reason if there is none; computed once for a page."""
    if "segment test" not in context.kept:
        columns = levels_by_name(context.settings.by, context)
        context.kept["segment test"] = columns, *_worst(columns, context)
    return context.kept["segment test"]


def miscalibrated_segments(context: Context) -> list[str]:
    """The segments that the worst-segment test shows to be miscalibrated, worst first, but not all rows together."""
    if context.settings.by is None or not context.draws:
        return []
    test = tested_segments(context)[1]
    return [] if test is None else list(_significant(test, alpha_of(context.question.confidence_level)))


def _significant(test: SegmentsTestResult, alpha: float) -> dict[str, float]:
    """Segments with a p-value below the level, adjusted for all segments and all rows, worst first."""
    tested = zip(test.table["segment"], test.table["pvalue"], strict=True)
    return {str(name): float(p) for name, p in tested if name != "all rows" and p < alpha}


# -- the columns -----------------------------------------------------------------------------------------


class Levels(NamedTuple):
    """A column as levels: their names in order, the level of every row of the input (or image), what was done to it."""

    words: tuple[str, ...]
    level: Indices
    done: str = ""

    @property
    def text(self) -> NDArray[np.str_]:
        """The level of every row, by name."""
        return np.array(self.words)[self.level]


def levels_by_name(by: Any, context: Context) -> dict[str, Levels]:
    """The columns as levels: numbers and dates are cut at quantiles; missing values are a level of their own."""
    if not isinstance(by, Mapping) and not hasattr(by, "columns"):
        by = {"group": by}
    names = list(by) if isinstance(by, Mapping) else list(by.columns)
    if not names:
        raise ValueError("by holds no column: pass columns by name, such as by={'site': site, 'age': age}")
    columns = {}
    for name in names:
        called = f"by[{str(name)!r}]"
        context.data.align(by[name], called)  # the same rows, or a sentence
        values = as_array(by[name], called)
        if values.ndim != 1:
            raise ValueError(f"{called} has {values.ndim} dimensions: give one value per row")
        columns[str(name)] = levels_of(values)
    return columns


def levels_of(values: NDArray[Any]) -> Levels:
    """One column as levels: quantities and dates are cut at quantiles, and other values are names of segments."""
    known, missing = known_values(values)
    if measures(known, len(known)):
        words, level = ranges_of(known)
    else:
        if known.dtype.kind == "O":
            known = np.array([str(v) for v in known.tolist()])
        distinct, level = np.unique(known, return_inverse=True)
        words = tuple(f"{v:.15g}" if isinstance(v, float) else str(v) for v in distinct.tolist())
    every = np.full(len(values), len(words), dtype=np.intp)
    every[~missing] = level.ravel()
    return Levels((*words, MISSING) if missing.any() else words, every, cut_words(known))


def cut_words(known: NDArray[Any]) -> str:
    """What was done with a column of many numbers or dates; empty if nothing else was possible."""
    if known.dtype.kind not in "fiuM" or len(distinct := np.unique(known)) <= FEW_VALUES:
        return ""
    if measures(known, len(known)):
        return "holds quantities and was cut into ranges of about equally many rows"
    return (
        f"holds {len(distinct):,} different whole numbers, each of which is a segment, as codes are; cal.cut or --by "
        "NAME:4 cuts it into ranges"
    )


# -- the segments ----------------------------------------------------------------------------------------


class Segment(NamedTuple):
    """Rows with the same value of one column or of two: name, number of columns, and the rows (or images)."""

    name: str
    depth: int
    rows: NDArray[np.intp]


class Chosen(NamedTuple):
    """The segments to be measured, and sentences about those that are not."""

    measured: list[Segment]
    left_out: list[str]
    among: int


def _segments(columns: dict[str, Levels], context: Context, test: SegmentsTestResult | None) -> Chosen:
    """Every column by itself, then the largest intersections of two.

    Of more values than are measured, the worst and the best by the worst-segment test; without it, the largest.
    """
    n = context.data.n_places
    rows = Predictions(np.zeros(n, dtype=np.intp), np.zeros(n))  # what columns belong to
    made = [
        Column(name, context.data.align(c.level, name), tuple(f"{name} = {word}" for word in c.words))
        for name, c in columns.items()
    ]
    depths = [0] + [1] * len(made) + [2] * len(list(combinations(made, 2)))
    found: list[Segment] = []
    for depth, partition in zip(depths, partitions(made, rows, 2, 0.0), strict=True):
        order = np.argsort(partition.segment, kind="stable")
        ends = np.searchsorted(partition.segment[order], np.arange(len(partition.words) + 1))
        here = [Segment(w, depth, order[a:b]) for w, a, b in zip(partition.words, ends[:-1], ends[1:], strict=True)]
        found += here if depth else []
    single = [s for s in found if s.depth == 1]
    crossed = [s for s in found if s.depth == 2]
    large = sorted((s for s in crossed if len(s.rows) >= LEAST_ROWS), key=lambda s: -len(s.rows))
    if len(single) <= MOST_VALUES:
        kept = [*single, *large[: max(MOST_SEGMENTS - len(single), 0)]]
        return Chosen(kept, _left_out(found, kept, len(crossed) - len(large)), len(kept))
    if test is None:
        kept = sorted(single, key=lambda s: -len(s.rows))[:MOST_SEGMENTS]
        return Chosen(kept, _left_out(found, kept, len(crossed) - len(large)), len(single))
    by_name = {s.name: s for s in found}
    ranked = [by_name[str(name)] for name in test.table["segment"] if str(name) in by_name]
    kept = ranked if len(ranked) <= MOST_SEGMENTS else [*ranked[: MOST_SEGMENTS - N_BEST], *ranked[-N_BEST:]]
    of, small = f"{counted(len(ranked), 'segment')} with {LEAST_ROWS} or more rows", len(found) - len(ranked)
    said = f"The table shows the {MOST_SEGMENTS - N_BEST} worst and the {N_BEST} best of {of}"
    said += f"; {counted(small, 'segment')} of fewer rows cannot be judged." if small else "."
    return Chosen(kept, [said], len(ranked))


def _left_out(found: list[Segment], kept: list[Segment], small: int) -> list[str]:
    said = []
    if small:
        said.append(f"{counted(small, 'intersection')} of fewer than {LEAST_ROWS} rows cannot be judged.")
    rest = len(found) - len(kept) - small
    if rest:
        said.append(
            f"{counted(rest, 'further segment')} (the smallest) are not listed; the worst-segment test includes every "
            f"segment with {LEAST_ROWS} or more rows."
        )
    return said


def _worst(columns: dict[str, Levels], context: Context) -> tuple[SegmentsTestResult | None, str]:
    """The worst-segment test, or the reason why there is none."""
    if not context.draws:
        return None, ""
    by = {name: context.data.rows_of(c.text) for name, c in columns.items()}
    draws = max(context.draws, 999) if context.p.n <= _FEW_ROWS else context.draws
    try:
        with collected_warnings():
            test = multicalibration_error_test(
                context.view, by=by, depth=2, min_rows=LEAST_ROWS, n_resamples=draws, rng=context.question.rng,
                lens="binary",
            )  # fmt: skip
    except RefusedError as error:
        return None, str(error)
    return (None, f"no segment has {LEAST_ROWS} rows.") if test.n_segments == 1 else (test, "")


def own_maps(columns: dict[str, Levels], context: Context) -> list[SegmentGain]:
    """The gain of a logistic map for each segment, shrunk towards the map of all rows: one result for each column."""
    p, question = problem(context.p), context.question
    if not p.binary or too_little(p, question.weight_type):
        return []
    folds = 10 if p.n <= _TEN_FOLDS else 2
    found = []
    for name, c in list(columns.items())[:NAMED]:
        names = p.align(context.data.rows_of(c.text), name)
        if 2 <= len(np.unique(names)) <= MOST_VALUES:
            with collected_warnings():
                how = candidate("platt", p.k), fold_numbers(p, folds, question.rng)
                found.append(segment_gain(p, name, names, *how, weight_type=question.weight_type))
    return found


# -- sentences -------------------------------------------------------------------------------------------


def worst_words(
    test: SegmentsTestResult, thing: str = "row", alpha: float = 0.05, stated: str = "mean prediction"
) -> Sentence:
    """Which segment deviates most, and whether it is worse than the worst segment expected by chance."""
    table, n = test.table, test.n_segments - 1
    how = pvalue(float(test.pvalue), test.n_resamples)
    allowing = f"{how}, adjusted for {counted(n, 'segment')} and all {thing}s"
    if test.pvalue >= alpha:
        other = next(word for word in table["segment"] if word != "all rows")
        return Sentence(
            f"There is no evidence that any segment is miscalibrated (worst-segment test, {allowing}); "
            f"{other} deviates most."
        )
    clear = list(_significant(test, alpha))
    named = [_segment_words(test, list(table["segment"]).index(name), thing, stated) for name in clear[:NAMED]]
    more = "" if len(clear) <= NAMED else f"; and {len(clear) - NAMED} more"
    if test.worst != "all rows":
        first = Sentence.joined("", [f"Worst of {counted(n, 'segment')}: ", named[0], f" ({allowing})"])
        return Sentence.joined("", [first, _others(named[1:]), more, "."])
    whole = f"The evidence of miscalibration is strongest for all {thing}s together ({allowing})"
    if not clear:
        said = f"{whole}; no single one of {counted(n, 'segment')} is significant."
        return Sentence(said, Claim(said, "miscalibrated"))
    of, its = f"; of {counted(n, 'segment')} it is strongest for ", _significant(test, alpha)[clear[0]]
    first = Sentence.joined("", [of, named[0], f" ({pvalue(its, test.n_resamples)})"])
    return Sentence.joined("", [Claim(whole, "miscalibrated"), first, _others(named[1:]), more, "."])


def _others(named: list[Sentence]) -> Sentence:
    """Further significant segments."""
    return Sentence.joined("", ["; also significant: ", Sentence.joined("; ", named)] if named else [])


def _segment_words(test: SegmentsTestResult, k: int, thing: str, stated: str) -> Sentence:
    """A miscalibrated segment of the test's table: rows, mean prediction (``stated``) and observed frequency."""
    table, name = test.table, str(test.table["segment"][k])
    predicted, happened = float(table["mean_confidence"][k]), float(table["mean_label"][k])
    noise = float(table["kuiper"][k] / table["sigma"][k]) if math.isfinite(float(table["sigma"][k])) else 0.0
    outcome = "precision" if thing == "detection" else "observed"
    off = f"{stated} {percent(predicted)}, {outcome} {percent(happened)}"
    if abs(happened - predicted) <= 2.0 * noise:
        off = f"right on average ({off}) but not at every confidence"
    said = f"{name} ({counted(float(table['n'][k]), thing)}), {off}"
    numbers = measured(said, **{f"{name} confidence": predicted, f"{name} outcome": happened})
    return Sentence(said, Claim(said, "part is miscalibrated", part=name), numbers)


def segments_words(parts: list[Part]) -> str:
    """How many segments were measured, where no test says which are miscalibrated."""
    many = sum(p.measured for p in parts)
    if not many:
        return f"No segment is large enough to judge (at least {LEAST_ROWS})."
    small = f" Too small to judge: {counted(len(parts) - many, 'segment')}." if many < len(parts) else ""
    return f"{counted(many, 'segment')} measured; no test was made, so this shows the size, not the evidence.{small}"


def worst_first(parts: Iterable[Part], test: SegmentsTestResult | None = None) -> list[Part]:
    """The order of the worst-segment test; without it, the largest error beyond that of a calibrated model first."""
    place = {} if test is None else {str(name): k for k, name in enumerate(test.table["segment"])}

    def rank(part: Part) -> tuple[bool, int, float]:
        excess = part.value - (0.0 if math.isnan(part.expected_by_chance) else part.expected_by_chance)
        return not part.measured, place.get(part.name, len(place)), -excess if part.measured else 0.0

    return sorted(parts, key=rank)


def _table(parts: list[Part], metric: str, stated: str, data: Data, test: SegmentsTestResult | None) -> Table:
    tested = {} if test is None else dict(zip(map(str, test.table["segment"]), test.table["pvalue"], strict=True))
    rows = tuple(
        (*p.cells, "" if test is None else pvalue_cell(tested.get(p.name), test.n_resamples), p.p_cell, p.note)
        for p in worst_first(parts, test)
    )
    own = f"p of its {metric}"
    head = ("segment", data.nouns, stated, data.outcome, metric, "interval", "p adjusted", own, "note")
    caption = (
        f"The worst-segment test decides which segments are miscalibrated: p adjusted allows for all of them. {own}: "
        "the test of this number alone, adjusted for the number of segments (Holm)."
    )
    table = Table(head, rows, caption if test is not None else "")
    return table.without_empty("note").without_empty("p adjusted").without_empty(own)


def _figure(test: SegmentsTestResult) -> Figure:
    from calibrary.plots.segments import plot_segments

    return Figure.captioned("segments", partial(plot_segments, test, most=15, caption=False))


def _segments_dict(test: SegmentsTestResult) -> dict[str, Any]:
    table = {name: list(v) if isinstance(v, tuple) else v.tolist() for name, v in test.table.items()}
    return {
        "segment": test.worst, "pvalue": float(test.pvalue), "statistic": float(test.statistic), "error": test.error,
        "n_segments": test.n_segments, "n_resamples": test.n_resamples, "table": table,
    }  # fmt: skip


# -- the classes -----------------------------------------------------------------------------------------


@section("classes")
def classes(context: Context) -> Section | None:
    """The expected and the observed share of each class; for a detector, confidence and precision by category."""
    data, apart = context.data, context.data.by_class()
    if apart is None:
        rows, metric = class_rows(context.p, context.question, context.decision), None
    else:
        rows, metric = category_rows(context, apart), context.primary
    if len(rows) < 2:
        return None
    many = data.class_nouns
    value = "class-wise ECE" if metric is None else metric_words(metric.id, metric.name)
    ranked = sorted(rows, key=lambda r: (not r.clear, -abs(r.mean_prediction - r.frequency)))
    context.kept["classes"] = [r.name for r in ranked]
    off = "mean confidence is"
    head = (data.class_noun, data.nouns, "mean confidence", data.outcome, value, off)
    # the value is empty if no category has bins that count
    every = Table(head, tuple(map(_class_cells, ranked))).without_empty(off).without_empty(value)
    caption = (
        f"First the {many} whose mean confidence differs significantly from the outcome (tested for all {len(rows)} at "
        "once), then the others by the size of the difference."
    )
    tables = [replace(every, rows=every.rows[:FIRST_CLASSES], caption=caption)]
    if rest := every.rows[FIRST_CLASSES:]:
        tables.append(replace(every, rows=rest, caption=f"The other {len(rest)} {many}", folded=True))
    return Section(
        "classes", f"Calibration by {data.class_noun}", (classes_words(ranked, many, apart is not None),),
        tuple(tables), data={"classes": [asdict(r) for r in rows]},
    )  # fmt: skip


def _class_cells(row: ClassRow) -> tuple[Any, ...]:
    off = "" if not row.clear else "too low" if row.frequency > row.mean_prediction else "too high"
    return row.name, whole_number(row.n), row.mean_prediction, row.frequency, known(row.value), off


def classes_words(ranked: list[ClassRow], many: str, apart: bool) -> Sentence:
    """Which classes have significantly different expected and observed shares.

    ``apart``: each row belongs to one class and is right or wrong, as the detections of a category are.
    """
    clear = [r for r in ranked if r.clear]
    if not clear:
        share = "precision" if apart else "observed share"
        return Sentence(
            f"For none of {len(ranked)} {many} does the {share} differ significantly from the mean confidence."
        )
    noun = ("mean confidence", "precision") if apart else ("expected", "observed")
    said = ", ".join(
        f"{r.name} ({noun[0]} {percent(r.mean_prediction)}, {noun[1]} {percent(r.frequency)})" for r in clear[:NAMED]
    )
    more = "" if len(clear) <= NAMED else f" and {len(clear) - NAMED} more"
    be = "is" if len(clear) == 1 else "are"
    claims = [
        Claim(said, "part is miscalibrated", part=r.name)
        if apart
        else Claim(said, "class", index=r.name, expected=r.mean_prediction, occurred=r.frequency)
        for r in clear[:NAMED]
    ]
    text = f"{len(clear)} of {len(ranked)} {many} {be} significantly miscalibrated on average: {said}{more}."
    return Sentence(text, *claims)


def class_rows(p: Predictions, question: Question, decision: Decision | None = None) -> tuple[ClassRow, ...]:
    """Every class of several; ``clear`` if its expected and observed shares differ significantly."""
    if p.k < 3:
        return ()
    entry = catalogue["ece"]
    with collected_warnings():
        ece = measure(entry, p, question.of(entry.options).changed(lens="class-wise", average=None))
    mean, share, off = p.class_means, p.class_share, off_classes(p, question, decision)
    count = p.class_counts
    return tuple(
        ClassRow(str(name), round(float(count[k]), 6), float(mean[k]), float(share[k]),
                 float(np.atleast_1d(ece)[k]), off is not None and bool(off[k]))
        for k, name in enumerate(p.classes)
    )  # fmt: skip


def category_rows(context: Context, apart: ByCategory) -> tuple[ClassRow, ...]:
    """Every category that has a detection: mean confidence and precision."""
    metric, question = context.primary, context.question
    off = _off_categories(context, apart.member)
    rows = []
    for (name, part), clear in zip(apart.parts, off, strict=True):
        p = part.as_predictions()
        value = math.nan
        if metric is not None and p.total >= LEAST_ROWS:
            entry = catalogue[metric.id]
            with collected_warnings() as cautions:
                value = float(measure(entry, part, question.of(entry.options)))
            if cautions:  # some bins were too small to count; the value would look like a small error
                value = math.nan
        stated, right = float(p.mean(p.c)), float(p.mean(p.y))
        rows.append(ClassRow(str(name), float(p.total), stated, right, value, bool(clear)))
    return tuple(rows)


def _off_categories(context: Context, member: Indices) -> NDArray[np.bool_]:
    """Which categories have a precision that differs significantly from the confidence (one test, images as units)."""
    with collected_warnings():
        look = look_at(context.data, context.question)
    if look.view.n > context.p.n:  # rows with counts are repeated in the view
        member = np.repeat(member, context.p.counts("the categories"))
    return beyond_chance(look, member, 1.0 - context.question.confidence_level)[0]


# -- the same as rows of a report ------------------------------------------------------------------------


def class_rows_of(sections: Iterable[Section]) -> tuple[ClassRow, ...]:
    """The classes of a page, from its section of classes."""
    return tuple(ClassRow(**row) for s in sections if s.key == "classes" for row in s.data["classes"])


def group_rows_of(sections: Iterable[Section], column: str) -> tuple[GroupRow, ...]:
    """The values of one column of a page, from its section of segments."""
    found = [row for s in sections if s.key == "affected" for row in s.data["segments"]]
    start = f"{column} = "
    named = (
        {name: row[name] for name in GROUP_FIELDS} | {"name": row["name"].removeprefix(start), "n": int(row["n"])}
        for row in found
        if row["name"].startswith(start)
    )
    return tuple(GroupRow(**row) for row in named)
