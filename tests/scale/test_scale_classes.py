"""A state of several classes: what each lens shows, exact loss sums, a sample that merges."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrary as cal
from calibrary.scale import State, VectorState, sums
from calibrary.scale.classes import HashedSample, file_ids, row_hashes
from calibrary.scale.losses import BITS, loss_sum
from each import amount

RNG = np.random.default_rng
NONE = np.empty(0, dtype=np.int64)


def some(n: int = 2000, k: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(seed)
    p = rng.dirichlet(np.full(k, 0.6), n)
    y = (p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=k - 1)
    return y, p


def made(y: np.ndarray, p: np.ndarray, **options: Any) -> VectorState:
    defaults: dict[str, Any] = {"resolution": 4800, "losses": ("bs", "nll"), "sample": 300}
    return VectorState(p.shape[1], **{**defaults, **options}).update(y, p, ids=np.arange(len(y)))


# -- the same numbers whatever the way ----------------------------------------------------------------


@pytest.mark.parametrize("compiled_from", [10**9, 0])
def test_any_split_and_order_of_the_rows_gives_the_same_digest(
    monkeypatch: pytest.MonkeyPatch, compiled_from: int
) -> None:
    y, p = some()
    whole = made(y, p).digest
    monkeypatch.setattr(sums, "COMPILED_FROM", compiled_from)
    order = RNG(1).permutation(len(y))
    parts = [
        VectorState(4, resolution=4800, sample=300).update(y[rows], p[rows], ids=rows)
        for rows in np.array_split(order, 5)
    ]
    assert sum(parts).digest == whole
    assert sum(reversed(parts)).digest == whole
    one = VectorState(4, resolution=4800, sample=300)
    for rows in np.array_split(order, 3):
        one.update(y[rows], p[rows], ids=rows)
    assert one.digest == whole


def test_weights_are_copies_in_every_sum() -> None:
    y, p = some(200)
    w = RNG(0).integers(0, 4, 200)
    weighted = VectorState(4).update(y, p, sample_weight=w)
    repeated = VectorState(4).update(np.repeat(y, w), np.repeat(p, w, axis=0))
    assert weighted.digest == repeated.digest


def test_subtract_undoes_merge() -> None:
    (y, p), (z, q) = some(seed=0), some(seed=1)
    a = made(y, p, sample=0)
    both = a + made(z, q, sample=0)
    assert (both - made(z, q, sample=0)).digest == a.digest


def test_subtract_takes_the_dropped_rows_back() -> None:
    bad = np.array([[0.5, 0.5], [0.5, math.nan]])
    state = VectorState(2).update([0, 1], bad, drop_invalid=True)
    (reason,) = state.dropped
    assert (state + state).dropped == {reason: 2}
    assert (state + state - state).dropped == {reason: 1}
    assert (state - state).dropped == {}


def test_in_place_operators_change_the_state_itself() -> None:
    (y, p), (z, q) = some(seed=0), some(seed=1)
    state, more = made(y, p, sample=0), made(z, q, sample=0)
    alias, both = state, state + more
    state += more
    assert alias is state
    assert state == both
    state -= more
    assert alias is state
    assert state == made(y, p, sample=0)
    with pytest.raises(TypeError, match="merged with a state"):
        state += 1  # type: ignore[arg-type]


def test_a_refused_state_leaves_the_other_unchanged() -> None:
    y, p = some()
    state = made(y, p, sample=0)
    before = state.digest
    q = p.copy()  # the top labels are those of p
    least = p.argsort(axis=1)[:, :2]
    rows = np.arange(len(p))
    q[rows, least[:, 0]], q[rows, least[:, 1]] = p[rows, least[:, 1]], p[rows, least[:, 0]]
    with pytest.raises(ValueError, match="contains rows that the other does not"):
        state.subtract(made(y, q, sample=0))
    assert state.digest == before
    for name in ("resolution", "class_resolution"):
        with pytest.raises(ValueError, match="resolution="):
            state.merge(made(y, p, sample=0, **{name: 112}))
    assert state.digest == before


def test_rows_after_a_subtraction_get_new_places_in_the_sample() -> None:
    y, p = some(40)
    state = VectorState(4, sample=100).update(y, p)
    state -= VectorState(4, sample=100).update(y[:20], p[:20])
    state.update(y[20:], p[20:])  # the same rows again, which are other rows
    assert len(set(state.sample.hash.tolist())) == state.n == 40


# -- lenses -------------------------------------------------------------------------------------------


def test_top_label_and_class_wise_metrics_are_those_of_the_rows() -> None:
    y, p = some()
    state = made(y, p)
    for id, options in [("ece", {}), ("mce", {}), ("cece", {}), ("ece", {"lens": "class-wise"}), ("mdca", {})]:
        lens = {"lens": "class-wise"} if id == "mdca" else {}
        found, true = cal.compute(id, state, **options, **lens), cal.compute(id, y, p, **options, **lens)
        assert found == pytest.approx(true, abs=1e-11), id
    prevalence = cal.compute("cece", y, p, average="prevalence")
    assert cal.compute("cece", state, average="prevalence") == pytest.approx(prevalence, abs=1e-11)
    each = cal.compute("ace", state, average=None)
    assert each == pytest.approx(cal.compute("ace", y, p, average=None), abs=5e-3)


def test_parts_are_states() -> None:
    y, p = some()
    state = made(y, p)
    assert state.top == State(4800, lens="top-label").update(y, p)
    for k, part in state.classes.by("class").items():
        assert part == State(240).update(y == k, p[:, k])


def test_two_classes_have_the_binary_view() -> None:
    y, p = some(k=2)
    state = made(y, p)
    assert cal.compute("ece", state) == pytest.approx(cal.compute("ece", y, p), abs=1e-11)


def test_losses_are_exact_and_have_standard_errors() -> None:
    y, p = some()
    state = made(y, p, losses=["bs", "nll", "fl", "mae"])
    for id in state.losses:
        each = cal.compute(id, y, p, lens="full", reduction="none")
        assert cal.compute(id, state) == pytest.approx(each.mean(), rel=1e-14)
        mean, error = state.loss(id)
        assert mean == pytest.approx(each.mean(), rel=1e-14)
        assert error == pytest.approx(each.std(ddof=1) / math.sqrt(len(y)), rel=1e-10)
    with pytest.raises(ValueError, match="has no sums of 'rps': it was made with losses="):
        state.loss("rps")
    with pytest.raises(ValueError, match="losses has 'ece', which is not a mean of row losses"):
        VectorState(3, losses="ece")


def test_sums_of_losses_are_exact() -> None:
    rng = RNG(0)
    x = np.concatenate([rng.random(50), 10.0 ** rng.uniform(-20, 12, 200), -rng.random(20), [0.0, 700.0, 1e300]])
    w = rng.integers(1, 10**10, len(x))
    for copies in (NONE, w):
        times = copies if len(copies) else np.ones(len(x), dtype=np.int64)
        found = loss_sum(x, copies)
        true = sum(Fraction(float(v)) * int(t) for v, t in zip(x, times, strict=True))
        assert abs(Fraction(found.total, 1 << BITS) - true) <= Fraction(int(times.sum(dtype=object)), 1 << BITS)
        square = sum(Fraction(float(v)) ** 2 * int(t) for v, t in zip(x, times, strict=True))
        off = abs(Fraction(found.square, 1 << BITS) - square)
        assert off <= Fraction(int(times.sum(dtype=object)), 1 << BITS) + square * Fraction(1, 10**15)
    shuffled = rng.permutation(len(x))
    assert loss_sum(x[shuffled], w[shuffled]) == loss_sum(x, w)


def test_infinite_losses_are_counted() -> None:
    p = np.array([[1.0, 0.0], [0.5, 0.5]])
    state = VectorState(2, losses="nll").update([1, 0], p)
    assert state.loss("nll")[0] == math.inf
    assert cal.compute("nll", state, lens="full") == math.inf
    gone = state - VectorState(2, losses="nll").update([1], p[:1])
    assert gone.loss("nll")[0] == pytest.approx(math.log(2))
    with pytest.raises(ValueError, match="loss of row 1 is not a number"):
        loss_sum(np.array([0.0, math.nan]), NONE)


# -- the sample ---------------------------------------------------------------------------------------


def test_the_sample_is_uniform() -> None:
    y, p = some(400)
    counts = np.zeros(400)
    for seed in range(300):
        ids = np.arange(400) + 1000 * seed
        state = VectorState(4, sample=40, losses=()).update(y, p, ids=ids)
        place = {tuple(row): i for i, row in enumerate(p)}
        counts[[place[tuple(row)] for row in state.sample.p]] += 1
    # each row is in a tenth of the samples: chi-square with 399 degrees of freedom
    assert abs(counts.sum() - 300 * 40) == 0
    assert ((counts - 30) ** 2 / 27).sum() < 399 + 4 * math.sqrt(2 * 399)


def test_without_ids_shards_of_the_same_length_are_sampled_apart() -> None:
    y, p = some(1000, seed=0)
    z, q = some(1000, seed=1)
    both = VectorState(4, sample=200).update(y, p) + VectorState(4, sample=200).update(z, q)
    first = {tuple(row) for row in p}
    assert 60 < sum(tuple(row) in first for row in both.sample.p) < 140
    assert len(set(both.sample.hash)) == 200


def test_a_sample_that_lost_rows_stays_uniform() -> None:
    rng = RNG(0)
    hash = rng.integers(0, 2**63, 300).astype(np.uint64)
    y, p = some(300)

    def part(rows: np.ndarray) -> HashedSample:
        return HashedSample.empty(50, 4).with_rows(hash[rows], y[rows], p[rows], NONE)

    old, kept, new = np.arange(0, 100), np.arange(100, 200), np.arange(200, 300)
    window = part(old) + part(kept)
    window = window - part(old)
    window = window + part(new)
    # every row kept or new whose hash is below the limit is in it, and no other
    here = np.concatenate([kept, new])
    expected = np.sort(hash[here][hash[here] <= np.uint64(window.limit)])
    assert np.array_equal(window.hash, expected)
    assert window.limit < 2**64 - 1


def test_identifiers() -> None:
    y, p = some(10)
    assert len(set(row_hashes(y, p, [f"row {i}" for i in range(10)], 0))) == 10
    with pytest.raises(ValueError, match=r"ids has shape \(3,\): give one identifier for each of 10 rows"):
        row_hashes(y, p, [1, 2, 3], 0)
    a = np.concatenate([file_ids("a.parquet", 0, 5), file_ids("a.parquet", 5, 5)])
    assert np.array_equal(a, file_ids("a.parquet", 0, 10))
    assert not set(a) & set(file_ids("b.parquet", 0, 10))


def test_whole_rows_come_from_the_sample_and_the_result_says_so() -> None:
    y, p = some()
    state = made(y, p)
    found = cal.evaluate(state, metrics=["ece", "cece", "bs", "skce_uq", "skce_ul"])
    assert found.n == 2000
    notes = {row.id: row.note for row in found}
    assert notes["ece"] == notes["cece"] == notes["bs"] == "exact"
    assert notes["skce_uq"] == notes["skce_ul"] == "on 300 of 2,000 rows"
    sample = state.sample
    assert found["skce_uq"] == pytest.approx(cal.compute("skce_uq", sample.y, sample.p), rel=1e-12)
    without = cal.evaluate(made(y, p, sample=0), metrics=["skce_uq"])
    assert "needs complete rows, and the state stores only sums: create it with sample=" in without.skipped["skce_uq"]


def test_the_accuracy_of_a_state_of_several_classes_is_that_of_what_it_uses() -> None:
    y, p = some()
    state = made(y, p)
    known = {id: cal.scale.accuracy(id, state) for id in ("bs", "ece", "cece", "smece", "skce_uq")}
    assert [known[id].kind for id in known] == ["exact", "exact", "exact", "bounded", "sampled"]
    assert known["smece"] == cal.scale.accuracy("smece", state.top)
    assert str(known["skce_uq"]) == "on 300 of 2,000 rows"
    assert "needs complete rows" in cal.scale.accuracy("skce_uq", made(y, p, sample=0)).reason
    with pytest.raises(cal.RefusedCallError, match="is about a state"):
        cal.scale.accuracy("bs", cal.predictions(y, p))


def test_everything_at_once() -> None:
    y, p = some(500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.evaluate(made(y, p))
        true = cal.evaluate(y, p)
    assert {row.id for row in found} | set(found.skipped) == {row.id for row in true} | set(true.skipped)
    for row in found:
        assert row.note, row.id
        if row.note == "exact":
            assert row.value == pytest.approx(true[row.id], abs=1e-10), row.id


def test_uncertainty_is_that_of_the_top_label() -> None:
    y, p = some(500)
    state = made(y, p)
    found, true = cal.interval("ece", state, rng=0), cal.interval("ece", y, p, rng=0)
    assert repr(found) == repr(cal.interval("ece", state.top, rng=0))
    assert found.high == pytest.approx(true.high, abs=0.3 * (true.high - true.low))
    tested = cal.test("ece", state, n_resamples=99, rng=0)
    assert tested.statistic == pytest.approx(cal.compute("ece", y, p), abs=1e-12)
    for verb in (cal.interval, cal.test):  # whose average over the classes was kept, but no way to draw it again
        with pytest.raises(ValueError, match=r"use state\.top, state\.classes\.by\('class'\)\[k\]"):
            verb("cece", state, rng=0)
    two = cal.scale.VectorState(2).update((y == 0).astype(int), np.column_stack([1 - p[:, 0], p[:, 0]]))
    assert cal.interval("ece", two, rng=0).value == pytest.approx(cal.compute("ece", y == 0, p[:, 0]), abs=1e-12)


def test_intervals_of_losses_come_from_their_sums() -> None:
    y, p = some(1000)
    low, high = made(y, p).loss_interval("bs", 0.9)
    drawn = cal.interval("bs", y, p, confidence_level=0.9, n_resamples=999, rng=0, method="basic")
    assert (low, high) == pytest.approx((drawn.low, drawn.high), abs=0.15 * (high - low))
    with pytest.raises(ValueError, match=r"confidence_level=2 is outside \(0, 1\)"):
        made(y, p).loss_interval("bs", 2)


def test_a_table_has_intervals_of_the_top_label_and_says_why_others_have_none() -> None:
    y, p = some(600)
    found = cal.evaluate(made(y, p), metrics=["ece", "bs", "cece", "ice"], intervals=True, n_resamples=49, rng=0)
    assert found.n == 600
    ece, bs, cece = (found.row(id) for id in ("ece", "bs", "cece"))
    assert ece.low is not None
    assert ece.high is not None
    assert ece.low <= ece.value <= ece.high
    for row in (bs, cece):
        assert row.low is None
        assert "no interval and no test: a state of several classes" in row.note
    assert found["ice"] == pytest.approx(cal.compute("ice", y, p), abs=1e-10)


@pytest.mark.usefixtures("outlined")
def test_a_report_of_several_classes_is_that_of_the_rows(tmp_path: Path) -> None:
    """The page of a state: answer, table, classes and figures from sums; what needs rows is said to be left out."""
    y, p = some(600, 3)
    options: dict[str, Any] = {"metrics": ["ece", "cece", "bs"], "n_resamples": 39, "rng": 0}
    true = cal.report(y, p, **options)
    for sample in (0, 100, 1000)[: amount(2, 3)]:
        found = cal.report(made(y, p, sample=sample), **options)
        assert found.data["rows"] == 600
        assert found.decision is not None
        assert found.decision.rejected == true.decision.rejected
        for id in ("ece", "cece", "bs"):
            assert found.evaluation[id] == pytest.approx(true.evaluation[id], abs=1e-10)
        for one, other in zip(found.classes, true.classes, strict=True):
            assert (one.name, one.n, one.clear) == (other.name, other.n, other.clear)
            assert one.mean_prediction == pytest.approx(other.mean_prediction, abs=1e-9)
            assert one.frequency == pytest.approx(other.frequency, abs=1e-12)
        areas = [next(k.value for k in page.short_list if k.id == "auc") for page in (found, true)]
        assert areas[0] == pytest.approx(areas[1], abs=2e-3)
        helps = next(section for section in found.sections if section.key == "help")
        assert helps.sentences == (
            "Recalibration was not judged: a state keeps sums of many predictions; recalibrate "
            "with a sample of the rows.",
        )
    found.save(tmp_path / "page.html")
    assert "Reliability by class" in (tmp_path / "page.html").read_text()


# -- files and bad rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", [0, 50])
def test_a_saved_state_comes_back(tmp_path: Path, sample: int) -> None:
    y, p = some(200)
    state = VectorState(4, sample=sample, labels=list("abcd"), losses=["nll"], resolution=960)
    state.update(np.array(list("abcd"))[y], p)
    state.update(["a"], [[0.5, 0.6, 0.0, 0.0]], drop_invalid=True)
    path = tmp_path / "state.parquet"
    state.save(path)
    back = VectorState.load(path)
    assert back.digest == state.digest
    assert back.dropped == state.dropped == {"probabilities that do not sum to 1": 1}
    assert (back + state).digest == (state + back).digest
    assert back.as_predictions().classes == ("a", "b", "c", "d")
    with pytest.raises(ValueError, match=r"holds a VectorState: read it with calibrary\.scale\.VectorState\.load"):
        State.load(path)


def test_states_of_different_kinds_do_not_merge() -> None:
    y, p = some(20)
    for options, said in [
        ({"sample": 10}, "sample=0 and the other 10"),
        ({"losses": ["nll"]}, "losses="),
        ({"resolution": 960}, "resolution=4800 and the other 960"),
    ]:
        with pytest.raises(ValueError, match=said):
            made(y, p, sample=0).merge(VectorState(4, **{"resolution": 4800, "sample": 0, **options}))
    with pytest.raises(ValueError, match="n_classes=4 and the other 3"):
        VectorState(4).merge(VectorState(3))


def test_bad_input_is_refused() -> None:
    y, p = some(20)
    state = VectorState(4)
    with pytest.raises(ValueError, match=r"y_prob has shape \(20,\): the state has 4 classes"):
        state.update(y, p[:, 0])
    with pytest.raises(ValueError, match=r"sums to 0\.5, not 1"):
        state.update(y, p * 0.5)
    with pytest.raises(ValueError, match="one weight per row"):
        state.update(y, p, sample_weight=[1, 2])
    with pytest.raises(ValueError, match=r"use at most sample=2500000"):
        VectorState(4, sample=10**8)
    with pytest.raises(ValueError, match="must name each of the 4 classes"):
        VectorState(4, labels=["a"])
    assert state.n == 0
    with pytest.raises(ValueError, match="the state is empty"):
        cal.compute("ece", state)
