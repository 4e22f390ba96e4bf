"""What must hold of a state whatever made it: its event, its keys, its file, its sums and the rows that it refuses.

What a version before got wrong, and the tests that hold it now (here unless a file is named):

K1, opposite labels are not added up
    ``test_the_event_belongs_to_the_identity_of_a_state``
K2, every dialect is read and gives the same state (``test_scale_dialects.py``)
    ``test_the_text_is_of_its_dialect_and_gives_the_same_state_in_duckdb``,
    ``test_an_engine_gives_the_state_of_the_rows``, ``test_postgres_gives_the_state_of_the_rows``,
    ``test_spark_gives_the_state_of_the_rows``
K3, keys cost what rows cost (figures in ``benchmarks/keyed.json``)
    ``test_keyed_sums_are_those_of_every_key_alone``, ``test_renumbered_keys_keep_their_sums``
K4, a damaged file is noticed
    ``test_a_flipped_bit_never_goes_unnoticed``, ``test_a_damaged_file_is_one_sentence``
K5, a key has one form
    ``test_a_key_has_one_form``, ``test_a_column_holds_one_kind_of_key``
K6, a missing key is a group of its own
    ``test_a_missing_key_is_a_group_of_its_own``
K7, sums do not depend on the order of the rows
    ``test_sums_of_losses_do_not_depend_on_the_order_of_the_rows``
K8, all engines keep and refuse the same rows
    ``test_every_engine_asks_the_same_of_the_sum_of_a_row``, ``test_every_engine_drops_the_same_rows``
    ``test_every_door_into_a_state_refuses_shares``, ``test_every_door_into_a_state_refuses_rows_of_another_index``
K9, commands take labels and the result of a query (``test_scale_cli.py``), names may be in capitals
    ``test_every_command_that_reads_labels_takes_their_names``, ``test_the_result_of_a_query_becomes_a_state``,
    ``test_columns_in_capitals_come_back_under_their_own_names`` (``test_scale_inputs.py``)
K10, sums do not overflow
    ``test_sums_that_may_not_fit_are_merged_without_overflow``, ``test_a_sum_beyond_64_bits_is_exact``
    (``test_scale_state.py``)
K12, words (``test_scale_state.py``) and inputs (``test_scale_inputs.py``)
    ``test_what_is_called_close_is_not_refused_afterwards``, ``test_units_may_be_a_column_that_a_state_keeps_apart``,
    ``test_a_statistic_without_a_limit_claims_no_size_of_its_error``, ``test_a_file_that_is_named_twice_is_refused``,
    ``test_patterns_lists_and_folders_are_the_same_files``, ``test_every_holder_of_rows_gives_their_state``

``test_scale_any_engine.py`` draws rows, files, engines and orders at random for K4 to K8.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrary as cal
from calibrary.base.saved import SavedFileError
from calibrary.scale import DetectionState, State, VectorState, merged, scan, sql, sums
from calibrary.scale import table as tables
from each import amount

RNG = np.random.default_rng


def some(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = RNG(seed)
    p = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < p).astype(np.int64), p


def in_sqlite(columns: dict[str, Any], query: Any, **options: Any) -> State:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("SELECT floor(0.5)")
    except sqlite3.OperationalError:
        pytest.skip("this build lacks: floor() of SQLite")
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    db.execute(f"CREATE TABLE preds ({quoted})")
    db.executemany(f"INSERT INTO preds VALUES ({', '.join('?' * len(columns))})", zip(*columns.values(), strict=True))
    found: State = query.state(db.execute(query), **options)
    return found


# -- the event ----------------------------------------------------------------------------------------


def test_the_event_belongs_to_the_identity_of_a_state(tmp_path: Path) -> None:
    y, p = some(60)
    names = np.where(y == 1, "yes", "no")
    yes = State(960, labels=["no", "yes"]).update(names, p)
    no = State(960, labels=["yes", "no"]).update(names, p)
    plain = State(960).update(y, p)
    assert len({yes.digest, no.digest, plain.digest}) == 3
    for one, other in [(yes, no), (yes, plain), (plain, no)]:
        with pytest.raises(ValueError, match="as the event and the other"):
            merged([one, other])
    with pytest.raises(ValueError, match=r"labels=\['no', 'yes'\] and the other \['never', 'yes'\]"):
        yes + State(960, labels=["never", "yes"])
    table = pa.table({"y": names, "p": p})
    made = {
        "scan": scan(table, label="y", prob="p", resolution=960, pos_label="yes"),
        "sql": in_sqlite(
            {"y": names.tolist(), "p": p.tolist()},
            sql("preds", label="y", prob="p", resolution=960, labels=["no", "yes"], dialect="sqlite"),
        ),
        "pos_label": in_sqlite(
            {"y": names.tolist(), "p": p.tolist()},
            sql("preds", label="y", prob="p", resolution=960, pos_label="yes", dialect="sqlite"),
        ),
    }
    yes.save(tmp_path / "yes.parquet")
    made["file"] = State.load(tmp_path / "yes.parquet")
    assert {name: state.digest for name, state in made.items()} == dict.fromkeys(made, yes.digest)
    either = State(960, pos_label="yes").update(names, p) + yes
    assert either == yes + yes
    assert either.labels == ("no", "yes")


def test_names_of_classes_belong_to_the_identity() -> None:
    prob, y = RNG(0).dirichlet(np.ones(3), 30), RNG(1).integers(0, 3, 30)
    plain = VectorState(3).update(y, prob)
    assert VectorState(3, labels=[0, 1, 2]).update(y, prob) == plain
    named = VectorState(3, labels=["a", "b", "c"]).update(np.array(["a", "b", "c"])[y], prob)
    assert named != plain
    with pytest.raises(ValueError, match="labels="):
        merged([named, plain])


def test_a_third_label_is_no_label_in_sql_either() -> None:
    columns = {"y": ["yes", "no", "maybe", "yes"], "p": [0.1, 0.2, 0.3, 0.4]}
    query = sql("preds", label="y", prob="p", pos_label="yes", dialect="sqlite")
    with pytest.raises(ValueError, match="rows have no probability"):
        in_sqlite(columns, query)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NaT, pd.NA])
def test_a_missing_weight_is_no_weight(gone: Any) -> None:
    state = State().update([0, 1, 1], [0.2, 0.5, 0.8], sample_weight=[1, gone, 2], drop_invalid=True)
    assert (state.n, state.dropped) == (3, {"weight missing or not a whole number": 1})


# -- keys ---------------------------------------------------------------------------------------------

_UTC = datetime.UTC
_ROME = datetime.timezone(datetime.timedelta(hours=1))


@pytest.mark.parametrize(
    ("one", "other", "form"),
    [
        (7, 7.0, 7),
        (7, np.int8(7), 7),
        (7, Decimal("7.00"), 7),
        (0.1, Decimal("0.1"), 0.1),
        (-0.0, 0, 0),
        (None, float("nan"), None),
        (None, pd.NaT, None),
        (None, pd.NA, None),
        (pd.Timestamp("2026-01-02"), np.datetime64("2026-01-02T00:00", "ns"), datetime.datetime(2026, 1, 2)),
        (
            datetime.datetime(2026, 1, 2, 1, tzinfo=_ROME),
            pd.Timestamp("2026-01-02", tz="UTC"),
            datetime.datetime(2026, 1, 2, tzinfo=_UTC),
        ),
        (np.datetime64("2026-01-02", "D"), datetime.date(2026, 1, 2), datetime.date(2026, 1, 2)),
        (pd.Timedelta(hours=1), datetime.timedelta(hours=1), datetime.timedelta(hours=1)),
        (uuid.UUID(int=5), str(uuid.UUID(int=5)), str(uuid.UUID(int=5))),
    ],
)
def test_a_key_has_one_form(one: Any, other: Any, form: Any, tmp_path: Path) -> None:
    states = [State(960, by="g").update([1], [0.3], by={"g": value}) for value in (one, other)]
    assert states[0] == states[1]
    assert states[0] + states[1] == states[1] + states[0]
    assert [(k, type(k)) for k in (states[0] + states[1]).by("g")] == [(form, type(form))]
    (states[0] + states[1]).save(tmp_path / "state.parquet")
    assert State.load(tmp_path / "state.parquet") == states[0] + states[1]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (7, "7", "numbers and texts"),
        (True, 1, "truth values and numbers"),
        (1.0, True, "numbers and truth values"),
        (datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2), "dates and times without a zone"),
        (
            datetime.datetime(2026, 1, 2),
            datetime.datetime(2026, 1, 2, tzinfo=_UTC),
            "times without a zone and times with a zone",
        ),
    ],
)
def test_a_column_holds_one_kind_of_key(one: Any, other: Any, said: str) -> None:
    states = [State(960, by="g").update([1], [0.3], by={"g": value}) for value in (one, other)]
    before = states[0].digest
    with pytest.raises(ValueError, match=f"the column 'g' holds {said}"):
        states[0] + states[1]
    with pytest.raises(ValueError, match=f"the column 'g' holds {said}"):
        states[0].update([1], [0.2], by={"g": other})
    assert states[0].digest == before


def test_keys_that_no_file_holds_are_refused() -> None:
    for value, said in [
        (pd.Timestamp("2026-01-02 00:00:00.000000001"), "nanoseconds"),
        (2**70, "does not fit 64 bits"),
        ((1, 2), "must hold texts, numbers, dates or times"),
    ]:
        with pytest.raises(ValueError, match=said):
            State(960, by="g").update([1], [0.3], by={"g": [value] if isinstance(value, tuple) else value})
    fine = pa.array([1], pa.timestamp("ns"))
    with pytest.raises(ValueError, match="nanoseconds"):
        scan(pa.table({"y": [1], "p": [0.2], "g": fine}), label="y", prob="p", by="g")


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary", "csv"])
def test_a_missing_key_is_a_group_of_its_own(kind: str, tmp_path: Path) -> None:
    columns = {"y": [0, 1, 1], "p": [0.1, 0.2, 0.3], "g": ["a", None, "a"]}
    if kind == "csv":
        (tmp_path / "t.csv").write_text("y,p,g\n0,0.1,a\n1,0.2,\n1,0.3,a\n")
        found = scan(tmp_path / "t.csv", label="y", prob="p", by="g")
    else:
        column = pa.array(columns["g"])
        column = column.dictionary_encode() if kind == "dictionary" else column.cast(getattr(pa, kind)())
        found = scan(pa.table({**columns, "g": column}), label="y", prob="p", by="g")
    assert found.keys == ((None,), ("a",))
    assert found == in_sqlite(columns, sql("preds", label="y", prob="p", by="g", dialect="sqlite"))


@pytest.mark.parametrize("compiled_from", [0, 10**9])
def test_keyed_sums_are_those_of_every_key_alone(monkeypatch: pytest.MonkeyPatch, compiled_from: int) -> None:
    """Packed rows, sorted and merged by compiled loops, or sorted runs: the same numbers."""
    monkeypatch.setattr(sums, "COMPILED_FROM", compiled_from)
    monkeypatch.setattr(tables, "COMPILED_FROM", compiled_from)
    monkeypatch.setattr(sums, "_MOST_PACKED", 7000)  # so that there are many tables to be merged
    rng, n = RNG(0), amount(50_000, 150_000)
    p = np.where(rng.random(n) < 0.5, 0.300001, rng.beta(0.5, 0.5, n))  # an atom of many rows
    y, g = (rng.random(n) < p).astype(int), np.where(rng.random(n) < 0.9, 0, rng.integers(1, 300, n))
    w = rng.integers(0, 3, n)
    w[5] = 10**12
    for weight in (None, w):
        state = State(240, by="g")
        for rows in np.array_split(np.arange(n), 3):
            state.update(y[rows], p[rows], sample_weight=None if weight is None else weight[rows], by={"g": g[rows]})
        parts = state.by("g")
        for key in (0, 7, 299):
            rows = g == key
            alone = State(240).update(y[rows], p[rows], sample_weight=None if weight is None else weight[rows])
            assert parts[key] == alone
    assert state.n == int(w.sum())


def test_sums_that_may_not_fit_are_merged_without_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled merge adds numbers of 64 bits, and leaves tables whose sums may be larger to Python's numbers."""
    monkeypatch.setattr(tables, "COMPILED_FROM", 0)
    code = np.arange(5, dtype=np.int64)
    large = tables.CountTable(code, np.full(5, 2**40), np.full(5, 2**62))
    small = tables.CountTable(code[1:] * 2, np.full(4, 3), np.full(4, 5))
    both = tables.together([large, large, small])
    assert both.code.tolist() == [0, 1, 2, 3, 4, 6, 8]
    assert both.s.tolist() == [2**63, 2**63, 2**63 + 5, 2**63, 2**63 + 5, 5, 5]
    assert both.n.tolist() == [2**41, 2**41, 2**41 + 3, 2**41, 2**41 + 3, 3, 3]
    assert tables.together([small, small]).s.tolist() == [10, 10, 10, 10]


@pytest.mark.parametrize("number", [[0, 1, 2], [2, 0, 1], [1, 3, 7]])
def test_renumbered_keys_keep_their_sums(number: list[int]) -> None:
    code = np.array([0, 3, 10, 14, 29], dtype=np.int64)  # ten codes a key
    given = tables.CountTable(code, np.arange(1, 6), np.arange(5) * 7)
    found = given.renumbered(np.array(number), 10)
    expected = tables.added(code + (np.array(number)[code // 10] - code // 10) * 10, given.n, given.s)
    assert [column.tolist() for column in (found.code, found.n, found.s)] == [
        column.tolist() for column in (expected.code, expected.n, expected.s)
    ]


def test_keyed_states_meet_at_the_coarser_grid() -> None:
    y, p = some(400)
    g = RNG(1).integers(0, 3, 400)
    assert State(by="g").resolution == 1200
    assert State().resolution == 19200
    fine = State(19200, by="g").update(y, p, by={"g": g})
    coarse = State(by="g").update(y, p, by={"g": g})
    both = [merged([fine, coarse, fine]), merged([coarse, fine, fine]), fine + coarse + fine]
    assert {state.resolution for state in both} == {1200}
    assert len({state.digest for state in both}) == 1
    assert both[0].n == 1200
    assert fine.resolution == 19200  # those given stay as they are
    with pytest.raises(ValueError, match=r"use coarser\(\)"):
        merged([fine, State(16 * 7, by="g")])


# -- files --------------------------------------------------------------------------------------------


def every_kind() -> list[Any]:
    y, p = some(300)
    prob, label = RNG(0).dirichlet(np.ones(3), 200), RNG(1).integers(0, 3, 200)
    return [
        State(960, by="g", labels=["no", "yes"]).update(
            np.where(y == 1, "yes", "no"), p, by={"g": RNG(2).integers(0, 3, 300)}
        ),
        State(19200).update(y, p),
        VectorState(3, sample=20, labels=["a", "b", "c"]).update(np.array(["a", "b", "c"])[label], prob),
        DetectionState(cal.datasets.detections().categories).update(cal.datasets.detections()),
    ]


@pytest.mark.parametrize("number", range(4))
def test_a_flipped_bit_never_goes_unnoticed(number: int) -> None:
    state = every_kind()[number]
    saved, rng = bytearray(state.to_bytes()), RNG(number)
    refused = 0
    for place in rng.choice(8 * len(saved), 300, replace=False):
        damaged = bytearray(saved)
        damaged[place // 8] ^= 1 << (place % 8)
        try:
            found = type(state).of_bytes(bytes(damaged))
        except SavedFileError:
            refused += 1
        else:  # a bit that nobody reads
            assert found == state
            assert getattr(found, "dropped", {}) == getattr(state, "dropped", {})
    assert refused > 150


_DAMAGE: list[tuple[str, Any]] = [
    ("version", "two"), ("version", 0), ("version", None), ("kind", "boxes"), ("kind", ["cells"]), ("resolution", 7),
    ("resolution", "960"), ("resolution", 10**400), ("lens", "both"), ("by", "g"), ("by", ["h"]), ("labels", {"a": 1}),
    ("labels", [None]), ("dropped", {"x": -5}), ("dropped", [1]), ("dropped", None), ("digest", 5), ("more", 1),
    ("pos_label", []),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), _DAMAGE)
def test_a_damaged_file_is_one_sentence(field: str, value: Any, tmp_path: Path) -> None:
    table = every_kind()[0].to_table()
    about = json.loads(table.schema.metadata[b"calibrary"])
    path = tmp_path / "state.parquet"
    pq.write_table(table.replace_schema_metadata({"calibrary": json.dumps({**about, field: value})}), path)
    with pytest.raises(SavedFileError) as error:
        State.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_other_damage_is_one_sentence_too(tmp_path: Path) -> None:
    path = tmp_path / "state.parquet"
    for state in every_kind():
        table = state.to_table()
        texts = [b"[" * 5000, b"{", b"[]", b"null", b"\xff\xfe", b'{"version": 2}']
        broken = [table.replace_schema_metadata({"calibrary": text}) for text in texts]
        meta = table.schema.metadata
        for name in table.column_names:
            broken.append(table.drop_columns([name]))
            at = table.column_names.index(name)
            broken.append(table.set_column(at, name, pa.array(["x"] * len(table))).replace_schema_metadata(meta))
            broken.append(table.set_column(at, name, pa.nulls(len(table))).replace_schema_metadata(meta))
        broken.append(table.slice(0, len(table) // 2))
        for damaged in broken:
            pq.write_table(damaged, path)
            with pytest.raises(SavedFileError) as error:
                type(state).load(path)
            assert "\n" not in str(error.value)


def test_a_state_of_0_2_loads_without_a_digest(tmp_path: Path) -> None:
    state = every_kind()[0]
    table = state.to_table()
    about = json.loads(table.schema.metadata[b"calibrary"])
    old = {**{name: value for name, value in about.items() if name != "digest"}, "version": 1}
    pq.write_table(table.replace_schema_metadata({"calibrary": json.dumps(old)}), tmp_path / "old.parquet")
    assert State.load(tmp_path / "old.parquet") == state
    unsealed = {**old, "version": 2}
    pq.write_table(table.replace_schema_metadata({"calibrary": json.dumps(unsealed)}), tmp_path / "new.parquet")
    with pytest.raises(SavedFileError, match="digest"):
        State.load(tmp_path / "new.parquet")


# -- sums and rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 10, 17])
def test_sums_of_losses_do_not_depend_on_the_order_of_the_rows(k: int) -> None:
    rng, n = RNG(k), 999
    prob, y = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)
    losses = ["bs", "nll", "rps", "mae", "pls"]
    whole = VectorState(k, losses=losses).update(y, prob)
    for _ in range(5):
        order, cut = rng.permutation(n), int(rng.integers(1, n))
        found = VectorState(k, losses=losses)
        for rows in (order[:cut], order[cut:]):
            found.update(y[rows], prob[rows])
        assert found.losses == whole.losses
        assert found == whole


@pytest.mark.parametrize("off", [0.0, 9e-7, 3e-6, 3.8e-6, 3.9e-6, 1e-4, -3e-6, -3.9e-6])
def test_every_engine_asks_the_same_of_the_sum_of_a_row(off: float) -> None:
    prob = np.array([[0.2, 0.3, 0.5 + off], [0.1, 0.1, 0.8]])
    valid = 2 if abs(off) <= 2.0**-18 else 1
    y = np.array([2, 2])
    columns = {"y": y.tolist(), **{f"p{j}": prob[:, j].tolist() for j in range(3)}}
    names = ["p0", "p1", "p2"]
    options: dict[str, Any] = {"label": "y", "prob": names}
    top = {
        "update": State(lens="top-label").update(y, prob, drop_invalid=True),
        "scan": scan(pa.table(columns), **options, lens="top-label", drop_invalid=True),
        "sqlite": in_sqlite(columns, sql("preds", **options, dialect="sqlite"), drop_invalid=True),
        "vectors": VectorState(3).update(y, prob, drop_invalid=True).top,
        "scanned vectors": scan(pa.table(columns), **options, drop_invalid=True).top,
    }
    assert {name: (state.n, state.digest) for name, state in top.items()} == dict.fromkeys(
        top, (valid, top["update"].digest)
    )
    if valid == 2:
        assert State(lens="top-label").update(y, prob).n == VectorState(3).update(y, prob).n == 2
    else:
        with pytest.raises(ValueError, match="not 1"):
            State(lens="top-label").update(y, prob)


def test_every_engine_drops_the_same_rows() -> None:
    columns: dict[str, list[Any]] = {
        "y": [0, 1, None, 1, 2, 1, 0, 1, 1, 0, 1],
        "p": [0.2, 1.5, 0.4, None, 0.5, -0.1, 0.6, 0.7, 0.8, 0.9, 0.3],
        "w": [1, 1, 1, 1, 1, 1, None, 0.5, -1, 2, 0],
    }
    for k in ("y", "p", "w"):
        assert len(columns[k]) == 11
    options: dict[str, Any] = {"label": "y", "prob": "p", "weight": "w", "resolution": 960}
    y = np.array([np.nan if v is None else v for v in columns["y"]])
    p = np.array([np.nan if v is None else v for v in columns["p"]])
    w = np.array([np.nan if v is None else v for v in columns["w"]])
    found = {
        "update": State(960).update(y, p, sample_weight=w, drop_invalid=True),
        "scan": scan(pa.table(columns), **options, drop_invalid=True),
        "sqlite": in_sqlite(columns, sql("preds", **options, dialect="sqlite"), drop_invalid=True),
    }
    expected = State(960).update([0, 0, 0], [0.2, 0.9, 0.9])
    assert {name: state.digest for name, state in found.items()} == dict.fromkeys(found, expected.digest)
    assert [sum(state.dropped.values()) for state in found.values()] == [8, 8, 8]
    assert found["scan"].dropped == found["update"].dropped
    assert found["scan"].dropped["weight missing or not a whole number"] == 3
    with pytest.raises(ValueError, match=r"\nw       no whole numbers .*drop_invalid=True"):
        scan(pa.table(columns), **options)


SHARES: dict[str, Any] = {"y": [0.0, 1.0, 0.3, 1.0], "p": [0.2, 0.7, 0.4, 0.9]}


def doors() -> dict[str, Any]:
    """Every way of rows into a state, given labels and whether invalid rows are left out."""
    two = np.column_stack([1 - np.array(SHARES["p"]), SHARES["p"]])

    def by_dask(y: Any, drop: bool) -> State:
        frames = pytest.importorskip("dask.dataframe")
        frame = frames.from_pandas(pd.DataFrame({**SHARES, "y": np.array(y, dtype=float)}), npartitions=2)
        return cal.scale.dask(frame, label="y", prob="p", resolution=960, drop_invalid=drop)  # type: ignore[return-value]

    def by_torch(y: Any, drop: bool) -> State:
        torch = pytest.importorskip("torch")
        metric = cal.scale.torch.CalibrationMetric("bs", resolution=960)
        metric.update(torch.tensor(SHARES["p"]), torch.tensor(np.array(y, dtype=float)))
        found: State = metric.state()
        return found

    columns = {"label": "y", "prob": "p", "resolution": 960}
    return {
        "update": lambda y, drop: State(960).update(y, SHARES["p"], drop_invalid=drop),
        "update, objects": lambda y, drop: State(960).update(
            np.array(y, dtype=object), SHARES["p"], drop_invalid=drop
        ),
        "update, Series": lambda y, drop: State(960).update(pd.Series(y), pd.Series(SHARES["p"]), drop_invalid=drop),
        "update, one column": lambda y, drop: State(960).update(
            np.array(y)[:, None], SHARES["p"], drop_invalid=drop
        ),
        "update, named classes": lambda y, drop: State(960, labels=[0, 1]).update(y, SHARES["p"], drop_invalid=drop),
        "update, two columns": lambda y, drop: State(960).update(y, two, drop_invalid=drop),
        "update, rows of shares": lambda y, drop: State(960).update(
            np.column_stack([1 - np.array(y), y]), two, drop_invalid=drop
        ),
        "vectors": lambda y, drop: VectorState(2).update(y, two, drop_invalid=drop).top,
        "vectors, rows of shares": lambda y, drop: VectorState(2)
        .update(np.column_stack([1 - np.array(y), y]), two, drop_invalid=drop)
        .top,
        "scan": lambda y, drop: scan(pa.table({**SHARES, "y": y}), drop_invalid=drop, **columns),
        "scan, two columns": lambda y, drop: scan(
            pa.table({"y": y, "a": two[:, 0], "b": two[:, 1]}), label="y", prob=["a", "b"], drop_invalid=drop
        ).top,  # type: ignore[union-attr]
        "sql": lambda y, drop: in_sqlite(
            {**SHARES, "y": y}, sql("preds", **columns, dialect="sqlite"), drop_invalid=drop
        ),
        "dask": by_dask,
        "torch": by_torch,
    }  # fmt: skip


@pytest.mark.parametrize("door", sorted(doors()))
def test_every_door_into_a_state_refuses_shares(door: str) -> None:
    """A label of 0.3 was cut to 0 by ``update`` and refused by ``scan``."""
    through = doors()[door]
    assert through([0.0, 1.0, 0.0, 1.0], False).n == 4
    with pytest.raises(ValueError, match=r"is not one of the classes|is not among labels|no label 0 or 1") as error:
        through(SHARES["y"], False)
    assert "\n" not in str(error.value)
    if door != "torch":
        assert through(SHARES["y"], True).n == 3


def test_several_classes_at_once_are_no_label_of_a_state() -> None:
    with pytest.raises(ValueError, match=r"y_true\[0\] = \[1 1 0\] is not one of the classes"):
        VectorState(3).update(np.array([[1, 1, 0], [0, 0, 1]]), np.array([[0.9, 0.8, 0.1], [0.1, 0.2, 0.7]]))


def other_index(values: Any) -> pd.Series:
    return pd.Series(values, index=np.arange(len(values))[::-1])


ROWS = {
    "y_true": [0, 1, 1],
    "y_prob": [0.2, 0.7, 0.4],
    "sample_weight": [1, 2, 1],
    "by": ["a", "b", "a"],
    "ids": [1, 2, 3],
}


@pytest.mark.parametrize(("kind", "names"), [("cells", ("y_true", "y_prob", "sample_weight", "by")),
                                             ("vectors", ("y_true", "y_prob", "sample_weight", "ids"))])  # fmt: skip
def test_every_door_into_a_state_refuses_rows_of_another_index(kind: str, names: tuple[str, ...]) -> None:
    """Each argument in turn as a Series with another index, as a masked array and with one row more."""

    def updated(**given: Any) -> Any:
        if kind == "cells":
            return State(by="site").update(**{k: v for k, v in given.items() if k != "by"}, by={"site": given["by"]})
        p = given.pop("y_prob")
        index = p.index if isinstance(p, pd.Series) else None
        p = np.ma.column_stack([1 - p, p]) if isinstance(p, np.ma.MaskedArray) else np.column_stack([1 - p, p])
        return VectorState(2, sample=5).update(y_prob=p if index is None else pd.DataFrame(p, index=index), **given)

    series = {name: pd.Series(ROWS[name]) for name in names}
    arrays = {name: np.array(ROWS[name]) for name in names}
    assert updated(**series).n == updated(**arrays).n == 4
    for name in names:
        with pytest.raises(ValueError, match="have different indexes"):
            updated(**{**series, name: other_index(ROWS[name])})
        with pytest.raises(ValueError, match="is masked"):
            updated(**{**arrays, name: np.ma.MaskedArray(ROWS[name], mask=[False, True, False])})
        with pytest.raises(ValueError, match=r"rows|values|length|shape"):
            updated(**{**arrays, name: np.array([*ROWS[name], ROWS[name][0]])})


@pytest.mark.parametrize("state", [State(), VectorState(2)])
def test_rows_left_out_cannot_become_negative(state: Any) -> None:
    """Refused before anything changes."""
    one = state.copy().update([0, 1, 1], [[0.8, 0.2], [0.7, 0.3], [np.nan, np.nan]], drop_invalid=True)
    [reason] = one.dropped
    for theirs in ({reason: 2}, {"another reason": 1}):
        two = one.copy()
        two.dropped = theirs
        with pytest.raises(ValueError, match="the subtracted state left out rows that the other did not"):
            one.subtract(two)
        assert (one.n, one.dropped) == (2, {reason: 1})
    assert (one - one).dropped == {}


@pytest.mark.parametrize(
    ("shape", "said"), [((3, 2, 2), "3 dimensions"), ((4,), "the lengths differ"), ((3, 1), "one column")]
)
def test_an_array_of_a_wrong_shape_has_no_invalid_rows_to_drop(shape, said):
    with pytest.raises(cal.RefusedError, match=said):
        cal.scale.State().update([0, 1, 1], np.full(shape, 0.5), drop_invalid=True)
