"""Examples of pages that need files, a model, PyTorch or a store: they run as they stand on data of the test."""

from __future__ import annotations

import datetime
import importlib
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main

import calibrary as cal
from calibrary.cli.main import app
from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
_of = importlib.import_module("surface")._of
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TODAY = datetime.date(2026, 11, 14)


def _rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are too high: an alarm is raised."""
    p = rng.random(n)
    return (rng.random(n) < p**2).astype(int), p


def _of_scale() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    Path("preds").mkdir()
    for k in range(30):
        y, p = _rows(100, rng)
        day = [TODAY - datetime.timedelta(days=k)] * len(y)
        pq.write_table(pa.table({"y": y, "p": p, "day": day}), f"preds/{k}.parquet")
    n, names = 40, ["cat", "dog"]
    category, image = rng.choice(names, n), [f"{i}.jpg" for i in range(n)]
    square, score = np.tile([0, 0, 10, 10], (n, 1)), rng.random(n)
    images = [
        (cal.boxes([i], [k], box[None]), cal.boxes([i], [k], box[None] + shift, score=[s]))
        for i, k, box, s, shift in zip(image, category, square, score, rng.integers(0, 8, n), strict=True)
    ]
    more = {
        "correct": rng.random(n) < score, "score": score, "iou": rng.uniform(0.5, 1, n), "category": category,
        "image": [f"more/{i}" for i in image],
    }  # fmt: skip
    shard = cal.scale.DetectionState(names, blocks=100)
    shard.update(cal.match_detections(*images[0])).save("shard-17.parquet")
    return {"categories": names, "images": images, **more}


def _of_store() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    for k in range(2):
        y, p = _rows(100, rng)
        pq.write_table(pa.table({"y": y, "p": p, "site": ["A", "B"] * 50}), f"{k}.parquet")
    return {"files_of": lambda day: ["0.parquet", "1.parquet"], "day": TODAY}


def _of_validation() -> dict[str, Any]:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (rng.random(80) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    return {"model": linear_model.LogisticRegression(), "X": X, "y": y, "patient": np.repeat(np.arange(40), 2)}


def _of_losses() -> dict[str, Any]:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    y, p = _rows(200, rng)
    return {"y_validation": y, "p_validation": p}


#: page: (what the page takes as given, the lines to replace: Spark and S3 are tested elsewhere, and pages take long)
PAGES: dict[str, tuple[Any, dict[str, str]]] = {
    "scale": (
        _of_scale,
        {
            r"^state = cal\.scale\.spark.*$": "",
            r"^cal\.report\(.*$": "",
            r'cal\.interval\("(\w+)", ': r'cal.interval("\1", n_resamples=19, y_true=',
        },
    ),
    "store": (
        _of_store,
        {
            "s3://bucket/": "",
            r"^frame = spark.*$": "",
            r'cal\.interval\("(\w+)", ': r'cal.interval("\1", n_resamples=19, y_true=',
        },
    ),
    "validation": (_of_validation, {"rng=0": "rng=0, n_resamples=8"}),
    "losses": (_of_losses, {}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given, replaced = PAGES[page]
    space = {"cal": cal, **given()}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    code = "\n".join(blocks)
    if "duckdb" in code:
        pytest.importorskip("duckdb")
    for old, new in replaced.items():
        code, n = re.subn(old, new, code, flags=re.MULTILINE)
        assert n, f"docs/{page}.md no longer has {old}"
    exec(compile(code, f"docs/{page}.md", "exec"), space)


def _commands(text: str) -> list[list[str]]:
    """The words of every command that a page shows, in a block or between backquotes."""
    text = text.replace("\\\n", " ")
    shown = [line for block in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    shown += [" ".join(found.split()) for found in re.findall(r"`(calibrary [^`]+)`", text)]
    lines = [line.removeprefix("$ ").split(" # ")[0].split(" | ")[0] for line in shown]
    return [shlex.split(line)[1:] for line in lines if line.startswith("calibrary ")]


def test_every_command_on_a_page_exists_with_its_options() -> None:
    surface = json.loads((ROOT / "src/calibrary/cli/surface.json").read_text(encoding="utf-8"))
    for name, hidden in typer.main.get_command(app).commands.items():  # some work without being listed in the help
        surface["commands"].setdefault(name, _of(hidden))
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    given = [(page, words) for page in pages for words in _commands(page.read_text(encoding="utf-8"))]
    assert len(given) > 60
    for page, words in given:
        node, rest = surface, list(words)
        while rest and rest[0] in node.get("commands", {}):
            node = node["commands"][rest.pop(0)]
        assert node is not surface, f"{page.name}: there is no command {words}"
        known = {name for option in node["options"] for name in option["names"]} | {"--help"}
        options = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        assert options <= known, f"{page.name}: {words} has unknown options {options - known}"
