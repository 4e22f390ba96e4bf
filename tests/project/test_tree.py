"""The rules of the house, read from the tree: each fact, verb, draw, class and public name has one place."""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import re
from collections.abc import Iterator

import pytest

import calibrary as cal
import sources

NAMES = {path.relative_to(sources.SRC).as_posix(): path for path in sorted(sources.SRC.rglob("*.py"))}
#: What a person chooses to show or to optimize is a choice, not a fact about a metric.
CHOICES = (
    "cli/",
    "gallery.py",
    "inference/methods/scales.py",  # for which metrics there is a scale and a variance
    "inspect_ai.py",
    "lookup/review_tables.py",
    "plots/",
    "recalibrate/scores.py",
    "reporting/",
    "scale/losses.py",
    "study/",
    "trial/",  # for which metrics there is a formula
    "validation/measures.py",
)
IDS = set(cal.catalogue)
KINDS = re.compile(r"\b(Matches|Predictions|\w*Sample|\w+Cells|LabelRows)\b")
#: Below or beside the rule: data itself, and rooms whose own classes these are.
MAY_ASK = ("data/", "scale/", "losses/")

TAG = re.compile(r"(?<!\?P)</?([a-zA-Z][\w-]*[\s/>]|\{)|<[!?][a-z]", re.IGNORECASE)
#: Those who take apart what Matplotlib drew, and write down what is allowed of it.
PICTURES = ("reporting/figures.py", "reporting/safe_svg.py")


def _nodes() -> Iterator[tuple[str, ast.AST]]:
    return ((name, node) for name, path in NAMES.items() for node in sources.nodes(path))


@functools.cache
def _docstrings() -> set[int]:
    return {id(node.value) for _, node in _nodes() if isinstance(node, ast.Expr)}


def _begins_a_tag(node: ast.AST) -> bool:
    parts = node.values if isinstance(node, ast.JoinedStr) else [] if id(node) in _docstrings() else [node]
    texts = [part.value if isinstance(part, ast.Constant) else "{" for part in parts]
    return all(isinstance(text, str) for text in texts) and bool(parts) and bool(TAG.search("".join(texts)))


def _escapes(node: ast.AST) -> bool:
    named = isinstance(node, ast.Attribute) and ast.unparse(node) == "html.escape"
    return named or (isinstance(node, ast.ImportFrom) and node.module in ("html", "xml.sax.saxutils"))


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _ids(node: ast.AST) -> list[str]:
    parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    known = [part.value for part in parts if isinstance(part, ast.Constant) and part.value in IDS]
    return known if len(known) >= 2 and len(known) > len(parts) / 2 else []


def _asks_the_kind(node: ast.AST) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
    return called and bool(KINDS.search(ast.unparse(node.args[1])))


#: Rooms whose refusals may reach a table of metrics, which knows them by their type.
MUST_REFUSE = (
    "data/", "diagnostics/", "evaluation.py", "grouping/", "inference/", "kernels/", "lookup/", "maps/", "metrics/",
    "models/", "numerics/", "question.py", "recalibrate/",
)  # fmt: skip


def _refuses_without_the_type(node: ast.AST) -> bool:
    raised = node.exc if isinstance(node, ast.Raise) else None
    return isinstance(raised, ast.Call) and ast.unparse(raised.func) in ("ValueError", "TypeError")


RULES = {
    "a table of metric ids": (("metrics/", *CHOICES), lambda node: bool(_ids(node))),
    "a question which kind of data this is": (MAY_ASK, _asks_the_kind),
    "a refusal that is not a RefusedError": (
        tuple(name for name in NAMES if not name.startswith(MUST_REFUSE)),
        _refuses_without_the_type,
    ),
    "import *": ((), lambda node: isinstance(node, ast.ImportFrom) and node.names[0].name == "*"),
    "a tag written by hand": (("base/markup.py", *PICTURES), _begins_a_tag),
    "text escaped by hand": (("base/markup.py",), _escapes),
    "markup that is not made of elements": (
        ("base/markup.py", "reporting/safe_svg.py"),
        lambda node: _calls(node, "Markup"),
    ),
    "a style sheet or a script of another file": (
        ("base/markup.py", "gallery.py", "reporting/html.py", "reporting/write.py", "reporting/watched.py"),
        lambda node: _calls(node, "own"),
    ),
    "catch_warnings": ((), lambda node: isinstance(node, ast.Attribute) and node.attr == "catch_warnings"),
}


BROKEN = {
    "a tag written by hand": ('f"<{x}>"', 'f"a<b class={x}>"', '"</p>"', '"<!doctype html>"'),
    "text escaped by hand": ("html.escape(x)", "from html import escape", "from xml.sax.saxutils import quoteattr"),
    "markup that is not made of elements": ("Markup(x)",),
    "a style sheet or a script of another file": ("own(x)",),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_rule_of_markup_sees_what_breaks_it(rule):
    for line in BROKEN[rule]:
        assert any(map(RULES[rule][1], ast.walk(ast.parse(line).body[0]))), line
    for line in ('"a < b"', 'r"(?P<name>x)"', '"<i8"', "re.escape(x)", "element(x)"):
        assert not any(map(RULES[rule][1], ast.walk(ast.parse(line).body[0]))), line


@pytest.mark.parametrize("rule", RULES)
def test_the_tree_has_no(rule):
    exempt, broken = RULES[rule]
    assert [f"{name}:{node.lineno}" for name, node in _nodes() if not name.startswith(exempt) and broken(node)] == []


def test_a_class_name_is_defined_once():
    named = collections.Counter(node.name for _, node in _nodes() if isinstance(node, ast.ClassDef))
    assert [name for name, times in named.items() if times > 1] == []


#: How many messages about ``y_true`` or ``y_prob`` a room still raises instead of ``data``. The numbers only shrink.
SPEAK_OF_INPUT = {
    "inference": 6, "language": 4, "lookup": 1, "losses": 13, "metrics": 6, "plots": 1, "recalibrate": 1, "scale": 5,
    "secondorder": 7, "shift": 5, "sklearn": 2, "study": 1, "trial": 6, "validation": 1,
}  # fmt: skip


def _raises_about_input(node: ast.AST) -> bool:
    """Whether the message of an error names one of the two arguments of every metric."""
    given = node.exc.args if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else ()
    texts = [c.value for argument in given for c in ast.walk(argument) if isinstance(c, ast.Constant)]
    return any(isinstance(text, str) and ("y_true" in text or "y_prob" in text) for text in texts)


def test_only_data_speaks_of_labels_and_probabilities():
    rooms = collections.Counter(name.partition("/")[0] for name, node in _nodes() if _raises_about_input(node))
    assert {room: n for room, n in rooms.items() if room != "data"} == SPEAK_OF_INPUT, "move the message to data/"


_INLINED = ast.ListComp | ast.SetComp | ast.DictComp


def _names(node: ast.AST, kind: type[ast.expr_context]) -> set[ast.Name]:
    return {n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}


def _hidden_by_a_comprehension(module: ast.AST) -> set[str]:
    """Names of Python, such as ``id``, that one comprehension of a function assigns and another place of it reads."""
    found = set()
    for function in (n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)):
        inner = [c for c in ast.walk(function) if isinstance(c, ast.GeneratorExp | _INLINED)]
        targets = {c: set().union(*(_names(g.target, ast.Store) for g in c.generators)) for c in inner}
        hidden = {n.id for c in inner if isinstance(c, _INLINED) for n in targets[c]} & set(dir(builtins))
        if not hidden:
            continue
        own = {n.id for n in _names(function, ast.Store).difference(*targets.values())}
        own |= {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}
        for name in hidden - own:
            within = (_names(c, ast.Load) for c in inner if name in {n.id for n in targets[c]})
            found |= {n.id for n in _names(function, ast.Load).difference(*within) if n.id == name}
    return found


def test_a_comprehension_hides_no_name_of_python_that_its_function_reads():
    """Python 3.12.0 to 3.12.3 (Ubuntu 24.04) lose such a name: a page of several models was an error there."""
    bad = "def f(x, ids):\n    top = [id for id in ids]\n    return top, {id(r): r for r in x}"
    assert _hidden_by_a_comprehension(ast.parse(bad)) == {"id"}
    for path in sources.SRC.rglob("*.py"):
        assert not _hidden_by_a_comprehension(sources.nodes(path)[0]), path
