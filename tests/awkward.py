"""Awkward data, and what must be true of every answer: what ``test_fuzz.py`` and ``benchmarks/fuzz.py`` are made of.

A ``Case`` is a few words and a seed, so that a case that fails can be written down and made again. The oracle knows
three outcomes of a call: a number inside the range for the options in use; infinity or NaN with a CalibrationWarning;
one sentence that names what is wrong. Anything else is a violation.
"""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import calibrary as cal
from calibrary.data.predictions import Predictions
from calibrary.inference.ranges import range_of
from calibrary.metrics.machinery.entry import Entry
from calibrary.metrics.machinery.measure import numbers
from calibrary.question import Question

#: What confidences look like.
SHAPES = ("ordinary", "dyadic", "ties", "equal", "ends", "subnormal", "tiny", "near ends", "float32")
LABELS = ("any", "one class", "right", "wrong")
WEIGHTS = ("none", "ones", "counts", "fractions", "some zero", "sum to one", "very unequal")
CONTAINERS = (
    "array", "list", "tuple", "float32", "float16", "big-endian", "strided", "reversed", "read-only", "fortran",
    "masked", "object", "pandas", "polars", "pyarrow", "torch",
)  # fmt: skip
LABEL_TYPES = ("int64", "int8", "uint8", "uint64", "bool", "float64", "object")
ROWS = (1, 2, 3, 5, 8, 13, 20, 40, 60)
#: 1 is a single column, P(class 1).
COLUMNS = (1, 1, 1, 2, 3, 12)


@dataclass(frozen=True)
class Case:
    """Data in a few words."""

    shape: str = "ordinary"
    labels: str = "any"
    weights: str = "none"
    container: str = "array"
    label_type: str = "int64"
    rows: int = 20
    columns: int = 1
    seed: int = 0

    def data(self) -> tuple[Any, Any, Any]:
        """Labels, probabilities and weights as plain arrays."""
        rng = np.random.default_rng(self.seed)
        p = _confidences(self.shape, (self.rows, self.columns), rng)
        y = _labels(self.labels, p, rng)
        return y, p, _weights(self.weights, self.rows, rng)


def drawn_case(rng: np.random.Generator) -> Case:
    """A case at random; a thousand classes now and then."""
    columns = 1000 if rng.random() < 0.002 else int(rng.choice(COLUMNS))
    words = {name: str(rng.choice(given)) for name, given in _WORDS.items()}
    return Case(**words, rows=int(rng.choice(ROWS)), columns=columns, seed=int(rng.integers(2**32)))


_WORDS = {
    "shape": SHAPES, "labels": LABELS, "weights": WEIGHTS, "container": CONTAINERS, "label_type": LABEL_TYPES,
}  # fmt: skip


def _confidences(shape: str, size: tuple[int, int], rng: np.random.Generator) -> Any:
    k = size[1]
    made: Callable[[], Any] = {
        "ordinary": lambda: rng.random(size),
        "dyadic": lambda: rng.integers(0, 257, size) / 256.0,
        "ties": lambda: rng.integers(0, 4, size) / 3.0,
        "equal": lambda: np.full(size, rng.random()),
        "ends": lambda: rng.integers(0, 2, size).astype(float),
        "subnormal": lambda: rng.integers(0, 4, size) * 5e-324,
        "tiny": lambda: 10.0 ** -rng.uniform(1, 300, size),
        "near ends": lambda: np.where(rng.random(size) < 0.5, 1.0 - 2.0**-53, 2.0**-53),
        "float32": lambda: rng.random(size).astype(np.float32).astype(float),
    }[shape]
    p = made()
    if k == 1:
        return p[:, 0]
    p[:, 0] = np.where(p.sum(axis=1) <= 0.0, 1.0, p[:, 0])
    with np.errstate(under="ignore"):
        p /= p.sum(axis=1, keepdims=True)
    return p if shape != "equal" else np.full(size, 1.0 / k)


def _labels(kind: str, p: Any, rng: np.random.Generator) -> Any:
    k = 2 if p.ndim == 1 else p.shape[1]
    rows = np.column_stack([1.0 - p, p]) if p.ndim == 1 else p
    any_ = rng.integers(0, k, len(p))
    return {
        "any": any_, "one class": np.full(len(p), any_[0]), "right": rows.argmax(axis=1), "wrong": rows.argmin(axis=1),
    }[kind]  # fmt: skip


def _weights(kind: str, n: int, rng: np.random.Generator) -> Any:
    if kind == "none":
        return None
    counts = rng.integers(1, 5, n).astype(float)
    w = {
        "ones": np.ones(n), "counts": counts, "fractions": rng.random(n) + 0.01,
        "some zero": counts * (rng.random(n) < 0.7), "sum to one": counts / counts.sum(),
        "very unequal": 10.0 ** rng.integers(0, 9, n),
    }[kind]  # fmt: skip
    return w if w.any() else np.ones(n)


# -- every array library and type -------------------------------------------------------------------


@functools.cache
def installed(name: str) -> Any:
    """A library, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def held(values: Any, container: str) -> Any:
    """The same numbers in another container; None where it cannot hold them."""
    if container in ("pandas", "polars", "pyarrow", "torch") and installed(container) is None:
        return None
    if container in ("polars", "pyarrow") and values.ndim != 1:
        return None
    return _HOLD[container](values)


def _strided(values: Any) -> Any:
    wide = np.zeros((2 * len(values), *values.shape[1:]), dtype=values.dtype)
    wide[::2] = values
    return wide[::2]


def _read_only(values: Any) -> Any:
    kept = values.copy()
    kept.flags.writeable = False
    return kept


def _pandas(values: Any) -> Any:
    pd = installed("pandas")
    return pd.Series(values) if values.ndim == 1 else pd.DataFrame(values)


_HOLD: dict[str, Callable[[Any], Any]] = {
    "array": lambda v: v, "list": lambda v: v.tolist(), "tuple": lambda v: tuple(v.tolist()),
    "float32": lambda v: v.astype(np.float32), "float16": lambda v: v.astype(np.float16),
    "big-endian": lambda v: v.astype(v.dtype.newbyteorder(">")), "strided": _strided,
    "reversed": lambda v: v[::-1].copy()[::-1], "read-only": _read_only, "fortran": np.asfortranarray,
    "masked": lambda v: np.ma.masked_array(v, mask=False), "object": lambda v: v.astype(object), "pandas": _pandas,
    "polars": lambda v: installed("polars").Series(v), "pyarrow": lambda v: installed("pyarrow").array(v),
    "torch": lambda v: installed("torch").tensor(np.ascontiguousarray(v)),
}  # fmt: skip


# -- the oracle -------------------------------------------------------------------------------------


class Violation(AssertionError):  # noqa: N818
    """Something that must not happen, with the case that made it happen."""


#: What Python and numpy say when nobody looked at the input first.
_RAW = re.compile(
    r"not supported between|unsupported operand|object is not|could not convert|out of bounds|out of range"
    r"|has no attribute|must be real number|cannot unpack|broadcast|Singular matrix|did not converge|not subscriptable"
    r"|unhashable|division by zero|math domain|cannot convert float|ufunc|dtype\(|array\(|NoneType|zero-size"
    r"|truth value"
)


@dataclass(frozen=True)
class Answer:
    """How a call ended: "number", "undefined" or "sentence", and the numbers that it gave."""

    outcome: str
    numbers: Any = None
    text: str = ""


def asked(call: Callable[[], Any], about: Any, fields: Any = (), ends: tuple[float, float] = (0.0, 0.0)) -> Answer:
    """What a call answers; a violation where it is none of the three.

    An infinity is documented where the range (``ends``) has that end.
    """
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            value = call()
        except (ValueError, TypeError) as error:
            return Answer("sentence", text=_sentence(str(error), about))
        except Exception as error:
            raise Violation(f"{type(error).__name__}: {error} | {about}") from error
    for warning in said:
        if issubclass(warning.category, RuntimeWarning):
            raise Violation(f"RuntimeWarning: {warning.message} | {about}")
    warned = any(issubclass(w.category, cal.CalibrationWarning) for w in said)
    found = np.array(list(numbers(value, fields).values()))
    if np.isfinite(found).all():
        return Answer("number", found)
    documented = np.isposinf(found) & np.isposinf(ends[1]) | np.isneginf(found) & np.isneginf(ends[0])
    if not warned and not (documented | np.isfinite(found)).all():
        raise Violation(f"{found} without a warning | {about}")
    return Answer("undefined", found)


def _sentence(text: str, about: Any) -> str:
    if _RAW.search(text) or "\n" in text or not 20 <= len(text) <= 700:
        raise Violation(f"no sentence for people: {text!r} | {about}")
    return text


def taken(entry: Entry) -> bool:
    """Can the metric be asked with labels and probabilities alone?"""
    return entry.data_type == "predictions" and not entry.needs and entry.id not in _SLOW


#: Linear programmes and the like: seconds for sixty rows.
_SLOW = ("lower_distance",)


def metric_call(entry: Entry, case: Case, lens: str, seen: dict[str, int]) -> None:
    """One metric of one case: the answer itself, and all that must be true of it."""
    about = (entry.id, lens, case)
    y, p, w = case.data()
    options: dict[str, Any] = {"lens": lens, **({} if w is None else {"sample_weight": w})}

    def answer(*data: Any, **other: Any) -> Answer:
        given = {name: value for name, value in {**options, **other}.items() if value is not None}
        found = asked(lambda: entry(*data, **given), about, entry.fields, entry.range)
        seen[found.outcome] = seen.get(found.outcome, 0) + 1
        return found

    kept = [a.copy() for a in (y, p, *(() if w is None else (w,)))]
    first = answer(y, p)
    if not all(np.array_equal(a, b) for a, b in zip(kept, (y, p, *(() if w is None else (w,))), strict=True)):
        raise Violation(f"an input was changed | {about}")
    again = answer(y, p)
    if repr(again) != repr(first):
        raise Violation(f"{first} and then {again} | {about}")
    if first.outcome == "number":
        _check_range(entry, first, options, (y, p, w), about)
    _check_container(answer, first, case, (y, p), about)
    if first.outcome != "sentence":
        _check_properties(entry, answer, first, case, (y, p, w), about)


def _check_range(entry: Entry, found: Answer, options: dict[str, Any], data: Any, about: Any) -> None:
    if entry.fields:
        return
    y, p, w = data
    checked = cal.predictions(y, p, sample_weight=w)
    low, high = range_of(entry, Question(lens=options["lens"]), checked)
    slack = 1e-9 * max(1.0, abs(low) if np.isfinite(low) else 1.0, abs(high) if np.isfinite(high) else 1.0)
    value = found.numbers
    if not ((value >= low - slack) & (value <= high + slack)).all():
        raise Violation(f"{value} is outside [{low}, {high}] | {about}")


def _check_container(answer: Any, first: Answer, case: Case, data: Any, about: Any) -> None:
    """The same numbers in another container, and labels of another type, give the same answer."""
    y, p = data
    if case.container in ("float32", "float16"):
        p = p.astype(case.container).astype(float)
        if p.ndim == 2 or not ((p >= 0) & (p <= 1)).all():
            return
        first = answer(y, p)
    other = held(p, case.container)
    most = {"bool": 1, "int8": 127, "uint8": 255}.get(case.label_type, np.inf)
    if other is None or y.max(initial=0) > most:
        return
    labels = y.astype(case.label_type)
    if case.container in ("pandas", "polars", "pyarrow", "torch", "list"):
        labels = held(labels, case.container) if case.label_type not in ("object", "uint64") else y
    found = answer(labels, other)
    if found.outcome != first.outcome or not _same(found, first, 1e-12):
        raise Violation(f"{first} in an array, {found} in another container | {about}")


def _check_properties(entry: Entry, answer: Any, first: Answer, case: Case, data: Any, about: Any) -> None:
    y, p, w = data
    if case.columns == 1 and about[1] in ("auto", "binary"):
        both = answer(y, np.column_stack([1.0 - p, p]))
        if both.outcome != "sentence" and not _same(both, first, 1e-9):
            raise Violation(f"{first} of a column, {both} of two | {about}")
    if entry.order_free:
        order = np.random.default_rng(case.seed).permutation(len(y))
        moved = answer(y[order], p[order], sample_weight=None if w is None else w[order])
        if not _same(moved, first, 1e-7):
            raise Violation(f"{first}, and {moved} in another order | {about}")
    if entry.weights == "repetition" and case.weights in ("counts", "some zero", "ones"):
        copies = w.astype(int)
        written = answer(np.repeat(y, copies), np.repeat(p, copies, axis=0), sample_weight=np.ones(copies.sum()))
        if not _same(written, first, 1e-6):
            raise Violation(f"{first} of weights, {written} of the rows written out | {about}")
    if entry.symmetric and case.columns == 1 and case.shape in ("dyadic", "ends") and about[1] in ("auto", "binary"):
        turned = answer(1 - y, 1.0 - p)
        if not _same(turned, first, 1e-6):
            raise Violation(f"{first}, and {turned} of the other class | {about}")


def _same(a: Answer, b: Answer, rtol: float) -> bool:
    if a.outcome == "sentence" or b.outcome == "sentence":
        return a.outcome == b.outcome
    if a.numbers.shape != b.numbers.shape:
        return False
    with np.errstate(invalid="ignore"):
        size = np.nanmax(np.abs(np.where(np.isfinite(b.numbers), b.numbers, 0.0)), initial=0.0)
    return bool(np.allclose(a.numbers, b.numbers, rtol=rtol, atol=rtol * max(1.0, float(size)), equal_nan=True))


def inference_call(entry: Entry, case: Case, what: str, seen: dict[str, int]) -> None:
    """An interval, a test or a comparison of one case."""
    about = (what, entry.id, case)
    y, p, w = case.data()
    data: dict[str, Any] = {"n_resamples": 39, "rng": case.seed % 1000}
    if w is not None:
        data |= {"sample_weight": w, "weight_type": "importance" if (w % 1).any() else "frequency"}

    def call() -> Any:
        if what == "test":
            return np.atleast_1d(cal.test(entry.id, y, p, method="monte-carlo", **data).pvalue)
        if what == "compare":
            other = np.roll(p, 1, axis=0)
            return np.atleast_1d(cal.compare(entry.id, y, p, other, **data).pvalue)
        found = cal.interval(entry.id, y, p, method=what, **data)
        _check_ends(entry, found, about)
        return np.concatenate([np.atleast_1d(found.low), np.atleast_1d(found.high)])

    found = asked(call, about)
    seen[found.outcome] = seen.get(found.outcome, 0) + 1
    if (
        found.outcome == "number"
        and what in ("test", "compare")
        and not ((found.numbers >= 0) & (found.numbers <= 1)).all()
    ):
        raise Violation(f"p = {found.numbers} | {about}")


def _check_ends(entry: Entry, found: Any, about: Any) -> None:
    """Inversion and triangle leave the perfect value out exactly when the test of the same draws rejects."""
    if found.method not in ("inversion", "triangle") or entry.perfect is None or entry.fields:
        return
    low, high, pvalue = (np.atleast_1d(a).astype(float) for a in (found.low, found.high, found.pvalue))
    if not (np.isfinite(low) & np.isfinite(high) & np.isfinite(pvalue)).all():
        return
    holds = (low <= entry.perfect) & (entry.perfect <= high)
    kept = pvalue > 1.0 - found.level + 1e-12
    if (holds != kept).any():
        raise Violation(f"[{low}, {high}] and p = {pvalue} for {entry.perfect} | {about}")


def evaluation_call(case: Case, seen: dict[str, int]) -> None:
    """Everything at once: no metric may fail, and nothing undefined may go without its note."""
    y, p, w = case.data()

    def call() -> float:
        result = cal.evaluate(y, p, sample_weight=w)
        failed = {id: why for id, why in result.skipped.items() if why.startswith("failed")}
        silent = [row.id for row in result.rows if not np.isfinite(row.value) and not row.note]
        if failed or silent:
            raise Violation(f"failed: {failed}, without a note: {silent} | {case}")
        return float(len(result.rows))

    found = asked(call, case)
    seen[found.outcome] = seen.get(found.outcome, 0) + 1


def plain_case(case: Case) -> Case:
    """The same data in plain arrays."""
    return replace(case, container="array", label_type="int64")


def checked(case: Case) -> Predictions:
    """The predictions of a case."""
    y, p, w = case.data()
    return cal.predictions(y, p, sample_weight=w)
