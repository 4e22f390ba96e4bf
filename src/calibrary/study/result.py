"""The result of a study: a table and a summary, which can be saved and loaded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import extra, suggest
from calibrary.base.numbers import number, percent
from calibrary.lookup import catalogue
from calibrary.study import measures
from calibrary.study.measures import Field, Readings
from calibrary.study.panel import Number, left_out
from calibrary.study.study_files import COLUMNS, read_summary, write_summary
from calibrary.study.world import World

#: The fewest rows at which a mean over draws approximates the limit of a metric.
_MANY = 10_000
#: The largest value of a calibrated model that counts as near 0.
_SMALL = 0.02


@dataclass(frozen=True)
class StudyResult:
    """The results of every metric on data with known true error; print the result as a table.

    Attributes
    ----------
    found : the summary as plain dictionaries, lists, numbers and text
    """

    found: Mapping[str, Any]

    @property
    def about(self) -> Mapping[str, Any]:
        """Version, preset, seed, shards made and in all, CPU seconds."""
        return self.found["about"]

    @property
    def names(self) -> list[str]:
        """The values that were studied on two classes."""
        return list(self.found["numbers"])

    @property
    def sizes(self) -> list[int]:
        """The numbers of rows, ascending."""
        return sorted(int(n) for n in self.found["sizes"])

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for each value and sample size."""
        return [
            {"number": name, "n": n, **{column: row.get(column) for column in COLUMNS}}
            for n in self.sizes
            for name, row in self.found["sizes"][str(n)].items()
        ]

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        with extra("pandas", "a data frame"):
            import pandas as pd
        return pd.DataFrame(self.table)

    def to_polars(self) -> Any:
        """The table as a polars data frame."""
        with extra("polars", "a data frame"):
            import polars as pl
        return pl.DataFrame(self.table, infer_schema_length=None)

    def summary(self) -> dict[str, Any]:
        """All results as plain dictionaries, as :meth:`save` writes them."""
        return json.loads(json.dumps(self.found))

    def row(self, name: str, n: int) -> dict[str, Any]:
        """The results of one value at one of the study's sample sizes."""
        try:
            return self.found["sizes"][str(n)][name]
        except KeyError:
            known = self.found["sizes"].get(str(n), self.found["numbers"])
            raise ValueError(f"{name!r} was not studied at n={n}: {suggest(name, known)}") from None

    def means(self, name: str, n: int) -> dict[str, float]:
        """The mean in every setting at one of the study's sample sizes, with the sign such that larger is worse."""
        return self._by_world("means", name, n)

    def powers(self, name: str, n: int) -> dict[str, float]:
        """The power in every miscalibrated setting at one of the study's sample sizes."""
        return self._by_world("powers", name, n)

    def _by_world(self, what: str, name: str, n: int) -> dict[str, float]:
        self.row(name, n)
        values = self.found[what][str(n)].get(name, [None] * len(self.found["worlds"]))
        by = zip(self.found["worlds"], values, strict=True)
        return {world: value for world, value in by if value is not None}

    def save(self, path: str | Path) -> None:
        """Write the summary as JSON, compressed where the name ends in .gz."""
        write_summary(self.found, path)

    @classmethod
    def load(cls, path: str | Path) -> StudyResult:
        """Read a result from a file that :meth:`save` wrote."""
        return cls(read_summary(path))

    def __str__(self) -> str:
        about = self.about
        n = 1000 if 1000 in self.sizes else self.sizes[0]
        lines = [
            f"study {about['preset']!r}, seed {about['seed']}, calibrary {about['version']}: "
            f"{len(self.names)} numbers, {about['shards']} of {about['of']} shards; N = {n:,}",
            "Chance: mean for calibrated models. Power: share of errors detected. Same, across: pairs of models in the "
            "right order,",
            "with the same distribution of the confidence and with different ones.",
            f"{'metric':24} {'chance':>10} {'power':>6} {'same':>8} {'across':>7}",
        ]
        rows = self.found["sizes"][str(n)]
        for name in sorted(rows, key=lambda name: -(rows[name].get("across") or 0.0)):
            row = rows[name]
            lines.append(
                f"{name:24} {number(row.get('null')) or '-':>10} {percent(row.get('power')) or '-':>6} "
                f"{percent(row.get('within')) or '-':>8} {percent(row.get('across')) or '-':>7}"
            )
        return "\n".join(lines)


def stored_study() -> StudyResult:
    """The study that comes with the library: the preset "standard".

    Examples
    --------
    >>> from calibrary import study
    >>> study.stored_study().about["preset"]
    'standard'
    """
    with as_file(files("calibrary") / "datasets" / "study.json.gz") as path:
        return StudyResult.load(path)


# -- from values to a summary --------------------------------------------------------------------------

_TOO_SLOW = "one value takes longer than the study allows, even for the fewest rows"


def result_of(readings: Sequence[Readings], numbers: Sequence[Number], about: Mapping[str, Any]) -> StudyResult:
    """Compute all results of all values."""
    binary = [r for r in readings if measures.is_honest_binary(r)]
    lies = [r for r in readings if isinstance(r.world, World) and r.world.report != "honest"]
    several = [r for r in readings if not isinstance(r.world, World)]
    own = {number.name: number for number in numbers}
    plain = [number for number in own.values() if number.kind in ("metric", "binning")]
    binnings, tests = ([x for x in own.values() if x.kind == kind] for kind in ("binning", "test"))
    sizes = sorted({r.n for r in binary})

    def here(n: int) -> list[Readings]:
        return [r for r in binary if r.n == n]

    def by_size(of: Callable[[int], dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return {str(n): of(n) for n in sizes}

    def of_worlds(found: Mapping[str, Mapping[str, float]]) -> dict[str, list[float | None]]:
        return {name: [at.get(w) for w in worlds] for name, at in found.items() if at}

    fields = {n: {x.name: Field(x, here(n)) for x in plain} for n in sizes}
    largest = {x.name: _largest(x.name, fields) for x in plain}
    worlds = list(dict.fromkeys(r.world.name for r in binary))
    limits = {name: fields[n][name].limits() if n else {} for name, n in largest.items()}
    computed = {x.name for x in plain if any(fields[n][x.name].read for n in sizes)}
    slow = {x.metric for x in plain} - {x.metric for x in plain if x.name in computed} if sizes else set()
    found = {
        "about": dict(about),
        "worlds": {r.world.name: {"family": r.world.family, "law": r.world.law_name, **r.truth} for r in binary},
        "numbers": {x.name: _of_number(x, largest[x.name], fields, binary, lies) for x in plain if x.name in computed},
        "sizes": by_size(
            lambda n: {x.name: _at_size(f, limits[x.name], n) for x in plain if (f := fields[n][x.name]).read}
        ),
        "means": by_size(lambda n: of_worlds({x.name: fields[n][x.name].limits() for x in plain})),
        "powers": by_size(lambda n: of_worlds({x.name: fields[n][x.name].power_by_world() for x in plain})),
        "binnings": by_size(lambda n: measures.binning_sensitivity(binnings, here(n))),
        "tests": by_size(lambda n: {x.metric: levels for x in tests if (levels := measures.test_levels(x, here(n)))}),
        "classes": _of_classes(own.values(), several),
        "correlation": _correlation(plain, fields),
        "left_out": {e.id: why for e in catalogue.values() if (why := left_out(e) or (e.id in slow and _TOO_SLOW))},
    }
    return StudyResult(_rounded(found))


def _of_number(
    number: Number, n: int, fields: Mapping[int, Mapping[str, Field]], honest: list[Readings], lies: list[Readings]
) -> dict[str, Any]:
    at = {r.n for r in lies}
    null = {size: by[number.name].null().get("null") for size, by in fields.items()}
    return {
        "metric": number.metric,
        "kind": number.kind,
        "limit": fields[n][number.name].at_limit() if n else {},
        "n_for_small": _rows_for(_SMALL, {k: v for k, v in null.items() if v is not None}),
        "largest_n": max((size for size, by in fields.items() if by[number.name].read), default=None),
        **measures.lie_ratio(number, [r for r in honest if r.n in at], lies),
    }


def _at_size(field: Field, limits: Mapping[str, float], n: int) -> dict[str, Any]:
    return {
        **field.row(),
        **field.bias(limits if n < _MANY else {}),
        "why": next((r.shard.undefined.get(field.number.name) for r in field.read
                     if field.number.name in r.shard.undefined), None),
        "seconds": float(np.median([r.shard.seconds[r.shard.names.index(field.number.name)] for r in field.read])),
    }  # fmt: skip


def _largest(name: str, fields: Mapping[int, Mapping[str, Field]]) -> int:
    """The largest sample size with values in nearly all settings; 0 if that is too small for a limit."""
    most = max((len(by[name].read) for by in fields.values()), default=0)
    many = [n for n, by in fields.items() if n >= _MANY and len(by[name].read) >= 0.9 * most]
    return max(many, default=0)


def _rows_for(small: float, null: Mapping[int, float]) -> float | None:
    """The interpolated number of rows from which a calibrated model shows less than this."""
    sizes = sorted(null)
    for a, b in itertools.pairwise(sizes):
        if null[a] > small >= null[b] > 0.0:
            return float(np.exp(np.interp(-np.log(small), [-np.log(null[a]), -np.log(null[b])], np.log([a, b]))))
    if sizes and null[sizes[0]] <= small:
        return float(sizes[0])
    return None


def _of_classes(numbers: Any, readings: Sequence[Readings]) -> dict[str, Any]:
    def at(n: int) -> dict[str, Any]:
        here = [r for r in readings if r.n == n]
        found = {x.name: measures.class_measures(x, here) for x in numbers if x.kind in ("metric", "lens")}
        return {name: measured for name, measured in found.items() if measured}

    sizes = {str(n): at(n) for n in sorted({r.n for r in readings})}
    return {"worlds": {r.world.name: dict(r.truth) for r in readings}, "sizes": sizes}


def _correlation(numbers: Sequence[Number], fields: Mapping[int, Mapping[str, Field]]) -> dict[str, Any]:
    """Rank correlations of the means over settings, at the largest sample size that nearly all metrics have."""
    for n in sorted(fields, reverse=True):
        means = {x.name: fields[n][x.name].limits() for x in numbers if x.kind == "metric"}
        most = max((len(by) for by in means.values()), default=0)
        known = {name: by for name, by in means.items() if len(by) == most and most > 4}
        if len(known) < max(2, 0.5 * len(means)):
            continue
        worlds = list(next(iter(known.values())))
        table = np.array([[by[w] for w in worlds] for by in known.values()])
        names = [name for name, row in zip(known, table, strict=True) if np.ptp(row) > 0.0]
        rows = [row for row in table if np.ptp(row) > 0.0]
        return {"n": n, "names": names, "rho": [[measures.spearman(a, b) for b in rows] for a in rows]}
    return {}


def clusters(correlation: Mapping[str, Any], least: float = 0.9) -> list[list[str]]:
    """Groups of metrics with a mean rank correlation of at least this value, large groups first."""
    names = list(correlation["names"])
    distance = 1.0 - np.array(correlation["rho"], dtype=np.float64)
    np.fill_diagonal(distance, 0.0)
    tree = scipy.cluster.hierarchy.linkage(scipy.spatial.distance.squareform(distance, checks=False), "average")
    group = scipy.cluster.hierarchy.fcluster(tree, 1.0 - least, "distance")
    found = [[name for name, g in zip(names, group, strict=True) if g == each] for each in dict.fromkeys(group)]
    return sorted(found, key=lambda each: (-len(each), each))


def _rounded(value: Any) -> Any:
    """Numbers rounded to four digits, which is more than their precision."""
    if isinstance(value, Mapping):
        return {str(name): _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    value = float(value)
    return float(f"{value:.4g}") if np.isfinite(value) else None


def rows_of(found: StudyResult, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The results of a value at every sample size."""
    for n in found.sizes:
        row = found.found["sizes"][str(n)].get(name)
        if row is not None:
            yield n, row
