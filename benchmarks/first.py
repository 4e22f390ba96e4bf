"""The first answer: CPU seconds of a fresh process and a fresh cache, with and without a compiler, and beside others.

``python benchmarks/first.py`` starts one new process for each job and each package, with an empty folder for compiled
loops, and measures user and system time of that process. It writes ``first.json`` and prints the table. Other packages
run in the environments that ``peers.py`` made, or in this one; a package that is not installed, or has no such job, is
left out. The size of an installation is that of the files which the installed
packages list, without bytecode.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

DATA = """
import numpy as np
rng = np.random.default_rng(0)
p = rng.beta(1.0, 1.0, {rows})
y = (rng.random({rows}) < p**1.3).astype(np.int64)
"""
#: Jobs on more rows than the others.
ROWS = {"page of 20,000 rows": 20_000}
#: The packages that an installation consists of, beside calibrary.
INSTALLED = {"plain": ("numpy", "scipy"), "fast": ("numba", "llvmlite")}
#: What each job does with calibrary; the last three need figures.
OURS = {
    "import": "import calibrary",
    "one metric": DATA + "import calibrary as cal; cal.compute('ece', y, p)",
    "interval": DATA + "import calibrary as cal; cal.interval('ece', y, p, rng=0)",
    "evaluate": DATA + "import calibrary as cal; cal.evaluate(y, p)",
    "page": DATA + "import calibrary as cal; cal.report(y, p).save('page.html')",
    "page of 20,000 rows": DATA + "import calibrary as cal; cal.report(y, p).save('page.html')",
    "demo": "import sys; sys.argv = ['calibrary', 'demo']; from calibrary.cli import main; main()",
}
#: The nearest thing that other packages do.
PEERS = {
    "numpy and scipy.special": {"import": "import numpy, scipy.special"},
    "scikit-learn": {
        "import": "import sklearn.calibration",
        "one metric": DATA + "from sklearn.metrics import brier_score_loss; brier_score_loss(y, p)",
    },
    "netcal": {
        "import": "import netcal.metrics",
        "one metric": DATA + "from netcal.metrics import ECE; ECE(15).measure(p, y)",
    },
    "relplot": {
        "import": "import relplot",
        "one metric": DATA + "import relplot; relplot.smECE(p, y)",
        "page": DATA
        + "import relplot, matplotlib; matplotlib.use('agg'); relplot.rel_diagram(p, y)[0].savefig('r.svg')",
    },
    "torchmetrics": {
        "import": "import torchmetrics",
        "one metric": DATA
        + "import torch; from torchmetrics.functional.classification import binary_calibration_error; "
        "binary_calibration_error(torch.tensor(p), torch.tensor(y), n_bins=15)",
    },
    "probcal": {
        "import": "import probcal",
        "one metric": DATA + "from probcal import metrics; metrics.ece(y, p)",
    },
}
WITHOUT = "import sys; sys.modules['numba'] = None\n"


def pythons() -> dict[str, str]:
    """The Python of each other package, where ``peers.py`` has noted it."""
    note = HERE.parent / ".venv-bench" / "packages.json"
    return dict(json.loads(note.read_text())["python"]) if note.exists() else {}


def cpu_seconds(code: str, folder: str, python: str) -> float | None:
    """User and system time of a fresh process; None where it fails."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([python, "-W", "ignore", "-c", code], cwd=folder, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(spent, 2) if done.returncode == 0 else None


def measured(code: str, again: bool = False, python: str = sys.executable) -> list[float | None]:
    """With an empty cache and, where asked, once more with what the first run left there."""
    with tempfile.TemporaryDirectory() as folder:
        return [cpu_seconds(code, folder, python) for _ in range(2 if again else 1)]


def megabytes() -> dict[str, int]:
    """The size of a plain installation (with calibrary itself), and of what ``calibrary[fast]`` adds."""
    own = sum(
        path.stat().st_size for path in (HERE.parent / "src").rglob("*") if path.is_file() and not _bytecode(path)
    )
    sizes = {
        kind: sum(path.stat().st_size for name in names for path in _files(name)) for kind, names in INSTALLED.items()
    }
    return {"plain": round((own + sizes["plain"]) / 1e6), "fast adds": round(sizes["fast"] / 1e6)}


def _files(package: str) -> list[Path]:
    listed = distribution(package)
    return [path for file in listed.files or () if (path := Path(str(listed.locate_file(file)))).is_file()
            and not _bytecode(path)]  # fmt: skip


def _bytecode(path: Path) -> bool:
    return "__pycache__" in path.parts


def table(result: dict[str, Any]) -> str:
    """The table of docs/evidence/speed.md: a row for each job, a column for each package; a dash where it has none."""
    jobs = result["cpu_seconds"]
    packages = list(dict.fromkeys(name for job in jobs.values() for name in job))
    head = ["CPU seconds", *packages]
    rows = [
        [job, *("-" if (s := found.get(name)) is None else f"{s:g}" for name in packages)]
        for job, found in jobs.items()
    ]
    lines = [head, ["---", *["---:"] * len(packages)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--jobs", nargs="+", default=list(OURS), help="the other jobs keep their stored times")
    parser.add_argument("--out", type=Path, default=HERE / "first.json")
    asked = parser.parse_args()
    stored = json.loads(asked.out.read_text())["cpu_seconds"] if asked.out.exists() else {}
    others = pythons()
    found: dict[str, dict[str, float | None]] = {}
    for job in asked.jobs:
        code = OURS[job].format(rows=ROWS.get(job, asked.rows))
        cold, warm = measured(code, True)
        (plain,) = measured(WITHOUT + code)
        found[job] = {"calibrary, fresh cache": cold, "calibrary, again": warm, "calibrary without numba": plain}
        for peer, jobs in PEERS.items():
            if job in jobs:
                (seconds,) = measured(jobs[job].format(rows=asked.rows), python=others.get(peer, sys.executable))
                if seconds is not None:
                    found[job][peer] = seconds
        print(job, found[job], flush=True)
    result = {
        "rows": asked.rows,
        "python": platform.python_version(),
        "megabytes": megabytes(),
        "cpu_seconds": {job: times for job in OURS if (times := found.get(job, stored.get(job)))},
    }
    asked.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


if __name__ == "__main__":
    main()
