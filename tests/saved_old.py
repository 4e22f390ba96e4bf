"""Files that people keep: how each kind is made from forty rows, how it is read, and what is read from it.

``python tests/saved_old.py FOLDER``, with the previous version on the path, writes the files and what was read from
them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrary as cal
from calibrary import study
from calibrary.base.saved import DIGEST, digest
from calibrary.reporting.stored import as_json, from_json
from calibrary.scale import DetectionState, State, VectorState
from calibrary.study.shards import Shard
from pickled import GROUPS, C, K, N, P, Y

FAST: dict[str, Any] = {"n_resamples": 19, "rng": 0, "metrics": ["ece", "bs"]}
GRID = np.linspace(0.01, 0.99, 9)
CORNERS = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [1 / 3, 1 / 3, 1 / 3]])
SITES = np.array(["a", "b", "c"])[GROUPS]
BINARY_MAPS = ("temperature", "platt", "beta", "rcs", "pl3", "pl", "isotonic", "bins")
CLASS_MAPS = ("temperature", "bias_temperature", "multinomial_spline", "platt", "beta", "isotonic")


def _detections() -> Any:
    rng = np.random.default_rng(1)
    correct, iou = rng.random(N) < C, rng.uniform(0.5, 1, N)
    return cal.matched_detections(
        correct, C, iou=iou, category=GROUPS % 2, image=np.arange(N) // 4, n_missed={0: 2, 1: 1}
    )


def _without_figures(text: str) -> str:
    """The saved report without its pictures, which are most of the file."""
    found = json.loads(text)
    for report in found.get("models", [found]):
        report["figures"] = []
        for section in report["sections"]:
            section["figures"] = []
    found.pop(DIGEST, None)
    found[DIGEST] = digest(found)
    return json.dumps(found, separators=(",", ":"))


def _report(path: Path) -> None:
    made = cal.report(Y, C, by={"site": SITES}, thresholds=[0.3], time=np.arange(N), **FAST)
    path.write_text(_without_figures(as_json([made])), encoding="utf-8")


def _reports(path: Path) -> None:
    two = [cal.report(K, p, title=title, **FAST) for title, p in (("one", P), ("two", P[:, ::-1]))]
    compared = [("bs", cal.compare("bs", K, P, P[:, ::-1], n_resamples=19, rng=0))]
    path.write_text(_without_figures(as_json(two, compared)), encoding="utf-8")


def _maps(path: Path) -> None:
    """Every map, one saved file per line."""
    lines = []
    for words, p, y in ((BINARY_MAPS, C, Y), (CLASS_MAPS, P, K)):
        for word in words:
            cal.Recalibrator(word).fit(p, y).save(path)
            lines.append(json.dumps(json.loads(path.read_text(encoding="utf-8"))))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _study(path: Path, out: Path | None = None) -> None:
    worlds = ["wide, calibrated", "rare, calibrated"]
    study.run("quick", metrics=["ece", "bs"], worlds=worlds, n=200, draws=8, out=out).save(path)


def _shard(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _study(Path(folder) / "study.json", Path(folder) / "shards")
        first = min((Path(folder) / "shards").rglob("*.npz"))
        path.write_bytes(first.read_bytes())


def _read_reports(path: Path) -> Any:
    reports, compared = from_json(path)
    read = []
    for one in reports:
        statements = one.statements if hasattr(one, "statements") else one.findings
        numbers = [[row.id, row.value, row.low, row.high] for row in one.evaluation]
        read.append([one.title, one.headline, list(statements), numbers, one.primary])
    return [read, [[name, found.value, found.low, found.high] for name, found in compared]]


def _read_maps(path: Path) -> Any:
    values = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines()):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "map.json"
            file.write_text(text, encoding="utf-8")
            found = cal.Recalibrator.load(file)
        values.append(found.transform(GRID if number < len(BINARY_MAPS) else CORNERS).tolist())
    return values


def _read_study(path: Path) -> Any:
    found = study.StudyResult.load(path)
    return [found.names, list(found.sizes), [found.means(name, 200) for name in ("ece", "bs")]]


def _read_shard(path: Path) -> Any:
    found = Shard.load(path)
    return [list(found.names), found.values.tolist(), found.drawn.tolist()]


#: File: how it is made, and what is read from it.
FILES: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "report.json": (_report, _read_reports),
    "reports.json": (_reports, _read_reports),
    "maps.jsonl": (_maps, _read_maps),
    "state.parquet": (
        lambda path: State(960).update(Y, C).save(path),
        lambda path: [State.load(path).n, cal.compute("ece", State.load(path))],
    ),
    "state_by.parquet": (
        lambda path: State(960, by="site").update(Y, C, by={"site": SITES}).save(path),
        lambda path: [[list(map(str, key)) for key in State.load(path).keys], cal.compute("bs", State.load(path))],
    ),
    "state_classes.parquet": (
        lambda path: VectorState(3, sample=20).update(K, P).save(path),
        lambda path: [cal.compute(name, VectorState.load(path)) for name in ("bs", "nll")],
    ),
    "state_detections.parquet": (
        lambda path: DetectionState([0, 1]).update(_detections()).save(path),
        lambda path: [cal.compute(name, DetectionState.load(path)) for name in ("laece", "dece")],
    ),
    "study.json": (_study, _read_study),
    "study.npz": (_shard, _read_shard),
}


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    said = {}
    for name, (make, read) in FILES.items():
        make(target / name)
        said[name] = json.loads(json.dumps(read(target / name)))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in said.items())
    (target / "told.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")
