"""States of many rows: time, memory, size, the same digest from every engine, and the error of every metric.

    python benchmarks/scale.py                               10^7 rows in four files
    python benchmarks/scale.py --rows 2e8 --files 20         what the bars are for: 2.4 GB of Parquet
    python benchmarks/scale.py --engines scan,dask,dask_killed,duckdb,torch,torch_ranks,spark
    python benchmarks/scale.py --exact                       every metric beside its value on the rows themselves
    python benchmarks/scale.py --inference                   intervals and tests of the short list
    python benchmarks/scale.py --memory                      bytes a row of evaluate on arrays, by the slope
    python benchmarks/scale.py --sums                        some exact values, for more rows than memory holds

Bars: a scan takes at most three times as long as PyArrow needs to read the same columns (both once warm: importing and
loading compiled code is shown apart), less than 1 GB at its peak, and a saved state less than 2 MB; engines give the
same digest; errors relative to the size of the metric are below 1e-12 (exact) and 1e-6 (smooth; pws 1e-3); intervals
and tests of the short list take less than 300 CPU seconds; evaluate takes less than 120 bytes a row.

Every step runs in a process of its own, so that its peak is its own. What is done is kept in ``benchmarks/scale.json``
by number of rows, and a step that is there is not run again: ``--again`` forgets it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import calibrary as cal
from calibrary.metrics.machinery.measure import measure, numbers
from calibrary.scale.accuracy import accuracy_of, declared

SHORT_LIST = ("ece", "ace", "mce", "smece", "bs", "nll", "ecce_mad", "ecce_r", "spiegelhalter", "mmce")
BARS = {"scan_ratio": 3.0, "peak_gb": 1.0, "saved_mb": 2.0, "inference_s": 300.0, "bytes_a_row": 120.0}
RESULTS = Path(__file__).parent / "scale.json"
#: Sizes whose difference in peak memory gives the bytes a row.
_SLOPE = (1_000_000, 2_000_000)
#: And the largest that is measured.
_MOST_IN_MEMORY = 10_000_000
_CHUNK = 2_500_000


# -- data -------------------------------------------------------------------------------------------


def write_data(folder: Path, rows: int, files: int, seed: int = 0) -> None:
    """Over-confident predictions, logit-normal: a double and an int8 a row."""
    folder.mkdir(parents=True, exist_ok=True)
    if len(list(folder.glob("*.parquet"))) == files:
        return
    schema = pa.schema([("p", pa.float64()), ("y", pa.int8())])
    for i, chunks in groupby(generated(rows, files, seed), key=itemgetter(0)):
        print(f"writing file {i + 1} of {files}", file=sys.stderr, flush=True)
        with pq.ParquetWriter(folder / f"part-{i:03}.parquet", schema) as writer:
            for _, p, y in chunks:
                writer.write_table(pa.table({"p": p, "y": y}, schema=schema))


def generated(rows: int, files: int, seed: int = 0) -> Iterator[tuple[int, Any, Any]]:
    """The rows in chunks: number of the file, probabilities, labels."""
    rng = np.random.default_rng(seed)
    for i in range(files):
        left = rows // files + (i < rows % files)
        while left:
            n = min(left, _CHUNK)
            z = rng.normal(0.0, 2.0, n)
            y = (rng.random(n) < 1.0 / (1.0 + np.exp(-0.8 * z))).astype(np.int8)
            yield i, 1.0 / (1.0 + np.exp(-z)), y
            left -= n


def state_file(folder: Path) -> Path:
    """Where the scan leaves the state of a folder."""
    return folder.parent / f"state-{folder.name}.parquet"


# -- steps, each in a process of its own ------------------------------------------------------------


def step_read(folder: Path, _: argparse.Namespace) -> dict[str, Any]:
    """What PyArrow needs to read the two columns, with the settings of the scan."""
    rows = 0
    for fragment in ds.dataset(folder).get_fragments():
        scanner = fragment.scanner(columns=["p", "y"], batch_size=1 << 19, batch_readahead=2, fragment_readahead=1)
        rows += sum(len(batch) for batch in scanner.to_batches())
    return {"rows": rows}


def step_scan(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The scan itself is timed; digest and file come after it."""
    wall, cpu = time.perf_counter(), time.process_time()
    state = cal.scale.scan(folder, label="y", prob="p", resolution=options.resolution)
    rows = state.n
    times = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    saved = state_file(folder)
    digest = state.digest
    state.save(saved)
    return {"rows": rows, "table": len(state), "digest": digest, "saved_mb": saved.stat().st_size / 1e6, **times}


def step_dask(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        state = cal.scale.dask(dd.read_parquet(folder), label="y", prob="p", resolution=options.resolution)
    return {"rows": state.n, "digest": state.digest}


def step_dask_killed(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The same with a worker killed in the middle: its tasks are run again, and count once."""
    import signal
    import threading

    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        frame = dd.read_parquet(folder)

        def kill() -> None:
            # a worker that has finished something, so that what it made is lost
            for _ in range(600):
                held = client.has_what()
                busy = [worker for worker, keys in held.items() if keys]
                if busy:
                    pid = client.run(os.getpid, workers=[busy[0]])[busy[0]]
                    os.kill(pid, signal.SIGKILL)
                    killed.append(len(held[busy[0]]))
                    return
                time.sleep(0.05)

        killed: list[int] = []
        thread = threading.Thread(target=kill)
        thread.start()
        state = cal.scale.dask(frame, label="y", prob="p", resolution=options.resolution)
        thread.join()
    return {"rows": state.n, "digest": state.digest, "killed": len(killed), "results_lost": sum(killed)}


def step_duckdb(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    import duckdb

    text = cal.scale.sql(f"'{folder}/*.parquet'", label="y", prob="p", resolution=options.resolution)
    state = cal.scale.State.of_table(duckdb.sql(text), resolution=options.resolution)
    return {"rows": state.n, "digest": state.digest}


def step_torch(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    import torch

    metric = cal.scale.torch.CalibrationMetric("ece", resolution=options.resolution)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for batch in ds.dataset(folder).to_batches(batch_size=1 << 18):
        p, y = (torch.from_numpy(batch.column(name).to_numpy().copy()).to(device) for name in ("p", "y"))
        metric.update(p, y)
    state = metric.state()
    return {"rows": state.n, "digest": state.digest, "device": device}


def step_torch_ranks(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Two ranks, each with every other file, added up by all_reduce; both must find the state of all rows."""
    with tempfile.TemporaryDirectory() as meet:
        command = [sys.executable, "-P", "-c", _RANK, str(folder), str(options.resolution), meet]
        ranks = [subprocess.Popen([*command, str(r)], stdout=subprocess.PIPE, text=True) for r in (0, 1)]
        found = [json.loads(rank.communicate()[0].splitlines()[-1]) for rank in ranks]
    if found[0] != found[1]:
        raise SystemExit(f"the ranks disagree: {found}")
    return dict(found[0], ranks=2)


_RANK = """
import json, sys
import pyarrow.parquet as pq, torch, torch.distributed as dist
from pathlib import Path
import calibrary as cal
folder, resolution, meet, rank = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
dist.init_process_group("gloo", init_method=f"file://{meet}/here", rank=rank, world_size=2)
metric = cal.scale.torch.CalibrationMetric("ece", resolution=resolution)
for file in sorted(Path(folder).glob("*.parquet"))[rank::2]:
    for batch in pq.ParquetFile(file).iter_batches(1 << 18, columns=["p", "y"]):
        metric.update(*(torch.from_numpy(batch.column(name).to_numpy().copy()) for name in ("p", "y")))
state = metric.state()
dist.destroy_process_group()
print(json.dumps({"rows": state.n, "digest": state.digest}))
"""


def step_spark(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Two executors, each a process of its own."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1400]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "2g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    frame = session.read.parquet(str(folder))
    state = cal.scale.spark(frame, label="y", prob="p", resolution=options.resolution)
    session.stop()
    return {"rows": state.n, "digest": state.digest}


def step_evaluate(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Every metric that a state has, values alone."""
    state = cal.scale.State.load(state_file(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.evaluate(state)
    return {"metrics": len({row.id for row in found}), "skipped": len(found.skipped)}


def step_inference(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Intervals and tests of the short list, 499 draws each, at the resolution that is enough for resampling."""
    state = cal.scale.State.load(state_file(folder)).coarser(4800)
    each = {}
    for id in SHORT_LIST:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cal.interval(id, state, n_resamples=499, rng=0)
            tested = cal.test(id, state, method="monte-carlo", n_resamples=499, rng=0)
        each[id] = {
            "low": found.low, "high": found.high, "pvalue": float(tested.pvalue), "cpu": time.process_time() - start,
        }  # fmt: skip
        print(f"{id}: {each[id]}", file=sys.stderr, flush=True)
    return {"inference": each}


def step_exact(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Every metric of the state beside its value on the rows, which must fit in memory."""
    table = pq.read_table(folder)
    p = cal.predictions(table["y"].to_numpy().astype(np.int64), table["p"].to_numpy())
    rows = cal.scale.State.load(state_file(folder)).as_predictions()
    errors = {}
    for id, fact in declared().items():
        entry = cal.catalogue[id]
        if fact.kind not in ("exact", "smooth", "order") or (options.rows > 2e6 and id in _SLOW):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            true, found = (list(numbers(measure(entry, data), entry.fields).values()) for data in (p, rows))
            known = accuracy_of(rows, entry, {})
        off = max(abs(a - b) if a != b else 0.0 for a, b in zip(true, found, strict=True))
        errors[id] = {
            "kind": fact.kind, "exact": true[0], "error": off, "bound": known.bound,
            "relative": off / max(map(abs, true)) if off else 0.0,
        }  # fmt: skip
        print(f"{id}: {errors[id]}", file=sys.stderr, flush=True)
    return {"errors": errors}


def step_sums(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Metrics that add up over chunks of rows beside those of the state, for any number of rows; no file is needed."""
    state, each, bins = cal.scale.State(options.resolution), {id: [] for id in _MEANS}, np.zeros((3, 15))
    for _, p, y in generated(options.rows, options.files):
        state.update(y, p)
        chunk = cal.predictions(y.astype(np.int64), p)
        for id, sums in each.items():
            sums.append(measure(cal.catalogue[id], chunk) * len(y))
        index = (p * 15).astype(np.int64)
        bins += [np.bincount(index, x, 15) for x in (None, y, p)]
    gap = np.abs(bins[1] - bins[2])
    exact = {id: math.fsum(sums) / options.rows for id, sums in each.items()}
    exact |= {"ece": float(gap.sum() / options.rows), "mce": float((gap / bins[0]).max())}
    found = {id: float(cal.compute(id, state)) for id in exact}
    return {
        "rows": state.n, "digest": state.digest,
        "sums": {id: {"exact": exact[id], "state": found[id], "error": abs(found[id] - exact[id])} for id in exact},
    }  # fmt: skip


#: Means over rows.
_MEANS = ("mae", "bs", "nll", "fl", "hinge")

#: Their values on many rows take too long for a benchmark.
_SLOW = ("honest_error", "intce", "skce_uq", "skce_b", "kccsd", "dkde", "bkde", "calibration_e_value")


def step_memory(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Peak memory of evaluate, values alone, on arrays of several sizes, each in a process of its own.

    The largest of the slopes from the first size counts, input and all.
    """
    sizes = sorted({*_SLOPE, min(options.rows, _MOST_IN_MEMORY)})
    peaks = [run(f"memory_{n}", folder, [])["peak_gb"] for n in sizes]
    slopes = [(peak - peaks[0]) * 1e9 / (n - sizes[0]) for n, peak in zip(sizes[1:], peaks[1:], strict=True)]
    return {"bytes_a_row": max(slopes), "slopes": slopes, "sizes": sizes, "peaks_gb": peaks}


def evaluate_arrays(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, n)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-0.8 * z))
    z = 1.0 / (1.0 + np.exp(-z))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"metrics": len({row.id for row in cal.evaluate(y, z)})}


STEPS = {name.removeprefix("step_"): step for name, step in globals().items() if name.startswith("step_")}


def run(step: str, folder: Path, arguments: list[str]) -> dict[str, Any]:
    """One step in a process of its own: what it found, wall and CPU seconds, peak memory."""
    done = subprocess.run(
        [sys.executable, "-P", __file__, *arguments, "--folder", str(folder.parent), "--step", step],
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if lines and not done.returncode else {"failed": done.returncode}


def measured(step: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    if step == "scan":  # compiled code is read from its cache before the clock starts
        cal.scale.State().update(np.zeros(500_000, dtype=int), np.zeros(500_000)).n  # noqa: B018
    before = time.process_time()
    wall, cpu = time.perf_counter(), _cpu()
    size = step.removeprefix("memory_")
    found = evaluate_arrays(int(size)) if size.isdigit() else STEPS[step](folder, options)
    use = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "step": step, "wall": time.perf_counter() - wall, "cpu": _cpu() - cpu, "cpu_before": before,
        "peak_gb": use.ru_maxrss / 1e6, "load": os.getloadavg()[0], **found,
    }  # fmt: skip


def _cpu() -> float:
    """CPU seconds of this process and of the processes it started and that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


# -- the table --------------------------------------------------------------------------------------


def report(results: dict[str, dict[str, Any]], rows: int) -> list[str]:
    """Lines for people, each with its bar."""
    lines = []
    for name, r in results.items():
        if "failed" in r:
            lines.append(f"{name:10} failed with exit code {r['failed']}")
            continue
        digest = f"  {r['digest'][:16]}" if "digest" in r else ""
        times = f"{r['wall']:8.1f} s wall {r['cpu']:8.1f} s CPU {r['peak_gb']:6.2f} GB"
        lines.append(f"{name:10} {times}  {r['cpu'] / rows * 1e9:6.1f} ns/row{digest}")
    read, scan = results.get("read", {}), results.get("scan", {})
    if "cpu" in read and "cpu" in scan:
        lines.append(_held("scan, times PyArrow's reading (CPU)", scan["cpu"] / read["cpu"], BARS["scan_ratio"]))
        lines.append(_held("scan, times PyArrow's reading (wall)", scan["wall"] / read["wall"], BARS["scan_ratio"]))
        lines.append(_held("peak, GB", scan["peak_gb"], BARS["peak_gb"]))
        lines.append(_held("saved state, MB", scan["saved_mb"], BARS["saved_mb"]))
    digests = {r["digest"] for r in results.values() if "digest" in r}
    if digests:
        engines = sum("digest" in r for r in results.values())
        lines.append(f"{engines} engines, {len(digests)} digest: {'as it must be' if len(digests) == 1 else 'MISSED'}")
    if "inference" in results and "cpu" in results["inference"]:
        lines.append(
            _held("intervals and tests of the short list, CPU s", results["inference"]["cpu"], BARS["inference_s"])
        )
    if "bytes_a_row" in results.get("memory", {}):
        lines.append(_held("evaluate on arrays, bytes a row", results["memory"]["bytes_a_row"], BARS["bytes_a_row"]))
    for kind, bar in (("exact", 1e-12), ("smooth", 1e-6)):
        errors = results.get("exact", {}).get("errors", {})
        # a value of zero has no relative error; a metric is not exact where an edge of its own cuts a cell
        some = {
            id: min(e["relative"], e["error"])
            for id, e in errors.items()
            if e["kind"] == kind and id != "pws" and not (kind == "exact" and e["bound"])
        }
        if some:
            worst = max(some, key=lambda id: some[id])
            lines.append(_held(f"largest relative error, {kind} metrics ({worst})", some[worst], bar))
    return lines


def _held(what: str, value: float, bar: float) -> str:
    return f"{what}: {value:.3g}, bar {bar:g}: {'held' if value <= bar else 'MISSED'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--resolution", type=int, default=19200)
    parser.add_argument("--folder", type=Path, default=Path("build/scale"))
    parser.add_argument("--engines", default="scan,dask,duckdb,torch")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--sums", action="store_true")
    parser.add_argument("--again", nargs="*", default=[], help="steps to run although their result is there")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the numbers are kept")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder.resolve() / f"rows-{options.rows}"
    if options.step:
        print(json.dumps(measured(options.step, options.folder / f"rows-{options.rows}", options)))
        return 0
    kept = json.loads(options.output.read_text()) if options.output.exists() else {}
    results = kept.setdefault(str(options.rows), {})
    steps = ["read", *(name for name in options.engines.split(",") if name), "evaluate"]
    steps += [name for name in ("inference", "exact", "memory", "sums") if getattr(options, name)]
    for step in steps:
        if step in results and "failed" not in results[step] and step not in options.again:
            continue
        if step not in ("memory", "sums"):  # these make their own rows
            write_data(folder, options.rows, options.files)
        print(f"{step} ...", file=sys.stderr, flush=True)
        arguments = ["--rows", str(options.rows), "--resolution", str(options.resolution)]
        arguments += ["--files", str(options.files)]
        results[step] = run(step, folder, arguments)
        options.output.write_text(json.dumps(kept, indent=1) + "\n")  # so that what is done stays done
    print(f"{options.rows:,} rows, {options.files} files, resolution {options.resolution}, {os.cpu_count()} cores")
    print("\n".join(report(results, options.rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
