"""What the library does when it is attacked: a table, for one or several versions of it.

    python benchmarks/attacks.py 0.1.0=OLD/src now=NEW/src

Each attack runs in a process of its own with a limit of time and memory, because some of them ended the interpreter.
Give the folders of two versions (``src`` of each) to see both, one column each. An outcome is a number, the sentence
of an error, or how the process ended. Outcomes are kept in ``benchmarks/attacks.json`` under the version's name, so
that a run that was cut short goes on, and ``benchmarks/ATTACKS.md`` is written from them; ``--again VERSION`` forgets
those of a version first. ``tests/project/test_door.py`` holds the library to the right column.
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
from pathlib import Path
from typing import Any

#: Seconds of work and bytes that an attack may take.
TIME, MEMORY = 20, 6 << 30
HERE = Path(__file__).parent
KEPT, PAGE = HERE / "attacks.json", HERE / "ATTACKS.md"
#: The second half of the page begins with this line.
DOORS = "\n## Doors: files, SQL, commands, threads, pages\n"

START = r"""
import gzip, io, os, pathlib, pickle, subprocess, sys, tempfile, warnings, numpy as np, pandas as pd
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
def sh(line, stdin=None, env={}, **files):
    # the command line in a new folder with these files: its status and what it said last
    here = pathlib.Path(tempfile.mkdtemp())
    for name, content in files.items():
        path = here / name.replace("__", ".")
        path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
    call = f"{sys.executable} -P -c 'from calibrary.cli import main; main()'"
    line = line.replace("calibrary ", f"{call} ") if "calibrary " in line else f"{call} {line}"
    done = subprocess.run(["bash", "-c", line], cwd=here, input=stdin, capture_output=True, env={**os.environ, **env})
    said = (done.stderr if done.returncode else done.stdout).decode(errors="replace").strip().splitlines()
    broke = "TRACEBACK, " if any(l.startswith("Traceback") for l in said) else ""
    return f"{broke}status {done.returncode}: {said[-1].strip() if said else ''}"
FOUR = "y,p\n1,0.9\n0,0.2\n1,0.7\n0,0.4\n"
FAST = "--resamples 19 --metrics ece,bs -q"
def npz(**arrays):
    made = io.BytesIO(); np.savez(made, **arrays); return made.getvalue()
def threads():
    # is CalibrationWarning ignored for good after evaluate ran in threads?
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        each = lambda _: cal.evaluate(y, p, metrics=["ece", "eo"], intervals=True, n_resamples=39, rng=0)
        list(pool.map(each, range(8)))
    return any(f[0] == "ignore" and f[2] is cal.CalibrationWarning for f in warnings.filters)
"""


@dataclass(frozen=True)
class Attack:
    """One attack: its number in the list of findings, what it is, and the expression that is evaluated."""

    id: str
    what: str
    code: str
    time: int = TIME

    @property
    def name(self) -> str:
        return f"{self.id} {self.what}"


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
           "len(cal.evaluate(y, p, sample_weight=np.full(60, 1e10 // 60), intervals=True, n_resamples=9, rng=0))",
           time=120),
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
    Attack("A1", "the same from a file (right: .025)",
           "sh('metric bs f.csv --prob cat,car -q', f__csv='y,cat,car\\ncat,0.9,0.1\\ncar,0.2,0.8\\n')"),
    Attack("A5", "masked labels", "cal.compute('nll', np.ma.masked_array(y, p > .5), p)"),
    Attack("A6", "the same from a file", "sh('metric bs f.csv -q', f__csv='y,p\\n1,0.1\\n2,0.9\\n')"),
    Attack("A7", "the same from a file",
           "sh('metric bs f.csv --prob p_ -q', f__csv='y,p_cat,p_dog,p_eel\\n1,1,0,0\\n2,0,1,0\\n')"),
    Attack("A8", "complex numbers in a file",
           "sh('metric bs f.npz -q', f__npz=npz(y=[0, 1], p=np.array([.2 + .5j, .7])))"),
    Attack("A10", "weights that sum to one, ece_db", "cal.compute('ece_db', y, p, sample_weight=np.full(60, 1 / 60))"),
    Attack("A12", "r='1'", "cal.compute('ece', Y, P, lens='rth', r='1')"),
    Attack("A12", "pairwise(-1, 0)", "cal.compute('ece', Y, P, lens=cal.lens.pairwise(-1, 0))"),
    Attack("A12", "weight_type='foo'", "cal.compute('mmce', y, p, weight_type='foo')"),
    Attack("B1", "interval through class-wise",
           "cal.interval('cis', Y[:200], P[:200], lens='class-wise', n_resamples=9).low"),
    Attack("B4", "threads silence warnings for all (right: False)", "threads()"),
    Attack("B5", "a missing file of a detector", "sh('detection report gt.json r.json')"),
    Attack("B6", "--fail-if piece>0.1", "sh(f'report f.csv {FAST} --fail-if \"piece>0.1\"', f__csv=FOUR)"),
    Attack("B6", "--fail-if ece.foo>0.1", "sh(f'report f.csv {FAST} --fail-if \"ece.foo>0.1\"', f__csv=FOUR)"),
    Attack("B6", "--fail-if cis.slop<.8", "sh(f'report f.csv {FAST} --fail-if \"cis.slop<.8\"', f__csv=FOUR)"),
    Attack("B6", "--primary piece", "sh(f'report f.csv {FAST} --primary piece', f__csv=FOUR)"),
    Attack("B7", "half a character as a class",
           "cal.plots.small_multiples(cal.predictions(np.array(['\\ud800', 'b', 'c']), np.eye(3), "
           "labels=['\\ud800', 'b', 'c'])).canvas.draw()"),
    Attack("B7", "a class that no font has",
           "cal.plots.small_multiples(cal.predictions(np.array(['\\u732b', 'b', 'c']), np.eye(3), "
           "labels=['\\u732b', 'b', 'c'])).canvas.draw()"),
    Attack("B7", "a class of 10,000 letters",
           "cal.plots.small_multiples(cal.predictions(np.array(['x' * 10000, 'b', 'c']), np.eye(3), "
           "labels=['x' * 10000, 'b', 'c'])).canvas.draw()"),
    Attack("C1", "10^15 copies in windows", "cal.calbin([0, 1, 0, 1], [.1, .2, .3, .4], sample_weight=[1e15] * 4)"),
    Attack("C5", "evaluate 100,000 rows",
           "len(cal.evaluate((lambda q: (rng.random(10**5) < q).astype(int))(big := rng.random(10**5)), big))"),
    Attack("C6", "smece of 20 tiny confidences", "cal.compute('smece', [0] * 19 + [1], rng.random(20) * 1e-4)"),
    Attack("C6", "class-wise smece of 1000 classes",
           "cal.compute('smece', rng.integers(0, 1000, 20), rng.dirichlet(np.ones(1000), 20), lens='class-wise')"),
    Attack("C6", "pairwise ece of 1000 classes",
           "cal.compute('ece', rng.integers(0, 1000, 20), rng.dirichlet(np.ones(1000), 20), lens='pairwise')"),
    Attack("C7", "a gzip bomb",
           "sh('metric bs f.csv.gz -q', f__csv__gz=gzip.compress(b'y,p\\n' + b'0,0.1\\n' * (220 << 20)))"),
    Attack("C7", "an array of one row and 3,000,000 columns",
           "sh('metric bs f.npz', f__npz=npz(p=np.zeros((1, 3 * 10**6))))"),
    Attack("C7", "JSON of 50,000 levels", "sh('metric bs f.jsonl', f__jsonl='{\"y\": ' * 50000)"),
    Attack("D1", "weights 1e-300", "len(cal.evaluate(y, p, sample_weight=np.full(60, 1e-300)))"),
    Attack("D2", "subnormal confidences, kccsd",
           "cal.compute('kccsd', [0, 1, 1] * 10, [5e-324, 1e-323, 1.5e-323] * 10)"),
    Attack("D5", "ece_pl(tolerance=-1)", "cal.compute('ece_pl', y, p, tolerance=-1)"),
    Attack("D5", "skce_ul(block_size=inf)", "cal.compute('skce_ul', y, p, block_size=np.inf)"),
    Attack("D5", "tce(n_min=inf)", "cal.compute('tce', y, p, n_min=np.inf)"),
    Attack("D5", "r=inf", "cal.compute('ece', Y, P, lens='rth', r=np.inf)"),
    Attack("D5", "general_ls(W=nan)", "cal.compute('general_ls', y, p, W=np.nan)"),
    Attack("D5", "sice(k_max=10^9)", "cal.compute('sice', y, p, k_max=10**9)"),
    Attack("D6", "labels=5", "cal.brier_score(y, p, labels=5)"),
    Attack("D6", "pos_label=[1]", "cal.brier_score(y, p, pos_label=[1])"),
    Attack("D6", "labels 1e300", "cal.brier_score(np.array([0, 1e300]), [.1, .2])"),
    Attack("D6", "a matrix of one column", "cal.brier_score(np.matrix(y).T, p)"),
    Attack("D7", "sbct of the other class (right: 0)",
           "cal.compute('sbct', [1] * 4, [1, 1, 1, .9873046875]) "
           "- cal.compute('sbct', [0] * 4, [0, 0, 0, 1 - .9873046875])"),
    Attack("D9", "a cache cut short",
           "(lambda d: [sh('metric skde f.csv -q', env={'NUMBA_CACHE_DIR': d}, f__csv=FOUR), "
           "[f.write_bytes(f.read_bytes()[:50]) for f in pathlib.Path(d).rglob('*.nb?')] and None, "
           "sh('metric skde f.csv -q', env={'NUMBA_CACHE_DIR': d}, f__csv=FOUR)][-1])(tempfile.mkdtemp())"),
    Attack("E", "an output that is a folder",
           "sh(f'mkdir r.html; calibrary report f.csv {FAST} -o r.html', f__csv=FOUR)"),
    Attack("E", "an output in /sys", "sh(f'report f.csv {FAST} -o /sys/r.html', f__csv=FOUR)"),
    Attack("E", "an output with a name of 300 letters",
           "sh(f'report f.csv {FAST} -o ' + 'x' * 300 + '.html', f__csv=FOUR)"),
    Attack("E", "a full disk", "sh(f'ulimit -f 1; calibrary report f.csv {FAST} -o r.html', f__csv=FOUR)"),
    Attack("E", "standard output full", "sh('metric bs f.csv -q > /dev/full', f__csv=FOUR)"),
    Attack("E", "a path of 5,000 letters", "sh('metric bs ' + 'x' * 5000)"),
    Attack("E", "a damaged gzip", "sh('metric bs f.csv.gz', f__csv__gz=gzip.compress(FOUR.encode())[:12] + bytes(30))"),
    Attack("E", "standard input closed", "sh('metric bs - <&-')"),
    Attack("E", "demo -o of a file", "sh('demo -o f.csv --resamples 0', f__csv=FOUR)"),
    Attack("E", "a column a\\\\[/red]", "sh('metric bs f.csv', f__csv='y,a\\\\[/red]\\n1,0.5\\n')"),
    Attack("E", "a name that is not UTF-8", "sh('metric bs $\\'a\\\\xff.csv\\'')"),
    Attack("E1", "a gzip cut short", "sh('metric bs f.csv.gz', f__csv__gz=gzip.compress(FOUR.encode() * 99)[:60])"),
    Attack("E2", "a pipe (right: .075)", "sh('metric bs <(cat f.csv) -q', f__csv=FOUR)"),
    Attack("E3", "umask 077 (right: 600)",
           "sh(f'umask 077; calibrary report f.csv {FAST} -o r.json >/dev/null 2>&1; stat -c %a r.json', f__csv=FOUR)"),
    Attack("E3", "an output that is a link (right: link)",
           "sh(f'touch t.json; ln -s t.json r.json; calibrary report f.csv {FAST} -o r.json >/dev/null 2>&1; "
           "test -L r.json && echo link', f__csv=FOUR)"),
    Attack("E4", "text called .npz", "sh('metric bs f.npz', f__npz='hello')"),
    Attack("E5", "a column of lists", "sh('metric bs f.jsonl', f__jsonl='{\"y\": 1, \"p\": [1, 2]}\\n')"),
    Attack("E5", "text within an NPZ", "sh('metric bs f.npz', f__npz=npz(y=[0, 1], p=['a', 'b']))"),
    Attack("E5", "--seed -1", "sh(f'report f.csv {FAST} --seed -1', f__csv=FOUR)"),
    Attack("E5", "--fail-if ece>1e", "sh(f'report f.csv {FAST} --fail-if \"ece>1e\"', f__csv=FOUR)"),
    Attack("E6", "an escape code in a column (right: none)",
           "'escaped' if chr(27) + ']' in "
           "sh('metric bs f.csv', f__csv='y,' + chr(27) + ']0;owned' + chr(7) + 'q\\n1,0.5\\n') else 'none'"),
    Attack("E6", ":x: in a text (right: :x:)", "sh('metric bs :x:.csv')"),
    Attack("E7", "--resamples -5", "sh('report f.csv --metrics ece,bs -q --resamples -5', f__csv=FOUR)"),
    Attack("E7", "recommend --n -1", "sh('recommend --task binary --goal measure --n -1')"),
    Attack("E7", "the same model twice", "sh(f'report f.csv {FAST} --model p --model p', f__csv=FOUR)"),
    Attack("E7", "--positive with several columns",
           "sh('metric bs f.csv --prob a,b --positive a -q', f__csv='y,a,b\\na,0.9,0.1\\nb,0.2,0.8\\n')"),
    Attack("E7", "--metrics d_ece of a classifier", "sh('report f.csv --resamples 0 --metrics d_ece -q', f__csv=FOUR)"),
    Attack("E8", "a title that begins with - in CSV (right: quoted)",
           "(lambda f: (cal.report(y, p, metrics='ece', n_resamples=0, about={'title': '-1+1'}).save(f), "
           "'quoted' if chr(39) + '-1+1' in f.read_text() else 'formula')[1])"
           "(pathlib.Path(tempfile.mkdtemp()) / 'r.csv')"),
]  # fmt: skip


def worker() -> None:
    """Print the outcome of the attacks whose names come in, each in a fork of its own."""
    known: dict[str, Any] = {}
    exec(START, known)
    by_name = {attack.name: attack for attack in ATTACKS}
    for line in sys.stdin:
        print(json.dumps(_in_a_fork(by_name[json.loads(line)], known)), flush=True)


def _in_a_fork(attack: Attack, known: dict[str, Any]) -> str:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (attack.time, attack.time))
        os.write(write, _told(attack.code, known).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if -status in (signal.SIGXCPU, signal.SIGKILL):
        return f"no end in {attack.time} s"
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
    """Run what has no outcome yet, and write the table, one column for each folder."""
    kept: dict[str, dict[str, str]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if "--again" in folders:
        at = folders.index("--again")
        kept.pop(folders[at + 1], None)
        folders = folders[:at] + folders[at + 2 :]
    versions = {name: folder or name for name, _, folder in (given.partition("=") for given in folders)}
    for version, folder in versions.items():
        outcomes = kept.setdefault(version, {})
        missing = [attack for attack in ATTACKS if attack.name not in outcomes]
        process = _started(os.path.abspath(folder)) if missing else None
        for attack in missing:
            assert process is not None
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(attack.name) + "\n")
            process.stdin.flush()
            outcomes[attack.name] = json.loads(process.stdout.readline())
            print(f"{version} | {attack.name} | {outcomes[attack.name]}", flush=True)
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()
    doors = PAGE.read_text().partition(DOORS)  # which benchmarks/fuzz_doors.py writes
    PAGE.write_text(page(kept, list(versions)) + "".join(doors[1:]))


#: Each kind of check and the one place where it is written; every door calls it with its own names of rows and columns.
CHECKS = (
    ("a probability is a number from 0 to 1 (percentages: to 100); what those outside look like",
     "`data/checks.py`: `are_probabilities`, `outside`", "arrays, files, scores of a detector, maps, states"),
    ("rows of probabilities sum to one", "`data/checks.py`: `ROW_SUM_TOLERANCE`", "arrays, rows of labels, states"),
    ("numbers: no dates, complex numbers, records, masks", "`data/checks.py`: `as_array`, `as_numbers`", "every array"),
    ("a missing value", "`data/checks.py`: `missing`", "labels, numbers, identifiers"),
    ("weights are finite and not negative", "`data/checks.py`: `refuse_negative`", "rows, images, objects, states"),
    ("weights can be added up, their ratio has a limit", "`data/checks.py`: `checked_weights`", "every sample_weight"),
    ("weights that must be counts", "`data/predictions.py`: `counts`", "tests, intervals, noise that is subtracted"),
    ("labels: order, names, positive class, shares", "`data/labels.py`: `checked_labels`", "arrays, files"),
    ("columns matched to classes by name; indexes", "`data/columns.py`", "tables, files"),
    ("an option's type, range and choice", "`metrics/machinery/option_checks.py`; `base/errors.py`: `whole`, `one_of`",
     "every metric"),
    ("one metric's failure leaves the table alone", "`evaluation.py`: `_measured`", "evaluate, report"),
    ("a failure of a command: one sentence, status 2", "`cli/main.py`: `main`", "every command"),
    ("a file written beside and renamed; may it be written?", "`base/files.py`", "every output"),
    ("text that people supply", "`base/text.py`: one helper for each place", "figures, terminal, HTML, CSV"),
    ("compiled code without a cache", "`numerics/compiled/__init__.py`: `jit`", "every compiled function"),
    ("warnings stay in their thread", "`base/errors.py`: `warn`, `collected_warnings`", "everything"),
)  # fmt: skip


def page(kept: dict[str, dict[str, str]], versions: list[str]) -> str:
    """The table of checks and the table of attacks."""
    lines = ["# Attacks: before and after", "", "Made with `python benchmarks/attacks.py 0.1.0=OLD/src now=src`.", ""]
    lines += ["## Where each check is written", "", "| check | the one place | who calls it |", "| --- | --- | --- |"]
    lines += [f"| {what} | {where} | {who} |" for what, where, who in CHECKS]
    counts = ", ".join(f"{len(kept[version])} on {version}" for version in versions)
    lines += ["", "## What each attack gave", "", f"{len(ATTACKS)} attacks: {counts}.", ""]
    lines += ["| | attack | " + " | ".join(versions) + " |", "| --- | --- |" + " --- |" * len(versions)]
    for attack in ATTACKS:
        told = [kept[version][attack.name].replace("|", "\\|").replace("<", "&lt;") for version in versions]
        lines.append(f"| {attack.id} | {attack.what} | " + " | ".join(told) + " |")
    return "\n".join(lines) + "\n"


def _started(folder: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": folder, "OPENBLAS_NUM_THREADS": "1"}
    # -P: files beside this one may have the names of packages
    command = [sys.executable, "-P", __file__, "--worker"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    else:
        main(sys.argv[1:] or ["now=src"])
