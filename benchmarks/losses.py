"""Time and memory of the losses: forward and backward from logits, beside another version if asked.

    python benchmarks/losses.py                          # this checkout, on the CPU and on CUDA where there is one
    python benchmarks/losses.py --base /path/to/checkout # and the losses of another checkout
    python benchmarks/losses.py --device cuda --sizes 1000 10000 --only mmce skce --json losses.json

Needs PyTorch and what calibrary itself imports, nothing else. Single precision; the best of several runs in
milliseconds, and the largest memory in use beyond what was there before, in MB. A size is left out when the one before
it lets expect more than ``--limit`` seconds a run ("~12 s"), and a version that would need more memory than there is
says so ("no room").
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SIZES = (1_000, 10_000, 30_000, 100_000, 1_000_000)
#: Name, function, classes (1: one probability per row), options, and the largest number of rows it is for.
LOSSES: list[tuple[str, str, int, dict[str, Any], int]] = [
    ("brier, K=10", "brier_score", 10, {}, 1_000_000),
    ("soft bins, top-label K=10", "soft_binned_calibration_error", 10, {}, 1_000_000),
    ("soft bins, class-wise K=1000", "soft_binned_calibration_error", 1000, {"lens": "class-wise"}, 100_000),
    ("mmce, top-label K=10", "maximum_mean_calibration_error", 10, {}, 1_000_000),
    ("mmce, class-wise K=1000", "maximum_mean_calibration_error", 1000, {"lens": "class-wise"}, 100_000),
    ("mmce, Gaussian", "maximum_mean_calibration_error", 1, {"kernel": "gaussian", "bandwidth": 0.2}, 1_000_000),
    ("msce", "mean_squared_calibration_error", 1, {}, 1_000_000),
    ("sece", "smooth_label_calibration_error", 1, {}, 1_000_000),
    ("smece, width 0.05", "smooth_calibration_error_residual", 1, {"sigma": 0.05}, 1_000_000),
    ("smece, fixed point", "smooth_calibration_error_residual", 1, {}, 1_000_000),
    ("lsece", "logit_smoothed_calibration_error", 1, {}, 1_000_000),
    ("rice", "random_interval_calibration_error", 1, {}, 1_000_000),
    ("kuiper", "kuiper_calibration_error", 1, {}, 1_000_000),
    ("atb", "averaged_two_bin_error", 1, {}, 1_000_000),
    ("skce_uq, two classes", "squared_kernel_calibration_error_uq", 1, {"bandwidth": 0.3}, 1_000_000),
    ("skce_ul, K=10", "squared_kernel_calibration_error_ul", 10, {"bandwidth": 0.3}, 1_000_000),
    ("skce_uq, K=10", "squared_kernel_calibration_error_uq", 10, {"bandwidth": 0.3}, 100_000),
    ("skce_uq, Gaussian K=10", "squared_kernel_calibration_error_uq", 10, {"bandwidth": 0.3, "kernel": "gaussian"},
     100_000),
    ("skce_uq, Gaussian K=1000", "squared_kernel_calibration_error_uq", 1000, {"bandwidth": 0.3, "kernel": "gaussian"},
     100_000),
    ("kccsd, K=10", "kernel_calibration_conditional_stein_discrepancy", 10, {"bandwidth": 0.3}, 100_000),
    ("bkde", "beta_kernel_calibration_error", 1, {"bandwidth": 0.02}, 100_000),
    ("dkde, K=10", "dirichlet_kernel_calibration_error", 10, {"bandwidth": 0.1}, 100_000),
    ("dkde, K=1000", "dirichlet_kernel_calibration_error", 1000, {"bandwidth": 0.1}, 100_000),
    ("l1cbod", "detection_kernel_calibration_error", 1, {"bandwidth": 0.02}, 100_000),
]  # fmt: skip
#: Losses whose time grows as the square of the rows.
PAIRS = ("skce_uq, K", "skce_uq, Gaussian", "kccsd", "bkde", "dkde", "l1cbod")
#: Losses that the other version made from a table of all pairs.
TABLES = ("mmce", "msce", "sece", "bkde", "dkde")


def main() -> None:
    asked = arguments()
    if asked.worker:
        work(asked)
        return
    if asked.page:
        write_page(Path(asked.page[0]), Path(asked.page[1]))
        return
    results: dict[str, Any] = {
        "machine": asked.machine or platform.platform(),
        "threads": None,
        "versions": {},
        "runs": [],
    }
    devices = ["cpu", "cuda"] if asked.device == "all" else [asked.device]
    trees = {"this": ROOT, **({"base": Path(asked.base)} if asked.base else {})}
    for device in devices:
        for version, tree in trees.items():
            for run in runs_of(version, tree, device, asked):
                results["runs"].append(run)
        print(table(results["runs"], device, list(trees)), flush=True)
        if asked.json:
            Path(asked.json).write_text(json.dumps(results, indent=1))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda", "all"], default="all")
    parser.add_argument("--base", help="another checkout of calibrary, to stand beside this one")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--only", nargs="+", default=[], help="losses whose name holds one of these words")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a single run may take")
    parser.add_argument("--json", help="where the numbers go")
    parser.add_argument("--machine", help="its description in the file of numbers")
    parser.add_argument("--page", nargs=2, metavar=("JSON", "PAGE"), help="write the stored numbers into this page")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def runs_of(version: str, tree: Path, device: str, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """All runs of one version on one device, in a process of its own."""
    given = ["--device", device, "--limit", str(asked.limit), "--sizes", *map(str, asked.sizes)]
    given += ["--only", *asked.only] if asked.only else []
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, __file__, "--worker", version, *given]
    runs = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            runs.append(json.loads(line))
            print(describe(runs[-1]), file=sys.stderr, flush=True)
    if process.returncode:
        print(f"{version} on {device} ended with {process.returncode}", file=sys.stderr)
    return runs


# -- measuring ---------------------------------------------------------------------------------------


def work(asked: argparse.Namespace) -> None:
    """Measure in this process, one line of JSON for each run."""
    import torch

    if asked.device == "cuda" and not torch.cuda.is_available():
        return
    from calibrary import losses

    for name, function, classes, options, most in LOSSES:
        loss = getattr(losses, function, None)
        if loss is None or (asked.only and not any(word in name for word in asked.only)):
            continue
        before = None
        for n in (n for n in asked.sizes if n <= most):
            run = {"version": asked.worker, "device": asked.device, "loss": name, "n": n}
            full = asked.worker == "base" and name.startswith(TABLES)
            quadratic = full or any(word in name for word in PAIRS)
            expected = before[1] * (n / before[0]) ** (2 if quadratic else 1) if before else 0.0
            need = n * n * 4 if full else n * classes * 40
            if expected > asked.limit:
                run["expected_s"] = expected
            elif need > memory(asked.device):
                run["memory_GB"] = need / 1e9
            else:
                run |= measured(loss, n, classes, options, asked)
                before = (n, run["ms"] / 1e3) if "ms" in run else before
            print(json.dumps(run))


def measured(
    loss: Callable[..., Any], n: int, classes: int, options: dict[str, Any], asked: argparse.Namespace
) -> dict[str, Any]:
    import torch

    generator = torch.Generator(device=asked.device).manual_seed(0)
    shape = (n,) if classes == 1 else (n, classes)
    logits = (2.0 * torch.randn(shape, generator=generator, device=asked.device)).requires_grad_()
    y = torch.randint(0, max(classes, 2), (n,), generator=generator, device=asked.device)

    def step() -> float:
        logits.grad = None
        wait(asked.device)
        start = time.perf_counter()
        p = torch.sigmoid(logits) if classes == 1 else torch.softmax(logits, dim=1)
        loss(y, p, **options).backward()
        wait(asked.device)
        return time.perf_counter() - start

    try:
        first = step()
        times = [step()]
        while len(times) < 5 and sum(times) < min(1.0, asked.limit):
            times.append(step())
        with memory_given_back(asked.device):
            logits.grad = None
            forget_peak(asked.device)
            held = in_use(asked.device)
            step()
            peak = largest(asked.device) - held
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"memory_GB": None}
    except RuntimeError as error:  # the CPU's allocator
        if "alloc" not in str(error):
            raise
        return {"memory_GB": None}
    return {"ms": 1e3 * min(times), "first_ms": 1e3 * first, "peak_MB": peak / 1e6}


def wait(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def memory(device: str) -> float:
    """Bytes that a single tensor may have."""
    if device == "cuda":
        import torch

        return float(torch.cuda.get_device_properties(0).total_memory)
    return 0.25 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextlib.contextmanager
def memory_given_back(device: str) -> Iterator[None]:
    """Freed memory goes back to the system at once, so that what a step needs can be seen from outside."""
    if device == "cuda" or not sys.platform.startswith("linux"):
        yield
        return
    libc = ctypes.CDLL(None)
    threshold = -3  # M_MMAP_THRESHOLD: blocks of this size and more are pages of their own
    libc.mallopt(threshold, 1 << 16)
    libc.malloc_trim(0)
    try:
        yield
    finally:
        libc.mallopt(threshold, 1 << 25)
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD: freed memory stays with the process again, as usual


def forget_peak(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
        return
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def in_use(device: str) -> float:
    return _memory(device, "VmRSS", "memory_allocated")


def largest(device: str) -> float:
    return _memory(device, "VmHWM", "max_memory_allocated")


def _memory(device: str, line: str, function: str) -> float:
    if device == "cuda":
        import torch

        return float(getattr(torch.cuda, function)())
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return math.nan
    return float(next(row for row in status.splitlines() if row.startswith(line)).split()[1]) * 1024


# -- showing -----------------------------------------------------------------------------------------


def describe(run: dict[str, Any]) -> str:
    return f"{run['device']:5}{run['version']:5}{run['loss']:30}{run['n']:>9}  {cell(run)}"


def cell(run: dict[str, Any] | None) -> str:
    if run is None:
        return ""
    if "ms" in run:
        spent = f"{run['ms']:.1f} ms" if run["ms"] < 10 else f"{run['ms']:.0f} ms"
        spent = spent if run["ms"] < 1e3 else f"{run['ms'] / 1e3:.1f} s"
        room = f"{max(run['peak_MB'], 0.0):.0f} MB" if run["peak_MB"] < 1e3 else f"{run['peak_MB'] / 1e3:.2g} GB"
        return f"{spent}, {room}"
    return f"~{run['expected_s']:,.0f} s" if "expected_s" in run else "no room"


def write_page(numbers: Path, page: Path) -> None:
    """Put the tables between the two marks of the page."""
    stored = json.loads(numbers.read_text())
    begin, end = "<!-- losses.json -->", "<!-- end -->"
    text = page.read_text()
    above, rest = text.split(begin)
    tables = [table(stored["runs"], device, ["this", "base"]) for device in ("cuda", "cpu")]
    page.write_text(
        above + begin + f"\n\n{stored['machine']}:\n\n" + "\n\n".join(tables) + f"\n\n{end}" + rest.split(end)[1]
    )


def table(runs: list[dict[str, Any]], device: str, versions: list[str]) -> str:
    here = {(r["loss"], r["n"], r["version"]): r for r in runs if r["device"] == device}
    if not here:
        return f"no run on {device}"
    sizes = sorted({n for _, n, _ in here})
    lines = [f"| {device} |" + "".join(f" {n:,} |" for n in sizes), "| --- |" + " --- |" * len(sizes)]
    for name in dict.fromkeys(loss for loss, _, _ in here):
        for version in versions:
            cells = [cell(here.get((name, n, version))) for n in sizes]
            if any(cells):
                label = name if version == "this" else "*0.1.0*"
                lines.append(f"| {label} |" + "".join(f" {text} |" for text in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
