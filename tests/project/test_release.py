"""A release is one version in every place, and the workflows test what pyproject promises."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import tomllib

import pytest

import calibrary as cal
from paths import ROOT

yaml = pytest.importorskip("yaml")

if not (ROOT / ".github").exists():
    pytest.skip("not a checkout", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}


def _script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    recipe = re.search(r'set version = "(.+)"', (ROOT / "conda/meta.yaml").read_text())[1]
    in_r = re.search(r"^Version: (.+)$", (ROOT / "r/DESCRIPTION").read_text(), re.MULTILINE)[1]
    newest = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert {citation["version"], recipe, in_r, newest[1]} == {cal.__version__}
    assert citation["date-released"] == newest[2]


def test_a_tag_that_is_not_the_version_is_refused():
    check = _script("check_wheel").check_tag
    check(f"v{cal.__version__}")
    with pytest.raises(AssertionError, match="the tag is v9"):
        check("v9.9.9")


def test_the_notes_of_a_release_are_its_chapter_alone():
    notes = _script("release_notes").notes
    text = "# Changelog\n\n## 0.2.0 (2026-11-16)\n\nNew.\n\n### Added\n- a\n\n## 0.1.0 (x)\n\nFirst.\n"
    assert notes("v0.2.0", text) == "New.\n\n### Added\n- a"
    assert notes("0.1.0", text) == "First."
    with pytest.raises(SystemExit):
        notes("0.3.0", text)


def _recipe():
    """The recipe as conda reads it: names in double braces replaced, then YAML."""
    text = (ROOT / "conda/meta.yaml").read_text(encoding="utf-8")
    known = {**dict(re.findall(r'{% set (\w+) = "(.+)" %}', text)), "PYTHON": "python"}
    text = re.sub(r"^{%.*%}$", "", text, flags=re.MULTILINE)
    return yaml.safe_load(re.sub(r"{{ (\w+) }}", lambda m: known[m[1]], text))


def test_the_recipe_asks_for_what_the_project_asks_for():
    recipe = _recipe()
    run = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    assert run == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert {"pip", "hatchling"} <= set(recipe["requirements"]["host"])
    extras = {r for group in PROJECT["optional-dependencies"].values() for r in group}
    names = {"matplotlib-base": "matplotlib", "pytorch": "torch"}  # what conda calls them
    for line in recipe["requirements"]["run_constrained"]:
        name, bound = line.split()
        assert f"{names.get(name, name)}{bound}" in extras, line


def test_the_recipe_is_that_of_the_project():
    recipe = _recipe()
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["license_file"] in PROJECT["license-files"]
    scripts = [f"{name} = {where}" for name, where in PROJECT["scripts"].items()]
    assert recipe["build"]["entry_points"] == scripts
    for command in recipe["test"]["commands"]:
        exec(shlex.split(command)[2], {})  # python -c "..."


def test_the_hook_for_stored_pages_looks_at_their_sources():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    (looked_at,) = [hook["files"] for hook in hooks if "make_tutorials.py" in hook["entry"]]
    tutorials = _script("make_tutorials")
    for source in tutorials.sources():
        for path in (source, tutorials.stored(source)):
            assert re.match(looked_at, path.relative_to(ROOT).as_posix()), path


def test_workflows_try_the_oldest_and_newest_python_on_three_systems():
    matrix = WORKFLOWS["tests"]["jobs"]["test"]["strategy"]["matrix"]
    known = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert [known[0], known[-1]] == matrix["python"]
    assert PROJECT["requires-python"] == f">={known[0]}"
    assert {os.split("-")[0] for os in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_the_oldest_versions_that_are_tested_are_the_lower_bounds():
    tested = dict(re.findall(r'"(numpy|scipy|numba)==([\d.]+)\.\*"', (ROOT / "Makefile").read_text()))
    declared = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["fast"]
    assert tested == dict(re.match(r"(\w+)>=(.+)", d).groups() for d in declared)


def test_workflows_call_what_exists():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name, workflow in WORKFLOWS.items():
        for job in workflow["jobs"].values():
            if "uses" in job:
                assert (ROOT / job["uses"]).exists(), name
            for step in job.get("steps", []):
                said = step.get("run", "")
                assert set(re.findall(r"make ([\w-]+)", said)) <= targets, f"{name}: {said}"
                assert all((ROOT / s).exists() for s in re.findall(r"(?:scripts|tests)/\w+\.py", said)), (
                    f"{name}: {said}"
                )


def test_hooks_and_templates_are_whole():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    for hook in hooks:
        assert all((ROOT / s).exists() for s in re.findall(r"scripts/\w+\.py", hook["entry"])), hook["id"]
    for template in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(template.read_text())
        if template.stem != "config":
            assert form["name"]
            assert any(part.get("validations", {}).get("required") for part in form["body"]), template.stem


def test_requirements_have_lower_bounds_only():
    extras = PROJECT["optional-dependencies"]
    for requirement in [r for group in (PROJECT["dependencies"], *extras.values()) for r in group]:
        assert re.fullmatch(r"calibrary\[[\w,]+\]|[\w.-]+(\[\w+\])?>=[\d.]+", requirement), requirement


def test_there_are_no_addresses_yet():
    assert "urls" not in PROJECT


def test_old_names_of_the_changelog_work_and_warn():
    y, p, _ = cal.datasets.breast_cancer()
    for metric, options in (("pwe", {"p": 2}), ("tce", {"n_min": 5}), ("ce2_db", {"variance": "label"})):
        with pytest.warns(DeprecationWarning, match="is an old name"):
            cal.compute(metric, y, p, **options)
    with pytest.warns(DeprecationWarning, match="nearest_neighbor_calibration_error"):
        cal.nearest_neighbour_calibration_error  # noqa: B018


def test_no_script_of_the_release_needs_the_library_installed():
    """They run before anything is installed, with the standard library alone."""
    import sys

    for name in ("check_wheel", "release_notes"):
        tree = ast.parse((ROOT / "scripts" / f"{name}.py").read_text())
        modules = {n.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for n in _names(node)}
        assert modules <= set(sys.stdlib_module_names), modules


def _names(node: ast.Import) -> list[str]:
    return [alias.name for alias in node.names]
