"""The sections about ensembles and about rows that belong to no class."""

from __future__ import annotations

from functools import partial
from typing import Any

from calibrary.base.numbers import ends, number, percent, pvalue_cell, with_interval
from calibrary.reporting.sections import Figure, Section, Table, section

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
    figures: tuple[Figure, ...] = ()
    if len(found.spread.groups):
        figures = (
            Figure(
                "Claimed and true spread",
                "True variance against claimed variance in groups of rows by claimed variance, with intervals; the "
                "diamond is the mean. On the diagonal the claim is right; above it the members claim too little.",
                partial(found.plot, caption=False),
            ),
        )
    data = {"kind": found.kind, "n": found.n, "n_members": found.n_members, "answers": _plain(found)}
    return Section("ensemble", "Members of the ensemble", sentences, tuple(tables), figures, data)


def _members(found: Any) -> Table:
    rows = tuple(
        (f"member {row.member}", number(row.error), with_interval(row.slope, row.slope_low, row.slope_high),
         number(row.log_loss), pvalue_cell(row.pvalue))
        for row in found.members.rows[:_MOST_MEMBERS]
    )  # fmt: skip
    more = len(found.members.rows) - len(rows)
    caption = "Each member by itself" + (f"; {more} more are not shown" if more > 0 else "")
    return Table(("member", "ECE", "slope", "log loss", "p"), rows, caption, folded=True)


def _plain(found: Any) -> dict[str, Any]:
    """The numbers of the five questions about an ensemble."""
    names = ("mean", "members", "mixture", "spread", "decomposition")
    each = {name: getattr(found, name) for name in names}
    return {
        name: {"estimate": x.estimate, "low": x.low, "high": x.high, "pvalue": x.pvalue, "sentence": str(x.sentence)}
        for name, x in each.items()
    }


@section("outside")
def outside(found: Any) -> Section:
    """The model's confidence on rows that belong to no class, if there are any."""
    rows = [
        ("confidence outside", _with(found.outside_confidence), f"{found.n_outside:,} rows"),
        ("confidence inside", _with(found.inside_confidence), f"{found.n:,} rows"),
        ("AUROC of confidence", _with(found.detector), "0.5: no better than chance"),
        ("share of rows outside that pass", f"{percent(found.detector.fpr)} ({percent(found.detector.fpr_low)} to "
         f"{percent(found.detector.fpr_high)})", "at the threshold that keeps 95% of the rows inside"),
        ("detection error", with_interval(found.detector.error, found.detector.error_low, found.detector.error_high),
         "at the best threshold"),
        ("open-set calibration error", _with(found.open_set_error), f"{percent(found.prevalence_outside)} outside"),
        ("calibration error inside", _with(found.closed_error), ""),
        ("selective risk (AURC)", _with(found.selective_risk), f"inside: {number(found.closed_risk.estimate)}"),
    ]  # fmt: skip
    rows += [(f"AUROC of {score.name}", _with(score), "") for score in found.scores]
    table = Table(("number", "value (interval)", "about"), tuple(rows))
    data = {
        "n_outside": found.n_outside, "prevalence": found.prevalence_outside,
        "auroc": found.detector.estimate, "fpr": found.detector.fpr, "open_set_error": found.open_set_error.estimate,
        "intervals": {"auroc": ends(found.detector.low, found.detector.high)},
    }  # fmt: skip
    title = "Rows that belong to no class"
    return Section(
        "outside", title, (found.sentence, "The rest of this page is about the rows inside."), (table,), (), data
    )


def _with(x: Any) -> str:
    return with_interval(x.estimate, x.low, x.high)
