"""The sections about other data: a target without labels, and groups in an order."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from calibrary.reporting.sections import Figure, Section, Table, section


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
    return Section(
        "target", "On the target", tuple(sentences), (Table(("number", "value"), tuple(found.rows())),), (), data
    )


@section("shift")
def along_groups(found: Any) -> Section:
    """The metric in ordered groups, if a column of them was given."""
    head, rows = found.table()
    figure = Figure(
        "Along the groups",
        "The metric in each group. A vertical line is the interval of a single group; the band contains the true "
        "values of all groups at once.",
        partial(found.plot, caption=False),
    )
    return Section(
        "shift", "Along the groups", (found.sentence,), (Table(head, tuple(rows)),), (figure,), found.to_dict()
    )
