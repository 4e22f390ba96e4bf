"""One room makes generators, from salted seeds, and random numbers are drawn in the places named here."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np
import pytest

import calibrary as cal
import sources
from calibrary import plots
from calibrary.numerics import draw
from calibrary.study import temperature_sweep

#: Rooms whose work is to draw, or to say what a draw is when a generator is given.
DRAWING = (
    "numerics/draw.py",
    "inference/draw/",
    "secondorder/members.py",  # labels drawn from a randomly chosen member
    "data/stacked.py",  # the uniform numbers of many replicates at once
    "data/sample.py",
    "data/matches.py",
    "study/",
    "datasets/",
    "gallery.py",
)
#: What is random by definition: it draws with a generator of the room, and holds no interval, band or p-value.
RANDOM_BY_DEFINITION = (
    "metrics/point/consistency.py",  # predictions on noisy inputs
    "metrics/bins/interval.py",  # bins at random places, method="monte-carlo"
    "metrics/kernel/residual.py",  # an integral at random points, with n_samples
    "numerics/sums/pair_median.py",  # pairs that bracket a median, which is then found exactly
    "models/leave_one_out.py",  # the first vector of an iteration
    "plots/style.py",  # which points are shown
    "plots/reliability.py",  # where labels are shown
)
METHODS = frozenset(
    [
        "binomial",
        "multinomial",
        "standard_normal",
        "normal",
        "uniform",
        "integers",
        "random",
        "permutation",
        "permuted",
        "shuffle",
        "choice",
        "dirichlet",
        "gamma",
        "exponential",
        "poisson",
    ]
)
MODULES = frozenset(("np", "scipy", "math", "torch", "stats", "special"))


def called(file: str) -> Iterator[tuple[str, ast.expr]]:
    for node in sources.nodes(sources.SRC / file):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, node.func.value


def files() -> list[str]:
    return sorted(path.relative_to(sources.SRC).as_posix() for path in sources.SRC.rglob("*.py"))


def within(file: str, places: tuple[str, ...]) -> bool:
    return any(file == place or (place.endswith("/") and file.startswith(place)) for place in places)


def test_generators_are_made_in_one_place() -> None:
    makers = {"default_rng", "RandomState", "SeedSequence", "PCG64"}
    found = [
        f"{file}:{node.lineno}"
        for file in files()
        if not within(file, ("numerics/draw.py", "datasets/", "gallery.py"))
        for node in sources.nodes(sources.SRC / file)
        if isinstance(node, ast.Attribute)
        if node.attr in makers or (node.attr == "seed" and ast.unparse(node) == "np.random.seed")
    ]
    assert found == []


def test_random_numbers_are_drawn_in_the_places_named() -> None:
    found = [
        f"{file}: {name}"
        for file in files()
        for name, owner in called(file)
        if name in METHODS and not (isinstance(owner, ast.Name) and owner.id in MODULES)
        if not within(file, (*DRAWING, *RANDOM_BY_DEFINITION))
    ]
    assert found == []


def test_every_place_that_is_exempt_still_draws() -> None:
    for file in RANDOM_BY_DEFINITION:
        assert any(name in METHODS for name, _ in called(file)), file


# -- seeds ---------------------------------------------------------------------------------------------


def test_a_stream_is_neither_the_user_s_nor_that_of_another_purpose() -> None:
    for seed in (0, 1, 2**31, 2**40, 2**70):
        streams = [np.random.default_rng(seed), *(draw.generator(seed, what) for what in ("labels", "rows", "folds"))]
        first = [tuple(stream.random(4)) for stream in streams]
        assert len(set(first)) == 4
        assert tuple(draw.generator(seed, "labels").random(4)) == first[1]
        assert tuple(draw.generator(np.int64(seed) if seed < 2**62 else seed, "labels").random(4)) == first[1]


def test_a_longer_seed_of_the_user_s_does_not_lead_to_a_salted_stream() -> None:
    low, high = draw._salt("labels")
    ours = draw.generator(5, "labels").random(4)
    for words in ([5, low, high], [5, 0, 0, 0, low], [5, high, low]):
        assert not np.array_equal(np.random.default_rng(words).random(4), ours)
        assert not np.array_equal(np.random.default_rng(sum(w << 32 * i for i, w in enumerate(words))).random(4), ours)


def test_a_generator_is_used_as_it_is_and_no_seed_is_fresh() -> None:
    given = np.random.default_rng(3)
    assert draw.generator(given, "labels") is given
    assert draw.generator(None, "labels").random() != draw.generator(None, "labels").random()


def test_a_seed_for_several_computations() -> None:
    assert draw.seed_of(7) == 7
    assert draw.seed_of(np.random.default_rng(0)) == draw.seed_of(np.random.default_rng(0))
    assert draw.seed_of(None) != draw.seed_of(None)


@pytest.mark.parametrize(
    ("rng", "kind"), [("a", TypeError), ([1], TypeError), (-1, ValueError), (0.5, ValueError), (True, ValueError)]
)
def test_what_is_no_seed_is_refused_in_one_sentence(rng, kind) -> None:
    y, c = np.tile([0, 1], 20), np.tile([0.3, 0.7], 20)
    said = r"rng=.* is not a seed: pass a whole number from 0 on or a numpy Generator$"
    for call in (
        lambda: cal.interval("ece", y, c, rng=rng),
        lambda: cal.interval("bs", y, c, rng=rng),
        lambda: cal.test("ece", y, c, method="monte-carlo", rng=rng),
        lambda: cal.compare("bs", y, {"a": c, "b": 1 - c}, rng=rng),
        lambda: cal.power("ece", 50, error=0.1, rng=rng, n_resamples=19),
        lambda: plots.corp_data(y, c, rng=rng),
    ):
        with pytest.raises(kind, match=said):
            call()


def test_a_shuffle_as_published_is_that_of_scikit_learn() -> None:
    expected = np.arange(20)
    np.random.RandomState(5).shuffle(expected)
    assert draw.shuffled_as_published(20, 5).tolist() == expected.tolist()
    with pytest.raises(ValueError, match=r"below 2\*\*32"):
        draw.shuffled_as_published(20, 2**32)


# -- data of the user's with the same seed ---------------------------------------------------------------


def test_confidences_of_the_same_seed_do_not_follow_our_draws() -> None:
    c = np.random.default_rng(0).random(2000)
    same, other = (cal.expected_by_chance("ece", None, c, rng=seed, n_resamples=19).mean for seed in (0, 1))
    assert same == pytest.approx(other, abs=0.004)
    sweep = temperature_sweep(["ece"], c, temperatures=[0.5, 1.0, 2.0], n_repeats=1, rng=0)
    assert sweep.means["ece"][1] < 0.05


def test_shown_labels_are_not_moved_by_their_confidences() -> None:
    pytest.importorskip("matplotlib")
    c = np.random.default_rng(0).random(500)
    y = (np.random.default_rng(1).random(500) < c).astype(int)
    drawn = plots.plot_reliability(y, c, caption=False)
    shown = next(points.get_offsets() for points in drawn.collections if len(points.get_offsets()) == 500)
    confidence, moved = shown[:, 0], shown[:, 1] - np.rint(shown[:, 1])
    assert moved.std() > 0.01
    assert abs(np.corrcoef(confidence, moved)[0, 1]) < 0.15


# -- figures show the interval of the question -----------------------------------------------------------


def test_the_interval_of_a_diagram_is_that_of_interval_and_covers() -> None:
    rng, holds = np.random.default_rng(1), 0
    for seed in range(20):
        c = rng.beta(0.8, 0.8, 500)
        y = (rng.random(500) < c).astype(int)
        data = plots.reliability_data(y, c, n_resamples=199, rng=seed)
        found = cal.interval("ece", y, c, n_resamples=199, rng=seed)
        assert (data.ece_low, data.ece_high) == tuple(found)
        holds += data.ece_low == 0.0
    assert holds >= 19


def test_the_interval_of_a_smooth_diagram_is_that_of_interval() -> None:
    y, p, _ = cal.datasets.breast_cancer()
    data = plots.smooth_data(y, p, n_resamples=39, rng=3)
    assert (data.smece_low, data.smece_high) == tuple(cal.interval("smece", y, p, n_resamples=39, rng=3))
    none = plots.smooth_data(y, p, n_resamples=39, interval=False)
    assert np.isnan(none.smece_low)
    assert np.isnan(none.smece_high)


# -- batches, workers ------------------------------------------------------------------------------------


def test_batches_do_not_change_what_is_drawn() -> None:
    c, copies = np.linspace(0.1, 0.9, 12), 1 + np.arange(12) % 3
    for of in (None, copies):
        whole = np.concatenate(list(draw.redrawn_labels(c, of, 10, 1, at_once=10)))
        parts = np.concatenate(list(draw.redrawn_labels(c, of, 10, 1, at_once=3)))
        np.testing.assert_array_equal(whole, parts)
        assert whole.mean(axis=0) == pytest.approx(c * (1 if of is None else of), abs=0.8)
    for many in (draw.redrawn_rows, draw.redrawn_signs):
        whole, parts = (np.concatenate(list(many(copies, 10, 1, n))) for n in (10, 3))
        np.testing.assert_array_equal(whole, parts)
    assert (np.concatenate(list(draw.redrawn_rows(copies, 10, 1))).sum(axis=1) == copies.sum()).all()
    signs = np.concatenate(list(draw.redrawn_signs(copies, 10, 1)))
    assert (np.abs(signs) <= copies).all()
    assert ((signs + copies) % 2 == 0).all()


def test_the_number_of_workers_does_not_change_what_is_drawn() -> None:
    rng = np.random.default_rng(0)
    c = rng.random(300)
    y = (rng.random(300) < c).astype(int)
    one, two = (cal.interval("smece", y, c, n_resamples=39, rng=4, workers=n) for n in (1, 3))
    np.testing.assert_array_equal(one.draws, two.draws)
    assert tuple(one) == tuple(two)


def test_rows_with_labels_are_rows_and_labels_of_them() -> None:
    source, copies = np.random.default_rng(0), np.array([1, 2, 1, 40])
    for p in (np.array([[0.0], [1.0], [0.5], [0.5]]), np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])):
        for of in (copies, np.ones(4, dtype=np.int64)):
            count, labels = draw.rows_with_labels(of, p, 50, source)
            assert count.shape == (50, 4)
            assert labels.shape == (50, 4, p.shape[1])
            assert (count.sum(axis=1) == of.sum()).all()
            label_1 = labels[..., -1]
            assert (label_1[:, 0] == 0).all()
            assert (label_1[:, 1] == count[:, 1]).all()
            assert 0.3 < label_1[:, 2:].sum() / count[:, 2:].sum() < 0.7
