"""One file for each world and number of rows: what every number read in every draw.

A shard is written whole or not at all, and its random stream depends on seed, size and world alone. So a study that
was stopped goes on where it stopped, several machines can share one, and a metric that comes later is read from the
very samples that the others saw.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from calibrary.base.files import write_atomically
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import predictions
from calibrary.numerics.draw import addressed
from calibrary.study.panel import Number
from calibrary.study.presets import AnyWorld


@dataclass(frozen=True)
class Job:
    """One shard to be made: a world, a number of rows, and how many draws each number is read from."""

    world: AnyWorld
    n: int
    draws: Mapping[str, int] = field(hash=False)

    @property
    def file(self) -> str:
        """The name of its file."""
        return re.sub(r"[^a-z0-9.+-]+", "_", f"{self.world.name}.{self.n}".lower()) + ".npz"


@dataclass(frozen=True)
class Shard:
    """What was read: ``values[draw, number]``, NaN where a draw was not read or has no value.

    Attributes
    ----------
    names : the numbers
    values : array of draws by numbers
    drawn : how many draws were read, for each number
    seconds : CPU seconds of one reading, for each number
    undefined : why a number had no value in some draw, by name
    """

    names: tuple[str, ...]
    values: Array
    drawn: Indices
    seconds: Array
    undefined: Mapping[str, str]

    def lacks(self, draws: Mapping[str, int]) -> list[str]:
        """The numbers of which fewer draws are there than wanted."""
        have = dict(zip(self.names, self.drawn, strict=True))
        return [name for name, wanted in draws.items() if have.get(name, 0) < wanted]

    def joined(self, other: Shard) -> Shard:
        """Both, the other's where a number is in both."""
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
        """Write it whole."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer, names=np.array(self.names), values=self.values, drawn=self.drawn, seconds=self.seconds,
            undefined=np.array(json.dumps(self.undefined)),
        )  # fmt: skip
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: Path) -> Shard:
        """Read it again."""
        with np.load(path) as f:
            return cls(
                tuple(str(name) for name in f["names"]), f["values"], f["drawn"], f["seconds"],
                json.loads(str(f["undefined"])),
            )  # fmt: skip


def _padded(values: Array, rows: int) -> Array:
    return np.concatenate([values, np.full((rows - len(values), values.shape[1]), np.nan)])


def draw_shard(job: Job, numbers: Iterable[Number], seed: int, there: Shard | None = None) -> Shard:
    """Read the numbers off the draws of a world; the stream is that of seed, size and world.

    Draws that ``there`` holds of a number are taken from it.
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
        p = predictions(*job.world.sample(job.n, rng))
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
    """The shard of a job: what is there, and what is missing drawn and added."""
    path = folder / job.file
    there = Shard.load(path) if path.exists() else None
    missing = job.draws if there is None else {name: job.draws[name] for name in there.lacks(job.draws)}
    if there is not None and not missing:
        return there
    drawn = draw_shard(Job(job.world, job.n, missing), numbers, seed, there)
    whole = drawn if there is None else there.joined(drawn)
    whole.save(path)
    return whole
