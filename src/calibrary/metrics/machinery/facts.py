"""The known facts about a metric, for people and for code that chooses or checks a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["FAMILIES", "Alias", "CellFacts", "Correction", "Facts", "Options", "Table2Row"]


#: What documentation says about options that several metrics share, by their part.
SHARED_TEXTS = {
    heading.strip("[]"): text.rstrip()
    for heading, _, text in (
        part.partition("\n")
        for part in Path(__file__).with_name("shared_texts.txt").read_text(encoding="utf-8").split("\n\n")[1:]
    )
}

#: The families of metrics, in the order in which tables list them.
FAMILIES = ("point", "bin", "kernel", "curve", "cumulative", "detection")


class Options(dict[str, Any]):
    """Options that metrics pass on to a shared part: names with defaults, and their documentation."""

    def __init__(self, doc: str, **defaults: Any) -> None:
        super().__init__(defaults)
        self.doc = doc


class Alias(str):
    """A name that implies settings: ``Alias("RMSCE", norm=2)`` among the aliases of ece is ece with ``norm=2``.

    Settings are options of the metric, ``lens``, ``average``, ``r``, or (for detections) how boxes are matched. A name
    for one number of a result gives its field: ``Alias("calibration slope", of=("slope", 1.0))`` is the field
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
    """A fact that we state differently from the review: which fact, what the review says, what is right and why."""

    fact: str
    review: str
    ours: str

    @property
    def statement(self) -> str:
        """The review's statement and ours, in one sentence."""
        return f"the review says: {self.review}; here: {self.ours}"


@dataclass(frozen=True)
class CellFacts:
    """How a metric is computed from a table of cells, which has counts and mean confidences in place of the rows.

    Attributes
    ----------
    kind : one of

        - "exact": linear in the confidences, or a function of bin sums whose edges are edges of cells
        - "smooth": a smooth function of the confidences; the error falls with the square of the cell width
        - "order": depends on the order of the rows; the error is at most the contribution of one cell
        - "copies": has spans, knots, leaves or folds, whose sizes count the predictions in the cells
        - "counts": has folds or limits that can be formed only from single rows
        - "keys": needs a column computed row by row, which ``by=`` preserves
        - "sample": needs whole rows, and is computed on the uniform sample of a state that stores one
        - "detection": a function of sums of matched detections by category and bin
        - "boxes": uses every matched box
    measured : the largest absolute errors measured at resolution 4800 and 76800 on six distributions of 10^6 rows
        (over-confident, calibrated, concentrated near 1, two decimals, rare events, atoms at 0 and 1)
    split : whether each label has its own mean confidence in a cell, although the kind is "order"
    by_rank : whether the metric's bins depend on the order of the rows, whatever its options
    bound : the name of the proof that bounds the metric's error, a key of ``BOUNDS`` in ``scale/accuracy.py``
    absolute_gaps : whether the metric is a sum of absolute gaps, which changes by at most the weight that changes bins
    smallest_leaf : the option that gives the smallest number of predictions in a leaf
    class_shares_unless : the option without which the metric uses the class shares
    """

    kind: str
    measured: tuple[float, float] | None = None
    split: bool = False
    by_rank: bool = False
    bound: str = ""
    absolute_gaps: bool = False
    smallest_leaf: str = ""
    class_shares_unless: str = ""


class Table2Row(NamedTuple):
    """A row of the review's Table 2: ``type``, ``range``, ``proper`` and ``test`` as printed, ``cites`` its numbers."""

    id: str
    name: str
    family: str
    section: str
    type: str
    range: str
    proper: str
    test: str
    cites: tuple[int, ...]
    pros: tuple[str, ...]
    cons: tuple[str, ...]


Row = Table2Row  # its name in 0.2, which pickles and imports may have


@dataclass(frozen=True)
class Facts:
    """The facts of one metric: those of its card, and its lenses, which the decorator of its formula declares.

    Attributes
    ----------
    id, name, aliases : the short name for ``compute``, the full name, and other names; an :class:`Alias` among the
        aliases implies settings
    preset_of : the metric of which this one is a preset: ``Alias("skce", estimator="ul")`` means skce with that
        estimator, which has an id of its own because people use that name
    homonyms : names that people use for this metric and for another one: name -> what the other is called here
    row : number in the review's Table 2, or None
    section, subfamily : where the review describes the metric, and the sub-family in its Fig. 1 that the section
        describes; "" and "newer than the review" for metrics newer than the review
    table2 : the metric's row in the review's Table 2, with pros and cons; None for metrics without a row
    family : one of :data:`FAMILIES`
    range, perfect : lowest and highest value; the value of a calibrated model as N grows (None: depends on data)
    range_note : how the range depends on options or the number of classes
    measures : what the number measures: "calibration", "bias" (calibration overall or in a part, with or without a
        sign), "calibration and sharpness" (a score, which is poor also for a calibrated model without sharpness),
        "ranking" (which is invariant under increasing transformations of the confidences), "fit" (of a map or of
        clusters) or "consistency" (of repeated predictions)
    square : "yes" if the metric is the square of a norm (unless an option takes the root), "option" if an option
        makes it one
    better : "lower", "higher" or "perfect" (signed: the distance from the perfect value counts)
    sign : what higher and lower values mean; the clause before the first semicolon is the short form
    proper : "strictly", "proper", "no", or "dataset" (not a mean of row scores)
    sound, complete : for binary predictions with infinitely many rows, whether the metric is large wherever the
        nearest calibrated predictions are far, and small wherever they are near (Błasiok and others 2023, the review's
        9.2); None if neither a proof nor a counterexample is known. ``consistent`` means both.
    tail : which side of the null distribution is evidence against calibration
    null : whether the metric can be tested with labels redrawn from the predictions (if not, ``null_note`` gives the
        reason)
    no_interval : why an interval for the metric has no meaning; empty if it has one
    no_ends : why the default interval has no ends (a method of interval gives some); empty if it has ends
    upper_end : how the default interval of an error is extended: "rows" to the upper quantile of resampled rows, or
        "extreme" by the standard error of the cumulative sum where it is largest; empty if it covers without
    bootstrap : the kind of bootstrap of the default interval of a score
    data_type : the type of data that the formula uses, "predictions" or "matches" (matched detections)
    lenses, default_lens, binary_lens : lenses that the metric accepts; what "auto" means for K > 2 and K = 2
    changed : how the default of two classes differs from that of the version before, for a warning that is given once;
        empty if it does not
    default_average : how the views of a lens are combined by default
    needs : inputs beyond labels and probabilities ("features", "groups", "model", "boxes", "order", "distributions")
    weights : "repetition" (a row of weight 2 is the row repeated), "rows" (weights enter means, but sizes count rows)
        or "none"
    order_free : whether the value never depends on the order of the rows
    fractional : whether labels may be shares between 0 and 1: "no", "binary" (in every binary view) or "rows" (also
        whole rows of shares, with lens "full")
    no_consistency : why ``consistency`` cannot use the metric on shares of repeated predictions; empty if it can
    linear : whether the metric's sums over rows are linear in the class indicators, so that a row with class shares
        equals one row per class, weighted by its share
    symmetric : whether the value is unchanged if the two classes are swapped, y -> 1-y and c -> 1-c
    fields : for a metric of several numbers, those that a table shows, each with its perfect value
    link : what a calibrated score of a detection equals: "threshold" P(correct), "identity" the expected IoU, "option"
        the value of the option ``link``
    iou_threshold : the overlap from which detections count as correct by default
    slow_above : number of rows above which a table of all metrics leaves this one out for K > 2 (for any K with
        ``slow_binary``), because its cost is quadratic
    slow_classes : number of classes above which a table of all metrics leaves this one out, because its cost grows
        with their square
    residual_only : whether the metric uses labels only through the residuals y - c, and changes if some residuals
        change sign, so that a test can flip the residuals of whole units
    smooth : whether the metric is a mean of row scores, a ratio of such means, a rank statistic or a likelihood fit, so
        that repeated rows cause no bias, and a bootstrap can estimate the optimism on a model's own training data
    refit_errors : for the value ("") or a field, how errors of refits depend on the strength of a model: "logit" or
        "signal", see :mod:`calibrary.validation.corrections`
    law : the large-sample distribution of the interval: "debiased square", "Brier excess", "observed over expected",
        "expected over observed" or "profile likelihood"; means of row losses are normal and need no entry
    cells : how the metric is computed from a table of cells (:class:`CellFacts`); None: inferred from ``weights`` and
        ``order_free``
    reads_cells : whether draws may replace very many rows by a table of cells, because the metric's kernel is much
        wider than a cell, its bin edges are cell edges, or it is a mean
    cheap_draws : whether one draw of labels costs little more than a pass over the rows, unlike most metrics of its
        family
    inverted_in_tables : whether a draw is so fast that the interval is by inversion in a table of many metrics too, and
        for a sample of up to 20,000 rows
    overall : the statistic of the overall test that each number corresponds to: name of the number ("" for a single
        one) -> "mean", "slope" or "spiegelhalter"
    costly : whether one value needs a cross-validation, a bandwidth search or all pairs, so that a table of many
        metrics gives no interval and no p-value for it unless it is named
    costly_from : the number of rows from which the same holds for a metric whose draws are slow on many rows
    differentiable : whether the metric has a gradient in the probabilities, and can be a training loss or penalty
    unbiased : whether its expectation on any number of rows equals that on infinitely many
    imbalance, many_classes : for a rare class, or very many classes: "made" (designed for this) or "keeps" (still
        meaningful)
    most_classes : number of classes above which the metric is unreliable
    label_noise : the effect of a few wrong labels: "robust", "fragile" (single rows have unlimited weight) or ""
    worst_case : whether the metric shows the worst error rather than the average one
    parameter_free : whether the metric has no options to choose
    advised : where the review recommends the metric, and in which section: a situation of
        :func:`calibrary.recommend` ("few rows", "detection", "rank", "many classes", "label noise") -> "3.3: ..."
    enough_rows : number of rows from which the review considers the metric satisfactory, and the section: (400,
        "4.12: ...")
    misses : whether an object that the detector missed counts
    familiar : whether readers of the field know the metric
    spoken : the name used in sentences, if it is shorter than the full name
    in_short : field of the result ("" for a single number) -> its name and its meaning in a list of few numbers, where
        the name of the metric and the short form of ``sign`` would not do
    cost, equation, references, use, avoid, corrections : for readers; ``equation`` has the review's equation numbers,
        "in words" if the review has none, and the formula of a metric newer than the review
    status, since : "stable" or "emerging" (newer than the review, may still change); the first version that has it
    """

    id: str
    name: str
    family: str
    row: int | None = None
    section: str = ""
    subfamily: str = "newer than the review"
    table2: Table2Row | None = None
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
    no_ends: str = ""
    upper_end: str = ""
    bootstrap: str = "basic"
    data_type: str = "predictions"
    lenses: tuple[str, ...] = ()
    default_lens: str = "top-label"
    binary_lens: str = "binary"
    changed: str = ""
    default_average: str = "uniform"
    needs: tuple[str, ...] = ()
    weights: str = "repetition"
    weights_note: str = ""
    order_free: bool = True
    order_note: str = ""
    fractional: str = "no"
    no_consistency: str = ""
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
    inverted_in_tables: bool = False
    overall: Mapping[str, str] = field(default_factory=dict, hash=False)
    costly: bool = False
    costly_from: int | None = None
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
    in_short: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
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
        from calibrary.base.numbers import as_plain

        facts = {f.name: as_plain(getattr(self, f.name)) for f in fields(Facts)}
        cells = self.cells and {"kind": self.cells.kind, "measured": as_plain(self.cells.measured)}
        return {
            **facts,
            "cells": cells,
            "consistent": self.consistent,
            "table2": None if self.table2 is None else self.table2._asdict(),
            "presets": {str(a): as_plain(dict(a.settings)) for a in self.aliases if isinstance(a, Alias)},
        }

    @property
    def place(self) -> str:
        """Where the review defines the metric; for a metric newer than the review, its formula."""
        if not self.section:
            return f"newer than the review: {self.equation}"
        return f"section {self.section}, {'equation ' if self.equation.startswith('(') else ''}{self.equation}"

    @property
    def consistent(self) -> bool:
        """Whether the metric is small exactly when the distance from calibration is small."""
        return bool(self.sound and self.complete)

    @property
    def robustness(self) -> str:
        """How the metric relates to the distance from calibration, in words."""
        words = {
            (True, True): "consistent: the value is small exactly when the nearest calibrated predictions are near",
            (True, False): "sound, not complete: a small value means nearly calibrated, but a large value need not "
            "mean far from calibrated",
            (False, True): "complete, not sound: nearly calibrated predictions have a small value, but a small value "
            "does not imply calibration",
            (False, False): "neither sound nor complete: the value may be small far from calibration and large near it",
        }
        return words.get((self.sound, self.complete), "")  # type: ignore[arg-type]

    @property
    def short_sign(self) -> str:
        """What the value means in one clause, for a list of few numbers."""
        return self.sign.partition(";")[0]

    @property
    def draws_in_a_pass(self) -> bool:
        """Whether one draw of labels costs about one pass over the rows."""
        return not self.costly and not self.needs and (self.family in _PASS_FAMILIES or self.cheap_draws)

    @property
    def judges(self) -> bool:
        """Whether a verdict about calibration may be based on the metric; scores also depend on sharpness."""
        return self.measures in ("calibration", "bias")

    @property
    def one_sided(self) -> bool:
        """Whether the metric is an error that grows in one direction from its perfect value, apart from noise."""
        return self.perfect is not None and not self.fields and self.tail in ("greater", "less")

    @property
    def at_its_end(self) -> bool:
        """Whether the perfect value is an end of the range, so that estimates are biased away from it."""
        return self.perfect is not None and not self.fields and self.perfect in self.range


#: Families whose metrics cost one pass over the rows, or a sort.
_PASS_FAMILIES = ("point", "bin", "cumulative")
