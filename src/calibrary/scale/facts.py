"""What a state knows about each metric: is its value exact, close or not to be had, and how are the rows read.

======== ===========================================================================================================
exact    linear in the confidences, or a function of bin sums whose edges are edges of cells
smooth   a smooth function of the confidences: the error falls with the square of the cell width
order    depends on the order of the rows: wrong by what one cell can hold
copies   has spans, knots, leaves or folds, which count the predictions behind the rows
counts   has folds or limits that only rows one by one can give
keys     needs a column made row by row, to be kept apart with ``by=``
sample   needs whole rows: computed on the uniform sample of a state that keeps one
detection  needs matched detections
======== ===========================================================================================================

The two numbers are the largest absolute errors measured at resolution 4800 and 76800 on six distributions of 10^6 rows
(over-confident, calibrated, heaped near 1, two decimals, rare events, atoms at 0 and 1).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrary.metrics.machinery.entry import Entry

Measured = tuple[float, float] | None


@dataclass(frozen=True)
class Fact:
    """The class of a metric and its largest measured errors at resolution 4800 and 76800."""

    kind: str
    measured: Measured = None


_EXACT: dict[str, Measured] = {
    "gsb": (5e-18, 2e-19), "mdca": (1e-16, 3e-17), "eo": (1e-15, 7e-16), "sr": (0.0, 0.0), "mae": (5e-16, 2e-16),
    "pwe": (5e-16, 2e-16), "sf1": (3e-15, 7e-15), "ece": (1e-16, 5e-17), "ice": (2e-14, 3e-15),
    "rbece": (1e-14, 6e-16), "cece": (1e-16, 2e-17), "mce": (3e-13, 1e-14), "esce": (7e-16, 1e-16),
    "wsmcs": (2e-15, 9e-16), "tcal": (5e-14, 1e-16), "hcs": (1e-16, 0.0), "wcr": (6e-14, 6e-14),
    "ece_averaged": (2e-14, 2e-14), "gce": (1e-16, 2e-17), "oe": (1e-15, 7e-16), "hinge": (5e-16, 2e-16),
    "misclassification_loss": (0.0, 0.0),
}  # fmt: skip
_SMOOTH: dict[str, Measured] = {
    "bs": (3e-9, 8e-12), "rbs": (4e-9, 1e-11), "nll": (1e-8, 4e-11), "fl": (2e-8, 5e-11), "ecd": (2e-8, 7e-11),
    "dss": (2e-7, 3e-10), "nses": (3e-7, 5e-10), "l1eps": (1e-10, 5e-13), "spiegelhalter": (3e-5, 1e-7),
    "pss": (3e-9, 9e-12), "ps": (5e-9, 2e-11), "pls": (5e-9, 2e-11), "rps": (3e-9, 8e-12), "sarps": (3e-9, 8e-12),
    "ece_lb": (3e-8, 1e-10), "sbece": (3e-9, 1e-11), "dece": (4e-9, 1e-11), "msce": (6e-10, 2e-12),
    "sece": (2e-8, 5e-11), "smece": (2e-7, 7e-10), "dkde": (2e-8, 1e-11), "bkde": (2e-10, 1e-13),
    "mmce": (3e-7, 4e-9), "lkce": (1e-7, 2e-9), "skce_uq": (1e-8, 1e-9), "skde": (8e-9, 2e-11),
    "lsece": (4e-9, 3e-11), "kccsd": (1e-8, 7e-10), "fott_beta": (8e-9, 2e-11), "cis": (3e-7, 8e-10),
    "sbct": (9e-8, 1e-10), "pws": (1e-2, 5e-5), "stratified_bs": (3e-9, 9e-12), "cal": (2e-9, 7e-12),
    "skce_b": (1e-8, 1e-9), "dual_fl": (2e-8, 6e-11), "fcl": (2e-8, 6e-11), "huber": (2e-9, 9e-12),
    "silf": (2e-9, 9e-12), "asymmetric_ls": (4e-9, 1e-11), "general_ls": (3e-9, 8e-12),
}  # fmt: skip
_ORDER: dict[str, Measured] = {
    "ace": (1e-5, 3e-6), "tace": (7e-5, 7e-6), "ece_sweep": (1e-5, 7e-6), "sice": (1e-6, 3e-7), "ce2_db": (1e-6, 8e-8),
    "ece_db": (1e-5, 5e-6), "hl": (9.0, 2.0), "tce": (6e-3, 5e-3), "calbin": (8e-8, 4e-9), "ece_knn": (3e-4, 2e-5),
    "sce": (1e-7, 3e-8), "ecce_mad": (2e-6, 9e-7), "ecce_r": (4e-6, 1e-6), "rice": (7e-8, 6e-9),
    "intce": (4e-5, 1e-5),
}  # fmt: skip
_COPIES: dict[str, Measured] = {
    "mvms": None, "ici": (6e-7, 6e-7), "ep": None, "eci": (2e-4, 5e-4), "ece_pl": None, "ece_pl3": None,
    "map_error": (6e-7, 6e-7), "e50": None, "e90": None, "emax": None,
}  # fmt: skip
_COUNTS = dict.fromkeys(("ece_fott", "ece_at_k", "avg_ece_at_l"))
_KEYS = dict.fromkeys(("eice", "piece", "pce", "proximity_bias", "consistency"))
_SAMPLE = dict.fromkeys(("skce_ul", "ls_ecoc_r", "knn_reliability"))
_DETECTION = dict.fromkeys(("average_calibration_error", "d_ece", "laece", "laace", "l1cbod", "egce", "qgc", "sgc"))

#: Metrics newer than the study of states; the others that are unknown here are judged by what their entries say.
_NEWER: dict[str, Fact] = {
    "set_coverage": Fact("exact", (4e-15, 3e-15)), "net_benefit": Fact("exact", (0.0, 0.0)),
    "atb": Fact("smooth", (9e-11, 2e-12)), "bounded_brier": Fact("smooth", (3e-9, 1e-11)),
    "bounded_log": Fact("smooth", (2e-8, 4e-11)), "calibration_e_value": Fact("smooth"),
    "decision_loss": Fact("order", (2e-5, 9e-7)), "aurc": Fact("order", (5e-8, 7e-9)),
    "e_aurc": Fact("order", (5e-8, 7e-9)), "augrc": Fact("order", (3e-8, 3e-9)), "auroc": Fact("order", (4e-6, 2e-7)),
    "rms_calibration_error": Fact("counts"), "rank_calibration_error": Fact("order", (2e-3, 2e-3)),
    "honest_error": Fact("order"),
    "lower_distance": Fact("sample"), "interval_partition_distance": Fact("sample"), "error_at_level": Fact("copies"),
}  # fmt: skip

#: Class and measured errors of every metric that is known here.
FACTS: dict[str, Fact] = {
    id: Fact(kind, measured)
    for kind, ids in (
        ("exact", _EXACT), ("smooth", _SMOOTH), ("order", _ORDER), ("copies", _COPIES), ("counts", _COUNTS),
        ("keys", _KEYS), ("sample", _SAMPLE), ("detection", _DETECTION),
    )
    for id, measured in ids.items()
} | _NEWER  # fmt: skip

#: Order metrics whose rows keep their own means: the interval of a block does not care which label comes first.
_SPLIT_ORDER = ("intce",)

_REFUSED = {
    "counts": "its folds or limits need rows one by one, and a state keeps cells of them: compute it on a sample of "
    "the rows",
    "keys": "it needs a column made row by row: make the column first and keep its values apart with by=",
    "sample": "it needs whole rows, and a state keeps sums: use a calibrary.scale.VectorState with sample=",
    "detection": "it needs matched detections: pass a Matches object or a calibrary.scale.DetectionState",
}


def fact_of(entry: Entry, options: Mapping[str, Any]) -> Fact:
    """The class of a metric with these options; bins by mass depend on the order, whatever the metric."""
    entry, rest = entry.specialized(options)
    options = rest
    fact = FACTS.get(entry.id)
    if fact is None:  # a metric of the user's, or newer than this table
        return Fact("smooth" if entry.weights == "repetition" and entry.order_free else "counts")
    if entry.id == "pce" and "groups" in options:
        return Fact("exact")
    if entry.id == "pwe" and options.get("norm", 1) != 1:
        return Fact("smooth")
    if "binning" in entry.options and fact.kind in ("exact", "smooth", "order"):
        kind = "order" if _by_rank(entry, options) else "exact" if fact.kind == "order" else fact.kind
        return fact if kind == fact.kind else Fact(kind)
    return fact


def _by_rank(entry: Entry, options: Mapping[str, Any]) -> bool:
    """Do the bins follow the order of the rows, rather than fixed edges?"""
    if entry.id == "tce":
        return True
    if options.get("edges") is not None:
        return False
    strategy = options.get("strategy")
    if strategy is not None:
        return bool(strategy != "uniform")
    return bool(options.get("binning", default(entry, "binning")) != "width")


def default(entry: Entry, option: str) -> Any:
    """The default of an option of a metric's own or of the part it hands options on to."""
    own = inspect.signature(entry.formula).parameters.get(option)
    if own is not None:
        return own.default
    return entry.extra_options.get(option) if isinstance(entry.extra_options, dict) else None


def refusal(entry: Entry, options: Mapping[str, Any]) -> str | None:
    """Why a state cannot give this metric, or None."""
    reason = _REFUSED.get(fact_of(entry, options).kind)
    return None if reason is None else f"{entry.id} cannot be computed from a state: {reason}"


def reading(entry: Entry, options: Mapping[str, Any]) -> str:
    """How the metric reads the rows of a state: "split" (each label at its mean) or "tied" (both at the cell's)."""
    reason = refusal(entry, options)
    if reason is not None:
        raise ValueError(reason)
    tied = fact_of(entry, options).kind == "order" and entry.id not in _SPLIT_ORDER
    return "tied" if tied else "split"
