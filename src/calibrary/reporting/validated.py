"""The page of a validation: corrected performance, the corrected curve, instability, and the items of TRIPOD+AI."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from calibrary._version import __version__
from calibrary.base.files import write_atomically
from calibrary.base.numbers import counted, number, percent, with_interval
from calibrary.data.asked import checks_options
from calibrary.reporting.html import section_page
from calibrary.reporting.model import Report, form
from calibrary.reporting.provenance import left_out_words
from calibrary.reporting.sections import Figure, Section, Table, section

if TYPE_CHECKING:
    from calibrary.validation import Validation
    from calibrary.validation.tripod import TripodTable

#: The reason why models are never read from a file.
_NO_PICKLE = (
    "Models are refitted from their own code or named on the command line. No model is read from a file: a pickled "
    "model is a program that runs when it is read."
)


@checks_options
def validation_page(
    validation: Validation, path: str | Path | None = None, *, thresholds: Sequence[float] = (0.5,)
) -> str:
    """A validation as one self-contained HTML page, written to a file if one is named.

    Parameters
    ----------
    validation : Validation
        What :func:`calibrary.validate` returned, or what was loaded from its file.
    path : str or Path, optional
        The file to write, whole or not at all.
    thresholds : sequence of float
        Probabilities above which someone acts: each has a sentence and a figure of classification instability.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import calibrary as cal
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = cal.validate(GaussianNB(), X, y, metrics=["bs"], n_resamples=5, rng=0)
    >>> cal.validation_page(found)[:15]
    '<!doctype html>'
    """
    parts = [_numbers(validation), *_refitted(validation, thresholds), _tripod(validation), _made(validation)]
    text = section_page(f"Validation of {validation.model}", validation.sentence, validation.notes, parts)
    if path is not None:
        write_atomically(path, text.encode())
    return text


@section("validation")
def validated(found: Validation) -> Section:
    """A validation as one section of a report."""
    parts = [_numbers(found), *_refitted(found, (0.5,))]
    sentences = (found.sentence, *found.notes, *(sentence for part in parts for sentence in part.sentences))
    tables, figures = (tuple(x for part in parts for x in getattr(part, kind)) for kind in ("tables", "figures"))
    rows = [row.to_dict() for row in found.table]
    data = {"model": found.model, "method": found.how, "rows": found.size, "metrics": rows}
    return Section("validation", "Validation of the model", sentences, tables, figures, data)


def _numbers(found: Validation) -> Section:
    head, body = found.cells()
    caption = (
        "Apparent: on the rows the model was fitted to. Training and test: means over the refits, on their own rows "
        "and on others. Corrected: what new rows of the same kind would show. The second column is the "
        "method of correction."
    )
    return Section("numbers", "Key numbers", (), (Table(tuple(head), tuple(map(tuple, body)), caption),))


def _refitted(found: Validation, thresholds: Sequence[float]) -> list[Section]:
    """The corrected curve and the instability, if there are bootstrap refits of two classes."""
    if not found.unstable:
        why = "The corrected curve and instability come from bootstrap refits of two classes, and there are none here."
        return [Section("curve", "Calibration curve and instability", (why,))]
    away = number(found.curve.mean_absolute_error)
    curve = f"Mean distance: the corrected curve lies {away} from the diagonal on average."
    said = [found.instability.sentence_at(threshold) for threshold in thresholds]
    shown = [_figure(found, "prediction"), _figure(found, "calibration")]
    shown += [_figure(found, "classification", threshold) for threshold in thresholds]
    return [
        Section("curve", "Calibration curve", (curve,), (), (_figure(found, "curve"),)),
        Section("instability", "Instability", tuple(said), (), tuple(shown)),
    ]


def _figure(found: Validation, kind: str, threshold: float = 0.5) -> Figure:
    from calibrary.plots.validation import plot_validation

    draw = partial(plot_validation, found, kind, threshold=threshold, caption=False)
    return Figure.captioned(f"validation-{kind}", draw, threshold=number(threshold))


def _tripod(found: Validation) -> Section:
    head, body = found.tripod().cells()
    caption = "The items that numbers can answer, in our words; the others of the checklist are the authors' to write."
    return Section("tripod", "TRIPOD+AI", (), (Table(tuple(head), tuple(map(tuple, body)), caption),))


def _made(found: Validation) -> Section:
    refits = counted(found.n_refits, "refit"), f"{found.n_failed:,}"
    seconds = [f"{number(cpu)} s" for cpu in (found.seconds_refitting, found.seconds_measuring)]
    names = ("model", "rows", "method", "refits", "failed refits", "CPU of refitting", "CPU of measuring", "calibrary")
    rows = zip(names, (found.model, found.size, found.how, *refits, *seconds, __version__), strict=True)
    return Section("provenance", "How this was made", (_NO_PICKLE,), (Table(("what", "value"), tuple(rows)),))


# -- a report as items of the tripod+ai checklist --------------------------------------------------


@form("tripod")
def tripod(report: Report) -> TripodTable:
    """The items that a report of predictions can answer; items about model development are "not given"."""
    from calibrary.validation.tripod import TripodTable

    shown = [f"{key.name} {with_interval(key.value, key.low, key.high)}" for key in report.short_list]
    groups = [f"{group.name}: {with_interval(group.value, group.low, group.high)}" for group in report.groups]
    level = percent(report.question.confidence_level)
    said = {section.key: section.sentences for section in report.sections}
    size = counted(report.evaluation.n, "row")
    over = said.get("centres", ())
    clusters = [
        f"performance was measured in {counted(len(groups), 'group')}" if groups else "",
        "performance in each centre was pooled by random effects (restricted maximum likelihood, Hartung-Knapp), with "
        "prediction intervals of a new centre" if over else "",
    ]  # fmt: skip
    return TripodTable.of(
        {
            "10": " ".join([f"{size}.", *said.get("precision", ())]) if "precision" in said else size,
            "11": left_out_words(report.facts),
            "12d": "; ".join(filter(None, clusters)),
            "12e": ", ".join(key.name for key in report.short_list),
            "12g": "the predictions were given; no model was refitted",
            "21": size,
            "23a": "; ".join([*shown, *groups]) + (f" (intervals: {level})" if shown else ""),
            "23b": " ".join(over),
            "24": " ".join(said.get("help", ())),
        }
    )
