"""What the library does when it is attacked: a table, for one or several versions of it.

    python benchmarks/attacks.py [folder with the package ...]

Each attack runs in a process of its own with a limit of time and memory, because some of them ended the interpreter.
Give the folders of two versions (``src`` of each) to see both, one column each. An outcome is a number, the sentence
of an error, or how the process ended. ``tests/test_door.py`` holds the library to the right column.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import Any

#: Seconds of work and bytes that an attack may take.
TIME, MEMORY = 20, 6 << 30

START = """
import pathlib, pickle, tempfile, warnings, numpy as np, pandas as pd
import calibrary as cal
rng = np.random.default_rng(0)
p = rng.random(60); y = (rng.random(60) < p).astype(int)
P = rng.dirichlet(np.full(12, .3), 400); Y = np.array([rng.choice(12, p=row) for row in P])
cat = rng.random(200); names = np.where(rng.random(200) < cat, "cat", "car")
def coco(**change):
    box = change.get("bbox", [10., 10., 30., 20.])
    one = {"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "iscrowd": 0, **change}
    truth = {"images": [{"id": 1, "width": 9, "height": 9}], "categories": [{"id": 1}], "annotations": [one]}
    return truth, [{"image_id": 1, "category_id": 1, "bbox": box, "score": .9}]
def yolo(label, result):
    here = pathlib.Path(tempfile.mkdtemp())
    for name, line in (("labels", label), ("results", result)):
        (here / name).mkdir(); (here / name / "a.txt").write_bytes(line.encode("latin-1"))
    return here / "labels", here / "results"
"""


@dataclass(frozen=True)
class Attack:
    """One attack: its number in the list of findings, what it is, and the expression that is evaluated."""

    id: str
    what: str
    code: str


ATTACKS = [
    Attack("A1", "columns cat, car (right: .18)",
           "cal.brier_score(names, pd.DataFrame({'cat': cat, 'car': 1 - cat}))"),
    Attack("A2", "whole numbers in an object array (right: .06)",
           "cal.expected_calibration_error(Y.astype(object), P)"),
    Attack("A3", "pos_label with two columns", "cal.brier_score(y, np.column_stack([1 - p, p]), pos_label=0)"),
    Attack("A4", "a missing label", "cal.brier_score(np.array([1., np.nan, 1.]), [.1, .2, .3], pos_label=1)"),
    Attack("A4", "a missing name", "cal.predictions(np.array(['a', 'c', None], object), np.eye(3)).classes"),
    Attack("A5", "a masked probability", "cal.brier_score(y, np.ma.masked_array(p, p > .5))"),
    Attack("A6", "labels '1' and '2'", "cal.brier_score(np.array(['1', '2']), [.1, .9])"),
    Attack("A7", "labels 1, 2 of three named columns",
           "cal.brier_score([1, 2], pd.DataFrame(np.eye(3)[:2], columns=['p_cat', 'p_dog', 'p_eel']))"),
    Attack("A8", "complex probabilities", "cal.brier_score([0, 1], np.array([.2 + .5j, .7]))"),
    Attack("A8", "durations as weights", "cal.brier_score([0, 1], [.2, .7], sample_weight=np.array([1, 2], 'm8[s]'))"),
    Attack("A8", "percentages", "cal.brier_score(y, 100 * p)"),
    Attack("A9", "weights whose sum overflows", "cal.brier_score([0, 1], [.2, .4], sample_weight=[1.7e308] * 2)"),
    Attack("A9", "the same in compiled code", "cal.compute('ece_pl', y, p, sample_weight=np.full(60, 1.7e308))"),
    Attack("A10", "weights that sum to one, tcal", "cal.compute('tcal', y, p, sample_weight=np.full(60, 1 / 60))"),
    Attack("A11", "an outline of YOLO as a box (right: IoU 1)",
           "cal.match_detections(*yolo('0 .4 .3 .6 .3 .6 .7 .4 .7', '0 .5 .5 .2 .4 .9')).iou.tolist()"),
    Attack("A11", "iscrowd '0' (right: 1 found)", "int(cal.match_detections(*coco(iscrowd='0')).correct.sum())"),
    Attack("A12", "aggregate='foo'", "cal.compute('ece', y, p, aggregate='foo')"),
    Attack("A12", "closed='foo' of equal mass", "cal.compute('ace', y, p, closed='foo')"),
    Attack("A12", "squared='no'", "cal.compute('mmce', y, p, squared='no')"),
    Attack("A12", "pairwise(0, 0)", "cal.compute('ece', Y, P, lens=cal.lens.pairwise(0, 0))"),
    Attack("A12", "r=1.5", "cal.compute('ece', Y, P, lens='rth', r=1.5)"),
    Attack("A12", "points_per_bin without effect", "cal.compute('ece', y, p, binning='mass', points_per_bin=5)"),
    Attack("-", "indexes that differ", "cal.brier_score(pd.Series(y), pd.Series(p).sample(frac=1, random_state=0))"),
    Attack("B1", "evaluate through class-wise",
           "len(cal.evaluate(Y[:50], P[:50], lens='class-wise', metrics=['cis', 'bs']))"),
    Attack("B2", "no folder for compiled code",
           "exec('from numba.core import caching; caching.CompileResultCacheImpl._locator_classes = []') "
           "or cal.compute('calbin', y, p)"),
    Attack("B3", "fractional weights with intervals",
           "len(cal.evaluate(y, p, sample_weight=p + .1, weight_type='importance', metrics='bs', intervals=True, "
           "n_resamples=9))"),
    Attack("B7", "a class called $5_$10",
           "cal.plots.small_multiples(cal.predictions(np.array(['$5_$10', 'b', 'c']), np.eye(3), "
           "labels=['$5_$10', 'b', 'c'])).canvas.draw()"),
    Attack("C1", "2^62 copies in windows", "cal.calbin([0, 1, 0, 1], [.1, .2, .3, .4], sample_weight=[2.**62] * 4)"),
    Attack("C2", "three rows of unequal weight",
           "cal.sweep_calibration_error([1, 0, 1], [.1, .2, .8], sample_weight=[1e-5, 1, 1])"),
    Attack("C3", "interval of 60 rows that stand for 10^8",
           "cal.interval('ece', y, p, sample_weight=np.full(60, 1e8 // 60), n_resamples=99, rng=0).standard_error"),
    Attack("C3", "evaluate 10^10 copies",
           "len(cal.evaluate(y, p, sample_weight=np.full(60, 1e10 // 60), intervals=True, n_resamples=9, rng=0))"),
    Attack("C7", "a file of 100,000 brackets",
           "(lambda f: (f.write_text('[' * 100000), cal.match_detections(f, [])))"
           "(pathlib.Path(tempfile.mkdtemp()) / 'd.json')"),
    Attack("C8", "10^9 bins", "cal.compute('ece', y, p, n_bins=10**9)"),
    Attack("C8", "lsece(bandwidth=1e9)", "cal.compute('lsece', y, p, bandwidth=1e9)"),
    Attack("D1", "weights 1e300", "len(cal.evaluate(y, p, sample_weight=np.full(60, 1e300)))"),
    Attack("D2", "confidences that rounding tells apart",
           "cal.compute('cis', [0, 1, 1, 0] * 10, .3 + 1e-15 * np.arange(40)).slope"),
    Attack("D2", "subnormal confidences", "cal.compute('ici', [0, 1, 1] * 10, [5e-324, 1e-323, 1.5e-323] * 10)"),
    Attack("D3", "interval of an infinite value",
           "cal.interval('nll', [0, 1, 1, 0], [0., .3, 0., .2], n_resamples=9, rng=0).low"),
    Attack("D4", "an infinity in a table", "cal.evaluate([0, 1], [0., 0.], metrics='nll').rows[0].note"),
    Attack("D5", "ece_pl(segments=1.5)", "cal.compute('ece_pl', y, p, segments=1.5)"),
    Attack("D5", "ici(span=inf)", "cal.compute('ici', y, p, span=np.inf)"),
    Attack("D5", "ice(alpha=1e9)", "cal.compute('ice', y, p, alpha=1e9)"),
    Attack("D5", "pairwise(0, 99)", "cal.compute('ece', Y, P, lens=cal.lens.pairwise(0, 99))"),
    Attack("D5", "average=[inf, ...]", "cal.compute('ece', Y, P, lens='class-wise', average=[np.inf] + [1] * 11)"),
    Attack("D6", "labels [{}]", "cal.brier_score([{}], [.2])"),
    Attack("D6", "the largest uint64 as a label", "cal.brier_score(np.array([0, 2**64 - 1], np.uint64), [.1, .2])"),
    Attack("D6", "text as weights", "cal.brier_score([0, 1], [.1, .2], sample_weight=['a', 'b'])"),
    Attack("D7", "interval of one row, bkde", "cal.interval('bkde', [1], [.3], n_resamples=9).low"),
    Attack("D8", "an entry in a pickle", "pickle.loads(pickle.dumps(cal.catalogue['ece'])).id"),
    Attack("D10", "10^400 in a box", "cal.match_detections(*coco(bbox=[0, 0, 10**400, 1]))"),
    Attack("D10", "boxes of 1e160", "int(cal.match_detections(*coco(bbox=[0, 0, 1e160, 1e160])).correct.sum())"),
    Attack("D10", "iou_threshold=None", "cal.match_detections(*coco(), iou_threshold=None)"),
    Attack("D10", "YOLO in latin-1", "cal.match_detections(*yolo('\\xe9 .5 .5 .2 .4', '0 .5 .5 .2 .4 .9'))"),
]  # fmt: skip


def worker() -> None:
    """Print the outcome of every attack on the package that is imported here, each in a fork of its own."""
    known: dict[str, Any] = {}
    exec(START, known)
    for attack in ATTACKS:
        print(json.dumps(_in_a_fork(attack, known)), flush=True)


def _in_a_fork(attack: Attack, known: dict[str, Any]) -> str:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (TIME, TIME))
        os.write(write, _told(attack.code, known).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if -status in (signal.SIGXCPU, signal.SIGKILL):
        return f"no end in {TIME} s"
    return told if status == 0 else f"the interpreter ended: {signal.Signals(-status).name if status < 0 else status}"


def _told(code: str, known: dict[str, Any]) -> str:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            value = eval(code, known)
            told = f"{value:.4g}" if isinstance(value, float) else str(value)
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
    kinds = sorted({w.category.__name__ for w in said})
    return told.replace("\n", " ")[:150] + (f" ({', '.join(kinds)})" if kinds else "")


def main(folders: list[str]) -> None:
    """Print the table, one column for each folder."""
    workers = [_started(folder) for folder in folders]
    print("| | attack | " + " | ".join(folders) + " |")
    print("| --- | --- |" + " --- |" * len(folders))
    for attack in ATTACKS:
        told = [json.loads(worker.stdout.readline()).replace("|", "\\|") for worker in workers if worker.stdout]
        print(f"| {attack.id} | {attack.what} | " + " | ".join(told) + " |", flush=True)


def _started(folder: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": folder, "OPENBLAS_NUM_THREADS": "1"}
    # -P: files beside this one may have the names of packages
    command = [sys.executable, "-P", __file__, "--worker"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    else:
        main(sys.argv[1:] or ["src"])
