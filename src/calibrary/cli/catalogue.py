"""Look up metrics: ``calibrary explain ID``, ``explain list``, ``recommend``, ``table2`` and ``notation``."""

from __future__ import annotations

import re
import sys
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

import calibrary as cal
from calibrary.cli.console import err, out, plain, table_of
from calibrary.cli.taking import taking
from calibrary.metrics.machinery.cards import ListedMetric, declared, listed_metrics
from calibrary.metrics.machinery.facts import FAMILIES, Alias
from calibrary.tables.sources import InputError

#: The sections of an explanation, the rules that check its lines, and words for propriety, inputs and signs of TeX.
_TABLES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("explain.toml").read_text(encoding="utf-8"))
#: Accents, as characters that combine with the letter before them.
_ACCENTS = {"bar": "\u0304", "hat": "\u0302", "overline": "\u0304"}
_FONTS = ("text", "mathrm", "mathcal", "operatorname")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}^_&]|\s+|[^\\{}^_&\s]")
#: Text that needs no brackets as an index, a power or a part of a fraction.
_SINGLE = re.compile(r"[\w.\u0300-\u036f]+|\(.*\)|⌊.*⌋")


def readable(tex: str) -> str:
    r"""One line for a formula in TeX.

    >>> readable(r"\frac{1}{N} \sum_i |\bar y_i - c_i|^2")
    '(1/N) Σ_i |ȳ_i - c_i|^2'
    """
    tokens = _TOKEN.findall(re.sub(r"\\(begin|end)\{\w+\}", " ", tex))
    return re.sub(r"\s+", " ", _sequence(tokens)).strip()


def _sequence(tokens: list[str]) -> str:
    """The text up to the next closing brace, or to the end."""
    done = ""
    while tokens and tokens[0] != "}":
        done += _piece(tokens)
    return done


def _piece(tokens: list[str]) -> str:
    """The next symbol with its arguments."""
    token = tokens.pop(0)
    if token == "{":
        inner = _sequence(tokens)
        tokens[:1] = []
        return inner
    if token in "^_":
        return token + _bracketed(_argument(tokens))
    if token == "&":
        return " "
    if not token.startswith("\\"):
        return token
    name = token[1:]
    if name in ("frac", "tfrac"):
        return f"({_bracketed(_argument(tokens))}/{_bracketed(_argument(tokens))})"
    if name == "sqrt":
        return f"√({_argument(tokens)})"
    if name in _ACCENTS:
        of = _argument(tokens)
        return unicodedata.normalize("NFC", of + _ACCENTS[name]) if len(of) == 1 else f"mean({of})"
    if name in _FONTS:
        return _argument(tokens)
    return _TABLES["signs"].get(name, name)


def _argument(tokens: list[str]) -> str:
    while tokens and tokens[0].isspace():
        tokens.pop(0)
    return _piece(tokens) if tokens else ""


def _bracketed(text: str) -> str:
    text = text.strip()
    return text if _SINGLE.fullmatch(text) else f"({text})"


if TYPE_CHECKING:  # a list of metrics is read from the index of the cards alone
    from calibrary.base.claims import Claim
    from calibrary.lookup.review_tables import Curve, ReviewTable
    from calibrary.metrics.machinery.entry import Entry

#: The width in characters from which the list shows every column.
_WIDE = 150


@taking("list")
def list_metrics(given: Any) -> None:
    """List the metrics: `calibrary explain list --family bin --test`."""
    if given.family is not None and given.family not in FAMILIES:
        raise InputError(f"--family {given.family!r} is not known: choose from {', '.join(FAMILIES)}")
    shown = [e for e in listed_metrics() if _wanted(e, given)]
    # the next program of a pipe gets unbroken lines, whatever the width of the terminal
    console = out if out.is_terminal else Console(width=_WIDE, emoji=False, highlight=False)
    console.print(listing(shown, console.width))
    err.print(f"{len(shown)} metrics; calibrary explain ID describes a metric", highlight=False)


#: Columns of the list, each with the smallest width of the terminal at which it is shown.
_COLUMNS: dict[str, tuple[int, Callable[[ListedMetric], str]]] = {
    "row": (_WIDE, lambda e: str(e.row or "")),
    "id": (0, lambda e: e.id),
    "family": (110, lambda e: e.family),
    "name": (0, lambda e: e.name),
    "range": (_WIDE, lambda e: f"[{e.range[0]:g}, {e.range[1]:g}]"),
    "ideal": (0, lambda e: "" if e.perfect is None else f"{e.perfect:g}"),
    "test": (0, lambda e: "yes" if e.has_test else ""),
    "proper": (_WIDE, lambda e: e.proper.replace("no", "")),
}


def listing(entries: Iterable[ListedMetric], width: int) -> Table:
    """The list as a table; a narrow terminal gets fewer columns, so that no name is broken."""
    columns = {head: cell for head, (least, cell) in _COLUMNS.items() if width >= least}
    table = table_of(columns, ([cell(e) for cell in columns.values()] for e in entries))
    for column in table.columns:
        column.no_wrap = column.header != "name"
    return table


def _wanted(e: ListedMetric, given: Any) -> bool:
    of_detection, ordered = e.family == "detection", "order" in e.needs
    unordered: dict[str | None, bool] = dict.fromkeys(("binary", "multiclass"), not of_detection and not ordered)
    fits_task = {**unordered, None: True, "ordinal": not of_detection, "detection": of_detection}
    if given.task not in fits_task:
        raise InputError(f"--task {given.task!r} is not known: choose from binary, multiclass, ordinal, detection")
    return (
        fits_task[given.task]
        and (given.family is None or e.family == given.family)
        and (not given.test or e.has_test)
        and (not given.proper or e.proper in ("strictly", "proper"))
        and (not given.consistent or e.consistent)
        and (given.needs is None or given.needs in e.needs)
    )


@taking("explain")
def explain(given: Any) -> None:
    """Explain a metric: what it measures, when to use it and how to judge a value: `calibrary explain ece --n 500`."""
    from calibrary.lookup import catalogue
    from calibrary.lookup.review_tables import curve_named

    curve = None if given.id in catalogue else curve_named(given.id)
    if curve is not None:
        _explain_curve(curve)
        return
    e, facts = catalogue[given.id], facts_of(catalogue[given.id])
    out.print(f"[bold]{plain(e.name)}[/] ({e.id})", highlight=False)
    out.print(plain(e.meaning), highlight=False)
    for name in _NAMED:
        if name in facts:
            out.print(plain(facts[name]), highlight=False)
    for heading, names in sections(facts, given.everything).items():
        out.print(f"\n[bold]{heading}[/]", highlight=False)
        for name in names:
            label = "" if name.lower() == heading.lower() else f"[dim]{plain(name)}:[/] "
            out.print(f"{label}{plain(facts[name])}", highlight=False)
        if heading == _JUDGE:
            _print_study(e, given.n)
    if not given.everything:
        out.print(
            f"\n[dim]calibrary explain {e.id} --all adds evidence, names, references and errata[/]", highlight=False
        )


#: The lines about the name that was typed, and the heading under which the study's numbers stand.
_NAMED, _JUDGE = ("this name", "a preset"), "How to judge a value"
#: The sections that are shown without ``--all``.
_SHORT = tuple(_TABLES["sections"])[:5]


def sections(facts: Mapping[str, Claim], everything: bool) -> dict[str, list[str]]:
    """The headings of an explanation, each with the names of its lines."""
    found = {heading: [name for name in names if name in facts] for heading, names in _TABLES["sections"].items()}
    found["Errata"] = [name for name in facts if name.startswith("erratum, ")]
    return {heading: names for heading, names in found.items() if names and (everything or heading in _SHORT)}


def _print_study(e: Entry, n: int | None) -> None:
    """What the study found at several numbers of rows, as a table, and what it says besides."""
    from calibrary.lookup.study_findings import numbers_by_size, remarks

    heads, rows = numbers_by_size(e.id, n)
    if rows:
        out.print(table_of(heads, rows, words=()))
    if rows and e.settings:
        out.print(f"The study's numbers are those of {e.id} with its default options.", highlight=False)
    for remark in remarks(e.id):
        out.print(plain(remark), highlight=False)


def facts_of(e: Entry) -> dict[str, Claim]:
    """The facts about a metric: each line of ``explain`` by its label, as a claim with the rule that checks it."""
    from calibrary.lookup.study_findings import lines

    texts: dict[str, str] = {**_named(e), **_known(e), **lines(e.id), **_cited(e)}
    return {name: _claim_of(e, name, text) for name, text in texts.items() if text}


def _claim_of(e: Entry, name: str, text: str) -> Claim:
    """A line as a claim; lines taken from the study are claims already."""
    from calibrary.base.claims import Claim

    if isinstance(text, Claim):
        return text
    return Claim(text, _TABLES["rules"].get(name, "declared"), metric=e.id, line=name, stated=text)


def _named(e: Entry) -> dict[str, str]:
    """The meaning of the name that was typed, if it implies settings."""
    return {
        "this name": "" if e.called is None else f"{e.called} means {e.id} with {e.called.words}",
        "a preset": "" if e.preset_of is None else f"{e.preset_of} with {e.preset_of.words}",
    }


def _known(e: Entry) -> dict[str, str]:
    from calibrary.lookup.study_findings import coverage_words

    row = f"row {e.row} of Table 2, " if e.row else ""
    return {
        "formula": formula_of(e),
        "in the review": f"{_REVIEW}: {row}{e.place}" if e.section else "",
        "newer than the review": "" if e.section else e.equation,
        "family": f"{e.family}, {e.subfamily}" if e.section else e.family,
        "also called": ", ".join(a for a in e.aliases if not isinstance(a, Alias)),
        "names with settings": "; ".join(f"{words}: {', '.join(names)}" for words, names in _presets(e).items()),
        "ambiguous names": "; ".join(f"{name} {other}" for name, other in _also(e).items()),
        "range": f"{e.range[0]:g} to {e.range[1]:g}" + (f" ({e.range_note})" if e.range_note else ""),
        "ideal": _ideal(e),
        "interpretation": e.sign,
        "when to use": e.use,
        "caution": e.avoid,
        "proper score": _TABLES["proper"][e.proper],
        "distance from calibration": e.robustness,
        "test": _test(e),
        "interval": coverage_words(e),
        "lenses": ", ".join(e.lenses),
        "needs": ", ".join(_TABLES["inputs"].get(name, name) for name in e.needs),
        "weights": e.weights_note
        or {"repetition": "a row of weight 2 counts as two equal rows"}.get(e.weights, e.weights),
        "options": ", ".join(e.options),
        "cost": e.cost,
    }


#: The review that the catalogue covers, by its author, year and preprint.
_REVIEW = "Lane (2025), arXiv:2504.18278"


def _test(e: Entry) -> str:
    if e.has_test:
        own = declared(e.declared.default_preset) or e.declared
        return f"calibrary.{own.test}: {own.test_meaning}"
    return "a Monte Carlo test with redrawn labels" if e.null else f"none: {e.null_note}"


def _cited(e: Entry) -> dict[str, str]:
    """What the review says about the metric, its references, and corrections to the review."""
    corrected = {f"erratum, {c.fact}": c.statement for c in e.corrections}
    return {
        "pros in Table 2": "; ".join(e.table2.pros) if e.table2 else "",
        "cons in Table 2": "; ".join(e.table2.cons) if e.table2 else "",
        "references": "; ".join(e.references),
        "since": e.since + (", emerging: the definition may still change" if e.status == "emerging" else ""),
        **corrected,
    }


_FORMATS = ("markdown", "csv", "json")


@taking("table2")
def table2(given: Any) -> None:
    """Print the review's Table 2 with calibrary's ids: `calibrary explain table2 --format csv > table2.csv`."""
    _print_table(cal.catalogue.table2(), given.form)


@taking("notation")
def notation(given: Any) -> None:
    """Print the symbols of the formulas: those of the review's Table 1 and calibrary's own."""
    _print_table(cal.notation(), given.form)


def _print_table(table: ReviewTable, form: str) -> None:
    if form not in _FORMATS:
        raise InputError(f"--format {form!r} is not known: choose from {', '.join(_FORMATS)}")
    sys.stdout.write(getattr(table, f"to_{form}")().rstrip("\n") + "\n")


def formula_of(e: Entry) -> str:
    """The formula in the metric's documentation, as one line of text."""
    return readable(e.declared.formula)


def _ideal(e: Entry) -> str:
    from calibrary.base.numbers import number
    from calibrary.lookup.study_findings import stays_above

    parts = [f"{name} {value:g}" for name, value in dict(e.fields).items() if value is not None]
    ideal = ", ".join(parts) or ("depends on the data" if e.perfect is None else f"{e.perfect:g}")
    still = stays_above(e)
    return ideal if still is None else f"{ideal}, but calibrated models still show {number(still)} on 100,000 rows"


def _also(e: Entry) -> dict[str, str]:
    """The names of a metric that also denote something else, and what they denote."""
    from calibrary.base.errors import collected_warnings
    from calibrary.lookup import catalogue
    from calibrary.lookup.by_name import other_meanings

    shared = {}
    for name in (e.id.upper(), *e.aliases):
        if others := other_meanings(name):
            with collected_warnings():  # the user did not type this name
                first = catalogue[name].id
            meanings = " or ".join(other.replace(". (", " (").removesuffix(".") for other in others)
            shared[str(name)] = f"may also mean {meanings}" if first == e.id else f"means {first!r} here"
    return {**shared, **{name: f"may also mean {other}" for name, other in e.homonyms.items()}}


def _presets(e: Entry) -> dict[str, list[str]]:
    """The names that imply settings, grouped by the settings."""
    named: dict[str, list[str]] = {}
    for alias in e.aliases:
        if isinstance(alias, Alias):
            named.setdefault(alias.words, []).append(str(alias))
    return named


def _explain_curve(curve: Curve) -> None:
    from calibrary.lookup import catalogue

    out.print(f"[bold]{plain(curve.name)}[/], a curve", highlight=False)
    out.print(plain(curve.meaning), highlight=False)
    facts = {
        "figure": f"calibrary.{curve.figure}(y, p)",
        "data": f"calibrary.{curve.data}(y, p)",
        "as a number": "; ".join(f"{id}: {catalogue[id].meaning}" for id in curve.metrics if id in catalogue),
        "also called": ", ".join(curve.aliases),
    }
    for name, text in facts.items():
        if text:
            out.print(f"[dim]{name}:[/] {plain(text)}", highlight=False)


#: The options of ``recommend`` that its function in Python has under the same name.
_ASKED = ("test", "direction", "ties", "most", "safety", "assurance", "label_noise", "features")


@taking("recommend")
def recommend(given: Any) -> None:
    """Recommend metrics for a question; without options, the command asks for the question's details."""
    task, goal, n, rare = given.task, given.goal, given.n, given.rare
    from calibrary.lookup.recommend import GOALS, TASKS

    if sys.stdin.isatty() and task is None and goal is None:
        task = typer.prompt(f"task ({', '.join(TASKS)})", default="binary")
        goal = typer.prompt(f"goal ({', '.join(GOALS)})", default="measure")
        n = typer.prompt("number of predictions", default=n, type=int)
        rare = typer.prompt("share of the rarest class", default=rare, type=float)
    asked = {name: getattr(given, name) for name in _ASKED}
    found = cal.recommend(
        task or "binary", goal or "measure", n=n, rare=rare, n_classes=given.classes, top_label_only=given.top_label,
        **asked,
    )  # fmt: skip
    for rank, r in enumerate(found, 1):
        out.print(f"[bold]{rank}. {r.id}[/] {plain(r.name)}", highlight=False)
        for reason in r.reasons:
            out.print(f"   + {plain(reason.with_source)}", highlight=False)
        if r.caution:
            out.print(f"   - {plain(r.caution)}", highlight=False)


class _Explained(TyperGroup):
    """The commands that look something up; a word that is none of them is the name of a metric to be explained."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["metric", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Explained,
    help="Explain a metric or a curve: what it measures, when to use it and how to judge a value: "
    "`calibrary explain ece --n 500`.",
    no_args_is_help=True,
)
app.command("metric", hidden=True)(explain)
app.command("list")(list_metrics)
app.command()(recommend)
app.command()(table2)
app.command()(notation)


def main() -> None:
    """Run ``calibrary explain`` without importing the other commands."""
    from calibrary.cli.ending import run_alone

    run_alone("explain", app)
