"""``calibrary mcp``: the main questions as tools of a server that speaks the Model Context Protocol.

Every tool answers with a sentence as text and with plain data as structured content. Files are read only under the
folders that were named at the start, and nothing is ever written.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, ParamSpec, TypedDict

import numpy as np
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

import calibrary as cal
from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import collected_warnings
from calibrary.base.numbers import EXACT, number, pvalue
from calibrary.base.text import in_sentence
from calibrary.cli.allowed import AllowedFolders
from calibrary.cli.catalogue import facts_of
from calibrary.cli.judge import judged_of
from calibrary.cli.read import PredictionFile, read_predictions
from calibrary.cli.report import ReportCommand
from calibrary.cli.shared import mistake
from calibrary.cli.sources import InputError
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.shown import difference_sentence, estimate_sentence
from calibrary.reporting.compose import compare_models
from calibrary.reporting.schema import schema
from calibrary.reporting.stored import as_json

_INSTRUCTIONS = (
    "Can predicted probabilities be believed? Start with `report` on a file of predictions (CSV, Parquet, an "
    "Inspect or lm-evaluation-harness log, ...); `verdict` decides a bound such as ece<0.05; `explain` and `recommend` "
    "explain metrics and choose one. Paths are relative to these folders, and nothing else can be read: {folders}"
)

# -- parameters of the tools -------------------------------------------------------------------------

FilePath = Annotated[str, Field(description="File of predictions, or a log of a language model, in an allowed folder.")]
Label = Annotated[str | None, Field(description="Column of the true class or outcome; guessed when obvious.")]
Prob = Annotated[list[str] | None, Field(description="Probability column(s); guessed when obvious.")]
Unit = Annotated[str | None, Field(description="Column of patients, images or prompts whose rows belong together.")]
Scorer = Annotated[
    str | None, Field(description="Log: the scorer (Inspect) or filter (lm-evaluation-harness), if there are several.")
]
Judge = Annotated[
    str | None,
    Field(description="Column of an automatic judge's labels; the label column holds a few human labels."),
]
Draws = Annotated[int, Field(ge=99, le=9999, description="Bootstrap and Monte Carlo draws.")]
Seed = Annotated[int, Field(ge=0, description="Seed of all random numbers.")]

# -- results of the tools ----------------------------------------------------------------------------

#: A number; null if it is not defined or was not requested, "inf" or "-inf" if it is infinite.
Number = float | str | None


class ReportAnswer(TypedDict):
    """A report; the field ``report`` follows the JSON Schema at calibrary://report.schema.json (`calibrary schema`)."""

    sentence: str
    report: dict[str, Any]


class MetricAnswer(TypedDict):
    """One metric: its estimate, its interval, and the p-value of the hypothesis of perfect calibration."""

    sentence: str
    id: str
    name: str
    value: Number
    low: Number
    high: Number
    confidence_level: float
    pvalue: Number
    n: int
    notes: list[str]


class VerdictAnswer(TypedDict):
    """Whether a metric meets a bound: ``status`` is pass, fail or undecided."""

    sentence: str
    status: str
    condition: str
    estimate: Number
    low: Number
    high: Number
    confidence_level: float
    n: int
    n_needed: Number
    notes: list[str]


class CompareAnswer(TypedDict):
    """Every pair of models, compared by every metric; ``difference`` is the value of a minus that of b."""

    sentence: str
    comparisons: list[dict[str, Any]]
    notes: list[str]


class ExplainAnswer(TypedDict):
    """What a metric measures, when to use it and when not."""

    sentence: str
    id: str
    name: str
    facts: dict[str, str]


class RecommendAnswer(TypedDict):
    """Recommended metrics, the best first, with reasons."""

    sentence: str
    recommendations: list[dict[str, Any]]


# -- the tools ---------------------------------------------------------------------------------------

Given = ParamSpec("Given")


def _answered(tool: Callable[Given, Any]) -> Callable[Given, Any]:
    """The tool with its data as structured content and its sentence as text; a caller's mistake is one sentence."""

    @functools.wraps(tool)
    def called(*args: Given.args, **given: Given.kwargs) -> Any:
        try:
            found = _for_json(tool(*args, **given))
        except Exception as error:
            sentence = mistake(error)
            if sentence is None:
                raise
            raise ToolError(sentence) from error
        return CallToolResult(content=[TextContent(type="text", text=found["sentence"])], structured_content=found)

    return called


def _for_json(value: Any) -> Any:
    """The value with NaN replaced by null, and infinities by the words "inf" and "-inf", which JSON can represent."""
    if isinstance(value, dict):
        return {str(name): _for_json(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else "inf" if value > 0 else "-inf"
    return value


class Tools:
    """The tools, which read files in the allowed folders."""

    def __init__(self, folders: AllowedFolders) -> None:
        self.folders = folders

    def report(
        self,
        path: FilePath,
        label: Label = None,
        prob: Prob = None,
        unit: Unit = None,
        metrics: Annotated[
            list[str], Field(min_length=1, description="Metrics or families to compute; the headline shows the first.")
        ] = ["ece", "smece", "bs", "nll"],  # noqa: B006
        scorer: Scorer = None,
        sampled: Annotated[
            bool,
            Field(description="Inspect log: the epochs are sampled answers; the test allows for their sampling noise."),
        ] = False,
        judge: Judge = None,
        figures: Annotated[
            bool, Field(description="Include the sections and the figures as SVG, about a hundred kilobytes.")
        ] = False,
        resamples: Draws = 999,
        seed: Seed = 0,
    ) -> Annotated[CallToolResult, ReportAnswer]:
        """Report on one file: is the model calibrated, how large is the error, in which direction, and how certain?"""
        command = ReportCommand(
            files=[str(self.folders.find(path))], label=label, prob=prob, unit=unit, metrics=metrics,
            primary=metrics[0] if metrics[0] in catalogue else "ece", scorer=scorer, sampled=sampled, judge=judge,
            resamples=resamples, seed=seed, quiet=True,
            as_json=True,  # so that no answer is printed early: standard output belongs to the protocol
        )  # fmt: skip
        reports, comparisons = command.answered(command.files)
        shown = reports if figures else [replace(r, figures=(), sections=_sentences_only(r.sections)) for r in reports]
        sentence = Sentence.joined("\n", (Sentence.joined(" ", [r.headline, *r.statements]) for r in reports))
        return {"sentence": sentence, "report": json.loads(as_json(shown, comparisons))}

    def metric(
        self,
        id: Annotated[str, Field(description="Metric id or alias, such as ece, smece or bs.")],
        path: FilePath,
        label: Label = None,
        prob: Prob = None,
        unit: Unit = None,
        scorer: Scorer = None,
        judge: Judge = None,
        resamples: Draws = 999,
        seed: Seed = 0,
    ) -> Annotated[CallToolResult, MetricAnswer]:
        """One metric of a file, with its interval and the p-value of the test of perfect calibration, if it has one."""
        entry, found = catalogue[id], self.folders.find(path)
        named = {"id": entry.key, "name": entry.name}
        if judge is not None:
            if unit or scorer:
                raise InputError("unit and scorer are not used with judge: leave them out")
            both = judged_of(entry.key, str(found), judge, label=label, prob=prob, rng=seed, n_resamples=resamples)
            return _ends(both, both.pvalue, both.n, [], sentence=both.sentence, **named)
        data, units, notes = self._read(found, label, prob, unit, scorer)
        with collected_warnings() as warned:
            ends = cal.interval(entry.key, data.predictions(), n_resamples=resamples, rng=seed, units=units)
        if np.ndim(ends.estimate):
            raise InputError(f"{entry.key} has {np.size(ends.estimate)} values here: call `report` with this metric")
        said = estimate_sentence(entry.name, ends)
        return _ends(ends, ends.pvalue, len(data.y), [*notes, *warned], sentence=said, **named)

    def verdict(
        self,
        condition: Annotated[str, Field(description="A bound on a metric, such as ece<0.05 or cis.slope>0.8.")],
        path: FilePath,
        label: Label = None,
        prob: Prob = None,
        unit: Unit = None,
        scorer: Scorer = None,
        resamples: Draws = 999,
        seed: Seed = 0,
    ) -> Annotated[CallToolResult, VerdictAnswer]:
        """Does a metric meet a bound? Its interval decides: pass, fail, or undecided with the number of rows needed."""
        data, units, notes = self._read(self.folders.find(path), label, prob, unit, scorer)
        with collected_warnings():  # an undecided verdict warns with its own sentence
            found = cal.verdict(condition, data.predictions(), n_resamples=resamples, rng=seed, units=units)
        wanted = VerdictAnswer.__annotations__
        return {**{k: v for k, v in found.to_dict().items() if k in wanted}, "notes": notes}

    def compare(
        self,
        paths: Annotated[
            list[str], Field(min_length=1, max_length=8, description="One file per model, or one file with all models.")
        ],
        models: Annotated[
            list[str] | None, Field(description="With one file: the probability column of each model.")
        ] = None,
        label: Label = None,
        prob: Prob = None,
        unit: Unit = None,
        metrics: Annotated[list[str], Field(min_length=1, max_length=8)] = ["ece", "bs"],  # noqa: B006
        id_column: Annotated[
            str | None, Field(description="Column that identifies the same row in several files.")
        ] = None,
        scorer: Scorer = None,
        resamples: Draws = 999,
        seed: Seed = 0,
    ) -> Annotated[CallToolResult, CompareAnswer]:
        """Compare the calibration of models on the same rows, or on the questions that two logs have in common."""
        files = [str(self.folders.find(path)) for path in paths]
        named = {"prob": prob} if len(files) > 1 else {"models": models}
        others = [unit] if unit else []
        data = read_predictions(files, label=label, id=id_column, scorer=scorer, others=others, **named)
        if len(data.models) < 2:
            raise InputError("compare needs two models: name two files, or the columns of one file in `models`")
        ids, column = tuple(catalogue[m].key for m in metrics), unit or data.unit
        with collected_warnings() as warned:
            pairs = compare_models(
                data.y, data.models, metrics=ids, n_resamples=resamples, rng=seed, sample_weight=data.weight,
                outcomes=data.outcomes, units=data.others[column] if column else None,
            )  # fmt: skip
        said = Sentence.joined("\n", (_comparison_sentence(id, c) for id, c in pairs))
        listed = [{"metric": id, **asdict(c)} for id, c in pairs]
        return {"sentence": said, "comparisons": listed, "notes": [*data.notes, *warned]}

    def explain(
        self, id: Annotated[str, Field(description="Metric id or alias.")]
    ) -> Annotated[CallToolResult, ExplainAnswer]:
        """Explain a metric: what it measures, when to use it and when not, and how its interval and test behave."""
        entry = catalogue[id]
        facts = {name: str(claim) for name, claim in facts_of(entry).items()}
        return {"sentence": entry.meaning, "id": entry.key, "name": entry.name, "facts": facts}

    def recommend(
        self,
        task: Annotated[str, Field(description="binary, multiclass, ordinal or detection.")] = "binary",
        goal: Annotated[str, Field(description="measure, compare, test, train, explain or rank.")] = "measure",
        n: Annotated[int, Field(ge=1, description="Number of predictions.")] = 1000,
        rare: Annotated[float, Field(ge=0, le=1, description="Share of the rarest class.")] = 0.5,
        direction: Annotated[
            bool, Field(description="The metric must distinguish over- from under-confidence.")
        ] = False,
        safety: Annotated[bool, Field(description="The largest error matters, not the typical one.")] = False,
        most: Annotated[int, Field(ge=1, le=20, description="Length of the list.")] = 5,
    ) -> Annotated[CallToolResult, RecommendAnswer]:
        """Recommend metrics for a task, the best first, with the reasons."""
        found = cal.recommend(task, goal, n=n, rare=rare, direction=direction, safety=safety, most=most)
        listed = [
            {"id": r.id, "name": r.name, "reasons": list(map(str, r.reasons)), "caution": str(r.caution)} for r in found
        ]
        said = Sentence.joined("\n", (_reasons_sentence(rank, r) for rank, r in enumerate(found, 1)))
        return {"sentence": said, "recommendations": listed}

    def _read(
        self, path: Any, label: str | None, prob: list[str] | None, unit: str | None, scorer: str | None
    ) -> tuple[PredictionFile, Any, list[str]]:
        """The predictions of a file, the units of its rows, and notes about guessed columns."""
        data = read_predictions(str(path), label=label, prob=prob, scorer=scorer, others=[unit] if unit else [])
        column = unit or data.unit
        return data, data.others[column] if column else None, list(data.notes)


#: The largest number of letters of a model's name in a sentence.
_LONGEST_NAME = 60
#: The tools that are offered, in this order.
TOOLS = ("report", "metric", "verdict", "compare", "explain", "recommend")


def _sentences_only(sections: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(replace(s, figures=(), tables=(), data={}) for s in sections if s.sentences)


def _ends(found: Any, p: Any, n: int, notes: list[str], **named: Any) -> Any:
    value = float(found.estimate), float(found.low), float(found.high)
    ends = dict(zip(("value", "low", "high"), value, strict=True))
    return {**named, **ends, "confidence_level": found.confidence_level, "pvalue": p, "n": n, "notes": notes}


def _comparison_sentence(metric: str, c: Any) -> Sentence:
    """A sentence with both values, their difference, its interval and p-value; the models' names are the user's."""
    a, b = in_sentence(c.a, _LONGEST_NAME), in_sentence(c.b, _LONGEST_NAME)
    said = f"{metric}: {a} has {number(c.value_a)} and {b} has {number(c.value_b)}"
    values = measured(said, **{f"{metric} of {c.a}": c.value_a, f"{metric} of {c.b}": c.value_b})
    p = f"adjusted {pvalue(c.pvalue_adjusted, c.n_resamples or EXACT)}"
    return Sentence.joined("", [values, "; ", difference_sentence("the difference", metric, c, p), "."])


def _reasons_sentence(rank: int, r: Any) -> Sentence:
    return Sentence.joined("", [f"{rank}. {r.id} ({r.name}): ", Sentence.joined("; ", r.reasons), "."])


# -- the server --------------------------------------------------------------------------------------


def server_for(folders: AllowedFolders) -> MCPServer:
    """The server with its tools for the files in these folders."""
    server = MCPServer(
        "calibrary",
        version=cal.__version__,
        instructions=_INSTRUCTIONS.format(folders=", ".join(map(str, folders.roots))),
        log_level="WARNING",
    )
    tools = Tools(folders)
    reads = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for name in TOOLS:
        server.add_tool(_answered(getattr(tools, name)), annotations=reads)

    server.resource("calibrary://report.schema.json", mime_type="application/schema+json")(report_schema)
    return server


def report_schema() -> str:
    """The JSON Schema of a report."""
    return json.dumps(schema())


def serve(folders: AllowedFolders) -> None:
    """Answer requests on standard input and output until the client disconnects."""
    server_for(folders).run()
