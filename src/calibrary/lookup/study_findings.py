"""The stored study's measurements of a metric, for any number of rows.

The study itself is in ``calibrary.study``; this file only reads its result, so that advice and reports can quote it.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np

from calibrary.base.claims import Claim, Sentence
from calibrary.base.moved import RenamedFields
from calibrary.base.numbers import counted, number, percent
from calibrary.metrics.machinery.declare import ENTRIES, Entry


@dataclass(frozen=True)
class Target:
    """Which direction of a studied number is better, and its perfect value; ``field`` is its field in a result."""

    field: str
    better: str
    ideal: float | None

    @property
    def two_sided(self) -> bool:
        """Whether deviations on both sides of the perfect value count."""
        return self.better == "perfect"

    def own(self, error: float | None) -> float | None:
        """The number itself, from a mean error in the study; None if only the distance is stored.

        The study transforms every number so that larger is worse: if higher is better, it stores the difference from
        the perfect value, or from 0 if there is none. For a number that may deviate on both sides it stores the
        distance.
        """
        if error is None or self.two_sided:
            return None
        return error if self.better == "lower" else (self.ideal or 0.0) - error


def targets(entry: Entry) -> tuple[Target, ...]:
    """The studied numbers of a metric: its fields that have a perfect value, or the metric itself."""
    ideal = [(field, value) for field, value in entry.fields if value is not None]
    if not ideal:
        return (Target("", entry.better, entry.perfect),)
    return tuple(Target(field, entry.better, value) for field, value in ideal)


@dataclass(frozen=True)
class Finding(RenamedFields):
    """The study's results on a metric at a number of rows; None where it was not measured.

    Attributes
    ----------
    n : rows
    expected_by_chance : its mean for calibrated models, on its own scale; None if it may deviate on both sides
    null_deviation : for such a number the mean absolute deviation from its perfect value, for calibrated models
    ideal : the perfect value, where ``null_deviation`` is known
    power : share of samples of miscalibrated models that it distinguishes from calibrated ones of the same kind, at 5%
    rare : the same where 5% are positive
    orders, across : share of pairs of models put in the order of their true error: with the same confidences, and with
        others
    test_power, test_level : rejection rate of its own test, for miscalibrated and for calibrated models
    metric : the metric
    """

    n: int
    expected_by_chance: float | None = None
    null_deviation: float | None = None
    ideal: float = 0.0
    power: float | None = None
    rare: float | None = None
    orders: float | None = None
    across: float | None = None
    test_power: float | None = None
    test_level: float | None = None
    metric: str = ""

    @property
    def sentence(self) -> Sentence:
        """One line: its value for a calibrated model, which errors it detects and how it orders models."""
        parts = []
        if self.expected_by_chance is not None:
            parts.append(f"on this many rows a calibrated model shows about {number(self.expected_by_chance)}")
        if self.null_deviation is not None:
            parts.append(
                f"on this many rows the value for a calibrated model differs from {self.ideal:g} by "
                f"{number(self.null_deviation)} on average"
            )
        found = [f"detects {percent(self.power)} of the study's errors"] if self.power is not None else []
        if self.across is not None:
            found.append(f"orders {percent(self.across)} of pairs of models correctly")
        if found:
            parts.append(f"this metric {' and '.join(found)}")
        return Sentence("; ".join(parts), *self._claims("; ".join(parts)))

    def _claims(self, text: str) -> Iterator[Claim]:
        """The claims in the sentence: calibrated models' values in the metric's range, and the study's shares."""
        if self.expected_by_chance is not None and self.metric:
            yield Claim(text, "in its range", value=self.expected_by_chance, range=ENTRIES[self.metric].range)
        if self.null_deviation is not None:
            yield Claim(text, "in its range", value=self.null_deviation, range=(0.0, np.inf))
        if (self.power, self.across) != (None, None):
            yield Claim(text, "shares", metric=self.metric, shares=(self.power, self.across))


def claims(metric: str, n: int, n_classes: int = 2) -> tuple[Claim, ...]:
    """The claims in the sentence about a metric."""
    return finding(metric, n, n_classes).sentence.claims


@functools.lru_cache(maxsize=4096)
def finding(metric: str, n: int = 1000, n_classes: int = 2) -> Finding:
    """The stored study's results on a metric at n rows, interpolated between the sizes that were studied.

    Power, order and tests beyond the measured sizes are those of the nearest size; a value is given only if it was
    measured on at least a tenth as many rows. For more than two classes, value and power are those of the nearest
    number of classes, with the metric's own lens.

    Examples
    --------
    >>> from calibrary.lookup.study_findings import finding
    >>> finding("smece", 1000).across > finding("mce", 1000).across
    True
    """
    study = stored()
    name = _main_number(metric)

    def of(*path: str) -> dict[int, float | None]:
        return {int(size): _get(by.get(name, {}), path) for size, by in study["sizes"].items()}

    def tested(field: str) -> float | None:
        return _at(n, {int(size): _get(by.get(metric, {}), (field,)) for size, by in study["tests"].items()})

    own_worlds = study["numbers"].get(name, {}).get("own_worlds", False)  # measured on 10,000 rows at most
    error = _at(n, of("null"), most=1.0 if own_worlds else 10.0)
    power, rare = _at(n, of("power")), _at(n, of("power_by_law", "rare"))
    orders, across = _at(n, of("within")), _at(n, of("across"))
    known, own = metric if metric in ENTRIES else "", _on_own_scale(name, error)
    found = Finding(n, *own, power, rare, orders, across, tested("power"), tested("level"), known)
    if n_classes <= 2:
        return found
    error, power = _of_classes(study, name, n, n_classes)
    mean, deviation, ideal = _on_own_scale(name, error)
    return replace(found, expected_by_chance=mean, null_deviation=deviation, ideal=ideal, power=power)


def _on_own_scale(name: str, error: float | None) -> tuple[float | None, float | None, float]:
    """A mean error of the study as a value on the metric's own scale, or as a distance from the perfect value."""
    target = target_of(name)
    ideal = target.ideal or 0.0
    return (None, error, ideal) if target.two_sided else (target.own(error), None, ideal)


def shown(name: str, error: float | None) -> str:
    """A mean error of the study for a table: the number's own value, or its perfect value and the mean deviation."""
    expected_by_chance, null_deviation, ideal = _on_own_scale(name, error)
    if null_deviation is not None:
        return f"{ideal:g} ± {number(null_deviation)}"
    return number(expected_by_chance)


def target_of(name: str) -> Target:
    """The target for the name of a studied number: "ece", "cis.slope", "ece, 10 width", or a user's function."""
    metric, _, field = name.split(",")[0].partition(".")
    if metric not in ENTRIES:
        return Target("", "lower", 0.0)
    found = targets(ENTRIES[metric])
    return next((target for target in found if target.field == field), found[0])


def _of_classes(study: dict[str, Any], name: str, n: int, k: int) -> tuple[float | None, float | None]:
    """Value and power at the nearest number of classes that was studied."""
    sizes = study["classes"]["sizes"]
    laws = {int(law.split()[0]): law for by in sizes.values() for law in by.get(name, {}) if "unequal" not in law}
    if not laws:
        return None, None
    law = laws[min(laws, key=lambda known: abs(np.log(known / k)))]
    at = {int(size): by.get(name, {}).get(law, {}) for size, by in sizes.items()}
    powers = {size: list((row.get("power") or {}).values()) for size, row in at.items()}
    return (
        _at(n, {size: row.get("calibrated") for size, row in at.items()}, most=10.0),
        _at(n, {size: float(np.mean(each)) if each else None for size, each in powers.items()}),
    )


def too_few(entry: Entry, n: float) -> str:
    """The review's statement if there are too few rows, with the study's figure; empty if there are enough."""
    if entry.enough_rows is None or n >= entry.enough_rows[0]:
        return ""
    section, _, says = entry.enough_rows[1].partition(": ")
    found = finding(entry.id, max(int(n), 1))
    share = found.power if found.test_power is None else found.test_power
    ours = "" if share is None else f"; in our study it detects {percent(share)} of the errors at this size"
    return f"{entry.id} on {counted(n, 'row')}: {says} (the review, section {section}){ours}"


def stays_above(entry: Entry) -> float | None:
    """The value of calibrated models on 100,000 rows if more rows do not bring it to its perfect value, otherwise None.

    An example are bins with a fixed number of rows: the noise in each bin remains.
    """
    few, many = (finding(entry.id, n).expected_by_chance for n in (1000, 100_000))
    if entry.perfect is None or few is None or many is None:
        return None
    return many if abs(many - entry.perfect) > max(0.75 * abs(few - entry.perfect), 2e-3) else None


def lines(metric: str) -> dict[str, str]:
    """Up to three lines about a metric: values of calibrated models, errors it detects, order of models."""
    every = [(n, finding(metric, n)) for n in (100, 1000, 10_000)]
    known = [(n, found) for n, found in every if (found.expected_by_chance, found.null_deviation) != (None, None)]
    study, name = stored(), _main_number(metric)
    if not known or name not in study["numbers"]:
        return {}
    sizes = " / ".join(f"{n:,}" for n, _ in known)
    found_lines: dict[str, str] = {"study, calibrated": _of_calibrated(metric, known, sizes)}
    if known[-1][1].power is not None:
        rare = finding(metric, 1000).rare
        more = "" if rare is None else f"; {percent(rare)} at N = 1,000 where 5% are positive"
        it = "it" if name == metric else f"{name} alone"
        text = f"{it} detects {_each(known, 'power')} of the study's errors at N = {sizes}{more}"
        shares = [*(found.power for _, found in known), rare]
        if all(found.test_power is not None for _, found in known):
            text = f"its test detects {_each(known, 'test_power')} of the study's errors, and {text}"
            shares += [found.test_power for _, found in known]
        found_lines["study, power"] = _shares_claim(metric, text, shares)
    if known[-1][1].across is not None:
        text = (
            f"it orders {_each(known, 'orders')} of pairs of models with the same confidences correctly, and "
            f"{_each(known, 'across')} of other pairs{_false_report(study['numbers'][name].get('lie'))}"
        )
        shares = [share for _, found in known for share in (found.orders, found.across)]
        found_lines["study, ranking"] = _shares_claim(metric, text, shares)
    return found_lines


#: A model gains by misreporting its probabilities if its number falls below this share of the honest one.
_GAINS = 0.9
#: The columns of the study's numbers, and how each is taken from a finding.
_AT_N: dict[str, Callable[[Finding], str]] = {
    "a calibrated model shows": lambda f: _shown_by_calibrated(f),
    "errors it detects": lambda f: "" if f.power is None else percent(f.power),
    "errors its test detects": lambda f: "" if f.test_power is None else percent(f.test_power),
    "models in the right order": lambda f: "" if f.across is None else percent(f.across),
    "of equal confidences": lambda f: "" if f.orders is None else percent(f.orders),
}


def numbers_by_size(metric: str, n: int | None = None) -> tuple[list[str], list[list[str]]]:
    """The study's numbers on a metric at 100, 1,000, 10,000 and ``n`` rows: heads and rows of a table without gaps."""
    sizes = sorted({100, 1000, 10_000, *([] if n is None else [n])})
    found = [finding(metric, size) for size in sizes]
    columns = {head: [cell(each) for each in found] for head, cell in _AT_N.items()}
    told = {head: cells for head, cells in columns.items() if any(cells)}
    kept = [i for i in range(len(sizes)) if any(cells[i] for cells in told.values())]
    return ["rows", *told], [[f"{sizes[i]:,}", *(cells[i] for cells in told.values())] for i in kept]


def _shown_by_calibrated(found: Finding) -> str:
    if found.null_deviation is not None:
        return f"{found.ideal:g} ± {number(found.null_deviation)}"
    return "" if found.expected_by_chance is None else number(found.expected_by_chance)


def remarks(metric: str) -> Iterator[str]:
    """What the study's numbers on a metric mean, and what it found besides."""
    name = _main_number(metric)
    if name not in stored()["numbers"]:
        return
    field = name.partition(".")[2]
    if field:
        yield f"The study's numbers are those of the {field} alone, {name}, except for the test."
    rare = finding(metric, 1000).rare
    if rare is not None:
        yield f"Where 5% are positive, it detects {percent(rare)} of the errors on 1,000 rows."
    ratio = stored()["numbers"][name].get("lie")
    if ratio is not None and ratio < _GAINS:
        yield f"A model can cut this number to {percent(ratio)} by misreporting its probabilities."


def _of_calibrated(metric: str, known: list[tuple[int, Finding]], sizes: str) -> Claim:
    if known[0][1].null_deviation is None:
        field, range = "expected_by_chance", ENTRIES[metric].range
        said = f"calibrated models show {_each(known, field)} on average"
    else:
        field, range = "null_deviation", (0.0, np.inf)
        said = f"the values of calibrated models differ from {known[0][1].ideal:g} by {_each(known, field)} on average"
    values = tuple(getattr(found, field) for _, found in known)
    return Claim(f"{said} at N = {sizes}", "values in the range", metric=metric, values=values, range=range)


def _shares_claim(metric: str, text: str, shares: list[float | None]) -> Claim:
    return Claim(text, "shares", metric=metric, shares=tuple(shares))


def _false_report(ratio: float | None) -> str:
    """A sentence that a model gains by misstating its probabilities, if the study showed it."""
    if ratio is None or ratio >= _GAINS:
        return ""
    return f"; a model can cut this number to {percent(ratio)} by misreporting its probabilities"


def _each(known: list[tuple[int, Finding]], field: str) -> str:
    values = [getattr(found, field) for _, found in known]
    form = number if field in ("expected_by_chance", "null_deviation") else percent
    return " / ".join("-" if value is None else form(value) for value in values)


@functools.cache
def stored() -> dict[str, Any]:
    """The summary of the study stored with the library, and of its parts with boxes, features and fits."""
    study, rest = (_unpacked(name) for name in ("study.json.gz", "study_portfolio.json.gz"))
    for n, rows in rest["sizes"].items():
        study["sizes"].setdefault(n, {}).update(rows)
    for name, about in rest["numbers"].items():
        kind = "options" if "," in name else "metric"
        study["numbers"][name] = {**about, "kind": kind, "limit": {}, "own_worlds": True}
    study["left_out"] = {id: why for id, why in study["left_out"].items() if id not in rest["numbers"]}
    return study | {"portfolio": rest}


def _unpacked(name: str) -> dict[str, Any]:
    path = files("calibrary") / "datasets" / name
    return json.loads(gzip.decompress(path.read_bytes()))


def why_not(metric: str) -> str:
    """Why a metric is not in the study, or was studied on few rows only; empty if it was fully studied."""
    study = stored()
    if metric in study["left_out"]:
        return str(study["left_out"][metric])
    name = _main_number(metric)
    if name not in study["numbers"]:
        return "it was not studied"
    largest = study["numbers"][name]["largest_n"]
    if study["numbers"][name].get("own_worlds"):
        return ""
    most = max(int(n) for n in study["sizes"])
    return "" if largest == most else f"studied on up to {largest:,} rows only, because of its cost"


def _main_number(metric: str) -> str:
    """The number that represents a metric: the metric itself, or the last of its fields (the slope for Cox)."""
    numbers = stored()["numbers"]
    if metric in numbers:
        return metric
    fields = [name for name in numbers if name.startswith(f"{metric}.")]
    return fields[-1] if fields else metric


def _get(row: dict[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = row
    for name in path:
        value = (value or {}).get(name)
    return None if value is None else float(value)


def _at(n: int, known: dict[int, float | None], most: float = np.inf) -> float | None:
    """The value at n rows, interpolated linearly in the logarithm of n; outside the studied sizes, at the nearest.

    None where n is more than ``most`` times the largest size.
    """
    sizes = sorted(size for size, value in known.items() if value is not None)
    if not sizes or n > most * sizes[-1]:
        return None
    values = np.array([known[size] for size in sizes], dtype=np.float64)
    return float(np.interp(np.log(max(n, 1)), np.log(sizes), values))


@dataclass(frozen=True)
class MeasuredCoverage:
    """Coverage of nominal 95% intervals over all settings (true model, lens, rows) that were simulated.

    Attributes
    ----------
    settings, samples : number of settings that were simulated, and number of samples in all of them
    mean : share of all samples whose interval contained the true value
    worst : the smallest share in any setting
    at : that setting in words
    worst_samples : number of samples in that setting
    """

    settings: int
    samples: int
    mean: float
    worst: float
    at: str
    worst_samples: int


@functools.cache
def _stored() -> dict[str, MeasuredCoverage]:
    text = files("calibrary.lookup").joinpath("coverage.json").read_text(encoding="utf-8")
    return {id: MeasuredCoverage(**row) for id, row in json.loads(text).items()}


def measured_coverage(id: str) -> MeasuredCoverage | None:
    """The measured coverage of a metric's default interval, or None."""
    return _stored().get(id)


def coverage_words(entry: Entry) -> str:
    """One sentence about a metric's default interval: the measured coverage, or that it was not measured.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.lookup.study_findings import coverage_words
    >>> coverage_words(cal.catalogue["honest_error"])[:5]
    'none:'
    """
    if entry.no_interval or entry.no_ends:
        return f"none: {entry.no_interval or entry.no_ends}"
    found = measured_coverage(entry.id)
    if found is None:
        return "the coverage of its default interval was not measured"
    many = f"{found.settings} settings" if found.settings > 1 else "one setting"
    return (
        f"the default 95% interval contained the true value in {percent(found.mean)} of {found.samples:,} samples of "
        f"{many}, and in {percent(found.worst)} of {found.worst_samples:,} in the worst setting ({found.at})"
    )
