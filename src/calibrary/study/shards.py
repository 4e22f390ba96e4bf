"""A shard: one file for each setting and sample size, with the value of every metric in every draw.

A shard is never left incomplete, and its random stream depends on seed, sample size and setting only. A stopped study
can therefore be continued, several machines can share a study, and a metric that is added later is computed on the same
samples as the others.
"""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import first_line
from calibrary.base.files import write_atomically
from calibrary.base.saved import SavedFileError, digest, parse_json, value_of
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import predictions
from calibrary.numerics.draw import addressed
from calibrary.study.panel import Number
from calibrary.study.world import AnyWorld


@dataclass(frozen=True)
class Job:
    """One shard to compute: a setting, a sample size, and the number of draws for each metric."""

    world: AnyWorld
    n: int
    draws: Mapping[str, int] = field(hash=False)

    @property
    def file(self) -> str:
        """The name of its file."""
        return re.sub(r"[^a-z0-9.+-]+", "_", f"{self.world.name}.{self.n}".lower()) + ".npz"


@dataclass(frozen=True)
class Shard:
    """The content of a shard: ``values[draw, number]``, NaN if a draw was not computed or is undefined.

    Attributes
    ----------
    names : the names of the values
    values : array of draws by values
    drawn : number of computed draws, for each value
    seconds : CPU seconds of one evaluation, for each value
    undefined : the reason why a value is undefined in some draw, by name
    """

    names: tuple[str, ...]
    values: Array
    drawn: Indices
    seconds: Array
    undefined: Mapping[str, str]

    def lacks(self, draws: Mapping[str, int]) -> list[str]:
        """The values with fewer draws than requested."""
        have = dict(zip(self.names, self.drawn, strict=True))
        return [name for name, wanted in draws.items() if have.get(name, 0) < wanted]

    def joined(self, other: Shard) -> Shard:
        """Both shards joined; the other's values replace values that are in both."""
        kept = [i for i, name in enumerate(self.names) if name not in set(other.names)]
        rows = max(len(self.values), len(other.values))
        parts = [_padded(self.values[:, kept], rows), _padded(other.values, rows)]
        return Shard(
            (*(self.names[i] for i in kept), *other.names),
            np.concatenate(parts, axis=1),
            np.concatenate([self.drawn[kept], other.drawn]),
            np.concatenate([self.seconds[kept], other.seconds]),
            {**{k: v for k, v in self.undefined.items() if k not in set(other.names)}, **other.undefined},
        )

    def save(self, path: Path) -> None:
        """Write the shard; the file is never left incomplete."""
        names = np.array(self.names, dtype=np.str_)
        arrays: dict[str, Any] = {"names": names, "values": self.values, "drawn": self.drawn, "seconds": self.seconds}
        undefined, buffer = dict(self.undefined), io.BytesIO()
        arrays |= {"undefined": json.dumps(undefined), "digest": digest(undefined, arrays)}
        np.savez_compressed(buffer, **arrays)
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: Path) -> Shard:
        """Read a shard; a damaged file is refused with one sentence."""
        try:
            return _shard_of(*_read(path))
        except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
            raise SavedFileError(
                f"{path} is not a shard of a study ({first_line(error)}): remove it, and the study computes it again"
            ) from error


#: The most bytes of a shard's arrays.
_MOST_BYTES = 1 << 30


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays and plain values of a shard; never a pickle, and limited in size."""
    with zipfile.ZipFile(path) as packed:
        if sum(info.file_size for info in packed.infolist()) > _MOST_BYTES:
            raise SavedFileError(f"it unpacks to more than {_MOST_BYTES:,} bytes")
    with np.load(path, allow_pickle=False) as f:
        arrays = {name: f[name] for name in ("names", "values", "drawn", "seconds")}
        words = {name: str(f[name]) for name in ("undefined", "digest") if name in f.files}
    return arrays, words


def _shard_of(arrays: Mapping[str, NDArray[Any]], words: Mapping[str, str]) -> Shard:
    undefined = value_of(dict[str, str], parse_json(words["undefined"], "text"), "undefined")
    if "digest" in words and words["digest"] != digest(undefined, arrays):  # 0.2 wrote none
        raise SavedFileError("its content does not match its digest, so it was damaged or edited")
    kinds = {"names": "U", "values": "f", "drawn": "iu", "seconds": "f"}
    for name, kind in kinds.items():
        if arrays[name].dtype.kind not in kind or arrays[name].ndim != (2 if name == "values" else 1):
            raise SavedFileError(f"{name} is an array of another type or shape")
    values, drawn = arrays["values"], arrays["drawn"]
    if {values.shape[1], len(drawn), len(arrays["seconds"])} != {len(set(arrays["names"].tolist()))}:
        raise SavedFileError("its arrays are of different lengths, or name a number twice")
    if ((drawn < 0) | (drawn > len(values))).any():
        raise SavedFileError(f"drawn must be from 0 to the {len(values)} draws")
    return Shard(tuple(arrays["names"].tolist()), values, drawn.astype(np.intp), arrays["seconds"], undefined)


def _padded(values: Array, rows: int) -> Array:
    return np.concatenate([values, np.full((rows - len(values), values.shape[1]), np.nan)])


#: What makes of a sample the data that metrics take.
Reader = Callable[[Any], Any]


def _predictions(sample: Any) -> Any:
    return predictions(*sample)


def draw_shard(
    job: Job, numbers: Iterable[Number], seed: int, there: Shard | None = None, data: Reader = _predictions
) -> Shard:
    """Compute the metrics on the draws of a setting; the stream depends on seed, sample size and setting.

    Draws of a metric that ``there`` already contains are taken from it. ``data`` makes of a sample what metrics take.
    """
    wanted = [number for number in numbers if job.draws.get(number.name, 0) > 0]
    rows = max((job.draws[number.name] for number in wanted), default=0)
    rng = addressed(seed, job.n, *job.world.stream)
    values = np.full((rows, len(wanted)), np.nan)
    seconds, known = np.zeros(len(wanted)), np.zeros(len(wanted), dtype=np.intp)
    undefined: dict[str, str] = {}
    for i, number in enumerate(wanted):
        if there is not None and number.name in there.names:
            j = there.names.index(number.name)
            known[i] = there.drawn[j]
            values[: known[i], i] = there.values[: known[i], j]
            seconds[i] = there.seconds[j] * known[i]
            undefined |= {number.name: there.undefined[number.name]} if number.name in there.undefined else {}
    for draw in range(rows):
        p = data(job.world.sample(job.n, rng))
        for i, number in enumerate(wanted):
            if known[i] <= draw < job.draws[number.name]:
                started = time.process_time()
                values[draw, i], why = number(p)
                seconds[i] += time.process_time() - started
                if why:
                    undefined[number.name] = why
    drawn = np.array([job.draws[number.name] for number in wanted], dtype=np.intp)
    return Shard(tuple(n.name for n in wanted), values, drawn, seconds / np.maximum(drawn, 1), undefined)


def made(job: Job, numbers: Iterable[Number], seed: int, folder: Path) -> Shard:
    """The shard of a job: existing draws, with missing ones computed and added."""
    path = folder / job.file
    there = Shard.load(path) if path.exists() else None
    missing = job.draws if there is None else {name: job.draws[name] for name in there.lacks(job.draws)}
    if there is not None and not missing:
        return there
    drawn = draw_shard(Job(job.world, job.n, missing), numbers, seed, there)
    whole = drawn if there is None else there.joined(drawn)
    whole.save(path)
    return whole
