"""What is known about a metric, for people and for code that must choose or check one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from calibrary.base.plain import as_plain
from calibrary.data.checks import Array
from calibrary.data.lens import BINARY_LENSES
from calibrary.metrics.machinery.table2 import SUBFAMILIES, TABLE_2, Table2Row

__all__ = [
    "Alias",
    "CellFacts",
    "Correction",
    "Facts",
    "Options",
]


class Options(dict[str, Any]):
    """Options that metrics hand on to a part they share: name to default, and the text that documents them."""

    def __init__(self, doc: str, **defaults: Any) -> None:
        super().__init__(defaults)
        self.doc = doc


class Alias(str):
    """A name that carries settings: ``Alias("RMSCE", norm=2)`` among the aliases of ece is ece with ``norm=2``.

    Settings are options of the metric, ``lens``, ``average``, ``r``, or (of detections) how boxes are matched. A name
    that stands for one number of a result names it: ``Alias("calibration slope", of=("slope", 1.0))`` is the field
    ``slope``, which is 1 for a calibrated model.
    """

    settings: Mapping[str, Any]
    field: str
    perfect: float | None

    def __new__(cls, name: str, of: tuple[str, float | None] = ("", None), **settings: Any) -> Alias:
        alias = super().__new__(cls, name)
        alias.field, alias.perfect = of
        alias.settings = MappingProxyType(settings)
        return alias

    def __reduce__(self) -> tuple[Any, ...]:
        return _alias, (str(self), dict(self.settings), (self.field, self.perfect))

    @property
    def words(self) -> str:
        """The settings as a call writes them, and the field."""
        settings = [f"{name}={value!r}" for name, value in self.settings.items()]
        return ", ".join([*settings, *([f"its {self.field}"] if self.field else [])])


def _alias(name: str, settings: dict[str, Any], of: tuple[str, float | None] = ("", None)) -> Alias:
    return Alias(name, of, **settings)


@dataclass(frozen=True)
class Correction:
    """A fact the review states and we state differently: which, what it says, what is right and why."""

    fact: str
    review: str
    ours: str


@dataclass(frozen=True)
class CellFacts:
    """What a metric gives on a table of cells, which holds counts and mean confidences in place of the rows.

    Attributes
    ----------
    kind : one of

        - "exact": linear in the confidences, or a function of bin sums whose edges are edges of cells
        - "smooth": a smooth function of the confidences; the error falls with the square of the cell width
        - "order": depends on the order of the rows; the error is at most what one cell can hold
        - "copies": has spans, knots, leaves or folds, which count the predictions behind the rows
        - "counts": has folds or limits that only rows one by one can give
        - "keys": needs a column made row by row, to be kept apart with ``by=``
        - "sample": needs whole rows, and is computed on the uniform sample of a state that keeps one
        - "detection": a function of sums of matched detections by category and bin
        - "boxes": uses every matched box by itself
    measured : the largest absolute errors seen at resolution 4800 and 76800 on six distributions of 10^6 rows
        (over-confident, calibrated, heaped near 1, two decimals, rare events, atoms at 0 and 1)
    split : does each label keep its own mean confidence in a cell, although the kind is "order"
    by_rank : do its bins follow the order of the rows, whatever its options say
    kind_with : ``kind_with(options)`` is the kind that these options make of it, or None where they change nothing
    edges : ``edges(options)`` gives the places where its bins meet, where options ``edges`` and ``n_bins`` do not say
    bound : the name of the proof that bounds its error, a key of ``BOUNDS`` in ``scale/accuracy.py``
    absolute_gaps : is it a sum of absolute gaps, which moves by at most what moves from bin to bin
    smallest_leaf : the option that says down to how many predictions it cuts
    class_shares_unless : the option without which it reads the shares of the classes
    """

    kind: str
    measured: tuple[float, float] | None = None
    split: bool = False
    by_rank: bool = False
    kind_with: Callable[[Mapping[str, Any]], str | None] | None = None
    edges: Callable[[Mapping[str, Any]], Array] | None = None
    bound: str = ""
    absolute_gaps: bool = False
    smallest_leaf: str = ""
    class_shares_unless: str = ""


@dataclass(frozen=True)
class Facts:
    """The facts of one metric.

    Attributes
    ----------
    id, name, aliases : the short name for ``compute``, the full one, and the others it is known by; an :class:`Alias`
        among these carries settings
    preset_of : the metric of which it is a preset: ``Alias("skce", estimator="ul")`` says that it is skce with that
        estimator; it has an id because people ask for it by that name
    homonyms : names of this metric by which people also mean something else: name -> what that is called here
    row : number in the review's Table 2, or None
    section : where the review describes it; "" for metrics newer than the review
    family : "point", "bin", "kernel", "curve", "cumulative" or "detection"
    range, perfect : lowest and highest value; the value of a calibrated model as N grows (None: depends on data)
    range_note : how the range depends on options or the number of classes
    measures : what the number is about: "calibration", "bias" (calibration on the whole or in a part, with or without a
        sign), "calibration and sharpness" (a score, which a calibrated but vague model does badly too), "ranking"
        (which no rising change of the confidences alters), "fit" (of a map or of clusters) or "consistency" (of
        repeated predictions)
    square : "yes" if it is the square of a norm (unless an option takes the root), "option" if an option makes it one
    better : "lower", "higher" or "perfect" (signed: distance from the perfect value counts)
    sign : what higher and lower mean
    proper : "strictly", "proper", "no", or "dataset" (not a mean of row scores)
    sound, complete : of binary predictions, rows without number: is it large wherever the nearest calibrated ones are
        far, and small wherever they are near (Błasiok and others 2023, the review's 9.2); None where neither proof nor
        an example is known. ``consistent`` is both.
    tail : which side of the null distribution counts against calibration
    null : may labels be redrawn from the predictions to test it? (else ``null_note`` says why not)
    no_interval : why an interval around it means nothing; empty where it means something
    coverage_note : measured coverage of its default interval, where that is below 92%
    reads : the kind of data its formula takes, "predictions" or "matches" (matched detections)
    lenses, default_lens, binary_lens : lenses it works through; what "auto" means for K > 2 and K = 2
    default_average : how the views of a lens are combined unless the user says otherwise
    extra_options : further options it hands on to one of its parts (a map, a grouping): names, shown in its
        signature as None, or an :class:`Options` with their defaults and documentation
    renamed : old names of options, each with the new name, or with the new name and what old values are called now
    needs : inputs beyond labels and probabilities ("features", "groups", "model", "boxes", "order", "distributions")
    weights : "repetition" (weight 2 is the row twice), "rows" (weights count, but sizes count rows) or "none"
    order_free : does row order never change the value
    fractional : may labels be shares between 0 and 1: "no", "binary" (in every binary view) or "rows" (also whole rows
        of shares, through lens "full")
    linear : are its sums over rows linear in which class occurred, so that shares of classes are the row once for each
        class, weighted by its share
    symmetric : is the value unchanged when the two classes are swapped, y -> 1-y and c -> 1-c
    fields : for a metric of several numbers, which of them a table shows, each with its perfect value
    link : what a calibrated score of a detection equals: "threshold" P(correct), "identity" the expected IoU, "option"
        what the option ``link`` says
    iou_threshold : the overlap at which its detections count as found, unless the user says otherwise
    slow_above : rows above which a table of everything leaves it out for K > 2 (for any K with ``slow_binary``),
        because its cost is quadratic
    slow_classes : classes above which a table of everything leaves it out, because its cost grows with their square
    residual_only : does it read labels through the residuals y - c alone, and change when some of them change sign, so
        that a test can flip the residuals of whole units
    smooth : is it a mean of row scores, a ratio of such means, a rank statistic or a likelihood fit, so that rows drawn
        twice bring no bias of their own, and a bootstrap estimates the optimism of a model's own data
    refit_errors : for the value ("") or a part, how errors of refits depend on the strength of a model: "logit" or
        "signal", see :mod:`calibrary.validation.intervals`
    law : the large-sample law of its interval: "debiased square", "Brier excess", "observed over expected", "expected
        over observed" or "profile likelihood"; a mean of row losses has the normal law without saying so
    cells : what a table of cells gives (:class:`CellFacts`); None: judged by ``weights`` and ``order_free``
    reads_cells : may very many rows be replaced by a table of cells when draws are made, because its kernel is wide
        against a cell, its bins end where cells end, or it is a mean
    cheap_draws : does one draw of labels cost little more than a pass over the rows, although in its family most cost
        more
    overall : which statistic of the overall decision its numbers are: name of the number ("" for a single one) to
        "mean", "slope" or "spiegelhalter"
    costly : one value takes a cross-validation, a bandwidth search or all pairs, so that a table of many metrics gives
        it no interval and no p-value unless it is named
    differentiable : does it serve as a training loss or penalty: has it a gradient in the probabilities
    unbiased : is its expectation on any number of rows that of infinitely many
    imbalance, many_classes : where one class is rare, or classes are very many: "made" for that, "keeps" its meaning
    most_classes : number of classes beyond which it is not to be trusted
    label_noise : what a few wrong labels do to it: "robust", "fragile" (single rows have unlimited weight) or ""
    worst_case : does it tell the worst error rather than the usual one
    parameter_free : is there nothing to choose but its name
    advised : where the review recommends it, and in which section: a situation of :func:`calibrary.recommend` ("few
        rows", "detection", "rank", "many classes", "label noise") to "3.3: ..."
    enough_rows : from how many rows on the review judges it satisfactory, and in which section: (400, "4.12: ...")
    misses : does a detector's missed object count
    familiar : do readers of its field know it
    spoken : what a sentence calls it, where that is shorter than its name
    cost, equation, references, use, avoid, corrections : for people; ``equation`` holds the review's numbers, "in
        words" where the review has none, and the formula of a metric newer than the review
    status, since : "stable" or "emerging" (newer than the review, may still change); the first version that has it
    """

    id: str
    name: str
    family: str
    row: int | None = None
    section: str = ""
    aliases: tuple[str, ...] = ()
    preset_of: Alias | None = None
    homonyms: Mapping[str, str] = field(default_factory=dict, hash=False)
    range: tuple[float, float] = (0.0, 1.0)
    range_note: str = ""
    perfect: float | None = 0.0
    measures: str = "calibration"
    square: str = "no"
    better: str = "lower"
    sign: str = "0 is perfect; larger is worse"
    proper: str = "no"
    sound: bool | None = None
    complete: bool | None = None
    tail: str = "greater"
    null: bool = True
    null_note: str = ""
    no_interval: str = ""
    coverage_note: str = ""
    reads: str = "predictions"
    lenses: tuple[str, ...] = BINARY_LENSES
    default_lens: str = "top-label"
    binary_lens: str = "binary"
    default_average: str = "uniform"
    extra_options: tuple[str, ...] | Options = field(default=(), hash=False)
    renamed: Mapping[str, str | tuple[str, Mapping[Any, Any]]] = field(default_factory=dict, hash=False)
    needs: tuple[str, ...] = ()
    weights: str = "repetition"
    weights_note: str = ""
    order_free: bool = True
    order_note: str = ""
    fractional: str = "no"
    linear: bool = False
    symmetric: bool = False
    fields: tuple[tuple[str, float | None], ...] = ()
    link: str = "threshold"
    iou_threshold: float = 0.5
    slow_above: int | None = None
    slow_classes: int | None = None
    slow_binary: bool = False
    residual_only: bool = False
    smooth: bool = False
    refit_errors: Mapping[str, str] = field(default_factory=dict, hash=False)
    law: str = ""
    cells: CellFacts | None = None
    reads_cells: bool = False
    cheap_draws: bool = False
    overall: Mapping[str, str] = field(default_factory=dict, hash=False)
    costly: bool = False
    differentiable: bool = False
    unbiased: bool = False
    imbalance: str = ""
    many_classes: str = ""
    most_classes: int | None = None
    label_noise: str = ""
    worst_case: bool = False
    parameter_free: bool = False
    advised: Mapping[str, str] = field(default_factory=dict, hash=False)
    enough_rows: tuple[int, str] | None = None
    misses: bool = False
    familiar: bool = False
    spoken: str = ""
    cost: str = "O(N)"
    equation: str = ""
    references: tuple[str, ...] = ()
    use: str = ""
    avoid: str = ""
    corrections: tuple[Correction, ...] = ()
    status: str = "stable"
    since: str = "0.1"

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain dictionaries, lists, numbers and text."""
        facts = {f.name: as_plain(getattr(self, f.name)) for f in fields(Facts)}
        return {
            **facts,
            "cells": None
            if self.cells is None
            else {"kind": self.cells.kind, "measured": as_plain(self.cells.measured)},
            "subfamily": self.subfamily,
            "consistent": self.consistent,
            "table2": None if self.table2 is None else self.table2._asdict(),
            "presets": {str(a): as_plain(dict(a.settings)) for a in self.aliases if isinstance(a, Alias)},
        }

    @property
    def subfamily(self) -> str:
        """The sub-family of the review's Fig. 1 that its section describes."""
        return SUBFAMILIES.get(self.section, "newer than the review")

    @property
    def place(self) -> str:
        """Where the review defines it; for a metric newer than the review, its formula."""
        if not self.section:
            return f"newer than the review: {self.equation}"
        return f"section {self.section}, {'equation ' if self.equation.startswith('(') else ''}{self.equation}"

    @property
    def table2(self) -> Table2Row | None:
        """Its row of the review's Table 2, with pros and cons; None for metrics that have none."""
        return None if self.row is None else TABLE_2[self.row]

    @property
    def consistent(self) -> bool:
        """Is it small exactly when the distance from calibration is small?"""
        return bool(self.sound and self.complete)

    @property
    def robustness(self) -> str:
        """What is known of it beside the distance from calibration, in words."""
        words = {
            (True, True): "consistent: small exactly where the nearest calibrated predictions are near",
            (True, False): "sound, not complete: a small value means nearly calibrated, a large one need not mean far",
            (False, True): "complete, not sound: nearly calibrated means a small value, a small value proves nothing",
            (False, False): "neither sound nor complete: it may be small far from calibration and large near it",
        }
        return words.get((self.sound, self.complete), "")  # type: ignore[arg-type]

    @property
    def draws_in_a_pass(self) -> bool:
        """Does one draw of labels cost about a pass over the rows?"""
        return not self.costly and not self.needs and (self.family in _PASS_FAMILIES or self.cheap_draws)

    @property
    def judges(self) -> bool:
        """May a verdict about calibration rest on it? A score that mixes in sharpness only tells what it expects."""
        return self.measures in ("calibration", "bias")

    @property
    def one_sided(self) -> bool:
        """Is it an error that grows from its perfect value in one direction, also where noise may carry it below?"""
        return self.perfect is not None and not self.fields and self.tail in ("greater", "less")

    @property
    def at_its_end(self) -> bool:
        """Is the perfect value an end of the range, so that estimates are biased away from it?"""
        return self.perfect is not None and not self.fields and self.perfect in self.range


#: Families whose metrics cost a pass over the rows, or a sort.
_PASS_FAMILIES = ("point", "bin", "cumulative")
