"""Segments of a store are watched: changes are found with their day, calibrated segments are left alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from calibrary.cli.main import app
from calibrary.inference.overall.sequential import Bets
from calibrary.reporting.watched import watch_page
from calibrary.scale import State, Store, watch
from calibrary.scale.stream import cells_of, ratios_of
from truths import KnownTruth, holds

Truth = Callable[[int, int, np.ndarray], np.ndarray]


def stored(path: Path, truth: Truth, sites: int = 4, days: int = 10, n: int = 250, seed: int = 1) -> Store:
    store, rng = Store(path / "store"), np.random.default_rng(seed)
    for t in range(days):
        state = State(240, by="site")
        for i in range(sites):
            p = rng.beta(1.0, 2.0, n)
            state.update(rng.random(n) < truth(i, t, p), p, by={"site": f"s{i}"})
        store.upsert(state, source=f"{t}", day=str(np.datetime64("2026-10-01") + np.timedelta64(t, "D")))
    return store


def calibrated(i: int, t: int, p: np.ndarray) -> np.ndarray:
    return p


def one_changes(i: int, t: int, p: np.ndarray) -> np.ndarray:
    return 0.5 * p if i == 2 and t >= 5 else p


def test_a_change_is_found_with_its_day(tmp_path: Path) -> None:
    store = stored(tmp_path, one_changes)
    found = watch(store)
    assert [s.name for s in found.alarms] == ["s2"]
    bad = found.segments[0]
    assert bad.since == "2026-10-06"
    assert bad.alarm_on is not None
    assert "2026-10-06" <= bad.alarm_on <= "2026-10-08"
    assert "too high" in bad.words
    assert bad.adjusted == pytest.approx(min(1.0, 4 * bad.pvalue))  # Holm's first step
    assert "since 2026-10-06" in bad.sentence
    assert "1 of 4 segments has an alarm" in found.sentence
    # what was known on the day of the alarm is what is said of it later
    then = watch(store, until=bad.alarm_on)
    assert then.alarms[0].alarm_on == bad.alarm_on
    assert not watch(store, until="2026-10-05").alarms
    assert watch(store, since="2026-10-06").alarms[0].since == "2026-10-06"


def test_all_rows_as_one_segment_and_days_without_rows(tmp_path: Path) -> None:
    store = stored(tmp_path, one_changes, days=6)
    store.upsert(State(240, by="site"), source="none", day="2026-10-09")
    whole = watch(store, by=())
    assert [s.name for s in whole.segments] == ["all rows"]
    assert whole.segments[0].n == 6 * 4 * 250
    assert whole.last == "2026-10-09"


def test_the_evidence_is_the_weighted_sum_of_bets_that_begin_each_day() -> None:
    rng = np.random.default_rng(1)
    ratios = rng.normal(0, 0.4, (6, 342))
    stream, direct = Bets(), []
    for t in range(6):
        stream.look()
        found = stream.add(ratios[t : t + 1])[0]
        bets = [np.exp(ratios[s : t + 1].sum(axis=0)).mean() / ((s + 1) * (s + 2)) for s in range(t + 1)]
        direct.append(sum(bets) + 1 / (t + 2))
        assert found == pytest.approx(math.log(direct[-1]), abs=1e-12)
    begun, alternative = stream.at_peak[0]
    at = int(np.argmax(direct))
    sums = np.array([ratios[s : at + 1].sum(axis=0) for s in range(at + 1)])
    assert (begun - 1, alternative) == np.unravel_index(sums.argmax(), sums.shape)


def test_cells_keep_the_expectation_of_the_e_value_at_most_one() -> None:
    """Three rows of different predictions in one cell: the expectation over all outcomes, exactly."""
    p = np.array([0.301, 0.302, 0.3035, 0.7])
    total = np.zeros(342)
    for outcome in range(16):
        y = np.array([outcome >> k & 1 for k in range(4)])
        state = State(240, by="g").update(y, p, by={"g": 0})
        _, cell, _ = state._read()
        assert len(np.unique(cell)) == 2
        chance = np.prod(np.where(y == 1, p, 1 - p))
        total += chance * np.exp(ratios_of(cells_of(state))[0])
    assert total.max() <= 1.0 + 1e-12
    assert total.min() > 0.999


def test_what_is_said_of_segments_is_so(tmp_path: Path) -> None:
    found = watch(stored(tmp_path / "s", one_changes))
    [changed] = [segment.name for segment in found.alarms]
    p = np.array([0.2, 0.2])
    truth = KnownTruth(p, np.array([0.2, 0.6]), parts={segment.name: np.array([0]) for segment in found.segments})
    other = replace(truth, parts={**truth.parts, changed: np.array([1])}, measured={"segments": 4, "alarms": 1})
    assert all(holds(claim, other) for each in (found, *found.segments) for claim in each.sentence.claims)
    [claim] = found.alarms[0].sentence.claims
    assert not holds(claim, truth)
    assert not any(segment.sentence.claims for segment in found.segments if not segment.alarm)


def test_an_alarm_stays_when_the_evidence_falls(tmp_path: Path) -> None:
    """One bad day and then many calibrated ones: the p-value uses the largest e-value so far."""

    def one_bad_day(i: int, t: int, p: np.ndarray) -> np.ndarray:
        return 0.4 * p if i == 0 and t == 2 else p

    found = watch(stored(tmp_path, one_bad_day, sites=2, days=12, n=300))
    [bad] = found.alarms
    largest = max(seen.log_e for seen in bad.days)
    assert bad.log_e < largest - 1.0  # the evidence fell
    assert bad.alarm_on == "2026-10-03"
    assert bad.pvalue == pytest.approx(math.exp(-largest))
    assert bad.adjusted == pytest.approx(2 * bad.pvalue)


def test_calibrated_segments_raise_no_alarm(tmp_path: Path) -> None:
    """The small form of ``benchmarks/store_watch.py``: 160 calibrated segment-days."""
    found = watch(stored(tmp_path, calibrated, sites=16, days=10, n=60))
    assert not found.alarms
    assert "There is no alarm in 16 segments" in found.sentence


def test_an_outcome_said_to_be_impossible_is_an_alarm(tmp_path: Path) -> None:
    store = stored(tmp_path, calibrated, sites=2, days=2, n=50)
    store.upsert(State(240, by="site").update([1], [0.0], by={"site": "s1"}), source="x", day="2026-10-02")
    found = watch(store)
    assert [s.name for s in found.alarms] == ["s1"]
    said = found.to_dict()["segments"][0]
    assert said["log_e"] is None
    assert "\N{INFINITY}" not in json.dumps(said)
    assert "<svg" in watch_page(found)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"alpha": 0.0}, "alpha=0.0 is outside"),
        ({"by": "day"}, "segments are monitored over days"),
        ({"by": "sight"}, "did you mean 'site'"),
        ({"since": "2030-01-01"}, "no days to monitor: the store has 2026-10-01"),
        ({"until": "never"}, "day='never' is not a date"),
    ],
)
def test_what_cannot_be_watched_is_one_sentence(tmp_path: Path, how: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        watch(stored(tmp_path, calibrated, sites=1, days=1, n=20), **how)


# -- the page and the command ---------------------------------------------------------------------------


def ran(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["scale", "monitor", *arguments])


def test_the_command_writes_page_and_json_and_ends_with_a_status(tmp_path: Path) -> None:
    store = stored(tmp_path, one_changes)
    page, data = tmp_path / "page.html", tmp_path / "watch.json"
    result = ran(store.path, "-o", str(page), "-o", str(data))
    assert result.exit_code == 1
    assert "1 of 4 segments has an alarm" in result.output
    assert "since 2026-10-06" in result.output
    found = json.loads(data.read_text(encoding="utf-8"))
    assert found["alarms"] == 1
    assert found["segments"][0]["key"] == {"site": "s2"}
    assert len(found["segments"][0]["days"]) == 10
    written = page.read_text(encoding="utf-8")
    assert written.count("<svg") == 4
    assert written.count('class="since"') == 1
    assert written.count('class="card alarm"') == 1
    assert ran(store.path, "--until", "2026-10-04", "-q").exit_code == 0


def test_names_of_segments_are_text_and_many_segments_have_few_figures(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    sites = np.repeat(["<script>alert(1)</script>", *(f"s{i}" for i in range(40))], 2)
    state = State(240, by="site").update(np.tile([0, 1], 41), np.full(82, 0.5), by={"site": sites})
    store.upsert(state, source="a", day="2026-10-01")
    page = watch_page(watch(store))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg") == 24
    assert "The 24 with most evidence of 41 segments are shown" in page


def test_a_gate_uses_the_interval_that_holds_at_every_look(tmp_path: Path) -> None:
    stored(tmp_path, one_changes)
    place = str(tmp_path / "store")
    failed = ran(place, "--fail-if", "oe<0.95", "--planned-rows", "2500", "--record", str(tmp_path / "r.npz"))
    assert failed.exit_code == 1
    assert "gate failed: oe of 's2' is 0.7" in failed.output
    assert "oe<0.95 holds" in failed.output
    again = ran(place, "--fail-if", "oe>1.05", "--planned-rows", "2500", "--record", str(tmp_path / "r.npz"))
    assert again.exit_code == 0  # the alarm is printed, and the gate alone decides
    assert "1 of 4 segments has an alarm" in again.output
    page = watch_page(watch(Store(place), planned_rows=2500, error="fdr"))
    assert "at every look" in page
    assert "of the alarms here are expected to be false" in page
    assert page.count('class="edge"') == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "no such folder"),
        (["STORE", "--fail-if", "auroc<0.5"], "is no condition of a stream"),
        (["STORE", "--restart", "s0"], "needs the record"),
        (["STORE", "-o", "page.pdf"], "name a .html or a .json file"),
        (["STORE", "--since", "soon"], "is not a date"),
        (["EMPTY"], "holds no store yet"),
        (["OTHER"], "is not a store"),
    ],
)
def test_mistakes_of_the_command_are_sentences(tmp_path: Path, arguments: list[str], words: str) -> None:
    stored(tmp_path, calibrated, sites=1, days=1, n=20)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.csv").write_text("y,p")
    places = {"STORE": str(tmp_path / "store"), "EMPTY": str(tmp_path / "empty"), "OTHER": str(tmp_path / "other")}
    result = ran(*(places.get(word, word) for word in arguments))
    assert result.exit_code != 0
    assert words in str(result.exception)
