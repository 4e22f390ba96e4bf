"""A state holds what the predictions hold: exactly, within its bound, or not at all."""

from __future__ import annotations

import csv
import datetime
import gc
import importlib.util
import math
import pickle
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrary as cal
from calibrary.metrics.machinery.measure import measure
from calibrary.numerics.cells import POSITIONS
from calibrary.scale import State, accuracy, merged, sums
from calibrary.scale.accuracy import Accuracy, accuracy_of, declared, fact_of, reading, worst
from paths import ROOT, TESTS
from six_distributions import six

RNG = np.random.default_rng


def some(n: int = 5000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(seed)
    p = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < p).astype(int), p


# -- the same numbers whatever the way ----------------------------------------------------------------


@pytest.mark.parametrize("compiled_from", [10**9, 0])
@pytest.mark.parametrize("batch", [1, 7, 400, 5000])
def test_any_split_and_order_of_the_rows_gives_the_same_digest(
    monkeypatch: pytest.MonkeyPatch, compiled_from: int, batch: int
) -> None:
    y, p = some(1000)
    whole = State(960).update(y, p).digest
    monkeypatch.setattr(sums, "COMPILED_FROM", compiled_from)
    monkeypatch.setattr(sums, "BUFFER", 64)
    order = RNG(1).permutation(len(y))
    state = State(960)
    for rows in np.split(order, range(batch, len(y), batch)):
        state.update(y[rows], p[rows])
    assert state.digest == whole
    parts = [State(960).update(y[rows], p[rows]) for rows in np.array_split(order, 9)]
    assert sum(parts[1:], parts[0]).digest == whole
    assert sum(reversed(parts)).digest == whole
    assert State(960).merge(*parts).digest == whole


def test_different_rows_give_a_different_digest() -> None:
    y, p = some(100)
    base = State(960).update(y, p)
    other = p.copy()
    other[3] += 1e-9
    assert State(960).update(y, other).digest != base.digest
    assert State(960).update(1 - y, p).digest != base.digest
    assert State(4800).update(y, p).digest != base.digest
    assert State(960, lens="top-label").update(y, p).digest != base.digest
    assert base != "something else"


def test_waiting_rows_do_not_change_with_the_callers_array() -> None:
    y, p = some(100)
    state, mine = State(960), p.copy()
    state.update(y, mine)
    mine[:] = 0.5
    assert state.digest == State(960).update(y, p).digest


@pytest.mark.parametrize("compiled_from", [10**9, 0])
def test_weight_two_is_the_row_written_twice(monkeypatch: pytest.MonkeyPatch, compiled_from: int) -> None:
    monkeypatch.setattr(sums, "COMPILED_FROM", compiled_from)
    y, p = some(300)
    w = RNG(1).integers(0, 5, 300)
    weighted = State(960).update(y, p, sample_weight=w)
    assert weighted.digest == State(960).update(np.repeat(y, w), np.repeat(p, w)).digest
    assert weighted.digest == State(960).update(y, p, sample_weight=w.astype(float)).digest
    mixed = State(960).update(y, p).update(y, p, sample_weight=w)
    assert mixed.digest == State(960).update(y, p, sample_weight=w + 1).digest


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_short_floats_are_the_doubles_they_are(kind: Any) -> None:
    y, p = some(500)
    short = p.astype(kind)
    assert State(960).update(y, short).digest == State(960).update(y, short.astype(float)).digest


def test_columns_of_two_classes_are_the_binary_problem() -> None:
    y, p = some(100)
    assert State(960).update(y, np.column_stack([1 - p, p])).digest == State(960).update(y, p).digest


def test_top_label_state_is_the_top_label_lens() -> None:
    rng = RNG(0)
    prob = rng.dirichlet(np.ones(4), 2000)
    y = rng.integers(0, 4, 2000)
    state = State(lens="top-label").update(y, prob)
    assert cal.compute("ece", state) == pytest.approx(cal.compute("ece", y, prob, lens="top-label"), abs=1e-12)
    with pytest.raises(ValueError, match="ice weights bins by the class shares"):
        cal.compute("ice", state)
    assert cal.compute("ice", state, alpha=0.5) == pytest.approx(cal.compute("ice", y, prob, alpha=0.5), abs=1e-12)


def test_named_labels() -> None:
    y, p = some(50)
    names = np.where(y == 1, "ill", "well")
    state = State(960, labels=["well", "ill"]).update(names, p)
    numbered = State(960).update(y, p)
    assert np.array_equal(state.table.s, numbered.table.s)
    assert state.digest == State(960, pos_label="ill").update(names, p).digest
    assert state.digest != numbered.digest
    assert State(960, labels=np.array([0, 1])).update(y, p).digest == numbered.digest
    assert State(960, pos_label=True).update(y == 1, p).digest == numbered.digest
    assert state.as_predictions().classes == ("well", "ill")


# -- putting together and taking apart ----------------------------------------------------------------


def test_subtract_undoes_merge_and_moves_a_window() -> None:
    days = [State(960).update(*some(200, seed)) for seed in range(5)]
    window = sum(days[:3])
    window += days[3]
    window -= days[0]
    assert window == sum(days[1:4])
    assert (window - days[1] - days[2] - days[3]).n == 0


def test_subtract_refuses_what_was_not_merged() -> None:
    a, b = State(960).update(*some(50, 0)), State(960).update(*some(50, 1))
    with pytest.raises(ValueError, match="contains rows that the other does not"):
        a - b
    with pytest.raises(ValueError, match="contains rows that the other does not"):
        State(960) - b
    assert (a - State(960)) == a


def test_keys_are_kept_apart() -> None:
    y, p = some(600)
    day = RNG(1).integers(0, 3, 600)
    model = np.array(["a", "b"])[RNG(2).integers(0, 2, 600)]
    state = State(960, by=["day", "model"]).update(y, p, by={"day": day, "model": model})
    for value, part in state.by("day").items():
        rows = day == value
        assert part == State(960, by="model").update(y[rows], p[rows], by={"model": model[rows]})
    for (d, m), part in state.by("day", "model").items():
        rows = (day == d) & (model == m)
        assert part == State(960).update(y[rows], p[rows])
    assert list(state.by("model")) == ["a", "b"]
    assert state.as_predictions().total == 600
    assert cal.compute("ece", state) == pytest.approx(cal.compute("ece", y, p), abs=1e-11)


def test_keys_may_come_in_any_order_and_as_one_value() -> None:
    y, p = some(90)
    day = np.repeat([datetime.date(2026, 1, 3), datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)], 30)
    whole = State(960, by="day").update(y, p, by={"day": day})
    parts = [State(960, by="day").update(y[i : i + 30], p[i : i + 30], by={"day": day[i]}) for i in (0, 30, 60)]
    assert sum(parts) == whole
    assert sum(reversed(parts)) == whole
    assert list(whole.by("day")) == sorted(set(day))
    assert (whole - parts[1]).keys == ((day[60],), (day[0],))


def test_missing_keys_are_a_group_of_their_own() -> None:
    state = State(960, by="g").update([0, 1, 1], [0.1, 0.2, 0.3], by={"g": [1.0, math.nan, None]})
    assert list(state.by("g")) == [None, 1.0]
    assert state.by("g")[None].n == 2


def test_days_become_weeks() -> None:
    y, p = some(200)
    day = RNG(0).integers(0, 28, 200)
    state = State(960, by="day").update(y, p, by={"day": day})
    weeks = state.regrouped(day=lambda d: d // 7)
    assert weeks == State(960, by="day").update(y, p, by={"day": day // 7})
    assert state.regrouped(day=None) == State(960).update(y, p)


@pytest.mark.parametrize("to", [4800, 960, 240])
def test_coarser_keeps_counts_and_sums(to: int) -> None:
    for name, y, p in six(3000):
        fine = State(19200).update(y, p)
        coarse, straight = fine.coarser(to), State(to).update(y, p)
        near_one = p > 1 - 1e-11  # where the last levels of the two grids differ
        if not near_one.any():
            assert np.array_equal(coarse.table.code, straight.table.code), name
            assert np.array_equal(coarse.table.n, straight.table.n), name
        assert coarse.n == fine.n
        assert cal.compute("mae", coarse) == pytest.approx(cal.compute("mae", y, p), abs=1e-11)
        assert cal.compute("ece", coarse) == pytest.approx(cal.compute("ece", y, p), abs=1e-11)


def test_states_of_different_kinds_do_not_merge() -> None:
    a = State(960)
    for other, said in [
        (State(4800), r"resolution=960 and the other 4800; use coarser\(\)"),
        (State(960, lens="top-label"), "lens='binary' and the other 'top-label'"),
        (State(960, by="day"), r"by=\(\) and the other \('day',\)"),
    ]:
        with pytest.raises(ValueError, match=said):
            a.merge(other)
    with pytest.raises(TypeError, match="a state can only be merged with a state, not with int"):
        a.merge(3)  # type: ignore[arg-type]


# -- files --------------------------------------------------------------------------------------------


def test_a_saved_state_comes_back(tmp_path: Path) -> None:
    y, p = some(400)
    g = RNG(0).integers(0, 3, 400)
    state = State(960, by="group", pos_label=1).update(y, p, by={"group": g})
    state.update([0, 1], [0.2, math.nan], by={"group": 7}, drop_invalid=True)
    path = tmp_path / "state.parquet"
    state.save(path)
    back = State.load(path)
    assert back == state
    assert back.dropped == state.dropped == {"probability missing or outside [0, 1]": 1}
    assert back.pos_label == 1
    assert [f.name for f in tmp_path.iterdir()] == ["state.parquet"]
    assert pickle.loads(pickle.dumps(state)) == state
    columns = pq.read_table(path)
    assert columns.column_names == ["group", "cell", "y", "n", "s"]
    assert [str(columns.schema.field(c).type) for c in ("cell", "y", "n", "s")] == ["int32", "int8", "int64", "int64"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.parquet"
    State(960).update(*some(50)).save(path)
    before = path.read_bytes()

    def broken(*args: Any, **kwargs: Any) -> None:
        Path(args[1]).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(pq, "write_table", broken)
    with pytest.raises(OSError, match="disk full"):
        State(960).update(*some(60)).save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_load_refuses_other_files(tmp_path: Path) -> None:
    other = tmp_path / "predictions.parquet"
    pq.write_table(pa.table({"p": [0.5]}), other)
    with pytest.raises(ValueError, match=r"is not a saved state: read predictions with calibrary.scale.scan"):
        State.load(other)
    text = tmp_path / "x.csv"
    text.write_text("p\n0.5\n")
    with pytest.raises(ValueError, match="is not a Parquet file"):
        State.load(text)
    later = State(960).update([1], [0.5]).to_table()
    later = later.replace_schema_metadata({"calibrary": later.schema.metadata[b"calibrary"].replace(b'": 2', b'": 99')})
    pq.write_table(later, other)
    with pytest.raises(ValueError, match="saved by a newer calibrary"):
        State.load(other)


def test_of_table_takes_what_engines_return() -> None:
    state = State(960, by="g").update(*some(60), by={"g": np.arange(60) % 2})
    table = state.to_table()
    for given in (table, table.to_pandas(), {name: table.column(name).to_pylist() for name in table.column_names}):
        assert State.of_table(given, resolution=960) == state


def test_of_table_refuses_what_no_predictions_give() -> None:
    table = State(960).update(*some(60)).to_table().to_pydict()

    def given(**changed: Any) -> dict[str, Any]:
        return {**table, **{name: [value, *table[name][1:]] for name, value in changed.items()}}

    odd = next(i for i, c in enumerate(table["cell"]) if c % 2)
    assert odd == 0
    with pytest.raises(ValueError, match=r"7 rows have no probability in .0, 1. or no label 0 or 1"):
        State.of_table(given(cell=None, n=7), resolution=960)
    dropped = State.of_table(given(cell=None, n=7), resolution=960, drop_invalid=True)
    assert dropped.dropped == {"no probability in [0, 1] or no label 0 or 1": 7}
    assert dropped.n == 59
    with pytest.raises(ValueError, match=r"resolution=240 does not have: pass the resolution="):
        State.of_table(table, resolution=240)
    with pytest.raises(ValueError, match="has an impossible sum"):
        State.of_table(given(s=-5), resolution=960)
    with pytest.raises(OverflowError, match=r"40,000,000,000 rows in one cell"):
        State.of_table(given(n=40_000_000_000), resolution=960)
    with pytest.raises(OverflowError, match=r"column 's' holds double values"):
        State.of_table(given(s=0.5), resolution=960)
    with pytest.raises(ValueError, match="table has no column 's'"):
        State.of_table({name: table[name] for name in ("cell", "y", "n")}, resolution=960)


# -- bad rows -----------------------------------------------------------------------------------------


def test_bad_rows_are_refused_and_leave_the_state_alone() -> None:
    state = State(960).update([0, 1], [0.2, 0.7])
    before = state.digest
    for y, p, said in [
        ([0, 1], [0.2, 1.5], r"y_prob\[1\] = 1.5 is above 1"),
        ([0, 1], [0.2, math.nan], r"y_prob\[1\] = nan"),
        ([0, 2], [0.2, 0.3], r"y_true\[1\] = 2 is outside"),
    ]:
        with pytest.raises(ValueError, match=said):
            state.update(y, p)
    for w, said in [
        ([1, 0.5], r"sample_weight\[1\] = 0.5 is not a whole number"),
        ([1, -1], "finite and not negative"),
    ]:
        with pytest.raises(ValueError, match=said):
            state.update([0, 1], [0.2, 0.3], sample_weight=w)
    assert state.digest == before


def test_dropped_rows_are_counted_by_reason() -> None:
    y = [0, 1, None, 1, 2, 0]
    p = [0.2, math.nan, 0.4, 1.5, 0.5, 0.6]
    state = State(960).update(np.array(y, dtype=float), p, drop_invalid=True)
    assert state.n == 2
    assert state.dropped == {
        "probability missing or outside [0, 1]": 2, "label missing or not one of the classes": 2,
    }  # fmt: skip
    assert (state + state).dropped["probability missing or outside [0, 1]"] == 4
    assert ((state + state) - state).dropped == state.dropped
    assert "4 dropped" in repr(state)
    names = State(960, labels=["no", "yes"]).update(["no", "yes", "perhaps"], [0.1, 0.2, 0.3], drop_invalid=True)
    assert names.n == 2
    matrix = State(960, lens="top-label").update([0, 1], [[0.5, 0.5], [0.5, 0.6]], drop_invalid=True)
    assert matrix.dropped == {"probabilities that do not sum to 1": 1}
    assert State(960).update([math.nan], [0.5], drop_invalid=True).n == 0


def test_an_empty_state_says_so() -> None:
    with pytest.raises(ValueError, match="the state is empty"):
        cal.compute("ece", State())
    assert State().update(np.empty(0), np.empty(0)).n == 0
    assert (State(960) + State(960)).digest == State(960).digest


def test_keys_are_checked() -> None:
    with pytest.raises(ValueError, match="by has 'dya', not a column of the state: did you mean 'day'"):
        State(by="day").update([1], [0.5], by={"dya": 1})
    with pytest.raises(ValueError, match="must include 'day'"):
        State(by="day").update([1], [0.5])
    with pytest.raises(ValueError, match="by has a column of 2 values for 1 rows"):
        State(by="day").update([1], [0.5], by={"day": [1, 2]})
    with pytest.raises(ValueError, match="by='cell'"):
        State(by="cell")
    with pytest.raises(ValueError, match="names a column twice"):
        State(by=["a", "a"])
    with pytest.raises(ValueError, match="no column 'week'"):
        State(by="day").by("week")
    with pytest.raises(ValueError, match="created without by="):
        State().by("week")


# -- ten thousand million copies ----------------------------------------------------------------------


def test_ten_thousand_million_copies_do_not_overflow() -> None:
    y, p = some(200)
    many = State(960).update(y, p, sample_weight=np.full(200, 50_000_000))
    assert many.n == 10_000_000_000
    assert cal.compute("ece", many) == pytest.approx(cal.compute("ece", y, p), abs=1e-11)
    one = State(960).update([1], [0.3 + 0.5 / 960], sample_weight=[10_000_000_000])
    assert one.table.s[0] > 2**60


@pytest.mark.parametrize("compiled_from", [10**9, 0])
@pytest.mark.parametrize("by", [(), ("g",)])
def test_a_sum_beyond_64_bits_is_exact(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiled_from: int, by: tuple[str, ...]
) -> None:
    """Ten million million rows in one cell, added in parts, in one row, merged, saved, subtracted, made coarser."""
    monkeypatch.setattr(sums, "COMPILED_FROM", compiled_from)
    c, key = 0.3 + 0.9 / 960, dict.fromkeys(by, 7)

    def of(*weights: int) -> State:
        return State(960, by=by).update([1] * len(weights), [c] * len(weights), sample_weight=weights, by=key)

    most = 10**13
    whole = of(most)
    position = of(1).table.s[0]
    assert int(whole.table.s[0]) == most * int(position) > 2**63
    assert of(3 * 10**12, 7 * 10**12) == whole
    assert of(3 * 10**12) + of(7 * 10**12) == whole == merged([of(10**12)] * 10)
    assert whole - of(7 * 10**12) == of(3 * 10**12)
    assert (whole - of(most - 5)).table.s.dtype == np.int64
    whole.save(tmp_path / "wide.parquet")
    assert State.load(tmp_path / "wide.parquet") == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert whole.as_predictions().c[0] == pytest.approx(c, abs=1 / 960 / 2**28)
    assert whole.coarser(240).as_predictions().c[0] == pytest.approx(c, abs=1e-9)
    assert int(whole.coarser(240).table.s[0]) > 2**63 // 4
    with pytest.raises(OverflowError, match="more than 64 bits can count"):
        of(2**61, 2**61, 2**61, 2**61).n  # noqa: B018


# -- metrics ------------------------------------------------------------------------------------------


def test_every_metric_has_the_class_the_study_found() -> None:
    with (TESTS / "reference" / "scale_entries.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 107
    assert set(FACTS) <= set(cal.catalogue)
    for row in rows:
        fact = FACTS[row["id"]]
        found = row["class"].split("/")[0]
        assert fact.kind in (("copies", "counts") if found == "counts" else (found,)), row["id"]
        seen = (row["measured_g4800"], row["measured_abs_err_g76800_N1e6_worst_of_6"])
        assert fact.measured == (tuple(map(float, seen)) if all(seen) else None), row["id"]
        if fact.kind in ("exact", "smooth", "order", "copies"):
            tied = row["reading"].startswith("tied") and row["id"] != "intce" and fact.kind != "copies"
            assert reading(cal.catalogue[row["id"]], {}) == ("tied" if tied else "split"), row["id"]
        else:
            with pytest.raises(ValueError, match=f"{row['id']} cannot be computed from a state: it"):
                reading(cal.catalogue[row["id"]], {})


def numbers(entry: Any, result: Any) -> np.ndarray:
    if entry.fields:
        return np.array([float(getattr(result, name)) for name, _ in entry.fields])
    return np.ravel(np.asarray(result, dtype=float))


FACTS = declared()
DATA = list(six(4000))
READABLE = [id for id, fact in FACTS.items() if fact.kind in ("exact", "smooth", "order")]


@pytest.fixture(scope="module")
def states() -> list[tuple[str, Any, Any]]:
    return [(name, cal.predictions(y, p), State(19200).update(y, p).as_predictions()) for name, y, p in DATA]


@pytest.mark.parametrize("id", READABLE)
def test_the_value_is_exact_or_within_its_bound(id: str, states: list[tuple[str, Any, Any]]) -> None:
    entry = cal.catalogue[id]
    for name, arrays, rows in states:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            true, found = numbers(entry, measure(entry, arrays)), numbers(entry, measure(entry, rows))
        with np.errstate(invalid="ignore"):
            same = (true == found) | (np.isnan(true) & np.isnan(found))
            off = np.where(same, 0.0, np.abs(true - found))  # infinite on both sides is the same
        known = accuracy_of(rows, entry, {})
        assert known.kind in ("exact", "bounded", "close")
        if known.kind == "exact":
            assert (off <= 1e-12 * np.maximum(np.abs(true), 1)).all(), name
        elif known.kind == "bounded":
            assert known.bound is not None
            assert (off <= known.bound).all(), (name, true, found, known)
        elif FACTS[id].kind == "smooth":
            assert (off <= 1e-6 * np.maximum(np.abs(true), 1) * (1000 if id == "pws" else 1)).all(), (name, true, found)
        else:  # order metrics of few rows are off by what one cell holds
            assert (off <= 0.05 * np.maximum(np.abs(true), 0.05)).all(), (name, true, found)


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("n_bins", [7, 10, 15, 100])
@pytest.mark.parametrize("id", ["ece", "ace"])
def test_bins_of_the_users_own(id: str, n_bins: int, binning: str) -> None:
    options = {"n_bins": n_bins, "binning": binning}
    for name, y, p in DATA:
        state = State(4800).update(y, p)
        known = accuracy(id, state, **options)
        # a seventh is no edge of a cell, but there may be no row in the cells it cuts
        allowed = ("exact",) if binning == "width" and n_bins != 7 else ("bounded", "exact")
        assert known.kind in (allowed if binning == "width" else ("bounded",))
        assert known.bound is not None
        off = abs(cal.compute(id, state, **options) - cal.compute(id, y, p, **options))
        assert off <= known.bound + 1e-12, (name, off, known)


@pytest.mark.parametrize("rare", [0, 1])
def test_the_bound_of_a_divided_cell_holds_where_nearly_all_of_it_is_counted_in_the_wrong_bin(rare: int) -> None:
    """One row far from the edge draws the mean of its cell over it; the other rows of the lower bin cancelled them."""
    edge, inside = 0.5 + 0.3 / 4800, 0.5 + np.r_[np.full(99, 0.299), 0.9] / 4800
    y, p = np.r_[np.ones(100), np.zeros(100)].astype(int), np.r_[inside, np.full(100, 0.45)]
    if rare:  # the same rows, seen from the other class
        y, p, edge = 1 - y, 1.0 - p, 1.0 - edge
    state, options = State(4800).update(y, p), {"edges": [0, edge, 1]}
    known = accuracy("ece", state, **options)
    off = abs(cal.compute("ece", state, **options) - cal.compute("ece", y, p, **options))
    assert known.kind == "bounded"
    assert known.bound is not None
    assert 0.85 * known.bound < off <= known.bound


@pytest.mark.parametrize(
    ("id", "options"), [("ece", {"binning": "mass", "n_bins": 4}), ("ecce_mad", {}), ("ecce_r", {})]
)
def test_the_bound_holds_where_the_labels_of_two_cells_are_apart(id: str, options: dict[str, Any]) -> None:
    """In one cell all ones are below all zeros, and in the next above them: a state sees both labels at one place."""
    y = np.repeat([1, 0, 0, 1], 100)
    p = np.repeat(0.5 + np.array([0.2, 0.8, 1.2, 1.8]) / 4800, 100)
    state = State(4800).update(y, p)
    known = accuracy(id, state, **options)
    off = abs(cal.compute(id, state, **options) - cal.compute(id, y, p, **options))
    assert known.bound is not None
    assert 0.99 * known.bound < off <= known.bound


def test_an_average_is_as_precise_as_its_least_precise_value() -> None:
    exact, close = Accuracy("exact", 0.0), Accuracy("close")
    near, far = (Accuracy("bounded", bound) for bound in (0.1, 0.3))
    assert worst([exact, exact]) == exact
    assert worst([near, exact, far, near]) == far
    assert worst([far, close, exact]) == worst([]) == close


def test_options_change_the_class() -> None:
    entry = cal.catalogue
    assert fact_of(entry["ece"], {"strategy": "quantile"}).kind == "order"
    assert fact_of(entry["ece"], {"edges": [0, 0.3, 1]}).kind == "exact"
    assert fact_of(entry["ace"], {"binning": "width"}).kind == "exact"
    assert fact_of(entry["pwe"], {"norm": 2}).kind == "smooth"
    assert fact_of(entry["pce"], {"groups": [1]}).kind == "exact"
    y, p = some(2000)
    state = State(4800).update(y, p)
    assert accuracy("ece", state, edges=[0, 0.25, 1]).kind == "exact"
    assert accuracy("ece", state, edges=[0, 1 / 3 + 1e-6, 1]).kind == "bounded"
    assert accuracy("ece_averaged", state).kind == "exact"
    assert accuracy("ece_averaged", state.coarser(240)).kind == "bounded"
    assert accuracy("net_benefit", state, threshold=0.35).kind == "exact"
    assert accuracy("net_benefit", state, threshold=1 / 7).kind == "bounded"
    assert accuracy("sr", state, cost=[[0, 1], [2, 0]]).kind == "close"


def test_a_metric_of_ones_own_reads_the_state() -> None:
    y, p = some(500)
    state = State().update(y, p)
    found = cal.interval(lambda y, p, sample_weight: np.average(y - p, weights=sample_weight), state, rng=0)
    assert found.low < np.mean(y - p) < found.high


def test_limits_that_count_rows_count_predictions() -> None:
    y, p = np.tile([0, 1, 1, 0, 1], 40), np.tile([0.1, 0.5, 0.5, 0.9, 0.9], 40)
    state = State().update(y, p)
    assert len(state) == 4
    assert cal.compute("rbece", state) == pytest.approx(cal.compute("rbece", y, p), abs=1e-12)
    with pytest.warns(cal.CalibrationWarning, match=r"the fullest has 80\)"):
        cal.compute("rbece", state, min_count=81)


def test_groups_of_the_state_are_groups_of_a_metric() -> None:
    y, p = some(800)
    site, day = np.arange(800) % 3, np.arange(800) % 2
    state = State(by=["site", "day"]).update(y, p, by={"site": site, "day": day})
    for name, groups in (("site", site), ("day", day)):
        rows, column = state.rows_by(name)
        found = cal.compute("pce", rows, groups=column)
        assert found == pytest.approx(cal.compute("pce", y, p, groups=groups), abs=1e-9)
        assert accuracy("pce", rows, groups=column).kind == "exact"


def test_order_metrics_read_both_labels_at_the_mean_of_the_cell() -> None:
    # one cell with all zeros below all ones: taken one label after the other the cumulated residual would swing
    y = np.repeat([0, 1], 500)
    p = np.linspace(0.50001, 0.50009, 1000)
    rows = State(240).update(y, p).as_predictions()
    assert rows.n == 2
    assert len(rows.tied.ties.c) == 1
    assert cal.compute("ecce_mad", rows) < 1e-4
    split = cal.Predictions(rows.y, rows.c, rows.w)
    assert cal.compute("ecce_mad", split) > 0.2


def test_tied_rows_keep_exact_confidences_on_edges() -> None:
    y, _ = some(300)
    p = np.round(RNG(0).random(300), 2)
    tied = State().update(y, p).as_predictions().tied
    assert set(tied.c) == set(p)


def test_derived_rows_stay_in_their_cells() -> None:
    rows = State(960).update(*some(500)).as_predictions()
    w = RNG(0).integers(0, 3, rows.n).astype(float)
    drawn = rows.reweighted(w)
    again = drawn.relabeled(1 - drawn.y)
    for made in (drawn, again, rows.subset(w > 0, rows.y[w > 0], rows.c[w > 0])):
        assert np.array_equal(made.cell, rows.cell[w > 0])
        assert made.tied.total == made.total
    mean = drawn.tied
    for cell in np.unique(drawn.cell)[:20]:
        here = drawn.cell == cell
        assert mean.c[here] == pytest.approx(np.average(drawn.c[here], weights=drawn.w[here]))
    assert rows.through(cal.lens.as_lens("top-label")).views[0].tied.n == rows.n


# -- what takes predictions takes a state -------------------------------------------------------------


def test_evaluate_says_what_is_exact_bounded_and_left_out() -> None:
    y, p = some(3000)
    state = State().update(np.tile(y, 10), np.tile(p, 10))
    found = cal.evaluate(state, metrics=["ece", "bs", "smece", "ecce_mad", "ici", "calibration_loss", "skce_ul", "pws"])
    assert found.n == 30_000
    assert "30,000 predictions" in repr(found)
    notes = {row.id: row.note for row in found}
    assert notes["ece"] == "exact"
    assert notes["bs"].startswith("within ")
    assert notes["ecce_mad"].startswith("within ")
    close = "close to the exact value, without a proved bound; the largest error in trials was about"
    assert notes["pws"].startswith(f"{close} 1e-02")
    assert notes["ici"].startswith(f"{close} 6e-07")
    assert "cannot be computed from a state: its folds or limits" in found.skipped["calibration_loss"]
    assert "it needs complete rows" in found.skipped["skce_ul"]
    true = cal.evaluate(np.tile(y, 10), np.tile(p, 10), metrics=["ece", "bs", "smece"])
    for id in ("ece", "bs", "smece"):
        assert found[id] == pytest.approx(true[id], abs=1e-9)
    assert all(row.note == "" for row in true)


def test_everything_at_once() -> None:
    y, p = some(700)
    found = cal.evaluate(State(4800).update(y, p))
    had = {*READABLE, *(id for id, fact in FACTS.items() if fact.kind == "copies")}
    assert {row.id for row in found} == had
    assert set(found.skipped) == set(cal.catalogue) - had
    for id in ("ehl", "calibration_loss"):
        assert "need single rows" in found.skipped[id]


@pytest.mark.parametrize("id", ["ece", "smece", "ecce_mad", "bs"])
def test_intervals_and_tests_of_a_state(id: str) -> None:
    y, p = some(2000)
    state = State().update(y, p)
    rows = cal.interval(id, y, p, rng=0, n_resamples=199)
    cells = cal.interval(id, state, rng=0, n_resamples=199)
    spread = rows.high - rows.low
    assert cells.low == pytest.approx(rows.low, abs=0.35 * spread)
    assert cells.high == pytest.approx(rows.high, abs=0.35 * spread)
    by_rows = cal.test(id, y, p, method="monte-carlo", rng=0, n_resamples=199).pvalue
    by_cells = cal.test(id, state, method="monte-carlo", rng=0, n_resamples=199).pvalue
    assert by_cells == pytest.approx(by_rows, abs=0.2)


def test_own_laws_read_the_state_too() -> None:
    y, p = some(3000)
    state = State().update(y, p)
    for id in ("spiegelhalter", "hl", "ecce_mad"):
        assert cal.test(id, state).pvalue == pytest.approx(cal.test(id, y, p).pvalue, abs=0.02)


def days(n: int = 4) -> State:
    """Over-confident predictions, each day by itself."""
    rng, state = np.random.default_rng(0), State(960, by="day")
    for day in range(n):
        p = rng.beta(0.8, 0.8, 800)
        y = rng.random(800) < p**0.7 / (p**0.7 + (1 - p) ** 0.7)
        state.update(y, p, by={"day": f"2026-11-{10 + day}"})
    return state


def test_a_statistic_without_a_limit_claims_no_size_of_its_error() -> None:
    """An error that was seen in trials of a chi-squared statistic says nothing of one that is much larger."""
    p = np.concatenate([RNG(0).random(2000), np.full(300, 1e-9)])
    y = np.concatenate([RNG(1).random(2000) < p[:2000], np.ones(300)]).astype(int)
    state = State().update(y, p)
    found = cal.scale.accuracy("hl", state)
    assert found.kind == "close"
    assert found.measured is None
    assert "in trials" not in str(found)
    assert "the metric is unbounded" in str(found)
    true = cal.compute("hl", y, p)
    assert true > 1e9
    assert cal.compute("hl", state) == pytest.approx(true, rel=1e-3)
    assert "in trials" in str(cal.scale.accuracy("decision_loss", state))
    assert cal.scale.accuracy("oce", state).kind == "refused"


def test_bounds_by_cell_are_those_of_their_formulas() -> None:
    p = RNG(0).random(5000)
    y = (RNG(1).random(5000) < p).astype(int)
    state = State(240).update(y, p)
    cell = state.grid.locate(p)[0]
    moved = np.abs(p - (np.bincount(cell, p) / np.maximum(np.bincount(cell), 1))[cell]).mean()
    bound = cal.scale.accuracy("sce", state).bound
    assert bound is not None
    assert moved < bound < 3.0 * moved
    rows, b = state.as_predictions(), 0.2
    h, residual = rows.grid.width(rows.cell), rows.weight * np.abs(rows.y - rows.c)
    u = np.divide(rows.c - rows.grid.low(rows.cell), h, out=np.zeros(rows.n), where=h > 0.0)
    v, r = (rows.weight * u * (1.0 - u) * h**2).sum() / 5000, residual.sum() / 5000
    inside = sum(h[rows.cell == k][0] * residual[rows.cell == k].sum() ** 2 for k in set(rows.cell.tolist()))
    expected = 2.0 * (v / b) * (1.0 + r / (2.0 * b)) * r + inside / b / 5000**2
    found = cal.scale.accuracy("lkce", state, bandwidth=b, squared=True).bound
    assert found == pytest.approx(expected, rel=1e-6)


def test_what_is_called_close_is_not_refused_afterwards() -> None:
    y, p = RNG(0).integers(0, 2, 400), np.concatenate([np.full(150, 0.300001), RNG(1).random(250)])
    coarse = State(240).update(y, p)
    for id in ("mvms", "oce"):
        assert cal.scale.accuracy(id, coarse).kind == "refused"
        with pytest.raises(ValueError, match=r"needs|divide a cell of|not detections"):
            cal.compute(id, coarse)
    assert "use a larger min_count" in cal.scale.accuracy("mvms", coarse).reason
    assert cal.scale.accuracy("mvms", coarse, min_count=200).kind == "close"
    cal.compute("mvms", coarse, min_count=200)


def test_units_may_be_a_column_that_a_state_keeps_apart() -> None:
    rng, n = RNG(3), 1500
    site = rng.integers(0, 40, n)
    p = rng.beta(0.8, 0.8, n)
    truth = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + rng.normal(0, 1, 40)[site])))
    y = (rng.random(n) < truth).astype(int)
    keyed = State(19200, by=["site", "day"]).update(y, p, by={"site": site, "day": rng.integers(0, 3, n)})
    found, true = cal.interval("bs", keyed, units="site", rng=0), cal.interval("bs", y, p, units=site, rng=0)
    assert (found.low, found.high) == pytest.approx((true.low, true.high), abs=1e-6)
    assert found.high - found.low > cal.interval("bs", keyed, rng=0).high - cal.interval("bs", keyed, rng=0).low
    pages = [cal.report(keyed, units="site", metrics=["ece"], n_resamples=39, rng=0)]
    pages.append(cal.report(y, p, units=site, metrics=["ece"], n_resamples=39, rng=0))
    assert pages[0].headline == pages[1].headline
    with pytest.raises(ValueError, match="the state has no column 'sit': did you mean 'site'"):
        cal.interval("bs", keyed, units="sit")
    for plain in (cal.predictions(y, p), State().update(y, p)):
        with pytest.raises(ValueError, match="units='site' is a name: pass the column itself"):
            cal.interval("bs", plain, units="site")


def test_the_alarm_on_states_by_day_is_that_of_the_rows() -> None:
    rng, by_rows = np.random.default_rng(0), cal.calibration_monitor()
    by_states = cal.calibration_monitor()
    for part in days().by("day").values():
        p = rng.beta(0.8, 0.8, 800)
        by_rows.update(rng.random(800) < p**0.7 / (p**0.7 + (1 - p) ** 0.7), p)
        by_states.update(part)
        assert by_states.log_e == pytest.approx(by_rows.log_e, abs=1e-3)  # each cell's rows are taken at their mean
    assert (by_states.n, by_states.alarm_at) == (by_rows.n, by_rows.alarm_at) == (3200, 800)


def test_a_report_of_a_state_shows_periods_and_says_what_it_cannot_give() -> None:
    rows, day = days().rows_by("day")
    found = cal.report(rows, time=day, metrics=["ece", "calibration_loss"], n_resamples=39, rng=0)
    assert found.evaluation.n == found.data["rows"] == 3200
    assert found.evaluation.row("ece").note == "exact"
    assert "cannot be computed from a state" in found.evaluation.skipped["calibration_loss"]
    periods = next(section for section in found.sections if section.key == "time")
    assert [row[:2] for row in periods.tables[0].rows] == [(f"2026-11-{10 + k}", 800) for k in range(4)]
    assert any("Alarm" in sentence for sentence in periods.sentences)


def test_positions_are_what_the_cells_say() -> None:
    assert POSITIONS == 2**28


def test_the_diagram_of_the_documentation_says_what_the_package_knows() -> None:
    root = ROOT
    spec = importlib.util.spec_from_file_location("scale_diagram", root / "scripts" / "scale_diagram.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.FILE.read_text() == made.diagram(), "python scripts/scale_diagram.py"


@pytest.mark.parametrize("k", [2, 3])
def test_batches_are_not_kept_until_garbage_is_collected(k: int) -> None:
    rng = RNG(0)
    state: Any = State(240) if k == 2 else cal.scale.VectorState(k)
    held = []
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(6):
            prob = rng.dirichlet(np.ones(k), 70_000)
            state.update(rng.integers(0, k, 70_000), prob[:, 1] if k == 2 else prob)
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.enable()
    assert held[-2] - held[1] < 2 * 70_000 * 8  # three batches, each of at least twice as many bytes


def test_states_that_count_opposite_labels_as_the_event_are_not_merged():
    y, c = ["no", "yes"] * 20, [0.3, 0.6] * 20
    one, other = State(labels=["no", "yes"]).update(y, c), State(labels=["yes", "no"]).update(y, c)
    with pytest.raises(ValueError, match="'yes' as the event and the other 'no'"):
        one + other
    with pytest.raises(ValueError, match="as the event"):
        one.copy().subtract(State(pos_label="no"))
    both = one + State(pos_label="yes").update(y, c)
    assert both == one + one
