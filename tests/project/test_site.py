"""The site: stored pages are fresh, snippets of the README run, dead links are found."""

from __future__ import annotations

import contextlib
import html
import importlib.util
import io
import json
import re
import shlex
from pathlib import Path
from string import ascii_letters

import pytest

import calibrary as cal
from paths import ROOT

if not (ROOT / "scripts").exists():
    pytest.skip("not a checkout", allow_module_level=True)


def _script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tutorials, links = _script("make_tutorials"), _script("check_links")


def test_stored_pages_were_made_from_their_sources():
    assert tutorials.stale() == [], "run `make tutorials`"


def test_a_page_is_run_and_stored_with_what_it_prints_and_draws(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("matplotlib.pyplot").close("all")  # figures that other tests left open are not the page's
    for name in ("ROOT", "PAGES", "DOCS"):
        monkeypatch.setattr(tutorials, name, tmp_path / {"ROOT": "", "PAGES": "pages", "DOCS": "docs"}[name])
    source = tmp_path / "pages" / "short.py"
    source.parent.mkdir()
    source.write_text(
        "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nimport matplotlib.pyplot as plt\nx = 2\nprint('two')\nx + 1\n"
        "\n# %%\nplt.plot([0, x])\nplt.title('A line');\n"
    )
    (tmp_path / "docs").mkdir()
    tutorials.run_page(source)
    text = (tmp_path / "docs" / "short.md").read_text()
    assert "# Title\n\nWords." in text
    assert "``` { .text .output }\ntwo\n3\n```" in text
    assert "![A line](short-1.png)" in text
    assert (tmp_path / "docs" / "short-1.png").exists()
    assert tutorials.stale() == []
    source.write_text(source.read_text().replace("x = 2", "x = 3"))
    assert tutorials.stale() == [str(tmp_path / "docs" / "short.md")]


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ('<a href="gone.html">', "gone.html does not exist"),
        ('<a href="b.html#there">', None),
        ('<a href="b.html#gone">', "b.html#gone has no such anchor"),
        ('<a href="#gone">', "#gone has no such anchor"),
        ('<img src="../x.png">', "../x.png leaves the site"),
        ('<script src="https://example.org/x.js">', "https://example.org/x.js is loaded from another address"),
        ('<a href="https://example.org">', None),
    ],
)
def test_a_link_that_leads_nowhere_is_named(tmp_path, link, said):
    (tmp_path / "index.html").write_text(f"<p>{link}")
    (tmp_path / "b.html").write_text('<h2 id="there">')
    assert links.dead_links(tmp_path) == ([] if said is None else [f"index.html: {said}"])


def test_a_word_that_the_search_does_not_find_is_reported(tmp_path):
    (tmp_path / "search").mkdir()
    entry = {"location": "maps.html#two-words", "title": "Maps", "text": "<p>Platt scaling</p>"}
    (tmp_path / "search" / "search_index.json").write_text(json.dumps({"docs": [entry]}))
    assert links.unfound(tmp_path, {"platt": "maps.html", "Maps": "maps.html"}) == []
    assert links.unfound(tmp_path, {"Platt": "glossary.html"}) == ["the search does not find 'Platt' on glossary.html"]
    assert len(links.unfound(tmp_path, {"Plat": "maps.html"})) == 1


# -- snippets ----------------------------------------------------------------------------------------


def _blocks(page: str, language: str) -> list[tuple[str, str]]:
    """Code of a page, each with the text block that follows it at once (what it prints)."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"```{language}\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert found, f"{page} has no {language} block"
    return found


#: Hand-written pages whose snippets run from top to bottom as they stand; test_pages.py has docs/beyond.md.
SNIPPETS = ["README.md"] + [
    f"docs/{name}.md"
    for name in (
        "index", "lenses", "binary-or-top-label", "gates", "weights", "integrations", "uncertainty", "shift",
        "ensembles", "outside", "language",
    )
]  # fmt: skip


@pytest.mark.parametrize("page", SNIPPETS)
def test_snippets_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    if page == "docs/integrations.md":
        pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    space: dict = {}
    for code, said in _blocks(page, "python"):
        quick = re.sub(r"^cal\.report\(.*\n", "", code, flags=re.MULTILINE)  # seconds each, and tested by themselves
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(quick, page, "exec"), space)
        if said:
            assert out.getvalue() == said
    for name in [name for name in space if name.startswith("test_")]:
        space[name]()  # a test that the page shows passes


def test_commands_of_the_readme_run(tmp_path, monkeypatch):
    typer_testing = pytest.importorskip("typer.testing")
    from calibrary.cli.main import app

    monkeypatch.chdir(tmp_path)
    y, p, _ = cal.datasets.breast_cancer()
    rows = "\n".join(f"{a},{b}" for a, b in zip(y, p, strict=True))
    Path("predictions.csv").write_text(f"outcome,risk\n{rows}\n")
    lines = [line for code, _ in _blocks("README.md", "sh") for line in code.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("calibrary ")]
    assert len(commands) == 4
    for command in commands:
        quick = ["--resamples", "19"] if command[0] == "report" else []
        result = typer_testing.CliRunner().invoke(app, command + quick)
        assert result.exit_code == 0, f"{command}: {result.output}"
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {line.split()[1] for line in lines if line.startswith("make ")} <= set(targets)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_the_repository_lead_to_its_files(page):
    """A forge shows these pages without the site, so pages that are made for it do not count."""
    for link in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_the_readme_counts_what_there_is():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(cal.catalogue)} metrics, among them all 82" in text.replace("\n", " ")
    measured = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    timed, ahead = re.search(r"(\d+) timed comparisons; calibrary is faster in (\d+)", measured).groups()
    assert f"faster in {ahead} of {timed} timed comparisons" in text.replace("\n", " ")


# -- parts of the site -------------------------------------------------------------------------------


def test_formulas_become_mathml():
    pytest.importorskip("latex2mathml")
    page = r'<p>a <span class="arithmatex">\(c_k \le 1\)</span> b</p><div class="arithmatex">\[\sum_i x_i\]</div>'
    made = _script("mathml").replaced(page)
    assert made.count("<math") == 2
    assert 'display="block"' in made
    assert "\\" not in made
    assert "&#x02264;" in made or "≤" in made or "&#x02A7D;" in made


def test_brackets_made_large_by_hand_fit_what_they_hold():
    pytest.importorskip("latex2mathml")
    convert = _script("mathml").mathml
    for latex in (r"\Big(\sum_b x_b\Big)^2", r"\int \Big| \frac{1}{W} \Big| dt", r"\big\| a - b \big\|_p"):
        made = convert(latex, True)
        assert made.count('stretchy="true"') == 2
        assert "minsize" not in made
    assert "munder>" in convert(r"\left(\sum_b x_b\right)^2", True)  # and the index stays below
    assert "munder>" not in convert(r"\left(\sum_b x_b\right)^2", False)
    assert "minsize" in convert(r"a \Big( b", True)  # one alone stays as it is


def test_every_formula_of_a_docstring_can_be_converted():
    pytest.importorskip("latex2mathml")
    pytest.importorskip("griffe")
    monkey = _script("docstrings")
    convert = _script("mathml").mathml
    for entry in cal.catalogue.values():
        formula = monkey.formula(entry.function.__doc__ or "")
        if formula:
            assert not re.search(r"<mi>\\\\?[A-Za-z]", convert(formula, True)), f"{entry.id}: {formula}"


def test_what_a_value_means_is_not_shown_as_its_type():
    pytest.importorskip("griffe")
    described = _script("docstrings").described
    text = (
        "A table.\n\nx : not in a list\n\nAttributes\n----------\nlow, high : ends of the interval\n    in their order"
    )
    assert described(text).endswith("low, high\n    ends of the interval\n    in their order")
    assert "x : not in a list" in described(text)
    for kind in ("int, optional", '"left" or "right"', "array-like of shape (N,)", "int, Generator or None"):
        item = f"Parameters\n----------\nx : {kind}\n    What it is."
        assert described(item) == item


def test_the_font_has_every_sign_of_the_formulas():
    """Also the slanted letters that a browser takes for a variable, and the parts of stretched brackets."""
    pytest.importorskip("latex2mathml")
    pytest.importorskip("griffe")
    tables = pytest.importorskip("fontTools.ttLib")
    font = tables.TTFont(ROOT / "docs/fonts/stix-two-math.woff")
    docstrings, convert = _script("docstrings"), _script("mathml").mathml
    signs: set[str] = set()
    for entry in cal.catalogue.values():
        formula = docstrings.formula(entry.function.__doc__ or "")
        made = html.unescape(re.sub(r"<[^>]+>", "", convert(formula, True))) if formula else ""
        signs |= set(made) - set(" \n")
    slanted = {
        chr(0x1D434 + ord(s) - 65) if s < "a" else chr(0x1D44E + ord(s) - 97) for s in signs if s in ascii_letters
    }
    slanted = {"\u210e" if s == "\U0001d455" else s for s in slanted}  # the place of the slanted h is elsewhere
    assert len(signs) > 60
    assert {s for s in signs | slanted if ord(s) not in font.getBestCmap()} == set()
    stretched = font["MATH"].table.MathVariants.VertGlyphCoverage.glyphs
    assert {font.getBestCmap()[ord(s)] for s in "()[]{}|∑√"} <= set(stretched)


def test_the_picture_of_a_metric_shows_its_stored_response():
    made = _script("pictures").response(
        [-1.0, 0.0, 1.0], {"spread": [0.2, 0.0, 0.4], "shift": [0.1, 0.0, 0.1]}, "x & y"
    )
    assert made.count("<polyline") == 2
    assert "x &amp; y" in made
    assert ">0.4<" in made  # the largest value is on the axis


def test_responses_are_stored_for_the_metrics_of_two_classes():
    stored = json.loads((ROOT / "docs/responses.json").read_text())
    assert set(stored["metrics"]) <= set(cal.catalogue)
    middle = len(stored["strengths"]) // 2
    for id in ("ece", "smece", "ecce_mad", "hl"):
        line = stored["metrics"][id]["spread"]
        assert line[middle] < line[0]
        assert line[middle] < line[-1]


def test_every_stored_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text()
    for source in tutorials.sources():
        assert f"- {tutorials.stored(source).relative_to(tutorials.DOCS).as_posix()}\n" in nav


def test_the_quick_start_prints_what_its_page_shows(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    source, space = ROOT / "pages/quick-start.py", {}
    page = tutorials.stored(source).read_text(encoding="utf-8")
    for cell in tutorials.cells(source.read_text(encoding="utf-8")):
        if cell.kind == "code" and "cal.report(" not in cell.text:  # seconds, and tested by itself
            said = tutorials._run(cell.text, space, source)
            assert f"```python\n{cell.text}\n```" in page
            assert said in page
    tutorials._close()
    assert page.count(".png)") >= 2


@pytest.mark.parametrize("source", sorted((ROOT / "pages/packages").glob("*.py")), ids=lambda p: p.stem)
def test_pages_about_packages_reproduce_both_numbers(source):
    """Their assertions hold; the slow definition on relplot's page is left to `make tutorials`."""
    if source.stem in ("relplot", "mcgrad"):
        pytest.skip("make tutorials runs this page")
    if source.stem == "scikit-learn":
        pytest.importorskip("sklearn")
    text = source.read_text(encoding="utf-8")
    code = "\n".join(cell.text for cell in tutorials.cells(text) if cell.kind == "code")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, str(source), "exec"), {})
    for line in out.getvalue().splitlines():  # and the stored page says what the code says today
        assert line.rstrip() in tutorials.stored(source).read_text(encoding="utf-8")
