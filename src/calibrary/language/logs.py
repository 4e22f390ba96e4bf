"""Logs of language models as tables: the type of a log file, and its columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from calibrary.base.errors import one_of
from calibrary.language.harness import NORMALIZED, is_samples, read_samples
from calibrary.language.inspect_log import is_eval, is_json_log, read_inspect
from calibrary.language.log import Log, LogError

__all__ = ["Log", "LogError", "log_kind", "read_log"]


def log_kind(path: Path) -> str:
    """ "inspect", "harness" or "" for a file that is not a log; a folder counts if it has samples of the harness."""
    if path.is_dir():
        return "harness" if _samples_in(path)[0] else ""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        head = file.read(65536)
    if path.suffix == ".eval":
        return "inspect" if is_eval(head) else "cut"
    if path.suffix == ".json" and is_json_log(head):
        return "inspect"
    return "harness" if path.suffix == ".jsonl" and is_samples(head) else ""


def _samples_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of samples below a folder, and files of that name that are no files of samples, or packed ones."""
    found: tuple[list[Path], list[Path]] = ([], [])
    for path in sorted(folder.rglob("samples_*.jsonl*")):
        with path.open("rb") as file:
            found[0 if path.suffix == ".jsonl" and is_samples(file.read(4096)) else 1].append(path)
    return found


def read_log(
    path: str | Path,
    *,
    scorer: str | None = None,
    prob: str | None = None,
    normalize: str = "none",
    sampled: bool = False,
) -> Log:
    """A log of lm-evaluation-harness (``samples_*.jsonl`` or their folder) or of Inspect (``.eval``, ``.json``).

    Parameters
    ----------
    path : str or Path
    scorer : str, optional
        The scorer of Inspect, or the filter of lm-evaluation-harness, to use if there are several.
    prob : str, optional
        Inspect: the field of the confidence, such as "metadata.confidence"; by default it is recognised by its name.
    normalize : "none" or "length"
        lm-evaluation-harness: "length" divides each log-likelihood by the length of its option's text first, as
        ``acc_norm`` does.
    sampled : bool
        Inspect: the epochs are sampled answers, and no confidence is needed.

    Returns
    -------
    Log
        Its ``columns`` have one row for each answer, ``said`` is one line that describes the log, and ``sampled()``
        gives the arguments of ``sampled_answers``.

    Examples
    --------
    >>> import calibrary as cal
    >>> log = cal.language.read_log("samples_arc_2026-11-16T10-00-00.jsonl")  # doctest: +SKIP
    """
    path = Path(path)
    one_of("normalize", normalize, NORMALIZED)
    if not path.exists():
        raise LogError(f"no such file: {path}")
    kind = log_kind(path)
    if kind == "cut":
        raise LogError(f"{path} is not a zip file: it was cut off at its beginning, or it is not a log of Inspect")
    if kind == "inspect":
        return read_inspect(path, scorer, prob, sampled)
    if kind != "harness":
        raise LogError(
            f"{path} is not a log: lm-evaluation-harness writes samples_*.jsonl with --log_samples, Inspect .eval or "
            ".json"
        )
    if sampled:
        raise LogError(
            f"{path} contains log-likelihoods and no sampled answers: sampled answers are the epochs of an Inspect log"
        )
    files, others = _samples_in(path) if path.is_dir() else ([path], [])
    log = read_samples(files, str(path), normalize, scorer)
    left = [f"{other} left out: it is not a file of samples" for other in others]
    return replace(log, notes=(*log.notes, *left))
