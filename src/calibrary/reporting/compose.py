"""From predictions to a report: evidence of miscalibration, its size, direction and place, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from calibrary.base.claims import Sentence
from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.base.numbers import percent
from calibrary.data import Data, as_data
from calibrary.data.columns import takes_table
from calibrary.data.identity import IdentifiedRows, refuse_misaligned, rows_of_result
from calibrary.data.predictions import Predictions
from calibrary.evaluation import evaluate_data
from calibrary.grouping import automatic_bins
from calibrary.inference import Comparison, adjust_pvalues, compare, decide
from calibrary.inference.draw.waiting import WATCHED, progress_of
from calibrary.inference.overall.decision import headline_view
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.measure import automatic
from calibrary.numerics.draw import seed_of
from calibrary.question import Question
from calibrary.reporting import words
from calibrary.reporting.affected import class_rows_of, group_rows_of, miscalibrated_segments
from calibrary.reporting.agreement import one_truth
from calibrary.reporting.compared import best_of
from calibrary.reporting.figures import curve_of, figures_of
from calibrary.reporting.live import live_of
from calibrary.reporting.model import Report
from calibrary.reporting.other_data import CAUTION, over_centres, sampled_headline, sampled_verdict
from calibrary.reporting.provenance import facts_of, versions
from calibrary.reporting.sections import Context, made
from calibrary.reporting.settings import ReportSettings, takes_settings
from calibrary.reporting.short import short_list
from calibrary.reporting.verdict import page_verdict, status_of, tolerance_of


@takes_table
@takes_settings
def report(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
    percent: bool = False,
    rescale: bool = False,
    settings: ReportSettings | None = None,
    progress: bool | None = None,
    **keywords: Any,
) -> Report:
    """A report on the calibration of these predicted probabilities: evidence, size, direction, place and remedy.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label, percent, rescale
        As in :func:`calibrary.predictions`; a ``Matches`` object works too.
    settings : ReportSettings, optional
        All that follows in one object, for many reports; a keyword beside it changes that setting alone.
    progress : bool, optional
        ``False`` shows no progress. Default: after two seconds, in a terminal or a notebook.
    ...
    **inputs
        Options of metrics and inputs that some of them need (``features``, ``norm``, ...), and settings that are
        rarely needed, ``average``, ``r``, ``ordinal``, ``weight_type`` and ``blocks``, which
        :class:`calibrary.ReportSettings` explains.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> answer = cal.report(y, p, metrics=["ece", "bs"], n_resamples=99)
    >>> answer.headline.startswith("Not calibrated (overall test, p < 0.005)")
    True
    """
    chosen = ReportSettings.of(settings, keywords)
    if "source" not in chosen.about:
        named = {"label": getattr(y_true, "name", None), "probability": getattr(y_prob, "name", None)}
        known = {role: name for role, name in named.items() if isinstance(name, str)}
        chosen = chosen.with_about(source={"columns": known} if known else None)
    given = {"sample_weight": sample_weight, "labels": labels, "pos_label": pos_label, "percent": percent}
    given["rescale"] = rescale
    data = as_data(y_true, y_prob, given).in_units(chosen.units, chosen.blocks).at_times(chosen.time)
    refuse_misaligned(y_true=data, by=chosen.by, centre=chosen.centre)
    chosen = _about_these_rows(chosen, IdentifiedRows.of(y_true, y_prob))
    with progress_of("report", progress):
        return composed(data, chosen)


def _about_these_rows(settings: ReportSettings, page: IdentifiedRows | None) -> ReportSettings:
    """The settings, unless a result in ``sections`` is about other rows; notes say how imputed ones are the same."""
    notes = list(settings.about.get("notes", ()))
    for place, result in enumerate(settings.sections):
        rows = rows_of_result(result)
        if type(result).__name__ == "Validation" and page is not None and result.n != page.n:
            if not result.imputations or page.n != result.n * result.imputations:
                raise RefusedError(
                    f"sections[{place}] is a validation on {result.n:,} rows and the page is about {page.n:,}: report "
                    "the rows to which the model was fitted, or give the validation a page of its own (validation_page)"
                )
            notes.append(
                f"The validation is about {result.n:,} rows in {result.imputations} completed data sets: the "
                f"{page.n:,} rows of this page."
            )
        elif page is not None and rows is not None:
            page.refuse_unless(rows, f"sections[{place}]")
    return settings.with_about(notes=notes) if settings.sections else settings


def composed(data: Data, settings: ReportSettings) -> Report:
    """The report of data that were checked before and that contain their units and times."""
    p = data.read_as("predictions", "report")
    primary, draws, question = catalogue[settings.primary].key, settings.draws, settings.question
    view, _ = headline_view(p, question)
    if automatic(question.options):  # one number for headline, table and figures
        question = question.with_options(n_bins=automatic_bins(view.c, view.w))
    centres = over_centres(p, settings.centre, question.confidence_level)
    metrics = [settings.metrics] if isinstance(settings.metrics, str) else settings.metrics
    evaluation = evaluate_data(
        data, question, metrics=None if metrics is None else [*metrics, primary], ordinal=settings.ordinal,
        intervals=draws > 0, tests=draws > 0, primary=primary,
    )  # fmt: skip
    decision = decide(data, question) if draws > 0 else None
    evaluation = one_truth(evaluation, decision, data, question)
    results = settings.sections if centres is None else (*settings.sections, centres)
    context = Context(data, question, evaluation, draws, settings, decision, results)
    tolerance = tolerance_of(settings.tolerance, data)
    context.kept["miscalibrated"] = segments = miscalibrated_segments(context)
    page = page_verdict(data, question, evaluation, decision, tolerance, segments)
    sampled, about = settings.result("sampled"), settings.about
    if sampled is not None:
        page = sampled_verdict(sampled, tolerance)
        answer = words.Answer(sampled_headline(sampled, page), (Sentence(CAUTION),))
    else:
        answer = words.answer(data, question, evaluation.row(primary), decision, evaluation, page)
    verdict = "" if page is None else page.value
    numbers = short_list(data, question, evaluation, primary, decision)
    title, summary = about.get("title", "Calibration report"), _summary(p, view)
    made_by = _settings(primary, question, draws, metrics)
    table = (evaluation, primary, summary, made_by, data, question)
    notes = (*about.get("notes", ()), *([_UNITS] if data.in_groups else []))
    short = tuple(replace(k, status=status_of(k.verdict, verdict)) for k in numbers)
    said: dict[str, Any] = {"decision": decision, "about": settings.signed, "verdict": verdict, "tolerance": tolerance}
    facts = facts_of(data, view, about.get("source"))
    found = Report(
        title, answer.headline, answer.statements, *table, notes=notes, short_list=short, facts=facts, **said
    )
    tell = ANSWERED.get()
    if tell is not None:
        tell(found)
    sections = made(context)
    parts: dict[str, Any] = {"classes": class_rows_of(sections), "groups": group_rows_of(sections, "group")}
    parts |= {"sections": sections, "figures": figures_of(data.one_by_one(), question, evaluation, settings.axis)}
    return replace(found, **parts, curve=curve_of(view, settings.axis), live=live_of(context))


#: Functions that receive the headline and the short list as soon as they are known, before the rest of the report.
ANSWERED: ContextVar[Callable[[Report], None] | None] = ContextVar("ANSWERED", default=None)

#: No p-value from the normal approximation is smaller: further out the approximation is not known to hold.
_SMALLEST = 1e-6

_UNITS = (
    "Units, with all their rows, were resampled for the overall test, the intervals and tests of the tables, and the "
    "comparison of models; only metrics of residuals have such a test. Single segments, centres and periods treat "
    "rows as independent."
)


def _summary(p: Predictions, view: Predictions) -> dict[str, Any]:
    share = p.class_share
    summary: dict[str, Any] = {
        "rows": p.n_predictions,
        "classes": p.k,
        "total weight": float(p.class_counts.sum()),
        "mean confidence": float(view.mean(view.c)),
        "observed frequency" if p.k == 2 else "accuracy": float(view.mean(view.y)),
        "distinct confidences": len(view.ties.c),
        "confidences exactly 0 or 1": int(((view.c == 0) | (view.c == 1)).sum()),
        "rarest class": f"{p.classes[int(share.argmin())]} ({percent(share.min())})",
    }
    if p.w is None:
        del summary["total weight"]
    return summary


def _settings(primary: str, question: Question, draws: int, metrics: Any) -> dict[str, Any]:
    return {
        "primary": primary,
        "lens": str(getattr(question.lens, "name", question.lens)),
        "metrics": "all that apply" if metrics is None else list(metrics),
        "n_bins": question.options.get("n_bins", "each metric's own"),
        "n_resamples": draws,
        "confidence_level": question.confidence_level,
        "seed": question.rng,
        **versions(),
    }


def compare_models(
    y_true: Any,
    models: Mapping[str, Any],
    *,
    metrics: tuple[str, ...],
    n_resamples: int,
    rng: Any,
    reference: str | None = None,
    outcomes: Mapping[str, Any] | None = None,
    n_bins: int | str | None = None,
    **options: Any,
) -> tuple[tuple[str, Comparison], ...]:
    """Pairs of models by every metric given, as (metric, comparison); p-values adjusted by Holm over them all.

    Every pair, the model named first minus the one named later; or each other model minus the ``reference``, which may
    be the best of these rows: p-values are adjusted for all pairs that could have been chosen. ``outcomes`` are the
    models' own labels of the same questions, such as whether each model's answer is right; without them ``y_true``
    holds for all. A p-value at its smallest possible value for these draws is replaced by that of the normal
    distribution with the same interval; otherwise no comparison could be significant after adjustment.
    """
    pairs = combinations(models, 2) if reference is None else ((m, reference) for m in models if m != reference)
    seed = seed_of(rng)
    found: list[tuple[str, Comparison]] = []
    wanted = list(product(pairs, metrics))
    work = WATCHED.get()
    if work is not None:
        work.part(1.0)
    for (a, b), metric in wanted:
        if work is not None:
            work.at(len(found) / len(wanted))
        with collected_warnings():  # the report itself contains the warning
            first, own = (outcomes[a], {"y_true_b": outcomes[b], "paired": True}) if outcomes else (y_true, {})
            if n_bins is not None and "n_bins" in catalogue[metric].options:
                own["n_bins"] = n_bins
            compared = compare(metric, first, models[a], models[b], n_resamples=n_resamples, rng=seed, **own, **options)
        found.append((metric, replace(compared, a=str(a), b=str(b), pvalue=_beyond_the_draws(compared))))
    every = len(metrics) * len(models) * (len(models) - 1) // 2
    # the pairs that were not chosen count as well, with the largest p-value, so that the adjustment can only be larger
    pvalues = np.concatenate([[c.pvalue for _, c in found], np.ones(every - len(found))])
    adjusted = adjust_pvalues(pvalues, "holm")[: len(found)]
    return tuple((m, replace(c, pvalue_adjusted=float(p))) for (m, c), p in zip(found, adjusted, strict=True))


def _beyond_the_draws(c: Comparison) -> float:
    """The p-value of a comparison; if no draw came near 0, by a normal approximation from its interval."""
    if not c.pvalue <= 2.0 / (c.n_resamples + 1.0) or not c.high > c.low:
        return float(c.pvalue)
    ends_apart = 2.0 * float(ndtri(0.5 + c.level / 2.0))
    p = 2.0 * float(ndtr(-abs(c.low + c.high) / 2.0 * ends_apart / (c.high - c.low)))
    return min(float(c.pvalue), max(p, _SMALLEST))


def subtracted(reports: Sequence[Report], names: Sequence[str]) -> str:
    """The model that a page subtracts from the others: of two the one named second, of more the best."""
    if len(names) == 2:
        return names[1]
    judging = [id for id in comparable(reports[0]) if catalogue[id].judges]
    values = {name: r.evaluation[judging[0]] for name, r in zip(names, reports, strict=True)} if judging else {}
    return best_of(values, judging[0]) if values else names[0]


def comparable(report: Report) -> tuple[str, ...]:
    """The metrics of a short list by which models can be compared: those with a single number."""
    table = {row.id for row in report.evaluation.rows}
    numbers = [k.id for k in report.short_list if not k.part and k.id in table]
    return tuple(id for id in numbers if catalogue[id].key == id)
