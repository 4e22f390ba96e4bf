"""Sections about results that were given: language models, ensembles, rows of no class, a target, groups, centres."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calibrary.base.claims import Sentence, measured
from calibrary.base.numbers import counted, ends, number, percent, pvalue, pvalue_cell, with_interval
from calibrary.base.text import capital
from calibrary.data.predictions import Predictions
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.methods.scales import called
from calibrary.lookup import catalogue
from calibrary.reporting.sections import Context, Figure, Section, Table, section
from calibrary.reporting.verdict import PageVerdict
from calibrary.trial.pooled import DEFAULT, CentreRow, Pooled, centres_of, pooled_data

#: The first sentence below the headline of a report of sampled answers.
CAUTION = (
    "Noise: the metrics and figures below use the shares of agreeing samples as confidences. They include the sampling "
    "noise, so they are not tested."
)


def sampled_verdict(found: Any, tolerance: float) -> PageVerdict:
    """The verdict of a page about sampled answers: their own test, and the error without sampling noise."""
    return PageVerdict(_rejected(found), tolerance, float(found.high), float(found.n), "answers")


def sampled_headline(found: Any, page: PageVerdict) -> Sentence:
    """The headline of a report of sampled answers: the verdict with the result of their test, and the error's size."""
    level = percent(found.level)
    p = pvalue(found.pvalue, found.n_resamples)
    why = page.reason()
    start = f"{page.words} ({found.method} test of sampled answers, {p})" + (f": {why}" if why else "")
    text = (
        f"{start}. The calibration error without sampling noise is "
        f"{number(found.value)} ({level} interval {number(found.low)} to {number(found.high)}); about "
        f"{number(found.expected_by_chance)} is expected by chance."
    )
    return Sentence(text, *(claim for claim in found.sentence.claims if claim.rule in ("interval", "miscalibrated")))


def _rejected(found: Any) -> bool:
    return bool(found.pvalue <= alpha_of(found.level))


@section("sampled")
def sampled(found: Any) -> Section:
    """The calibration of sampled answers without the sampling noise, if they were given."""
    k = f"{found.k:,}" if isinstance(found.k, int) else f"{found.k[0]:,} to {found.k[1]:,}"
    rows = (
        ("calibration error", with_interval(found.value, found.low, found.high), "without sampling noise"),
        ("expected by chance", number(found.expected_by_chance), "mean of a calibrated model"),
        ("p-value", pvalue(found.pvalue, found.n_resamples), f"{found.method} test"),
        ("ECE of the shares", number(found.naive_error), "with sampling noise"),
        ("Brier score", number(found.brier), f"of the shares: {number(found.naive_brier)}"),
        ("accuracy", percent(found.accuracy), f"mean share of agreeing samples: {percent(found.mean_confidence)}"),
    )
    sentences = (
        found.sentence,
        f"Samples: the confidence of each of {counted(found.n, 'answer')} is estimated from {k} samples. The interval "
        "is for the error that this many samples can show, which is at most that of the model's own probabilities.",
    )
    figure = Figure.captioned("sampled", partial(found.plot, caption=False))
    table = Table(("number", "value", "what it is"), rows)
    data = {**found.to_dict(), "rejected": _rejected(found)}
    return Section("sampled", "Sampled answers", sentences, (table,), (figure,), data)


@section("judge")
def judge(found: Any) -> Section:
    """Estimates from few human labels and a judge together, if a judge was given."""
    way = "above" if found.judge_bias > 0 else "below"
    sentences = [found.sentence]
    if abs(found.judge_bias) >= 0.005:
        said = (
            f"Bias of the judge: on the rows that both labelled, the judge's mean label is "
            f"{number(abs(found.judge_bias))} {way} that of the humans."
        )
        sentences.append(Sentence(said, measured(said, judge_bias=found.judge_bias)))
    sentences.append("Rows: the rest of this page uses only the rows with a human label.")
    table = Table(("number", "value"), tuple(found.rows()))
    figure = Figure.captioned("judge", partial(found.plot, caption=False))
    return Section("judge", "Human and judge", tuple(sentences), (table,), (figure,), found.to_dict())


# -- the sections about ensembles and about rows that belong to no class ---------------------------


#: The largest number of members that a page lists.
_MOST_MEMBERS = 30
_KINDS = {
    "draws": "Members: they are taken as draws; if they are correct, the true probability is one more draw.",
    "mixture": "Members: they are taken as a mixture; if it is correct, the truth of a row is one of its members.",
}


@section("ensemble")
def ensemble(found: Any) -> Section:
    """Claimed and true uncertainty of an ensemble, if members were given."""
    parts = (found.mean, found.members, found.mixture, found.spread, found.decomposition)
    sentences = (*(part.sentence for part in parts), _KINDS[found.kind])
    head = ("what", "estimate", "interval", "p")
    tables = [Table(head, tuple(found.rows())), _members(found)]
    figure = Figure.captioned("ensemble", partial(found.plot, caption=False))
    figures = (figure,) if len(found.spread.groups) else ()
    data = {"kind": found.kind, "n": found.n, "n_members": found.n_members, "answers": _plain(found)}
    return Section("ensemble", "Members of the ensemble", sentences, tuple(tables), figures, data)


def _members(found: Any) -> Table:
    rows = tuple(
        (f"member {row.member}", number(row.error), with_interval(row.value, row.low, row.high),
         number(row.log_loss), pvalue_cell(row.pvalue))
        for row in found.members.rows[:_MOST_MEMBERS]
    )  # fmt: skip
    more = len(found.members.rows) - len(rows)
    caption = "Each member by itself" + (f"; {more} more are not shown" if more > 0 else "")
    return Table(("member", "ECE", "slope", "log loss", "p"), rows, caption, folded=True)


def _plain(found: Any) -> dict[str, Any]:
    """The numbers of the five questions about an ensemble."""
    saved = {}
    for name in ("mean", "members", "mixture", "spread", "decomposition"):
        x = getattr(found, name)
        ends_ = {"estimate": x.value, "low": x.low, "high": x.high, "pvalue": x.pvalue}
        saved[name] = {**ends_, "sentence": str(x.sentence)}
    return saved


@section("outside")
def outside(found: Any) -> Section:
    """The model's confidence on rows that belong to no class, if there are any."""
    missed = found.detector.missed
    rows = [
        ("confidence outside", _with(found.outside_confidence), f"{found.n_outside:,} rows"),
        ("confidence inside", _with(found.inside_confidence), f"{found.n:,} rows"),
        ("AUROC of confidence", _with(found.detector), "0.5: no better than chance"),
        ("share of rows outside that pass",
         f"{percent(missed.value)} ({percent(missed.low)} to {percent(missed.high)})",
         "at the threshold that keeps 95% of the rows inside"),
        ("detection error", _with(found.detector.best_error), "at the best threshold"),
        ("open-set calibration error", _with(found.open_set_error), f"{percent(found.prevalence_outside)} outside"),
        ("calibration error inside", _with(found.closed_error), ""),
        ("selective risk (AURC)", _with(found.selective_risk), f"inside: {number(found.closed_risk.value)}"),
    ]  # fmt: skip
    rows += [(f"AUROC of {score.name}", _with(score), "") for score in found.scores]
    table = Table(("number", "value (interval)", "about"), tuple(rows))
    data = {
        "n_outside": found.n_outside, "prevalence": found.prevalence_outside,
        "auroc": found.detector.value, "fpr": missed.value, "open_set_error": found.open_set_error.value,
        "intervals": {"auroc": ends(found.detector.low, found.detector.high)},
    }  # fmt: skip
    title = "Rows that belong to no class"
    said = (found.sentence, "The rest of this page is about the rows inside.")
    return Section("outside", title, said, (table,), (), data)


def _with(x: Any) -> str:
    return with_interval(x.value, x.low, x.high)


# -- the sections about other data: a target without labels, and groups in an order ----------------


@section("target")
def at_target(found: Any) -> Section:
    """The metric on a target without labels, if one was given."""
    sentences = [found.sentence]
    if not np.isnan(found.corrected):
        given = f"--prevalence {found.shares[1]:.3g}" if len(found.shares) == 2 else "--prevalence with these shares"
        sentences.append(
            "What would help at the target: PriorShift, which is exact if the predictions are calibrated at the "
            f"source; {given} compares it with other maps."
        )
    sentences.append("The rest of this page uses only the labelled rows.")
    data = {name: value for name, value in found.to_dict().items() if name != "weights"}  # one for each row
    table = Table(("number", "value"), tuple(found.rows()))
    return Section("target", "On the target", tuple(sentences), (table,), (), data)


@section("shift")
def along_groups(found: Any) -> Section:
    """The metric in ordered groups, if a column of them was given."""
    head, rows = found.table()
    figure = Figure.captioned("groups", partial(found.plot, caption=False))
    table = Table(head, tuple(rows))
    return Section("shift", "Along the groups", (found.sentence,), (table,), (figure,), found.to_dict())


# -- the sections about centres, and about how many rows would halve the intervals -----------------


#: The metrics with a forest plot, and the most centres that one shows.
_FORESTS, _MOST_CENTRES = ("oe", "cis.slope", "auroc"), 60
#: Numbers whose intervals shrink like 1/sqrt(rows).
_PRECISE = (("oe", ""), ("cis", "slope"), ("auroc", ""))


# -- centres -----------------------------------------------------------------------------------------


def over_centres(p: Predictions, centre: Any, level: float) -> Pooled | None:
    """The performance over centres, before anything that takes long: what cannot be pooled is refused at once."""
    return None if centre is None else pooled_data(p, centres_of(p, centre), list(DEFAULT), level=level)


@section("centres")
def centres(found: Pooled) -> Section:
    """Performance in each centre, its mean over centres, and the interval of a new one."""
    notes = tuple((row.metric, row.note) for row in found.table if row.note)
    first = replace(found, table=(replace(found.table[0], left_out=()),)).sentence
    sentences = [str(first), *found.said_of_left_out, *found.cautions]
    shown = len(found.names) <= _MOST_CENTRES
    if not shown:
        sentences.append(f"Forest plots show at most {_MOST_CENTRES} centres; the table has all {len(found.names)}.")
    head, cells = found.cells()
    tables = (
        Table(tuple(head), tuple(map(tuple, cells)), "Mean over centres, and the interval of the value in a new one"),
        _each(found),
        *([_without(found)] if found.leave_one_out else []),
        *([Table(("metric", "note"), notes, "Notes", folded=True)] if notes else []),
    )
    figures = (*(_forest(found, metric) for metric in _FORESTS if shown and metric in found.metrics), _curve(found))
    return Section("centres", "Centres", tuple(sentences), tables, figures, found.to_dict())


def _each(found: Pooled) -> Table:
    """One line for each centre, with all metrics."""
    by_name: dict[str, list[CentreRow]] = {}
    for row in found.centres:
        by_name.setdefault(row.centre, []).append(row)
    rows = []
    for name, its in by_name.items():
        values = [with_interval(row.value, row.low, row.high) if math.isfinite(row.value) else "" for row in its]
        why = "; ".join(dict.fromkeys(row.note for row in its if row.note))
        rows.append((name, its[0].n, its[0].events, number(its[0].expected), *values, why))
    head = ("centre", "rows", "events", "expected", *found.metrics, "note")
    return Table(head, tuple(rows), "Each centre", folded=True).without_empty("note")


def _without(found: Pooled) -> Table:
    """For each metric the centre whose omission changes the mean the most."""
    rows = []
    for whole in found.table:
        rest = [one for one in found.leave_one_out if one.metric == whole.metric]
        if rest:
            most = rest[int(np.argmax([abs(one.value - whole.value) for one in rest]))]
            values = with_interval(most.value, most.low, most.high)
            rows.append((whole.metric, with_interval(whole.value, whole.low, whole.high), most.left_out, values))
    head = ("metric", "mean", "without centre", "mean without it")
    return Table(head, tuple(rows), "The centre that changes each mean the most", folded=True)


def _forest(found: Pooled, metric: str) -> Figure:
    from calibrary.plots import plot_forest

    title = called(catalogue[metric]).removeprefix("the ")
    return Figure.captioned("forest", partial(plot_forest, found, metric, caption=False), metric=capital(title))


def _curve(found: Pooled) -> Figure:
    from calibrary.plots import plot_pooled_curve

    left = "".join(f" No curve: {name}, {why}." for name, why in found.curve.left_out)
    return Figure.captioned("centres", partial(plot_pooled_curve, found, caption=False), left=left)


# -- precision ---------------------------------------------------------------------------------------


@section("precision")
def precision(context: Context) -> Section | None:
    """The widths of the intervals that shrink like 1/sqrt(rows), and about how many rows would halve them."""
    if context.p.k != 2:
        return None
    rows = [row for row in context.evaluation.rows if (row.id, row.part or "") in _PRECISE]
    widths = {
        f"{row.id}.{row.part}" if row.part else row.id: row.high - row.low
        for row in rows
        if row.low is not None and row.high is not None and 0.0 < row.high - row.low < math.inf
    }
    if not widths:
        return None
    needed = 4 * context.p.n_predictions
    size = 10 ** max(0, math.floor(math.log10(needed)) - 1)  # two leading digits are enough
    needed = math.ceil(needed / size) * size
    shown = ", ".join(f"{number(width)} for {called(catalogue[name])}" for name, width in widths.items())
    said = (
        f"Width of the {percent(context.question.confidence_level)} interval: {shown}; half of it needs about "
        f"{needed:,} {context.data.nouns}."
    )
    return Section("precision", "Precision", (said,), data={"widths": widths, "rows_for_half": needed})
