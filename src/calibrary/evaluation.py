"""Compute every metric that applies to one set of predictions, in one table."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from calibrary.base.errors import (
    FAULT,
    RefusedCallError,
    RefusedError,
    UnknownMetricError,
    collected_warnings,
    fault,
    one_of,
    suggest,
    warn,
)
from calibrary.base.forked import Forked, can_fork
from calibrary.base.markup import element, html_table, markup
from calibrary.base.numbers import EXACT, counted, ends, number, pvalue, pvalue_cell
from calibrary.data import Data, as_data
from calibrary.data.asked import checks_options
from calibrary.data.columns import takes_table
from calibrary.data.lens import as_lens
from calibrary.data.sample import Sample, sample_of
from calibrary.inference.draw.statistic import Statistic, as_statistic
from calibrary.inference.draw.waiting import WATCHED, progress_of
from calibrary.inference.methods.drawn import Inferred, infer_many
from calibrary.inference.methods.multiplicity import ADJUSTMENTS, STEP_DOWN
from calibrary.inference.verbs.imputed import completed, evaluated, refuse_beside_imputations
from calibrary.inference.verbs.interval import interval
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.declare import Entry
from calibrary.metrics.machinery.facts import FAMILIES
from calibrary.metrics.machinery.measure import perfect_of, said_bins
from calibrary.question import Question

__all__ = ["Evaluation", "evaluate"]


#: The names of a row's numbers in a table and in a file; the mean by chance is there under its old name too.
_SAVED = (
    "id", "name", "family", "value", "part", "perfect", "range", "better", "low", "high", "standard_error", "pvalue",
    "pvalue_adjusted", "expected_by_chance", "null_mean", "null_high", "method", "asymptotic_pvalue", "primary",
    "among", "note", "reason",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Row(Inferred):
    """One value of an evaluation: an :class:`Estimate`. ``part`` names the value if the metric has several.

    ``method`` is that of the interval, ``reason`` why it was chosen, in the words of :func:`calibrary.interval`, and
    ``note`` holds warnings. What was not requested or is unknown is None.

    ``among`` is the number of p-values for which this row's p-value is adjusted, if not all of the table.
    """

    id: str
    name: str
    family: str
    part: str = ""
    perfect: float | None = None
    range: tuple[float, float] = (-math.inf, math.inf)
    better: str = "lower"
    primary: bool = False
    among: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The row of a table or a file."""
        return self.under(_SAVED)

    @property
    def label(self) -> str:
        """The name of the number in tables and gates: ``ece``, ``cis.slope``."""
        return f"{self.id}.{self.part}" if self.part else self.id


@dataclass(frozen=True)
class Evaluation:
    """The result of :func:`evaluate`: one row for each value, and the reason for each metric that was left out.

    Index by metric id for a number (``result["ece"]``), iterate for rows, or use :meth:`to_pandas` and
    :meth:`to_dict`. Of a metric with several numbers, name the number: ``result["cis.slope"]``; the id alone gives the
    first of them, here Cox's intercept.
    """

    rows: tuple[Row, ...]
    skipped: dict[str, str]
    n: int
    n_classes: int
    lens: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def faults(self) -> dict[str, str]:
        """The metrics that failed because of a bug in this library, not because of the data; usually none."""
        notes = {row.id: row.note for row in self.rows if FAULT in row.note}
        return {**notes, **{id: why for id, why in self.skipped.items() if FAULT in why}}

    def __getitem__(self, id: str) -> float:
        return self.row(id).value

    def row(self, id: str, part: str = "") -> Row:
        """The row of a metric, and of one of its numbers: ``row("cis", "slope")`` or ``row("cis.slope")``.

        If the metric has several numbers and none is named, the row of the first one.
        """
        found = [row for row in self.rows if row.id == id and part in ("", row.part)]
        found += [row for row in self.rows if row.label == id and not part]
        if found:
            return found[0]
        entry = catalogue[id]
        if entry.key != id:
            return self.row(entry.key, part)
        parts = [row.part for row in self.rows if row.id == id and row.part]
        if parts or any(row.id == id for row in self.rows):
            known = suggest(part, parts) if parts else "it is one number"
            raise UnknownMetricError(f"{id} has no part {part!r}: {known}")
        why = self.skipped.get(id) or self.skipped.get(entry.id, "it was not requested")
        raise UnknownMetricError(f"{id} was not computed: {why}")

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, ready for JSON (NaN and infinities stay floats)."""
        return {
            "n": self.n,
            "n_classes": self.n_classes,
            "lens": self.lens,
            "settings": self.settings,
            "metrics": [row.to_dict() for row in self.rows],
            "skipped": dict(self.skipped),
        }

    def to_pandas(self) -> Any:
        """A pandas DataFrame with one row for each value."""
        import pandas as pd

        return pd.DataFrame([row.to_dict() for row in self.rows])

    def _table(self) -> tuple[list[str], list[list[str]]]:
        draws = int(self.settings.get("n_resamples", EXACT))
        used = [name for name in _COLUMNS if name in _ALWAYS or any(_cell(row, name, draws) for row in self.rows)]
        head = [_COLUMNS[name] for name in used]
        return head, [[_cell(row, name, draws) for name in used] for row in self.rows]

    def __repr__(self) -> str:
        title = f"{counted(self.n, 'prediction')}, {self.n_classes} classes, lens {self.lens}"
        head, body = self._table()
        widths = [max(len(r[j]) for r in [head, *body]) for j in range(len(head))]
        lines = [title]
        family = None
        for row, cells in zip(self.rows, body, strict=True):
            if row.family != family:
                family = row.family
                lines += ["", f"{family} family", _line(head, widths)]
            lines.append(_line(cells, widths))
        if self.skipped:
            lines += ["", f"not computed ({len(self.skipped)}): " + ", ".join(self.skipped)]
        return "\n".join(lines)

    @property
    def headline(self) -> str:
        """The first metric in a sentence: the primary one, the ECE, or the first of the table."""
        if not self.rows:
            return "No metric was computed."
        row = max(self.rows, key=lambda r: (r.primary, r.id == "ece"))
        mean, draws = row.expected_by_chance, int(self.settings.get("n_resamples", EXACT))
        chance = "" if mean is None else f" A calibrated model would show about {number(mean)}."
        p = "" if row.pvalue is None else f", {pvalue(row.pvalue, draws)}"
        between = f" ({said})" if (said := ends(row.low, row.high)) else ""
        return f"{row.name[:1].upper()}{row.name[1:]} {number(row.value)}{between}{p}.{chance}"

    def _repr_html_(self) -> str:
        head, body = self._table()
        families: dict[str, list[list[str]]] = {}
        for row, cells in zip(self.rows, body, strict=True):
            families.setdefault(row.family, []).append(cells)
        facts = f"{counted(self.n, 'prediction')}, {self.n_classes} classes. {self.headline}"
        left = [element("p", f"Not computed ({len(self.skipped)}): {', '.join(self.skipped)}")] if self.skipped else []
        tables = [
            markup(element("h4", f"{family} family"), html_table(head, rows)) for family, rows in families.items()
        ]
        return markup(element("p", facts), tables, left)


_COLUMNS = {
    "id": "metric", "value": "value", "low": "interval", "pvalue": "p", "pvalue_adjusted": "p adjusted",
    "expected_by_chance": "if calibrated", "perfect": "ideal", "name": "name",
}  # fmt: skip
_ALWAYS = ("id", "value", "perfect", "name")


def _cell(row: Row, column: str, draws: int) -> str:
    if column == "id":
        return row.label + (" *" if row.primary else "")
    if column == "low":
        return ends(row.low, row.high)
    if column == "name":
        return row.name
    if column in ("pvalue", "pvalue_adjusted"):
        return pvalue_cell(getattr(row, column), draws)
    value = getattr(row, column)
    return f"{value:g}" if column == "perfect" and value is not None else number(value)


def _line(cells: list[str], widths: list[int]) -> str:
    return "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()


@takes_table
@checks_options
def evaluate(
    y_true: Any,
    y_prob: Any = None,
    *,
    metrics: str | Iterable[str] | None = None,
    lens: Any = "auto",
    average: Any = "auto",
    r: int | None = None,
    sample_weight: Any = None,
    weight_type: str = "frequency",
    labels: Any = None,
    pos_label: Any = None,
    percent: bool = False,
    rescale: bool = False,
    ordinal: bool = False,
    intervals: bool = False,
    tests: bool = False,
    primary: str | None = None,
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    adjust: str | None = None,
    rng: Any = None,
    units: Any = None,
    blocks: Any = None,
    imputations: Any = None,
    progress: bool | None = None,
    **inputs: Any,
) -> Evaluation:
    """Compute every metric that applies to these predictions.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label, percent, rescale
        As in :func:`calibrary.predictions`; a ``Matches`` object from :func:`calibrary.match_detections` works
        too, and adds the detection family.
    metrics : str or list of str, optional
        Ids, aliases or families ("point", "bin", "kernel", "curve", "cumulative", "detection"). Default: all that
        apply. Metrics named here are computed even if they are slow.
    lens, average, r
        Which events of several classes are evaluated. "auto" is each metric's own default.
    weight_type : "frequency" or "importance"
        Meaning of the weights for intervals and tests: numbers of equal rows, or relative importance of rows.
    ordinal : bool
        The classes are ordered, so that ranked scores apply to more than two classes.
    intervals, tests : bool
        Add intervals, and p-values of the hypothesis that the predictions are calibrated, adjusted for testing many
        metrics at once. ``n_resamples``, ``confidence_level``, ``adjust`` and ``rng`` apply to both. Every metric of
        ``metrics`` and the ``primary`` one have the interval that :func:`calibrary.interval` gives for the same seed;
        among metrics that were not named one by one, those whose inversion is slow have the triangle method
        (``method`` of a row says which).
    primary : str, optional
        The one metric chosen in advance, whose p-value is not adjusted.
    units : array-like of shape (N,), optional
        The patient, prompt or user of each row. Units are resampled with all their rows, and tests flip the signs of
        the residuals of whole units (for metrics that are functions of residuals; the others then have no test).
    blocks : int or True, optional
        Rows are in time order, and are resampled in blocks of this length (True: N^(1/3)).
    imputations : array-like of shape (N,) or True, optional
        The completed data set of each row after multiple imputation, as in :func:`calibrary.interval`: values and
        intervals are pooled by Rubin's rules.
    progress : bool, optional
        ``False`` shows no progress. Default: after two seconds, in a terminal or a notebook.
    **inputs
        Options of metrics (``n_bins=10``), passed to every metric that has the option, and extra inputs of some
        metrics (``features=``, ``groups=``, ...). ``by=`` is one of these here: :func:`calibrary.report` shows each
        part.

    Returns
    -------
    Evaluation
        Prints as a table; ``result["ece"]`` is a number; ``result.skipped`` gives the reason for each metric that was
        left out.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3]
    >>> result = cal.evaluate(y, p, metrics=["bs", "nll"])
    >>> print(result)
    8 predictions, 2 classes, lens auto
    <BLANKLINE>
    point family
    metric  value  ideal  name
    bs      0.125         Brier score
    nll     0.405         negative log likelihood
    """
    if adjust is not None:
        one_of("adjust", str(adjust).lower(), (*STEP_DOWN, *ADJUSTMENTS))
    keywords = {"sample_weight": sample_weight, "labels": labels, "pos_label": pos_label, "percent": percent}
    keywords["rescale"] = rescale
    if imputations is not None:
        beside = {"tests": tests, "primary": primary, "units": units, "blocks": blocks, "adjust": adjust}
        refuse_beside_imputations({**beside, "sample_weight": keywords.pop("sample_weight")})
        same = {"metrics": metrics, "lens": lens, "average": average, "r": r, "progress": progress}
        table_of = functools.partial(evaluate, **same, **inputs)
        one = functools.partial(interval, n_resamples=n_resamples, confidence_level=confidence_level, rng=rng)
        parts = completed(y_true, y_prob, imputations, keywords)
        return evaluated(parts, table_of, inputs, one if intervals else None, confidence_level)
    data = as_data(y_true, y_prob, keywords)
    question = Question(
        options=inputs, lens=lens, average=average, r=r, weight_type=weight_type, confidence_level=confidence_level,
        n_resamples=n_resamples, rng=rng, adjust=adjust,
    )  # fmt: skip
    with progress_of("evaluate", progress, whole=1.0 if intervals or tests else _SHARE):
        return evaluate_data(
            data.in_units(units, blocks), question, metrics=metrics, ordinal=ordinal, intervals=intervals, tests=tests,
            primary=primary,
        )  # fmt: skip


def evaluate_data(
    data: Data,
    question: Question,
    *,
    metrics: str | Iterable[str] | None = None,
    ordinal: bool = False,
    intervals: bool = False,
    tests: bool = False,
    primary: str | None = None,
) -> Evaluation:
    """As :func:`evaluate`, for checked data and a question; each metric is computed once."""
    chosen, by_name = _chosen(metrics)
    if primary is not None:
        primary = catalogue[primary].key
        by_name.add(primary)
        if catalogue[primary] not in chosen:
            chosen = sorted([*chosen, catalogue[primary]], key=_place)
    if question.lens != "auto":
        as_lens(question.lens, question.r)  # a misspelt lens raises an error instead of leaving out every metric
    _refuse_unused(question.options, chosen, data)
    _say_what_by_does(question.options, chosen, by_name)
    for name in _OF_ROWS:
        if hasattr(question.options.get(name), "__array__"):
            data.align(question.options[name], name)  # other rows are refused, and no reason to leave metrics out
    sample = sample_of(data, question.weight_type)
    drawn = intervals or tests  # intermediate results are stored only if the data will be resampled
    work = WATCHED.get()
    if work is not None:
        work.part(_SHARE)

    def measured(entry: Entry) -> _Measured:
        reason = _not_applicable(entry, data, question, ordinal, by_name)
        if reason is not None:
            return _Measured(skipped=reason)
        found = _measured(entry, sample, question, keeps=drawn)
        if sample.p.n * sample.p.k >= _MANY_NUMBERS:
            sample.p.forget()
        return found

    # a slow metric that was not named gets its value only, which another process can compute meanwhile
    slow = [e for e in chosen if (e.costly or sample.p.n >= (e.costly_from or math.inf)) and e.key not in by_name]
    aside = slow if drawn and (question.workers or 1) > 1 and can_fork() else []
    with ExitStack() as open_:
        child = open_.enter_context(Forked(lambda: [measured(e).without_statistic for e in aside])) if aside else None
        found: dict[str, _Measured] = {}
        for place, entry in enumerate(chosen):
            if work is not None:
                work.at(place / len(chosen))
            if entry not in aside:
                found[entry.key] = measured(entry)
        done = [m.statistic for m in found.values() if m.statistic is not None]
        taken = [s for s in done if s.entry is not None and s.entry not in slow]
        wanted = {"intervals": intervals, "tests": tests, "named": by_name}
        inferred, failed = _surviving(taken, question, wanted, primary) if taken else ({}, {})
        if child is not None:
            found |= dict(zip((entry.key for entry in aside), child.result(), strict=True))
    every = {entry.key: found[entry.key] for entry in chosen}
    rows = [row for m in every.values() for row in m.rows]
    skipped = {key: m.skipped for key, m in every.items() if m.skipped is not None}
    if drawn:
        apart = {key: m.apart for key, m in every.items() if m.apart}
        rows = [_with_inference(row, inferred, failed, apart, intervals, primary) for row in rows]
    settings: dict[str, Any] = {}
    if intervals or tests:
        settings = {"n_resamples": question.n_resamples, "confidence_level": question.confidence_level}
    p = sample.p
    seen = str(getattr(question.lens, "name", question.lens))
    return Evaluation(tuple(rows), skipped, p.n_predictions, p.k, seen, settings)


def _own_sample(entry: Entry, sample: Sample, question: Question) -> tuple[Sample, str]:
    """The data for a metric that needs other data than the table's, and why it has no interval and test there.

    A metric's name may imply another matching of boxes; of a state of several classes only one part can be resampled.
    """
    matched = entry.matched(sample.data)
    if matched is not sample.data:
        return sample_of(matched, sample.weight_type), _APART
    try:
        drawn = sample.data.drawn_by(entry.lens_for(sample.data, question.of(entry.options)))
    except RefusedError as error:
        return sample, f"no interval and no test: {error}"
    return (sample if drawn is sample.data else sample_of(drawn, sample.weight_type)), ""


@dataclass(frozen=True)
class _Measured:
    """The rows of one metric and its statistic for resampling, or the reason why it was skipped.

    ``apart`` is the reason why the metric has a value without interval and test.
    """

    rows: tuple[Row, ...] = ()
    statistic: Statistic | None = None
    apart: str = ""
    skipped: str | None = None

    @property
    def without_statistic(self) -> _Measured:
        """The same result without the statistic, whose functions cannot be sent to another process."""
        return replace(self, statistic=None)


def _measured(entry: Entry, sample: Sample, question: Question, *, keeps: bool) -> _Measured:
    """Compute one metric; the statistic is kept if the metric will be resampled."""
    own, apart = _own_sample(entry, sample, question)
    found = _computed(entry, own, question)
    if found.skipped is not None and own.data is not sample.data and not apart:
        # the part of the state that can be resampled does not suffice for this metric
        apart, found = found.skipped, _computed(entry, sample, question)
    return replace(found, apart=apart, statistic=found.statistic if keeps and not apart else None)


def _computed(entry: Entry, sample: Sample, question: Question) -> _Measured:
    """The rows of one metric; if it fails, the reason, and the other metrics are not affected."""
    try:
        with collected_warnings() as said:
            own = entry.settled(question.of(entry.options))
            entry.check(own.options)
            statistic = as_statistic(entry, sample, own)
            named = statistic.named
            known = sample.data.note_for(entry, own.changed(options=statistic.question.options))
    except RefusedError as error:
        return _Measured(skipped=str(error))
    except Exception as error:
        return _Measured(skipped=fault(entry.id, error))
    facts: dict[str, Any] = {
        "id": entry.key, "name": entry.title, "family": entry.family, "range": statistic.range, "better": entry.better,
    }  # fmt: skip
    note = _joined(known, said_bins(own.options, statistic.question), *dict.fromkeys(said))
    rows = tuple(
        Row(
            **facts,
            value=x,
            part=part,
            perfect=perfect_of(part, entry),
            note=_joined(note, "" if said else _no_number(x)),
        )
        for part, x in named.items()
    )
    return _Measured(rows, statistic)


def _with_inference(
    row: Row,
    inferred: dict[tuple[str, str], Inferred],
    failed: dict[str, str],
    apart: dict[str, str],
    intervals: bool,
    primary: str | None,
) -> Row:
    """The row with its interval and p-value, or with the reason why it has none."""
    known = inferred.get((row.id, row.part))
    if known is None and row.id in failed:
        return replace(row, note=_joined(row.note, f"no interval and no test: {failed[row.id]}"))
    if known is None:
        return replace(row, note=_joined(row.note, apart.get(row.id, _COSTLY)))
    note = _joined(row.note, catalogue[row.id].no_interval if intervals else "", known.note)
    numbers = {name: value for name, value in vars(known).items() if name not in ("value", "note")}
    return replace(row, **numbers, primary=row.id == primary, note=note or _no_interval(known))


def _surviving(
    taken: list[Statistic], question: Question, wanted: dict[str, Any], primary: str | None
) -> tuple[dict[tuple[str, str], Inferred], dict[str, str]]:
    """The results of all metrics on shared draws, and the reasons of those that fail on resampled data."""
    try:
        return infer_many(taken, question, **wanted, primary=primary), {}
    except Exception:
        failed: dict[str, str] = {}
        for statistic in taken:
            try:
                infer_many([statistic], question, **wanted, primary=None)
            except RefusedError as error:
                failed[statistic.name] = str(error)
            except Exception as error:
                failed[statistic.name] = fault(statistic.name, error)
        rest = [statistic for statistic in taken if statistic.name not in failed]
        if not rest or not failed:  # the error is not of one metric but of an option
            raise
        return infer_many(rest, question, **wanted, primary=None if primary in failed else primary), failed


def _no_number(value: float) -> str:
    """The note for an undefined value for which the metric itself gave no warning."""
    if math.isinf(value):
        return "infinite on these data: a prediction of 0 or 1 was wrong, or the denominator is 0"
    return "not defined on these data" if math.isnan(value) else ""


def _no_interval(known: Inferred) -> str:
    unknown = known.method and not all(end is not None and math.isfinite(end) for end in known)
    return "no interval: the value is infinite or not defined on some resamples" if unknown else ""


#: With more probabilities than this, intermediate results are not shared between metrics, to save memory.
_MANY_NUMBERS = 1_000_000
#: The share of the whole work that computing the values takes, for a progress bar.
_SHARE = 0.2
#: Options of metrics with a value for every row.
_OF_ROWS = ("features", "groups", "by", "individual", "consistency", "soft_target")
_COSTLY = "no interval and no test, because each draw is slow: name the metric in metrics= to get both"


_APART = (
    "no interval and no test here, because the metric needs another matching of boxes: call interval or test for it"
)


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _chosen(metrics: str | Iterable[str] | None) -> tuple[list[Entry], set[str]]:
    """The requested entries, sorted by family as in the catalogue, and the ids that were named one by one."""
    if metrics is None:
        return sorted(catalogue.values(), key=_place), set()
    wanted: dict[str, Entry] = {}
    by_name = set()
    for name in [metrics] if isinstance(metrics, str) else metrics:
        if name in FAMILIES:
            wanted.update({e.id: e for e in catalogue.values() if e.family == name})
        else:
            entry = catalogue[name]
            wanted[entry.key] = entry
            by_name.add(entry.key)
    return sorted(wanted.values(), key=_place), by_name


def _place(entry: Entry) -> tuple[int, int]:
    return FAMILIES.index(entry.family), entry.row or 1000


def _say_what_by_does(options: Mapping[str, Any], chosen: list[Entry], by_name: set[str]) -> None:
    """Warn that ``by`` makes no table for each part, unless the metrics that take it were named."""
    takers = [entry.key for entry in chosen if "by" in entry.options]
    if "by" in options and by_name.isdisjoint(takers):
        warn(
            f"this table is of all rows: by= is an input of {' and '.join(takers)} alone (name them in metrics= "
            "without this warning); report(..., by=) shows each part"
        )


def _refuse_unused(options: Mapping[str, Any], chosen: list[Entry], data: Data) -> None:
    known = {name for entry in chosen for name in entry.options}
    for name, value in options.items():
        if name not in known:
            meant = known.union(*(entry.front.common for entry in chosen)) - {name}  # a table may not take it
            raise RefusedCallError(f"no metric here takes {name!r}: {suggest(name, meant)}")
        takers = [entry for entry in chosen if name in entry.options]
        _refuse_everywhere(name, value, [entry for entry in takers if _reads(entry, data)] or takers)


def _reads(entry: Entry, data: Data) -> bool:
    """Whether the metric can be computed from data of this type."""
    try:
        data.read_as(entry.data_type, entry.id)
    except RefusedError:
        return False
    return True


def _refuse_everywhere(name: str, value: Any, takers: list[Entry]) -> None:
    """Refuse an option's value that no metric can use; if only some metrics cannot use it, they are left out."""
    refusals = []
    for entry in takers:
        try:
            entry.check({name: value} if name != "points_per_bin" else {name: value, "binning": "points"})
        except RefusedError as error:
            refusals.append(error)
    if len(refusals) == len(takers):
        raise refusals[0]


def _not_applicable(entry: Entry, data: Data, question: Question, ordinal: bool, by_name: set[str]) -> str | None:
    """Why this metric cannot or should not be computed here, or None."""
    if entry.covered and entry.key not in by_name:
        return "is included already, under the names of its presets"
    try:
        seen = entry.seen(data)
        entry.lens_for(seen, entry.settled(question.of(entry.options)))
    except RefusedError as error:
        return str(error)
    if entry.weights == "none" and seen.weighted:
        return "does not take sample_weight"
    return _missing_input(entry, data, question, ordinal) or _too_slow(entry, data, by_name)


def _missing_input(entry: Entry, data: Data, question: Question, ordinal: bool) -> str | None:
    for need in entry.needs:
        if need == "boxes" or (need == "order" and (ordinal or data.read_as("predictions", entry.id).k == 2)):
            continue
        if need == "order":
            return "is for ordered classes: pass ordinal=True if your classes are ordered"
        if need == "distributions" and data.read_as("predictions", entry.id).fractional:
            continue
        if need not in question.options and need not in entry.settings:
            return f"needs {need}" + (f": pass {need}=" if need in entry.options else "")
    return None


def _too_slow(entry: Entry, data: Data, by_name: set[str]) -> str | None:
    if entry.key in by_name or (entry.slow_above is None and entry.slow_classes is None):
        return None
    p = data.read_as("predictions", entry.id)
    if entry.slow_classes is not None and p.k > entry.slow_classes:
        return f"is slow ({entry.cost}): name it in metrics= to compute it for {p.k:,} classes"
    if entry.slow_above is not None and (p.k > 2 or entry.slow_binary) and p.n > entry.slow_above:
        return f"is slow ({entry.cost}): name it in metrics= to compute it on {p.n:,} rows"
    return None
