"""A stream that is watched: days enter once and in order, and are saved, merged and begun anew."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrary as cal
from calibrary.base.numbers import number
from calibrary.base.saved import SavedFileError
from calibrary.scale import State, Store, segment_table, watch
from calibrary.scale.stream import Watch, gate
from each import amount


def day_of(t: int) -> str:
    return str(np.datetime64("2026-10-01") + np.timedelta64(t, "D"))


def rows(t: int, n: int = 300, factor: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(t)
    p = rng.beta(1, 2, n)
    return (rng.random(n) < factor * p).astype(int), p


def watched(days: int, factor: float = 1.0, **options: Any) -> Watch:
    stream = cal.watch(planned_rows=2000, **options)
    for t in range(days):
        stream.update(*rows(t, factor=factor), day=day_of(t))
    return stream


def test_rows_and_their_states_are_the_same_stream() -> None:
    stream = cal.watch(planned_rows=2000)
    for t in range(6):
        stream.add(State(19200).update(*rows(t)), day=day_of(t))
    ours, theirs = stream.result(), watched(6).result()
    assert ours.sentence == theirs.sentence
    for a, b in zip(ours.segments[0].intervals, theirs.segments[0].intervals, strict=True):
        assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), abs=1e-6)


def test_the_numbers_are_those_of_all_rows() -> None:
    stream = watched(6)
    y, p = (np.concatenate(x) for x in zip(*(rows(t) for t in range(6)), strict=True))
    found = {i.name: i for i in stream.intervals()}
    assert found["oe"].value == pytest.approx(y.sum() / p.sum(), rel=1e-9)
    assert found["brier"].value == pytest.approx(cal.brier_score(y, p), rel=1e-3)
    assert found["slope"].value == pytest.approx(cal.compute("cis", y, p).slope, rel=1e-2)
    last = stream.result().segments[0].days[-1]
    assert (last.so_far, last.low, last.high) == pytest.approx((found["oe"].value, found["oe"].low, found["oe"].high))
    wider = {i.name: i for i in stream.intervals(alpha=0.005)}
    assert all(wider[name].high > found[name].high for name in ("oe", "slope", "brier"))


def test_a_gate_holds_for_all_segments_together() -> None:
    """Of four segments each has a quarter of alpha, as if it were alone with that alpha."""
    four, alone = cal.watch(by="site", planned_rows=2000), cal.watch(by="site", planned_rows=2000, alpha=0.05 / 4)
    y, p = rows(0, n=400)
    four.update(y, p, by={"site": np.repeat(list("abcd"), 100)}, day=day_of(0))
    alone.update(y[:100], p[:100], by={"site": ["a"] * 100}, day=day_of(0))
    bounds = [gate("oe>0"), gate("oe<9")]
    (wide,) = alone.intervals(("a",), names=("oe",))
    failed = alone.result(gates=bounds).failed
    assert failed == four.result(gates=bounds).failed[:2]
    assert len(failed) == 2
    assert f"between {number(wide.low)} and {number(wide.high)}" in failed[0]


def test_a_saved_stream_goes_on(tmp_path: Path) -> None:
    whole, part = watched(8, factor=0.8), watched(4, factor=0.8)
    part.save(tmp_path / "s.npz")
    part = Watch.load(tmp_path / "s.npz")
    for t in range(4, 8):
        part.update(*rows(t, factor=0.8), day=day_of(t))
    assert part.result() == whole.result()
    assert whole.result().alarms
    content = (tmp_path / "s.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(SavedFileError, match="is not a saved stream"):
        Watch.load(tmp_path / "cut.npz")
    with np.load(tmp_path / "s.npz") as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(tmp_path / "other.npz", **{**arrays, "sums": arrays["sums"] + 1.0})
    with pytest.raises(SavedFileError, match="was changed"):
        Watch.load(tmp_path / "other.npz")


def test_streams_of_other_segments_and_of_other_rows_are_merged() -> None:
    whole, parts = cal.watch(by="g"), [cal.watch(by="g") for _ in range(3)]
    for t in range(5):
        y, p = rows(t, 400, factor=0.7)
        g = np.repeat(["a", "b"], 200)
        whole.update(y, p, by={"g": g}, day=day_of(t))
        for stream, some in zip(parts, (slice(0, 100), slice(100, 200), slice(200, 400)), strict=True):
            stream.update(y[some], p[some], by={"g": g[some]}, day=day_of(t))
    log_e = [stream.result().segments[0].log_e for stream in parts[:2]]
    merged = parts[0].merge(parts[2]).merge(parts[1])
    ours, theirs = merged.result(), whole.result()
    assert {s.name: s.n for s in ours.segments} == {s.name: s.n for s in theirs.segments} == {"a": 1000, "b": 1000}
    by_name = {s.name: s for s in ours.segments}
    assert by_name["a"].log_e == pytest.approx(sum(log_e))
    for segment in theirs.segments:
        found = by_name[segment.name].intervals[1]
        assert (found.value, found.low) == pytest.approx(
            (segment.intervals[1].value, segment.intervals[1].low), rel=0.01
        )
    assert by_name["b"].log_e == pytest.approx({s.name: s for s in theirs.segments}["b"].log_e)
    with pytest.raises(ValueError, match="settings and days are the same"):
        merged.merge(cal.watch(by="g"))


def test_a_restart_begins_anew() -> None:
    stream = watched(5, factor=0.6)
    assert stream.result().alarms
    stream.restart()
    for t in range(5, 12):
        stream.update(*rows(t), day=day_of(t))
    found = stream.result()
    assert not found.alarms
    assert found.segments[0].n == 7 * 300
    assert found.segments[0].intervals[1].low < 1.0 < found.segments[0].intervals[1].high
    assert "1 stretch before a restart" in found.notes[0]
    stream.restart()
    assert stream.result(notes=("The caller's note.",)).notes[0] == "The caller's note."


def test_a_gate_takes_the_names_that_compute_takes() -> None:
    y, p = rows(0)
    for name in ("citl", "calibration_in_the_large"):
        assert gate(f"{name}>0").number == "offset"
        assert cal.compute(name, y, p) == cal.compute("cis", y, p).calibration_in_the_large


def shaken(seed: int, units: str) -> tuple[bool, bool]:
    """Whether O/E ever leaves the truth, and whether there is an alarm, if the rows of a day share a shock."""
    rng, stream = np.random.default_rng(seed), cal.watch(planned_rows=6000, units=units)
    for t in range(30):
        p = np.full(200, 0.3)
        m = p + rng.choice([-0.15, 0.15])
        stream.update((rng.random(200) < m).astype(int), p, day=day_of(t))
    found = stream.result().segments[0]
    return any(not d.low <= 1.0 <= d.high for d in found.days), found.alarm  # type: ignore[operator]


def test_days_that_depend_on_each_other_need_days_as_units() -> None:
    seeds = amount(6, 12)
    days, single = ([shaken(seed, units) for seed in range(seeds)] for units in ("day", "row"))
    assert not any(left or alarm for left, alarm in days)
    assert sum(left for left, _ in single) >= seeds // 2
    assert sum(alarm for _, alarm in single) >= seeds // 2
    stream = cal.watch(planned_rows=6000, units="day")
    for t in range(60):
        stream.update(*rows(t, factor=0.5), day=day_of(t))
    assert stream.result().alarms
    with pytest.raises(ValueError, match="the dates of a change suppose"):
        stream.dates()


def test_the_share_of_false_alarms_uses_current_evidence() -> None:
    """After many calibrated days the evidence of one bad day is gone, and with it the alarm."""
    streams = {error: cal.watch(by="g", error=error, planned_rows=2000) for error in ("any", "fdr")}
    for t in range(60):
        y, p = rows(t, 400)
        bad, q = rows(100 + t, 400, factor=0.5 if t == 2 else 1.0)
        by = {"g": np.repeat(["a", "b"], 400)}
        for stream in streams.values():
            stream.update(np.append(y, bad), np.append(p, q), by=by, day=day_of(t))
    found = {error: stream.result() for error, stream in streams.items()}
    assert [s.name for s in found["any"].alarms] == ["b"]
    [bad] = [s for s in found["fdr"].segments if s.name == "b"]
    assert bad.log_e < math.log(2 / 0.05) < max(day.log_e for day in bad.days)
    assert not found["fdr"].alarms
    assert bad.pvalue == pytest.approx(min(1.0, math.exp(-bad.log_e)))
    assert "expected share of false alarms: 5% at most" in found["fdr"].sentence


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.update(*rows(9), day=day_of(2)), "2026-10-03 was counted already"),
        (lambda s: s.update(*rows(9), day="2026-09-01"), "days come in order"),
        (lambda s: s.update(*rows(9)), "pass day= always or never"),
        (lambda s: s.update([0, np.nan], [0.2, 0.4], day=day_of(9)), "label"),
        (lambda s: s.add(State(240, by="g"), day=day_of(9)), "make both with the same"),
        (lambda s: s.add(State(16), day=day_of(9)), "no multiple of 240"),
        (lambda s: s.restart("north"), "there is no segment 'north'"),
        (lambda s: s.intervals(names=["ace"]), "names="),
        (lambda s: s.merge(3), "streams are merged"),
        (lambda s: cal.watch(units="week"), "units="),
        (lambda s: cal.watch(error="fwer"), "error="),
        (lambda s: cal.watch(by="day"), "segments are monitored over days"),
        (lambda s: cal.watch().result(), "no day was counted yet"),
    ],
)
def test_what_cannot_be_counted_is_refused_in_a_sentence(call: Any, words: str) -> None:
    stream = watched(3)
    before = stream.result()
    with pytest.raises((ValueError, TypeError), match=words):
        call(stream)
    assert stream.result() == before


def test_labels_that_come_early_and_clocks_that_go_back() -> None:
    stream = cal.watch(mature=7)
    stream.update(*rows(0), day=day_of(0), now=day_of(8))
    with pytest.raises(ValueError, match="6 days old on 2026-10-09, and outcomes are complete after 7"):
        stream.update(*rows(1), day=day_of(2), now=day_of(8))
    with pytest.raises(ValueError, match="the clock went back"):
        stream.update(*rows(1), day=day_of(1), now=day_of(5))
    stream.update(*rows(1), day=day_of(1), now=day_of(8))
    assert stream.days == [day_of(0), day_of(1)]


def test_rows_left_out_and_segments_that_stop_are_said() -> None:
    stream = cal.watch(by="g")
    for t in range(12):
        y, p = rows(t, 200)
        labels = y.astype(float)
        labels[0] = np.nan
        g = np.repeat(["a", "b"] if t < 3 else ["a", "a"], 100)
        stream.update(labels, p, by={"g": g}, day=day_of(t), drop_invalid=True)
    notes = stream.result().notes
    assert "12 rows without a valid label" in notes[0]
    assert notes[1].startswith("b has no rows since 2026-10-03") or "'b' has no rows since 2026-10-03" in notes[1]


def test_a_day_of_the_record_is_never_counted_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for t in range(6):
        store.upsert(State(240).update(*rows(t)), source=str(t), day=day_of(t))
    first = watch(store, record=tmp_path / "r.npz", mature=2)
    assert first.last == day_of(3)
    assert "2 days from 2026-10-05 on wait" in first.notes[0]
    store.upsert(State(240).update(*rows(50, 200)), source="late", day=day_of(1))
    store.upsert(State(240).update(*rows(51, 200)), source="before", day="2026-09-20")
    store.upsert(State(240).update(*rows(8)), source="8", day=day_of(8))
    later = watch(store, record=tmp_path / "r.npz", mature=2)
    assert later.segments[0].n == 6 * 300
    assert later.segments[0].days[:4] == first.segments[0].days
    assert "2026-09-20 and possibly others came after" in " ".join(later.notes)
    assert watch(store, record=tmp_path / "r.npz", mature=2).segments == later.segments
    with pytest.raises(ValueError, match="was begun with mature=2"):
        watch(store, record=tmp_path / "r.npz")
    with pytest.raises(ValueError, match="needs the record"):
        watch(store, restart="all")
    anew = watch(store, record=tmp_path / "r.npz", mature=2, restart="all")
    assert not anew.segments
    store.upsert(State(240).update(*rows(12)), source="12", day=day_of(12))
    assert [s.n for s in watch(store, record=tmp_path / "r.npz", mature=2).segments] == [300]


def test_the_numbers_of_a_day_are_those_of_a_table_of_segments() -> None:
    state = State(240, by="g").update(*rows(1), by={"g": np.repeat(["a", "b"], 150)})
    stream = cal.watch(by="g").add(state, day=day_of(0))
    found = {s.name: s.days[0] for s in stream.result().segments}
    for row in segment_table(state).to_pylist():
        day = found[row["g"]]
        assert (day.n, day.observed) == (row["n"], row["observed"])
        assert (day.oe, day.oe_low, day.oe_high) == pytest.approx((row["oe"], row["oe_low"], row["oe_high"]), rel=1e-4)
