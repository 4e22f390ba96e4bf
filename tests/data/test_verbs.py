"""The interface that all types of data share, so that other code need not distinguish them."""

import datetime

import numpy as np
import pytest

import calibrary as cal
from calibrary.data import Data, as_data, as_matches, is_data
from calibrary.data.belonging import as_times
from calibrary.data.lens import as_lens
from calibrary.data.sample import sample_of

N, IMAGES = 240, 24


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    c = rng.beta(2, 2, N)
    return (rng.random(N) < c**1.5).astype(int), c


def matched():
    y, c = arrays()
    return cal.matched_detections(
        y == 1, c, iou=np.where(y == 1, 0.75, 0.0), category=np.arange(N) % 3, image=np.arange(N) // 10
    )


def in_cells():
    y, c = arrays()
    return cal.scale.State(resolution=19200).update(y, c)


def detections_in_cells():
    y, c = arrays()
    state = cal.scale.DetectionState((0, 1, 2), blocks=4)
    return state.update(y == 1, c, category=np.arange(N) % 3, image=np.arange(N) // 10)


KINDS = {
    "predictions": lambda: cal.predictions(*arrays()),
    "classes": lambda: cal.predictions(np.arange(N) % 3, np.tile([[0.5, 0.3, 0.2]], (N, 1))),
    "cells": in_cells,
    "matches": matched,
    "matches in cells": detections_in_cells,
}


#: What code outside ``calibrary.data`` uses, whatever the type of the data.
VERBS = (
    "align", "at_times", "by_class", "check_labels", "check_law", "class_noun", "class_nouns", "contents",
    "digest_parts", "drawn_by", "exchangeable", "identity", "in_groups", "in_units", "making", "n_places",
    "note_for", "noun", "nouns", "one_by_one", "outcome", "own_view", "part", "parts", "plain", "positive",
    "probability", "read_as", "rows_of", "size", "summed", "through", "time", "total", "units", "usual_lens",
    "versions", "weighted", "with_probability",
)  # fmt: skip


@pytest.fixture(params=KINDS)
def data(request):
    return as_data(KINDS[request.param](), None, {})


def test_every_kind_has_every_verb(data):
    assert isinstance(data, Data)
    assert [verb for verb in VERBS if not hasattr(data, verb)] == []
    assert is_data(data)
    assert not is_data(np.zeros(3))
    assert data.nouns == f"{data.noun}s"
    assert data.noun == ("detection" if as_matches(data) is not None else "row")
    assert data.class_noun in ("class", "category")
    assert data.outcome in ("observed", "precision")
    assert data.total == N


def test_a_part_is_some_rows_or_some_images(data):
    some = np.arange(0, data.n_places, 2)
    part = data.part(some)
    assert type(part) is type(data)
    inside = np.isin(data.rows_of(np.arange(data.n_places)), some)
    np.testing.assert_array_equal(part.probability, data.probability[inside])
    weight = data.read_as("predictions", "a test").weight
    assert part.total == weight[inside].sum()


def test_other_confidences_leave_all_else_as_it_is(data):
    square = data.probability**2
    other = data.with_probability(square if square.ndim == 1 else square / square.sum(axis=1, keepdims=True))
    assert not np.array_equal(other.probability, data.probability)
    mine, before = other.read_as("predictions", "a test"), data.read_as("predictions", "a test")
    np.testing.assert_array_equal(mine.y, before.y)
    np.testing.assert_array_equal(mine.weight, before.weight)
    assert (other.noun, other.contents, other.making) == (data.noun, data.contents, data.making)
    assert cal.compute("bs", other) != pytest.approx(cal.compute("bs", data))


def test_confidences_of_another_shape_are_refused():
    p = cal.predictions(*arrays())
    with pytest.raises(ValueError, match=r"probability has shape \(3,\)"):
        p.with_probability(np.zeros(3))
    two = cal.predictions(p.y, np.column_stack([1 - p.c, p.c]))
    one = two.with_probability(p.c / 2)
    assert one.binary
    assert cal.compute("bs", one) == cal.compute("bs", p.with_probability(p.c / 2))


def test_columns_belong_to_rows_or_to_images(data):
    column = np.arange(data.n_places) * 10
    np.testing.assert_array_equal(data.align(column, "time"), column)
    with pytest.raises(ValueError, match="time has"):
        data.align(column[:-1], "time")
    spread = data.rows_of(column)
    assert len(spread) == len(data.probability)
    ones = np.ones(len(data.probability))
    np.testing.assert_array_equal(data.summed(ones), np.bincount(spread // 10, minlength=data.n_places))


def test_the_parts_of_the_digest_contain_names_and_probabilities(data):
    names, parts = data.digest_parts
    assert len(names) == (2 if data.positive is not None else 3)
    assert any(part is data.probability for part in parts)


def test_the_positive_class_is_named_where_there_is_one():
    y, c = arrays()
    named = cal.predictions(np.where(y == 1, "ill", "well"), c, pos_label="ill")
    assert named.positive == "ill"
    assert named.making == {"positive class": "ill"}
    assert KINDS["classes"]().positive is None
    assert KINDS["classes"]().making == {}
    assert matched().positive is None
    assert matched().making["matching rule"] == "matched before"


def test_labels_are_exchangeable_only_if_each_row_is_one_prediction():
    y, c = arrays()
    coarse = as_data(cal.scale.State(resolution=1200).update(np.tile(y, 9), np.tile(np.round(c, 2), 9)), None, {})
    exchangeable = {name: as_data(make(), None, {}).exchangeable for name, make in KINDS.items()}
    assert exchangeable["predictions"]
    assert exchangeable["classes"]
    assert not exchangeable["matches"]
    assert not coarse.exchangeable


def test_data_are_split_by_class_if_each_row_has_one_class(data):
    apart = data.by_class()
    if as_matches(data) is None:
        assert apart is None
        return
    assert [name for name, _ in apart.parts] == ["0", "1", "2"]
    weight = data.read_as("predictions", "a test").weight
    np.testing.assert_array_equal([part.total for _, part in apart.parts], np.bincount(apart.member, weight))


# -- what travels ----------------------------------------------------------------------------------------


def test_units_travel_with_rows_views_parts_and_other_weights():
    y, c = arrays()
    unit = np.arange(N) // 6
    p = cal.predictions(y, np.column_stack([1 - c, c])).in_units([f"patient {u}" for u in 100 + unit])
    np.testing.assert_array_equal(p.units, unit)
    np.testing.assert_array_equal(p.through(as_lens("binary")).views[0].units, unit)
    np.testing.assert_array_equal(p.part(np.arange(60, 90)).units, np.arange(30) // 6)
    weight = np.arange(N) % 2
    np.testing.assert_array_equal(cal.predictions(p, sample_weight=weight).units, np.repeat(np.arange(40), 3))
    np.testing.assert_array_equal(p.with_probability(c / 2).units, unit)
    assert p.one_by_one().units is None
    assert p.one_by_one().part(np.arange(9)).units is None
    assert cal.predictions(y, c).units is None


def test_blocks_are_runs_of_the_rows_that_count():
    y, c = arrays()
    p = cal.predictions(y, c).in_units(blocks=True)
    assert p.together.block == 6
    np.testing.assert_array_equal(p.units, np.arange(N) // 6)
    half = cal.predictions(y, c, sample_weight=np.arange(N) % 2).in_units(blocks=10)
    np.testing.assert_array_equal(half.units, np.arange(N // 2) // 10)
    with pytest.raises(ValueError, match="blocks=121 is too long for 240 rows"):
        cal.predictions(y, c).in_units(blocks=121)
    with pytest.raises(TypeError, match="pass one of them"):
        p.in_units(np.arange(N), 3)


def test_detections_belong_to_their_image():
    m = matched()
    assert m.units is m.image
    assert m.one_by_one() is m
    assert not m.in_groups
    with pytest.raises(ValueError, match="units= is for predictions only: detections are already drawn"):
        m.in_units(m.image)
    with pytest.raises(ValueError, match="blocks= is for predictions"):
        m.in_units(blocks=3)


def test_time_travels_with_rows_and_images(data):
    days = np.datetime64("2026-01-01") + np.arange(data.n_places)
    dated = data.at_times(days)
    np.testing.assert_array_equal(dated.time, as_times(days))
    assert data.time is None
    assert data.at_times(None) is data
    with pytest.raises(ValueError, match=r"time\[0\] = 'soon' is not a date"):
        data.at_times(["soon"] * data.n_places)


def test_a_missing_date_of_pandas_is_no_date():
    pandas = pytest.importorskip("pandas")
    times = as_times(np.array(["2026-01-01", pandas.NA, pandas.NaT, None, " "], dtype=object))
    np.testing.assert_array_equal(np.isnat(times), [False, True, True, True, True])


def test_time_is_that_of_the_rows_that_count():
    y, c = arrays()
    p = cal.predictions(y, c, sample_weight=np.arange(N) % 3)
    dated = p.at_times([datetime.date(2026, 1, 1) + datetime.timedelta(days=i) for i in range(N)])
    np.testing.assert_array_equal(
        dated.time, as_times(np.datetime64("2026-01-01") + np.arange(N)[np.arange(N) % 3 > 0])
    )
    np.testing.assert_array_equal(dated.part(np.arange(4)).time, dated.time[:4])


# -- samples ---------------------------------------------------------------------------------------------


def test_samples_say_what_is_drawn():
    y, c = arrays()
    rows, units = sample_of(cal.predictions(y, c)), sample_of(cal.predictions(y, c).in_units(np.arange(N) // 6))
    images, blocks = sample_of(matched()), sample_of(detections_in_cells().as_matches())
    seen = [(s.grouped, s.of_rows, s.row_by_row, s.unit is None) for s in (rows, units, images, blocks)]
    assert seen == [
        (False, True, True, True), (True, True, False, False), (False, False, False, False),
        (False, False, False, False),
    ]  # fmt: skip
    assert (rows.n_units, units.n_units, images.n_units, blocks.n_units) == (N, 40, IMAGES, 4)
    assert rows.own_view(False) is None
    _, image = images.own_view(False)
    np.testing.assert_array_equal(image, np.arange(N) // 10)
    with pytest.raises(ValueError, match="cannot be drawn one by one"):
        units.null()
    with pytest.raises(ValueError, match="units has one value only"):
        sample_of(cal.predictions(y, c).in_units(np.zeros(N)))


@pytest.mark.parametrize("belong", [{"units": np.arange(N) // 6}, {"blocks": 8}])
def test_units_of_the_data_are_units_of_the_call(belong):
    y, c = arrays()
    carried = cal.predictions(y, c).in_units(**belong)
    draws = {"n_resamples": 99, "rng": 0}
    assert cal.interval("ece", carried, **draws).low == cal.interval("ece", y, c, **belong, **draws).low
    assert cal.test("ece", carried, **draws).pvalue == cal.test("ece", y, c, **belong, **draws).pvalue
    ours, theirs = (
        cal.evaluate(*given, metrics=["ece", "bs"], intervals=True, tests=True, **draws, **more)
        for given, more in (((carried,), {}), ((y, c), belong))
    )
    assert ours.to_dict() == theirs.to_dict()
    if "units" in belong:
        assert cal.recalibration_gain(carried)["platt"].se == cal.recalibration_gain(y, c, **belong)["platt"].se
