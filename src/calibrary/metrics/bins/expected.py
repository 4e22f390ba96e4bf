"""ECE, and the metrics that differ from ECE only in how they weight the bins (rows 23-28, 30, 31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of, undefined, warn, whole
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, column, inner
from calibrary.data.views import Views
from calibrary.grouping import EqualWidth, Grouping, group
from calibrary.metrics.bins.bin_options import BINNING, BinnedKeywords, Bins, class_norm, range_of_distance
from calibrary.metrics.bins.gap_forms import direct_error, gaps_of_cells, gaps_of_replicates
from calibrary.metrics.bins.interval import cumulative_residual, of_sums_below
from calibrary.metrics.machinery.declare import Alias, CellFacts, Common, Correction, metric
from calibrary.metrics.machinery.forms import ReplicateForm, Value
from calibrary.metrics.machinery.literature import cited

_BIASED = (
    "The value grows with the number of bins and falls with N, so even a calibrated model does not show "
    "0. calibrary.study.expected_by_chance gives the value expected by chance."
)


#: Names of the expected calibration error. Most of these names imply a setting: the bins, the norm, or which part of
#: the prediction is judged (the lens).
_NAMES = (
    "estimated calibration error", "empirical calibration error", "mean absolute calibration error", "lp-ECE",
    "lp calibration error", "CE", "mean calibration error", "estimated CE", "empirical CE", "mean absolute CE",
    *(Alias(n, binning="width") for n in ("ECE-EW", "equal-width ECE", "width binning")),
    *(Alias(n, binning="area") for n in ("ECE-EA", "equal-area ECE", "equiareal ECE")),
    Alias("l1-ECE", norm=1),
    *(Alias(n, norm=2) for n in ("l2-ECE", "RMSCE", "root mean-square calibration error", "plugin estimator", "PL")),
    Alias("binary-ECE", lens="binary"),
    Alias("multiclass-ECE", lens="full"),
    *(Alias(n, lens="top-label") for n in (
        "confidence-ECE", "top-label ECE", "top-label calibration error", "top-label classification error",
    )),
    *(Alias(n, lens="class-wise") for n in (
        "CWCE", "CECE", "class-wise ECE", "class-wise calibration error", "static calibration error", "SCE",
        "marginal calibration error", "marginal classification error", "marginal CE",
    )),
    *(Alias(n, lens="class-wise", average="uniform") for n in ("MSECE", "macro subset ECE")),
    *(Alias(n, lens="class-wise", average="prevalence") for n in (
        "WSECE", "weighted subset ECE", "weighted subset expected calibration error",
    )),
    Alias("class-stratified ECE", lens="class-wise", average=None),
)  # fmt: skip


@metric(
    "ece",
    advised={"rank": "5.10: it is second best with 15 bins of equal mass, binning='mass'"},
    spoken="ECE",
    sound=False,
    complete=False,
    familiar=True,

    family="bin",
    row=23,
    fractional="binary",
    aliases=_NAMES,
    range_note="the range is [0, 1]; with lens='full' it is [0, 2] for distance='l1' and [0, sqrt 2] for "
        "distance='l2'",
    range_with=range_of_distance,
    lenses=ALL_LENSES,
    extra_options=BINNING,
    combine=class_norm(1),
    residual_only=True,
    cells=CellFacts("exact", (1e-16, 5e-17), absolute_gaps=True),
    direct=direct_error,
    replicate=gaps_of_replicates(1.0),
    inverted_in_tables=True,
    cell_value=gaps_of_cells(1.0),
    cost="O(N)",
    equation="(28); in 4.3 and 4.4 (29)-(34)",
    references=cited("naeini2015", "guo2017", "kumar2019"),
    use="This is the error that most papers report: the average gap between confidence and accuracy. Always report "
    "the bins with the value.",
    avoid=_BIASED,
    corrections=(
        Correction(
            "names",
            "the top-label and the marginal error are called 'classification error', the norm is written 'l = "
        "1', and MCE denotes both (34) and (39)",
            "Kumar et al. write 'calibration error', the norm is p = 1, and MCE denotes only the maximum (39)",
        ),
        Correction(
            "(34)",
            "the 1/p root is taken for each class, and the roots are averaged",
            "Kumar et al. average CE_k^p over classes and then take the root; this is the default, and "
            "aggregate='mean' is (34) as printed. The two agree for p = 1",
        ),
        Correction("p", "p = 1 is standard", "the code of Roelofs and of Kumar has the default 2; the default here is "
        "1 everywhere"),
        Correction(
            "synonyms",
            "CWCE, SCE and MSECE are the same",
            "CWCE and SCE are one-vs-rest; public code for MSECE uses the rows whose true label is k, which is "
            "lens='true-class' and is not 0 for a calibrated model",
        ),
        Correction(
            "area",
            "the error is the absolute area between the curve and the diagonal",
            "the error is the gap weighted by mass, which is that area only if confidences are uniform",
        ),
    ),
)  # fmt: skip
def expected_calibration_error(
    view: Predictions,
    *,
    norm: float | str = 1,
    aggregate: str = "power",
    distance: str = "tv",
    **options: Unpack[BinnedKeywords],
) -> float:
    r"""Average gap between confidence and accuracy over confidence bins.

    .. math:: \Big(\sum_b p_b\, |\bar y_b - \bar c_b|^p\Big)^{1/p}

    :math:`p_b` is the bin's share of the weight, :math:`\bar y_b` its mean label and :math:`\bar c_b` its mean
    confidence (never its midpoint). Equal-width edges are k/B exactly and bins are right-closed; confidences are
    converted to float64 first, so that a float32 0.3 is 0.30000001 and lies above the edge 0.3.

    Parameters
    ----------
    norm : float or "l1", "l2", "max"
        Order p of the norm: 2 gives RMSCE, infinity the maximum calibration error.
    aggregate : "power" or "mean"
        How the values of the classes are combined: by the same norm, or by the plain mean. The two agree for
        ``norm=1``.
    distance : "tv", "l1" or "l2"
        Distance between whole probability vectors (``lens="full"``, where groups are tuples of bins): half the sum of
        absolute differences, the sum, or the Euclidean distance.

    Notes
    -----
    For an (N, 2) array the value is that of the second column. With ``lens="top-label"`` two classes are judged by
    max(c, 1-c) instead, which gives another value. With ``lens="class-wise"`` this is the class-wise (static) ECE;
    ``average="prevalence"`` weighs classes by size, ``average=None`` gives one value per class.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1, 1, 0], [0.1, 0.15, 0.8, 0.9, 0.95, 0.9]
    >>> round(cal.expected_calibration_error(y, p, n_bins=10), 4)
    0.2167
    >>> round(cal.expected_calibration_error(y, p, n_bins=2, norm=2), 4)
    0.1335
    """
    return group(view, **options).gap_norm(norm, distance)


@metric(
    "mce",
    sound=False,
    complete=False,
    worst_case=True,
    familiar=True,
    family="bin",
    row=31,
    fractional="binary",
    aliases=(
        "l-infinity calibration error",
        "Chebyshev calibration error",
        "l_inf",
        "Chebyshev",
        "Chebyshev norm",
    ),
    homonyms={
        "MCE": "the marginal error over classes: use 'marginal classification error' (ece with lens='class-wise')"
    },
    range_note="the range is [0, 1]; with lens='full' it is [0, 2] for distance='l1' and [0, sqrt 2] for distance='l2'",
    range_with=range_of_distance,
    lenses=ALL_LENSES,
    extra_options=BINNING,
    combine=class_norm(np.inf),
    residual_only=True,
    cells=CellFacts("exact", (3e-13, 1e-14)),
    replicate=gaps_of_replicates(np.inf),
    inverted_in_tables=True,
    cell_value=gaps_of_cells(np.inf),
    cost="O(N)",
    equation="(39)",
    references=cited("naeini2015"),
    use="Use this error for the worst case: it shows the gap at the confidence level that is most wrong, when every "
    "level matters.",
    avoid="Do not rank models by this error: in the study it ordered little more than half of the pairs of models "
    "correctly, and it detects nothing where events are rare. The value depends on the smallest bins: a single wrong "
    "row in a bin of its own gives a value of up to 1. Use few bins or bins of equal mass.",
    corrections=(Correction("name", "MCE also denotes the marginal error (34)", "MCE denotes only the maximum (39)"),),
)
def maximum_calibration_error(view: Predictions, *, distance: str = "tv", **options: Unpack[BinnedKeywords]) -> float:
    r"""Largest gap between confidence and accuracy in any confidence bin.

    .. math:: \max_b |\bar y_b - \bar c_b|

    The maximum is over non-empty bins, and with several classes also over classes.

    Parameters
    ----------
    distance : "tv", "l1" or "l2"
        As in :func:`expected_calibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.maximum_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=5), 4)
    0.4
    """
    return group(view, **options).gap_norm(np.inf, distance)


@metric(
    "ace",
    advised={"label noise": "4.5: its inventors prefer it to ECE, and it is relatively robust to label noise"},
    sound=False,
    complete=False,
    imbalance="keeps",
    label_noise="robust",
    familiar=True,
    family="bin",
    row=24,
    fractional="binary",
    aliases=(
        Alias("ECE-EM", binning="mass"),
        Alias("equal-mass ECE", binning="mass"),
        Alias("equal-mass calibration error", binning="mass"),
        Alias("quantile binning", binning="mass"),
        Alias("frequency binning", binning="mass"),
    ),
    default_lens="class-wise",
    extra_options=BINNING,
    combine=class_norm(1),
    residual_only=True,
    cells=CellFacts("order", (1e-5, 3e-6), absolute_gaps=True),
    cell_value=gaps_of_cells(1.0, "mass"),
    stacks="weights",
    cost="O(N log N)",
    equation="in words",
    references=cited("nixon2019"),
    use="Use this error instead of ECE where many confidences lie close together: every bin has the same number of "
    "rows, so every gap is estimated equally well. Its inventors recommend it in general, and TACE above 100 classes.",
    avoid=_BIASED,
)
def adaptive_calibration_error(
    view: Predictions,
    *,
    binning: str | Grouping = "mass",
    norm: float | str = 1,
    aggregate: str = "power",
    **options: Unpack[Bins],
) -> float:
    r"""Average gap between confidence and accuracy over bins of equal mass.

    .. math:: \frac1K \sum_k \sum_r p_{kr}\, |\bar y_{kr} - \bar c_{kr}|

    Parameters
    ----------
    norm : float or "l1", "l2", "max"
    aggregate : "power" or "mean"
        As in :func:`expected_calibration_error`.

    Notes
    -----
    A bin's weight is its share of the rows; the inventors' weight 1/R is the same if the R bins have exactly equal
    size. The inventors' code corresponds to ``mass_rule="round", n_bins=30`` and drops probabilities that are exactly 0
    (the value then equals :func:`thresholded_adaptive_calibration_error` with ``threshold=0``).

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.adaptive_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2), 4)
    0.225
    """
    return group(view, binning, **options).gap_norm(norm)


@metric(
    "tace",
    advised={"many classes": "4.5: its inventors recommend it above 100 classes"},
    sound=False,
    complete=False,
    imbalance="keeps",
    label_noise="robust",
    many_classes="made",
    family="bin",
    row=25,
    fractional="binary",
    aliases=("thresholded ACE", "TACE"),
    default_lens="class-wise",
    extra_options=BINNING,
    combine=class_norm(1),
    cells=CellFacts("order", (7e-5, 7e-6), absolute_gaps=True),
    stacks="weights",
    cost="O(N log N)",
    equation="in words",
    references=cited("nixon2019"),
    use="Use this error instead of ACE with many classes (its inventors say above 100), where most probabilities are "
    "tiny and would hide the errors of the others.",
    avoid="The threshold decides which probabilities count. Some other packages set small values to 0 instead of "
    "dropping them, which gives a different value.",
)
def thresholded_adaptive_calibration_error(
    view: Predictions,
    *,
    threshold: float = 0.01,
    binning: str | Grouping = "mass",
    norm: float | str = 1,
    aggregate: str = "power",
    **options: Unpack[Bins],
) -> float:
    r"""Average gap between confidence and accuracy over equal-mass bins of the confidences above a threshold.

    Rows with :math:`c \le` ``threshold`` are left out, shares are relative to the remaining rows, and a class without
    remaining rows counts as 0 in the average over classes.

    Parameters
    ----------
    threshold : float
        Only confidences strictly above this number are used.
    norm : float or "l1", "l2", "max"
    aggregate : "power" or "mean"
        As in :func:`expected_calibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1], [0.005, 0.3, 0.6, 0.9]
    >>> round(cal.thresholded_adaptive_calibration_error(y, p, n_bins=3), 4)
    0.2667
    """
    if not 0.0 <= threshold < 1.0:
        raise RefusedError(f"threshold={threshold!r} must be at least 0 and below 1")
    kept = view.c > threshold
    if not kept.any():
        warn(
            f"no confidence is above threshold={threshold:g}, so the value 0 means that no row was judged, not that "
            "the model is calibrated: lower the threshold"
        )
        return 0.0
    above = view if kept.all() else view.where(kept)
    return group(above, binning, **options).gap_norm(norm)


@metric(
    "ice",
    sound=False,
    complete=False,
    imbalance="made",
    family="bin",
    row=26,
    fractional="binary",
    aliases=("imbalanced ECE", "ICE"),
    homonyms={"ICE": "the interval calibration error, which is 'intce' here; its surrogate is 'sice'"},
    extra_options=BINNING,
    cells=CellFacts("exact", (2e-14, 3e-15), class_shares_unless="alpha"),
    stacks="weights",
    cost="O(N)",
    equation="(35)",
    references=cited("guilbert2024"),
    use="Use this error for imbalanced data, where the many rows of low confidence would hide the gaps of the rare "
    "class.",
    avoid="Small bins have more weight than in ECE, so the value is noisier. This is not the interval calibration "
    "error, which is also called ICE.",
)
def imbalanced_calibration_error(
    view: Predictions, *, alpha: float | None = None, **options: Unpack[BinnedKeywords]
) -> float:
    r"""Average gap over bins, with bin weights that are the more equal the more imbalanced the classes are.

    .. math:: \frac{\sum_b p_b^\alpha\, |\bar y_b - \bar c_b|}{\sum_b p_b^\alpha},\qquad
        \alpha = -\frac{\sum_k g_k \log g_k}{\log K}

    Here :math:`g_k` are the class shares: :math:`\alpha = 1` (balanced classes) gives ECE, :math:`\alpha = 0` (one
    class) the plain mean over non-empty bins.

    Parameters
    ----------
    alpha : float, optional
        Exponent in place of the normalised entropy; the inventors also use 2 g_1 and 0.5 + g_1.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.imbalanced_calibration_error([0, 0, 0, 1], [0.1, 0.2, 0.1, 0.6], n_bins=2), 4)
    0.2109
    """
    groups = group(view, **options)
    if alpha is None:
        if view.seen_through == "top-label":
            view.refuse_stack("the share of each class")
        labeled = view.origin if view.seen_through == "top-label" and view.origin is not None else view
        alpha = column(_normalized_entropy(labeled.class_share))
    weight = np.where(groups.weight > 0.0, groups.share**alpha, 0.0)
    return as_number(inner(weight, np.abs(groups.gap)) / weight.sum(axis=-1))


def _normalized_entropy(share: Array) -> Any:
    return -inner(share, np.log(np.where(share > 0.0, share, 1.0))) / np.log(share.shape[-1])


@metric(
    "rbece",
    imbalance="made",
    family="bin",
    row=27,
    aliases=(
        "region-balanced ECE",
        "RBECE",
    ),
    extra_options=BINNING,
    weights="rows",
    weights_note="min_count counts rows, not weight",
    cells=CellFacts("exact", (1e-14, 6e-16)),
    stacks="labels",
    cost="O(N)",
    equation="(36)",
    references=cited("dawkins2022"),
    use="Use this error for imbalanced data: every bin with at least min_count rows has the same weight, whatever its "
    "number of rows.",
    avoid="Bins with few rows are noisy, and the value is NaN if no bin has min_count rows. With min_count=1 the "
    "value is netcal's average error.",
)
def region_balanced_calibration_error(
    view: Predictions, *, min_count: int = 10, **options: Unpack[BinnedKeywords]
) -> float:
    r"""Plain mean of the gaps of the bins that have enough rows.

    .. math:: \frac{1}{|\mathcal B|} \sum_{b \in \mathcal B} |\bar y_b - \bar c_b|,\qquad
        \mathcal B = \{b : n_b \ge n_{\min}\}

    Parameters
    ----------
    min_count : int
        Number of rows that a bin must have to be included. The value is undefined (NaN) if there is no such bin.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]
    >>> round(cal.region_balanced_calibration_error(y, p, n_bins=2, min_count=2), 4)
    0.225
    """
    groups = group(view, **options)
    held = groups.weight if view.counted else groups.count
    eligible = held >= whole("min_count", min_count)
    if not eligible.any():
        return undefined(
            f"no bin has min_count={min_count} rows (the fullest has {held.max():g}): lower min_count or use wider bins"
        )
    return as_number(np.abs(groups.gap[..., eligible]).mean(axis=-1))


@metric(
    "ece_lb",
    sound=True,
    complete=False,
    family="bin",
    row=28,
    fractional="binary",
    aliases=(
        "ECE-LB",
        "label-binned ECE",
    ),
    extra_options=BINNING,
    combine=class_norm(1),
    cells=CellFacts("smooth", (3e-8, 1e-10)),
    stacks="weights",
    cost="O(N)",
    equation="(37)",
    references=cited("roelofs2022"),
    use="Use this metric to measure the error of the binned calibration map at every prediction, so that "
    "errors within a bin do not cancel.",
    avoid="The value is not 0 for a perfect model unless bins are narrow: the spread of confidences within a bin adds "
    "to it.",
    corrections=(
        Correction(
            "p",
            "the norm has any p",
            "the default norm is p = 1; the authors' code uses 2, and its class-wise version omits the factor 1/K",
        ),
    ),
)
def label_binned_calibration_error(
    view: Predictions,
    *,
    norm: float | str = 1,
    aggregate: str = "power",
    **options: Unpack[BinnedKeywords],
) -> float:
    r"""Average distance of each confidence from the accuracy of its bin.

    .. math:: \Big(\frac1N \sum_i |\bar y_{b(i)} - c_i|^p\Big)^{1/p}

    The value is never below the ECE with the same bins and norm.

    Parameters
    ----------
    norm : float or "l1", "l2", "max"
    aggregate : "power" or "mean"
        As in :func:`expected_calibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.label_binned_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2), 4)
    0.225
    """
    return group(view, **options).label_norm(norm)


def _contraharmonic(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> float:
    errors, weights = np.array(values), views.weights(average)
    total = float(np.dot(weights, errors))
    return 0.0 if total == 0.0 else float(np.dot(weights, errors**2)) / total


@metric(
    "cece",
    family="bin",
    row=30,
    fractional="binary",
    aliases=(
        "contraharmonic ECE",
        "contraharmonic expected calibration error",
    ),
    default_lens="class-wise",
    extra_options=BINNING,
    combine=_contraharmonic,
    residual_only=True,
    cells=CellFacts("exact", (1e-16, 2e-17), absolute_gaps=True),
    stacks="weights",
    cost="O(NK)",
    equation="(38)",
    references=cited("obadinma2021"),
    use="Use this error as one number for several classes that gives more weight to the badly calibrated classes "
    "without being a maximum.",
    avoid=_BIASED,
    corrections=(
        Correction(
            "terms",
            "the review attributes the terms of MSECE to CWCE",
            "the default is class-wise (34); lens='true-class' gives the definition of public code, over the rows of "
            "one true class",
        ),
    ),
)
def contraharmonic_calibration_error(
    view: Predictions, *, norm: float | str = 1, **options: Unpack[BinnedKeywords]
) -> float:
    r"""Class-wise ECE averaged over classes, where each class's weight is its own error.

    .. math:: \frac{\sum_k \mathrm{ECE}_k^2}{\sum_k \mathrm{ECE}_k}

    The value lies between the mean and the maximum of the classes' errors, and is 0 if all of them are 0. For two
    classes the value is the ECE.

    Parameters
    ----------
    norm : float or "l1", "l2", "max"
        Norm of each class's ECE.

    Examples
    --------
    >>> import calibrary as cal
    >>> y = [0, 1, 2, 2]
    >>> p = [[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6]]
    >>> round(cal.contraharmonic_calibration_error(y, p, n_bins=5), 4)
    0.2703
    """
    return group(view, **options).gap_norm(norm)


#: Bin widths of Verhaeghe et al. [78]: 0.005 to 0.05; the step between them is our choice.
WIDTHS = tuple(i / 200 for i in range(1, 11))


def _edges_of_widths(options: Mapping[str, Any]) -> Array:
    """All edges of the bins of all widths, merged and sorted."""
    widths = options.get("widths", WIDTHS)
    return np.concatenate([np.round(np.arange(1, int(1.0 / h + 1e-9) + 1) * h, 12) for h in widths])


def _of_all_widths() -> ReplicateForm:
    """The error for every width: bins of every width are consecutive rows in the same ascending order."""

    def prepare(view: Predictions, *, widths: Sequence[float] = WIDTHS, closed: str = "right") -> Value | None:
        if not view.ascending or not len(widths):
            return None
        side: Any = "right" if closed == "right" else "left"
        cuts = [view.c.searchsorted(_cuts_of_width(float(h)), side=side) for h in widths]
        first = np.concatenate([np.concatenate(([0], each)) for each in cuts])
        last = np.concatenate([np.concatenate((each, [view.n])) for each in cuts])
        used = last > first
        first, last = first[used], last[used]

        def error(below: Array, total: Any) -> Array:
            inside = below.take(last, axis=0) - below.take(first, axis=0)
            mean: Array = np.abs(inside).sum(axis=0) / (len(widths) * total)
            return mean

        return of_sums_below(error, view)

    return ReplicateForm(prepare)


@metric(
    "ece_averaged",
    section="4.8",
    family="bin",
    fractional="binary",
    aliases=("averaged ECE", "bin-size averaged ECE"),
    residual_only=True,
    cells=CellFacts("exact", (2e-14, 2e-14), edges=_edges_of_widths),
    replicate=_of_all_widths(),
    reads_cells=True,
    cost="O(N log N)",
    equation="in words",
    references=cited("verhaeghe2023"),
    use="Use this error in place of ECE to avoid an arbitrary number of bins: it is the mean of ECE over many bin "
    "widths.",
    avoid=_BIASED,
)
def averaged_calibration_error(
    view: Predictions, *, widths: Sequence[float] = WIDTHS, closed: str = "right", **common: Unpack[Common]
) -> float:
    r"""ECE averaged over equal-width bins of several widths.

    Parameters
    ----------
    widths : sequence of float
        Bin widths; a last bin that would reach beyond 1 ends at 1.
    closed : "right" or "left"

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.averaged_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], widths=[0.1, 0.5]), 4)
    0.225
    """
    if not len(widths):
        raise RefusedError("widths is empty: pass at least one bin width")
    one_of("closed", closed, ("right", "left"))
    c, below = view.sorted.c, cumulative_residual(view)
    errors = []
    for h in widths:
        starts = c.searchsorted(_cuts_of_width(float(h)), side="right" if closed == "right" else "left")
        errors.append(np.abs(np.diff(below[starts], prepend=0.0, append=below[-1])).sum() / view.total)
    return float(np.mean(errors))


def _cuts_of_width(h: float) -> Array:
    if not 0.0 < h <= 1.0:
        raise RefusedError(f"widths contains {h!r}: a bin width must be above 0 and at most 1")
    n = round(1.0 / h)
    if abs(1.0 / h - n) <= 1e-9:
        return EqualWidth(n).inner_edges()
    # rounded, because 11 * 0.03 is 0.32999999999999996, and an edge there would cut off the confidences at 0.33
    cuts = np.round(np.arange(1, int(1.0 / h) + 1) * h, 12)
    return cuts[cuts < 1.0]
