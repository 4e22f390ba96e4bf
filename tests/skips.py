"""Why a test may be skipped: the only reasons there are, and the command that runs what was left out.

``python tests/skips.py`` says in one line what will be skipped on this machine. A run fails where a reason is not in
the table; ``CALIBRARY_MUST_RUN=torch,browser`` makes it fail where one of these reasons occurs, too.
"""

from __future__ import annotations

import collections
import importlib.util
import os
import re
import shutil

#: name: (pattern of the reason that pytest shows, the command that runs these tests or None where nothing is lost)
REASONS = {
    "not applicable": (r"does not apply: .+", None),
    "torch": (
        r"(could not import '(calibrary\.losses|torch)|unable to import module .*(losses|torch)).*",
        "make test-torch",
    ),
    "integrations": (
        r"(could not import '(mlflow|lightning|torchmetrics|evaluate|inspect_ai|lm_eval)|"
        r"unable to import module .*(mlflow|inspect_ai)).*",
        "make integrations",
    ),
    "mcp": (r"(could not import 'mcp|unable to import module .*mcp).*", "make test"),
    "docs": (r"could not import '(latex2mathml|griffe|fontTools)[\w.]*'.*", "make docs"),
    "package": (r"could not import '.+", "install the package that is named"),
    "spark": (r"no (Spark|Postgres): .+", "make engines"),
    "tutorials": (r"make tutorials runs this page", "make tutorials"),
    "cuda": (r"no CUDA device", "make test-torch on a machine with a CUDA device"),
    "browser": (r"no browser: .+", "install chromium and chromedriver"),
    "build": (r"this build lacks: .+", "a newer build of the library that is named"),
    "disk": (r"no small disk: .+", "run as root, who may mount one"),
    "root": (r"not as root: .+", "run as another user"),
    "checkout": (r"not a checkout", "run in a checkout of the repository"),
}


def reason_of(text: str) -> str | None:
    """The name of a reason in the table; None for a reason that is not in it."""
    text = text.removeprefix("Skipped: ")
    return next((name for name, (pattern, _) in REASONS.items() if re.fullmatch(pattern, text, re.DOTALL)), None)


def must_run() -> set[str]:
    """The reasons that may not occur in this run."""
    return set(filter(None, os.environ.get("CALIBRARY_MUST_RUN", "").split(",")))


def counted(texts: list[str]) -> tuple[collections.Counter[str], list[str]]:
    """How often each reason occurs, and the reasons that are not allowed: unknown ones and those that must run."""
    named = [(reason_of(text), text) for text in texts]
    refused = sorted({text for name, text in named if name is None or name in must_run()})
    return collections.Counter(name or "unknown" for name, _ in named), refused


def expected() -> list[str]:
    """The names of the reasons that will occur on this machine, as far as can be told before the run."""
    missing = {
        "torch": importlib.util.find_spec("torch") is None,
        "integrations": any(importlib.util.find_spec(name) is None for name in ("mlflow", "lightning", "evaluate")),
        "mcp": importlib.util.find_spec("mcp") is None,
        "docs": importlib.util.find_spec("latex2mathml") is None,
        "spark": os.environ.get("CALIBRARY_ENGINES") != "1",
        "browser": not (shutil.which("chromium") or shutil.which("google-chrome")) or not shutil.which("chromedriver"),
    }
    return [name for name, true in missing.items() if true]


if __name__ == "__main__":
    left_out = "; ".join(f"{name} ({REASONS[name][1]})" for name in expected())
    print(f"Skipped on this machine, with the command that runs it: {left_out or 'nothing'}.", flush=True)
