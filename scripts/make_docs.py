"""Put the documentation together in build/docs: the pages of docs/ and those made from the library itself.

    python scripts/make_docs.py [--no-figures]

The catalogue, the page of every metric, the errata, the lists of names, the command line, the gallery and the pages
about other packages are made here from the code, so that they agree with it. ``mkdocs build`` then makes the
site.
"""

from __future__ import annotations

import ast
import base64
import functools
import importlib.util
import inspect
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
OUT = ROOT / "build" / "docs"
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "scripts")]

import calls  # noqa: E402
import pictures  # noqa: E402
import results  # noqa: E402
from docstrings import formula, markdown  # noqa: E402
from navigation import heading, in_order  # noqa: E402

import calibrary as cal  # noqa: E402
from calibrary.evaluation import FAMILIES  # noqa: E402
from calibrary.lookup.by_name import _ranked  # noqa: E402
from calibrary.lookup.shapes import detected_by, detected_picture, detected_words  # noqa: E402
from calibrary.lookup.study_findings import shown, stored  # noqa: E402
from calibrary.metrics.machinery.declare import ENTRIES, Alias, Entry  # noqa: E402
from calibrary.metrics.machinery.entry import FUNCTIONS, TESTS  # noqa: E402
from calibrary.public import PUBLIC, Name  # noqa: E402
from calibrary.study import StudyResult  # noqa: E402

MOST_NAMES = 8  # in a table; more are folded
RESPONSE_ROWS = 400  # of scripts/make_responses.py
FAMILY = {
    "point": "Point metrics: one row at a time",
    "bin": "Binned metrics",
    "kernel": "Kernel metrics",
    "curve": "Metrics of a fitted curve",
    "cumulative": "Cumulative metrics",
    "detection": "Object detection",
}
FAMILY_IS = {
    "point": "These metrics are means of a number that is computed for each row from its prediction and its outcome, "
    "or functions of such means. Proper scores belong here: they measure calibration and sharpness together.",
    "bin": "Rows of similar confidence form a bin, and the mean confidence of each bin is compared with the observed "
    "frequency of the event. These metrics are easy to explain; they depend on the number of bins and their edges.",
    "kernel": "Each row is compared with rows of similar confidence, and nearer rows have more weight. A bandwidth "
    "takes the place of bins.",
    "curve": "A calibration curve is fitted to the data and compared with the diagonal.",
    "cumulative": "Differences between outcomes and confidences are added up in the order of confidence. Neither bins "
    "nor a bandwidth have to be chosen.",
    "detection": "Detected boxes are matched with the true objects; the score of a box should be the probability that "
    "it is correct, or its expected overlap.",
}


def main(figures: bool = True) -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(ROOT / "docs", OUT)
    for page in sorted(OUT.rglob("*.md")):
        above = "../" * (len(page.relative_to(OUT).parts) - 1)
        text = wrapped(page.read_text("utf-8"))
        if page.name != "code-map.md":  # its words are modules, some of which are called like metrics
            text = with_names(text, above)
        page.write_text(text, "utf-8")
    (OUT / "figures").mkdir(exist_ok=True)
    write("math.css", math_style())
    write("contributing.md", with_names(linked((ROOT / "CONTRIBUTING.md").read_text())))
    write("changelog.md", with_names(linked((ROOT / "CHANGELOG.md").read_text())))
    entries = [e for family in FAMILIES for e in in_order(family)]
    write("catalogue.md", catalogue_page(entries))
    for family in FAMILIES:
        write(f"metrics/family-{family}.md", family_page(family))
    for entry in entries:
        write(f"metrics/{entry.id}.md", metric_page(entry))
    write("errata.md", errata_page(entries))
    write("all-names.md", names_page(entries))
    write("public-names.md", public_page())
    write("command-line.md", command_line_page())
    write("other-packages.md", other_packages_page())
    write("benchmark.md", benchmark_page())
    draw_lens_figure(OUT / "figures" / "binary-or-top-label.png")
    write("figures.md", figures_page(draw=figures))
    print(f"{sum(1 for _ in OUT.rglob('*.md'))} pages in {OUT.relative_to(ROOT)}")


def write(name: str, text: str) -> None:
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip() + "\n", encoding="utf-8")


def wrapped(text: str) -> str:
    """What code prints is marked as output; printed sentences may be broken where the page ends, tables may not."""
    printed = r"(^```python\n(?:(?!```).*\n)*```\n\n)```text$"
    text = re.sub(printed, r"\1``` { .text .output }", text, flags=re.MULTILINE)

    def marked(block: re.Match[str]) -> str:
        parts: list[tuple[bool, str]] = []  # a wide table and the sentences around it are blocks of their own
        for part in block[1].rstrip("\n").split("\n\n"):
            lines = part.splitlines()
            table = any(len(line) > _WIDE and re.search(r"\S {2,}\S|^ ", line) for line in lines)
            table = table and max(map(len, lines)) < _SENTENCE
            if parts and parts[-1][0] == table:
                parts[-1] = (table, f"{parts[-1][1]}\n\n{part}")
            else:
                parts.append((table, part))
        marks = {True: "``` { .text .output }", False: "``` { .text .output .wrap }"}
        return "\n\n".join(f"{marks[table]}\n{part}\n```" for table, part in parts)

    return re.sub(r"^``` { \.text \.output }\n(.*?)^```$", marked, text, flags=re.MULTILINE | re.DOTALL)


#: A printed table with longer lines scrolls instead of being broken, unless some are as long as paragraphs.
_WIDE, _SENTENCE = 60, 200

#: Ids that are also ordinary words of code.
_WORDS_OF_CODE = ("cal", "consistency")


def with_names(text: str, above: str = "") -> str:
    """Every id of a metric in the text, outside code and links, leads to the metric's page and shows its name."""

    def linked(found: re.Match[str]) -> str:
        entry = ENTRIES.get(found["id"])
        if entry is None or entry.id in _WORDS_OF_CODE:
            return found[0]
        return f'[`{entry.id}`]({above}metrics/{entry.id}.md "{entry.name}")'

    outside = r"(?P<kept>^ *```.*?^ *```|\[[^\]\n]*\]\([^)\n]*\)|^#.*?$)|`(?P<id>\w+)`"
    return re.sub(outside, lambda m: m["kept"] or linked(m), text, flags=re.MULTILINE | re.DOTALL)


def math_style() -> str:
    """The font of formulas inside the style sheet: some browsers load no font from a page on disk."""
    font = base64.b64encode((ROOT / "docs" / "fonts" / "stix-two-math.woff").read_bytes()).decode()
    return (
        f'@font-face {{ font-family: "Formulas"; src: url("data:font/woff;base64,{font}") format("woff"); }}\n'
        'math { font-family: "Formulas", "STIX Two Math", "Cambria Math", "Latin Modern Math", math; }'
    )


def linked(text: str) -> str:
    """Links of a file in the root of the repository, seen from the documentation."""
    text = re.sub(r"\]\(docs/", "](", text)
    moved = {
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changelog.md",
        "benchmarks/RESULTS.md": "benchmark.md",
    }
    for old, new in moved.items():
        text = text.replace(f"]({old}", f"]({new}")
    # what is not part of the site is named, not linked
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#|mailto:|[\w/-]+\.md|figures/)[^)]*\)", r"\1", text)


# -- the catalogue -----------------------------------------------------------------------------------


def catalogue_page(entries: list[Entry]) -> str:
    lines = [
        "---\nhide: [navigation, toc]\n---",
        "# Catalogue",
        "",
        f"The table has all {sum(e.row is not None for e in entries)} metrics of Lane's review and "
        f"{sum(e.row is None for e in entries)} more. *Ideal* is the value of a calibrated model as the number of rows "
        "grows (empty: it depends on the data); *test* says whether the metric has a hypothesis test of its own; "
        "most others can be tested by redrawing labels (`cal.test`). `calibrary explain list` prints the same table, "
        "`calibrary explain ece` one entry.",
    ]
    lines += ["", _FILTER]
    for family in FAMILIES:
        lines += ["", f"## {FAMILY[family]}", "", *_catalogue_table(in_order(family))]
    return "\n".join(lines)


#: A field that docs/filter.js makes work: it leaves the rows that contain every word.
_FILTER = '<input class="filter" type="search" placeholder="Show rows with ..." aria-label="Show rows with" hidden>'


def family_page(family: str) -> str:
    """The metrics of one family."""
    lines = [f"# {FAMILY[family]}", "", FAMILY_IS[family], "", _FILTER, ""]
    return "\n".join(lines + _catalogue_table(in_order(family), above="../"))


def _catalogue_table(entries: list[Entry], above: str = "") -> list[str]:
    head = ("row", "metric", "id", "what it measures", "range", "ideal", "proper", "test")
    rows = [_catalogue_row(e, above) for e in entries]
    table = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *rows]
    return ['<div class="catalogue" markdown>', "", *table, "", "</div>"]


def _catalogue_row(e: Entry, above: str) -> str:
    name = f"[{heading(e)}]({above}metrics/{e.id}.md)"
    proper = {"no": "", "dataset": ""}.get(e.proper, e.proper)
    tells, test = markdown(e.meaning), "yes" if e.has_test else ""
    cells = (str(e.row or ""), name, f"`{e.id}`", tells, _range(e), _ideal(e), proper, test)
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def _range(e: Entry) -> str:
    low, high = (f"{v:.3g}".replace("inf", "∞") for v in e.range)
    return f"{low} to {high}"


def _ideal(e: Entry) -> str:
    if e.fields:
        return ", ".join(name if value is None else f"{name} {value:g}" for name, value in e.fields)
    return "" if e.perfect is None else f"{e.perfect:g}"


def metric_page(e: Entry) -> str:
    """What it tells, what it detects and misses, when to use it; then its formula, its facts and its call."""
    lines = [f"# {heading(e)}", "", f"**{markdown(e.meaning)}**", ""]
    detects, response = _detects(e), _response(e)
    lines += detects or response  # a metric that was not studied opens with how its value grows
    if e.use:
        lines += [f'!!! tip "Use it"\n    {e.use}', ""]
    if e.avoid:
        lines += [f'!!! warning "When not to use it, and cautions"\n    {e.avoid}', ""]
    shown = formula(e.function.__doc__ or "")
    lines += ["## Definition", "", f"$${shown}$$", ""] if shown else []
    lines += ["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in _facts(e) if v), ""]
    lines += _folded_names(e) + (response if detects else []) + _studied(e)
    lines += [
        "## Call",
        "",
        f"::: {e.function.__module__}.{e.function.__name__}",
        "    options:",
        "      heading_level: 3",
        "",
    ]
    if e.corrections:
        lines += ["## Where the review differs", "", *_corrections(e), ""]
    if e.references:
        lines += ["## References", "", *(f"- {r}" for r in e.references), ""]
    return "\n".join(lines)


def _detects(e: Entry) -> list[str]:
    """What it detects and what it misses: a sentence and a picture for each of its numbers, from the study."""
    lines: list[str] = []
    for name in _studied_names(e):
        n, rows = detected_by(name)
        if rows:
            title = f"{_part(name)}: " if "." in name else ""
            picture = detected_picture(rows, f"{heading(e)}: errors detected on {n:,} rows")
            lines += [f"{title}{detected_words(rows)}", "", picture, ""]
    if not lines:
        return []
    return [
        "## What it detects and what it misses",
        "",
        *lines,
        f"Share of samples of {n:,} rows in which it detects an error of each shape, at a level of 5%, in "
        "[the study](../study.md). The small pictures show the true probability of the event (vertical axis) for each "
        "stated probability (horizontal axis).",
        "",
    ]


def _studied_names(e: Entry) -> list[str]:
    """The numbers of a metric that are in the study."""
    return [name for name in StudyResult(stored()).names if name == e.id or name.startswith(f"{e.id}.")]


def _aliases(e: Entry) -> str:
    return ", ".join(f"{a} (`{a.words}`)" if isinstance(a, Alias) else a for a in e.aliases)


def _folded_names(e: Entry) -> list[str]:
    """A long list of names, to be opened."""
    if len(e.aliases) <= MOST_NAMES:
        return []
    return [f'??? info "Also called: {len(e.aliases)} names"', f"    {_aliases(e)}", ""]


def _response(e: Entry) -> list[str]:
    """Its value as a model gets worse, from stored numbers."""
    stored = json.loads((ROOT / "docs" / "responses.json").read_text())
    curves = stored["metrics"].get(e.id)
    if curves is None:
        return []
    return [
        "## How its value grows with the error",
        "",
        pictures.response(stored["strengths"], curves, e.name),
        "",
        f"Its value on {RESPONSE_ROWS} rows as a model moves away from calibrated (middle): predictions that are not "
        "extreme enough or too extreme, and predictions that are too low or too high. Where a line is flat, the metric "
        "does not respond to that error.",
        "",
    ]


def _studied(e: Entry) -> list[str]:
    """What the study of metrics against known truth found; of a metric of several numbers, for each of them."""
    found = StudyResult(stored())
    lines = [line for name in _studied_names(e) for line in _study_table(found, name, e.better == "perfect")]
    if not lines:
        why = found.found["left_out"].get(e.id)
        return ["## Results of the study", "", f"Not in [the study](../study.md): {why}.", ""] if why else []
    own = found.found["tests"].get("1000", {}).get(e.id)
    if own:
        lines += [
            f"Its own test on 1,000 rows detects {own['power']:.0%} of the errors, and rejects {own['level']:.0%} of "
            "calibrated samples.",
            "",
        ]
    about = (
        "The table has means over the worlds of [the study](../study.md), simulated models whose true error is known: "
        "errors detected at a level of 5%, and pairs of models put in the order of their true error."
    )
    return ["## Results of the study", "", *lines, about, ""]


def _study_table(found: Any, name: str, signed: bool) -> list[str]:
    shows = "a calibrated model shows (ideal ± mean distance)" if signed else "a calibrated model shows"
    head = ("rows", shows, "errors detected", "the same, 5% events", "pairs in the right order")
    rows = []
    for n in found.sizes:
        if name in found.found["sizes"][str(n)]:
            row = found.row(name, n)
            rare = (row.get("power_by_law") or {}).get("rare")
            shares = (row.get("power"), rare, row.get("across"))
            error = row.get("null")
            cells = ["" if error is None else shown(name, error), *(_shown(share, ".0%") for share in shares)]
            rows.append(f"| {n:,} | " + " | ".join(cells) + " |")
    part = [f"{_part(name)}:", ""] if "." in name else []
    return [*part, "| " + " | ".join(head) + " |", "|" + " ---: |" * len(head), *rows, ""] if rows else []


def _part(name: str) -> str:
    """One number of a metric that has several, in words and with the name to call it by."""
    words = name.partition(".")[2].replace("_", " ")
    return f"{words[0].upper()}{words[1:]} (`{name}`)"


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _facts(e: Entry) -> list[tuple[str, str]]:
    """All facts of the catalogue about a metric, in words."""
    weights = {
        "repetition": "a row of weight 2 counts as two equal rows",
        "rows": "used, but sizes of groups are numbers of rows",
        "none": "not accepted",
    }
    proper = {"no": "", "dataset": "a number of the whole data set, not a mean of row scores"}
    lens = (
        e.binary_lens
        if e.binary_lens == e.default_lens
        else f"{e.binary_lens} for two classes, {e.default_lens} for more"
    )
    test = f"`cal.test({e.id!r}, y, p)`" if e.has_test else "Monte Carlo"
    facts = [
        ("id", f"`{e.id}`"),
        ("also called", _aliases(e) if len(e.aliases) <= MOST_NAMES else f"{len(e.aliases)} names, below"),
        ("row in Table 2", str(e.row or "")),
        ("in the review", e.place if e.section else ""),
        ("newer than the review", "" if e.section else e.equation),
        ("family", f"[{FAMILY[e.family]}](family-{e.family}.md)" + (f", {e.subfamily}" if e.section else "")),
        ("pros in Table 2", "; ".join(e.table2.pros) if e.table2 else ""),
        ("cons in Table 2", "; ".join(e.table2.cons) if e.table2 else ""),
        ("range", _range(e) + (f" ({e.range_note})" if e.range_note else "")),
        ("ideal value", _ideal(e)),
        ("sign", e.sign),
        ("proper score", proper.get(e.proper, e.proper)),
        ("distance from calibration", e.robustness),
        ("test of calibration", test if e.null or e.has_test else f"none: {e.null_note}"),
        ("default lens", "" if e.family == "detection" else lens),
        ("needs", ", ".join(e.needs)),
        ("weights", weights.get(e.weights, e.weights) + (f": {e.weights_note}" if e.weights_note else "")),
        ("row order", "" if e.order_free else f"matters: {e.order_note}"),
        ("classes swapped", "the same value" if e.symmetric else ""),
        ("cost", e.cost),
        ("since", e.since + (", emerging: the definition may still change" if e.status == "emerging" else "")),
    ]
    return [(name, text.replace("|", "\\|").replace("\n", " ")) for name, text in facts]


def _corrections(e: Entry) -> list[str]:
    """Printed, right, and what proves it."""
    proofs = _proofs()
    rows = ["| about | the review says | right is | proved by |", "| --- | --- | --- | --- |"]
    return rows + [
        "| " + " | ".join(t.replace("|", "\\|") for t in (c.fact, c.review, c.ours, proofs[f"{e.id}: {c.fact}"])) + " |"
        for c in e.corrections
    ]


@functools.cache
def _proofs() -> dict[str, str]:
    """The test that proves each correction, "id: fact" by name, read from tests/lookup/test_errata.py."""
    tree = ast.parse((ROOT / "tests" / "lookup" / "test_errata.py").read_text("utf-8"))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            marks = [d for d in node.decorator_list if isinstance(d, ast.Call) and ast.unparse(d.func) == "proves"]
            found |= {ast.literal_eval(p): _told(f"test_errata.py::{node.name}") for m in marks for p in m.args}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("ELSEWHERE", "WORDS"):
            found |= {place: _told(said) for place, said in ast.literal_eval(node.value).items()}
    return found


def _told(proof: str) -> str:
    """A test by what it promises, with its file; words as they are."""
    file, _, name = proof.rpartition("::")
    return f"*{name.removeprefix('test_').replace('_', ' ')}* (`{file}`)" if file else proof


def errata_page(entries: list[Entry]) -> str:
    with_errata = [e for e in entries if e.corrections]
    total = sum(len(e.corrections) for e in with_errata)
    tested = sum(".py`" in _proofs()[f"{e.id}: {c.fact}"] for e in with_errata for c in e.corrections)
    lines = [
        "# Errata of the review",
        "",
        "calibrary follows R. O. Lane, *A comprehensive review of classifier probability calibration metrics*, except "
        "where an equation or a statement there is a misprint or differs from the papers it cites. "
        f"Here are {total} such places: what the review says, what is right, and the test that proves it. {tested} of "
        "them have a test in `tests/`, which shows by numbers that the printed claim fails or that ours holds. "
        "The name of a test, in italics, says what it checks (`pytest -k largest_brier` runs one). The others are "
        "about names and sources, where there is nothing to compute. Tests also compare each metric with a slow "
        "literal definition (`tests/metrics/test_definitions.py`).",
        "",
        _FILTER,
    ]
    for e in with_errata:
        row = f" (row {e.row})" if e.row else ""
        lines += ["", f"## [{heading(e)}](metrics/{e.id}.md){row}", "", *_corrections(e)]
    return "\n".join(lines)


# -- command line ------------------------------------------------------------------------------------


def names_page(entries: list[Entry]) -> str:
    """Every name of every metric, and the number it means."""
    names = {n for e in entries for n in (e.id, e.name, *map(str, e.aliases), e.function.__name__)}
    lines = [
        "# Which name means which number",
        "",
        f"`compute`, `interval`, `test`, `evaluate` and the command line take these {len(names)} names; "
        "case, dashes, spaces and underscores do not matter. A name that implies settings gives the metric with these "
        "settings. [One name, several metrics](names.md) lists the names with several meanings and the names that "
        "other packages use.",
        "",
        _FILTER,
        "",
        "| name | is | with |",
        "| --- | --- | --- |",
    ]
    lines += [_meaning(name) for name in sorted(names, key=lambda n: (n.lower(), n))]
    lines += ["", "## Names with another use", "", "| name | here | elsewhere also |", "| --- | --- | --- |"]
    return "\n".join(
        lines + [f"| {n} | {_linked_id(e)} | {other} |" for e in entries for n, other in e.homonyms.items()]
    )


def _meaning(name: str) -> str:
    """What the name means, and what else it may mean, which look-up says once."""
    found, *others = _ranked(name)
    is_, with_ = _linked_id(found), f"`{found.called.words}`" if found.called else ""
    if others:
        said = [_linked_id(e) + (f" with `{e.called.words}`" if e.called else "") for e in others]
        is_ += f"; it may also mean {' or '.join(said)}"
    return f"| {name.replace('|', chr(92) + '|')} | {is_} | {with_} |"


def _linked_id(e: Entry) -> str:
    return f"[{heading(e)}](metrics/{e.id}.md) (`{e.id}`)"


#: Kinds of public names, each with its title on the page.
_KINDS = {
    "verb": "Functions", "table": "Tables and curves", "noun": "Classes to construct, warnings and errors",
    "room": "Modules", "extra": "Modules for other packages", "metric": "Metrics", "test": "Tests of single metrics",
    "helper": "Relatives of single metrics", "result": "Results, in calibrary.results",
}  # fmt: skip


def public_page() -> str:
    """The table of public names, each with its first sentence."""
    listed = sum(row.listed for row in PUBLIC.values())
    lines = [
        "# Public names", "",
        f"`dir(calibrary)` lists {listed} names. The {len(PUBLIC) - listed} others here can be used in the same "
        "way; the classes of results are in `calibrary.results` as well.", "",
    ]  # fmt: skip
    for kind, title in _KINDS.items():
        rows = [_public_row(row) for name, row in sorted(PUBLIC.items()) if row.kind == kind]
        lines += [f"## {title}", "", "| name | | since |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _public_row(row: Name) -> str:
    ids = {f.__name__: id for id, f in FUNCTIONS.items()} | {t.function.__name__: id for id, t in TESTS.items()}
    shown = f"[`{row.name}`](metrics/{ids[row.name]}.md)" if row.name in ids else f"`{row.name}`"
    says = markdown(_text_of(row).split("\n")[0]).replace("|", "\\|")
    return f"| {shown} | {says} | {row.since} |"


def _text_of(row: Name) -> str:
    """The docstring; that of a module is read without loading it, because its package may be missing."""
    if row.kind not in ("room", "extra"):
        return inspect.getdoc(getattr(cal, row.name)) or ""
    found = importlib.util.find_spec(row.module)
    return ast.get_docstring(ast.parse(Path(str(found and found.origin)).read_text(encoding="utf-8"))) or ""


#: A terminal without colors whose lines fit the page.
PLAIN = {"COLUMNS": "86", "TERMINAL_WIDTH": "86", "NO_COLOR": "1", "TERM": "dumb"}


def command_line_page() -> str:
    os.environ.update(PLAIN)  # read when the help's console is first imported
    lines = [
        "# Command line",
        "",
        "This page has the help of every command. The program is called `calibrary`; `python -m calibrary` does the "
        "same. [Files](files.md) says what the commands read and write, and [gates](gates.md) how they fail a build.",
        "",
    ]
    for command in _commands(()):
        lines += [f"## calibrary {' '.join(command)}".rstrip(), "", "```text", _help(command), "```", ""]
    return "\n".join(lines)


def _commands(prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
    """This command and those below it, depth first."""
    import typer

    from calibrary.cli.main import app

    group: Any = typer.main.get_command(app)
    for name in prefix:
        group = group.commands[name]
    below = [c for name in getattr(group, "commands", {}) for c in _commands((*prefix, name))]
    return [prefix, *below]


def _help(command: tuple[str, ...]) -> str:
    from typer.testing import CliRunner

    from calibrary.cli.main import app

    said = CliRunner().invoke(app, [*command, "--help"], prog_name="calibrary", env=PLAIN, catch_exceptions=False)
    return "\n".join(line.rstrip() for line in said.stdout.strip("\n").splitlines())


# -- other packages ----------------------------------------------------------------------------------


def other_packages_page() -> str:
    """Why does package X give another number? From the calls of the benchmark and what its last run found."""
    rows = _measured()["rows"]
    lines = [
        "# Why does package X give another number?",
        "",
        *_package_pages(),
        "",
        "## All differences in the benchmark",
        "",
        "Metrics with [one name](names.md) may have different definitions: bin edges, numbers of bins, lenses, norms, "
        "factors. Some packages also give a wrong number for an ordinary call. This list has every difference in the "
        "[benchmark](benchmark.md), by package, with the calibrary call that gives the other package's number, if "
        "there is one. `y` are labels, `c` the probability of class 1, `p` one column per class; values are from the "
        "last run, on the data named.",
        "",
    ]
    for name in sorted(calls.PACKAGES, key=str.lower):
        lines += _package(name, rows)
    return "\n".join(lines)


def _package_pages() -> list[str]:
    """A page for each package that gives another number, with a few lines that reproduce both."""
    lines = ["Each page has a few lines of code that give the other package's number and ours.", ""]
    for path in sorted((ROOT / "docs" / "packages").glob("*.md")):
        text = path.read_text("utf-8")
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        heads = [h.replace("`", "`") for h in re.findall(r"^## (.+)$", text, re.MULTILINE)]
        assert title is not None, path
        lines.append(f"- [{title[1]}](packages/{path.name}): {'; '.join(heads)}")
    return lines


def _package(name: str, rows: list[dict[str, Any]]) -> list[str]:
    """One package: its calls, their results, and why they differ from ours."""
    found = [(task, p) for task in (*calls.SURPRISES, *calls.TASKS) for p in task.peers if p.package == name]
    differing = [(task, p) for task, p in found if p.why]
    agreeing = sorted({task.title for task, p in found if not p.why})
    lines = [f"### {name}", ""]
    if agreeing:
        lines += [f"Same number as calibrary: {'; '.join(agreeing)}.", ""]
    for task, peer in differing:
        lines += [
            f"**{task.title}** ({task.data}): {peer.why}.",
            "",
            f"- {name}: `{peer.call}`{_value(rows, task, peer, 'theirs')}",
        ]
        lines.append(f"- calibrary: `{task.ours}`{_value(rows, task, peer, 'ours')}")
        if peer.same:
            lines.append(f"- their number: `{peer.same}`{_value(rows, task, peer, 'same')}")
        lines.append("")
    return lines


def _value(rows: list[dict[str, Any]], task: calls.Task, peer: calls.Peer, side: str) -> str:
    here = [r for r in rows if r["task"] == task.id and r["package"] == peer.package]
    if not here:
        return ""
    row = next((r for r in here if r["n"] == 10_000), here[0])
    if side == "same":
        return f" gives {results.number(row['same'])}" if row["same"] is not None else ""
    answer = row[side]
    return f" gives {results.number(answer['value'])}" if "value" in answer else f" says *{answer['error']}*"


def _measured() -> dict[str, Any]:
    path = ROOT / "benchmarks" / "results.json"
    return json.loads(path.read_text()) if path.exists() else {"rows": []}


def benchmark_page() -> str:
    path = ROOT / "benchmarks" / "RESULTS.md"
    return (
        path.read_text()
        if path.exists()
        else "# calibrary compared with other packages\n\nNot measured yet: run `make bench`."
    )


# -- figures -----------------------------------------------------------------------------------------


#: Chapters of the gallery, and how the names of their figures begin.
_CHAPTERS = {
    "Reliability diagrams": ("reliability-line", "reliability-", "theory"),
    "Curves without bins": ("smooth", "corp", "cumulative"),
    "Scores, decisions and abstention": ("brier", "murphy", "decision", "risk-coverage"),
    "Segments, hidden groups and time": ("segments", "monitor", "reliability-map", "grouping"),
    "Several classes": ("simplex", "set-coverage"),
    "Object detection": ("detection", "d-ece"),
    "Tests, recalibration and overviews": ("null", "recalibration", "metrics", "family-tree", "overview"),
}


def _chapter(name: str) -> str:
    """The chapter of a figure: the one with the longest beginning of its name."""
    fits = [(len(start), title) for title, starts in _CHAPTERS.items() for start in starts if name.startswith(start)]
    return max(fits)[1]


def figures_page(draw: bool) -> str:
    """The gallery: a small picture of every figure, which leads to a page with the figure and its call."""
    import matplotlib.pyplot as plt

    from calibrary import gallery

    setup, shown = gallery_code(Path(gallery.__file__).read_text())
    lines = [
        "---\nhide: [toc]\n---",
        "# Gallery",
        "",
        "Each picture leads to the figure and to the call that draws it. The data sets come with calibrary; "
        "`python -m calibrary.gallery OUT` draws all figures again as PNG and SVG. Every figure has a function that "
        "gives its numbers ([reference](api/plots.md)).",
        "",
    ]
    every = gallery.figures() if draw else {}
    for title in _CHAPTERS if draw else ():
        lines += [f"## {title}", "", '<div class="gallery" markdown>', ""]
        for name in [name for name in every if _chapter(name) == title]:
            made = every[name]()
            figure = getattr(made, "figure", made)
            figure.savefig(OUT / "figures" / f"{name}.png", dpi=80, bbox_inches="tight")
            plt.close(figure)
            write(f"figures/{name}.md", figure_page(name, setup, shown[name]))
            words = _figure_name(name)
            lines.append(f'- [![{words}](figures/{name}.png){{ loading="lazy" }} {words}](figures/{name}.md)')
        lines += ["", "</div>", ""]
    return "\n".join(lines)


def figure_page(name: str, setup: str, call: str) -> str:
    """One figure: what it shows, the figure, and lines that can be pasted."""
    drawn_by = re.findall(r"plots\.(\w+)", call)[-1]
    says = markdown((inspect.getdoc(getattr(cal.plots, drawn_by)) or "").split("\n")[0])
    return "\n".join(
        [
            f"# {_figure_name(name)}",
            "",
            says,
            "",
            f"![{_figure_name(name)}]({name}.png){{ .figure }}",
            "",
            "```python",
            call,
            "```",
            "",
            f"The options of `{drawn_by}` are in the [reference](../api/plots.md).",
            "",
            '??? example "The data: run this first"',
            "    ```python",
            *(f"    {line}".rstrip() for line in setup.splitlines()),
            "    ```",
        ]
    )


#: Figures of which there are several, and which a colon tells apart.
_PREFIXES = "reliability|smooth|CORP|cumulative|decision|risk coverage|simplex|overview|D-ECE"


def _figure_name(name: str) -> str:
    if name == "theory":
        return "What calibration means"
    words = name.replace("d-ece", "D-ECE").replace("corp", "CORP").replace("loess", "LOESS").replace("-", " ")
    words = re.sub(rf"^({_PREFIXES}) (?!map$)", r"\1: ", words.replace("D ECE", "D-ECE"))
    return f"{words[0].upper()}{words[1:]}"


def gallery_code(source: str) -> tuple[str, dict[str, str]]:
    """The lines that make the gallery's data, and the call that draws each figure."""
    made = next(n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == "figures")
    data = [n for n in made.body if isinstance(n, ast.Assign)]
    known = """\
import numpy as np
from importlib.resources import files
import calibrary as cal
from calibrary import plots
from calibrary.gallery import Synthetic

"""
    inner = {n.name: n.body for n in made.body if isinstance(n, ast.FunctionDef)}
    table = next(n.value for n in made.body if isinstance(n, ast.Return))
    assert isinstance(table, ast.Dict)
    shown = {}
    for key, value in zip(table.keys, table.values, strict=True):
        assert isinstance(key, ast.Constant)
        if isinstance(value, ast.Lambda):
            code = ast.unparse(value.body)
        elif isinstance(value, ast.Name):
            code = "\n".join(ast.unparse(n).removeprefix("return ") for n in inner[value.id])
        else:
            code = f"{ast.unparse(value)}()"
        code = re.sub(r",? ?\*\*(o|theme)\b", "", code)
        shown[key.value] = code.replace("_ERRORS", repr(tuple(gallery_errors(source))))
    return known + "\n".join(ast.unparse(n) for n in data), shown


def gallery_errors(source: str) -> list[str]:
    found = next(
        n for n in ast.parse(source).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "_ERRORS"
    )
    return list(ast.literal_eval(found.value))


def draw_lens_figure(path: Path) -> None:
    """The same predictions as P(class 1) and as the predicted class."""
    import matplotlib.pyplot as plt
    import numpy as np

    rng = np.random.default_rng(0)
    c = rng.beta(0.8, 0.8, 4000)
    y = (rng.random(len(c)) < np.where(c < 0.5, 0.6 * c, 0.95 * c)).astype(int)
    fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    for ax, lens, title in zip(axes, ("binary", "top-label"), ("P(class 1)", "the predicted class"), strict=True):
        bins = cal.reliability_bins(y, c, lens=lens, n_bins=20)
        ax.plot([0, 1], [0, 1], color="0.6", lw=1)
        ax.plot(bins.confidence, bins.outcome, "o-", ms=4)
        ece = cal.expected_calibration_error(y, c, lens=lens, n_bins=20)
        ax.set(
            title=f'{title}: lens="{lens}", ECE {ece:.3f}',
            xlabel="confidence",
            ylabel="frequency",
            xlim=(0, 1),
            ylim=(0, 1),
        )
        ax.set_aspect("equal")
    axes[1].axvspan(0, 0.5, color="0.93")
    fig.savefig(path, dpi=110)
    plt.close(fig)


if __name__ == "__main__":
    main(figures="--no-figures" not in sys.argv[1:])
